//! A simulation of a model that is not compiled, step by step, with values by name: the verbs of a generated module's `Simulation`.
//!
//! Input: a model. Output: its consistent start, and steps of the file's method, which the runtime makes as it makes those of generated
//! modules.
//!
//! ```
//! let text = "
//! mbs: 1
//! name: pendulum
//! gravity: [0, 0, -9.81]
//! parameters: {m: 1.0, L: 1.0}
//! inputs: {drive: {default: 0}}
//! bodies:
//!   rod: {mass: m, com: [0, 0, -L/2], inertia: [m*L^2/12, m*L^2/12, 0], points: {tip: [0, 0, -L]}}
//! joints:
//!   hinge: {type: revolute, parent: ground, child: rod, axis: [0, 1, 0], start: 0.3}
//! forces:
//!   motor: {type: joint_force, coordinate: hinge, value: drive}
//! objectives: {swing: hinge.angle^2}
//! sensitivity: [L]
//! simulation: {end: 1, integrator: rk4}
//! cases: {long: {parameters: {L: 2}}}
//! ";
//! let (model, _) = mbs_codegen::analyse("pendulum.yaml", text).expect("a valid model");
//! let mut sim = mbs_engine::Simulation::new(&model)?;
//! while sim.t() < 0.5 {
//!     sim.step(&[("drive", 0.1)])?;
//! }
//! // The only coordinate of a joint goes by the joint's name.
//! assert_eq!(sim.z("hinge"), sim.z("hinge.angle"));
//! assert!(sim.z("hinge") < Some(0.3) && sim.marker_positions("rod.tip").is_some_and(|tip| tip[2] < -0.9));
//! assert_eq!(sim.z("hing"), None);
//! // The joint carries the rod.
//! assert!(sim.reactions("hinge").is_some_and(|wrench| wrench.force[2] > 5.0));
//!
//! let long = mbs_engine::Simulation::of_case(&model, "long")?;
//! let gradient = long.gradient()?;
//! assert!(gradient.value("swing") > Some(0.0) && gradient.derivative("swing", "L").is_some_and(|slope| slope < 0.0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::gradient::{self, Found};
use crate::method::Method;
use crate::simulation::{Instance, InstanceError, Overrides, Settings, interpret, simulation};
use crate::{Damping, Interpreted, ParameterError};
use mbs_codegen::analysis::Analysed;
use mbs_codegen::diagnostics::nearest;
use mbs_codegen::model::Case;
use mbs_codegen::program::BundleKind;
use mbs_runtime::inputs::Constant;
use mbs_runtime::integrator::Accepted;
use mbs_runtime::named::{Energies, Wrench};
use mbs_runtime::simulation::{
    self as runtime, Clock, Either, Enforcement, ExplicitMemory, ImplicitMemory, Independent,
    IndependentMemory, Method as _, Newmark, Node, Projected, Results, Stabilised, StiffIndependent,
    StiffIndependentMemory, StiffProjected, StiffTree, Target, Tree, Work,
};
use mbs_runtime::{
    Adaptive, Ali3p, At, Dims, Dop853, Energy, EvalError, Inputs, Markers, MassMatrix, Outputs, Reactions,
    Rk4, Sdirk4, State, Statistics, StepError, System,
};
use nalgebra::DMatrix;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Why a simulation does not start or go on.
#[derive(Debug)]
#[non_exhaustive]
pub enum SimulationError {
    /// The model has no such case.
    Case {
        /// The name.
        name: String,
        /// The nearest name there is.
        nearest: Option<String>,
    },
    /// The model cannot be run as it was asked for.
    Instance(InstanceError),
    /// Parameters that cannot be set.
    Parameter(ParameterError),
    /// There is no input of this name.
    Input {
        /// The name.
        name: String,
    },
    /// The start or a step failed: the message, with the model's names.
    Step {
        /// The message.
        message: String,
        /// The error.
        error: StepError,
    },
}

impl fmt::Display for SimulationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SimulationError::Case { name, nearest } => {
                write!(f, "there is no case `{name}`")?;
                nearest.iter().try_for_each(|near| write!(f, "; did you mean `{near}`?"))
            }
            SimulationError::Instance(error) => error.fmt(f),
            SimulationError::Parameter(error) => error.fmt(f),
            SimulationError::Input { name } => write!(f, "there is no input `{name}`"),
            SimulationError::Step { message, .. } => f.write_str(message),
        }
    }
}

impl std::error::Error for SimulationError {}

/// The methods of model files, as the runtime makes their steps.
type Stepping = Either<Either<Ali3p, Stabilised>, Either<AnyExplicit, Implicit>>;

/// An explicit integrator.
type AnyExplicit = Either<Explicit<Rk4>, Either<Explicit<Adaptive>, Explicit<Adaptive<Dop853>>>>;

/// An implicit Runge–Kutta method of an open tree, under constraints, or in independent coordinates.
type Implicit =
    Either<Either<StiffTree<Adaptive<Sdirk4>>, StiffProjected<Adaptive<Sdirk4>>>, ImplicitIndependent>;

/// One in independent coordinates.
type ImplicitIndependent = Either<StiffIndependent<Adaptive<Sdirk4>>, StiffIndependent<Newmark>>;

/// An explicit integrator of an open tree, or under constraints.
type Explicit<T> = Either<Tree<T>, Either<Projected<T>, Independent<T>>>;

/// An explicit integrator under constraints.
fn explicit<T>(integrator: T, damping: Option<Damping>, enforcement: Enforcement) -> Explicit<T> {
    match damping {
        None => Either::First(Tree(integrator)),
        Some(damping) if damping.matrix_r.is_some() => {
            Either::Second(Either::Second(Independent(integrator)))
        }
        Some(_) => Either::Second(Either::First(Projected { integrator, enforcement })),
    }
}

/// An implicit Runge–Kutta method.
fn implicit(method: Implicit) -> Stepping {
    Either::Second(Either::Second(method))
}

/// Lengths of state and scratch of an explicit integrator.
fn explicit_memory<T: runtime::Explicit>(method: &Explicit<T>, dims: &Dims) -> (usize, usize) {
    match method {
        Either::First(_) => (ExplicitMemory::state_len(dims), ExplicitMemory::tree_scratch_len::<T>(dims)),
        Either::Second(Either::First(_)) => {
            (ExplicitMemory::state_len(dims), ExplicitMemory::projected_scratch_len::<T>(dims))
        }
        Either::Second(Either::Second(_)) => {
            (IndependentMemory::state_len(dims), IndependentMemory::scratch_len::<T>(dims))
        }
    }
}

/// The method of settings. Numbers that depend on the start are fixed by it.
fn stepping(settings: &Settings) -> Stepping {
    let enforcement = crate::method::enforcement(&settings.simulation);
    match Method::of(&settings.simulation, settings.constrained, &[]) {
        Method::Ali3p(method) => Either::First(Either::First(method)),
        Method::Index1(method) => Either::First(Either::Second(Stabilised { method, enforcement })),
        Method::Rk4(damping) => {
            Either::Second(Either::First(Either::First(explicit(Rk4, damping, enforcement))))
        }
        Method::DormandPrince(control, damping) => {
            let method = Either::First(explicit(control, damping, enforcement));
            Either::Second(Either::First(Either::Second(method)))
        }
        Method::Dop853(control, damping) => {
            let method = Either::Second(explicit(control, damping, enforcement));
            Either::Second(Either::First(Either::Second(method)))
        }
        Method::Sdirk4(control, None) => implicit(Either::First(Either::First(StiffTree(control)))),
        Method::Sdirk4(control, Some(damping)) if damping.matrix_r.is_some() => {
            implicit(Either::Second(Either::First(StiffIndependent(control))))
        }
        Method::Sdirk4(integrator, Some(_)) => {
            let projected = StiffProjected(Projected { integrator, enforcement });
            implicit(Either::First(Either::Second(projected)))
        }
        Method::Trapezoidal(damping) => {
            let formulas = damping.and_then(|damping| damping.matrix_r);
            let newmark = Newmark(formulas.unwrap_or(mbs_runtime::Implicit::TRAPEZOIDAL));
            implicit(Either::Second(Either::Second(StiffIndependent(newmark))))
        }
    }
}

/// Lengths of state and scratch.
fn memory(stepping: &Stepping, dims: &Dims) -> (usize, usize) {
    type Stiff = Adaptive<Sdirk4>;
    match stepping {
        Either::First(_) => (ImplicitMemory::state_len(dims), ImplicitMemory::scratch_len(dims)),
        Either::Second(Either::First(Either::First(method))) => explicit_memory(method, dims),
        Either::Second(Either::First(Either::Second(Either::First(method)))) => explicit_memory(method, dims),
        Either::Second(Either::First(Either::Second(Either::Second(method)))) => {
            explicit_memory(method, dims)
        }
        Either::Second(Either::Second(Either::First(Either::First(_)))) => {
            (ExplicitMemory::state_len(dims), ExplicitMemory::stiff_tree_scratch_len::<Stiff>(dims))
        }
        Either::Second(Either::Second(Either::First(Either::Second(_)))) => {
            (ExplicitMemory::state_len(dims), ExplicitMemory::stiff_projected_scratch_len::<Stiff>(dims))
        }
        Either::Second(Either::Second(Either::Second(_))) => {
            // The trapezoidal rule has fewer stages.
            (
                StiffIndependentMemory::state_len(dims),
                StiffIndependentMemory::stiff_scratch_len::<Stiff>(dims),
            )
        }
    }
}

/// All that a simulation carries from one step to the next, and all that is known of the present.
#[derive(Clone, Debug)]
pub struct SimulationState {
    clock: Clock,
    method: Vec<f64>,
    z: Vec<f64>,
    zd: Vec<f64>,
    zdd: Vec<f64>,
    v: Vec<f64>,
    vd: Vec<f64>,
    lambda: Vec<f64>,
    u: Vec<f64>,
    statistics: Statistics,
}

impl SimulationState {
    fn new(begin: f64, dims: &Dims, method: usize) -> SimulationState {
        let zeros = |n: usize| vec![0.0; n];
        SimulationState {
            clock: Clock::new(begin),
            method: zeros(method),
            z: zeros(dims.nq),
            zd: zeros(dims.nq),
            zdd: zeros(dims.nq),
            v: zeros(dims.nv),
            vd: zeros(dims.nv),
            lambda: zeros(dims.joint_rows()),
            u: zeros(dims.nu),
            statistics: Statistics::default(),
        }
    }

    /// Fills in what is known of the present.
    fn observe(
        &mut self,
        stepping: &Stepping,
        model: &Interpreted,
        inputs: &mut impl Inputs<f64>,
        scratch: &mut [f64],
    ) -> Result<(), StepError> {
        let Self { clock, method, z, zd, zdd, v, vd, lambda, u, .. } = self;
        let t = clock.t();
        inputs.at(t, u);
        let node = Node { z, zd, zdd, v, vd, lambda, u };
        let known = stepping.observe(model, t, method, scratch, node);
        known.map_err(|error| StepError::Eval { t, h: 0.0, error })
    }
}

/// Objectives of a run and their derivatives, by name.
#[derive(Clone, Debug)]
pub struct SimulationGradient {
    /// All values.
    pub found: Found,
    objectives: Vec<String>,
    sensitivity: Vec<String>,
}

impl SimulationGradient {
    /// The value of an objective.
    pub fn value(&self, objective: &str) -> Option<f64> {
        let place = self.objectives.iter().position(|name| name == objective)?;
        self.found.objectives.get(place).copied()
    }

    /// The derivative of an objective by a parameter or input of the model's `sensitivity`.
    pub fn derivative(&self, objective: &str, by: &str) -> Option<f64> {
        let place = self.objectives.iter().position(|name| name == objective)?;
        let by = self.sensitivity.iter().position(|name| name == by)?;
        self.found.of_objective(place).get(by).copied()
    }
}

/// A run of a model, step by step.
#[derive(Clone, Debug)]
pub struct Simulation {
    /// What a program with further bundles is made from.
    source: Arc<Analysed>,
    case: Option<Case>,
    instance: Instance,
    stepping: Stepping,
    state: SimulationState,
    scratch: Vec<f64>,
}

impl Simulation {
    /// At the begin of the file's simulation.
    pub fn new(model: &Analysed) -> Result<Simulation, SimulationError> {
        Simulation::with(model, None, &[], &Overrides::default())
    }

    /// The same of a case, with its parameters, start values, inputs and settings.
    pub fn of_case(model: &Analysed, case: &str) -> Result<Simulation, SimulationError> {
        let names = || model.cases.iter().map(|one| one.name.as_str());
        let wrong =
            || SimulationError::Case { name: case.into(), nearest: nearest(case, names()).map(String::from) };
        let case = model.cases.iter().find(|one| one.name == case).ok_or_else(wrong)?;
        Simulation::with(model, Some(case), &[], &Overrides::default())
    }

    /// The same of a case or none, with other parameters and settings.
    pub fn with(
        model: &Analysed,
        case: Option<&Case>,
        parameters: &[(String, f64)],
        overrides: &Overrides,
    ) -> Result<Simulation, SimulationError> {
        let refused = SimulationError::Instance;
        let settings = Settings::of_dynamics(simulation(model, case), model.is_constrained(), overrides);
        let settings = settings.map_err(|error| refused(InstanceError::Setting(error)))?;
        let further = [BundleKind::Markers, BundleKind::Reactions, BundleKind::MassMatrix];
        let instance = Instance::new(model, case, parameters, settings, &further).map_err(refused)?;
        if !instance.model.program().events.names.is_empty() {
            let what = "steps of a simulation do not see events yet: run the model with `mbs_engine::simulation::run`";
            return Err(described(&instance.model, StepError::Unsupported { what }));
        }
        instance.model.begin_run();
        let (dims, stepping) = (instance.model.dims(), stepping(&instance.settings));
        let (state, scratch) = memory(&stepping, &dims);
        let mut simulation = Simulation {
            source: Arc::new(model.clone()),
            case: case.cloned(),
            state: SimulationState::new(instance.settings.simulation.begin, &dims, state),
            instance,
            stepping,
            scratch: vec![0.0; scratch],
        };
        simulation.restart()?;
        Ok(simulation)
    }

    /// Back to the begin, with the present parameters.
    pub fn restart(&mut self) -> Result<(), SimulationError> {
        let settings = self.settings();
        let Self { instance: Instance { model, settings: chosen }, scratch, .. } = self;
        let mut method = stepping(chosen);
        let mut state = SimulationState::new(settings.begin, &model.dims(), self.state.method.len());
        let inputs = &mut model.input_signals();
        let work = Work { model, inputs, state: &mut state.method, scratch };
        let started = method.start(work, &settings);
        started
            .and_then(|()| state.observe(&method, model, inputs, scratch))
            .map_err(|error| described(model, error))?;
        (self.stepping, self.state) = (method, state);
        Ok(())
    }

    fn advance<'a, I: Inputs<f64>>(
        &'a mut self,
        target: &Target,
        inputs: impl FnOnce(&'a Interpreted) -> I,
    ) -> Result<(), SimulationError> {
        let Self { instance: Instance { model, .. }, stepping, state, scratch, .. } = self;
        let model = &*model;
        let inputs = &mut inputs(model);
        let mut next = state.clone();
        let SimulationState { clock, method, statistics, .. } = &mut next;
        let stepped =
            stepping.step(Work { model, inputs, state: method, scratch }, clock, target, statistics);
        stepped
            .and_then(|()| next.observe(stepping, model, inputs, scratch))
            .map_err(|error| described(model, error))?;
        *state = next;
        Ok(())
    }

    /// A step of the file's size, or of step control's choice; it meets the end of the run exactly, and goes beyond.
    fn target(&self) -> Target {
        let runtime::Settings { begin, end, step: h, .. } = self.settings();
        let time = if self.t() < end { end } else { self.t() + (end - begin) };
        Target { h, time, last: false, result: f64::INFINITY }
    }

    /// One step under these inputs, constant over it; others keep their values.
    pub fn step(&mut self, inputs: &[(&str, f64)]) -> Result<(), SimulationError> {
        let mut u = self.state.u.clone();
        for &(name, value) in inputs {
            let place = self.model().program().inputs.iter().position(|input| input.name == name);
            let wrong = || SimulationError::Input { name: name.into() };
            *place.and_then(|i| u.get_mut(i)).ok_or_else(wrong)? = value;
        }
        self.advance(&self.target(), |model| model.input_signals().given(&u))
    }

    /// One step with the model's own inputs: their defaults, or what its case prescribes.
    pub fn step_by_signals(&mut self) -> Result<(), SimulationError> {
        self.advance(&self.target(), Interpreted::input_signals)
    }

    /// Steps until `time`, which is met exactly, with the model's own inputs. After an error the state is that after the last good step.
    pub fn run_to(&mut self, time: f64) -> Result<(), SimulationError> {
        if !(time >= self.t() && time.is_finite()) {
            let what = "the time to run to must be finite and not before the present";
            return Err(described(self.model(), StepError::Setting { what, value: time }));
        }
        let target = Target { h: self.settings().step, time, last: true, result: f64::INFINITY };
        while self.t() < time {
            self.advance(&target, Interpreted::input_signals)?;
        }
        Ok(())
    }

    /// Steps until the end of the file's simulation. The observer sees the present, the results that the settings ask for (every step, or one
    /// per output interval) and the end. Where it breaks the run ends.
    pub fn run(
        &mut self,
        mut observe: impl FnMut(&Simulation) -> ControlFlow<()>,
    ) -> Result<(), SimulationError> {
        let runtime::Settings { end, step: h, .. } = self.settings();
        let results =
            Results::new(&self.settings(), runtime::Method::<Interpreted>::is_dense(&self.stepping));
        let mut results = results.map_err(|error| described(self.model(), error))?;
        if observe(self).is_break() {
            return Ok(());
        }
        while self.t() < end {
            let begun = self.t();
            let target = Target { h, time: end, last: true, result: results.next(begun) };
            self.advance(&target, Interpreted::input_signals)?;
            let after = self.state.clone();
            while let Some(t) = results.within(begun, after.clock.t()) {
                self.interpolate(begun, &after, t).map_err(|error| described(self.model(), error))?;
                if observe(self).is_break() {
                    return Ok(());
                }
            }
            self.state = after;
            if results.at_node(self.t(), self.state.statistics.steps) && observe(self).is_break() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Makes a time within the last step the present. The step began at `begun` and led to `after`.
    fn interpolate(&mut self, begun: f64, after: &SimulationState, t: f64) -> Result<(), StepError> {
        let Self { instance: Instance { model, .. }, stepping, state, scratch, .. } = self;
        state.clone_from(after);
        state.clock = after.clock.at(t);
        let h = after.statistics.h;
        let step = Accepted { t: begun, h, rejected: 0, evaluations: 0 };
        stepping.interpolate(model, &step, (t - begun) / h, scratch, &mut state.method)?;
        state.observe(stepping, model, &mut model.input_signals(), scratch)
    }

    /// Objectives of the file's simulation with the present parameters, and their gradient by what the model is differentiated by.
    pub fn gradient(&self) -> Result<SimulationGradient, SimulationError> {
        let (case, settings) = (self.case.as_ref(), &self.instance.settings);
        let bundles = gradient::bundles(&settings.simulation, settings.constrained);
        let mut model = interpret(&self.source, case, &[], bundles).map_err(SimulationError::Instance)?;
        model.set_parameters(self.model().parameters()).map_err(SimulationError::Parameter)?;
        let simulation = &settings.simulation;
        let found = gradient::start(&model, simulation).and_then(|start| {
            let method = start.method(&model, simulation);
            gradient::run(&model, &method, simulation, start, |_| ControlFlow::Continue(()))
        });
        let found = found.map_err(|error| described(&model, error))?;
        let program = model.program();
        let objectives = program.objectives.iter().map(|(name, _)| name.clone()).collect();
        Ok(SimulationGradient { found, objectives, sensitivity: program.sensitivity.clone() })
    }

    /// Other parameters from now on, by name. The state stays: after a change of geometry, [`Simulation::restart`] assembles again. After an error
    /// nothing has changed.
    pub fn set_parameters(&mut self, parameters: &[(&str, f64)]) -> Result<(), SimulationError> {
        let mut model = self.model().clone();
        model.set_parameters_by_name(parameters).map_err(|(_, error)| SimulationError::Parameter(error))?;
        let mut state = self.state.clone();
        // What an implicit step has handed on belongs to the old parameters; the state of an explicit one has another length.
        if let Ok(mut implicit) = State::of(&model.dims(), &mut state.method) {
            implicit.forget_tangent();
        }
        let inputs = &mut Constant(self.state.u.as_slice());
        state
            .observe(&self.stepping, &model, inputs, &mut self.scratch)
            .map_err(|error| described(&model, error))?;
        (self.instance.model, self.state) = (model, state);
        Ok(())
    }

    /// A parameter: `name`, or `name[i]`.
    pub fn parameter(&self, name: &str) -> Option<f64> {
        self.model().parameter(name).ok()
    }

    /// Time.
    pub fn t(&self) -> f64 {
        self.state.clock.t()
    }

    /// A coordinate: `joint.coordinate`, or `joint` where it has one.
    pub fn z(&self, name: &str) -> Option<f64> {
        of_joint(&self.model().program().coordinates, &self.state.z, name)
    }

    /// The rate of a coordinate.
    pub fn zd(&self, name: &str) -> Option<f64> {
        of_joint(&self.model().program().coordinates, &self.state.zd, name)
    }

    /// The acceleration of a coordinate.
    pub fn zdd(&self, name: &str) -> Option<f64> {
        of_joint(&self.model().program().coordinates, &self.state.zdd, name)
    }

    /// A velocity: `joint.velocity`, or `joint` where it has one.
    pub fn v(&self, name: &str) -> Option<f64> {
        of_joint(&self.model().program().velocities, &self.state.v, name)
    }

    /// An acceleration, by the name of its velocity.
    pub fn vd(&self, name: &str) -> Option<f64> {
        of_joint(&self.model().program().velocities, &self.state.vd, name)
    }

    /// The multiplier of a constraint row.
    pub fn lambda(&self, name: &str) -> Option<f64> {
        let program = self.model().program();
        let mut rows = program.holonomic.iter().chain(&program.nonholonomic);
        self.state.lambda.get(rows.position(|row| row == name)?).copied()
    }

    /// An input: of the step that ends here, or where the model's own are used, that with which the next begins.
    pub fn input(&self, name: &str) -> Option<f64> {
        let place = self.model().program().inputs.iter().position(|input| input.name == name)?;
        self.state.u.get(place).copied()
    }

    /// `n` values that a bundle writes.
    fn evaluate(
        &self,
        n: usize,
        write: impl FnOnce(At<'_, f64>, &mut [f64], &mut [f64]) -> Result<(), EvalError>,
    ) -> Option<Vec<f64>> {
        let (mut w, mut values) = (vec![0.0; self.model().dims().workspace], vec![0.0; n]);
        write(self.at(), &mut w, &mut values).ok().map(|()| values)
    }

    /// An output; of a vector, `name.x`.
    pub fn output(&self, name: &str) -> Option<f64> {
        let (model, vd) = (self.model(), &self.state.vd);
        let place = model.program().outputs.iter().position(|(other, _)| other == name)?;
        let values = self.evaluate(model.dims().n_outputs, |at, w, out| model.outputs(at, vd, w, out))?;
        values.get(place).copied()
    }

    /// Position, velocity and acceleration of a marker.
    fn marker(&self, name: &str) -> Option<[[f64; 3]; 3]> {
        let (model, vd) = (self.model(), &self.state.vd);
        let (place, n) =
            (model.program().markers.iter().position(|other| other == name)?, 3 * model.dims().n_markers);
        let values = self.evaluate(3 * n, |at, w, out| {
            let (positions, rest) = out.split_at_mut(n);
            let (velocities, accelerations) = rest.split_at_mut(n);
            model.markers(at, vd, w, positions, velocities, accelerations)
        })?;
        let of = |part: usize| values.get(part * n + 3 * place..)?.first_chunk().copied();
        Some([of(0)?, of(1)?, of(2)?])
    }

    /// The position of a marker, `body.point`, in the world frame.
    pub fn marker_positions(&self, name: &str) -> Option<[f64; 3]> {
        self.marker(name).map(|[position, _, _]| position)
    }

    /// The velocity of a marker.
    pub fn marker_velocities(&self, name: &str) -> Option<[f64; 3]> {
        self.marker(name).map(|[_, velocity, _]| velocity)
    }

    /// The acceleration of a marker.
    pub fn marker_accelerations(&self, name: &str) -> Option<[f64; 3]> {
        self.marker(name).map(|[_, _, acceleration]| acceleration)
    }

    /// What a joint transmits from its parent to its child.
    pub fn reactions(&self, joint: &str) -> Option<Wrench> {
        let (model, SimulationState { vd, lambda, .. }) = (self.model(), &self.state);
        let place = model.program().joints.iter().position(|other| other == joint)?;
        let n = 6 * model.dims().n_joints;
        let values = self.evaluate(n, |at, w, out| model.reactions(at, vd, lambda, w, out))?;
        Some(Wrench::from_array(values.get(6 * place..)?.first_chunk()?))
    }

    /// Energies.
    pub fn energy(&self) -> Option<Energies> {
        let mut out = [0.0; 3];
        self.evaluate(0, |at, w, _| self.model().energy(at, w, &mut out))?;
        Some(Energies::from_array(&out))
    }

    /// The mass matrix in joint form.
    pub fn mass_matrix(&self) -> Option<DMatrix<f64>> {
        let (model, nv) = (self.model(), self.model().dims().nv);
        let values = self.evaluate(nv * nv, |at, w, out| model.mass_matrix(at, w, out))?;
        Some(DMatrix::from_vec(nv, nv, values))
    }

    /// What the steps took.
    pub fn statistics(&self) -> Statistics {
        self.state.statistics
    }

    /// The name of its case, if it is one.
    pub fn case(&self) -> Option<&str> {
        self.case.as_ref().map(|case| case.name.as_str())
    }

    /// Times and step.
    pub fn settings(&self) -> runtime::Settings {
        let mbs_codegen::model::Simulation { begin, end, step, output_step, .. } =
            self.instance.settings.simulation;
        runtime::Settings { begin, end, step, output: output_step }
    }

    /// All that the simulation carries from one step to the next.
    pub fn state(&self) -> SimulationState {
        self.state.clone()
    }

    /// Goes on from a state of this simulation; the same steps then give the same bits.
    pub fn restore(&mut self, state: &SimulationState) {
        self.state.clone_from(state);
    }

    /// The model.
    pub fn model(&self) -> &Interpreted {
        &self.instance.model
    }

    fn at(&self) -> At<'_, f64> {
        let SimulationState { z, v, u, .. } = &self.state;
        At { t: self.t(), z, v, x: &[], u }
    }
}

fn described(model: &Interpreted, error: StepError) -> SimulationError {
    SimulationError::Step { message: error.describe(model).to_string(), error }
}

/// The value of a full name, or of the joint that has no other.
fn of_joint(names: &[String], values: &[f64], name: &str) -> Option<f64> {
    let of = |full: &str| full.rsplit_once('.').is_some_and(|(joint, _)| joint == name);
    let place = names.iter().position(|full| full == name).or_else(|| {
        let mut own = names.iter().enumerate().filter(|(_, full)| of(full)).map(|(i, _)| i);
        own.next().filter(|_| own.next().is_none())
    });
    values.get(place?).copied()
}
