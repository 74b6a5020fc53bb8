//! Solutions of bordered systems for many right-hand sides at once, exact to rounding.
//!
//! ```text
//! [ W  Φ_zᵀ  Aᵀ ]       [ b ]
//! [ G           ] X  =  [ c ]        rows of G minus e on the diagonal; a row that is not active is the identity
//! ```
//!
//! Input: a leading matrix with its factors, which has W, Φ_z, A, and rows G/s up to a small E on the diagonal. Output: X,
//! whose residual is at rounding. Factors alone never decide: each solution is checked with the matrix itself, refined while that
//! helps, and found by the dense LU where it does not.
//!
//! Where rows depend on each other there is a solution only if the right-hand side allows it; what is left over then names
//! row and column.

use super::columns::sums_of_rows;
use super::residual::{Lowers, ROUNDING, Residual, sum_sizes};
use crate::StepError;
use crate::constrained::Constrained;
use crate::error::EvalError;
use crate::formulation::depend;
use crate::linear::blocks::{Blocks, NOTHING, holonomic_rows};
use crate::linear::{Leading, add_scaled, copy};
use crate::pieces::{Pieces, cut, cut_mut};
use crate::scalar::Scalar;
use crate::system::{Dims, Units};

/// What may be left of a residual where refinement does not help any more, in units of ε times what its equation sums: twelve bits
/// and more, near a
/// singular position.
const LOST: f64 = 1e4;
/// A row may be the small difference of terms as large as this part of what other rows sum, and has their rounding.
const CANCELLED: f64 = 1e-2;
/// Refinements that shrink a residual by less than this are of no use.
const STAGNANT: f64 = 0.5;
const MAX_REFINEMENTS: usize = 20;

/// Why there is no solution.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Unsolved {
    /// The system's equations could not be evaluated.
    Eval(EvalError),
    /// This equation cannot be satisfied for this column.
    Left {
        /// Index of the equation.
        equation: usize,
        /// Index of the column.
        column: usize,
    },
}

impl From<EvalError> for Unsolved {
    fn from(error: EvalError) -> Self {
        Self::Eval(error)
    }
}

/// Rows that are not those of the leading matrix.
pub(crate) struct Lower<'a, S> {
    /// G at the holonomic places, then at the nonholonomic ones.
    pub(crate) values: &'a mut [S],
    /// s of holonomic rows and of nonholonomic ones.
    pub(crate) scales: [S; 2],
    /// e
    pub(crate) compliance: S,
}

/// The system.
pub(crate) struct Bordered<'a, M: Constrained> {
    pub(crate) leading: Leading<'a, M>,
    /// G, unless it is what the leading matrix has.
    pub(crate) lower: Option<Lower<'a, M::S>>,
    /// Whether the matrix is its own transpose.
    pub(crate) symmetric: bool,
    /// Whether rows depend on each other.
    pub(crate) redundant: bool,
    /// Whether a solution with these factors has been checked.
    pub(crate) trusted: bool,
}

/// Memory of a solution.
pub(crate) struct Memory<'a, S> {
    residual: &'a mut [S],
    column: &'a mut [S],
    largest: &'a mut [S],
    sizes: &'a mut [S],
    /// Size of what cancels in each equation's right-hand side: rounding of it is no contradiction.
    pub(crate) noise: &'a mut [S],
}

impl<'a, S: Scalar> Memory<'a, S> {
    #[inline(always)]
    pub(crate) const fn len(dims: &Dims, columns: usize) -> usize {
        (columns + 4) * (dims.nq + dims.rows())
    }

    #[inline(always)]
    pub(crate) fn new(dims: &Dims, columns: usize, pieces: &mut Pieces<'a, S>) -> Result<Self, StepError> {
        let n = dims.nq + dims.rows();
        // Transposed solves read it where nothing has written it.
        let noise = pieces.next(n)?;
        noise.fill(S::ZERO);
        Ok(Self {
            residual: pieces.next(n * columns)?,
            column: pieces.next(n)?,
            largest: pieces.next(n)?,
            sizes: pieces.next(n)?,
            noise,
        })
    }
}

/// A system together with what its solution needs.
struct Solution<'s, 'a, M: Constrained> {
    system: &'s M,
    bordered: &'s mut Bordered<'a, M>,
    active: Option<&'s [M::S]>,
    transposed: bool,
    columns: usize,
    b: &'s [M::S],
    memory: &'s mut Memory<'a, M::S>,
    w: &'s mut [M::S],
}

impl<'a, M: Constrained> Bordered<'a, M> {
    /// Whether the factors are those of the matrix itself, but for rounding.
    #[inline(always)]
    fn is_exact(&self) -> bool {
        self.lower.is_none() && !depend(self.redundant)
    }

    /// Into `x`: solutions for the columns of `b`.
    #[inline(always)]
    #[allow(clippy::too_many_arguments, reason = "a system, its right-hand sides, its memory")]
    pub(crate) fn solve(
        &mut self,
        system: &M,
        active: Option<&[M::S]>,
        transposed: bool,
        columns: usize,
        b: &[M::S],
        x: &mut [M::S],
        memory: &mut Memory<'a, M::S>,
        w: &mut [M::S],
    ) -> Result<(), Unsolved> {
        // Solutions for many right-hand sides are quicker than transposed ones.
        let transposed = transposed && !self.symmetric;
        let mut solution = Solution { system, bordered: self, active, transposed, columns, b, memory, w };
        let first = solution.first(x);
        if first.is_ok()
            && solution.bordered.lower.is_none()
            && (solution.bordered.is_exact() || active.is_none())
        {
            if !solution.bordered.is_exact() {
                // E leaves about 1e−9 of the rows: one correction takes that to rounding.
                solution.correct_once(x)?;
            }
            // Factors that were good once are good again.
            if solution.bordered.trusted || solution.sum_is_small(x)? {
                solution.bordered.trusted = true;
                return Ok(());
            }
        }
        solution.refine(first.is_ok(), x)
    }
}

impl<M: Constrained> Solution<'_, '_, M> {
    /// x from b by the factors.
    #[inline(always)]
    fn first(&mut self, x: &mut [M::S]) -> Result<(), EvalError> {
        copy(x, self.b);
        let Self { bordered, memory, w, .. } = self;
        let dims = self.system.dims();
        precondition(bordered, &dims, self.transposed, self.columns, w, memory.column, x)
    }

    /// Whether the residual of the sum of all columns is at rounding: factors are good for all columns or for none.
    #[inline(always)]
    fn sum_is_small(&mut self, x: &[M::S]) -> Result<bool, EvalError> {
        let (dims, pattern) = (self.system.dims(), self.system.pattern());
        let blocks = Blocks::of(&dims, &pattern, self.bordered.leading.matrix)?;
        let Memory { residual, column, sizes, noise, .. } = &mut *self.memory;
        sums_of_rows(self.columns, self.b, residual);
        sums_of_rows(self.columns, x, column);
        sum_sizes(&dims, &pattern, &blocks, self.transposed, self.active, column, residual, sizes)?;
        if depend(self.bordered.redundant) {
            add_noise(&dims, self.system.units(), noise, sizes)?;
        }
        let limit = ROUNDING * M::S::EPSILON;
        let rows = residual.iter().zip(sizes.iter());
        Ok(rows.fold(true, |small, (r, size)| small & (r.real().abs() <= limit * size.real())))
    }

    /// x = x + (solution for the residual), with the rows of the leading matrix and all of them active. The factors are those of the
    /// matrix with E, so the residual without it is known but for rounding: c − G δ = −E λ, and nothing in the other equations.
    #[inline(always)]
    fn correct_once(&mut self, x: &mut [M::S]) -> Result<(), EvalError> {
        let (dims, pattern) = (self.system.dims(), self.system.pattern());
        let compliance = Blocks::of(&dims, &pattern, self.bordered.leading.matrix)?.compliance;
        let (residual, columns) = (&mut *self.memory.residual, self.columns);
        let (top, rows) = cut_mut("residual", residual, dims.nq * columns)?;
        top.fill(M::S::ZERO);
        let (_, lambda) = cut("x", x, dims.nq * columns)?;
        // Both in one order. Two iterators over chunks, zipped, would divide by a length that could be zero for all the compiler knows.
        let mut lambda = lambda.iter();
        for (row, &e) in rows.chunks_exact_mut(columns.max(1)).zip(compliance) {
            for (r, &lambda) in row.iter_mut().zip(lambda.by_ref()) {
                *r = -e * lambda;
            }
        }
        self.correct(x)
    }

    /// Whether the residual of `x`, which it writes, is at rounding.
    fn is_small(&mut self, x: &[M::S]) -> Result<bool, EvalError> {
        let (dims, pattern) = (self.system.dims(), self.system.pattern());
        let blocks = Blocks::of(&dims, &pattern, self.bordered.leading.matrix)?;
        let lower = Lowers::of(&pattern, &blocks, &self.bordered.lower)?;
        let Memory { residual, largest, sizes, .. } = &mut *self.memory;
        copy(residual, self.b);
        let mut residual = Residual { columns: self.columns, x, largest, residual, sizes };
        residual.is_small(&dims, &pattern, &blocks, &lower, self.transposed, self.active)
    }

    /// Refines `x`, or solves again.
    #[cold]
    #[inline(never)]
    fn refine(mut self, solved: bool, x: &mut [M::S]) -> Result<(), Unsolved> {
        if solved {
            self.is_small(x)?;
        } else {
            self.start_again(x)?;
        }
        let mut previous = f64::INFINITY;
        for _ in 0..MAX_REFINEMENTS {
            let (now, ..) = self.worst(false)?;
            if now <= ROUNDING {
                // Where factors are not those of the matrix, one more takes what is left.
                return if self.bordered.is_exact() { Ok(()) } else { Ok(self.correct(x)?) };
            }
            if now <= STAGNANT * previous {
                previous = now;
                self.correct(x)?;
                self.is_small(x)?;
                continue;
            }
            let dense = self.bordered.leading.uses_dense();
            let (left, equation, column) = self.worst(true)?;
            // No other factors make less than rounding.
            if left <= ROUNDING || (left <= LOST && (depend(self.bordered.redundant) || dense)) {
                return Ok(());
            }
            if dense {
                return Err(Unsolved::Left { equation, column });
            }
            self.start_again(x)?;
            previous = f64::INFINITY;
        }
        let (left, equation, column) = self.worst(true)?;
        if left <= LOST && depend(self.bordered.redundant) {
            Ok(())
        } else {
            Err(Unsolved::Left { equation, column })
        }
    }

    /// x = x + (solution for the residual)
    fn correct(&mut self, x: &mut [M::S]) -> Result<(), EvalError> {
        let dims = self.system.dims();
        let Self { bordered, memory, w, columns, transposed, .. } = self;
        let Memory { residual, column, .. } = &mut **memory;
        precondition(bordered, &dims, *transposed, *columns, w, column, residual)?;
        add_scaled(x, M::S::ONE, residual);
        Ok(())
    }

    /// Solves by the dense LU.
    fn start_again(&mut self, x: &mut [M::S]) -> Result<(), EvalError> {
        self.factor_dense(&self.system.dims())?;
        self.first(x)?;
        self.is_small(x)?;
        Ok(())
    }

    /// The largest residual in units of ε times what its equation sums; its equation and column. A residual that is not finite is infinite.
    /// Rows of constraints that sum rounding only say nothing. If the residual is `judged`, because refinement does not shrink it any more,
    /// what has cancelled before counts where rows depend on each other, and what rounding of the other equations leaves of a row: a
    /// limit for what must be taken as it is, not for what refinement could still mend.
    fn worst(&mut self, judged: bool) -> Result<(f64, usize, usize), EvalError> {
        let noise = judged && depend(self.bordered.redundant);
        if judged {
            self.spread_rounding()?;
        }
        let Memory { residual, sizes, noise: before, column: spread, .. } = &*self.memory;
        let mut worst = (0.0, 0, 0);
        // Where an equation sums less than this, its terms have lost digits: weights that fade from step to step on the way back, if
        // constraints leave nothing free.
        let vanished = M::S::MIN_POSITIVE / M::S::EPSILON;
        let nq = self.system.dims().nq;
        let units = self.system.units();
        let nothing = NOTHING * M::S::EPSILON * units.largest_row(cut("sizes", sizes, nq)?.1);
        let cancelled = cancelled(nq, units, before, sizes)?;
        let parts = sizes.iter().zip(before.iter()).zip(spread.iter());
        let rows = residual.chunks_exact(self.columns.max(1)).zip(parts);
        for (i, (row, ((size, before), spread))) in rows.enumerate() {
            let unit = unit_of(nq, units, i);
            let says = i < nq || size.real() > nothing * unit || !size.is_finite();
            let size = if noise { size.real() + before.real() + cancelled * unit } else { size.real() };
            let size = if judged { size + spread.real() } else { size };
            if (!says && depend(self.bordered.redundant)) || size <= vanished {
                continue;
            }
            for (k, r) in row.iter().enumerate() {
                let part = r.real().abs() / (M::S::EPSILON * size);
                let part = if r.real() == 0.0 { 0.0 } else { part };
                let part = if part.is_nan() { f64::INFINITY } else { part };
                if part > worst.0 {
                    worst = (part, i, k);
                }
            }
        }
        Ok(worst)
    }

    /// Into `column`: Σ_j |G_kj| s_j/|W_jj| for each row, with the sizes s_j of what equations of motion sum: if constraints leave nothing
    /// free, a coordinate may be nothing but rounding of its equation. It then is in every equation of motion: Σ_j |W_ij| u_j τ, with the
    /// units u_j and the largest τ = s_j/(|W_jj| u_j). Otherwise zero for these.
    fn spread_rounding(&mut self) -> Result<(), EvalError> {
        let (dims, pattern) = (self.system.dims(), self.system.pattern());
        let blocks = Blocks::of(&dims, &pattern, self.bordered.leading.matrix)?;
        let lower = Lowers::of(&pattern, &blocks, &self.bordered.lower)?;
        let [holonomic, nonholonomic] = match self.transposed {
            true => [blocks.holonomic, blocks.nonholonomic],
            false => [lower.holonomic, lower.nonholonomic],
        };
        let Memory { column, sizes, .. } = &mut *self.memory;
        column.fill(M::S::ZERO);
        let (top, rows) = cut_mut("column", column, dims.nq)?;
        for (&(i, j), value) in pattern.tangent.iter().zip(blocks.tangent) {
            let inertia = value.real().abs();
            if let (Some(to), Some(size)) = (top.get_mut(i as usize), sizes.get(i as usize))
                && i == j
                && inertia > 0.0
            {
                *to = M::S::from_f64(size.real() / inertia);
            }
        }
        let parts =
            [(0, pattern.holonomic, holonomic), (holonomic_rows(&dims), pattern.nonholonomic, nonholonomic)];
        for (first, places, values) in parts {
            for (&(k, j), value) in places.iter().zip(values) {
                if let (Some(to), Some(x)) = (rows.get_mut(first + k as usize), top.get(j as usize)) {
                    *to += M::S::from_f64(value.real().abs() * x.real());
                }
            }
        }
        let units = self.system.units();
        let relative = top.iter().enumerate().map(|(j, x)| x.real() / units.coordinate(j));
        let tau = relative.fold(0.0, f64::max);
        top.fill(M::S::ZERO);
        if dims.rows() < dims.nq {
            return Ok(());
        }
        for (&(i, j), value) in pattern.tangent.iter().zip(blocks.tangent) {
            let (i, j) = if self.transposed { (j as usize, i as usize) } else { (i as usize, j as usize) };
            if let Some(to) = top.get_mut(i) {
                *to += M::S::from_f64(value.real().abs() * units.coordinate(j) * tau);
            }
        }
        Ok(())
    }

    /// The dense LU, with G in its place.
    fn factor_dense(&mut self, dims: &Dims) -> Result<(), EvalError> {
        let pattern = self.system.pattern();
        let n = dims.nq + dims.rows();
        let Bordered { leading, lower, .. } = &mut *self.bordered;
        let dense = leading.dense()?;
        if let Some(lower) = lower {
            let (holonomic, nonholonomic) = cut("values", lower.values, pattern.holonomic.len())?;
            let [by_position, by_velocity] = lower.scales;
            let parts = [
                (dims.nq, pattern.holonomic, holonomic, by_position),
                (dims.nq + holonomic_rows(dims), pattern.nonholonomic, nonholonomic, by_velocity),
            ];
            for (first, places, values, scale) in parts {
                for (&(k, j), &value) in places.iter().zip(values) {
                    if let Some(entry) = dense.get_mut(j as usize * n + first + k as usize) {
                        *entry = value / scale;
                    }
                }
            }
        }
        leading.factor_changed()
    }
}

/// Size of terms whose small difference a row may be, in units of the rows.
#[inline(always)]
fn cancelled<S: Scalar>(nq: usize, units: Units<'_>, noise: &[S], sizes: &[S]) -> Result<f64, EvalError> {
    let (sizes, noise) = (cut("sizes", sizes, nq)?.1, cut("noise", noise, nq)?.1);
    Ok(CANCELLED * (units.largest_row(sizes) + units.largest_row(noise)))
}

/// The unit of an equation: those of the rows stand behind those of motion, which have none.
#[inline(always)]
fn unit_of(nq: usize, units: Units<'_>, index: usize) -> f64 {
    if index < nq { 1.0 } else { units.row(index - nq) }
}

/// Adds to the sizes of what each equation sums what has cancelled before, where rows depend on each other.
#[inline(always)]
fn add_noise<S: Scalar>(
    dims: &Dims,
    units: Units<'_>,
    noise: &[S],
    sizes: &mut [S],
) -> Result<(), EvalError> {
    let cancelled = cancelled(dims.nq, units, noise, sizes)?;
    for (i, (size, &noise)) in sizes.iter_mut().zip(noise).enumerate() {
        *size += noise + S::from_f64(cancelled * unit_of(dims.nq, units, i));
    }
    Ok(())
}

/// Solves in place with the factors, rows divided by s.
#[inline(always)]
fn precondition<M: Constrained>(
    bordered: &Bordered<'_, M>,
    dims: &Dims,
    transposed: bool,
    columns: usize,
    w: &mut [M::S],
    column: &mut [M::S],
    x: &mut [M::S],
) -> Result<(), EvalError> {
    if !transposed {
        divide_rows(bordered, dims, columns, x)?;
        bordered.leading.solve_many(columns, w, column, x)
    } else {
        bordered.leading.solve_transposed_many(columns, w, column, x)?;
        divide_rows(bordered, dims, columns, x)
    }
}

#[inline(always)]
fn divide_rows<M: Constrained>(
    bordered: &Bordered<'_, M>,
    dims: &Dims,
    columns: usize,
    x: &mut [M::S],
) -> Result<(), EvalError> {
    if let Some(lower) = &bordered.lower {
        let [by_position, by_velocity] = lower.scales;
        let (_, rows) = cut_mut("x", x, dims.nq * columns)?;
        let (holonomic, nonholonomic) = cut_mut("x", rows, holonomic_rows(dims) * columns)?;
        for (rows, scale) in [(holonomic, by_position), (nonholonomic, by_velocity)] {
            for x in rows {
                *x /= scale;
            }
        }
    }
    Ok(())
}
