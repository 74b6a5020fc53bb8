//! M = Lᵀ D L from the leaves inward, without fill: row k of L has entries only for the ancestors of k
//! [Featherstone2008, §6.5].
//!
//! Input: the mass matrix and the tree of its velocities. Output: factors, which solve M x = b for any right-hand side, and M⁻¹.

use super::mass_matrix::MassMatrix;
use crate::graph::{ExprId, Graph};

/// The factors of a mass matrix.
#[derive(Clone, Debug)]
pub struct TreeFactors {
    parents: Vec<Option<usize>>,
    /// L below the diagonal, by entries of the tree.
    l: MassMatrix,
    /// D
    pub pivots: Vec<ExprId>,
    /// 1/D
    inverse: Vec<ExprId>,
}

impl TreeFactors {
    /// Factors M; `parents` has the parent of each velocity in the tree.
    pub fn new(g: &mut Graph, parents: &[Option<usize>], mut m: MassMatrix) -> TreeFactors {
        let n = parents.len();
        let one = g.one();
        let mut inverse = vec![one; n];
        let mut pivots = vec![one; n];
        for k in (0..n).rev() {
            pivots[k] = m.get(k, k);
            inverse[k] = g.div(one, pivots[k]);
            for i in ancestors(parents, k) {
                // L_ki = M_ki / D_k,  M_ij −= L_ki M_kj
                let factor = g.mul(m.get(k, i), inverse[k]);
                for j in std::iter::once(i).chain(ancestors(parents, i)) {
                    let change = g.mul(factor, m.get(k, j));
                    let entry = g.sub(m.get(i, j), change);
                    m.set(i, j, entry);
                }
                m.set(k, i, factor);
            }
        }
        TreeFactors { parents: parents.to_vec(), l: m, pivots, inverse }
    }

    /// x with M x = rhs: Lᵀ y = rhs, D u = y, L x = u.
    pub fn solve(&self, g: &mut Graph, rhs: Vec<ExprId>) -> Vec<ExprId> {
        let mut x = rhs;
        for k in (0..x.len()).rev() {
            for j in ancestors(&self.parents, k) {
                let change = g.mul(self.l.get(k, j), x[k]);
                x[j] = g.sub(x[j], change);
            }
        }
        for k in 0..x.len() {
            x[k] = g.mul(x[k], self.inverse[k]);
            for j in ancestors(&self.parents, k) {
                let change = g.mul(self.l.get(k, j), x[j]);
                x[k] = g.sub(x[k], change);
            }
        }
        x
    }

    /// X = M⁻¹, by columns. Of L X = D⁻¹ L⁻ᵀ the right side is upper triangular with diagonal D⁻¹, so below and on the
    /// diagonal X_kj = δ_kj/D_k − Σ L_ki X_ij over the i between k and ground; the rest is symmetry.
    pub fn inverse(&self, g: &mut Graph) -> Vec<ExprId> {
        let n = self.parents.len();
        let mut x = vec![g.zero(); n * n];
        for j in 0..n {
            for k in j..n {
                let mut entry = if k == j { self.inverse[k] } else { g.zero() };
                for i in ancestors(&self.parents, k) {
                    let change = g.mul(self.l.get(k, i), x[j * n + i]);
                    entry = g.sub(entry, change);
                }
                x[j * n + k] = entry;
                x[k * n + j] = entry;
            }
        }
        x
    }
}

fn ancestors(parents: &[Option<usize>], k: usize) -> impl Iterator<Item = usize> + '_ {
    std::iter::successors(parents[k], |&i| parents[i])
}
