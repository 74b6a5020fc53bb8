//! Typed, resolved expressions for scalars and vectors of a model.
//!
//! Vectors are in the world (ground) frame wherever the context is the world, and in the body frame where a
//! body's own data is described (its points, its centre of mass).

use super::ids::{BodyId, CoordinateRef, InputId, JointId, MarkerRef, ParameterId, RowRef, VelocityRef};

/// Which multiplier of an equation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Multiplier {
    /// λ, of the equations of motion.
    Force,
    /// σ, of the projection of velocities that ends a step (objectives only).
    ProjectionImpulse,
    /// κ, of the projection of accelerations (objectives only).
    ProjectionForce,
}

impl Multiplier {
    /// The function of the model language that it is.
    pub fn function(self) -> &'static str {
        match self {
            Multiplier::Force => "multiplier",
            Multiplier::ProjectionImpulse => "projection_impulse",
            Multiplier::ProjectionForce => "projection_force",
        }
    }

    /// Whether it is one of a projection.
    pub fn is_of_projection(self) -> bool {
        self != Multiplier::Force
    }
}

/// A scalar expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Scalar {
    /// A literal; finite.
    Number(f64),
    /// Time.
    Time,
    /// A scalar parameter.
    Parameter(ParameterId),
    /// An element of an array parameter, zero-based, clamped to the array. A constant index is a
    /// [`Scalar::Number`] already checked against the length.
    Element(ParameterId, Box<Scalar>),
    /// An input.
    Input(InputId),
    /// A joint coordinate z.
    Coordinate(CoordinateRef),
    /// Its time derivative zd.
    Rate(CoordinateRef),
    /// The time derivative of an expression of positions, time and parameters.
    Derivative(Box<Scalar>),
    /// Second time derivative zdd of a coordinate (outputs only).
    Acceleration(CoordinateRef),
    /// A joint velocity v (angular velocity component of a spherical or floating joint, for example).
    Velocity(VelocityRef),
    /// A multiplier of an equation (objectives and events only); zero if the equation says nothing.
    Multiplier(Multiplier, RowRef),
    /// Length or angle of the spring whose law this is.
    Length,
    /// Its rate.
    LengthRate,
    /// −a
    Negate(Box<Scalar>),
    /// A binary operation.
    Binary(BinaryOp, Box<Scalar>, Box<Scalar>),
    /// A named function; the number of arguments is [`Function::arity`].
    Call(Function, Vec<Scalar>),
    /// `if(a < b, x, y)`
    Select(Comparison, Box<[Scalar; 4]>),
    /// Piecewise linear table over knots and values; constant beyond the ends.
    Table {
        /// Where.
        at: Box<Scalar>,
        /// Strictly increasing knots.
        knots: ArrayRef,
        /// As many values.
        values: ArrayRef,
    },
    /// Natural cubic spline over knots and values.
    Spline {
        /// Where.
        at: Box<Scalar>,
        /// Strictly increasing knots.
        knots: ArrayRef,
        /// As many values.
        values: ArrayRef,
        /// What it is beyond the ends.
        outside: Outside,
    },
    /// a · b
    Dot(Box<Vector>, Box<Vector>),
    /// |a|
    Norm(Box<Vector>),
    /// Component 0, 1 or 2.
    Component(Box<Vector>, u8),
}

/// A vector expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Vector {
    /// Three scalars.
    Components(Box<[Scalar; 3]>),
    /// World position of a point.
    Position(MarkerRef),
    /// World velocity of a point.
    PointVelocity(MarkerRef),
    /// World acceleration of a point (outputs only).
    PointAcceleration(MarkerRef),
    /// World direction of a named vector of a body (entry of its `vectors`), of unit length.
    Direction(BodyId, u32),
    /// World angular velocity of a body.
    AngularVelocity(BodyId),
    /// World angular acceleration of a body (outputs only).
    AngularAcceleration(BodyId),
    /// Force that the parent of a joint puts on its child, world (objectives only).
    ReactionForce(JointId),
    /// Torque that the parent of a joint puts on its child, about the child's joint point, world (objectives only).
    ReactionTorque(JointId),
    /// The same vector, given in a body's frame, turned into the world frame.
    FromFrame(BodyId, Box<Vector>),
    /// `in(body, v)`: components of a world vector in a body's frame.
    InFrame(BodyId, Box<Vector>),
    /// −a
    Negate(Box<Vector>),
    /// a + b
    Add(Box<Vector>, Box<Vector>),
    /// a − b
    Subtract(Box<Vector>, Box<Vector>),
    /// s a
    Scale(Box<Scalar>, Box<Vector>),
    /// a / s
    Divide(Box<Vector>, Box<Scalar>),
    /// a × b
    Cross(Box<Vector>, Box<Vector>),
    /// a / |a|
    Unit(Box<Vector>),
    /// Reflected at the plane normal to axis 0, 1 or 2: S a for polar vectors, −S a for axial ones.
    Mirror {
        /// Axis normal to the plane.
        normal: u8,
        /// Whether the vector is axial (angular velocity, torque).
        axial: bool,
        /// What is reflected.
        of: Box<Vector>,
    },
}

/// An array given by a parameter or by literals.
#[derive(Clone, Debug, PartialEq)]
pub enum ArrayRef {
    /// An array parameter.
    Parameter(ParameterId),
    /// Scalars of parameters.
    Literal(Vec<Scalar>),
}

/// Binary operations on scalars.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryOp {
    /// a + b
    Add,
    /// a − b
    Subtract,
    /// a b
    Multiply,
    /// a / b
    Divide,
    /// a ^ b
    Power,
}

/// What a spline is beyond its ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outside {
    /// The value of the end.
    Clamp,
    /// The tangent of the end; the curvature is continuous, since it is zero there.
    Linear,
    /// The polynomial of the last interval.
    #[default]
    Cubic,
    /// Nothing: the value is not finite, which ends a run.
    Error,
}

impl Outside {
    /// All, by their words.
    pub const WORDS: [(&'static str, Outside); 4] = [
        ("clamp", Outside::Clamp),
        ("linear", Outside::Linear),
        ("cubic", Outside::Cubic),
        ("error", Outside::Error),
    ];
}

/// Comparisons in `if(...)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// a < b
    Less,
    /// a ≤ b
    LessEqual,
    /// a = b
    Equal,
}

/// Functions a force law may call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// √a
    Sqrt,
    /// sin a
    Sin,
    /// cos a
    Cos,
    /// tan a
    Tan,
    /// arcsin a
    Asin,
    /// arccos a
    Acos,
    /// arctan a
    Atan,
    /// atan2(y, x)
    Atan2,
    /// eᵃ
    Exp,
    /// ln a
    Ln,
    /// sinh a
    Sinh,
    /// cosh a
    Cosh,
    /// tanh a
    Tanh,
    /// |a|
    Abs,
    /// −1, 0 or 1
    Sign,
    /// min(a, b)
    Min,
    /// max(a, b)
    Max,
    /// hypot(a, b) = √(a² + b²)
    Hypot,
    /// step(x, x0, y0, x1, y1): y0 before x0, y1 after x1, 3s² − 2s³ between
    SmoothStep,
}

impl Function {
    /// How many arguments it takes.
    pub fn arity(self) -> usize {
        match self {
            Function::Atan2 | Function::Min | Function::Max | Function::Hypot => 2,
            Function::SmoothStep => 5,
            _ => 1,
        }
    }
}

impl Scalar {
    /// a − b
    pub fn minus(self, b: Scalar) -> Scalar {
        match b {
            Scalar::Number(0.0) => self,
            b => Scalar::Binary(BinaryOp::Subtract, Box::new(self), Box::new(b)),
        }
    }
}

impl Vector {
    /// Three numbers.
    pub fn constant(v: [f64; 3]) -> Vector {
        Vector::Components(Box::new(v.map(Scalar::Number)))
    }

    /// a + b
    pub fn plus(self, b: Vector) -> Vector {
        Vector::Add(Box::new(self), Box::new(b))
    }

    /// a − b
    pub fn minus(self, b: Vector) -> Vector {
        Vector::Subtract(Box::new(self), Box::new(b))
    }

    /// a · b
    pub fn dot(self, b: Vector) -> Scalar {
        Scalar::Dot(Box::new(self), Box::new(b))
    }

    /// a × b
    pub fn cross(self, b: Vector) -> Vector {
        Vector::Cross(Box::new(self), Box::new(b))
    }

    /// a / |a|
    pub fn unit(self) -> Vector {
        Vector::Unit(Box::new(self))
    }

    /// The same vector given in a body's frame, turned into the world frame.
    pub fn from_frame(self, body: BodyId) -> Vector {
        Vector::FromFrame(body, Box::new(self))
    }

    /// |a|
    pub fn norm(self) -> Scalar {
        Scalar::Norm(Box::new(self))
    }

    /// A component.
    pub fn component(self, axis: u8) -> Scalar {
        Scalar::Component(Box::new(self), axis)
    }

    /// The unit vector of the part of a that is normal to a unit vector n: (a − (a · n) n) / |…|
    pub fn across(self, n: Vector) -> Vector {
        let along = Vector::Scale(Box::new(self.clone().dot(n.clone())), Box::new(n));
        self.minus(along).unit()
    }
}
