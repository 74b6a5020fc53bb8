//! Numbers in messages, as a person reads them: few digits, and an exponent where it is shorter.

use core::fmt::{self, Write};

/// A number of so many digits, without trailing zeros.
pub(crate) struct Digits(f64, usize);

/// A time or a step: enough digits to tell one from the next.
pub(crate) fn time(t: f64) -> Digits {
    Digits(t, 9)
}

/// A violation, a correction, a setting.
pub(crate) fn short(value: f64) -> Digits {
    Digits(value, 6)
}

impl fmt::Display for Digits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(value, digits) = *self;
        if value == 0.0 {
            return f.write_str("0");
        }
        if !value.is_finite() {
            return write!(f, "{value}");
        }
        let mut text = Text::EMPTY;
        write!(text, "{value:.*e}", digits - 1)?;
        // The smallest numbers have fewer digits than are asked for.
        let mut exact = Text::EMPTY;
        write!(exact, "{value:e}")?;
        let text = if exact.len < text.len { exact } else { text };
        let (mantissa, exponent) = text.as_str().split_once('e').unwrap_or((text.as_str(), "0"));
        let power: i32 = exponent.parse().unwrap_or(0);
        if !(-4..digits as i32).contains(&power) {
            return write!(f, "{}e{power}", trim(mantissa));
        }
        let decimals = (digits as i32 - 1 - power).max(0) as usize;
        let mut text = Text::EMPTY;
        write!(text, "{value:.decimals$}")?;
        f.write_str(trim(text.as_str()))
    }
}

fn trim(digits: &str) -> &str {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits }
}

/// `1 step`, `2 steps`.
pub(crate) struct Count(pub(crate) usize, pub(crate) &'static str);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}{}", self.0, self.1, if self.0 == 1 { "" } else { "s" })
    }
}

/// A number's text: a sign, a point, four zeros, seventeen digits and an exponent fit.
struct Text {
    bytes: [u8; 32],
    len: usize,
}

impl Text {
    const EMPTY: Text = Text { bytes: [0; 32], len: 0 };

    fn as_str(&self) -> &str {
        self.bytes.get(..self.len).and_then(|bytes| core::str::from_utf8(bytes).ok()).unwrap_or("")
    }
}

impl fmt::Write for Text {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let end = self.len + part.len();
        self.bytes.get_mut(self.len..end).ok_or(fmt::Error)?.copy_from_slice(part.as_bytes());
        self.len = end;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn numbers_are_short() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (0.5, "0.5"),
            (-9.81, "-9.81"),
            (1e-320, "1e-320"),
            (5.629_483_928_129_85e-11, "5.62948e-11"),
            (-6.833_581_968_625_226e44, "-6.83358e44"),
            (0.000_123_456_78, "0.000123457"),
            (999_999.9, "1e6"),
            (123_456.0, "123456"),
            (f64::MAX, "1.79769e308"),
            (-f64::MIN_POSITIVE, "-2.22507e-308"),
            (f64::NEG_INFINITY, "-inf"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(short(value).to_string(), text);
        }
        assert_eq!(time(0.010_452_999_999_999_999).to_string(), "0.010453");
        assert_eq!(time(12_345.678).to_string(), "12345.678");
        assert_eq!(time(-0.000_123_456_789_12).to_string(), "-0.000123456789");
        assert_eq!(Count(1, "step").to_string() + ", " + &Count(2, "step").to_string(), "1 step, 2 steps");
    }
}
