//! The functions of [`crate::math`] with the same bits on every target: what modules with `fma: never` call.
//!
//! Arithmetic, square roots and roundings are exact by IEEE 754. All other functions are those of `libm`, with and without `std`:
//! one source text without fused operations. a b + c needs no function: Rust rounds it twice everywhere.

use crate::scalar::Scalar;

pub use crate::math::{
    abs, floor, gather, locate, max, min, select_eq, select_le, select_lt, sign, solve_tridiagonal, sqrt,
};

macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident ($($argument:ident),+): $double:ident $single:ident;)+) => {
        /// Numbers with these functions.
        pub trait Portable: Scalar {
            $($(#[$doc])* fn $name($($argument: Self),+) -> Self;)+
        }

        impl Portable for f64 {
            $(
                #[inline(always)]
                fn $name($($argument: f64),+) -> f64 {
                    libm::$double($($argument),+)
                }
            )+
        }

        impl Portable for f32 {
            $(
                #[inline(always)]
                fn $name($($argument: f32),+) -> f32 {
                    libm::$single($($argument),+)
                }
            )+
        }

        $(
            $(#[$doc])*
            #[inline(always)]
            pub fn $name<S: Portable>($($argument: S),+) -> S {
                <S as Portable>::$name($($argument),+)
            }
        )+
    };
}

functions! {
    /// Sine.
    sin(x): sin sinf;
    /// Cosine.
    cos(x): cos cosf;
    /// Tangent.
    tan(x): tan tanf;
    /// Inverse sine.
    asin(x): asin asinf;
    /// Inverse cosine.
    acos(x): acos acosf;
    /// Inverse tangent.
    atan(x): atan atanf;
    /// Angle of the point `(x, y)` from the x axis.
    atan2(y, x): atan2 atan2f;
    /// Exponential.
    exp(x): exp expf;
    /// Natural logarithm.
    ln(x): log logf;
    /// `base` to the power `exponent`.
    powf(base, exponent): pow powf;
    /// Hyperbolic sine.
    sinh(x): sinh sinhf;
    /// Hyperbolic cosine.
    cosh(x): cosh coshf;
    /// Hyperbolic tangent.
    tanh(x): tanh tanhf;
}

/// `(sin, cos)`, each with the bits of [`sin`] and [`cos`].
#[inline(always)]
pub fn sin_cos<S: Portable>(x: S) -> (S, S) {
    (sin(x), cos(x))
}
