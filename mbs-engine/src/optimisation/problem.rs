//! A problem that can be solved: instances of its cases, its unknowns by place, its functions.

use super::extremes::{self, Extreme};
use super::histories::{self, VariedInput};
use super::scaling;
use crate::failures::describe;
use crate::gradient;
use crate::simulation::{
    self, Analysis, Instance, InstanceError, Overrides, Settings, interpret, refuse_unfit, simulation,
};
use crate::sweep::sampling;
use crate::{Engine, Fusing, Interpreted};
use mbs_codegen::analysis::Analysed;
use mbs_codegen::model::optimisation::{Judged, Optimisation, OptimisationMethod, Scaling, Starts, Unknown};
use mbs_codegen::model::{Case, Model, SensitivityRef};
use std::fmt;

/// How the runs of a problem are made.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'a> {
    /// The case of a problem that names none.
    pub case: Option<&'a Case>,
    /// Parameters with other values than the model's.
    pub set: &'a [(String, f64)],
    /// Whether runs are motions under forces or those that drives prescribe.
    pub analysis: Analysis,
    /// Settings in place of the model's.
    pub overrides: &'a Overrides,
    /// How equations are evaluated.
    pub engine: Engine,
    /// Whether products and sums are fused.
    pub fusing: Fusing,
}

/// A value that is varied.
#[derive(Clone, Debug)]
pub struct Variable {
    /// Its name, `name` or `name[i]`.
    pub name: String,
    /// Its unit, may be empty.
    pub unit: String,
    /// Smallest value, or −∞.
    pub lower: f64,
    /// Largest value, or ∞.
    pub upper: f64,
    /// How it is scaled.
    pub scaling: Scaling,
    /// What it is divided by, where it is.
    pub scale: f64,
    /// Its place among the parameters.
    pub(crate) place: usize,
}

/// An objective of one case within bounds.
#[derive(Clone, Debug)]
pub struct Row {
    /// The objective's name, with its case if there are several.
    pub name: String,
    /// Smallest value, or −∞.
    pub lower: f64,
    /// Largest value, or ∞.
    pub upper: f64,
    pub(super) run: usize,
    pub(super) objective: usize,
}

impl Row {
    /// How far a value lies outside the bounds.
    pub fn violation(&self, value: f64) -> f64 {
        (value - self.upper).max(self.lower - value).max(0.0)
    }

    /// Whether it is an equation.
    pub fn is_equation(&self) -> bool {
        self.lower == self.upper
    }
}

/// A case with its weight in a sum.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) case: Option<String>,
    pub(super) model: Interpreted,
    pub(super) settings: Settings,
    /// Of each objective that is a smooth extreme.
    pub(super) extremes: Vec<Option<Extreme>>,
    /// A run whose integrands are those whose extremes are taken; none without extremes.
    plain: Option<Box<Instance>>,
}

/// A weighted objective of one case.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) run: usize,
    pub(super) objective: usize,
    pub(super) weight: f64,
}

/// A problem that can be solved.
#[derive(Clone, Debug)]
pub struct Problem {
    /// Its name.
    pub name: String,
    /// What is minimised, in words.
    pub goal: String,
    /// What is varied.
    pub variables: Vec<Variable>,
    /// Constraints.
    pub rows: Vec<Row>,
    /// Where searches begin.
    pub starts: Vec<Vec<f64>>,
    /// How it is solved.
    pub method: OptimisationMethod,
    /// Largest projected gradient at the end, scaled.
    pub tolerance: f64,
    /// Most iterations from one start.
    pub iterations: usize,
    /// Notes before the search.
    pub notes: Vec<String>,
    /// Inputs whose histories are varied.
    pub inputs: Vec<VariedInput>,
    /// The model that is run, in which histories stand in place of inputs.
    pub model: Analysed,
    pub(super) parts: Vec<Part>,
    pub(super) runs: Vec<Run>,
}

/// Why there is no problem to be solved.
#[derive(Debug)]
#[non_exhaustive]
pub enum ProblemError {
    /// A run cannot be made.
    Instance(InstanceError),
    /// A case, and one the problem names itself.
    Case {
        /// The problem.
        problem: String,
    },
    /// A varied input that an event sets.
    SetByEvent {
        /// The input.
        input: String,
        /// The event.
        event: String,
    },
    /// The first start cannot be run.
    Start(String),
}

/// An extreme along a run: at its nodes, not smoothed.
#[derive(Clone, Debug, PartialEq)]
pub struct TrueExtreme {
    /// Its name, with its case if there are several.
    pub name: String,
    /// The largest or smallest value at a node.
    pub value: f64,
}

impl fmt::Display for ProblemError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProblemError::Instance(error) => error.fmt(f),
            ProblemError::Case { problem } => {
                write!(f, "the problem `{problem}` names its own cases; leave out the other")
            }
            ProblemError::SetByEvent { input, event } => write!(
                f,
                "the history of `{input}` cannot be varied: event `{event}` sets this input, and what it sets would be lost"
            ),
            ProblemError::Start(why) => write!(f, "the search cannot begin: {why}"),
        }
    }
}

impl std::error::Error for ProblemError {}

/// What a problem judges, each once, and the bound that an extreme has.
fn functions(problem: &Optimisation) -> Vec<(Judged, Option<f64>)> {
    let mut functions: Vec<(Judged, Option<f64>)> = Vec::new();
    let terms = problem.minimise.iter().map(|term| (term.judged, None));
    let limits = problem.subject_to.iter().map(|limit| (limit.judged, limit.max.or(limit.min)));
    for (judged, bound) in terms.chain(limits) {
        match functions.iter_mut().find(|(known, _)| *known == judged) {
            Some((_, known)) => *known = known.or(bound),
            None => functions.push((judged, bound)),
        }
    }
    functions
}

impl Problem {
    /// Prepares a problem of a model. One with smooth extremes makes a run, to know their sizes.
    pub fn new(model: &Analysed, problem: &Optimisation, setup: &Setup<'_>) -> Result<Problem, ProblemError> {
        if setup.case.is_some() && !problem.cases.is_empty() {
            return Err(ProblemError::Case { problem: problem.name.clone() });
        }
        let chosen = setup.case.and_then(|case| model.cases.iter().position(|own| own.name == case.name));
        let cases: Vec<(Option<usize>, f64)> = match problem.cases.as_slice() {
            [] => vec![(chosen, 1.0)],
            some => some.iter().map(|&(i, weight)| (Some(i), weight)).collect(),
        };
        fn case_of(model: &Model, case: Option<usize>) -> Option<&Case> {
            case.and_then(|i| model.cases.get(i))
        }
        let all: Vec<Option<&Case>> = cases.iter().map(|(case, _)| case_of(model, *case)).collect();
        let histories::Replaced { model: mut replaced, over, inputs, mut notes } =
            histories::replace(model, problem, &all, setup)?;
        replaced.model.sensitivity = over.iter().map(|unknown| unknown.what).collect();
        replaced.model.cases.iter_mut().for_each(|case| case.sensitivity = None);
        let functions = functions(problem);
        let mut runs: Vec<Run> = Vec::new();
        for (case, _) in &cases {
            let case = case_of(&replaced, *case);
            let plain = plain(&replaced, case, &functions, setup).map_err(ProblemError::Instance)?;
            let begin = match (&plain, runs.first()) {
                (Some(plain), None) => plain.model.parameters().to_vec(),
                (Some(_), Some(first)) => first.model.parameters().to_vec(),
                (None, _) => Vec::new(),
            };
            let (variables, values, _) = variables(&replaced, &over, &begin);
            let start = starts(problem, &over, &variables, &values).into_iter().next().unwrap_or_default();
            let found = sizes(&replaced, &functions, plain, &variables, &start)?;
            let mut judged = replaced.clone();
            let of = |((judged, _), extreme): (&(Judged, _), &Option<Extreme>)| match (*judged, extreme) {
                (Judged::Extreme { of, .. }, Some(extreme)) => {
                    extremes::objective(&replaced, judged, extreme.integrand(extremes::along(&replaced, of)))
                }
                (Judged::Objective(i), _) => replaced.objectives[i].clone(),
                (Judged::Extreme { of, .. }, None) => {
                    extremes::objective(&replaced, judged, extremes::along(&replaced, of))
                }
            };
            judged.model.objectives = functions.iter().zip(&found.0).map(of).collect();
            let case = case.cloned();
            let mut run = run(&judged, case.as_ref(), setup).map_err(ProblemError::Instance)?;
            (run.extremes, run.plain) = found;
            runs.push(run);
        }
        let place_of =
            |judged: &Judged| functions.iter().position(|(own, _)| own == judged).unwrap_or_default();
        let each = |judged: &Judged, only: Option<usize>| {
            let objective = place_of(judged);
            let counted =
                cases.iter().enumerate().filter(move |(_, (case, _))| only.is_none() || *case == only);
            counted.map(move |(run, (_, weight))| (run, objective, *weight))
        };
        let name_of = |objective: usize, run: usize| named(&functions[objective].0.name(model), &runs, run);
        let mut parts = Vec::new();
        for term in &problem.minimise {
            parts.extend(each(&term.judged, term.case).map(|(run, objective, weight)| Part {
                run,
                objective,
                weight: weight * term.weight,
            }));
        }
        let mut rows = Vec::new();
        for limit in &problem.subject_to {
            rows.extend(each(&limit.judged, limit.case).map(|(run, objective, _)| Row {
                name: name_of(objective, run),
                lower: limit.min.unwrap_or(f64::NEG_INFINITY),
                upper: limit.max.unwrap_or(f64::INFINITY),
                run,
                objective,
            }));
        }
        let goal = parts.iter().map(|part| {
            let name = name_of(part.objective, part.run);
            if part.weight == 1.0 { name } else { format!("{} {name}", part.weight) }
        });
        let goal = goal.collect::<Vec<_>>().join(" + ");
        let (variables, model_values, more) =
            variables(&replaced, &over, runs.first().map_or(&[], |run| run.model.parameters()));
        notes.extend(more);
        let starts = starts(problem, &over, &variables, &model_values);
        Ok(Problem {
            name: problem.name.clone(),
            goal,
            variables,
            rows,
            starts,
            method: problem.method,
            tolerance: problem.tolerance,
            iterations: problem.iterations,
            notes,
            inputs,
            model: replaced,
            parts,
            runs,
        })
    }

    /// Extremes along the runs at x, at their nodes and not smoothed; of runs that come to their end.
    pub fn true_extremes(&mut self, x: &[f64]) -> Vec<TrueExtreme> {
        let mut all = Vec::new();
        for i in 0..self.runs.len() {
            let several = self.runs.len() > 1;
            let run = &mut self.runs[i];
            let Some(plain) = run.plain.as_deref_mut() else { continue };
            let Ok(found) = ranges(plain, &self.variables, x) else { continue };
            for ((extreme, (name, _)), (low, high)) in
                run.extremes.iter().flatten().zip(&plain.model.program().objectives).zip(found)
            {
                let name = match run.case.as_deref().filter(|_| several) {
                    Some(case) => format!("{name} ({case})"),
                    None => name.clone(),
                };
                all.push(TrueExtreme { name, value: if extreme.is_least { low } else { high } });
            }
        }
        all
    }

    /// What evaluations depend on beside the model, its case and its settings: smooth extremes and histories, in words.
    pub fn depends_on(&self) -> String {
        let extremes: Vec<&Vec<Option<Extreme>>> = self.runs.iter().map(|run| &run.extremes).collect();
        format!("{extremes:?}{:?}", self.inputs)
    }

    /// What differs between two sequences of events, in words; none if nothing does.
    pub(super) fn other_events(&self, before: &[Vec<usize>], after: &[Vec<usize>]) -> Option<String> {
        let mut words = Vec::new();
        for ((run, before), after) in self.runs.iter().zip(before).zip(after).filter(|((_, a), b)| a != b) {
            let names = &run.model.program().events.names;
            let count = |list: &[usize], event: usize| list.iter().filter(|own| **own == event).count();
            let counts = names
                .iter()
                .enumerate()
                .map(|(event, name)| (name, count(before, event), count(after, event)));
            let counts: Vec<String> = counts
                .filter(|(_, before, after)| before != after)
                .map(|(name, before, after)| format!("{name} {before} → {after}"))
                .collect();
            words.push(if counts.is_empty() { "another order".into() } else { counts.join(", ") });
        }
        (!words.is_empty()).then(|| words.join("; "))
    }

    /// The method that `auto` stands for.
    pub fn chosen_method(&self) -> OptimisationMethod {
        match self.method {
            OptimisationMethod::Auto if self.rows.is_empty() => OptimisationMethod::Lbfgs,
            OptimisationMethod::Auto => OptimisationMethod::Slsqp,
            method => method,
        }
    }

    /// How the gradient of the first run is computed, and why; none where the method takes none.
    pub fn gradient(&self) -> Option<String> {
        let run = self.runs.first().filter(|_| self.chosen_method() != OptimisationMethod::Cobyla)?;
        let choice = super::evaluation::choice(&run.model, &run.settings).ok()?;
        Some(format!("{}: {}", if choice.adjoint { "adjoint" } else { "direct" }, choice.why))
    }

    /// Names of the cases that are run; none without cases.
    pub fn cases(&self) -> impl Iterator<Item = &str> {
        self.runs.iter().filter_map(|run| run.case.as_deref())
    }
}

fn named(objective: &str, runs: &[Run], run: usize) -> String {
    match runs[run].case.as_deref().filter(|_| runs.len() > 1) {
        Some(case) => format!("{objective} ({case})"),
        None => objective.into(),
    }
}

/// A run whose objectives are what extremes are taken of; none without extremes.
fn plain(
    model: &Analysed,
    case: Option<&Case>,
    functions: &[(Judged, Option<f64>)],
    setup: &Setup<'_>,
) -> Result<Option<Instance>, InstanceError> {
    let objective = |(judged, _): &(Judged, Option<f64>)| match judged {
        Judged::Extreme { of, .. } => Some(extremes::objective(model, judged, extremes::along(model, *of))),
        Judged::Objective(_) => None,
    };
    let objectives: Vec<_> = functions.iter().filter_map(objective).collect();
    if objectives.is_empty() {
        return Ok(None);
    }
    let mut model = model.clone();
    model.model.objectives = objectives;
    model.model.sensitivity.clear();
    let case = case.cloned();
    let settings = settle(&model, case.as_ref(), setup)?;
    Instance::new(&model, case.as_ref(), setup.set, settings, &[]).map(Some)
}

/// Smallest and largest values of the integrands of a run at x.
fn ranges(plain: &mut Instance, variables: &[Variable], x: &[f64]) -> Result<Vec<(f64, f64)>, String> {
    let mut parameters = plain.model.parameters().to_vec();
    for (variable, x) in variables.iter().zip(x) {
        if let Some(value) = parameters.get_mut(variable.place) {
            *value = *x;
        }
    }
    plain.model.set_parameters(&parameters).map_err(|error| error.to_string())?;
    let record = simulation::run(&plain.model, &plain.settings, &mut simulation::Silent);
    match &record.failure {
        Some(failure) => Err(describe(&plain.model, failure)),
        None => Ok(record.seen.ranges),
    }
}

/// Smooth extremes with the sizes of a first run.
#[allow(clippy::type_complexity, reason = "two fields of a run")]
fn sizes(
    model: &Model,
    functions: &[(Judged, Option<f64>)],
    plain: Option<Instance>,
    variables: &[Variable],
    start: &[f64],
) -> Result<(Vec<Option<Extreme>>, Option<Box<Instance>>), ProblemError> {
    let Some(mut plain) = plain else { return Ok((vec![None; functions.len()], None)) };
    let mut found = ranges(&mut plain, variables, start).map_err(ProblemError::Start)?.into_iter();
    let settings = &plain.settings.simulation;
    let time = settings.end - settings.begin;
    let mut extreme = |(judged, bound): &(Judged, Option<f64>)| match judged {
        Judged::Extreme { is_least, sharpness, .. } => {
            let (low, high) = found.next().unwrap_or((0.0, 0.0));
            if !(low.is_finite() && high.is_finite()) {
                let name = judged.name(model);
                return Err(ProblemError::Start(format!("`{name}` is not finite")));
            }
            Ok(Some(Extreme::new(*is_least, *sharpness, *bound, (low, high), time)))
        }
        Judged::Objective(_) => Ok(None),
    };
    let extremes = functions.iter().map(&mut extreme).collect::<Result<Vec<_>, _>>()?;
    Ok((extremes, Some(Box::new(plain))))
}

/// The settings of a run.
fn settle(model: &Analysed, case: Option<&Case>, setup: &Setup<'_>) -> Result<Settings, InstanceError> {
    let (defaults, constrained) = (simulation(model, case), model.is_constrained());
    match setup.analysis {
        Analysis::Dynamics => Settings::of_dynamics(defaults, constrained, setup.overrides),
        Analysis::Kinematics => Settings::of_kinematics(defaults, constrained, setup.overrides),
    }
    .map_err(InstanceError::Setting)
}

fn run(model: &Analysed, case: Option<&Case>, setup: &Setup<'_>) -> Result<Run, InstanceError> {
    let constrained = model.is_constrained();
    let mut settings = settle(model, case, setup)?;
    settings.judges_forces =
        model.objectives.iter().any(mbs_codegen::model::Objective::depends_on_multipliers);
    refuse_unfit(model, case, &settings)?;
    let mut bundles = match settings.analysis {
        Analysis::Dynamics => gradient::bundles(&settings.simulation, constrained),
        Analysis::Kinematics => gradient::kinematics::bundles(),
    };
    for bundle in settings.bundles() {
        if !bundles.contains(&bundle) {
            bundles.push(bundle);
        }
    }
    let mut interpreted = interpret(model, case, setup.set, bundles)?;
    if interpreted.program().coordinates.is_empty() {
        return Err(InstanceError::NothingMoves);
    }
    // A search makes dozens of runs.
    let expected = settings.expected_evaluations().map(|n| n.saturating_mul(20));
    interpreted.set_engine(setup.engine, expected, setup.fusing);
    let case = case.map(|case| case.name.clone());
    Ok(Run { case, model: interpreted, settings, extremes: Vec::new(), plain: None })
}

/// The unknowns, their start values, and notes on these. `own`: all parameters.
pub(crate) fn variables(
    model: &Model,
    over: &[Unknown],
    own: &[f64],
) -> (Vec<Variable>, Vec<f64>, Vec<String>) {
    let names = model.sensitivity_names(&over.iter().map(|unknown| unknown.what).collect::<Vec<_>>());
    let (mut values, mut notes) = (Vec::new(), Vec::new());
    let mut variables = Vec::new();
    for (unknown, name) in over.iter().zip(names) {
        let SensitivityRef::Parameter { id, element } = unknown.what else { continue };
        let place = place_of(model, id.index(), element);
        let (lower, upper) = (unknown.min.unwrap_or(f64::NEG_INFINITY), unknown.max.unwrap_or(f64::INFINITY));
        let value = own.get(place).copied().unwrap_or_default();
        let start = value.clamp(lower, upper);
        if start != value {
            notes.push(format!("`{name}` = {value} is outside its bounds: the search begins at {start}"));
        }
        let (scaling, scale) = scaling::choose(unknown.scale, lower, upper, start);
        let unit = model.parameters[id.index()].unit.clone();
        variables.push(Variable { name, unit, lower, upper, scaling, scale, place });
        values.push(start);
    }
    (variables, values, notes)
}

/// The place of a value among the independent parameters, arrays flattened.
pub(crate) fn place_of(model: &Model, parameter: usize, element: usize) -> usize {
    use mbs_codegen::model::ParameterValue;
    let len = |value: &ParameterValue| match value {
        ParameterValue::Number(_) => 1,
        ParameterValue::Array(values) => values.len(),
        ParameterValue::Derived(_) => 0,
    };
    model.parameters[..parameter].iter().map(|p| len(&p.value)).sum::<usize>() + element
}

fn starts(problem: &Optimisation, over: &[Unknown], variables: &[Variable], values: &[f64]) -> Vec<Vec<f64>> {
    match &problem.starts {
        Starts::Given(given) => {
            let start = |some: &Vec<(SensitivityRef, f64)>| {
                let value = |((unknown, variable), own): ((&_, &Variable), &f64)| {
                    let unknown: &Unknown = unknown;
                    let found = some.iter().find(|(what, _)| *what == unknown.what);
                    found.map_or(*own, |(_, x)| *x).clamp(variable.lower, variable.upper)
                };
                over.iter().zip(variables).zip(values).map(value).collect()
            };
            given.iter().map(start).collect()
        }
        Starts::Spread(n) => {
            let mut starts = vec![values.to_vec()];
            // The others fill the bounds, in the measure the optimiser sees.
            let spread = sampling::latin_hypercube(n.saturating_sub(1), variables.len(), 1);
            starts.extend(spread.iter().map(|point| {
                let at = |(variable, u): (&Variable, &f64)| {
                    let (low, high) = (variable.scaled(variable.lower), variable.scaled(variable.upper));
                    variable.unscaled(low + u * (high - low))
                };
                variables.iter().zip(point).map(at).collect()
            }));
            starts
        }
    }
}
