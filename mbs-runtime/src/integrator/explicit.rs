//! What Runge–Kutta methods and their runs have in common, over anything that has rates.

use core::ops::ControlFlow;

use super::drive::{Hooks, Next, Stepper, Taken};
use super::field::Rates;
use crate::error::{EvalError, StepError};
use crate::pieces::{Pieces, cut};
use crate::scalar::Scalar;
use crate::system::{At, Dims};

/// The numbers of a method of s stages: k_i = f(t + c_i h, Y_i), Y_i = y + h Σ a_ij k_j + h γ k_i, y_next = y + h Σ b_i k_i.
pub(crate) struct Tableau {
    /// Rows of a, of i − 1 numbers.
    pub(crate) a: &'static [&'static [f64]],
    pub(crate) b: &'static [f64],
    pub(crate) c: &'static [f64],
    /// γ of all stages but the first, which is explicit; zero for explicit methods.
    pub(crate) gamma: f64,
}

/// A Runge–Kutta method, explicit or diagonally implicit.
pub(crate) trait RungeKutta {
    /// Its numbers, for those who go over a step backward.
    const TABLEAU: Tableau;

    /// Whether its rates are weighted by the formulas that the system names, see `weighted`.
    const IS_WEIGHTED: bool = false;

    /// Its memory.
    type Stages<'a, S: Scalar>;

    /// Values of its memory for each of the state.
    const MEMORY: usize;

    /// Length of its memory for a state of `n` values.
    #[inline(always)]
    fn memory_len(n: usize) -> usize {
        Self::MEMORY * n
    }

    /// Takes its memory from `pieces`.
    fn stages<'a, S: Scalar>(n: usize, pieces: &mut Pieces<'a, S>) -> Result<Self::Stages<'a, S>, StepError>;

    /// Takes `y` at `t` one step further by `h`. After an error it is as before.
    fn advance<F: Rates>(
        field: &mut F,
        stages: Self::Stages<'_, F::S>,
        t: F::S,
        y: &mut [F::S],
        h: F::S,
    ) -> Result<(), EvalError>;
}

/// A run of explicit steps.
pub(crate) trait ExplicitRun: Stepper {
    /// What has the rates.
    type Field: Rates<S = Self::S>;

    /// It, and the state.
    fn parts(&mut self) -> (&mut Self::Field, &mut [Self::S]);
}

/// Output at observed nodes: of time, state and inputs.
pub(crate) struct Observe<O>(pub(crate) O);

impl<W: ExplicitRun, O> Hooks<W> for Observe<O>
where
    O: FnMut(W::S, &[W::S], &[W::S]) -> Result<ControlFlow<()>, StepError>,
{
    #[inline(always)]
    fn node(&mut self, run: &mut W, step: &Taken<W::S>, observed: bool) -> Result<Next, StepError> {
        if !observed {
            return Ok(Next::Continue);
        }
        let (field, y) = run.parts();
        let stopped = (self.0)(step.end, y, field.at_node(step.end))?.is_break();
        Ok(if stopped { Next::Stop } else { Next::Continue })
    }
}

/// An observer of instants as one of states.
#[inline(always)]
pub(super) fn of_state<S: Scalar>(
    dims: Dims,
    mut observe: impl FnMut(At<'_, S>) -> ControlFlow<()>,
) -> impl FnMut(S, &[S], &[S]) -> Result<ControlFlow<()>, StepError> {
    move |t, y, u| {
        let fail = |error: EvalError| error.in_step(t.real(), 0.0);
        let (y, _) = cut("y", y, dims.state()).map_err(fail)?;
        Ok(observe(At::of_state(&dims, t, y, u).map_err(fail)?))
    }
}
