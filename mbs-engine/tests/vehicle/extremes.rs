//! The buggy where its equations are worst: a run goes on, or stops with a reason and the last good state.

use super::{load, start, text};
use mbs_engine::Interpreted;
use mbs_runtime::formulation::ImplicitStep;
use mbs_runtime::{Ali3p, Fixed, Output, Span, State, StepError, System};
use std::ops::ControlFlow;

fn buggy(case: Option<&str>, set: &[(&str, f64)]) -> Interpreted {
    let mut model = load(&text("buggy"), case);
    for (name, value) in set {
        model.set_parameter(name, *value).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    model
}

/// Runs, and gives the last state, finite and at the time it says.
fn outcome(model: &Interpreted, h: f64, end: f64, raised: f64) -> (Result<(), StepError>, Vec<f64>) {
    let (mut state, _) = start(model).unwrap();
    let dims = model.dims();
    State::of(&dims, &mut state).unwrap().z[2] += raised;
    let mut last = state.clone();
    let method = Ali3p::DEFAULT;
    let mut scratch = vec![0.0; method.scratch_len(&dims)];
    let span = Span { start: 0.0, end, output: Output::Steps };
    let mut inputs = model.input_signals();
    let mut nodes = 0;
    let run = Fixed { method, h }.run(model, &mut inputs, &mut state, &span, &mut scratch, |node| {
        assert!(node.motion.z.iter().chain(node.motion.zd).all(|x| x.is_finite()), "t = {}", node.motion.t);
        nodes += 1;
        last.clear();
        last.extend_from_slice(node.motion.z);
        ControlFlow::Continue(())
    });
    let view = State::of(&dims, &mut state).unwrap();
    // Whatever happened, the state is that of the last node.
    assert_eq!(view.z, last, "after {nodes} nodes");
    (run.map(|_| ()), view.z.to_vec())
}

#[test]
fn wheels_off_the_ground() {
    let model = buggy(Some("step_descent"), &[]);
    // Dropped from a tenth of a metre: nothing holds the wheels before they land.
    let (run, z) = outcome(&model, 1e-3, 0.6, 0.1);
    run.unwrap_or_else(|error| panic!("{}", error.describe(&model)));
    assert!((-0.2..0.1).contains(&z[2]), "it has landed: {}", z[2]);
}

#[test]
fn standstill() {
    let model = buggy(None, &[]);
    let (run, z) = outcome(&model, 2e-3, 2.0, 0.0);
    run.unwrap_or_else(|error| panic!("{}", error.describe(&model)));
    // It stands where it was put, pitched by the front's greater travel.
    assert!((z[0] + 1.6).abs() < 0.01 && z[1].abs() < 1e-9, "{} {}", z[0], z[1]);
}

#[test]
fn ice() {
    let model = buggy(Some("double_lane_change"), &[("mu", 1e-6)]);
    let (run, z) = outcome(&model, 5e-3, 3.0, 0.0);
    run.unwrap_or_else(|error| panic!("{}", error.describe(&model)));
    // Nothing turns it.
    assert!(z[1].abs() < 1e-3, "{}", z[1]);
}

#[test]
fn parameters_at_their_bounds() {
    let model = buggy(Some("step_descent"), &[("c_f", 0.0), ("c_r", 0.0), ("d_t", 0.0)]);
    let (run, _) = outcome(&model, 1e-3, 0.5, 0.0);
    run.unwrap_or_else(|error| panic!("{}", error.describe(&model)));
    assert!(buggy(None, &[]).set_parameter("mu", -0.1).is_err());
}

/// Without any friction, moving and standing: where u is zero too, its share of the friction would be 0/0.
#[test]
fn no_friction_at_all() {
    let model = buggy(Some("double_lane_change"), &[("mu", 0.0)]);
    let (run, z) = outcome(&model, 5e-3, 3.0, 0.0);
    run.unwrap_or_else(|error| panic!("{}", error.describe(&model)));
    // It goes straight on at its speed, however it steers.
    assert!((z[0] - (30.0 - 1.6)).abs() < 0.05 && z[1].abs() < 1e-3, "{} {}", z[0], z[1]);
    let model = buggy(None, &[("mu", 0.0)]);
    let (run, z) = outcome(&model, 2e-3, 0.5, 0.0);
    run.unwrap_or_else(|error| panic!("{}", error.describe(&model)));
    assert!(z[1].abs() < 1e-9, "{}", z[1]);
}

#[test]
fn too_large_a_step() {
    let model = buggy(Some("double_lane_change"), &[]);
    for h in [0.05, 0.2, 1.0] {
        let (run, _) = outcome(&model, h, 4.0, 0.0);
        match run {
            Ok(()) => println!("h = {h}: converged"),
            Err(error) => {
                let said = error.describe(&model).to_string();
                println!("h = {h}: {said}");
                assert!(said.contains("converge") || said.contains("step"), "{said}");
            }
        }
    }
}
