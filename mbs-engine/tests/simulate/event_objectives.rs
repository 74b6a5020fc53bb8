//! Objectives that are taken at events, and inputs that events set to values that have derivatives.

use crate::common::shipped;
use crate::events::{
    DRIVEN, WALL, adjoint, bounce, chosen_rates, close, differentiated, is_derivative_of_the_run, run,
};
use mbs_codegen::model::{Formulation, Integrator};
use mbs_engine::simulation::{Overrides, RunFailure};

fn by(integrator: Integrator, step: f64, end: f64) -> Overrides {
    Overrides { integrator: Some(integrator), step: Some(step), end: Some(end), ..Overrides::default() }
}

/// Times and squared speeds of a ball that bounces: the first, the last, all of them.
#[test]
fn times_and_values_at_bounces_are_those_of_the_closed_form() {
    let text = shipped("bouncing_ball").replace(
        "objectives:\n",
        "objectives:
  first: {at: {event: bounce, value: t, which: first}}
  last: {at: {event: bounce, value: t, which: last}}
  all: {at: {event: bounce, value: t}}
  haste: {at: {event: bounce, value: rate(fall)^2, which: each}, terminal: h}
  both: {at: [{event: bounce, value: t, which: first}, {event: bounce, value: 3*t, which: last}]}
",
    );
    let (g, e, h) = (9.81, 0.8_f64, 1.0);
    for integrator in [Integrator::Rk4, Integrator::Trapezoidal, Integrator::DormandPrince] {
        let overrides = by(integrator, 0.037, 2.9);
        for found in [differentiated(&text, &overrides), adjoint(&text, &overrides, 1 << 24)] {
            let n = found.events.len() as i32 - 1;
            assert!(n >= 4);
            let (first, last) = (bounce(0), bounce(n));
            let sum = |of: &dyn Fn(i32) -> f64| (0..=n).map(of).sum::<f64>();
            let by_sum = |k: usize| sum(&|i| bounce(i).1[k]);
            // 2 g h e^(2k)
            let squares = sum(&|i| e.powi(2 * i));
            let slope = sum(&|i| f64::from(2 * i) * e.powi(2 * i - 1));
            let expected = [
                (first.0, first.1),
                (last.0, last.1),
                (sum(&|i| bounce(i).0), [by_sum(0), by_sum(1), by_sum(2)]),
                (
                    2.0 * g * h * squares + h,
                    [2.0 * h * squares, 2.0 * g * h * slope, 2.0 * g * squares + 1.0],
                ),
                (first.0 + 3.0 * last.0, [0, 1, 2].map(|k| first.1[k] + 3.0 * last.1[k])),
            ];
            for (i, (value, slopes)) in expected.into_iter().enumerate() {
                close(&format!("{integrator:?} objective {i}"), found.objectives[i], value, 1e-10);
                for (k, slope) in slopes.into_iter().enumerate() {
                    close(
                        &format!("{integrator:?} objective {i} by {k}"),
                        found.of_objective(i)[k],
                        slope,
                        1e-9,
                    );
                }
            }
        }
        // A run without derivatives has the same objectives.
        let record = run(&text, &overrides);
        assert!(record.failure.is_none(), "{:?}", record.failure);
        let objectives = record.seen.objectives();
        close("time of the first", objectives[0], bounce(0).0, 1e-10);
    }
}

/// The sum of the times of three bounces, and its derivatives by L_s1, e and y_g, by independent code.
#[test]
fn times_of_a_five_bar_are_objectives() {
    let text = chosen_rates()
        .replace("objectives:\n", "objectives:\n  times: {at: {event: bounce, value: t, which: each}}\n");
    let overrides = Overrides { step: Some(1e-3), ..Overrides::default() };
    for found in [differentiated(&text, &overrides), adjoint(&text, &overrides, 1 << 28)] {
        close("sum", found.objectives[0], 4.54536465, 1e-8);
        for (&found, expected) in found.of_objective(0).iter().zip([5.478146682, -0.7956850619, -22.00374246])
        {
            close("its derivative", found, expected, 1e-7);
        }
    }
}

/// Laws that name the time, an alarm that sets itself anew from the motion, a force that follows what was kept, and a run that an event stops.
fn alarms() -> String {
    DRIVEN
        .replace("bodies:", "inputs: {alarm: 0.31, held: 0.2, sum: 0}\nbodies:")
        .replace(
            "forces:\n",
            "forces:\n  kept: {type: joint_force, coordinate: fall, value: held*cos(t) - 0.2*sum}\n",
        )
        .replace(
            "events:\n",
            "events:\n  ring: {when: t - alarm, direction: rising, then: {set: {alarm: \"t + 0.3 + 0.1*h*fall.displacement\", held: \"A*rate(hang) + 0.1*sum\", sum: \"sum + 0.1*t*held\"}}}\n",
        )
        .replace(
            "objectives:\n",
            "objectives:\n  calls: {at: {event: ring, value: \"t*fall.displacement + rate(fall)\", which: each}, terminal: held}\n  end: {terminal: t}\n  low: {at: [{event: bounce, value: rate(hang), which: first}, {event: ends, value: w*t}]}\n",
        )
}

#[test]
fn what_events_keep_is_differentiated() {
    let implicit = Overrides {
        formulation: Some(Formulation::Ali3p),
        newton_tolerance: Some(1e-13),
        ..by(Integrator::Trapezoidal, 0.013, 4.0)
    };
    let wall = WALL
        .replace("side: 0.7*side", "side: \"0.7*side - 0.05*rate(swing)\"")
        .replace("objectives:\n", "objectives:\n  hits: {at: {event: left, value: side*rate(slide)^2}}\n");
    let cases = [
        ("alarms, rk4", alarms(), by(Integrator::Rk4, 0.013, 4.0)),
        ("alarms, trapezoidal", alarms(), implicit.clone()),
        ("wall, rk4", wall.clone(), by(Integrator::Rk4, 0.013, 1.5)),
        ("wall, trapezoidal", wall, Overrides { end: Some(1.5), ..implicit }),
    ];
    for (what, text, overrides) in cases {
        is_derivative_of_the_run(what, &text, &overrides);
        let direct = differentiated(&text, &overrides);
        for memory in [1 << 24, 1 << 17] {
            let back = adjoint(&text, &overrides, memory);
            for i in 0..direct.objectives.len() {
                close(what, back.objectives[i], direct.objectives[i], 1e-13);
                let row = direct.of_objective(i).iter().fold(1e-6, |row: f64, x| row.max(x.abs()));
                for (a, b) in back.of_objective(i).iter().zip(direct.of_objective(i)) {
                    assert!(
                        (a - b).abs() < 1e-9 * row,
                        "{what}, objective {i}: {a} by the adjoint, {b} direct"
                    );
                }
            }
        }
    }
}

#[test]
fn an_objective_whose_event_never_happens_is_an_error_by_name() {
    let text = shipped("bouncing_ball")
        .replace("objectives:\n", "objectives:\n  first: {at: {event: bounce, value: t, which: first}}\n");
    let record = run(&text, &by(Integrator::Rk4, 0.01, 0.4));
    let Some(RunFailure::Step(error)) = record.failure else { panic!("{:?}", record.failure) };
    let mbs_engine::simulation::Instance { model, .. } =
        crate::events::instance(&text, &Overrides::default());
    let message = error.describe(&model).to_string();
    assert!(message.contains("event `bounce` has not happened by the end of the run"), "{message}");
}
