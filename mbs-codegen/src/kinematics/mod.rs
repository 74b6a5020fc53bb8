//! Joint-wise recursive kinematics in world axes.
//!
//! Input: a model's tree and its geometry as expressions. Output: for every link its rotation, positions,
//! velocities and the terms of its acceleration.
//!
//! | symbol | meaning | shape |
//! |---|---|---|
//! | A_i | rotation of body i into world axes | 3×3 |
//! | r_i | origin of body i's frame | 3 |
//! | g_i | centre of mass | 3 |
//! | o_i | reference point: g_i (RTdyn0) or the world origin (RTdyn1) | 3 |
//! | V_i | (velocity of the body's point at o_i, ω_i) | 6 |
//! | b_i | V_i per joint velocity: one [`Spatial`] column each | 6×n |
//! | B_i | shift of V from o_parent to o_i | 6×6, never formed |
//! | d_i | acceleration of i not due to vd or the parent's | 6 |
//!
//! V_i = B_i V_parent + b_i v_i and Vd_i = B_i Vd_parent + b_i vd_i + d_i   [LopezVarela2023, Eq. 4].
//! The two reference points share all code: with o = 0 the shifts vanish, so B_i = I in RTdyn1.

pub(crate) mod accelerations;
mod euler_parameters;
pub(crate) mod joint_motion;
pub(crate) mod positions;
mod velocities;

pub use accelerations::{Accelerations, accelerations};
pub use euler_parameters::{
    of_rotation as euler_parameters_of_rotation, rates as euler_parameter_rates,
    rotation as euler_parameter_rotation, velocity_map,
};
pub use positions::{Column, LinkPosition, Positions, positions};
pub use velocities::{LinkVelocity, Velocities, velocities};

use crate::graph::{Graph, Vec3};

/// The point to which velocities, forces and inertias of a body are referred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ReferencePoint {
    /// RTdyn0: the body's centre of mass.
    CentreOfMass,
    /// RTdyn1: the world origin, where accumulation is a plain sum.
    #[default]
    Origin,
}

/// A linear and an angular part: a velocity, an acceleration, or (force, moment).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spatial {
    /// Linear part at the reference point.
    pub linear: Vec3,
    /// Angular part.
    pub angular: Vec3,
}

impl Spatial {
    /// All six components, the linear part first.
    pub fn numbers(self) -> [crate::graph::ExprId; 6] {
        let ([a, b, c], [d, e, f]) = (self.linear.0, self.angular.0);
        [a, b, c, d, e, f]
    }
}

impl Graph {
    /// Zero.
    pub fn zero_spatial(&mut self) -> Spatial {
        let zero = self.zero_vector();
        Spatial { linear: zero, angular: zero }
    }

    /// a + b
    pub fn add6(&mut self, a: Spatial, b: Spatial) -> Spatial {
        Spatial { linear: self.add3(a.linear, b.linear), angular: self.add3(a.angular, b.angular) }
    }

    /// a − b
    pub fn sub6(&mut self, a: Spatial, b: Spatial) -> Spatial {
        Spatial { linear: self.sub3(a.linear, b.linear), angular: self.sub3(a.angular, b.angular) }
    }

    /// −a
    pub fn neg6(&mut self, a: Spatial) -> Spatial {
        Spatial { linear: self.neg3(a.linear), angular: self.neg3(a.angular) }
    }

    /// s a
    pub fn scale6(&mut self, s: crate::graph::ExprId, a: Spatial) -> Spatial {
        Spatial { linear: self.scale3(s, a.linear), angular: self.scale3(s, a.angular) }
    }

    /// aᵀ b, summed from the angular part on.
    pub fn dot6(&mut self, a: Spatial, b: Spatial) -> crate::graph::ExprId {
        let angular = self.dot3(a.angular, b.angular);
        let linear = self.dot3(a.linear, b.linear);
        self.add(angular, linear)
    }

    /// B V: a motion at o, referred to o + shift. v' = v + ω × shift
    pub fn shift_motion(&mut self, motion: Spatial, shift: Vec3) -> Spatial {
        let turned = self.cross3(motion.angular, shift);
        Spatial { linear: self.add3(motion.linear, turned), angular: motion.angular }
    }

    /// Bᵀ F: a force at o + shift, referred to o. n' = n + shift × f
    pub fn shift_force(&mut self, force: Spatial, shift: Vec3) -> Spatial {
        let moment = self.cross3(shift, force.linear);
        Spatial { linear: force.linear, angular: self.add3(force.angular, moment) }
    }
}
