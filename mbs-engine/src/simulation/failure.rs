//! Why a run did not come to its end.

use mbs_runtime::{EvalError, StepError};

/// Why a run did not come to its end.
#[derive(Clone, Debug)]
pub enum RunFailure {
    /// There is no consistent start.
    Start(StepError),
    /// The integrator could not go on.
    Step(StepError),
    /// Outputs, objectives or energy could not be evaluated at a time.
    Observe(f64, EvalError),
    /// Who follows it stopped it at a time.
    Stopped(f64),
}
