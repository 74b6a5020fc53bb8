//! Adjoint gradients against direct ones: the same discrete derivative, transposed, so that both agree to rounding.

use std::ops::ControlFlow;

use crate::systems;
use crate::systems::erased::{Any, any};
use crate::systems::lagrangian::{Lagrangian, Mechanism};
use crate::systems::parametric::{Cart, FourBar, Pendulum, Pursuit, Top};
use mbs_runtime::inputs::{Inputs, from_fn};
use mbs_runtime::sensitivity::{DifferentiableStep, Differentiated, Gradient, StateDerivatives};
use mbs_runtime::{
    Adjoint, AdjointNode, Ali3p, Assembly, Dims, Fixed, Implicit, ImplicitIndex1, JacobianVector, Output,
    Span, Stabilisation, State, StepError, System, VectorJacobian,
};

const BEGIN: f64 = 0.1;
const H: f64 = 0.01;

fn input() -> impl Inputs<f64> {
    from_fn(|t: f64, u: &mut [f64]| u.fill((3.0 * t).sin()))
}

fn span(steps: usize) -> Span<f64> {
    // The last step is a shorter one.
    Span { start: BEGIN, end: BEGIN + H * (steps as f64 - 0.4), output: Output::Steps }
}

/// A start and its derivatives.
fn start(system: &Any<'_, f64>, off: &[usize]) -> (Vec<f64>, Vec<f64>) {
    let dims = system.dims();
    let mut state = vec![0.0; State::<f64>::len(&dims)];
    let mut derivatives = vec![0.0; StateDerivatives::<f64>::len(&dims)];
    let mut scratch = vec![0.0; Assembly::differentiated_scratch_len(&dims)];
    Assembly::guess_differentiated(system, BEGIN, &mut state, &mut derivatives, &mut scratch).unwrap();
    for row in off {
        State::of(&dims, &mut state).unwrap().active[*row] = 0.0;
    }
    let (assembly, changes) = (Assembly::DEFAULT, &mut derivatives);
    assembly.start_differentiated(system, &mut input(), &mut state, changes, &mut scratch).unwrap();
    (state, derivatives)
}

fn direct(
    system: &Any<'_, f64>,
    method: impl DifferentiableStep + Copy,
    steps: usize,
    off: &[usize],
) -> (Vec<f64>, Vec<f64>) {
    let dims = system.dims();
    let (mut state, mut derivatives) = start(system, off);
    let run = Differentiated(Fixed { method, h: H });
    let mut gradient = vec![0.0; Gradient::<f64>::len(&dims)];
    let mut scratch = vec![0.0; run.scratch_len(&dims)];
    let watch = |_: mbs_runtime::formulation::Node<'_, f64>| ControlFlow::Continue(());
    let (inputs, changes) = (&mut input(), &mut derivatives);
    run.run(system, inputs, &mut state, changes, &span(steps), &mut gradient, &mut scratch, watch).unwrap();
    (gradient, state)
}

/// Gradient and final state; steps that were made again as predicted.
fn adjoint(
    system: &Any<'_, f64>,
    method: impl DifferentiableStep + Copy,
    steps: usize,
    off: &[usize],
    memory: usize,
) -> Result<(Vec<f64>, Vec<f64>, usize), StepError> {
    let dims = system.dims();
    let (mut state, derivatives) = start(system, off);
    let run = Adjoint(Fixed { method, h: H });
    let mut gradient = vec![0.0; Gradient::<f64>::len(&dims)];
    let mut scratch = vec![f64::NAN; run.gradient_scratch_len(&dims)];
    let mut memory = vec![f64::NAN; memory];
    let schedule = run.schedule(&dims, &span(steps), memory.len())?;
    let (mut made, mut again_made, mut passed) = (0, 0, steps + 1);
    let watch = |node: AdjointNode<'_, f64>| {
        match node {
            AdjointNode::Forward { again, .. } => {
                made += 1;
                again_made += usize::from(again);
            }
            AdjointNode::Backward { number, .. } => {
                passed -= 1;
                assert_eq!(number, passed);
            }
            AdjointNode::Event { .. } => panic!("the model has no events"),
        }
        ControlFlow::Continue(())
    };
    let statistics = run.gradient(
        system,
        &mut input(),
        &mut state,
        &derivatives,
        &span(steps),
        &mut gradient,
        &mut memory,
        &mut scratch,
        watch,
    )?;
    assert_eq!((passed, made), (0, steps + again_made));
    assert_eq!(statistics.recomputed, again_made);
    assert_eq!((statistics.schedule, schedule.recomputed()), (schedule, again_made));
    Ok((gradient, state, again_made))
}

/// Largest distance of a row of the gradients, in parts of the row's largest entry.
fn distance(dims: &Dims, found: &[f64], expected: &[f64]) -> f64 {
    let (found, expected) = (Gradient::of(dims, found).unwrap(), Gradient::of(dims, expected).unwrap());
    let rows = (0..dims.n_objectives).map(|i| {
        let (found, expected) = (found.of_objective(i).unwrap(), expected.of_objective(i).unwrap());
        let size = expected.iter().fold(0.0, |size: f64, x| size.max(x.abs()));
        systems::distance(found, expected) / size
    });
    let values = systems::distance(found.objectives, expected.objectives);
    let size = expected.objectives.iter().fold(1.0, |size: f64, x| size.max(x.abs()));
    rows.fold(values / size, f64::max)
}

fn check<T: Mechanism + Copy>(
    name: &str,
    mechanism: T,
    method: impl DifferentiableStep + Copy,
    off: &[usize],
    tolerance: f64,
) {
    let system = Lagrangian::<_, f64>::new(mechanism);
    let (system, steps) = (any(&system), 60);
    let dims = system.dims();
    let (expected, end) = direct(&system, method, steps, off);
    let (all, state, again) = adjoint(&system, method, steps, off, 100_000).unwrap();
    assert_eq!(again, 0);
    assert_eq!(systems::bits(&state), systems::bits(&end), "{name}");
    let error = distance(&dims, &all, &expected);
    assert!(error < tolerance, "{name}: {error:e}\n{all:?}\n{expected:?}");
    // Less memory, the same bits.
    let Err(StepError::Length { what: "memory", expected: least, .. }) =
        adjoint(&system, method, steps, off, 0)
    else {
        panic!("{name}: no memory at all is too little");
    };
    for memory in [least, 2 * least, 3 * least] {
        let (found, state, again) = adjoint(&system, method, steps, off, memory).unwrap();
        assert!(again > 0);
        assert_eq!(systems::bits(&found), systems::bits(&all), "{name}");
        assert_eq!(systems::bits(&state), systems::bits(&end), "{name}");
    }
}

/// What rounding makes of a gradient: ε times what these runs amplify.
const TOLERANCE: f64 = 1e-12;

#[test]
fn index_3() {
    for integrator in [
        Implicit::TRAPEZOIDAL,
        Implicit::Newmark { beta: 0.31, gamma: 0.55 },
        Implicit::GeneralizedAlpha { spectral_radius: 0.6 },
    ] {
        for max_projections in [3, 0] {
            let method = Ali3p { max_projections, integrator, ..Ali3p::DEFAULT };
            // Without projections rounding of positions enters accelerations and multipliers divided by h².
            let tolerance = if max_projections > 0 { TOLERANCE } else { 100.0 * f64::EPSILON / (H * H) };
            check("pendulum", Pendulum::<1>::DEFAULT, method, &[], tolerance);
            // Least norm: each node has its own representative.
            check("twice", Pendulum::<2>::DEFAULT, method, &[], tolerance);
            check("one of two rows", Pendulum::<2>::DEFAULT, method, &[0], tolerance);
            check("pursuit", Pursuit::DEFAULT, method, &[], tolerance);
            check("cart", Cart::DEFAULT, method, &[], tolerance);
            check("four-bar", FourBar::DEFAULT, method, &[], tolerance);
            check("top", Top::DEFAULT, method, &[], tolerance);
        }
    }
}

#[test]
fn index_1_and_penalty() {
    for (rate, value, compliance) in [(0.0, 0.0, 0.0), (20.0, 100.0, 0.0), (20.0, 100.0, 1e-6)] {
        for integrator in [Implicit::TRAPEZOIDAL, Implicit::GeneralizedAlpha { spectral_radius: 0.6 }] {
            let stabilisation = Stabilisation { rate, value, compliance };
            let method =
                ImplicitIndex1 { integrator, tolerance: 1e-14, ..ImplicitIndex1::new(stabilisation) };
            // With a penalty multipliers are violations, known to rounding, divided by a millionth.
            let tolerance = if compliance > 0.0 { 1e-9 } else { TOLERANCE };
            check("pendulum", Pendulum::<1>::DEFAULT, method, &[], tolerance);
            check("twice", Pendulum::<2>::DEFAULT, method, &[], tolerance);
            check("pursuit", Pursuit::DEFAULT, method, &[], tolerance);
            check("cart", Cart::DEFAULT, method, &[], tolerance);
            check("four-bar", FourBar::DEFAULT, method, &[], tolerance);
            check("top", Top::DEFAULT, method, &[], tolerance);
        }
    }
}

/// Numbers in (−1, 1), the same each time.
fn numbers(count: usize, seed: u64) -> Vec<f64> {
    let mut state = seed;
    let next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    };
    std::iter::repeat_with(next).take(count).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// ⟨(ψ̄, x̄), J (x′, ρ′)⟩ = ⟨Jᵀ (ψ̄, x̄), (x′, ρ′)⟩ of a whole run, and weights at a node are those of the run from there.
fn check_products<T: Mechanism + Copy>(name: &str, mechanism: T, method: impl DifferentiableStep + Copy) {
    let system = Lagrangian::<_, f64>::new(mechanism);
    let (system, steps) = (any(&system), 40);
    let dims = system.dims();
    let (first, derivatives) = start(&system, &[]);
    let (p, m, n) =
        (dims.sensitivity.parameters, dims.n_objectives, derivatives.len() / dims.sensitivity.parameters);
    // A direction that the constraints allow: that of the start by the parameters.
    let rho = numbers(p, 3);
    let x: Vec<f64> = derivatives.chunks(p).map(|row| dot(row, &rho)).collect();
    let (psi_bar, x_bar) = (numbers(m, 5), numbers(n, 6));
    let forward = Differentiated(Fixed { method, h: H });
    let mut state = first.clone();
    let mut scratch = vec![0.0; forward.jacobian_vector_scratch_len(&dims, 1)];
    let (mut psi, mut psi_change, mut end) = (vec![0.0; m], vec![0.0; m], vec![0.0; n]);
    let product = JacobianVector {
        columns: 1,
        start: &x,
        rho: &rho,
        objectives: &mut psi,
        objective_changes: &mut psi_change,
        end: &mut end,
    };
    forward.jacobian_vector(&system, &mut input(), &mut state, &span(steps), product, &mut scratch).unwrap();
    let back = Adjoint(Fixed { method, h: H });
    let mut memory = vec![0.0; 100_000];
    let mut scratch = vec![0.0; back.scratch_len(&dims, 1)];
    let (mut psi_again, mut start_bar, mut rho_bar) = (vec![0.0; m], vec![0.0; n], vec![0.0; p]);
    let product = VectorJacobian {
        columns: 1,
        objective_weights: &psi_bar,
        end_weights: &x_bar,
        objectives: &mut psi_again,
        start: &mut start_bar,
        rho: &mut rho_bar,
    };
    let mut state = first;
    let mut parts = vec![0.0; p];
    let watch = |node: AdjointNode<'_, f64>| {
        if let AdjointNode::Backward { rho, .. } = node {
            parts.iter_mut().zip(rho).for_each(|(sum, rho)| *sum += rho);
        }
        ControlFlow::Continue(())
    };
    back.run(&system, &mut input(), &mut state, &span(steps), product, &mut memory, &mut scratch, watch)
        .unwrap();
    // What belongs to each node adds up to the whole.
    assert_eq!(parts, rho_bar, "{name}");
    assert!(systems::distance(&psi, &psi_again) < 1e-12, "{name}");
    let (left, right) =
        (dot(&psi_bar, &psi_change) + dot(&x_bar, &end), dot(&start_bar, &x) + dot(&rho_bar, &rho));
    let norm = |x: &[f64]| dot(x, x).sqrt();
    let scale = norm(&end) * norm(&x_bar) + norm(&start_bar) * norm(&x) + norm(&rho_bar) * norm(&rho);
    let error = (left - right).abs() / scale;
    assert!(error < 1e-12, "{name}: {left} {right} {error:e}");
}

#[test]
fn products_of_whole_runs() {
    for integrator in [Implicit::TRAPEZOIDAL, Implicit::GeneralizedAlpha { spectral_radius: 0.6 }] {
        let method = Ali3p { integrator, ..Ali3p::DEFAULT };
        check_products("twice", Pendulum::<2>::DEFAULT, method);
        check_products("pursuit", Pursuit::DEFAULT, method);
        check_products("cart", Cart::DEFAULT, method);
        check_products("four-bar", FourBar::DEFAULT, method);
        check_products("top", Top::DEFAULT, method);
    }
    let stabilisation = Stabilisation { rate: 20.0, value: 100.0, compliance: 0.0 };
    check_products("four-bar", FourBar::DEFAULT, ImplicitIndex1::new(stabilisation));
}

/// A run that fails, and one that is stopped.
#[test]
fn failures_have_names() {
    let system = Lagrangian::<_, f64>::new(FourBar::DEFAULT);
    let system = any(&system);
    let method = Ali3p { max_iterations: 1, ..Ali3p::DEFAULT };
    let error = adjoint(&system, method, 60, &[], 100_000).unwrap_err();
    assert!(matches!(error, StepError::NotConverged { .. }), "{error}");
}
