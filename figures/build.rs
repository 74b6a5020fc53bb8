//! Generates the measured models.

use mbs_codegen::build::{BuildError, Builder};

#[path = "src/models.rs"]
mod models;

fn main() -> Result<(), BuildError> {
    println!("cargo::rerun-if-changed=src/models.rs");
    for name in models::NAMES {
        Builder::new(models::file(name)).bundles(&models::BUNDLES).write(&format!("{name}.rs"))?;
    }
    // The flags of this build, for the compilations that the program times.
    let flags = std::env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    println!("cargo::rustc-env=MBS_FIGURES_FLAGS={}", flags.replace('\x1f', " "));
    Ok(())
}
