//! Gradients of driven motions against complex steps of them.

use super::common::shipped as text_of;
use mbs_codegen::model::GradientMethod;
use mbs_engine::gradient::adjoint::Choice;
use mbs_engine::gradient::kinematics::{self, bundles};
use mbs_engine::simulation::{Overrides, RunFailure, Settings, Silent, interpret};
use mbs_engine::{Interpreted, gradient::Found};
use mbs_runtime::{Complex64, StepError, System};

const STEP: f64 = 1e-40;

fn model_of(text: &str, end: f64, step: f64) -> (Interpreted, Settings) {
    let (model, _) = mbs_codegen::analyse("model.yaml", text).expect("a valid model");
    let overrides = Overrides { end: Some(end), step: Some(step), ..Overrides::default() };
    let settings = Settings::of_kinematics(&model.simulation, model.is_constrained(), &overrides);
    let model = interpret(&model, None, &[], bundles()).expect("a model of moderate size");
    (model, settings.expect("a span"))
}

fn found(model: &Interpreted, settings: &Settings, adjoint: bool) -> Result<Found, RunFailure> {
    let choice = Choice { adjoint, ..Choice::direct("") };
    kinematics::simulate(model, settings, &choice, &mut Silent).map(|(ran, _)| ran.found)
}

/// Complex steps of all objectives by a parameter.
fn complex_step(model: &Interpreted, settings: &Settings, name: &str) -> Vec<f64> {
    let mut complex = Interpreted::<Complex64>::new(model.program().clone());
    let value = complex.parameter(name).expect("a parameter");
    complex.set_parameter(name, Complex64::new(value.re, STEP)).expect("a value");
    let values = kinematics::objectives(&complex, settings).expect("the same motion");
    values.iter().map(|psi| psi.im / STEP).collect()
}

/// Largest error of both methods relative to the largest entry of an objective's gradient in relative units.
fn worst_error(text: &str, end: f64, step: f64, with_adjoint: bool) -> f64 {
    let (model, settings) = model_of(text, end, step);
    let direct = found(&model, &settings, false).expect("a driven motion");
    let p = model.program().sensitivity.len();
    let ways = match with_adjoint {
        true => vec![found(&model, &settings, true).expect("no redundant rows"), direct],
        false => vec![direct],
    };
    let mut worst = 0.0_f64;
    let columns: Vec<Vec<f64>> =
        model.program().sensitivity.iter().map(|name| complex_step(&model, &settings, name)).collect();
    for way in &ways {
        for i in 0..model.dims().n_objectives {
            let size = columns.iter().map(|column| column[i].abs()).fold(1e-300, f64::max);
            for (k, column) in columns.iter().enumerate() {
                let error = (way.derivatives[i * p + k] - column[i]).abs() / size;
                worst = worst.max(error);
            }
        }
    }
    worst
}

/// Positions, rates, accelerations, torque and bearing force of a driven linkage; coordinates with Euler parameters.
#[test]
fn gradients_are_those_of_complex_steps() {
    let judged = text_of("crank_rocker").replace(
        "objectives:",
        "objectives:\n  jerked: {integrand: accel(Q)^2 + rate(P)*Q.angle, terminal: accel(P)*Q.angle}",
    );
    for (text, end, step) in [(judged, 0.4, 0.02), (text_of("suspension"), 1.0, 0.1)] {
        let worst = worst_error(&text, end, step, true);
        assert!(worst < 1e-11, "{worst}");
    }
}

/// A parameter that changes forces and no motion: M zdd' + Φᵀ λ' = −r_ρ with zdd' = 0.
#[test]
fn forces_may_change_where_nothing_moves() {
    let text = text_of("crank_rocker")
        .replace("sensitivity: [a, b, c, d, speed, ripple, density]", "sensitivity: [density]");
    let worst = worst_error(&text, 0.2, 0.02, true);
    assert!(worst < 1e-11, "{worst}");
}

/// Floating coordinates, joints as constraints: the same gradient from other equations.
#[test]
fn absolute_coordinates_have_the_same_gradient() {
    let text = text_of("suspension");
    let (joint, settings) = model_of(&text, 1.0, 0.25);
    let (absolute, _) = model_of(&text.replace("mbs: 1\n", "mbs: 1\ncoordinates: absolute\n"), 1.0, 0.25);
    let [a, b] = [&joint, &absolute].map(|model| found(model, &settings, false).expect("a driven motion"));
    assert!(absolute.dims().nq > 2 * joint.dims().nq);
    for (a, b) in a.derivatives.iter().zip(&b.derivatives) {
        assert!((a - b).abs() < 1e-10 * a.abs().max(1e-3), "{a} {b}");
    }
}

#[test]
fn redundant_rows_are_followed_together_or_refused_by_name() {
    let twice = |value: &str| {
        let second = format!("constraints:\n  again: {{type: coupling, value: {value}}}");
        text_of("crank_rocker").replace("constraints:", &second)
    };
    let same = twice("O.angle - speed*t - ripple*sin(3*t)");
    // Multipliers of two drives of one coordinate are not unique: objectives of the motion alone.
    let plain = |text: String| {
        let begin = text.find("objectives:").expect("objectives");
        let end = text.find("sensitivity:").expect("a list");
        format!("{}objectives: {{swing: rate(Q)^2}}\n{}", &text[..begin], &text[end..])
    };
    let worst = worst_error(&plain(same.clone()), 0.2, 0.02, false);
    assert!(worst < 1e-10, "{worst}");
    let (model, settings) = model_of(&plain(same), 0.2, 0.02);
    let refused = found(&model, &settings, true);
    assert!(matches!(refused, Err(RunFailure::Step(StepError::NotDifferentiable { .. }))), "{refused:?}");
    let choice = kinematics::choose(&model, GradientMethod::Auto, false).expect("a choice");
    assert!(!choice.adjoint, "{}", choice.why);
    // The second drive does not know the parameter: the two cannot both follow it.
    let fixed = twice("O.angle - 6.283185307179586*t - ripple*sin(3*t)");
    let (model, settings) = model_of(&plain(fixed), 0.2, 0.02);
    let speed = model.program().sensitivity.iter().position(|name| name == "speed");
    match found(&model, &settings, false) {
        Err(RunFailure::Step(StepError::Incompatible { parameter, .. })) => {
            assert_eq!(Some(parameter), speed)
        }
        other => panic!("{other:?}"),
    }
}
