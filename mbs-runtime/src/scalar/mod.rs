//! The numbers a system computes with.
//!
//! A generated module is printed for one scalar; the runtime is generic over it. Decisions (pivots, step sizes,
//! table intervals, branches) use the real part as an `f64`, so that a complex run takes the very path of the
//! real one and its imaginary part is an exact derivative of that path.
//!
//! `min`, `max`, `sign` and the `select_*` family have the branches written in their documentation, in that
//! order, so that emitted code and the generator's interpreter agree bit for bit.

mod complex;
mod elementary;
mod float;

pub use complex::Complex64;

/// Real functions for decisions.
pub(crate) use elementary::double::{FUSED, floor, sqrt};
/// Not exact: of `libm`, so that decisions are the same on every target.
pub(crate) use libm::pow as powf;

use core::fmt::Debug;
use core::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Sub, SubAssign};

/// A number with the elementary functions of the expression graph.
pub trait Scalar:
    Copy
    + Default
    + PartialEq
    + Debug
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
    + DivAssign
    + 'static
{
    /// Zero, equal to `Self::default()`.
    const ZERO: Self;
    /// One.
    const ONE: Self;
    /// Distance from one to the next larger real number of this type; tolerances are multiples of it.
    const EPSILON: f64;
    /// The smallest positive number with all digits.
    const MIN_POSITIVE: f64;
    /// Whether a number is its real part alone. Other parts decide nothing, but are to be right: so no iteration may end before they
    /// have converged too.
    const REAL: bool;

    /// The nearest number to `x`.
    fn from_f64(x: f64) -> Self;
    /// The real part, on which decisions are taken.
    fn real(self) -> f64;
    /// Neither infinite nor NaN, in any part.
    fn is_finite(self) -> bool;

    /// The same slice as one of `f64`, where these are its numbers: machine code knows no others.
    #[inline(always)]
    fn doubles(slice: &[Self]) -> Option<&[f64]> {
        let _ = slice;
        None
    }
    /// As [`Scalar::doubles`], to be written.
    #[inline(always)]
    fn doubles_mut(slice: &mut [Self]) -> Option<&mut [f64]> {
        let _ = slice;
        None
    }

    /// Square root (principal).
    fn sqrt(self) -> Self;
    /// Sine.
    fn sin(self) -> Self;
    /// Cosine.
    fn cos(self) -> Self;
    /// `(sin, cos)`, each with the bits of [`Scalar::sin`] and [`Scalar::cos`].
    #[inline(always)]
    fn sin_cos(self) -> (Self, Self) {
        (self.sin(), self.cos())
    }
    /// Tangent.
    fn tan(self) -> Self;
    /// Inverse sine.
    fn asin(self) -> Self;
    /// Inverse cosine.
    fn acos(self) -> Self;
    /// Inverse tangent.
    fn atan(self) -> Self;
    /// Angle of the point `(x, self)` from the x axis, in (−π, π].
    fn atan2(self, x: Self) -> Self;
    /// Exponential.
    fn exp(self) -> Self;
    /// Natural logarithm.
    fn ln(self) -> Self;
    /// `self` to the power `exponent`.
    fn powf(self, exponent: Self) -> Self;
    /// Hyperbolic sine.
    fn sinh(self) -> Self;
    /// Hyperbolic cosine.
    fn cosh(self) -> Self;
    /// Hyperbolic tangent.
    fn tanh(self) -> Self;

    /// Absolute value of a real number; a complex one is negated where its real part is negative, which is the
    /// analytic continuation of either side and never the modulus.
    fn abs(self) -> Self;
    /// `1` if the real part is positive, `−1` if it is negative, `0` otherwise.
    #[inline(always)]
    fn sign(self) -> Self {
        if self.real() > 0.0 {
            Self::ONE
        } else if self.real() < 0.0 {
            -Self::ONE
        } else {
            Self::ZERO
        }
    }
    /// `if other < self { other } else { self }`, by real part.
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        if other.real() < self.real() { other } else { self }
    }
    /// `if other > self { other } else { self }`, by real part.
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        if other.real() > self.real() { other } else { self }
    }
    /// Largest integer not above the real part.
    fn floor(self) -> Self;

    /// `self * b + c`, with one rounding where the target has the instruction ([`crate::math::FUSED`]) and two otherwise; never
    /// emulated.
    fn mul_add(self, b: Self, c: Self) -> Self;

    /// `if a < b { x } else { y }`, by real part.
    #[inline(always)]
    fn select_lt(a: Self, b: Self, x: Self, y: Self) -> Self {
        if a.real() < b.real() { x } else { y }
    }
    /// `if a <= b { x } else { y }`, by real part.
    #[inline(always)]
    fn select_le(a: Self, b: Self, x: Self, y: Self) -> Self {
        if a.real() <= b.real() { x } else { y }
    }
    /// `if a == b { x } else { y }`, by real part.
    #[inline(always)]
    fn select_eq(a: Self, b: Self, x: Self, y: Self) -> Self {
        if a.real() == b.real() { x } else { y }
    }
}
