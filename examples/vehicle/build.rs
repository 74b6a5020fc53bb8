//! Generates the buggy, with its two manoeuvres as cases.

use mbs_codegen::build::{BuildError, Builder};

fn main() -> Result<(), BuildError> {
    Builder::new("../../models/buggy.yaml").write("buggy.rs")
}
