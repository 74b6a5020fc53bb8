//! Events that reset positions.

use crate::events::{
    adjoint, close, differentiated, instance, is_derivative_of_the_run, model, run, try_adjoint,
    try_differentiated,
};
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

/// A cam whose follower moves with a period, after which it begins anew; a pendulum hangs on the follower, a trolley beside it is taken back by what its
/// rate says, and a loop of bars is closed all the while.
const CAM: &str = "
mbs: 1
name: cam
gravity: [0, 0, -9.81]
parameters: {P: 0.5, L: 0.3, far: 0.7, back: 0.25, k: 12, w: 1.1}
bodies:
  slide: {mass: 1.3}
  follower: {mass: 0.7}
  bob: {mass: 0.4, com: [0, 0, -0.2], inertia: [0.01, 0.01, 0.01]}
  trolley: {mass: 1.1, points: {hook: [0, 0, 0]}}
  arm: {mass: 0.3, com: [0.2, 0, 0], inertia: [0.01, 0.01, 0.01], points: {end: [0.4, 0, 0]}}
  rod: {mass: 0.2, com: [0.3, 0, 0], inertia: [0.01, 0.01, 0.01], points: {end: [0.6, 0, 0]}}
joints:
  way: {type: prismatic, parent: ground, child: slide, axis: [1, 0, 0], start: {value: 0.1, rate: w, hold: true}}
  lift: {type: prismatic, parent: ground, child: follower, axis: [0, 0, 1], start: 0.2}
  swing: {type: revolute, parent: follower, child: bob, axis: [0, 1, 0], start: 0.4}
  rail: {type: prismatic, parent: ground, child: trolley, axis: [1, 0, 0], start: {value: 0, rate: 1.2, hold: true}}
  hip: {type: revolute, parent: ground, child: arm, axis: [0, 1, 0], start: {value: -0.9, hold: true}}
  knee: {type: revolute, parent: arm.end, child: rod, axis: [0, 1, 0], start: 1.3}
constraints:
  track: {type: equation, value: \"lift.displacement - L*sin(2*pi*way.displacement/P)\"}
  floor: {type: equation, value: \"pos(rod.end).z - 0.05\"}
forces:
  drag: {type: joint_force, coordinate: rail, value: \"k*(1 - rail.displacement)*cos(swing.angle)\"}
  push: {type: joint_force, coordinate: way, value: \"0.5*sin(3*t)\"}
events:
  turn: {when: way.displacement - P, direction: rising, then: {reset: [{position: way, to: way.displacement - P}]}}
  end: {when: rail.displacement - far, direction: rising, then: {reset: [{position: rail, to: back*(1 + 0.1*rate(rail)) + 0.01*t}]}}
objectives:
  place: {terminal: way.displacement + lift.displacement + swing.angle + rail.displacement}
  path: {integrand: \"lift.displacement^2 + rate(swing)^2\", at: {event: end, value: t*rate(rail)}}
sensitivity: [P, L, far, back, k, w]
simulation: {end: 1.1, step: 0.007, integrator: rk4, formulation: index1}
";

fn by_rounding(overrides: Overrides) -> Overrides {
    Overrides { newton_tolerance: Some(1e-13), ..overrides }
}

#[test]
fn gradients_go_through_resets_under_constraints() {
    let implicit = Overrides {
        integrator: Some(Integrator::Trapezoidal),
        formulation: Some(Formulation::Ali3p),
        ..Overrides::default()
    };
    let stages = Overrides { integrator: Some(Integrator::Sdirk4), ..Overrides::default() };
    let controlled = Overrides { integrator: Some(Integrator::DormandPrince), ..Overrides::default() };
    let methods = [
        ("rk4", Overrides::default()),
        ("trapezoidal", by_rounding(implicit)),
        ("sdirk4", stages),
        ("step control", controlled),
    ];
    for (what, overrides) in methods {
        // Steps of step control change with the parameters, and their errors with them.
        if ["rk4", "trapezoidal"].contains(&what) {
            is_derivative_of_the_run(what, CAM, &overrides);
        }
        let (direct, back) = (differentiated(CAM, &overrides), adjoint(CAM, &overrides, 1 << 20));
        for event in 0..2 {
            assert!(direct.events.iter().any(|seen| seen.event == event), "{what}: event {event}");
        }
        for i in 0..direct.objectives.len() {
            let row = direct.of_objective(i).iter().fold(1e-6, |row: f64, x| row.max(x.abs()));
            for (a, b) in back.of_objective(i).iter().zip(direct.of_objective(i)) {
                assert!((a - b).abs() < 1e-9 * row, "{what}, objective {i}: {a} by the adjoint, {b} direct");
            }
        }
    }
}

/// A reset that keeps the constraint at the values of the file alone has no gradient, by either method.
#[test]
fn resets_that_leave_constraints_after_a_change_of_parameters_have_no_gradient() {
    let by_number = CAM.replace("to: way.displacement - P", "to: way.displacement - 0.5");
    let (text, overrides) = (by_number.as_str(), Overrides::default());
    let plain = run(text, &overrides);
    assert!(plain.failure.is_none(), "{:?}", plain.failure);
    let message = try_differentiated(&model(text), &overrides).expect_err("no gradient");
    assert!(message.contains("`turn` resets positions to where") && message.contains("`P`"), "{message}");
    let message = try_adjoint(text, &overrides, 1 << 20).expect_err("no gradient");
    assert!(
        message.contains("`turn` resets positions to where") && message.contains("some parameter"),
        "{message}"
    );
}

/// What is small beside other speeds is not forgiven: a follower of nanometres beside a fast slide.
#[test]
fn rates_that_constraints_forbid_are_refused_at_every_scale() {
    for size in [1.0, 1e-6, 1e-9] {
        let text = CAM
            .replace("L*sin(2*pi*way.displacement/P)", &format!("{size}*L*sin(2*pi*way.displacement/P)"))
            .replace("to: way.displacement - P", "to: way.displacement - P/2");
        // Half a period later the follower is where it was, sin(2 pi) = sin(pi), but moves the other way.
        let Instance { model, settings } = instance(&text, &Overrides::default());
        let message = match simulation::run(&model, &settings, &mut Silent).failure {
            Some(RunFailure::Step(error)) => error.describe(&model).to_string(),
            other => panic!("{size}: {other:?}"),
        };
        assert!(message.contains("event `turn`"), "{size}: {message}");
    }
}

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
