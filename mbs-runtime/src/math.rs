//! Elementary functions and table kernels as free functions, which is how generated code calls them.
//!
//! Enters: scalars and slices. Leaves: scalars. No function here panics or allocates, whatever its arguments.

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
