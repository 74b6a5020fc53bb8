//! How an element's placeholders move along an unknown.
//!
//! A point r, an axis a, a velocity v = V_lin + ω × r, an acceleration A_lin + α × r + ω × v of a link that is moved by Z, δV, δA (see
//! `unknowns`) change by
//!
//! δr = Z_lin + Z_ang × r,   Z_ang × a,   δv = δV_lin + δω × r + ω × δr,   δA_lin + δα × r + α × δr + δω × v + ω × δv.

use super::direction::Weights;
use super::unknowns::{Moved, Moving, Unknowns};
use crate::elements::{Leaf, Mechanism};
use crate::graph::{ExprId, Graph, Vec3};
use crate::kinematics::{Spatial, euler_parameter_rates};
use crate::lowering::Environment;
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

/// One entry per unknown that moves the placeholder.
pub(super) fn leaf_changes(
    g: &mut Graph,
    mechanism: &mut Mechanism<'_>,
    moved: Moved<'_>,
    unknowns: &Unknowns,
    leaf: Leaf,
) -> Vec<LeafChange> {
    let mut changes: Vec<LeafChange> = Vec::new();
    if let Some(link) = link_of(mechanism, leaf) {
        for b in unknowns.of_link(mechanism.tree, moved, link) {
            let Some(unknown) = &unknowns.moving[b] else { continue };
            let change = carried(g, mechanism, moved, leaf, link, unknown).0.to_vec();
            changes.push(LeafChange { unknown: b, change });
        }
    } else {
        changes.extend(of_coordinate(g, mechanism, unknowns, leaf));
    }
    changes.retain(|leaf| leaf.change.iter().any(|&c| !g.is(c, 0.0)));
    changes
}

/// The change of a placeholder that a link carries.
fn carried(
    g: &mut Graph,
    mechanism: &mut Mechanism<'_>,
    moved: Moved<'_>,
    leaf: Leaf,
    link: usize,
    unknown: &Moving,
) -> Vec3 {
    let velocity = mechanism.velocities.links[link].motion;
    let acceleration = moved.accelerations[link];
    // δV = Σ w_v S + Z × (V − V₀)
    let faster = |g: &mut Graph| {
        let relative = g.sub6(velocity, unknown.before);
        let turned = g.cross_motion(unknown.z, relative);
        g.add6(unknown.pushed, turned)
    };
    // δA = X + Y × V + Z × A
    let pushed = |g: &mut Graph| {
        let (p, q) = (g.cross_motion(unknown.y, velocity), g.cross_motion(unknown.z, acceleration));
        let turned = g.add6(p, q);
        g.add6(unknown.x, turned)
    };
    let point_faster = |g: &mut Graph, r: Vec3, shifted: Vec3, faster: Spatial| {
        let (p, q) = (g.shift_motion(faster, r).linear, g.cross3(velocity.angular, shifted));
        g.add3(p, q)
    };
    match leaf {
        Leaf::Position(marker) => {
            let r = mechanism.position(g, marker);
            g.shift_motion(unknown.z, r).linear
        }
        Leaf::Axis(body, k) => {
            let axis = mechanism.positions.rotation(g, mechanism.tree, body).column(k.into());
            g.cross3(unknown.z.angular, axis)
        }
        Leaf::PointVelocity(marker) => {
            let r = mechanism.position(g, marker);
            let (shifted, faster) = (g.shift_motion(unknown.z, r).linear, faster(g));
            point_faster(g, r, shifted, faster)
        }
        Leaf::AngularVelocity(_) => faster(g).angular,
        Leaf::PointAcceleration(marker) => {
            let (r, v) = (mechanism.position(g, marker), mechanism.point_velocity(g, marker));
            let (shifted, faster) = (g.shift_motion(unknown.z, r).linear, faster(g));
            let point = point_faster(g, r, shifted, faster);
            let pushed = pushed(g);
            let (p, q) = (g.shift_motion(pushed, r).linear, g.cross3(acceleration.angular, shifted));
            let (s, t) = (g.cross3(faster.angular, v), g.cross3(velocity.angular, point));
            let (first, second) = (g.add3(p, q), g.add3(s, t));
            g.add3(first, second)
        }
        Leaf::AngularAcceleration(_) => pushed(g).angular,
        Leaf::Coordinate(_)
        | Leaf::Rate(_)
        | Leaf::Acceleration(_)
        | Leaf::JointVelocity(_)
        | Leaf::JointAcceleration(_) => g.zero_vector(),
    }
}

/// Of a coordinate or velocity itself: Σ over terms of w_p ∂leaf/∂θ_j + w_v ∂leaf/∂v_j + w_a ∂leaf/∂vd_j.
pub(super) fn of_coordinate(
    g: &mut Graph,
    mechanism: &Mechanism<'_>,
    unknowns: &Unknowns,
    leaf: Leaf,
) -> Vec<LeafChange> {
    let (zero, one) = (g.zero(), g.one());
    let derivatives = match leaf {
        Leaf::Coordinate(z) => coordinate_changes(g, mechanism, z, 0),
        Leaf::Rate(z) => coordinate_changes(g, mechanism, z, 1),
        Leaf::Acceleration(z) => coordinate_changes(g, mechanism, z, 2),
        Leaf::JointVelocity(j) => vec![(j, [zero, one, zero])],
        Leaf::JointAcceleration(j) => vec![(j, [zero, zero, one])],
        _ => Vec::new(),
    };
    let mut changes: BTreeMap<usize, ExprId> = BTreeMap::new();
    for (j, [by_position, by_velocity, by_acceleration]) in derivatives {
        for &(unknown, Weights { position, velocity, acceleration }) in &unknowns.of_velocity[j] {
            let (p, q) = (g.mul(position, by_position), g.mul(velocity, by_velocity));
            let share = g.add(p, q);
            let pushed = g.mul(acceleration, by_acceleration);
            let share = g.add(share, pushed);
            let before = *changes.entry(unknown).or_insert(zero);
            changes.insert(unknown, g.add(before, share));
        }
    }
    let all = changes.into_iter().filter(|(_, change)| !g.is(*change, 0.0));
    all.map(|(unknown, change)| LeafChange { unknown, change: vec![change] }).collect()
}

/// By θ_j, v_j, vd_j. Of a coordinate (level 0), its rate (1) or the rate of that (2). Euler parameters stand at unit length, p, and
/// along the tangent move by N(p) e_j, so that with the bilinear N(a) b
///
/// p_j = N(p) e_j,   (pd)_j = N(p_j) ω,   (pdd)_j = N(p_j) ωd + N((pd)_j) ω,   pd = N(p) ω,   pdd = N(p) ωd + N(pd) ω.
fn coordinate_changes(
    g: &mut Graph,
    mechanism: &Mechanism<'_>,
    z: usize,
    level: usize,
) -> Vec<(usize, [ExprId; 3])> {
    let tree = mechanism.tree;
    let (zero, one) = (g.zero(), g.one());
    let own = |j: usize| {
        let mut by = [zero; 3];
        by[level] = one;
        vec![(j, by)]
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
        let moved = euler_parameter_rates(g, p, unit);
        let at = |x: [ExprId; 4]| x[z - first];
        match level {
            0 => [at(moved), zero, zero],
            1 => [at(euler_parameter_rates(g, moved, omega)), at(moved), zero],
            _ => {
                let faster = euler_parameter_rates(g, moved, omega);
                let (pushed, turned) =
                    (euler_parameter_rates(g, moved, alpha), euler_parameter_rates(g, faster, omega));
                let by_position = g.add(at(pushed), at(turned));
                // ∂(N(pd) ω)/∂ω_k = N(N(p) e_k) ω + N(pd) e_k
                let carried = euler_parameter_rates(g, pd, unit);
                let by_velocity = g.add(at(faster), at(carried));
                [by_position, by_velocity, at(moved)]
            }
        }
    };
    (0..3).map(|k| (v + k, change(k))).collect()
}
