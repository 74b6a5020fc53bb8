//! Products with the derivative of a step: from derivatives at its start to those at its end, stage by stage.

use super::blocks::{Product, Sizes};
use super::bordered::Unsolved;
use super::columns::{Directions, scale, zero_inactive_rows};
use super::derivatives::Sensitivities;
use super::residual::add_sizes_of;
use super::stages::Stage;
use super::state::{Parts, StateDerivatives};
use super::step::{Enforcement, LinearisedStep, Turned, max_columns};
use super::values::{MotionValues, ProjectionValues};
use crate::error::{EvalError, StepError};
use crate::formulation::depend;
use crate::formulation::newton::Failure;
use crate::linear::blocks::{holonomic_rows, row, unknown};
use crate::linear::{add_scaled, copy};
use crate::pieces::{cut, cut_mut};
use crate::scalar::Scalar;
use crate::system::Dims;

impl<M: Sensitivities> LinearisedStep<'_, M> {
    /// From the derivatives of the state at the start of the step to those at its end, both as
    /// [`StateDerivatives`]; λ_ρ of the start is not read.
    #[cfg_attr(not(feature = "small"), inline(always))]
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

    #[cfg_attr(not(feature = "small"), inline(always))]
    fn forward(
        &mut self,
        columns: usize,
        directions: Directions<'_, M::S>,
        start: &[M::S],
        end: &mut [M::S],
    ) -> Result<(), StepError> {
        let failure = self.failure;
        let fail = |error| failure.of(error);
        let start = Parts::of(&self.system.dims(), columns, start)?;
        let mut end = StateDerivatives::with_columns(&self.system.dims(), columns, end)?;
        copy(end.z, start.z);
        copy(end.zd, start.zd);
        if self.formulas.keeps_acceleration {
            end.a.fill(M::S::ZERO);
        }
        let (x, mut y) = (start.kinematics(), end.kinematics_mut());
        self.formulas.read_prediction(|row, part, factor| add_scaled(row.of_mut(&mut y), factor, part.of(x)));
        self.stage(Stage::Newton, columns, directions, &mut end)?;
        if self.splits_multipliers() && self.least_norm {
            self.least_norm(Some(Turned::LambdaStar), columns, directions, &mut end).map_err(fail)?;
        }
        // λ*′, for κ′ = λ′ − λ*′
        copy(end.kappa, end.lambda);
        end.sigma.fill(M::S::ZERO);
        let projected = self.projected();
        if projected {
            self.stage(Stage::Rates, columns, directions, &mut end)?;
            self.stage(Stage::Accelerations, columns, directions, &mut end)?;
        }
        if depend(self.least_norm) {
            self.least_norm(None, columns, directions, &mut end).map_err(fail)?;
            if !end.sigma.is_empty() {
                self.least_norm(Some(Turned::Sigma), columns, directions, &mut end).map_err(fail)?;
            }
        }
        for (kappa, &lambda) in end.kappa.iter_mut().zip(&*end.lambda) {
            *kappa = if projected { lambda - *kappa } else { M::S::ZERO };
        }
        if !self.formulas.keeps_acceleration {
            copy(end.a, end.zdd);
        }
        Ok(())
    }

    /// The right-hand side of a stage, its solution, and what that makes of the derivatives.
    #[cfg_attr(not(feature = "small"), inline(always))]
    fn stage(
        &mut self,
        stage: Stage,
        columns: usize,
        directions: Directions<'_, M::S>,
        end: &mut StateDerivatives<'_, M::S>,
    ) -> Result<(), StepError> {
        let (dims, failure) = (self.system.dims(), self.failure);
        let fail = |error| failure.of(error);
        let (nq, n) = (dims.nq * columns, (dims.nq + dims.rows()) * columns);
        let (b, _) = cut_mut("b", self.b, n).map_err(fail)?;
        b.fill(M::S::ZERO);
        let mut product = Product { columns, x: end.kinematics(), directions, y: b };
        self.lists.read(self.system, stage, self.enforcement, &mut product).map_err(fail)?;
        if self.projects_with_tangent() {
            match stage {
                Stage::Newton => {}
                Stage::Rates => self.subtract_tangent(columns, directions, end).map_err(fail)?,
                Stage::Accelerations => {
                    let (later, _) = cut("costates", self.costates, nq).map_err(fail)?;
                    let (top, _) = cut_mut("b", self.b, nq).map_err(fail)?;
                    add_scaled(top, M::S::ONE, later);
                }
            }
        }
        let (b, _) = cut_mut("b", self.b, n).map_err(fail)?;
        let (_, rows) = cut_mut("b", b, nq).map_err(fail)?;
        scale_rows(&dims, columns, self.formulas.scales(stage, self.enforcement), rows).map_err(fail)?;
        if let Some(active) = self.active {
            zero_inactive_rows(active, columns, rows);
        }
        // Nobody asks where factors are trusted.
        if depend(self.redundant) && !(self.trusts(stage) && self.active.is_none()) {
            self.measure(stage, end).map_err(fail)?;
        }
        let named = matches!(directions, Directions::Each);
        self.solve(stage, false, columns).map_err(|unsolved| failed(&dims, failure, named, unsolved))?;

        let (x, _) = cut("x", self.x, n).map_err(fail)?;
        let (top, multipliers) = cut("x", x, nq).map_err(fail)?;
        match stage {
            Stage::Newton => {
                copy(end.zdd, top);
                copy(end.lambda, multipliers);
                let mut y = end.kinematics_mut();
                self.formulas.read_increment(|row, factor| add_scaled(row.of_mut(&mut y), factor, top));
            }
            Stage::Rates => {
                copy(end.zd, top);
                copy(end.sigma, multipliers);
            }
            Stage::Accelerations => {
                copy(end.zdd, top);
                add_scaled(end.lambda, M::S::ONE, multipliers);
            }
        }
        Ok(())
    }

    /// What cancels in the rows of a right-hand side, where rows depend on each other: its own terms, and those of the constraints
    /// Φ ~ Φ_z z, Φd ~ Φ_z zd, Φdd ~ Φ_z zdd + Φd_z zd.
    #[cold]
    fn measure(&mut self, stage: Stage, end: &StateDerivatives<'_, M::S>) -> Result<(), EvalError> {
        let dims = self.system.dims();
        let (pattern, places) = (self.system.pattern(), self.system.parameter_places());
        let motion = MotionValues::of(&pattern, &places, self.lists.motion)?;
        let [z, zd, zdd] = self.sizes;
        self.memory.noise.fill(M::S::ZERO);
        let (_, rows) = cut_mut("noise", self.memory.noise, dims.nq)?;
        let mut sizes = Sizes { first: dims.nq, x: end.kinematics(), sizes: rows };
        self.lists.read(self.system, stage, self.enforcement, &mut sizes)?;
        let (phi, psi) = cut_mut("noise", rows, holonomic_rows(&dims))?;
        let stabilised = matches!(self.enforcement, Enforcement::Accelerations(_));
        let level = match stage {
            Stage::Newton if stabilised => [zdd, zdd],
            Stage::Newton => [z, zd],
            Stage::Rates => [zd, zd],
            Stage::Accelerations => [zdd, zdd],
        };
        add_sizes_of(pattern.holonomic, motion.holonomic, level[0], phi);
        add_sizes_of(pattern.nonholonomic, motion.nonholonomic, level[1], psi);
        if stage == Stage::Accelerations {
            let values = ProjectionValues::of(&pattern, &places, self.lists.projections)?;
            add_sizes_of(pattern.holonomic, values.rates_z, zd, phi);
        } else if stabilised {
            for (values, size) in [(&*self.lists.rows_z, z), (self.lists.rows_zd, zd)] {
                let (first, second) = cut("values", values, pattern.holonomic.len())?;
                add_sizes_of(pattern.holonomic, first, size, phi);
                add_sizes_of(pattern.nonholonomic, second, size, psi);
            }
        }
        for (rows, scale) in [phi, psi].into_iter().zip(self.formulas.scales(stage, self.enforcement)) {
            for size in rows {
                *size *= M::S::from_f64(scale.real());
            }
        }
        Ok(())
    }

    /// Whether solutions with the factors of a stage are not checked any more.
    #[inline(always)]
    fn trusts(&self, stage: Stage) -> bool {
        match stage {
            Stage::Newton => self.newton.trusted,
            Stage::Rates | Stage::Accelerations => self.projection.trusted,
        }
    }

    /// x from b with the matrix of a stage, or with its transpose.
    #[cfg_attr(not(feature = "small"), inline(always))]
    pub(super) fn solve(&mut self, stage: Stage, transposed: bool, columns: usize) -> Result<(), Unsolved> {
        let n = (self.system.dims().nq + self.system.dims().rows()) * columns;
        let ((b, _), (x, _)) = (cut("b", self.b, n)?, cut_mut("x", self.x, n)?);
        let bordered = match stage {
            Stage::Newton => &mut self.newton,
            Stage::Rates | Stage::Accelerations => &mut self.projection,
        };
        bordered.solve(self.system, self.active, transposed, columns, b, x, &mut self.memory, self.w)
    }
}

/// Multiplies the rows of constraints: holonomic, nonholonomic.
#[cfg_attr(not(feature = "small"), inline(always))]
pub(super) fn scale_rows<S: Scalar>(
    dims: &Dims,
    columns: usize,
    scales: [S; 2],
    rows: &mut [S],
) -> Result<(), EvalError> {
    let (phi, psi) = cut_mut("rows", rows, holonomic_rows(dims) * columns)?;
    for (rows, by) in [phi, psi].into_iter().zip(scales) {
        if by != S::ONE {
            scale(rows, by);
        }
    }
    Ok(())
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
