//! The tree as a list of frames, one per elementary motion, with axes chosen so that the rotations between them are cheap.

use super::frame_rotation::{EulerAngles, Factor, FrameRotation};
use super::mass_moments::MassMoments;
use crate::elements::Mechanism;
use crate::graph::{ExprId, Graph, Mat3, Vec3};
use crate::kinematics::euler_parameter_rotation;
use crate::kinematics::joint_motion::Motion;
use crate::kinematics::positions::{joint_of, rotation_about};

/// Motion of a frame relative to its parent, with the indices of its velocities.
#[derive(Clone, Debug)]
pub(super) enum FrameMotion {
    /// Translations along directions; the axes are parallel to the parent's.
    Translations(Vec<(Vec3, usize)>),
    /// Rotation about a direction in the frame's own axes.
    Rotation(Vec3, usize),
    /// Rotation with an angular velocity in the frame's own axes: three consecutive velocities.
    Spherical(usize),
}

/// A frame that moves relative to its parent by one elementary motion.
#[derive(Clone, Debug)]
pub(super) struct MovingFrame {
    /// The parent frame; `None` for ground.
    pub parent: Option<usize>,
    /// From the parent's origin to this one's, in the parent's axes.
    pub offset: Vec3,
    /// Rotation to the parent's axes.
    pub rotation: FrameRotation,
    /// The constant part of the rotation, without that of the motion.
    pub fixed: FrameRotation,
    /// Motion relative to the parent.
    pub motion: FrameMotion,
    /// Moments of the mass attached to the frame.
    pub moments: MassMoments,
}

/// A rotation about z by an angle q plus a constant δ: sine and cosine of q, then of δ.
struct Angle {
    variable: [ExprId; 2],
    constant: [f64; 2],
}

/// A frame whose x axis may still change.
struct Draft {
    parent: Option<usize>,
    offset: Vec3,
    /// Constant rotation to the parent's axes.
    fixed: Mat3,
    /// The same as Euler angles once x is chosen; their last rotation is part of `angle`.
    euler: Option<EulerAngles>,
    /// Rotation about z, if the motion is one.
    angle: Option<Angle>,
    /// Rotation by Euler parameters, or about a direction that depends on parameters.
    general: Option<Mat3>,
    motion: FrameMotion,
    moments: MassMoments,
    /// Whether the direction of x is final.
    x_is_chosen: bool,
}

/// Position and orientation of a body in the frame that carries it.
#[derive(Clone, Copy)]
pub(super) struct BodyPlacement {
    /// Index of the frame; `None` for ground.
    frame: Option<usize>,
    /// Position of a point of the body in the frame; zero unless the body is fixed to another one.
    position: Vec3,
    /// The same point in the body's own frame.
    point: Vec3,
    /// Rotation from the body's axes to the frame's.
    pub axes: Mat3,
}

impl BodyPlacement {
    /// Position of a point of the body in the frame.
    pub(super) fn position_of(&self, g: &mut Graph, point: Vec3) -> Vec3 {
        let arm = g.sub3(point, self.point);
        let arm = g.apply(self.axes, arm);
        g.add3(self.position, arm)
    }
}

/// The frames of a mechanism, parents first.
pub(super) fn moving_frames(g: &mut Graph, mechanism: &Mechanism<'_>) -> Vec<MovingFrame> {
    let mut drafts = draft_frames(g, mechanism);
    for s in 0..drafts.len() {
        choose_x_axis(g, &mut drafts, s);
    }
    drafts.into_iter().map(|draft| draft.finish(g)).collect()
}

fn draft_frames(g: &mut Graph, mechanism: &Mechanism<'_>) -> Vec<Draft> {
    let (model, tree, parameters) = (mechanism.model, mechanism.tree, mechanism.parameters);
    let mut drafts: Vec<Draft> = Vec::new();
    let mut bodies: Vec<BodyPlacement> = Vec::with_capacity(tree.links.len());
    for link in &tree.links {
        let ([parent_point, child_point], motions) = joint_of(g, model, link, parameters);
        let zero = g.zero_vector();
        let placement = match link.parent {
            Some(p) => bodies[p],
            None => BodyPlacement { frame: None, position: zero, point: zero, axes: g.identity() },
        };
        let (mut parent, mut axes) = (placement.frame, placement.axes);
        let mut offset = placement.position_of(g, parent_point);
        let mut translations = Vec::new();
        let mut v = link.v;
        // One frame for consecutive translations.
        for (number, motion) in motions.iter().enumerate() {
            if let Motion::Translation(direction, coordinate) = motion {
                let direction = g.apply(axes, *direction);
                let displacement = g.scale3(*coordinate, direction);
                offset = g.add3(offset, displacement);
                translations.push((direction, v));
                v += 1;
                if matches!(motions.get(number + 1), Some(Motion::Translation(..))) {
                    continue;
                }
            }
            let identity = g.identity();
            let mut draft = Draft {
                parent,
                offset,
                fixed: identity,
                euler: None,
                angle: None,
                general: None,
                motion: FrameMotion::Translations(std::mem::take(&mut translations)),
                moments: MassMoments::none(g),
                x_is_chosen: true,
            };
            match *motion {
                Motion::Translation(..) => {}
                Motion::ConstantRotation(constant) => {
                    axes = g.product(axes, constant);
                    continue;
                }
                Motion::Rotation(direction, angle) => {
                    let variable = [g.sin(angle), g.cos(angle)];
                    (draft.fixed, draft.motion) = match constants(g, direction) {
                        Some(direction) => {
                            // Axes with z along the direction: R(u, q) = C R_z(q) Cᵀ.
                            let c = along_z(direction);
                            let c = g.matrix(c);
                            let fixed = g.product(axes, c);
                            axes = c.transposed();
                            draft.angle = Some(Angle { variable, constant: [0.0, 1.0] });
                            draft.x_is_chosen = false;
                            let z = g.vector([0.0, 0.0, 1.0]);
                            (fixed, FrameMotion::Rotation(z, v))
                        }
                        None => {
                            draft.general = Some(rotation_about(g, direction, angle));
                            let fixed = std::mem::replace(&mut axes, identity);
                            (fixed, FrameMotion::Rotation(direction, v))
                        }
                    };
                    v += 1;
                }
                Motion::EulerParameters(p) => {
                    draft.general = Some(euler_parameter_rotation(g, p));
                    draft.fixed = std::mem::replace(&mut axes, identity);
                    draft.motion = FrameMotion::Spherical(v);
                    v += 3;
                }
            }
            parent = Some(drafts.len());
            offset = zero;
            drafts.push(draft);
        }
        let placement = BodyPlacement { frame: parent, position: offset, point: child_point, axes };
        if let Some(s) = parent {
            let moments = MassMoments::of_body(g, mechanism, link, &placement);
            drafts[s].moments = drafts[s].moments.plus(g, moments);
        }
        bodies.push(placement);
    }
    drafts
}

/// Chooses x of the parent of `s`, if it may still change, so that the constant rotation of `s` is R_x(α) R_z(θ), and adds θ to the angle of
/// `s` (the convention of Denavit and Hartenberg).
fn choose_x_axis(g: &mut Graph, drafts: &mut [Draft], s: usize) {
    let (Some(p), Some(fixed)) = (drafts[s].parent, constant_matrix(g, drafts[s].fixed)) else { return };
    if drafts[s].angle.is_none() {
        return;
    }
    let mut euler = EulerAngles::of(fixed);
    let is_general = euler.gamma.iter().all(|&x| x != 0.0);
    let translates =
        drafts.iter().any(|d| d.parent == Some(p) && matches!(d.motion, FrameMotion::Translations(_)));
    if is_general && !drafts[p].x_is_chosen && !translates {
        let gamma = std::mem::replace(&mut euler.gamma, [0.0, 1.0]);
        let [sine, cosine] = gamma.map(|x| g.constant(x));
        let back = about_z(g, sine, cosine).transposed();
        for draft in drafts.iter_mut().filter(|draft| draft.parent == Some(p)) {
            draft.fixed = g.product(back, draft.fixed);
            draft.offset = g.apply(back, draft.offset);
        }
        drafts[p].moments = drafts[p].moments.turned(g, back);
        if let Some(angle) = &mut drafts[p].angle {
            angle.constant = sum(angle.constant, gamma);
        }
    }
    drafts[p].x_is_chosen = true;
    if let Some(angle) = &mut drafts[s].angle {
        angle.constant = sum(angle.constant, euler.theta);
    }
    drafts[s].euler = Some(euler);
}

impl Draft {
    fn finish(self, g: &mut Graph) -> MovingFrame {
        let rotation_z = self.angle.map(|angle| {
            // sin(q + δ), cos(q + δ)
            let [sine, cosine] = angle.variable;
            let [sine_more, cosine_more] = angle.constant.map(|x| g.constant(x));
            let [sc, cs] = [g.mul(sine, cosine_more), g.mul(cosine, sine_more)];
            let [cc, ss] = [g.mul(cosine, cosine_more), g.mul(sine, sine_more)];
            [g.add(sc, cs), g.sub(cc, ss)]
        });
        let fixed = match self.euler {
            Some(euler) => {
                let mut constant = |axis: usize, [sine, cosine]: [f64; 2]| Factor::AboutAxis {
                    axis,
                    sine: g.constant(sine),
                    cosine: g.constant(cosine),
                };
                vec![constant(2, euler.gamma), constant(0, euler.alpha)]
            }
            None => vec![Factor::Matrix(self.fixed)],
        };
        let mut factors = fixed.clone();
        match (rotation_z, self.general) {
            // Vectors of ground are constant before this rotation.
            (Some([sine, cosine]), _) if self.euler.is_some() || self.parent.is_none() => {
                factors.push(Factor::AboutAxis { axis: 2, sine, cosine });
            }
            (Some([sine, cosine]), _) => {
                let rotation = about_z(g, sine, cosine);
                factors = vec![Factor::Matrix(g.product(self.fixed, rotation))];
            }
            (None, Some(rotation)) => factors = vec![Factor::Matrix(g.product(self.fixed, rotation))],
            (None, None) => {}
        }
        let Draft { parent, offset, motion, moments, .. } = self;
        MovingFrame {
            parent,
            offset,
            rotation: FrameRotation(factors),
            fixed: FrameRotation(fixed),
            motion,
            moments,
        }
    }
}

/// A right-handed frame with z along a unit vector, exact for coordinate axes.
fn along_z(u: [f64; 3]) -> [[f64; 3]; 3] {
    let largest = (0..3).fold(0, |best, k| if u[k].abs() > u[best].abs() { k } else { best });
    // x: the next coordinate axis, made orthogonal to u.
    let mut x = [0.0; 3];
    x[(largest + 1) % 3] = 1.0;
    let along: f64 = (0..3).map(|k| x[k] * u[k]).sum();
    let x: [f64; 3] = std::array::from_fn(|k| x[k] - along * u[k]);
    let length = x.iter().map(|x| x * x).sum::<f64>().sqrt();
    let x = x.map(|x| x / length);
    let y: [f64; 3] = std::array::from_fn(|k| {
        let (i, j) = ((k + 1) % 3, (k + 2) % 3);
        u[i] * x[j] - u[j] * x[i]
    });
    std::array::from_fn(|row| [x[row], y[row], u[row]])
}

fn about_z(g: &mut Graph, sine: ExprId, cosine: ExprId) -> Mat3 {
    let (zero, one, back) = (g.zero(), g.one(), g.neg(sine));
    Mat3([[cosine, back, zero], [sine, cosine, zero], [zero, zero, one]])
}

/// Sine and cosine of a sum of angles.
fn sum([s1, c1]: [f64; 2], [s2, c2]: [f64; 2]) -> [f64; 2] {
    [s1 * c2 + c1 * s2, c1 * c2 - s1 * s2]
}

fn constants(g: &Graph, v: Vec3) -> Option<[f64; 3]> {
    let [x, y, z] = v.0.map(|x| g.constant_value(x));
    Some([x?, y?, z?])
}

fn constant_matrix(g: &Graph, m: Mat3) -> Option<[[f64; 3]; 3]> {
    let [a, b, c] = m.0.map(|row| constants(g, Vec3(row)));
    Some([a?, b?, c?])
}
