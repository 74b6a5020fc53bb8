//! Which rows a model has: those of its cut joints and of its file, without those that vanish identically.
//!
//! A planar mechanism closed by a revolute joint has three rows that say 0 = 0. A row is dropped if it is zero on
//! the graph, or below its running error bound at random coordinates, times, inputs and values of all parameters: a smooth
//! function that vanishes at random points vanishes everywhere, and its derivatives with it. A row that no coordinate
//! changes, whatever the parameters, such as the distance of two planes that a planar mechanism has by its parameters, is
//! no constraint on the motion but one on the parameters: it is checked for every set of them ([`Checked`]). All others
//! stay: rows that are redundant, and rows that coordinates change at some parameters only.

use super::scales::{Scales, scale_variables};
use crate::elements::{Mechanism, constraint_elements};
use crate::graph::{BinaryOp, ExprId, Graph, Interpreter, Node, ROUNDING, UnaryOp};
use crate::kinematics::ReferencePoint;
use crate::lowering::Parameters;
use crate::model::evaluate::Values;
use crate::model::{
    ArrayRef, ConstraintKind, JointPoint, Mode, Model, Parameter, ParameterValue, Scalar, SensitivityRef,
    Vector,
};
use crate::symbols::Group;
use crate::topology::{self, Row, RowSource, Tree};
use hashbrown::HashMap;

/// The rows of a model, holonomic first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    /// Those that bind.
    pub kept: Vec<Row>,
    /// Names of those that are not computed: they vanish identically, or bind parameters only.
    pub dropped: Vec<String>,
    /// Those that bind parameters only.
    pub checked: Vec<Checked>,
    /// Places among the kept ones of those that no coordinate changes, though time or inputs may.
    pub immovable: Vec<usize>,
    /// First Euler parameter of each block: one normalisation row each, in coordinate form.
    pub blocks: Vec<usize>,
    /// Natural scales of the model, its coordinates and the kept rows.
    pub scales: Scales,
}

/// A row that no coordinate changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// The row.
    pub row: Row,
}

/// Random states at which a row must vanish to be dropped.
const STATES: usize = 6;
/// Units of the running error bound that count as zero: constants that were folded carry the rounding of some operations
/// that the bound does not see.
const ZERO: f64 = 16.0 * ROUNDING;
/// Part of the largest entry that is looked at: far above rounding.
const SMALL: f64 = 1e-6;
/// The running size of an equation of a few terms is about this many times the largest of them.
const TERMS: f64 = 16.0;

/// What the states show of a row.
#[derive(Clone, Copy)]
struct Shown {
    /// It vanishes at all of them.
    vanishes: bool,
    /// Coordinates (velocities, if it is nonholonomic) change it at one of them.
    moves: bool,
    /// By how much they do.
    change: f64,
    /// Size of its terms.
    terms: f64,
}

impl Rows {
    /// Of a model and its tree.
    pub fn of(model: &Model, tree: &Tree) -> Rows {
        let blocks = tree.links.iter().filter_map(|link| link.euler_parameters()).map(|(z, _)| z).collect();
        let all = topology::rows(model, tree);
        if all.is_empty() {
            return Rows { blocks, scales: Scales::new(model, tree, &[]), ..Rows::default() };
        }
        let mut g = Graph::new();
        let parameters = Parameters::lower(&mut g, model, false);
        let mut mechanism = Mechanism::new(&mut g, model, tree, &parameters, ReferencePoint::Origin);
        let values = row_values(&mut g, &mut mechanism, &all);
        let wanted: Vec<ExprId> = values.iter().flat_map(|row| [row.value, row.size]).collect();
        let samples: Vec<Sample> = (0..STATES).map(|state| Sample::new(model, tree, state)).collect();
        let mut shown = vec![Shown { vanishes: true, moves: false, change: 0.0, terms: 0.0 }; all.len()];
        for (state, at) in samples.iter().enumerate() {
            let elsewhere = &samples[(state + 1) % STATES];
            let here = at.evaluate(&g, &wanted);
            let by_position = Sample { z: elsewhere.z.clone(), ..at.clone() }.evaluate(&g, &wanted);
            let by_velocity = Sample { v: elsewhere.v.clone(), ..at.clone() }.evaluate(&g, &wanted);
            for (k, (row, shown)) in all.iter().zip(&mut shown).enumerate() {
                let there = match row.kind {
                    ConstraintKind::Holonomic => by_position[k],
                    ConstraintKind::Nonholonomic => by_velocity[k],
                };
                shown.vanishes &= is_zero(here[k].0, here[k].1);
                shown.moves |= !is_zero(here[k].0 - there.0, here[k].1 + there.1);
                shown.change = shown.change.max((here[k].0 - there.0).abs());
                shown.terms = shown.terms.max(here[k].1 / TERMS);
            }
        }
        let mut rows = Rows { blocks, ..Rows::default() };
        let mut kept = Vec::new();
        for ((row, shown), value) in all.into_iter().zip(shown).zip(&values) {
            let analytic = is_analytic(&g, value.value);
            let moving = [Group::Z, Group::V].iter().any(|&group| g.depends(value.value).contains(group));
            if g.is(value.value, 0.0) || (shown.vanishes && analytic) {
                rows.dropped.push(row.name);
            } else if !shown.moves && analytic {
                rows.dropped.push(row.name.clone());
                rows.checked.push(Checked { row });
            } else {
                if !moving {
                    rows.immovable.push(rows.kept.len());
                }
                rows.kept.push(row);
                kept.push(if shown.moves { shown.change } else { shown.terms });
            }
        }
        rows.scales = Scales::new(model, tree, &kept);
        rows
    }

    /// The first checked row that something changes by which the model is differentiated: there is no derivative by it.
    pub fn violated_by_sensitivity(&self, model: &Model, tree: &Tree) -> Option<(String, SensitivityRef)> {
        if self.checked.is_empty() || model.sensitivity.is_empty() {
            return None;
        }
        let rows: Vec<Row> = self.checked.iter().map(|checked| checked.row.clone()).collect();
        let mut g = Graph::new();
        let parameters = Parameters::lower(&mut g, model, false);
        let mut mechanism = Mechanism::new(&mut g, model, tree, &parameters, ReferencePoint::Origin);
        let values = row_values(&mut g, &mut mechanism, &rows);
        let samples: Vec<Sample> = (0..STATES).map(|state| Sample::new(model, tree, state)).collect();
        rows.iter().zip(&values).find_map(|(row, value)| {
            let one = model.sensitivity.iter().find(|one| changes(model, &g, value, &samples, **one))?;
            Some((row.name.clone(), *one))
        })
    }

    /// How many are holonomic; normalisation rows not counted.
    pub fn holonomic(&self) -> usize {
        self.kept.iter().filter(|row| row.kind == ConstraintKind::Holonomic).count()
    }

    /// How many are nonholonomic.
    pub fn nonholonomic(&self) -> usize {
        self.kept.len() - self.holonomic()
    }

    /// How many there are in coordinate form.
    pub fn in_coordinate_form(&self) -> usize {
        self.kept.len() + self.blocks.len()
    }

    /// Natural scales of the rows in coordinate form; Euler parameters are of length one.
    pub fn units_in_coordinate_form(&self) -> Vec<f64> {
        let (holonomic, nonholonomic) = self.scales.rows.split_at(self.holonomic());
        [holonomic, &vec![1.0; self.blocks.len()], nonholonomic].concat()
    }

    /// The place of a kept row among the multipliers of the coordinate form, where normalisation rows stand between.
    pub fn place(&self, row: usize) -> usize {
        if row < self.holonomic() { row } else { row + self.blocks.len() }
    }

    /// Kept rows that do not act in every state: (row, input) for each state in which one does not.
    pub fn resting(&self, model: &Model) -> Vec<(u32, u32)> {
        let mut resting = Vec::new();
        for (k, row) in self.kept.iter().enumerate() {
            let RowSource::Constraint(constraint) = row.source else { continue };
            for group in &model.constraints[constraint].activity.groups {
                let of_group = |mode: &&Mode| mode.inputs().any(|state| group.contains(&state));
                let states = model.modes.iter().filter(of_group).flat_map(Mode::inputs);
                resting
                    .extend(states.filter(|state| !group.contains(state)).map(|state| (k as u32, state.0)));
            }
        }
        resting
    }
}

/// A row and its size ([`Graph::sizes`]).
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowValue {
    /// What vanishes.
    pub(crate) value: ExprId,
    /// The size of what it compares.
    pub(crate) size: ExprId,
}

/// Rows as expressions of coordinates, time, inputs and parameters.
///
/// The sizes of a vector's components are those of the vector: a component that should be zero carries the rounding of the
/// others.
pub(crate) fn row_values(g: &mut Graph, mechanism: &mut Mechanism<'_>, rows: &[Row]) -> Vec<RowValue> {
    let zero = g.zero();
    let mut values = vec![RowValue { value: zero, size: zero }; rows.len()];
    for element in constraint_elements(g, mechanism, rows, |k| k) {
        let mut replacements = HashMap::new();
        let mut sizes = HashMap::new();
        for (leaf, placeholders) in element.element.leaves.seen() {
            let actual = mechanism.leaf(g, *leaf);
            let size = g.sizes(&actual, &HashMap::new());
            let size = g.sum(&size);
            for (&placeholder, actual) in placeholders.iter().zip(actual) {
                replacements.insert(placeholder, actual);
                sizes.insert(placeholder, size);
            }
        }
        let over: Vec<ExprId> = element.rows.iter().map(|row| row.value).collect();
        let sizes = g.sizes(&over, &sizes);
        let both = g.substitute(&[over, sizes].concat(), &replacements);
        let (value, size) = both.split_at(element.rows.len());
        for ((row, &value), &size) in element.rows.iter().zip(value).zip(size) {
            values[row.row] = RowValue { value, size };
        }
    }
    values
}

/// Which entries of Φ_z vanish identically though the graph does not see it: of the distance of two points, for instance, those of all that moves
/// both. By the test for rows; Φ does not depend on such a coordinate, and none of its derivatives has an entry there.
pub(super) fn vanishing(g: &mut Graph, mechanism: &Mechanism<'_>, entries: &[ExprId]) -> Vec<bool> {
    let (model, tree) = (mechanism.model, mechanism.tree);
    let samples: Vec<Sample> = (0..STATES).map(|state| Sample::new(model, tree, state)).collect();
    // Sizes take as many nodes again: of those alone that are small everywhere.
    let mut small = vec![true; entries.len()];
    for sample in &samples {
        let values = sample.interpreter().evaluate(g, entries);
        let largest = values.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
        for (small, value) in small.iter_mut().zip(values) {
            *small &= value.abs() <= SMALL * largest;
        }
    }
    let candidates: Vec<ExprId> =
        entries.iter().zip(&small).filter(|(_, small)| **small).map(|(&entry, _)| entry).collect();
    let sizes = g.sizes(&candidates, &HashMap::new());
    let wanted: Vec<ExprId> = candidates.iter().zip(sizes).flat_map(|(&entry, size)| [entry, size]).collect();
    let mut zero: Vec<bool> = candidates.iter().map(|&entry| is_analytic(g, entry)).collect();
    for sample in &samples {
        for (zero, (value, size)) in zero.iter_mut().zip(sample.evaluate(g, &wanted)) {
            *zero &= is_zero(value, size);
        }
    }
    let mut zero = zero.into_iter();
    small.into_iter().map(|small| small && zero.next().unwrap_or(false)).collect()
}

/// Whether a value is nothing but rounding; not if it is not a number.
fn is_zero(value: f64, size: f64) -> bool {
    size.is_finite() && value.abs() <= ZERO * size
}

/// Whether a parameter changes a row at one of the samples.
fn changes(model: &Model, g: &Graph, row: &RowValue, samples: &[Sample], one: SensitivityRef) -> bool {
    let wanted = [row.value, row.size];
    samples.iter().enumerate().any(|(state, at)| {
        let elsewhere = &samples[(state + 1) % samples.len()];
        let mut moved = at.clone();
        match (one, model.sensitivity_parameter(one)) {
            (SensitivityRef::Input(id), _) => moved.u[id.index()] = elsewhere.u[id.index()],
            (_, Some(place)) => moved.parameters[place] = elsewhere.parameters[place],
            (_, None) => {}
        }
        let (here, there) = (at.evaluate(g, &wanted)[0], moved.evaluate(g, &wanted)[0]);
        !is_zero(here.0 - there.0, here.1 + there.1)
    })
}

/// Whether the values at a few samples tell those everywhere: there is no branch.
fn is_analytic(g: &Graph, value: ExprId) -> bool {
    !g.reachable(&[value]).into_iter().any(|id| {
        matches!(
            g.node(id),
            Node::Select(..)
                | Node::Gather(..)
                | Node::Locate(..)
                | Node::Unary(UnaryOp::Abs | UnaryOp::Sign, _)
                | Node::Binary(BinaryOp::Min | BinaryOp::Max, ..)
        )
    })
}

/// A random state, at random parameters.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    t: f64,
    z: Vec<f64>,
    v: Vec<f64>,
    u: Vec<f64>,
    parameters: Vec<f64>,
}

impl Sample {
    pub(crate) fn new(model: &Model, tree: &Tree, state: usize) -> Sample {
        let mut random = Random(0x9e37_79b9 + state as u64);
        let mut some = |n: usize| (0..n).map(|_| random.next()).collect::<Vec<f64>>();
        let length = length_scale(model);
        // Within the span of a run of the model or its cases.
        let spans = std::iter::once(&model.simulation).chain(model.cases.iter().map(|case| &case.simulation));
        let spans: Vec<(f64, f64)> = spans.map(|simulation| (simulation.begin, simulation.end)).collect();
        let (begin, end) = spans[state % spans.len()];
        let t = begin + (0.5 + 0.5 * some(1)[0]) * (end - begin);
        let (mut z, mut v) = (some(tree.nq), some(tree.nv));
        for link in &tree.links {
            let lengths = link.kind.coordinates().iter().take_while(is_length).count();
            z[link.z..link.z + lengths].iter_mut().for_each(|z| *z *= length);
            v[link.v..link.v + lengths].iter_mut().for_each(|v| *v *= length);
        }
        scale_variables(model, length, &mut z);
        scale_variables(model, length, &mut v);
        let u = model.inputs.iter().zip(some(model.inputs.len()));
        let mut u: Vec<f64> = u.map(|(input, x)| moved(input.default, x, (None, None))).collect();
        // Every row acts.
        model.modes.iter().flat_map(Mode::inputs).for_each(|state| u[state.index()] = 1.0);
        let knots: Vec<_> =
            model.knots.iter().chain(model.cases.iter().flat_map(|case| &case.knots)).collect();
        let mut parameters = Vec::new();
        for (i, Parameter { value, min, max, .. }) in model.parameters.iter().enumerate() {
            let is_knots = |array: &&&ArrayRef| matches!(array, ArrayRef::Parameter(id) if id.index() == i);
            match value {
                ParameterValue::Number(default) => parameters.push(moved(*default, some(1)[0], (*min, *max))),
                // Knots stay in order.
                ParameterValue::Array(defaults) if knots.iter().any(|k| is_knots(&k)) => {
                    let factor = 1.0 + 0.2 * some(1)[0];
                    parameters.extend(defaults.iter().map(|default| factor * default));
                }
                ParameterValue::Array(defaults) => {
                    let values = defaults.iter().zip(some(defaults.len()));
                    parameters.extend(values.map(|(&default, x)| moved(default, x, (*min, *max))));
                }
                ParameterValue::Derived(_) => {}
            }
        }
        Sample { t, z, v, u, parameters }
    }

    /// Values and sizes, which stand in turn in `wanted`.
    fn evaluate(&self, g: &Graph, wanted: &[ExprId]) -> Vec<(f64, f64)> {
        self.interpreter().evaluate(g, wanted).chunks_exact(2).map(|pair| (pair[0], pair[1])).collect()
    }

    fn interpreter(&self) -> Interpreter<f64> {
        let mut interpreter = Interpreter::new();
        interpreter.set(Group::Time, 0, self.t);
        for (group, values) in [
            (Group::Z, &self.z),
            (Group::V, &self.v),
            (Group::U, &self.u),
            (Group::Parameters, &self.parameters),
        ] {
            interpreter.set_all(group, values);
        }
        interpreter
    }

    /// Constants in place of everything but parameters.
    pub(crate) fn constants(&self, g: &mut Graph) -> HashMap<ExprId, ExprId> {
        let mut constants = HashMap::new();
        for (group, values) in
            [(Group::Time, &vec![self.t]), (Group::Z, &self.z), (Group::V, &self.v), (Group::U, &self.u)]
        {
            for (i, &value) in values.iter().enumerate() {
                constants.insert(g.symbol(group, i as u32), g.constant(value));
            }
        }
        constants
    }
}

/// A value by up to a fifth of itself away from its default, on the side that its bounds allow. The sign stays, so that
/// lengths remain lengths; what is zero by default gets a value.
fn moved(default: f64, x: f64, (min, max): (Option<f64>, Option<f64>)) -> f64 {
    let by = if default == 0.0 { 0.1 * x } else { 0.2 * x * default };
    let (min, max) = (min.unwrap_or(f64::MIN), max.unwrap_or(f64::MAX));
    let value = if (min..=max).contains(&(default + by)) { default + by } else { default - by };
    // Not `clamp`, which panics on bounds in a wrong order.
    value.max(min).min(max)
}

/// Whether a coordinate of a joint is a length: those that are come first.
pub(super) fn is_length(name: &&&str) -> bool {
    ["displacement", "x", "y", "z"].contains(*name)
}

/// Points and centres of mass in their bodies.
pub fn lengths(model: &Model) -> impl Iterator<Item = &Vector> {
    let vectors =
        model.bodies.iter().flat_map(|body| body.points.iter().map(|(_, point)| point).chain([&body.com]));
    let joints = model.joints.iter().flat_map(|joint| [&joint.parent, &joint.child]).filter_map(|side| {
        match &side.point {
            JointPoint::At(point) => Some(point),
            JointPoint::Point(_) => None,
        }
    });
    vectors.chain(joints)
}

/// Displacements at the start.
pub fn start_lengths(model: &Model) -> impl Iterator<Item = &Scalar> {
    model.joints.iter().flat_map(|joint| {
        let lengths = joint.kind.coordinates().iter().take_while(is_length);
        joint.start.values.iter().zip(lengths).map(|(start, _)| start)
    })
}

/// The largest coordinate of a point or a centre of mass in its body; if all are at the origin, the largest displacement at the start, or one metre.
pub(super) fn length_scale(model: &Model) -> f64 {
    let values = Values::defaults(model);
    let components = lengths(model).filter_map(|vector| values.vector(vector).ok()).flatten();
    let starts = start_lengths(model).filter_map(|start| values.scalar(start).ok());
    let largest =
        |of: &mut dyn Iterator<Item = f64>| of.map(f64::abs).filter(|x| x.is_finite()).fold(0.0, f64::max);
    let sizes = [largest(&mut { components }), largest(&mut { starts }), 1.0];
    sizes.into_iter().find(|size| *size > 0.0).unwrap_or(1.0)
}

/// Numbers in ±1 that repeat from run to run: a linear congruence with Knuth's constants.
pub(super) struct Random(pub u64);

impl Random {
    pub(super) fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}
