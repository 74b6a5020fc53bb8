//! Calls every function of the runtime's `math`, for every scalar, by identities between them.

use core::hint::black_box;

use mbs_runtime::{Scalar, math};

/// Identities of elementary functions, at a point where all are defined; in units of the scalar's rounding.
pub(crate) fn satisfy_identities<S: Scalar>() -> Option<()> {
    let x: S = black_box(S::from_f64(0.4));
    let (one, two, half) = (S::ONE, S::from_f64(2.0), S::from_f64(0.5));
    let (sin, cos) = math::sin_cos(x);
    let (up, down) = (math::exp(x), math::exp(-x));
    let pairs = [
        (sin * sin + cos * cos, one),
        (math::sin(x), sin),
        (math::cos(x), cos),
        (math::tan(x), sin / cos),
        (math::asin(sin), x),
        (math::acos(cos), x),
        (math::atan(sin / cos), x),
        (math::atan2(sin, cos), x),
        (math::ln(up), x),
        (math::sinh(x), half * (up - down)),
        (math::cosh(x), half * (up + down)),
        (math::tanh(x), (up - down) / (up + down)),
        (math::powf(x, two), x * x),
        (math::sqrt(x) * math::sqrt(x), x),
        (math::abs(-x), x),
        (math::sign(-x), -one),
        (math::floor(x + one), one),
        (math::min(x, one), x),
        (math::max(x, one), one),
        (math::mul_add(x, two, one), x + x + one),
        (math::select_lt(x, one, x, two), x),
        (math::select_le(x, one, x, two), x),
        (math::select_eq(x, one, x, two), two),
    ];
    let close = |a: S, b: S| (a - b).real().abs() <= 8.0 * S::EPSILON;
    pairs.into_iter().all(|(a, b)| close(a, b)).then_some(())
}

/// Functions of tables answer whatever they are asked.
pub(crate) fn answer_any_question() -> Option<()> {
    let table = black_box([1.0, 2.0, 4.0]);
    for index in [-1.0, 0.0, 2.5, 1e300, f64::NAN, f64::INFINITY] {
        let table = table.get(..black_box(3))?;
        let value = math::gather(table, black_box(index));
        let interval = math::locate(table, black_box(index));
        (table.contains(&value) && (0.0..=1.0).contains(&interval)).then_some(())?;
    }
    // Slices of any lengths: the order is the largest they all allow.
    let (mut scratch, mut x) = ([0.0; 3], [0.0; 3]);
    for n in 0..4 {
        let ones = [1.0; 3];
        let (some, scratch) = (ones.get(..black_box(n))?, scratch.get_mut(..black_box(3))?);
        math::solve_tridiagonal(some, &table, some, &ones, scratch, &mut x);
    }
    x.iter().all(|x: &f64| x.is_finite()).then_some(())
}

/// Numbers that are not numbers go through every function.
pub(crate) fn survive_nan() -> Option<()> {
    let functions: [fn(f64) -> f64; 15] = [
        math::sqrt,
        math::sin,
        math::cos,
        math::tan,
        math::asin,
        math::acos,
        math::atan,
        math::exp,
        math::ln,
        math::sinh,
        math::cosh,
        math::tanh,
        math::abs,
        math::sign,
        math::floor,
    ];
    for x in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, -f64::MAX, 5e-324, 1e22] {
        for function in functions {
            black_box(function(black_box(x)));
        }
        black_box([math::atan2(x, x), math::powf(x, x), math::min(x, x), math::max(x, x)]);
    }
    Some(())
}
