//! All ways to run a model against each other: formulations, integrators and kinds of coordinates, over several steps or tolerances.
//!
//! Input: a model in one or several kinds of coordinates, and a [`Plan`]. Output: a [`Comparison`]: for every combination that the model admits
//! the error of state, objectives and gradient at the end, and what the run takes with and without its gradient; a combination that fails
//! is a row with its reason. Formulations and integrators are those of the model file: [`Formulation::ALL`], [`Integrator::ALL`].
//!
//! Errors are differences from the reference, the finest run by a method of high order, relative to the largest number beside which one
//! counts: coordinates to the largest coordinate, velocities likewise, an objective to itself, a derivative times its parameter to the
//! largest of its objective.

use crate::gradient::{self, parameter_sizes};
use crate::simulation::{
    self, Analysis, Follower, Overrides, RunFailure, SettingError, Settings, interpret, refuse_unfit,
};
use crate::{Engine, Fusing, Interpreted, verify};
use mbs_codegen::analysis::Analysed;
use mbs_codegen::model::{Case, Formulation, Integrator};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Tolerance of the reference, and the one with which it is compared.
const REFERENCE: [f64; 2] = [1e-12, 1e-10];
/// Parts of the smallest step, for the same, if step control cannot make the run.
const FINER: [f64; 2] = [0.25, 0.5];
/// A run is repeated while all of its repetitions take less than this, s, and at most so often; the quickest counts.
const REPEATED: (f64, usize) = (0.3, 3);
/// A reference must be better than what it judges by this.
const BETTER: f64 = 3.0;

/// A model in one kind of coordinates.
#[derive(Clone, Copy)]
pub struct Side<'a> {
    /// The keyword of its coordinates.
    pub coordinates: &'static str,
    /// The model.
    pub model: &'a Analysed,
    /// Its case.
    pub case: Option<&'a Case>,
}

/// What is run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Steps of methods of fixed steps, s.
    pub steps: Vec<f64>,
    /// Relative and absolute tolerances of methods with step control.
    pub tolerances: Vec<f64>,
    /// What a run may take, s.
    pub limit: f64,
    /// The last time, if not that of the model, and other settings of all runs.
    pub overrides: Overrides,
    /// Parameters that are set.
    pub set: Vec<(String, f64)>,
    /// How equations are evaluated.
    pub engine: (Engine, Fusing),
}

/// How fine a run is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Resolution {
    /// By its step, s.
    Step(f64),
    /// By its tolerance.
    Tolerance(f64),
}

/// One way to run a model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Way {
    /// The keyword of the coordinates.
    pub coordinates: &'static str,
    /// None of a model without constraints.
    pub formulation: Option<Formulation>,
    /// The integrator.
    pub integrator: Integrator,
    /// How fine it is.
    pub resolution: Resolution,
}

/// Differences from the reference, relative.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Errors {
    /// Of coordinates and velocities at the end.
    pub state: f64,
    /// Of the objectives, if there are any.
    pub objectives: Option<f64>,
    /// Of their gradient, if there is one.
    pub gradient: Option<f64>,
}

impl Errors {
    /// The largest of them.
    pub fn worst(&self) -> f64 {
        [Some(self.state), self.objectives, self.gradient].into_iter().flatten().fold(0.0, worse)
    }
}

/// What a run by one way left.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// How far it is from the reference.
    pub errors: Errors,
    /// Steps.
    pub steps: usize,
    /// Wall time of the run with its observer of outputs, objectives and energy, s.
    pub seconds: f64,
    /// Wall time of the run with its gradient, by the direct method, s.
    pub gradient_seconds: Option<f64>,
}

impl Measured {
    /// What is asked of the run takes this long, s.
    pub fn time(&self) -> f64 {
        self.gradient_seconds.unwrap_or(self.seconds)
    }
}

/// One way and what came of it.
#[derive(Clone, Debug)]
pub struct Row {
    /// The way.
    pub way: Way,
    /// What it left, or why it failed.
    pub outcome: Result<Measured, String>,
}

/// What errors are measured against.
#[derive(Clone, Debug)]
pub struct Reference {
    /// How it was run.
    pub way: Way,
    /// How far the same with a hundredfold tolerance, or twice the step, is from it.
    pub errors: Errors,
}

/// All ways.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// What errors are measured against.
    pub reference: Reference,
    /// One by one.
    pub rows: Vec<Row>,
    /// Kinds of coordinates in which there are no equations, and why.
    pub without: Vec<(&'static str, String)>,
    /// Whether equations were evaluated as machine code.
    pub machine_code: bool,
}

impl Comparison {
    /// Whether the reference is good enough to say that an error is at most this.
    pub fn judges(&self, accuracy: f64) -> bool {
        self.reference.errors.worst() * BETTER <= accuracy
    }

    /// The quickest way whose errors are at most this, if the reference can judge that.
    pub fn recommended(&self, accuracy: f64) -> Option<&Row> {
        if !self.judges(accuracy) {
            return None;
        }
        let good = |row: &&Row| row.outcome.as_ref().is_ok_and(|found| found.errors.worst() <= accuracy);
        let time = |row: &Row| row.outcome.as_ref().map_or(f64::INFINITY, Measured::time);
        self.rows.iter().filter(good).min_by(|a, b| time(a).total_cmp(&time(b)))
    }
}

/// Why nothing can be compared.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// No way makes a reference; the reasons.
    Reference(Vec<(Way, String)>),
    /// There are no equations in any coordinates.
    Equations(String),
    /// It was stopped.
    Stopped,
}

/// Numbers at the end of a run.
struct Ended {
    z: Vec<f64>,
    v: Vec<f64>,
    objectives: Vec<f64>,
    gradient: Vec<f64>,
    steps: usize,
    seconds: f64,
    gradient_seconds: Option<f64>,
}

/// A model ready to run.
struct Ready<'a> {
    side: Side<'a>,
    model: Interpreted,
}

/// Stops a run that takes too long or is interrupted.
struct Clock<'f> {
    until: Instant,
    late: bool,
    stopped: bool,
    go_on: &'f mut dyn FnMut() -> ControlFlow<()>,
}

impl Follower for Clock<'_> {
    fn reached(&mut self, _: f64) -> ControlFlow<()> {
        self.late = Instant::now() > self.until;
        self.stopped |= (self.go_on)().is_break();
        if self.late || self.stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Runs the model in all ways. `tell` hears how many of how many are done, and before which; a break ends it.
pub fn compare(
    sides: &[Side<'_>],
    plan: &Plan,
    tell: &mut dyn FnMut(usize, usize, &Way) -> ControlFlow<()>,
) -> Result<Comparison, Failure> {
    let (mut ready, mut without) = (Vec::new(), Vec::new());
    for side in sides {
        match make_ready(*side, plan) {
            Ok(one) => ready.push(one),
            Err(why) => without.push((side.coordinates, why)),
        }
    }
    let Some(first) = ready.first() else {
        return Err(Failure::Equations(without.into_iter().map(|(_, why)| why).next().unwrap_or_default()));
    };
    let ways: Vec<(usize, Way)> = ready
        .iter()
        .enumerate()
        .flat_map(|(i, one)| ways(one, plan).into_iter().map(move |way| (i, way)))
        .collect();
    let total = ways.len() + 2;
    let (reference, exact) = find_reference(first, plan, &mut |done, way| tell(done, total, way))?;
    let mut rows: Vec<Row> = Vec::new();
    for (done, (i, way)) in ways.iter().enumerate() {
        let mut stopped = tell(done + 2, total, way).is_break();
        let outcome = match slower(&rows, way, plan.limit) {
            Some(why) => Err(why),
            None => ended(&ready[*i], way, plan, &mut || {
                let flow = tell(done + 2, total, way);
                stopped |= flow.is_break();
                flow
            })
            .map(|run| measure(&ready[*i], &run, first, &exact)),
        };
        if stopped {
            return Err(Failure::Stopped);
        }
        rows.push(Row { way: *way, outcome });
    }
    let machine_code = ready.iter().any(|one| one.model.compiled() > 0);
    Ok(Comparison { reference, rows, without, machine_code })
}

/// A run that would take longer than a coarser one of the same way that took too long already.
fn slower(rows: &[Row], way: &Way, limit: f64) -> Option<String> {
    let last = rows.last().filter(|row| Way { resolution: way.resolution, ..row.way } == *way)?;
    match &last.outcome {
        Err(why) if why.starts_with(TOO_LONG) => Some(format!("{TOO_LONG}{limit} s, as the one before did")),
        _ => None,
    }
}

const TOO_LONG: &str = "takes longer than ";

fn make_ready<'a>(side: Side<'a>, plan: &Plan) -> Result<Ready<'a>, String> {
    let simulation = side.case.map_or(&side.model.simulation, |case| &case.simulation);
    let bundles = verify::bundles(simulation, side.model.is_constrained());
    let mut model =
        interpret(side.model, side.case, &plan.set, bundles).map_err(|error| error.to_string())?;
    let (engine, fusing) = plan.engine;
    model.set_engine(engine, Some(usize::MAX), fusing);
    Ok(Ready { side, model })
}

/// The ways that a model admits: what its settings refuse as a clash is none.
fn ways(ready: &Ready<'_>, plan: &Plan) -> Vec<Way> {
    let constrained = ready.side.model.is_constrained();
    let formulations = match constrained {
        true => Formulation::ALL.map(Some).to_vec(),
        false => vec![None],
    };
    let mut all = Vec::new();
    for formulation in formulations {
        for integrator in Integrator::ALL {
            let way =
                |resolution| Way { coordinates: ready.side.coordinates, formulation, integrator, resolution };
            match settings(ready, &way(Resolution::Step(plan.steps.first().copied().unwrap_or(1e-3))), plan) {
                Err(SettingError::Clash { .. }) => {}
                Ok(settings) if settings.is_adaptive() => {
                    all.extend(plan.tolerances.iter().map(|&x| way(Resolution::Tolerance(x))));
                }
                _ => all.extend(plan.steps.iter().map(|&h| way(Resolution::Step(h)))),
            }
        }
    }
    all
}

fn settings(ready: &Ready<'_>, way: &Way, plan: &Plan) -> Result<Settings, SettingError> {
    let (step, tolerance) = match way.resolution {
        Resolution::Step(h) => (Some(h), None),
        Resolution::Tolerance(x) => (plan.overrides.step, Some(x)),
    };
    let overrides = Overrides {
        formulation: way.formulation,
        integrator: Some(way.integrator),
        step,
        relative_tolerance: tolerance,
        absolute_tolerance: tolerance,
        ..plan.overrides.clone()
    };
    let defaults = simulation::simulation(ready.side.model, ready.side.case);
    // Output at every result would count for the time of a run.
    let defaults = mbs_codegen::model::Simulation { output_step: None, ..defaults.clone() };
    Settings::of_dynamics(&defaults, ready.side.model.is_constrained(), &overrides)
}

/// The first way of high order that makes the run, and the same, coarser, as its estimate.
fn find_reference(
    ready: &Ready<'_>,
    plan: &Plan,
    tell: &mut dyn FnMut(usize, &Way) -> ControlFlow<()>,
) -> Result<(Reference, Ended), Failure> {
    let least = plan.steps.iter().copied().fold(f64::INFINITY, f64::min);
    let steps = FINER.map(|part| Resolution::Step(part * least));
    let candidates = [
        (Integrator::DormandPrince, REFERENCE.map(Resolution::Tolerance)),
        (Integrator::Rk4, steps),
        (Integrator::Trapezoidal, steps),
    ];
    let formulation = |integrator: Integrator| {
        let explicit = if integrator.is_runge_kutta() { Formulation::Index1 } else { Formulation::Ali3p };
        ready.side.model.is_constrained().then_some(explicit)
    };
    let patient = Plan { limit: 10.0 * plan.limit, ..plan.clone() };
    let mut reasons = Vec::new();
    for (integrator, resolutions) in candidates {
        let [fine, coarse] = resolutions.map(|resolution| Way {
            coordinates: ready.side.coordinates,
            formulation: formulation(integrator),
            integrator,
            resolution,
        });
        let mut stopped = false;
        let mut run = |done: usize, way: &Way| {
            ended(ready, way, &patient, &mut || {
                let flow = tell(done, way);
                stopped |= flow.is_break();
                flow
            })
        };
        let runs = run(0, &fine).and_then(|exact| Ok((exact, run(1, &coarse)?)));
        if stopped {
            return Err(Failure::Stopped);
        }
        match runs {
            Ok((exact, other)) => {
                let errors = measure(ready, &other, ready, &exact).errors;
                return Ok((Reference { way: fine, errors }, exact));
            }
            Err(why) => reasons.push((fine, why)),
        }
    }
    Err(Failure::Reference(reasons))
}

/// Makes the run, with its gradient if there is one.
fn ended(
    ready: &Ready<'_>,
    way: &Way,
    plan: &Plan,
    go_on: &mut dyn FnMut() -> ControlFlow<()>,
) -> Result<Ended, String> {
    let settings = settings(ready, way, plan).map_err(|error| error.to_string())?;
    debug_assert_eq!(settings.analysis, Analysis::Dynamics);
    refuse_unfit(ready.side.model, ready.side.case, &settings).map_err(|error| error.to_string())?;
    let mut settings = settings;
    settings.judges_forces =
        ready.side.model.objectives.iter().any(mbs_codegen::model::Objective::depends_on_multipliers);
    let model = &ready.model;
    let limit = Duration::from_secs_f64(plan.limit);
    let mut best: Option<Ended> = None;
    let begun = Instant::now();
    for _ in 0..REPEATED.1 {
        let mut clock = Clock { until: Instant::now() + limit, late: false, stopped: false, go_on };
        let record = simulation::run(model, &settings, &mut clock);
        if let Some(failure) = &record.failure {
            return Err(reason(model, failure, clock.late, plan));
        }
        let steps = match record.effort {
            simulation::Effort::Implicit(effort) | simulation::Effort::Explicit(effort) => effort.steps,
            simulation::Effort::Unknown => 0,
        };
        let (mut gradient, mut gradient_seconds) = (Vec::new(), None);
        let program = model.program();
        if !program.objectives.is_empty() && !program.sensitivity.is_empty() {
            clock.until = Instant::now() + limit;
            let ran = gradient::prepare(model, &settings)
                .and_then(|start| gradient::simulate(model, &settings, start, &mut clock, None));
            let ran = ran.map_err(|failure| reason(model, &failure, clock.late, plan))?;
            (gradient, gradient_seconds) = (ran.found.derivatives, Some(ran.seconds));
        }
        let now = &record.seen.now;
        let run = Ended {
            z: now.z.clone(),
            v: now.v.clone(),
            objectives: record.seen.objectives(),
            gradient,
            steps,
            seconds: record.seconds,
            gradient_seconds,
        };
        best = Some(match best {
            None => run,
            Some(old) => Ended {
                seconds: old.seconds.min(run.seconds),
                gradient_seconds: old.gradient_seconds.zip(run.gradient_seconds).map(|(a, b)| a.min(b)),
                ..run
            },
        });
        if begun.elapsed().as_secs_f64() > REPEATED.0 {
            break;
        }
    }
    best.ok_or_else(|| "it was not run".into())
}

fn reason(model: &Interpreted, failure: &RunFailure, late: bool, plan: &Plan) -> String {
    match failure {
        RunFailure::Start(error) | RunFailure::Step(error) => error.describe(model).to_string(),
        RunFailure::Observe(t, error) => format!("at t = {t}: {}", error.describe(model)),
        RunFailure::Stopped(_) if late => format!("{TOO_LONG}{} s", plan.limit),
        RunFailure::Stopped(t) => format!("stopped at t = {t}"),
    }
}

fn measure(ready: &Ready<'_>, run: &Ended, first: &Ready<'_>, exact: &Ended) -> Measured {
    let (own, other) = (ready.model.program(), first.model.program());
    // Other coordinates have those of the joints, too.
    let by_name = |names: &[String], values: &[f64], wanted: &[String], exact: &[f64]| {
        let size = exact.iter().map(|x| x.abs()).fold(0.0, f64::max);
        let error = |(name, x): (&String, &f64)| {
            let place = names.iter().position(|own| own == name)?;
            Some((values[place] - x).abs())
        };
        let largest = wanted.iter().zip(exact).filter_map(error).fold(0.0, worse);
        relative(largest, size)
    };
    let state = worse(
        by_name(&own.coordinates, &run.z, &other.coordinates, &exact.z),
        by_name(&own.velocities, &run.v, &other.velocities, &exact.v),
    );
    let objective = |(a, b): (&f64, &f64)| relative((a - b).abs(), b.abs());
    let objectives = run.objectives.iter().zip(&exact.objectives).map(objective).reduce(worse);
    let sizes: Vec<f64> = parameter_sizes(&first.model).collect();
    let p = sizes.len().max(1);
    let gradient = |(a, b): (&[f64], &[f64])| {
        let of = |values: &mut dyn Iterator<Item = f64>| {
            values.zip(&sizes).map(|(x, size)| (x * size).abs()).fold(0.0, worse)
        };
        let error = of(&mut a.iter().zip(b).map(|(a, b)| a - b));
        relative(error, of(&mut b.iter().copied()))
    };
    let rows = run.gradient.chunks_exact(p).zip(exact.gradient.chunks_exact(p));
    let errors = Errors { state, objectives, gradient: rows.map(gradient).reduce(worse) };
    Measured { errors, steps: run.steps, seconds: run.seconds, gradient_seconds: run.gradient_seconds }
}

/// The larger one; NaN is larger than all.
fn worse(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) }
}

/// Of nothing, the difference itself.
fn relative(difference: f64, size: f64) -> f64 {
    if size > 0.0 { difference / size } else { difference }
}
