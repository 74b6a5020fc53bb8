//! Differentiated runs in joint form: of open trees, and under constraints of index 1 or penalty, with steps that end on them.

use super::completed::Completion;
use super::{Effort, EventFound, Found, Known, Moment, Observer, Start, State, other_form};
use crate::Interpreted;
use crate::dynamics::Dynamics;
use crate::method::{Damping, Method};
use mbs_codegen::model::Simulation;
use mbs_runtime::formulation::StartStatistics;
use mbs_runtime::sensitivity::{DifferentiatedAt, JointDynamics};
use mbs_runtime::{
    DifferentiableEventIntegrator, Gradient, JointDerivatives, Occurrence, Output, Scalar, Sight, Span,
    StepError, Stiff, System, WithEvents,
};
use std::ops::ControlFlow;

/// The start of an open tree.
pub(super) fn start<S: Scalar>(model: &Interpreted<S>) -> Result<Start<S>, StepError> {
    let dims = model.dims();
    let mut y = vec![S::ZERO; dims.state()];
    let mut derivatives = vec![S::ZERO; JointDerivatives::<S>::len(&dims)];
    let mut scratch = vec![S::ZERO; dims.sensitivity.start + dims.workspace];
    JointDerivatives::start(model, &mut y, &mut derivatives, &mut scratch)?;
    let statistics = StartStatistics::default();
    Ok(Start { state: State::Tree { y, derivatives }, scale: Vec::new(), statistics })
}

#[allow(clippy::too_many_arguments, reason = "a model, a method in its parts, a span and a start")]
pub(super) fn run(
    model: &Interpreted,
    method: &Method,
    integrator: impl DifferentiableEventIntegrator,
    damping: Option<Damping>,
    simulation: &Simulation,
    output: Output,
    start: Start,
    observe: Observer<'_>,
) -> Result<Found, StepError> {
    let span = Span { start: simulation.begin, end: simulation.end, output };
    let mut completion = Completion::new(model, damping, start.knows_multipliers(method));
    let mut choice = model.no_choice();
    let dynamics = &Dynamics::new(model, damping, &mut choice);
    integrate(model, dynamics, integrator, span, start, &mut completion, observe)
}

/// The same by implicit Runge–Kutta steps.
#[allow(clippy::too_many_arguments, reason = "a model, a method in its parts, a span and a start")]
pub(super) fn run_stiff(
    model: &Interpreted,
    method: &Method,
    integrator: impl DifferentiableEventIntegrator,
    damping: Option<Damping>,
    simulation: &Simulation,
    output: Output,
    start: Start,
    observe: Observer<'_>,
) -> Result<Found, StepError> {
    let span = Span { start: simulation.begin, end: simulation.end, output };
    let mut completion = Completion::new(model, damping, start.knows_multipliers(method));
    let mut choice = model.no_choice();
    let dynamics = Stiff(&Dynamics::new(model, damping, &mut choice));
    integrate(model, &dynamics, integrator, span, start, &mut completion, observe)
}

/// y = \[z, v\] at the start, and its derivatives.
pub(super) fn joint_start<S: Scalar>(
    model: &Interpreted<S>,
    start: Start<S>,
) -> Result<(Vec<S>, Vec<S>), StepError> {
    let dims = model.dims();
    let (y, derivatives) = match start.state {
        State::Tree { y, derivatives } => (y, derivatives),
        State::Assembled { mut state, derivatives: mut changes } => {
            let mut y = vec![S::ZERO; dims.state()];
            let mut derivatives = vec![S::ZERO; JointDerivatives::<S>::len(&dims)];
            JointDerivatives::of_state(model, &mut state, &mut changes, &mut y, &mut derivatives)?;
            (y, derivatives)
        }
    };
    if y.len() == dims.state() { Ok((y, derivatives)) } else { Err(other_form()) }
}

fn integrate(
    model: &Interpreted,
    dynamics: &(impl JointDynamics<S = f64, Model = Interpreted> + WithEvents<Model = Interpreted>),
    integrator: impl DifferentiableEventIntegrator,
    span: Span<f64>,
    start: Start,
    completion: &mut Completion,
    observe: Observer<'_>,
) -> Result<Found, StepError> {
    let dims = model.dims();
    let (mut y, mut derivatives) = joint_start(model, start)?;
    let mut gradient = vec![0.0; Gradient::<f64>::len(&dims)];
    let mut events = Vec::new();
    let mut watch = |at: DifferentiatedAt<'_, f64>| {
        observe(Moment { t: at.at.t, known: Known::Joints(completion, model, at) })
    };
    let (inputs, changes, gradients) = (&mut model.input_signals(), &mut derivatives, &mut gradient);
    let statistics = if model.program().events.names.is_empty() {
        let mut scratch = vec![0.0; integrator.scratch_len(dynamics)];
        integrator.run(dynamics, inputs, &mut y, changes, &span, gradients, &mut scratch, watch)?
    } else {
        let mut scratch = vec![0.0; integrator.event_scratch_len(dynamics)];
        let see = |sight: Sight<'_, DifferentiatedAt<'_, f64>, f64>| match sight {
            Sight::Node(at, _) => watch(at),
            Sight::Event(Occurrence { event, t, t_rho, .. }) => {
                events.push(EventFound { event, t, derivatives: t_rho.to_vec() });
                ControlFlow::Continue(())
            }
        };
        integrator.run_with_events(dynamics, inputs, &mut y, changes, &span, gradients, &mut scratch, see)?
    };
    let found = Gradient::of(&dims, &gradient)?;
    Ok(Found {
        objectives: found.objectives.to_vec(),
        derivatives: found.derivatives.to_vec(),
        end: y,
        effort: Effort::Explicit(statistics),
        adjoint: None,
        events,
        parameters: dims.sensitivity.parameters,
    })
}
