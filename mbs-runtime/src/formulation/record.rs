//! What a step leaves for those who differentiate or replay it: the instant at which Newton's method ended, and what the
//! projections made of it.
//!
//! | symbol | meaning | length |
//! |---|---|---|
//! | t, h | time at the end, and size, of the step | 1 each |
//! | u | inputs at the end | nu |
//! | z, zd*, zdd*, a | coordinates and their rates before the projections | nq each |
//! | λ* | multipliers before the projections, of least norm if rows depend on each other | rows |
//! | zd, zdd, λ | rates and multipliers after them; after λ, where objectives read them, σ and κ | nq each, rows |
//! | σ | multipliers of the projection of velocities, M (zd − zd*) + (Φ_zᵀ, Aᵀ) σ = 0 | rows |
//! | active, S | activity and scale of the rows | rows each |
//! | redundant | one if rows depend on each other, otherwise zero | 1 |

use super::newton::Step;
use super::state::Rows;
use crate::constrained::{Constrained, Motion};
use crate::error::StepError;
use crate::linear::copy;
use crate::pieces::Pieces;
use crate::scalar::Scalar;
use crate::system::Dims;

/// Parts of the record of a step, in a slice of the caller.
#[derive(Debug)]
pub struct Record<'a, S> {
    /// Time at the end of the step.
    pub t: &'a mut S,
    /// Size of the step.
    pub h: &'a mut S,
    /// Inputs at the end of the step.
    pub u: &'a mut [S],
    /// Coordinates.
    pub z: &'a mut [S],
    /// Rates before their projection.
    pub zd_star: &'a mut [S],
    /// Accelerations before their projection.
    pub zdd_star: &'a mut [S],
    /// Algorithmic accelerations.
    pub a: &'a mut [S],
    /// Multipliers before the projection of accelerations.
    pub lambda_star: &'a mut [S],
    /// Rates.
    pub zd: &'a mut [S],
    /// Accelerations.
    pub zdd: &'a mut [S],
    /// Multipliers λ; where objectives read them σ and κ, too.
    pub lambda: &'a mut [S],
    /// Multipliers of the projection of velocities.
    pub sigma: &'a mut [S],
    /// Row activity.
    pub active: &'a mut [S],
    /// Row scale.
    pub scale: &'a mut [S],
    /// One if rows depend on each other, otherwise zero.
    pub redundant: &'a mut S,
}

impl<'a, S: Scalar> Record<'a, S> {
    /// Length of the slice; a constant for generated models.
    #[inline(always)]
    pub const fn len(dims: &Dims) -> usize {
        3 + dims.nu + 6 * dims.nq + 4 * dims.rows() + dims.judged_rows()
    }

    /// The parts of `record`.
    #[inline(always)]
    pub fn of(dims: &Dims, record: &'a mut [S]) -> Result<Self, StepError> {
        let wrong = StepError::Length { what: "record", expected: Self::len(dims), found: record.len() };
        let (nq, rows) = (dims.nq, dims.rows());
        let mut pieces = Pieces::named("record", record, Self::len(dims));
        let view = Self {
            t: pieces.next(1)?.first_mut().ok_or(wrong)?,
            h: pieces.next(1)?.first_mut().ok_or(wrong)?,
            u: pieces.next(dims.nu)?,
            z: pieces.next(nq)?,
            zd_star: pieces.next(nq)?,
            zdd_star: pieces.next(nq)?,
            a: pieces.next(nq)?,
            lambda_star: pieces.next(rows)?,
            zd: pieces.next(nq)?,
            zdd: pieces.next(nq)?,
            lambda: pieces.next(dims.judged_rows())?,
            sigma: pieces.next(rows)?,
            active: pieces.next(rows)?,
            scale: pieces.next(rows)?,
            redundant: pieces.next(1)?.first_mut().ok_or(wrong)?,
        };
        pieces.end()?;
        Ok(view)
    }

    /// Its instant before the projections.
    #[inline(always)]
    pub fn motion(&self) -> Motion<'_, S> {
        Motion { t: *self.t, z: self.z, zd: self.zd_star, zdd: self.zdd_star, u: self.u }
    }

    /// Its instant after the projections.
    #[inline(always)]
    pub fn projected(&self) -> Motion<'_, S> {
        Motion { t: *self.t, z: self.z, zd: self.zd, zdd: self.zdd, u: self.u }
    }

    /// A step of no size that ends in this state.
    pub(crate) fn of_start(&mut self, state: &super::State<'_, S>, u: &[S]) {
        *self.t = *state.t;
        *self.h = S::ZERO;
        copy(self.u, u);
        copy(self.z, state.z);
        copy(self.zd_star, state.zd);
        copy(self.zd, state.zd);
        copy(self.zdd_star, state.zdd);
        copy(self.zdd, state.zdd);
        copy(self.a, state.a);
        copy(self.lambda_star, state.lambda);
        copy(self.lambda, state.lambda);
        self.sigma.fill(S::ZERO);
        copy(self.active, state.active);
        copy(self.scale, state.scale);
        *self.redundant = *state.redundant;
    }

    /// Writes what Newton's method found, but for the multipliers.
    #[inline(always)]
    pub(crate) fn begin<M: Constrained<S = S>>(&mut self, step: &Step<'_, M>, rows: &Rows<'_, S>) {
        *self.t = step.t_next;
        *self.h = step.formulas.h;
        copy(self.u, step.u);
        copy(self.z, step.next.z);
        copy(self.zd_star, step.next.zd);
        copy(self.zdd_star, step.next.zdd);
        copy(self.a, step.next.a);
        self.sigma.fill(S::ZERO);
        match step.active {
            Some(active) => copy(self.active, active),
            None => self.active.fill(S::ONE),
        }
        copy(self.scale, rows.scale);
        *self.redundant = if rows.redundant { S::ONE } else { S::ZERO };
    }

    /// Writes what the projections made of it.
    #[inline(always)]
    pub(crate) fn end<M: Constrained<S = S>>(&mut self, step: &Step<'_, M>) {
        copy(self.zd, step.next.zd);
        copy(self.zdd, step.next.zdd);
        step.write_multipliers(self.lambda);
    }
}
