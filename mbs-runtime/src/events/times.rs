//! Derivatives of the times of events, and of the sizes of the steps around them.
//!
//! A step that ends in an event has a size that depends on the parameters: with x_e = step(x_n, h) and g(x_e) = 0,
//!
//! ```text
//! h' = −(g_x X + g_t t_n' + g_ρ)/(g_x step_h + g_t),   x_e' = X + step_h h',   t_e' = t_n' + h'
//! ```
//!
//! where X is the derivative of the step with its size held. The step after the event ends at a node that does not move: its size has
//! the derivative −t_e'. Both are made with h' as a part of the step's derivative, so that nothing is approximated: it is the
//! derivative of the discrete run, integrals included.
//!
//! | pass | the step is made with | leaves |
//! |---|---|---|
//! | 0 | h' = 0 | g' at the event |
//! | 1 | h' = 1 | g' + g_h |
//! | 2 | h' = −g'/g_h | the derivatives |

use super::jump::LEAVES;
use super::{EventTable, Events};
use crate::error::{EventFailure, StepError};
use crate::linear::add_scaled;
use crate::pieces::Pieces;
use crate::scalar::Scalar;

/// The rate of a function, relative to the sum of its parts' sizes, below which an event is met tangentially.
const TANGENTIAL: f64 = 1e-9;

/// The derivatives of times.
pub(crate) struct Times<'a, S> {
    /// Of the time of the last node.
    pub(crate) t_rho: &'a mut [S],
    /// Of the function of the event, with the size of the step held, and with h' = 1.
    g_rho: [&'a mut [S]; 2],
    /// The step is made again so that its end does not move.
    closing: bool,
}

impl<'a, S: Scalar> Times<'a, S> {
    /// Length of its memory for this many parameters.
    pub(crate) const fn len(columns: usize) -> usize {
        3 * columns
    }

    pub(crate) fn new(columns: usize, pieces: &mut Pieces<'a, S>) -> Result<Self, StepError> {
        let t_rho = pieces.next(columns)?;
        t_rho.fill(S::ZERO);
        Ok(Self { t_rho, g_rho: [pieces.next(columns)?, pieces.next(columns)?], closing: false })
    }

    /// Where g' of a pass goes, and t' of the last node. After the last pass, of another event at the same time: with the sizes of its terms.
    pub(crate) fn slopes(&mut self, pass: usize) -> (Slopes<'_, S>, &[S]) {
        let [first, second] = &mut self.g_rho;
        let (to, sizes) = match pass {
            0 => (&mut **first, None),
            1 => (&mut **second, None),
            _ => (&mut **first, Some(&mut **second)),
        };
        to.fill(S::ZERO);
        let mut slopes = Slopes { to, sizes };
        slopes.sizes.iter_mut().for_each(|sizes| sizes.fill(S::ZERO));
        (slopes, self.t_rho)
    }

    /// Another event at the same time happens there after a change of every parameter, too; its slopes are those that were found last, `scale` is the sum
    /// of the sizes of the parts of its function's rate.
    pub(crate) fn check_coincidence(
        &self,
        scale: f64,
        t: S,
        event: usize,
        other: usize,
    ) -> Result<(), StepError> {
        let [slopes, sizes] = &self.g_rho;
        // g' = (g' of the step of fixed size) + (rate) t', of which little may be left.
        let all = slopes.iter().zip(sizes.iter()).zip(self.t_rho.iter());
        let mut parts =
            all.map(|((g, size), t)| g.real().abs() > LEAVES * (size.real() + scale * t.real().abs()));
        match parts.position(|parts| parts) {
            None => Ok(()),
            Some(parameter) => {
                let failure = EventFailure::Parts { other, parameter };
                Err(StepError::Event { t: t.real(), event, failure })
            }
        }
    }

    /// After the `pass`-th time a step was made to the event; `scale`: the sum of the sizes of the parts of its function's rate. Whether
    /// it must be made again, with the h' that was written.
    pub(crate) fn located(
        &mut self,
        h_rho: &mut [S],
        scale: f64,
        t: S,
        event: usize,
        pass: usize,
    ) -> Result<bool, StepError> {
        match pass {
            0 => h_rho.fill(S::ONE),
            1 => {
                let [g_rho, again] = &self.g_rho;
                // g_h is the same in every column; that with the smallest g' has most of its digits.
                let pairs = g_rho.iter().zip(again.iter());
                let smallest = pairs.min_by(|a, b| a.0.real().abs().total_cmp(&b.0.real().abs()));
                let slope = smallest.map_or(S::ZERO, |(&g, &again)| again - g);
                // A slope that is not a number is none.
                let crosses = slope.real().abs() > TANGENTIAL * scale;
                if !crosses {
                    let (t, failure) = (t.real(), EventFailure::Tangential);
                    return Err(StepError::Event { t, event, failure });
                }
                for (h, &g) in h_rho.iter_mut().zip(g_rho.iter()) {
                    *h = -g / slope;
                }
            }
            _ => {
                add_scaled(self.t_rho, S::ONE, h_rho);
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// After a step that ends in no event. Whether it must be made again, so that its end, which the plan gave, does not move.
    pub(crate) fn ended(&mut self, h_rho: &mut [S], planned: bool) -> bool {
        if self.closing {
            self.closing = false;
            self.t_rho.fill(S::ZERO);
            return false;
        }
        if !planned || self.t_rho.iter().all(|t| *t == S::ZERO) {
            return false;
        }
        for (h, &t) in h_rho.iter_mut().zip(self.t_rho.iter()) {
            *h = -t;
        }
        self.closing = true;
        true
    }
}

/// g', a sum of products of slopes and changes, and the sum of their sizes where that is wanted.
pub(crate) struct Slopes<'a, S> {
    to: &'a mut [S],
    sizes: Option<&'a mut [S]>,
}

impl<S: Scalar> Slopes<'_, S> {
    /// Adds slope (row `i` of changes).
    pub(crate) fn add_row(&mut self, slope: S, changes: &[S], i: usize) {
        if let Some(row) = changes.chunks_exact(self.to.len().max(1)).nth(i) {
            self.add(slope, row.iter().copied());
        }
    }

    /// Adds slope (what parameter `k` changes by).
    pub(crate) fn add_along(&mut self, slope: S, along: AtEvent<'_, S>, k: usize) {
        self.add(slope, (0..along.columns).map(|p| along.change(k, p)));
    }

    /// Adds slope (changes).
    pub(crate) fn add(&mut self, slope: S, changes: impl Iterator<Item = S>) {
        for (p, change) in changes.enumerate() {
            let term = slope * change;
            if let Some(to) = self.to.get_mut(p) {
                *to += term;
            }
            if let Some(size) = self.sizes.as_mut().and_then(|sizes| sizes.get_mut(p)) {
                *size += S::from_f64(term.real().abs());
            }
        }
    }
}

/// Directions of the parameters as events see them, which have the derivative of the time by itself.
#[derive(Clone, Copy)]
pub(crate) struct AtEvent<'a, S> {
    pub(crate) columns: usize,
    /// A row for each parameter; nothing where all stay unit vectors.
    pub(crate) rho: &'a [S],
    pub(crate) clock: Option<usize>,
}

impl<S: Scalar> AtEvent<'_, S> {
    /// What parameter `k` changes by in column `p`.
    pub(crate) fn change(&self, k: usize, p: usize) -> S {
        // The row of the clock has the time, too.
        if self.rho.is_empty() || self.clock == Some(k) {
            return if k == p { S::ONE } else { S::ZERO };
        }
        self.rho.get(k * self.columns + p).copied().unwrap_or(S::ZERO)
    }

    /// to = to + slope (changes of parameter `k`)
    pub(crate) fn add(&self, to: &mut [S], slope: S, k: usize) {
        if self.rho.is_empty() || self.clock == Some(k) {
            if let Some(to) = to.get_mut(k) {
                *to += slope;
            }
            return;
        }
        add_row(to, slope, self.rho, k);
    }
}

/// to = to + slope (row `i` of a matrix with as many columns)
pub(crate) fn add_row<S: Scalar>(to: &mut [S], slope: S, rows: &[S], i: usize) {
    if let Some(row) = rows.chunks_exact(to.len().max(1)).nth(i) {
        add_scaled(to, slope, row);
    }
}

/// What the derivative of a run with events does not know.
pub(crate) fn refuse<M: Events>(model: &M) -> Result<(), StepError> {
    let table = model.event_table();
    if !table.autonomous {
        let what = "there is no gradient of a run with events yet if signals of inputs name the time `t`: write the law into the force itself";
        return Err(StepError::Unsupported { what });
    }
    Ok(())
}

/// Length of the memory of directions that move with the clock or with inputs that events set: a matrix, and derivatives of the time of the
/// last node.
pub(crate) fn directions_len(table: &EventTable<'_>, columns: usize) -> usize {
    if table.moves_inputs() { columns * (columns + 1) } else { 0 }
}

/// Directions of the parameters at the start of a run, the unit vectors; nothing if none of them moves.
pub(crate) fn first_directions<'a, S: Scalar>(
    table: &EventTable<'_>,
    columns: usize,
    pieces: &mut Pieces<'a, S>,
) -> Result<[&'a mut [S]; 2], StepError> {
    if !table.moves_inputs() {
        return Ok([&mut [], &mut []]);
    }
    let rho = pieces.next(columns * columns)?;
    rho.fill(S::ZERO);
    for (k, row) in rho.chunks_exact_mut(columns.max(1)).enumerate() {
        if let Some(entry) = row.get_mut(k) {
            *entry = S::ONE;
        }
    }
    let t_rho = pieces.next(columns)?;
    t_rho.fill(S::ZERO);
    Ok([rho, t_rho])
}
