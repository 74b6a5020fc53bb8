//! The one loop over the steps of a run: explicit and implicit, of fixed and of controlled size, with derivatives and without.
//!
//! | part | what it is | examples |
//! |---|---|---|
//! | [`Stepper`] | a method with the state it moves, its inputs and its scratch | Runge–Kutta over rates; an implicit formulation; the same with derivatives |
//! | [`Plan`] | where the next step may end | equal steps; the end of the span for step control |
//! | [`Hooks`] | what happens around steps | output, quadrature, records and checkpoints, events, interrupts |
//!
//! In every round the hooks see a node, the plan gives a step, the hooks may keep what they need to go back, the step is made, and the
//! hooks accept it, shorten it or end the run inside it. Everything is dispatched statically; nothing is allocated.
//!
//! The state of a stepper can be saved to and restored from a slice of the caller; a step made again from a restored state has the
//! same bits. So a backward sweep saves checkpoints in [`Hooks::before`] and drives a part of the plan again ([`Nodes::part`]
//! (super::Nodes::part)), and an event restores in [`Hooks::after`], asks for a shorter step, and changes the state at the node that it ends in.

use super::{Statistics, StepStatistics};
use crate::error::StepError;
use crate::scalar::Scalar;

/// A step to be made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Planned<S> {
    /// Time at its start.
    pub(crate) t: S,
    /// Its size; step control may take less.
    pub(crate) h: S,
    /// Time at its end, which is not always t + h to the last bit.
    pub(crate) end: S,
    /// Whether its end is to be observed.
    pub(crate) observed: bool,
}

/// A step that was made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Taken<S> {
    /// Time at its start.
    pub(crate) t: S,
    /// Its size.
    pub(crate) h: S,
    /// Time at its end.
    pub(crate) end: S,
    /// What it took.
    pub(crate) statistics: StepStatistics,
}

/// A method with the state it moves.
pub(crate) trait Stepper {
    /// Its scalar.
    type S: Scalar;

    /// Makes a step. After an error the state is as before.
    fn step(&mut self, planned: &Planned<Self::S>) -> Result<Taken<Self::S>, StepError>;

    /// Values that [`Stepper::save`] writes.
    fn saved_len(&self) -> usize;

    /// Writes all that the next step depends on.
    fn save(&self, to: &mut [Self::S]) -> Result<(), StepError>;

    /// Reads it back.
    fn restore(&mut self, from: &[Self::S]) -> Result<(), StepError>;

    /// Evaluations that hooks have asked for since the last step, of dense output; zero afterwards.
    #[inline(always)]
    fn take_evaluations(&mut self) -> usize {
        0
    }

    /// Forgets what it knows of the state's rate: a hook has changed the state.
    #[inline(always)]
    fn restart(&mut self) {}
}

/// Where steps may end.
pub(crate) trait Plan<S> {
    /// Time at the start of the run.
    fn start(&self) -> S;

    /// The step from `t`; none at the end.
    fn next(&mut self, t: S, statistics: &Statistics) -> Result<Option<Planned<S>>, StepError>;

    /// Whether the node at `t`, where a step has ended, is observed.
    fn observed(&self, t: S) -> bool;
}

/// What becomes of a step that was made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Verdict<S> {
    /// It stands.
    Accept,
    /// It is made again to an earlier end; the hook has restored the state.
    Shorten(S),
    /// The run ends inside it, at this time; the hook has set the state.
    Stop(S),
}

/// How a run goes on from a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// With the next step.
    Continue,
    /// With the next step, from a state that the hook has changed.
    Restart,
    /// It ends here.
    Stop,
}

/// What happens around the steps of a run.
pub(crate) trait Hooks<W: Stepper> {
    /// At a node: the start, and the end of each accepted step, which `step` is. At the start it has no size.
    fn node(&mut self, run: &mut W, step: &Taken<W::S>, observed: bool) -> Result<Next, StepError>;

    /// Before a step.
    #[inline(always)]
    fn before(&mut self, _run: &mut W, _planned: &Planned<W::S>) -> Result<(), StepError> {
        Ok(())
    }

    /// After a step that may still be taken back.
    #[inline(always)]
    fn after(&mut self, _run: &mut W, _step: &Taken<W::S>) -> Result<Verdict<W::S>, StepError> {
        Ok(Verdict::Accept)
    }

    /// At the end of the run, after the last node, at time `t`.
    #[inline(always)]
    fn end(&mut self, _run: &mut W, _t: W::S) -> Result<(), StepError> {
        Ok(())
    }
}

/// Makes the run.
#[inline(always)]
pub(crate) fn drive<W: Stepper>(
    run: &mut W,
    plan: &mut impl Plan<W::S>,
    hooks: &mut impl Hooks<W>,
) -> Result<Statistics, StepError> {
    let t = plan.start();
    let mut statistics = Statistics { t: t.real(), ..Statistics::default() };
    let mut last = Taken { t, h: W::S::ZERO, end: t, statistics: StepStatistics::default() };
    let mut observed = true;
    loop {
        let t = last.end;
        match hooks.node(run, &last, observed)? {
            Next::Continue => {}
            Next::Restart => run.restart(),
            Next::Stop => statistics.stopped = true,
        }
        let planned = if statistics.stopped { None } else { plan.next(t, &statistics)? };
        let Some(mut planned) = planned else {
            hooks.end(run, t)?;
            return Ok(statistics);
        };
        hooks.before(run, &planned)?;
        loop {
            last = run.step(&planned)?;
            let verdict = hooks.after(run, &last)?;
            last.statistics.evaluations += run.take_evaluations();
            match verdict {
                Verdict::Accept => break,
                Verdict::Shorten(end) => planned = Planned { end, h: end - t, ..planned },
                Verdict::Stop(t) => {
                    statistics.add(t.real(), last.h.real(), &last.statistics);
                    statistics.stopped = true;
                    hooks.end(run, t)?;
                    return Ok(statistics);
                }
            }
        }
        statistics.add(last.end.real(), last.h.real(), &last.statistics);
        observed = plan.observed(last.end);
    }
}

/// One after the other; the run goes on as the stricter one says, and a step is made again or ended as the first one says that does.
impl<W: Stepper, A: Hooks<W>, B: Hooks<W>> Hooks<W> for (A, B) {
    #[inline(always)]
    fn node(&mut self, run: &mut W, step: &Taken<W::S>, observed: bool) -> Result<Next, StepError> {
        Ok(match (self.0.node(run, step, observed)?, self.1.node(run, step, observed)?) {
            (Next::Stop, _) | (_, Next::Stop) => Next::Stop,
            (Next::Restart, _) | (_, Next::Restart) => Next::Restart,
            (Next::Continue, Next::Continue) => Next::Continue,
        })
    }

    #[inline(always)]
    fn before(&mut self, run: &mut W, planned: &Planned<W::S>) -> Result<(), StepError> {
        self.0.before(run, planned)?;
        self.1.before(run, planned)
    }

    #[inline(always)]
    fn after(&mut self, run: &mut W, step: &Taken<W::S>) -> Result<Verdict<W::S>, StepError> {
        match self.0.after(run, step)? {
            Verdict::Accept => self.1.after(run, step),
            verdict => Ok(verdict),
        }
    }

    #[inline(always)]
    fn end(&mut self, run: &mut W, t: W::S) -> Result<(), StepError> {
        self.0.end(run, t)?;
        self.1.end(run, t)
    }
}

#[cfg(test)]
mod tests {
    use super::super::field::Field;
    use super::super::{
        Adaptive, AdaptiveRun, DormandPrince, ExplicitRun, FixedRun, Limits, Nodes, Output, Rk4, RungeKutta,
        Span,
    };
    use super::*;
    use crate::error::EvalError;
    use crate::inputs::NoInputs;
    use crate::pieces::Pieces;
    use crate::system::{At, Dims, ForwardDynamics, System};

    const G: f64 = 10.0;

    /// A ball in free fall, or a pendulum.
    struct Ball {
        pendulum: bool,
    }

    impl System for Ball {
        type S = f64;
        fn dims(&self) -> Dims {
            Dims { nq: 1, nv: 1, ..Dims::ZERO }
        }
    }

    impl ForwardDynamics for Ball {
        fn forward_dynamics(
            &self,
            at: At<'_, f64>,
            _: &mut [f64],
            zd: &mut [f64],
            vd: &mut [f64],
            _: &mut [f64],
        ) -> Result<(), EvalError> {
            zd.copy_from_slice(at.v);
            vd.fill(if self.pendulum { -G * crate::math::sin(at.z[0]) } else { -G });
            Ok(())
        }
    }

    const SPAN: Span<f64> = Span { start: 0.0, end: 2.5, output: Output::Steps };

    /// Keeps the state before every step; where a step goes below ground it ends there, and the ball turns back.
    #[derive(Default)]
    struct Bounce {
        kept: [f64; 4],
        bounces: usize,
        nodes: usize,
        impact: Option<f64>,
    }

    impl<W: ExplicitRun<S = f64>> Hooks<W> for Bounce {
        fn node(&mut self, run: &mut W, step: &Taken<f64>, _: bool) -> Result<Next, StepError> {
            self.nodes += 1;
            if self.impact.take() != Some(step.end) {
                return Ok(Next::Continue);
            }
            self.bounces += 1;
            let (_, y) = run.parts();
            assert!(y[0].abs() < 1e-14 && y[1] < 0.0, "{y:?}");
            y[1] = -y[1];
            Ok(Next::Restart)
        }

        fn before(&mut self, run: &mut W, _: &Planned<f64>) -> Result<(), StepError> {
            let n = run.saved_len();
            run.save(&mut self.kept[..n])
        }

        fn after(&mut self, run: &mut W, step: &Taken<f64>) -> Result<Verdict<f64>, StepError> {
            if self.impact.is_some() || run.parts().1[0] >= 0.0 {
                return Ok(Verdict::Accept);
            }
            let n = run.saved_len();
            run.restore(&self.kept[..n])?;
            // z + v h − g h²/2 = 0
            let (_, y) = run.parts();
            let end = step.t + (y[1] + crate::scalar::sqrt(y[1] * y[1] + 2.0 * G * y[0])) / G;
            self.impact = Some(end);
            Ok(Verdict::Shorten(end))
        }
    }

    /// From 1 m at rest: down after √(2/g), then up and down again in twice that.
    fn height(t: f64) -> f64 {
        let fall = crate::scalar::sqrt(2.0 / G);
        let phase = (t + fall) % (2.0 * fall) - fall;
        1.0 - 0.5 * G * phase * phase
    }

    #[test]
    fn an_event_shortens_a_step_and_changes_the_state() {
        let (system, mut scratch, mut y) = (Ball { pendulum: false }, [0.0; 64], [1.0, 0.0]);
        let mut pieces = Pieces::of(&mut scratch, 64);
        let (mut inputs, mut nodes) = (NoInputs, Nodes::new(&SPAN, 0.1).unwrap());
        let mut field = Field::new(&system, &mut inputs, &mut pieces).unwrap();
        let mut run = FixedRun::<Rk4, _>::new(&mut field, 2, &mut pieces, &mut y).unwrap();
        let mut hooks = Bounce::default();
        let statistics = drive(&mut run, &mut nodes, &mut hooks).unwrap();
        // Impacts at 0.447, 1.342 and 2.236 s cut three of the 25 steps in two; the other nodes stay where they were.
        assert_eq!((hooks.bounces, hooks.nodes, statistics.steps, statistics.t), (3, 29, 28, 2.5));
        assert!((y[0] - height(2.5)).abs() < 1e-13, "{y:?}");
    }

    #[test]
    fn an_event_stops_step_control_too() {
        let (system, mut scratch, mut y) = (Ball { pendulum: false }, [0.0; 64], [1.0, 0.0]);
        let mut pieces = Pieces::of(&mut scratch, 64);
        let mut stages = DormandPrince::stages(2, &mut pieces).unwrap();
        let control = Adaptive { h_max: 0.3, ..Adaptive::new(1e-6, 1e-6) };
        let (mut inputs, mut limits) = (NoInputs, Limits::new(&control, &SPAN).unwrap());
        let mut field = Field::new(&system, &mut inputs, &mut pieces).unwrap();
        let mut run = AdaptiveRun::new(&control, &mut field, &mut stages, 0.0, &mut y);
        let mut hooks = Bounce::default();
        drive(&mut run, &mut limits, &mut hooks).unwrap();
        assert_eq!(hooks.bounces, 3);
        assert!((y[0] - height(2.5)).abs() < 1e-12, "{y:?}");
    }

    /// Saves the state before every step.
    struct Checkpoints<'a> {
        saved: &'a mut [[f64; 4]],
        number: usize,
    }

    impl<W: ExplicitRun<S = f64>> Hooks<W> for Checkpoints<'_> {
        fn node(&mut self, _: &mut W, _: &Taken<f64>, _: bool) -> Result<Next, StepError> {
            Ok(Next::Continue)
        }

        fn before(&mut self, run: &mut W, _: &Planned<f64>) -> Result<(), StepError> {
            let n = run.saved_len();
            run.save(&mut self.saved[self.number][..n])?;
            self.number += 1;
            Ok(())
        }
    }

    /// The same bits from any checkpoint on; a span with a shorter last step.
    #[test]
    fn parts_of_a_run_can_be_made_again() {
        let (system, mut scratch, mut y) = (Ball { pendulum: true }, [0.0; 64], [1.0, 0.5]);
        let mut pieces = Pieces::of(&mut scratch, 64);
        let (mut inputs, nodes) = (NoInputs, Nodes::new(&SPAN, 0.2).unwrap());
        let mut field = Field::new(&system, &mut inputs, &mut pieces).unwrap();
        let mut run = FixedRun::<DormandPrince, _>::new(&mut field, 2, &mut pieces, &mut y).unwrap();
        let mut saved = [[0.0; 4]; 14];
        let mut hooks = Checkpoints { saved: &mut saved, number: 0 };
        let whole = drive(&mut run, &mut nodes.part(0, usize::MAX), &mut hooks).unwrap();
        assert_eq!((whole.steps, whole.t), (13, 2.5));
        run.save(&mut saved[13][..2]).unwrap();
        for (first, last) in [(12, 13), (5, 9), (0, 13)] {
            run.restore(&saved[first][..2]).unwrap();
            let mut again = [[0.0; 4]; 14];
            let mut hooks = Checkpoints { saved: &mut again, number: first };
            let part = drive(&mut run, &mut nodes.part(first, last), &mut hooks).unwrap();
            assert_eq!(part.steps, last - first);
            run.save(&mut again[last][..2]).unwrap();
            assert_eq!(again[first..=last], saved[first..=last]);
        }
    }

    /// Step control from a checkpoint: the rate at its state is evaluated again, to the same bits.
    #[test]
    fn step_control_can_be_resumed() {
        let system = Ball { pendulum: true };
        let mut scratch = [0.0; 64];
        let mut y = [1.0, 0.5];
        let mut pieces = Pieces::of(&mut scratch, 64);
        let mut stages = DormandPrince::stages(2, &mut pieces).unwrap();
        let control = Adaptive::new(1e-6, 1e-6);
        let mut inputs = NoInputs;
        let mut field = Field::new(&system, &mut inputs, &mut pieces).unwrap();
        let mut run = AdaptiveRun::new(&control, &mut field, &mut stages, 0.0, &mut y);
        let mut saved = [[0.0; 4]; 64];
        let mut hooks = (Checkpoints { saved: &mut saved, number: 0 }, Times::default());
        let whole = drive(&mut run, &mut Limits::new(&control, &SPAN).unwrap(), &mut hooks).unwrap();
        let (end, t) = ([run.parts().1[0], run.parts().1[1]], hooks.1.0[5]);
        assert!(whole.steps > 10);
        run.restore(&saved[5]).unwrap();
        let span = Span { start: t, ..SPAN };
        let mut hooks = Times::default();
        let part = drive(&mut run, &mut Limits::new(&control, &span).unwrap(), &mut hooks).unwrap();
        assert_eq!((part.steps, [run.parts().1[0], run.parts().1[1]]), (whole.steps - 5, end));
    }

    /// Times of the nodes.
    struct Times([f64; 64], usize);

    impl Default for Times {
        fn default() -> Self {
            Self([0.0; 64], 0)
        }
    }

    impl<W: Stepper<S = f64>> Hooks<W> for Times {
        fn node(&mut self, _: &mut W, step: &Taken<f64>, _: bool) -> Result<Next, StepError> {
            self.0[self.1] = step.end;
            self.1 += 1;
            Ok(Next::Continue)
        }
    }
}
