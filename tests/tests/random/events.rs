//! Events of random mechanisms: the direct gradient is the derivative of the discrete run, by differences of whole runs.
//!
//! At parameters of time a constraint on velocities is added and taken away, a point bounces, and an input is set to what follows motion and
//! parameters; a force has a branch that is promoted, and laws name the time.

use crate::mechanisms;
use mbs_codegen::model::{Formulation, Integrator, Model, SensitivityRef, Simulation};
use mbs_codegen::program::{BundleKind, Options, Program, ProgramError};
use mbs_engine::Interpreted;
use mbs_engine::gradient::{self, Found};
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
    put(&mut text, "parameters", "  T1: 0.0113\n  T2: 0.0217\n  T3: 0.0331\n  rest: 0.4\n");
    put(&mut text, "inputs", "  level: 0.2\n");
    text.push_str("switches: exact\nmodes:\n  brake: [loose, tight]\n");
    put(&mut text, "constraints", "  brake: {type: nonholonomic, value: vel(b0.tip).z, in: brake.tight}\n");
    put(
        &mut text,
        "forces",
        "  gust: {type: force, at: b0.tip, value: [\"level*sin(40*t)\", \"abs(vel(b0.tip).x)\", 0.3]}\n  pull: {type: force, at: b0.tip, value: [0, 2, 1], in: brake.tight}\n",
    );
    text.push_str(
        "events:
  tightens: {when: t - T1, direction: rising, then: {mode: brake.tight, set: {level: \"0.1 + rest*norm(pos(b0.tip))\"}}}
  bounces: {when: t - T2, direction: rising, then: {impact: {gap: pos(b0.tip).x, restitution: rest}}}
  loosens: {when: t - T3, direction: rising, then: {mode: brake.loose}}
",
    );
    put(
        &mut text,
        "objectives",
        "  path: {integrand: \"cos(9*t)*dot(vel(b0.tip), vel(b0.tip))\", terminal: norm(pos(b0.tip))}\n",
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
    for (k, &place) in places.iter().enumerate() {
        let value = model.parameters()[place];
        let by = 1e-5 * value.abs().max(1e-2);
        let mut at = |part: f64| {
            let mut moved = model.clone();
            let mut parameters = moved.parameters().to_vec();
            parameters[place] += part * by;
            moved.set_parameters(&parameters).expect("parameters");
            run(&moved, simulation)
        };
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
        (Formulation::Penalty, Integrator::Rk4),
    ];
    let (mut compared, mut refused, mut worst) = ([0; 4], 0, [0.0f64; 4]);
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
        let text = with_events(parametrised(&base, 4, &mut random));
        let mut model = read(&text);
        let all = everything(&model);
        let is_parameter = |one: &SensitivityRef| matches!(one, SensitivityRef::Parameter { .. });
        let names = ["T1", "T2", "T3", "rest"];
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
            Err(ProgramError::Violating { .. }) => continue,
            Err(error) => panic!("{error}\n{text}"),
        };
        for (k, &(formulation, integrator)) in methods.iter().enumerate() {
            let settings = model.simulation.clone();
            let simulation = Simulation {
                end: 0.045,
                step: 2e-3,
                formulation,
                integrator,
                newton_tolerance: 1e-13,
                ..settings
            };
            match compare(&program, &simulation, &places) {
                Ok(found) => {
                    compared[k] += 1;
                    worst[k] = worst[k].max(found);
                    assert!(
                        found < 2e-6,
                        "seed {seed}, {formulation:?}, {integrator:?}: {found:.2e}\n{text}"
                    );
                }
                // It cannot be put together, or not be moved.
                Err(_) => refused += 1,
            }
        }
    }
    println!("{compared:?} compared, {worst:?}, {refused} refused");
    assert!(compared.iter().all(|&n| n >= 5), "{compared:?} compared, {refused} refused");
}
