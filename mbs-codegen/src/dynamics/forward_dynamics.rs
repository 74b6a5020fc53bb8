//! Semi-recursive forward dynamics: M vd = Q, factored for the tree's own sparsity.

use super::Solved;
use super::mass_matrix::MassMatrix;
use crate::graph::{ExprId, Graph};

/// M = Lᵀ D L from the leaves inward, which fills in nothing: row k of L has entries only for the
/// velocities between k and ground   [Featherstone2008, §6.5].
pub fn solve_tree(g: &mut Graph, parents: &[Option<usize>], mut m: MassMatrix, rhs: Vec<ExprId>) -> Solved {
    let n = parents.len();
    let ancestors = |k: usize| std::iter::successors(parents[k], |&i| parents[i]);
    let one = g.one();
    let mut inverse = vec![one; n];
    let mut pivots = vec![one; n];
    for k in (0..n).rev() {
        pivots[k] = m.get(k, k);
        inverse[k] = g.div(one, pivots[k]);
        for i in ancestors(k) {
            // L_ki = M_ki / D_k,  M_ij −= L_ki M_kj
            let factor = g.mul(m.get(k, i), inverse[k]);
            for j in std::iter::once(i).chain(ancestors(i)) {
                let change = g.mul(factor, m.get(k, j));
                let entry = g.sub(m.get(i, j), change);
                m.set(i, j, entry);
            }
            m.set(k, i, factor);
        }
    }
    // Lᵀ y = rhs, D x = y, L vd = x
    let mut vd = rhs;
    for k in (0..n).rev() {
        for j in ancestors(k) {
            let change = g.mul(m.get(k, j), vd[k]);
            vd[j] = g.sub(vd[j], change);
        }
    }
    for k in 0..n {
        vd[k] = g.mul(vd[k], inverse[k]);
        for j in ancestors(k) {
            let change = g.mul(m.get(k, j), vd[j]);
            vd[k] = g.sub(vd[k], change);
        }
    }
    Solved { vd, pivots }
}
