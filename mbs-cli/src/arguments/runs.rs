//! Options of commands that evaluate a model: runs, gradients, statics.

use super::method::METHOD;
use super::{EXIT_CODES, Method};
use clap::{Args, ValueEnum};
use mbs_codegen::model::Coordinates;
use mbs_engine::{Engine, Fusing};
use std::path::PathBuf;

/// What all runs have in common.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// The model file.
    pub(crate) model: PathBuf,
    /// Use this case of the model.
    #[arg(long, value_name = "NAME")]
    pub(crate) case: Option<String>,
    /// Set an independent parameter, `name` or `name[i]`; may be given many times.
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment)]
    pub(crate) set: Vec<(String, f64)>,
    /// In which coordinates equations are written; those of the file if not given.
    #[arg(long, value_enum)]
    pub(crate) coordinates: Option<CoordinatesName>,
    /// Last time, s.
    #[arg(long, value_name = "T", allow_negative_numbers = true)]
    pub(crate) end: Option<f64>,
    /// Step, s; with step control the first one.
    #[arg(long, value_name = "H", allow_negative_numbers = true)]
    pub(crate) step: Option<f64>,
    /// How equations are evaluated; results have the same bits, but for `fused`.
    #[arg(long, value_enum, default_value_t = EngineName::Auto)]
    pub(crate) engine: EngineName,
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Kinds of coordinates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CoordinatesName {
    /// Of the joints of a spanning tree
    Joint,
    /// Of every body, with every joint as constraints
    Absolute,
}

impl From<CoordinatesName> for Coordinates {
    fn from(name: CoordinatesName) -> Coordinates {
        match name {
            CoordinatesName::Joint => Coordinates::Joint,
            CoordinatesName::Absolute => Coordinates::Absolute,
        }
    }
}

/// How equations are evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineName {
    /// As machine code where it pays
    Auto,
    /// As machine code
    Jit,
    /// By the interpreter
    Tape,
    /// As machine code that rounds a product and the sum it goes into once; other bits
    Fused,
}

impl From<EngineName> for (Engine, Fusing) {
    fn from(name: EngineName) -> (Engine, Fusing) {
        match name {
            EngineName::Auto => (Engine::Auto, Fusing::AsCompiled),
            EngineName::Jit => (Engine::Jit, Fusing::AsCompiled),
            EngineName::Tape => (Engine::Tape, Fusing::AsCompiled),
            EngineName::Fused => (Engine::Jit, Fusing::Fused),
        }
    }
}

/// Which model, where nothing runs.
#[derive(Debug, Args)]
pub(crate) struct Of {
    /// The model file.
    pub(crate) model: PathBuf,
    /// Use this case of the model.
    #[arg(long, value_name = "NAME")]
    pub(crate) case: Option<String>,
    /// Set an independent parameter, `name` or `name[i]`; may be given many times.
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment)]
    pub(crate) set: Vec<(String, f64)>,
    /// In which coordinates equations are written; those of the file if not given.
    #[arg(long, value_enum)]
    pub(crate) coordinates: Option<CoordinatesName>,
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What simulation and kinematic analysis write.
#[derive(Debug, Args)]
pub(crate) struct Results {
    /// Time between results, s; a multiple of a fixed step.
    #[arg(long, value_name = "DT", allow_negative_numbers = true)]
    pub(crate) output_step: Option<f64>,
    /// Write the results to this CSV file, or to a `.parquet` file if built with that feature; `-` is standard output, the report
    /// then goes to standard error.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Write units into the heads of its columns: `A.angle [rad]`.
    #[arg(long, requires = "out")]
    pub(crate) units: bool,
}

const SIMULATE_HELP: &str = "\
Examples:
  mbs simulate models/five_bar.yaml
  mbs simulate models/five_bar.yaml --set k_1=200 --end 20 --reactions --out five_bar.csv
  mbs simulate models/five_bar.yaml --integrator generalized_alpha --spectral-radius 0.6 --step 5e-3
  mbs simulate models/five_bar.yaml --integrator dormand_prince --rtol 1e-10 --json
  mbs simulate models/cart_pole.yaml --case shaken --integrator rk4 --step 1e-4

What goes together, for a model with closed loops or constraints:
  ali3p             trapezoidal, newmark, generalized_alpha
  index1, penalty   these, with violations damped critically at 0.1/step rad/s;
                    rk4, dormand_prince, dop853, sdirk4, projected onto the constraints after each step
  matrix_r          every integrator, in independent coordinates
A model without them takes every integrator, and its formulation means nothing.

Columns of the CSV file, all in SI units and radians:
  t
  coordinates and velocities, as `joint.coordinate`; inputs and outputs, as the model names them
  energy.kinetic, energy.potential, energy.power (of the forces without a potential)
  with closed loops or constraints: energy.drives (power of prescribed motions), lambda.EQUATION (multipliers)
  with --reactions: reaction.JOINT.fx fy fz tx ty tz (what the parent puts on the child, at the child's
  joint point, in world axes)";

/// Simulate a model and show the result.
///
/// Settings that are not given come from the `simulation` of the model or of the case, if they are compatible with the
/// given ones.
#[derive(Debug, Args)]
#[command(after_help = format!("{SIMULATE_HELP}\n\n{EXIT_CODES}"))]
pub(crate) struct Simulate {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(flatten)]
    pub(crate) results: Results,
    /// Also write force and torque of every joint.
    #[arg(long)]
    pub(crate) reactions: bool,
    #[command(flatten)]
    pub(crate) method: Method,
    /// Accelerations by the articulated-body recursion instead of the mass matrix; explicit integrators of open trees.
    #[arg(long, help_heading = METHOD)]
    pub(crate) recursive: bool,
}

const RUN_HELP: &str = "\
Examples:
  mbs run models/five_bar.yaml
  mbs run models/five_bar.yaml --set k_1=200 --end 20 -o stiff.html
  mbs run models/five_bar.yaml --sensitivity k_1,m_A1 --out five_bar.csv
  mbs run models/human43.yaml --end 2 --output-step 0.01

The page opens from disk in any browser and asks for nothing over the network: the mechanism in motion, coordinates, outputs,
energy and violations of constraints over time, objectives and their gradient, what the run took. If the run fails or is
interrupted, the page shows what there is; if not even one step was made, a page that is there is left as it was.";

/// Simulate a model, differentiate its objectives, and write a page that shows it all.
///
/// The gradient is computed if the model lists `sensitivity`, or with `--sensitivity`. Other settings come
/// from the model's `simulation`, as for `mbs simulate`.
#[derive(Debug, Args)]
#[command(after_help = format!("{RUN_HELP}\n\n{EXIT_CODES}"))]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) common: Common,
    /// The page; NAME.html in the present directory if not given, after the model's `name`, not its file's.
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) results: Results,
    #[command(flatten)]
    pub(crate) by: By,
    /// Leave out the gradient.
    #[arg(long, conflicts_with = "sensitivity")]
    pub(crate) no_gradient: bool,
    /// Also write force and torque of every joint.
    #[arg(long)]
    pub(crate) reactions: bool,
    #[command(flatten)]
    pub(crate) method: Method,
}

const EQUILIBRIUM_HELP: &str = "\
Examples:
  mbs equilibrium models/buggy.yaml
  mbs equilibrium models/buggy.yaml --set m_c=600 --json | jq .coordinates

Constraints are those of the time a run begins at. Directions without stiffness are left where the start puts them.";

/// Find a position in which the model stays at rest.
///
/// The search starts from the initial state and uses Newton's method with shortened steps where necessary. If it finds no
/// equilibrium, it names the forces that are not balanced.
#[derive(Debug, Args)]
#[command(after_help = format!("{EQUILIBRIUM_HELP}\n\n{EXIT_CODES}"))]
pub(crate) struct Equilibrium {
    #[command(flatten)]
    pub(crate) of: Of,
}

const MODES_HELP: &str = "\
Examples:
  mbs modes models/whipple.yaml --set speed=4
  mbs modes models/buggy.yaml --equilibrium --json | jq .modes

Small changes that keep all constraints, nonholonomic ones too, go as exp(lambda t). A shape lists the largest changes of
coordinates, with their phases.";

/// Show eigenvalues and mode shapes about the start, or about the equilibrium.
#[derive(Debug, Args)]
#[command(after_help = format!("{MODES_HELP}\n\n{EXIT_CODES}"))]
pub(crate) struct Modes {
    #[command(flatten)]
    pub(crate) of: Of,
    /// About the equilibrium, at rest, and not about the motion the model starts with.
    #[arg(long)]
    pub(crate) equilibrium: bool,
}

const KINEMATICS_HELP: &str = "\
Examples:
  mbs kinematics models/crank_rocker.yaml --output-step 0.01 --out rocker.csv
  mbs kinematics models/suspension.yaml --gradient
  mbs kinematics models/suspension.yaml --sensitivity upper_z --trajectories camber.csv

Columns of the CSV file: t, coordinates, velocities, inputs and outputs, as for `mbs simulate`. That of `--trajectories`: t,
d(COORDINATE)/d(NAME), d(rate(COORDINATE))/d(NAME), d(acceleration(COORDINATE))/d(NAME), and for every objective integrand(OBJECTIVE),
d(integrand(OBJECTIVE))/d(NAME): what changes where the parameter NAME does, at every instant of the motion.

The gradient is exact: at every instant that of the constraints and their rates. Masses and forces count only if an objective names
multipliers or reactions.";

/// Move a fully driven mechanism through its positions, without forces.
///
/// Constraints that depend on time (`motion` and others) must leave no degree of freedom. Positions, velocities and
/// accelerations follow from them at every step; masses and forces do not count.
#[derive(Debug, Args)]
#[command(after_help = format!("{KINEMATICS_HELP}\n\n{EXIT_CODES}"))]
pub(crate) struct Kinematics {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(flatten)]
    pub(crate) results: Results,
    /// Objectives of the motion and their gradient, by the `sensitivity` of the model; the following options imply it.
    #[arg(long, conflicts_with = "out")]
    pub(crate) gradient: bool,
    #[command(flatten)]
    pub(crate) by: By,
    /// Only these objectives: names separated by commas.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with = "out")]
    pub(crate) objectives: Option<Vec<String>>,
    /// Write derivatives of motion and integrands over time to this CSV file; `-` is standard output.
    #[arg(long, value_name = "FILE", conflicts_with = "out")]
    pub(crate) trajectories: Option<PathBuf>,
    /// Differentiate by a column for each parameter, or by one for each objective.
    #[arg(long = "method", value_enum, value_name = "METHOD", conflicts_with = "out")]
    pub(crate) by_method: Option<GradientName>,
}

impl Kinematics {
    /// Whether a gradient is asked for.
    pub(crate) fn differentiates(&self) -> bool {
        let Kinematics { gradient, by, objectives, trajectories, by_method, .. } = self;
        *gradient
            || by.sensitivity.is_some()
            || objectives.is_some()
            || trajectories.is_some()
            || by_method.is_some()
    }
}

const GRADIENT_HELP: &str = "\
Examples:
  mbs gradient models/five_bar.yaml
  mbs gradient models/five_bar.yaml --json | jq .objectives.psi1.gradient.L_s1
  mbs gradient models/five_bar.yaml --sensitivity k_1,m_A1 --step 1e-4
  mbs gradient models/five_bar.yaml --trajectories five_bar.csv --output-step 0.01
  mbs gradient models/buggy.yaml --case double_lane_change --by-input rack --input-history rack.csv

The gradient is that of the discrete solution: of the numbers that this run computes, with its steps. The last column of the table
is (p/psi) dpsi/dp: by how many percent the objective changes where the parameter p does by one. A derivative by an input is one by a constant
that is added to it.

Columns of the CSV file, all in SI units and radians, NAME a parameter, an element of an array or an input:
  t
  d(COORDINATE)/d(NAME), d(rate(COORDINATE))/d(NAME), d(acceleration(COORDINATE))/d(NAME)
  with closed loops or constraints: d(lambda.EQUATION)/d(NAME) (multipliers)";

/// Objectives of a run and their gradient.
///
/// The model lists its `objectives` and, under `sensitivity`, what it is differentiated by. Other settings come
/// from the model's `simulation`, as for `mbs simulate`.
#[derive(Debug, Args)]
#[command(after_help = format!("{GRADIENT_HELP}\n\n{EXIT_CODES}"))]
pub(crate) struct Gradient {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(flatten)]
    pub(crate) by: By,
    /// Only these objectives: names separated by commas.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) objectives: Option<Vec<String>>,
    /// Write derivatives of the state over time to this CSV file; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub(crate) trajectories: Option<PathBuf>,
    /// Time between rows of that file, s; a multiple of a fixed step.
    #[arg(long, value_name = "DT", allow_negative_numbers = true, requires = "trajectories")]
    pub(crate) output_step: Option<f64>,
    /// Differentiate forward, by a column for each parameter, or backward, by one for each objective.
    #[arg(long = "method", value_enum, value_name = "METHOD")]
    pub(crate) by_method: Option<GradientName>,
    /// Memory of the adjoint in bytes, with suffix K, M or G; 1G if not given.
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    pub(crate) memory: Option<usize>,
    /// Differentiate by the value of these inputs at every step, by the adjoint: names separated by commas.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) by_input: Vec<String>,
    /// Write those derivatives over time to this CSV file, which `mbs plot` shows; `-` is standard output.
    #[arg(long, value_name = "FILE", requires = "by_input")]
    pub(crate) input_history: Option<PathBuf>,
    /// Differentiate by the time at which the run ends, too.
    #[arg(long)]
    pub(crate) by_end_time: bool,
    /// Second derivatives: the Hessian of each objective, for few parameters; with `--along`, its product with that direction.
    #[arg(long)]
    pub(crate) hessian: bool,
    /// Change of objectives and of the last state along a direction among the parameters: the Jacobian–vector product; may be given many times.
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment)]
    pub(crate) along: Vec<(String, f64)>,
    /// Time of the state that `--along` and `--weight` speak of, s: that of a step; the end if absent.
    #[arg(long, value_name = "TIME")]
    pub(crate) state_at: Option<f64>,
    /// Accelerations by the articulated-body recursion (fully recursive) instead of the mass matrix (semi-recursive); explicit
    /// integrators of open trees.
    #[arg(long, help_heading = METHOD)]
    pub(crate) recursive: bool,
    /// Gradient of a weighted sum of objectives and of coordinates `NAME` and rates `rate(NAME)` at the end: the vector–Jacobian product; may be given many times.
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment)]
    pub(crate) weight: Vec<(String, f64)>,
    #[command(flatten)]
    pub(crate) method: Method,
}

/// How a gradient is computed.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum GradientName {
    /// Forward along the run
    Direct,
    /// Backward over the run
    Adjoint,
    /// Backward by the adjoint of the continuous equations of ALI3-P, or of matrix R with the trapezoidal rule, for comparison
    #[value(name = "continuous_adjoint")]
    ContinuousAdjoint,
    /// Whichever is expected to be quicker
    Auto,
}

impl From<GradientName> for mbs_codegen::model::GradientMethod {
    fn from(name: GradientName) -> mbs_codegen::model::GradientMethod {
        match name {
            GradientName::Direct => mbs_codegen::model::GradientMethod::Direct,
            GradientName::Adjoint => mbs_codegen::model::GradientMethod::Adjoint,
            GradientName::ContinuousAdjoint => mbs_codegen::model::GradientMethod::ContinuousAdjoint,
            GradientName::Auto => mbs_codegen::model::GradientMethod::Auto,
        }
    }
}

/// Bytes from `64M` and the like.
fn memory(text: &str) -> Result<usize, String> {
    let (digits, factor) = match text.char_indices().next_back() {
        Some((at, 'k' | 'K')) => (&text[..at], 1 << 10),
        Some((at, 'm' | 'M')) => (&text[..at], 1 << 20),
        Some((at, 'g' | 'G')) => (&text[..at], 1 << 30),
        _ => (text, 1_usize),
    };
    let number = digits.parse::<usize>().ok().and_then(|number| number.checked_mul(factor));
    number.filter(|bytes| *bytes > 0).ok_or_else(|| "a size is a positive number, for example 64M".into())
}

const VERIFY_HELP: &str = "\
Examples:
  mbs verify models/five_bar.yaml
  mbs verify models/five_bar.yaml --end 0.5                    # a shorter run, sooner done
  mbs verify models/five_bar.yaml --sensitivity k_1,L_A1 --json
  mbs verify models/five_bar.yaml --formulation index1 --differences

Two things are checked, independently of the code that computes derivatives:
  every emitted derivative, at the start, along the run and beside it, against complex steps of the
  functions it is the derivative of; tolerance 1e-8
  the gradient of the whole run, and the derivatives of its last state, against complex steps of whole runs without
  derivatives, iterated to rounding; tolerance 1e-7. Where complex runs fail, or with --differences, against differences of real
  runs, extrapolated; tolerance 1e-6, or what they are known to
Errors are relative to the largest entry beside which an entry counts: see docs/gradients.md.";

/// Check all derivatives of a model, and the gradient of a run, against independent ones.
///
/// The run is that of `mbs gradient`. Exits with 1 if an error is not allowed.
#[derive(Debug, Args)]
#[command(after_help = format!("{VERIFY_HELP}\n\n{EXIT_CODES}"))]
pub(crate) struct Verify {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(flatten)]
    pub(crate) by: By,
    /// Compare the gradient with differences of real runs, not with complex steps.
    #[arg(long)]
    pub(crate) differences: bool,
    /// Check the gradient of the motion that drives prescribe, that of `mbs kinematics --gradient`.
    #[arg(long, conflicts_with_all = ["differences", "against"])]
    pub(crate) kinematics: bool,
    /// Instead, compare objectives and gradient of the run with those in other coordinates.
    #[arg(long, value_enum, value_name = "COORDINATES", conflicts_with = "differences")]
    pub(crate) against: Option<CoordinatesName>,
    #[command(flatten)]
    pub(crate) method: Method,
}

/// What a model is differentiated by.
#[derive(Debug, Args)]
pub(crate) struct By {
    /// Differentiate by these instead of the model's list: parameters, `name[i]` and inputs, separated by commas.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) sensitivity: Option<Vec<String>>,
}

fn assignment(text: &str) -> Result<(String, f64), String> {
    let (name, value) = text.split_once('=').ok_or("write it as NAME=VALUE")?;
    let number = value.trim().parse().map_err(|_| format!("`{value}` is not a number"))?;
    Ok((name.trim().into(), number))
}
