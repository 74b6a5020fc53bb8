//! The file of results: where it may go, how rows are written during a run, and what is kept after a failure.

use super::failure::Failure;
use super::files::{self, Pending};
use super::interrupt;
use super::progress::Progress;
use crate::arguments::Common;
use crate::output::csv::{self, Csv};
use crate::output::number::significant;
use crate::output::shown::Written;
use mbs_codegen::model::Simulation;
use mbs_engine::simulation::{Column, Follower, RunFailure};
use mbs_runtime::StepError;
use std::fs::File;
use std::io::{self, IsTerminal, Read, Seek, SeekFrom};
use std::ops::ControlFlow;
use std::path::Path;

/// Whether results go to standard output; a failure if they cannot go where they should.
pub(crate) fn check_out(option: &str, out: Option<&Path>, common: &Common) -> Result<bool, Failure> {
    let Some(out) = out else { return Ok(false) };
    if csv::is_stdout(out) {
        return match common.json {
            true => Err(Failure::usage(format!("`--json` and `{option} -` both want standard output"))),
            false => Ok(true),
        };
    }
    files::refuse_overwriting(option, out, "the model", &common.model)?;
    Ok(false)
}

/// Why the command stopped a run.
pub(crate) enum Stop {
    /// The results could not be written.
    Write(io::Error),
    /// The user wanted it.
    Interrupted,
}

/// A file of results. It takes its name when the run has made a step, so that a run that never begins leaves an earlier file as it was, and
/// one that is stopped keeps its rows. A Parquet file is nothing before its end.
struct Table<'a> {
    path: &'a Path,
    pending: Option<Pending>,
    csv: Csv,
    columns: usize,
}

impl<'a> Table<'a> {
    fn create(path: &'a Path, columns: &[Column], units: bool) -> io::Result<Table<'a>> {
        let (pending, csv) = if csv::is_stdout(path) {
            let out = io::stdout().lock();
            let harmless = |column: &Column| {
                let [name, unit] =
                    [&column.name, &column.unit].map(|text| files::harmless(text).into_owned());
                Column { name, unit }
            };
            let columns = match out.is_terminal() {
                true => &columns.iter().map(harmless).collect::<Vec<_>>(),
                false => columns,
            };
            (None, Csv::text(Box::new(out), columns, units)?)
        } else {
            let (pending, file) = Pending::create(path)?;
            let csv = match csv::is_parquet(path) {
                true => Csv::parquet(file, columns)?,
                false => Csv::text(Box::new(file), columns, units)?,
            };
            (Some(pending), csv)
        };
        Ok(Table { path, pending, csv, columns: columns.len() })
    }

    fn take_name(&mut self) -> io::Result<()> {
        self.pending.as_mut().map_or(Ok(()), Pending::take_name)
    }

    fn row(&mut self, t: f64, parts: &[&[f64]]) -> io::Result<()> {
        self.csv.row(t, parts)?;
        if self.csv.rows > 1 && !csv::is_parquet(self.path) { self.take_name() } else { Ok(()) }
    }

    /// Everything written reaches the file. Where no rows are worth it the file that was there stays.
    fn finish(&mut self, is_worth_it: bool) -> io::Result<()> {
        self.csv.flush()?;
        if is_worth_it && self.csv.rows > 0 { self.take_name() } else { Ok(()) }
    }
}

/// Writes a whole table: times, and rows of the other columns one after the other.
pub(crate) fn write_table(
    path: &Path,
    columns: &[Column],
    times: &[f64],
    values: &[f64],
) -> Result<(), Failure> {
    let written = Table::create(path, columns, false).and_then(|mut table| {
        let width = columns.len().saturating_sub(1).max(1);
        for (&t, row) in times.iter().zip(values.chunks_exact(width)) {
            table.row(t, &[row])?;
        }
        table.finish(true)
    });
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(files::cannot_write(path, &error)),
        _ => Ok(()),
    }
}

/// Follows a run: writes its results, shows how far it is, and stops it at an interrupt.
pub(crate) struct Watcher<'a> {
    table: Option<Table<'a>>,
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
            |path| Table::create(path, columns, units).map_err(|error| files::cannot_write(path, &error));
        let table = file.map(create).transpose()?;
        interrupt::install_handler();
        Ok(Watcher { table, progress: Progress::new((simulation.begin, simulation.end)), stop: None })
    }

    /// The run has ended: everything written reaches the file. Gives what was written, and why the command stopped it, if it did.
    pub(crate) fn finish(mut self, failure: Option<&RunFailure>) -> (Option<Written<'a>>, Option<Stop>) {
        self.progress.finish();
        // Settings that no run can have are found at the first step, after the first row.
        let is_worth_it = !matches!(failure, Some(RunFailure::Step(StepError::Setting { .. })));
        if let Some(table) = &mut self.table
            && let Err(error) = table.finish(is_worth_it)
        {
            self.stop.get_or_insert(Stop::Write(error));
        }
        let written = self.table.map(|table| Written {
            file: table.path,
            columns: table.columns,
            rows: table.csv.rows,
            last: table.csv.last.filter(|_| is_worth_it),
        });
        (written, self.stop)
    }
}

impl Follower for Watcher<'_> {
    fn wants_rows(&self) -> bool {
        self.table.is_some()
    }

    fn row(&mut self, t: f64, parts: &[&[f64]]) -> ControlFlow<()> {
        match self.table.as_mut().map_or(Ok(()), |table| table.row(t, parts)) {
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

/// Message about the results that a file keeps after a write error.
fn kept_results(written: &Written<'_>) -> String {
    let path = written.file.display();
    if written.rows < 2 {
        // It never had its name.
        return String::new();
    }
    match truncate_incomplete_row(written.file) {
        Some(t) => format!("\n`{path}` keeps the results up to t = {}", significant(t, 9)),
        None => String::new(),
    }
}

/// The message where results could not be written.
pub(crate) fn cannot_write(written: Option<&Written<'_>>, error: &io::Error) -> String {
    let path = written.map_or(Path::new("-"), |written| written.file);
    let kept = written.map_or(String::new(), kept_results);
    format!("cannot write `{}`: {}{kept}", path.display(), files::reason(error))
}

/// Removes an incomplete last row from a file after a write error, as on a full disk; returns the time of the last complete
/// row. `None` if there is no row, or if the file is not text.
fn truncate_incomplete_row(path: &Path) -> Option<f64> {
    if csv::is_parquet(path) {
        return None;
    }
    let mut file = File::options().read(true).write(true).open(path).ok()?;
    let found = file.metadata().ok().filter(|found| found.is_file())?;
    // The incomplete row and the last complete one are shorter than this.
    let begin = found.len().saturating_sub(8 << 20);
    let mut tail = Vec::new();
    file.seek(SeekFrom::Start(begin)).ok()?;
    file.read_to_end(&mut tail).ok()?;
    let end = tail.iter().rposition(|&byte| byte == b'\n')?;
    file.set_len(begin + end as u64 + 1).ok()?;
    let row = tail[..end].rsplit(|&byte| byte == b'\n').next()?;
    let time = row.split(|&byte| byte == b',').next()?;
    std::str::from_utf8(time).ok()?.parse().ok()
}
