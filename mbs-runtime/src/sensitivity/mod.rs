//! Derivatives of a run by parameters: what a model must know ([`derivatives`]), and what is made of it.

pub mod derivatives;

pub use derivatives::{
    Impulses, JointObjectiveDerivatives, JointPlaces, JointSensitivities, ObjectiveDerivatives,
    ParameterPlaces, Places, Sensitivities, SensitivityDims, StartDerivatives,
};
