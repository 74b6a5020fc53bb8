//! What every set of parameters must keep, not only the file's own: masses, inertias and directions that a body can have,
//! bounds, knots that increase, rows that no coordinate can correct; lengths, inertias and slopes of rows of the size for which the equations are
//! scaled.
//!
//! Enters: a mechanism and its rows. Leaves: conditions, each an expression of parameters that must not be negative. Those
//! that hold whatever the parameters are left out: the reader has judged them.
//!
//! | symbol | meaning |
//! |---|---|
//! | J | inertia about the centre of mass |
//! | q | tr J / 3 |
//! | B | J − q I, with tr B² = 6 p² |
//! | φ | ⅓ arccos(½ det(B/p)), so that the principal moments are q + 2p cos(φ + 2πk/3) |
//! | ℓ | the model's length at default parameters |

use crate::constrained::{Rows, Sample, lengths, row_values, start_lengths};
use crate::elements::{Mechanism, constraint_elements};
use crate::graph::{BinaryOp, Comparison, ExprId, Graph, Interpreter, UnaryOp, gradient};
use crate::kinematics::ReferencePoint;
use crate::lowering::{Lowering, Parameters, ParametersOnly};
use crate::model::{
    ArrayRef, Case, Inertia, Model, ParameterId, ParameterValue, Scalar, SensitivityRef, Vector,
};
use crate::symbols::Group;
use crate::topology::{Row, RowSource, Tree};
use std::f64::consts::PI;

/// Against the size of what a row compares: nine digits, which people write, and not less than [`ROUNDING`].
const HOLDS: f64 = 1e-9;
/// Rounding of what a row compares, in units of ε: a few sums of values that are rounded themselves.
const ROUNDING: f64 = 16.0;
/// Rounding of principal moments against the largest, in units of √ε: where two are equal the arccosine loses half of the digits.
const MOMENT_ROUNDING: f64 = 4.0;
/// Sine of the angle between directions that count as parallel, as the reader judges those of the defaults.
const PARALLEL: f64 = 1e-6;
/// By this part a parameter is changed to see whether what bodies share depends on it: far more than [`HOLDS`].
const CHANGE: f64 = 1e-3;
/// Rows are looked at in this many states; no coordinate changes them, time and inputs may.
const STATES: usize = 3;

/// Lengths may leave those of the defaults by this factor: Newton's method ends at 1e−10 of the model's length, which then is 3e−8 of the shorter ones.
const LENGTHS: f64 = 256.0;
/// Inertias may leave those of the defaults by this factor: the regularisation of constraints, 1e−10 of Φ M⁻¹ Φᵀ, stays between the rounding of a
/// solve and 1e−6, of which the refined solution keeps the square.
const INERTIAS: f64 = 8192.0;

/// Slopes of rows, whose square the regularisation goes with, likewise.
const SLOPES: f64 = 64.0;

/// The largest of some sizes.
fn largest(g: &mut Graph, of: Vec<ExprId>) -> ExprId {
    let (mut constant, mut others) = (0.0f64, Vec::new());
    for x in of {
        match g.constant_value(x) {
            Some(value) => constant = constant.max(value.abs()),
            None => others.push(g.abs(x)),
        }
    }
    let constant = g.constant(constant);
    others.into_iter().fold(constant, |largest, size| g.binary(BinaryOp::Max, largest, size))
}

/// A measure at default parameters.
fn by_default(g: &Graph, mechanism: &Mechanism<'_>, measure: ExprId) -> f64 {
    let mut interpreter = Interpreter::new();
    interpreter.set_all(Group::Parameters, &mechanism.model.default_parameters());
    interpreter.evaluate(g, &[measure])[0]
}

/// One condition.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// What is wrong where it fails, before the value: "the mass of body `rod` is negative".
    pub message: String,
    /// Whether zero fails, too.
    pub strict: bool,
    /// Whether a program of the same model with these parameters as defaults keeps it.
    pub of_scale: bool,
}

impl Condition {
    /// Whether it holds; not if the margin is not a number.
    pub fn holds(&self, margin: f64) -> bool {
        if self.strict { margin > 0.0 } else { margin >= 0.0 }
    }
}

/// The conditions of a model.
#[derive(Clone, Debug, Default)]
pub struct Conditions {
    /// The conditions.
    pub all: Vec<Condition>,
    /// What must not be negative, of each.
    pub margins: Vec<ExprId>,
    /// What is shown where it is.
    pub shown: Vec<ExprId>,
}

impl Conditions {
    /// Of a mechanism, with the knots of a case. `epsilon` is that of the numbers with which they are judged; `implicit` says whether an iteration judges
    /// coordinates by their scales.
    pub fn of(
        g: &mut Graph,
        mechanism: &mut Mechanism<'_>,
        rows: &Rows,
        case: Option<&Case>,
        epsilon: f64,
        implicit: bool,
    ) -> Conditions {
        let mut conditions = Conditions::default();
        conditions.bounds(g, mechanism);
        conditions.bodies(g, mechanism, epsilon);
        conditions.directions(g, mechanism);
        conditions.shared(g, mechanism, epsilon);
        conditions.knots(g, mechanism, &mechanism.model.knots);
        conditions.knots(g, mechanism, case.map_or(&[], |case| &case.knots));
        conditions.rows(g, mechanism, rows, epsilon);
        if implicit || !rows.kept.is_empty() {
            conditions.lengths(g, mechanism);
        }
        if !rows.kept.is_empty() {
            conditions.inertias(g, mechanism, rows.scales.length);
            conditions.slopes(g, mechanism, rows);
        }
        conditions
    }

    /// Whether the equations are scaled for these values of the independent parameters, arrays flattened.
    pub fn are_scaled_for(&self, g: &Graph, parameters: &[f64]) -> bool {
        let of_scale = self.all.iter().zip(&self.margins).filter(|(condition, _)| condition.of_scale);
        let (conditions, margins): (Vec<_>, Vec<ExprId>) = of_scale.map(|(c, &margin)| (c, margin)).unzip();
        let mut interpreter = Interpreter::new();
        interpreter.set_all(Group::Parameters, parameters);
        let values = interpreter.evaluate(g, &margins);
        conditions.iter().zip(values).all(|(condition, margin)| condition.holds(margin))
    }

    /// The first that fails at values of margins and of what is shown, and its text.
    pub fn broken<'c>(
        all: &'c [Condition],
        margins: &[f64],
        shown: &[f64],
    ) -> Option<(&'c Condition, String)> {
        let first = all.iter().zip(margins).position(|(condition, &margin)| !condition.holds(margin))?;
        Some((&all[first], format!("{}: {}", all[first].message, shown[first])))
    }

    fn push(&mut self, g: &Graph, message: String, strict: bool, margin: ExprId, shown: ExprId) {
        let condition = Condition { message, strict, of_scale: false };
        if g.constant_value(margin).is_none_or(|margin| !condition.holds(margin)) {
            self.all.push(condition);
            self.margins.push(margin);
            self.shown.push(shown);
        }
    }

    /// Of derived parameters; those of independent ones are a table.
    fn bounds(&mut self, g: &mut Graph, mechanism: &Mechanism<'_>) {
        for (i, parameter) in mechanism.model.parameters.iter().enumerate() {
            if !matches!(parameter.value, ParameterValue::Derived(_)) {
                continue;
            }
            let value = mechanism.parameters.scalar(ParameterId(i as u32));
            let name = &parameter.name;
            if let Some(min) = parameter.min {
                let low = g.constant(min);
                let margin = g.sub(value, low);
                self.push(
                    g,
                    format!("parameter `{name}` is below its smallest value {min}"),
                    false,
                    margin,
                    value,
                );
            }
            if let Some(max) = parameter.max {
                let high = g.constant(max);
                let margin = g.sub(high, value);
                self.push(
                    g,
                    format!("parameter `{name}` is above its largest value {max}"),
                    false,
                    margin,
                    value,
                );
            }
        }
    }

    /// Masses and inertias, with the tolerances of [`crate::model::moments::impossible`].
    fn bodies(&mut self, g: &mut Graph, mechanism: &Mechanism<'_>, epsilon: f64) {
        let rounding = MOMENT_ROUNDING * epsilon.sqrt();
        for body in mechanism.model.bodies.iter().skip(1) {
            let name = &body.name;
            let mass = scalar(g, mechanism, &body.mass);
            self.push(g, format!("the mass of body `{name}` is negative"), false, mass, mass);
            let [least, middle, largest] = principal_moments(g, mechanism, &body.inertia);
            let [size, low] = [largest, least].map(|moment| g.abs(moment));
            let size = g.binary(BinaryOp::Max, size, low);
            let [negative, flat, balance] = [1e-6, 1e-6, 1e-3].map(|part| {
                let part = g.constant(rounding.max(part));
                g.mul(part, size)
            });
            let margin = g.add(least, negative);
            self.push(
                g,
                format!("body `{name}` has a negative principal moment of inertia"),
                false,
                margin,
                least,
            );
            let sum = g.sum(&[least, middle, balance]);
            let excess = g.sub(sum, largest);
            let zero = g.zero();
            let margin = g.select(Comparison::LessEqual, middle, flat, zero, excess);
            let message = format!(
                "the largest principal moment of inertia of body `{name}` exceeds the sum of the others, which no mass \
                 distribution has"
            );
            self.push(g, message, false, margin, largest);
        }
    }

    /// Axes of joints and vectors of bodies have a length.
    fn directions(&mut self, g: &mut Graph, mechanism: &Mechanism<'_>) {
        for joint in &mechanism.model.joints {
            let sides = [&joint.parent, &joint.child].into_iter();
            for axis in sides.flat_map(|side| [&side.axis, &side.reference]).flatten() {
                self.direction(
                    g,
                    mechanism,
                    format!("a direction of joint `{}` has no length", joint.name),
                    axis,
                );
            }
            for side in [&joint.parent, &joint.child] {
                if let (Some(axis), Some(reference)) = (&side.axis, &side.reference) {
                    let message = format!("the reference of joint `{}` is parallel to its axis", joint.name);
                    self.across(g, mechanism, message, [axis, reference]);
                }
            }
        }
        for body in &mechanism.model.bodies {
            for (name, vector) in &body.vectors {
                let message = format!("vector `{}.{name}` has no length", body.name);
                self.direction(g, mechanism, message, vector);
            }
        }
    }

    /// Two directions are not parallel, to within a microradian: |a × r|² > 1e−12 |a|² |r|².
    fn across(
        &mut self,
        g: &mut Graph,
        mechanism: &Mechanism<'_>,
        message: String,
        directions: [&Vector; 2],
    ) {
        let mut only = ParametersOnly;
        let mut lower = Lowering::new(g, mechanism.parameters, &mut only);
        let [axis, reference] = directions.map(|direction| lower.vector(direction));
        let normal = g.cross3(axis, reference);
        let [square, a, r] = [normal, axis, reference].map(|v| g.dot3(v, v));
        let (lengths, parallel) = (g.mul(a, r), g.constant(PARALLEL * PARALLEL));
        let least = g.mul(parallel, lengths);
        let margin = g.sub(square, least);
        self.push(g, format!("{message}: the square of their product is"), true, margin, square);
    }

    /// What is shared has the same lengths and angles on both bodies of a joint, to nine digits.
    fn shared(&mut self, g: &mut Graph, mechanism: &Mechanism<'_>, epsilon: f64) {
        for joint in &mechanism.model.joints {
            if let Some([a, b]) = joint.shared.as_ref().and_then(|shared| shared.apart.as_ref()) {
                let message = format!(
                    "the directions that the bodies of joint `{}` share are all parallel",
                    joint.name
                );
                self.across(g, mechanism, message, [a, b]);
            }
            let equal = joint.shared.iter().flat_map(|shared| &shared.equal);
            for [of_parent, of_child] in equal.filter(|[a, b]| a != b) {
                let (a, b) = (scalar(g, mechanism, of_parent), scalar(g, mechanism, of_child));
                let (difference, holds) = (g.sub(a, b), g.constant(HOLDS.max(ROUNDING * epsilon)));
                let magnitude = g.abs(difference);
                let margin = g.sub(holds, magnitude);
                let message = format!(
                    "what the bodies of joint `{}` share does not fit together on both: lengths or cosines differ by",
                    joint.name
                );
                self.push(g, message, false, margin, difference);
            }
        }
    }

    fn direction(&mut self, g: &mut Graph, mechanism: &Mechanism<'_>, message: String, vector: &Vector) {
        let vector = Lowering::new(g, mechanism.parameters, &mut ParametersOnly).vector(vector);
        let square = g.dot3(vector, vector);
        self.push(g, message, true, square, square);
    }

    /// Of a case that is one of several: its conditions hold wherever `choose` does not select it.
    pub fn add_case(
        &mut self,
        g: &mut Graph,
        mechanism: &Mechanism<'_>,
        case: &Case,
        choose: impl Fn(&mut Graph, ExprId, ExprId) -> ExprId,
    ) {
        let mut own = Conditions::default();
        own.knots(g, mechanism, &case.knots);
        for ((condition, margin), shown) in own.all.into_iter().zip(own.margins).zip(own.shown) {
            let holds = g.one();
            self.all.push(condition);
            self.margins.push(choose(g, margin, holds));
            self.shown.push(shown);
        }
    }

    fn knots(&mut self, g: &mut Graph, mechanism: &Mechanism<'_>, knots: &[ArrayRef]) {
        let model = mechanism.model;
        for array in knots {
            let (name, knots): (String, Vec<ExprId>) = match array {
                ArrayRef::Parameter(id) => {
                    let name = model.parameters.get(id.index()).map_or("", |p| p.name.as_str());
                    let Some(array) = mechanism.parameters.array(*id) else { continue };
                    (
                        format!(
                            "knots of `{name}` must increase, but the smallest step from one to the next is"
                        ),
                        g.array(array).to_vec(),
                    )
                }
                ArrayRef::Literal(items) => (
                    "knots of a table or spline must increase, but the smallest step from one to the next is"
                        .into(),
                    items.iter().map(|item| scalar(g, mechanism, item)).collect(),
                ),
            };
            let steps: Vec<ExprId> = knots.windows(2).map(|pair| g.sub(pair[1], pair[0])).collect();
            let least = steps.into_iter().reduce(|a, b| g.binary(BinaryOp::Min, a, b));
            if let Some(least) = least {
                self.push(g, name, true, least, least);
            }
        }
    }

    /// The largest length stays near that of the defaults, from which the scales of coordinates and rows are: of points, or of starts where all points
    /// are at their origins, or one metre.
    fn lengths(&mut self, g: &mut Graph, mechanism: &Mechanism<'_>) {
        let mut only = ParametersOnly;
        let mut lower = Lowering::new(g, mechanism.parameters, &mut only);
        let points: Vec<ExprId> = lengths(mechanism.model).flat_map(|point| lower.vector(point).0).collect();
        let starts: Vec<ExprId> = start_lengths(mechanism.model).map(|start| lower.scalar(start)).collect();
        let [points, starts] = [points, starts].map(|of| largest(g, of));
        let what = "the largest length of the bodies [m]";
        let (points_by_default, starts_by_default) =
            (by_default(g, mechanism, points), by_default(g, mechanism, starts));
        if points_by_default > 0.0 {
            self.near(g, what, points, points_by_default, [1.0 / LENGTHS, LENGTHS]);
        } else if starts_by_default > 0.0 {
            self.near(
                g,
                "the largest displacement at the start [m]",
                starts,
                starts_by_default,
                [1.0 / LENGTHS, LENGTHS],
            );
            self.near(g, what, points, starts_by_default, [0.0, LENGTHS]);
        } else {
            self.near(g, what, points, 1.0, [0.0, LENGTHS]);
        }
    }

    /// No body becomes much heavier than by default, nor all of them much lighter: the regularisation of constraints is a constant.
    fn inertias(&mut self, g: &mut Graph, mechanism: &Mechanism<'_>, length: f64) {
        // Beyond the range of numbers nothing is scaled.
        if !(length * length).is_normal() {
            return;
        }
        let square = g.constant(length * length);
        let mut all = g.zero();
        for body in mechanism.model.bodies.iter().skip(1) {
            let Inertia { xx, yy, zz, .. } = &body.inertia;
            let [mass, xx, yy, zz] = [&body.mass, xx, yy, zz].map(|entry| scalar(g, mechanism, entry));
            // m + tr J/ℓ²
            let trace = g.sum(&[xx, yy, zz]);
            let turning = g.div(trace, square);
            let inertia = g.add(mass, turning);
            let what = format!("m + tr J/l² of body `{}` with the default's length l [kg]", body.name);
            let usual = by_default(g, mechanism, inertia);
            self.near(g, &what, inertia, usual, [0.0, INERTIAS]);
            all = g.add(all, inertia);
        }
        let usual = by_default(g, mechanism, all);
        let what = "m + tr J/l² of all bodies with the default's length l [kg]";
        self.near(g, what, all, usual, [1.0 / INERTIAS, INERTIAS]);
    }

    /// Rows that parameters multiply keep about the slopes of the defaults: those of what a row reads, in its size at a random state.
    fn slopes(&mut self, g: &mut Graph, mechanism: &mut Mechanism<'_>, rows: &Rows) {
        let given = |row: &&Row| matches!(row.source, RowSource::Constraint(_));
        let own: Vec<Row> = rows.kept.iter().filter(given).cloned().collect();
        let mut constants = Sample::new(mechanism.model, mechanism.tree, 0).constants(g);
        for element in constraint_elements(g, mechanism, &own, |k| k) {
            let mut read = Vec::new();
            for (leaf, placeholders) in element.element.leaves.seen() {
                let actual = mechanism.leaf(g, *leaf);
                let actual = g.substitute(&actual, &constants);
                let values: Vec<f64> = actual.iter().map(|&x| by_default(g, mechanism, x)).collect();
                let size = values.iter().map(|x| x.abs()).fold(0.0, f64::max);
                let size = if size > 0.0 && size.is_finite() { size } else { 1.0 };
                for (&placeholder, value) in placeholders.iter().zip(values) {
                    constants.insert(placeholder, g.constant(if value.is_finite() { value } else { 0.0 }));
                    read.push((placeholder, size));
                }
            }
            let (symbols, sizes): (Vec<ExprId>, Vec<f64>) = read.into_iter().unzip();
            for row in &element.rows {
                // Σ |∂Φ/∂x| |x|
                let seed = g.constant(1.0);
                let slopes = gradient(g, &[(row.value, seed)], &symbols);
                let terms: Vec<ExprId> = slopes
                    .into_iter()
                    .zip(&sizes)
                    .map(|(slope, &size)| {
                        let (slope, size) = (g.abs(slope), g.constant(size));
                        g.mul(slope, size)
                    })
                    .collect();
                let sum = g.sum(&terms);
                let measure = g.substitute(&[sum], &constants)[0];
                if g.depends(measure).contains(Group::Parameters) {
                    let usual = by_default(g, mechanism, measure);
                    let what = format!("the slope of constraint `{}`", own[row.row].name);
                    self.near(g, &what, measure, usual, [1.0 / SLOPES, SLOPES]);
                }
            }
        }
    }

    /// A measure stays between parts of what is usual.
    fn near(&mut self, g: &mut Graph, what: &str, measure: ExprId, usual: f64, parts: [f64; 2]) {
        if !(usual > 0.0 && usual.is_finite()) {
            return;
        }
        // Powers of two, so that no rounding of the defaults reaches generated code.
        let usual = 2f64.powi(usual.log2().round() as i32);
        for (part, sign) in parts.into_iter().zip([1.0, -1.0]).filter(|(part, _)| *part > 0.0) {
            let limit = part * usual;
            if !limit.is_finite() {
                continue;
            }
            let (bound, sign) = (g.constant(limit), g.constant(sign));
            let difference = g.sub(measure, bound);
            let margin = g.mul(sign, difference);
            let side = if part < 1.0 { "below" } else { "above" };
            let message = format!(
                "{what} is {side} {limit:?}, too far from that of the default parameters, for which the equations are scaled; make \
                 values of this size the defaults"
            );
            let known = self.all.len();
            self.push(g, message, false, margin, measure);
            self.all[known..].iter_mut().for_each(|condition| condition.of_scale = true);
        }
    }

    /// Rows that no coordinate changes hold, to nine digits of what they compare.
    fn rows(&mut self, g: &mut Graph, mechanism: &mut Mechanism<'_>, rows: &Rows, epsilon: f64) {
        let checked: Vec<_> = rows.checked.iter().map(|checked| checked.row.clone()).collect();
        let values = row_values(g, mechanism, &checked);
        for (row, over) in checked.iter().zip(values) {
            let depends = g.depends(over.value);
            let fixed = !depends.contains(Group::Time) && !depends.contains(Group::U);
            for state in 0..if fixed { 1 } else { STATES } {
                let constants = Sample::new(mechanism.model, mechanism.tree, state).constants(g);
                let at = g.substitute(&[over.value, over.size], &constants);
                let (value, holds) = (at[0], g.constant(HOLDS.max(ROUNDING * epsilon)));
                let allowed = g.mul(holds, at[1]);
                let magnitude = g.abs(value);
                let margin = g.sub(allowed, magnitude);
                let message = format!(
                    "constraint `{}` can never be met: no coordinate changes it, and these parameters leave it open by",
                    row.name
                );
                self.push(g, message, false, margin, value);
            }
        }
    }
}

/// The first joint whose bodies have less in common where something changes by which the model is differentiated: there is no derivative by it.
pub fn torn_by_sensitivity(model: &Model, tree: &Tree) -> Option<(String, SensitivityRef)> {
    if model.sensitivity.is_empty() || model.joints.iter().all(|joint| joint.shared.is_none()) {
        return None;
    }
    let mut g = Graph::new();
    let parameters = Parameters::lower(&mut g, model, false);
    let mechanism = Mechanism::new(&mut g, model, tree, &parameters, ReferencePoint::Origin);
    let defaults = model.default_parameters();
    for joint in &model.joints {
        let equal = joint.shared.iter().flat_map(|shared| &shared.equal);
        let differences: Vec<ExprId> = equal
            .map(|pair| {
                let [a, b] = [&pair[0], &pair[1]].map(|value| scalar(&mut g, &mechanism, value));
                g.sub(a, b)
            })
            .collect();
        for &one in &model.sensitivity {
            let Some(place) = model.sensitivity_parameter(one) else { continue };
            let mut moved = defaults.clone();
            moved[place] += CHANGE * if moved[place] == 0.0 { 1.0 } else { moved[place] };
            let mut interpreter = Interpreter::new();
            interpreter.set_all(Group::Parameters, &moved);
            if interpreter.evaluate(&g, &differences).into_iter().any(|difference| difference.abs() > HOLDS) {
                return Some((joint.name.clone(), one));
            }
        }
    }
    None
}

fn scalar(g: &mut Graph, mechanism: &Mechanism<'_>, value: &Scalar) -> ExprId {
    Lowering::new(g, mechanism.parameters, &mut ParametersOnly).scalar(value)
}

/// Ascending.
fn principal_moments(g: &mut Graph, mechanism: &Mechanism<'_>, inertia: &Inertia) -> [ExprId; 3] {
    let Inertia { xx, yy, zz, xy, xz, yz, .. } = inertia;
    let [xx, yy, zz, xy, xz, yz] = [xx, yy, zz, xy, xz, yz].map(|entry| scalar(g, mechanism, entry));
    let third = g.constant(1.0 / 3.0);
    let trace = g.sum(&[xx, yy, zz]);
    let q = g.mul(third, trace);
    let [x, y, z] = [xx, yy, zz].map(|entry| g.sub(entry, q));
    let squares = [x, y, z, xy, xz, yz].map(|entry| g.square(entry));
    let (on, off) = (g.sum(&squares[..3]), g.sum(&squares[3..]));
    let (two, sixth, zero, one) = (g.constant(2.0), g.constant(1.0 / 6.0), g.zero(), g.one());
    // p = √(tr B² / 6)
    let off = g.mul(two, off);
    let all = g.add(on, off);
    let mean = g.mul(sixth, all);
    let p = g.sqrt(mean);
    // det B = x (y z − yz²) − xy (xy z − yz xz) + xz (xy yz − y xz)
    let minors = [[y, z, yz, yz], [xy, z, yz, xz], [xy, yz, y, xz]].map(|[a, b, c, d]| {
        let (first, second) = (g.mul(a, b), g.mul(c, d));
        g.sub(first, second)
    });
    let terms = [x, xy, xz].into_iter().zip(minors).map(|(a, b)| g.mul(a, b)).collect::<Vec<_>>();
    let without = g.sub(terms[0], terms[1]);
    let determinant = g.add(without, terms[2]);
    // ½ det(B/p), within ±1 but for rounding; any number where p = 0
    let positive = g.select(Comparison::Equal, p, zero, one, p);
    let cube = g.mul(positive, positive);
    let cube = g.mul(cube, positive);
    let double = g.mul(two, cube);
    let ratio = g.div(determinant, double);
    let minus_one = g.constant(-1.0);
    let ratio = g.binary(BinaryOp::Max, ratio, minus_one);
    let ratio = g.binary(BinaryOp::Min, ratio, one);
    let angle = g.unary(UnaryOp::Acos, ratio);
    let phi = g.mul(third, angle);
    let double = g.mul(two, p);
    [2.0, 4.0, 0.0].map(|turns| {
        let turn = g.constant(turns * PI / 3.0);
        let angle = g.add(phi, turn);
        let cosine = g.cos(angle);
        let part = g.mul(double, cosine);
        g.add(q, part)
    })
}
