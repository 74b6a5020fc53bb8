//! Modules made by the macro run, and say what they were asked to say.

use mbs_macros::model_solver;
use mbs_runtime::inputs::{NoInputs, from_fn};
use mbs_runtime::{At, Energy, Fixed, Integrator, MassMatrix, Output, Quantity, Rk4, Span};
use std::ops::ControlFlow;

model_solver! {
    /// A rod on a hinge.
    pub mod pendulum = "../models/pendulum.yaml";

    mod frozen = "../models/pendulum.yaml" { freeze, reference: com, bundles: [mass_matrix, forward_dynamics, energy] }

    pub(crate) mod shaken = "../models/cart_pole.yaml" {
        case: "shaken",
        bundles: all,
    }

    mod pendulums = "../models/double_pendulum.yaml" { bundles: gradient }
    mod crank = "../models/slider_crank.yaml" { bundles: gradient }
    mod whole_crank = "../models/slider_crank.yaml" { bundles: [standard, gradient] }
}

mod own_name {
    mbs_macros::model_solver!("../models/double_pendulum.yaml");
}

const SPAN: Span<f64> = Span { start: 0.0, end: 2.0, output: Output::Steps };
const METHOD: Fixed<Rk4> = Fixed { method: Rk4, h: 1e-3 };

fn go_on(_: At<'_, f64>) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

#[test]
fn a_module_simulates_and_keeps_energy() {
    let model = pendulum::Model::default();
    let mut y = model.start_state();
    let mut w = [0.0; pendulum::WORKSPACE];
    let mut energy = |y: &[f64]| {
        let mut out = [0.0; 3];
        let at = At::of_state(&pendulum::DIMS, 0.0, y, &[]).expect("the state");
        model.energy(at, &mut w, &mut out).expect("energy");
        out[0] + out[1]
    };
    let before = energy(&y);
    let mut scratch = [0.0; Rk4::scratch_len(&pendulum::DIMS)];
    METHOD.run(&model, &mut NoInputs, &mut y, &SPAN, &mut scratch, go_on).expect("a run");
    assert!((energy(&y) - before).abs() < 1e-11);
    assert_eq!(pendulum::NAMES.index(Quantity::Coordinate, "hinge.angle"), Some(0));
}

#[test]
fn settings_are_kept() {
    assert_eq!((pendulum::NP, frozen::NP), (3, 0));
    let (mut free, mut fixed) =
        (pendulum::Model::default().start_state(), frozen::Model::default().start_state());
    let mut scratch = [0.0; Rk4::scratch_len(&pendulum::DIMS) + Rk4::scratch_len(&frozen::DIMS)];
    let model = frozen::Model::default();
    METHOD.run(&model, &mut NoInputs, &mut fixed, &SPAN, &mut scratch, go_on).expect("a run");
    let model = pendulum::Model::default();
    METHOD.run(&model, &mut NoInputs, &mut free, &SPAN, &mut scratch, go_on).expect("a run");
    assert!(free.iter().zip(&fixed).all(|(a, b)| (a - b).abs() < 1e-12), "{free:?} {fixed:?}");
    let mut m = [0.0];
    let at = At { t: 0.0, z: &[0.2], v: &[0.0], x: &[], u: &[] };
    frozen::Model::default().mass_matrix(at, &mut [0.0; frozen::WORKSPACE], &mut m).expect("lengths");
    // A rod of 1 kg and 1 m about its end.
    assert!((m[0] - 1.0 / 3.0).abs() < 1e-15);
    assert_eq!(own_name::double_pendulum::NQ, 2);
}

#[test]
fn the_case_sets_the_inputs() {
    let model = shaken::Model::default();
    let run = |shaken: bool| {
        let mut y = model.start_state();
        let mut scratch = [0.0; Rk4::scratch_len(&shaken::DIMS)];
        let mut inputs = from_fn(|t, u: &mut [f64]| {
            let mut all = [0.0; shaken::NU];
            model.input_signals(t, &mut all);
            u.copy_from_slice(&all.map(|value| if shaken { value } else { 0.0 }));
        });
        METHOD.run(&model, &mut inputs, &mut y, &SPAN, &mut scratch, go_on).expect("a run");
        y[shaken::NAMES.index(Quantity::Coordinate, "rail.x").expect("a coordinate")]
    };
    assert!((run(true) - run(false)).abs() > 0.1);
}

/// A module for gradients has the gradient of the whole one.
#[test]
fn a_request_for_gradients_has_them() {
    let found = pendulums::gradient(&pendulums::Parameters::default()).expect("a run");
    let whole = own_name::double_pendulum::Parameters::default();
    let expected = own_name::double_pendulum::gradient(&whole).expect("a run");
    assert_eq!(format!("{found:?}"), format!("{expected:?}"));
    let found = crank::gradient(&crank::Parameters::default()).expect("a run");
    let expected = whole_crank::gradient(&whole_crank::Parameters::default()).expect("a run");
    assert_eq!(format!("{found:?}"), format!("{expected:?}"));
}
