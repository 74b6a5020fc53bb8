//! What a run says where it cannot go on: when, where, which constraint by its name, and what to do. The state stays as it was.

use mbs_engine::Interpreted;
use mbs_runtime::{Ali3p, Assembly, Penalty, State, StepError, System};
use mbs_tests::closed::{guess, model, said, shipped, start};

/// A four-bar linkage with bars of these lengths on pivots 4 apart, its crank started so.
fn four_bar([a, b, c]: [f64; 3], crank: &str, more: &str) -> Interpreted {
    model(&format!(
        "
mbs: 1
name: four_bar
gravity: [0, -9.81, 0]
bodies:
  ground: {{points: {{Q: [4, 0, 0]}}}}
  crank: {{mass: 1, com: [{a}/2, 0, 0], inertia: [0, 0, 1], points: {{pin: [{a}, 0, 0]}}}}
  coupler: {{mass: 1, com: [{b}/2, 0, 0], inertia: [0, 0, 1], points: {{pin: [{b}, 0, 0]}}}}
  rocker: {{mass: 1, com: [{c}/2, 0, 0], inertia: [0, 0, 1], points: {{pin: [{c}, 0, 0]}}}}
joints:
  O: {{type: revolute, parent: ground, child: crank, axis: [0, 0, 1], start: {crank}}}
  P: {{type: revolute, parent: crank.pin, child: coupler, axis: [0, 0, 1], start: 0.4}}
  Q: {{type: revolute, parent: ground.Q, child: rocker, axis: [0, 0, 1], start: 1.7}}
  R: {{type: revolute, parent: coupler.pin, child: rocker.pin, axis: [0, 0, 1]}}
{more}"
    ))
}

/// The message of a failed start, after which the state is the guess.
fn failed_start(model: &Interpreted, t: f64) -> (StepError, String) {
    let before = guess(model, t);
    let mut state = before.clone();
    let mut scratch = vec![0.0; Assembly::scratch_len(&model.dims())];
    let error = Assembly::DEFAULT
        .start(model, &mut model.input_signals(), &mut state, &mut scratch)
        .expect_err("a start that fails");
    assert_eq!(state, before, "the state after a failed start");
    let said = said(model, error);
    println!("{said}");
    (error, said)
}

fn assert_says(said: &str, words: &[&str]) {
    for word in words {
        assert!(said.contains(word), "`{word}` in: {said}");
    }
}

#[test]
fn an_assembly_out_of_reach() {
    // The crank points away, and coupler and rocker are too short to meet.
    let model = four_bar([1.0, 2.0, 1.5], "{value: 3, hold: true}", "");
    let (error, said) = failed_start(&model, 0.25);
    assert!(matches!(error, StepError::NotAssembled { .. }), "{error:?}");
    assert_says(
        &said,
        &["t = 0.25", "cannot be assembled", "`R.x`", "release a held coordinate or change the guesses"],
    );
}

/// Two bars in one line between a pivot and a slider: no speed of the bars moves the slider along that line.
#[test]
fn a_start_in_a_singular_position() {
    let model = model(
        "
mbs: 1
name: stretched
bodies:
  ground: {points: {wall: [2, 0, 0]}}
  one: {mass: 1, com: [0.5, 0, 0], inertia: [0, 0, 0.1], points: {end: [1, 0, 0]}}
  two: {mass: 1, com: [0.5, 0, 0], inertia: [0, 0, 0.1], points: {end: [1, 0, 0]}}
  three: {mass: 1, inertia: [0, 0, 0.1]}
joints:
  A: {type: revolute, parent: ground, child: one, axis: [0, 0, 1]}
  B: {type: revolute, parent: one.end, child: two, axis: [0, 0, 1]}
  slide: {type: prismatic, parent: ground.wall, child: three, axis: [1, 0, 0], start: {value: 0, rate: 1, hold: true}}
  C: {type: revolute, parent: two.end, child: three, axis: [0, 0, 1]}
",
    );
    let (error, said) = failed_start(&model, 0.0);
    assert!(matches!(error, StepError::Inconsistent { .. }), "{error:?}");
    assert_says(
        &said,
        &["t = 0", "no velocities satisfy all constraints", "`C.x`", "release a held coordinate"],
    );
}

#[test]
fn a_drive_that_contradicts_another() {
    let more = "
constraints:
  motor: {type: motion, coordinate: O, value: 1.3 + t}
  brake: {type: motion, coordinate: Q, value: 1.0}
";
    let (error, said) = failed_start(&four_bar([1.0, 3.5, 3.0], "1.3", more), 0.0);
    assert!(matches!(error, StepError::NotAssembled { .. } | StepError::Inconsistent { .. }), "{error:?}");
    assert_says(&said, &["t = 0", "constraint `", "release a held coordinate"]);
}

/// Drives that agree at the start but not later: the step says so.
#[test]
fn a_drive_that_comes_to_contradict_another() {
    let more = "
constraints:
  motor: {type: motion, coordinate: O, value: 1.3}
  brake: {type: motion, coordinate: O, value: 1.3 + t^3}
";
    let model = four_bar([1.0, 3.5, 3.0], "1.3", more);
    let (mut state, _) = start(&model, 0.0).unwrap();
    let before = state.clone();
    let mut scratch = vec![0.0; Ali3p::scratch_len(&model.dims())];
    let error = Ali3p::DEFAULT
        .step(&model, &mut model.input_signals(), &mut state, 0.1, &mut scratch)
        .expect_err("drives that contradict each other");
    assert_eq!(state, before);
    let said = said(&model, error);
    println!("{said}");
    assert_says(&said, &["t = 0 with step 0.1", "constraint `", "remove a constraint that contradicts it"]);
    assert!(said.contains("`motor`") || said.contains("`brake`"), "{said}");
}

/// A drive that pulls a linkage beyond its reach: the run goes as far as it can and then names the place.
#[test]
fn a_drive_beyond_reach() {
    let more = "
constraints:
  motor: {type: motion, coordinate: O, value: 0.3 + t}
";
    // Not a crank: it cannot turn past some two radians.
    let model = four_bar([3.0, 2.0, 1.5], "0.3", more);
    let (mut state, _) = start(&model, 0.0).unwrap();
    let mut scratch = vec![0.0; Ali3p::scratch_len(&model.dims())];
    let mut before = state.clone();
    let error = loop {
        match Ali3p::DEFAULT.step(&model, &mut model.input_signals(), &mut state, 1e-2, &mut scratch) {
            Ok(_) => before.clone_from(&state),
            Err(error) => break error,
        }
        assert!(*State::of(&model.dims(), &mut state).unwrap().t < 3.0, "it goes on for ever");
    };
    assert_eq!(state, before, "the state after a failed step");
    // Messages leave out the digits of rounding.
    let t = (100.0 * before[0]).round() / 100.0;
    let said = said(&model, error);
    println!("{said}");
    assert_says(&said, &[&format!("t = {t} with step 0.01"), "constraint `"]);
}

#[test]
fn a_step_that_is_too_large() {
    let model = shipped("five_bar");
    let (state, _) = start(&model, 0.0).unwrap();
    let mut scratch = vec![0.0; Ali3p::scratch_len(&model.dims())];
    let mut inputs = model.input_signals();
    let mut failed = 0;
    // Far beyond the period of the springs. Some converge by luck, to a solution of the step's equations.
    for h in [0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0] {
        let mut stepped = state.clone();
        let Err(error) = Ali3p::DEFAULT.step(&model, &mut inputs, &mut stepped, h, &mut scratch) else {
            continue;
        };
        failed += 1;
        assert_eq!(stepped, state);
        let said = said(&model, error);
        println!("{said}");
        assert_says(&said, &[&format!("t = 0 with step {h}"), "take a smaller step"]);
        // Its names are those of the file.
        assert!(said.contains("`P2.") || said.contains(".angle`"), "{said}");
        // The state is good for a smaller step.
        Ali3p::DEFAULT.step(&model, &mut inputs, &mut stepped, 1e-2, &mut scratch).unwrap();
    }
    assert!(failed > 0);
}

#[test]
fn a_penalty_that_is_too_small() {
    let model = shipped("five_bar");
    let (mut state, _) = start(&model, 0.0).unwrap();
    let before = state.clone();
    let mut scratch = vec![0.0; Ali3p::scratch_len(&model.dims())];
    let settings = Ali3p { penalty: Penalty::Given(1e3), ..Ali3p::DEFAULT };
    let error = settings
        .step(&model, &mut model.input_signals(), &mut state, 1e-3, &mut scratch)
        .expect_err("a penalty that is too small");
    assert_eq!(state, before);
    let said = said(&model, error);
    println!("{said}");
    assert_says(&said, &["t = 0 with step 0.001", "no convergence", "`P2.", "larger penalty"]);
}
