//! How an element's placeholders move with the joints, and so along a direction.
//!
//! For a point r of link i, and a column S_j that moves it (V₀ before j's group, V_i of the link):
//! ∂r/∂θ_j = s_j + w_j × r,  ∂V_i/∂θ_j = S_j × (V_i − V₀),  ∂(axis)/∂θ_j = w_j × axis,  ∂V_i/∂v_j = S_j.

use super::direction::{Direction, Weights};
use super::motion::{Column, movers};
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

/// One entry per unknown that moves the placeholder: Σ over its terms of w_p ∂leaf/∂θ_j + w_v ∂leaf/∂v_j.
pub(super) fn leaf_changes(
    g: &mut Graph,
    mechanism: &mut Mechanism<'_>,
    columns: &[Column],
    parents: &[Option<usize>],
    directions: &[Direction],
    leaf: Leaf,
) -> Vec<LeafChange> {
    let mut of_velocity: Vec<Vec<(usize, Weights)>> = vec![Vec::new(); mechanism.tree.nv];
    for (unknown, direction) in directions.iter().enumerate() {
        for term in &direction.terms {
            of_velocity[term.j].push((unknown, term.weights));
        }
    }
    let zero = g.zero();
    let mut changes: BTreeMap<usize, Vec<ExprId>> = BTreeMap::new();
    for derivative in leaf_derivatives(g, mechanism, columns, parents, leaf) {
        for &(unknown, weights) in &of_velocity[derivative.j] {
            let change = changes.entry(unknown).or_insert_with(|| vec![zero; derivative.by_position.len()]);
            let parts = derivative.by_position.iter().zip(&derivative.by_velocity);
            for (sum, (&position, &velocity)) in change.iter_mut().zip(parts) {
                let (p, q) = (g.mul(weights.position, position), g.mul(weights.velocity, velocity));
                let share = g.add(p, q);
                *sum = g.add(*sum, share);
            }
        }
    }
    let moving = changes.into_iter().filter(|(_, change)| change.iter().any(|&c| c != zero));
    moving.map(|(unknown, change)| LeafChange { unknown, change }).collect()
}

/// Derivatives of a placeholder's scalars by θ_j and by v_j.
struct LeafDerivative {
    j: usize,
    by_position: Vec<ExprId>,
    by_velocity: Vec<ExprId>,
}

/// One entry per velocity that moves the placeholder.
fn leaf_derivatives(
    g: &mut Graph,
    mechanism: &mut Mechanism<'_>,
    columns: &[Column],
    parents: &[Option<usize>],
    leaf: Leaf,
) -> Vec<LeafDerivative> {
    match leaf {
        Leaf::Position(marker) => {
            let r = mechanism.position(g, marker);
            of_body(g, mechanism, columns, parents, marker.body, |g, column, _| {
                let zero = g.zero_vector();
                (g.shift_motion(column.s, r).linear, zero)
            })
        }
        Leaf::PointVelocity(marker) => {
            let r = mechanism.position(g, marker);
            of_body(g, mechanism, columns, parents, marker.body, |g, column, motion| {
                // v = V_lin + ω × r
                let change = motion_derivative(g, column, motion);
                let shifted = g.shift_motion(change, r).linear;
                let moved = g.shift_motion(column.s, r).linear;
                let carried = g.cross3(motion.angular, moved);
                (g.add3(shifted, carried), moved)
            })
        }
        Leaf::AngularVelocity(body) => of_body(g, mechanism, columns, parents, body, |g, column, motion| {
            (motion_derivative(g, column, motion).angular, column.s.angular)
        }),
        Leaf::Axis(body, k) => {
            let axis = mechanism.positions.rotation(g, mechanism.tree, body).column(k.into());
            of_body(g, mechanism, columns, parents, body, |g, column, _| {
                let zero = g.zero_vector();
                (g.cross3(column.s.angular, axis), zero)
            })
        }
        Leaf::Coordinate(z) => {
            let zero = g.zero();
            let along = coordinate_map(g, mechanism, z);
            let entries = along.into_iter();
            entries
                .map(|(j, d)| LeafDerivative { j, by_position: vec![d], by_velocity: vec![zero] })
                .collect()
        }
        // zd = N(z) v: ∂zd/∂v = N; along the tangent, ∂zd/∂θ_j = N(N e_j) v
        Leaf::Rate(z) => rate_derivatives(g, mechanism, z),
        Leaf::JointVelocity(j) => {
            let (zero, one) = (g.zero(), g.one());
            vec![LeafDerivative { j, by_position: vec![zero], by_velocity: vec![one] }]
        }
    }
}

/// S_j × (V_i − V₀)
fn motion_derivative(g: &mut Graph, column: &Column, motion: Spatial) -> Spatial {
    let relative = g.sub6(motion, column.before);
    g.cross_motion(column.s, relative)
}

fn of_body(
    g: &mut Graph,
    mechanism: &Mechanism<'_>,
    columns: &[Column],
    parents: &[Option<usize>],
    body: BodyId,
    derivative: impl Fn(&mut Graph, &Column, Spatial) -> (Vec3, Vec3),
) -> Vec<LeafDerivative> {
    // The nearest link with a joint velocity, on the way to ground.
    let mut link = mechanism.tree.link_of_body[body.index()];
    let Some(own) = link else {
        return Vec::new();
    };
    let motion = mechanism.velocities.links[own].motion;
    while let Some(i) = link {
        let range = mechanism.tree.links[i].v_range();
        if let Some(last) = range.last() {
            return movers(columns, parents, last)
                .into_iter()
                .map(|j| {
                    let (by_position, by_velocity) = derivative(g, &columns[j], motion);
                    LeafDerivative {
                        j,
                        by_position: by_position.0.to_vec(),
                        by_velocity: by_velocity.0.to_vec(),
                    }
                })
                .collect();
        }
        link = mechanism.tree.links[i].parent;
    }
    Vec::new()
}

/// The velocities that change a coordinate, and how much: a row of N, for Euler parameters at unit length.
fn coordinate_map(g: &mut Graph, mechanism: &Mechanism<'_>, z: usize) -> Vec<(usize, ExprId)> {
    let tree = mechanism.tree;
    match tree.link_of_z(z).map(|link| (link, link.euler_parameters())) {
        Some((_, Some((first, v)))) if z >= first => {
            let p = mechanism.unit_euler_parameters(g, first);
            (0..3).map(|k| (v + k, unit_rates(g, p, k)[z - first])).collect()
        }
        Some((link, _)) => vec![(link.v + z - link.z, g.one())],
        None => vec![(tree.variables_v + z - tree.variables_z, g.one())],
    }
}

/// Column k of N(p).
fn unit_rates(g: &mut Graph, p: [ExprId; 4], k: usize) -> [ExprId; 4] {
    let mut unit = g.zero_vector();
    unit.0[k] = g.one();
    euler_parameter_rates(g, p, unit)
}

fn rate_derivatives(g: &mut Graph, mechanism: &Mechanism<'_>, z: usize) -> Vec<LeafDerivative> {
    let map = coordinate_map(g, mechanism, z);
    let link = mechanism.tree.link_of_z(z);
    let euler = link.and_then(|link| link.euler_parameters()).filter(|&(first, _)| z >= first);
    map.into_iter()
        .map(|(j, by_velocity)| {
            let by_position = match euler {
                Some((first, v)) => {
                    let p = mechanism.unit_euler_parameters(g, first);
                    let moved = unit_rates(g, p, j - v);
                    let omega = Vec3(std::array::from_fn(|k| g.symbol(Group::V, (v + k) as u32)));
                    euler_parameter_rates(g, moved, omega)[z - first]
                }
                None => g.zero(),
            };
            LeafDerivative { j, by_position: vec![by_position], by_velocity: vec![by_velocity] }
        })
        .collect()
}
