//! The file of `--resume`: every evaluation of a search, a line each. Optimisers are deterministic, so a search that finds its
//! evaluations there goes the same way without running the model.
//!
//! A line is `x | values | derivatives | jumps | events`, runs separated by `;`, or `x | failed: reason`. The first line says what the numbers
//! belong to.

use super::failure::Failure;
use super::files;
use mbs_engine::optimisation::{Evaluation, Failed};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The evaluations of a search, in a file.
pub(crate) struct Journal {
    path: PathBuf,
    file: File,
    known: HashMap<Vec<u64>, Result<Evaluation, Failed>>,
    /// What went wrong while it was written.
    pub(crate) failure: Option<String>,
}

impl Journal {
    /// Opens a journal, or begins one. `belongs`: what its numbers belong to, on one line.
    pub(crate) fn open(path: &Path, belongs: &str) -> Result<Journal, Failure> {
        let head = format!("mbs optimise {:016x} {belongs}", fingerprint(belongs));
        let mut known = HashMap::new();
        let mut text = String::new();
        match std::fs::read_to_string(path) {
            Ok(old) => text = old,
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => {
                let why = files::reason(&error);
                return Err(Failure::error(format!("cannot read `{}`: {why}", path.display())));
            }
        }
        let mut whole = 0;
        if !text.is_empty() {
            let mut lines = text.split_inclusive('\n');
            let first = lines.next().unwrap_or_default();
            if first.trim_end() != head {
                return Err(Failure::usage(format!(
                    "`{}` belongs to another search: the model, the problem or the settings have changed; name another file",
                    path.display()
                )));
            }
            whole = first.len();
            for line in lines {
                // A line that was cut short is not there.
                let Some((x, result)) = line.strip_suffix('\n').and_then(parse) else { break };
                known.insert(bits(&x), result);
                whole += line.len();
            }
        }
        let open = || -> std::io::Result<File> {
            let mut file = File::options().create(true).truncate(false).write(true).open(path)?;
            file.set_len(whole as u64)?;
            std::io::Seek::seek(&mut file, std::io::SeekFrom::End(0))?;
            if whole == 0 {
                writeln!(file, "{head}")?;
            }
            Ok(file)
        };
        let file = open().map_err(|error| files::cannot_write(path, &error))?;
        Ok(Journal { path: path.into(), file, known, failure: None })
    }

    /// How many evaluations are known.
    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }

    /// What is known of x.
    pub(crate) fn recall(&self, x: &[f64]) -> Option<Result<Evaluation, Failed>> {
        self.known.get(&bits(x)).cloned()
    }

    /// Keeps an evaluation.
    pub(crate) fn keep(&mut self, x: &[f64], result: &Result<Evaluation, Failed>) {
        let mut line = numbers(x);
        match result {
            Ok(evaluation) => {
                let runs =
                    |runs: &[Vec<f64>]| runs.iter().map(|run| numbers(run)).collect::<Vec<_>>().join(";");
                let _ = write!(line, " | {} | {}", runs(&evaluation.values), runs(&evaluation.derivatives));
                let events: Vec<String> = evaluation
                    .events
                    .iter()
                    .map(|run| run.iter().map(usize::to_string).collect::<Vec<_>>().join(" "))
                    .collect();
                let _ = write!(line, " | {} | {}", evaluation.jumps.len(), events.join(";"));
            }
            Err(failed) => {
                let reason: String =
                    failed.reason.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
                let _ = write!(line, " | failed: {reason}");
            }
        }
        line.push('\n');
        if let Err(error) = self.file.write_all(line.as_bytes()) {
            self.failure.get_or_insert(format!(
                "cannot write `{}`: {}",
                self.path.display(),
                files::reason(&error)
            ));
        }
    }
}

fn bits(x: &[f64]) -> Vec<u64> {
    x.iter().map(|x| x.to_bits()).collect()
}

/// The shortest digits that give the same numbers again.
fn numbers(x: &[f64]) -> String {
    x.iter().map(|x| format!("{x:?}")).collect::<Vec<_>>().join(" ")
}

fn parse(line: &str) -> Option<(Vec<f64>, Result<Evaluation, Failed>)> {
    let list = |text: &str| text.split_whitespace().map(|x| x.parse().ok()).collect::<Option<Vec<f64>>>();
    let mut parts = line.split(" | ");
    let x = list(parts.next()?)?;
    let second = parts.next()?;
    if let Some(reason) = second.strip_prefix("failed: ") {
        return Some((x, Err(Failed::because(reason))));
    }
    let runs = |text: &str| text.split(';').map(list).collect::<Option<Vec<_>>>();
    let (values, derivatives) = (runs(second)?, runs(parts.next()?)?);
    let jumps = vec![String::new(); parts.next()?.trim().parse().ok()?];
    let run =
        |text: &str| text.split_whitespace().map(|event| event.parse().ok()).collect::<Option<Vec<usize>>>();
    let events = parts.next()?.split(';').map(run).collect::<Option<Vec<_>>>()?;
    Some((x, Ok(Evaluation { values, derivatives, jumps, events })))
}

/// A number that another text does not have: FNV-1a.
pub(crate) fn fingerprint(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_gives_the_same_numbers_again() {
        let folder = std::env::temp_dir().join(format!("mbs-journal-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("a.journal");
        let x = [0.1 + 0.2, -1e-300, 2.0_f64.sqrt()];
        let evaluation = Evaluation {
            values: vec![vec![1.0 / 3.0], vec![2.0]],
            derivatives: vec![vec![1e9; 3], vec![0.1; 3]],
            jumps: vec![],
            events: vec![vec![0, 1, 0], vec![]],
        };
        let mut journal = Journal::open(&path, "a model").unwrap();
        journal.keep(&x, &Ok(evaluation.clone()));
        journal.keep(&[1.0], &Err(Failed::because("a | b\nc")));
        drop(journal);
        // What an interrupt leaves.
        let mut text = std::fs::read_to_string(&path).unwrap();
        text.push_str("1.0 2.0 | 3");
        std::fs::write(&path, text).unwrap();
        let again = Journal::open(&path, "a model").unwrap();
        assert_eq!(again.len(), 2);
        assert_eq!(again.recall(&x), Some(Ok(evaluation)));
        assert!(again.recall(&[1.0]).is_some_and(|result| result.is_err()));
        assert!(Journal::open(&path, "another model").is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
