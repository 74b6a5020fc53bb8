//! Options of the command line as the engine's settings, and its complaints in their words.

use super::choices::some;
use super::failure::Failure;
use super::{files, model};
use crate::arguments::{Common, EngineName, Method};
use crate::output::number::short;
use mbs_codegen::analysis::Analysed;
use mbs_codegen::diagnostics::{Span, nearest};
use mbs_codegen::model::Formulation;
use mbs_engine::simulation::{Overrides, Setting, SettingError, Settings, simulation};
use mbs_engine::{Interpreted, Refusal, machine_code_availability};
use std::sync::atomic::{AtomicBool, Ordering};

/// What the options ask for.
pub(crate) fn overrides(common: &Common, output_step: Option<f64>, method: Option<&Method>) -> Overrides {
    let span = Overrides { end: common.end, step: common.step, output_step, ..Overrides::default() };
    let Some(method) = method else { return span };
    Overrides {
        formulation: method.formulation.map(Into::into),
        integrator: method.integrator.map(Into::into),
        beta: method.beta,
        gamma: method.gamma,
        spectral_radius: method.spectral_radius,
        penalty: method.penalty,
        projection: method.projection.map(Into::into),
        newton_tolerance: method.newton_tolerance,
        newton_iterations: method.newton_iterations,
        relative_tolerance: method.rtol,
        absolute_tolerance: method.atol,
        max_step: method.max_step,
        max_steps: method.max_steps,
        max_rejected: method.max_rejected,
        objectives_in_error: method.objectives_in_error,
        ..span
    }
}

/// Options of an integrator have no meaning for a motion that drives prescribe.
pub(crate) fn refuse_method(overrides: &Overrides) -> Result<(), Failure> {
    let Overrides { end, step, output_step, .. } = *overrides;
    if *overrides == (Overrides { end, step, output_step, ..Overrides::default() }) {
        return Ok(());
    }
    Err(Failure::usage(
        "`--kinematics` integrates nothing: leave out the options of formulation and integrator",
    ))
}

/// Puts the coordinates that `--independent` names in the place of the model's.
pub(crate) fn name_independent(
    model: &mut Analysed,
    common: &Common,
    method: &Method,
) -> Result<(), Failure> {
    let Some(names) = &method.independent else { return Ok(()) };
    let case = model::find_case(model, common.case.as_deref())?;
    let formulation = method.formulation.map_or(simulation(model, case).formulation, Into::into);
    if formulation != Formulation::MatrixR {
        let formulation = formulation.keyword();
        return Err(Failure::usage(format!(
            "`--independent` belongs to `matrix_r`, not to `{formulation}`: add `--formulation matrix_r`"
        )));
    }
    let all: Vec<String> =
        model.tree.single_coordinates(model).into_iter().map(|(_, _, name)| name).collect();
    let mut named = Vec::new();
    let mut tied = false;
    for name in names.iter().map(|name| name.trim()) {
        if !all.iter().any(|own| own == name) {
            if model.model.tie_point(name, Span::default()) {
                tied = true;
                named.push((name.to_string(), Span::default()));
                continue;
            }
            let points = model.point_coordinates();
            let all: Vec<&str> = all.iter().chain(&points).map(String::as_str).collect();
            let near = nearest(name, all.iter().copied()).map(|near| format!("; did you mean `{near}`?"));
            let near = near.unwrap_or_else(|| format!("; there are {}", some(&all)));
            return Err(Failure::usage(format!("there is no coordinate `{name}` to be independent{near}")));
        }
        named.push((name.to_string(), Span::default()));
    }
    if tied {
        *model = Analysed::of(model.model.clone());
    }
    model.model.simulation.independent = named.clone();
    model.model.cases.iter_mut().for_each(|case| case.simulation.independent = named.clone());
    Ok(())
}

/// The option of a setting.
fn option(setting: Setting) -> String {
    match setting {
        Setting::RelativeTolerance => "--rtol".into(),
        Setting::AbsoluteTolerance => "--atol".into(),
        setting => format!("--{}", setting.keyword().replace('_', "-")),
    }
}

/// What is wrong with the command line.
pub(crate) fn refuse(error: &SettingError) -> Failure {
    let message = error.describe(option, short);
    Failure::usage(match error {
        SettingError::TooManySteps { adaptive_helps: true, .. } => {
            format!("{message}; choose a larger `--step` or `--integrator dormand_prince`")
        }
        SettingError::TooManySteps { .. } => format!("{message}; choose a larger `--step`"),
        SettingError::NotRecursive => {
            "`--recursive` is for explicit integrators of models without closed loops and constraints".into()
        }
        _ => message,
    })
}

/// Chooses how the equations of a run are evaluated; tells where machine code would be taken, but cannot be.
pub(crate) fn choose_engine(model: &mut Interpreted, engine: EngineName, settings: &Settings) {
    let (chosen, fusing) = engine.into();
    model.set_engine(chosen, settings.expected_evaluations(), fusing);
    if engine != EngineName::Tape
        && let Some(note) = note_once(machine_code_availability(fusing), &NOTED)
    {
        files::complain(&note);
    }
}

/// Whether it was said that there is no machine code.
static NOTED: AtomicBool = AtomicBool::new(false);

/// What is said where there is no machine code, the first time.
fn note_once(available: Result<(), Refusal>, noted: &AtomicBool) -> Option<String> {
    let why = available.err()?;
    (!noted.swap(true, Ordering::Relaxed)).then(|| format!("note: the interpreter runs alone: {why}\n"))
}

/// Tells of options that do nothing.
pub(crate) fn note_idle(settings: &Settings) {
    for setting in &settings.idle {
        let option = option(*setting);
        files::complain(&format!(
            "note: `{option}` does nothing: the model has neither closed loops nor constraints\n"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_processor_is_noted_once() {
        let noted = AtomicBool::new(false);
        assert_eq!(note_once(Ok(()), &noted), None);
        let note = note_once(Err(Refusal::Processor), &noted).expect("a note");
        assert_eq!(
            note,
            "note: the interpreter runs alone: machine code is written for x86-64 with AVX only\n"
        );
        assert_eq!(note_once(Err(Refusal::Memory("denied".into())), &noted), None);
    }
}
