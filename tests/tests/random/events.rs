//! Events of random mechanisms: direct gradient, adjoint gradient and differences of whole runs.
//!
//! At parameters of time a constraint on velocities is added and taken away, a point bounces, another time with friction, a rate is reset, inputs are
//! set, to numbers and to what motion makes of them, and objectives are taken; a force has a branch that is promoted, and laws name the time.

use crate::mechanisms;
use mbs_codegen::analysis::Analysed;
use mbs_codegen::model::{Formulation, Integrator, Model, SensitivityRef, Simulation};
use mbs_codegen::program::{BundleKind, Options, Program, ProgramError};
use mbs_engine::Interpreted;
use mbs_engine::gradient::{self, Found, adjoint};
use mbs_engine::simulation::{self, Instance, Overrides, Silent};
use mbs_runtime::StepError;
use mbs_tests::differentiated::{everything, parametrised};
use mbs_tests::random_closed::{Shape, random_closed};
use mbs_tests::random_model::{self, Random, random_model};
use std::ops::ControlFlow;

/// Puts lines into a section of a file, which may be there already.
fn put(text: &mut String, section: &str, lines: &str) {
    let head = format!("\n{section}:\n");
    match text.find(&head) {
        Some(place) => text.insert_str(place + head.len(), lines),
        None => text.push_str(&format!("{section}:\n{lines}")),
    }
}

fn with_events(mut text: String) -> String {
    if !text.ends_with('\n') {
        text.push('\n');
    }
    put(
        &mut text,
        "parameters",
        "  T1: 0.0113\n  T2: 0.0217\n  T3: 0.0331\n  T4: 0.0371\n  T5: 0.0411\n  rest: 0.4\n  rough: 0.3\n",
    );
    put(&mut text, "inputs", "  level: 0.2\n  latch: 0.1\n");
    text.push_str("switches: exact\nmodes:\n  brake: [loose, tight]\n");
    put(&mut text, "constraints", "  shoe: {type: nonholonomic, value: vel(b0.tip).z, in: brake.tight}\n");
    put(
        &mut text,
        "forces",
        "  squall: {type: force, at: b0.tip, value: [\"level*sin(40*t) + latch\", \"abs(vel(b0.tip).x)\", 0.3]}\n  haul: {type: force, at: b0.tip, value: [0, 2, 1], in: brake.tight}\n",
    );
    text.push_str(
        "events:
  tightens: {when: t - T1, direction: rising, then: {mode: brake.tight, set: {level: 0.7}}}
  bounces: {when: t - T2, direction: rising, then: {impact: {gap: pos(b0.tip).x, restitution: rest}}}
  loosens: {when: t - T3, direction: rising, then: {mode: brake.loose, set: {latch: \"latch + t*vel(b0.tip).y\"}}}
  scrapes: {when: t - T4, direction: rising, then: {impact: {gap: pos(b0.tip).y, restitution: rest, friction: rough, slip: vel(b0.tip).z}}}
  slows: {when: t - T5, direction: rising, then: {record: true, reset: [{rate: vel(b0.tip).x, to: rest*vel(b0.tip).x}]}}
",
    );
    put(
        &mut text,
        "objectives",
        "  way: {integrand: \"cos(9*t)*dot(vel(b0.tip), vel(b0.tip))\", terminal: norm(pos(b0.tip))}\n  spots: {at: [{event: scrapes, value: \"t*pos(b0.tip).z\"}, {event: bounces, value: vel(b0.tip).y, which: first}]}\n",
    );
    text
}

fn read(text: &str) -> Model {
    let read = mbs_codegen::read("model.yaml", text);
    read.unwrap_or_else(|problems| panic!("{}\n{text}", problems.render("model.yaml", text))).0
}

fn run(model: &Interpreted, simulation: &Simulation) -> Result<Found, StepError> {
    let start = gradient::start(model, simulation)?;
    let method = start.method(model, simulation);
    gradient::run(model, &method, simulation, start, |_| ControlFlow::Continue(()))
}

/// The largest difference between gradient and differences, in parts of the largest entry of its row.
fn compare(model: &Interpreted, simulation: &Simulation, places: &[usize]) -> Result<f64, StepError> {
    let found = run(model, simulation)?;
    let mut worst: f64 = 0.0;
    let start = gradient::start(model, simulation)?;
    let method = start.method(model, simulation);
    let back = adjoint::run(model, &method, simulation, start, 1 << 24, |_| ControlFlow::Continue(()))?;
    for i in 0..found.objectives.len() {
        let row = found.of_objective(i).iter().fold(1e-9, |row: f64, x| row.max(x.abs()));
        for (a, b) in back.of_objective(i).iter().zip(found.of_objective(i)) {
            assert!((a - b).abs() < 1e-9 * row, "{a} by the adjoint, {b} by the direct method");
        }
    }
    for (k, &place) in places.iter().enumerate() {
        let value = model.parameters()[place];
        let by = 1e-5 * value.abs().max(1e-2);
        let at = |part: f64| {
            let mut moved = model.clone();
            let mut parameters = moved.parameters().to_vec();
            parameters[place] += part * by;
            moved.set_parameters(&parameters).expect("parameters");
            run(&moved, simulation)
        };
        // Where an event moves over a node, the discrete run is not smooth.
        let over_a_node = found.events.iter().any(|event| {
            let node = simulation.step * (event.t / simulation.step).round();
            (event.t - node).abs() < 3.0 * by * event.derivatives[k].abs()
        });
        if over_a_node {
            continue;
        }
        let [a, b, c, d] = [at(-2.0)?, at(-1.0)?, at(1.0)?, at(2.0)?];
        for i in 0..found.objectives.len() {
            let [a, b, c, d] = [&a, &b, &c, &d].map(|found| found.objectives[i]);
            let expected = (a - 8.0 * b + 8.0 * c - d) / (12.0 * by);
            let row = found.of_objective(i).iter().fold(found.objectives[i].abs(), |row, x| row.max(x.abs()));
            // Rounding of the difference.
            let rounding = 1e-14 * found.objectives[i].abs() / by;
            worst =
                worst.max(((found.of_objective(i)[k] - expected).abs() - 10.0 * rounding) / row.max(1e-9));
        }
    }
    Ok(worst)
}

#[test]
fn gradients_through_events_of_random_mechanisms() {
    let methods = [
        (Formulation::Index1, Integrator::Rk4),
        (Formulation::Ali3p, Integrator::Trapezoidal),
        (Formulation::Ali3p, Integrator::GeneralizedAlpha { spectral_radius: 0.7 }),
        (Formulation::Index1, Integrator::DormandPrince),
        (Formulation::Index1, Integrator::Dop853),
    ];
    let (mut compared, mut refused, mut worst) = ([0; 5], 0, [0.0f64; 5]);
    for seed in 0..mechanisms(16) {
        let mut random = Random::new(seed);
        let base = if seed % 2 == 0 {
            random_model(seed, random_model::Shape { bodies: 1 + (seed / 2 % 3) as usize, dissipative: true })
        } else {
            let shape = Shape {
                bodies: 2 + (seed % 3) as usize,
                closures: 1,
                constraints: 1,
                nonholonomic: seed % 3 == 1,
                runs: true,
            };
            random_closed(7000 + seed, shape)
        };
        // Both sides of a branch that is promoted must be numbers.
        let text = with_events(parametrised(&base, 4, &mut random)).replace("^1.5", "^3");
        let mut model = read(&text);
        let all = everything(&model);
        let is_parameter = |one: &SensitivityRef| matches!(one, SensitivityRef::Parameter { .. });
        let names = ["T1", "T2", "T3", "T4", "T5", "rest", "rough"];
        let (own, others): (Vec<_>, Vec<_>) = all
            .into_iter()
            .filter(is_parameter)
            .partition(|&one| names.contains(&&*model.sensitivity_name(one)));
        model.sensitivity = own.into_iter().chain(others.into_iter().take(2)).collect();
        let places: Vec<usize> =
            model.sensitivity.iter().filter_map(|&one| model.sensitivity_parameter(one)).collect();
        let explicit = Simulation { integrator: Integrator::Rk4, ..model.simulation.clone() };
        let mut bundles: Vec<BundleKind> = gradient::bundles(&explicit, true);
        bundles.extend(BundleKind::SENSITIVITIES);
        let program = match Program::new(&model, None, &Options { bundles, ..Options::default() }) {
            Ok(program) => Interpreted::new(program),
            // Such parameters, or the point does not move.
            Err(ProgramError::Violating { .. } | ProgramError::Event { .. }) => continue,
            Err(error) => panic!("{error}\n{text}"),
        };
        for (k, &(formulation, integrator)) in methods.iter().enumerate() {
            let settings = model.simulation.clone();
            let simulation = Simulation {
                end: 0.047,
                step: 2e-3,
                formulation,
                integrator,
                newton_tolerance: 1e-13,
                // Differences divide errors of runs by 1e−5.
                relative_tolerance: 1e-12,
                absolute_tolerance: 1e-13,
                ..settings
            };
            match compare(&program, &simulation, &places) {
                Ok(found) => {
                    compared[k] += 1;
                    worst[k] = worst[k].max(found);
                    // Steps of step control change with the parameters, and their errors with them.
                    let limit = if integrator.controls_steps() { 1e-4 } else { 2e-6 };
                    assert!(
                        found < limit,
                        "seed {seed}, {formulation:?}, {integrator:?}: {found:.2e}\n{text}"
                    );
                }
                // It cannot be put together, or not be moved.
                Err(error) => {
                    refused += 1;
                    println!("seed {seed}, {formulation:?}, {integrator:?}: {}", error.describe(&program));
                }
            }
        }
    }
    println!("{compared:?} compared, {worst:?}, {refused} refused");
    assert!(compared.iter().all(|&n| n >= 7), "{compared:?} compared, {refused} refused");
}

/// A frictionless impact with e ≤ 1 creates no energy where constraints stand still, and loses (1 − e²) of what moves along the gap.
#[test]
fn impacts_of_random_mechanisms_create_no_energy() {
    let mut lost = 0;
    for seed in 0..mechanisms(24) {
        let mut text = random_model(
            300 + seed,
            random_model::Shape { bodies: 1 + (seed % 4) as usize, dissipative: seed % 2 == 0 },
        );
        let e = [0.0, 0.3, 0.8, 1.0][seed as usize / 4 % 4];
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&format!(
            "events:
  first: {{when: t - 0.0113, direction: rising, then: {{impact: {{gap: pos(b0.tip).x, restitution: {e}}}}}}}
  second: {{when: t - 0.0271, direction: rising, then: {{impact: {{gap: \"norm(pos(b0.tip) - [0.3, 0.2, -0.7])\", restitution: {e}}}}}}}
",
        ));
        let overrides = Overrides {
            integrator: Some(Integrator::Rk4),
            end: Some(0.04),
            step: Some(2e-3),
            ..Overrides::default()
        };
        let analysed = Analysed::of(read(&text));
        let Ok(Instance { model, settings }) = Instance::of_dynamics(&analysed, None, &[], &overrides) else {
            continue;
        };
        let record = simulation::run(&model, &settings, &mut Silent);
        if record.failure.is_some() {
            continue;
        }
        assert_eq!(record.seen.events.len(), 2, "seed {seed}\n{text}");
        let balance = &record.seen.balance;
        assert!(balance.at_events < 1e-11, "seed {seed}, e = {e}: {}\n{text}", balance.at_events);
        if e == 1.0 {
            assert!(balance.at_events > -1e-9, "seed {seed}: {}", balance.at_events);
        } else {
            lost += usize::from(balance.at_events < -1e-9);
        }
    }
    assert!(lost >= 6, "{lost} impacts lost energy");
}
