//! One of two methods, for models whose cases have different ones. The state is as long as the longer one; each uses its first values.

use super::gradient::DifferentiableMethod;
use super::method::{Method, Node, Work};
use super::{Clock, Settings, Target};
use crate::error::{EvalError, StepError};
use crate::inputs::Inputs;
use crate::integrator::{Accepted, Statistics};
use crate::pieces::{Pieces, cut_mut};
use crate::system::{Dims, System};

/// One of two methods.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "the first or the second")]
pub enum Either<A, B> {
    First(A),
    Second(B),
}

macro_rules! forward {
    ($either:expr, $method:ident => $call:expr) => {
        match $either {
            Either::First($method) => $call,
            Either::Second($method) => $call,
        }
    };
}

impl<M: System, A: Method<M>, B: Method<M, Happened = A::Happened>> Method<M> for Either<A, B> {
    type Happened = A::Happened;

    fn latch(&self, model: &M, state: &[M::S], u: &mut [M::S]) {
        forward!(self, method => method.latch(model, state, u));
    }

    fn happened(&self, model: &M, state: &[M::S]) -> A::Happened {
        forward!(self, method => method.happened(model, state))
    }

    fn state_len(&self, dims: &Dims) -> usize {
        forward!(self, method => method.state_len(dims))
    }

    fn start<I: Inputs<M::S>>(&mut self, work: Work<'_, M, I>, settings: &Settings) -> Result<(), StepError> {
        let len = self.state_len(&work.model.dims());
        let work = work.with_state(len)?;
        forward!(self, method => method.start(work, settings))
    }

    fn step<I: Inputs<M::S>>(
        &self,
        work: Work<'_, M, I>,
        clock: &mut Clock,
        target: &Target,
        statistics: &mut Statistics,
    ) -> Result<(), StepError> {
        let len = self.state_len(&work.model.dims());
        let work = work.with_state(len)?;
        forward!(self, method => method.step(work, clock, target, statistics))
    }

    fn observe(
        &self,
        model: &M,
        t: M::S,
        state: &mut [M::S],
        scratch: &mut [M::S],
        node: Node<'_, M::S>,
    ) -> Result<(), EvalError> {
        let (state, _) = cut_mut("state", state, self.state_len(&model.dims()))?;
        forward!(self, method => method.observe(model, t, state, scratch, node))
    }

    fn is_dense(&self) -> bool {
        forward!(self, method => method.is_dense())
    }

    fn interpolate(
        &self,
        model: &M,
        step: &Accepted<M::S>,
        theta: M::S,
        scratch: &mut [M::S],
        state: &mut [M::S],
    ) -> Result<(), StepError> {
        let len = self.state_len(&model.dims());
        let state = Pieces::named("state", state, len).next(len)?;
        forward!(self, method => method.interpolate(model, step, theta, scratch, state))
    }
}

impl<M: System, A: DifferentiableMethod<M>, B: DifferentiableMethod<M>> DifferentiableMethod<M>
    for Either<A, B>
{
    fn gradient<I: Inputs<M::S>>(
        self,
        model: &M,
        inputs: &mut I,
        settings: &Settings,
        memory: &mut [M::S],
        values: &mut [M::S],
    ) -> Result<(), StepError> {
        forward!(self, method => method.gradient(model, inputs, settings, memory, values))
    }
}
