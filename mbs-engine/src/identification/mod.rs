//! Parameters from measurements: least squares, with what the data say of each parameter.
//!
//! Input: a model, parameters to find within bounds, [`Measurements`] of columns of its run. Output: a [`Fit`] with standard deviations,
//! correlations and directions that the data do not determine, by name.
//!
//! | symbol | meaning |
//! |---|---|
//! | r | (y(t; x) − measured) w, of every column and time that was measured |
//! | J | ∂r/∂y of the scaled unknowns, by four-point differences of runs |
//! | s² | ‖r‖²/(m − n): variance of a measurement of weight one |
//! | C | s² (JᵀJ)⁻¹, the covariance of the scaled unknowns |

mod fit;
mod measurements;
mod statistics;

pub use fit::{End, Fit, FitError, Step, fit};
pub use measurements::{Measured, MeasurementError, Measurements};
pub use statistics::{Direction, Statistics};
