//! Failures of commands and their exit codes.

use super::files::{self, Text};
use crate::output::json::pretty;
use crate::output::json::problems;
use mbs_codegen::diagnostics::Diagnostics;
use serde_json::{Value, json};
use std::process::ExitCode;

/// The whole message, ready to be read, and the exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    code: u8,
    /// The object for programs, if it says more than the message.
    object: Option<Value>,
}

impl Failure {
    fn new(code: u8, message: impl Into<String>) -> Failure {
        Failure { message: message.into(), code, object: None }
    }

    /// The model, a file or the run has errors.
    pub(crate) fn error(message: impl Into<String>) -> Failure {
        Failure::new(1, message)
    }

    /// The command line is wrong, or a generated file is stale.
    pub(crate) fn usage(message: impl Into<String>) -> Failure {
        Failure::new(2, message)
    }

    /// The user stopped it: 128 and the signal's number, as shells have it.
    pub(crate) fn interrupted(message: impl Into<String>) -> Failure {
        Failure::new(130, message)
    }

    /// Errors that have been said already.
    pub(crate) fn said() -> Failure {
        Failure::error("")
    }

    /// Problems of a file: to people they are shown at once, with the lines they are in.
    pub(crate) fn of_file(file: &Text, diagnostics: &Diagnostics) -> Failure {
        files::complain(&diagnostics.render(&file.name, &file.text));
        let object = json!({"error": "the model has problems", "file": file.name, "valid": false, "problems": problems(diagnostics)});
        Failure { object: Some(object), ..Failure::said() }
    }

    /// With more words.
    pub(crate) fn and(mut self, more: &str) -> Failure {
        self.message.push_str(more);
        self
    }

    /// What is wrong.
    pub(crate) fn message(self) -> String {
        self.message
    }

    /// Says it on standard error, and to programs as an object, if the command has not printed one.
    pub(crate) fn report(self, json: bool) -> ExitCode {
        let message = self.message.trim_end();
        if !message.is_empty() {
            files::complain(&format!("error: {message}\n"));
        }
        if json && !files::has_printed() {
            let object = self.object.unwrap_or_else(|| json!({"error": message}));
            // If that fails, nothing can be reported.
            let _ = files::print(&(pretty(&object) + "\n"));
        }
        ExitCode::from(self.code)
    }
}
