//! Mechanisms with parameters of every kind: inertia, force, geometry, start. Their objectives read everything there is.

use mbs_runtime::{Hold, Scalar};

use super::lagrangian::{Instant, Mechanism};
use super::mechanisms::GRAVITY;

/// Terms in positions, rates, accelerations, multipliers, parameters, time and inputs, for any mechanism.
fn objectives<S: Scalar>(rho: &[S], at: Instant<'_, S>, g: &mut [S], w: &mut [S]) {
    let number = S::from_f64;
    let sum = |x: &[S], first: f64| {
        let terms = x.iter().enumerate();
        terms.fold(S::ZERO, |sum, (i, x)| sum + number(1.0 / (first + i as f64)) * *x)
    };
    let (z, zd, zdd) = (sum(at.z, 1.0), sum(at.zd, 1.5), sum(at.zdd, 2.0));
    let (lambda, rho, u) = (sum(at.lambda, 2.5), sum(rho, 3.0), sum(at.u, 1.0));
    g[0] = z * z + (number(0.3) * zd).sin();
    g[1] = (number(0.05) * zdd) * z + number(0.01) * lambda * rho + at.t * zd;
    g[2] = rho * zd * zd + u * z;
    w[0] = rho * z * z;
    w[1] = S::ZERO;
    w[2] = number(0.1) * zdd * zd + number(0.01) * lambda;
}

/// What the second row of a pendulum says.
#[derive(Clone, Copy)]
pub(crate) enum Second {
    /// The first, times a parameter: both agree everywhere.
    Multiple,
    /// |z| = L: both agree on the circle.
    Norm,
    /// |z| is a parameter of its own.
    Contradiction,
}

/// A point on a circle with air resistance: z = (x, y), with one row or two.
#[derive(Clone, Copy)]
pub(crate) struct Pendulum<const COPIES: usize> {
    pub(crate) second: Second,
    pub(crate) held: [bool; 2],
    /// Mass, length, resistance, angle and rate at the start, the second row's own.
    pub(crate) rho: [f64; 6],
}

impl<const COPIES: usize> Pendulum<COPIES> {
    pub(crate) const DEFAULT: Self =
        Self { second: Second::Multiple, held: [true, false], rho: [2.0, 1.3, 0.4, 1.1, -0.7, 1.3] };
}

impl<const COPIES: usize> Mechanism for Pendulum<COPIES> {
    const NQ: usize = 2;
    const HOLONOMIC: usize = COPIES;
    const PARAMETERS: usize = 6;
    const OBJECTIVES: usize = 3;

    fn parameters(&self) -> &[f64] {
        &self.rho
    }
    fn guesses<S: Scalar>(&self, rho: &[S], z: &mut [S], zd: &mut [S]) {
        // What is not held is a poor guess.
        let (sin, cos) = rho[3].sin_cos();
        z[0] = rho[1] * sin;
        z[1] = -rho[1] * cos * S::from_f64(0.9);
        zd[0] = rho[1] * cos * rho[4];
        zd[1] = rho[1] * sin * rho[4] + S::from_f64(0.1);
    }
    fn kinetic<S: Scalar>(&self, rho: &[S], _: &[S], zd: &[S]) -> S {
        S::from_f64(0.5) * rho[0] * (zd[0] * zd[0] + zd[1] * zd[1])
    }
    fn force<S: Scalar>(&self, rho: &[S], _: S, _: &[S], zd: &[S], _: &[S], q: &mut [S]) {
        let speed = (zd[0] * zd[0] + zd[1] * zd[1] + S::from_f64(0.01)).sqrt();
        q[0] = -rho[2] * speed * zd[0];
        q[1] = -rho[2] * speed * zd[1] - rho[0] * S::from_f64(GRAVITY);
    }
    fn phi<S: Scalar>(&self, rho: &[S], _: S, z: &[S], phi: &mut [S]) {
        let square = z[0] * z[0] + z[1] * z[1];
        phi[0] = S::from_f64(0.5) * (square - rho[1] * rho[1]);
        if COPIES > 1 {
            phi[1] = match self.second {
                Second::Multiple => rho[5] * phi[0],
                Second::Norm => square.sqrt() - rho[1],
                Second::Contradiction => square.sqrt() - rho[5],
            };
        }
    }
    fn objectives<S: Scalar>(&self, rho: &[S], at: Instant<'_, S>, g: &mut [S], w: &mut [S]) {
        objectives(rho, at, g, w);
    }
    fn held(&self) -> &[bool] {
        &self.held
    }
    fn names(&self) -> &[&str] {
        &["rod", "second_rod"]
    }
}

/// A four-bar linkage by its two moving points: z = (x1, y1, x2, y2), with a spring and a damper between the points'
/// opposite joints.
#[derive(Clone, Copy)]
pub(crate) struct FourBar {
    pub(crate) held: [bool; 4],
    /// Lengths of crank, coupler, rocker, ground; stiffness, natural length, damping; angle and rate of the crank.
    pub(crate) rho: [f64; 9],
}

impl FourBar {
    pub(crate) const DEFAULT: Self =
        Self { held: [true, true, false, false], rho: [1.0, 2.1, 1.6, 1.8, 40.0, 1.2, 1.5, 0.8, 1.5] };
}

impl Mechanism for FourBar {
    const NQ: usize = 4;
    const HOLONOMIC: usize = 3;
    const PARAMETERS: usize = 9;
    const OBJECTIVES: usize = 3;

    fn parameters(&self) -> &[f64] {
        &self.rho
    }
    fn guesses<S: Scalar>(&self, rho: &[S], z: &mut [S], zd: &mut [S]) {
        let (sin, cos) = rho[7].sin_cos();
        (z[0], z[1]) = (rho[0] * cos, rho[0] * sin);
        (zd[0], zd[1]) = (-rho[0] * sin * rho[8], rho[0] * cos * rho[8]);
        (z[2], z[3]) = (rho[3] + S::from_f64(0.6), rho[2]);
        (zd[2], zd[3]) = (S::from_f64(0.2), -rho[8]);
    }
    fn kinetic<S: Scalar>(&self, rho: &[S], _: &[S], zd: &[S]) -> S {
        // Bars of 1.5 kg/m: m/6 (a² + a·b + b²)
        let bar = |length: S, a: [S; 2], b: [S; 2]| {
            let dot = |a: [S; 2], b: [S; 2]| a[0] * b[0] + a[1] * b[1];
            S::from_f64(0.25) * length * (dot(a, a) + dot(a, b) + dot(b, b))
        };
        let (a, b, ground) = ([zd[0], zd[1]], [zd[2], zd[3]], [S::ZERO; 2]);
        bar(rho[0], ground, a) + bar(rho[1], a, b) + bar(rho[2], b, ground)
    }
    fn force<S: Scalar>(&self, rho: &[S], _: S, z: &[S], zd: &[S], _: &[S], q: &mut [S]) {
        let weight = S::from_f64(-0.75 * GRAVITY);
        q[1] = weight * (rho[0] + rho[1]);
        q[3] = weight * (rho[1] + rho[2]);
        // From the origin to the second point.
        let length = (z[2] * z[2] + z[3] * z[3]).sqrt();
        let rate = (z[2] * zd[2] + z[3] * zd[3]) / length;
        let pull = (rho[4] * (length - rho[5]) + rho[6] * rate) / length;
        q[2] = -pull * z[2];
        q[3] -= pull * z[3];
    }
    fn phi<S: Scalar>(&self, rho: &[S], _: S, z: &[S], phi: &mut [S]) {
        let row = |x: S, y: S, length: S| S::from_f64(0.5) * (x * x + y * y - length * length);
        phi[0] = row(z[0], z[1], rho[0]);
        phi[1] = row(z[2] - z[0], z[3] - z[1], rho[1]);
        phi[2] = row(z[2] - rho[3], z[3], rho[2]);
    }
    fn objectives<S: Scalar>(&self, rho: &[S], at: Instant<'_, S>, g: &mut [S], w: &mut [S]) {
        objectives(rho, at, g, w);
    }
    fn held(&self) -> &[bool] {
        &self.held
    }
}

/// Two points, one of which pursues the other: see [`super::mechanisms::Pursuit`]. θ has no mass.
#[derive(Clone, Copy)]
pub(crate) struct Pursuit {
    pub(crate) held: [bool; 5],
    /// Masses, force, how far beside the other point the first one aims, speed at the start.
    pub(crate) rho: [f64; 5],
}

impl Pursuit {
    pub(crate) const DEFAULT: Self =
        Self { held: [true, false, true, true, false], rho: [5.0, 7.0, 5.0, 0.2, 1.0] };
}

impl Mechanism for Pursuit {
    const NQ: usize = 5;
    const HOLONOMIC: usize = 1;
    const NONHOLONOMIC: usize = 1;
    const PARAMETERS: usize = 5;
    const OBJECTIVES: usize = 3;

    fn parameters(&self) -> &[f64] {
        &self.rho
    }
    fn guesses<S: Scalar>(&self, rho: &[S], z: &mut [S], zd: &mut [S]) {
        for (z, value) in z.iter_mut().zip([1.0, 1.0, 3.0, 1.2, 0.05]) {
            *z = S::from_f64(value);
        }
        (zd[0], zd[1], zd[2]) = (rho[4], S::from_f64(0.1), S::from_f64(0.9));
    }
    fn kinetic<S: Scalar>(&self, rho: &[S], _: &[S], zd: &[S]) -> S {
        let square = |i: usize| zd[i] * zd[i];
        S::from_f64(0.5) * (rho[0] * (square(0) + square(1)) + rho[1] * (square(2) + square(3)))
    }
    fn force<S: Scalar>(&self, rho: &[S], t: S, _: &[S], _: &[S], _: &[S], q: &mut [S]) {
        q[3] = rho[2] * t.cos();
    }
    fn phi<S: Scalar>(&self, _: &[S], _: S, z: &[S], phi: &mut [S]) {
        phi[0] = z[3] - z[1] - (z[2] - z[0]) * z[4].tan();
    }
    fn psi<S: Scalar>(&self, rho: &[S], t: S, z: &[S], zd: &[S], psi: &mut [S]) {
        let lead = S::from_f64(0.1) * t * rho[3];
        psi[0] = (z[3] - z[1] + rho[3]) * zd[0] - (z[2] - z[0]) * zd[1] + lead;
    }
    fn objectives<S: Scalar>(&self, rho: &[S], at: Instant<'_, S>, g: &mut [S], w: &mut [S]) {
        objectives(rho, at, g, w);
    }
    fn held(&self) -> &[bool] {
        &self.held
    }
    fn names(&self) -> &[&str] {
        &["sight", "pursuit"]
    }
}

/// A heavy top by Euler parameters of any length: inertias, weight times lever, resistance, rate and tilt at the start.
#[derive(Clone, Copy)]
pub(crate) struct Top {
    pub(crate) rho: [f64; 6],
}

impl Top {
    pub(crate) const DEFAULT: Self = Self { rho: [1.0, 2.5, 3.0, 0.3, 1.7, 0.4] };

    /// ω in the body, by pd.
    pub(crate) fn omega<S: Scalar>(p: &[S], pd: &[S]) -> [S; 3] {
        let norm = p[0] * p[0] + p[1] * p[1] + p[2] * p[2] + p[3] * p[3];
        let factor = S::from_f64(2.0) / norm;
        [
            factor * (p[0] * pd[1] - p[1] * pd[0] + p[3] * pd[2] - p[2] * pd[3]),
            factor * (p[0] * pd[2] - p[2] * pd[0] + p[1] * pd[3] - p[3] * pd[1]),
            factor * (p[0] * pd[3] - p[3] * pd[0] + p[2] * pd[1] - p[1] * pd[2]),
        ]
    }
}

/// Objectives of what turns: lengths of Euler parameters mean nothing.
fn turning_objectives<S: Scalar>(rho: &[S], at: Instant<'_, S>, g: &mut [S], w: &mut [S]) {
    let norm = at.z.iter().fold(S::ZERO, |sum, p| sum + *p * *p).sqrt();
    let z: Vec<S> = at.z.iter().map(|p| *p / norm).collect();
    let (zd, zdd) = (Top::omega(at.z, at.zd), Top::omega(at.z, at.zdd));
    objectives(rho, Instant { z: &z, zd: &zd, zdd: &zdd, ..at }, g, w);
}

impl Mechanism for Top {
    const NQ: usize = 4;
    const HOLONOMIC: usize = 0;
    const NORMALISATION: usize = 1;
    const PARAMETERS: usize = 6;
    const OBJECTIVES: usize = 3;

    fn parameters(&self) -> &[f64] {
        &self.rho
    }
    fn guesses<S: Scalar>(&self, rho: &[S], z: &mut [S], v: &mut [S]) {
        // Of length 2 (…), which a start normalises.
        let (sin, cos) = (S::from_f64(0.5) * rho[5]).sin_cos();
        z[0] = S::from_f64(2.0) * cos;
        z[1] = S::from_f64(2.0) * sin;
        z[2] = S::from_f64(0.2) * rho[4];
        v[0] = S::from_f64(0.8);
        v[1] = S::from_f64(-0.3) * rho[0];
        v[2] = rho[4];
    }
    fn kinetic<S: Scalar>(&self, rho: &[S], p: &[S], pd: &[S]) -> S {
        let [a, b, c] = Self::omega(p, pd);
        S::from_f64(0.5) * (rho[0] * (a * a + b * b) + rho[1] * c * c)
    }
    fn force<S: Scalar>(&self, rho: &[S], _: S, p: &[S], pd: &[S], _: &[S], q: &mut [S]) {
        // V = weight × height of the body's third axis, (e0² − e1² − e2² + e3²)/|p|²; and resistance −c |p|² pd, which is a
        // torque in proportion to ω.
        let norm = p[0] * p[0] + p[1] * p[1] + p[2] * p[2] + p[3] * p[3];
        let height = (p[0] * p[0] - p[1] * p[1] - p[2] * p[2] + p[3] * p[3]) / norm;
        let two = S::from_f64(2.0);
        let radial = p.iter().zip(pd).fold(S::ZERO, |sum, (p, pd)| sum + *p * *pd) / norm;
        for i in 0..4 {
            let sign = if i == 1 || i == 2 { -S::ONE } else { S::ONE };
            q[i] = -rho[2] * (two * p[i] / norm) * (sign - height);
            q[i] -= rho[3] * (pd[i] - radial * p[i]) / norm;
        }
    }
    fn phi<S: Scalar>(&self, _: &[S], _: S, p: &[S], phi: &mut [S]) {
        let norm = p[0] * p[0] + p[1] * p[1] + p[2] * p[2] + p[3] * p[3];
        phi[0] = S::from_f64(0.5) * (norm - S::ONE);
    }
    fn objectives<S: Scalar>(&self, rho: &[S], at: Instant<'_, S>, g: &mut [S], w: &mut [S]) {
        turning_objectives(rho, at, g, w);
    }
    fn euler_parameters(&self) -> &[usize] {
        &[0]
    }
}

/// The top with its axis guided: its height is prescribed.
#[derive(Clone, Copy)]
pub(crate) struct GuidedTop {
    pub(crate) top: Top,
}

impl GuidedTop {
    pub(crate) const DEFAULT: Self = Self { top: Top::DEFAULT };
}

impl Mechanism for GuidedTop {
    const NQ: usize = 4;
    const HOLONOMIC: usize = 1;
    const NORMALISATION: usize = 1;
    const PARAMETERS: usize = 6;
    const OBJECTIVES: usize = 3;

    fn parameters(&self) -> &[f64] {
        &self.top.rho
    }
    fn guesses<S: Scalar>(&self, rho: &[S], z: &mut [S], v: &mut [S]) {
        self.top.guesses(rho, z, v);
    }
    fn kinetic<S: Scalar>(&self, rho: &[S], p: &[S], pd: &[S]) -> S {
        self.top.kinetic(rho, p, pd)
    }
    fn force<S: Scalar>(&self, rho: &[S], t: S, p: &[S], pd: &[S], u: &[S], q: &mut [S]) {
        self.top.force(rho, t, p, pd, u, q);
    }
    fn phi<S: Scalar>(&self, rho: &[S], t: S, p: &[S], phi: &mut [S]) {
        let norm = p[0] * p[0] + p[1] * p[1] + p[2] * p[2] + p[3] * p[3];
        let height = (p[0] * p[0] - p[1] * p[1] - p[2] * p[2] + p[3] * p[3]) / norm;
        phi[0] = height - S::from_f64(0.7) - S::from_f64(0.1) * (rho[3] * S::from_f64(4.0) * t).sin();
        self.top.phi(rho, t, p, &mut phi[1..]);
    }
    fn objectives<S: Scalar>(&self, rho: &[S], at: Instant<'_, S>, g: &mut [S], w: &mut [S]) {
        turning_objectives(rho, at, g, w);
    }
    fn euler_parameters(&self) -> &[usize] {
        &[0]
    }
}

/// A cart that is driven and pushed by an input, with a pendulum on it: z = (x, φ), Φ = x − a sin ωt.
#[derive(Clone, Copy)]
pub(crate) struct Cart {
    pub(crate) hold: [Hold; 1],
    /// Amplitude, frequency, length of the pendulum, its mass, how much of the input acts on it.
    pub(crate) rho: [f64; 5],
}

impl Cart {
    pub(crate) const DEFAULT: Self = Self { hold: [Hold::Linear], rho: [0.4, 3.0, 0.8, 1.5, 0.7] };
}

impl Mechanism for Cart {
    const NQ: usize = 2;
    const HOLONOMIC: usize = 1;
    const NU: usize = 1;
    const PARAMETERS: usize = 5;
    const OBJECTIVES: usize = 3;

    fn parameters(&self) -> &[f64] {
        &self.rho
    }
    fn guesses<S: Scalar>(&self, rho: &[S], z: &mut [S], zd: &mut [S]) {
        z[1] = S::from_f64(0.3) * rho[2];
        zd[1] = rho[0];
    }
    fn kinetic<S: Scalar>(&self, rho: &[S], z: &[S], zd: &[S]) -> S {
        let (sin, cos) = z[1].sin_cos();
        let (vx, vy) = (zd[0] + rho[2] * cos * zd[1], rho[2] * sin * zd[1]);
        zd[0] * zd[0] + S::from_f64(0.5) * rho[3] * (vx * vx + vy * vy)
    }
    fn force<S: Scalar>(&self, rho: &[S], _: S, z: &[S], _: &[S], u: &[S], q: &mut [S]) {
        q[0] = u[0];
        q[1] = -rho[3] * S::from_f64(GRAVITY) * rho[2] * z[1].sin() + rho[4] * u[0];
    }
    fn phi<S: Scalar>(&self, rho: &[S], t: S, z: &[S], phi: &mut [S]) {
        phi[0] = z[0] - rho[0] * (rho[1] * t).sin();
    }
    fn objectives<S: Scalar>(&self, rho: &[S], at: Instant<'_, S>, g: &mut [S], w: &mut [S]) {
        objectives(rho, at, g, w);
    }
    fn holds(&self) -> &[Hold] {
        &self.hold
    }
}
