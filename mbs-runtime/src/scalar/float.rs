//! `f64` and `f32` as scalars.

use super::{Scalar, elementary};

macro_rules! float {
    ($float:ty, $functions:ident $(, $doubles:ident)?) => {
        impl Scalar for $float {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const EPSILON: f64 = <$float>::EPSILON as f64;
            const MIN_POSITIVE: f64 = <$float>::MIN_POSITIVE as f64;
            const REAL: bool = true;

            #[inline(always)]
            fn from_f64(x: f64) -> Self {
                x as $float
            }
            #[inline(always)]
            fn real(self) -> f64 {
                f64::from(self)
            }
            $(float!(@$doubles);)?
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
    (@doubles) => {
        #[inline(always)]
        fn doubles(slice: &[Self]) -> Option<&[f64]> {
            Some(slice)
        }
        #[inline(always)]
        fn doubles_mut(slice: &mut [Self]) -> Option<&mut [f64]> {
            Some(slice)
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

float!(f64, double, doubles);
float!(f32, single);

#[cfg(test)]
mod tests {
    use super::Scalar;

    /// The branches that the generator's interpreter repeats.
    #[test]
    fn branches() {
        let nan = f64::NAN;
        assert_eq!(Scalar::sign(0.0), 0.0);
        assert_eq!(Scalar::sign(-0.0_f64).to_bits(), 0);
        assert_eq!([Scalar::sign(3.0), Scalar::sign(-1e-300), Scalar::sign(nan)], [1.0, -1.0, 0.0]);
        assert_eq!(Scalar::min(1.0, nan), 1.0);
        assert!(Scalar::min(nan, 1.0).is_nan());
        assert_eq!(Scalar::min(0.0, -0.0_f64).to_bits(), 0.0_f64.to_bits());
        assert_eq!(Scalar::max(-0.0, 0.0_f64).to_bits(), (-0.0_f64).to_bits());
        assert_eq!(f64::select_lt(1.0, 1.0, 2.0, 3.0), 3.0);
        assert_eq!(f64::select_le(1.0, 1.0, 2.0, 3.0), 2.0);
        assert_eq!(f64::select_eq(1.0, 1.0, 2.0, 3.0), 2.0);
        assert_eq!(f64::select_eq(nan, nan, 2.0, 3.0), 3.0);
    }

    #[test]
    fn sines_have_the_bits_of_the_separate_functions() {
        for k in 0..1000 {
            let x = 0.37 * f64::from(k);
            let (sin, cos) = Scalar::sin_cos(x);
            assert_eq!((sin.to_bits(), cos.to_bits()), (Scalar::sin(x).to_bits(), Scalar::cos(x).to_bits()));
        }
    }

    #[test]
    fn both_floats_know_their_rounding() {
        assert_eq!(<f32 as Scalar>::EPSILON, f64::from(f32::EPSILON));
        assert_eq!(f32::from_f64(0.1).real(), f64::from(0.1_f32));
        assert_eq!(Scalar::mul_add(2.0_f32, 3.0, 4.0), 10.0);
    }

    /// (1 + x)² − (1 + 2x) is x², which only one rounding keeps.
    #[test]
    fn products_are_fused_where_the_target_can() {
        let tiny = 1.0 / f64::from(1_u32 << 30);
        let rest = Scalar::mul_add(1.0 + tiny, 1.0 + tiny, -(1.0 + 2.0 * tiny));
        assert_eq!(rest, if crate::math::FUSED { tiny * tiny } else { 0.0 });
    }
}
