//! Generates models with every bundle, and names the one library the program is linked with.

use mbs_codegen::build::{BuildError, Builder};
use mbs_codegen::program::{BundleKind, Pairs};

/// Spline, gather and kernel; Euler parameters; inputs; a bundle of many functions.
const MODELS: [&str; 4] = ["mirrored", "torque_free_top", "cart_pole", "arm7"];
/// Those with what identification, control and optimisation ask for.
const ROBOTIC: [&str; 2] = ["torque_free_top", "cart_pole"];

fn main() -> Result<(), BuildError> {
    for name in MODELS {
        let more: &[BundleKind] = if ROBOTIC.contains(&name) { &BundleKind::ROBOTICS } else { &[] };
        Builder::new(format!("../../models/{name}.yaml"))
            .bundles(&[&BundleKind::TREE[..], more].concat())
            .write(&format!("{name}.rs"))?;
    }
    // Pairs of joints in loops over tables.
    Builder::new("../../models/arm7.yaml")
        .bundles(&[&BundleKind::TREE[..], &BundleKind::ROBOTICS].concat())
        .pairs(Pairs::Rolled)
        .module("arm7_rolled")
        .write("arm7_rolled.rs")?;
    // A closed loop, for implicit steps and for accelerations under constraints.
    let others = [BundleKind::ConstrainedDynamics, BundleKind::ConstraintCorrection, BundleKind::Energy];
    Builder::new("../../models/five_bar.yaml")
        .bundles(&[&BundleKind::COORDINATE_FORM[..], &others].concat())
        .write("five_bar.rs")?;
    // What the C runtime needs to start a program, and the `mem*` functions that the compiler itself calls. Without std
    // nobody else asks for it; the test of symbols shows that nothing else is taken from it.
    println!("cargo::rustc-link-arg-bins=-lc");
    Ok(())
}
