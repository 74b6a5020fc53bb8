//! Matrices with a column for each parameter: row i of column k is `x[i * columns + k]`, so that the inner loop of every
//! product runs along the parameters.
//!
//! Products are few small functions over blocks of up to eight columns, the same for all models: sums stay in registers, and the
//! code of a differentiated step stays small. A place outside of its matrix is passed over, never a panic; a list with fewer values than places is an error.

use super::derivatives::Places;
use crate::error::EvalError;
use crate::linear::add_scaled;
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

/// One term of a sum of products: a B X with the factor a, the values of B at the sum's places, and X.
pub(crate) type Term<'a, S> = (S, &'a [S], &'a [S]);

/// Y = Y + Σ a B X, where every term has a value for each place: a product without a term is one of fewer terms, not one with an empty list.
#[inline(always)]
pub(crate) fn add_products<S: Scalar, const T: usize>(
    places: Places<'_>,
    columns: usize,
    terms: [Term<'_, S>; T],
    y: &mut [S],
) -> Result<(), EvalError> {
    // A call that does nothing is a call still.
    if places.is_empty() {
        return Ok(());
    }
    for (_, values, _) in &terms {
        check(places, values)?;
    }
    if cfg!(feature = "small") {
        add_rows(places, columns, &terms, y);
        return Ok(());
    }
    match columns {
        0 => {}
        1 => add_whole::<S, 1, T>(places, &terms, y),
        2 => add_whole::<S, 2, T>(places, &terms, y),
        3 => add_whole::<S, 3, T>(places, &terms, y),
        4 => add_whole::<S, 4, T>(places, &terms, y),
        5 => add_whole::<S, 5, T>(places, &terms, y),
        6 => add_whole::<S, 6, T>(places, &terms, y),
        7 => add_whole::<S, 7, T>(places, &terms, y),
        8 => add_whole::<S, 8, T>(places, &terms, y),
        _ => add_blocks(places, columns, &terms, y),
    }
    Ok(())
}

/// A list that is too short is no product with fewer terms.
#[inline(always)]
fn check<S>(places: Places<'_>, values: &[S]) -> Result<(), EvalError> {
    let (expected, found) = (places.len(), values.len());
    if found < expected { Err(EvalError::Length { what: "derivatives", expected, found }) } else { Ok(()) }
}

/// Any number of columns and terms: slower, one function for all, the same sums in the same order.
#[inline(never)]
fn add_rows<S: Scalar>(places: Places<'_>, columns: usize, terms: &[Term<'_, S>], y: &mut [S]) {
    for (entry, &(i, j)) in places.iter().enumerate() {
        let Some(y) = row_mut(y, i as usize, columns) else { continue };
        for (a, values, x) in terms {
            if let (Some(&value), Some(x)) = (values.get(entry), row(x, j as usize, columns)) {
                add_scaled(y, *a * value, x);
            }
        }
    }
}

/// All columns, L of them.
#[inline(never)]
fn add_whole<S: Scalar, const L: usize, const T: usize>(
    places: Places<'_>,
    terms: &[Term<'_, S>; T],
    y: &mut [S],
) {
    // Lengths that are equal need no comparison in the loop.
    if terms.iter().any(|(_, values, _)| values.len() < places.len()) {
        return;
    }
    let terms =
        terms.map(|(a, values, x)| (a, values.get(..places.len()).unwrap_or_default(), x.as_chunks::<L>().0));
    let (y, _) = y.as_chunks_mut::<L>();
    let mut sum = [S::ZERO; L];
    let mut now = usize::MAX;
    // By index: places and values are known to end together then.
    for entry in 0..places.len() {
        let Some(&(i, j)) = places.get(entry) else { break };
        let i = i as usize;
        if i != now {
            if let Some(y) = y.get_mut(now) {
                *y = sum;
            }
            now = i;
            sum = y.get(i).copied().unwrap_or([S::ZERO; L]);
        }
        for &(a, values, x) in &terms {
            if let (Some(&value), Some(x)) = (values.get(entry), x.get(j as usize)) {
                let value = a * value;
                for k in 0..L {
                    sum[k] += value * x[k];
                }
            }
        }
    }
    if let Some(y) = y.get_mut(now) {
        *y = sum;
    }
}

/// More than eight columns, eight at a time.
#[inline(never)]
fn add_blocks<S: Scalar, const T: usize>(
    places: Places<'_>,
    columns: usize,
    terms: &[Term<'_, S>; T],
    y: &mut [S],
) {
    let mut first = 0;
    while columns - first >= 8 {
        add_block::<S, 8, T>(places, columns, first, terms, y);
        first += 8;
    }
    match columns - first {
        1 => add_block::<S, 1, T>(places, columns, first, terms, y),
        2 => add_block::<S, 2, T>(places, columns, first, terms, y),
        3 => add_block::<S, 3, T>(places, columns, first, terms, y),
        4 => add_block::<S, 4, T>(places, columns, first, terms, y),
        5 => add_block::<S, 5, T>(places, columns, first, terms, y),
        6 => add_block::<S, 6, T>(places, columns, first, terms, y),
        7 => add_block::<S, 7, T>(places, columns, first, terms, y),
        _ => {}
    }
}

/// The columns from `first` on, L of them.
fn add_block<S: Scalar, const L: usize, const T: usize>(
    places: Places<'_>,
    columns: usize,
    first: usize,
    terms: &[Term<'_, S>; T],
    y: &mut [S],
) {
    let mut sum = [S::ZERO; L];
    let mut now = u32::MAX;
    for (entry, &(i, j)) in places.iter().enumerate() {
        if i != now {
            store(y, now, columns, first, sum);
            now = i;
            sum = chunk(y, i, columns, first).copied().unwrap_or([S::ZERO; L]);
        }
        for (a, values, x) in terms {
            if let (Some(&value), Some(x)) = (values.get(entry), chunk::<S, L>(x, j, columns, first)) {
                let value = *a * value;
                for k in 0..L {
                    sum[k] += value * x[k];
                }
            }
        }
    }
    store(y, now, columns, first, sum);
}

/// L columns of row i.
#[inline(always)]
fn chunk<S, const L: usize>(x: &[S], i: u32, columns: usize, first: usize) -> Option<&[S; L]> {
    x.get(i as usize * columns + first..)?.first_chunk()
}

#[inline(always)]
fn store<S: Scalar, const L: usize>(y: &mut [S], i: u32, columns: usize, first: usize, sum: [S; L]) {
    let row = y.get_mut((i as usize).wrapping_mul(columns).wrapping_add(first)..);
    if let Some(y) = row.and_then(|y| y.first_chunk_mut()) {
        *y = sum;
    }
}

/// Y = Y + B X for the matrix B with `values` at `places`.
#[inline(always)]
pub(crate) fn add_product<S: Scalar>(
    places: Places<'_>,
    values: &[S],
    columns: usize,
    x: &[S],
    y: &mut [S],
) -> Result<(), EvalError> {
    add_products(places, columns, [(S::ONE, values, x)], y)
}

/// Y = Y − B X
#[inline(always)]
pub(crate) fn subtract_product<S: Scalar>(
    places: Places<'_>,
    values: &[S],
    columns: usize,
    x: &[S],
    y: &mut [S],
) -> Result<(), EvalError> {
    add_products(places, columns, [(-S::ONE, values, x)], y)
}

/// Y = Y + a Bᵀ X
#[inline(always)]
pub(crate) fn add_transposed<S: Scalar>(
    places: Places<'_>,
    values: &[S],
    a: S,
    columns: usize,
    x: &[S],
    y: &mut [S],
) -> Result<(), EvalError> {
    if places.is_empty() {
        return Ok(());
    }
    check(places, values)?;
    if cfg!(feature = "small") {
        add_transposed_rows(places, values, a, columns, x, y);
        return Ok(());
    }
    match columns {
        1 => add_transposed_whole::<S, 1>(places, values, a, x, y),
        2 => add_transposed_whole::<S, 2>(places, values, a, x, y),
        3 => add_transposed_whole::<S, 3>(places, values, a, x, y),
        4 => add_transposed_whole::<S, 4>(places, values, a, x, y),
        5 => add_transposed_whole::<S, 5>(places, values, a, x, y),
        6 => add_transposed_whole::<S, 6>(places, values, a, x, y),
        7 => add_transposed_whole::<S, 7>(places, values, a, x, y),
        8 => add_transposed_whole::<S, 8>(places, values, a, x, y),
        _ => add_transposed_rows(places, values, a, columns, x, y),
    }
    Ok(())
}

/// All columns, L of them.
#[inline(never)]
fn add_transposed_whole<S: Scalar, const L: usize>(
    places: Places<'_>,
    values: &[S],
    a: S,
    x: &[S],
    y: &mut [S],
) {
    let ((x, _), (y, _)) = (x.as_chunks::<L>(), y.as_chunks_mut::<L>());
    for (&(i, j), &value) in places.iter().zip(values) {
        if let (Some(y), Some(x)) = (y.get_mut(j as usize), x.get(i as usize)) {
            let value = a * value;
            for k in 0..L {
                y[k] += value * x[k];
            }
        }
    }
}

#[inline(never)]
fn add_transposed_rows<S: Scalar>(
    places: Places<'_>,
    values: &[S],
    a: S,
    columns: usize,
    x: &[S],
    y: &mut [S],
) {
    for (&(i, j), &value) in places.iter().zip(values) {
        if let (Some(y), Some(x)) = (row_mut(y, j as usize, columns), row(x, i as usize, columns)) {
            add_scaled(y, a * value, x);
        }
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
#[inline(always)]
pub(crate) fn subtract_parameters<S: Scalar>(
    places: Places<'_>,
    values: &[S],
    a: S,
    columns: usize,
    directions: Directions<'_, S>,
    y: &mut [S],
) -> Result<(), EvalError> {
    if places.is_empty() {
        return Ok(());
    }
    check(places, values)?;
    match directions {
        Directions::Each => subtract_entries(places, values, a, columns, y),
        Directions::Along(rho) => return add_products(places, columns, [(-a, values, rho)], y),
    }
    Ok(())
}

/// Y = Y − a B
#[inline(never)]
fn subtract_entries<S: Scalar>(places: Places<'_>, values: &[S], a: S, columns: usize, y: &mut [S]) {
    for (&(i, k), &value) in places.iter().zip(values) {
        if let Some(y) = y.get_mut(i as usize * columns + k as usize) {
            *y -= a * value;
        }
    }
}

/// X = a X
#[inline(always)]
pub(crate) fn scale<S: Scalar>(x: &mut [S], a: S) {
    for x in x {
        *x *= a;
    }
}

/// Zero in the rows that are not active.
pub(crate) fn zero_inactive_rows<S: Scalar>(active: &[S], columns: usize, x: &mut [S]) {
    for (row, active) in x.chunks_exact_mut(columns.max(1)).zip(active) {
        if *active == S::ZERO {
            row.fill(S::ZERO);
        }
    }
}

/// Into `largest`: the largest magnitude of each row.
#[inline(always)]
pub(crate) fn largest_of_rows<S: Scalar>(columns: usize, x: &[S], largest: &mut [S]) {
    for (largest, row) in largest.iter_mut().zip(x.chunks_exact(columns.max(1))) {
        *largest = S::from_f64(crate::linear::largest(row));
    }
}

/// Into `sums`: the sum of each row.
#[inline(always)]
pub(crate) fn sums_of_rows<S: Scalar>(columns: usize, x: &[S], sums: &mut [S]) {
    match if cfg!(feature = "small") { 0 } else { columns } {
        2 => sum_arrays::<S, 2>(x, sums),
        3 => sum_arrays::<S, 3>(x, sums),
        4 => sum_arrays::<S, 4>(x, sums),
        5 => sum_arrays::<S, 5>(x, sums),
        6 => sum_arrays::<S, 6>(x, sums),
        7 => sum_arrays::<S, 7>(x, sums),
        8 => sum_arrays::<S, 8>(x, sums),
        _ => {
            for (sum, row) in sums.iter_mut().zip(x.chunks_exact(columns.max(1))) {
                *sum = row.iter().fold(S::ZERO, |sum, &x| sum + x);
            }
        }
    }
}

#[inline(always)]
fn sum_arrays<S: Scalar, const L: usize>(x: &[S], sums: &mut [S]) {
    let (rows, _) = x.as_chunks::<L>();
    for (sum, row) in sums.iter_mut().zip(rows) {
        *sum = row.iter().fold(S::ZERO, |sum, &x| sum + x);
    }
}
