//! Implicit runs with events: in coordinate form, their events in joint form.

use core::cell::{Cell, RefCell};
use core::ops::ControlFlow;

use super::explicit::look;
use super::jump::Jump;
use super::latches::Latched;
use super::locate::{self, Driver, Functions, Located};
use super::{Events, Occurrence, Sight};
use crate::constrained::Constrained;
use crate::error::{EvalError, StepError};
use crate::euler_parameters::{accelerations, coordinate_rates, velocities};
use crate::formulation::run::{ImplicitRun, Observe, check_start};
use crate::formulation::{Assembly, ImplicitStep, Node, State};
use crate::inputs::Inputs;
use crate::integrator::{Fixed, Nodes, Span, Statistics, drive};
use crate::pieces::{Pieces, cut};
use crate::scalar::Scalar;
use crate::system::{At, Dims};

/// How an implicit run answers questions of events.
pub(crate) struct ImplicitDriver<'a, M: Events> {
    pub(crate) system: &'a M,
    pub(crate) dims: Dims,
    pub(crate) u: &'a mut [M::S],
    pub(crate) v: &'a mut [M::S],
    pub(crate) vd: &'a mut [M::S],
    pub(crate) lambda: &'a mut [M::S],
    pub(crate) jump: Jump<'a, M::S>,
    latches: &'a [Cell<M::S>],
    event: usize,
    pub(crate) scratch: &'a mut [M::S],
}

impl<'a, M: Events> ImplicitDriver<'a, M> {
    /// Length of its memory, with that of the latches; `scratch`: what a restart needs.
    pub(crate) fn len(system: &M, scratch: usize) -> usize {
        let dims = system.dims();
        2 * dims.nu + 2 * dims.nv + dims.joint_rows() + Jump::len(system) + scratch
    }

    pub(crate) fn new(
        system: &'a M,
        latches: &'a [Cell<M::S>],
        scratch: usize,
        pieces: &mut Pieces<'a, M::S>,
    ) -> Result<Self, StepError> {
        let dims = system.dims();
        Ok(Self {
            system,
            dims,
            u: pieces.next(dims.nu)?,
            v: pieces.next(dims.nv)?,
            vd: pieces.next(dims.nv)?,
            lambda: pieces.next(dims.joint_rows())?,
            jump: Jump::new(system, pieces)?,
            latches,
            event: 0,
            scratch: pieces.next(scratch)?,
        })
    }

    /// v, vd and λ of a state in joint form.
    pub(crate) fn joint_form(&mut self, state: &State<'_, M::S>) -> Result<(), EvalError> {
        velocities(self.system, state.z, state.zd, self.v)?;
        accelerations(self.system, state.z, state.zd, state.zdd, self.vd)?;
        // Normalisation rows stand between the two kinds of others.
        let (holonomic, rest) = cut("lambda", state.lambda, self.dims.n_holonomic)?;
        let (_, nonholonomic) = cut("lambda", rest, self.dims.n_normalisation)?;
        for (to, &from) in self.lambda.iter_mut().zip(holonomic.iter().chain(nonholonomic)) {
            *to = from;
        }
        Ok(())
    }
}

impl<M: Events> ImplicitDriver<'_, M> {
    /// Evaluates all functions at a state.
    pub(crate) fn functions(
        &mut self,
        inputs: &mut impl Inputs<M::S>,
        state: &mut [M::S],
        t: M::S,
        to: &mut Functions<'_, M::S>,
    ) -> Result<(), StepError> {
        let fail = |error: EvalError| error.in_step(t.real(), 0.0);
        if !self.u.is_empty() {
            inputs.at(t, self.u);
        }
        let state = State::of(&self.dims, state)?;
        self.joint_form(&state).map_err(fail)?;
        let at = At { t, z: state.z, v: self.v, x: &[], u: self.u };
        let Functions { values, rates, armed } = to;
        let (vd, lambda) = (&*self.vd, &*self.lambda);
        self.system.event_functions(at, vd, lambda, self.scratch, values, rates, armed).map_err(fail)
    }

    /// On which sides functions that are zero are, at the state that they were evaluated at last.
    pub(crate) fn zero_sides(
        &mut self,
        state: &mut [M::S],
        t: M::S,
        curvatures: &mut [M::S],
        sizes: &mut [M::S],
    ) -> Result<(), StepError> {
        let state = State::of(&self.dims, state)?;
        let at = At { t, z: state.z, v: self.v, x: &[], u: self.u };
        let written = self.system.event_sides(at, self.vd, self.lambda, self.scratch, curvatures, sizes);
        written.map_err(|error| error.in_step(t.real(), 0.0))
    }

    /// Inputs and velocities before an event.
    pub(crate) fn before(
        &mut self,
        inputs: &mut impl Inputs<M::S>,
        state: &mut [M::S],
        t: M::S,
    ) -> Result<(), StepError> {
        if !self.u.is_empty() {
            inputs.at(t, self.u);
        }
        let state = State::of(&self.dims, state)?;
        velocities(self.system, state.z, state.zd, self.v).map_err(|error| error.in_step(t.real(), 0.0))
    }

    /// Finds velocities and inputs after an event; v is that before it.
    pub(crate) fn solve(
        &mut self,
        inputs: &mut impl Inputs<M::S>,
        state: &mut [M::S],
        t: M::S,
        event: usize,
    ) -> Result<(), StepError> {
        self.before(inputs, state, t)?;
        let state = State::of(&self.dims, state)?;
        self.event = event;
        let at = At { t, z: state.z, v: self.v, x: &[], u: self.u };
        if self.jump.settle(self.system, event, at, self.latches, self.scratch)? {
            inputs.at(t, self.u);
        }
        let placed = self.jump.place(self.dims.nu, &self.system.event_table(), event, state.z);
        let at = At { t, z: state.z, v: self.v, x: &[], u: self.u };
        if placed {
            self.jump.check_placed(self.system, event, at, self.scratch)?;
        }
        self.jump.solve(self.system, event, at, self.scratch)
    }

    /// Writes zd = N(z) (v + d); v is that after the event from then on.
    pub(crate) fn apply(&mut self, state: &mut [M::S], t: M::S) -> Result<(), StepError> {
        let mut state = State::of(&self.dims, state)?;
        state.forget_tangent();
        self.jump.apply(self.v);
        coordinate_rates(self.system, state.z, self.v, state.zd).map_err(|error| error.in_step(t.real(), 0.0))
    }

    /// Gives an input a value. Whether it is another one.
    pub(crate) fn set_latch(&self, input: u32, value: M::S) -> bool {
        self.latches.get(input as usize).is_some_and(|latch| latch.replace(value) != value)
    }

    /// Impulses of the event that acted last.
    pub(crate) fn impulses(&self) -> &[M::S] {
        let table = self.system.event_table();
        let (first, end) = table.events.get(self.event).map_or((0, 0), |entry| entry.conditions);
        self.jump.mu.get(first..end).unwrap_or(&[])
    }
}

impl<T, M, I> Driver<ImplicitRun<'_, T, M, I>> for ImplicitDriver<'_, M>
where
    T: ImplicitStep,
    M: Constrained + Events,
    I: Inputs<M::S>,
{
    fn evaluate(
        &mut self,
        run: &mut ImplicitRun<'_, T, M, I>,
        t: M::S,
        _: bool,
        to: &mut Functions<'_, M::S>,
    ) -> Result<(), StepError> {
        self.functions(run.inputs, run.state, t, to)
    }

    fn sides(
        &mut self,
        run: &mut ImplicitRun<'_, T, M, I>,
        t: M::S,
        curvatures: &mut [M::S],
        sizes: &mut [M::S],
    ) -> Result<(), StepError> {
        self.zero_sides(run.state, t, curvatures, sizes)
    }

    fn act(&mut self, run: &mut ImplicitRun<'_, T, M, I>, t: M::S, event: usize) -> Result<(), StepError> {
        self.solve(run.inputs, run.state, t, event)?;
        self.apply(run.state, t)
    }

    /// Accelerations and multipliers of the new velocities and inputs.
    fn restart(&mut self, run: &mut ImplicitRun<'_, T, M, I>, _: M::S) -> Result<(), StepError> {
        Assembly::DEFAULT.start(run.system, run.inputs, run.state, self.scratch).map(|_| ())
    }

    fn latch(&mut self, input: u32, value: M::S) -> bool {
        self.set_latch(input, value)
    }

    fn acted(&self) -> [&[M::S]; 3] {
        [self.impulses(), self.jump.row_impulses(), &[]]
    }

    fn inputs_jump(&self) -> bool {
        self.dims.nu > 0
    }
}

impl<T: ImplicitStep> Fixed<T> {
    /// Length of the scratch that [`Fixed::run_implicit_with_events`] needs, at least.
    pub fn implicit_event_scratch_len<M: Events>(&self, system: &M) -> usize {
        let (dims, table) = (system.dims(), system.event_table());
        let located = locate::memory_len(&table, State::<M::S>::len(&dims));
        self.method.scratch_len(&dims) + ImplicitDriver::len(system, Assembly::scratch_len(&dims)) + located
    }

    /// [`Fixed::run`] for a model with events: to the end of the span, or to an event that stops the run.
    pub fn run_implicit_with_events<M, I, O>(
        &self,
        system: &M,
        inputs: &mut I,
        state: &mut [M::S],
        span: &Span<M::S>,
        scratch: &mut [M::S],
        observe: O,
    ) -> Result<Statistics, StepError>
    where
        M: Constrained + Events,
        I: Inputs<M::S>,
        O: FnMut(Sight<'_, Node<'_, M::S>, M::S>) -> ControlFlow<()>,
    {
        let mut nodes = Nodes::new(span, self.h)?;
        let dims = system.dims();
        check_start(&dims, state, span)?;
        let table = system.event_table();
        let mut pieces = Pieces::of(scratch, self.implicit_event_scratch_len(system));
        let mut inputs = Latched::new(inputs, table.inputs, span.start, pieces.next(dims.nu)?);
        let scratch = Assembly::scratch_len(&dims);
        let driver = ImplicitDriver::new(system, inputs.values, scratch, &mut pieces)?;
        let (eyes, own) = (RefCell::new(observe), Cell::new(true));
        let node = |node: Node<'_, M::S>| look(&eyes, Sight::Node(node, own.get()));
        let event = |occurrence: Occurrence<'_, M::S>| look(&eyes, Sight::Event(occurrence));
        let saved = State::<M::S>::len(&dims);
        let mut hooks = Located::new(table, driver, Observe(node), event, &own, saved, &mut pieces)?;
        let (inputs, scratch) = (&mut inputs, pieces.rest());
        let mut run = ImplicitRun { method: &self.method, system, dims, inputs, state, scratch };
        drive(&mut run, &mut nodes, &mut hooks)
    }
}
