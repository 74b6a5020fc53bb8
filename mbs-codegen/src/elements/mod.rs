//! What is neither inertia nor joint: markers, forces, outputs. Elements speak through markers only.
//!
//! Enters: the model's elements and the kinematics. Leaves: loads on links and coordinates, energies,
//! outputs, all as expressions.

mod forces;
mod mechanism;
pub mod markers;

pub use forces::{Loads, loads};
pub use mechanism::Mechanism;
