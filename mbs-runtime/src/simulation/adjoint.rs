//! The gradient of a model's simulation by the adjoint of its run, in memory of the caller.
//!
//! Input: parameters, and memory of any length. Output: what [`gradient`](super::gradient()) gives, to rounding. The memory holds everything: the state
//! and its derivatives, the scratch, and records and states of steps as its length allows. [`adjoint_memory_len`] says what is enough to make no
//! step twice; with less, steps are made again, and too little is an error that says how much is needed.

use core::ops::ControlFlow;

use super::gradient::{DifferentiableExplicit, DifferentiableMethod, named};
use super::method::{Projected, Stabilised, Tree, larger};
use super::{Array, Differentiable, Error, Settings, Signals};
use crate::adjoint::{Adjoint, AdjointIntegrator, AdjointNode, AdjointStatistics, Schedule};
use crate::constrained::{ConstrainedDynamics, ConstraintCorrection};
use crate::error::StepError;
use crate::formulation::{Ali3p, Assembly, OnConstraints, State};
use crate::inputs::Inputs;
use crate::integrator::{Adaptive, Fixed, Rk4};
use crate::named::Memory;
use crate::pieces::Pieces;
use crate::scalar::Scalar;
use crate::sensitivity::{
    DifferentiableStep, JointDerivatives, JointObjectiveDerivatives, JointSensitivities,
    ObjectiveDerivatives, Sensitivities, StartDerivatives, StateDerivatives,
};
use crate::system::{ForwardDynamics, System};

/// A method whose runs have an adjoint.
pub trait AdjointMethod<M: System>: DifferentiableMethod<M> {
    /// Numbers that a run needs beside records and states of steps.
    fn own_len(&self, model: &M) -> usize;

    /// How a run would use this many numbers beside its own; none if the number of steps is not known before it.
    fn schedule(&self, model: &M, settings: &Settings, numbers: usize)
    -> Result<Option<Schedule>, StepError>;

    /// A whole run, forward and back: writes the objectives, then their derivatives, as [`Gradient`](crate::Gradient) has them.
    fn adjoint<I: Inputs<M::S>>(
        self,
        model: &M,
        inputs: &mut I,
        settings: &Settings,
        memory: &mut [M::S],
        values: &mut [M::S],
    ) -> Result<AdjointStatistics, StepError>;
}

/// Length of the memory in which no step is made twice; none if the number of steps is not known before the run.
pub fn adjoint_memory_len<M: Differentiable>(
    parameters: &M::Parameters,
    settings: Settings,
) -> Result<Option<usize>, Error<M>>
where
    M::Method: AdjointMethod<M>,
{
    let model = M::with(*parameters);
    let schedule = M::METHOD.schedule(&model, &settings, usize::MAX)?;
    Ok(schedule.map(|schedule| M::METHOD.own_len(&model).saturating_add(schedule.memory_len())))
}

/// Objectives of the model's simulation with these parameters and settings, their gradient by the adjoint, and what it took.
pub fn gradient_by_adjoint<M: Differentiable>(
    parameters: &M::Parameters,
    settings: Settings,
    memory: &mut [M::S],
) -> Result<(M::Gradient, AdjointStatistics), Error<M>>
where
    M::Method: AdjointMethod<M>,
{
    M::check(parameters)?;
    let model = M::with(*parameters);
    let (own, found) = (M::METHOD.own_len(&model), memory.len());
    let mut values = Array::<M::Gradient, M::S>::ZERO;
    let mut inputs = Signals(&model);
    let run = M::METHOD.adjoint(&model, &mut inputs, &settings, memory, values.values_mut());
    let statistics = run.map_err(|error| match error {
        // All of the memory, not only what is left for steps.
        StepError::Length { what: "memory", expected, .. } => {
            StepError::Length { what: "memory", expected: expected.saturating_add(own), found }
        }
        error => error,
    })?;
    Ok((named::<M>(&model, values.values())?, statistics))
}

fn unseen<S>(_: AdjointNode<'_, S>) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// The first `len` numbers, and the rest.
fn split<S>(memory: &mut [S], len: usize) -> Result<(&mut [S], &mut [S]), StepError> {
    let wrong = StepError::Length { what: "memory", expected: 0, found: 0 };
    memory.split_at_mut_checked(len).ok_or(wrong)
}

fn implicit_len<M>(model: &M, method: impl DifferentiableStep) -> usize
where
    M: Sensitivities + ObjectiveDerivatives,
{
    let dims = model.dims();
    let run = Adjoint(Fixed { method, h: 0.0 });
    let scratch = larger(Assembly::differentiated_scratch_len(&dims), run.gradient_scratch_len(&dims));
    State::<f64>::len(&dims) + StateDerivatives::<f64>::len(&dims) + scratch
}

/// The assembled start and its derivatives, and the adjoint of a run from it by the method that `settle` makes of the rows' scale.
fn implicit<M, T: DifferentiableStep>(
    own: usize,
    model: &M,
    inputs: &mut impl Inputs<M::S>,
    settings: &Settings,
    memory: &mut [M::S],
    values: &mut [M::S],
    settle: impl FnOnce(&[M::S]) -> T,
) -> Result<AdjointStatistics, StepError>
where
    M: Sensitivities + ObjectiveDerivatives + StartDerivatives,
{
    let dims = model.dims();
    let (first, memory) = split(memory, own)?;
    let mut pieces = Pieces::of(first, own);
    let state = pieces.next(State::<f64>::len(&dims))?;
    let derivatives = pieces.next(StateDerivatives::<f64>::len(&dims))?;
    let scratch = pieces.rest();
    let begin = M::S::from_f64(settings.begin);
    Assembly::DEFAULT.begin_differentiated(model, inputs, begin, state, derivatives, scratch)?;
    let run = Adjoint(Fixed { method: settle(State::of(&dims, state)?.scale), h: settings.step });
    run.gradient(model, inputs, state, derivatives, &settings.span(), values, memory, scratch, unseen)
}

macro_rules! implicit_adjoint {
    ($method:ty, |$this:ident| $inner:expr, |$settled:ident, $settings:ident, $scale:ident| $settle:expr) => {
        impl<M> AdjointMethod<M> for $method
        where
            M: Sensitivities + ObjectiveDerivatives + StartDerivatives,
        {
            fn own_len(&self, model: &M) -> usize {
                let $this = self;
                implicit_len(model, $inner)
            }

            fn schedule(
                &self,
                model: &M,
                settings: &Settings,
                numbers: usize,
            ) -> Result<Option<Schedule>, StepError> {
                let $this = self;
                let run = Adjoint(Fixed { method: $inner, h: settings.step });
                run.schedule(&model.dims(), &settings.span::<M::S>(), numbers).map(Some)
            }

            #[allow(unused_mut, reason = "one of the methods settles itself")]
            fn adjoint<I: Inputs<M::S>>(
                self,
                model: &M,
                inputs: &mut I,
                settings: &Settings,
                memory: &mut [M::S],
                values: &mut [M::S],
            ) -> Result<AdjointStatistics, StepError> {
                let own = self.own_len(model);
                let (mut $settled, $settings) = (self, settings);
                implicit(own, model, inputs, settings, memory, values, |$scale| $settle)
            }
        }
    };
}
implicit_adjoint!(Ali3p, |this| *this, |method, _settings, _scale| method);
implicit_adjoint!(Stabilised, |this| this.method, |method, settings, scale| {
    method.settle(settings.step, scale);
    method.method
});

/// An explicit integrator whose runs have an adjoint.
pub trait AdjointExplicit: DifferentiableExplicit {
    /// The adjoint of a run with these settings.
    fn backward(self, settings: &Settings) -> impl AdjointIntegrator;
}

impl AdjointExplicit for Rk4 {
    fn backward(self, settings: &Settings) -> impl AdjointIntegrator {
        Adjoint(Fixed { method: self, h: settings.step })
    }
}

impl AdjointExplicit for Adaptive {
    fn backward(self, _: &Settings) -> impl AdjointIntegrator {
        Adjoint(self)
    }
}

/// Lengths do not depend on settings.
const ANY: Settings = Settings { begin: 0.0, end: 0.0, step: 1.0 };

impl<M, T: AdjointExplicit> AdjointMethod<M> for Tree<T>
where
    M: ForwardDynamics + StartDerivatives + JointSensitivities + JointObjectiveDerivatives,
{
    fn own_len(&self, model: &M) -> usize {
        let dims = model.dims();
        let run = self.0.backward(&ANY).gradient_scratch_len(model);
        let start = dims.sensitivity.start + dims.workspace;
        dims.state() + JointDerivatives::<f64>::len(&dims) + larger(start, run)
    }

    fn schedule(
        &self,
        model: &M,
        settings: &Settings,
        numbers: usize,
    ) -> Result<Option<Schedule>, StepError> {
        self.0.backward(settings).schedule(&model.dims(), &settings.span::<M::S>(), numbers)
    }

    fn adjoint<I: Inputs<M::S>>(
        self,
        model: &M,
        inputs: &mut I,
        settings: &Settings,
        memory: &mut [M::S],
        values: &mut [M::S],
    ) -> Result<AdjointStatistics, StepError> {
        let (dims, own) = (model.dims(), self.own_len(model));
        let (first, memory) = split(memory, own)?;
        let mut pieces = Pieces::of(first, own);
        let y = pieces.next(dims.state())?;
        let derivatives = pieces.next(JointDerivatives::<f64>::len(&dims))?;
        let scratch = pieces.rest();
        JointDerivatives::start(model, y, derivatives, scratch)?;
        let run = self.0.backward(settings);
        run.gradient(model, inputs, y, derivatives, &settings.span(), values, memory, scratch, unseen)
    }
}

impl<M, T: AdjointExplicit> AdjointMethod<M> for Projected<T>
where
    M: Sensitivities + StartDerivatives + JointSensitivities + JointObjectiveDerivatives,
    M: ConstrainedDynamics + ConstraintCorrection,
{
    fn own_len(&self, model: &M) -> usize {
        let dims = model.dims();
        let run = self.integrator.backward(&ANY).gradient_scratch_len(&OnConstraints(self.dynamics(model)));
        let assembled = State::<f64>::len(&dims) + StateDerivatives::<f64>::len(&dims);
        let start = assembled + Assembly::differentiated_scratch_len(&dims);
        dims.state() + JointDerivatives::<f64>::len(&dims) + larger(start, run)
    }

    fn schedule(
        &self,
        model: &M,
        settings: &Settings,
        numbers: usize,
    ) -> Result<Option<Schedule>, StepError> {
        self.integrator.backward(settings).schedule(&model.dims(), &settings.span::<M::S>(), numbers)
    }

    fn adjoint<I: Inputs<M::S>>(
        mut self,
        model: &M,
        inputs: &mut I,
        settings: &Settings,
        memory: &mut [M::S],
        values: &mut [M::S],
    ) -> Result<AdjointStatistics, StepError> {
        let (dims, own) = (model.dims(), self.own_len(model));
        let (first, memory) = split(memory, own)?;
        let mut pieces = Pieces::of(first, own);
        let y = pieces.next(dims.state())?;
        let derivatives = pieces.next(JointDerivatives::<f64>::len(&dims))?;
        let scratch = pieces.rest();
        let mut pieces = Pieces::of(&mut *scratch, own - y.len() - derivatives.len());
        let state = pieces.next(State::<f64>::len(&dims))?;
        let changes = pieces.next(StateDerivatives::<f64>::len(&dims))?;
        let (begin, rest) = (M::S::from_f64(settings.begin), pieces.rest());
        Assembly::DEFAULT.begin_differentiated(model, inputs, begin, state, changes, rest)?;
        self.settle(State::of(&dims, state)?.scale);
        JointDerivatives::of_state(model, state, changes, y, derivatives)?;
        let (run, system) = (self.integrator.backward(settings), OnConstraints(self.dynamics(model)));
        run.gradient(&system, inputs, y, derivatives, &settings.span(), values, memory, scratch, unseen)
    }
}
