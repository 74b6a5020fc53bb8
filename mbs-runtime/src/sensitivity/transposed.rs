//! Transposed products with the derivative of a step: from weights of what it leaves to weights of what enters it. All stages in
//! reverse, each from the same table as the product.

use super::blocks::TransposedProduct;
use super::columns::zero_inactive_rows;
use super::derivatives::Sensitivities;
use super::forward::{check_columns, failed, scale_rows};
use super::products::ParameterWeights;
use super::stages::Stage;
use super::state::{Parts, StateDerivatives};
use super::step::{ByProducts, LinearisedStep, Turned};
use crate::error::StepError;
use crate::formulation::Record;
use crate::linear::{add_scaled, copy};
use crate::pieces::{cut, cut_mut};
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
        check_columns(&self.system.dims(), columns, rho.len())?;
        rho.fill(M::S::ZERO);
        self.add_transposed(columns, end, start, rho)
    }

    /// The same, with what belongs to ρ added to `rho`.
    pub(crate) fn add_transposed(
        &mut self,
        columns: usize,
        end: &[M::S],
        start: &mut [M::S],
        rho: &mut [M::S],
    ) -> Result<(), StepError> {
        if self.products != ByProducts::Nothing {
            let what = "a step that is linearised for transposed products alone needs its record";
            return Err(StepError::NotDifferentiable { what });
        }
        let bar = core::mem::take(&mut self.bar);
        let weights = ParameterWeights { rho, table: &mut [] };
        let reversed = self.reverse(None, columns, end, bar, start, weights);
        self.bar = bar;
        reversed
    }

    /// The same with the record of the step, for one that is linearised for transposed products.
    pub(crate) fn add_transposed_of(
        &mut self,
        record: &mut [M::S],
        columns: usize,
        end: &[M::S],
        start: &mut [M::S],
        weights: ParameterWeights<'_, M::S>,
    ) -> Result<(), StepError> {
        let record = Record::of(&self.system.dims(), record)?;
        let bar = core::mem::take(&mut self.bar);
        let reversed = self.reverse(Some(&record), columns, end, bar, start, weights);
        self.bar = bar;
        reversed
    }

    fn reverse(
        &mut self,
        record: Option<&Record<'_, M::S>>,
        columns: usize,
        end: &[M::S],
        bar: &mut [M::S],
        start: &mut [M::S],
        mut weights: ParameterWeights<'_, M::S>,
    ) -> Result<(), StepError> {
        let (dims, failure) = (self.system.dims(), self.failure);
        let fail = |error| failure.of(error);
        check_columns(&dims, columns, weights.rho.len())?;
        Parts::of(&dims, columns, end)?;
        let (bar, _) = cut_mut("bar", bar, end.len()).map_err(fail)?;
        copy(bar, end);
        let mut bar = StateDerivatives::with_columns(&dims, columns, bar)?;
        if !self.formulas.keeps_acceleration {
            add_scaled(bar.zdd, M::S::ONE, bar.a);
            bar.a.fill(M::S::ZERO);
        }
        if self.projected() {
            // κ̄ on the way to λ̄ and −λ̄*
            add_scaled(bar.lambda, M::S::ONE, bar.kappa);
        } else {
            bar.sigma.fill(M::S::ZERO);
            bar.kappa.fill(M::S::ZERO);
        }
        if self.least_norm {
            self.least_norm_transposed(None, columns, &mut bar, weights.rho).map_err(fail)?;
            if !bar.sigma.is_empty() {
                let sigma = Some(Turned::Sigma);
                self.least_norm_transposed(sigma, columns, &mut bar, weights.rho).map_err(fail)?;
            }
        }
        let by_products = record.filter(|_| self.products != ByProducts::Nothing);
        match by_products {
            Some(record) if self.projected() => {
                self.reverse_projections(record, columns, &mut bar, &mut weights)?;
            }
            None if self.projected() => {
                self.stage_transposed(Stage::Accelerations, columns, &mut bar, weights.rho)?;
                if self.projects_with_tangent() {
                    copy(self.costates, self.x);
                }
                self.stage_transposed(Stage::Rates, columns, &mut bar, weights.rho)?;
            }
            _ => {}
        }
        if self.projects_with_tangent() {
            self.subtract_tangent_transposed(columns, &mut bar, weights.rho).map_err(fail)?;
        }
        subtract_kappa(&mut bar);
        if self.splits_multipliers() && self.least_norm {
            let star = Some(Turned::LambdaStar);
            self.least_norm_transposed(star, columns, &mut bar, weights.rho).map_err(fail)?;
        }
        match by_products {
            Some(record) if self.products == ByProducts::Everything => {
                self.reverse_newton(record, columns, &mut bar, &mut weights)?;
            }
            _ => self.stage_transposed(Stage::Newton, columns, &mut bar, weights.rho)?,
        }
        let mut start = StateDerivatives::with_columns(&dims, columns, start)?;
        copy(start.z, bar.z);
        copy(start.zd, bar.zd);
        start.clear_forces();
        let (y, mut x) = (bar.kinematics(), start.kinematics_mut());
        self.formulas.read_prediction(|row, part, factor| add_scaled(part.of_mut(&mut x), factor, row.of(y)));
        Ok(())
    }

    /// From weights of what a stage leaves to those of its equations, in `x`.
    pub(super) fn solve_transposed(
        &mut self,
        stage: Stage,
        columns: usize,
        bar: &mut StateDerivatives<'_, M::S>,
    ) -> Result<(), StepError> {
        let (dims, failure) = (self.system.dims(), self.failure);
        let fail = |error| failure.of(error);
        let (nq, n) = (dims.nq * columns, (dims.nq + dims.rows()) * columns);
        let (b, _) = cut_mut("b", self.b, n).map_err(fail)?;
        let (top, multipliers) = cut_mut("b", b, nq).map_err(fail)?;
        match stage {
            Stage::Newton => {
                copy(top, bar.zdd);
                copy(multipliers, bar.lambda);
                let y = bar.kinematics();
                self.formulas.read_increment(|row, factor| add_scaled(top, factor, row.of(y)));
            }
            Stage::Rates => {
                move_to(top, bar.zd);
                multipliers.fill(M::S::ZERO);
                copy(multipliers, bar.sigma);
            }
            Stage::Accelerations => {
                move_to(top, bar.zdd);
                copy(multipliers, bar.lambda);
            }
        }
        self.solve(stage, true, columns).map_err(|unsolved| failed(&dims, failure, false, unsolved))?;

        let (x, _) = cut_mut("x", self.x, n).map_err(fail)?;
        let (_, rows) = cut_mut("x", x, nq).map_err(fail)?;
        if let Some(active) = self.active {
            zero_inactive_rows(active, columns, rows);
        }
        scale_rows(&dims, columns, self.formulas.scales(stage, self.enforcement), rows).map_err(fail)
    }

    /// From weights of what a stage leaves to weights of what enters it.
    fn stage_transposed(
        &mut self,
        stage: Stage,
        columns: usize,
        bar: &mut StateDerivatives<'_, M::S>,
        rho: &mut [M::S],
    ) -> Result<(), StepError> {
        let failure = self.failure;
        let fail = |error| failure.of(error);
        self.solve_transposed(stage, columns, bar)?;
        let (x, _) = cut("x", self.x, self.equations() * columns).map_err(fail)?;
        let mut product = TransposedProduct { columns, y: x, x: bar.kinematics_mut(), rho };
        self.lists.read(self.system, stage, self.enforcement, &mut product).map_err(fail)
    }
}

/// λ̄* = λ̄ − κ̄
pub(super) fn subtract_kappa<S: Scalar>(bar: &mut StateDerivatives<'_, S>) {
    add_scaled(bar.lambda, -S::ONE, bar.kappa);
}

/// to = from, and nothing stays in `from`.
fn move_to<S: Scalar>(to: &mut [S], from: &mut [S]) {
    copy(to, from);
    from.fill(S::ZERO);
}
