//! What drawing needs of a model in numbers: outputs are added to the model that ask for it, and evaluated at every time.

use super::{Frame, Geometry, Paint, Solid};
use crate::shapes::P;
use mbs_codegen::model::{
    Body, BodyId, Case, JointPoint, MarkerRef, Model, Output, OutputValue, PointRef, Scalar, Shape,
    ShapeKind, Vector,
};
use mbs_codegen::program::{BundleKind, Options, Program};
use mbs_engine::Interpreted;
use mbs_runtime::{At, Outputs, System};

/// What is asked of the model at every time: vectors, by place.
struct Questions {
    vectors: Vec<Vector>,
}

impl Questions {
    fn ask(&mut self, vector: Vector) -> usize {
        self.vectors.push(vector);
        self.vectors.len() - 1
    }

    /// A number, as the first component of a vector.
    fn ask_scalar(&mut self, scalar: &Scalar) -> usize {
        let zero = || Scalar::Number(0.0);
        self.ask(Vector::Components(Box::new([scalar.clone(), zero(), zero()])))
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

/// Where the answers about a body begin, those about its points, and about its shapes.
type Asked<'m> = (usize, Vec<usize>, Vec<(&'m Shape, usize)>);

/// Asks for the numbers of a shape; the place of the first.
fn ask_shape(questions: &mut Questions, kind: &ShapeKind) -> usize {
    let (vectors, radius) = match kind {
        ShapeKind::Box { at, size } | ShapeKind::Ellipsoid { at, size } => (vec![at, size], None),
        ShapeKind::Sphere { at, radius } => (vec![at], Some(radius)),
        ShapeKind::Cylinder { ends: [from, to], radius }
        | ShapeKind::Capsule { ends: [from, to], radius } => (vec![from, to], Some(radius)),
    };
    let first = questions.vectors.len();
    questions.vectors.extend(vectors.into_iter().cloned());
    if let Some(radius) = radius {
        questions.ask_scalar(radius);
    }
    first
}

/// A shape from the answers to what was asked of it.
fn solid(shape: &Shape, answers: &[P]) -> (Paint, Solid) {
    let solid = match shape.kind {
        ShapeKind::Box { .. } => Solid::Box { at: answers[0], size: answers[1] },
        ShapeKind::Ellipsoid { .. } => Solid::Ellipsoid { at: answers[0], size: answers[1] },
        ShapeKind::Sphere { .. } => Solid::Ellipsoid { at: answers[0], size: [2.0 * answers[1][0]; 3] },
        ShapeKind::Cylinder { .. } => {
            Solid::Cylinder { ends: [answers[0], answers[1]], radius: answers[2][0] }
        }
        ShapeKind::Capsule { .. } => Solid::Capsule { ends: [answers[0], answers[1]], radius: answers[2][0] },
    };
    (shape.colour.map_or(Paint::Body, Paint::Colour), solid)
}

/// Asks the model for everything.
pub(super) fn evaluate<'a>(
    model: &'a Model,
    case: Option<&Case>,
    parameters: &[f64],
    times: &[f64],
    chosen: &[usize],
    position: impl Fn(usize, &mut [f64]),
) -> Option<Geometry<'a>> {
    let mut questions = Questions { vectors: Vec::new() };
    let bodies = model.bodies.iter().enumerate().map(|(b, body)| {
        let id = BodyId(b as u32);
        let origin = questions.ask(Vector::Position(MarkerRef { body: id, point: PointRef::Origin }));
        for axis in [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]] {
            questions.ask(Vector::FromFrame(id, Box::new(components(axis))));
        }
        let inertia = &body.inertia;
        questions.ask(body.com.clone());
        let diagonal = [inertia.xx.clone(), inertia.yy.clone(), inertia.zz.clone()];
        questions.ask(Vector::Components(Box::new(diagonal)));
        questions.ask_scalar(&body.mass);
        let points: Vec<usize> = body.points.iter().map(|(_, point)| questions.ask(point.clone())).collect();
        let shapes =
            body.shapes.iter().map(|shape| (shape, ask_shape(&mut questions, &shape.kind))).collect();
        (origin, points, shapes)
    });
    let bodies: Vec<Asked<'_>> = bodies.collect();
    let side = |questions: &mut Questions, side: &mbs_codegen::model::JointSide| {
        let point = match &side.point {
            JointPoint::Point(point) => local(&model.bodies[side.body.index()], *point),
            JointPoint::At(vector) => vector.clone(),
        };
        let point = questions.ask(point);
        (point, side.axis.clone().map(|axis| questions.ask(axis)))
    };
    let joints: Vec<_> = model
        .joints
        .iter()
        .map(|joint| [side(&mut questions, &joint.parent), side(&mut questions, &joint.child)])
        .collect();
    let gravity = questions.ask(model.gravity.clone());

    // The model's own outputs stay: what uses a coordinate decides where loops are cut.
    let mut asked = model.clone();
    asked.sensitivity.clear();
    asked.cases.iter_mut().for_each(|case| case.sensitivity = None);
    let span = model.bodies.first()?.span;
    asked.outputs.extend(questions.vectors.iter().enumerate().map(|(i, vector)| Output {
        name: format!("drawn {i}"),
        unit: String::new(),
        value: OutputValue::Vector(vector.clone()),
        span,
    }));
    let options = Options { bundles: vec![BundleKind::Outputs], ..Options::default() };
    let mut interpreted: Interpreted = Interpreted::new(Program::new(&asked, case, &options).ok()?);
    interpreted.set_parameters(parameters).ok()?;

    let dims = interpreted.dims();
    let (v, u) = (vec![0.0; dims.nv], vec![0.0; dims.nu]);
    let (mut z, mut w, mut out) = (vec![0.0; dims.nq], vec![0.0; dims.workspace], vec![0.0; dims.n_outputs]);
    let mut answers = Vec::new();
    let mut frames = Vec::with_capacity(chosen.len());
    for &i in chosen {
        position(i, &mut z);
        let at = At { t: times[i], z: &z, v: &v, x: &[], u: &u };
        interpreted.outputs(at, &v, &mut w, &mut out).ok()?;
        let own = &out[dims.n_outputs - 3 * questions.vectors.len()..];
        answers = own.chunks_exact(3).map(|p| [p[0], p[1], p[2]]).collect::<Vec<P>>();
        if answers.iter().flatten().any(|x| !x.is_finite()) {
            return None;
        }
        frames.push(
            bodies.iter().map(|&(i, ..)| Frame::of([answers[i], answers[i + 1], answers[i + 2]])).collect(),
        );
    }
    if frames.is_empty() {
        return None;
    }
    Some(Geometry {
        model,
        masses: bodies.iter().map(|&(i, ..)| (answers[i + 5][0], answers[i + 3], answers[i + 4])).collect(),
        points: bodies.iter().map(|(_, points, _)| points.iter().map(|&i| answers[i]).collect()).collect(),
        shapes: bodies
            .iter()
            .map(|(_, _, shapes)| shapes.iter().map(|&(shape, i)| solid(shape, &answers[i..])).collect())
            .collect(),
        joints: joints
            .iter()
            .map(|sides| sides.map(|(point, axis)| (answers[point], axis.map(|axis| answers[axis]))))
            .collect(),
        gravity: answers[gravity],
        frames,
    })
}
