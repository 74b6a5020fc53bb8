//! Options of commands that make many runs: optimisation, sweeps.

use super::{By, Common, EXIT_CODES, Method};
use clap::{Args, ValueEnum};
use mbs_codegen::model::optimisation::{HistoryForm, OptimisationMethod};
use mbs_engine::sweep::{Axis, Design};
use std::path::PathBuf;

const OPTIMISE_HELP: &str = "\
Examples:
  mbs optimise models/five_bar.yaml --problem rest
  mbs optimise models/five_bar.yaml --problem stiffness --save-case best
  mbs optimise models/five_bar.yaml --minimise psi1 --over L_s1=1.7:2.7 --over L_s2=1.7:2.7
  mbs optimise models/five_bar.yaml --minimise psi3 --over k_1=20:400 --over k_2=20:400 --subject-to 'psi1<=0.4'
  mbs optimise models/cart_pole.yaml --minimise effort --over push=-20:20 --history push=spline:20 --subject-to 'drift<=0.01'

A line for every iteration goes to standard error: what is minimised, the largest violation of a constraint, the step of the scaled
unknowns, the projected gradient of the scaled problem, evaluations and time. A run that fails shortens the step. An interrupt
ends the search with the best point so far.";

/// Find better parameters: minimise objectives within bounds and under constraints.
///
/// The problem is one of the model's `optimisation`, or that of `--minimise` and `--over`. Other settings come from
/// the model's `simulation`, as for `mbs simulate`.
#[derive(Debug, Args)]
#[command(after_help = format!("{OPTIMISE_HELP}\n\n{EXIT_CODES}"))]
pub(crate) struct Optimise {
    #[command(flatten)]
    pub(crate) common: Common,
    /// One of the model's problems; not needed if it has one only.
    #[arg(long, value_name = "NAME", conflicts_with = "minimise")]
    pub(crate) problem: Option<String>,
    /// Minimise this objective, or a sum: `psi1`, `2*psi1`, `max(psi1)` of its integrand or of an output; may be given many times.
    #[arg(long, value_name = "OBJECTIVE", value_parser = weighted, allow_hyphen_values = true)]
    pub(crate) minimise: Vec<(String, f64)>,
    /// Vary this parameter: `k`, `k=LOW:HIGH`, `array`, `array[i]`; may be given many times.
    #[arg(long, value_name = "NAME=LOW:HIGH", value_parser = bounded, requires = "minimise")]
    pub(crate) over: Vec<(String, Option<f64>, Option<f64>)>,
    /// Vary the history of an input: `push=spline:20`, with `constant`, `linear` or `spline` and the number of knots; bounds stand in `--over`.
    #[arg(long, value_name = "NAME=FORM:N", value_parser = history, requires = "minimise")]
    pub(crate) history: Vec<(String, HistoryForm, usize)>,
    /// Keep an objective within a bound: `psi<=0.4`, `psi>=1`, `psi=0`, `max(psi)<=2`; may be given many times.
    #[arg(long, value_name = "BOUND", value_parser = limit, requires = "minimise")]
    pub(crate) subject_to: Vec<(String, Option<f64>, Option<f64>)>,
    /// Judge the motion that drives prescribe, that of `mbs kinematics`, and not the one under forces.
    #[arg(long)]
    pub(crate) kinematics: bool,
    /// Begin at so many points: the model's values, then points spread over the bounds.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) starts: Option<u32>,
    /// Most iterations from one start.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) max_iterations: Option<u32>,
    /// Projected gradient of the scaled problem at which the search ends.
    #[arg(long, value_name = "E")]
    pub(crate) tolerance: Option<f64>,
    /// The optimiser.
    #[arg(long, value_enum)]
    pub(crate) optimiser: Option<OptimiserName>,
    /// Write the model with the best parameters as a case of this name to a file: `-o`, or MODEL_NAME.yaml in the present directory.
    #[arg(long, value_name = "NAME")]
    pub(crate) save_case: Option<String>,
    /// The file of `--save-case`.
    #[arg(short = 'o', long = "output", value_name = "FILE", requires = "save_case")]
    pub(crate) output: Option<PathBuf>,
    /// Write a page: history, parameters and motions before and after.
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Keep every evaluation in this file, and take those that are there: goes on where a search was interrupted.
    #[arg(long, value_name = "FILE")]
    pub(crate) resume: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) method: Method,
}

/// An optimiser.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum OptimiserName {
    /// L-BFGS without constraints, SLSQP with them
    Auto,
    /// Limited-memory BFGS within bounds
    Lbfgs,
    /// Sequential least-squares programming
    Slsqp,
    /// Without derivatives, for jumps
    Cobyla,
}

impl From<OptimiserName> for OptimisationMethod {
    fn from(name: OptimiserName) -> OptimisationMethod {
        match name {
            OptimiserName::Auto => OptimisationMethod::Auto,
            OptimiserName::Lbfgs => OptimisationMethod::Lbfgs,
            OptimiserName::Slsqp => OptimisationMethod::Slsqp,
            OptimiserName::Cobyla => OptimisationMethod::Cobyla,
        }
    }
}

fn number(text: &str) -> Result<f64, String> {
    let number: f64 = text.trim().parse().map_err(|_| format!("`{text}` is not a number"))?;
    number.is_finite().then_some(number).ok_or_else(|| format!("`{text}` is not finite"))
}

fn weighted(text: &str) -> Result<(String, f64), String> {
    match text.split_once('*') {
        Some((weight, name)) => Ok((name.trim().into(), number(weight)?)),
        None => Ok((text.trim().into(), 1.0)),
    }
}

fn bounded(text: &str) -> Result<(String, Option<f64>, Option<f64>), String> {
    let Some((name, bounds)) = text.split_once('=') else { return Ok((text.trim().into(), None, None)) };
    let (low, high) = bounds.split_once(':').ok_or("write bounds as LOW:HIGH; either may be left out")?;
    let bound = |text: &str| if text.trim().is_empty() { Ok(None) } else { number(text).map(Some) };
    Ok((name.trim().into(), bound(low)?, bound(high)?))
}

fn history(text: &str) -> Result<(String, HistoryForm, usize), String> {
    let parts = text.split_once('=').and_then(|(name, rest)| Some((name.trim(), rest.split_once(':')?)));
    let parts = parts.and_then(|(name, (form, knots))| {
        let form = HistoryForm::WORDS.iter().find(|(word, _)| *word == form.trim())?.1;
        Some((name.to_string(), form, knots.trim().parse().ok().filter(|n| (1..=1000).contains(n))?))
    });
    parts.ok_or_else(|| {
        "write it as NAME=constant:N, NAME=linear:N or NAME=spline:N, with at most 1000 knots".into()
    })
}

fn limit(text: &str) -> Result<(String, Option<f64>, Option<f64>), String> {
    let parts = |sign: &str| text.split_once(sign).map(|(name, value)| (name.trim().to_string(), value));
    if let Some((name, value)) = parts("<=") {
        return Ok((name, None, Some(number(value)?)));
    }
    if let Some((name, value)) = parts(">=") {
        return Ok((name, Some(number(value)?), None));
    }
    let (name, value) = parts("=").ok_or("write it as `psi<=0.4`, `psi>=1` or `psi=0`")?;
    let value = number(value)?;
    Ok((name, Some(value), Some(value)))
}

const SWEEP_HELP: &str = "\
Examples:
  mbs sweep models/five_bar.yaml --over k_1=50:200:4 --over k_2=50:200:4 --out grid.csv
  mbs sweep models/five_bar.yaml --over k_1=50:200 --over 'm_A1~normal(1,0.05)' --samples 1000 --out samples.csv
  mbs sweep models/five_bar.yaml --over k_1=50:200 --over L_s1=2:2.4 --samples 256 --design saltelli
  mbs sweep models/five_bar.yaml --over k_1=50:200 --samples 1000 --shard 3/8 --out part_3.csv
  mbs sweep models/five_bar.yaml --over k_1=50:200 --samples 1000 --collect part_*.csv --out all.csv

What a parameter takes:
  k=10:40:20                 20 values from 10 to 40
  k=10,20,50                 these values
  k=10:40                    samples, uniform; also k~uniform(10,40), k~loguniform(10,1000)
  k~normal(450,20)           samples, with mean and standard deviation
Lists combine with each other and with every sample. The points depend on the options alone: shards are disjoint, and together
they are the whole, on any machine.

A row a run: its number, the parameters, the objectives, the outputs at the end, and why it failed, if it did.";

/// Run a model many times with other parameters, on all cores.
///
/// With `--design saltelli` or `morris`, global sensitivities of all results are computed. Other settings come from the
/// model's `simulation`, as for `mbs simulate`.
#[derive(Debug, Args)]
#[command(after_help = format!("{SWEEP_HELP}\n\n{EXIT_CODES}"))]
pub(crate) struct Sweep {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Vary this parameter; may be given many times.
    #[arg(long, value_name = "NAME=VALUES", value_parser = axis, required = true, allow_hyphen_values = true)]
    pub(crate) over: Vec<Axis>,
    /// Samples of the parameters that are no lists.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) samples: Option<u32>,
    /// How they are chosen.
    #[arg(long, value_enum, default_value_t = DesignName::Lhs)]
    pub(crate) design: DesignName,
    /// Other samples of the same kind.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Only part I of N, from 1 on.
    #[arg(long, value_name = "I/N", value_parser = shard, conflicts_with = "collect")]
    pub(crate) shard: Option<(usize, usize)>,
    /// Join these parts instead of running, and check that they are complete.
    #[arg(long, value_name = "FILES", num_args = 1..)]
    pub(crate) collect: Vec<PathBuf>,
    /// Write the rows to this CSV file, or to a `.parquet` file if built with that feature.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Go on with the rows that the CSV file has.
    #[arg(long, requires = "out", conflicts_with = "collect")]
    pub(crate) resume: bool,
    /// Write a page: scatter plots, parallel coordinates, bars of global sensitivities.
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Use so many cores; all if not given.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) threads: Option<u32>,
    #[command(flatten)]
    pub(crate) method: Method,
}

/// How samples are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DesignName {
    /// A Latin hypercube
    Lhs,
    /// Sobol's sequence
    Sobol,
    /// Independent points
    Random,
    /// For Sobol's indices: (parameters + 2) runs a sample
    Saltelli,
    /// For Morris' effects: (parameters + 1) runs a sample
    Morris,
}

impl From<DesignName> for Design {
    fn from(name: DesignName) -> Design {
        match name {
            DesignName::Lhs => Design::LatinHypercube,
            DesignName::Sobol => Design::Sobol,
            DesignName::Random => Design::Random,
            DesignName::Saltelli => Design::Saltelli,
            DesignName::Morris => Design::Morris,
        }
    }
}

fn axis(text: &str) -> Result<Axis, String> {
    Axis::parse(text).map_err(|error| error.to_string())
}

fn shard(text: &str) -> Result<(usize, usize), String> {
    let parts =
        text.split_once('/').and_then(|(i, n)| Some((i.trim().parse().ok()?, n.trim().parse().ok()?)));
    let parts: Option<(usize, usize)> = parts.filter(|(i, n)| 1 <= *i && i <= n);
    parts.ok_or_else(|| "write it as I/N with 1 <= I <= N, for example 3/8".into())
}

const IDENTIFY_HELP: &str = "\
Examples:
  mbs identify models/five_bar.yaml --measurements measured.csv --over k_1=20:400 --over m_A1=0.5:2

The file has a column `t` and columns named as those of `mbs simulate --out`; `weight` weighs all numbers of a row, `NAME.weight` those of
one column (the inverse of the standard deviation, up to a common factor). An empty cell was not measured.";

/// Find parameters from measurements, by least squares.
///
/// Shows standard deviations, correlations, and what the measurements do not determine.
#[derive(Debug, Args)]
#[command(after_help = format!("{IDENTIFY_HELP}\n\n{EXIT_CODES}"))]
pub(crate) struct Identify {
    #[command(flatten)]
    pub(crate) common: Common,
    /// The measurements: a CSV file.
    #[arg(long, value_name = "FILE")]
    pub(crate) measurements: PathBuf,
    /// Find this parameter: `k`, `k=LOW:HIGH`, `array`, `array[i]`; may be given many times.
    #[arg(long, value_name = "NAME=LOW:HIGH", value_parser = bounded, required = true)]
    pub(crate) over: Vec<(String, Option<f64>, Option<f64>)>,
    /// Most iterations.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) max_iterations: u32,
    #[command(flatten)]
    pub(crate) method: Method,
}

const COMPARE_HELP: &str = "\
Examples:
  mbs compare models/five_bar.yaml --end 1
  mbs compare models/five_bar.yaml --steps 1e-2,5e-3,2e-3,1e-3 --accuracy 1e-6 --report five_bar.html
  mbs compare models/double_pendulum.yaml --json | jq .recommended

A row is a way to run the model: coordinates, formulation, integrator, and a step or a tolerance. Its errors are those of the state at the
end, of the objectives and of their gradient, relative, against a finer run by a method of high order, whose own error is shown. Its
times are wall times of the run as `mbs simulate` makes it, and of the one with its gradient as `mbs gradient` does, by the direct
method, each the best of up to three. Ways that fail are rows with their reason. Where accelerations of an open tree come from the
articulated-body recursion, the way says `recursive`; otherwise from its mass matrix.";

/// Run a model in all ways that it admits, and show which one is quickest for an accuracy.
#[derive(Debug, Args)]
#[command(after_help = format!("{COMPARE_HELP}\n\n{EXIT_CODES}"))]
pub(crate) struct Compare {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(flatten)]
    pub(crate) by: By,
    /// Steps of methods of fixed steps, s, separated by commas; 4, 2, 1 and 1/2 times that of the model if not given.
    #[arg(long, value_name = "STEPS", value_delimiter = ',')]
    pub(crate) steps: Vec<f64>,
    /// Tolerances of methods with step control, separated by commas.
    #[arg(long, value_name = "TOLERANCES", value_delimiter = ',', default_values_t = [1e-4, 1e-6, 1e-8, 1e-10])]
    pub(crate) tolerances: Vec<f64>,
    /// The largest relative error that the recommended way may have.
    #[arg(long, value_name = "E", default_value_t = 1e-4)]
    pub(crate) accuracy: f64,
    /// What a run may take, s; what takes longer is a row with that reason.
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    pub(crate) limit: f64,
    /// What all runs together may take, s; those expected to be quick come first, and those for which no time is left are left out.
    #[arg(long, value_name = "SECONDS", default_value_t = 120.0)]
    pub(crate) budget: f64,
    /// Write a page with the curves of error over time to this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
}
