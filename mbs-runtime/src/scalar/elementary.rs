//! The only place where elementary functions of floating-point numbers come from: `std`, or `libm` without it.

macro_rules! functions {
    ($module:ident, $float:ty, $($name:ident => $libm:ident ( $($argument:ident),+ );)+) => {
        pub(crate) mod $module {
            $(
                #[inline(always)]
                pub(crate) fn $name($($argument: $float),+) -> $float {
                    #[cfg(feature = "std")]
                    {
                        <$float>::$name($($argument),+)
                    }
                    #[cfg(not(feature = "std"))]
                    {
                        libm::$libm($($argument),+)
                    }
                }
            )+

            /// One rounding only where the target has the instruction: an emulated one would be slow, and without
            /// `std` the compiler's intrinsic cannot be reached.
            #[inline(always)]
            pub(crate) fn mul_add(a: $float, b: $float, c: $float) -> $float {
                #[cfg(all(feature = "std", target_feature = "fma"))]
                {
                    a.mul_add(b, c)
                }
                #[cfg(not(all(feature = "std", target_feature = "fma")))]
                {
                    a * b + c
                }
            }
        }
    };
}

functions! { double, f64,
    sqrt => sqrt(x);
    sin => sin(x);
    cos => cos(x);
    tan => tan(x);
    asin => asin(x);
    acos => acos(x);
    atan => atan(x);
    atan2 => atan2(y, x);
    exp => exp(x);
    ln => log(x);
    ln_1p => log1p(x);
    powf => pow(x, exponent);
    sinh => sinh(x);
    cosh => cosh(x);
    tanh => tanh(x);
    floor => floor(x);
    hypot => hypot(x, y);
}

functions! { single, f32,
    sqrt => sqrtf(x);
    sin => sinf(x);
    cos => cosf(x);
    tan => tanf(x);
    asin => asinf(x);
    acos => acosf(x);
    atan => atanf(x);
    atan2 => atan2f(y, x);
    exp => expf(x);
    ln => logf(x);
    powf => powf(x, exponent);
    sinh => sinhf(x);
    cosh => coshf(x);
    tanh => tanhf(x);
    floor => floorf(x);
}
