//! Reading models, writing results: every failure with the file's name and what is wrong with it.

use super::failure::Failure;
use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// No model is longer than this.
const LONGEST: u64 = 64 << 20;

/// A model file.
pub(crate) struct Text {
    /// Its name, as given.
    pub(crate) name: String,
    /// Its text.
    pub(crate) text: String,
}

/// Reads a model, a robot or a table.
pub(crate) fn read(path: &Path) -> Result<Text, Failure> {
    let name = path.display().to_string();
    let fail = |what: &str| Err(Failure::error(format!("cannot read `{name}`: {what}")));
    if path.is_dir() {
        return fail("it is a directory; name a file");
    }
    let mut bytes = Vec::new();
    // A pipe is as good as a file, but it may not end.
    match File::open(path).and_then(|file| file.take(LONGEST + 1).read_to_end(&mut bytes)) {
        Ok(_) if bytes.len() as u64 > LONGEST => return fail("it is longer than 64 MiB"),
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return fail(&not_found(path)),
        Err(error) => return fail(&reason(&error)),
    }
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            let line = 1 + error.as_bytes()[..at].iter().filter(|&&byte| byte == b'\n').count();
            return fail(&format!("it is not UTF-8 text: byte {at} (line {line}) is wrong"));
        }
    };
    if text.trim_start_matches('\u{feff}').trim().is_empty() {
        return fail("it is empty");
    }
    Ok(Text { name, text })
}

/// A file that is not there: perhaps its neighbour is meant.
fn not_found(path: &Path) -> String {
    let folder = folder(path);
    let Ok(entries) = fs::read_dir(folder) else { return no_directory(folder) };
    let mut names: Vec<String> = entries.flatten().filter_map(|e| e.file_name().into_string().ok()).collect();
    names.sort();
    let wanted = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
    match mbs_codegen::diagnostics::nearest(wanted, names.iter().map(String::as_str)) {
        Some(near) => {
            format!("there is no such file; did you mean `{}`?", path.with_file_name(near).display())
        }
        None => "there is no such file".into(),
    }
}

/// The directory that a file is in.
fn folder(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn no_directory(folder: &Path) -> String {
    format!("there is no directory `{}`", folder.display())
}

/// A file that cannot be written, and why; perhaps its directory is not there.
pub(crate) fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    let folder = folder(path);
    let why = match error.kind() {
        ErrorKind::NotFound if !folder.exists() => no_directory(folder),
        _ => reason(error),
    };
    Failure::error(format!("cannot write `{}`: {why}", path.display()))
}

/// The reason of an input or output error, without the operating system's number.
pub(crate) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((reason, _)) => reason.to_lowercase(),
        None => text,
    }
}

/// Whether anything was printed to standard output.
static PRINTED: AtomicBool = AtomicBool::new(false);

/// Whether anything was printed to standard output.
pub(crate) fn has_printed() -> bool {
    PRINTED.load(Ordering::Relaxed)
}

/// Text without control characters but line ends and tabs: names and comments of a file may contain sequences that a terminal obeys.
/// What is left out is written as in Rust, `\\u{1b}`.
pub(crate) fn harmless(text: &str) -> Cow<'_, str> {
    let obeyed = |c: char| c.is_control() && c != '\n' && c != '\t';
    if !text.contains(obeyed) {
        return text.into();
    }
    let shown = |c: char| if obeyed(c) { c.escape_default().to_string() } else { c.into() };
    text.chars().map(shown).collect::<String>().into()
}

/// Prints to standard output. A closed pipe is not a failure.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    PRINTED.store(true, Ordering::Relaxed);
    let mut out = io::stdout().lock();
    match out.write_all(harmless(text).as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::error(format!("cannot write to standard output: {}", reason(&error))))
        }
        _ => Ok(()),
    }
}

/// Prints to standard error; if that fails, nothing can be reported.
pub(crate) fn complain(text: &str) {
    let _ = io::stderr().lock().write_all(harmless(text).as_bytes());
}

/// Writes a line of standard error again, which is a terminal; nothing clears it.
pub(crate) fn rewrite(line: &str) {
    let _ = write!(io::stderr().lock(), "\r\x1b[K{}", harmless(line));
}

/// Whether a file is there with exactly this text; an error where it cannot be read. What is not a regular file
/// never is: reading it may not end.
pub(crate) fn holds(path: &Path, text: &str) -> io::Result<bool> {
    let found = fs::metadata(path)?;
    Ok(found.is_file() && found.len() == text.len() as u64 && fs::read(path)? == text.as_bytes())
}

/// Whether two names are those of one file, also by links of either kind, and also of a file that is not there yet.
pub(crate) fn is_same(a: &Path, b: &Path) -> bool {
    let place = |path: &Path| {
        let there = path.canonicalize().ok();
        there.or_else(|| Some(folder(path).canonicalize().ok()?.join(path.file_name()?)))
    };
    is_linked(a, b) || matches!((place(a), place(b)), (Some(a), Some(b)) if a == b)
}

#[cfg(unix)]
fn is_linked(a: &Path, b: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let is_one = |a: &fs::Metadata, b: &fs::Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
    // A device or a pipe may well be named twice.
    matches!((fs::metadata(a), fs::metadata(b)), (Ok(a), Ok(b)) if a.is_file() && is_one(&a, &b))
}

#[cfg(not(unix))]
fn is_linked(_: &Path, _: &Path) -> bool {
    false
}

/// Refuses to write over a file that is read.
pub(crate) fn refuse_overwriting(option: &str, out: &Path, what: &str, read: &Path) -> Result<(), Failure> {
    if !is_same(out, read) {
        return Ok(());
    }
    let out = out.display();
    Err(Failure::usage(format!("`{option} {out}` would overwrite {what}; name another file")))
}

/// Refuses to write two things to one file.
pub(crate) fn refuse_twice(a: (&str, &Path), b: (&str, &Path)) -> Result<(), Failure> {
    let is_file = |path: &Path| fs::metadata(path).map_or(true, |found| found.is_file());
    if !is_file(a.1) || !is_same(a.1, b.1) {
        return Ok(());
    }
    let [(a, path), (b, _)] = [a, b];
    let path = path.display();
    Err(Failure::usage(format!("`{a}` and `{b}` both name `{path}`; name two files")))
}

/// Whether a file can be written there, before the work for it is done.
pub(crate) fn check_place(path: &Path) -> Result<(), Failure> {
    Pending::create(path).map(|_| ()).map_err(|error| cannot_write(path, &error))
}

/// A file that is written beside the one whose name it takes when there is something in it. Until then, and if it never does, the other
/// is as it was.
pub(crate) struct Pending {
    target: PathBuf,
    /// None once it has its name; of what is not a regular file (a pipe, a terminal) from the beginning.
    beside: Option<PathBuf>,
}

impl Pending {
    /// Creates it; the error is that of a file that cannot be written.
    pub(crate) fn create(path: &Path) -> io::Result<(Pending, File)> {
        // Through a symbolic link.
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.into());
        let existing = fs::metadata(&target).ok();
        match &existing {
            Some(found) if found.is_dir() => return Err(ErrorKind::IsADirectory.into()),
            Some(found) if !found.is_file() => {
                let file = File::create(&target)?;
                return Ok((Pending { target, beside: None }, file));
            }
            // One that may not be written may not be replaced either.
            Some(_) => drop(File::options().append(true).open(&target)?),
            None => {}
        }
        let name = target.file_name().map_or(String::new(), |name| name.to_string_lossy().into_owned());
        let beside = target.with_file_name(format!(".{name}.{}.tmp", std::process::id()));
        let file = File::create(&beside)?;
        let pending = Pending { target, beside: Some(beside) };
        existing.map_or(Ok(()), |existing| file.set_permissions(existing.permissions()))?;
        Ok((pending, file))
    }

    /// It takes its name, once.
    pub(crate) fn take_name(&mut self) -> io::Result<()> {
        let Some(beside) = &self.beside else { return Ok(()) };
        fs::rename(beside, &self.target)?;
        self.beside = None;
        Ok(())
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if let Some(beside) = &self.beside {
            let _ = fs::remove_file(beside);
        }
    }
}

/// Writes a file whole or not at all: to a file beside it first, which then takes its name.
pub(crate) fn write_whole(path: &Path, text: &str) -> Result<(), Failure> {
    write_bytes(path, text.as_bytes())
}

/// The same for any contents.
pub(crate) fn write_bytes(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let write = || {
        let (mut pending, mut file) = Pending::create(path)?;
        file.write_all(bytes)?;
        if pending.beside.is_some() {
            file.sync_all()?;
        }
        pending.take_name()
    };
    write().map_err(|error| cannot_write(path, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_that_a_terminal_obeys_are_written_out() {
        assert_eq!(harmless("a\x1b[2Jb\u{9b}c\rd\te\n"), "a\\u{1b}[2Jb\\u{9b}c\\rd\te\n");
        assert!(matches!(harmless("α = 1\n"), Cow::Borrowed(_)));
    }
}
