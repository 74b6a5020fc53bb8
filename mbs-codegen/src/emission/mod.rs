//! Prints a program as one Rust module: no heap, no unsafe, `no_std`, the same bytes every time.
//!
//! Input: a [`Program`]. Output: text. The module's face (types, names, trait implementations) is built
//! from tokens and formatted; the bodies of bundles are printed line by line, since formatting them would
//! take seconds.
//! Holds afterwards: nothing from the model stands in the text but escaped identifiers, string literals
//! and finite numbers.

mod batch;
mod body;
mod c_interface;
mod cases;
mod conditions;
mod face;
mod free_text;
mod glue;
mod lanes;
mod named;
mod names;
mod packed;
mod rolled;
mod simulation;
mod statement;

pub use c_interface::{CInterface, CMemory, c_interface};
pub use names::identifier;
pub use simulation::{MemoryKind, event_counts, memory};

use crate::bundle::Bundle;
use crate::program::{BundleKind, Fma, Pairs, Program, ScalarType, Simd, Steps};

/// Where and how a module is printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Name of the module; the model's own name if `None`.
    pub module: Option<String>,
    /// `pub`, `pub(crate)` or nothing.
    pub visibility: String,
    /// How many samples a second set of functions takes at once; none without it. Not more than [`MAX_LANES`].
    pub lanes: Option<usize>,
}

/// Most samples at once.
pub const MAX_LANES: usize = 16;

impl Default for Target {
    fn default() -> Self {
        Target { module: None, visibility: "pub".into(), lanes: None }
    }
}

/// The source of a module, for its header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source<'a> {
    /// File name, without its folder.
    pub file: &'a str,
    /// The file's text; its hash goes into the header.
    pub text: &'a str,
}

/// The module of the runtime with the functions that a program calls.
fn functions(program: &Program) -> &'static str {
    match program.options.fma {
        Fma::Never => "portable",
        Fma::Target => "math",
    }
}

/// About how long a printed statement is.
const BYTES_PER_STATEMENT: usize = 48;

/// Prints the module.
pub fn emit(program: &Program, source: &Source<'_>, target: &Target) -> String {
    let module = identifier(target.module.as_deref().unwrap_or(&program.name));
    let mut out = header(program, source, &module, target);
    out.push_str(&face::print(program, &module, &target.visibility));
    // The face ends with the brace that closes the module: the bodies go before it.
    let end = out.trim_end().len() - 1;
    out.truncate(end);
    // Large modules grow by steps of their own size otherwise.
    let statements: usize = program.bundles.iter().map(Bundle::statements).sum();
    out.reserve(BYTES_PER_STATEMENT * statements);
    for bundle in &program.bundles {
        body::print(bundle, &mut out);
    }
    for kind in [BundleKind::Solve, BundleKind::JointSolve] {
        if let Some(text) = many_columns(program, kind) {
            out.push_str(&text);
        }
    }
    if let Some(width) = target.lanes {
        out.push_str(&batch::print(program, width.clamp(1, MAX_LANES)));
    }
    out.push_str("}\n");
    out
}

/// A solve for many right-hand sides, where there are many: in models that are differentiated.
fn many_columns(program: &Program, kind: BundleKind) -> Option<String> {
    let list = match kind {
        BundleKind::Solve => BundleKind::Linearise,
        BundleKind::JointSolve => BundleKind::JointLinearise,
        _ => return None,
    };
    let wanted = program.kinds.contains(&list) && !program.sensitivity.is_empty();
    lanes::print(program.bundle(kind.name()).filter(|_| wanted)?)
}

fn header(program: &Program, source: &Source<'_>, module: &str, target: &Target) -> String {
    let file = free_text::one_line(source.file);
    let case = program.case.as_ref().map_or(String::new(), |case| format!(" --case {case}"));
    let freeze = if program.options.freeze { " --freeze" } else { "" };
    let centre = match program.options.reference {
        crate::kinematics::ReferencePoint::CentreOfMass => " --reference com",
        crate::kinematics::ReferencePoint::Origin => "",
    };
    let requested = BundleKind::REQUESTS.iter().find(|(_, kinds)| program.options.bundles == *kinds);
    let bundles = match requested {
        Some(("standard", _)) => String::new(),
        Some((name, _)) => format!(" --bundles {name}"),
        None => {
            let names: Vec<&str> = program.options.bundles.iter().map(|b| b.name()).collect();
            format!(" --bundles {}", names.join(","))
        }
    };
    let pairs = match program.options.pairs {
        Pairs::Auto => "",
        Pairs::Flat => " --pairs flat",
        Pairs::Rolled => " --pairs rolled",
    };
    let scalar = match program.options.scalar {
        ScalarType::F64 => "",
        ScalarType::F32 => " --scalar f32",
    };
    let fma = match program.options.fma {
        Fma::Never => " --fma never",
        Fma::Target => "",
    };
    let steps = match program.options.steps {
        Steps::Fused => "",
        Steps::Separate => " --steps separate",
    };
    let simd = match program.options.simd {
        Simd::Auto => String::new(),
        simd => format!(" --simd {}", simd.name()),
    };
    let lanes = target.lanes.map_or(String::new(), |width| format!(" --lanes {width}"));
    let module =
        if module == identifier(&program.name) { String::new() } else { format!(" --module {module}") };
    format!(
        "// @generated by mbs {} from `{file}`, hash {:016x}.\n\
         // Do not edit: change the model and run `mbs generate {file}{case}{freeze}{centre}{bundles}{pairs}{scalar}{fma}{steps}{simd}{lanes}{module} -o FILE`.\n",
        env!("CARGO_PKG_VERSION"),
        fnv1a(source.text.as_bytes()),
    )
}

/// FNV-1a, 64 bits: tells whether a file changed, nothing more.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
