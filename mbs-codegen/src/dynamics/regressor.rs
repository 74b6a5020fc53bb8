//! Inverse dynamics as a linear function of the inertial parameters.
//!
//! | symbol | meaning | shape |
//! |---|---|---|
//! | π_i | m, m c, J: mass, first moment and inertia of body i about the origin of its frame, in its axes | 10 |
//! | a_k | axis k of the body's frame, in world axes | 3 |
//! | a₀ | acceleration of the frame's origin, gravity as an acceleration of ground | 3 |
//! | Y_ji | derivatives of tau_j with respect to π_i, zero unless j moves i | 1×10 |
//!
//! Force and moment about the origin, with J = Σ J_kl a_k a_lᵀ and h = Σ m c_k a_k:
//!
//! f = m a₀ + α × h + ω × (ω × h),   n = h × a₀ + J α + ω × J ω,
//!
//! linear in π_i; tau_j is their power along the motion that v_j gives to the origin.

use super::inertia::{BodyInertia, Symmetric, rotate_inertia};
use super::inverse_dynamics::ground_acceleration;
use crate::elements::Mechanism;
use crate::graph::{ExprId, Graph, Vec3};
use crate::kinematics::accelerations::point_acceleration;
use crate::kinematics::{Accelerations, Spatial, accelerations};
use crate::lowering::{Lowering, ParametersOnly};
use crate::model::BodyId;
use crate::symbols::Group;

/// Inertial parameters of a body.
pub const PARAMETERS: usize = 10;

/// The nonzero blocks of Y.
#[derive(Clone, Debug)]
pub struct Regressor {
    /// (velocity, body without ground), bodies in the order of the model.
    pub places: Vec<(u32, u32)>,
    /// Ten entries for each of them.
    pub entries: Vec<ExprId>,
}

/// π of all bodies except ground, in the order of the model: m, m c, then xx, yy, zz, xy, xz, yz.
pub fn inertial_parameters(g: &mut Graph, mechanism: &Mechanism<'_>) -> Vec<ExprId> {
    let mut all = Vec::new();
    for body in mechanism.model.bodies.iter().skip(1) {
        let mut nothing_moves = ParametersOnly;
        let mut lower = Lowering::new(g, mechanism.parameters, &mut nothing_moves);
        let mass = lower.scalar(&body.mass);
        let com = lower.vector(&body.com);
        let j = &body.inertia;
        let mut inertia = Symmetric([&j.xx, &j.yy, &j.zz, &j.xy, &j.xz, &j.yz].map(|e| lower.scalar(e)));
        let frame = j.frame.as_ref().map(|(axis, reference)| (lower.vector(axis), lower.vector(reference)));
        if let Some((axis, reference)) = frame {
            let frame = g.frame(axis, reference);
            inertia = rotate_inertia(g, frame, inertia);
        }
        let moment = g.zero_vector();
        let about_origin = g.shift_inertia(BodyInertia { mass, moment, inertia }, com);
        all.push(mass);
        all.extend(about_origin.moment.0);
        all.extend(about_origin.inertia.0);
    }
    all
}

/// Y for the vd of [`Group::Vd`].
pub fn regressor(g: &mut Graph, mechanism: &Mechanism<'_>) -> Regressor {
    let tree = mechanism.tree;
    let vd: Vec<ExprId> = (0..tree.nv as u32).map(|j| g.symbol(Group::Vd, j)).collect();
    let ground = ground_acceleration(g, mechanism);
    let Accelerations { links } =
        accelerations(g, tree, &mechanism.positions, &mechanism.velocities, ground, Some(&vd));
    let mut regressor = Regressor { places: Vec::new(), entries: Vec::new() };
    for (body, link) in tree.link_of_body.iter().enumerate().skip(BodyId::GROUND.index() + 1) {
        let Some(link) = *link else { continue };
        let wrenches = body_wrenches(g, mechanism, link, links[link]);
        let origin = mechanism.positions.links[link].origin;
        for (j, motion) in velocities_that_move(g, mechanism, link, origin) {
            regressor.places.push((j as u32, body as u32 - 1));
            regressor.entries.extend(wrenches.map(|wrench| g.dot6(motion, wrench)));
        }
    }
    regressor
}

/// Force and moment about the frame's origin per inertial parameter.
fn body_wrenches(
    g: &mut Graph,
    mechanism: &Mechanism<'_>,
    link: usize,
    acceleration: Spatial,
) -> [Spatial; PARAMETERS] {
    let (position, moving) = (&mechanism.positions.links[link], &mechanism.velocities.links[link]);
    let (omega, alpha) = (moving.motion.angular, acceleration.angular);
    let arm = g.sub3(position.origin, position.reference);
    let velocity = g.shift_motion(moving.motion, arm).linear;
    let a0 = point_acceleration(g, acceleration, omega, arm, velocity, moving.reference_rate);
    let zero = g.zero_vector();

    let axes: [Vec3; 3] = std::array::from_fn(|k| position.rotation.column(k));
    // ω × a_k, and α, ω along the axes
    let turned = axes.map(|axis| g.cross3(omega, axis));
    let alphas = axes.map(|axis| g.dot3(axis, alpha));
    let omegas = axes.map(|axis| g.dot3(axis, omega));
    // m c_k: f = α × a_k + ω × (ω × a_k), n = a_k × a₀
    let moments: [Spatial; 3] = std::array::from_fn(|k| {
        let (p, q) = (g.cross3(alpha, axes[k]), g.cross3(omega, turned[k]));
        Spatial { linear: g.add3(p, q), angular: g.cross3(axes[k], a0) }
    });
    // J_kl of the half a_k a_lᵀ: n = a_k (a_l·α) + (ω × a_k) (a_l·ω)
    let mut half = |k: usize, l: usize| {
        let (p, q) = (g.scale3(alphas[l], axes[k]), g.scale3(omegas[l], turned[k]));
        g.add3(p, q)
    };
    let [xx, yy, zz] = [0, 1, 2].map(|k| half(k, k));
    let mixed = [(0, 1), (0, 2), (1, 2)].map(|(k, l)| [half(k, l), half(l, k)]);
    let [xy, xz, yz] = mixed.map(|[p, q]| g.add3(p, q));
    let [x, y, z] = moments;
    let [xx, yy, zz, xy, xz, yz] = [xx, yy, zz, xy, xz, yz].map(|angular| Spatial { linear: zero, angular });
    [Spatial { linear: a0, angular: zero }, x, y, z, xx, yy, zz, xy, xz, yz]
}

/// The velocities that move a link, ascending, with the motion that each gives to the link's point at `at`.
fn velocities_that_move(
    g: &mut Graph,
    mechanism: &Mechanism<'_>,
    link: usize,
    at: Vec3,
) -> Vec<(usize, Spatial)> {
    let zero = g.zero_vector();
    let mut motions = Vec::new();
    let mut here = Some(link);
    while let Some(i) = here {
        let position = &mechanism.positions.links[i];
        let arm = g.sub3(at, position.joint_point);
        for (column, j) in position.columns.iter().zip(mechanism.tree.links[i].v_range()) {
            let motion = if column.is_rotation {
                Spatial { linear: g.cross3(column.axis, arm), angular: column.axis }
            } else {
                Spatial { linear: column.axis, angular: zero }
            };
            motions.push((j, motion));
        }
        here = mechanism.tree.links[i].parent;
    }
    motions.sort_by_key(|&(j, _)| j);
    motions
}
