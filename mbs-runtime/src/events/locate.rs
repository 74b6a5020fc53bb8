//! Where functions of events cross zero, and what happens there: a hook of the loop over steps.
//!
//! Input: values and rates of all functions at both ends of a step that was just made. The step stands if no function has crossed zero.
//! Otherwise it is made again with another size, until the first function that crosses is at its rounding: the ends of the bracket come
//! from Newton's method with the function's own rate, from a secant where the rate is not known, from bisection every fourth time.
//! At the node where the step ends the events act, in the order of the table.
//!
//! In complex numbers, in which runs with a small imaginary part tell derivatives, crossings are located by real parts; then the size of the step gets the
//! imaginary part at which the whole function is zero. As it is small, the function is linear in it: two steps tell it exactly.
//!
//! | what | rule |
//! |---|---|
//! | side | the sign of a function before a step; where the function is zero, that of its rate; where both are, that of its second derivative |
//! | zero | at an event of another function, or at the start: below 1e−9 of the size of its terms, if the rate is, too |
//! | crossing | the function ends on the other side; or at zero, moving there |
//! | two crossings within a step | looked for where a function turns round between the ends, and the cubic through values and rates comes near zero |
//! | after an event | a function that its own event leaves at zero has the side of its rate |
//! | a jump of a function at another event | is no crossing |
//! | begins or ceases to count within a step in which it crosses | the step is halved until one comes before the other |
//! | at rest | a function that is zero with rate zero and second derivative zero has no side: an error where it then crosses |
//! | begins to count | a function of accelerations or multipliers that is beyond zero as soon as an event of another function arms it is an error |
//! | impact along its own function | acts where the function moves to the other side, and leaves it moving back: what stops a body never lets it through |
//! | accumulation | an event that comes ever faster, at last within 1e−9 of the run's time, is an error |

use core::cell::Cell;
use core::ops::ControlFlow;

use super::{Direction, EventEntry, EventTable, Occurrence};
use crate::error::{EventFailure, StepError};
use crate::integrator::{Hooks, Next, Planned, Stepper, Taken, Verdict};
use crate::pieces::Pieces;
use crate::scalar::{Scalar, sqrt};

/// Steps that one step with an event costs at most, besides its own.
pub(crate) const MAX_STEPS: usize = 60;
/// Probes for two crossings within a step.
const MAX_PROBES: usize = 4;
/// How often a step is halved in which an event crosses and begins or ceases to count.
const MAX_HALVINGS: usize = 40;
/// Events of a run.
const MAX_EVENTS: usize = 1_000_000;
/// Times from one occurrence to the next, relative to the time of the run, below which an event accumulates.
const ACCUMULATED: f64 = 1e-9;
/// What is nothing but the error of constraints and of steps, relative to the terms of a function: half the digits and a few bits more.
const NOTHING: f64 = 1e-9;

/// Values of all functions at an instant.
pub(crate) struct Functions<'a, S> {
    pub(crate) values: &'a mut [S],
    pub(crate) rates: &'a mut [S],
    pub(crate) armed: &'a mut [S],
}

impl<'a, S: Scalar> Functions<'a, S> {
    fn new(n: usize, pieces: &mut Pieces<'a, S>) -> Result<Self, StepError> {
        Ok(Self { values: pieces.next(n)?, rates: pieces.next(n)?, armed: pieces.next(n)? })
    }

    fn copy(&mut self, from: &Functions<'_, S>) {
        crate::linear::copy(self.values, from.values);
        crate::linear::copy(self.rates, from.rates);
        crate::linear::copy(self.armed, from.armed);
    }

    fn of(&self, k: usize) -> (f64, f64) {
        let get = |values: &[S]| values.get(k).map_or(0.0, |x| x.real());
        (get(self.values), get(self.rates))
    }
}

/// How a run answers questions of events.
pub(crate) trait Driver<W: Stepper> {
    /// Evaluates all functions at the state of the run; `ended`: at the end of a step, with the inputs of that step.
    fn evaluate(
        &mut self,
        run: &mut W,
        t: W::S,
        ended: bool,
        to: &mut Functions<'_, W::S>,
    ) -> Result<(), StepError>;

    /// Second derivatives, and sizes of terms, at the state at which functions were evaluated last.
    fn sides(
        &mut self,
        run: &mut W,
        t: W::S,
        curvatures: &mut [W::S],
        sizes: &mut [W::S],
    ) -> Result<(), StepError>;

    /// An event acts.
    fn act(&mut self, run: &mut W, t: W::S, event: usize) -> Result<(), StepError>;

    /// An event happens at the same time as another one, at which the step ends; in differentiated runs after a change of parameters, too.
    fn coincides(&mut self, _run: &mut W, _t: W::S, _event: usize, _other: usize) -> Result<(), StepError> {
        Ok(())
    }

    /// Gives an input a value. Whether it is another one.
    fn latch(&mut self, input: u32, value: W::S) -> bool;

    /// The switch of an event has got another value.
    fn switched(&mut self, _t: W::S, _event: usize, _value: W::S) -> Result<(), StepError> {
        Ok(())
    }

    /// All events of an instant have acted.
    fn restart(&mut self, run: &mut W, t: W::S) -> Result<(), StepError>;

    /// Impulses of the event that acted last, those of constraints, and derivatives of its time.
    fn acted(&self) -> [&[W::S]; 3];

    /// Whether inputs may jump at nodes.
    fn inputs_jump(&self) -> bool;

    /// Before a step that is made for the first time.
    fn begin(&mut self, _run: &mut W, _planned: &Planned<W::S>) -> Result<(), StepError> {
        Ok(())
    }

    /// After a step that stands and ends in no event; `planned`: where the plan wanted it to end. Whether it must be made again.
    fn ended(&mut self, _run: &mut W, _planned: bool) -> Result<bool, StepError> {
        Ok(false)
    }

    /// After a step that ends in an event, for the `pass`-th time. Whether it must be made again.
    fn located(&mut self, _run: &mut W, _t: W::S, _event: usize, _pass: usize) -> Result<bool, StepError> {
        Ok(false)
    }
}

/// What the hook is doing.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase<S> {
    /// A step was made as planned.
    Free,
    /// Looks for a crossing and back of this function: how often, and the end of the whole step.
    Probing(usize, usize, S),
    /// Shrinks the bracket: how often.
    Bracketing(usize),
    /// The next step stands.
    Standing,
    /// The next step ends in the event: how often it was made.
    Located(usize),
}

/// The imaginary part of the size of a step that ends in an event.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Tilt<S> {
    /// Not looked for.
    None,
    /// What the function had of it without, and what was tried.
    Tried(S, S),
    /// Found.
    Done,
}

/// Length of the memory of a [`Located`] hook; `saved`: that of the state of the run.
pub(crate) fn memory_len(table: &EventTable<'_>, saved: usize) -> usize {
    21 * table.events.len() + saved
}

/// What a run knows of its events from one step to the next.
pub(crate) struct Resumed<'a, S> {
    /// Sides, times of the last occurrences, and times between the last two, of all events.
    pub(crate) sides: [&'a mut [S]; 3],
    /// When the run began; none before its first step.
    pub(crate) begun: Option<f64>,
    /// Events so far.
    pub(crate) count: usize,
}

/// A hook that does nothing.
pub(crate) struct Unseen;

impl<W: Stepper> Hooks<W> for Unseen {
    fn node(&mut self, _: &mut W, _: &Taken<W::S>, _: bool) -> Result<Next, StepError> {
        Ok(Next::Continue)
    }
}

/// The hook. `inner` sees nodes: at an event the one before it and the one after it.
pub(crate) struct Located<'a, S, E, H, R> {
    table: EventTable<'a>,
    pub(crate) driver: E,
    inner: H,
    record: R,
    /// Whether the node that `inner` sees is one that the run has without events.
    own: &'a Cell<bool>,
    now: Functions<'a, S>,
    next: Functions<'a, S>,
    low: Functions<'a, S>,
    high: Functions<'a, S>,
    side: &'a mut [S],
    last: &'a mut [S],
    interval: &'a mut [S],
    candidate: &'a mut [S],
    was_armed: &'a mut [S],
    /// At the start, or at the last event.
    curvatures: &'a mut [S],
    sizes: &'a mut [S],
    saved: &'a mut [S],
    bracket: (S, S),
    planned: S,
    phase: Phase<S>,
    pending: bool,
    event: usize,
    started: Option<f64>,
    count: usize,
    /// How often the step was made.
    made: usize,
    /// In complex numbers: how the size of a step that ends in an event gets its imaginary part.
    tilt: Tilt<S>,
    /// Whether the next node is where an earlier run ended.
    resumes: bool,
    /// Whether there may be another run that begins where this one ends.
    goes_on: bool,
}

impl<'a, S: Scalar, E, H, R> Located<'a, S, E, H, R> {
    #[allow(clippy::too_many_arguments, reason = "its parts")]
    pub(crate) fn new(
        table: EventTable<'a>,
        driver: E,
        inner: H,
        record: R,
        own: &'a Cell<bool>,
        saved: usize,
        pieces: &mut Pieces<'a, S>,
    ) -> Result<Self, StepError> {
        let n = table.events.len();
        let sides = [pieces.next(n)?, pieces.next(n)?, pieces.next(n)?];
        let resumed = Resumed { sides, begun: None, count: 0 };
        let all = Self::resumed(table, driver, inner, record, own, saved, resumed, pieces)?;
        Ok(Self { goes_on: false, ..all })
    }

    /// A run that goes on where another one ended.
    #[allow(clippy::too_many_arguments, reason = "its parts")]
    pub(crate) fn resumed(
        table: EventTable<'a>,
        driver: E,
        inner: H,
        record: R,
        own: &'a Cell<bool>,
        saved: usize,
        resumed: Resumed<'a, S>,
        pieces: &mut Pieces<'a, S>,
    ) -> Result<Self, StepError> {
        let Resumed { sides: [side, last, interval], begun, count } = resumed;
        let n = table.events.len();
        Ok(Self {
            table,
            driver,
            inner,
            record,
            own,
            now: Functions::new(n, pieces)?,
            next: Functions::new(n, pieces)?,
            low: Functions::new(n, pieces)?,
            high: Functions::new(n, pieces)?,
            side,
            last,
            interval,
            candidate: pieces.next(n)?,
            was_armed: pieces.next(n)?,
            curvatures: pieces.next(n)?,
            sizes: pieces.next(3 * n)?,
            saved: pieces.next(saved)?,
            bracket: (S::ZERO, S::ZERO),
            planned: S::ZERO,
            phase: Phase::Free,
            pending: false,
            event: 0,
            started: begun,
            count,
            made: 0,
            tilt: Tilt::None,
            resumes: begun.is_some(),
            goes_on: true,
        })
    }

    /// When the run began, and how many events there were.
    pub(crate) fn progress(&self) -> (Option<f64>, usize) {
        (self.started, self.count)
    }

    fn entry(&self, k: usize) -> Option<&'a EventEntry> {
        self.table.events.get(k)
    }

    fn side_of(&self, k: usize) -> f64 {
        self.side.get(k).map_or(0.0, |side| side.real())
    }

    /// Whether the event counts during the step from `t`.
    fn counts(&self, k: usize, t: f64) -> bool {
        self.counts_at(&self.now, k, t)
    }

    /// Whether the event counts at an instant.
    fn counts_at(&self, functions: &Functions<'_, S>, k: usize, t: f64) -> bool {
        let armed = functions.armed.get(k).is_some_and(|armed| armed.real() > 0.0);
        let last = self.last.get(k).map_or(f64::NEG_INFINITY, |last| last.real());
        let least = self.entry(k).map_or(0.0, |entry| entry.minimum_interval);
        // Without a least time an event may follow itself at once.
        armed && (least == 0.0 || t - last >= least)
    }

    /// Whether crossings from this side count.
    fn wants(&self, k: usize, side: f64) -> bool {
        self.entry(k).is_some_and(|entry| match entry.direction {
            Direction::Rising => side < 0.0,
            Direction::Falling => side > 0.0,
            Direction::Both => side != 0.0,
        })
    }

    /// The slope of a function at the end of a step, and its rounding there.
    fn slope(&self, k: usize, from: S, to: S) -> (f64, f64) {
        let ((g0, _), (g, rate)) = (self.now.of(k), self.next.of(k));
        let h = (to - from).real();
        let known = self.entry(k).is_some_and(|entry| entry.has_rate);
        let slope = if known || h == 0.0 { rate } else { (g - g0) / h };
        let time = to.real().abs().max(h.abs());
        (slope, 4.0 * S::EPSILON * (slope.abs() * time + g0.abs()))
    }

    /// Whether a function has come to the other side, or to zero on its way there, by the end of the step.
    fn crossed(&self, k: usize, step: &Taken<S>) -> bool {
        let side = self.side_of(k);
        if !self.wants(k, side) || !self.counts(k, step.t.real()) {
            return false;
        }
        let (g, _) = self.next.of(k);
        let (slope, rounding) = self.slope(k, step.t, step.end);
        if g.abs() <= rounding { slope * side < 0.0 } else { g * side < 0.0 }
    }

    /// Where to end a step within which an event begins or ceases to count, and its function crosses: which comes first is not known.
    fn undecided(&self, step: &Taken<S>) -> Option<S> {
        let (t, end) = (step.t.real(), step.end.real());
        let middle = 0.5 * (t + end);
        let within = middle > t && middle < end && self.made <= MAX_HALVINGS;
        let mut undecided = (0..self.table.events.len()).filter(|&k| {
            let side = self.side_of(k);
            self.wants(k, side)
                && self.next.of(k).0 * side < 0.0
                && self.counts(k, t) != self.counts_at(&self.next, k, end)
        });
        undecided.next().filter(|_| within).map(|_| S::from_f64(middle))
    }

    /// Marks the functions that have crossed by the end of the step. Whether there is one.
    fn mark(&mut self, step: &Taken<S>) -> bool {
        let mut any = false;
        for k in 0..self.table.events.len() {
            let crossed = self.crossed(k, step);
            any |= crossed;
            if let Some(candidate) = self.candidate.get_mut(k) {
                *candidate = if crossed { S::ONE } else { S::ZERO };
            }
        }
        any
    }

    fn is_candidate(&self, k: usize) -> bool {
        self.candidate.get(k).is_some_and(|candidate| *candidate != S::ZERO)
    }

    /// The candidate that crosses first within the bracket, and where.
    fn first_crossing(&self, count: usize) -> (usize, f64) {
        let (low, high) = (self.bracket.0.real(), self.bracket.1.real());
        let mut first = (self.event, high);
        let mut found = false;
        for k in (0..self.table.events.len()).filter(|&k| self.is_candidate(k)) {
            let t = self.root(k, low, high, count);
            if !found || t < first.1 {
                (first, found) = ((k, t), true);
            }
        }
        first
    }

    /// Where a function crosses zero within the bracket, as far as its ends tell.
    fn root(&self, k: usize, low: f64, high: f64, count: usize) -> f64 {
        let ((g0, r0), (g1, r1)) = (self.low.of(k), self.high.of(k));
        let middle = 0.5 * (low + high);
        if count % 4 == 3 {
            return middle;
        }
        let inside = |t: f64| t > low && t < high;
        if self.entry(k).is_some_and(|entry| entry.has_rate) {
            // From the nearer end, unless the function turns round between it and zero.
            let side = self.side_of(k);
            let low_is_nearer = r0 * side < 0.0 && (g0.abs() < g1.abs() || r1 * side >= 0.0);
            let (t, g, rate) = if low_is_nearer { (low, g0, r0) } else { (high, g1, r1) };
            let newton = t - g / rate;
            if rate * side < 0.0 && inside(newton) {
                return newton;
            }
        }
        let secant = low - g0 * (high - low) / (g1 - g0);
        if inside(secant) { secant } else { middle }
    }

    /// A function that may cross zero and come back within the step, and where it turns round.
    fn turning(&self, step: &Taken<S>) -> Option<(usize, f64)> {
        let ends = (step.t.real(), step.end.real());
        (0..self.table.events.len()).find_map(|k| {
            let rated = self.entry(k)?.has_rate && self.counts(k, ends.0);
            let both = self.wants(k, self.side_of(k)) || self.wants(k, -self.side_of(k));
            let t = lowest(self.side_of(k), ends, self.now.of(k), self.next.of(k), 0.25)?;
            (rated && both).then_some((k, t))
        })
    }

    /// Value, rate and second derivative of a function, zero where they are nothing against their terms.
    fn beyond_nothing(&self, k: usize) -> [f64; 3] {
        let n = self.table.events.len();
        let mut place = k;
        [&*self.now.values, self.now.rates, self.curvatures].map(|values| {
            let value = values.get(k).map_or(0.0, |x| x.real());
            let size = self.sizes.get(place).map_or(0.0, |x| x.real());
            place += n;
            if value.abs() <= NOTHING * size { 0.0 } else { value }
        })
    }

    /// The side of a function that is zero with rate zero; none if what stops it should have acted already.
    fn curved_side(&self, k: usize, curvature: f64) -> f64 {
        let side = sign(curvature);
        let stops =
            self.entry(k).is_some_and(|entry| entry.conditions.0 < entry.conditions.1 || entry.adds_rows);
        if stops && !self.wants(k, side) { 0.0 } else { side }
    }

    /// The side of a function at a node: that of its rate where it is zero.
    fn side_at(&self, k: usize) -> f64 {
        let (g, rate) = self.now.of(k);
        let has_rate = self.entry(k).is_some_and(|entry| entry.has_rate);
        let [value, slope, curvature] = self.beyond_nothing(k);
        if has_rate && value == 0.0 && slope == 0.0 {
            return self.curved_side(k, curvature);
        }
        let rate = if has_rate { rate } else { 0.0 };
        let zero = if g.abs() <= 16.0 * S::EPSILON * (1.0 + rate.abs()) { 0.0 } else { g };
        sign(if zero == 0.0 { rate } else { zero })
    }

    /// Whether an event that another one has armed just now is beyond zero, and would never be seen to cross.
    fn is_late(&self, k: usize, t: f64) -> bool {
        let side = self.side_of(k);
        self.entry(k).is_some_and(|entry| {
            !entry.has_rate && entry.acts() && entry.direction != Direction::Both && !self.wants(k, side)
        }) && side != 0.0
            && self.was_armed.get(k).is_some_and(|armed| *armed == S::ZERO)
            && self.counts(k, t)
    }

    fn set_side(&mut self, k: usize, side: f64) {
        if let Some(to) = self.side.get_mut(k) {
            *to = S::from_f64(side);
        }
    }

    fn failed<T>(&self, t: S, event: usize, failure: EventFailure) -> Result<T, StepError> {
        Err(StepError::Event { t: t.real(), event, failure })
    }

    /// Sides at the start of the run.
    fn start(&mut self, t: S) -> Result<(), StepError> {
        self.started = Some(t.real());
        self.last.fill(S::from_f64(f64::NEG_INFINITY));
        self.interval.fill(S::from_f64(f64::INFINITY));
        for k in 0..self.table.events.len() {
            let side = self.side_at(k);
            self.set_side(k, side);
            let past = self.entry(k).is_some_and(|entry| {
                let jumps = entry.conditions.0 < entry.conditions.1 || entry.adds_rows;
                jumps && entry.direction != Direction::Both && !self.wants(k, side)
            });
            if past && side != 0.0 && self.counts(k, t.real()) {
                return self.failed(t, k, EventFailure::Past);
            }
        }
        Ok(())
    }

    /// Notes that an event happens, and refuses one that accumulates.
    fn note(&mut self, k: usize, t: S) -> Result<(), StepError> {
        self.count += 1;
        if self.count > MAX_EVENTS {
            return self.failed(t, k, EventFailure::TooMany);
        }
        let (Some(last), Some(interval)) = (self.last.get_mut(k), self.interval.get_mut(k)) else {
            return Ok(());
        };
        let (since, before) = ((t - *last).real(), interval.real());
        (*last, *interval) = (t, S::from_f64(since));
        let run = t.real() - self.started.unwrap_or(0.0);
        if since < before && since <= ACCUMULATED * run {
            return self.failed(t, k, EventFailure::Accumulates);
        }
        Ok(())
    }
}

fn sign(x: f64) -> f64 {
    if x > 0.0 {
        1.0
    } else if x < 0.0 {
        -1.0
    } else {
        0.0
    }
}

/// Where a function on the given side turns round between two instants, by the cubic through values and rates, if the cubic comes
/// nearer to zero there than `near` times its nearer end.
fn lowest(
    side: f64,
    (t0, t1): (f64, f64),
    (g0, r0): (f64, f64),
    (g1, r1): (f64, f64),
    near: f64,
) -> Option<f64> {
    let h = t1 - t0;
    let (g0, m0, g1, m1) = (side * g0, side * h * r0, side * g1, side * h * r1);
    if side == 0.0 || !(m0 < 0.0 && m1 > 0.0 && g0 > 0.0 && g1 > 0.0) {
        return None;
    }
    // p' = a x² + b x + c
    let (a, b, c) = (6.0 * (g0 - g1) + 3.0 * (m0 + m1), 6.0 * (g1 - g0) - 4.0 * m0 - 2.0 * m1, m0);
    // The root at which p' grows, in the form that is good for small a: c < 0.
    let root = sqrt((b * b - 4.0 * a * c).max(0.0));
    let x = if b > 0.0 { -2.0 * c / (b + root) } else { (root - b) / (2.0 * a) };
    if !(x > 0.0 && x < 1.0) {
        return None;
    }
    let y = 1.0 - x;
    let least = y * y * ((1.0 + 2.0 * x) * g0 + x * m0) + x * x * ((1.0 + 2.0 * y) * g1 - y * m1);
    (least < near * g0.min(g1)).then_some(t0 + x * h)
}

impl<W, E, H, R> Hooks<W> for Located<'_, W::S, E, H, R>
where
    W: Stepper,
    E: Driver<W>,
    H: Hooks<W>,
    R: FnMut(Occurrence<'_, W::S>) -> ControlFlow<()>,
{
    fn node(&mut self, run: &mut W, step: &Taken<W::S>, observed: bool) -> Result<Next, StepError> {
        let t = step.end;
        let first = self.started.is_none();
        self.own.set(!self.pending || t == self.planned);
        let resumes = core::mem::take(&mut self.resumes);
        if first || resumes {
            self.driver.evaluate(run, t, false, &mut self.now)?;
            self.driver.sides(run, t, self.curvatures, self.sizes)?;
        }
        if first {
            self.start(t)?;
            self.switch(run, t)?;
        }
        let mut next = self.inner.node(run, step, observed || self.pending)?;
        if first || resumes {
            return Ok(next);
        }
        if !self.pending {
            if self.driver.inputs_jump() {
                self.driver.evaluate(run, t, false, &mut self.now)?;
            } else {
                self.now.copy(&self.next);
            }
            for k in 0..self.table.events.len() {
                let (g, _) = self.now.of(k);
                let before = self.side_of(k);
                // Without a side it stays until it is something.
                let side = if before == 0.0 { sign(self.beyond_nothing(k)[0]) } else { sign(g) };
                // What stops a body must not let it through.
                let passes = before * side < 0.0
                    && self.wants(k, before)
                    && self.entry(k).is_some_and(|entry| entry.impact && entry.minimum_interval > 0.0)
                    && self.now.armed.get(k).is_some_and(|armed| armed.real() > 0.0);
                if passes && g.abs() > self.slope(k, step.t, t).1 {
                    return self.failed(t, k, EventFailure::Passes);
                }
                // Where it began without a side, it must not have crossed.
                if before == 0.0 && side != 0.0 && self.wants(k, -side) && self.counts(k, step.t.real()) {
                    return self.failed(t, k, EventFailure::AtRest);
                }
                // At its rounding, a function stays on its side.
                if side != 0.0 && g.abs() > self.slope(k, step.t, t).1 {
                    self.set_side(k, side);
                }
            }
            return Ok(next);
        }
        self.pending = false;
        for k in 0..self.table.events.len() {
            let counted = self.counts(k, t.real());
            if let Some(armed) = self.was_armed.get_mut(k) {
                *armed = if counted { W::S::ONE } else { W::S::ZERO };
            }
        }
        for k in (0..self.table.events.len()).filter(|&k| k != self.event) {
            if self.is_candidate(k) {
                self.driver.coincides(run, t, k, self.event)?;
            }
        }
        let mut acted = None;
        for k in 0..self.table.events.len() {
            if !self.is_candidate(k) {
                continue;
            }
            self.note(k, t)?;
            if self.entry(k).is_some_and(|entry| entry.stops && entry.has_rate) {
                self.check_closing(run, t, k, acted)?;
            }
            self.driver.act(run, t, k)?;
            acted = Some(k);
            let [impulses, row_impulses, t_rho] = self.driver.acted();
            if (self.record)(Occurrence { event: k, t, impulses, row_impulses, t_rho, steps: self.made })
                .is_break()
                || self.entry(k).is_some_and(|entry| entry.stop)
            {
                next = Next::Stop;
            }
        }
        self.driver.restart(run, t)?;
        self.driver.evaluate(run, t, false, &mut self.now)?;
        self.driver.sides(run, t, self.curvatures, self.sizes)?;
        for k in 0..self.table.events.len() {
            let (before, (_, rate)) = (self.side_of(k), self.now.of(k));
            let Some(entry) = self.entry(k) else { continue };
            let side = match (self.is_candidate(k), entry.has_rate) {
                // Where its new branch leads back, neither holds.
                (true, has_rate) if entry.switch.is_some() => {
                    let [_, slope, _] = self.beyond_nothing(k);
                    if has_rate && slope * before > 0.0 {
                        return self.failed(t, k, EventFailure::Slides);
                    }
                    -before
                }
                (false, _) => {
                    let side = self.side_at(k);
                    // A contact that is closed, and that the event of this time opens or closes further.
                    let [value, ..] = self.beyond_nothing(k);
                    let pressed = entry.stops && entry.has_rate && value == 0.0 && before != side;
                    if pressed && side != 0.0 && self.wants(k, -side) && self.counts(k, t.real()) {
                        return self.failed(t, k, EventFailure::Together { other: self.event });
                    }
                    side
                }
                (true, true) => {
                    let [_, slope, curvature] = self.beyond_nothing(k);
                    // Another event of the same time has closed the gap again.
                    if entry.stops && slope * before < 0.0 {
                        let other = acted.filter(|&other| other != k).unwrap_or(self.event);
                        return self.failed(t, k, EventFailure::Together { other });
                    }
                    if slope == 0.0 { self.curved_side(k, curvature) } else { sign(rate) }
                }
                // It goes on as it came, unless its event has changed velocities.
                (true, false) if entry.conditions.0 == entry.conditions.1 => -before,
                (true, false) => sign(self.now.of(k).0),
            };
            self.set_side(k, side);
            if !self.is_candidate(k) && self.is_late(k, t.real()) {
                return self.failed(t, k, EventFailure::Late);
            }
        }
        self.switch(run, t)?;
        self.own.set(false);
        let after = self.inner.node(run, step, true)?;
        Ok(if next == Next::Stop || after == Next::Stop { Next::Stop } else { Next::Restart })
    }

    fn before(&mut self, run: &mut W, planned: &Planned<W::S>) -> Result<(), StepError> {
        self.planned = planned.end;
        self.phase = Phase::Free;
        self.made = 0;
        self.tilt = Tilt::None;
        run.save(self.saved)?;
        self.driver.begin(run, planned)?;
        self.inner.before(run, planned)
    }

    fn after(&mut self, run: &mut W, step: &Taken<W::S>) -> Result<Verdict<W::S>, StepError> {
        self.made += 1;
        self.driver.evaluate(run, step.end, true, &mut self.next)?;
        let phase = self.phase;
        if phase == Phase::Free
            && let Some(middle) = self.undecided(step)
        {
            return self.again(run, Phase::Free, middle);
        }
        match phase {
            Phase::Standing => self.stands(run, step),
            Phase::Located(pass) => self.ends(run, step, pass),
            Phase::Free if self.mark(step) => {
                self.low.copy(&self.now);
                self.bracket = (step.t, step.end);
                self.shrink(run, step, 0)
            }
            Phase::Free => match self.turning(step) {
                None => self.stands(run, step),
                Some((k, t)) => {
                    self.low.copy(&self.now);
                    self.high.copy(&self.next);
                    self.bracket = (step.t, step.end);
                    self.again(run, Phase::Probing(k, 0, step.end), W::S::from_f64(t))
                }
            },
            Phase::Probing(k, count, end) => self.probe(run, step, k, count, end),
            Phase::Bracketing(count) => {
                if self.mark(step) {
                    self.shrink(run, step, count)
                } else {
                    self.low.copy(&self.next);
                    self.bracket.0 = step.end;
                    // The candidates of the upper end are those of the bracket.
                    self.mark_high(step);
                    self.narrow(run, step, count)
                }
            }
        }
    }

    fn end(&mut self, run: &mut W, t: W::S) -> Result<(), StepError> {
        // Steps of a simulation go on.
        if !self.goes_on {
            for (k, last) in self.last.iter().enumerate() {
                if last.real() == f64::NEG_INFINITY && self.entry(k).is_some_and(|entry| entry.judged) {
                    return self.failed(t, k, EventFailure::Missing);
                }
            }
        }
        self.inner.end(run, t)
    }
}

impl<'a, S: Scalar, E, H, R> Located<'a, S, E, H, R> {
    /// Switches are the sides of their functions, which may have jumped.
    fn switch<W>(&mut self, run: &mut W, t: S) -> Result<(), StepError>
    where
        W: Stepper<S = S>,
        E: Driver<W>,
    {
        let mut changed = false;
        for k in 0..self.table.events.len() {
            let Some(input) = self.entry(k).and_then(|entry| entry.switch) else { continue };
            let side = S::from_f64(self.side_of(k));
            if self.driver.latch(input, side) {
                changed = true;
                self.driver.switched(t, k, side)?;
            }
        }
        if !changed {
            return Ok(());
        }
        self.driver.restart(run, t)?;
        self.driver.evaluate(run, t, false, &mut self.now)?;
        self.driver.sides(run, t, self.curvatures, self.sizes)?;
        for k in 0..self.table.events.len() {
            let side = self.side_at(k);
            if self.entry(k).is_some_and(|entry| entry.switch.is_some()) {
                if side * self.side_of(k) < 0.0 {
                    return self.failed(t, k, EventFailure::Slides);
                }
            } else {
                self.set_side(k, side);
            }
        }
        Ok(())
    }

    /// Refuses an impact on a gap that does not close: where the function moves back at its rounding, or since another event has acted.
    fn check_closing<W>(&mut self, run: &mut W, t: S, k: usize, acted: Option<usize>) -> Result<(), StepError>
    where
        W: Stepper<S = S>,
        E: Driver<W>,
    {
        let rate = match acted {
            None => self.next.of(k).1,
            Some(_) => {
                self.driver.evaluate(run, t, false, &mut self.high)?;
                self.high.of(k).1
            }
        };
        if rate * self.side_of(k) < 0.0 {
            return Ok(());
        }
        self.failed(t, k, acted.map_or(EventFailure::AtRest, |other| EventFailure::Together { other }))
    }

    /// Makes the step again to another end.
    fn again<W: Stepper<S = S>>(
        &mut self,
        run: &mut W,
        phase: Phase<S>,
        end: S,
    ) -> Result<Verdict<S>, StepError> {
        self.phase = phase;
        run.restore(self.saved)?;
        Ok(Verdict::Shorten(end))
    }

    /// Candidates are the functions that have crossed by the upper end of the bracket.
    fn mark_high(&mut self, step: &Taken<S>) {
        core::mem::swap(&mut self.next, &mut self.high);
        let high = Taken { end: self.bracket.1, ..*step };
        self.mark(&high);
        core::mem::swap(&mut self.next, &mut self.high);
    }
}

impl<'a, S: Scalar, E, H, R> Located<'a, S, E, H, R> {
    /// The step stands and ends in no event.
    fn stands<W>(&mut self, run: &mut W, step: &Taken<S>) -> Result<Verdict<S>, StepError>
    where
        W: Stepper<S = S>,
        E: Driver<W>,
        H: Hooks<W>,
    {
        if self.driver.ended(run, step.end == self.planned)? {
            return self.again(run, Phase::Standing, step.end);
        }
        self.own.set(true);
        self.inner.after(run, step)
    }

    /// The step ends in the event.
    fn ends<W>(&mut self, run: &mut W, step: &Taken<S>, pass: usize) -> Result<Verdict<S>, StepError>
    where
        W: Stepper<S = S>,
        E: Driver<W>,
        H: Hooks<W>,
    {
        if !S::REAL
            && pass == 0
            && let Some(end) = self.tilted(step)?
        {
            return self.again(run, Phase::Located(0), end);
        }
        if self.driver.located(run, step.end, self.event, pass)? {
            return self.again(run, Phase::Located(pass + 1), step.end);
        }
        self.pending = true;
        self.own.set(true);
        self.inner.after(run, step)
    }

    /// In complex numbers: where the step must end so that the function of the event is zero with its imaginary part; none once it does.
    fn tilted(&mut self, step: &Taken<S>) -> Result<Option<S>, StepError> {
        let imaginary = |x: S| x - S::from_f64(x.real());
        let g = imaginary(self.next.values.get(self.event).copied().unwrap_or(S::ZERO));
        match self.tilt {
            Tilt::None if g == S::ZERO => Ok(None),
            Tilt::None => {
                let (slope, _) = self.slope(self.event, step.t, step.end);
                if slope == 0.0 {
                    return self.failed(step.end, self.event, EventFailure::Tangential);
                }
                let by = -g / S::from_f64(slope);
                self.tilt = Tilt::Tried(g, by);
                Ok(Some(step.end + by))
            }
            // g(by) = first + (g − first)/tried by
            Tilt::Tried(first, tried) => {
                self.tilt = Tilt::Done;
                let by = -(first * tried) / (g - first);
                Ok(Some(step.end - tried + by))
            }
            Tilt::Done => Ok(None),
        }
    }

    /// The step ends beyond the event: it is the upper end of the bracket.
    fn shrink<W>(&mut self, run: &mut W, step: &Taken<S>, count: usize) -> Result<Verdict<S>, StepError>
    where
        W: Stepper<S = S>,
        E: Driver<W>,
        H: Hooks<W>,
    {
        self.high.copy(&self.next);
        self.bracket.1 = step.end;
        self.narrow(run, step, count)
    }

    /// The step was made to one end of the bracket: it ends in the event, or is made again to a point within.
    fn narrow<W>(&mut self, run: &mut W, step: &Taken<S>, count: usize) -> Result<Verdict<S>, StepError>
    where
        W: Stepper<S = S>,
        E: Driver<W>,
        H: Hooks<W>,
    {
        let (event, t) = self.first_crossing(count);
        self.event = event;
        let (g, _) = self.next.of(event);
        let (slope, rounding) = self.slope(event, step.t, step.end);
        // Where rounding of the function is more than that of time tells, more steps do not help.
        let patience = if count < 8 { 1.0 } else { 256.0 };
        if g.abs() <= patience * rounding && slope * self.side_of(event) < 0.0 {
            // Of the other candidates those that are at their rounding, too, happen at the same time.
            for k in (0..self.table.events.len()).filter(|&k| k != event) {
                let (g, rounding) = (self.next.of(k).0, self.slope(k, step.t, step.end).1);
                if g.abs() > 4.0 * patience * rounding
                    && let Some(candidate) = self.candidate.get_mut(k)
                {
                    *candidate = S::ZERO;
                }
            }
            return self.ends(run, step, 0);
        }
        let (low, high) = (self.bracket.0.real(), self.bracket.1.real());
        let finest = 2.0 * S::EPSILON * low.abs().max(high.abs());
        if high - low <= finest || count >= MAX_STEPS - MAX_PROBES - 4 {
            return match step.end == self.bracket.1 {
                true => self.ends(run, step, 0),
                false => self.again(run, Phase::Located(0), self.bracket.1),
            };
        }
        self.again(run, Phase::Bracketing(count + 1), S::from_f64(t))
    }

    /// The step was made to where a function turns round.
    fn probe<W>(
        &mut self,
        run: &mut W,
        step: &Taken<S>,
        k: usize,
        count: usize,
        end: S,
    ) -> Result<Verdict<S>, StepError>
    where
        W: Stepper<S = S>,
        E: Driver<W>,
        H: Hooks<W>,
    {
        if self.mark(step) {
            self.low.copy(&self.now);
            self.bracket = (step.t, step.end);
            return self.shrink(run, step, 0);
        }
        let (side, (g, rate)) = (self.side_of(k), self.next.of(k));
        if g * side < 0.0 {
            // It has crossed in the direction that does not count, and the way back does: the step ends here.
            return self.stands(run, step);
        }
        if count + 1 < MAX_PROBES {
            let (low, high, here) = (self.low.of(k), self.high.of(k), (g, rate));
            let (start, t) = (self.bracket.0.real(), step.end.real());
            let found = match rate * side < 0.0 {
                true => lowest(side, (t, self.bracket.1.real()), here, high, 0.0).inspect(|_| {
                    self.low.copy(&self.next);
                    self.bracket.0 = step.end;
                }),
                false => lowest(side, (start, t), low, here, 0.0).inspect(|_| {
                    self.high.copy(&self.next);
                    self.bracket.1 = step.end;
                }),
            };
            if let Some(t) = found {
                return self.again(run, Phase::Probing(k, count + 1, end), S::from_f64(t));
            }
        }
        self.again(run, Phase::Standing, end)
    }
}
