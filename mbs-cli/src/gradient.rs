//! `mbs gradient`: run a model with its derivatives, and show objectives and their gradient.

use crate::arguments::Gradient;
use crate::csv::Csv;
use crate::failure::Failure;
use crate::number::{count, duration, short, significant};
use crate::progress::Progress;
use crate::settings::Settings;
use crate::simulate::{self, Written};
use crate::table::Table;
use crate::{differentiated, files, report, report_json, run, trajectories};
use mbs_codegen::diagnostics::nearest;
use mbs_codegen::model::{Model, Objective};
use mbs_codegen::symbols::Group;
use mbs_engine::gradient::{self, Found, Node, Start};
use mbs_engine::{Damping, Interpreted, Method};
use mbs_runtime::StepError;
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::io::{self, ErrorKind};
use std::ops::ControlFlow;

/// Runs a model with its derivatives and shows the gradient.
pub(crate) fn gradient(arguments: &Gradient) -> Result<(), Failure> {
    let Gradient { common, by, trajectories: file, output_step, method, .. } = arguments;
    let to_stdout = simulate::check_out("--trajectories", file.as_deref(), common)?;
    let model = differentiated::read(common, by)?;
    differentiated::check_list(&model, common)?;
    let chosen = choose(&model, arguments)?;
    let case = crate::check::find_case(&model, common.case.as_deref())?;
    let defaults = case.map_or(&model.simulation, |case| &case.simulation);
    let constrained = simulate::is_constrained(&model);
    let settings = Settings::of_dynamics(defaults, constrained, common, *output_step, method)?;
    let interpreted = simulate::interpret(&model, common, settings.bundles_of_derivatives())?;
    if interpreted.program().coordinates.is_empty() {
        return Err(simulate::nothing_moves());
    }
    simulate::note_idle(&settings);

    let columns = trajectories::columns(interpreted.program());
    let mut csv = simulate::create(file.as_deref(), &columns)?;
    let outcome = differentiate(&interpreted, &settings, csv.as_mut());
    let written = file.as_deref().zip(csv).map(|(file, csv)| Written {
        file,
        columns: columns.len(),
        rows: csv.rows,
        last: csv.last,
    });
    let shown = match outcome {
        Ok(ran) => Shown { arguments, model: &interpreted, settings: &settings, ran, chosen, written },
        Err(Trouble::Write(error)) if error.kind() == ErrorKind::BrokenPipe => return Ok(()),
        Err(trouble) => return Err(trouble.explain(&interpreted, arguments, written)),
    };
    if shown.ran.start.rank < shown.ran.start.rows {
        simulate::warn_of_redundancy(&model, &shown.ran.start);
    }
    if common.json {
        return files::print(&(report_json::pretty(&shown.json()) + "\n"));
    }
    let text = shown.text();
    if to_stdout {
        files::complain(&text);
        return Ok(());
    }
    files::print(&text)
}

/// The objectives that are wanted, by place; all if none are named.
fn choose(model: &Model, arguments: &Gradient) -> Result<Vec<usize>, Failure> {
    let names = || model.objectives.iter().map(|objective: &Objective| objective.name.as_str());
    if model.objectives.is_empty() && arguments.trajectories.is_none() {
        return Err(Failure::error(
            "the model has no objectives, so there is no gradient; write, for example, `objectives: {psi: rate(JOINT)^2}`, or ask \
             for derivatives of the motion: `--trajectories FILE.csv`",
        ));
    }
    let Some(wanted) = &arguments.objectives else { return Ok((0..model.objectives.len()).collect()) };
    let place = |name: &String| {
        names().position(|own| own == name.trim()).ok_or_else(|| {
            let near = nearest(name, names()).map(|near| format!("; did you mean `{near}`?"));
            let list = || format!("; there are {}", names().collect::<Vec<_>>().join(", "));
            Failure::usage(format!("there is no objective `{name}`{}", near.unwrap_or_else(list)))
        })
    };
    wanted.iter().map(place).collect()
}

/// What a run with derivatives left.
struct Ran {
    found: Found,
    start: mbs_runtime::formulation::StartStatistics,
    damping: Option<Damping>,
    seconds: f64,
}

/// Why there is no gradient.
enum Trouble {
    Start(StepError),
    Step(StepError),
    Write(io::Error),
}

impl Trouble {
    fn explain(&self, model: &Interpreted, arguments: &Gradient, written: Option<Written<'_>>) -> Failure {
        let kept = written.map_or(String::new(), |written| written.kept());
        match self {
            Trouble::Start(error) => {
                let remedy = differentiated::remedy(error);
                Failure::error(format!("the run cannot start: {}{remedy}{kept}", error.describe(model)))
            }
            Trouble::Step(error @ (StepError::Setting { .. } | StepError::NotDifferentiable { .. })) => {
                Failure::usage(error.describe(model).to_string())
            }
            Trouble::Step(error) => {
                let remedy = differentiated::remedy(error);
                Failure::error(format!("the run failed {}{remedy}{kept}", error.describe(model)))
            }
            Trouble::Write(error) => {
                let path = arguments.trajectories.as_deref().unwrap_or(std::path::Path::new("-"));
                simulate::cannot_write(path, error)
            }
        }
    }
}

fn differentiate(
    model: &Interpreted,
    settings: &Settings,
    mut csv: Option<&mut Csv>,
) -> Result<Ran, Trouble> {
    let simulation = &settings.simulation;
    let stride = run::stride(settings).map_err(Trouble::Step)?;
    let start: Start = gradient::start(model, simulation.begin).map_err(Trouble::Start)?;
    let method = Method::of(simulation, settings.constrained, &start.scale);
    let damping = Damping::of(simulation, settings.constrained, &start.scale);
    let statistics = start.statistics;
    let mut progress = Progress::new((simulation.begin, simulation.end));
    let (mut nodes, mut failure) = (0, None);
    let watch = |node: Node<'_>| {
        progress.reached(node.motion.t);
        let result = nodes % stride == 0 || node.motion.t == simulation.end;
        nodes += 1;
        if let Some(csv) = csv.as_deref_mut().filter(|_| result)
            && let Err(error) = trajectories::write(csv, model.program(), &node)
        {
            failure = Some(error);
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    };
    let found = gradient::run(model, &method, simulation, start, watch);
    let seconds = progress.finish();
    let flushed = csv.map_or(Ok(()), Csv::flush);
    match (found, failure, flushed) {
        (Err(error), ..) => Err(Trouble::Step(error)),
        (_, Some(error), _) | (.., Err(error)) => Err(Trouble::Write(error)),
        (Ok(found), None, Ok(())) => Ok(Ran { found, start: statistics, damping, seconds }),
    }
}

/// Everything a report is made from.
struct Shown<'a> {
    arguments: &'a Gradient,
    model: &'a Interpreted,
    settings: &'a Settings,
    ran: Ran,
    chosen: Vec<usize>,
    written: Option<Written<'a>>,
}

impl Shown<'_> {
    fn text(&self) -> String {
        let program = self.model.program();
        let simulation = &self.settings.simulation;
        let mut out = report::head(program, self.settings, simulation.end);
        out.push_str(&report::with(&self.arguments.common.set));
        for &i in &self.chosen {
            let (name, unit) = &program.objectives[i];
            let value = self.ran.found.objectives[i];
            let _ = writeln!(out, "\n  {}", format!("{name} = {} {unit}", significant(value, 9)).trim_end());
            out.push_str(&self.table(i, value));
        }
        let statistics = &self.ran.found.statistics;
        let _ = writeln!(
            out,
            "\n  effort   {}, {}, in {}",
            count(statistics.steps, "step"),
            count(statistics.iterations, "iteration"),
            duration(self.ran.seconds)
        );
        if let Some(written) = &self.written {
            let (rows, columns) = (count(written.rows, "row"), count(written.columns, "column"));
            let _ = writeln!(out, "  results  {}: {rows}, {columns}", written.file.display());
        }
        out
    }

    fn table(&self, objective: usize, value: f64) -> String {
        let program = self.model.program();
        let mut table = Table::new(&["by", ">value", "unit", ">derivative", ">relative"]);
        let gradient = self.ran.found.of_objective(objective);
        for ((name, &derivative), &(group, place)) in
            program.sensitivity.iter().zip(gradient).zip(&program.seeds)
        {
            // An input has no value of its own: the derivative is by a constant added to its signal.
            let parameter = (group == Group::Parameters).then(|| self.model.parameters()[place as usize]);
            let relative = parameter.map(|p| p * derivative / value).filter(|x| x.is_finite());
            table.row([
                name.clone(),
                parameter.map_or(String::new(), short),
                self.unit(group, place as usize).into(),
                significant(derivative, 9),
                relative.map_or(String::new(), |x| significant(x, 4)),
            ]);
        }
        table.print()
    }

    fn unit(&self, group: Group, place: usize) -> &str {
        let program = self.model.program();
        if group == Group::U {
            return &program.inputs[place].unit;
        }
        let mut units = program.parameters.iter().flat_map(|p| p.defaults.iter().map(move |_| &p.unit));
        units.nth(place).map_or("", String::as_str)
    }

    fn json(&self) -> Value {
        let program = self.model.program();
        let one = |&i: &usize| {
            let gradient = report_json::by_name(program.sensitivity.clone(), self.ran.found.of_objective(i));
            let value = json!({"value": self.ran.found.objectives[i], "gradient": gradient});
            (program.objectives[i].0.clone(), value)
        };
        let statistics = &self.ran.found.statistics;
        let mut object = json!({
            "objectives": self.chosen.iter().map(one).collect::<Map<_, _>>(),
            "model": program.name,
            "file": self.arguments.common.model.display().to_string(),
            "case": program.case,
            "parameters": report_json::by_name(program.parameter_names(), self.model.parameters()),
            "simulation": report_json::simulation(self.settings, self.ran.damping),
            "statistics": {
                "steps": statistics.steps,
                "iterations": statistics.iterations,
                "max_iterations": statistics.max_iterations,
                "wall_time": self.ran.seconds,
            },
        });
        if let Some(written) = &self.written {
            let file = written.file.display().to_string();
            object["csv"] = json!({"file": file, "rows": written.rows, "columns": written.columns});
        }
        object
    }
}
