//! What single precision cannot represent, refused by name.
//!
//! Input: a program that is to be printed for `f32`. Output: errors, each with what is wrong and the remedy. What follows the precision by
//! itself (convergence tests, default penalties, conditions on parameters) is not judged here.

use super::{Program, ScalarType};
use crate::bundle::{Bundle, Operand, Segment};
use crate::diagnostics::Diagnostics;
use crate::model::Simulation;

/// Least relative tolerance of step control, in units of ε: the error estimate of a step is a sum of seven rounded stages.
const LEAST_TOLERANCE: f64 = 16.0;

impl Program {
    /// Settings of the model or a case as the program's scalar has them: default tolerances of step control are √ε.
    pub fn in_scalar(&self, simulation: &Simulation) -> Simulation {
        let (mut simulation, defaults) = (simulation.clone(), Simulation::default());
        if self.options.scalar == ScalarType::F32 {
            let relative = f32::EPSILON.sqrt().into();
            let unset = |value: &mut f64, default: f64, replacement: f64| {
                if *value == default {
                    *value = replacement;
                }
            };
            unset(&mut simulation.relative_tolerance, defaults.relative_tolerance, relative);
            // As far below the relative one as in double precision.
            let ratio = defaults.absolute_tolerance / defaults.relative_tolerance;
            unset(&mut simulation.absolute_tolerance, defaults.absolute_tolerance, ratio * relative);
        }
        simulation
    }

    /// Refuses what single precision cannot represent.
    pub fn refuse_in_single_precision(&self) -> Result<(), Diagnostics> {
        let mut diagnostics = Diagnostics::new();
        if self.options.scalar == ScalarType::F32 {
            self.refuse_numbers(&mut diagnostics);
            self.refuse_settings(&mut diagnostics);
        }
        if diagnostics.has_errors() { Err(diagnostics) } else { Ok(()) }
    }

    fn refuse_numbers(&self, diagnostics: &mut Diagnostics) {
        for (parameter, name) in self.parameters.iter().map(|p| (p, &p.name)) {
            if let Some(value) = parameter.defaults.iter().copied().find(|&value| is_lost(value)) {
                diagnostics
                    .error(
                        Default::default(),
                        format!("parameter `{name}` = {value:e} has no value in `f32`"),
                    )
                    .help("choose other units, or generate for `f64`");
            }
        }
        for bundle in &self.bundles {
            if let Some(value) = constants(bundle).into_iter().find(|&value| is_lost(value)) {
                diagnostics
                    .error(
                        Default::default(),
                        format!(
                            "bundle `{}` computes with {value:e}, which has no value in `f32`",
                            bundle.name
                        ),
                    )
                    .help("choose other units, or generate for `f64`");
            }
        }
    }

    fn refuse_settings(&self, diagnostics: &mut Diagnostics) {
        let of_cases = self.cases.iter().map(|case| &case.simulation);
        for simulation in [&self.simulation].into_iter().chain(of_cases) {
            self.refuse_settings_of(simulation, diagnostics);
        }
    }

    fn refuse_settings_of(&self, simulation: &Simulation, diagnostics: &mut Diagnostics) {
        let epsilon = self.options.scalar.epsilon();
        let &Simulation { begin, end, step, integrator, .. } = simulation;
        let latest = begin.abs().max(end.abs());
        if step <= epsilon * latest {
            diagnostics
                .error(
                    Default::default(),
                    format!("in `f32` the time {latest} does not advance by the step {step:e}"),
                )
                .help("simulate a shorter time, or generate for `f64`");
        }
        let least = LEAST_TOLERANCE * epsilon;
        let tolerance = self.in_scalar(simulation).relative_tolerance;
        if integrator.controls_steps() && tolerance < least {
            diagnostics
                .error(
                    Default::default(),
                    format!(
                        "integrator `{}` cannot keep the relative tolerance {tolerance:e} in `f32`, whose rounding is larger",
                        integrator.keyword()
                    ),
                )
                .help(format!(
                    "allow at least {least:.1e}, leave it out (then it is the square root of the rounding), or generate for `f64`"
                ));
        }
    }
}

/// Whether a number becomes infinite in single precision, or zero.
fn is_lost(value: f64) -> bool {
    let single = value as f32;
    !single.is_finite() || (single == 0.0 && value != 0.0)
}

/// All numbers that a bundle is printed with.
fn constants(bundle: &Bundle) -> Vec<f64> {
    let mut found: Vec<f64> = bundle.tables.iter().flatten().copied().collect();
    for segment in &bundle.segments {
        if let Segment::Flat(statements) = segment {
            for statement in statements {
                statement.operands(|operand| {
                    if let Operand::Constant(value) = operand {
                        found.push(value);
                    }
                });
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use crate::program::{Options, ScalarType};
    use crate::{Request, generate};

    /// A pendulum of this mass under these simulation settings.
    fn printed(mass: &str, simulation: &str) -> Result<String, String> {
        let text = format!(
            "mbs: 1\nname: m\nparameters: {{m: {mass}}}\nbodies: {{rod: {{mass: m, com: [0, -1, 0]}}}}\n\
             joints: {{hinge: {{type: revolute, parent: ground, child: rod, axis: [0, 0, 1]}}}}\n\
             simulation: {{{simulation}}}\n"
        );
        let options = Options { scalar: ScalarType::F32, ..Options::default() };
        let generated = generate("m.yaml", &text, &Request { options, ..Request::default() });
        generated.map(|generated| generated.code).map_err(|problems| problems.render("m.yaml", &text))
    }

    #[test]
    fn what_single_precision_cannot_represent_is_refused() {
        let method = "integrator: dormand_prince, tolerance: {relative: 1e-7}";
        for (mass, simulation, message) in [
            ("1e39", "end: 1", "parameter `m` = 1e39 has no value in `f32`"),
            ("1e-50", "end: 1", "parameter `m` = 1e-50 has no value in `f32`"),
            ("1", "end: 1e5, step: 1e-3", "the time 100000 does not advance by the step 1e-3"),
            ("1", method, "`dormand_prince` cannot keep the relative tolerance 1e-7 in `f32`"),
        ] {
            let refused = printed(mass, simulation).expect_err(message);
            assert!(refused.contains(message) && refused.contains("generate for `f64`"), "{refused}");
        }
    }

    #[test]
    fn default_tolerances_follow_the_scalar() {
        let code = printed("1", "integrator: dormand_prince").expect("a model");
        assert!(code.contains("Adaptive::new(0.0003452669770922512, 0.000003452669770922512)"), "{code}");
        let code = printed("1", "integrator: dormand_prince, tolerance: {relative: 1e-3}").expect("a model");
        assert!(code.contains("Adaptive::new(0.001, 0.000003452669770922512)"), "{code}");
    }
}
