//! What a start takes from the equations of motion: accelerations and multipliers, and what is known of the rows.
//!
//! Input: positions and rates that satisfy the constraints. Output: zdd and λ; the scale of each row, how many of them are
//! independent, and an error where neither inertia nor constraints determine a coordinate.

use super::compliance::write_least;
use super::multipliers::least_norm;
use super::start::Work;
use crate::constrained::{Constrained, Motion};
use crate::error::{EvalError, Level, StepError};
use crate::linear::blocks::{Blocks, BlocksMut, holonomic_rows};
use crate::linear::leading::{factor_weighed, root_of_inertia, weigh};
use crate::linear::rank::rank;
use crate::linear::{copy, largest, lu};
use crate::pieces::{cut, cut_mut};
use crate::scalar::{Scalar, sqrt};
use crate::system::{Quantity, rests};

/// Refinements of the solution; each leaves about 1e−9 of the error.
const REFINEMENTS: usize = 5;

impl<M: Constrained> Work<'_, M> {
    /// Row scales; how many rows are independent; and whether every direction has inertia or a constraint.
    pub(super) fn scale_and_rank_rows(&mut self) -> Result<(), StepError> {
        self.evaluate_matrix().map_err(|error| self.failed(error))?;
        let pattern = self.system.pattern();
        let blocks = Blocks::of(&self.dims, &pattern, self.matrix).map_err(|error| self.failed(error))?;
        let (nq, rows, holonomic) = (self.dims.nq, self.dims.rows(), holonomic_rows(&self.dims));

        let units = self.system.units();
        // M_jj c_j², for now in r
        self.r.fill(M::S::ZERO);
        for (&(i, j), &value) in pattern.tangent.iter().zip(blocks.tangent) {
            if let Some(m) = self.r.get_mut(i as usize).filter(|_| i == j) {
                let unit = units.coordinate(i as usize);
                *m = M::S::from_f64(value.real() * unit * unit);
            }
        }
        let massless = 1e3 * M::S::EPSILON * largest(self.r);
        // S_k = Σ_j Φ_kj²/M_jj over what has mass
        self.scale.fill(M::S::ZERO);
        let parts = [
            (0, pattern.holonomic, blocks.holonomic),
            (holonomic, pattern.nonholonomic, blocks.nonholonomic),
        ];
        for (first, places, values) in parts {
            for (&(k, j), value) in places.iter().zip(values) {
                let says = self.sizes.get(first + k as usize).is_some_and(|size| size.real() > 0.0);
                if let (Some(scale), Some(m)) =
                    (self.scale.get_mut(first + k as usize), self.r.get(j as usize))
                    && m.real() > massless
                    && says
                {
                    let value = value.real() * units.coordinate(j as usize);
                    *scale += M::S::from_f64(value * value / m.real());
                }
            }
        }
        // Rows that touch no mass, or say nothing, take the mean of the others, in the units of the rows.
        let square = |row: usize| units.row(row) * units.row(row);
        let known = || self.scale.iter().enumerate().filter(|(_, scale)| scale.real() > 0.0);
        let sum: f64 = known().map(|(row, scale)| scale.real() / square(row)).sum();
        let count = known().count();
        let mean = if count > 0 { sum / count as f64 } else { 1.0 };
        for (row, scale) in self.scale.iter_mut().enumerate() {
            let known = scale.real() > 0.0;
            *scale = if known { *scale } else { M::S::from_f64(mean * square(row)) };
        }

        // The matrix (Φ_z; A; M), row by row.
        self.dense.fill(M::S::ZERO);
        let t = self.t.real();
        let fail = |error: EvalError| error.in_step(t, 0.0);
        let (dense, _) = cut_mut("dense", self.dense, (rows + nq) * nq).map_err(fail)?;
        let parts = [
            (0, pattern.holonomic, blocks.holonomic),
            (holonomic, pattern.nonholonomic, blocks.nonholonomic),
            (rows, pattern.tangent, blocks.tangent),
        ];
        for (first, places, values) in parts {
            for (&(k, j), &value) in places.iter().zip(values) {
                if let Some(entry) = dense.get_mut((first + k as usize) * nq + j as usize) {
                    *entry = value * M::S::from_f64(units.coordinate(j as usize));
                }
            }
        }
        let (used, _) = cut_mut("pivots", self.pivots, rows + 2 * nq).map_err(fail)?;
        let found = rank(nq, dense, used, 1e4 * M::S::EPSILON).map_err(fail)?;
        if let Some(index) = found.free_column {
            let quantity = Quantity::Coordinate;
            return Err(self.failed(EvalError::SingularLeading { quantity, index }));
        }
        let (dense, _) = cut_mut("dense", self.dense, rows * nq).map_err(fail)?;
        dense.fill(M::S::ZERO);
        for (first, places, values) in parts.into_iter().take(2) {
            for (&(k, j), &value) in places.iter().zip(values) {
                let says = self.sizes.get(first + k as usize).is_some_and(|size| size.real() > 0.0);
                if let Some(entry) = dense.get_mut((first + k as usize) * nq + j as usize).filter(|_| says) {
                    *entry = value * M::S::from_f64(units.coordinate(j as usize));
                }
            }
        }
        // Rows that are zero where the mechanism stands, and not for their states, count: they are dependent ones.
        // Normalisation rows stand between those of the joint form.
        let place = |k: usize| if k < self.dims.n_holonomic { k } else { k + self.dims.n_normalisation };
        let active = |k: usize| self.active.get(place(k)).is_some_and(|active| *active != M::S::ZERO);
        let joint_rows = 0..self.dims.joint_rows();
        self.idle = joint_rows.filter(|&k| active(k) && rests(self.system, k, self.u)).count();
        let (used, _) = cut_mut("pivots", self.pivots, rows + nq).map_err(fail)?;
        self.statistics.rank = rank(nq, dense, used, sqrt(M::S::EPSILON)).map_err(fail)?.rank;
        self.statistics.rows = self.active.iter().filter(|active| **active != M::S::ZERO).count();
        if cfg!(feature = "independent") && self.statistics.rank < self.statistics.rows {
            let what =
                "constraints depend on each other here: build the runtime without its feature `independent`";
            return Err(StepError::Unsupported { what });
        }
        Ok(())
    }

    /// zdd and λ from the equations of motion and the constraints of accelerations.
    pub(super) fn find_accelerations(&mut self) -> Result<(), StepError> {
        let free = self.solve_accelerations().map_err(|error| self.failed(error))?;
        self.accelerations().map_err(|error| self.failed(error))?;
        // Rounding is that of what the constraints hold back, too: a mechanism may be at rest under forces. Terms of velocities are those
        // of their squares.
        let speed = self.size(self.zd);
        let size = self.size(self.zdd).max(speed * speed).max(free);
        self.statistics.phidd = self.consistent(Level::Acceleration, size)?;
        Ok(())
    }

    /// Gives the largest |r_j|/(M_jj c_j) without constraints, or what the constraints' terms of zd and t demand, which are accelerations.
    fn solve_accelerations(&mut self) -> Result<f64, EvalError> {
        let (nq, rows) = (self.dims.nq, self.dims.rows());
        let n = nq + rows;
        // b = (−r, −(terms of zd and t)) at zdd = 0 and λ = 0
        let at = Motion { t: self.t, z: self.z, zd: self.zd, zdd: self.zdd, u: self.u };
        self.system.residual(at, self.lambda, self.w, self.r, self.phi)?;
        self.accelerations()?;
        let demanded = self.worst().0;
        let parts = self.r.iter().chain(self.phi.iter());
        for (b, &value) in self.b.iter_mut().zip(parts) {
            *b = -value;
        }

        self.evaluate_matrix()?;
        let pattern = self.system.pattern();
        let mut blocks = BlocksMut::of(&self.dims, &pattern, self.matrix)?;
        let units = self.system.units();
        write_least(self.scale, units, self.statistics.rank < self.statistics.rows, blocks.compliance);
        if self.masked {
            blocks.mask(&self.dims, &pattern, self.active)?;
        }
        let blocks = Blocks::of(&self.dims, &pattern, self.matrix)?;
        let diagonal = pattern.tangent.iter().zip(blocks.tangent).filter(|((i, j), _)| i == j);
        let acceleration = |((i, _), m): (&(u32, u32), &M::S)| {
            let force = self.r.get(*i as usize)?.real().abs();
            Some(force / (m.real() * units.coordinate(*i as usize)))
        };
        let free = diagonal.filter_map(acceleration).filter(|a| a.is_finite()).fold(demanded, f64::max);
        blocks.dense(&self.dims, &pattern, self.dense);
        let root = root_of_inertia(self.system, self.matrix)?;
        factor_weighed(self.system, root, self.dense, self.pivots)?;
        // (x, λ)_next from b − (0, E λ): what E does is taken back.
        self.x.fill(M::S::ZERO);
        for _ in 0..REFINEMENTS {
            let (top, bottom) = cut_mut("x", self.x, nq)?;
            copy(top, self.b);
            let (_, b) = cut("b", self.b, nq)?;
            for ((x, &b), &e) in bottom.iter_mut().zip(b).zip(blocks.compliance) {
                *x = b - e * *x;
            }
            weigh(self.system, root, self.x);
            lu::solve(n, self.dense, self.pivots, self.x);
        }
        let (zdd, lambda) = cut("x", self.x, nq)?;
        copy(self.zdd, zdd);
        copy(self.lambda, lambda);
        if !cfg!(feature = "independent") && self.statistics.rank < self.statistics.rows {
            let (system, dense, pivots) = (self.system, &*self.dense, &*self.pivots);
            least_norm(nq, blocks.compliance, self.lambda, self.phi, self.x, |x| {
                weigh(system, root, x);
                lu::solve(n, dense, pivots, x);
                Ok(())
            })?;
        }
        match self.zdd.iter().position(|zdd| !zdd.is_finite()) {
            None => Ok(free),
            Some(index) => Err(EvalError::NotFinite { quantity: Quantity::Coordinate, index }),
        }
    }
}
