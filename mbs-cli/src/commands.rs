//! The commands: each parses its arguments, calls the engine and shows the result.

mod check;
mod compare;
mod generate;
mod gradient;
mod identify;
mod import;
mod new;
mod optimise;
mod plot;
mod run;
mod shell;
mod simulate;
mod statics;
mod sweep;
mod verify;

use crate::arguments::{Arguments, Command};
use crate::session::failure::Failure;
use clap::Parser;
use std::process::ExitCode;

/// Does what the command line says.
pub(crate) fn main() -> ExitCode {
    // Known before the rest can be read: a wrong command line is an error for programs, too.
    let json = std::env::args_os().any(|word| word == "--json");
    let command = match Arguments::try_parse() {
        Ok(arguments) => arguments.command,
        Err(error) => shell::refuse(&error, json),
    };
    match execute(command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(json),
    }
}

fn execute(command: Command) -> Result<(), Failure> {
    match command {
        Command::Check(arguments) => check::check(&arguments),
        Command::Generate(arguments) => generate::generate(&arguments),
        Command::Import(arguments) => import::import(&arguments),
        Command::Run(arguments) => run::run(&arguments),
        Command::Simulate(arguments) => simulate::simulate(&arguments),
        Command::Kinematics(arguments) => simulate::kinematics(&arguments),
        Command::Gradient(arguments) => gradient::gradient(&arguments),
        Command::Optimise(arguments) => optimise::optimise(&arguments),
        Command::Sweep(arguments) => sweep::sweep(&arguments),
        Command::Identify(arguments) => identify::identify(&arguments),
        Command::Equilibrium(arguments) => statics::equilibrium(&arguments),
        Command::Modes(arguments) => statics::modes(&arguments),
        Command::Verify(arguments) => verify::verify(&arguments),
        Command::Compare(arguments) => compare::compare(&arguments),
        Command::New(arguments) => new::new(&arguments),
        Command::Plot(arguments) => plot::plot(&arguments),
        Command::Schema => shell::schema(),
        Command::Completions(arguments) => shell::completions(&arguments),
        Command::Man(arguments) => shell::man(&arguments),
    }
}
