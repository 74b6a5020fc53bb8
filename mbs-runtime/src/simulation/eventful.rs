//! Methods of models with events: a step reaches its node, and events happen on the way.
//!
//! A step of equal size ends at the node where it would without events; one of controlled size ends in an event. What the run knows of its
//! events stands in the state, after that of the method:
//!
//! | part | meaning | length |
//! |---|---|---|
//! | latches | values of inputs that events set | nu |
//! | side, last, interval | on which side of zero functions are, when events happened last, after which time | n each |
//! | progress | whether the run has begun, when, and how many events there were | 3 |
//! | log | events of the last step: how many, and of each its place and time | 1 + 2 `MOST_EVENTS` |
//!
//! A step costs at most 60 ordinary ones for each event, and has at most [`MOST_EVENTS`]; more are an error.

use core::cell::Cell;
use core::marker::PhantomData;
use core::ops::ControlFlow;

use super::Settings;
use super::adjoint::{ANY, AdjointMethod, assembled_len, implicit_len, split, tree_len, unseen};
use super::clock::{Clock, Target};
use super::gradient::{
    DifferentiableExplicit, DifferentiableMethod, GradientMemory, start_assembled, start_implicit, start_tree,
};
use super::independent::{self, Independent, StiffIndependent};
use super::method::{
    Explicit, ImplicitMethod, Method, Newmark, Node, Projected, StiffIndependentMemory, StiffProjected,
    StiffTree, Tree, Work, larger, projected,
};
use crate::adjoint::{Adjoint, AdjointStatistics, Schedule};
use crate::constrained::{Constrained, ConstrainedDynamics, ConstraintCorrection, ConstraintRows};
use crate::error::{EvalError, EventFailure, StepError};
use crate::events::explicit::ExplicitDriver;
use crate::events::implicit::ImplicitDriver;
use crate::events::jump;
use crate::events::latches::Latched;
use crate::events::locate::{Located, Resumed, Unseen};
use crate::events::{
    AdjointEventIntegrator, DifferentiableEventIntegrator, EventDerivatives, Events, Occurrence, Sight,
    WithEvents,
};
use crate::formulation::run::ImplicitRun;
use crate::formulation::{Assembly, MatrixR, OnConstraints, State};
use crate::inputs::Inputs;
use crate::integrator::{
    Accepted, Adaptive, AdaptiveRun, Controlled, Extend, Field, Fixed, FixedRun, Plan, Planned, Rk4,
    Statistics, Trapezoidal, drive,
};
use crate::linear::copy;
use crate::pieces::{Pieces, cut_mut};
use crate::scalar::Scalar;
use crate::sensitivity::{
    DifferentiableStep, Differentiated, DifferentiatedAt, JointDynamics, JointObjectiveDerivatives,
    JointSensitivities, ObjectiveDerivatives, Sensitivities, StartDerivatives, StateDerivatives, Stiff,
};
use crate::system::{Dims, ForwardDynamics, Start, System};

/// Events that one step of a simulation may have.
pub const MOST_EVENTS: usize = 8;

/// The events of a model, by name. Generated modules implement it.
pub trait EventName: Copy {
    /// How many there are.
    const COUNT: usize;

    /// The event with this place in the table.
    fn of_place(place: usize) -> Option<Self>;
}

/// An event that happened.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Occurred<E> {
    /// Which.
    pub event: E,
    /// When.
    pub t: f64,
}

/// What happened in a step, in the order of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Happened<E> {
    events: [Option<Occurred<E>>; MOST_EVENTS],
}

impl<E: Copy> Happened<E> {
    /// All events.
    pub fn iter(&self) -> impl Iterator<Item = Occurred<E>> + '_ {
        self.events.iter().flatten().copied()
    }

    /// The first event.
    pub fn first(&self) -> Option<Occurred<E>> {
        self.iter().next()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// Whether nothing happened.
    pub fn is_empty(&self) -> bool {
        self.first().is_none()
    }
}

/// A method of a model with events, whose names are `E`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Eventful<T, E> {
    method: T,
    events: PhantomData<E>,
}

impl<T, E> Eventful<T, E> {
    /// This method, past events.
    pub const fn new(method: T) -> Self {
        Self { method, events: PhantomData }
    }
}

/// Numbers of the log.
const LOG: usize = 1 + 2 * MOST_EVENTS;

/// Numbers that are kept of events, beside the state of the method.
#[inline(always)]
const fn kept_len(dims: &Dims, events: usize) -> usize {
    dims.nu + 3 * events + 3 + LOG
}

/// Lengths of the memory of models with events.
#[derive(Clone, Copy, Debug)]
pub struct EventMemory {
    /// Events.
    pub events: usize,
    /// Conditions on velocities.
    pub conditions: usize,
    /// Inputs that events set, one for each setting.
    pub settings: usize,
    /// Derivatives of functions, and of what events do; of a model that is not differentiated none.
    pub partials: usize,
}

impl EventMemory {
    /// Length of the state, for a method whose own has this length.
    pub const fn state_len(&self, method: usize, dims: &Dims) -> usize {
        method + kept_len(dims, self.events)
    }

    /// What locating events and acting needs, whatever the method; `saved`: numbers of a state.
    const fn own_len(&self, dims: &Dims, saved: usize) -> usize {
        let dims = projected(dims);
        let driver = 2 * dims.nu + dims.nq + 2 * dims.nv + dims.joint_rows() + dims.workspace;
        let restart = Assembly::scratch_len(&dims);
        21 * self.events + saved + driver + restart + jump::len(&dims, self.conditions, self.settings)
    }

    /// Length of the scratch, for a method whose own has this length.
    pub const fn scratch_len(&self, method: usize, dims: &Dims) -> usize {
        method + self.own_len(dims, larger(State::<f64>::len(dims), dims.stepped() + 2))
    }

    /// Length of the memory of a gradient, for a method whose own has this length.
    pub const fn gradient_len(&self, method: usize, dims: &Dims) -> usize {
        let p = dims.sensitivity.parameters;
        let implicit = State::<f64>::len(dims) + StateDerivatives::<f64>::len(dims);
        let explicit = (dims.stepped() + dims.n_objectives) * (1 + p) + 2;
        let restart = Assembly::differentiated_scratch_len(dims);
        let times = 5 * p + dims.nv * p + p * (p + 1) + self.settings * p;
        method + self.own_len(dims, larger(implicit, explicit)) + restart + times + self.partials + dims.nu
    }
}

/// What is kept of events.
struct Kept<'a, S> {
    latches: &'a mut [S],
    resumed: Resumed<'a, S>,
    /// Whether the run has begun, when, and how many events there were.
    progress: &'a mut [S],
    log: &'a mut [S],
}

impl<'a, S: Scalar> Kept<'a, S> {
    fn of(dims: &Dims, events: usize, kept: &'a mut [S]) -> Result<Self, StepError> {
        let mut pieces = Pieces::named("state", kept, kept_len(dims, events));
        let latches = pieces.next(dims.nu)?;
        let sides = [pieces.next(events)?, pieces.next(events)?, pieces.next(events)?];
        let (progress, log) = (pieces.next(3)?, pieces.next(LOG)?);
        let (begun, count) = match progress {
            [begun, start, count] if *begun != S::ZERO => (Some(start.real()), count.real() as usize),
            _ => (None, 0),
        };
        Ok(Self { latches, resumed: Resumed { sides, begun, count }, progress, log })
    }
}

/// Notes an event in a log; an error where there is no place for it.
fn note<S: Scalar>(
    log: &Cell<&mut [S]>,
    failed: &Cell<Option<StepError>>,
    event: usize,
    t: S,
) -> ControlFlow<()> {
    let list = log.take();
    let count = list.first().map_or(0, |count| count.real() as usize);
    let place = list.get_mut(1 + 2 * count..3 + 2 * count);
    let fits = place.is_some();
    if let Some(place) = place {
        copy(place, &[S::from_f64(event as f64), t]);
    }
    if let Some(first) = list.first_mut() {
        *first = S::from_f64((count + 1) as f64);
    }
    log.set(list);
    if fits {
        return ControlFlow::Continue(());
    }
    failed.set(Some(StepError::Event { t: t.real(), event, failure: EventFailure::TooMany }));
    ControlFlow::Break(())
}

/// One step of a plan: to a node, past events, or to wherever it ends.
struct Once<S> {
    t: S,
    h: S,
    end: S,
    /// Whether it leads to its end whatever happens before.
    whole: bool,
    made: bool,
}

impl<S: Scalar> Plan<S> for Once<S> {
    fn start(&self) -> S {
        self.t
    }

    fn next(&mut self, t: S, _: &Statistics) -> Result<Option<Planned<S>>, StepError> {
        let first = !core::mem::replace(&mut self.made, true);
        let h = match (first, self.whole && t != self.end) {
            (true, _) => self.h,
            (false, true) => self.end - t,
            (false, false) => return Ok(None),
        };
        Ok(Some(Planned { t, h, end: self.end, observed: false }))
    }

    fn observed(&self, _: S) -> bool {
        false
    }
}

/// What a step past events works on.
pub struct EventWork<'a, 'i, M: System, I> {
    model: &'a M,
    inputs: Latched<'i, M::S, I>,
    state: &'a mut [M::S],
    scratch: &'a mut [M::S],
    resumed: Resumed<'a, M::S>,
    log: &'a mut [M::S],
}

/// How far a step has come.
pub struct Came {
    statistics: Statistics,
    begun: Option<f64>,
    count: usize,
}

/// A method that makes steps past events.
pub trait EventMethod<M: Events>: Method<M> {
    /// Takes the state one step further.
    fn step_past<I: Inputs<M::S>>(
        &self,
        work: EventWork<'_, '_, M, I>,
        clock: &mut Clock,
        target: &Target,
    ) -> Result<Came, StepError>;
}

/// An explicit integrator that makes steps past events.
pub trait EventExplicit: Explicit {
    /// Takes y one step further; the model of the work is that of the system.
    fn step_past<D, I>(
        &self,
        system: &D,
        work: EventWork<'_, '_, D::Model, I>,
        clock: &mut Clock,
        target: &Target,
    ) -> Result<Came, StepError>
    where
        D: ForwardDynamics + WithEvents,
        I: Inputs<D::S>;
}

/// Steps of equal size past events, and runs of them, differentiated and backward; `$steps` makes them.
macro_rules! fixed_past_events {
    ($method:ty, $steps:ident) => {
        impl EventExplicit for $method {
            fn step_past<D, I>(
                &self,
                system: &D,
                work: EventWork<'_, '_, D::Model, I>,
                clock: &mut Clock,
                target: &Target,
            ) -> Result<Came, StepError>
            where
                D: ForwardDynamics + WithEvents,
                I: Inputs<D::S>,
            {
                let EventWork { mut inputs, state, scratch, resumed, log, .. } = work;
                let (h, next) = clock.next(target)?;
                let [t, h, end] = [clock.t(), h, next.t()].map(D::S::from_f64);
                let mut plan = Once { t, h, end, whole: true, made: false };
                let (dims, table) = (system.dims(), system.events().event_table());
                let (log, failed, own) = (Cell::new(log), Cell::new(None), Cell::new(true));
                let mut pieces = Pieces::of(scratch, 0);
                let driver = ExplicitDriver::new(system, inputs.values, &mut pieces)?;
                let record = |seen: Occurrence<'_, D::S>| note(&log, &failed, seen.event, seen.t);
                let mut hooks = Located::resumed(
                    table,
                    driver,
                    Unseen,
                    record,
                    &own,
                    dims.stepped(),
                    resumed,
                    &mut pieces,
                )?;
                let mut field = Field::new(system, &mut inputs, &mut pieces)?;
                let mut run = FixedRun::<$steps, _>::new(&mut field, dims.stepped(), &mut pieces, state)?;
                let statistics = drive(&mut run, &mut plan, &mut hooks)?;
                let (begun, count) = hooks.progress();
                *clock = if statistics.stopped { next.at(statistics.t) } else { next };
                failed.take().map_or(Ok(Came { statistics, begun, count }), Err)
            }
        }

        impl DifferentiableEventExplicit for $method {
            fn differentiated(self, settings: &Settings) -> impl DifferentiableEventIntegrator {
                Differentiated(Fixed { method: $steps, h: settings.step })
            }
        }

        impl AdjointEventExplicit for $method {
            fn backward(self, settings: &Settings) -> impl AdjointEventIntegrator {
                Adjoint(Fixed { method: $steps, h: settings.step })
            }
        }
    };
}
fixed_past_events!(Rk4, Rk4);
fixed_past_events!(Newmark, Trapezoidal);

impl<T: Controlled> EventExplicit for Adaptive<T> {
    fn step_past<D, I>(
        &self,
        system: &D,
        work: EventWork<'_, '_, D::Model, I>,
        clock: &mut Clock,
        target: &Target,
    ) -> Result<Came, StepError>
    where
        D: ForwardDynamics + WithEvents,
        I: Inputs<D::S>,
    {
        let EventWork { mut inputs, state, scratch, resumed, log, .. } = work;
        let [t, end] = [clock.t(), target.time].map(D::S::from_f64);
        let mut plan = Once { t, h: end - t, end, whole: false, made: false };
        let (dims, table) = (system.dims(), system.events().event_table());
        let (log, failed, own) = (Cell::new(log), Cell::new(None), Cell::new(true));
        let mut pieces = Pieces::of(scratch, 0);
        // First, where dense output looks for them.
        let mut stages = T::stages(dims.state(), &mut pieces)?;
        let driver = ExplicitDriver::new(system, inputs.values, &mut pieces)?;
        let seen = Extend(target.result);
        let record = |seen: Occurrence<'_, D::S>| note(&log, &failed, seen.event, seen.t);
        let mut hooks =
            Located::resumed(table, driver, seen, record, &own, dims.state() + 2, resumed, &mut pieces)?;
        let mut field = Field::new(system, &mut inputs, &mut pieces)?;
        let mut run = AdaptiveRun::resumed(self, &mut field, &mut stages, clock.now.at(t), state)?;
        let statistics = drive(&mut run, &mut plan, &mut hooks)?;
        let memory = run.memory();
        let (begun, count) = hooks.progress();
        let t = if memory.t == end { target.time } else { memory.t.real() };
        clock.passed(memory.at(t));
        failed.take().map_or(Ok(Came { statistics, begun, count }), Err)
    }
}

impl<M: ForwardDynamics + Start + Events, T: EventExplicit> EventMethod<M> for Tree<T> {
    fn step_past<I: Inputs<M::S>>(
        &self,
        work: EventWork<'_, '_, M, I>,
        clock: &mut Clock,
        target: &Target,
    ) -> Result<Came, StepError> {
        self.0.step_past(work.model, work, clock, target)
    }
}

impl<M, T: EventExplicit> EventMethod<M> for StiffTree<T>
where
    M: ForwardDynamics + JointSensitivities + Start + Events,
{
    fn step_past<I: Inputs<M::S>>(
        &self,
        work: EventWork<'_, '_, M, I>,
        clock: &mut Clock,
        target: &Target,
    ) -> Result<Came, StepError> {
        self.0.step_past(&Stiff(work.model), work, clock, target)
    }
}

impl<M: Constrained + Start + Events, T: ImplicitMethod> EventMethod<M> for T {
    fn step_past<I: Inputs<M::S>>(
        &self,
        work: EventWork<'_, '_, M, I>,
        clock: &mut Clock,
        target: &Target,
    ) -> Result<Came, StepError> {
        let EventWork { model: system, mut inputs, state, scratch, resumed, log } = work;
        let (h, next) = clock.next(target)?;
        let [t, h, end] = [clock.t(), h, next.t()].map(M::S::from_f64);
        let mut plan = Once { t, h, end, whole: true, made: false };
        let (dims, table) = (system.dims(), system.event_table());
        let (log, failed, own) = (Cell::new(log), Cell::new(None), Cell::new(true));
        let mut pieces = Pieces::of(scratch, 0);
        let restart = Assembly::scratch_len(&dims);
        let driver = ImplicitDriver::new(system, inputs.values, restart, &mut pieces)?;
        let record = |seen: Occurrence<'_, M::S>| note(&log, &failed, seen.event, seen.t);
        let saved = State::<M::S>::len(&dims);
        let mut hooks = Located::resumed(table, driver, Unseen, record, &own, saved, resumed, &mut pieces)?;
        let (steps, inputs, scratch) = (self.steps(), &mut inputs, pieces.rest());
        let mut run = ImplicitRun { method: &steps, system, dims, inputs, state, scratch };
        let statistics = drive(&mut run, &mut plan, &mut hooks)?;
        let (begun, count) = hooks.progress();
        *clock = if statistics.stopped { next.at(statistics.t) } else { next };
        failed.take().map_or(Ok(Came { statistics, begun, count }), Err)
    }
}

impl<M: Events, T: EventMethod<M>, E: EventName> Method<M> for Eventful<T, E> {
    type Happened = Happened<E>;

    fn state_len(&self, dims: &Dims) -> usize {
        self.method.state_len(dims) + kept_len(dims, E::COUNT)
    }

    fn start<I: Inputs<M::S>>(&mut self, work: Work<'_, M, I>, settings: &Settings) -> Result<(), StepError> {
        let Work { model, inputs, state, scratch } = work;
        let dims = model.dims();
        let failed = |error: EvalError| error.in_step(settings.begin, 0.0);
        let (state, kept) = cut_mut("state", state, self.method.state_len(&dims)).map_err(failed)?;
        kept.fill(M::S::ZERO);
        self.method.start(Work { model, inputs: &mut *inputs, state, scratch }, settings)?;
        // All inputs as they are at the start.
        if dims.nu > 0 {
            let (latches, _) = cut_mut("state", kept, dims.nu).map_err(failed)?;
            inputs.at(M::S::from_f64(settings.begin), latches);
        }
        Ok(())
    }

    fn step<I: Inputs<M::S>>(
        &self,
        work: Work<'_, M, I>,
        clock: &mut Clock,
        target: &Target,
        statistics: &mut Statistics,
    ) -> Result<(), StepError> {
        if statistics.stopped {
            let what = "an event has stopped the run: restart it, or go on from a state before the event";
            return Err(StepError::Unsupported { what });
        }
        let Work { model, inputs, state, scratch } = work;
        let dims = model.dims();
        let failed = |error: EvalError| error.in_step(clock.t(), 0.0);
        let (state, kept) = cut_mut("state", state, self.method.state_len(&dims)).map_err(failed)?;
        let table = model.event_table();
        let Kept { latches, resumed, progress, log } = Kept::of(&dims, E::COUNT, kept)?;
        log.fill(M::S::ZERO);
        let values = Cell::from_mut(latches).as_slice_of_cells();
        let inputs = Latched { inner: inputs, set: table.inputs, values };
        let work = EventWork { model, inputs, state, scratch, resumed, log };
        let Came { statistics: taken, begun, count } = self.method.step_past(work, clock, target)?;
        let numbers = [f64::from(u8::from(begun.is_some())), begun.unwrap_or(0.0), count as f64];
        copy(progress, &numbers.map(M::S::from_f64));
        statistics.join(&taken);
        Ok(())
    }

    fn observe(
        &self,
        model: &M,
        t: M::S,
        state: &mut [M::S],
        scratch: &mut [M::S],
        node: Node<'_, M::S>,
    ) -> Result<(), EvalError> {
        let (state, _) = cut_mut("state", state, self.method.state_len(&model.dims()))?;
        self.method.observe(model, t, state, scratch, node)
    }

    fn latch(&self, model: &M, state: &[M::S], u: &mut [M::S]) {
        let latches = state.get(self.method.state_len(&model.dims())..).unwrap_or_default();
        for &place in model.event_table().inputs {
            if let (Some(u), Some(&value)) = (u.get_mut(place as usize), latches.get(place as usize)) {
                *u = value;
            }
        }
    }

    fn happened(&self, model: &M, state: &[M::S]) -> Happened<E> {
        let end = self.state_len(&model.dims());
        let log = state.get(end - LOG..end).and_then(|log| log.split_first());
        let mut events = [None; MOST_EVENTS];
        if let Some((count, list)) = log {
            let found = list.chunks_exact(2).take(count.real() as usize);
            for (to, pair) in events.iter_mut().zip(found) {
                if let [place, t] = pair {
                    *to = E::of_place(place.real() as usize).map(|event| Occurred { event, t: t.real() });
                }
            }
        }
        Happened { events }
    }

    fn is_dense(&self) -> bool {
        self.method.is_dense()
    }

    fn interpolate(
        &self,
        model: &M,
        step: &Accepted<M::S>,
        theta: M::S,
        scratch: &mut [M::S],
        state: &mut [M::S],
    ) -> Result<(), StepError> {
        let len = self.method.state_len(&model.dims());
        let state = Pieces::named("state", state, len).next(len)?;
        self.method.interpolate(model, step, theta, scratch, state)
    }
}

/// An explicit integrator whose runs past events are differentiated.
pub trait DifferentiableEventExplicit: DifferentiableExplicit {
    /// A differentiated run with these settings.
    fn differentiated(self, settings: &Settings) -> impl DifferentiableEventIntegrator;
}

impl<T: Controlled> DifferentiableEventExplicit for Adaptive<T>
where
    Adaptive<T>: DifferentiableExplicit,
{
    fn differentiated(self, _: &Settings) -> impl DifferentiableEventIntegrator {
        Differentiated(self)
    }
}

/// A differentiated run from y and its derivatives.
#[allow(clippy::too_many_arguments, reason = "what a run reads and writes")]
fn run_explicit<D, I>(
    run: impl DifferentiableEventIntegrator,
    system: &D,
    inputs: &mut I,
    settings: &Settings,
    y: &mut [D::S],
    derivatives: &mut [D::S],
    scratch: &mut [D::S],
    values: &mut [D::S],
) -> Result<(), StepError>
where
    D: JointDynamics + WithEvents,
    <D as JointDynamics>::Model: JointObjectiveDerivatives,
    <D as WithEvents>::Model: EventDerivatives,
    I: Inputs<D::S>,
{
    let unseen = |_: Sight<'_, DifferentiatedAt<'_, D::S>, D::S>| ControlFlow::Continue(());
    run.run_with_events(system, inputs, y, derivatives, &settings.span(), values, scratch, unseen)?;
    Ok(())
}

impl<M, T: DifferentiableEventExplicit, E: EventName> DifferentiableMethod<M> for Eventful<Tree<T>, E>
where
    M: ForwardDynamics + StartDerivatives + JointSensitivities + JointObjectiveDerivatives + EventDerivatives,
{
    fn gradient<I: Inputs<M::S>>(
        self,
        model: &M,
        inputs: &mut I,
        settings: &Settings,
        memory: &mut [M::S],
        values: &mut [M::S],
    ) -> Result<(), StepError> {
        let (y, derivatives, scratch) =
            start_tree(model, GradientMemory::tree_len::<T>(&model.dims()), memory)?;
        let run = self.method.0.differentiated(settings);
        run_explicit(run, model, inputs, settings, y, derivatives, scratch, values)
    }
}

impl<M, T: DifferentiableEventExplicit, E: EventName> DifferentiableMethod<M> for Eventful<StiffTree<T>, E>
where
    M: ForwardDynamics + StartDerivatives + JointSensitivities + JointObjectiveDerivatives + EventDerivatives,
{
    fn gradient<I: Inputs<M::S>>(
        self,
        model: &M,
        inputs: &mut I,
        settings: &Settings,
        memory: &mut [M::S],
        values: &mut [M::S],
    ) -> Result<(), StepError> {
        let len = GradientMemory::stiff_tree_len::<T>(&model.dims());
        let (y, derivatives, scratch) = start_tree(model, len, memory)?;
        let run = self.method.0.differentiated(settings);
        run_explicit(run, &Stiff(model), inputs, settings, y, derivatives, scratch, values)
    }
}

impl<M, T: ImplicitMethod, E: EventName> DifferentiableMethod<M> for Eventful<T, E>
where
    M: Sensitivities + ObjectiveDerivatives + StartDerivatives + EventDerivatives,
    T::Steps: DifferentiableStep,
{
    fn gradient<I: Inputs<M::S>>(
        mut self,
        model: &M,
        inputs: &mut I,
        settings: &Settings,
        memory: &mut [M::S],
        values: &mut [M::S],
    ) -> Result<(), StepError> {
        let (len, method) = (GradientMemory::implicit_len(&model.dims()), &mut self.method);
        let (state, derivatives, scratch) = start_implicit(method, model, inputs, settings, len, memory)?;
        let run = Differentiated(Fixed { method: self.method.steps(), h: settings.step });
        let unseen = |_: Sight<'_, crate::formulation::Node<'_, M::S>, M::S>| ControlFlow::Continue(());
        let span = settings.span();
        run.run_implicit_with_events(model, inputs, state, derivatives, &span, values, scratch, unseen)?;
        Ok(())
    }
}

/// An explicit integrator whose runs past events have an adjoint.
pub trait AdjointEventExplicit: DifferentiableEventExplicit {
    /// The adjoint of a run with these settings.
    fn backward(self, settings: &Settings) -> impl AdjointEventIntegrator;
}

impl<T: Controlled> AdjointEventExplicit for Adaptive<T>
where
    Adaptive<T>: DifferentiableExplicit,
{
    fn backward(self, _: &Settings) -> impl AdjointEventIntegrator {
        Adjoint(self)
    }
}

/// The number of steps between events is not known before a run.
macro_rules! not_scheduled {
    () => {
        fn schedule(&self, _: &M, _: &Settings, _: usize) -> Result<Option<Schedule>, StepError> {
            Ok(None)
        }
    };
}

impl<M, T: AdjointEventExplicit, E: EventName> AdjointMethod<M> for Eventful<Tree<T>, E>
where
    M: ForwardDynamics + StartDerivatives + JointSensitivities + JointObjectiveDerivatives + EventDerivatives,
{
    not_scheduled!();

    fn own_len(&self, model: &M) -> usize {
        tree_len(model, self.method.0.backward(&ANY).gradient_event_scratch_len(model))
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
        let (y, derivatives, scratch) = start_tree(model, own, first)?;
        let (run, span) = (self.method.0.backward(settings), settings.span());
        run.gradient_with_events(model, inputs, y, derivatives, &span, values, memory, scratch, unseen)
    }
}

impl<M, T: AdjointEventExplicit, E: EventName> AdjointMethod<M> for Eventful<StiffTree<T>, E>
where
    M: ForwardDynamics + StartDerivatives + JointSensitivities + JointObjectiveDerivatives + EventDerivatives,
{
    not_scheduled!();

    fn own_len(&self, model: &M) -> usize {
        tree_len(model, self.method.0.backward(&ANY).gradient_event_scratch_len(&Stiff(model)))
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
        let (y, derivatives, scratch) = start_tree(model, own, first)?;
        let (run, span) = (self.method.0.backward(settings), settings.span());
        run.gradient_with_events(
            &Stiff(model),
            inputs,
            y,
            derivatives,
            &span,
            values,
            memory,
            scratch,
            unseen,
        )
    }
}

impl<M, T: ImplicitMethod, E: EventName> AdjointMethod<M> for Eventful<T, E>
where
    M: Sensitivities + ObjectiveDerivatives + StartDerivatives + EventDerivatives,
    T::Steps: DifferentiableStep,
{
    not_scheduled!();

    fn own_len(&self, model: &M) -> usize {
        let run = Adjoint(Fixed { method: self.method.steps(), h: 0.0 });
        implicit_len(model, run.gradient_implicit_event_scratch_len(model))
    }

    fn adjoint<I: Inputs<M::S>>(
        mut self,
        model: &M,
        inputs: &mut I,
        settings: &Settings,
        memory: &mut [M::S],
        values: &mut [M::S],
    ) -> Result<AdjointStatistics, StepError> {
        let own = self.own_len(model);
        let (first, memory) = split(memory, own)?;
        let (state, derivatives, scratch) =
            start_implicit(&mut self.method, model, inputs, settings, own, first)?;
        let (run, span) = (Adjoint(Fixed { method: self.method.steps(), h: settings.step }), settings.span());
        run.gradient_implicit_with_events(
            model,
            inputs,
            state,
            derivatives,
            &span,
            values,
            memory,
            scratch,
            unseen,
        )
    }
}

/// Steps, gradients and adjoints of a method under constraints past events; `$this` is its explicit part, `$system` what it steps.
macro_rules! projected_past_events {
    ($method:ident, $len:ident, |$whole:ident| $this:expr, |$dynamics:ident| $system:expr $(, $bound:ident)?) => {
        impl<M, T: EventExplicit> EventMethod<M> for $method<T>
        where
            M: Constrained + ConstrainedDynamics + ConstraintCorrection + Start + Events $(+ $bound)?,
        {
            fn step_past<I: Inputs<M::S>>(
                &self,
                work: EventWork<'_, '_, M, I>,
                clock: &mut Clock,
                target: &Target,
            ) -> Result<Came, StepError> {
                let $whole = self;
                let $dynamics = &OnConstraints($this.dynamics(work.model));
                $this.integrator.step_past($system, work, clock, target)
            }
        }

        impl<M, T: DifferentiableEventExplicit, E: EventName> DifferentiableMethod<M> for Eventful<$method<T>, E>
        where
            M: Sensitivities + StartDerivatives + JointSensitivities + JointObjectiveDerivatives + EventDerivatives,
            M: ConstrainedDynamics + ConstraintCorrection,
        {
            fn gradient<I: Inputs<M::S>>(
                mut self,
                model: &M,
                inputs: &mut I,
                settings: &Settings,
                memory: &mut [M::S],
                values: &mut [M::S],
            ) -> Result<(), StepError> {
                let ($whole, len) = (&mut self.method, GradientMemory::$len::<T>(&model.dims()));
                let (y, derivatives, scratch) =
                    start_assembled(&mut $this, model, inputs, settings, len, memory)?;
                let $dynamics = &OnConstraints($this.dynamics(model));
                let run = $this.integrator.differentiated(settings);
                run_explicit(run, $system, inputs, settings, y, derivatives, scratch, values)
            }
        }

        impl<M, T: AdjointEventExplicit, E: EventName> AdjointMethod<M> for Eventful<$method<T>, E>
        where
            M: Sensitivities + StartDerivatives + JointSensitivities + JointObjectiveDerivatives + EventDerivatives,
            M: ConstrainedDynamics + ConstraintCorrection,
        {
            not_scheduled!();

            fn own_len(&self, model: &M) -> usize {
                let $whole = &self.method;
                let $dynamics = &OnConstraints($this.dynamics(model));
                assembled_len(model, $this.integrator.backward(&ANY).gradient_event_scratch_len($system))
            }

            fn adjoint<I: Inputs<M::S>>(
                mut self,
                model: &M,
                inputs: &mut I,
                settings: &Settings,
                memory: &mut [M::S],
                values: &mut [M::S],
            ) -> Result<AdjointStatistics, StepError> {
                let own = self.own_len(model);
                let (first, memory) = split(memory, own)?;
                let $whole = &mut self.method;
                let (y, derivatives, scratch) =
                    start_assembled(&mut $this, model, inputs, settings, own, first)?;
                let $dynamics = &OnConstraints($this.dynamics(model));
                let (run, span) = ($this.integrator.backward(settings), settings.span());
                run.gradient_with_events($system, inputs, y, derivatives, &span, values, memory, scratch, unseen)
            }
        }
    };
}
projected_past_events!(Projected, projected_len, |method| *method, |dynamics| dynamics);
projected_past_events!(
    StiffProjected,
    stiff_projected_len,
    |method| method.0,
    |dynamics| &Stiff(dynamics),
    JointSensitivities
);

/// The same in independent coordinates.
macro_rules! independent_past_events {
    ($method:ident, $len:ident, $room:expr, |$dynamics:ident| $system:expr $(, $bound:ident)?) => {
        impl<M, T: EventExplicit> EventMethod<M> for $method<T>
        where
            M: Constrained + ConstrainedDynamics + ConstraintRows + Start + Events $(+ $bound)?,
        {
            fn step_past<I: Inputs<M::S>>(
                &self,
                work: EventWork<'_, '_, M, I>,
                clock: &mut Clock,
                target: &Target,
            ) -> Result<Came, StepError> {
                let EventWork { model, inputs, state, scratch, resumed, log } = work;
                let (dims, newmark) = (model.dims(), self.0.newmark());
                let [state, choice] =
                    independent::parts(&dims, independent::room($room, &dims), newmark.carries(), state)?;
                let work = EventWork { model, inputs, state, scratch, resumed, log };
                let $dynamics = &MatrixR::new(model, choice).by(newmark);
                self.0.step_past($system, work, clock, target)
            }
        }

        impl<M, T: DifferentiableEventExplicit, E: EventName> DifferentiableMethod<M> for Eventful<$method<T>, E>
        where
            M: Sensitivities + StartDerivatives + JointSensitivities + JointObjectiveDerivatives + EventDerivatives,
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
                let len = GradientMemory::$len::<T>(&model.dims());
                let ([y, choice, derivatives], scratch) =
                    independent::begin(model, inputs, settings, len, memory)?;
                let run = self.method.0.differentiated(settings);
                let $dynamics = &MatrixR::new(model, choice).by(self.method.0.newmark());
                run_explicit(run, $system, inputs, settings, y, derivatives, scratch, values)
            }
        }

        impl<M, T: AdjointEventExplicit, E: EventName> AdjointMethod<M> for Eventful<$method<T>, E>
        where
            M: Sensitivities + StartDerivatives + JointSensitivities + JointObjectiveDerivatives + EventDerivatives,
            M: ConstrainedDynamics + ConstraintRows,
        {
            not_scheduled!();

            fn own_len(&self, model: &M) -> usize {
                let $dynamics = &MatrixR::new(model, &mut []).by(self.method.0.newmark());
                let run = self.method.0.backward(&ANY);
                independent::own_len(model, run.gradient_event_scratch_len($system))
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
                let ([y, choice, derivatives], scratch) =
                    independent::begin(model, inputs, settings, own, first)?;
                let (run, span) = (self.method.0.backward(settings), settings.span());
                let $dynamics = &MatrixR::new(model, choice).by(self.method.0.newmark());
                run.gradient_with_events($system, inputs, y, derivatives, &span, values, memory, scratch, unseen)
            }
        }
    };
}
independent_past_events!(Independent, independent_len, |_| 0, |dynamics| dynamics);
independent_past_events!(
    StiffIndependent,
    stiff_independent_len,
    StiffIndependentMemory::room,
    |dynamics| &Stiff(dynamics),
    JointSensitivities
);
