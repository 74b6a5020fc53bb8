//! Centre of mass of the mechanism, and its momentum about it.
//!
//! | symbol | meaning | shape |
//! |---|---|---|
//! | G | centre of mass of all bodies | 3 |
//! | h | linear momentum, angular momentum about G | 6 |
//! | A_G | h = A_G v | 6×nv |
//! | hd₀ | dh/dt = A_G vd + hd₀ | 6 |
//!
//! Column j of A_G is the momentum M̄ᶜ_i b_j of all bodies that j moves, taken about G [OrinGoswamiLee2013]. The rate of the angular momentum about the moving
//! G is the moment of all forces about G, so hd₀ is the sum of the velocity terms of inverse
//! dynamics without gravity.

use super::inertia::Symmetric;
use super::mass_matrix::composite_inertias;
use super::terms::velocity_wrenches;
use crate::elements::Mechanism;
use crate::graph::{ExprId, Graph, Vec3};
use crate::kinematics::Spatial;
use crate::symbols::Group;

/// Centre of mass and centroidal momentum, world axes.
#[derive(Clone, Debug)]
pub struct Centroidal {
    /// G
    pub com: Vec3,
    /// Its velocity.
    pub com_velocity: Vec3,
    /// Its velocity per joint velocity, a column each.
    pub com_jacobian: Vec<Vec3>,
    /// h
    pub momentum: Spatial,
    /// A_G, a column per joint velocity.
    pub momentum_matrix: Vec<Spatial>,
    /// hd₀
    pub momentum_bias: Spatial,
}

/// Computes the centroidal quantities.
pub fn centroidal(g: &mut Graph, mechanism: &Mechanism<'_>, inertias: &[(ExprId, Symmetric)]) -> Centroidal {
    let (tree, positions) = (mechanism.tree, &mechanism.positions);
    let composite = composite_inertias(g, mechanism, inertias);
    // m G = Σ h + m o over the links on ground
    let mut mass = g.zero();
    let mut moment = g.zero_vector();
    for (i, _) in tree.links.iter().enumerate().filter(|(_, link)| link.parent.is_none()) {
        mass = g.add(mass, composite[i].mass);
        let shifted = g.scale3(composite[i].mass, positions.links[i].reference);
        let about_world = g.add3(composite[i].moment, shifted);
        moment = g.add3(moment, about_world);
    }
    let one = g.one();
    let inverse_mass = g.div(one, mass);
    let com = g.scale3(inverse_mass, moment);

    let none = g.zero_spatial();
    let mut momentum = none;
    let mut momentum_matrix = vec![none; tree.nv];
    for (i, link) in tree.links.iter().enumerate() {
        let arm = g.sub3(positions.links[i].reference, com);
        for (column, j) in positions.links[i].columns.iter().zip(link.v_range()) {
            let carried = g.apply_inertia(composite[i], column.motion);
            momentum_matrix[j] = g.shift_force(carried, arm);
            let v = g.symbol(Group::V, j as u32);
            let share = g.scale6(v, momentum_matrix[j]);
            momentum = g.add6(momentum, share);
        }
    }
    let com_jacobian = momentum_matrix.iter().map(|column| g.scale3(inverse_mass, column.linear)).collect();

    // Summed about the first link's reference point, which is common to all links if it is the origin.
    let wrenches = velocity_wrenches(g, mechanism, inertias);
    let zero = g.zero_vector();
    let about = positions.links.first().map_or(zero, |link| link.reference);
    let mut bias = none;
    for (wrench, position) in wrenches.into_iter().zip(&positions.links) {
        let arm = g.sub3(position.reference, about);
        let shifted = g.shift_force(wrench, arm);
        bias = g.add6(bias, shifted);
    }
    let arm = g.sub3(about, com);
    Centroidal {
        com,
        com_velocity: g.scale3(inverse_mass, momentum.linear),
        com_jacobian,
        momentum,
        momentum_matrix,
        momentum_bias: g.shift_force(bias, arm),
    }
}
