//! Chooses world axes or link axes, factors of the mass matrix or articulated bodies: whichever takes fewer operations for this mechanism.
//!
//! In link axes an entry of the mass matrix costs the rotation of two vectors, in world axes a product of six: world axes are better for
//! deep trees, and for loads, which need positions in the world anyway. Both versions are built and counted.

use super::articulated_body::{articulated_body, resting_wrenches};
use super::inverse_dynamics::{inverse_dynamics, right_hand_side};
use super::link_axes::LinkAxes;
use super::mass_matrix::{MassMatrix, mass_matrix};
use super::{Solved, Symmetric, solve_tree};
use crate::elements::{Loads, Mechanism};
use crate::graph::{ExprId, Graph};

/// The equations of a mechanism in world axes and in link axes.
pub struct TreeEquations<'m, 'a> {
    mechanism: &'m Mechanism<'a>,
    inertias: &'m [(ExprId, Symmetric)],
    loads: &'m Loads,
    links: LinkAxes,
}

impl<'m, 'a> TreeEquations<'m, 'a> {
    /// Prepares both versions; each function below chooses.
    pub fn new(
        g: &mut Graph,
        mechanism: &'m Mechanism<'a>,
        inertias: &'m [(ExprId, Symmetric)],
        loads: &'m Loads,
    ) -> Self {
        let links = LinkAxes::new(g, mechanism);
        TreeEquations { mechanism, inertias, loads, links }
    }

    /// M in joint form.
    pub fn mass_matrix(&self, g: &mut Graph) -> MassMatrix {
        let versions = self.mass_matrices(g);
        cheapest(g, versions, |m, roots| roots.extend(m.dense()))
    }

    /// tau = M vd + (velocity terms) − Q.
    pub fn inverse_dynamics(&self, g: &mut Graph) -> Vec<ExprId> {
        let versions = [
            self.links.inverse_dynamics(g, self.mechanism, self.loads),
            inverse_dynamics(g, self.mechanism, self.inertias, self.loads),
        ];
        cheapest(g, versions, |tau, roots| roots.extend(tau))
    }

    /// vd with M vd = Q: by factors of M with the tree's sparsity, which is best for short chains, or by articulated bodies.
    pub fn forward_dynamics(&self, g: &mut Graph) -> Solved {
        let resting = resting_wrenches(g, self.mechanism, self.inertias);
        let recursive = articulated_body(g, self.mechanism, self.inertias, self.loads, &resting).solved;
        let most = g.operations_per_call(&recursive.vd);
        // The factorisation alone takes an operation for every velocity, ancestor and ancestor of that.
        if self.mechanism.tree.eliminations() > most {
            return recursive;
        }
        let factored = self.factored(g);
        if g.operations_per_call(&factored.vd) <= most { factored } else { recursive }
    }

    fn factored(&self, g: &mut Graph) -> Solved {
        let masses = self.mass_matrices(g);
        let sides = [
            self.links.right_hand_side(g, self.mechanism, self.loads),
            right_hand_side(g, self.mechanism, self.inertias, self.loads),
        ];
        let versions: Vec<_> =
            masses.iter().flat_map(|m| sides.iter().map(move |q| (m.clone(), q.clone()))).collect();
        let (m, q) = cheapest(g, versions, |(m, q), roots| {
            roots.extend(m.dense());
            roots.extend(q);
        });
        solve_tree(g, &self.mechanism.tree.v_parents(), m, q)
    }

    fn mass_matrices(&self, g: &mut Graph) -> [MassMatrix; 2] {
        [self.links.mass_matrix(g), mass_matrix(g, self.mechanism, self.inertias)]
    }
}

/// The first of several equivalent versions with the fewest operations per call.
fn cheapest<T>(g: &Graph, versions: impl IntoIterator<Item = T>, roots: impl Fn(&T, &mut Vec<ExprId>)) -> T {
    let cost = |version: &T| {
        let mut all = Vec::new();
        roots(version, &mut all);
        g.operations_per_call(&all)
    };
    versions.into_iter().min_by_key(cost).expect("at least one version")
}
