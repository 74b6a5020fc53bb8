//! What is neither inertia nor joint: markers, forces, constraints, outputs. Elements act on markers only.
//!
//! Input: the model's elements and the kinematics. Output: loads on links and coordinates, energies,
//! outputs, all as expressions.

mod leaves;
mod mechanism;
mod forces;
mod constraints;
pub mod markers;

pub use constraints::{ConstraintElement, RowOver, RowRates, constraint_elements};
pub use forces::{Element, Load, Loads, forces, loads};
pub use leaves::{Leaf, Leaves};
pub use mechanism::Mechanism;
