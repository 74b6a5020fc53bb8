//! Joint-wise derivatives of the mechanism's quantities in closed form.
//!
//! Input: the mechanism referred to the world origin (RTdyn1). Output: derivatives with respect to position, along the
//! tangent (dz = N(z) dθ, one column per velocity), and with respect to velocity. The cost is a few products of 6-vectors per pair
//! of a joint and an ancestor; no rotation matrix is differentiated.
//!
//! | symbol | meaning | shape |
//! |---|---|---|
//! | S_j | column of b for velocity j, at the origin | 6 |
//! | V, A | velocity and acceleration of the link that j belongs to, after its group | 6 |
//! | V₀, A₀ | the same before the group | 6 |
//! | ψd_j = V₀ × S_j, ψdd_j = A₀ × S_j + V₀ × ψd_j | first and second rate of the column due to the motion before its group | 6 |
//! | Sd_j = V × S_j | rate of the column | 6 |
//!
//! A group is one elementary motion: a translation, a rotation, or the three velocities of Euler parameters, whose axes are fixed
//! in the child. \[SinghRussellWensing2022\] has the same formulas for joints with any number of degrees of freedom.

pub mod direction;
mod leaf;
mod loads;
mod marker_rates;
mod motion;
mod pair_factors;
mod pair_terms;
mod slopes;
mod tangent;
mod unknowns;
pub mod constraints;
#[cfg(test)]
mod slopes_test;

pub use marker_rates::{MarkerRates, marker_rates};
pub use pair_factors::PairFactors;
pub use pair_terms::{PairTerms, Zeros};
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
