//! The method of Dormand and Prince of order 5 with its embedded error estimate of order 4 and its dense output of
//! order 4 [Hairer, Nørsett, Wanner, Solving ODEs I: Table 5.2 in II.5, dense output II.6 and the code DOPRI5].
//!
//! Input: t, y, h. Output: y after the step, with the seven stages kept in the scratch for error and dense output.
//!
//! Euler parameters are renormalised *before* the seventh stage, which is therefore the rate at the very state that
//! the step returns: it serves as the first stage of the next step bit for bit. Renormalising moves y by its local
//! error, O(h⁶). The error estimate then changes by O(h⁷) against its own O(h⁵), and the dense output, which runs to
//! the renormalised end, by O(h⁶) against O(h⁵): no order is lost.

use super::controlled::{Controlled, Ends, Estimated};
use super::explicit::Tableau;
use super::field::{self, Rates};
use super::fixed::FixedStep;
use super::{RungeKutta, combine, copy, weighted_sum};
use crate::error::{EvalError, StepError};
use crate::pieces::Pieces;
use crate::scalar::Scalar;
use crate::system::Dims;

/// The method of order 5. By itself it makes fixed steps; [`Adaptive`](super::Adaptive) controls its error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DormandPrince;

/// Nodes c.
const C: [f64; 7] = [0.0, 1.0 / 5.0, 3.0 / 10.0, 4.0 / 5.0, 8.0 / 9.0, 1.0, 1.0];

/// Rows 2 to 6 of the matrix a.
const A2: [f64; 1] = [1.0 / 5.0];
const A3: [f64; 2] = [3.0 / 40.0, 9.0 / 40.0];
const A4: [f64; 3] = [44.0 / 45.0, -56.0 / 15.0, 32.0 / 9.0];
const A5: [f64; 4] = [19372.0 / 6561.0, -25360.0 / 2187.0, 64448.0 / 6561.0, -212.0 / 729.0];
const A6: [f64; 5] = [9017.0 / 3168.0, -355.0 / 33.0, 46732.0 / 5247.0, 49.0 / 176.0, -5103.0 / 18656.0];

/// Weights b of order 5, which are also row 7 of a; that of k2 is zero.
const B: [f64; 5] = [35.0 / 384.0, 500.0 / 1113.0, 125.0 / 192.0, -2187.0 / 6784.0, 11.0 / 84.0];

/// b minus the weights of order 4, of k1, k3, ..., k7.
const E: [f64; 6] =
    [71.0 / 57600.0, -71.0 / 16695.0, 71.0 / 1920.0, -17253.0 / 339200.0, 22.0 / 525.0, -1.0 / 40.0];

/// Weights of the last term of the dense output, of k1, k3, ..., k7.
const D: [f64; 6] = [
    -12715105075.0 / 11282082432.0,
    87487479700.0 / 32700410799.0,
    -10690763975.0 / 1880347072.0,
    701980252875.0 / 199316789632.0,
    -1453857185.0 / 822651844.0,
    69997945.0 / 29380423.0,
];

/// A step in the scratch: where it began, where it ended, its stages.
pub(crate) struct Stages<'a, S> {
    y0: &'a mut [S],
    y1: &'a mut [S],
    k1: &'a mut [S],
    /// Has no weight in solution, error and dense output: free once the step is made.
    k2: &'a mut [S],
    k3: &'a mut [S],
    k4: &'a mut [S],
    k5: &'a mut [S],
    k6: &'a mut [S],
    k7: &'a mut [S],
}

impl DormandPrince {
    /// Length of the scratch a step needs, at least; a constant for generated models.
    #[inline(always)]
    pub const fn scratch_len(dims: &Dims) -> usize {
        Self::MEMORY * dims.state() + field::scratch_len(dims)
    }
}

impl<'a, S: Scalar> Stages<'a, S> {
    #[inline(always)]
    fn new(n: usize, pieces: &mut Pieces<'a, S>) -> Result<Self, StepError> {
        Ok(Self {
            y0: pieces.next(n)?,
            y1: pieces.next(n)?,
            k1: pieces.next(n)?,
            k2: pieces.next(n)?,
            k3: pieces.next(n)?,
            k4: pieces.next(n)?,
            k5: pieces.next(n)?,
            k6: pieces.next(n)?,
            k7: pieces.next(n)?,
        })
    }

    /// From y0 and k1: k2 to k6, and y1 renormalised and finite.
    #[inline(always)]
    fn solve<F: Rates<S = S>>(&mut self, field: &mut F, t: S, h: S) -> Result<(), EvalError> {
        let Self { y0, y1, k1, k2, k3, k4, k5, k6, .. } = self;
        let at = |c: f64| t + S::from_f64(c) * h;
        combine(y1, y0, h, [(A2[0], k1)]);
        field.rate(at(C[1]), C[1], y1, k2)?;
        combine(y1, y0, h, [(A3[0], k1), (A3[1], k2)]);
        field.rate(at(C[2]), C[2], y1, k3)?;
        combine(y1, y0, h, [(A4[0], k1), (A4[1], k2), (A4[2], k3)]);
        field.rate(at(C[3]), C[3], y1, k4)?;
        combine(y1, y0, h, [(A5[0], k1), (A5[1], k2), (A5[2], k3), (A5[3], k4)]);
        field.rate(at(C[4]), C[4], y1, k5)?;
        combine(y1, y0, h, [(A6[0], k1), (A6[1], k2), (A6[2], k3), (A6[3], k4), (A6[4], k5)]);
        field.rate(at(C[5]), C[5], y1, k6)?;
        combine(y1, y0, h, [(B[0], k1), (B[1], k3), (B[2], k4), (B[3], k5), (B[4], k6)]);
        field.finish(at(C[6]), y1)
    }

    /// k7, the rate at the end `t1` of the step.
    #[inline(always)]
    fn close<F: Rates<S = S>>(&mut self, field: &mut F, t1: S) -> Result<(), EvalError> {
        field.rate(t1, C[6], self.y1, self.k7)
    }

    /// Into k2: the estimate of the local error, h Σ e k.
    #[inline(always)]
    fn error(&mut self, h: S) {
        let Self { k1, k2, k3, k4, k5, k6, k7, .. } = self;
        weighted_sum(k2, [(E[0], k1), (E[1], k3), (E[2], k4), (E[3], k5), (E[4], k6), (E[5], k7)]);
        for e in k2.iter_mut() {
            *e *= h;
        }
    }

    /// Into k2: the state at t0 + theta h, 0 <= theta <= 1, with Euler parameters that are not renormalised.
    ///
    /// ```text
    /// y = y0 + theta (r2 + (1 - theta) (r3 + theta (r4 + (1 - theta) r5)))                [II.6, code DOPRI5]
    /// r2 = y1 - y0    r3 = h k1 - r2    r4 = r2 - h k7 - r3    r5 = h Σ d k
    /// ```
    #[inline(always)]
    fn dense(&mut self, h: S, theta: S) -> &mut [S] {
        let Self { y0, y1, k1, k2, k3, k4, k5, k6, k7 } = self;
        weighted_sum(k2, [(D[0], k1), (D[1], k3), (D[2], k4), (D[3], k5), (D[4], k6), (D[5], k7)]);
        let rest = S::ONE - theta;
        let ends = y0.iter().zip(y1.iter()).zip(k1.iter().zip(k7.iter()));
        for (y, ((&y0, &y1), (&k1, &k7))) in k2.iter_mut().zip(ends) {
            let r5 = h * *y;
            let r2 = y1 - y0;
            let r3 = h * k1 - r2;
            let r4 = r2 - h * k7 - r3;
            *y = y0 + theta * (r2 + rest * (r3 + theta * (r4 + rest * r5)));
        }
        k2
    }
}

impl FixedStep for DormandPrince {}

impl RungeKutta for DormandPrince {
    /// Without the seventh stage, which serves error and dense output.
    const TABLEAU: Tableau = Tableau {
        a: &[&[], &A2, &A3, &A4, &A5, &A6],
        b: &[B[0], 0.0, B[1], B[2], B[3], B[4]],
        c: &[C[0], C[1], C[2], C[3], C[4], C[5]],
        gamma: 0.0,
    };

    const MEMORY: usize = 9;

    type Stages<'a, S: Scalar> = Stages<'a, S>;

    #[inline(always)]
    fn stages<'a, S: Scalar>(n: usize, pieces: &mut Pieces<'a, S>) -> Result<Self::Stages<'a, S>, StepError> {
        Stages::new(n, pieces)
    }

    #[inline(always)]
    fn advance<F: Rates>(
        field: &mut F,
        mut stages: Self::Stages<'_, F::S>,
        t: F::S,
        y: &mut [F::S],
        h: F::S,
    ) -> Result<(), EvalError> {
        copy(stages.y0, y);
        field.begin_step(t, t + h);
        field.rate(t, C[0], stages.y0, stages.k1)?;
        stages.solve(field, t, h)?;
        copy(y, stages.y1);
        Ok(())
    }
}

impl Controlled for DormandPrince {}

impl Estimated for DormandPrince {
    const EXPONENT: f64 = 0.2;

    const PREVIOUS: f64 = 0.04;

    #[inline(always)]
    fn ends<'s, S: Scalar>(stages: &'s mut Self::Stages<'_, S>) -> Ends<'s, S> {
        let Stages { y0, y1, k1, k2, .. } = stages;
        Ends { y0, y1, first: k1, spare: k2, second: None }
    }

    #[inline(always)]
    fn hand_on<S: Scalar>(stages: &mut Self::Stages<'_, S>) -> bool {
        copy(stages.k1, stages.k7);
        true
    }

    #[inline(always)]
    fn solve<F: Rates>(
        stages: &mut Self::Stages<'_, F::S>,
        field: &mut F,
        t: F::S,
        h: F::S,
        t1: F::S,
    ) -> Result<(), EvalError> {
        stages.solve(field, t, h)?;
        stages.close(field, t1)
    }

    #[inline(always)]
    fn error<S: Scalar>(stages: &mut Self::Stages<'_, S>, h: S) {
        stages.error(h);
    }

    #[inline(always)]
    fn dense<'s, S: Scalar>(stages: &'s mut Self::Stages<'_, S>, h: S, theta: S) -> Option<&'s mut [S]> {
        Some(stages.dense(h, theta))
    }
}
