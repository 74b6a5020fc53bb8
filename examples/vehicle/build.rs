//! Generates the buggy.

use mbs_codegen::build::{BuildError, Builder};

fn main() -> Result<(), BuildError> {
    // Both manoeuvres are the same equations with other parameters; `double_lane_change` sets them at run time.
    Builder::new("../../models/buggy.yaml").case("step_descent").write("buggy.rs")
}
