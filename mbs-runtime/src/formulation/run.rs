//! Runs of equal implicit steps.
//!
//! Nodes are those of [`Fixed`]: start + k h, the last one the end of the span itself.

use core::ops::ControlFlow;

use super::ali3p::Ali3p;
use super::implicit_index1::ImplicitIndex1;
use super::state::State;
use crate::constrained::{Constrained, Motion};
use crate::error::StepError;
use crate::inputs::Inputs;
use crate::integrator::{
    Fixed, Hooks, Next, Nodes, Planned, Span, Statistics, StepStatistics, Stepper, Taken, copy_all, drive,
};
use crate::pieces::Pieces;
use crate::scalar::Scalar;
use crate::system::Dims;

/// A formulation that makes implicit steps.
pub trait ImplicitStep {
    /// Length of the scratch that [`ImplicitStep::step`] needs, at least; never below nu.
    fn scratch_len(&self, dims: &Dims) -> usize;

    /// Takes the [`State`] one step further by `h`. The scratch carries nothing from one step to the next. After an error
    /// the state is as before.
    fn step<M: Constrained, I: Inputs<M::S>>(
        &self,
        system: &M,
        inputs: &mut I,
        state: &mut [M::S],
        h: M::S,
        scratch: &mut [M::S],
    ) -> Result<StepStatistics, StepError>;
}

macro_rules! implicit_step {
    ($($formulation:ty),+) => {
        $(
            impl ImplicitStep for $formulation {
                #[inline(always)]
                fn scratch_len(&self, dims: &Dims) -> usize {
                    Self::scratch_len(dims)
                }

                #[inline]
                fn step<M: Constrained, I: Inputs<M::S>>(
                    &self,
                    system: &M,
                    inputs: &mut I,
                    state: &mut [M::S],
                    h: M::S,
                    scratch: &mut [M::S],
                ) -> Result<StepStatistics, StepError> {
                    self.step(system, inputs, state, h, scratch)
                }
            }
        )+
    };
}
implicit_step!(Ali3p, ImplicitIndex1);

/// What an observer sees at a node.
#[derive(Clone, Copy, Debug)]
pub struct Node<'a, S> {
    /// Time, coordinates, rates, accelerations; inputs with which the next step begins.
    pub motion: Motion<'a, S>,
    /// Multipliers.
    pub lambda: &'a [S],
    /// Derivatives of both by the parameters, as [`StateDerivatives`](crate::StateDerivatives); nothing in a run without them.
    pub derivatives: &'a [S],
    /// The step that ends here; nothing but zeros at the start.
    pub step: StepStatistics,
}

/// Equal implicit steps of a state.
pub(crate) struct ImplicitRun<'a, T, M: Constrained, I> {
    pub(crate) method: &'a T,
    pub(crate) system: &'a M,
    pub(crate) dims: Dims,
    pub(crate) inputs: &'a mut I,
    pub(crate) state: &'a mut [M::S],
    pub(crate) scratch: &'a mut [M::S],
}

impl<T: ImplicitStep, M: Constrained, I: Inputs<M::S>> Stepper for ImplicitRun<'_, T, M, I> {
    type S = M::S;

    #[inline(always)]
    fn step(&mut self, planned: &Planned<M::S>) -> Result<Taken<M::S>, StepError> {
        let Planned { t, h, end, .. } = *planned;
        let statistics = self.method.step(self.system, self.inputs, self.state, h, self.scratch)?;
        *State::of(&self.dims, self.state)?.t = end;
        Ok(Taken { t, h, end, statistics })
    }

    fn saved_len(&self) -> usize {
        self.state.len()
    }

    fn save(&self, to: &mut [M::S]) -> Result<(), StepError> {
        copy_all("saved", to, self.state)
    }

    fn restore(&mut self, from: &[M::S]) -> Result<(), StepError> {
        copy_all("saved", self.state, from)
    }
}

/// Output at observed nodes.
pub(crate) struct Observe<O>(pub(crate) O);

impl<T, M, I, O> Hooks<ImplicitRun<'_, T, M, I>> for Observe<O>
where
    T: ImplicitStep,
    M: Constrained,
    I: Inputs<M::S>,
    O: FnMut(Node<'_, M::S>) -> ControlFlow<()>,
{
    #[inline(always)]
    fn node(
        &mut self,
        run: &mut ImplicitRun<'_, T, M, I>,
        step: &Taken<M::S>,
        observed: bool,
    ) -> Result<Next, StepError> {
        if !observed {
            return Ok(Next::Continue);
        }
        // Between steps the scratch is free; it is longer than the inputs.
        let u = Pieces::of(run.scratch, run.method.scratch_len(&run.dims)).next(run.dims.nu)?;
        let state = State::of(&run.dims, run.state)?;
        if !u.is_empty() {
            run.inputs.at(*state.t, u);
        }
        let node =
            Node { motion: state.motion(u), lambda: state.lambda, derivatives: &[], step: step.statistics };
        Ok(if (self.0)(node).is_break() { Next::Stop } else { Next::Continue })
    }
}

/// An error unless the time of the state is the start of the span.
pub(crate) fn check_start<S: Scalar>(dims: &Dims, state: &mut [S], span: &Span<S>) -> Result<(), StepError> {
    let t = *State::of(dims, state)?.t;
    if t == span.start {
        return Ok(());
    }
    let what = "the state's time must be the start of the span";
    Err(StepError::Setting { what, value: t.real() })
}

impl<T: ImplicitStep> Fixed<T> {
    /// Integrates the [`State`] from start to end of the span; its time must be the start.
    ///
    /// The observer sees start, end, and what [`Span::output`] says, each time once and in order. Where it breaks the run
    /// ends. After an error the state is that after the last good step.
    pub fn run<M, I, O>(
        &self,
        system: &M,
        inputs: &mut I,
        state: &mut [M::S],
        span: &Span<M::S>,
        scratch: &mut [M::S],
        observe: O,
    ) -> Result<Statistics, StepError>
    where
        M: Constrained,
        I: Inputs<M::S>,
        O: FnMut(Node<'_, M::S>) -> ControlFlow<()>,
    {
        let mut nodes = Nodes::new(span, self.h)?;
        let dims = system.dims();
        check_start(&dims, state, span)?;
        let mut run = ImplicitRun { method: &self.method, system, dims, inputs, state, scratch };
        drive(&mut run, &mut nodes, &mut Observe(observe))
    }
}
