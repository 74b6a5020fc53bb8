//! Products with the derivative of a step: from derivatives at its start to those at its end.

use super::bordered::Unsolved;
use super::columns::{Directions, add_products, scale, silence, subtract_parameters, subtract_product};
use super::derivatives::Sensitivities;
use super::residual::{add_sizes, add_sizes_of};
use super::state::{Parts, StateDerivatives};
use super::step::{Enforcement, LinearisedStep, max_columns};
use super::values::{MotionValues, ProjectionValues};
use crate::constrained::Stabilisation;
use crate::error::{EvalError, StepError};
use crate::formulation::newton::Failure;
use crate::linear::blocks::{holonomic_rows, row, unknown};
use crate::linear::{add_scaled, copy};
use crate::scalar::Scalar;
use crate::system::Dims;

impl<M: Sensitivities> LinearisedStep<'_, M> {
    /// From the derivatives of the state at the start of the step to those at its end, both as
    /// [`StateDerivatives`]; λ_ρ of the start is not read.
    #[inline(always)]
    pub fn sensitivities(&mut self, start: &[M::S], end: &mut [M::S]) -> Result<(), StepError> {
        let columns = self.system.dims().sensitivity.parameters;
        self.forward(columns, Directions::Each, start, end)
    }

    /// The product with perturbations of state and parameters, a column for each: `start` and `end` as
    /// [`StateDerivatives`] with this many columns, `rho` with a row for each parameter.
    pub fn apply(
        &mut self,
        columns: usize,
        start: &[M::S],
        rho: &[M::S],
        end: &mut [M::S],
    ) -> Result<(), StepError> {
        check_columns(&self.system.dims(), columns, rho.len())?;
        self.forward(columns, Directions::Along(rho), start, end)
    }

    #[inline(always)]
    fn forward(
        &mut self,
        columns: usize,
        directions: Directions<'_, M::S>,
        start: &[M::S],
        end: &mut [M::S],
    ) -> Result<(), StepError> {
        let start = Parts::of(&self.system.dims(), columns, start)?;
        let mut end = StateDerivatives::with_columns(&self.system.dims(), columns, end)?;
        self.predict(&start, &mut end);
        self.newton_columns(columns, directions, &mut end)?;
        if self.projected() {
            self.project_rates(columns, directions, &mut end)?;
            self.project_accelerations(columns, directions, &mut end)?;
        }
        if self.least_norm {
            self.least_norm(columns, directions, &mut end)?;
        }
        if !self.formulas.keeps_acceleration {
            copy(end.a, end.zdd);
        }
        Ok(())
    }

    /// p in the place of z, q in that of zd, and what a is without δ.
    #[inline(always)]
    fn predict(&self, start: &Parts<'_, M::S>, end: &mut StateDerivatives<'_, M::S>) {
        let f = self.formulas;
        let accelerations = start.zdd.iter().zip(start.a);
        let before = start.z.iter().zip(start.zd).zip(accelerations);
        let after = end.z.iter_mut().zip(end.zd.iter_mut()).zip(end.a.iter_mut());
        for (((p, q), a_next), ((&z, &zd), (&zdd, &a))) in after.zip(before) {
            if f.keeps_acceleration {
                *a_next = f.a_zdd * zdd + f.a_a * a;
                *p = z + f.h * zd + f.position * a + f.position_next * *a_next;
                *q = zd + f.velocity * a + f.velocity_next * *a_next;
            } else {
                *a_next = M::S::ZERO;
                *p = z + f.h * zd + f.position * zdd;
                *q = zd + f.velocity * zdd;
            }
        }
    }

    /// z′, zd*′, zdd*′, a′, λ*′ from p and q.
    #[inline(always)]
    fn newton_columns(
        &mut self,
        columns: usize,
        directions: Directions<'_, M::S>,
        end: &mut StateDerivatives<'_, M::S>,
    ) -> Result<(), StepError> {
        let (dims, failure) = (self.system.dims(), self.failure);
        let fail = |error| failure.of(error);
        let (pattern, places) = (self.system.pattern(), self.system.parameter_places());
        let values = MotionValues::of(&pattern, &places, self.motion).map_err(fail)?;
        let weights = self.formulas.weights;
        let n = (dims.nq + dims.rows()) * columns;
        let b = self.b.get_mut(..n).unwrap_or_default();
        b.fill(M::S::ZERO);
        let (top, rows) = b.split_at_mut_checked(dims.nq * columns).unwrap_or_default();
        // −K p − C q − r_ρ
        let (one, minus) = (M::S::ONE, -M::S::ONE);
        let terms = [(minus, values.by_position, &*end.z), (minus, values.by_velocity, &*end.zd)];
        add_products(pattern.tangent, columns, terms, top);
        subtract_parameters(places.residual, values.residual, one, columns, directions, top);
        match self.enforcement {
            Enforcement::Positions { .. } => {
                // −(Φ_z p + Φ_ρ)/(βh²), −(A q + Ψ_z p + Ψ_ρ)/(γh)
                let constraints = places.constraints;
                subtract_parameters(constraints, values.constraints, one, columns, directions, rows);
                let (phi, psi) =
                    rows.split_at_mut_checked(holonomic_rows(&dims) * columns).unwrap_or_default();
                subtract_product(pattern.holonomic, values.holonomic, columns, end.z, phi);
                let terms = [(minus, values.nonholonomic, &*end.zd), (minus, values.nonholonomic_z, &*end.z)];
                add_products(pattern.nonholonomic, columns, terms, psi);
                scale(phi, M::S::ONE / weights.position);
                scale(psi, M::S::ONE / weights.velocity);
            }
            Enforcement::Accelerations(stabilisation) => {
                let (phi, psi) =
                    rows.split_at_mut_checked(holonomic_rows(&dims) * columns).unwrap_or_default();
                // −c_z p − c_zd q − c_ρ
                let k = pattern.holonomic.len();
                let (phi_z, psi_z) = self.rows_z.split_at_checked(k).unwrap_or_default();
                let (phi_zd, psi_zd) = self.rows_zd.split_at_checked(k).unwrap_or_default();
                let terms = [(minus, phi_z, &*end.z), (minus, phi_zd, &*end.zd)];
                add_products(pattern.holonomic, columns, terms, phi);
                let terms = [(minus, psi_z, &*end.z), (minus, psi_zd, &*end.zd)];
                add_products(pattern.nonholonomic, columns, terms, psi);
                self.subtract_rows_rho(stabilisation, columns, directions).map_err(fail)?;
            }
        }
        let b = self.b.get_mut(..n).unwrap_or_default();
        let (_, rows) = b.split_at_mut_checked(dims.nq * columns).unwrap_or_default();
        if let Some(active) = self.active {
            silence(active, columns, rows);
        }
        if self.redundant {
            self.measure_newton(end).map_err(fail)?;
        }
        self.solve(columns, Which::Newton, directions)?;

        let x = self.x.get(..n).unwrap_or_default();
        let (delta, lambda) = x.split_at_checked(dims.nq * columns).unwrap_or_default();
        let moved = end.z.iter_mut().zip(end.zd.iter_mut()).zip(end.zdd.iter_mut().zip(end.a.iter_mut()));
        for (((z, zd), (zdd, a)), &delta) in moved.zip(delta) {
            *z += weights.position * delta;
            *zd += weights.velocity * delta;
            *zdd = delta;
            *a += self.formulas.a_zdd_next * delta;
        }
        copy(end.lambda, lambda);
        Ok(())
    }

    /// b −= c_ρ = (Φdd + a Φd + b Φ)_ρ, (Ψd + a Ψ)_ρ in the rows.
    #[inline(always)]
    fn subtract_rows_rho(
        &mut self,
        stabilisation: Stabilisation<M::S>,
        columns: usize,
        directions: Directions<'_, M::S>,
    ) -> Result<(), EvalError> {
        let (pattern, places) = (self.system.pattern(), self.system.parameter_places());
        let motion = MotionValues::of(&pattern, &places, self.motion)?;
        let values = ProjectionValues::of(&pattern, &places, self.projections)?;
        let rows = self.b.get_mut(self.system.dims().nq * columns..).unwrap_or_default();
        let Stabilisation { rate, value, .. } = stabilisation;
        subtract_parameters(places.accelerations, values.accelerations, M::S::ONE, columns, directions, rows);
        subtract_parameters(places.rates, values.rates, rate, columns, directions, rows);
        let holonomic = holonomic_rows(&self.system.dims());
        let count = places.constraints.partition_point(|(row, _)| (*row as usize) < holonomic);
        let places = places.constraints.get(..count).unwrap_or_default();
        subtract_parameters(places, motion.constraints, value, columns, directions, rows);
        Ok(())
    }

    /// zd′ from zd*′.
    #[inline(always)]
    fn project_rates(
        &mut self,
        columns: usize,
        directions: Directions<'_, M::S>,
        end: &mut StateDerivatives<'_, M::S>,
    ) -> Result<(), StepError> {
        let (dims, failure) = (self.system.dims(), self.failure);
        let fail = |error| failure.of(error);
        let (pattern, places) = (self.system.pattern(), self.system.parameter_places());
        let motion = MotionValues::of(&pattern, &places, self.motion).map_err(fail)?;
        let values = ProjectionValues::of(&pattern, &places, self.projections).map_err(fail)?;
        let n = (dims.nq + dims.rows()) * columns;
        let b = self.b.get_mut(..n).unwrap_or_default();
        b.fill(M::S::ZERO);
        let (top, rows) = b.split_at_mut_checked(dims.nq * columns).unwrap_or_default();
        // M zd*′ − (M d + Bᵀσ)_z z′ − (M d + Bᵀσ)_ρ
        let (one, minus) = (M::S::ONE, -M::S::ONE);
        let terms = [(one, motion.mass, &*end.zd), (minus, values.velocity_impulse, &*end.z)];
        add_products(pattern.tangent, columns, terms, top);
        subtract_parameters(places.impulse, values.velocity_impulse_rho, one, columns, directions, top);
        // −(Φd; Ψ)_z z′ − (Φd; Ψ)_ρ
        subtract_parameters(places.rates, values.rates, one, columns, directions, rows);
        let (phi, psi) = rows.split_at_mut_checked(holonomic_rows(&dims) * columns).unwrap_or_default();
        subtract_product(pattern.holonomic, values.rates_z, columns, end.z, phi);
        subtract_product(pattern.nonholonomic, values.nonholonomic_z, columns, end.z, psi);
        if let Some(active) = self.active {
            silence(active, columns, rows);
        }
        if self.redundant {
            let (phi, psi) = split_noise(&dims, self.memory.noise);
            let [_, zd, _] = self.sizes;
            add_sizes_of(pattern.holonomic, motion.holonomic, zd, phi);
            add_sizes_of(pattern.nonholonomic, motion.nonholonomic, zd, psi);
            add_sizes(pattern.holonomic, values.rates_z, end.z, 1.0, phi);
            add_sizes(pattern.nonholonomic, values.nonholonomic_z, end.z, 1.0, psi);
        }
        self.solve(columns, Which::Projection, directions)?;
        copy(end.zd, self.x);
        Ok(())
    }

    /// zdd′ from zdd*′, and λ′.
    #[inline(always)]
    fn project_accelerations(
        &mut self,
        columns: usize,
        directions: Directions<'_, M::S>,
        end: &mut StateDerivatives<'_, M::S>,
    ) -> Result<(), StepError> {
        let (dims, failure) = (self.system.dims(), self.failure);
        let fail = |error| failure.of(error);
        let (pattern, places) = (self.system.pattern(), self.system.parameter_places());
        let motion = MotionValues::of(&pattern, &places, self.motion).map_err(fail)?;
        let values = ProjectionValues::of(&pattern, &places, self.projections).map_err(fail)?;
        let n = (dims.nq + dims.rows()) * columns;
        let b = self.b.get_mut(..n).unwrap_or_default();
        b.fill(M::S::ZERO);
        let (top, rows) = b.split_at_mut_checked(dims.nq * columns).unwrap_or_default();
        // M zdd*′ − (M e + Bᵀκ)_z z′ − (M e + Bᵀκ)_ρ
        let (one, minus) = (M::S::ONE, -M::S::ONE);
        let terms = [(one, motion.mass, &*end.zdd), (minus, values.acceleration_impulse, &*end.z)];
        add_products(pattern.tangent, columns, terms, top);
        subtract_parameters(places.impulse, values.acceleration_impulse_rho, one, columns, directions, top);
        // −(Φdd; Ψd)_z z′ − (Φdd; Ψd)_zd zd′ − (Φdd; Ψd)_ρ, where Φdd_zd = 2 Φd_z
        subtract_parameters(places.accelerations, values.accelerations, one, columns, directions, rows);
        let (phi, psi) = rows.split_at_mut_checked(holonomic_rows(&dims) * columns).unwrap_or_default();
        let terms = [(minus, values.accelerations_z, &*end.z), (minus + minus, values.rates_z, &*end.zd)];
        add_products(pattern.holonomic, columns, terms, phi);
        let (by_z, by_zd) = (values.nonholonomic_rates_z, values.nonholonomic_rates_zd);
        let terms = [(minus, by_z, &*end.z), (minus, by_zd, &*end.zd)];
        add_products(pattern.nonholonomic, columns, terms, psi);
        if let Some(active) = self.active {
            silence(active, columns, rows);
        }
        if self.redundant {
            let (phi, psi) = split_noise(&dims, self.memory.noise);
            let [_, zd, zdd] = self.sizes;
            add_sizes_of(pattern.holonomic, motion.holonomic, zdd, phi);
            add_sizes_of(pattern.holonomic, values.rates_z, zd, phi);
            add_sizes_of(pattern.nonholonomic, motion.nonholonomic, zdd, psi);
            add_sizes(pattern.holonomic, values.accelerations_z, end.z, 1.0, phi);
            add_sizes(pattern.holonomic, values.rates_z, end.zd, 2.0, phi);
            add_sizes(pattern.nonholonomic, values.nonholonomic_rates_z, end.z, 1.0, psi);
            add_sizes(pattern.nonholonomic, values.nonholonomic_rates_zd, end.zd, 1.0, psi);
        }
        self.solve(columns, Which::Projection, directions)?;
        let (zdd, kappa) = self.x.split_at_checked(dims.nq * columns).unwrap_or_default();
        copy(end.zdd, zdd);
        add_scaled(end.lambda, M::S::ONE, kappa);
        Ok(())
    }

    /// What cancels in the rows of Newton's method.
    #[cold]
    fn measure_newton(&mut self, end: &StateDerivatives<'_, M::S>) -> Result<(), EvalError> {
        let (pattern, places) = (self.system.pattern(), self.system.parameter_places());
        let values = MotionValues::of(&pattern, &places, self.motion)?;
        let weights = self.formulas.weights;
        let (by_position, by_velocity) = (1.0 / weights.position.real(), 1.0 / weights.velocity.real());
        let (phi, psi) = split_noise(&self.system.dims(), self.memory.noise);
        match self.enforcement {
            Enforcement::Positions { .. } => {
                let [z, zd, _] = self.sizes;
                add_sizes_of(pattern.holonomic, values.holonomic, z * by_position, phi);
                add_sizes_of(pattern.nonholonomic, values.nonholonomic, zd * by_velocity, psi);
                add_sizes(pattern.holonomic, values.holonomic, end.z, by_position, phi);
                add_sizes(pattern.nonholonomic, values.nonholonomic, end.zd, by_velocity, psi);
                add_sizes(pattern.nonholonomic, values.nonholonomic_z, end.z, by_velocity, psi);
            }
            Enforcement::Accelerations(_) => {
                let [z, zd, zdd] = self.sizes;
                add_sizes_of(pattern.holonomic, values.holonomic, zdd, phi);
                add_sizes_of(pattern.nonholonomic, values.nonholonomic, zdd, psi);
                let k = pattern.holonomic.len();
                let parts = [(&*self.rows_z, &*end.z, z), (&*self.rows_zd, &*end.zd, zd)];
                for (derivatives, x, size) in parts {
                    let (first, second) = derivatives.split_at_checked(k).unwrap_or_default();
                    add_sizes_of(pattern.holonomic, first, size, phi);
                    add_sizes_of(pattern.nonholonomic, second, size, psi);
                    add_sizes(pattern.holonomic, first, x, 1.0, phi);
                    add_sizes(pattern.nonholonomic, second, x, 1.0, psi);
                }
            }
        }
        Ok(())
    }

    /// x from b.
    #[inline(always)]
    pub(super) fn solve(
        &mut self,
        columns: usize,
        which: Which,
        directions: Directions<'_, M::S>,
    ) -> Result<(), StepError> {
        let n = (self.system.dims().nq + self.system.dims().rows()) * columns;
        let (b, x) = (self.b.get(..n).unwrap_or_default(), self.x.get_mut(..n).unwrap_or_default());
        let bordered = match which {
            Which::Newton => &mut self.newton,
            Which::Projection => &mut self.projection,
        };
        let (memory, w) = (&mut self.memory, &mut *self.w);
        let solved = bordered.solve(self.system, self.active, false, columns, b, x, memory, w);
        solved.map_err(|unsolved| {
            let named = matches!(directions, Directions::Each);
            failed(&self.system.dims(), self.failure, named, unsolved)
        })
    }
}

/// A system to be solved.
#[derive(Clone, Copy)]
pub(super) enum Which {
    Newton,
    Projection,
}

/// The noise of holonomic and of nonholonomic rows, all of it zero.
pub(super) fn split_noise<'a, S: Scalar>(dims: &Dims, noise: &'a mut [S]) -> (&'a mut [S], &'a mut [S]) {
    noise.fill(S::ZERO);
    let rows = noise.get_mut(dims.nq..).unwrap_or_default();
    rows.split_at_mut_checked(holonomic_rows(dims)).unwrap_or_default()
}

/// The error of a system that has no solution.
#[cold]
pub(super) fn failed(dims: &Dims, failure: Failure, named: bool, unsolved: Unsolved) -> StepError {
    match unsolved {
        Unsolved::Eval(error) => failure.of(error),
        Unsolved::Left { equation, column } if named && equation >= dims.nq => {
            let (quantity, index) = row(dims, equation - dims.nq);
            StepError::Incompatible { t: failure.t, h: failure.h, parameter: column, quantity, index }
        }
        Unsolved::Left { equation, .. } => {
            let (quantity, index) = unknown(dims, equation);
            failure.of(EvalError::SingularLeading { quantity, index })
        }
    }
}

/// As many columns as there is memory for, and as many rows as parameters.
pub(super) fn check_columns(dims: &Dims, columns: usize, found: usize) -> Result<(), StepError> {
    let expected = dims.sensitivity.parameters * columns;
    if columns == 0 || columns > max_columns(dims) {
        let what = "a product has at least one column, and at most as many as parameters or objectives";
        Err(StepError::Setting { what, value: columns as f64 })
    } else if found != expected {
        Err(StepError::Length { what: "rho", expected, found })
    } else {
        Ok(())
    }
}
