//! Checks that need the equations: is the mass matrix regular where it must be?
//!
//! Enters: a model that the reader accepts. Leaves: diagnostics by the joint's place and name.

use crate::diagnostics::Diagnostics;
use crate::dynamics::{articulated_body, body_inertias, mass_matrix_diagonal};
use crate::elements::{Mechanism, loads};
use crate::graph::{ExprId, Graph, Interpreter};
use crate::kinematics::ReferencePoint;
use crate::lowering::{Lowering, Parameters, ParametersOnly};
use crate::model::Model;
use crate::symbols::Group;
use crate::topology;

/// A pivot this small against the diagonal entry it came from is zero but for rounding: the elimination
/// of n velocities loses n units in the last place, and n ≤ 1000.
const SINGULAR: f64 = 1e-12;

/// States tried: the start and a few arbitrary ones. A matrix that is singular in all of them is singular
/// by construction.
const STATES: usize = 4;

/// Reports the velocity along which the mass matrix has no positive pivot: an error where it has none in
/// any state, a warning where only the start configuration is singular.
pub fn mass_matrix_is_regular(model: &Model, diagnostics: &mut Diagnostics) {
    let tree = topology::span(model);
    let mut g = Graph::new();
    let parameters = Parameters::lower(&mut g, model, true);
    let mut mechanism = Mechanism::new(&mut g, model, &tree, &parameters, ReferencePoint::CentreOfMass);
    let inertias = body_inertias(&mut g, &mechanism);
    // The pivots of the recursion are those of the factored matrix, and cost O(n) whatever the size.
    let loads = loads(&mut g, &mut mechanism);
    let mut wanted: Vec<ExprId> = mass_matrix_diagonal(&mut g, &mechanism, &inertias);
    wanted.extend(articulated_body(&mut g, &mechanism, &inertias, &loads).pivots);

    let mut start = Vec::new();
    for link in &tree.links {
        for value in &model.joints[link.joint.index()].start.values {
            start.push(Lowering::new(&mut g, &parameters, &mut ParametersOnly).scalar(value));
        }
    }
    let start = Interpreter::<f64>::new().evaluate(&g, &start);

    // The first velocity without a positive pivot in each state. What comes after it means nothing:
    // elimination runs from the last velocity inward.
    let mut singular = (0..STATES).map(|state| {
        let mut interpreter = Interpreter::new();
        for (i, &value) in start.iter().enumerate() {
            // Irrational steps: no two coordinates meet in a special configuration by accident.
            let step = 0.37 * state as f64 * (1.0 + (i as f64 * 0.754_877_666).fract());
            interpreter.set(Group::Z, i as u32, value + step);
        }
        let values = interpreter.evaluate(&g, &wanted);
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
