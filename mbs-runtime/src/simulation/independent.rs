//! Explicit integrators in independent coordinates, see [`MatrixR`].

use super::Settings;
use super::adjoint::{ANY, AdjointExplicit, AdjointMethod, split, unseen};
use super::clock::{Clock, Target};
use super::gradient::{
    DifferentiableExplicit, DifferentiableMethod, GradientMemory, assembled_start, assembled_start_len,
};
use super::method::{Explicit, IndependentMemory, Method, Node, Work, larger, observe_explicit};
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
    JointDerivatives, JointObjectiveDerivatives, JointSensitivities, Sensitivities, StartDerivatives,
};
use crate::system::{Dims, Start, System};

/// An explicit integrator in independent coordinates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Independent<T>(pub T);

/// y, and the choice of independent coordinates.
pub(super) fn parts<'a, S>(dims: &Dims, state: &'a mut [S]) -> Result<[&'a mut [S]; 2], StepError> {
    let mut pieces = Pieces::named("state", state, IndependentMemory::state_len(dims));
    let parts = [pieces.next(dims.state())?, pieces.next(choice_len(dims))?];
    pieces.end()?;
    Ok(parts)
}

impl<M, T: Explicit> Method<M> for Independent<T>
where
    M: Constrained + ConstrainedDynamics + ConstraintRows + Start,
{
    type Happened = ();

    fn happened(&self, _: &M, _: &[M::S]) {}

    fn state_len(&self, dims: &Dims) -> usize {
        IndependentMemory::state_len(dims)
    }

    fn start<I: Inputs<M::S>>(&mut self, work: Work<'_, M, I>, settings: &Settings) -> Result<(), StepError> {
        let Work { model, inputs, state, scratch } = work;
        let dims = model.dims();
        let mut pieces = Pieces::of(scratch, IndependentMemory::scratch_len(&dims));
        let assembled = pieces.next(State::<f64>::len(&dims))?;
        Assembly::DEFAULT.begin(model, inputs, M::S::from_f64(settings.begin), assembled, pieces.rest())?;
        let [y, choice] = parts(&dims, state)?;
        choice.fill(M::S::ZERO);
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
        let [state, choice] = parts(&model.dims(), state)?;
        let model = &MatrixR::new(model, choice);
        self.0.step(Work { model, inputs, state, scratch }, clock, target, statistics)
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
        let [y, choice] = parts(&model.dims(), state)?;
        self.0.dense(&MatrixR::new(model, choice), step, theta, scratch, y)
    }
}

/// y, the choice of independent coordinates and derivatives of y at the start, and scratch.
pub(super) type Begun<'a, S> = ([&'a mut [S]; 3], &'a mut [S]);

/// The start of a differentiated run.
pub(super) fn begin<'a, M, I>(
    model: &M,
    inputs: &mut I,
    settings: &Settings,
    memory: &'a mut [M::S],
) -> Result<Begun<'a, M::S>, StepError>
where
    M: Sensitivities + StartDerivatives,
    I: Inputs<M::S>,
{
    let dims = model.dims();
    let mut pieces = Pieces::of(memory, GradientMemory::independent_len(&dims));
    let y = pieces.next(dims.state())?;
    let choice = pieces.next(choice_len(&dims))?;
    let derivatives = pieces.next(JointDerivatives::<f64>::len(&dims))?;
    let scratch = pieces.rest();
    assembled_start(model, inputs, settings, y, derivatives, scratch, |_| ())?;
    choice.fill(M::S::ZERO);
    Ok(([y, choice, derivatives], scratch))
}

impl<M, T: DifferentiableExplicit> DifferentiableMethod<M> for Independent<T>
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
        let ([y, choice, derivatives], scratch) = begin(model, inputs, settings, memory)?;
        self.0.run(&MatrixR::new(model, choice), inputs, settings, y, derivatives, scratch, values)
    }
}

impl<M, T: AdjointExplicit> AdjointMethod<M> for Independent<T>
where
    M: Sensitivities + StartDerivatives + JointSensitivities + JointObjectiveDerivatives,
    M: ConstrainedDynamics + ConstraintRows,
{
    fn own_len(&self, model: &M) -> usize {
        let dims = model.dims();
        let run = self.0.backward(&ANY).gradient_scratch_len(&MatrixR::new(model, &mut []));
        let state = dims.state() + choice_len(&dims) + JointDerivatives::<f64>::len(&dims);
        state + larger(assembled_start_len(&dims), run)
    }

    fn schedule(
        &self,
        model: &M,
        settings: &Settings,
        numbers: usize,
    ) -> Result<Option<Schedule>, StepError> {
        let dims = MatrixR::new(model, &mut []).dims();
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
        let (dims, own) = (model.dims(), self.own_len(model));
        let (first, memory) = split(memory, own)?;
        let mut pieces = Pieces::of(first, own);
        let y = pieces.next(dims.state())?;
        let choice = pieces.next(choice_len(&dims))?;
        let derivatives = pieces.next(JointDerivatives::<f64>::len(&dims))?;
        let scratch = pieces.rest();
        assembled_start(model, inputs, settings, y, derivatives, scratch, |_| ())?;
        choice.fill(M::S::ZERO);
        let (run, system) = (self.0.backward(settings), MatrixR::new(model, choice));
        run.gradient(&system, inputs, y, derivatives, &settings.span(), values, memory, scratch, unseen)
    }
}
