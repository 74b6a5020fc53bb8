//! Mechanisms by their kinetic energy, forces and constraints, written once for every scalar; all derivatives that the
//! runtime asks for come from nested dual numbers, exact to rounding. Patterns are full, factors dense.

use std::cell::Cell;
use std::marker::PhantomData;

use mbs_runtime::formulation::ImplicitStep;
use mbs_runtime::inputs::{Inputs, NoInputs};
use mbs_runtime::linear::blocks::Blocks;
use mbs_runtime::linear::lu;
use mbs_runtime::{
    Assembly, Constrained, Dims, EvalError, FusedSteps, Hold, Motion, Names, Pattern, Quantity, Scalar,
    SensitivityDims, State, StepError, StepStatistics, System, Weights,
};

use super::dual::Dual;

/// A mechanism.
pub(crate) trait Mechanism {
    const NQ: usize;
    const HOLONOMIC: usize;
    const NORMALISATION: usize = 0;
    const NONHOLONOMIC: usize = 0;
    const NU: usize = 0;
    /// Differentiated parameters.
    const PARAMETERS: usize = 0;
    const OBJECTIVES: usize = 0;

    /// Kinetic energy.
    fn kinetic<S: Scalar>(&self, _rho: &[S], z: &[S], zd: &[S]) -> S;
    /// Generalised forces.
    fn force<S: Scalar>(&self, _rho: &[S], _t: S, _z: &[S], _zd: &[S], _u: &[S], _q: &mut [S]) {}
    /// Φ, normalisation rows last.
    fn phi<S: Scalar>(&self, _rho: &[S], _t: S, _z: &[S], _phi: &mut [S]) {}
    /// Ψ
    fn psi<S: Scalar>(&self, _rho: &[S], _t: S, _z: &[S], _zd: &[S], _psi: &mut [S]) {}
    /// Values of the parameters.
    fn parameters(&self) -> &[f64] {
        &[]
    }
    /// Guesses of z and zd.
    fn guesses<S: Scalar>(&self, _rho: &[S], _z: &mut [S], _zd: &mut [S]) {}
    /// Integrands and terminal terms.
    fn objectives<S: Scalar>(&self, _rho: &[S], _at: Instant<'_, S>, _g: &mut [S], _w: &mut [S]) {}
    fn held(&self) -> &[bool] {
        &[false; 16]
    }
    fn euler_parameters(&self) -> &[usize] {
        &[]
    }
    fn holds(&self) -> &[Hold] {
        &[]
    }
    fn names(&self) -> &[&str] {
        &[]
    }
}

/// All that an objective reads.
#[derive(Clone, Copy)]
pub(crate) struct Instant<'a, S> {
    pub(crate) t: S,
    pub(crate) z: &'a [S],
    pub(crate) zd: &'a [S],
    pub(crate) zdd: &'a [S],
    pub(crate) lambda: &'a [S],
    pub(crate) u: &'a [S],
}

/// A mechanism as a system over the scalar S.
pub(crate) struct Lagrangian<T, S> {
    pub(crate) mechanism: T,
    /// The parameters.
    pub(crate) rho: Vec<S>,
    pub(super) places: Places,
    tangent: Vec<(u32, u32)>,
    holonomic: Vec<(u32, u32)>,
    nonholonomic: Vec<(u32, u32)>,
    /// Whether the static factor pretends to fail.
    pub(crate) broken_factor: Cell<bool>,
    /// What is added to the last of the rates, as if constraints contradicted each other.
    pub(crate) false_rate: Cell<f64>,
    /// First-order states that it pretends to have.
    pub(crate) first_order_states: Cell<usize>,
    scalar: PhantomData<S>,
}

/// Places of derivatives by the parameters, all of them.
pub(super) struct Places {
    pub(super) start: Vec<(u32, u32)>,
    pub(super) coordinates: Vec<(u32, u32)>,
    pub(super) rows: Vec<(u32, u32)>,
    pub(super) objectives: Vec<(u32, u32)>,
    pub(super) joint_tangent: Vec<(u32, u32)>,
    pub(super) joint_rows: Vec<(u32, u32)>,
    pub(super) joint_force: Vec<(u32, u32)>,
    pub(super) joint_row: Vec<(u32, u32)>,
    pub(super) joint_objectives: Vec<(u32, u32)>,
}

pub(super) fn full(rows: usize, columns: usize) -> Vec<(u32, u32)> {
    (0..rows as u32).flat_map(|i| (0..columns as u32).map(move |j| (i, j))).collect()
}

pub(super) fn duals<S: Scalar>(value: &[S], slope: impl Fn(usize) -> S) -> Vec<Dual<S>> {
    value.iter().enumerate().map(|(i, value)| Dual::new(*value, slope(i))).collect()
}

pub(super) fn constant<S: Scalar>(value: &[S]) -> Vec<Dual<S>> {
    duals(value, |_| S::ZERO)
}

pub(super) fn unit<S: Scalar>(i: usize, j: usize) -> S {
    if i == j { S::ONE } else { S::ZERO }
}

impl<T: Mechanism, S: Scalar> Lagrangian<T, S> {
    pub(crate) const HOLONOMIC: usize = T::HOLONOMIC + T::NORMALISATION;
    pub(crate) const ROWS: usize = Self::HOLONOMIC + T::NONHOLONOMIC;
    pub(crate) const N: usize = T::NQ + Self::ROWS;
    pub(crate) const NV: usize = T::NQ - T::NORMALISATION;
    pub(crate) const JOINT_ROWS: usize = T::HOLONOMIC + T::NONHOLONOMIC;
    pub(crate) const JOINT: usize = Self::NV + Self::JOINT_ROWS;
    const SENSITIVITY: SensitivityDims = {
        let (q, h, n, p) = (T::NQ, Self::HOLONOMIC, T::NONHOLONOMIC, T::PARAMETERS);
        let objectives = T::OBJECTIVES * (1 + 3 * q + Self::ROWS + p);
        SensitivityDims {
            parameters: p,
            start: (q + q - T::NORMALISATION) * p,
            newton: 3 * q * q + h * q + 2 * n * q + (q + h + n) * p,
            projections: 2 * q * q + 2 * h * q + 3 * n * q + 2 * (q + h + n) * p,
            integrands: objectives,
            terminals: objectives,
            joint: Self::NV * (3 * Self::NV + 2 * Self::JOINT_ROWS + p) + Self::JOINT_ROWS * p,
            joint_factors: 2 * Self::JOINT * Self::JOINT + Self::JOINT,
            joint_integrands: T::OBJECTIVES * (1 + 3 * Self::NV + Self::JOINT_ROWS + p),
            joint_terminals: T::OBJECTIVES * (1 + 3 * Self::NV + Self::JOINT_ROWS + p),
            product_columns: 0,
            tangent_product: 0,
        }
    };
    pub(crate) const DIMS: Dims = Dims {
        nq: T::NQ,
        nv: T::NQ - T::NORMALISATION,
        nu: T::NU,
        n_holonomic: T::HOLONOMIC,
        n_normalisation: T::NORMALISATION,
        n_nonholonomic: T::NONHOLONOMIC,
        n_matrix: T::NQ * T::NQ + T::NQ * Self::HOLONOMIC + 2 * T::NQ * T::NONHOLONOMIC + Self::ROWS,
        n_factors: Self::N * Self::N + Self::N,
        n_objectives: T::OBJECTIVES,
        sensitivity: Self::SENSITIVITY,
        ..Dims::ZERO
    };

    pub(crate) fn new(mechanism: T) -> Self {
        Self {
            rho: mechanism.parameters().iter().map(|rho| S::from_f64(*rho)).collect(),
            mechanism,
            places: Places {
                start: full(T::NQ, T::PARAMETERS),
                coordinates: full(T::NQ, T::PARAMETERS),
                rows: full(Self::ROWS, T::PARAMETERS),
                objectives: full(T::OBJECTIVES, 3 * T::NQ + Self::ROWS + T::PARAMETERS),
                joint_tangent: full(Self::NV, Self::NV),
                joint_rows: full(Self::JOINT_ROWS, Self::NV),
                joint_force: full(Self::NV, T::PARAMETERS),
                joint_row: full(Self::JOINT_ROWS, T::PARAMETERS),
                joint_objectives: full(T::OBJECTIVES, 3 * Self::NV + Self::JOINT_ROWS + T::PARAMETERS),
            },
            tangent: full(T::NQ, T::NQ),
            holonomic: full(Self::HOLONOMIC, T::NQ),
            nonholonomic: full(T::NONHOLONOMIC, T::NQ),
            broken_factor: Cell::new(false),
            false_rate: Cell::new(0.0),
            first_order_states: Cell::new(0),
            scalar: PhantomData,
        }
    }

    /// d/dt ∂T/∂zd − ∂T/∂z − Q + (Φ_zᵀ, Aᵀ) λ, over any scalar.
    #[inline(never)]
    #[allow(clippy::too_many_arguments, reason = "all that equations of motion read")]
    pub(super) fn r<X: Scalar>(
        &self,
        rho: &[X],
        t: X,
        z: &[X],
        zd: &[X],
        zdd: &[X],
        lambda: &[X],
        u: &[X],
    ) -> Vec<X> {
        let mut q = vec![X::ZERO; T::NQ];
        self.mechanism.force(rho, t, z, zd, u, &mut q);
        (0..T::NQ)
            .map(|i| {
                // Outer slope along time, inner along zd_i.
                let z_t: Vec<Dual<Dual<X>>> = (0..T::NQ)
                    .map(|j| Dual::new(Dual::new(z[j], X::ZERO), Dual::new(zd[j], X::ZERO)))
                    .collect();
                let zd_t: Vec<Dual<Dual<X>>> = (0..T::NQ)
                    .map(|j| Dual::new(Dual::new(zd[j], unit(i, j)), Dual::new(zdd[j], X::ZERO)))
                    .collect();
                let momentum_rate =
                    self.mechanism.kinetic(&constant(&constant(rho)), &z_t, &zd_t).slope.slope;
                let by_z =
                    self.mechanism.kinetic(&constant(rho), &duals(z, |j| unit(i, j)), &constant(zd)).slope;
                let mut rows = vec![Dual::<X>::ZERO; Self::ROWS];
                let (phi, psi) = rows.split_at_mut(Self::HOLONOMIC);
                self.mechanism.phi(&constant(rho), Dual::new(t, X::ZERO), &duals(z, |j| unit(i, j)), phi);
                self.mechanism.psi(
                    &constant(rho),
                    Dual::new(t, X::ZERO),
                    &constant(z),
                    &duals(zd, |j| unit(i, j)),
                    psi,
                );
                let reaction = rows.iter().zip(lambda).fold(X::ZERO, |sum, (row, l)| sum + row.slope * *l);
                momentum_rate - by_z - q[i] + reaction
            })
            .collect()
    }

    /// Φ and Ψ.
    #[inline(never)]
    pub(crate) fn rows<X: Scalar>(&self, rho: &[X], t: X, z: &[X], zd: &[X]) -> Vec<X> {
        let mut rows = vec![X::ZERO; Self::ROWS];
        let (phi, psi) = rows.split_at_mut(Self::HOLONOMIC);
        self.mechanism.phi(rho, t, z, phi);
        self.mechanism.psi(rho, t, z, zd, psi);
        rows
    }

    /// Φd and Ψ.
    #[inline(never)]
    pub(crate) fn rates<X: Scalar>(&self, rho: &[X], t: X, z: &[X], zd: &[X]) -> Vec<X> {
        let mut rates: Vec<X> = self
            .rows(&constant(rho), Dual::new(t, X::ONE), &duals(z, |j| zd[j]), &constant(zd))
            .into_iter()
            .map(|row| row.slope)
            .collect();
        self.mechanism.psi(rho, t, z, zd, &mut rates[Self::HOLONOMIC..]);
        rates
    }

    /// Φdd and Ψd.
    #[inline(never)]
    pub(crate) fn accelerations<X: Scalar>(&self, rho: &[X], t: X, z: &[X], zd: &[X], zdd: &[X]) -> Vec<X> {
        self.rates(&constant(rho), Dual::new(t, X::ONE), &duals(z, |j| zd[j]), &duals(zd, |j| zdd[j]))
            .into_iter()
            .map(|row| row.slope)
            .collect()
    }

    /// A state at `t` with these guesses, not yet consistent.
    pub(crate) fn guess(&self, t: f64, z: &[f64], zd: &[f64]) -> Vec<S> {
        let mut state = vec![S::ZERO; State::<S>::len(&Self::DIMS)];
        let mut view = State::of(&Self::DIMS, &mut state).unwrap();
        view.reset(S::from_f64(t));
        for (to, from) in view.z.iter_mut().zip(z).chain(view.zd.iter_mut().zip(zd)) {
            *to = S::from_f64(*from);
        }
        state
    }

    /// A consistent state at `t` from these guesses.
    pub(crate) fn start(&self, t: f64, z: &[f64], zd: &[f64]) -> Vec<S> {
        let mut state = self.guess(t, z, zd);
        let mut scratch = vec![S::ZERO; Assembly::scratch_len(&Self::DIMS)];
        Assembly::DEFAULT.start(self, &mut NoInputs, &mut state, &mut scratch).unwrap();
        state
    }

    /// A consistent state at `t` from the mechanism's own guesses, with some rows switched off.
    pub(crate) fn model_start(&self, t: f64, inputs: &mut impl Inputs<S>, off: &[usize]) -> Vec<S> {
        super::erased::model_start(&super::erased::any(self), t, inputs, off)
    }

    /// The parts of a state.
    pub(crate) fn view<'a>(&self, state: &'a mut [S]) -> State<'a, S> {
        State::of(&Self::DIMS, state).unwrap()
    }

    /// Steps of equal size.
    pub(crate) fn steps(
        &self,
        method: &impl ImplicitStep,
        state: &mut [S],
        h: f64,
        steps: usize,
    ) -> Result<StepStatistics, StepError> {
        let mut scratch = vec![S::ZERO; method.scratch_len(&Self::DIMS)];
        let mut last = StepStatistics::default();
        for _ in 0..steps {
            last = method.step(self, &mut NoInputs, state, S::from_f64(h), &mut scratch)?;
        }
        Ok(last)
    }

    /// The largest violation of positions, velocities, accelerations.
    pub(crate) fn violations(&self, state: &mut [S]) -> [f64; 3] {
        let view = State::of(&Self::DIMS, state).unwrap();
        let (t, z, zd, zdd) = (*view.t, &*view.z, &*view.zd, &*view.zdd);
        let largest = |rows: &[S]| rows.iter().map(|row| row.real().abs()).fold(0.0, f64::max);
        [
            largest(&self.rows(&self.rho, t, z, zd)[..Self::HOLONOMIC]),
            largest(&self.rates(&self.rho, t, z, zd)),
            largest(&self.accelerations(&self.rho, t, z, zd, zdd)),
        ]
    }

    fn write_rows(&self, t: S, z: &[S], zd: &[S], ratio: S, matrix: &mut [S]) {
        let (nq, nh, nn) = (T::NQ, Self::HOLONOMIC, T::NONHOLONOMIC);
        for j in 0..nq {
            let time = Dual::new(t, S::ZERO);
            let by_z = self.rows(&constant(&self.rho), time, &duals(z, |i| unit(i, j)), &constant(zd));
            let by_zd = self.rows(&constant(&self.rho), time, &constant(z), &duals(zd, |i| unit(i, j)));
            for k in 0..nh {
                matrix[nq * nq + k * nq + j] = by_z[k].slope;
            }
            for k in 0..nn {
                let a = by_zd[nh + k].slope;
                matrix[nq * nq + (nh + k) * nq + j] = a;
                matrix[nq * nq + (nh + nn + k) * nq + j] = a + ratio * by_z[nh + k].slope;
            }
        }
    }
}

impl<T: Mechanism, S: Scalar> System for Lagrangian<T, S> {
    type S = S;
    #[inline(always)]
    fn dims(&self) -> Dims {
        Dims { nx: self.first_order_states.get(), ..Self::DIMS }
    }
    fn euler_parameters(&self) -> &[usize] {
        self.mechanism.euler_parameters()
    }
    fn holds(&self) -> &[Hold] {
        self.mechanism.holds()
    }
}

impl<T: Mechanism, S: Scalar> FusedSteps for Lagrangian<T, S> {}

impl<T: Mechanism, S: Scalar> Constrained for Lagrangian<T, S> {
    fn pattern(&self) -> Pattern<'_> {
        Pattern { tangent: &self.tangent, holonomic: &self.holonomic, nonholonomic: &self.nonholonomic }
    }

    fn held(&self) -> &[bool] {
        &self.mechanism.held()[..T::NQ]
    }

    fn residual(
        &self,
        at: Motion<'_, S>,
        lambda: &[S],
        _: &mut [S],
        r: &mut [S],
        phi: &mut [S],
    ) -> Result<(), EvalError> {
        r.copy_from_slice(&self.r(&self.rho, at.t, at.z, at.zd, at.zdd, lambda, at.u));
        phi.copy_from_slice(&self.rows(&self.rho, at.t, at.z, at.zd));
        Ok(())
    }

    fn newton(
        &self,
        at: Motion<'_, S>,
        lambda: &[S],
        weights: Weights<S>,
        w: &mut [S],
        r: &mut [S],
        phi: &mut [S],
        matrix: &mut [S],
    ) -> Result<(), EvalError> {
        self.residual(at, lambda, w, r, phi)?;
        for j in 0..T::NQ {
            let column = self.r(
                &constant(&self.rho),
                Dual::new(at.t, S::ZERO),
                &duals(at.z, |i| unit::<S>(i, j) * weights.position),
                &duals(at.zd, |i| unit::<S>(i, j) * weights.velocity),
                &duals(at.zdd, |i| unit(i, j)),
                &constant(lambda),
                &constant(at.u),
            );
            for i in 0..T::NQ {
                matrix[i * T::NQ + j] = column[i].slope;
            }
        }
        self.write_rows(at.t, at.z, at.zd, weights.ratio, matrix);
        Ok(())
    }

    fn projection(&self, t: S, z: &[S], u: &[S], _: &mut [S], matrix: &mut [S]) -> Result<(), EvalError> {
        let zero = vec![S::ZERO; T::NQ];
        let none = vec![S::ZERO; Self::ROWS];
        for j in 0..T::NQ {
            let column = self.r(
                &constant(&self.rho),
                Dual::new(t, S::ZERO),
                &constant(z),
                &constant(&zero),
                &duals(&zero, |i| unit(i, j)),
                &constant(&none),
                &constant(u),
            );
            for i in 0..T::NQ {
                matrix[i * T::NQ + j] = column[i].slope;
            }
        }
        self.write_rows(t, z, &zero, S::ZERO, matrix);
        Ok(())
    }

    fn constraint_rates(&self, at: Motion<'_, S>, _: &mut [S], phid: &mut [S]) -> Result<(), EvalError> {
        phid.copy_from_slice(&self.rates(&self.rho, at.t, at.z, at.zd));
        if let Some(last) = phid.last_mut() {
            *last += S::from_f64(self.false_rate.get());
        }
        Ok(())
    }

    fn constraint_accelerations(
        &self,
        at: Motion<'_, S>,
        _: &mut [S],
        phidd: &mut [S],
    ) -> Result<(), EvalError> {
        phidd.copy_from_slice(&self.accelerations(&self.rho, at.t, at.z, at.zd, at.zdd));
        Ok(())
    }

    fn factor(&self, matrix: &[S], _: &mut [S], factors: &mut [S]) -> Result<(), EvalError> {
        if self.broken_factor.get() {
            return Err(EvalError::SingularLeading { quantity: Quantity::Coordinate, index: 0 });
        }
        let (dense, pivots) = factors.split_at_mut(Self::N * Self::N);
        Blocks::of(&Self::DIMS, &self.pattern(), matrix)?.dense(&Self::DIMS, &self.pattern(), dense);
        lu::factor(Self::N, dense, pivots)
            .map_err(|index| EvalError::SingularLeading { quantity: Quantity::Coordinate, index })
    }

    fn solve(&self, factors: &[S], _: &mut [S], x: &mut [S]) -> Result<(), EvalError> {
        let (dense, pivots) = factors.split_at(Self::N * Self::N);
        lu::solve(Self::N, dense, pivots, x);
        Ok(())
    }

    fn solve_transposed(&self, factors: &[S], _: &mut [S], x: &mut [S]) -> Result<(), EvalError> {
        let (dense, pivots) = factors.split_at(Self::N * Self::N);
        lu::solve_transposed(Self::N, dense, pivots, x);
        Ok(())
    }
}

impl<T: Mechanism, S> Names for Lagrangian<T, S> {
    fn name(&self, quantity: Quantity, index: usize) -> Option<&str> {
        match quantity {
            Quantity::Holonomic => self.mechanism.names().get(index).copied(),
            Quantity::Nonholonomic => self.mechanism.names().get(T::HOLONOMIC + index).copied(),
            _ => None,
        }
    }
}
