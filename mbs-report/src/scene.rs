//! The mechanism in motion: the meshes of its bodies and their positions over time.
//!
//! Input: a model, its parameters, and coordinates at some times. Output: a [`Scene`]. Positions come from the model's own
//! equations: the scene adds outputs to the model for the frame of every body and for its points.

mod anchors;
mod bodies;
mod drawing;
mod evaluation;
mod view;

use crate::shapes::{Mesh, P, add, cross, dot, length, scale, sub, unit};
use mbs_codegen::model::{Case, MarkerRef, Model, PointRef};

/// A mechanism that moves by more than this many times its size travels.
const FAR: f64 = 4.0;

/// Maximum number of frames; the page interpolates between them.
const FRAMES: usize = 400;

/// The mechanism in motion.
#[derive(Clone, Debug)]
pub struct Scene {
    /// Drawn bodies; the first is ground.
    pub bodies: Vec<DrawnBody>,
    /// Springs.
    pub springs: Vec<Link>,
    /// Distance constraints.
    pub links: Vec<Link>,
    /// Points whose path is drawn: a name, a drawn body, a point on it.
    pub paths: Vec<(String, usize, P)>,
    /// Times of the frames, s.
    pub times: Vec<f64>,
    /// For every frame and drawn body: position x y z, and the unit quaternion w x y z of its rotation.
    pub poses: Vec<[f64; 7]>,
    /// Centre of mass of the mechanism at every frame, if it travels so far that the view follows it.
    pub centres: Option<Vec<P>>,
    /// Bounding box of everything at all times, relative to these centres if there are any.
    pub bounds: [P; 2],
    /// Upward direction.
    pub up: P,
    /// Direction of view.
    pub eye: P,
    /// Radius of a rod.
    pub radius: f64,
}

/// A drawn body.
#[derive(Clone, Debug, Default)]
pub struct DrawnBody {
    /// Its name.
    pub name: String,
    /// Default mesh, in the body's frame.
    pub mesh: Mesh,
    /// Shapes from the model, in the body's frame.
    pub shapes: Vec<(Paint, Mesh)>,
    /// Joints on it, in the body's frame.
    pub joints: Mesh,
}

impl DrawnBody {
    /// All meshes that move with it.
    pub fn parts(&self) -> impl Iterator<Item = (Paint, &Mesh)> {
        let shapes = self.shapes.iter().map(|(paint, mesh)| (*paint, mesh));
        [(Paint::Body, &self.mesh)].into_iter().chain(shapes).chain([(Paint::Joint, &self.joints)])
    }
}

/// The colour of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    /// The page's colour for this body.
    Body,
    /// The page's colour for joints.
    Joint,
    /// Red, green and blue.
    Colour([u8; 3]),
}

/// A shape of the model with evaluated sizes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Solid {
    Box { at: P, size: P },
    Ellipsoid { at: P, size: P },
    Cylinder { ends: [P; 2], radius: f64 },
    Capsule { ends: [P; 2], radius: f64 },
}

/// A line between points of two drawn bodies.
#[derive(Clone, Debug)]
pub struct Link {
    /// Its name.
    pub name: String,
    /// A drawn body and a point on it, twice.
    pub ends: [(usize, P); 2],
}

/// Position and orientation of a body: its origin and the directions of its axes x and y.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    origin: P,
    axes: [P; 3],
}

impl Frame {
    fn of([origin, x, y]: [P; 3]) -> Frame {
        Frame { origin, axes: [x, y, cross(x, y)] }
    }

    /// A point of the body in the world.
    pub(crate) fn to_world(self, p: P) -> P {
        add(self.origin, self.direction_to_world(p))
    }

    /// A direction of the body in the world.
    pub(crate) fn direction_to_world(self, p: P) -> P {
        let [x, y, z] = self.axes;
        add(add(scale(p[0], x), scale(p[1], y)), scale(p[2], z))
    }

    /// A point of the world in the body.
    pub(crate) fn to_body(self, p: P) -> P {
        self.axes.map(|axis| dot(axis, sub(p, self.origin)))
    }

    /// The unit quaternion w x y z of its rotation.
    fn quaternion(self) -> [f64; 4] {
        // The largest of the four first: 4 q_i² = 1 ± r_xx ± r_yy ± r_zz.
        let [[xx, yx, zx], [xy, yy, zy], [xz, yz, zz]] = self.axes;
        let squares = [1.0 + xx + yy + zz, 1.0 + xx - yy - zz, 1.0 - xx + yy - zz, 1.0 - xx - yy + zz];
        let k = (0..4).max_by(|&i, &j| squares[i].total_cmp(&squares[j])).unwrap_or(0);
        let products = match k {
            0 => [squares[0], zy - yz, xz - zx, yx - xy],
            1 => [zy - yz, squares[1], xy + yx, xz + zx],
            2 => [xz - zx, xy + yx, squares[2], yz + zy],
            _ => [yx - xy, xz + zx, yz + zy, squares[3]],
        };
        let n = products.iter().map(|x| x * x).sum::<f64>().sqrt();
        products.map(|x| x / n)
    }
}

/// Evaluated geometry of a model, in body frames.
pub(crate) struct Geometry<'a> {
    pub(crate) model: &'a Model,
    /// Of each body: mass, centre of mass, moments of inertia along its axes.
    pub(crate) masses: Vec<(f64, P, P)>,
    /// Of each body, its named points.
    pub(crate) points: Vec<Vec<P>>,
    /// Of each body, its shapes.
    pub(crate) shapes: Vec<Vec<(Paint, Solid)>>,
    /// Of each joint: the point and the axis of parent and child.
    pub(crate) joints: Vec<[(P, Option<P>); 2]>,
    pub(crate) gravity: P,
    /// Frames of all bodies at every time.
    pub(crate) frames: Vec<Vec<Frame>>,
}

impl Geometry<'_> {
    /// A marker in its body.
    pub(crate) fn marker(&self, marker: MarkerRef) -> P {
        let body = marker.body.index();
        match marker.point {
            PointRef::Origin => [0.0; 3],
            PointRef::Com => self.masses[body].1,
            PointRef::Named(i) => self.points[body].get(i as usize).copied().unwrap_or_default(),
        }
    }
}

impl Scene {
    /// The scene of a model under a case; `position` writes the coordinates at one of the times. `None` if positions cannot be
    /// evaluated or nothing was recorded.
    pub fn new(
        model: &Model,
        case: Option<&Case>,
        parameters: &[f64],
        times: &[f64],
        position: impl Fn(usize, &mut [f64]),
    ) -> Option<Scene> {
        let stride = times.len().div_ceil(FRAMES).max(1);
        let mut chosen: Vec<usize> = (0..times.len()).step_by(stride).collect();
        if chosen.last().is_some_and(|&last| last + 1 < times.len()) {
            chosen.push(times.len() - 1);
        }
        let geometry = evaluation::evaluate(model, case, parameters, times, &chosen, position)?;
        let times = chosen.iter().map(|&i| times[i]).collect();
        Some(drawing::draw(&geometry, times))
    }
}

impl Scene {
    /// Adds another motion of the same mechanism, in one colour and with a word before its names. Nothing is added if its frames are at other times.
    pub fn overlay(&mut self, other: Scene, word: &str, colour: [u8; 3]) {
        let (own, more) = (self.bodies.len(), other.bodies.len());
        if self.times != other.times || own == 0 || more == 0 {
            return;
        }
        // Ground is there already.
        let place = |body: usize| if body == 0 { 0 } else { own + body - 1 };
        let name = |name: &str| format!("{word} {name}");
        let mut bodies = other.bodies;
        for body in bodies.iter_mut().skip(1) {
            body.name = name(&body.name);
            let mesh = std::mem::take(&mut body.mesh);
            body.shapes.iter_mut().for_each(|(paint, _)| *paint = Paint::Colour(colour));
            body.shapes.push((Paint::Colour(colour), mesh));
        }
        self.bodies.extend(bodies.into_iter().skip(1));
        let moved =
            |link: &Link| Link { name: name(&link.name), ends: link.ends.map(|(body, p)| (place(body), p)) };
        self.springs.extend(other.springs.iter().map(moved));
        self.links.extend(other.links.iter().map(moved));
        self.paths.extend(other.paths.iter().map(|(path, body, p)| (name(path), place(*body), *p)));
        let frames = self.poses.chunks(own).zip(other.poses.chunks(more));
        self.poses = frames
            .flat_map(|(own, more)| own.iter().chain(more.iter().skip(1)).copied().collect::<Vec<_>>())
            .collect();
        for k in 0..3 {
            self.bounds[0][k] = self.bounds[0][k].min(other.bounds[0][k]);
            self.bounds[1][k] = self.bounds[1][k].max(other.bounds[1][k]);
        }
    }
}

/// The unit direction against gravity; without gravity z, or y if the mechanism moves in a plane normal to z.
fn up_direction(gravity: P, normal: Option<P>) -> P {
    match normal {
        _ if length(gravity) > 0.0 => unit(scale(-1.0, gravity), [0.0, 0.0, 1.0]),
        Some(normal) if normal[2].abs() > 0.9 => [0.0, 1.0, 0.0],
        _ => [0.0, 0.0, 1.0],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quaternions_rotate_as_their_frames_do() {
        // A rotation by each angle about an axis in general position: q = (cos α/2, n sin α/2).
        let n = unit([1.0, -2.0, 0.5], [0.0; 3]);
        for k in 0..24 {
            let angle = 0.26 * f64::from(k);
            let (s, c) = angle.sin_cos();
            let turn = |p: P| add(add(scale(c, p), scale(s, cross(n, p))), scale((1.0 - c) * dot(n, p), n));
            let frame = Frame::of([[0.0; 3], turn([1.0, 0.0, 0.0]), turn([0.0, 1.0, 0.0])]);
            let (s, c) = (0.5 * angle).sin_cos();
            let expected = [c, s * n[0], s * n[1], s * n[2]];
            let product: f64 = expected.iter().zip(frame.quaternion()).map(|(a, b)| a * b).sum();
            assert!((product.abs() - 1.0).abs() < 1e-14, "{angle}: {product}");
            let p = [0.3, 0.7, -1.1];
            assert!(length(sub(frame.to_body(frame.to_world(p)), p)) < 1e-14);
        }
    }
}
