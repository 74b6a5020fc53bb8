//! What is measured; the build script and the program read the same.

use mbs_codegen::program::BundleKind;
use std::path::{Path, PathBuf};

/// One hinge; a serial arm where nothing folds away; a tree with every type of joint.
pub(crate) const NAMES: [&str; 3] = ["pendulum", "arm7", "tree20"];

/// The standard bundles, and the recursive dynamics beside the other.
pub(crate) const BUNDLES: [BundleKind; 5] = [
    BundleKind::ForwardDynamics,
    BundleKind::ForwardDynamicsRecursive,
    BundleKind::Energy,
    BundleKind::Markers,
    BundleKind::Outputs,
];

/// The model's file.
pub(crate) fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../models").join(format!("{name}.yaml"))
}
