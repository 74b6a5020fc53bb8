//! Derivatives of mechanisms by their parameters and states, from dual numbers; all patterns full.

use mbs_runtime::{
    EvalError, Impulses, Motion, ObjectiveDerivatives, ParameterPlaces, Scalar, Sensitivities, Start,
    StartDerivatives,
};

use super::dual::Dual;
use super::lagrangian::{Instant, Lagrangian, Mechanism, constant, duals, unit};

/// Writes rows × columns values, the derivative `column(j)` in column j.
pub(super) fn put<S: Scalar>(
    rows: usize,
    columns: usize,
    to: &mut [S],
    column: &dyn Fn(usize) -> Vec<Dual<S>>,
) {
    for j in 0..columns {
        let column = column(j);
        for i in 0..rows {
            to[i * columns + j] = column[i].slope;
        }
    }
}

pub(super) fn cut<'a, S>(rest: &mut &'a mut [S], n: usize) -> &'a mut [S] {
    let (part, other) = std::mem::take(rest).split_at_mut(n);
    *rest = other;
    part
}

impl<T: Mechanism, S: Scalar> Lagrangian<T, S> {
    /// M x + Φ_zᵀ y + Aᵀ y', over any scalar: r is linear in accelerations and multipliers.
    fn impulse<X: Scalar>(&self, rho: &[X], t: X, z: &[X], u: &[X], x: &[X], y: &[X]) -> Vec<X> {
        let (zero, none) = (vec![X::ZERO; T::NQ], vec![X::ZERO; Self::ROWS]);
        let with = self.r(rho, t, z, &zero, x, y, u);
        let without = self.r(rho, t, z, &zero, &zero, &none, u);
        with.iter().zip(without).map(|(a, b)| *a - b).collect()
    }

    /// Guesses of z and v from those of z and zd.
    fn start_of<X: Scalar>(&self, rho: &[X]) -> (Vec<X>, Vec<X>) {
        let (mut z, mut v) = (vec![X::ZERO; T::NQ], vec![X::ZERO; T::NQ - T::NORMALISATION]);
        self.mechanism.guesses(rho, &mut z, &mut v);
        (z, v)
    }

    pub(crate) fn objectives_of<X: Scalar>(&self, rho: &[X], at: Instant<'_, X>) -> [Vec<X>; 2] {
        let (mut g, mut w) = (vec![X::ZERO; T::OBJECTIVES], vec![X::ZERO; T::OBJECTIVES]);
        self.mechanism.objectives(rho, at, &mut g, &mut w);
        [g, w]
    }

    fn objective_derivatives(&self, at: Motion<'_, S>, lambda: &[S], which: usize, values: &mut [S]) {
        let (nq, rows) = (T::NQ, Self::ROWS);
        let instant = Instant { t: at.t, z: at.z, zd: at.zd, zdd: at.zdd, lambda, u: at.u };
        let (plain, partial) = values.split_at_mut(T::OBJECTIVES);
        plain.copy_from_slice(&self.objectives_of(&self.rho, instant)[which]);
        put(T::OBJECTIVES, 3 * nq + rows + T::PARAMETERS, partial, &|j| {
            let part = |x: &[S], first: usize| duals(x, |i| unit(first + i, j));
            let (z, zd, zdd) = (part(at.z, 0), part(at.zd, nq), part(at.zdd, 2 * nq));
            let (lambda, rho) = (part(lambda, 3 * nq), part(&self.rho, 3 * nq + rows));
            let (t, u) = (Dual::new(at.t, S::ZERO), constant(at.u));
            let instant = Instant { t, z: &z, zd: &zd, zdd: &zdd, lambda: &lambda, u: &u };
            self.objectives_of(&rho, instant)[which].clone()
        });
    }
}

impl<T: Mechanism, S: Scalar> Start for Lagrangian<T, S> {
    fn start(&self, z: &mut [S], v: &mut [S], _: &mut [S]) -> Result<(), EvalError> {
        let start = self.start_of(&self.rho);
        z.copy_from_slice(&start.0);
        v.copy_from_slice(&start.1);
        Ok(())
    }
}

impl<T: Mechanism, S: Scalar> StartDerivatives for Lagrangian<T, S> {
    fn start_places(&self) -> [&[(u32, u32)]; 2] {
        let velocities = (T::NQ - T::NORMALISATION) * T::PARAMETERS;
        [&self.places.start, &self.places.start[..velocities]]
    }

    fn start_derivatives(&self, _: &mut [S], values: &mut [S]) -> Result<(), EvalError> {
        let p = T::PARAMETERS;
        let (z, v) = values.split_at_mut(T::NQ * p);
        let start = |k: usize| self.start_of(&duals(&self.rho, |i| unit(i, k)));
        put(T::NQ, p, z, &|k| start(k).0);
        put(T::NQ - T::NORMALISATION, p, v, &|k| start(k).1);
        Ok(())
    }
}

impl<T: Mechanism, S: Scalar> Sensitivities for Lagrangian<T, S> {
    fn parameter_places(&self) -> ParameterPlaces<'_> {
        let places = &self.places;
        ParameterPlaces {
            residual: &places.coordinates,
            constraints: &places.rows,
            impulse: &places.coordinates,
            rates: &places.rows,
            accelerations: &places.rows,
        }
    }

    fn linearise(
        &self,
        at: Motion<'_, S>,
        lambda: &[S],
        _: &mut [S],
        values: &mut [S],
    ) -> Result<(), EvalError> {
        let (nq, nh, nn, p) = (T::NQ, Self::HOLONOMIC, T::NONHOLONOMIC, T::PARAMETERS);
        let none = |_: usize| S::ZERO;
        let along = |j: usize| move |i: usize| unit::<S>(i, j);
        let time = Dual::new(at.t, S::ZERO);
        let r = |z: &[Dual<S>], zd: &[Dual<S>], zdd: &[Dual<S>], rho: &[Dual<S>]| {
            self.r(rho, time, z, zd, zdd, &constant(lambda), &constant(at.u))
        };
        let rows = |z: &[Dual<S>], zd: &[Dual<S>], rho: &[Dual<S>]| self.rows(rho, time, z, zd);
        let (z, zd, zdd, rho) =
            (duals(at.z, none), duals(at.zd, none), duals(at.zdd, none), duals(&self.rho, none));
        let mut rest = values;
        put(nq, nq, cut(&mut rest, nq * nq), &|j| r(&z, &zd, &duals(at.zdd, along(j)), &rho));
        put(nq, nq, cut(&mut rest, nq * nq), &|j| r(&z, &duals(at.zd, along(j)), &zdd, &rho));
        put(nq, nq, cut(&mut rest, nq * nq), &|j| r(&duals(at.z, along(j)), &zd, &zdd, &rho));
        put(nh, nq, cut(&mut rest, nh * nq), &|j| rows(&duals(at.z, along(j)), &zd, &rho));
        put(nn, nq, cut(&mut rest, nn * nq), &|j| rows(&z, &duals(at.zd, along(j)), &rho)[nh..].to_vec());
        put(nn, nq, cut(&mut rest, nn * nq), &|j| rows(&duals(at.z, along(j)), &zd, &rho)[nh..].to_vec());
        put(nq, p, cut(&mut rest, nq * p), &|k| r(&z, &zd, &zdd, &duals(&self.rho, along(k))));
        put(nh + nn, p, rest, &|k| rows(&z, &zd, &duals(&self.rho, along(k))));
        Ok(())
    }

    fn linearise_projections(
        &self,
        at: Motion<'_, S>,
        impulses: Impulses<'_, S>,
        _: &mut [S],
        values: &mut [S],
    ) -> Result<(), EvalError> {
        let (nq, nh, nn, p) = (T::NQ, Self::HOLONOMIC, T::NONHOLONOMIC, T::PARAMETERS);
        let none = |_: usize| S::ZERO;
        let along = |j: usize| move |i: usize| unit::<S>(i, j);
        let (time, u) = (Dual::new(at.t, S::ZERO), constant(at.u));
        let (z, zd, zdd, rho) =
            (duals(at.z, none), duals(at.zd, none), duals(at.zdd, none), duals(&self.rho, none));
        let z_along = |j: usize| duals(at.z, along(j));
        let rho_along = |k: usize| duals(&self.rho, along(k));
        let pairs = [
            (constant(impulses.velocity), constant(impulses.velocity_multipliers)),
            (constant(impulses.acceleration), constant(impulses.acceleration_multipliers)),
        ];
        let mut rest = values;
        for (x, y) in &pairs {
            put(nq, nq, cut(&mut rest, nq * nq), &|j| self.impulse(&rho, time, &z_along(j), &u, x, y));
        }
        put(nh, nq, cut(&mut rest, nh * nq), &|j| self.rates(&rho, time, &z_along(j), &zd));
        put(nn, nq, cut(&mut rest, nn * nq), &|j| self.rates(&rho, time, &z_along(j), &zd)[nh..].to_vec());
        put(nh, nq, cut(&mut rest, nh * nq), &|j| self.accelerations(&rho, time, &z_along(j), &zd, &zdd));
        put(nn, nq, cut(&mut rest, nn * nq), &|j| {
            self.accelerations(&rho, time, &z_along(j), &zd, &zdd)[nh..].to_vec()
        });
        put(nn, nq, cut(&mut rest, nn * nq), &|j| {
            self.accelerations(&rho, time, &z, &duals(at.zd, along(j)), &zdd)[nh..].to_vec()
        });
        for (x, y) in &pairs {
            put(nq, p, cut(&mut rest, nq * p), &|k| self.impulse(&rho_along(k), time, &z, &u, x, y));
        }
        put(nh + nn, p, cut(&mut rest, (nh + nn) * p), &|k| self.rates(&rho_along(k), time, &z, &zd));
        put(nh + nn, p, rest, &|k| self.accelerations(&rho_along(k), time, &z, &zd, &zdd));
        Ok(())
    }
}

impl<T: Mechanism, S: Scalar> ObjectiveDerivatives for Lagrangian<T, S> {
    fn objective_places(&self) -> [&[(u32, u32)]; 2] {
        [&self.places.objectives, &self.places.objectives]
    }

    fn integrand_derivatives(
        &self,
        at: Motion<'_, S>,
        lambda: &[S],
        _: &mut [S],
        values: &mut [S],
    ) -> Result<(), EvalError> {
        self.objective_derivatives(at, lambda, 0, values);
        Ok(())
    }

    fn terminal_derivatives(
        &self,
        at: Motion<'_, S>,
        lambda: &[S],
        _: &mut [S],
        values: &mut [S],
    ) -> Result<(), EvalError> {
        self.objective_derivatives(at, lambda, 1, values);
        Ok(())
    }
}
