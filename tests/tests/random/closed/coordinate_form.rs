//! Coordinate form: the leading matrix, its solves, rates of the constraints.

#![allow(clippy::needless_range_loop, reason = "matrices are indexed as in their formulas")]

use super::{Instant, Mechanism, add, derivative, imaginary};
use crate::mechanisms;
use mbs_codegen::program::BundleKind;
use mbs_engine::Interpreted;
use mbs_runtime::{Complex64, Constrained, Dims, FusedSteps, System, Weights};
use mbs_tests::instant::largest;
use mbs_tests::random_model::Random;

/// The blocks of the leading matrix, dense by columns.
pub(super) struct Dense {
    pub(super) w: Vec<f64>,
    pub(super) phi_z: Vec<f64>,
    pub(super) a: Vec<f64>,
    pub(super) a_newton: Vec<f64>,
}

pub(super) fn dense(model: &Interpreted, matrix: &[f64]) -> Dense {
    let d = model.dims();
    let pattern = model.pattern();
    let (h, n) = (d.n_holonomic + d.n_normalisation, d.n_nonholonomic);
    assert_eq!(
        matrix.len(),
        pattern.tangent.len() + pattern.holonomic.len() + 2 * pattern.nonholonomic.len() + d.rows()
    );
    let mut entries = matrix.iter();
    let mut fill = |places: &[(u32, u32)], rows: usize| {
        assert!(places.windows(2).all(|pair| pair[0] < pair[1]), "sorted, and no place twice");
        let mut block = vec![0.0; rows * d.nq];
        for &(i, j) in places {
            block[j as usize * rows + i as usize] = *entries.next().expect("an entry");
        }
        block
    };
    Dense {
        w: fill(pattern.tangent, d.nq),
        phi_z: fill(pattern.holonomic, h),
        a: fill(pattern.nonholonomic, n),
        a_newton: fill(pattern.nonholonomic, n),
    }
}

/// The whole leading matrix by rows, with the diagonal of its small numbers.
fn whole(d: &Dims, blocks: &Dense, small: &[f64]) -> Vec<Vec<f64>> {
    let (n, h) = (d.nq, d.n_holonomic + d.n_normalisation);
    let mut full = vec![vec![0.0; n + d.rows()]; n + d.rows()];
    for j in 0..n {
        for i in 0..n {
            full[i][j] = blocks.w[j * n + i];
        }
        for k in 0..h {
            full[n + k][j] = blocks.phi_z[j * h + k];
            full[j][n + k] = blocks.phi_z[j * h + k];
        }
        for k in 0..d.n_nonholonomic {
            full[n + h + k][j] = blocks.a_newton[j * d.n_nonholonomic + k];
            full[j][n + h + k] = blocks.a[j * d.n_nonholonomic + k];
        }
    }
    for (k, small) in small.iter().enumerate() {
        full[n + k][n + k] = -small;
    }
    full
}

/// The leading matrix against complex steps of the residual and of the constraints.
fn leading_matrix_is_exact(m: &Mechanism) {
    let (model, complex) = (&m.model, &m.complex);
    let at = Instant::random(model, &mut Random::new(m.seed));
    let d = model.dims();
    let holonomic = d.n_holonomic + d.n_normalisation;
    let weights = Weights { velocity: 0.37, position: 0.21, ratio: 0.53 };
    let mut w = vec![0.0; d.workspace];
    let (mut r, mut phi) = (vec![0.0; d.nq], vec![0.0; d.rows()]);
    let mut matrix = vec![0.0; d.n_matrix];
    model.newton(at.motion(), &at.lambda, weights, &mut w, &mut r, &mut phi, &mut matrix).expect("newton");
    let (r0, phi0) = at.residual(model);
    m.same("r", &r, &r0);
    m.same("phi", &phi, &phi0);
    let newton = dense(model, &matrix);
    model.projection(at.t, &at.z, &at.u, &mut w, &mut matrix).expect("projection");
    let projection = dense(model, &matrix);

    let places = model.pattern().tangent;
    for &(i, j) in places {
        assert!(places.binary_search(&(j, i)).is_ok(), "seed {}: W has ({i}, {j}) only", m.seed);
    }
    let (mut tangent, mut mass) = (Vec::new(), Vec::new());
    let (mut phi_z, mut a, mut a_newton) = (Vec::new(), Vec::new(), Vec::new());
    for b in 0..d.nq {
        let along = |x: &mut Instant<Complex64>| {
            add(&mut x.z[b], weights.position);
            add(&mut x.zd[b], weights.velocity);
            add(&mut x.zdd[b], 1.0);
        };
        tangent.extend(imaginary(&derivative(&at, along, |x| x.residual(complex)).0));
        let (r, phi) = derivative(&at, |x| add(&mut x.zdd[b], 1.0), |x| x.residual(complex));
        mass.extend(imaginary(&r));
        assert_eq!(largest(&imaginary(&phi)), 0.0, "constraints do not read accelerations");
        let (_, phi) = derivative(&at, |x| add(&mut x.z[b], 1.0), |x| x.residual(complex));
        let by_z = imaginary(&phi);
        let (_, phi) = derivative(&at, |x| add(&mut x.zd[b], 1.0), |x| x.residual(complex));
        let by_zd = imaginary(&phi);
        assert_eq!(largest(&by_zd[..holonomic]), 0.0, "holonomic rows do not read velocities");
        phi_z.extend(&by_z[..holonomic]);
        a.extend(&by_zd[holonomic..]);
        a_newton
            .extend(by_zd[holonomic..].iter().zip(&by_z[holonomic..]).map(|(a, x)| a + weights.ratio * x));
    }
    m.same("W", &newton.w, &tangent);
    m.same("M", &projection.w, &mass);
    m.same("Φ_z", &newton.phi_z, &phi_z);
    m.same("Φ_z of the projection", &projection.phi_z, &phi_z);
    m.same("A", &newton.a, &a);
    m.same("A of the projection", &projection.a, &a);
    m.same("A' of the projection", &projection.a_newton, &a);
    m.same("A'", &newton.a_newton, &a_newton);

    // ∂r/∂λ is the transpose of the rows
    for k in 0..d.rows() {
        let force = derivative(&at, |x| add(&mut x.lambda[k], 1.0), |x| x.residual(complex)).0;
        let row: Vec<f64> = (0..d.nq)
            .map(|j| match k.checked_sub(holonomic) {
                None => phi_z[j * holonomic + k],
                Some(k) => a[j * d.n_nonholonomic + k],
            })
            .collect();
        m.close(
            &format!("force of row {k}"),
            &imaginary(&force),
            &row,
            1e-12 * largest(&phi_z).max(largest(&a)),
        );
    }
}

/// Φd, Φdd and Ψd against complex steps along the motion.
fn rates_are_exact(m: &Mechanism) {
    let (model, complex) = (&m.model, &m.complex);
    let at = Instant::random(model, &mut Random::new(m.seed + 7));
    let d = model.dims();
    let holonomic = d.n_holonomic + d.n_normalisation;
    let moving = |x: &mut Instant<Complex64>| {
        add(&mut x.t, 1.0);
        for j in 0..d.nq {
            add(&mut x.z[j], at.zd[j]);
            add(&mut x.zd[j], at.zdd[j]);
        }
    };
    let (_, phi) = at.residual(model);
    let rates = at.rates(model);
    let (_, phid) = derivative(&at, moving, |x| x.residual(complex));
    m.same("Φd", &rates[..holonomic], &imaginary(&phid)[..holonomic]);
    m.same("Ψ", &rates[holonomic..], &phi[holonomic..]);
    let phidd = imaginary(&derivative(&at, moving, |x| x.rates(complex)));
    m.same("Φdd and Ψd", &at.accelerations(model), &phidd);
}

/// Solutions against products with the matrix, both ways: of Newton's matrix and of the projections', where all
/// constraints hold and where they do not. Gives the worst backward error of each.
fn solves_solve(m: &Mechanism) -> [f64; 4] {
    let (model, d) = (&m.model, m.model.dims());
    let mut random = Random::new(m.seed + 13);
    let start = model.start_state();
    let (mut w, h) = (vec![f64::NAN; d.workspace], 1e-3);
    let weights = Weights { velocity: h / 2.0, position: h * h / 4.0, ratio: h / 2.0 };
    let (mut r, mut phi) = (vec![0.0; d.nq], vec![0.0; d.rows()]);
    let (mut matrix, mut factors) = (vec![0.0; d.n_matrix], vec![f64::NAN; d.n_factors]);
    let first = d.n_matrix - d.rows();
    let mut worst = [0.0f64; 4];
    for (case, worst) in worst.iter_mut().enumerate() {
        let (newton, consistent) = (case % 2 == 0, case / 2 == 0);
        let mut at = Instant::random(model, &mut random);
        for (z, start) in at.z.iter_mut().zip(&start) {
            *z = start + if consistent { 0.0 } else { random.uniform(-0.05, 0.05) };
        }
        at.t = if consistent { 0.0 } else { at.t };
        model.projection(at.t, &at.z, &at.u, &mut w, &mut matrix).expect("projection");
        let plain = whole(&d, &dense(model, &matrix), &[]);
        if newton {
            model
                .newton(at.motion(), &at.lambda, weights, &mut w, &mut r, &mut phi, &mut matrix)
                .expect("newton");
        }
        for k in 0..d.rows() {
            // S/c of the runtime, S = Σ Φ²/M.
            let row = &plain[d.nq + k];
            let heavy = (0..d.nq).filter(|&j| plain[j][j] > 0.0);
            let s: f64 = heavy.map(|j| row[j].powi(2) / plain[j][j]).sum();
            matrix[first + k] = if newton { 1e-6 } else { 1e-9 } * if s > 0.0 { s } else { 1.0 };
        }
        let full = whole(&d, &dense(model, &matrix), &matrix[first..]);
        if let Err(error) = model.factor(&matrix, &mut w, &mut factors) {
            println!("seed {}, case {case}: {error:?}", m.seed);
            *worst = 1.0;
            continue;
        }
        let n = full.len();
        let mut vector = || (0..n).map(|_| random.uniform(-1.0, 1.0)).collect::<Vec<f64>>();
        // Of solutions of moderate size: dependent rows contradict each other in other right-hand sides.
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let (x, y) = (vector(), vector());
        let b: Vec<f64> = full.iter().map(|row| dot(row, &x)).collect();
        let c: Vec<f64> = (0..n).map(|i| (0..n).map(|k| full[k][i] * y[k]).sum()).collect();
        let (mut x, mut y) = (b.clone(), c.clone());
        model.solve(&factors, &mut w, &mut x).expect("solve");
        model.solve_transposed(&factors, &mut w, &mut y).expect("solve");
        for i in 0..n {
            let column: Vec<f64> = full.iter().map(|row| row[i]).collect();
            for (along, x, b) in [(&full[i], &x, b[i]), (&column, &y, c[i])] {
                let size: f64 = along.iter().zip(x).map(|(a, x)| (a * x).abs()).sum::<f64>() + b.abs();
                let error = (dot(along, x) - b).abs() / size;
                *worst = if error <= *worst { *worst } else { error };
            }
        }
        // ⟨A⁻¹ b, c⟩ = ⟨b, A⁻ᵀ c⟩
        let size: f64 = x.iter().zip(&c).chain(b.iter().zip(&y)).map(|(a, b)| (a * b).abs()).sum();
        *worst = worst.max((dot(&x, &c) - dot(&b, &y)).abs() / size);
    }
    worst
}

#[test]
fn coordinate_form_is_exact() {
    let (mut holonomic, mut normalisation, mut nonholonomic) = (0, 0, 0);
    let mut backward: Vec<([f64; 4], u64)> = Vec::new();
    for seed in 0..mechanisms(100) {
        let m = Mechanism::new(seed, &BundleKind::COORDINATE_FORM);
        let d = m.model.dims();
        holonomic += d.n_holonomic;
        normalisation += d.n_normalisation;
        nonholonomic += d.n_nonholonomic;
        leading_matrix_is_exact(&m);
        rates_are_exact(&m);
        backward.push((solves_solve(&m), seed));
    }
    assert!(
        holonomic > 6 * backward.len()
            && normalisation > backward.len() / 2
            && nonholonomic > backward.len() / 3
    );
    println!("rows: {holonomic} {normalisation} {nonholonomic}");
    // Where constraints hold the order is a good one. Elsewhere dependent rows become almost independent.
    for (case, tolerance) in [1e-9, 1e-9, 1e-8, 1e-6].into_iter().enumerate() {
        backward.sort_by(|a, b| b.0[case].total_cmp(&a.0[case]));
        let (worst, seed) = (backward[0].0[case], backward[0].1);
        println!("case {case}: backward error {worst:e} of seed {seed}");
        assert!(worst < tolerance, "case {case}, seed {seed}: backward error {worst:e}");
    }
}

/// Parts of steps are what the bundles are that they are made of, one after the other.
fn parts_of_steps_are_their_sum(m: &Mechanism) -> bool {
    let model = &m.model;
    if !model.fuses_steps() {
        return false;
    }
    let at = Instant::random(model, &mut Random::new(m.seed));
    let d = model.dims();
    let (n, holonomic) = (d.nq + d.rows(), d.n_holonomic + d.n_normalisation);
    let weights = Weights { velocity: 0.37, position: 0.21, ratio: 0.53 };
    // Rows may depend on each other: then small numbers leave nothing to compare.
    let small = vec![0.3; d.rows()];
    let (mut w, mut r, mut phi) = (vec![0.0; d.workspace], vec![0.0; d.nq], vec![0.0; d.rows()]);
    let (mut matrix, mut factors) = (vec![0.0; d.n_matrix], vec![0.0; d.n_factors]);
    let entries = d.n_matrix - d.rows();
    matrix[entries..].copy_from_slice(&small);
    model.newton(at.motion(), &at.lambda, weights, &mut w, &mut r, &mut phi, &mut matrix).expect("newton");
    model.factor(&matrix, &mut w, &mut factors).expect("regular");
    let g = |k: usize, phi: f64| phi / if k < holonomic { weights.position } else { weights.velocity };
    let rows = phi.iter().enumerate().map(|(k, &phi)| -g(k, phi));
    let mut x: Vec<f64> = r.iter().map(|r| -r).chain(rows).collect();
    model.solve(&factors, &mut w, &mut x).expect("lengths");

    let (mut phi_at_once, mut matrix_at_once) = (vec![0.0; d.rows()], vec![0.0; entries]);
    let (mut factors_at_once, mut x_at_once) = (vec![0.0; d.n_factors], vec![0.0; n]);
    let (motion, lambda) = (at.motion(), &at.lambda);
    let (phi_out, matrix_out) = (&mut phi_at_once, &mut matrix_at_once);
    let (factors_out, x_out) = (&mut factors_at_once, &mut x_at_once);
    model
        .newton_step(motion, lambda, weights, &small, &mut w, phi_out, matrix_out, factors_out, x_out)
        .expect("regular");
    m.same("phi at once", &phi, &phi_at_once);
    m.same("matrix at once", &matrix[..entries], &matrix_at_once);
    // Solutions by factors of other roundings.
    m.close("x at once", &x, &x_at_once, 1e-9 * largest(&x));
    model
        .correct_step(motion, lambda, weights, &factors, &mut w, &mut phi_at_once, &mut x_at_once)
        .expect("lengths");
    m.same("phi again", &phi, &phi_at_once);
    m.close("x again", &x, &x_at_once, 1e-9 * largest(&x));

    // Projections: M d + Bᵀ σ = 0, and B d − E σ + Φd = 0 up to what the refinement adds, E (σ of the refinement).
    let (mut velocity, mut acceleration) = (vec![0.0; n], vec![0.0; n]);
    let (mut phid, mut phidd) = (vec![0.0; d.rows()], vec![0.0; d.rows()]);
    let (v, a) = (&mut velocity, &mut acceleration);
    model.project_step(motion, &small, &mut w, v, a, &mut phid, &mut phidd).expect("regular");
    model.projection(at.t, &at.z, &at.u, &mut w, &mut matrix).expect("projection");
    model.factor(&matrix, &mut w, &mut factors).expect("regular");
    let blocks = dense(model, &matrix);
    let mut moved = at.zd.clone();
    for (what, found, left) in [("velocity", &velocity, &phid), ("acceleration", &acceleration, &phidd)] {
        let mut residual = vec![0.0; d.rows()];
        let now = mbs_runtime::Motion { zd: &moved, ..motion };
        if what == "velocity" {
            model.constraint_rates(now, &mut w, &mut residual).expect("rates");
        } else {
            model.constraint_accelerations(now, &mut w, &mut residual).expect("accelerations");
        }
        let mut x = vec![0.0; n];
        let mut rest = residual.clone();
        for _ in 0..2 {
            let mut change: Vec<f64> = vec![0.0; d.nq];
            change.extend(rest.iter().map(|r| -r));
            model.solve(&factors, &mut w, &mut change).expect("lengths");
            for (k, rest) in rest.iter_mut().enumerate() {
                *rest = small[k] * change[d.nq + k];
            }
            x.iter_mut().zip(&change).for_each(|(x, c)| *x += c);
        }
        m.close(what, &x, found, 1e-9 * largest(&x));
        let full = whole(&d, &blocks, &small);
        let remains: Vec<f64> = (0..d.rows())
            .map(|k| residual[k] + (0..d.nq).map(|j| full[d.nq + k][j] * x[j]).sum::<f64>())
            .collect();
        m.close("what is left", &remains, left, 1e-9 * largest(&residual).max(largest(&x)));
        if what == "velocity" {
            moved.iter_mut().zip(&x).for_each(|(zd, d)| *zd += d);
        }
    }
    true
}

#[test]
fn parts_of_steps() {
    // Most are too large, or would save little: the first five.
    let fused = (0..mechanisms(300))
        .filter(|&seed| parts_of_steps_are_their_sum(&Mechanism::new(seed, &[BundleKind::Residual])));
    assert_eq!(fused.take(5).count(), 5);
}
