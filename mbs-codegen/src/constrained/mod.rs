//! Equations of motion under constraints, in two forms.
//!
//! Input: the mechanism (referred to the world origin), its inertias, its forces and its constraint rows.
//! Output: [`CoordinateForm`], residual, tangent and constraints over (z, zd, zdd, λ) for implicit integrators;
//! [`JointForm`], accelerations and multipliers over (z, v) for explicit ones; derivatives of both by the state and by
//! parameters; [`reactions`] of the joints.
//! Holds afterwards: rows that vanish identically are gone ([`Rows`]); every matrix is given by its nonzero
//! entries only, with an order of elimination that suits it.
//!
//! | symbol | meaning |
//! |---|---|
//! | r | M zdd + Φ_zᵀ λ + Aᵀ μ − Q, coordinate form |
//! | tau | M vd − Q, joint form, constraint forces among Q |
//! | Φ, Ψ | holonomic rows, nonholonomic rows |
//! | L | v = L(z) zd |

mod coordinate_derivatives;
mod coordinate_form;
mod joint_derivatives;
mod joint_form;
mod reactions;
mod rows;
mod samples;
mod scales;
mod sections;
mod transposed_products;

pub use coordinate_derivatives::{CoordinateDerivatives, ParameterPlaces, Sparse};
pub(crate) use coordinate_form::joint_to_coordinate_form;
pub use coordinate_form::{CoordinateForm, LeadingMatrix, Pattern};
pub use joint_derivatives::{JointDerivatives, JointPlaces};
pub(crate) use joint_form::bordered_matrix;
pub use joint_form::{Correction, JointForm, Solution};
pub use reactions::reactions;
pub use rows::{Checked, Rows, lengths, start_lengths};
pub(crate) use rows::{Sample, row_values};
pub use samples::States;
pub use scales::Scales;
pub use sections::Sections;
pub use transposed_products::{TransposedProducts, tangent_product};
