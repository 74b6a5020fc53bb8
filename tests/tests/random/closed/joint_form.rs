//! Joint form: accelerations, multipliers and corrections against dense elimination.

#![allow(clippy::needless_range_loop, reason = "matrices are indexed as in their formulas")]

use super::coordinate_form::dense;
use super::{Instant, Mechanism};
use crate::mechanisms;
use mbs_codegen::program::BundleKind;
use mbs_engine::Interpreted;
use mbs_runtime::{
    At, Constrained, ConstrainedDynamics, ConstraintCorrection, InverseDynamics, MassMatrix, Stabilisation,
    System, euler_parameters,
};
use mbs_tests::instant::largest;
use mbs_tests::random_model::Random;

/// A mechanism in joint form at an instant: [M Φ_vᵀ; Φ_v 0] dense, from the mass matrix and the coordinate form.
struct Bordered {
    nv: usize,
    /// M
    mass: Vec<Vec<f64>>,
    /// Φ_v, rows of A last
    rows: Vec<Vec<f64>>,
}

impl Bordered {
    fn of(model: &Interpreted, t: f64, z: &[f64], u: &[f64]) -> Self {
        let d = model.dims();
        let (mut w, mut matrix) = (vec![0.0; d.workspace], vec![0.0; d.n_matrix]);
        model.projection(t, z, u, &mut w, &mut matrix).expect("projection");
        let blocks = dense(model, &matrix);
        let h = d.n_holonomic + d.n_normalisation;
        let mut rows = vec![vec![0.0; d.nv]; d.n_holonomic + d.n_nonholonomic];
        for j in 0..d.nv {
            let (mut v, mut zd) = (vec![0.0; d.nv], vec![0.0; d.nq]);
            v[j] = 1.0;
            euler_parameters::coordinate_rates(model, z, &v, &mut zd).expect("lengths");
            for (i, zd) in zd.iter().enumerate() {
                for k in 0..d.n_holonomic {
                    rows[k][j] += blocks.phi_z[i * h + k] * zd;
                }
                for k in 0..d.n_nonholonomic {
                    rows[d.n_holonomic + k][j] += blocks.a[i * d.n_nonholonomic + k] * zd;
                }
            }
        }
        let v = vec![0.0; d.nv];
        let mut m = vec![0.0; d.nv * d.nv];
        model.mass_matrix(At { t, z, v: &v, x: &[], u }, &mut w, &mut m).expect("mass matrix");
        let mass = m.chunks(d.nv).map(<[f64]>::to_vec).collect();
        Bordered { nv: d.nv, mass, rows }
    }

    /// The solution of [M Φ_vᵀ; Φ_v −e] x = rhs by elimination with pivots from everywhere; `None` where a pivot is
    /// small against the matrix with rows and columns scaled.
    fn solve(&self, e: f64, rhs: &[f64]) -> Option<Vec<f64>> {
        let (nv, n) = (self.nv, self.nv + self.rows.len());
        let mut a = vec![vec![0.0; n + 1]; n];
        for i in 0..nv {
            a[i][..nv].copy_from_slice(&self.mass[i]);
        }
        for (k, row) in self.rows.iter().enumerate() {
            for (j, &entry) in row.iter().enumerate() {
                (a[nv + k][j], a[j][nv + k]) = (entry, entry);
            }
            a[nv + k][nv + k] = -e;
        }
        // By the square root of the mass, and of what elimination of masses puts into the rows.
        let mut scale: Vec<f64> = (0..nv).map(|i| self.mass[i][i]).collect();
        scale.iter_mut().for_each(|s| *s = if *s > 0.0 { s.sqrt().recip() } else { 1.0 });
        for row in &self.rows {
            let size: f64 = row.iter().zip(&scale).map(|(x, s)| (x * s).powi(2)).sum();
            scale.push(if size > 0.0 { size.sqrt().recip() } else { 1.0 });
        }
        for i in 0..n {
            for j in 0..n {
                a[i][j] *= scale[i] * scale[j];
            }
            a[i][n] = rhs[i] * scale[i];
        }
        let mut columns: Vec<usize> = (0..n).collect();
        for k in 0..n {
            let places = (k..n).flat_map(|i| (k..n).map(move |j| (i, j)));
            let (i, j) = places.max_by(|&(i, j), &(p, q)| a[i][j].abs().total_cmp(&a[p][q].abs()))?;
            if a[i][j].abs() < 1e-3 {
                return None;
            }
            a.swap(k, i);
            columns.swap(k, j);
            a.iter_mut().for_each(|row| row.swap(k, j));
            let pivot = a[k].clone();
            for row in &mut a[k + 1..] {
                let factor = row[k] / pivot[k];
                row.iter_mut().zip(&pivot).skip(k).for_each(|(x, p)| *x -= factor * p);
            }
        }
        let mut x = vec![0.0; n];
        for k in (0..n).rev() {
            let sum: f64 = (k + 1..n).map(|j| a[k][j] * x[columns[j]]).sum();
            x[columns[k]] = (a[k][n] - sum) / a[k][k];
        }
        Some(x.iter().zip(&scale).map(|(x, s)| x * s).collect())
    }
}

const JOINT_FORM: [BundleKind; 6] = [
    BundleKind::Residual,
    BundleKind::ConstrainedDynamics,
    BundleKind::ConstraintCorrection,
    BundleKind::MassMatrix,
    BundleKind::InverseDynamics,
    BundleKind::Reactions,
];

/// vd and λ satisfy the equations of motion, by inverse dynamics and by the coordinate form, and the constraints'.
/// Gives whether the rows are independent here.
fn accelerations_satisfy_the_equations(m: &Mechanism) -> bool {
    let (model, d) = (&m.model, m.model.dims());
    let mut random = Random::new(m.seed + 23);
    let at = Instant::random(model, &mut random);
    let (t, z, u) = (at.t, &at.z, &at.u);
    let v: Vec<f64> = (0..d.nv).map(|_| random.uniform(-1.0, 1.0)).collect();
    let here = At { t, z, v: &v, x: &[], u };
    let bordered = Bordered::of(model, t, z, u);
    let rows = bordered.rows.len();
    let mut w = vec![f64::NAN; d.workspace];
    let mut independent = false;
    for compliance in [0.0, 0.05] {
        let stabilisation = Stabilisation { rate: 3.1, value: 7.7, compliance };
        let (mut zd, mut vd, mut lambda) = (vec![0.0; d.nq], vec![0.0; d.nv], vec![0.0; rows]);
        let rhs = vec![1.0; d.nv + rows];
        if bordered.solve(compliance, &rhs).is_none() {
            continue;
        }
        independent |= compliance == 0.0;
        model
            .constrained_dynamics(here, stabilisation, &mut w, &mut zd, &mut vd, &mut [], &mut lambda)
            .unwrap_or_else(|error| panic!("seed {}: {error:?}\n{}", m.seed, m.text));
        let mut expected = vec![0.0; d.nq];
        euler_parameters::coordinate_rates(model, z, &v, &mut expected).expect("lengths");
        m.same("zd", &zd, &expected);

        // tau(vd) + Φ_vᵀ λ = 0
        let mut tau = vec![0.0; d.nv];
        model.inverse_dynamics(here, &vd, &mut w, &mut tau).expect("tau");
        let mut pushed = vec![0.0; d.nv];
        let mut size = largest(&tau);
        for (row, &lambda) in bordered.rows.iter().zip(&lambda) {
            for (j, &entry) in row.iter().enumerate() {
                pushed[j] -= entry * lambda;
                size = size.max((entry * lambda).abs());
            }
        }
        // What elimination loses: pivots above 1e-3 of a scaled matrix.
        m.close("tau", &tau, &pushed, 1e-9 * size);

        // the same in coordinate form, where normalisation rows have no force
        let mut instant = at.clone();
        instant.zd = zd;
        euler_parameters::coordinate_accelerations(model, z, &v, &vd, &mut instant.zdd).expect("lengths");
        instant.lambda = vec![0.0; d.rows()];
        instant.lambda[..d.n_holonomic].copy_from_slice(&lambda[..d.n_holonomic]);
        instant.lambda[d.n_holonomic + d.n_normalisation..].copy_from_slice(&lambda[d.n_holonomic..]);
        let (r, phi) = instant.residual(model);
        m.close("r", &r, &vec![0.0; d.nq], 1e-8 * size);

        // Φdd = −a Φd − b Φ + e λ, Ψd = −a Ψ + e λ
        let (rates, accelerations) = (instant.rates(model), instant.accelerations(model));
        let (mut left, mut right) = (Vec::new(), Vec::new());
        for k in (0..d.rows()).filter(|k| !(d.n_holonomic..d.n_holonomic + d.n_normalisation).contains(k)) {
            left.push(accelerations[k]);
            let value = if k < d.n_holonomic { 7.7 * phi[k] } else { 0.0 };
            right.push(compliance * instant.lambda[k] - 3.1 * rates[k] - value);
        }
        let size = largest(&left).max(largest(&right)).max(largest(&vd));
        m.close("Φdd", &left, &right, 1e-8 * size);
    }
    independent
}

/// Corrections are the smallest that do it in the metric of M: what a dense elimination finds. Positions come back
/// quadratically.
fn corrections_correct(m: &Mechanism) -> bool {
    let (model, d) = (&m.model, m.model.dims());
    let mut random = Random::new(m.seed + 29);
    let start = model.start_state();
    let u = vec![0.0; d.nu];
    let v: Vec<f64> = (0..d.nv).map(|_| random.uniform(-1.0, 1.0)).collect();
    let away: Vec<f64> = (0..d.nv).map(|_| random.uniform(-1.0, 1.0)).collect();
    let mut w = vec![f64::NAN; d.workspace];
    let mut left = Vec::new();
    for distance in [1e-2, 1e-3] {
        let mut z = start[..d.nq].to_vec();
        let mut moved = vec![0.0; d.nq];
        euler_parameters::coordinate_rates(model, &z, &away, &mut moved).expect("lengths");
        z.iter_mut().zip(&moved).for_each(|(z, moved)| *z += distance * moved);
        let bordered = Bordered::of(model, 0.0, &z, &u);
        let (mut dz, mut dv) = (vec![0.0; d.nq], vec![0.0; d.nv]);
        let (mut phi, mut phid) = (vec![0.0; d.n_holonomic], vec![0.0; bordered.rows.len()]);
        let at = At { t: 0.0, z: &z, v: &v, x: &[], u: &u };
        model.constraint_correction(at, &mut w, &mut dz, &mut dv, &mut phi, &mut phid).expect("correction");
        // the reference
        let mut rhs = vec![0.0; d.nv];
        rhs.extend(phid.iter().map(|x| -x));
        let Some(expected) = bordered.solve(0.0, &rhs) else { return false };
        // ε = 1e-10 of the rows' own scale stays in corrections, and pivots above 1e-3 magnify it.
        m.close("dv", &dv, &expected[..d.nv], 1e-6 * largest(&expected[..d.nv]).max(1e-300));
        let mut rhs = vec![0.0; d.nv];
        rhs.extend(phi.iter().map(|x| -x));
        rhs.resize(d.nv + bordered.rows.len(), 0.0);
        let expected = bordered.solve(0.0, &rhs).expect("regular as before");
        let mut expected_dz = vec![0.0; d.nq];
        euler_parameters::coordinate_rates(model, &z, &expected[..d.nv], &mut expected_dz).expect("lengths");
        m.close("dz", &dz, &expected_dz, 1e-6 * largest(&expected_dz).max(1e-300));

        let corrected: Vec<f64> = z.iter().zip(&dz).map(|(z, dz)| z + dz).collect();
        let mut instant = Instant::random(model, &mut random);
        (instant.t, instant.z) = (0.0, corrected);
        let (_, after) = instant.residual(model);
        left.push((largest(&phi), largest(&after[..d.n_holonomic])));
    }
    // A tenth of the distance leaves a hundredth, almost; 1e-9 of Φ is the part of ε.
    let [(before, after), (before_near, after_near)] = left[..] else { unreachable!() };
    assert!(before_near <= before * 0.2 + 1e-12, "seed {}: the start is consistent: {before_near:e}", m.seed);
    assert!(
        after_near <= after / 25.0 + 1e-6 * before_near + 1e-14,
        "seed {}: {after:e} of {before:e}, then {after_near:e} of {before_near:e}\n{}",
        m.seed,
        m.text
    );
    true
}

#[test]
fn joint_form_is_exact() {
    let (mut independent, mut corrected) = (0, 0);
    for seed in 0..mechanisms(100) {
        let m = Mechanism::new(seed, &JOINT_FORM);
        independent += usize::from(accelerations_satisfy_the_equations(&m));
        corrected += usize::from(corrections_correct(&m));
    }
    println!("{independent} with independent rows, {corrected} at the start");
    assert!(independent > 20 && corrected > 20, "{independent} {corrected}");
}
