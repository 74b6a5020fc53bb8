//! `switches: exact`: branches of laws become events.
//!
//! Input: a model whose forces and objectives have branches: `sign`, `abs`, `min`, `max`, `if`. Output: the same model, in which a switch s, an
//! input that is 1 or −1, stands for each branch, with an event where its function x crosses zero:
//!
//! | branch | function x | becomes |
//! |---|---|---|
//! | sign(x) | x | s |
//! | abs(x) | x | s x |
//! | max(a, b), min(a, b) | a − b | (a + b ± s (a − b))/2 |
//! | if(a < b, y, z) | b − a | (y + z + s (y − z))/2 |
//!
//! Both sides of a branch are evaluated, so both must be finite. What parameters alone decide stays as it is, and so do tables, which bend and do not jump.

use super::expression::{BinaryOp, Comparison, Function, Scalar, Vector};
use super::walk::{Part, PartMut};
use super::{
    Activity, CoordinateRef, Direction, Event, ForceKind, Hold, ImpactLaw, Input, InputId, MarkerRef, Model,
    SpringLaw,
};
use crate::diagnostics::Span;

/// Switches that were found, each with its function, and whose they are.
#[derive(Default)]
struct Switches {
    /// How many inputs there are without them.
    first: u32,
    /// Name of the owner, its place, and the function.
    found: Vec<(String, Span, Scalar)>,
    /// What the length and the rate of a spring are, while its law is read.
    spring: Option<[Scalar; 2]>,
    /// Places of branches with a side that is not finite everywhere.
    partial: Vec<Span>,
}

impl Model {
    /// Makes events of the branches of forces and objectives. Gives the places of those with a side that is not finite everywhere.
    pub(crate) fn promote_switches(&mut self) -> Vec<Span> {
        let mut switches = Switches { first: self.inputs.len() as u32, ..Switches::default() };
        let mut forces = std::mem::take(&mut self.forces);
        for force in &mut forces {
            let owner = (force.name.as_str(), force.span);
            match &mut force.kind {
                ForceKind::Spring { from, to, law } => {
                    switches.spring = Some(length_between(*from, *to));
                    switches.law(law, owner);
                }
                ForceKind::TorsionalSpring { coordinate, law } => {
                    switches.spring = Some(along(*coordinate));
                    switches.law(law, owner);
                }
                ForceKind::Force { value, .. } | ForceKind::Torque { value, .. } => {
                    switches.vector(value, owner);
                }
                ForceKind::JointForce { value, .. } => switches.scalar(value, owner),
            }
            switches.spring = None;
        }
        self.forces = forces;
        for objective in &mut self.objectives {
            switches.scalar(&mut objective.integrand, (objective.name.as_str(), objective.span));
        }
        switches.partial.dedup();
        for (k, (owner, span, when)) in switches.found.into_iter().enumerate() {
            let (name, id) = (format!("{owner}.switch{}", k + 1), InputId(switches.first + k as u32));
            self.inputs.push(Input {
                name: name.clone(),
                description: format!("side of a branch of `{owner}`"),
                unit: String::new(),
                default: 1.0,
                hold: Hold::Zero,
                span,
            });
            self.events.push(Event {
                name,
                description: String::new(),
                when,
                direction: Direction::Both,
                activity: Activity::default(),
                armed: None,
                minimum_interval: 0.0,
                priority: i32::MIN,
                stop: false,
                conditions: Vec::new(),
                law: ImpactLaw::Plain,
                settings: vec![(id, Scalar::Negate(Box::new(Scalar::Input(id))))],
                placements: Vec::new(),
                enters: Vec::new(),
                switch: Some(id),
                judged: false,
                span,
            });
        }
        switches.partial
    }
}

fn binary(op: BinaryOp, a: Scalar, b: Scalar) -> Scalar {
    Scalar::Binary(op, Box::new(a), Box::new(b))
}

/// |r₂ − r₁| and its rate.
fn length_between(from: MarkerRef, to: MarkerRef) -> [Scalar; 2] {
    let between = |a, b| Box::new(Vector::Subtract(Box::new(b), Box::new(a)));
    let r = between(Vector::Position(from), Vector::Position(to));
    let v = between(Vector::PointVelocity(from), Vector::PointVelocity(to));
    let unit = Box::new(Vector::Unit(r.clone()));
    [Scalar::Norm(r), Scalar::Dot(unit, v)]
}

/// A coordinate and its rate.
fn along(coordinate: CoordinateRef) -> [Scalar; 2] {
    [Scalar::Coordinate(coordinate), Scalar::Rate(coordinate)]
}

/// Whether an expression has a power, root, logarithm or inverse of something that changes, and is not a number everywhere.
fn is_partial(value: &Scalar) -> bool {
    let mut partial = false;
    value.for_each_part(&mut |part| {
        partial |= match part {
            Part::Scalar(Scalar::Call(function, arguments)) => {
                matches!(function, Function::Sqrt | Function::Ln | Function::Asin | Function::Acos)
                    && arguments.iter().any(changes)
            }
            Part::Scalar(Scalar::Binary(BinaryOp::Power, base, exponent)) => {
                let whole = matches!(**exponent, Scalar::Number(exponent) if exponent.fract() == 0.0);
                !whole && changes(base)
            }
            _ => false,
        };
    });
    partial
}

/// Whether an expression changes during a run.
fn changes(value: &Scalar) -> bool {
    let mut changes = false;
    value.for_each_part(&mut |part| {
        changes |= match part {
            Part::Scalar(part) => !matches!(
                part,
                Scalar::Number(_)
                    | Scalar::Parameter(_)
                    | Scalar::Element(..)
                    | Scalar::Negate(_)
                    | Scalar::Binary(..)
                    | Scalar::Call(..)
                    | Scalar::Select(..)
                    | Scalar::Table { .. }
                    | Scalar::Spline { .. }
                    | Scalar::Dot(..)
                    | Scalar::Norm(_)
                    | Scalar::Component(..)
            ),
            Part::Vector(part) => matches!(
                part,
                Vector::Position(_)
                    | Vector::PointVelocity(_)
                    | Vector::PointAcceleration(_)
                    | Vector::Direction(..)
                    | Vector::AngularVelocity(_)
                    | Vector::AngularAcceleration(_)
                    | Vector::ReactionForce(_)
                    | Vector::ReactionTorque(_)
                    | Vector::FromFrame(..)
            ),
        };
    });
    changes
}

impl Switches {
    fn law(&mut self, law: &mut SpringLaw, owner: (&str, Span)) {
        match law {
            SpringLaw::Linear { stiffness, damping, natural } => {
                for part in [stiffness, damping, natural] {
                    self.scalar(part, owner);
                }
            }
            SpringLaw::Expression(law) => self.scalar(law, owner),
        }
    }

    /// The switch of a function; the same function has one.
    fn switch(&mut self, x: &Scalar, (name, span): (&str, Span)) -> Scalar {
        let mut x = x.clone();
        if let Some([length, rate]) = &self.spring {
            put_spring(&mut x, length, rate);
        }
        let place = self.found.iter().position(|(_, _, other)| *other == x).unwrap_or_else(|| {
            self.found.push((name.to_string(), span, x));
            self.found.len() - 1
        });
        Scalar::Input(InputId(self.first + place as u32))
    }

    /// (a + b + s (a − b))/2
    fn choice(s: Scalar, a: Scalar, b: Scalar) -> Scalar {
        let sum = binary(BinaryOp::Add, a.clone(), b.clone());
        let difference = binary(BinaryOp::Multiply, s, binary(BinaryOp::Subtract, a, b));
        binary(BinaryOp::Multiply, Scalar::Number(0.5), binary(BinaryOp::Add, sum, difference))
    }

    fn part(&mut self, part: PartMut<'_>, owner: (&str, Span)) {
        match part {
            PartMut::Scalar(part) => self.scalar(part, owner),
            PartMut::Vector(part) => self.vector(part, owner),
        }
    }

    fn scalar(&mut self, e: &mut Scalar, owner: (&str, Span)) {
        // An expression that is differentiated by time stays smooth: the reader refuses branches in it.
        if matches!(e, Scalar::Derivative(_)) {
            return;
        }
        e.for_each_operand_mut(&mut |part| self.part(part, owner));
        let promoted = match e {
            Scalar::Call(Function::Sign, arguments) if arguments.iter().any(changes) => {
                arguments.first().map(|x| self.switch(x, owner))
            }
            Scalar::Call(Function::Abs, arguments) if arguments.iter().any(changes) => {
                arguments.first().map(|x| binary(BinaryOp::Multiply, self.switch(x, owner), x.clone()))
            }
            Scalar::Call(function @ (Function::Min | Function::Max), arguments)
                if arguments.iter().any(changes) =>
            {
                match arguments.as_slice() {
                    [a, b] => {
                        let s = self.switch(&binary(BinaryOp::Subtract, a.clone(), b.clone()), owner);
                        let (a, b) = (a.clone(), b.clone());
                        Some(match function {
                            Function::Max => Self::choice(s, a, b),
                            _ => Self::choice(s, b, a),
                        })
                    }
                    _ => None,
                }
            }
            Scalar::Select(Comparison::Less | Comparison::LessEqual, parts)
                if changes(&parts[0]) || changes(&parts[1]) =>
            {
                let [a, b, y, z] = (**parts).clone();
                if is_partial(&y) || is_partial(&z) {
                    self.partial.push(owner.1);
                }
                let s = self.switch(&binary(BinaryOp::Subtract, b, a), owner);
                Some(Self::choice(s, y, z))
            }
            _ => None,
        };
        if let Some(promoted) = promoted {
            *e = promoted;
        }
    }

    fn vector(&mut self, e: &mut Vector, owner: (&str, Span)) {
        e.for_each_operand_mut(&mut |part| self.part(part, owner));
    }
}

/// The length and the rate of a spring in place of their symbols.
fn put_spring(e: &mut Scalar, length: &Scalar, rate: &Scalar) {
    e.for_each_scalar_mut(&mut |part| match part {
        Scalar::Length => *part = length.clone(),
        Scalar::LengthRate => *part = rate.clone(),
        _ => {}
    });
}
