//! Hand-written systems with exact solutions.
#![allow(dead_code, reason = "each test file uses some of them")]

pub(crate) mod differentiated;
pub(crate) mod dual;
pub(crate) mod erased;
pub(crate) mod five_bar;
pub(crate) mod joint;
pub(crate) mod lagrangian;
pub(crate) mod mechanisms;
pub(crate) mod parametric;

use mbs_runtime::system::{array, array_mut};
use mbs_runtime::{At, Dims, EvalError, ForwardDynamics, Hold, Names, Quantity, Scalar, System};

/// z'' = −omega² z.
#[derive(Clone, Copy)]
pub(crate) struct Oscillator<S> {
    pub(crate) omega: S,
}

impl<S> Oscillator<S> {
    pub(crate) const DIMS: Dims = Dims { nq: 1, nv: 1, ..Dims::ZERO };
}

impl<S: Scalar> Oscillator<S> {
    pub(crate) fn start(&self) -> [S; 2] {
        [S::from_f64(1.0), S::from_f64(0.5)]
    }

    pub(crate) fn exact(&self, t: S) -> [S; 2] {
        let [z, v] = self.start();
        let (sin, cos) = (self.omega * t).sin_cos();
        [z * cos + v / self.omega * sin, v * cos - z * self.omega * sin]
    }
}

impl<S: Scalar> System for Oscillator<S> {
    type S = S;
    #[inline(always)]
    fn dims(&self) -> Dims {
        Self::DIMS
    }
}

impl<S: Scalar> ForwardDynamics for Oscillator<S> {
    #[inline]
    fn forward_dynamics(
        &self,
        at: At<'_, S>,
        _: &mut [S],
        zd: &mut [S],
        vd: &mut [S],
        xd: &mut [S],
    ) -> Result<(), EvalError> {
        let ([z], [v]) = (array("z", at.z)?, array("v", at.v)?);
        *array_mut("zd", zd)? = [*v];
        *array_mut("vd", vd)? = [-self.omega * self.omega * *z];
        *array_mut("xd", xd)? = [];
        Ok(())
    }
}

impl<S> Names for Oscillator<S> {
    fn name(&self, quantity: Quantity, index: usize) -> Option<&str> {
        match quantity {
            Quantity::Coordinate => ["spring.length"].get(index).copied(),
            Quantity::Velocity => ["spring.rate"].get(index).copied(),
            _ => None,
        }
    }
}

/// The planar orbit of period 2 pi, from its closest point.
#[derive(Clone, Copy)]
pub(crate) struct Kepler {
    pub(crate) eccentricity: f64,
}

impl Kepler {
    pub(crate) fn start(&self) -> [f64; 4] {
        self.exact(0.0)
    }

    /// By Kepler's equation E − e sin E = t.
    pub(crate) fn exact(&self, t: f64) -> [f64; 4] {
        let e = self.eccentricity;
        let mut anomaly = t;
        for _ in 0..50 {
            anomaly -= (anomaly - e * anomaly.sin() - t) / (1.0 - e * anomaly.cos());
        }
        let (sin, cos) = anomaly.sin_cos();
        let minor = (1.0 - e * e).sqrt();
        let rate = 1.0 / (1.0 - e * cos);
        [cos - e, minor * sin, -sin * rate, minor * cos * rate]
    }
}

impl System for Kepler {
    type S = f64;
    #[inline(always)]
    fn dims(&self) -> Dims {
        Dims { nq: 2, nv: 2, ..Dims::ZERO }
    }
}

impl ForwardDynamics for Kepler {
    fn forward_dynamics(
        &self,
        at: At<'_, f64>,
        _: &mut [f64],
        zd: &mut [f64],
        vd: &mut [f64],
        _: &mut [f64],
    ) -> Result<(), EvalError> {
        let [x, y] = *array("z", at.z)?;
        let cube = (x * x + y * y).powf(1.5);
        *array_mut("zd", zd)? = *array::<_, 2>("v", at.v)?;
        *array_mut("vd", vd)? = [-x / cube, -y / cube];
        Ok(())
    }
}

pub(crate) type Quaternion<S> = [S; 4];

pub(crate) fn product<S: Scalar>(a: Quaternion<S>, b: Quaternion<S>) -> Quaternion<S> {
    [
        a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3],
        a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
        a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1],
        a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0],
    ]
}

fn turn(rate: [f64; 3], t: f64) -> Quaternion<f64> {
    let norm = (rate[0] * rate[0] + rate[1] * rate[1] + rate[2] * rate[2]).sqrt();
    let (sin, cos) = (0.5 * norm * t).sin_cos();
    [cos, sin * rate[0] / norm, sin * rate[1] / norm, sin * rate[2] / norm]
}

/// A symmetric body free of torque about its centre: z = Euler parameters, v = angular velocity in the body.
#[derive(Clone, Copy)]
pub(crate) struct FreeBody {
    pub(crate) across: f64,
    pub(crate) along: f64,
}

impl FreeBody {
    pub(crate) const RATE: [f64; 3] = [0.8, -0.3, 1.7];

    pub(crate) fn start(&self) -> [f64; 7] {
        let [a, b, c] = Self::RATE;
        [1.0, 0.0, 0.0, 0.0, a, b, c]
    }

    /// Two turns: about the constant angular momentum, and about the body's axis.
    pub(crate) fn exact(&self, t: f64) -> Quaternion<f64> {
        let [a, b, c] = Self::RATE;
        let momentum = turn([a, b, self.along / self.across * c], t);
        let spin = turn([0.0, 0.0, (1.0 - self.along / self.across) * c], t);
        product(momentum, spin)
    }
}

impl System for FreeBody {
    type S = f64;
    #[inline(always)]
    fn dims(&self) -> Dims {
        Dims { nq: 4, nv: 3, ..Dims::ZERO }
    }
    #[inline(always)]
    fn euler_parameters(&self) -> &[usize] {
        &[0]
    }
}

impl ForwardDynamics for FreeBody {
    fn forward_dynamics(
        &self,
        at: At<'_, f64>,
        _: &mut [f64],
        zd: &mut [f64],
        vd: &mut [f64],
        _: &mut [f64],
    ) -> Result<(), EvalError> {
        let p: &Quaternion<f64> = array("z", at.z)?;
        let [a, b, c] = *array("v", at.v)?;
        *array_mut("zd", zd)? = product(*p, [0.0, 0.5 * a, 0.5 * b, 0.5 * c]);
        let ratio = 1.0 - self.along / self.across;
        *array_mut("vd", vd)? = [ratio * b * c, -ratio * a * c, 0.0];
        Ok(())
    }
}

/// z'' = −z + u, with one input held in some way.
#[derive(Clone, Copy)]
pub(crate) struct Driven {
    pub(crate) hold: [Hold; 1],
}

impl Driven {
    pub(crate) const FREQUENCY: f64 = 2.5;

    pub(crate) fn start(&self) -> [f64; 2] {
        [0.3, -0.2]
    }

    pub(crate) fn input(t: f64) -> f64 {
        (Self::FREQUENCY * t).cos()
    }

    pub(crate) fn exact(&self, t: f64) -> [f64; 2] {
        let f = Self::FREQUENCY;
        let amplitude = 1.0 / (1.0 - f * f);
        let [z, v] = self.start();
        let z = z - amplitude;
        [
            z * t.cos() + v * t.sin() + amplitude * (f * t).cos(),
            v * t.cos() - z * t.sin() - amplitude * f * (f * t).sin(),
        ]
    }
}

impl System for Driven {
    type S = f64;
    #[inline(always)]
    fn dims(&self) -> Dims {
        Dims { nq: 1, nv: 1, nu: 1, ..Dims::ZERO }
    }
    #[inline(always)]
    fn holds(&self) -> &[Hold] {
        &self.hold
    }
}

impl ForwardDynamics for Driven {
    fn forward_dynamics(
        &self,
        at: At<'_, f64>,
        _: &mut [f64],
        zd: &mut [f64],
        vd: &mut [f64],
        _: &mut [f64],
    ) -> Result<(), EvalError> {
        let ([z], [u]) = (array("z", at.z)?, array("u", at.u)?);
        *array_mut("zd", zd)? = *array::<_, 1>("v", at.v)?;
        *array_mut("vd", vd)? = [u - z];
        Ok(())
    }
}

/// Largest difference.
pub(crate) fn distance(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

/// Order of convergence from errors at steps h and h/2.
pub(crate) fn order(coarse: f64, fine: f64) -> f64 {
    (coarse / fine).log2()
}

pub(crate) fn bits(y: &[f64]) -> Vec<u64> {
    y.iter().map(|y| y.to_bits()).collect()
}
