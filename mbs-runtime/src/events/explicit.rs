//! Explicit runs with events.

use core::cell::{Cell, RefCell};
use core::ops::ControlFlow;

use super::jump::Jump;
use super::latches::Latched;
use super::locate::{self, Driver, Functions, Located};
use super::{Events, Occurrence, Sight, WithEvents};
use crate::error::{EvalError, StepError};
use crate::inputs::Inputs;
use crate::integrator::{
    Adaptive, AdaptiveRun, Controlled, ExplicitRun, Field, Fixed, FixedRun, FixedStep, Integrator, Limits,
    Nodes, Observe, ObserveDense, Rates, Span, Statistics, carried_len, check_state, drive, moving,
};
use crate::linear::copy;
use crate::pieces::{Pieces, cut_mut};
use crate::scalar::Scalar;
use crate::system::{At, Dims, ForwardDynamics};

/// An explicit integrator whose runs have events.
pub trait EventIntegrator: Integrator {
    /// Length of the scratch that a run with events needs, at least.
    fn event_scratch_len<M: WithEvents>(&self, system: &M) -> usize {
        let dims = system.dims();
        self.scratch_len(&dims) + memory_len(system, dims.stepped() + 2)
    }

    /// Integrates `y` from start to end of the span, or to an event that stops the run. The observer sees what that of
    /// [`Integrator::run`] does, and every event.
    fn run_with_events<M, I, O>(
        &self,
        system: &M,
        inputs: &mut I,
        y: &mut [M::S],
        span: &Span<M::S>,
        scratch: &mut [M::S],
        observe: O,
    ) -> Result<Statistics, StepError>
    where
        M: ForwardDynamics + WithEvents,
        I: Inputs<M::S>,
        O: FnMut(Sight<'_, At<'_, M::S>, M::S>) -> ControlFlow<()>;
}

/// Memory of the hook and its driver, for a saved state of this length.
pub(crate) fn memory_len<M: WithEvents>(system: &M, saved: usize) -> usize {
    let (dims, model) = (system.dims(), system.events());
    let located = locate::memory_len(&model.event_table(), saved);
    let own = dims.nu + dims.nq + dims.nv + dims.joint_rows() + dims.workspace;
    located + own + Jump::len(model)
}

/// How an explicit run answers questions of events.
pub(crate) struct ExplicitDriver<'a, M: WithEvents> {
    pub(crate) system: &'a M,
    pub(crate) dims: Dims,
    pub(crate) zd: &'a mut [M::S],
    pub(crate) vd: &'a mut [M::S],
    pub(crate) lambda: &'a mut [M::S],
    pub(crate) jump: Jump<'a, M::S>,
    pub(crate) latches: &'a [Cell<M::S>],
    event: usize,
    pub(crate) w: &'a mut [M::S],
}

impl<'a, M: WithEvents> ExplicitDriver<'a, M> {
    pub(crate) fn new(
        system: &'a M,
        latches: &'a [Cell<M::S>],
        pieces: &mut Pieces<'a, M::S>,
    ) -> Result<Self, StepError> {
        let dims = system.dims();
        Ok(Self {
            system,
            dims,
            zd: pieces.next(dims.nq)?,
            vd: pieces.next(dims.nv)?,
            lambda: pieces.next(dims.joint_rows())?,
            jump: Jump::new(system.events(), pieces)?,
            latches,
            event: 0,
            w: pieces.next(dims.workspace)?,
        })
    }

    /// Evaluates all functions at an instant; vd and λ are known afterwards.
    pub(crate) fn functions(
        &mut self,
        at: At<'_, M::S>,
        to: &mut Functions<'_, M::S>,
    ) -> Result<(), EvalError> {
        self.system.accelerations(at, self.w, self.zd, self.vd, self.lambda)?;
        let Functions { values, rates, armed } = to;
        self.system.events().event_functions(at, self.vd, self.lambda, self.w, values, rates, armed)
    }

    /// Velocities after an event, with the inputs after it.
    pub(crate) fn solve(&mut self, event: usize, at: At<'_, M::S>) -> Result<(), StepError> {
        self.event = event;
        self.jump.solve(self.system.events(), event, at, self.w)
    }

    /// Inputs after an event, from an instant before it.
    pub(crate) fn settle(&mut self, event: usize, at: At<'_, M::S>) -> Result<(), StepError> {
        self.jump.settle(self.system.events(), event, at, self.latches, self.w)?;
        Ok(())
    }

    /// Puts coordinates where a settled event wants them.
    pub(crate) fn place(
        &mut self,
        event: usize,
        t: M::S,
        y: &mut [M::S],
        u: &[M::S],
    ) -> Result<(), StepError> {
        let (model, dims) = (self.system.events(), self.dims);
        let fail = |error: EvalError| error.in_step(t.real(), 0.0);
        let (z, _) = cut_mut("y", y, dims.nq).map_err(fail)?;
        match self.jump.place(dims.nu, &model.event_table(), event, z) {
            true => self.jump.check_placed(model, event, state_at(&dims, t, y, u)?, self.w),
            false => Ok(()),
        }
    }

    /// Gives an input a value. Whether it is another one.
    pub(crate) fn set_latch(&self, input: u32, value: M::S) -> bool {
        self.latches.get(input as usize).is_some_and(|latch| latch.replace(value) != value)
    }

    /// Impulses of the event that acted last.
    pub(crate) fn impulses(&self) -> &[M::S] {
        let table = self.system.events().event_table();
        let (first, end) = table.events.get(self.event).map_or((0, 0), |entry| entry.conditions);
        self.jump.mu.get(first..end).unwrap_or(&[])
    }
}

/// The state of an explicit run at an instant.
pub(crate) fn state_at<'a, S: Scalar>(
    dims: &Dims,
    t: S,
    y: &'a [S],
    u: &'a [S],
) -> Result<At<'a, S>, StepError> {
    let wrong = StepError::Length { what: "y", expected: dims.state(), found: y.len() };
    let state = y.get(..dims.state()).ok_or(wrong)?;
    At::of_state(dims, t, state, u).map_err(|error| error.in_step(t.real(), 0.0))
}

impl<W: ExplicitRun, M: WithEvents<S = W::S>> Driver<W> for ExplicitDriver<'_, M> {
    fn evaluate(
        &mut self,
        run: &mut W,
        t: W::S,
        ended: bool,
        to: &mut Functions<'_, W::S>,
    ) -> Result<(), StepError> {
        let (field, y) = run.parts();
        let u = if ended { field.during_step(t, W::S::ONE) } else { field.at_node(t) };
        let at = state_at(&self.dims, t, y, u)?;
        self.functions(at, to).map_err(|error| error.in_step(t.real(), 0.0))
    }

    fn sides(
        &mut self,
        run: &mut W,
        t: W::S,
        curvatures: &mut [W::S],
        sizes: &mut [W::S],
    ) -> Result<(), StepError> {
        let (field, y) = run.parts();
        let at = state_at(&self.dims, t, y, field.at_node(t))?;
        let model = self.system.events();
        let written = model.event_sides(at, self.vd, self.lambda, self.w, curvatures, sizes);
        written.map_err(|error| error.in_step(t.real(), 0.0))
    }

    fn act(&mut self, run: &mut W, t: W::S, event: usize) -> Result<(), StepError> {
        let (field, y) = run.parts();
        self.settle(event, state_at(&self.dims, t, y, field.at_node(t))?)?;
        let u = field.at_node(t);
        self.place(event, t, y, u)?;
        self.solve(event, state_at(&self.dims, t, y, u)?)?;
        self.jump.apply_to(&self.dims, t, y)
    }

    fn restart(&mut self, _: &mut W, _: W::S) -> Result<(), StepError> {
        Ok(())
    }

    fn latch(&mut self, input: u32, value: W::S) -> bool {
        self.set_latch(input, value)
    }

    fn acted(&self) -> [&[W::S]; 3] {
        [self.impulses(), self.jump.row_impulses(), &[]]
    }

    fn inputs_jump(&self) -> bool {
        self.dims.nu > 0
    }
}

/// Nobody looks while somebody looks: the run goes on.
pub(crate) fn look<N, S, O>(eyes: &RefCell<O>, sight: Sight<'_, N, S>) -> ControlFlow<()>
where
    O: FnMut(Sight<'_, N, S>) -> ControlFlow<()>,
{
    match eyes.try_borrow_mut() {
        Ok(mut eyes) => eyes(sight),
        Err(_) => ControlFlow::Continue(()),
    }
}

impl<T: FixedStep> EventIntegrator for Fixed<T> {
    fn run_with_events<M, I, O>(
        &self,
        system: &M,
        inputs: &mut I,
        y: &mut [M::S],
        span: &Span<M::S>,
        scratch: &mut [M::S],
        observe: O,
    ) -> Result<Statistics, StepError>
    where
        M: ForwardDynamics + WithEvents,
        I: Inputs<M::S>,
        O: FnMut(Sight<'_, At<'_, M::S>, M::S>) -> ControlFlow<()>,
    {
        let mut nodes = Nodes::new(span, self.h)?;
        let dims = system.dims();
        check_state(&dims, y)?;
        let table = system.events().event_table();
        let mut pieces = Pieces::of(scratch, self.event_scratch_len(system));
        let mut inputs = Latched::new(inputs, table.inputs, span.start, pieces.next(dims.nu)?);
        let driver = ExplicitDriver::new(system, inputs.values, &mut pieces)?;
        let (eyes, own) = (RefCell::new(observe), Cell::new(true));
        let node =
            |t, y: &[M::S], u: &[M::S]| Ok(look(&eyes, Sight::Node(state_at(&dims, t, y, u)?, own.get())));
        let event = |occurrence: Occurrence<'_, M::S>| look(&eyes, Sight::Event(occurrence));
        let mut hooks = Located::new(table, driver, Observe(node), event, &own, dims.stepped(), &mut pieces)?;
        let mut field = Field::new(system, &mut inputs, &mut pieces)?;
        let carried = pieces.next(carried_len(&dims))?;
        let moving = moving(&dims, &mut *y, &mut *carried);
        let mut run = FixedRun::<T, _>::new(&mut field, dims.stepped(), &mut pieces, moving)?;
        let outcome = drive(&mut run, &mut nodes, &mut hooks);
        copy(y, carried);
        outcome
    }
}

impl<T: Controlled> EventIntegrator for Adaptive<T> {
    fn run_with_events<M, I, O>(
        &self,
        system: &M,
        inputs: &mut I,
        y: &mut [M::S],
        span: &Span<M::S>,
        scratch: &mut [M::S],
        observe: O,
    ) -> Result<Statistics, StepError>
    where
        M: ForwardDynamics + WithEvents,
        I: Inputs<M::S>,
        O: FnMut(Sight<'_, At<'_, M::S>, M::S>) -> ControlFlow<()>,
    {
        let mut limits = Limits::new(self, span)?;
        let dims = system.dims();
        check_state(&dims, y)?;
        let table = system.events().event_table();
        let mut pieces = Pieces::of(scratch, self.event_scratch_len(system));
        let mut inputs = Latched::new(inputs, table.inputs, span.start, pieces.next(dims.nu)?);
        let driver = ExplicitDriver::new(system, inputs.values, &mut pieces)?;
        let (eyes, own) = (RefCell::new(observe), Cell::new(true));
        let node =
            |t, y: &[M::S], u: &[M::S]| Ok(look(&eyes, Sight::Node(state_at(&dims, t, y, u)?, own.get())));
        let event = |occurrence: Occurrence<'_, M::S>| look(&eyes, Sight::Event(occurrence));
        let nodes = ObserveDense::new(span, node)?;
        let mut hooks = Located::new(table, driver, nodes, event, &own, dims.state() + 2, &mut pieces)?;
        let mut stages = T::stages(dims.state(), &mut pieces)?;
        let mut field = Field::new(system, &mut inputs, &mut pieces)?;
        let mut run = AdaptiveRun::new(self, &mut field, &mut stages, span.start, y);
        drive(&mut run, &mut limits, &mut hooks)
    }
}
