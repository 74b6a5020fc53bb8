//! Derivatives of multipliers of least norm, where rows depend on each other.
//!
//! Only Bᵀ λ is determined then, B = (Φ_z; A), and λ is the representative of least norm: λ = B x for some x. Hence
//! λ′ − B′ x = B x′ lies in the range of B, and of all λ′ that give the same (Bᵀ λ)′ it is the one whose part in the null space
//! of Bᵀ is that of B′ x. Any x with B x = λ will do.
//!
//! B′ x comes from the rates, which are linear in zd: (Φ_z x)_z = Φd_z at zd = x, minus the same at zd = 0; for Ψ and for ρ alike.

use super::columns::{Directions, add_transposed, silence, subtract_parameters, subtract_product};
use super::derivatives::{Impulses, Sensitivities};
use super::forward::failed;
use super::state::StateDerivatives;
use super::step::LinearisedStep;
use super::values::ProjectionValues;
use crate::constrained::Motion;
use crate::error::{EvalError, StepError};
use crate::formulation::Record;
use crate::formulation::multipliers::{PASSES, is_taken};
use crate::linear::blocks::{Blocks, holonomic_rows};
use crate::linear::{copy, largest};
use crate::scalar::Scalar;

/// A part of λ outside of the range of B, in units of the rounding of a solution, that is not worth telling.
const UNREACHED: f64 = 1e4;

impl<M: Sensitivities> LinearisedStep<'_, M> {
    /// Derivatives of B x, at the end of the step.
    #[cold]
    pub(super) fn turn_rows(&mut self, record: &Record<'_, M::S>) -> Result<(), StepError> {
        let (dims, failure) = (self.system.dims(), self.failure);
        let n = dims.nq + dims.rows();
        // B x = λ with the smallest x in the norm of M
        let b = self.b.get_mut(..n).unwrap_or_default();
        b.fill(M::S::ZERO);
        copy(b.get_mut(dims.nq..).unwrap_or_default(), record.lambda);
        let x = self.x.get_mut(..n).unwrap_or_default();
        // λ is of least norm only to rounding; a part of it that no x can reach is no contradiction.
        self.memory.noise.fill(M::S::from_f64(UNREACHED * largest(record.lambda)));
        let solved =
            self.projection.solve(self.system, self.active, false, 1, b, x, &mut self.memory, self.w);
        solved.map_err(|unsolved| failed(&dims, failure, false, unsolved))?;
        self.turn(record).map_err(|error| failure.of(error))
    }

    fn turn(&mut self, record: &Record<'_, M::S>) -> Result<(), EvalError> {
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
            self.system.linearise_projections(at, impulses, self.w, self.projections)?;
            let values = ProjectionValues::of(&pattern, &places, self.projections)?;
            let parts = values.rates_z.iter().chain(values.nonholonomic_z).chain(values.rates);
            for (turned, &value) in self.turned.iter_mut().zip(parts) {
                *turned = if moving { value } else { *turned - value };
            }
        }
        self.evaluate_projections(record)
    }

    /// λ′ from one that gives the same (Bᵀ λ)′.
    #[cold]
    pub(super) fn least_norm(
        &mut self,
        columns: usize,
        directions: Directions<'_, M::S>,
        end: &mut StateDerivatives<'_, M::S>,
    ) -> Result<(), StepError> {
        let failure = self.failure;
        self.subtract_turned(columns, directions, end, false);
        let taken = self.take_null_part(columns, end.lambda).map_err(|error| failure.of(error));
        self.subtract_turned(columns, directions, end, true);
        taken
    }

    /// λ′ minus B′ x, or plus.
    fn subtract_turned(
        &mut self,
        columns: usize,
        directions: Directions<'_, M::S>,
        end: &mut StateDerivatives<'_, M::S>,
        back: bool,
    ) {
        let (pattern, places) = (self.system.pattern(), self.system.parameter_places());
        let (holonomic, rest) = self.turned.split_at_checked(pattern.holonomic.len()).unwrap_or_default();
        let (nonholonomic, rates) = rest.split_at_checked(pattern.nonholonomic.len()).unwrap_or_default();
        let change = self.b.get_mut(..self.system.dims().rows() * columns).unwrap_or_default();
        change.fill(M::S::ZERO);
        // −B′ x
        subtract_parameters(places.rates, rates, M::S::ONE, columns, directions, change);
        let (phi, psi) =
            change.split_at_mut_checked(holonomic_rows(&self.system.dims()) * columns).unwrap_or_default();
        subtract_product(pattern.holonomic, holonomic, columns, end.z, phi);
        subtract_product(pattern.nonholonomic, nonholonomic, columns, end.z, psi);
        if let Some(active) = self.active {
            silence(active, columns, change);
        }
        for (lambda, &change) in end.lambda.iter_mut().zip(change.iter()) {
            *lambda = if back { *lambda - change } else { *lambda + change };
        }
    }

    /// Takes from the columns of `lambda` their part in the null space of Bᵀ, as `multipliers` does with one column.
    pub(super) fn take_null_part(&mut self, columns: usize, lambda: &mut [M::S]) -> Result<(), EvalError> {
        let (dims, pattern) = (self.system.dims(), self.system.pattern());
        let n = (dims.nq + dims.rows()) * columns;
        let compliance = Blocks::of(&dims, &pattern, self.projection.leading.matrix)?.compliance;
        let x = self.x.get_mut(..n).unwrap_or_default();
        let column = self.memory.noise.get_mut(..dims.nq + dims.rows()).unwrap_or_default();
        let [least, most] = PASSES;
        for pass in 1..=most {
            for first in [true, false] {
                let (top, bottom) = x.split_at_mut_checked(dims.nq * columns).unwrap_or_default();
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
            let null = x.get(dims.nq * columns..).unwrap_or_default();
            for (lambda, &null) in lambda.iter_mut().zip(null) {
                *lambda -= null;
            }
            if pass >= least && is_taken(null, lambda) {
                break;
            }
        }
        Ok(())
    }

    /// The transpose of [`LinearisedStep::least_norm`]: takes its part of `lambda` to z and ρ.
    #[cold]
    pub(super) fn least_norm_transposed(
        &mut self,
        columns: usize,
        lambda: &mut [M::S],
        z: &mut [M::S],
        rho: &mut [M::S],
    ) -> Result<(), EvalError> {
        let rows = self.system.dims().rows() * columns;
        // λ′ = (1 − P) λ′ + P B′ x with the symmetric P onto the null space
        let null = self.b.get_mut(..rows).unwrap_or_default();
        copy(null, lambda);
        self.take_null_part(columns, lambda)?;
        let null = self.b.get_mut(..rows).unwrap_or_default();
        for (null, &lambda) in null.iter_mut().zip(lambda.iter()) {
            *null = lambda - *null;
        }
        if let Some(active) = self.active {
            silence(active, columns, null);
        }
        let (pattern, places) = (self.system.pattern(), self.system.parameter_places());
        let (holonomic, rest) = self.turned.split_at_checked(pattern.holonomic.len()).unwrap_or_default();
        let (nonholonomic, rates) = rest.split_at_checked(pattern.nonholonomic.len()).unwrap_or_default();
        let (phi, psi) =
            null.split_at_checked(holonomic_rows(&self.system.dims()) * columns).unwrap_or_default();
        let minus = -M::S::ONE;
        add_transposed(pattern.holonomic, holonomic, minus, columns, phi, z);
        add_transposed(pattern.nonholonomic, nonholonomic, minus, columns, psi, z);
        add_transposed(places.rates, rates, minus, columns, null, rho);
        Ok(())
    }
}
