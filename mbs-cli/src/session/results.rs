//! The file of results: where it may go, how rows come to it while a run goes on, and what of it is left.

use super::failure::Failure;
use super::progress::Progress;
use super::{files, interrupt};
use crate::arguments::Common;
use crate::output::csv::{self, Csv};
use crate::output::number::significant;
use crate::output::shown::Written;
use mbs_codegen::model::Simulation;
use mbs_engine::simulation::{Column, Follower};
use std::io;
use std::ops::ControlFlow;
use std::path::Path;

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

fn is_same_file(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

/// Why the command stopped a run.
pub(crate) enum Stop {
    /// The results could not be written.
    Write(io::Error),
    /// The user wanted it.
    Interrupted,
}

/// Follows a run: writes its results, shows how far it is, and stops it at an interrupt.
pub(crate) struct Watcher<'a> {
    file: Option<&'a Path>,
    csv: Option<Csv>,
    columns: usize,
    progress: Progress,
    stop: Option<Stop>,
}

impl<'a> Watcher<'a> {
    /// Of a run that is about to begin; creates the file, if one is wanted.
    pub(crate) fn new(
        file: Option<&'a Path>,
        columns: &[Column],
        units: bool,
        simulation: &Simulation,
    ) -> Result<Watcher<'a>, Failure> {
        let create =
            |path| Csv::create(path, columns, units).map_err(|error| files::cannot_write(path, &error));
        let csv = file.map(create).transpose()?;
        interrupt::take_over();
        let progress = Progress::new((simulation.begin, simulation.end));
        Ok(Watcher { file, csv, columns: columns.len(), progress, stop: None })
    }

    /// The run has ended: everything written reaches the file. Gives what was written, and why the command stopped it, if it did.
    pub(crate) fn finish(mut self) -> (Option<Written<'a>>, Option<Stop>) {
        self.progress.finish();
        if let Some(csv) = &mut self.csv
            && let Err(error) = csv.flush()
        {
            self.stop.get_or_insert(Stop::Write(error));
        }
        let written = self.file.zip(self.csv).map(|(file, csv)| Written {
            file,
            columns: self.columns,
            rows: csv.rows,
            last: csv.last,
        });
        (written, self.stop)
    }
}

impl Follower for Watcher<'_> {
    fn wants_rows(&self) -> bool {
        self.csv.is_some()
    }

    fn row(&mut self, t: f64, parts: &[&[f64]]) -> ControlFlow<()> {
        match self.csv.as_mut().map_or(Ok(()), |csv| csv.row(t, parts)) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.stop = Some(Stop::Write(error));
                ControlFlow::Break(())
            }
        }
    }

    fn reached(&mut self, t: f64) -> ControlFlow<()> {
        self.progress.reached(t);
        if !interrupt::is_wanted() {
            return ControlFlow::Continue(());
        }
        self.stop = Some(Stop::Interrupted);
        ControlFlow::Break(())
    }
}

/// What a failure of writing itself left: what has really come to the file.
pub(crate) fn mended(written: &Written<'_>) -> String {
    let path = written.file.display();
    match csv::mend(written.file) {
        Some(t) => format!("\n`{path}` keeps the results up to t = {}", significant(t, 9)),
        None => String::new(),
    }
}

/// The message where results could not be written.
pub(crate) fn cannot_write(written: Option<&Written<'_>>, error: &io::Error) -> String {
    let path = written.map_or(Path::new("-"), |written| written.file);
    let kept = written.map_or(String::new(), mended);
    format!("cannot write `{}`: {}{kept}", path.display(), files::reason(error))
}
