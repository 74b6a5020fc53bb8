//! The times at which steps end.
//!
//! Steps of equal size end at anchor + k h, computed and not accumulated, as those of [`Fixed`](crate::Fixed). The end of a run, or the time
//! that it is to reach, is met exactly: by a whole step where it is one up to rounding, otherwise by a shorter one, after which
//! times count from there.

use super::Settings;
use crate::error::StepError;
use crate::integrator::{Memory, Output, positive};
use crate::scalar::floor;

/// How far a time may be from a whole number of steps, in units of ε times the latest time, as in [`Fixed`](crate::Fixed).
const ROUNDING: f64 = 8.0;

/// How close to the end a result of dense output is the end, in units of ε times the latest time, as in [`Adaptive`](crate::Adaptive).
const LANDED: f64 = 16.0;

/// Where a run is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clock {
    /// Present time, and what step control carries along.
    pub(super) now: Memory<f64>,
    /// Where steps are counted from.
    anchor: f64,
    /// Steps since then.
    steps: f64,
    /// Nodes since the begin.
    nodes: usize,
}

/// Where a step is to go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Target {
    /// Size of a step.
    pub h: f64,
    /// The time that is met exactly if it is met at all.
    pub time: f64,
    /// Whether no step may end beyond it.
    pub last: bool,
    /// The first time within the step at which a state is wanted; infinite if none is.
    pub result: f64,
}

impl Clock {
    /// At the begin of a run.
    pub const fn new(t: f64) -> Self {
        Self { now: Memory::new(t), anchor: t, steps: 0.0, nodes: 0 }
    }

    /// Present time.
    pub const fn t(&self) -> f64 {
        self.now.t
    }

    /// At another time, within the last step.
    #[must_use]
    pub const fn at(self, t: f64) -> Self {
        Self { now: Memory { t, ..self.now }, ..self }
    }

    /// Nodes since the begin: steps, those apart that events begin.
    pub(super) const fn nodes(&self) -> usize {
        self.nodes
    }

    /// At the end of a step of controlled size.
    pub(super) fn passed(&mut self, now: Memory<f64>) {
        self.now = now;
        self.nodes += 1;
    }

    /// Size of the next step of equal ones, and the clock at its end.
    pub(super) fn next(&self, target: &Target) -> Result<(f64, Self), StepError> {
        let Target { h, time, last, .. } = *target;
        let (steps, nodes) = (self.steps + 1.0, self.nodes + 1);
        let t = self.anchor + steps * h;
        if !(t > self.now.t && t.is_finite()) {
            let what = "the step must be positive, and large enough for time to advance by it";
            return Err(StepError::Setting { what, value: h });
        }
        let rounding = ROUNDING * f64::EPSILON * self.anchor.abs().max(time.abs());
        if (t - time).abs() <= rounding {
            Ok((h, Self { now: Memory { t: time, ..self.now }, steps, nodes, ..*self }))
        } else if last && t > time {
            Ok((
                time - self.now.t,
                Self { now: Memory { t: time, ..self.now }, anchor: time, steps: 0.0, nodes },
            ))
        } else {
            Ok((h, Self { now: Memory { t, ..self.now }, steps, nodes, ..*self }))
        }
    }
}

/// When a run gives results: at every so manieth step, or by dense output at equal intervals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Results {
    begin: f64,
    end: f64,
    /// Time between results of dense output, if that is how they are made.
    interval: Option<f64>,
    /// Steps from one result to the next, otherwise.
    stride: usize,
    /// The next result of dense output is this many intervals after the begin.
    number: f64,
}

impl Results {
    /// What the settings ask for; `is_dense`: the method knows states within its steps.
    pub fn new(settings: &Settings, is_dense: bool) -> Result<Self, StepError> {
        let Settings { begin, end, step, output } = *settings;
        let mut results = Self { begin, end, interval: None, stride: 1, number: 0.0 };
        match output {
            Some(interval) if is_dense => {
                let interval = positive("the output interval must be positive and finite", interval)?;
                (results.interval, results.stride) = (Some(interval), usize::MAX);
            }
            // A wrong step is refused by the first one.
            Some(interval) if step > 0.0 => results.stride = Output::Every(interval).stride(step)?,
            _ => {}
        }
        Ok(results)
    }

    /// The next result within the step from `begun` to `ended`, if there is one.
    pub fn within(&mut self, begun: f64, ended: f64) -> Option<f64> {
        let t = self.next(begun);
        if t > ended {
            return None;
        }
        self.number += 1.0;
        Some(t)
    }

    /// The next result of dense output after `begun`; infinite if there is none.
    pub fn next(&mut self, begun: f64) -> f64 {
        let Some(interval) = self.interval else { return f64::INFINITY };
        self.number = self.number.max(floor((begun - self.begin) / interval));
        let mut t = self.begin + self.number * interval;
        if t <= begun {
            self.number += 1.0;
            t = self.begin + self.number * interval;
        }
        // The end is a node, not a result within a step, up to the rounding of both.
        let end = self.end - LANDED * f64::EPSILON * self.begin.abs().max(self.end.abs());
        if t >= end { f64::INFINITY } else { t }
    }

    /// Whether the end of a step is a result.
    pub fn at_node(&self, t: f64, steps: usize) -> bool {
        steps.is_multiple_of(self.stride) || t >= self.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_met_exactly() -> Result<(), StepError> {
        let mut clock = Clock::new(0.0);
        // 0.3 is no sum of three times 0.1, and 0.35 is no multiple.
        for (h, time, expected) in
            [(0.1, 0.3, [0.1, 0.2, 0.3]), (0.1, 0.35, [0.35, 0.45, 0.55]), (0.1, 0.6, [0.6, 0.7, 0.8])]
        {
            for (number, expected) in expected.into_iter().enumerate() {
                let last = number == 0;
                let (size, next) = clock.next(&Target { h, time, last, result: f64::INFINITY })?;
                assert!((next.now.t - clock.now.t - size).abs() < 1e-15);
                assert!(
                    (next.now.t - expected).abs() < 1e-15
                        && (number < 2 || expected != time || next.now.t == time)
                );
                clock = next;
            }
        }
        Ok(())
    }

    #[test]
    fn a_step_that_moves_nothing_is_refused() {
        for h in [0.0, -1.0, f64::NAN, 1e-20] {
            let target = Target { h, time: 2.0, last: false, result: f64::INFINITY };
            assert!(Clock::new(1.0).next(&target).is_err());
        }
    }
}
