//! An implicit stage: Y = base + α f(t, Y), by Newton's method, with α = γh.
//!
//! ```text
//! (1 − α f_y) δ = base + α f(Y) − Y        Y += δ        k = (Y − base)/α
//! ```
//!
//! All stages of a step have the same α. The matrix is that of the first iterate of the step; where a correction has shrunk less than
//! tenfold it is made anew at the iterate. k is not f(Y): where f is stiff, Y has more digits than its rate.
//!
//! # When it has converged
//!
//! When the correction of coordinates e, in their units, is at most 8 ε Z, with Z = max(1, ‖z‖), but not by the first one: to rounding, so that
//! derivatives of the step are those of its result. With a matrix of the iterate itself corrections that do not shrink any more are
//! taken for convergence below 4096 ε Z, as in the steps of [`formulation`](crate::formulation).

use super::explicit::Tableau;
use super::field::Rates;
use super::{combine_all, copy};
use crate::error::EvalError;
use crate::scalar::Scalar;
use crate::system::Quantity;

/// Iterations of a stage.
const MAX_ITERATIONS: usize = 20;
/// A correction that has shrunk by less than this is not taken from an old matrix.
const POOR: f64 = 0.1;
/// Corrections that shrink by less than this do not shrink any more.
const STAGNANT: f64 = 0.5;
/// Rounding of an evaluation, in units of ε Z, and that of one that loses twelve bits.
const ROUNDING: f64 = 8.0;
const BAD_ROUNDING: f64 = 4096.0;

/// Memory of the iteration.
pub(crate) struct Iteration<'a, S> {
    /// Of the length of y.
    pub(crate) base: &'a mut [S],
    /// Of the same length, though only the first entries are used.
    pub(crate) r: &'a mut [S],
    /// Whether the field has a matrix for this step.
    pub(crate) linearised: bool,
}

/// Solves all stages of a step but the first, which is explicit and whose rate is known, and writes its end to `y1`. An iteration begins with the rate
/// of the stage before.
pub(crate) fn solve_stages<F: Rates>(
    field: &mut F,
    tableau: &Tableau,
    iteration: &mut Iteration<'_, F::S>,
    (t, h): (F::S, F::S),
    y0: &[F::S],
    k: &mut [&mut [F::S]],
    y1: &mut [F::S],
) -> Result<(), EvalError> {
    iteration.linearised = false;
    let alpha = F::S::from_f64(tableau.gamma) * h;
    for (i, (a, &c)) in tableau.a.iter().zip(tableau.c).enumerate().skip(1) {
        let Some((before, [now, ..])) = k.split_at_mut_checked(i) else { break };
        combine_all(y1, y0, h, a, before);
        if let Some(last) = before.last() {
            copy(now, last);
        }
        solve_stage(field, iteration, (t + F::S::from_f64(c) * h, c, alpha), y1, now)?;
    }
    combine_all(y1, y0, h, tableau.b, k);
    Ok(())
}

/// Solves a stage. `y`: the base, then Y; `k`: a guess of the rate, then the rate.
pub(crate) fn solve_stage<F: Rates>(
    field: &mut F,
    iteration: &mut Iteration<'_, F::S>,
    (t, c, alpha): (F::S, f64, F::S),
    y: &mut [F::S],
    k: &mut [F::S],
) -> Result<(), EvalError> {
    let Iteration { base, r, linearised } = iteration;
    let dims = field.dims();
    let moving = dims.nq + dims.nv;
    if !(F::S::ONE / alpha).is_finite() {
        // A step over a corner in time, too short to move the state.
        return field.rate(t, c, y, k);
    }
    copy(base, y);
    for (y, &k) in y.iter_mut().zip(k.iter()).take(moving) {
        *y += alpha * k;
    }
    let mut previous = f64::INFINITY;
    let mut increment = 0.0;
    for number in 1..=MAX_ITERATIONS {
        let rounding = F::S::EPSILON * field.size(y).max(1.0);
        field.state_rate(t, c, y, k)?;
        // Numbers with an imaginary part get exact matrices.
        let mut exact = !*linearised || !F::S::REAL;
        let contraction = loop {
            if exact {
                field.linearise(t, c, y, alpha)?;
                *linearised = true;
            }
            for (r, ((&base, &k), &y)) in
                r.iter_mut().zip(base.iter().zip(k.iter()).zip(y.iter())).take(moving)
            {
                *r = base + alpha * k - y;
            }
            field.solve(t, c, y, alpha, r)?;
            increment = field.size(r);
            let contraction = increment / previous;
            if exact || contraction <= POOR || increment <= ROUNDING * rounding {
                break contraction;
            }
            exact = true;
        };
        for (y, &r) in y.iter_mut().zip(r.iter()).take(moving) {
            *y += r;
        }
        let settled = r.iter().take(moving).all(|r| *r == F::S::ZERO);
        let converged = increment <= ROUNDING * rounding && number > 1;
        let stagnant = exact && contraction > STAGNANT && increment.max(previous) <= BAD_ROUNDING * rounding;
        if settled || converged || stagnant {
            return field.close_stage(t, c, alpha, base, y, k);
        }
        if !increment.is_finite() {
            break;
        }
        previous = increment;
    }
    let sizes = r.iter().enumerate().take(dims.nq).map(|(i, r)| (i, r.real().abs()));
    let worst = sizes.max_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(i, _)| i);
    Err(EvalError::NotConverged {
        iterations: MAX_ITERATIONS,
        increment,
        quantity: Quantity::Coordinate,
        index: worst,
    })
}
