//! Which coordinates and velocities expressions name, and who names them.

use super::walk::Part;
use super::{CoordinateRef, ForceKind, JointId, Model, OutputValue, Scalar, SpringLaw, Vector, VelocityRef};

/// What of the state an expression names directly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference {
    /// A coordinate, its rate or its acceleration.
    Coordinate(CoordinateRef),
    /// A velocity of a joint.
    Velocity(VelocityRef),
}

impl Reference {
    /// The joint to which it belongs; `None` for a variable.
    pub fn joint(self) -> Option<JointId> {
        match self {
            Reference::Coordinate(CoordinateRef::Joint { joint, .. }) => Some(joint),
            Reference::Coordinate(CoordinateRef::Variable(_)) => None,
            Reference::Velocity(velocity) => Some(velocity.joint),
        }
    }
}

impl Scalar {
    /// Calls `f` for every coordinate and velocity the expression names, as often as it names it.
    pub fn for_each_reference(&self, f: &mut dyn FnMut(Reference)) {
        self.for_each_part(&mut |part| part.reference().into_iter().for_each(&mut *f));
    }
}

impl Vector {
    /// Calls `f` for every coordinate and velocity the expression names, as often as it names it.
    pub fn for_each_reference(&self, f: &mut dyn FnMut(Reference)) {
        self.for_each_part(&mut |part| part.reference().into_iter().for_each(&mut *f));
    }
}

impl Part<'_> {
    /// What of the state this part itself names.
    fn reference(self) -> Option<Reference> {
        match self {
            Part::Scalar(Scalar::Coordinate(c) | Scalar::Rate(c) | Scalar::Acceleration(c)) => {
                Some(Reference::Coordinate(*c))
            }
            Part::Scalar(Scalar::Velocity(v)) => Some(Reference::Velocity(*v)),
            _ => None,
        }
    }
}

impl SpringLaw {
    fn for_each_reference(&self, f: &mut dyn FnMut(Reference)) {
        match self {
            SpringLaw::Linear { stiffness, damping, natural } => {
                [stiffness, damping, natural].into_iter().for_each(|e| e.for_each_reference(f));
            }
            SpringLaw::Expression(e) => e.for_each_reference(f),
        }
    }
}

/// Who names a coordinate, by its place in the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum User {
    /// A force, as the coordinate it acts on or in an expression.
    Force(usize),
    /// A constraint.
    Constraint(usize),
    /// An output.
    Output(usize),
    /// An objective.
    Objective(usize),
    /// An event.
    Event(usize),
}

impl User {
    /// What and which it is: "output `height`".
    pub fn describe(self, model: &Model) -> String {
        let (what, name) = match self {
            User::Force(i) => ("force", &model.forces[i].name),
            User::Constraint(i) => ("constraint", &model.constraints[i].name),
            User::Output(i) => ("output", &model.outputs[i].name),
            User::Objective(i) => ("objective", &model.objectives[i].name),
            User::Event(i) => ("event", &model.events[i].name),
        };
        format!("{what} `{name}`")
    }
}

impl Model {
    /// Calls `f` for everything that forces, constraints, outputs, objectives and events name.
    pub fn for_each_reference(&self, f: &mut dyn FnMut(Reference, User)) {
        for (i, force) in self.forces.iter().enumerate() {
            let f = &mut |reference| f(reference, User::Force(i));
            match &force.kind {
                ForceKind::Spring { law, .. } => law.for_each_reference(f),
                ForceKind::TorsionalSpring { coordinate, law } => {
                    f(Reference::Coordinate(*coordinate));
                    law.for_each_reference(f);
                }
                ForceKind::Force { value, .. } | ForceKind::Torque { value, .. } => {
                    value.for_each_reference(f);
                }
                ForceKind::JointForce { coordinate, value } => {
                    f(Reference::Coordinate(*coordinate));
                    value.for_each_reference(f);
                }
            }
        }
        for (i, constraint) in self.constraints.iter().enumerate() {
            let f = &mut |reference| f(reference, User::Constraint(i));
            constraint.rows.iter().for_each(|row| row.value.for_each_reference(f));
        }
        for (i, output) in self.outputs.iter().enumerate() {
            let f = &mut |reference| f(reference, User::Output(i));
            match &output.value {
                OutputValue::Scalar(value) => value.for_each_reference(f),
                OutputValue::Vector(value) => value.for_each_reference(f),
            }
        }
        for (i, objective) in self.objectives.iter().enumerate() {
            let f = &mut |reference| f(reference, User::Objective(i));
            objective.integrand.for_each_reference(f);
            objective.terminal.for_each_reference(f);
        }
        for (i, event) in self.events.iter().enumerate() {
            let f = &mut |reference| f(reference, User::Event(i));
            event.expressions().for_each(|value| value.for_each_reference(f));
        }
    }
}
