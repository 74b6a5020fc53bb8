//! Numbers as a person reads them.

/// Six digits, without trailing zeros, and an exponent only where it is shorter.
pub(crate) fn short(value: f64) -> String {
    significant(value, 6)
}

/// So many digits, without trailing zeros, and an exponent only where it is shorter.
pub(crate) fn significant(value: f64, digits: usize) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}").replace("-0", "0");
    }
    let scientific = format!("{value:.*e}", digits - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..digits.max(6) as i32).contains(&exponent) {
        let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
        trim(&format!("{value:.decimals$}")).into()
    } else {
        format!("{}e{exponent}", trim(mantissa))
    }
}

fn trim(digits: &str) -> &str {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits }
}

/// `1 step`, `2 steps`.
pub(crate) fn count(n: usize, word: &str) -> String {
    format!("{} {word}{}", grouped(n), if n == 1 { "" } else { "s" })
}

/// Digits in groups of three.
pub(crate) fn grouped(n: usize) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) && digits.len() > 4 {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

/// Seconds in the unit that suits them.
pub(crate) fn duration(seconds: f64) -> String {
    let (value, unit) = if seconds < 1e-6 {
        (seconds * 1e9, "ns")
    } else if seconds < 1e-3 {
        (seconds * 1e6, "µs")
    } else if seconds < 1.0 {
        (seconds * 1e3, "ms")
    } else if seconds < 120.0 {
        (seconds, "s")
    } else {
        return format!("{} min {:.0} s", (seconds / 60.0).floor(), seconds % 60.0);
    };
    format!("{} {unit}", significant(value, 3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_true() {
        let cases = [
            (0.0, "0"),
            (-0.0, "0"),
            (1.0, "1"),
            (0.1, "0.1"),
            (-9.81, "-9.81"),
            (1.0 / 3.0, "0.333333"),
            (1e-5, "1e-5"),
            (123_456.7, "123457"),
            (1.5e9, "1.5e9"),
            (9_000.0, "9000"),
            (999_999.6, "1e6"),
            (-2.345_678_9e-12, "-2.34568e-12"),
            (f64::INFINITY, "inf"),
        ];
        for (value, text) in cases {
            assert_eq!(short(value), text);
        }
        assert_eq!([grouped(7), grouped(1234), grouped(1_234_567)], ["7", "1234", "1 234 567"]);
        assert_eq!([duration(0.001_234), duration(75.0), duration(200.0)], ["1.23 ms", "75 s", "3 min 20 s"]);
    }
}
