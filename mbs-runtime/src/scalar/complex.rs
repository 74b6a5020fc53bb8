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
    /// By a real divisor part by part, so that real quotients keep their bits; otherwise by the larger part of
    /// the divisor [Smith 1962, Algorithm 116].
    #[inline]
    fn div(self, b: Self) -> Self {
        if b.im == 0.0 {
            Self::new(self.re / b.re, self.im / b.re)
        } else if b.re.abs() >= b.im.abs() {
            let ratio = b.im / b.re;
            let divisor = b.re + b.im * ratio;
            Self::new((self.re + self.im * ratio) / divisor, (self.im - self.re * ratio) / divisor)
        } else {
            let ratio = b.re / b.im;
            let divisor = b.re * ratio + b.im;
            Self::new((self.re * ratio + self.im) / divisor, (self.im * ratio - self.re) / divisor)
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
    const MIN_POSITIVE: f64 = f64::MIN_POSITIVE;
    const REAL: bool = false;

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
        Self::new(double::sin(self.re) * double::cosh(self.im), double::cos(self.re) * double::sinh(self.im))
    }

    fn cos(self) -> Self {
        Self::new(double::cos(self.re) * double::cosh(self.im), -double::sin(self.re) * double::sinh(self.im))
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
            return if x.im == 0.0 && y.im == 0.0 { Self::from_f64(angle) } else { (y / x).atan() };
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
        Self::new(double::ln(double::hypot(self.re, self.im)), double::atan2(self.im, self.re))
    }

    /// A negative base is allowed where it is for real numbers, with an integer exponent; elsewhere the principal
    /// value.
    fn powf(self, exponent: Self) -> Self {
        if self.im == 0.0 && exponent.im == 0.0 {
            Self::from_f64(double::powf(self.re, exponent.re))
        } else if self.re > 0.0 {
            self.power_right(exponent)
        } else if self.re == 0.0 && self.im == 0.0 {
            // The slope by the exponent is 0 where the power is.
            Self::from_f64(double::powf(0.0, exponent.re))
        } else if self.re < 0.0 && exponent.im == 0.0 && double::floor(exponent.re) == exponent.re {
            let odd = double::floor(0.5 * exponent.re) * 2.0 != exponent.re;
            let power = (-self).power_right(exponent);
            if odd { -power } else { power }
        } else {
            (exponent * self.ln()).exp()
        }
    }

    fn sinh(self) -> Self {
        Self::new(double::sinh(self.re) * double::cos(self.im), double::cosh(self.re) * double::sin(self.im))
    }

    fn cosh(self) -> Self {
        Self::new(double::cosh(self.re) * double::cos(self.im), double::sinh(self.re) * double::sin(self.im))
    }

    /// Without the cancellation in 1 − tanh² [Kahan 1987, Branch cuts, CTANH].
    fn tanh(self) -> Self {
        let (a, b) = (self.re, self.im);
        if a.abs() > 20.0 {
            // 1 − tanh² is 4 e^(−2|a|) to rounding.
            let im = 4.0 * double::sin(b) * double::cos(b) * double::exp(-2.0 * a.abs());
            return Self::new(double::tanh(a), im);
        }
        let (t, s) = (double::tan(b), double::sinh(a));
        let beta = 1.0 + t * t;
        let divisor = 1.0 + beta * s * s;
        let re = if beta == 1.0 { double::tanh(a) } else { beta * double::cosh(a) * s / divisor };
        Self::new(re, t / divisor)
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

#[cfg(test)]
mod tests {
    use super::*;

    const TINY: f64 = 1e-200;

    /// Value and derivative of `f` at `x`, against the real function and a derivative written by hand.
    fn check(name: &str, x: f64, f: impl Fn(Complex64) -> Complex64, real: f64, derivative: f64) {
        let found = f(Complex64::new(x, TINY));
        let close = |a: f64, b: f64| (a - b).abs() <= 16.0 * f64::EPSILON * b.abs();
        assert!(close(found.re, real), "{name}({x}) = {} not {real}", found.re);
        assert!(close(found.im / TINY, derivative), "{name}'({x}) = {} not {derivative}", found.im / TINY);
    }

    #[test]
    fn functions_continue_the_real_ones() {
        for x in [-2.5_f64, -0.75, -0.1, 0.2, 0.6, 1.9, 30.0] {
            check("sin", x, Scalar::sin, x.sin(), x.cos());
            check("cos", x, Scalar::cos, x.cos(), -x.sin());
            check("tan", x, Scalar::tan, x.tan(), 1.0 + x.tan() * x.tan());
            check("atan", x, Scalar::atan, x.atan(), 1.0 / (1.0 + x * x));
            check("exp", x, Scalar::exp, x.exp(), x.exp());
            check("sinh", x, Scalar::sinh, x.sinh(), x.cosh());
            check("cosh", x, Scalar::cosh, x.cosh(), x.sinh());
            check("tanh", x, Scalar::tanh, x.tanh(), 1.0 / (x.cosh() * x.cosh()));
            check("abs", x, Scalar::abs, x.abs(), x.signum());
            check("floor", x, Scalar::floor, x.floor(), 0.0);
            check("sign", x, Scalar::sign, x.signum(), 0.0);
            for n in [-3.0, -2.0, 1.0, 2.0, 5.0] {
                let power = |z: Complex64| z.powf(Complex64::from_f64(n));
                check("power", x, power, x.powf(n), n * x.powf(n - 1.0));
            }
            check("quotient", x, |z| Complex64::ONE / z, 1.0 / x, -1.0 / (x * x));
        }
        for x in [0.2_f64, 0.6, 1.9, 30.0] {
            check("sqrt", x, Scalar::sqrt, x.sqrt(), 0.5 / x.sqrt());
            check("ln", x, Scalar::ln, x.ln(), 1.0 / x);
            check("power", x, |z| z.powf(Complex64::from_f64(1.7)), x.powf(1.7), 1.7 * x.powf(0.7));
            let base = Complex64::from_f64(2.5);
            check("power of base", x, |z| base.powf(z), 2.5_f64.powf(x), 2.5_f64.powf(x) * 2.5_f64.ln());
        }
        for x in [-0.99_f64, -0.5, 0.0, 0.3, 0.95] {
            let root = ((1.0 - x) * (1.0 + x)).sqrt();
            check("asin", x, Scalar::asin, x.asin(), 1.0 / root);
            check("acos", x, Scalar::acos, x.acos(), -1.0 / root);
        }
    }

    #[test]
    fn the_angle_of_two_variables_is_analytic_all_round() {
        for k in 0..16 {
            let angle = -3.1 + 0.4 * f64::from(k);
            let (y, x) = (2.0 * angle.sin(), 2.0 * angle.cos());
            check("atan2 by y", y, |y| y.atan2(Complex64::from_f64(x)), y.atan2(x), x / 4.0);
            check("atan2 by x", x, |x| Complex64::from_f64(y).atan2(x), y.atan2(x), -y / 4.0);
        }
        assert_eq!(Complex64::ZERO.atan2(Complex64::ZERO), Complex64::ZERO);
    }

    /// Away from the real axis too: f(f⁻¹(z)) = z with parts of equal size.
    #[test]
    fn inverse_functions_invert() {
        let close = |a: Complex64, b: Complex64| (a - b).re.abs() < 1e-14 && (a - b).im.abs() < 1e-14;
        for (re, im) in [(0.3, 0.4), (-0.7, 0.2), (0.5, -0.6), (-0.4, -0.3), (1.2, 0.5)] {
            let z = Complex64::new(re, im);
            assert!(close(z.sqrt() * z.sqrt(), z), "{z:?}");
            assert!(close(z.ln().exp(), z), "{z:?}");
            assert!(close(z.asin().sin(), z), "{z:?}");
            assert!(close(z.acos().cos(), z), "{z:?}");
            assert!(close(z.atan().tan(), z), "{z:?}");
            assert!(close(z / Complex64::new(0.2, -0.9) * Complex64::new(0.2, -0.9), z), "{z:?}");
            assert!(close(z.powf(Complex64::new(0.5, 0.0)), z.sqrt()), "{z:?}");
            let (w, three) = (Complex64::new(0.3, 0.8), Complex64::from_f64(3.0));
            assert!(close(z.powf(w), (w * z.ln()).exp()), "{z:?}");
            assert!(close(z.powf(three), z * z * z), "{z:?}");
            assert!(close(z.tanh(), z.sinh() / z.cosh()), "{z:?}");
        }
    }

    #[test]
    fn powers_of_zero() {
        let tiny = Complex64::new(0.0, TINY);
        let power = |w: f64| tiny.powf(Complex64::from_f64(w));
        assert_eq!(power(2.0).re, 0.0);
        assert_eq!(power(2.0).im, 0.0);
        assert!((power(1.0).im / TINY - 1.0).abs() < 1e-12);
        assert_eq!(Complex64::ZERO.powf(Complex64::ZERO), Complex64::ONE);
    }
}
