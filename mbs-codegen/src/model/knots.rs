//! Knots of tables and splines must increase, whatever values the parameters take that they follow.

use std::cmp::Ordering;
use std::fmt;

use super::evaluate::Values;
use super::{ArrayRef, Parameter, ParameterId, Scalar};

/// The first of a list of knots that is not above the one before it.
#[derive(Clone, Debug, PartialEq)]
pub struct FallingKnot {
    /// The array parameter that gives the knots; `None` for a list of expressions.
    pub array: Option<ParameterId>,
    /// Which knot, from 0.
    pub index: usize,
    /// The knot before it.
    pub before: f64,
    /// The knot.
    pub knot: f64,
}

impl fmt::Display for FallingKnot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FallingKnot { index, before, knot, .. } = self;
        write!(f, "knots must increase, but knot {index} is {knot} after {before}")
    }
}

impl FallingKnot {
    /// The first in an array; none either if the array has no numbers.
    pub fn find(array: &ArrayRef, values: &Values) -> Option<FallingKnot> {
        let knots = values.array(array).ok()?;
        let i = knots.windows(2).position(|k| k[0].partial_cmp(&k[1]) != Some(Ordering::Less))?;
        let array = match array {
            ArrayRef::Parameter(id) => Some(*id),
            ArrayRef::Literal(_) => None,
        };
        Some(FallingKnot { array, index: i + 1, before: knots[i], knot: knots[i + 1] })
    }

    /// The same with the name of the array, if there is one: "knots must increase, but knot 2 of `tk` is …".
    pub fn describe(&self, parameters: &[Parameter]) -> String {
        let FallingKnot { index, before, knot, .. } = self;
        match self.array.and_then(|id| parameters.get(id.index())) {
            Some(Parameter { name, .. }) => {
                format!("knots must increase, but knot {index} of `{name}` is {knot} after {before}")
            }
            None => self.to_string(),
        }
    }
}

impl ArrayRef {
    /// Whether its numbers may differ from those of the file.
    pub fn follows_parameters(&self) -> bool {
        match self {
            ArrayRef::Parameter(_) => true,
            ArrayRef::Literal(items) => !items.iter().all(|e| matches!(e, Scalar::Number(_))),
        }
    }
}
