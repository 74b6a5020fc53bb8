//! Inputs: how they are supplied, and how they are held over a step.
//!
//! The holding rule is part of the discrete map. Over a step from t0 to t1 = t0 + h an input is
//!
//! | hold | value at t0 + c h |
//! |---|---|
//! | [`Hold::Zero`] | u(t0) |
//! | [`Hold::Linear`] | u(t0) + c (u(t1) − u(t0)) |
//! | [`Hold::Signal`] | u(t0 + c h) |
//!
//! With step-size control the steps are the integrator's: an input with corners in time says where they are, [`Inputs::next_stop`].

use crate::scalar::Scalar;

/// How an input is held over a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Hold {
    /// At its value at the start of the step.
    #[default]
    Zero,
    /// On the straight line between its values at start and end of the step.
    Linear,
    /// Not held: evaluated at every stage.
    Signal,
}

/// The source of a system's inputs.
pub trait Inputs<S> {
    /// Writes all inputs at time `t`.
    ///
    /// It is a function of time: an integrator may ask again, and go back when a step is rejected.
    fn at(&mut self, t: S, u: &mut [S]);

    /// The first stop after `from` and not after `to`: where something that depends on time alone has a corner. Steps of
    /// controlled size end there instead of stepping over it.
    #[inline(always)]
    fn next_stop(&mut self, _from: f64, _to: f64) -> Option<Stop> {
        None
    }
}

/// A corner in time. A step ends at `before`, if that is still to come; the next one ends at `after`. Where both are the same, steps
/// end on the corner: enough for what is continuous. Otherwise the corner lies between two times that are apart by rounding,
/// and every other step is on one side of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stop {
    /// The last time before the corner.
    pub before: f64,
    /// The first time after it.
    pub after: f64,
}

impl Stop {
    /// The one that comes first.
    #[inline(always)]
    pub fn first(a: Option<Stop>, b: Option<Stop>) -> Option<Stop> {
        match (a, b) {
            (Some(a), Some(b)) => Some(if b.before < a.before { b } else { a }),
            (a, b) => a.or(b),
        }
    }
}

/// Inputs of a system that has none. A system that has some gets NaN from it, so that its first step fails
/// instead of running with inputs that nobody chose; `Constant(&[])` makes them zero.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoInputs;

impl<S: Scalar> Inputs<S> for NoInputs {
    #[inline(always)]
    fn at(&mut self, _: S, u: &mut [S]) {
        u.fill(S::from_f64(f64::NAN));
    }
}

/// Inputs that do not change; missing ones are zero.
#[derive(Clone, Copy, Debug)]
pub struct Constant<'a, S>(pub &'a [S]);

impl<S: Scalar> Inputs<S> for Constant<'_, S> {
    #[inline(always)]
    fn at(&mut self, _: S, u: &mut [S]) {
        let values = self.0.iter().copied().chain(core::iter::repeat(S::ZERO));
        for (u, value) in u.iter_mut().zip(values) {
            *u = value;
        }
    }
}

/// Inputs by a function; made by [`from_fn`].
#[derive(Clone, Copy, Debug)]
pub struct FromFn<F>(F);

/// Inputs by a function of time that writes them all.
#[inline(always)]
pub fn from_fn<S, F: FnMut(S, &mut [S])>(f: F) -> FromFn<F> {
    FromFn(f)
}

impl<S, F: FnMut(S, &mut [S])> Inputs<S> for FromFn<F> {
    #[inline(always)]
    fn at(&mut self, t: S, u: &mut [S]) {
        (self.0)(t, u);
    }
}

/// The inputs of one step by the holding rule.
pub(crate) struct Held<'a, S, I> {
    source: &'a mut I,
    holds: &'a [Hold],
    start: &'a mut [S],
    end: &'a mut [S],
    now: &'a mut [S],
}

impl<'a, S: Scalar, I: Inputs<S>> Held<'a, S, I> {
    /// Three slices of nu values each.
    #[inline(always)]
    pub(crate) fn new(source: &'a mut I, holds: &'a [Hold], [start, end, now]: [&'a mut [S]; 3]) -> Self {
        Self { source, holds, start, end, now }
    }

    #[inline(always)]
    fn any(&self, hold: Hold) -> bool {
        let holds = self.holds.iter().chain(core::iter::repeat(&Hold::Zero));
        self.now.iter().zip(holds).any(|(_, &held)| held == hold)
    }

    /// Whether inputs may jump where one step ends and the next begins.
    #[inline(always)]
    pub(crate) fn jumps_between_steps(&self) -> bool {
        self.any(Hold::Zero)
    }

    /// As [`Inputs::next_stop`].
    #[inline(always)]
    pub(crate) fn next_stop(&mut self, from: f64, to: f64) -> Option<Stop> {
        self.source.next_stop(from, to)
    }

    /// Samples what is held over the step from `t0` to `t1`.
    #[inline(always)]
    pub(crate) fn begin_step(&mut self, t0: S, t1: S) {
        if !self.start.is_empty() {
            self.source.at(t0, self.start);
        }
        if self.any(Hold::Linear) {
            self.source.at(t1, self.end);
        }
    }

    /// Inputs at time `t`, which is the part `c` of the step.
    #[inline(always)]
    pub(crate) fn during_step(&mut self, t: S, c: S) -> &[S] {
        if self.any(Hold::Signal) {
            self.source.at(t, self.now);
        }
        let holds = self.holds.iter().chain(core::iter::repeat(&Hold::Zero));
        let ends = self.start.iter().zip(self.end.iter());
        for ((now, (&start, &end)), hold) in self.now.iter_mut().zip(ends).zip(holds) {
            match hold {
                Hold::Zero => *now = start,
                // The end exactly, so that it equals the start of the next step.
                Hold::Linear => *now = if c == S::ONE { end } else { start + c * (end - start) },
                Hold::Signal => {}
            }
        }
        self.now
    }

    /// Inputs at a node, where the next step begins.
    #[inline(always)]
    pub(crate) fn at_node(&mut self, t: S) -> &[S] {
        if !self.now.is_empty() {
            self.source.at(t, self.now);
        }
        self.now
    }
}
