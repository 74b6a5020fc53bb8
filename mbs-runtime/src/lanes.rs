//! Four columns at once: what generated solves of many right-hand sides are made of. Elementary operations on four values
//! become vector instructions, and the chains of a triangular solve overlap.

use crate::batch::each;
use crate::error::EvalError;
use crate::math;
use crate::scalar::Scalar;

/// How many columns.
pub const WIDTH: usize = 4;

/// One value of each column.
pub type Lanes<S> = [S; WIDTH];

/// a x
#[inline(always)]
pub fn mul<S: Scalar>(a: S, x: Lanes<S>) -> Lanes<S> {
    each(|k| a * x[k])
}

/// a x + y
#[inline(always)]
pub fn mul_add<S: Scalar>(a: S, x: Lanes<S>, y: Lanes<S>) -> Lanes<S> {
    each(|k| math::mul_add(a, x[k], y[k]))
}

/// x + y
#[inline(always)]
pub fn add<S: Scalar>(x: Lanes<S>, y: Lanes<S>) -> Lanes<S> {
    each(|k| x[k] + y[k])
}

/// x − y
#[inline(always)]
pub fn sub<S: Scalar>(x: Lanes<S>, y: Lanes<S>) -> Lanes<S> {
    each(|k| x[k] - y[k])
}

/// −x
#[inline(always)]
pub fn neg<S: Scalar>(x: Lanes<S>) -> Lanes<S> {
    each(|k| -x[k])
}

/// Calls `four` for the columns of the matrix with which `x` begins, `N` rows of `columns` values each, four at a time; columns that are
/// not there are zero. A last column by itself goes to `one`; with the feature `small` all do, one by one.
#[inline(always)]
pub fn for_each<S: Scalar, const N: usize>(
    columns: usize,
    x: &mut [S],
    mut four: impl FnMut(&mut [Lanes<S>; N]),
    mut one: impl FnMut(&mut [S]) -> Result<(), EvalError>,
) -> Result<(), EvalError> {
    let (expected, found) = (N * columns, x.len());
    let x = x.get_mut(..expected).ok_or(EvalError::Length { what: "x", expected, found })?;
    let mut first = 0;
    while first < columns {
        if cfg!(feature = "small") || columns - first == 1 {
            let mut column = [S::ZERO; N];
            for (to, row) in column.iter_mut().zip(x.chunks_exact(columns)) {
                *to = row.get(first).copied().unwrap_or(S::ZERO);
            }
            one(&mut column)?;
            for (&from, row) in column.iter().zip(x.chunks_exact_mut(columns)) {
                if let Some(to) = row.get_mut(first) {
                    *to = from;
                }
            }
            first += 1;
            continue;
        }
        let count = if columns - first < WIDTH { columns - first } else { WIDTH };
        let mut lanes = [[S::ZERO; WIDTH]; N];
        for (lanes, row) in lanes.iter_mut().zip(x.chunks_exact(columns)) {
            for (lane, &value) in lanes.iter_mut().zip(row.iter().skip(first).take(count)) {
                *lane = value;
            }
        }
        four(&mut lanes);
        for (lanes, row) in lanes.iter().zip(x.chunks_exact_mut(columns)) {
            for (value, &lane) in row.iter_mut().skip(first).take(count).zip(lanes) {
                *value = lane;
            }
        }
        first += count;
    }
    Ok(())
}
