//! A run as the command line asks for it: prepared, executed, and what became of it.

use super::failure::Failure;
use super::results::{Stop, Watcher, cannot_write};
use super::{files, model, settings};
use crate::arguments::{Common, Results};
use crate::output::number::{short, significant};
use crate::output::shown::{Shown, Written};
use mbs_codegen::analysis::Analysed;
use mbs_codegen::model::{Case, Model, Simulation};
use mbs_codegen::program::BundleKind;
use mbs_engine::Interpreted;
use mbs_engine::simulation::{
    self, Analysis, Instance, InstanceError, Record, RunFailure, SettingError, Settings, columns,
    open_objectives,
};
use mbs_runtime::StepError;
use mbs_runtime::formulation::StartStatistics;
use std::io::ErrorKind;

/// A model that can be run.
pub(crate) struct Prepared<'a> {
    pub(crate) source: &'a Model,
    pub(crate) case: Option<&'a Case>,
    pub(crate) model: Interpreted,
    pub(crate) settings: Settings,
    /// Why the bundles beside those of the run are missing, if they are.
    pub(crate) without: Option<String>,
}

/// Chooses how to run a model. `settle` takes the model's settings and whether it has constraints; `further` says which bundles it needs
/// beside those of the run. If they are too large for a program it does without them.
pub(crate) fn prepare<'a>(
    common: &Common,
    source: &'a Analysed,
    settle: impl FnOnce(&Simulation, bool) -> Result<Settings, SettingError>,
    further: impl FnOnce(&Settings, Option<&Case>) -> Vec<BundleKind>,
) -> Result<Prepared<'a>, Failure> {
    let case = model::find_case(source, common.case.as_deref())?;
    let settled = settle(simulation::simulation(source, case), source.is_constrained());
    let settings = settled.map_err(|error| settings::refuse(&error))?;
    let further = further(&settings, case);
    let write = || {
        let with = |further| Instance::new(source, case, &common.set, settings.clone(), further);
        match with(further.as_slice()) {
            Err(InstanceError::Program(error)) if !further.is_empty() => {
                Ok((with(&[])?, Some(error.to_string())))
            }
            instance => Ok((instance?, None)),
        }
    };
    let (Instance { mut model, settings }, without) = model::write_equations(source, write)?;
    settings::choose_engine(&mut model, common.engine, &settings);
    settings::note_idle(&settings);
    Ok(Prepared { source, case, model, settings, without })
}

/// A run that was made, well or not.
pub(crate) struct Done<'a> {
    pub(crate) record: Record,
    pub(crate) written: Option<Written<'a>>,
    stop: Option<Stop>,
}

/// Runs a model; results go to the file as they come.
pub(crate) fn execute<'a>(results: &'a Results, prepared: &Prepared<'_>) -> Result<Done<'a>, Failure> {
    let Prepared { source, model, settings, .. } = prepared;
    let columns = columns(source, model.program(), settings);
    let mut watcher = Watcher::new(results.out.as_deref(), &columns, results.units, &settings.simulation)?;
    let record = simulation::run(model, settings, &mut watcher);
    let (written, stop) = watcher.finish(record.failure.as_ref());
    if let Some(found) = &record.assembly {
        warn_of_redundancy(source, &found.statistics);
    }
    for warning in record.seen.warnings(model) {
        files::complain(&format!("warning: {warning}\n"));
    }
    Ok(Done { record, written, stop })
}

/// Where equations follow from each other an objective on their multipliers judges a choice.
pub(crate) fn warn_of_redundancy(model: &Model, start: &StartStatistics) {
    for objective in open_objectives(model, start) {
        files::complain(&format!(
            "warning: objective `{objective}` names multipliers or reactions, which the redundant constraints leave open: they are \
             those of least norm\n"
        ));
    }
}

impl Done<'_> {
    /// Whether the run came beyond its begin.
    pub(crate) fn has_moved(&self, prepared: &Prepared<'_>) -> bool {
        self.record.seen.now.t > prepared.settings.simulation.begin
    }

    /// With everything that a report is made from.
    pub(crate) fn shown<'a>(&'a self, common: &'a Common, prepared: &'a Prepared<'a>) -> Shown<'a> {
        Shown {
            file: &common.model,
            set: &common.set,
            source: prepared.source,
            case: prepared.case,
            model: &prepared.model,
            settings: &prepared.settings,
            record: &self.record,
            written: self.written,
        }
    }

    /// What became of the run; none if the reader of the results has closed the pipe, which is not a failure.
    pub(crate) fn trouble(&self, prepared: &Prepared<'_>) -> Option<Trouble> {
        let Prepared { source, case, model, settings, .. } = prepared;
        let undefined = || {
            let now = &self.record.seen.now;
            let found = simulation::undefined(source, *case, model, settings, now);
            found.map_or(String::new(), |what| format!("\n{what}"))
        };
        let kept = self.written.map_or(String::new(), |written| written.kept());
        Some(match (&self.record.failure, &self.stop) {
            (None | Some(RunFailure::Stopped(_)), Some(Stop::Write(error))) => {
                if error.kind() == ErrorKind::BrokenPipe {
                    return None;
                }
                Trouble::Failed(cannot_write(self.written.as_ref(), error))
            }
            (None, _) => Trouble::None,
            (Some(RunFailure::Start(error)), _) => {
                let remedy = remedy(model, settings, error) + &undefined();
                Trouble::Failed(format!("the run cannot start: {}{remedy}{kept}", error.describe(model)))
            }
            (Some(RunFailure::Step(error @ StepError::Setting { .. })), _) => {
                Trouble::Usage(format!("{}{kept}", error.describe(model)))
            }
            (Some(RunFailure::Step(error)), _) => {
                let remedy = remedy(model, settings, error) + &undefined();
                Trouble::Failed(format!("{}{remedy}{kept}", failed("the run", error, model)))
            }
            (Some(RunFailure::Observe(t, error)), _) => {
                let (t, undefined) = (significant(*t, 9), undefined());
                Trouble::Failed(format!(
                    "the run failed at t = {t}: {}{undefined}{kept}",
                    error.describe(model)
                ))
            }
            (Some(RunFailure::Stopped(t)), _) => {
                let end = settings.simulation.end;
                Trouble::Interrupted(format!("stopped at t = {} of {} s{kept}", short(*t), short(end)))
            }
        })
    }
}

/// "the run failed at t = 1: …", or "the run failed: …" where the error has no time.
pub(crate) fn failed(what: &str, error: &StepError, model: &Interpreted) -> String {
    let words = error.describe(model).to_string();
    let colon = if words.starts_with("at t = ") { "" } else { ":" };
    format!("{what} failed{colon} {words}")
}

/// What the command knows beyond the error: names of what is held, and the other way to run the model.
fn remedy(model: &Interpreted, settings: &Settings, error: &StepError) -> String {
    match error {
        StepError::NotAssembled { .. } if settings.analysis == Analysis::Kinematics => {
            "\nthe drives lead to a position that the mechanism does not have, or the guesses are too far from it".into()
        }
        StepError::NotAssembled { .. } | StepError::Inconsistent { .. } => {
            let held = simulation::held(model);
            let held: Vec<String> = held
                .into_iter()
                .map(|(name, z, zd)| format!("`{name}` at {} with rate {}", short(z), short(zd)))
                .collect();
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
    /// The message.
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
