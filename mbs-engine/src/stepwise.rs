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
//! simulation: {end: 1, integrator: rk4}
//! ";
//! let (model, _) = mbs_codegen::read("pendulum.yaml", text).expect("a valid model");
//! let mut sim = mbs_engine::Simulation::new(&model)?;
//! while sim.t() < 0.5 {
//!     sim.step(&[("drive", 0.1)])?;
//! }
//! // One coordinate of a joint goes by the joint's name.
//! assert_eq!(sim.z("hinge"), sim.z("hinge.angle"));
//! assert!(sim.z("hinge") < Some(0.3) && sim.marker("rod.tip").is_some_and(|tip| tip[2] < -0.9));
//! assert_eq!(sim.z("hing"), None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::Interpreted;
use crate::method::Method;
use crate::simulation::{Instance, InstanceError, Overrides, Settings, simulation};
use mbs_codegen::analysis::Analysed;
use mbs_codegen::model::{Case, Model};
use mbs_codegen::program::BundleKind;
use mbs_runtime::inputs::Constant;
use mbs_runtime::named::Energies;
use mbs_runtime::simulation::{self as runtime, Clock, Node, Projected, Stabilised, Target, Tree};
use mbs_runtime::{
    Adaptive, Ali3p, At, Dims, Energy, EvalError, Inputs, Markers, Outputs, Rk4, Statistics, StepError,
    System,
};
use std::fmt;

/// Why a simulation does not start or go on.
#[derive(Debug)]
#[non_exhaustive]
pub enum SimulationError {
    /// The model cannot be run as it was asked for.
    Instance(InstanceError),
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
            SimulationError::Instance(error) => error.fmt(f),
            SimulationError::Input { name } => write!(f, "there is no input `{name}`"),
            SimulationError::Step { message, .. } => f.write_str(message),
        }
    }
}

impl std::error::Error for SimulationError {}

/// The method of a file, as the runtime steps it.
#[derive(Clone, Copy, Debug)]
enum Stepping {
    Ali3p(Ali3p),
    Stabilised(Stabilised),
    Tree(Tree<Rk4>),
    ControlledTree(Tree<Adaptive>),
    Projected(Projected<Rk4>),
    ControlledProjected(Projected<Adaptive>),
}

/// Does the same with each of them.
macro_rules! with {
    ($stepping:expr, $method:ident => $body:expr) => {
        match $stepping {
            Stepping::Ali3p($method) => $body,
            Stepping::Stabilised($method) => $body,
            Stepping::Tree($method) => $body,
            Stepping::ControlledTree($method) => $body,
            Stepping::Projected($method) => $body,
            Stepping::ControlledProjected($method) => $body,
        }
    };
}

impl Stepping {
    fn of(settings: &Settings) -> Stepping {
        let enforcement = crate::method::enforcement(&settings.simulation);
        // Numbers that depend on the start are settled by it.
        match Method::of(&settings.simulation, settings.constrained, &[]) {
            Method::Ali3p(method) => Stepping::Ali3p(method),
            Method::Index1(method) => Stepping::Stabilised(Stabilised { method, enforcement }),
            Method::Rk4(None) => Stepping::Tree(Tree(Rk4)),
            Method::Rk4(Some(_)) => Stepping::Projected(Projected { integrator: Rk4, enforcement }),
            Method::DormandPrince(control, None) => Stepping::ControlledTree(Tree(control)),
            Method::DormandPrince(integrator, Some(_)) => {
                Stepping::ControlledProjected(Projected { integrator, enforcement })
            }
        }
    }

    /// Lengths of state and scratch.
    fn memory(&self, dims: &Dims) -> (usize, usize) {
        use runtime::{ExplicitMemory, ImplicitMemory};
        match self {
            Stepping::Ali3p(_) | Stepping::Stabilised(_) => {
                (ImplicitMemory::state_len(dims), ImplicitMemory::scratch_len(dims))
            }
            Stepping::Tree(_) | Stepping::ControlledTree(_) => {
                (ExplicitMemory::state_len(dims), ExplicitMemory::tree_scratch_len(dims))
            }
            Stepping::Projected(_) | Stepping::ControlledProjected(_) => {
                (ExplicitMemory::state_len(dims), ExplicitMemory::projected_scratch_len(dims))
            }
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
        let known: Result<(), EvalError> =
            with!(stepping, of => runtime::Method::observe(of, model, t, method, scratch, node));
        known.map_err(|error| StepError::Eval { t, h: 0.0, error })
    }
}

/// A run of a model, step by step.
#[derive(Clone, Debug)]
pub struct Simulation {
    model: Interpreted,
    settings: runtime::Settings,
    stepping: Stepping,
    state: SimulationState,
    scratch: Vec<f64>,
}

impl Simulation {
    /// At the begin of the file's simulation.
    pub fn new(model: &Model) -> Result<Simulation, SimulationError> {
        Simulation::with(model, None, &[], &Overrides::default())
    }

    /// The same of a case, with parameters and settings of one's own.
    pub fn with(
        model: &Model,
        case: Option<&Case>,
        parameters: &[(String, f64)],
        overrides: &Overrides,
    ) -> Result<Simulation, SimulationError> {
        let refused = SimulationError::Instance;
        let model = &Analysed::of(model.clone());
        let settings = Settings::of_dynamics(simulation(model, case), model.is_constrained(), overrides);
        let settings = settings.map_err(|error| refused(InstanceError::Setting(error)))?;
        let instance =
            Instance::new(model, case, parameters, settings, &[BundleKind::Markers]).map_err(refused)?;
        let Instance { model, settings } = instance;
        if !model.program().events.names.is_empty() {
            let what = "steps of a simulation do not see events yet: run the model with `mbs_engine::simulation::run`";
            return Err(described(&model, StepError::Unsupported { what }));
        }
        let dims = model.dims();
        let mut stepping = Stepping::of(&settings);
        let (state, scratch) = stepping.memory(&dims);
        let (mut scratch, zeros) = (vec![0.0; scratch], |n: usize| vec![0.0; n]);
        let mbs_codegen::model::Simulation { begin, end, step, .. } = settings.simulation;
        let settings = runtime::Settings { begin, end, step };
        let mut state = SimulationState {
            clock: Clock::new(begin),
            method: zeros(state),
            z: zeros(dims.nq),
            zd: zeros(dims.nq),
            zdd: zeros(dims.nq),
            v: zeros(dims.nv),
            vd: zeros(dims.nv),
            lambda: zeros(dims.joint_rows()),
            u: zeros(dims.nu),
            statistics: Statistics::default(),
        };
        let mut inputs = model.input_signals();
        let memory = &mut state.method;
        let started = with!(&mut stepping, of => runtime::Method::start(of, &model, &mut inputs, &settings, memory, &mut scratch));
        started
            .and_then(|()| state.observe(&stepping, &model, &mut inputs, &mut scratch))
            .map_err(|error| described(&model, error))?;
        drop(inputs);
        Ok(Simulation { model, settings, stepping, state, scratch })
    }

    fn advance<'a, I: Inputs<f64>>(
        &'a mut self,
        target: &Target,
        inputs: impl FnOnce(&'a Interpreted) -> I,
    ) -> Result<(), SimulationError> {
        let Self { model, stepping, state, scratch, .. } = self;
        let model = &*model;
        let mut inputs = inputs(model);
        let mut next = state.clone();
        let SimulationState { clock, method, statistics, .. } = &mut next;
        let stepped = with!(&*stepping, of => runtime::Method::step(of, model, &mut inputs, clock, target, method, scratch, statistics));
        stepped
            .and_then(|()| next.observe(stepping, model, &mut inputs, scratch))
            .map_err(|error| described(model, error))?;
        *state = next;
        Ok(())
    }

    /// One step under these inputs, constant over it; others keep their values.
    pub fn step(&mut self, inputs: &[(&str, f64)]) -> Result<(), SimulationError> {
        let mut u = self.state.u.clone();
        for &(name, value) in inputs {
            let place = self.model.program().inputs.iter().position(|input| input.name == name);
            let wrong = || SimulationError::Input { name: name.into() };
            *place.and_then(|i| u.get_mut(i)).ok_or_else(wrong)? = value;
        }
        let runtime::Settings { begin, end, step } = self.settings;
        let time = if self.t() < end { end } else { self.t() + (end - begin) };
        self.advance(&Target { h: step, time, last: false }, |_| Constant(&u))
    }

    /// Steps until `time`, which is met exactly, with the model's own inputs.
    pub fn run_to(&mut self, time: f64) -> Result<(), SimulationError> {
        while self.t() < time {
            self.advance(&Target { h: self.settings.step, time, last: true }, Interpreted::input_signals)?;
        }
        Ok(())
    }

    /// Time.
    pub fn t(&self) -> f64 {
        self.state.clock.t()
    }

    /// A coordinate: `joint.coordinate`, or `joint` where it has one.
    pub fn z(&self, name: &str) -> Option<f64> {
        of_joint(&self.model.program().coordinates, &self.state.z, name)
    }

    /// A velocity: `joint.velocity`, or `joint` where it has one.
    pub fn v(&self, name: &str) -> Option<f64> {
        of_joint(&self.model.program().velocities, &self.state.v, name)
    }

    /// An acceleration, by the name of its velocity.
    pub fn vd(&self, name: &str) -> Option<f64> {
        of_joint(&self.model.program().velocities, &self.state.vd, name)
    }

    /// The multiplier of a constraint row.
    pub fn lambda(&self, name: &str) -> Option<f64> {
        let program = self.model.program();
        let mut rows = program.holonomic.iter().chain(&program.nonholonomic);
        self.state.lambda.get(rows.position(|row| row == name)?).copied()
    }

    /// An output; of a vector, `name.x`.
    pub fn output(&self, name: &str) -> Option<f64> {
        let dims = self.model.dims();
        let (mut w, mut out) = (vec![0.0; dims.workspace], vec![0.0; dims.n_outputs]);
        self.model.outputs(self.at(), &self.state.vd, &mut w, &mut out).ok()?;
        let place = self.model.program().outputs.iter().position(|(other, _)| other == name)?;
        out.get(place).copied()
    }

    /// The position of a marker, `body.point`.
    pub fn marker(&self, name: &str) -> Option<[f64; 3]> {
        let dims = self.model.dims();
        let (mut w, zeros) = (vec![0.0; dims.workspace], || vec![0.0; 3 * dims.n_markers]);
        let (mut positions, mut velocities, mut accelerations) = (zeros(), zeros(), zeros());
        let vd = &self.state.vd;
        self.model
            .markers(self.at(), vd, &mut w, &mut positions, &mut velocities, &mut accelerations)
            .ok()?;
        let place = self.model.program().markers.iter().position(|other| other == name)?;
        positions.get(3 * place..)?.first_chunk().copied()
    }

    /// Energies.
    pub fn energy(&self) -> Option<Energies> {
        let mut out = [0.0; 3];
        self.model.energy(self.at(), &mut vec![0.0; self.model.dims().workspace], &mut out).ok()?;
        Some(Energies::from_array(&out))
    }

    /// What the steps took.
    pub fn statistics(&self) -> Statistics {
        self.state.statistics
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
        &self.model
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
