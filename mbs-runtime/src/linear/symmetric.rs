//! Natural scales of a matrix [M Bᵀ; B 0], from its own numbers: powers of two d by which rows and columns are multiplied, so that pivots are
//! compared without units and a small number on the diagonal is small for every row, whatever it is multiplied by and whatever it reaches.
//!
//! | unknown | d |
//! |---|---|
//! | j with inertia | 1/√M_jj |
//! | row k | 1/max_j \|B_kj\| d_j, so that Σ B²/M is about 1/d² |
//! | j without inertia | 1/max_k \|B_kj\| d_k, of the rows through which it reaches inertia |
//!
//! An inertia that is the rounding of none counts as none: its scale would be beyond all digits.

use crate::scalar::{Scalar, sqrt};

/// An energy M_jj u_j² below this many ε of the largest is the rounding of none, as at the start.
const MASSLESS: f64 = 1e3;

/// Into `d`: the scales of the n × n matrix `a` whose first `nv` unknowns are those of M; one for what reaches no inertia. `velocity`: the units u of
/// these. Rows whose `unit` is known, and against which they are small where others are not, are components of rounding: they are not made larger than
/// half of the digits allow.
pub(crate) fn scales<S: Scalar>(
    n: usize,
    nv: usize,
    a: &[S],
    velocity: impl Fn(usize) -> f64,
    unit: impl Fn(usize) -> Option<f64>,
    d: &mut [S],
) {
    d.fill(S::ZERO);
    let entry = |i: usize, j: usize| a.get(i * n + j).map_or(0.0, |a| a.real().abs());
    let energy = |j: usize| entry(j, j) * velocity(j) * velocity(j);
    let largest = (0..nv).map(energy).fold(0.0, f64::max);
    let massless = |j: usize| energy(j) <= MASSLESS * S::EPSILON * largest;
    for (j, d) in d.iter_mut().enumerate().take(nv).filter(|(j, _)| !massless(*j)) {
        *d = S::from_f64(power_below(1.0 / sqrt(entry(j, j))));
    }
    // Rows from what is known, then what has no inertia from all rows; each round reaches further.
    let mut known = 0;
    loop {
        write(nv..n, 0..nv, entry, |_| true, d);
        write(0..nv, nv..n, entry, massless, d);
        let now = d.iter().filter(|d| **d != S::ZERO).count();
        if now == known {
            break;
        }
        known = now;
    }
    limit(d.get_mut(nv..).unwrap_or_default(), unit);
    for d in d.iter_mut().filter(|d| **d == S::ZERO) {
        *d = S::ONE;
    }
}

/// Limits the scales of rows by their units; rows whose scale is zero say nothing.
fn limit<S: Scalar>(d: &mut [S], unit: impl Fn(usize) -> Option<f64>) {
    let sizes = d.iter().enumerate().filter_map(|(k, d)| Some(1.0 / (d.real() * unit(k)?)));
    let largest = sizes.filter(|size| size.is_finite()).fold(0.0, f64::max);
    for (k, d) in d.iter_mut().enumerate() {
        let Some(unit) = unit(k) else { continue };
        let most = power_below(1.0 / (sqrt(S::EPSILON) * largest * unit));
        if most > 0.0 && d.real() > most {
            *d = S::from_f64(most);
        }
    }
}

/// d_i = 1/max_j |a_ij| d_j
fn write<S: Scalar>(
    rows: core::ops::Range<usize>,
    columns: core::ops::Range<usize>,
    entry: impl Fn(usize, usize) -> f64,
    counts: impl Fn(usize) -> bool,
    d: &mut [S],
) {
    for i in rows.filter(|i| counts(*i)) {
        let terms = columns.clone().map(|j| entry(i, j) * d.get(j).map_or(0.0, |d| d.real()));
        let size = terms.filter(|size| size.is_finite()).fold(0.0, f64::max);
        if let Some(d) = d.get_mut(i).filter(|_| size > 0.0) {
            *d = S::from_f64(power_below(1.0 / size));
        }
    }
}

/// D A D
pub(crate) fn apply<S: Scalar>(n: usize, d: &[S], a: &mut [S]) {
    for (row, &own) in a.chunks_exact_mut(n.max(1)).zip(d) {
        for (a, &d) in row.iter_mut().zip(d) {
            *a *= own * d;
        }
    }
}

/// D x
pub(crate) fn apply_to<S: Scalar>(d: &[S], x: &mut [S]) {
    for (x, &d) in x.iter_mut().zip(d) {
        *x *= d;
    }
}

/// The power of two not above x; zero for what is not positive and finite.
fn power_below(x: f64) -> f64 {
    if x >= f64::MIN_POSITIVE && x.is_finite() { f64::from_bits(x.to_bits() & !((1 << 52) - 1)) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::{apply, limit, scales};

    /// Two masses, one of them behind a coordinate without inertia, and three rows: whatever their units are, the scaled matrix is the same.
    #[test]
    fn rows_of_any_unit() {
        let (nv, n) = (3, 6);
        let mut a = [0.0; 36];
        let entries =
            [(0, 0, 2.0), (1, 1, 3.0), (3, 0, 1.0), (3, 1, -0.5), (4, 1, 2.0), (4, 2, 1.0), (5, 2, 4.0)];
        for (i, j, value) in entries {
            (a[i * n + j], a[j * n + i]) = (value, value);
        }
        let mut first = None;
        for power in [[0; 6], [-60, 110, 3, -20, 40, 7], [70, -41, 90, 33, 0, -120]] {
            let unit = power.map(|power| 2f64.powi(power));
            let mut b: [f64; 36] = core::array::from_fn(|k| a[k] * unit[k / n] * unit[k % n]);
            let mut d = [0.0; 6];
            scales(n, nv, &b, |j| 1.0 / unit[j], |_| None, &mut d);
            apply(n, &d, &mut b);
            assert_eq!(*first.get_or_insert(b), b, "{power:?}");
        }
    }

    /// A row of rounding beside one that is not.
    #[test]
    fn rows_of_rounding() {
        let mut d = [2f64.powi(60), 2f64.powi(100), 2f64.powi(-40), 0.0];
        limit(&mut d, |k| Some(if k == 2 { 2f64.powi(100) } else { 1.0 }));
        assert_eq!(d, [2f64.powi(60), 2f64.powi(86), 2f64.powi(-40), 0.0]);
    }

    /// What has an inertia of rounding goes by its row.
    #[test]
    fn inertias_of_rounding() {
        for small in [0.0, 1e-17, 1e-180] {
            let mut d = [0.0; 4];
            let a = [1.0, 0.0, 1.0, 0.0, 0.0, small, 1.0, 2.0, 1.0, 1.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0];
            scales(4, 2, &a, |_| 1.0, |_| None, &mut d);
            assert_eq!(d, [1.0, 1.0, 1.0, 0.5], "{small}");
        }
    }

    /// What reaches nothing has the scale one.
    #[test]
    fn rows_without_entries() {
        let mut d = [0.0; 3];
        scales(3, 2, &[1e40, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], |_| 1.0, |_| Some(1.0), &mut d);
        assert!(d[0] > 1e-21 && d[0] <= 1e-20 && d[1..] == [1.0, 1.0]);
    }
}
