//! Results as a CSV file: a head of names, a row a sample. Numbers are written so that they read back exactly.

use crate::observer::depends_on_time;
use crate::settings::{Analysis, Settings};
use mbs_codegen::program::Program;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// A file that rows are written to.
pub(crate) struct Csv {
    to: Box<dyn Write>,
    line: String,
    /// Rows written, without the head.
    pub(crate) rows: usize,
    /// Time of the last row.
    pub(crate) last: Option<f64>,
}

/// Names of the columns.
pub(crate) fn columns(program: &Program, settings: &Settings) -> Vec<String> {
    let mut names = vec![String::from("t")];
    names.extend(program.coordinates.iter().cloned());
    names.extend(program.velocities.iter().cloned());
    names.extend(program.inputs.iter().map(|input| input.name.clone()));
    names.extend(program.outputs.iter().map(|(name, _)| name.clone()));
    if settings.analysis == Analysis::Kinematics {
        return names;
    }
    names.extend(["kinetic", "potential", "power"].map(|name| format!("energy.{name}")));
    names.extend(depends_on_time(program).then(|| "energy.drives".into()));
    names.extend(program.holonomic.iter().chain(&program.nonholonomic).map(|row| format!("lambda.{row}")));
    if settings.reactions {
        let wrench = |joint: &String| WRENCH.map(|part| format!("reaction.{joint}.{part}"));
        names.extend(program.joints.iter().flat_map(wrench));
    }
    names
}

/// The parts of what a joint transmits.
pub(crate) const WRENCH: [&str; 6] = ["fx", "fy", "fz", "tx", "ty", "tz"];

impl Csv {
    /// Creates the file and writes the head; `-` is standard output.
    pub(crate) fn create(path: &Path, columns: &[String]) -> io::Result<Csv> {
        let to: Box<dyn Write> =
            if is_stdout(path) { Box::new(io::stdout().lock()) } else { Box::new(File::create(path)?) };
        let mut csv = Csv { to: Box::new(BufWriter::new(to)), line: String::new(), rows: 0, last: None };
        csv.to.write_all((columns.join(",") + "\n").as_bytes())?;
        Ok(csv)
    }

    /// Writes a row: the time, then parts of the other columns.
    pub(crate) fn row(&mut self, t: f64, parts: &[&[f64]]) -> io::Result<()> {
        self.line.clear();
        // Writing to a string cannot fail.
        let _ = write!(self.line, "{t:?}");
        for value in parts.iter().copied().flatten() {
            let _ = write!(self.line, ",{value:?}");
        }
        self.line.push('\n');
        self.to.write_all(self.line.as_bytes())?;
        self.rows += 1;
        self.last = Some(t);
        Ok(())
    }

    /// Everything written reaches the file.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Whether the path means standard output.
pub(crate) fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-"
}
