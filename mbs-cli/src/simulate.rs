//! `mbs simulate` and `mbs kinematics`: settle what to run, run it, and show the result.

use crate::arguments::{Common, Kinematics, Results, Simulate};
use crate::choices::some;
use crate::csv::{self, Csv};
use crate::differentiated::independent;
use crate::failure::Failure;
use crate::files;
use crate::number::{count, short, significant};
use crate::progress::Ticker;
use crate::run::{self, RunFailure};
use crate::settings::{Analysis, Settings};
use crate::{interrupt, report, report_json};
use mbs_codegen::constrained::Rows;
use mbs_codegen::model::{self, Case, Model, Objective, ParameterValue, Simulation};
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
    let prepared = prepare(common, crate::check::read_model(&common.model)?, settle)?;
    let done = execute(results, &prepared)?;
    let shown = done.shown(common, results, &prepared);
    let Some(trouble) = shown.trouble() else { return Ok(()) };
    if common.json {
        files::print(&(report_json::pretty(&report_json::report(&shown, trouble.message())) + "\n"))?;
    } else if trouble.message().is_none() {
        let report = report::report(&shown);
        if to_stdout { files::complain(&report) } else { files::print(&report)? }
    }
    trouble.outcome()
}

/// A model that can be run.
pub(crate) struct Prepared {
    pub(crate) model: Model,
    pub(crate) settings: Settings,
    pub(crate) interpreted: Interpreted,
}

/// Settles how to run a model.
pub(crate) fn prepare(
    common: &Common,
    model: Model,
    settle: impl FnOnce(&Simulation, bool) -> Result<Settings, Failure>,
) -> Result<Prepared, Failure> {
    let case = crate::check::find_case(&model, common.case.as_deref())?;
    let defaults = case.map_or(&model.simulation, |case| &case.simulation);
    let mut settings = settle(defaults, is_constrained(&model))?;
    refuse_held_signals(&model, case, &settings)?;
    settings.judges_forces = model.objectives.iter().any(Objective::depends_on_multipliers);
    let interpreted = interpret(&model, common, settings.bundles())?;
    if interpreted.program().coordinates.is_empty() && !settings.is_explicit() {
        return Err(nothing_moves());
    }
    note_idle(&settings);
    Ok(Prepared { model, settings, interpreted })
}

/// Step control sees nothing of a signal that is held over its steps, however long they are.
pub(crate) fn refuse_held_signals(
    model: &Model,
    case: Option<&Case>,
    settings: &Settings,
) -> Result<(), Failure> {
    let held = case.and_then(|case| case.held_signals(&model.inputs).next());
    match held.filter(|_| settings.is_adaptive()) {
        Some(input) => Err(Failure::usage(format!(
            "{}; take a fixed step, for example by `--integrator rk4`, or write `hold: signal` for `{}` in the model",
            input.unseen_by_step_control(),
            input.name
        ))),
        None => Ok(()),
    }
}

/// A run that was made, well or not.
pub(crate) struct Done {
    pub(crate) record: run::Record,
    columns: usize,
    csv: Option<(usize, Option<f64>)>,
}

/// Runs a model; results go to the file as they come.
pub(crate) fn execute(results: &Results, prepared: &Prepared) -> Result<Done, Failure> {
    let Prepared { model, settings, interpreted } = prepared;
    let columns = csv::columns(interpreted.program(), settings);
    let units = crate::units::of_columns(model, interpreted.program(), settings);
    let mut csv = create(results.out.as_deref(), &columns, &units, results.units)?;
    interrupt::take_over();
    let record = run::run(interpreted, settings, csv.as_mut());
    if let Some(found) = &record.assembly {
        warn_of_redundancy(model, &found.statistics);
    }
    for warning in record.seen.warnings(interpreted) {
        files::complain(&format!("warning: {warning}\n"));
    }
    Ok(Done { record, columns: columns.len(), csv: csv.map(|csv| (csv.rows, csv.last)) })
}

impl Done {
    /// Whether the run came beyond its begin.
    pub(crate) fn has_moved(&self, prepared: &Prepared) -> bool {
        self.record.seen.now.t > prepared.settings.simulation.begin
    }

    /// With everything that a report is made from.
    pub(crate) fn shown<'a>(
        &'a self,
        common: &'a Common,
        results: &'a Results,
        prepared: &'a Prepared,
    ) -> Shown<'a> {
        let written = results.out.as_deref().zip(self.csv).map(|(file, (rows, last))| Written {
            file,
            columns: self.columns,
            rows,
            last,
        });
        let (model, settings) = (&prepared.interpreted, &prepared.settings);
        Shown { common, model, settings, record: &self.record, written }
    }
}

/// What became of a run.
pub(crate) enum Trouble {
    /// It came to its end.
    None,
    /// The command line is to blame.
    Usage(String),
    /// It did not come to its end.
    Failed(String),
    /// It was stopped by the user.
    Interrupted(String),
}

impl Trouble {
    /// What to tell.
    pub(crate) fn message(&self) -> Option<&str> {
        match self {
            Trouble::None => None,
            Trouble::Usage(message) | Trouble::Failed(message) | Trouble::Interrupted(message) => {
                Some(message)
            }
        }
    }

    /// What the command ends with.
    pub(crate) fn outcome(self) -> Result<(), Failure> {
        match self {
            Trouble::None => Ok(()),
            Trouble::Usage(message) => Err(Failure::usage(message)),
            Trouble::Failed(message) => Err(Failure::error(message)),
            Trouble::Interrupted(message) => Err(Failure::interrupted(message)),
        }
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
pub(crate) fn create(
    out: Option<&Path>,
    columns: &[String],
    units: &[String],
    shown: bool,
) -> Result<Option<Csv>, Failure> {
    let create =
        |path| Csv::create(path, columns, units, shown).map_err(|error| files::cannot_write(path, &error));
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
            Some(t) => {
                let (rows, t) = (count(self.rows, "result"), significant(t, 9));
                format!("\n`{path}` keeps the {rows}, up to t = {t}")
            }
            None => format!("\n`{path}` has no results"),
        }
    }

    /// The same where writing itself failed: what has really come to the file.
    pub(crate) fn mended(&self) -> String {
        let path = self.file.display();
        match csv::mend(self.file) {
            Some(t) => format!("\n`{path}` keeps the results up to t = {}", significant(t, 9)),
            None => String::new(),
        }
    }
}

fn is_same_file(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
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
    let ticker = Ticker::new(format!("writing the equations of {}", model.name));
    let program = Program::new(model, case, &options).map_err(|error| Failure::error(error.to_string()))?;
    let mut interpreted = Interpreted::new(program);
    drop(ticker);
    // Names and bounds one by one, so that a refusal names the option; what they must keep, all together.
    let values: Vec<(&str, f64)> = set.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    interpreted.set_parameters_by_name(&values).map_err(|error| {
        let alone = |(name, value): &(&str, f64)| {
            let error = interpreted.clone().set_parameter(name, *value).err()?;
            (!matches!(error, ParameterError::Condition { .. })).then(|| refused(model, name, &error))
        };
        values.iter().find_map(alone).unwrap_or_else(|| {
            let names: Vec<String> = values.iter().map(|(name, _)| format!("`{name}`")).collect();
            Failure::usage(format!("cannot set {}: {error}", names.join(", ")))
        })
    })?;
    Ok(interpreted)
}

fn refused(model: &Model, name: &str, error: &ParameterError) -> Failure {
    let derived = |p: &model::Parameter| p.name == name && matches!(p.value, ParameterValue::Derived(_));
    if matches!(error, ParameterError::Unknown { .. }) && model.parameters.iter().any(derived) {
        return Failure::usage(format!(
            "cannot set `{name}`: it follows from other parameters; set those, or give it a number in the model"
        ));
    }
    let there = match error {
        ParameterError::Unknown { nearest: None, .. } => {
            let names: Vec<&str> = independent(model).collect();
            if names.is_empty() {
                "; the model has none".into()
            } else {
                format!("; there are: {}", some(&names))
            }
        }
        _ => String::new(),
    };
    Failure::usage(format!("cannot set `{name}`: {error}{there}"))
}

impl Shown<'_> {
    /// What became of the run; none if nobody reads the results any more, which is no failure.
    pub(crate) fn trouble(&self) -> Option<Trouble> {
        let model = self.model;
        let Some(failure) = &self.record.failure else { return Some(Trouble::None) };
        let kept = self.written.map_or(String::new(), |written| written.kept());
        Some(match failure {
            RunFailure::Start(error) => {
                let remedy = self.remedy(error);
                Trouble::Failed(format!("the run cannot start: {}{remedy}{kept}", error.describe(model)))
            }
            RunFailure::Step(error @ StepError::Setting { .. }) => {
                Trouble::Usage(format!("{}{kept}", error.describe(model)))
            }
            RunFailure::Step(error) => {
                let remedy = self.remedy(error);
                Trouble::Failed(format!("the run failed {}{remedy}{kept}", error.describe(model)))
            }
            RunFailure::Observe(t, error) => {
                let t = significant(*t, 9);
                Trouble::Failed(format!("the run failed at t = {t}: {}{kept}", error.describe(model)))
            }
            RunFailure::Write(error) if error.kind() == ErrorKind::BrokenPipe => return None,
            RunFailure::Write(error) => {
                let path = self.written.map_or(Path::new("-"), |written| written.file);
                let kept = self.written.map_or(String::new(), |written| written.mended());
                Trouble::Failed(format!("cannot write `{}`: {}{kept}", path.display(), files::reason(error)))
            }
            RunFailure::Interrupted(t) => {
                let end = self.settings.simulation.end;
                Trouble::Interrupted(format!("stopped at t = {} of {} s{kept}", short(*t), short(end)))
            }
        })
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
