//! `mbs simulate`: settles what to run, runs it, and shows the result.

use crate::arguments::Simulate;
use crate::csv::{self, Csv};
use crate::failure::Failure;
use crate::files;
use crate::number::{count, duration, grouped, short, significant};
use crate::run::{self, Record, RunFailure};
use crate::table::Table;
use mbs_codegen::model::{self, Model, ParameterValue, Simulation};
use mbs_codegen::program::{BundleKind, Options, Program};
use mbs_engine::{Interpreted, ParameterError};
use mbs_runtime::StepError;
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::io::ErrorKind;
use std::path::Path;

/// Runs a model and shows the result.
pub(crate) fn simulate(arguments: &Simulate) -> Result<(), Failure> {
    let to_stdout = arguments.out.as_deref().is_some_and(csv::is_stdout);
    if to_stdout && arguments.json {
        return Err(Failure::usage("`--json` and `--out -` both want standard output"));
    }
    let model = crate::check::read_model(&arguments.model)?;
    let interpreted = interpret(&model, arguments)?;
    let simulation = settle(&interpreted.program().simulation, arguments)?;

    if let Some(out) = arguments.out.as_deref().filter(|out| is_same_file(out, &arguments.model)) {
        let message = format!("`--out {}` would overwrite the model; name another file", out.display());
        return Err(Failure::usage(message));
    }
    let columns = csv::columns(interpreted.program());
    let mut csv = match &arguments.out {
        Some(path) => Some(Csv::create(path, &columns).map_err(|error| cannot_write(path, &error))?),
        None => None,
    };
    let record = run::run(&interpreted, &simulation, arguments.recursive, csv.as_mut());
    let written = csv.map(|csv| Written { columns: columns.len(), rows: csv.rows, last: csv.last });

    let failure =
        record.failure.as_ref().and_then(|failure| explain(failure, &interpreted, arguments, written));
    // Nobody reads the results any more: that ends the run, and is no failure of it.
    if failure.is_none() && record.failure.is_some() {
        return Ok(());
    }
    if arguments.json {
        let message = failure.as_ref().map(|(message, _)| message.as_str());
        files::print(&(json_report(arguments, &interpreted, &simulation, &record, written, message) + "\n"))?;
    } else if failure.is_none() {
        let report = report(arguments, &interpreted, &simulation, &record, written);
        if to_stdout { files::complain(&report) } else { files::print(&report)? }
    }
    match failure {
        None => Ok(()),
        Some((message, true)) => Err(Failure::usage(message)),
        Some((message, false)) => Err(Failure::error(message)),
    }
}

fn is_same_file(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

/// What was written to the CSV file.
#[derive(Clone, Copy)]
struct Written {
    columns: usize,
    rows: usize,
    last: Option<f64>,
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    Failure::error(format!("cannot write `{}`: {}", path.display(), files::reason(error)))
}

/// The model with its case and the parameters of the command line.
fn interpret(model: &Model, arguments: &Simulate) -> Result<Interpreted, Failure> {
    let case = crate::check::find_case(model, arguments.case.as_deref())?;
    let dynamics =
        if arguments.recursive { BundleKind::ForwardDynamicsRecursive } else { BundleKind::ForwardDynamics };
    let options =
        Options { bundles: vec![dynamics, BundleKind::Energy, BundleKind::Outputs], ..Options::default() };
    let program = Program::new(model, case, &options).map_err(|error| Failure::error(error.to_string()))?;
    let mut interpreted = Interpreted::new(program);
    for (name, value) in &arguments.set {
        interpreted.set_parameter(name, *value).map_err(|error| refused(model, name, &error))?;
    }
    Ok(interpreted)
}

fn refused(model: &Model, name: &str, error: &ParameterError) -> Failure {
    let derived = |p: &model::Parameter| p.name == name && matches!(p.value, ParameterValue::Derived(_));
    if matches!(error, ParameterError::Unknown { .. }) && model.parameters.iter().any(derived) {
        return Failure::usage(format!(
            "cannot set `{name}`: it follows from other parameters; set those, or give it a number in the model"
        ));
    }
    Failure::usage(format!("cannot set `{name}`: {error}"))
}

/// The model's settings, overridden by the command line.
fn settle(defaults: &Simulation, arguments: &Simulate) -> Result<Simulation, Failure> {
    let mut simulation = defaults.clone();
    if let Some(integrator) = arguments.integrator {
        simulation.integrator = integrator.into();
    }
    for (given, setting) in [
        (arguments.end, &mut simulation.end),
        (arguments.step, &mut simulation.step),
        (arguments.rtol, &mut simulation.relative_tolerance),
        (arguments.atol, &mut simulation.absolute_tolerance),
    ] {
        *setting = given.unwrap_or(*setting);
    }
    simulation.output_step = arguments.output_step.or(simulation.output_step);
    if simulation.end <= simulation.begin {
        let (begin, end) = (simulation.begin, simulation.end);
        return Err(Failure::usage(format!("the end, {end} s, must lie after the begin, {begin} s")));
    }
    let steps = (simulation.end - simulation.begin) / simulation.step;
    if simulation.integrator == model::Integrator::Rk4 && steps.is_finite() && steps > MAX_STEPS {
        return Err(Failure::usage(format!(
            "{steps:.0} steps are too many; choose a larger `--step` or `--integrator dormand_prince`"
        )));
    }
    Ok(simulation)
}

/// Days of work: nobody means it.
const MAX_STEPS: f64 = 1e10;

/// The message of a failure and whether the command line is to blame; none if it only means that nobody reads the
/// results any more.
fn explain(
    failure: &RunFailure,
    model: &Interpreted,
    arguments: &Simulate,
    written: Option<Written>,
) -> Option<(String, bool)> {
    let usage = matches!(failure, RunFailure::Step(StepError::Setting { .. }));
    let mut message = match failure {
        RunFailure::Step(error) if usage => error.describe(model).to_string(),
        RunFailure::Step(error) => format!("the run failed {}", error.describe(model)),
        RunFailure::Observe(t, error) => format!("the run failed at t = {t}: {}", error.describe(model)),
        RunFailure::Write(error) if error.kind() == ErrorKind::BrokenPipe => return None,
        RunFailure::Write(error) => {
            let path = arguments.out.as_deref().unwrap_or(Path::new("-"));
            format!("cannot write `{}`: {}", path.display(), files::reason(error))
        }
    };
    if let (Some(path), Some(written)) = (&arguments.out, written)
        && !csv::is_stdout(path)
    {
        let path = path.display();
        let _ = match written.last {
            Some(t) => {
                write!(message, "\n`{path}` keeps the {}, up to t = {t}", count(written.rows, "result"))
            }
            None => write!(message, "\n`{path}` has no results"),
        };
    }
    Some((message, usage))
}

/// Coordinates beyond these are not plotted.
const PLOTTED: usize = 16;
/// Characters of a plot across.
const PLOT_WIDTH: usize = 56;

fn report(
    arguments: &Simulate,
    model: &Interpreted,
    simulation: &Simulation,
    record: &Record,
    written: Option<Written>,
) -> String {
    let program = model.program();
    let mut out = program.name.clone();
    if let Some(case) = &program.case {
        let _ = write!(out, ", case {case}");
    }
    let control = match simulation.integrator {
        model::Integrator::DormandPrince => {
            let [r, a] = [simulation.relative_tolerance, simulation.absolute_tolerance].map(short);
            format!("tolerance {r} relative, {a} absolute")
        }
        _ => format!("step {} s", short(simulation.step)),
    };
    let _ = writeln!(
        out,
        ": t = {} to {} s by {}, {control}{}",
        short(simulation.begin),
        short(record.t),
        simulation.integrator.keyword(),
        if arguments.recursive { ", recursive" } else { "" }
    );
    for (name, value) in &arguments.set {
        let _ = writeln!(out, "  with {name} = {}", short(*value));
    }

    out.push('\n');
    out.push_str(&states(program, record));
    if !program.outputs.is_empty() {
        let mut table = Table::new(&["output", ">at the end", "unit"]);
        for ((name, unit), &value) in program.outputs.iter().zip(&record.outputs) {
            table.row([name.clone(), significant(value, 9), unit.clone()]);
        }
        out.push('\n');
        out.push_str(&table.print());
    }
    out.push('\n');
    out.push_str(&plots(program, record));
    out.push('\n');
    out.push_str(&energy(record));
    out.push_str(&effort(simulation, record));
    if let (Some(path), Some(written)) = (&arguments.out, written) {
        let _ = writeln!(
            out,
            "  results  {}: {}, {}",
            path.display(),
            count(written.rows, "row"),
            count(written.columns, "column")
        );
    }
    out
}

fn states(program: &Program, record: &Record) -> String {
    let mut table = Table::new(&["state", ">at the start", ">at the end", ">smallest", ">largest"]);
    let names = program.coordinates.iter().chain(&program.velocities);
    for (i, ((name, &start), &end)) in names.zip(&record.start).zip(&record.state).enumerate() {
        let range = (i < program.coordinates.len()).then(|| record.curves.range(i));
        let [low, high] = match range {
            Some((low, high)) => [short(low), short(high)],
            None => [String::new(), String::new()],
        };
        table.row([name.clone(), short(start), significant(end, 9), low, high]);
    }
    table.print()
}

fn plots(program: &Program, record: &Record) -> String {
    let shown = program.coordinates.len().min(PLOTTED);
    let lines = match shown {
        0..=3 => 4,
        4..=8 => 2,
        _ => 1,
    };
    let names = &program.coordinates[..shown];
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    for (i, name) in names.iter().enumerate() {
        let (low, high) = record.curves.range(i);
        let drawn = record.curves.draw(i, PLOT_WIDTH, lines);
        for (k, line) in drawn.iter().enumerate() {
            let label = if k == 0 { name.as_str() } else { "" };
            let scale = match k {
                _ if lines == 1 => format!("{} to {}", significant(low, 3), significant(high, 3)),
                0 => significant(high, 4),
                k if k + 1 == lines => significant(low, 4),
                _ => String::new(),
            };
            let _ = writeln!(out, "{}", format!("  {label:<width$}  {line}  {scale}").trim_end());
        }
    }
    if program.coordinates.len() > shown {
        let _ = writeln!(out, "  and {}", count(program.coordinates.len() - shown, "further coordinate"));
    }
    out
}

fn energy(record: &Record) -> String {
    let balance = &record.balance;
    let largest = format!("the largest kinetic energy, {} J", short(balance.largest_kinetic));
    let mut out = String::new();
    let error = match balance.relative_error() {
        Some(relative) => format!("{} of {largest}", significant(relative, 2)),
        None => {
            balance.error().map_or("unknown: held inputs jump".into(), |e| format!("{} J", significant(e, 2)))
        }
    };
    if balance.driven {
        let [change, work] = [balance.change, balance.work].map(short);
        let _ = writeln!(
            out,
            "  energy   changed by {change} J, work of driving and damping forces about {work} J"
        );
        let _ = writeln!(out, "  balance  error {error}");
    } else {
        let _ = writeln!(out, "  energy   drift {error}");
    }
    out
}

fn effort(simulation: &Simulation, record: &Record) -> String {
    let statistics = &record.statistics;
    let rejected = match statistics.rejected {
        0 => String::new(),
        n => format!(" and {} rejected", grouped(n)),
    };
    format!(
        "  effort   {}{rejected}, {} in {}: {} times real time\n",
        count(statistics.steps, "step"),
        count(statistics.evaluations, "evaluation"),
        duration(record.seconds),
        significant((record.t - simulation.begin) / record.seconds, 3)
    )
}

fn json_report(
    arguments: &Simulate,
    model: &Interpreted,
    simulation: &Simulation,
    record: &Record,
    written: Option<Written>,
    error: Option<&str>,
) -> String {
    let program = model.program();
    let (z, v) = record.state.split_at(program.coordinates.len());
    let by_name = |names: &mut dyn Iterator<Item = &String>, values: &[f64]| -> Value {
        names.zip(values).map(|(name, &value)| (name.clone(), json!(value))).collect::<Map<_, _>>().into()
    };
    let statistics = &record.statistics;
    let parameters = by_name(&mut program.parameter_names().iter(), model.parameters());
    let balance = &record.balance;
    let [kinetic, potential, power] = record.energy;
    let mut object = json!({
        "model": program.name,
        "file": arguments.model.display().to_string(),
        "case": program.case,
        "parameters": parameters,
        "simulation": {
            "begin": simulation.begin,
            "end": simulation.end,
            "step": simulation.step,
            "output_step": simulation.output_step,
            "integrator": simulation.integrator.keyword(),
            "relative_tolerance": simulation.relative_tolerance,
            "absolute_tolerance": simulation.absolute_tolerance,
            "recursive": arguments.recursive,
        },
        "final": {
            "t": record.t,
            "coordinates": by_name(&mut program.coordinates.iter(), z),
            "velocities": by_name(&mut program.velocities.iter(), v),
            "outputs": by_name(&mut program.outputs.iter().map(|(name, _)| name), &record.outputs),
            "energy": {"kinetic": kinetic, "potential": potential, "power": power},
        },
        "energy": {
            "largest_kinetic": balance.largest_kinetic,
            "change": balance.change,
            "work": balance.work,
            "conservative": !balance.driven,
            "balance_error": balance.error(),
            "relative_balance_error": balance.relative_error(),
        },
        "statistics": {
            "steps": statistics.steps,
            "rejected": statistics.rejected,
            "evaluations": statistics.evaluations,
            "wall_time": record.seconds,
            "real_time_factor": (record.t - simulation.begin) / record.seconds,
        },
    });
    if let (Some(path), Some(written)) = (&arguments.out, written) {
        object["csv"] =
            json!({"file": path.display().to_string(), "rows": written.rows, "columns": written.columns});
    }
    if let Some(error) = error {
        object["error"] = json!(error);
        // A run that failed has no such numbers.
        object["statistics"] = json!({"wall_time": record.seconds});
    }
    pretty(&object)
}

/// JSON as a person reads it.
pub(crate) fn pretty(value: &Value) -> String {
    // A value always has a text.
    serde_json::to_string_pretty(value).unwrap_or_default()
}
