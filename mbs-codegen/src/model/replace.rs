//! An input replaced by an expression, wherever the model names it.
//!
//! Input: a model, one of its inputs, an expression of time and parameters. Holds afterwards: no force, constraint, event, output or objective names
//! the input. Unlike a signal of a case, such an expression is part of the equations, so its parameters have derivatives.

use super::{ArrayRef, ForceKind, InputId, Model, OutputValue, Scalar, SpringLaw, Vector};

impl Model {
    /// Puts an expression in place of an input.
    pub fn replace_input(&mut self, input: InputId, by: &Scalar) {
        let mut replace = |scalar: &mut Scalar| {
            if matches!(scalar, Scalar::Input(id) if *id == input) {
                *scalar = by.clone();
            }
        };
        let f: &mut dyn FnMut(&mut Scalar) = &mut replace;
        for force in &mut self.forces {
            match &mut force.kind {
                ForceKind::Spring { law, .. } | ForceKind::TorsionalSpring { law, .. } => match law {
                    SpringLaw::Linear { stiffness, damping, natural } => {
                        [stiffness, damping, natural].into_iter().for_each(|part| part.change(f));
                    }
                    SpringLaw::Expression(law) => law.change(f),
                },
                ForceKind::Force { value, .. } | ForceKind::Torque { value, .. } => value.change(f),
                ForceKind::JointForce { value, .. } => value.change(f),
            }
        }
        for row in self.constraints.iter_mut().flat_map(|constraint| &mut constraint.rows) {
            row.value.change(f);
        }
        for event in &mut self.events {
            event.when.change(f);
            event.armed.iter_mut().for_each(|armed| armed.change(f));
            for condition in &mut event.conditions {
                condition.expressions_mut().into_iter().for_each(|part| part.change(f));
            }
            event.settings.iter_mut().for_each(|(_, value)| value.change(f));
            event.placements.iter_mut().for_each(|(_, value)| value.change(f));
        }
        for output in &mut self.outputs {
            match &mut output.value {
                OutputValue::Scalar(value) => value.change(f),
                OutputValue::Vector(value) => value.change(f),
            }
        }
        for objective in &mut self.objectives {
            objective.integrand.change(f);
            objective.terminal.change(f);
        }
    }
}

impl Scalar {
    /// Calls `f` for every scalar of the expression, inner ones first.
    fn change(&mut self, f: &mut dyn FnMut(&mut Scalar)) {
        match self {
            Scalar::Number(_)
            | Scalar::Time
            | Scalar::Parameter(_)
            | Scalar::Input(_)
            | Scalar::Coordinate(_)
            | Scalar::Rate(_)
            | Scalar::Acceleration(_)
            | Scalar::Velocity(_)
            | Scalar::Multiplier(_)
            | Scalar::Length
            | Scalar::LengthRate => {}
            Scalar::Element(_, a) | Scalar::Negate(a) | Scalar::Derivative(a) => a.change(f),
            Scalar::Binary(_, a, b) => {
                a.change(f);
                b.change(f);
            }
            Scalar::Call(_, arguments) => arguments.iter_mut().for_each(|a| a.change(f)),
            Scalar::Select(_, parts) => parts.iter_mut().for_each(|a| a.change(f)),
            Scalar::Table { at, knots, values } | Scalar::Spline { at, knots, values, .. } => {
                at.change(f);
                for array in [knots, values] {
                    if let ArrayRef::Literal(items) = array {
                        items.iter_mut().for_each(|a| a.change(f));
                    }
                }
            }
            Scalar::Dot(a, b) => {
                a.change(f);
                b.change(f);
            }
            Scalar::Norm(a) | Scalar::Component(a, _) => a.change(f),
        }
        f(self);
    }
}

impl Vector {
    fn change(&mut self, f: &mut dyn FnMut(&mut Scalar)) {
        match self {
            Vector::Components(c) => c.iter_mut().for_each(|a| a.change(f)),
            Vector::Position(_)
            | Vector::PointVelocity(_)
            | Vector::PointAcceleration(_)
            | Vector::Direction(..)
            | Vector::AngularVelocity(_)
            | Vector::AngularAcceleration(_)
            | Vector::ReactionForce(_)
            | Vector::ReactionTorque(_) => {}
            Vector::FromFrame(_, a)
            | Vector::InFrame(_, a)
            | Vector::Negate(a)
            | Vector::Unit(a)
            | Vector::Mirror { of: a, .. } => a.change(f),
            Vector::Add(a, b) | Vector::Subtract(a, b) | Vector::Cross(a, b) => {
                a.change(f);
                b.change(f);
            }
            Vector::Scale(s, a) | Vector::Divide(a, s) => {
                s.change(f);
                a.change(f);
            }
        }
    }
}
