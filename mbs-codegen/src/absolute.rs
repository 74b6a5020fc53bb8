//! One model in other coordinates: every body floats, every joint is a set of constraints.
//!
//! Input: a [`Model`]. Output: a model of the same mechanism, in which names mean what they mean in the first, and
//!
//! - every body hangs on ground by a floating joint: its reference point and Euler parameters are coordinates;
//! - every joint J of the tree leads from its parent to a *frame of the joint*, a body without mass, to which its child is attached
//!   (`J_attachment`, six equations). So coordinates of J are coordinates still, and whatever names them (forces, constraints,
//!   objectives, start values) stays as it is;
//! - joints that close loops stay cut.
//!
//! Holds afterwards: no path of the tree is longer than a body and a joint, so none of the recursions over chains that joint
//! coordinates need is used. Coordinates of bodies follow from those of joints at the start (`Joint::follows`), which is therefore
//! the same in both.

use crate::model::{
    Body, BodyId, Coordinates, Formulation, Inertia, Joint, JointId, JointKind, JointPoint, JointSide, Model,
    PointRef, Scalar, Simulation, Start, Vector,
};
use crate::topology;
use std::collections::HashSet;

/// The model in coordinates of all its bodies.
pub fn in_absolute_coordinates(model: &Model) -> Model {
    let tree = topology::span(model);
    let mut absolute = model.clone();
    let mut names = Names::of(model);
    for &cut in &tree.cuts {
        absolute.joints[cut.index()].cut = Some(true);
    }
    // Parents first: a body's place at the start follows from its parent's.
    for link in &tree.links {
        let joint = &model.joints[link.joint.index()];
        if joint.kind == JointKind::Floating && joint.parent.body == BodyId::GROUND {
            absolute.joints[link.joint.index()].cut = Some(false);
            continue;
        }
        let frame = BodyId(absolute.bodies.len() as u32);
        absolute.bodies.push(frame_of_joint(joint, &mut names));
        lead_to(frame, model, link.joint, &mut absolute);
        absolute.joints.push(attachment(joint, frame, &mut names));
        absolute.joints.push(floating(model, link.body, frame, &mut names));
    }
    absolute.coordinates = Coordinates::Absolute;
    let cases = absolute.cases.iter_mut().map(|case| &mut case.simulation);
    cases.chain([&mut absolute.simulation]).for_each(enforce_constraints);
    absolute
}

/// Explicit integrators, which a tree may have by default, enforce constraints at the level of accelerations.
fn enforce_constraints(simulation: &mut Simulation) {
    if simulation.integrator.is_explicit() && simulation.formulation == Formulation::Ali3p {
        simulation.formulation = Formulation::Index1;
    }
}

/// Names that are taken.
struct Names(HashSet<String>);

impl Names {
    fn of(model: &Model) -> Names {
        let (bodies, joints) = (model.bodies.iter().map(|b| &b.name), model.joints.iter().map(|j| &j.name));
        let others = model.variables.iter().map(|v| &v.name).chain(model.constraints.iter().map(|c| &c.name));
        Names(bodies.chain(joints).chain(others).map(|name| name.to_lowercase()).collect())
    }

    /// A name like this one that nothing else has; case does not tell names apart.
    fn free(&mut self, mut name: String) -> String {
        while !self.0.insert(name.to_lowercase()) {
            name.push('_');
        }
        name
    }
}

/// A body without mass, at the child's end of a joint.
fn frame_of_joint(joint: &Joint, names: &mut Names) -> Body {
    let zero = || Scalar::Number(0.0);
    Body {
        name: names.free(format!("{}_frame", joint.name)),
        mass: zero(),
        com: origin(),
        inertia: Inertia {
            xx: zero(),
            yy: zero(),
            zz: zero(),
            xy: zero(),
            xz: zero(),
            yz: zero(),
            frame: None,
        },
        points: Vec::new(),
        vectors: Vec::new(),
        shapes: Vec::new(),
        span: joint.span,
    }
}

/// Makes a joint lead to its frame instead of its child. The frame's axes are the child's.
fn lead_to(frame: BodyId, model: &Model, id: JointId, absolute: &mut Model) {
    let joint = &mut absolute.joints[id.index()];
    let child = &model.bodies[joint.child.body.index()];
    let at = match &joint.child.point {
        JointPoint::At(at) => at.clone(),
        JointPoint::Point(PointRef::Origin) => origin(),
        JointPoint::Point(PointRef::Com) => child.com.clone(),
        JointPoint::Point(PointRef::Named(i)) => {
            child.points.get(*i as usize).map_or_else(origin, |(_, at)| at.clone())
        }
    };
    joint.child.point = JointPoint::At(at);
    joint.child.body = frame;
    joint.cut = Some(false);
}

/// The child of a joint lies on the joint's frame.
fn attachment(joint: &Joint, frame: BodyId, names: &mut Names) -> Joint {
    Joint {
        name: names.free(format!("{}_attachment", joint.name)),
        cut: Some(true),
        ..connection(JointKind::Fixed, frame, joint.child.body, joint)
    }
}

/// A body's own coordinates: the place of its origin and its Euler parameters in ground.
fn floating(model: &Model, body: BodyId, frame: BodyId, names: &mut Names) -> Joint {
    let of = &model.bodies[body.index()];
    let kind = JointKind::Floating;
    let zeros = |count: usize| vec![Scalar::Number(0.0); count];
    Joint {
        name: names.free(format!("{}_body", of.name)),
        coordinates: kind.coordinates().iter().map(|name| name.to_string()).collect(),
        velocities: kind.velocities().iter().map(|name| name.to_string()).collect(),
        start: Start { values: zeros(7), rates: zeros(6), hold: vec![false; 7] },
        cut: Some(false),
        follows: Some(frame),
        ..connection(kind, BodyId::GROUND, body, &model.joints[0])
    }
}

/// A joint between the origins of two bodies, parallel at zero.
fn connection(kind: JointKind, parent: BodyId, child: BodyId, declared: &Joint) -> Joint {
    let side =
        |body| JointSide { body, point: JointPoint::Point(PointRef::Origin), axis: None, reference: None };
    Joint {
        name: String::new(),
        kind,
        parent: side(parent),
        child: side(child),
        coordinates: Vec::new(),
        velocities: Vec::new(),
        start: Start { values: Vec::new(), rates: Vec::new(), hold: Vec::new() },
        left_handed: false,
        cut: None,
        follows: None,
        shared: None,
        span: declared.span,
    }
}

fn origin() -> Vector {
    Vector::constant([0.0; 3])
}
