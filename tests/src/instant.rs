//! A program at one instant through the generator's interpreter, in real or complex numbers, and how results compare.

use crate::random_model::Random;
use mbs_codegen::bundle::interpret::{Arguments, run, scratch_len};
use mbs_codegen::graph::{Complex, Number};
use mbs_codegen::program::Program;
use mbs_codegen::symbols::Group;

/// Of complex steps: its square is nothing.
pub const STEP: f64 = 1e-30;

/// A program at one instant, all arguments given.
#[derive(Clone)]
pub struct Instant<'a, N> {
    /// The program.
    pub program: &'a Program,
    /// What it made of its parameters.
    pub prepared: Vec<N>,
    /// Time.
    pub t: N,
    /// Coordinates.
    pub z: Vec<N>,
    /// Velocities.
    pub v: Vec<N>,
    /// Accelerations.
    pub vd: Vec<N>,
    /// Inputs.
    pub u: Vec<N>,
    /// Forces along the velocities, from outside.
    pub tau: Vec<N>,
    /// Wrenches on the bodies, from outside.
    pub wrenches: Vec<N>,
}

impl<'a, N: Number> Instant<'a, N> {
    /// Away from the start by the state's own size; Euler parameters stay as they are, not of unit length.
    pub fn new(program: &'a Program, random: &mut Random) -> Self {
        let parameters: Vec<N> = program.defaults().into_iter().map(N::constant).collect();
        let mut number = |low, high| N::constant(random.uniform(low, high));
        let t = number(0.2, 2.8);
        let u = program.inputs.iter().map(|_| number(-1.0, 1.0)).collect();
        let arguments = Arguments::new().with(Group::Parameters, &parameters);
        let prepared = call(program, "prepare", &arguments).remove(0);
        let mut start = call(program, "start", &arguments);
        let v: Vec<N> = start.remove(1).into_iter().map(|v| v + number(-1.0, 1.0)).collect();
        let z = start.remove(0);
        let vd = v.iter().map(|_| number(-3.0, 3.0)).collect();
        let tau = v.iter().map(|_| number(-3.0, 3.0)).collect();
        let wrenches = (0..6 * program.bodies.len()).map(|_| number(-2.0, 2.0)).collect();
        Instant { program, prepared, t, z, v, vd, u, tau, wrenches }
    }

    /// All results of a bundle.
    pub fn call(&self, bundle: &str) -> Vec<Vec<N>> {
        let t = [self.t];
        let arguments = Arguments::new()
            .with(Group::Time, &t)
            .with(Group::Z, &self.z)
            .with(Group::V, &self.v)
            .with(Group::Vd, &self.vd)
            .with(Group::U, &self.u)
            .with(Group::Tau, &self.tau)
            .with(Group::Wrenches, &self.wrenches)
            .with(Group::Prepared, &self.prepared);
        call(self.program, bundle, &arguments)
    }

    /// Number of velocities.
    pub fn nv(&self) -> usize {
        self.v.len()
    }
}

/// All results of a bundle.
pub fn call<N: Number>(program: &Program, name: &str, arguments: &Arguments<'_, N>) -> Vec<Vec<N>> {
    let bundle = program.bundle(name).expect("an emitted bundle");
    let mut scratch = vec![N::default(); scratch_len(bundle)];
    let mut results: Vec<Vec<N>> =
        bundle.results.iter().map(|r| vec![N::default(); r.len as usize]).collect();
    let mut slices: Vec<&mut [N]> = results.iter_mut().map(|r| &mut r[..]).collect();
    run(bundle, arguments, &mut scratch, &mut slices).expect("arguments of the right lengths");
    results
}

/// An instant with complex numbers, displaced by i·h along directions.
pub fn complex<'a>(instant: &Instant<'a, f64>, along_z: &[f64], along_v: &[f64]) -> Instant<'a, Complex> {
    let lift = |values: &[f64]| values.iter().map(|&x| Complex::constant(x)).collect::<Vec<_>>();
    let displaced = |values: &[f64], along: &[f64]| {
        values.iter().zip(along).map(|(&x, &d)| Complex::new(x, STEP * d)).collect::<Vec<_>>()
    };
    Instant {
        program: instant.program,
        prepared: lift(&instant.prepared),
        t: Complex::constant(instant.t),
        z: displaced(&instant.z, along_z),
        v: displaced(&instant.v, along_v),
        vd: lift(&instant.vd),
        u: lift(&instant.u),
        tau: lift(&instant.tau),
        wrenches: lift(&instant.wrenches),
    }
}

/// The derivatives along the displacement.
pub fn derivative(values: &[Complex]) -> Vec<f64> {
    values.iter().map(|c| c.im / STEP).collect()
}

/// The largest absolute value.
pub fn largest(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |m, x| m.max(x.abs()))
}

/// Largest difference over the largest entry.
pub fn error(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    assert!(a.iter().chain(b).all(|x| x.is_finite()), "{a:?} {b:?}");
    let difference = a.iter().zip(b).fold(0.0f64, |m, (x, y)| m.max((x - y).abs()));
    difference / largest(a).max(largest(b)).max(f64::MIN_POSITIVE)
}

/// The condition number of a symmetric positive definite matrix: eigenvalues by Jacobi rotations.
pub fn condition(m: &[f64], n: usize) -> f64 {
    let mut a = m.to_vec();
    for _ in 0..60 {
        for p in 0..n {
            for q in p + 1..n {
                let off = a[p * n + q];
                if off == 0.0 {
                    continue;
                }
                let angle = 0.5 * (2.0 * off).atan2(a[q * n + q] - a[p * n + p]);
                let (s, c) = angle.sin_cos();
                for k in 0..n {
                    let (x, y) = (a[k * n + p], a[k * n + q]);
                    (a[k * n + p], a[k * n + q]) = (c * x - s * y, s * x + c * y);
                }
                for k in 0..n {
                    let (x, y) = (a[p * n + k], a[q * n + k]);
                    (a[p * n + k], a[q * n + k]) = (c * x - s * y, s * x + c * y);
                }
            }
        }
    }
    let eigenvalues: Vec<f64> = (0..n).map(|i| a[i * n + i]).collect();
    let smallest = eigenvalues.iter().copied().fold(f64::INFINITY, f64::min);
    assert!(smallest > 0.0, "the mass matrix is not positive definite: {eigenvalues:?}");
    largest(&eigenvalues) / smallest
}
