//! Unknowns as the optimiser sees them.
//!
//! | symbol | meaning |
//! |---|---|
//! | x | an unknown in its own unit |
//! | y | the same scaled: x / s, or ln x |

use super::problem::Variable;
use mbs_codegen::model::optimisation::Scaling;

impl Variable {
    /// y of x.
    pub(crate) fn scaled(&self, x: f64) -> f64 {
        match self.scaling {
            Scaling::Logarithm => x.ln(),
            _ => x / self.scale,
        }
    }

    /// x of y, within the bounds whatever rounding does.
    pub(crate) fn unscaled(&self, y: f64) -> f64 {
        let x = match self.scaling {
            Scaling::Logarithm => y.exp(),
            _ => y * self.scale,
        };
        x.clamp(self.lower, self.upper)
    }

    /// The size of a change of y that is of the order of the unknown: of the bounds' width, or of the value.
    pub(crate) fn size(&self, y: f64) -> f64 {
        match self.scaling {
            Scaling::Logarithm => 1.0,
            // A tenth of the width is a large change of a value within it.
            Scaling::Width => 0.1,
            _ => y.abs().max(1e-3),
        }
    }

    /// dx/dy at x.
    pub(crate) fn slope(&self, x: f64) -> f64 {
        match self.scaling {
            Scaling::Logarithm => x,
            _ => self.scale,
        }
    }
}

/// The scaling of an unknown, and s.
pub(super) fn choose(scaling: Scaling, lower: f64, upper: f64, start: f64) -> (Scaling, f64) {
    let finite = |x: f64| Some(x).filter(|x| x.is_finite());
    let width = upper - lower;
    match scaling.chosen(finite(lower), finite(upper)) {
        Scaling::Number(s) => (Scaling::Number(s), s),
        Scaling::Width if width > 0.0 => (Scaling::Width, width),
        Scaling::Logarithm => (Scaling::Logarithm, 1.0),
        _ if start != 0.0 => (Scaling::Value, start.abs()),
        _ => (Scaling::Number(1.0), 1.0),
    }
}
