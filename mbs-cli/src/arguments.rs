//! What can be written on the command line, and its help.

mod method;
mod model;
mod optimise;
mod runs;
mod tools;

pub(crate) use method::Method;
pub(crate) use model::{Check, Generate, Import};
pub(crate) use optimise::{Compare, Identify, Optimise, OptimiserName, Sweep};
pub(crate) use runs::{
    By, Common, CoordinatesName, EngineName, Equilibrium, Gradient, Kinematics, Modes, Of, Results, Run,
    Simulate, Verify,
};
pub(crate) use tools::{Completions, Man, New, Plot};

use clap::{Parser, Subcommand};
use tools::SCHEMA_HELP;

const EXIT_CODES: &str = "\
Exit codes:
  0    done
  1    the model, a file or the run has errors, or `verify` found a wrong derivative
  2    the command line is wrong, or `generate --check` found a stale file
  130  interrupted; what a run had written is kept";

const EXAMPLES: &str = "\
Examples:
  mbs run models/five_bar.yaml                 # simulate, differentiate, write five_bar.html
  mbs check models/pendulum.yaml
  mbs simulate models/five_bar.yaml
  mbs simulate models/cart_pole.yaml --case shaken --out shaken.csv
  mbs kinematics models/crank_rocker.yaml
  mbs gradient models/five_bar.yaml
  mbs optimise models/five_bar.yaml --minimise psi1 --over L_s1 --over L_s2
  mbs sweep models/five_bar.yaml --over k_1=50:200:20 --out sweep.csv
  mbs verify models/five_bar.yaml
  mbs compare models/five_bar.yaml --end 1 --report five_bar.html
  mbs equilibrium models/buggy.yaml
  mbs modes models/whipple.yaml
  mbs generate models/pendulum.yaml -o src/pendulum.rs
  mbs import robot.urdf -o robot.yaml --floating-base";

/// Multibody models: check them, simulate them, differentiate their runs, generate solvers for them, import them from robots.
#[derive(Debug, Parser)]
#[command(name = "mbs", version, about, after_help = format!("{EXAMPLES}\n\n{EXIT_CODES}"))]
pub(crate) struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Check(Check),
    Generate(Generate),
    Import(Import),
    New(New),
    Plot(Plot),
    Run(Run),
    Simulate(Simulate),
    Kinematics(Kinematics),
    Gradient(Gradient),
    Optimise(Optimise),
    Sweep(Sweep),
    Identify(Identify),
    Verify(Verify),
    Compare(Compare),
    Equilibrium(Equilibrium),
    Modes(Modes),
    /// Print the JSON Schema of model files, for completion and hover in editors.
    #[command(after_help = SCHEMA_HELP)]
    Schema,
    Completions(Completions),
    Man(Man),
}
