//! Factors of the leading matrix: in the system's own static order, which is fast and knows the zeros; and by the dense LU
//! with pivoting where that fails. Whoever solves judges the solution (Newton's method by its contraction, a projection by
//! what is left of the violation) and calls [`Leading::factor_dense`] if it is bad.
//!
//! The dense LU compares pivots of equations in natural units: forces along coordinates in energies over their units, rows in theirs.
//!
//! What is cold here, and in those who use it, takes slices and never the whole value: a value whose address goes nowhere
//! stays in registers, and its lengths stay constants.

use super::blocks::{Blocks, unknown};
use super::{all_finite, lu};
use crate::constrained::{Constrained, by_columns};
use crate::error::{EvalError, StepError};
use crate::pieces::Pieces;
use crate::scalar::Scalar;
use crate::system::{Dims, Units};

/// Length of the scratch of a [`Leading`].
#[inline(always)]
pub(crate) const fn scratch_len(dims: &Dims) -> usize {
    let n = dims.nq + dims.rows();
    dims.n_matrix + dims.n_factors + n * n + 2 * n
}

/// A leading matrix and its factors.
pub(crate) struct Leading<'a, M: Constrained> {
    system: &'a M,
    /// The values of the matrix, [`Dims::n_matrix`].
    pub(crate) matrix: &'a mut [M::S],
    pub(crate) factors: &'a mut [M::S],
    pub(crate) dense: &'a mut [M::S],
    pivots: &'a mut [M::S],
    /// The right-hand side, for a second solution.
    kept: &'a mut [M::S],
    /// Whether the factors in use are the dense ones.
    uses_dense: bool,
    /// Factorisations by the dense LU.
    pub(crate) fallbacks: usize,
    /// Root of the unit of inertia, of the dense factors.
    root: f64,
}

impl<'a, M: Constrained> Leading<'a, M> {
    #[inline(always)]
    pub(crate) fn new(system: &'a M, dims: &Dims, pieces: &mut Pieces<'a, M::S>) -> Result<Self, StepError> {
        let n = dims.nq + dims.rows();
        Ok(Self {
            system,
            matrix: pieces.next(dims.n_matrix)?,
            factors: pieces.next(dims.n_factors)?,
            dense: pieces.next(n * n)?,
            pivots: pieces.next(n)?,
            kept: pieces.next(n)?,
            uses_dense: false,
            fallbacks: 0,
            root: 1.0,
        })
    }

    /// A reborrow, for a callee that takes it by value.
    #[inline(always)]
    pub(crate) fn reborrow(&mut self) -> Leading<'_, M> {
        Leading {
            system: self.system,
            matrix: self.matrix,
            factors: self.factors,
            dense: self.dense,
            pivots: self.pivots,
            kept: self.kept,
            uses_dense: self.uses_dense,
            fallbacks: self.fallbacks,
            root: self.root,
        }
    }

    /// Factors the matrix: by the system's order unless it fails or `dense` is wanted.
    #[inline(always)]
    pub(crate) fn factor(&mut self, w: &mut [M::S], dense: bool) -> Result<(), EvalError> {
        self.uses_dense = false;
        if dense || self.system.factor(self.matrix, w, self.factors).is_err() {
            self.factor_dense()?;
        }
        Ok(())
    }

    /// Factors the matrix by the dense LU.
    #[inline(always)]
    pub(crate) fn factor_dense(&mut self) -> Result<(), EvalError> {
        self.fallbacks += 1;
        self.uses_dense = true;
        self.root = factor_dense(self.system, self.matrix, self.dense, self.pivots)?;
        Ok(())
    }

    /// The factors have been written.
    #[inline(always)]
    pub(crate) fn use_factors(&mut self) {
        self.uses_dense = false;
    }

    /// Whether the factors in use are the dense ones.
    #[inline(always)]
    pub(crate) fn uses_dense(&self) -> bool {
        self.uses_dense
    }

    /// Solves in place: nq + rows values, finite.
    #[inline(always)]
    pub(crate) fn solve(&mut self, w: &mut [M::S], x: &mut [M::S]) -> Result<(), EvalError> {
        if !self.uses_dense {
            super::copy(self.kept, x);
            if self.system.solve(self.factors, w, x).is_ok() && all_finite(x) {
                return Ok(());
            }
            super::copy(x, self.kept);
            self.factor_dense()?;
        }
        solve_dense(self.system, self.root, self.dense, self.pivots, x)
    }
}

impl<M: Constrained> Leading<'_, M> {
    /// Solves for the columns of `x` in place with the factors in use; solutions may be not finite. `column`: for nq + rows
    /// values.
    #[inline(always)]
    pub(crate) fn solve_many(
        &self,
        columns: usize,
        w: &mut [M::S],
        column: &mut [M::S],
        x: &mut [M::S],
    ) -> Result<(), EvalError> {
        if self.uses_dense {
            self.solve_many_dense(columns, false, column, x)
        } else {
            self.system.solve_many(self.factors, columns, w, column, x)
        }
    }

    /// The same with the transposed matrix.
    #[inline(always)]
    pub(crate) fn solve_transposed_many(
        &self,
        columns: usize,
        w: &mut [M::S],
        column: &mut [M::S],
        x: &mut [M::S],
    ) -> Result<(), EvalError> {
        if self.uses_dense {
            self.solve_many_dense(columns, true, column, x)
        } else {
            by_columns(columns, column, x, |x| self.system.solve_transposed(self.factors, w, x))
        }
    }

    #[cold]
    #[inline(never)]
    fn solve_many_dense(
        &self,
        columns: usize,
        transposed: bool,
        column: &mut [M::S],
        x: &mut [M::S],
    ) -> Result<(), EvalError> {
        let n = self.system.dims().nq + self.system.dims().rows();
        by_columns(columns, column, x, |x| {
            if transposed {
                lu::solve_transposed(n, self.dense, self.pivots, x);
                weigh(self.system, self.root, x);
            } else {
                weigh(self.system, self.root, x);
                lu::solve(n, self.dense, self.pivots, x);
            }
            Ok(())
        })
    }

    /// The dense matrix, to be changed before [`Leading::factor_changed`].
    pub(crate) fn dense(&mut self) -> Result<&mut [M::S], EvalError> {
        let (dims, pattern) = (self.system.dims(), self.system.pattern());
        Blocks::of(&dims, &pattern, self.matrix)?.dense(&dims, &pattern, self.dense);
        Ok(self.dense)
    }

    /// Factors the dense matrix as it has been changed.
    pub(crate) fn factor_changed(&mut self) -> Result<(), EvalError> {
        self.fallbacks += 1;
        self.uses_dense = true;
        self.root = root_of_inertia(self.system, self.matrix)?;
        factor_weighed(self.system, self.root, self.dense, self.pivots)
    }
}

/// Root of the unit of inertia: that of the largest W_jj c_j², to a power of 2³², so that it is one for most mechanisms.
#[cold]
pub(crate) fn root_of_inertia<M: Constrained>(system: &M, matrix: &[M::S]) -> Result<f64, EvalError> {
    let (dims, pattern, units) = (system.dims(), system.pattern(), system.units());
    let blocks = Blocks::of(&dims, &pattern, matrix)?;
    let mut most: f64 = 0.0;
    for (&(i, j), value) in pattern.tangent.iter().zip(blocks.tangent) {
        let unit = units.coordinate(i as usize);
        most = if i == j { most.max(value.real().abs() * unit * unit) } else { most };
    }
    const STEP: f64 = 65536.0;
    let mut root = 1.0;
    while most > STEP && most < f64::INFINITY {
        (root, most) = (root * STEP, most / (STEP * STEP));
    }
    while most < 1.0 / STEP && most > 0.0 {
        (root, most) = (root / STEP, most * (STEP * STEP));
    }
    Ok(root)
}

/// The weight of an equation.
#[inline(always)]
fn weight(nq: usize, units: Units<'_>, root: f64, index: usize) -> f64 {
    if index < nq { units.coordinate(index) / root } else { root / units.row(index - nq) }
}

/// Multiplies the equations of right-hand sides by their weights.
#[cold]
pub(crate) fn weigh<M: Constrained>(system: &M, root: f64, x: &mut [M::S]) {
    let (nq, units) = (system.dims().nq, system.units());
    if root != 1.0 || units != Units::ONE {
        for (index, x) in x.iter_mut().enumerate() {
            *x *= M::S::from_f64(weight(nq, units, root, index));
        }
    }
}

/// Factors the dense matrix, its equations multiplied by their weights.
#[cold]
pub(crate) fn factor_weighed<M: Constrained>(
    system: &M,
    root: f64,
    dense: &mut [M::S],
    pivots: &mut [M::S],
) -> Result<(), EvalError> {
    let dims = system.dims();
    let n = dims.nq + dims.rows();
    for column in dense.chunks_exact_mut(n.max(1)) {
        weigh(system, root, column);
    }
    lu::factor(n, dense, pivots).map_err(|column| {
        let (quantity, index) = unknown(&dims, column);
        EvalError::SingularLeading { quantity, index }
    })
}

#[cold]
#[inline(never)]
fn factor_dense<M: Constrained>(
    system: &M,
    matrix: &[M::S],
    dense: &mut [M::S],
    pivots: &mut [M::S],
) -> Result<f64, EvalError> {
    let (dims, pattern) = (system.dims(), system.pattern());
    Blocks::of(&dims, &pattern, matrix)?.dense(&dims, &pattern, dense);
    let root = root_of_inertia(system, matrix)?;
    factor_weighed(system, root, dense, pivots)?;
    Ok(root)
}

#[cold]
#[inline(never)]
fn solve_dense<M: Constrained>(
    system: &M,
    root: f64,
    dense: &[M::S],
    pivots: &[M::S],
    x: &mut [M::S],
) -> Result<(), EvalError> {
    let dims = system.dims();
    weigh(system, root, x);
    lu::solve(dims.nq + dims.rows(), dense, pivots, x);
    match x.iter().position(|x| !x.is_finite()) {
        None => Ok(()),
        Some(index) => {
            let (quantity, index) = unknown(&dims, index);
            Err(EvalError::NotFinite { quantity, index })
        }
    }
}
