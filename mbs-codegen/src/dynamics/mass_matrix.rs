//! The mass matrix by composite inertias: M_jk = b_jᵀ M̄ᶜ_k b_k for j between k and ground.

use super::inertia::{BodyInertia, Symmetric, reference_inertias};
use crate::elements::Mechanism;
use crate::graph::{ExprId, Graph};
use crate::kinematics::velocity_map;
use crate::symbols::Group;

/// A symmetric matrix with the sparsity of the tree.
#[derive(Clone, Debug)]
pub struct MassMatrix {
    n: usize,
    /// The lower triangle with the diagonal, by rows.
    lower: Vec<ExprId>,
}

impl MassMatrix {
    pub(super) fn zero(g: &mut Graph, n: usize) -> MassMatrix {
        let zero = g.zero();
        MassMatrix { n, lower: vec![zero; n * (n + 1) / 2] }
    }

    fn place(i: usize, j: usize) -> usize {
        let (i, j) = if i >= j { (i, j) } else { (j, i) };
        i * (i + 1) / 2 + j
    }

    /// An entry.
    pub fn get(&self, i: usize, j: usize) -> ExprId {
        self.lower[Self::place(i, j)]
    }

    pub(super) fn set(&mut self, i: usize, j: usize, value: ExprId) {
        self.lower[Self::place(i, j)] = value;
    }

    /// All entries, by columns.
    pub fn dense(&self) -> Vec<ExprId> {
        (0..self.n).flat_map(|j| (0..self.n).map(move |i| self.get(i, j))).collect()
    }
}

/// M in joint form.
pub fn mass_matrix(g: &mut Graph, mechanism: &Mechanism<'_>, inertias: &[(ExprId, Symmetric)]) -> MassMatrix {
    let (tree, positions) = (mechanism.tree, &mechanism.positions);
    let mut m = MassMatrix::zero(g, tree.nv);
    let composite = composite_inertias(g, mechanism, inertias);
    for (i, link) in tree.links.iter().enumerate() {
        for (column, k) in positions.links[i].columns.iter().zip(link.v_range()) {
            // F = M̄ᶜ_i b_k, then b_jᵀ F for all ancestors j
            let mut force = g.apply_inertia(composite[i], column.motion);
            for (other, j) in positions.links[i].columns.iter().zip(link.v_range()) {
                if j <= k {
                    let entry = g.dot6(other.motion, force);
                    m.set(k, j, entry);
                }
            }
            let mut here = i;
            while let Some(p) = tree.links[here].parent {
                force = g.shift_force(force, positions.links[here].shift);
                for (other, j) in positions.links[p].columns.iter().zip(tree.links[p].v_range()) {
                    let entry = g.dot6(other.motion, force);
                    m.set(k, j, entry);
                }
                here = p;
            }
        }
    }
    m
}

/// M̄ᶜ_i = M̄_i + Σ children Bᵀ M̄ᶜ B, from the leaves inward   [LopezVarela2023, §3]
pub(crate) fn composite_inertias(
    g: &mut Graph,
    mechanism: &Mechanism<'_>,
    inertias: &[(ExprId, Symmetric)],
) -> Vec<BodyInertia> {
    let mut composite = reference_inertias(g, mechanism, inertias);
    for (i, link) in mechanism.tree.links.iter().enumerate().rev() {
        if let Some(p) = link.parent {
            let shifted = g.shift_inertia(composite[i], mechanism.positions.links[i].shift);
            composite[p] = g.add_inertia(composite[p], shifted);
        }
    }
    composite
}

/// The diagonal of M alone, O(n).
pub fn mass_matrix_diagonal(
    g: &mut Graph,
    mechanism: &Mechanism<'_>,
    inertias: &[(ExprId, Symmetric)],
) -> Vec<ExprId> {
    let composite = composite_inertias(g, mechanism, inertias);
    let mut diagonal = Vec::with_capacity(mechanism.tree.nv);
    for (position, &inertia) in mechanism.positions.links.iter().zip(&composite) {
        for column in &position.columns {
            let force = g.apply_inertia(inertia, column.motion);
            diagonal.push(g.dot6(column.motion, force));
        }
    }
    diagonal
}

/// M in coordinate form, Lᵀ M L with v = L(z) zd, dense by columns. Singular along every vector of Euler
/// parameters: it must not be factored.
pub fn coordinate_form(g: &mut Graph, mechanism: &Mechanism<'_>, m: &MassMatrix) -> Vec<ExprId> {
    let tree = mechanism.tree;
    // L by its nonzero entries: for each coordinate, the velocities that depend on it.
    let mut l: Vec<Vec<(usize, ExprId)>> = vec![Vec::new(); tree.nq];
    let one = g.one();
    for link in &tree.links {
        let euler = link.euler_parameters();
        for z in link.z_range() {
            if euler.is_none_or(|(first, _)| z < first) {
                l[z].push((link.v + z - link.z, one));
            }
        }
        if let Some((first, v)) = euler {
            let p = std::array::from_fn(|k| g.symbol(Group::Z, (first + k) as u32));
            let map = velocity_map(g, p);
            for (row, entries) in map.into_iter().enumerate() {
                for (k, entry) in entries.into_iter().enumerate() {
                    l[first + k].push((v + row, entry));
                }
            }
        }
    }
    let mut dense = vec![g.zero(); tree.nq * tree.nq];
    for j in 0..tree.nq {
        // column M L_j
        let column: Vec<ExprId> = (0..tree.nv)
            .map(|row| {
                let terms: Vec<ExprId> = l[j].iter().map(|&(k, f)| g.mul(m.get(row, k), f)).collect();
                g.sum(&terms)
            })
            .collect();
        for i in 0..=j {
            let terms: Vec<ExprId> = l[i].iter().map(|&(k, f)| g.mul(f, column[k])).collect();
            let entry = g.sum(&terms);
            dense[j * tree.nq + i] = entry;
            dense[i * tree.nq + j] = entry;
        }
    }
    dense
}
