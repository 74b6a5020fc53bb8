//! Derivatives of a run by parameters: what a model must know ([`derivatives`]), and what is made of it.
//!
//! | what | input → output |
//! |---|---|
//! | [`Assembly::start_differentiated`](crate::Assembly::start_differentiated) | guesses → a consistent start and its derivatives |
//! | [`Assembly::driven_differentiated`](crate::Assembly::driven_differentiated) | a driven state → its derivatives |
//! | [`LinearisedStep`] | the record of an implicit step → its derivative, with products and transposed products |
//! | [`Differentiated`] | a run, implicit or explicit → its derivatives at every node, objectives and their gradient |
//!
//! Derivatives are those of the discrete solution: of what Newton's method and the projections converge to, step by step, with
//! the steps' sizes fixed. Matrices have their parameters fastest: the derivative of entry i by parameter k is at `i * p + k`.

pub mod derivatives;

mod at_once;
pub(crate) mod augmented;
mod blocks;
mod bordered;
pub(crate) mod columns;
mod completion;
mod correction;
mod driven;
mod forward;
mod guess;
mod independent_stage;
mod jacobian_vector;
mod joint_dynamics;
mod joint_state;
mod joint_values;
mod least_norm;
pub(crate) mod objectives;
mod redundancy;
mod products;
mod residual;
mod row_lists;
pub(crate) mod run;
pub(crate) mod explicit_run;
mod stage_tangent;
mod stages;
mod start;
mod start_transposed;
mod state;
mod step;
mod stiff;
mod tangent_projection;
mod transposed;
mod values;

pub(crate) use at_once::transpose as transpose_at_once;
pub(crate) use blocks::TransposedProduct;
pub(crate) use completion::Completion;
pub(crate) use correction::Correction;
pub use derivatives::{
    Impulses, JointObjectiveDerivatives, JointPlaces, JointSensitivities, ObjectiveDerivatives,
    ParameterPlaces, Places, Sensitivities, SensitivityDims, StartDerivatives,
};
pub use driven::Term;
pub use explicit_run::{DifferentiableIntegrator, DifferentiatedAt};
pub(crate) use explicit_run::{scratch_len_of_run_by, scratch_len_of_run_by_stages};
pub use jacobian_vector::JacobianVector;
pub use joint_dynamics::JointDynamics;
pub(crate) use joint_dynamics::{load_choice, save_choice};
pub use joint_state::JointDerivatives;
pub(crate) use joint_state::refuse_first_order_states;
pub use objectives::Gradient;
pub(crate) use objectives::{Along, Weighed, transpose_derivatives};
pub(crate) use products::{ParameterWeights, take};
pub(crate) use redundancy::{
    len as redundancy_len, objective_rows as joint_objective_rows, refuse_redundant_multipliers,
};
pub(crate) use run::scratch_len_of_run;
pub use run::{DifferentiableStep, Differentiated};
pub(crate) use stage_tangent::{Linear, StageTangent};
pub use state::StateDerivatives;
pub(crate) use state::{objective_rows, rows as state_rows};
pub use step::LinearisedStep;
pub(crate) use step::{max_columns, scratch_len as linearised_len};
pub use stiff::Stiff;
pub(crate) use stiff::stiff;
pub use values::{JointValues, MotionValues, ObjectiveValues, ProjectionValues, StartValues};
