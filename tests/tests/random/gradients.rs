//! Gradients of runs: published numbers, an exact solution, and convergence.

use mbs_codegen::kinematics::ReferencePoint;
use mbs_codegen::program::{BundleKind, Options, Program};
use mbs_engine::Interpreted;
use mbs_generated::{five_bar, slider_crank};
use mbs_runtime::inputs::NoInputs;
use mbs_runtime::sensitivity::StateDerivatives;
use mbs_runtime::{Ali3p, Implicit, System};
use mbs_tests::gradient::{self, Outcome};
use mbs_tests::{closed, gradient::implicit};
use std::ops::ControlFlow;

/// López Varela, Dopico, Luaces 2023, Table 7, reference column: by L_s1, L_s2, m_A1, x_G, L_A1.
const TABLE_7: [[f64; 5]; 3] = [
    [-4.2288, 3.2116, 0.31866, 0.44235, 3.3598],
    [-15.452, 50.309, 0.97012, 0.74560, -27.359],
    [221.64, 2436.6, -32.497, -85.657, -2546.6],
];

fn of_five_bar(h: f64) -> Outcome {
    implicit(&five_bar::Model::default(), &mut NoInputs, Ali3p::DEFAULT, h, 5.0).expect("it runs")
}

/// Five digits; the last may be off by one, as it is between the table's own columns.
fn is_table_7(gradient: &[Vec<f64>]) {
    for (row, published) in gradient.iter().zip(TABLE_7) {
        for (x, published) in row.iter().zip(published) {
            let digit = 10f64.powi(published.abs().log10().floor() as i32 - 4);
            assert!((x - published).abs() <= 0.6 * digit, "{x} is not {published}");
        }
    }
}

#[test]
fn five_bar_has_the_gradients_of_table_7() {
    is_table_7(&of_five_bar(1e-4).gradient);
}

#[test]
fn both_reference_points_have_the_gradients_of_table_7() {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../models/five_bar.yaml"));
    let (model, _) =
        mbs_codegen::read("five_bar.yaml", &text.expect("a shipped model")).expect("no problems");
    for reference in [ReferencePoint::CentreOfMass, ReferencePoint::Origin] {
        let options = Options { reference, bundles: BundleKind::STANDARD.to_vec(), ..Options::default() };
        let model = Interpreted::<f64>::new(Program::new(&model, None, &options).expect("a program"));
        let found = implicit(&model, &mut model.input_signals(), Ali3p::DEFAULT, 2e-4, 5.0).expect("it runs");
        is_table_7(&found.gradient);
    }
}

/// In independent coordinates, direct and adjoint: angles, chosen and named; and the position of point 2, which is no coordinate of a joint, so that the
/// derivative of the independent coordinates by those of the joints is not constant.
#[test]
fn independent_coordinates_have_the_gradients_of_table_7() {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../models/five_bar.yaml"));
    let text = text.expect("a shipped model");
    let by = |integrator: &str, more: &str, independent: &str| {
        let simulation =
            format!("simulation: {{end: 5, integrator: {integrator}, formulation: matrix_r{independent}}}");
        let text = text.replace("simulation: {end: 5, step: 1e-3}", &simulation);
        text.replace("forces:\n", &format!("{more}forces:\n"))
    };
    let with = |more: &str, independent: &str| by("rk4, step: 5e-3", more, independent);
    let sdirk = "sdirk4, tolerance: {relative: 1e-8, absolute: 1e-8}";
    let point_2 = r#"
variables: {x2: 0, y2: -2}
constraints:
  tie_x: {type: equation, value: "dot(pos(bar_12.p2), [1, 0, 0]) - x2"}
  tie_y: {type: equation, value: "dot(pos(bar_12.p2), [0, 1, 0]) - y2"}
"#;
    for (name, text, reference) in [
        ("chosen", with("", ""), ReferencePoint::CentreOfMass),
        ("chosen, other reference", with("", ""), ReferencePoint::Origin),
        ("named", with("", ", independent: [A.angle, P1.angle]"), ReferencePoint::CentreOfMass),
        ("point 2", with(point_2, ", independent: [x2, y2]"), ReferencePoint::CentreOfMass),
        (
            "point 2 by name",
            with("", ", independent: [bar_12.p2.x, bar_12.p2.y]"),
            ReferencePoint::CentreOfMass,
        ),
        ("sdirk4", by(sdirk, "", ""), ReferencePoint::CentreOfMass),
        ("sdirk4, other reference", by(sdirk, "", ""), ReferencePoint::Origin),
        ("sdirk4, point 2", by(sdirk, point_2, ", independent: [x2, y2]"), ReferencePoint::CentreOfMass),
        ("trapezoidal", by("trapezoidal, step: 2e-4", "", ""), ReferencePoint::CentreOfMass),
        (
            "generalized-alpha",
            by("generalized_alpha, spectral_radius: 0.8, step: 1e-4", "", ""),
            ReferencePoint::CentreOfMass,
        ),
    ] {
        let (model, _) = mbs_codegen::read("five_bar.yaml", &text)
            .unwrap_or_else(|problems| panic!("{}", problems.render("five_bar.yaml", &text)));
        let bundles = mbs_engine::gradient::bundles(&model.simulation, true);
        let options = Options { reference, bundles, ..Options::default() };
        let program = Interpreted::<f64>::new(Program::new(&model, None, &options).expect("a program"));
        let simulation = &model.simulation;
        let start = mbs_engine::gradient::start(&program, simulation).expect("a start");
        let method = start.method(&program, simulation);
        let direct = mbs_engine::gradient::run(&program, &method, simulation, start.clone(), |_| {
            ControlFlow::Continue(())
        });
        let direct = direct.unwrap_or_else(|error| panic!("{name}: {error}"));
        let adjoint =
            mbs_engine::gradient::adjoint::run(&program, &method, simulation, start, 1 << 28, |_| {
                ControlFlow::Continue(())
            });
        let adjoint = adjoint.unwrap_or_else(|error| panic!("{name}: {error}"));
        let rows: Vec<Vec<f64>> = (0..3).map(|i| direct.of_objective(i).to_vec()).collect();
        println!("{name}: {:?} {rows:?}", direct.objectives);
        is_table_7(&rows);
        for (i, row) in rows.iter().enumerate() {
            let size = row.iter().fold(0.0, |size: f64, x| size.max(x.abs()));
            for (a, b) in adjoint.of_objective(i).iter().zip(row) {
                assert!((a - b).abs() <= 1e-12 * size, "{name}: {a} is not {b}");
            }
        }
    }
}

/// Errors of the gradient fall by four where the step is halved, and by a hundred where it is a tenth, down to steps of
/// 10 µs: nothing of it is divided by h.
#[test]
fn the_gradient_converges_with_order_2_at_every_step() {
    let finest = if closed::long_runs() { 1e-5 } else { 2.5e-5 };
    let steps = [1e-2, 5e-3, 1e-3, 1e-4, finest];
    let runs: Vec<Outcome> = steps.iter().map(|&h| of_five_bar(h)).collect();
    // Of order 4, from the two finest: the error of either is known to a few per cent.
    let (fine, coarse) = (&runs[4], &runs[3]);
    let ratio = (steps[3] / steps[4]).powi(2);
    for i in 0..3 {
        for k in 0..5 {
            let limit = (ratio * fine.gradient[i][k] - coarse.gradient[i][k]) / (ratio - 1.0);
            let scale = limit.abs();
            let errors: Vec<f64> = runs.iter().map(|run| (run.gradient[i][k] - limit) / scale).collect();
            println!("psi{} by {}: {errors:?}", i + 1, five_bar::NAMES.sensitivities[k]);
            // From 1 ms to 0.1 ms, and to the finest step: the last by the extrapolation itself.
            let tenth = errors[2] / errors[3];
            assert!((tenth / 100.0 - 1.0).abs() < 0.1, "{tenth}");
            let half = errors[0] / errors[1];
            assert!((half / 4.0 - 1.0).abs() < 0.35, "{half}");
            assert!(errors[4].abs() < 1.1 * errors[3].abs() / ratio + 1e-9, "{errors:?}");
        }
    }
}

/// The gradient is as good with the generalized-alpha method, whose algorithmic acceleration is a state of its own.
#[test]
fn generalized_alpha_has_the_same_gradient() {
    let method = Ali3p { integrator: Implicit::GeneralizedAlpha { spectral_radius: 0.8 }, ..Ali3p::DEFAULT };
    let found = implicit(&five_bar::Model::default(), &mut NoInputs, method, 1e-4, 5.0).expect("it runs");
    let exact = of_five_bar(1e-4);
    for (row, exact) in found.gradient.iter().zip(&exact.gradient) {
        let largest = exact.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
        for (x, y) in row.iter().zip(exact) {
            assert!((x - y).abs() <= 2e-5 * largest, "{x} is not {y}");
        }
    }
}

/// SUNDIALS (Serban, Hindmarsh), example idasSlCrank: G = 3.3366, dG/dk = 0.33345?, dG/dc = −0.36375.
#[test]
fn slider_crank_has_the_gradients_of_sundials() {
    let found =
        implicit(&slider_crank::Model::default(), &mut NoInputs, Ali3p::DEFAULT, 1e-3, 10.0).expect("runs");
    println!("{:?} {:?}", found.psi, found.gradient);
    let [by_k, by_c] = [found.gradient[0][0], found.gradient[0][1]];
    assert!((found.psi[0] - 3.3366).abs() < 1e-4, "{}", found.psi[0]);
    assert!((by_k - 0.33345).abs() < 1e-4 && (by_c + 0.36375).abs() < 1e-4, "{by_k} {by_c}");
}

/// A pursues B at the speed 1: the derivative by the force on B follows the variational equation of the pursuit.
#[test]
fn two_point_masses_follow_the_variational_equation() {
    let (m_b, force, end) = (7.0, 1.0, 5.0);
    // y = (A, A_f)
    let rate = |t: f64, y: [f64; 4]| {
        let b = [3.0 + t, 1.0 + force * t * t / (2.0 * m_b)];
        let b_f = [0.0, t * t / (2.0 * m_b)];
        let d = [b[0] - y[0], b[1] - y[1]];
        let length = d[0].hypot(d[1]);
        let n = [d[0] / length, d[1] / length];
        let change = [b_f[0] - y[2], b_f[1] - y[3]];
        let along = n[0] * change[0] + n[1] * change[1];
        [n[0], n[1], (change[0] - along * n[0]) / length, (change[1] - along * n[1]) / length]
    };
    let mut y = [1.0, 1.0, 0.0, 0.0];
    let steps = 20_000;
    let h = end / f64::from(steps);
    for n in 0..steps {
        let t = f64::from(n) * h;
        let add = |y: [f64; 4], a: f64, k: [f64; 4]| std::array::from_fn(|i| y[i] + a * k[i]);
        let k1 = rate(t, y);
        let k2 = rate(t + h / 2.0, add(y, h / 2.0, k1));
        let k3 = rate(t + h / 2.0, add(y, h / 2.0, k2));
        let k4 = rate(t + h, add(y, h, k3));
        y = std::array::from_fn(|i| y[i] + h / 6.0 * (k1[i] + 2.0 * k2[i] + 2.0 * k3[i] + k4[i]));
    }
    let model = closed::shipped("two_point_masses");
    let dims = model.dims();
    let p = dims.sensitivity.parameters;
    let by_force = (0..p).find(|&k| model.program().sensitivity[k] == "f_B").expect("it is in the list");
    let error = |h: f64| {
        let mut found = gradient::of_shipped("two_point_masses", Ali3p::DEFAULT, h, end);
        let derivatives = StateDerivatives::of(&dims, &mut found.derivatives).expect("its length");
        let at = |name: &str| derivatives.z[closed::coordinate(&model, name) * p + by_force];
        let errors = [at("x_A.displacement") - y[2], at("y_A.displacement") - y[3]];
        let b = at("y_B.displacement") - end * end / (2.0 * m_b);
        assert!(b.abs() < 1e-9, "B moves freely: {b:e}");
        errors[0].abs().max(errors[1].abs())
    };
    let (coarse, fine) = (error(4e-3), error(2e-3));
    println!("exact {:?}, errors {coarse:e} {fine:e}", &y[2..]);
    assert!(fine < 1e-5 && (coarse / fine - 4.0).abs() < 0.4, "{coarse:e} {fine:e}");
}
