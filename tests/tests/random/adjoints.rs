//! Adjoints of random mechanisms: the same gradient as the direct derivative by every method, products that are transposes of each
//! other, derivatives by histories of inputs, and second derivatives.

use crate::mechanisms;
use mbs_codegen::model::{Formulation, Integrator, Model, Simulation};
use mbs_codegen::program::{BundleKind, Options, Products, Program, ProgramError, Steps};
use mbs_codegen::symbols::Group;
use mbs_engine::gradient::products::{Directions, Weights, gauss_newton, jacobian_vector, vector_jacobian};
use mbs_engine::gradient::{self, Found, InputHistory, adjoint, by_end_time, hessian_vectors, hessians};
use mbs_engine::{Interpreted, Signals};
use mbs_generated::five_bar;
use mbs_runtime::named::{Fields, Memory};
use mbs_runtime::simulation::{GradientMethod, adjoint_memory_len, gradient_by_adjoint, gradient_with};
use mbs_runtime::{
    AdjointNode, Ali3p, Complex64, DifferentiableIntegrator, Differentiated, Fixed, Gradient, Index1, Inputs,
    JointDerivatives, JointObjectiveDerivatives, JointSensitivities, OnConstraints, Output, Rk4, Scalar,
    Sensitivities, Span, StepError, System,
};
use mbs_tests::closed;
use mbs_tests::differentiated::{everything, parametrised};
use mbs_tests::random_closed::{Shape, random_closed};
use mbs_tests::random_model::{self, Random, random_model};
use std::ops::ControlFlow;

const MEMORY: usize = 1 << 24;

fn read(text: &str) -> Model {
    let read = mbs_codegen::read("model.yaml", text);
    read.unwrap_or_else(|problems| panic!("{}\n{text}", problems.render("model.yaml", text))).0
}

/// With the bundles of all runs, and lists of derivatives in the adjoint.
fn interpreted(model: &Model, constrained: bool) -> Option<Interpreted> {
    interpreted_with(model, constrained, false, Steps::Fused)
}

/// The same with transposed products as bundles of their own, or with lists.
fn interpreted_with(
    model: &Model,
    constrained: bool,
    by_products: bool,
    steps: Steps,
) -> Option<Interpreted> {
    let explicit = Simulation { integrator: Integrator::Rk4, ..model.simulation.clone() };
    let mut bundles: Vec<BundleKind> = gradient::bundles(&explicit, constrained);
    bundles.extend(BundleKind::SENSITIVITIES);
    bundles.extend(constrained.then_some(BundleKind::ConstraintRows));
    if by_products {
        bundles.extend(BundleKind::PRODUCTS);
    }
    bundles.dedup();
    let options = Options { bundles, products: Products::Always, steps, ..Options::default() };
    match Program::new(model, None, &options) {
        Ok(program) => Some(Interpreted::new(program)),
        // There is no derivative by what violates a row that no coordinate can correct.
        Err(ProgramError::Violating { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

fn go_on(_: AdjointNode<'_, f64>) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// The largest difference of two rows in parts of the largest entry.
fn distance(found: &[f64], expected: &[f64]) -> f64 {
    let row = expected.iter().fold(1e-12, |row: f64, x| row.max(x.abs()));
    found.iter().zip(expected).fold(0.0, |worst: f64, (a, b)| worst.max((a - b).abs() / row))
}

/// What direct and adjoint gradient of a run differ by, the latter also by separate bundles, and their products.
fn compare(
    model: &Interpreted,
    separate: Option<&Interpreted>,
    simulation: &Simulation,
    random: &mut Random,
) -> Result<[f64; 2], StepError> {
    let dims = model.dims();
    let start = gradient::start(model, simulation)?;
    let method = start.method(model, simulation);
    let direct = gradient::run(model, &method, simulation, start.clone(), |_| ControlFlow::Continue(()))?;
    let back = adjoint::run(model, &method, simulation, start.clone(), MEMORY, go_on)?;
    assert_eq!(back.objectives.len(), dims.n_objectives);
    let worst_of = |back: &Found| {
        let rows = 0..dims.n_objectives;
        rows.map(|i| distance(back.of_objective(i), direct.of_objective(i))).fold(0.0, f64::max)
    };
    let mut worst = worst_of(&back);
    if let Some(separate) = separate {
        let back = adjoint::run(separate, &method, simulation, start.clone(), MEMORY, go_on)?;
        worst = worst.max(worst_of(&back));
    }

    // ⟨ȳ, J x′⟩ = ⟨Jᵀ ȳ, x′⟩
    let (p, rows) =
        (dims.sensitivity.parameters, start.derivatives(model, &method)?.len() / dims.sensitivity.parameters);
    let mut some = |n: usize| (0..n).map(|_| random.uniform(-1.0, 1.0)).collect::<Vec<f64>>();
    let (rho, psi, mut end) = (some(p), some(dims.n_objectives), some(rows));
    // Directions along the constraints: those of the start by the parameters.
    let changes = start.derivatives(model, &method)?;
    let other = some(p);
    let x: Vec<f64> =
        changes.chunks_exact(p).map(|row| row.iter().zip(&other).map(|(a, b)| a * b).sum()).collect();
    if start.redundant() {
        // A choice among multipliers has no weight.
        end.iter_mut().for_each(|weight| *weight = 0.0);
    }
    let forward = jacobian_vector(
        model,
        &method,
        simulation,
        start.clone(),
        Directions { columns: 1, start: &x, rho: &rho },
    )?;
    let weights = Weights { columns: 1, objectives: &psi, end: &end };
    let back = vector_jacobian(model, &method, simulation, start, weights, MEMORY, go_on)?;
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let size = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a * b).abs()).sum::<f64>();
    let left = dot(&psi, &forward.objective_changes) + dot(&end, &forward.end);
    let right = dot(&back.start, &x) + dot(&back.rho, &rho);
    let scale = size(&psi, &forward.objective_changes)
        + size(&end, &forward.end)
        + size(&back.start, &x)
        + size(&back.rho, &rho);
    Ok([worst, (left - right).abs() / scale.max(1e-12)])
}

const METHODS: [(Formulation, Integrator); 17] = [
    (Formulation::Ali3p, Integrator::Trapezoidal),
    (Formulation::Ali3p, Integrator::GeneralizedAlpha { spectral_radius: 0.7 }),
    (Formulation::Ali3p, Integrator::Newmark { beta: 0.3025, gamma: 0.6 }),
    (Formulation::Index1, Integrator::Trapezoidal),
    (Formulation::Index1, Integrator::Rk4),
    (Formulation::Index1, Integrator::DormandPrince),
    (Formulation::Index1, Integrator::Dop853),
    (Formulation::Index1, Integrator::Sdirk4),
    (Formulation::Penalty, Integrator::Trapezoidal),
    (Formulation::Penalty, Integrator::Rk4),
    (Formulation::MatrixR, Integrator::Rk4),
    (Formulation::MatrixR, Integrator::DormandPrince),
    (Formulation::MatrixR, Integrator::Dop853),
    (Formulation::MatrixR, Integrator::Sdirk4),
    (Formulation::MatrixR, Integrator::Trapezoidal),
    (Formulation::MatrixR, Integrator::GeneralizedAlpha { spectral_radius: 0.7 }),
    (Formulation::MatrixR, Integrator::Newmark { beta: 0.3025, gamma: 0.6 }),
];

#[test]
fn adjoints_of_random_mechanisms() {
    let (mut compared, mut refused, mut worst) = ([0; METHODS.len()], 0, [[0.0f64; 2]; METHODS.len()]);
    // Derivatives of few parameters come at once, and so do adjoints of few objectives; these also by lists: neither has anything of the other.
    let mut at_once = [0; 6];
    for seed in 0..mechanisms(24) {
        let shape = Shape {
            bodies: 2 + (seed % 3) as usize,
            closures: (seed % 2) as usize,
            constraints: 1 + (seed / 2 % 2) as usize,
            nonholonomic: seed % 3 == 1,
            runs: true,
        };
        let mut random = Random::new(seed);
        let text = parametrised(&random_closed(9000 + seed, shape), 6, &mut random);
        let mut model = read(&text);
        model.sensitivity = everything(&model);
        if seed % 4 < 2 {
            model.sensitivity.truncate(2);
        }
        let by_products = seed / 2 % 2 == 0;
        let Some(program) = interpreted_with(&model, true, by_products, Steps::Fused) else { continue };
        assert_eq!(program.dims().sensitivity.product_columns > 0, by_products);
        let fuses = [
            program.fuses_derivatives(),
            program.fuses_rates(),
            program.fuses_transposed(),
            program.fuses_transposed_rates(),
            program.fuses_corrections(),
            program.fuses_transposed_corrections(),
        ];
        for (count, fuses) in at_once.iter_mut().zip(fuses) {
            *count += usize::from(fuses);
        }
        let separate = match fuses.contains(&true) {
            true => interpreted_with(&model, true, by_products, Steps::Separate),
            false => None,
        };
        for (k, &(formulation, integrator)) in METHODS.iter().enumerate() {
            let settings = model.simulation.clone();
            let simulation = Simulation { end: 0.02, step: 2e-3, formulation, integrator, ..settings };
            match compare(&program, separate.as_ref(), &simulation, &mut random) {
                Ok(found) => {
                    compared[k] += 1;
                    for (worst, found) in worst[k].iter_mut().zip(found) {
                        *worst = worst.max(found);
                    }
                    let method = format!("seed {seed}, {formulation:?}, {integrator:?}: {found:?}");
                    assert!(found[0] <= 1e-9 && found[1] <= 1e-9, "{method}\n{text}");
                }
                // It cannot be put together, or not be moved, or the objectives read multipliers of dependent rows.
                Err(_) => refused += 1,
            }
        }
    }
    for (k, (formulation, integrator)) in METHODS.iter().enumerate() {
        println!("{formulation:?}, {integrator:?}: {} compared, {:?}", compared[k], worst[k]);
    }
    println!("{refused} refused, at once {at_once:?}");
    assert!(at_once.iter().all(|&n| n >= 2), "{at_once:?} at once");
    assert!(compared.iter().all(|&n| n >= 6), "{compared:?} compared, {refused} refused");
}

#[test]
fn adjoints_of_random_trees() {
    let mut compared = 0;
    for seed in 0..mechanisms(16) {
        let shape = random_model::Shape { bodies: 1 + (seed % 4) as usize, dissipative: true };
        let mut random = Random::new(seed);
        let mut text = parametrised(&random_model(seed, shape), 6, &mut random);
        text.push_str("objectives:\n  path: {integrand: \"dot(vel(b0.tip), acc(b0.tip))\", terminal: norm(pos(b0.tip))}\n");
        let mut model = read(&text);
        model.sensitivity = everything(&model);
        let program = interpreted_with(&model, false, seed % 2 == 0, Steps::Fused).expect("a tree");
        for integrator in [Integrator::Rk4, Integrator::DormandPrince, Integrator::Trapezoidal] {
            let simulation = Simulation { end: 0.05, step: 5e-3, integrator, ..model.simulation.clone() };
            let found = match compare(&program, None, &simulation, &mut random) {
                Ok(found) => found,
                // A power of a branch that is not taken.
                Err(StepError::NotFinite { .. }) => continue,
                Err(error) => panic!("seed {seed}, {integrator:?}: {error:?}\n{text}"),
            };
            compared += 1;
            assert!(found[0] <= 1e-10 && found[1] <= 1e-10, "seed {seed}, {integrator:?}: {found:?}\n{text}");
        }
    }
    assert!(compared > 30, "{compared} compared");
}

/// The continuous adjoint has its own error: with half the step, a quarter of the difference to the discrete gradient.
/// Nothing is free: weights of the state are nothing but rounding after a step back.
#[test]
fn adjoints_of_a_mechanism_that_is_driven_in_full() {
    let model = read(
        "
mbs: 1
name: crank
gravity: [0, -9.81, 0]
parameters: {r: {value: 0.1, min: 0.01}, l: {value: 0.3, min: 0.1}, w: 20, m: 1}
bodies:
  crank: {mass: 1, inertia: [0, 0, 0.01], points: {pin: [r, 0, 0]}}
  rod: {mass: m, com: [l/2, 0, 0], inertia: [0, 0, m*l^2/12], points: {pin: [l, 0, 0]}}
  piston: {mass: 0.5}
joints:
  main: {type: revolute, parent: ground, child: crank, axis: [0, 0, 1]}
  big: {type: revolute, parent: crank.pin, child: rod, axis: [0, 0, 1]}
  cyl: {type: prismatic, parent: ground, child: piston, axis: [1, 0, 0], start: 0.4}
  small: {type: revolute, parent: rod.pin, child: piston, axis: [0, 0, 1]}
constraints:
  drive: {type: motion, coordinate: main, value: w*t}
objectives:
  a: {terminal: accel(cyl)}
  torque: {terminal: -multiplier(drive)}
  work: {integrand: -multiplier(drive)*rate(main)}
sensitivity: [r, l, w, m]
simulation: {end: 0.13, step: 1e-3}
",
    );
    let interpreted = interpreted(&model, true).expect("a program");
    for (formulation, integrator) in METHODS.into_iter().take(4) {
        let simulation = Simulation { formulation, integrator, ..model.simulation.clone() };
        let start = gradient::start(&interpreted, &simulation).expect("a start");
        let method = start.method(&interpreted, &simulation);
        let direct =
            gradient::run(&interpreted, &method, &simulation, start.clone(), |_| ControlFlow::Continue(()));
        let back = adjoint::run(&interpreted, &method, &simulation, start, MEMORY, go_on);
        let (direct, back) = match (direct, back) {
            (Ok(direct), Ok(back)) => (direct, back),
            other => panic!("{formulation:?} {integrator:?}: {other:?}"),
        };
        for i in 0..3 {
            let error = distance(back.of_objective(i), direct.of_objective(i));
            assert!(error < 1e-9, "{formulation:?} {integrator:?}, objective {i}: {error:e}");
        }
    }
}

#[test]
fn the_continuous_adjoint_converges_with_order_two() {
    let (mut compared, ali3p, matrix_r) = (0, Formulation::Ali3p, Formulation::MatrixR);
    for (name, formulation) in [
        ("five_bar", ali3p),
        ("slider_crank", ali3p),
        ("two_point_masses", ali3p),
        ("double_pendulum", ali3p),
        ("five_bar", matrix_r),
        ("slider_crank", matrix_r),
        ("two_point_masses", matrix_r),
    ] {
        let (model, end) = (closed::shipped(name), 0.4);
        let dims = model.dims();
        if dims.n_objectives == 0 || dims.sensitivity.parameters == 0 {
            continue;
        }
        compared += 1;
        let errors = [4e-3, 2e-3, 1e-3].map(|step| {
            let settings = model.program().simulation.clone();
            let integrator = Integrator::Trapezoidal;
            let simulation = Simulation { end, step, formulation, integrator, ..settings };
            let start = gradient::start(&model, &simulation).expect("a start");
            let method = start.method(&model, &simulation);
            let discrete =
                adjoint::run(&model, &method, &simulation, start.clone(), MEMORY, go_on).expect("it runs");
            let found = gradient::continuous::run(&model, &method, &simulation, start, MEMORY, &mut go_on);
            let found = found.expect("it runs");
            let rows = 0..found.objectives.len();
            for (a, b) in found.objectives.iter().zip(&discrete.objectives) {
                assert!((a - b).abs() <= 1e-12 * b.abs().max(1.0), "{a} is not {b}");
            }
            rows.map(|i| distance(found.of_objective(i), discrete.of_objective(i))).fold(0.0, f64::max)
        });
        println!(
            "{name}, {formulation:?}: {errors:?}, ratios {:.2} {:.2}",
            errors[0] / errors[1],
            errors[1] / errors[2]
        );
        assert!(errors[2] < 1e-3, "{name}: {errors:?}");
        for pair in errors.windows(2) {
            assert!((3.5..4.6).contains(&(pair[0] / pair[1])), "{name}: {errors:?}");
        }
    }
    assert!(compared >= 2, "{compared} compared");
}

/// What has no continuous adjoint is refused by name, and so is a memory that does not hold all nodes.
#[test]
fn the_continuous_adjoint_refuses_what_it_is_not_for() {
    let model = closed::shipped("five_bar");
    let run = |formulation, memory| {
        let settings = model.program().simulation.clone();
        let simulation = Simulation { end: 0.1, step: 1e-3, formulation, ..settings };
        let start = gradient::start(&model, &simulation).expect("a start");
        let method = start.method(&model, &simulation);
        gradient::continuous::run(&model, &method, &simulation, start, memory, &mut go_on)
            .expect_err("refused")
    };
    assert!(
        matches!(run(Formulation::Index1, MEMORY), StepError::NotDifferentiable { what } if what.contains("ALI3-P"))
    );
    for formulation in [Formulation::Ali3p, Formulation::MatrixR] {
        assert!(matches!(run(formulation, 1000), StepError::Length { what: "memory", .. }));
    }
}

/// The signals of a model, one of them moved at one node of steps of size h.
struct Bumped<'a, S: Scalar> {
    signals: Signals<'a, S>,
    input: usize,
    node: usize,
    h: f64,
    by: S,
}

impl<S: Scalar> Inputs<S> for Bumped<'_, S> {
    fn at(&mut self, t: S, u: &mut [S]) {
        self.signals.at(t, u);
        if (t.real() / self.h - self.node as f64).abs() < 1e-6 {
            u[self.input] += self.by;
        }
    }
}

/// The derivative of all objectives by the history of inputs, and the gradient.
fn history_of(model: &Interpreted, simulation: &Simulation) -> Result<(InputHistory, Found), StepError> {
    let start = gradient::start(model, simulation)?;
    let method = start.method(model, simulation);
    let mut history = InputHistory::new(model, &method, &start)?;
    let watch = |node: AdjointNode<'_, f64>| {
        history.see(&node);
        ControlFlow::Continue(())
    };
    let found = adjoint::run(model, &method, simulation, start, MEMORY, watch)?;
    history.finish();
    Ok((history, found))
}

/// An imaginary step.
const STEP: f64 = 1e-30;
/// By what an input is moved in real runs: objectives change almost linearly.
const BUMP: f64 = 0.05;

/// Derivatives of the objectives by an input at one node: of an implicit run by a complex step, of an explicit one by differences.
fn by_value(
    model: &Interpreted,
    complex: &Interpreted<Complex64>,
    simulation: &Simulation,
    input: usize,
    node: usize,
) -> Vec<f64> {
    let (h, end) = (simulation.step, simulation.end);
    if simulation.integrator != Integrator::Rk4 {
        let method = Ali3p { tolerance: 1e-30, max_iterations: 100, ..Ali3p::DEFAULT };
        let (signals, by) = (complex.input_signals(), Complex64::new(0.0, STEP));
        let mut inputs = Bumped { signals, input, node, h, by };
        let found = mbs_tests::gradient::implicit(complex, &mut inputs, method, h, end).expect("it runs");
        return found.psi.iter().map(|psi| psi.im / STEP).collect();
    }
    let [more, less] = [BUMP, -BUMP].map(|by| {
        let mut inputs = Bumped { signals: model.input_signals(), input, node, h, by };
        explicit_objectives(model, &mut inputs, h, end).expect("it runs")
    });
    more.iter().zip(less).map(|(more, less)| (more - less) / (2.0 * BUMP)).collect()
}

fn explicit_objectives(
    model: &Interpreted,
    inputs: &mut Bumped<'_, f64>,
    h: f64,
    end: f64,
) -> Result<Vec<f64>, StepError> {
    let dims = model.dims();
    let (mut state, _) = closed::start(model, 0.0)?;
    let mut y = vec![0.0; dims.state()];
    mbs_runtime::State::of(&dims, &mut state)?.joint_form(model, &mut y)?;
    let system = OnConstraints(Index1::new(model));
    let run = Differentiated(Fixed { method: Rk4, h });
    let mut derivatives = vec![0.0; JointDerivatives::<f64>::len(&dims)];
    let mut gradient = vec![0.0; Gradient::<f64>::len(&dims)];
    let mut scratch = vec![0.0; run.scratch_len(&system)];
    let span = Span { start: 0.0, end, output: Output::Steps };
    let unseen = |_: mbs_runtime::sensitivity::DifferentiatedAt<'_, f64>| ControlFlow::Continue(());
    run.run(&system, inputs, &mut y, &mut derivatives, &span, &mut gradient, &mut scratch, unseen)?;
    Ok(gradient[..dims.n_objectives].to_vec())
}

/// By the value of an input at every single node, against whole runs with that value moved; their sum is the derivative by a constant.
#[test]
fn histories_of_inputs_are_differentiated() {
    let mut compared = 0;
    for seed in 0..mechanisms(8) {
        let shape = Shape {
            bodies: 2 + (seed % 2) as usize,
            closures: (seed % 2) as usize,
            constraints: 1,
            nonholonomic: seed % 3 == 1,
            runs: true,
        };
        let text = random_closed(9100 + seed, shape);
        let mut model = read(&text);
        model.sensitivity = everything(&model);
        let Some(program) = interpreted(&model, true) else { continue };
        let complex = Interpreted::<Complex64>::new(program.program().clone());
        for (formulation, integrator) in [METHODS[0], METHODS[4]] {
            let h = 2e-3;
            let settings = model.simulation.clone();
            let simulation = Simulation { end: 0.02, step: h, formulation, integrator, ..settings };
            let Ok((history, found)) = history_of(&program, &simulation) else { continue };
            assert_eq!(history.times.len(), 11);
            for (j, name) in history.inputs.iter().enumerate() {
                let k =
                    program.program().sensitivity.iter().position(|own| own == name).expect("it is listed");
                let (group, input) = program.program().seeds[k];
                assert!(group == Group::U);
                for i in 0..found.objectives.len() {
                    let sum: f64 = history.of(i, j).sum();
                    let size: f64 = history.of(i, j).map(f64::abs).sum();
                    let all = found.of_objective(i)[k];
                    assert!(
                        (sum - all).abs() <= 1e-10 * size.max(1e-9),
                        "seed {seed}, {name}: {sum} is not {all}"
                    );
                }
                // Between nodes a linear input has other values.
                if integrator == Integrator::Rk4 && name == "pull" {
                    continue;
                }
                for node in [0, 1, 4, 9, 10] {
                    let expected = by_value(&program, &complex, &simulation, input as usize, node);
                    for (i, expected) in expected.into_iter().enumerate() {
                        let derivative = history.of(i, j).nth(node).expect("a node");
                        let size = history.of(i, j).fold(1e-12, |m: f64, x| m.max(x.abs()));
                        assert!(
                            (derivative - expected).abs() <= 1e-5 * size,
                            "seed {seed}, {integrator:?}, {name} at node {node}: {derivative} is not {expected}"
                        );
                        compared += 1;
                    }
                }
            }
        }
    }
    assert!(compared > 50, "{compared} compared");
}

/// Both sides of a derivative of the five-bar linkage along a direction, by moved parameters.
fn moved(model: &Interpreted, direction: &[f64], by: f64) -> Interpreted {
    let mut moved = model.clone();
    let mut values = model.parameters().to_vec();
    for (&(_, place), v) in model.program().seeds.iter().zip(direction) {
        values[place as usize] += by * v;
    }
    moved.set_parameters(&values).expect("a mechanism");
    moved
}

/// Second derivatives are those of the discrete gradient: symmetric, and what gradients differ by.
#[test]
fn second_derivatives_are_those_of_the_gradient() {
    let model = closed::shipped("five_bar");
    let (p, m) = (model.dims().sensitivity.parameters, model.dims().n_objectives);
    let index1 = (Formulation::Index1, Integrator::Rk4);
    for (formulation, integrator) in [METHODS[0], METHODS[1], index1] {
        let settings = model.program().simulation.clone();
        let simulation = Simulation { end: 0.2, step: 5e-3, formulation, integrator, ..settings };
        let start = gradient::start(&model, &simulation).expect("a start");
        let method = start.method(&model, &simulation);
        let all = hessians(&model, &method, &simulation, start.redundant(), MEMORY).expect("it runs");
        let gradient = |model: &Interpreted| {
            let start = gradient::start(model, &simulation).expect("a start");
            adjoint::run(model, &method, &simulation, start, MEMORY, go_on).expect("it runs")
        };
        let here = gradient(&model);
        let direction: Vec<f64> = (0..p).map(|k| 0.1 + 0.03 * k as f64).collect();
        let along = hessian_vectors(&model, &method, &simulation, start.redundant(), &direction, MEMORY);
        let along = along.expect("it runs");
        let delta = 1e-4;
        let (more, less) =
            (gradient(&moved(&model, &direction, delta)), gradient(&moved(&model, &direction, -delta)));
        for i in 0..m {
            assert!(distance(&all.gradients[i * p..(i + 1) * p], here.of_objective(i)) < 1e-7);
            let hessian = &all.products[i * p * p..(i + 1) * p * p];
            let largest = hessian.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
            for j in 0..p {
                for k in 0..j {
                    let error = (hessian[j * p + k] - hessian[k * p + j]).abs() / largest;
                    assert!(error < 1e-8, "{integrator:?}, objective {i}: not symmetric by {error:e}");
                }
            }
            let product = &along.products[i * p..(i + 1) * p];
            let of_matrix: Vec<f64> = hessian
                .chunks_exact(p)
                .map(|row| row.iter().zip(&direction).map(|(a, b)| a * b).sum())
                .collect();
            assert!(distance(product, &of_matrix) < 1e-8, "{product:?} is not {of_matrix:?}");
            let differences: Vec<f64> = more
                .of_objective(i)
                .iter()
                .zip(less.of_objective(i))
                .map(|(a, b)| (a - b) / (2.0 * delta))
                .collect();
            let error = distance(product, &differences);
            assert!(error < 1e-4, "{integrator:?}, objective {i}: {error:e}\n{product:?}\n{differences:?}");
        }
        // JᵀWJ v
        let weights: Vec<f64> = (0..m).map(|i| 1.0 / (1.0 + i as f64)).collect();
        let found =
            gauss_newton(&model, &method, &simulation, start, &weights, &direction, MEMORY).expect("it runs");
        let mut expected = vec![0.0; p];
        for (i, weight) in weights.iter().enumerate() {
            let row = here.of_objective(i);
            let change: f64 = row.iter().zip(&direction).map(|(a, b)| a * b).sum();
            expected.iter_mut().zip(row).for_each(|(to, x)| *to += weight * change * x);
        }
        assert!(distance(&found, &expected) < 1e-9, "{found:?} is not {expected:?}");
    }
}

/// By the end time, against runs that end a step earlier and later.
#[test]
fn objectives_are_differentiated_by_the_end_time() {
    let text = "
mbs: 1
name: driven
gravity: [0, 0, -9.81]
parameters: {m: 1.2}
inputs: {push: 0.3}
bodies: {rod: {mass: m, com: [0.1, 0, -0.5], inertia: [0.1, 0.1, 0.02], points: {tip: [0, 0, -1]}}}
joints: {hinge: {type: spherical, parent: ground, child: rod, start: {angular_velocity: [0.3, 1.2, 0.4]}}}
forces: {pull: {type: force, at: rod.tip, value: [push*t, 0, 0]}}
objectives:
  path: {integrand: \"norm(vel(rod.tip))\", terminal: \"t*pos(rod.tip).x + vel(rod.tip).y^2 + acc(rod.tip).z\"}
sensitivity: [m, push]
simulation: {end: 0.5, step: 1e-3}
";
    let model = read(text);
    let program = interpreted(&model, false).expect("a tree");
    for integrator in [Integrator::Trapezoidal, Integrator::Rk4] {
        let run = |end: f64| {
            let simulation = Simulation { end, integrator, ..model.simulation.clone() };
            let start = gradient::start(&program, &simulation).expect("a start");
            let method = start.method(&program, &simulation);
            let found = adjoint::run(&program, &method, &simulation, start, MEMORY, go_on).expect("it runs");
            let rate = by_end_time(&program, &method, &simulation, &found.end).expect("an end");
            (found.objectives[0], rate[0])
        };
        let (more, less, (_, rate)) = (run(0.502).0, run(0.498).0, run(0.5));
        let difference = (more - less) / 0.004;
        assert!(
            (rate - difference).abs() < 1e-4 * rate.abs().max(1.0),
            "{integrator:?}: {rate} is not {difference}"
        );
    }
}

/// The face of generated modules, in any memory of the caller.
#[test]
fn generated_models_have_adjoints_in_memory_of_the_caller() {
    let own = five_bar::Setup::new(five_bar::Parameters::default());
    let settings = five_bar::SETTINGS;
    let setup = five_bar::Setup {
        settings: mbs_runtime::simulation::Settings { begin: 0.0, end: 0.2, step: 1e-3, ..settings },
        ..own
    };
    let mut memory = <five_bar::Model as mbs_runtime::simulation::Differentiable>::Memory::ZERO;
    let direct = gradient_with::<five_bar::Model>(&setup, &mut memory).expect("it runs");
    let all = adjoint_memory_len::<five_bar::Model>(&setup).expect("steps").expect("fixed ones");
    let values = |gradient: &<five_bar::Model as mbs_runtime::simulation::Differentiable>::Gradient| {
        gradient.to_values().values().to_vec()
    };
    let mut first = None;
    for (numbers, again) in [(all, 0), (all / 2, 100), (all / 3, 150)] {
        let mut memory = vec![f64::NAN; numbers];
        let (found, statistics) =
            gradient_by_adjoint::<five_bar::Model>(&setup, &mut memory).expect("enough memory");
        assert!(
            statistics.recomputed <= 600 && (statistics.recomputed == 0) == (again == 0),
            "{statistics:?}"
        );
        assert!(distance(&values(&found), &values(&direct)) < 1e-11);
        assert_eq!(values(first.get_or_insert(found)), values(&found), "the same bits in any memory");
    }
    let mut little = vec![0.0; 100];
    let error = gradient_by_adjoint::<five_bar::Model>(&setup, &mut little).expect_err("too little");
    assert!(format!("{error}").contains("memory"), "{error}");
    // The choice: five parameters and three objectives pay for the adjoint as long as no step is made again.
    let direct_len = five_bar::GradientMemory::ZERO.len();
    assert_eq!(five_bar::GRADIENT_METHOD, GradientMethod::Direct);
    for (method, numbers, backward) in [
        (GradientMethod::Direct, direct_len, false),
        (GradientMethod::Adjoint, all, true),
        (GradientMethod::Auto, all, true),
        (GradientMethod::Auto, all / 2, false),
        (GradientMethod::Auto, direct_len, false),
    ] {
        let mut memory = vec![f64::NAN; numbers];
        let (found, took) = five_bar::gradient_by(&setup, method, &mut memory).expect("enough memory");
        assert_eq!(took.is_some(), backward, "{method:?} in {numbers} numbers");
        let expected = if backward { first.expect("an adjoint") } else { direct };
        assert_eq!(values(&found), values(&expected), "the bits of the one it took");
    }
    for method in [GradientMethod::Direct, GradientMethod::Adjoint, GradientMethod::Auto] {
        let error = five_bar::gradient_by(&setup, method, &mut little).expect_err("too little");
        assert!(format!("{error}").contains("memory"), "{error}");
    }
}
