//! Small mechanisms with known solutions.

use mbs_runtime::Scalar;

use super::lagrangian::Mechanism;

pub(crate) const GRAVITY: f64 = 9.81;

/// A point on a circle: z = (x, y), Φ = (x² + y² − L²)/2, written `COPIES` times.
#[derive(Clone, Copy)]
pub(crate) struct Pendulum<const COPIES: usize> {
    pub(crate) mass: f64,
    pub(crate) length: f64,
}

impl<const COPIES: usize> Mechanism for Pendulum<COPIES> {
    const NQ: usize = 2;
    const HOLONOMIC: usize = COPIES;

    fn kinetic<S: Scalar>(&self, _: &[S], zd: &[S]) -> S {
        S::from_f64(0.5 * self.mass) * (zd[0] * zd[0] + zd[1] * zd[1])
    }
    fn force<S: Scalar>(&self, _: S, _: &[S], _: &[S], _: &[S], q: &mut [S]) {
        q[1] = S::from_f64(-self.mass * GRAVITY);
    }
    fn phi<S: Scalar>(&self, _: S, z: &[S], phi: &mut [S]) {
        let length = S::from_f64(self.length);
        phi.fill(S::from_f64(0.5) * (z[0] * z[0] + z[1] * z[1] - length * length));
    }
    fn names(&self) -> &[&str] {
        &["rod", "second_rod"]
    }
}

/// Angle and rate of the pendulum at `t`, by the classical Runge–Kutta method with steps of 1e−5 or so.
pub(crate) fn pendulum_angle(length: f64, start: [f64; 2], t: f64) -> [f64; 2] {
    let rate = |[angle, omega]: [f64; 2]| [omega, -GRAVITY / length * angle.sin()];
    let steps = (t / 2e-4).ceil().max(1.0) as usize;
    let h = t / steps as f64;
    let mut y = start;
    for _ in 0..steps {
        let move_by = |k: [f64; 2], h: f64| [y[0] + h * k[0], y[1] + h * k[1]];
        let k1 = rate(y);
        let k2 = rate(move_by(k1, 0.5 * h));
        let k3 = rate(move_by(k2, 0.5 * h));
        let k4 = rate(move_by(k3, h));
        for i in 0..2 {
            y[i] += h / 6.0 * (k1[i] + 2.0 * k2[i] + 2.0 * k3[i] + k4[i]);
        }
    }
    y
}

/// x, y, xd, yd, xdd, ydd, λ of the pendulum at angle and rate.
pub(crate) fn pendulum_motion(pendulum: &Pendulum<1>, [angle, omega]: [f64; 2]) -> [f64; 7] {
    let (length, mass) = (pendulum.length, pendulum.mass);
    let (sin, cos) = angle.sin_cos();
    let (x, y) = (length * sin, -length * cos);
    let (xd, yd) = (-y * omega, x * omega);
    let alpha = -GRAVITY / length * sin;
    let (xdd, ydd) = (-y * alpha - x * omega * omega, x * alpha - y * omega * omega);
    // m zdd + λ z = (0, −m g), along z
    let lambda = -mass * (x * xdd + y * (ydd + GRAVITY)) / (length * length);
    [x, y, xd, yd, xdd, ydd, lambda]
}
