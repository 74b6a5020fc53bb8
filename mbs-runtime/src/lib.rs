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
//! | [`pack`] | two doubles at a time, as generated code computes with them |
//! | [`portable`] | the same functions with the same bits on every target |
//! | [`dims`] | sizes of a model, and what its indices count |
//! | [`system`] | the instant of evaluation, one trait per family of bundles |
//! | [`constrained`] | residual, tangent and constraints of mechanisms with loops |
//! | [`error`] | failures as values, and their rendering by name |
//! | [`inputs`] | how inputs are supplied and held over a step |
//! | [`integrator`] | steps and runs |
//! | [`linear`] | small linear algebra over slices |
//! | [`formulation`] | mechanisms with constraints: starts, implicit steps and runs, adapters for explicit integrators |
//! | [`euler_parameters`] | from coordinate form to joint form and back |
//! | [`quadrature`] | integrals along a run |
//! | [`sensitivity`] | derivatives of a run by parameters |
//! | [`named`] | values by name: what generated structs have in common |
//! | [`simulation`] | a simulation that owns its memory |
//!
//! A pendulum, as a generated module would write it, and its run:
//!
//! ```
//! use core::ops::ControlFlow;
//! use mbs_runtime::inputs::NoInputs;
//! use mbs_runtime::system::{array, array_mut};
//! use mbs_runtime::{At, Dims, EvalError, Fixed, ForwardDynamics, Integrator, Output, Rk4, Span, System, math};
//!
//! struct Pendulum {
//!     length: f64,
//! }
//!
//! const DIMS: Dims = Dims { nq: 1, nv: 1, ..Dims::ZERO };
//!
//! impl System for Pendulum {
//!     type S = f64;
//!     #[inline(always)]
//!     fn dims(&self) -> Dims {
//!         DIMS
//!     }
//! }
//!
//! impl ForwardDynamics for Pendulum {
//!     fn forward_dynamics(
//!         &self,
//!         at: At<'_, f64>,
//!         _w: &mut [f64],
//!         zd: &mut [f64],
//!         vd: &mut [f64],
//!         _xd: &mut [f64],
//!     ) -> Result<(), EvalError> {
//!         let ([angle], [rate]) = (array("z", at.z)?, array("v", at.v)?);
//!         *array_mut("zd", zd)? = [*rate];
//!         *array_mut("vd", vd)? = [-9.81 / self.length * math::sin(*angle)];
//!         Ok(())
//!     }
//! }
//!
//! let mut y = [0.5, 0.0];
//! let mut scratch = [0.0; Rk4::scratch_len(&DIMS)];
//! let span = Span { start: 0.0, end: 2.0, output: Output::Every(0.5) };
//! let mut samples = 0;
//! let statistics = Fixed { method: Rk4, h: 1e-3 }
//!     .run(&Pendulum { length: 1.0 }, &mut NoInputs, &mut y, &span, &mut scratch, |_at| {
//!         samples += 1;
//!         ControlFlow::Continue(())
//!     })
//!     .expect("the pendulum has mass");
//! assert_eq!((statistics.steps, samples), (2000, 5));
//! ```
//!
//! Generated modules with closed loops, step by step, their gradients, and functions over many samples at once are shown at
//! `mbs_macros::model_solver!`. Steps of one's own with a single method, as in a loop that must keep time:
//!
//! ```
//! # use mbs_runtime::system::{array, array_mut};
//! # use mbs_runtime::{At, Dims, EvalError, ForwardDynamics, System};
//! # struct Slide;
//! # const DIMS: Dims = Dims { nq: 1, nv: 1, nu: 1, ..Dims::ZERO };
//! # impl System for Slide {
//! #     type S = f64;
//! #     fn dims(&self) -> Dims {
//! #         DIMS
//! #     }
//! # }
//! # impl ForwardDynamics for Slide {
//! #     fn forward_dynamics(&self, at: At<'_, f64>, _: &mut [f64], zd: &mut [f64], vd: &mut [f64], _: &mut [f64]) -> Result<(), EvalError> {
//! #         let ([rate], [force]) = (array("v", at.v)?, array("u", at.u)?);
//! #         *array_mut("zd", zd)? = [*rate];
//! #         *array_mut("vd", vd)? = [*force];
//! #         Ok(())
//! #     }
//! # }
//! use mbs_runtime::inputs::from_fn;
//! use mbs_runtime::integrator::{FixedStep, Rk4};
//!
//! // A unit mass on rails, pushed for half a second.
//! let (mut t, mut y) = (0.0, [0.0, 0.0]);
//! let mut scratch = [0.0; Rk4::scratch_len(&DIMS)];
//! let mut force = from_fn(|t: f64, u: &mut [f64]| u[0] = if t < 0.4999 { 2.0 } else { 0.0 });
//! for _ in 0..100 {
//!     Rk4.step(&Slide, &mut force, &mut t, &mut y, 0.01, &mut scratch).expect("finite accelerations");
//! }
//! // 0.25 m under the force, 0.5 m after it at 1 m/s.
//! assert!((y[0] - 0.75).abs() < 1e-12 && (y[1] - 1.0).abs() < 1e-12);
//! ```
//!
//! With the feature `std` (default) elementary functions are those of the standard library, otherwise those of
//! `libm`; results differ then in the last bits and in nothing else.
#![no_std]
#![cfg_attr(feature = "nightly", feature(core_float_math))]
#![forbid(unsafe_code)]

#[cfg(feature = "std")]
extern crate std;

pub mod scalar;

pub mod math;
pub mod pack;
pub mod portable;

pub mod batch;
pub mod rolled;

mod readable;

pub mod dims;
pub mod inputs;

pub mod corners;

pub mod error;
mod implicit;
pub mod system;

pub mod constrained;
pub mod lanes;
pub mod tree;

mod pieces;

pub mod linear;

pub mod euler_parameters;
pub mod integrator;

pub mod quadrature;

pub mod formulation;

pub mod sensitivity;

pub mod adjoint;

pub mod events;

pub mod named;
pub mod simulation;

pub use adjoint::{
    Adjoint, AdjointIntegrator, AdjointNode, AdjointStatistics, JacobianVector, Schedule, VectorJacobian,
};
pub use constrained::{
    Constrained, ConstrainedDynamics, ConstraintCorrection, ConstraintRows, FusedSteps, Motion, Objectives,
    Pattern, Reactions, Stabilisation, Weights,
};
pub use error::{EvalError, EventFailure, IndependentFailure, Level, StepError};
pub use events::{
    AdjointEventIntegrator, DifferentiableEventIntegrator, Direction, EventDerivatives, EventEntry,
    EventIntegrator, EventTable, Events, ImpactLaw, Occurrence, Sight, WithEvents,
};
pub use formulation::{
    Ali3p, Assembly, ImplicitIndex1, Index1, MatrixR, OnConstraints, Penalty, ProjectionMatrix, State,
    Tangent,
};
pub use inputs::{Hold, Inputs, Stop};
pub use integrator::{
    Adaptive, Dop853, DormandPrince, Fixed, Implicit, Integrator, Output, Rk4, Sdirk4, Span, Statistics,
    StepStatistics, Trapezoidal,
};
pub use scalar::{Complex64, Scalar};
pub use sensitivity::{
    DifferentiableIntegrator, Differentiated, Gradient, Impulses, JointDerivatives,
    JointObjectiveDerivatives, JointPlaces, JointSensitivities, LinearisedStep, ObjectiveDerivatives,
    ParameterPlaces, Sensitivities, SensitivityDims, StartDerivatives, StateDerivatives, Stiff,
};
pub use simulation::{Simulated, Simulation};
pub use system::{
    At, Dims, Energy, ForwardDynamics, ForwardDynamicsRecursive, InverseDynamics, InverseDynamicsDerivatives,
    MarkerJacobians, Markers, MassMatrix, MassMatrixCoordinates, Names, Outputs, Quantity, Start, System,
    Units,
};
pub use tree::{
    AccelerationDerivatives, Centroid, Centroidal, CoriolisTerms, ForwardDynamicsDerivatives,
    ForwardDynamicsExternal, GravityTerms, InertialParameters, InverseDynamicsExternal,
    InverseDynamicsParameters, MarkerJacobianRates, MassMatrixInverseAction, Regressor,
};
