//! What a step leaves for those who differentiate or replay it: the instant at which Newton's method ended, before the
//! projections.
//!
//! | symbol | meaning | length |
//! |---|---|---|
//! | t, h | time at the end, and size, of the step | 1 each |
//! | u | inputs at the end | nu |
//! | z, zd*, zdd*, a | coordinates and their rates before the projections | nq each |
//! | λ* | multipliers before the projections | rows |
//! | active, S | activity and scale of the rows | rows each |

use super::newton::Step;
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
    /// Row activity.
    pub active: &'a mut [S],
    /// Row scale.
    pub scale: &'a mut [S],
}

impl<'a, S: Scalar> Record<'a, S> {
    /// Length of the slice; a constant for generated models.
    pub const fn len(dims: &Dims) -> usize {
        2 + dims.nu + 4 * dims.nq + 3 * dims.rows()
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
            active: pieces.next(rows)?,
            scale: pieces.next(rows)?,
        };
        pieces.end()?;
        Ok(view)
    }

    /// Its instant.
    pub fn motion(&self) -> Motion<'_, S> {
        Motion { t: *self.t, z: self.z, zd: self.zd_star, zdd: self.zdd_star, u: self.u }
    }

    pub(crate) fn fill<M: Constrained<S = S>>(self, step: &Step<'_, M>, scale: &[S]) {
        *self.t = step.t_next;
        *self.h = step.formulas.h;
        copy(self.u, step.u);
        copy(self.z, step.next.z);
        copy(self.zd_star, step.next.zd);
        copy(self.zdd_star, step.next.zdd);
        copy(self.a, step.next.a);
        copy(self.lambda_star, step.lambda);
        match step.active {
            Some(active) => copy(self.active, active),
            None => self.active.fill(S::ONE),
        }
        copy(self.scale, scale);
    }
}
