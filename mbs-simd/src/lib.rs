//! Two doubles as one vector: what packed bundles of generated solvers compute with.
//!
//! Every function acts lane by lane, so that each lane has the bits of the scalar operation; those of what is not a number mean nothing. On x86-64 a [`Pack`] is a vector register of
//! SSE2, which every such processor has; elsewhere it is an array, of which a compiler may make vectors.
//!
//! Safe Rust has no vectors of its own yet, and compilers find only some of them in arrays: the gradient of a vehicle took 1.2 times as long
//! with arrays as with vectors (`benches/README.md`). So the module of x86-64 calls intrinsics, with the proof that it may.
#![no_std]

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
#[path = "x86_64.rs"]
mod vector;
#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
#[path = "array.rs"]
mod vector;

pub use vector::operations::{add, div, mul, neg, sub};
#[cfg(all(target_arch = "x86_64", target_feature = "sse2", target_feature = "fma"))]
pub use vector::rounded_once;
pub use vector::{Pack, first, join, load, rounded_twice, second, store};

#[cfg(test)]
mod tests {
    use super::*;

    const NUMBERS: [f64; 9] = [0.0, -0.0, 1.0, -2.5, 0.1, 1e300, -3e-310, f64::INFINITY, f64::NAN];

    /// Bits of both lanes; of what is not a number, that it is none.
    fn bits(pack: Pack) -> [Option<u64>; 2] {
        [first(pack), second(pack)].map(|lane| (!lane.is_nan()).then_some(lane.to_bits()))
    }

    #[test]
    fn packs_are_loaded_and_stored_in_order() {
        let mut values = [1.0, 2.0, 3.0, 4.0];
        let pack = load(&values, 1);
        assert_eq!([first(pack), second(pack)], [2.0, 3.0]);
        store(&mut values, 2, pack);
        assert_eq!(values, [1.0, 2.0, 2.0, 3.0]);
    }

    #[test]
    #[should_panic(expected = "out of bounds")]
    fn a_pack_beyond_the_end_is_not_loaded() {
        load(&[1.0, 2.0, 3.0], 2);
    }

    #[test]
    #[should_panic(expected = "out of bounds")]
    fn a_place_that_overflows_is_not_loaded() {
        load(&[1.0, 2.0, 3.0], usize::MAX);
    }

    #[test]
    #[should_panic(expected = "out of bounds")]
    fn a_pack_beyond_the_end_is_not_stored() {
        store(&mut [1.0, 2.0, 3.0], 2, join(0.0, 0.0));
    }

    fn all_pairs(check: impl Fn([f64; 2], [f64; 2])) {
        for a in NUMBERS {
            for b in NUMBERS {
                check([a, b], [b, 0.3]);
            }
        }
    }

    #[test]
    fn lanes_have_the_bits_of_scalars() {
        all_pairs(|[a, b], [c, d]| {
            let (x, y) = (join(a, b), join(c, d));
            assert_eq!(bits(add(x, y)), bits(join(a + c, b + d)));
            assert_eq!(bits(sub(x, y)), bits(join(a - c, b - d)));
            assert_eq!(bits(mul(x, y)), bits(join(a * c, b * d)));
            assert_eq!(bits(div(x, y)), bits(join(a / c, b / d)));
            assert_eq!(bits(neg(x)), bits(join(-a, -b)));
            let z = join(0.7, a);
            assert_eq!(bits(rounded_twice::mul_add(x, y, z)), bits(join(a * c + 0.7, b * d + a)));
            assert_eq!(bits(rounded_twice::mul_sub(x, y, z)), bits(join(a * c - 0.7, b * d - a)));
            assert_eq!(bits(rounded_twice::neg_mul_add(x, y, z)), bits(join(0.7 - a * c, a - b * d)));
        });
    }

    #[test]
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2", target_feature = "fma"))]
    fn fused_lanes_have_the_bits_of_scalars() {
        extern crate std;
        all_pairs(|[a, b], [c, d]| {
            let (x, y, z) = (join(a, b), join(c, d), join(0.7, a));
            let fused = |a: f64, c, e| a.mul_add(c, e);
            assert_eq!(bits(rounded_once::mul_add(x, y, z)), bits(join(fused(a, c, 0.7), fused(b, d, a))));
            assert_eq!(bits(rounded_once::mul_sub(x, y, z)), bits(join(fused(a, c, -0.7), fused(b, d, -a))));
            assert_eq!(
                bits(rounded_once::neg_mul_add(x, y, z)),
                bits(join(fused(-a, c, 0.7), fused(-b, d, a)))
            );
        });
    }
}
