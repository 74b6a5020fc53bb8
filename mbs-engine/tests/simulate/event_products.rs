//! Products with the derivative of runs with events, and second derivatives of their objectives.

use crate::common::shipped;
use crate::events::{DRIVEN, ROD, adjoint, chosen_rates, close, model, to_differentiate};
use crate::impacts_with_friction::ROUGH;
use mbs_codegen::model::{Formulation, Integrator};
use mbs_engine::gradient::products::{Directions, gauss_newton, jacobian_vector};
use mbs_engine::gradient::{self, hessian_vectors, hessians};
use mbs_engine::simulation::{Instance, Overrides};

/// A ball that bounces once: z(T) = (1 + e) T √(2 g h) − (1 + 2 e) h − g T²/2.
#[test]
fn second_derivatives_through_a_bounce_are_those_of_the_closed_form() {
    let (g, e, h, end) = (9.81_f64, 0.8, 1.0_f64, 0.7);
    let text = shipped("bouncing_ball");
    let explicit = [Integrator::Rk4, Integrator::DormandPrince, Integrator::Dop853];
    for integrator in explicit.into_iter().chain([Integrator::Trapezoidal, Integrator::Sdirk4]) {
        let newton_tolerance = (integrator == Integrator::Trapezoidal).then_some(1e-13);
        let (integrator, step) = (Some(integrator), Some(0.037));
        let overrides =
            Overrides { integrator, step, end: Some(end), newton_tolerance, ..Overrides::default() };
        let Instance { model, settings } = to_differentiate(&model(&text), &overrides);
        let start = gradient::start(&model, &settings.simulation).expect("a start");
        let method = start.method(&model, &settings.simulation);
        let found =
            hessians(&model, &method, &settings.simulation, false, 1 << 24).expect("second derivatives");
        let root = (2.0 * g * h).sqrt();
        let expected = [
            [
                -(1.0 + e) * end * root / (4.0 * g * g),
                end * root / (2.0 * g),
                (1.0 + e) * end * root / (4.0 * g * h),
            ],
            [end * root / (2.0 * g), 0.0, end * root / (2.0 * h) - 2.0],
            [
                (1.0 + e) * end * root / (4.0 * g * h),
                end * root / (2.0 * h) - 2.0,
                -(1.0 + e) * end * root / (4.0 * h * h),
            ],
        ];
        for (k, (found, expected)) in found.products.iter().zip(expected.as_flattened()).enumerate() {
            close(&format!("{integrator:?}, entry {k}"), *found, *expected, 1e-10);
        }
    }
}

/// Forward products are the gradient times the direction; Hessians are differences of gradients, and symmetric; Jᵀ W J is made of both.
#[test]
fn products_through_events_agree_with_gradients() {
    let with = |integrator, formulation, step: f64, end: f64| Overrides {
        integrator: Some(integrator),
        formulation,
        newton_tolerance: (!Integrator::is_runge_kutta(integrator)).then_some(1e-13),
        step: Some(step),
        end: Some(end),
        ..Overrides::default()
    };
    let (index1, ali3p) = (Some(Formulation::Index1), Some(Formulation::Ali3p));
    let (rk4, trapezoidal) = (Integrator::Rk4, Integrator::Trapezoidal);
    let cases = [
        ("five-bar, rk4", chosen_rates(), with(rk4, index1, 0.013, 0.6)),
        (
            "five-bar, matrix R",
            shipped("five_bar_bouncing"),
            with(rk4, Some(Formulation::MatrixR), 0.013, 0.6),
        ),
        ("five-bar, step control", chosen_rates(), with(Integrator::DormandPrince, index1, 0.013, 0.6)),
        ("five-bar, order 8", chosen_rates(), with(Integrator::Dop853, index1, 0.013, 0.6)),
        ("five-bar, stages", chosen_rates(), with(Integrator::Sdirk4, index1, 0.013, 0.6)),
        ("five-bar, ali3p", shipped("five_bar_bouncing"), with(trapezoidal, ali3p, 0.013, 0.6)),
        ("rod, rk4", ROD.into(), with(rk4, None, 0.013, 1.3)),
        ("rod, trapezoidal", ROD.into(), with(trapezoidal, None, 0.013, 1.3)),
        ("driven, rk4", DRIVEN.into(), with(rk4, None, 0.013, 1.6)),
        ("driven, trapezoidal", DRIVEN.into(), with(trapezoidal, None, 0.013, 1.6)),
        ("knee, rk4", shipped("knee_lock"), with(rk4, index1, 0.013, 0.8)),
        ("knee, ali3p", shipped("knee_lock"), with(trapezoidal, ali3p, 0.013, 0.8)),
        ("friction, rk4", ROUGH.into(), with(rk4, None, 0.013, 0.9)),
    ];
    for (what, text, overrides) in cases {
        // Away from the bounds of parameters.
        let text = text.replace("e: {value: 1,", "e: {value: 0.9,");
        let source = model(&text);
        let Instance { model, settings } = to_differentiate(&source, &overrides);
        let simulation = &settings.simulation;
        let start = gradient::start(&model, simulation).expect("a start");
        let method = start.method(&model, simulation);
        let found = adjoint(&text, &overrides, 1 << 24);
        assert!(!found.events.is_empty(), "{what}");
        let (p, m) = (found.of_objective(0).len(), found.objectives.len());
        // The clock of laws and what events set have columns, too, behind the parameters of the file: they stay.
        let own = source.sensitivity.len();
        let direction: Vec<f64> =
            (0..p).map(|k| if k < own { (1.3 + 0.7 * k as f64).sin() } else { 0.0 }).collect();
        let dot = |row: &[f64]| row.iter().zip(&direction).map(|(x, v)| x * v).sum::<f64>();
        let changes = start.derivatives(&model, &method).expect("derivatives of the start");
        let first: Vec<f64> = changes.chunks_exact(p).map(dot).collect();
        let directions = Directions { columns: 1, start: &first, rho: &direction };
        let along = jacobian_vector(&model, &method, simulation, start.clone(), directions)
            .unwrap_or_else(|error| panic!("{what}: {}", error.describe(&model)));
        for i in 0..m {
            let row = found.of_objective(i);
            let size = row.iter().fold(1e-6, |size: f64, x| size.max(x.abs()));
            let (change, expected) = (along.objective_changes[i], dot(row));
            assert!((change - expected).abs() < 1e-8 * size, "{what}, objective {i}: {change}, {expected}");
        }

        let redundant = start.redundant();
        let second = hessian_vectors(&model, &method, simulation, redundant, &direction, 1 << 26)
            .unwrap_or_else(|error| panic!("{what}: {}", error.describe(&model)));
        let all = hessians(&model, &method, simulation, redundant, 1 << 26).expect("second derivatives");
        let by = 1e-6;
        let at = |part: f64| {
            let mut moved = model.clone();
            let mut parameters = moved.parameters().to_vec();
            for (&one, v) in source.sensitivity.iter().zip(&direction) {
                parameters[source.sensitivity_parameter(one).expect("a parameter")] += part * by * v;
            }
            moved.set_parameters(&parameters).expect("parameters");
            let start = gradient::start(&moved, simulation).expect("a start");
            let go_on = |_: mbs_runtime::AdjointNode<'_, f64>| std::ops::ControlFlow::Continue(());
            let run = gradient::adjoint::run(&moved, &method, simulation, start, 1 << 26, go_on);
            run.unwrap_or_else(|error| panic!("{what}: {}", error.describe(&moved))).derivatives
        };
        let [a, b, c, d] = [-2.0, -1.0, 1.0, 2.0].map(at);
        for i in 0..m {
            let hessian = &all.products[i * p * p..(i + 1) * p * p];
            let size = hessian.iter().fold(1e-6, |size: f64, x| size.max(x.abs()));
            for j in 0..p {
                for k in 0..j.min(own) {
                    let (one, other) = (hessian[j * p + k], hessian[k * p + j]);
                    assert!((one - other).abs() < 1e-8 * size, "{what}, objective {i}: {one}, {other}");
                }
                let place = i * p + j;
                let product = second.products[place];
                close(
                    &format!("{what}, objective {i}"),
                    product / size,
                    dot(&hessian[j * p..(j + 1) * p]) / size,
                    1e-8,
                );
                // Under step control steps change with the parameters, and their errors with them.
                let tolerance = if simulation.integrator.controls_steps() { 1e-2 } else { 2e-5 };
                let difference = (a[place] - 8.0 * b[place] + 8.0 * c[place] - d[place]) / (12.0 * by);
                assert!(
                    (product - difference).abs() < tolerance * size,
                    "{what}, objective {i}, row {j}: {product}, by differences {difference}, size {size}"
                );
            }
        }

        let weights: Vec<f64> = (0..m).map(|i| 1.0 + 0.5 * i as f64).collect();
        let product = gauss_newton(&model, &method, simulation, start, &weights, &direction, 1 << 26);
        let product = product.expect("a product");
        for (j, product) in product.iter().enumerate() {
            let terms = (0..m).map(|i| weights[i] * dot(found.of_objective(i)) * found.of_objective(i)[j]);
            let (sum, size) = terms.fold((0.0, 1e-9), |(sum, size), x: f64| (sum + x, size + x.abs()));
            assert!((product - sum).abs() < 1e-7 * size, "{what}, row {j}: {product}, {sum}");
        }
    }
}
