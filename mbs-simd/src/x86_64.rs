//! Packs as vectors of SSE2.
//!
//! Proof that the unsafe code below is sound. There are four kinds:
//!
//! - Calls of functions with a target feature are undefined where the processor does not have it. This module is compiled only where the target
//!   has SSE2 (`cfg` in `lib.rs`), and fused functions only where it has FMA. A program that is compiled for these features is already
//!   undefined on a processor without them, whatever it calls.
//! - These functions have the System V convention. Caller and callee are compiled by one compiler for a target with SSE2, so that vectors of 16
//!   bytes are passed in its registers; FMA changes nothing of that. Intrinsics do not unwind. Nothing relies on inlining.
//! - `__m128d` and `[f64; 2]` are transmuted into each other: both are 16 bytes, of which every pattern is a value, the first number first.
//! - `load` and `store` read and write 16 bytes at an entry of a slice, with the alignment of a double, after a check that two entries
//!   are there.
//!
//! Why so many functions: a vector is passed in memory, and the compiler's front end does not inline what has a target feature. One call
//! for each operation, which is small when LLVM inlines it, compiles a fifth faster than calls of several intrinsics. The System V
//! convention, which every system has under its own name, passes vectors in registers: the buggy compiles another tenth faster.
#![allow(unsafe_code)]

use core::arch::x86_64 as x86;
use core::mem::transmute;

/// Two numbers.
#[derive(Clone, Copy, Debug)]
pub struct Pack(x86::__m128d);

/// A vector with the alignment of a double.
#[repr(C, packed(8))]
struct Unaligned(x86::__m128d);

/// (a, b)
#[inline(always)]
pub fn join(a: f64, b: f64) -> Pack {
    // SAFETY: 16 bytes of which every pattern is a value.
    Pack(unsafe { transmute::<[f64; 2], x86::__m128d>([a, b]) })
}

#[inline(always)]
fn numbers(x: Pack) -> [f64; 2] {
    // SAFETY: as in `join`.
    unsafe { transmute::<x86::__m128d, [f64; 2]>(x.0) }
}

/// The first number.
#[inline(always)]
pub fn first(x: Pack) -> f64 {
    numbers(x)[0]
}

/// The second number.
#[inline(always)]
pub fn second(x: Pack) -> f64 {
    numbers(x)[1]
}

/// Two neighbouring entries.
#[inline(always)]
pub fn load(values: &[f64], index: usize) -> Pack {
    assert!(index < values.len() && values.len() - index > 1, "a pack out of bounds");
    // SAFETY: both entries are in the slice, and aligned as doubles.
    Pack(unsafe { (*values.as_ptr().add(index).cast::<Unaligned>()).0 })
}

/// Writes two neighbouring entries.
#[inline(always)]
pub fn store(values: &mut [f64], index: usize, x: Pack) {
    assert!(index < values.len() && values.len() - index > 1, "a pack out of bounds");
    // SAFETY: as in `load`.
    unsafe { (*values.as_mut_ptr().add(index).cast::<Unaligned>()).0 = x.0 }
}

/// Functions that are safe to call, by intrinsics of a feature that the target has.
macro_rules! vector {
    ($feature:literal: $($(#[$doc:meta])* $name:ident($($argument:ident),+) = $value:expr;)+) => {
        $(
            $(#[$doc])*
            #[inline(always)]
            pub fn $name($($argument: super::Pack),+) -> super::Pack {
                #[inline]
                #[target_feature(enable = $feature)]
                #[allow(improper_ctypes_definitions, reason = "called from Rust only")]
                extern "sysv64" fn vector($($argument: x86::__m128d),+) -> x86::__m128d {
                    $value
                }
                // SAFETY: the target has the feature, as the proof above says.
                super::Pack(unsafe { vector($($argument.0),+) })
            }
        )+
    };
}

/// What every processor has.
pub(crate) mod operations {
    use core::arch::x86_64 as x86;

    vector! { "sse2":
        /// −x
        neg(x) = x86::_mm_xor_pd(x, x86::_mm_set1_pd(-0.0));
        /// a + b
        add(a, b) = x86::_mm_add_pd(a, b);
        /// a − b
        sub(a, b) = x86::_mm_sub_pd(a, b);
        /// a b
        mul(a, b) = x86::_mm_mul_pd(a, b);
        /// a / b
        div(a, b) = x86::_mm_div_pd(a, b);
    }
}

/// Products and sums, each rounded.
pub mod rounded_twice {
    use core::arch::x86_64 as x86;

    vector! { "sse2":
        /// a b + c
        mul_add(a, b, c) = x86::_mm_add_pd(x86::_mm_mul_pd(a, b), c);
        /// a b − c
        mul_sub(a, b, c) = x86::_mm_sub_pd(x86::_mm_mul_pd(a, b), c);
        /// c − a b
        neg_mul_add(a, b, c) = x86::_mm_sub_pd(c, x86::_mm_mul_pd(a, b));
    }
}

/// Products and sums, rounded once.
#[cfg(target_feature = "fma")]
pub mod rounded_once {
    use core::arch::x86_64 as x86;

    vector! { "fma":
        /// a b + c
        mul_add(a, b, c) = x86::_mm_fmadd_pd(a, b, c);
        /// a b − c
        mul_sub(a, b, c) = x86::_mm_fmsub_pd(a, b, c);
        /// c − a b
        neg_mul_add(a, b, c) = x86::_mm_fnmadd_pd(a, b, c);
    }
}
