//! A model that is differentiated: what `mbs gradient` and `mbs verify` have in common.
//!
//! Enters: a model file and the names of the command line. Leaves: the model with the list by which it is differentiated.

use crate::arguments::{By, Common};
use crate::failure::Failure;
use crate::files;
use mbs_codegen::model::sensitivity::Influences;
use mbs_codegen::model::{Model, ParameterValue};
use mbs_engine::gradient::by_names;
use mbs_runtime::StepError;

/// Names in a message beyond these are left out.
const NAMED: usize = 12;

/// Reads the model; the list of the command line stands in place of its own.
pub(crate) fn read(common: &Common, by: &By) -> Result<Model, Failure> {
    let mut model = crate::check::read_model(&common.model)?;
    let case = crate::check::find_case(&model, common.case.as_deref())?;
    if let Some(names) = &by.sensitivity {
        let names = names.iter().map(|name| name.trim()).filter(|name| !name.is_empty());
        let list = by_names(&model, names)
            .map_err(|error| Failure::usage(format!("cannot differentiate: {error}")))?;
        let influences = Influences::new(&model);
        let influence = case.map_or_else(|| influences.of_model(), |case| influences.of_case(case));
        for one in list.iter().filter(|one| !influence.has(**one)) {
            let name = model.sensitivity_name(*one);
            files::complain(&format!("warning: `{name}` changes neither the motion nor an objective\n"));
        }
        model.sensitivity = list;
        model.cases.iter_mut().for_each(|case| case.sensitivity = None);
    }
    Ok(model)
}

/// A failure if there is nothing to differentiate by.
pub(crate) fn check_list(model: &Model, common: &Common) -> Result<(), Failure> {
    let case = crate::check::find_case(model, common.case.as_deref())?;
    if !model.sensitivity_under(case).is_empty() {
        return Ok(());
    }
    let independent = model.parameters.iter().filter(|p| !matches!(p.value, ParameterValue::Derived(_)));
    let names: Vec<&str> =
        independent.map(|p| p.name.as_str()).chain(model.inputs.iter().map(|i| i.name.as_str())).collect();
    if names.is_empty() {
        return Err(Failure::error(
            "nothing to differentiate by: the model has no parameters and no inputs; give a name to what should vary, under \
             `parameters`",
        ));
    }
    let more = if names.len() > NAMED { ", …" } else { "" };
    let some = names[..names.len().min(NAMED)].join(", ");
    let first = &names[..names.len().min(2)];
    Err(Failure::error(format!(
        "nothing to differentiate by: write `sensitivity: [{}]` in the model, or `--sensitivity {}`; there are {some}{more}",
        first.join(", "),
        first.join(","),
    )))
}

/// What the command knows beyond the error.
pub(crate) fn remedy(error: &StepError) -> &'static str {
    match error {
        StepError::Incompatible { .. } => "\nthe list is `sensitivity` in the model, or `--sensitivity` here",
        _ => "",
    }
}
