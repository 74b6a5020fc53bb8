//! Runs of equal implicit steps together with their derivatives by the parameters.
//!
//! Enters: a state and its derivatives at the start, see [`Assembly::start_differentiated`](crate::Assembly). Leaves: both at the
//! end, objectives and their gradient; derivatives at every node for an observer. The states are those of
//! [`Fixed::run`](crate::Fixed), bit for bit.

use core::ops::ControlFlow;

use super::derivatives::{ObjectiveDerivatives, Sensitivities};
#[allow(unused_imports, reason = "named in the documentation")]
use super::objectives::Gradient;
use super::objectives::Integrals;
use super::state::StateDerivatives;
use super::step::{LinearisedStep, Purpose, scratch_len};
use crate::constrained::Motion;
use crate::error::StepError;
use crate::formulation::{Ali3p, ImplicitIndex1, ImplicitStep, Record, RunStatistics, State, StepStatistics};
use crate::inputs::Inputs;
use crate::integrator::{Fixed, Nodes, Span};
use crate::linear::{all_finite, copy};
use crate::pieces::Pieces;
use crate::scalar::Scalar;
use crate::system::{Dims, Quantity};

/// A run with derivatives: that of [`Fixed`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Differentiated<T>(pub T);

/// An implicit step with a derivative.
pub trait DifferentiableStep: ImplicitStep {
    /// [`ImplicitStep::step`] that also fills the [`Record`] of the step.
    fn step_recorded<M: Sensitivities, I: Inputs<M::S>>(
        &self,
        system: &M,
        inputs: &mut I,
        state: &mut [M::S],
        h: M::S,
        record: &mut [M::S],
        scratch: &mut [M::S],
    ) -> Result<StepStatistics, StepError>;

    /// The derivative of the recorded step, which lives in the scratch of [`Ali3p::linearised_scratch_len`] values.
    fn linearise<'a, M: Sensitivities>(
        &self,
        system: &'a M,
        record: &mut [M::S],
        scratch: &'a mut [M::S],
    ) -> Result<LinearisedStep<'a, M>, StepError>;

    /// [`DifferentiableStep::step_recorded`] and the derivative of the step at once, which is less work. Where rows depend on each other and
    /// `multipliers` are not asked for, λ′ is that of some multipliers that give the same forces, for still less.
    #[allow(clippy::too_many_arguments, reason = "what a step reads and writes")]
    fn step_linearised<'a, M: Sensitivities, I: Inputs<M::S>>(
        &self,
        multipliers: bool,
        system: &'a M,
        inputs: &mut I,
        state: &mut [M::S],
        h: M::S,
        record: &mut [M::S],
        scratch: &'a mut [M::S],
    ) -> Result<(StepStatistics, LinearisedStep<'a, M>), StepError>;
}

macro_rules! differentiable_step {
    ($($formulation:ty),+) => {
        $(
            impl DifferentiableStep for $formulation {
                #[inline(always)]
                fn step_recorded<M: Sensitivities, I: Inputs<M::S>>(
                    &self,
                    system: &M,
                    inputs: &mut I,
                    state: &mut [M::S],
                    h: M::S,
                    record: &mut [M::S],
                    scratch: &mut [M::S],
                ) -> Result<StepStatistics, StepError> {
                    self.step_recorded(system, inputs, state, h, record, scratch)
                }

                #[inline(always)]
                fn linearise<'a, M: Sensitivities>(
                    &self,
                    system: &'a M,
                    record: &mut [M::S],
                    scratch: &'a mut [M::S],
                ) -> Result<LinearisedStep<'a, M>, StepError> {
                    self.linearise(system, record, scratch)
                }

                #[inline(always)]
                fn step_linearised<'a, M: Sensitivities, I: Inputs<M::S>>(
                    &self,
                    multipliers: bool,
                    system: &'a M,
                    inputs: &mut I,
                    state: &mut [M::S],
                    h: M::S,
                    record: &mut [M::S],
                    scratch: &'a mut [M::S],
                ) -> Result<(StepStatistics, LinearisedStep<'a, M>), StepError> {
                    let step = self.step_recorded(system, inputs, state, h, record, scratch)?;
                    // Factors of the dense LU stand elsewhere.
                    let purpose = Purpose { multipliers, kept: step.fallbacks == 0 };
                    Ok((step, self.linearise_for(purpose, system, record, scratch)?))
                }
            }
        )+
    };
}
differentiable_step!(Ali3p, ImplicitIndex1);

/// What an observer sees at a node.
#[derive(Clone, Copy, Debug)]
pub struct DifferentiatedNode<'a, S> {
    /// Time, coordinates, rates, accelerations; inputs with which the next step begins.
    pub motion: Motion<'a, S>,
    /// Multipliers.
    pub lambda: &'a [S],
    /// Derivatives of both, as [`StateDerivatives`].
    pub derivatives: &'a [S],
    /// The step that ends here; nothing but zeros at the start.
    pub step: StepStatistics,
}

impl<T: DifferentiableStep> Differentiated<Fixed<T>> {
    /// Length of the scratch that a run needs, at least.
    pub fn scratch_len(&self, dims: &Dims) -> usize {
        let step = self.0.method.scratch_len(dims);
        let linearised = scratch_len(dims);
        let most = if step > linearised { step } else { linearised };
        dims.nu
            + State::<f64>::len(dims)
            + Record::<f64>::len(dims)
            + StateDerivatives::<f64>::len(dims)
            + Integrals::<f64>::scratch_len(dims)
            + most
    }

    /// Integrates the [`State`] and its [`StateDerivatives`] from start to end of the span; its time must be the start.
    ///
    /// Writes objectives and their derivatives to `gradient`, see [`Gradient`]. The observer sees start, end, and what
    /// [`Span::output`] says, each time once and in order. Where it breaks the run ends, and the objectives are those of the
    /// run so far. After an error state and derivatives are those after the last good step, and the gradient is meaningless. Where rows
    /// depend on each other, derivatives of multipliers are those of least norm at observed nodes, or if objectives name them.
    #[allow(clippy::too_many_arguments, reason = "what a run reads and writes")]
    pub fn run<M, I, O>(
        &self,
        system: &M,
        inputs: &mut I,
        state: &mut [M::S],
        derivatives: &mut [M::S],
        span: &Span<M::S>,
        gradient: &mut [M::S],
        scratch: &mut [M::S],
        mut observe: O,
    ) -> Result<RunStatistics, StepError>
    where
        M: Sensitivities + ObjectiveDerivatives,
        I: Inputs<M::S>,
        O: FnMut(DifferentiatedNode<'_, M::S>) -> ControlFlow<()>,
    {
        let Fixed { method, h } = &self.0;
        let nodes = Nodes::new(span, *h)?;
        let dims = system.dims();
        let t = *State::of(&dims, state)?.t;
        if t != span.start {
            let what = "the state's time must be the start of the span";
            return Err(StepError::Setting { what, value: t.real() });
        }
        StateDerivatives::of(&dims, derivatives)?;
        let mut pieces = Pieces::of(scratch, self.scratch_len(&dims));
        let u = pieces.next(dims.nu)?;
        let record = pieces.next(Record::<M::S>::len(&dims))?;
        let kept = pieces.next(State::<M::S>::len(&dims))?;
        let next = pieces.next(StateDerivatives::<M::S>::len(&dims))?;
        let mut integrals = Integrals::new(&dims, gradient, &mut pieces)?;
        let scratch = pieces.rest();

        let judged = 3 * dims.nq..3 * dims.nq + dims.rows();
        let mut places = system.objective_places().into_iter().flatten();
        let judges_multipliers = places.any(|(_, column)| judged.contains(&(*column as usize)));
        let mut t = t;
        let mut statistics = RunStatistics { t: t.real(), ..RunStatistics::default() };
        let mut last = StepStatistics::default();
        loop {
            let number = statistics.steps;
            if !u.is_empty() {
                inputs.at(t, u);
            }
            let view = State::of(&dims, state)?;
            let (motion, lambda) = (view.motion(u), &*view.lambda);
            let failed = |error: crate::EvalError| error.in_step(t.real(), 0.0);
            integrals.add_node(system, motion, lambda, derivatives, scratch).map_err(failed)?;
            if nodes.observed(number) || number == 0 {
                let node = DifferentiatedNode { motion, lambda, derivatives, step: last };
                statistics.stopped = observe(node).is_break();
            }
            if number == nodes.steps || statistics.stopped {
                integrals.add_terminals(system, motion, lambda, derivatives, scratch).map_err(failed)?;
                return Ok(statistics);
            }
            let h = nodes.size(number + 1, t);
            copy(kept, state);
            // The next step does not read λ′.
            let multipliers = nodes.observed(number + 1) || judges_multipliers;
            let step =
                advance(method, multipliers, system, inputs, state, derivatives, h, record, next, scratch);
            last = step.inspect_err(|_| copy(state, kept))?;
            t = nodes.time(number + 1);
            *State::of(&dims, state)?.t = t;
            statistics.add(&last);
            (statistics.t, statistics.h) = (t.real(), h.real());
        }
    }
}

/// One step of the state and its derivatives; after an error the derivatives are as before.
#[inline(always)]
#[allow(clippy::too_many_arguments, reason = "what a step reads and writes")]
fn advance<T: DifferentiableStep, M: Sensitivities, I: Inputs<M::S>>(
    method: &T,
    multipliers: bool,
    system: &M,
    inputs: &mut I,
    state: &mut [M::S],
    derivatives: &mut [M::S],
    h: M::S,
    record: &mut [M::S],
    next: &mut [M::S],
    scratch: &mut [M::S],
) -> Result<StepStatistics, StepError> {
    let dims = system.dims();
    let t = State::of(&dims, state)?.t.real();
    let (step, mut linearised) =
        method.step_linearised(multipliers, system, inputs, state, h, record, scratch)?;
    linearised.sensitivities(derivatives, next)?;
    if !all_finite(next) {
        let bad = next.iter().position(|x| !x.is_finite()).unwrap_or(0);
        let index = bad % dims.sensitivity.parameters.max(1);
        return Err(StepError::NotFinite { t, h: h.real(), quantity: Quantity::Sensitivity, index });
    }
    copy(derivatives, next);
    Ok(step)
}
