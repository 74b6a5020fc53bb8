//! Results as a CSV file (RFC 4180): a head of names, a row a sample. Numbers are written so that they read back exactly. A file whose name
//! ends with `.parquet` becomes one, if the command was built with that feature.

use csv::{ErrorKind, QuoteStyle, Terminator, Writer, WriterBuilder};
use mbs_engine::simulation::Column;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// A file that rows are written to.
pub(crate) struct Csv {
    to: To,
    cell: String,
    /// Rows written, without the head.
    pub(crate) rows: usize,
    /// Time of the last row.
    pub(crate) last: Option<f64>,
}

/// Where rows go.
enum To {
    Text(Writer<Box<dyn Write>>),
    #[cfg(feature = "parquet")]
    Parquet(super::parquet::Table),
}

#[cfg(not(feature = "parquet"))]
const NO_PARQUET: &str = "this command was built without Parquet: `cargo install --path mbs-cli --features parquet`, or name a .csv file";

impl Csv {
    /// Writes the head, with units in it if they are wanted.
    pub(crate) fn text(to: Box<dyn Write>, columns: &[Column], units: bool) -> io::Result<Csv> {
        let mut builder = WriterBuilder::new();
        let builder = builder.terminator(Terminator::Any(b'\n')).quote_style(QuoteStyle::Necessary);
        let mut to = builder.from_writer(to);
        to.write_record(columns.iter().map(|Column { name, unit }| match units && !unit.is_empty() {
            true => format!("{name} [{unit}]"),
            false => name.clone(),
        }))
        .map_err(failed)?;
        Ok(Csv { to: To::Text(to), cell: String::new(), rows: 0, last: None })
    }

    /// Begins a Parquet file.
    #[cfg(feature = "parquet")]
    pub(crate) fn parquet(to: File, columns: &[Column]) -> io::Result<Csv> {
        let table = super::parquet::Table::new(to, columns)?;
        Ok(Csv { to: To::Parquet(table), cell: String::new(), rows: 0, last: None })
    }

    /// Begins a Parquet file.
    #[cfg(not(feature = "parquet"))]
    pub(crate) fn parquet(_: File, _: &[Column]) -> io::Result<Csv> {
        Err(io::Error::new(io::ErrorKind::Unsupported, NO_PARQUET))
    }

    /// Writes a row: the time, then parts of the other columns.
    pub(crate) fn row(&mut self, t: f64, parts: &[&[f64]]) -> io::Result<()> {
        match &mut self.to {
            To::Text(to) => {
                for value in [t].iter().chain(parts.iter().copied().flatten()) {
                    self.cell.clear();
                    // Writing to a string cannot fail.
                    let _ = write!(self.cell, "{value:?}");
                    to.write_field(&self.cell).map_err(failed)?;
                }
                to.write_record(None::<&[u8]>).map_err(failed)?;
            }
            #[cfg(feature = "parquet")]
            To::Parquet(table) => table.row(t, parts)?,
        }
        self.rows += 1;
        self.last = Some(t);
        Ok(())
    }

    /// Everything written reaches the file; nothing is written after it.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match &mut self.to {
            To::Text(to) => to.flush(),
            #[cfg(feature = "parquet")]
            To::Parquet(table) => table.finish(),
        }
    }
}

/// Writes a Parquet file at once: columns of numbers, then one of texts.
#[cfg(feature = "parquet")]
pub(crate) fn write_parquet(
    to: File,
    names: &[String],
    columns: &[Vec<f64>],
    texts: &[&str],
) -> io::Result<()> {
    super::parquet::write(to, names, columns, texts)
}

/// Writes a Parquet file at once: columns of numbers, then one of texts.
#[cfg(not(feature = "parquet"))]
pub(crate) fn write_parquet(_: File, _: &[String], _: &[Vec<f64>], _: &[&str]) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, NO_PARQUET))
}

/// The failure of the file itself.
fn failed(error: csv::Error) -> io::Error {
    match error.into_kind() {
        ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

/// Whether the name is that of a Parquet file.
pub(crate) fn is_parquet(path: &Path) -> bool {
    path.extension().is_some_and(|end| end.eq_ignore_ascii_case("parquet"))
}

/// Whether the path means standard output.
pub(crate) fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-"
}
