//! Which rows a model has: those of its cut joints and of its file, but for the ones that vanish identically.
//!
//! A planar mechanism closed by a revolute joint has three rows that say 0 = 0. A row is dropped if it is zero on
//! the graph, or zero to rounding at random states, times and parameters: a smooth function that vanishes at
//! random points vanishes everywhere, and its derivatives with it. Rows that are merely redundant stay.

use crate::elements::{Mechanism, constraint_elements};
use crate::graph::{ExprId, Graph, Interpreter};
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
    /// Names of those that vanish identically.
    pub dropped: Vec<String>,
    /// First Euler parameter of each block: one normalisation row each, in coordinate form.
    pub blocks: Vec<usize>,
}

/// Random states at which a row must vanish to be dropped.
const STATES: usize = 6;
/// Against the size of what a row compares, after a few hundred operations.
const ZERO: f64 = 1e-13;

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
        let mut vanishes = vec![true; all.len()];
        for state in 0..STATES {
            let mut random = Random(0x9e37_79b9 + state as u64);
            let mut interpreter = Interpreter::<f64>::new();
            interpreter.set(Group::Time, 0, random.next());
            for i in 0..tree.nq {
                interpreter.set(Group::Z, i as u32, random.next());
            }
            for i in 0..tree.nv {
                interpreter.set(Group::V, i as u32, random.next());
            }
            // Every parameter moves; signs and magnitudes stay, so that lengths remain lengths.
            for (i, default) in model.default_parameters().into_iter().enumerate() {
                let value =
                    if default == 0.0 { 0.1 * random.next() } else { default * (1.0 + 0.2 * random.next()) };
                interpreter.set(Group::Parameters, i as u32, value);
            }
            let mut rest = interpreter.evaluate(&g, &wanted).into_iter();
            for (zero, compared) in vanishes.iter_mut().zip(&compared) {
                let value = rest.next().unwrap_or(0.0).abs();
                let size = rest.by_ref().take(compared.len()).fold(1.0, |size: f64, x| size.max(x.abs()));
                *zero &= value <= ZERO * size;
            }
        }
        let mut rows = Rows { blocks, ..Rows::default() };
        for (row, vanishes) in all.into_iter().zip(vanishes) {
            if vanishes {
                rows.dropped.push(row.name);
            } else {
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

/// Numbers in ±1 that repeat from run to run: a linear congruence with Knuth's constants.
pub(super) struct Random(pub u64);

impl Random {
    pub(super) fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}
