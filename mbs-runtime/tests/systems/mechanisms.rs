//! Small mechanisms with known solutions.

use mbs_runtime::Scalar;

use super::lagrangian::Mechanism;

pub(crate) const GRAVITY: f64 = 9.81;

/// A point on a circle: z = (x, y), first row (x² + y² − L²)/2, second row, if there are two, |z| − L.
#[derive(Clone, Copy)]
pub(crate) struct Pendulum<const COPIES: usize> {
    pub(crate) mass: f64,
    pub(crate) length: f64,
}

impl<const COPIES: usize> Mechanism for Pendulum<COPIES> {
    const NQ: usize = 2;
    const HOLONOMIC: usize = COPIES;

    fn kinetic<S: Scalar>(&self, _rho: &[S], _: &[S], zd: &[S]) -> S {
        S::from_f64(0.5 * self.mass) * (zd[0] * zd[0] + zd[1] * zd[1])
    }
    fn force<S: Scalar>(&self, _rho: &[S], _: S, _: &[S], _: &[S], _: &[S], q: &mut [S]) {
        q[1] = S::from_f64(-self.mass * GRAVITY);
    }
    fn phi<S: Scalar>(&self, _rho: &[S], _: S, z: &[S], phi: &mut [S]) {
        let length = S::from_f64(self.length);
        let square = z[0] * z[0] + z[1] * z[1];
        phi[0] = S::from_f64(0.5) * (square - length * length);
        if COPIES > 1 {
            phi[1] = square.sqrt() - length;
        }
    }
    fn names(&self) -> &[&str] {
        &["rod", "second_rod"]
    }
}

/// Solution at `t` of y' = f(t, y) by the classical Runge–Kutta method with steps of about `h`.
pub(crate) fn reference<const N: usize>(
    f: impl Fn(f64, [f64; N]) -> [f64; N],
    start: [f64; N],
    t: f64,
    h: f64,
) -> [f64; N] {
    let steps = (t / h).ceil().max(1.0);
    let h = t / steps;
    let mut y = start;
    for step in 0..steps as usize {
        let t = step as f64 * h;
        let moved = |k: [f64; N], h: f64| std::array::from_fn(|i| y[i] + h * k[i]);
        let k1 = f(t, y);
        let k2 = f(t + 0.5 * h, moved(k1, 0.5 * h));
        let k3 = f(t + 0.5 * h, moved(k2, 0.5 * h));
        let k4 = f(t + h, moved(k3, h));
        y = std::array::from_fn(|i| y[i] + h / 6.0 * (k1[i] + 2.0 * k2[i] + 2.0 * k3[i] + k4[i]));
    }
    y
}

/// Angle and rate of the pendulum at `t`.
pub(crate) fn pendulum_angle(length: f64, start: [f64; 2], t: f64) -> [f64; 2] {
    reference(|_, [angle, omega]| [omega, -GRAVITY / length * angle.sin()], start, t, 2e-4)
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

/// Two points [Dopico2018, 4.2]: z = (x_A, y_A, x_B, y_B, θ). A moves towards B, along the angle θ, which has no mass.
#[derive(Clone, Copy)]
pub(crate) struct Pursuit {
    pub(crate) force: f64,
}

impl Pursuit {
    /// z and zd.
    pub(crate) fn start() -> ([f64; 5], [f64; 5]) {
        ([1.0, 1.0, 3.0, 1.0, 0.0], [1.0, 0.0, 1.0, 0.0, 0.0])
    }

    /// z and zd at `t`: B is free, A has unit speed.
    pub(crate) fn exact(&self, t: f64) -> ([f64; 5], [f64; 5]) {
        let a = self.force / 7.0;
        let b = |t: f64| [3.0 + t, 1.0 + 0.5 * a * t * t];
        let direction = |t: f64, [x, y]: [f64; 2]| {
            let [dx, dy] = [b(t)[0] - x, b(t)[1] - y];
            let length = dx.hypot(dy);
            [dx / length, dy / length]
        };
        let [x, y] = reference(direction, [1.0, 1.0], t, 1e-3);
        let [xd, yd] = direction(t, [x, y]);
        let [xb, yb] = b(t);
        let (dx, dy) = (xb - x, yb - y);
        let rate = (dx * (a * t - yd) - dy * (1.0 - xd)) / (dx * dx + dy * dy);
        ([x, y, xb, yb, dy.atan2(dx)], [xd, yd, 1.0, a * t, rate])
    }
}

impl Mechanism for Pursuit {
    const NQ: usize = 5;
    const HOLONOMIC: usize = 1;
    const NONHOLONOMIC: usize = 1;

    fn kinetic<S: Scalar>(&self, _rho: &[S], _: &[S], zd: &[S]) -> S {
        let square = |i: usize| zd[i] * zd[i];
        S::from_f64(2.5) * (square(0) + square(1)) + S::from_f64(3.5) * (square(2) + square(3))
    }
    fn force<S: Scalar>(&self, _rho: &[S], _: S, _: &[S], _: &[S], _: &[S], q: &mut [S]) {
        q[3] = S::from_f64(self.force);
    }
    fn phi<S: Scalar>(&self, _rho: &[S], _: S, z: &[S], phi: &mut [S]) {
        phi[0] = z[3] - z[1] - (z[2] - z[0]) * z[4].tan();
    }
    fn psi<S: Scalar>(&self, _rho: &[S], _: S, z: &[S], zd: &[S], psi: &mut [S]) {
        psi[0] = (z[3] - z[1]) * zd[0] - (z[2] - z[0]) * zd[1];
    }
    fn names(&self) -> &[&str] {
        &["sight", "pursuit"]
    }
}

/// A cart that is driven, with a pendulum on it: z = (x, φ), Φ = x − A sin ωt.
#[derive(Clone, Copy)]
pub(crate) struct DrivenCart;

impl DrivenCart {
    const AMPLITUDE: f64 = 0.4;
    const FREQUENCY: f64 = 3.0;
    const LENGTH: f64 = 0.8;
    const CART: f64 = 2.0;
    const BOB: f64 = 1.5;

    /// x, φ, their rates, their accelerations, λ at `t` from φ = 0.3 at rest relative to the cart.
    pub(crate) fn exact(t: f64) -> [f64; 7] {
        let (a, w, l) = (Self::AMPLITUDE, Self::FREQUENCY, Self::LENGTH);
        let drive = |t: f64| [a * (w * t).sin(), a * w * (w * t).cos(), -a * w * w * (w * t).sin()];
        let angular = |t: f64, angle: f64| -(GRAVITY * angle.sin() + drive(t)[2] * angle.cos()) / l;
        let [angle, rate] = reference(|t, [angle, rate]| [rate, angular(t, angle)], [0.3, 0.0], t, 2e-4);
        let ([x, xd, xdd], angledd) = (drive(t), angular(t, angle));
        // (m + M) xdd + m l (φdd cos φ − φd² sin φ) + λ = 0
        let along = angledd * angle.cos() - rate * rate * angle.sin();
        let lambda = -(Self::BOB + Self::CART) * xdd - Self::BOB * l * along;
        [x, angle, xd, rate, xdd, angledd, lambda]
    }
}

impl Mechanism for DrivenCart {
    const NQ: usize = 2;
    const HOLONOMIC: usize = 1;

    fn kinetic<S: Scalar>(&self, _rho: &[S], z: &[S], zd: &[S]) -> S {
        let number = S::from_f64;
        let l = number(Self::LENGTH);
        let (sin, cos) = z[1].sin_cos();
        let (vx, vy) = (zd[0] + l * cos * zd[1], l * sin * zd[1]);
        number(0.5 * Self::CART) * zd[0] * zd[0] + number(0.5 * Self::BOB) * (vx * vx + vy * vy)
    }
    fn force<S: Scalar>(&self, _rho: &[S], _: S, z: &[S], _: &[S], _: &[S], q: &mut [S]) {
        q[1] = S::from_f64(-Self::BOB * GRAVITY * Self::LENGTH) * z[1].sin();
    }
    fn phi<S: Scalar>(&self, _rho: &[S], t: S, z: &[S], phi: &mut [S]) {
        phi[0] = z[0] - S::from_f64(Self::AMPLITUDE) * (S::from_f64(Self::FREQUENCY) * t).sin();
    }
}

/// A symmetric body free of torque, by Euler parameters of any length with their normalisation row.
#[derive(Clone, Copy)]
pub(crate) struct Body {
    pub(crate) across: f64,
    pub(crate) along: f64,
}

impl Mechanism for Body {
    const NQ: usize = 4;
    const HOLONOMIC: usize = 0;
    const NORMALISATION: usize = 1;

    fn kinetic<S: Scalar>(&self, _rho: &[S], p: &[S], pd: &[S]) -> S {
        let norm = p[0] * p[0] + p[1] * p[1] + p[2] * p[2] + p[3] * p[3];
        let factor = S::from_f64(2.0) / norm;
        let a = factor * (p[0] * pd[1] - p[1] * pd[0] + p[3] * pd[2] - p[2] * pd[3]);
        let b = factor * (p[0] * pd[2] - p[2] * pd[0] + p[1] * pd[3] - p[3] * pd[1]);
        let c = factor * (p[0] * pd[3] - p[3] * pd[0] + p[2] * pd[1] - p[1] * pd[2]);
        S::from_f64(0.5 * self.across) * (a * a + b * b) + S::from_f64(0.5 * self.along) * c * c
    }
    fn phi<S: Scalar>(&self, _rho: &[S], _: S, p: &[S], phi: &mut [S]) {
        let norm = p[0] * p[0] + p[1] * p[1] + p[2] * p[2] + p[3] * p[3];
        phi[0] = S::from_f64(0.5) * (norm - S::ONE);
    }
    fn euler_parameters(&self) -> &[usize] {
        &[0]
    }
}

/// A mass on a spring that is measured by a massless length: z = (x, s), Φ = s − x³/3 − x, force −k s on s.
#[derive(Clone, Copy)]
pub(crate) struct MeasuredSpring;

impl MeasuredSpring {
    const MASS: f64 = 0.7;
    const STIFFNESS: f64 = 5.0;

    /// x, xd and λ at `t` from x = 1 at rest.
    pub(crate) fn exact(t: f64) -> [f64; 3] {
        let force = |x: f64| -Self::STIFFNESS * (x * x * x / 3.0 + x) * (x * x + 1.0);
        let [x, xd] = reference(|_, [x, xd]| [xd, force(x) / Self::MASS], [1.0, 0.0], t, 1e-4);
        // λ = −k s
        [x, xd, -Self::STIFFNESS * (x * x * x / 3.0 + x)]
    }
}

impl Mechanism for MeasuredSpring {
    const NQ: usize = 2;
    const HOLONOMIC: usize = 1;

    fn kinetic<S: Scalar>(&self, _rho: &[S], _: &[S], zd: &[S]) -> S {
        S::from_f64(0.5 * Self::MASS) * zd[0] * zd[0]
    }
    fn force<S: Scalar>(&self, _rho: &[S], _: S, z: &[S], _: &[S], _: &[S], q: &mut [S]) {
        q[1] = S::from_f64(-Self::STIFFNESS) * z[1];
    }
    fn phi<S: Scalar>(&self, _rho: &[S], _: S, z: &[S], phi: &mut [S]) {
        phi[0] = z[1] - z[0] * z[0] * z[0] / S::from_f64(3.0) - z[0];
    }
}

/// A slider-crank whose crank is driven: z = (θ, x).
#[derive(Clone, Copy)]
pub(crate) struct SliderCrank {
    pub(crate) driven: bool,
}

impl SliderCrank {
    pub(crate) const CRANK: f64 = 0.3;
    pub(crate) const ROD: f64 = 0.9;

    /// θ = 0.5 + 2t + t²/2, and x in front of the crank, with their rates and accelerations.
    pub(crate) fn exact(t: f64) -> [[f64; 2]; 3] {
        let (a, b) = (Self::CRANK, Self::ROD);
        let (theta, rate, acceleration) = (0.5 + 2.0 * t + 0.5 * t * t, 2.0 + t, 1.0);
        let (sin, cos) = theta.sin_cos();
        let root = (b * b - a * a * sin * sin).sqrt();
        let slope = -a * sin - a * a * sin * cos / root;
        let cosine = a * a * (cos * cos - sin * sin);
        let curvature = -a * cos - cosine / root - (a * a * sin * cos).powi(2) / root.powi(3);
        [
            [theta, a * cos + root],
            [rate, slope * rate],
            [acceleration, slope * acceleration + curvature * rate * rate],
        ]
    }
}

impl Mechanism for SliderCrank {
    const NQ: usize = 2;
    const HOLONOMIC: usize = 2;

    fn kinetic<S: Scalar>(&self, _rho: &[S], _: &[S], zd: &[S]) -> S {
        S::from_f64(0.5) * (zd[0] * zd[0] + zd[1] * zd[1])
    }
    fn phi<S: Scalar>(&self, _rho: &[S], t: S, z: &[S], phi: &mut [S]) {
        let number = S::from_f64;
        let (a, b) = (number(Self::CRANK), number(Self::ROD));
        let (sin, cos) = z[0].sin_cos();
        let along = z[1] - a * cos;
        let rod = number(0.5) * (along * along + a * a * sin * sin - b * b);
        phi[0] = rod;
        // Without the drive the same row again.
        phi[1] = if self.driven { z[0] - number(0.5) - number(2.0) * t - number(0.5) * t * t } else { rod };
    }
    fn names(&self) -> &[&str] {
        &["rod", "drive"]
    }
}

/// x driven twice: x = 0, and x = c t^p.
#[derive(Clone, Copy)]
pub(crate) struct Contradiction {
    pub(crate) power: i32,
}

impl Mechanism for Contradiction {
    const NQ: usize = 1;
    const HOLONOMIC: usize = 2;

    fn kinetic<S: Scalar>(&self, _rho: &[S], _: &[S], zd: &[S]) -> S {
        zd[0] * zd[0]
    }
    fn phi<S: Scalar>(&self, _rho: &[S], t: S, z: &[S], phi: &mut [S]) {
        let power = (0..self.power).fold(S::ONE, |power, _| power * t);
        phi[0] = z[0];
        phi[1] = z[0] - power;
    }
    fn names(&self) -> &[&str] {
        &["wall", "motor"]
    }
}

/// A mass, and a variable that nothing determines.
#[derive(Clone, Copy)]
pub(crate) struct Forgotten;

impl Mechanism for Forgotten {
    const NQ: usize = 2;
    const HOLONOMIC: usize = 0;

    fn kinetic<S: Scalar>(&self, _rho: &[S], _: &[S], zd: &[S]) -> S {
        zd[0] * zd[0]
    }
}

/// A mass pushed by an input: x'' = u.
#[derive(Clone, Copy)]
pub(crate) struct Pushed {
    pub(crate) hold: [mbs_runtime::Hold; 1],
}

impl Mechanism for Pushed {
    const NQ: usize = 1;
    const HOLONOMIC: usize = 0;
    const NU: usize = 1;

    fn kinetic<S: Scalar>(&self, _rho: &[S], _: &[S], zd: &[S]) -> S {
        S::from_f64(0.5) * zd[0] * zd[0]
    }
    fn force<S: Scalar>(&self, _rho: &[S], _: S, _: &[S], _: &[S], u: &[S], q: &mut [S]) {
        q[0] = u[0];
    }
    fn holds(&self) -> &[mbs_runtime::Hold] {
        &self.hold
    }
}

/// Two windows of parallelograms by the positions of their three upper joints (IFToMM benchmark A02): five bars of 1 kg and
/// 1 m. Singular where all bars lie flat.
#[derive(Clone, Copy)]
pub(crate) struct Windows;

impl Windows {
    /// Upper joints above the lower ones, moving with 1 m/s.
    pub(crate) fn start() -> ([f64; 6], [f64; 6]) {
        ([0.0, 1.0, 1.0, 1.0, 2.0, 1.0], [1.0, 0.0, 1.0, 0.0, 1.0, 0.0])
    }

    /// The bars: two points of z each, or the ground at this x.
    fn bars<S: Scalar>(z: &[S]) -> [[S; 4]; 5] {
        let number = S::from_f64;
        std::array::from_fn(|k| match k {
            0..3 => [number(k as f64), S::ZERO, z[2 * k], z[2 * k + 1]],
            _ => std::array::from_fn(|i| z[2 * (k - 3) + i]),
        })
    }

    /// Angle of the bars from the x axis and its rate at `t`, by the one equation that is left of a parallelogram.
    pub(crate) fn angle(t: f64) -> [f64; 2] {
        let factor = -GRAVITY * (1.5 + 2.0) / (1.0 + 2.0);
        let start = [std::f64::consts::FRAC_PI_2, -1.0];
        reference(|_, [angle, rate]| [rate, factor * angle.cos()], start, t, 2e-4)
    }
}

impl Mechanism for Windows {
    const NQ: usize = 6;
    const HOLONOMIC: usize = 5;

    fn kinetic<S: Scalar>(&self, _rho: &[S], _: &[S], zd: &[S]) -> S {
        // m/6 (a² + a·b + b²), with ground at rest
        let mut bars = Self::bars(zd);
        for bar in &mut bars[..3] {
            bar[0] = S::ZERO;
        }
        let sixth = S::from_f64(1.0 / 6.0);
        bars.iter().fold(S::ZERO, |sum, [a, b, c, d]| {
            sum + sixth * (*a * *a + *b * *b + *c * *c + *d * *d + *a * *c + *b * *d)
        })
    }
    fn force<S: Scalar>(&self, _rho: &[S], _: S, _: &[S], _: &[S], _: &[S], q: &mut [S]) {
        // Half of every bar that ends here.
        for (i, bars) in [2.0, 3.0, 2.0].into_iter().enumerate() {
            q[2 * i + 1] = S::from_f64(-0.5 * bars * GRAVITY);
        }
    }
    fn phi<S: Scalar>(&self, _rho: &[S], _: S, z: &[S], phi: &mut [S]) {
        for (phi, [a, b, c, d]) in phi.iter_mut().zip(Self::bars(z)) {
            *phi = S::from_f64(0.5) * ((c - a) * (c - a) + (d - b) * (d - b) - S::ONE);
        }
    }
}
