//! An instant in both forms, in any kind of numbers.

use crate::Interpreted;
use mbs_runtime::{At, Complex64, EvalError, Motion, Scalar, System, euler_parameters};

/// An instant at which derivatives are looked at, in coordinate form.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Instant {
    /// Time.
    pub t: f64,
    /// Coordinates.
    pub z: Vec<f64>,
    /// Their rates.
    pub zd: Vec<f64>,
    /// Their accelerations.
    pub zdd: Vec<f64>,
    /// Inputs.
    pub u: Vec<f64>,
    /// Multipliers of all rows.
    pub lambda: Vec<f64>,
}

/// The instant in both forms.
#[derive(Clone)]
pub(super) struct Point<S> {
    pub t: S,
    pub z: Vec<S>,
    pub zd: Vec<S>,
    pub zdd: Vec<S>,
    pub v: Vec<S>,
    pub vd: Vec<S>,
    pub u: Vec<S>,
    /// Of all rows.
    pub lambda: Vec<S>,
    /// Of the holonomic and the nonholonomic rows.
    pub joint_lambda: Vec<S>,
    /// Those of the projections, σ and κ of all rows, where objectives read them.
    pub projections: Vec<S>,
    /// The same of the holonomic and the nonholonomic rows.
    pub joint_projections: Vec<S>,
}

impl Point<f64> {
    /// `None` if lengths are wrong.
    pub(super) fn new(model: &Interpreted<f64>, at: &Instant) -> Option<Self> {
        let dims = model.dims();
        let (mut v, mut vd) = (vec![0.0; dims.nv], vec![0.0; dims.nv]);
        euler_parameters::velocities(model, &at.z, &at.zd, &mut v).ok()?;
        euler_parameters::accelerations(model, &at.z, &at.zd, &at.zdd, &mut vd).ok()?;
        let (phi, psi) = at.lambda.split_at_checked(dims.n_holonomic + dims.n_normalisation)?;
        let joint_lambda = [phi.get(..dims.n_holonomic)?, psi].concat();
        let right = at.u.len() == dims.nu && joint_lambda.len() == dims.joint_rows();
        let Instant { t, z, zd, zdd, u, lambda } = at.clone();
        // Any will do.
        let projections: Vec<_> =
            lambda.iter().rev().chain(&lambda).take(2 * dims.n_projected).copied().collect();
        let joint_projections = dims.in_joint_form(&projections).collect();
        right.then_some(Point {
            t,
            z,
            zd,
            zdd,
            v,
            vd,
            u,
            lambda,
            joint_lambda,
            projections,
            joint_projections,
        })
    }

    /// Everything moved by this part of one, or of the largest of its kind.
    pub(super) fn moved(&self, part: f64) -> Self {
        let mut moved = self.clone();
        let Point { z, zd, zdd, v, vd, u, lambda, joint_lambda, projections, joint_projections, .. } =
            &mut moved;
        for values in [z, zd, zdd, v, vd, u, lambda, joint_lambda, projections, joint_projections] {
            let size = values.iter().fold(1.0, |m: f64, x| m.max(x.abs()));
            for (x, sign) in values.iter_mut().zip([1.0, -1.0].into_iter().cycle()) {
                *x += sign * part * size;
            }
        }
        moved
    }

    pub(super) fn complex(&self) -> Point<Complex64> {
        let lift = |x: &[f64]| x.iter().map(|&x| Complex64::new(x, 0.0)).collect::<Vec<_>>();
        Point {
            t: Complex64::new(self.t, 0.0),
            z: lift(&self.z),
            zd: lift(&self.zd),
            zdd: lift(&self.zdd),
            v: lift(&self.v),
            vd: lift(&self.vd),
            u: lift(&self.u),
            lambda: lift(&self.lambda),
            joint_lambda: lift(&self.joint_lambda),
            projections: lift(&self.projections),
            joint_projections: lift(&self.joint_projections),
        }
    }
}

impl Point<Complex64> {
    /// Without accelerations and multipliers.
    pub(super) fn without_forces(mut self) -> Self {
        let Self { zdd, vd, lambda, joint_lambda, projections, joint_projections, .. } = &mut self;
        for part in [zdd, vd, lambda, joint_lambda, projections, joint_projections] {
            part.fill(Complex64::ZERO);
        }
        self
    }

    /// One coordinate, its rate and acceleration by a step times weights.
    pub(super) fn move_coordinate(&mut self, k: usize, weights: [f64; 3], step: Complex64) {
        for (part, weight) in [&mut self.z, &mut self.zd, &mut self.zdd].into_iter().zip(weights) {
            part[k] += Complex64::new(weight, 0.0) * step;
        }
    }

    /// Position along the tangent of one velocity, the velocity and the acceleration by a step times weights.
    pub(super) fn move_joint(
        &mut self,
        model: &Interpreted<Complex64>,
        k: usize,
        weights: [f64; 3],
        step: Complex64,
    ) -> Option<()> {
        let mut unit = vec![0.0; self.v.len()];
        unit[k] = weights[0];
        self.move_along(model, &unit, &[], step)?;
        self.v[k] += Complex64::new(weights[1], 0.0) * step;
        self.vd[k] += Complex64::new(weights[2], 0.0) * step;
        Some(())
    }

    /// Position along a tangent, and velocities, by a step times these.
    pub(super) fn move_along(
        &mut self,
        model: &Interpreted<Complex64>,
        positions: &[f64],
        velocities: &[f64],
        step: Complex64,
    ) -> Option<()> {
        let tangent: Vec<Complex64> = positions.iter().map(|&x| Complex64::new(x, 0.0) * step).collect();
        let mut dz = vec![Complex64::ZERO; self.z.len()];
        euler_parameters::coordinate_rates(model, &self.z, &tangent, &mut dz).ok()?;
        self.z.iter_mut().zip(dz).for_each(|(z, dz)| *z += dz);
        self.v.iter_mut().zip(velocities).for_each(|(v, &x)| *v += Complex64::new(x, 0.0) * step);
        Some(())
    }
}

impl<S: Scalar> Point<S> {
    pub(super) fn motion(&self) -> Motion<'_, S> {
        Motion { t: self.t, z: &self.z, zd: &self.zd, zdd: &self.zdd, u: &self.u }
    }

    pub(super) fn at(&self) -> At<'_, S> {
        At { t: self.t, z: &self.z, v: &self.v, x: &[], u: &self.u }
    }

    /// Joint velocities and accelerations that belong to zd and zdd.
    pub(super) fn in_joint_form<M: System<S = S>>(&self, model: &M) -> Result<(Vec<S>, Vec<S>), EvalError> {
        let mut v = vec![S::ZERO; self.v.len()];
        let mut vd = v.clone();
        euler_parameters::velocities(model, &self.z, &self.zd, &mut v)?;
        euler_parameters::accelerations(model, &self.z, &self.zd, &self.zdd, &mut vd)?;
        Ok((v, vd))
    }
}
