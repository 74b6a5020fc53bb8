//! The gradient of a whole run, and the derivatives of its last state, against differences of whole runs.
//!
//! Input: what a differentiated run found. Output: how it compares with runs without derivatives, one of whose parameters was moved.
//!
//! A complex step, f' = Im f(x + i h)/h, is exact to rounding and needs no choice of h; kinks included, since decisions are
//! made by the real part. Where complex runs fail, central differences take their place: with h halved again and again,
//! extrapolated to h = 0 [Ridders 1982], one-sided at a bound of the parameter. What two extrapolations differ by is what differences
//! are known to, and the tolerance is not below it. Complex steps are exact to rounding, but a run may amplify rounding, where it
//! passes a singular position or is chaotic, or where a pivot of an elimination passes zero, which costs an imaginary part twice the digits of its real
//! part: an error that is not allowed is held against the most that changes of all parameters by a few roundings make of the complex steps themselves; of velocities and accelerations against the rounding of positions over h and h², too,
//! and accelerations of iterated steps by what they change velocities by in a step.

use super::plain_run::{Model, Outcome};
use super::{ALLOWANCE, LEAST, ROUNDINGS, STEP, TELLING};
use crate::gradient::{Found, Node};
use crate::{Interpreted, Method};
use mbs_codegen::model::Simulation;
use mbs_codegen::program::Program;
use mbs_codegen::symbols::Group;
use mbs_runtime::linear::blocks::row;
use mbs_runtime::{Complex64, Names, Quantity, Scalar, StepError, System};
use std::sync::OnceLock;
use std::thread;

/// Largest error of a gradient against complex steps: rounding of two runs, each iterated to its own tolerance.
pub const TOLERANCE: f64 = 1e-7;
/// Largest error against central differences: what is left of ε/h and h² after extrapolation.
pub const TOLERANCE_OF_DIFFERENCES: f64 = 1e-6;

/// Changes of all parameters by roundings that tell what complex steps are known to.
const MOST_ROUNDED: usize = 4;

/// Derivatives of coordinates count from this part of their natural units on, those of rates from what moves them by it over the run.
const STILL: f64 = 1e-6;

/// How derivatives of whole runs were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Oracle {
    /// By complex steps.
    ComplexSteps,
    /// By extrapolated differences.
    Differences,
}

/// What whole runs are compared with, beside the gradient: the times of all nodes of a run, and its last state.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// Times of the nodes.
    pub times: Vec<f64>,
    /// z, zd, zdd and the multipliers of all rows at the end.
    pub values: [Vec<f64>; 4],
    /// Their derivatives, a row per entry and a column per parameter; empty where they are not known.
    pub derivatives: [Vec<f64>; 4],
}

impl Trace {
    /// Notes the last node.
    pub fn end(&mut self, node: &Node<'_>) {
        let at = node.motion;
        let copied = |parts: [&[f64]; 4]| parts.map(<[f64]>::to_vec);
        self.values = copied([at.z, at.zd, at.zdd, node.lambda]);
        self.derivatives = copied([node.z, node.zd, node.zdd, node.lambda_derivatives]);
    }
}

/// How a row of a gradient, or one kind of derivatives of the last state, compares.
#[derive(Clone, Debug, PartialEq)]
pub struct RunCheck {
    /// An objective, or what of the last state.
    pub what: String,
    /// Against what.
    pub oracle: Oracle,
    /// The largest error; NaN if a value is not a number.
    pub error: f64,
    /// What is allowed.
    pub tolerance: f64,
    /// What the entry with this error is the derivative of.
    pub of: String,
    /// By what.
    pub by: String,
    /// That derivative.
    pub found: f64,
    /// Its derivative by finite differences.
    pub expected: f64,
}

impl RunCheck {
    /// Whether the error is allowed.
    pub fn passed(&self) -> bool {
        self.error <= self.tolerance && self.tolerance <= TELLING
    }
}

/// Derivatives of all that a run leaves, by one parameter, and what they are known to.
pub(super) struct Column {
    values: Outcome<f64>,
    errors: Outcome<f64>,
    oracle: Oracle,
}

impl Column {
    /// Of objectives alone, by complex steps.
    pub(super) fn of_objectives(objectives: Vec<f64>) -> Column {
        let values = Outcome { objectives, ..Outcome::default() };
        Column { errors: values.map(|_| 0.0), values, oracle: Oracle::ComplexSteps }
    }
}

/// Compares a gradient and a last state with differences of whole runs; `simulation` and `method` are those of the run. With
/// `differences`, no complex steps are tried. `progress` is told how many parameters of how many are done.
#[allow(clippy::too_many_arguments, reason = "a run, what it found, and how to look at it")]
pub fn gradient(
    model: &Interpreted,
    method: &Method,
    simulation: &Simulation,
    redundant: bool,
    found: &Found,
    trace: &Trace,
    differences: bool,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Vec<RunCheck>, StepError> {
    let program = model.program_as_set();
    let method = method.iterated_to_rounding(redundant);
    // Both are translated once for all runs.
    let mut models = Models { program, real: model.clone(), complex: OnceLock::new() };
    let mut moved = Moves { method: &method, simulation, times: &trace.times, differences };
    let mut columns = moved.columns(&models, progress)?;
    let mut checks = compare(model, found, trace, &columns, f64::INFINITY);
    let settled = |checks: &[RunCheck]| {
        checks.iter().all(|check| check.passed() || check.oracle == Oracle::Differences)
    };
    if settled(&checks) {
        return Ok(checks);
    }
    // What complex steps are known to: what roundings of all parameters change them by. One of them may happen to change little.
    moved.differences = false;
    // An event has two nodes at one time.
    let steps = trace.times.windows(2).map(|pair| pair[1] - pair[0]).filter(|&h| h > 0.0);
    let h = steps.fold(f64::INFINITY, f64::min);
    let implicit = matches!(method, Method::Ali3p(_) | Method::Index1(_));
    for _ in 0..MOST_ROUNDED {
        models.round();
        let others = moved.columns(&models, progress)?;
        for (column, other) in columns.iter_mut().zip(&others) {
            if column.oracle == Oracle::ComplexSteps && other.oracle == Oracle::ComplexSteps {
                let changes = column.values.with(&other.values, |a, b| ALLOWANCE * (a - b).abs());
                column.errors = column.errors.with(&changes, f64::max);
                add_rounding(h, column);
            }
        }
        checks = compare(model, found, trace, &columns, if implicit { h } else { f64::INFINITY });
        if settled(&checks) {
            break;
        }
    }
    Ok(checks)
}

/// Velocities of a step are known to the rounding of positions over h, accelerations to that over h²: it shows where they fade and
/// positions do not.
fn add_rounding(h: f64, column: &mut Column) {
    let [positions, ..] = &column.values.motion;
    let rounding = f64::EPSILON * positions.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
    let [_, velocities, accelerations] = &mut column.errors.motion;
    for (errors, rounding) in [(velocities, rounding / h), (accelerations, rounding / (h * h))] {
        for error in errors {
            *error = error.max(ALLOWANCE * rounding);
        }
    }
}

/// The model that is moved, translated once for all runs.
struct Models {
    /// Its parameters are the defaults.
    program: Program,
    real: Interpreted,
    complex: OnceLock<Interpreted<Complex64>>,
}

impl Models {
    fn complex(&self) -> &Interpreted<Complex64> {
        self.complex.get_or_init(|| Interpreted::new(self.program.clone()))
    }

    /// Changes all parameters by a few roundings more.
    fn round(&mut self) {
        for value in self.program.parameters.iter_mut().flat_map(|parameter| &mut parameter.defaults) {
            *value *= 1.0 + ROUNDINGS;
        }
        let values = self.program.defaults();
        if let Some(complex) = self.complex.get_mut() {
            complex.move_to(values.iter().map(|&x| Complex64::from_f64(x)));
        }
        self.real.move_to(values);
    }
}

/// Whole runs with one parameter moved.
#[derive(Clone, Copy)]
struct Moves<'a> {
    method: &'a Method,
    simulation: &'a Simulation,
    times: &'a [f64],
    differences: bool,
}

impl Moves<'_> {
    /// Derivatives by all parameters, some at a time.
    fn columns(
        &self,
        models: &Models,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<Vec<Column>, StepError> {
        let count = models.program.seeds.len();
        let lanes = thread::available_parallelism().map_or(1, usize::from);
        let mut columns = Vec::with_capacity(count);
        while columns.len() < count {
            let first = columns.len();
            progress(first, count);
            let some = thread::scope(|scope| {
                let one = |k| scope.spawn(move || self.column(models, k));
                let threads: Vec<_> = (first..count.min(first + lanes)).map(one).collect();
                let joined = threads.into_iter().map(|thread| match thread.join() {
                    Ok(column) => column,
                    Err(panic) => std::panic::resume_unwind(panic),
                });
                joined.collect::<Result<Vec<_>, _>>()
            })?;
            columns.extend(some);
        }
        Ok(columns)
    }

    fn column(&self, models: &Models, k: usize) -> Result<Column, StepError> {
        if !self.differences {
            let step = Complex64::new(0.0, STEP);
            let model = Model::new(models.complex(), k, step);
            if let Ok(outcome) = model.run(self.method, self.simulation, self.times) {
                let values = outcome.map(|x| x.im / STEP);
                if values.all().all(|x| x.is_finite()) {
                    return Ok(Column { errors: values.map(|_| 0.0), values, oracle: Oracle::ComplexSteps });
                }
            }
        }
        extrapolate(models, self, k)
    }
}

/// Halvings of the step of differences.
const HALVINGS: usize = 8;
/// The first step, as a part of the parameter.
const FIRST_STEP: f64 = 0.02;

/// Differences by the extrapolation of Ridders: of the table of all orders, for each entry the value that changes least.
fn extrapolate(models: &Models, moves: &Moves<'_>, k: usize) -> Result<Column, StepError> {
    let (value, bounds) = seed(&models.program, k);
    let mut h = FIRST_STEP * if value == 0.0 { 1.0 } else { value.abs() };
    let Moves { method, simulation, times, .. } = moves;
    let run = |by: f64| Model::new(&models.real, k, by).run(method, simulation, times);
    let room = |side: Option<f64>| side.map_or(f64::INFINITY, |bound| (bound - value).abs());
    let (below, above) = (room(bounds.0), room(bounds.1));
    // Without any room the bounds must be left.
    let fixed = below.max(above) == 0.0;
    let both = below.min(above) > 0.0 || fixed;
    let side = if above >= below { 1.0 } else { -1.0 };
    if !fixed {
        h = h.min(if both { below.min(above) } else { 0.5 * below.max(above) });
    }
    let here = if both { None } else { Some(run(0.0)?) };
    let difference = |h: f64| -> Result<Outcome<f64>, StepError> {
        match &here {
            // (f(x + h) − f(x − h))/2h
            None => Ok(run(h)?.with(&run(-h)?, |a, b| (a - b) / (2.0 * h))),
            // (−f(x + 2h) + 4 f(x + h) − 3 f(x))/2h
            Some(here) => {
                let (near, far) = (run(side * h)?, run(2.0 * side * h)?);
                let sum = near.with(&far, |near, far| 4.0 * near - far);
                Ok(sum.with(here, |sum, here| (sum - 3.0 * here) / (2.0 * side * h)))
            }
        }
    };
    let mut tried = Vec::new();
    let mut failure = None;
    for _ in 0..=HALVINGS {
        match difference(h) {
            Ok(column) => tried.push(column),
            // A step that is too large may lead where the mechanism cannot go.
            Err(error) => failure = Some(error),
        }
        h /= 2.0;
    }
    let (Some(first), true) = (tried.first(), tried.len() > 2) else {
        return Err(failure.unwrap_or(StepError::NotDifferentiable {
            what: "too few of the runs that differences need came to their end",
        }));
    };
    let mut values = first.clone();
    let mut errors = first.map(|_| f64::INFINITY);
    let parts = values.all_mut().zip(errors.all_mut()).enumerate();
    for (i, (value, error)) in parts {
        let series: Vec<f64> = tried.iter().filter_map(|column| column.all().nth(i)).collect();
        (*value, *error) = ridders(&series, both);
    }
    Ok(Column { values, errors, oracle: Oracle::Differences })
}

/// The limit of differences with halved steps, and what it is known to. Central ones err by powers of h², others by all from
/// the second.
fn ridders(series: &[f64], central: bool) -> (f64, f64) {
    let (mut best, mut error) = (f64::NAN, f64::INFINITY);
    let mut before: Vec<f64> = Vec::new();
    for &first in series {
        let mut row = vec![first];
        for (j, &older) in before.iter().enumerate() {
            let order = if central { 2 * (j as i32 + 1) } else { j as i32 + 2 };
            let last = row[j];
            let better = last + (last - older) / (2f64.powi(order) - 1.0);
            let change = (better - last).abs().max((better - older).abs());
            if change < error {
                (best, error) = (better, change);
            }
            row.push(better);
        }
        before = row;
    }
    (best, error)
}

/// Value and bounds of what is moved; an input is moved from zero.
pub(super) fn seed(program: &Program, k: usize) -> (f64, (Option<f64>, Option<f64>)) {
    let Some(&(Group::Parameters, place)) = program.seeds.get(k) else { return (0.0, (None, None)) };
    let all = program.parameters.iter().flat_map(|p| p.defaults.iter().map(|value| (*value, p.bounds)));
    all.into_iter().nth(place as usize).unwrap_or((0.0, (None, None)))
}

/// The change of a parameter that derivatives are judged for: its size, or one.
fn size_of_seed(model: &Interpreted, k: usize) -> f64 {
    seed(model.program(), k).0.abs().max(1.0)
}

impl<S: Copy> Outcome<S> {
    fn all(&self) -> impl Iterator<Item = S> {
        let parts = [&self.objectives].into_iter().chain(&self.motion).chain([&self.lambda]);
        parts.flatten().copied()
    }

    fn map<T>(&self, f: impl Fn(S) -> T + Copy) -> Outcome<T> {
        let part = |values: &[S]| values.iter().map(|&x| f(x)).collect::<Vec<T>>();
        Outcome {
            objectives: part(&self.objectives),
            motion: self.motion.each_ref().map(|values| part(values)),
            lambda: part(&self.lambda),
        }
    }
}

impl Outcome<f64> {
    fn all_mut(&mut self) -> impl Iterator<Item = &mut f64> {
        let parts = [&mut self.objectives].into_iter().chain(&mut self.motion).chain([&mut self.lambda]);
        parts.flatten()
    }

    fn with(&self, other: &Self, f: impl Fn(f64, f64) -> f64) -> Self {
        let mut result = self.clone();
        for (a, b) in result.all_mut().zip(other.all()) {
            *a = f(*a, b);
        }
        result
    }
}

/// One matrix: its values, its derivatives, and what is expected of them with its uncertainty, by columns.
struct Block<'a> {
    what: String,
    values: &'a [f64],
    found: &'a dyn Fn(usize, usize) -> f64,
    expected: &'a dyn Fn(usize, usize) -> (f64, f64),
    name: &'a dyn Fn(usize) -> String,
    /// What counts as large in a column, beside the entries.
    size: &'a dyn Fn(usize) -> f64,
}

/// The gradients of all objectives.
pub(super) fn compare_objectives(model: &Interpreted, found: &Found, columns: &[Column]) -> Vec<RunCheck> {
    let mut checks = Vec::new();
    for (i, (name, _)) in model.program().objectives.iter().enumerate() {
        checks.extend(compare_block(
            model,
            columns,
            Block {
                what: name.clone(),
                values: &found.objectives[i..=i],
                found: &|_, k| found.of_objective(i)[k],
                expected: &|_, k| (columns[k].values.objectives[i], columns[k].errors.objectives[i]),
                name: &|_| name.clone(),
                size: &|_| 0.0,
            },
        ));
    }
    checks
}

/// Of iterated steps, which end where a correction is a small part of the motion in a step, accelerations are as good as velocities over
/// `step`; stiff ones are small differences of much larger terms. Infinite: they are judged by themselves.
fn compare(
    model: &Interpreted,
    found: &Found,
    trace: &Trace,
    columns: &[Column],
    step: f64,
) -> Vec<RunCheck> {
    let mut checks = compare_objectives(model, found, columns);
    let dims = model.dims();
    let named = |quantity, index| model.name(quantity, index).unwrap_or_default().to_owned();
    let coordinate = |i: usize| named(Quantity::Coordinate, i);
    // Multipliers of normalisation rows are zero but for rounding.
    let others = |i: usize| if i < dims.n_holonomic { i } else { i + dims.n_normalisation };
    let multiplier = |i: usize| {
        let (quantity, index) = row(&dims, others(i));
        named(quantity, index)
    };
    let forces: Vec<f64> =
        (0..dims.joint_rows()).filter_map(|i| trace.values[3].get(others(i))).copied().collect();
    let names: [&dyn Fn(usize) -> String; 4] = [&coordinate, &coordinate, &coordinate, &multiplier];
    let unit = (0..dims.nq).map(|j| model.units().coordinate(j)).fold(f64::INFINITY, f64::min);
    for (part, what) in ["z", "zd", "zdd", "λ"].into_iter().enumerate() {
        if trace.derivatives[part].is_empty() {
            continue;
        }
        let of = |outcome: &Outcome<f64>, i: usize| match part {
            3 => outcome.lambda[others(i)],
            part => outcome.motion[part][i],
        };
        let place = |i: usize| if part == 3 { others(i) } else { i };
        // Rates that do not change with a parameter have the rounding of what the values change by, over the run.
        let span = trace.times.last().zip(trace.times.first()).map_or(0.0, |(end, begin)| end - begin);
        let mean_step = span / (trace.times.len().max(2) - 1) as f64;
        let still = |k: usize| {
            let over = [1.0, span, span * mean_step].get(part).copied().unwrap_or(0.0);
            let moved = STILL * unit / size_of_seed(model, k);
            if over > 0.0 { moved / over } else { 0.0 }
        };
        let before = |k: usize| match part {
            0 => still(k),
            1 | 2 => {
                let column = trace.derivatives[part - 1].iter().skip(k).step_by(columns.len());
                let largest = column.fold(0.0, |m: f64, x| m.max(x.abs()));
                let over_run = if span > 0.0 { LEAST * largest / span } else { 0.0 };
                let over_run = over_run.max(still(k));
                if part == 2 { over_run.max(largest / step) } else { over_run }
            }
            _ => 0.0,
        };
        checks.extend(compare_block(
            model,
            columns,
            Block {
                what: format!("{what} at the end"),
                values: if part == 3 { &forces } else { &trace.values[part] },
                found: &|i, k| trace.derivatives[part][place(i) * columns.len() + k],
                expected: &|i, k| (of(&columns[k].values, i), of(&columns[k].errors, i)),
                name: names[part],
                size: &before,
            },
        ));
    }
    checks
}

/// An objective below this is the square of what iterations leave: a roll rate of a motion straight on.
pub(super) const VANISHED: f64 = 1e-20;

/// As the other checks: an error counts against the largest entry of its column; where that is small, against a part of what the
/// largest of all, or the value itself, mean for a change of the parameter by its size.
fn compare_block(model: &Interpreted, columns: &[Column], block: Block<'_>) -> Option<RunCheck> {
    let rows = 0..block.values.len();
    let size = |k: usize| size_of_seed(model, k);
    let largest = |k: usize| {
        let entries = rows.clone().map(|i| (block.found)(i, k).abs().max((block.expected)(i, k).0.abs()));
        entries.fold(0.0, f64::max)
    };
    let value = block.values.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
    let all = (0..columns.len()).map(|k| largest(k) * size(k)).fold(value, f64::max).max(VANISHED / LEAST);
    let mut worst: Option<RunCheck> = None;
    for (k, column) in columns.iter().enumerate() {
        let scale = largest(k).max(LEAST * all / size(k)).max((block.size)(k));
        for i in rows.clone() {
            let (found, (expected, uncertain)) = ((block.found)(i, k), (block.expected)(i, k));
            let error = if found == expected { 0.0 } else { (found - expected).abs() / scale };
            let least = match column.oracle {
                Oracle::ComplexSteps => TOLERANCE,
                Oracle::Differences => TOLERANCE_OF_DIFFERENCES,
            };
            let tolerance = if uncertain == 0.0 { least } else { least.max(uncertain / scale) };
            // The worst is the one furthest beyond, or nearest to, what is allowed; what is not a number is worse.
            let part = error / tolerance;
            let known = worst.as_ref().map(|worst| worst.error / worst.tolerance);
            if known.is_none_or(|known| part > known || (part.is_nan() && !known.is_nan())) {
                worst = Some(RunCheck {
                    what: block.what.clone(),
                    oracle: column.oracle,
                    error,
                    tolerance,
                    of: (block.name)(i),
                    by: model.name(Quantity::Sensitivity, k).unwrap_or_default().to_owned(),
                    found,
                    expected,
                });
            }
        }
    }
    worst
}

#[cfg(test)]
mod tests {
    use super::ridders;

    #[test]
    fn differences_are_extrapolated_to_rounding() {
        let series = |f: &dyn Fn(f64) -> f64| (0..9).map(|i| f(0.4 / 2f64.powi(i))).collect::<Vec<_>>();
        let x = 0.7_f64;
        let central = series(&|h| ((x + h).sin() - (x - h).sin()) / (2.0 * h));
        let (value, error) = ridders(&central, true);
        assert!((value - x.cos()).abs() < 1e-12 && error < 1e-10, "{value} {error}");
        let onward = series(&|h| (4.0 * (x + h).sin() - (x + 2.0 * h).sin() - 3.0 * x.sin()) / (2.0 * h));
        let (value, error) = ridders(&onward, false);
        assert!((value - x.cos()).abs() < 1e-11 && error < 1e-9, "{value} {error}");
    }

    #[test]
    fn noise_is_seen() {
        let noisy = [0.0, 5.0, 1.0, 7.0, 3.0, 9.0, 2.0, 8.0, 4.0].map(|x| 1.0 + 1e-3 * x);
        let (_, error) = ridders(&noisy, true);
        assert!(error > 1e-5, "{error}");
    }
}
