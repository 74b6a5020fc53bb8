//! `mbs kinematics --gradient`: move a fully driven mechanism with its derivatives, and show objectives and their gradient.

use super::further::Further;
use super::{Shown, choose, explain, finish};
use crate::arguments::Kinematics;
use crate::output::shown::Written;
use crate::session::execution::warn_of_redundancy;
use crate::session::failure::Failure;
use crate::session::results::{Watcher, check_out};
use crate::session::settings::{self, overrides};
use crate::session::{differentiated, files, model};
use mbs_codegen::model::GradientMethod;
use mbs_engine::gradient::kinematics;
use mbs_engine::simulation::{
    Column, InstanceError, RunFailure, Settings, interpret, refuse_unfit, simulation,
};

/// Moves a model with its derivatives and shows the gradient.
pub(crate) fn driven(arguments: &Kinematics) -> Result<(), Failure> {
    let Kinematics { common, results, by, objectives, trajectories: file, by_method, .. } = arguments;
    if results.out.is_some() {
        return Err(Failure::usage(
            "`--out` writes the motion, without derivatives: leave `--sensitivity` out, or write `--trajectories FILE`",
        ));
    }
    let to_stdout = check_out("--trajectories", file.as_deref(), common)?;
    let source = differentiated::read(common, by)?;
    differentiated::check_list(&source, common)?;
    let chosen = choose(&source, objectives.as_deref(), file.is_some())?;
    let case = model::find_case(&source, common.case.as_deref())?;
    let overrides = overrides(common, results.output_step, None);
    let settings = Settings::of_kinematics(simulation(&source, case), source.is_constrained(), &overrides);
    let settings = settings.map_err(|error| settings::refuse(&error))?;
    refuse_unfit(&source, case, &settings).map_err(|error| model::explain(&source, &error))?;
    let write = || interpret(&source, case, &common.set, kinematics::bundles());
    let mut interpreted = model::write_equations(&source, write)?;
    if interpreted.program().coordinates.is_empty() {
        return Err(model::explain(&source, &InstanceError::NothingMoves));
    }
    settings::choose_engine(&mut interpreted, common.engine, &settings);
    let failed =
        |failure: &RunFailure, written: Option<&Written<'_>>| explain(&interpreted, failure, written);
    let asked = by_method.map_or(GradientMethod::Auto, Into::into);
    let choice = kinematics::choose(&interpreted, asked, file.is_some());
    let choice = choice.map_err(|error| failed(&RunFailure::Step(error), None))?;
    let forces = kinematics::judges_forces(&interpreted);
    let columns = kinematics::columns(interpreted.program(), forces);
    let columns: Vec<Column> = columns.into_iter().map(|name| Column::new(name, "")).collect();
    let mut watcher = Watcher::new(file.as_deref(), &columns, results.units, &settings.simulation)?;
    let outcome = kinematics::simulate(&interpreted, &settings, &choice, &mut watcher);
    let Some(((ran, start), written)) = finish(watcher, outcome, failed)? else { return Ok(()) };
    warn_of_redundancy(&source, &start);
    for jump in &ran.jumps {
        files::complain(&format!("warning: {jump}\n"));
    }
    let (told, further) = (Some(&choice), Further::default());
    Shown { common, model: &interpreted, settings: &settings, ran, chosen, written, told, further }
        .print(to_stdout)
}
