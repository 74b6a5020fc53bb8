//! Many runs of one model with other parameters: grids, samples, global sensitivities.
//!
//! Input: a model, [`Axis`] values by name, a [`Design`]. Output: a [`Plan`], a list of points that depends on nothing else, and from
//! [`run`] a [`Row`] for each point of a range of it, in order, on all cores; a run that fails is a row with its reason. Any part of a
//! plan can be run anywhere, and parts together are the whole.

mod axis;
mod indices;
mod plan;
mod run;
pub mod sampling;

pub use axis::{Axis, AxisError, Values};
pub use indices::{Index, Indices, indices};
pub use plan::{Design, Plan, PlanError};
pub use run::{Row, columns, run};
