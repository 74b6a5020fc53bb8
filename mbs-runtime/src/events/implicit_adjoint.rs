//! Adjoints of implicit runs with events: the exact transpose of [`implicit_differentiated`](super::implicit_differentiated), with the log of a
//! first run as those of explicit ones have it.

use core::cell::{Cell, RefCell};
use core::ops::ControlFlow;

use super::actions::{Acts, Noting, Steps};
use super::adjoint::told;
use super::implicit::ImplicitDriver;
use super::latches::Latched;
use super::locate::{self, Located};
use super::times::refuse;
use super::{EventDerivatives, Occurrence};
use crate::adjoint::checkpoints::behind_list;
use crate::adjoint::implicit::{Aside, check_run, go_back, item_lens};
use crate::adjoint::items::{Around, Log, Logged, Times};
use crate::adjoint::{
    Adjoint, AdjointNode, AdjointStatistics, Schedule, VectorJacobian, gradient_by_product, gradient_len,
};
use crate::constrained::Constrained;
use crate::error::StepError;
use crate::formulation::run::ImplicitRun;
use crate::formulation::{Assembly, ImplicitStep, State};
use crate::inputs::Inputs;
use crate::integrator::{Fixed, Hooks, Next, Nodes, Span, Statistics, Taken, Verdict, drive};
use crate::linear::copy;
use crate::pieces::Pieces;
use crate::sensitivity::{DifferentiableStep, ObjectiveDerivatives, Sensitivities, state_rows};

impl<T, M, I, O> Hooks<ImplicitRun<'_, T, M, I>> for Steps<'_, '_, M::S, O>
where
    T: ImplicitStep,
    M: Constrained,
    I: Inputs<M::S>,
    O: FnMut(AdjointNode<'_, M::S>) -> ControlFlow<()>,
{
    fn node(
        &mut self,
        _: &mut ImplicitRun<'_, T, M, I>,
        _: &Taken<M::S>,
        _: bool,
    ) -> Result<Next, StepError> {
        Ok(self.next())
    }

    fn after(
        &mut self,
        run: &mut ImplicitRun<'_, T, M, I>,
        step: &Taken<M::S>,
    ) -> Result<Verdict<M::S>, StepError> {
        let state = State::of(&run.dims, run.state)?;
        self.note(step, state.z, state.zd)
    }
}

impl<T: DifferentiableStep> Adjoint<Fixed<T>> {
    /// Length of the scratch that [`Adjoint::run_implicit_with_events`] needs for this many columns, at least.
    pub fn implicit_event_scratch_len<M: EventDerivatives>(&self, system: &M, columns: usize) -> usize {
        let (dims, table) = (system.dims(), system.event_table());
        let (state, restart) = (State::<M::S>::len(&dims), Assembly::scratch_len(&dims));
        let located = locate::memory_len(&table, state);
        let first = state + self.0.method.scratch_len(&dims) + ImplicitDriver::len(system, restart) + located;
        // A restart takes its scratch from that of the steps.
        let start = Assembly::transposed_scratch_len(&dims, columns);
        let way = self.scratch_len(&dims, columns) + Aside::<M::S>::len(&dims, columns, dims.nu);
        let back = dims.nu + Acts::len(system, columns) + way + restart + start;
        if first > back { first } else { back }
    }

    /// [`Adjoint::run`] for a model with events: to the end of the span, or to an event that stops the run. The memory also holds the log
    /// of the run.
    #[allow(clippy::too_many_arguments, reason = "what a run reads and writes")]
    pub fn run_implicit_with_events<M, I, O>(
        &self,
        system: &M,
        inputs: &mut I,
        state: &mut [M::S],
        span: &Span<M::S>,
        product: VectorJacobian<'_, M::S>,
        memory: &mut [M::S],
        scratch: &mut [M::S],
        observe: O,
    ) -> Result<AdjointStatistics, StepError>
    where
        M: Sensitivities + ObjectiveDerivatives + EventDerivatives,
        I: Inputs<M::S>,
        O: FnMut(AdjointNode<'_, M::S>) -> ControlFlow<()>,
    {
        refuse(system)?;
        let Fixed { method, h } = &self.0;
        let (dims, table, eyes) = (system.dims(), system.event_table(), RefCell::new(observe));
        check_run(&dims, state, span.start, &product)?;
        let columns = product.columns;
        let expected = self.implicit_event_scratch_len(system, columns);
        let log = RefCell::new(Log::new(&mut *memory));
        let statistics = {
            let mut nodes = Nodes::new(span, *h)?;
            let mut pieces = Pieces::of(&mut *scratch, expected);
            let moving = pieces.next(state.len())?;
            copy(moving, state);
            let mut inputs = Latched::new(inputs, table.inputs, span.start, pieces.next(dims.nu)?);
            let restart = Assembly::scratch_len(&dims);
            let driver = ImplicitDriver::new(system, inputs.values, restart, &mut pieces)?;
            let driver = Noting { driver, log: &log, restarts: true };
            let steps = Steps { log: &log, eyes: &eyes, stopped: false };
            let (own, event) = (Cell::new(true), |occurrence: Occurrence<'_, M::S>| told(&eyes, &occurrence));
            let mut hooks = Located::new(table, driver, steps, event, &own, state.len(), &mut pieces)?;
            let (inputs, scratch) = (&mut inputs, pieces.rest());
            let mut run = ImplicitRun { method, system, dims, inputs, state: moving, scratch };
            drive(&mut run, &mut nodes, &mut hooks)?
        };
        let items = log.into_inner().items();
        let (record, kept) = item_lens(&dims, dims.nu);
        let (list, memory) = behind_list(memory, Log::<M::S>::len(items), items, record, kept)?;
        let mut pieces = Pieces::of(scratch, expected);
        let mut inputs = Latched::new(inputs, table.inputs, span.start, pieces.next(dims.nu)?);
        let mut acts = Acts::new(system, inputs.values, columns, &mut pieces)?;
        let around = Around::new(&mut acts, &dims, state_rows(&dims), columns, &mut pieces)?;
        let aside = Aside::new(around, &dims, columns, &mut pieces)?;
        let nodes = Logged { start: span.start, list };
        let schedule = Schedule::new(nodes.steps(), record, kept, memory.len())?;
        let (inputs, observe) = (&mut inputs, eyes.into_inner());
        let mut found = go_back(
            method,
            system,
            inputs,
            state,
            nodes,
            schedule,
            product,
            Some(aside),
            memory,
            pieces,
            observe,
        )?;
        // The first run counts; what it took includes steps that were made again to locate events.
        found.recomputed += statistics.steps;
        found.run = Statistics { stopped: found.run.stopped || statistics.stopped, ..statistics };
        Ok(found)
    }

    /// Length of the scratch of [`Adjoint::gradient_implicit_with_events`], at least.
    pub fn gradient_implicit_event_scratch_len<M: EventDerivatives>(&self, system: &M) -> usize {
        let dims = system.dims();
        gradient_len(&dims, state_rows(&dims)) + self.implicit_event_scratch_len(system, dims.n_objectives)
    }

    /// [`Adjoint::gradient`] for a model with events.
    #[allow(clippy::too_many_arguments, reason = "what a run reads and writes")]
    pub fn gradient_implicit_with_events<M, I, O>(
        &self,
        system: &M,
        inputs: &mut I,
        state: &mut [M::S],
        start: &[M::S],
        span: &Span<M::S>,
        gradient: &mut [M::S],
        memory: &mut [M::S],
        scratch: &mut [M::S],
        observe: O,
    ) -> Result<AdjointStatistics, StepError>
    where
        M: Sensitivities + ObjectiveDerivatives + EventDerivatives,
        I: Inputs<M::S>,
        O: FnMut(AdjointNode<'_, M::S>) -> ControlFlow<()>,
    {
        let dims = system.dims();
        let rows = state_rows(&dims);
        gradient_by_product(&dims, rows, span.end, start, gradient, scratch, |product, scratch| {
            self.run_implicit_with_events(system, inputs, state, span, product, memory, scratch, observe)
        })
    }
}
