//! Evaluates the geometry of a model for drawing: adds outputs to the model and evaluates them at every time.

use super::{Frame, Geometry, Paint, Solid};
use crate::shapes::P;
use mbs_codegen::model::{
    Body, BodyId, Case, JointPoint, MarkerRef, Model, Output, OutputValue, PointRef, Scalar, Shape,
    ShapeKind, Vector,
};
use mbs_codegen::program::{BundleKind, Options, Program};
use mbs_engine::Interpreted;
use mbs_runtime::{At, Outputs, System};

/// Vectors to evaluate at every time, by index.
struct Requests {
    vectors: Vec<Vector>,
}

impl Requests {
    fn request(&mut self, vector: Vector) -> usize {
        self.vectors.push(vector);
        self.vectors.len() - 1
    }

    /// A number, as the first component of a vector.
    fn request_scalar(&mut self, scalar: &Scalar) -> usize {
        let zero = || Scalar::Number(0.0);
        self.request(Vector::Components(Box::new([scalar.clone(), zero(), zero()])))
    }
}

fn components(numbers: [f64; 3]) -> Vector {
    Vector::Components(Box::new(numbers.map(Scalar::Number)))
}

/// A point in the frame of its body.
fn local(body: &Body, point: PointRef) -> Vector {
    match point {
        PointRef::Origin => components([0.0; 3]),
        PointRef::Com => body.com.clone(),
        PointRef::Named(i) => body.points.get(i as usize).map_or(components([0.0; 3]), |p| p.1.clone()),
    }
}

/// Indices of the first value of a body, of its points, and of its shapes.
type BodyRequest<'m> = (usize, Vec<usize>, Vec<(&'m Shape, usize)>);

/// Requests the numbers of a shape; the index of the first.
fn request_shape(requests: &mut Requests, kind: &ShapeKind) -> usize {
    let (vectors, radius) = match kind {
        ShapeKind::Box { at, size } | ShapeKind::Ellipsoid { at, size } => (vec![at, size], None),
        ShapeKind::Sphere { at, radius } => (vec![at], Some(radius)),
        ShapeKind::Cylinder { ends: [from, to], radius }
        | ShapeKind::Capsule { ends: [from, to], radius } => (vec![from, to], Some(radius)),
    };
    let first = requests.vectors.len();
    requests.vectors.extend(vectors.into_iter().cloned());
    if let Some(radius) = radius {
        requests.request_scalar(radius);
    }
    first
}

/// A shape from its evaluated numbers.
fn solid(shape: &Shape, values: &[P]) -> (Paint, Solid) {
    let solid = match shape.kind {
        ShapeKind::Box { .. } => Solid::Box { at: values[0], size: values[1] },
        ShapeKind::Ellipsoid { .. } => Solid::Ellipsoid { at: values[0], size: values[1] },
        ShapeKind::Sphere { .. } => Solid::Ellipsoid { at: values[0], size: [2.0 * values[1][0]; 3] },
        ShapeKind::Cylinder { .. } => Solid::Cylinder { ends: [values[0], values[1]], radius: values[2][0] },
        ShapeKind::Capsule { .. } => Solid::Capsule { ends: [values[0], values[1]], radius: values[2][0] },
    };
    (shape.colour.map_or(Paint::Body, Paint::Colour), solid)
}

/// Evaluates everything.
pub(super) fn evaluate<'a>(
    model: &'a Model,
    case: Option<&Case>,
    parameters: &[f64],
    times: &[f64],
    chosen: &[usize],
    position: impl Fn(usize, &mut [f64]),
) -> Option<Geometry<'a>> {
    let mut requests = Requests { vectors: Vec::new() };
    let bodies = model.bodies.iter().enumerate().map(|(b, body)| {
        let id = BodyId(b as u32);
        let origin = requests.request(Vector::Position(MarkerRef { body: id, point: PointRef::Origin }));
        for axis in [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]] {
            requests.request(Vector::FromFrame(id, Box::new(components(axis))));
        }
        let inertia = &body.inertia;
        requests.request(body.com.clone());
        let diagonal = [inertia.xx.clone(), inertia.yy.clone(), inertia.zz.clone()];
        requests.request(Vector::Components(Box::new(diagonal)));
        requests.request_scalar(&body.mass);
        let points: Vec<usize> =
            body.points.iter().map(|(_, point)| requests.request(point.clone())).collect();
        let shapes =
            body.shapes.iter().map(|shape| (shape, request_shape(&mut requests, &shape.kind))).collect();
        (origin, points, shapes)
    });
    let bodies: Vec<BodyRequest<'_>> = bodies.collect();
    let side = |requests: &mut Requests, side: &mbs_codegen::model::JointSide| {
        let point = match &side.point {
            JointPoint::Point(point) => local(&model.bodies[side.body.index()], *point),
            JointPoint::At(vector) => vector.clone(),
        };
        let point = requests.request(point);
        (point, side.axis.clone().map(|axis| requests.request(axis)))
    };
    let joints: Vec<_> = model
        .joints
        .iter()
        .map(|joint| [side(&mut requests, &joint.parent), side(&mut requests, &joint.child)])
        .collect();
    let gravity = requests.request(model.gravity.clone());

    // The model's own outputs stay, because used coordinates determine where loops are cut.
    let mut extended = model.clone();
    extended.sensitivity.clear();
    extended.cases.iter_mut().for_each(|case| case.sensitivity = None);
    let span = model.bodies.first()?.span;
    extended.outputs.extend(requests.vectors.iter().enumerate().map(|(i, vector)| Output {
        name: format!("drawn {i}"),
        unit: String::new(),
        value: OutputValue::Vector(vector.clone()),
        span,
    }));
    let options = Options { bundles: vec![BundleKind::Outputs], ..Options::default() };
    let mut interpreted: Interpreted = Interpreted::new(Program::new(&extended, case, &options).ok()?);
    interpreted.set_parameters(parameters).ok()?;

    let dims = interpreted.dims();
    let (v, u) = (vec![0.0; dims.nv], vec![0.0; dims.nu]);
    let (mut z, mut w, mut out) = (vec![0.0; dims.nq], vec![0.0; dims.workspace], vec![0.0; dims.n_outputs]);
    let mut values = Vec::new();
    let mut frames = Vec::with_capacity(chosen.len());
    for &i in chosen {
        position(i, &mut z);
        let at = At { t: times[i], z: &z, v: &v, x: &[], u: &u };
        interpreted.outputs(at, &v, &mut w, &mut out).ok()?;
        let own = &out[dims.n_outputs - 3 * requests.vectors.len()..];
        values = own.chunks_exact(3).map(|p| [p[0], p[1], p[2]]).collect::<Vec<P>>();
        if values.iter().flatten().any(|x| !x.is_finite()) {
            return None;
        }
        frames.push(
            bodies.iter().map(|&(i, ..)| Frame::of([values[i], values[i + 1], values[i + 2]])).collect(),
        );
    }
    if frames.is_empty() {
        return None;
    }
    Some(Geometry {
        model,
        masses: bodies.iter().map(|&(i, ..)| (values[i + 5][0], values[i + 3], values[i + 4])).collect(),
        points: bodies.iter().map(|(_, points, _)| points.iter().map(|&i| values[i]).collect()).collect(),
        shapes: bodies
            .iter()
            .map(|(_, _, shapes)| shapes.iter().map(|&(shape, i)| solid(shape, &values[i..])).collect())
            .collect(),
        joints: joints
            .iter()
            .map(|sides| sides.map(|(point, axis)| (values[point], axis.map(|axis| values[axis]))))
            .collect(),
        gravity: values[gravity],
        frames,
    })
}
