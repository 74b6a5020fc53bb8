//! Numbers at the edges of what a number can be, as a model file writes them.

use crate::random_model::Random;

/// Edges of floating point, of integers and of the notation.
pub const EXTREMES: [&str; 36] = [
    "0",
    "-0",
    "-0.0",
    "1e308",
    "-1e308",
    "1.7976931348623157e308",
    "1e309",
    "-1e400",
    "1e-308",
    "1e-320",
    "5e-324",
    "1e-400",
    "nan",
    ".nan",
    ".inf",
    "-.inf",
    "inf",
    "1e154",
    "1e155",
    "-1e155",
    "1e-155",
    "1e-200",
    "4294967296",
    "2147483648",
    "9007199254740993",
    "18446744073709551616",
    "-1",
    "0x10",
    "0o7",
    "1_000",
    "1e",
    "+1",
    ".5",
    "5.",
    "1e+5",
    "00012",
];

/// A number: mostly a usual one, at an edge with the given probability.
pub fn number(r: &mut Random, extreme: f64) -> String {
    if r.chance(extreme) {
        return EXTREMES[r.below(EXTREMES.len())].into();
    }
    match r.below(4) {
        0 => r.below(5).to_string(),
        1 => format!("{:.2}", r.uniform(-2.0, 2.0)),
        2 => format!("{:.3e}", r.uniform(-1.0, 1.0) * 10f64.powi(r.below(13) as i32 - 6)),
        _ => format!("{:.4}", r.uniform(0.1, 3.0)),
    }
}
