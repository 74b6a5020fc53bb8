//! Complex numbers for complex-step checks of whole runs.
//!
//! Every function is the analytic continuation of the real one from the real axis: its value at x + iε is
//! f(x) + iε f'(x) to rounding, also for ε = 1e−200. Formulas are therefore chosen so that a tiny imaginary part
//! is never the difference of large numbers, and so that a zero imaginary part gives the real function's value.

use core::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Sub, SubAssign};

use super::{Scalar, elementary::double};

/// A complex number over `f64`; see the [trait](Scalar) for what its functions mean.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Complex64 {
    /// Real part.
    pub re: f64,
    /// Imaginary part.
    pub im: f64,
}

impl Complex64 {
    /// `re + i im`.
    #[inline(always)]
    pub const fn new(re: f64, im: f64) -> Self {
        Self { re, im }
    }

    #[inline(always)]
    fn scale(self, factor: f64) -> Self {
        Self::new(self.re * factor, self.im * factor)
    }

    /// z^w in the right half plane, from the real power of the real part and a turn by ln(1 + i im/re).
    fn power_right(self, w: Self) -> Self {
        let ratio = self.im / self.re;
        let log_turn = Self::new(0.5 * double::ln_1p(ratio * ratio), double::atan(ratio));
        let mut exponent = w * log_turn;
        if w.im != 0.0 {
            exponent += Self::new(0.0, w.im * double::ln(self.re));
        }
        exponent.exp().scale(double::powf(self.re, w.re))
    }
}

impl From<f64> for Complex64 {
    #[inline(always)]
    fn from(re: f64) -> Self {
        Self::new(re, 0.0)
    }
}

impl Add for Complex64 {
    type Output = Self;
    #[inline(always)]
    fn add(self, b: Self) -> Self {
        Self::new(self.re + b.re, self.im + b.im)
    }
}

impl Sub for Complex64 {
    type Output = Self;
    #[inline(always)]
    fn sub(self, b: Self) -> Self {
        Self::new(self.re - b.re, self.im - b.im)
    }
}

impl Mul for Complex64 {
    type Output = Self;
    #[inline(always)]
    fn mul(self, b: Self) -> Self {
        Self::new(self.re * b.re - self.im * b.im, self.re * b.im + self.im * b.re)
    }
}

impl Div for Complex64 {
    type Output = Self;
    /// By the larger part of the divisor [Smith 1962, Algorithm 116].
    #[inline]
    fn div(self, b: Self) -> Self {
        if b.re.abs() >= b.im.abs() {
            let ratio = b.im / b.re;
            let divisor = b.re + b.im * ratio;
            // 0/0 in `ratio` makes every division by zero NaN in both parts, where the real one would be infinite.
            Self::new(
                (self.re + self.im * ratio) / divisor,
                (self.im - self.re * ratio) / divisor,
            )
        } else {
            let ratio = b.re / b.im;
            let divisor = b.re * ratio + b.im;
            Self::new(
                (self.re * ratio + self.im) / divisor,
                (self.im * ratio - self.re) / divisor,
            )
        }
    }
}

impl Neg for Complex64 {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        Self::new(-self.re, -self.im)
    }
}

macro_rules! assign {
    ($($trait:ident $method:ident $operator:tt;)+) => {
        $(
            impl $trait for Complex64 {
                #[inline(always)]
                fn $method(&mut self, b: Self) {
                    *self = *self $operator b;
                }
            }
        )+
    };
}
assign! {
    AddAssign add_assign +;
    SubAssign sub_assign -;
    MulAssign mul_assign *;
    DivAssign div_assign /;
}

impl Scalar for Complex64 {
    const ZERO: Self = Self::new(0.0, 0.0);
    const ONE: Self = Self::new(1.0, 0.0);
    const EPSILON: f64 = f64::EPSILON;

    #[inline(always)]
    fn from_f64(x: f64) -> Self {
        Self::new(x, 0.0)
    }
    #[inline(always)]
    fn real(self) -> f64 {
        self.re
    }
    #[inline(always)]
    fn is_finite(self) -> bool {
        self.re.is_finite() && self.im.is_finite()
    }

    fn sqrt(self) -> Self {
        let modulus = double::hypot(self.re, self.im);
        if modulus == 0.0 {
            self
        } else if self.re >= 0.0 {
            let re = double::sqrt(0.5 * (modulus + self.re));
            Self::new(re, 0.5 * self.im / re)
        } else {
            let im = double::sqrt(0.5 * (modulus - self.re)).copysign(self.im);
            Self::new(0.5 * self.im / im, im)
        }
    }

    fn sin(self) -> Self {
        Self::new(
            double::sin(self.re) * double::cosh(self.im),
            double::cos(self.re) * double::sinh(self.im),
        )
    }

    fn cos(self) -> Self {
        Self::new(
            double::cos(self.re) * double::cosh(self.im),
            -double::sin(self.re) * double::sinh(self.im),
        )
    }

    fn tan(self) -> Self {
        let (t, h) = (double::tan(self.re), double::tanh(self.im));
        Self::new(t, h) / Self::new(1.0, -t * h)
    }

    fn asin(self) -> Self {
        self.atan2(((Self::ONE - self) * (Self::ONE + self)).sqrt())
    }

    fn acos(self) -> Self {
        ((Self::ONE - self) * (Self::ONE + self)).sqrt().atan2(self)
    }

    /// (ln(1 + iz) − ln(1 − iz)) / 2i, its parts written out.
    fn atan(self) -> Self {
        let (a, b) = (self.re, self.im);
        let re = 0.5 * (double::atan2(a, 1.0 - b) + double::atan2(a, 1.0 + b));
        let im = 0.25 * double::ln_1p(4.0 * b / (a * a + (1.0 - b) * (1.0 - b)));
        Self::new(re, im)
    }

    /// Turns the point onto the real x axis by the real angle; what is left is the inverse tangent of a quotient
    /// whose numerator is imaginary.
    fn atan2(self, x: Self) -> Self {
        let y = self;
        let angle = double::atan2(y.re, x.re);
        let radius = double::hypot(x.re, y.re);
        if radius == 0.0 {
            // The real function is not differentiable here; without a perturbation its value is still defined.
            return if x.im == 0.0 && y.im == 0.0 {
                Self::from_f64(angle)
            } else {
                (y / x).atan()
            };
        }
        let (sin, cos) = (y.re / radius, x.re / radius);
        let along = Self::new(radius, x.im * cos + y.im * sin);
        let across = Self::new(0.0, y.im * cos - x.im * sin);
        Self::from_f64(angle) + (across / along).atan()
    }

    fn exp(self) -> Self {
        Self::new(double::cos(self.im), double::sin(self.im)).scale(double::exp(self.re))
    }

    fn ln(self) -> Self {
        Self::new(
            double::ln(double::hypot(self.re, self.im)),
            double::atan2(self.im, self.re),
        )
    }

    /// A negative base is allowed where it is for real numbers, with an integer exponent; elsewhere the principal
    /// value.
    fn powf(self, exponent: Self) -> Self {
        if self.im == 0.0 && exponent.im == 0.0 {
            Self::from_f64(double::powf(self.re, exponent.re))
        } else if self.re > 0.0 {
            self.power_right(exponent)
        } else if self.re < 0.0 && exponent.im == 0.0 && double::floor(exponent.re) == exponent.re {
            let odd = double::floor(0.5 * exponent.re) * 2.0 != exponent.re;
            let power = (-self).power_right(exponent);
            if odd { -power } else { power }
        } else {
            (exponent * self.ln()).exp()
        }
    }

    fn sinh(self) -> Self {
        Self::new(
            double::sinh(self.re) * double::cos(self.im),
            double::cosh(self.re) * double::sin(self.im),
        )
    }

    fn cosh(self) -> Self {
        Self::new(
            double::cosh(self.re) * double::cos(self.im),
            double::sinh(self.re) * double::sin(self.im),
        )
    }

    fn tanh(self) -> Self {
        let (h, t) = (double::tanh(self.re), double::tan(self.im));
        Self::new(h, t) / Self::new(1.0, h * t)
    }

    #[inline(always)]
    fn abs(self) -> Self {
        if self.re < 0.0 { -self } else { self }
    }

    #[inline(always)]
    fn floor(self) -> Self {
        Self::from_f64(double::floor(self.re))
    }

    #[inline(always)]
    fn mul_add(self, b: Self, c: Self) -> Self {
        self * b + c
    }
}
