//! What to run: a model's own settings, with the changes that a person asks for.
//!
//! Input: the `simulation` of a model or its case, and [`Overrides`]. Output: [`Settings`] that go together, or a [`SettingError`]
//! that says what does. What is asked for wins over the model; what the model says beside it gives way where the two do not go
//! together.

use crate::BREAK_EVEN;
use mbs_codegen::model::{Formulation, Integrator, Projection, Simulation};
use mbs_codegen::program::BundleKind;
use std::fmt;

/// What is asked of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Analysis {
    /// Its motion under forces.
    Dynamics,
    /// The motion its drives prescribe.
    Kinematics,
}

/// What a person asks for; the rest is the model's.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overrides {
    /// Last time, s.
    pub end: Option<f64>,
    /// Step, s; with step control the first one.
    pub step: Option<f64>,
    /// Time between results, s.
    pub output_step: Option<f64>,
    /// How constraints are enforced.
    pub formulation: Option<Formulation>,
    /// The integrator; one of the model's own kind keeps the model's coefficients.
    pub integrator: Option<Integrator>,
    /// Newmark's β.
    pub beta: Option<f64>,
    /// Newmark's γ.
    pub gamma: Option<f64>,
    /// The spectral radius of generalized-α at infinity.
    pub spectral_radius: Option<f64>,
    /// The penalty of every constraint.
    pub penalty: Option<f64>,
    /// The matrix of the projections.
    pub projection: Option<Projection>,
    /// Relative increment at which the iteration of an implicit step ends.
    pub newton_tolerance: Option<f64>,
    /// Most iterations of an implicit step.
    pub newton_iterations: Option<u32>,
    /// Relative tolerance of step control.
    pub relative_tolerance: Option<f64>,
    /// Absolute tolerance of step control.
    pub absolute_tolerance: Option<f64>,
    /// Largest step of step control.
    pub max_step: Option<f64>,
    /// Steps that step control may try in a run.
    pub max_steps: Option<u64>,
    /// Trials of one step that step control may reject.
    pub max_rejected: Option<u32>,
    /// Whether integrands of objectives count for the error of step control.
    pub objectives_in_error: Option<bool>,
}

/// A setting, by its key in a model file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as the fields of `Overrides`")]
pub enum Setting {
    Formulation,
    Beta,
    Gamma,
    SpectralRadius,
    Penalty,
    Projection,
    NewtonTolerance,
    NewtonIterations,
    RelativeTolerance,
    AbsoluteTolerance,
    MaxStep,
    MaxSteps,
    MaxRejected,
    ObjectivesInError,
}

impl Setting {
    /// Its key in a model file.
    pub fn keyword(self) -> &'static str {
        match self {
            Setting::Formulation => "formulation",
            Setting::Beta => "beta",
            Setting::Gamma => "gamma",
            Setting::SpectralRadius => "spectral_radius",
            Setting::Penalty => "penalty",
            Setting::Projection => "projection",
            Setting::NewtonTolerance => "newton_tolerance",
            Setting::NewtonIterations => "newton_iterations",
            Setting::RelativeTolerance => "relative_tolerance",
            Setting::AbsoluteTolerance => "absolute_tolerance",
            Setting::MaxStep => "max_step",
            Setting::MaxSteps => "max_steps",
            Setting::MaxRejected => "max_rejected",
            Setting::ObjectivesInError => "objectives_in_error",
        }
    }
}

/// Settings that do not go together.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum SettingError {
    /// The end does not lie after the begin.
    Span {
        /// First time, s.
        begin: f64,
        /// Last time, s.
        end: f64,
    },
    /// More fixed steps than anybody waits for.
    TooManySteps {
        /// How many.
        steps: f64,
        /// Whether an integrator with step control would help.
        adaptive_helps: bool,
    },
    /// An explicit integrator and a formulation that needs an implicit one.
    Clash {
        /// The integrator's keyword.
        integrator: &'static str,
    },
    /// A setting that belongs to something else than what was chosen.
    Belongs {
        /// The setting.
        setting: Setting,
        /// What it belongs to, in words.
        owners: String,
        /// The keyword of what was chosen.
        chosen: &'static str,
    },
    /// A value that the setting cannot have.
    Range {
        /// The setting.
        setting: Setting,
        /// What it can have, in words.
        range: &'static str,
        /// The value.
        value: f64,
    },
    /// The articulated-body recursion for something else than explicit steps of an open tree.
    NotRecursive,
}

impl SettingError {
    /// The message, with settings and numbers as a front end writes them.
    pub fn describe(&self, name: impl Fn(Setting) -> String, number: impl Fn(f64) -> String) -> String {
        match self {
            SettingError::Span { begin, end } => {
                format!("the end, {} s, must lie after the begin, {} s", number(*end), number(*begin))
            }
            SettingError::TooManySteps { steps, .. } => format!("{} steps are too many", number(*steps)),
            SettingError::Clash { integrator } => format!(
                "`{integrator}` is explicit, and `ali3p` needs an implicit integrator: take `trapezoidal`, `newmark` or \
                 `generalized_alpha`; or, with `{integrator}`, the formulation `index1` or `penalty`"
            ),
            SettingError::Belongs { setting, owners, chosen } => {
                format!("`{}` belongs to {owners}, not to `{chosen}`", name(*setting))
            }
            SettingError::Range { setting, range, value } => {
                format!("`{}` must be {range}, not {}", name(*setting), number(*value))
            }
            SettingError::NotRecursive => {
                "the articulated-body recursion is for explicit integrators of models without closed loops and constraints"
                    .into()
            }
        }
    }
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe(|setting| setting.keyword().into(), |number| number.to_string()))
    }
}

impl std::error::Error for SettingError {}

/// A run that can be made.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What is asked of the model.
    pub analysis: Analysis,
    /// Whether the model has closed loops, constraints or variables.
    pub constrained: bool,
    /// Span, steps, method and tolerances.
    pub simulation: Simulation,
    /// Whether accelerations come from the articulated-body recursion.
    pub recursive: bool,
    /// Whether forces and torques of joints are evaluated.
    pub reactions: bool,
    /// Whether objectives name multipliers or reactions.
    pub judges_forces: bool,
    /// Whether curves of everything are kept.
    pub keeps_history: bool,
    /// Overrides that do nothing, because there are no constraints to enforce.
    pub idle: Vec<Setting>,
}

impl Settings {
    /// Of a motion under forces.
    pub fn of_dynamics(
        defaults: &Simulation,
        constrained: bool,
        overrides: &Overrides,
    ) -> Result<Settings, SettingError> {
        let mut simulation = defaults.clone();
        resolve_span(&mut simulation, overrides)?;
        resolve_method(&mut simulation, constrained, overrides)?;
        resolve_coefficients(&mut simulation, overrides)?;
        let idle = resolve_details(&mut simulation, constrained, overrides)?;
        if !simulation.integrator.controls_steps() {
            refuse_too_many(&simulation, true)?;
        }
        Ok(Settings { idle, ..Settings::new(Analysis::Dynamics, constrained, simulation) })
    }

    /// Of the motion that drives prescribe; of the overrides, only span and steps matter.
    pub fn of_kinematics(
        defaults: &Simulation,
        constrained: bool,
        overrides: &Overrides,
    ) -> Result<Settings, SettingError> {
        let mut simulation = defaults.clone();
        resolve_span(&mut simulation, overrides)?;
        refuse_too_many(&simulation, false)?;
        Ok(Settings::new(Analysis::Kinematics, constrained, simulation))
    }

    fn new(analysis: Analysis, constrained: bool, simulation: Simulation) -> Settings {
        Settings {
            analysis,
            constrained,
            simulation,
            recursive: false,
            reactions: false,
            judges_forces: false,
            keeps_history: false,
            idle: Vec::new(),
        }
    }

    /// Accelerations by the recursion of articulated bodies.
    pub fn make_recursive(&mut self) -> Result<(), SettingError> {
        let implicit = self.simulation.solves_stages(self.constrained);
        if self.constrained || implicit || !self.is_runge_kutta() {
            return Err(SettingError::NotRecursive);
        }
        self.recursive = true;
        Ok(())
    }

    /// Whether it integrates accelerations in joint form.
    pub fn is_runge_kutta(&self) -> bool {
        self.analysis == Analysis::Dynamics && self.simulation.is_in_joint_form(self.constrained)
    }

    /// Whether it controls its steps.
    pub fn is_adaptive(&self) -> bool {
        self.is_runge_kutta() && self.simulation.integrator.controls_steps()
    }

    /// How many evaluations of the equations there are at least: one a step, and with step control as many as steps of the first length
    /// would take, if those are many; otherwise nobody knows.
    pub fn expected_evaluations(&self) -> Option<usize> {
        let Simulation { begin, end, step, .. } = self.simulation;
        let steps = (end - begin) / step;
        let known = !self.is_adaptive() || steps > f64::from(BREAK_EVEN);
        (known && steps.is_finite()).then_some(steps as usize)
    }

    /// The equations it needs.
    pub fn bundles(&self) -> Vec<BundleKind> {
        let mut bundles = vec![BundleKind::Outputs, BundleKind::Objectives];
        if self.analysis == Analysis::Dynamics {
            bundles.push(BundleKind::Energy);
        }
        if self.reactions {
            bundles.push(BundleKind::Reactions);
        }
        if self.constrained || !self.is_runge_kutta() {
            bundles.extend(BundleKind::COORDINATE_FORM);
        }
        if self.analysis == Analysis::Kinematics && self.judges_forces {
            bundles.push(BundleKind::ConstrainedDynamics);
        }
        match (self.is_runge_kutta(), self.constrained) {
            (true, true) => {
                bundles.push(BundleKind::ConstrainedDynamics);
                bundles.push(match self.simulation.formulation {
                    Formulation::MatrixR => BundleKind::ConstraintRows,
                    _ => BundleKind::ConstraintCorrection,
                });
            }
            (true, false) if self.recursive => bundles.push(BundleKind::ForwardDynamicsRecursive),
            (true, false) => bundles.push(BundleKind::ForwardDynamics),
            (false, _) => {}
        }
        if self.is_runge_kutta() && self.simulation.solves_stages(self.constrained) {
            bundles.extend(BundleKind::JOINT_SENSITIVITIES);
        }
        bundles
    }
}

fn resolve_span(simulation: &mut Simulation, overrides: &Overrides) -> Result<(), SettingError> {
    simulation.end = overrides.end.unwrap_or(simulation.end);
    simulation.step = overrides.step.unwrap_or(simulation.step);
    simulation.output_step = overrides.output_step.or(simulation.output_step);
    let (begin, end) = (simulation.begin, simulation.end);
    if end <= begin { Err(SettingError::Span { begin, end }) } else { Ok(()) }
}

/// More would take days.
const MAX_STEPS: f64 = 1e10;

fn refuse_too_many(simulation: &Simulation, adaptive_helps: bool) -> Result<(), SettingError> {
    let steps = (simulation.end - simulation.begin) / simulation.step;
    if steps.is_finite() && steps > MAX_STEPS {
        return Err(SettingError::TooManySteps { steps, adaptive_helps });
    }
    Ok(())
}

/// Formulation and integrator.
fn resolve_method(
    simulation: &mut Simulation,
    constrained: bool,
    overrides: &Overrides,
) -> Result<(), SettingError> {
    if let Some(new) = overrides.integrator {
        // The same integrator keeps what the model says of it.
        if new.keyword() != simulation.integrator.keyword() {
            simulation.integrator = new;
        }
    }
    simulation.formulation = overrides.formulation.unwrap_or(simulation.formulation);
    let explicit = simulation.integrator.is_runge_kutta();
    if constrained && simulation.formulation == Formulation::MatrixR {
        return Ok(());
    }
    let clash = explicit && simulation.formulation == Formulation::Ali3p;
    if !constrained || !clash {
        return Ok(());
    }
    match (overrides.integrator, overrides.formulation) {
        (Some(_), Some(_)) => {
            return Err(SettingError::Clash { integrator: simulation.integrator.keyword() });
        }
        (None, Some(_)) => simulation.integrator = Integrator::Trapezoidal,
        (_, None) => simulation.formulation = Formulation::Index1,
    }
    Ok(())
}

fn within(setting: Setting, range: &'static str, value: f64, right: bool) -> Result<f64, SettingError> {
    if right { Ok(value) } else { Err(SettingError::Range { setting, range, value }) }
}

fn positive(setting: Setting, value: f64) -> Result<f64, SettingError> {
    within(setting, "positive and finite", value, value > 0.0 && value.is_finite())
}

/// What belongs to one integrator.
fn resolve_coefficients(simulation: &mut Simulation, overrides: &Overrides) -> Result<(), SettingError> {
    let chosen = simulation.integrator.keyword();
    let belongs =
        |setting, owners: &str| Err(SettingError::Belongs { setting, owners: owners.into(), chosen });
    let controlling = Integrator::words(Integrator::controls_steps, "and");
    if let Some(x) = overrides.beta {
        let Integrator::Newmark { beta, .. } = &mut simulation.integrator else {
            return belongs(Setting::Beta, "`newmark`");
        };
        *beta = within(Setting::Beta, "above 0 and at most 1", x, x > 0.0 && x <= 1.0)?;
    }
    if let Some(x) = overrides.gamma {
        let Integrator::Newmark { gamma, .. } = &mut simulation.integrator else {
            return belongs(Setting::Gamma, "`newmark`");
        };
        *gamma = within(Setting::Gamma, "from 0.5 to 1", x, (0.5..=1.0).contains(&x))?;
    }
    if let Some(x) = overrides.spectral_radius {
        let Integrator::GeneralizedAlpha { spectral_radius } = &mut simulation.integrator else {
            return belongs(Setting::SpectralRadius, "`generalized_alpha`");
        };
        *spectral_radius = within(Setting::SpectralRadius, "from 0 to 1", x, (0.0..=1.0).contains(&x))?;
    }
    for (setting, given, value) in [
        (Setting::RelativeTolerance, overrides.relative_tolerance, &mut simulation.relative_tolerance),
        (Setting::AbsoluteTolerance, overrides.absolute_tolerance, &mut simulation.absolute_tolerance),
    ] {
        if given.is_some() && !simulation.integrator.controls_steps() {
            return belongs(setting, &controlling);
        }
        *value = given.unwrap_or(*value);
    }
    for (setting, given) in [
        (Setting::MaxStep, overrides.max_step.is_some()),
        (Setting::MaxSteps, overrides.max_steps.is_some()),
        (Setting::MaxRejected, overrides.max_rejected.is_some()),
        (Setting::ObjectivesInError, overrides.objectives_in_error.is_some()),
    ] {
        if given && !simulation.integrator.controls_steps() {
            return belongs(setting, &controlling);
        }
    }
    if let Some(step) = overrides.max_step {
        simulation.max_step = Some(positive(Setting::MaxStep, step)?);
    }
    simulation.max_steps = overrides.max_steps.unwrap_or(simulation.max_steps);
    simulation.max_rejected = overrides.max_rejected.unwrap_or(simulation.max_rejected);
    simulation.objectives_in_error = overrides.objectives_in_error.unwrap_or(simulation.objectives_in_error);
    Ok(())
}

/// Penalty, projection and Newton's method. Gives the settings that do nothing because there is nothing to enforce.
fn resolve_details(
    simulation: &mut Simulation,
    constrained: bool,
    overrides: &Overrides,
) -> Result<Vec<Setting>, SettingError> {
    let belongs =
        |setting, owners: &str, chosen| Err(SettingError::Belongs { setting, owners: owners.into(), chosen });
    let mut idle = Vec::new();
    if !constrained {
        idle.extend(overrides.formulation.map(|_| Setting::Formulation));
        idle.extend(overrides.penalty.map(|_| Setting::Penalty));
        idle.extend(overrides.projection.map(|_| Setting::Projection));
    }
    if let Some(penalty) = overrides.penalty {
        if constrained && matches!(simulation.formulation, Formulation::Index1 | Formulation::MatrixR) {
            return belongs(Setting::Penalty, "`ali3p` and `penalty`", simulation.formulation.keyword());
        }
        simulation.penalty = Some(positive(Setting::Penalty, penalty)?);
    }
    if let Some(projection) = overrides.projection {
        if constrained && simulation.formulation != Formulation::Ali3p {
            return belongs(Setting::Projection, "`ali3p`", simulation.formulation.keyword());
        }
        simulation.projection = projection;
    }
    let newton = [
        overrides.newton_tolerance.map(|_| Setting::NewtonTolerance),
        overrides.newton_iterations.map(|_| Setting::NewtonIterations),
    ];
    if let Some(setting) =
        newton.into_iter().flatten().next().filter(|_| simulation.is_in_joint_form(constrained))
    {
        return belongs(setting, "implicit integrators", simulation.integrator.keyword());
    }
    if let Some(tolerance) = overrides.newton_tolerance {
        simulation.newton_tolerance = positive(Setting::NewtonTolerance, tolerance)?;
    }
    simulation.newton_iterations = overrides.newton_iterations.unwrap_or(simulation.newton_iterations);
    Ok(idle)
}
