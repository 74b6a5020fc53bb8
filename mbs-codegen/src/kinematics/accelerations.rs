//! Accelerations for given vd.

use super::{Positions, Spatial, Velocities};
use crate::graph::{ExprId, Graph, Vec3};
use crate::topology::Tree;

/// Vd_i of every link.
#[derive(Clone, Debug)]
pub struct Accelerations {
    /// By link.
    pub links: Vec<Spatial>,
}

/// Vd_i = B_i Vd_parent + b_i vd_i + d_i, from ground outward   [LopezVarela2023, Eq. 4b].
///
/// `ground` is the acceleration of ground: zero, or −gravity, which makes gravity act on every mass at no cost.
/// `vd` is `None` for the accelerations due to velocities alone.
pub fn accelerations(
    g: &mut Graph,
    tree: &Tree,
    positions: &Positions,
    velocities: &Velocities,
    ground: Vec3,
    vd: Option<&[ExprId]>,
) -> Accelerations {
    let zero = g.zero_vector();
    let mut links: Vec<Spatial> = Vec::with_capacity(tree.links.len());
    for (i, link) in tree.links.iter().enumerate() {
        let here = &positions.links[i];
        let parent = match link.parent {
            Some(p) => links[p],
            None => Spatial { linear: ground, angular: zero },
        };
        let mut acceleration = g.shift_motion(parent, here.shift);
        acceleration = g.add6(acceleration, velocities.links[i].bias);
        if let Some(vd) = vd {
            for (column, j) in here.columns.iter().zip(link.v_range()) {
                let share = g.scale6(vd[j], column.motion);
                acceleration = g.add6(acceleration, share);
            }
        }
        links.push(acceleration);
    }
    Accelerations { links }
}

/// Acceleration of a material point at `arm` from the reference point, moving with `velocity`:
/// a = Vd_lin + α × arm + ω × (velocity − od)
pub(crate) fn point_acceleration(
    g: &mut Graph,
    acceleration: Spatial,
    omega: Vec3,
    arm: Vec3,
    velocity: Vec3,
    reference_rate: Vec3,
) -> Vec3 {
    let tangential = g.cross3(acceleration.angular, arm);
    let relative = g.sub3(velocity, reference_rate);
    let normal = g.cross3(omega, relative);
    let sum = g.add3(acceleration.linear, tangential);
    g.add3(sum, normal)
}
