//! A consistent start: positions, velocities, accelerations and multipliers that satisfy the constraints and the equations of
//! motion at t0. And the analysis of a fully driven mechanism at any t, which is the same without the equations of motion.
//!
//! Input: guesses z, zd; coordinates that are held at theirs. Output: the state, with the scale of its rows, and whether rows
//! depend on each other.
//!
//! | symbol | meaning |
//! |---|---|
//! | c_j | natural scale of coordinate j, see `newton`; every change d is measured in them |
//! | D | 1, and 0 for dependent coordinates; columns of held ones are removed from B |
//! | B | rows of Φ_z (positions), of Φ_z and A (velocities, accelerations), times c_j, each divided by n_k |
//! | n_k | largest entry of row k, times c_j |
//! | μ | Levenberg's damping of positions, relative to scaled rows |
//!
//! ```text
//! [ D  Bᵀ ] [d]   [ 0        ]      positions: z += d until Φ = 0      velocities: zd += d, linear
//! [ B  −μ ] [y] = [−residual ]      d is the smallest change that does it
//!
//! [ M    Φ_zᵀ  Aᵀ ] [zdd]   [−r(zdd = 0, λ = 0)    ]
//! [ Φ_z  −E       ] [ λ ] = [−(terms of zd and t)  ]        refined until E has no part in it
//! [ A         −E  ] [ μ ]   [−(terms of zd and t)  ]
//! ```
//!
//! Then positions move along the constraints to those nearest to the guess, see `nearest`.
//!
//! Steps of positions are limited and must reduce Σ (Φ_k/n_k)²; where one does not, the damping grows [Levenberg 1944;
//! Marquardt 1963]. Damping also decides where rows depend on each other.

use super::newton::{size_of, zero_inactive_rows};
use super::refuse_first_order_states;
use super::state::State;
use crate::constrained::{Constrained, Motion};
use crate::error::{EvalError, Level, StepError};
use crate::inputs::Inputs;
use crate::integrator::renormalise_with_rates;
use crate::linear::blocks::{Blocks, BlocksMut, holonomic_rows, row, unknown};
use crate::linear::rank::rank;
use crate::linear::{add_scaled, all_finite, copy, largest, lu};
use crate::pieces::{Pieces, cut, cut_mut};
use crate::scalar::{Scalar, sqrt};
use crate::system::{Dims, Quantity};

/// Largest step of positions, in units of max(1, ‖z‖): half a radian, or half the model's length.
const LONGEST: f64 = 0.5;
/// Damping where a step first fails, its growth, and where hope ends: steps are then below a millionth of what is wanted.
const FIRST_DAMPING: f64 = 1e-6;
const DAMPING_GROWTH: f64 = 10.0;
const LARGEST_DAMPING: f64 = 1e6;
/// Rounding of constraints, in units of ε max(1, ‖z‖); with twelve bits lost, see `newton`.
const ROUNDING: f64 = 8.0;
const BAD_ROUNDING: f64 = 4096.0;
/// Refinements of a linear solution; each leaves about 1e−9 of the error.
const REFINEMENTS: usize = 5;

/// Settings of the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assembly {
    /// Steps of positions that may be tried.
    pub max_iterations: usize,
}

/// What the start took, and what is known of the rows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StartStatistics {
    /// Steps of positions.
    pub iterations: usize,
    /// Largest |Φ|.
    pub phi: f64,
    /// Largest |Φd| or |Ψ|.
    pub phid: f64,
    /// Largest |Φdd| or |Ψd|.
    pub phidd: f64,
    /// Active rows that act in the states that hold.
    pub rows: usize,
    /// Independent ones among them.
    pub rank: usize,
}

impl Assembly {
    /// At most 200 steps.
    pub const DEFAULT: Self = Self { max_iterations: 200 };

    /// Length of the scratch it needs, at least; a constant for generated models.
    #[inline(always)]
    pub const fn scratch_len(dims: &Dims) -> usize {
        let n = dims.nq + dims.rows();
        7 * dims.nq + 4 * dims.rows() + 6 * n + n * n + 3 * dims.n_matrix + dims.nu + dims.workspace
    }

    /// Makes the state consistent at its time: held coordinates and their rates stay, the others move as little as possible.
    /// Rows that are not active are left out. After an error the state is as before.
    #[inline(never)]
    pub fn start<M: Constrained, I: Inputs<M::S>>(
        &self,
        system: &M,
        inputs: &mut I,
        state: &mut [M::S],
        scratch: &mut [M::S],
    ) -> Result<StartStatistics, StepError> {
        let dims = system.dims();
        refuse_first_order_states(&dims)?;
        let State { t, z, zd, zdd, a, lambda, active, scale, redundant: flag, tangent, .. } =
            State::of(&dims, state)?;
        let mut work = Work::new(system, inputs, *t, z, zd, active, scratch)?;
        work.find_positions(self, system.held())?;
        work.find_nearest(self, system.held())?;
        work.find_rates(system.held())?;
        work.scale_and_rank_rows()?;
        work.find_accelerations()?;
        copy(z, work.z);
        copy(zd, work.zd);
        copy(zdd, work.zdd);
        copy(a, work.zdd);
        // Nothing has been projected.
        lambda.fill(M::S::ZERO);
        copy(lambda, work.lambda);
        copy(scale, work.scale);
        let redundant = work.statistics.rank < work.statistics.rows;
        *flag = if redundant { M::S::ONE } else { M::S::ZERO };
        tangent.fill(M::S::ZERO);
        // What does not act depends on nothing.
        let rows = work.statistics.rows - work.idle.min(work.statistics.rows);
        Ok(StartStatistics { rows, ..work.statistics })
    }

    /// Positions, velocities and accelerations of a mechanism whose constraints and drives determine them, at the state's
    /// time; guesses are its z. There are no forces in it: multipliers are zero. After an error the state is as before.
    pub fn driven<M: Constrained, I: Inputs<M::S>>(
        &self,
        system: &M,
        inputs: &mut I,
        state: &mut [M::S],
        scratch: &mut [M::S],
    ) -> Result<StartStatistics, StepError> {
        let dims = system.dims();
        refuse_first_order_states(&dims)?;
        let State { t, z, zd, zdd, a, lambda, active, .. } = State::of(&dims, state)?;
        let mut work = Work::new(system, inputs, *t, z, zd, active, scratch)?;
        work.find_positions(self, &[])?;
        work.check_driven()?;
        work.zd.fill(M::S::ZERO);
        work.find_rates(&[])?;
        work.zdd.fill(M::S::ZERO);
        work.find_driven_accelerations()?;
        copy(z, work.z);
        copy(zd, work.zd);
        copy(zdd, work.zdd);
        copy(a, work.zdd);
        lambda.fill(M::S::ZERO);
        Ok(work.statistics)
    }

    /// What it takes to move a state that [`Assembly::driven`] left as it does: multipliers from the equations of motion, and the scale of
    /// the rows. After an error the state is as before.
    pub fn driven_forces<M: Constrained, I: Inputs<M::S>>(
        &self,
        system: &M,
        inputs: &mut I,
        state: &mut [M::S],
        scratch: &mut [M::S],
    ) -> Result<StartStatistics, StepError> {
        let State { t, z, zd, lambda, active, scale, redundant: flag, .. } =
            State::of(&system.dims(), state)?;
        let mut work = Work::new(system, inputs, *t, z, zd, active, scratch)?;
        work.scale_and_rank_rows()?;
        work.find_accelerations()?;
        copy(lambda, work.lambda);
        copy(scale, work.scale);
        let redundant = work.statistics.rank < work.statistics.rows;
        *flag = if redundant { M::S::ONE } else { M::S::ZERO };
        Ok(work.statistics)
    }
}

impl Default for Assembly {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The start under way, in the scratch.
pub(super) struct Work<'a, M: Constrained> {
    pub(super) system: &'a M,
    pub(super) dims: Dims,
    pub(super) t: M::S,
    pub(super) u: &'a [M::S],
    pub(super) active: &'a [M::S],
    pub(super) masked: bool,
    pub(super) z: &'a mut [M::S],
    pub(super) zd: &'a mut [M::S],
    pub(super) zdd: &'a mut [M::S],
    pub(super) trial: &'a mut [M::S],
    pub(super) r: &'a mut [M::S],
    pub(super) lambda: &'a mut [M::S],
    pub(super) scale: &'a mut [M::S],
    pub(super) phi: &'a mut [M::S],
    pub(super) sizes: &'a mut [M::S],
    pub(super) matrix: &'a mut [M::S],
    pub(super) dense: &'a mut [M::S],
    /// Pivots of the dense matrix; or what is used in the search for its rank.
    pub(super) pivots: &'a mut [M::S],
    pub(super) x: &'a mut [M::S],
    pub(super) b: &'a mut [M::S],
    /// The guess of positions.
    pub(super) guess: &'a mut [M::S],
    /// nq + n values.
    pub(super) kept: &'a mut [M::S],
    pub(super) spare: &'a mut [M::S],
    pub(super) curved: &'a mut [M::S],
    pub(super) flat: &'a mut [M::S],
    pub(super) w: &'a mut [M::S],
    pub(super) statistics: StartStatistics,
    /// Active rows that rest in the states that hold.
    pub(super) idle: usize,
}

impl<'a, M: Constrained> Work<'a, M> {
    fn new<I: Inputs<M::S>>(
        system: &'a M,
        inputs: &mut I,
        t: M::S,
        z: &[M::S],
        zd: &[M::S],
        active: &'a [M::S],
        scratch: &'a mut [M::S],
    ) -> Result<Self, StepError> {
        let dims = system.dims();
        let (nq, rows) = (dims.nq, dims.rows());
        let n = nq + rows;
        let mut pieces = Pieces::of(scratch, Assembly::scratch_len(&dims));
        let u = pieces.next(dims.nu)?;
        if !u.is_empty() {
            inputs.at(t, u);
        }
        let work = Self {
            system,
            dims,
            t,
            u,
            active,
            masked: active.contains(&M::S::ZERO),
            z: pieces.next(nq)?,
            zd: pieces.next(nq)?,
            zdd: pieces.next(nq)?,
            trial: pieces.next(nq)?,
            r: pieces.next(nq)?,
            lambda: pieces.next(rows)?,
            scale: pieces.next(rows)?,
            phi: pieces.next(rows)?,
            sizes: pieces.next(rows)?,
            matrix: pieces.next(dims.n_matrix)?,
            dense: pieces.next(n * n)?,
            pivots: pieces.next(2 * n)?,
            x: pieces.next(n)?,
            b: pieces.next(n)?,
            guess: pieces.next(nq)?,
            kept: pieces.next(nq + n)?,
            spare: pieces.next(n)?,
            curved: pieces.next(dims.n_matrix)?,
            flat: pieces.next(dims.n_matrix)?,
            w: pieces.next(dims.workspace)?,
            statistics: StartStatistics::default(),
            idle: 0,
        };
        copy(work.z, z);
        copy(work.zd, zd);
        for part in [&mut *work.zdd, work.lambda] {
            part.fill(M::S::ZERO);
        }
        renormalise_with_rates(system, work.z, work.zd);
        copy(work.guess, work.z);
        if let Some(index) = work.z.iter().position(|z| !z.is_finite()) {
            return Err(work.failed(EvalError::NotFinite { quantity: Quantity::Coordinate, index }));
        }
        Ok(work)
    }

    #[cold]
    pub(super) fn failed(&self, error: EvalError) -> StepError {
        error.in_step(self.t.real(), 0.0)
    }

    /// Into phi: Φ at the trial or the accepted positions.
    pub(super) fn positions(&mut self, trial: bool) -> Result<(), EvalError> {
        let z = if trial { &*self.trial } else { &*self.z };
        let at = Motion { t: self.t, z, zd: self.zd, zdd: self.zdd, u: self.u };
        self.system.residual(at, self.lambda, self.w, self.r, self.phi)?;
        // Ψ says nothing of positions.
        let (_, psi) = cut_mut("phi", self.phi, holonomic_rows(&self.dims))?;
        psi.fill(M::S::ZERO);
        self.zero_inactive_rows();
        Ok(())
    }

    /// Into phi: Φd and Ψ.
    fn rates(&mut self) -> Result<(), EvalError> {
        let at = Motion { t: self.t, z: self.z, zd: self.zd, zdd: self.zdd, u: self.u };
        self.system.constraint_rates(at, self.w, self.phi)?;
        self.zero_inactive_rows();
        Ok(())
    }

    /// Into phi: Φdd and Ψd.
    pub(super) fn accelerations(&mut self) -> Result<(), EvalError> {
        let at = Motion { t: self.t, z: self.z, zd: self.zd, zdd: self.zdd, u: self.u };
        self.system.constraint_accelerations(at, self.w, self.phi)?;
        self.zero_inactive_rows();
        Ok(())
    }

    fn zero_inactive_rows(&mut self) {
        if self.masked {
            zero_inactive_rows(self.active, self.phi);
        }
    }

    /// M, Φ_z and A at z, and the sizes of the rows.
    pub(super) fn evaluate_matrix(&mut self) -> Result<(), EvalError> {
        self.system.projection(self.t, self.z, self.u, self.w, self.matrix)?;
        let pattern = self.system.pattern();
        if self.masked {
            BlocksMut::of(&self.dims, &pattern, self.matrix)?.mask(&self.dims, &pattern, self.active)?;
        }
        let blocks = Blocks::of(&self.dims, &pattern, self.matrix)?;
        blocks.row_sizes(&self.dims, &pattern, self.system.units(), self.sizes)
    }

    /// Factors \[D Bᵀ; B −μ\]; without the nonholonomic rows for positions.
    pub(super) fn factor_smallest_change(
        &mut self,
        held: &[bool],
        damping: f64,
        level: Level,
    ) -> Result<(), EvalError> {
        self.fill_smallest_change(held, damping, level)?;
        lu::factor(self.dims.nq + self.dims.rows(), self.dense, self.pivots).map_err(|column| {
            let (quantity, index) = unknown(&self.dims, column);
            EvalError::SingularLeading { quantity, index }
        })
    }

    /// Into the dense matrix: \[D Bᵀ; B −μ\].
    pub(super) fn fill_smallest_change(
        &mut self,
        held: &[bool],
        damping: f64,
        level: Level,
    ) -> Result<(), EvalError> {
        let pattern = self.system.pattern();
        let blocks = Blocks::of(&self.dims, &pattern, self.matrix)?;
        let (nq, holonomic) = (self.dims.nq, holonomic_rows(&self.dims));
        let n = nq + self.dims.rows();
        self.dense.fill(M::S::ZERO);
        let dense = &mut *self.dense;
        let mut put = |i: usize, j: usize, value: M::S| {
            if let Some(entry) = dense.get_mut(j * n + i) {
                *entry = value;
            }
        };
        for j in 0..nq {
            put(j, j, weight(self.system, j));
        }
        for k in 0..self.dims.rows() {
            put(nq + k, nq + k, M::S::from_f64(-damping));
        }
        let rows = [
            (0, pattern.holonomic, blocks.holonomic, true),
            (holonomic, pattern.nonholonomic, blocks.nonholonomic, level != Level::Position),
        ];
        for (first, places, values, wanted) in rows {
            for (&(k, j), &value) in places.iter().zip(values) {
                let (k, j) = (first + k as usize, j as usize);
                let free = !held.get(j).is_some_and(|held| *held);
                if wanted && free {
                    let size = self.sizes.get(k).map_or(1.0, |n| size_of(*n));
                    let unit = M::S::from_f64(self.system.units().coordinate(j));
                    let value = value * unit / M::S::from_f64(size);
                    put(nq + k, j, value);
                    put(j, nq + k, value);
                }
            }
        }
        Ok(())
    }

    /// Into x: the smallest change for the residual in phi.
    fn solve_smallest_change(&mut self) -> Result<(), StepError> {
        let t = self.t.real();
        let parts = cut_mut("x", self.x, self.dims.nq);
        let (top, bottom) = parts.map_err(|error| error.in_step(t, 0.0))?;
        top.fill(M::S::ZERO);
        for (x, (&residual, n)) in bottom.iter_mut().zip(self.phi.iter().zip(self.sizes.iter())) {
            *x = -residual / M::S::from_f64(size_of(*n));
        }
        lu::solve(self.dims.nq + self.dims.rows(), self.dense, self.pivots, self.x);
        for (j, d) in self.x.iter_mut().take(self.dims.nq).enumerate() {
            *d *= M::S::from_f64(self.system.units().coordinate(j));
        }
        Ok(())
    }

    /// Largest magnitude in units of the coordinates.
    pub(super) fn size(&self, values: &[M::S]) -> f64 {
        self.system.units().largest(values)
    }

    /// max_k |residual_k|/n_k and its row.
    pub(super) fn worst(&self) -> (f64, usize) {
        let rows = self.phi.iter().zip(self.sizes.iter()).enumerate();
        rows.fold((0.0, 0), |(worst, index), (k, (residual, n))| {
            let size = residual.real().abs() / size_of(*n);
            if size > worst { (size, k) } else { (worst, index) }
        })
    }

    /// Σ (residual_k/n_k)²
    fn merit(&self) -> f64 {
        let rows = self.phi.iter().zip(self.sizes.iter());
        rows.map(|(residual, n)| residual.real() / size_of(*n)).map(|size| size * size).sum()
    }

    /// The value of a row, for messages.
    fn violation(&self, index: usize) -> (f64, Quantity, usize) {
        let (quantity, number) = row(&self.dims, index);
        (self.phi.get(index).map_or(0.0, |phi| phi.real()), quantity, number)
    }

    /// Φ = 0 from the guess.
    fn find_positions(&mut self, settings: &Assembly, held: &[bool]) -> Result<(), StepError> {
        self.positions(false).map_err(|error| self.failed(error))?;
        self.assemble(settings, held)
    }

    /// Φ = 0 by damped Newton steps of smallest size from z, at which phi is known.
    pub(super) fn assemble(&mut self, settings: &Assembly, held: &[bool]) -> Result<(), StepError> {
        let least = least_damping::<M::S>();
        let mut damping = least;
        let mut tried = self.statistics.iterations;
        loop {
            // Sizes belong to the new matrix; the merit is measured with the same ones before and after a step.
            self.evaluate_matrix().map_err(|error| self.failed(error))?;
            let merit = self.merit();
            let size = self.size(self.z).max(1.0);
            loop {
                if merit == 0.0 {
                    return self.assembled(held);
                }
                if tried >= settings.max_iterations || damping > LARGEST_DAMPING {
                    return self.not_assembled(size);
                }
                tried += 1;
                self.statistics.iterations = tried;
                let factored = self.factor_smallest_change(held, damping, Level::Position);
                factored.map_err(|error| self.failed(error))?;
                self.solve_smallest_change()?;
                let (d, _) = cut("x", self.x, self.dims.nq).map_err(|error| self.failed(error))?;
                let length = self.size(d);
                let limit = LONGEST * size;
                let part = if length > limit { limit / length } else { 1.0 };
                copy(self.trial, self.z);
                add_scaled(self.trial, M::S::from_f64(part), d);
                let known = self.positions(true);
                let better = known.is_ok() && all_finite(self.phi) && self.merit() < merit;
                if better {
                    copy(self.z, self.trial);
                    damping = (damping / DAMPING_GROWTH).max(least);
                    let done = length <= ROUNDING * M::S::EPSILON * size;
                    if done && self.worst().0 <= BAD_ROUNDING * M::S::EPSILON * size {
                        return self.assembled(held);
                    }
                    break;
                }
                self.positions(false).map_err(|error| self.failed(error))?;
                if self.is_rounding(size) {
                    // Rounding leaves nothing to improve.
                    return self.assembled(held);
                }
                damping = (DAMPING_GROWTH * damping).max(FIRST_DAMPING);
            }
        }
    }

    /// One more step, of the size of rounding: with it parts of the positions that decisions do not see, such as imaginary
    /// ones, are solved for as well.
    fn assembled(&mut self, held: &[bool]) -> Result<(), StepError> {
        let size = self.size(self.z).max(1.0);
        self.evaluate_matrix().map_err(|error| self.failed(error))?;
        let factored = self.factor_smallest_change(held, least_damping::<M::S>(), Level::Position);
        factored.map_err(|error| self.failed(error))?;
        self.solve_smallest_change()?;
        let (d, _) = cut("x", self.x, self.dims.nq).map_err(|error| self.failed(error))?;
        if self.size(d) <= BAD_ROUNDING * M::S::EPSILON * size {
            add_scaled(self.z, M::S::ONE, d);
            self.positions(false).map_err(|error| self.failed(error))?;
        }
        self.statistics.phi = largest(self.phi);
        Ok(())
    }

    /// Whether what is left of Φ is rounding: of positions of this size, or of the terms of a row that positions hardly change.
    fn is_rounding(&self, size: f64) -> bool {
        let units = self.system.units();
        let rows = self.phi.iter().zip(self.sizes.iter()).enumerate();
        rows.fold(true, |all, (k, (phi, n))| {
            let left = phi.real().abs();
            let of_positions = left / size_of(*n) <= BAD_ROUNDING * M::S::EPSILON * size;
            all && (of_positions || left <= ROUNDING * M::S::EPSILON * size * units.row(k))
        })
    }

    #[cold]
    fn not_assembled(&self, size: f64) -> Result<(), StepError> {
        if self.is_rounding(size) {
            return Ok(());
        }
        let (violation, quantity, index) = self.violation(self.worst().1);
        let (t, iterations) = (self.t.real(), self.statistics.iterations);
        Err(StepError::NotAssembled { t, iterations, violation, quantity, index })
    }

    /// Φd = 0 and Ψ = 0 by the smallest change of the free rates.
    fn find_rates(&mut self, held: &[bool]) -> Result<(), StepError> {
        let fail = |work: &Self, error| work.failed(error);
        self.evaluate_matrix().map_err(|error| fail(self, error))?;
        let least = least_damping::<M::S>();
        self.factor_smallest_change(held, least, Level::Velocity).map_err(|error| fail(self, error))?;
        self.rates().map_err(|error| fail(self, error))?;
        let before = self.worst().0;
        for _ in 0..REFINEMENTS {
            self.solve_smallest_change()?;
            let (d, _) = cut("x", self.x, self.dims.nq).map_err(|error| self.failed(error))?;
            add_scaled(self.zd, M::S::ONE, d);
            self.rates().map_err(|error| fail(self, error))?;
        }
        let size = self.size(self.zd).max(before);
        self.statistics.phid = self.consistent(Level::Velocity, size)?;
        Ok(())
    }

    /// Φdd = 0 and Ψd = 0 where they determine the accelerations.
    fn find_driven_accelerations(&mut self) -> Result<(), StepError> {
        // The factors are those of the velocities.
        self.accelerations().map_err(|error| self.failed(error))?;
        let before = self.worst().0;
        for _ in 0..REFINEMENTS {
            self.solve_smallest_change()?;
            let (d, _) = cut("x", self.x, self.dims.nq).map_err(|error| self.failed(error))?;
            add_scaled(self.zdd, M::S::ONE, d);
            self.accelerations().map_err(|error| self.failed(error))?;
        }
        // A motion at constant speed has no accelerations, and terms of the squares of its rates.
        let speed = self.size(self.zd);
        let size = self.size(self.zdd).max(before).max(speed * speed);
        self.statistics.phidd = self.consistent(Level::Acceleration, size)?;
        Ok(())
    }

    /// An error if a row is violated by more than half the digits of what is in it; otherwise the largest violation.
    pub(super) fn consistent(&self, level: Level, size: f64) -> Result<f64, StepError> {
        let (worst, index) = self.worst();
        let (violation, quantity, number) = self.violation(index);
        // Not greater, so that NaN is not consistent.
        if worst <= sqrt(M::S::EPSILON) * size || worst == 0.0 {
            return Ok(violation.abs());
        }
        let t = self.t.real();
        Err(StepError::Inconsistent { t, level, violation, quantity, index: number })
    }

    /// Constraints and drives leave no coordinate free.
    fn check_driven(&mut self) -> Result<(), StepError> {
        self.evaluate_matrix().map_err(|error| self.failed(error))?;
        let nq = self.dims.nq;
        let rows = holonomic_rows(&self.dims);
        let pattern = self.system.pattern();
        let blocks = Blocks::of(&self.dims, &pattern, self.matrix).map_err(|error| self.failed(error))?;
        let t = self.t.real();
        let fail = |error: EvalError| error.in_step(t, 0.0);
        let (dense, _) = cut_mut("dense", self.dense, rows * nq).map_err(fail)?;
        dense.fill(M::S::ZERO);
        for (&(k, j), &value) in pattern.holonomic.iter().zip(blocks.holonomic) {
            if let Some(entry) = dense.get_mut(k as usize * nq + j as usize) {
                *entry = value * M::S::from_f64(self.system.units().coordinate(j as usize));
            }
        }
        let (used, _) = cut_mut("pivots", self.pivots, rows + nq).map_err(fail)?;
        let found = rank(nq, dense, used, sqrt(M::S::EPSILON)).map_err(fail)?;
        (self.statistics.rows, self.statistics.rank) = (rows, found.rank);
        let free = if rows == 0 { Some(0).filter(|_| nq > 0) } else { found.free_column };
        match free {
            None => Ok(()),
            Some(coordinate) => Err(StepError::NotDriven { t: self.t.real(), coordinate }),
        }
    }
}

/// D_j: what a change of coordinate j counts for.
pub(crate) fn weight<M: Constrained>(system: &M, j: usize) -> M::S {
    match system.dependent().get(j) {
        Some(true) => M::S::ZERO,
        _ => M::S::ONE,
    }
}

/// Damping that only decides where rows depend on each other.
pub(crate) fn least_damping<S: Scalar>() -> f64 {
    sqrt(S::EPSILON) / 16.0
}
