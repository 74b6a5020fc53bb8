//! Parameters by name: which index a name has, and which values it may take.
//!
//! Input: the table of a program and what a person wrote. Output: indices into the flattened parameters, or an
//! error that names the thing and, where there is one, the nearest valid name.

use mbs_codegen::diagnostics::nearest;
use mbs_codegen::program::ParameterInfo;
use std::fmt;
use std::ops::Range;

/// Why a parameter was not set. Nothing was changed then.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ParameterError {
    /// There is no independent parameter of this name.
    Unknown {
        /// The name that was asked for.
        name: String,
        /// The nearest name there is.
        nearest: Option<String>,
    },
    /// An array without an index, where one value was given.
    Array {
        /// Its name.
        name: String,
        /// How many values it has.
        len: usize,
    },
    /// An index beyond the end, or of a parameter that is no array.
    Index {
        /// The parameter's name.
        name: String,
        /// The index, as written.
        index: String,
        /// How many values it has; none if it is no array.
        len: Option<usize>,
    },
    /// A value that is below or above what the model allows.
    Bounds {
        /// The parameter.
        name: String,
        /// The value.
        value: f64,
        /// Smallest and largest allowed value.
        bounds: (Option<f64>, Option<f64>),
    },
    /// A value that is infinite or NaN.
    NotFinite {
        /// The parameter.
        name: String,
    },
    /// Values that no such mechanism has: a negative mass, an inertia no body has, knots that fall, sides of a loop that
    /// cannot meet.
    Condition {
        /// What is wrong.
        message: String,
    },
    /// Lengths or inertias far from those of the defaults, for which the equations are scaled.
    Scale {
        /// What is too large or too small.
        message: String,
    },
    /// A wrong number of values for all parameters at once.
    Count {
        /// How many there are.
        expected: usize,
        /// How many were given.
        found: usize,
    },
}

impl fmt::Display for ParameterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParameterError::Unknown { name, nearest } => {
                write!(f, "there is no independent parameter `{name}`")?;
                nearest.iter().try_for_each(|near| write!(f, "; did you mean `{near}`?"))
            }
            ParameterError::Array { name, len } => {
                write!(
                    f,
                    "parameter `{name}` is an array: set `{name}[0]` to `{name}[{}]`",
                    len.saturating_sub(1)
                )
            }
            ParameterError::Index { name, index, len: Some(len) } => {
                write!(
                    f,
                    "parameter `{name}` has {len} values, numbered from 0; there is no `{name}[{index}]`"
                )
            }
            ParameterError::Index { name, index, len: None } => {
                write!(f, "parameter `{name}` is no array; there is no `{name}[{index}]`")
            }
            ParameterError::Bounds { name, value, bounds } => {
                write!(f, "parameter `{name}` must be ")?;
                match bounds {
                    (Some(low), Some(high)) => write!(f, "between {low} and {high}")?,
                    (Some(low), None) => write!(f, "at least {low}")?,
                    (None, Some(high)) => write!(f, "at most {high}")?,
                    (None, None) => write!(f, "a number")?,
                }
                write!(f, ", not {value}")
            }
            ParameterError::NotFinite { name } => write!(f, "parameter `{name}` must be finite"),
            ParameterError::Condition { message } | ParameterError::Scale { message } => f.write_str(message),
            ParameterError::Count { expected, found } => {
                write!(f, "{expected} parameters are needed, {found} were given")
            }
        }
    }
}

impl std::error::Error for ParameterError {}

/// Where the values of a parameter stand among all: `name` or `name[i]`.
pub(crate) fn find(infos: &[ParameterInfo], name: &str) -> Result<(usize, Range<usize>), ParameterError> {
    let (base, index) = match name.trim_end().strip_suffix(']').and_then(|rest| rest.split_once('[')) {
        Some((base, index)) => (base.trim(), Some(index.trim())),
        None => (name.trim(), None),
    };
    let mut start = 0;
    for (number, info) in infos.iter().enumerate() {
        let len = info.defaults.len();
        if info.name != base {
            start += len;
            continue;
        }
        let Some(index) = index else {
            return Ok((number, start..start + len));
        };
        let wrong = |len| ParameterError::Index { name: base.into(), index: index.into(), len };
        if !info.is_array {
            return Err(wrong(None));
        }
        let i = index.parse::<usize>().ok().filter(|&i| i < len).ok_or(wrong(Some(len)))?;
        return Ok((number, start + i..start + i + 1));
    }
    let names = infos.iter().map(|info| info.name.as_str());
    Err(ParameterError::Unknown { name: base.into(), nearest: nearest(base, names).map(String::from) })
}

/// Whether a value is allowed; `name` is for the message.
pub(crate) fn check(info: &ParameterInfo, name: &str, value: f64) -> Result<(), ParameterError> {
    let (low, high) = info.bounds;
    if !value.is_finite() {
        Err(ParameterError::NotFinite { name: name.into() })
    } else if low.is_some_and(|low| value < low) || high.is_some_and(|high| value > high) {
        Err(ParameterError::Bounds { name: name.into(), value, bounds: info.bounds })
    } else {
        Ok(())
    }
}
