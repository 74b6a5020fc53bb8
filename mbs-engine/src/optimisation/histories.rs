//! Input histories as unknowns: a model whose inputs are expressions of array parameters.
//!
//! Input: a model and the [`History`] of each varied input. Output: the model with an array parameter for each, named like the input, in place of
//! the input, and the unknowns that are its elements. A gradient by them is one by parameters, so that the adjoint has all of them at once.

use super::problem::{ProblemError, Setup};
use crate::simulation::{InstanceError, Settings, simulation};
use mbs_codegen::analysis::Analysed;
use mbs_codegen::model::evaluate::Values;
use mbs_codegen::model::optimisation::{History, Optimisation, Unknown};
use mbs_codegen::model::{Case, Hold, Parameter, ParameterId, ParameterValue, SensitivityRef};

/// A varied input of a problem.
#[derive(Clone, Debug, PartialEq)]
pub struct VariedInput {
    /// Its name.
    pub name: String,
    /// Form, bounds and scale.
    pub history: History,
    /// When its values are.
    pub times: Vec<f64>,
    /// The place of its first value among the unknowns.
    pub first: usize,
}

/// A model with histories in place of inputs.
pub(super) struct Replaced {
    pub(super) model: Analysed,
    pub(super) over: Vec<Unknown>,
    pub(super) inputs: Vec<VariedInput>,
    pub(super) notes: Vec<String>,
}

/// Puts the histories of a problem in place of its inputs. `cases`: those that it runs.
pub(super) fn replace(
    model: &Analysed,
    problem: &Optimisation,
    cases: &[Option<&Case>],
    setup: &Setup<'_>,
) -> Result<Replaced, ProblemError> {
    let mut over = problem.over.clone();
    if problem.histories.is_empty() {
        return Ok(Replaced { model: model.clone(), over, inputs: Vec::new(), notes: Vec::new() });
    }
    let (mut changed, mut inputs, mut notes) = (model.model.clone(), Vec::new(), Vec::new());
    let first = cases.first().copied().flatten();
    let mut spans = Vec::new();
    for case in cases {
        let settings =
            Settings::of_dynamics(simulation(model, *case), model.is_constrained(), setup.overrides);
        let settings = settings.map_err(|error| ProblemError::Instance(InstanceError::Setting(error)))?;
        spans.push((settings.simulation.begin, settings.simulation.end));
    }
    let (begin, end) = spans.first().copied().unwrap_or((0.0, 1.0));
    for history in &problem.histories {
        let Some(input) = model.inputs.get(history.input.index()) else { continue };
        let name = input.name.clone();
        let sets =
            |event: &&mbs_codegen::model::Event| event.settings.iter().any(|(id, _)| *id == history.input);
        if let Some(event) = model.events.iter().find(sets) {
            return Err(ProblemError::SetByEvent { input: name, event: event.name.clone() });
        }
        let times = history.times(begin, end);
        if spans.iter().any(|span| *span != (begin, end)) {
            notes.push(format!(
                "`{name}` has one history in all cases, over the time of the first: {begin} to {end} s"
            ));
        }
        if times.first().is_none_or(|t| *t > begin) || times.last().is_none_or(|t| *t < begin) {
            notes.push(format!(
                "the knots of `{name}` begin at {} s, the run at {begin} s",
                times.first().unwrap_or(&begin)
            ));
        }
        if input.hold != Hold::Signal {
            notes.push(format!(
                "the history of `{name}` is followed at all times, although the input is held over a step (`hold: {}`); \
                 `hold: signal` makes a run of the saved case the same",
                input.hold.keyword()
            ));
        }
        let own = first.and_then(|case| case.inputs.iter().find(|(id, _)| *id == history.input));
        let value_at = |t: f64| match (own, first) {
            (Some((_, signal)), Some(case)) => {
                Values::of_case(model, case).at_time(t).scalar(signal).ok().filter(|x| x.is_finite())
            }
            _ => None,
        };
        let values: Vec<f64> = match &history.start {
            Some(values) => values.clone(),
            None => times.iter().map(|&t| value_at(t).unwrap_or(input.default)).collect(),
        };
        let id = ParameterId(changed.parameters.len() as u32);
        changed.replace_input(history.input, &history.expression(&times, id));
        inputs.push(VariedInput { name: name.clone(), history: history.clone(), times, first: over.len() });
        over.extend((0..values.len()).map(|element| Unknown {
            what: SensitivityRef::Parameter { id, element },
            min: history.min,
            max: history.max,
            scale: history.scale,
        }));
        changed.parameters.push(Parameter {
            name,
            description: input.description.clone(),
            unit: input.unit.clone(),
            value: ParameterValue::Array(values),
            min: history.min,
            max: history.max,
            span: input.span,
        });
        for case in &mut changed.cases {
            case.inputs.retain(|(id, _)| *id != history.input);
        }
    }
    Ok(Replaced { model: Analysed::of(changed), over, inputs, notes })
}
