//! The derivative of a step: its transpose, and itself against the complex step.

mod systems;

use mbs_runtime::formulation::{LinearisedNewton, Record};
use mbs_runtime::inputs::NoInputs;
use mbs_runtime::{Ali3p, Complex64, Dims, Implicit, Scalar};
use systems::lagrangian::{Lagrangian, Mechanism};
use systems::mechanisms::{Body, DrivenCart, MeasuredSpring, Pendulum, Pursuit};

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

/// The result of a step without projections, (z, zd, zdd, a, λ), with its derivative along `direction`.
fn complex_step<T: Mechanism>(
    mechanism: T,
    settings: &Ali3p,
    state: &[f64],
    direction: &[f64],
    h: f64,
) -> (Vec<f64>, Vec<f64>) {
    let system = Lagrangian::<_, Complex64>::new(mechanism);
    let dims = Lagrangian::<T, Complex64>::DIMS;
    let mut state: Vec<Complex64> = state.iter().map(|x| Complex64::from(*x)).collect();
    for (x, d) in state[1..].iter_mut().zip(direction) {
        x.im = d * TINY;
    }
    // Newton's method converges in its imaginary part one iteration after the real one.
    let settings = Ali3p { max_projections: 0, tolerance: 1e-14, ..*settings };
    let mut scratch = vec![Complex64::ZERO; Ali3p::scratch_len(&dims)];
    let h = Complex64::from(h);
    settings.step(&system, &mut NoInputs, &mut state, h, &mut scratch).unwrap();
    let view = system.view(&mut state);
    let all = [&*view.z, view.zd, view.zdd, view.a, view.lambda].concat();
    (all.iter().map(|x| x.re).collect(), all.iter().map(|x| x.im / TINY).collect())
}

fn check<T: Mechanism + Copy>(name: &str, mechanism: T, z: &[f64], zd: &[f64], h: f64) {
    let integrators = [
        Implicit::TRAPEZOIDAL,
        Implicit::Newmark { beta: 0.31, gamma: 0.55 },
        Implicit::GeneralizedAlpha { spectral_radius: 0.6 },
    ];
    let system = Lagrangian::<_, f64>::new(mechanism);
    let dims: Dims = Lagrangian::<T, f64>::DIMS;
    for integrator in integrators {
        let settings = Ali3p { integrator, ..Ali3p::DEFAULT };
        let mut state = system.start(0.1, z, zd);
        // Some steps on, so that a is not zdd.
        system.steps(&settings, &mut state, h, 3).unwrap();

        let before = state.clone();
        let mut record = vec![0.0; Record::<f64>::len(&dims)];
        let mut scratch = vec![0.0; Ali3p::scratch_len(&dims)];
        settings.step_recorded(&system, &mut NoInputs, &mut state, h, &mut record, &mut scratch).unwrap();
        // Recording changes nothing.
        let mut again = before.clone();
        settings.step(&system, &mut NoInputs, &mut again, h, &mut scratch).unwrap();
        assert_eq!(systems::bits(&state), systems::bits(&again));

        let mut scratch = vec![0.0; Ali3p::linearised_scratch_len(&dims)];
        let mut linearised = settings.linearise_newton(&system, &mut record, &mut scratch).unwrap();
        let inputs = LinearisedNewton::<Lagrangian<T, f64>>::input_len(&dims);
        let outputs = LinearisedNewton::<Lagrangian<T, f64>>::output_len(&dims);
        let (mut jx, mut jty) = (vec![0.0; outputs], vec![0.0; inputs]);
        for seed in 1..6 {
            let (x, y) = (numbers(inputs, seed), numbers(outputs, 1000 + seed));
            linearised.apply(&x, &mut jx).unwrap();
            linearised.apply_transpose(&y, &mut jty).unwrap();
            // ⟨J x, y⟩ = ⟨x, Jᵀ y⟩
            let (left, right) = (dot(&jx, &y), dot(&x, &jty));
            let scale = norm(&jx) * norm(&y);
            assert!((left - right).abs() < 1e-13 * scale, "{name} {integrator:?}: {left} {right} {scale}");

            let (values, expected) = complex_step(mechanism, &settings, &before, &x, h);
            let view = Record::of(&dims, &mut record).unwrap();
            // The record is where the complex step ends, too.
            let recorded = [&*view.z, view.zd_star].concat();
            assert!(systems::distance(&recorded, &values[..recorded.len()]) < 1e-11, "{name}");
            // Each block in its own size: z, zd, zdd, a, λ.
            let nq = dims.nq;
            for (block, range) in
                [0..nq, nq..2 * nq, 2 * nq..3 * nq, 3 * nq..4 * nq, 4 * nq..outputs].into_iter().enumerate()
            {
                let (found, expected) = (&jx[range.clone()], &expected[range]);
                let error = systems::distance(found, expected);
                let size = expected.iter().fold(1.0, |size: f64, x| size.max(x.abs()));
                assert!(error < 1e-10 * size, "{name} {integrator:?} block {block}: {found:?} {expected:?}");
            }
        }
        let wrong = linearised.apply(&jx[..inputs - 1], &mut jty);
        assert!(wrong.is_err());
    }
}

#[test]
fn derivatives_of_the_newton_part() {
    for h in [1e-1, 1e-2, 1e-3] {
        check("pendulum", Pendulum::<1> { mass: 2.0, length: 1.3 }, &[0.5, -1.2], &[1.2, 0.5], h);
        check("pursuit", Pursuit { force: 5.0 }, &Pursuit::start().0, &Pursuit::start().1, h);
        check("cart", DrivenCart, &[0.1, 0.3], &[1.0, -0.5], h);
        check("spring", MeasuredSpring, &[1.0, 4.0 / 3.0], &[0.3, 0.6], h);
        let zd = [0.0, 0.4, -0.15, 0.85];
        check("body", Body { across: 1.0, along: 2.5 }, &[1.0, 0.0, 0.0, 0.0], &zd, h);
    }
}
