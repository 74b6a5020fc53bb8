//! The scenario of `examples/embedded` with the standard library, here also with fused multiply-add: it has the bits that Cortex-M7 and
//! RV64GC have without it, since `generated/` is printed with `fma: never`.

pub(crate) mod models {
    pub(crate) use mbs_generated::{cart_pole, five_bar, five_bar_bouncing, pendulum, single};
}

#[path = "../../../examples/embedded/src/platform.rs"]
mod platform;
#[path = "../../../examples/embedded/src/scenario.rs"]
mod scenario;

use std::path::Path;

/// Keeps the numbers that every platform has.
struct Recorder(String);

impl scenario::Platform for Recorder {
    fn print(&mut self, text: &str) {
        if !text.starts_with('#') {
            self.0.push_str(text);
        }
    }

    fn instructions(&mut self) -> Option<u64> {
        None
    }

    fn wait(&mut self) -> bool {
        true
    }

    fn paint_stack(&mut self) {}

    fn stack(&mut self) -> Option<usize> {
        None
    }
}

#[test]
fn bits_are_those_of_every_target() {
    let mut recorder = Recorder(String::new());
    assert!(scenario::run(&mut recorder), "a step failed");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/embedded/expected.txt");
    if std::env::var_os("MBS_UPDATE").is_some() {
        std::fs::write(&path, &recorder.0).expect("writable");
    }
    let expected = std::fs::read_to_string(&path).expect("readable");
    let differs = expected.lines().zip(recorder.0.lines()).find(|(expected, found)| expected != found);
    assert!(differs.is_none() && expected.len() == recorder.0.len(), "{differs:#?}");
    assert!(expected.contains("\nbouncing event 0 "), "the linkage came to the ground");
}

/// Iterations are bounded, and a step that needs more returns with the last good state: the next one goes on as if nothing had been.
#[test]
fn a_step_that_fails_keeps_the_last_good_state() {
    use mbs_runtime::{Ali3p, Assembly, State, StepError};
    use models::five_bar::{DIMS, Model};
    let model = Model::default();
    let (mut inputs, bits) =
        (model.signals(), |state: &[f64]| state.iter().map(|x| x.to_bits()).collect::<Vec<_>>());
    let mut state = [0.0; State::<f64>::len(&DIMS)];
    let mut scratch = [0.0; Assembly::scratch_len(&DIMS)];
    Assembly::DEFAULT.begin(&model, &mut inputs, 0.0, &mut state, &mut scratch).expect("a start");
    let mut scratch = [0.0; Ali3p::scratch_len(&DIMS)];
    let mut undisturbed = state;
    for step in 0..20 {
        let before = bits(&state);
        // The linkage needs two.
        let hasty = Ali3p { max_iterations: 1, ..Ali3p::DEFAULT };
        let error =
            hasty.step(&model, &mut inputs, &mut state, 1e-3, &mut scratch).expect_err("too few iterations");
        assert!(matches!(error, StepError::NotConverged { iterations: 1, .. }), "{step}: {error:?}");
        assert_eq!(bits(&state), before, "{step}");
        for state in [&mut state, &mut undisturbed] {
            let made = Ali3p::DEFAULT.step(&model, &mut inputs, state, 1e-3, &mut scratch).expect("a step");
            assert!(made.iterations <= Ali3p::DEFAULT.max_iterations, "{made:?}");
        }
        assert_eq!(bits(&state), bits(&undisturbed), "{step}");
    }
}

/// A sensor that reads NaN makes one step fail, and that step only.
#[test]
fn an_input_that_is_no_number_costs_one_step() {
    use models::single::cart_pole::{Inputs, Parameters, Simulation};
    let start = || Simulation::new(Parameters::default()).expect("a start");
    let (mut disturbed, mut undisturbed) = (start(), start());
    for step in 0..20 {
        assert!(disturbed.step(&Inputs { push: f32::NAN }).is_err());
        assert_eq!(disturbed.t(), undisturbed.t());
        for simulation in [&mut disturbed, &mut undisturbed] {
            simulation.step(&Inputs { push: step as f32 }).expect("a step");
        }
        assert_eq!(disturbed.z().to_array(), undisturbed.z().to_array());
        assert_eq!(disturbed.v().to_array(), undisturbed.v().to_array());
    }
}
