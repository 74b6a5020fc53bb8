//! Fully recursive forward dynamics: articulated inertias inward, accelerations outward, O(n).
//!
//! A joint with several velocities is eliminated column by column, as if there were massless bodies
//! between them at the same reference point.

use super::Solved;
use super::inertia::{BodyInertia, Symmetric, reference_inertias};
use super::inverse_dynamics::{ground_acceleration, newton_euler};
use crate::elements::{Loads, Mechanism};
use crate::graph::{ExprId, Graph, Mat3, Vec3};
use crate::kinematics::{Accelerations, Spatial, accelerations};

/// M^A = [[linear, mixed], [mixedᵀ, angular]]
#[derive(Clone, Copy)]
struct Articulated {
    linear: Symmetric,
    mixed: Mat3,
    angular: Symmetric,
}

/// Results of the recursion, per velocity.
pub struct Articulation {
    /// Accelerations, and the pivots D = Sᵀ U.
    pub solved: Solved,
    /// U = M^A S
    pub columns: Vec<Spatial>,
    /// 1/D
    pub inverse: Vec<ExprId>,
}

/// Inertial wrench of each link about its reference point with gravity, for vd = 0.
pub fn resting_wrenches(
    g: &mut Graph,
    mechanism: &Mechanism<'_>,
    inertias: &[(ExprId, Symmetric)],
) -> Vec<Spatial> {
    let ground = ground_acceleration(g, mechanism);
    let (tree, positions, velocities) = (mechanism.tree, &mechanism.positions, &mechanism.velocities);
    let Accelerations { links } = accelerations(g, tree, positions, velocities, ground, None);
    (0..tree.links.len()).map(|i| newton_euler(g, mechanism, i, inertias[i], links[i])).collect()
}

/// vd by the articulated-body recursion, for the inertial wrenches of vd = 0: what is left is linear in vd.
pub fn articulated_body(
    g: &mut Graph,
    mechanism: &Mechanism<'_>,
    inertias: &[(ExprId, Symmetric)],
    loads: &Loads,
    resting: &[Spatial],
) -> Articulation {
    let (tree, positions) = (mechanism.tree, &mechanism.positions);
    let bodies = reference_inertias(g, mechanism, inertias);
    let mut articulated: Vec<Articulated> = bodies.iter().map(|&body| rigid(g, body)).collect();
    // p_i: what vd = 0 needs less the loads
    let mut bias: Vec<Spatial> =
        resting.iter().zip(&loads.links).map(|(&needed, &load)| g.sub6(needed, load)).collect();

    let one = g.one();
    let unset = g.zero();
    let none = g.zero_spatial();
    let mut u = vec![unset; tree.nv];
    let mut pivots = vec![one; tree.nv];
    let mut inverse = vec![one; tree.nv];
    let mut columns: Vec<Spatial> = vec![none; tree.nv];
    for (i, link) in tree.links.iter().enumerate().rev() {
        let (mut inertia, mut p) = (articulated[i], bias[i]);
        for (column, k) in positions.links[i].columns.iter().zip(link.v_range()).rev() {
            // U = M^A b, D = bᵀ U, u = Q − bᵀ p
            columns[k] = apply(g, inertia, column.motion);
            pivots[k] = g.dot6(column.motion, columns[k]);
            inverse[k] = g.div(one, pivots[k]);
            let along = g.dot6(column.motion, p);
            u[k] = g.sub(loads.generalized[k], along);
            // M^A −= U Uᵀ/D, p += U u/D
            inertia = eliminate(g, inertia, columns[k], inverse[k]);
            let share = g.mul(inverse[k], u[k]);
            let share = g.scale6(share, columns[k]);
            p = g.add6(p, share);
        }
        if let Some(parent) = link.parent {
            let shift = positions.links[i].shift;
            let shifted = shift_articulated(g, inertia, shift);
            articulated[parent] = add(g, articulated[parent], shifted);
            let p = g.shift_force(p, shift);
            bias[parent] = g.add6(bias[parent], p);
        }
    }

    // a: the part of the acceleration that vd makes
    let mut vd = vec![unset; tree.nv];
    let mut accelerations: Vec<Spatial> = Vec::with_capacity(tree.links.len());
    for (i, link) in tree.links.iter().enumerate() {
        let parent = link.parent.map_or(none, |p| accelerations[p]);
        let mut a = g.shift_motion(parent, positions.links[i].shift);
        for (column, k) in positions.links[i].columns.iter().zip(link.v_range()) {
            // vd = (u − Uᵀ a)/D, a += b vd
            let carried = g.dot6(columns[k], a);
            let rest = g.sub(u[k], carried);
            vd[k] = g.mul(rest, inverse[k]);
            let share = g.scale6(vd[k], column.motion);
            a = g.add6(a, share);
        }
        accelerations.push(a);
    }
    Articulation { solved: Solved { vd, pivots }, columns, inverse }
}

/// The pivots of the recursion alone: the inertia along each velocity when all velocities of its descendants are
/// free. They depend on neither velocities nor loads.
pub fn pivots(g: &mut Graph, mechanism: &Mechanism<'_>, inertias: &[(ExprId, Symmetric)]) -> Vec<ExprId> {
    let (tree, positions) = (mechanism.tree, &mechanism.positions);
    let bodies = reference_inertias(g, mechanism, inertias);
    let mut articulated: Vec<Articulated> = bodies.iter().map(|&body| rigid(g, body)).collect();
    let one = g.one();
    let mut pivots = vec![one; tree.nv];
    for (i, link) in tree.links.iter().enumerate().rev() {
        let mut inertia = articulated[i];
        for (column, k) in positions.links[i].columns.iter().zip(link.v_range()).rev() {
            let carried = apply(g, inertia, column.motion);
            pivots[k] = g.dot6(column.motion, carried);
            let inverse = g.div(one, pivots[k]);
            inertia = eliminate(g, inertia, carried, inverse);
        }
        if let Some(parent) = link.parent {
            let shifted = shift_articulated(g, inertia, positions.links[i].shift);
            articulated[parent] = add(g, articulated[parent], shifted);
        }
    }
    pivots
}

/// [[m I, −h̃], [h̃, J]]
fn rigid(g: &mut Graph, body: BodyInertia) -> Articulated {
    let (m, zero) = (body.mass, g.zero());
    let opposite = g.neg3(body.moment);
    Articulated {
        linear: Symmetric([m, m, m, zero, zero, zero]),
        mixed: g.skew(opposite),
        angular: body.inertia,
    }
}

fn add(g: &mut Graph, a: Articulated, b: Articulated) -> Articulated {
    Articulated {
        linear: g.add_symmetric(a.linear, b.linear),
        mixed: g.add33(a.mixed, b.mixed),
        angular: g.add_symmetric(a.angular, b.angular),
    }
}

fn apply(g: &mut Graph, a: Articulated, motion: Spatial) -> Spatial {
    let (l1, l2) = (g.apply(a.linear.matrix(), motion.linear), g.apply(a.mixed, motion.angular));
    let (a1, a2) = (g.apply_transposed(a.mixed, motion.linear), g.apply(a.angular.matrix(), motion.angular));
    Spatial { linear: g.add3(l1, l2), angular: g.add3(a1, a2) }
}

/// M^A − U Uᵀ/D
fn eliminate(g: &mut Graph, a: Articulated, u: Spatial, inverse: ExprId) -> Articulated {
    let scaled = g.scale6(inverse, u);
    let mut less = |entry: ExprId, x: ExprId, y: ExprId| {
        let product = g.mul(x, y);
        g.sub(entry, product)
    };
    let mut symmetric = |s: Symmetric, x: Vec3, y: Vec3| {
        let [xx, yy, zz, xy, xz, yz] = s.0;
        Symmetric([
            less(xx, x[0], y[0]),
            less(yy, x[1], y[1]),
            less(zz, x[2], y[2]),
            less(xy, x[0], y[1]),
            less(xz, x[0], y[2]),
            less(yz, x[1], y[2]),
        ])
    };
    let linear = symmetric(a.linear, scaled.linear, u.linear);
    let angular = symmetric(a.angular, scaled.angular, u.angular);
    let mixed = Mat3(std::array::from_fn(|i| {
        std::array::from_fn(|j| less(a.mixed.0[i][j], scaled.linear[i], u.angular[j]))
    }));
    Articulated { linear, mixed, angular }
}

/// Bᵀ M^A B with B = [[I, −s̃], [0, I]]:
/// mixed' = mixed − linear s̃, angular' = angular − mixedᵀ s̃ + s̃ mixed'
fn shift_articulated(g: &mut Graph, a: Articulated, shift: Vec3) -> Articulated {
    if g.is_zero_vector(shift) {
        return a;
    }
    let s = g.skew(shift);
    let opposite = g.neg3(shift);
    let minus_s = g.skew(opposite);
    let moved = g.product(a.linear.matrix(), minus_s);
    let mixed = g.add33(a.mixed, moved);
    let first = g.product(a.mixed.transposed(), minus_s);
    let second = g.product(s, mixed);
    let sum = g.add33(first, second);
    Articulated { linear: a.linear, mixed, angular: g.add_symmetric(a.angular, Symmetric::upper(sum)) }
}
