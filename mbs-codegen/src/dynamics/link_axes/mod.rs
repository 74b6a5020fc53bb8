//! Equations of motion in the axes of the links.
//!
//! Input: a mechanism. Output: its inertial forces and its mass matrix, equal to those in world axes, mostly with fewer
//! operations: mass moments are constant, and the rotation of a joint is about one axis. The test below prints both counts.
//!
//! | symbol | meaning |
//! |---|---|
//! | frame | moves relative to its parent by one elementary motion: translations, a rotation about its z, or a spherical motion |
//! | r | from the parent's origin to the frame's, in the parent's axes |
//! | ω, α, a | angular velocity, angular acceleration, acceleration of the origin, in the frame's axes |
//! | U | α̃ + ω̃ ω̃ |
//! | m, h, Σ | ∫ dm, ∫ ρ dm, ∫ ρ ρᵀ dm about the origin |
//!
//! Axes follow the convention of Denavit and Hartenberg: z along the joint's axis, x such that the rotation to the first child frame is one
//! about x and one about z. Loads stay in world axes, since they act on points of all bodies.

mod inverse_dynamics;
mod mass_matrix;
mod mass_moments;
mod frame_rotation;
mod moving_frames;

use super::MassMatrix;
use super::inverse_dynamics::{ground_acceleration, load_forces};
use crate::elements::{Loads, Mechanism};
use crate::graph::{ExprId, Graph};
use crate::symbols::Group;
use moving_frames::{FrameMotion, MovingFrame};

impl MovingFrame {
    /// Indices of its velocities.
    fn velocities(&self) -> std::ops::Range<usize> {
        match &self.motion {
            FrameMotion::Translations(all) => all.first().map_or(0..0, |&(_, v)| v..v + all.len()),
            FrameMotion::Rotation(_, v) => *v..v + 1,
            FrameMotion::Spherical(v) => *v..v + 3,
        }
    }
}

/// A mechanism in the axes of its links.
#[derive(Clone, Debug)]
pub struct LinkAxes {
    frames: Vec<MovingFrame>,
    nv: usize,
}

impl LinkAxes {
    /// Chooses the axes and regroups mass moments toward ground.
    pub fn new(g: &mut Graph, mechanism: &Mechanism<'_>) -> LinkAxes {
        let mut frames = moving_frames::moving_frames(g, mechanism);
        mass_moments::regroup(g, &mut frames);
        LinkAxes { frames, nv: mechanism.tree.nv }
    }

    /// tau = M vd + (velocity terms) − Q for the vd of [`Group::Vd`].
    pub fn inverse_dynamics(&self, g: &mut Graph, mechanism: &Mechanism<'_>, loads: &Loads) -> Vec<ExprId> {
        let vd: Vec<ExprId> = (0..self.nv as u32).map(|j| g.symbol(Group::Vd, j)).collect();
        let ground = ground_acceleration(g, mechanism);
        let inertial = inverse_dynamics::inertial_forces(g, &self.frames, ground, Some(&vd), self.nv);
        let given = load_forces(g, mechanism, loads);
        inertial.into_iter().zip(given).map(|(needed, given)| g.sub(needed, given)).collect()
    }

    /// Q − (velocity terms): the right-hand side of M vd = Q.
    pub fn right_hand_side(&self, g: &mut Graph, mechanism: &Mechanism<'_>, loads: &Loads) -> Vec<ExprId> {
        let ground = ground_acceleration(g, mechanism);
        let inertial = inverse_dynamics::inertial_forces(g, &self.frames, ground, None, self.nv);
        let given = load_forces(g, mechanism, loads);
        inertial.into_iter().zip(given).map(|(needed, given)| g.sub(given, needed)).collect()
    }

    /// M in joint form.
    pub fn mass_matrix(&self, g: &mut Graph) -> MassMatrix {
        mass_matrix::mass_matrix(g, &self.frames, self.nv)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dynamics::{body_inertias, inverse_dynamics, mass_matrix};
    use crate::elements::{forces, loads};
    use crate::graph::interpret::Interpreter;
    use crate::kinematics::ReferencePoint;
    use crate::lowering::Parameters;

    /// Every joint, axes along coordinates, across them and decided by parameters, fixed bodies between, forks.
    const EVERY_JOINT: &str = "
mbs: 1
name: every_joint
gravity: [0.3, -1.2, -9.81]
parameters: {slant: 0.4, long: 0.7, heavy: 1.3}
bodies:
  a: &body {mass: heavy, com: [0.1, -0.2, 0.3], inertia: {xx: 0.5, yy: 0.6, zz: 0.4, xy: 0.02, xz: -0.03, yz: 0.01}, points: {p: [0.3, long, -0.2], q: [-0.1, 0.2, 0.5]}}
  b: *body
  c: *body
  d: *body
  e: *body
  f: *body
  g: *body
  h: *body
  i: *body
  j: *body
  k: *body
joints:
  floating: {type: floating, parent: ground, child: a}
  turn_x: {type: revolute, parent: a.p, child: b.q, axis: [1, 0, 0]}
  skew: {type: revolute, parent: b.p, child: c, axis: [0.3, -0.5, 0.8]}
  skew_too: {type: revolute, parent: c.p, child: d.q, axis: [-0.6, 0.1, 0.2]}
  fixed: {type: fixed, parent: {body: d, point: p, axis: [0, 0, 1], reference: [1, 0, 0]}, child: {body: e, point: q, axis: [0, 1, 0], reference: [1, 0, 1]}}
  decided: {type: revolute, parent: e.p, child: f, axis: [0, sin(slant), cos(slant)]}
  slide: {type: prismatic, parent: f.p, child: g.q, axis: [0, 0.6, 0.8]}
  cardan: {type: cardan, parent: c.q, child: h, axes: [[0, 0, 1], [1, 0.2, 0]]}
  cylinder: {type: cylindrical, parent: h.p, child: i.q, axis: [0.1, 1, 0]}
  ball: {type: spherical, parent: b.q, child: j.p}
  flat: {type: planar, parent: j.q, child: k, axis: [0, 1, 1], reference: [1, 0, 0]}
forces:
  push: {type: force, at: g.p, value: [1, 2, 3]}
  brake: {type: joint_force, coordinate: skew.angle, value: -2*rate(skew)}
";

    /// τ and M in both kinds of axes at a few states, Euler parameters not of unit length, to rounding; how many operations each takes.
    fn compare(name: &str, text: &str, most: f64) {
        let (model, _) = crate::read(name, text).unwrap_or_else(|e| panic!("{}", e.render(name, text)));
        let tree = crate::topology::span(&model);
        let mut g = Graph::new();
        let parameters = Parameters::lower(&mut g, &model, true);
        let mut mechanism = Mechanism::new(&mut g, &model, &tree, &parameters, ReferencePoint::Origin);
        let elements = forces(&mut g, &mechanism);
        let loads = loads(&mut g, &mut mechanism, &elements.iter().collect::<Vec<_>>());
        let inertias = body_inertias(&mut g, &mechanism);
        let links = LinkAxes::new(&mut g, &mechanism);
        let pairs = [
            (
                links.inverse_dynamics(&mut g, &mechanism, &loads),
                inverse_dynamics(&mut g, &mechanism, &inertias, &loads),
            ),
            (links.mass_matrix(&mut g).dense(), mass_matrix(&mut g, &mechanism, &inertias).dense()),
        ];
        for (what, (here, world)) in ["inverse dynamics", "mass matrix"].into_iter().zip(&pairs) {
            let [ours, theirs] = [here, world].map(|roots| g.operations_per_call(roots));
            println!("{name}: {what} {ours} operations, in world axes {theirs}");
            for seed in 0..3 {
                let mut at = Interpreter::new();
                let wave =
                    |k: usize, scale: f64| ((k as f64 + 1.7 * seed as f64 + 0.3) * 12.9898 * scale).sin();
                for k in 0..tree.nq {
                    at.set(Group::Z, k as u32, 0.8 * wave(k, 1.0) + 0.1);
                }
                for k in 0..tree.nv {
                    at.set(Group::V, k as u32, 2.0 * wave(k, 2.3));
                    at.set(Group::Vd, k as u32, 5.0 * wave(k, 3.1));
                }
                for k in 0..model.inputs.len() {
                    at.set(Group::U, k as u32, wave(k, 4.1));
                }
                at.set(Group::Time, 0, 0.3);
                let [a, b] = [here, world].map(|roots| at.evaluate(&g, roots));
                let size = b.iter().fold(0.0, |m: f64, x: &f64| m.max(x.abs()));
                for (k, (a, b)) in a.iter().zip(&b).enumerate() {
                    assert!((a - b).abs() <= most * size, "{name}: {what} {k}: {a} {b}");
                }
            }
        }
    }

    #[test]
    fn both_axes_agree() {
        compare("every_joint.yaml", EVERY_JOINT, 1e-13);
        for name in ["arm7", "tree20", "human43", "double_pendulum", "spinning_top", "cart_pole", "mirrored"]
        {
            let path = format!("{}/../models/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
            let text = std::fs::read_to_string(path).expect("a shipped model");
            compare(name, &text, 1e-12);
        }
    }
}
