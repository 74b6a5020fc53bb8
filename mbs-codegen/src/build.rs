//! Interface for build scripts: generates a module into `OUT_DIR`, to be included in the crate.
//!
//! ```no_run
//! // build.rs
//! fn main() -> Result<(), mbs_codegen::build::BuildError> {
//!     mbs_codegen::build::Builder::new("models/pendulum.yaml").write("pendulum.rs")
//! }
//! // src/lib.rs: include!(concat!(env!("OUT_DIR"), "/pendulum.rs"));
//! ```

use crate::kinematics::ReferencePoint;
use crate::program::{BundleKind, Fma, Pairs, ScalarType, Simd, Steps};
use crate::{Request, generate};
use std::fmt;
use std::path::{Path, PathBuf};

/// Generates one model.
#[derive(Clone, Debug)]
pub struct Builder {
    model: PathBuf,
    request: Request,
}

impl Builder {
    /// For a model file, relative to the package.
    pub fn new(model: impl Into<PathBuf>) -> Builder {
        Builder { model: model.into(), request: Request::default() }
    }

    /// Name of the module instead of the model's own.
    pub fn module(mut self, name: &str) -> Builder {
        self.request.target.module = Some(name.into());
        self
    }

    /// Parameters become constants.
    pub fn freeze(mut self) -> Builder {
        self.request.options.freeze = true;
        self
    }

    /// `Steps::Separate` for little flash: no bundles that share what several compute. Otherwise small models have them, as in `mbs`; the
    /// results of both differ by rounding.
    pub fn steps(mut self, steps: Steps) -> Builder {
        self.request.options.steps = steps;
        self
    }

    /// Which bundles are emitted.
    pub fn bundles(mut self, bundles: &[BundleKind]) -> Builder {
        self.request.options.bundles = bundles.to_vec();
        self
    }

    /// Where velocities and forces of bodies are referred to.
    pub fn reference(mut self, reference: ReferencePoint) -> Builder {
        self.request.options.reference = reference;
        self
    }

    /// A second set of functions, in the module `batch`, takes as many samples at once: 4 or 8 for the vectors of most
    /// processors.
    pub fn lanes(mut self, samples: usize) -> Builder {
        self.request.target.lanes = Some(samples);
        self
    }

    /// Entries for pairs of joints as flat code or as loops over tables; otherwise whichever is quicker.
    pub fn pairs(mut self, pairs: Pairs) -> Builder {
        self.request.options.pairs = pairs;
        self
    }

    /// The numbers it computes with; otherwise `f64`.
    pub fn scalar(mut self, scalar: ScalarType) -> Builder {
        self.request.options.scalar = scalar;
        self
    }

    /// `Fma::Never` for the same bits on every target; otherwise fused where the target has the instruction.
    pub fn fma(mut self, fma: Fma) -> Builder {
        self.request.options.fma = fma;
        self
    }

    /// Vectors of two numbers: `Simd::Auto` in large bundles where they pay, `Never` for processors that have none, `Always` wherever two operations
    /// are alike. Results are the same to the bit.
    pub fn simd(mut self, simd: Simd) -> Builder {
        self.request.options.simd = simd;
        self
    }

    /// Defaults of one of the model's cases.
    pub fn case(mut self, name: &str) -> Builder {
        self.request.case = Some(name.into());
        self
    }

    /// Writes the module to a file of this name in `OUT_DIR` and tells Cargo when to run again.
    pub fn write(self, file: &str) -> Result<(), BuildError> {
        println!("cargo::rerun-if-changed={}", self.model.display());
        let out = std::env::var_os("OUT_DIR")
            .ok_or_else(|| BuildError("OUT_DIR is not set: this runs in a build script".into()))?;
        self.write_to(&Path::new(&out).join(file))
    }

    /// Writes the module to a path.
    pub fn write_to(self, path: &Path) -> Result<(), BuildError> {
        let name = self.model.display().to_string();
        let text = std::fs::read_to_string(&self.model)
            .map_err(|error| BuildError(format!("cannot read `{name}`: {error}")))?;
        let generated = generate(&name, &text, &self.request)
            .map_err(|diagnostics| BuildError(diagnostics.render(&name, &text)))?;
        for line in generated.warnings.render(&name, &text).lines() {
            println!("cargo::warning={line}");
        }
        std::fs::write(path, generated.code)
            .map_err(|error| BuildError(format!("cannot write `{}`: {error}", path.display())))
    }
}

/// Why nothing was generated: the whole message, ready to be read.
pub struct BuildError(String);

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What Cargo shows when `main` of a build script fails: the message, with its line breaks.
impl fmt::Debug for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n{}", self.0)
    }
}

impl std::error::Error for BuildError {}
