//! `mbs sweep`: many runs with other parameters, and statistics of their results.

use crate::arguments::Sweep;
use crate::output::csv::is_parquet;
use crate::output::json::pretty;
use crate::output::number::{count, duration, short, significant};
use crate::output::sweep_page::{Swept, sweep_page};
use crate::output::table::Table;
use crate::session::failure::Failure;
use crate::session::progress::Progress;
use crate::session::repeated::again;
use crate::session::rows::{self, Rows};
use crate::session::settings::{name_independent, overrides};
use crate::session::{files, interrupt, model};
use mbs_engine::ParameterError;
use mbs_engine::simulation::{Instance, InstanceError};
use mbs_engine::sweep::{self, Index, Indices, Plan, Row};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Runs a sweep, or joins its parts, and shows what came of it.
pub(crate) fn sweep(arguments: &Sweep) -> Result<(), Failure> {
    let common = &arguments.common;
    let mut source = model::read(&common.model, common.coordinates)?;
    name_independent(&mut source, common, &arguments.method)?;
    let case = model::find_case(&source, common.case.as_deref())?;
    let plan = Plan::new(
        arguments.over.clone(),
        arguments.design.into(),
        arguments.samples.map(|n| n as usize),
        arguments.seed,
    );
    let plan = plan.map_err(|error| Failure::usage(format!("{error}; see `mbs sweep --help`")))?;
    if let Some(out) = &arguments.out {
        files::refuse_overwriting("--out", out, "the model", &common.model)?;
        if is_parquet(out) && arguments.resume {
            return Err(Failure::usage(
                "`--resume` needs a CSV file: a Parquet file is nothing before its end",
            ));
        }
    }
    if let Some(path) = &arguments.report {
        files::refuse_overwriting("--report", path, "the model", &common.model)?;
        files::check_place(path)?;
    }
    let overrides = overrides(common, None, Some(&arguments.method));
    let mut instance =
        model::write_equations(&source, || Instance::of_dynamics(&source, case, &common.set, &overrides))?;
    // Every run of a sweep is expected, not one.
    let expected = instance.settings.expected_evaluations().map(|n| n.saturating_mul(plan.len().min(1000)));
    let (engine, fusing) = common.engine.into();
    instance.model.set_engine(engine, expected, fusing);
    for axis in &plan.axes {
        instance.model.parameter(&axis.name).map_err(|error| refused(&source, &axis.name, error))?;
    }
    let results = sweep::columns(&instance);
    let begin = Instant::now();
    let (rows, interrupted) = match arguments.collect.is_empty() {
        true => run(arguments, &instance, &plan, &results)?,
        false => (collect(arguments, &plan, &results)?, false),
    };
    let shown = Shown {
        arguments,
        plan: &plan,
        results: &results,
        rows: &rows,
        seconds: begin.elapsed().as_secs_f64(),
    };
    if let Some(path) = &arguments.report {
        let mut failures: Vec<(String, usize)> =
            shown.failures().into_iter().map(|(why, n)| (why.to_string(), n)).collect();
        failures.sort_by_key(|reason| std::cmp::Reverse(reason.1));
        failures.truncate(20);
        let page = sweep_page(&Swept {
            title: format!("{}: sweep", source.name),
            description: source.description.clone(),
            call: again(),
            plan: &plan,
            results: &results,
            rows: &rows,
            indices: &shown.indices(),
            failures,
        });
        files::write_whole(path, &page.html())?;
    }
    match common.json {
        true => files::print(&(pretty(&shown.json()) + "\n"))?,
        false => files::print(&shown.text())?,
    }
    match interrupted {
        true => Err(Failure::interrupted("interrupted: the file has the rows so far; `--resume` goes on")),
        false => Ok(()),
    }
}

fn refused(source: &mbs_codegen::model::Model, name: &str, error: ParameterError) -> Failure {
    model::explain(source, &InstanceError::Parameter { name: name.into(), error })
}

/// Runs the part that is asked for; whether it was interrupted.
fn run(
    arguments: &Sweep,
    instance: &Instance,
    plan: &Plan,
    results: &[String],
) -> Result<(Vec<Row>, bool), Failure> {
    let (i, n) = arguments.shard.unwrap_or((1, 1));
    let part = plan.shard(i, n);
    let csv = arguments.out.as_deref().filter(|out| !is_parquet(out));
    let (mut file, mut all) = match csv {
        Some(out) if arguments.resume => {
            let (file, rows) = Rows::resume(out, plan, results, &part)?;
            (Some(file), rows)
        }
        Some(out) => {
            rows::spare_unfinished(out, plan, results, &part)?;
            (Some(Rows::create(out, plan, results)?), Vec::new())
        }
        None => (None, Vec::new()),
    };
    if let Some(out) = arguments.out.as_deref().filter(|out| is_parquet(out)) {
        files::check_place(out)?;
    }
    if !all.is_empty() {
        files::complain(&format!("going on after {}\n", count(all.len(), "row")));
    }
    interrupt::install_handler();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(arguments.threads.unwrap_or(0) as usize).build();
    let pool = pool.map_err(|error| Failure::error(format!("cannot use the cores: {error}")))?;
    let rest = part.start + all.len()..part.end;
    let mut progress = Progress::new((0.0, part.len() as f64));
    let (stop, done) = (AtomicBool::new(false), AtomicBool::new(false));
    let mut failure = None;
    std::thread::scope(|scope| {
        // An interrupt ends the runs under way.
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                if interrupt::is_wanted() {
                    stop.store(true, Ordering::Relaxed);
                }
                std::thread::sleep(std::time::Duration::from_millis(50));
            }
        });
        let mut take = |rows: Vec<Row>| {
            if let Some(Err(error)) = file.as_mut().map(|file| file.write(&rows)) {
                failure = Some(error);
                return ControlFlow::Break(());
            }
            all.extend(rows);
            progress.say(&format!("{} of {} runs", all.len(), part.len()));
            ControlFlow::Continue(())
        };
        // The thread that makes the runs calls back with rows: it alone touches the file.
        pool.scope(|_| sweep::run(instance, plan, rest, &stop, &mut take));
        done.store(true, Ordering::Relaxed);
    });
    progress.finish();
    if let Some(failure) = failure {
        return Err(failure);
    }
    if let Some(out) = arguments.out.as_deref().filter(|out| is_parquet(out) && !all.is_empty()) {
        rows::write_parquet(out, plan, results, &all)?;
    }
    Ok((all, stop.load(Ordering::Relaxed)))
}

/// Joins parts; every run must be there once.
fn collect(arguments: &Sweep, plan: &Plan, results: &[String]) -> Result<Vec<Row>, Failure> {
    let mut all: Vec<Option<Row>> = vec![None; plan.len()];
    for file in &arguments.collect {
        if let Some(out) = &arguments.out {
            files::refuse_overwriting("--out", out, "a part", file)?;
        }
        for row in rows::read(file, plan, results)?.0 {
            let number = row.number;
            if all[number].replace(row).is_some() {
                return Err(Failure::error(format!(
                    "run {number} is there twice: also in `{}`",
                    file.display()
                )));
            }
        }
    }
    let missing: Vec<usize> = (0..all.len()).filter(|i| all[*i].is_none()).collect();
    if let (Some(first), Some(last)) = (missing.first(), missing.last()) {
        let (runs, n) = (count(missing.len(), "run"), plan.len());
        let verb = if missing.len() == 1 { "is" } else { "are" };
        return Err(Failure::error(format!(
            "{runs} of {n} {verb} missing, between {first} and {last}: a part is not complete"
        )));
    }
    let all: Vec<Row> = all.into_iter().flatten().collect();
    match arguments.out.as_deref() {
        Some(out) if is_parquet(out) => rows::write_parquet(out, plan, results, &all)?,
        Some(out) => Rows::create(out, plan, results)?.write(&all)?,
        None => {}
    }
    Ok(all)
}

/// Everything a report is made from.
struct Shown<'a> {
    arguments: &'a Sweep,
    plan: &'a Plan,
    results: &'a [String],
    rows: &'a [Row],
    seconds: f64,
}

/// What is known of one result.
struct Summary {
    mean: f64,
    deviation: f64,
    least: (f64, usize),
    most: (f64, usize),
}

impl Shown<'_> {
    fn summary(&self, k: usize) -> Option<Summary> {
        let values: Vec<(f64, usize)> = self
            .rows
            .iter()
            .filter_map(|row| Some((*row.result.as_ref().ok()?.get(k)?, row.number)))
            .collect();
        let n = values.len() as f64;
        let mean = values.iter().map(|(x, _)| x).sum::<f64>() / n;
        let variance = values.iter().map(|(x, _)| (x - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
        let least = values.iter().copied().min_by(|a, b| a.0.total_cmp(&b.0))?;
        let most = values.iter().copied().max_by(|a, b| a.0.total_cmp(&b.0))?;
        Some(Summary { mean, deviation: variance.sqrt(), least, most })
    }

    /// Reasons and how many runs failed for each; names in backquotes and numbers, which differ from run to run, are ignored.
    fn failures(&self) -> BTreeMap<&str, usize> {
        let mut reasons = BTreeMap::new();
        for why in self.rows.iter().filter_map(|row| row.result.as_ref().err()) {
            *reasons.entry(why.as_str()).or_insert(0) += 1;
        }
        reasons
    }

    fn indices(&self) -> Vec<Indices> {
        let whole = self.rows.len() == self.plan.len();
        let one = |(k, name): (usize, &String)| {
            let values: Vec<Option<f64>> = self
                .rows
                .iter()
                .map(|row| row.result.as_ref().ok().and_then(|r| r.get(k).copied()))
                .collect();
            sweep::indices(self.plan, name, &values)
        };
        self.results.iter().enumerate().filter(|_| whole).filter_map(one).collect()
    }

    fn text(&self) -> String {
        let (rows, failed) = (self.rows.len(), self.rows.iter().filter(|row| row.result.is_err()).count());
        let mut out = format!(
            "{} of {} points in {}: {} runs a second\n",
            count(rows, "run"),
            self.plan.len(),
            duration(self.seconds),
            significant(rows as f64 / self.seconds, 4)
        );
        let mut table =
            Table::new(&["result", ">mean", ">deviation", ">least", ">in run", ">most", ">in run"]);
        for (k, name) in self.results.iter().enumerate() {
            let Some(summary) = self.summary(k) else { continue };
            table.row([
                name.clone(),
                short(summary.mean),
                short(summary.deviation),
                significant(summary.least.0, 9),
                summary.least.1.to_string(),
                significant(summary.most.0, 9),
                summary.most.1.to_string(),
            ]);
        }
        if !table.is_empty() {
            let _ = write!(out, "\n{}", table.print());
        }
        for indices in self.indices() {
            let _ = write!(out, "\n{}", self.table(&indices));
        }
        if failed > 0 {
            let _ = writeln!(out, "\n  {} failed", count(failed, "run"));
            let mut reasons: Vec<(&str, usize)> = self.failures().into_iter().collect();
            reasons.sort_by_key(|reason| std::cmp::Reverse(reason.1));
            for (why, n) in reasons.iter().take(5) {
                let _ = writeln!(out, "  {n:>7}  {why}");
            }
            if reasons.len() > 5 {
                let _ = writeln!(out, "           … and {} more reasons", reasons.len() - 5);
            }
        }
        if let Some(file) = &self.arguments.out {
            let _ = writeln!(out, "\n  rows  {}", file.display());
        }
        if let Some(page) = &self.arguments.report {
            let _ = writeln!(out, "  page  {}", page.display());
        }
        out
    }

    fn table(&self, indices: &Indices) -> String {
        if indices.axes.is_empty() {
            return match indices.used {
                0 => format!(
                    "  {}: no sample has a number in all of its runs, so there are no indices\n",
                    indices.name
                ),
                _ => format!("  {} does not vary, so it has no indices\n", indices.name),
            };
        }
        let sobol = matches!(indices.axes.first(), Some(Index::Sobol { .. }));
        let heads = match sobol {
            true => [&indices.name, ">first", ">error", ">total", ">error"],
            false => [&indices.name, ">mean effect", ">mean size", ">deviation", ""],
        };
        let mut table = Table::new(&heads);
        for (axis, index) in self.plan.axes.iter().zip(&indices.axes) {
            table.row(match *index {
                Index::Sobol { first, first_error, total, total_error } => [
                    axis.name.clone(),
                    significant(first, 4),
                    significant(first_error, 2),
                    significant(total, 4),
                    significant(total_error, 2),
                ],
                Index::Morris { mean, size, deviation } => {
                    [axis.name.clone(), short(mean), short(size), short(deviation), String::new()]
                }
            });
        }
        table.print()
    }

    fn json(&self) -> Value {
        let results: Map<String, Value> = self
            .results
            .iter()
            .enumerate()
            .filter_map(|(k, name)| {
                let s = self.summary(k)?;
                let value = json!({
                    "mean": s.mean, "deviation": s.deviation,
                    "least": {"value": s.least.0, "run": s.least.1}, "most": {"value": s.most.0, "run": s.most.1},
                });
                Some((name.clone(), value))
            })
            .collect();
        let index = |index: &Index| match *index {
            Index::Sobol { first, first_error, total, total_error } => {
                json!({"first": first, "first_error": first_error, "total": total, "total_error": total_error})
            }
            Index::Morris { mean, size, deviation } => {
                json!({"mean": mean, "size": size, "deviation": deviation})
            }
        };
        let indices: Map<String, Value> = self
            .indices()
            .iter()
            .map(|indices| {
                let axes = self.plan.axes.iter().zip(&indices.axes);
                let axes: Map<String, Value> = axes.map(|(axis, i)| (axis.name.clone(), index(i))).collect();
                // A result that does not vary has none.
                let axes = if axes.is_empty() { Value::Null } else { axes.into() };
                (indices.name.clone(), axes)
            })
            .collect();
        json!({
            "file": self.arguments.common.model.display().to_string(),
            "points": self.plan.len(),
            "runs": self.rows.len(),
            "failed": self.rows.iter().filter(|row| row.result.is_err()).count(),
            "failures": self.failures(),
            "results": results,
            "indices": indices,
            "rows": self.arguments.out.as_ref().map(|path| path.display().to_string()),
            "wall_time": self.seconds,
        })
    }
}
