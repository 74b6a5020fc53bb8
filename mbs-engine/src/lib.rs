//! Runs a multibody model without compiling it.
//!
//! Input: a [`Program`](mbs_codegen::program::Program). Output: [`Interpreted`], a system that every integrator
//! of the runtime takes, as it takes generated code.
//! Holds afterwards: the operations of a bundle, their order and their functions are those of the generated
//! module, so results agree with it bit for bit (same build flags); stepping allocates nothing.
//!
//! ```
//! use core::ops::ControlFlow;
//! use mbs_codegen::program::{Options, Program};
//! use mbs_engine::Interpreted;
//! use mbs_runtime::{Fixed, Integrator, Output, Rk4, Span, System};
//!
//! let text = "
//! mbs: 1
//! name: pendulum
//! gravity: [0, 0, -9.81]
//! parameters: {m: 1.0, L: {value: 1.0, min: 0.1}}
//! bodies:
//!   rod: {mass: m, com: [0, 0, -L/2], inertia: [m*L^2/12, m*L^2/12, 0]}
//! joints:
//!   hinge: {type: revolute, parent: ground, child: rod, axis: [0, 1, 0], start: 0.3}
//! ";
//! let (model, _) = mbs_codegen::read("pendulum.yaml", text).expect("a valid model");
//! let mut pendulum: Interpreted = Interpreted::new(Program::new(&model, None, &Options::default()).expect("a program of moderate size"));
//! pendulum.set_parameter("L", 0.5).expect("within its bounds");
//!
//! let mut y = pendulum.start_state();
//! let method = Fixed { method: Rk4, h: 1e-3 };
//! let mut scratch = vec![0.0; method.scratch_len(&pendulum.dims())];
//! let span = Span { start: 0.0, end: 1.0, output: Output::Steps };
//! let mut inputs = pendulum.input_signals();
//! let run = method.run(&pendulum, &mut inputs, &mut y, &span, &mut scratch, |_| ControlFlow::Continue(()));
//! assert_eq!(run.expect("the pendulum has mass").steps, 1000);
//! ```
//!
//! A whole run with its settings, its consistent start, outputs, energy balance and tables of results is in [`simulation`].
//! Objectives and their gradient are in [`gradient`], with an example; [`verify`] compares every derivative with an independent one,
//! [`equilibrium`] and [`modes`] look at a model at rest and near it.
#![forbid(unsafe_code)]

mod rolled;
mod machine_code;
mod tape;

mod parameters;

mod interpreted;
mod lanes;

mod bundles;
mod signals;

mod method;
mod dynamics;

pub mod jumps;

pub mod simulation;

pub mod gradient;

mod stepwise;

pub mod verify;

mod slopes;

pub mod equilibrium;
pub mod modes;

mod failures;

pub mod sweep;

pub mod comparison;

pub mod optimisation;

pub mod identification;

pub use interpreted::Interpreted;
pub use lanes::Lanes;
pub use machine_code::{BREAK_EVEN, Engine};
pub use mbs_jit::{Fusing, LANES, Refusal, availability as machine_code_availability};
pub use method::{Damping, Method};
pub use parameters::ParameterError;
pub use signals::Signals;
pub use stepwise::{Simulation, SimulationError, SimulationGradient, SimulationState};
pub use tape::Arguments;
