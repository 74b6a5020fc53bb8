//! `mbs gradient`: run a model with its derivatives, and show objectives and their gradient.

mod driven;
mod further;

use crate::arguments::{Common, Gradient};
use crate::output::number::{count, duration, short, significant};
use crate::output::shown::Written;
use crate::output::{json as report_json, text};
use crate::session::execution::{failed, warn_of_redundancy};
use crate::session::failure::Failure;
use crate::session::results::{Stop, Watcher, cannot_write, check_out, write_table};
use crate::session::settings::{self, overrides};
use crate::session::{differentiated, files, model};
pub(crate) use driven::driven;
use further::Further;
use mbs_codegen::diagnostics::nearest;
use mbs_codegen::model::{GradientMethod, Model, Objective};
use mbs_codegen::program::BundleKind;
use mbs_engine::Interpreted;
use mbs_engine::gradient::adjoint::Choice;
use mbs_engine::gradient::{self, Effort, InputHistory, Ran};
use mbs_engine::simulation::{
    Column, InstanceError, RunFailure, Settings, interpret, refuse_unfit, simulation, warning_of_projections,
};
use mbs_runtime::{AdjointStatistics, Schedule, StepError};
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::io::ErrorKind;

/// Runs a model with its derivatives and shows the gradient.
pub(crate) fn gradient(arguments: &Gradient) -> Result<(), Failure> {
    let Gradient { common, by, trajectories: file, output_step, method, .. } = arguments;
    let to_stdout = check_out("--trajectories", file.as_deref(), common)?;
    let history_to_stdout = check_out("--input-history", arguments.input_history.as_deref(), common)?;
    if let (Some(a), Some(b)) = (file.as_deref(), arguments.input_history.as_deref()) {
        files::refuse_twice(("--trajectories", a), ("--input-history", b))?;
    }
    let mut source = differentiated::read(common, by)?;
    differentiated::append_inputs(&mut source, &arguments.by_input)?;
    differentiated::check_list(&source, common)?;
    settings::name_independent(&mut source, common, method)?;
    let chosen = choose(&source, arguments.objectives.as_deref(), file.is_some())?;
    let case = model::find_case(&source, common.case.as_deref())?;
    let constrained = source.is_constrained();
    let overrides = overrides(common, *output_step, Some(method));
    let settings = Settings::of_dynamics(simulation(&source, case), constrained, &overrides);
    let mut settings = settings.map_err(|error| settings::refuse(&error))?;
    if arguments.recursive {
        settings.make_recursive().map_err(|error| settings::refuse(&error))?;
    }
    let asked = asked(arguments, settings.simulation.gradient)?;
    settings.simulation.gradient = asked;
    refuse_unfit(&source, case, &settings).map_err(|error| model::explain(&source, &error))?;
    let mut bundles = gradient::bundles(&settings.simulation, constrained);
    bundles.extend(settings.recursive.then_some(BundleKind::ForwardDynamicsRecursive));
    let mut interpreted = model::write_equations(&source, || interpret(&source, case, &common.set, bundles))?;
    if interpreted.program().coordinates.is_empty() {
        return Err(model::explain(&source, &InstanceError::NothingMoves));
    }
    interpreted.set_recursive(settings.recursive);
    settings::choose_engine(&mut interpreted, common.engine, &settings);
    settings::note_idle(&settings);

    let prepared = gradient::prepare(&interpreted, &settings);
    let failed = |failure: &RunFailure, written: Option<&Written<'_>>| {
        let more = match failure {
            RunFailure::Start(error) | RunFailure::Step(error) => {
                differentiated::undefined(&source, case, &common.set, &settings, error)
            }
            _ => String::new(),
        };
        explain(&interpreted, failure, written).and(&more)
    };
    let (start, stride) = prepared.map_err(|failure| failed(&failure, None))?;
    warn_of_redundancy(&source, &start.statistics);
    let known = start.knows_multipliers(&start.method(&interpreted, &settings.simulation));
    if file.is_some() && !known {
        files::complain(UNKNOWN_MULTIPLIERS);
    }
    let (simulation, memory) = (&settings.simulation, arguments.memory);
    let choice = gradient::adjoint::choose(&interpreted, simulation, asked, memory, file.is_some());
    let choice = choice.map_err(|error| explain(&interpreted, &RunFailure::Step(error), None))?;
    let columns = gradient::trajectory_columns(interpreted.program(), known);
    let columns: Vec<Column> = columns.into_iter().map(|name| Column::new(name, "")).collect();
    let mut watcher = Watcher::new(file.as_deref(), &columns, false, &settings.simulation)?;
    let told = (asked != GradientMethod::Direct).then_some(&choice);
    if let Some(plan) = choice.schedule.filter(|plan| plan.recomputed() > 0) {
        files::complain(&announce(&plan));
    }
    let mut history = None;
    if !arguments.by_input.is_empty() {
        let method = start.method(&interpreted, &settings.simulation);
        let new = InputHistory::new(&interpreted, &method, &start);
        history = Some(new.map_err(|error| explain(&interpreted, &RunFailure::Step(error), None))?);
    }
    let first = start.clone();
    let outcome = match &mut history {
        Some(history) => {
            let (memory, history) = (choice.memory, Some(history));
            gradient::simulate_backward(&interpreted, &settings, start, memory, &mut watcher, history)
        }
        None => gradient::simulate_as(&interpreted, &settings, (start, stride), &choice, &mut watcher),
    };
    let Some((ran, written)) = finish(watcher, outcome, failed)? else { return Ok(()) };
    for jump in &ran.jumps {
        files::complain(&format!("warning: {jump}\n"));
    }
    let (Effort::Implicit(run) | Effort::Explicit(run)) = &ran.found.effort;
    if let Some(warning) = warning_of_projections(run.short_projections) {
        files::complain(&format!("warning: {warning}\n"));
    }
    let further = Further::new(arguments, &interpreted, &settings, first, &ran, choice.memory, history)?;
    if let (Some(file), Some(history)) = (&arguments.input_history, &further.history) {
        write_table(file, &history_columns(&interpreted, history), &history.times, &history.derivatives)?;
    }
    Shown { common, model: &interpreted, settings: &settings, ran, chosen, written, told, further }
        .print(to_stdout || history_to_stdout)
}

/// The results of a run and the file it wrote; none if the reader of that file is gone.
fn finish<'a, T>(
    watcher: Watcher<'a>,
    outcome: Result<T, RunFailure>,
    failed: impl Fn(&RunFailure, Option<&Written<'_>>) -> Failure,
) -> Result<Option<(T, Option<Written<'a>>)>, Failure> {
    let (written, stop) = watcher.finish(outcome.as_ref().err());
    match (outcome, stop) {
        (Ok(_) | Err(RunFailure::Stopped(_)), Some(Stop::Write(error))) => match error.kind() {
            ErrorKind::BrokenPipe => Ok(None),
            _ => Err(Failure::error(cannot_write(written.as_ref(), &error))),
        },
        (Ok(ran), _) => Ok(Some((ran, written))),
        (Err(failure), _) => Err(failed(&failure, written.as_ref())),
    }
}

const UNKNOWN_MULTIPLIERS: &str = "\
note: constraints depend on each other, and an explicit integrator does not know how their multipliers move: the file has \
the other derivatives\n";

/// How the gradient is to be computed; derivatives by histories of inputs need the adjoint.
fn asked(arguments: &Gradient, in_file: GradientMethod) -> Result<GradientMethod, Failure> {
    let asked = arguments.by_method.map(Into::into);
    match asked {
        _ if arguments.by_input.is_empty() => Ok(asked.unwrap_or(in_file)),
        Some(GradientMethod::Direct) => Err(Failure::usage(
            "`--by-input` takes the adjoint: leave out `--method direct`, which differentiates by one constant for each input",
        )),
        _ => Ok(GradientMethod::Adjoint),
    }
}

/// Columns of the file of an input's history.
fn history_columns(model: &Interpreted, history: &InputHistory) -> Vec<Column> {
    let objectives = model.program().objectives.iter();
    let names = objectives
        .flat_map(|(psi, _)| history.inputs.iter().map(move |input| format!("d({psi})/d({input})")));
    [Column::new("t", "")].into_iter().chain(names.map(|name| Column::new(name, ""))).collect()
}

/// The objectives that are wanted, by place; all if none are named.
fn choose(model: &Model, wanted: Option<&[String]>, trajectories: bool) -> Result<Vec<usize>, Failure> {
    let names = || model.objectives.iter().map(|objective: &Objective| objective.name.as_str());
    if model.objectives.is_empty() && !trajectories {
        return Err(Failure::error(
            "the model has no objectives, so there is no gradient; write, for example, `objectives: {psi: rate(JOINT)^2}`, or ask \
             for derivatives of the motion: `--trajectories FILE.csv`",
        ));
    }
    let Some(wanted) = wanted else { return Ok((0..model.objectives.len()).collect()) };
    let place = |name: &String| {
        names().position(|own| own == name.trim()).ok_or_else(|| {
            let near = nearest(name, names()).map(|near| format!("; did you mean `{near}`?"));
            let list = || format!("; there are {}", names().collect::<Vec<_>>().join(", "));
            Failure::usage(format!("there is no objective `{name}`{}", near.unwrap_or_else(list)))
        })
    };
    wanted.iter().map(place).collect()
}

/// Why there is no gradient, as a failure of the command.
pub(crate) fn explain(model: &Interpreted, failure: &RunFailure, written: Option<&Written<'_>>) -> Failure {
    let kept = written.map_or(String::new(), |written| written.kept());
    match failure {
        RunFailure::Start(error @ StepError::NotDifferentiable { .. }) => {
            Failure::error(error.describe(model).to_string())
        }
        RunFailure::Observe(t, error) => {
            let t = significant(*t, 9);
            Failure::error(format!("the run failed at t = {t}: {}{kept}", error.describe(model)))
        }
        RunFailure::Start(error) => {
            let remedy = differentiated::remedy(error);
            Failure::error(format!("the run cannot start: {}{remedy}{kept}", error.describe(model)))
        }
        RunFailure::Step(StepError::Length { what: "memory", expected, found }) => Failure::usage(format!(
            "{} of memory are too little for the adjoint, it needs at least {}: give more with `--memory`, or choose `--method direct`",
            bytes(8 * found),
            bytes(8 * expected)
        )),
        RunFailure::Step(error @ (StepError::Setting { .. } | StepError::NotDifferentiable { .. })) => {
            Failure::usage(error.describe(model).to_string())
        }
        RunFailure::Step(error) => {
            let remedy = differentiated::remedy(error);
            Failure::error(format!("{}{remedy}{kept}", failed("the run", error, model)))
        }
        RunFailure::Stopped(t) => {
            Failure::interrupted(format!("stopped at t = {}: there is no gradient{kept}", short(*t)))
        }
    }
}

/// A size of memory, for people.
fn bytes(n: usize) -> String {
    match n {
        0..10_240 => format!("{n} bytes"),
        10_240..10_485_760 => format!("{} KiB", n.div_ceil(1 << 10)),
        _ => format!("{} MiB", n.div_ceil(1 << 20)),
    }
}

/// Everything a report is made from.
struct Shown<'a> {
    common: &'a Common,
    model: &'a Interpreted,
    settings: &'a Settings,
    ran: Ran,
    chosen: Vec<usize>,
    written: Option<Written<'a>>,
    /// How the gradient was computed and why, if that was asked.
    told: Option<&'a Choice>,
    further: Further,
}

/// What memory costs, said before the run.
fn announce(plan: &Schedule) -> String {
    format!(
        "note: the memory holds {} and {} of {}: {} will be made again\n",
        count(plan.segment, "record"),
        count(plan.states, "state"),
        count(plan.steps, "step"),
        count(plan.recomputed(), "step")
    )
}

impl Shown<'_> {
    /// To standard output, unless a file of results goes there.
    fn print(&self, is_taken: bool) -> Result<(), Failure> {
        match (self.common.json, is_taken) {
            (true, _) => files::print(&(report_json::pretty(&self.json()) + "\n")),
            (false, false) => files::print(&self.text()),
            (false, true) => {
                files::complain(&self.text());
                Ok(())
            }
        }
    }

    fn text(&self) -> String {
        let program = self.model.program();
        let simulation = &self.settings.simulation;
        let mut out = text::head(program, self.settings, simulation.end);
        out.push_str(&text::with(&self.common.set));
        for &i in &self.chosen {
            let (name, unit) = &program.objectives[i];
            let value = self.ran.found.objectives[i];
            let _ = writeln!(out, "\n  {}", format!("{name} = {} {unit}", significant(value, 9)).trim_end());
            out.push_str(&crate::output::gradient::table(self.model, &self.ran.found, i));
            self.further.tell(&mut out, program, i);
        }
        self.further.tell_products(&mut out, program);
        out.push_str(&crate::output::gradient::events(self.model, &self.ran.found));
        let (steps, word, times) = self.effort();
        let _ = writeln!(
            out,
            "\n  effort   {}, {}, in {}",
            count(steps, "step"),
            count(times, word),
            duration(self.ran.seconds)
        );
        if let Some(choice) = self.told {
            let way = if choice.adjoint { "adjoint" } else { "direct" };
            let again = self.ran.found.adjoint.map_or(
                String::new(),
                |AdjointStatistics { recomputed, schedule, .. }| {
                    let (records, states) =
                        (count(schedule.segment, "record"), count(schedule.states, "state"));
                    format!("; {} made again, with {records} and {states}", count(recomputed, "step"))
                },
            );
            let _ = writeln!(out, "  method   {way}: {}{again}", choice.why);
        }
        if let Some(written) = &self.written {
            let (rows, columns) = (count(written.rows, "row"), count(written.columns, "column"));
            let _ = writeln!(out, "  results  {}: {rows}, {columns}", written.file.display());
        }
        out
    }

    /// Steps, and what else was counted.
    fn effort(&self) -> (usize, &'static str, usize) {
        match &self.ran.found.effort {
            Effort::Implicit(run) => (run.steps, "iteration", run.iterations),
            Effort::Explicit(run) => (run.steps, "evaluation", run.evaluations),
        }
    }

    fn json(&self) -> Value {
        let program = self.model.program();
        let one = |&i: &usize| {
            let gradient = report_json::by_name(program.sensitivity.clone(), self.ran.found.of_objective(i));
            let value = json!({"value": self.ran.found.objectives[i], "gradient": gradient});
            (program.objectives[i].0.clone(), value)
        };
        let (steps, word, times) = self.effort();
        let mut object = json!({
            "objectives": self.chosen.iter().map(one).collect::<Map<_, _>>(),
            "model": program.name,
            "file": self.common.model.display().to_string(),
            "case": program.case,
            "parameters": report_json::by_name(program.parameter_names(), self.model.parameters()),
            "simulation": report_json::simulation(self.settings, self.ran.damping),
            "jumps": report_json::jumps(&self.ran.jumps),
            "events": self.ran.found.events.iter().map(|event| json!({
                "event": program.events.names[event.event],
                "t": event.t,
                "gradient": report_json::by_name(program.sensitivity.clone(), &event.derivatives),
            })).collect::<Vec<_>>(),
            "statistics": {"steps": steps, format!("{word}s"): times, "wall_time": self.ran.seconds},
        });
        if let Some(choice) = self.told {
            let adjoint = self.ran.found.adjoint;
            let way = if choice.adjoint { "adjoint" } else { "direct" };
            object["method"] = json!({
                "gradient": way,
                "why": choice.why,
                "recomputed": adjoint.map(|adjoint| adjoint.recomputed),
                "records": adjoint.map(|adjoint| adjoint.schedule.segment),
                "states": adjoint.map(|adjoint| adjoint.schedule.states),
            });
        }
        if let Some(written) = &self.written {
            let file = written.file.display().to_string();
            object["csv"] = json!({"file": file, "rows": written.rows, "columns": written.columns});
        }
        self.further.add_to(&mut object, program, &self.chosen);
        object
    }
}
