//! The tree as stations: one frame per elementary motion, its axes laid so that passages are cheap.

use super::moments::Moments;
use super::passage::{EulerAngles, Passage, Step};
use crate::elements::Mechanism;
use crate::graph::{ExprId, Graph, Mat3, Vec3};
use crate::kinematics::euler_parameter_rotation;
use crate::kinematics::joint_motion::Motion;
use crate::kinematics::positions::{joint_of, rotation_about};

/// How a station moves against its parent; velocities by their places.
#[derive(Clone, Debug)]
pub(super) enum Freedom {
    /// Along directions, axes parallel to the parent's.
    Slides(Vec<(Vec3, usize)>),
    /// About a direction of its own axes.
    Turn(Vec3, usize),
    /// By an angular velocity in its own axes, three in a row.
    Ball(usize),
}

/// A frame that moves with one elementary motion against its parent.
#[derive(Clone, Debug)]
pub(super) struct Station {
    /// The station before; `None` on ground.
    pub parent: Option<usize>,
    /// From the parent's origin to this one's, in the parent's axes.
    pub offset: Vec3,
    /// To the parent's axes.
    pub passage: Passage,
    /// The same but for the turn of the motion.
    pub fixed: Passage,
    /// How it moves.
    pub freedom: Freedom,
    /// The moments of mass it carries.
    pub moments: Moments,
}

/// A turn about z by an angle q and a constant δ more: sine and cosine of q, then of δ.
struct Angle {
    variable: [ExprId; 2],
    constant: [f64; 2],
}

/// A station whose axes may still be laid otherwise.
struct Draft {
    parent: Option<usize>,
    offset: Vec3,
    /// To the parent's axes, but for the turn.
    fixed: Mat3,
    /// The same once it is laid, its last turn taken into the angle.
    euler: Option<EulerAngles>,
    /// The turn about z, where there is one.
    angle: Option<Angle>,
    /// The turn of a ball, or about a direction that parameters decide.
    turn: Option<Mat3>,
    freedom: Freedom,
    moments: Moments,
    /// Whether x has a reason to be where it is.
    laid: bool,
}

/// Where a body sits.
#[derive(Clone, Copy)]
pub(super) struct Seat {
    /// The station that carries it; `None`: ground.
    station: Option<usize>,
    /// A point of the body, in the station's axes from its origin: the origin itself unless the body is fixed to another.
    place: Vec3,
    /// The same point in the body's own frame.
    point: Vec3,
    /// The body's axes → the station's.
    pub axes: Mat3,
}

impl Seat {
    /// A point of the body in the station's axes, from its origin.
    pub(super) fn place_of(&self, g: &mut Graph, point: Vec3) -> Vec3 {
        let arm = g.sub3(point, self.point);
        let arm = g.apply(self.axes, arm);
        g.add3(self.place, arm)
    }
}

/// All stations, parents first.
pub(super) fn stations(g: &mut Graph, mechanism: &Mechanism<'_>) -> Vec<Station> {
    let mut drafts = drafts(g, mechanism);
    for s in 0..drafts.len() {
        lay(g, &mut drafts, s);
    }
    drafts.into_iter().map(|draft| draft.finished(g)).collect()
}

fn drafts(g: &mut Graph, mechanism: &Mechanism<'_>) -> Vec<Draft> {
    let (model, tree, parameters) = (mechanism.model, mechanism.tree, mechanism.parameters);
    let mut drafts: Vec<Draft> = Vec::new();
    let mut bodies: Vec<Seat> = Vec::with_capacity(tree.links.len());
    for link in &tree.links {
        let ([parent_point, child_point], motions) = joint_of(g, model, link, parameters);
        let zero = g.zero_vector();
        let seat = match link.parent {
            Some(p) => bodies[p],
            None => Seat { station: None, place: zero, point: zero, axes: g.identity() },
        };
        let (mut parent, mut axes) = (seat.station, seat.axes);
        let mut offset = seat.place_of(g, parent_point);
        let mut slides = Vec::new();
        let mut v = link.v;
        // A station for all slides together, before the first turn or at the end.
        for (number, motion) in motions.iter().enumerate() {
            if let Motion::Slide(direction, coordinate) = motion {
                let direction = g.apply(axes, *direction);
                let way = g.scale3(*coordinate, direction);
                offset = g.add3(offset, way);
                slides.push((direction, v));
                v += 1;
                if matches!(motions.get(number + 1), Some(Motion::Slide(..))) {
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
                turn: None,
                freedom: Freedom::Slides(std::mem::take(&mut slides)),
                moments: Moments::none(g),
                laid: true,
            };
            match *motion {
                Motion::Slide(..) => {}
                Motion::Offset(constant) => {
                    axes = g.product(axes, constant);
                    continue;
                }
                Motion::Turn(direction, angle) => {
                    let variable = [g.sin(angle), g.cos(angle)];
                    (draft.fixed, draft.freedom) = match constants(g, direction) {
                        Some(direction) => {
                            // Axes with z along the direction: R(u, q) = C R_z(q) Cᵀ.
                            let c = along_z(direction);
                            let c = g.matrix(c);
                            let fixed = g.product(axes, c);
                            axes = c.transposed();
                            draft.angle = Some(Angle { variable, constant: [0.0, 1.0] });
                            draft.laid = false;
                            let z = g.vector([0.0, 0.0, 1.0]);
                            (fixed, Freedom::Turn(z, v))
                        }
                        None => {
                            draft.turn = Some(rotation_about(g, direction, angle));
                            let fixed = std::mem::replace(&mut axes, identity);
                            (fixed, Freedom::Turn(direction, v))
                        }
                    };
                    v += 1;
                }
                Motion::Ball(p) => {
                    draft.turn = Some(euler_parameter_rotation(g, p));
                    draft.fixed = std::mem::replace(&mut axes, identity);
                    draft.freedom = Freedom::Ball(v);
                    v += 3;
                }
            }
            parent = Some(drafts.len());
            offset = zero;
            drafts.push(draft);
        }
        let seat = Seat { station: parent, place: offset, point: child_point, axes };
        if let Some(s) = parent {
            let moments = Moments::of_body(g, mechanism, link, &seat);
            drafts[s].moments = drafts[s].moments.plus(g, moments);
        }
        bodies.push(seat);
    }
    drafts
}

/// Lays x of the parent, if that is still free, so that the passage from `s` is R_x(α) R_z(θ), and takes the last turn into the
/// angle of `s`.
fn lay(g: &mut Graph, drafts: &mut [Draft], s: usize) {
    let (Some(p), Some(fixed)) = (drafts[s].parent, constant_matrix(g, drafts[s].fixed)) else { return };
    if drafts[s].angle.is_none() {
        return;
    }
    let mut euler = EulerAngles::of(fixed);
    let costs = euler.gamma.iter().all(|&x| x != 0.0);
    let slides = drafts.iter().any(|d| d.parent == Some(p) && matches!(d.freedom, Freedom::Slides(_)));
    if costs && !drafts[p].laid && !slides {
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
    drafts[p].laid = true;
    if let Some(angle) = &mut drafts[s].angle {
        angle.constant = sum(angle.constant, euler.theta);
    }
    drafts[s].euler = Some(euler);
}

impl Draft {
    fn finished(self, g: &mut Graph) -> Station {
        let turn = self.angle.map(|angle| {
            // sin(q + δ), cos(q + δ)
            let [sine, cosine] = angle.variable;
            let [sine_more, cosine_more] = angle.constant.map(|x| g.constant(x));
            let [sc, cs] = [g.mul(sine, cosine_more), g.mul(cosine, sine_more)];
            let [cc, ss] = [g.mul(cosine, cosine_more), g.mul(sine, sine_more)];
            [g.add(sc, cs), g.sub(cc, ss)]
        });
        let fixed = match self.euler {
            Some(euler) => {
                let mut constant = |axis: usize, [sine, cosine]: [f64; 2]| Step::Plane {
                    axis,
                    sine: g.constant(sine),
                    cosine: g.constant(cosine),
                };
                vec![constant(2, euler.gamma), constant(0, euler.alpha)]
            }
            None => vec![Step::Matrix(self.fixed)],
        };
        let mut steps = fixed.clone();
        match (turn, self.turn) {
            // What comes from ground is constant before the turn.
            (Some([sine, cosine]), _) if self.euler.is_some() || self.parent.is_none() => {
                steps.push(Step::Plane { axis: 2, sine, cosine });
            }
            (Some([sine, cosine]), _) => {
                let turn = about_z(g, sine, cosine);
                steps = vec![Step::Matrix(g.product(self.fixed, turn))];
            }
            (None, Some(turn)) => steps = vec![Step::Matrix(g.product(self.fixed, turn))],
            (None, None) => {}
        }
        let Draft { parent, offset, freedom, moments, .. } = self;
        Station { parent, offset, passage: Passage(steps), fixed: Passage(fixed), freedom, moments }
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
