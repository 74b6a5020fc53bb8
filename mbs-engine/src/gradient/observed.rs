//! A differentiated run with an observer: the counterpart of [`simulation::run`](crate::simulation::run).
//!
//! Input: a model with bundles of derivatives, settings, a [`Follower`]. Output: the gradient, or why there is none; rows under
//! [`trajectory_columns`](super::trajectory_columns) for the follower; curves of the derivatives of coordinates.

use super::adjoint::Choice;
use super::input_history::InputHistory;
use super::trajectory::trajectory_row;
use super::{Found, Moment, Start};
use crate::jumps::{Jump, Jumps};
use crate::simulation::{Curves, Follower, RunFailure, Settings, stride};
use crate::{Damping, Interpreted};
use mbs_runtime::{AdjointNode, Inputs, System};
use std::ops::ControlFlow;
use std::time::Instant;

/// What a run with derivatives left.
#[derive(Clone, Debug)]
pub struct Ran {
    /// Objectives and their gradient.
    pub found: Found,
    /// How constraints are enforced where they do not hold exactly.
    pub damping: Option<Damping>,
    /// Jumps it went through, which the gradient does not see.
    pub jumps: Vec<Jump>,
    /// Wall time, s.
    pub seconds: f64,
}

/// Where a run begins, and every how many nodes is a result.
pub fn prepare(model: &Interpreted, settings: &Settings) -> Result<(Start, usize), RunFailure> {
    let stride = stride(settings).map_err(RunFailure::Step)?;
    Ok((super::start(model, &settings.simulation).map_err(RunFailure::Start)?, stride))
}

/// The gradient of a run by its adjoint, or directly, as chosen. An adjoint has no rows for the follower.
pub fn simulate_as(
    model: &Interpreted,
    settings: &Settings,
    (start, stride): (Start, usize),
    choice: &Choice,
    follower: &mut dyn Follower,
) -> Result<Ran, RunFailure> {
    if !choice.adjoint {
        return simulate(model, settings, (start, stride), follower, None);
    }
    sweep(model, settings, start, (choice.continuous, choice.memory), follower, None)
}

/// The gradient of a run by its adjoint, in at most this many bytes, and derivatives by the history of its inputs.
pub fn simulate_backward(
    model: &Interpreted,
    settings: &Settings,
    start: Start,
    memory: usize,
    follower: &mut dyn Follower,
    history: Option<&mut InputHistory>,
) -> Result<Ran, RunFailure> {
    sweep(model, settings, start, (false, memory), follower, history)
}

/// The same by the discrete or the continuous adjoint.
fn sweep(
    model: &Interpreted,
    settings: &Settings,
    start: Start,
    (continuous, memory): (bool, usize),
    follower: &mut dyn Follower,
    mut history: Option<&mut InputHistory>,
) -> Result<Ran, RunFailure> {
    let simulation = &settings.simulation;
    let method = start.method(model, simulation);
    let damping = Damping::of(simulation, settings.constrained, &start.scale);
    let begin = Instant::now();
    let mut stopped = None;
    let mut jumps = Jumps::new(model);
    let (mut inputs, mut u) = (model.input_signals(), vec![0.0; model.dims().nu]);
    if let Some(jumps) = &mut jumps {
        inputs.at(simulation.begin, &mut u);
        start.show(jumps, model, simulation.begin, &u);
    }
    let explicit = method.is_explicit();
    let mut watch = |node: AdjointNode<'_, f64>| {
        if let Some(history) = history.as_deref_mut() {
            history.see(&node);
        }
        let (t, reached) = match node {
            // Forward, the clock of the run; steps made again and the way back only ask whether to go on.
            AdjointNode::Forward { t, again: false, z, rates, .. } => {
                // A run with step control is made a second time, as it was.
                if let Some(jumps) = jumps.as_mut().filter(|jumps| jumps.time() < t) {
                    inputs.at(t, &mut u);
                    jumps.see_state(model, explicit, t, z, rates, &u);
                }
                (t, t)
            }
            AdjointNode::Event { t, .. } => (t, t),
            AdjointNode::Forward { t, .. } | AdjointNode::Backward { t, .. } => (t, simulation.end),
        };
        let flow = follower.reached(reached);
        stopped = flow.is_break().then_some(t).or(stopped);
        flow
    };
    let found = match continuous {
        true => super::continuous::run(model, &method, simulation, start, memory, &mut watch),
        false => super::adjoint::run(model, &method, simulation, start, memory, watch),
    };
    let seconds = begin.elapsed().as_secs_f64();
    match stopped {
        Some(t) => Err(RunFailure::Stopped(t)),
        None => {
            let jumps = jumps.map_or_else(Vec::new, |jumps| jumps.found());
            Ok(Ran { found: found.map_err(RunFailure::Step)?, damping, jumps, seconds })
        }
    }
}

/// Runs the model with its derivatives. Those of coordinates go to the curves, if any: of coordinate i by parameter k at `i * p + k`.
pub fn simulate(
    model: &Interpreted,
    settings: &Settings,
    (start, stride): (Start, usize),
    follower: &mut dyn Follower,
    mut curves: Option<&mut Curves>,
) -> Result<Ran, RunFailure> {
    let simulation = &settings.simulation;
    let method = start.method(model, simulation);
    let damping = Damping::of(simulation, settings.constrained, &start.scale);
    let begin = Instant::now();
    let (mut nodes, mut failure) = (0, None);
    let mut jumps = Jumps::new(model);
    let multipliers = follower.wants_rows();
    let mut watch = |mut moment: Moment<'_>| {
        let t = moment.t;
        if let Some(jumps) = &mut jumps {
            moment.show(jumps, model);
        }
        let result = nodes % stride == 0 || t == simulation.end;
        nodes += 1;
        let mut goes_on = Ok(ControlFlow::Continue(()));
        if result && (follower.wants_rows() || curves.is_some()) {
            goes_on = moment.node(|node| {
                if let Some(curves) = curves.as_deref_mut() {
                    curves.sample(t, node.z);
                }
                match follower.wants_rows() {
                    true => follower.row(t, &trajectory_row(model.program(), &node)),
                    false => ControlFlow::Continue(()),
                }
            });
        }
        failure = match goes_on {
            Err(error) => Some(RunFailure::Observe(t, error)),
            Ok(go) if go.is_break() || follower.reached(t).is_break() => Some(RunFailure::Stopped(t)),
            Ok(_) => return ControlFlow::Continue(()),
        };
        ControlFlow::Break(())
    };
    let found = super::observed(model, &method, simulation, start, multipliers, &mut watch);
    let seconds = begin.elapsed().as_secs_f64();
    match failure {
        Some(failure) => Err(failure),
        None => {
            let jumps = jumps.map_or_else(Vec::new, |jumps| jumps.found());
            Ok(Ran { found: found.map_err(RunFailure::Step)?, damping, jumps, seconds })
        }
    }
}
