//! Velocities after an event.
//!
//! | symbol | meaning | length |
//! |---|---|---|
//! | M, Φ_v | mass matrix, constraints per velocity | nv × nv, rows × nv |
//! | C | the event's conditions per velocity | conditions × nv |
//! | d | v⁺ − v⁻ | nv |
//! | Λ, μ | impulses of constraints and conditions | rows, conditions |
//!
//! ```text
//! [ M    Φ_vᵀ  Cᵀ ] [d]   [ 0          ]
//! [ Φ_v  −E    0  ] [Λ] = [ −Φd(v)     ]
//! [ C    0     −E ] [μ]   [ target − c ]
//! ```
//!
//! E is small and refined away, as at the start of a run; it lets rows depend on each other. For e ≤ 1 and constraints at rest no energy is
//! created: with γ⁺ = −e γ⁻ the kinetic energy changes by −(1 − e²) γ⁻²/(2 C M⁻¹ Cᵀ), M⁻¹ under the constraints.

use core::cell::Cell;

use super::times::{AtEvent, add_row};
use super::{EventDerivatives, EventTable, Events};
use crate::StepError;
use crate::error::{EvalError, EventFailure};
use crate::formulation::compliance::least_part;
use crate::linear::blocks::NOTHING;
use crate::linear::{add_scaled, copy, lu, symmetric};
use crate::pieces::Pieces;
use crate::scalar::{Scalar, sqrt};
use crate::sensitivity::columns::{row, row_mut};
use crate::system::{At, Dims, Quantity, Units};

/// Refinements of the solution; each leaves about 1e−9 of the error.
const REFINEMENTS: usize = 4;

/// What remains of the change of a constraint, relative to its slopes and the largest change of a coordinate, that is not rounding.
pub(crate) const LEAVES: f64 = 1e-5;

/// Memory for jumps, and the last one.
pub(crate) struct Jump<'a, S> {
    mass: &'a mut [S],
    rows: &'a mut [S],
    row_rates: &'a mut [S],
    row_values: &'a mut [S],
    directions: &'a mut [S],
    condition_rates: &'a mut [S],
    targets: &'a mut [S],
    pub(crate) settings: &'a mut [S],
    /// Of all conditions; those of other events are zero.
    pub(crate) mu: &'a mut [S],
    /// v⁺ − v⁻
    pub(crate) d: &'a mut [S],
    pub(crate) lambda: &'a mut [S],
    matrix: &'a mut [S],
    pivots: &'a mut [S],
    compliance: &'a mut [S],
    /// Powers of two by which rows and columns of the matrix are multiplied.
    scales: &'a mut [S],
    b: &'a mut [S],
    x: &'a mut [S],
    conditions: (usize, usize),
    /// Whether velocities change.
    jumps: bool,
    /// Whether constraints may be added; those that are have a one in `added`.
    pub(crate) adds_rows: bool,
    added: &'a mut [S],
    slopes: &'a mut [S],
    sizes: &'a mut [S],
    pub(crate) event: usize,
}

/// The setting whose derivatives are row `i` of those of the equations: it comes after all equations and the values of constraints.
fn setting_of(dims: &Dims, table: &EventTable<'_>, i: u32) -> Option<usize> {
    (i as usize).checked_sub(dims.nv + 2 * dims.joint_rows() + table.conditions)
}

/// Length of the memory of a [`Jump`], for this many conditions and settings; a constant for generated models.
pub(crate) const fn len(dims: &Dims, conditions: usize, settings: usize) -> usize {
    let (nv, rows, c) = (dims.nv, dims.joint_rows(), conditions);
    let n = nv + rows + c;
    nv * nv + rows * nv + 6 * rows + c * nv + 3 * c + settings + nv + n * n + 5 * n
}

impl<'a, S: Scalar> Jump<'a, S> {
    /// Length of its memory.
    pub(crate) fn len<M: Events<S = S>>(system: &M) -> usize {
        let table = system.event_table();
        len(&system.dims(), table.conditions, table.inputs.len())
    }

    /// Takes its memory from `pieces`.
    pub(crate) fn new<M: Events<S = S>>(system: &M, pieces: &mut Pieces<'a, S>) -> Result<Self, StepError> {
        let (dims, table) = (system.dims(), system.event_table());
        let (nv, rows, c) = (dims.nv, dims.joint_rows(), table.conditions);
        let n = nv + rows + c;
        Ok(Self {
            mass: pieces.next(nv * nv)?,
            rows: pieces.next(rows * nv)?,
            row_rates: pieces.next(rows)?,
            row_values: pieces.next(rows)?,
            directions: pieces.next(c * nv)?,
            condition_rates: pieces.next(c)?,
            targets: pieces.next(c)?,
            settings: pieces.next(table.inputs.len())?,
            mu: pieces.next(c)?,
            d: pieces.next(nv)?,
            lambda: pieces.next(rows)?,
            matrix: pieces.next(n * n)?,
            pivots: pieces.next(n)?,
            compliance: pieces.next(n)?,
            scales: pieces.next(n)?,
            b: pieces.next(n)?,
            x: pieces.next(n)?,
            conditions: (0, 0),
            jumps: false,
            adds_rows: false,
            added: pieces.next(rows)?,
            slopes: pieces.next(rows)?,
            sizes: pieces.next(rows)?,
            event: 0,
        })
    }

    /// Gives inputs their values after an event, from an instant before it. Whether there are some.
    pub(crate) fn settle<M: Events<S = S>>(
        &mut self,
        system: &M,
        event: usize,
        at: At<'_, S>,
        latches: &[Cell<S>],
        w: &mut [S],
    ) -> Result<bool, StepError> {
        let table = system.event_table();
        let (first, end) = table.events.get(event).map_or((0, 0), |entry| entry.settings);
        if first == end {
            return Ok(false);
        }
        self.evaluate(system, at, w).map_err(|error| error.in_step(at.t.real(), 0.0))?;
        self.mark_idle();
        for (&input, &value) in table.inputs.iter().zip(self.settings.iter()).take(end).skip(first) {
            if let Some(latch) = latches.get(input as usize) {
                latch.set(value);
            }
        }
        Ok(true)
    }

    /// Notes the rows that do not act: they are zero, exactly.
    fn mark_idle(&mut self) {
        let n = self.added.len();
        for (row, idle) in self.added.iter_mut().enumerate() {
            let mut entries = self.rows.iter().skip(row).step_by(n.max(1));
            *idle = if entries.all(|entry| *entry == S::ZERO) { S::ONE } else { S::ZERO };
        }
    }

    fn evaluate<M: Events<S = S>>(
        &mut self,
        system: &M,
        at: At<'_, S>,
        w: &mut [S],
    ) -> Result<(), EvalError> {
        system.event_jumps(
            at,
            w,
            self.mass,
            self.rows,
            self.row_rates,
            self.row_values,
            self.directions,
            self.condition_rates,
            self.targets,
            self.settings,
        )
    }

    /// Finds d, Λ and μ of an event at an instant before it, with the inputs after it.
    pub(crate) fn solve<M: Events<S = S>>(
        &mut self,
        system: &M,
        event: usize,
        at: At<'_, S>,
        w: &mut [S],
    ) -> Result<(), StepError> {
        let t = at.t.real();
        let dims = system.dims();
        self.d.fill(S::ZERO);
        self.lambda.fill(S::ZERO);
        self.mu.fill(S::ZERO);
        let table = system.event_table();
        let entry = table.events.get(event);
        self.conditions = entry.map_or((0, 0), |entry| entry.conditions);
        let (first, end) = self.conditions;
        self.event = event;
        self.adds_rows = entry.is_some_and(|entry| entry.adds_rows);
        self.jumps = first < end || self.adds_rows;
        if !self.jumps {
            return Ok(());
        }
        self.evaluate(system, at, w).map_err(|error| error.in_step(t, 0.0))?;
        if self.adds_rows {
            self.check_positions(system, t, event)?;
        }
        self.factor(&dims, table.conditions).map_err(|()| StepError::Event {
            t,
            event,
            failure: EventFailure::Singular,
        })?;
        self.b.fill(S::ZERO);
        let rates = self.row_rates.iter().map(|&rate| -rate);
        let changes = self.targets.iter().zip(self.condition_rates.iter()).map(|(&to, &rate)| to - rate);
        let changes = changes.take(end).skip(first);
        for (b, value) in self.b.iter_mut().skip(dims.nv).zip(rates.chain(changes)) {
            *b = value;
        }
        self.refine(&dims);
        let mut pieces = Pieces::named("x", self.x, self.d.len() + self.lambda.len() + self.mu.len());
        copy(self.d, pieces.next(dims.nv)?);
        copy(self.lambda, pieces.next(dims.joint_rows())?);
        for (mu, &x) in self.mu.iter_mut().take(end).skip(first).zip(pieces.rest().iter()) {
            *mu = x;
        }
        self.check(&dims, system.units(), t, event, at)
    }

    /// Constraints that the event adds, which did not act before it and do now, hold where it happens.
    fn check_positions<M: Events<S = S>>(
        &mut self,
        system: &M,
        t: f64,
        event: usize,
    ) -> Result<(), StepError> {
        let (units, n) = (system.units(), self.added.len());
        for (row, (value, added)) in self.row_values.iter().zip(self.added.iter_mut()).enumerate() {
            let by = value.real();
            let mut entries = self.rows.iter().skip(row).step_by(n.max(1));
            if entries.all(|entry| *entry == S::ZERO) {
                *added = S::ZERO;
            }
            // Not greater, so that what is not a number does not hold.
            let holds = by.abs() <= sqrt(S::EPSILON) * units.row(row);
            if *added != S::ZERO && !holds {
                return Err(StepError::Event { t, event, failure: EventFailure::Violates { row, by } });
            }
        }
        Ok(())
    }

    /// How many unknowns there are.
    fn unknowns(&self, dims: &Dims) -> usize {
        dims.nv + dims.joint_rows() + (self.conditions.1 - self.conditions.0)
    }

    /// Factors of the matrix.
    fn factor(&mut self, dims: &Dims, conditions: usize) -> Result<(), ()> {
        let (nv, rows, n) = (dims.nv, dims.joint_rows(), self.unknowns(dims));
        let (first, _) = self.conditions;
        let matrix = self.matrix.get_mut(..n * n).ok_or(())?;
        matrix.fill(S::ZERO);
        let mut put = |i: usize, j: usize, value: S| {
            if let Some(entry) = matrix.get_mut(j * n + i) {
                *entry = value;
            }
        };
        for k in nv..n {
            for j in 0..nv {
                let slope = match k - nv {
                    row if row < rows => self.rows.get(j * rows + row),
                    row => self.directions.get(j * conditions + row - rows + first),
                };
                let slope = slope.copied().unwrap_or(S::ZERO);
                put(k, j, slope);
                put(j, k, slope);
            }
        }
        for j in 0..nv {
            for i in 0..nv {
                put(i, j, self.mass.get(j * nv + i).copied().unwrap_or(S::ZERO));
            }
        }
        // D A D with a small −E
        let scales = self.scales.get_mut(..n).ok_or(())?;
        symmetric::scales(n, nv, matrix, |_| None, scales);
        symmetric::apply(n, scales, matrix);
        let small = S::from_f64(least_part::<S>());
        for (k, e) in self.compliance.iter_mut().enumerate().take(n) {
            *e = if k < nv { S::ZERO } else { small };
            if let Some(entry) = matrix.get_mut(k * n + k) {
                *entry -= *e;
            }
        }
        lu::factor(n, matrix, self.pivots).map_err(|_| ())
    }

    /// Solves for `b` into `x`: what E does is taken back.
    fn refine(&mut self, dims: &Dims) {
        let n = self.unknowns(dims);
        self.x.fill(S::ZERO);
        for _ in 0..REFINEMENTS {
            // (D A D − E) x' = D b − E x
            let known = self.b.iter().zip(self.compliance.iter()).zip(self.scales.iter());
            for (x, ((&b, &e), &d)) in self.x.iter_mut().zip(known).take(n) {
                *x = d * b - e * *x;
            }
            let (Some(matrix), Some(x)) = (self.matrix.get(..n * n), self.x.get_mut(..n)) else { return };
            lu::solve(n, matrix, self.pivots, x);
        }
        symmetric::apply_to(self.scales, self.x);
    }

    /// Constraints and conditions hold after the event.
    fn check(
        &self,
        dims: &Dims,
        units: Units<'_>,
        t: f64,
        event: usize,
        at: At<'_, S>,
    ) -> Result<(), StepError> {
        let failed = |failure| Err(StepError::Event { t, event, failure });
        if let Some(index) = self.d.iter().position(|d| !d.is_finite()) {
            return Err(StepError::NotFinite { t, h: 0.0, quantity: Quantity::Velocity, index });
        }
        // What is left of a row, against its terms: slopes by velocities before and by their changes.
        let terms = |of: &[S], count: usize, k: usize| {
            let slopes =
                of.chunks_exact(count.max(1)).map(move |column| column.get(k).map_or(0.0, |s| s.real()));
            let parts = slopes.zip(self.d.iter().zip(at.v));
            parts.fold((0.0, 0.0), |(sum, size), (slope, (d, v))| {
                let (d, v) = (d.real(), v.real());
                (sum + slope * d, size + slope.abs() * (d.abs() + v.abs()))
            })
        };
        let value = |from: &[S], k: usize| from.get(k).map_or(0.0, |x| x.real());
        let rows = dims.joint_rows();
        let of_row = |k: usize| terms(self.rows, rows, k);
        let largest = (0..rows).map(|k| of_row(k).1 / units.row(k)).fold(0.0, f64::max);
        let holds = |left: f64, size: f64| left.abs() <= sqrt(S::EPSILON) * size;
        for k in 0..rows {
            let ((change, size), rate) = (of_row(k), value(self.row_rates, k));
            // A row of rounding says nothing.
            let says = size + rate.abs() > NOTHING * S::EPSILON * largest * units.row(k);
            if says && !holds(rate + change, size + rate.abs()) {
                return failed(EventFailure::Contradicts);
            }
        }
        for k in self.conditions.0..self.conditions.1 {
            let (change, size) = terms(self.directions, self.mu.len(), k);
            let (rate, target) = (value(self.condition_rates, k), value(self.targets, k));
            if !holds(rate - target + change, size + rate.abs() + target.abs()) {
                return failed(EventFailure::Contradicts);
            }
        }
        Ok(())
    }

    /// v_ρ⁺ = v_ρ⁻ + d_ρ, from the derivative of the equations that d, Λ and μ solve; `at` is the instant before the event,
    /// `values` memory for their derivatives.
    #[allow(clippy::too_many_arguments, reason = "state, derivatives, and memory")]
    pub(crate) fn differentiate<M: EventDerivatives<S = S>>(
        &mut self,
        system: &M,
        at: At<'_, S>,
        z_rho: &[S],
        v_rho: &mut [S],
        t_rho: &[S],
        along: AtEvent<'_, S>,
        values: &mut [S],
        w: &mut [S],
    ) -> Result<(), StepError> {
        if !self.jumps {
            return Ok(());
        }
        let columns = along.columns;
        let (first, end) = self.conditions;
        let dims = system.dims();
        let (nq, nv) = (dims.nq, dims.nv);
        let written = system.event_jump_derivatives(at, self.d, self.lambda, self.mu, w, values);
        written.map_err(|error| error.in_step(at.t.real(), 0.0))?;
        let places = system.jump_places();
        let (own, conditions, t) = (nv + dims.joint_rows(), self.mu.len(), at.t.real());
        for p in 0..columns {
            self.b.fill(S::ZERO);
            self.slopes.fill(S::ZERO);
            self.sizes.fill(S::ZERO);
            let of_column = z_rho.iter().skip(p).step_by(columns);
            let largest = of_column.map(|z| z.real().abs()).fold(0.0, f64::max);
            for (&(i, j), &value) in places.iter().zip(values.iter()) {
                let (i, j) = (i as usize, j as usize);
                let change = if j < nq {
                    z_rho.get(j * columns + p).copied()
                } else if j < nq + nv {
                    v_rho.get((j - nq) * columns + p).copied()
                } else if j == nq + nv {
                    t_rho.get(p).copied()
                } else {
                    Some(along.change(j - nq - nv - 1, p))
                };
                let Some(change) = change else { continue };
                // Conditions of other events are none of its equations.
                let row = match i.checked_sub(own) {
                    None => i,
                    Some(k) if (first..end).contains(&k) => own + k - first,
                    Some(k) => {
                        // Rows that come after the values of constraints are settings.
                        if let Some(row) = k.checked_sub(conditions)
                            && let (Some(slope), Some(size)) =
                                (self.slopes.get_mut(row), self.sizes.get_mut(row))
                        {
                            *slope += value * change;
                            // What rounds z' is the largest of them.
                            let change = if j < nq { largest } else { change.real().abs() };
                            *size += S::from_f64(value.real().abs() * change);
                        }
                        continue;
                    }
                };
                if let Some(b) = self.b.get_mut(row) {
                    *b -= value * change;
                }
            }
            self.check_slopes(t, t_rho.get(p).copied().unwrap_or(S::ZERO), p)?;
            self.refine(&dims);
            // Column p of v_ρ is not read again.
            for (i, &d) in self.x.iter().enumerate().take(nv) {
                if let Some(v) = v_rho.get_mut(i * columns + p) {
                    *v += d;
                }
            }
        }
        Ok(())
    }

    /// Constraints that the event adds hold where it happens after a change of a parameter, too: Φ_z z' + Φ_t t' + Φ_ρ = 0.
    fn check_slopes(&self, t: f64, t_rho: S, parameter: usize) -> Result<(), StepError> {
        let rows = self.slopes.iter().zip(self.sizes.iter()).zip(self.row_rates.iter());
        for (row, ((slope, size), rate)) in rows.enumerate() {
            // z' = X + v t', of which little may be left.
            let size = size.real() + (*rate * t_rho).real().abs();
            if self.is_added(row) && slope.real().abs() > LEAVES * size {
                let (event, failure) = (self.event, EventFailure::Leaves { row, parameter });
                return Err(StepError::Event { t, event, failure });
            }
        }
        Ok(())
    }

    /// Derivatives of inputs after an event, in the rows of `rho`, from an instant before it: s_z z' + s_v v' + s_t t' + s_ρ ρ'. To be called before
    /// [`Jump::settle`]; `changes` is memory for all settings and columns.
    #[allow(clippy::too_many_arguments, reason = "state, derivatives, and memory")]
    pub(crate) fn differentiate_settings<M: EventDerivatives<S = S>>(
        &mut self,
        system: &M,
        event: usize,
        at: At<'_, S>,
        [z_rho, v_rho, t_rho]: [&[S]; 3],
        columns: usize,
        rho: &mut [S],
        changes: &mut [S],
        values: &mut [S],
        w: &mut [S],
    ) -> Result<(), StepError> {
        let (table, dims) = (system.event_table(), system.dims());
        let (first, end) = table.events.get(event).map_or((0, 0), |entry| entry.settings);
        let moving = table.columns.get(first..end).is_some_and(|columns| columns.iter().any(Option::is_some));
        if !moving || columns == 0 {
            return Ok(());
        }
        let written = system.event_jump_derivatives(at, self.d, self.lambda, self.mu, w, values);
        written.map_err(|error| error.in_step(at.t.real(), 0.0))?;
        changes.fill(S::ZERO);
        let (nq, nv) = (dims.nq, dims.nv);
        let along = AtEvent { columns, rho, clock: table.clock.map(|column| column as usize) };
        for (&(i, j), &value) in system.jump_places().iter().zip(values.iter()) {
            let Some(setting) = setting_of(&dims, &table, i).filter(|k| (first..end).contains(k)) else {
                continue;
            };
            let Some(to) = row_mut(changes, setting, columns) else { continue };
            let j = j as usize;
            if j < nq {
                add_row(to, value, z_rho, j);
            } else if j < nq + nv {
                add_row(to, value, v_rho, j - nq);
            } else if j == nq + nv {
                add_scaled(to, value, t_rho);
            } else {
                along.add(to, value, j - nq - nv - 1);
            }
        }
        for setting in first..end {
            let column = table.columns.get(setting).copied().flatten();
            if let Some(to) = column.and_then(|column| row_mut(rho, column as usize, columns)) {
                copy(to, row(changes, setting, columns).unwrap_or_default());
            }
        }
        Ok(())
    }

    /// The transpose of [`Jump::differentiate_settings`]: what the weights of inputs after an event, in rows of `rho`, `later` and `last`, are of z, v, t
    /// and ρ before it. `at` is an instant before it, with the inputs before it.
    #[allow(clippy::too_many_arguments, reason = "state, weights, and memory")]
    pub(crate) fn transpose_settings<M: EventDerivatives<S = S>>(
        &mut self,
        system: &M,
        at: At<'_, S>,
        columns: usize,
        [z, v, t, rho]: [&mut [S]; 4],
        [later, last]: [&mut [S]; 2],
        changes: &mut [S],
        values: &mut [S],
        w: &mut [S],
    ) -> Result<(), EvalError> {
        let (table, dims) = (system.event_table(), system.dims());
        let (first, end) = table.events.get(self.event).map_or((0, 0), |entry| entry.settings);
        let moving = table.columns.get(first..end).is_some_and(|columns| columns.iter().any(Option::is_some));
        if !moving {
            return Ok(());
        }
        changes.fill(S::ZERO);
        for setting in first..end {
            let Some(column) = table.columns.get(setting).copied().flatten() else { continue };
            let Some(to) = row_mut(changes, setting, columns) else { continue };
            for from in [&mut *rho, &mut *later, &mut *last] {
                if let Some(from) = row_mut(from, column as usize, columns) {
                    add_scaled(to, S::ONE, from);
                    from.fill(S::ZERO);
                }
            }
        }
        system.event_jump_derivatives(at, self.d, self.lambda, self.mu, w, values)?;
        let (nq, nv) = (dims.nq, dims.nv);
        for (&(i, j), &value) in system.jump_places().iter().zip(values.iter()) {
            let Some(setting) = setting_of(&dims, &table, i).filter(|k| (first..end).contains(k)) else {
                continue;
            };
            let j = j as usize;
            let to = if j < nq {
                row_mut(z, j, columns)
            } else if j < nq + nv {
                row_mut(v, j - nq, columns)
            } else if j == nq + nv {
                row_mut(t, 0, columns)
            } else {
                row_mut(rho, j - nq - nv - 1, columns)
            };
            if let (Some(to), Some(weights)) = (to, row(changes, setting, columns)) {
                add_scaled(to, value, weights);
            }
        }
        Ok(())
    }

    /// The transpose of [`Jump::differentiate`], for the event that was solved last: adds to the weights of z, v, t and ρ what those of v⁺, in
    /// the place of v, are of them.
    pub(crate) fn transpose<M: EventDerivatives<S = S>>(
        &mut self,
        system: &M,
        at: At<'_, S>,
        columns: usize,
        [z, v, t, rho]: [&mut [S]; 4],
        values: &mut [S],
        w: &mut [S],
    ) -> Result<(), EvalError> {
        if !self.jumps {
            return Ok(());
        }
        let (first, end) = self.conditions;
        let dims = system.dims();
        let (nq, nv) = (dims.nq, dims.nv);
        system.event_jump_derivatives(at, self.d, self.lambda, self.mu, w, values)?;
        let places = system.jump_places();
        let own = nv + dims.joint_rows();
        for k in 0..columns {
            self.b.fill(S::ZERO);
            for (b, v) in self.b.iter_mut().zip(v.chunks_exact(columns)).take(nv) {
                *b = v.get(k).copied().unwrap_or(S::ZERO);
            }
            self.refine(&dims);
            for (&(i, j), &value) in places.iter().zip(values.iter()) {
                let (i, j) = (i as usize, j as usize);
                // Conditions of other events are none of its equations.
                let row = match i.checked_sub(own) {
                    None => i,
                    Some(k) if (first..end).contains(&k) => own + k - first,
                    Some(_) => continue,
                };
                let to = if j < nq {
                    z.get_mut(j * columns + k)
                } else if j < nq + nv {
                    v.get_mut((j - nq) * columns + k)
                } else if j == nq + nv {
                    t.get_mut(k)
                } else {
                    rho.get_mut((j - nq - nv - 1) * columns + k)
                };
                if let (Some(to), Some(&x)) = (to, self.x.get(row)) {
                    *to -= value * x;
                }
            }
        }
        Ok(())
    }

    /// Whether the event that acted last adds this row.
    pub(crate) fn is_added(&self, row: usize) -> bool {
        self.adds_rows && self.added.get(row).is_some_and(|added| *added != S::ZERO)
    }

    /// Λ of the event that acted last; none if velocities have not jumped.
    pub(crate) fn row_impulses(&self) -> &[S] {
        if self.jumps { self.lambda } else { &[] }
    }

    /// v = v + d
    pub(crate) fn apply(&self, v: &mut [S]) {
        add_scaled(v, S::ONE, self.d);
    }
}
