//! The file of a sweep: a row a run. Numbers are written so that they read back exactly.
//!
//! Columns: `run`, the parameters, objectives, outputs at the end, `failed` (empty where the run came to its end).

use super::failure::Failure;
use super::files::{self, Pending};
use mbs_engine::sweep::{Plan, Row};
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Names of the columns of a sweep.
pub(crate) fn names(plan: &Plan, results: &[String]) -> Vec<String> {
    let axes = plan.axes.iter().map(|axis| axis.name.clone());
    let first = std::iter::once("run".to_string()).chain(axes);
    first.chain(results.iter().cloned()).chain(std::iter::once("failed".to_string())).collect()
}

/// A line of the file.
fn line(cells: impl IntoIterator<Item = String>) -> String {
    let quoted = |cell: String| match cell.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell,
    };
    cells.into_iter().map(quoted).collect::<Vec<_>>().join(",") + "\n"
}

/// A row as a line; `results`: how many there are.
fn text(row: &Row, results: usize) -> String {
    let number = |x: &f64| format!("{x:?}");
    let (values, failed) = match &row.result {
        Ok(values) => (values.iter().map(number).collect(), String::new()),
        // One line for one row: a failed file is cut at its last whole line.
        Err(why) => (
            vec![String::new(); results],
            why.chars().map(|c| if c.is_control() { ' ' } else { c }).collect(),
        ),
    };
    let first = std::iter::once(row.number.to_string()).chain(row.point.iter().map(number));
    line(first.chain(values).chain(std::iter::once(failed)))
}

/// A CSV file that rows are written to as they come. It takes its name with the first rows.
pub(crate) struct Rows {
    path: PathBuf,
    pending: Option<Pending>,
    file: File,
    results: usize,
}

impl Rows {
    /// Begins a file.
    pub(crate) fn create(path: &Path, plan: &Plan, results: &[String]) -> Result<Rows, Failure> {
        let begin = || -> io::Result<Rows> {
            let (pending, mut file) = Pending::create(path)?;
            file.write_all(line(names(plan, results)).as_bytes())?;
            Ok(Rows { path: path.into(), pending: Some(pending), file, results: results.len() })
        };
        begin().map_err(|error| files::cannot_write(path, &error))
    }

    /// Goes on with a file after its last whole row, and gives the rows it has.
    pub(crate) fn resume(
        path: &Path,
        plan: &Plan,
        results: &[String],
        part: &Range<usize>,
    ) -> Result<(Rows, Vec<Row>), Failure> {
        if !path.exists() {
            return Ok((Rows::create(path, plan, results)?, Vec::new()));
        }
        let (rows, whole) = read(path, plan, results)?;
        let expected = part.start..part.start + rows.len();
        if !rows.iter().map(|row| row.number).eq(expected.clone()) || expected.end > part.end {
            return Err(Failure::usage(format!(
                "`{}` has the rows of another part; name another file",
                path.display()
            )));
        }
        let open = || -> io::Result<Rows> {
            let mut file = File::options().write(true).open(path)?;
            file.set_len(whole as u64)?;
            file.seek(SeekFrom::End(0))?;
            Ok(Rows { path: path.into(), pending: None, file, results: results.len() })
        };
        Ok((open().map_err(|error| files::cannot_write(path, &error))?, rows))
    }

    /// Writes rows.
    pub(crate) fn write(&mut self, rows: &[Row]) -> Result<(), Failure> {
        let all: String = rows.iter().map(|row| text(row, self.results)).collect();
        let mut write = || {
            self.file.write_all(all.as_bytes())?;
            self.pending.as_mut().map_or(Ok(()), Pending::take_name)
        };
        write().map_err(|error| files::cannot_write(&self.path, &error))
    }
}

/// Refuses to write over an interrupted run of the same sweep.
pub(crate) fn spare_unfinished(
    path: &Path,
    plan: &Plan,
    results: &[String],
    part: &Range<usize>,
) -> Result<(), Failure> {
    if !path.exists() {
        return Ok(());
    }
    match read(path, plan, results) {
        Ok((rows, _)) if !rows.is_empty() && rows.len() < part.len() => Err(Failure::usage(format!(
            "`{}` has {} of the {} rows of this sweep: go on with `--resume`, or name another file",
            path.display(),
            rows.len(),
            part.len()
        ))),
        _ => Ok(()),
    }
}

/// The rows of a file and the length of its complete part. The file must have the columns and the points of the plan.
pub(crate) fn read(path: &Path, plan: &Plan, results: &[String]) -> Result<(Vec<Row>, usize), Failure> {
    let text = files::read(path)?.text;
    let other = |why: &str| Failure::usage(format!("`{}` belongs to another sweep: {why}", path.display()));
    let whole = text.rfind('\n').map_or(0, |at| at + 1);
    let mut reader =
        csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(&text.as_bytes()[..whole]);
    let mut records = reader.records();
    let head = records.next().and_then(Result::ok);
    if head.is_none_or(|head| !head.iter().eq(names(plan, results).iter().map(String::as_str))) {
        return Err(other("its columns differ"));
    }
    let (axes, mut rows) = (plan.axes.len(), Vec::new());
    for record in records {
        let record =
            record.map_err(|error| Failure::error(format!("cannot read `{}`: {error}", path.display())))?;
        let broken = || {
            Failure::error(format!(
                "cannot read `{}`: row {} is not one of a sweep",
                path.display(),
                rows.len() + 1
            ))
        };
        if record.len() != axes + results.len() + 2 {
            return Err(broken());
        }
        let number: usize = record[0].parse().map_err(|_| broken())?;
        let numbers =
            |cells: Range<usize>| -> Option<Vec<f64>> { cells.map(|i| record[i].parse().ok()).collect() };
        let point = numbers(1..1 + axes).ok_or_else(broken)?;
        if number >= plan.len() || plan.point(number) != point {
            return Err(other(&format!("run {number} has other parameters")));
        }
        let why = &record[axes + results.len() + 1];
        let result = match why.is_empty() {
            true => Ok(numbers(1 + axes..1 + axes + results.len()).ok_or_else(broken)?),
            false => Err(why.to_string()),
        };
        rows.push(Row { number, point, result });
    }
    Ok((rows, whole))
}

/// Writes all rows as a Parquet file.
pub(crate) fn write_parquet(
    path: &Path,
    plan: &Plan,
    results: &[String],
    rows: &[Row],
) -> Result<(), Failure> {
    let write = || -> io::Result<()> {
        let (mut pending, file) = Pending::create(path)?;
        let mut columns = vec![Vec::new(); 1 + plan.axes.len() + results.len()];
        for row in rows {
            let missing = vec![f64::NAN; results.len()];
            let values = row.result.as_ref().unwrap_or(&missing);
            let all = std::iter::once(row.number as f64)
                .chain(row.point.iter().copied())
                .chain(values.iter().copied());
            columns.iter_mut().zip(all).for_each(|(column, value)| column.push(value));
        }
        let failed: Vec<&str> =
            rows.iter().map(|row| row.result.as_ref().err().map_or("", String::as_str)).collect();
        let names = names(plan, results);
        crate::output::csv::write_parquet(file, &names, &columns, &failed)?;
        pending.take_name()
    };
    write().map_err(|error| files::cannot_write(path, &error))
}
