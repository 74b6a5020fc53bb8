//! A parameter that a sweep varies, and how it is written: `k=10:40:20`, `k=1,2,5`, `k=10:40`, `k~normal(450,20)`.

use super::sampling::normal_quantile;
use std::fmt;

/// A parameter and the values it takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// The parameter: `name` or `name[i]`.
    pub name: String,
    /// Its values.
    pub values: Values,
}

/// The values of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// These, one after the other.
    List(Vec<f64>),
    /// Any of an interval.
    Uniform(f64, f64),
    /// Any of a positive interval, uniform in its logarithm.
    LogUniform(f64, f64),
    /// Normal with this mean and standard deviation.
    Normal(f64, f64),
}

/// Why an axis cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AxisError(String);

impl fmt::Display for AxisError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for AxisError {}

fn wrong<T>(message: impl Into<String>) -> Result<T, AxisError> {
    Err(AxisError(message.into()))
}

fn number(text: &str) -> Result<f64, AxisError> {
    match text.trim().parse::<f64>() {
        Ok(x) if x.is_finite() => Ok(x),
        _ => wrong(format!("`{}` is not a number", text.trim())),
    }
}

/// Most values of a list.
const LISTED: f64 = 1e6;

impl Axis {
    /// Reads an axis.
    pub fn parse(text: &str) -> Result<Axis, AxisError> {
        let split = text.find(['=', '~']);
        let Some(at) = split.filter(|at| *at > 0) else {
            return wrong(
                "write it as `NAME=FIRST:LAST:COUNT`, `NAME=A,B,C`, `NAME=LOW:HIGH` or `NAME~normal(MEAN,DEVIATION)`",
            );
        };
        let (name, rest) = (text[..at].trim().to_string(), &text[at + 1..]);
        let values = if text[at..].starts_with('~') { distribution(rest)? } else { range(rest)? };
        Ok(Axis { name, values })
    }

    /// Its value at a point of the unit interval; of a list, one of its values.
    pub fn quantile(&self, u: f64) -> f64 {
        match &self.values {
            Values::List(values) => {
                let place = (u * values.len() as f64) as usize;
                values.get(place.min(values.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
            }
            Values::Uniform(low, high) => low + u * (high - low),
            Values::LogUniform(low, high) => (low.ln() + u * (high.ln() - low.ln())).exp(),
            Values::Normal(mean, deviation) => mean + deviation * normal_quantile(u),
        }
    }

    /// Whether it takes values of a list.
    pub fn is_listed(&self) -> bool {
        matches!(self.values, Values::List(_))
    }
}

fn range(text: &str) -> Result<Values, AxisError> {
    let parts: Vec<&str> = text.split(':').collect();
    match parts.as_slice() {
        [list] => Ok(Values::List(list.split(',').map(number).collect::<Result<_, _>>()?)),
        [low, high] => interval(number(low)?, number(high)?),
        [first, last, count] => {
            let (first, last, count) = (number(first)?, number(last)?, number(count)?);
            if !(1.0..=LISTED).contains(&count) || count.fract() != 0.0 {
                return wrong(format!(
                    "the number of values must be a whole number from 1 to {LISTED}, not {count}"
                ));
            }
            let n = count as usize;
            let at = |i: usize| match i {
                0 => first,
                _ if i + 1 == n => last,
                _ => first + (last - first) * i as f64 / (n - 1) as f64,
            };
            Ok(Values::List((0..n).map(at).collect()))
        }
        _ => wrong("write a range as FIRST:LAST:COUNT, or as LOW:HIGH for samples"),
    }
}

fn interval(low: f64, high: f64) -> Result<Values, AxisError> {
    if low > high {
        return wrong(format!("the bounds are the wrong way round: {low} to {high}"));
    }
    Ok(Values::Uniform(low, high))
}

fn distribution(text: &str) -> Result<Values, AxisError> {
    let inside = text
        .trim()
        .split_once('(')
        .and_then(|(name, rest)| Some((name.trim(), rest.trim().strip_suffix(')')?)));
    let Some((name, arguments)) = inside else {
        return wrong(
            "write a distribution as `normal(MEAN,DEVIATION)`, `uniform(LOW,HIGH)` or `loguniform(LOW,HIGH)`",
        );
    };
    let Some((a, b)) = arguments.split_once(',') else {
        return wrong(format!("`{name}` has two arguments, separated by a comma"));
    };
    let (a, b) = (number(a)?, number(b)?);
    match name {
        "normal" if b < 0.0 => wrong("a standard deviation is not negative"),
        "normal" => Ok(Values::Normal(a, b)),
        "uniform" => interval(a, b),
        "loguniform" if a <= 0.0 || a > b => wrong("`loguniform` needs bounds with 0 < LOW <= HIGH"),
        "loguniform" => Ok(Values::LogUniform(a, b)),
        other => {
            wrong(format!("there is no distribution `{other}`; there are normal, uniform and loguniform"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_are_read() {
        let values = |text: &str| Axis::parse(text).map(|axis| axis.values);
        assert_eq!(values("k=10:40:4"), Ok(Values::List(vec![10.0, 20.0, 30.0, 40.0])));
        assert_eq!(values("a[1]=1,2,5"), Ok(Values::List(vec![1.0, 2.0, 5.0])));
        assert_eq!(values("k=-1:4"), Ok(Values::Uniform(-1.0, 4.0)));
        assert_eq!(values("m ~ normal(450, 20)"), Ok(Values::Normal(450.0, 20.0)));
        for text in [
            "k",
            "=1",
            "k=1:2:0",
            "k=2:1",
            "k=1:2:3:4",
            "k~cauchy(1,2)",
            "k~normal(1)",
            "k~loguniform(0,1)",
            "k=x",
        ] {
            assert!(Axis::parse(text).is_err(), "{text}");
        }
    }
}
