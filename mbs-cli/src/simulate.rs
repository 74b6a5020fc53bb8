//! `mbs simulate` and `mbs kinematics`: settle what to run, run it, and show the result.

use crate::arguments::{Common, Kinematics, Results, Simulate};
use crate::csv::{self, Csv};
use crate::failure::Failure;
use crate::files;
use crate::number::{count, short};
use crate::run::{self, RunFailure};
use crate::settings::{Analysis, Settings};
use crate::{report, report_json};
use mbs_codegen::constrained::Rows;
use mbs_codegen::model::{self, Model, Objective, ParameterValue, Simulation};
use mbs_codegen::program::{BundleKind, Options, Program};
use mbs_codegen::topology;
use mbs_engine::{Interpreted, ParameterError};
use mbs_runtime::formulation::StartStatistics;
use mbs_runtime::{StepError, System};
use std::io::ErrorKind;
use std::path::Path;

/// Runs a model and shows the result.
pub(crate) fn simulate(arguments: &Simulate) -> Result<(), Failure> {
    let Simulate { common, results, method, .. } = arguments;
    analyse(common, results, |defaults, constrained| {
        let mut settings = Settings::of_dynamics(defaults, constrained, common, results.output_step, method)?;
        settings.reactions = arguments.reactions;
        if arguments.recursive {
            settings.make_recursive()?;
        }
        Ok(settings)
    })
}

/// Moves a fully driven mechanism and shows the result.
pub(crate) fn kinematics(arguments: &Kinematics) -> Result<(), Failure> {
    let Kinematics { common, results } = arguments;
    analyse(common, results, |defaults, constrained| {
        Settings::of_kinematics(defaults, constrained, common, results.output_step)
    })
}

fn analyse(
    common: &Common,
    results: &Results,
    settle: impl FnOnce(&Simulation, bool) -> Result<Settings, Failure>,
) -> Result<(), Failure> {
    let to_stdout = check_out("--out", results.out.as_deref(), common)?;
    let model = crate::check::read_model(&common.model)?;
    let case = crate::check::find_case(&model, common.case.as_deref())?;
    let defaults = case.map_or(&model.simulation, |case| &case.simulation);
    let mut settings = settle(defaults, is_constrained(&model))?;
    settings.judges_forces = model.objectives.iter().any(Objective::depends_on_multipliers);
    let interpreted = interpret(&model, common, settings.bundles())?;
    if interpreted.program().coordinates.is_empty() && !settings.is_explicit() {
        return Err(nothing_moves());
    }
    note_idle(&settings);

    let columns = csv::columns(interpreted.program(), &settings);
    let mut csv = create(results.out.as_deref(), &columns)?;
    let record = run::run(&interpreted, &settings, csv.as_mut());
    if let Some(found) = &record.assembly {
        warn_of_redundancy(&model, &found.statistics);
    }
    let out = results.out.as_deref();
    let written = out.zip(csv).map(|(file, csv)| Written {
        file,
        columns: columns.len(),
        rows: csv.rows,
        last: csv.last,
    });

    let shown = Shown { common, model: &interpreted, settings: &settings, record: &record, written };
    let failure = record.failure.as_ref().map(|failure| shown.explain(failure));
    // Nobody reads the results any more: that ends the run, and is no failure of it.
    if let Some(None) = failure {
        return Ok(());
    }
    let failure = failure.flatten();
    if common.json {
        let message = failure.as_ref().map(|(message, _)| message.as_str());
        files::print(&(report_json::report(&shown, message) + "\n"))?;
    } else if failure.is_none() {
        let report = report::report(&shown);
        if to_stdout { files::complain(&report) } else { files::print(&report)? }
    }
    match failure {
        None => Ok(()),
        Some((message, true)) => Err(Failure::usage(message)),
        Some((message, false)) => Err(Failure::error(message)),
    }
}

/// Whether results go to standard output; a failure if they cannot go where they should.
pub(crate) fn check_out(option: &str, out: Option<&Path>, common: &Common) -> Result<bool, Failure> {
    let to_stdout = out.is_some_and(csv::is_stdout);
    if to_stdout && common.json {
        return Err(Failure::usage(format!("`--json` and `{option} -` both want standard output")));
    }
    if let Some(out) = out.filter(|out| is_same_file(out, &common.model)) {
        let message = format!("`{option} {}` would overwrite the model; name another file", out.display());
        return Err(Failure::usage(message));
    }
    Ok(to_stdout)
}

/// The file of the results, if one is wanted.
pub(crate) fn create(out: Option<&Path>, columns: &[String]) -> Result<Option<Csv>, Failure> {
    let create = |path| Csv::create(path, columns).map_err(|error| cannot_write(path, &error));
    out.map(create).transpose()
}

pub(crate) fn nothing_moves() -> Failure {
    Failure::error("nothing in the model moves: it has no coordinates")
}

/// Tells of options that do nothing.
pub(crate) fn note_idle(settings: &Settings) {
    for option in &settings.idle {
        files::complain(&format!(
            "note: `{option}` does nothing: the model has neither closed loops nor constraints\n"
        ));
    }
}

/// Where equations follow from each other only the sum of their forces is determined, not each multiplier: an objective
/// on them judges a choice.
pub(crate) fn warn_of_redundancy(model: &Model, start: &StartStatistics) {
    let redundant = start.rank < start.rows;
    for objective in model.objectives.iter().filter(|o| redundant && o.depends_on_multipliers()) {
        files::complain(&format!(
            "warning: objective `{}` names multipliers or reactions, which the redundant constraints leave open: they are \
             those of least norm\n",
            objective.name
        ));
    }
}

/// Everything a report is made from.
pub(crate) struct Shown<'a> {
    pub(crate) common: &'a Common,
    pub(crate) model: &'a Interpreted,
    pub(crate) settings: &'a Settings,
    pub(crate) record: &'a run::Record,
    pub(crate) written: Option<Written<'a>>,
}

/// What was written to a CSV file.
#[derive(Clone, Copy)]
pub(crate) struct Written<'a> {
    pub(crate) file: &'a Path,
    pub(crate) columns: usize,
    pub(crate) rows: usize,
    pub(crate) last: Option<f64>,
}

impl Written<'_> {
    /// What a failure left, as a line of its message; nothing of standard output.
    pub(crate) fn kept(&self) -> String {
        let path = self.file.display();
        match self.last {
            _ if csv::is_stdout(self.file) => String::new(),
            Some(t) => format!("\n`{path}` keeps the {}, up to t = {t}", count(self.rows, "result")),
            None => format!("\n`{path}` has no results"),
        }
    }
}

fn is_same_file(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

pub(crate) fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    Failure::error(format!("cannot write `{}`: {}", path.display(), files::reason(error)))
}

/// Whether the model moves under equations beside those of motion. Rows that vanish identically are none.
pub(crate) fn is_constrained(model: &Model) -> bool {
    let tree = topology::span(model);
    !model.variables.is_empty() || !Rows::of(model, &tree).kept.is_empty()
}

/// The model with its case and the parameters of the command line.
pub(crate) fn interpret(
    model: &Model,
    common: &Common,
    bundles: Vec<BundleKind>,
) -> Result<Interpreted, Failure> {
    interpret_with(model, common.case.as_deref(), &common.set, bundles)
}

/// The same from its parts.
pub(crate) fn interpret_with(
    model: &Model,
    case: Option<&str>,
    set: &[(String, f64)],
    bundles: Vec<BundleKind>,
) -> Result<Interpreted, Failure> {
    let case = crate::check::find_case(model, case)?;
    let options = Options { bundles, ..Options::default() };
    let program = Program::new(model, case, &options).map_err(|error| Failure::error(error.to_string()))?;
    let mut interpreted = Interpreted::new(program);
    for (name, value) in set {
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

impl Shown<'_> {
    /// The message of a failure and whether the command line is to blame; none if it only means that nobody reads the
    /// results any more.
    fn explain(&self, failure: &RunFailure) -> Option<(String, bool)> {
        let model = self.model;
        let usage = matches!(failure, RunFailure::Step(StepError::Setting { .. }));
        let mut message = match failure {
            RunFailure::Start(error) => {
                format!("the run cannot start: {}{}", error.describe(model), self.remedy(error))
            }
            RunFailure::Step(error) if usage => error.describe(model).to_string(),
            RunFailure::Step(error) => {
                format!("the run failed {}{}", error.describe(model), self.remedy(error))
            }
            RunFailure::Observe(t, error) => format!("the run failed at t = {t}: {}", error.describe(model)),
            RunFailure::Write(error) if error.kind() == ErrorKind::BrokenPipe => return None,
            RunFailure::Write(error) => {
                let path = self.written.map_or(Path::new("-"), |written| written.file);
                format!("cannot write `{}`: {}", path.display(), files::reason(error))
            }
        };
        if let Some(written) = &self.written {
            message.push_str(&written.kept());
        }
        Some((message, usage))
    }

    /// What the command knows beyond the error: names of what is held, and the other way to run the model.
    fn remedy(&self, error: &StepError) -> String {
        let kinematic = self.settings.analysis == Analysis::Kinematics;
        match error {
            StepError::NotAssembled { .. } if kinematic => {
                "\nthe drives lead to a position that the mechanism does not have, or the guesses are too far from it".into()
            }
            StepError::NotAssembled { .. } | StepError::Inconsistent { .. } => {
                let held = self.held();
                match held.is_empty() {
                    true => "\nno coordinate is held: change the guesses or the constraints".into(),
                    false => format!("\nheld: {}", held.join(", ")),
                }
            }
            StepError::NotDriven { .. } => {
                "\ndrive it by a constraint of type `motion`, or let forces move it: `mbs simulate`".into()
            }
            _ => String::new(),
        }
    }

    /// Coordinates that assembly may not move, with their values and rates.
    fn held(&self) -> Vec<String> {
        let program = self.model.program();
        let dims = self.model.dims();
        let guess = self.model.start_state();
        let (z, v) = guess.split_at(dims.nq);
        let mut rates = vec![0.0; dims.nq];
        // The lengths are right, so this cannot fail.
        let _ = mbs_runtime::euler_parameters::coordinate_rates(self.model, z, v, &mut rates);
        let all = program.coordinates.iter().zip(&program.held).zip(z.iter().zip(&rates));
        all.filter(|((_, held), _)| **held)
            .map(|((name, _), (z, zd))| format!("`{name}` at {} with rate {}", short(*z), short(*zd)))
            .collect()
    }
}
