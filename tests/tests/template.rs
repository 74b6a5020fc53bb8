#![allow(
    dead_code,
    unreachable_pub,
    reason = "the program of a crate that `mbs new` makes, compiled as it is"
)]
//! Runs the model of `models/my_robot.yaml`, for which the macro below writes a solver while this crate is compiled.

use core::ops::ControlFlow;
use mbs_runtime::{Fixed, Integrator, Output, Rk4, Span};

mbs_macros::model_solver! { pub mod my_robot = "../mbs-cli/src/commands/template/model.yaml.in"; }
use my_robot::{DIMS, Model, Parameters, coordinate};

/// Runs the model and gives the angle every second.
fn angles(parameters: Parameters, end: f64) -> Vec<f64> {
    let model = Model::new(parameters);
    let mut inputs = model.signals();
    let mut state = model.start_state();
    let method = Fixed { method: Rk4, h: 1e-3 };
    let mut scratch = vec![0.0; method.scratch_len(&DIMS)];
    let span = Span { start: 0.0, end, output: Output::Every(1.0) };
    let mut angles = Vec::new();
    method
        .simulate(&model, &mut inputs, &mut state, &span, &mut scratch, |at| {
            angles.push(at.z[coordinate::HINGE_ANGLE]);
            ControlFlow::Continue(())
        })
        .expect("a small step");
    angles
}

fn main() {
    for (t, angle) in angles(Parameters::default(), 10.0).iter().enumerate() {
        println!("{t:2} s: {angle:+.6} rad");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn friction_takes_the_swing_away() {
        let free = angles(Parameters { c: 0.0, ..Default::default() }, 20.0);
        let damped = angles(Parameters::default(), 20.0);
        let largest = |angles: &[f64]| angles.iter().fold(0.0_f64, |largest, angle| largest.max(angle.abs()));
        assert!(largest(&free[10..]) > 0.4);
        assert!(largest(&damped[10..]) < 0.35);
    }
}

/// This file is the template.
#[test]
fn the_template_is_what_is_tested_here() {
    let template = include_str!("../../mbs-cli/src/commands/template/main.rs.in");
    let model = "\"../mbs-cli/src/commands/template/model.yaml.in\";";
    let expected = template.replace("\"models/MODULE.yaml\";", model).replace("MODULE", "my_robot");
    assert!(
        include_str!("template.rs").contains(&expected),
        "write the template into tests/tests/template.rs"
    );
}
