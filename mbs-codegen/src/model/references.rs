//! Which coordinates and velocities expressions name, and who names them.

use super::{
    ArrayRef, CoordinateRef, ForceKind, JointId, Model, OutputValue, Scalar, SpringLaw, Vector, VelocityRef,
};

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
        match self {
            Scalar::Number(_)
            | Scalar::Time
            | Scalar::Input(_)
            | Scalar::Parameter(_)
            | Scalar::Length
            | Scalar::LengthRate => {}
            Scalar::Coordinate(c) | Scalar::Rate(c) | Scalar::Acceleration(c) => f(Reference::Coordinate(*c)),
            Scalar::Velocity(v) => f(Reference::Velocity(*v)),
            Scalar::Element(_, a) | Scalar::Negate(a) => a.for_each_reference(f),
            Scalar::Binary(_, a, b) => {
                a.for_each_reference(f);
                b.for_each_reference(f);
            }
            Scalar::Call(_, arguments) => arguments.iter().for_each(|a| a.for_each_reference(f)),
            Scalar::Select(_, parts) => parts.iter().for_each(|a| a.for_each_reference(f)),
            Scalar::Table { at, knots, values } | Scalar::Spline { at, knots, values } => {
                at.for_each_reference(f);
                for array in [knots, values] {
                    if let ArrayRef::Literal(items) = array {
                        items.iter().for_each(|a| a.for_each_reference(f));
                    }
                }
            }
            Scalar::Dot(a, b) => {
                a.for_each_reference(f);
                b.for_each_reference(f);
            }
            Scalar::Norm(a) | Scalar::Component(a, _) => a.for_each_reference(f),
        }
    }
}

impl Vector {
    /// Calls `f` for every coordinate and velocity the expression names, as often as it names it.
    pub fn for_each_reference(&self, f: &mut dyn FnMut(Reference)) {
        match self {
            Vector::Components(c) => c.iter().for_each(|a| a.for_each_reference(f)),
            Vector::Position(_)
            | Vector::PointVelocity(_)
            | Vector::PointAcceleration(_)
            | Vector::Direction(..)
            | Vector::AngularVelocity(_)
            | Vector::AngularAcceleration(_) => {}
            Vector::FromFrame(_, a)
            | Vector::InFrame(_, a)
            | Vector::Negate(a)
            | Vector::Unit(a)
            | Vector::Mirror { of: a, .. } => a.for_each_reference(f),
            Vector::Add(a, b) | Vector::Subtract(a, b) | Vector::Cross(a, b) => {
                a.for_each_reference(f);
                b.for_each_reference(f);
            }
            Vector::Scale(s, a) | Vector::Divide(a, s) => {
                s.for_each_reference(f);
                a.for_each_reference(f);
            }
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
}

impl User {
    /// What and which it is: "output `height`".
    pub fn describe(self, model: &Model) -> String {
        let (what, name) = match self {
            User::Force(i) => ("force", &model.forces[i].name),
            User::Constraint(i) => ("constraint", &model.constraints[i].name),
            User::Output(i) => ("output", &model.outputs[i].name),
            User::Objective(i) => ("objective", &model.objectives[i].name),
        };
        format!("{what} `{name}`")
    }
}

impl Model {
    /// Calls `f` for everything that forces, constraints, outputs and objectives name.
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
    }
}
