//! How a run is made: integrator, formulation, steps, tolerances.

use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use mbs_codegen::model;

/// The heading of options about the method.
pub(super) const METHOD: &str = "Method";

/// How a run is made.
#[derive(Debug, Args)]
pub(crate) struct Method {
    /// How constraints are enforced.
    #[arg(long, value_enum, help_heading = METHOD)]
    pub(crate) formulation: Option<FormulationName>,
    /// Coordinates that are integrated, `joint.coordinate` or variables, separated by commas; of `matrix_r`, chosen by pivoting if not given.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = METHOD)]
    pub(crate) independent: Option<Vec<String>>,
    /// The integrator.
    #[arg(long, value_enum, help_heading = METHOD)]
    pub(crate) integrator: Option<IntegratorName>,
    /// Weight of the new acceleration in the position; of `newmark`, 0.25 if not given.
    #[arg(long, value_name = "B", allow_negative_numbers = true, help_heading = METHOD)]
    pub(crate) beta: Option<f64>,
    /// Weight of the new acceleration in the velocity; of `newmark`, 0.5 if not given.
    #[arg(long, value_name = "G", allow_negative_numbers = true, help_heading = METHOD)]
    pub(crate) gamma: Option<f64>,
    /// From 0, most damping of high frequencies, to 1, none; of `generalized_alpha`, 0.8 if not given.
    #[arg(long, value_name = "R", allow_negative_numbers = true, help_heading = METHOD)]
    pub(crate) spectral_radius: Option<f64>,
    /// Penalty of every constraint; of `ali3p` and `penalty`, scaled by inertia (and step) if not given.
    #[arg(long, value_name = "P", allow_negative_numbers = true, help_heading = METHOD)]
    pub(crate) penalty: Option<f64>,
    /// The matrix of the projections of `ali3p`.
    #[arg(long, value_enum, help_heading = METHOD)]
    pub(crate) projection: Option<ProjectionName>,
    /// Relative increment at which the iteration of an implicit step ends.
    #[arg(long, value_name = "E", allow_negative_numbers = true, help_heading = METHOD)]
    pub(crate) newton_tolerance: Option<f64>,
    /// Most iterations of an implicit step.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000), help_heading = METHOD)]
    pub(crate) newton_iterations: Option<u32>,
    /// Relative tolerance of step control; of integrators with step control.
    #[arg(long, value_name = "R", allow_negative_numbers = true, help_heading = METHOD)]
    pub(crate) rtol: Option<f64>,
    /// Absolute tolerance of step control; of integrators with step control.
    #[arg(long, value_name = "A", allow_negative_numbers = true, help_heading = METHOD)]
    pub(crate) atol: Option<f64>,
    /// Largest step of step control, s; of integrators with step control.
    #[arg(long, value_name = "H", allow_negative_numbers = true, help_heading = METHOD)]
    pub(crate) max_step: Option<f64>,
    /// Steps that step control may try in a run; of integrators with step control.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = METHOD)]
    pub(crate) max_steps: Option<u64>,
    /// Trials of one step that step control may reject; of integrators with step control.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = METHOD)]
    pub(crate) max_rejected: Option<u32>,
    /// Whether integrands of objectives count for the error of step control; of integrators with step control.
    #[arg(long, value_name = "BOOL", help_heading = METHOD)]
    pub(crate) objectives_in_error: Option<bool>,
}

/// How constraints are enforced.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum FormulationName {
    /// Augmented Lagrangian of index 3 with projections
    Ali3p,
    /// Forces in proportion to the violation
    Penalty,
    /// At the level of accelerations
    Index1,
    /// Independent coordinates are integrated, the others follow
    #[value(name = "matrix_r")]
    MatrixR,
}

impl From<FormulationName> for model::Formulation {
    fn from(name: FormulationName) -> model::Formulation {
        match name {
            FormulationName::Ali3p => model::Formulation::Ali3p,
            FormulationName::Penalty => model::Formulation::Penalty,
            FormulationName::Index1 => model::Formulation::Index1,
            FormulationName::MatrixR => model::Formulation::MatrixR,
        }
    }
}

/// The matrix of the projections.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ProjectionName {
    /// The mass matrix
    Mass,
    /// The mass matrix with damping and stiffness
    Tangent,
    /// No projections
    None,
}

impl From<ProjectionName> for model::Projection {
    fn from(name: ProjectionName) -> model::Projection {
        match name {
            ProjectionName::Mass => model::Projection::Mass,
            ProjectionName::Tangent => model::Projection::Tangent,
            ProjectionName::None => model::Projection::None,
        }
    }
}

/// An integrator, with the coefficients that a model file has if it does not say them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IntegratorName(model::Integrator);

impl ValueEnum for IntegratorName {
    fn value_variants<'a>() -> &'a [IntegratorName] {
        const ALL: [IntegratorName; model::Integrator::ALL.len()] = {
            let mut all = [IntegratorName(model::Integrator::Rk4); model::Integrator::ALL.len()];
            let mut i = 0;
            while i < all.len() {
                all[i] = IntegratorName(model::Integrator::ALL[i]);
                i += 1;
            }
            all
        };
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.keyword()).help(self.0.summary()))
    }
}

impl From<IntegratorName> for model::Integrator {
    fn from(name: IntegratorName) -> model::Integrator {
        name.0
    }
}
