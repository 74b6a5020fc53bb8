//! Failures of runs in words, for results of many runs.

use crate::Interpreted;
use crate::simulation::RunFailure;

/// Why a run failed, in words.
pub(crate) fn describe(model: &Interpreted, failure: &RunFailure) -> String {
    match failure {
        RunFailure::Start(error) => format!("no consistent start: {}", error.describe(model)),
        RunFailure::Step(error) => error.describe(model).to_string(),
        RunFailure::Observe(t, error) => format!("at t = {t}: {}", error.describe(model)),
        RunFailure::Stopped(t) => format!("stopped at t = {t}"),
    }
}
