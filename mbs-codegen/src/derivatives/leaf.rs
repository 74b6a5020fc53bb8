//! How an element's placeholders move with the joints.
//!
//! For a point r of link i, and a column S_j that moves it (V₀ before j's group, V_i of the link):
//! ∂r/∂θ_j = s_j + w_j × r,  ∂V_i/∂θ_j = S_j × (V_i − V₀),  ∂(axis)/∂θ_j = w_j × axis,  ∂V_i/∂v_j = S_j.

use super::motion::{Column, movers};
use crate::elements::{Leaf, Mechanism};
use crate::graph::{ExprId, Graph, Vec3};
use crate::kinematics::{Spatial, euler_parameter_rates};
use crate::lowering::Environment;
use crate::model::BodyId;
use crate::symbols::Group;

/// Derivatives of a placeholder's scalars by θ_j and by v_j.
pub(super) struct LeafDerivative {
    pub j: usize,
    pub by_position: Vec<ExprId>,
    pub by_velocity: Vec<ExprId>,
}

/// One entry per velocity that moves the placeholder.
pub(super) fn leaf_derivatives(
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

/// Row z of N: the velocities that change the coordinate, and how much.
fn coordinate_map(g: &mut Graph, mechanism: &Mechanism<'_>, z: usize) -> Vec<(usize, ExprId)> {
    let Some(link) = mechanism.tree.links.iter().find(|link| link.z_range().contains(&z)) else {
        return Vec::new();
    };
    match link.euler_parameters() {
        Some((first, v)) if z >= first => {
            let p: [ExprId; 4] = std::array::from_fn(|k| g.symbol(Group::Z, (first + k) as u32));
            (0..3).map(|k| (v + k, unit_rates(g, p, k)[z - first])).collect()
        }
        _ => vec![(link.v + z - link.z, g.one())],
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
    let link = mechanism.tree.links.iter().find(|link| link.z_range().contains(&z));
    let euler = link.and_then(|link| link.euler_parameters()).filter(|&(first, _)| z >= first);
    map.into_iter()
        .map(|(j, by_velocity)| {
            let by_position = match euler {
                Some((first, v)) => {
                    let p: [ExprId; 4] = std::array::from_fn(|k| g.symbol(Group::Z, (first + k) as u32));
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
