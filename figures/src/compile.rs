//! Compiles a module as its own crate and measures the compile time and the sizes of its functions.
//!
//! The runtime is built once before. The module is compiled as one codegen unit, so that the time does not depend on the number of cores.

use crate::time::processor_time;
use object::{Object, ObjectSection, ObjectSymbol};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Flags of the build of this program.
pub(crate) const FLAGS: &str = env!("MBS_FIGURES_FLAGS");

/// Directory of the compiled runtime.
pub(crate) struct Compiler {
    folder: PathBuf,
}

pub(crate) struct Compiled {
    pub(crate) seconds: f64,
    /// Code of the whole object.
    pub(crate) bytes: u64,
    /// Functions with the words of their paths and their sizes.
    functions: Vec<(String, u64)>,
}

impl Compiler {
    /// Compiles the runtime.
    pub(crate) fn new() -> io::Result<Compiler> {
        let folder = std::env::temp_dir().join(format!("mbs-figures-{}", std::process::id()));
        let runtime = Path::new(env!("CARGO_MANIFEST_DIR")).join("../mbs-runtime/Cargo.toml");
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
        cargo.args(["build", "--release", "--quiet", "--manifest-path"]).arg(runtime);
        run(cargo.arg("--target-dir").arg(&folder).env("RUSTFLAGS", FLAGS))?;
        Ok(Compiler { folder })
    }

    /// Compiles a module, with functions that call its dynamics if these are measured.
    pub(crate) fn compile(&self, name: &str, code: &str, called: bool) -> io::Result<Compiled> {
        let (source, object) =
            (self.folder.join(format!("{name}.rs")), self.folder.join(format!("{name}.o")));
        std::fs::write(
            &source,
            format!("#![no_std]\n{code}{}", if called { callers(name) } else { String::new() }),
        )?;
        let library = self.folder.join("release");
        let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or("rustc".into()));
        rustc.args(["--edition", "2024", "--crate-type", "lib", "--crate-name", &format!("measured_{name}")]);
        rustc.args(["-C", "opt-level=3", "-C", "codegen-units=1", "--emit=obj", "-o"]).arg(&object);
        rustc.arg("--extern").arg(format!("mbs_runtime={}", library.join("libmbs_runtime.rlib").display()));
        rustc.arg("-L").arg(format!("dependency={}", library.join("deps").display()));
        rustc.args(FLAGS.split_whitespace()).arg(&source);
        let (seconds, result) = processor_time(|| run(&mut rustc));
        result?;
        let data = std::fs::read(&object)?;
        let file = object::File::parse(&*data).map_err(io::Error::other)?;
        let text = |section: &object::Section<'_, '_>| section.kind() == object::SectionKind::Text;
        let functions = file.symbols().filter(|symbol| symbol.kind() == object::SymbolKind::Text);
        Ok(Compiled {
            seconds,
            bytes: file.sections().filter(text).map(|section| section.size()).sum(),
            functions: functions.filter_map(|f| Some((f.name().ok()?.to_owned(), f.size()))).collect(),
        })
    }
}

impl Drop for Compiler {
    fn drop(&mut self) {
        // What is left behind lies in the folder for temporary files.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Compiled {
    /// Code of a bundle: its function and those of its segments, whose names end with a number.
    pub(crate) fn bundle_bytes(&self, bundle: &str) -> u64 {
        let is_mine = |word: &str| {
            let rest = word.strip_prefix(bundle).unwrap_or("?");
            let number = rest.strip_prefix('_').unwrap_or("?");
            rest.is_empty() || (!number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
        };
        // A mangled name has each word of its path after the word's length; the word before may end with digits too.
        let mine = |symbol: &str| {
            symbol.match_indices(bundle).any(|(start, _)| {
                let digits = symbol[..start].bytes().rev().take_while(u8::is_ascii_digit).count();
                let lengths = (1..=digits).filter_map(|n| symbol[start - n..start].parse::<usize>().ok());
                lengths.filter_map(|n| symbol.get(start..start + n)).any(is_mine)
            })
        };
        self.functions.iter().filter(|(symbol, _)| mine(symbol)).map(|(_, size)| size).sum()
    }
}

/// A function that is not inlined for each measured bundle, since the module's own are made where they are called.
fn callers(module: &str) -> String {
    let caller = |bundle: &str, family: &str| {
        format!(
            "#[inline(never)]\n\
             pub fn {bundle}(model: &{module}::Model, at: mbs_runtime::At<'_, f64>, w: &mut [f64], zd: &mut [f64], \
             vd: &mut [f64]) -> Result<(), mbs_runtime::EvalError> {{\n    \
             mbs_runtime::{family}::{bundle}(model, at, w, zd, vd, &mut [])\n}}\n"
        )
    };
    caller("forward_dynamics", "ForwardDynamics")
        + &caller("forward_dynamics_recursive", "ForwardDynamicsRecursive")
}

fn run(command: &mut Command) -> io::Result<()> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("{command:?}\n{}", String::from_utf8_lossy(&output.stderr))))
}
