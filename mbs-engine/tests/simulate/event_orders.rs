//! Runs with events by ALI3-P, of order 2, and by Dormand and Prince's method, against the numbers of independent code.

use crate::common::shipped;
use crate::events::{
    BOUNCED, CAUGHT, DROPPED, Expected, KNEE, STOPPED, compare, differentiated, friction, judged_bounces,
    model, run, stops,
};
use mbs_codegen::model::{Formulation, Integrator};
use mbs_engine::gradient::Found;
use mbs_engine::simulation::Overrides;

/// Derivatives by k, Fc.
const RUBBED: Expected<'_> = &[
    ("x", 1.114771386, &[0.1195360302, 1.673043256]),
    ("xd", 0.1812919708, &[0.2283190981, 0.6082753208]),
    ("thdd", 2.079900802, &[0.7056105011, -1.179113614]),
    ("G", 3.114545425, &[0.3717369951, -4.201496075]),
];

/// The name of a number, its exact value, its scale, and where it is found.
type Number = (String, f64, f64, Box<dyn Fn(&Found) -> f64>);

/// Three runs by ALI3-P: differences shrink fourfold, and what they tend to is right.
fn is_of_order_two(what: &str, runs: &[Found; 3], expected: &[Number]) {
    for (name, exact, scale, of) in expected {
        let [a, b, c] = runs.each_ref().map(of);
        let (ratio, extrapolated) = ((a - b) / (b - c), (4.0 * c - b) / 3.0);
        let error = (extrapolated - exact).abs() / scale;
        println!("{what}, {name}: {ratio:.3}, off by {error:.1e}");
        // Rounding has no order. The error of a step to an event depends on its part θ of a whole step, h³ f(θ), which hardly shows in a value;
        // but θ' = t'/h: in a derivative it is of the order of the method, and no ratio is its.
        if (b - c).abs() > 1e-8 * scale && !name.contains(" by ") {
            assert!((ratio - 4.0).abs() < 0.7, "{what}, {name}: {ratio}");
        }
        assert!(error < 1e-5, "{what}, {name}: {extrapolated} against {exact}, off by {error:.2e}");
    }
}

fn implicit(step: f64, end: Option<f64>) -> Overrides {
    Overrides {
        integrator: Some(Integrator::Trapezoidal),
        formulation: Some(Formulation::Ali3p),
        step: Some(step),
        end,
        ..Overrides::default()
    }
}

#[test]
fn ali3p_is_of_order_two_through_events() {
    let [stop, _] = stops();
    let cases = [
        ("bounces", judged_bounces(), 1e-3, BOUNCED),
        ("stop", stop, 2.5e-4, STOPPED),
        ("friction", friction(), 1e-2, RUBBED),
        ("knee", shipped("knee_lock"), 2e-3, KNEE),
        ("drop", shipped("vehicle_drop"), 4e-4, DROPPED),
    ];
    for (what, text, step, expected) in cases {
        let source = model(&text);
        let runs = [1.0, 0.5, 0.25].map(|part| differentiated(&text, &implicit(part * step, None)));
        let mut all: Vec<Number> = Vec::new();
        for &(name, value, slopes) in expected {
            let k = source.objectives.iter().position(|objective| objective.name == name).expect(name);
            let size = value.abs().max(1e-2);
            all.push((name.into(), value, size, Box::new(move |found| found.objectives[k])));
            for (i, &slope) in slopes.iter().enumerate() {
                let place = source.sensitivity_parameter(source.sensitivity[i]).expect("a parameter");
                let scale = slope.abs().max(size / source.default_parameters()[place].abs().max(0.1));
                let of = move |found: &Found| found.of_objective(k)[i];
                all.push((format!("{name} by parameter {i}"), slope, scale, Box::new(of)));
            }
        }
        is_of_order_two(what, &runs, &all);
    }
}

#[test]
fn step_control_goes_through_events_as_exactly() {
    let control = Overrides {
        integrator: Some(Integrator::DormandPrince),
        formulation: Some(Formulation::Index1),
        relative_tolerance: Some(1e-11),
        absolute_tolerance: Some(1e-11),
        ..Overrides::default()
    };
    let [by_state, _] = stops();
    let cases = [
        ("knee", shipped("knee_lock"), KNEE),
        ("friction", friction(), RUBBED),
        ("stop", by_state, STOPPED),
        ("caught", shipped("catch_and_release"), CAUGHT),
    ];
    for (what, text, expected) in cases {
        println!("{what}");
        compare(&differentiated(&text, &control), &model(&text), expected, 1e-8);
    }
}

/// Steps that are made to find an event, the one that ends in it among them: seldom more than eight, and never more than 60.
#[test]
fn an_event_costs_few_steps() {
    let mut histogram = [0_usize; 64];
    let cases = [
        ("bouncing_ball", "h: {value: 1,", "h: {value: ", ",", 0.4, 1.3, 0.7),
        ("five_bar_bouncing", "y_g: {value: -2.35,", "y_g: {value: ", ",", -2.45, -2.25, 0.45),
        ("knee_lock", "k0: {value: 0,", "k0: {value: ", ",", -0.3, 0.0, 0.3),
    ];
    for (name, place, before, after, low, high, end) in cases {
        let text = shipped(name);
        assert!(text.contains(place), "{name}");
        let mut found = 0;
        for k in 0..40 {
            let value = low + (high - low) * f64::from(k) / 40.0;
            let text = text.replace(place, &format!("{before}{value:.6}{after}"));
            for step in [1e-2, 2.9e-3] {
                let overrides = Overrides {
                    integrator: Some(Integrator::Rk4),
                    formulation: Some(Formulation::Index1),
                    step: Some(step),
                    end: Some(end),
                    ..Overrides::default()
                };
                let record = run(&text, &overrides);
                assert!(record.failure.is_none(), "{name}: {:?}", record.failure);
                for event in &record.seen.events {
                    found += 1;
                    histogram[event.steps.min(63)] += 1;
                }
            }
        }
        assert!(found >= 20, "{name}: {found}");
    }
    for (steps, count) in histogram.iter().enumerate().filter(|(_, count)| **count > 0) {
        println!("{steps:3} steps: {count} events");
    }
    let most = histogram.iter().rposition(|&count| count > 0).unwrap_or(0);
    let all: usize = histogram.iter().sum();
    assert!(most <= 60 && histogram[..8].iter().sum::<usize>() * 10 >= 9 * all, "{histogram:?}");
}
