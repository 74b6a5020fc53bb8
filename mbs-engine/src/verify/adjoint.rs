//! Gradients by the adjoint of a run against direct ones.
//!
//! Both are the derivative of the same steps, so they differ by rounding and by what the run amplifies of it. Where that is more than
//! [`TOLERANCE`], the direct gradient of a run whose parameters all differ by roundings says what is allowed.

use super::whole_run::{VANISHED, seed};
use super::{ALLOWANCE, LEAST, ROUNDINGS};
use crate::gradient::{self, Found};
use crate::{Interpreted, Method};
use mbs_codegen::model::Simulation;
use mbs_codegen::program::Program;
use mbs_runtime::{StepError, System};
use std::ops::ControlFlow;

/// Largest error, in parts of the largest entry of a row, that needs no excuse.
pub const TOLERANCE: f64 = 1e-10;

/// How the gradient of an objective compares.
#[derive(Clone, Debug, PartialEq)]
pub struct AdjointCheck {
    /// The objective.
    pub what: String,
    /// The largest difference, in parts of the row's largest entry, each times the size of its parameter; NaN if a value is not a
    /// number.
    pub error: f64,
    /// What is allowed.
    pub tolerance: f64,
}

impl AdjointCheck {
    /// Whether the error is allowed.
    pub fn passed(&self) -> bool {
        self.error <= self.tolerance && self.tells()
    }

    /// Whether roundings leave something of the gradient that can be compared.
    pub fn tells(&self) -> bool {
        self.tolerance <= super::TELLING
    }
}

/// Compares the direct gradient of a run with that of its adjoint.
pub(super) fn compare(
    model: &Interpreted,
    method: &Method,
    simulation: &Simulation,
    direct: &Found,
) -> Result<Vec<AdjointCheck>, StepError> {
    let dims = model.dims();
    if dims.n_objectives == 0 || dims.sensitivity.parameters == 0 {
        return Ok(Vec::new());
    }
    let start = gradient::start(model, simulation)?;
    let go_on = |_: mbs_runtime::AdjointNode<'_, f64>| ControlFlow::Continue(());
    let memory = gradient::adjoint::MEMORY;
    let adjoint = gradient::adjoint::run(model, method, simulation, start, memory, go_on)?;
    let (program, rows) = (model.program(), || 0..dims.n_objectives);
    let errors: Vec<f64> =
        rows().map(|i| distance(program, adjoint.of_objective(i), direct.of_objective(i))).collect();
    let mut tolerances = vec![TOLERANCE; errors.len()];
    if !errors.iter().all(|error| *error <= TOLERANCE) {
        let mut rounded = model.program_as_set();
        for value in rounded.parameters.iter_mut().flat_map(|parameter| &mut parameter.defaults) {
            *value *= 1.0 + ROUNDINGS;
        }
        let rounded = Interpreted::new(rounded);
        let start = gradient::start(&rounded, simulation)?;
        let other = gradient::run(&rounded, method, simulation, start, |_| ControlFlow::Continue(()))?;
        for (i, tolerance) in tolerances.iter_mut().enumerate() {
            let known = ALLOWANCE * distance(program, other.of_objective(i), direct.of_objective(i));
            *tolerance = tolerance.max(known);
        }
    }
    let names = model.program().objectives.iter().map(|(name, _)| name.clone());
    let checks = names.zip(errors).zip(tolerances);
    Ok(checks.map(|((what, error), tolerance)| AdjointCheck { what, error, tolerance }).collect())
}

/// The largest difference of two rows in parts of the largest entry, each entry times the size of its parameter. A row that has
/// vanished has the size of what iterations leave.
pub(super) fn distance(program: &Program, found: &[f64], expected: &[f64]) -> f64 {
    let sizes = || (0..expected.len()).map(|k| seed(program, k).0.abs().max(1.0));
    let row = expected.iter().zip(sizes()).fold(VANISHED / LEAST, |row, (x, size)| row.max(x.abs() * size));
    let differences = found.iter().zip(expected).zip(sizes()).map(|((a, b), size)| (a - b).abs() * size);
    let larger = |largest: f64, x: f64| if x > largest || x.is_nan() { x } else { largest };
    differences.fold(0.0, larger) / row
}
