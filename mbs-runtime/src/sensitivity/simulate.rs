//! Explicit runs together with their derivatives by the parameters.
//!
//! Enters: y = \[z, v\] and its derivatives at the start. Leaves: both at the end, objectives by the weights of the method itself, their
//! gradient; derivatives at every observed time. The states are those of [`Integrator::simulate`](crate::Integrator), bit for
//! bit; with step control the sequence of steps is taken as it is.

use core::ops::ControlFlow;

use super::augmented::{self, Augmented};
use super::derivatives::JointObjectiveDerivatives;
use super::joint_dynamics::JointDynamics;
use super::joint_state::{JointDerivatives, refuse_first_order_states};
use super::objectives::Gradient;
use super::run::Differentiated;
use crate::error::StepError;
use crate::inputs::Inputs;
use crate::integrator::{
    Adaptive, DormandPrince, ExplicitMethod, Fixed, Nodes, Rates, Rk4, Span, Stages, Statistics, check_state,
};
use crate::pieces::Pieces;
use crate::scalar::Scalar;
use crate::system::{At, Dims};

/// What an observer sees of an explicit run.
#[derive(Clone, Copy, Debug)]
pub struct DifferentiatedAt<'a, S> {
    /// Time, coordinates, velocities; inputs as for [`Integrator::simulate`](crate::Integrator::simulate).
    pub at: At<'a, S>,
    /// Their derivatives, as [`JointDerivatives`].
    pub derivatives: &'a [S],
}

/// A way to integrate a system and its derivatives over a span of time.
pub trait DifferentiableIntegrator {
    /// Length of the scratch that a run needs, at least.
    fn scratch_len<D: JointDynamics>(&self, system: &D) -> usize;

    /// Integrates `y` = \[z, v\] and its [`JointDerivatives`] from start to end of the span.
    ///
    /// Writes objectives and their derivatives to `gradient`, see [`Gradient`]. The observer sees what that of
    /// [`Integrator::simulate`](crate::Integrator::simulate) does. Where it breaks the run ends, and the objectives are those of the run so far.
    /// After an error `y` and derivatives are those after the last good step, and the gradient is meaningless.
    #[allow(clippy::too_many_arguments, reason = "what a run reads and writes")]
    fn simulate<D, I, O>(
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
        O: FnMut(DifferentiatedAt<'_, D::S>) -> ControlFlow<()>;
}

/// y, its derivatives and the objectives, as one state.
struct Augment<'a, S> {
    y: &'a mut [S],
    derivatives: &'a mut [S],
    gradient: &'a mut [S],
}

impl<'a, S: Scalar> Augment<'a, S> {
    /// Checks lengths.
    fn new(
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
    fn write(&self, to: &mut [S]) {
        let parts = self.y.iter().chain(self.derivatives.iter()).copied();
        let zeros = core::iter::repeat(S::ZERO);
        for (to, from) in to.iter_mut().zip(parts.chain(zeros)) {
            *to = from;
        }
    }

    /// From `from`: all of it.
    fn read(&mut self, from: &[S]) {
        let parts = self.y.iter_mut().chain(self.derivatives.iter_mut()).chain(self.gradient.iter_mut());
        for (to, &from) in parts.zip(from) {
            *to = from;
        }
    }
}

/// What the observer sees of all of it.
fn seen<'a, S: Scalar>(
    dims: &Dims,
    t: S,
    y: &'a [S],
    u: &'a [S],
) -> Result<DifferentiatedAt<'a, S>, StepError> {
    let (state, rest) = y.split_at_checked(dims.state()).unwrap_or_default();
    let at = At::of_state(dims, t, state, u).map_err(|error| error.in_step(t.real(), 0.0))?;
    let derivatives = rest.get(..JointDerivatives::<S>::len(dims)).unwrap_or_default();
    Ok(DifferentiatedAt { at, derivatives })
}

impl<T: Explicit> DifferentiableIntegrator for Differentiated<Fixed<T>> {
    fn scratch_len<D: JointDynamics>(&self, system: &D) -> usize {
        let (dims, n) = (system.dims(), augmented::len(&system.dims()));
        n + T::memory_len(n) + augmented::scratch_len(&dims, D::CORRECTS_STEPS)
    }

    fn simulate<D, I, O>(
        &self,
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
        let nodes = Nodes::new(span, self.0.h)?;
        let dims = system.dims();
        let n = augmented::len(&dims);
        let mut augment = Augment::new(&dims, y, derivatives, gradient)?;
        let mut pieces = Pieces::of(scratch, self.scratch_len(system));
        let all = pieces.next(n)?;
        let memory = pieces.next(T::memory_len(n))?;
        let mut field = Augmented::new(system, inputs, &mut pieces)?;
        augment.write(all);
        field.check_multipliers(span.start, all)?;

        let mut t = span.start;
        let mut statistics = Statistics { t: t.real(), ..Statistics::default() };
        statistics.stopped = observe(seen(&dims, t, all, field.at_node(t))?).is_break();
        while statistics.steps < nodes.steps && !statistics.stopped {
            let number = statistics.steps + 1;
            let h = nodes.size(number, t);
            let stages = T::stages(n, &mut Pieces::of(&mut *memory, T::memory_len(n)))?;
            let stepped = T::advance(&mut field, stages, t, all, h);
            if let Err(error) = stepped {
                augment.read(all);
                return Err(error.in_step(t.real(), h.real()));
            }
            t = nodes.time(number);
            statistics.steps = number;
            statistics.evaluations += T::STAGES;
            statistics.t = t.real();
            statistics.h = h.real();
            if nodes.observed(number) {
                statistics.stopped = observe(seen(&dims, t, all, field.at_node(t))?).is_break();
            }
        }
        end(&mut field, t, all, &mut augment)?;
        Ok(statistics)
    }
}

impl DifferentiableIntegrator for Differentiated<Adaptive> {
    fn scratch_len<D: JointDynamics>(&self, system: &D) -> usize {
        let (dims, n) = (system.dims(), augmented::len(&system.dims()));
        n + DormandPrince::memory_len(n) + augmented::scratch_len(&dims, D::CORRECTS_STEPS)
    }

    fn simulate<D, I, O>(
        &self,
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
        let dims = system.dims();
        let n = augmented::len(&dims);
        let mut augment = Augment::new(&dims, y, derivatives, gradient)?;
        let mut pieces = Pieces::of(scratch, self.scratch_len(system));
        let all = pieces.next(n)?;
        let mut stages = Stages::new(n, &mut pieces)?;
        let mut field = Augmented::new(system, inputs, &mut pieces)?;
        augment.write(all);
        field.check_multipliers(span.start, all)?;
        let mut reached = span.start;
        let run = self.0.drive(&mut field, &mut stages, all, span, |t, y, u| {
            reached = t;
            Ok(observe(seen(&dims, t, y, u)?))
        });
        match run {
            Ok(statistics) => {
                end(&mut field, reached, all, &mut augment)?;
                Ok(statistics)
            }
            Err(error) => {
                augment.read(all);
                Err(error)
            }
        }
    }
}

/// The explicit methods.
#[allow(private_bounds, reason = "only the methods of this crate have stages that can be differentiated")]
pub trait Explicit: ExplicitMethod {}

impl Explicit for Rk4 {}
impl Explicit for DormandPrince {}

/// Terminal terms, and everything to the caller.
fn end<D: JointDynamics, I: Inputs<D::S>>(
    field: &mut Augmented<'_, D, I>,
    t: D::S,
    all: &mut [D::S],
    augment: &mut Augment<'_, D::S>,
) -> Result<(), StepError>
where
    D::Model: JointObjectiveDerivatives,
{
    let added = field.add_terminals(t, all);
    augment.read(all);
    added.map_err(|error| error.in_step(t.real(), 0.0))
}
