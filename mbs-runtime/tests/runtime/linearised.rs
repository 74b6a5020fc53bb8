//! The derivative of a step: its transpose, and itself against the complex step.

use crate::systems;
use crate::systems::erased::{Any, any, model_start};
use crate::systems::lagrangian::{Lagrangian, Mechanism};
use crate::systems::parametric::{Cart, FourBar, Pendulum, Pursuit, Second, Top};
use mbs_runtime::formulation::Record;
use mbs_runtime::inputs::{Inputs, from_fn};
use mbs_runtime::sensitivity::{DifferentiableStep, StateDerivatives};
use mbs_runtime::{
    Ali3p, Complex64, Dims, Implicit, ImplicitIndex1, Penalty, Scalar, Stabilisation, State, StepError,
    System,
};

const TINY: f64 = 1e-100;

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

fn norm(a: &[f64]) -> f64 {
    dot(a, a).sqrt()
}

fn input<S: Scalar>() -> impl Inputs<S> {
    from_fn(|t: S, u: &mut [S]| u.fill((S::from_f64(3.0) * t).sin()))
}

/// The derivative of a step along a direction of (z, zd, zdd, λ, a) and one of ρ, in the same order.
fn complex_step<T: Mechanism>(
    mechanism: T,
    settings: &Ali3p,
    state: &[f64],
    direction: &[f64],
    rho: &[f64],
    h: f64,
) -> Vec<f64> {
    let mut mechanism = Lagrangian::<_, Complex64>::new(mechanism);
    for (parameter, d) in mechanism.rho.iter_mut().zip(rho) {
        parameter.im = d * TINY;
    }
    step_along(&any(&mechanism), settings, state, direction, h)
}

/// The same, of a system whose parameters are perturbed already.
fn step_along(
    system: &Any<'_, Complex64>,
    settings: &Ali3p,
    state: &[f64],
    direction: &[f64],
    h: f64,
) -> Vec<f64> {
    let dims = system.dims();
    let mut state: Vec<Complex64> = state.iter().map(|x| Complex64::from(*x)).collect();
    let nq = dims.nq;
    let view = State::of(&dims, &mut state).unwrap();
    let (kinematics, rest) = direction.split_at(3 * nq);
    let parts = view.z.iter_mut().chain(view.zd.iter_mut()).chain(view.zdd.iter_mut());
    for (x, d) in parts.zip(kinematics).chain(view.a.iter_mut().zip(&rest[dims.rows()..])) {
        x.im = d * TINY;
    }
    // Newton's method converges in its imaginary part one iteration after the real one, and as far as the penalty is large.
    let penalty = if *view.redundant == Complex64::ZERO { Penalty::Given(1e18) } else { settings.penalty };
    let settings = Ali3p { tolerance: 1e-15, penalty, ..*settings };
    let mut scratch = vec![Complex64::ZERO; Ali3p::scratch_len(&dims)];
    let h = Complex64::from(h);
    settings.step(system, &mut input(), &mut state, h, &mut scratch).unwrap();
    let view = State::of(&dims, &mut state).unwrap();
    let all = [&*view.z, view.zd, view.zdd, view.lambda, view.a].concat();
    all.iter().map(|x| x.im / TINY).collect()
}

fn check<T: Mechanism + Copy>(name: &str, mechanism: T, settings: Ali3p, off: &[usize], h: f64) {
    check_to(name, mechanism, settings, off, h, 1e-10);
}

fn check_to<T: Mechanism + Copy>(
    name: &str,
    mechanism: T,
    settings: Ali3p,
    off: &[usize],
    h: f64,
    tolerance: f64,
) {
    let system = Lagrangian::<_, f64>::new(mechanism);
    let complex = |settings: &Ali3p, state: &[f64], x: &[f64], rho: &[f64]| {
        complex_step(mechanism, settings, state, x, rho, h)
    };
    check_system(name, &any(&system), &complex, settings, off, h, tolerance);
}

/// The derivative of a step with these settings from a state along (x, ρ).
type Expected<'a> = &'a dyn Fn(&Ali3p, &[f64], &[f64], &[f64]) -> Vec<f64>;

fn check_system(
    name: &str,
    system: &Any<'_, f64>,
    complex: Expected<'_>,
    settings: Ali3p,
    off: &[usize],
    h: f64,
    tolerance: f64,
) {
    let integrators = [
        Implicit::TRAPEZOIDAL,
        Implicit::Newmark { beta: 0.31, gamma: 0.55 },
        Implicit::GeneralizedAlpha { spectral_radius: 0.6 },
    ];
    let dims: Dims = system.dims();
    for integrator in integrators {
        // As far as the complex step goes, or the two are linearised at different instants.
        let settings = Ali3p { integrator, tolerance: 1e-15, ..settings };
        let mut state = model_start(system, 0.1, &mut input(), off);
        let mut scratch = vec![0.0; Ali3p::scratch_len(&dims)];
        let mut record = vec![0.0; Record::<f64>::len(&dims)];
        // Some steps on, so that a is not zdd.
        for _ in 0..3 {
            let step = settings.step_recorded(system, &mut input(), &mut state, h, &mut record, &mut scratch);
            step.unwrap();
        }
        let before = state.clone();
        let mut record_before = record.clone();
        settings.step_recorded(system, &mut input(), &mut state, h, &mut record, &mut scratch).unwrap();
        // Recording changes nothing.
        let mut again = before.clone();
        settings.step(system, &mut input(), &mut again, h, &mut scratch).unwrap();
        assert_eq!(systems::bits(&state), systems::bits(&again));

        let mut scratch = vec![0.0; Ali3p::linearised_scratch_len(&dims)];
        let linearised = settings.linearise(system, &mut record, &mut scratch);
        let mut linearised =
            linearised.unwrap_or_else(|error| panic!("{name} {integrator:?} {h} {settings:?}: {error}"));
        let mut scratch = vec![0.0; Ali3p::linearised_scratch_len(&dims)];
        let mut linearised_before = settings.linearise(system, &mut record_before, &mut scratch).unwrap();
        let p = dims.sensitivity.parameters;
        let n = StateDerivatives::<f64>::len(&dims) / p;
        let (nq, rows) = (dims.nq, dims.rows());
        let (mut jx, mut jty, mut jty_rho) = (vec![0.0; n], vec![0.0; n], vec![0.0; p]);
        for seed in 1..6 {
            let (mut x, mut rho, y) = (numbers(n, seed), numbers(p, 100 + seed), numbers(n, 1000 + seed));
            // Perturbations that all move accelerations by about one, so that none hides behind the rounding of another.
            for (i, x) in x.iter_mut().enumerate() {
                *x *= if i < nq {
                    h * h
                } else if i < 2 * nq {
                    h
                } else {
                    1.0
                };
            }
            for rho in &mut rho {
                *rho *= h * h;
            }
            linearised.apply(1, &x, &rho, &mut jx).unwrap();
            linearised.apply_transpose(1, &y, &mut jty, &mut jty_rho).unwrap();
            // ⟨J x, y⟩ = ⟨x, Jᵀ y⟩
            let (left, right) = (dot(&jx, &y), dot(&x, &jty) + dot(&rho, &jty_rho));
            let scale = norm(&jx) * norm(&y) + norm(&jty) * norm(&x) + norm(&jty_rho) * norm(&rho);
            let error = (left - right).abs() / scale;
            assert!(error < 1e-13, "{name} {integrator:?} {h}: {left} {right} {scale} {error:e}");
            assert_eq!(jty[3 * nq..3 * nq + rows], vec![0.0; rows]);

            // Derivatives that constraints allow, as a step leaves them: of others the complex step projects all but 1e-9.
            linearised_before.apply(1, &x.clone(), &rho, &mut x).unwrap();
            linearised.apply(1, &x, &rho, &mut jx).unwrap();
            let expected = complex(&settings, &before, &x, &rho);
            // Each block in its own size: z, zd, zdd, λ, a.
            let blocks = [0..nq, nq..2 * nq, 2 * nq..3 * nq, 3 * nq..3 * nq + rows, 3 * nq + rows..n];
            for (block, range) in blocks.into_iter().enumerate() {
                let (found, expected) = (&jx[range.clone()], &expected[range]);
                let error = systems::distance(found, expected);
                // The complex step projects all but 1e-9 of what is left to project: of multipliers, and of accelerations where
                // those of the integrator go their own way.
                let alpha = if matches!(integrator, Implicit::Newmark { .. }) { 1.0 } else { 10.0 };
                let least = [h * h, alpha * h, alpha, 10.0, alpha][block];
                let size = expected.iter().fold(least, |size: f64, x| size.max(x.abs()));
                // Without projections rounding of positions enters divided by h, by h².
                let loose = settings.max_projections == 0;
                let power = [0, 1, 2, 2, 2][block];
                let rounding = if loose { 16.0 * f64::EPSILON / h.powi(power) } else { 0.0 };
                assert!(
                    error < tolerance * size + rounding,
                    "{name} {integrator:?} {h} block {block}: {found:?} {expected:?} {error:e}"
                );
            }
        }
        assert!(linearised.apply(1, &jx[..n - 1], &jty_rho, &mut jty).is_err());
        assert!(linearised.apply(1, &jx, &jty_rho[..p - 1], &mut jty).is_err());
        assert!(linearised.apply(0, &[], &[], &mut []).is_err());
    }
}

#[test]
fn derivatives_of_a_step() {
    for h in [1e-1, 1e-2, 1e-3] {
        for max_projections in [3, 0] {
            let settings = Ali3p { max_projections, ..Ali3p::DEFAULT };
            check("pendulum", Pendulum::<1>::DEFAULT, settings, &[], h);
            check("twice", Pendulum::<2>::DEFAULT, settings, &[], h);
            // On the way to the circle its rows contradict each other, and what the complex step puts into their null space costs
            // it digits.
            let norm = Pendulum::<2> { second: Second::Norm, ..Pendulum::<2>::DEFAULT };
            check_to("norm", norm, settings, &[], h, 1e-7);
            check("one of two rows", Pendulum::<2>::DEFAULT, settings, &[0], h);
            check("no row", Pendulum::<2>::DEFAULT, settings, &[0, 1], h);
            check("pursuit", Pursuit::DEFAULT, settings, &[], h);
            check("pursuit without aim", Pursuit::DEFAULT, settings, &[1], h);
            check("cart", Cart::DEFAULT, settings, &[], h);
            check("four-bar", FourBar::DEFAULT, settings, &[], h);
            check("top", Top::DEFAULT, settings, &[], h);
        }
    }
}

/// ⟨J x, y⟩ = ⟨x, Jᵀ y⟩ for several columns at once.
fn check_transposed<T: Mechanism + Copy>(
    name: &str,
    mechanism: T,
    method: impl DifferentiableStep,
    h: f64,
    tolerance: f64,
) {
    let system = Lagrangian::<_, f64>::new(mechanism);
    check_columns(name, &any(&system), method, h, tolerance);
}

fn check_columns(name: &str, system: &Any<'_, f64>, method: impl DifferentiableStep, h: f64, tolerance: f64) {
    let dims: Dims = system.dims();
    let mut state = model_start(system, 0.1, &mut input(), &[]);
    let mut scratch = vec![0.0; method.scratch_len(&dims)];
    let mut record = vec![0.0; Record::<f64>::len(&dims)];
    for _ in 0..3 {
        let step = method.step_recorded(system, &mut input(), &mut state, h, &mut record, &mut scratch);
        step.unwrap();
    }
    let mut scratch = vec![0.0; Ali3p::linearised_scratch_len(&dims)];
    let mut linearised = method.linearise(system, &mut record, &mut scratch).unwrap();
    let (p, columns) = (dims.sensitivity.parameters, 3);
    let n = StateDerivatives::<f64>::len(&dims) / p;
    let (x, rho, y) = (numbers(n * columns, 7), numbers(p * columns, 8), numbers(n * columns, 9));
    let (mut jx, mut jty, mut jty_rho) =
        (vec![0.0; n * columns], vec![0.0; n * columns], vec![0.0; p * columns]);
    linearised.apply(columns, &x, &rho, &mut jx).unwrap();
    linearised.apply_transpose(columns, &y, &mut jty, &mut jty_rho).unwrap();
    let column = |x: &[f64], k: usize| x.iter().skip(k).step_by(columns).copied().collect::<Vec<_>>();
    for k in 0..columns {
        for l in 0..columns {
            let (jx, y) = (column(&jx, k), column(&y, l));
            let (x, rho, jty, jty_rho) =
                (column(&x, k), column(&rho, k), column(&jty, l), column(&jty_rho, l));
            let (left, right) = (dot(&jx, &y), dot(&x, &jty) + dot(&rho, &jty_rho));
            let scale = norm(&jx) * norm(&y) + norm(&jty) * norm(&x) + norm(&jty_rho) * norm(&rho);
            let error = (left - right).abs() / scale;
            assert!(error < tolerance, "{name} {h} {k} {l}: {left} {right} {error:e}");
        }
    }
}

#[test]
fn transposes_of_index_1_steps() {
    for (rate, value, compliance) in [(0.0, 0.0, 0.0), (20.0, 100.0, 0.0), (20.0, 100.0, 1e-6)] {
        for integrator in [Implicit::TRAPEZOIDAL, Implicit::GeneralizedAlpha { spectral_radius: 0.6 }] {
            let stabilisation = Stabilisation { rate, value, compliance };
            // To rounding, or rows that depend on each other contradict each other by the tolerance.
            let method =
                ImplicitIndex1 { integrator, tolerance: 1e-15, ..ImplicitIndex1::new(stabilisation) };
            // With a penalty a part of multipliers is a violation, known to rounding, divided by a millionth.
            let twice = if compliance > 0.0 { 1e-10 } else { 1e-13 };
            for h in [1e-2, 1e-3] {
                check_transposed("pendulum", Pendulum::<1>::DEFAULT, method, h, 1e-13);
                check_transposed("twice", Pendulum::<2>::DEFAULT, method, h, twice);
                check_transposed("pursuit", Pursuit::DEFAULT, method, h, 1e-13);
                check_transposed("cart", Cart::DEFAULT, method, h, 1e-13);
                check_transposed("four-bar", FourBar::DEFAULT, method, h, 1e-13);
                check_transposed("top", Top::DEFAULT, method, h, 1e-13);
            }
        }
    }
}

#[test]
fn what_has_no_derivative_is_refused_by_name() {
    use mbs_runtime::ProjectionMatrix;
    let system = Lagrangian::<_, f64>::new(FourBar::DEFAULT);
    let dims = Lagrangian::<FourBar, f64>::DIMS;
    let mut state = system.model_start(0.0, &mut input(), &[]);
    let settings = Ali3p { projection: ProjectionMatrix::Tangent, ..Ali3p::DEFAULT };
    let mut record = vec![0.0; Record::<f64>::len(&dims)];
    let mut scratch = vec![0.0; Ali3p::scratch_len(&dims).max(Ali3p::linearised_scratch_len(&dims))];
    settings.step_recorded(&system, &mut input(), &mut state, 1e-2, &mut record, &mut scratch).unwrap();
    let error = settings.linearise(&system, &mut record, &mut scratch).err().unwrap();
    assert!(matches!(error, StepError::NotDifferentiable { .. }));
    assert!(error.to_string().contains("projections with the tangent"), "{error}");
}
