//! A problem that a person asks for by names, where the model file has none.

use crate::gradient::by_names;
use mbs_codegen::diagnostics::{Span, nearest};
use mbs_codegen::model::optimisation::{
    History, HistoryForm, Judged, JudgedError, Knots, Limit, Optimisation, OptimisationMethod, Scaling,
    Starts, Term, Unknown,
};
use mbs_codegen::model::{InputId, Model, SensitivityRef};

/// A problem by names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// Objectives with weights; also `max(NAME)` and `min(NAME)`.
    pub minimise: Vec<(String, f64)>,
    /// Parameters with bounds; the parameter's own where none are given.
    pub over: Vec<(String, Option<f64>, Option<f64>)>,
    /// Objectives with smallest and largest values.
    pub subject_to: Vec<(String, Option<f64>, Option<f64>)>,
    /// Forms and numbers of knots of inputs that are among the parameters.
    pub histories: Vec<(String, HistoryForm, usize)>,
}

impl Request {
    /// The problem it stands for; what is wrong with it otherwise.
    pub fn resolve(&self, model: &Model) -> Result<Optimisation, String> {
        let judged = |name: &str| {
            let names = || model.objectives.iter().map(|objective| objective.name.as_str());
            Judged::by_name(name, &model.objectives, &model.outputs).map_err(|error| match error {
                JudgedError::Unknown => match nearest(name, names()) {
                    Some(near) => format!("there is no objective `{name}`; did you mean `{near}`?"),
                    None if model.objectives.is_empty() => "the model has no objectives".into(),
                    None => format!(
                        "there is no objective `{name}`; there are {}",
                        names().collect::<Vec<_>>().join(", ")
                    ),
                },
                error => format!("`{name}`: {error}"),
            })
        };
        let mut minimise = Vec::new();
        for (name, weight) in &self.minimise {
            minimise.push(Term { judged: judged(name)?, weight: *weight, case: None });
        }
        let mut subject_to = Vec::new();
        for (name, min, max) in &self.subject_to {
            check(name, *min, *max)?;
            subject_to.push(Limit { judged: judged(name)?, min: *min, max: *max, case: None });
        }
        if minimise.is_empty() {
            return Err("nothing is minimised: name an objective".into());
        }
        let is_history = |name: &str| self.histories.iter().any(|(own, ..)| own == name);
        let parameters: Vec<_> = self.over.iter().filter(|(name, ..)| !is_history(name)).cloned().collect();
        let mut histories = Vec::new();
        for (name, form, knots) in &self.histories {
            let input = model.inputs.iter().position(|input| input.name == *name);
            let input = input.ok_or_else(|| {
                let names = model.inputs.iter().map(|input| input.name.as_str());
                match nearest(name, names) {
                    Some(near) => format!("there is no input `{name}`; did you mean `{near}`?"),
                    None => format!("there is no input `{name}`: only inputs have a history"),
                }
            })?;
            let bounds = self.over.iter().find(|(own, ..)| own == name);
            let (min, max) = bounds.map_or((None, None), |(_, min, max)| (*min, *max));
            check(name, min, max)?;
            if histories.iter().any(|known: &History| known.input.index() == input) {
                return Err(format!("the history of `{name}` is named twice"));
            }
            if *form != HistoryForm::Constant && *knots < 2 {
                return Err(format!("the history of `{name}` needs two knots"));
            }
            histories.push(History {
                input: InputId(input as u32),
                form: *form,
                knots: Knots::Count(*knots),
                min,
                max,
                scale: Scaling::Auto,
                start: None,
            });
        }
        let over = match parameters.is_empty() && !histories.is_empty() {
            true => Vec::new(),
            false => unknowns(model, &parameters)?,
        };
        Ok(Optimisation {
            name: "asked".into(),
            description: String::new(),
            minimise,
            over,
            histories,
            subject_to,
            cases: Vec::new(),
            starts: Starts::Spread(1),
            method: OptimisationMethod::Auto,
            tolerance: Optimisation::TOLERANCE,
            iterations: Optimisation::ITERATIONS,
            span: Span::default(),
        })
    }
}

/// What parameters by name and bounds stand for; what is wrong with them otherwise.
pub fn unknowns(model: &Model, given: &[(String, Option<f64>, Option<f64>)]) -> Result<Vec<Unknown>, String> {
    if given.is_empty() {
        return Err("nothing is varied: name parameters".into());
    }
    let mut over: Vec<Unknown> = Vec::new();
    for (name, min, max) in given {
        for what in by_names(model, [name.as_str()]).map_err(|error| format!("cannot vary: {error}"))? {
            let SensitivityRef::Parameter { id, .. } = what else {
                return Err(format!(
                    "cannot vary `{name}`: it is an input; say what its history is: a form and the number of its knots"
                ));
            };
            let own = &model.parameters[id.index()];
            let (min, max) = (min.or(own.min), max.or(own.max));
            check(name, min, max)?;
            let inside = |x: Option<f64>| {
                x.is_none_or(|x| own.min.is_none_or(|min| x >= min) && own.max.is_none_or(|max| x <= max))
            };
            if !inside(min) || !inside(max) {
                return Err(format!("the bounds of `{name}` leave those of the model"));
            }
            if over.iter().any(|known| known.what == what) {
                return Err(format!("`{name}` is named twice"));
            }
            over.push(Unknown { what, min, max, scale: Scaling::Auto });
        }
    }
    Ok(over)
}

fn check(name: &str, min: Option<f64>, max: Option<f64>) -> Result<(), String> {
    match (min, max) {
        (Some(min), Some(max)) if min > max => {
            Err(format!("the bounds of `{name}` are the wrong way round: {min} to {max}"))
        }
        _ if [min, max].into_iter().flatten().any(|x| !x.is_finite()) => {
            Err(format!("a bound of `{name}` is not finite"))
        }
        _ => Ok(()),
    }
}
