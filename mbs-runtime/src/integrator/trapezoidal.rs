//! The trapezoidal rule, of order 2, as an implicit Runge–Kutta method; and Newmark's formulas and generalized-alpha, which are this rule of
//! weighted rates (`weighted`).
//!
//! Input: t, y, h. Output: t + h and y after the step; nothing else is kept.
//!
//! ```text
//! y_next = y + h/2 (f(t, y) + f(t + h, y_next))
//! ```
//!
//! Of z = ∫ v dt this is z_next = z + h v + h²/4 (a + a_next), v_next = v + h/2 (a + a_next): Newmark's formulas with β = 1/4, γ = 1/2 [Newmark 1959].
//! The acceleration at a node follows from its state; only generalized-alpha carries another one on, after the state ([`Dims::stepped`]).

use super::explicit::Tableau;
use super::field::{self, Rates};
use super::fixed::{FixedStep, carried_len};
use super::stage::{Iteration, solve_stages};
use super::{RungeKutta, copy};
use crate::error::{EvalError, StepError};
use crate::pieces::Pieces;
use crate::scalar::Scalar;
use crate::system::Dims;

/// The trapezoidal rule in joint form. It steps systems that know the derivatives of their rates: [`Stiff`](crate::Stiff); in independent
/// coordinates by the formulas that [`MatrixR::by`](crate::MatrixR::by) names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trapezoidal;

/// The rates of both stages, the end, and what an iteration needs.
type Stages<'a, S> = ([&'a mut [S]; 2], &'a mut [S], Iteration<'a, S>);

impl Trapezoidal {
    /// Length of the scratch a step needs, at least; a constant for generated models. `dims` are those of [`Stiff`](crate::Stiff).
    #[inline(always)]
    pub const fn scratch_len(dims: &Dims) -> usize {
        Self::MEMORY * dims.stepped() + carried_len(dims) + field::scratch_len(dims)
    }
}

impl FixedStep for Trapezoidal {}

impl RungeKutta for Trapezoidal {
    const TABLEAU: Tableau = Tableau { a: &[&[], &[0.5]], b: &[0.5, 0.5], c: &[0.0, 1.0], gamma: 0.5 };

    const MEMORY: usize = 5;
    const IS_WEIGHTED: bool = true;

    type Stages<'a, S: Scalar> = Stages<'a, S>;

    #[inline(always)]
    fn stages<'a, S: Scalar>(n: usize, pieces: &mut Pieces<'a, S>) -> Result<Self::Stages<'a, S>, StepError> {
        let rates = [pieces.next(n)?, pieces.next(n)?];
        let (end, base, r) = (pieces.next(n)?, pieces.next(n)?, pieces.next(n)?);
        Ok((rates, end, Iteration { base, r, linearised: false }))
    }

    fn advance<F: Rates>(
        field: &mut F,
        (mut rates, end, mut iteration): Self::Stages<'_, F::S>,
        t: F::S,
        y: &mut [F::S],
        h: F::S,
    ) -> Result<(), EvalError> {
        field.begin_step(t, t + h);
        field.weigh_step(h);
        let [first, _] = &mut rates;
        field.rate(t, 0.0, y, first)?;
        solve_stages(field, &Self::TABLEAU, &mut iteration, (t, h), y, &mut rates, end)?;
        field.finish(t + h, end)?;
        copy(y, end);
        Ok(())
    }
}
