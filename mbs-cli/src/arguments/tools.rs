//! Options of commands that have no model, or its results only: editors, shells, new crates, plots.

use super::EXIT_CODES;
use clap::Args;
use std::path::PathBuf;

pub(super) const SCHEMA_HELP: &str = "\
Examples:
  mbs schema > mbs.schema.json

Editors with a YAML language server take it from the first line of a model:
  # yaml-language-server: $schema=mbs.schema.json";

/// Print a script that completes commands and options in a shell.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  mbs completions bash > ~/.local/share/bash-completion/completions/mbs\n  mbs completions fish > ~/.config/fish/completions/mbs.fish"
)]
pub(crate) struct Completions {
    /// The shell.
    pub(crate) shell: clap_complete::Shell,
}

/// Print the manual page.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  mbs man | man -l -\n  mbs man -o ~/.local/share/man/man1     # of every command"
)]
pub(crate) struct Man {
    /// Write the pages of all commands into this directory instead.
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
}

const NEW_HELP: &str = "\
Examples:
  mbs new my_robot
  mbs new my_robot --crates ~/src/mbs

The crate has a model, `model_solver!` that writes its solver, a program and a test, and the profiles that generated code needs. It
depends on the crates by their place, since they are not published.";

/// Create a new crate.
#[derive(Debug, Args)]
#[command(after_help = format!("{NEW_HELP}\n\n{EXIT_CODES}"))]
pub(crate) struct New {
    /// The new directory, named as the crate.
    #[arg(value_name = "NAME")]
    pub(crate) path: PathBuf,
    /// Where the source of mbs is; where this command was built if not given.
    #[arg(long, value_name = "DIR")]
    pub(crate) crates: Option<PathBuf>,
}

const PLOT_HELP: &str = "\
Examples:
  mbs simulate models/five_bar.yaml --out five_bar.csv
  mbs plot five_bar.csv                                        # in the terminal
  mbs plot five_bar.csv -o five_bar.svg
  mbs plot five_bar.csv --columns A.angle,B.angle --together -o angles.png
  mbs plot five_bar.csv --columns 'energy.*' -o energy.svg";

/// Draw results: in the terminal, or as a picture.
///
/// The first column is the horizontal axis.
#[derive(Debug, Args)]
#[command(after_help = format!("{PLOT_HELP}\n\n{EXIT_CODES}"))]
pub(crate) struct Plot {
    /// A CSV file of `simulate`, `kinematics`, `run` or `gradient`; `-` is standard input.
    #[arg(value_name = "RESULT")]
    pub(crate) result: PathBuf,
    /// The picture, `.svg` or `.png`; in the terminal if not given.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// These columns: names separated by commas, `*` for any letters. The first sixteen if not given.
    #[arg(short, long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) columns: Option<Vec<String>>,
    /// All curves in one frame.
    #[arg(long, requires = "output")]
    pub(crate) together: bool,
    /// Width of the picture, pixels.
    #[arg(long, value_name = "N", default_value_t = 960, value_parser = clap::value_parser!(u32).range(200..=8000))]
    pub(crate) width: u32,
    /// Height of a frame, pixels.
    #[arg(long, value_name = "N", default_value_t = 240, value_parser = clap::value_parser!(u32).range(80..=4000))]
    pub(crate) height: u32,
}
