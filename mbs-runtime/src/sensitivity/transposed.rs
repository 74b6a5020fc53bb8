//! Transposed products with the derivative of a step: from weights of what it leaves to weights of what enters it.
//!
//! Each part of the product in reverse order. With the weights of a quantity written as its name and a bar,
//!
//! ```text
//! (s2, τ2) from (zdd̄, λ̄) by the projection      zdd*̄ = M s2    z̄ −= (M e + Bᵀκ)_zᵀ s2 + (Φdd; Ψd)_zᵀ τ2    zd̄ −= (Φdd; Ψd)_zdᵀ τ2
//! (s1, τ1) from (zd̄, 0) by the projection        zd*̄ = M s1     z̄ −= (M d + Bᵀσ)_zᵀ s1 + (Φd; Ψ)_zᵀ τ1
//! (s, τ) from (βh² z̄ + γh zd*̄ + zdd*̄ + ā, λ̄) by Newton's matrix, transposed
//! p̄ = z̄ − Kᵀ s − Φ_zᵀ τ/(βh²) − Ψ_zᵀ τ′/(γh)     q̄ = zd*̄ − Cᵀ s − Aᵀ τ′/(γh)
//! ```
//!
//! and everything by ρ alike.

use super::columns::{add_transposed, scale, silence};
use super::derivatives::Sensitivities;
use super::forward::{Which, check_columns, failed};
use super::state::{Parts, StateDerivatives};
use super::step::{Enforcement, LinearisedStep};
use super::values::{MotionValues, ProjectionValues};
use crate::constrained::Stabilisation;
use crate::error::{EvalError, StepError};
use crate::linear::blocks::holonomic_rows;
use crate::linear::copy;
use crate::scalar::Scalar;

impl<M: Sensitivities> LinearisedStep<'_, M> {
    /// Writes the transposed product with `end`: ⟨apply(x, ρ), y⟩ = ⟨(x, ρ), apply_transpose(y)⟩ for each column.
    /// Layouts as for [`LinearisedStep::apply`]; the part of λ in `start` is zero, a step does not depend on it.
    pub fn apply_transpose(
        &mut self,
        columns: usize,
        end: &[M::S],
        start: &mut [M::S],
        rho: &mut [M::S],
    ) -> Result<(), StepError> {
        let dims = self.system.dims();
        check_columns(&dims, columns, rho.len())?;
        let end = Parts::of(&dims, columns, end)?;
        let mut bar = StateDerivatives::with_columns(&dims, columns, start)?;
        copy(bar.z, end.z);
        copy(bar.zd, end.zd);
        copy(bar.zdd, end.zdd);
        copy(bar.lambda, end.lambda);
        copy(bar.a, end.a);
        rho.fill(M::S::ZERO);
        if !self.formulas.keeps_acceleration {
            for (zdd, &a) in bar.zdd.iter_mut().zip(end.a) {
                *zdd += a;
            }
            bar.a.fill(M::S::ZERO);
        }
        self.reverse_projections(columns, &mut bar, rho)?;
        self.reverse_newton(columns, &mut bar, rho)?;
        self.reverse_prediction(&mut bar);
        Ok(())
    }

    /// From weights of (z, zd, zdd, λ) to those of (z, zd*, zdd*, λ*).
    fn reverse_projections(
        &mut self,
        columns: usize,
        bar: &mut StateDerivatives<'_, M::S>,
        rho: &mut [M::S],
    ) -> Result<(), StepError> {
        let failure = self.failure;
        let fail = |error| failure.of(error);
        if self.least_norm {
            self.least_norm_transposed(columns, bar.lambda, bar.z, rho).map_err(fail)?;
        }
        if self.projected() {
            let nq = self.system.dims().nq * columns;
            copy(self.b, bar.zdd);
            copy(self.b.get_mut(nq..).unwrap_or_default(), bar.lambda);
            self.solve_transposed(columns, Which::Projection)?;
            self.reverse_accelerations(columns, bar, rho).map_err(fail)?;
            copy(self.b, bar.zd);
            self.b.get_mut(nq..).unwrap_or_default().fill(M::S::ZERO);
            self.solve_transposed(columns, Which::Projection)?;
            self.reverse_rates(columns, bar, rho).map_err(fail)?;
        }
        Ok(())
    }

    fn reverse_accelerations(
        &mut self,
        columns: usize,
        bar: &mut StateDerivatives<'_, M::S>,
        rho: &mut [M::S],
    ) -> Result<(), EvalError> {
        let (pattern, places) = (self.system.pattern(), self.system.parameter_places());
        let motion = MotionValues::of(&pattern, &places, self.motion)?;
        let values = ProjectionValues::of(&pattern, &places, self.projections)?;
        let (dims, minus) = (self.system.dims(), -M::S::ONE);
        let (s, tau) = self.x.split_at_checked(dims.nq * columns).unwrap_or_default();
        let (phi, psi) = tau.split_at_checked(holonomic_rows(&dims) * columns).unwrap_or_default();
        bar.zdd.fill(M::S::ZERO);
        add_transposed(pattern.tangent, motion.mass, M::S::ONE, columns, s, bar.zdd);
        add_transposed(pattern.tangent, values.acceleration_impulse, minus, columns, s, bar.z);
        add_transposed(places.impulse, values.acceleration_impulse_rho, minus, columns, s, rho);
        add_transposed(pattern.holonomic, values.accelerations_z, minus, columns, phi, bar.z);
        add_transposed(pattern.holonomic, values.rates_z, minus + minus, columns, phi, bar.zd);
        add_transposed(pattern.nonholonomic, values.nonholonomic_rates_z, minus, columns, psi, bar.z);
        add_transposed(pattern.nonholonomic, values.nonholonomic_rates_zd, minus, columns, psi, bar.zd);
        add_transposed(places.accelerations, values.accelerations, minus, columns, tau, rho);
        Ok(())
    }

    fn reverse_rates(
        &mut self,
        columns: usize,
        bar: &mut StateDerivatives<'_, M::S>,
        rho: &mut [M::S],
    ) -> Result<(), EvalError> {
        let (pattern, places) = (self.system.pattern(), self.system.parameter_places());
        let motion = MotionValues::of(&pattern, &places, self.motion)?;
        let values = ProjectionValues::of(&pattern, &places, self.projections)?;
        let (dims, minus) = (self.system.dims(), -M::S::ONE);
        let (s, tau) = self.x.split_at_checked(dims.nq * columns).unwrap_or_default();
        let (phi, psi) = tau.split_at_checked(holonomic_rows(&dims) * columns).unwrap_or_default();
        bar.zd.fill(M::S::ZERO);
        add_transposed(pattern.tangent, motion.mass, M::S::ONE, columns, s, bar.zd);
        add_transposed(pattern.tangent, values.velocity_impulse, minus, columns, s, bar.z);
        add_transposed(places.impulse, values.velocity_impulse_rho, minus, columns, s, rho);
        add_transposed(pattern.holonomic, values.rates_z, minus, columns, phi, bar.z);
        add_transposed(pattern.nonholonomic, values.nonholonomic_z, minus, columns, psi, bar.z);
        add_transposed(places.rates, values.rates, minus, columns, tau, rho);
        Ok(())
    }

    /// From weights of (z, zd*, zdd*, a, λ*) to those of (p, q), in the places of z and zd; that of a stays.
    fn reverse_newton(
        &mut self,
        columns: usize,
        bar: &mut StateDerivatives<'_, M::S>,
        rho: &mut [M::S],
    ) -> Result<(), StepError> {
        let (dims, failure) = (self.system.dims(), self.failure);
        let fail = |error| failure.of(error);
        let (weights, minus) = (self.formulas.weights, -M::S::ONE);
        let (top, rows) = self.b.split_at_mut_checked(dims.nq * columns).unwrap_or_default();
        let parts = bar.z.iter().zip(bar.zd.iter()).zip(bar.zdd.iter().zip(bar.a.iter()));
        for (b, ((&z, &zd), (&zdd, &a))) in top.iter_mut().zip(parts) {
            *b = weights.position * z + weights.velocity * zd + zdd + self.formulas.a_zdd_next * a;
        }
        copy(rows, bar.lambda);
        self.solve_transposed(columns, Which::Newton)?;

        let (pattern, places) = (self.system.pattern(), self.system.parameter_places());
        let values = MotionValues::of(&pattern, &places, self.motion).map_err(fail)?;
        let (s, tau) = self.x.split_at_mut_checked(dims.nq * columns).unwrap_or_default();
        add_transposed(pattern.tangent, values.by_position, minus, columns, s, bar.z);
        add_transposed(pattern.tangent, values.by_velocity, minus, columns, s, bar.zd);
        add_transposed(places.residual, values.residual, minus, columns, s, rho);
        let count = dims.rows() * columns;
        let tau = tau.get_mut(..count).unwrap_or_default();
        match self.enforcement {
            Enforcement::Positions { .. } => {
                let (phi, psi) =
                    tau.split_at_mut_checked(holonomic_rows(&dims) * columns).unwrap_or_default();
                scale(phi, M::S::ONE / weights.position);
                scale(psi, M::S::ONE / weights.velocity);
                add_transposed(pattern.holonomic, values.holonomic, minus, columns, phi, bar.z);
                add_transposed(pattern.nonholonomic, values.nonholonomic, minus, columns, psi, bar.zd);
                add_transposed(pattern.nonholonomic, values.nonholonomic_z, minus, columns, psi, bar.z);
                add_transposed(places.constraints, values.constraints, minus, columns, tau, rho);
            }
            Enforcement::Accelerations(Stabilisation { rate, value, .. }) => {
                let projections = ProjectionValues::of(&pattern, &places, self.projections).map_err(fail)?;
                let (phi, psi) =
                    tau.split_at_mut_checked(holonomic_rows(&dims) * columns).unwrap_or_default();
                let k = pattern.holonomic.len();
                let parts = [(&*self.rows_z, &mut *bar.z), (&*self.rows_zd, &mut *bar.zd)];
                for (derivatives, x) in parts {
                    let (first, second) = derivatives.split_at_checked(k).unwrap_or_default();
                    add_transposed(pattern.holonomic, first, minus, columns, phi, x);
                    add_transposed(pattern.nonholonomic, second, minus, columns, psi, x);
                }
                add_transposed(places.accelerations, projections.accelerations, minus, columns, tau, rho);
                add_transposed(places.rates, projections.rates, -rate, columns, tau, rho);
                let holonomic = holonomic_rows(&dims);
                let count = places.constraints.partition_point(|(row, _)| (*row as usize) < holonomic);
                let places = places.constraints.get(..count).unwrap_or_default();
                add_transposed(places, values.constraints, -value, columns, tau, rho);
            }
        }
        Ok(())
    }

    /// From weights of (p, q, a) to those of (z, zd, zdd, a).
    fn reverse_prediction(&self, bar: &mut StateDerivatives<'_, M::S>) {
        let f = self.formulas;
        let parts = bar.z.iter().zip(bar.zd.iter_mut()).zip(bar.zdd.iter_mut().zip(bar.a.iter_mut()));
        for ((&p, q), (zdd, a)) in parts {
            let acceleration = f.position * p + f.velocity * *q;
            let a_next = f.position_next * p + f.velocity_next * *q + *a;
            *q += f.h * p;
            if f.keeps_acceleration {
                *zdd = f.a_zdd * a_next;
                *a = f.a_a * a_next + acceleration;
            } else {
                *zdd = acceleration;
                *a = M::S::ZERO;
            }
        }
        bar.lambda.fill(M::S::ZERO);
    }

    /// x from b with the transposed matrix; nothing in rows that are not active.
    fn solve_transposed(&mut self, columns: usize, which: Which) -> Result<(), StepError> {
        let n = (self.system.dims().nq + self.system.dims().rows()) * columns;
        let (b, x) = (self.b.get(..n).unwrap_or_default(), self.x.get_mut(..n).unwrap_or_default());
        let bordered = match which {
            Which::Newton => &mut self.newton,
            Which::Projection => &mut self.projection,
        };
        let (memory, w) = (&mut self.memory, &mut *self.w);
        let solved = bordered.solve(self.system, self.active, true, columns, b, x, memory, w);
        solved.map_err(|unsolved| failed(&self.system.dims(), self.failure, false, unsolved))?;
        if let Some(active) = self.active {
            silence(active, columns, x.get_mut(self.system.dims().nq * columns..).unwrap_or_default());
        }
        Ok(())
    }
}
