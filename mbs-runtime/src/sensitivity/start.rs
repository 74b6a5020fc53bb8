//! Derivatives of a consistent start.
//!
//! Input: guesses z0, zd0 of a state and their derivatives; coordinates that are held at theirs. Output: the state of
//! [`Assembly::start`], and its derivatives.
//!
//! What a start is: z is the point nearest to the guess in which all constraints hold, zd are the rates nearest to theirs, held
//! coordinates and rates stay; zdd and λ follow from the equations of motion. With B = Φ_z for positions and B = (Φ_z; A) for
//! rates, and indices f of what is free,
//!
//! ```text
//! D z_f − D z0_f + (Bᵀ y)_f = 0      Φ = 0                D z_f′ + (Bᵀ y′)_f = D z0_f′ − ((Bᵀ y)_z z′ + (Bᵀ y)_ρ)_f      B z′ = −Φ_ρ
//! D zd_f − D zd0_f + (Bᵀ η)_f = 0    Φd = 0, Ψ = 0        D zd_f′ + (Bᵀ η′)_f = D zd0_f′ − ((Bᵀ η)_z z′ + (Bᵀ η)_ρ)_f   B zd′ = −(Φd; Ψ)_z z′ − (Φd; Ψ)_ρ
//! r = 0                          Φdd = 0, Ψd = 0          the step of index 1 with h = 0, see `step`
//! ```
//!
//! D is 1, and 0 for dependent coordinates. Where constraints and held coordinates determine the others, z′ does not depend on y. Rows are divided by their largest
//! entry, and damped a little for those that depend on each other, which refinement takes back.

use super::columns::{Directions, add_product, add_products, subtract_parameters, subtract_product};
use super::derivatives::{Impulses, Sensitivities};
use super::driven::standstill;
use super::state::StateDerivatives;
use super::step;
use super::values::{MotionValues, ProjectionValues};
use crate::constrained::Motion;
use crate::error::{EvalError, Level, StepError};
use crate::euler_parameters::normalised;
use crate::formulation::newton::{Failure, size_of};
use crate::formulation::start::{least_damping, weight};
use crate::formulation::{Assembly, Record, StartStatistics, State};
use crate::inputs::Inputs;
use crate::integrator::renormalise;
use crate::linear::blocks::{holonomic_rows, row as name_row, unknown};
use crate::linear::{copy, largest, lu};
use crate::pieces::{Pieces, cut, cut_mut};
use crate::scalar::{Scalar, sqrt};
use crate::system::Dims;

/// Refinements of each solution; each leaves about 1e−9 of the error.
const REFINEMENTS: usize = 5;

/// How near to the nearest position is near enough, relative to positions and their change, in units of √ε: derivatives are
/// wrong by that.
const NEAREST: f64 = 0.01;
/// Rounding of a derivative of a constraint, in units of ε max(1, ‖z‖); with twelve bits lost, see `newton`.
const ROUNDING: f64 = 4096.0;

/// Length of what stays over all of it: guesses, and derivatives of v.
#[inline(always)]
const fn guess_len(dims: &Dims) -> usize {
    2 * dims.nq + dims.nv * (1 + dims.sensitivity.parameters)
}

impl Assembly {
    /// Length of the scratch that [`Assembly::start_differentiated`] and [`Assembly::guess_differentiated`] need, at least.
    #[inline(always)]
    pub const fn differentiated_scratch_len(dims: &Dims) -> usize {
        let (start, step, own) = (Self::scratch_len(dims), step::scratch_len(dims), work_len(dims));
        let most = if start > step { start } else { step };
        let most = if most > own { most } else { own };
        let lists = dims.sensitivity.start;
        let other = StateDerivatives::<f64>::len(dims) + Record::<f64>::len(dims) + guess_len(dims);
        most + other + lists + dims.nu
    }

    /// [`Assembly::start`] of a state together with its derivatives: enter guesses of z and zd and their derivatives; leave
    /// all of both. After an error the state is as before, and the derivatives are meaningless.
    #[inline(never)]
    pub fn start_differentiated<M: Sensitivities, I: Inputs<M::S>>(
        &self,
        system: &M,
        inputs: &mut I,
        state: &mut [M::S],
        derivatives: &mut [M::S],
        scratch: &mut [M::S],
    ) -> Result<StartStatistics, StepError> {
        self.start_along(system, inputs, state, derivatives, Directions::Each, scratch)
    }

    /// The same for other directions of the parameters, as many as there are parameters.
    pub(crate) fn start_along<M: Sensitivities, I: Inputs<M::S>>(
        &self,
        system: &M,
        inputs: &mut I,
        state: &mut [M::S],
        derivatives: &mut [M::S],
        directions: Directions<'_, M::S>,
        scratch: &mut [M::S],
    ) -> Result<StartStatistics, StepError> {
        let dims = system.dims();
        let mut pieces = Pieces::of(scratch, Self::differentiated_scratch_len(&dims));
        let (z0, zd0) = (pieces.next(dims.nq)?, pieces.next(dims.nq)?);
        let u = pieces.next(dims.nu)?;
        let record = pieces.next(Record::<M::S>::len(&dims))?;
        let end = pieces.next(StateDerivatives::<M::S>::len(&dims))?;
        let scratch = pieces.rest();

        let view = State::of(&dims, state)?;
        let t = *view.t;
        copy(z0, view.z);
        copy(zd0, view.zd);
        let mut change = StateDerivatives::of(&dims, derivatives)?;
        change.clear_forces();
        let columns = dims.sensitivity.parameters;
        normalised(system, z0, columns, change.z).map_err(|error| error.in_step(t.real(), 0.0))?;
        renormalise(system, z0);
        let statistics = self.start(system, inputs, state, scratch)?;
        if !u.is_empty() {
            inputs.at(t, u);
        }

        positions_and_rates(system, state, u, [z0, zd0], change, directions, scratch)?;
        accelerations(system, state, u, record, derivatives, end, directions, scratch)?;
        copy(derivatives, end);
        Ok(statistics)
    }
}

/// z′ and zd′ of a start from these guesses; enter the derivatives of the guesses. A function of its own, as [`accelerations`], so that
/// one has the stack of the other.
#[inline(never)]
fn positions_and_rates<M: Sensitivities>(
    system: &M,
    state: &mut [M::S],
    u: &[M::S],
    [z0, zd0]: [&mut [M::S]; 2],
    change: StateDerivatives<'_, M::S>,
    directions: Directions<'_, M::S>,
    scratch: &mut [M::S],
) -> Result<(), StepError> {
    let view = State::of(&system.dims(), state)?;
    let mut work = Work::new(system, system.held(), &view, u, scratch)?;
    work.evaluate(z0, zd0)?;
    let mut changes = [change.z, change.zd, change.zdd];
    for level in [Level::Position, Level::Velocity] {
        work.differentiate(level, &mut changes, directions)?;
    }
    Ok(())
}

/// Into `end`: all derivatives of the start, from those of z and zd.
#[allow(clippy::too_many_arguments, reason = "a start and its derivatives")]
#[inline(never)]
fn accelerations<M: Sensitivities>(
    system: &M,
    state: &mut [M::S],
    u: &[M::S],
    record: &mut [M::S],
    derivatives: &mut [M::S],
    end: &mut [M::S],
    directions: Directions<'_, M::S>,
    scratch: &mut [M::S],
) -> Result<(), StepError> {
    let dims = system.dims();
    let view = State::of(&dims, state)?;
    let mut step = standstill(system, &view, u, record, scratch)?;
    match directions {
        Directions::Each => step.sensitivities(derivatives, end),
        Directions::Along(rho) => step.apply(dims.sensitivity.parameters, derivatives, rho, end),
    }
}

fn get_column<S: Scalar>(columns: usize, k: usize, matrix: &[S], column: &mut [S]) -> Result<(), EvalError> {
    let wrong = EvalError::Length { what: "columns", expected: k + 1, found: columns };
    for (to, row) in column.iter_mut().zip(matrix.chunks_exact(columns.max(1))) {
        *to = *row.get(k).ok_or(wrong)?;
    }
    Ok(())
}

fn put_column<S: Scalar>(columns: usize, k: usize, column: &[S], matrix: &mut [S]) {
    for (row, &from) in matrix.chunks_exact_mut(columns.max(1)).zip(column) {
        if let Some(to) = row.get_mut(k) {
            *to = from;
        }
    }
}

#[inline(always)]
pub(super) const fn work_len(dims: &Dims) -> usize {
    let (n, columns) = (dims.nq + dims.rows(), columns(dims));
    let lists = dims.sensitivity.newton + dims.sensitivity.projections;
    lists + 2 * n * n + 5 * n + 2 * n * columns + 3 * dims.rows() + dims.nq + dims.workspace
}

/// Columns of right-hand sides: one for each parameter, and one at least, for multipliers.
const fn columns(dims: &Dims) -> usize {
    let parameters = dims.sensitivity.parameters;
    if parameters > 1 { parameters } else { 1 }
}

/// Derivatives of positions and rates under way, in the scratch.
pub(super) struct Work<'a, M: Sensitivities> {
    pub(super) system: &'a M,
    pub(super) dims: Dims,
    /// Coordinates that stay at their guesses.
    pub(super) held: &'a [bool],
    failure: Failure,
    at: Motion<'a, M::S>,
    lambda: &'a [M::S],
    pub(super) active: &'a [M::S],
    pub(super) motion: &'a mut [M::S],
    pub(super) projections: &'a mut [M::S],
    /// The matrix, and its factors with damped rows.
    pub(super) matrix: &'a mut [M::S],
    factors: &'a mut [M::S],
    pivots: &'a mut [M::S],
    column: &'a mut [M::S],
    pub(super) b: &'a mut [M::S],
    pub(super) x: &'a mut [M::S],
    /// Largest entries of the rows.
    pub(super) sizes: &'a mut [M::S],
    /// y, η
    multipliers: [&'a mut [M::S]; 2],
    zero: &'a mut [M::S],
    w: &'a mut [M::S],
}

impl<'a, M: Sensitivities> Work<'a, M> {
    pub(super) fn new(
        system: &'a M,
        held: &'a [bool],
        state: &'a State<'_, M::S>,
        u: &'a [M::S],
        scratch: &'a mut [M::S],
    ) -> Result<Self, StepError> {
        let dims = system.dims();
        let (n, rows, columns) = (dims.nq + dims.rows(), dims.rows(), columns(&dims));
        let mut pieces = Pieces::of(scratch, work_len(&dims));
        Ok(Self {
            system,
            dims,
            held,
            failure: Failure { t: state.t.real(), h: 0.0 },
            at: state.motion(u),
            lambda: state.lambda.get(..rows).unwrap_or_default(),
            active: state.active,
            motion: pieces.next(dims.sensitivity.newton)?,
            projections: pieces.next(dims.sensitivity.projections)?,
            matrix: pieces.next(n * n)?,
            factors: pieces.next(n * n)?,
            pivots: pieces.next(n)?,
            column: pieces.next(4 * n)?,
            b: pieces.next(n * columns)?,
            x: pieces.next(n * columns)?,
            sizes: pieces.next(rows)?,
            multipliers: [pieces.next(rows)?, pieces.next(rows)?],
            zero: pieces.next(dims.nq)?,
            w: pieces.next(dims.workspace)?,
        })
    }

    fn free(&self, j: usize) -> bool {
        !self.held.get(j).is_some_and(|held| *held)
    }

    /// The unit of a coordinate: unknowns are z′ and zd′ in these.
    fn unit(&self, j: usize) -> M::S {
        M::S::from_f64(self.system.units().coordinate(j))
    }

    /// Derivatives at the start, and y, η for these guesses.
    pub(super) fn evaluate(&mut self, z0: &[M::S], zd0: &[M::S]) -> Result<(), StepError> {
        let failure = self.failure;
        let fail = |error| failure.of(error);
        self.system.linearise(self.at, self.lambda, self.w, self.motion).map_err(fail)?;
        self.measure_rows().map_err(fail)?;
        for (level, guess) in [(Level::Position, z0), (Level::Velocity, zd0)] {
            self.find_multipliers(level, guess)?;
        }
        let [y, eta] = &self.multipliers;
        self.zero.fill(M::S::ZERO);
        // Nothing but (Bᵀ η)_z and (Bᵀ y)_z is wanted of the impulses.
        let impulses = Impulses {
            velocity: self.zero,
            velocity_multipliers: eta,
            acceleration: self.zero,
            acceleration_multipliers: y,
        };
        let evaluated = self.system.linearise_projections(self.at, impulses, self.w, self.projections);
        evaluated.map_err(fail)
    }

    /// n_k
    fn measure_rows(&mut self) -> Result<(), EvalError> {
        let (pattern, places) = (self.system.pattern(), self.system.parameter_places());
        let values = MotionValues::of(&pattern, &places, self.motion)?;
        self.sizes.fill(M::S::ZERO);
        let parts = [
            (0, pattern.holonomic, values.holonomic),
            (holonomic_rows(&self.dims), pattern.nonholonomic, values.nonholonomic),
        ];
        for (first, places, values) in parts {
            for (&(k, j), value) in places.iter().zip(values) {
                if let Some(size) = self.sizes.get_mut(first + k as usize) {
                    let value = value.real().abs() * self.system.units().coordinate(j as usize);
                    *size = M::S::from_f64(size.real().max(value));
                }
            }
        }
        // A row that positions hardly change is a component of a vector, with its rounding: it is not made larger than half of the digits allow.
        for (k, size) in self.sizes.iter_mut().enumerate().filter(|(_, size)| size.real() > 0.0) {
            let least = sqrt(M::S::EPSILON) * self.system.units().row(k);
            *size = M::S::from_f64(size.real().max(least));
        }
        Ok(())
    }

    /// Whether row k has a say at this level.
    fn counts(&self, level: Level, k: usize) -> bool {
        let active = self.active.get(k).is_some_and(|active| *active != M::S::ZERO);
        active && (level != Level::Position || k < holonomic_rows(&self.dims))
    }

    /// The matrix of a level: with (Bᵀ y)_z or without; its rows with the columns of held coordinates or without.
    pub(super) fn fill(&mut self, level: Level, whole: bool) -> Result<(), EvalError> {
        let (nq, rows) = (self.dims.nq, self.dims.rows());
        let n = nq + rows;
        let (pattern, places) = (self.system.pattern(), self.system.parameter_places());
        self.matrix.fill(M::S::ZERO);
        for k in 0..rows {
            if !self.counts(level, k) {
                add_to(n, nq + k, nq + k, -M::S::ONE, self.matrix);
            }
        }
        for j in 0..nq {
            add_to(n, j, j, weight(self.system, j), self.matrix);
        }
        if whole {
            let values = ProjectionValues::of(&pattern, &places, self.projections)?;
            let curvature = match level {
                Level::Position => values.acceleration_impulse,
                _ => &[],
            };
            for (&(i, j), &value) in pattern.tangent.iter().zip(curvature) {
                if self.free(i as usize) {
                    let units = self.unit(i as usize) * self.unit(j as usize);
                    add_to(n, i as usize, j as usize, value * units, self.matrix);
                }
            }
        }
        let values = MotionValues::of(&pattern, &places, self.motion)?;
        let parts = [
            (0, pattern.holonomic, values.holonomic),
            (holonomic_rows(&self.dims), pattern.nonholonomic, values.nonholonomic),
        ];
        for (first, places, values) in parts {
            for (&(k, j), &value) in places.iter().zip(values) {
                let (k, j) = (first + k as usize, j as usize);
                if !self.counts(level, k) {
                    continue;
                }
                let size = M::S::from_f64(self.sizes.get(k).map_or(1.0, |n| size_of(*n)));
                let value = value * self.unit(j) / size;
                if self.free(j) {
                    add_to(n, j, nq + k, value, self.matrix);
                }
                if whole || self.free(j) {
                    add_to(n, nq + k, j, value, self.matrix);
                }
            }
        }
        Ok(())
    }

    /// Factors of the matrix with damped rows.
    pub(super) fn factor(&mut self, level: Level) -> Result<(), EvalError> {
        let (nq, n) = (self.dims.nq, self.dims.nq + self.dims.rows());
        copy(self.factors, self.matrix);
        for k in 0..self.dims.rows() {
            if self.counts(level, k) {
                let damping = M::S::from_f64(-least_damping::<M::S>());
                add_to(n, nq + k, nq + k, damping, self.factors);
            }
        }
        lu::factor(n, self.factors, self.pivots).map_err(|column| {
            let (quantity, index) = unknown(&self.dims, column);
            EvalError::SingularLeading { quantity, index }
        })
    }

    /// y or η: what is left of the change from the guess, as forces of the rows.
    fn find_multipliers(&mut self, level: Level, guess: &[M::S]) -> Result<(), StepError> {
        let failure = self.failure;
        let nq = self.dims.nq;
        self.fill(level, false).and_then(|()| self.factor(level)).map_err(|error| failure.of(error))?;
        let now = if level == Level::Position { self.at.z } else { self.at.zd };
        let fail = |error: EvalError| failure.of(error);
        let (b, _) = cut_mut("b", self.b, nq + self.dims.rows()).map_err(fail)?;
        b.fill(M::S::ZERO);
        for (j, (b, (&guess, &now))) in b.iter_mut().zip(guess.iter().zip(now)).enumerate() {
            if !self.held.get(j).is_some_and(|held| *held) {
                let unit = M::S::from_f64(self.system.units().coordinate(j));
                *b = weight(self.system, j) * (guess - now) / unit;
            }
        }
        self.solve(1).map_err(fail)?;
        // What is left lies along the constraints: it is zero in the position nearest to the guess.
        let (left, found) = cut("x", self.x, nq).map_err(fail)?;
        let (left, (b, _)) = (largest(left), cut("b", self.b, nq).map_err(fail)?);
        if left > NEAREST * sqrt(M::S::EPSILON) * largest(b).max(self.system.units().largest(self.at.z))
            && level == Level::Position
        {
            let what = "the start has no derivative: no position is the nearest one to its guesses; hold some coordinates";
            return Err(StepError::NotDifferentiable { what });
        }
        let [y, eta] = &mut self.multipliers;
        let to = if level == Level::Position { y } else { eta };
        for (to, (&found, n)) in to.iter_mut().zip(found.iter().zip(self.sizes.iter())) {
            *to = found / M::S::from_f64(size_of(*n));
        }
        Ok(())
    }

    /// x from b, refined; the matrix without damping.
    pub(super) fn solve(&mut self, columns: usize) -> Result<(), EvalError> {
        let n = self.dims.nq + self.dims.rows();
        self.x.fill(M::S::ZERO);
        let (column, rest) = cut_mut("column", self.column, n)?;
        let (residual, _) = cut_mut("column", rest, n)?;
        for k in 0..columns {
            for _ in 0..REFINEMENTS {
                get_column(columns, k, self.x, column)?;
                get_column(columns, k, self.b, residual)?;
                for (entries, &x) in self.matrix.chunks_exact(n.max(1)).zip(column.iter()) {
                    for (residual, &entry) in residual.iter_mut().zip(entries) {
                        *residual -= entry * x;
                    }
                }
                lu::solve(n, self.factors, self.pivots, residual);
                for (x, &change) in column.iter_mut().zip(residual.iter()) {
                    *x += change;
                }
                put_column(columns, k, column, self.x);
            }
        }
        Ok(())
    }

    /// z′, zd′ or zdd′ in the place of the guess's.
    pub(super) fn differentiate(
        &mut self,
        level: Level,
        changes: &mut [&mut [M::S]; 3],
        directions: Directions<'_, M::S>,
    ) -> Result<(), StepError> {
        let failure = self.failure;
        let columns = self.dims.sensitivity.parameters;
        self.fill(level, true)
            .and_then(|()| self.factor(level))
            .and_then(|()| self.right_hand_side(level, changes, directions))
            .map_err(|error| failure.of(error))?;
        self.solve(columns).map_err(|error| failure.of(error))?;
        self.check(columns)?;
        for (j, row) in self.x.chunks_exact_mut(columns.max(1)).take(self.dims.nq).enumerate() {
            let unit = M::S::from_f64(self.system.units().coordinate(j));
            for x in row {
                *x *= unit;
            }
        }
        copy(of_level(level, changes), self.x);
        Ok(())
    }

    fn right_hand_side(
        &mut self,
        level: Level,
        changes: &mut [&mut [M::S]; 3],
        each: Directions<'_, M::S>,
    ) -> Result<(), EvalError> {
        let (nq, columns) = (self.dims.nq, self.dims.sensitivity.parameters);
        let (pattern, places) = (self.system.pattern(), self.system.parameter_places());
        let motion = MotionValues::of(&pattern, &places, self.motion)?;
        let values = ProjectionValues::of(&pattern, &places, self.projections)?;
        let held = self.held;
        let [z, zd, _] = &*changes;
        self.b.fill(M::S::ZERO);
        let (top, rows) = cut_mut("b", self.b, nq * columns)?;
        let one = M::S::ONE;
        match level {
            Level::Position => {
                subtract_parameters(
                    places.impulse,
                    values.acceleration_impulse_rho,
                    one,
                    columns,
                    each,
                    top,
                )?;
                subtract_parameters(places.constraints, motion.constraints, one, columns, each, rows)?;
            }
            Level::Velocity => {
                subtract_parameters(places.impulse, values.velocity_impulse_rho, one, columns, each, top)?;
                subtract_product(pattern.tangent, values.velocity_impulse, columns, z, top)?;
                subtract_parameters(places.rates, values.rates, one, columns, each, rows)?;
                let (phi, psi) = cut_mut("b", rows, holonomic_rows(&self.dims) * columns)?;
                subtract_product(pattern.holonomic, values.rates_z, columns, z, phi)?;
                subtract_product(pattern.nonholonomic, values.nonholonomic_z, columns, z, psi)?;
            }
            Level::Acceleration => {
                subtract_parameters(places.accelerations, values.accelerations, one, columns, each, rows)?;
                let (phi, psi) = cut_mut("b", rows, holonomic_rows(&self.dims) * columns)?;
                // Φdd_zd = 2 Φd_z
                let terms =
                    [(-one, values.accelerations_z, &**z), (M::S::from_f64(-2.0), values.rates_z, zd)];
                add_products(pattern.holonomic, columns, terms, phi)?;
                let terms =
                    [(-one, values.nonholonomic_rates_z, &**z), (-one, values.nonholonomic_rates_zd, zd)];
                add_products(pattern.nonholonomic, columns, terms, psi)?;
            }
        }
        let guess = of_level(level, changes);
        for (j, b) in top.chunks_exact_mut(columns.max(1)).enumerate() {
            if held.get(j).is_some_and(|held| *held) {
                b.fill(M::S::ZERO);
            }
            let unit = M::S::from_f64(self.system.units().coordinate(j));
            for b in &mut *b {
                *b *= unit;
            }
            let place = [(0, j as u32)];
            add_product(&place, &[weight(self.system, j) / unit], columns, guess, b)?;
        }
        let holonomic = holonomic_rows(&self.dims);
        for (k, b) in rows.chunks_exact_mut(columns.max(1)).enumerate() {
            let active = self.active.get(k).is_some_and(|active| *active != M::S::ZERO);
            let counts = active && (level != Level::Position || k < holonomic);
            let size = M::S::from_f64(self.sizes.get(k).map_or(1.0, |n| size_of(*n)));
            for b in b {
                *b = if counts { *b / size } else { M::S::ZERO };
            }
        }
        Ok(())
    }

    /// An error if the equations of a row cannot be satisfied for a parameter.
    fn check(&self, columns: usize) -> Result<(), StepError> {
        let (nq, n) = (self.dims.nq, self.dims.nq + self.dims.rows());
        let entry = |what, matrix: &[M::S], place: usize| {
            let wrong = StepError::Length { what, expected: place + 1, found: matrix.len() };
            matrix.get(place).copied().ok_or(wrong)
        };
        // What is violated by the rounding of positions is not. A row that positions hardly change has the rounding of its unit, and shares it with
        // the rows that it depends on; as far as no more than half of the digits are left to doubt.
        let units = self.system.units();
        let sizes = self.sizes.iter().enumerate().map(|(k, n)| units.row(k) / size_of(*n));
        let weakest = sizes.filter(|weak| weak.is_finite()).fold(1.0, f64::max);
        let of_positions = ROUNDING * M::S::EPSILON * units.largest(self.at.z).max(1.0);
        let rounding = (of_positions * weakest).min(of_positions.max(sqrt(M::S::EPSILON)));
        for k in 0..columns {
            for i in nq..n {
                let right = entry("b", self.b, i * columns + k)?;
                let (mut residual, mut size) = (right, right.real().abs());
                for (j, entries) in self.matrix.chunks_exact(n.max(1)).enumerate() {
                    let term = entry("matrix", entries, i)? * entry("x", self.x, j * columns + k)?;
                    residual -= term;
                    size += term.real().abs();
                }
                let holds = residual.real().abs() <= sqrt(M::S::EPSILON) * size + rounding;
                if !holds {
                    let (quantity, index) = name_row(&self.dims, i - nq);
                    let Failure { t, h } = self.failure;
                    return Err(StepError::Incompatible { t, h, parameter: k, quantity, index });
                }
            }
        }
        Ok(())
    }
}

/// z′, zd′ or zdd′.
pub(super) fn of_level<'x, S>(level: Level, [z, zd, zdd]: &'x mut [&mut [S]; 3]) -> &'x mut [S] {
    match level {
        Level::Position => z,
        Level::Velocity => zd,
        Level::Acceleration => zdd,
    }
}

/// Adds to the entry (i, j) of a matrix of n rows, column by column.
fn add_to<S: Scalar>(n: usize, i: usize, j: usize, value: S, matrix: &mut [S]) {
    if let Some(entry) = matrix.get_mut(j * n + i) {
        *entry += value;
    }
}
