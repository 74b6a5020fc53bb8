//! A simulation that owns its memory: the model, its state and its scratch, all of constant size.
//!
//! Input: a generated model, which says what it is simulated by and how its values are named ([`Simulated`]). Output: [`Simulation`], made
//! of parameters alone: assembled, with the velocities of the file, stepped by the file's method. Values are read by name. Everything
//! else of this crate works on slices of the caller, and so does this on its own.

mod adjoint;
mod clock;
mod either;
mod error;
mod eventful;
mod gradient;
mod independent;
mod method;
mod problem;

pub use adjoint::{
    AdjointExplicit, AdjointMethod, GradientMethod, adjoint_memory_len, gradient_by, gradient_by_adjoint,
};
pub use clock::{Clock, Results, Target};
pub use either::Either;
pub use error::{Cause, Condition, Error, ParameterError};
pub use eventful::{
    DifferentiableEventExplicit, EventExplicit, EventMemory, EventMethod, EventName, Eventful, Happened,
    MOST_EVENTS, Occurred,
};
pub use gradient::{Differentiable, DifferentiableMethod, GradientMemory, gradient, gradient_with};
pub use independent::{Independent, StiffIndependent};
pub use method::{
    Enforcement, Explicit, ExplicitMemory, ImplicitMemory, ImplicitMethod, IndependentMemory, Method,
    Newmark, Node, Projected, Stabilised, StiffIndependentMemory, StiffProjected, StiffTree, Tree, Work,
    damping_frequency, in_independent, in_independent_stages, in_stages, largest,
};
pub use problem::{Problem, Unknown};

use core::fmt;
use core::marker::PhantomData;
use core::ops::ControlFlow;

use crate::constrained::Reactions;
use crate::error::StepError;
use crate::formulation;
use crate::inputs::{Constant, Inputs, NoInputs, Stop};
use crate::integrator::{Accepted, Statistics};
use crate::linear::copy;
use crate::named::{Energies, Fields, Memory, NameTable, Named};
use crate::scalar::Scalar;
#[cfg(feature = "nalgebra")]
use crate::system::MassMatrix;
use crate::system::{At, Energy, Markers, Outputs, System};

/// When a run begins and ends, its step (with step control, the first), and when it gives results.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// First time.
    pub begin: f64,
    /// Last time.
    pub end: f64,
    /// Size of the steps.
    pub step: f64,
    /// Time between the results of [`Simulation::run`]; every step if there is none.
    pub output: Option<f64>,
}

/// What a simulation begins with: a case of the model or none, parameters, times and step.
///
/// ```ignore
/// let setup = Setup { parameters: Parameters { k_f: 9e3, ..setup.parameters }, ..Setup::of_case(Case::step_descent) };
/// ```
pub struct Setup<M: Simulated> {
    /// Whose start values, inputs and method are taken; without one, the model's own.
    pub case: Option<M::Case>,
    /// The parameters.
    pub parameters: M::Parameters,
    /// Times and step.
    pub settings: Settings,
}

impl<M: Simulated> Setup<M> {
    /// The model's own simulation with these parameters.
    pub fn new(parameters: M::Parameters) -> Self {
        Self { parameters, ..M::setup(None) }
    }

    /// All of a case, its parameters included.
    pub fn of_case(case: M::Case) -> Self {
        M::setup(Some(case))
    }
}

impl<M: Simulated> Clone for Setup<M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M: Simulated> Copy for Setup<M> {}

impl<M: Simulated> fmt::Debug for Setup<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setup").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// A model that can be simulated by itself: its memory, its method and its names. Generated modules implement it.
pub trait Simulated: System + Sized {
    /// Cases of the model that share its equations; of a model without any, [`Infallible`](core::convert::Infallible).
    type Case: Copy;
    /// Independent parameters.
    type Parameters: Fields<Self::S>;
    /// Coordinates, their rates and accelerations.
    type Coordinates: Fields<Self::S>;
    /// Velocities and accelerations.
    type Velocities: Fields<Self::S>;
    /// Inputs.
    type Inputs: Fields<Self::S>;
    /// Multipliers of holonomic and nonholonomic rows.
    type Multipliers: Fields<Self::S>;
    /// Outputs.
    type Outputs: Fields<Self::S>;
    /// A vector for each marker.
    type Markers: Fields<Self::S>;
    /// A wrench for each joint.
    type Reactions: Fields<Self::S>;
    /// The state of the method.
    type State: Memory<S = Self::S>;
    /// The scratch of the method.
    type Scratch: Memory<S = Self::S>;
    /// The scratch of every bundle.
    type Workspace: Memory<S = Self::S>;
    /// The method of the file, or [`Either`] of several, if cases have others.
    type Method: Method<Self>;

    /// The model's names.
    const NAMES: NameTable;

    /// Parameters and settings of the file, or of a case.
    fn setup(case: Option<Self::Case>) -> Setup<Self>;

    /// The method of the file, or of a case.
    fn method(case: Option<Self::Case>) -> Self::Method;

    /// Whether the model allows these parameters.
    fn check(case: Option<Self::Case>, parameters: &Self::Parameters) -> Result<(), ParameterError>;

    /// The model with these parameters, and the start values and inputs of a case.
    fn with(case: Option<Self::Case>, parameters: Self::Parameters) -> Self;

    /// Its case.
    fn case(&self) -> Option<Self::Case>;

    /// Its parameters.
    fn parameters(&self) -> &Self::Parameters;

    /// Writes the model's own inputs: their defaults, or the signals of the case.
    fn signals(&self, t: Self::S, u: &mut [Self::S]);

    /// The first corner of what time alone decides, as [`Inputs::next_stop`].
    #[inline(always)]
    fn next_stop(&self, _from: f64, _to: f64) -> Option<Stop> {
        None
    }
}

/// The model's own inputs.
struct Signals<'a, M>(&'a M);

impl<M: Simulated> Inputs<M::S> for Signals<'_, M> {
    fn at(&mut self, t: M::S, u: &mut [M::S]) {
        self.0.signals(t, u);
    }

    fn next_stop(&mut self, from: f64, to: f64) -> Option<Stop> {
        self.0.next_stop(from, to)
    }
}

/// Inputs of a model whose own corners in time steps keep.
struct Given<'a, M, I>(&'a M, I);

impl<M: Simulated, I: Inputs<M::S>> Inputs<M::S> for Given<'_, M, I> {
    fn at(&mut self, t: M::S, u: &mut [M::S]) {
        self.1.at(t, u);
    }

    fn next_stop(&mut self, from: f64, to: f64) -> Option<Stop> {
        Stop::first(self.0.next_stop(from, to), self.1.next_stop(from, to))
    }
}

type Array<F, S> = <F as Fields<S>>::Array;

/// What may happen in a step of a model: nothing, or [`Happened`] with the model's events.
pub type HappenedIn<M> = <<M as Simulated>::Method as Method<M>>::Happened;

/// The state of a simulation: all that it carries from one step to the next, and all that is known of the present. Keep a copy to come
/// back to it, see [`Simulation::restore`].
pub struct State<M: Simulated> {
    clock: Clock,
    method: M::State,
    z: Array<M::Coordinates, M::S>,
    zd: Array<M::Coordinates, M::S>,
    zdd: Array<M::Coordinates, M::S>,
    v: Array<M::Velocities, M::S>,
    vd: Array<M::Velocities, M::S>,
    lambda: Array<M::Multipliers, M::S>,
    u: Array<M::Inputs, M::S>,
    statistics: Statistics,
}

impl<M: Simulated> Clone for State<M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M: Simulated> Copy for State<M> {}

impl<M: Simulated> State<M> {
    fn new(begin: f64) -> Self {
        Self {
            clock: Clock::new(begin),
            method: Memory::ZERO,
            z: Memory::ZERO,
            zd: Memory::ZERO,
            zdd: Memory::ZERO,
            v: Memory::ZERO,
            vd: Memory::ZERO,
            lambda: Memory::ZERO,
            u: Memory::ZERO,
            statistics: Statistics::default(),
        }
    }

    /// Fills in what is known of the present.
    fn observe<I: Inputs<M::S>>(
        &mut self,
        method: &M::Method,
        model: &M,
        inputs: &mut I,
        scratch: &mut [M::S],
    ) -> Result<(), StepError> {
        let now = self.clock.t();
        let t = M::S::from_f64(now);
        let u = self.u.values_mut();
        if !u.is_empty() {
            inputs.at(t, u);
        }
        method.latch(model, self.method.values(), self.u.values_mut());
        let node = Node {
            z: self.z.values_mut(),
            zd: self.zd.values_mut(),
            zdd: self.zdd.values_mut(),
            v: self.v.values_mut(),
            vd: self.vd.values_mut(),
            lambda: self.lambda.values_mut(),
            u: self.u.values(),
        };
        let known = method.observe(model, t, self.method.values_mut(), scratch, node);
        known.map_err(|error| error.in_step(now, 0.0))
    }
}

impl<M: Simulated> fmt::Debug for State<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State")
            .field("t", &self.clock.t())
            .field("z", &self.z.values())
            .field("v", &self.v.values())
            .finish_non_exhaustive()
    }
}

/// A run of a model, step by step. `U` are the inputs that a step is given; of a model that has none, [`NoInputs`].
///
/// After an error it is as before: `step` again, or go on from another [`State`].
#[derive(Clone)]
pub struct Simulation<M: Simulated, U = NoInputs> {
    model: M,
    settings: Settings,
    method: M::Method,
    state: State<M>,
    scratch: M::Scratch,
    inputs: PhantomData<fn(U)>,
}

impl<M: Simulated, U> Simulation<M, U> {
    /// At the begin of the file's simulation: positions assembled, velocities, accelerations and multipliers consistent.
    pub fn new(parameters: M::Parameters) -> Result<Self, Error<M>> {
        Self::with(Setup::new(parameters))
    }

    /// The same of a case: its parameters, start values, inputs, times and method.
    pub fn of_case(case: M::Case) -> Result<Self, Error<M>> {
        Self::with(Setup::of_case(case))
    }

    /// The same of a case or none, with other parameters, times or steps.
    pub fn with(setup: Setup<M>) -> Result<Self, Error<M>> {
        let Setup { case, parameters, settings } = setup;
        M::check(case, &parameters)?;
        let mut simulation = Self {
            model: M::with(case, parameters),
            settings,
            method: M::method(case),
            state: State::new(settings.begin),
            scratch: Memory::ZERO,
            inputs: PhantomData,
        };
        simulation.restart()?;
        Ok(simulation)
    }

    /// Back to the begin, with the present parameters.
    pub fn restart(&mut self) -> Result<(), Error<M>> {
        let Self { model, settings, scratch, .. } = self;
        let (mut method, mut state) = (M::method(model.case()), State::<M>::new(settings.begin));
        let (inputs, scratch) = (&mut Signals(&*model), scratch.values_mut());
        method.start(Work { model, inputs, state: state.method.values_mut(), scratch }, settings)?;
        state.observe(&method, model, inputs, scratch)?;
        (self.method, self.state) = (method, state);
        Ok(())
    }

    fn advance<'a, I: Inputs<M::S>>(
        &'a mut self,
        target: Target,
        inputs: impl FnOnce(&'a M) -> I,
    ) -> Result<HappenedIn<M>, Error<M>> {
        let Self { model, method, state, scratch, .. } = self;
        let model = &*model;
        let (inputs, scratch) = (&mut inputs(model), scratch.values_mut());
        let mut next = *state;
        let State { clock, method: memory, statistics, .. } = &mut next;
        let work = Work { model, inputs, state: memory.values_mut(), scratch };
        method.step(work, clock, &target, statistics)?;
        next.observe(method, model, inputs, scratch)?;
        *state = next;
        Ok(method.happened(model, state.method.values()))
    }

    /// A step of the file's size, or of step control's choice; it meets the end of the run exactly, and goes beyond.
    fn target(&self) -> Target {
        let Settings { begin, end, step: h, .. } = self.settings;
        let time = if self.t() < end { end } else { self.t() + (end - begin) };
        Target { h, time, last: false, result: f64::INFINITY }
    }

    /// One step with inputs that are a function of time.
    pub fn step_with(&mut self, inputs: &mut impl Inputs<M::S>) -> Result<HappenedIn<M>, Error<M>> {
        let target = self.target();
        self.advance(target, |model| Given(model, Borrowed(inputs)))
    }

    /// One step with the model's own inputs: their defaults, or what its case prescribes.
    pub fn step_by_signals(&mut self) -> Result<HappenedIn<M>, Error<M>> {
        let target = self.target();
        self.advance(target, Signals)
    }

    /// Steps until `time`, which is met exactly, with the model's own inputs, or to an event that stops the run. After an error the state
    /// is that after the last good step.
    pub fn run_to(&mut self, time: f64) -> Result<(), Error<M>> {
        if !(time >= self.t() && time.is_finite()) {
            let what = "the time to run to must be finite and not before the present";
            return Err(StepError::Setting { what, value: time }.into());
        }
        while self.t() < time && !self.has_stopped() {
            let target = Target { h: self.settings.step, time, last: true, result: f64::INFINITY };
            self.advance(target, Signals)?;
        }
        Ok(())
    }

    /// Steps until the end of the file's simulation. The observer sees the present, the results that the settings ask for (every step, or one
    /// per output interval) and the end. Where it breaks the run ends.
    pub fn run(&mut self, mut observe: impl FnMut(&Self) -> ControlFlow<()>) -> Result<(), Error<M>> {
        let Settings { end, step: h, .. } = self.settings;
        let mut results = Results::new(&self.settings, self.method.is_dense())?;
        if observe(self).is_break() {
            return Ok(());
        }
        while self.t() < end && !self.has_stopped() {
            let begun = self.t();
            self.advance(Target { h, time: end, last: true, result: results.next(begun) }, Signals)?;
            let after = self.state;
            while let Some(t) = results.within(begun, after.clock.t()) {
                self.interpolate(begun, &after, t)?;
                if observe(self).is_break() {
                    return Ok(());
                }
            }
            self.state = after;
            if (results.at_node(self.t(), after.clock.nodes()) || self.has_stopped())
                && observe(self).is_break()
            {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Makes a time within the last step the present. The step began at `begun` and led to `after`.
    fn interpolate(&mut self, begun: f64, after: &State<M>, t: f64) -> Result<(), Error<M>> {
        let Self { model, method, state, scratch, .. } = self;
        *state = State { clock: after.clock.at(t), ..*after };
        let (begun, h) = (M::S::from_f64(begun), M::S::from_f64(after.statistics.h));
        let (theta, scratch) = ((M::S::from_f64(t) - begun) / h, scratch.values_mut());
        let step = Accepted { t: begun, h, rejected: 0, evaluations: 0 };
        method.interpolate(model, &step, theta, scratch, state.method.values_mut())?;
        Ok(state.observe(method, model, &mut Signals(&*model), scratch)?)
    }

    /// Time. It is counted in steps, in double precision whatever the scalar, so that it does not drift.
    pub fn t(&self) -> f64 {
        self.state.clock.t()
    }

    /// Whether an event has stopped the run.
    pub fn has_stopped(&self) -> bool {
        self.state.statistics.stopped
    }

    /// What happened in the last step.
    pub fn happened(&self) -> HappenedIn<M> {
        self.method.happened(&self.model, self.state.method.values())
    }

    /// Coordinates.
    pub fn z(&self) -> M::Coordinates {
        M::Coordinates::from_values(&self.state.z)
    }

    /// Rates of coordinates.
    pub fn zd(&self) -> M::Coordinates {
        M::Coordinates::from_values(&self.state.zd)
    }

    /// Accelerations of coordinates.
    pub fn zdd(&self) -> M::Coordinates {
        M::Coordinates::from_values(&self.state.zdd)
    }

    /// Velocities; of joints with Euler parameters the angular velocity.
    pub fn v(&self) -> M::Velocities {
        M::Velocities::from_values(&self.state.v)
    }

    /// Accelerations: rates of velocities.
    pub fn vd(&self) -> M::Velocities {
        M::Velocities::from_values(&self.state.vd)
    }

    /// Multipliers of the constraints.
    pub fn lambda(&self) -> M::Multipliers {
        M::Multipliers::from_values(&self.state.lambda)
    }

    /// Inputs: of the step that ends here, or where the model's own are used, those with which the next begins.
    pub fn inputs(&self) -> M::Inputs {
        M::Inputs::from_values(&self.state.u)
    }

    /// What the steps took.
    pub fn statistics(&self) -> Statistics {
        self.state.statistics
    }

    /// The model.
    pub fn model(&self) -> &M {
        &self.model
    }

    /// The parameters.
    pub fn parameters(&self) -> &M::Parameters {
        self.model.parameters()
    }

    /// The case, if it is one.
    pub fn case(&self) -> Option<M::Case> {
        self.model.case()
    }

    /// Times and step.
    pub fn settings(&self) -> Settings {
        self.settings
    }

    /// Other parameters from now on. The state stays: after a change of geometry, [`Simulation::restart`] assembles again.
    pub fn set_parameters(&mut self, parameters: M::Parameters) -> Result<(), Error<M>> {
        let case = self.model.case();
        M::check(case, &parameters)?;
        let model = M::with(case, parameters);
        let mut state = self.state;
        // What an implicit step has handed on belongs to the old parameters; the state of an explicit one has another length.
        if let Ok(mut implicit) = formulation::State::of(&model.dims(), state.method.values_mut()) {
            implicit.forget_tangent();
        }
        state.observe(
            &self.method,
            &model,
            &mut Constant(self.state.u.values()),
            self.scratch.values_mut(),
        )?;
        (self.model, self.state) = (model, state);
        Ok(())
    }

    /// All that the simulation carries from one step to the next.
    pub fn state(&self) -> State<M> {
        self.state
    }

    /// Goes on from a state of this simulation; the same steps then give the same bits.
    pub fn restore(&mut self, state: State<M>) {
        self.state = state;
    }

    /// The present, as bundles read it.
    pub fn at(&self) -> At<'_, M::S> {
        let State { z, v, u, .. } = &self.state;
        At { t: M::S::from_f64(self.t()), z: z.values(), v: v.values(), x: &[], u: u.values() }
    }
}

/// Inputs of the caller.
struct Borrowed<'a, I>(&'a mut I);

impl<S, I: Inputs<S>> Inputs<S> for Borrowed<'_, I> {
    fn at(&mut self, t: S, u: &mut [S]) {
        self.0.at(t, u);
    }

    fn next_stop(&mut self, from: f64, to: f64) -> Option<Stop> {
        self.0.next_stop(from, to)
    }
}

impl<M: Simulated> Simulation<M, NoInputs> {
    /// One step.
    pub fn step(&mut self) -> Result<HappenedIn<M>, Error<M>> {
        self.step_by_signals()
    }
}

impl<M: Simulated<Inputs = U>, U: Named + Fields<M::S>> Simulation<M, U> {
    /// One step under these inputs, which are constant over it.
    pub fn step(&mut self, inputs: &U) -> Result<HappenedIn<M>, Error<M>> {
        let (target, values) = (self.target(), inputs.to_values());
        self.advance(target, |model| Given(model, Constant(values.values())))
    }
}

/// The values that `write` leaves. The lengths are right, so that it cannot fail; if it did all values would be NaN.
fn evaluate<S: Scalar, F: Fields<S>, E>(write: impl FnOnce(&mut [S]) -> Result<(), E>) -> F {
    let mut values = Array::<F, S>::ZERO;
    if write(values.values_mut()).is_err() {
        values.values_mut().fill(S::from_f64(f64::NAN));
    }
    F::from_values(&values)
}

impl<M: Simulated + Outputs, U> Simulation<M, U> {
    /// Outputs.
    pub fn output(&self) -> <M as Simulated>::Outputs {
        let mut w = M::Workspace::ZERO;
        evaluate(|out| self.model.outputs(self.at(), self.state.vd.values(), w.values_mut(), out))
    }
}

impl<M: Simulated + Energy, U> Simulation<M, U> {
    /// Energies.
    pub fn energy(&self) -> Energies<M::S> {
        let (mut w, mut out) = (M::Workspace::ZERO, [M::S::ZERO; 3]);
        match self.model.energy(self.at(), w.values_mut(), &mut out) {
            Ok(()) => Energies::from_array(&out),
            Err(_) => Energies::from_array(&[M::S::from_f64(f64::NAN); 3]),
        }
    }
}

impl<M: Simulated + Markers, U> Simulation<M, U> {
    fn markers(&self, which: usize) -> <M as Simulated>::Markers {
        let mut w = M::Workspace::ZERO;
        let mut all = [Array::<<M as Simulated>::Markers, M::S>::ZERO; 3];
        let [positions, velocities, accelerations] = all.each_mut().map(|part| part.values_mut());
        let vd = self.state.vd.values();
        let done = self.model.markers(self.at(), vd, w.values_mut(), positions, velocities, accelerations);
        evaluate(|to| done.map(|()| copy(to, all.get(which).map_or(&[], |part| part.values()))))
    }

    /// Positions of the markers, in the world frame.
    pub fn marker_positions(&self) -> <M as Simulated>::Markers {
        self.markers(0)
    }

    /// Velocities of the markers.
    pub fn marker_velocities(&self) -> <M as Simulated>::Markers {
        self.markers(1)
    }

    /// Accelerations of the markers.
    pub fn marker_accelerations(&self) -> <M as Simulated>::Markers {
        self.markers(2)
    }
}

impl<M: Simulated + Reactions, U> Simulation<M, U> {
    /// What each joint transmits from its parent to its child.
    pub fn reactions(&self) -> <M as Simulated>::Reactions {
        let mut w = M::Workspace::ZERO;
        let State { vd, lambda, .. } = &self.state;
        evaluate(|out| self.model.reactions(self.at(), vd.values(), lambda.values(), w.values_mut(), out))
    }
}

#[cfg(feature = "nalgebra")]
impl<M: Simulated + MassMatrix, U> Simulation<M, U> {
    /// The mass matrix in joint form.
    pub fn mass_matrix(&self) -> <Array<M::Velocities, M::S> as Memory>::Square {
        Array::<M::Velocities, M::S>::square(|values| {
            let mut w = M::Workspace::ZERO;
            if self.model.mass_matrix(self.at(), w.values_mut(), values).is_err() {
                values.fill(M::S::from_f64(f64::NAN));
            }
        })
    }
}
