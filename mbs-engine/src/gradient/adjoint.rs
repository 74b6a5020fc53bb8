//! Gradients by the adjoint of a run, and the choice between it and the direct derivative.
//!
//! Both are derivatives of the same discrete solution and agree to rounding. The direct one carries a column for each parameter along the
//! run; the adjoint goes back over the run once with a column for each objective, and keeps the steps for it or makes them again.

use super::products::{self, Watcher, Weights, counting, own_len, span};
use super::together::Together;
use super::{Effort, EventFound, Found, Start, is_constrained};
use crate::Interpreted;
use crate::dynamics::Dynamics;
use crate::method::{Damping, Method};
use crate::signals::Signals;
use mbs_codegen::model::{GradientMethod, Simulation};
use mbs_runtime::{
    Adjoint, AdjointIntegrator, AdjointNode, AdjointStatistics, Ali3p, Fixed, Quantity, Rk4, Scalar,
    Schedule, StepError, System, adjoint::pays_from,
};
use std::ops::ControlFlow;

/// Default memory of an adjoint, bytes.
pub const MEMORY: usize = 1 << 30;

/// How a gradient is computed, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// By the adjoint, or directly.
    pub adjoint: bool,
    /// By that of the continuous equations.
    pub continuous: bool,
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
        Choice { adjoint: false, continuous: false, why: why.into(), schedule: None, memory: 0 }
    }
}

/// Chooses how to compute a gradient. `memory`: in bytes, [`MEMORY`] by default. `trajectories`: whether derivatives along the
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
        (GradientMethod::Auto, _) => return Ok(Choice::direct("there are no objectives")),
        (_, what) => return Err(StepError::NotDifferentiable { what }),
    }
    let memory = memory.unwrap_or(MEMORY);
    let own = own_len(model, simulation, objectives);
    let all = memory / size_of::<f64>();
    let numbers = all.saturating_sub(own);
    let (span, h) = (span::<f64>(simulation), simulation.step);
    let schedule = match simulation.integrator {
        _ if products::has_events(model) => None,
        integrator if integrator.controls_steps() => None,
        _ if simulation.is_in_joint_form(is_constrained(model)) => {
            let damping = Damping::of(simulation, is_constrained(model), &[]);
            let mut choice = model.no_choice();
            let dims = Dynamics::new(model, damping, &mut choice).dims();
            AdjointIntegrator::schedule(&Adjoint(Fixed { method: Rk4, h }), &dims, &span, numbers)
                .map_err(|error| counting(own, all, error))?
        }
        // That of every implicit formulation.
        _ => {
            let schedule = Adjoint(Fixed { method: Ali3p::DEFAULT, h }).schedule(&dims, &span, numbers);
            Some(schedule.map_err(|error| counting(own, all, error))?)
        }
    };
    let continuous = asked == GradientMethod::ContinuousAdjoint;
    let adjoint = |why: String| Choice { adjoint: true, continuous, why, schedule, memory };
    if continuous {
        // It keeps all nodes, and says so if there is no room.
        return Ok(Choice { schedule: None, ..adjoint("that of the continuous equations, as asked".into()) });
    }
    if asked == GradientMethod::Adjoint {
        return Ok(adjoint("as asked".into()));
    }
    // A column for each parameter against one for each objective and the way back; see docs/adjoints.md for what was measured.
    let limit = pays_from(objectives, schedule.as_ref());
    let sides = format!("{} by {}", count(objectives, "objective"), count(p, "parameter"));
    Ok(match p >= limit {
        true => adjoint(format!("{sides}, and it pays from {limit} on")),
        false => Choice::direct(format!("{sides}, and the adjoint pays from {limit} on")),
    })
}

fn count(n: usize, word: &str) -> String {
    format!("{n} {word}{}", if n == 1 { "" } else { "s" })
}

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
    model.begin_run();
    let mut events: Vec<EventFound> = Vec::new();
    let mut together = Together::default();
    let first = products::has_events(model).then(|| start.clone());
    let mut watch = |node: AdjointNode<'_, f64>| {
        together.see(&node);
        match node {
            // A run whose memory was too small is made again.
            AdjointNode::Forward { number: 1, again: false, .. } => events.clear(),
            AdjointNode::Event { event, t, .. } => {
                events.push(EventFound { event, t, derivatives: Vec::new() })
            }
            _ => {}
        }
        observe(node)
    };
    let swept = sweep(model, &mut model.input_signals(), method, simulation, start, memory, &mut watch)?;
    if let Some(start) = first {
        together.check(model, method, simulation, || Ok(start))?;
    }
    Ok(Found {
        objectives: swept.objectives,
        derivatives: swept.derivatives,
        end: swept.end,
        effort: swept.effort,
        adjoint: Some(swept.statistics),
        parameters: model.dims().sensitivity.parameters,
        events,
    })
}

/// Objectives and their derivatives, in any numbers.
pub(super) struct Swept<S> {
    pub(super) objectives: Vec<S>,
    /// Of objective i by parameter k at `i * p + k`.
    pub(super) derivatives: Vec<S>,
    end: Vec<S>,
    effort: Effort,
    statistics: AdjointStatistics,
}

/// The product with each objective alone, and what the start depends on.
pub(super) fn sweep<S: Scalar>(
    model: &Interpreted<S>,
    inputs: &mut Signals<'_, S>,
    method: &Method,
    simulation: &Simulation,
    start: Start<S>,
    memory: usize,
    observe: Watcher<'_, S>,
) -> Result<Swept<S>, StepError> {
    let dims = model.dims();
    let (columns, p) = (dims.n_objectives, dims.sensitivity.parameters);
    let mut each = vec![S::ZERO; columns * columns];
    each.iter_mut().step_by(columns + 1).for_each(|weight| *weight = S::ONE);
    let (state, changes) = start.run_from(model, method)?;
    let weights = Weights { columns, objectives: &each, end: &[] };
    let found = products::weigh(model, inputs, method, simulation, state, weights, memory, observe)?;
    let derivatives = products::through_start(p, columns, &changes, &found);
    if let Some(bad) = derivatives.iter().position(|x| !x.is_finite()).filter(|_| !found.stopped()) {
        let (t, index) = (simulation.end, bad / p.max(1));
        return Err(StepError::NotFinite { t, h: 0.0, quantity: Quantity::Objective, index });
    }
    let products::Weighed { objectives, end, effort, statistics, .. } = found;
    Ok(Swept { objectives, derivatives, end, effort, statistics })
}
