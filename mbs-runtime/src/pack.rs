//! Two numbers at a time: what generated bundles in packed form call. Each lane has the bits of the scalar operation.

use crate::math;
pub use mbs_simd::{Pack, add, div, first, join, load, mul, neg, second, store, sub};

/// Where products and sums of vectors are rounded once, as [`math::mul_add`] rounds then.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2", target_feature = "fma"))]
use mbs_simd::rounded_once;

/// The same by scalars, on other processors.
#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2", target_feature = "fma")))]
mod rounded_once {
    use super::{Pack, first, join, math, neg, second};

    #[inline(always)]
    pub(super) fn mul_add(a: Pack, b: Pack, c: Pack) -> Pack {
        let lane = |of: fn(Pack) -> f64| math::mul_add(of(a), of(b), of(c));
        join(lane(first), lane(second))
    }
    #[inline(always)]
    pub(super) fn mul_sub(a: Pack, b: Pack, c: Pack) -> Pack {
        mul_add(a, b, neg(c))
    }
    #[inline(always)]
    pub(super) fn neg_mul_add(a: Pack, b: Pack, c: Pack) -> Pack {
        mul_add(neg(a), b, c)
    }
}

macro_rules! rounded {
    ($($(#[$doc:meta])* $name:ident;)+) => {
        $(
            $(#[$doc])*
            #[inline(always)]
            pub fn $name(a: Pack, b: Pack, c: Pack) -> Pack {
                if math::FUSED { rounded_once::$name(a, b, c) } else { mbs_simd::rounded_twice::$name(a, b, c) }
            }
        )+
    };
}

rounded! {
    /// a b + c, with the rounding of [`math::mul_add`]
    mul_add;
    /// a b − c, with the same rounding
    mul_sub;
    /// c − a b, with the same rounding
    neg_mul_add;
}
