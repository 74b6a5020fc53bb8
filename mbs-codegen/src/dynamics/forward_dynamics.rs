//! Semi-recursive forward dynamics: M vd = Q, factored with the sparsity of the tree.

use super::Solved;
use super::mass_matrix::MassMatrix;
use super::tree_factors::TreeFactors;
use crate::graph::{ExprId, Graph};

/// M x = rhs, with the pivots.
pub fn solve_tree(g: &mut Graph, parents: &[Option<usize>], m: MassMatrix, rhs: Vec<ExprId>) -> Solved {
    let factors = TreeFactors::new(g, parents, m);
    let vd = factors.solve(g, rhs);
    Solved { vd, pivots: factors.pivots }
}
