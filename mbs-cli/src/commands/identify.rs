//! `mbs identify`: parameters from measurements.

use crate::arguments::Identify;
use crate::output::json::{by_name, pretty};
use crate::output::number::{count, duration, short, significant};
use crate::output::table::Table;
use crate::session::failure::Failure;
use crate::session::settings::{name_independent, overrides};
use crate::session::{files, interrupt, model};
use mbs_engine::identification::{End, Fit, FitError, Measurements, Step, fit};
use mbs_engine::optimisation::unknowns;
use mbs_engine::simulation::Instance;
use serde_json::{Value, json};
use std::fmt::Write;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Fits parameters and shows what the measurements say of them.
pub(crate) fn identify(arguments: &Identify) -> Result<(), Failure> {
    let common = &arguments.common;
    let mut source = model::read(&common.model, common.coordinates)?;
    name_independent(&mut source, common, &arguments.method)?;
    let case = model::find_case(&source, common.case.as_deref())?;
    let over = unknowns(&source, &arguments.over).map_err(Failure::usage)?;
    let data = measurements(&arguments.measurements)?;
    let overrides = overrides(common, None, Some(&arguments.method));
    let mut instance =
        model::write_equations(&source, || Instance::of_dynamics(&source, case, &common.set, &overrides))?;
    let (engine, fusing) = common.engine.into();
    instance.model.set_engine(engine, None, fusing);
    files::complain(&format!(
        "{}: {} from {}\n  {:>5} {:>16} {:>7} {:>9}\n",
        source.name,
        count(over.len(), "parameter"),
        count(data.count(), "number"),
        "iter",
        "squares",
        "runs",
        "time"
    ));
    interrupt::install_handler();
    let (stop, done) = (AtomicBool::new(false), AtomicBool::new(false));
    let mut watch = |step: &Step| {
        files::complain(&format!(
            "  {:>5} {:>16} {:>7} {:>9}\n",
            step.number,
            significant(step.squares, 10),
            step.runs,
            duration(step.seconds)
        ));
        if interrupt::is_wanted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let found = std::thread::scope(|scope| {
        // A second interrupt ends the program; the first ends the runs under way.
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                stop.store(interrupt::is_wanted(), Ordering::Relaxed);
                std::thread::sleep(std::time::Duration::from_millis(50));
            }
        });
        let found =
            fit(&source, &instance, &over, &data, arguments.max_iterations as usize, &stop, &mut watch);
        done.store(true, Ordering::Relaxed);
        found
    });
    let found = found.map_err(|error| match error {
        FitError::Stopped => Failure::interrupted("stopped before the fit was done"),
        FitError::Measurements(error) => {
            Failure::error(format!("cannot use `{}`: {error}", arguments.measurements.display()))
        }
        error => Failure::error(error.to_string()),
    })?;
    for note in &found.notes {
        files::complain(&format!("note: {note}\n"));
    }
    for line in undetermined(&found) {
        files::complain(&format!("warning: {line}\n"));
    }
    match common.json {
        true => files::print(&(pretty(&json(&found)) + "\n")),
        false => files::print(&text(&found)),
    }
}

/// Reads a file of measurements.
fn measurements(path: &Path) -> Result<Measurements, Failure> {
    let file = files::read(path)?;
    let cannot = |why: String| Failure::error(format!("cannot read `{}`: {why}", path.display()));
    let mut reader =
        csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(file.text.as_bytes());
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| cannot(error.to_string()))?;
        rows.push(record.iter().map(String::from).collect::<Vec<String>>());
    }
    let head = if rows.is_empty() { Vec::new() } else { rows.remove(0) };
    Measurements::of_table(&head, &rows).map_err(|error| cannot(error.to_string()))
}

/// What the measurements do not determine, in words.
fn undetermined(found: &Fit) -> Vec<String> {
    let names: Vec<&str> = found.variables.iter().map(|variable| variable.name.as_str()).collect();
    let line = |direction: &mbs_engine::identification::Direction| match direction.parts.as_slice() {
        [(only, _)] => {
            format!("`{}` cannot be identified: the measurements do not depend on it", names[*only])
        }
        parts => {
            let list: Vec<String> = parts.iter().map(|(k, _)| format!("`{}`", names[*k])).collect();
            let sum: Vec<String> =
                parts.iter().map(|(k, part)| format!("{} {}", significant(*part, 2), names[*k])).collect();
            format!(
                "{} cannot be identified together: the measurements do not change along {} (scaled)",
                list.join(" and "),
                sum.join(" + ")
            )
        }
    };
    found.statistics.undetermined.iter().map(line).collect()
}

fn status(found: &Fit) -> &'static str {
    match found.end {
        End::Stopped => "interrupted",
        End::Converged => "converged",
        End::Cornered => "not converged: runs on the way to a better fit failed; ended",
        End::Limit => "at the limit of iterations",
    }
}

fn text(found: &Fit) -> String {
    let mut out = format!(
        "sum of squares {} at the start, {} at the end; {}, standard deviation {}\n\n",
        significant(found.squares.0, 6),
        significant(found.squares.1, 9),
        count(found.count, "number"),
        significant(found.statistics.deviation, 4)
    );
    let mut table = Table::new(&["parameter", "unit", ">at the start", ">found", ">deviation"]);
    for (k, variable) in found.variables.iter().enumerate() {
        let deviation = found.statistics.deviations[k];
        table.row([
            variable.name.clone(),
            variable.unit.clone(),
            short(found.start[k]),
            significant(found.x[k], 10),
            if deviation.is_finite() { significant(deviation, 3) } else { "not determined".into() },
        ]);
    }
    out.push_str(&table.print());
    let correlations = &found.statistics.correlations;
    let mut pairs = Table::new(&["correlation", "with", ">"]);
    for (a, row) in correlations.iter().enumerate() {
        for (b, &r) in row.iter().enumerate().skip(a + 1).filter(|(_, r)| r.abs() >= 0.5) {
            let [a, b] = [a, b].map(|k| found.variables[k].name.clone());
            pairs.row([a, b, significant(r, 4)]);
        }
    }
    if !pairs.is_empty() {
        let _ = write!(out, "\n{}", pairs.print());
    }
    for line in undetermined(found) {
        let _ = writeln!(out, "\n  {line}");
    }
    let last = found.history.last();
    let _ = writeln!(
        out,
        "\n  {} after {}, {} in {}",
        status(found),
        count(found.history.len() - 1, "iteration"),
        count(last.map_or(0, |step| step.runs), "run"),
        duration(last.map_or(0.0, |step| step.seconds))
    );
    if let (failed @ 1.., Some(why)) = (found.failed.0, &found.failed.1) {
        let _ = writeln!(out, "  {} failed; the last one: {why}", count(failed, "run"));
    }
    out
}

fn json(found: &Fit) -> Value {
    let names = || found.variables.iter().map(|variable| variable.name.clone());
    let finite = |x: f64| x.is_finite().then_some(x);
    let deviations: Vec<Value> = found.statistics.deviations.iter().map(|x| json!(finite(*x))).collect();
    let correlations: Vec<Vec<Option<f64>>> =
        found.statistics.correlations.iter().map(|row| row.iter().map(|x| finite(*x)).collect()).collect();
    let open: Vec<Value> = found
        .statistics
        .undetermined
        .iter()
        .map(|direction| {
            let (who, parts): (Vec<String>, Vec<f64>) =
                direction.parts.iter().map(|(k, part)| (found.variables[*k].name.clone(), *part)).unzip();
            json!({"singular_value": direction.relative, "parts": by_name(who, &parts)})
        })
        .collect();
    json!({
        "status": status(found),
        "parameters": by_name(names(), &found.x),
        "start": by_name(names(), &found.start),
        "deviations": names().zip(deviations).collect::<serde_json::Map<_, _>>(),
        "correlations": correlations,
        "singular_values": found.statistics.singular_values,
        "undetermined": open,
        "squares": {"start": found.squares.0, "end": found.squares.1},
        "deviation": found.statistics.deviation,
        "numbers": found.count,
        "iterations": found.history.len() - 1,
        "runs": found.history.last().map(|step| step.runs),
        "failed_runs": found.failed.0,
    })
}
