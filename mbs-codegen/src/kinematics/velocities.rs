//! Velocities and the velocity-dependent part of accelerations.

use super::{Positions, Spatial};
use crate::graph::{ExprId, Graph, Vec3};
use crate::symbols::Group;
use crate::topology::Tree;

/// Velocity of a link.
#[derive(Clone, Debug)]
pub struct LinkVelocity {
    /// V_i = (velocity of the body's point at o_i, ω_i)
    pub motion: Spatial,
    /// od_i, velocity of the reference point itself: that of g_i (RTdyn0), or zero (RTdyn1)
    pub reference_rate: Vec3,
    /// d_i
    pub bias: Spatial,
}

/// Velocities of all links.
#[derive(Clone, Debug)]
pub struct Velocities {
    /// By link.
    pub links: Vec<LinkVelocity>,
}

/// V_i = B_i V_parent + b_i v_i, and d_i, from ground outward.
pub fn velocities(
    g: &mut Graph,
    tree: &Tree,
    positions: &Positions,
    reference: super::ReferencePoint,
) -> Velocities {
    let mut links: Vec<LinkVelocity> = Vec::with_capacity(tree.links.len());
    for (i, link) in tree.links.iter().enumerate() {
        let here = &positions.links[i];
        let zero = g.zero_vector();
        let (parent, parent_rate) = match link.parent {
            Some(p) => (links[p].motion, links[p].reference_rate),
            None => (g.zero_spatial(), zero),
        };
        let v: Vec<ExprId> = link.v_range().map(|j| g.symbol(Group::V, j as u32)).collect();
        // V_i = B_i V_parent + b_i v_i                       [LopezVarela2023, Eq. 4a]
        let mut motion = g.shift_motion(parent, here.shift);
        for (column, &rate) in here.columns.iter().zip(&v) {
            let share = g.scale6(rate, column.motion);
            motion = g.add6(motion, share);
        }
        let reference_rate = match reference {
            super::ReferencePoint::CentreOfMass => motion.linear,
            super::ReferencePoint::Origin => zero,
        };
        let bias = bias(g, i, tree, positions, &v, parent.angular, motion, [parent_rate, reference_rate]);
        links.push(LinkVelocity { motion, reference_rate, bias });
    }
    Velocities { links }
}

/// d_i = Bd_i V_parent + bd_i v_i:
/// linear  ω_p × (od_i − od_p) + Σ translations wd v + Σ rotations (wd × (o_i − r_C) + w × (od_i − rd_C)) v,
/// angular Σ rotations wd v, where wd = ω × w with the ω of the frame that carries w.
#[allow(clippy::too_many_arguments, reason = "one formula, used once")]
fn bias(
    g: &mut Graph,
    i: usize,
    tree: &Tree,
    positions: &Positions,
    v: &[ExprId],
    parent_omega: Vec3,
    motion: Spatial,
    [parent_rate, reference_rate]: [Vec3; 2],
) -> Spatial {
    let here = &positions.links[i];
    let drift = g.sub3(reference_rate, parent_rate);
    let mut linear = g.cross3(parent_omega, drift);
    let mut angular = g.zero_vector();
    // rd_C = v_o + ω_i × (r_C − o_i)
    let from_joint = g.sub3(here.reference, here.joint_point);
    let turned = g.cross3(motion.angular, from_joint);
    let joint_rate = g.sub3(motion.linear, turned);
    let arm_rate = g.sub3(reference_rate, joint_rate);
    let has_euler_parameters = tree.links[i].euler_parameters().is_some();
    let mut omega = parent_omega;
    let mut relative_omega = g.zero_vector();
    for (column, &rate) in here.columns.iter().zip(v) {
        // With Euler parameters the axes are fixed in the child; since ω_rel × ω_rel = 0, their rates follow from the parent's ω.
        let axis_rate = g.cross3(omega, column.axis);
        let change = g.scale3(rate, axis_rate);
        if column.is_rotation {
            angular = g.add3(angular, change);
            let relative = g.scale3(rate, column.axis);
            relative_omega = g.add3(relative_omega, relative);
            if !has_euler_parameters {
                omega = g.add3(omega, relative);
            }
        } else {
            linear = g.add3(linear, change);
        }
    }
    // Σ rotations: (Σ wd v) × (o_i − r_C) + (Σ w v) × (od_i − rd_C)
    let first = g.cross3(angular, from_joint);
    let second = g.cross3(relative_omega, arm_rate);
    linear = g.add3(linear, first);
    linear = g.add3(linear, second);
    Spatial { linear, angular }
}
