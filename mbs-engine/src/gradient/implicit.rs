//! Differentiated runs in coordinate form.

use super::{Effort, EventFound, Found, Known, Moment, Node, Observer, Start, State, other_form};
use crate::Interpreted;
use mbs_codegen::model::Simulation;
use mbs_runtime::sensitivity::DifferentiableStep;
use mbs_runtime::{
    Assembly, Differentiated, Fixed, Gradient, Inputs, Occurrence, Output, Scalar, Sight, Span,
    StateDerivatives, StepError, System,
};
use std::ops::ControlFlow;

/// An assembled start and its derivatives.
pub(super) fn start<S: Scalar>(
    model: &Interpreted<S>,
    inputs: &mut impl Inputs<S>,
    begin: f64,
) -> Result<Start<S>, StepError> {
    let dims = model.dims();
    let mut state = vec![S::ZERO; mbs_runtime::State::<S>::len(&dims)];
    let mut derivatives = vec![S::ZERO; StateDerivatives::<S>::len(&dims)];
    let mut scratch = vec![S::ZERO; Assembly::differentiated_scratch_len(&dims)];
    let (assembly, changes, begin) = (Assembly::DEFAULT, &mut derivatives, S::from_f64(begin));
    let statistics =
        assembly.begin_differentiated(model, inputs, begin, &mut state, changes, &mut scratch)?;
    let scale = mbs_runtime::State::of(&dims, &mut state)?.scale.iter().map(|scale| scale.real()).collect();
    Ok(Start { state: State::Assembled { state, derivatives }, scale, statistics })
}

/// `multipliers`: whether the observer reads their derivatives.
pub(super) fn run(
    model: &Interpreted,
    method: impl DifferentiableStep,
    simulation: &Simulation,
    start: Start,
    multipliers: bool,
    observe: Observer<'_>,
) -> Result<Found, StepError> {
    let shown = multipliers || !start.redundant();
    let State::Assembled { mut state, mut derivatives } = start.state else { return Err(other_form()) };
    let dims = model.dims();
    let run = Differentiated(Fixed { method, h: simulation.step });
    let mut gradient = vec![0.0; Gradient::<f64>::len(&dims)];
    let span = Span { start: simulation.begin, end: simulation.end, output: Output::Steps };
    let columns = dims.sensitivity.parameters;
    let (n, rows) = (dims.nq * columns, if shown { dims.rows() * columns } else { 0 });
    let mut short = None;
    let mut watch = |node: mbs_runtime::formulation::Node<'_, f64>| {
        let part = |from: usize, len: usize| node.derivatives.get(from..from + len);
        let parts = (part(0, n), part(n, n), part(2 * n, n), part(3 * n, rows));
        let (Some(z), Some(zd), Some(zdd), Some(lambda_derivatives)) = parts else {
            let (expected, found) = (3 * n + rows, node.derivatives.len());
            short = Some(StepError::Length { what: "derivatives of the state", expected, found });
            return ControlFlow::Break(());
        };
        let lambda = node.lambda.get(..dims.rows()).unwrap_or_default();
        let known = Known::All(Node { motion: node.motion, lambda, z, zd, zdd, lambda_derivatives });
        observe(Moment { t: node.motion.t, known })
    };
    let (inputs, changes, gradients) = (&mut model.input_signals(), &mut derivatives, &mut gradient);
    let mut events = Vec::new();
    let statistics = if model.program().events.names.is_empty() {
        let mut scratch = vec![0.0; run.scratch_len(&dims)];
        run.run_showing(
            multipliers,
            model,
            inputs,
            &mut state,
            changes,
            &span,
            gradients,
            &mut scratch,
            watch,
        )?
    } else {
        let mut scratch = vec![0.0; run.implicit_event_scratch_len(model)];
        let see = |sight: Sight<'_, mbs_runtime::formulation::Node<'_, f64>, f64>| match sight {
            Sight::Node(node, _) => watch(node),
            Sight::Event(Occurrence { event, t, t_rho, .. }) => {
                events.push(EventFound { event, t, derivatives: t_rho.to_vec() });
                ControlFlow::Continue(())
            }
        };
        run.run_implicit_with_events(model, inputs, &mut state, changes, &span, gradients, &mut scratch, see)?
    };
    if let Some(error) = short {
        return Err(error);
    }
    let found = Gradient::of(&dims, &gradient)?;
    Ok(Found {
        objectives: found.objectives.to_vec(),
        derivatives: found.derivatives.to_vec(),
        end: state,
        effort: Effort::Implicit(statistics),
        adjoint: None,
        events,
        parameters: dims.sensitivity.parameters,
    })
}
