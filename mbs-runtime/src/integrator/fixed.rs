//! Runs of equal steps.
//!
//! Input: a method and a step size. The nodes are start + k h, computed and not accumulated. A span that is a whole
//! number of steps up to rounding is made of exactly that many steps of size h; otherwise the last step is shorter.
//! Either way the last node is the end itself.

use core::marker::PhantomData;
use core::ops::ControlFlow;

use super::drive::{Plan, Planned, Stepper, Taken, drive};
use super::explicit::{ExplicitRun, Observe, RungeKutta, of_state};
use super::field::{self, Field, Rates, check_state};
use super::{Integrator, Output, Span, Statistics, StepStatistics, copy, copy_all, positive};
use crate::error::StepError;
use crate::inputs::Inputs;
use crate::pieces::Pieces;
use crate::scalar::{Scalar, floor};
use crate::system::{At, Dims, ForwardDynamics};

/// A method that makes a step of given size: those of this crate.
#[allow(
    private_bounds,
    reason = "only the methods of this crate have stages that can be driven and differentiated"
)]
pub trait FixedStep: RungeKutta {
    /// Length of the scratch that [`FixedStep::step`] needs, at least.
    #[inline(always)]
    fn scratch_len(&self, dims: &Dims) -> usize {
        Self::memory_len(dims.stepped()) + carried_len(dims) + field::scratch_len(dims)
    }

    /// Takes `t` and the state `y`, [`Dims::stepped`] values, one step further by `h`, which may be negative. The scratch carries nothing from one
    /// step to the next. After an error `t` and `y` are as before.
    #[inline]
    fn step<M: ForwardDynamics, I: Inputs<M::S>>(
        &self,
        system: &M,
        inputs: &mut I,
        t: &mut M::S,
        y: &mut [M::S],
        h: M::S,
        scratch: &mut [M::S],
    ) -> Result<(), StepError> {
        self.counted_step(system, inputs, t, y, h, scratch).map(|_| ())
    }

    /// The same; gives how often the rates were evaluated.
    #[doc(hidden)]
    #[inline]
    fn counted_step<M: ForwardDynamics, I: Inputs<M::S>>(
        &self,
        system: &M,
        inputs: &mut I,
        t: &mut M::S,
        y: &mut [M::S],
        h: M::S,
        scratch: &mut [M::S],
    ) -> Result<usize, StepError> {
        let dims = system.dims();
        let (expected, found) = (dims.stepped(), y.len());
        if expected != found {
            return Err(StepError::Length { what: "y", expected, found });
        }
        let mut pieces = Pieces::of(scratch, self.scratch_len(&dims));
        let stages = Self::stages(dims.stepped(), &mut pieces)?;
        let mut field = Field::new(system, inputs, &mut pieces)?;
        if Self::IS_WEIGHTED {
            field.newmark().check()?;
        }
        let stepped = field.prepare_step(*t, y).and_then(|()| Self::advance(&mut field, stages, *t, y, h));
        stepped.map_err(|error| error.in_step(t.real(), h.real()))?;
        *t += h;
        Ok(field.evaluations())
    }
}

/// Length of what a run moves in place of y, where a method carries more.
#[inline(always)]
pub(crate) const fn carried_len(dims: &Dims) -> usize {
    if dims.n_excess > 0 { dims.stepped() } else { 0 }
}

/// What a run moves: y, or a copy with what a method carries, from zero on.
pub(crate) fn moving<'a, S: Scalar>(dims: &Dims, y: &'a mut [S], carried: &'a mut [S]) -> &'a mut [S] {
    if dims.n_excess == 0 {
        return y;
    }
    carried.fill(S::ZERO);
    copy(carried, y);
    carried
}

/// Steps of equal size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fixed<T> {
    /// The method.
    pub method: T,
    /// The step size.
    pub h: f64,
}

/// `ratio` as a whole number, if it is one up to `rounding`.
fn whole(ratio: f64, rounding: f64) -> Option<f64> {
    let nearest = floor(ratio + 0.5);
    ((ratio - nearest).abs() <= rounding).then_some(nearest)
}

impl Output {
    /// Every how many steps of size `h` is a result: a whole number, up to the rounding of a quotient.
    pub fn stride(self, h: f64) -> Result<usize, StepError> {
        let Self::Every(interval) = self else { return Ok(1) };
        let ratio = positive("the output interval must be positive and finite", interval)? / h;
        let stride = whole(ratio, 8.0 * f64::EPSILON * ratio).filter(|stride| *stride >= 1.0);
        let what = "the output interval must be a multiple of the step";
        Ok(stride.ok_or(StepError::Setting { what, value: interval })? as usize)
    }
}

/// The nodes of a span.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nodes<S> {
    start: S,
    end: S,
    h: S,
    /// Steps in all.
    pub(crate) steps: usize,
    /// Whether the last of them is shorter.
    remainder: bool,
    /// Steps from one observation to the next.
    stride: usize,
    /// The node that the last planned step leads to.
    number: usize,
    /// The node that ends the run.
    last: usize,
}

impl<S: Scalar> Nodes<S> {
    pub(crate) fn new(span: &Span<S>, h: f64) -> Result<Self, StepError> {
        let h = positive("the step must be positive and finite", h)?;
        let ratio = span.length()? / h;
        // The length of the span is known to the rounding of its ends.
        let latest = span.start.real().abs().max(span.end.real().abs());
        // Nodes must be distinct and countable, or the run would never end.
        if ratio > 0.0 && (h <= S::EPSILON * latest || ratio >= usize::MAX as f64) {
            return Err(StepError::Setting {
                what: "the step must be large enough for time to advance by it",
                value: h,
            });
        }
        // Whole steps of size h, and whether a shorter one follows.
        let (whole_steps, remainder) = match whole(ratio, 8.0 * S::EPSILON * latest / h) {
            Some(steps) => (steps as usize, false),
            None => (ratio as usize, true),
        };
        let stride = span.output.stride(h)?;
        let steps = whole_steps + usize::from(remainder);
        Ok(Self {
            start: span.start,
            end: span.end,
            h: S::from_f64(h),
            steps,
            remainder,
            stride,
            number: 0,
            last: steps,
        })
    }

    /// The steps from one node to another, the same as those of the whole run, to be made again from a saved state.
    #[cfg_attr(not(test), expect(dead_code, reason = "for backward sweeps, which are hooks to come"))]
    pub(crate) fn part(self, first: usize, last: usize) -> Self {
        Self { number: first.min(self.steps), last: last.min(self.steps), ..self }
    }

    /// Size of the step with this number, from 1, which begins at `t`.
    #[inline(always)]
    pub(crate) fn size(&self, number: usize, t: S) -> S {
        if number == self.steps && self.remainder { self.end - t } else { self.h }
    }

    /// Time of the node at the end of the step with this number.
    #[inline(always)]
    pub(crate) fn time(&self, number: usize) -> S {
        if number == self.steps { self.end } else { self.start + S::from_f64(number as f64) * self.h }
    }

    /// Whether the node at the end of the step with this number is observed.
    #[inline(always)]
    fn is_observed(&self, number: usize) -> bool {
        number == self.steps || number.is_multiple_of(self.stride)
    }
}

impl<S: Scalar> Plan<S> for Nodes<S> {
    #[inline(always)]
    fn start(&self) -> S {
        if self.number == 0 { self.start } else { self.time(self.number) }
    }

    #[inline(always)]
    fn next(&mut self, t: S, _: &Statistics) -> Result<Option<Planned<S>>, StepError> {
        // A step that was shortened has not reached its node: the next one leads there.
        let h = if self.number == 0 || t == self.time(self.number) {
            if self.number >= self.last {
                return Ok(None);
            }
            self.number += 1;
            self.size(self.number, t)
        } else {
            self.time(self.number) - t
        };
        let (end, observed) = (self.time(self.number), self.is_observed(self.number));
        Ok(Some(Planned { t, h, end, observed }))
    }

    #[inline(always)]
    fn observed(&self, t: S) -> bool {
        if t == self.time(self.number) { self.is_observed(self.number) } else { self.stride == 1 }
    }
}

/// Equal steps of a state with rates.
pub(crate) struct FixedRun<'a, T, F: Rates> {
    method: PhantomData<T>,
    field: &'a mut F,
    /// Values of the state; a constant for generated models, which makes steps quick.
    n: usize,
    memory: &'a mut [F::S],
    y: &'a mut [F::S],
}

impl<'a, T: RungeKutta, F: Rates> FixedRun<'a, T, F> {
    /// Takes the method's memory for a state of `n` values from `pieces`.
    #[inline(always)]
    pub(crate) fn new<'p: 'a>(
        field: &'a mut F,
        n: usize,
        pieces: &mut Pieces<'p, F::S>,
        y: &'a mut [F::S],
    ) -> Result<Self, StepError> {
        if T::IS_WEIGHTED {
            field.newmark().check()?;
        }
        Ok(Self { method: PhantomData, field, n, memory: pieces.next(T::memory_len(n))?, y })
    }
}

impl<T: RungeKutta, F: Rates> Stepper for FixedRun<'_, T, F> {
    type S = F::S;

    #[inline(always)]
    fn step(&mut self, planned: &Planned<F::S>) -> Result<Taken<F::S>, StepError> {
        let Planned { t, h, end, .. } = *planned;
        let before = self.field.evaluations();
        let mut pieces = Pieces::of(&mut *self.memory, T::memory_len(self.n));
        let stages = T::stages(self.n, &mut pieces)?;
        let prepared = self.field.prepare_step(t, self.y);
        let stepped = prepared.and_then(|()| T::advance(self.field, stages, t, self.y, h));
        stepped.map_err(|error| error.in_step(t.real(), h.real()))?;
        let evaluations = self.field.evaluations() - before;
        Ok(Taken { t, h, end, statistics: StepStatistics { evaluations, ..StepStatistics::default() } })
    }

    fn saved_len(&self) -> usize {
        self.y.len()
    }

    fn save(&self, to: &mut [F::S]) -> Result<(), StepError> {
        copy_all("saved", to, self.y)
    }

    fn restore(&mut self, from: &[F::S]) -> Result<(), StepError> {
        copy_all("saved", self.y, from)
    }
}

impl<T: RungeKutta, F: Rates> ExplicitRun for FixedRun<'_, T, F> {
    type Field = F;

    #[inline(always)]
    fn parts(&mut self) -> (&mut F, &mut [F::S]) {
        (self.field, self.y)
    }
}

impl<T: FixedStep> Integrator for Fixed<T> {
    fn scratch_len(&self, dims: &Dims) -> usize {
        self.method.scratch_len(dims)
    }

    fn run<M, I, O>(
        &self,
        system: &M,
        inputs: &mut I,
        y: &mut [M::S],
        span: &Span<M::S>,
        scratch: &mut [M::S],
        observe: O,
    ) -> Result<Statistics, StepError>
    where
        M: ForwardDynamics,
        I: Inputs<M::S>,
        O: FnMut(At<'_, M::S>) -> ControlFlow<()>,
    {
        let mut nodes = Nodes::new(span, self.h)?;
        let dims = system.dims();
        check_state(&dims, y)?;
        let mut pieces = Pieces::of(scratch, self.scratch_len(&dims));
        let mut field = Field::new(system, inputs, &mut pieces)?;
        let carried = pieces.next(carried_len(&dims))?;
        let moving = moving(&dims, &mut *y, &mut *carried);
        let mut run = FixedRun::<T, _>::new(&mut field, dims.stepped(), &mut pieces, moving)?;
        let outcome = drive(&mut run, &mut nodes, &mut Observe(of_state(dims, observe)));
        copy(y, carried);
        outcome
    }
}
