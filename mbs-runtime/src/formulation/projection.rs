//! Projections of velocities and accelerations onto the constraints [Dopico2018, Eqs. 11–18; LopezVarela2023, Eqs. 10–11].
//!
//! Input: the accepted z, and zd*, zdd* that Newton's method left. Output: the nearest zd, zdd in the norm of P that satisfy
//!
//! Φ_z zd + Φ_t = 0,  A zd + b = 0;  Φ_z zdd + (terms of zd and t) = 0,  A zdd + (terms of zd and t) = 0.
//!
//! ```text
//! [ P    Φ_zᵀ  Aᵀ ] [d]   [ 0        ]
//! [ Φ_z  −E       ] [σ] = [−Φd       ]        zd = zd* + d,   and the same with Φdd, Ψd and κ for zdd
//! [ A          −E ]       [−Ψ        ]
//! ```
//!
//! Both conditions are linear: what a solution leaves of them is known from (Φ_z; A) d without another evaluation. E leaves
//! about 1e−9 of it, so the solution is refined until rounding; where rows depend on each other, until that of the largest row, since
//! what rounding makes of one that follows from the others is not in the range of (Φ_z; A). Where refinement does not get there, at singular
//! positions and with rows that nearly depend on each other, the step counts it ([`StepStatistics::short_projections`](crate::StepStatistics)).
//!
//! # What κ is good for
//!
//! Newton's method ends with M zdd* + Φ_zᵀ λ* − Q = 0, and the projection with P = M adds M (zdd − zdd*) + Φ_zᵀ κ = 0.
//! So λ* + κ are the multipliers of the projected acceleration. λ* itself is only of order 1: the positions of the next
//! node fix the part of zdd* across the constraints to zdd − (h/3) zddd (trapezoidal rule), and rounding of Φ enters it
//! divided by βh². Neither is left in λ* + κ. With P other than M the sum misses (P − M)(zdd − zdd*), which is of order 2.

use super::compliance::write_least;
use super::multipliers::least_norm;
use super::newton::{Failure, Step, instant, size_of, sizes_of_start, zero_inactive_rows};
use super::record::Record;
use crate::constrained::{Constrained, Motion};
use crate::error::{EvalError, Level, StepError};
use crate::linear::blocks::{Blocks, BlocksMut, row};
use crate::linear::{Leading, add_scaled, all_finite, copy, largest};
use crate::pieces::{cut, cut_mut};
use crate::scalar::Scalar;
use crate::system::Dims;

/// Rounding of a row's sum, in units of ε times row size and size of the solution.
const ROUNDING: f64 = 16.0;
/// A solution that leaves more than this part of a violation is not trusted.
const DOUBTFUL: f64 = 1e-3;
/// Solutions go on beyond their usual number while each leaves less than this part of what the last one left, but not beyond the most.
const SHRINKS: f64 = 0.5;
const MOST_SOLUTIONS: usize = 50;
/// What is left at this many times its rounding has not converged.
const SHORT: f64 = 256.0;

/// Which norm a projection keeps smallest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProjectionMatrix {
    /// P = M
    #[default]
    Mass,
    /// P = symmetric part of W = M + γh r_zd + βh² r_z
    Tangent,
}

/// Settings of the projections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Projection {
    pub(crate) matrix: ProjectionMatrix,
    pub(crate) max_solutions: usize,
    pub(crate) max_violation: f64,
}

impl<M: Constrained> Step<'_, M> {
    /// Projects zd and zdd, and completes the multipliers. Writes λ* and σ to the record, if there is one, and keeps σ and κ where objectives
    /// read them.
    #[inline(always)]
    pub(crate) fn project(
        &mut self,
        settings: &Projection,
        scale: &[M::S],
        redundant: bool,
        mut record: Option<&mut Record<'_, M::S>>,
    ) -> Result<(), StepError> {
        if self.system.dims().rows() == 0 {
            return Ok(());
        }
        let failure = self.failure();
        if settings.matrix == ProjectionMatrix::Mass
            && !redundant
            && self.active.is_none()
            && self.system.fuses_steps()
            && settings.max_solutions > 1
            && self.project_fused(settings, scale, &mut record).map_err(|error| failure.of(error))?
        {
            return Ok(());
        }
        // K belongs to multipliers of least norm, which the mass matrix finds as well.
        let first = if redundant { ProjectionMatrix::Mass } else { settings.matrix };
        self.prepare_projection(first, scale, redundant).map_err(|error| failure.of(error))?;
        if redundant {
            // On their way rows contradicted each other: what that put into the null space, divided by E, is large.
            self.least_multipliers().map_err(|error| failure.of(error))?;
            if settings.matrix != first {
                self.prepare_projection(settings.matrix, scale, redundant)
                    .map_err(|error| failure.of(error))?;
            }
            // That used the memory of the rows' sizes.
            let (dims, pattern) = (self.system.dims(), self.system.pattern());
            let blocks = Blocks::of(&dims, &pattern, self.leading.matrix);
            let units = self.system.units();
            let sized = blocks.and_then(|blocks| blocks.row_sizes(&dims, &pattern, units, self.sizes));
            sized.map_err(|error| failure.of(error))?;
        }
        if let Some(record) = &mut record {
            copy(record.lambda_star, self.lambda);
        }
        let projected = self.system.dims().n_projected;
        if projected == 0 {
            let sigma = record.map(|record| &mut *record.sigma);
            self.project_level(settings, Level::Velocity, scale, redundant, sigma)?;
            self.project_level(settings, Level::Acceleration, scale, redundant, None)?;
            return match redundant {
                true => self.least_multipliers().map_err(|error| failure.of(error)),
                false => Ok(()),
            };
        }
        // Memory of their own while the step goes on.
        let projections = core::mem::take(&mut self.projections);
        keep_projections(projected, projections, &[], self.lambda).map_err(|error| failure.of(error))?;
        let (sigma, _) = cut_mut("projections", projections, projected).map_err(|error| failure.of(error))?;
        self.project_level(settings, Level::Velocity, scale, redundant, Some(&mut *sigma))?;
        self.project_level(settings, Level::Acceleration, scale, redundant, None)?;
        if redundant {
            self.least_multipliers().map_err(|error| failure.of(error))?;
            self.least_norm_of(sigma).map_err(|error| failure.of(error))?;
        }
        if let Some(record) = record {
            copy(record.sigma, sigma);
        }
        find_kappa(projected, projections, self.lambda).map_err(|error| failure.of(error))?;
        self.projections = projections;
        Ok(())
    }

    /// Both projections by one bundle; false, and nothing done, if its elimination fails or it leaves more than rounding.
    #[inline(always)]
    fn project_fused(
        &mut self,
        settings: &Projection,
        scale: &[M::S],
        record: &mut Option<&mut Record<'_, M::S>>,
    ) -> Result<bool, EvalError> {
        let (dims, units, h) = (self.system.dims(), self.system.units(), self.formulas.h.real().abs());
        let entries = self.leading.matrix.len() - dims.rows();
        let (_, compliance) = cut_mut("matrix", self.leading.matrix, entries)?;
        write_least(scale, units, false, compliance);
        // Of the dense factors' memory, which is not in use.
        let n = dims.nq + dims.rows();
        let (acceleration, rest) = cut_mut("dense", self.leading.dense, n)?;
        let (phidd, _) = cut_mut("dense", rest, dims.rows())?;
        let at = instant!(self);
        let solved = self.system.project_step(at, compliance, self.w, self.x, acceleration, self.phi, phidd);
        if solved.is_err() || !all_finite(self.x) || !all_finite(acceleration) {
            return Ok(false);
        }
        // As `project_level` judges it; where what is left is neither rounding nor small, that one decides.
        let rounding = ROUNDING * M::S::EPSILON;
        let allowed = settings.max_violation * self.speed + rounding * self.size / h;
        let sizes = [units.largest(self.next.zd), units.largest(self.next.zdd)];
        for ((left, size), time) in [&*self.phi, &*phidd].into_iter().zip(sizes).zip([1.0, h]) {
            for (residual, n) in left.iter().zip(self.sizes.iter()) {
                let (residual, n) = (residual.real().abs(), size_of(*n));
                if !(residual <= rounding * n * size && residual * time <= allowed * n) {
                    return Ok(false);
                }
            }
        }
        let (d, sigma) = cut("x", self.x, dims.nq)?;
        let (e, kappa) = cut("x", acceleration, dims.nq)?;
        if let Some(record) = record {
            copy(record.lambda_star, self.lambda);
            copy(record.sigma, sigma);
        }
        add_scaled(self.next.zd, M::S::ONE, d);
        add_scaled(self.next.zdd, M::S::ONE, e);
        if dims.n_projected > 0 {
            keep_projections(dims.n_projected, self.projections, sigma, self.lambda)?;
        }
        add_scaled(self.lambda, M::S::ONE, kappa);
        if dims.n_projected > 0 {
            find_kappa(dims.n_projected, self.projections, self.lambda)?;
        }
        let statistics = &mut self.statistics;
        (statistics.velocity_projections, statistics.phid) = (2, largest(self.phi));
        (statistics.acceleration_projections, statistics.phidd) = (2, largest(phidd));
        Ok(true)
    }

    /// Replaces λ by its representative of least norm, without a projection.
    #[inline(always)]
    pub(crate) fn least_norm_multipliers(
        &mut self,
        matrix: ProjectionMatrix,
        scale: &[M::S],
    ) -> Result<(), StepError> {
        let failure = self.failure();
        let prepared = self.prepare_projection(matrix, scale, true);
        prepared.and_then(|()| self.least_multipliers()).map_err(|error| failure.of(error))
    }

    /// The leading matrix of both projections, and its factors.
    #[inline(always)]
    fn prepare_projection(
        &mut self,
        matrix: ProjectionMatrix,
        scale: &[M::S],
        redundant: bool,
    ) -> Result<(), EvalError> {
        let (dims, pattern) = (self.system.dims(), self.system.pattern());
        let values = &mut *self.leading.matrix;
        match matrix {
            ProjectionMatrix::Mass => {
                self.system.projection(self.t_next, self.next.z, self.u, self.w, values)?;
            }
            ProjectionMatrix::Tangent => {
                let (at, weights) = (instant!(self), self.formulas.weights);
                self.system.newton(at, self.lambda, weights, self.w, self.r, self.phi, values)?;
                let blocks = &mut BlocksMut::of(&dims, &pattern, values)?;
                blocks.symmetrise(&pattern);
                // The projections know A alone.
                copy(blocks.nonholonomic_newton, blocks.nonholonomic);
            }
        }
        let mut blocks = BlocksMut::of(&dims, &pattern, values)?;
        write_least(scale, self.system.units(), redundant, blocks.compliance);
        if let Some(active) = self.active {
            blocks.mask(&dims, &pattern, active)?;
        }
        self.leading.factor(self.w, false)
    }

    /// Projects zd, or zdd and λ with it.
    #[inline(always)]
    fn project_level(
        &mut self,
        settings: &Projection,
        level: Level,
        scale: &[M::S],
        redundant: bool,
        mut sigma: Option<&mut [M::S]>,
    ) -> Result<(), StepError> {
        let failure = self.failure();
        let fail = |error| failure.of(error);
        let (dims, pattern, units) = (self.system.dims(), self.system.pattern(), self.system.units());
        let velocity = level == Level::Velocity;
        let evaluated = if velocity {
            self.system.constraint_rates(instant!(self), self.w, self.phi)
        } else {
            self.system.constraint_accelerations(instant!(self), self.w, self.phi)
        };
        evaluated.map_err(fail)?;
        if let Some(active) = self.active {
            zero_inactive_rows(active, self.phi);
        }
        let size = units.largest(if velocity { &*self.next.zd } else { &*self.next.zdd });
        let before = units.largest_row(self.phi);
        let least = if redundant { units.largest_row(self.sizes) } else { 0.0 };
        let (mut solutions, mut previous, mut shrinks, mut short) = (0, f64::INFINITY, false, false);
        while solutions < settings.max_solutions || shrinks && solutions < MOST_SOLUTIONS {
            // (d, σ) from (0, −residual)
            let zeros = core::iter::repeat_n(M::S::ZERO, dims.nq);
            let residuals = self.phi.iter().map(|&residual| -residual);
            for (x, value) in self.x.iter_mut().zip(zeros.chain(residuals)) {
                *x = value;
            }
            self.leading.solve(self.w, self.x).map_err(fail)?;
            solutions += 1;

            let (d, multipliers) = cut("x", self.x, dims.nq).map_err(fail)?;
            if velocity {
                add_scaled(self.next.zd, M::S::ONE, d);
                if let Some(sigma) = &mut sigma {
                    add_scaled(sigma, M::S::ONE, multipliers);
                }
            } else {
                add_scaled(self.next.zdd, M::S::ONE, d);
                add_scaled(self.lambda, M::S::ONE, multipliers);
            }
            // residual += (Φ_z; A) d
            let blocks = Blocks::of(&dims, &pattern, self.leading.matrix).map_err(fail)?;
            blocks.add_rows_times(&dims, &pattern, d, self.phi).map_err(fail)?;

            let rounding = ROUNDING * M::S::EPSILON;
            let (mut done, mut left) = (true, 0.0);
            short = false;
            for (k, (residual, n)) in self.phi.iter().zip(self.sizes.iter()).enumerate() {
                let (residual, unit) = (residual.real().abs(), units.row(k));
                let bound = rounding * (size_of(*n).max(least * unit) * size + before * unit);
                done &= residual <= bound;
                short |= residual > SHORT * bound;
                left = if residual > left * unit { residual / unit } else { left };
            }
            if done {
                break;
            }
            shrinks = left < SHRINKS * previous;
            previous = left;
            if left > DOUBTFUL * before && !self.leading.uses_dense() {
                self.leading.factor_dense().map_err(fail)?;
            }
        }
        self.statistics.short_projections += usize::from(short);
        if velocity {
            (self.statistics.velocity_projections, self.statistics.phid) = (solutions, largest(self.phi));
        } else {
            (self.statistics.acceleration_projections, self.statistics.phidd) =
                (solutions, largest(self.phi));
        }
        // A violation that is left is real if it makes a large error of the motion in a step: of velocities in comparison
        // with V, of accelerations times h too. Velocities of an index-3 step are known to the rounding of positions over h.
        let time = if velocity { 1.0 } else { failure.h.abs() };
        let rounding = ROUNDING * M::S::EPSILON * self.size / failure.h.abs();
        let allowed = settings.max_violation * self.speed + rounding;
        let real = |(residual, n): (&M::S, &M::S)| residual.real().abs() * time > allowed * size_of(*n);
        if self.phi.iter().zip(self.sizes.iter()).any(real) {
            // Rows whose entries vanish where the mechanism is singular count by what they were at the start.
            sizes_of_start(self.system, self.leading.matrix, scale, self.sizes).map_err(fail)?;
            if self.phi.iter().zip(self.sizes.iter()).any(real) {
                return Err(not_projected(&dims, failure, level, self.phi, self.sizes));
            }
        }
        Ok(())
    }

    /// Replaces λ by the multipliers of least norm that give the same forces, or they would drift in the null space of Φ_zᵀ.
    #[inline(always)]
    fn least_multipliers(&mut self) -> Result<(), EvalError> {
        let lambda = core::mem::take(&mut self.lambda);
        let found = self.least_norm_of(lambda);
        self.lambda = lambda;
        found
    }

    /// The same for any multipliers.
    #[inline(always)]
    fn least_norm_of(&mut self, lambda: &mut [M::S]) -> Result<(), EvalError> {
        let leading = self.leading.reborrow();
        least_multipliers(self.system, leading, lambda, self.phi, self.sizes, self.x, self.w)
    }
}

/// Keeps σ, and λ* in the place of κ until λ is known, where objectives read them.
#[inline(always)]
fn keep_projections<S: Scalar>(
    projected: usize,
    projections: &mut [S],
    sigma: &[S],
    star: &[S],
) -> Result<(), EvalError> {
    let (to, kappa) = cut_mut("projections", projections, projected)?;
    to.fill(S::ZERO);
    copy(to, sigma);
    copy(kappa, star);
    Ok(())
}

/// κ = λ − λ*
#[inline(always)]
fn find_kappa<S: Scalar>(projected: usize, projections: &mut [S], lambda: &[S]) -> Result<(), EvalError> {
    let (_, kappa) = cut_mut("projections", projections, projected)?;
    for (kappa, &lambda) in kappa.iter_mut().zip(lambda) {
        *kappa = lambda - *kappa;
    }
    Ok(())
}

#[cold]
#[inline(never)]
fn least_multipliers<M: Constrained>(
    system: &M,
    mut leading: Leading<'_, M>,
    lambda: &mut [M::S],
    phi: &mut [M::S],
    compliance: &mut [M::S],
    x: &mut [M::S],
    w: &mut [M::S],
) -> Result<(), EvalError> {
    let (dims, pattern) = (system.dims(), system.pattern());
    let blocks = Blocks::of(&dims, &pattern, leading.matrix)?;
    copy(compliance, blocks.compliance);
    least_norm(dims.nq, compliance, lambda, phi, x, |x| leading.solve(w, x))
}

#[cold]
#[inline(never)]
fn not_projected<S: Scalar>(
    dims: &Dims,
    Failure { t, h }: Failure,
    level: Level,
    residuals: &[S],
    sizes: &[S],
) -> StepError {
    let (mut worst, mut index, mut violation) = (0.0, 0, 0.0);
    for (k, (residual, n)) in residuals.iter().zip(sizes).enumerate() {
        let size = residual.real().abs() / size_of(*n);
        if size > worst {
            (worst, index, violation) = (size, k, residual.real());
        }
    }
    let (quantity, index) = row(dims, index);
    StepError::NotProjected { t, h, level, violation, quantity, index }
}
