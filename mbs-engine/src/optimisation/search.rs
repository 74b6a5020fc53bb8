//! The search: an optimiser of `basin` over the scaled problem, one iteration at a time.
//!
//! A run that fails at a trial point must shorten the step. SLSQP halves it where a value is not finite. The line search of L-BFGS
//! interpolates, so it gets a parabola that is least at a quarter of the step. With x₀ the last accepted point, f₀ and g₀ there:
//!
//! f(x) = f₀ + |g₀ᵀ(x − x₀)|, ∇f(x) = −3 g₀

use super::evaluation::{Evaluation, Failed};
use super::optimality::{FunctionScales, Optimality};
use super::problem::Problem;
use crate::simulation::Follower;
use basin::{
    BoxBounds, Cobyla, ConstraintDescription, ConstraintJacobian, ConstraintSet, ConstraintSolveError,
    Constraints, CostFunction, DenseMatrix, Executor, FirstOrderState, Gradient, Lbfgs, NoLinearConstraints,
    NonlinearBlock, NonlinearBlocks, NonlinearEqualityValues, NonlinearInequalityValues,
    SelectedFirstOrderState, SelectedState, Slsqp, State, StepOutcome,
};
use mbs_codegen::model::optimisation::OptimisationMethod;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::ops::ControlFlow;
use std::time::Instant;

/// Who follows a search. Where an answer is a break, the search ends with the best point so far.
pub trait Watch {
    /// A run has come to this time.
    fn reached(&mut self, t: f64) -> ControlFlow<()> {
        let _ = t;
        ControlFlow::Continue(())
    }

    /// An iteration from the start of this number ended at x.
    fn iterated(&mut self, start: usize, iteration: &Iteration, x: &[f64]) -> ControlFlow<()> {
        let _ = (start, iteration, x);
        ControlFlow::Continue(())
    }

    /// What is known of x from an earlier search.
    fn recall(&mut self, x: &[f64]) -> Option<Result<Evaluation, Failed>> {
        let _ = x;
        None
    }

    /// x was evaluated.
    fn evaluated(&mut self, x: &[f64], result: &Result<Evaluation, Failed>) {
        let _ = (x, result);
    }
}

/// No observer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unwatched;

impl Watch for Unwatched {}

/// An iteration of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Iteration {
    /// Its number; 0 is the start.
    pub number: usize,
    /// Evaluations so far.
    pub evaluations: usize,
    /// Runs that failed so far.
    pub failed: usize,
    /// What is minimised.
    pub cost: f64,
    /// Largest violation of a constraint.
    pub violation: f64,
    /// ‖Δy‖ of the scaled unknowns.
    pub step: f64,
    /// ‖r‖∞ of the scaled problem; none where there are no derivatives.
    pub projected_gradient: Option<f64>,
    /// Whether the runs go through other jumps than at the iteration before: the cost may have a kink between.
    pub jumps_changed: bool,
    /// How the events of the runs differ from those at the iteration before, in words: the cost has a kink between.
    pub other_events: Option<String>,
    /// Wall time since the start, s.
    pub seconds: f64,
}

/// How a search ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// At an optimum.
    Converged,
    /// No further decrease was found: why the optimiser stopped.
    Stalled(String),
    /// At the largest number of iterations.
    Limit,
    /// Constraints are not met.
    Infeasible,
    /// Somebody stopped it.
    Stopped,
}

/// What came of one start.
#[derive(Clone, Debug)]
pub struct Search {
    /// Where it began.
    pub start: Vec<f64>,
    /// What was minimised there.
    pub start_cost: f64,
    /// What was found there.
    pub start_evaluation: Evaluation,
    /// The best point.
    pub x: Vec<f64>,
    /// What is minimised there.
    pub cost: f64,
    /// Largest violation of a constraint there.
    pub violation: f64,
    /// Values and derivatives there.
    pub evaluation: Evaluation,
    /// How near it is to an optimum; none without derivatives.
    pub optimality: Option<Optimality>,
    /// How it ended.
    pub status: Status,
    /// Every iteration.
    pub history: Vec<Iteration>,
    /// Evaluations.
    pub evaluations: usize,
    /// Runs that failed, and why the last of them did.
    pub failed: (usize, Option<String>),
    /// Wall time, s.
    pub seconds: f64,
}

/// What came of all starts.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Of each start.
    pub searches: Vec<Search>,
    /// Starts that could not be run: their number and why.
    pub lost: Vec<(usize, String)>,
    best: usize,
    /// Unknowns that move neither the cost nor a constraint.
    pub idle: Vec<String>,
}

impl Outcome {
    /// The search with the best point.
    pub fn best(&self) -> &Search {
        &self.searches[self.best]
    }

    /// Its place among the searches.
    pub fn best_place(&self) -> usize {
        self.best
    }
}

/// Why a search has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SearchError {
    /// No start can be run: why the first cannot.
    Start(String),
    /// No unknown moves what is minimised.
    Unmoved {
        /// What is minimised.
        goal: String,
        /// The unknowns.
        names: Vec<String>,
    },
    /// Somebody stopped it before the first evaluation was done.
    Stopped,
}

impl fmt::Display for SearchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SearchError::Start(why) => write!(f, "the search cannot begin: {why}"),
            SearchError::Unmoved { goal, names } => {
                let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
                write!(
                    f,
                    "`{goal}` is moved by none of {}: vary others, or minimise another objective",
                    names.join(", ")
                )
            }
            SearchError::Stopped => f.write_str("stopped before the first evaluation"),
        }
    }
}

impl std::error::Error for SearchError {}

/// Solves a problem from all its starts.
pub fn solve(problem: &mut Problem, watch: &mut dyn Watch) -> Result<Outcome, SearchError> {
    let starts = problem.starts.clone();
    let (mut searches, mut lost, mut idle) = (Vec::new(), Vec::new(), Vec::new());
    for (number, start) in starts.iter().enumerate() {
        match search(problem, number, start, watch, &mut idle) {
            Ok(search) => {
                let stopped = search.status == Status::Stopped;
                searches.push(search);
                if stopped {
                    break;
                }
            }
            Err(SearchError::Start(why)) if starts.len() > 1 => lost.push((number, why)),
            Err(SearchError::Stopped) if !searches.is_empty() => break,
            Err(error) => return Err(error),
        }
    }
    if searches.is_empty() {
        return Err(SearchError::Start(lost.into_iter().next().map_or_else(String::new, |(_, why)| why)));
    }
    let mut best = 0;
    for (i, search) in searches.iter().enumerate() {
        if better((search.violation, search.cost), (searches[best].violation, searches[best].cost)) {
            best = i;
        }
    }
    Ok(Outcome { searches, lost, best, idle })
}

/// Scaled violation that counts as none.
const FEASIBLE: f64 = 1e-6;

fn better(one: (f64, f64), other: (f64, f64)) -> bool {
    match (one.0 <= FEASIBLE, other.0 <= FEASIBLE) {
        (true, true) => one.1 < other.1,
        (true, false) => true,
        (false, true) => false,
        (false, false) => one.0 < other.0,
    }
}

/// An evaluated point.
#[derive(Clone, Debug)]
struct Point {
    x: Vec<f64>,
    evaluation: Evaluation,
}

/// What the callbacks of the optimiser share.
struct Bench<'p> {
    problem: &'p mut Problem,
    watch: &'p mut dyn Watch,
    scales: FunctionScales,
    derivatives: bool,
    /// Gradient at the start, scaled: the measure of an absurd one.
    steepest: f64,
    recent: VecDeque<(Vec<f64>, Result<Point, Failed>)>,
    accepted: Option<Point>,
    best: Option<(f64, f64, Point)>,
    evaluations: usize,
    failed: (usize, Option<String>),
}

struct Stopped;

/// Factor by which a gradient may exceed that of the start. Beyond, a run has collapsed that still has a value.
const ABSURD: f64 = 1e8;
/// Evaluations that are kept: an optimiser asks for value, gradient and constraints of one point in turn.
const KEPT: usize = 8;

struct Clock<'w>(&'w mut dyn Watch);

impl Follower for Clock<'_> {
    fn reached(&mut self, t: f64) -> ControlFlow<()> {
        self.0.reached(t)
    }
}

impl<'p> Bench<'p> {
    fn new(problem: &'p mut Problem, watch: &'p mut dyn Watch, derivatives: bool) -> Self {
        let scales = FunctionScales { cost: 1.0, rows: vec![1.0; problem.rows.len()] };
        Bench {
            problem,
            watch,
            scales,
            derivatives,
            steepest: 0.0,
            recent: VecDeque::new(),
            accepted: None,
            best: None,
            evaluations: 0,
            failed: (0, None),
        }
    }

    fn x(&self, y: &[f64]) -> Vec<f64> {
        self.problem.variables.iter().zip(y).map(|(variable, y)| variable.unscaled(*y)).collect()
    }

    fn y(&self, x: &[f64]) -> Vec<f64> {
        self.problem.variables.iter().zip(x).map(|(variable, x)| variable.scaled(*x)).collect()
    }

    fn evaluate(&mut self, y: &[f64]) -> Result<Result<Point, Failed>, Stopped> {
        let x = self.x(y);
        if let Some((_, known)) = self.recent.iter().find(|(known, _)| *known == x) {
            return Ok(known.clone());
        }
        let recalled = self.watch.recall(&x);
        let fresh = recalled.is_none();
        let result =
            recalled.unwrap_or_else(|| self.problem.evaluate(&x, self.derivatives, &mut Clock(self.watch)));
        if matches!(&result, Err(failed) if failed.stopped) {
            return Err(Stopped);
        }
        if fresh {
            self.watch.evaluated(&x, &result);
        }
        self.evaluations += 1;
        let point = result.and_then(|evaluation| {
            let point = Point { x: x.clone(), evaluation };
            let steep = self.gradient(&point).iter().fold(0.0, |m: f64, g| m.max(g.abs()));
            match self.steepest > 0.0 && steep > ABSURD * self.steepest.max(1.0) {
                true => Err(Failed::because("the gradient is absurd: the mechanism has collapsed")),
                false => Ok(point),
            }
        });
        match &point {
            Ok(point) => {
                let found = (self.scaled_violation(point), self.problem.cost(&point.evaluation));
                if self.best.as_ref().is_none_or(|(v, c, _)| better(found, (*v, *c))) {
                    self.best = Some((found.0, found.1, point.clone()));
                }
            }
            Err(failed) => {
                self.failed.0 += 1;
                self.failed.1 = Some(failed.reason.clone());
            }
        }
        self.recent.push_front((x, point.clone()));
        self.recent.truncate(KEPT);
        Ok(point)
    }

    /// The scaled cost.
    fn cost(&self, point: &Point) -> f64 {
        self.problem.cost(&point.evaluation) / self.scales.cost
    }

    /// Its gradient by the scaled unknowns.
    fn gradient(&self, point: &Point) -> Vec<f64> {
        self.scaled(&self.problem.cost_gradient(&point.evaluation), point, self.scales.cost)
    }

    fn scaled(&self, d: &[f64], point: &Point, by: f64) -> Vec<f64> {
        let slopes = self.problem.variables.iter().zip(&point.x).map(|(variable, x)| variable.slope(*x));
        d.iter().zip(slopes).map(|(d, slope)| d * slope / by).collect()
    }

    fn scaled_violation(&self, point: &Point) -> f64 {
        let values = self.problem.row_values(&point.evaluation);
        let rows = self.problem.rows.iter().zip(values).zip(&self.scales.rows);
        rows.map(|((row, value), scale)| row.violation(value) / scale).fold(0.0, f64::max)
    }

    /// Equations h = 0, or inequalities c ≤ 0, as (row, sign, bound).
    fn sides(&self, equations: bool) -> Vec<(usize, f64, f64)> {
        let mut sides = Vec::new();
        for (i, row) in self.problem.rows.iter().enumerate() {
            if row.is_equation() != equations {
                continue;
            }
            if row.upper.is_finite() {
                sides.push((i, 1.0, row.upper));
            }
            if row.lower.is_finite() && !equations {
                sides.push((i, -1.0, row.lower));
            }
        }
        sides
    }

    fn constraint_values(&mut self, y: &[f64], equations: bool) -> Result<Vec<f64>, Stopped> {
        let sides = self.sides(equations);
        let Ok(point) = self.evaluate(y)? else { return Ok(vec![f64::INFINITY; sides.len()]) };
        let values = self.problem.row_values(&point.evaluation);
        Ok(sides.iter().map(|&(i, sign, bound)| sign * (values[i] - bound) / self.scales.rows[i]).collect())
    }
}

/// The problem as `basin` sees it. `N`: the nonlinear constraints it declares.
struct Adapter<'b, 'p, const CONSTRAINED: bool> {
    bench: &'b RefCell<Bench<'p>>,
    lower: Vec<f64>,
    upper: Vec<f64>,
    equations: usize,
    inequalities: usize,
    /// Whether a failed run has a surrogate instead of an infinite value.
    surrogate: bool,
}

impl<'b, 'p, const CONSTRAINED: bool> Adapter<'b, 'p, CONSTRAINED> {
    fn new(bench: &'b RefCell<Bench<'p>>, surrogate: bool) -> Self {
        let inner = bench.borrow();
        let variables = &inner.problem.variables;
        let bound = |x: f64, scaled: f64| if x.is_finite() { scaled } else { x };
        let lower = variables.iter().map(|v| bound(v.lower, v.scaled(v.lower))).collect();
        let upper = variables.iter().map(|v| bound(v.upper, v.scaled(v.upper))).collect();
        let (equations, inequalities) = (inner.sides(true).len(), inner.sides(false).len());
        drop(inner);
        Adapter { bench, lower, upper, equations, inequalities, surrogate }
    }
}

impl Constraints for Adapter<'_, '_, false> {
    type Set = ConstraintSet<BoxBounds<Vec<f64>>>;

    fn constraints(&self) -> <Self::Set as ConstraintDescription>::Borrowed<'_> {
        ConstraintSet::new().with_bounds(BoxBounds::new(Some(&self.lower), Some(&self.upper)))
    }
}

impl Constraints for Adapter<'_, '_, true> {
    type Set = ConstraintSet<
        BoxBounds<Vec<f64>>,
        NoLinearConstraints,
        NonlinearBlocks<NonlinearBlock, NonlinearBlock>,
    >;

    fn constraints(&self) -> <Self::Set as ConstraintDescription>::Borrowed<'_> {
        ConstraintSet::new()
            .with_bounds(BoxBounds::new(Some(&self.lower), Some(&self.upper)))
            .with_nonlinear_equalities(self.equations)
            .with_nonlinear_inequalities(self.inequalities)
    }
}

impl<const CONSTRAINED: bool> CostFunction for Adapter<'_, '_, CONSTRAINED> {
    type Param = Vec<f64>;
    type Output = f64;
    type Error = Stopped;

    fn cost(&self, y: &Vec<f64>) -> Result<f64, Stopped> {
        let mut bench = self.bench.borrow_mut();
        let result = bench.evaluate(y)?;
        Ok(match (&result, &bench.accepted) {
            (Ok(point), _) => bench.cost(point),
            (Err(_), Some(accepted)) if self.surrogate => {
                bench.cost(accepted) + along(&bench, accepted, y).abs()
            }
            (Err(_), _) => f64::INFINITY,
        })
    }
}

/// g₀ᵀ(y − y₀)
fn along(bench: &Bench<'_>, accepted: &Point, y: &[f64]) -> f64 {
    let (g, y0) = (bench.gradient(accepted), bench.y(&accepted.x));
    g.iter().zip(y).zip(&y0).map(|((g, y), y0)| g * (y - y0)).sum()
}

impl<const CONSTRAINED: bool> Gradient for Adapter<'_, '_, CONSTRAINED> {
    type Gradient = Vec<f64>;

    fn gradient(&self, y: &Vec<f64>) -> Result<Vec<f64>, Stopped> {
        let mut bench = self.bench.borrow_mut();
        let result = bench.evaluate(y)?;
        Ok(match (&result, &bench.accepted) {
            (Ok(point), _) => bench.gradient(point),
            (Err(_), Some(accepted)) if self.surrogate => {
                bench.gradient(accepted).iter().map(|g| -3.0 * g).collect()
            }
            (Err(_), _) => vec![f64::NAN; y.len()],
        })
    }
}

impl NonlinearEqualityValues for Adapter<'_, '_, true> {
    type Param = Vec<f64>;
    type Values = Vec<f64>;
    type Error = Stopped;

    fn nonlinear_equalities(&self, y: &Vec<f64>) -> Result<Vec<f64>, ConstraintSolveError<Stopped>> {
        self.bench.borrow_mut().constraint_values(y, true).map_err(ConstraintSolveError::Evaluation)
    }
}

impl NonlinearInequalityValues for Adapter<'_, '_, true> {
    type Param = Vec<f64>;
    type Values = Vec<f64>;
    type Error = Stopped;

    fn nonlinear_inequalities(&self, y: &Vec<f64>) -> Result<Vec<f64>, ConstraintSolveError<Stopped>> {
        self.bench.borrow_mut().constraint_values(y, false).map_err(ConstraintSolveError::Evaluation)
    }
}

impl ConstraintJacobian for Adapter<'_, '_, true> {
    type Param = Vec<f64>;
    type Jacobian = DenseMatrix;
    type Error = Stopped;

    /// Equations first.
    fn constraint_jacobian(&self, y: &Vec<f64>) -> Result<DenseMatrix, ConstraintSolveError<Stopped>> {
        let mut bench = self.bench.borrow_mut();
        let result = bench.evaluate(y).map_err(ConstraintSolveError::Evaluation)?;
        let sides: Vec<_> = bench.sides(true).into_iter().chain(bench.sides(false)).collect();
        let mut entries = Vec::new();
        for &(i, sign, _) in &sides {
            match &result {
                Ok(point) => {
                    let row = &bench.problem.rows[i];
                    let d = bench.problem.derivative(&point.evaluation, row.run, row.objective);
                    entries.extend(bench.scaled(d, point, sign * bench.scales.rows[i]));
                }
                Err(_) => entries.extend(vec![f64::NAN; y.len()]),
            }
        }
        Ok(DenseMatrix::from_row_slice(sides.len(), y.len(), &entries))
    }
}

/// `LineSearchFailed` as `line search failed`.
fn words(name: &str) -> String {
    let mut words = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.extend(c.to_lowercase());
    }
    words
}

/// The course of a search from one start.
struct Course {
    /// Number of the start.
    number: usize,
    begin: Instant,
    /// Most iterations.
    limit: u64,
    history: Vec<Iteration>,
    stopped: bool,
    /// Whether the optimiser converged, and its reason to end; none at the limit.
    ended: Option<(bool, String)>,
}

impl Course {
    /// Notes a step of the optimiser that took it from `before` to `count` iterations, and its `end` if it was the last. Whether to go on.
    fn goes_on(
        &mut self,
        bench: &RefCell<Bench<'_>>,
        (before, count): (u64, u64),
        y: &[f64],
        end: Option<(bool, String)>,
    ) -> bool {
        let broken = count > before && bench.borrow_mut().accept(count, y, self).is_break();
        let Some((converged, why)) = end else {
            self.stopped = broken;
            return !broken;
        };
        let limit = count >= self.limit && !converged;
        self.ended = (!limit).then_some((converged, why));
        false
    }
}

/// The search from one start.
fn search(
    problem: &mut Problem,
    number: usize,
    start: &[f64],
    watch: &mut dyn Watch,
    idle: &mut Vec<String>,
) -> Result<Search, SearchError> {
    let begin = Instant::now();
    let (method, tolerance) = (problem.chosen_method(), problem.tolerance);
    let mut course = Course {
        number,
        begin,
        limit: problem.iterations as u64,
        history: Vec::new(),
        stopped: false,
        ended: None,
    };
    let mut bench = Bench::new(problem, watch, method != OptimisationMethod::Cobyla);
    let y = bench.y(start);
    let first = match bench.evaluate(&y) {
        Err(Stopped) => return Err(SearchError::Stopped),
        Ok(Err(failed)) => return Err(SearchError::Start(failed.reason)),
        Ok(Ok(point)) => point,
    };
    if bench.derivatives {
        bench.check_influence(&first, &y, idle)?;
    }
    bench.scale_functions(&first);
    let start_cost = bench.problem.cost(&first.evaluation);
    bench.best = Some((bench.scaled_violation(&first), start_cost, first.clone()));
    bench.accepted = Some(first.clone());
    let iteration = bench.iteration(0, &first, 0.0, begin);
    course.stopped = bench.watch.iterated(number, &iteration, &first.x).is_break();
    let done = iteration.projected_gradient.is_some_and(|pg| pg <= tolerance) && iteration.violation == 0.0;
    course.history.push(iteration);
    course.ended = done.then(|| (true, String::new()));
    let bench = RefCell::new(bench);
    if course.ended.is_none() && !course.stopped {
        minimise(&bench, method, tolerance, y, &mut course);
    }
    Ok(bench.into_inner().finish(start, first, start_cost, course))
}

/// Runs the optimiser.
fn minimise(
    bench: &RefCell<Bench<'_>>,
    method: OptimisationMethod,
    tolerance: f64,
    y: Vec<f64>,
    course: &mut Course,
) {
    // One loop for all optimisers, whose states have different types.
    macro_rules! run {
        ($adapter:expr, $solver:expr, $state:expr) => {
            match Executor::new($adapter, $solver, $state).max_iter(course.limit).into_stepper() {
                Err(_) => course.stopped = true,
                Ok(mut stepper) => loop {
                    let before = stepper.iter();
                    let Ok(outcome) = stepper.step() else {
                        course.stopped = true;
                        break;
                    };
                    let end = match outcome {
                        StepOutcome::Stopped(report) => {
                            let converged = matches!(report.termination, basin::Termination::Converged(_));
                            Some((converged, words(&format!("{:?}", report.code()))))
                        }
                        _ => None,
                    };
                    let y = stepper.state().param().clone();
                    if !course.goes_on(bench, (before, stepper.iter()), &y, end) {
                        break;
                    }
                },
            }
        };
    }
    match method {
        OptimisationMethod::Slsqp => {
            // Its tests are on the decrease of the cost, quadratic in the error of unknowns.
            let accuracy = (tolerance * tolerance).max(1e-15);
            let solver = Slsqp::new().with_absolute_accuracy_tolerance(accuracy);
            run!(Adapter::<true>::new(bench, false), solver, SelectedFirstOrderState::new(y))
        }
        OptimisationMethod::Cobyla => {
            let solver = Cobyla::new().with_initial_radius(0.1).with_final_radius(tolerance.max(1e-10));
            run!(Adapter::<true>::new(bench, false), solver, SelectedState::new(y))
        }
        OptimisationMethod::Lbfgs | OptimisationMethod::Auto => {
            let memory = y.len().clamp(MEMORY.0, MEMORY.1);
            let solver =
                Lbfgs::new().with_absolute_projected_gradient_tolerance(tolerance).with_m_capacity(memory);
            run!(Adapter::<false>::new(bench, true), solver, FirstOrderState::new(y))
        }
    }
}

/// Corrections that L-BFGS keeps: as many as unknowns, so that it is BFGS for dozens of them, but not fewer or more than these. Integrals of sizes
/// (the bicycle's) have Hessians with condition numbers of 1e6, at which ten corrections end at 2e-3 of the first gradient.
const MEMORY: (usize, usize) = (10, 100);

/// Projected gradient, as a part of the first, that counts as an optimum where the optimiser finds no further decrease: costs carry
/// roundings, gradients near an optimum their square root.
const ROUNDING: f64 = 1e-6;

impl Bench<'_> {
    /// Accepts the optimiser's new iterate, and tells whoever watches.
    fn accept(&mut self, count: u64, y: &[f64], course: &mut Course) -> ControlFlow<()> {
        let Ok(Ok(point)) = self.evaluate(y) else { return ControlFlow::Break(()) };
        let before = self.accepted.as_ref().map_or_else(|| y.to_vec(), |before| self.y(&before.x));
        let step = before.iter().zip(y).map(|(a, b)| (b - a) * (b - a)).sum::<f64>().sqrt();
        let mut iteration = self.iteration(count as usize, &point, step, course.begin);
        if let Some(Point { evaluation: before, .. }) = &self.accepted {
            iteration.jumps_changed = before.jumps.len() != point.evaluation.jumps.len();
            iteration.other_events = self.problem.other_events(&before.events, &point.evaluation.events);
        }
        let flow = self.watch.iterated(course.number, &iteration, &point.x);
        self.accepted = Some(point);
        course.history.push(iteration);
        flow
    }

    fn iteration(&self, number: usize, point: &Point, step: f64, begin: Instant) -> Iteration {
        let optimality =
            self.derivatives.then(|| self.problem.optimality(&point.x, &point.evaluation, &self.scales));
        Iteration {
            number,
            evaluations: self.evaluations,
            failed: self.failed.0,
            cost: self.problem.cost(&point.evaluation),
            violation: self.problem.violation(&point.evaluation),
            step,
            projected_gradient: optimality.map(|optimality| optimality.projected_gradient),
            jumps_changed: false,
            other_events: None,
            seconds: begin.elapsed().as_secs_f64(),
        }
    }

    /// Scales cost and constraints by what they are at the start.
    fn scale_functions(&mut self, first: &Point) {
        let size = |x: f64| if x > 0.0 && x.is_finite() { x } else { 1.0 };
        let steep = self.gradient(first).iter().fold(0.0, |m: f64, g| m.max(g.abs()));
        let cost = self.problem.cost(&first.evaluation).abs();
        self.scales.cost = size(if cost > 0.0 { cost } else { steep });
        let values = self.problem.row_values(&first.evaluation);
        let finite = |x: f64| if x.is_finite() { x.abs() } else { 0.0 };
        let rows = self.problem.rows.iter().zip(values);
        // A value that is the rounding of zero is no scale: what the unknowns move the row by is.
        let scale = |(row, value): (&super::problem::Row, f64)| {
            let d = self.problem.derivative(&first.evaluation, row.run, row.objective);
            let moves = self.scaled(d, first, 1.0).iter().fold(0.0, |m: f64, d| m.max(d.abs()));
            let given = finite(row.lower).max(finite(row.upper)).max(value.abs());
            size(if given > ROUNDING * finite(moves) { given } else { moves })
        };
        self.scales.rows = rows.map(scale).collect();
        self.steepest = steep / self.scales.cost;
    }

    /// Names unknowns without influence; an error if none changes the cost, here and nearby.
    fn check_influence(
        &mut self,
        first: &Point,
        y: &[f64],
        idle: &mut Vec<String>,
    ) -> Result<(), SearchError> {
        let gradient = self.problem.cost_gradient(&first.evaluation);
        let moves = |k: usize| {
            let row = |row: &super::problem::Row| {
                let d = self.problem.derivative(&first.evaluation, row.run, row.objective);
                d.get(k).is_some_and(|d| *d != 0.0)
            };
            gradient[k] != 0.0 || self.problem.rows.iter().any(row)
        };
        let variables = &self.problem.variables;
        *idle = (0..variables.len()).filter(|k| !moves(*k)).map(|k| variables[k].name.clone()).collect();
        if gradient.iter().any(|g| *g != 0.0) {
            return Ok(());
        }
        // A stationary start has a zero gradient, too.
        let aside = |(variable, y): (&super::problem::Variable, &f64)| {
            let moved = variable.unscaled(y + 1e-2);
            variable.scaled(if moved == variable.unscaled(*y) { variable.unscaled(y - 1e-2) } else { moved })
        };
        let beside: Vec<f64> = variables.iter().zip(y).map(aside).collect();
        let moved = match self.evaluate(&beside) {
            Err(Stopped) => return Err(SearchError::Stopped),
            Ok(Err(_)) => true,
            Ok(Ok(point)) => self.problem.cost(&point.evaluation) != self.problem.cost(&first.evaluation),
        };
        match moved {
            true => Ok(()),
            false => Err(SearchError::Unmoved {
                goal: self.problem.goal.clone(),
                names: self.problem.variables.iter().map(|variable| variable.name.clone()).collect(),
            }),
        }
    }

    fn finish(self, start: &[f64], first: Point, start_cost: f64, course: Course) -> Search {
        let Course { begin, history, stopped, ended, .. } = course;
        let (violation, cost, best) = self.best.clone().unwrap_or((0.0, start_cost, first.clone()));
        // The accepted point has the last gradient; another one may be better by rounding only.
        let same = |a: f64, b: f64| (a - b).abs() <= 1e-9 * a.abs().max(b.abs());
        let (violation, point) = match self.accepted.clone() {
            Some(accepted)
                if same(self.problem.cost(&accepted.evaluation), cost)
                    && self.scaled_violation(&accepted) <= FEASIBLE =>
            {
                (self.scaled_violation(&accepted), accepted)
            }
            _ => (violation, best),
        };
        let optimality =
            self.derivatives.then(|| self.problem.optimality(&point.x, &point.evaluation, &self.scales));
        let gradient = |found: &Optimality| found.projected_gradient;
        let first_gradient = history.first().and_then(|first| first.projected_gradient).unwrap_or(0.0);
        let small = optimality.as_ref().is_some_and(|found| {
            // Under constraints, what is left of the gradient is a difference of terms of its size.
            let steep = match self.problem.rows.is_empty() {
                true => 0.0,
                false => self.gradient(&point).iter().fold(0.0, |m: f64, g| m.max(g.abs())),
            };
            let first = first_gradient.max(self.steepest).max(steep);
            let enough = self.problem.tolerance.max(ROUNDING * first);
            gradient(found) <= enough
        });
        let status = match ended {
            _ if stopped => Status::Stopped,
            _ if violation > FEASIBLE => Status::Infeasible,
            Some(_) if small => Status::Converged,
            // Without derivatives, the optimiser's word.
            Some((true, _)) if optimality.is_none() => Status::Converged,
            Some((_, why)) => Status::Stalled(why),
            None if small => Status::Converged,
            None => Status::Limit,
        };
        Search {
            start: start.to_vec(),
            start_cost,
            start_evaluation: first.evaluation,
            cost: self.problem.cost(&point.evaluation),
            violation: self.problem.violation(&point.evaluation),
            x: point.x,
            evaluation: point.evaluation,
            optimality,
            status,
            history,
            evaluations: self.evaluations,
            failed: self.failed,
            seconds: begin.elapsed().as_secs_f64(),
        }
    }
}
