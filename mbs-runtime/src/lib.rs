//! Runtime of generated multibody solvers: everything that does not depend on the model.
//!
//! A generated module implements the traits of [`system`] for one model; this crate integrates it over time.
//! `no_std`, no heap, no `unsafe`. All memory belongs to the caller, and a failure is a value that says when,
//! where and why.
//!
//! | module | what it is |
//! |---|---|
//! | [`scalar`] | the numbers a model is printed for: `f64`, `f32`, [`Complex64`] for complex-step checks |
//! | [`math`] | elementary functions and table kernels, as generated code calls them |
//! | [`system`] | dimensions, the instant of evaluation, one trait per family of bundles |
//! | [`error`] | failures as values, and their rendering by name |
//! | [`inputs`] | how inputs are supplied and held over a step |
//! | [`integrator`] | steps and runs |
//!
//! With the feature `std` (default) elementary functions are those of the standard library, otherwise those of
//! `libm`; results differ then in the last bits and in nothing else.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(feature = "std")]
extern crate std;

pub mod scalar;

pub mod math;

pub mod error;
pub mod system;

pub mod inputs;

pub mod integrator;

pub use error::{EvalError, StepError};
pub use inputs::{Hold, Inputs};
pub use integrator::{Adaptive, DormandPrince, Fixed, Integrator, Output, Rk4, Span, Statistics};
pub use scalar::{Complex64, Scalar};
pub use system::{
    At, Dims, Energy, ForwardDynamics, ForwardDynamicsRecursive, InverseDynamics, MarkerJacobians, Markers,
    MassMatrix, MassMatrixCoordinates, Names, Outputs, Quantity, Start, System,
};
