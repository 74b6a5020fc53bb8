//! `mbs optimise`: better parameters, by a problem of the model or of the command line.

use crate::arguments::Optimise;
use crate::output::json::{by_name, pretty};
use crate::output::number::{count, duration, short, significant};
use crate::output::optimum_page::optimum_page;
use crate::output::table::Table;
use crate::session::choices::{some, suggestion};
use crate::session::failure::Failure;
use crate::session::files;
use crate::session::interrupt;
use crate::session::journal::Journal;
use crate::session::model;
use crate::session::repeated::{again, quoted};
use crate::session::saved_case::{exact, with_case};
use crate::session::settings::{name_independent, overrides, refuse_method};
use mbs_codegen::analysis::Analysed;
use mbs_codegen::model::optimisation::{Optimisation, Scaling, Starts};
use mbs_codegen::model::{Case, Model};
use mbs_engine::optimisation::{
    Evaluation, Failed, Iteration, Outcome, Problem, ProblemError, Request, Search, SearchError, Setup,
    Status, TrueExtreme, Watch, solve,
};
use mbs_engine::simulation::Analysis;
use serde_json::{Value, json};
use std::fmt::Write;
use std::ops::ControlFlow;
use std::path::PathBuf;

/// Solves a problem and shows what came of it.
pub(crate) fn optimise(arguments: &Optimise) -> Result<(), Failure> {
    let common = &arguments.common;
    let mut source = model::read(&common.model, common.coordinates)?;
    name_independent(&mut source, common, &arguments.method)?;
    let mut problem = choose(&source, arguments)?;
    change(&mut problem, arguments)?;
    let case = model::find_case(&source, common.case.as_deref())?;
    let saved = arguments.save_case.as_deref().map(|name| place(name, &source, &problem, case, arguments));
    let saved = saved.transpose()?;
    if let Some(path) = &arguments.report {
        files::refuse_overwriting("--report", path, "the model", &common.model)?;
        files::check_place(path)?;
    }
    let overrides = overrides(common, None, Some(&arguments.method));
    let (engine, fusing) = common.engine.into();
    let analysis = match arguments.kinematics {
        true => Analysis::Kinematics,
        false => Analysis::Dynamics,
    };
    if arguments.kinematics {
        refuse_method(&overrides)?;
    }
    let setup = Setup { case, set: &common.set, analysis, overrides: &overrides, engine, fusing };
    let mut solved = model::write_equations(&source, || match Problem::new(&source, &problem, &setup) {
        Ok(problem) => Ok(Ok(problem)),
        Err(ProblemError::Instance(error)) => Err(error),
        Err(error) => Ok(Err(error)),
    })?
    .map_err(|error| match error {
        ProblemError::Start(_) => Failure::error(error.to_string()),
        error => Failure::usage(error.to_string()),
    })?;
    let journal = arguments.resume.as_deref().map(|path| {
        files::refuse_overwriting("--resume", path, "the model", &common.model)?;
        Journal::open(path, &belongs(&solved, arguments)?)
    });
    let journal = journal.transpose()?;
    for note in &solved.notes {
        files::complain(&format!("note: {note}\n"));
    }
    files::complain(&head(&source, &solved));
    if let Some(journal) = journal.as_ref().filter(|journal| journal.len() > 0) {
        files::complain(&format!("  going on from {}\n", count(journal.len(), "evaluation")));
    }
    interrupt::install_handler();
    let starts = solved.starts.len();
    let mut follower = Lines { starts, start: usize::MAX, journal };
    let outcome = solve(&mut solved, &mut follower);
    if let Some(failure) = follower.journal.as_ref().and_then(|journal| journal.failure.as_ref()) {
        files::complain(&format!("warning: {failure}\n"));
    }
    let outcome = outcome.map_err(|error| match error {
        SearchError::Stopped => Failure::interrupted("stopped before the first evaluation was done"),
        error => Failure::error(error.to_string()),
    })?;
    for name in &outcome.idle {
        files::complain(&format!("warning: `{name}` moves neither what is minimised nor a constraint\n"));
    }
    for (number, why) in &outcome.lost {
        files::complain(&format!("warning: start {} cannot be run: {why}\n", number + 1));
    }
    let best = outcome.best();
    let extremes = [solved.true_extremes(&best.start), solved.true_extremes(&best.x)];
    let written = match saved {
        Some((path, text, base)) => {
            let values: Vec<(String, f64)> =
                solved.variables.iter().map(|v| v.name.clone()).zip(best.x.iter().copied()).collect();
            let name = arguments.save_case.as_deref().unwrap_or_default();
            let text = with_case(&text, &source, base, name, &values, &solved.inputs);
            let text = text.map_err(|why| Failure::error(format!("cannot save case `{name}`: {why}")))?;
            files::write_whole(&path, &text)?;
            Some(path)
        }
        None => None,
    };
    if let Some(path) = &arguments.report {
        let model = solved.model.clone();
        let page = optimum_page(&model, &mut solved, &outcome, &again());
        files::write_whole(path, &page.html())?;
    }
    let shown = Shown { arguments, problem: &solved, outcome: &outcome, written, extremes };
    match common.json {
        true => files::print(&(pretty(&shown.json()) + "\n"))?,
        false => files::print(&shown.text())?,
    }
    match &best.status {
        Status::Converged | Status::Limit | Status::Stalled(_) => Ok(()),
        Status::Infeasible => Err(Failure::error(infeasible(&solved, best))),
        Status::Stopped => Err(Failure::interrupted("interrupted: this is the best point so far")),
    }
}

/// The problem that is asked for.
fn choose(source: &Model, arguments: &Optimise) -> Result<Optimisation, Failure> {
    if !arguments.minimise.is_empty() {
        let request = Request {
            minimise: arguments.minimise.clone(),
            over: arguments.over.clone(),
            subject_to: arguments.subject_to.clone(),
            histories: arguments.history.clone(),
        };
        return request.resolve(source).map_err(Failure::usage);
    }
    let names: Vec<&str> = source.optimisation.iter().map(|problem| problem.name.as_str()).collect();
    match (&arguments.problem, source.optimisation.as_slice()) {
        (_, []) => Err(Failure::usage(
            "the model has no `optimisation`; name a problem here: `--minimise OBJECTIVE --over NAME=LOW:HIGH`",
        )),
        (None, [only]) => Ok(only.clone()),
        (None, _) => {
            Err(Failure::usage(format!("choose a problem with `--problem`; there are: {}", some(&names))))
        }
        (Some(name), all) => all.iter().find(|problem| problem.name == *name).cloned().ok_or_else(|| {
            Failure::usage(format!("there is no problem `{name}`{}", suggestion(name, names.iter().copied())))
        }),
    }
}

/// What the command line changes of a problem.
fn change(problem: &mut Optimisation, arguments: &Optimise) -> Result<(), Failure> {
    if let Some(n) = arguments.starts {
        let open = problem.over.iter().any(|unknown| unknown.min.is_none() || unknown.max.is_none())
            || problem.histories.iter().any(|history| history.min.is_none() || history.max.is_none());
        if n > 1 && open {
            return Err(Failure::usage("`--starts` spreads points over bounds, and an unknown has none"));
        }
        problem.starts = Starts::Spread(n as usize);
    }
    if let Some(n) = arguments.max_iterations {
        problem.iterations = n as usize;
    }
    if let Some(tolerance) = arguments.tolerance {
        if !(tolerance > 0.0 && tolerance.is_finite()) {
            return Err(Failure::usage("`--tolerance` must be greater than zero"));
        }
        problem.tolerance = tolerance;
    }
    if let Some(optimiser) = arguments.optimiser {
        problem.method = optimiser.into();
        if matches!(optimiser, crate::arguments::OptimiserName::Lbfgs) && !problem.subject_to.is_empty() {
            return Err(Failure::usage("`--optimiser lbfgs` keeps bounds of unknowns, but no constraints"));
        }
    }
    Ok(())
}

/// Where a case is saved, the text it is added to, and the case that it extends; refused before the search if it cannot be.
fn place<'m>(
    name: &str,
    source: &'m Analysed,
    problem: &Optimisation,
    case: Option<&'m Case>,
    arguments: &Optimise,
) -> Result<(PathBuf, String, Option<&'m Case>), Failure> {
    let base = match problem.cases.as_slice() {
        [] => case,
        [(only, _)] => source.cases.get(*only),
        // Of several cases, what they have in common: the model.
        _ => None,
    };
    let model = &arguments.common.model;
    let path =
        arguments.output.clone().unwrap_or_else(|| PathBuf::from(format!("{}_{name}.yaml", source.name)));
    files::refuse_overwriting("--save-case", &path, "the model", model)?;
    let text = files::read(model)?.text;
    let own: Vec<(String, f64)> = Vec::new();
    with_case(&text, source, base, name, &own, &[])
        .map_err(|why| Failure::usage(format!("cannot save case `{name}`: {why}")))?;
    files::check_place(&path)?;
    Ok((path, text, base))
}

/// What the evaluations of a search belong to.
fn belongs(problem: &Problem, arguments: &Optimise) -> Result<String, Failure> {
    let text = files::read(&arguments.common.model)?.text;
    let common = &arguments.common;
    let names: Vec<&str> = problem.variables.iter().map(|variable| variable.name.as_str()).collect();
    let all = format!(
        "{text}{}{:?}{:?}{:?}{:?}{:?}{}",
        problem.depends_on(),
        common.case,
        common.set,
        common.end,
        common.step,
        arguments.method,
        names.join(" ")
    );
    let hash = crate::session::journal::fingerprint(&all);
    Ok(format!("{hash:016x} {} of {}", problem.name, problem.goal))
}

/// What is solved, and how.
fn head(source: &Model, problem: &Problem) -> String {
    let mut out = format!(
        "{}, problem {}: minimise {} over {}, by {}\n",
        source.name,
        problem.name,
        problem.goal,
        count(problem.variables.len(), "unknown"),
        problem.chosen_method().keyword()
    );
    if let Some(gradient) = problem.gradient() {
        let _ = writeln!(out, "  gradient {gradient}");
    }
    let _ = writeln!(
        out,
        "  {:>5} {:>16} {:>11} {:>11} {:>11} {:>7} {:>9}",
        "iter", "cost", "violation", "step", "gradient", "runs", "time"
    );
    out
}

/// A line for every iteration.
struct Lines {
    starts: usize,
    start: usize,
    journal: Option<Journal>,
}

impl Watch for Lines {
    fn reached(&mut self, _: f64) -> ControlFlow<()> {
        if interrupt::is_wanted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn iterated(&mut self, start: usize, iteration: &Iteration, _: &[f64]) -> ControlFlow<()> {
        if self.starts > 1 && start != self.start {
            files::complain(&format!("  start {} of {}\n", start + 1, self.starts));
        }
        self.start = start;
        let number = |x: f64| format!("{x:.3e}");
        let mut line = format!(
            "  {:>5} {:>16} {:>11} {:>11} {:>11} {:>7} {:>9}",
            iteration.number,
            significant(iteration.cost, 10),
            if iteration.violation > 0.0 { number(iteration.violation) } else { "0".into() },
            number(iteration.step),
            iteration.projected_gradient.map_or_else(|| "-".into(), number),
            iteration.evaluations,
            duration(iteration.seconds)
        );
        if iteration.failed > 0 {
            let _ = write!(line, "  {} failed", iteration.failed);
        }
        if iteration.jumps_changed {
            line.push_str("  other jumps: the cost may have a kink here");
        }
        if let Some(events) = &iteration.other_events {
            let _ = write!(line, "  other events ({events}): the cost may have a kink here");
        }
        files::complain(&(line + "\n"));
        if interrupt::is_wanted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn recall(&mut self, x: &[f64]) -> Option<Result<Evaluation, Failed>> {
        self.journal.as_ref().and_then(|journal| journal.recall(x))
    }

    fn evaluated(&mut self, x: &[f64], result: &Result<Evaluation, Failed>) {
        if let Some(journal) = &mut self.journal {
            journal.keep(x, result);
        }
    }
}

/// Which constraints are not met.
fn infeasible(problem: &Problem, search: &Search) -> String {
    let values = problem.row_values(&search.evaluation);
    let broken = problem.rows.iter().zip(values).filter(|(row, value)| row.violation(*value) > 0.0);
    let broken = broken.map(|(row, value)| {
        let (sign, bound) = match value > row.upper {
            _ if row.is_equation() => ("=", row.upper),
            true => ("<=", row.upper),
            false => (">=", row.lower),
        };
        format!("`{} {sign} {}` is missed by {}", row.name, short(bound), short(row.violation(value)))
    });
    format!(
        "no point was found that meets all constraints: {}; begin elsewhere with `--starts`, or allow more",
        broken.collect::<Vec<_>>().join(", ")
    )
}

/// Everything a report is made from.
struct Shown<'a> {
    arguments: &'a Optimise,
    problem: &'a Problem,
    outcome: &'a Outcome,
    written: Option<PathBuf>,
    /// True extremes at the start and at the end.
    extremes: [Vec<TrueExtreme>; 2],
}

/// Unknowns beyond these are not listed; `--json` has them all.
const LISTED: usize = 40;
/// Unknowns beyond these are too many for a command line.
const SET: usize = 12;

impl Shown<'_> {
    fn text(&self) -> String {
        let (problem, best) = (self.problem, self.outcome.best());
        let mut out = String::new();
        let _ = writeln!(
            out,
            "{}: {} = {} at the start, {} at the end",
            problem.name,
            problem.goal,
            significant(best.start_cost, 9),
            significant(best.cost, 12)
        );
        if !problem.rows.is_empty() {
            let mut table =
                Table::new(&["constraint", ">at least", ">at the start", ">at the end", ">at most"]);
            let (first, last) =
                (problem.row_values(&best.start_evaluation), problem.row_values(&best.evaluation));
            for ((row, first), last) in problem.rows.iter().zip(first).zip(last) {
                table.row([
                    row.name.clone(),
                    bound(row.lower),
                    significant(first, 9),
                    significant(last, 9),
                    bound(row.upper),
                ]);
            }
            let _ = write!(out, "\n{}", table.print());
        }
        let mut table = Table::new(&[
            "unknown",
            "unit",
            ">at least",
            ">at the start",
            ">at the end",
            ">at most",
            "scale",
        ]);
        for ((variable, first), last) in problem.variables.iter().zip(&best.start).zip(&best.x).take(LISTED) {
            table.row([
                variable.name.clone(),
                variable.unit.clone(),
                bound(variable.lower),
                short(*first),
                significant(*last, 14),
                bound(variable.upper),
                scale(variable.scaling, variable.scale),
            ]);
        }
        let _ = write!(out, "\n{}", table.print());
        if problem.variables.len() > LISTED {
            let _ = writeln!(out, "  … and {} more; `--json` has them all", problem.variables.len() - LISTED);
        }
        if let Some(optimality) = &best.optimality
            && !(optimality.bounds.is_empty() && optimality.rows.is_empty())
        {
            let mut table = Table::new(&["active", "", ">at", ">multiplier"]);
            for bound in optimality.bounds.iter().take(LISTED) {
                let side = if bound.is_upper { "upper bound" } else { "lower bound" };
                table.row([
                    bound.name.clone(),
                    side.into(),
                    short(bound.value),
                    significant(bound.multiplier, 12),
                ]);
            }
            for row in &optimality.rows {
                table.row([
                    row.name.clone(),
                    "constraint".into(),
                    short(row.value),
                    significant(row.multiplier, 12),
                ]);
            }
            let _ = write!(out, "\n{}", table.print());
        }
        if !self.extremes[1].is_empty() {
            let mut table = Table::new(&["extreme, at nodes", ">at the start", ">at the end"]);
            for (i, end) in self.extremes[1].iter().enumerate() {
                let start = self.extremes[0].get(i).map_or_else(String::new, |x| significant(x.value, 9));
                table.row([end.name.clone(), start, significant(end.value, 9)]);
            }
            let _ = write!(out, "\n{}", table.print());
        }
        if self.outcome.searches.len() > 1 {
            let mut table = Table::new(&[">start", ">cost", ">violation", ">iterations", ">runs", "ended"]);
            for (i, search) in self.outcome.searches.iter().enumerate() {
                table.row([
                    (i + 1).to_string(),
                    significant(search.cost, 10),
                    short(search.violation),
                    iterations(search).to_string(),
                    search.evaluations.to_string(),
                    status(search),
                ]);
            }
            let _ = write!(out, "\n{}", table.print());
        }
        let gradient = best.optimality.as_ref().map_or_else(String::new, |optimality| {
            format!(
                "; projected gradient {:.2e}, {:.2e} at the start",
                optimality.projected_gradient,
                first_gradient(best)
            )
        });
        let _ = writeln!(
            out,
            "\n  {} after {}, {} in {}{gradient}",
            status(best),
            count(iterations(best), "iteration"),
            count(best.evaluations, "evaluation"),
            duration(best.seconds)
        );
        if let (failed @ 1.., Some(why)) = (best.failed.0, &best.failed.1) {
            let _ = writeln!(
                out,
                "  {} failed and shortened the step; the last one: {why}",
                count(failed, "run")
            );
        }
        if let Some(written) = &self.written {
            let case = self.arguments.save_case.as_deref().unwrap_or_default();
            let _ = writeln!(out, "  case {case} is in {}", written.display());
        }
        if let Some(page) = &self.arguments.report {
            let _ = writeln!(out, "  page  {}", page.display());
        }
        let _ = writeln!(out, "  again: {}", again());
        if let Some(call) = self.call() {
            let _ = writeln!(out, "  to see it: {call}");
        }
        out
    }

    /// The run at the optimum.
    fn call(&self) -> Option<String> {
        let common = &self.arguments.common;
        let times: String = [("--end", common.end), ("--step", common.step)]
            .into_iter()
            .filter_map(|(name, value)| Some(format!(" {name} {}", exact(value?))))
            .collect();
        let run = if self.arguments.kinematics { "kinematics" } else { "run" };
        if let (Some(written), Some(case)) = (&self.written, &self.arguments.save_case) {
            return Some(format!(
                "mbs {run} {} --case {case}{times}",
                quoted(&written.display().to_string())
            ));
        }
        if self.problem.variables.len() > SET || !self.problem.inputs.is_empty() {
            return None;
        }
        let mut call = format!("mbs {run} {}{times}", quoted(&common.model.display().to_string()));
        let own = self.problem.cases().next().map(String::from).or_else(|| common.case.clone());
        own.iter().for_each(|case| call.push_str(&format!(" --case {case}")));
        for (name, value) in &common.set {
            call.push_str(&format!(" --set {}", quoted(&format!("{name}={}", exact(*value)))));
        }
        for (variable, value) in self.problem.variables.iter().zip(&self.outcome.best().x) {
            call.push_str(&format!(" --set {}", quoted(&format!("{}={}", variable.name, exact(*value)))));
        }
        Some(call)
    }

    fn json(&self) -> Value {
        let (problem, best) = (self.problem, self.outcome.best());
        let names = || problem.variables.iter().map(|variable| variable.name.clone());
        let rows = || problem.rows.iter().map(|row| row.name.clone());
        let unknowns: Vec<Value> = problem
            .variables
            .iter()
            .zip(best.start.iter().zip(&best.x))
            .map(|(variable, (start, value))| {
                let finite = |x: f64| x.is_finite().then_some(x);
                json!({
                    "name": variable.name, "unit": variable.unit, "min": finite(variable.lower), "max": finite(variable.upper),
                    "start": start, "value": value, "scale": scale(variable.scaling, variable.scale),
                })
            })
            .collect();
        let searches: Vec<Value> = self.outcome.searches.iter().map(|search| {
            json!({
                "start": by_name(names(), &search.start),
                "start_cost": search.start_cost,
                "parameters": by_name(names(), &search.x),
                "cost": search.cost,
                "violation": search.violation,
                "status": status(search),
                "iterations": iterations(search),
                "evaluations": search.evaluations,
                "failed_runs": search.failed.0,
                "last_failure": search.failed.1,
                "history": search.history.iter().map(|iteration| json!({
                    "iteration": iteration.number, "cost": iteration.cost, "violation": iteration.violation,
                    "step": iteration.step, "projected_gradient": iteration.projected_gradient,
                    "evaluations": iteration.evaluations, "failed_runs": iteration.failed, "seconds": iteration.seconds,
                    "other_jumps": iteration.jumps_changed, "other_events": iteration.other_events,
                })).collect::<Vec<_>>(),
                "wall_time": search.seconds,
            })
        }).collect();
        let optimality = best.optimality.as_ref().map(|optimality| {
            json!({
                "projected_gradient": optimality.projected_gradient,
                "bounds": optimality.bounds.iter().map(|bound| json!({
                    "name": bound.name, "at": bound.value, "side": if bound.is_upper { "upper" } else { "lower" },
                    "multiplier": bound.multiplier,
                })).collect::<Vec<_>>(),
                "constraints": optimality.rows.iter().map(|row| json!({
                    "name": row.name, "value": row.value, "multiplier": row.multiplier,
                })).collect::<Vec<_>>(),
            })
        });
        json!({
            "problem": problem.name,
            "file": self.arguments.common.model.display().to_string(),
            "minimised": problem.goal,
            "cost": best.cost,
            "start_cost": best.start_cost,
            "status": status(best),
            "parameters": by_name(names(), &best.x),
            "unknowns": unknowns,
            "constraints": by_name(rows(), &problem.row_values(&best.evaluation)),
            "gradient": by_name(names(), &problem.cost_gradient(&best.evaluation)),
            "optimality": optimality,
            "extremes": self.extremes[1].iter().enumerate().map(|(i, end)| json!({
                "name": end.name, "start": self.extremes[0].get(i).map(|start| start.value), "end": end.value,
            })).collect::<Vec<_>>(),
            "histories": problem.inputs.iter().map(|input| json!({
                "input": input.name, "form": input.history.form.keyword(), "times": input.times,
                "values": best.x.get(input.first..input.first + input.times.len()),
            })).collect::<Vec<_>>(),
            "method": problem.chosen_method().keyword(),
            "best_start": self.outcome.best_place() + 1,
            "searches": searches,
            "idle": self.outcome.idle,
            "saved": self.written.as_ref().map(|path| path.display().to_string()),
            "call": again(),
        })
    }
}

fn iterations(search: &Search) -> usize {
    search.history.len().saturating_sub(1)
}

fn first_gradient(search: &Search) -> f64 {
    search.history.first().and_then(|first| first.projected_gradient).unwrap_or(0.0)
}

fn status(search: &Search) -> String {
    match &search.status {
        Status::Converged => "converged".into(),
        Status::Stalled(why) => format!("no further decrease ({why})"),
        Status::Limit => "at the limit of iterations".into(),
        Status::Infeasible => "infeasible".into(),
        Status::Stopped => "interrupted".into(),
    }
}

fn bound(x: f64) -> String {
    if x.is_finite() { short(x) } else { String::new() }
}

fn scale(scaling: Scaling, scale: f64) -> String {
    match scaling {
        Scaling::Logarithm => "log".into(),
        _ => short(scale),
    }
}
