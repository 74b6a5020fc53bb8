//! A problem that can be solved: instances of its cases, its unknowns by place, its functions.

use super::scaling;
use crate::gradient;
use crate::simulation::{InstanceError, Overrides, Settings, interpret, refuse_held_signals, simulation};
use crate::sweep::sampling;
use crate::{Engine, Fusing, Interpreted};
use mbs_codegen::analysis::Analysed;
use mbs_codegen::model::optimisation::{Optimisation, OptimisationMethod, Scaling, Starts, Unknown};
use mbs_codegen::model::{Case, Model, SensitivityRef};
use std::fmt;

/// How the runs of a problem are made.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'a> {
    /// The case of a problem that names none.
    pub case: Option<&'a Case>,
    /// Parameters with other values than the model's.
    pub set: &'a [(String, f64)],
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
    /// What is to be said before the search.
    pub notes: Vec<String>,
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
}

impl fmt::Display for ProblemError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProblemError::Instance(error) => error.fmt(f),
            ProblemError::Case { problem } => {
                write!(f, "the problem `{problem}` names its own cases; leave out the other")
            }
        }
    }
}

impl std::error::Error for ProblemError {}

/// What a model with only the objectives of a problem, differentiated by its unknowns, is called.
fn reduced(model: &Analysed, problem: &Optimisation) -> (Analysed, Vec<usize>) {
    let mut reduced = model.clone();
    let used = |i: usize| {
        problem.minimise.iter().any(|term| term.objective == i)
            || problem.subject_to.iter().any(|limit| limit.objective == i)
    };
    let kept: Vec<usize> = (0..model.objectives.len()).filter(|i| used(*i)).collect();
    reduced.model.objectives = kept.iter().map(|&i| model.objectives[i].clone()).collect();
    reduced.model.sensitivity = problem.over.iter().map(|unknown| unknown.what).collect();
    reduced.model.cases.iter_mut().for_each(|case| case.sensitivity = None);
    (reduced, kept)
}

impl Problem {
    /// Prepares a problem of a model.
    pub fn new(model: &Analysed, problem: &Optimisation, setup: &Setup<'_>) -> Result<Problem, ProblemError> {
        let (reduced, kept) = reduced(model, problem);
        let place_of = |objective: usize| kept.iter().position(|&i| i == objective).unwrap_or_default();
        if setup.case.is_some() && !problem.cases.is_empty() {
            return Err(ProblemError::Case { problem: problem.name.clone() });
        }
        let cases: Vec<(Option<usize>, Option<&Case>, f64)> = match problem.cases.as_slice() {
            [] => vec![(None, setup.case, 1.0)],
            some => some.iter().map(|&(i, weight)| (Some(i), model.cases.get(i), weight)).collect(),
        };
        let runs = cases.iter().map(|(_, case, _)| run(&reduced, *case, setup));
        let runs = runs.collect::<Result<Vec<Run>, InstanceError>>().map_err(ProblemError::Instance)?;
        let each = |objective: usize, only: Option<usize>| {
            let of = move |(run, (case, _, _)): &(usize, &(Option<usize>, _, f64))| {
                let _ = run;
                only.is_none() || *case == only
            };
            let objective = place_of(objective);
            cases.iter().enumerate().filter(of).map(move |(run, (_, _, weight))| (run, objective, *weight))
        };
        let mut parts = Vec::new();
        for term in &problem.minimise {
            parts.extend(each(term.objective, term.case).map(|(run, objective, weight)| Part {
                run,
                objective,
                weight: weight * term.weight,
            }));
        }
        let mut rows = Vec::new();
        for limit in &problem.subject_to {
            rows.extend(each(limit.objective, limit.case).map(|(run, objective, _)| Row {
                name: named(&reduced.objectives[objective].name, &runs, run),
                lower: limit.min.unwrap_or(f64::NEG_INFINITY),
                upper: limit.max.unwrap_or(f64::INFINITY),
                run,
                objective,
            }));
        }
        let goal = parts.iter().map(|part| {
            let name = named(&reduced.objectives[part.objective].name, &runs, part.run);
            if part.weight == 1.0 { name } else { format!("{} {name}", part.weight) }
        });
        let goal = goal.collect::<Vec<_>>().join(" + ");
        let (variables, model_values, notes) =
            variables(&reduced, &problem.over, runs.first().map_or(&[], |run| run.model.parameters()));
        let starts = starts(problem, &variables, &model_values);
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
            parts,
            runs,
        })
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

fn run(model: &Analysed, case: Option<&Case>, setup: &Setup<'_>) -> Result<Run, InstanceError> {
    let constrained = model.is_constrained();
    let settings = Settings::of_dynamics(simulation(model, case), constrained, setup.overrides);
    let mut settings = settings.map_err(InstanceError::Setting)?;
    settings.judges_forces =
        model.objectives.iter().any(mbs_codegen::model::Objective::depends_on_multipliers);
    refuse_held_signals(model, case, &settings)?;
    let mut bundles = gradient::bundles(&settings.simulation, constrained);
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
    Ok(Run { case: case.map(|case| case.name.clone()), model: interpreted, settings })
}

/// What is varied, the values that the search begins with, and what is to be said of them. `own`: all parameters.
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

fn starts(problem: &Optimisation, variables: &[Variable], values: &[f64]) -> Vec<Vec<f64>> {
    match &problem.starts {
        Starts::Given(given) => {
            let start = |some: &Vec<(SensitivityRef, f64)>| {
                let value = |((unknown, variable), own): ((&_, &Variable), &f64)| {
                    let unknown: &Unknown = unknown;
                    let found = some.iter().find(|(what, _)| *what == unknown.what);
                    found.map_or(*own, |(_, x)| *x).clamp(variable.lower, variable.upper)
                };
                problem.over.iter().zip(variables).zip(values).map(value).collect()
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
