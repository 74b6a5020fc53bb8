//! Multipliers of least norm where rows depend on each other.
//!
//! Only (Φ_zᵀ, Aᵀ) λ is determined then. The solution of
//!
//! ```text
//! [ P    Φ_zᵀ ] [x]   [Φ_zᵀ λ]
//! [ Φ_z  −E   ] [y] = [0     ]        is y = (S + E)⁻¹ S λ,  S = Φ_z P⁻¹ Φ_zᵀ:
//! ```
//!
//! λ up to the part E/S on the range of S, and zero in its null space. With E the same for all rows that is the
//! representative of least Euclidean norm; one refinement leaves (E/S)² of it.

use crate::error::EvalError;
use crate::linear::add_scaled;
use crate::scalar::Scalar;

/// Replaces `lambda` by its representative of least norm. `solve` turns x = (·, λ) into y; `found` and `x` are free.
pub(crate) fn least_norm<S: Scalar>(
    nq: usize,
    lambda: &mut [S],
    found: &mut [S],
    x: &mut [S],
    mut solve: impl FnMut(&[S], &mut [S]) -> Result<(), EvalError>,
) -> Result<(), EvalError> {
    found.fill(S::ZERO);
    for _ in 0..2 {
        for (lambda, &found) in lambda.iter_mut().zip(found.iter()) {
            *lambda -= found;
        }
        x.fill(S::ZERO);
        solve(lambda, x)?;
        for (lambda, &found) in lambda.iter_mut().zip(found.iter()) {
            *lambda += found;
        }
        let (_, y) = x.split_at_checked(nq).unwrap_or_default();
        add_scaled(found, S::ONE, y);
    }
    crate::linear::copy(lambda, found);
    Ok(())
}
