//! Equations of motion of trees, joint-wise.
//!
//! Input: kinematics and loads. Output: mass matrix, inverse dynamics, two kinds of forward dynamics,
//! energies, centre of mass and momentum, the regressor, as expressions.
//!
//! | symbol | meaning | shape |
//! |---|---|---|
//! | m, h, J | mass, first moment and inertia of a body about o | 1, 3, 6 |
//! | M | mass matrix in joint form, positive definite | nv×nv |
//! | W | force and moment on a link about o | 6 |
//! | M^A, p^A | articulated inertia and bias force | 6×6, 6 |
//!
//! Gravity is an upward acceleration of ground, which adds no operations to the recursions.

mod articulated_body;
mod centroidal;
mod choice;
mod energy;
mod external;
mod forward_dynamics;
mod inertia;
mod inverse_dynamics;
mod link_axes;
mod mass_matrix;
mod regressor;
mod terms;
mod tree_factors;

pub use articulated_body::{Articulation, articulated_body, pivots, resting_wrenches};
pub use centroidal::{Centroidal, centroidal};
pub use choice::TreeEquations;
pub use energy::{Energy, energy};
pub use external::{with_joint_forces, with_wrenches};
pub use forward_dynamics::solve_tree;
pub(crate) use inertia::reference_inertias;
pub use inertia::{BodyInertia, Symmetric, body_inertias};
pub use inverse_dynamics::{inverse_dynamics, link_wrenches, right_hand_side};
pub use link_axes::LinkAxes;
pub(crate) use mass_matrix::composite_inertias;
pub use mass_matrix::{MassMatrix, coordinate_form, mass_matrix, mass_matrix_diagonal};
pub use regressor::{PARAMETERS, Regressor, inertial_parameters, regressor};
pub use terms::{coriolis_terms, gravity_terms};
pub use tree_factors::TreeFactors;

use crate::graph::ExprId;

/// Accelerations, and the pivots, which must be positive.
#[derive(Clone, Debug)]
pub struct Solved {
    /// vd
    pub vd: Vec<ExprId>,
    /// One per velocity.
    pub pivots: Vec<ExprId>,
}
