//! A model that is differentiated: what `mbs gradient` and `mbs verify` have in common.
//!
//! Input: a model file and the names of the command line. Output: the model with the list by which it is differentiated.

use super::choices::some;
use super::failure::Failure;
use super::{files, model};
use crate::arguments::{By, Common, CoordinatesName};
use mbs_codegen::analysis::Analysed;
use mbs_codegen::model::sensitivity::Influences;
use mbs_codegen::model::{Case, InputId, Model, SensitivityRef};
use mbs_engine::gradient::{NameError, by_names};
use mbs_engine::simulation::{self, Settings, independent};
use mbs_runtime::StepError;

/// Reads the model; the list of the command line replaces the model's.
pub(crate) fn read(common: &Common, by: &By) -> Result<Analysed, Failure> {
    read_in(common, by, common.coordinates)
}

/// The same in these coordinates, or in those of its file.
pub(crate) fn read_in(
    common: &Common,
    by: &By,
    coordinates: Option<CoordinatesName>,
) -> Result<Analysed, Failure> {
    let mut model = model::read(&common.model, coordinates)?;
    let case = model::find_case(&model, common.case.as_deref())?;
    if let Some(names) = &by.sensitivity {
        let names = names.iter().map(|name| name.trim()).filter(|name| !name.is_empty());
        let list = by_names(&model, names).map_err(|error| {
            let there = match error {
                NameError::Unknown { nearest: None, .. } => {
                    format!("; there are: {}", some(&names_of(&model)))
                }
                _ => String::new(),
            };
            Failure::usage(format!("cannot differentiate: {error}{there}"))
        })?;
        let influences = Influences::new(&model);
        let influence = case.map_or_else(|| influences.of_model(), |case| influences.of_case(case));
        for one in list.iter().filter(|one| !influence.has(**one)) {
            let name = model.sensitivity_name(*one);
            files::complain(&format!("warning: `{name}` changes neither the motion nor an objective\n"));
        }
        model.model.sensitivity = list;
        model.model.cases.iter_mut().for_each(|case| case.sensitivity = None);
    }
    Ok(model)
}

/// Appends inputs to the list, those that are not in it.
pub(crate) fn append_inputs(model: &mut Analysed, names: &[String]) -> Result<(), Failure> {
    for name in names.iter().map(|name| name.trim()) {
        let Some(place) = model.inputs.iter().position(|input| input.name == name) else {
            let inputs: Vec<&str> = model.inputs.iter().map(|input| input.name.as_str()).collect();
            return Err(Failure::usage(match inputs.is_empty() {
                true => format!("there is no input `{name}`: the model has none"),
                false => format!("there is no input `{name}`; there are {}", some(&inputs)),
            }));
        };
        let input = SensitivityRef::Input(InputId(place as u32));
        let lists = model.model.cases.iter_mut().filter_map(|case| case.sensitivity.as_mut());
        for list in lists.chain([&mut model.model.sensitivity]) {
            if !list.contains(&input) {
                list.push(input);
            }
        }
    }
    Ok(())
}

/// A failure if there is nothing to differentiate by.
pub(crate) fn check_list(model: &Model, common: &Common) -> Result<(), Failure> {
    let case = model::find_case(model, common.case.as_deref())?;
    if !model.sensitivity_under(case).is_empty() {
        return Ok(());
    }
    let names = names_of(model);
    if names.is_empty() {
        return Err(Failure::error(
            "nothing to differentiate by: the model has no parameters and no inputs; give a name to what should vary, under \
             `parameters`",
        ));
    }
    let first = &names[..names.len().min(2)];
    Err(Failure::error(format!(
        "nothing to differentiate by: write `sensitivity: [{}]` in the model, or `--sensitivity {}`; there are {}",
        first.join(", "),
        first.join(","),
        some(&names),
    )))
}

/// Names of what a model can be differentiated by.
fn names_of(model: &Model) -> Vec<&str> {
    independent(model).chain(model.inputs.iter().map(|input| input.name.as_str())).collect()
}

/// The force, constraint or objective that is not finite where a run failed, with the time and the operation that made it so; empty if all
/// are. The run is made again without derivatives.
pub(crate) fn undefined(
    source: &Analysed,
    case: Option<&Case>,
    set: &[(String, f64)],
    settings: &Settings,
    error: &StepError,
) -> String {
    if matches!(
        error,
        StepError::Setting { .. } | StepError::Length { .. } | StepError::NotDifferentiable { .. }
    ) {
        return String::new();
    }
    let found = simulation::undefined_along(source, case, set, settings);
    found.map_or(String::new(), |what| format!("\n{what}"))
}

/// What the command knows beyond the error.
pub(crate) fn remedy(error: &StepError) -> &'static str {
    match error {
        StepError::Incompatible { .. } => "\nthe list is `sensitivity` in the model, or `--sensitivity` here",
        _ => "",
    }
}
