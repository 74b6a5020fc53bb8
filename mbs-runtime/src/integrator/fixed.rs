//! Runs of equal steps.
//!
//! Enters: a method and a step size. The nodes are start + k h, computed and not accumulated. A span that is a whole
//! number of steps up to rounding is made of exactly that many steps of size h; otherwise the last step is shorter.
//! Either way the last node is the end itself.

use core::ops::ControlFlow;

use super::{Integrator, Output, Span, Statistics, positive};
use crate::error::StepError;
use crate::inputs::Inputs;
use crate::pieces::Pieces;
use crate::scalar::{Scalar, floor};
use crate::system::{At, Dims, ForwardDynamics};

/// A method that makes a step of given size.
pub trait FixedStep {
    /// Evaluations of the forward dynamics in a step.
    const EVALUATIONS: usize;

    /// Length of the scratch that [`FixedStep::step`] needs, at least; never below nu.
    fn scratch_len(&self, dims: &Dims) -> usize;

    /// Takes `t` and the state `y` one step further by `h`, which may be negative. The scratch carries nothing from one
    /// step to the next. After an error `t` and `y` are as before.
    fn step<M: ForwardDynamics, I: Inputs<M::S>>(
        &self,
        system: &M,
        inputs: &mut I,
        t: &mut M::S,
        y: &mut [M::S],
        h: M::S,
        scratch: &mut [M::S],
    ) -> Result<(), StepError>;
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
        let stride = match span.output {
            Output::Steps => 1,
            Output::Every(interval) => {
                let ratio = positive("the output interval must be positive and finite", interval)? / h;
                let stride = whole(ratio, 8.0 * f64::EPSILON * ratio);
                stride.filter(|stride| *stride >= 1.0).ok_or(StepError::Setting {
                    what: "the output interval must be a multiple of the step",
                    value: interval,
                })? as usize
            }
        };
        let steps = whole_steps + usize::from(remainder);
        Ok(Self { start: span.start, end: span.end, h: S::from_f64(h), steps, remainder, stride })
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
    pub(crate) fn observed(&self, number: usize) -> bool {
        number == self.steps || number.is_multiple_of(self.stride)
    }
}

impl<T: FixedStep> Integrator for Fixed<T> {
    fn scratch_len(&self, dims: &Dims) -> usize {
        self.method.scratch_len(dims)
    }

    fn simulate<M, I, O>(
        &self,
        system: &M,
        inputs: &mut I,
        y: &mut [M::S],
        span: &Span<M::S>,
        scratch: &mut [M::S],
        mut observe: O,
    ) -> Result<Statistics, StepError>
    where
        M: ForwardDynamics,
        I: Inputs<M::S>,
        O: FnMut(At<'_, M::S>) -> ControlFlow<()>,
    {
        let nodes = Nodes::new(span, self.h)?;
        let dims = system.dims();
        let mut observe = |t: M::S, y: &[M::S], inputs: &mut I, scratch: &mut [M::S]| {
            // Between steps the scratch is free; every method's is longer than the inputs.
            let u = Pieces::of(scratch, self.scratch_len(&dims)).next(dims.nu)?;
            if !u.is_empty() {
                inputs.at(t, u);
            }
            let at = At::of_state(&dims, t, y, u).map_err(|error| error.in_step(t.real(), self.h))?;
            Ok(observe(at).is_break())
        };

        let mut t = span.start;
        let mut statistics = Statistics { t: t.real(), ..Statistics::default() };
        statistics.stopped = observe(t, y, inputs, scratch)?;
        while statistics.steps < nodes.steps && !statistics.stopped {
            let number = statistics.steps + 1;
            let h = nodes.size(number, t);
            self.method.step(system, inputs, &mut t, y, h, scratch)?;
            t = nodes.time(number);
            statistics.steps = number;
            statistics.evaluations += T::EVALUATIONS;
            statistics.t = t.real();
            statistics.h = h.real();
            if nodes.observed(number) {
                statistics.stopped = observe(t, y, inputs, scratch)?;
            }
        }
        Ok(statistics)
    }
}
