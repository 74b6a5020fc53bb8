//! One run of an interpreted model: starts it, steps it and records what the report needs.
//!
//! Input: a model, the settings of the run, its observer. Output: a [`Record`], also where the run failed on its way.

use super::driven::Driven;
use super::failure::RunFailure;
use super::follower::{Follower, Silent};
use super::instance::Instance;
use super::judged::Judged;
use super::observer::{Accelerations, Now, Observer, Seen};
use super::settings::{Analysis, Settings};
use super::start::{self, Start};
use crate::dynamics::{Dynamics, index1};
use crate::{Damping, Interpreted, Method};
use mbs_codegen::analysis::Analysed;
use mbs_codegen::model::{Case, Formulation, Model, Simulation};
use mbs_codegen::watch;
use mbs_runtime::formulation::ImplicitStep;
use mbs_runtime::{
    At, EvalError, EventIntegrator, Fixed, ForwardDynamics, Index1, Output, Rk4, Sight, Span, State,
    Statistics, StepError, Stiff, System, Trapezoidal, WithEvents,
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
    model.begin_run();
    let guess = model.start_state();
    let stride = match stride(settings) {
        Ok(stride) => stride,
        Err(error) => return failed_before_start(model, settings, guess, RunFailure::Step(error)),
    };
    if let Some(what) = refused_with_events(model, settings) {
        let failure = RunFailure::Step(StepError::Unsupported { what });
        return failed_before_start(model, settings, guess, failure);
    }
    if settings.is_runge_kutta() && !settings.constrained {
        // Lengths of Euler parameters mean nothing; every start normalises them.
        let mut start = guess;
        mbs_runtime::integrator::renormalise(model, &mut start[..model.dims().nq]);
        let job = Job { model, settings, start, assembly: None, damping: None, stride, follower };
        return job.tree();
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

/// What events do not go together with.
pub(crate) fn refused_with_events(model: &Interpreted, settings: &Settings) -> Option<&'static str> {
    if model.program().events.names.is_empty() {
        None
    } else if settings.analysis == Analysis::Kinematics {
        Some(
            "there are no events in a motion that drives prescribe: run the dynamics, or take `events` from the model",
        )
    } else if settings.recursive {
        Some("the articulated-body recursion does not know events: leave `--recursive` out")
    } else {
        refused_choice(model, &settings.simulation)
    }
}

/// Independent coordinates of constraints that come and go.
pub(crate) fn refused_choice<S: mbs_runtime::Scalar>(
    model: &Interpreted<S>,
    simulation: &Simulation,
) -> Option<&'static str> {
    let events = &model.program().events;
    if simulation.formulation != Formulation::MatrixR {
        return None;
    }
    match (events.changes_rows, events.moves) {
        (true, _) => Some(
            "matrix R chooses independent coordinates of constraints that all act: where they come and go, take another `formulation`",
        ),
        (_, true) => Some("matrix R does not know events that reset positions: take another `formulation`"),
        _ => None,
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

/// The same for a run that is made for it.
pub fn undefined_along(
    source: &Analysed,
    case: Option<&Case>,
    set: &[(String, f64)],
    settings: &Settings,
) -> Option<String> {
    let instance = Instance::new(source, case, set, settings.clone(), &[]).ok()?;
    let record = run(&instance.model, &instance.settings, &mut Silent);
    record.failure.as_ref()?;
    undefined(source, case, &instance.model, &instance.settings, &record.seen.now)
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
    /// An open tree under a Runge–Kutta method.
    fn tree(self) -> Record {
        let model = self.model;
        self.runge_kutta(&Dynamics::Tree(model), None, Accelerations::OfTree)
    }

    /// Steps of a Runge–Kutta method, explicit or implicit.
    fn runge_kutta(
        self,
        system: &Dynamics<'_>,
        multipliers: Option<Index1<'_, Interpreted>>,
        accelerations: Accelerations<'_>,
    ) -> Record {
        match self.is_stiff() {
            true => self.explicit(&Stiff(system), multipliers, accelerations),
            false => self.explicit(system, multipliers, accelerations),
        }
    }

    /// Whether its Runge–Kutta steps are implicit.
    fn is_stiff(&self) -> bool {
        self.settings.simulation.solves_stages(self.settings.constrained)
    }

    fn has_events(&self) -> bool {
        !self.model.program().events.names.is_empty()
    }

    /// A run from an assembled start.
    fn constrained(mut self) -> Record {
        let (model, simulation) = (self.model, &self.settings.simulation);
        let mut state =
            self.assembly.as_mut().map(|found| std::mem::take(&mut found.state)).unwrap_or_default();
        if self.settings.analysis == Analysis::Kinematics {
            // A driven motion knows no forces: they come from the constraints of accelerations.
            return match self.settings.judges_forces {
                true => self.implicit(Driven, Accelerations::OfConstraints(Index1::new(model)), state),
                false => self.implicit(Driven, Accelerations::Known, state),
            };
        }
        let scale = State::of(&model.dims(), &mut state).map_or(Vec::new(), |state| state.scale.to_vec());
        match Method::of(simulation, self.settings.constrained, &scale) {
            Method::Ali3p(method) => self.implicit(method, Accelerations::Known, state),
            Method::Index1(method) => {
                self.damping = Damping::of(simulation, self.settings.constrained, &scale);
                self.implicit(method, Accelerations::Known, state)
            }
            method => {
                let damping = method.damping();
                self.damping = damping;
                let dynamics = index1(model, damping.and_then(|damping| damping.penalty));
                let multipliers = self.settings.judges_forces.then(|| dynamics.clone());
                let mut choice = model.no_choice();
                let system = Dynamics::new(model, damping, &mut choice);
                self.runge_kutta(&system, multipliers, Accelerations::OfConstraints(dynamics))
            }
        }
    }

    fn explicit<M>(
        self,
        system: &M,
        multipliers: Option<Index1<'_, Interpreted>>,
        accelerations: Accelerations<'_>,
    ) -> Record
    where
        M: ForwardDynamics<S = f64> + WithEvents<Model = Interpreted>,
    {
        let (model, simulation) = (self.model, &self.settings.simulation);
        let system = &Judged { model, system, multipliers };
        let output = simulation.output_step.map_or(Output::Steps, Output::Every);
        match Method::of(simulation, self.settings.constrained, &[]) {
            Method::DormandPrince(method, _) => self.integrate(&method, system, accelerations, output),
            Method::Dop853(method, _) => self.integrate(&method, system, accelerations, output),
            Method::Sdirk4(method, _) => self.integrate(&method, system, accelerations, output),
            Method::Trapezoidal(_) => {
                let method = Fixed { method: Trapezoidal, h: simulation.step };
                self.integrate(&method, system, accelerations, Output::Steps)
            }
            _ => {
                let method = Fixed { method: Rk4, h: simulation.step };
                self.integrate(&method, system, accelerations, Output::Steps)
            }
        }
    }

    fn integrate<M: ForwardDynamics<S = f64> + WithEvents>(
        self,
        method: &impl EventIntegrator,
        system: &M,
        accelerations: Accelerations<'_>,
        output: Output,
    ) -> Record {
        let has_events = self.has_events();
        let Job { model, settings, start, assembly, damping, stride, follower } = self;
        let mut y = start.clone();
        y.resize(system.dims().state(), 0.0);
        let scratch = match has_events {
            true => method.event_scratch_len(system),
            false => method.scratch_len(&system.dims()),
        };
        let mut scratch = vec![0.0; scratch];
        let span = Span { start: settings.simulation.begin, end: settings.simulation.end, output };
        let mut observer = Observer::new(model, settings, accelerations, &start, stride, follower);
        let node = |observer: &mut Observer<'_>, at: At<'_, f64>, own: bool| {
            observe(observer, own, |now| {
                now.set(at);
                Ok(())
            })
        };
        let mut inputs = model.input_signals();
        let outcome =
            match has_events {
                true => method.run_with_events(system, &mut inputs, &mut y, &span, &mut scratch, |sight| {
                    match sight {
                        Sight::Node(at, own) => node(&mut observer, at, own),
                        Sight::Event(occurrence) => {
                            observer.event(&occurrence);
                            ControlFlow::Continue(())
                        }
                    }
                }),
                false => method.run(system, &mut inputs, &mut y, &span, &mut scratch, |at| {
                    node(&mut observer, at, true)
                }),
            };
        record(observer, start, assembly, damping, outcome.map(Effort::Explicit))
    }

    fn implicit<T: ImplicitStep>(
        self,
        method: T,
        accelerations: Accelerations<'_>,
        mut state: Vec<f64>,
    ) -> Record {
        let has_events = self.has_events();
        let Job { model, settings, start, assembly, damping, stride, follower } = self;
        let simulation = &settings.simulation;
        let span = Span { start: simulation.begin, end: simulation.end, output: Output::Steps };
        let mut observer = Observer::new(model, settings, accelerations, &start, stride, follower);
        let mut inputs = model.input_signals();
        let method = Fixed { method, h: simulation.step };
        let len = match has_events {
            true => method.implicit_event_scratch_len(model),
            false => method.method.scratch_len(&model.dims()),
        };
        let (mut scratch, inputs) = (vec![0.0; len], &mut inputs);
        let outcome = match has_events {
            true => {
                method.run_implicit_with_events(model, inputs, &mut state, &span, &mut scratch, |sight| {
                    match sight {
                        Sight::Node(node, own) => {
                            observe(&mut observer, own, |now| now.set_node(model, &node))
                        }
                        Sight::Event(occurrence) => {
                            observer.event(&occurrence);
                            ControlFlow::Continue(())
                        }
                    }
                })
            }
            false => method.run(model, inputs, &mut state, &span, &mut scratch, |node| {
                observe(&mut observer, true, |now| now.set_node(model, &node))
            }),
        };
        record(observer, start, assembly, damping, outcome.map(Effort::Implicit))
    }
}

fn observe(
    observer: &mut Observer<'_>,
    own: bool,
    set: impl FnOnce(&mut Now) -> Result<(), EvalError>,
) -> ControlFlow<()> {
    match observer.observe(own, set) {
        Ok(()) => ControlFlow::Continue(()),
        Err(failure) => {
            observer.failure = Some(failure);
            ControlFlow::Break(())
        }
    }
}

fn record(
    mut observer: Observer<'_>,
    start: Vec<f64>,
    assembly: Option<Start>,
    damping: Option<Damping>,
    outcome: Result<Effort, StepError>,
) -> Record {
    let seconds = observer.finish();
    if let Ok(Effort::Implicit(statistics)) = &outcome {
        observer.seen.short_projections = statistics.short_projections;
    }
    let (effort, failure) = match outcome {
        Ok(effort) => (effort, observer.failure),
        Err(error) => (Effort::Unknown, Some(RunFailure::Step(error))),
    };
    Record { start, assembly, damping, seen: observer.seen, effort, seconds, failure }
}
