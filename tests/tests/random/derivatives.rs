//! Every emitted derivative of random mechanisms, by state and by parameters, against complex steps of the values.

use crate::mechanisms;
use mbs_codegen::program::{BundleKind, Options, Products, Program, ProgramError};
use mbs_engine::Interpreted;
use mbs_engine::verify::{Check, Instant, verify};
use mbs_runtime::System;
use mbs_runtime::formulation::State;
use mbs_runtime::inputs::Inputs;
use mbs_tests::broken::broken;
use mbs_tests::closed;
use mbs_tests::differentiated::{everything, parametrised};
use mbs_tests::random_closed::{Shape, random_closed};
use mbs_tests::random_model::{self, Random, random_model};

/// Of a model that is differentiated by everything it can be differentiated by.
fn program(text: &str, bundles: &[BundleKind]) -> Program {
    let (mut model, _) = mbs_codegen::read("random.yaml", text)
        .unwrap_or_else(|problems| panic!("{}\n{text}", problems.render("random.yaml", text)));
    model.sensitivity = everything(&model);
    let options = Options { bundles: bundles.to_vec(), products: Products::Always, ..Options::default() };
    loop {
        match Program::new(&model, None, &options) {
            Ok(program) => return program,
            // There is no derivative by what violates a row that no coordinate can correct.
            Err(ProgramError::Violating { parameter, .. }) => {
                let names: Vec<String> = model.sensitivity_names(&model.sensitivity);
                let mut keep = names.iter().map(|name| *name != parameter);
                model.sensitivity.retain(|_| keep.next().unwrap_or(true));
                assert!(model.sensitivity.len() < names.len(), "{parameter} is not in the list\n{text}");
            }
            Err(error) => panic!("{error}\n{text}"),
        }
    }
}

fn instant(program: &Program, random: &mut Random) -> Instant {
    crate::instant(&Interpreted::new(program.clone()), random)
}

fn worst(all: &mut Vec<Check>, found: Vec<Check>) {
    for check in found {
        match all.iter_mut().find(|c| c.bundle == check.bundle && c.derivative == check.derivative) {
            Some(known) if known.error >= check.error => {}
            Some(known) => *known = check,
            None => all.push(check),
        }
    }
}

fn show(all: &[Check]) {
    for c in all {
        println!("{:32}{:24}{:9.1e}   {} by {}", c.bundle, c.derivative, c.error, c.of, c.by);
    }
}

/// Derivatives are exact to rounding of their matrix.
const EXACT: f64 = 1e-10;

#[test]
fn derivatives_of_random_mechanisms_in_coordinate_form() {
    let mut all = Vec::new();
    for seed in 0..mechanisms(40) {
        let shape = Shape {
            bodies: 1 + (seed % 5) as usize,
            closures: (seed / 2 % 3) as usize,
            constraints: 1 + (seed / 3 % 4) as usize,
            nonholonomic: seed % 3 == 1,
            runs: false,
        };
        let mut random = Random::new(seed);
        let text = parametrised(&random_closed(seed, shape), 12, &mut random);
        let bundles =
            [&BundleKind::SENSITIVITIES[..], &BundleKind::PRODUCTS, &[BundleKind::Objectives]].concat();
        let program = program(&text, &bundles);
        let checks = verify(&program, &[instant(&program, &mut random)]);
        for check in &checks {
            assert!(check.error <= EXACT, "seed {seed}: {check:?}\n{text}");
        }
        worst(&mut all, checks);
    }
    show(&all);
    assert!(all.iter().filter(|check| check.bundle.ends_with("_product")).count() == 6);
    assert!(all.len() > 25 && all.iter().all(|check| check.entries > 0));
}

/// So many values act on the row of one force that they are differentiated backward.
#[test]
fn derivatives_by_many_values_of_a_spline() {
    let bundles = [&BundleKind::SENSITIVITIES[..], &BundleKind::JOINT_SENSITIVITIES[..]].concat();
    let program = program(&mbs_tests::bicycle::yaml(80), &bundles);
    let checks = verify(&program, &[instant(&program, &mut Random::new(3))]);
    for check in &checks {
        assert!(check.error <= EXACT, "{check:?}");
    }
    assert!(checks.iter().any(|check| check.bundle == "linearise" && check.entries > 80), "{checks:?}");
}

#[test]
fn derivatives_of_random_trees_in_joint_form() {
    let mut all = Vec::new();
    for seed in 0..mechanisms(40) {
        let shape = random_model::Shape { bodies: 1 + (seed % 6) as usize, dissipative: true };
        let mut random = Random::new(seed);
        let text = parametrised(&random_model(seed, shape), 12, &mut random);
        let bundles = [
            &BundleKind::JOINT_SENSITIVITIES[..],
            &[
                BundleKind::ForwardDynamics,
                BundleKind::InverseDynamics,
                BundleKind::InverseDynamicsDerivatives,
                BundleKind::Markers,
                BundleKind::MarkerJacobians,
                BundleKind::Objectives,
            ],
        ]
        .concat();
        let program = program(&text, &bundles);
        let checks = verify(&program, &[instant(&program, &mut random)]);
        for check in &checks {
            assert!(check.error <= EXACT, "seed {seed}: {check:?}\n{text}");
        }
        worst(&mut all, checks);
    }
    show(&all);
}

/// A consistent instant at the start of a mechanism.
fn started(program: &Program) -> Option<(Instant, bool)> {
    let model = Interpreted::<f64>::new(program.clone());
    let d = model.dims();
    let (mut state, statistics) = closed::start(&model, 0.0).ok()?;
    let view = State::of(&d, &mut state).ok()?;
    let mut u = vec![0.0; d.nu];
    model.input_signals().at(0.0, &mut u);
    let [z, zd, zdd, lambda] = [&*view.z, view.zd, view.zdd, view.lambda].map(<[f64]>::to_vec);
    Some((Instant { t: 0.0, z, zd, zdd, u, lambda }, statistics.rank == statistics.rows))
}

#[test]
fn derivatives_of_random_mechanisms_in_joint_form() {
    let (mut all, mut compared) = (Vec::new(), 0);
    for seed in 0..mechanisms(30) {
        let shape = Shape {
            bodies: 2 + (seed % 3) as usize,
            closures: (seed % 2) as usize,
            constraints: 1 + (seed / 2 % 2) as usize,
            nonholonomic: seed % 3 == 1,
            runs: true,
        };
        let mut random = Random::new(seed);
        let text = parametrised(&random_closed(9000 + seed, shape), 8, &mut random);
        let joint = [BundleKind::ForwardDynamics, BundleKind::Objectives];
        let program = program(&text, &[&BundleKind::JOINT_SENSITIVITIES[..], &joint].concat());
        // Where rows repeat each other their multipliers are known to less.
        let Some((instant, true)) = started(&program) else { continue };
        compared += 1;
        let mut checks = verify(&program, &[instant]);
        checks.retain(|check| check.bundle.starts_with("joint"));
        for check in &checks {
            // Times the condition of the equations.
            assert!(check.error <= 1e-8, "seed {seed}: {check:?}\n{text}");
        }
        worst(&mut all, checks);
    }
    show(&all);
    assert!(compared > 10 && all.len() > 8, "{compared} compared");
}

/// A derivative that is wrong by a tenth is found, whichever bundle it stands in.
fn broken_are_found(model: &str, bundles: &[&str]) {
    let text = std::fs::read_to_string(format!("{}/../models/{model}.yaml", env!("CARGO_MANIFEST_DIR")));
    let program = program(&text.expect("a shipped model"), &BundleKind::ALL);
    let instant = [instant(&program, &mut Random::new(7))];
    let clean = verify(&program, &instant);
    assert!(clean.iter().all(|check| check.error < EXACT), "{clean:?}");
    for &name in bundles {
        let checks = verify(&broken(&program, name), &instant);
        let found = checks.iter().filter(|check| check.error > 1e-6);
        assert!(found.clone().count() > 0, "{name} is broken and nobody sees it");
        assert!(found.clone().all(|check| check.bundle == name), "{name}: {:?}", found.collect::<Vec<_>>());
    }
}

/// Those that solve with the mass matrix of a tree.
#[test]
fn broken_derivatives_of_accelerations_are_found() {
    broken_are_found(
        "cart_pole",
        &["forward_dynamics_derivatives", "inverse_dynamics_parameters", "centroidal"],
    );
}

#[test]
fn broken_derivatives_are_found() {
    broken_are_found(
        "five_bar",
        &[
            "newton",
            "projection",
            "linearise",
            "linearise_projections",
            "integrand_derivatives",
            "joint_linearise",
            "joint_integrand_derivatives",
            "inverse_dynamics_derivatives",
            "marker_jacobians",
            "inverse_dynamics_parameters",
            "centroidal",
        ],
    );
}
