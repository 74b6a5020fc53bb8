//! Why a simulation does not start, or does not go on: with the names of its model.

use core::fmt;
use core::marker::PhantomData;

use super::Simulated;
use crate::error::StepError;
use crate::readable::short;
use crate::scalar::Scalar;
use crate::system::{Names, Quantity};

/// A failure of a simulation of the model `M`; it is shown with the names of the model.
pub struct Error<M> {
    cause: Cause,
    model: PhantomData<fn() -> M>,
}

/// What failed.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Cause {
    /// Parameters that the model does not allow.
    Parameter(ParameterError),
    /// The start, or a step.
    Step(StepError),
}

/// A parameter that the model does not allow.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ParameterError {
    /// It is infinite or NaN.
    NotFinite {
        /// Its index, arrays flattened.
        index: usize,
        /// Its value.
        value: f64,
    },
    /// It is below or above what the model allows.
    Bounds {
        /// Its index, arrays flattened.
        index: usize,
        /// Its value.
        value: f64,
        /// Smallest allowed value.
        low: f64,
        /// Largest allowed value.
        high: f64,
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

/// What parameters must keep together: a margin that is not negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition {
    /// What is wrong where it fails, before the value.
    pub message: &'static str,
    /// Whether a margin of zero fails, too.
    pub strict: bool,
}

impl ParameterError {
    /// Whether all values are finite and keep their bounds; the first that does not is the error.
    pub fn check_bounds<S: Scalar>(values: &[S], bounds: &[(S, S)]) -> Result<(), Self> {
        for (index, (value, (low, high))) in values.iter().zip(bounds).enumerate() {
            let [value, low, high] = [value, low, high].map(|x| x.real());
            if !value.is_finite() {
                return Err(Self::NotFinite { index, value });
            }
            if value < low || value > high {
                return Err(Self::Bounds { index, value, low, high });
            }
        }
        Ok(())
    }

    /// Whether conditions hold: none does whose margin is not a number.
    pub fn check_conditions<S: Scalar>(
        conditions: &[Condition],
        margins: &[S],
        shown: &[S],
    ) -> Result<(), Self> {
        for ((condition, margin), value) in conditions.iter().zip(margins).zip(shown) {
            let (margin, value) = (margin.real(), value.real());
            let holds = if condition.strict { margin > 0.0 } else { margin >= 0.0 };
            if !holds {
                return Err(Self::Condition { message: condition.message, value });
            }
        }
        Ok(())
    }

    fn write<N: Names>(self, names: &N, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (index, value) = match self {
            Self::NotFinite { index, value } | Self::Bounds { index, value, .. } => (index, value),
            Self::Condition { message, value } => return write!(f, "{message}: {}", short(value)),
        };
        match names.name(Quantity::Parameter, index) {
            Some(name) => write!(f, "parameter `{name}` must be ")?,
            None => write!(f, "parameter {index} must be ")?,
        }
        match self {
            Self::NotFinite { .. } | Self::Condition { .. } => f.write_str("finite")?,
            Self::Bounds { low, high: f64::INFINITY, .. } => write!(f, "at least {}", short(low))?,
            Self::Bounds { low: f64::NEG_INFINITY, high, .. } => write!(f, "at most {}", short(high))?,
            Self::Bounds { low, high, .. } => write!(f, "between {} and {}", short(low), short(high))?,
        }
        write!(f, ", not {}", short(value))
    }
}

impl<M> Error<M> {
    /// What failed.
    pub fn cause(&self) -> Cause {
        self.cause
    }
}

impl<M> From<StepError> for Error<M> {
    fn from(error: StepError) -> Self {
        Self { cause: Cause::Step(error), model: PhantomData }
    }
}

impl<M> From<ParameterError> for Error<M> {
    fn from(error: ParameterError) -> Self {
        Self { cause: Cause::Parameter(error), model: PhantomData }
    }
}

impl<M> Clone for Error<M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for Error<M> {}

impl<M> PartialEq for Error<M> {
    fn eq(&self, other: &Self) -> bool {
        self.cause == other.cause
    }
}

impl<M: Simulated> fmt::Display for Error<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.cause {
            Cause::Parameter(error) => error.write(&M::NAMES, f),
            Cause::Step(error) => error.describe(&M::NAMES).fmt(f),
        }
    }
}

/// The message, which is what `main` shows of an error it returns.
impl<M: Simulated> fmt::Debug for Error<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<M: Simulated> core::error::Error for Error<M> {}
