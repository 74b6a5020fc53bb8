//! Loops over constant tables: what generated code calls where flat code of all pairs of joints would be too long.
//!
//! Matrices are column-major. A table that points outside of its memory, which generated code does not have, ends the loop early; nothing
//! here panics. The generator's interpreter does the same operations in the same order, so that both give the same bits.

use crate::batch::Lanes;
use crate::math;
use crate::scalar::Scalar;
use core::ops::{Add, Mul, Neg};

/// A scalar, or one of each sample of a batch.
pub trait Entry: Copy + Add<Output = Self> + Mul<Output = Self> + Neg<Output = Self> {
    /// Zero.
    const ZERO: Self;

    /// a b + c, fused where the target has the instruction.
    fn mul_add(a: Self, b: Self, c: Self) -> Self;
}

impl<S: Scalar> Entry for S {
    const ZERO: S = <S as Scalar>::ZERO;

    #[inline(always)]
    fn mul_add(a: S, b: S, c: S) -> S {
        math::mul_add(a, b, c)
    }
}

impl<S: Scalar, const N: usize> Entry for Lanes<S, N> {
    const ZERO: Self = Lanes::ZERO;

    #[inline(always)]
    fn mul_add(a: Self, b: Self, c: Self) -> Self {
        crate::batch::mul_add(a, b, c)
    }
}

/// a b + c, fused where that is wanted and the target has the instruction.
#[inline(always)]
fn mul_add<const FUSED: bool, E: Entry>(a: E, b: E, c: E) -> E {
    if FUSED { E::mul_add(a, b, c) } else { a * b + c }
}

/// For each [row, from, len, at] of the table and all i < len:
/// to[at + i] += Σ_k left[row·width + k] right[k·stride + from + i], k < width. Behind `right` there are [`BLOCK`] zeros.
#[inline]
pub fn products<const FUSED: bool, E: Entry>(
    table: &[[u32; 4]],
    left: &[E],
    right: &[E],
    width: usize,
    stride: usize,
    to: &mut [E],
) {
    for run in table {
        let [row, from, len, at] = run.map(|x| x as usize);
        let Some(factors) = left.get(row * width..(row + 1) * width) else { return };
        let (Some(right), Some(to)) = (right.get(from..), to.get_mut(at..at + len)) else { return };
        combine::<FUSED, _>(factors, right, stride, to);
    }
}

/// to = −a b for matrices of `rows` rows. Of column j of b only the rows `table[starts[j]..starts[j + 1]]` count.
#[inline]
pub fn minus_product<const FUSED: bool, E: Entry>(
    starts: &[u32],
    table: &[u32],
    a: &[E],
    b: &[E],
    rows: usize,
    to: &mut [E],
) {
    let columns = starts.iter().zip(starts.iter().skip(1));
    let columns = columns.zip(b.chunks_exact(rows.max(1))).zip(to.chunks_exact_mut(rows.max(1)));
    for (((&from, &end), b), to) in columns {
        let Some(table) = table.get(from as usize..end as usize) else { return };
        let mut start = 0;
        while start < rows {
            start = match (rows, rows - start) {
                (32.., 25..) => minus_product_block::<FUSED, E, 32>(table, a, b, start, to),
                (16.., 9..) => minus_product_block::<FUSED, E, 16>(table, a, b, start, to),
                (8.., 5..) => minus_product_block::<FUSED, E, 8>(table, a, b, start, to),
                (4.., 2..) => minus_product_block::<FUSED, E, 4>(table, a, b, start, to),
                _ => minus_product_block::<FUSED, E, 1>(table, a, b, start, to),
            };
        }
    }
}

/// B rows from `start` on, the last B where there are fewer: the row after them. There are B rows at least.
#[inline(always)]
fn minus_product_block<const FUSED: bool, E: Entry, const B: usize>(
    table: &[u32],
    a: &[E],
    b: &[E],
    start: usize,
    to: &mut [E],
) -> usize {
    let rows = b.len();
    let start = start.min(rows.saturating_sub(B));
    let end = start + B;
    let mut sum = [E::ZERO; B];
    for &k in table {
        let k = k as usize;
        let column = a.get(k * rows + start..).and_then(|column| column.first_chunk::<B>());
        let (Some(column), Some(&factor)) = (column, b.get(k)) else { return end };
        for (sum, &entry) in sum.iter_mut().zip(column) {
            *sum = mul_add::<FUSED, _>(-factor, entry, *sum);
        }
    }
    if let Some(to) = to.get_mut(start..).and_then(|to| to.first_chunk_mut::<B>()) {
        *to = sum;
    }
    end
}

/// How many values are summed at once. Arrays that are read so have as many zeros behind them, since the last block may reach out.
pub const BLOCK: usize = 8;

/// to_i += Σ_k factors_k columns[k·stride + i]. Every block is a full one, so that short and long runs take the same way.
#[inline(always)]
fn combine<const FUSED: bool, E: Entry>(factors: &[E], columns: &[E], stride: usize, to: &mut [E]) {
    let (blocks, rest) = to.as_chunks_mut::<BLOCK>();
    let mut start = 0;
    for block in blocks {
        let sums = sums::<FUSED, _>(factors, columns, stride, start);
        block.iter_mut().zip(sums).for_each(|(to, sum)| *to = *to + sum);
        start += BLOCK;
    }
    if !rest.is_empty() {
        let sums = sums::<FUSED, _>(factors, columns, stride, start);
        rest.iter_mut().zip(sums).for_each(|(to, sum)| *to = *to + sum);
    }
}

#[inline(always)]
fn sums<const FUSED: bool, E: Entry>(
    factors: &[E],
    columns: &[E],
    stride: usize,
    start: usize,
) -> [E; BLOCK] {
    let mut sums = [E::ZERO; BLOCK];
    let mut place = start;
    for &factor in factors {
        let Some(column) = columns.get(place..).and_then(|c| c.first_chunk::<BLOCK>()) else { break };
        for (sum, &entry) in sums.iter_mut().zip(column) {
            *sum = mul_add::<FUSED, _>(factor, entry, *sum);
        }
        place += stride;
    }
    sums
}

/// How many columns of the inverse are finished at once.
const COLUMNS: usize = 8;

/// Length of the scratch of [`inverse`] for n velocities.
pub const fn inverse_scratch(n: usize) -> usize {
    6 * n + BLOCK + 6 * COLUMNS * n
}

/// X = M⁻¹ of a tree, from what articulated bodies leave behind: per velocity its column S, U = M^A S and 1/D with D = Sᵀ U, all about one
/// point and in one set of axes. `tree` has for each velocity [1 + the one before it on the way to ground or 0, end of those it moves].
///
/// Column j of X is the accelerations under a unit force along j. Inward, for i that moves j:
/// X_ij = −Sᵢᵀ F_j/Dᵢ (1/D_j for j itself), F_j += Uᵢ X_ij; outward X_ij −= Uᵢᵀ a/Dᵢ with a of the velocity before, aᵢ = a + Sᵢ X_ij.
/// `scratch` and `x` must be zero before.
#[inline]
pub fn inverse<const FUSED: bool, E: Entry>(
    tree: &[[u32; 2]],
    s: &[E],
    u: &[E],
    d: &[E],
    scratch: &mut [E],
    x: &mut [E],
) {
    let n = tree.len();
    let Some((f, a)) = scratch.split_at_mut_checked(6 * n + BLOCK) else { return };
    inward::<FUSED, _>(tree, s, u, d, f, x);
    let (a, _) = a.as_chunks_mut::<COLUMNS>();
    let mut first = 0;
    while first < n {
        if outward::<FUSED, _>(tree, s, u, d, first, a, x).is_none() {
            return;
        }
        first += COLUMNS;
    }
    // the upper triangle by symmetry
    for j in 1..n {
        let Some((before, column)) = x.split_at_mut_checked(j * n) else { return };
        for (to, from) in column.iter_mut().take(j).zip(before.iter().skip(j).step_by(n.max(1))) {
            *to = *from;
        }
    }
}

/// Of column i of X the rows that i moves.
#[inline(always)]
fn inward<const FUSED: bool, E: Entry>(
    tree: &[[u32; 2]],
    s: &[E],
    u: &[E],
    d: &[E],
    f: &mut [E],
    x: &mut [E],
) {
    let n = tree.len();
    let columns = tree.iter().zip(s.as_chunks::<6>().0).zip(u.as_chunks::<6>().0).zip(d).enumerate();
    for (i, (((&[_, end], s), u), &d)) in columns.rev() {
        let Some(x) = x.get_mut(i * n + i..i * n + end as usize) else { return };
        let minus = s.map(|s| -(d * s));
        let Some((own, moved)) = x.split_first_mut() else { return };
        *own = d;
        let Some(behind) = f.get(i + 1..) else { return };
        combine::<FUSED, _>(&minus, behind, n, moved);
        for (k, &u) in u.iter().enumerate() {
            let Some(row) = f.get_mut(k * n + i..k * n + end as usize) else { return };
            for (f, &x) in row.iter_mut().zip(x.iter()) {
                *f = mul_add::<FUSED, _>(u, x, *f);
            }
        }
    }
}

/// Finishes the rows `first` and the next ones of the columns that are not behind them.
#[inline(always)]
fn outward<const FUSED: bool, E: Entry>(
    tree: &[[u32; 2]],
    s: &[E],
    u: &[E],
    d: &[E],
    first: usize,
    a: &mut [[E; COLUMNS]],
    x: &mut [E],
) -> Option<()> {
    let n = tree.len();
    let len = COLUMNS.min(n - first);
    let columns = tree.iter().zip(s.as_chunks::<6>().0).zip(u.as_chunks::<6>().0).zip(d).enumerate();
    for (i, (((&[before, _], s), u), &d)) in columns.take(first + len) {
        let (done, here) = a.split_at_mut_checked(6 * i)?;
        let here = here.first_chunk_mut::<6>()?;
        let carried = match before.checked_sub(1) {
            Some(parent) => *done.get(6 * parent as usize..)?.first_chunk::<6>()?,
            None => [[E::ZERO; COLUMNS]; 6],
        };
        let rows = x.get_mut(i * n + first..i * n + first + len)?;
        let mut value = [E::ZERO; COLUMNS];
        value.iter_mut().zip(rows.iter()).for_each(|(value, &x)| *value = x);
        // two sums, which do not wait for each other
        let mut along = [[E::ZERO; COLUMNS]; 2];
        for ((u, a), k) in u.iter().zip(&carried).zip(0..) {
            for (along, &a) in along[usize::from(k >= 3)].iter_mut().zip(a) {
                *along = mul_add::<FUSED, _>(*u, a, *along);
            }
        }
        let [linear, angular] = along;
        for ((value, linear), angular) in value.iter_mut().zip(linear).zip(angular) {
            *value = mul_add::<FUSED, _>(-d, angular, mul_add::<FUSED, _>(-d, linear, *value));
        }
        for ((here, carried), &s) in here.iter_mut().zip(carried).zip(s) {
            for ((here, carried), &value) in here.iter_mut().zip(carried).zip(&value) {
                *here = mul_add::<FUSED, _>(s, value, carried);
            }
        }
        rows.iter_mut().zip(value).for_each(|(to, value)| *to = value);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that no memory here has, and the largest ones.
    const OUTSIDE: [u32; 3] = [7, 1000, u32::MAX];

    #[test]
    fn products_end_at_a_run_out_of_range() {
        // Two rows of two factors; two columns of three numbers and the zeros behind them.
        let left = [1.0, 2.0, 3.0, 4.0];
        let mut right = [0.0; 6 + BLOCK];
        right[..6].copy_from_slice(&[1.0, 2.0, 3.0, 10.0, 20.0, 30.0]);
        let good = [1, 0, 3, 0];
        // 3 · (1, 2, 3) + 4 · (10, 20, 30)
        let expected = [43.0, 86.0, 129.0, 0.0];
        for number in OUTSIDE {
            for place in 0..4 {
                let mut bad = good;
                bad[place] = number;
                // A run that begins within the zeros is one of zeros.
                if place == 1 && number == 7 {
                    continue;
                }
                let mut to = [0.0; 4];
                products::<true, _>(&[good, bad, good], &left, &right, 2, 3, &mut to);
                assert_eq!(
                    to, expected,
                    "{bad:?}: what stands before it is done, what stands behind it is not"
                );
            }
        }
        // A stride beyond the columns leaves the first of them.
        let mut to = [0.0; 4];
        products::<true, _>(&[good], &left, &right, 2, 1000, &mut to);
        assert_eq!(to, [3.0, 6.0, 9.0, 0.0]);
    }

    #[test]
    fn minus_product_leaves_what_a_table_out_of_range_means() {
        let (a, b) = ([1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]);
        let untouched = [9.0; 4];
        let run = |starts: &[u32], table: &[u32], rows: usize| {
            let mut to = untouched;
            minus_product::<true, _>(starts, table, &a, &b, rows, &mut to);
            to
        };
        // [[1, 3], [2, 4]] [[5, 7], [6, 8]]
        assert_eq!(run(&[0, 2, 4], &[0, 1, 0, 1], 2), [-23.0, -34.0, -31.0, -46.0]);
        for number in OUTSIDE {
            // The second column reads a row that is not there, or its rows end beyond the table, or begin there.
            assert_eq!(run(&[0, 2, 4], &[0, 1, 0, number], 2), [-23.0, -34.0, 9.0, 9.0]);
            assert_eq!(run(&[0, 2, number], &[0, 1, 0, 1], 2), [-23.0, -34.0, 9.0, 9.0]);
            assert_eq!(run(&[number, 2, 4], &[0, 1, 0, 1], 2), untouched);
            assert_eq!(
                run(&[0, 2, 4], &[0, 1, 0, 1], number as usize),
                untouched,
                "no column has so many rows"
            );
        }
        assert_eq!(run(&[0, 2, 4], &[0, 1, 0, 1], 0), untouched);
    }

    #[test]
    fn inverse_survives_any_tree_and_any_memory() {
        // Two slides along the same direction with masses 2 and 1: M = [[3, 1], [1, 1]].
        let s = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        // The outer one carries 1; with it free the inner one feels 2.
        let u = [2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        let d = [0.5, 1.0];
        let good = [[0, 2], [1, 2]];
        let run = |tree: &[[u32; 2]], s: &[f64], u: &[f64], d: &[f64], scratch: usize, len: usize| {
            let (mut room, mut x) = ([0.0; inverse_scratch(2)], [0.0; 4]);
            inverse::<true, _>(tree, s, u, d, &mut room[..scratch], &mut x[..len]);
            x
        };
        let room = inverse_scratch(2);
        assert_eq!(run(&good, &s, &u, &d, room, 4), [0.5, -0.5, -0.5, 1.5]);
        for number in OUTSIDE {
            for i in 0..2 {
                for k in 0..2 {
                    let mut bad = good;
                    bad[i][k] = number;
                    let x = run(&bad, &s, &u, &d, room, 4);
                    assert_ne!(x, [0.5, -0.5, -0.5, 1.5], "{bad:?}");
                }
            }
        }
        // Shorter memory of any kind.
        for cut in 1..=4 {
            run(&good, &s[cut..], &u, &d, room, 4);
            run(&good, &s, &u[cut..], &d, room, 4);
            run(&good, &s, &u, &d[cut.min(2)..], room, 4);
            run(&good, &s, &u, &d, room, 4 - cut);
        }
        for scratch in 0..room {
            run(&good, &s, &u, &d, scratch, 4);
        }
    }
}
