//! A model as the command line names it: its file, its case, its parameters.

use super::choices::some;
use super::failure::Failure;
use super::files::{self, Text};
use super::progress::Ticker;
use super::settings;
use crate::arguments::CoordinatesName;
use mbs_codegen::analysis::Analysed;
use mbs_codegen::diagnostics::Diagnostics;
use mbs_codegen::model::{Case, Coordinates, Model};
use mbs_engine::ParameterError;
use mbs_engine::simulation::{InstanceError, independent};
use std::path::Path;

/// Reads a model in these coordinates, or in those of its file; its problems go to standard error.
pub(crate) fn read(path: &Path, coordinates: Option<CoordinatesName>) -> Result<Analysed, Failure> {
    let file = files::read(path)?;
    match mbs_codegen::analyse_in(&file.name, &file.text, coordinates.map(Coordinates::from)) {
        Ok((model, warnings)) => {
            show_warnings(&file, &warnings);
            Ok(model)
        }
        Err(diagnostics) => Err(Failure::of_file(&file, &diagnostics)),
    }
}

/// Shows the warnings of a model on standard error.
pub(crate) fn show_warnings(file: &Text, warnings: &Diagnostics) {
    if !warnings.is_empty() {
        files::complain(&warnings.render(&file.name, &file.text));
    }
}

/// The case of this name; the command line is to blame if there is none.
pub(crate) fn find_case<'a>(model: &'a Model, name: Option<&str>) -> Result<Option<&'a Case>, Failure> {
    mbs_codegen::find_case(model, name).map_err(|diagnostics| {
        let texts = diagnostics.iter().map(|d| match d.help.is_empty() {
            true => d.message.clone(),
            false => format!("{}; {}", d.message, d.help),
        });
        Failure::usage(texts.collect::<Vec<_>>().join("\n"))
    })
}

/// Writes the equations of a model, and shows progress.
pub(crate) fn write_equations<T>(
    model: &Model,
    write: impl FnOnce() -> Result<T, InstanceError>,
) -> Result<T, Failure> {
    let ticker = Ticker::new(format!("writing the equations of {}", model.name));
    let written = write();
    drop(ticker);
    written.map_err(|error| explain(model, &error))
}

/// What is wrong with a model or the way it is asked to run.
pub(crate) fn explain(model: &Model, error: &InstanceError) -> Failure {
    match error {
        InstanceError::Setting(error) => settings::refuse(error),
        InstanceError::HeldSignal { input, message } => Failure::usage(format!(
            "{message}; take a fixed step, for example by `--integrator rk4`, or write `hold: signal` for `{input}` in the model"
        )),
        InstanceError::NoProjections { .. } => Failure::usage(error.to_string()),
        InstanceError::Parameter { error: ParameterError::Unknown { nearest: None, .. }, .. } => {
            let names: Vec<&str> = independent(model).collect();
            let there = match names.is_empty() {
                true => "; the model has none".into(),
                false => format!("; there are: {}", some(&names)),
            };
            Failure::usage(format!("{error}{there}"))
        }
        InstanceError::Parameter { .. }
        | InstanceError::Dependent { .. }
        | InstanceError::Together { .. } => Failure::usage(error.to_string()),
        _ => Failure::error(error.to_string()),
    }
}
