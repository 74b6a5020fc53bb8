//! What is neither inertia nor joint: markers, forces, outputs. Elements speak through markers only.
//!
//! Enters: the model's elements and the kinematics. Leaves: loads on links and coordinates, energies,
//! outputs, all as expressions.

mod leaves;
mod mechanism;
mod forces;
pub mod markers;

pub use forces::{ForceElement, Load, Loads, loads};
pub use leaves::{Leaf, Leaves};
pub use mechanism::Mechanism;
