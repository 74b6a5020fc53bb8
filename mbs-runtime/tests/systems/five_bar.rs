//! The five-bar linkage of [Dopico2018, 4.1] by the absolute angles of its bars, written out as a generator would: no heap,
//! a sparse pattern, factors in a fixed order.
//!
//! Bars: A–1 (angle z0), 1–2 (z1), 3–2 (z2), B–3 (z3), each from its first point. Point 2 closes the loop.

#![allow(clippy::needless_range_loop, reason = "the index is the bar's number, in several arrays")]

use mbs_runtime::system::{array, array_mut};
use mbs_runtime::{
    Constrained, Dims, EvalError, FusedSteps, Motion, Names, Pattern, Quantity, System, Weights,
};

const L: [f64; 4] =
    [std::f64::consts::SQRT_2, 1.802_775_637_731_994_6, 1.802_775_637_731_994_6, std::f64::consts::SQRT_2];
const MASS: [f64; 4] = [1.0, 1.5, 1.5, 1.0];
const G: f64 = 9.81;
const A: [f64; 2] = [-0.5, 0.0];
const B: [f64; 2] = [0.5, 0.0];
const K: f64 = 100.0;
/// Natural lengths of the springs from B to 1 and from B to 2.
const NATURAL: [f64; 2] = [2.236_067_977_499_79, 2.061_552_812_808_830_4];

#[derive(Clone, Copy, Default)]
pub(crate) struct FiveBar {
    /// Whether the static factor is spoiled, for tests of the fallback.
    pub(crate) broken: bool,
}

pub(crate) const DIMS: Dims =
    Dims { nq: 4, nv: 4, n_holonomic: 2, n_matrix: 18, n_factors: 28, ..Dims::ZERO };

const TANGENT: [(u32, u32); 8] = [(0, 0), (0, 1), (1, 0), (1, 1), (2, 2), (2, 3), (3, 2), (3, 3)];
const HOLONOMIC: [(u32, u32); 8] = [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1), (1, 2), (1, 3)];

/// Sine and cosine of the angles.
struct Angles {
    sin: [f64; 4],
    cos: [f64; 4],
}

impl Angles {
    #[inline(always)]
    fn new(z: &[f64; 4]) -> Self {
        let pairs = z.map(f64::sin_cos);
        Self { sin: pairs.map(|pair| pair.0), cos: pairs.map(|pair| pair.1) }
    }
}

/// The two chains: (bar at the ground, bar at the loop's end).
const CHAINS: [[usize; 2]; 2] = [[0, 1], [3, 2]];

/// Inertia of the ground's bar, of the other, coupling, weight's moments.
const fn chain([i, j]: [usize; 2]) -> [f64; 5] {
    [
        (MASS[i] / 3.0 + MASS[j]) * L[i] * L[i],
        MASS[j] / 3.0 * L[j] * L[j],
        0.5 * MASS[j] * L[i] * L[j],
        (0.5 * MASS[i] + MASS[j]) * L[i] * G,
        0.5 * MASS[j] * L[j] * G,
    ]
}

impl FiveBar {
    /// Start angles, at rest.
    pub(crate) fn start() -> [f64; 4] {
        [(-1.0_f64).atan2(-1.0), (-1.0_f64).atan2(1.5), (-1.0_f64).atan2(-1.5), (-1.0_f64).atan2(1.0)]
    }

    /// Position, velocity and acceleration of point 2.
    pub(crate) fn point_2(z: &[f64], zd: &[f64], zdd: &[f64]) -> [[f64; 2]; 3] {
        let mut motion = [A, [0.0; 2], [0.0; 2]];
        for i in 0..2 {
            let (sin, cos) = z[i].sin_cos();
            motion[0][0] += L[i] * cos;
            motion[0][1] += L[i] * sin;
            motion[1][0] -= L[i] * sin * zd[i];
            motion[1][1] += L[i] * cos * zd[i];
            motion[2][0] -= L[i] * (sin * zdd[i] + cos * zd[i] * zd[i]);
            motion[2][1] += L[i] * (cos * zdd[i] - sin * zd[i] * zd[i]);
        }
        motion
    }

    /// Kinetic plus potential energy.
    pub(crate) fn energy(z: &[f64], zd: &[f64]) -> f64 {
        let mut energy = 0.0;
        for chain_ in CHAINS {
            let [i, j] = chain_;
            let [a, b, c, ga, gb] = chain(chain_);
            energy += 0.5 * a * zd[i] * zd[i] + 0.5 * b * zd[j] * zd[j];
            energy += c * (z[i] - z[j]).cos() * zd[i] * zd[j];
            energy += ga * z[i].sin() + gb * z[j].sin();
        }
        for bars in 1..=2 {
            let mut p = [A[0] - B[0], A[1] - B[1]];
            for i in 0..bars {
                p[0] += L[i] * z[i].cos();
                p[1] += L[i] * z[i].sin();
            }
            let stretch = p[0].hypot(p[1]) - NATURAL[bars - 1];
            energy += 0.5 * K * stretch * stretch;
        }
        energy
    }

    #[inline(always)]
    fn residual_of(a: &Angles, zd: &[f64; 4], zdd: &[f64; 4], lambda: &[f64; 2], r: &mut [f64; 4]) {
        for bars in CHAINS {
            let [i, j] = bars;
            let [ia, ib, c, ga, gb] = const { [chain(CHAINS[0]), chain(CHAINS[1])] }[usize::from(i == 3)];
            let cos = a.cos[i] * a.cos[j] + a.sin[i] * a.sin[j];
            let sin = a.sin[i] * a.cos[j] - a.cos[i] * a.sin[j];
            r[i] = ia * zdd[i] + c * cos * zdd[j] + c * sin * zd[j] * zd[j] + ga * a.cos[i];
            r[j] = ib * zdd[j] + c * cos * zdd[i] - c * sin * zd[i] * zd[i] + gb * a.cos[j];
        }
        // Springs from B to 1 and to 2.
        let mut p = [A[0] - B[0], A[1] - B[1]];
        for bars in 1..=2 {
            let i = bars - 1;
            p = [p[0] + L[i] * a.cos[i], p[1] + L[i] * a.sin[i]];
            let f = K * (1.0 - NATURAL[i] / (p[0] * p[0] + p[1] * p[1]).sqrt());
            for k in 0..bars {
                r[k] += f * L[k] * (p[1] * a.cos[k] - p[0] * a.sin[k]);
            }
        }
        for k in 0..4 {
            let sign = if k < 2 { L[k] } else { -L[k] };
            r[k] += sign * (lambda[1] * a.cos[k] - lambda[0] * a.sin[k]);
        }
    }

    #[inline(always)]
    fn phi_of(a: &Angles, phi: &mut [f64; 2]) {
        *phi = [A[0] - B[0], A[1] - B[1]];
        for k in 0..4 {
            let sign = if k < 2 { L[k] } else { -L[k] };
            phi[0] += sign * a.cos[k];
            phi[1] += sign * a.sin[k];
        }
    }

    #[inline(always)]
    fn rows_of(a: &Angles, matrix: &mut [f64; 18]) {
        for k in 0..4 {
            let sign = if k < 2 { L[k] } else { -L[k] };
            matrix[8 + k] = -sign * a.sin[k];
            matrix[12 + k] = sign * a.cos[k];
        }
    }
}

impl System for FiveBar {
    type S = f64;
    #[inline(always)]
    fn dims(&self) -> Dims {
        DIMS
    }
}

impl Names for FiveBar {
    fn name(&self, quantity: Quantity, index: usize) -> Option<&str> {
        match quantity {
            Quantity::Holonomic => ["loop.x", "loop.y"].get(index).copied(),
            Quantity::Coordinate => ["a1.angle", "b12.angle", "b32.angle", "b3.angle"].get(index).copied(),
            _ => None,
        }
    }
}

impl FusedSteps for FiveBar {}

impl Constrained for FiveBar {
    #[inline(always)]
    fn pattern(&self) -> Pattern<'_> {
        Pattern { tangent: &TANGENT, holonomic: &HOLONOMIC, nonholonomic: &[] }
    }

    fn held(&self) -> &[bool] {
        &[true, true, false, false]
    }

    #[inline(never)]
    fn residual(
        &self,
        at: Motion<'_, f64>,
        lambda: &[f64],
        _: &mut [f64],
        r: &mut [f64],
        phi: &mut [f64],
    ) -> Result<(), EvalError> {
        let a = Angles::new(array("z", at.z)?);
        Self::residual_of(
            &a,
            array("zd", at.zd)?,
            array("zdd", at.zdd)?,
            array("lambda", lambda)?,
            array_mut("r", r)?,
        );
        Self::phi_of(&a, array_mut("phi", phi)?);
        Ok(())
    }

    #[inline(never)]
    fn newton(
        &self,
        at: Motion<'_, f64>,
        lambda: &[f64],
        weights: Weights<f64>,
        _: &mut [f64],
        r: &mut [f64],
        phi: &mut [f64],
        matrix: &mut [f64],
    ) -> Result<(), EvalError> {
        let a = Angles::new(array("z", at.z)?);
        let (zd, zdd): (&[f64; 4], &[f64; 4]) = (array("zd", at.zd)?, array("zdd", at.zdd)?);
        let lambda: &[f64; 2] = array("lambda", lambda)?;
        let matrix: &mut [f64; 18] = array_mut("matrix", matrix)?;
        Self::residual_of(&a, zd, zdd, lambda, array_mut("r", r)?);
        Self::phi_of(&a, array_mut("phi", phi)?);
        Self::rows_of(&a, matrix);
        let (wv, wp) = (weights.velocity, weights.position);
        for (which, [i, j]) in CHAINS.into_iter().enumerate() {
            let [ia, ib, c, ga, gb] = const { [chain(CHAINS[0]), chain(CHAINS[1])] }[which];
            let cos = a.cos[i] * a.cos[j] + a.sin[i] * a.sin[j];
            let sin = a.sin[i] * a.cos[j] - a.cos[i] * a.sin[j];
            let by_i = -c * sin * zdd[j] + c * cos * zd[j] * zd[j];
            let by_j = -c * sin * zdd[i] - c * cos * zd[i] * zd[i];
            let ii = ia + wp * (by_i - ga * a.sin[i]);
            let ij = c * cos + wv * 2.0 * c * sin * zd[j] - wp * by_i;
            let ji = c * cos - wv * 2.0 * c * sin * zd[i] + wp * by_j;
            let jj = ib + wp * (-by_j - gb * a.sin[j]);
            if which == 0 {
                (matrix[0], matrix[1], matrix[2], matrix[3]) = (ii, ij, ji, jj);
            } else {
                (matrix[7], matrix[6], matrix[5], matrix[4]) = (ii, ij, ji, jj);
            }
        }
        let mut p = [A[0] - B[0], A[1] - B[1]];
        for bars in 1..=2 {
            let i = bars - 1;
            p = [p[0] + L[i] * a.cos[i], p[1] + L[i] * a.sin[i]];
            let d = (p[0] * p[0] + p[1] * p[1]).sqrt();
            let f = K * (1.0 - NATURAL[i] / d);
            let slope = K * NATURAL[i] / (d * d * d);
            for k in 0..bars {
                let along_k = L[k] * (p[1] * a.cos[k] - p[0] * a.sin[k]);
                for m in 0..bars {
                    let along_m = L[m] * (p[1] * a.cos[m] - p[0] * a.sin[m]);
                    let product = L[k] * L[m] * (a.cos[k] * a.cos[m] + a.sin[k] * a.sin[m]);
                    matrix[2 * k + m] += wp * (f * product + slope * along_k * along_m);
                }
                matrix[3 * k] -= wp * f * L[k] * (p[0] * a.cos[k] + p[1] * a.sin[k]);
            }
        }
        for (k, place) in [0, 3, 4, 7].into_iter().enumerate() {
            let sign = if k < 2 { L[k] } else { -L[k] };
            matrix[place] -= wp * sign * (lambda[0] * a.cos[k] + lambda[1] * a.sin[k]);
        }
        Ok(())
    }

    #[inline(never)]
    fn projection(
        &self,
        _: f64,
        z: &[f64],
        _: &[f64],
        _: &mut [f64],
        matrix: &mut [f64],
    ) -> Result<(), EvalError> {
        let a = Angles::new(array("z", z)?);
        let matrix: &mut [f64; 18] = array_mut("matrix", matrix)?;
        Self::rows_of(&a, matrix);
        for (which, [i, j]) in CHAINS.into_iter().enumerate() {
            let [ia, ib, c, ..] = const { [chain(CHAINS[0]), chain(CHAINS[1])] }[which];
            let coupling = c * (a.cos[i] * a.cos[j] + a.sin[i] * a.sin[j]);
            if which == 0 {
                (matrix[0], matrix[1], matrix[2], matrix[3]) = (ia, coupling, coupling, ib);
            } else {
                (matrix[7], matrix[6], matrix[5], matrix[4]) = (ia, coupling, coupling, ib);
            }
        }
        Ok(())
    }

    #[inline(never)]
    fn constraint_rates(
        &self,
        at: Motion<'_, f64>,
        _: &mut [f64],
        phid: &mut [f64],
    ) -> Result<(), EvalError> {
        let (a, zd): (_, &[f64; 4]) = (Angles::new(array("z", at.z)?), array("zd", at.zd)?);
        let phid: &mut [f64; 2] = array_mut("phid", phid)?;
        *phid = [0.0; 2];
        for k in 0..4 {
            let sign = if k < 2 { L[k] } else { -L[k] };
            phid[0] -= sign * a.sin[k] * zd[k];
            phid[1] += sign * a.cos[k] * zd[k];
        }
        Ok(())
    }

    #[inline(never)]
    fn constraint_accelerations(
        &self,
        at: Motion<'_, f64>,
        _: &mut [f64],
        phidd: &mut [f64],
    ) -> Result<(), EvalError> {
        let a = Angles::new(array("z", at.z)?);
        let (zd, zdd): (&[f64; 4], &[f64; 4]) = (array("zd", at.zd)?, array("zdd", at.zdd)?);
        let phidd: &mut [f64; 2] = array_mut("phidd", phidd)?;
        *phidd = [0.0; 2];
        for k in 0..4 {
            let sign = if k < 2 { L[k] } else { -L[k] };
            phidd[0] -= sign * (a.sin[k] * zdd[k] + a.cos[k] * zd[k] * zd[k]);
            phidd[1] += sign * (a.cos[k] * zdd[k] - a.sin[k] * zd[k] * zd[k]);
        }
        Ok(())
    }

    /// Factors: the inverses of both blocks of W (8), Φ_z (8), X = W⁻¹ Φ_zᵀ (8), the inverse of Φ_z X + E (4).
    #[inline(never)]
    fn factor(&self, matrix: &[f64], _: &mut [f64], factors: &mut [f64]) -> Result<(), EvalError> {
        let m: &[f64; 18] = array("matrix", matrix)?;
        let f: &mut [f64; 28] = array_mut("factors", factors)?;
        for block in 0..2 {
            let o = 4 * block;
            let determinant = m[o] * m[o + 3] - m[o + 1] * m[o + 2];
            if determinant == 0.0 || !determinant.is_finite() {
                return Err(EvalError::SingularLeading { quantity: Quantity::Coordinate, index: 2 * block });
            }
            let inverse = 1.0 / determinant;
            f[o] = m[o + 3] * inverse;
            f[o + 1] = -m[o + 1] * inverse;
            f[o + 2] = -m[o + 2] * inverse;
            f[o + 3] = m[o] * inverse;
        }
        for k in 0..2 {
            for j in 0..4 {
                f[8 + 4 * k + j] = m[8 + 4 * k + j];
            }
            for block in 0..2 {
                let (o, c) = (4 * block, 8 + 4 * k + 2 * block);
                f[16 + 4 * k + 2 * block] = f[o] * m[c] + f[o + 1] * m[c + 1];
                f[17 + 4 * k + 2 * block] = f[o + 2] * m[c] + f[o + 3] * m[c + 1];
            }
        }
        let mut s = [0.0; 4];
        for k in 0..2 {
            for l in 0..2 {
                let product = |j: usize| f[8 + 4 * k + j] * f[16 + 4 * l + j];
                s[2 * k + l] = product(0) + product(1) + product(2) + product(3);
            }
            s[3 * k] += m[16 + k];
        }
        let determinant = s[0] * s[3] - s[1] * s[2];
        if determinant == 0.0 || !determinant.is_finite() {
            return Err(EvalError::SingularLeading { quantity: Quantity::Holonomic, index: 0 });
        }
        let inverse = if self.broken { -3.0 } else { 1.0 } / determinant;
        (f[24], f[25], f[26], f[27]) = (s[3] * inverse, -s[1] * inverse, -s[2] * inverse, s[0] * inverse);
        Ok(())
    }

    #[inline(never)]
    fn solve(&self, factors: &[f64], _: &mut [f64], x: &mut [f64]) -> Result<(), EvalError> {
        let f: &[f64; 28] = array("factors", factors)?;
        let x: &mut [f64; 6] = array_mut("x", x)?;
        let mut u = [0.0; 4];
        for block in 0..2 {
            let (o, i) = (4 * block, 2 * block);
            u[i] = f[o] * x[i] + f[o + 1] * x[i + 1];
            u[i + 1] = f[o + 2] * x[i] + f[o + 3] * x[i + 1];
        }
        let mut b = [-x[4], -x[5]];
        for k in 0..2 {
            for j in 0..4 {
                b[k] += f[8 + 4 * k + j] * u[j];
            }
        }
        let y = [f[24] * b[0] + f[25] * b[1], f[26] * b[0] + f[27] * b[1]];
        for j in 0..4 {
            x[j] = u[j] - f[16 + j] * y[0] - f[20 + j] * y[1];
        }
        (x[4], x[5]) = (y[0], y[1]);
        Ok(())
    }

    fn solve_transposed(&self, factors: &[f64], _: &mut [f64], x: &mut [f64]) -> Result<(), EvalError> {
        let f: &[f64; 28] = array("factors", factors)?;
        let x: &mut [f64; 6] = array_mut("x", x)?;
        // Wᵀ u = c, then y from the transposed Schur complement, then Wᵀ x = c − Φᵀ y.
        let transposed = |c: [f64; 4]| {
            let mut u = [0.0; 4];
            for block in 0..2 {
                let (o, i) = (4 * block, 2 * block);
                u[i] = f[o] * c[i] + f[o + 2] * c[i + 1];
                u[i + 1] = f[o + 1] * c[i] + f[o + 3] * c[i + 1];
            }
            u
        };
        let c = [x[0], x[1], x[2], x[3]];
        let u = transposed(c);
        let mut b = [-x[4], -x[5]];
        for k in 0..2 {
            for j in 0..4 {
                b[k] += f[8 + 4 * k + j] * u[j];
            }
        }
        let y = [f[24] * b[0] + f[26] * b[1], f[25] * b[0] + f[27] * b[1]];
        let mut rest = c;
        for j in 0..4 {
            rest[j] -= f[8 + j] * y[0] + f[12 + j] * y[1];
        }
        let u = transposed(rest);
        x[..4].copy_from_slice(&u);
        (x[4], x[5]) = (y[0], y[1]);
        Ok(())
    }
}
