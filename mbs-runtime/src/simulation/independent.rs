//! Runge–Kutta methods in independent coordinates, see [`MatrixR`].

use super::Settings;
use super::adjoint::{ANY, AdjointExplicit, AdjointMethod, split, unseen};
use super::clock::{Clock, Target};
use super::gradient::{
    DifferentiableExplicit, DifferentiableMethod, GradientMemory, assembled_start, assembled_start_len,
};
use super::method::{
    Explicit, IndependentMemory, Method, Node, StiffIndependentMemory, Work, larger, observe_explicit,
};
use crate::adjoint::{AdjointIntegrator, AdjointStatistics, Schedule};
use crate::constrained::{Constrained, ConstrainedDynamics, ConstraintRows};
use crate::error::{EvalError, StepError};
use crate::formulation::matrix_r::choice_len;
use crate::formulation::{Assembly, Index1, MatrixR, State};
use crate::inputs::Inputs;
use crate::integrator::{Accepted, Statistics};
use crate::pieces::{Pieces, cut_mut};
use crate::scalar::Scalar;
use crate::sensitivity::{
    JointDerivatives, JointObjectiveDerivatives, JointSensitivities, Sensitivities, StartDerivatives, Stiff,
};
use crate::system::{Dims, Start, System};

/// An explicit integrator in independent coordinates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Independent<T>(pub T);

/// An implicit Runge–Kutta method in independent coordinates, of models that know their derivatives in joint form.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StiffIndependent<T>(pub T);

/// y, with what the method carries if it does, and the choice of independent coordinates. `room`: that of what a method may carry, between both.
pub(super) fn parts<'a, S>(
    dims: &Dims,
    room: usize,
    carries: bool,
    state: &'a mut [S],
) -> Result<[&'a mut [S]; 2], StepError> {
    let mut pieces = Pieces::named("state", state, IndependentMemory::state_len(dims) + room);
    let y = pieces.next(dims.state() + if carries { room } else { 0 })?;
    pieces.next(if carries { 0 } else { room })?;
    let parts = [y, pieces.next(choice_len(dims))?];
    pieces.end()?;
    Ok(parts)
}

/// Room of a method, in a system of these sizes.
pub(super) fn room(room: impl Fn(&Dims) -> usize, dims: &Dims) -> usize {
    room(dims)
}

/// y, the choice of independent coordinates and derivatives of y at the start, and scratch.
pub(super) type Begun<'a, S> = ([&'a mut [S]; 3], &'a mut [S]);

/// The start of a differentiated run in memory of this length.
pub(super) fn begin<'a, M, I>(
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
    let choice = pieces.next(choice_len(&dims))?;
    let derivatives = pieces.next(JointDerivatives::<f64>::len(&dims))?;
    let scratch = pieces.rest();
    assembled_start(model, inputs, settings, y, derivatives, scratch, |_| ())?;
    choice.fill(M::S::ZERO);
    Ok(([y, choice, derivatives], scratch))
}

/// Length of an adjoint's own memory beside records and states; `run`: that of its run.
pub(super) fn own_len<M: System>(model: &M, run: usize) -> usize {
    let dims = model.dims();
    let state = dims.state() + choice_len(&dims) + JointDerivatives::<f64>::len(&dims);
    state + larger(assembled_start_len(&dims), run)
}

/// Steps, gradients and adjoints of a method; `$system` is what it steps, the lengths are those of its memory, and `$room` that of what it may carry.
macro_rules! in_independent_coordinates {
    (
        $method:ident,
        $scratch_len:ident,
        $gradient_len:ident,
        $room:expr,
        |$dynamics:ident| $system:expr
        $(, $bound:ident)?
    ) => {
        impl<M, T: Explicit> Method<M> for $method<T>
        where
            M: Constrained + ConstrainedDynamics + ConstraintRows + Start $(+ $bound)?,
        {
            type Happened = ();

            fn happened(&self, _: &M, _: &[M::S]) {}

            fn state_len(&self, dims: &Dims) -> usize {
                IndependentMemory::state_len(dims) + room($room, dims)
            }

            fn start<I: Inputs<M::S>>(&mut self, work: Work<'_, M, I>, settings: &Settings) -> Result<(), StepError> {
                let Work { model, inputs, state, scratch } = work;
                let dims = model.dims();
                let mut pieces = Pieces::of(scratch, IndependentMemory::$scratch_len::<T>(&dims));
                let assembled = pieces.next(State::<f64>::len(&dims))?;
                Assembly::DEFAULT.begin(model, inputs, M::S::from_f64(settings.begin), assembled, pieces.rest())?;
                state.fill(M::S::ZERO);
                let [y, _] = parts(&dims, room($room, &dims), self.0.newmark().carries(), state)?;
                let (y, _) = cut_mut("state", y, dims.state()).map_err(|error| error.in_step(settings.begin, 0.0))?;
                State::of(&dims, assembled)?.joint_form(model, y)
            }

            fn step<I: Inputs<M::S>>(
                &self,
                work: Work<'_, M, I>,
                clock: &mut Clock,
                target: &Target,
                statistics: &mut Statistics,
            ) -> Result<(), StepError> {
                let Work { model, inputs, state, scratch } = work;
                let newmark = self.0.newmark();
                let [state, choice] = parts(&model.dims(), room($room, &model.dims()), newmark.carries(), state)?;
                let $dynamics = &MatrixR::new(model, choice).by(newmark);
                self.0.step(Work { model: $system, inputs, state, scratch }, clock, target, statistics)
            }

            fn observe(
                &self,
                model: &M,
                t: M::S,
                state: &mut [M::S],
                scratch: &mut [M::S],
                node: Node<'_, M::S>,
            ) -> Result<(), EvalError> {
                let (y, _) = cut_mut("state", state, model.dims().state())?;
                observe_explicit(model, t, y, scratch, node, |at, w, node| {
                    Index1::new(model).multipliers(at, w, node.zd, node.vd, node.lambda)
                })
            }

            fn is_dense(&self) -> bool {
                T::IS_DENSE
            }

            fn interpolate(
                &self,
                model: &M,
                step: &Accepted<M::S>,
                theta: M::S,
                scratch: &mut [M::S],
                state: &mut [M::S],
            ) -> Result<(), StepError> {
                let newmark = self.0.newmark();
                let [y, choice] = parts(&model.dims(), room($room, &model.dims()), newmark.carries(), state)?;
                let $dynamics = &MatrixR::new(model, choice).by(newmark);
                self.0.dense($system, step, theta, scratch, y)
            }
        }

        impl<M, T: DifferentiableExplicit> DifferentiableMethod<M> for $method<T>
        where
            M: Sensitivities + StartDerivatives + JointSensitivities + JointObjectiveDerivatives,
            M: ConstrainedDynamics + ConstraintRows,
        {
            fn gradient<I: Inputs<M::S>>(
                self,
                model: &M,
                inputs: &mut I,
                settings: &Settings,
                memory: &mut [M::S],
                values: &mut [M::S],
            ) -> Result<(), StepError> {
                let len = GradientMemory::$gradient_len::<T>(&model.dims());
                let ([y, choice, derivatives], scratch) = begin(model, inputs, settings, len, memory)?;
                let $dynamics = &MatrixR::new(model, choice).by(self.0.newmark());
                self.0.run($system, inputs, settings, y, derivatives, scratch, values)
            }
        }

        impl<M, T: AdjointExplicit> AdjointMethod<M> for $method<T>
        where
            M: Sensitivities + StartDerivatives + JointSensitivities + JointObjectiveDerivatives,
            M: ConstrainedDynamics + ConstraintRows,
        {
            fn own_len(&self, model: &M) -> usize {
                let $dynamics = &MatrixR::new(model, &mut []).by(self.0.newmark());
                own_len(model, self.0.backward(&ANY).gradient_scratch_len($system))
            }

            fn schedule(
                &self,
                model: &M,
                settings: &Settings,
                numbers: usize,
            ) -> Result<Option<Schedule>, StepError> {
                let dims = MatrixR::new(model, &mut []).by(self.0.newmark()).dims();
                self.0.backward(settings).schedule(&dims, &settings.span::<M::S>(), numbers)
            }

            fn adjoint<I: Inputs<M::S>>(
                self,
                model: &M,
                inputs: &mut I,
                settings: &Settings,
                memory: &mut [M::S],
                values: &mut [M::S],
            ) -> Result<AdjointStatistics, StepError> {
                let own = self.own_len(model);
                let (first, memory) = split(memory, own)?;
                let ([y, choice, derivatives], scratch) = begin(model, inputs, settings, own, first)?;
                let $dynamics = &MatrixR::new(model, choice).by(self.0.newmark());
                let run = self.0.backward(settings);
                run.gradient($system, inputs, y, derivatives, &settings.span(), values, memory, scratch, unseen)
            }
        }
    };
}
in_independent_coordinates!(Independent, scratch_len, independent_len, |_| 0, |dynamics| dynamics);
in_independent_coordinates!(
    StiffIndependent,
    stiff_scratch_len,
    stiff_independent_len,
    StiffIndependentMemory::room,
    |dynamics| &Stiff(dynamics),
    JointSensitivities
);
