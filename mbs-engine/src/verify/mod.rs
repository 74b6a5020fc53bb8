//! Compares every derivative of a model with complex steps of the differentiated function.
//!
//! Input: a program and instants. Output: for every derivative the largest error over the instants.
//!
//! f' = Im f(x + i h)/h with h = 1e−40 is exact to rounding where f is analytic; the functions are the bundles that give the
//! values, interpreted in complex numbers. At a kink decisions are made by the real part, so both sides are one-sided.
//!
//! An error counts against the largest entry of its matrix, of its row for objectives; in derivatives by parameters, which have units of their own,
//! against the largest entry of its column. Where those are small, which includes derivatives that vanish but for rounding, it
//! counts against a thousandth of the largest entry, or of the value itself, per unit or per the parameter's size. That value is the
//! largest over the instants, with accelerations and multipliers and without, and beside them: forces that balance and constraints that
//! hold are not small.
//!
//! Where constraints depend on each other, only changes that keep them have derivatives of accelerations and multipliers; these are
//! looked at then, see `admissible`.
//!
//! Where equations are badly conditioned, as those of constraints that depend on each other, derivatives are known to less than
//! rounding, and so are those that vanish but for large terms that cancel. An error that is not allowed is therefore held against
//! what a change of the instant by roundings makes of both that are compared.

mod adjoint;
mod admissible;
mod agreement;
mod coordinate_form;
mod driven;
mod events;
mod joint_form;
mod point;
mod robotics;

pub mod instants;
mod plain_run;
mod report;
mod whole_run;

use crate::Interpreted;
pub use adjoint::{AdjointCheck, TOLERANCE as TOLERANCE_OF_ADJOINTS};
use admissible::Direction;
pub use agreement::{Compared, agreement};
pub use driven::report_of_driven;
use mbs_codegen::program::Program;
use mbs_codegen::symbols::Group;
use mbs_runtime::linear::blocks::row;
use mbs_runtime::{Complex64, Names, Quantity, System};
pub use point::Instant;
use point::Point;
pub use report::{ComparedInstant, Failure, Progress, Report, bundles, report, report_of};
use std::collections::HashMap;
use std::iter;
use std::ops::Range;
pub use whole_run::{
    Oracle, RunCheck, TOLERANCE as TOLERANCE_OF_RUNS, TOLERANCE_OF_DIFFERENCES, Trace, gradient,
};

/// Complex step: its square underflows.
const STEP: f64 = 1e-40;
/// Small values are measured relative to this fraction of the large ones.
const LEAST: f64 = 1e-3;
/// Largest error of an emitted derivative: rounding, times a moderate condition of the equations where they are solved.
pub const TOLERANCE: f64 = 1e-8;
/// So much more than what roundings of an instant, or of a parameter, change an independent derivative by is allowed,
const ALLOWANCE: f64 = 10.0;
/// but never more than this: beyond it a comparison proves nothing.
const TELLING: f64 = 1e-3;
/// The change of an instant, or of a parameter, by roundings.
const ROUNDINGS: f64 = 1e-15;
/// A derivative that is smaller than this part of what it amounts to at other instants is judged by that.
const ELSEWHERE: f64 = 0.1;
/// The change of an instant where forces do not balance and constraints do not hold any more.
const BESIDE: f64 = 0.05;

/// Comparison of a derivative.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// The bundle that writes it.
    pub bundle: &'static str,
    /// What it is.
    pub derivative: &'static str,
    /// Entries compared at each instant.
    pub entries: usize,
    /// The largest error; NaN if a value is not a number.
    pub error: f64,
    /// What is allowed: more than [`TOLERANCE`] where the independent derivative is known to less.
    pub tolerance: f64,
    /// What the entry with this error is the derivative of.
    pub of: String,
    /// By what.
    pub by: String,
    /// Number of the instant.
    pub instant: usize,
}

impl Check {
    /// Whether the error is allowed.
    pub fn passed(&self) -> bool {
        self.error <= self.tolerance && self.tolerance <= TELLING
    }

    /// Whether the derivative is rounding at its instant: the comparison proves nothing.
    fn is_rounding(&self) -> bool {
        self.error <= self.tolerance && self.tolerance > TELLING
    }
}

/// Compares all derivatives of a program at the given instants, its parameters at their defaults.
pub fn verify(program: &Program, instants: &[Instant]) -> Vec<Check> {
    compare(&Interpreted::new(program.clone()), &Interpreted::new(program.clone()), instants)
}

/// The same of a program that is translated already.
fn compare(model: &Interpreted, complex: &Interpreted<Complex64>, instants: &[Instant]) -> Vec<Check> {
    let mut checks = Checks {
        model: model.clone(),
        complex: complex.clone(),
        all: Vec::new(),
        instant: 0,
        sizes: HashMap::new(),
        amounts: HashMap::new(),
        rounded: HashMap::new(),
        pass: Pass::Measure,
        directions: Default::default(),
    };
    joint_form::start(&mut checks);
    let points: Vec<Option<Point<f64>>> = instants.iter().map(|at| Point::new(&checks.model, at)).collect();
    for point in points.iter().flatten() {
        checks.check_at(point);
    }
    checks.pass = Pass::Compare;
    joint_form::start(&mut checks);
    for (number, point) in points.iter().enumerate() {
        let Some(point) = point else { continue };
        checks.instant = number;
        checks.pass = Pass::Round;
        checks.check_at(&point.moved(ROUNDINGS));
        checks.pass = Pass::Compare;
        checks.check_at(point);
    }
    checks.all
}

/// What is done with what bundles write.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Pass {
    /// The values they are derivatives of are measured.
    Measure,
    /// It is kept, at an instant changed by roundings.
    Round,
    /// It is compared.
    Compare,
}

/// A value at an instant, in complex numbers; `None` where the model has no such bundle or no value.
type Value<'f> = &'f dyn Fn(&Interpreted<Complex64>, &Point<Complex64>) -> Option<Vec<Complex64>>;

/// A dense matrix by its columns.
type Columns = Vec<Vec<f64>>;

/// By what a value is differentiated.
#[derive(Clone, Copy, Debug, PartialEq)]
enum By {
    /// Coordinates, their rates and accelerations, with these weights.
    Motion([f64; 3]),
    /// Multipliers, of all rows.
    Multipliers,
    /// Multipliers of the projections, of all rows: σ, then κ.
    Projections,
    /// Positions along the tangent, velocities, accelerations, with these weights.
    Joints([f64; 3]),
    /// Multipliers, in joint form.
    JointMultipliers,
    /// Multipliers of the projections, in joint form: σ, then κ.
    JointProjections,
    /// What the model is differentiated by.
    Parameters,
    /// Time.
    Time,
    /// Changes that keep the constraints, [`Checks::directions`].
    Along(Along),
}

/// Which changes those are nearest to.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Along {
    Positions,
    Velocities,
    Parameters,
}

/// What the rows of a matrix are.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Of {
    Coordinates,
    Velocities,
    /// All rows, or the first of them.
    Rows,
    Nonholonomic,
    /// Accelerations, then multipliers in joint form.
    JointSolution,
    /// Accelerations, then forces of constraints.
    JointForces,
    Objectives,
    /// Components of markers.
    Markers,
    /// Components of the centre of mass.
    CentreOfMass,
    /// Functions of events.
    Events,
    /// Momenta, rates of constraints, rates that events set.
    Jumps,
    /// A sum with weights.
    Product,
}

/// The model in two kinds of numbers, and what was found.
struct Checks {
    model: Interpreted<f64>,
    complex: Interpreted<Complex64>,
    all: Vec<Check>,
    instant: usize,
    /// Largest values of what is differentiated, over the instants: by bundle, derivative and first row.
    sizes: HashMap<(&'static str, &'static str, usize), f64>,
    /// Largest derivatives over the instants, likewise.
    amounts: HashMap<(&'static str, &'static str, usize), f64>,
    /// What bundles wrote at the instant changed by roundings, by bundle and derivative.
    rounded: HashMap<(&'static str, &'static str), Columns>,
    pass: Pass,
    /// By positions, by velocities, by parameters: one each.
    directions: [Vec<Direction>; 3],
}

impl Checks {
    /// Checks all derivatives at a point.
    fn check_at(&mut self, point: &Point<f64>) {
        coordinate_form::check(self, point);
        joint_form::check(self, point);
        robotics::check(self, point);
        events::check(self, point);
    }

    /// The derivative of a value by complex steps.
    fn differentiate(&mut self, point: &Point<f64>, by: By, value: Value<'_>) -> Option<Columns> {
        let dims = self.model.dims();
        let count = match by {
            By::Motion(_) => dims.nq,
            By::Multipliers => dims.rows(),
            By::Projections => 2 * dims.n_projected,
            By::Joints(_) => dims.nv,
            By::JointMultipliers => dims.joint_rows(),
            By::JointProjections => point.joint_projections.len(),
            By::Parameters => dims.sensitivity.parameters,
            By::Time => 1,
            By::Along(along) => self.directions[along as usize].len(),
        };
        let step = Complex64::new(0.0, STEP);
        let mut columns = Vec::with_capacity(count);
        for k in 0..count {
            let mut moved = point.complex();
            let parameters = self.complex.parameters().to_vec();
            match by {
                By::Motion(weights) => moved.move_coordinate(k, weights, step),
                By::Multipliers => moved.lambda[k] += step,
                By::Projections => moved.projections[k] += step,
                By::Joints(weights) => moved.move_joint(&self.complex, k, weights, step)?,
                By::JointMultipliers => moved.joint_lambda[k] += step,
                By::JointProjections => moved.joint_projections[k] += step,
                By::Parameters => self.move_seed(k, &mut moved, step),
                By::Time => moved.t += step,
                By::Along(along) => {
                    let direction = self.directions[along as usize][k].clone();
                    moved.move_along(&self.complex, &direction.positions, &direction.velocities, step)?;
                    if along == Along::Parameters {
                        self.move_seed(k, &mut moved, step);
                    }
                }
            }
            let values = value(&self.complex, &moved);
            self.complex.set_parameters(&parameters).ok()?;
            columns.push(values?.into_iter().map(|value| value.im / STEP).collect());
        }
        Some(columns)
    }

    /// Moves what the model is differentiated by: an input at the point, or a parameter of the model.
    fn move_seed(&mut self, k: usize, point: &mut Point<Complex64>, step: Complex64) {
        match self.model.program().seeds[k] {
            (Group::U, place) => point.u[place as usize] += step,
            (_, place) => self.complex.move_parameter(place as usize, step),
        }
    }

    /// Compares what a bundle wrote with complex steps.
    fn compare(
        &mut self,
        (bundle, derivative): (&'static str, &'static str),
        (of, by): (Of, By),
        point: &Point<f64>,
        written: &Columns,
        value: Value<'_>,
    ) {
        match self.pass {
            Pass::Measure => {
                for rows in self.blocks(of, written.first().map_or(0, Vec::len)) {
                    let entries = written.iter().filter_map(|column| column.get(rows.clone())).flatten();
                    let largest = entries.map(|x| x.abs()).filter(|x| x.is_finite()).fold(0.0, f64::max);
                    let known = self.amounts.entry((bundle, derivative, rows.start)).or_default();
                    *known = known.max(largest);
                }
                return self.measure((bundle, derivative), of, point, value);
            }
            Pass::Round => {
                self.rounded.insert((bundle, derivative), written.clone());
                return;
            }
            Pass::Compare => {}
        }
        let Some(exact) = self.differentiate(point, by, value) else { return };
        let rows = exact.first().map_or(0, Vec::len);
        let (mut error, mut place): (f64, (usize, usize)) = (0.0, (0, 0));
        let mut scales = Vec::new();
        for rows in self.blocks(of, rows) {
            let size = self.sizes.get(&(bundle, derivative, rows.start)).copied().unwrap_or(0.0);
            let largest = |column: &[f64]| column[rows.clone()].iter().fold(0.0, |m: f64, x| m.max(x.abs()));
            let amount = self.amounts.get(&(bundle, derivative, rows.start)).copied().unwrap_or(0.0);
            let here = written.iter().chain(&exact).map(|column| largest(column)).fold(0.0, f64::max);
            // At rest, what velocities bring is the rounding of larger terms.
            let block = here.max(ELSEWHERE * amount);
            for (k, (written, exact)) in written.iter().zip(&exact).enumerate() {
                let scale = match by {
                    By::Parameters | By::Along(Along::Parameters) => {
                        let least = LEAST * block.max(size / self.size_of_seed(k, point));
                        largest(written).max(largest(exact)).max(least)
                    }
                    _ => block.max(LEAST * size),
                };
                for i in rows.clone() {
                    let (a, b) = (written[i], exact[i]);
                    let here = if a == b { 0.0 } else { (a - b).abs() / scale };
                    if here > error || here.is_nan() {
                        (error, place) = (here, (i, k));
                    }
                }
                scales.push((rows.clone(), k, scale));
            }
        }
        let mut tolerance = TOLERANCE;
        if error > TOLERANCE {
            let moved = self.differentiate(&point.moved(ROUNDINGS), by, value);
            let rounded = self.rounded.get(&(bundle, derivative));
            let pairs = [(moved.as_ref(), &exact), (rounded, written)];
            for (moved, now) in pairs.into_iter().filter_map(|(moved, now)| Some((moved?, now))) {
                for (rows, k, scale) in &scales {
                    let Some(moved) = moved.get(*k).and_then(|column| column.get(rows.clone())) else {
                        continue;
                    };
                    for (a, b) in moved.iter().zip(&now[*k][rows.clone()]) {
                        tolerance = tolerance.max(ALLOWANCE * (a - b).abs() / scale);
                    }
                }
            }
        }
        let entries = exact.iter().map(Vec::len).sum();
        let (of, by) = (self.row_name(of, place.0), self.column_name(by, place.1));
        self.note(Check { bundle, derivative, entries, error, tolerance, of, by, instant: self.instant });
    }

    /// The largest values at an instant: with its accelerations and multipliers, and without. Forces vanish where they balance, constraints
    /// where they hold: their size is what they have beside the instant.
    fn measure(
        &mut self,
        (bundle, derivative): (&'static str, &'static str),
        of: Of,
        point: &Point<f64>,
        value: Value<'_>,
    ) {
        // Where constraints depend on each other, nothing satisfies them there; objectives may be anything.
        let vanishes =
            !matches!(of, Of::JointForces | Of::Objectives | Of::Markers | Of::CentreOfMass | Of::Events);
        let beside = vanishes.then(|| point.moved(BESIDE).complex());
        let points = [point.complex(), point.complex().without_forces()];
        for point in points.into_iter().chain(beside) {
            let Some(values) = value(&self.complex, &point) else { continue };
            for rows in self.blocks(of, values.len()) {
                let sizes = values[rows.clone()].iter().map(|x| x.re.abs()).filter(|x| x.is_finite());
                let size = sizes.fold(0.0, f64::max);
                let known = self.sizes.entry((bundle, derivative, rows.start)).or_default();
                *known = known.max(size);
            }
        }
    }

    /// Rows of one kind: objectives have units of their own, accelerations and multipliers differ.
    fn blocks(&self, of: Of, rows: usize) -> Vec<Range<usize>> {
        let nv = self.model.dims().nv;
        match of {
            Of::Objectives | Of::Events | Of::Jumps => (0..rows).map(|i| i..i + 1).collect(),
            Of::JointSolution | Of::JointForces => vec![0..nv, nv..rows],
            _ => iter::once(0..rows).collect(),
        }
    }

    /// Compares values that a bundle wrote beside its derivatives.
    fn compare_values(
        &mut self,
        bundle: &'static str,
        of: Of,
        point: &Point<f64>,
        written: &[f64],
        value: Value<'_>,
    ) {
        if self.pass != Pass::Compare {
            return;
        }
        let Some(exact) = value(&self.complex, &point.complex()) else { return };
        let size = exact.iter().fold(0.0, |m: f64, x| m.max(x.re.abs()));
        let (mut error, mut place): (f64, usize) = (0.0, 0);
        for (i, (a, b)) in written.iter().zip(&exact).enumerate() {
            let here = if *a == b.re { 0.0 } else { (a - b.re).abs() / size };
            if here > error || here.is_nan() {
                (error, place) = (here, i);
            }
        }
        let (of, entries, instant) = (self.row_name(of, place), exact.len(), self.instant);
        let (derivative, tolerance, by) = ("value", TOLERANCE, String::new());
        self.note(Check { bundle, derivative, entries, error, tolerance, of, by, instant });
    }

    /// A list whose sections do not fit its length fails, whatever it says.
    fn unreadable(&mut self, bundle: &'static str) {
        let (of, by, instant) = (String::new(), String::new(), self.instant);
        let (derivative, error, tolerance) = ("sections", f64::NAN, TOLERANCE);
        self.note(Check { bundle, derivative, entries: 0, error, tolerance, of, by, instant });
    }

    /// Keeps the largest error.
    fn note(&mut self, check: Check) {
        keep_worse(&mut self.all, check);
    }

    /// The parameter's or the input's value, at least one.
    fn size_of_seed(&self, k: usize, point: &Point<f64>) -> f64 {
        let value = match self.model.program().seeds[k] {
            (Group::U, place) => point.u[place as usize],
            (_, place) => self.model.parameters()[place as usize],
        };
        value.abs().max(1.0)
    }

    fn row_name(&self, of: Of, index: usize) -> String {
        let dims = self.model.dims();
        match of {
            Of::Coordinates => self.name(Quantity::Coordinate, index),
            Of::Velocities => self.name(Quantity::Velocity, index),
            Of::Rows => {
                let (quantity, index) = row(&dims, index);
                self.name(quantity, index)
            }
            Of::Nonholonomic => self.name(Quantity::Nonholonomic, index),
            Of::JointSolution if index < dims.nv => self.name(Quantity::Velocity, index),
            Of::JointSolution => self.joint_row_name(index - dims.nv),
            Of::JointForces => self.name(Quantity::Velocity, index % dims.nv.max(1)),
            Of::Objectives => self.name(Quantity::Objective, index),
            Of::Markers => {
                format!("{}.{}", self.name(Quantity::Marker, index / 3), ["x", "y", "z"][index % 3])
            }
            Of::CentreOfMass => format!("com.{}", ["x", "y", "z"][index % 3]),
            Of::Events => self.name(Quantity::Event, index),
            Of::Product => String::new(),
            Of::Jumps if index < dims.nv => self.name(Quantity::Velocity, index),
            Of::Jumps if index < dims.nv + dims.joint_rows() => self.joint_row_name(index - dims.nv),
            Of::Jumps => {
                let conditions = &self.model.program().events.conditions;
                conditions.get(index - dims.nv - dims.joint_rows()).cloned().unwrap_or_default()
            }
        }
    }

    fn column_name(&self, by: By, index: usize) -> String {
        match by {
            By::Motion(_) => self.name(Quantity::Coordinate, index),
            By::Multipliers => self.row_name(Of::Rows, index),
            By::Projections => self.row_name(Of::Rows, index % self.model.dims().rows().max(1)),
            By::Joints(_) => self.name(Quantity::Velocity, index),
            By::JointMultipliers => self.joint_row_name(index),
            By::JointProjections => self.joint_row_name(index % self.model.dims().joint_rows().max(1)),
            By::Along(Along::Positions | Along::Velocities) => self.name(Quantity::Velocity, index),
            By::Parameters | By::Along(Along::Parameters) => self.name(Quantity::Sensitivity, index),
            By::Time => "t".into(),
        }
    }

    fn joint_row_name(&self, index: usize) -> String {
        let holonomic = self.model.dims().n_holonomic;
        match index.checked_sub(holonomic) {
            Some(index) => self.name(Quantity::Nonholonomic, index),
            None => self.name(Quantity::Holonomic, index),
        }
    }

    fn name(&self, quantity: Quantity, index: usize) -> String {
        self.model.name(quantity, index).unwrap_or_default().to_owned()
    }
}

/// Adds a check, or puts it in the place of one of the same derivative that is further from what is not allowed.
fn keep_worse(all: &mut Vec<Check>, check: Check) {
    let part = |check: &Check| check.error / check.tolerance;
    match all.iter_mut().find(|c| c.bundle == check.bundle && c.derivative == check.derivative) {
        Some(worst) if part(worst) >= part(&check) || worst.error.is_nan() => {}
        Some(worst) => *worst = check,
        None => all.push(check),
    }
}

/// A matrix of `columns` columns by its nonzero entries.
fn matrix(values: &[f64], places: &[(u32, u32)], rows: usize, columns: usize) -> Columns {
    let mut matrix = vec![vec![0.0; rows]; columns];
    for (&(i, j), &value) in places.iter().zip(values) {
        matrix[j as usize][i as usize] = value;
    }
    matrix
}
