//! The small numbers E on the diagonal of the leading matrix.
//!
//! Row k of Newton's system is Φ_z δ − E_k dλ_k = −Φ/(βh²). Eliminating dλ gives the augmented Lagrangian iteration with
//! penalty α_k = 1/(βh² E_k) [Dopico2018, Eqs. 8–10; LopezVarela2023, Eq. 8]: the same iterates, but without the condition
//! number of M + βh² Φ_zᵀ α Φ_z. One iteration leaves the part E/(σ + E) of a multiplier's error, with σ of the size of
//! S_k = Σ_j Φ_kj²/M_jj. Hence E in proportion to S, whatever the step.
//!
//! | symbol | meaning |
//! |---|---|
//! | S_k | row scale, from the state |
//! | E_k, E'_k | of holonomic rows 1/(βh² α_k), of nonholonomic rows 1/(γh α_k) |
//! | c | α_k βh² S_k |

use crate::constrained::Weights;
use crate::error::StepError;
use crate::integrator::positive;
use crate::linear::blocks::holonomic_rows;
use crate::scalar::{Scalar, sqrt};
use crate::system::{Dims, Units};

/// The penalty of constraints in an augmented Lagrangian step. It decides how fast the iteration converges, not where to.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Penalty {
    /// α_k = c/(βh² S_k), so that each iteration leaves the part 1/c of a multiplier's error, for any step.
    Scaled(f64),
    /// The same α for all rows.
    Given(f64),
    /// α_k from the state.
    Rows,
}

impl Penalty {
    /// The default, c = 1e9, or less in single precision: as large as rounding allows, so that also nearly dependent rows,
    /// σ ≪ S, are solved for in a few iterations. In bordered form a large penalty costs no condition.
    pub const DEFAULT: Self = Self::Scaled(1e9);

    /// Writes E for Newton's system. Gives the largest part of a multiplier's error that an iteration is expected to leave.
    #[inline(always)]
    pub(crate) fn write<S: Scalar>(
        &self,
        dims: &Dims,
        weights: &Weights<S>,
        scale: &[S],
        penalty: &[S],
        compliance: &mut [S],
    ) -> Result<f64, StepError> {
        match *self {
            Self::Scaled(c) => {
                positive("the scaled penalty must be positive and finite", c)?;
                // E = S/c, above what rounding makes of S.
                let part = (1.0 / c).max(least_part::<S>());
                for (e, s) in compliance.iter_mut().zip(scale) {
                    *e = S::from_f64(part * scale_of(*s));
                }
                Ok(part)
            }
            Self::Given(alpha) => {
                positive("the penalty must be positive and finite", alpha)?;
                Ok(given(dims, weights, scale, compliance, |_| alpha))
            }
            Self::Rows => {
                for alpha in penalty {
                    positive("the penalty of each row must be positive and finite", alpha.real())?;
                }
                let alpha = |k: usize| penalty.get(k).map_or(1.0, |alpha| alpha.real());
                Ok(given(dims, weights, scale, compliance, alpha))
            }
        }
    }
}

/// E_k = 1/(βh² α_k), of nonholonomic rows 1/(γh α_k).
#[inline(always)]
fn given<S: Scalar>(
    dims: &Dims,
    weights: &Weights<S>,
    scale: &[S],
    compliance: &mut [S],
    alpha: impl Fn(usize) -> f64,
) -> f64 {
    let mut largest: f64 = 0.0;
    for (k, (e, s)) in compliance.iter_mut().zip(scale).enumerate() {
        let weight = if k < holonomic_rows(dims) { weights.position } else { weights.velocity };
        let value = 1.0 / (weight.real() * alpha(k));
        *e = S::from_f64(value);
        largest = largest.max(value / (value + scale_of(*s)));
    }
    largest
}

/// E where constraints are to hold at once, up to refinement: in projections and at the start. In redundant systems it is
/// the same for all rows in their units, which makes the multipliers those of least Euclidean norm.
#[inline(always)]
pub(crate) fn write_least<S: Scalar>(scale: &[S], units: Units<'_>, redundant: bool, compliance: &mut [S]) {
    let part = least_part::<S>();
    if redundant {
        let square = |row: usize| units.row(row) * units.row(row);
        let sum: f64 = scale.iter().enumerate().map(|(row, s)| scale_of(*s) / square(row)).sum();
        let mean = part * sum / scale.len().max(1) as f64;
        for (row, e) in compliance.iter_mut().enumerate() {
            *e = S::from_f64(mean * square(row));
        }
    } else {
        for (e, s) in compliance.iter_mut().zip(scale) {
            *e = S::from_f64(part * scale_of(*s));
        }
    }
}

/// E that leaves nothing of an independent row's equation but rounding, so that one solution suffices; it only keeps pivots
/// from zero.
#[inline(always)]
pub(crate) fn write_negligible<S: Scalar>(scale: &[S], compliance: &mut [S]) {
    for (e, s) in compliance.iter_mut().zip(scale) {
        *e = S::from_f64(4.0 * S::EPSILON * scale_of(*s));
    }
}

/// E/S for which a dependent row still has a pivot of half the digits, and one refinement suffices: √ε/16, about 1e−9 in
/// double precision.
#[inline(always)]
pub(crate) fn least_part<S: Scalar>() -> f64 {
    sqrt(S::EPSILON) / 16.0
}

/// A row scale; one where it is not positive.
#[inline(always)]
pub(crate) fn scale_of<S: Scalar>(scale: S) -> f64 {
    let scale = scale.real();
    if scale > 0.0 && scale < f64::INFINITY { scale } else { 1.0 }
}
