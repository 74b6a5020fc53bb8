//! Least squares within bounds, by the Levenberg–Marquardt method of `basin`.

use super::measurements::{MeasurementError, Measurements, record};
use super::statistics::{Statistics, statistics};
use crate::optimisation::{Variable, variables};
use crate::simulation::Instance;
use basin::{
    BoundedLevenbergMarquardt, BoxBounds, ConstraintDescription, ConstraintSet, Constraints, DenseMatrix,
    Executor, Jacobian, PointState, Residual, State, StepOutcome,
};
use mbs_codegen::model::Model;
use mbs_codegen::model::optimisation::Unknown;
use nalgebra::DMatrix;
use rayon::prelude::*;
use std::cell::RefCell;
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
    /// Whether it came to an end by itself.
    pub converged: bool,
    /// Whether somebody stopped it.
    pub stopped: bool,
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
    /// Of the last points: y and r.
    known: Vec<(Vec<f64>, Vec<f64>)>,
    worst: f64,
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

    /// r; of a run that fails, numbers that no step is accepted with.
    fn residuals(&mut self, y: &[f64]) -> Result<Vec<f64>, Stopped> {
        if let Some((_, known)) = self.known.iter().find(|(known, _)| known == y) {
            return Ok(known.clone());
        }
        self.runs += 1;
        let residuals = match self.run(y)? {
            Ok(residuals) => residuals,
            Err(why) => {
                self.failed = (self.failed.0 + 1, Some(why));
                vec![1e3 * self.worst.max(1.0); self.data.count()]
            }
        };
        self.worst = self.worst.max(residuals.iter().fold(0.0, |m: f64, r| m.max(r.abs())));
        self.known.insert(0, (y.to_vec(), residuals.clone()));
        self.known.truncate(4);
        Ok(residuals)
    }

    /// ∂r/∂y by differences, of fourth order, one-sided of second order at a bound; all runs at once. The points of runs that fail are
    /// left out, which lowers the order.
    fn jacobian(&mut self, y: &[f64]) -> Result<DMatrix<f64>, Stopped> {
        let (m, n) = (self.data.count(), y.len());
        let here = self.residuals(y)?;
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
            match result? {
                Ok(residuals) => columns[k].push((step, residuals)),
                Err(why) => self.failed = (self.failed.0 + 1, Some(why)),
            }
        }
        let mut jacobian = DMatrix::zeros(m, n);
        for (k, column) in columns.iter().enumerate() {
            if column.is_empty() {
                return Err(Stopped);
            }
            let steps: Vec<f64> = column.iter().map(|(step, _)| *step).collect();
            for ((_, residuals), weight) in column.iter().zip(slope_weights(&steps)) {
                let changes = residuals.iter().zip(&here).map(|(r, here)| r - here);
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

struct Adapter<'b, 'a> {
    bench: &'b RefCell<Bench<'a>>,
    lower: Vec<f64>,
    upper: Vec<f64>,
}

impl Constraints for Adapter<'_, '_> {
    type Set = ConstraintSet<BoxBounds<Vec<f64>>>;

    fn constraints(&self) -> <Self::Set as ConstraintDescription>::Borrowed<'_> {
        ConstraintSet::new().with_bounds(BoxBounds::new(Some(&self.lower), Some(&self.upper)))
    }
}

impl Residual for Adapter<'_, '_> {
    type Param = Vec<f64>;
    type Output = Vec<f64>;
    type Error = Stopped;

    fn residual(&self, y: &Vec<f64>) -> Result<Vec<f64>, Stopped> {
        self.bench.borrow_mut().residuals(y)
    }
}

impl Jacobian for Adapter<'_, '_> {
    type Jacobian = DenseMatrix;

    fn jacobian(&self, y: &Vec<f64>) -> Result<DenseMatrix, Stopped> {
        let jacobian = self.bench.borrow_mut().jacobian(y)?;
        let rows: Vec<f64> = jacobian.transpose().as_slice().to_vec();
        Ok(DenseMatrix::from_row_slice(jacobian.nrows(), jacobian.ncols(), &rows))
    }
}

/// Relative decrease of ‖r‖² below which an iteration is the last.
const DECREASE: f64 = 1e-12;

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
    let mut y = scaled(&start);
    let bench = Bench {
        instance,
        data,
        places: &places,
        variables: &variables,
        stop,
        known: Vec::new(),
        worst: 0.0,
        runs: 0,
        failed: (0, None),
    };
    match bench.run(&y) {
        Err(Stopped) => return Err(FitError::Stopped),
        Ok(Err(why)) => return Err(FitError::Start(why)),
        Ok(Ok(_)) => {}
    }
    let bench = RefCell::new(bench);
    let residuals = |y: &[f64]| bench.borrow_mut().residuals(y).map_err(|Stopped| FitError::Stopped);
    let first = squares(&residuals(&y)?);
    let step = Step { number: 0, squares: first, runs: 1, seconds: begin.elapsed().as_secs_f64() };
    let stopped = watch(&step).is_break();
    let mut course = Course { begin, history: vec![step], converged: false, stopped };
    if !course.stopped {
        y = minimise(&bench, y, iterations, watch, &mut course);
    }
    let x: Vec<f64> = variables.iter().zip(&y).map(|(v, y)| v.unscaled(*y)).collect();
    let residuals = residuals(&y)?;
    let jacobian = bench.borrow_mut().jacobian(&y);
    let jacobian = jacobian.map_err(|Stopped| match bench.borrow().failed.1.clone() {
        Some(why) if !stop.load(Ordering::Relaxed) => FitError::Derivative(why),
        _ => FitError::Stopped,
    })?;
    let slopes: Vec<f64> = variables.iter().zip(&x).map(|(v, x)| v.slope(*x)).collect();
    let found = statistics(&jacobian, &residuals, &slopes);
    Ok(Fit {
        start,
        x,
        squares: (first, squares(&residuals)),
        count: data.count(),
        statistics: found,
        history: course.history,
        converged: course.converged,
        stopped: course.stopped,
        failed: bench.into_inner().failed,
        notes,
        variables,
    })
}

/// ‖r‖²
fn squares(r: &[f64]) -> f64 {
    r.iter().map(|r| r * r).sum()
}

/// The course of a fit.
struct Course {
    begin: Instant,
    /// Never empty.
    history: Vec<Step>,
    converged: bool,
    stopped: bool,
}

/// Levenberg–Marquardt iterations from y; the best y.
fn minimise(
    bench: &RefCell<Bench<'_>>,
    mut y: Vec<f64>,
    iterations: usize,
    watch: &mut dyn FnMut(&Step) -> ControlFlow<()>,
    course: &mut Course,
) -> Vec<f64> {
    let bound = |v: &Variable, x: f64| if x.is_finite() { v.scaled(x) } else { x };
    let variables = bench.borrow().variables;
    let lower = variables.iter().map(|v| bound(v, v.lower)).collect();
    let upper = variables.iter().map(|v| bound(v, v.upper)).collect();
    let mut before = course.history[0].squares;
    // The projected gradient is measured against the residuals; an exact fit ends by the decrease.
    let solver =
        BoundedLevenbergMarquardt::new().with_absolute_scaled_gradient_tolerance(1e-12 * before.max(1e-300));
    let executor = Executor::new(Adapter { bench, lower, upper }, solver, PointState::new(y.clone()));
    let Ok(mut stepper) = executor.max_iter(iterations as u64).into_stepper() else {
        course.stopped = true;
        return y;
    };
    loop {
        let Ok(outcome) = stepper.step() else {
            course.stopped = true;
            return y;
        };
        let new = stepper.state().param().clone();
        let Ok(residuals) = bench.borrow_mut().residuals(&new) else {
            course.stopped = true;
            return y;
        };
        let now = squares(&residuals);
        if now <= before {
            y = new;
        }
        let step = Step {
            number: course.history.len(),
            squares: now,
            runs: bench.borrow().runs,
            seconds: course.begin.elapsed().as_secs_f64(),
        };
        let broken = watch(&step).is_break();
        course.history.push(step);
        let still = before - now <= DECREASE * before.max(f64::MIN_POSITIVE);
        let ended = match &outcome {
            StepOutcome::Stopped(report) => {
                Some(matches!(report.termination, basin::Termination::Converged(_)))
            }
            _ => None,
        };
        if let Some(converged) = ended.map(|converged| converged || still).or(still.then_some(true)) {
            course.converged = converged;
            return y;
        }
        if broken {
            course.stopped = true;
            return y;
        }
        before = now;
    }
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
