//! Residuals of bordered systems, and whether they are at rounding.
//!
//! Input: matrix, solutions, right-hand sides. A residual is compared with ε times the sum of the magnitudes that its equation adds
//! up, where all coordinates count as the largest of them.

use super::bordered::Lower;
use super::columns::{largest_of_rows, row, row_mut};
use crate::constrained::Pattern;
use crate::error::EvalError;
use crate::linear::blocks::{Blocks, holonomic_rows};
use crate::linear::largest;
use crate::pieces::{cut, cut_mut};
use crate::scalar::Scalar;
use crate::system::Dims;

/// Rounding of a residual, in units of ε Σ |a_ij| |x_j|: elimination in a fixed order loses some digits.
pub(super) const ROUNDING: f64 = 64.0;

/// G and e, wherever they are.
pub(super) struct Lowers<'s, S> {
    pub(super) holonomic: &'s [S],
    pub(super) nonholonomic: &'s [S],
    pub(super) compliance: Option<S>,
}

impl<'s, S: Scalar> Lowers<'s, S> {
    #[inline(always)]
    pub(super) fn of(
        pattern: &Pattern<'_>,
        blocks: &Blocks<'s, S>,
        lower: &'s Option<Lower<'_, S>>,
    ) -> Result<Self, EvalError> {
        Ok(match lower {
            None => Self {
                holonomic: blocks.holonomic,
                nonholonomic: blocks.nonholonomic_newton,
                compliance: None,
            },
            Some(lower) => {
                let (holonomic, nonholonomic) = cut("values", lower.values, pattern.holonomic.len())?;
                Self { holonomic, nonholonomic, compliance: Some(lower.compliance) }
            }
        })
    }
}

/// Equations, each with what is left of it and the size of what it sums.
struct Equations<'s, S> {
    left: &'s mut [S],
    sizes: &'s mut [S],
}

impl<'s, S: Scalar> Equations<'s, S> {
    /// As many of both.
    #[inline(always)]
    fn new(left: &'s mut [S], sizes: &'s mut [S]) -> Self {
        let n = left.len().min(sizes.len());
        Self { left: left.get_mut(..n).unwrap_or_default(), sizes: sizes.get_mut(..n).unwrap_or_default() }
    }

    /// left_i −= product, sizes_i += size
    #[inline(always)]
    fn subtract(&mut self, i: u32, product: S, size: f64) {
        if let (Some(left), Some(sum)) = (self.left.get_mut(i as usize), self.sizes.get_mut(i as usize)) {
            *left -= product;
            *sum += S::from_f64(size);
        }
    }
}

/// For a matrix W of the upper left: left_i −= Σ w_ij x_j, sizes_i += size Σ |w_ij|. In the order of its rows, the sums of which stay in registers.
#[inline(always)]
fn subtract_rows<S: Scalar>(
    places: &[(u32, u32)],
    values: &[S],
    x: &[S],
    size: f64,
    equations: &mut Equations<'_, S>,
) {
    let values = values.get(..places.len()).unwrap_or_default();
    let mut entry = 0;
    while let Some(&(i, _)) = places.get(entry) {
        let (mut left, mut sum) = (S::ZERO, 0.0);
        while let Some(&(row, j)) = places.get(entry)
            && row == i
        {
            if let (Some(&value), Some(&x)) = (values.get(entry), x.get(j as usize)) {
                left += value * x;
                sum += value.real().abs();
            }
            entry += 1;
        }
        equations.subtract(i, left, size * sum);
    }
}

/// For rows B and their transpose, upper the one and lower the other: rows_k −= Σ b_kj x_j, top_j −= Σ b'_kj λ_k.
#[inline(always)]
fn subtract_border<S: Scalar>(
    places: &[(u32, u32)],
    [upper, lower]: [&[S]; 2],
    [x, lambda]: [&[S]; 2],
    size: f64,
    top: &mut Equations<'_, S>,
    rows: &mut Equations<'_, S>,
) {
    let n = places.len();
    let (upper, lower) = (upper.get(..n).unwrap_or_default(), lower.get(..n).unwrap_or_default());
    let mut entry = 0;
    while let Some(&(k, _)) = places.get(entry) {
        let multiplier = lambda.get(k as usize).copied().unwrap_or(S::ZERO);
        let magnitude = multiplier.real().abs();
        let (mut left, mut sum) = (S::ZERO, 0.0);
        while let Some(&(row, j)) = places.get(entry)
            && row == k
        {
            if let (Some(&up), Some(&down), Some(&x)) =
                (upper.get(entry), lower.get(entry), x.get(j as usize))
            {
                top.subtract(j, up * multiplier, up.real().abs() * magnitude);
                left += down * x;
                sum += down.real().abs();
            }
            entry += 1;
        }
        rows.subtract(k, left, size * sum);
    }
}

/// The residual of one column and the sizes of what its equations sum. `residual` is the right-hand side at first.
#[inline(never)]
#[allow(clippy::too_many_arguments, reason = "a matrix, a vector and what it should be")]
pub(super) fn sum_sizes<S: Scalar>(
    dims: &Dims,
    pattern: &Pattern<'_>,
    blocks: &Blocks<'_, S>,
    transposed: bool,
    active: Option<&[S]>,
    x: &[S],
    residual: &mut [S],
    sizes: &mut [S],
) -> Result<(), EvalError> {
    let (x, multipliers) = cut("x", x, dims.nq)?;
    let size = largest(x);
    sizes.fill(S::ZERO);
    let (top, rows) = cut_mut("residual", residual, dims.nq)?;
    let (top_sizes, row_sizes) = cut_mut("sizes", sizes, dims.nq)?;
    let top = &mut Equations::new(top, top_sizes);
    if transposed {
        for (&(i, j), &value) in pattern.tangent.iter().zip(blocks.tangent) {
            if let Some(&x) = x.get(i as usize) {
                top.subtract(j, value * x, value.real().abs() * size);
            }
        }
    } else {
        subtract_rows(pattern.tangent, blocks.tangent, x, size, top);
    }
    let parts = [
        (0, pattern.holonomic, blocks.holonomic, blocks.holonomic),
        (holonomic_rows(dims), pattern.nonholonomic, blocks.nonholonomic, blocks.nonholonomic_newton),
    ];
    for (first, places, upper, lower) in parts {
        if places.is_empty() {
            continue;
        }
        let values = if transposed { [lower, upper] } else { [upper, lower] };
        let (_, lambda) = cut("x", multipliers, first)?;
        let (_, rows) = cut_mut("residual", rows, first)?;
        let (_, row_sizes) = cut_mut("sizes", row_sizes, first)?;
        subtract_border(places, values, [x, lambda], size, top, &mut Equations::new(rows, row_sizes));
    }
    for (k, active) in active.into_iter().flatten().enumerate() {
        let row = (rows.get_mut(k), row_sizes.get_mut(k), multipliers.get(k));
        if let ((Some(r), Some(to), Some(&x)), true) = (row, *active == S::ZERO) {
            *r += x;
            *to += S::from_f64(x.real().abs());
        }
    }
    Ok(())
}

/// Residuals and the sizes of what they sum, under way. At first the residual is the right-hand side.
pub(super) struct Residual<'s, S> {
    pub(super) columns: usize,
    pub(super) x: &'s [S],
    pub(super) largest: &'s mut [S],
    pub(super) residual: &'s mut [S],
    pub(super) sizes: &'s mut [S],
}

impl<S: Scalar> Residual<'_, S> {
    /// Whether it is at rounding.
    pub(super) fn is_small(
        &mut self,
        dims: &Dims,
        pattern: &Pattern<'_>,
        blocks: &Blocks<'_, S>,
        lower: &Lowers<'_, S>,
        transposed: bool,
        active: Option<&[S]>,
    ) -> Result<bool, EvalError> {
        let (top, multipliers) = cut("x", self.x, dims.nq * self.columns)?;
        let (largest_top, rest) = cut_mut("largest", self.largest, dims.nq)?;
        largest_top.fill(S::from_f64(largest(top)));
        largest_of_rows(self.columns, multipliers, rest);
        self.sizes.fill(S::ZERO);
        self.subtract(dims, pattern, blocks, lower, transposed);
        self.subtract_diagonal(dims, lower.compliance, active);
        let limit = ROUNDING * S::EPSILON;
        let rows = self.residual.chunks_exact(self.columns.max(1)).zip(self.sizes.iter());
        Ok(rows.fold(true, |small, (row, size)| {
            let limit = limit * size.real();
            row.iter().fold(small, |small, r| small & (r.real().abs() <= limit))
        }))
    }

    /// residual_i −= value x_j
    #[inline(always)]
    fn entry(&mut self, i: usize, j: usize, value: S) {
        if let (Some(r), Some(x)) = (row_mut(self.residual, i, self.columns), row(self.x, j, self.columns)) {
            for (r, &x) in r.iter_mut().zip(x) {
                *r -= value * x;
            }
        }
        if let (Some(size), Some(largest)) = (self.sizes.get_mut(i), self.largest.get(j)) {
            *size += S::from_f64(value.real().abs() * largest.real());
        }
    }

    #[inline(always)]
    fn subtract(
        &mut self,
        dims: &Dims,
        pattern: &Pattern<'_>,
        blocks: &Blocks<'_, S>,
        lower: &Lowers<'_, S>,
        transposed: bool,
    ) {
        for (&(i, j), &value) in pattern.tangent.iter().zip(blocks.tangent) {
            let (i, j) = if transposed { (j, i) } else { (i, j) };
            self.entry(i as usize, j as usize, value);
        }
        let nonholonomic = dims.nq + holonomic_rows(dims);
        let parts = [
            (dims.nq, pattern.holonomic, blocks.holonomic, lower.holonomic),
            (nonholonomic, pattern.nonholonomic, blocks.nonholonomic, lower.nonholonomic),
        ];
        for (first, places, upper, lower) in parts {
            for (&(k, j), (&upper, &lower)) in places.iter().zip(upper.iter().zip(lower)) {
                let (k, j) = (first + k as usize, j as usize);
                let (upper, lower) = if transposed { (lower, upper) } else { (upper, lower) };
                self.entry(j, k, upper);
                self.entry(k, j, lower);
            }
        }
    }

    /// e, and the rows that are not active.
    #[inline(always)]
    fn subtract_diagonal(&mut self, dims: &Dims, compliance: Option<S>, active: Option<&[S]>) {
        if compliance.is_none() && active.is_none() {
            return;
        }
        for k in 0..dims.rows() {
            let on = active.and_then(|active| active.get(k)).is_none_or(|active| *active != S::ZERO);
            let e = if on { compliance.unwrap_or(S::ZERO) } else { S::ONE };
            if e != S::ZERO {
                self.entry(dims.nq + k, dims.nq + k, -e);
            }
        }
    }
}

/// sizes_i = sizes_i + factor Σ |b_ij| (largest |x|)
pub(crate) fn add_sizes<S: Scalar>(
    places: &[(u32, u32)],
    values: &[S],
    x: &[S],
    factor: f64,
    sizes: &mut [S],
) {
    add_sizes_of(places, values, factor * largest(x), sizes);
}

/// sizes_i = sizes_i + factor Σ |b_ij|, for places in the order of rows.
#[inline(never)]
pub(crate) fn add_sizes_of<S: Scalar>(places: &[(u32, u32)], values: &[S], factor: f64, sizes: &mut [S]) {
    let (mut row, mut sum) = (u32::MAX, 0.0);
    let mut add = |row: u32, sum: f64| {
        if let Some(size) = sizes.get_mut(row as usize) {
            *size += S::from_f64(factor * sum);
        }
    };
    for (&(i, _), value) in places.iter().zip(values) {
        if i != row {
            add(row, sum);
            (row, sum) = (i, 0.0);
        }
        sum += value.real().abs();
    }
    add(row, sum);
}
