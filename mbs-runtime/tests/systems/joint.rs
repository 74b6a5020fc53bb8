//! Mechanisms in joint form: their equations of motion taken along v, by zd = N(z) v; derivatives from dual numbers. Patterns are
//! full, factors dense.

use mbs_runtime::linear::lu;
use mbs_runtime::sensitivity::Places;
use mbs_runtime::{
    At, ConstrainedDynamics, ConstraintCorrection, ConstraintRows, EvalError, ForwardDynamics,
    JointObjectiveDerivatives, JointPlaces, JointSensitivities, Quantity, Scalar, Stabilisation,
};

use super::differentiated::{cut, put};
use super::dual::Dual;
use super::lagrangian::{Instant, Lagrangian, Mechanism, constant, duals, unit};

/// E/(largest entry) for exact constraints that may depend on each other; refinement takes it back.
const SMALL: f64 = 1e-8;

/// All that equations in joint form read.
#[derive(Clone)]
struct Joint<X> {
    rho: Vec<X>,
    t: X,
    z: Vec<X>,
    v: Vec<X>,
    vd: Vec<X>,
    lambda: Vec<X>,
    u: Vec<X>,
}

impl<X: Scalar> Joint<X> {
    /// Constant dual numbers.
    fn constant(&self) -> Joint<Dual<X>> {
        Joint {
            rho: constant(&self.rho),
            t: Dual::new(self.t, X::ZERO),
            z: constant(&self.z),
            v: constant(&self.v),
            vd: constant(&self.vd),
            lambda: constant(&self.lambda),
            u: constant(&self.u),
        }
    }
}

impl<T: Mechanism, S: Scalar> Lagrangian<T, S> {
    /// N(z) v
    fn n<X: Scalar>(&self, z: &[X], v: &[X]) -> Vec<X> {
        let half = X::from_f64(0.5);
        let blocks = self.mechanism.euler_parameters();
        let (mut zd, mut k) = (Vec::new(), 0);
        while zd.len() < T::NQ {
            let i = zd.len();
            if blocks.contains(&i) {
                let ([e0, e1, e2, e3], [a, b, c]) =
                    ([z[i], z[i + 1], z[i + 2], z[i + 3]], [v[k], v[k + 1], v[k + 2]]);
                zd.extend([
                    half * (-e1 * a - e2 * b - e3 * c),
                    half * (e0 * a - e3 * b + e2 * c),
                    half * (e3 * a + e0 * b - e1 * c),
                    half * (-e2 * a + e1 * b + e0 * c),
                ]);
                k += 3;
            } else {
                zd.push(v[k]);
                k += 1;
            }
        }
        zd
    }

    /// zdd = N vd + Nd v
    fn zdd<X: Scalar>(&self, z: &[X], v: &[X], vd: &[X]) -> Vec<X> {
        let zd = self.n(z, v);
        let turned = self.n(&duals(z, |i| zd[i]), &duals(v, |k| vd[k]));
        turned.into_iter().map(|x| x.slope).collect()
    }

    /// Multipliers of all rows from those of joint form.
    fn all_rows<X: Scalar>(&self, lambda: &[X]) -> Vec<X> {
        let (holonomic, rest) = lambda.split_at(T::HOLONOMIC);
        [holonomic, &vec![X::ZERO; T::NORMALISATION], rest].concat()
    }

    /// Rows of joint form from all rows.
    fn joint_rows<X: Scalar>(&self, rows: Vec<X>) -> Vec<X> {
        [&rows[..T::HOLONOMIC], &rows[Self::HOLONOMIC..]].concat()
    }

    /// tau = Nᵀ r
    fn tau<X: Scalar>(&self, at: &Joint<X>) -> Vec<X> {
        let (zd, zdd) = (self.n(&at.z, &at.v), self.zdd(&at.z, &at.v, &at.vd));
        let r = self.r(&at.rho, at.t, &at.z, &zd, &zdd, &self.all_rows(&at.lambda), &at.u);
        let column = |k: usize| self.n(&at.z, &(0..Self::NV).map(|i| unit(i, k)).collect::<Vec<X>>());
        let dot = |n: Vec<X>| n.iter().zip(&r).fold(X::ZERO, |sum, (n, r)| sum + *n * *r);
        (0..Self::NV).map(|k| dot(column(k))).collect()
    }

    /// c = Φdd + a Φd + b Φ, Ψd + a Ψ
    fn c<X: Scalar>(&self, at: &Joint<X>, a: X, b: X) -> Vec<X> {
        let (zd, zdd) = (self.n(&at.z, &at.v), self.zdd(&at.z, &at.v, &at.vd));
        let rows = self.joint_rows(self.rows(&at.rho, at.t, &at.z, &zd));
        let rates = self.joint_rows(self.rates(&at.rho, at.t, &at.z, &zd));
        let accelerations = self.joint_rows(self.accelerations(&at.rho, at.t, &at.z, &zd, &zdd));
        (0..Self::JOINT_ROWS)
            .map(|k| {
                let value = if k < T::HOLONOMIC { b * rows[k] } else { X::ZERO };
                accelerations[k] + a * rates[k] + value
            })
            .collect()
    }

    fn joint(&self, at: At<'_, S>, vd: &[S], lambda: &[S]) -> Joint<S> {
        Joint {
            rho: self.rho.clone(),
            t: at.t,
            z: at.z.to_vec(),
            v: at.v.to_vec(),
            vd: vd.to_vec(),
            lambda: lambda.to_vec(),
            u: at.u.to_vec(),
        }
    }

    /// [M Bᵀ; B −e], column by column.
    fn joint_matrix(&self, at: &Joint<S>, e: S) -> Vec<S> {
        let (nv, n) = (Self::NV, Self::JOINT);
        let mut matrix = vec![S::ZERO; n * n];
        for j in 0..nv {
            let mut along = at.constant();
            along.vd[j].slope = S::ONE;
            for (i, tau) in self.tau(&along).iter().enumerate() {
                matrix[j * n + i] = tau.slope;
            }
            for (k, c) in self.c(&along, Dual::ZERO, Dual::ZERO).iter().enumerate() {
                matrix[j * n + nv + k] = c.slope;
                matrix[(nv + k) * n + j] = c.slope;
            }
        }
        for k in nv..n {
            matrix[k * n + k] = -e;
        }
        matrix
    }

    /// Matrix, factors of the matrix with damped rows, pivots.
    fn joint_factors(matrix: &[S], factors: &mut [S]) -> Result<(), EvalError> {
        let n = Self::JOINT;
        let (plain, rest) = factors.split_at_mut(n * n);
        let (lu, pivots) = rest.split_at_mut(n * n);
        plain.copy_from_slice(matrix);
        lu.copy_from_slice(matrix);
        for k in Self::NV..n {
            if lu[k * n + k] == S::ZERO {
                lu[k * n + k] = S::from_f64(-SMALL);
            }
        }
        lu::factor(n, lu, pivots)
            .map_err(|index| EvalError::SingularLeading { quantity: Quantity::Velocity, index })
    }

    fn joint_refined(factors: &[S], x: &mut [S]) {
        let n = Self::JOINT;
        let (matrix, rest) = factors.split_at(n * n);
        let (lu, pivots) = rest.split_at(n * n);
        let b = x.to_vec();
        x.fill(S::ZERO);
        for _ in 0..4 {
            let mut residual = b.clone();
            for j in 0..n {
                for i in 0..n {
                    residual[i] -= matrix[j * n + i] * x[j];
                }
            }
            lu::solve(n, lu, pivots, &mut residual);
            for (x, change) in x.iter_mut().zip(residual) {
                *x += change;
            }
        }
    }

    /// vd and λ.
    fn joint_accelerations(
        &self,
        at: At<'_, S>,
        stabilisation: Stabilisation<S>,
    ) -> Result<(Vec<S>, Vec<S>), EvalError> {
        let rest = self.joint(at, &vec![S::ZERO; Self::NV], &vec![S::ZERO; Self::JOINT_ROWS]);
        let matrix = self.joint_matrix(&rest, stabilisation.compliance);
        let mut factors = vec![S::ZERO; Self::DIMS.sensitivity.joint_factors];
        Self::joint_factors(&matrix, &mut factors)?;
        let c = self.c(&rest, stabilisation.rate, stabilisation.value);
        let mut x: Vec<S> = self.tau(&rest).into_iter().chain(c).map(|x| -x).collect();
        Self::joint_refined(&factors, &mut x);
        Ok((x[..Self::NV].to_vec(), x[Self::NV..].to_vec()))
    }

    fn joint_instant<X: Scalar>(&self, at: &Joint<X>) -> [Vec<X>; 3] {
        [self.n(&at.z, &at.v), self.zdd(&at.z, &at.v, &at.vd), self.all_rows(&at.lambda)]
    }

    /// Integrands and terminal terms.
    fn joint_objectives_of<X: Scalar>(&self, at: &Joint<X>) -> [Vec<X>; 2] {
        let [zd, zdd, lambda] = self.joint_instant(at);
        let instant = Instant { t: at.t, z: &at.z, zd: &zd, zdd: &zdd, lambda: &lambda, u: &at.u };
        self.objectives_of(&at.rho, instant)
    }

    /// Integrands and terminal terms at an instant.
    pub(crate) fn joint_objectives(&self, at: At<'_, S>, vd: &[S], lambda: &[S]) -> [Vec<S>; 2] {
        self.joint_objectives_of(&self.joint(at, vd, lambda))
    }

    fn joint_objective_derivatives(&self, at: &Joint<S>, which: usize, values: &mut [S]) {
        let (nv, rows) = (Self::NV, Self::JOINT_ROWS);
        let (plain, partial) = values.split_at_mut(T::OBJECTIVES);
        plain.copy_from_slice(&self.joint_objectives_of(at)[which]);
        put(T::OBJECTIVES, 3 * nv + rows + T::PARAMETERS, partial, &|j| {
            let mut along = at.constant();
            match j {
                _ if j < nv => self.turn(&mut along, j),
                _ if j < 2 * nv => along.v[j - nv].slope = S::ONE,
                _ if j < 3 * nv => along.vd[j - 2 * nv].slope = S::ONE,
                _ if j < 3 * nv + rows => along.lambda[j - 3 * nv].slope = S::ONE,
                _ => along.rho[j - 3 * nv - rows].slope = S::ONE,
            }
            self.joint_objectives_of(&along)[which].clone()
        });
    }

    /// Along θ_j: z moves by N e_j.
    fn turn(&self, along: &mut Joint<Dual<S>>, j: usize) {
        let z: Vec<S> = along.z.iter().map(|z| z.value).collect();
        let direction: Vec<S> = (0..Self::NV).map(|i| unit(i, j)).collect();
        for (z, slope) in along.z.iter_mut().zip(self.n(&z, &direction)) {
            z.slope = slope;
        }
    }
}

impl<T: Mechanism, S: Scalar> ForwardDynamics for Lagrangian<T, S> {
    fn forward_dynamics(
        &self,
        at: At<'_, S>,
        _: &mut [S],
        zd: &mut [S],
        vd: &mut [S],
        _: &mut [S],
    ) -> Result<(), EvalError> {
        assert_eq!(Self::JOINT_ROWS, 0, "an open tree");
        let exact = Stabilisation { rate: S::ZERO, value: S::ZERO, compliance: S::ZERO };
        zd.copy_from_slice(&self.n(at.z, at.v));
        vd.copy_from_slice(&self.joint_accelerations(at, exact)?.0);
        Ok(())
    }
}

impl<T: Mechanism, S: Scalar> ConstrainedDynamics for Lagrangian<T, S> {
    fn constrained_dynamics(
        &self,
        at: At<'_, S>,
        stabilisation: Stabilisation<S>,
        _: &mut [S],
        zd: &mut [S],
        vd: &mut [S],
        _: &mut [S],
        lambda: &mut [S],
    ) -> Result<(), EvalError> {
        zd.copy_from_slice(&self.n(at.z, at.v));
        let (accelerations, multipliers) = self.joint_accelerations(at, stabilisation)?;
        vd.copy_from_slice(&accelerations);
        lambda.copy_from_slice(&multipliers);
        Ok(())
    }
}

impl<T: Mechanism, S: Scalar> ConstraintCorrection for Lagrangian<T, S> {
    fn constraint_correction(
        &self,
        at: At<'_, S>,
        _: &mut [S],
        dz: &mut [S],
        dv: &mut [S],
        phi: &mut [S],
        phid: &mut [S],
    ) -> Result<(), EvalError> {
        let (nv, n) = (Self::NV, Self::JOINT);
        let rest = self.joint(at, &vec![S::ZERO; nv], &vec![S::ZERO; Self::JOINT_ROWS]);
        let zd = self.n(at.z, at.v);
        phid.copy_from_slice(&self.joint_rows(self.rates(&self.rho, at.t, at.z, &zd)));
        phi.copy_from_slice(&self.rows(&self.rho, at.t, at.z, &zd)[..T::HOLONOMIC]);
        let mut factors = vec![S::ZERO; Self::DIMS.sensitivity.joint_factors];
        Self::joint_factors(&self.joint_matrix(&rest, S::ZERO), &mut factors)?;
        let mut x = vec![S::ZERO; n];
        for k in 0..Self::JOINT_ROWS {
            x[nv + k] = -phid[k];
        }
        Self::joint_refined(&factors, &mut x);
        dv.copy_from_slice(&x[..nv]);
        x.fill(S::ZERO);
        for k in 0..T::HOLONOMIC {
            x[nv + k] = -phi[k];
        }
        Self::joint_refined(&factors, &mut x);
        dz.copy_from_slice(&self.n(at.z, &x[..nv]));
        Ok(())
    }
}

impl<T: Mechanism, S: Scalar> ConstraintRows for Lagrangian<T, S> {
    fn constraint_rows(
        &self,
        at: At<'_, S>,
        _: &mut [S],
        phi: &mut [S],
        phid: &mut [S],
        jacobian: &mut [S],
    ) -> Result<(), EvalError> {
        let (nv, n, rows) = (Self::NV, Self::JOINT, Self::JOINT_ROWS);
        let rest = self.joint(at, &vec![S::ZERO; nv], &vec![S::ZERO; rows]);
        let zd = self.n(at.z, at.v);
        phid.copy_from_slice(&self.joint_rows(self.rates(&self.rho, at.t, at.z, &zd)));
        phi.copy_from_slice(&self.rows(&self.rho, at.t, at.z, &zd)[..T::HOLONOMIC]);
        let matrix = self.joint_matrix(&rest, S::ZERO);
        for j in 0..nv {
            jacobian[j * rows..(j + 1) * rows].copy_from_slice(&matrix[j * n + nv..(j + 1) * n]);
        }
        Ok(())
    }
}

impl<T: Mechanism, S: Scalar> JointSensitivities for Lagrangian<T, S> {
    fn joint_places(&self) -> JointPlaces<'_> {
        let places = &self.places;
        JointPlaces {
            tangent: &places.joint_tangent,
            rows: &places.joint_rows,
            force: &places.joint_force,
            row: &places.joint_row,
        }
    }

    fn joint_linearise(
        &self,
        at: At<'_, S>,
        vd: &[S],
        lambda: &[S],
        stabilisation: Stabilisation<S>,
        _: &mut [S],
        values: &mut [S],
        factors: &mut [S],
    ) -> Result<(), EvalError> {
        let (nv, rows, p) = (Self::NV, Self::JOINT_ROWS, T::PARAMETERS);
        let at = self.joint(at, vd, lambda);
        let (a, b) = (Dual::new(stabilisation.rate, S::ZERO), Dual::new(stabilisation.value, S::ZERO));
        let by_vd = |j: usize| {
            let mut along = at.constant();
            along.vd[j].slope = S::ONE;
            along
        };
        let by_theta = |j: usize| {
            let mut along = at.constant();
            self.turn(&mut along, j);
            along
        };
        let by_v = |j: usize| {
            let mut along = at.constant();
            along.v[j].slope = S::ONE;
            along
        };
        let by_rho = |j: usize| {
            let mut along = at.constant();
            along.rho[j].slope = S::ONE;
            along
        };
        let mut rest = values;
        put(nv, nv, cut(&mut rest, nv * nv), &|j| self.tau(&by_vd(j)));
        put(nv, nv, cut(&mut rest, nv * nv), &|j| self.tau(&by_theta(j)));
        put(nv, nv, cut(&mut rest, nv * nv), &|j| self.tau(&by_v(j)));
        put(rows, nv, cut(&mut rest, rows * nv), &|j| self.c(&by_theta(j), a, b));
        put(rows, nv, cut(&mut rest, rows * nv), &|j| self.c(&by_v(j), a, b));
        put(nv, p, cut(&mut rest, nv * p), &|k| self.tau(&by_rho(k)));
        put(rows, p, rest, &|k| self.c(&by_rho(k), a, b));
        Self::joint_factors(&self.joint_matrix(&at, stabilisation.compliance), factors)
    }

    fn joint_solve(&self, factors: &[S], _: &mut [S], x: &mut [S]) -> Result<(), EvalError> {
        Self::joint_refined(factors, x);
        Ok(())
    }
}

impl<T: Mechanism, S: Scalar> JointObjectiveDerivatives for Lagrangian<T, S> {
    fn joint_objective_places(&self) -> [Places<'_>; 2] {
        [&self.places.joint_objectives, &self.places.joint_objectives]
    }

    fn joint_integrand_derivatives(
        &self,
        at: At<'_, S>,
        vd: &[S],
        lambda: &[S],
        _: &mut [S],
        values: &mut [S],
    ) -> Result<(), EvalError> {
        self.joint_objective_derivatives(&self.joint(at, vd, lambda), 0, values);
        Ok(())
    }

    fn joint_terminal_derivatives(
        &self,
        at: At<'_, S>,
        vd: &[S],
        lambda: &[S],
        _: &mut [S],
        values: &mut [S],
    ) -> Result<(), EvalError> {
        self.joint_objective_derivatives(&self.joint(at, vd, lambda), 1, values);
        Ok(())
    }
}
