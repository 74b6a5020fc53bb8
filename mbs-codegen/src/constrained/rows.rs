//! Which rows a model has: those of its cut joints and of its file, but for the ones that say nothing.
//!
//! A planar mechanism closed by a revolute joint has three rows that say 0 = 0. A row is dropped if it is zero on
//! the graph, or zero to rounding at random states, times and parameters: a smooth function that vanishes at
//! random points vanishes everywhere, and its derivatives with it. A row that no coordinate changes, such as the
//! distance of two planes that a planar mechanism has by its parameters, is dropped if it holds at the default
//! parameters; otherwise it can never be met ([`Rows::immovable`]). Rows that are merely redundant stay.

use crate::elements::{Mechanism, constraint_elements};
use crate::graph::{BinaryOp, Complex, ExprId, Graph, Interpreter, Node, UnaryOp};
use crate::kinematics::ReferencePoint;
use crate::lowering::Parameters;
use crate::model::{ConstraintKind, Model};
use crate::symbols::Group;
use crate::topology::{self, Row, Tree};

/// The rows of a model, holonomic first.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    /// Those that bind.
    pub kept: Vec<Row>,
    /// Names of those that say nothing.
    pub dropped: Vec<String>,
    /// Places among the kept ones of those that no coordinate changes.
    pub immovable: Vec<usize>,
    /// First Euler parameter of each block: one normalisation row each, in coordinate form.
    pub blocks: Vec<usize>,
}

/// Random states at which a row must vanish to be dropped.
const STATES: usize = 6;
/// Against the size of what a row compares, after a few hundred operations.
const ZERO: f64 = 1e-13;
/// The same for numbers that people write: nine digits.
const HOLDS: f64 = 1e-9;
/// Of complex steps: its square is nothing.
const STEP: f64 = 1e-40;

/// What the states show of a row.
#[derive(Clone, Copy)]
struct Shown {
    /// It vanishes at all of them.
    vanishes: bool,
    /// Coordinates (velocities, if it is nonholonomic) change it at one of them.
    moves: bool,
    /// It holds at all of them with the default parameters.
    holds: bool,
}

impl Rows {
    /// Of a model and its tree.
    pub fn of(model: &Model, tree: &Tree) -> Rows {
        let blocks = tree.links.iter().filter_map(|link| link.euler_parameters()).map(|(z, _)| z).collect();
        let all = topology::rows(model, tree);
        if all.is_empty() {
            return Rows { blocks, ..Rows::default() };
        }
        let mut g = Graph::new();
        let parameters = Parameters::lower(&mut g, model, false);
        let mut mechanism = Mechanism::new(&mut g, model, tree, &parameters, ReferencePoint::Origin);
        let elements = constraint_elements(&mut g, &mechanism, &all, |k| k);
        let mut values = vec![g.zero(); all.len()];
        // What the row compares: positions and axes.
        let mut compared: Vec<Vec<ExprId>> = vec![Vec::new(); all.len()];
        for element in &elements {
            let replacements = element.element.leaves.replacements(&mut g, &mut mechanism);
            let over: Vec<_> = element.rows.iter().map(|row| row.value).collect();
            for (row, value) in element.rows.iter().zip(g.substitute(&over, &replacements)) {
                values[row.row] = value;
                compared[row.row] = replacements.values().copied().collect();
            }
        }
        let wanted: Vec<ExprId> = values
            .iter()
            .zip(&compared)
            .flat_map(|(&value, compared)| std::iter::once(value).chain(compared.iter().copied()))
            .collect();
        let mut shown = vec![Shown { vanishes: true, moves: false, holds: true }; all.len()];
        for state in 0..STATES {
            let at = Sample::new(model, tree, state);
            let by_position = at.evaluate(&g, &wanted, &at.parameters, [STEP, 0.0]);
            let by_velocity = at.evaluate(&g, &wanted, &at.parameters, [0.0, STEP]);
            let by_default = at.evaluate(&g, &wanted, &model.default_parameters(), [0.0; 2]);
            let mut first = 0;
            for ((row, shown), compared) in all.iter().zip(&mut shown).zip(&compared) {
                let next = first + 1 + compared.len();
                let (value, sizes) = (by_position[first].re, &by_position[first + 1..next]);
                let size = sizes.iter().fold(1.0, |size: f64, x| size.max(x.re.abs()));
                let slope = match row.kind {
                    ConstraintKind::Holonomic => by_position[first].im / STEP,
                    ConstraintKind::Nonholonomic => by_velocity[first].im / STEP,
                };
                shown.vanishes &= value.abs() <= ZERO * size;
                // Not smaller, so that NaN moves.
                shown.moves |= slope.is_nan() || slope.abs() > ZERO * size;
                shown.holds &= by_default[first].re.abs() <= HOLDS * size;
                first = next;
            }
        }
        let mut rows = Rows { blocks, ..Rows::default() };
        for ((row, shown), value) in all.into_iter().zip(shown).zip(values) {
            let nothing = shown.vanishes || (!shown.moves && shown.holds);
            if g.is(value, 0.0) || (nothing && is_analytic(&g, value)) {
                rows.dropped.push(row.name);
            } else {
                if !shown.moves && is_analytic(&g, value) {
                    rows.immovable.push(rows.kept.len());
                }
                rows.kept.push(row);
            }
        }
        rows
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

    /// The place of a kept row among the multipliers of the coordinate form, where normalisation rows stand between.
    pub fn place(&self, row: usize) -> usize {
        if row < self.holonomic() { row } else { row + self.blocks.len() }
    }
}

/// Whether the values near a state tell those far from it: no branch depends on time or state.
fn is_analytic(g: &Graph, value: ExprId) -> bool {
    let moving =
        |id: ExprId| [Group::Time, Group::Z, Group::V].iter().any(|&group| g.depends(id).contains(group));
    !g.reachable(&[value]).into_iter().any(|id| match g.node(id) {
        Node::Select(..) | Node::Gather(..) | Node::Locate(..) => moving(id),
        Node::Unary(UnaryOp::Abs | UnaryOp::Sign, _) => moving(id),
        Node::Binary(BinaryOp::Min | BinaryOp::Max, ..) => moving(id),
        _ => false,
    })
}

/// A random state.
struct Sample {
    t: f64,
    z: Vec<f64>,
    v: Vec<f64>,
    parameters: Vec<f64>,
    /// A direction among z and one among v.
    along: [Vec<f64>; 2],
}

impl Sample {
    fn new(model: &Model, tree: &Tree, state: usize) -> Sample {
        let mut random = Random(0x9e37_79b9 + state as u64);
        let mut some = |n: usize| (0..n).map(|_| random.next()).collect::<Vec<f64>>();
        let (t, z, v) = (some(1)[0], some(tree.nq), some(tree.nv));
        // Every parameter moves; signs and magnitudes stay, so that lengths remain lengths.
        let defaults = model.default_parameters();
        let moved = some(defaults.len());
        let parameters = defaults
            .iter()
            .zip(moved)
            .map(|(&default, x)| if default == 0.0 { 0.1 * x } else { default * (1.0 + 0.2 * x) })
            .collect();
        Sample { t, z, v, parameters, along: [some(tree.nq), some(tree.nv)] }
    }

    /// Values, and their slopes along the directions times the steps.
    fn evaluate(&self, g: &Graph, wanted: &[ExprId], parameters: &[f64], steps: [f64; 2]) -> Vec<Complex> {
        let mut interpreter = Interpreter::<Complex>::new();
        interpreter.set(Group::Time, 0, Complex::new(self.t, 0.0));
        for ((group, values), (along, step)) in
            [(Group::Z, &self.z), (Group::V, &self.v)].into_iter().zip(self.along.iter().zip(steps))
        {
            for (i, (&x, &along)) in values.iter().zip(along).enumerate() {
                interpreter.set(group, i as u32, Complex::new(x, step * along));
            }
        }
        for (i, &value) in parameters.iter().enumerate() {
            interpreter.set(Group::Parameters, i as u32, Complex::new(value, 0.0));
        }
        interpreter.evaluate(g, wanted)
    }
}

/// Numbers in ±1 that repeat from run to run: a linear congruence with Knuth's constants.
pub(super) struct Random(pub u64);

impl Random {
    pub(super) fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}
