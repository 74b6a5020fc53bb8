//! A model that can be run: its case, its parameters as a person sets them, and settings that go with both.
//!
//! Input: a model, the name of a parameter and a number for each that is set, [`Settings`]. Output: an [`Instance`], or an
//! [`InstanceError`] that names what is wrong.

use super::settings::{Analysis, Overrides, SettingError, Settings};
use crate::{Engine, Fusing, Interpreted, ParameterError};
use mbs_codegen::analysis::Analysed;
use mbs_codegen::model::{Case, Model, Objective, PROJECTED, Parameter, ParameterValue, Simulation};
use mbs_codegen::program::{BundleKind, Options, Program, ProgramError};
use mbs_runtime::formulation::StartStatistics;
use std::fmt;

/// A model that can be run.
#[derive(Clone, Debug)]
pub struct Instance {
    /// The model with its parameters.
    pub model: Interpreted,
    /// How it is run.
    pub settings: Settings,
}

/// Why a model cannot be run as it was asked for.
#[derive(Debug)]
#[non_exhaustive]
pub enum InstanceError {
    /// Settings that do not go together.
    Setting(SettingError),
    /// Step control sees nothing of a signal that is held over its steps, however long they are.
    HeldSignal {
        /// The input.
        input: String,
        /// What is wrong with it.
        message: String,
    },
    /// An objective names multipliers of projections, and there are none.
    NoProjections {
        /// The objective.
        objective: String,
        /// What is wrong with it.
        message: String,
    },
    /// There are no equations.
    Program(ProgramError),
    /// A parameter that cannot be set.
    Parameter {
        /// Its name, as given.
        name: String,
        /// Why.
        error: ParameterError,
    },
    /// A parameter that follows from others.
    Dependent {
        /// Its name.
        name: String,
    },
    /// Parameters that are wrong together.
    Together {
        /// Those that were set.
        names: Vec<String>,
        /// Why.
        error: ParameterError,
    },
    /// The model has no coordinates.
    NothingMoves,
}

impl fmt::Display for InstanceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InstanceError::Setting(error) => error.fmt(f),
            InstanceError::HeldSignal { message, .. } => f.write_str(message),
            InstanceError::NoProjections { message, .. } => write!(f, "{message}: {PROJECTED}"),
            InstanceError::Program(error) => error.fmt(f),
            InstanceError::Parameter { name, error } => write!(f, "cannot set `{name}`: {error}"),
            InstanceError::Dependent { name } => write!(
                f,
                "cannot set `{name}`: it follows from other parameters; set those, or give it a number in the model"
            ),
            InstanceError::Together { names, error } => {
                let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
                write!(f, "cannot set {}: {error}", names.join(", "))
            }
            InstanceError::NothingMoves => f.write_str("nothing in the model moves: it has no coordinates"),
        }
    }
}

impl std::error::Error for InstanceError {}

impl Instance {
    /// Of a motion under forces.
    pub fn of_dynamics(
        model: &Analysed,
        case: Option<&Case>,
        set: &[(String, f64)],
        overrides: &Overrides,
    ) -> Result<Instance, InstanceError> {
        let settings = Settings::of_dynamics(simulation(model, case), model.is_constrained(), overrides);
        Instance::new(model, case, set, settings.map_err(InstanceError::Setting)?, &[])
    }

    /// Of the motion that drives prescribe.
    pub fn of_kinematics(
        model: &Analysed,
        case: Option<&Case>,
        set: &[(String, f64)],
        overrides: &Overrides,
    ) -> Result<Instance, InstanceError> {
        let settings = Settings::of_kinematics(simulation(model, case), model.is_constrained(), overrides);
        Instance::new(model, case, set, settings.map_err(InstanceError::Setting)?, &[])
    }

    /// Under any settings, with the bundles they need and further ones.
    pub fn new(
        model: &Analysed,
        case: Option<&Case>,
        set: &[(String, f64)],
        mut settings: Settings,
        further: &[BundleKind],
    ) -> Result<Instance, InstanceError> {
        refuse_unfit(model, case, &settings)?;
        settings.judges_forces = model.objectives.iter().any(Objective::depends_on_multipliers);
        let mut bundles = settings.bundles();
        bundles.extend(further);
        let mut interpreted = interpret(model, case, set, bundles)?;
        interpreted.set_recursive(settings.recursive);
        interpreted.set_engine(Engine::Auto, settings.expected_evaluations(), Fusing::AsCompiled);
        if interpreted.program().coordinates.is_empty() && !settings.is_runge_kutta() {
            return Err(InstanceError::NothingMoves);
        }
        Ok(Instance { model: interpreted, settings })
    }
}

/// The settings of a model under a case.
pub fn simulation<'m>(model: &'m Model, case: Option<&'m Case>) -> &'m Simulation {
    case.map_or(&model.simulation, |case| &case.simulation)
}

/// Refuses what the settings cannot do with the model: step control sees nothing of a signal that is held over its steps, however long they
/// are, and objectives may name multipliers of projections, which only steps of ALI3-P have.
pub fn refuse_unfit(model: &Model, case: Option<&Case>, settings: &Settings) -> Result<(), InstanceError> {
    let projected = settings.analysis == Analysis::Dynamics;
    for objective in &model.objectives {
        let refusal = match projected {
            true => objective.refuses(&settings.simulation, settings.constrained),
            false => objective.projection_multiplier().map(|(which, _)| {
                let (name, function) = (&objective.name, which.function());
                format!("objective `{name}` names `{function}(…)`, but a motion that drives prescribe has no projections")
            }),
        };
        if let Some(message) = refusal {
            return Err(InstanceError::NoProjections { objective: objective.name.clone(), message });
        }
    }
    let held = case.and_then(|case| case.held_signals(&model.inputs).next());
    match held.filter(|_| settings.is_adaptive()) {
        Some(input) => Err(InstanceError::HeldSignal {
            input: input.name.clone(),
            message: input.unseen_by_step_control(settings.simulation.integrator),
        }),
        None => Ok(()),
    }
}

/// Objectives that name multipliers or reactions where redundant constraints leave these open: where equations follow from each other only
/// the sum of their forces is determined, not each multiplier.
pub fn open_objectives<'m>(model: &'m Model, start: &StartStatistics) -> impl Iterator<Item = &'m str> {
    let redundant = start.rank < start.rows;
    let open = model.objectives.iter().filter(move |o| redundant && o.depends_on_multipliers());
    open.map(|objective| objective.name.as_str())
}

/// Names of the parameters that have numbers of their own.
pub fn independent(model: &Model) -> impl Iterator<Item = &str> {
    let own = |p: &&Parameter| !matches!(p.value, ParameterValue::Derived(_));
    model.parameters.iter().filter(own).map(|p| p.name.as_str())
}

/// The model with its case, some parameters set, and these bundles.
pub fn interpret(
    model: &Analysed,
    case: Option<&Case>,
    set: &[(String, f64)],
    bundles: Vec<BundleKind>,
) -> Result<Interpreted, InstanceError> {
    let options = Options { bundles, ..Options::default() };
    let written = |model: &Analysed, case: Option<&Case>| {
        Program::of(model, case, &options).map(Interpreted::new).map_err(InstanceError::Program)
    };
    let mut interpreted = written(model, case)?;
    let values: Vec<(&str, f64)> = set.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    let all = interpreted.with_values(&values);
    let mut done = interpreted.set_parameters_by_name(&values);
    let unscaled = matches!(done, Err((_, ParameterError::Scale { .. })));
    let pairs = all.iter().flatten().zip(interpreted.program().parameters.iter().flat_map(|p| &p.defaults));
    let far = model.is_constrained() && pairs.into_iter().any(|(value, default)| is_far(*value, *default));
    if let (true, Ok(all)) = (unscaled || far, all) {
        // The same equations, scaled for these values, which are those of the case, too.
        let scaled = model.under(case).with_defaults(&all);
        let own = case.map(|case| Case { parameters: Vec::new(), ..case.clone() });
        interpreted = written(&scaled, own.as_ref())?;
        done = interpreted.set_parameters_by_name(&values);
    }
    done.map_err(|(name, error)| match name {
        Some(name) => refused(model, &name, error),
        None => InstanceError::Together { names: set.iter().map(|(name, _)| name.clone()).collect(), error },
    })?;
    Ok(interpreted)
}

/// Values that are this many times the defaults, a part of them, or of another sign, have samples of their own, from which the regularisation of rows and
/// orders of elimination are. Within it a coefficient of a row changes Φ M⁻¹ Φᵀ at most 256-fold.
const FAR: f64 = 16.0;

fn is_far(value: f64, default: f64) -> bool {
    value != default && !(1.0 / FAR..=FAR).contains(&(value / default))
}

fn refused(model: &Model, name: &str, error: ParameterError) -> InstanceError {
    let derived = |p: &Parameter| p.name == name && matches!(p.value, ParameterValue::Derived(_));
    if matches!(error, ParameterError::Unknown { .. }) && model.parameters.iter().any(derived) {
        return InstanceError::Dependent { name: name.into() };
    }
    InstanceError::Parameter { name: name.into(), error }
}
