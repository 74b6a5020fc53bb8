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
//! At an impact with friction the impulses p and q along gap and slip are those of [`friction`](super::friction), from rates before the event and
//! what impulses change them by; with K the matrix above without conditions, K y_i = (C_iᵀ, 0) and a_ij = C_i y_j,
//!
//! ```text
//! K (d, Λ) = (C_gᵀ p + C_sᵀ q, −Φd(v))
//! a_ij' = C_i' y_j + y_iᵀ (C_jᵀ)' − y_iᵀ K' y_j
//! ```
//!
//! E is small and refined away, as at the start of a run; it lets rows depend on each other. For e ≤ 1 and constraints at rest no energy is
//! created: with γ⁺ = −e γ⁻ the kinetic energy changes by −(1 − e²) γ⁻²/(2 C M⁻¹ Cᵀ), M⁻¹ under the constraints.

use core::cell::Cell;

use super::friction::{Impulses, impulses};
use super::times::{AtEvent, add_row};
use super::{EventDerivatives, EventTable, Events, ImpactLaw};
use crate::StepError;
use crate::error::{EvalError, EventFailure};
use crate::euler_parameters::velocity_unit;
use crate::formulation::compliance::least_part;
use crate::linear::blocks::NOTHING;
use crate::linear::{add_scaled, copy, lu, symmetric};
use crate::pieces::{Pieces, cut, cut_mut};
use crate::scalar::{Scalar, sqrt};
use crate::sensitivity::columns::{row, row_mut};
use crate::system::{At, Dims, Quantity, System, Units};

/// Refinements of the solution; each leaves about 1e−9 of the error.
const REFINEMENTS: usize = 4;

/// What remains of the change of a constraint, relative to its slopes and the largest change of a coordinate, that is not rounding.
pub(crate) const LEAVES: f64 = 1e-5;

/// By how much a restitution may lie beyond 0 and 1, so that differences by it can be taken there.
const RESTITUTION: f64 = 1e-4;

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
    /// With friction: the place of the gap among the conditions, and what the impulses are.
    impact: Option<(usize, Impulses<S>)>,
    /// y of gap and slip.
    responses: &'a mut [S],
    /// Derivatives of p and q by z, v, t, ρ.
    impulse_slopes: &'a mut [S],
}

/// Whether an event sets an input whose derivatives move, and whether it resets a coordinate.
pub(crate) fn moved_by(table: &EventTable<'_>, dims: &Dims, event: usize) -> (bool, bool) {
    let (first, end) = table.events.get(event).map_or((0, 0), |entry| entry.settings);
    let columns = table.columns.get(first..end).unwrap_or_default();
    let places = table.inputs.get(first..end).unwrap_or_default();
    (columns.iter().any(Option::is_some), places.iter().any(|&place| place as usize >= dims.nu))
}

/// What quantity `j` of z, v, t, ρ changes by in column `p`.
fn change_of<S: Scalar>(
    dims: &Dims,
    j: usize,
    p: usize,
    z_rho: &[S],
    v_rho: &[S],
    t_rho: &[S],
    along: AtEvent<'_, S>,
) -> S {
    let (nq, nv, columns) = (dims.nq, dims.nv, along.columns);
    let change = if j < nq {
        z_rho.get(j * columns + p)
    } else if j < nq + nv {
        v_rho.get((j - nq) * columns + p)
    } else if j == nq + nv {
        t_rho.get(p)
    } else {
        return along.change(j - nq - nv - 1, p);
    };
    change.copied().unwrap_or(S::ZERO)
}

/// The setting whose derivatives are row `i` of those of the equations: it comes after all equations and the values of constraints.
pub(crate) fn setting_of(dims: &Dims, table: &EventTable<'_>, i: u32) -> Option<usize> {
    let setting = (i as usize).checked_sub(dims.nv + 2 * dims.joint_rows() + table.conditions);
    setting.filter(|&setting| setting < table.inputs.len())
}

/// Length of the memory of a [`Jump`], for this many conditions and settings; a constant for generated models.
#[inline(always)]
pub(crate) const fn len(dims: &Dims, conditions: usize, settings: usize) -> usize {
    let (nv, rows, c) = (dims.nv, dims.joint_rows(), conditions);
    let n = nv + rows + c;
    let slopes = 2 * (dims.nq + nv + 1 + dims.sensitivity.parameters);
    let friction = 2 * (nv + rows) + slopes;
    nv * nv + rows * nv + 6 * rows + c * nv + 3 * c + settings + nv + n * n + 5 * n + friction
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
            impact: None,
            responses: pieces.next(2 * (nv + rows))?,
            impulse_slopes: pieces.next(2 * (dims.nq + nv + 1 + dims.sensitivity.parameters))?,
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

    /// Gives coordinates their values after an event that was settled. Whether there are some; constraints are checked there.
    pub(crate) fn place(
        &self,
        system_inputs: usize,
        table: &EventTable<'_>,
        event: usize,
        z: &mut [S],
    ) -> bool {
        let (first, end) = table.events.get(event).map_or((0, 0), |entry| entry.settings);
        let mut moves = false;
        for (&place, &value) in table.inputs.iter().zip(self.settings.iter()).take(end).skip(first) {
            if let Some(z) = (place as usize).checked_sub(system_inputs).and_then(|place| z.get_mut(place)) {
                (*z, moves) = (value, true);
            }
        }
        moves
    }

    /// Where an event that was settled has put coordinates, constraints and their rates hold as they did before it; `at` is the instant after it.
    pub(crate) fn check_placed<M: Events<S = S>>(
        &mut self,
        system: &M,
        event: usize,
        at: At<'_, S>,
        w: &mut [S],
    ) -> Result<(), StepError> {
        let t = at.t.real();
        if system.dims().joint_rows() == 0 {
            return Ok(());
        }
        // Those before it, of which a formulation may leave something.
        copy(self.slopes, self.row_values);
        copy(self.sizes, self.row_rates);
        self.evaluate(system, at, w).map_err(|error| error.in_step(t, 0.0))?;
        let (units, tolerance, rows) = (system.units(), sqrt(S::EPSILON), self.added.len());
        let before = self.slopes.iter().zip(self.sizes.iter());
        let after = self.row_values.iter().zip(self.row_rates.iter());
        for (row, ((value, rate), (value_before, rate_before))) in after.zip(before).enumerate() {
            let by = value.real();
            // Not greater, so that what is not a number does not hold.
            let holds = by.abs() <= tolerance * units.row(row) + value_before.real().abs();
            if !holds {
                return Err(StepError::Event { t, event, failure: EventFailure::Violates { row, by } });
            }
            let slopes = self.rows.iter().skip(row).step_by(rows.max(1)).zip(at.v);
            let size = slopes.fold(0.0, |size, (slope, v)| size + (*slope * *v).real().abs());
            let left = rate.real().abs();
            let stays = left <= tolerance * (size + left) + rate_before.real().abs();
            if !stays {
                return Err(StepError::Event { t, event, failure: EventFailure::Contradicts });
            }
        }
        Ok(())
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
        self.impact = None;
        let law = entry.map_or(ImpactLaw::Plain, |entry| entry.law);
        if !self.jumps {
            return Ok(());
        }
        self.evaluate(system, at, w).map_err(|error| error.in_step(t, 0.0))?;
        if self.adds_rows {
            self.check_positions(system, t, event)?;
        }
        if law == ImpactLaw::Plain && entry.is_some_and(|entry| entry.impact) {
            // γ⁺ = −e γ⁻
            let of = |values: &[S]| values.get(first).map_or(0.0, |x| x.real());
            let (before, after) = (of(self.condition_rates), of(self.targets));
            let sound = after == 0.0 || (-RESTITUTION..=1.0 + RESTITUTION).contains(&(-after / before));
            if !sound {
                return Err(StepError::Event { t, event, failure: EventFailure::Coefficients });
            }
        }
        if law != ImpactLaw::Plain {
            // Its impulses are known before velocities are.
            self.conditions = (first, first);
        }
        self.factor(system, table.conditions).map_err(|()| StepError::Event {
            t,
            event,
            failure: EventFailure::Singular,
        })?;
        if law != ImpactLaw::Plain {
            self.strike(&dims, law, t, event, (first, table.conditions))?;
        }
        let (first, end) = self.conditions;
        self.load_impulses(&dims);
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
        if let Some((first, impulses)) = self.impact {
            for (mu, p) in self.mu.iter_mut().skip(first).zip(impulses.values) {
                *mu = -p;
            }
        }
        self.check(&dims, system.units(), t, event, at)
    }

    /// p and q of an impact with friction whose gap is condition `first` of all, from the factors of K.
    fn strike(
        &mut self,
        dims: &Dims,
        law: ImpactLaw,
        t: f64,
        event: usize,
        (first, conditions): (usize, usize),
    ) -> Result<(), StepError> {
        let (nv, n) = (dims.nv, dims.nv + dims.joint_rows());
        let failed = |failure| StepError::Event { t, event, failure };
        for k in 0..2 {
            self.b.fill(S::ZERO);
            for (b, column) in self.b.iter_mut().take(nv).zip(self.directions.chunks_exact(conditions.max(1)))
            {
                *b = column.get(first + k).copied().unwrap_or(S::ZERO);
            }
            self.refine(dims);
            if let (Some(to), Some(x)) = (self.responses.get_mut(k * n..(k + 1) * n), self.x.get(..n)) {
                copy(to, x);
            }
        }
        let change = |i: usize, j: usize| {
            let response = self.responses.get(j * n..).unwrap_or_default();
            let columns = self.directions.chunks_exact(conditions.max(1)).zip(response).take(nv);
            columns.fold(S::ZERO, |sum, (column, &y)| {
                sum + column.get(first + i).copied().unwrap_or(S::ZERO) * y
            })
        };
        let of = |values: &[S], k: usize| values.get(first + k).copied().unwrap_or(S::ZERO);
        let (restitution, friction) = (of(self.targets, 0), of(self.targets, 1));
        let sound = (0.0..=1.0).contains(&restitution.real()) && friction.real() >= 0.0;
        if !sound {
            return Err(failed(EventFailure::Coefficients));
        }
        let rates = &*self.condition_rates;
        let numbers =
            [of(rates, 0), of(rates, 1), change(0, 0), change(0, 1), change(1, 1), restitution, friction];
        let found = impulses(law, numbers).ok_or(failed(EventFailure::Singular))?;
        self.impact = Some((first, found));
        Ok(())
    }

    /// b = (C_gᵀ p + C_sᵀ q, 0) of an impact with friction, zero otherwise.
    fn load_impulses(&mut self, dims: &Dims) {
        self.b.fill(S::ZERO);
        let Some((first, impulses)) = self.impact else { return };
        self.add_impulses(dims, first, impulses.values);
    }

    /// b = b + (C_gᵀ p + C_sᵀ q, 0)
    fn add_impulses(&mut self, dims: &Dims, first: usize, values: [S; 2]) {
        let columns = self.directions.chunks_exact(self.mu.len().max(1));
        for (b, column) in self.b.iter_mut().take(dims.nv).zip(columns) {
            for (&slope, p) in column.iter().skip(first).zip(values) {
                *b += slope * p;
            }
        }
    }

    /// Derivatives of p and q by z, v, t, ρ, at an instant before the event; none without friction. `values` is memory.
    fn differentiate_impulses<M: EventDerivatives<S = S>>(
        &mut self,
        system: &M,
        at: At<'_, S>,
        values: &mut [S],
        w: &mut [S],
    ) -> Result<(), StepError> {
        let Some((first, found)) = self.impact else { return Ok(()) };
        let t = at.t.real();
        if found.between {
            return Err(StepError::Event { t, event: self.event, failure: EventFailure::Between });
        }
        let (dims, table) = (system.dims(), system.event_table());
        let (nv, rows) = (dims.nv, dims.joint_rows());
        let (n, columns) = (nv + rows, dims.nq + nv + 1 + dims.sensitivity.parameters);
        let coefficients = nv + 2 * rows + table.conditions + table.inputs.len();
        self.impulse_slopes.fill(S::ZERO);
        let [by_p, by_q] = found.by;
        let (mut p_slopes, mut q_slopes) =
            cut_mut("slopes", self.impulse_slopes, columns).map_err(|error| error.in_step(t, 0.0))?;
        // Number k of the law changes by `change` in a column.
        let mut add = |k: usize, column: usize, change: S| {
            for (slopes, by) in [(&mut p_slopes, &by_p), (&mut q_slopes, &by_q)] {
                if let (Some(slope), Some(&by)) = (slopes.get_mut(column), by.get(k)) {
                    *slope += by * change;
                }
            }
        };
        let fail = |error: EvalError| error.in_step(t, 0.0);
        // Rates, restitution and friction, with no change of velocities: b and x are nothing.
        self.b.fill(S::ZERO);
        let (nothing, _) = cut("b", self.b, n).map_err(fail)?;
        let still = cut("b", nothing, nv).map_err(fail)?;
        self.mu.fill(S::ZERO);
        system.event_jump_derivatives(at, still.0, still.1, self.mu, w, values).map_err(fail)?;
        for (&(i, j), &value) in system.jump_places().iter().zip(values.iter()) {
            let (i, j) = (i as usize, j as usize);
            for k in 0..2 {
                if i == n + first + k {
                    add(k, j, value);
                }
                if i == coefficients + first + k {
                    add(5 + k, j, value);
                }
            }
        }
        // a_ij with the response of j: numbers 2, 3 and 4 are a_00, a_01, a_11.
        for (of, pairs) in [(0, &[(0, 2)][..]), (1, &[(0, 3), (1, 4)][..])] {
            let (_, response) = cut("responses", self.responses, of * n).map_err(fail)?;
            let (response, _) = cut("responses", response, n).map_err(fail)?;
            let (d, lambda) = cut("responses", response, nv).map_err(fail)?;
            // What rates have of velocities before the event is taken back: it stands with the other sign.
            for ((d, lambda), weight, mu) in [((d, lambda), S::ONE, -S::ONE), (still, -S::ONE, S::ZERO)] {
                self.mu.fill(S::ZERO);
                if let Some(to) = self.mu.get_mut(first + of) {
                    *to = mu;
                }
                system.event_jump_derivatives(at, d, lambda, self.mu, w, values).map_err(fail)?;
                for (&(i, j), &value) in system.jump_places().iter().zip(values.iter()) {
                    let (i, j) = (i as usize, j as usize);
                    for &(other, number) in pairs {
                        let (_, response) = cut("responses", self.responses, other * n).map_err(fail)?;
                        // −y_iᵀ (K' y_j − (C_jᵀ)') + C_i' y_j
                        if i < n {
                            add(number, j, -weight * value * response.get(i).copied().unwrap_or(S::ZERO));
                        } else if i == n + first + other {
                            add(number, j, weight * value);
                        }
                    }
                }
            }
        }
        for (mu, p) in self.mu.iter_mut().skip(first).zip(found.values) {
            *mu = -p;
        }
        Ok(())
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
    fn factor<M: System<S = S>>(&mut self, system: &M, conditions: usize) -> Result<(), ()> {
        let dims = &system.dims();
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
        symmetric::scales(n, nv, matrix, |j| velocity_unit(system, j), |_| None, scales);
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
        let dims = system.dims();
        if !self.jumps {
            let (_, places) = moved_by(&system.event_table(), &dims, self.event);
            return match places && dims.joint_rows() > 0 {
                true => self.check_placed_slopes(system, at, [z_rho, v_rho, t_rho], along, values, w),
                false => Ok(()),
            };
        }
        let columns = along.columns;
        let (first, end) = self.conditions;
        let (nq, nv) = (dims.nq, dims.nv);
        self.differentiate_impulses(system, at, values, w)?;
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
                let change = change_of(&dims, j, p, z_rho, v_rho, t_rho, along);
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
            if let Some((first, _)) = self.impact {
                let slopes = self.impulse_slopes.chunks_exact(nq + nv + 1 + dims.sensitivity.parameters);
                let mut changes = [S::ZERO; 2];
                for (change, slopes) in changes.iter_mut().zip(slopes) {
                    for (j, &slope) in slopes.iter().enumerate() {
                        *change += slope * change_of(&dims, j, p, z_rho, v_rho, t_rho, along);
                    }
                }
                self.add_impulses(&dims, first, changes);
            }
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

    /// Where an event has put coordinates, constraints and their rates hold after a change of a parameter, too; `at` is the instant after it.
    fn check_placed_slopes<M: EventDerivatives<S = S>>(
        &mut self,
        system: &M,
        at: At<'_, S>,
        [z_rho, v_rho, t_rho]: [&[S]; 3],
        along: AtEvent<'_, S>,
        values: &mut [S],
        w: &mut [S],
    ) -> Result<(), StepError> {
        let (dims, columns, t, event) = (system.dims(), along.columns, at.t.real(), self.event);
        let (nq, nv, rows) = (dims.nq, dims.nv, dims.joint_rows());
        // Nothing jumps: d, Λ and μ are zero.
        let written = system.event_jump_derivatives(at, self.d, self.lambda, self.mu, w, values);
        written.map_err(|error| error.in_step(t, 0.0))?;
        let largest_of = |rho: &[S], p: usize| {
            rho.iter().skip(p).step_by(columns.max(1)).map(|x| x.real().abs()).fold(0.0, f64::max)
        };
        for p in 0..columns {
            let (z_largest, v_largest) = (largest_of(z_rho, p), largest_of(v_rho, p));
            // Φ, then Φd(v)
            for first in [nv + rows + self.mu.len(), nv] {
                self.slopes.fill(S::ZERO);
                self.sizes.fill(S::ZERO);
                for (&(i, j), &value) in system.jump_places().iter().zip(values.iter()) {
                    let (row, j) = ((i as usize).checked_sub(first), j as usize);
                    let Some((slope, size)) =
                        row.and_then(|row| Some((self.slopes.get_mut(row)?, self.sizes.get_mut(row)?)))
                    else {
                        continue;
                    };
                    let change = change_of(&dims, j, p, z_rho, v_rho, t_rho, along);
                    *slope += value * change;
                    // What rounds z' and v' is the largest of them.
                    let change = match j {
                        j if j < nq => z_largest,
                        j if j < nq + nv => v_largest,
                        _ => change.real().abs(),
                    };
                    *size += S::from_f64(value.real().abs() * change);
                }
                let left = self.slopes.iter().zip(self.sizes.iter());
                let leaves = left.map(|(slope, size)| slope.real().abs() > LEAVES * size.real());
                if let Some(row) = leaves.enumerate().find_map(|(row, leaves)| leaves.then_some(row)) {
                    let failure = EventFailure::Displaces { row, parameter: Some(p) };
                    return Err(StepError::Event { t, event, failure });
                }
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
        let (moving, places) = moved_by(&table, &dims, event);
        if !(moving || places) || columns == 0 {
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

    /// Derivatives of coordinates that an event resets, from those of its settings.
    pub(crate) fn place_changes(
        dims: &Dims,
        table: &EventTable<'_>,
        event: usize,
        columns: usize,
        changes: &[S],
        z_rho: &mut [S],
    ) {
        let (first, end) = table.events.get(event).map_or((0, 0), |entry| entry.settings);
        for (setting, &place) in table.inputs.iter().enumerate().take(end).skip(first) {
            let z = (place as usize).checked_sub(dims.nu).and_then(|z| row_mut(z_rho, z, columns));
            if let (Some(z), Some(change)) = (z, row(changes, setting, columns)) {
                copy(z, change);
            }
        }
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
    ) -> Result<(), StepError> {
        let (table, dims) = (system.event_table(), system.dims());
        let (first, end) = table.events.get(self.event).map_or((0, 0), |entry| entry.settings);
        let (moving, places) = moved_by(&table, &dims, self.event);
        if !(moving || places) {
            return Ok(());
        }
        changes.fill(S::ZERO);
        for setting in first..end {
            let place = table.inputs.get(setting).and_then(|&place| (place as usize).checked_sub(dims.nu));
            if let (Some(from), Some(to)) =
                (place.and_then(|place| row_mut(z, place, columns)), row_mut(changes, setting, columns))
            {
                copy(to, from);
                from.fill(S::ZERO);
            }
            let Some(column) = table.columns.get(setting).copied().flatten() else { continue };
            let Some(to) = row_mut(changes, setting, columns) else { continue };
            for from in [&mut *rho, &mut *later, &mut *last] {
                if let Some(from) = row_mut(from, column as usize, columns) {
                    add_scaled(to, S::ONE, from);
                    from.fill(S::ZERO);
                }
            }
        }
        let written = system.event_jump_derivatives(at, self.d, self.lambda, self.mu, w, values);
        written.map_err(|error| error.in_step(at.t.real(), 0.0))?;
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
    ) -> Result<(), StepError> {
        if !self.jumps {
            return Ok(());
        }
        let (first, end) = self.conditions;
        let dims = system.dims();
        let (nq, nv) = (dims.nq, dims.nv);
        self.differentiate_impulses(system, at, values, w)?;
        let fail = |error: EvalError| error.in_step(at.t.real(), 0.0);
        system.event_jump_derivatives(at, self.d, self.lambda, self.mu, w, values).map_err(fail)?;
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
            let Some((first, _)) = self.impact else { continue };
            let slopes = self.impulse_slopes.chunks_exact(nq + nv + 1 + dims.sensitivity.parameters);
            for (i, slopes) in slopes.enumerate() {
                // p̄ = C w
                let directions = self.directions.chunks_exact(self.mu.len().max(1));
                let weight = directions.zip(self.x.iter()).take(nv).fold(S::ZERO, |sum, (column, &x)| {
                    sum + column.get(first + i).copied().unwrap_or(S::ZERO) * x
                });
                let (by_z, rest) = cut("slopes", slopes, nq).map_err(fail)?;
                let (by_v, rest) = cut("slopes", rest, nv).map_err(fail)?;
                let (by_t, by_rho) = cut("slopes", rest, 1).map_err(fail)?;
                for (to, by) in [(&mut *z, by_z), (&mut *v, by_v), (&mut *t, by_t), (&mut *rho, by_rho)] {
                    for (to, &by) in to.iter_mut().skip(k).step_by(columns).zip(by) {
                        *to += by * weight;
                    }
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

    /// The same with y = \[z, v, …\].
    pub(crate) fn apply_to(&self, dims: &Dims, t: S, y: &mut [S]) -> Result<(), StepError> {
        let fail = |error: EvalError| error.in_step(t.real(), 0.0);
        let (_, rest) = cut_mut("y", y, dims.nq).map_err(fail)?;
        self.apply(cut_mut("y", rest, dims.nv).map_err(fail)?.0);
        Ok(())
    }
}
