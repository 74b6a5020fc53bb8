//! The gradient of a model's simulation by the adjoint of its run, in memory of the caller.
//!
//! Input: parameters, and memory of any length. Output: what [`gradient`](super::gradient()) gives, to rounding. The memory holds everything: the state
//! and its derivatives, the scratch, and records and states of steps as its length allows. [`adjoint_memory_len`] says what is enough to make no
//! step twice; with less, steps are made again, and too little is an error that says how much is needed.

use core::ops::ControlFlow;

use super::either::Either;
use super::gradient::{
    DifferentiableExplicit, DifferentiableMethod, assembled_start_len, gradient_in, memory_len, named,
    start_assembled, start_implicit, start_tree,
};
use super::method::{ImplicitMethod, Newmark, Projected, StiffProjected, StiffTree, Tree, larger};
use super::{Array, Cause, Differentiable, Error, Settings, Setup, Signals};
use crate::adjoint::{Adjoint, AdjointIntegrator, AdjointNode, AdjointStatistics, Schedule, pays_from};
use crate::constrained::{ConstrainedDynamics, ConstraintCorrection};
use crate::error::StepError;
use crate::formulation::{Assembly, OnConstraints, State};
use crate::inputs::Inputs;
use crate::integrator::{Adaptive, Controlled, Fixed, Rk4, Trapezoidal};
use crate::named::Memory;
use crate::sensitivity::{
    DifferentiableStep, JointDerivatives, JointObjectiveDerivatives, JointSensitivities,
    ObjectiveDerivatives, Sensitivities, StartDerivatives, StateDerivatives, Stiff,
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
pub fn adjoint_memory_len<M: Differentiable>(setup: &Setup<M>) -> Result<Option<usize>, Error<M>>
where
    M::Method: AdjointMethod<M>,
{
    let Setup { case, parameters, settings } = *setup;
    let (model, method) = (M::with(case, parameters), M::method(case));
    let schedule = method.schedule(&model, &settings, usize::MAX)?;
    Ok(schedule.map(|schedule| method.own_len(&model).saturating_add(schedule.memory_len())))
}

/// Objectives of a simulation, their gradient by the adjoint, and what it took.
pub fn gradient_by_adjoint<M: Differentiable>(
    setup: &Setup<M>,
    memory: &mut [M::S],
) -> Result<(M::Gradient, AdjointStatistics), Error<M>>
where
    M::Method: AdjointMethod<M>,
{
    let Setup { case, parameters, settings } = *setup;
    M::check(case, &parameters)?;
    let (model, method) = (M::with(case, parameters), M::method(case));
    let (own, found) = (method.own_len(&model), memory.len());
    let mut values = Array::<M::Gradient, M::S>::ZERO;
    let mut inputs = Signals(&model);
    let run = method.adjoint(&model, &mut inputs, &settings, memory, values.values_mut());
    let statistics = run.map_err(|error| match error {
        // All of the memory, not only what is left for steps.
        StepError::Length { what: "memory", expected, .. } => {
            StepError::Length { what: "memory", expected: expected.saturating_add(own), found }
        }
        error => error,
    })?;
    Ok((named::<M>(&model, values.values())?, statistics))
}

/// How a gradient is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GradientMethod {
    /// Forward, with a column for each parameter.
    Direct,
    /// Backward, with a column for each objective.
    Adjoint,
    /// Whichever is expected to be quicker of those for which the memory suffices.
    Auto,
}

/// Objectives of a simulation and their gradient by this method, and what the adjoint took; none if the derivative was direct.
pub fn gradient_by<M: Differentiable>(
    setup: &Setup<M>,
    by: GradientMethod,
    memory: &mut [M::S],
) -> Result<(M::Gradient, Option<AdjointStatistics>), Error<M>>
where
    M::Method: AdjointMethod<M>,
{
    let adjoint = match by {
        GradientMethod::Direct => false,
        GradientMethod::Adjoint => true,
        GradientMethod::Auto => pays(setup, memory.len())?,
    };
    if adjoint {
        match gradient_by_adjoint(setup, memory) {
            Ok((found, statistics)) => return Ok((found, Some(statistics))),
            // With step control the memory may turn out to be too little for the adjoint alone.
            Err(error) => match error.cause() {
                Cause::Step(StepError::Length { what: "memory", .. })
                    if by == GradientMethod::Auto && memory.len() >= memory_len::<M>() => {}
                _ => return Err(error),
            },
        }
    }
    gradient_in(setup, memory).map(|found| (found, None))
}

/// Whether the adjoint fits this many numbers and is expected to be quicker, or alone fits.
fn pays<M: Differentiable>(setup: &Setup<M>, numbers: usize) -> Result<bool, Error<M>>
where
    M::Method: AdjointMethod<M>,
{
    let Setup { case, parameters, settings } = *setup;
    let (model, method) = (M::with(case, parameters), M::method(case));
    let dims = model.dims();
    let Some(left) = numbers.checked_sub(method.own_len(&model)) else { return Ok(false) };
    let schedule = match method.schedule(&model, &settings, left) {
        Err(StepError::Length { what: "memory", .. }) => return Ok(false),
        schedule => schedule?,
    };
    let pays = dims.sensitivity.parameters >= pays_from(dims.n_objectives, schedule.as_ref());
    Ok(pays || numbers < memory_len::<M>())
}

pub(super) fn unseen<S>(_: AdjointNode<'_, S>) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// The first `len` numbers, and the rest.
pub(super) fn split<S>(memory: &mut [S], len: usize) -> Result<(&mut [S], &mut [S]), StepError> {
    let wrong = StepError::Length { what: "memory", expected: 0, found: 0 };
    memory.split_at_mut_checked(len).ok_or(wrong)
}

impl<M, T: ImplicitMethod> AdjointMethod<M> for T
where
    M: Sensitivities + ObjectiveDerivatives + StartDerivatives,
    T::Steps: DifferentiableStep,
{
    fn own_len(&self, model: &M) -> usize {
        let run = Adjoint(Fixed { method: self.steps(), h: 0.0 });
        implicit_len(model, run.gradient_scratch_len(&model.dims()))
    }

    fn schedule(
        &self,
        model: &M,
        settings: &Settings,
        numbers: usize,
    ) -> Result<Option<Schedule>, StepError> {
        let run = Adjoint(Fixed { method: self.steps(), h: settings.step });
        run.schedule(&model.dims(), &settings.span::<M::S>(), numbers).map(Some)
    }

    fn adjoint<I: Inputs<M::S>>(
        mut self,
        model: &M,
        inputs: &mut I,
        settings: &Settings,
        memory: &mut [M::S],
        values: &mut [M::S],
    ) -> Result<AdjointStatistics, StepError> {
        let own = self.own_len(model);
        let (first, memory) = split(memory, own)?;
        let (state, derivatives, scratch) = start_implicit(&mut self, model, inputs, settings, own, first)?;
        let run = Adjoint(Fixed { method: self.steps(), h: settings.step });
        run.gradient(model, inputs, state, derivatives, &settings.span(), values, memory, scratch, unseen)
    }
}

impl<M: System, A: AdjointMethod<M>, B: AdjointMethod<M>> AdjointMethod<M> for Either<A, B> {
    fn own_len(&self, model: &M) -> usize {
        match self {
            Either::First(method) => method.own_len(model),
            Either::Second(method) => method.own_len(model),
        }
    }

    fn schedule(
        &self,
        model: &M,
        settings: &Settings,
        numbers: usize,
    ) -> Result<Option<Schedule>, StepError> {
        match self {
            Either::First(method) => method.schedule(model, settings, numbers),
            Either::Second(method) => method.schedule(model, settings, numbers),
        }
    }

    fn adjoint<I: Inputs<M::S>>(
        self,
        model: &M,
        inputs: &mut I,
        settings: &Settings,
        memory: &mut [M::S],
        values: &mut [M::S],
    ) -> Result<AdjointStatistics, StepError> {
        match self {
            Either::First(method) => method.adjoint(model, inputs, settings, memory, values),
            Either::Second(method) => method.adjoint(model, inputs, settings, memory, values),
        }
    }
}

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

impl AdjointExplicit for Newmark {
    fn backward(self, settings: &Settings) -> impl AdjointIntegrator {
        Adjoint(Fixed { method: Trapezoidal, h: settings.step })
    }
}

impl<T: Controlled> AdjointExplicit for Adaptive<T>
where
    Adaptive<T>: DifferentiableExplicit,
{
    fn backward(self, _: &Settings) -> impl AdjointIntegrator {
        Adjoint(self)
    }
}

/// Lengths do not depend on settings.
pub(super) const ANY: Settings = Settings { begin: 0.0, end: 0.0, step: 1.0, output: None };

/// Length of a state, its derivatives and what an implicit run needs.
pub(super) fn implicit_len<M: System>(model: &M, run: usize) -> usize {
    let dims = model.dims();
    let scratch = larger(Assembly::differentiated_scratch_len(&dims), run);
    State::<f64>::len(&dims) + StateDerivatives::<f64>::len(&dims) + scratch
}

/// Length of y, its derivatives and what a run from a start of an open tree needs.
pub(super) fn tree_len<M: System>(model: &M, run: usize) -> usize {
    let dims = model.dims();
    let start = dims.sensitivity.start + dims.workspace;
    dims.state() + JointDerivatives::<f64>::len(&dims) + larger(start, run)
}

/// The same from an assembled start.
pub(super) fn assembled_len<M: System>(model: &M, run: usize) -> usize {
    let dims = model.dims();
    dims.state() + JointDerivatives::<f64>::len(&dims) + larger(assembled_start_len(&dims), run)
}

/// The adjoint of an integrator of an open tree; `system` is what it steps.
macro_rules! of_tree {
    ($method:ident, |$model:ident| $system:expr) => {
        impl<M, T: AdjointExplicit> AdjointMethod<M> for $method<T>
        where
            M: ForwardDynamics + StartDerivatives + JointSensitivities + JointObjectiveDerivatives,
        {
            fn own_len(&self, $model: &M) -> usize {
                tree_len($model, self.0.backward(&ANY).gradient_scratch_len($system))
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
                $model: &M,
                inputs: &mut I,
                settings: &Settings,
                memory: &mut [M::S],
                values: &mut [M::S],
            ) -> Result<AdjointStatistics, StepError> {
                let own = self.own_len($model);
                let (first, memory) = split(memory, own)?;
                let (y, derivatives, scratch) = start_tree($model, own, first)?;
                let (run, span) = (self.0.backward(settings), settings.span());
                run.gradient($system, inputs, y, derivatives, &span, values, memory, scratch, unseen)
            }
        }
    };
}
of_tree!(Tree, |model| model);
of_tree!(StiffTree, |model| &Stiff(model));

/// The same under constraints; `this` is the projected method.
macro_rules! of_projected {
    ($method:ident, |$whole:ident| $this:expr, |$dynamics:ident| $system:expr) => {
        impl<M, T: AdjointExplicit> AdjointMethod<M> for $method<T>
        where
            M: Sensitivities + StartDerivatives + JointSensitivities + JointObjectiveDerivatives,
            M: ConstrainedDynamics + ConstraintCorrection,
        {
            fn own_len(&self, model: &M) -> usize {
                let $whole = *self;
                let $dynamics = &OnConstraints($this.dynamics(model));
                assembled_len(model, $this.integrator.backward(&ANY).gradient_scratch_len($system))
            }

            fn schedule(
                &self,
                model: &M,
                settings: &Settings,
                numbers: usize,
            ) -> Result<Option<Schedule>, StepError> {
                let $whole = *self;
                let run = $this.integrator.backward(settings);
                run.schedule(&model.dims(), &settings.span::<M::S>(), numbers)
            }

            fn adjoint<I: Inputs<M::S>>(
                self,
                model: &M,
                inputs: &mut I,
                settings: &Settings,
                memory: &mut [M::S],
                values: &mut [M::S],
            ) -> Result<AdjointStatistics, StepError> {
                let (own, $whole) = (self.own_len(model), self);
                let (first, memory) = split(memory, own)?;
                let mut method = $this;
                let (y, derivatives, scratch) =
                    start_assembled(&mut method, model, inputs, settings, own, first)?;
                let (run, span) = (method.integrator.backward(settings), settings.span());
                let $dynamics = &OnConstraints(method.dynamics(model));
                run.gradient($system, inputs, y, derivatives, &span, values, memory, scratch, unseen)
            }
        }
    };
}
of_projected!(Projected, |method| method, |dynamics| dynamics);
of_projected!(StiffProjected, |method| method.0, |dynamics| &Stiff(dynamics));
