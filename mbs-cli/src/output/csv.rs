//! Results as a CSV file: a head of names, a row a sample. Numbers are written so that they read back exactly. A file whose name ends with
//! `.parquet` becomes one, if the command was built with that feature.

use mbs_engine::simulation::Column;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

/// A file that rows are written to.
pub(crate) struct Csv {
    to: To,
    line: String,
    /// Rows written, without the head.
    pub(crate) rows: usize,
    /// Time of the last row.
    pub(crate) last: Option<f64>,
}

/// Where rows go.
enum To {
    Text(Box<dyn Write>),
    #[cfg(feature = "parquet")]
    Parquet(super::parquet::Table),
}

#[cfg(not(feature = "parquet"))]
const NO_PARQUET: &str = "this command was built without Parquet: `cargo install --path mbs-cli --features parquet`, or name a .csv file";

impl Csv {
    /// Creates the file and writes the head, with units in it if they are wanted; `-` is standard output.
    pub(crate) fn create(path: &Path, columns: &[Column], units: bool) -> io::Result<Csv> {
        let csv = |to: To| Csv { to, line: String::new(), rows: 0, last: None };
        if is_parquet(path) {
            #[cfg(feature = "parquet")]
            return Ok(csv(To::Parquet(super::parquet::Table::create(path, columns)?)));
            #[cfg(not(feature = "parquet"))]
            return Err(io::Error::new(io::ErrorKind::Unsupported, NO_PARQUET));
        }
        let to: Box<dyn Write> =
            if is_stdout(path) { Box::new(io::stdout().lock()) } else { Box::new(File::create(path)?) };
        let mut to: Box<dyn Write> = Box::new(BufWriter::new(to));
        let head = |Column { name, unit }: &Column| match units && !unit.is_empty() {
            true => format!("{name} [{unit}]"),
            false => name.clone(),
        };
        let heads: Vec<String> = columns.iter().map(head).collect();
        to.write_all((heads.join(",") + "\n").as_bytes())?;
        Ok(csv(To::Text(to)))
    }

    /// Writes a row: the time, then parts of the other columns.
    pub(crate) fn row(&mut self, t: f64, parts: &[&[f64]]) -> io::Result<()> {
        match &mut self.to {
            To::Text(to) => {
                self.line.clear();
                // Writing to a string cannot fail.
                let _ = write!(self.line, "{t:?}");
                for value in parts.iter().copied().flatten() {
                    let _ = write!(self.line, ",{value:?}");
                }
                self.line.push('\n');
                to.write_all(self.line.as_bytes())?;
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

fn is_parquet(path: &Path) -> bool {
    path.extension().is_some_and(|end| end.eq_ignore_ascii_case("parquet"))
}

/// Takes a torn last row away from a file that could not be written to its end, as on a full disk; the time of the last row that is
/// left. None where there is no row, or no text to look at.
pub(crate) fn mend(path: &Path) -> Option<f64> {
    if is_parquet(path) {
        return None;
    }
    let mut file = File::options().read(true).write(true).open(path).ok()?;
    let found = file.metadata().ok().filter(|found| found.is_file())?;
    // Two rows, the torn one and the last whole one, are shorter than this.
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

/// Whether the path means standard output.
pub(crate) fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-"
}
