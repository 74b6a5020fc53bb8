//! Numbers with a derivative, over any scalar: derivatives of any order by nesting.

use std::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Sub, SubAssign};

use mbs_runtime::Scalar;

/// value + slope τ, with τ² = 0.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Dual<S> {
    pub(crate) value: S,
    pub(crate) slope: S,
}

impl<S: Scalar> Dual<S> {
    pub(crate) fn new(value: S, slope: S) -> Self {
        Self { value, slope }
    }

    fn chain(self, value: S, derivative: S) -> Self {
        Self::new(value, derivative * self.slope)
    }
}

impl<S: Scalar> Add for Dual<S> {
    type Output = Self;
    fn add(self, b: Self) -> Self {
        Self::new(self.value + b.value, self.slope + b.slope)
    }
}

impl<S: Scalar> Sub for Dual<S> {
    type Output = Self;
    fn sub(self, b: Self) -> Self {
        Self::new(self.value - b.value, self.slope - b.slope)
    }
}

impl<S: Scalar> Mul for Dual<S> {
    type Output = Self;
    fn mul(self, b: Self) -> Self {
        Self::new(self.value * b.value, self.value * b.slope + self.slope * b.value)
    }
}

impl<S: Scalar> Div for Dual<S> {
    type Output = Self;
    fn div(self, b: Self) -> Self {
        let value = self.value / b.value;
        Self::new(value, (self.slope - value * b.slope) / b.value)
    }
}

impl<S: Scalar> Neg for Dual<S> {
    type Output = Self;
    fn neg(self) -> Self {
        Self::new(-self.value, -self.slope)
    }
}

macro_rules! assign {
    ($($trait:ident $method:ident $operator:tt;)+) => {
        $(
            impl<S: Scalar> $trait for Dual<S> {
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

impl<S: Scalar> Scalar for Dual<S> {
    const ZERO: Self = Self { value: S::ZERO, slope: S::ZERO };
    const ONE: Self = Self { value: S::ONE, slope: S::ZERO };
    const EPSILON: f64 = S::EPSILON;
    const MIN_POSITIVE: f64 = S::MIN_POSITIVE;
    const REAL: bool = false;

    fn from_f64(x: f64) -> Self {
        Self::new(S::from_f64(x), S::ZERO)
    }
    fn real(self) -> f64 {
        self.value.real()
    }
    fn is_finite(self) -> bool {
        self.value.is_finite() && self.slope.is_finite()
    }
    fn sqrt(self) -> Self {
        let root = self.value.sqrt();
        self.chain(root, S::from_f64(0.5) / root)
    }
    fn sin(self) -> Self {
        self.chain(self.value.sin(), self.value.cos())
    }
    fn cos(self) -> Self {
        self.chain(self.value.cos(), -self.value.sin())
    }
    fn tan(self) -> Self {
        let tan = self.value.tan();
        self.chain(tan, S::ONE + tan * tan)
    }
    fn asin(self) -> Self {
        self.chain(self.value.asin(), S::ONE / (S::ONE - self.value * self.value).sqrt())
    }
    fn acos(self) -> Self {
        self.chain(self.value.acos(), -S::ONE / (S::ONE - self.value * self.value).sqrt())
    }
    fn atan(self) -> Self {
        self.chain(self.value.atan(), S::ONE / (S::ONE + self.value * self.value))
    }
    fn atan2(self, x: Self) -> Self {
        let square = self.value * self.value + x.value * x.value;
        Self::new(self.value.atan2(x.value), (x.value * self.slope - self.value * x.slope) / square)
    }
    fn exp(self) -> Self {
        self.chain(self.value.exp(), self.value.exp())
    }
    fn ln(self) -> Self {
        self.chain(self.value.ln(), S::ONE / self.value)
    }
    fn powf(self, exponent: Self) -> Self {
        (exponent * self.ln()).exp()
    }
    fn sinh(self) -> Self {
        self.chain(self.value.sinh(), self.value.cosh())
    }
    fn cosh(self) -> Self {
        self.chain(self.value.cosh(), self.value.sinh())
    }
    fn tanh(self) -> Self {
        let tanh = self.value.tanh();
        self.chain(tanh, S::ONE - tanh * tanh)
    }
    fn abs(self) -> Self {
        if self.real() < 0.0 { -self } else { self }
    }
    fn floor(self) -> Self {
        Self::new(self.value.floor(), S::ZERO)
    }
    fn mul_add(self, b: Self, c: Self) -> Self {
        self * b + c
    }
}
