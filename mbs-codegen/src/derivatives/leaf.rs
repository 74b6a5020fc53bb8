//! Derivatives of an element's placeholders with respect to the joints, and along a direction.
//!
//! For a point r of link i, and a column S_j that moves it (V₀, A₀ before j's group, V after it; V_i, A_i of the
//! link):
//!
//! ∂r/∂θ_j = s_j + w_j × r,  ∂(axis)/∂θ_j = w_j × axis,  ∂V_i/∂θ_j = S_j × (V_i − V₀),  ∂V_i/∂v_j = S_j,
//!
//! ∂A_i/∂θ_j = S_j × (A_i − A₀) + ψd_j × (V_i − V₀),  ∂A_i/∂v_j = ψd_j + S_j × (V_i − V),  ∂A_i/∂vd_j = S_j.
//!
//! The first of the last line follows because, seen from before the group, everything after it rotates as a whole.

use super::direction::Weights;
use super::motion::{Column, ancestor_velocities};
use super::unknowns::{MotionData, Unknowns};
use crate::elements::{Leaf, Mechanism};
use crate::graph::{ExprId, Graph, Vec3};
use crate::kinematics::{Spatial, euler_parameter_rates};
use crate::lowering::Environment;
use crate::model::BodyId;
use crate::symbols::Group;
use std::collections::BTreeMap;

/// Change of a placeholder's scalars along the direction of an unknown.
pub(super) struct LeafChange {
    pub unknown: usize,
    pub change: Vec<ExprId>,
}

/// The link that carries a placeholder; none for coordinates and for ground.
pub(super) fn link_of(mechanism: &Mechanism<'_>, leaf: Leaf) -> Option<usize> {
    let body = match leaf {
        Leaf::Position(marker) | Leaf::PointVelocity(marker) | Leaf::PointAcceleration(marker) => marker.body,
        Leaf::AngularVelocity(body) | Leaf::AngularAcceleration(body) | Leaf::Axis(body, _) => body,
        Leaf::Coordinate(_)
        | Leaf::Rate(_)
        | Leaf::Acceleration(_)
        | Leaf::JointVelocity(_)
        | Leaf::JointAcceleration(_) => return None,
    };
    mechanism.tree.link_of_body[body.index()]
}

/// One entry per unknown that moves the placeholder: Σ over its terms of w_p ∂leaf/∂θ_j + w_v ∂leaf/∂v_j + w_a ∂leaf/∂vd_j.
pub(super) fn leaf_changes(
    g: &mut Graph,
    mechanism: &mut Mechanism<'_>,
    data: MotionData<'_>,
    unknowns: &Unknowns,
    leaf: Leaf,
) -> Vec<LeafChange> {
    let zero = g.zero();
    let mut changes: BTreeMap<usize, Vec<ExprId>> = BTreeMap::new();
    for LeafDerivative { j, by } in leaf_derivatives(g, mechanism, data, leaf) {
        for &(unknown, weights) in &unknowns.of_velocity[j] {
            let change = changes.entry(unknown).or_insert_with(|| vec![zero; by[0].len()]);
            let Weights { position, velocity, acceleration } = weights;
            for (k, sum) in change.iter_mut().enumerate() {
                let (p, q) = (g.mul(position, by[0][k]), g.mul(velocity, by[1][k]));
                let share = g.add(p, q);
                let pushed = g.mul(acceleration, by[2][k]);
                let share = g.add(share, pushed);
                *sum = g.add(*sum, share);
            }
        }
    }
    let moving = changes.into_iter().filter(|(_, change)| change.iter().any(|&c| c != zero));
    moving.map(|(unknown, change)| LeafChange { unknown, change }).collect()
}

/// Derivatives of a placeholder's scalars by θ_j, v_j and vd_j.
struct LeafDerivative {
    j: usize,
    by: [Vec<ExprId>; 3],
}

impl LeafDerivative {
    /// Of a placeholder with one scalar.
    fn scalar(j: usize, by: [ExprId; 3]) -> LeafDerivative {
        LeafDerivative { j, by: by.map(|x| vec![x]) }
    }
}

/// Velocity and acceleration of a link.
#[derive(Clone, Copy)]
struct LinkMotion {
    velocity: Spatial,
    acceleration: Spatial,
}

/// A motion per θ_j, v_j and vd_j.
type By = [Spatial; 3];

impl Graph {
    /// Change of the velocity of a link.
    fn velocity_changes(&mut self, column: &Column, link: LinkMotion) -> By {
        let relative = self.sub6(link.velocity, column.before);
        [self.cross_motion(column.s, relative), column.s, self.zero_spatial()]
    }

    /// Change of its acceleration.
    fn acceleration_changes(&mut self, column: &Column, link: LinkMotion) -> By {
        let velocity = self.sub6(link.velocity, column.before);
        let acceleration = self.sub6(link.acceleration, column.before_acceleration);
        let (p, q) =
            (self.cross_motion(column.s, acceleration), self.cross_motion(column.psi_rate, velocity));
        let beyond = self.sub6(link.velocity, column.after);
        let turned = self.cross_motion(column.s, beyond);
        [self.add6(p, q), self.add6(column.psi_rate, turned), column.s]
    }

    /// v = V_lin + ω × r for the changes of V and of r.
    fn point_velocity_changes(&mut self, column: &Column, link: LinkMotion, r: Vec3) -> [Vec3; 3] {
        let moved = self.shift_motion(column.s, r).linear;
        let carried = self.cross3(link.velocity.angular, moved);
        let [position, velocity, acceleration] =
            self.velocity_changes(column, link).map(|motion| self.shift_motion(motion, r).linear);
        [self.add3(position, carried), velocity, acceleration]
    }

    /// a = A_lin + α × r + ω × v for the changes of A, V, r and v.
    fn point_acceleration_changes(
        &mut self,
        column: &Column,
        link: LinkMotion,
        r: Vec3,
        v: Vec3,
    ) -> [Vec3; 3] {
        let faster = self.point_velocity_changes(column, link, r);
        let turned = self.velocity_changes(column, link);
        let pushed = self.acceleration_changes(column, link);
        let mut changes: [Vec3; 3] = std::array::from_fn(|k| {
            let shifted = self.shift_motion(pushed[k], r).linear;
            let (p, q) = (self.cross3(turned[k].angular, v), self.cross3(link.velocity.angular, faster[k]));
            let rest = self.add3(p, q);
            self.add3(shifted, rest)
        });
        let moved = self.shift_motion(column.s, r).linear;
        let carried = self.cross3(link.acceleration.angular, moved);
        changes[0] = self.add3(changes[0], carried);
        changes
    }
}

/// One entry per velocity that moves the placeholder.
fn leaf_derivatives(
    g: &mut Graph,
    mechanism: &mut Mechanism<'_>,
    data: MotionData<'_>,
    leaf: Leaf,
) -> Vec<LeafDerivative> {
    let (zero, one) = (g.zero(), g.one());
    let none = g.zero_vector();
    match leaf {
        Leaf::Position(marker) => {
            let r = mechanism.position(g, marker);
            of_body(g, mechanism, data, marker.body, |g, column, _| {
                [g.shift_motion(column.s, r).linear, none, none]
            })
        }
        Leaf::PointVelocity(marker) => {
            let r = mechanism.position(g, marker);
            of_body(g, mechanism, data, marker.body, |g, column, link| {
                g.point_velocity_changes(column, link, r)
            })
        }
        Leaf::PointAcceleration(marker) => {
            let (r, v) = (mechanism.position(g, marker), mechanism.point_velocity(g, marker));
            of_body(g, mechanism, data, marker.body, |g, column, link| {
                g.point_acceleration_changes(column, link, r, v)
            })
        }
        Leaf::AngularVelocity(body) => of_body(g, mechanism, data, body, |g, column, link| {
            g.velocity_changes(column, link).map(|motion| motion.angular)
        }),
        Leaf::AngularAcceleration(body) => of_body(g, mechanism, data, body, |g, column, link| {
            g.acceleration_changes(column, link).map(|motion| motion.angular)
        }),
        Leaf::Axis(body, k) => {
            let axis = mechanism.positions.rotation(g, mechanism.tree, body).column(k.into());
            of_body(g, mechanism, data, body, |g, column, _| [g.cross3(column.s.angular, axis), none, none])
        }
        Leaf::Coordinate(z) => coordinate_changes(g, mechanism, z, 0),
        Leaf::Rate(z) => coordinate_changes(g, mechanism, z, 1),
        Leaf::Acceleration(z) => coordinate_changes(g, mechanism, z, 2),
        Leaf::JointVelocity(j) => vec![LeafDerivative::scalar(j, [zero, one, zero])],
        Leaf::JointAcceleration(j) => vec![LeafDerivative::scalar(j, [zero, zero, one])],
    }
}

fn of_body(
    g: &mut Graph,
    mechanism: &Mechanism<'_>,
    data: MotionData<'_>,
    body: BodyId,
    derivative: impl Fn(&mut Graph, &Column, LinkMotion) -> [Vec3; 3],
) -> Vec<LeafDerivative> {
    // The nearest link with a joint velocity, on the way to ground.
    let mut link = mechanism.tree.link_of_body[body.index()];
    let Some(own) = link else {
        return Vec::new();
    };
    let motion = LinkMotion {
        velocity: mechanism.velocities.links[own].motion,
        acceleration: data.accelerations[own],
    };
    while let Some(i) = link {
        let range = mechanism.tree.links[i].v_range();
        if let Some(last) = range.last() {
            return ancestor_velocities(data.columns, data.parents, last)
                .into_iter()
                .map(|j| {
                    let by = derivative(g, &data.columns[j], motion);
                    LeafDerivative { j, by: by.map(|change| change.0.to_vec()) }
                })
                .collect();
        }
        link = mechanism.tree.links[i].parent;
    }
    Vec::new()
}

/// Of a coordinate (level 0), its rate (1) or the rate of that (2). Euler parameters have unit length, p, and
/// move along the tangent by N(p) e_j, so that with the bilinear N(a) b
///
/// p_j = N(p) e_j,   (pd)_j = N(p_j) ω,   (pdd)_j = N(p_j) ωd + N((pd)_j) ω,   pd = N(p) ω,   pdd = N(p) ωd + N(pd) ω.
fn coordinate_changes(
    g: &mut Graph,
    mechanism: &Mechanism<'_>,
    z: usize,
    level: usize,
) -> Vec<LeafDerivative> {
    let tree = mechanism.tree;
    let (zero, one) = (g.zero(), g.one());
    let own = |j: usize| {
        let mut by = [zero; 3];
        by[level] = one;
        vec![LeafDerivative::scalar(j, by)]
    };
    let (first, v) = match tree.link_of_z(z).map(|link| (link, link.euler_parameters())) {
        Some((_, Some((first, v)))) if z >= first => (first, v),
        Some((link, _)) => return own(link.v + z - link.z),
        None => return own(tree.variables_v + z - tree.variables_z),
    };
    let p = mechanism.unit_euler_parameters(g, first);
    let [omega, alpha] =
        [Group::V, Group::Vd].map(|group| Vec3(std::array::from_fn(|k| g.symbol(group, (v + k) as u32))));
    let pd = euler_parameter_rates(g, p, omega);
    let mut change = |k: usize| {
        let unit = Vec3(std::array::from_fn(|i| if i == k { one } else { zero }));
        let tangent = euler_parameter_rates(g, p, unit);
        let at = |x: [ExprId; 4]| x[z - first];
        match level {
            0 => [at(tangent), zero, zero],
            1 => [at(euler_parameter_rates(g, tangent, omega)), at(tangent), zero],
            _ => {
                let faster = euler_parameter_rates(g, tangent, omega);
                let (pushed, turned) =
                    (euler_parameter_rates(g, tangent, alpha), euler_parameter_rates(g, faster, omega));
                let by_position = g.add(at(pushed), at(turned));
                // ∂(N(pd) ω)/∂ω_k = N(N(p) e_k) ω + N(pd) e_k
                let carried = euler_parameter_rates(g, pd, unit);
                let by_velocity = g.add(at(faster), at(carried));
                [by_position, by_velocity, at(tangent)]
            }
        }
    };
    (0..3).map(|k| LeafDerivative::scalar(v + k, change(k))).collect()
}
