//! Separate terms of inverse dynamics: tau = M vd + c(z, v) + g(z) − Q.

use super::inertia::Symmetric;
use super::inverse_dynamics::{ground_acceleration, newton_euler, project};
use super::mass_matrix::composite_inertias;
use crate::elements::Mechanism;
use crate::graph::{ExprId, Graph};
use crate::kinematics::{Accelerations, Spatial, accelerations};

/// g_j = b_jᵀ M̄ᶜ_i (a, 0): all bodies that j moves, accelerated with ground by a = −gravity.
pub fn gravity_terms(
    g: &mut Graph,
    mechanism: &Mechanism<'_>,
    inertias: &[(ExprId, Symmetric)],
) -> Vec<ExprId> {
    let composite = composite_inertias(g, mechanism, inertias);
    let up = Spatial { linear: ground_acceleration(g, mechanism), angular: g.zero_vector() };
    let mut terms = Vec::with_capacity(mechanism.tree.nv);
    for (position, &inertia) in mechanism.positions.links.iter().zip(&composite) {
        let weight = g.apply_inertia(inertia, up);
        terms.extend(position.columns.iter().map(|column| g.dot6(column.motion, weight)));
    }
    // Variables have no weight.
    terms.resize(mechanism.tree.nv, g.zero());
    terms
}

/// c: velocity terms, without gravity, forces and vd.
pub fn coriolis_terms(
    g: &mut Graph,
    mechanism: &Mechanism<'_>,
    inertias: &[(ExprId, Symmetric)],
) -> Vec<ExprId> {
    let wrenches = velocity_wrenches(g, mechanism, inertias);
    project(g, mechanism, wrenches)
}

/// Velocity terms of each link: force and moment about o_i.
pub(super) fn velocity_wrenches(
    g: &mut Graph,
    mechanism: &Mechanism<'_>,
    inertias: &[(ExprId, Symmetric)],
) -> Vec<Spatial> {
    let still = g.zero_vector();
    let Accelerations { links } =
        accelerations(g, mechanism.tree, &mechanism.positions, &mechanism.velocities, still, None);
    (0..links.len()).map(|i| newton_euler(g, mechanism, i, inertias[i], links[i])).collect()
}
