//! Least squares within bounds, by the Levenberg–Marquardt method. Unknowns at a bound that the gradient leads out of stay there; steps end at bounds.
//!
//! Written here since a run may fail: a trial whose run fails is one that is not accepted, and a fit that ended beside such trials has not converged.

use super::measurements::{MeasurementError, Measurements, record};
use super::statistics::{Statistics, statistics};
use crate::optimisation::{Variable, variables};
use crate::simulation::Instance;
use mbs_codegen::model::Model;
use mbs_codegen::model::optimisation::Unknown;
use nalgebra::{DMatrix, DVector};
use rayon::prelude::*;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// An iteration.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Its number; 0 is the start.
    pub number: usize,
    /// ‖r‖²
    pub squares: f64,
    /// Runs so far, those of differences included.
    pub runs: usize,
    /// Wall time since the start, s.
    pub seconds: f64,
}

/// How a fit ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// No run nearby fits better.
    Converged,
    /// Runs on the way to a better fit failed.
    Cornered,
    /// All iterations were made.
    Limit,
    /// Somebody stopped it.
    Stopped,
}

/// Parameters that fit measurements.
#[derive(Clone, Debug)]
pub struct Fit {
    /// What was varied.
    pub variables: Vec<Variable>,
    /// Where it began.
    pub start: Vec<f64>,
    /// The fit.
    pub x: Vec<f64>,
    /// ‖r‖² at the start and at the end.
    pub squares: (f64, f64),
    /// Numbers that were measured.
    pub count: usize,
    /// What the data say of each parameter.
    pub statistics: Statistics,
    /// Every iteration.
    pub history: Vec<Step>,
    /// How it ended.
    pub end: End,
    /// Runs that failed, and why the last did.
    pub failed: (usize, Option<String>),
    /// Notes on the start.
    pub notes: Vec<String>,
}

/// Why there is no fit.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FitError {
    /// Measurements that are none of this run.
    Measurements(MeasurementError),
    /// The run fails at the start.
    Start(String),
    /// Somebody stopped it before the first step was done.
    Stopped,
    /// All runs beside a point fail that a difference by an unknown needs.
    Derivative(String),
}

impl fmt::Display for FitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FitError::Measurements(error) => error.fmt(f),
            FitError::Start(why) => write!(f, "the fit cannot begin: {why}"),
            FitError::Stopped => f.write_str("stopped before the first step"),
            FitError::Derivative(why) => {
                write!(
                    f,
                    "no run beside the best point comes to its end, so it has no derivative: {why}; bound the unknowns"
                )
            }
        }
    }
}

impl std::error::Error for FitError {}

struct Stopped;

/// What the callbacks share.
struct Bench<'a> {
    instance: &'a Instance,
    data: &'a Measurements,
    places: &'a [usize],
    variables: &'a [Variable],
    stop: &'a AtomicBool,
    runs: usize,
    failed: (usize, Option<String>),
}

/// Step of the scaled unknowns for differences. With the four-point formula the error is about δ⁴ + 1e-13/δ of the scale.
const DELTA: f64 = 1e-3;

impl Bench<'_> {
    fn run(&self, y: &[f64]) -> Result<Result<Vec<f64>, String>, Stopped> {
        let mut model = self.instance.model.clone();
        let mut parameters = model.parameters().to_vec();
        for (variable, y) in self.variables.iter().zip(y) {
            parameters[variable.place] = variable.unscaled(*y);
        }
        if let Err(error) = model.set_parameters(&parameters) {
            return Ok(Err(error.to_string()));
        }
        let stop = || self.stop.load(Ordering::Relaxed);
        let nodes = record(&model, &self.instance.settings, self.places, &stop);
        if stop() {
            return Err(Stopped);
        }
        Ok(nodes.and_then(|nodes| {
            let residuals = self.data.residuals(&nodes);
            match residuals.iter().all(|r| r.is_finite()) {
                true => Ok(residuals),
                false => Err("a measured column is not finite".into()),
            }
        }))
    }

    /// r, if the run comes to its end.
    fn residuals(&mut self, y: &[f64]) -> Result<Option<DVector<f64>>, Stopped> {
        self.runs += 1;
        match self.run(y)? {
            Ok(residuals) => Ok(Some(DVector::from_vec(residuals))),
            Err(why) => {
                self.failed = (self.failed.0 + 1, Some(why));
                Ok(None)
            }
        }
    }

    /// ∂r/∂y by differences, of fourth order, one-sided of second order at a bound; all runs at once. The points of runs that fail are
    /// left out, which lowers the order.
    fn jacobian(&mut self, y: &[f64], here: &DVector<f64>) -> Result<DMatrix<f64>, FitError> {
        let (m, n) = (self.data.count(), y.len());
        let stencils: Vec<Vec<f64>> = self.variables.iter().zip(y).map(|(v, y)| stencil(v, *y)).collect();
        let jobs: Vec<(usize, f64)> =
            stencils.iter().enumerate().flat_map(|(k, s)| s.iter().map(move |step| (k, *step))).collect();
        let this: &Bench<'_> = self;
        let ran: Vec<Result<Result<Vec<f64>, String>, Stopped>> = jobs
            .par_iter()
            .map(|(k, step)| {
                let mut moved = y.to_vec();
                moved[*k] += step;
                this.run(&moved)
            })
            .collect();
        self.runs += jobs.len();
        let mut columns: Vec<Vec<(f64, Vec<f64>)>> = vec![Vec::new(); n];
        for ((k, step), result) in jobs.into_iter().zip(ran) {
            match result.map_err(|Stopped| FitError::Stopped)? {
                Ok(residuals) => columns[k].push((step, residuals)),
                Err(why) => self.failed = (self.failed.0 + 1, Some(why)),
            }
        }
        let mut jacobian = DMatrix::zeros(m, n);
        for (k, column) in columns.iter().enumerate() {
            if column.is_empty() {
                return Err(FitError::Derivative(self.failed.1.clone().unwrap_or_default()));
            }
            let steps: Vec<f64> = column.iter().map(|(step, _)| *step).collect();
            for ((_, residuals), weight) in column.iter().zip(slope_weights(&steps)) {
                let changes = residuals.iter().zip(here.iter()).map(|(r, here)| r - here);
                changes.enumerate().for_each(|(i, change)| jacobian[(i, k)] += weight * change);
            }
        }
        Ok(jacobian)
    }
}

/// Weights w_i with f′(0) ≈ Σ w_i (f(x_i) − f(0)): the slope of the polynomial through these points and zero,
/// w_i = 1/x_i Π_{j ≠ i} x_j/(x_j − x_i).
fn slope_weights(x: &[f64]) -> Vec<f64> {
    let weight = |i: usize| {
        let others = x.iter().enumerate().filter(|(j, _)| *j != i);
        others.map(|(_, other)| other / (other - x[i])).product::<f64>() / x[i]
    };
    (0..x.len()).map(weight).collect()
}

/// Steps of a difference at y, within the bounds.
fn stencil(variable: &Variable, y: f64) -> Vec<f64> {
    let bound = |x: f64| if x.is_finite() { variable.scaled(x) } else { x };
    let (low, high) = (bound(variable.lower), bound(variable.upper));
    let d = DELTA * variable.size(y);
    if y - 2.0 * d >= low && y + 2.0 * d <= high {
        return vec![-2.0 * d, -d, d, 2.0 * d];
    }
    // A smaller step for the lower order.
    let d = if y + 0.02 * d <= high { 0.01 * d } else { -0.01 * d };
    vec![d, 2.0 * d]
}

/// Relative decrease of ‖r‖² below which an iteration is the last.
const DECREASE: f64 = 1e-12;

/// Angle between residuals and a column of the Jacobian whose cosine is below this is a right one: differences tell no more.
const COSINE: f64 = 1e-10;

/// Change of scaled unknowns, over their size, that no run tells: ‖r‖² is flat at its minimum, so half the digits would do.
const NEAR: f64 = 1e-10;

/// Fits parameters to measurements. `watch` sees every iteration; where it breaks, or `stop` is set, the fit ends with what it has.
pub fn fit(
    model: &Model,
    instance: &Instance,
    over: &[Unknown],
    data: &Measurements,
    iterations: usize,
    stop: &AtomicBool,
    watch: &mut dyn FnMut(&Step) -> ControlFlow<()>,
) -> Result<Fit, FitError> {
    let begin = Instant::now();
    let places = data.places(model, &instance.model, &instance.settings).map_err(FitError::Measurements)?;
    let (variables, start, notes) = variables(model, over, instance.model.parameters());
    let scaled = |x: &[f64]| -> Vec<f64> { variables.iter().zip(x).map(|(v, x)| v.scaled(*x)).collect() };
    let y = scaled(&start);
    let mut bench =
        Bench { instance, data, places: &places, variables: &variables, stop, runs: 1, failed: (0, None) };
    let r = match bench.run(&y) {
        Err(Stopped) => return Err(FitError::Stopped),
        Ok(Err(why)) => return Err(FitError::Start(why)),
        Ok(Ok(residuals)) => DVector::from_vec(residuals),
    };
    let first = r.norm_squared();
    let step = Step { number: 0, squares: first, runs: 1, seconds: begin.elapsed().as_secs_f64() };
    let end = if watch(&step).is_break() { Some(End::Stopped) } else { None };
    let mut course = Course { begin, history: vec![step], y, r };
    let end = match end {
        Some(end) => end,
        None => minimise(&mut bench, iterations, watch, &mut course)?,
    };
    let Course { history, y, r, .. } = course;
    let jacobian = bench.jacobian(&y, &r)?;
    let x: Vec<f64> = variables.iter().zip(&y).map(|(v, y)| v.unscaled(*y)).collect();
    let slopes: Vec<f64> = variables.iter().zip(&x).map(|(v, x)| v.slope(*x)).collect();
    let failed = bench.failed;
    Ok(Fit {
        start,
        x,
        squares: (first, r.norm_squared()),
        count: data.count(),
        statistics: statistics(&jacobian, r.as_slice(), &slopes),
        history,
        end,
        failed,
        notes,
        variables,
    })
}

/// The course of a fit: where it is, and how it came there.
struct Course {
    begin: Instant,
    /// Never empty.
    history: Vec<Step>,
    y: Vec<f64>,
    r: DVector<f64>,
}

/// Levenberg–Marquardt iterations: (JᵀJ + μ D) h = −Jᵀr with D = diag(JᵀJ), of the unknowns that are free.
fn minimise(
    bench: &mut Bench<'_>,
    iterations: usize,
    watch: &mut dyn FnMut(&Step) -> ControlFlow<()>,
    course: &mut Course,
) -> Result<End, FitError> {
    let bound = |v: &Variable, x: f64| if x.is_finite() { v.scaled(x) } else { x };
    let bounds: Vec<(f64, f64)> =
        bench.variables.iter().map(|v| (bound(v, v.lower), bound(v, v.upper))).collect();
    let mut damping = 1e-3;
    for _ in 0..iterations {
        let before = course.r.norm_squared();
        let j = match bench.jacobian(&course.y, &course.r) {
            Err(FitError::Stopped) => return Ok(End::Stopped),
            other => other?,
        };
        let g = j.tr_mul(&course.r);
        let leads_out = |k: usize| {
            let ((lower, upper), y) = (bounds[k], course.y[k]);
            y <= lower && g[k] > 0.0 || y >= upper && g[k] < 0.0
        };
        let free: Vec<usize> = (0..g.len()).filter(|k| !leads_out(*k)).collect();
        let flat = |k: &usize| g[*k].abs() <= COSINE * j.column(*k).norm() * course.r.norm();
        if free.iter().all(flat) {
            return Ok(End::Converged);
        }
        let (j, g) =
            (j.select_columns(&free), DVector::from_iterator(free.len(), free.iter().map(|k| g[*k])));
        let failed = bench.failed.0;
        let accepted = loop {
            let Some(trial) = trial(&j, &g, damping, &free, &bounds, &course.y) else {
                damping *= 4.0;
                continue;
            };
            let mut moves =
                free.iter().map(|&k| (trial[k] - course.y[k], bench.variables[k].size(course.y[k])));
            if moves.all(|(step, size)| step.abs() <= NEAR * size) {
                break None;
            }
            let moved = DVector::from_iterator(free.len(), free.iter().map(|k| trial[*k] - course.y[*k]));
            // The decrease that the linear residuals r + J s promise: −2 gᵀs − |J s|²
            let promised = -2.0 * g.dot(&moved) - (&j * &moved).norm_squared();
            let Ok(residuals) = bench.residuals(&trial) else { return Ok(End::Stopped) };
            let gain = residuals.as_ref().map_or(-1.0, |r| (before - r.norm_squared()) / promised);
            match residuals {
                Some(r) if promised > 0.0 && gain > 1e-4 => {
                    // Nielsen's rule.
                    damping *= (1.0 - (2.0 * gain - 1.0).powi(3)).clamp(1.0 / 3.0, 2.0);
                    break Some((trial, r));
                }
                _ => damping *= 4.0,
            }
        };
        let failures = bench.failed.0 > failed;
        let near = accepted.is_none();
        if let Some((y, r)) = accepted {
            (course.y, course.r) = (y, r);
        }
        let now = course.r.norm_squared();
        let step = Step {
            number: course.history.len(),
            squares: now,
            runs: bench.runs,
            seconds: course.begin.elapsed().as_secs_f64(),
        };
        let broken = watch(&step).is_break();
        course.history.push(step);
        match (near || before - now <= DECREASE * before, failures) {
            (true, false) => return Ok(End::Converged),
            (true, true) => return Ok(End::Cornered),
            _ if broken => return Ok(End::Stopped),
            _ => {}
        }
    }
    Ok(End::Limit)
}

/// y + h within the bounds; none where rounding makes the matrix indefinite, which more damping mends.
fn trial(
    j: &DMatrix<f64>,
    g: &DVector<f64>,
    damping: f64,
    free: &[usize],
    bounds: &[(f64, f64)],
    y: &[f64],
) -> Option<Vec<f64>> {
    let mut matrix = j.tr_mul(j);
    let largest = matrix.diagonal().max();
    for k in 0..free.len() {
        // What the residuals do not depend on stays where it is.
        let own = matrix[(k, k)].max(f64::EPSILON * largest).max(f64::MIN_POSITIVE);
        matrix[(k, k)] += damping * own;
    }
    let factor = matrix.cholesky()?;
    let mut trial = y.to_vec();
    for (&k, h) in free.iter().zip(factor.solve(g).iter()) {
        trial[k] = (y[k] - h).max(bounds[k].0).min(bounds[k].1);
    }
    Some(trial)
}

#[cfg(test)]
mod tests {
    use super::slope_weights;

    #[test]
    fn slopes_are_exact_for_polynomials_whatever_runs_fail() {
        let f = |x: f64| 1.0 + 3.0 * x - 2.0 * x * x;
        for points in [&[-0.2, -0.1, 0.1, 0.2][..], &[-0.2, -0.1, 0.1], &[0.1, 0.2], &[-0.1, 0.2]] {
            let slope: f64 = points.iter().zip(slope_weights(points)).map(|(&x, w)| w * (f(x) - 1.0)).sum();
            assert!((slope - 3.0).abs() < 1e-13, "{points:?}: {slope}");
        }
        let four: Vec<f64> = slope_weights(&[-2.0, -1.0, 1.0, 2.0]).iter().map(|w| 12.0 * w).collect();
        assert!(four.iter().zip([1.0, -8.0, 8.0, -1.0]).all(|(w, expected)| (w - expected).abs() < 1e-14));
    }
}
