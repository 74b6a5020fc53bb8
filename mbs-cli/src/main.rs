//! The `mbs` command: runs, checks, imports, generates, simulates and differentiates multibody models, and shows the results.
//!
//! Input: arguments and files. Output: text on standard output, messages on standard error, files where asked,
//! and an exit code. Only this program, the interface for build scripts and the macro access files; all mathematics is
//! elsewhere. A module uses only those above it.

mod arguments;

mod output;

mod session;

mod commands;

fn main() -> std::process::ExitCode {
    commands::main()
}
