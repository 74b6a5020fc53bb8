//! Options of commands that look at a model or turn it into another file: check, generate, import.

use super::EXIT_CODES;
use clap::{Args, ValueEnum};
use mbs_codegen::diagnostics::nearest;
use mbs_codegen::kinematics::ReferencePoint;
use mbs_codegen::program::{BundleKind, Fma, Pairs, ScalarType, Simd, Steps};
use std::path::PathBuf;

const CHECK_HELP: &str = "\
Examples:
  mbs check models/arm7.yaml
  mbs check models/arm7.yaml --case heavy
  mbs check models/human43.yaml --tree
  mbs check models/arm7.yaml --json | jq .degrees_of_freedom";

/// Check a model: show all problems, or a summary.
///
/// Problems go to standard error, each with file, line and column. Of a model without errors the summary
/// shows bodies, joints, parameters, inputs, outputs, cases, and what each bundle of equations costs.
#[derive(Debug, Args)]
#[command(after_help = format!("{CHECK_HELP}\n\n{EXIT_CODES}"))]
pub(crate) struct Check {
    /// The model file.
    pub(crate) model: PathBuf,
    /// Use this case of the model.
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
  mbs generate models/five_bar.yaml --scalar f32 --report   # operations and memory
  mbs generate models/five_bar.yaml --report --program target/release/firmware
  mbs generate models/five_bar.yaml --c-header five_bar_c   # a library for C

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
    /// The numbers to compute with: double or single precision.
    #[arg(long, value_enum, default_value_t = ScalarOption::F64)]
    pub(crate) scalar: ScalarOption,
    /// Fused multiply-add: where the target has it, or never, with functions of libm, for the same bits on every target.
    #[arg(long, value_enum, default_value_t = FmaOption::Target)]
    pub(crate) fma: FmaOption,
    /// Steps of small models from few bundles that share what they compute, or from separate ones alone, for little flash.
    #[arg(long, value_enum, default_value_t = StepsOption::Fused)]
    pub(crate) steps: StepsOption,
    /// Two like operations at a time, for processors with vectors of two numbers: in large bundles, nowhere, or wherever there are some.
    /// Results are the same to the bit.
    #[arg(long, value_enum, default_value_t = SimdOption::Auto)]
    pub(crate) simd: SimdOption,
    /// Which bundles of equations: names separated by commas, `standard`, `gradient` or `all`.
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
    /// Write a crate into this directory instead: the module as a static library for C, with its header.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["output", "check"])]
    pub(crate) c_header: Option<PathBuf>,
    /// Print what the module takes instead: operations and constants of each bundle, memory, the bound of a step.
    #[arg(long, conflicts_with_all = ["output", "check", "c_header"])]
    pub(crate) report: bool,
    /// With `--report`: a linked program that contains the module, in ELF format and not stripped, for the bytes of code.
    #[arg(long, value_name = "FILE", requires = "report")]
    pub(crate) program: Option<PathBuf>,
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
    /// Let joints that mimic others move independently.
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

/// The numbers of generated code.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ScalarOption {
    /// Double precision
    F64,
    /// Single precision
    F32,
}

/// Fused multiply-add.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum FmaOption {
    /// The same bits on every target.
    Never,
    /// Where the target has the instruction.
    Target,
}

/// What steps are made of.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum StepsOption {
    /// Few bundles, where a model is small.
    Fused,
    /// Separate bundles.
    Separate,
}

/// Vectors of two numbers.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum SimdOption {
    /// In large bundles.
    Auto,
    /// Nowhere.
    Never,
    /// Wherever two operations are alike.
    Always,
}

impl From<SimdOption> for Simd {
    fn from(simd: SimdOption) -> Simd {
        match simd {
            SimdOption::Auto => Simd::Auto,
            SimdOption::Never => Simd::Never,
            SimdOption::Always => Simd::Always,
        }
    }
}

impl From<StepsOption> for Steps {
    fn from(steps: StepsOption) -> Steps {
        match steps {
            StepsOption::Fused => Steps::Fused,
            StepsOption::Separate => Steps::Separate,
        }
    }
}

impl From<FmaOption> for Fma {
    fn from(fma: FmaOption) -> Fma {
        match fma {
            FmaOption::Never => Fma::Never,
            FmaOption::Target => Fma::Target,
        }
    }
}

impl From<ScalarOption> for ScalarType {
    fn from(scalar: ScalarOption) -> ScalarType {
        match scalar {
            ScalarOption::F64 => ScalarType::F64,
            ScalarOption::F32 => ScalarType::F32,
        }
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

/// One entry of `--bundles`.
#[derive(Clone, Debug)]
pub(crate) struct Bundles(pub(crate) Vec<BundleKind>);

fn bundles(name: &str) -> Result<Bundles, String> {
    BundleKind::requested(name).map(|kinds| Bundles(kinds.to_vec())).ok_or_else(|| {
        let names = BundleKind::request_names();
        match nearest(name, names.clone()) {
            Some(near) => format!("there is no bundle `{name}`; did you mean `{near}`?"),
            None => {
                let names: Vec<&str> = names.collect();
                format!("there is no bundle `{name}`; there are: {}", names.join(", "))
            }
        }
    })
}

fn bundles_help() -> String {
    let names = |kinds: &[BundleKind]| kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>();
    format!(
        "Which bundles of equations: names separated by commas, `standard`, `gradient` or `all`.\n\nstandard: {}, and what the file's runs \
         and their gradients need\ngradient: what these need and nothing else\nall: {}",
        names(&BundleKind::STANDARD).join(", "),
        names(&BundleKind::ALL).join(", ")
    )
}
