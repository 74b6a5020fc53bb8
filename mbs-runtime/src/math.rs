//! Elementary functions and table kernels as free functions, which is how generated code calls them.
//!
//! Input: scalars and slices. Output: scalars. No function here panics or allocates, whatever its arguments.

use crate::scalar::Scalar;

macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident)+) => {
        $(
            $(#[$doc])*
            #[inline(always)]
            pub fn $name<S: Scalar>(x: S) -> S {
                x.$name()
            }
        )+
    };
}

unary! {
    /// Square root.
    sqrt
    /// Sine.
    sin
    /// Cosine.
    cos
    /// Tangent.
    tan
    /// Inverse sine.
    asin
    /// Inverse cosine.
    acos
    /// Inverse tangent.
    atan
    /// Exponential.
    exp
    /// Natural logarithm.
    ln
    /// Hyperbolic sine.
    sinh
    /// Hyperbolic cosine.
    cosh
    /// Hyperbolic tangent.
    tanh
    /// Absolute value.
    abs
    /// −1, 0 or 1.
    sign
    /// Largest integer not above.
    floor
}

/// `(sin, cos)`, each with the bits of [`sin`] and [`cos`].
#[inline(always)]
pub fn sin_cos<S: Scalar>(x: S) -> (S, S) {
    x.sin_cos()
}

/// Angle of the point `(x, y)` from the x axis.
#[inline(always)]
pub fn atan2<S: Scalar>(y: S, x: S) -> S {
    y.atan2(x)
}

/// `base` to the power `exponent`.
#[inline(always)]
pub fn powf<S: Scalar>(base: S, exponent: S) -> S {
    base.powf(exponent)
}

/// `if b < a { b } else { a }`.
#[inline(always)]
pub fn min<S: Scalar>(a: S, b: S) -> S {
    a.min(b)
}

/// `if b > a { b } else { a }`.
#[inline(always)]
pub fn max<S: Scalar>(a: S, b: S) -> S {
    a.max(b)
}

/// Whether [`mul_add`] of doubles rounds once on this target.
pub const FUSED: bool = crate::scalar::FUSED;

/// `a * b + c`, fused only where the target has the instruction.
#[inline(always)]
pub fn mul_add<S: Scalar>(a: S, b: S, c: S) -> S {
    a.mul_add(b, c)
}

/// `if a < b { x } else { y }`.
#[inline(always)]
pub fn select_lt<S: Scalar>(a: S, b: S, x: S, y: S) -> S {
    S::select_lt(a, b, x, y)
}

/// `if a <= b { x } else { y }`.
#[inline(always)]
pub fn select_le<S: Scalar>(a: S, b: S, x: S, y: S) -> S {
    S::select_le(a, b, x, y)
}

/// `if a == b { x } else { y }`.
#[inline(always)]
pub fn select_eq<S: Scalar>(a: S, b: S, x: S, y: S) -> S {
    S::select_eq(a, b, x, y)
}

/// `array[floor(index)]` with the index brought into the array; a NaN index reads the first entry, an empty array
/// reads as zero.
#[inline]
pub fn gather<S: Scalar>(array: &[S], index: S) -> S {
    // The cast truncates, sends NaN and negative numbers to zero and saturates above.
    let index = (index.real() as usize).min(array.len().saturating_sub(1));
    array.get(index).copied().unwrap_or(S::ZERO)
}

/// Number of the interval of increasing `knots` that holds `x`: the largest i in 0 ..= n − 2 with knots\[i\] <= x,
/// and 0 before the first knot, for a NaN, and for fewer than two knots.
#[inline]
pub fn locate<S: Scalar>(knots: &[S], x: S) -> S {
    let x = x.real();
    let inner = knots.get(1..knots.len().saturating_sub(1)).unwrap_or(&[]);
    S::from_f64(inner.partition_point(|knot| knot.real() <= x) as f64)
}

/// Solves a tridiagonal system by the Thomas algorithm, without pivoting: for diagonally dominant matrices, as
/// those of splines are.
///
/// Row i reads `lower[i − 1] x[i − 1] + diag[i] x[i] + upper[i] x[i + 1] = rhs[i]`, so that `lower` and `upper` have
/// one entry less than `diag`. The order n is the largest that all slices allow; `scratch` holds n values. A zero
/// pivot makes the solution not finite.
///
/// The operations, in this order (the interpreter repeats them bit for bit):
/// ```text
/// scratch[0] = upper[0] / diag[0]                      x[0] = rhs[0] / diag[0]
/// pivot      = diag[i] - lower[i-1] * scratch[i-1]                                     i = 1 .. n-1
/// scratch[i] = upper[i] / pivot                        x[i] = (rhs[i] - lower[i-1] * x[i-1]) / pivot
/// x[i]       = x[i] - scratch[i] * x[i+1]                                              i = n-2 .. 0
/// ```
pub fn solve_tridiagonal<S: Scalar>(
    lower: &[S],
    diag: &[S],
    upper: &[S],
    rhs: &[S],
    scratch: &mut [S],
    x: &mut [S],
) {
    // The missing neighbours of the first and last row: their values never enter.
    let lower = core::iter::once(None).chain(lower.iter().map(Some));
    let upper = upper.iter().map(Some).chain(core::iter::once(None));
    let rows = lower.zip(upper).zip(diag.iter().zip(rhs));
    let mut previous: Option<(S, S)> = None;
    let mut n = 0;
    for (((below, above), (&d, &b)), (c, x)) in rows.zip(scratch.iter_mut().zip(x.iter_mut())) {
        let (pivot, b) = match (below, previous) {
            (Some(&l), Some((c, x))) => (d - l * c, b - l * x),
            _ => (d, b),
        };
        *c = above.map_or(S::ZERO, |&u| u / pivot);
        *x = b / pivot;
        previous = Some((*c, *x));
        n += 1;
    }
    let mut next: Option<S> = None;
    for (x, &c) in x.iter_mut().take(n).rev().zip(scratch.iter().take(n).rev()) {
        if let Some(next) = next {
            *x -= c * next;
        }
        next = Some(*x);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gather_brings_the_index_in() {
        let array = [1.0, 2.0, 3.0];
        let indices =
            [-5.0, -0.5, 0.0, 0.9, 1.0, 2.0, 2.5, 1e300, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
        let expected = [1.0, 1.0, 1.0, 1.0, 2.0, 3.0, 3.0, 3.0, 3.0, 1.0, 1.0];
        assert_eq!(indices.map(|index| gather(&array, index)), expected);
        assert_eq!(gather(&[], 1.0), 0.0);
    }

    #[test]
    fn locate_finds_the_interval() {
        let knots = [0.0, 1.0, 1.5, 4.0];
        let points = [-1.0, 0.0, 0.99, 1.0, 1.49, 1.5, 3.9, 4.0, 9.0, f64::NAN];
        let expected = [0.0, 0.0, 0.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0, 0.0];
        assert_eq!(points.map(|x| locate(&knots, x)), expected);
        for few in [&[][..], &[1.0], &[1.0, 2.0]] {
            assert_eq!(locate(few, 5.0), 0.0);
        }
    }

    #[test]
    fn tridiagonal_solution_satisfies_the_rows() {
        let (lower, upper) = ([0.5, -0.3, 1.0, 0.2], [0.7, 0.1, -0.4, 0.9]);
        let (diag, rhs) = ([3.0, 2.5, 4.0, -3.0, 2.0], [1.0, 2.0, -1.0, 0.5, 3.0]);
        let (mut x, mut scratch) = ([0.0; 5], [f64::NAN; 5]);
        solve_tridiagonal(&lower, &diag, &upper, &rhs, &mut scratch, &mut x);
        for i in 0..5 {
            let mut row = diag[i] * x[i];
            if i > 0 {
                row += lower[i - 1] * x[i - 1];
            }
            if i < 4 {
                row += upper[i] * x[i + 1];
            }
            assert!((row - rhs[i]).abs() < 1e-14, "row {i}: {row}");
        }
    }

    #[test]
    fn tridiagonal_order_is_the_shortest_slice() {
        let mut x = [9.0; 3];
        solve_tridiagonal(&[0.0], &[2.0, 2.0, 2.0], &[0.0, 0.0], &[4.0; 3], &mut [0.0; 3], &mut x);
        assert_eq!(x, [2.0, 2.0, 9.0]);
        solve_tridiagonal(&[], &[2.0], &[], &[8.0], &mut [0.0], &mut x);
        assert_eq!(x, [4.0, 2.0, 9.0]);
        solve_tridiagonal::<f64>(&[], &[], &[], &[], &mut [], &mut []);
    }
}
