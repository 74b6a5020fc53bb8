//! Shipped and written models for the tests of the engine.
#![allow(dead_code, reason = "each test file uses a part")]

use mbs_codegen::program::{BundleKind, Options, Program};
use mbs_engine::Interpreted;
use mbs_runtime::{Inputs, Integrator, Output, Span, Statistics, StepError, System};
use std::ops::ControlFlow;

/// The text of a shipped model.
pub(crate) fn shipped(name: &str) -> String {
    let path = format!("{}/../models/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The names of all shipped models.
pub(crate) fn all_shipped() -> Vec<String> {
    let folder = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../models")).expect("the models");
    let mut names: Vec<String> = folder
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.strip_suffix(".yaml").map(String::from))
        .collect();
    names.sort();
    names
}

/// The program of a model with all bundles.
pub(crate) fn program(text: &str, case: Option<&str>) -> Program {
    let (model, _) = match mbs_codegen::read("model.yaml", text) {
        Ok(read) => read,
        Err(diagnostics) => panic!("{}", diagnostics.render("model.yaml", text)),
    };
    let case = mbs_codegen::find_case(&model, case).expect("the case");
    let options = Options { bundles: BundleKind::TREE.to_vec(), ..Options::default() };
    Program::new(&model, case, &options).expect("a program of moderate size")
}

/// A model ready to run.
pub(crate) fn interpreted(text: &str, case: Option<&str>) -> Interpreted {
    Interpreted::new(program(text, case))
}

/// Times and states.
pub(crate) type Samples = Vec<(f64, Vec<f64>)>;

/// Runs from the start state; gives the samples (t, y) at every step.
pub(crate) fn run<M: Integrator>(
    method: &M,
    model: &Interpreted,
    inputs: &mut impl Inputs<f64>,
    end: f64,
) -> Result<(Statistics, Samples), StepError> {
    let mut y = model.start_state();
    let mut scratch = vec![0.0; method.scratch_len(&model.dims())];
    let span = Span { start: 0.0, end, output: Output::Steps };
    let mut samples = Vec::new();
    let statistics = method.run(model, inputs, &mut y, &span, &mut scratch, |at| {
        samples.push((at.t, [at.z, at.v].concat()));
        ControlFlow::Continue(())
    })?;
    Ok((statistics, samples))
}

/// A repeatable number in (−1, 1).
pub(crate) fn noise(seed: &mut u64) -> f64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
}
