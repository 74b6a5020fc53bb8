//! Runs whose steps keep an error tolerance: [`DormandPrince`], [`Dop853`](super::Dop853) or [`Sdirk4`](super::Sdirk4) under proportional-integral control
//! of the step size [Hairer, Nørsett, Wanner, Solving ODEs I, II.4, II.5 and the codes DOPRI5 and DOP853; Hairer, Wanner, Solving ODEs II, IV.2].
//!
//! Input: tolerances and limits. A step of size h has the error estimate e, measured as
//!
//! ```text
//! error = sqrt(mean((e_i / (atol + rtol max(|y0_i|, |y1_i|)))²))
//! ```
//!
//! over the state and, unless [`Adaptive::objectives`] says otherwise, the integrals of objectives, and is accepted when it is at most 1. Of a method with
//! two estimates, measured so as e₅ and e₃, it is e₅²/√(e₅² + 0.01 e₃²) [II.10, the code DOP853].
//! A step does not go over a corner in time, [`Inputs::next_stop`]. Decisions use real parts, so that the derivative of a run is that of its frozen
//! sequence of steps; only a step that lands on the end of the span moves with it.
//!
//! The seventh stage of a step of [`DormandPrince`] is the first of the next, unless an input held at [`Hold::Zero`](crate::Hold::Zero) may
//! jump in between. That saves an evaluation and changes no bit, see [`DormandPrince`].

use core::ops::{ControlFlow, Range};

use super::controlled::{Controlled, Ends};
use super::drive::{Hooks, Next, Plan, Planned, Stepper, Taken, Verdict, drive};
use super::explicit::{ExplicitRun, Observe, of_state};
use super::field::{Field, Rates, check_state, entry};
use super::{
    DormandPrince, Integrator, Output, Span, Statistics, StepStatistics, copy, copy_all, positive,
    renormalise,
};
use crate::error::{EvalError, StepError};
use crate::inputs::Inputs;
use crate::pieces::Pieces;
use crate::scalar::{Scalar, powf, sqrt};
use crate::system::{At, Dims, ForwardDynamics};

/// What the previous error takes over from the exponent of the error, in parts of its own.
const TAKEN: f64 = 0.75;
/// Weight of a second estimate of the error against the first.
const SECOND: f64 = 0.01;
/// The next step aims below the tolerance by this factor.
const SAFETY: f64 = 0.9;
/// A step shrinks at most to this part of the one before it,
const SHRINK: f64 = 0.2;
/// and grows at most by this factor.
const GROW: f64 = 10.0;
/// Errors below this do not count as smaller for the next choice.
const LEAST_ERROR: f64 = 1e-4;
/// A step that would end this close to the limit, in steps, lands on it.
const LANDING: f64 = 1.01;
/// Steps below this many units of rounding of the time are refused.
const LEAST_STEP: f64 = 16.0;

/// Steps that keep an error tolerance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adaptive<T = DormandPrince> {
    /// The method.
    pub method: T,
    /// Relative tolerance of each entry of the state.
    pub rtol: f64,
    /// Absolute tolerance of each entry of the state, positive.
    pub atol: f64,
    /// First step; none lets the method choose.
    pub h_first: Option<f64>,
    /// Smallest step; time's own rounding sets a bound of its own. Landing on the end may take a smaller one.
    pub h_min: f64,
    /// Largest step.
    pub h_max: f64,
    /// Steps that a run may try.
    pub max_steps: usize,
    /// Trials of one step that may be rejected.
    pub max_rejected: usize,
    /// Whether integrals of objectives count for the error.
    pub objectives: bool,
}

impl Adaptive {
    /// These tolerances, and no other limits than 100 000 steps and 50 rejected trials of one.
    pub const fn new(rtol: f64, atol: f64) -> Self {
        Self::of(DormandPrince, rtol, atol)
    }

    /// Length of the scratch a step or a run needs, at least; a constant for generated models.
    #[inline(always)]
    pub const fn scratch_len(dims: &Dims) -> usize {
        DormandPrince::scratch_len(dims)
    }
}

impl<T> Adaptive<T> {
    /// The same by any method.
    pub const fn of(method: T, rtol: f64, atol: f64) -> Self {
        Self {
            method,
            rtol,
            atol,
            h_first: None,
            h_min: 0.0,
            h_max: f64::INFINITY,
            max_steps: 100_000,
            max_rejected: 50,
            objectives: true,
        }
    }
}

/// What one adaptive step hands to the next, besides the state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Memory<S> {
    /// Time of the state.
    pub t: S,
    /// Size proposed for the next step; zero lets the method choose.
    pub h: f64,
    /// Error of the previous step in units of the tolerance.
    pub error: f64,
}

impl<S> Memory<S> {
    /// At the start of a run.
    pub const fn new(t: S) -> Self {
        Self { t, h: 0.0, error: LEAST_ERROR }
    }

    /// The same at a time of another scalar.
    pub(crate) fn at<T>(self, t: T) -> Memory<T> {
        Memory { t, h: self.h, error: self.error }
    }
}

/// A step that was taken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Accepted<S> {
    /// Time at its start.
    pub t: S,
    /// Its size.
    pub h: S,
    /// Trials that were rejected before it.
    pub rejected: usize,
    /// Evaluations of the forward dynamics, for all of them.
    pub evaluations: usize,
}

#[allow(private_bounds, reason = "as for FixedStep")]
impl<T: Controlled> Adaptive<T> {
    /// Takes the state one step further, not beyond `limit`.
    ///
    /// The size is the method's choice; a step that comes near the limit lands on it exactly. The scratch carries nothing
    /// to the next step (it only serves [`Adaptive::dense`] until then): with copies of `memory` and `y` the same
    /// step can be made again, bit for bit. After an error `memory` and `y` are as before.
    pub fn step<M: ForwardDynamics, I: Inputs<M::S>>(
        &self,
        system: &M,
        inputs: &mut I,
        memory: &mut Memory<M::S>,
        y: &mut [M::S],
        limit: M::S,
        scratch: &mut [M::S],
    ) -> Result<Accepted<M::S>, StepError> {
        self.check()?;
        let dims = system.dims();
        check_state(&dims, y)?;
        let mut pieces = Pieces::of(scratch, self.method.scratch_len(&dims));
        let mut stages = T::stages(dims.state(), &mut pieces)?;
        let mut field = Field::new(system, inputs, &mut pieces)?;
        self.advance(&mut field, &mut stages, memory, y, limit, false)
    }

    /// Makes what [`Adaptive::dense`] needs besides the stages of the step that `scratch` was last used for, up to `end`, the time of its
    /// [`Memory`]: three stages and the rate at its end for [`Dop853`](super::Dop853), nothing for other methods. Gives the evaluations.
    pub fn extend<M: ForwardDynamics, I: Inputs<M::S>>(
        &self,
        system: &M,
        inputs: &mut I,
        step: &Accepted<M::S>,
        end: M::S,
        scratch: &mut [M::S],
    ) -> Result<usize, StepError> {
        let dims = system.dims();
        let mut pieces = Pieces::of(scratch, self.method.scratch_len(&dims));
        let mut stages = T::stages(dims.state(), &mut pieces)?;
        let mut field = Field::new(system, inputs, &mut pieces)?;
        let extended = T::extend(&mut stages, &mut field, step.t, step.h, end);
        extended.map_err(|error| error.in_step(step.t.real(), step.h.real()))?;
        Ok(field.evaluations())
    }

    /// The state at the part `theta` of the step that `scratch` was last used for, by dense output: of order 4, of order 7 for
    /// [`Dop853`](super::Dop853), which needs [`Adaptive::extend`] before it and says so.
    pub fn dense<M: ForwardDynamics>(
        &self,
        system: &M,
        step: &Accepted<M::S>,
        theta: M::S,
        scratch: &mut [M::S],
        y: &mut [M::S],
    ) -> Result<(), StepError> {
        let dims = system.dims();
        check_state(&dims, y)?;
        let mut pieces = Pieces::of(scratch, T::memory_len(dims.state()));
        let mut stages = T::stages(dims.state(), &mut pieces)?;
        copy(y, T::dense(&mut stages, step.h, theta).ok_or(NOT_EXTENDED)?);
        renormalise(system, y);
        Ok(())
    }

    fn check(&self) -> Result<(), StepError> {
        positive("the absolute tolerance must be positive and finite", self.atol)?;
        let setting = |what, value| Err(StepError::Setting { what, value });
        if !(self.rtol >= 0.0 && self.rtol.is_finite()) {
            return setting("the relative tolerance must be finite and not negative", self.rtol);
        }
        if !(self.h_min >= 0.0 && self.h_min.is_finite()) {
            return setting("the smallest step must be finite and not negative", self.h_min);
        }
        if !(self.h_max > 0.0 && self.h_max >= self.h_min) {
            return setting("the largest step must be positive and not below the smallest", self.h_max);
        }
        match self.h_first {
            Some(h) => positive("the first step must be positive and finite", h).map(|_| ()),
            None => Ok(()),
        }
    }

    /// One accepted step. `rate_known`: the last rate of `stages` is that at `y`.
    pub(crate) fn advance<F: Rates>(
        &self,
        field: &mut F,
        stages: &mut T::Stages<'_, F::S>,
        memory: &mut Memory<F::S>,
        y: &mut [F::S],
        limit: F::S,
        rate_known: bool,
    ) -> Result<Accepted<F::S>, StepError> {
        let t = memory.t;
        let mut left = (limit - t).real();
        if !(left > 0.0 && left.is_finite()) {
            return Err(StepError::Setting {
                what: "the limit of a step must lie after its start",
                value: left,
            });
        }
        let scale = t.real().abs().max(limit.real().abs());
        let least = self.h_min.max(LEAST_STEP * F::S::EPSILON * scale);
        let evaluations = field.evaluations();

        field.prepare_step(t, y).map_err(|error| error.in_step(t.real(), memory.h))?;
        copy(T::ends(stages).y0, y);
        if !(rate_known && T::hand_on(stages)) {
            // Held inputs at the start of the step do not depend on where it ends.
            field.begin_step(t, limit);
            let Ends { y0, first, .. } = T::ends(stages);
            let known = field.rate(t, 0.0, y0, first);
            known.map_err(|error| error.in_step(t.real(), memory.h))?;
        }
        let proposed = match (memory.h, self.h_first) {
            (0.0, Some(h)) => h,
            (0.0, None) => self.first_step(field, stages, t, left),
            (h, _) => h,
        };

        let mut h = proposed.min(self.h_max).max(least);
        let mut limit = limit;
        if let Some(stop) = field.next_stop(t.real(), (t.real() + LANDING * h).min(limit.real())) {
            // Where steps keep off a corner, by roundings of the scalar and not of the time alone.
            let crossed = stop.before < stop.after;
            let margin = if crossed { LEAST_STEP * (F::S::EPSILON - f64::EPSILON) * scale } else { 0.0 };
            let (before, after) = (stop.before - margin, stop.after + margin);
            let end = F::S::from_f64(if before > t.real() { before } else { after });
            if (end - t).real() > 0.0 && end.real() < limit.real() {
                limit = end;
                left = (limit - t).real();
            }
        }
        let mut rejected = 0;
        loop {
            let lands = LANDING * h >= left;
            let (h_trial, t_next) = if lands {
                (limit - t, limit)
            } else {
                // Late times round the step: the state advances by what time does.
                let (h, late) = (F::S::from_f64(h), scale > LATE * h);
                let t_next = t + h;
                (if late { t_next - t } else { h }, t_next)
            };
            let h_real = h_trial.real();
            let least_tried = h_real.min(h) <= least;
            match self.try_step(field, stages, t, h_trial, t_next) {
                Ok(error) if error <= 1.0 => {
                    // h_next = h / (error^EXPONENT / previous error^PREVIOUS / SAFETY)       [ODEs II, IV.2, Eq. 2.43c]
                    let factor = powf(error, T::EXPONENT - TAKEN * T::PREVIOUS)
                        / powf(memory.error, T::PREVIOUS)
                        / SAFETY;
                    let mut h_next = h_real / factor.clamp(1.0 / GROW, 1.0 / SHRINK);
                    if rejected > 0 {
                        h_next = h_next.min(h_real);
                    } else if lands {
                        // Cut short for the limit, not for the tolerance.
                        h_next = h_next.max(h);
                    }
                    *memory = Memory { t: t_next, h: h_next.min(self.h_max), error: error.max(LEAST_ERROR) };
                    copy(y, T::ends(stages).y1);
                    let evaluations = field.evaluations() - evaluations;
                    return Ok(Accepted { t, h: h_trial, rejected, evaluations });
                }
                // A wrong length does not mend with a smaller step.
                Err(error @ EvalError::Length { .. }) => return Err(error.in_step(t.real(), h_real)),
                Err(error) if least_tried => return Err(error.in_step(t.real(), h_real)),
                Ok(error) if least_tried => {
                    let (quantity, index) = self.worst(field, stages);
                    return Err(StepError::StepTooSmall { t: t.real(), h: h_real, error, quantity, index });
                }
                Err(_) => h = (SHRINK * h_real).max(least),
                // Also for an error that is infinite or, by overflow, NaN: `min` then takes the bound.
                Ok(error) => {
                    let exponent = T::EXPONENT - TAKEN * T::PREVIOUS;
                    h = (h_real / (powf(error, exponent) / SAFETY).min(1.0 / SHRINK)).max(least)
                }
            }
            rejected += 1;
            if rejected > self.max_rejected {
                let (quantity, index) = self.worst(field, stages);
                return Err(StepError::TooManyRejected { t: t.real(), h: h_real, rejected, quantity, index });
            }
        }
    }

    /// Makes the step in `stages` and measures its error.
    #[inline(always)]
    fn try_step<F: Rates>(
        &self,
        field: &mut F,
        stages: &mut T::Stages<'_, F::S>,
        t: F::S,
        h: F::S,
        t_next: F::S,
    ) -> Result<f64, EvalError> {
        field.begin_step(t, t_next);
        T::solve(stages, field, t, h, t_next)?;
        T::error(stages, h);
        let counted = self.counted(field);
        let Ends { y0, y1, spare, second, .. } = T::ends(stages);
        let size = |estimate: &[F::S]| {
            mean_square(&counted, |of| {
                let entries = part(estimate, of).iter().zip(part(y0, of).iter().zip(part(y1, of)));
                entries.fold(0.0, |sum, (e, (y0, y1))| sum + square(self.scaled(*e, *y0, *y1)))
            })
        };
        let first = size(spare);
        Ok(match second {
            Some(second) if first != 0.0 => first / sqrt(first + SECOND * size(second)),
            _ => sqrt(first),
        })
    }

    /// The entries of y that count for the error: the state and the integrals of objectives.
    #[inline(always)]
    fn counted<F: Rates>(&self, field: &F) -> [Range<usize>; 2] {
        let (state, integrals) = (field.dims().state(), field.integrals());
        let none = integrals.start..integrals.start;
        [0..state.min(integrals.start), if self.objectives { integrals } else { none }]
    }

    /// An error in units of its tolerance.
    #[inline(always)]
    fn scaled<S: Scalar>(&self, error: S, y0: S, y1: S) -> f64 {
        error.real() / (self.atol + self.rtol * y0.real().abs().max(y1.real().abs()))
    }

    /// The state with the largest part in the error that the spare memory holds.
    #[cold]
    fn worst<F: Rates>(&self, field: &F, stages: &mut T::Stages<'_, F::S>) -> (crate::Quantity, usize) {
        let counted = self.counted(field);
        let Ends { y0, y1, spare, .. } = T::ends(stages);
        let all = spare.iter().zip(y0.iter().zip(y1.iter())).enumerate();
        let errors = all
            .filter(|(i, _)| counted.iter().any(|range| range.contains(i)))
            .map(|(i, (e, (y0, y1)))| (i, self.scaled(*e, *y0, *y1).abs()));
        let largest = errors.max_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(index, _)| index);
        match largest.checked_sub(field.integrals().start) {
            Some(index) if field.integrals().contains(&largest) => (crate::Quantity::Objective, index),
            _ => entry(&field.dims(), largest),
        }
    }

    /// A first step from the size of y, y' and y'' [ODEs I, II.4, starting step size]. Expects the first rate; uses y1 and the spare memory.
    #[cold]
    fn first_step<F: Rates>(
        &self,
        field: &mut F,
        stages: &mut T::Stages<'_, F::S>,
        t: F::S,
        left: f64,
    ) -> f64 {
        let Ends { y0, y1, first: k1, spare: k2, .. } = T::ends(stages);
        let counted = self.counted(field);
        let size = |values: &[F::S]| {
            sqrt(mean_square(&counted, |of| {
                let entries = part(values, of).iter().zip(part(y0, of));
                entries.fold(0.0, |sum, (value, y0)| sum + square(self.scaled(*value, *y0, *y0)))
            }))
        };
        let (d0, d1) = (size(y0), size(k1));
        let guess = if d0 < 1e-5 || d1 < 1e-5 { 1e-6 } else { 0.01 * (d0 / d1) };
        let h0 = guess.min(left).min(self.h_max);
        let h = F::S::from_f64(h0);
        super::combine(y1, y0, h, [(1.0, k1)]);
        field.begin_step(t, t + h);
        if field.rate(t + h, 1.0, y1, k2).is_err() {
            return h0;
        }
        for (k2, k1) in k2.iter_mut().zip(k1.iter()) {
            *k2 -= *k1;
        }
        let steepest = d1.max(size(k2) / h0);
        let h1 = if steepest <= 1e-15 { (1e-3 * h0).max(1e-6) } else { powf(0.01 / steepest, T::EXPONENT) };
        h1.min(100.0 * h0)
    }
}

/// Dense output was asked for states of a step that was not extended.
const NOT_EXTENDED: StepError = StepError::Unsupported {
    what: "states within this step are not known: call `Adaptive::extend` after it",
};

/// Times beyond this many steps round a step by more than 1e−12 of itself.
const LATE: f64 = 4096.0;

/// Steps up to the end of a span, as many as are allowed.
pub(crate) struct Limits<S> {
    start: S,
    end: S,
    max_steps: usize,
    /// Whether every step is observed.
    each: bool,
}

impl<S: Scalar> Limits<S> {
    /// Checks the settings and the span.
    pub(crate) fn new<T: Controlled>(control: &Adaptive<T>, span: &Span<S>) -> Result<Self, StepError> {
        control.check()?;
        span.length()?;
        let each = span.output == Output::Steps;
        Ok(Self { start: span.start, end: span.end, max_steps: control.max_steps, each })
    }
}

impl<S: Scalar> Plan<S> for Limits<S> {
    #[inline(always)]
    fn start(&self) -> S {
        self.start
    }

    #[inline(always)]
    fn next(&mut self, t: S, statistics: &Statistics) -> Result<Option<Planned<S>>, StepError> {
        if t.real() >= self.end.real() {
            return Ok(None);
        }
        let steps = statistics.steps + statistics.rejected;
        if steps >= self.max_steps {
            return Err(StepError::TooManySteps { t: t.real(), h: statistics.h, steps });
        }
        Ok(Some(Planned { t, h: self.end - t, end: self.end, observed: true }))
    }

    #[inline(always)]
    fn observed(&self, t: S) -> bool {
        self.each || t == self.end
    }
}

/// Steps of a state with rates under control of the error.
pub(crate) struct AdaptiveRun<'a, 'b, T: Controlled, F: Rates> {
    control: &'a Adaptive<T>,
    field: &'a mut F,
    stages: &'a mut T::Stages<'b, F::S>,
    memory: Memory<F::S>,
    y: &'a mut [F::S],
    /// Whether the last rate of the stages is that at y.
    rate_known: bool,
    /// Evaluations of dense output that are not counted yet.
    evaluations: usize,
}

impl<'a, 'b, T: Controlled, F: Rates> AdaptiveRun<'a, 'b, T, F> {
    #[inline(always)]
    pub(crate) fn new(
        control: &'a Adaptive<T>,
        field: &'a mut F,
        stages: &'a mut T::Stages<'b, F::S>,
        t: F::S,
        y: &'a mut [F::S],
    ) -> Self {
        Self { control, field, stages, memory: Memory::new(t), y, rate_known: false, evaluations: 0 }
    }

    /// A run that goes on where another one ended.
    pub(crate) fn resumed(
        control: &'a Adaptive<T>,
        field: &'a mut F,
        stages: &'a mut T::Stages<'b, F::S>,
        memory: Memory<F::S>,
        y: &'a mut [F::S],
    ) -> Result<Self, StepError> {
        control.check()?;
        Ok(Self { control, field, stages, memory, y, rate_known: false, evaluations: 0 })
    }

    /// Makes what states within the last step need besides its stages.
    #[inline(always)]
    pub(crate) fn extend(&mut self, step: &Taken<F::S>) -> Result<(), StepError> {
        let before = self.field.evaluations();
        let extended = T::extend(self.stages, self.field, step.t, step.h, step.end);
        self.evaluations += self.field.evaluations() - before;
        extended.map_err(|error| error.in_step(step.t.real(), step.h.real()))
    }

    /// Where it is, and what one step hands to the next.
    pub(crate) fn memory(&self) -> Memory<F::S> {
        self.memory
    }
}

impl<T: Controlled, F: Rates> Stepper for AdaptiveRun<'_, '_, T, F> {
    type S = F::S;

    #[inline(always)]
    fn step(&mut self, planned: &Planned<F::S>) -> Result<Taken<F::S>, StepError> {
        let Self { control, field, stages, memory, y, rate_known, .. } = self;
        memory.t = planned.t;
        let Accepted { t, h, rejected, evaluations } =
            control.advance(&mut **field, stages, memory, y, planned.end, *rate_known)?;
        *rate_known = !field.jumps_between_steps();
        let statistics = StepStatistics { evaluations, rejected, ..StepStatistics::default() };
        Ok(Taken { t, h, end: memory.t, statistics })
    }

    fn take_evaluations(&mut self) -> usize {
        core::mem::take(&mut self.evaluations)
    }

    /// The state, and what one step hands to the next.
    fn saved_len(&self) -> usize {
        self.y.len() + 2
    }

    fn save(&self, to: &mut [F::S]) -> Result<(), StepError> {
        let mut pieces = Pieces::named("saved", to, self.saved_len());
        let memory = [F::S::from_f64(self.memory.h), F::S::from_f64(self.memory.error)];
        copy_all("saved", pieces.next(2)?, &memory)?;
        copy_all("saved", pieces.rest(), self.y)
    }

    fn restore(&mut self, from: &[F::S]) -> Result<(), StepError> {
        let wrong = StepError::Length { what: "saved", expected: self.saved_len(), found: from.len() };
        let ([h, error], y) = from.split_first_chunk().ok_or(wrong)?;
        (self.memory.h, self.memory.error) = (h.real(), error.real());
        self.restart();
        copy_all("saved", self.y, y)
    }

    fn restart(&mut self) {
        self.rate_known = false;
    }
}

impl<T: Controlled, F: Rates> ExplicitRun for AdaptiveRun<'_, '_, T, F> {
    type Field = F;

    #[inline(always)]
    fn parts(&mut self) -> (&mut F, &mut [F::S]) {
        (self.field, self.y)
    }
}

/// Makes what states within a step need, if it leads beyond this time.
pub(crate) struct Extend(pub(crate) f64);

impl<T: Controlled, F: Rates> Hooks<AdaptiveRun<'_, '_, T, F>> for Extend {
    fn node(
        &mut self,
        _: &mut AdaptiveRun<'_, '_, T, F>,
        _: &Taken<F::S>,
        _: bool,
    ) -> Result<Next, StepError> {
        Ok(Next::Continue)
    }

    fn after(
        &mut self,
        run: &mut AdaptiveRun<'_, '_, T, F>,
        step: &Taken<F::S>,
    ) -> Result<Verdict<F::S>, StepError> {
        if self.0 <= step.end.real() {
            run.extend(step)?;
        }
        Ok(Verdict::Accept)
    }
}

/// Output at observed nodes, and between them by dense output.
pub(crate) struct ObserveDense<S, O> {
    nodes: Observe<O>,
    start: S,
    end: S,
    /// Time from one output to the next; none for output at nodes alone.
    interval: Option<f64>,
    /// An output time closer to the end than this is the end.
    rounding: f64,
    outputs: u64,
}

impl<S: Scalar, O> ObserveDense<S, O> {
    pub(crate) fn new(span: &Span<S>, observe: O) -> Result<Self, StepError> {
        let interval = match span.output {
            Output::Steps => None,
            Output::Every(interval) => {
                Some(positive("the output interval must be positive and finite", interval)?)
            }
        };
        let rounding = LEAST_STEP * S::EPSILON * span.start.real().abs().max(span.end.real().abs());
        let (start, end) = (span.start, span.end);
        Ok(Self { nodes: Observe(observe), start, end, interval, rounding, outputs: 1 })
    }
}

impl<T: Controlled, F: Rates, O> Hooks<AdaptiveRun<'_, '_, T, F>> for ObserveDense<F::S, O>
where
    O: FnMut(F::S, &[F::S], &[F::S]) -> Result<ControlFlow<()>, StepError>,
{
    #[inline(always)]
    fn node(
        &mut self,
        run: &mut AdaptiveRun<'_, '_, T, F>,
        step: &Taken<F::S>,
        observed: bool,
    ) -> Result<Next, StepError> {
        self.nodes.node(run, step, observed)
    }

    #[inline(always)]
    fn after(
        &mut self,
        run: &mut AdaptiveRun<'_, '_, T, F>,
        step: &Taken<F::S>,
    ) -> Result<Verdict<F::S>, StepError> {
        let Some(interval) = self.interval else { return Ok(Verdict::Accept) };
        loop {
            let t = self.start + F::S::from_f64(self.outputs as f64 * interval);
            if t.real() > step.end.real() || t.real() >= self.end.real() - self.rounding {
                return Ok(Verdict::Accept);
            }
            self.outputs += 1;
            let theta = (t - step.t) / step.h;
            run.extend(step)?;
            let y = T::dense(run.stages, step.h, theta).ok_or(NOT_EXTENDED)?;
            run.field.normalise(y).map_err(|error| error.in_step(step.t.real(), step.h.real()))?;
            if (self.nodes.0)(t, y, run.field.during_step(t, theta))?.is_break() {
                copy(run.y, y);
                return Ok(Verdict::Stop(t));
            }
        }
    }
}

/// Of the entries in two ranges, from the sum of squares over each; zero for no entries.
#[inline(always)]
fn mean_square([a, b]: &[Range<usize>; 2], sum: impl Fn(&Range<usize>) -> f64) -> f64 {
    let n = (a.len() + b.len()).max(1);
    (sum(a) + sum(b)) / n as f64
}

#[inline(always)]
fn square(x: f64) -> f64 {
    x * x
}

#[inline(always)]
fn part<'a, S>(values: &'a [S], range: &Range<usize>) -> &'a [S] {
    values.get(range.clone()).unwrap_or_default()
}

#[allow(private_bounds, reason = "as for FixedStep")]
impl<T: Controlled> Integrator for Adaptive<T> {
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
        let mut limits = Limits::new(self, span)?;
        let dims = system.dims();
        check_state(&dims, y)?;
        let mut pieces = Pieces::of(scratch, self.method.scratch_len(&dims));
        let mut stages = T::stages(dims.state(), &mut pieces)?;
        let mut field = Field::new(system, inputs, &mut pieces)?;
        let mut run = AdaptiveRun::new(self, &mut field, &mut stages, span.start, y);
        drive(&mut run, &mut limits, &mut ObserveDense::new(span, of_state(dims, observe))?)
    }
}
