//! The numbers an interpreter computes with: real, or complex for complex-step differentiation.
//!
//! Complex arithmetic is the analytic continuation of the real one: comparisons, signs and indices look at
//! the real part, `abs` is ±a. For tanh, asin, acos, atan and atan2 the imaginary part is taken to first order, which is
//! exact to rounding for the tiny imaginary parts of a complex step (below 1e-10).

use super::node::{BinaryOp, Comparison, UnaryOp};
use std::fmt::Debug;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// A number the graph can be evaluated with.
pub trait Number:
    Copy
    + Debug
    + Default
    + PartialEq
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    /// A real constant.
    fn constant(value: f64) -> Self;
    /// The real part: decisions look at it.
    fn real(self) -> f64;
    /// An elementary function.
    fn unary(op: UnaryOp, a: Self) -> Self;
    /// An operation of two operands.
    fn binary(op: BinaryOp, a: Self, b: Self) -> Self;
}

/// Whether the comparison holds, on real parts.
pub fn compare<N: Number>(comparison: Comparison, a: N, b: N) -> bool {
    match comparison {
        Comparison::Less => a.real() < b.real(),
        Comparison::LessEqual => a.real() <= b.real(),
        Comparison::Equal => a.real() == b.real(),
    }
}

/// array\[index\], the index floored and clamped; 0 for an index that is not a number.
pub fn gather_index(index: f64, len: usize) -> usize {
    // `as` saturates and sends NaN to 0.
    (index as usize).min(len.saturating_sub(1))
}

/// The largest i in 0..=n−2 with knots\[i\] ≤ x, or 0.
pub fn locate<N: Number>(knots: &[N], x: N) -> usize {
    let inner = knots.get(1..knots.len().saturating_sub(1)).unwrap_or(&[]);
    inner.partition_point(|k| k.real() <= x.real())
}

impl Number for f64 {
    fn constant(value: f64) -> f64 {
        value
    }

    fn real(self) -> f64 {
        self
    }

    fn unary(op: UnaryOp, a: f64) -> f64 {
        match op {
            UnaryOp::Neg => -a,
            UnaryOp::Sqrt => a.sqrt(),
            UnaryOp::Sin => a.sin(),
            UnaryOp::Cos => a.cos(),
            UnaryOp::Tan => a.tan(),
            UnaryOp::Asin => a.asin(),
            UnaryOp::Acos => a.acos(),
            UnaryOp::Atan => a.atan(),
            UnaryOp::Exp => a.exp(),
            UnaryOp::Ln => a.ln(),
            UnaryOp::Sinh => a.sinh(),
            UnaryOp::Cosh => a.cosh(),
            UnaryOp::Tanh => a.tanh(),
            UnaryOp::Abs => a.abs(),
            UnaryOp::Sign => real_sign(a),
        }
    }

    fn binary(op: BinaryOp, a: f64, b: f64) -> f64 {
        match op {
            BinaryOp::Add => a + b,
            BinaryOp::Sub => a - b,
            BinaryOp::Mul => a * b,
            BinaryOp::Div => a / b,
            BinaryOp::Pow => a.powf(b),
            BinaryOp::Atan2 => a.atan2(b),
            BinaryOp::Min => {
                if b < a {
                    b
                } else {
                    a
                }
            }
            BinaryOp::Max => {
                if b > a {
                    b
                } else {
                    a
                }
            }
        }
    }
}

fn real_sign(a: f64) -> f64 {
    if a > 0.0 {
        1.0
    } else if a < 0.0 {
        -1.0
    } else {
        0.0
    }
}

/// A complex number, for complex-step derivatives.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Complex {
    /// Real part.
    pub re: f64,
    /// Imaginary part.
    pub im: f64,
}

impl Complex {
    /// re + i im
    pub fn new(re: f64, im: f64) -> Complex {
        Complex { re, im }
    }

    /// f(x + iy) ≈ f(x) + i y f'(x)
    fn first_order(self, value: f64, derivative: f64) -> Complex {
        Complex::new(value, self.im * derivative)
    }

    fn exp(self) -> Complex {
        let r = self.re.exp();
        Complex::new(r * self.im.cos(), r * self.im.sin())
    }

    fn ln(self) -> Complex {
        Complex::new(self.re.hypot(self.im).ln(), self.im.atan2(self.re))
    }

    fn sqrt(self) -> Complex {
        // Principal branch without cancellation: the larger part first.
        let modulus = self.re.hypot(self.im);
        if modulus == 0.0 {
            return Complex::default();
        }
        if self.re >= 0.0 {
            let re = (0.5 * (modulus + self.re)).sqrt();
            Complex::new(re, self.im / (2.0 * re))
        } else {
            let im = (0.5 * (modulus - self.re)).sqrt().copysign(self.im);
            Complex::new(self.im / (2.0 * im), im)
        }
    }

    fn sinh(self) -> Complex {
        Complex::new(self.re.sinh() * self.im.cos(), self.re.cosh() * self.im.sin())
    }

    fn cosh(self) -> Complex {
        Complex::new(self.re.cosh() * self.im.cos(), self.re.sinh() * self.im.sin())
    }
}

impl Add for Complex {
    type Output = Complex;
    fn add(self, b: Complex) -> Complex {
        Complex::new(self.re + b.re, self.im + b.im)
    }
}

impl Sub for Complex {
    type Output = Complex;
    fn sub(self, b: Complex) -> Complex {
        Complex::new(self.re - b.re, self.im - b.im)
    }
}

impl Mul for Complex {
    type Output = Complex;
    fn mul(self, b: Complex) -> Complex {
        Complex::new(self.re * b.re - self.im * b.im, self.re * b.im + self.im * b.re)
    }
}

impl Div for Complex {
    type Output = Complex;
    fn div(self, b: Complex) -> Complex {
        let d = b.re * b.re + b.im * b.im;
        Complex::new((self.re * b.re + self.im * b.im) / d, (self.im * b.re - self.re * b.im) / d)
    }
}

impl Neg for Complex {
    type Output = Complex;
    fn neg(self) -> Complex {
        Complex::new(-self.re, -self.im)
    }
}

impl Number for Complex {
    fn constant(value: f64) -> Complex {
        Complex::new(value, 0.0)
    }

    fn real(self) -> f64 {
        self.re
    }

    fn unary(op: UnaryOp, a: Complex) -> Complex {
        match op {
            UnaryOp::Neg => -a,
            UnaryOp::Sqrt => a.sqrt(),
            UnaryOp::Sin => Complex::new(a.re.sin() * a.im.cosh(), a.re.cos() * a.im.sinh()),
            UnaryOp::Cos => Complex::new(a.re.cos() * a.im.cosh(), -a.re.sin() * a.im.sinh()),
            UnaryOp::Tan => Complex::unary(UnaryOp::Sin, a) / Complex::unary(UnaryOp::Cos, a),
            UnaryOp::Asin => a.first_order(a.re.asin(), 1.0 / (1.0 - a.re * a.re).sqrt()),
            UnaryOp::Acos => a.first_order(a.re.acos(), -1.0 / (1.0 - a.re * a.re).sqrt()),
            UnaryOp::Atan => a.first_order(a.re.atan(), 1.0 / (1.0 + a.re * a.re)),
            UnaryOp::Exp => a.exp(),
            UnaryOp::Ln => a.ln(),
            UnaryOp::Sinh => a.sinh(),
            UnaryOp::Cosh => a.cosh(),
            UnaryOp::Tanh => a.first_order(a.re.tanh(), 1.0 - a.re.tanh().powi(2)),
            UnaryOp::Abs => {
                if a.re < 0.0 {
                    -a
                } else {
                    a
                }
            }
            UnaryOp::Sign => Complex::constant(real_sign(a.re)),
        }
    }

    fn binary(op: BinaryOp, a: Complex, b: Complex) -> Complex {
        match op {
            BinaryOp::Add => a + b,
            BinaryOp::Sub => a - b,
            BinaryOp::Mul => a * b,
            BinaryOp::Div => a / b,
            // The slope by the exponent is 0 where the power is.
            BinaryOp::Pow if a == Complex::default() => Complex::constant(0.0_f64.powf(b.re)),
            BinaryOp::Pow => (b * a.ln()).exp(),
            // atan2(y, x) to first order: d = (x dy − y dx)/(x² + y²)
            BinaryOp::Atan2 => {
                let square = a.re * a.re + b.re * b.re;
                Complex::new(a.re.atan2(b.re), (b.re * a.im - a.re * b.im) / square)
            }
            BinaryOp::Min => {
                if b.re < a.re {
                    b
                } else {
                    a
                }
            }
            BinaryOp::Max => {
                if b.re > a.re {
                    b
                } else {
                    a
                }
            }
        }
    }
}
