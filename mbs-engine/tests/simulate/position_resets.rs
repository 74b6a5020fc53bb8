//! Events that reset positions.

use crate::events::{adjoint, close, differentiated, instance, is_derivative_of_the_run, run};
use mbs_codegen::model::{Formulation, Integrator};
use mbs_engine::simulation::{self, Instance, Overrides, RunFailure, Silent};

/// A wheel that begins anew after each turn, and a trolley that is taken back to where a parameter says.
const BELT: &str = "
mbs: 1
name: belt
gravity: [0, 0, -9.81]
parameters: {L: 0.4, k: 12, c: 0.2, far: 0.7, back: 0.25, w: 7}
bodies:
  wheel: {mass: 2, inertia: [0.1, 0.2, 0.1], points: {rim: [L, 0, 0]}}
  trolley: {mass: 1.1}
joints:
  axle: {type: revolute, parent: ground, child: wheel, axis: [0, 1, 0], start: {value: 0.3, rate: w}}
  rail: {type: prismatic, parent: ground, child: trolley, axis: [1, 0, 0], start: {value: 0, rate: 1.2}}
forces:
  pull: {type: force, at: wheel.rim, value: [0, 0, sin(3*t)]}
  drag: {type: joint_force, coordinate: rail, value: \"k*(1 - rail.displacement)*cos(axle.angle) - c*rate(rail)\"}
events:
  turn: {when: axle.angle - 2*pi, direction: rising, then: {reset: [{position: axle.angle, to: axle.angle - 2*pi}]}}
  end: {when: rail.displacement - far, direction: rising, then: {reset: [{position: rail, to: back*(1 + 0.1*rate(rail)) + 0.01*t}]}}
objectives:
  place: {terminal: rail.displacement + axle.angle}
  way: {integrand: rail.displacement^2, at: {event: end, value: t*rate(rail)}}
sensitivity: [L, k, c, far, back, w]
simulation: {end: 2.5, step: 0.013, integrator: rk4}
";

#[test]
fn gradients_go_through_resets_of_positions() {
    let implicit = Overrides {
        integrator: Some(Integrator::Trapezoidal),
        formulation: Some(Formulation::Ali3p),
        newton_tolerance: Some(1e-13),
        ..Overrides::default()
    };
    for (what, overrides) in [("rk4", Overrides::default()), ("trapezoidal", implicit)] {
        is_derivative_of_the_run(what, BELT, &overrides);
        let (direct, back) = (differentiated(BELT, &overrides), adjoint(BELT, &overrides, 1 << 17));
        assert!(
            direct.events.iter().any(|event| event.event == 0)
                && direct.events.iter().any(|event| event.event == 1)
        );
        for i in 0..direct.objectives.len() {
            let row = direct.of_objective(i).iter().fold(1e-6, |row: f64, x| row.max(x.abs()));
            for (a, b) in back.of_objective(i).iter().zip(direct.of_objective(i)) {
                assert!((a - b).abs() < 1e-9 * row, "{what}, objective {i}: {a} by the adjoint, {b} direct");
            }
        }
    }
}

/// A turn that is taken back changes nothing that a period has no part in.
#[test]
fn a_turn_that_is_taken_back_changes_nothing_else() {
    let free = BELT
        .replace("  turn:", "  turns:")
        .replace("then: {reset: [{position: axle.angle, to: axle.angle - 2*pi}]}", "then: {record: true}");
    // The reset adds nodes to the run: fine steps.
    let fine = Overrides { step: Some(2e-3), ..Overrides::default() };
    let (one, other) = (differentiated(BELT, &fine), differentiated(&free, &fine));
    let turns = one.events.iter().filter(|event| event.event == 0).count();
    assert!(turns >= 2, "{turns}");
    close("way", one.objectives[1], other.objectives[1], 1e-9);
    close("place", one.objectives[0] + 2.0 * std::f64::consts::PI * turns as f64, other.objectives[0], 1e-9);
}

#[test]
fn positions_that_constraints_forbid_are_refused_by_name() {
    let tied = |to: &str| {
        BELT.replace(
            "forces:\n",
            "constraints:\n  tie: {type: equation, value: \"sin(axle.angle) - sin(0.3 + 7*t)\"}\nforces:\n",
        )
        .replace("axle.angle - 2*pi}]", to)
        .replace("w: 7", "w: 7.0")
    };
    let allowed = run(&tied("axle.angle - 2*pi}]"), &Overrides { end: Some(1.2), ..Overrides::default() });
    assert!(allowed.failure.is_none(), "{:?}", allowed.failure);
    assert!(!allowed.seen.events.is_empty());
    let Instance { model, settings } = instance(&tied("axle.angle - 2}]"), &Overrides::default());
    let message = match simulation::run(&model, &settings, &mut Silent).failure {
        Some(RunFailure::Step(error)) => error.describe(&model).to_string(),
        other => panic!("{other:?}"),
    };
    assert!(message.contains("event `turn`") && message.contains("`tie`"), "{message}");
}
