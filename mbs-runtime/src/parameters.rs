//! Whether parameters are allowed: bounds of each, and what all together must keep.
//!
//! Enters: values, and the tables of a generated module. Leaves: the first value that is refused, by name.

use core::fmt;

/// What parameters must keep together: a margin that is not negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition {
    /// What is wrong where it fails, before the value.
    pub message: &'static str,
    /// Whether a margin of zero fails, too.
    pub strict: bool,
}

/// Why parameters are refused.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ParameterError {
    /// A value that is infinite or NaN.
    NotFinite {
        /// The parameter.
        name: &'static str,
    },
    /// A value that is below or above what the model allows.
    Bounds {
        /// The parameter.
        name: &'static str,
        /// Its value.
        value: f64,
        /// Smallest and largest allowed value.
        bounds: (f64, f64),
    },
    /// Values that no such mechanism has: a negative mass, an inertia no body has, knots that fall, sides of a loop that
    /// cannot meet.
    Condition {
        /// What is wrong.
        message: &'static str,
        /// The value that shows it.
        value: f64,
    },
}

impl fmt::Display for ParameterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParameterError::NotFinite { name } => write!(f, "parameter `{name}` must be finite"),
            ParameterError::Bounds { name, value, bounds: (low, high) } => {
                write!(f, "parameter `{name}` must be between {low} and {high}, not {value}")
            }
            ParameterError::Condition { message, value } => write!(f, "{message}: {value}"),
        }
    }
}

impl core::error::Error for ParameterError {}

/// Whether values are finite and within their bounds.
pub fn check_bounds(
    names: &[&'static str],
    values: &[f64],
    bounds: &[(f64, f64)],
) -> Result<(), ParameterError> {
    for ((&name, &value), &(low, high)) in names.iter().zip(values).zip(bounds) {
        if !value.is_finite() {
            return Err(ParameterError::NotFinite { name });
        }
        if value < low || value > high {
            return Err(ParameterError::Bounds { name, value, bounds: (low, high) });
        }
    }
    Ok(())
}

/// Whether conditions hold: none does whose margin is not a number.
pub fn check_conditions(
    conditions: &[Condition],
    margins: &[f64],
    shown: &[f64],
) -> Result<(), ParameterError> {
    for ((condition, &margin), &value) in conditions.iter().zip(margins).zip(shown) {
        let holds = if condition.strict { margin > 0.0 } else { margin >= 0.0 };
        if !holds {
            return Err(ParameterError::Condition { message: condition.message, value });
        }
    }
    Ok(())
}
