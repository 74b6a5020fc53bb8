//! The only place where elementary functions of floating-point numbers come from, but for `portable`: `std`, or `libm` without it.
//!
//! Stable Rust has fused multiply-add in `std` alone; `core` has it behind `core_float_math`, which the feature `nightly` unlocks.

macro_rules! functions {
    ($module:ident, $float:ident, $fused:meta, $($name:ident => $libm:ident ( $($argument:ident),+ );)+) => {
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

            /// Whether `mul_add` rounds once.
            #[allow(dead_code, reason = "asked of doubles")]
            pub(crate) const FUSED: bool = cfg!(all(any(feature = "std", feature = "nightly"), $fused));

            /// One rounding only where the target has the instruction: an emulated one would be slow.
            #[inline(always)]
            pub(crate) fn mul_add(a: $float, b: $float, c: $float) -> $float {
                #[cfg(all(feature = "nightly", $fused))]
                {
                    core::$float::math::mul_add(a, b, c)
                }
                #[cfg(all(feature = "std", not(feature = "nightly"), $fused))]
                {
                    a.mul_add(b, c)
                }
                #[cfg(not(all(any(feature = "std", feature = "nightly"), $fused)))]
                {
                    a * b + c
                }
            }
        }
    };
}

// Where the instruction is. Of ARM and RISC-V only an unstable compiler tells: vfp4; a Cortex-M with a floating-point unit, in which
// vfp2 stands for doubles; the extensions F and D.
functions! { double, f64,
    any(
        target_feature = "fma",
        all(target_arch = "aarch64", target_feature = "neon"),
        all(target_arch = "arm", target_feature = "vfp4"),
        all(target_arch = "arm", target_abi = "eabihf", target_feature = "mclass", target_feature = "vfp2"),
        all(any(target_arch = "riscv32", target_arch = "riscv64"), target_feature = "d"),
    ),
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
    any(
        target_feature = "fma",
        all(target_arch = "aarch64", target_feature = "neon"),
        all(target_arch = "arm", target_feature = "vfp4"),
        all(target_arch = "arm", target_abi = "eabihf", target_feature = "mclass"),
        all(any(target_arch = "riscv32", target_arch = "riscv64"), target_feature = "f"),
    ),
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
