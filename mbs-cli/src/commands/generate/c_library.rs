//! A module as a static library for C: a crate with the module, a thin layer and a header.

use super::footprint::Footprint;
use crate::commands::new::root;
use crate::session::failure::Failure;
use crate::session::files;
use mbs_codegen::Generated;
use mbs_codegen::emission::{CMemory, c_interface, identifier};
use std::fs;
use std::path::Path;

/// The first line of a manifest of ours, which may be written again.
const OURS: &str = "# Written by `mbs generate --c-header`.";

const MANIFEST: &str = "\
[package]
name = \"NAME\"
version = \"0.1.0\"
edition = \"2024\"

[lib]
crate-type = [\"staticlib\"]

[features]
default = [\"std\"]
# Without it: for targets without an operating system.
std = [\"mbs-runtime/std\"]
# Fused multiply-add also without std, with a nightly compiler.
nightly = [\"mbs-runtime/nightly\"]

[dependencies]
# The crates are not published: this is where they are.
mbs-runtime = { path = \"ROOT/mbs-runtime\", default-features = false }

[profile.dev]
opt-level = 1
panic = \"abort\"

[profile.release]
panic = \"abort\"

# A workspace of its own, wherever it stands.
[workspace]
";

/// Writes the crate into a folder.
pub(super) fn write(folder: &Path, module: Option<&str>, generated: &Generated) -> Result<String, Failure> {
    let program = &generated.program;
    let Some(footprint) = Footprint::of(program) else {
        return Err(Failure::error(format!(
            "`--c-header`: the module of `{}` has no simulation: the bundles that its method needs were not asked for",
            program.name
        )));
    };
    let name = identifier(module.unwrap_or(&program.name));
    let words = |bytes: usize| bytes.div_ceil(8);
    // One word says whether the simulation is started.
    let memory =
        CMemory { simulation: 1 + words(footprint.simulation()), gradient: footprint.gradient.map(words) };
    let interface = c_interface(program, &generated.code, &name, memory);
    let (source, manifest) = (folder.join("src"), folder.join("Cargo.toml"));
    if manifest.exists() && !fs::read_to_string(&manifest).is_ok_and(|text| text.starts_with(OURS)) {
        let folder = folder.display();
        return Err(Failure::error(format!(
            "`{folder}` holds another crate; `--c-header` wants a directory of its own"
        )));
    }
    fs::create_dir_all(&source).map_err(|error| {
        Failure::error(format!("cannot make the directory `{}`: {}", source.display(), files::reason(&error)))
    })?;
    let text = MANIFEST.replace("NAME", &name.replace('_', "-")).replace("ROOT", &root(None)?);
    files::write_whole(&manifest, &format!("{OURS}\n{text}"))?;
    files::write_whole(&source.join("lib.rs"), &interface.library)?;
    let header = format!("{name}.h");
    files::write_whole(&folder.join(&header), &interface.header)?;
    let folder = folder.display();
    Ok(format!(
        "wrote {folder}/{header}, {folder}/src/lib.rs and {folder}/Cargo.toml\n\
         build the library with `cargo build --release --manifest-path {folder}/Cargo.toml`\n"
    ))
}
