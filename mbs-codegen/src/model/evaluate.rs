//! Numbers of parameter expressions: default values, start values, signals of cases.
//!
//! Input: the parameter table (and a case's overlay). Output: [`Values`], which evaluates any expression of
//! parameters and, if a time is set, of time. What depends on the state is an error value, never a panic.

use std::collections::HashMap;

use super::dependencies::evaluation_order;
use super::{
    ArrayRef, BinaryOp, Case, Comparison, Function, Model, Outside, Parameter, ParameterId, ParameterValue,
    Scalar, Vector,
};

/// The value of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A scalar.
    Number(f64),
    /// An array, never empty.
    Array(Vec<f64>),
}

/// Why an expression has no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvaluateError {
    /// It depends on time, inputs or the state.
    NotConstant,
    /// It depends on a parameter whose value is not known (a cycle, a wrong id or a wrong shape).
    Unknown,
}

impl std::fmt::Display for EvaluateError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            EvaluateError::NotConstant => "the expression depends on more than parameters",
            EvaluateError::Unknown => "the expression depends on a parameter without a value",
        })
    }
}

impl std::error::Error for EvaluateError {}

/// Values of all parameters, and a time if one is set.
#[derive(Clone, Debug, PartialEq)]
pub struct Values {
    parameters: Vec<Option<Value>>,
    time: Option<f64>,
}

impl Values {
    /// The model's default values.
    pub fn defaults(model: &Model) -> Values {
        Values::of(&model.parameters, &[])
    }

    /// The values under a case.
    pub fn of_case(model: &Model, case: &Case) -> Values {
        Values::of(&model.parameters, &case.parameters)
    }

    /// The values of a table of parameters, some of them replaced.
    pub fn of(parameters: &[Parameter], replaced: &[(ParameterId, ParameterValue)]) -> Values {
        Values::in_order(parameters, &evaluation_order(parameters).unwrap_or_default(), replaced)
    }

    /// The same with an order in which each parameter comes after all it follows; one that is not in it has no value.
    pub fn in_order(
        parameters: &[Parameter],
        order: &[ParameterId],
        replaced: &[(ParameterId, ParameterValue)],
    ) -> Values {
        let mut values = Values { parameters: vec![None; parameters.len()], time: None };
        // The last one wins.
        let replaced: HashMap<ParameterId, &ParameterValue> = replaced.iter().map(|(p, v)| (*p, v)).collect();
        for id in order {
            let given = replaced.get(id).copied();
            values.parameters[id.index()] = match given.unwrap_or(&parameters[id.index()].value) {
                ParameterValue::Number(x) => Some(Value::Number(*x)),
                ParameterValue::Array(x) if x.is_empty() => None,
                ParameterValue::Array(x) => Some(Value::Array(x.clone())),
                ParameterValue::Derived(e) => values.scalar(e).ok().map(Value::Number),
            };
        }
        values
    }

    /// The same values at a time.
    pub fn at_time(mut self, time: f64) -> Values {
        self.time = Some(time);
        self
    }

    /// Sets the time of the next evaluations.
    pub fn set_time(&mut self, time: f64) {
        self.time = Some(time);
    }

    /// Gives an independent parameter another value. Derived ones do not follow: see [`Values::of`].
    pub fn set(&mut self, id: ParameterId, value: Option<Value>) {
        if let Some(slot) = self.parameters.get_mut(id.index()) {
            *slot = value;
        }
    }

    /// The value of one parameter, if it is known.
    pub fn parameter(&self, id: ParameterId) -> Option<&Value> {
        self.parameters.get(id.index()).and_then(Option::as_ref)
    }

    /// The number of a scalar expression; it may be infinite or NaN if the expression is.
    pub fn scalar(&self, e: &Scalar) -> Result<f64, EvaluateError> {
        Ok(match e {
            Scalar::Number(x) => *x,
            Scalar::Time => self.time.ok_or(EvaluateError::NotConstant)?,
            Scalar::Parameter(p) => match self.parameter(*p) {
                Some(Value::Number(x)) => *x,
                _ => return Err(EvaluateError::Unknown),
            },
            Scalar::Element(p, index) => {
                let index = self.scalar(index)?;
                let Some(Value::Array(a)) = self.parameter(*p) else {
                    return Err(EvaluateError::Unknown);
                };
                // `as` clamps below to 0 and takes NaN to 0.
                a[(index.floor() as usize).min(a.len() - 1)]
            }
            Scalar::Input(_)
            | Scalar::Coordinate(_)
            | Scalar::Rate(_)
            | Scalar::Derivative(_)
            | Scalar::Acceleration(_)
            | Scalar::Velocity(_)
            | Scalar::Multiplier(..)
            | Scalar::Length
            | Scalar::LengthRate => return Err(EvaluateError::NotConstant),
            Scalar::Negate(a) => -self.scalar(a)?,
            Scalar::Binary(op, a, b) => {
                let (a, b) = (self.scalar(a)?, self.scalar(b)?);
                match op {
                    BinaryOp::Add => a + b,
                    BinaryOp::Subtract => a - b,
                    BinaryOp::Multiply => a * b,
                    BinaryOp::Divide => a / b,
                    BinaryOp::Power => a.powf(b),
                }
            }
            Scalar::Call(function, arguments) => {
                let mut x = [0.0; 5];
                for (slot, a) in x.iter_mut().zip(arguments) {
                    *slot = self.scalar(a)?;
                }
                call(*function, x)
            }
            Scalar::Select(comparison, parts) => {
                let (a, b) = (self.scalar(&parts[0])?, self.scalar(&parts[1])?);
                let holds = match comparison {
                    Comparison::Less => a < b,
                    Comparison::LessEqual => a <= b,
                    Comparison::Equal => a == b,
                };
                self.scalar(&parts[if holds { 2 } else { 3 }])?
            }
            Scalar::Table { at, knots, values } => {
                table(self.scalar(at)?, &self.array(knots)?, &self.array(values)?)
                    .ok_or(EvaluateError::Unknown)?
            }
            Scalar::Spline { at, knots, values, outside } => {
                let (x, knots, values) = (self.scalar(at)?, self.array(knots)?, self.array(values)?);
                spline_with_ends(x, &knots, &values, *outside).ok_or(EvaluateError::Unknown)?
            }
            Scalar::Dot(a, b) => dot(self.vector(a)?, self.vector(b)?),
            Scalar::Norm(a) => norm(self.vector(a)?),
            Scalar::Component(a, i) => *self.vector(a)?.get(usize::from(*i)).ok_or(EvaluateError::Unknown)?,
        })
    }

    /// The numbers of a vector expression.
    pub fn vector(&self, e: &Vector) -> Result<[f64; 3], EvaluateError> {
        Ok(match e {
            Vector::Components(c) => [self.scalar(&c[0])?, self.scalar(&c[1])?, self.scalar(&c[2])?],
            Vector::Position(_)
            | Vector::PointVelocity(_)
            | Vector::PointAcceleration(_)
            | Vector::Direction(..)
            | Vector::AngularVelocity(_)
            | Vector::AngularAcceleration(_)
            | Vector::ReactionForce(_)
            | Vector::ReactionTorque(_)
            | Vector::FromFrame(..)
            | Vector::InFrame(..) => return Err(EvaluateError::NotConstant),
            Vector::Negate(a) => self.vector(a)?.map(|x| -x),
            Vector::Add(a, b) => {
                let (a, b) = (self.vector(a)?, self.vector(b)?);
                [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
            }
            Vector::Subtract(a, b) => {
                let (a, b) = (self.vector(a)?, self.vector(b)?);
                [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
            }
            Vector::Scale(s, a) => {
                let s = self.scalar(s)?;
                self.vector(a)?.map(|x| s * x)
            }
            Vector::Divide(a, s) => {
                let s = self.scalar(s)?;
                self.vector(a)?.map(|x| x / s)
            }
            Vector::Cross(a, b) => cross(self.vector(a)?, self.vector(b)?),
            Vector::Unit(a) => {
                let a = self.vector(a)?;
                let n = norm(a);
                a.map(|x| x / n)
            }
            Vector::Mirror { normal, axial, of } => {
                let mut a = self.vector(of)?;
                for (i, x) in a.iter_mut().enumerate() {
                    if (i == usize::from(*normal)) != *axial {
                        *x = -*x;
                    }
                }
                a
            }
        })
    }

    /// The numbers of an array.
    pub fn array(&self, a: &ArrayRef) -> Result<Vec<f64>, EvaluateError> {
        match a {
            ArrayRef::Parameter(p) => match self.parameter(*p) {
                Some(Value::Array(x)) => Ok(x.clone()),
                _ => Err(EvaluateError::Unknown),
            },
            ArrayRef::Literal(items) => items.iter().map(|e| self.scalar(e)).collect(),
        }
    }
}

fn call(function: Function, x: [f64; 5]) -> f64 {
    let a = x[0];
    match function {
        Function::Sqrt => a.sqrt(),
        Function::Sin => a.sin(),
        Function::Cos => a.cos(),
        Function::Tan => a.tan(),
        Function::Asin => a.asin(),
        Function::Acos => a.acos(),
        Function::Atan => a.atan(),
        Function::Atan2 => a.atan2(x[1]),
        Function::Exp => a.exp(),
        Function::Ln => a.ln(),
        Function::Sinh => a.sinh(),
        Function::Cosh => a.cosh(),
        Function::Tanh => a.tanh(),
        Function::Abs => a.abs(),
        Function::Sign => {
            if a > 0.0 {
                1.0
            } else if a < 0.0 {
                -1.0
            } else {
                a
            }
        }
        Function::Min => a.min(x[1]),
        Function::Max => a.max(x[1]),
        Function::Hypot => a.hypot(x[1]),
        Function::SmoothStep => {
            let [x, x0, y0, x1, y1] = x;
            let s = ((x - x0) / (x1 - x0)).clamp(0.0, 1.0);
            y0 + (y1 - y0) * s * s * (3.0 - 2.0 * s)
        }
    }
}

/// The segment of `knots` that `x` lies in, the first or last one beyond the ends.
fn segment(x: f64, knots: &[f64], values: &[f64]) -> Option<usize> {
    if knots.len() < 2 || knots.len() != values.len() {
        return None;
    }
    Some(knots.partition_point(|k| *k <= x).clamp(1, knots.len() - 1) - 1)
}

fn table(x: f64, knots: &[f64], values: &[f64]) -> Option<f64> {
    let i = segment(x, knots, values)?;
    let s = ((x - knots[i]) / (knots[i + 1] - knots[i])).clamp(0.0, 1.0);
    Some(values[i] + (values[i + 1] - values[i]) * s)
}

/// Natural cubic spline, and what it is beyond its ends.
fn spline_with_ends(x: f64, knots: &[f64], values: &[f64], outside: Outside) -> Option<f64> {
    let within = x.max(*knots.first()?).min(*knots.last()?);
    let [value, slope] = spline(if outside == Outside::Cubic { x } else { within }, knots, values)?;
    Some(match outside {
        Outside::Cubic | Outside::Clamp => value,
        Outside::Linear => value + slope * (x - within),
        Outside::Error if x != within => f64::NAN,
        Outside::Error => value,
    })
}

/// Value and slope of a natural cubic spline: second derivatives vanish at the ends; the end polynomials go on beyond them.
fn spline(x: f64, knots: &[f64], values: &[f64]) -> Option<[f64; 2]> {
    let i = segment(x, knots, values)?;
    let n = knots.len();
    // Tridiagonal system for the second derivatives m, solved by elimination from left to right:
    // h_{j-1} m_{j-1} + 2 (h_{j-1} + h_j) m_j + h_j m_{j+1} = 6 (d_j − d_{j-1})
    let h: Vec<f64> = knots.windows(2).map(|k| k[1] - k[0]).collect();
    let d: Vec<f64> = values.windows(2).zip(&h).map(|(v, h)| (v[1] - v[0]) / h).collect();
    let mut upper = vec![0.0; n];
    let mut m = vec![0.0; n];
    for j in 1..n - 1 {
        let pivot = 2.0 * (h[j - 1] + h[j]) - h[j - 1] * upper[j - 1];
        upper[j] = h[j] / pivot;
        m[j] = (6.0 * (d[j] - d[j - 1]) - h[j - 1] * m[j - 1]) / pivot;
    }
    for j in (1..n - 1).rev() {
        m[j] -= upper[j] * m[j + 1];
    }
    let (a, b) = ((knots[i + 1] - x) / h[i], (x - knots[i]) / h[i]);
    let cubic = (a * a * a - a) * m[i] + (b * b * b - b) * m[i + 1];
    let tilt = (3.0 * b * b - 1.0) * m[i + 1] - (3.0 * a * a - 1.0) * m[i];
    let value = a * values[i] + b * values[i + 1] + cubic * h[i] * h[i] / 6.0;
    Some([value, d[i] + tilt * h[i] / 6.0])
}

/// a · b
pub(crate) fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

/// |a|
pub(crate) fn norm(a: [f64; 3]) -> f64 {
    dot(a, a).sqrt()
}

/// a × b
pub(crate) fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spline_passes_through_its_knots_and_is_exact_for_lines() {
        let knots = [0.0, 1.0, 2.5, 4.0];
        let values = [1.0, -1.0, 0.5, 2.0];
        for (k, v) in knots.iter().zip(values) {
            assert!((spline(*k, &knots, &values).unwrap()[0] - v).abs() < 1e-14);
        }
        let line = knots.map(|k| 3.0 - 2.0 * k);
        for x in [-3.0, 0.3, 2.0, 3.9, 7.0] {
            assert!((spline(x, &knots, &line).unwrap()[0] - (3.0 - 2.0 * x)).abs() < 1e-13);
        }
        // m = [0, m1, m2, 0] from the two equations by hand: h = 1, 1.5, 1.5; d = −2, 1, 1.
        // 5 m1 + 1.5 m2 = 18, 1.5 m1 + 6 m2 = 0 → m1 = 108/27.75, m2 = −27/27.75
        let x = 0.5;
        let expected = (0.125 - 0.5) * (108.0 / 27.75) / 6.0;
        assert!((spline(x, &knots, &values).unwrap()[0] - expected).abs() < 1e-14);
    }

    #[test]
    fn a_spline_beyond_its_ends() {
        let (knots, values) = ([0.0, 1.0, 2.5, 4.0], [1.0, -1.0, 0.5, 2.0]);
        let at = |x: f64, outside| spline_with_ends(x, &knots, &values, outside).unwrap();
        for (end, out) in [(0.0, -1.0), (4.0, 1.0)] {
            let value = at(end, Outside::Cubic);
            // The slope of the end, from inside; the curvature is zero there.
            let slope = (at(end - 1e-6 * out, Outside::Cubic) - value) / (-1e-6 * out);
            assert!((at(end + 2.0 * out, Outside::Linear) - value - 2.0 * out * slope).abs() < 1e-8);
            assert_eq!(at(end + 2.0 * out, Outside::Clamp), value);
            assert!(at(end + 1e-9 * out, Outside::Error).is_nan() && at(end, Outside::Error) == value);
        }
        for outside in [Outside::Clamp, Outside::Linear, Outside::Error] {
            assert_eq!(at(1.7, outside), at(1.7, Outside::Cubic));
        }
    }

    #[test]
    fn a_table_is_constant_beyond_its_ends() {
        let (k, v) = ([0.0, 1.0, 3.0], [2.0, 4.0, 0.0]);
        assert_eq!(table(-1.0, &k, &v), Some(2.0));
        assert_eq!(table(0.5, &k, &v), Some(3.0));
        assert_eq!(table(2.0, &k, &v), Some(2.0));
        assert_eq!(table(9.0, &k, &v), Some(0.0));
    }
}
