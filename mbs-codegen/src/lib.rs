//! From a YAML mechanism to flat Rust: yaml → model → topology → expressions → bundles → passes → emission.

pub mod diagnostics;
pub mod yaml;
pub mod model;
pub mod topology;
pub mod symbols;
pub mod graph;
pub mod lowering;
pub mod kinematics;
pub mod elements;
pub mod dynamics;
pub mod bundle;
pub mod program;
