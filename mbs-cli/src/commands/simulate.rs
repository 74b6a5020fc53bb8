//! `mbs simulate` and `mbs kinematics`: choose the settings, run the model, show the result.

use crate::arguments::{Common, Kinematics, Method, Results, Simulate};
use crate::output::{json, text};
use crate::session::execution::{execute, prepare};
use crate::session::failure::Failure;
use crate::session::settings::{name_independent, overrides};
use crate::session::{files, model, results::check_out};
use mbs_codegen::model::Simulation;
use mbs_engine::simulation::{SettingError, Settings};

/// Runs a model and shows the result.
pub(crate) fn simulate(arguments: &Simulate) -> Result<(), Failure> {
    let Simulate { common, results, method, .. } = arguments;
    let overrides = overrides(common, results.output_step, Some(method));
    analyse(common, results, Some(method), |defaults, constrained| {
        let mut settings = Settings::of_dynamics(defaults, constrained, &overrides)?;
        settings.reactions = arguments.reactions;
        if arguments.recursive {
            settings.make_recursive()?;
        }
        Ok(settings)
    })
}

/// Moves a fully driven mechanism and shows the result, or its gradient.
pub(crate) fn kinematics(arguments: &Kinematics) -> Result<(), Failure> {
    if arguments.differentiates() {
        return super::gradient::driven(arguments);
    }
    let Kinematics { common, results, .. } = arguments;
    let overrides = overrides(common, results.output_step, None);
    analyse(common, results, None, |defaults, constrained| {
        Settings::of_kinematics(defaults, constrained, &overrides)
    })
}

fn analyse(
    common: &Common,
    results: &Results,
    method: Option<&Method>,
    settle: impl FnOnce(&Simulation, bool) -> Result<Settings, SettingError>,
) -> Result<(), Failure> {
    let to_stdout = check_out("--out", results.out.as_deref(), common)?;
    let mut source = model::read(&common.model, common.coordinates)?;
    if let Some(method) = method {
        name_independent(&mut source, common, method)?;
    }
    let prepared = prepare(common, &source, settle, |_, _| Vec::new())?;
    let done = execute(results, &prepared)?;
    let Some(trouble) = done.trouble(&prepared) else { return Ok(()) };
    let shown = done.shown(common, &prepared);
    if common.json {
        files::print(&(json::pretty(&json::report(&shown, trouble.message())) + "\n"))?;
    } else if trouble.message().is_none() {
        let report = text::report(&shown);
        if to_stdout { files::complain(&report) } else { files::print(&report)? }
    }
    trouble.outcome()
}
