//! Small linear algebra over slices of the caller: no heap, no panic. Matrices are column-major.
//!
//! | module | what it is |
//! |---|---|
//! | [`lu`] | dense LU with partial pivoting |
//! | [`rank`] | which rows of a matrix are independent |
//! | [`blocks`] | the parts of a system's leading matrix, and products with them |
//! | `symmetric` | scales of a symmetric matrix whose rows have units of their own |
//! | `leading` | factors of the leading matrix: the system's static order, and the dense one where that fails |

pub mod blocks;
pub mod lu;
pub mod rank;

pub(crate) mod leading;
pub(crate) mod symmetric;

pub(crate) use leading::Leading;

use crate::scalar::Scalar;

/// Largest magnitude of the real parts; zero for no values.
#[cfg_attr(not(feature = "small"), inline(always))]
#[cfg_attr(feature = "small", inline(never))]
pub(crate) fn largest<S: Scalar>(values: &[S]) -> f64 {
    values.iter().fold(0.0, |largest, value| {
        let size = value.real().abs();
        if size > largest { size } else { largest }
    })
}

/// Whether all values are finite. Without a branch for each; doubles two at a time, since 0 x is zero for finite x only.
#[cfg_attr(not(feature = "small"), inline(always))]
#[cfg_attr(feature = "small", inline(never))]
pub(crate) fn all_finite<S: Scalar>(values: &[S]) -> bool {
    let Some(values) = S::doubles(values) else {
        return values.iter().fold(true, |finite, value| finite & value.is_finite());
    };
    let (pairs, last) = values.as_chunks::<2>();
    let [first, second] = pairs.iter().fold([0.0; 2], |[a, b], [x, y]| [a + 0.0 * x, b + 0.0 * y]);
    last.iter().fold(first + second, |sum, x| sum + 0.0 * x) == 0.0
}

/// Copies as much as both hold; their lengths have been made equal before.
#[cfg_attr(not(feature = "small"), inline(always))]
#[cfg_attr(feature = "small", inline(never))]
pub(crate) fn copy<S: Copy>(to: &mut [S], from: &[S]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = *from;
    }
}

/// y = y + a x
#[cfg_attr(not(feature = "small"), inline(always))]
#[cfg_attr(feature = "small", inline(never))]
pub(crate) fn add_scaled<S: Scalar>(y: &mut [S], a: S, x: &[S]) {
    for (y, &x) in y.iter_mut().zip(x) {
        *y += a * x;
    }
}

#[cfg(test)]
mod tests {
    use super::all_finite;

    /// One value that is not finite is found at every place, whatever stands beside it, and nothing else is taken for one.
    #[test]
    fn what_is_not_finite_is_found() {
        let finite = [0.0, -0.0, f64::MAX, f64::MIN, f64::MIN_POSITIVE, -5e-324, 1.0];
        for n in 0..=finite.len() {
            assert!(all_finite(&finite[..n]), "{n}");
            for place in 0..n {
                for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
                    let mut values = finite;
                    values[place] = bad;
                    assert!(!all_finite(&values[..n]), "{bad} at {place} of {n}");
                    // Its opposite does not make up for it.
                    values[n - 1 - place] = -bad;
                    assert!(!all_finite(&values[..n]), "{bad} at {place} of {n}");
                }
            }
        }
    }
}
