//! Inverse dynamics by the recursive Newton–Euler algorithm.

use super::inertia::Symmetric;
use crate::elements::{Loads, Mechanism};
use crate::graph::{ExprId, Graph, Vec3};
use crate::kinematics::accelerations::point_acceleration;
use crate::kinematics::{Accelerations, Spatial, accelerations};
use crate::symbols::Group;

/// Inertial force and moment of a body about o:
/// f = m a_g, n = J α + ω × J ω + e × f, with e = g − o.
pub(super) fn newton_euler(
    g: &mut Graph,
    mechanism: &Mechanism<'_>,
    link: usize,
    (mass, inertia): (ExprId, Symmetric),
    acceleration: Spatial,
) -> Spatial {
    let position = &mechanism.positions.links[link];
    let moving = &mechanism.velocities.links[link];
    let omega = moving.motion.angular;
    let e = g.sub3(position.com, position.reference);
    let velocity = g.shift_motion(moving.motion, e).linear;
    let a = point_acceleration(g, acceleration, omega, e, velocity, moving.reference_rate);
    let force = g.scale3(mass, a);
    let j = inertia.matrix();
    let spin = g.apply(j, omega);
    let gyroscopic = g.cross3(omega, spin);
    let accelerated = g.apply(j, acceleration.angular);
    let moment = g.add3(accelerated, gyroscopic);
    g.shift_force(Spatial { linear: force, angular: moment }, e)
}

/// b_jᵀ Σ W over all links that j moves, for wrenches W_i on the links.
pub(super) fn project(g: &mut Graph, mechanism: &Mechanism<'_>, mut wrenches: Vec<Spatial>) -> Vec<ExprId> {
    let (tree, positions) = (mechanism.tree, &mechanism.positions);
    let mut projected = vec![g.zero(); tree.nv];
    for (i, link) in tree.links.iter().enumerate().rev() {
        for (column, j) in positions.links[i].columns.iter().zip(link.v_range()) {
            projected[j] = g.dot6(column.motion, wrenches[i]);
        }
        if let Some(p) = link.parent {
            let shifted = g.shift_force(wrenches[i], positions.links[i].shift);
            wrenches[p] = g.add6(wrenches[p], shifted);
        }
    }
    projected
}

/// −gravity: the acceleration of ground that is equivalent to gravity.
pub(super) fn ground_acceleration(g: &mut Graph, mechanism: &Mechanism<'_>) -> Vec3 {
    g.neg3(mechanism.gravity)
}

/// tau = M vd + (velocity terms) − Q: the joint forces for the vd of [`Group::Vd`].
pub fn inverse_dynamics(
    g: &mut Graph,
    mechanism: &Mechanism<'_>,
    inertias: &[(ExprId, Symmetric)],
    loads: &Loads,
) -> Vec<ExprId> {
    let vd: Vec<ExprId> = (0..mechanism.tree.nv as u32).map(|j| g.symbol(Group::Vd, j)).collect();
    let rest = rest(g, mechanism, inertias, loads, Some(&vd));
    rest.into_iter().map(|r| g.neg(r)).collect()
}

/// Q − (velocity terms): the right-hand side of M vd = Q.
pub fn right_hand_side(
    g: &mut Graph,
    mechanism: &Mechanism<'_>,
    inertias: &[(ExprId, Symmetric)],
    loads: &Loads,
) -> Vec<ExprId> {
    rest(g, mechanism, inertias, loads, None)
}

/// Q: the loads along each velocity.
pub(super) fn load_forces(g: &mut Graph, mechanism: &Mechanism<'_>, loads: &Loads) -> Vec<ExprId> {
    let projected = project(g, mechanism, loads.links.clone());
    projected.into_iter().zip(&loads.generalized).map(|(w, &q)| g.add(w, q)).collect()
}

/// Q − M vd − (velocity terms).
fn rest(
    g: &mut Graph,
    mechanism: &Mechanism<'_>,
    inertias: &[(ExprId, Symmetric)],
    loads: &Loads,
    vd: Option<&[ExprId]>,
) -> Vec<ExprId> {
    let wrenches = wrenches(g, mechanism, inertias, loads, vd);
    let projected = project(g, mechanism, wrenches);
    projected.into_iter().zip(&loads.generalized).map(|(w, &q)| g.add(w, q)).collect()
}

/// Inertial wrench of each link less the loads on it, for the vd of [`Group::Vd`]: force and moment about o_i.
pub fn link_wrenches(
    g: &mut Graph,
    mechanism: &Mechanism<'_>,
    inertias: &[(ExprId, Symmetric)],
    loads: &Loads,
) -> Vec<Spatial> {
    let vd: Vec<ExprId> = (0..mechanism.tree.nv as u32).map(|j| g.symbol(Group::Vd, j)).collect();
    let rest = wrenches(g, mechanism, inertias, loads, Some(&vd));
    rest.into_iter().map(|w| Spatial { linear: g.neg3(w.linear), angular: g.neg3(w.angular) }).collect()
}

/// Loads on each link less its inertial wrench.
fn wrenches(
    g: &mut Graph,
    mechanism: &Mechanism<'_>,
    inertias: &[(ExprId, Symmetric)],
    loads: &Loads,
    vd: Option<&[ExprId]>,
) -> Vec<Spatial> {
    let ground = ground_acceleration(g, mechanism);
    let (tree, positions, velocities) = (mechanism.tree, &mechanism.positions, &mechanism.velocities);
    let Accelerations { links } = accelerations(g, tree, positions, velocities, ground, vd);
    (0..tree.links.len())
        .map(|i| {
            let needed = newton_euler(g, mechanism, i, inertias[i], links[i]);
            g.sub6(loads.links[i], needed)
        })
        .collect()
}
