//! Derivatives of multipliers of least norm, where rows depend on each other.
//!
//! Only Bᵀ λ is determined then, B = (Φ_z; A), and λ is the representative of least norm: λ = B x for some x. Hence
//! λ′ − B′ x = B x′ lies in the range of B, and of all λ′ that give the same (Bᵀ λ)′ it is the one whose part in the null space
//! of Bᵀ is that of B′ x. Any x with B x = λ will do. Where rows have units U, the norm is that of U λ, and U⁻² B stands for B.
//!
//! B′ x comes from the rates, which are linear in zd: (Φ_z x)_z = Φd_z at zd = x, minus the same at zd = 0; for Ψ and for ρ alike.

use super::blocks::{Product, TransposedProduct};
use super::columns::{Directions, zero_inactive_rows};
use super::derivatives::{Impulses, Sensitivities};
use super::forward::failed;
use super::stages::Stage;
use super::state::StateDerivatives;
use super::step::{LinearisedStep, Turned};
use super::values::ProjectionValues;
use crate::constrained::Motion;
use crate::error::{EvalError, StepError};
use crate::formulation::Record;
use crate::formulation::multipliers::{PASSES, is_taken};
use crate::linear::blocks::Blocks;
use crate::linear::{add_scaled, copy};
use crate::pieces::{cut, cut_mut};
use crate::scalar::Scalar;
use crate::system::Units;

/// A part of λ outside of the range of B, in units of the rounding of a solution, that is not worth telling.
const UNREACHED: f64 = 1e4;

impl<M: Sensitivities> LinearisedStep<'_, M> {
    /// Derivatives of B x, at the end of the step, where B x are these multipliers.
    #[cold]
    pub(super) fn differentiate_rows(
        &mut self,
        record: &Record<'_, M::S>,
        lambda: &[M::S],
    ) -> Result<(), StepError> {
        let (dims, failure) = (self.system.dims(), self.failure);
        let fail = |error| failure.of(error);
        // B x = λ with the smallest x in the norm of M
        let (b, _) = cut_mut("b", self.b, dims.nq + dims.rows()).map_err(fail)?;
        b.fill(M::S::ZERO);
        let (_, rows) = cut_mut("b", b, dims.nq).map_err(fail)?;
        let units = self.system.units();
        // λ is of least norm only to rounding; a part of it that no x can reach is no contradiction.
        let mut most = 0.0;
        for (k, (row, &lambda)) in rows.iter_mut().zip(lambda).enumerate() {
            *row = lambda * M::S::from_f64(units.row(k) * units.row(k));
            let size = lambda.real().abs() * units.row(k);
            most = if size > most { size } else { most };
        }
        self.memory.noise.fill(M::S::from_f64(UNREACHED * most));
        let (_, noise) = cut_mut("noise", self.memory.noise, dims.nq).map_err(fail)?;
        for (k, noise) in noise.iter_mut().enumerate() {
            *noise *= M::S::from_f64(units.row(k));
        }
        let solved = self.solve(Stage::Rates, false, 1);
        solved.map_err(|unsolved| failed(&dims, failure, false, unsolved))?;
        self.fill_row_derivatives(record).map_err(fail)
    }

    fn fill_row_derivatives(&mut self, record: &Record<'_, M::S>) -> Result<(), EvalError> {
        let (pattern, places) = (self.system.pattern(), self.system.parameter_places());
        let [zero, zd, none] = &mut self.spare;
        for part in [&mut **zero, zd, none] {
            part.fill(M::S::ZERO);
        }
        for moving in [true, false] {
            if moving {
                copy(zd, self.x);
            } else {
                zd.fill(M::S::ZERO);
            }
            let at = Motion { zd, zdd: zero, ..record.projected() };
            let impulses = Impulses {
                velocity: zero,
                velocity_multipliers: none,
                acceleration: zero,
                acceleration_multipliers: none,
            };
            // The list is made again for the step itself.
            self.system.linearise_projections(at, impulses, self.w, self.lists.projections)?;
            let values = ProjectionValues::of(&pattern, &places, self.lists.projections)?;
            let parts = values.rates_z.iter().chain(values.nonholonomic_z).chain(values.rates);
            for (turned, &value) in self.lists.turned.iter_mut().zip(parts) {
                *turned = if moving { value } else { *turned - value };
            }
        }
        self.evaluate_projections(record)
    }

    /// λ′, or another that stands for it, from one that gives the same (Bᵀ λ)′: with P onto the null space of Bᵀ it is (1 − P) (λ′ − B′ x) + B′ x.
    #[cold]
    pub(super) fn least_norm(
        &mut self,
        which: Option<Turned>,
        columns: usize,
        directions: Directions<'_, M::S>,
        end: &mut StateDerivatives<'_, M::S>,
    ) -> Result<(), EvalError> {
        let Some(other) = which else { return self.least_norm_by_list(which, columns, directions, end) };
        self.exchange_turned(other);
        let found = self.least_norm_by_list(which, columns, directions, end);
        self.exchange_turned(other);
        found
    }

    fn least_norm_by_list(
        &mut self,
        which: Option<Turned>,
        columns: usize,
        directions: Directions<'_, M::S>,
        end: &mut StateDerivatives<'_, M::S>,
    ) -> Result<(), EvalError> {
        let rows = self.system.dims().rows() * columns;
        let (change, _) = cut_mut("b", self.b, rows)?;
        change.fill(M::S::ZERO);
        let mut product = Product { columns, x: end.kinematics(), directions, y: change };
        self.lists.read_turned(self.system, &mut product)?;
        if let Some(active) = self.active {
            zero_inactive_rows(active, columns, change);
        }
        in_units(self.system.units(), -2, columns, change);
        let lambda = of(which, end);
        add_scaled(lambda, -M::S::ONE, change);
        self.subtract_null_space_part(columns, lambda)?;
        add_scaled(lambda, M::S::ONE, self.b);
        Ok(())
    }

    /// Takes from the columns of `lambda` their part in the null space of Bᵀ, as `multipliers` does with one column.
    pub(super) fn subtract_null_space_part(
        &mut self,
        columns: usize,
        lambda: &mut [M::S],
    ) -> Result<(), EvalError> {
        let (dims, pattern) = (self.system.dims(), self.system.pattern());
        let compliance = Blocks::of(&dims, &pattern, self.projection.leading.matrix)?.compliance;
        let (x, _) = cut_mut("x", self.x, (dims.nq + dims.rows()) * columns)?;
        let column = &mut *self.memory.noise;
        let [least, most] = PASSES;
        for pass in 1..=most {
            for first in [true, false] {
                let (top, bottom) = cut_mut("x", x, dims.nq * columns)?;
                top.fill(M::S::ZERO);
                if first {
                    copy(bottom, lambda);
                }
                for (row, &e) in bottom.chunks_exact_mut(columns.max(1)).zip(compliance) {
                    for x in row {
                        *x *= -e;
                    }
                }
                self.projection.leading.solve_many(columns, self.w, column, x)?;
            }
            let (_, null) = cut("x", x, dims.nq * columns)?;
            add_scaled(lambda, -M::S::ONE, null);
            if pass >= least && is_taken(null, lambda) {
                break;
            }
        }
        Ok(())
    }

    /// The transpose of [`LinearisedStep::least_norm`].
    #[cold]
    pub(super) fn least_norm_transposed(
        &mut self,
        which: Option<Turned>,
        columns: usize,
        bar: &mut StateDerivatives<'_, M::S>,
        rho: &mut [M::S],
    ) -> Result<(), EvalError> {
        let Some(other) = which else { return self.transpose_least_norm(which, columns, bar, rho) };
        self.exchange_turned(other);
        let found = self.transpose_least_norm(which, columns, bar, rho);
        self.exchange_turned(other);
        found
    }

    fn transpose_least_norm(
        &mut self,
        which: Option<Turned>,
        columns: usize,
        bar: &mut StateDerivatives<'_, M::S>,
        rho: &mut [M::S],
    ) -> Result<(), EvalError> {
        let rows = self.system.dims().rows() * columns;
        // The weight of B′ x is P λ̄.
        let (null, _) = cut_mut("b", self.b, rows)?;
        let lambda = of(which, bar);
        copy(null, lambda);
        // Pᵀ = U² P U⁻²
        let units = self.system.units();
        in_units(units, -2, columns, lambda);
        self.subtract_null_space_part(columns, lambda)?;
        in_units(units, 2, columns, lambda);
        let (null, _) = cut_mut("b", self.b, rows)?;
        add_scaled(null, -M::S::ONE, lambda);
        if let Some(active) = self.active {
            zero_inactive_rows(active, columns, null);
        }
        in_units(units, -2, columns, null);
        let mut product = TransposedProduct { columns, y: null, x: bar.kinematics_mut(), rho };
        self.lists.read_turned(self.system, &mut product)
    }
}

/// The multipliers that stand for λ; λ* is in its place while it is looked for.
fn of<'x, S>(which: Option<Turned>, x: &'x mut StateDerivatives<'_, S>) -> &'x mut [S] {
    if which == Some(Turned::Sigma) { x.sigma } else { x.lambda }
}

/// Multiplies rows of several columns by a power of their units, 2 or −2.
fn in_units<S: Scalar>(units: Units<'_>, power: i32, columns: usize, rows: &mut [S]) {
    if units.rows.is_empty() {
        return;
    }
    for (k, row) in rows.chunks_exact_mut(columns.max(1)).enumerate() {
        let square = units.row(k) * units.row(k);
        let factor = S::from_f64(if power > 0 { square } else { 1.0 / square });
        for x in row {
            *x *= factor;
        }
    }
}
