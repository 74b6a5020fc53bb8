//! Problems of optimisation: what of a model is varied, and what is to become small.
//!
//! A problem is min Σ w_c w_o ψ_o(c) over unknowns within bounds, with objectives as constraints. Nothing here is part of the
//! equations: generated code does not know problems.

use super::SensitivityRef;
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
    /// What is varied, arrays flattened; never empty, no two are the same.
    pub over: Vec<Unknown>,
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

/// A weighted objective.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Term {
    /// The objective, by place.
    pub objective: usize,
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
    /// The objective, by place.
    pub objective: usize,
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
