//! Smooth extremes along a run, as constraints at all times and as objectives that are a peak.
//!
//! | symbol | meaning |
//! |---|---|
//! | g | what has a value at every time; its negative for the smallest one |
//! | m, s | largest value of g at the first start, or its bound if that is larger; size of its values |
//! | ρ | sharpness over s |
//! | I | ∫ exp(ρ (g − m)) dt, an objective of the run |
//! | K | m + ln(I/T)/ρ, the Kreisselmeier–Steinhauser function over a time T [KreisselmeierSteinhauser1979] |
//!
//! K is smooth and tends to max g as ρ grows; it stays below, since the mean of exp(ρ g) does. m only keeps exp within the range of numbers: K does not
//! depend on it. The gradient is exact: dK = dI/(ρ I).

use mbs_codegen::model::optimisation::{Along, Judged};
use mbs_codegen::model::{BinaryOp, Function, Model, Objective, OutputValue, Scalar};

/// exp(−SMALL) is far above the smallest number.
const SMALL: f64 = 600.0;

/// A smooth extreme: K of an objective that is I.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Extreme {
    pub(super) is_least: bool,
    pub(super) rho: f64,
    pub(super) m: f64,
    pub(super) time: f64,
}

impl Extreme {
    /// With s the size of the values: of the bounds if they are not zero, otherwise of what the first run goes through.
    pub(super) fn new(
        is_least: bool,
        sharpness: f64,
        bound: Option<f64>,
        (low, high): (f64, f64),
        time: f64,
    ) -> Extreme {
        let span = if high > low { high - low } else { high.abs() };
        let size = bound.map(f64::abs).filter(|bound| *bound > 0.0).unwrap_or(span);
        let size = if size > 0.0 && size.is_finite() { size } else { 1.0 };
        let (sign, rho) = (if is_least { -1.0 } else { 1.0 }, sharpness / size);
        let largest = if is_least { -low } else { high };
        // Toward the bound, to which values will come; but exp(ρ (g − m)) must not vanish at the start.
        let above = bound.map_or(0.0, |bound| (sign * bound - largest).clamp(0.0, SMALL / rho));
        Extreme { is_least, rho, m: largest + above, time }
    }

    /// exp(ρ (±g − m))
    pub(super) fn integrand(&self, g: Scalar) -> Scalar {
        let g = if self.is_least { Scalar::Negate(Box::new(g)) } else { g };
        let binary = |op, a, b| Scalar::Binary(op, Box::new(a), Box::new(b));
        let above = binary(BinaryOp::Subtract, g, Scalar::Number(self.m));
        Scalar::Call(Function::Exp, vec![binary(BinaryOp::Multiply, Scalar::Number(self.rho), above)])
    }

    /// ±K and its slope by I.
    pub(super) fn value(&self, i: f64) -> (f64, f64) {
        let sign = if self.is_least { -1.0 } else { 1.0 };
        (sign * (self.m + (i / self.time).ln() / self.rho), sign / (self.rho * i))
    }
}

/// What an extreme is taken of.
pub(super) fn along(model: &Model, of: Along) -> Scalar {
    match of {
        Along::Integrand(i) => model.objectives[i].integrand.clone(),
        Along::Output(i) => match &model.outputs[i].value {
            OutputValue::Scalar(value) => value.clone(),
            // The reader takes outputs of one number alone.
            OutputValue::Vector(_) => Scalar::Number(0.0),
        },
    }
}

/// An objective with this integrand and no terminal term.
pub(super) fn objective(model: &Model, judged: &Judged, integrand: Scalar) -> Objective {
    Objective {
        name: judged.name(model),
        description: String::new(),
        unit: String::new(),
        integrand,
        terminal: Scalar::Number(0.0),
        at_events: Vec::new(),
        span: mbs_codegen::diagnostics::Span::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_tends_to_the_extreme_from_below_and_its_slope_is_exact() {
        // g = sin t over a period, by the trapezoidal rule.
        let n = 4000;
        let time = std::f64::consts::TAU;
        let integral = |extreme: &Extreme, by: f64| {
            let sign = if extreme.is_least { -1.0 } else { 1.0 };
            let f = |i: usize| {
                let t = time * i as f64 / n as f64;
                (extreme.rho * (sign * (by + t.sin()) - extreme.m)).exp()
            };
            (0..n).map(f).sum::<f64>() * time / n as f64
        };
        let mut last = 1.0;
        for sharpness in [10.0, 100.0, 1000.0] {
            let largest = Extreme::new(false, sharpness, Some(1.0), (-1.0, 1.0), time);
            let least = Extreme { is_least: true, ..largest };
            let (k, slope) = largest.value(integral(&largest, 0.0));
            assert!(k < 1.0 && 1.0 - k < 0.4 * last, "{sharpness}: {k}");
            last = 1.0 - k;
            assert!((k + least.value(integral(&least, 0.0)).0).abs() < 1e-12);
            // A constant that is added moves it by as much.
            let e = 1e-4 / largest.rho;
            let change = integral(&largest, e) - integral(&largest, -e);
            assert!((slope * change / (2.0 * e) - 1.0).abs() < 1e-6);
        }
    }
}
