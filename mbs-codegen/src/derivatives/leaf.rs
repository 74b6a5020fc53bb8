//! Changes of an element's placeholders along the direction of an unknown.
//!
//! Unknown b moves a link by (Z, Y, X) = ((z, ζ), (y, υ), (x, ξ)), see `unknowns`. For a point r of the link with velocity v and acceleration a, the link's
//! angular velocity ω and acceleration α,
//!
//! δr = z + ζ × r,   δv = y + υ × r + ζ × v,   δa = x + ξ × r + 2 υ × v + ζ × a,
//!
//! δ(axis) = ζ × axis,   δω = υ + ζ × ω,   δα = ξ + υ × ω + ζ × α.
//!
//! They follow from δV = Y + Z × V and δA = X + Y × V + Z × A by Jacobi's identity: what turns, turns as a whole. X is that of a ground which gravity
//! accelerates upward, so a has that acceleration, too.

use super::direction::Weights;
use super::unknowns::{MotionData, UnknownMotion, Unknowns};
use crate::elements::{Leaf, Mechanism};
use crate::graph::{ExprId, Graph, Vec3};
use crate::kinematics::euler_parameter_rates;
use crate::lowering::Environment;
use crate::model::MarkerRef;
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

/// What a placeholder of a link is made of.
pub(super) enum Carried {
    /// δ = z + ζ × r
    Point(Vec3),
    /// δ = ζ × axis
    Axis(Vec3),
    /// δ = y + υ × r + ζ × v
    Velocity { r: Vec3, v: Vec3 },
    /// δ = υ + ζ × ω
    AngularVelocity(Vec3),
    /// δ = x + ξ × r + 2 υ × v + ζ × a
    Acceleration { r: Vec3, v: Vec3, a: Vec3 },
    /// δ = ξ + υ × ω + ζ × α
    AngularAcceleration { omega: Vec3, alpha: Vec3 },
}

/// A placeholder of a link; none for coordinates.
pub(super) fn carried(
    g: &mut Graph,
    mechanism: &mut Mechanism<'_>,
    data: MotionData<'_>,
    leaf: Leaf,
    link: usize,
) -> Option<Carried> {
    let omega = mechanism.velocities.links[link].motion.angular;
    let mut moving = |g: &mut Graph, marker: MarkerRef| {
        (mechanism.position(g, marker), mechanism.point_velocity(g, marker))
    };
    Some(match leaf {
        Leaf::Position(marker) => Carried::Point(moving(g, marker).0),
        Leaf::Axis(body, k) => {
            Carried::Axis(mechanism.positions.rotation(g, mechanism.tree, body).column(k.into()))
        }
        Leaf::PointVelocity(marker) => {
            let (r, v) = moving(g, marker);
            Carried::Velocity { r, v }
        }
        Leaf::AngularVelocity(_) => Carried::AngularVelocity(omega),
        Leaf::PointAcceleration(marker) => {
            let (r, v) = moving(g, marker);
            // A_lin + α × r + ω × v
            let (pushed, turned) = (g.shift_motion(data.accelerations[link], r).linear, g.cross3(omega, v));
            Carried::Acceleration { r, v, a: g.add3(pushed, turned) }
        }
        Leaf::AngularAcceleration(_) => {
            Carried::AngularAcceleration { omega, alpha: data.accelerations[link].angular }
        }
        Leaf::Coordinate(_)
        | Leaf::Rate(_)
        | Leaf::Acceleration(_)
        | Leaf::JointVelocity(_)
        | Leaf::JointAcceleration(_) => return None,
    })
}

impl Carried {
    /// The change along an unknown that moves the link.
    fn along(&self, g: &mut Graph, unknown: &UnknownMotion) -> Vec3 {
        let UnknownMotion { position, unit, z, y, x, .. } = *unknown;
        match *self {
            Carried::Point(r) => {
                let moved = g.shift_motion(unit, r).linear;
                g.scale3(position, moved)
            }
            Carried::Axis(axis) => {
                let turned = g.cross3(unit.angular, axis);
                g.scale3(position, turned)
            }
            Carried::Velocity { r, v } => {
                let (faster, turned) = (g.shift_motion(y, r).linear, g.cross3(z.angular, v));
                g.add3(faster, turned)
            }
            Carried::AngularVelocity(omega) => {
                let turned = g.cross3(z.angular, omega);
                g.add3(y.angular, turned)
            }
            Carried::Acceleration { r, v, a } => {
                let two = g.constant(2.0);
                let twice = g.scale3(two, v);
                let (pushed, carried) = (g.shift_motion(x, r).linear, g.cross3(y.angular, twice));
                let turned = g.cross3(z.angular, a);
                let sum = g.add3(pushed, carried);
                g.add3(sum, turned)
            }
            Carried::AngularAcceleration { omega, alpha } => {
                let (carried, turned) = (g.cross3(y.angular, omega), g.cross3(z.angular, alpha));
                let sum = g.add3(x.angular, carried);
                g.add3(sum, turned)
            }
        }
    }
}

/// One entry per unknown that moves the placeholder.
pub(super) fn leaf_changes(
    g: &mut Graph,
    mechanism: &mut Mechanism<'_>,
    data: MotionData<'_>,
    unknowns: &Unknowns,
    leaf: Leaf,
) -> Vec<LeafChange> {
    let zero = g.zero();
    let mut changes: BTreeMap<usize, Vec<ExprId>> = BTreeMap::new();
    if let Some(link) = link_of(mechanism, leaf)
        && let Some(carried) = carried(g, mechanism, data, leaf, link)
    {
        for b in unknowns.of_link(mechanism.tree, data, link) {
            if let Some(unknown) = &unknowns.motions[b] {
                changes.insert(b, carried.along(g, unknown).0.to_vec());
            }
        }
    }
    // Σ over its terms of w_p ∂leaf/∂θ_j + w_v ∂leaf/∂v_j + w_a ∂leaf/∂vd_j
    for LeafDerivative { j, by } in coordinate_derivatives(g, mechanism, leaf) {
        for &(unknown, Weights { position, velocity, acceleration }) in &unknowns.of_velocity[j] {
            let change = changes.entry(unknown).or_insert_with(|| vec![zero]);
            let terms = [g.mul(position, by[0]), g.mul(velocity, by[1]), g.mul(acceleration, by[2])];
            let share = g.sum(&terms);
            change[0] = g.add(change[0], share);
        }
    }
    let moving = changes.into_iter().filter(|(_, change)| change.iter().any(|&c| c != zero));
    moving.map(|(unknown, change)| LeafChange { unknown, change }).collect()
}

/// Derivatives of a placeholder with one scalar by θ_j, v_j and vd_j.
struct LeafDerivative {
    j: usize,
    by: [ExprId; 3],
}

/// One entry per velocity on which a coordinate, its rates or a joint's velocity depends.
fn coordinate_derivatives(g: &mut Graph, mechanism: &Mechanism<'_>, leaf: Leaf) -> Vec<LeafDerivative> {
    let (zero, one) = (g.zero(), g.one());
    match leaf {
        Leaf::Coordinate(z) => coordinate_changes(g, mechanism, z, 0),
        Leaf::Rate(z) => coordinate_changes(g, mechanism, z, 1),
        Leaf::Acceleration(z) => coordinate_changes(g, mechanism, z, 2),
        Leaf::JointVelocity(j) => vec![LeafDerivative { j, by: [zero, one, zero] }],
        Leaf::JointAcceleration(j) => vec![LeafDerivative { j, by: [zero, zero, one] }],
        _ => Vec::new(),
    }
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
        vec![LeafDerivative { j, by }]
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
    (0..3).map(|k| LeafDerivative { j: v + k, by: change(k) }).collect()
}
