//! The bicycle on tyres: objective for any number of spline values, gradients of bicycle and buggy.

#[path = "../../../tests/src/bicycle.rs"]
#[allow(unreachable_pub, reason = "public where it lives")]
mod bicycle;
#[path = "../../../tests/src/random_model.rs"]
#[allow(dead_code, unreachable_pub, reason = "its random numbers alone")]
mod random_model;

use super::{load, psi, read, reference, text};
use mbs_codegen::model::GradientMethod;
use mbs_codegen::program::{Options, Program};
use mbs_engine::{Interpreted, gradient};
use mbs_runtime::Quantity;
use random_model::Random;
use std::ops::ControlFlow;

/// ψ for p values of both splines: own data set, by independent code of order 8.
const PSI: [(usize, f64); 5] = [
    (32, 2.63747951429),
    (100, 2.57255695131),
    (200, 2.57094061290),
    (500, 2.57073255746),
    (1000, 2.57072036098),
];

#[test]
fn objective_for_every_number_of_values() {
    for (p, exact) in PSI {
        let model = load(&bicycle::yaml(p), Some("double_turn"));
        // A step of about 7 ms that divides the knots' distance; extrapolated from two.
        let intervals = p / 2 - 1;
        let h = 10.0 / (intervals * (1500 / intervals).max(1)) as f64;
        let [coarse, fine] = [h, h / 2.0].map(|h| psi(&model, "psi", h, 10.0));
        let found = fine + (fine - coarse) / 3.0;
        let ratio = (coarse - exact) / (fine - exact);
        println!("p = {p}: {found:.10}, error {:.1e}; ratio of errors {ratio:.3}", found - exact);
        // Of order 4.
        assert!((found - exact).abs() < 5e-9, "p = {p}: {found} and {exact}");
        assert!((ratio - 4.0).abs() < 0.3, "p = {p}: {ratio}");
    }
}

/// The frame's motion at the knots.
#[test]
fn double_turn() {
    let model = load(&text("bicycle"), Some("double_turn"));
    let names = ["ride.x", "ride.y", "ride.z", "ride.e0", "ride.e1", "ride.e2", "ride.e3"];
    let places = names.map(|name| super::coordinate(&model, name));
    let lean = super::place(&model, Quantity::Output, "lean");
    let spacing = 10.0 / 15.0;
    let [coarse, fine] = [spacing / 200.0, spacing / 400.0].map(|h| {
        let mut rows = Vec::new();
        super::run(&model, h, 10.0, |seen| {
            let knot = seen.t / spacing;
            if (knot - knot.round()).abs() < 0.1 * h {
                let [x, y, z, e0, e1, e2, e3] = places.map(|i| seen.z[i]);
                rows.push([knot, x, y, z, seen.outputs[lean], e0, e1, e2, e3, seen.psi[0]]);
            }
        })
        .unwrap_or_else(|error| panic!("{}", error.describe(&model)));
        rows
    });
    let (mut worst, mut before) = (0.0f64, 0.0f64);
    for ((row, coarse), fine) in reference::DOUBLE_TURN.iter().zip(&coarse).zip(&fine) {
        for (column, expected) in row.iter().enumerate() {
            let found = fine[column] + (fine[column] - coarse[column]) / 3.0;
            before = before.max((fine[column] - expected).abs());
            worst = worst.max((found - expected).abs());
            assert!((found - expected).abs() < 1e-8, "knot {}, column {column}: {found}", row[0]);
        }
    }
    println!("errors: {before:.1e} at the finer step, {worst:.1e} extrapolated");
    assert_eq!(fine.len(), 16);
}

/// Objectives and gradient of a run with these settings.
fn gradient_of(text: &str, case: &str, h: f64, end: f64) -> (Interpreted, gradient::Found) {
    let model = read(text);
    let case = model.cases.iter().find(|known| known.name == case).expect("a case");
    let mut simulation = case.simulation.clone();
    (simulation.step, simulation.end) = (h, end);
    let options = Options { bundles: gradient::bundles(&simulation, true), ..Options::default() };
    let model = Interpreted::new(Program::new(&model, Some(case), &options).expect("a program"));
    let start = gradient::start(&model, &simulation).expect("a start");
    let method = start.method(&model, &simulation);
    let found = gradient::run(&model, &method, &simulation, start, |_| ControlFlow::Continue(()));
    let found = found.unwrap_or_else(|error| panic!("{}", error.describe(&model)));
    (model, found)
}

/// dψ/dp by central differences of whole runs, extrapolated from two steps, relative to the parameter's size.
fn differences(
    model: &mut Interpreted,
    objective: &str,
    parameter: &str,
    size: f64,
    h: f64,
    end: f64,
) -> f64 {
    let at = model.parameter(parameter).unwrap();
    let mut slope = |step: f64| {
        let [up, down] = [step, -step].map(|step| {
            model.set_parameter(parameter, at + step).unwrap();
            psi(model, objective, h, end)
        });
        model.set_parameter(parameter, at).unwrap();
        (up - down) / (2.0 * step)
    };
    let [coarse, fine] = [2.0 * size, size].map(&mut slope);
    fine + (fine - coarse) / 3.0
}

/// The direct method against differences, the buggy over the first bump of its suspension or, if long runs are wanted, over the whole
/// manoeuvre.
#[test]
fn gradient_of_the_buggy() {
    let (h, end) = if super::long_runs() { (1e-3, 4.5) } else { (2e-3, 0.2) };
    let (model, found) = gradient_of(&text("buggy"), "step_descent", h, end);
    let gradient = found.of_objective(super::objective(&model, "psi_a"));
    let mut plain = load(&text("buggy"), Some("step_descent"));
    compare(&mut plain, "psi_a", gradient, h, end);
}

/// The gradient by the parameters of the buggy against differences.
fn compare(plain: &mut Interpreted, objective: &str, gradient: &[f64], h: f64, end: f64) {
    for (k, name) in ["k_f", "c_f", "k_r", "c_r", "m_c"].into_iter().enumerate() {
        let size = 1e-3 * plain.parameter(name).unwrap();
        let expected = differences(plain, objective, name, size, h, end);
        println!("d {objective}/d {name}: {:.9e} and {expected:.9e}", gradient[k]);
        // Differences of fourth order of steps of 1e-3, of sums known to 1e-10.
        assert!((gradient[k] - expected).abs() < 1e-6 * expected.abs(), "{name}");
    }
}

/// Into the first turn, or through all of them. Straight on before it, equations of the struts that follow from others are differences
/// that nearly cancel.
#[test]
fn gradient_of_the_lane_change() {
    let (h, end) = (1e-2, if super::long_runs() { 12.0 } else { 3.0 });
    let (model, found) = gradient_of(&text("buggy"), "double_lane_change", h, end);
    let gradient = found.of_objective(super::objective(&model, "psi_b"));
    let mut plain = load(&text("buggy"), Some("double_lane_change"));
    compare(&mut plain, "psi_b", gradient, h, end);
}

/// The same for the bicycle and some of its 32 values.
#[test]
fn gradient_of_the_bicycle() {
    let (h, end) = (10.0 / 750.0, if super::long_runs() { 10.0 } else { 3.0 });
    let (_, found) = gradient_of(&text("bicycle"), "double_turn", h, end);
    let gradient = found.of_objective(0);
    assert_eq!(gradient.len(), 32);
    let mut plain = load(&text("bicycle"), Some("double_turn"));
    // Steering turns the bicycle over, the drive hardly changes its way: each by as much as its curvature bears.
    for (k, name, size) in
        [(0, "steer[0]", 5e-4), (3, "steer[3]", 5e-4), (16, "drive[0]", 1e-2), (18, "drive[2]", 1e-2)]
    {
        let expected = differences(&mut plain, "psi", name, size, h, end);
        println!("d psi/d {name}: {:.9e} and {expected:.9e}", gradient[k]);
        assert!((gradient[k] - expected).abs() < 1e-6 * expected.abs(), "{name}");
    }
    // A natural spline through values that come later still changes what was before, a little.
    assert!(gradient[15] != 0.0 && gradient[15].abs() < 1e-3 * gradient[0].abs());
}

/// Direct and adjoint gradient of a run, and the derivatives by its inputs at every node; the adjoint as its file would ask for it.
fn both(
    text: &str,
    case: &str,
    h: f64,
    end: f64,
) -> (Interpreted, [gradient::Found; 2], Option<gradient::InputHistory>) {
    let model = read(text);
    let case = model.cases.iter().find(|known| known.name == case).expect("a case");
    let mut simulation = case.simulation.clone();
    (simulation.step, simulation.end, simulation.gradient) = (h, end, GradientMethod::Adjoint);
    let options = Options { bundles: gradient::bundles(&simulation, true), ..Options::default() };
    let model = Interpreted::new(Program::new(&model, Some(case), &options).expect("a program"));
    let start = gradient::start(&model, &simulation).expect("a start");
    let method = start.method(&model, &simulation);
    let direct = gradient::run(&model, &method, &simulation, start.clone(), |_| ControlFlow::Continue(()));
    let mut history = gradient::InputHistory::new(&model, &method, &start).ok();
    let watch = |node: mbs_runtime::AdjointNode<'_, f64>| {
        if let Some(history) = &mut history {
            history.see(&node);
        }
        ControlFlow::Continue(())
    };
    let adjoint = gradient::adjoint::run(&model, &method, &simulation, start, 1 << 30, watch);
    if let Some(history) = &mut history {
        history.finish();
    }
    let found =
        [direct, adjoint].map(|found| found.unwrap_or_else(|error| panic!("{}", error.describe(&model))));
    (model, found, history)
}

/// dψ along random directions of all values of both splines against that of their gradient: the error of each, relative to the sum of its parts.
fn along_random_directions(model: &Interpreted, gradient: &[f64], h: f64, end: f64) -> [f64; 2] {
    [1, 2].map(|seed| {
        let mut random = Random::new(seed);
        let n = gradient.len() / 2;
        // Steering turns the bicycle over, the drive hardly changes its way.
        let direction: Vec<f64> =
            (0..2 * n).map(|k| random.uniform(-1.0, 1.0) * if k < n { 5e-4 } else { 1e-2 }).collect();
        let mut moved = model.clone();
        let mut slope = |step: f64| {
            let [up, down] = [step, -step].map(|step| {
                let mut values = model.parameters().to_vec();
                for (&(_, place), v) in model.program().seeds.iter().zip(&direction) {
                    values[place as usize] += step * v;
                }
                moved.set_parameters(&values).expect("a mechanism");
                psi(&moved, "psi", h, end)
            });
            (up - down) / (2.0 * step)
        };
        let [coarse, fine] = [2.0, 1.0].map(&mut slope);
        let expected = fine + (fine - coarse) / 3.0;
        let parts = gradient.iter().zip(&direction).map(|(g, v)| g * v);
        let (found, size) = parts.fold((0.0, 0.0), |(sum, size), part: f64| (sum + part, size + part.abs()));
        (found - expected).abs() / size
    })
}

/// Direct and adjoint gradient of the vehicles agree: both manoeuvres of the buggy, bicycles with 32 to 1000 values; over parts of the runs
/// or, if long runs are wanted, over all of them. Those of bicycles agree with differences along random directions, too.
#[test]
fn adjoints_equal_direct_gradients() {
    let long = super::long_runs();
    let (h, turn) = (10.0 / 750.0, if long { 10.0 } else { 1.0 });
    let buggy = text("buggy");
    let mut runs = vec![
        (buggy.clone(), "step_descent", if long { 1e-3 } else { 2e-3 }, if long { 4.5 } else { 0.1 }),
        (buggy, "double_lane_change", 1e-2, if long { 12.0 } else { 0.3 }),
    ];
    let counts: &[usize] = if long { &[32, 100, 200, 500, 1000] } else { &[32, 100] };
    runs.extend(counts.iter().map(|&p| (bicycle::yaml(p), "double_turn", h, turn)));
    for (text, case, h, end) in runs {
        let (model, [direct, adjoint], _) = both(&text, case, h, end);
        let columns = mbs_runtime::System::dims(&model).sensitivity.product_columns;
        for i in 0..direct.objectives.len() {
            let (a, b) = (direct.objectives[i], adjoint.objectives[i]);
            // Sums over a run, in other orders.
            assert!((a - b).abs() <= 1e-13 * a.abs(), "{a}, {b}");
            let row = direct.of_objective(i);
            // Parameters have units of their own: each counts in its size, or as one.
            let size = |k: usize| {
                model.parameter(&model.program().sensitivity[k]).map_or(1.0, |p| p.abs().max(1e-3))
            };
            let largest = row.iter().enumerate().fold(1e-12, |m: f64, (k, x)| m.max(x.abs() * size(k)));
            let differences = adjoint.of_objective(i).iter().zip(row).enumerate();
            let error = differences.fold(0.0, |m: f64, (k, (a, b))| m.max((a - b).abs() * size(k) / largest));
            println!(
                "{case}, p = {}, objective {i}: {error:.1e}, products up to {columns} columns",
                row.len()
            );
            // Rounding, times what a run through the turns amplifies.
            assert!(error < 1e-9, "{case}: {error:e}");
        }
        if case == "double_turn" {
            let errors = along_random_directions(&load(&text, Some(case)), adjoint.of_objective(0), h, end);
            println!("along random directions: {:.1e} and {:.1e}", errors[0], errors[1]);
            // Differences of fourth order, as above.
            assert!(errors.into_iter().all(|error| error < 1e-6), "{errors:?}");
        }
    }
}

/// The torque on the steering at every step as unknowns: their derivatives summed with signals are the derivatives along these.
#[test]
fn the_bicycle_by_its_steering_torque() {
    let signal = "inputs: {torque: {default: 0}}\n\nobjectives:";
    let mut text = text("bicycle").replacen("objectives:", signal, 1);
    text = text.replacen("\"spline(t, knots, steer)\"", "\"spline(t, knots, steer) + torque\"", 1);
    text = text.replacen("sensitivity: [steer, drive]", "sensitivity: [torque]", 1);
    text = text.replacen("parameters:\n  knots:", "parameters:\n  share: 0\n  knots:", 1);
    let (h, end) = if super::long_runs() { (2e-3, 10.0) } else { (1e-2, 2.0) };
    along_signals(&text, ("double_turn", "psi"), 1e-4, h, end, |signal| {
        text.replacen("double_turn: {}", &format!("double_turn: {{inputs: {{torque: {signal}}}}}"), 1)
    });
}

/// The way of the rack at every step as unknowns: a servo holds it there, in place of the constraint that moves it.
#[test]
fn the_buggy_by_the_way_of_its_rack() {
    let mut text = text("buggy");
    let [begin, end] =
        ["\nconstraints:\n", "\nobjectives:\n"].map(|key| text.find(key).expect("a section") + 1);
    let law = text[begin..end].split_once(">-\n").expect("a law").1.trim().to_owned();
    let servo = format!(
        "inputs: {{way: {{default: 0}}}}\n\nforces:\n  servo: {{type: joint_force, coordinate: rack_guide, value: \"1e6*({law} + way - rack_guide.displacement) - 1e4*rack_guide.displacement_rate\"}}\n\n"
    );
    text.replace_range(begin..end, &servo);
    text = text.replacen("sensitivity: [k_f, c_f, k_r, c_r, m_c]", "sensitivity: [way]", 1);
    text = text.replacen("parameters:\n", "parameters:\n  share: 0\n", 1);
    let (h, end) = if super::long_runs() { (2.5e-3, 12.0) } else { (1e-2, 2.6) };
    along_signals(&text, ("double_lane_change", "psi_b"), 1e-4, h, end, |signal| {
        let case = "  double_lane_change:\n";
        text.replacen(case, &format!("{case}    inputs: {{way: {signal}}}\n"), 1)
    });
}

/// Derivatives by the only input at every step, summed with random signals, against differences of runs with these signals times `share`, which
/// `with_signal` puts into the model; `size` is that of the differences.
fn along_signals(
    text: &str,
    (case, objective): (&str, &str),
    size: f64,
    h: f64,
    end: f64,
    with_signal: impl Fn(&str) -> String,
) {
    let (model, [direct, adjoint], history) = both(text, case, h, end);
    let i = super::objective(&model, objective);
    let history = history.expect("an input among what it is differentiated by");
    assert_eq!(history.times.len(), (end / h).round() as usize + 1);
    let parts = |weight: &dyn Fn(f64) -> f64| {
        let parts = history.of(i, 0).zip(&history.times).map(|(d, t)| d * weight(*t));
        parts.fold((0.0, 0.0), |(sum, size), part: f64| (sum + part, size + part.abs()))
    };
    let (sum, whole) = parts(&|_| 1.0);
    assert!((sum - adjoint.of_objective(i)[0]).abs() < 1e-9 * whole);
    assert!((direct.of_objective(i)[0] - adjoint.of_objective(i)[0]).abs() < 1e-9 * whole);
    let mut random = Random::new(17);
    for _ in 0..3 {
        let [rate, phase] = [random.uniform(0.5, 12.0), random.uniform(0.0, 6.0)];
        let moved = with_signal(&format!("\"share*sin({rate}*t + {phase})\""));
        let (along, whole) = parts(&|t| (rate * t + phase).sin());
        let expected = differences(&mut load(&moved, Some(case)), objective, "share", size, h, end);
        println!("by {} values along a signal: {along:.9e} and {expected:.9e}", history.times.len());
        assert!((along - expected).abs() < 1e-6 * whole);
    }
}

/// Gradients of the first objective at steps h, h/2, h/4, and extrapolated from h/8 and h/16.
fn refined(name: &str, case: &str, h: f64, end: f64) -> ([Vec<f64>; 3], Vec<f64>) {
    let at = |divisor: f64| gradient_of(&text(name), case, h / divisor, end).1.of_objective(0).to_vec();
    let (coarse, fine) = (at(8.0), at(16.0));
    let tight = coarse.iter().zip(&fine).map(|(coarse, fine)| fine + (fine - coarse) / 3.0).collect();
    ([1.0, 2.0, 4.0].map(at), tight)
}

/// Gradients have the order of the motion: halving the step quarters their errors. Of many parameters the largest error counts.
fn converges(found: &[Vec<f64>; 3], tight: &[f64], range: core::ops::Range<usize>) {
    let error = |gradient: &[f64]| {
        let pairs = gradient[range.clone()].iter().zip(&tight[range.clone()]);
        pairs.fold(0.0f64, |most, (found, tight)| most.max((found - tight).abs()))
    };
    let size = tight[range.clone()].iter().fold(0.0f64, |most, x| most.max(x.abs()));
    let errors = found.each_ref().map(|gradient| error(gradient) / size);
    let ratios = [errors[0] / errors[1], errors[1] / errors[2]];
    println!(
        "{range:?}: relative errors {:.2e} {:.2e} {:.2e}, ratios {ratios:.3?}",
        errors[0], errors[1], errors[2]
    );
    assert!((ratios[1] - 4.0).abs() < 0.3, "{errors:?}");
}

/// Over the first bump, or the whole descent of the step.
#[test]
fn gradient_of_the_buggy_converges() {
    let (h, end) = if super::long_runs() { (2e-3, 4.5) } else { (4e-3, 0.1) };
    let (found, tight) = refined("buggy", "step_descent", h, end);
    // Parameter by parameter: they have different units.
    for k in 0..5 {
        converges(&found, &tight, k..k + 1);
    }
}

/// Over the first turn, or both: steering values, then those of the drive.
#[test]
fn gradient_of_the_bicycle_converges() {
    let end = if super::long_runs() { 10.0 } else { 3.0 };
    let (found, tight) = refined("bicycle", "double_turn", 10.0 / 500.0, end);
    assert_eq!(tight.len(), 32);
    converges(&found, &tight, 0..16);
    converges(&found, &tight, 16..32);
}
