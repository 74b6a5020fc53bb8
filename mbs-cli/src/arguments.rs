//! What can be written on the command line, and its help.

use clap::{Args, Parser, Subcommand, ValueEnum};
use mbs_codegen::diagnostics::nearest;
use mbs_codegen::kinematics::ReferencePoint;
use mbs_codegen::model;
use mbs_codegen::program::{BundleKind, Pairs};
use std::path::PathBuf;

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
  mbs verify models/five_bar.yaml
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
    Verify(Verify),
    Equilibrium(Equilibrium),
    Modes(Modes),
    /// Print the JSON Schema of model files, for completion and hover in editors.
    #[command(after_help = SCHEMA_HELP)]
    Schema,
    Completions(Completions),
    Man(Man),
}

const SCHEMA_HELP: &str = "\
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

/// Make a crate to begin with.
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

const CHECK_HELP: &str = "\
Examples:
  mbs check models/arm7.yaml
  mbs check models/arm7.yaml --case heavy
  mbs check models/human43.yaml --tree
  mbs check models/arm7.yaml --json | jq .degrees_of_freedom";

/// Read a model, show every problem in it, or what it is made of.
///
/// Problems go to standard error, each with file, line and column. Of a model without errors the summary
/// shows bodies, joints, parameters, inputs, outputs, cases, and what each bundle of equations costs.
#[derive(Debug, Args)]
#[command(after_help = format!("{CHECK_HELP}\n\n{EXIT_CODES}"))]
pub(crate) struct Check {
    /// The model file.
    pub(crate) model: PathBuf,
    /// Under one of the model's cases.
    #[arg(long, value_name = "NAME")]
    pub(crate) case: Option<String>,
    /// Draw the tree instead: its branches with their joints, and which of them the mass matrix couples.
    #[arg(long, conflicts_with = "json")]
    pub(crate) tree: bool,
    /// Print one JSON object instead of text, also for problems.
    #[arg(long)]
    pub(crate) json: bool,
}

const GENERATE_HELP: &str = "\
Examples:
  mbs generate models/pendulum.yaml                         # to standard output
  mbs generate models/pendulum.yaml -o src/pendulum.rs
  mbs generate models/*.yaml -o src/generated/              # one file a model
  mbs generate models/arm7.yaml --bundles mass_matrix,energy --freeze
  mbs generate models/*.yaml -o src/generated/ --check      # in continuous integration

The crate that holds the module needs `mbs-runtime` among its dependencies.";

/// Write a model's solver as a Rust module.
#[derive(Debug, Args)]
#[command(after_help = format!("{GENERATE_HELP}\n\n{EXIT_CODES}"))]
pub(crate) struct Generate {
    /// The model files.
    #[arg(required = true, value_name = "MODEL")]
    pub(crate) models: Vec<PathBuf>,
    /// Where to write: a file, or a directory (then one file `MODULE.rs` a model). Standard output if not given.
    #[arg(short, long, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,
    /// Parameters, start values and inputs of this case become the defaults.
    #[arg(long, value_name = "NAME")]
    pub(crate) case: Option<String>,
    /// Make parameters constants: the smallest code, and nothing to set.
    #[arg(long)]
    pub(crate) freeze: bool,
    /// Where velocities and forces of bodies are referred to.
    #[arg(long, value_enum, default_value_t = Reference::Origin)]
    pub(crate) reference: Reference,
    /// Functions for this many samples at once beside the others, in the module `batch`.
    #[arg(long, value_name = "SAMPLES", value_parser = clap::value_parser!(u8).range(1..=16))]
    pub(crate) lanes: Option<u8>,
    /// Entries for pairs of joints: flat code, loops over tables, or whichever is quicker.
    #[arg(long, value_enum, default_value_t = PairsOption::Auto)]
    pub(crate) pairs: PairsOption,
    /// Which bundles of equations: names separated by commas, `standard` or `all`.
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        value_parser = bundles,
        default_value = "standard",
        long_help = bundles_help()
    )]
    pub(crate) bundles: Vec<Bundles>,
    /// Name of the module instead of the model's own.
    #[arg(long, value_name = "NAME")]
    pub(crate) module: Option<String>,
    /// Write nothing; fail if what is there differs from what would be written.
    #[arg(long, requires = "output")]
    pub(crate) check: bool,
}

const IMPORT_HELP: &str = "\
Examples:
  mbs import ur5.urdf -o ur5.yaml
  mbs import anymal.urdf -o anymal.yaml --floating-base
  mbs import four_bar.urdf --loop close=revolute:coupler@0.4,0,0:rocker@0.3,0,0:0,0,1

A loop is a joint NAME=TYPE:PARENT:CHILD[:AXIS] beyond the tree that URDF allows:
  TYPE           fixed, revolute, prismatic, cylindrical, spherical, planar
  PARENT, CHILD  LINK, LINK@X,Y,Z or LINK@X,Y,Z,ROLL,PITCH,YAW: the joint's frame on the link, in m and rad.
                 The two frames coincide where the joint is at zero
  AXIS           X,Y,Z in these frames; 1,0,0 if not given

Links that are fixed to each other become one body; the frames of merged links stay as points and vectors. Limits
become descriptions, damping and friction forces, mimicking joints couplings. What is skipped is listed.";

/// Write a robot in URDF as a model file.
///
/// Problems go to standard error, each with file, line and column. xacro files must be expanded first.
#[derive(Debug, Args)]
#[command(after_help = format!("{IMPORT_HELP}\n\n{EXIT_CODES}"))]
pub(crate) struct Import {
    /// The URDF file.
    #[arg(value_name = "ROBOT")]
    pub(crate) robot: PathBuf,
    /// The model file to write. Standard output if not given.
    #[arg(short, long, value_name = "MODEL")]
    pub(crate) output: Option<PathBuf>,
    /// Let the root link float; otherwise it is part of ground.
    #[arg(long)]
    pub(crate) floating_base: bool,
    /// Close a loop by one more joint; may be given many times.
    #[arg(long = "loop", value_name = "NAME=TYPE:PARENT:CHILD[:AXIS]")]
    pub(crate) loops: Vec<mbs_urdf::Loop>,
    /// Take angles this near to a multiple of π/2 for it, rad; files write π/2 with a few digits.
    #[arg(long, value_name = "RAD", default_value_t = 1e-11, value_parser = tolerance)]
    pub(crate) snap: f64,
    /// Leave out damping and friction of joints.
    #[arg(long)]
    pub(crate) no_friction: bool,
    /// Let joints that mimic others move by themselves.
    #[arg(long)]
    pub(crate) no_mimic: bool,
    /// Print one JSON object instead of text, also for problems.
    #[arg(long, requires = "output")]
    pub(crate) json: bool,
}

fn tolerance(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(x) if (0.0..=0.1).contains(&x) => Ok(x),
        _ => Err(format!("`{text}` is not an angle from 0 to 0.1")),
    }
}

/// Where velocities and forces of bodies are referred to.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Reference {
    /// The world's origin
    Origin,
    /// Each body's centre of mass
    Com,
}

impl From<Reference> for ReferencePoint {
    fn from(reference: Reference) -> ReferencePoint {
        match reference {
            Reference::Origin => ReferencePoint::Origin,
            Reference::Com => ReferencePoint::CentreOfMass,
        }
    }
}

/// How entries for pairs of joints are computed.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum PairsOption {
    /// Whichever is quicker
    Auto,
    /// Flat code
    Flat,
    /// Loops over constant tables
    Rolled,
}

impl From<PairsOption> for Pairs {
    fn from(pairs: PairsOption) -> Pairs {
        match pairs {
            PairsOption::Auto => Pairs::Auto,
            PairsOption::Flat => Pairs::Flat,
            PairsOption::Rolled => Pairs::Rolled,
        }
    }
}

/// One entry of `--bundles`.
#[derive(Clone, Debug)]
pub(crate) struct Bundles(pub(crate) Vec<BundleKind>);

fn bundles(name: &str) -> Result<Bundles, String> {
    match name {
        "all" => Ok(Bundles(BundleKind::ALL.to_vec())),
        "standard" => Ok(Bundles(BundleKind::STANDARD.to_vec())),
        name => match BundleKind::from_name(name) {
            Some(kind) => Ok(Bundles(vec![kind])),
            None => {
                let names = BundleKind::ALL.map(BundleKind::name);
                Err(match nearest(name, names) {
                    Some(near) => format!("there is no bundle `{name}`; did you mean `{near}`?"),
                    None => format!("there is no bundle `{name}`; there are: {}", names.join(", ")),
                })
            }
        },
    }
}

fn bundles_help() -> String {
    let names = |kinds: &[BundleKind]| kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>();
    format!(
        "Which bundles of equations: names separated by commas, `standard` or `all`.\n\nstandard: {}\nall: {}",
        names(&BundleKind::STANDARD).join(", "),
        names(&BundleKind::ALL).join(", ")
    )
}

/// What all runs have in common.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// The model file.
    pub(crate) model: PathBuf,
    /// Under one of the model's cases.
    #[arg(long, value_name = "NAME")]
    pub(crate) case: Option<String>,
    /// Set an independent parameter, `name` or `name[i]`; may be given many times.
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment)]
    pub(crate) set: Vec<(String, f64)>,
    /// Last time, s.
    #[arg(long, value_name = "T", allow_negative_numbers = true)]
    pub(crate) end: Option<f64>,
    /// Step, s; with step control the first one.
    #[arg(long, value_name = "H", allow_negative_numbers = true)]
    pub(crate) step: Option<f64>,
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which model, where nothing runs.
#[derive(Debug, Args)]
pub(crate) struct Of {
    /// The model file.
    pub(crate) model: PathBuf,
    /// Under one of the model's cases.
    #[arg(long, value_name = "NAME")]
    pub(crate) case: Option<String>,
    /// Set an independent parameter, `name` or `name[i]`; may be given many times.
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment)]
    pub(crate) set: Vec<(String, f64)>,
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
                    rk4, dormand_prince, projected onto the constraints after each step
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
/// Whatever is not given comes from the model's `simulation`, or from that of the case, as far as it goes together with
/// what is given.
#[derive(Debug, Args)]
#[command(after_help = format!("{SIMULATE_HELP}\n\n{EXIT_CODES}"))]
pub(crate) struct Simulate {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(flatten)]
    pub(crate) results: Results,
    /// Force and torque in every joint, too.
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
interrupted, the page shows what there is.";

/// Simulate a model, differentiate its objectives, and write a page that shows it all.
///
/// The gradient is computed if the model lists `sensitivity`, or with `--sensitivity`. Whatever of the run is not given comes
/// from the model's `simulation`, as for `mbs simulate`.
#[derive(Debug, Args)]
#[command(after_help = format!("{RUN_HELP}\n\n{EXIT_CODES}"))]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) common: Common,
    /// The page; MODEL.html in the present directory if not given.
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) results: Results,
    #[command(flatten)]
    pub(crate) by: By,
    /// Leave out the gradient.
    #[arg(long, conflicts_with = "sensitivity")]
    pub(crate) no_gradient: bool,
    /// Force and torque in every joint, too.
    #[arg(long)]
    pub(crate) reactions: bool,
    #[command(flatten)]
    pub(crate) method: Method,
}

/// How a run is made.
#[derive(Debug, Args)]
pub(crate) struct Method {
    /// How constraints are enforced.
    #[arg(long, value_enum, help_heading = METHOD)]
    pub(crate) formulation: Option<FormulationName>,
    /// The integrator.
    #[arg(long, value_enum, help_heading = METHOD)]
    pub(crate) integrator: Option<IntegratorName>,
    /// Weight of the new acceleration in the position; of `newmark`, 0.25 if not given.
    #[arg(long, value_name = "B", allow_negative_numbers = true, help_heading = METHOD)]
    pub(crate) beta: Option<f64>,
    /// Weight of the new acceleration in the velocity; of `newmark`, 0.5 if not given.
    #[arg(long, value_name = "G", allow_negative_numbers = true, help_heading = METHOD)]
    pub(crate) gamma: Option<f64>,
    /// From 0, most damping of high frequencies, to 1, none; of `generalized_alpha`, 0.8 if not given.
    #[arg(long, value_name = "R", allow_negative_numbers = true, help_heading = METHOD)]
    pub(crate) spectral_radius: Option<f64>,
    /// Penalty of every constraint; of `ali3p` and `penalty`, scaled by inertia (and step) if not given.
    #[arg(long, value_name = "P", allow_negative_numbers = true, help_heading = METHOD)]
    pub(crate) penalty: Option<f64>,
    /// The matrix of the projections of `ali3p`.
    #[arg(long, value_enum, help_heading = METHOD)]
    pub(crate) projection: Option<ProjectionName>,
    /// Relative increment at which the iteration of an implicit step ends.
    #[arg(long, value_name = "E", allow_negative_numbers = true, help_heading = METHOD)]
    pub(crate) newton_tolerance: Option<f64>,
    /// Most iterations of an implicit step.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000), help_heading = METHOD)]
    pub(crate) newton_iterations: Option<u32>,
    /// Relative tolerance of step control; of `dormand_prince`.
    #[arg(long, value_name = "R", allow_negative_numbers = true, help_heading = METHOD)]
    pub(crate) rtol: Option<f64>,
    /// Absolute tolerance of step control; of `dormand_prince`.
    #[arg(long, value_name = "A", allow_negative_numbers = true, help_heading = METHOD)]
    pub(crate) atol: Option<f64>,
}

const METHOD: &str = "Method";

const EQUILIBRIUM_HELP: &str = "\
Examples:
  mbs equilibrium models/buggy.yaml
  mbs equilibrium models/buggy.yaml --set m_c=600 --json | jq .coordinates

Constraints are those of the time a run begins at. Directions without stiffness are left where the start puts them.";

/// Find a position in which the model stays at rest.
///
/// The search begins at the model's start and follows Newton's method, cut short where it must be. If there is no
/// equilibrium near, what cannot be balanced is named.
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

Columns of the CSV file: t, coordinates, velocities, inputs and outputs, as for `mbs simulate`.";

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
}

const GRADIENT_HELP: &str = "\
Examples:
  mbs gradient models/five_bar.yaml
  mbs gradient models/five_bar.yaml --json | jq .objectives.psi1.gradient.L_s1
  mbs gradient models/five_bar.yaml --sensitivity k_1,m_A1 --step 1e-4
  mbs gradient models/five_bar.yaml --trajectories five_bar.csv --output-step 0.01

The gradient is that of the discrete solution: of the numbers that this run computes, with its steps. The last column of the table
is (p/psi) dpsi/dp: by how many percent the objective changes where the parameter p does by one. A derivative by an input is one by a constant
that is added to it.

Columns of the CSV file, all in SI units and radians, NAME a parameter, an element of an array or an input:
  t
  d(COORDINATE)/d(NAME), d(rate(COORDINATE))/d(NAME), d(acceleration(COORDINATE))/d(NAME)
  with closed loops or constraints: d(lambda.EQUATION)/d(NAME) (multipliers)";

/// Objectives of a run and their gradient.
///
/// The model lists its `objectives` and, under `sensitivity`, what it is differentiated by. Whatever of the run is not given comes
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
    #[command(flatten)]
    pub(crate) method: Method,
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
  runs, extrapolated; tolerance 1e-5, or what they are known to
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

/// How constraints are enforced.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum FormulationName {
    /// Augmented Lagrangian of index 3 with projections
    Ali3p,
    /// Forces in proportion to the violation
    Penalty,
    /// At the level of accelerations
    Index1,
}

impl From<FormulationName> for model::Formulation {
    fn from(name: FormulationName) -> model::Formulation {
        match name {
            FormulationName::Ali3p => model::Formulation::Ali3p,
            FormulationName::Penalty => model::Formulation::Penalty,
            FormulationName::Index1 => model::Formulation::Index1,
        }
    }
}

/// The matrix of the projections.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ProjectionName {
    /// The mass matrix
    Mass,
    /// The mass matrix with damping and stiffness
    Tangent,
}

impl From<ProjectionName> for model::Projection {
    fn from(name: ProjectionName) -> model::Projection {
        match name {
            ProjectionName::Mass => model::Projection::Mass,
            ProjectionName::Tangent => model::Projection::Tangent,
        }
    }
}

/// The integrators.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum IntegratorName {
    /// Classical Runge-Kutta, fixed step
    Rk4,
    /// Dormand-Prince 5(4), step control
    #[value(name = "dormand_prince")]
    DormandPrince,
    /// The trapezoidal rule, implicit, fixed step
    Trapezoidal,
    /// Newmark's formulas, implicit, fixed step
    Newmark,
    /// Generalized-alpha, implicit, fixed step
    #[value(name = "generalized_alpha")]
    GeneralizedAlpha,
}

impl From<IntegratorName> for model::Integrator {
    /// With the coefficients that a model file has if it does not say them.
    fn from(name: IntegratorName) -> model::Integrator {
        match name {
            IntegratorName::Rk4 => model::Integrator::Rk4,
            IntegratorName::DormandPrince => model::Integrator::DormandPrince,
            IntegratorName::Trapezoidal => model::Integrator::Trapezoidal,
            IntegratorName::Newmark => model::Integrator::Newmark { beta: 0.25, gamma: 0.5 },
            IntegratorName::GeneralizedAlpha => model::Integrator::GeneralizedAlpha { spectral_radius: 0.8 },
        }
    }
}

fn assignment(text: &str) -> Result<(String, f64), String> {
    let (name, value) = text.split_once('=').ok_or("write it as NAME=VALUE")?;
    let number = value.trim().parse().map_err(|_| format!("`{value}` is not a number"))?;
    Ok((name.trim().into(), number))
}
