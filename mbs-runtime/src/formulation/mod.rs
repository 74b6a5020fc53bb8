//! Equations of motion with constraints, and how they are enforced.
//!
//! Implicit, in coordinate form, over [`Constrained`](crate::Constrained), with a [`State`] of the caller:
//!
//! | formulation | constraints hold |
//! |---|---|
//! | [`Ali3p`] | at three levels: positions by multipliers inside the step, velocities and accelerations by projections |
//! | [`ImplicitIndex1`] | at the level of accelerations, stabilised; or by a penalty |
//!
//! Both start from [`Assembly`] and run in equal steps by [`Fixed`](crate::Fixed).
//!
//! Explicit, in joint form, over [`ConstrainedDynamics`](crate::ConstrainedDynamics), with any explicit integrator:
//!
//! | formulation | constraints hold |
//! |---|---|
//! | [`Index1`] | at the level of accelerations, stabilised; or by a penalty |
//! | [`OnConstraints`] | also positions and velocities, by a correction after each step |
//! | [`MatrixR`] | at three levels: independent coordinates are integrated, the others follow at every stage |
//!
//! Symbols as in [`constrained`](crate::constrained). Sources: \[Dopico2018\] Dopico, González, Luaces, Saura,
//! García-Vallejo, *Direct sensitivity analysis of multibody systems with holonomic and nonholonomic constraints via an index-3
//! augmented Lagrangian formulation with projections*, Nonlinear Dynamics, 2018; \[LopezVarela2023\] López Varela, Dopico,
//! Luaces, *Augmented Lagrangian index-3 semi-recursive formulations with projections: direct sensitivity analysis*, Multibody
//! System Dynamics, 2023.

mod ali3p;
mod begin;
pub(crate) mod compliance;
mod implicit_index1;
pub(crate) mod independent;
pub(crate) mod index1;
pub(crate) mod matrix_r;
pub(crate) mod multipliers;
mod nearest;
pub(crate) mod newton;
mod projection;
mod record;
pub(crate) mod run;
pub(crate) mod start;
mod start_dynamics;
mod state;

pub use ali3p::{Ali3p, ProjectionMatrix};
pub(crate) use ali3p::{refuse_first_order_states, refuse_projection_multipliers};
pub use compliance::Penalty;
pub use implicit_index1::ImplicitIndex1;
pub use index1::{Corrections, Index1, OnConstraints, StateCorrection};
pub use matrix_r::MatrixR;
pub use newton::Tangent;
pub use record::Record;
pub use run::{ImplicitStep, Node};
pub use start::{Assembly, StartStatistics};
pub use state::State;
pub(crate) use state::depend;
