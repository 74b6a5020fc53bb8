//! All that an implicit run carries from one step to the next, in one slice of the caller: copy it, step again, get the same
//! bits.
//!
//! | symbol | meaning | length |
//! |---|---|---|
//! | t | time | 1 |
//! | z, zd, zdd | coordinates, rates, accelerations | nq each |
//! | a | algorithmic acceleration of the generalized-alpha method | nq |
//! | λ | multipliers: holonomic, normalisation, nonholonomic rows | rows |
//! | σ, κ | multipliers of the projections that ended the step, zero after a start; only where objectives read them | rows each |
//! | active | row activity: one, or zero for a row that is switched off | rows |
//! | S | row scale: Σ_j Φ_kj²/M_jj at the start | rows |
//! | α | penalty of each row, for [`Penalty::Rows`](super::Penalty::Rows) | rows |
//! | redundant | one if rows depend on each other, otherwise zero | 1 |
//! | tangent | what [`Tangent::Carried`](super::Tangent::Carried) hands on: age, step size, sizes of the rows, factors; zdd and λ before | n_carried |

use crate::constrained::Motion;
use crate::error::StepError;
use crate::integrator::Kinematics;
use crate::pieces::Pieces;
use crate::scalar::Scalar;
use crate::system::Dims;

/// Parts of the state, in a slice of the caller.
#[derive(Debug)]
pub struct State<'a, S> {
    /// Time.
    pub t: &'a mut S,
    /// Coordinates.
    pub z: &'a mut [S],
    /// Their rates.
    pub zd: &'a mut [S],
    /// Their accelerations.
    pub zdd: &'a mut [S],
    /// Algorithmic acceleration; equal to `zdd` unless the integrator is generalized-alpha.
    pub a: &'a mut [S],
    /// Multipliers λ; where objectives read them σ and κ, too.
    pub lambda: &'a mut [S],
    /// Row activity: one or zero.
    pub active: &'a mut [S],
    /// Row scale, positive; where it is not it counts as one.
    pub scale: &'a mut [S],
    /// Penalty of each row.
    pub penalty: &'a mut [S],
    /// One if rows depend on each other, otherwise zero.
    pub redundant: &'a mut S,
    /// A tangent of a step before, where steps carry one; its first number is its age, zero if there is none.
    pub tangent: &'a mut [S],
}

impl<'a, S: Scalar> State<'a, S> {
    /// Length of the slice; a constant for generated models.
    #[inline(always)]
    pub const fn len(dims: &Dims) -> usize {
        2 + 4 * dims.nq + dims.judged_rows() + 3 * dims.rows() + dims.n_carried
    }

    /// The parts of `state`.
    #[inline(always)]
    pub fn of(dims: &Dims, state: &'a mut [S]) -> Result<Self, StepError> {
        let (nq, rows) = (dims.nq, dims.rows());
        let wrong = StepError::Length { what: "state", expected: Self::len(dims), found: state.len() };
        let mut pieces = Pieces::named("state", state, Self::len(dims));
        let view = Self {
            t: pieces.next(1)?.first_mut().ok_or(wrong)?,
            z: pieces.next(nq)?,
            zd: pieces.next(nq)?,
            zdd: pieces.next(nq)?,
            a: pieces.next(nq)?,
            lambda: pieces.next(dims.judged_rows())?,
            active: pieces.next(rows)?,
            scale: pieces.next(rows)?,
            penalty: pieces.next(rows)?,
            redundant: pieces.next(1)?.first_mut().ok_or(wrong)?,
            tangent: pieces.next(dims.n_carried)?,
        };
        pieces.end()?;
        Ok(view)
    }

    /// The state at rest in the origin at time `t`, all rows active.
    pub fn reset(&mut self, t: S) {
        *self.t = t;
        *self.redundant = S::ZERO;
        for part in [&mut *self.z, self.zd, self.zdd, self.a, self.lambda, self.penalty, self.tangent] {
            part.fill(S::ZERO);
        }
        self.active.fill(S::ONE);
        self.scale.fill(S::ONE);
    }

    /// Forgets the tangent of a step before: after a change of the parameters, or of anything else that the equations depend on.
    pub fn forget_tangent(&mut self) {
        self.tangent.fill(S::ZERO);
    }

    /// Its instant, with inputs `u`.
    #[inline(always)]
    pub fn motion<'b>(&'b self, u: &'b [S]) -> Motion<'b, S> {
        Motion { t: *self.t, z: self.z, zd: self.zd, zdd: self.zdd, u }
    }

    /// What a step moves, and what it only reads.
    #[inline(always)]
    pub(crate) fn split(self) -> (Moving<'a, S>, Rows<'a, S>) {
        let Self { t, z, zd, zdd, a, lambda, active, scale, penalty, redundant, tangent } = self;
        let masked = active.contains(&S::ZERO);
        (
            Moving { t, now: Kinematics { z, zd, zdd, a }, lambda, tangent },
            Rows {
                active: masked.then_some(&*active),
                scale,
                penalty,
                redundant: depend(*redundant != S::ZERO),
            },
        )
    }
}

/// Whether rows depend on each other, by what was noted at the start. With the feature `independent` never, as the compiler sees: the start has
/// refused such rows.
#[inline(always)]
pub(crate) const fn depend(noted: bool) -> bool {
    !cfg!(feature = "independent") && noted
}

/// What a step moves.
pub(crate) struct Moving<'a, S> {
    pub(crate) t: &'a mut S,
    pub(crate) now: Kinematics<'a, S>,
    pub(crate) lambda: &'a mut [S],
    /// A tangent of a step before.
    pub(crate) tangent: &'a mut [S],
}

/// What a step reads of its rows.
pub(crate) struct Rows<'a, S> {
    /// Activity, if some row is switched off.
    pub(crate) active: Option<&'a [S]>,
    pub(crate) scale: &'a [S],
    pub(crate) penalty: &'a [S],
    pub(crate) redundant: bool,
}
