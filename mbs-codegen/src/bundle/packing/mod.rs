//! Packing: two isomorphic operations as one operation on a vector of two numbers, a pack (superword-level parallelism,
//! \[LarsenAmarasinghe2000\]).
//!
//! Mechanisms repeat themselves: the corners of a car, legs, the two projections of a step. Packed, a bundle has fewer
//! instructions, and every number keeps its bits.
//!
//! Input: a bundle without kernels and loops. Output: the same operations in segments of their own, with slots of their own, for the
//! emitter; interpreters read the bundle itself.
//! Holds afterwards: [`verify`](verify::verify).

mod cost;
mod partners;
mod schedule;
pub mod verify;

use super::{Bundle, Operand, Operation, Run, Segment, Statement, ValueId};
use crate::graph::{BinaryOp, UnaryOp};

/// A bundle's operations, two at a time where they have a partner.
#[derive(Clone, Debug, PartialEq)]
pub struct Packed {
    /// A function each.
    pub segments: Vec<Vec<Step>>,
    /// Number of workspace slots.
    pub slots: u32,
    /// Operations of packs, two for each pack.
    pub paired: usize,
}

/// Two numbers: assigned once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackId(pub u32);

/// Which of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// The first.
    First,
    /// The second.
    Second,
}

/// A statement about one number or two.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// A statement about single numbers.
    One(Statement),
    /// pack = two slots, of which this is the first
    Load(PackId, u32),
    /// two slots, of which this is the first = pack
    Store(u32, PackId),
    /// pack = (a, b)
    Join(PackId, [Operand; 2]),
    /// pack = operation, which computes these two values
    Compute(PackId, [ValueId; 2], PackOperation),
    /// value = one of two numbers
    Extract(ValueId, PackId, Lane),
}

/// An operation on packs, lane by lane.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PackOperation {
    /// Which.
    pub op: VectorOp,
    /// Its operands: the first [`VectorOp::arity`] of these.
    pub operands: [PackId; 3],
}

/// Operations that vectors have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VectorOp {
    /// −a
    Neg,
    /// a + b
    Add,
    /// a − b
    Sub,
    /// a b
    Mul,
    /// a / b
    Div,
    /// a b + c
    MulAdd,
    /// a b − c
    MulSub,
    /// c − a b
    NegMulAdd,
}

impl VectorOp {
    /// The vector form of an operation, if it has one.
    pub fn of(operation: &Operation) -> Option<VectorOp> {
        Some(match operation {
            Operation::Unary(UnaryOp::Neg, _) => VectorOp::Neg,
            Operation::Binary(BinaryOp::Add, ..) => VectorOp::Add,
            Operation::Binary(BinaryOp::Sub, ..) => VectorOp::Sub,
            Operation::Binary(BinaryOp::Mul, ..) => VectorOp::Mul,
            Operation::Binary(BinaryOp::Div, ..) => VectorOp::Div,
            Operation::MulAdd(..) => VectorOp::MulAdd,
            Operation::MulSub(..) => VectorOp::MulSub,
            Operation::NegMulAdd(..) => VectorOp::NegMulAdd,
            _ => return None,
        })
    }

    /// How many operands it has.
    pub fn arity(self) -> usize {
        match self {
            VectorOp::Neg => 1,
            VectorOp::Add | VectorOp::Sub | VectorOp::Mul | VectorOp::Div => 2,
            VectorOp::MulAdd | VectorOp::MulSub | VectorOp::NegMulAdd => 3,
        }
    }
}

impl PackOperation {
    /// The packs that it reads.
    pub fn operands(&self) -> &[PackId] {
        &self.operands[..self.op.arity()]
    }
}

/// Fewest operations of a bundle that is packed unless told otherwise: in smaller ones the estimate is worth nothing, and there is little to gain.
const SMALLEST: usize = 500;

/// Most instructions, for eight of the bundle, with which its packed form is taken: what saves less was not quicker (`benches/README.md`).
const MOST: usize = 7;

impl Packed {
    /// The packed form of a bundle; none where it is small or would save little.
    pub fn of(bundle: &Bundle) -> Option<Packed> {
        if bundle.counts.total() < SMALLEST {
            return None;
        }
        Packed::of_any(bundle).filter(|packed| 8 * cost::of_packed(packed) <= MOST * cost::of_bundle(bundle))
    }

    /// The packed form of a bundle of any size; none where it has kernels, loops or no operations alike.
    pub fn of_any(bundle: &Bundle) -> Option<Packed> {
        let flat = flat(bundle)?;
        let partners = partners::find(bundle, &flat);
        Some(schedule::schedule(bundle, &flat, &partners)).filter(|packed| packed.paired > 0)
    }
}

/// The computations and results of a bundle, without moves between segments.
fn flat(bundle: &Bundle) -> Option<Vec<Statement>> {
    if !bundle.loops.is_empty() {
        return None;
    }
    let mut all = Vec::new();
    for segment in &bundle.segments {
        let Segment::Flat(statements) = segment else { return None };
        for &statement in statements {
            match statement {
                Statement::Compute(
                    _,
                    Operation::Gather(Run::Slots { .. }, _) | Operation::Locate(Run::Slots { .. }, _),
                ) => return None,
                Statement::Load(..) | Statement::Store(..) => {}
                _ => all.push(statement),
            }
        }
    }
    Some(all)
}
