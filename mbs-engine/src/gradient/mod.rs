//! Objectives of a run and their gradient by what a model is differentiated by.
//!
//! Input: a model whose program has bundles of derivatives, a span of time and a [`Method`]. Output: a [`Found`] gradient,
//! derivatives of the state at every node for an observer. It is the gradient of the discrete solution: of the numbers that a run with
//! these steps converges to, not of the motion they approximate.
//!
//! ```
//! use core::ops::ControlFlow;
//! use mbs_codegen::program::{Options, Program};
//! use mbs_engine::{Interpreted, gradient};
//!
//! let text = "
//! mbs: 1
//! name: pendulum
//! gravity: [0, 0, -9.81]
//! parameters: {m: 1.0, L: 1.0}
//! bodies:
//!   rod: {mass: m, com: [0, 0, -L/2], inertia: [m*L^2/12, m*L^2/12, 0]}
//! joints:
//!   hinge: {type: revolute, parent: ground, child: rod, axis: [0, 1, 0], start: 0.3}
//! objectives: {haste: rate(hinge)^2}
//! sensitivity: [m, L]
//! simulation: {end: 1, integrator: rk4}
//! ";
//! let (model, _) = mbs_codegen::read("pendulum.yaml", text).expect("a valid model");
//! let options = Options { bundles: gradient::bundles(&model.simulation, false), ..Options::default() };
//! let pendulum = Interpreted::new(Program::new(&model, None, &options).expect("a program of moderate size"));
//!
//! let simulation = &pendulum.program().simulation;
//! let start = gradient::start(&pendulum, simulation).expect("a start");
//! let method = start.method(&pendulum, simulation);
//! let found = gradient::run(&pendulum, &method, simulation, start, |_| ControlFlow::Continue(()));
//! let found = found.expect("a small step");
//! // The motion does not depend on the mass, and a longer one is slower.
//! assert!(found.of_objective(0)[0].abs() < 1e-12 && found.of_objective(0)[1] < 0.0);
//! ```

pub mod adjoint;
mod by_names;
mod completed;
mod complex_step;
pub mod continuous;
mod end_time;
mod explicit;
mod implicit;
mod input_history;
pub mod kinematics;
mod observed;
pub mod products;
mod second_order;
mod together;
mod trajectory;

use crate::Interpreted;
use crate::jumps::Jumps;
use crate::method::Method;
use crate::simulation::refused_choice;
pub use by_names::{NameError, by_names};
use completed::Completion;
pub use end_time::by_end_time;
pub use input_history::InputHistory;
use mbs_codegen::model::{Formulation, GradientMethod, Simulation};
use mbs_codegen::program::BundleKind;
use mbs_codegen::symbols::Group;
use mbs_runtime::formulation::StartStatistics;
use mbs_runtime::sensitivity::DifferentiatedAt;
use mbs_runtime::{
    AdjointStatistics, Differentiated, EvalError, Fixed, Inputs, Motion, Output, Rk4, Scalar, Statistics,
    StepError, System, Trapezoidal,
};
pub use observed::{Ran, prepare, simulate, simulate_as, simulate_backward};
pub use second_order::{SecondOrder, hessian_vectors, hessians};
use std::ops::ControlFlow;
pub use trajectory::{trajectory_columns, trajectory_row};

/// Where a run begins, with its derivatives.
#[derive(Clone, Debug)]
pub struct Start<S = f64> {
    state: State<S>,
    /// Scale of the rows of the constraints.
    pub scale: Vec<f64>,
    /// What it took, and what is known of the rows.
    pub statistics: StartStatistics,
}

/// A state and its derivatives.
#[derive(Clone, Debug)]
enum State<S> {
    /// Assembled, in coordinate form.
    Assembled { state: Vec<S>, derivatives: Vec<S> },
    /// Of an open tree, in joint form.
    Tree { y: Vec<S>, derivatives: Vec<S> },
}

impl Start {
    /// Shows positions and velocities.
    fn show(&self, jumps: &mut Jumps, model: &Interpreted, t: f64, u: &[f64]) {
        let nq = model.dims().nq;
        match &self.state {
            State::Assembled { state, .. } => {
                let mut state = state.clone();
                if let Ok(state) = mbs_runtime::State::of(&model.dims(), &mut state) {
                    jumps.see_state(model, false, t, state.z, state.zd, u);
                }
            }
            State::Tree { y, .. } => {
                let (z, v) = y.split_at(nq.min(y.len()));
                jumps.see_state(model, true, t, z, v, u);
            }
        }
    }
}

impl<S: Scalar> Start<S> {
    /// What the settings mean for a run from here.
    pub fn method(&self, model: &Interpreted<S>, simulation: &Simulation) -> Method {
        Method::of(simulation, is_constrained(model), &self.scale)
    }

    /// Whether constraints depend on each other, so that multipliers are those of least norm.
    pub fn redundant(&self) -> bool {
        self.statistics.rank < self.statistics.rows
    }

    /// Whether a run by this method knows derivatives of multipliers: an explicit one does not know how a choice among them moves.
    pub fn knows_multipliers(&self, method: &Method) -> bool {
        let penalty = method.damping().is_some_and(|damping| damping.penalty.is_some());
        !method.is_runge_kutta() || !self.redundant() || penalty
    }
}

/// Objectives and their gradient.
#[derive(Clone, Debug)]
pub struct Found {
    /// The objectives ψ.
    pub objectives: Vec<f64>,
    /// Their derivatives: of objective i by parameter k at `i * p + k`.
    pub derivatives: Vec<f64>,
    /// The state at the end: a [`State`](mbs_runtime::State), or y = \[z, v\] of an explicit run.
    pub end: Vec<f64>,
    /// What the run took.
    pub effort: Effort,
    /// What the way back took, if the gradient is that of the adjoint.
    pub adjoint: Option<AdjointStatistics>,
    /// Events that happened, in the order of time.
    pub events: Vec<EventFound>,
    parameters: usize,
}

/// An event that happened.
#[derive(Clone, Debug, PartialEq)]
pub struct EventFound {
    /// Its place among the events of the program.
    pub event: usize,
    /// When, s.
    pub t: f64,
    /// Derivatives of its time by the parameters; the adjoint has none.
    pub derivatives: Vec<f64>,
}

/// What a run took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Effort {
    /// Implicit steps.
    Implicit(Statistics),
    /// Explicit steps.
    Explicit(Statistics),
}

impl Effort {
    /// Steps of the run.
    pub fn steps(&self) -> usize {
        let (Effort::Implicit(statistics) | Effort::Explicit(statistics)) = self;
        statistics.steps
    }
}

impl Found {
    /// Which derivatives of an objective are rounding of zero: with p the parameter, or one where it is zero or an input, p dψ/dp is below
    /// some roundings of ψ and of what other parameters change it by.
    pub fn is_rounding(&self, model: &Interpreted, objective: usize) -> Vec<bool> {
        let gradient = self.of_objective(objective);
        let changes: Vec<f64> =
            gradient.iter().zip(parameter_sizes(model)).map(|(d, size)| (d * size).abs()).collect();
        let value = self.objectives.get(objective).map_or(0.0, |value| value.abs());
        let largest = changes.iter().copied().fold(value, f64::max);
        changes.iter().map(|&change| change > 0.0 && change <= ROUNDING * largest).collect()
    }

    /// The gradient of an objective, by all parameters.
    pub fn of_objective(&self, index: usize) -> &[f64] {
        self.derivatives.get(index * self.parameters..(index + 1) * self.parameters).unwrap_or_default()
    }
}

/// For each entry of the `sensitivity` list the magnitude of the parameter, or one where it is zero or an input.
pub(crate) fn parameter_sizes(model: &Interpreted) -> impl Iterator<Item = f64> {
    model.program().seeds.iter().map(|&(group, place)| match model.parameters().get(place as usize) {
        Some(&p) if group == Group::Parameters && p != 0.0 => p.abs(),
        _ => 1.0,
    })
}

/// Part of an objective below which a change of it says nothing: sums over a run carry some dozens of roundings.
const ROUNDING: f64 = 64.0 * f64::EPSILON;

/// What an observer sees at a node. The derivative of entry i by parameter k is at `i * p + k`.
#[derive(Clone, Copy, Debug)]
pub struct Node<'a> {
    /// Time, coordinates, rates, accelerations, inputs.
    pub motion: Motion<'a, f64>,
    /// Multipliers: of holonomic, normalisation and nonholonomic rows.
    pub lambda: &'a [f64],
    /// Derivatives of coordinates.
    pub z: &'a [f64],
    /// Derivatives of rates.
    pub zd: &'a [f64],
    /// Derivatives of accelerations.
    pub zdd: &'a [f64],
    /// Derivatives of multipliers. Empty where they are not known: of constraints that depend on each other, under an explicit
    /// integrator or for an observer that does not read them.
    pub lambda_derivatives: &'a [f64],
}

/// A node of a run, of which an explicit one knows positions and velocities alone.
pub struct Moment<'a> {
    /// Time.
    pub t: f64,
    known: Known<'a>,
}

enum Known<'a> {
    All(Node<'a>),
    Joints(&'a mut Completion, &'a Interpreted, DifferentiatedAt<'a, f64>),
}

impl Moment<'_> {
    /// Shows positions and velocities of the node.
    pub fn show(&self, jumps: &mut Jumps, model: &Interpreted) {
        match &self.known {
            Known::All(node) => jumps.see_motion(model, &node.motion),
            Known::Joints(_, _, at) => jumps.see(self.t, at.at.z, at.at.v, &[], at.at.u),
        }
    }

    /// All of the node; what the run does not know of it is computed.
    pub fn node<R>(&mut self, see: impl FnOnce(Node<'_>) -> R) -> Result<R, EvalError> {
        match &mut self.known {
            Known::All(node) => Ok(see(*node)),
            Known::Joints(completion, model, at) => {
                completion.complete(model, at)?;
                Ok(see(completion.node(at)?))
            }
        }
    }
}

fn is_constrained<S: Scalar>(model: &Interpreted<S>) -> bool {
    model.dims().joint_rows() > 0
}

/// The bundles that a run with derivatives needs by the method of these settings.
pub fn bundles(simulation: &Simulation, constrained: bool) -> Vec<BundleKind> {
    let mut bundles = Vec::new();
    let joint_form = simulation.is_in_joint_form(constrained);
    if constrained || !joint_form {
        bundles.extend(BundleKind::SENSITIVITIES);
        if simulation.projects_with_tangent() {
            bundles.push(BundleKind::TangentProduct);
        }
        if !joint_form && matches!(simulation.gradient, GradientMethod::Adjoint | GradientMethod::Auto) {
            bundles.extend(BundleKind::PRODUCTS);
        }
    }
    if joint_form {
        bundles.extend(BundleKind::JOINT_SENSITIVITIES);
        if simulation.corrects_steps(constrained) {
            bundles.extend(BundleKind::DERIVATIVES_OF_CORRECTIONS);
        }
        bundles.extend(match constrained {
            true if simulation.formulation == Formulation::MatrixR => {
                [BundleKind::ConstrainedDynamics, BundleKind::ConstraintRows].as_slice()
            }
            true => &[BundleKind::ConstrainedDynamics, BundleKind::ConstraintCorrection],
            false => &[BundleKind::ForwardDynamics],
        });
    }
    bundles
}

/// The model's start, made consistent, and its derivatives.
pub fn start(model: &Interpreted, simulation: &Simulation) -> Result<Start, StepError> {
    start_of(model, &mut model.input_signals(), simulation)
}

/// The same with other inputs, in any numbers.
fn start_of<S: Scalar>(
    model: &Interpreted<S>,
    inputs: &mut impl Inputs<S>,
    simulation: &Simulation,
) -> Result<Start<S>, StepError> {
    if let Some(what) = refused_choice(model, simulation) {
        return Err(StepError::Unsupported { what });
    }
    if simulation.integrator.is_runge_kutta() && !is_constrained(model) {
        explicit::start(model)
    } else {
        implicit::start(model, inputs, simulation.begin)
    }
}

/// A run from a start over the span of the settings, whose other numbers are those of the method already. The observer sees every
/// node; with step control and an output step, only those. Where it breaks the run ends.
pub fn run(
    model: &Interpreted,
    method: &Method,
    simulation: &Simulation,
    start: Start,
    mut observe: impl FnMut(Moment<'_>) -> ControlFlow<()>,
) -> Result<Found, StepError> {
    observed(model, method, simulation, start, true, &mut observe)
}

/// The same, compiled once for all observers. `multipliers`: whether this one reads their derivatives, which are work where rows depend on each other.
fn observed(
    model: &Interpreted,
    method: &Method,
    simulation: &Simulation,
    start: Start,
    multipliers: bool,
    observe: Observer<'_>,
) -> Result<Found, StepError> {
    model.begin_run();
    let output = simulation.output_step.map_or(Output::Steps, Output::Every);
    match *method {
        Method::Ali3p(method) => implicit::run(model, method, simulation, start, multipliers, observe),
        Method::Index1(method) => implicit::run(model, method, simulation, start, multipliers, observe),
        Method::Rk4(damping) => {
            let integrator = Differentiated(Fixed { method: Rk4, h: simulation.step });
            explicit::run(model, method, integrator, damping, simulation, Output::Steps, start, observe)
        }
        Method::DormandPrince(control, damping) => {
            explicit::run(model, method, Differentiated(control), damping, simulation, output, start, observe)
        }
        Method::Dop853(control, damping) => {
            explicit::run(model, method, Differentiated(control), damping, simulation, output, start, observe)
        }
        Method::Sdirk4(control, damping) => {
            let integrator = Differentiated(control);
            explicit::run_stiff(model, method, integrator, damping, simulation, output, start, observe)
        }
        Method::Trapezoidal(damping) => {
            let integrator = Differentiated(Fixed { method: Trapezoidal, h: simulation.step });
            explicit::run_stiff(model, method, integrator, damping, simulation, Output::Steps, start, observe)
        }
    }
}

/// Who sees the nodes of a run.
type Observer<'a> = &'a mut dyn FnMut(Moment<'_>) -> ControlFlow<()>;

/// A state of the wrong form for a method.
fn other_form() -> StepError {
    StepError::NotDifferentiable { what: "the start belongs to another method" }
}
