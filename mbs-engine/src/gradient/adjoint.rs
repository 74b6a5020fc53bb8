//! Gradients by the adjoint of a run, and the choice between it and the direct derivative.
//!
//! Both are derivatives of the same discrete solution and agree to rounding. The direct one carries a column for each parameter along the
//! run; the adjoint goes back over the run once with a column for each objective, and keeps the steps for it or makes them again.

use super::explicit::dynamics;
use super::{Effort, Found, Start, State, is_explicit, joint_start, other_form};
use crate::Interpreted;
use crate::method::Method;
use mbs_codegen::model::{GradientMethod, Integrator, Simulation};
use mbs_runtime::sensitivity::{DifferentiableStep, JointDynamics};
use mbs_runtime::{
    Adjoint, AdjointIntegrator, AdjointNode, AdjointStatistics, Ali3p, Fixed, Gradient, Output, Rk4,
    Schedule, Span, StepError, System,
};
use std::ops::ControlFlow;

/// Memory that an adjoint may take if nobody says, bytes.
pub const MEMORY: usize = 1 << 30;

/// How a gradient is computed, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// By the adjoint, or directly.
    pub adjoint: bool,
    /// Why.
    pub why: String,
    /// How the memory will be used; none for a direct run, or where the number of steps is not known before it.
    pub schedule: Option<Schedule>,
    /// Memory for the adjoint, bytes.
    pub memory: usize,
}

impl Choice {
    /// The direct derivative.
    pub fn direct(why: impl Into<String>) -> Choice {
        Choice { adjoint: false, why: why.into(), schedule: None, memory: 0 }
    }
}

/// Chooses how to compute a gradient. `memory`: in bytes, [`MEMORY`] if nobody says. `trajectories`: whether derivatives along the
/// run are wanted, which the direct one alone has.
pub fn choose(
    model: &Interpreted,
    simulation: &Simulation,
    asked: GradientMethod,
    memory: Option<usize>,
    trajectories: bool,
) -> Result<Choice, StepError> {
    let dims = model.dims();
    let (p, objectives) = (dims.sensitivity.parameters, dims.n_objectives);
    let reason = match asked {
        GradientMethod::Direct => return Ok(Choice::direct("as asked")),
        _ if trajectories => {
            "the adjoint has no derivatives along the run: choose the direct method for them"
        }
        _ if !model.program().events.names.is_empty() => {
            "there is no adjoint of a run with events yet: choose the direct method"
        }
        _ if objectives == 0 => {
            "the adjoint needs objectives, and the model has none: choose the direct method"
        }
        _ => "",
    };
    match (asked, reason) {
        (_, "") => {}
        (GradientMethod::Auto, _) if trajectories => {
            return Ok(Choice::direct("derivatives along the run are asked for"));
        }
        (GradientMethod::Auto, _) if objectives == 0 => {
            return Ok(Choice::direct("there are no objectives"));
        }
        (GradientMethod::Auto, _) => return Ok(Choice::direct("the run has events")),
        (_, what) => return Err(StepError::NotDifferentiable { what }),
    }
    let memory = memory.unwrap_or(MEMORY);
    let numbers = memory / size_of::<f64>();
    let (span, h) = (span(simulation), simulation.step);
    let schedule = match simulation.integrator {
        Integrator::DormandPrince => None,
        Integrator::Rk4 => {
            AdjointIntegrator::schedule(&Adjoint(Fixed { method: Rk4, h }), &dims, &span, numbers)?
        }
        // That of every implicit formulation.
        _ => Some(Adjoint(Fixed { method: Ali3p::DEFAULT, h }).schedule(&dims, &span, numbers)?),
    };
    let adjoint = |why: String| Choice { adjoint: true, why, schedule, memory };
    if asked == GradientMethod::Adjoint {
        return Ok(adjoint("as asked".into()));
    }
    // A column for each parameter against one for each objective and the way back; see docs/adjoints.md for what was measured.
    let again = schedule.map_or(1.0, |plan| plan.recomputed() as f64 / plan.steps.max(1) as f64);
    let limit = (2.0 * objectives as f64 + 4.0 + 4.0 * again).ceil();
    let sides = format!("{} by {}", count(objectives, "objective"), count(p, "parameter"));
    Ok(match p as f64 >= limit {
        true => adjoint(format!("{sides}, and it pays from {limit} on")),
        false => Choice::direct(format!("{sides}, and the adjoint pays from {limit} on")),
    })
}

fn count(n: usize, word: &str) -> String {
    format!("{n} {word}{}", if n == 1 { "" } else { "s" })
}

fn span(simulation: &Simulation) -> Span<f64> {
    Span { start: simulation.begin, end: simulation.end, output: Output::Steps }
}

/// Who sees the steps and nodes of an adjoint run.
type Watcher<'a> = &'a mut dyn FnMut(AdjointNode<'_, f64>) -> ControlFlow<()>;

/// The gradient of a run by its adjoint, in at most this many bytes. The observer sees every step and every node of the way back; where
/// it breaks, the gradient is meaningless.
pub fn run(
    model: &Interpreted,
    method: &Method,
    simulation: &Simulation,
    start: Start,
    memory: usize,
    mut observe: impl FnMut(AdjointNode<'_, f64>) -> ControlFlow<()>,
) -> Result<Found, StepError> {
    debug_assert_eq!(is_explicit(simulation), method.is_explicit());
    if !model.program().events.names.is_empty() {
        let what = "there is no adjoint of a run with events yet: choose the direct method";
        return Err(StepError::Unsupported { what });
    }
    let (h, observe): (f64, Watcher<'_>) = (simulation.step, &mut observe);
    match *method {
        Method::Ali3p(method) => implicit(model, Fixed { method, h }, simulation, start, memory, observe),
        Method::Index1(method) => implicit(model, Fixed { method, h }, simulation, start, memory, observe),
        Method::Rk4(damping) => {
            let run = Adjoint(Fixed { method: Rk4, h });
            let numbers = AdjointIntegrator::schedule(
                &run,
                &model.dims(),
                &span(simulation),
                memory / size_of::<f64>(),
            )?;
            let numbers = numbers.map_or(memory / size_of::<f64>(), |plan| plan.memory_len());
            match damping {
                Some(damping) => {
                    explicit(model, &dynamics(model, damping), run, simulation, start, numbers, observe)
                }
                None => explicit(model, model, run, simulation, start, numbers, observe),
            }
        }
        Method::DormandPrince(control, damping) => {
            let (run, numbers) = (Adjoint(control), memory / size_of::<f64>());
            match damping {
                Some(damping) => {
                    explicit(model, &dynamics(model, damping), run, simulation, start, numbers, observe)
                }
                None => explicit(model, model, run, simulation, start, numbers, observe),
            }
        }
    }
}

fn implicit<T: DifferentiableStep>(
    model: &Interpreted,
    fixed: Fixed<T>,
    simulation: &Simulation,
    start: Start,
    memory: usize,
    observe: Watcher<'_>,
) -> Result<Found, StepError> {
    let State::Assembled { mut state, derivatives } = start.state else { return Err(other_form()) };
    let (dims, span, run) = (model.dims(), span(simulation), Adjoint(fixed));
    let schedule = run.schedule(&dims, &span, memory / size_of::<f64>())?;
    let mut gradient = vec![0.0; Gradient::<f64>::len(&dims)];
    let mut scratch = vec![0.0; run.gradient_scratch_len(&dims)];
    let mut memory = vec![0.0; schedule.memory_len()];
    let (mut inputs, state) = (model.input_signals(), &mut state);
    let statistics = run.gradient(
        model,
        &mut inputs,
        state,
        &derivatives,
        &span,
        &mut gradient,
        &mut memory,
        &mut scratch,
        observe,
    )?;
    found(model, &gradient, Effort::Implicit(statistics.run), statistics)
}

fn explicit(
    model: &Interpreted,
    dynamics: &impl JointDynamics<S = f64, Model = Interpreted>,
    run: impl AdjointIntegrator,
    simulation: &Simulation,
    start: Start,
    numbers: usize,
    observe: Watcher<'_>,
) -> Result<Found, StepError> {
    let (dims, span) = (model.dims(), span(simulation));
    let (mut y, derivatives) = joint_start(model, start)?;
    let mut gradient = vec![0.0; Gradient::<f64>::len(&dims)];
    let mut scratch = vec![0.0; run.gradient_scratch_len(dynamics)];
    // What is not touched takes no memory.
    let mut memory = vec![0.0; numbers];
    let mut inputs = model.input_signals();
    let statistics = run.gradient(
        dynamics,
        &mut inputs,
        &mut y,
        &derivatives,
        &span,
        &mut gradient,
        &mut memory,
        &mut scratch,
        observe,
    )?;
    found(model, &gradient, Effort::Explicit(statistics.run), statistics)
}

fn found(
    model: &Interpreted,
    gradient: &[f64],
    effort: Effort,
    statistics: AdjointStatistics,
) -> Result<Found, StepError> {
    let dims = model.dims();
    let found = Gradient::of(&dims, gradient)?;
    Ok(Found {
        objectives: found.objectives.to_vec(),
        derivatives: found.derivatives.to_vec(),
        effort,
        adjoint: Some(statistics),
        events: Vec::new(),
        parameters: dims.sensitivity.parameters,
    })
}
