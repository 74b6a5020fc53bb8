//! Runs the built command, and gives each test a folder of its own.
#![allow(dead_code, reason = "each test file uses a part")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

/// What a run of the command left.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl From<Output> for Outcome {
    fn from(output: Output) -> Outcome {
        Outcome {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// The command with these arguments.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mbs"));
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Runs the command.
pub(crate) fn mbs(arguments: &[&str]) -> Outcome {
    command(arguments).output().expect("the command runs").into()
}

/// Runs the command, which must do what it is asked for; gives its standard output.
pub(crate) fn done(arguments: &[&str]) -> String {
    let outcome = mbs(arguments);
    assert_eq!(outcome.code, Some(0), "{arguments:?}: {outcome:?}");
    outcome.out
}

/// Runs the command, which must fail with this code and these words on standard error, and never panic.
pub(crate) fn fails(code: i32, words: &[&str], arguments: &[&str]) -> Outcome {
    let outcome = mbs(arguments);
    assert_eq!(outcome.code, Some(code), "{arguments:?}: {outcome:?}");
    for word in words {
        assert!(outcome.err.contains(word), "{arguments:?}: no `{word}` in {}", outcome.err);
    }
    assert!(!outcome.err.contains("panicked"), "{}", outcome.err);
    outcome
}

/// A shipped model.
pub(crate) fn shipped(name: &str) -> String {
    format!("{}/../models/{name}.yaml", env!("CARGO_MANIFEST_DIR"))
}

/// A folder that goes away with its test.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Folder {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("mbs-cli-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    /// A folder with the shipped models in it, as the repository has them.
    pub(crate) fn with_models() -> Folder {
        let folder = Folder::new();
        std::fs::create_dir_all(folder.path("models")).expect("a folder");
        let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../models");
        for entry in std::fs::read_dir(models).expect("the models") {
            let entry = entry.expect("a model");
            let name = entry.file_name().into_string().expect("a name of text");
            std::fs::copy(entry.path(), folder.path(&format!("models/{name}"))).expect("a copy");
        }
        folder
    }

    /// The path of a file in it.
    pub(crate) fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("a path of text").into()
    }

    /// Writes a file; gives its path.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        std::fs::write(&path, content).expect("a file");
        path
    }

    /// Names of what is in it.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).expect("the folder");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The text of a file.
pub(crate) fn text(path: &str) -> String {
    std::fs::read_to_string(Path::new(path)).expect(path)
}
