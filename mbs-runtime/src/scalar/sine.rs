//! Sine and cosine of one angle, together, without a call: joints turn, so solvers need little else.
//!
//! x = n π/2 + (y + e) with n the nearest integer, π/2 in four parts of 33 bits and more [Cody and Waite 1980]; then the
//! minimax polynomials of Sun's fdlibm, with their coefficients, on |y| ≤ π/4. Errors stay below one unit in the last
//! place. Angles of more than 1e5 radians, and what is not finite, go to the ordinary functions.

use super::elementary::double;

/// Above it n needs more bits than the parts of π/2 leave free.
const LARGEST: f64 = 1e5;
const TWO_OVER_PI: f64 = 6.366_197_723_675_813_8e-1;
/// π/2 = FIRST + SECOND + REST; products of the first two with n < 2^17 are exact.
const FIRST: f64 = 1.570_796_326_734_125_6;
const SECOND: f64 = 6.077_100_506_303_966e-11;
const REST: f64 = 2.022_266_248_795_950_6e-21;
/// 1.5 · 2^52: adding it rounds to an integer, which then stands in the lowest bits.
const ROUNDER: f64 = 6_755_399_441_055_744.0;

const SINE: [f64; 6] = [
    -1.666_666_666_666_663_2e-1,
    8.333_333_333_322_49e-3,
    -1.984_126_982_985_795e-4,
    2.755_731_370_707_006_8e-6,
    -2.505_076_025_340_686_3e-8,
    1.589_690_995_211_55e-10,
];
const COSINE: [f64; 6] = [
    4.166_666_666_666_66e-2,
    -1.388_888_888_887_411e-3,
    2.480_158_728_947_673e-5,
    -2.755_731_435_139_066_3e-7,
    2.087_572_321_298_175e-9,
    -1.135_964_755_778_819_5e-11,
];

/// (sin x, cos x)
#[inline(always)]
pub(super) fn sin_cos(x: f64) -> (f64, f64) {
    // NaN is not below anything.
    if x.abs() < LARGEST { reduced(x) } else { ordinary(x) }
}

#[cold]
#[inline(never)]
fn ordinary(x: f64) -> (f64, f64) {
    (double::sin(x), double::cos(x))
}

#[inline(always)]
fn reduced(x: f64) -> (f64, f64) {
    let shifted = x * TWO_OVER_PI + ROUNDER;
    let n = shifted - ROUNDER;
    let quadrant = shifted.to_bits();
    // y + e = x − n FIRST − n SECOND − n REST, each difference with what it lost
    let first = x - n * FIRST;
    let part = n * SECOND;
    let second = first - part;
    let lost = n * REST - ((first - second) - part);
    let y = second - lost;
    let e = (second - y) - lost;

    let square = y * y;
    let fourth = square * square;
    // sin(y + e) = y + y³ S(y²) + e (1 − y²/2)
    let [s1, s2, s3, s4, s5, s6] = SINE;
    let cube = square * y;
    let tail = s2 + square * (s3 + square * s4) + square * fourth * (s5 + square * s6);
    let sine = y - ((square * (0.5 * e - cube * tail) - e) - cube * s1);
    // cos(y + e) = 1 − y²/2 + y⁴ C(y²) − y e, the first difference with what it lost
    let [c1, c2, c3, c4, c5, c6] = COSINE;
    let tail =
        square * (c1 + square * (c2 + square * c3)) + fourth * fourth * (c4 + square * (c5 + square * c6));
    let half = 0.5 * square;
    let near = 1.0 - half;
    let cosine = near + (((1.0 - near) - half) + (square * tail - y * e));

    // A quarter turn makes the sine a cosine and the cosine minus a sine.
    let (s, c) = if quadrant & 1 == 0 { (sine, cosine) } else { (cosine, sine) };
    let sign = |negative: u64, value: f64| f64::from_bits(value.to_bits() ^ ((negative & 2) << 62));
    (sign(quadrant, s), sign(quadrant.wrapping_add(1), c))
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::sin_cos;

    /// Distance in units of the last place of `right`.
    fn ulps(found: f64, right: f64) -> f64 {
        (found - right).abs() / (right.abs().max(f64::MIN_POSITIVE) * f64::EPSILON)
    }

    #[test]
    fn agrees_with_the_ordinary_functions() {
        let mut worst = 0.0f64;
        let mut check = |x: f64| {
            let (s, c) = sin_cos(x);
            worst = worst.max(ulps(s, x.sin())).max(ulps(c, x.cos()));
        };
        for k in -200_000..200_000 {
            let x = f64::from(k) * 0.000_731;
            check(x);
            check(x * 1.37e3);
            // next to multiples of π/2, where one of the two nearly vanishes
            check(f64::from(k / 50) * core::f64::consts::FRAC_PI_2 + f64::from(k % 50) * 1e-9);
        }
        // Ours and theirs are each within one unit; the unit is at most twice ε of the value.
        assert!(worst <= 2.0, "{worst}");
    }

    #[test]
    fn special_angles() {
        assert_eq!(sin_cos(0.0), (0.0, 1.0));
        assert_eq!(sin_cos(-0.0).0.to_bits(), (-0.0f64).to_bits());
        assert_eq!(sin_cos(1e-300), (1e-300, 1.0));
        assert!(sin_cos(f64::INFINITY).0.is_nan() && sin_cos(f64::NAN).1.is_nan());
        assert_eq!(sin_cos(1e22), (1e22f64.sin(), 1e22f64.cos()));
        assert_eq!(sin_cos(core::f64::consts::PI).0, core::f64::consts::PI.sin());
    }
}
