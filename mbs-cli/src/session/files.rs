//! Reading models, writing results: every failure with the file's name and what is wrong with it.

use super::failure::Failure;
use std::fs;
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
    match fs::File::open(path).and_then(|file| file.take(LONGEST + 1).read_to_end(&mut bytes)) {
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

/// Prints to standard output. That nobody reads it any more is no failure.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    PRINTED.store(true, Ordering::Relaxed);
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::error(format!("cannot write to standard output: {}", reason(&error))))
        }
        _ => Ok(()),
    }
}

/// Prints to standard error; if that fails there is nobody left to tell.
pub(crate) fn complain(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Whether a file is there with exactly this text; an error where it cannot be read. What is not a regular file
/// never is: reading it may not end.
pub(crate) fn holds(path: &Path, text: &str) -> io::Result<bool> {
    let found = fs::metadata(path)?;
    Ok(found.is_file() && found.len() == text.len() as u64 && fs::read(path)? == text.as_bytes())
}

/// Whether a file can be written there, before the work for it is done.
pub(crate) fn check_place(path: &Path) -> Result<(), Failure> {
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.into());
    let failed = match fs::metadata(&target) {
        Ok(found) if found.is_dir() => Err(ErrorKind::IsADirectory.into()),
        Ok(found) if !found.is_file() => Ok(()),
        _ => {
            let beside = temporary(&target);
            fs::File::create(&beside).and_then(|_| fs::remove_file(&beside))
        }
    };
    failed.map_err(|error| cannot_write(path, &error))
}

/// Writes a file whole or not at all: to a file beside it first, which then takes its name.
pub(crate) fn write_whole(path: &Path, text: &str) -> Result<(), Failure> {
    write_bytes(path, text.as_bytes())
}

/// The same of anything.
pub(crate) fn write_bytes(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let fail = |error: io::Error| cannot_write(path, &error);
    // Through a symbolic link, and as it is to what is not a regular file (a pipe, a terminal).
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.into());
    let existing = fs::metadata(&target).ok();
    if existing.as_ref().is_some_and(|existing| !existing.is_file()) {
        return fs::write(&target, bytes).map_err(fail);
    }
    let beside = temporary(&target);
    let written = fs::File::create(&beside)
        .and_then(|mut file| {
            file.write_all(bytes)?;
            existing.map_or(Ok(()), |existing| file.set_permissions(existing.permissions()))?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&beside, &target));
    written.map_err(|error| {
        // It may not even be there.
        let _ = fs::remove_file(&beside);
        fail(error)
    })
}

fn temporary(target: &Path) -> PathBuf {
    let name = target.file_name().map_or(String::new(), |name| name.to_string_lossy().into_owned());
    target.with_file_name(format!(".{name}.{}.tmp", std::process::id()))
}
