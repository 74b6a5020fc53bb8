//! Semi-recursive forward dynamics: M vd = Q, factored for the tree's own sparsity.

use super::inertia::Symmetric;
use super::mass_matrix::{MassMatrix, mass_matrix};
use super::tree_factors::TreeFactors;
use super::{Solved, inverse_dynamics};
use crate::elements::{Loads, Mechanism};
use crate::graph::{ExprId, Graph};

/// vd = M⁻¹ Q
pub fn forward_dynamics(
    g: &mut Graph,
    mechanism: &Mechanism<'_>,
    inertias: &[(ExprId, Symmetric)],
    loads: &Loads,
) -> Solved {
    let m = mass_matrix(g, mechanism, inertias);
    let rhs = inverse_dynamics::right_hand_side(g, mechanism, inertias, loads);
    solve_tree(g, &mechanism.tree.v_parents(), m, rhs)
}

/// M x = rhs, with the pivots.
pub fn solve_tree(g: &mut Graph, parents: &[Option<usize>], m: MassMatrix, rhs: Vec<ExprId>) -> Solved {
    let factors = TreeFactors::new(g, parents, m);
    let vd = factors.solve(g, rhs);
    Solved { vd, pivots: factors.pivots }
}
