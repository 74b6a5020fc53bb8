//! Whether a constraint that an event adds holds where the event happens for all parameters: a question of the adjoint, which does not know
//! how the state changes.
//!
//! Where g(z, t, ρ) = 0 and all rows ψ that acted before hold, an added row φ holds for every change of z, t and ρ if its gradient is a sum of
//! theirs: ∇φ = a ∇g + Σ b_k ∇ψ_k. The gradients are made orthonormal, one after the other.

use super::EventDerivatives;
use super::jump::{Jump, LEAVES};
use crate::error::{EvalError, EventFailure, StepError};
use crate::linear::add_scaled;
use crate::pieces::Pieces;
use crate::scalar::{Scalar, sqrt};
use crate::system::{At, Dims};

/// What is left of a gradient, relative to it, that is rounding.
const DEPENDENT: f64 = 1e-9;

/// Memory for gradients by z, t and ρ.
pub(crate) struct Gradients<'a, S> {
    /// Those of g and of the rows.
    list: &'a mut [S],
    /// Accelerations and multipliers, on which functions of positions do not depend.
    still: &'a mut [S],
}

impl<'a, S: Scalar> Gradients<'a, S> {
    /// Length of a gradient.
    const fn one(dims: &Dims) -> usize {
        dims.nq + 1 + dims.sensitivity.parameters
    }

    /// Length of its memory.
    pub(crate) const fn len(dims: &Dims) -> usize {
        (dims.joint_rows() + 1) * Self::one(dims) + dims.nv + dims.joint_rows()
    }

    pub(crate) fn new(dims: &Dims, pieces: &mut Pieces<'a, S>) -> Result<Self, StepError> {
        let list = pieces.next((dims.joint_rows() + 1) * Self::one(dims))?;
        Ok(Self { list, still: pieces.next(dims.nv + dims.joint_rows())? })
    }

    /// Refuses an event that adds a row of which its function does not tell that it holds; `jumps`: derivatives of the equations of `jump`,
    /// `partials`: memory for those of functions.
    #[allow(clippy::too_many_arguments, reason = "an instant, derivatives, and memory")]
    pub(crate) fn check<M: EventDerivatives<S = S>>(
        &mut self,
        model: &M,
        jump: &Jump<'_, S>,
        event: usize,
        at: At<'_, S>,
        jumps: &[S],
        partials: &mut [S],
        w: &mut [S],
    ) -> Result<(), StepError> {
        let dims = model.dims();
        let (nq, nv, rows, n) = (dims.nq, dims.nv, dims.joint_rows(), Self::one(&dims));
        self.list.fill(S::ZERO);
        self.still.fill(S::ZERO);
        let (vd, lambda) = self.still.split_at_checked(nv).unwrap_or_default();
        let evaluated = model.event_function_derivatives(at, vd, lambda, w, partials);
        evaluated.map_err(|error: EvalError| error.in_step(at.t.real(), 0.0))?;
        let mut put = |row: usize, place: usize, value: S| {
            if let Some(to) = self.list.get_mut(row * n + place) {
                *to = value;
            }
        };
        // z and t and ρ among z, v, vd, λ, t, ρ
        let moving = nq..nq + 2 * nv + rows;
        let own = |k: u32| k as usize == event;
        let of_positions =
            !model.event_places().iter().any(|&(k, j)| own(k) && moving.contains(&(j as usize)));
        for (&(k, j), &value) in model.event_places().iter().zip(partials.iter()) {
            let j = j as usize;
            if own(k) && of_positions {
                put(0, if j < nq { j } else { j - 2 * nv - rows }, value);
            }
        }
        // z, t and ρ among z, v, t, ρ
        let first = nv + rows + model.event_table().conditions;
        for (&(i, j), &value) in model.jump_places().iter().zip(jumps) {
            let j = j as usize;
            let row = (i as usize).checked_sub(first).filter(|&row| row < rows);
            if let (Some(row), false) = (row, (nq..nq + nv).contains(&j)) {
                put(slot(jump, row, rows), if j < nq { j } else { j - nv }, value);
            }
        }
        let basis = 1 + (0..rows).filter(|&row| !jump.is_added(row)).count();
        for k in 0..=rows {
            let left = self.orthogonalise(n, k, basis);
            let row = (0..rows).find(|&row| slot(jump, row, rows) == k);
            if let (Some(row), true) = (row, k >= basis && left > LEAVES) {
                return Err(StepError::Event {
                    t: at.t.real(),
                    event,
                    failure: EventFailure::Unseen { row },
                });
            }
        }
        Ok(())
    }

    /// Takes from the `k`-th gradient its parts along those of the basis before it. Gives what is left, relative to it; the rest then has the
    /// length one, or is nothing.
    fn orthogonalise(&mut self, n: usize, k: usize, basis: usize) -> f64 {
        let Some((before, rest)) = self.list.split_at_mut_checked(k * n) else { return 0.0 };
        let one = rest.get_mut(..n).unwrap_or_default();
        let size = norm(one);
        for other in before.chunks_exact(n.max(1)).take(basis) {
            let along = other.iter().zip(one.iter()).fold(S::ZERO, |sum, (&a, &b)| sum + a * b);
            add_scaled(one, -along, other);
        }
        let left = norm(one);
        let is_something = left > DEPENDENT * size;
        let scale = S::from_f64(if is_something { 1.0 / left } else { 0.0 });
        one.iter_mut().for_each(|x| *x = scale * *x);
        if is_something { left / size } else { 0.0 }
    }
}

/// The place of a row's gradient: rows that are added stand behind the others.
fn slot<S: Scalar>(jump: &Jump<'_, S>, row: usize, rows: usize) -> usize {
    let others = |end: usize| (0..end).filter(|&row| !jump.is_added(row)).count();
    if jump.is_added(row) { 1 + others(rows) + row - others(row) } else { 1 + others(row) }
}

fn norm<S: Scalar>(x: &[S]) -> f64 {
    sqrt(x.iter().map(|x| x.real() * x.real()).sum())
}
