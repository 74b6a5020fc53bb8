//! `f64` and `f32` as scalars.

use super::{Scalar, elementary};

macro_rules! float {
    ($float:ty, $functions:ident) => {
        impl Scalar for $float {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const EPSILON: f64 = <$float>::EPSILON as f64;

            #[inline(always)]
            fn from_f64(x: f64) -> Self {
                x as $float
            }
            #[inline(always)]
            fn real(self) -> f64 {
                f64::from(self)
            }
            #[inline(always)]
            fn is_finite(self) -> bool {
                <$float>::is_finite(self)
            }
            #[inline(always)]
            fn abs(self) -> Self {
                <$float>::abs(self)
            }

            float!(@one $functions: sqrt sin cos tan asin acos atan exp ln sinh cosh tanh floor);

            #[inline(always)]
            fn atan2(self, x: Self) -> Self {
                elementary::$functions::atan2(self, x)
            }
            #[inline(always)]
            fn powf(self, exponent: Self) -> Self {
                elementary::$functions::powf(self, exponent)
            }
            #[inline(always)]
            fn mul_add(self, b: Self, c: Self) -> Self {
                elementary::$functions::mul_add(self, b, c)
            }
        }
    };
    (@one $functions:ident: $($name:ident)+) => {
        $(
            #[inline(always)]
            fn $name(self) -> Self {
                elementary::$functions::$name(self)
            }
        )+
    };
}

float!(f64, double);
float!(f32, single);
