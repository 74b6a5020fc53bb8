//! The choice of independent coordinates: which velocities and coordinates are integrated, and which follow from the constraints.
//!
//! Input: (Φ_v; A) at a state. Output: columns and rows by elimination with complete pivoting, in natural scales, so that the same state always
//! gives the same choice:
//!
//! | of | meaning |
//! |---|---|
//! | a velocity | independent; follows from a holonomic row (its coordinate does, too); follows from a nonholonomic row (its coordinate is integrated) |
//! | a row | serves to find what follows; or depends on such rows, and is only checked |
//!
//! It stands in numbers of the caller, as a part of the state of a run: whoever copies both makes the same steps again. Holonomic rows are
//! eliminated first, so that what follows at the level of positions follows at that of velocities. A block of Euler parameters p of which some
//! directions follow is held by φ = 2 Ḡ(p0) p along the others, with p0 the block where the choice was made: linear in p, so that an explicit
//! method integrates it as it integrates p. p0 is a number, not differentiated.

use core::cell::Cell;

use crate::error::{EvalError, IndependentFailure};
use crate::euler_parameters::{blocks, velocity_columns};
use crate::linear::blocks::NOTHING;
use crate::linear::rank::{eliminate, pivot};
use crate::pieces::cut_mut;
use crate::scalar::{Scalar, sqrt};
use crate::system::{Dims, Quantity, System};

/// What becomes of a velocity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    /// Integrated.
    Independent,
    /// Follows from holonomic rows, with its coordinate.
    Holonomic,
    /// Follows from nonholonomic rows; its coordinate is integrated.
    Nonholonomic,
}

/// Numbers before the columns: how often a choice was made, and how large following velocities may become.
const HEAD: usize = 2;

/// A choice, in numbers of the caller.
#[derive(Clone, Copy)]
pub(crate) struct Choice<'a, S> {
    numbers: &'a [Cell<S>],
    nv: usize,
    rows: usize,
    kept: usize,
}

impl<'a, S: Scalar> Choice<'a, S> {
    /// How many numbers it has; all zero for none made yet. Those after the first [`Choice::kept_len`] belong to the step that is being made.
    #[inline(always)]
    pub(crate) const fn len(dims: &Dims) -> usize {
        Self::kept_len(dims) + dims.nv * dims.nv
    }

    /// How many of them are a part of the state between steps.
    #[inline(always)]
    pub(crate) const fn kept_len(dims: &Dims) -> usize {
        HEAD + dims.nv + dims.joint_rows() + dims.nq
    }

    pub(crate) fn of(dims: &Dims, numbers: &'a [Cell<S>]) -> Result<Self, EvalError> {
        let (expected, found) = (Self::len(dims), numbers.len());
        if expected != found {
            return Err(EvalError::Length { what: "choice", expected, found });
        }
        Ok(Self { numbers, nv: dims.nv, rows: dims.joint_rows(), kept: Self::kept_len(dims) })
    }

    /// The matrix of positions at the start of the step.
    pub(crate) fn matrix(&self, entry: usize) -> S {
        self.numbers.get(self.kept + entry).map_or(S::ZERO, Cell::get)
    }

    pub(crate) fn set_matrix(&self, matrix: &[S]) {
        for (number, &entry) in self.numbers.iter().skip(self.kept).zip(matrix) {
            number.set(entry);
        }
    }

    fn get(&self, index: usize) -> f64 {
        self.numbers.get(index).map_or(0.0, |number| number.get().real())
    }

    fn set(&self, index: usize, value: f64) {
        if let Some(number) = self.numbers.get(index) {
            number.set(S::from_f64(value));
        }
    }

    /// How often one was made.
    pub(crate) fn count(&self) -> usize {
        self.get(0) as usize
    }

    /// The largest velocity that may follow from a unit of an independent one, in natural scales, for the choice to be kept.
    pub(crate) fn limit(&self) -> f64 {
        self.get(1)
    }

    pub(crate) fn set_limit(&self, limit: f64) {
        self.set(1, limit);
    }

    /// Of a velocity.
    pub(crate) fn column(&self, j: usize) -> Column {
        match self.get(HEAD + j) {
            0.0 => Column::Independent,
            1.0 => Column::Holonomic,
            _ => Column::Nonholonomic,
        }
    }

    /// Whether a row serves to find what follows.
    pub(crate) fn serves(&self, k: usize) -> bool {
        self.get(HEAD + self.nv + k) != 0.0
    }

    /// p0 of the block of Euler parameters at `offset` in z.
    pub(crate) fn reference(&self, offset: usize) -> [S; 4] {
        [0, 1, 2, 3].map(|i| S::from_f64(self.get(HEAD + self.nv + self.rows + offset + i)))
    }

    /// Whether some direction of the block of Euler parameters that begins at velocity `k` follows.
    pub(crate) fn moves_block(&self, k: usize) -> bool {
        (k..k + 3).any(|j| self.column(j) == Column::Holonomic)
    }

    /// Makes a choice at a state: `jacobian` by columns, destroyed. `memory`: [`memory_len`] values. `named`: velocities that must be independent.
    pub(crate) fn make<M: System<S = S>>(
        &self,
        system: &M,
        z: &[S],
        jacobian: &[S],
        memory: &mut [S],
        named: &[bool],
    ) -> Result<(), EvalError> {
        let dims = system.dims();
        let (nv, rows) = (dims.nv, dims.joint_rows());
        let (a, used) = cut_mut("memory", memory, rows * nv)?;
        let (used_rows, used_columns) = cut_mut("memory", used, rows)?;
        let (used_columns, _) = cut_mut("memory", used_columns, nv)?;
        used_rows.fill(S::ZERO);
        used_columns.fill(S::ZERO);
        let before = self.rank(&dims);
        self.scale(system, jacobian, a, used_rows);
        for j in 0..nv {
            self.set(HEAD + j, 0.0);
        }
        for k in 0..rows {
            self.set(HEAD + nv + k, 0.0);
        }
        // Velocities with names are the last that rows may claim: then the names do not determine the motion.
        for (first, last, kind) in [(0, dims.n_holonomic, 1.0), (dims.n_holonomic, rows, 2.0)] {
            for (column, used) in used_columns.iter_mut().enumerate() {
                if named.get(column) == Some(&true) {
                    *used = S::ONE;
                } else if self.column(column) == Column::Independent {
                    *used = S::ZERO;
                }
            }
            self.eliminate_rows(nv, a, used_rows, used_columns, first..last, kind);
            if !named.contains(&true) {
                continue;
            }
            for (column, used) in used_columns.iter_mut().enumerate() {
                if named.get(column) == Some(&true) {
                    *used = S::ZERO;
                }
            }
            let found = pivot(nv, a, used_rows, used_columns, first..last, sqrt(S::EPSILON));
            if let Some((_, column)) = found {
                let failure = IndependentFailure::Named;
                return Err(EvalError::Independent { failure, quantity: Quantity::Velocity, index: column });
            }
        }
        let offset = HEAD + nv + rows;
        for (i, z) in z.iter().enumerate() {
            self.set(offset + i, z.real());
        }
        // Fewer independent rows than before: a position in which the mechanism gains a freedom.
        if self.count() > 0 && self.rank(&dims) < before {
            let index = (0..rows).find(|&k| !self.serves(k)).unwrap_or(0);
            let (quantity, index) = row(&dims, index);
            let failure = IndependentFailure::Singular;
            return Err(EvalError::Independent { failure, quantity, index });
        }
        self.set(0, self.get(0) + 1.0);
        Ok(())
    }

    fn eliminate_rows(
        &self,
        nv: usize,
        a: &mut [S],
        used_rows: &mut [S],
        used_columns: &mut [S],
        range: core::ops::Range<usize>,
        kind: f64,
    ) {
        while let Some((k, j)) = pivot(nv, a, used_rows, used_columns, range.clone(), sqrt(S::EPSILON)) {
            for (used, index) in [(&mut *used_rows, k), (&mut *used_columns, j)] {
                if let Some(used) = used.get_mut(index) {
                    *used = S::ONE;
                }
            }
            self.set(HEAD + j, kind);
            self.set(HEAD + nv + k, 1.0);
            eliminate(nv, a, used_rows, k, j);
        }
    }

    /// Rows that serve.
    pub(crate) fn rank(&self, dims: &Dims) -> usize {
        (0..dims.joint_rows()).filter(|&k| self.serves(k)).count()
    }

    /// Into `a`, row by row: the Jacobian for velocities in their units, rows of largest entry one. Rows of rounding count as used.
    fn scale<M: System<S = S>>(&self, system: &M, jacobian: &[S], a: &mut [S], used_rows: &mut [S]) {
        let (dims, units) = (system.dims(), system.units());
        let (nv, rows) = (dims.nv, dims.joint_rows());
        for (j, coordinate, _) in velocity_columns(system) {
            let unit = S::from_f64(units.coordinate(coordinate));
            let entries = jacobian.get(j * rows..(j + 1) * rows).unwrap_or_default();
            for (k, &entry) in entries.iter().enumerate() {
                if let Some(to) = a.get_mut(k * nv + j) {
                    *to = entry * unit;
                }
            }
        }
        let unit_of = |k: usize| units.row(if k < dims.n_holonomic { k } else { k + dims.n_normalisation });
        let largest = a
            .chunks_exact(nv.max(1))
            .enumerate()
            .fold(0.0, |largest: f64, (k, row)| largest.max(crate::linear::largest(row) / unit_of(k)));
        for ((k, row), used) in a.chunks_exact_mut(nv.max(1)).enumerate().zip(used_rows) {
            let size = crate::linear::largest(row);
            if size / unit_of(k) <= NOTHING * S::EPSILON * largest {
                *used = S::ONE;
                continue;
            }
            let scale = S::from_f64(1.0 / size);
            for entry in row {
                *entry *= scale;
            }
        }
    }

    /// Whether every block of Euler parameters that moves with the constraints is still near its p0.
    pub(crate) fn is_near_reference<M: System<S = S>>(&self, system: &M, z: &[S]) -> bool {
        blocks(system).all(|(i, k)| {
            let turned =
                self.reference(i).iter().zip(z.iter().skip(i)).map(|(a, b)| (*a * *b).real()).sum::<f64>();
            !self.moves_block(k) || turned >= NEAR
        })
    }
}

/// The cosine of half the angle up to which a block of Euler parameters may turn from where its choice was made.
const NEAR: f64 = 0.8;

/// Length of the memory of [`Choice::make`].
#[inline(always)]
pub(crate) const fn memory_len(dims: &Dims) -> usize {
    dims.joint_rows() * dims.nv + dims.joint_rows() + dims.nv
}

/// What an index into the rows of joint form counts.
pub(crate) fn row(dims: &Dims, k: usize) -> (Quantity, usize) {
    match k.checked_sub(dims.n_holonomic) {
        None => (Quantity::Holonomic, k),
        Some(k) => (Quantity::Nonholonomic, k),
    }
}
