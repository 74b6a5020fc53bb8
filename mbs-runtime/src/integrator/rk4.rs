//! The classical Runge–Kutta method of order 4 [Hairer, Nørsett, Wanner, Solving ODEs I, II.1, Table 1.2].
//!
//! Input: t, y, h. Output: t + h and y after the step, Euler parameters renormalised and corrected by the system; nothing else is kept. The local
//! error of |p| is of order 5, so renormalising keeps order 4.
//!
//! ```text
//! k1 = f(t, y)   k2 = f(t + h/2, y + h/2 k1)   k3 = f(t + h/2, y + h/2 k2)   k4 = f(t + h, y + h k3)
//! y_next = y + h/6 (k1 + 2 k2 + 2 k3 + k4)
//! ```

use super::explicit::Tableau;
use super::field::{self, Rates};
use super::fixed::FixedStep;
use super::{RungeKutta, combine, copy};
use crate::error::{EvalError, StepError};
use crate::pieces::Pieces;
use crate::scalar::Scalar;
use crate::system::Dims;

/// The classical method of order 4.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rk4;

impl Rk4 {
    /// Length of the scratch a step needs, at least; a constant for generated models.
    #[inline(always)]
    pub const fn scratch_len(dims: &Dims) -> usize {
        Self::MEMORY * dims.state() + field::scratch_len(dims)
    }
}

impl FixedStep for Rk4 {}

impl RungeKutta for Rk4 {
    const TABLEAU: Tableau = Tableau {
        a: &[&[], &[0.5], &[0.0, 0.5], &[0.0, 0.0, 1.0]],
        b: &[1.0 / 6.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 6.0],
        c: &[0.0, 0.5, 0.5, 1.0],
        gamma: 0.0,
    };

    const MEMORY: usize = 5;

    type Stages<'a, S: Scalar> = [&'a mut [S]; 5];

    #[inline(always)]
    fn stages<'a, S: Scalar>(n: usize, pieces: &mut Pieces<'a, S>) -> Result<Self::Stages<'a, S>, StepError> {
        Ok([pieces.next(n)?, pieces.next(n)?, pieces.next(n)?, pieces.next(n)?, pieces.next(n)?])
    }

    #[inline(always)]
    fn advance<F: Rates>(
        field: &mut F,
        [k1, k2, k3, k4, y_next]: Self::Stages<'_, F::S>,
        t: F::S,
        y: &mut [F::S],
        h: F::S,
    ) -> Result<(), EvalError> {
        stages(field, t, y, h, [k1, k2, k3, k4], y_next)?;
        copy(y, y_next);
        Ok(())
    }
}

#[inline(always)]
fn stages<F: Rates>(
    field: &mut F,
    t: F::S,
    y: &[F::S],
    h: F::S,
    [k1, k2, k3, k4]: [&mut [F::S]; 4],
    y_next: &mut [F::S],
) -> Result<(), EvalError> {
    let half = F::S::from_f64(0.5) * h;
    field.begin_step(t, t + h);
    field.rate(t, 0.0, y, k1)?;
    combine(y_next, y, half, [(1.0, k1)]);
    field.rate(t + half, 0.5, y_next, k2)?;
    combine(y_next, y, half, [(1.0, k2)]);
    field.rate(t + half, 0.5, y_next, k3)?;
    combine(y_next, y, h, [(1.0, k3)]);
    field.rate(t + h, 1.0, y_next, k4)?;
    combine(y_next, y, h / F::S::from_f64(6.0), [(1.0, k1), (2.0, k2), (2.0, k3), (1.0, k4)]);
    field.finish(t + h, y_next)
}
