//! Traversals of expressions, shared by everything that asks about or changes an expression.

use super::{ArrayRef, ForceKind, Model, Scalar, SpringLaw, Vector};

/// A part of an expression.
#[derive(Clone, Copy, Debug)]
pub enum Part<'e> {
    /// A number.
    Scalar(&'e Scalar),
    /// Three.
    Vector(&'e Vector),
}

/// A part of an expression, to be changed.
pub(crate) enum PartMut<'e> {
    /// A number.
    Scalar(&'e mut Scalar),
    /// Three.
    Vector(&'e mut Vector),
}

/// Calls `$f` for each operand of a scalar, one level down: as `$part`, with `$iter` over arrays, by shared or mutable references.
macro_rules! scalar_operands {
    ($e:expr, $part:ident, $iter:ident, $f:expr) => {
        match $e {
            Scalar::Number(_)
            | Scalar::Time
            | Scalar::Parameter(_)
            | Scalar::Input(_)
            | Scalar::Coordinate(_)
            | Scalar::Rate(_)
            | Scalar::Acceleration(_)
            | Scalar::Velocity(_)
            | Scalar::Multiplier(..)
            | Scalar::Length
            | Scalar::LengthRate => {}
            Scalar::Element(_, a) | Scalar::Negate(a) | Scalar::Derivative(a) => $f($part::Scalar(a)),
            Scalar::Binary(_, a, b) => {
                $f($part::Scalar(a));
                $f($part::Scalar(b));
            }
            Scalar::Call(_, arguments) => arguments.$iter().for_each(|a| $f($part::Scalar(a))),
            Scalar::Select(_, parts) => parts.$iter().for_each(|a| $f($part::Scalar(a))),
            Scalar::Table { at, knots, values } | Scalar::Spline { at, knots, values, .. } => {
                $f($part::Scalar(at));
                for array in [knots, values] {
                    if let ArrayRef::Literal(items) = array {
                        items.$iter().for_each(|a| $f($part::Scalar(a)));
                    }
                }
            }
            Scalar::Dot(a, b) => {
                $f($part::Vector(a));
                $f($part::Vector(b));
            }
            Scalar::Norm(a) | Scalar::Component(a, _) => $f($part::Vector(a)),
        }
    };
}

/// The same for a vector.
macro_rules! vector_operands {
    ($e:expr, $part:ident, $iter:ident, $f:expr) => {
        match $e {
            Vector::Components(c) => c.$iter().for_each(|a| $f($part::Scalar(a))),
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
            | Vector::Mirror { of: a, .. } => $f($part::Vector(a)),
            Vector::Add(a, b) | Vector::Subtract(a, b) | Vector::Cross(a, b) => {
                $f($part::Vector(a));
                $f($part::Vector(b));
            }
            Vector::Scale(s, a) | Vector::Divide(a, s) => {
                $f($part::Scalar(s));
                $f($part::Vector(a));
            }
        }
    };
}

impl<'e> Part<'e> {
    fn for_each_part(self, f: &mut dyn FnMut(Part<'e>)) {
        f(self);
        match self {
            Part::Scalar(e) => scalar_operands!(e, Part, iter, |part: Part<'e>| part.for_each_part(f)),
            Part::Vector(e) => vector_operands!(e, Part, iter, |part: Part<'e>| part.for_each_part(f)),
        }
    }
}

impl PartMut<'_> {
    fn for_each_scalar_mut(self, f: &mut dyn FnMut(&mut Scalar)) {
        match self {
            PartMut::Scalar(e) => e.for_each_scalar_mut(f),
            PartMut::Vector(e) => e.for_each_scalar_mut(f),
        }
    }
}

impl Scalar {
    /// Calls `f` for the expression itself, then for every expression in it.
    pub fn for_each_part<'e>(&'e self, f: &mut dyn FnMut(Part<'e>)) {
        Part::Scalar(self).for_each_part(f);
    }

    /// Calls `f` for each operand, one level down.
    pub(crate) fn for_each_operand_mut(&mut self, f: &mut dyn FnMut(PartMut<'_>)) {
        scalar_operands!(self, PartMut, iter_mut, f);
    }

    /// Calls `f` for every scalar of the expression, operands first.
    pub(crate) fn for_each_scalar_mut(&mut self, f: &mut dyn FnMut(&mut Scalar)) {
        self.for_each_operand_mut(&mut |part| part.for_each_scalar_mut(f));
        f(self);
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
        Part::Vector(self).for_each_part(f);
    }

    /// Calls `f` for each operand, one level down.
    pub(crate) fn for_each_operand_mut(&mut self, f: &mut dyn FnMut(PartMut<'_>)) {
        vector_operands!(self, PartMut, iter_mut, f);
    }

    /// Calls `f` for every scalar of the expression, operands first.
    pub(crate) fn for_each_scalar_mut(&mut self, f: &mut dyn FnMut(&mut Scalar)) {
        self.for_each_operand_mut(&mut |part| part.for_each_scalar_mut(f));
    }

    /// How many parts the expression has.
    pub fn size(&self) -> usize {
        let mut size = 0;
        self.for_each_part(&mut |_| size += 1);
        size
    }
}

impl Model {
    /// Calls `f` for every scalar of forces, constraints and objectives, operands first.
    pub(super) fn for_each_law_scalar_mut(&mut self, f: &mut dyn FnMut(&mut Scalar)) {
        for force in &mut self.forces {
            match &mut force.kind {
                ForceKind::Spring { law, .. } | ForceKind::TorsionalSpring { law, .. } => match law {
                    SpringLaw::Linear { stiffness, damping, natural } => {
                        [stiffness, damping, natural]
                            .into_iter()
                            .for_each(|part| part.for_each_scalar_mut(f));
                    }
                    SpringLaw::Expression(law) => law.for_each_scalar_mut(f),
                },
                ForceKind::Force { value, .. } | ForceKind::Torque { value, .. } => {
                    value.for_each_scalar_mut(f)
                }
                ForceKind::JointForce { value, .. } => value.for_each_scalar_mut(f),
            }
        }
        for row in self.constraints.iter_mut().flat_map(|constraint| &mut constraint.rows) {
            row.value.for_each_scalar_mut(f);
        }
        for objective in &mut self.objectives {
            objective.integrand.for_each_scalar_mut(f);
            objective.terminal.for_each_scalar_mut(f);
        }
    }
}
