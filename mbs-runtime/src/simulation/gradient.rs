//! Objectives of a run and their gradient, from parameters alone.
//!
//! Input: parameters. Output: each objective by name, with its derivatives by name. The run is the whole simulation of the model file by
//! its method, the start included; the gradient is that of the discrete solution, by direct differentiation. All memory is one array,
//! whose length does not depend on the number of steps.

use core::ops::ControlFlow;

use super::method::{
    Explicit, ImplicitMethod, Newmark, Projected, StiffProjected, StiffTree, Tree, in_independent, larger,
    projected,
};
use super::{Array, Error, Settings, Setup, Signals, Simulated};
use crate::constrained::{ConstrainedDynamics, ConstraintCorrection};
use crate::error::StepError;
use crate::formulation::matrix_r::{self, choice_len};
use crate::formulation::{Assembly, ImplicitIndex1, OnConstraints, State};
use crate::inputs::Inputs;
use crate::integrator::{Adaptive, Dop853, Fixed, Output, Rk4, Sdirk4, Span, Trapezoidal};
use crate::linear::copy;
use crate::named::{Fields, Memory};
use crate::pieces::Pieces;
use crate::scalar::Scalar;
use crate::sensitivity::{
    DifferentiableIntegrator, DifferentiableStep, Differentiated, Gradient, JointDerivatives, JointDynamics,
    JointObjectiveDerivatives, JointSensitivities, ObjectiveDerivatives, Sensitivities, StartDerivatives,
    StateDerivatives, Stiff, scratch_len_of_run, scratch_len_of_run_by, scratch_len_of_run_by_stages, stiff,
};
use crate::system::{Dims, ForwardDynamics, System};

/// A model whose objectives are differentiated. Generated modules implement it.
pub trait Differentiable: Simulated
where
    Self::Method: DifferentiableMethod<Self>,
{
    /// For each objective its value and its derivatives.
    type Gradient: Fields<Self::S>;
    /// All memory of a differentiated run.
    type Memory: Memory<S = Self::S>;
}

/// A method whose runs are differentiated.
pub trait DifferentiableMethod<M: System>: Copy {
    /// A whole run: writes the objectives, then their derivatives, as [`Gradient`] has them.
    fn gradient<I: Inputs<M::S>>(
        self,
        model: &M,
        inputs: &mut I,
        settings: &Settings,
        memory: &mut [M::S],
        values: &mut [M::S],
    ) -> Result<(), StepError>;
}

/// Lengths of the memory of differentiated runs.
#[derive(Clone, Copy, Debug)]
pub struct GradientMemory;

impl GradientMemory {
    /// Of implicit methods.
    #[inline(always)]
    pub const fn implicit_len(dims: &Dims) -> usize {
        let start = Assembly::differentiated_scratch_len(dims);
        let run = scratch_len_of_run(dims, ImplicitIndex1::scratch_len(dims));
        State::<f64>::len(dims) + StateDerivatives::<f64>::len(dims) + larger(start, run)
    }

    /// Of explicit methods, of an open tree.
    pub const fn tree_len<T: Explicit>(dims: &Dims) -> usize {
        let start = dims.sensitivity.start + dims.workspace;
        dims.state()
            + JointDerivatives::<f64>::len(dims)
            + larger(start, scratch_len_of_run_by(T::MEMORY, dims, false, false))
    }

    /// Of explicit methods, under constraints.
    pub const fn projected_len<T: Explicit>(dims: &Dims) -> usize {
        Self::from_assembled(dims, scratch_len_of_run_by(T::MEMORY, &projected(dims), true, false))
    }

    /// Of implicit Runge–Kutta methods, of an open tree.
    pub const fn stiff_tree_len<T: Explicit>(dims: &Dims) -> usize {
        let start = dims.sensitivity.start + dims.workspace;
        let run = scratch_len_of_run_by_stages(T::MEMORY, &stiff(dims), false, false);
        dims.state() + JointDerivatives::<f64>::len(dims) + larger(start, run)
    }

    /// Of implicit Runge–Kutta methods, under constraints.
    pub const fn stiff_projected_len<T: Explicit>(dims: &Dims) -> usize {
        Self::from_assembled(
            dims,
            scratch_len_of_run_by_stages(T::MEMORY, &stiff(&projected(dims)), true, false),
        )
    }

    const fn from_assembled(dims: &Dims, run: usize) -> usize {
        dims.state() + JointDerivatives::<f64>::len(dims) + larger(assembled_start_len(dims), run)
    }

    /// Of explicit methods, in independent coordinates.
    pub const fn independent_len<T: Explicit>(dims: &Dims) -> usize {
        choice_len(dims)
            + Self::from_assembled(dims, scratch_len_of_run_by(T::MEMORY, &in_independent(dims), false, true))
    }

    /// Of implicit Runge–Kutta methods, in independent coordinates.
    pub const fn stiff_independent_len<T: Explicit>(dims: &Dims) -> usize {
        let dims_of_run = stiff(&matrix_r::in_independent(dims, true));
        let run = scratch_len_of_run_by_stages(T::MEMORY, &dims_of_run, false, true);
        choice_len(dims) + Self::from_assembled(dims, run)
    }
}

/// Objectives of a simulation, and their gradient. Its memory is on the stack.
pub fn gradient<M: Differentiable>(setup: &Setup<M>) -> Result<M::Gradient, Error<M>>
where
    M::Method: DifferentiableMethod<M>,
{
    let mut memory = M::Memory::ZERO;
    gradient_with(setup, &mut memory)
}

/// The same in memory of the caller; what it holds before does not matter.
pub fn gradient_with<M: Differentiable>(
    setup: &Setup<M>,
    memory: &mut M::Memory,
) -> Result<M::Gradient, Error<M>>
where
    M::Method: DifferentiableMethod<M>,
{
    gradient_in(setup, memory.values_mut())
}

/// Length of the memory of a direct gradient.
pub(super) const fn memory_len<M: Differentiable>() -> usize
where
    M::Method: DifferentiableMethod<M>,
{
    size_of::<M::Memory>() / size_of::<M::S>()
}

/// The same in a slice of at least that length.
pub(super) fn gradient_in<M: Differentiable>(
    setup: &Setup<M>,
    memory: &mut [M::S],
) -> Result<M::Gradient, Error<M>>
where
    M::Method: DifferentiableMethod<M>,
{
    let Setup { case, parameters, settings } = *setup;
    M::check(case, &parameters)?;
    let model = M::with(case, parameters);
    let mut values = Array::<M::Gradient, M::S>::ZERO;
    let mut inputs = Signals(&model);
    let (expected, found) = (memory_len::<M>(), memory.len());
    let memory = memory.get_mut(..expected).ok_or(StepError::Length { what: "memory", expected, found })?;
    M::method(case).gradient(&model, &mut inputs, &settings, memory, values.values_mut())?;
    Ok(named::<M>(&model, values.values())?)
}

/// From all objectives and all derivatives to each objective with its own.
pub(super) fn named<M: Differentiable>(model: &M, values: &[M::S]) -> Result<M::Gradient, StepError>
where
    M::Method: DifferentiableMethod<M>,
{
    let found = Gradient::of(&model.dims(), values)?;
    let mut named = Array::<M::Gradient, M::S>::ZERO;
    let width = 1 + model.dims().sensitivity.parameters;
    let rows = named.values_mut().chunks_exact_mut(width).zip(found.objectives).enumerate();
    for (i, (row, &value)) in rows {
        if let Some((first, by)) = row.split_first_mut() {
            *first = value;
            let wrong = StepError::Length { what: "gradient", expected: width - 1, found: 0 };
            copy(by, found.of_objective(i).ok_or(wrong)?);
        }
    }
    Ok(M::Gradient::from_values(&named))
}

impl Settings {
    pub(super) fn span<S: Scalar>(&self) -> Span<S> {
        Span { start: S::from_f64(self.begin), end: S::from_f64(self.end), output: Output::Steps }
    }
}

impl<M, T: ImplicitMethod> DifferentiableMethod<M> for T
where
    M: Sensitivities + ObjectiveDerivatives + StartDerivatives,
    T::Steps: DifferentiableStep,
{
    fn gradient<I: Inputs<M::S>>(
        mut self,
        model: &M,
        inputs: &mut I,
        settings: &Settings,
        memory: &mut [M::S],
        values: &mut [M::S],
    ) -> Result<(), StepError> {
        let len = GradientMemory::implicit_len(&model.dims());
        let (state, derivatives, scratch) = start_implicit(&mut self, model, inputs, settings, len, memory)?;
        let run = Differentiated(Fixed { method: self.steps(), h: settings.step });
        let unseen = |_: crate::formulation::Node<'_, M::S>| ControlFlow::Continue(());
        run.run(model, inputs, state, derivatives, &settings.span(), values, scratch, unseen)?;
        Ok(())
    }
}

/// An explicit integrator whose runs are differentiated.
pub trait DifferentiableExplicit: Explicit {
    /// A run from y and its derivatives.
    #[allow(clippy::too_many_arguments, reason = "what a run reads and writes")]
    fn run<D: JointDynamics, I: Inputs<D::S>>(
        self,
        system: &D,
        inputs: &mut I,
        settings: &Settings,
        y: &mut [D::S],
        derivatives: &mut [D::S],
        scratch: &mut [D::S],
        values: &mut [D::S],
    ) -> Result<(), StepError>
    where
        D::Model: JointObjectiveDerivatives;
}

macro_rules! differentiable_explicit {
    ($integrator:ty, |$this:ident, $settings:ident| $policy:expr) => {
        impl DifferentiableExplicit for $integrator {
            fn run<D: JointDynamics, I: Inputs<D::S>>(
                self,
                system: &D,
                inputs: &mut I,
                settings: &Settings,
                y: &mut [D::S],
                derivatives: &mut [D::S],
                scratch: &mut [D::S],
                values: &mut [D::S],
            ) -> Result<(), StepError>
            where
                D::Model: JointObjectiveDerivatives,
            {
                let ($this, $settings) = (self, settings);
                let (policy, span) = (Differentiated($policy), settings.span());
                let unseen = |_: crate::sensitivity::DifferentiatedAt<'_, D::S>| ControlFlow::Continue(());
                policy.run(system, inputs, y, derivatives, &span, values, scratch, unseen)?;
                Ok(())
            }
        }
    };
}
differentiable_explicit!(Rk4, |method, settings| Fixed { method, h: settings.step });
differentiable_explicit!(Adaptive, |control, _settings| control);
differentiable_explicit!(Adaptive<Dop853>, |control, _settings| control);
differentiable_explicit!(Adaptive<Sdirk4>, |control, _settings| control);
differentiable_explicit!(Newmark, |_method, settings| Fixed { method: Trapezoidal, h: settings.step });

impl<M, T: DifferentiableExplicit> DifferentiableMethod<M> for Tree<T>
where
    M: ForwardDynamics + StartDerivatives + JointSensitivities + JointObjectiveDerivatives,
{
    fn gradient<I: Inputs<M::S>>(
        self,
        model: &M,
        inputs: &mut I,
        settings: &Settings,
        memory: &mut [M::S],
        values: &mut [M::S],
    ) -> Result<(), StepError> {
        let (y, derivatives, scratch) =
            start_tree(model, GradientMemory::tree_len::<T>(&model.dims()), memory)?;
        self.0.run(model, inputs, settings, y, derivatives, scratch, values)
    }
}

impl<M, T: DifferentiableExplicit> DifferentiableMethod<M> for StiffTree<T>
where
    M: ForwardDynamics + StartDerivatives + JointSensitivities + JointObjectiveDerivatives,
{
    fn gradient<I: Inputs<M::S>>(
        self,
        model: &M,
        inputs: &mut I,
        settings: &Settings,
        memory: &mut [M::S],
        values: &mut [M::S],
    ) -> Result<(), StepError> {
        let len = GradientMemory::stiff_tree_len::<T>(&model.dims());
        let (y, derivatives, scratch) = start_tree(model, len, memory)?;
        self.0.run(&Stiff(model), inputs, settings, y, derivatives, scratch, values)
    }
}

/// A state, or y, and its derivatives at the start, and scratch.
type Begun<'a, S> = (&'a mut [S], &'a mut [S], &'a mut [S]);

/// The start of an implicit run in memory of this length; fixes the numbers of the method that depend on it.
pub(super) fn start_implicit<'a, M, T: ImplicitMethod, I: Inputs<M::S>>(
    method: &mut T,
    model: &M,
    inputs: &mut I,
    settings: &Settings,
    len: usize,
    memory: &'a mut [M::S],
) -> Result<Begun<'a, M::S>, StepError>
where
    M: Sensitivities + StartDerivatives,
{
    let dims = model.dims();
    let mut pieces = Pieces::of(memory, len);
    let state = pieces.next(State::<f64>::len(&dims))?;
    let derivatives = pieces.next(StateDerivatives::<f64>::len(&dims))?;
    let scratch = pieces.rest();
    let begin = M::S::from_f64(settings.begin);
    Assembly::DEFAULT.begin_differentiated(model, inputs, begin, state, derivatives, scratch)?;
    method.settle(settings.step, State::of(&dims, state)?.scale);
    Ok((state, derivatives, scratch))
}

/// The start of an open tree in memory of this length.
pub(super) fn start_tree<'a, M: StartDerivatives>(
    model: &M,
    len: usize,
    memory: &'a mut [M::S],
) -> Result<Begun<'a, M::S>, StepError> {
    let dims = model.dims();
    let mut pieces = Pieces::of(memory, len);
    let y = pieces.next(dims.state())?;
    let derivatives = pieces.next(JointDerivatives::<f64>::len(&dims))?;
    let scratch = pieces.rest();
    JointDerivatives::start(model, y, derivatives, scratch)?;
    Ok((y, derivatives, scratch))
}

/// An assembled start in memory of this length; fixes the numbers of the method that depend on it.
pub(super) fn start_assembled<'a, M, T, I>(
    method: &mut Projected<T>,
    model: &M,
    inputs: &mut I,
    settings: &Settings,
    len: usize,
    memory: &'a mut [M::S],
) -> Result<Begun<'a, M::S>, StepError>
where
    M: Sensitivities + StartDerivatives,
    I: Inputs<M::S>,
{
    let dims = model.dims();
    let mut pieces = Pieces::of(memory, len);
    let y = pieces.next(dims.state())?;
    let derivatives = pieces.next(JointDerivatives::<f64>::len(&dims))?;
    let scratch = pieces.rest();
    assembled_start(model, inputs, settings, y, derivatives, scratch, |scale| method.settle(scale))?;
    Ok((y, derivatives, scratch))
}

/// Writes the consistent start of y = \[z, v\] and its derivatives; `settle` sees the scale of the rows.
pub(super) fn assembled_start<M, I: Inputs<M::S>>(
    model: &M,
    inputs: &mut I,
    settings: &Settings,
    y: &mut [M::S],
    derivatives: &mut [M::S],
    scratch: &mut [M::S],
    settle: impl FnOnce(&[M::S]),
) -> Result<(), StepError>
where
    M: Sensitivities + StartDerivatives,
{
    let dims = model.dims();
    let mut pieces = Pieces::of(scratch, assembled_start_len(&dims));
    let state = pieces.next(State::<f64>::len(&dims))?;
    let changes = pieces.next(StateDerivatives::<f64>::len(&dims))?;
    let (begin, rest) = (M::S::from_f64(settings.begin), pieces.rest());
    Assembly::DEFAULT.begin_differentiated(model, inputs, begin, state, changes, rest)?;
    settle(State::of(&dims, state)?.scale);
    JointDerivatives::of_state(model, state, changes, y, derivatives)
}

/// Length of the scratch of an assembled start with derivatives.
#[inline(always)]
pub(super) const fn assembled_start_len(dims: &Dims) -> usize {
    let assembled = State::<f64>::len(dims) + StateDerivatives::<f64>::len(dims);
    assembled + Assembly::differentiated_scratch_len(dims)
}

impl<M, T: DifferentiableExplicit> DifferentiableMethod<M> for Projected<T>
where
    M: Sensitivities + StartDerivatives + JointSensitivities + JointObjectiveDerivatives,
    M: ConstrainedDynamics + ConstraintCorrection,
{
    fn gradient<I: Inputs<M::S>>(
        mut self,
        model: &M,
        inputs: &mut I,
        settings: &Settings,
        memory: &mut [M::S],
        values: &mut [M::S],
    ) -> Result<(), StepError> {
        let len = GradientMemory::projected_len::<T>(&model.dims());
        let (y, derivatives, scratch) = start_assembled(&mut self, model, inputs, settings, len, memory)?;
        let system = OnConstraints(self.dynamics(model));
        self.integrator.run(&system, inputs, settings, y, derivatives, scratch, values)
    }
}

impl<M, T: DifferentiableExplicit> DifferentiableMethod<M> for StiffProjected<T>
where
    M: Sensitivities + StartDerivatives + JointSensitivities + JointObjectiveDerivatives,
    M: ConstrainedDynamics + ConstraintCorrection,
{
    fn gradient<I: Inputs<M::S>>(
        mut self,
        model: &M,
        inputs: &mut I,
        settings: &Settings,
        memory: &mut [M::S],
        values: &mut [M::S],
    ) -> Result<(), StepError> {
        let len = GradientMemory::stiff_projected_len::<T>(&model.dims());
        let (y, derivatives, scratch) = start_assembled(&mut self.0, model, inputs, settings, len, memory)?;
        let system = OnConstraints(self.0.dynamics(model));
        self.0.integrator.run(&Stiff(&system), inputs, settings, y, derivatives, scratch, values)
    }
}
