//! Adjoints of explicit runs with events: the exact transpose of [`differentiated`](super::differentiated).
//!
//! The run is made once, and leaves a log of its steps and events. Then it is gone over as every adjoint does, with checkpoints in what the
//! log leaves of the memory; steps that are made again take their sizes from the log.

use core::cell::{Cell, RefCell};
use core::ops::ControlFlow;

use super::actions::{Acts, Noting, Steps};
use super::explicit::{ExplicitDriver, memory_len};
use super::latches::Latched;
use super::locate::Located;
use super::times::refuse;
use super::{EventDerivatives, Events, Occurrence, WithEvents};
use crate::adjoint::checkpoints::behind_list;
use crate::adjoint::explicit::{Plain, Way, around_len, plain_len, way_len};
use crate::adjoint::items::{Around, Log, Logged};
use crate::adjoint::{
    Adjoint, AdjointIntegrator, AdjointNode, AdjointStatistics, VectorJacobian, gradient_by_product,
    gradient_len,
};
use crate::error::StepError;
use crate::inputs::Inputs;
use crate::integrator::{
    Adaptive, AdaptiveRun, Controlled, Fixed, FixedRun, FixedStep, Limits, Nodes, RungeKutta, Span,
    Statistics, check_state, drive,
};
use crate::linear::copy;
use crate::pieces::Pieces;
use crate::scalar::Scalar;
use crate::sensitivity::{
    JointDynamics, JointObjectiveDerivatives, load_choice, refuse_first_order_states, save_choice,
};

/// An explicit integrator whose adjoint runs have events.
pub trait AdjointEventIntegrator: AdjointIntegrator {
    /// Length of the scratch that a product with this many columns needs, at least.
    fn event_scratch_len<D>(&self, system: &D, columns: usize) -> usize
    where
        D: JointDynamics + WithEvents,
        <D as WithEvents>::Model: EventDerivatives;

    /// [`AdjointIntegrator::run`] for a model with events: to the end of the span, or to an event that stops the run. The memory also holds
    /// the log of the run.
    #[allow(clippy::too_many_arguments, reason = "what a run reads and writes")]
    fn run_with_events<D, I, O>(
        &self,
        system: &D,
        inputs: &mut I,
        y: &mut [D::S],
        span: &Span<D::S>,
        product: VectorJacobian<'_, D::S>,
        memory: &mut [D::S],
        scratch: &mut [D::S],
        observe: O,
    ) -> Result<AdjointStatistics, StepError>
    where
        D: JointDynamics + WithEvents,
        <D as JointDynamics>::Model: JointObjectiveDerivatives,
        <D as WithEvents>::Model: EventDerivatives,
        I: Inputs<D::S>,
        O: FnMut(AdjointNode<'_, D::S>) -> ControlFlow<()>;

    /// Length of the scratch of [`AdjointEventIntegrator::gradient_with_events`], at least.
    fn gradient_event_scratch_len<D>(&self, system: &D) -> usize
    where
        D: JointDynamics + WithEvents,
        <D as WithEvents>::Model: EventDerivatives,
    {
        let dims = system.dims();
        gradient_len(&dims, dims.state()) + self.event_scratch_len(system, dims.n_objectives)
    }

    /// [`AdjointIntegrator::gradient`] for a model with events.
    #[allow(clippy::too_many_arguments, reason = "what a run reads and writes")]
    fn gradient_with_events<D, I, O>(
        &self,
        system: &D,
        inputs: &mut I,
        y: &mut [D::S],
        start: &[D::S],
        span: &Span<D::S>,
        gradient: &mut [D::S],
        memory: &mut [D::S],
        scratch: &mut [D::S],
        observe: O,
    ) -> Result<AdjointStatistics, StepError>
    where
        D: JointDynamics + WithEvents,
        <D as JointDynamics>::Model: JointObjectiveDerivatives,
        <D as WithEvents>::Model: EventDerivatives,
        I: Inputs<D::S>,
        O: FnMut(AdjointNode<'_, D::S>) -> ControlFlow<()>,
    {
        let dims = system.dims();
        gradient_by_product(&dims, dims.state(), span.end, start, gradient, scratch, |product, scratch| {
            self.run_with_events(system, inputs, y, span, product, memory, scratch, observe)
        })
    }
}

/// Length of the scratch, for a first run whose state has `n` values.
fn scratch_len<T, D>(system: &D, columns: usize, n: usize) -> usize
where
    T: RungeKutta,
    D: JointDynamics + WithEvents,
    <D as WithEvents>::Model: EventDerivatives,
{
    let dims = system.dims();
    let first = n + memory_len(system, n + 2) + plain_len(system, columns) + T::memory_len(n) + 9 * n;
    let way = way_len::<T, D>(system, columns) + around_len::<T>(&dims, columns, dims.nu);
    let back = dims.nu + Acts::len(system.events(), columns) + way;
    dims.n_choice + if first > back { first } else { back }
}

/// What goes back over a run of which there is a log.
#[allow(clippy::too_many_arguments, reason = "what a run reads and writes")]
fn back<T, D, I, O>(
    system: &D,
    inputs: &mut I,
    y: &mut [D::S],
    start: D::S,
    product: VectorJacobian<'_, D::S>,
    statistics: Statistics,
    items: usize,
    memory: &mut [D::S],
    scratch: &mut [D::S],
    observe: O,
) -> Result<AdjointStatistics, StepError>
where
    T: RungeKutta,
    D: JointDynamics + WithEvents,
    <D as JointDynamics>::Model: JointObjectiveDerivatives,
    <D as WithEvents>::Model: EventDerivatives,
    I: Inputs<D::S>,
    O: FnMut(AdjointNode<'_, D::S>) -> ControlFlow<()>,
{
    let (dims, model, columns) = (system.dims(), system.events(), product.columns);
    // A state, the choice of independent coordinates, and what events have changed.
    let kept = dims.stepped() + dims.n_choice + dims.nu;
    let (list, memory) = behind_list(memory, Log::<D::S>::len(items), items, kept, kept)?;
    let mut pieces = Pieces::of(scratch, scratch_len::<T, D>(system, columns, dims.stepped()));
    load_choice(system, pieces.next(dims.n_choice)?);
    let mut inputs = Latched::new(inputs, model.event_table().inputs, start, pieces.next(dims.nu)?);
    let mut acts = Acts::new(model, inputs.values, columns, &mut pieces)?;
    let around = Around::new(&mut acts, &dims, dims.stepped(), columns, &mut pieces)?;
    let times = Logged { start, list };
    let way =
        Way::<T, _, _, _, _>::new(system, &mut inputs, times, product, Some(around), &mut pieces, observe)?;
    let mut found = way.run(y, memory)?;
    // The first run counts; what it took includes steps that were made again to locate events.
    found.recomputed += statistics.steps;
    found.run = Statistics { stopped: found.run.stopped || statistics.stopped, ..statistics };
    Ok(found)
}

/// Shows an event of the first run.
pub(crate) fn told<S: Scalar, O>(eyes: &RefCell<O>, occurrence: &Occurrence<'_, S>) -> ControlFlow<()>
where
    O: FnMut(AdjointNode<'_, S>) -> ControlFlow<()>,
{
    let Occurrence { event, t, impulses, .. } = *occurrence;
    match eyes.try_borrow_mut() {
        Ok(mut observe) => observe(AdjointNode::Event { event, t, impulses }),
        Err(_) => ControlFlow::Continue(()),
    }
}

impl<T: FixedStep> AdjointEventIntegrator for Adjoint<Fixed<T>> {
    fn event_scratch_len<D>(&self, system: &D, columns: usize) -> usize
    where
        D: JointDynamics + WithEvents,
        <D as WithEvents>::Model: EventDerivatives,
    {
        scratch_len::<T, D>(system, columns, system.dims().stepped())
    }

    fn run_with_events<D, I, O>(
        &self,
        system: &D,
        inputs: &mut I,
        y: &mut [D::S],
        span: &Span<D::S>,
        product: VectorJacobian<'_, D::S>,
        memory: &mut [D::S],
        scratch: &mut [D::S],
        observe: O,
    ) -> Result<AdjointStatistics, StepError>
    where
        D: JointDynamics + WithEvents,
        <D as JointDynamics>::Model: JointObjectiveDerivatives,
        <D as WithEvents>::Model: EventDerivatives,
        I: Inputs<D::S>,
        O: FnMut(AdjointNode<'_, D::S>) -> ControlFlow<()>,
    {
        refuse_first_order_states(system)?;
        refuse(system.events())?;
        let (dims, table, eyes) = (system.dims(), system.events().event_table(), RefCell::new(observe));
        check_state(&dims, y)?;
        let log = RefCell::new(Log::new(&mut *memory));
        let statistics = {
            let mut nodes = Nodes::new(span, self.0.h)?;
            let mut pieces = Pieces::of(&mut *scratch, self.event_scratch_len(system, product.columns));
            // Both ways begin with the same choice.
            save_choice(system, pieces.next(dims.n_choice)?);
            let moving = pieces.next(dims.stepped())?;
            moving.fill(D::S::ZERO);
            copy(moving, y);
            let mut latched = Latched::new(inputs, table.inputs, span.start, pieces.next(dims.nu)?);
            let driver = ExplicitDriver::new(system, latched.values, &mut pieces)?;
            let driver = Noting { driver, log: &log, restarts: false };
            let steps = Steps { log: &log, eyes: &eyes, stopped: false };
            let (own, event) = (Cell::new(true), |occurrence: Occurrence<'_, D::S>| told(&eyes, &occurrence));
            let mut hooks = Located::new(table, driver, steps, event, &own, dims.stepped(), &mut pieces)?;
            let mut field = Plain::new(system, &mut latched, product.columns, &mut pieces)?;
            let mut run = FixedRun::<T, _>::new(&mut field, dims.stepped(), &mut pieces, moving)?;
            drive(&mut run, &mut nodes, &mut hooks)?
        };
        let items = log.into_inner().items();
        back::<T, _, _, _>(
            system,
            inputs,
            y,
            span.start,
            product,
            statistics,
            items,
            memory,
            scratch,
            eyes.into_inner(),
        )
    }
}

impl<T: Controlled> AdjointEventIntegrator for Adjoint<Adaptive<T>> {
    fn event_scratch_len<D>(&self, system: &D, columns: usize) -> usize
    where
        D: JointDynamics + WithEvents,
        <D as WithEvents>::Model: EventDerivatives,
    {
        // The first run integrates the objectives with the state.
        let dims = system.dims();
        scratch_len::<T, D>(system, columns, dims.state() + dims.n_objectives)
            + dims.sensitivity.joint_integrands
    }

    fn run_with_events<D, I, O>(
        &self,
        system: &D,
        inputs: &mut I,
        y: &mut [D::S],
        span: &Span<D::S>,
        product: VectorJacobian<'_, D::S>,
        memory: &mut [D::S],
        scratch: &mut [D::S],
        observe: O,
    ) -> Result<AdjointStatistics, StepError>
    where
        D: JointDynamics + WithEvents,
        <D as JointDynamics>::Model: JointObjectiveDerivatives,
        <D as WithEvents>::Model: EventDerivatives,
        I: Inputs<D::S>,
        O: FnMut(AdjointNode<'_, D::S>) -> ControlFlow<()>,
    {
        refuse_first_order_states(system)?;
        refuse(system.events())?;
        let (dims, table, eyes) = (system.dims(), system.events().event_table(), RefCell::new(observe));
        check_state(&dims, y)?;
        let log = RefCell::new(Log::new(&mut *memory));
        let statistics = {
            let mut limits = Limits::new(&self.0, span)?;
            let mut pieces = Pieces::of(&mut *scratch, self.event_scratch_len(system, product.columns));
            // Both ways begin with the same choice.
            save_choice(system, pieces.next(dims.n_choice)?);
            let n = dims.state() + if self.0.objectives { dims.n_objectives } else { 0 };
            let moving = pieces.next(n)?;
            moving.fill(D::S::ZERO);
            copy(moving, y);
            let mut latched = Latched::new(inputs, table.inputs, span.start, pieces.next(dims.nu)?);
            let driver = ExplicitDriver::new(system, latched.values, &mut pieces)?;
            let driver = Noting { driver, log: &log, restarts: false };
            let steps = Steps { log: &log, eyes: &eyes, stopped: false };
            let (own, event) = (Cell::new(true), |occurrence: Occurrence<'_, D::S>| told(&eyes, &occurrence));
            let mut hooks = Located::new(table, driver, steps, event, &own, n + 2, &mut pieces)?;
            let mut stages = T::stages(n, &mut pieces)?;
            let mut field = Plain::new(system, &mut latched, product.columns, &mut pieces)?;
            if n > dims.state() {
                field.integrands = pieces.next(dims.sensitivity.joint_integrands)?;
            }
            let mut run = AdaptiveRun::new(&self.0, &mut field, &mut stages, span.start, moving);
            drive(&mut run, &mut limits, &mut hooks)?
        };
        let items = log.into_inner().items();
        back::<T, _, _, _>(
            system,
            inputs,
            y,
            span.start,
            product,
            statistics,
            items,
            memory,
            scratch,
            eyes.into_inner(),
        )
    }
}
