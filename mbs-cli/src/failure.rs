//! Why a command did not do what it was asked for, and the exit code that says so.

use std::process::ExitCode;

/// The whole message, ready to be read, and the exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    code: u8,
}

impl Failure {
    /// The model, a file or the run has errors.
    pub(crate) fn error(message: impl Into<String>) -> Failure {
        Failure { message: message.into(), code: 1 }
    }

    /// The command line is wrong, or a generated file is stale.
    pub(crate) fn usage(message: impl Into<String>) -> Failure {
        Failure { message: message.into(), code: 2 }
    }

    /// The user stopped it: 128 and the signal's number, as shells have it.
    pub(crate) fn interrupted(message: impl Into<String>) -> Failure {
        Failure { message: message.into(), code: 130 }
    }

    /// Errors that have been said already.
    pub(crate) fn said() -> Failure {
        Failure::error("")
    }

    /// What is wrong.
    pub(crate) fn message(self) -> String {
        self.message
    }

    /// Says it on standard error.
    pub(crate) fn report(self) -> ExitCode {
        if !self.message.is_empty() {
            crate::files::complain(&format!("error: {}\n", self.message.trim_end()));
        }
        ExitCode::from(self.code)
    }
}
