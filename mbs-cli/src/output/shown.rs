//! A run with everything that a report is made from.

use super::csv;
use super::number::{count, significant};
use mbs_codegen::model::{Case, Model};
use mbs_engine::Interpreted;
use mbs_engine::simulation::{Analysis, Record, Settings};
use std::path::Path;

/// Everything a report is made from.
pub(crate) struct Shown<'a> {
    /// The model's file.
    pub(crate) file: &'a Path,
    /// Parameters of the command line.
    pub(crate) set: &'a [(String, f64)],
    /// The model as it was read.
    pub(crate) source: &'a Model,
    pub(crate) case: Option<&'a Case>,
    pub(crate) model: &'a Interpreted,
    pub(crate) settings: &'a Settings,
    pub(crate) record: &'a Record,
    pub(crate) written: Option<Written<'a>>,
}

impl<'a> Shown<'a> {
    /// Start values that assembly changed notably, without those that drives prescribe.
    pub(crate) fn moved(&self) -> impl Iterator<Item = (usize, f64, f64)> {
        let kinematic = self.settings.analysis == Analysis::Kinematics;
        let nq = self.model.program().coordinates.len();
        let moved = self.record.assembly.iter().flat_map(|found| found.moved.iter().copied());
        moved.filter(move |(i, ..)| !kinematic || *i < nq)
    }
}

/// What was written to a file of results.
#[derive(Clone, Copy)]
pub(crate) struct Written<'a> {
    pub(crate) file: &'a Path,
    pub(crate) columns: usize,
    pub(crate) rows: usize,
    /// Time of the last row.
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
            None if self.file.exists() => format!("\n`{path}` is left as it was"),
            None => format!("\n`{path}` is not written"),
        }
    }
}
