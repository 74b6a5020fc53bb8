//! Transposed products with the derivative of a step by bundles of their own: Jᵀ y by reverse accumulation, without the lists of J.
//!
//! The stages are those of `stages`, in reverse. With s, t the weights of a stage's equations of motion and rows,
//!
//! ```text
//! z̄dd* = M s₂                                        z̄d −= (Φdd; Ψd)_zdᵀ t₂
//! z̄d*  = M s₁                                        z̄, ρ̄ −= (s₁ᵀ(M d + Bᵀσ) + t₁ᵀ(Φd; Ψ) + s₂ᵀ(M e + Bᵀκ) + t₂ᵀ(Φdd; Ψd))_z,ρ
//! z̄, z̄d*, ρ̄ −= (sᵀ r + tᵀ (Φ; Ψ))_z,zd,ρ
//! ```
//!
//! where both projections share one sweep. Matrices are those of `newton` and `projection` at the accepted instant.

use super::columns::add_product;
use super::derivatives::{Impulses, Places, Sensitivities};
use super::stages::Stage;
use super::state::StateDerivatives;
use super::step::{Enforcement, LinearisedStep, write_compliance};
use crate::error::{EvalError, StepError};
use crate::formulation::Record;
use crate::linear::blocks::{Blocks, BlocksMut};
use crate::linear::{add_scaled, copy};
use crate::pieces::{Pieces, cut};
use crate::scalar::Scalar;
use crate::system::Dims;

/// Length of a column of all that products read and write.
#[inline(always)]
pub(super) const fn column_len(dims: &Dims) -> usize {
    2 * (dims.nq + dims.rows()) + 2 * dims.nq + dims.sensitivity.parameters + 2 * reads(dims)
}

/// Values that a product reads from tables, at most.
const fn reads(dims: &Dims) -> usize {
    let (newton, projection) = (dims.sensitivity.newton_reads, dims.sensitivity.projection_reads);
    if newton > projection { newton } else { projection }
}

/// A column of what products read and write.
struct Column<'c, S> {
    y: &'c mut [S],
    ydd: &'c mut [S],
    z: &'c mut [S],
    zd: &'c mut [S],
    rho: &'c mut [S],
    read: &'c mut [S],
    places: &'c mut [S],
}

impl<'c, S: Scalar> Column<'c, S> {
    fn of(dims: &Dims, memory: &'c mut [S]) -> Result<Self, StepError> {
        let n = dims.nq + dims.rows();
        let mut pieces = Pieces::of(memory, column_len(dims));
        Ok(Self {
            y: pieces.next(n)?,
            ydd: pieces.next(n)?,
            z: pieces.next(dims.nq)?,
            zd: pieces.next(dims.nq)?,
            rho: pieces.next(dims.sensitivity.parameters)?,
            read: pieces.next(reads(dims))?,
            places: pieces.next(reads(dims))?,
        })
    }
}

/// Weights on the way back beside those of states: of parameters, and of the values of tables, which are summed over a run.
pub(crate) struct ParameterWeights<'r, S> {
    pub(crate) rho: &'r mut [S],
    pub(crate) table: &'r mut [S],
}

impl<S: Scalar> ParameterWeights<'_, S> {
    /// Minus the weights of column k that a product has found.
    fn subtract(
        &mut self,
        parameters: Places<'_>,
        rho: &[S],
        [read, places]: [&[S]; 2],
        k: usize,
        columns: usize,
    ) {
        for (&(_, parameter), &weight) in parameters.iter().zip(rho) {
            if let Some(to) = self.rho.get_mut(parameter as usize * columns + k) {
                *to -= weight;
            }
        }
        for (place, &weight) in places.iter().zip(read) {
            if let Some(to) = self.table.get_mut(place.real() as usize * columns + k) {
                *to -= weight;
            }
        }
    }
}

/// As many values as a result has.
fn first<S>(x: &mut [S], len: usize) -> &mut [S] {
    x.get_mut(..len).unwrap_or_default()
}

/// to = column k of `from`.
pub(crate) fn take<S: Scalar>(to: &mut [S], from: &[S], k: usize, columns: usize) {
    if columns == 1 {
        return copy(to, from);
    }
    for (to, &from) in to.iter_mut().zip(from.iter().skip(k).step_by(columns.max(1))) {
        *to = from;
    }
}

/// Column k of `to` minus x.
fn subtract<S: Scalar>(to: &mut [S], x: &[S], k: usize, columns: usize) {
    if columns == 1 {
        return add_scaled(to, -S::ONE, x);
    }
    for (to, &x) in to.iter_mut().skip(k).step_by(columns.max(1)).zip(x) {
        *to -= x;
    }
}

impl<M: Sensitivities> LinearisedStep<'_, M> {
    /// Equations of a stage.
    pub(super) fn equations(&self) -> usize {
        self.system.dims().nq + self.system.dims().rows()
    }

    /// The matrices of Newton's method and of the projections at the accepted instant, their factors, and what the projections did.
    pub(super) fn evaluate_matrices(&mut self, record: &Record<'_, M::S>) -> Result<(), EvalError> {
        let (dims, pattern) = (self.system.dims(), self.system.pattern());
        let [r, _, phi] = &mut self.spare;
        let (at, weights, matrix) =
            (record.motion(), self.formulas.weights, &mut *self.newton.leading.matrix);
        self.system.newton(at, record.lambda_star, weights, self.w, r, phi, matrix)?;
        let matrix = &mut *self.projection.leading.matrix;
        let projected = matches!(self.enforcement, Enforcement::Positions { projection: Some(_) });
        if projected {
            self.system.projection(*record.t, record.z, record.u, self.w, matrix)?;
        }
        for (bordered, used) in [(&mut self.newton, true), (&mut self.projection, projected)] {
            if used {
                let mut blocks = BlocksMut::of(&dims, &pattern, bordered.leading.matrix)?;
                write_compliance(record.scale, self.system.units(), false, blocks.compliance);
                if let Some(active) = self.active {
                    blocks.mask(&dims, &pattern, active)?;
                }
                bordered.leading.factor(self.w, false)?;
            }
        }
        self.differ(record);
        Ok(())
    }

    /// Both projections in reverse.
    pub(super) fn reverse_projections(
        &mut self,
        record: &Record<'_, M::S>,
        columns: usize,
        bar: &mut StateDerivatives<'_, M::S>,
        weights: &mut ParameterWeights<'_, M::S>,
    ) -> Result<(), StepError> {
        let sizes = self.system.dims().sensitivity;
        let [_, projection] = self.system.product_places();
        let (failure, n) = (self.failure, self.equations() * columns);
        let fail = |error| failure.of(error);
        self.solve_transposed(Stage::Accelerations, columns, bar)?;
        self.add_momentum(columns, bar.zdd).map_err(fail)?;
        copy(self.costates, self.x);
        for k in 0..columns {
            let column = Column::of(&self.system.dims(), self.column)?;
            take(column.ydd, cut("x", self.x, n).map_err(fail)?.0, k, columns);
            self.system
                .acceleration_product(record.projected(), column.ydd, self.w, column.zd)
                .map_err(fail)?;
            subtract(bar.zd, column.zd, k, columns);
        }
        self.solve_transposed(Stage::Rates, columns, bar)?;
        self.add_momentum(columns, bar.zd).map_err(fail)?;
        let [d, e, kappa] = &self.spare;
        let impulses = Impulses {
            velocity: d,
            velocity_multipliers: record.sigma,
            acceleration: e,
            acceleration_multipliers: kappa,
        };
        for k in 0..columns {
            let column = Column::of(&self.system.dims(), self.column)?;
            let Column { y, ydd, z, rho, read, places, .. } = column;
            let [read, places] = [read, places].map(|x| first(x, sizes.projection_reads));
            let rho = first(rho, sizes.projection_parameters);
            take(y, cut("x", self.x, n).map_err(fail)?.0, k, columns);
            take(ydd, cut("costates", self.costates, n).map_err(fail)?.0, k, columns);
            let at = record.projected();
            self.system
                .projection_product(at, impulses, y, ydd, self.w, z, rho, read, places)
                .map_err(fail)?;
            subtract(bar.z, z, k, columns);
            weights.subtract(projection, rho, [read, places], k, columns);
        }
        Ok(())
    }

    /// Newton's equations in reverse.
    pub(super) fn reverse_newton(
        &mut self,
        record: &Record<'_, M::S>,
        columns: usize,
        bar: &mut StateDerivatives<'_, M::S>,
        weights: &mut ParameterWeights<'_, M::S>,
    ) -> Result<(), StepError> {
        let sizes = self.system.dims().sensitivity;
        let [newton, _] = self.system.product_places();
        let (failure, n) = (self.failure, self.equations() * columns);
        let fail = |error| failure.of(error);
        self.solve_transposed(Stage::Newton, columns, bar)?;
        for k in 0..columns {
            let column = Column::of(&self.system.dims(), self.column)?;
            let Column { y, z, zd, rho, read, places, .. } = column;
            let [read, places] = [read, places].map(|x| first(x, sizes.newton_reads));
            let rho = first(rho, sizes.newton_parameters);
            take(y, cut("x", self.x, n).map_err(fail)?.0, k, columns);
            let (at, lambda) = (record.motion(), &*record.lambda_star);
            self.system.newton_product(at, lambda, y, self.w, z, zd, rho, read, places).map_err(fail)?;
            subtract(bar.z, z, k, columns);
            subtract(bar.zd, zd, k, columns);
            weights.subtract(newton, rho, [read, places], k, columns);
        }
        Ok(())
    }

    /// to = to + M s, with the mass matrix of the projections.
    fn add_momentum(&mut self, columns: usize, to: &mut [M::S]) -> Result<(), EvalError> {
        let (dims, pattern) = (self.system.dims(), self.system.pattern());
        let blocks = Blocks::of(&dims, &pattern, self.projection.leading.matrix)?;
        add_product(pattern.tangent, blocks.tangent, columns, self.x, to)?;
        Ok(())
    }
}
