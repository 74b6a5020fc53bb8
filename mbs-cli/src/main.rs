//! The `mbs` command: runs, checks, imports, generates, simulates and differentiates multibody models, and shows the results.
//!
//! Enters: arguments and files. Leaves: text on standard output, messages on standard error, files where asked,
//! and an exit code. Only this program, the build-script door and the macro touch files; all mathematics is
//! elsewhere.

mod arguments;
mod failure;
mod files;
mod interrupt;

mod check;
mod generate;
mod gradient;
mod import;
mod new;
mod plot_file;
mod run_report;
mod shell;
mod simulate;
mod statics;
mod verify;

mod settings;

mod driven;
mod observer;
mod run;
mod start;

mod choices;
mod differentiated;
mod report;
mod report_html;
mod report_json;
mod trajectories;
mod tree;

mod csv;
#[cfg(feature = "parquet")]
mod parquet;
mod energy_balance;
mod number;
mod plot;
mod picture;
mod progress;
mod table;
mod units;

use arguments::{Arguments, Command};
use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    // Known before the rest can be read: a wrong command line is an error for programs, too.
    let json = std::env::args_os().any(|word| word == "--json");
    let command = match Arguments::try_parse() {
        Ok(arguments) => arguments.command,
        Err(error) => shell::refuse(&error, json),
    };
    let outcome = match command {
        Command::Check(arguments) => check::check(&arguments),
        Command::Generate(arguments) => generate::generate(&arguments),
        Command::Import(arguments) => import::import(&arguments),
        Command::Run(arguments) => run_report::run(&arguments),
        Command::Simulate(arguments) => simulate::simulate(&arguments),
        Command::Kinematics(arguments) => simulate::kinematics(&arguments),
        Command::Gradient(arguments) => gradient::gradient(&arguments),
        Command::Equilibrium(arguments) => statics::equilibrium(&arguments),
        Command::Modes(arguments) => statics::modes(&arguments),
        Command::Verify(arguments) => verify::verify(&arguments),
        Command::New(arguments) => new::new(&arguments),
        Command::Plot(arguments) => plot_file::plot(&arguments),
        Command::Schema => shell::schema(),
        Command::Completions(arguments) => shell::completions(&arguments),
        Command::Man(arguments) => shell::man(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(json),
    }
}
