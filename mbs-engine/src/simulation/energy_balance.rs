//! How well a run keeps the balance of energy: T + V − (T + V at the start) = work of the forces without a potential, of
//! the constraints that prescribe a motion, and of events.
//!
//! Input: samples of energy and power, in the order of time. Output: the largest error of the balance. The work is
//! integrated over the samples, by the parabola through the last three of them, so it is as good as they are
//! dense; where no force does work it is exactly zero and the error is the drift of the integrator alone. Of the first interval, and of
//! the first after a corner in time, the parabola is known one sample later: its trapezium is not judged before.

/// The balance so far.
#[derive(Clone, Debug, Default)]
pub struct EnergyBalance {
    first: Option<f64>,
    /// Time, power of the forces, power of the drives.
    samples: Vec<(f64, [f64; 2])>,
    held: Vec<f64>,
    jumps: bool,
    /// Work of the forces without a potential.
    pub work: f64,
    /// Work of the constraints that prescribe a motion.
    pub work_of_drives: f64,
    /// What events have added.
    pub at_events: f64,
    /// Whether the last interval was integrated by its trapezium, and the error of the balance with it.
    open: Option<f64>,
    total: f64,
    /// Change of the total energy.
    pub change: f64,
    /// Largest kinetic energy.
    pub largest_kinetic: f64,
    /// Largest energy of either kind: its rounding is no drift.
    largest: f64,
    largest_error: f64,
    /// Whether any force without a potential had power.
    pub driven: bool,
    /// Whether any constraint had.
    pub prescribed: bool,
}

impl EnergyBalance {
    /// Takes a sample. `held` are the inputs that are constant over a step: where they jump, power does too, and
    /// the work between samples is not known well enough for a balance.
    pub fn sample(
        &mut self,
        t: f64,
        [kinetic, potential, power]: [f64; 3],
        drives: f64,
        held: impl Iterator<Item = f64>,
    ) {
        let held: Vec<f64> = held.collect();
        let total = kinetic + potential;
        let first = *self.first.get_or_insert(total);
        self.jumps |= !self.samples.is_empty() && self.held != held;
        self.held = held;
        self.driven |= power != 0.0;
        self.prescribed |= drives != 0.0;
        let parts = [(self.driven, power), (self.prescribed, drives)];
        let was_open = self.open.is_some();
        let mut open = false;
        for ((k, (works, p)), work) in
            parts.into_iter().enumerate().zip([&mut self.work, &mut self.work_of_drives])
        {
            if !works {
                continue;
            }
            match self.samples[..] {
                [.., (t0, p0), (t1, p1)] => {
                    let (times, powers) = ([t0, t1, t], [p0[k], p1[k], p]);
                    *work += 0.5 * (t - t1) * (p1[k] + p);
                    match corrections(times, powers) {
                        Some([first, last]) => *work += last + if was_open { first } else { 0.0 },
                        None => open = true,
                    }
                }
                [(t1, p1)] => {
                    *work += 0.5 * (t - t1) * (p1[k] + p);
                    open = true;
                }
                [] => {}
            }
        }
        if self.samples.len() == 2 {
            self.samples.remove(0);
        }
        self.samples.push((t, [power, drives]));
        self.total = total;
        self.change = total - first;
        self.largest_kinetic = self.largest_kinetic.max(kinetic);
        self.largest = self.largest.max(kinetic).max(potential.abs());
        let error = (self.change - self.work - self.work_of_drives - self.at_events).abs();
        self.open = open.then_some(error);
        if !open {
            self.largest_error = self.largest_error.max(error);
        }
    }

    /// Takes a sample right after an event, at the time of the last one.
    pub fn sample_after_event(
        &mut self,
        t: f64,
        [kinetic, potential, power]: [f64; 3],
        drives: f64,
        held: impl Iterator<Item = f64>,
    ) {
        let total = kinetic + potential;
        self.at_events += total - self.total;
        self.total = total;
        // Power jumps with the event: no parabola goes through it.
        self.held = held.collect();
        self.samples = vec![(t, [power, drives])];
        self.open = None;
        self.change = total - self.first.unwrap_or(total);
        self.largest_kinetic = self.largest_kinetic.max(kinetic);
        self.largest = self.largest.max(kinetic).max(potential.abs());
    }

    /// The largest error of the balance, J; none where it cannot be known.
    pub fn error(&self) -> Option<f64> {
        (self.first.is_some() && !((self.driven || self.prescribed) && self.jumps))
            .then_some(self.open.map_or(self.largest_error, |error| error.max(self.largest_error)))
    }

    /// The error over the largest kinetic energy where no force has power, if it is so large that the motion is not that of the model: a
    /// twentieth, and not a rounding.
    pub fn large_drift(&self) -> Option<f64> {
        let told = |error: f64| error > 0.05 * self.largest_kinetic && error > 1e-6 * self.largest;
        let drift = self.error().filter(|&error| !self.driven && !self.prescribed && told(error));
        drift.and(self.relative_error())
    }

    /// The same, relative to the largest kinetic energy; none where nothing moves.
    pub fn relative_error(&self) -> Option<f64> {
        self.error().filter(|_| self.largest_kinetic > 0.0).map(|error| error / self.largest_kinetic)
    }
}

/// How far beyond two samples their parabola says something, in units of their distance. Around a corner in time, samples are apart by
/// rounding; steps grow by a factor of ten at most.
const EXTRAPOLATED: f64 = 20.0;

/// What the parabola through three points adds to the trapezia of both intervals; none where it says nothing.
fn corrections([t0, t1, t2]: [f64; 3], [p0, p1, p2]: [f64; 3]) -> Option<[f64; 2]> {
    let (g, h) = (t1 - t0, t2 - t1);
    if h > EXTRAPOLATED * g || g > EXTRAPOLATED * h {
        return None;
    }
    // Second divided difference times −h³/6.
    let curvature = ((p2 - p1) / h - (p1 - p0) / g) / (g + h);
    let correction = |h: f64| -curvature * h * h * h / 6.0;
    Some([correction(g), correction(h)]).filter(|both| both.iter().all(|x| x.is_finite()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_exact_for_parabolas_and_drift_is_seen() {
        // P = t², so the work after t is t³/3.
        let mut balance = EnergyBalance::default();
        let times: Vec<f64> = (0..=100).map(|i| 0.02 * f64::from(i) + 0.001 * f64::from(i % 3)).collect();
        for &t in &times {
            balance.sample(t, [1.0, t * t * t / 3.0, t * t], 0.0, [].into_iter());
        }
        let end: f64 = times[100];
        assert!((balance.work - end.powi(3) / 3.0).abs() < 1e-13);
        assert!(balance.relative_error().is_some_and(|error| error < 1e-13));
        assert!(balance.driven && !balance.prescribed);

        // The same by a drive.
        let mut driven = EnergyBalance::default();
        for &t in &times {
            driven.sample(t, [1.0, t * t * t / 3.0, 0.0], t * t, [].into_iter());
        }
        assert_eq!((driven.work, driven.work_of_drives), (0.0, balance.work));
        assert_eq!(driven.relative_error(), balance.relative_error());

        let mut drifting = EnergyBalance::default();
        drifting.sample(0.0, [2.0, 0.0, 0.0], 0.0, [].into_iter());
        drifting.sample(1.0, [1.0, 1.5, 0.0], 0.0, [].into_iter());
        assert_eq!(drifting.relative_error(), Some(0.25));
        assert_eq!(drifting.large_drift(), Some(0.25));
    }

    #[test]
    fn no_balance_where_held_inputs_jump() {
        let mut balance = EnergyBalance::default();
        balance.sample(0.0, [1.0, 0.0, 1.0], 0.0, [1.0].into_iter());
        balance.sample(1.0, [1.0, 0.0, 2.0], 0.0, [2.0].into_iter());
        assert_eq!(balance.error(), None);
    }
}
