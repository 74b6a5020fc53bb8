//! Modes: sets of states of which one holds at a time; forces and constraints act in some of them, and events go from one to the other.
//!
//! A state is an input that is one while it holds and zero otherwise. It changes at events only.

use super::expression::{BinaryOp, Scalar};
use super::ids::InputId;
use crate::diagnostics::Span;

/// States of which one holds at a time.
#[derive(Clone, Debug, PartialEq)]
pub struct Mode {
    /// Name as written.
    pub name: String,
    /// Names of its states; the run starts in the first.
    pub states: Vec<String>,
    /// The input of the first state; the others follow.
    pub first: InputId,
    /// Where the file declares it.
    pub span: Span,
}

impl Mode {
    /// The inputs of its states.
    pub fn inputs(&self) -> impl Iterator<Item = InputId> + use<> {
        (self.first.0..self.first.0 + self.states.len() as u32).map(InputId)
    }
}

/// In which states something acts: in one of each group, always if there is no group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Activity {
    /// The states of one mode each.
    pub groups: Vec<Vec<InputId>>,
}

impl Activity {
    /// Whether it always acts.
    pub fn is_always(&self) -> bool {
        self.groups.is_empty()
    }

    /// Whether a state is one of those in which it acts.
    pub fn names(&self, state: InputId) -> bool {
        self.groups.iter().flatten().any(|&other| other == state)
    }

    /// Π Σ: one where it acts, zero where it does not; `None` if it always acts.
    pub fn factor(&self) -> Option<Scalar> {
        let join = |op: BinaryOp| move |a, b| Scalar::Binary(op, Box::new(a), Box::new(b));
        let sum =
            |group: &Vec<InputId>| group.iter().map(|&id| Scalar::Input(id)).reduce(join(BinaryOp::Add));
        self.groups.iter().filter_map(sum).reduce(join(BinaryOp::Multiply))
    }

    /// A value where it acts, zero where it does not.
    pub fn times(&self, value: Scalar) -> Scalar {
        match self.factor() {
            Some(factor) => Scalar::Binary(BinaryOp::Multiply, Box::new(factor), Box::new(value)),
            None => value,
        }
    }
}
