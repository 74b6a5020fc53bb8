//! Multipliers of least norm where rows depend on each other.
//!
//! Only (Φ_zᵀ, Aᵀ) λ is determined then. With S = Φ_z P⁻¹ Φ_zᵀ the solution of
//!
//! ```text
//! [ P    Φ_zᵀ ] [x]   [ 0  ]
//! [ Φ_z  −E   ] [n] = [−E λ]        is n = (S + E)⁻¹ E λ:
//! ```
//!
//! the part of λ in the null space of S, and E/S of the rest. A second solution, with n in the place of λ, leaves (E/S)² of
//! the rest; λ − n is then the representative of least norm, Euclidean if E is the same for all rows. (To solve for that
//! representative itself, from Φ_zᵀ λ, would bring rounding of the size of S λ, divided by E, into the null space.)
//!
//! Factors know E itself to ε S, so n is right to ε S/E, about 1e−7: hence all of it again until nothing is left.

use crate::error::EvalError;
use crate::linear::{copy, largest};
use crate::pieces::{cut, cut_mut};
use crate::scalar::{Scalar, sqrt};

/// Times that a null part is taken away: of derivatives at least, and at most. Columns, or the imaginary part of complex numbers, may be
/// small beside what decides whether it is taken; a single column of real numbers decides for itself.
pub(crate) const PASSES: [usize; 2] = [2, 6];

/// Whether the next pass would find nothing but rounding behind this null part.
#[inline(always)]
pub(crate) fn is_taken<S: Scalar>(null: &[S], lambda: &[S]) -> bool {
    largest(null) <= 0.5 * sqrt(S::EPSILON) * largest(lambda)
}

/// Replaces `lambda` by its representative of least norm. `solve` solves in place with the factors; `null` and `x` are free.
pub(crate) fn least_norm<S: Scalar>(
    nq: usize,
    compliance: &[S],
    lambda: &mut [S],
    null: &mut [S],
    x: &mut [S],
    mut solve: impl FnMut(&mut [S]) -> Result<(), EvalError>,
) -> Result<(), EvalError> {
    let [least, most] = PASSES;
    for pass in 1..=most {
        copy(null, lambda);
        for _ in 0..2 {
            let (top, bottom) = cut_mut("x", x, nq)?;
            top.fill(S::ZERO);
            for ((x, &e), &n) in bottom.iter_mut().zip(compliance).zip(null.iter()) {
                *x = -e * n;
            }
            solve(x)?;
            let (_, found) = cut("x", x, nq)?;
            copy(null, found);
        }
        for (lambda, &n) in lambda.iter_mut().zip(null.iter()) {
            *lambda -= n;
        }
        if (S::REAL || pass >= least) && is_taken(null, lambda) {
            break;
        }
    }
    Ok(())
}
