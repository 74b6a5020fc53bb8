//! What step control asks of a method: an error estimate, and states within a step.

use super::RungeKutta;
use super::field::Rates;
use super::fixed::FixedStep;
use crate::error::EvalError;
use crate::scalar::Scalar;

/// The ends of a step in the method's memory, and what step control uses besides.
pub(crate) struct Ends<'s, S> {
    /// The state at its start.
    pub(crate) y0: &'s mut [S],
    /// At its end.
    pub(crate) y1: &'s mut [S],
    /// The rate at its start.
    pub(crate) first: &'s mut [S],
    /// Free once the step is made; the error after [`Estimated::error`].
    pub(crate) spare: &'s mut [S],
    /// A second estimate of lower order, of methods that have one, after [`Estimated::error`].
    pub(crate) second: Option<&'s mut [S]>,
}

/// A method whose error can be controlled: [`DormandPrince`](crate::DormandPrince), [`Dop853`](crate::Dop853), [`Sdirk4`](crate::Sdirk4).
#[allow(private_bounds, reason = "as for FixedStep, of which these are some")]
pub trait Controlled: FixedStep + Estimated + Copy {}

/// What it does.
pub(crate) trait Estimated: RungeKutta {
    /// The error estimate is of the order of h to one over this.
    const EXPONENT: f64;

    /// Weight of the previous error in the choice of the step: its exponent.
    const PREVIOUS: f64;

    /// Its parts.
    fn ends<'s, S: Scalar>(stages: &'s mut Self::Stages<'_, S>) -> Ends<'s, S>;

    /// Makes the rate at the end of the step before that at the start of the next, if the method has it.
    fn hand_on<S: Scalar>(stages: &mut Self::Stages<'_, S>) -> bool;

    /// From y0 and the first rate: all stages, and y1 as steps end.
    fn solve<F: Rates>(
        stages: &mut Self::Stages<'_, F::S>,
        field: &mut F,
        t: F::S,
        h: F::S,
        t1: F::S,
    ) -> Result<(), EvalError>;

    /// Estimates the local error.
    fn error<S: Scalar>(stages: &mut Self::Stages<'_, S>, h: S);

    /// Evaluates the rates that dense output alone needs, in the step from t to `t1` that was made last; once is enough.
    #[inline(always)]
    fn extend<F: Rates>(
        _stages: &mut Self::Stages<'_, F::S>,
        _field: &mut F,
        _t: F::S,
        _h: F::S,
        _t1: F::S,
    ) -> Result<(), EvalError> {
        Ok(())
    }

    /// The state at t0 + theta h, 0 ≤ theta ≤ 1, with Euler parameters that are not renormalised; none before [`Estimated::extend`].
    fn dense<'s, S: Scalar>(stages: &'s mut Self::Stages<'_, S>, h: S, theta: S) -> Option<&'s mut [S]>;
}
