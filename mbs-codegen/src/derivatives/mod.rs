//! Joint-wise derivatives in closed form: how the mechanism's quantities change with each joint.
//!
//! Enters: the mechanism referred to the world origin (RTdyn1). Leaves: derivatives by position, along the
//! tangent (dz = N(z) dθ, one column per velocity), and by velocity. Work is a few 6-vector products per pair
//! of a joint and an ancestor; nothing is pushed through rotation matrices.
//!
//! | symbol | meaning | shape |
//! |---|---|---|
//! | S_j | column of b for velocity j, at the origin | 6 |
//! | V, A | velocity and acceleration of the link that j belongs to, after its group | 6 |
//! | V₀, A₀ | the same before the group | 6 |
//! | ψd_j = V₀ × S_j, ψdd_j = A₀ × S_j + V₀ × ψd_j | how the motion carries the column | 6 |
//! | Sd_j = V × S_j | rate of the column | 6 |
//!
//! A group is what moves at once: one slide, one turn, or the three velocities of a ball, whose axes are fixed
//! in the child. \[SinghRussellWensing2022\] has the same formulas for joints of any number of freedoms.

pub mod direction;
mod leaf;
mod loads;
mod marker_rates;
mod motion;
mod pair_factors;
mod slopes;
mod tangent;
mod unknowns;
pub mod constraints;
#[cfg(test)]
mod both_ways;

pub use marker_rates::{MarkerRates, marker_rates};
pub use pair_factors::PairFactors;
pub use tangent::Linearisation;

use crate::graph::{ExprId, Graph};

/// A square matrix of expressions, by columns, mostly zero.
#[derive(Clone, Debug)]
pub struct Square {
    n: usize,
    entries: Vec<ExprId>,
}

impl Square {
    fn zero(g: &mut Graph, n: usize) -> Square {
        Square { n, entries: vec![g.zero(); n * n] }
    }

    /// Entry in row i and column j.
    pub fn get(&self, i: usize, j: usize) -> ExprId {
        self.entries[j * self.n + i]
    }

    fn set(&mut self, i: usize, j: usize, value: ExprId) {
        self.entries[j * self.n + i] = value;
    }

    /// Adds to an entry.
    pub fn add(&mut self, g: &mut Graph, i: usize, j: usize, value: ExprId) {
        let entry = g.add(self.get(i, j), value);
        self.set(i, j, entry);
    }

    fn subtract(&mut self, g: &mut Graph, i: usize, j: usize, value: ExprId) {
        let entry = g.sub(self.get(i, j), value);
        self.set(i, j, entry);
    }

    /// All entries, by columns.
    pub fn entries(&self) -> &[ExprId] {
        &self.entries
    }

    /// All entries, by columns.
    pub fn dense(self) -> Vec<ExprId> {
        self.entries
    }
}
