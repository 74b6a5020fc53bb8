//! All constraint rows of a model: closure of the cut joints, then the file's constraints.
//!
//! Input: a [`Model`] and its [`Tree`]. Output: [`Row`]s, each one expression that must vanish.
//!
//! | symbol | meaning |
//! |---|---|
//! | r_p, r_c | the joint's point on the parent and on the child, world |
//! | a, n1, n2 | the joint's frame on a side: its axis, its reference made normal to the axis, a × n1 |
//! | d | r_c − r_p |
//!
//! | joint | rows |
//! |---|---|
//! | spherical | d |
//! | revolute | d, a_p · n1_c, a_p · n2_c |
//! | cardan | d, a_p · a_c − its constant value |
//! | fixed | d, a_p · n1_c, a_p · n2_c, n1_p · n2_c |
//! | cylindrical | d · n1_p, d · n2_p, a_p · n1_c, a_p · n2_c |
//! | prismatic | d · n1_p, d · n2_p, a_p · n1_c, a_p · n2_c, n1_p · n2_c |
//! | planar | d · a_p, a_p · n1_c, a_p · n2_c |
//! | floating | none |
//!
//! They vanish on the joint's own motion, see `kinematics/joint_motion.rs`, whichever way its angle turns.
//! They also vanish where a child is turned over (a_c = −a_p), which is another branch of the assembly.
//! All are smooth, and what orthogonalises directions is part of the expressions. Where a joint without
//! references needs n1, it is taken from the body axis that is least aligned with the joint's axis at the
//! default parameters: without references the frames of both bodies are parallel at zero, and the choice is
//! the same on both sides.

use super::Tree;
use crate::diagnostics::Span;
use crate::model::evaluate::Values;
use crate::model::{
    BodyId, ConstraintKind, Joint, JointId, JointKind, JointPoint, JointSide, MarkerRef, Model, PointRef,
    Scalar, Vector,
};

/// One equation.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Full name.
    pub name: String,
    /// What vanishes.
    pub value: Scalar,
    /// What it depends on.
    pub kind: ConstraintKind,
    /// Where it comes from.
    pub source: RowSource,
}

impl Row {
    /// Where the file gives it.
    pub fn span(&self, model: &Model) -> Span {
        match self.source {
            RowSource::Cut(joint) => model.joints[joint.index()].span,
            RowSource::Constraint(i) => model.constraints[i].span,
        }
    }
}

/// Where a row comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowSource {
    /// A cut joint.
    Cut(JointId),
    /// A constraint of the file, by its place.
    Constraint(usize),
}

/// The rows, holonomic ones first.
pub fn rows(model: &Model, tree: &Tree) -> Vec<Row> {
    let values = Values::defaults(model);
    let mut rows = Vec::new();
    for &cut in &tree.cuts {
        let joint = &model.joints[cut.index()];
        rows.extend(closure(joint, &values).into_iter().map(|(suffix, value)| Row {
            name: format!("{}.{suffix}", joint.name),
            value,
            kind: ConstraintKind::Holonomic,
            source: RowSource::Cut(cut),
        }));
    }
    for (i, constraint) in model.constraints.iter().enumerate() {
        rows.extend(constraint.rows.iter().map(|row| Row {
            name: row.name.clone(),
            value: constraint.activity.times(row.value.clone()),
            kind: constraint.kind,
            source: RowSource::Constraint(i),
        }));
    }
    // Stable: the order of the file within each kind.
    rows.sort_by_key(|row| row.kind == ConstraintKind::Nonholonomic);
    rows
}

/// Closure expressions of a joint, each with the suffix of its name. `values` choose directions that are
/// free.
pub fn closure(joint: &Joint, values: &Values) -> Vec<(&'static str, Scalar)> {
    let (r_p, r_c) = (point(&joint.parent), point(&joint.child));
    let d = r_c.minus(r_p);
    let axis = |side: &JointSide| match &side.axis {
        Some(axis) => axis.clone().unit().from_frame(side.body),
        None => Vector::constant([0.0, 0.0, 1.0]).from_frame(side.body),
    };
    if joint.kind == JointKind::Cardan {
        // With references the child's axis lies along the parent's reference at zero: a_p · a_c = 0.
        let constant = match (&joint.parent, &joint.child) {
            (JointSide { axis: Some(first), reference: None, .. }, JointSide { axis: Some(second), .. }) => {
                first.clone().unit().dot(second.clone().unit())
            }
            _ => Scalar::Number(0.0),
        };
        let angle = axis(&joint.parent).dot(axis(&joint.child)).minus(constant);
        return world(d).into_iter().chain([("axes", angle)]).collect();
    }
    let p = Frame::of(&joint.parent, values);
    let c = Frame::of(&joint.child, values);
    let across = || [("across1", d.clone().dot(p.n1.clone())), ("across2", d.clone().dot(p.n2.clone()))];
    let tilts = || [("tilt1", p.a.clone().dot(c.n1.clone())), ("tilt2", p.a.clone().dot(c.n2.clone()))];
    let twist = || ("twist", p.n1.clone().dot(c.n2.clone()));
    match joint.kind {
        JointKind::Spherical => world(d).into(),
        JointKind::Revolute => world(d.clone()).into_iter().chain(tilts()).collect(),
        JointKind::Fixed => world(d.clone()).into_iter().chain(tilts()).chain([twist()]).collect(),
        JointKind::Cylindrical => across().into_iter().chain(tilts()).collect(),
        JointKind::Prismatic => across().into_iter().chain(tilts()).chain([twist()]).collect(),
        JointKind::Planar => [("normal", d.clone().dot(p.a.clone()))].into_iter().chain(tilts()).collect(),
        JointKind::Cardan | JointKind::Floating => Vec::new(),
    }
}

/// The three world components.
fn world(d: Vector) -> [(&'static str, Scalar); 3] {
    [("x", d.clone().component(0)), ("y", d.clone().component(1)), ("z", d.component(2))]
}

/// Where a joint sits on a body, world.
fn point(side: &JointSide) -> Vector {
    let position = |point| Vector::Position(MarkerRef { body: side.body, point });
    match &side.point {
        JointPoint::Point(point) => position(*point),
        JointPoint::At(local) => position(PointRef::Origin).plus(local.clone().from_frame(side.body)),
    }
}

/// A joint's frame on one side, world.
struct Frame {
    a: Vector,
    n1: Vector,
    n2: Vector,
}

impl Frame {
    fn of(side: &JointSide, values: &Values) -> Frame {
        let Some(axis) = &side.axis else {
            let turned = |v| Vector::constant(v).from_frame(side.body);
            return Frame {
                a: turned([0.0, 0.0, 1.0]),
                n1: turned([1.0, 0.0, 0.0]),
                n2: turned([0.0, 1.0, 0.0]),
            };
        };
        let reference = side.reference.clone().unwrap_or_else(|| least_aligned(axis, values));
        Frame::along(side.body, axis, reference)
    }

    /// The frame of an axis and a reference given in a body's frame.
    fn along(body: BodyId, axis: &Vector, reference: Vector) -> Frame {
        let a = axis.clone().unit();
        let n1 = reference.across(a.clone());
        let n2 = a.clone().cross(n1.clone());
        Frame { a: a.from_frame(body), n1: n1.from_frame(body), n2: n2.from_frame(body) }
    }
}

/// The coordinate axis least aligned with a direction, by its value at the given parameters.
pub(crate) fn least_aligned(direction: &Vector, values: &Values) -> Vector {
    let d = values.vector(direction).unwrap_or([0.0, 0.0, 1.0]);
    let mut least = 0;
    for k in 1..3 {
        if d[k].abs() < d[least].abs() {
            least = k;
        }
    }
    let mut e = [0.0; 3];
    e[least] = 1.0;
    Vector::constant(e)
}
