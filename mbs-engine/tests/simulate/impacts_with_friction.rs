//! Impacts with friction against closed forms, energy, differences and adjoints.

use crate::events::{adjoint, close, differentiated, instance, is_derivative_of_the_run, run};
use mbs_codegen::model::{Formulation, Integrator};
use mbs_engine::simulation::{self, Instance, Overrides, RunFailure, Silent};

/// A disk that is thrown on the ground.
const DISK: &str = "
mbs: 1
name: disk
gravity: [0, 0, -9.81]
parameters: {e: 0.7, mu: 0.03, m: 1.3, R: 0.2, J: 0.03, v: 1.1, w: 2.5}
bodies: {disk: {mass: m, inertia: [0.02, J, 0.02]}}
joints: {plane: {type: planar, parent: ground, child: disk, axis: [0, 1, 0], reference: [0, 0, 1], start: {x: {value: 0.5, rate: 0}, y: {value: 0, rate: v}, angle: {value: 0, rate: w}}}}
events:
  ground:
    when: pos(disk).z - R
    direction: falling
    then: {impact: {restitution: e, friction: mu, slip: vel(disk).x - R*omega(disk).y}}
objectives:
  x: {terminal: pos(disk).x + vel(disk).z}
  turn: {terminal: omega(disk).y, integrand: vel(disk).x^2}
sensitivity: [e, mu, m, R, J, v, w]
simulation: {end: 0.6, step: 0.013, integrator: rk4}
";

/// Gap and slip of a disk do not act on each other: c⁺ = −e c; q = −μ p sign(s), or what stops the slip, 1/d = m J/(J + m R²).
#[test]
fn a_disk_slips_or_rolls_as_the_closed_form_says() {
    for (mu, slips) in [(0.03, true), (0.8, false)] {
        let text = DISK.replace("mu: 0.03", &format!("mu: {mu}"));
        let record = run(&text, &Overrides { end: Some(0.4), ..Overrides::default() });
        assert!(record.failure.is_none(), "{:?}", record.failure);
        assert_eq!(record.seen.events.len(), 1);
        let event = &record.seen.events[0];
        let fall = (2.0 * (0.5 - 0.2) / 9.81_f64).sqrt();
        close("time", event.t, fall, 1e-12);
        let p = 1.3 * 1.7 * 9.81 * fall;
        let slip = 1.1 - 0.2 * 2.5;
        let q = if slips { -mu * p } else { -slip / (1.0 / 1.3 + 0.04 / 0.03) };
        close("normal impulse", event.impulses[0], p, 1e-12);
        close("impulse of friction", event.impulses[1], q, 1e-12);
    }
}

/// A rod that falls on its end in a plane, and a pendulum in front of it, closed by a loop: gap and slip act on each other.
pub(crate) const ROUGH: &str = "
mbs: 1
name: rod
gravity: [0, 0, -9.81]
parameters: {e: 0.6, mu: 0.25, m: 1.3, L: 0.6, v: 0.4, w: 1.5, c: 0.05}
bodies:
  rod: {mass: m, inertia: [0.03, 0.04, 0.02], points: {a: [0, 0, -L/2], b: [0, 0, L/2]}}
  bob: {mass: 0.4, inertia: [0.002, 0.003, 0.002], com: [0, 0, -0.1]}
joints:
  plane: {type: planar, parent: ground, child: rod, axis: [0, 1, 0], reference: [0, 0, 1], start: {x: {value: 0.45, rate: 0}, y: {value: 0, rate: v}, angle: {value: 0.5, rate: w}}}
  hang: {type: revolute, parent: rod.b, child: bob, axis: [0, 1, 0], start: 0.2}
forces:
  air: {type: force, at: rod.b, value: -c*vel(rod.b)}
events:
  ground:
    when: pos(rod.a).z
    direction: falling
    then: {impact: {restitution: e, friction: mu, slip: vel(rod.a).x}}
  other:
    when: pos(rod.b).z
    direction: falling
    then: {impact: {restitution: e*(1 - 0.01*vel(rod.b).x), friction: mu*(1 + 0.1*t), slip: vel(rod.b).x}}
objectives:
  x: {terminal: pos(rod.a).x + vel(rod.b).z}
  turn: {terminal: omega(bob).y, integrand: vel(rod.a).x^2}
  hit: {at: {event: ground, value: t, which: first}}
sensitivity: [e, mu, m, L, v, w, c]
simulation: {end: 0.5, step: 0.013, integrator: rk4}
";

/// The same with the end of the rod on a rail: one coordinate follows from a constraint, and the ground moves.
fn on_a_rail() -> String {
    ROUGH.replace(
        "forces:\n",
        "constraints:\n  rail: {type: equation, value: \"pos(rod.b).x - 0.3*pos(rod.b).z - 0.31\"}\nforces:\n",
    )
    .replace("when: pos(rod.a).z\n", "when: pos(rod.a).z - 0.02*sin(9*t)\n")
}

#[test]
fn gradients_through_impacts_with_friction_are_those_of_the_run() {
    let explicit = Overrides::default();
    let implicit = Overrides {
        integrator: Some(Integrator::Trapezoidal),
        formulation: Some(Formulation::Ali3p),
        newton_tolerance: Some(1e-13),
        ..Overrides::default()
    };
    let index1 = Overrides {
        integrator: Some(Integrator::Rk4),
        formulation: Some(Formulation::Index1),
        ..Overrides::default()
    };
    let newton = |text: &str| text.replace("friction: mu", "law: newton, friction: mu");
    let more = |text: &str, mu: &str| text.replace("mu: 0.25", mu);
    let cases = [
        ("disk", DISK.to_string(), explicit.clone()),
        ("disk that rolls, trapezoidal", DISK.replace("mu: 0.03", "mu: 0.8"), implicit.clone()),
        ("rod", ROUGH.to_string(), explicit.clone()),
        ("rod, trapezoidal", ROUGH.to_string(), implicit.clone()),
        ("rod that sticks", more(ROUGH, "mu: 0.9"), explicit.clone()),
        ("rod that turns round", more(ROUGH, "mu: 0.4").replace("v: 0.4", "v: 1.0"), explicit.clone()),
        ("rod, Newton", newton(ROUGH), explicit),
        ("rod on a rail, index 1", on_a_rail(), index1.clone()),
        ("rod on a rail that sticks, ali3p", more(&on_a_rail(), "mu: 0.9"), implicit),
        ("rod on a rail, Newton", newton(&on_a_rail()), index1),
    ];
    for (what, text, overrides) in cases {
        is_derivative_of_the_run(what, &text, &overrides);
        let (direct, back) = (differentiated(&text, &overrides), adjoint(&text, &overrides, 1 << 24));
        for i in 0..direct.objectives.len() {
            let row = direct.of_objective(i).iter().fold(1e-6, |row: f64, x| row.max(x.abs()));
            for (a, b) in back.of_objective(i).iter().zip(direct.of_objective(i)) {
                assert!((a - b).abs() < 1e-9 * row, "{what}, objective {i}: {a} by the adjoint, {b} direct");
            }
        }
    }
}

/// Neither law of the rod's impacts creates energy with Stronge's law, whatever friction; Newton's reports what it creates.
#[test]
fn friction_creates_no_energy_unless_newtons_law_is_named() {
    let mut gained: f64 = 0.0;
    for mu in [0.0, 0.2, 0.5, 1.0, 2.0] {
        for (v, w) in [(0.4, 1.5), (-2.0, 3.0), (2.0, -4.0), (3.0, -9.0)] {
            let text = ROUGH
                .replace("mu: 0.25", &format!("mu: {mu}"))
                .replace("v: 0.4, w: 1.5", &format!("v: {v}, w: {w}"))
                .replace("e: 0.6", "e: 1");
            let text = text.replace("e*(1 - 0.01*vel(rod.b).x)", "e");
            let of = |text: &str| {
                let record = run(text, &Overrides { end: Some(0.4), ..Overrides::default() });
                assert!(record.failure.is_none(), "{:?}", record.failure);
                assert!(!record.seen.events.is_empty());
                record.seen.balance.at_events
            };
            let lost = of(&text);
            assert!(lost < 1e-12, "μ = {mu}, v = {v}: {lost}");
            if mu == 0.0 {
                assert!(lost > -1e-10, "{lost}");
            }
            gained = gained.max(of(&text.replace("friction: mu", "law: newton, friction: mu")));
        }
    }
    assert!(gained > 1e-3, "{gained}");
}

#[test]
fn coefficients_and_branches_are_refused_by_name() {
    let message = |text: &str| {
        let Instance { model, settings } = instance(text, &Overrides::default());
        match simulation::run(&model, &settings, &mut Silent).failure {
            Some(RunFailure::Step(error)) => error.describe(&model).to_string(),
            other => panic!("{other:?}"),
        }
    };
    let text = message(&DISK.replace("friction: mu", "friction: mu - t"));
    assert!(
        text.contains("event `ground` has a restitution that is not from 0 to 1, or a friction below 0"),
        "{text}"
    );
}
