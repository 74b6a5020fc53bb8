//! Whether a constraint that an event adds holds where the event happens for all parameters: a question of the adjoint, which does not know
//! how the state changes.
//!
//! Where g(z, t, ρ) = 0 and all rows ψ that acted before hold, an added row φ holds for every change of z, t and ρ if its gradient is a sum of
//! theirs: ∇φ = a ∇g + Σ b_k ∇ψ_k. The gradients are made orthonormal, one after the other.
//!
//! An event that resets coordinates, z⁺ = s(z, v, t, ρ), keeps the constraints for all parameters if the gradients of φ(z⁺) and φd(z⁺, v) by z, v, t and
//! ρ before it are sums of those of g and of all φ and φd before it.

use super::jump::{Jump, LEAVES, setting_of};
use super::{EventDerivatives, EventTable};
use crate::error::{EvalError, EventFailure, StepError};
use crate::linear::add_scaled;
use crate::pieces::{Pieces, cut};
use crate::scalar::{Scalar, sqrt};
use crate::system::{At, Dims};

/// What is left of a gradient, relative to it, that is rounding.
const DEPENDENT: f64 = 1e-9;

/// Memory for gradients by z, v, t and ρ.
pub(crate) struct Gradients<'a, S> {
    /// Those of g and of the rows, before the event; where coordinates are reset those of the rows and of their rates, before it and after it.
    list: &'a mut [S],
    /// Slopes of rows and rates after the event, by z⁺.
    placed: &'a mut [S],
    /// Accelerations and multipliers, on which functions of positions do not depend.
    still: &'a mut [S],
}

impl<'a, S: Scalar> Gradients<'a, S> {
    /// Length of a gradient.
    const fn one(dims: &Dims) -> usize {
        dims.nq + dims.nv + 1 + dims.sensitivity.parameters
    }

    /// Lengths of its parts.
    fn lens(dims: &Dims, table: &EventTable<'_>) -> [usize; 3] {
        let (rows, places) = (dims.joint_rows(), table.inputs.iter().any(|&place| place as usize >= dims.nu));
        let (gradients, placed) = if places { (4 * rows, 2 * rows * dims.nq) } else { (rows, 0) };
        [(1 + gradients) * Self::one(dims), placed, dims.nv + rows]
    }

    /// Length of its memory.
    pub(crate) fn len(dims: &Dims, table: &EventTable<'_>) -> usize {
        Self::lens(dims, table).into_iter().sum()
    }

    pub(crate) fn new(
        dims: &Dims,
        table: &EventTable<'_>,
        pieces: &mut Pieces<'a, S>,
    ) -> Result<Self, StepError> {
        let [list, placed, still] = Self::lens(dims, table);
        Ok(Self { list: pieces.next(list)?, placed: pieces.next(placed)?, still: pieces.next(still)? })
    }

    /// The gradient of an event's function in the first place, nothing if it depends on accelerations or multipliers.
    fn put_function<M: EventDerivatives<S = S>>(
        &mut self,
        model: &M,
        event: usize,
        at: At<'_, S>,
        partials: &mut [S],
        w: &mut [S],
    ) -> Result<(), StepError> {
        let dims = model.dims();
        let (nq, nv, rows) = (dims.nq, dims.nv, dims.joint_rows());
        self.list.fill(S::ZERO);
        self.still.fill(S::ZERO);
        let fail = |error: EvalError| error.in_step(at.t.real(), 0.0);
        let (vd, lambda) = cut("still", self.still, nv).map_err(fail)?;
        let evaluated = model.event_function_derivatives(at, vd, lambda, w, partials);
        evaluated.map_err(fail)?;
        // z, v, t and ρ among z, v, vd, λ, t, ρ
        let unknown = nq + nv..nq + 2 * nv + rows;
        let own = |k: u32| k as usize == event;
        if model.event_places().iter().any(|&(k, j)| own(k) && unknown.contains(&(j as usize))) {
            return Ok(());
        }
        for (&(k, j), &value) in model.event_places().iter().zip(partials.iter()) {
            let j = j as usize;
            let place = if j < nq + nv { j } else { j - nv - rows };
            if let Some(to) = self.list.get_mut(place).filter(|_| own(k)) {
                *to = value;
            }
        }
        Ok(())
    }

    /// Refuses an event that resets coordinates and of which nothing tells that constraints hold where it puts them; `before` and `after` are instants
    /// around it, at which nothing jumps; `jumps` and `partials` are memory for derivatives.
    #[allow(clippy::too_many_arguments, reason = "instants, derivatives, and memory")]
    pub(crate) fn check_placed<M: EventDerivatives<S = S>>(
        &mut self,
        model: &M,
        jump: &Jump<'_, S>,
        before: At<'_, S>,
        after: At<'_, S>,
        jumps: &mut [S],
        partials: &mut [S],
        w: &mut [S],
    ) -> Result<(), StepError> {
        let (dims, table, t, event) = (model.dims(), model.event_table(), before.t.real(), jump.event);
        let (nq, nv, rows, n) = (dims.nq, dims.nv, dims.joint_rows(), Self::one(&dims));
        let fail = |error: EvalError| error.in_step(t, 0.0);
        self.put_function(model, event, before, partials, w)?;
        // Φ and Φd among the equations of jumps, in which nothing jumps.
        let level = |i: u32| {
            let row = |first: usize| (i as usize).checked_sub(first).filter(|&row| row < rows);
            row(nv + rows + table.conditions).or_else(|| row(nv).map(|row| rows + row))
        };
        let targets = 1 + 2 * rows;
        for (at, first) in [(after, targets), (before, 1)] {
            model.event_jump_derivatives(at, jump.d, jump.lambda, jump.mu, w, jumps).map_err(fail)?;
            for (&(i, j), &value) in model.jump_places().iter().zip(jumps.iter()) {
                let to = level(i).and_then(|row| self.list.get_mut((first + row) * n + j as usize));
                if let Some(to) = to {
                    *to = value;
                }
            }
        }
        // What z⁺ is of, in the place of z⁺; the derivatives are still those before the event.
        let (from, end) = table.events.get(event).map_or((0, 0), |entry| entry.settings);
        let place_of = |setting: usize| {
            table.inputs.get(setting).and_then(|&place| (place as usize).checked_sub(dims.nu))
        };
        for setting in from..end {
            let Some(place) = place_of(setting) else { continue };
            for row in 0..2 * rows {
                let slope = self.list.get_mut((targets + row) * n + place).map(core::mem::take);
                if let (Some(to), Some(slope)) = (self.placed.get_mut(row * nq + place), slope) {
                    *to = slope;
                }
            }
        }
        for (&(i, j), &value) in model.jump_places().iter().zip(jumps.iter()) {
            let setting = setting_of(&dims, &table, i).filter(|k| (from..end).contains(k));
            let Some(place) = setting.and_then(place_of) else { continue };
            for row in 0..2 * rows {
                let slope = self.placed.get(row * nq + place).copied().unwrap_or(S::ZERO);
                if let Some(to) = self.list.get_mut((targets + row) * n + j as usize) {
                    *to += slope * value;
                }
            }
        }
        for k in 0..targets + 2 * rows {
            let left = self.orthogonalise(n, k, targets);
            if k >= targets && left > LEAVES {
                let row = (k - targets) % rows.max(1);
                let failure = EventFailure::Displaces { row, parameter: None };
                return Err(StepError::Event { t, event, failure });
            }
        }
        Ok(())
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
        let (nv, rows, n) = (dims.nv, dims.joint_rows(), Self::one(&dims));
        self.put_function(model, event, at, partials, w)?;
        let first = nv + rows + model.event_table().conditions;
        for (&(i, j), &value) in model.jump_places().iter().zip(jumps) {
            let row = (i as usize).checked_sub(first).filter(|&row| row < rows);
            let to = row.and_then(|row| self.list.get_mut(slot(jump, row, rows) * n + j as usize));
            if let Some(to) = to {
                *to = value;
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
