//! Derivatives of the constraints alone, in joint form: B = (Φ_v; A), (Φd; Ψ)_θ, (Φd; Ψ)_ρ and Φ_ρ.
//!
//! They come from `joint_linearise`, whose c = Φdd + a Φd + b Φ is linear in a and b: differences of lists give each term alone.

use super::derivatives::{JointPlaces, JointSensitivities};
use super::joint_values::JointValues;
use crate::constrained::Stabilisation;
use crate::error::{EvalError, StepError};
use crate::pieces::{Pieces, cut};
use crate::scalar::Scalar;
use crate::system::{At, Dims};

/// Memory for them.
pub(crate) struct RowLists<'a, S> {
    /// The list at vd = 0, λ = 0, a = b = 0, and another one.
    pub(crate) base: &'a mut [S],
    pub(crate) other: &'a mut [S],
    pub(crate) factors: &'a mut [S],
    /// B and (Φd; Ψ)_θ at the places of rows.
    pub(crate) jacobian: &'a mut [S],
    pub(crate) rates_theta: &'a mut [S],
    /// (Φd; Ψ)_ρ and Φ_ρ at the places of rows by ρ.
    pub(crate) rates_rho: &'a mut [S],
    pub(crate) phi_rho: &'a mut [S],
    zero: &'a mut [S],
}

impl<'a, S: Scalar> RowLists<'a, S> {
    #[inline(always)]
    pub(crate) const fn len(dims: &Dims) -> usize {
        6 * dims.sensitivity.joint + dims.sensitivity.joint_factors + dims.nv + dims.joint_rows()
    }

    /// Takes its memory from `pieces`.
    pub(crate) fn new(dims: &Dims, pieces: &mut Pieces<'a, S>) -> Result<Self, StepError> {
        let list = dims.sensitivity.joint;
        Ok(Self {
            base: pieces.next(list)?,
            other: pieces.next(list)?,
            factors: pieces.next(dims.sensitivity.joint_factors)?,
            // No part of a list is longer than it.
            jacobian: pieces.next(list)?,
            rates_theta: pieces.next(list)?,
            rates_rho: pieces.next(list)?,
            phi_rho: pieces.next(list)?,
            zero: pieces.next(dims.nv + dims.joint_rows())?,
        })
    }

    /// For dynamics that need none.
    pub(crate) fn none() -> Self {
        Self {
            base: &mut [],
            other: &mut [],
            factors: &mut [],
            jacobian: &mut [],
            rates_theta: &mut [],
            rates_rho: &mut [],
            phi_rho: &mut [],
            zero: &mut [],
        }
    }

    /// The list at the origin of vd and λ, and what a and b add to it: B, Φd, Φ.
    pub(crate) fn evaluate<M: JointSensitivities<S = S>>(
        &mut self,
        model: &M,
        dims: &Dims,
        places: &JointPlaces<'_>,
        at: At<'_, S>,
        w: &mut [S],
    ) -> Result<(), EvalError> {
        self.zero.fill(S::ZERO);
        let (vd, lambda) = cut("zero", self.zero, dims.nv)?;
        let exact = Stabilisation { rate: S::ZERO, value: S::ZERO, compliance: S::ZERO };
        model.joint_linearise(at, vd, lambda, exact, w, self.base, self.factors)?;
        let rate = Stabilisation { rate: gain(), ..exact };
        model.joint_linearise(at, vd, lambda, rate, w, self.other, self.factors)?;
        let (base, other) = (JointValues::of(places, self.base)?, JointValues::of(places, self.other)?);
        difference(self.jacobian, other.rows_v, base.rows_v);
        difference(self.rates_theta, other.rows_theta, base.rows_theta);
        difference(self.rates_rho, other.rows_rho, base.rows_rho);
        let value = Stabilisation { value: gain(), ..exact };
        model.joint_linearise(at, vd, lambda, value, w, self.other, self.factors)?;
        let (base, other) = (JointValues::of(places, self.base)?, JointValues::of(places, self.other)?);
        difference(self.phi_rho, other.rows_rho, base.rows_rho);
        Ok(())
    }
}

/// What a term is multiplied by before it is added to others, from which it is told apart by a difference: so much, that these are its rounding.
/// With one, what is left in the difference of rates of v² is 1e−16 v², whatever the unit of time.
pub(crate) fn gain<S: Scalar>() -> S {
    let bits = 2.0 / S::EPSILON;
    S::from_f64(bits * bits)
}

/// to = (a − b)/gain
fn difference<S: Scalar>(to: &mut [S], a: &[S], b: &[S]) {
    let part = S::ONE / gain();
    for (to, (&a, &b)) in to.iter_mut().zip(a.iter().zip(b)) {
        *to = part * (a - b);
    }
}
