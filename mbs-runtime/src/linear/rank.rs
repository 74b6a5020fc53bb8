//! Rank of a matrix by elimination with complete pivoting.
//!
//! Input: m × n, row by row (each row n values). Rows are scaled to largest entry one first, so that the tolerance compares
//! rows of any unit. Output: the number of independent rows.

use core::ops::Range;

use crate::error::EvalError;
use crate::pieces::cut_mut;
use crate::scalar::Scalar;

/// What elimination found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rank {
    /// Number of independent rows.
    pub rank: usize,
    /// A column that no pivot was found in, the first; none if every column has one.
    pub free_column: Option<usize>,
    /// A row that depends on others, the first; none if all are independent.
    pub dependent_row: Option<usize>,
}

/// Rank by pivots above `tolerance`, relative to scaled rows. Destroys `a`. `used`: m + n values, at least.
pub fn rank<S: Scalar>(n: usize, a: &mut [S], used: &mut [S], tolerance: f64) -> Result<Rank, EvalError> {
    let m = a.len().checked_div(n).unwrap_or(0);
    let (used_rows, used_columns) = cut_mut("used", used, m)?;
    let (used_columns, _) = cut_mut("used", used_columns, n)?;
    used_rows.fill(S::ZERO);
    used_columns.fill(S::ZERO);
    for row in a.chunks_exact_mut(n.max(1)) {
        let size = super::largest(row);
        if size > 0.0 {
            let scale = S::from_f64(1.0 / size);
            for entry in row {
                *entry *= scale;
            }
        }
    }
    let mut rank = 0;
    while let Some((i, j)) = pivot(n, a, used_rows, used_columns, 0..m, tolerance) {
        rank += 1;
        for (used, index) in [(&mut *used_rows, i), (&mut *used_columns, j)] {
            if let Some(used) = used.get_mut(index) {
                *used = S::ONE;
            }
        }
        eliminate(n, a, used_rows, i, j);
    }
    let first = |used: &[S]| used.iter().position(|used| *used == S::ZERO);
    Ok(Rank { rank, free_column: first(used_columns), dependent_row: first(used_rows) })
}

/// The largest entry of unused rows of a range and unused columns, if it is above the tolerance.
pub(crate) fn pivot<S: Scalar>(
    n: usize,
    a: &[S],
    used_rows: &[S],
    used_columns: &[S],
    range: Range<usize>,
    tolerance: f64,
) -> Option<(usize, usize)> {
    let mut found = None;
    let mut size = tolerance;
    for (i, (row, used)) in a.chunks_exact(n.max(1)).zip(used_rows).enumerate() {
        for (j, (entry, used_column)) in row.iter().zip(used_columns).enumerate() {
            let magnitude = entry.real().abs();
            if range.contains(&i) && *used == S::ZERO && *used_column == S::ZERO && magnitude > size {
                (found, size) = (Some((i, j)), magnitude);
            }
        }
    }
    found
}

/// Subtracts row `i` from the unused rows so that their column `j` vanishes.
pub(crate) fn eliminate<S: Scalar>(n: usize, a: &mut [S], used_rows: &[S], i: usize, j: usize) {
    for (other, used) in used_rows.iter().enumerate() {
        let (low, high) = (i.min(other), i.max(other));
        if *used != S::ZERO || low == high {
            continue;
        }
        let Some((before, after)) = a.split_at_mut_checked(high * n) else { continue };
        let (Some(low_row), Some(high_row)) = (before.get_mut(low * n..), after.get_mut(..n)) else {
            continue;
        };
        let (source, target) = if other > i { (&*low_row, high_row) } else { (&*high_row, low_row) };
        if let (Some(&pivot), Some(&entry)) = (source.get(j), target.get(j)) {
            let factor = entry / pivot;
            for (target, &source) in target.iter_mut().zip(source.iter().take(n)) {
                *target -= factor * source;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_dependent_rows_and_free_columns() {
        let mut a = [1.0, 2.0, 0.0, 2e6, 4e6, 0.0, 1e-6, 0.0, 0.0];
        let found = rank(3, &mut a, &mut [0.0; 6], 1e-9).unwrap();
        assert_eq!(found.rank, 2);
        assert_eq!(found.free_column, Some(2));
        assert!(matches!(found.dependent_row, Some(0 | 1)), "{found:?}");

        let mut a = [0.0, 3.0, 1.0, 1.0];
        let found = rank(2, &mut a, &mut [0.0; 4], 1e-9).unwrap();
        assert_eq!(found, Rank { rank: 2, free_column: None, dependent_row: None });
        let found = rank::<f64>(2, &mut [], &mut [0.0; 2], 1e-9);
        assert_eq!(found, Ok(Rank { rank: 0, free_column: Some(0), dependent_row: None }));
    }
}
