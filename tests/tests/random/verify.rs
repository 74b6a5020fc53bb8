//! Checks of whole runs: they pass on random mechanisms by every formulation, and fail where a derivative is wrong.

use crate::mechanisms;
use mbs_codegen::model::{Formulation, Integrator, Model, Projection, Simulation};
use mbs_codegen::program::{Options, Program, Steps};
use mbs_engine::verify::{self, Failure, Report};
use mbs_runtime::StepError;
use mbs_tests::broken::broken;
use mbs_tests::differentiated::{everything, parametrised};
use mbs_tests::random_closed::{Shape, random_closed};
use mbs_tests::random_model::{self, Random, random_model};

fn read(text: &str) -> Model {
    let read = mbs_codegen::read("model.yaml", text);
    read.unwrap_or_else(|problems| panic!("{}\n{text}", problems.render("model.yaml", text))).0
}

fn program(model: &Model, constrained: bool) -> Program {
    let options = Options { bundles: verify::bundles(&model.simulation, constrained), ..Options::default() };
    Program::new(model, None, &options).expect("a program")
}

/// With separate bundles: whatever they write is used.
fn five_bar() -> (Program, Simulation) {
    let path = format!("{}/../models/five_bar.yaml", env!("CARGO_MANIFEST_DIR"));
    let model = read(&std::fs::read_to_string(path).expect("a shipped model"));
    let simulation = Simulation { end: 0.3, step: 1e-2, ..model.simulation.clone() };
    let bundles = verify::bundles(&model.simulation, true);
    let options = Options { bundles, steps: Steps::Separate, ..Options::default() };
    (Program::new(&model, None, &options).expect("a program"), simulation)
}

/// A derivative at once that is wrong is seen by the gradients of the runs that use it, against complex steps of runs; its transpose by adjoints.
#[test]
fn broken_derivatives_at_once_fail() {
    let path = format!("{}/../models/five_bar.yaml", env!("CARGO_MANIFEST_DIR"));
    let model = read(&std::fs::read_to_string(path).expect("a shipped model"));
    let program = program(&model, true);
    let implicit = Simulation { end: 0.3, step: 1e-2, ..model.simulation.clone() };
    let explicit =
        Simulation { formulation: Formulation::Index1, integrator: Integrator::Rk4, ..implicit.clone() };
    let bundles = [
        (&implicit, "differentiate_step"),
        (&implicit, "transpose_step"),
        (&explicit, "differentiate_rate"),
        (&explicit, "transpose_rate"),
        (&explicit, "differentiate_correction"),
        (&explicit, "transpose_correction"),
    ];
    for (simulation, name) in bundles {
        assert!(program.bundle(name).is_some(), "{name}");
        let clean = verify::report(&program, simulation, false, |_| {}).expect("a run");
        assert!(clean.passed(), "{}", told(&clean));
        let report = verify::report(&broken(&program, name), simulation, false, |_| {}).expect("a run");
        assert!(report.derivatives.iter().all(|check| check.passed()), "{name}: {}", told(&report));
        let [runs, adjoints] = [
            report.runs.iter().any(|check| !check.passed()),
            report.adjoints.iter().any(|check| !check.passed()),
        ];
        assert!(adjoints && runs == name.starts_with("differentiate"), "{name} is broken and nobody sees it");
    }
}

/// Corrections of positions keep A dθ = 0 of nonholonomic rows, and so do their derivatives: at steps so long that they move far.
#[test]
fn corrections_of_long_steps_under_nonholonomic_rows() {
    let model = read(
        "
mbs: 1
name: bead
parameters: {f: 1, m: {value: 2, min: 0}, r: {value: 1, min: 0.5}}
bodies: {ax: {}, ay: {}, a: {mass: m}}
joints:
  x: {type: prismatic, parent: ground, child: ax, axis: [1, 0, 0], start: {value: 0.6, rate: 0.4}}
  y: {type: prismatic, parent: ax, child: ay, axis: [0, 1, 0], start: {value: 0.3, rate: 1, hold: true}}
  z: {type: prismatic, parent: ay, child: a, axis: [0, 0, 1], start: {value: 0.74, rate: 0.1}}
constraints:
  sphere: {type: coupling, value: x.displacement^2 + 2*y.displacement^2 + z.displacement^2 - r^2}
  roll: {type: nonholonomic, value: rate(x) - (1 + z.displacement)*rate(y)}
forces: {push: {type: joint_force, coordinate: y, value: f}}
objectives:
  gap: {integrand: \"dot(pos(a), pos(a)) + x.displacement\"}
  height: {terminal: x.displacement + 2*y.displacement}
sensitivity: [f, m, r]
simulation: {end: 0.6, step: 0.1, integrator: rk4, formulation: index1}
",
    );
    for steps in [Steps::Fused, Steps::Separate] {
        let bundles = verify::bundles(&model.simulation, true);
        let options = Options { bundles, steps, ..Options::default() };
        let program = Program::new(&model, None, &options).expect("a program");
        assert_eq!(program.bundle("differentiate_correction").is_some(), steps == Steps::Fused);
        let report = verify::report(&program, &model.simulation, false, |_| {}).expect("a run");
        assert!(report.passed(), "{}", told(&report));
    }
}

/// All that is wrong.
fn told(report: &Report) -> String {
    let derivatives = report.derivatives.iter().filter(|check| !check.passed());
    let runs = report.runs.iter().filter(|check| !check.passed());
    let lines = derivatives.map(|check| format!("{check:?}")).chain(runs.map(|check| format!("{check:?}")));
    lines.chain(report.unseen.iter().map(|bundle| format!("unseen {bundle}"))).collect::<Vec<_>>().join("\n")
}

/// Every wrong derivative is seen, in its bundle; the gradient of a run that uses it is wrong too, and that is seen apart.
#[test]
fn broken_derivatives_fail() {
    let (program, implicit) = five_bar();
    let explicit =
        Simulation { formulation: Formulation::Index1, integrator: Integrator::Rk4, ..implicit.clone() };
    for (simulation, names, used) in [
        (
            &implicit,
            &["newton", "projection", "linearise", "linearise_projections", "integrand_derivatives"][..],
            &["linearise", "linearise_projections", "integrand_derivatives"][..],
        ),
        (
            &explicit,
            &[
                "joint_linearise",
                "joint_integrand_derivatives",
                "inverse_dynamics_derivatives",
                "marker_jacobians",
            ],
            &["joint_linearise", "joint_integrand_derivatives"],
        ),
    ] {
        let clean = verify::report(&program, simulation, false, |_| {}).expect("a run");
        assert!(clean.passed(), "{}", told(&clean));
        assert_eq!((clean.runs.len(), clean.found.objectives.len()), (7, 3));
        for name in names {
            let report = match verify::report(&broken(&program, name), simulation, false, |_| {}) {
                Ok(report) => report,
                // No start satisfies the constraints by this matrix.
                Err(Failure::Start(StepError::Inconsistent { .. })) if *name == "projection" => continue,
                Err(error) => panic!("{name}: {error:?}"),
            };
            let mut wrong = report.derivatives.iter().filter(|check| !check.passed()).peekable();
            assert!(!report.passed() && wrong.peek().is_some(), "{name} is broken and nobody sees it");
            assert!(wrong.all(|check| check.bundle == *name), "{name}: {}", told(&report));
            let gradient = report.runs.iter().any(|check| !check.passed());
            assert_eq!(gradient, used.contains(name), "{name}: {}", told(&report));
        }
    }
}

/// Gradients of steps whose projections have the matrix of the tangent: exact by complex steps and by the adjoint, and a wrong derivative of
/// that matrix is seen in its bundle and in the gradient.
#[test]
fn projections_with_the_tangent_are_differentiated() {
    let path = format!("{}/../models/five_bar.yaml", env!("CARGO_MANIFEST_DIR"));
    let mut model = read(&std::fs::read_to_string(path).expect("a shipped model"));
    for integrator in [Integrator::Trapezoidal, Integrator::GeneralizedAlpha { spectral_radius: 0.7 }] {
        let own = model.simulation.clone();
        model.simulation =
            Simulation { end: 0.3, step: 1e-2, integrator, projection: Projection::Tangent, ..own };
        let (program, simulation) = (program(&model, true), model.simulation.clone());
        let report = verify::report(&program, &simulation, false, |_| {}).expect("a run");
        assert!(report.passed(), "{}", told(&report));
        assert_eq!(report.derivatives.iter().filter(|check| check.bundle == "tangent_product").count(), 5);
        assert_eq!(report.adjoints.len(), 3);
        // It is another run than that with the mass matrix: by 2.2e-6, where gradients are right to 1e-12.
        let mass = Simulation { projection: Projection::Mass, ..simulation.clone() };
        let other = verify::report(&program, &mass, false, |_| {}).expect("a run");
        let pairs = report.found.derivatives.iter().zip(&other.found.derivatives);
        assert!(pairs.map(|(a, b)| (a - b).abs() / (1.0 + b.abs())).fold(0.0, f64::max) > 1e-6);

        let wrong = verify::report(&broken(&program, "tangent_product"), &simulation, false, |_| {});
        let wrong = wrong.expect("a run");
        let mut seen = wrong.derivatives.iter().filter(|check| !check.passed()).peekable();
        assert!(seen.peek().is_some() && seen.all(|check| check.bundle == "tangent_product"));
        assert!(wrong.runs.iter().any(|check| !check.passed()), "{}", told(&wrong));
    }
}

/// Differences of real runs say the same as complex steps, and see a wrong derivative too.
#[test]
fn differences_take_the_place_of_complex_steps() {
    let (program, simulation) = five_bar();
    let report = verify::report(&program, &simulation, true, |_| {}).expect("a run");
    assert!(report.passed(), "{}", told(&report));
    assert!(
        report.runs.iter().all(|check| check.oracle == verify::Oracle::Differences && check.error < 1e-8)
    );
    let report = verify::report(&broken(&program, "linearise"), &simulation, true, |_| {}).expect("a run");
    assert!(report.runs.iter().any(|check| !check.passed()));
}

/// A parameter at its bound is moved inwards, one of no size by something.
#[test]
fn parameters_at_bounds_and_at_zero_are_differentiated() {
    let text = "
mbs: 1
name: damped
gravity: [0, 0, -9.81]
parameters: {m: 1, low: {value: 0.2, min: 0.2}, high: {value: 0.3, max: 0.3}, fixed: {value: 0.1, min: 0.1, max: 0.1}, c: {value: 0, min: 0}, nothing: 0}
inputs: {push: 0.1}
bodies: {rod: {mass: m, com: [0, 0, -0.5], inertia: [0.1, 0.1, low*high], points: {tip: [0, fixed, -1]}}}
joints: {hinge: {type: revolute, parent: ground, child: rod, axis: [0, 1, 0.3], start: {value: high, rate: nothing}}}
forces: {brake: {type: joint_force, coordinate: hinge.angle, value: push - c*rate(hinge)}}
objectives: {haste: rate(hinge)^2 + pos(rod.tip).y}
sensitivity: [low, high, fixed, c, nothing, push]
simulation: {end: 0.5, step: 1e-2}
";
    let model = read(text);
    let program = program(&model, false);
    for integrator in
        [Integrator::Rk4, Integrator::Trapezoidal, Integrator::DormandPrince, Integrator::Dop853]
    {
        let simulation = Simulation { integrator, ..model.simulation.clone() };
        for differences in [false, true] {
            let report = verify::report(&program, &simulation, differences, |_| {}).expect("a run");
            assert!(report.passed(), "{integrator:?} {differences}\n{}", told(&report));
        }
    }
}

#[test]
fn runs_of_random_trees() {
    for seed in 0..mechanisms(16) {
        let shape = random_model::Shape { bodies: 1 + (seed % 4) as usize, dissipative: true };
        let text = parametrised(&random_model(seed, shape), 6, &mut Random::new(seed));
        let mut model = read(&text);
        model.sensitivity = everything(&model);
        let integrators =
            [Integrator::Rk4, Integrator::DormandPrince, Integrator::Dop853, Integrator::Trapezoidal];
        let integrator = integrators[seed as usize % integrators.len()];
        let simulation = Simulation { end: 0.05, step: 5e-3, integrator, ..model.simulation.clone() };
        let report = verify::report(&program(&model, false), &simulation, false, |_| {});
        let report = report.unwrap_or_else(|error| panic!("seed {seed}: {error:?}\n{text}"));
        assert!(report.passed(), "seed {seed}, {integrator:?}\n{}\n{text}", told(&report));
    }
}

#[test]
fn runs_of_random_mechanisms() {
    let methods = [
        (Formulation::Ali3p, Integrator::Trapezoidal),
        (Formulation::Ali3p, Integrator::GeneralizedAlpha { spectral_radius: 0.7 }),
        (Formulation::Index1, Integrator::Trapezoidal),
        (Formulation::Index1, Integrator::Rk4),
        (Formulation::Penalty, Integrator::Trapezoidal),
        (Formulation::MatrixR, Integrator::Rk4),
        (Formulation::MatrixR, Integrator::DormandPrince),
        (Formulation::MatrixR, Integrator::Dop853),
        (Formulation::MatrixR, Integrator::Sdirk4),
        (Formulation::MatrixR, Integrator::Trapezoidal),
    ];
    let (mut passed, mut refused) = (0, 0);
    for seed in 0..mechanisms(11) {
        let shape = Shape {
            bodies: 2 + (seed % 3) as usize,
            closures: (seed % 2) as usize,
            constraints: 1 + (seed / 2 % 2) as usize,
            nonholonomic: seed % 3 == 1,
            runs: true,
        };
        let text = parametrised(&random_closed(9000 + seed, shape), 5, &mut Random::new(seed));
        let mut model = read(&text);
        model.sensitivity = everything(&model);
        // Of both matrices of the projections, in turn.
        let projection = if seed % 2 == 0 { Projection::Mass } else { Projection::Tangent };
        (model.simulation.formulation, model.simulation.integrator) = methods[0];
        model.simulation.projection = projection;
        let program = program(&model, true);
        // The first method, and one of the others.
        for (formulation, integrator) in [methods[0], methods[1 + seed as usize % (methods.len() - 1)]] {
            let settings = model.simulation.clone();
            let simulation = Simulation { end: 0.02, step: 2e-3, formulation, integrator, ..settings };
            match verify::report(&program, &simulation, false, |_| {}) {
                Ok(report) => {
                    let method = format!("seed {seed}, {formulation:?}, {integrator:?}, {projection:?}");
                    assert!(report.passed(), "{method}\n{}\n{text}", told(&report));
                    passed += 1;
                }
                // It cannot be put together, or not moved.
                Err(Failure::Start(_) | Failure::Run(StepError::Incompatible { .. })) => refused += 1,
                Err(error) => panic!("seed {seed}, {formulation:?}, {integrator:?}: {error:?}\n{text}"),
            }
        }
    }
    println!("{passed} passed, {refused} refused");
    assert!(passed > 10, "{passed} passed, {refused} refused");
}
