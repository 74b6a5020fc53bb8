//! Derivatives of an implicit run's state by the parameters, in one slice of the caller.
//!
//! | symbol | meaning | length |
//! |---|---|---|
//! | z_ρ, zd_ρ, zdd_ρ | of coordinates, rates, accelerations | nq × p each |
//! | λ_ρ | of multipliers: holonomic, normalisation, nonholonomic rows | rows × p |
//! | σ_ρ, κ_ρ | of multipliers of the projections, where objectives read them | rows × p each |
//! | a_ρ | of the algorithmic acceleration of the generalized-alpha method | nq × p |
//!
//! The derivative of entry i by parameter k is at `i * p + k`. All parts but the last, one after the other, are what objectives
//! are differentiated by.

use crate::error::StepError;
use crate::pieces::Pieces;
use crate::scalar::Scalar;
use crate::system::Dims;

/// Parts of the derivatives, in a slice of the caller.
#[derive(Debug)]
pub struct StateDerivatives<'a, S> {
    /// Of coordinates.
    pub z: &'a mut [S],
    /// Of their rates.
    pub zd: &'a mut [S],
    /// Of their accelerations.
    pub zdd: &'a mut [S],
    /// Of multipliers.
    pub lambda: &'a mut [S],
    /// Of multipliers of the projection of velocities.
    pub sigma: &'a mut [S],
    /// Of multipliers of the projection of accelerations.
    pub kappa: &'a mut [S],
    /// Of algorithmic accelerations.
    pub a: &'a mut [S],
}

impl<'a, S: Scalar> StateDerivatives<'a, S> {
    /// Length of the slice; a constant for generated models.
    #[inline(always)]
    pub const fn len(dims: &Dims) -> usize {
        rows(dims) * dims.sensitivity.parameters
    }

    /// The parts of `derivatives`.
    #[inline(always)]
    pub fn of(dims: &Dims, derivatives: &'a mut [S]) -> Result<Self, StepError> {
        Self::with_columns(dims, dims.sensitivity.parameters, derivatives)
    }

    /// The parts of a matrix with this many columns.
    #[inline(always)]
    pub(crate) fn with_columns(
        dims: &Dims,
        columns: usize,
        derivatives: &'a mut [S],
    ) -> Result<Self, StepError> {
        let mut pieces = Pieces::named("derivatives", derivatives, rows(dims) * columns);
        let view = Self {
            z: pieces.next(dims.nq * columns)?,
            zd: pieces.next(dims.nq * columns)?,
            zdd: pieces.next(dims.nq * columns)?,
            lambda: pieces.next(dims.rows() * columns)?,
            sigma: pieces.next(dims.n_projected * columns)?,
            kappa: pieces.next(dims.n_projected * columns)?,
            a: pieces.next(dims.nq * columns)?,
        };
        pieces.end()?;
        Ok(view)
    }
}

impl<S: Scalar> StateDerivatives<'_, S> {
    /// All that a start finds anew is zero: of accelerations and multipliers.
    pub(crate) fn clear_forces(&mut self) {
        for part in [&mut *self.zdd, self.lambda, self.sigma, self.kappa, self.a] {
            part.fill(S::ZERO);
        }
    }
}

impl<S> StateDerivatives<'_, S> {
    /// z, zd, zdd, a
    #[inline(always)]
    pub(crate) fn kinematics(&self) -> [&[S]; 4] {
        [self.z, self.zd, self.zdd, self.a]
    }

    /// z, zd, zdd, a
    #[inline(always)]
    pub(crate) fn kinematics_mut(&mut self) -> [&mut [S]; 4] {
        [self.z, self.zd, self.zdd, self.a]
    }
}

/// Rows of the matrix.
pub(crate) const fn rows(dims: &Dims) -> usize {
    4 * dims.nq + dims.judged_rows()
}

/// Rows of z_ρ, zd_ρ, zdd_ρ, λ_ρ, σ_ρ, κ_ρ: the columns of an objective's derivatives before those of ρ.
pub(crate) const fn objective_rows(dims: &Dims) -> usize {
    3 * dims.nq + dims.judged_rows()
}

/// The parts of derivatives that are only read.
pub(crate) struct Parts<'a, S> {
    pub(crate) z: &'a [S],
    pub(crate) zd: &'a [S],
    pub(crate) zdd: &'a [S],
    pub(crate) a: &'a [S],
}

impl<'a, S> Parts<'a, S> {
    #[inline(always)]
    pub(crate) fn of(dims: &Dims, columns: usize, derivatives: &'a [S]) -> Result<Self, StepError> {
        let (expected, found) = (rows(dims) * columns, derivatives.len());
        let wrong = StepError::Length { what: "derivatives", expected, found };
        let n = dims.nq * columns;
        let (z, rest) = derivatives.split_at_checked(n).ok_or(wrong)?;
        let (zd, rest) = rest.split_at_checked(n).ok_or(wrong)?;
        let (zdd, rest) = rest.split_at_checked(n).ok_or(wrong)?;
        let (_, a) = rest.split_at_checked(dims.judged_rows() * columns).ok_or(wrong)?;
        if a.len() == n { Ok(Self { z, zd, zdd, a }) } else { Err(wrong) }
    }

    /// z, zd, zdd, a
    #[inline(always)]
    pub(crate) fn kinematics(&self) -> [&'a [S]; 4] {
        [self.z, self.zd, self.zdd, self.a]
    }
}
