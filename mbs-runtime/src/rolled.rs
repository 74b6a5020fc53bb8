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

    /// One.
    const ONE: Self;

    /// A block of ones, then one of zeros.
    const ONES_THEN_ZEROS: [Self; 2 * BLOCK];

    /// Whether one of them is a vector already: there is nothing to gain by handling many at once.
    const WIDE: bool;

    /// a b + c, fused where the target has the instruction.
    fn mul_add(a: Self, b: Self, c: Self) -> Self;
}

const fn ones_then_zeros<E: Copy>(one: E, zero: E) -> [E; 2 * BLOCK] {
    let mut all = [zero; 2 * BLOCK];
    let mut i = 0;
    while i < BLOCK {
        all[i] = one;
        i += 1;
    }
    all
}

impl<S: Scalar> Entry for S {
    const ZERO: S = <S as Scalar>::ZERO;
    const ONE: S = <S as Scalar>::ONE;
    const ONES_THEN_ZEROS: [S; 2 * BLOCK] = ones_then_zeros(<S as Scalar>::ONE, <S as Scalar>::ZERO);
    const WIDE: bool = false;

    #[inline(always)]
    fn mul_add(a: S, b: S, c: S) -> S {
        math::mul_add(a, b, c)
    }
}

impl<S: Scalar, const N: usize> Entry for Lanes<S, N> {
    const ZERO: Self = Lanes::ZERO;
    const ONE: Self = Lanes([S::ONE; N]);
    const ONES_THEN_ZEROS: [Self; 2 * BLOCK] = ones_then_zeros(<Self as Entry>::ONE, <Self as Entry>::ZERO);
    const WIDE: bool = true;

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
/// to[at + i] += Σ_k left[k·stride + row] right[k·stride + from + i], k < width, which is one of [`WIDTHS`]. Behind `right` there are
/// [`BLOCK`] zeros.
#[inline]
pub fn products<const FUSED: bool, E: Entry>(
    table: &[[u32; 4]],
    left: &[E],
    right: &[E],
    width: usize,
    stride: usize,
    to: &mut [E],
) {
    // Numbers of factors are constants in the loop.
    let [short, middle, long] = WIDTHS;
    let _ = match width {
        _ if width == short => add_runs::<FUSED, E, { WIDTHS[0] }>(table, left, right, stride, to),
        _ if width == middle => add_runs::<FUSED, E, { WIDTHS[1] }>(table, left, right, stride, to),
        _ if width == long => add_runs::<FUSED, E, { WIDTHS[2] }>(table, left, right, stride, to),
        _ => None,
    };
}

/// How many factors an entry may have.
pub const WIDTHS: [usize; 3] = [6, 9, 15];

#[inline(always)]
fn add_runs<const FUSED: bool, E: Entry, const W: usize>(
    table: &[[u32; 4]],
    left: &[E],
    right: &[E],
    stride: usize,
    to: &mut [E],
) -> Option<()> {
    for run in table {
        let [row, from, len, at] = run.map(|x| x as usize);
        let mut factors = [E::ZERO; W];
        for (k, factor) in factors.iter_mut().enumerate() {
            *factor = *left.get(k * stride + row)?;
        }
        let (right, to) = (right.get(from..)?, to.get_mut(at..)?);
        if len > to.len() {
            return None;
        }
        let mut start = 0;
        while start < len {
            let left = len - start;
            // Blocks of scalars are full ones, so that short and long runs take the same way; vectors come in fours, then one by one.
            start += if !E::WIDE {
                add_block::<FUSED, E, W, BLOCK>(&factors, right, stride, start, to, left)?
            } else if left >= 4 {
                add_block::<FUSED, E, W, 4>(&factors, right, stride, start, to, left)?
            } else {
                add_block::<FUSED, E, W, 1>(&factors, right, stride, start, to, left)?
            };
        }
    }
    Some(())
}

/// to[start + i] += Σ_k factors_k columns[k·stride + start + i] for i below B and `left`: returns B.
#[inline(always)]
fn add_block<const FUSED: bool, E: Entry, const W: usize, const B: usize>(
    factors: &[E; W],
    columns: &[E],
    stride: usize,
    start: usize,
    to: &mut [E],
    left: usize,
) -> Option<usize> {
    let mut sums = [E::ZERO; B];
    for (k, &factor) in factors.iter().enumerate() {
        let column = columns.get(k * stride + start..)?.first_chunk::<B>()?;
        for (sum, &entry) in sums.iter_mut().zip(column) {
            *sum = mul_add::<FUSED, _>(factor, entry, *sum);
        }
    }
    let to = to.get_mut(start..)?;
    match to.first_chunk_mut::<B>() {
        Some(block) if left >= B => block.iter_mut().zip(sums).for_each(|(to, sum)| *to = *to + sum),
        Some(block) => {
            // to + 1 · sum, to + 0 · sum
            let masks = E::ONES_THEN_ZEROS;
            let mask = masks.get(BLOCK - left..)?.first_chunk::<B>()?;
            for ((to, sum), &mask) in block.iter_mut().zip(sums).zip(mask) {
                *to = mul_add::<FUSED, _>(mask, sum, *to);
            }
        }
        None => to.iter_mut().zip(sums).take(left).for_each(|(to, sum)| *to = *to + sum),
    }
    Some(B)
}

/// to_row += Σ a_j b_k over the terms [j, k] from `from` to `middle`, less those from there to `end`, for each [row, from, middle, end]. Rows
/// of all three have `blocks` times [`BLOCK`] numbers.
#[inline]
pub fn bilinear<const FUSED: bool, E: Entry>(
    rows: &[[u32; 4]],
    terms: &[[u32; 2]],
    a: &[E],
    b: &[E],
    blocks: usize,
    to: &mut [E],
) {
    let ((a, _), (b, _), (to, _)) = (a.as_chunks(), b.as_chunks(), to.as_chunks_mut());
    let mut start = 0;
    while start < blocks {
        let done = match blocks - start {
            1 => sum_terms::<FUSED, E, 1>(rows, terms, a, b, blocks, start, to),
            _ if E::WIDE => sum_terms::<FUSED, E, 1>(rows, terms, a, b, blocks, start, to),
            2 => sum_terms::<FUSED, E, 2>(rows, terms, a, b, blocks, start, to),
            3 | 5 => sum_terms::<FUSED, E, 3>(rows, terms, a, b, blocks, start, to),
            _ => sum_terms::<FUSED, E, 4>(rows, terms, a, b, blocks, start, to),
        };
        let Some(next) = done else { return };
        start = next;
    }
}

/// P blocks of each row from `start` on: the block after them.
#[inline(always)]
fn sum_terms<const FUSED: bool, E: Entry, const P: usize>(
    rows: &[[u32; 4]],
    terms: &[[u32; 2]],
    a: &[[E; BLOCK]],
    b: &[[E; BLOCK]],
    blocks: usize,
    start: usize,
    to: &mut [[E; BLOCK]],
) -> Option<usize> {
    let (a, b, to) = (a.get(start..)?, b.get(start..)?, to.get_mut(start..)?);
    for row in rows {
        let [row, from, middle, end] = row.map(|x| x as usize);
        let to = to.get_mut(row * blocks..)?.first_chunk_mut::<P>()?;
        let mut sum = *to;
        for &[j, k] in terms.get(from..middle)? {
            let a = a.get(j as usize * blocks..)?.first_chunk::<P>()?;
            let b = b.get(k as usize * blocks..)?.first_chunk::<P>()?;
            for ((sum, a), b) in sum.iter_mut().zip(a).zip(b) {
                sum.iter_mut().zip(a).zip(b).for_each(|((s, &a), &b)| *s = mul_add::<FUSED, _>(a, b, *s));
            }
        }
        for &[j, k] in terms.get(middle..end)? {
            let a = a.get(j as usize * blocks..)?.first_chunk::<P>()?;
            let b = b.get(k as usize * blocks..)?.first_chunk::<P>()?;
            for ((sum, a), b) in sum.iter_mut().zip(a).zip(b) {
                sum.iter_mut().zip(a).zip(b).for_each(|((s, &a), &b)| *s = mul_add::<FUSED, _>(-a, b, *s));
            }
        }
        *to = sum;
    }
    Some(start + P)
}

/// to = −a b for matrices of `rows` rows. A group [first, count, from, end] has `count` columns of b from `first` on; of these only the
/// rows `table[from..end]` count.
#[inline]
pub fn minus_product<const FUSED: bool, E: Entry>(
    groups: &[[u32; 4]],
    table: &[u32],
    a: &[E],
    b: &[E],
    rows: usize,
    to: &mut [E],
) {
    multiply::<FUSED, false, E>(groups, table, a, b, rows, to);
}

/// The same with b by rows if it is TRANSPOSED.
#[inline(always)]
fn multiply<const FUSED: bool, const TRANSPOSED: bool, E: Entry>(
    groups: &[[u32; 4]],
    table: &[u32],
    a: &[E],
    b: &[E],
    rows: usize,
    to: &mut [E],
) {
    for group in groups {
        let [first, count, from, end] = group.map(|x| x as usize);
        let Some(table) = table.get(from..end) else { return };
        let product = Product::<FUSED, TRANSPOSED, E> { table, a, b, rows };
        let range = first.saturating_mul(rows)..first.saturating_add(count).saturating_mul(rows);
        let Some(to) = to.get_mut(range) else { return };
        let (mut done, mut rest) = (first, to);
        // Columns side by side share what is read of a. Of separate products and sums LLVM makes gathers then, which take five times as long.
        while !rest.is_empty() {
            let columns = if E::WIDE || !FUSED { 1 } else { (rest.len() / rows).min(4) };
            let Some((here, after)) = rest.split_at_mut_checked(columns * rows) else { return };
            let fits = match columns {
                4 => product.columns::<4>(done, here),
                3 => product.columns::<3>(done, here),
                2 => product.columns::<2>(done, here),
                _ => product.columns::<1>(done, here),
            };
            if fits.is_none() {
                return;
            }
            (done, rest) = (done + columns, after);
        }
    }
}

/// How many rows of a product are summed at once: with four columns they fill three quarters of the registers.
const ROWS: usize = if cfg!(target_feature = "avx512f") { 24 } else { 8 };

struct Product<'a, const FUSED: bool, const TRANSPOSED: bool, E> {
    table: &'a [u32],
    a: &'a [E],
    b: &'a [E],
    rows: usize,
}

impl<const FUSED: bool, const TRANSPOSED: bool, E: Entry> Product<'_, FUSED, TRANSPOSED, E> {
    /// C columns from `first` on, rows by blocks. The last block ends with the last row: it may repeat some rows of the one before.
    #[inline(always)]
    fn columns<const C: usize>(&self, first: usize, to: &mut [E]) -> Option<()> {
        let rows = self.rows;
        let mut start = 0;
        while start < rows {
            let left = rows - start;
            start = match (rows, left) {
                (ROWS.., _) if !E::WIDE && left > 16 => self.block::<C, ROWS>(first, start, to)?,
                (16.., 9..) if !E::WIDE && ROWS > 16 => self.block::<C, 16>(first, start, to)?,
                (8.., 5..) => self.block::<C, 8>(first, start, to)?,
                (4.., 2..) => self.block::<C, 4>(first, start, to)?,
                _ => self.block::<C, 1>(first, start, to)?,
            };
        }
        Some(())
    }

    /// B rows from `start` on, the last B where there are fewer, of C columns: the row after them. There are B rows at least.
    #[inline(always)]
    fn block<const C: usize, const B: usize>(
        &self,
        first: usize,
        start: usize,
        to: &mut [E],
    ) -> Option<usize> {
        let rows = self.rows;
        let start = start.min(rows.saturating_sub(B));
        let mut sums = [[E::ZERO; B]; C];
        let mut columns: [&[E]; C] = [&[]; C];
        if !TRANSPOSED {
            for (c, column) in columns.iter_mut().enumerate() {
                *column = self.b.get((first + c) * rows..)?.get(..rows)?;
            }
        }
        for &k in self.table {
            let k = k as usize;
            let entries = self.a.get(k * rows + start..)?.first_chunk::<B>()?;
            let mut factors = [E::ZERO; C];
            if TRANSPOSED {
                factors = *self.b.get(k * rows + first..)?.first_chunk::<C>()?;
            } else {
                for (factor, column) in factors.iter_mut().zip(&columns) {
                    *factor = *column.get(k)?;
                }
            }
            for (sum, factor) in sums.iter_mut().zip(factors) {
                for (sum, &entry) in sum.iter_mut().zip(entries) {
                    *sum = mul_add::<FUSED, _>(factor, entry, *sum);
                }
            }
        }
        // 0 − Σ has the bits of Σ of negative terms
        for (sum, to) in sums.into_iter().zip(to.chunks_exact_mut(rows)) {
            *to.get_mut(start..)?.first_chunk_mut::<B>()? = sum.map(|sum| E::ZERO + -sum);
        }
        Some(start + B)
    }
}

/// How many values are summed at once. Arrays that are read so have as many zeros behind them, since the last block may reach out.
pub const BLOCK: usize = 8;

/// Length of the scratch of [`inverse`] for n velocities: F, W D⁻¹ by columns, −Wᵀ by rows.
pub const fn inverse_scratch(n: usize) -> usize {
    6 * n + BLOCK + 2 * (n * n + BLOCK)
}

/// X = M⁻¹ of a tree, from what articulated bodies leave behind: per velocity its column S, U = M^A S and 1/D with D = Sᵀ U, all about one
/// point and in one set of axes. `tree` has for each velocity the end of those it moves, itself the first; `groups` and `table` are those of
/// [`minus_product`] for a matrix with entries where the row moves the column.
///
/// With M = Lᵀ D L and W = L⁻¹, which has entries W_ji where i moves j: X = W D⁻¹ Wᵀ. Column j of D⁻¹ Wᵀ is the accelerations under a unit
/// force along j of velocities that feel no other joint. Inward, for i that moves j: −W_ji = Sᵢᵀ F_j (−1 for i itself),
/// F_j += Uᵢ W_ji/Dᵢ. `scratch` must be zero before.
#[inline]
#[allow(clippy::too_many_arguments, reason = "tables and arrays of one loop")]
pub fn inverse<const FUSED: bool, E: Entry>(
    tree: &[u32],
    groups: &[[u32; 4]],
    table: &[u32],
    s: &[E],
    u: &[E],
    d: &[E],
    scratch: &mut [E],
    x: &mut [E],
) {
    let n = tree.len();
    let Some((f, rest)) = scratch.split_at_mut_checked(6 * n + BLOCK) else { return };
    let Some((scaled, back)) = rest.split_at_mut_checked(n * n + BLOCK) else { return };
    if inward::<FUSED, _>(tree, s, u, d, f, scaled, back).is_none() {
        return;
    }
    multiply::<FUSED, true, E>(groups, table, scaled, back, n, x);
    // both triangles have the same bits
    for j in 1..n {
        let Some((before, column)) = x.split_at_mut_checked(j * n) else { return };
        for (to, from) in column.iter_mut().take(j).zip(before.iter().skip(j).step_by(n)) {
            *to = *from;
        }
    }
}

/// W D⁻¹ by columns and −Wᵀ by rows.
#[inline(always)]
fn inward<const FUSED: bool, E: Entry>(
    tree: &[u32],
    s: &[E],
    u: &[E],
    d: &[E],
    f: &mut [E],
    scaled: &mut [E],
    back: &mut [E],
) -> Option<()> {
    let n = tree.len();
    let columns = tree.iter().zip(s.as_chunks::<6>().0).zip(u.as_chunks::<6>().0).zip(d).enumerate();
    for (i, (((&end, s), u), &d)) in columns.rev() {
        let end = end as usize;
        *scaled.get_mut(i * n + i)? = d;
        *back.get_mut(i * n + i)? = -E::ONE;
        for (k, &u) in u.iter().enumerate() {
            *f.get_mut(k * n + i)? = u * d;
        }
        let mut j = i + 1;
        while j < end {
            let len = (end - j).min(BLOCK);
            // two sums, which do not wait for each other
            let mut along = [[E::ZERO; BLOCK]; 2];
            for (k, &s) in s.iter().enumerate() {
                let row = f.get(k * n + j..)?.first_chunk::<BLOCK>()?;
                for (along, &f) in along[usize::from(k >= 3)].iter_mut().zip(row) {
                    *along = mul_add::<FUSED, _>(s, f, *along);
                }
            }
            let [mut minus, angular] = along;
            minus.iter_mut().zip(angular).for_each(|(minus, angular)| *minus = *minus + angular);
            // zero beyond the end, so that nothing changes there
            let masks = E::ONES_THEN_ZEROS;
            let mask = masks.get(BLOCK - len..)?.first_chunk::<BLOCK>()?;
            minus.iter_mut().zip(mask).for_each(|(minus, &mask)| *minus = mask * *minus);
            let share = minus.map(|minus| -(d * minus));
            let columns = [(&mut *scaled, share), (&mut *back, minus)];
            for (to, numbers) in columns {
                let to = to.get_mut(i * n + j..)?.first_chunk_mut::<BLOCK>()?;
                to.iter_mut().zip(numbers).for_each(|(to, number)| *to = *to + number);
            }
            for (k, &u) in u.iter().enumerate() {
                let row = f.get_mut(k * n + j..)?.first_chunk_mut::<BLOCK>()?;
                for (f, &share) in row.iter_mut().zip(&share) {
                    *f = mul_add::<FUSED, _>(u, share, *f);
                }
            }
            j += BLOCK;
        }
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
        // Two rows of factors and two columns of three numbers, one number of all after the other, and the zeros behind them.
        const STRIDE: usize = 3;
        let (mut left, mut right) = ([0.0; 6 * STRIDE], [0.0; 6 * STRIDE + BLOCK]);
        left[..6].copy_from_slice(&[1.0, 3.0, 0.0, 2.0, 4.0, 0.0]);
        right[..6].copy_from_slice(&[1.0, 2.0, 3.0, 10.0, 20.0, 30.0]);
        let good = [1, 0, 3, 0];
        // 3 · (1, 2, 3) + 4 · (10, 20, 30)
        let expected = [43.0, 86.0, 129.0, 0.0];
        for number in [1000, u32::MAX] {
            for place in 0..4 {
                let mut bad = good;
                bad[place] = number;
                let mut to = [0.0; 4];
                products::<true, _>(&[good, bad, good], &left, &right, 6, STRIDE, &mut to);
                assert_eq!(
                    to, expected,
                    "{bad:?}: what stands before it is done, what stands behind it is not"
                );
            }
        }
        // What stands behind a run stays, in memory of a block and in shorter memory.
        let mut to = [5.0; BLOCK];
        products::<true, _>(&[good], &left, &right, 6, STRIDE, &mut to);
        assert_eq!(to, [48.0, 91.0, 134.0, 5.0, 5.0, 5.0, 5.0, 5.0]);
        // Neither a stride beyond the columns nor another number of factors find numbers.
        for (width, stride) in [(6, 1000), (7, STRIDE), (9, STRIDE), (1000, STRIDE)] {
            let mut to = [0.0; 4];
            products::<true, _>(&[good], &left, &right, width, stride, &mut to);
            assert_eq!(to, [0.0; 4]);
        }
    }

    #[test]
    fn bilinear_ends_at_a_number_out_of_range() {
        let a: [f64; 2 * BLOCK] = core::array::from_fn(|i| i as f64);
        let b = [2.0; BLOCK];
        // row 1: a₁ b₀ − a₀ b₀
        let (rows, terms) = ([[1, 0, 1, 2]], [[1, 0], [0, 0]]);
        let run = |rows: &[[u32; 4]], terms: &[[u32; 2]], blocks: usize| {
            let mut to = [1.0; 2 * BLOCK];
            bilinear::<true, _>(rows, terms, &a, &b, blocks, &mut to);
            to
        };
        let mut expected = [1.0; 2 * BLOCK];
        expected[BLOCK..].fill(1.0 + 2.0 * BLOCK as f64);
        assert_eq!(run(&rows, &terms, 1), expected);
        for number in OUTSIDE {
            for place in 0..4 {
                let mut bad = rows;
                bad[0][place] = number;
                assert_eq!(run(&bad, &terms, 1), [1.0; 2 * BLOCK], "{bad:?}");
            }
            for place in 0..2 {
                let mut bad = terms;
                bad[1][place] = number;
                assert_eq!(run(&rows, &bad, 1), [1.0; 2 * BLOCK], "{bad:?}");
            }
            assert_eq!(run(&rows, &terms, number as usize), [1.0; 2 * BLOCK]);
        }
    }

    #[test]
    fn minus_product_leaves_what_a_table_out_of_range_means() {
        let (a, b) = ([1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]);
        let untouched = [9.0; 4];
        let run = |groups: &[[u32; 4]], table: &[u32], rows: usize| {
            let mut to = untouched;
            minus_product::<true, _>(groups, table, &a, &b, rows, &mut to);
            to
        };
        // [[1, 3], [2, 4]] [[5, 7], [6, 8]], column by column and both at once
        let (good, both) = ([[0, 1, 0, 2], [1, 1, 2, 4]], [[0, 2, 0, 2]]);
        assert_eq!(run(&good, &[0, 1, 0, 1], 2), [-23.0, -34.0, -31.0, -46.0]);
        assert_eq!(run(&both, &[0, 1], 2), [-23.0, -34.0, -31.0, -46.0]);
        for number in OUTSIDE {
            // The second column reads a row that is not there.
            assert_eq!(run(&good, &[0, 1, 0, number], 2), [-23.0, -34.0, 9.0, 9.0]);
            // A number of the second group lies outside; it may be one of no rows or no columns.
            for place in 0..4 {
                let mut bad = good;
                bad[1][place] = number;
                assert_eq!(run(&bad, &[0, 1, 0, 1], 2), [-23.0, -34.0, 9.0, 9.0], "{bad:?}");
            }
            for groups in [&good[..], &both] {
                assert_eq!(
                    run(groups, &[0, 1, 0, 1], number as usize),
                    untouched,
                    "no column has so many rows"
                );
            }
        }
        assert_eq!(run(&good, &[0, 1, 0, 1], 0), untouched);
    }

    #[test]
    fn inverse_survives_any_tree_and_any_memory() {
        // Two slides along the same direction with masses 2 and 1: M = [[3, 1], [1, 1]].
        let s = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        // The outer one carries 1; with it free the inner one feels 2.
        let u = [2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        let d = [0.5, 1.0];
        let good = [2, 2];
        let run = |tree: &[u32], s: &[f64], u: &[f64], d: &[f64], scratch: usize, len: usize| {
            let (mut room, mut x) = ([0.0; inverse_scratch(2)], [0.0; 4]);
            let (groups, table) = ([[0, 2, 0, 2]], [0, 1]);
            inverse::<true, _>(tree, &groups, &table, s, u, d, &mut room[..scratch], &mut x[..len]);
            x
        };
        let room = inverse_scratch(2);
        assert_eq!(run(&good, &s, &u, &d, room, 4), [0.5, -0.5, -0.5, 1.5]);
        for number in OUTSIDE {
            for i in 0..2 {
                let mut bad = good;
                bad[i] = number;
                run(&bad, &s, &u, &d, room, 4);
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
