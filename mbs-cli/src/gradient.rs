//! `mbs gradient`: run a model with its derivatives, and show objectives and their gradient.

use crate::arguments::Gradient;
use crate::csv::Csv;
use crate::failure::Failure;
use crate::interrupt;
use crate::number::{count, duration, short, significant};
use crate::plot::Curves;
use crate::progress::Progress;
use crate::settings::Settings;
use crate::simulate::{self, Written};
use crate::table::Table;
use crate::{differentiated, files, report, report_json, run, trajectories};
use mbs_codegen::diagnostics::nearest;
use mbs_codegen::model::{Model, Objective};
use mbs_codegen::symbols::Group;
use mbs_engine::gradient::{self, Effort, Found, Moment, Start};
use mbs_engine::{Damping, Interpreted};
use mbs_runtime::{EvalError, StepError};
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::io::{self, ErrorKind};
use std::ops::ControlFlow;
use std::path::Path;

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
    simulate::refuse_held_signals(&model, case, &settings)?;
    let bundles = gradient::bundles(&settings.simulation, constrained);
    let interpreted = simulate::interpret(&model, common, bundles)?;
    if interpreted.program().coordinates.is_empty() {
        return Err(simulate::nothing_moves());
    }
    simulate::note_idle(&settings);

    let prepared = prepare(&interpreted, &settings);
    let (start, stride) = prepared.map_err(|trouble| trouble.explain(&interpreted, file.as_deref(), None))?;
    simulate::warn_of_redundancy(&model, &start.statistics);
    let known = start.knows_multipliers(&start.method(&interpreted, &settings.simulation));
    if file.is_some() && !known {
        files::complain(UNKNOWN_MULTIPLIERS);
    }
    let columns = trajectories::columns(interpreted.program(), known);
    let mut csv = simulate::create(file.as_deref(), &columns, &[], false)?;
    let outcome = differentiate(&interpreted, &settings, start, stride, csv.as_mut(), None);
    let written = file.as_deref().zip(csv).map(|(file, csv)| Written {
        file,
        columns: columns.len(),
        rows: csv.rows,
        last: csv.last,
    });
    let shown = match outcome {
        Ok(ran) => Shown { arguments, model: &interpreted, settings: &settings, ran, chosen, written },
        Err(Trouble::Write(error)) if error.kind() == ErrorKind::BrokenPipe => return Ok(()),
        Err(trouble) => return Err(trouble.explain(&interpreted, file.as_deref(), written)),
    };
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

const UNKNOWN_MULTIPLIERS: &str = "\
note: constraints depend on each other, and an explicit integrator does not know how their multipliers move: the file has \
the other derivatives\n";

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
pub(crate) struct Ran {
    pub(crate) found: Found,
    pub(crate) damping: Option<Damping>,
    pub(crate) seconds: f64,
}

/// Why there is no gradient.
pub(crate) enum Trouble {
    Start(StepError),
    Step(StepError),
    Observe(f64, EvalError),
    Write(io::Error),
    Interrupted(f64),
}

impl Trouble {
    /// The failure of a command; `file` is where derivatives were to go.
    pub(crate) fn explain(
        &self,
        model: &Interpreted,
        file: Option<&Path>,
        written: Option<Written<'_>>,
    ) -> Failure {
        let kept = written.map_or(String::new(), |written| written.kept());
        match self {
            Trouble::Start(error @ StepError::NotDifferentiable { .. }) => {
                Failure::error(error.describe(model).to_string())
            }
            Trouble::Observe(t, error) => {
                let t = significant(*t, 9);
                Failure::error(format!("the run failed at t = {t}: {}{kept}", error.describe(model)))
            }
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
                let path = file.unwrap_or(Path::new("-"));
                let kept = written.map_or(String::new(), |written| written.mended());
                Failure::error(format!("cannot write `{}`: {}{kept}", path.display(), files::reason(error)))
            }
            Trouble::Interrupted(t) => {
                Failure::interrupted(format!("stopped at t = {}: there is no gradient{kept}", short(*t)))
            }
        }
    }
}

/// Where the run begins, and every how many nodes is a result.
pub(crate) fn prepare(model: &Interpreted, settings: &Settings) -> Result<(Start, usize), Trouble> {
    let stride = run::stride(settings).map_err(Trouble::Step)?;
    Ok((gradient::start(model, &settings.simulation).map_err(Trouble::Start)?, stride))
}

/// Runs the model with its derivatives. Those of coordinates go to the curves, if any: of coordinate i by parameter k at `i * p + k`.
pub(crate) fn differentiate(
    model: &Interpreted,
    settings: &Settings,
    start: Start,
    stride: usize,
    mut csv: Option<&mut Csv>,
    mut curves: Option<&mut Curves>,
) -> Result<Ran, Trouble> {
    interrupt::take_over();
    let simulation = &settings.simulation;
    let method = start.method(model, simulation);
    let damping = Damping::of(simulation, settings.constrained, &start.scale);
    let mut progress = Progress::new((simulation.begin, simulation.end));
    let (mut nodes, mut trouble) = (0, None);
    let watch = |mut moment: Moment<'_>| {
        let t = moment.t;
        progress.reached(t);
        let result = nodes % stride == 0 || t == simulation.end;
        nodes += 1;
        if interrupt::is_wanted() {
            trouble = Some(Trouble::Interrupted(t));
            return ControlFlow::Break(());
        }
        if !result || (csv.is_none() && curves.is_none()) {
            return ControlFlow::Continue(());
        }
        let seen = moment.node(|node| {
            if let Some(curves) = curves.as_deref_mut() {
                curves.sample(t, node.z);
            }
            csv.as_deref_mut().map_or(Ok(()), |csv| trajectories::write(csv, model.program(), &node))
        });
        trouble = match seen {
            Ok(Ok(())) => return ControlFlow::Continue(()),
            Ok(Err(error)) => Some(Trouble::Write(error)),
            Err(error) => Some(Trouble::Observe(t, error)),
        };
        ControlFlow::Break(())
    };
    let found = gradient::run(model, &method, simulation, start, watch);
    let seconds = progress.finish();
    let flushed = csv.map_or(Ok(()), Csv::flush);
    match trouble {
        Some(trouble) => Err(trouble),
        None => {
            let found = found.map_err(Trouble::Step)?;
            flushed.map_err(Trouble::Write)?;
            Ok(Ran { found, damping, seconds })
        }
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
            out.push_str(&table(self.model, &self.ran.found, i));
        }
        let (steps, word, times) = self.effort();
        let _ = writeln!(
            out,
            "\n  effort   {}, {}, in {}",
            count(steps, "step"),
            count(times, word),
            duration(self.ran.seconds)
        );
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
            "file": self.arguments.common.model.display().to_string(),
            "case": program.case,
            "parameters": report_json::by_name(program.parameter_names(), self.model.parameters()),
            "simulation": report_json::simulation(self.settings, self.ran.damping),
            "statistics": {"steps": steps, format!("{word}s"): times, "wall_time": self.ran.seconds},
        });
        if let Some(written) = &self.written {
            let file = written.file.display().to_string();
            object["csv"] = json!({"file": file, "rows": written.rows, "columns": written.columns});
        }
        object
    }
}

/// One objective's gradient: what it is by, its value, unit, the derivative and the relative one.
pub(crate) fn rows(model: &Interpreted, found: &Found, objective: usize) -> Vec<[String; 5]> {
    let program = model.program();
    let value = found.objectives[objective];
    let all = program.sensitivity.iter().zip(found.of_objective(objective)).zip(&program.seeds);
    let row = |((name, &derivative), &(group, place)): ((&String, &f64), &(Group, u32))| {
        // An input has no value of its own: the derivative is by a constant added to its signal.
        let parameter = (group == Group::Parameters).then(|| model.parameters()[place as usize]);
        let relative = parameter.map(|p| p * derivative / value).filter(|x| x.is_finite());
        [
            name.clone(),
            parameter.map_or(String::new(), short),
            unit(model, group, place as usize).into(),
            significant(derivative, 9),
            relative.map_or(String::new(), |x| significant(x, 4)),
        ]
    };
    all.map(row).collect()
}

/// One objective's gradient as text.
pub(crate) fn table(model: &Interpreted, found: &Found, objective: usize) -> String {
    let mut table = Table::new(&["by", ">value", "unit", ">derivative", ">relative"]);
    rows(model, found, objective).into_iter().for_each(|row| table.row(row));
    table.print()
}

/// The unit of a parameter or an input.
fn unit(model: &Interpreted, group: Group, place: usize) -> &str {
    let program = model.program();
    if group == Group::U {
        return &program.inputs[place].unit;
    }
    let mut units = program.parameters.iter().flat_map(|p| p.defaults.iter().map(move |_| &p.unit));
    units.nth(place).map_or("", String::as_str)
}
