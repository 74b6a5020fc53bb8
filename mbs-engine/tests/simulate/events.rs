//! Runs with events against closed forms and independent numbers.

use crate::common::shipped;
use mbs_codegen::analysis::Analysed;
use mbs_codegen::model::{Formulation, Integrator, Model};
use mbs_engine::Method;
use mbs_engine::gradient;
use mbs_engine::simulation::{self, Instance, Overrides, Record, Silent};
use std::ops::ControlFlow;

pub(crate) fn model(text: &str) -> Model {
    match mbs_codegen::read("model.yaml", text) {
        Ok((model, _)) => model,
        Err(diagnostics) => panic!("{}", diagnostics.render("model.yaml", text)),
    }
}

pub(crate) fn instance(text: &str, overrides: &Overrides) -> Instance {
    Instance::of_dynamics(&Analysed::of(model(text)), None, &[], overrides).expect("an instance")
}

pub(crate) fn run(text: &str, overrides: &Overrides) -> Record {
    let Instance { model, settings } = instance(text, overrides);
    simulation::run(&model, &settings, &mut Silent)
}

fn times(record: &Record) -> Vec<f64> {
    record.seen.events.iter().map(|event| event.t).collect()
}

/// Objectives, their gradient by rows, and events of a differentiated run.
pub(crate) fn differentiated(text: &str, overrides: &Overrides) -> gradient::Found {
    differentiated_model(&model(text), overrides)
}

fn differentiated_model(source: &Model, overrides: &Overrides) -> gradient::Found {
    try_differentiated(source, overrides).unwrap_or_else(|error| panic!("{error}"))
}

/// A model with the bundles of its gradient, and its settings.
pub(crate) fn to_differentiate(source: &Model, overrides: &Overrides) -> Instance {
    let analysed = Analysed::of(source.clone());
    let settings =
        simulation::Settings::of_dynamics(&source.simulation, analysed.is_constrained(), overrides);
    let settings = settings.expect("settings");
    let bundles = gradient::bundles(&settings.simulation, analysed.is_constrained());
    Instance::new(&analysed, None, &[], settings, &bundles).expect("an instance")
}

pub(crate) fn try_differentiated(source: &Model, overrides: &Overrides) -> Result<gradient::Found, String> {
    let Instance { model, settings } = to_differentiate(source, overrides);
    let start = gradient::start(&model, &settings.simulation).expect("a start");
    let method = Method::of(&settings.simulation, settings.constrained, &start.scale);
    gradient::run(&model, &method, &settings.simulation, start, |_| ControlFlow::Continue(()))
        .map_err(|error| error.describe(&model).to_string())
}

pub(crate) fn close(what: &str, found: f64, expected: f64, tolerance: f64) {
    let error = (found - expected).abs();
    assert!(
        error <= tolerance * expected.abs().max(1.0),
        "{what}: {found} against {expected}, off by {error:.2e}"
    );
}

const G: f64 = 9.81;
const E: f64 = 0.8;

/// Time, state after the fall, and derivatives by (g, e, h), of bounce k from height h.
pub(crate) fn bounce(k: i32) -> (f64, [f64; 3]) {
    let fall = (2.0 / G).sqrt();
    // t_k = fall (1 + 2 Σ e^i)
    let sum: f64 = (1..=k).map(|i| E.powi(i)).sum();
    let slope: f64 = (1..=k).map(|i| f64::from(i) * E.powi(i - 1)).sum();
    let t = fall * (1.0 + 2.0 * sum);
    (t, [-0.5 * t / G, 2.0 * fall * slope, 0.5 * t])
}

#[test]
fn a_ball_bounces_as_the_closed_form_says() {
    let text = shipped("bouncing_ball");
    for integrator in
        [Integrator::Rk4, Integrator::Trapezoidal, Integrator::DormandPrince, Integrator::Dop853]
    {
        for step in [0.01, 0.037, 0.3] {
            let overrides = Overrides {
                integrator: Some(integrator),
                step: Some(step),
                end: Some(4.03),
                ..Overrides::default()
            };
            let record = run(&text, &overrides);
            assert!(record.failure.is_none(), "{integrator:?} {step}: {:?}", record.failure);
            let found = times(&record);
            assert!(found.len() >= 21, "{integrator:?} {step}: {found:?}");
            for (k, &t) in found.iter().enumerate() {
                close(&format!("{integrator:?} {step} bounce {k}"), t, bounce(k as i32).0, 1e-10);
            }
            // m γ (1 + e)
            let impulse = record.seen.events[1].impulses[0];
            close("impulse", impulse, 2.0 * (2.0 * G).sqrt() * E * (1.0 + E), 1e-10);
            assert!(record.seen.balance.relative_error().is_some_and(|error| error < 1e-12));
        }
    }
}

#[test]
fn gradients_of_a_bouncing_ball_are_those_of_the_closed_form() {
    let text = shipped("bouncing_ball");
    for integrator in [Integrator::Rk4, Integrator::DormandPrince, Integrator::Dop853] {
        let overrides = Overrides {
            integrator: Some(integrator),
            step: Some(0.037),
            end: Some(4.03),
            ..Overrides::default()
        };
        let found = differentiated(&text, &overrides);
        assert!(found.events.len() >= 21);
        for (k, event) in found.events.iter().enumerate() {
            let (t, slopes) = bounce(k as i32);
            close("time", event.t, t, 1e-10);
            for (found, expected) in event.derivatives.iter().zip(slopes) {
                close(&format!("{integrator:?} derivative of bounce {k}"), *found, expected, 1e-10);
            }
        }
        // z(T) = v τ − g τ²/2 with v = g fall e^(n+1), τ = T − t_n
        let n = found.events.len() as i32 - 1;
        let (t, slopes) = bounce(n);
        let (fall, tau) = ((2.0 / G).sqrt(), 4.03 - t);
        let v = G * fall * E.powi(n + 1);
        let v_by = [0.5 * v / G, f64::from(n + 1) * v / E, 0.5 * v];
        close("height", found.objectives[0], v * tau - 0.5 * G * tau * tau, 1e-10);
        for (k, by) in ["g", "e", "h"].into_iter().enumerate() {
            let explicit = if k == 0 { -0.5 * tau * tau } else { 0.0 };
            let expected = v_by[k] * tau - (v - G * tau) * slopes[k] + explicit;
            // Steps of step control are partly tiny: rounding shows.
            let tolerance = if integrator == Integrator::Rk4 { 1e-10 } else { 2e-9 };
            close(&format!("{integrator:?} height by {by}"), found.of_objective(0)[k], expected, tolerance);
        }
    }
}

#[test]
fn accumulation_and_rest_are_refused_by_name() {
    let text = shipped("bouncing_ball");
    let failure = |text: &str, end: f64| {
        let Instance { model, settings } =
            instance(text, &Overrides { end: Some(end), ..Overrides::default() });
        match simulation::run(&model, &settings, &mut Silent).failure {
            Some(simulation::RunFailure::Step(error)) => error.describe(&model).to_string(),
            other => panic!("{other:?}"),
        }
    };
    let message = failure(&text, 5.0);
    assert!(message.contains("event `bounce` comes ever faster"), "{message}");
    let message = failure(&text.replace("restitution: e", "restitution: 0"), 5.0);
    assert!(message.contains("event `bounce` is at rest"), "{message}");
    // A restitution may become what it must not be.
    let message = failure(&text.replace("restitution: e", "restitution: e + 0.5*t"), 2.0);
    assert!(message.contains("event `bounce` has a restitution that is not from 0 to 1"), "{message}");
    let message = failure(&text.replace("start: h", "start: -h"), 5.0);
    assert!(message.contains("event `bounce` has happened before the start"), "{message}");
}

/// Guesses of body coordinates count for nothing at a restart, on the way back, too.
#[test]
fn adjoints_through_events_in_absolute_coordinates() {
    for (name, end) in [("bouncing_ball", 1.0), ("ratchet", 0.6), ("knee_lock", 0.32)] {
        let text = format!("{}\ncoordinates: absolute\n", shipped(name));
        let source = model(&text);
        let overrides = Overrides {
            formulation: Some(Formulation::Ali3p),
            integrator: Some(Integrator::Trapezoidal),
            step: Some(5e-3),
            end: Some(end),
            ..Overrides::default()
        };
        let Instance { model, settings } = to_differentiate(&source, &overrides);
        let start = gradient::start(&model, &settings.simulation).expect("a start");
        let method = Method::of(&settings.simulation, settings.constrained, &start.scale);
        let direct = try_differentiated(&source, &overrides).expect("a gradient");
        let back = gradient::adjoint::run(&model, &method, &settings.simulation, start, 1 << 24, |_| {
            ControlFlow::Continue(())
        });
        let back = back.unwrap_or_else(|error| panic!("{name}: {}", error.describe(&model)));
        assert!(!direct.events.is_empty(), "{name}");
        for i in 0..direct.objectives.len() {
            let (a, b) = (direct.of_objective(i), back.of_objective(i));
            let size = a.iter().fold(1e-12, |size: f64, x| size.max(x.abs()));
            let error = a.iter().zip(b).fold(0.0, |worst: f64, (a, b)| worst.max((a - b).abs())) / size;
            assert!(error < 1e-8, "{name}: {a:?} {b:?}");
        }
    }
}

/// Objectives do not write over what implicit stages keep: the interpreter has the bits of machine code.
#[test]
fn implicit_stages_have_the_same_bits_by_tape_and_machine_code() {
    let text = shipped("five_bar_bouncing");
    let (integrator, formulation) = (Some(Integrator::Sdirk4), Some(Formulation::Index1));
    let overrides =
        Overrides { integrator, formulation, step: Some(1e-2), end: Some(0.6), ..Overrides::default() };
    let states = [mbs_engine::Engine::Tape, mbs_engine::Engine::Jit].map(|engine| {
        let Instance { mut model, settings } = instance(&text, &overrides);
        model.set_engine(engine, None, mbs_engine::Fusing::AsCompiled);
        let record = simulation::run(&model, &settings, &mut Silent);
        assert!(record.failure.is_none(), "{:?}", record.failure);
        (record.seen.now.z.clone(), times(&record))
    });
    assert_eq!(states[0], states[1]);
}

/// How a run fails.
fn failure(text: &str) -> String {
    let Instance { model, settings } = instance(text, &Overrides::default());
    match simulation::run(&model, &settings, &mut Silent).failure {
        Some(simulation::RunFailure::Step(error)) => error.describe(&model).to_string(),
        other => panic!("{other:?}"),
    }
}

/// A ball, and a rod that falls flat, with these events.
fn falling(events: &str) -> String {
    format!(
        "
mbs: 1
name: falling
gravity: [0, 0, -9.81]
bodies:
  ball: {{mass: 1}}
  carriage: {{mass: 0.1}}
  rod: {{mass: 1, inertia: [0.02, 0.02, 0.02], points: {{a: [0.5, 0, 0], b: [-0.5, 0, 0]}}}}
joints:
  drop: {{type: prismatic, parent: ground, child: ball, axis: [0, 0, 1], start: 1}}
  lift: {{type: prismatic, parent: ground, child: carriage, axis: [0, 0, 1], start: 1.1}}
  turn: {{type: revolute, parent: carriage, child: rod, axis: [0, 1, 0]}}
events:
{events}
simulation: {{end: 0.6, step: 1e-2}}
"
    )
}

#[test]
fn what_stops_a_body_never_lets_it_through() {
    let bounce = "{when: drop.displacement, direction: falling, then: {impact: {restitution: 0.5}}}";
    let alone = run(&falling(&format!("  one: {bounce}")), &Overrides::default());
    assert!(alone.failure.is_none() && alone.seen.events.len() == 1);
    // Two impacts of one gap: the second would push the ball through the floor.
    let twice = falling(&format!("  one: {bounce}\n  two: {}", bounce.replace("when: ", "when: 2*")));
    let message = failure(&twice);
    assert!(message.contains("event `two` is an impact that happens together with event `one`"), "{message}");
    // Both ends of a rod at one time: the impact of one presses the other into the floor.
    let ends = ["a", "b"].map(|end| {
        format!(
            "  {end}: {{when: pos(rod.{end}).z, direction: falling, then: {{impact: {{restitution: 0.8}}}}}}"
        )
    });
    let message = failure(&falling(&ends.join("\n")));
    assert!(message.contains("is an impact that happens together with"), "{message}");
    // Two bodies that hit the floor at one time have nothing to do with each other.
    let others = format!(
        "  one: {bounce}\n  two: {{when: lift.displacement - 0.1, direction: falling, then: {{impact: {{restitution: 0.5}}}}}}"
    );
    let both = run(&falling(&others), &Overrides::default());
    assert!(both.failure.is_none() && both.seen.events.len() == 2, "{:?}", both.failure);
    // A body that rests at a wall, and that another one hits.
    let cradle = "  ab: {when: drop.displacement - lift.displacement, direction: falling, then: {impact: {restitution: 1}}}\n  \
                  wall: {when: lift.displacement - 0.1, direction: falling, then: {impact: {restitution: 0.5}}}";
    let text = falling(cradle)
        .replace("start: 1.1", "start: 0.1")
        .replace("gravity: [0, 0, -9.81]", "gravity: [0, 0, 0]");
    let text = text.replace("start: 1}", "start: {value: 1, rate: -5}}");
    let message = failure(&text);
    assert!(message.contains("event `wall` is an impact that happens together with event `ab`"), "{message}");
    // Bounces that come sooner than an impact may follow itself.
    let late = bounce.replace("then:", "minimum_interval: 0.05, then:");
    let text = falling(&format!("  one: {late}")).replace("end: 0.6", "end: 3");
    let message = failure(&text);
    assert!(message.contains("closes its gap again before its `minimum_interval` is over"), "{message}");
}

/// Whether a crossing counts does not depend on where steps end.
#[test]
fn least_times_and_conditions_end_within_steps() {
    let ball = shipped("bouncing_ball");
    let with =
        |line: &str| ball.replace("    direction: falling\n", &format!("    direction: falling\n{line}"));
    // Bounces are at 0.4515 and 1.1740, 0.7224 apart.
    let late = with("    armed: t - 0.4\n");
    let never = with("    armed: 0.4 - t\n");
    let cases = [
        (with("    minimum_interval: 0.5\n"), 2),
        (with("    minimum_interval: 0.72\n"), 2),
        (with("    minimum_interval: 0.73\n"), 1),
        (late, 2),
        (never, 0),
    ];
    for (text, count) in cases {
        for integrator in
            [Integrator::Rk4, Integrator::DormandPrince, Integrator::Dop853, Integrator::Trapezoidal]
        {
            for step in [0.01, 0.3, 0.5, 0.8] {
                let (integrator, step) = (Some(integrator), Some(step));
                let record =
                    run(&text, &Overrides { integrator, step, end: Some(1.6), ..Overrides::default() });
                // A bounce that does not count would let the ball through the floor.
                assert_eq!(record.failure.is_none(), count != 1, "{:?}", record.failure);
                let found = times(&record);
                assert_eq!(found.len(), count, "{integrator:?} {step:?}: {found:?}");
                for (k, &t) in found.iter().enumerate() {
                    close("bounce", t, bounce(k as i32).0, 1e-10);
                }
            }
        }
    }
}

/// The rule of Corner 2018, appendix C: one velocity of point 2 is reversed, the other is kept.
pub(crate) fn chosen_rates() -> String {
    shipped("five_bar_bouncing").replace(
        "then: {impact: {restitution: e}}",
        "then:\n      reset:\n        - {rate: vel(bar_12.p2).y, to: -e*vel(bar_12.p2).y}\n        - {rate: vel(bar_12.p2).x, to: vel(bar_12.p2).x}",
    )
}

#[test]
fn a_five_bar_bounces_as_independent_code_says() {
    // Numbers of independent code: variational equations and saltation matrices, tolerance 1e−13.
    let expected = [
        (0.311827604187, [0.372364562, 0.0, -1.15103021]),
        (1.77974386704, [1.37862206, -0.199371489, -6.79017825]),
        (2.45379317883, [3.72716006, -0.596313573, -14.062534]),
    ];
    let found = differentiated(&chosen_rates(), &Overrides { end: Some(2.6), ..Overrides::default() });
    assert_eq!(found.events.len(), 3);
    for (event, (t, slopes)) in found.events.iter().zip(expected) {
        close("time", event.t, t, 1e-8);
        for (found, expected) in event.derivatives.iter().zip(slopes) {
            close("its derivative", *found, expected, 1e-7);
        }
    }
    // The same times by ALI3-P, of order 2.
    let implicit = Overrides {
        integrator: Some(Integrator::Trapezoidal),
        formulation: Some(Formulation::Ali3p),
        end: Some(1.0),
        ..Overrides::default()
    };
    let errors = [2e-3, 1e-3].map(|step| {
        let record = run(&chosen_rates(), &Overrides { step: Some(step), ..implicit.clone() });
        assert!(record.failure.is_none(), "{:?}", record.failure);
        assert!(record.seen.norms.is_some_and(|norms| norms.velocity < 1e-10 && norms.acceleration < 1e-8));
        times(&record)[0] - 0.311827604187
    });
    assert!((errors[0] / errors[1] - 4.0).abs() < 0.2, "{errors:?}");
}

#[test]
fn an_impulse_along_the_normal_keeps_energy() {
    let record = run(&shipped("five_bar_bouncing"), &Overrides { end: Some(2.0), ..Overrides::default() });
    assert!(record.failure.is_none() && !record.seen.events.is_empty());
    let balance = &record.seen.balance;
    assert!(balance.at_events.abs() < 1e-11 * balance.largest_kinetic, "{}", balance.at_events);
    let less = shipped("five_bar_bouncing").replace("e: {value: 1,", "e: {value: 0.5,");
    let record = run(&less, &Overrides { end: Some(1.0), ..Overrides::default() });
    assert!(record.seen.balance.at_events < 0.0);
}

/// Dry friction on the slider, whose direction an event sets.
pub(crate) fn friction() -> String {
    shipped("slider_crank")
        .replace("parameters:\n", "inputs: {way: 1}\nparameters:\n  Fc: 0.05\n")
        .replace("forces:\n", "forces:\n  friction: {type: joint_force, coordinate: slide, value: -Fc*way}\n")
        .replace("sensitivity: [k, c]", "sensitivity: [k, Fc]\nevents:\n  back: {when: rate(slide), direction: falling, then: {set: {way: -1}}}\n  forth: {when: rate(slide), direction: rising, then: {set: {way: 1}}}")
        .replace("objectives:\n", "objectives:\n  x: {terminal: slide.displacement}\n  xd: {terminal: rate(slide)}\n  thdd: accel(pivot)^2\n")
}

#[test]
fn friction_that_changes_its_direction_is_exact() {
    let overrides = Overrides {
        integrator: Some(Integrator::Rk4),
        formulation: Some(Formulation::Index1),
        step: Some(5e-3),
        ..Overrides::default()
    };
    let found = differentiated(&friction(), &overrides);
    let expected = [2.61779642749, 4.85156912738, 7.25062775791, 9.38487286278];
    assert_eq!(found.events.len(), 4);
    for (event, t) in found.events.iter().zip(expected) {
        close("time", event.t, t, 1e-8);
    }
    let expected = [
        (1.114771386, [0.1195360302, 1.673043256]),
        (0.1812919708, [0.2283190981, 0.6082753208]),
        (2.079900802, [0.7056105011, -1.179113614]),
        (3.114545425, [0.3717369951, -4.201496075]),
    ];
    for (i, (value, slopes)) in expected.into_iter().enumerate() {
        close("objective", found.objectives[i], value, 1e-8);
        for (found, expected) in found.of_objective(i).iter().zip(slopes) {
            close("derivative", *found, expected, 1e-8);
        }
    }
}

/// A pendulum's upper limit that is passed and come back to within one step, and an event that stops the run.
#[test]
fn short_visits_are_found_and_runs_are_stopped() {
    let text = "
mbs: 1
name: thrown
gravity: [0, 0, -10]
parameters: {v: 10.0, top: 4.99}
bodies:
  ball: {mass: 1}
joints:
  fall: {type: prismatic, parent: ground, child: ball, axis: [0, 0, 1], start: {value: 0.001, rate: v}}
events:
  up: {when: fall.displacement - top, direction: rising}
  down: {when: fall.displacement - top, direction: falling}
  end: {when: fall.displacement, direction: falling, then: {stop: true}}
objectives:
  time: {integrand: 1}
sensitivity: [v]
simulation: {end: 5, step: 0.4, integrator: rk4}
";
    // top = 0.001 + v²/2g − g (t − v/g)²/2
    let away = (2.0 * (0.001 + 5.0 - 4.99) / 10.0_f64).sqrt();
    let end = 1.0 + (2.0 * 5.001 / 10.0_f64).sqrt();
    let found = differentiated(text, &Overrides::default());
    let found_times: Vec<f64> = found.events.iter().map(|event| event.t).collect();
    assert_eq!(found_times.len(), 3, "{found_times:?}");
    for (t, expected) in found_times.into_iter().zip([1.0 - away, 1.0 + away, end]) {
        close("time", t, expected, 1e-12);
    }
    close("time as an objective", found.objectives[0], end, 1e-12);
    close(
        "its derivative",
        found.of_objective(0)[0],
        0.1 + 1.0 / (2.0 * 5.001 * 10.0_f64).sqrt() * 1.0,
        1e-12,
    );
}

/// The derivative of the discrete run: differences of whole runs by the same steps.
#[test]
fn gradients_through_events_are_those_of_the_discrete_run() {
    let explicit = Overrides {
        integrator: Some(Integrator::Rk4),
        formulation: Some(Formulation::Index1),
        end: Some(1.9),
        step: Some(0.021),
        ..Overrides::default()
    };
    let implicit = Overrides {
        integrator: Some(Integrator::Trapezoidal),
        formulation: Some(Formulation::Ali3p),
        newton_tolerance: Some(1e-13),
        ..explicit.clone()
    };
    let alpha = Overrides {
        integrator: Some(Integrator::GeneralizedAlpha { spectral_radius: 0.7 }),
        ..implicit.clone()
    };
    let ball = Overrides { step: Some(0.037), ..implicit.clone() };
    let cases = [
        ("five-bar, index 1", chosen_rates(), explicit.clone()),
        ("five-bar, ali3p", chosen_rates(), implicit.clone()),
        ("five-bar, impulse, generalized-alpha", shipped("five_bar_bouncing"), alpha),
        ("ball, trapezoidal", shipped("bouncing_ball"), ball),
        ("knee, index 1", shipped("knee_lock"), Overrides { step: Some(7e-3), ..explicit.clone() }),
        ("knee, ali3p", shipped("knee_lock"), Overrides { step: Some(7e-3), ..implicit.clone() }),
        ("caught, ali3p", shipped("catch_and_release"), Overrides { end: Some(2.2), ..implicit.clone() }),
        ("leg, index 1", shipped("hopping_leg"), Overrides { step: Some(3e-3), ..explicit.clone() }),
        ("leg, ali3p", shipped("hopping_leg"), Overrides { step: Some(3e-3), ..implicit.clone() }),
        ("ratchet, index 1", shipped("ratchet"), Overrides { end: Some(5.0), ..explicit.clone() }),
        ("ratchet, ali3p", shipped("ratchet"), Overrides { end: Some(5.0), ..implicit.clone() }),
        (
            "driven, rk4",
            DRIVEN.into(),
            Overrides { step: Some(0.013), end: Some(4.0), ..Overrides::default() },
        ),
        (
            "driven, trapezoidal",
            DRIVEN.into(),
            Overrides { step: Some(0.013), end: Some(4.0), ..implicit.clone() },
        ),
        ("shaken, index 1", shaken(), Overrides { end: Some(1.0), ..explicit.clone() }),
        ("shaken, ali3p", shaken(), Overrides { end: Some(1.0), ..implicit.clone() }),
    ];
    for (what, text, overrides) in cases {
        is_derivative_of_the_run(what, &text, &overrides);
    }
}

/// Compares objectives and times of events with differences of whole runs by the same steps.
pub(crate) fn is_derivative_of_the_run(what: &str, text: &str, overrides: &Overrides) {
    let found = differentiated(text, overrides);
    assert!(!found.events.is_empty(), "{what}");
    let source = model(text);
    for (k, name) in source.sensitivity_names(&source.sensitivity).iter().enumerate() {
        let value = source.default_parameters()
            [source.sensitivity_parameter(source.sensitivity[k]).expect("a parameter")];
        // So little that no event moves over a node, where the discrete run is not smooth.
        let by = 2e-6 * value.abs().max(0.1);
        let at = |by: f64| {
            let mut moved = source.clone();
            let place = moved.parameters.iter().position(|p| p.name == *name).expect("a parameter");
            moved.parameters[place].value = mbs_codegen::model::ParameterValue::Number(value + by);
            moved.parameters[place].max = None;
            differentiated_model(&moved, overrides)
        };
        let [a, b, c, d] = [-2.0, -1.0, 1.0, 2.0].map(|part| at(part * by));
        // Fourth order.
        let difference =
            |f: &dyn Fn(&gradient::Found) -> f64| (f(&a) - 8.0 * f(&b) + 8.0 * f(&c) - f(&d)) / (12.0 * by);
        for i in 0..found.objectives.len() {
            let expected = difference(&|found| found.objectives[i]);
            let scale = found.objectives[i].abs().max(1e-6) / value.abs().max(0.1) + expected.abs();
            let error = (found.of_objective(i)[k] - expected).abs();
            assert!(
                error < 2e-7 * scale,
                "{what}: objective {i} by {name}: {} against {expected}",
                found.of_objective(i)[k]
            );
        }
        for (n, event) in found.events.iter().enumerate() {
            let expected = difference(&|found| found.events[n].t);
            let error = (event.derivatives[k] - expected).abs();
            assert!(
                error < 2e-7 * (expected.abs() + 1.0),
                "{what}: event {n} by {name}: {} against {expected}",
                event.derivatives[k]
            );
        }
    }
}

/// A ball on a plate that shakes, in wind that changes: forces, the gap and objectives name the time; the run ends where the ball stands still.
pub(crate) const DRIVEN: &str = "
mbs: 1
name: driven
gravity: [0, 0, -9.81]
parameters: {A: 2.5, w: 7, e: 0.8, h: 0.4}
bodies: {ball: {mass: 0.7}, load: {mass: 0.2}}
joints:
  fall: {type: prismatic, parent: ground, child: ball, axis: [0, 0, 1], start: h}
  hang: {type: prismatic, parent: ball, child: load, axis: [0, 0, 1], start: 0}
forces:
  wind: {type: joint_force, coordinate: fall, value: A*sin(w*t)}
  spring: {type: torsional_spring, coordinate: hang, stiffness: 40*(1 + 0.2*cos(w*t)), damping: 0.1, natural_angle: 0}
events:
  bounce: {when: fall.displacement - 0.02*sin(w*t), direction: falling, then: {impact: {restitution: e}}}
  ends: {when: rate(fall), direction: falling, armed: t - 1.2, then: {stop: true}}
objectives:
  path: {integrand: \"cos(3*t)*fall.displacement^2 + t*acc(load).z\", terminal: t*hang.displacement}
sensitivity: [A, w, e, h]
simulation: {end: 4, step: 0.013, integrator: rk4}
";

/// The five-bar linkage on a platform that moves, and that it leaves where the force of the platform changes its sign.
fn shaken() -> String {
    let gap = "pos(bar_12.p2).y - y_g";
    let moving = "pos(bar_12.p2).y - y_g - 0.05*sin(14*t)";
    let release = "release: {when: t - t_r, direction: rising,";
    let text = shipped("catch_and_release");
    assert!(text.contains(release));
    text.replace(gap, moving)
        .replace(release, "release: {when: multiplier(platform), direction: both,")
        .replace("sensitivity: [L_s1, y_g, t_r]", "sensitivity: [L_s1, y_g, k_1]")
}

/// Values and their derivatives of independent code.
pub(crate) type Expected<'a> = &'a [(&'a str, f64, &'a [f64])];

pub(crate) fn compare(found: &gradient::Found, source: &Model, expected: Expected<'_>, tolerance: f64) {
    for &(name, value, slopes) in expected {
        let k = source.objectives.iter().position(|objective| objective.name == name).expect(name);
        close(name, found.objectives[k], value, tolerance);
        for (i, (&found, &expected)) in found.of_objective(k).iter().zip(slopes).enumerate() {
            close(&format!("{name} by parameter {i}"), found, expected, 10.0 * tolerance);
        }
    }
}

fn compare_events(found: &gradient::Found, expected: &[(f64, &[f64])], tolerance: f64) {
    for (event, &(t, slopes)) in found.events.iter().zip(expected) {
        close("time of an event", event.t, t, tolerance);
        for (&found, &expected) in event.derivatives.iter().zip(slopes) {
            close("its derivative", found, expected, 10.0 * tolerance);
        }
    }
    assert!(found.events.len() >= expected.len());
}

/// Numbers of independent code for the knee that locks: value, and derivatives by m1, k0, ar.
pub(crate) const KNEE: Expected<'_> = &[
    ("thigh", 0.3932221165, &[0.2387280373, -0.5475386109, 0.005361754173]),
    ("knee", 0.0, &[0.0, 1.0, 0.0]),
    ("thigh_rate", 2.313135285, &[-0.694437727, 0.192215923, 0.4668504059]),
    ("swing", 0.8449342382, &[-0.00629899242, -0.499650328, 0.05961308675]),
    ("torque", 0.1817496883, &[0.1179531132, -1.618705825, -0.02780650086]),
];
const KNEE_EVENTS: &[(f64, &[f64])] = &[
    (0.244496432501, &[-0.000256262361, 0.0640534885, 0.0]),
    (0.502159471192, &[-0.027439749, -0.0795268617, -0.342688816]),
    (0.515310491353, &[-0.0279477127, -0.149120849, -0.322847563]),
    (1.1722348687, &[0.00354861631, 0.066622521, -0.0267231281]),
];

#[test]
fn a_knee_locks_and_lets_go_as_independent_code_says() {
    let text = shipped("knee_lock");
    let found = differentiated(&text, &Overrides::default());
    compare_events(&found, KNEE_EVENTS, 1e-8);
    compare(&found, &model(&text), KNEE, 1e-8);
    let record = run(&text, &Overrides::default());
    assert!(record.failure.is_none(), "{:?}", record.failure);
    let norms = record.seen.norms.expect("norms");
    assert!(norms.position < 1e-10 && norms.velocity < 1e-10 && norms.acceleration < 1e-10, "{norms:?}");
    let impulse: f64 = record.seen.events.iter().flat_map(|event| &event.row_impulses).sum();
    close("impulse of the lock", impulse, -0.6616218341, 1e-8);
    close("energy lost", record.seen.balance.at_events, -3.785868194, 1e-8);
}

/// The same for the five-bar linkage that is caught and released: derivatives by L_s1, y_g, t_r.
pub(crate) const CAUGHT: Expected<'_> = &[
    ("x2", -0.02142945046, &[-1.920193748, -0.783971009, -0.703594913]),
    ("vy2", -0.8021044249, &[-5.830545817, -1.160890729, 2.74307462]),
    ("psi2", 5.041185503, &[27.62953258, -12.98048508, -1.112162738]),
    ("load", 218.4687465, &[1449.190524, -3883.493578, 104.1951882]),
];
const CAUGHT_EVENTS: &[(f64, &[f64])] =
    &[(0.311827604187, &[0.372364562, -1.15103021, 0.0]), (2.0, &[0.0, 0.0, 1.0])];

#[test]
fn a_linkage_is_caught_and_released_as_independent_code_says() {
    let text = shipped("catch_and_release");
    let source = model(&text);
    let found = differentiated(&text, &Overrides::default());
    compare_events(&found, CAUGHT_EVENTS, 1e-8);
    compare(&found, &source, CAUGHT, 1e-8);
    let record = run(&text, &Overrides::default());
    let norms = record.seen.norms.expect("norms");
    assert!(norms.position < 1e-10 && norms.velocity < 1e-10 && norms.acceleration < 1e-9, "{norms:?}");
    let place = record.seen.events[0].row_impulses.len() - 1;
    close("impulse of the platform", record.seen.events[0].row_impulses[place], 1.904261386, 1e-8);
    close("energy lost", record.seen.balance.at_events, -0.8271987024, 1e-8);
    // ALI3-P, of order 2, extrapolated.
    let implicit = |step| Overrides {
        integrator: Some(Integrator::Trapezoidal),
        formulation: Some(Formulation::Ali3p),
        step: Some(step),
        ..Overrides::default()
    };
    let runs = [2e-3, 1e-3, 5e-4].map(|step| differentiated(&text, &implicit(step)));
    for (k, &(name, value, slopes)) in CAUGHT.iter().enumerate() {
        let order = |exact: f64, of: &dyn Fn(&gradient::Found) -> f64, what: &str| {
            let [a, b, c] = [&runs[0], &runs[1], &runs[2]].map(of);
            let (ratio, extrapolated) = ((a - b) / (b - c), (4.0 * c - b) / 3.0);
            // Where in its step the event lies changes the error by a part of the step.
            assert!((ratio - 4.0).abs() < 0.7, "{what}: {ratio}");
            close(what, extrapolated, exact, 1e-6);
        };
        order(value, &|found| found.objectives[k], name);
        for (i, &slope) in slopes.iter().enumerate() {
            order(slope, &|found| found.of_objective(k)[i], &format!("{name} by parameter {i}"));
        }
    }
}

#[test]
fn a_contact_opens_by_its_force() {
    for name in ["hopping_leg", "ratchet"] {
        let text = shipped(name);
        for (integrator, formulation) in
            [(Integrator::Rk4, Formulation::Index1), (Integrator::Trapezoidal, Formulation::Ali3p)]
        {
            let overrides = Overrides {
                integrator: Some(integrator),
                formulation: Some(formulation),
                ..Overrides::default()
            };
            let record = run(&text, &overrides);
            assert!(record.failure.is_none(), "{name}: {:?}", record.failure);
            assert!(record.seen.events.len() >= 4, "{name}: {:?}", record.seen.events);
            assert!(record.seen.balance.at_events <= 1e-12, "{name}: {}", record.seen.balance.at_events);
        }
    }
}

/// Numbers of independent code for the vehicle that is dropped, at 1.9 s: derivatives by L0R, kt, hd.
pub(crate) const DROPPED: Expected<'_> = &[
    ("z", 0.5728887614, &[0.3466647678, 1.087380717e-06, -1.584423236]),
    ("phi", 0.02990117267, &[-0.2623344711, 5.017125221e-07, -0.6407663596]),
    ("zd", 1.005185199, &[-2.191696008, -1.016643698e-06, 0.839984853]),
    ("comfort", 209.5925407, &[-1571.666188, -6.94060695e-05, 556.9325415]),
    ("roll", 0.003781085365, &[0.1050627152, -7.413046216e-09, 0.04815495161]),
    ("load", 99.7668406, &[-235.3374082, -2.110239801e-05, 157.856383]),
];

#[test]
fn a_vehicle_falls_as_independent_code_says() {
    let text = shipped("vehicle_drop");
    let found = differentiated(&text, &Overrides::default());
    let times = [
        0.203013271639,
        0.224423380092,
        0.588122104972,
        0.600676735256,
        0.849426112492,
        0.940771011853,
        1.29781849541,
        1.56595319866,
    ];
    assert_eq!(found.events.len(), times.len());
    for (event, t) in found.events.iter().zip(times) {
        close("time", event.t, t, 1e-8);
    }
    compare(&found, &model(&text), DROPPED, 1e-8);
    let later = run(&text, &Overrides { end: Some(2.28), ..Overrides::default() });
    assert!(later.failure.is_none(), "{:?}", later.failure);
    assert_eq!(later.seen.events.len(), 14);
    let reversal = later.seen.events.iter().find(|event| event.impulses.len() == 5).expect("a reversal");
    close("reversal", reversal.t, 2.2093238059, 1e-8);
    let kicked = text.replace("rule: {value: 0,", "rule: {value: 1,");
    let kicked = run(&kicked, &Overrides { end: Some(2.28), ..Overrides::default() });
    assert_eq!(kicked.seen.events.len(), 12);
}

#[test]
fn a_state_whose_constraints_do_not_hold_is_refused_by_name() {
    let text = shipped("catch_and_release")
        .replace("catch: {when: pos(bar_12.p2).y - y_g,", "catch: {when: pos(bar_12.p2).y - y_g - 0.01,");
    let Instance { model, settings } = instance(&text, &Overrides::default());
    let message = match simulation::run(&model, &settings, &mut Silent).failure {
        Some(simulation::RunFailure::Step(error)) => error.describe(&model).to_string(),
        other => panic!("{other:?}"),
    };
    assert!(message.contains("event `catch` adds") && message.contains("`platform`"), "{message}");
    assert!(message.contains("violated by 1.0000000"), "{message}");
}

/// Dry friction as a branch that the generator makes an event of.
fn promoted() -> String {
    shipped("slider_crank")
        .replace("parameters:\n", "switches: exact\nparameters:\n  Fc: 0.05\n")
        .replace(
            "forces:\n",
            "forces:\n  friction: {type: joint_force, coordinate: slide, value: -Fc*sign(rate(slide))}\n",
        )
        .replace("sensitivity: [k, c]", "sensitivity: [k, Fc]")
        .replace(
            "objectives:\n",
            "objectives:\n  x: {terminal: slide.displacement}\n  xd: {terminal: rate(slide)}\n",
        )
}

#[test]
fn a_sign_is_promoted_to_an_event() {
    let text = promoted();
    let overrides = Overrides {
        integrator: Some(Integrator::Rk4),
        formulation: Some(Formulation::Index1),
        step: Some(5e-3),
        ..Overrides::default()
    };
    let found = differentiated(&text, &overrides);
    let times = [2.61779642749, 4.85156912738, 7.25062775791, 9.38487286278];
    compare_events(&found, &times.map(|t| (t, &[][..])), 1e-8);
    let expected: Expected<'_> = &[
        ("x", 1.114771386, &[0.1195360302, 1.673043256]),
        ("xd", 0.1812919708, &[0.2283190981, 0.6082753208]),
        ("G", 3.114545425, &[0.3717369951, -4.201496075]),
    ];
    compare(&found, &model(&text), expected, 1e-8);
}

/// A stop with preload on point 2 of the five-bar linkage: by a state, and by a branch that is promoted.
pub(crate) fn stops() -> [String; 2] {
    let law = "F0 + kc*(yc - pos(bar_12.p2).y) - cc*vel(bar_12.p2).y";
    let base = shipped("five_bar")
        .replace("parameters:\n", "parameters:\n  yc: -2.4\n  kc: 1000\n  cc: 10\n  F0: 5\n");
    let sensitivity = base.lines().find(|line| line.starts_with("sensitivity:")).expect("a list").to_string();
    let base = base.replace(&sensitivity, "sensitivity: [L_s1, yc, kc]").replace(
        "objectives:\n",
        "objectives:\n  x2: {terminal: pos(bar_12.p2).x}\n  vy2: {terminal: vel(bar_12.p2).y}\n  force: FORCE\n  time: TIME\n",
    );
    let judged = |text: String, force: &str, time: &str| text.replace("FORCE", force).replace("TIME", time);
    let by_state = base.replace("bodies:\n", "modes: {stop: [off, on]}\nbodies:\n").replace(
        "forces:\n",
        &format!("forces:\n  stop: {{type: force, at: bar_12.p2, value: [0, \"{law}\", 0], in: stop.on}}\n"),
    ) + "events:\n  on: {when: pos(bar_12.p2).y - yc, direction: falling, in: stop.off, then: {mode: stop.on}}\n  off: {when: pos(bar_12.p2).y - yc, direction: rising, in: stop.on, then: {mode: stop.off}}\n";
    let by_state = judged(by_state, &format!("\"stop.on*({law})^2\""), "stop.on");
    let by_branch = base.replace("bodies:\n", "switches: exact\nbodies:\n").replace(
        "forces:\n",
        &format!("forces:\n  stop: {{type: force, at: bar_12.p2, value: [0, \"if(pos(bar_12.p2).y < yc, {law}, 0)\", 0]}}\n"),
    );
    let within = |value: &str| format!("\"if(pos(bar_12.p2).y < yc, {value}, 0)\"");
    let by_branch = judged(by_branch, &within(&format!("({law})^2")), &within("1"));
    [by_state, by_branch]
}

const STOP_EVENTS: &[(f64, &[f64])] = &[
    (0.319192691022, &[0.257848926, -0.769699057]),
    (0.429644147631, &[0.142787643, -0.531318]),
    (1.06751944187, &[0.629002121, -1.99435934]),
    (1.17492639376, &[0.55224037, -1.74432123]),
];

/// Derivatives by L_s1, yc, kc.
pub(crate) const STOPPED: Expected<'_> = &[
    ("x2", 0.2605847262, &[-2.831484854, 1.433109131, 4.921301516e-05]),
    ("vy2", -1.085285, &[-7.086233554, 22.43753796, 0.0005757427601]),
    ("psi1", 0.4859511057, &[-2.694927283, -1.266473965, -3.172274415e-05]),
    ("psi3", 350.3429465, &[-276.5298291, -833.0965424, 0.08771406436]),
    ("force", 300.5974898, &[-1846.547367, 3715.331292, 0.3011435782]),
    ("time", 0.5766246087, &[-0.7487563353, 1.500111533, -0.0001383879226]),
];

#[test]
fn a_stop_with_preload_is_exact() {
    let overrides = Overrides {
        integrator: Some(Integrator::Rk4),
        formulation: Some(Formulation::Index1),
        step: Some(1e-3),
        ..Overrides::default()
    };
    for text in stops() {
        let found = differentiated(&text, &overrides);
        assert_eq!(found.events.len(), 12);
        compare_events(&found, STOP_EVENTS, 1e-8);
        compare(&found, &model(&text), STOPPED, 1e-7);
    }
}

/// A block that comes to rest under dry friction sticks, which a sign cannot say.
#[test]
fn sticking_is_recognised() {
    let text = "
mbs: 1
name: block
switches: exact
bodies: {block: {mass: 1}}
joints: {slide: {type: prismatic, parent: ground, child: block, axis: [1, 0, 0], start: {value: 0, rate: 1}}}
forces: {friction: {type: joint_force, coordinate: slide, value: -0.5*sign(rate(slide))}}
simulation: {end: 5, step: 0.01, integrator: rk4}
";
    let Instance { model, settings } = instance(text, &Overrides::default());
    let message = match simulation::run(&model, &settings, &mut Silent).failure {
        Some(simulation::RunFailure::Step(error)) => error.describe(&model).to_string(),
        other => panic!("{other:?}"),
    };
    assert!(message.contains("`friction.switch1` does not let go of zero"), "{message}");
    assert!(message.contains("t = 2"), "{message}");
}

/// The gradient by the adjoint, in this many bytes.
pub(crate) fn adjoint(text: &str, overrides: &Overrides, memory: usize) -> gradient::Found {
    try_adjoint(text, overrides, memory).unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn try_adjoint(
    text: &str,
    overrides: &Overrides,
    memory: usize,
) -> Result<gradient::Found, String> {
    let Instance { model, settings } = to_differentiate(&model(text), overrides);
    let start = gradient::start(&model, &settings.simulation).expect("a start");
    let method = Method::of(&settings.simulation, settings.constrained, &start.scale);
    let go_on = |_: mbs_runtime::AdjointNode<'_, f64>| ControlFlow::Continue(());
    gradient::adjoint::run(&model, &method, &settings.simulation, start, memory, go_on)
        .map_err(|error| error.describe(&model).to_string())
}

/// A spinning rod that falls on one end and then on the other, on a free joint.
pub(crate) const ROD: &str = "
mbs: 1
name: rod
gravity: [0, 0, -9.81]
parameters: {e: 0.7, L: 0.6, m: 1.3, w: 2.0}
inputs: {wind: 1}
bodies:
  rod: {mass: m, inertia: [0.03, 0.04, 0.02], points: {a: [0, 0, -L/2], b: [0, 0, L/2]}}
joints:
  free: {type: floating, parent: ground, child: rod, start: {position: [0.1, 0.2, 0.5], velocity: [0.3, 0, 0], angular_velocity: [0.5, w, 0.1]}}
forces:
  drag: {type: force, at: rod.a, value: \"[-0.3*wind, 0, 0] - 0.1*vel(rod.a)\"}
events:
  first: {when: pos(rod.a).z, direction: falling, then: {impact: {restitution: e}}}
  second: {when: pos(rod.b).z, direction: falling, then: {impact: {restitution: e}}}
  turn: {when: vel(rod.b).x, direction: both, then: {set: {wind: -1}}}
objectives:
  far: {terminal: \"pos(rod.b).x + pos(rod.a).z^2\"}
  haste: {integrand: \"dot(vel(rod.a), vel(rod.a)) + acc(rod.b).z\"}
sensitivity: [e, L, m, w]
simulation: {end: 1.3, step: 0.013, integrator: rk4}
";

/// Two equal pendulums that meet their stops at the same time, and a run that an event on an acceleration stops.
const TWINS: &str = "
mbs: 1
name: twins
gravity: [0, -9.81, 0]
parameters: {e: 0.6, L: 0.7, m: 1.3, limit: -0.2}
bodies:
  left: {mass: m, com: [0, -L, 0], inertia: [0, 0, 0.01], points: {tip: [0, -L, 0]}}
  right: {mass: m, com: [0, -L, 0], inertia: [0, 0, 0.01], points: {tip: [0, -L, 0]}}
joints:
  A: {type: revolute, parent: ground, child: left, axis: [0, 0, 1], start: 0.9}
  B: {type: revolute, parent: ground, child: right, axis: [0, 0, 1], start: 0.9}
events:
  one: {when: A.angle - limit, direction: falling, then: {impact: {restitution: e}}}
  two: {when: B.angle - limit, direction: falling, then: {impact: {restitution: e}}}
  slow: {when: \"acc(left.tip).y - 4 + t\", direction: falling, armed: t - 1, then: {stop: true}}
objectives:
  end: {integrand: 1}
  swing: {integrand: \"A.angle^2 + B.angle*rate(A)\", terminal: \"rate(A)*rate(B)\"}
sensitivity: [e, L, m, limit]
simulation: {end: 4, step: 0.017, integrator: rk4}
";

/// Two balls that meet the ground at the same time: their times have derivatives of their own, which one time for both does not tell.
#[test]
fn events_that_part_after_a_change_of_parameters_have_no_gradient() {
    let text = "
mbs: 1
name: balls
gravity: [0, 0, -9.81]
parameters: {e: 0.8, h: 1, k: 1}
bodies: {ball: {mass: 2}, other: {mass: 1}}
joints:
  fall: {type: prismatic, parent: ground, child: ball, axis: [0, 0, 1], start: h}
  drop: {type: prismatic, parent: ground, child: other, axis: [0, 0, 1], start: k}
events:
  one: {when: fall.displacement, direction: falling, then: {impact: {restitution: e}}}
  two: {when: drop.displacement, direction: falling, then: {impact: {restitution: e}}}
objectives: {height: {terminal: fall.displacement - 2*drop.displacement}}
sensitivity: [e, h, k]
simulation: {end: 0.7, step: 0.01, integrator: rk4}
";
    let methods = [Integrator::Rk4, Integrator::DormandPrince, Integrator::Trapezoidal, Integrator::Sdirk4];
    for integrator in methods {
        let overrides = Overrides { integrator: Some(integrator), ..Overrides::default() };
        let both = [try_differentiated(&model(text), &overrides), try_adjoint(text, &overrides, 1 << 22)];
        for found in both {
            let message = found.expect_err("no gradient");
            let names = ["`one`", "`two`", "happens together with", "after a change of"];
            assert!(names.iter().all(|name| message.contains(name)), "{integrator:?}: {message}");
        }
        // From one height they stay together.
        let text = text.replace("start: k", "start: h");
        let (direct, back) = (differentiated(&text, &overrides), adjoint(&text, &overrides, 1 << 22));
        for (a, b) in direct.of_objective(0).iter().zip(back.of_objective(0)) {
            close(&format!("{integrator:?}"), *a, *b, 1e-10);
        }
        // z(T) = (1 + e) T √(2 g h) − (1 + 2 e) h − g T²/2
        let by_h = 1.8 * 0.7 * (0.5 * 9.81_f64).sqrt() - 2.6;
        close(&format!("{integrator:?}, by h"), direct.of_objective(0)[1], -by_h, 1e-9);
    }
}

/// Events that change velocities, inputs and states at once: the rate after the bounce is what the state after it makes it.
pub(crate) const WALL: &str = "
mbs: 1
name: wall
parameters: {e: 0.8, k: 9, c: 0.3, x0: 0.2}
inputs: {side: 1}
modes: {drag: [little, much]}
bodies: {block: {mass: 1.3}, load: {mass: 0.4}}
joints:
  slide: {type: prismatic, parent: ground, child: block, axis: [1, 0, 0], start: {value: x0, rate: -2}}
  swing: {type: prismatic, parent: block, child: load, axis: [1, 0, 0], start: 0}
forces:
  spring: {type: torsional_spring, coordinate: swing, stiffness: k, damping: c, natural_angle: 0}
  drag: {type: joint_force, coordinate: slide, value: -c*rate(slide), in: drag.much}
  push: {type: joint_force, coordinate: slide, value: -side*k}
events:
  left: {when: slide.displacement, direction: falling, then: {impact: {restitution: e*drag.much + 0.5*drag.little}, set: {side: 0.7*side}, mode: drag.much}}
  right: {when: slide.displacement - 0.3, direction: rising, then: {reset: [{rate: rate(slide), to: 0.5*e*rate(slide)}], mode: drag.little}}
objectives:
  end: {terminal: slide.displacement + rate(swing)}
  work: {integrand: \"rate(slide)^2 + acc(load).x*x0\"}
sensitivity: [e, k, c, x0]
simulation: {end: 1.5, step: 0.013, integrator: rk4}
";

/// Direct and adjoint gradients are of the same discrete run, with all steps kept and with most of them made again.
#[test]
fn adjoints_through_events_are_transposes() {
    let with = |integrator, formulation, step: f64, end: f64| Overrides {
        integrator: Some(integrator),
        formulation,
        newton_tolerance: (!integrator.is_runge_kutta() && formulation != Some(Formulation::MatrixR))
            .then_some(1e-13),
        step: Some(step),
        end: Some(end),
        ..Overrides::default()
    };
    let alpha = Integrator::GeneralizedAlpha { spectral_radius: 0.7 };
    let newmark = Integrator::Newmark { beta: 0.4, gamma: 0.6 };
    let matrix_r = Some(Formulation::MatrixR);
    let five_bar = shipped("five_bar_bouncing");
    let (index1, ali3p) = (Some(Formulation::Index1), Some(Formulation::Ali3p));
    let cases = [
        ("ball, rk4", shipped("bouncing_ball"), with(Integrator::Rk4, None, 0.037, 3.0)),
        ("ball, step control", shipped("bouncing_ball"), with(Integrator::DormandPrince, None, 0.037, 3.0)),
        ("ball, trapezoidal", shipped("bouncing_ball"), with(Integrator::Trapezoidal, None, 0.037, 3.0)),
        ("ball, generalized-alpha", shipped("bouncing_ball"), with(alpha, None, 0.037, 3.0)),
        ("five-bar, index 1", chosen_rates(), with(Integrator::Rk4, index1, 0.021, 1.9)),
        ("five-bar, step control", five_bar.clone(), with(Integrator::DormandPrince, index1, 0.021, 1.9)),
        ("five-bar, order 8", five_bar.clone(), with(Integrator::Dop853, index1, 0.021, 1.9)),
        ("five-bar, matrix R, order 8", five_bar.clone(), with(Integrator::Dop853, matrix_r, 0.021, 1.9)),
        ("five-bar, implicit stages", five_bar.clone(), with(Integrator::Sdirk4, index1, 0.021, 1.9)),
        ("five-bar, matrix R", five_bar.clone(), with(Integrator::Rk4, matrix_r, 0.021, 1.9)),
        ("five-bar, matrix R, implicit", five_bar.clone(), with(Integrator::Sdirk4, matrix_r, 0.021, 1.9)),
        ("five-bar, matrix R, rule", five_bar.clone(), with(Integrator::Trapezoidal, matrix_r, 0.021, 1.9)),
        ("five-bar, matrix R, alpha", five_bar.clone(), with(alpha, matrix_r, 0.021, 1.9)),
        ("five-bar, matrix R, Newmark", five_bar.clone(), with(newmark, matrix_r, 0.021, 1.9)),
        ("five-bar, ali3p", chosen_rates(), with(Integrator::Trapezoidal, ali3p, 0.021, 1.9)),
        ("five-bar, implicit index 1", five_bar.clone(), with(Integrator::Trapezoidal, index1, 0.021, 1.9)),
        ("five-bar, generalized-alpha", five_bar.clone(), with(alpha, ali3p, 0.021, 1.9)),
        ("friction, index 1", friction(), with(Integrator::Rk4, index1, 0.05, 10.0)),
        ("friction, ali3p", friction(), with(Integrator::Trapezoidal, ali3p, 0.05, 10.0)),
        ("rod, rk4", ROD.into(), with(Integrator::Rk4, None, 0.013, 1.3)),
        ("rod, step control", ROD.into(), with(Integrator::DormandPrince, None, 0.013, 1.3)),
        ("rod, order 8", ROD.into(), with(Integrator::Dop853, None, 0.013, 1.3)),
        ("rod, implicit stages", ROD.into(), with(Integrator::Sdirk4, None, 0.013, 1.3)),
        ("rod, trapezoidal", ROD.into(), with(Integrator::Trapezoidal, None, 0.013, 1.3)),
        ("twins, rk4", TWINS.into(), with(Integrator::Rk4, None, 0.017, 4.0)),
        ("twins, trapezoidal", TWINS.into(), with(Integrator::Trapezoidal, None, 0.017, 4.0)),
        ("knee, index 1", shipped("knee_lock"), with(Integrator::Rk4, index1, 7e-3, 1.3)),
        ("knee, step control", shipped("knee_lock"), with(Integrator::DormandPrince, index1, 7e-3, 1.3)),
        ("knee, ali3p", shipped("knee_lock"), with(Integrator::Trapezoidal, ali3p, 7e-3, 1.3)),
        ("caught, ali3p", shipped("catch_and_release"), with(alpha, ali3p, 0.021, 2.2)),
        ("leg, index 1", shipped("hopping_leg"), with(Integrator::Rk4, index1, 3e-3, 1.0)),
        ("leg, ali3p", shipped("hopping_leg"), with(Integrator::Trapezoidal, ali3p, 3e-3, 1.0)),
        ("ratchet, index 1", shipped("ratchet"), with(Integrator::Rk4, index1, 0.01, 4.0)),
        ("ratchet, ali3p", shipped("ratchet"), with(Integrator::Trapezoidal, ali3p, 0.01, 4.0)),
        ("promoted, index 1", promoted(), with(Integrator::Rk4, index1, 0.05, 10.0)),
        ("promoted, ali3p", promoted(), with(Integrator::Trapezoidal, ali3p, 0.05, 10.0)),
        ("driven, rk4", DRIVEN.into(), with(Integrator::Rk4, None, 0.013, 4.0)),
        ("driven, step control", DRIVEN.into(), with(Integrator::DormandPrince, None, 0.013, 4.0)),
        ("driven, trapezoidal", DRIVEN.into(), with(Integrator::Trapezoidal, None, 0.013, 4.0)),
        ("driven, generalized-alpha", DRIVEN.into(), with(alpha, None, 0.013, 4.0)),
        ("shaken, index 1", shaken(), with(Integrator::Rk4, index1, 0.011, 1.0)),
        ("shaken, step control", shaken(), with(Integrator::DormandPrince, index1, 0.011, 1.0)),
        ("shaken, ali3p", shaken(), with(Integrator::Trapezoidal, ali3p, 0.011, 1.0)),
        ("wall, rk4", WALL.into(), with(Integrator::Rk4, None, 0.013, 1.5)),
        ("wall, trapezoidal", WALL.into(), with(Integrator::Trapezoidal, None, 0.013, 1.5)),
    ];
    let mut most = 0.0_f64;
    for (what, text, overrides) in cases {
        let direct = differentiated(&text, &overrides);
        assert!(direct.events.len() > 1, "{what}: {:?}", direct.events);
        let whole = adjoint(&text, &overrides, 1 << 26);
        let times = |found: &gradient::Found| found.events.iter().map(|e| e.t).collect::<Vec<_>>();
        for (a, b) in times(&whole).into_iter().zip(times(&direct)) {
            close(&format!("{what}: time"), a, b, 1e-12);
        }
        assert_eq!(whole.events.len(), direct.events.len(), "{what}");
        for i in 0..direct.objectives.len() {
            close(&format!("{what}: objective {i}"), whole.objectives[i], direct.objectives[i], 1e-12);
            let row = direct.of_objective(i).iter().fold(1e-3_f64, |row, x| row.max(x.abs()));
            for (k, (a, b)) in whole.of_objective(i).iter().zip(direct.of_objective(i)).enumerate() {
                assert!((a - b).abs() < 1e-11 * row, "{what}: objective {i} by {k}: {a} against {b}");
            }
        }
        // In as little memory as is enough steps are made again, to the same bits.
        let mut small = (12..26).map(|power| try_adjoint(&text, &overrides, 1 << power));
        let less = small.find_map(|found| found.ok()).expect("enough memory");
        let again = less.adjoint.as_ref().map_or(0, |statistics| statistics.recomputed);
        most = most.max(again as f64 / direct.effort.steps() as f64);
        assert_eq!(less.derivatives, whole.derivatives, "{what}");
        assert_eq!(less.objectives, whole.objectives, "{what}");
    }
    assert!(most > 2.0, "no run made steps again on the way back: {most}");
}

/// 21 bounces back: gradients of the adjoint against the closed form.
#[test]
fn adjoints_of_a_bouncing_ball_are_those_of_the_closed_form() {
    let text = shipped("bouncing_ball").replace("  mean: {integrand: fall.displacement, unit: m s}", "");
    let overrides = Overrides { step: Some(0.037), end: Some(4.03), ..Overrides::default() };
    let found = adjoint(&text, &overrides, 1 << 24);
    assert!(found.events.len() >= 21);
    let n = found.events.len() as i32 - 1;
    let (t, slopes) = bounce(n);
    let (fall, tau) = ((2.0 / G).sqrt(), 4.03 - t);
    let v = G * fall * E.powi(n + 1);
    let v_by = [0.5 * v / G, f64::from(n + 1) * v / E, 0.5 * v];
    close("height", found.objectives[0], v * tau - 0.5 * G * tau * tau, 1e-10);
    for (k, by) in ["g", "e", "h"].into_iter().enumerate() {
        let explicit = if k == 0 { -0.5 * tau * tau } else { 0.0 };
        let expected = v_by[k] * tau - (v - G * tau) * slopes[k] + explicit;
        close(&format!("height by {by}"), found.of_objective(0)[k], expected, 1e-10);
    }
}

/// The five-bar linkage by the rule of Corner 2018, with all objectives that independent code has.
pub(crate) fn judged_bounces() -> String {
    chosen_rates().replace(
        "objectives:\n",
        "objectives:\n  x2: {terminal: pos(bar_12.p2).x}\n  y2: {terminal: pos(bar_12.p2).y}\n  vx2: {terminal: vel(bar_12.p2).x}\n  vy2: {terminal: vel(bar_12.p2).y}\n  z2: acc(bar_12.p2).y\n  z3: acc(bar_12.p2).y^2 + vel(bar_12.p2).y^2\n  times: {at: {event: bounce, value: t, which: each}}\n",
    )
}

/// After three bounces, by L_s1, e and y_g.
pub(crate) const BOUNCED: Expected<'_> = &[
    ("x2", -0.3331823057, &[-2.893090319, -0.08951518316, 3.552661071]),
    ("y2", -2.137791696, &[1.316663132, 0.1219570437, 1.416932532]),
    ("vx2", 0.4754691892, &[-21.57558973, 3.419363698, 69.64392294]),
    ("vy2", -0.3099694998, &[-23.77516492, 4.365988809, 87.56093242]),
    ("z2", -4.278054421, &[23.96625524, -4.422422202, -47.24691723]),
    ("z3", 72.03244484, &[933.4952147, -118.3851481, -4497.663107]),
    ("times", 4.54536465, &[5.478146682, -0.7956850619, -22.00374246]),
    ("psi1", 0.8339616346, &[-0.4471689111, 0.3343744742, 2.032011066]),
    ("psi3", 127.2733776, &[817.7224407, -27.97390084, -3213.321092]),
];

#[test]
fn a_five_bar_that_has_bounced_is_where_independent_code_says() {
    let text = judged_bounces();
    let overrides = Overrides { step: Some(1e-3), ..Overrides::default() };
    for found in [differentiated(&text, &overrides), adjoint(&text, &overrides, 1 << 28)] {
        assert_eq!(found.events.len(), 3);
        compare(&found, &model(&text), BOUNCED, 1e-8);
    }
}
