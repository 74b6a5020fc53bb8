//! Matrices with a column for each parameter: row i of column k is `x[i * columns + k]`, so that the inner loop of every
//! product runs along the parameters.
//!
//! A place outside of its matrix is passed over, never a panic.
//!
//! Products are functions of their own, not inlined: inlined they are unrolled over the places of a model, and a step's
//! derivative leaves the cache of instructions.

use super::derivatives::Places;
use crate::scalar::Scalar;

/// Row i.
#[inline(always)]
pub(crate) fn row<S>(x: &[S], i: usize, columns: usize) -> Option<&[S]> {
    x.get(i * columns..)?.get(..columns)
}

/// Row i, to be changed.
#[inline(always)]
pub(crate) fn row_mut<S>(x: &mut [S], i: usize, columns: usize) -> Option<&mut [S]> {
    x.get_mut(i * columns..)?.get_mut(..columns)
}

/// to = to + a from, by fours as long as there are four: most models have few parameters.
#[inline(always)]
pub(crate) fn add<S: Scalar>(to: Option<&mut [S]>, a: S, from: Option<&[S]>) {
    if let (Some(to), Some(from)) = (to, from) {
        let ((to, to_rest), (from, from_rest)) = (to.as_chunks_mut::<4>(), from.as_chunks::<4>());
        for (to, from) in to.iter_mut().zip(from) {
            *to = core::array::from_fn(|k| to[k] + a * from[k]);
        }
        for (to, &from) in to_rest.iter_mut().zip(from_rest) {
            *to += a * from;
        }
    }
}

/// Y = Y + B X for the matrix B with `values` at `places`.
#[inline(never)]
pub(crate) fn add_product<S: Scalar>(places: Places<'_>, values: &[S], columns: usize, x: &[S], y: &mut [S]) {
    for (&(i, j), &value) in places.iter().zip(values) {
        add(row_mut(y, i as usize, columns), value, row(x, j as usize, columns));
    }
}

/// Y = Y − B X
#[inline(never)]
pub(crate) fn subtract_product<S: Scalar>(
    places: Places<'_>,
    values: &[S],
    columns: usize,
    x: &[S],
    y: &mut [S],
) {
    for (&(i, j), &value) in places.iter().zip(values) {
        add(row_mut(y, i as usize, columns), -value, row(x, j as usize, columns));
    }
}

/// Y = Y + Bᵀ X
#[inline(never)]
pub(crate) fn add_transposed_product<S: Scalar>(
    places: Places<'_>,
    values: &[S],
    columns: usize,
    x: &[S],
    y: &mut [S],
) {
    for (&(i, j), &value) in places.iter().zip(values) {
        add(row_mut(y, j as usize, columns), value, row(x, i as usize, columns));
    }
}

/// Y = Y − Bᵀ X
#[inline(never)]
pub(crate) fn subtract_transposed_product<S: Scalar>(
    places: Places<'_>,
    values: &[S],
    columns: usize,
    x: &[S],
    y: &mut [S],
) {
    for (&(i, j), &value) in places.iter().zip(values) {
        add(row_mut(y, j as usize, columns), -value, row(x, i as usize, columns));
    }
}

/// Directions in the space of the parameters, one for each column.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Directions<'a, S> {
    /// The unit vectors: column k belongs to parameter k.
    Each,
    /// The columns of this matrix, which has a row for each parameter.
    Along(&'a [S]),
}

/// Y = Y − a B R for the directions R.
#[inline(never)]
pub(crate) fn subtract_parameters<S: Scalar>(
    places: Places<'_>,
    values: &[S],
    a: S,
    columns: usize,
    directions: Directions<'_, S>,
    y: &mut [S],
) {
    for (&(i, k), &value) in places.iter().zip(values) {
        let y = row_mut(y, i as usize, columns);
        match directions {
            Directions::Each => {
                if let Some(y) = y.and_then(|y| y.get_mut(k as usize)) {
                    *y -= a * value;
                }
            }
            Directions::Along(rho) => add(y, -(a * value), row(rho, k as usize, columns)),
        }
    }
}

/// X = a X
#[inline(never)]
pub(crate) fn scale<S: Scalar>(x: &mut [S], a: S) {
    for x in x {
        *x *= a;
    }
}

/// Zero in the rows that are not active.
pub(crate) fn silence<S: Scalar>(active: &[S], columns: usize, x: &mut [S]) {
    for (row, active) in x.chunks_exact_mut(columns.max(1)).zip(active) {
        if *active == S::ZERO {
            row.fill(S::ZERO);
        }
    }
}

/// Into `largest`: the largest magnitude of each row.
#[inline(never)]
pub(crate) fn largest_of_rows<S: Scalar>(columns: usize, x: &[S], largest: &mut [S]) {
    for (largest, row) in largest.iter_mut().zip(x.chunks_exact(columns.max(1))) {
        *largest = S::from_f64(crate::linear::largest(row));
    }
}
