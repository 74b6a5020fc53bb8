//! Explicit runs together with their derivatives by the parameters.
//!
//! Input: y = \[z, v\] and its derivatives at the start. Output: both at the end, objectives by the weights of the method itself, their
//! gradient; derivatives at every observed time. The states are those of [`Integrator::run`](crate::Integrator::run), bit for
//! bit; with step control the sequence of steps is taken as it is.

use core::ops::ControlFlow;

use super::augmented::{self, Augmented};
use super::columns::Directions;
use super::derivatives::JointObjectiveDerivatives;
use super::jacobian_vector::JacobianVector;
use super::joint_dynamics::JointDynamics;
use super::joint_state::{JointDerivatives, refuse_first_order_states};
use super::objectives::Gradient;
use super::run::Differentiated;
use crate::error::{EvalError, StepError};
use crate::inputs::Inputs;
use crate::integrator::{
    Adaptive, AdaptiveRun, Controlled, ExplicitRun, Fixed, FixedRun, FixedStep, Hooks, Limits, Next, Nodes,
    Observe, ObserveDense, Span, Statistics, Taken, check_state, drive,
};
use crate::linear::copy;
use crate::pieces::{Pieces, cut};
use crate::scalar::Scalar;
use crate::system::{At, Dims};

/// What an observer sees of an explicit run.
#[derive(Clone, Copy, Debug)]
pub struct DifferentiatedAt<'a, S> {
    /// Time, coordinates, velocities; inputs as for [`Integrator::run`](crate::Integrator::run).
    pub at: At<'a, S>,
    /// Their derivatives, as [`JointDerivatives`].
    pub derivatives: &'a [S],
}

/// A way to integrate a system and its derivatives over a span of time.
pub trait DifferentiableIntegrator {
    /// Length of the scratch that a run needs, at least.
    fn scratch_len<D: JointDynamics>(&self, system: &D) -> usize {
        self.scratch_len_along(system, system.dims().sensitivity.parameters)
    }

    /// The same for this many directions instead of all parameters.
    fn scratch_len_along<D: JointDynamics>(&self, system: &D, columns: usize) -> usize;

    /// Integrates `y` = \[z, v\] and its [`JointDerivatives`] from start to end of the span.
    ///
    /// Writes objectives and their derivatives to `gradient`, see [`Gradient`]. The observer sees what that of
    /// [`Integrator::run`](crate::Integrator::run) does. Where it breaks the run ends, and the objectives are those of the run so far.
    /// After an error `y` and derivatives are those after the last good step, and the gradient is meaningless.
    #[allow(clippy::too_many_arguments, reason = "what a run reads and writes")]
    fn run<D, I, O>(
        &self,
        system: &D,
        inputs: &mut I,
        y: &mut [D::S],
        derivatives: &mut [D::S],
        span: &Span<D::S>,
        gradient: &mut [D::S],
        scratch: &mut [D::S],
        observe: O,
    ) -> Result<Statistics, StepError>
    where
        D: JointDynamics,
        D::Model: JointObjectiveDerivatives,
        I: Inputs<D::S>,
        O: FnMut(DifferentiatedAt<'_, D::S>) -> ControlFlow<()>,
    {
        let columns = system.dims().sensitivity.parameters;
        let each = Along { columns, directions: Directions::Each };
        self.run_along(each, system, inputs, y, derivatives, span, gradient, scratch, observe)
    }

    /// The same along some directions: `derivatives` and `gradient` have a column for each.
    #[doc(hidden)]
    #[allow(clippy::too_many_arguments, reason = "what a run reads and writes")]
    fn run_along<D, I, O>(
        &self,
        directions: Along<'_, D::S>,
        system: &D,
        inputs: &mut I,
        y: &mut [D::S],
        derivatives: &mut [D::S],
        span: &Span<D::S>,
        gradient: &mut [D::S],
        scratch: &mut [D::S],
        observe: O,
    ) -> Result<Statistics, StepError>
    where
        D: JointDynamics,
        D::Model: JointObjectiveDerivatives,
        I: Inputs<D::S>,
        O: FnMut(DifferentiatedAt<'_, D::S>) -> ControlFlow<()>;

    /// Length of the scratch of [`DifferentiableIntegrator::jacobian_vector`], at least.
    fn jacobian_vector_scratch_len<D: JointDynamics>(&self, system: &D, columns: usize) -> usize {
        system.dims().n_objectives * (1 + columns) + self.scratch_len_along(system, columns)
    }

    /// Integrates `y` = \[z, v\] from start to end of the span, and takes directions along; those of states have a row for each entry of y.
    fn jacobian_vector<D, I>(
        &self,
        system: &D,
        inputs: &mut I,
        y: &mut [D::S],
        span: &Span<D::S>,
        product: JacobianVector<'_, D::S>,
        scratch: &mut [D::S],
    ) -> Result<Statistics, StepError>
    where
        D: JointDynamics,
        D::Model: JointObjectiveDerivatives,
        I: Inputs<D::S>,
    {
        let dims = system.dims();
        product.check(&dims, dims.state())?;
        let JacobianVector { columns, start, rho, objectives, objective_changes, end } = product;
        let len = objectives.len() + objective_changes.len();
        let mut pieces = Pieces::of(scratch, self.jacobian_vector_scratch_len(system, columns));
        let found = pieces.next(len)?;
        copy(end, start);
        let along = Along { columns, directions: Directions::Along(rho) };
        let unseen = |_: DifferentiatedAt<'_, D::S>| ControlFlow::Continue(());
        let statistics = self.run_along(along, system, inputs, y, end, span, found, pieces.rest(), unseen)?;
        for (to, &from) in objectives.iter_mut().chain(objective_changes).zip(found.iter()) {
            *to = from;
        }
        Ok(statistics)
    }
}

/// Directions among the parameters, and how many they are.
#[derive(Clone, Copy, Debug)]
pub struct Along<'a, S> {
    columns: usize,
    directions: Directions<'a, S>,
}

/// y, its derivatives and the objectives, as one state.
pub(crate) struct Augment<'a, S> {
    y: &'a mut [S],
    derivatives: &'a mut [S],
    gradient: &'a mut [S],
}

impl<'a, S: Scalar> Augment<'a, S> {
    /// Checks lengths.
    pub(crate) fn new(
        dims: &Dims,
        y: &'a mut [S],
        derivatives: &'a mut [S],
        gradient: &'a mut [S],
    ) -> Result<Self, StepError> {
        check_state(dims, y)?;
        JointDerivatives::of(dims, derivatives)?;
        let (expected, found) = (Gradient::<S>::len(dims), gradient.len());
        if expected != found {
            return Err(StepError::Length { what: "gradient", expected, found });
        }
        Ok(Self { y, derivatives, gradient })
    }

    /// Into `to`: all of it, the integrals zero.
    pub(crate) fn write(&self, to: &mut [S]) {
        let parts = self.y.iter().chain(self.derivatives.iter()).copied();
        let zeros = core::iter::repeat(S::ZERO);
        for (to, from) in to.iter_mut().zip(parts.chain(zeros)) {
            *to = from;
        }
    }

    /// From `from`: all of it.
    pub(crate) fn read(&mut self, from: &[S]) {
        let parts = self.y.iter_mut().chain(self.derivatives.iter_mut()).chain(self.gradient.iter_mut());
        for (to, &from) in parts.zip(from) {
            *to = from;
        }
    }
}

/// What the observer sees of all of it.
pub(crate) fn seen<'a, S: Scalar>(
    dims: &Dims,
    t: S,
    y: &'a [S],
    u: &'a [S],
) -> Result<DifferentiatedAt<'a, S>, StepError> {
    let fail = |error: EvalError| error.in_step(t.real(), 0.0);
    let (state, rest) = cut("y", y, dims.state()).map_err(fail)?;
    let at = At::of_state(dims, t, state, u).map_err(fail)?;
    let (derivatives, _) = cut("y", rest, JointDerivatives::<S>::len(dims)).map_err(fail)?;
    Ok(DifferentiatedAt { at, derivatives })
}

/// The dimensions of a system that is differentiated along this many directions.
fn along<D: JointDynamics>(system: &D, columns: usize) -> Dims {
    let mut dims = system.dims();
    dims.sensitivity.parameters = columns;
    dims
}

impl<T: FixedStep> DifferentiableIntegrator for Differentiated<Fixed<T>> {
    fn scratch_len_along<D: JointDynamics>(&self, system: &D, columns: usize) -> usize {
        let dims = along(system, columns);
        let n = augmented::len(&dims);
        n + T::memory_len(n) + augmented::scratch_len_of(system, &dims)
    }

    fn run_along<D, I, O>(
        &self,
        directions: Along<'_, D::S>,
        system: &D,
        inputs: &mut I,
        y: &mut [D::S],
        derivatives: &mut [D::S],
        span: &Span<D::S>,
        gradient: &mut [D::S],
        scratch: &mut [D::S],
        mut observe: O,
    ) -> Result<Statistics, StepError>
    where
        D: JointDynamics,
        D::Model: JointObjectiveDerivatives,
        I: Inputs<D::S>,
        O: FnMut(DifferentiatedAt<'_, D::S>) -> ControlFlow<()>,
    {
        refuse_first_order_states(system)?;
        let mut nodes = Nodes::new(span, self.0.h)?;
        let dims = along(system, directions.columns);
        let n = augmented::len(&dims);
        let mut augment = Augment::new(&dims, y, derivatives, gradient)?;
        let mut pieces = Pieces::of(scratch, self.scratch_len_along(system, directions.columns));
        let all = pieces.next(n)?;
        let mut field = Augmented::new(system, dims, directions.directions, inputs, &mut pieces)?;
        augment.write(all);
        field.check_multipliers(span.start, all)?;
        let mut run = FixedRun::<T, _>::new(&mut field, n, &mut pieces, all)?;
        let observe = Observe(|t, y: &[D::S], u: &[D::S]| Ok(observe(seen(&dims, t, y, u)?)));
        let outcome = drive(&mut run, &mut nodes, &mut (observe, Terminals));
        augment.read(run.parts().1);
        outcome
    }
}

impl<T: Controlled> DifferentiableIntegrator for Differentiated<Adaptive<T>> {
    fn scratch_len_along<D: JointDynamics>(&self, system: &D, columns: usize) -> usize {
        let dims = along(system, columns);
        let n = augmented::len(&dims);
        n + T::memory_len(n) + augmented::scratch_len_of(system, &dims)
    }

    fn run_along<D, I, O>(
        &self,
        directions: Along<'_, D::S>,
        system: &D,
        inputs: &mut I,
        y: &mut [D::S],
        derivatives: &mut [D::S],
        span: &Span<D::S>,
        gradient: &mut [D::S],
        scratch: &mut [D::S],
        mut observe: O,
    ) -> Result<Statistics, StepError>
    where
        D: JointDynamics,
        D::Model: JointObjectiveDerivatives,
        I: Inputs<D::S>,
        O: FnMut(DifferentiatedAt<'_, D::S>) -> ControlFlow<()>,
    {
        refuse_first_order_states(system)?;
        let mut limits = Limits::new(&self.0, span)?;
        let dims = along(system, directions.columns);
        let n = augmented::len(&dims);
        let mut augment = Augment::new(&dims, y, derivatives, gradient)?;
        let mut pieces = Pieces::of(scratch, self.scratch_len_along(system, directions.columns));
        let all = pieces.next(n)?;
        let mut stages = T::stages(n, &mut pieces)?;
        let mut field = Augmented::new(system, dims, directions.directions, inputs, &mut pieces)?;
        augment.write(all);
        field.check_multipliers(span.start, all)?;
        let mut run = AdaptiveRun::new(&self.0, &mut field, &mut stages, span.start, all);
        let observe =
            ObserveDense::new(span, |t, y: &[D::S], u: &[D::S]| Ok(observe(seen(&dims, t, y, u)?)))?;
        let outcome = drive(&mut run, &mut limits, &mut (observe, Terminals));
        augment.read(run.parts().1);
        outcome
    }
}

/// Length of the scratch that a run needs, at least, by an explicit method with so many values of memory for each of the state; a constant
/// for generated models. `dims` are those of the dynamics.
pub(crate) const fn scratch_len_of_run_by(
    memory: usize,
    dims: &Dims,
    corrects: bool,
    completes: bool,
) -> usize {
    (1 + memory) * augmented::len(dims) + augmented::scratch_len(dims, corrects, completes, false)
}

/// The same by a method with implicit stages.
pub(crate) const fn scratch_len_of_run_by_stages(
    memory: usize,
    dims: &Dims,
    corrects: bool,
    completes: bool,
) -> usize {
    (1 + memory) * augmented::len(dims) + augmented::scratch_len(dims, corrects, completes, true)
}

/// Terminal terms of the objectives at the end of a run.
pub(crate) struct Terminals;

impl<'a, W, D, I> Hooks<W> for Terminals
where
    W: ExplicitRun<S = D::S, Field = Augmented<'a, D, I>>,
    D: JointDynamics + 'a,
    D::Model: JointObjectiveDerivatives,
    I: Inputs<D::S> + 'a,
{
    #[inline(always)]
    fn node(&mut self, _: &mut W, _: &Taken<D::S>, _: bool) -> Result<Next, StepError> {
        Ok(Next::Continue)
    }

    #[inline(always)]
    fn end(&mut self, run: &mut W, t: D::S) -> Result<(), StepError> {
        let (field, y) = run.parts();
        field.add_terminals(t, y).map_err(|error| error.in_step(t.real(), 0.0))
    }
}
