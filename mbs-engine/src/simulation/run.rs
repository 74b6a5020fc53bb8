//! One run of an interpreted model: starts it, steps it and records what the report needs.
//!
//! Input: a model, the settings of the run, its observer. Output: a [`Record`], also where the run failed on its way.

use super::driven::Driven;
use super::failure::RunFailure;
use super::follower::Follower;
use super::observer::{Accelerate, Known, Now, Observer, OfConstraints, OfTree, Seen};
use super::settings::{Analysis, Settings};
use super::start::{self, Start};
use crate::{Damping, Interpreted, Method};
use mbs_codegen::model::{Case, Model, Simulation};
use mbs_codegen::watch;
use mbs_runtime::formulation::ImplicitStep;
use mbs_runtime::system::Recursive;
use mbs_runtime::{
    EvalError, Fixed, ForwardDynamics, Index1, Integrator, OnConstraints, Output, Rk4, Span, State,
    Statistics, StepError, System,
};
use std::ops::ControlFlow;

/// What a run leaves.
#[derive(Clone, Debug)]
pub struct Record {
    /// Coordinates and velocities at the start.
    pub start: Vec<f64>,
    /// How the start was found; none where it was given, or not found.
    pub assembly: Option<Start>,
    /// How constraints are enforced where they do not hold exactly.
    pub damping: Option<Damping>,
    /// What was seen of it, up to the last good node.
    pub seen: Seen,
    /// What it took.
    pub effort: Effort,
    /// Wall time, s.
    pub seconds: f64,
    /// Why it did not come to its end.
    pub failure: Option<RunFailure>,
}

/// What a run took; nothing is known where it failed.
#[derive(Clone, Copy, Debug)]
pub enum Effort {
    /// Nothing is known.
    Unknown,
    /// Explicit steps.
    Explicit(Statistics),
    /// Implicit steps, or those of a kinematic analysis.
    Implicit(Statistics),
}

/// Runs the model.
pub fn run(model: &Interpreted, settings: &Settings, follower: &mut dyn Follower) -> Record {
    let guess = model.start_state();
    let stride = match stride(settings) {
        Ok(stride) => stride,
        Err(error) => return failed_before_start(model, settings, guess, RunFailure::Step(error)),
    };
    if settings.is_explicit() && !settings.constrained {
        let job = Job { model, settings, start: guess, assembly: None, damping: None, stride, follower };
        return if settings.recursive {
            job.explicit_tree(&Recursive(model))
        } else {
            job.explicit_tree(model)
        };
    }
    match start::assemble(model, settings.simulation.begin, settings.analysis) {
        Ok(found) => {
            let start = found.y.clone();
            Job { model, settings, start, assembly: Some(found), damping: None, stride, follower }
                .constrained()
        }
        Err(error) => failed_before_start(model, settings, guess, RunFailure::Start(error)),
    }
}

/// The force or constraint that is not finite where a run ended, or within the next step, with the time and the operation that made
/// it so.
pub fn undefined(
    source: &Model,
    case: Option<&Case>,
    model: &Interpreted,
    settings: &Settings,
    now: &Now,
) -> Option<String> {
    let begun = model.start_state();
    let (z, v) = begun.split_at(now.z.len());
    let look = |t: f64, z: &[f64], v: &[f64]| {
        let at = watch::Instant { parameters: model.parameters(), t, z, v, u: &now.u };
        watch::undefined(source, case, at).map(|what| format!("at t = {t}, {what}"))
    };
    let h = settings.simulation.step;
    let ahead = |part: f64| {
        // Velocities are the rates of coordinates but for Euler parameters, which are not what has no value.
        let moved: Vec<f64> = match now.z.len() == now.v.len() {
            true => now.z.iter().zip(&now.v).map(|(z, v)| z + part * h * v).collect(),
            false => now.z.iter().zip(&now.zd).map(|(z, zd)| z + part * h * zd).collect(),
        };
        look(now.t + part * h, &moved, &now.v)
    };
    look(now.t, &now.z, &now.v)
        .or_else(|| look(settings.simulation.begin, z, v))
        .or_else(|| [0.5, 1.0].into_iter().find_map(ahead))
}

/// The record of a run that failed before its start.
fn failed_before_start(
    model: &Interpreted,
    settings: &Settings,
    guess: Vec<f64>,
    failure: RunFailure,
) -> Record {
    Record {
        seen: Seen::new(model, settings, &guess),
        start: guess,
        assembly: None,
        damping: None,
        effort: Effort::Unknown,
        seconds: 0.0,
        failure: Some(failure),
    }
}

/// Every how many steps is a result; one with step control, which gives results where they are wanted.
pub fn stride(settings: &Settings) -> Result<usize, StepError> {
    let Simulation { step, output_step, .. } = settings.simulation;
    // A wrong step is the integrator's to refuse.
    match output_step.filter(|_| !settings.is_adaptive() && step > 0.0 && step.is_finite()) {
        Some(interval) => Output::Every(interval).stride(step),
        None => Ok(1),
    }
}

/// A run that can begin.
struct Job<'a> {
    model: &'a Interpreted,
    settings: &'a Settings,
    start: Vec<f64>,
    assembly: Option<Start>,
    damping: Option<Damping>,
    stride: usize,
    follower: &'a mut dyn Follower,
}

impl<'a> Job<'a> {
    /// An open tree under an explicit integrator; `system` is the model, or its recursive form.
    fn explicit_tree<M: ForwardDynamics<S = f64>>(self, system: &M) -> Record {
        self.explicit(system, OfTree(system))
    }

    /// A run from an assembled start.
    fn constrained(mut self) -> Record {
        let (model, simulation) = (self.model, &self.settings.simulation);
        let mut state =
            self.assembly.as_mut().map(|found| std::mem::take(&mut found.state)).unwrap_or_default();
        if self.settings.analysis == Analysis::Kinematics {
            // A driven motion knows no forces: they come from the constraints of accelerations.
            return match self.settings.judges_forces {
                true => self.implicit(Driven, OfConstraints(model, Index1::new(model)), state),
                false => self.implicit(Driven, Known, state),
            };
        }
        let scale = State::of(&model.dims(), &mut state).map_or(Vec::new(), |state| state.scale.to_vec());
        match Method::of(simulation, self.settings.constrained, &scale) {
            Method::Ali3p(method) => self.implicit(method, Known, state),
            Method::Index1(method) => {
                self.damping = Damping::of(simulation, self.settings.constrained, &scale);
                self.implicit(method, Known, state)
            }
            Method::Rk4(damping) | Method::DormandPrince(_, damping) => {
                self.damping = damping;
                let dynamics = match damping.and_then(|damping| damping.penalty) {
                    Some(penalty) => Index1::penalty(model, penalty, 0.0, 0.0),
                    None => Index1::new(model),
                };
                self.explicit(&OnConstraints(dynamics.clone()), OfConstraints(model, dynamics))
            }
        }
    }

    fn explicit<M: ForwardDynamics<S = f64>>(self, system: &M, accelerate: impl Accelerate) -> Record {
        let simulation = &self.settings.simulation;
        if let Method::DormandPrince(method, _) = Method::of(simulation, self.settings.constrained, &[]) {
            let output = simulation.output_step.map_or(Output::Steps, Output::Every);
            self.integrate(&method, system, accelerate, output)
        } else {
            let method = Fixed { method: Rk4, h: simulation.step };
            self.integrate(&method, system, accelerate, Output::Steps)
        }
    }

    fn integrate<M: ForwardDynamics<S = f64>>(
        self,
        method: &impl Integrator,
        system: &M,
        accelerate: impl Accelerate,
        output: Output,
    ) -> Record {
        let Job { model, settings, start, assembly, damping, stride, follower } = self;
        let mut y = start.clone();
        let mut scratch = vec![0.0; method.scratch_len(&system.dims())];
        let span = Span { start: settings.simulation.begin, end: settings.simulation.end, output };
        let mut observer = Observer::new(model, settings, accelerate, &start, stride, follower);
        let mut inputs = model.input_signals();
        let outcome = method.run(system, &mut inputs, &mut y, &span, &mut scratch, |at| {
            observe(&mut observer, |now| {
                now.set(at);
                Ok(())
            })
        });
        record(observer, start, assembly, damping, outcome.map(Effort::Explicit))
    }

    fn implicit<T: ImplicitStep>(
        self,
        method: T,
        accelerate: impl Accelerate,
        mut state: Vec<f64>,
    ) -> Record {
        let Job { model, settings, start, assembly, damping, stride, follower } = self;
        let simulation = &settings.simulation;
        let mut scratch = vec![0.0; method.scratch_len(&model.dims())];
        let span = Span { start: simulation.begin, end: simulation.end, output: Output::Steps };
        let mut observer = Observer::new(model, settings, accelerate, &start, stride, follower);
        let mut inputs = model.input_signals();
        let outcome = Fixed { method, h: simulation.step }.run(
            model,
            &mut inputs,
            &mut state,
            &span,
            &mut scratch,
            |node| observe(&mut observer, |now| now.set_node(model, &node)),
        );
        record(observer, start, assembly, damping, outcome.map(Effort::Implicit))
    }
}

fn observe<A: Accelerate>(
    observer: &mut Observer<'_, A>,
    set: impl FnOnce(&mut Now) -> Result<(), EvalError>,
) -> ControlFlow<()> {
    match observer.observe(set) {
        Ok(()) => ControlFlow::Continue(()),
        Err(failure) => {
            observer.failure = Some(failure);
            ControlFlow::Break(())
        }
    }
}

fn record<A: Accelerate>(
    mut observer: Observer<'_, A>,
    start: Vec<f64>,
    assembly: Option<Start>,
    damping: Option<Damping>,
    outcome: Result<Effort, StepError>,
) -> Record {
    let seconds = observer.finish();
    let (effort, failure) = match outcome {
        Ok(effort) => (effort, observer.failure),
        Err(error) => (Effort::Unknown, Some(RunFailure::Step(error))),
    };
    Record { start, assembly, damping, seen: observer.seen, effort, seconds, failure }
}
