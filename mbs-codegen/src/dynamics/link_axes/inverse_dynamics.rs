//! Inverse dynamics by the recursive Newton–Euler algorithm, in the axes of the frames.
//!
//! With U = α̃ + ω̃ ω̃ a point at ρ has the acceleration a + U ρ, so that
//! f = m a + U h and n = h × a + ∫ ρ × U ρ dm, the last being the skew part of U Σ   [Khalil2002].

use super::moving_frames::{FrameMotion, MovingFrame};
use crate::graph::{ExprId, Graph, Mat3, Vec3};
use crate::symbols::Group;

/// Velocity and acceleration of a frame, in its own axes.
#[derive(Clone, Copy)]
struct FrameState {
    omega: Vec3,
    /// α
    angular: Vec3,
    /// a, of the origin
    linear: Vec3,
    /// U
    acceleration_matrix: Mat3,
}

/// Inertial forces along the velocities, for a given acceleration of ground; `vd: None` leaves out M vd.
pub(super) fn inertial_forces(
    g: &mut Graph,
    frames: &[MovingFrame],
    ground: Vec3,
    vd: Option<&[ExprId]>,
    nv: usize,
) -> Vec<ExprId> {
    let states = forward_recursion(g, frames, ground, vd);
    let mut wrenches: Vec<[Vec3; 2]> =
        frames.iter().zip(&states).map(|(frame, state)| inertial_wrench(g, frame, state)).collect();
    let mut forces = vec![g.zero(); nv];
    for (s, frame) in frames.iter().enumerate().rev() {
        let [force, moment] = wrenches[s];
        match &frame.motion {
            FrameMotion::Rotation(axis, v) => forces[*v] = g.dot3(*axis, moment),
            FrameMotion::Spherical(v) => forces[*v..*v + 3].copy_from_slice(&moment.0),
            FrameMotion::Translations(translations) => {
                for &(direction, v) in translations {
                    forces[v] = g.dot3(direction, force);
                }
            }
        }
        if let Some(p) = frame.parent {
            let [up, turned] = [force, moment].map(|x| frame.rotation.to_parent(g, x));
            let arm = g.cross3(frame.offset, up);
            let moment = g.add3(turned, arm);
            wrenches[p] = [g.add3(wrenches[p][0], up), g.add3(wrenches[p][1], moment)];
        }
    }
    forces
}

/// Forward recursion, from ground to the leaves.
fn forward_recursion(
    g: &mut Graph,
    frames: &[MovingFrame],
    ground: Vec3,
    vd: Option<&[ExprId]>,
) -> Vec<FrameState> {
    let zero = g.zero_vector();
    let still =
        FrameState { omega: zero, angular: zero, linear: ground, acceleration_matrix: Mat3([zero.0; 3]) };
    let mut all: Vec<FrameState> = Vec::with_capacity(frames.len());
    for frame in frames {
        let parent = frame.parent.map_or(still, |p| all[p]);
        let rate = |g: &mut Graph, v: usize| g.symbol(Group::V, v as u32);
        let acceleration = |g: &mut Graph, v: usize| vd.map_or_else(|| g.zero(), |vd| vd[v]);
        // a + U r
        let spread = g.apply(parent.acceleration_matrix, frame.offset);
        let linear = g.add3(parent.linear, spread);
        let state = match &frame.motion {
            FrameMotion::Translations(translations) => {
                // + Σ d vd + 2 ω × Σ d v
                let (mut speed, mut linear) = (zero, linear);
                for &(direction, v) in translations {
                    let (rate, acceleration) = (rate(g, v), acceleration(g, v));
                    let share = g.scale3(rate, direction);
                    speed = g.add3(speed, share);
                    let share = g.scale3(acceleration, direction);
                    linear = g.add3(linear, share);
                }
                let two = g.constant(2.0);
                let turned = g.cross3(parent.omega, speed);
                let coriolis = g.scale3(two, turned);
                FrameState { linear: g.add3(linear, coriolis), ..parent }
            }
            rotating => {
                let (speed, change) = match rotating {
                    FrameMotion::Rotation(axis, v) => {
                        let (rate, acceleration) = (rate(g, *v), acceleration(g, *v));
                        (g.scale3(rate, *axis), g.scale3(acceleration, *axis))
                    }
                    FrameMotion::Spherical(v) => (
                        Vec3(std::array::from_fn(|k| rate(g, v + k))),
                        Vec3(std::array::from_fn(|k| acceleration(g, v + k))),
                    ),
                    FrameMotion::Translations(_) => (zero, zero),
                };
                let [omega, angular, linear] =
                    [parent.omega, parent.angular, linear].map(|x| frame.rotation.to_child(g, x));
                // α = R α_p + ω_p × s + sd with the speed s against the parent
                let turned = g.cross3(omega, speed);
                let angular = g.add3(angular, turned);
                let angular = g.add3(angular, change);
                let omega = g.add3(omega, speed);
                FrameState {
                    omega,
                    angular,
                    linear,
                    acceleration_matrix: acceleration_matrix(g, omega, angular),
                }
            }
        };
        all.push(state);
    }
    all
}

/// U = α̃ + ω̃ ω̃
fn acceleration_matrix(g: &mut Graph, omega: Vec3, alpha: Vec3) -> Mat3 {
    let squares = omega.0.map(|w| g.square(w));
    let mut u = g.skew(alpha).0;
    for i in 0..3 {
        let (j, k) = ((i + 1) % 3, (i + 2) % 3);
        let both = g.add(squares[j], squares[k]);
        u[i][i] = g.neg(both);
        let product = g.mul(omega[i], omega[j]);
        u[i][j] = g.add(product, u[i][j]);
        u[j][i] = g.add(product, u[j][i]);
    }
    Mat3(u)
}

/// f = m a + U h,
/// n_x = (UΣ)_zy − (UΣ)_yz = U_zx Σ_xy + U_zy Σ_yy − U_yx Σ_xz − U_yz Σ_zz + (U_zz − U_yy) Σ_yz + (h × a)_x, and so on.
fn inertial_wrench(g: &mut Graph, frame: &MovingFrame, state: &FrameState) -> [Vec3; 2] {
    let moments = frame.moments;
    let (u, second) = (state.acceleration_matrix.0, moments.second.matrix().0);
    let ma = g.scale3(moments.mass, state.linear);
    let spread = g.apply(state.acceleration_matrix, moments.first);
    let force = g.add3(ma, spread);
    let across = g.cross3(moments.first, state.linear);
    let moment = Vec3(std::array::from_fn(|x| {
        let (y, z) = ((x + 1) % 3, (x + 2) % 3);
        let difference = g.sub(u[z][z], u[y][y]);
        let plus =
            [g.mul(difference, second[y][z]), g.mul(u[z][x], second[x][y]), g.mul(u[z][y], second[y][y])];
        let minus = [g.mul(u[y][x], second[x][z]), g.mul(u[y][z], second[z][z])];
        let [plus, minus] = [g.sum(&plus), g.sum(&minus)];
        g.sub(plus, minus)
    }));
    [force, g.add3(moment, across)]
}
