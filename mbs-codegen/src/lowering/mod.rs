//! Typed expressions of the model → expressions of the graph.
//!
//! Input: [`Scalar`] and [`Vector`] of the model. Output: [`ExprId`] and [`Vec3`].
//! Holds afterwards: inside a branch of `if`, whatever has no value or no slope somewhere (√, ln, a
//! division…) reads a guarded argument, so that the branch not taken makes no NaN, in value or derivative.
//!
//! What needs the state of the mechanism is asked of an [`Environment`]; geometry is lowered with
//! [`ParametersOnly`].

mod parameters;
mod signals;

pub use parameters::{ParameterExpr, Parameters};

use crate::graph::BinaryOp as Operation;
use crate::graph::{ArrayId, Comparison as Compare, ExprId, Graph, UnaryOp, Vec3, gradient};
use crate::model::{
    ArrayRef, BinaryOp, BodyId, Comparison, CoordinateRef, Function, InputId, JointId, MarkerRef, Multiplier,
    RowRef, Scalar, Vector, VelocityRef,
};
use crate::symbols::Group;

/// Quantities of the mechanism that expressions may use. The defaults are zero: the reader refuses expressions
/// that use a quantity where there is none.
#[allow(unused_variables, reason = "the defaults answer zero whatever is asked")]
pub trait Environment {
    /// z
    fn coordinate(&mut self, g: &mut Graph, coordinate: CoordinateRef) -> ExprId {
        g.zero()
    }
    /// zd
    fn rate(&mut self, g: &mut Graph, coordinate: CoordinateRef) -> ExprId {
        g.zero()
    }
    /// The rate of an expression of positions and time that was lowered here.
    fn time_derivative(&mut self, g: &mut Graph, value: ExprId) -> ExprId {
        let (one, time) = (g.one(), g.symbol(Group::Time, 0));
        gradient(g, &[(value, one)], &[time])[0]
    }
    /// zdd
    fn acceleration(&mut self, g: &mut Graph, coordinate: CoordinateRef) -> ExprId {
        g.zero()
    }
    /// v
    fn velocity(&mut self, g: &mut Graph, velocity: VelocityRef) -> ExprId {
        g.zero()
    }
    /// λ, σ or κ of an equation.
    fn multiplier(&mut self, g: &mut Graph, which: Multiplier, row: RowRef) -> ExprId {
        g.zero()
    }
    /// Force and torque that the parent of a joint puts on its child, at the child's joint point, world.
    fn reaction(&mut self, g: &mut Graph, joint: JointId) -> [Vec3; 2] {
        [g.zero_vector(), g.zero_vector()]
    }
    /// Length or angle of the spring whose law is lowered.
    fn length(&mut self, g: &mut Graph) -> ExprId {
        g.zero()
    }
    /// Its rate.
    fn length_rate(&mut self, g: &mut Graph) -> ExprId {
        g.zero()
    }
    /// World position of a point.
    fn position(&mut self, g: &mut Graph, marker: MarkerRef) -> Vec3 {
        g.zero_vector()
    }
    /// World velocity of a point.
    fn point_velocity(&mut self, g: &mut Graph, marker: MarkerRef) -> Vec3 {
        g.zero_vector()
    }
    /// World acceleration of a point.
    fn point_acceleration(&mut self, g: &mut Graph, marker: MarkerRef) -> Vec3 {
        g.zero_vector()
    }
    /// A named direction of a body, in the body's axes.
    fn direction(&mut self, g: &mut Graph, body: BodyId, vector: u32) -> Vec3 {
        g.zero_vector()
    }
    /// World angular velocity.
    fn angular_velocity(&mut self, g: &mut Graph, body: BodyId) -> Vec3 {
        g.zero_vector()
    }
    /// World angular acceleration.
    fn angular_acceleration(&mut self, g: &mut Graph, body: BodyId) -> Vec3 {
        g.zero_vector()
    }
    /// A v: from the body's axes into the world's.
    fn to_world(&mut self, g: &mut Graph, body: BodyId, v: Vec3) -> Vec3 {
        v
    }
    /// Aᵀ v: from the world's axes into the body's.
    fn to_body(&mut self, g: &mut Graph, body: BodyId, v: Vec3) -> Vec3 {
        v
    }
}

/// Knows parameters, inputs and time, and nothing of the mechanism.
pub struct ParametersOnly;

impl Environment for ParametersOnly {}

/// A condition under which the expression being lowered counts: comparison, operands, and whether it must
/// hold or fail.
type Guard = (Compare, ExprId, ExprId, bool);

/// Lowers expressions into one graph.
pub struct Lowering<'a, E> {
    /// Where expressions go.
    pub graph: &'a mut Graph,
    /// The parameters' expressions.
    pub parameters: &'a Parameters,
    /// What knows the mechanism.
    pub environment: &'a mut E,
    guards: Vec<Guard>,
}

impl<'a, E: Environment> Lowering<'a, E> {
    /// With no guard.
    pub fn new(graph: &'a mut Graph, parameters: &'a Parameters, environment: &'a mut E) -> Self {
        Lowering { graph, parameters, environment, guards: Vec::new() }
    }

    /// A scalar.
    pub fn scalar(&mut self, expression: &Scalar) -> ExprId {
        match expression {
            Scalar::Number(value) => self.graph.constant(*value),
            Scalar::Time => self.graph.symbol(Group::Time, 0),
            Scalar::Parameter(id) => self.parameters.scalar(*id),
            Scalar::Element(id, index) => {
                let index = self.scalar(index);
                match self.parameters.array(*id) {
                    Some(array) => self.graph.gather(array, index),
                    None => self.parameters.scalar(*id),
                }
            }
            Scalar::Input(InputId(index)) => self.graph.symbol(Group::U, *index),
            Scalar::Coordinate(c) => self.environment.coordinate(self.graph, *c),
            Scalar::Rate(c) => self.environment.rate(self.graph, *c),
            Scalar::Derivative(of) => {
                let value = self.scalar(of);
                self.environment.time_derivative(self.graph, value)
            }
            Scalar::Acceleration(c) => self.environment.acceleration(self.graph, *c),
            Scalar::Velocity(v) => self.environment.velocity(self.graph, *v),
            Scalar::Multiplier(which, row) => self.environment.multiplier(self.graph, *which, *row),
            Scalar::Length => self.environment.length(self.graph),
            Scalar::LengthRate => self.environment.length_rate(self.graph),
            Scalar::Negate(a) => {
                let a = self.scalar(a);
                self.graph.neg(a)
            }
            Scalar::Binary(op, a, b) => {
                let (a, b) = (self.scalar(a), self.scalar(b));
                self.binary(*op, a, b)
            }
            Scalar::Call(function, arguments) => {
                let arguments: Vec<ExprId> = arguments.iter().map(|a| self.scalar(a)).collect();
                self.function(*function, &arguments)
            }
            Scalar::Select(comparison, operands) => self.select(*comparison, operands),
            Scalar::Table { at, knots, values } => {
                let x = self.scalar(at);
                let (knots, values) = (self.array(knots), self.array(values));
                signals::table(self.graph, x, knots, values)
            }
            Scalar::Spline { at, knots, values, outside } => {
                let x = self.scalar(at);
                let (knots, values) = (self.array(knots), self.array(values));
                signals::spline(self.graph, x, knots, values, *outside)
            }
            Scalar::Dot(a, b) => {
                let (a, b) = (self.vector(a), self.vector(b));
                self.graph.dot3(a, b)
            }
            Scalar::Norm(a) => {
                let a = self.vector(a);
                self.norm(a)
            }
            Scalar::Component(a, i) => self.vector(a)[usize::from(*i).min(2)],
        }
    }

    /// A vector.
    pub fn vector(&mut self, expression: &Vector) -> Vec3 {
        match expression {
            Vector::Components(components) => {
                let [x, y, z] = &**components;
                Vec3([self.scalar(x), self.scalar(y), self.scalar(z)])
            }
            Vector::Position(marker) => self.environment.position(self.graph, *marker),
            Vector::PointVelocity(marker) => self.environment.point_velocity(self.graph, *marker),
            Vector::PointAcceleration(marker) => self.environment.point_acceleration(self.graph, *marker),
            Vector::Direction(body, vector) => {
                let local = self.environment.direction(self.graph, *body, *vector);
                let local = self.graph.unit3(local);
                self.environment.to_world(self.graph, *body, local)
            }
            Vector::AngularVelocity(body) => self.environment.angular_velocity(self.graph, *body),
            Vector::AngularAcceleration(body) => self.environment.angular_acceleration(self.graph, *body),
            Vector::ReactionForce(joint) => self.environment.reaction(self.graph, *joint)[0],
            Vector::ReactionTorque(joint) => self.environment.reaction(self.graph, *joint)[1],
            Vector::FromFrame(body, v) => {
                let v = self.vector(v);
                self.environment.to_world(self.graph, *body, v)
            }
            Vector::InFrame(body, v) => {
                let v = self.vector(v);
                self.environment.to_body(self.graph, *body, v)
            }
            Vector::Negate(a) => {
                let a = self.vector(a);
                self.graph.neg3(a)
            }
            Vector::Add(a, b) => {
                let (a, b) = (self.vector(a), self.vector(b));
                self.graph.add3(a, b)
            }
            Vector::Subtract(a, b) => {
                let (a, b) = (self.vector(a), self.vector(b));
                self.graph.sub3(a, b)
            }
            Vector::Scale(s, a) => {
                let (s, a) = (self.scalar(s), self.vector(a));
                self.graph.scale3(s, a)
            }
            Vector::Divide(a, s) => {
                let (a, s) = (self.vector(a), self.scalar(s));
                let s = self.guarded(s, 1.0);
                Vec3(a.0.map(|x| self.graph.div(x, s)))
            }
            Vector::Cross(a, b) => {
                let (a, b) = (self.vector(a), self.vector(b));
                self.graph.cross3(a, b)
            }
            Vector::Unit(a) => {
                let a = self.vector(a);
                let norm = self.norm(a);
                Vec3(a.0.map(|x| self.graph.div(x, norm)))
            }
            // S a for polar vectors, −S a for axial ones
            Vector::Mirror { normal, axial, of } => {
                let mut v = self.vector(of);
                for (i, component) in v.0.iter_mut().enumerate() {
                    if (i == usize::from(*normal)) != *axial {
                        *component = self.graph.neg(*component);
                    }
                }
                v
            }
        }
    }

    /// The argument of a function that is not smooth everywhere: a harmless one where the guards fail.
    fn guarded(&mut self, argument: ExprId, harmless: f64) -> ExprId {
        if self.graph.constant_value(argument).is_some() {
            return argument;
        }
        let harmless = self.graph.constant(harmless);
        let mut argument = argument;
        for &(comparison, a, b, holds) in self.guards.iter().rev() {
            let (x, y) = if holds { (argument, harmless) } else { (harmless, argument) };
            argument = self.graph.select(comparison, a, b, x, y);
        }
        argument
    }

    fn norm(&mut self, a: Vec3) -> ExprId {
        let square = self.graph.dot3(a, a);
        let square = self.guarded(square, 1.0);
        self.graph.sqrt(square)
    }

    fn binary(&mut self, op: BinaryOp, a: ExprId, b: ExprId) -> ExprId {
        match op {
            BinaryOp::Add => self.graph.add(a, b),
            BinaryOp::Subtract => self.graph.sub(a, b),
            BinaryOp::Multiply => self.graph.mul(a, b),
            BinaryOp::Divide => {
                let b = self.guarded(b, 1.0);
                self.graph.div(a, b)
            }
            BinaryOp::Power => {
                // Natural exponents are products, smooth everywhere.
                let natural = self.graph.constant_value(b).is_some_and(|n| n.fract() == 0.0 && n >= 0.0);
                let a = if natural { a } else { self.guarded(a, 1.0) };
                self.graph.pow(a, b)
            }
        }
    }

    fn function(&mut self, function: Function, x: &[ExprId]) -> ExprId {
        let unary = |op, lowering: &mut Self, harmless: Option<f64>| {
            let a = match harmless {
                Some(value) => lowering.guarded(x[0], value),
                None => x[0],
            };
            lowering.graph.unary(op, a)
        };
        match function {
            Function::Sqrt => unary(UnaryOp::Sqrt, self, Some(1.0)),
            Function::Sin => unary(UnaryOp::Sin, self, None),
            Function::Cos => unary(UnaryOp::Cos, self, None),
            Function::Tan => unary(UnaryOp::Tan, self, None),
            Function::Asin => unary(UnaryOp::Asin, self, Some(0.0)),
            Function::Acos => unary(UnaryOp::Acos, self, Some(0.0)),
            Function::Atan => unary(UnaryOp::Atan, self, None),
            Function::Exp => unary(UnaryOp::Exp, self, Some(0.0)),
            Function::Ln => unary(UnaryOp::Ln, self, Some(1.0)),
            Function::Sinh => unary(UnaryOp::Sinh, self, Some(0.0)),
            Function::Cosh => unary(UnaryOp::Cosh, self, Some(0.0)),
            Function::Tanh => unary(UnaryOp::Tanh, self, None),
            Function::Abs => unary(UnaryOp::Abs, self, None),
            Function::Sign => unary(UnaryOp::Sign, self, None),
            Function::Atan2 => {
                let b = self.guarded(x[1], 1.0);
                self.graph.binary(Operation::Atan2, x[0], b)
            }
            Function::Min => self.graph.binary(Operation::Min, x[0], x[1]),
            Function::Max => self.graph.binary(Operation::Max, x[0], x[1]),
            Function::Hypot => {
                let (p, q) = (self.graph.square(x[0]), self.graph.square(x[1]));
                let sum = self.graph.add(p, q);
                let sum = self.guarded(sum, 1.0);
                self.graph.sqrt(sum)
            }
            Function::SmoothStep => signals::smooth_step(self.graph, [x[0], x[1], x[2], x[3], x[4]]),
        }
    }

    fn select(&mut self, comparison: Comparison, operands: &[Scalar; 4]) -> ExprId {
        let comparison = match comparison {
            Comparison::Less => Compare::Less,
            Comparison::LessEqual => Compare::LessEqual,
            Comparison::Equal => Compare::Equal,
        };
        let [a, b, x, y] = operands;
        let (a, b) = (self.scalar(a), self.scalar(b));
        self.guards.push((comparison, a, b, true));
        let x = self.scalar(x);
        self.guards.pop();
        self.guards.push((comparison, a, b, false));
        let y = self.scalar(y);
        self.guards.pop();
        self.graph.select(comparison, a, b, x, y)
    }

    fn array(&mut self, array: &ArrayRef) -> ArrayId {
        match array {
            ArrayRef::Parameter(id) => match self.parameters.array(*id) {
                Some(array) => array,
                None => {
                    let only = self.parameters.scalar(*id);
                    self.graph.new_array(vec![only])
                }
            },
            ArrayRef::Literal(elements) => {
                let elements: Vec<ExprId> = elements.iter().map(|e| self.scalar(e)).collect();
                self.graph.new_array(elements)
            }
        }
    }
}
