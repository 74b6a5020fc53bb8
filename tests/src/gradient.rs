//! Gradients of runs for the tests.

use crate::closed;
use mbs_engine::Interpreted;
use mbs_runtime::sensitivity::{DifferentiableStep, Differentiated, Gradient, StateDerivatives};
use mbs_runtime::{
    Assembly, Dims, Fixed, ObjectiveDerivatives, Output, Scalar, Sensitivities, Span, StartDerivatives,
    State, StepError,
};
use std::ops::ControlFlow;

/// Objectives and their gradient; parameters and their derivatives of the last node.
#[derive(Clone, Debug, Default)]
pub struct Outcome<S = f64> {
    /// ψ
    pub psi: Vec<S>,
    /// ψ_ρ, a row per objective.
    pub gradient: Vec<Vec<S>>,
    /// The state at the end.
    pub state: Vec<S>,
    /// Its derivatives.
    pub derivatives: Vec<S>,
}

/// An implicit run of a model from its own start.
pub fn implicit<M>(
    model: &M,
    inputs: &mut impl mbs_runtime::Inputs<M::S>,
    method: impl DifferentiableStep,
    h: f64,
    end: f64,
) -> Result<Outcome<M::S>, StepError>
where
    M: Sensitivities + StartDerivatives + ObjectiveDerivatives,
{
    let dims: Dims = model.dims();
    let zeros = |n: usize| vec![M::S::ZERO; n];
    let run = Differentiated(Fixed { method, h });
    let mut state = zeros(State::<M::S>::len(&dims));
    let mut derivatives = zeros(StateDerivatives::<M::S>::len(&dims));
    let mut gradient = zeros(Gradient::<M::S>::len(&dims));
    let mut scratch = zeros(run.scratch_len(&dims).max(Assembly::differentiated_scratch_len(&dims)));
    let (assembly, begin) = (Assembly::DEFAULT, M::S::ZERO);
    assembly.begin_differentiated(model, inputs, begin, &mut state, &mut derivatives, &mut scratch)?;
    let span = Span { start: M::S::ZERO, end: M::S::from_f64(end), output: Output::Steps };
    let watch = |_: mbs_runtime::formulation::Node<'_, M::S>| ControlFlow::Continue(());
    run.run(model, inputs, &mut state, &mut derivatives, &span, &mut gradient, &mut scratch, watch)?;
    let found = Gradient::of(&dims, &gradient)?;
    let rows = (0..dims.n_objectives).map(|i| found.of_objective(i).unwrap_or_default().to_vec());
    Ok(Outcome { psi: found.objectives.to_vec(), gradient: rows.collect(), state, derivatives })
}

/// [`implicit`] of a shipped model, interpreted.
pub fn of_shipped(name: &str, method: impl DifferentiableStep, h: f64, end: f64) -> Outcome {
    let model: Interpreted = closed::shipped(name);
    let outcome = implicit(&model, &mut model.input_signals(), method, h, end);
    outcome.unwrap_or_else(|error| panic!("{name}: {}", closed::said(&model, error)))
}
