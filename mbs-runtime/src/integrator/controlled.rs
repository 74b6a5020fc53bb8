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
}

/// A method whose error can be controlled: [`DormandPrince`](crate::DormandPrince), [`Sdirk4`](crate::Sdirk4).
#[allow(private_bounds, reason = "as for FixedStep, of which these are some")]
pub trait Controlled: FixedStep + Estimated + Copy {}

/// What it does.
pub(crate) trait Estimated: RungeKutta {
    /// The error estimate is of the order of h to one over this.
    const EXPONENT: f64;

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

    /// The estimate of the local error.
    fn error<'s, S: Scalar>(stages: &'s mut Self::Stages<'_, S>, h: S) -> &'s [S];

    /// The state at t0 + theta h, 0 ≤ theta ≤ 1, with Euler parameters that are not renormalised.
    fn dense<'s, S: Scalar>(stages: &'s mut Self::Stages<'_, S>, h: S, theta: S) -> &'s mut [S];
}
