//! Parts of an implicit step, each as one bundle: everything that two of the separate bundles have in common is computed once (kinematics, sines
//! and cosines, M and Φ_z), and matrices and right-hand sides do not go through memory.
//!
//! Input: the equations in coordinate form. Output: specifications of the family, or none if the model is large: its separate bundles are needed
//! for whatever is not usual (rows that are not active or depend on each other, pivots that fail), so that the text would grow by half, and
//! what could be saved is small against the tangent.

use super::equations::Equations;
use super::{BundleKind, ProgramError};
use crate::bundle::Specification;
use crate::constrained::{CoordinateForm, LeadingMatrix};
use crate::graph::{ExprId, Graph};
use crate::sparse::Factors;
use crate::symbols::Group;
use hashbrown::HashMap;

/// Most nodes of the graph under `newton_step` that are fused.
const MOST_NODES: usize = 6000;

impl Equations<'_, '_, '_> {
    /// The bundles of the family, if they pay.
    pub(super) fn fused_steps(
        &mut self,
        form: &CoordinateForm,
        leading: &LeadingMatrix,
    ) -> Result<Vec<Specification>, ProgramError> {
        let g = &mut *self.g;
        if g.reachable(&form.newton).len() > MOST_NODES {
            return Ok(Vec::new());
        }
        let rows = form.constraints.len();
        let holonomic = rows - self.rows.nonholonomic();
        let small: Vec<ExprId> = (0..rows as u32).map(|k| g.symbol(Group::Compliance, k)).collect();

        // [W Φ_zᵀ Aᵀ; Φ_z −E; A' −E'] x = −(r, Φ/(βh²), Ψ/(γh))
        let newton = leading.factor(g, &form.newton, &small);
        let mut rhs: Vec<ExprId> = form.residual.iter().map(|&r| g.neg(r)).collect();
        let [by_velocity, by_position] = [0, 1].map(|i| {
            let (one, weight) = (g.one(), g.symbol(Group::Weights, i));
            g.div(one, weight)
        });
        for (k, &value) in form.constraints.iter().enumerate() {
            let scaled = g.mul(value, if k < holonomic { by_position } else { by_velocity });
            rhs.push(g.neg(scaled));
        }
        let x = newton.solve(g, rhs.clone());
        let corrected = leading.again.solve(g, rhs);

        // [M B^T; B −E] (d, σ) = (0, −(Φd, Ψ)), refined; then alike for accelerations at the velocities found.
        let mass = leading.factor(g, &form.projection, &small);
        let b = projection_rows(form, holonomic);
        let (velocity, phid) = projected(g, &mass, &small, &b, &form.rates);
        let moved = moved(g, Group::Zd, &velocity[..form.residual.len()]);
        let accelerations = g.substitute(&form.accelerations, &moved);
        let (acceleration, phidd) = projected(g, &mass, &small, &b, &accelerations);

        let phi = form.constraints.clone();
        let newton_step = vec![phi.clone(), form.newton.clone(), newton.values(), x, newton.pivots()];
        let project_step = vec![velocity, acceleration, phid, phidd, mass.pivots()];
        Ok(vec![
            self.specify(BundleKind::NewtonStep, newton_step)?,
            self.specify(BundleKind::CorrectStep, vec![phi, corrected])?,
            self.specify(BundleKind::ProjectStep, project_step)?,
        ])
    }
}

/// The entries of B = (Φ_z; A): (row, coordinate, entry).
fn projection_rows(form: &CoordinateForm, holonomic: usize) -> Vec<(usize, usize, ExprId)> {
    let pattern = &form.pattern;
    let first = pattern.nonholonomic.iter().map(|&(k, j)| (holonomic + k as usize, j as usize));
    let places = pattern.holonomic.iter().map(|&(k, j)| (k as usize, j as usize)).chain(first);
    let entries = form.projection.iter().skip(pattern.tangent.len());
    places.zip(entries).map(|((k, j), &entry)| (k, j, entry)).collect()
}

/// The solution for (0, −residuals), its correction for what E leaves, which is (0, −E σ), and what is then left of the residuals: residuals + B d.
fn projected(
    g: &mut Graph,
    factors: &Factors,
    small: &[ExprId],
    b: &[(usize, usize, ExprId)],
    residuals: &[ExprId],
) -> (Vec<ExprId>, Vec<ExprId>) {
    let n = factors.size() - residuals.len();
    let mut rhs = vec![g.zero(); n];
    rhs.extend(residuals.iter().map(|&residual| g.neg(residual)));
    let mut x = factors.solve(g, rhs);
    let mut rhs = vec![g.zero(); n];
    for (&small, &sigma) in small.iter().zip(&x[n..]) {
        let product = g.mul(small, sigma);
        rhs.push(g.neg(product));
    }
    for (x, change) in x.iter_mut().zip(factors.solve(g, rhs)) {
        *x = g.add(*x, change);
    }
    let mut left = residuals.to_vec();
    for &(k, j, entry) in b {
        let product = g.mul(entry, x[j]);
        left[k] = g.add(left[k], product);
    }
    (x, left)
}

/// Symbols of a group plus a change of each.
fn moved(g: &mut Graph, group: Group, changes: &[ExprId]) -> HashMap<ExprId, ExprId> {
    let mut moved = HashMap::new();
    for (&change, i) in changes.iter().zip(0..) {
        let symbol = g.symbol(group, i);
        moved.insert(symbol, g.add(symbol, change));
    }
    moved
}
