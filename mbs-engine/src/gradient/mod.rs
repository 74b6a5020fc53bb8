//! Objectives of a run and their gradient by what a model is differentiated by.
//!
//! Enters: a model whose program has bundles of derivatives, a span of time and a [`Method`]. Leaves: a [`Found`] gradient,
//! derivatives of the state at every node for an observer. It is the gradient of the discrete solution: of the numbers that a run with
//! these steps converges to, not of the motion they approximate.
//!
//! ```
//! use core::ops::ControlFlow;
//! use mbs_codegen::program::{BundleKind, Options, Program};
//! use mbs_engine::{Interpreted, Method, gradient};
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
//! simulation: {end: 1, integrator: trapezoidal}
//! ";
//! let (model, _) = mbs_codegen::read("pendulum.yaml", text).expect("a valid model");
//! let options = Options { bundles: BundleKind::SENSITIVITIES.to_vec(), ..Options::default() };
//! let pendulum = Interpreted::new(Program::new(&model, None, &options).expect("a program of moderate size"));
//!
//! let simulation = &pendulum.program().simulation;
//! let start = gradient::start(&pendulum, simulation.begin).expect("a start");
//! let method = Method::of(simulation, false, &start.scale);
//! let found = gradient::run(&pendulum, &method, simulation, start, |_| ControlFlow::Continue(()));
//! let found = found.expect("a small step");
//! // The motion does not depend on the mass.
//! assert!(found.of_objective(0)[0].abs() < 1e-12 && found.of_objective(0)[1] > 0.0);
//! ```

mod by_names;

use crate::Interpreted;
use crate::method::Method;
pub use by_names::{NameError, by_names};
use mbs_codegen::model::Simulation;
use mbs_runtime::formulation::{RunStatistics, StartStatistics};
use mbs_runtime::sensitivity::{DifferentiableStep, DifferentiatedNode};
use mbs_runtime::{
    Assembly, Differentiated, Fixed, Gradient, Motion, Output, Span, State, StateDerivatives, StepError,
    System,
};
use std::ops::ControlFlow;

/// A consistent start with its derivatives.
#[derive(Clone, Debug)]
pub struct Start {
    state: Vec<f64>,
    derivatives: Vec<f64>,
    /// Scale of the rows of the constraints.
    pub scale: Vec<f64>,
    /// What it took, and what is known of the rows.
    pub statistics: StartStatistics,
}

/// Objectives and their gradient.
#[derive(Clone, Debug)]
pub struct Found {
    /// The objectives ψ.
    pub objectives: Vec<f64>,
    /// Their derivatives: of objective i by parameter k at `i * p + k`.
    pub derivatives: Vec<f64>,
    /// What the run took.
    pub statistics: RunStatistics,
    parameters: usize,
}

impl Found {
    /// The gradient of an objective, by all parameters.
    pub fn of_objective(&self, index: usize) -> &[f64] {
        self.derivatives.get(index * self.parameters..(index + 1) * self.parameters).unwrap_or_default()
    }
}

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
    /// Derivatives of multipliers.
    pub lambda_derivatives: &'a [f64],
}

/// The model's start, made consistent, and its derivatives.
pub fn start(model: &Interpreted, begin: f64) -> Result<Start, StepError> {
    let dims = model.dims();
    let mut state = vec![0.0; State::<f64>::len(&dims)];
    let mut derivatives = vec![0.0; StateDerivatives::<f64>::len(&dims)];
    let mut scratch = vec![0.0; Assembly::differentiated_scratch_len(&dims)];
    let mut inputs = model.input_signals();
    Assembly::guess_differentiated(model, begin, &mut state, &mut derivatives, &mut scratch)?;
    let statistics = Assembly::DEFAULT.start_differentiated(
        model,
        &mut inputs,
        &mut state,
        &mut derivatives,
        &mut scratch,
    )?;
    let scale = State::of(&dims, &mut state)?.scale.to_vec();
    Ok(Start { state, derivatives, scale, statistics })
}

/// A run from a start over the span of the settings, whose other numbers are those of the method already. The observer sees every
/// node; where it breaks the run ends.
pub fn run(
    model: &Interpreted,
    method: &Method,
    simulation: &Simulation,
    start: Start,
    observe: impl FnMut(Node<'_>) -> ControlFlow<()>,
) -> Result<Found, StepError> {
    match *method {
        Method::Ali3p(method) => implicit(model, method, simulation, start, observe),
        Method::Index1(method) => implicit(model, method, simulation, start, observe),
        Method::Rk4(_) | Method::DormandPrince(..) => Err(StepError::NotDifferentiable {
            what: "explicit integrators have no derivatives yet: take `trapezoidal`, `newmark` or `generalized_alpha`",
        }),
    }
}

fn implicit(
    model: &Interpreted,
    method: impl DifferentiableStep,
    simulation: &Simulation,
    start: Start,
    mut observe: impl FnMut(Node<'_>) -> ControlFlow<()>,
) -> Result<Found, StepError> {
    let dims = model.dims();
    let run = Differentiated(Fixed { method, h: simulation.step });
    let Start { mut state, mut derivatives, .. } = start;
    let mut gradient = vec![0.0; Gradient::<f64>::len(&dims)];
    let mut scratch = vec![0.0; run.scratch_len(&dims)];
    let span = Span { start: simulation.begin, end: simulation.end, output: Output::Steps };
    let (n, rows) = (dims.nq * dims.sensitivity.parameters, dims.rows() * dims.sensitivity.parameters);
    let watch = |node: DifferentiatedNode<'_, f64>| {
        let part = |from: usize, len: usize| node.derivatives.get(from..from + len).unwrap_or_default();
        observe(Node {
            motion: node.motion,
            lambda: node.lambda,
            z: part(0, n),
            zd: part(n, n),
            zdd: part(2 * n, n),
            lambda_derivatives: part(3 * n, rows),
        })
    };
    let mut inputs = model.input_signals();
    let statistics =
        run.run(model, &mut inputs, &mut state, &mut derivatives, &span, &mut gradient, &mut scratch, watch)?;
    let found = Gradient::of(&dims, &gradient)?;
    Ok(Found {
        objectives: found.objectives.to_vec(),
        derivatives: found.derivatives.to_vec(),
        statistics,
        parameters: dims.sensitivity.parameters,
    })
}
