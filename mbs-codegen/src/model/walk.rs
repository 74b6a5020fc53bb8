//! The parts of expressions, one after the other: what every question about an expression is asked of.

use super::{ArrayRef, Scalar, Vector};

/// A part of an expression.
#[derive(Clone, Copy, Debug)]
pub enum Part<'e> {
    /// A number.
    Scalar(&'e Scalar),
    /// Three.
    Vector(&'e Vector),
}

impl Scalar {
    /// Calls `f` for the expression itself, then for every expression in it.
    pub fn for_each_part<'e>(&'e self, f: &mut dyn FnMut(Part<'e>)) {
        f(Part::Scalar(self));
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
            Scalar::Element(_, a) | Scalar::Negate(a) | Scalar::Derivative(a) => a.for_each_part(f),
            Scalar::Binary(_, a, b) => {
                a.for_each_part(f);
                b.for_each_part(f);
            }
            Scalar::Call(_, arguments) => arguments.iter().for_each(|a| a.for_each_part(f)),
            Scalar::Select(_, parts) => parts.iter().for_each(|a| a.for_each_part(f)),
            Scalar::Table { at, knots, values } | Scalar::Spline { at, knots, values, .. } => {
                at.for_each_part(f);
                for array in [knots, values] {
                    if let ArrayRef::Literal(items) = array {
                        items.iter().for_each(|a| a.for_each_part(f));
                    }
                }
            }
            Scalar::Dot(a, b) => {
                a.for_each_part(f);
                b.for_each_part(f);
            }
            Scalar::Norm(a) | Scalar::Component(a, _) => a.for_each_part(f),
        }
    }

    /// Whether it changes with time itself, not only with the state.
    pub fn depends_on_time(&self) -> bool {
        let mut found = false;
        self.for_each_part(&mut |part| found |= matches!(part, Part::Scalar(Scalar::Time)));
        found
    }

    /// How many parts the expression has.
    pub fn size(&self) -> usize {
        let mut size = 0;
        self.for_each_part(&mut |_| size += 1);
        size
    }
}

impl Vector {
    /// Calls `f` for the expression itself, then for every expression in it.
    pub fn for_each_part<'e>(&'e self, f: &mut dyn FnMut(Part<'e>)) {
        f(Part::Vector(self));
        match self {
            Vector::Components(c) => c.iter().for_each(|a| a.for_each_part(f)),
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
            | Vector::Mirror { of: a, .. } => a.for_each_part(f),
            Vector::Add(a, b) | Vector::Subtract(a, b) | Vector::Cross(a, b) => {
                a.for_each_part(f);
                b.for_each_part(f);
            }
            Vector::Scale(s, a) | Vector::Divide(a, s) => {
                s.for_each_part(f);
                a.for_each_part(f);
            }
        }
    }

    /// How many parts the expression has.
    pub fn size(&self) -> usize {
        let mut size = 0;
        self.for_each_part(&mut |_| size += 1);
        size
    }
}
