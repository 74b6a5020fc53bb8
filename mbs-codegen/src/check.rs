//! Checks that need the equations: can every constraint hold, are nonholonomic rows linear in velocities, do
//! inertia and constraints determine every acceleration?
//!
//! Input: a model that the reader accepts. Output: diagnostics by place and name.

use crate::analysis::Analysed;
use crate::conditions::Conditions;
use crate::constrained::{Checked, Rows, Scales, bordered_matrix};
use crate::diagnostics::{Diagnostics, Span};
use crate::dynamics::{body_inertias, mass_matrix_diagonal, pivots};
use crate::elements::{Mechanism, constraint_elements};
use crate::graph::{ExprId, Graph, Interpreter};
use crate::kinematics::ReferencePoint;
use crate::lowering::Parameters;
use crate::model::{Case, Model, Multiplier, PROJECTED};
use crate::symbols::Group;
use crate::topology::{RowSource, Tree};
use std::collections::HashSet;

/// A pivot this small against the diagonal entry it came from is zero but for rounding: the elimination
/// of n velocities loses n units in the last place, and n ≤ 1000.
const SINGULAR: f64 = 1e-12;

/// States tried: the start and a few arbitrary ones. A matrix that is singular in all of them is singular
/// by construction.
const STATES: usize = 4;

/// All checks.
pub fn equations(analysed: &Analysed, diagnostics: &mut Diagnostics) {
    let Analysed { model, tree, rows } = analysed;
    multipliers_mean_something(model, rows, diagnostics);
    projections_exist(analysed, diagnostics);
    parameters_keep_conditions(model, tree, rows, diagnostics);
    if analysed.is_constrained() {
        constraints_determine(model, tree, rows, diagnostics);
    } else {
        mass_matrix_is_regular(model, tree, &rows.scales, diagnostics);
    }
}

/// Warns of objectives that name the multiplier of a row that vanishes identically.
fn multipliers_mean_something(model: &Model, rows: &Rows, diagnostics: &mut Diagnostics) {
    let dropped: HashSet<&str> = rows.dropped.iter().map(String::as_str).collect();
    for objective in &model.objectives {
        let mut told = HashSet::new();
        for (which, row) in objective.multipliers() {
            let name = model.row_name(row);
            if dropped.contains(name.as_str()) && told.insert((which, row)) {
                let what = match which {
                    Multiplier::Force => "multiplier",
                    Multiplier::ProjectionImpulse => "projection impulse",
                    Multiplier::ProjectionForce => "projection force",
                };
                let message =
                    format!("objective `{}` names the {what} of `{name}`, which is zero", objective.name);
                diagnostics
                    .warning(objective.span, message)
                    .help("the equation holds in every position and needs no force: leave it out");
            }
        }
    }
}

/// Refuses multipliers of projections where the file's own runs have no projections.
fn projections_exist(analysed: &Analysed, diagnostics: &mut Diagnostics) {
    let (model, constrained) = (&analysed.model, analysed.is_constrained());
    let named = model.objectives.iter().filter(|objective| objective.projection_multiplier().is_some());
    for objective in named {
        let runs = std::iter::once((None, &model.simulation));
        let cases = model.cases.iter().map(|case| (Some(&case.name), &case.simulation));
        for (case, simulation) in runs.chain(cases) {
            if let Some(refusal) = objective.refuses(simulation, constrained) {
                let of_case = case.map_or(String::new(), |name| format!(" (case `{name}`)"));
                diagnostics.error(objective.span, format!("{refusal}{of_case}")).help(PROJECTED);
            }
        }
    }
}

/// The file's own parameters and those of its cases keep what all parameters must keep.
fn parameters_keep_conditions(model: &Model, tree: &Tree, rows: &Rows, diagnostics: &mut Diagnostics) {
    for checked in &rows.checked {
        if let Some(broken) = broken_condition(model, tree, &only(checked), None) {
            diagnostics.error(checked.row.span(model), broken).help(match checked.row.source {
                RowSource::Cut(_) => "the two sides of the joint do not meet, whatever the other joints do; check its points and axes",
                RowSource::Constraint(_) => "a constraint must depend on the mechanism's position",
            });
        }
    }
    if diagnostics.has_errors() {
        return;
    }
    for case in &model.cases {
        let model = model.under_case(Some(case));
        if let Some(broken) = broken_condition(&model, tree, rows, Some(case)) {
            diagnostics.error(case.span, format!("case `{}`: {broken}", case.name));
        }
    }
}

/// Nothing but this row.
fn only(checked: &Checked) -> Rows {
    Rows { checked: vec![checked.clone()], ..Rows::default() }
}

/// What the model's own parameters do not keep.
fn broken_condition(model: &Model, tree: &Tree, rows: &Rows, case: Option<&Case>) -> Option<String> {
    let mut g = Graph::new();
    let parameters = Parameters::lower(&mut g, model, false);
    let mut mechanism = Mechanism::new(&mut g, model, tree, &parameters, ReferencePoint::Origin);
    let conditions = Conditions::of(&mut g, &mut mechanism, rows, case, f64::EPSILON, false);
    let mut interpreter = Interpreter::new();
    interpreter.set_all(Group::Parameters, &model.default_parameters());
    let margins = interpreter.evaluate(&g, &conditions.margins);
    let shown = interpreter.evaluate(&g, &conditions.shown);
    Conditions::broken(&conditions.all, &margins, &shown).map(|(_, text)| text)
}

/// More velocities than this are not checked: the check is dense.
const MAX_DENSE: usize = 400;

/// Under constraints, M + Φ_vᵀ Φ_v (with rows and columns scaled to unit diagonal) must be positive definite: no
/// motion may have neither inertia nor a constraint against it.
fn constraints_determine(model: &Model, tree: &Tree, rows: &Rows, diagnostics: &mut Diagnostics) {
    let mut g = Graph::new();
    let parameters = Parameters::lower(&mut g, model, true);
    let mut mechanism = Mechanism::new(&mut g, model, tree, &parameters, ReferencePoint::Origin);
    let inertias = body_inertias(&mut g, &mechanism);
    let constraints = constraint_elements(&mut g, &mechanism, &rows.kept, |row| row);
    let nonlinear: Vec<usize> = constraints.iter().flat_map(|c| c.nonlinear_rows(&mut g)).collect();
    for &row in &nonlinear {
        let row = &rows.kept[row];
        diagnostics
            .error(row.span(model), format!("constraint `{}` is not linear in the velocities", row.name))
            .help("a nonholonomic constraint has the form A(position, t) · velocities + b(position, t) = 0");
    }
    if !nonlinear.is_empty() {
        return;
    }
    let n = tree.nv;
    let matrix = bordered_matrix(&mut g, &mut mechanism, &inertias, constraints, rows);
    for &k in &rows.immovable {
        let row = &rows.kept[k];
        diagnostics
            .error(
                row.span(model),
                format!("constraint `{}` can never be met: no coordinate changes it", row.name),
            )
            .help("a constraint must depend on the mechanism's position");
    }
    if n > MAX_DENSE || diagnostics.has_errors() {
        return;
    }
    let (places, wanted): (Vec<_>, Vec<_>) = matrix.entries.iter().map(|(&p, &e)| (p, e)).unzip();
    let unit = |v: usize| rows.scales.velocities.get(v).copied().unwrap_or(1.0);
    let undetermined: Vec<Option<usize>> = sampled(&mut g, &mechanism, &rows.scales, &wanted)
        .into_iter()
        .map(|values| {
            // By velocities in their units.
            let mut dense = vec![0.0; matrix.n * n];
            for (&(i, j), value) in places.iter().zip(values) {
                if j < n {
                    dense[i * n + j] = value * unit(j) * if i < n { unit(i) } else { 1.0 };
                }
            }
            first_undetermined(&dense, n, rows.kept.len())
        })
        .collect();
    let Some(Some(k)) = undetermined.first() else { return };
    let (span, name) = name_of_velocity(model, tree, *k);
    if undetermined.iter().all(|found| found.is_some()) {
        diagnostics
            .error(span, format!("neither inertia nor constraints determine the acceleration of `{name}`"))
            .help("give what it moves a mass or an inertia, or constrain it");
    } else {
        diagnostics
            .warning(
                span,
                format!(
                    "neither inertia nor constraints determine the acceleration of `{name}` at the start"
                ),
            )
            .help("start from another configuration");
    }
}

/// The first velocity without a positive pivot in M + Φᵀ Φ, after scaling: mass entries by their largest, every row of
/// Φ by its own.
fn first_undetermined(dense: &[f64], n: usize, rows: usize) -> Option<usize> {
    let entry = |i: usize, j: usize| dense[i * n + j];
    let largest = (0..n * n).map(|e| dense[e].abs()).fold(0.0, f64::max);
    let mut a = vec![0.0; n * n];
    for i in 0..n {
        for j in 0..n {
            a[i * n + j] = if largest > 0.0 { entry(i, j) / largest } else { 0.0 };
        }
    }
    for k in n..n + rows {
        let scale = (0..n).map(|j| entry(k, j).abs()).fold(0.0, f64::max);
        for i in (0..n).filter(|_| scale > 0.0) {
            for j in 0..n {
                a[i * n + j] += entry(k, i) / scale * (entry(k, j) / scale);
            }
        }
    }
    let scale: Vec<f64> = (0..n).map(|k| a[k * n + k].sqrt().recip()).collect();
    for i in 0..n {
        if !scale[i].is_finite() {
            return Some(i);
        }
        for j in 0..n {
            a[i * n + j] *= scale[i] * scale[j];
        }
    }
    // Cholesky
    for k in 0..n {
        if a[k * n + k].is_nan() || a[k * n + k] <= SINGULAR {
            return Some(k);
        }
        for i in k + 1..n {
            let factor = a[i * n + k] / a[k * n + k];
            for j in k + 1..n {
                a[i * n + j] -= factor * a[k * n + j];
            }
        }
    }
    None
}

fn name_of_velocity(model: &Model, tree: &Tree, k: usize) -> (Span, String) {
    match tree.link_of_v(k) {
        Some(link) => {
            let joint = &model.joints[link.joint.index()];
            (joint.span, format!("{}.{}", joint.name, joint.velocities[k - link.v]))
        }
        None => {
            let variable = &model.variables[k - tree.variables_v];
            (variable.span, variable.name.clone())
        }
    }
}

/// Values at the start and at a few states near it.
fn sampled(g: &mut Graph, mechanism: &Mechanism<'_>, scales: &Scales, wanted: &[ExprId]) -> Vec<Vec<f64>> {
    let [start, _] = mechanism.start(g);
    let start = Interpreter::<f64>::new().evaluate(g, &start);
    (0..STATES)
        .map(|state| {
            let mut interpreter = Interpreter::new();
            for (i, input) in mechanism.model.inputs.iter().enumerate() {
                interpreter.set(Group::U, i as u32, input.default);
            }
            for (i, &value) in start.iter().enumerate() {
                // Irrational steps: no two coordinates meet in a special configuration by accident.
                let step = 0.37 * state as f64 * (1.0 + (i as f64 * 0.754_877_666).fract());
                let unit = scales.coordinates.get(i).copied().unwrap_or(1.0);
                interpreter.set(Group::Z, i as u32, value + step * unit);
            }
            interpreter.evaluate(g, wanted)
        })
        .collect()
}

/// Reports the velocity along which the mass matrix of a tree has no positive pivot: an error where it has none in
/// any state, a warning where only the start configuration is singular.
fn mass_matrix_is_regular(model: &Model, tree: &Tree, scales: &Scales, diagnostics: &mut Diagnostics) {
    let mut g = Graph::new();
    let parameters = Parameters::lower(&mut g, model, true);
    let mechanism = Mechanism::new(&mut g, model, tree, &parameters, ReferencePoint::CentreOfMass);
    let inertias = body_inertias(&mut g, &mechanism);
    // The pivots of the recursion are those of the factored matrix, and cost O(n) whatever the size.
    let mut wanted: Vec<ExprId> = mass_matrix_diagonal(&mut g, &mechanism, &inertias);
    wanted.extend(pivots(&mut g, &mechanism, &inertias));

    // The first velocity without a positive pivot in each state. What comes after it means nothing:
    // elimination runs from the last velocity inward.
    let mut singular = sampled(&mut g, &mechanism, scales, &wanted).into_iter().map(|values| {
        let (diagonal, pivots) = values.split_at(tree.nv);
        (0..tree.nv).rev().find(|&k| pivots[k].is_nan() || pivots[k] <= SINGULAR * diagonal[k].abs())
    });
    let Some(Some(k)) = singular.next() else { return };
    let always = singular.all(|found| found.is_some());

    let Some(link) = tree.link_of_v(k) else { return };
    let joint = &model.joints[link.joint.index()];
    let velocity = &joint.velocities[k - link.v];
    let body = &model.bodies[link.body.index()].name;
    if always {
        diagnostics
                .error(
                    joint.span,
                    format!("no inertia along `{}.{velocity}`: the mass matrix is singular", joint.name),
                )
                .help(format!(
                    "give body `{body}` (or what it carries) a mass or an inertia about this motion, or make the joint fixed"
                ));
    } else {
        diagnostics
            .warning(
                joint.span,
                format!("the mass matrix is singular along `{}.{velocity}` at the start", joint.name),
            )
            .help("start from another configuration, or give the body an inertia of its own");
    }
}
