//! Generates the measured models.

use mbs_codegen::build::{BuildError, Builder};

fn main() -> Result<(), BuildError> {
    Builder::new("../models/five_bar.yaml").write("five_bar.rs")?;
    Builder::new("../models/five_bar.yaml").freeze().module("five_bar_frozen").write("five_bar_frozen.rs")
}
