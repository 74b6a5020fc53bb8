//! A differentiated run with an observer: the counterpart of [`simulation::run`](crate::simulation::run).
//!
//! Input: a model with bundles of derivatives, settings, a [`Follower`]. Output: the gradient, or why there is none; rows under
//! [`trajectory_columns`](super::trajectory_columns) for the follower; curves of the derivatives of coordinates.

use super::adjoint::Choice;
use super::trajectory::trajectory_row;
use super::{Found, Moment, Start};
use crate::jumps::{Jump, Jumps};
use crate::simulation::{Curves, Follower, RunFailure, Settings, stride};
use crate::{Damping, Interpreted};
use mbs_runtime::AdjointNode;
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
    let simulation = &settings.simulation;
    let method = start.method(model, simulation);
    let damping = Damping::of(simulation, settings.constrained, &start.scale);
    let begin = Instant::now();
    let mut stopped = None;
    let watch = |node: AdjointNode<'_, f64>| {
        let (t, reached) = match node {
            // Forward, the clock of the run; steps made again and the way back only ask whether to go on.
            AdjointNode::Forward { t, again: false, .. } => (t, t),
            AdjointNode::Forward { t, .. } | AdjointNode::Backward { t, .. } => (t, simulation.end),
        };
        let flow = follower.reached(reached);
        stopped = flow.is_break().then_some(t).or(stopped);
        flow
    };
    let found = super::adjoint::run(model, &method, simulation, start, choice.memory, watch);
    let seconds = begin.elapsed().as_secs_f64();
    match stopped {
        Some(t) => Err(RunFailure::Stopped(t)),
        // Nobody has looked for jumps: an adjoint shows no states on the way.
        None => Ok(Ran { found: found.map_err(RunFailure::Step)?, damping, jumps: Vec::new(), seconds }),
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
    let watch = |mut moment: Moment<'_>| {
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
    let found = super::run(model, &method, simulation, start, watch);
    let seconds = begin.elapsed().as_secs_f64();
    match failure {
        Some(failure) => Err(failure),
        None => {
            let jumps = jumps.map_or_else(Vec::new, |jumps| jumps.found());
            Ok(Ran { found: found.map_err(RunFailure::Step)?, damping, jumps, seconds })
        }
    }
}
