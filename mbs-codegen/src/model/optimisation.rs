//! Problems of optimisation: unknowns and cost.
//!
//! A problem is min Σ w_c w_o ψ_o(c) over unknowns within bounds, with objectives as constraints. Nothing here is part of the
//! equations: generated code does not know problems.

use super::{ArrayRef, InputId, Model, Output, OutputValue, ParameterId, Scalar, SensitivityRef};
use crate::diagnostics::Span;

/// A named problem.
#[derive(Clone, Debug, PartialEq)]
pub struct Optimisation {
    /// Name as written.
    pub name: String,
    /// Free text, may be empty.
    pub description: String,
    /// The terms of what is minimised; never empty.
    pub minimise: Vec<Term>,
    /// Parameters that are varied, arrays flattened; no two are the same.
    pub over: Vec<Unknown>,
    /// Inputs whose histories are varied; no two are the same. Something is varied: either list has an entry.
    pub histories: Vec<History>,
    /// Bounds of objectives.
    pub subject_to: Vec<Limit>,
    /// Cases it runs, by place, with their weights; the model without a case if empty.
    pub cases: Vec<(usize, f64)>,
    /// Where the search begins.
    pub starts: Starts,
    /// How it is solved.
    pub method: OptimisationMethod,
    /// Largest projected gradient at the end, of scaled unknowns and functions.
    pub tolerance: f64,
    /// Most iterations from one start.
    pub iterations: usize,
    /// Where the file declares it.
    pub span: Span,
}

impl Optimisation {
    /// Projected gradient at which a search ends if the file does not say.
    pub const TOLERANCE: f64 = 1e-8;
    /// Most iterations if the file does not say.
    pub const ITERATIONS: usize = 200;
}

/// What a run is judged by in a problem.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Judged {
    /// An objective, by place.
    Objective(usize),
    /// The largest or the smallest value along the run, smoothed.
    Extreme {
        /// Of what.
        of: Along,
        /// Whether it is the smallest.
        is_least: bool,
        /// ρ s of the Kreisselmeier–Steinhauser function, with s the size of the values.
        sharpness: f64,
    },
}

/// What has a value at every time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Along {
    /// The integrand of an objective, by place.
    Integrand(usize),
    /// An output of one number, by place.
    Output(usize),
}

impl Judged {
    /// Sharpness of an extreme if the file does not say.
    pub const SHARPNESS: f64 = 50.0;

    /// Its name: `psi`, `max(force)`, `min(gap)`.
    pub fn name(&self, model: &Model) -> String {
        let objective = |i: usize| model.objectives.get(i).map_or("", |o| o.name.as_str());
        match *self {
            Judged::Objective(i) => objective(i).into(),
            Judged::Extreme { of, is_least, .. } => {
                let of = match of {
                    Along::Integrand(i) => objective(i),
                    Along::Output(i) => model.outputs.get(i).map_or("", |o| o.name.as_str()),
                };
                format!("{}({of})", if is_least { "min" } else { "max" })
            }
        }
    }

    /// What a name stands for: an objective, or `max(NAME)` and `min(NAME)` of an objective's integrand or of an output.
    pub fn by_name(
        name: &str,
        objectives: &[super::Objective],
        outputs: &[Output],
    ) -> Result<Judged, JudgedError> {
        let place = |name: &str| objectives.iter().position(|objective| objective.name == name);
        let inner = |word: &str| {
            name.strip_prefix(word)?.trim_start().strip_prefix('(')?.strip_suffix(')').map(str::trim)
        };
        let (is_least, inner) = match (inner("max"), inner("min")) {
            (Some(inner), _) => (false, inner),
            (_, Some(inner)) => (true, inner),
            _ => return place(name).map(Judged::Objective).ok_or(JudgedError::Unknown),
        };
        let extreme = |of| Ok(Judged::Extreme { of, is_least, sharpness: Judged::SHARPNESS });
        if let Some(i) = place(inner) {
            return match objectives[i].integrand {
                Scalar::Number(_) => Err(JudgedError::NoIntegrand(inner.into())),
                _ => extreme(Along::Integrand(i)),
            };
        }
        match outputs.iter().position(|output| output.name == inner) {
            Some(i) if matches!(outputs[i].value, OutputValue::Vector(_)) => {
                Err(JudgedError::Vector(inner.into()))
            }
            Some(i) => extreme(Along::Output(i)),
            None => Err(JudgedError::NotAlong(inner.into())),
        }
    }
}

/// Why a name does not stand for anything a run is judged by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JudgedError {
    /// No such objective.
    Unknown,
    /// Neither an objective nor an output.
    NotAlong(String),
    /// An objective that has no value along the run.
    NoIntegrand(String),
    /// An output of three numbers.
    Vector(String),
}

impl std::fmt::Display for JudgedError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            JudgedError::Unknown => f.write_str("there is no such objective"),
            JudgedError::NotAlong(name) => write!(f, "there is neither an objective nor an output `{name}`"),
            JudgedError::NoIntegrand(name) => {
                write!(f, "objective `{name}` has no integrand that changes along the run")
            }
            JudgedError::Vector(name) => {
                write!(
                    f,
                    "output `{name}` has three components: make an output of one number, such as its length"
                )
            }
        }
    }
}

/// An input whose history is varied: its values at knots.
#[derive(Clone, Debug, PartialEq)]
pub struct History {
    /// The input.
    pub input: InputId,
    /// What it is between the knots.
    pub form: HistoryForm,
    /// When.
    pub knots: Knots,
    /// Smallest value.
    pub min: Option<f64>,
    /// Largest value.
    pub max: Option<f64>,
    /// How values are scaled.
    pub scale: Scaling,
    /// Values at the first start; those of the case's signal, or the input's own, if absent.
    pub start: Option<Vec<f64>>,
}

/// What a history is between its knots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HistoryForm {
    /// The value of the knot before.
    Constant,
    /// Linear from knot to knot.
    Linear,
    /// A natural cubic spline.
    Spline,
}

impl HistoryForm {
    /// The words of a model file.
    pub const WORDS: [(&'static str, HistoryForm); 3] = [
        ("constant", HistoryForm::Constant),
        ("linear", HistoryForm::Linear),
        ("spline", HistoryForm::Spline),
    ];

    /// Its word.
    pub fn keyword(self) -> &'static str {
        HistoryForm::WORDS[self as usize].0
    }
}

/// When the values of a history are.
#[derive(Clone, Debug, PartialEq)]
pub enum Knots {
    /// So many, equally spaced: of a constant form the beginnings of equal parts of the run, otherwise from its beginning to its end.
    Count(usize),
    /// At these times, which increase.
    At(Vec<f64>),
}

impl Knots {
    /// How many there are.
    #[allow(clippy::len_without_is_empty, reason = "there is always one")]
    pub fn len(&self) -> usize {
        match self {
            Knots::Count(n) => *n,
            Knots::At(times) => times.len(),
        }
    }
}

impl History {
    /// The times of the knots of a run from `begin` to `end`.
    pub fn times(&self, begin: f64, end: f64) -> Vec<f64> {
        match &self.knots {
            Knots::At(times) => times.clone(),
            Knots::Count(n) => {
                let parts = if self.form == HistoryForm::Constant { *n } else { n.saturating_sub(1).max(1) };
                (0..*n).map(|i| begin + (end - begin) * i as f64 / parts as f64).collect()
            }
        }
    }

    /// The history as an expression of time, with its values in an array parameter.
    pub fn expression(&self, times: &[f64], values: ParameterId) -> Scalar {
        let numbers =
            |numbers: &mut dyn Iterator<Item = f64>| ArrayRef::Literal(numbers.map(Scalar::Number).collect());
        let knots = numbers(&mut times.iter().copied());
        let at = Box::new(Scalar::Time);
        let array = ArrayRef::Parameter(values);
        match self.form {
            HistoryForm::Spline => {
                Scalar::Spline { at, knots, values: array, outside: super::Outside::default() }
            }
            HistoryForm::Linear => Scalar::Table { at, knots, values: array },
            // The number of the last knot before: an element's index is rounded down.
            HistoryForm::Constant if times.len() == 1 => {
                Scalar::Element(values, Box::new(Scalar::Number(0.0)))
            }
            HistoryForm::Constant => {
                let places = numbers(&mut (0..times.len()).map(|i| i as f64));
                Scalar::Element(values, Box::new(Scalar::Table { at, knots, values: places }))
            }
        }
    }
}

/// A weighted objective.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Term {
    /// What counts.
    pub judged: Judged,
    /// Its weight.
    pub weight: f64,
    /// The only case it counts in; all cases of the problem if absent.
    pub case: Option<usize>,
}

/// A value that is varied.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unknown {
    /// The parameter or the element of an array.
    pub what: SensitivityRef,
    /// Smallest value.
    pub min: Option<f64>,
    /// Largest value.
    pub max: Option<f64>,
    /// How it is scaled.
    pub scale: Scaling,
}

/// How an unknown x is scaled to y.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Scaling {
    /// By the bounds and the value: see [`Scaling::chosen`].
    #[default]
    Auto,
    /// y = x / (max − min)
    Width,
    /// y = x / |x at the start|
    Value,
    /// y = ln x
    Logarithm,
    /// y = x / number
    Number(f64),
}

impl Scaling {
    /// The words of a model file.
    pub const WORDS: [(&'static str, Scaling); 4] = [
        ("auto", Scaling::Auto),
        ("width", Scaling::Width),
        ("value", Scaling::Value),
        ("log", Scaling::Logarithm),
    ];

    /// What `auto` means: logarithms where positive bounds span three decades, else the width of the bounds, else the value.
    pub fn chosen(self, min: Option<f64>, max: Option<f64>) -> Scaling {
        match (self, min, max) {
            (Scaling::Auto, Some(min), Some(max)) if min > 0.0 && max / min >= 1e3 => Scaling::Logarithm,
            (Scaling::Auto, Some(min), Some(max)) if max > min => Scaling::Width,
            (Scaling::Auto, ..) => Scaling::Value,
            (chosen, ..) => chosen,
        }
    }
}

/// An objective that stays within bounds; equal ones make an equation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    /// What is bounded.
    pub judged: Judged,
    /// Smallest value.
    pub min: Option<f64>,
    /// Largest value.
    pub max: Option<f64>,
    /// The only case it holds in; all cases of the problem if absent.
    pub case: Option<usize>,
}

/// Where searches begin.
#[derive(Clone, Debug, PartialEq)]
pub enum Starts {
    /// At the model's values, then at points spread over the bounds: so many in all.
    Spread(usize),
    /// At these values, where the model's are not to be taken.
    Given(Vec<Vec<(SensitivityRef, f64)>>),
}

/// How a problem is solved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OptimisationMethod {
    /// L-BFGS without constraints, SLSQP with them.
    #[default]
    Auto,
    /// Bounded limited-memory BFGS.
    Lbfgs,
    /// Sequential least-squares programming.
    Slsqp,
    /// Linear models without derivatives.
    Cobyla,
}

impl OptimisationMethod {
    /// All of them.
    pub const ALL: [OptimisationMethod; 4] = [
        OptimisationMethod::Auto,
        OptimisationMethod::Lbfgs,
        OptimisationMethod::Slsqp,
        OptimisationMethod::Cobyla,
    ];

    /// Its word in a model file.
    pub fn keyword(self) -> &'static str {
        match self {
            OptimisationMethod::Auto => "auto",
            OptimisationMethod::Lbfgs => "lbfgs",
            OptimisationMethod::Slsqp => "slsqp",
            OptimisationMethod::Cobyla => "cobyla",
        }
    }
}
