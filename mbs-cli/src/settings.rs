//! What to run: the model's own settings, overridden by the command line.
//!
//! Enters: the `simulation` of the model or its case, and the options. Leaves: settings that go together, or a failure
//! that says what does. An option that is given wins over the model; what the model says beside it gives way where the two
//! do not go together.

use crate::arguments::{Common, Method};
use crate::failure::Failure;
use crate::number::short;
use mbs_codegen::model::{Formulation, Integrator, Simulation};
use mbs_codegen::program::BundleKind;

/// What is asked of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Analysis {
    /// Its motion under forces.
    Dynamics,
    /// The motion its drives prescribe.
    Kinematics,
}

/// A run that can be made.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) analysis: Analysis,
    /// Whether the model has closed loops, constraints or variables.
    pub(crate) constrained: bool,
    pub(crate) simulation: Simulation,
    pub(crate) recursive: bool,
    pub(crate) reactions: bool,
    /// Whether objectives name multipliers or reactions.
    pub(crate) judges_forces: bool,
    /// Whether curves of everything are kept for a page.
    pub(crate) keeps_history: bool,
    /// Options that do nothing for this model.
    pub(crate) idle: Vec<&'static str>,
}

impl Settings {
    /// Of a motion under forces.
    pub(crate) fn of_dynamics(
        defaults: &Simulation,
        constrained: bool,
        common: &Common,
        output_step: Option<f64>,
        method: &Method,
    ) -> Result<Settings, Failure> {
        let mut simulation = defaults.clone();
        settle_span(&mut simulation, common, output_step)?;
        settle_method(&mut simulation, constrained, method)?;
        settle_coefficients(&mut simulation, method)?;
        let idle = settle_details(&mut simulation, constrained, method)?;
        let steps = (simulation.end - simulation.begin) / simulation.step;
        if simulation.integrator != Integrator::DormandPrince {
            let remedy = "choose a larger `--step` or `--integrator dormand_prince`";
            refuse_too_many(steps, remedy)?;
        }
        Ok(Settings {
            analysis: Analysis::Dynamics,
            constrained,
            simulation,
            recursive: false,
            reactions: false,
            judges_forces: false,
            keeps_history: false,
            idle,
        })
    }

    /// Accelerations by the recursion of articulated bodies.
    pub(crate) fn make_recursive(&mut self) -> Result<(), Failure> {
        if self.constrained || !self.is_explicit() {
            return Err(Failure::usage(
                "`--recursive` is for explicit integrators of models without closed loops and constraints",
            ));
        }
        self.recursive = true;
        Ok(())
    }

    /// Of `mbs kinematics`.
    pub(crate) fn of_kinematics(
        defaults: &Simulation,
        constrained: bool,
        common: &Common,
        output_step: Option<f64>,
    ) -> Result<Settings, Failure> {
        let mut simulation = defaults.clone();
        settle_span(&mut simulation, common, output_step)?;
        refuse_too_many((simulation.end - simulation.begin) / simulation.step, "choose a larger `--step`")?;
        Ok(Settings {
            analysis: Analysis::Kinematics,
            constrained,
            simulation,
            recursive: false,
            reactions: false,
            judges_forces: false,
            keeps_history: false,
            idle: Vec::new(),
        })
    }

    /// Whether its steps are explicit.
    pub(crate) fn is_explicit(&self) -> bool {
        self.analysis == Analysis::Dynamics && is_explicit(self.simulation.integrator)
    }

    /// Whether it controls its steps.
    pub(crate) fn is_adaptive(&self) -> bool {
        self.is_explicit() && self.simulation.integrator == Integrator::DormandPrince
    }

    /// The equations it needs.
    pub(crate) fn bundles(&self) -> Vec<BundleKind> {
        let mut bundles = vec![BundleKind::Outputs, BundleKind::Objectives];
        if self.analysis == Analysis::Dynamics {
            bundles.push(BundleKind::Energy);
        }
        if self.reactions {
            bundles.push(BundleKind::Reactions);
        }
        if self.constrained || !self.is_explicit() {
            bundles.extend(BundleKind::COORDINATE_FORM);
        }
        if self.analysis == Analysis::Kinematics && self.judges_forces {
            bundles.push(BundleKind::ConstrainedDynamics);
        }
        match (self.is_explicit(), self.constrained) {
            (true, true) => {
                bundles.extend([BundleKind::ConstrainedDynamics, BundleKind::ConstraintCorrection]);
            }
            (true, false) if self.recursive => bundles.push(BundleKind::ForwardDynamicsRecursive),
            (true, false) => bundles.push(BundleKind::ForwardDynamics),
            (false, _) => {}
        }
        bundles
    }
}

fn is_explicit(integrator: Integrator) -> bool {
    matches!(integrator, Integrator::Rk4 | Integrator::DormandPrince)
}

fn settle_span(
    simulation: &mut Simulation,
    common: &Common,
    output_step: Option<f64>,
) -> Result<(), Failure> {
    simulation.end = common.end.unwrap_or(simulation.end);
    simulation.step = common.step.unwrap_or(simulation.step);
    simulation.output_step = output_step.or(simulation.output_step);
    let (begin, end) = (simulation.begin, simulation.end);
    if end <= begin {
        let (begin, end) = (short(begin), short(end));
        return Err(Failure::usage(format!("the end, {end} s, must lie after the begin, {begin} s")));
    }
    Ok(())
}

/// Days of work: nobody means it.
const MAX_STEPS: f64 = 1e10;

fn refuse_too_many(steps: f64, remedy: &str) -> Result<(), Failure> {
    if steps.is_finite() && steps > MAX_STEPS {
        return Err(Failure::usage(format!("{} steps are too many; {remedy}", short(steps))));
    }
    Ok(())
}

/// Formulation and integrator.
fn settle_method(simulation: &mut Simulation, constrained: bool, arguments: &Method) -> Result<(), Failure> {
    if let Some(name) = arguments.integrator {
        let new: Integrator = name.into();
        // The same integrator keeps what the model says of it.
        if new.keyword() != simulation.integrator.keyword() {
            simulation.integrator = new;
        }
    }
    simulation.formulation = arguments.formulation.map_or(simulation.formulation, Formulation::from);
    let clash = is_explicit(simulation.integrator) && simulation.formulation == Formulation::Ali3p;
    if !constrained || !clash {
        return Ok(());
    }
    match (arguments.integrator, arguments.formulation) {
        (Some(_), Some(_)) => {
            let integrator = simulation.integrator.keyword();
            Err(Failure::usage(format!(
                "`{integrator}` is explicit, and `ali3p` needs an implicit integrator: take `trapezoidal`, `newmark` or \
                 `generalized_alpha`; or, with `{integrator}`, the formulation `index1` or `penalty`"
            )))
        }
        (None, Some(_)) => {
            simulation.integrator = Integrator::Trapezoidal;
            Ok(())
        }
        (_, None) => {
            simulation.formulation = Formulation::Index1;
            Ok(())
        }
    }
}

/// An option that belongs to something else than what was chosen.
fn belongs(option: &str, owners: &str, chosen: &str) -> Failure {
    Failure::usage(format!("`{option}` belongs to {owners}, not to `{chosen}`"))
}

/// What belongs to one integrator.
fn settle_coefficients(simulation: &mut Simulation, arguments: &Method) -> Result<(), Failure> {
    let chosen = simulation.integrator.keyword();
    let within = |option: &str, range: &str, value: f64, right: bool| match right {
        true => Ok(value),
        false => Err(Failure::usage(format!("`{option}` must be {range}, not {}", short(value)))),
    };
    if let Some(x) = arguments.beta {
        let Integrator::Newmark { beta, .. } = &mut simulation.integrator else {
            return Err(belongs("--beta", "`newmark`", chosen));
        };
        *beta = within("--beta", "above 0 and at most 1", x, x > 0.0 && x <= 1.0)?;
    }
    if let Some(x) = arguments.gamma {
        let Integrator::Newmark { gamma, .. } = &mut simulation.integrator else {
            return Err(belongs("--gamma", "`newmark`", chosen));
        };
        *gamma = within("--gamma", "from 0.5 to 1", x, (0.5..=1.0).contains(&x))?;
    }
    if let Some(x) = arguments.spectral_radius {
        let Integrator::GeneralizedAlpha { spectral_radius } = &mut simulation.integrator else {
            return Err(belongs("--spectral-radius", "`generalized_alpha`", chosen));
        };
        *spectral_radius = within("--spectral-radius", "from 0 to 1", x, (0.0..=1.0).contains(&x))?;
    }
    for (option, given, setting) in [
        ("--rtol", arguments.rtol, &mut simulation.relative_tolerance),
        ("--atol", arguments.atol, &mut simulation.absolute_tolerance),
    ] {
        if given.is_some() && simulation.integrator != Integrator::DormandPrince {
            return Err(belongs(option, "`dormand_prince`", chosen));
        }
        *setting = given.unwrap_or(*setting);
    }
    Ok(())
}

/// Penalty, projection and Newton's method. Gives the options that do nothing because there is nothing to enforce.
fn settle_details(
    simulation: &mut Simulation,
    constrained: bool,
    arguments: &Method,
) -> Result<Vec<&'static str>, Failure> {
    let chosen = simulation.formulation.keyword();
    let mut idle = Vec::new();
    if !constrained {
        idle.extend(arguments.formulation.map(|_| "--formulation"));
        idle.extend(arguments.penalty.map(|_| "--penalty"));
        idle.extend(arguments.projection.map(|_| "--projection"));
    }
    if let Some(penalty) = arguments.penalty {
        if constrained && simulation.formulation == Formulation::Index1 {
            return Err(belongs("--penalty", "`ali3p` and `penalty`", chosen));
        }
        if !(penalty > 0.0 && penalty.is_finite()) {
            let message = format!("`--penalty` must be positive and finite, not {}", short(penalty));
            return Err(Failure::usage(message));
        }
        simulation.penalty = Some(penalty);
    }
    if let Some(projection) = arguments.projection {
        if constrained && simulation.formulation != Formulation::Ali3p {
            return Err(belongs("--projection", "`ali3p`", chosen));
        }
        simulation.projection = projection.into();
    }
    let newton = [
        arguments.newton_tolerance.map(|_| "--newton-tolerance"),
        arguments.newton_iterations.map(|_| "--newton-iterations"),
    ];
    if let Some(option) = newton.into_iter().flatten().next().filter(|_| is_explicit(simulation.integrator)) {
        return Err(belongs(option, "implicit integrators", simulation.integrator.keyword()));
    }
    if let Some(tolerance) = arguments.newton_tolerance {
        if !(tolerance > 0.0 && tolerance.is_finite()) {
            let message =
                format!("`--newton-tolerance` must be positive and finite, not {}", short(tolerance));
            return Err(Failure::usage(message));
        }
        simulation.newton_tolerance = tolerance;
    }
    simulation.newton_iterations = arguments.newton_iterations.unwrap_or(simulation.newton_iterations);
    Ok(idle)
}
