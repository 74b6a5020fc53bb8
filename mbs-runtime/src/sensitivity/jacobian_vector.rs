//! A Jacobian–vector product of a run (state at start, ρ) ↦ (objectives, state at end): what enters it and what it gets.

use crate::error::StepError;
use crate::system::Dims;

/// A Jacobian–vector product, several columns at once: row i of column k of a matrix is at `i * columns + k`.
#[derive(Debug)]
pub struct JacobianVector<'a, S> {
    /// Columns.
    pub columns: usize,
    /// Directions of the state at the start, as [`StateDerivatives`](crate::StateDerivatives) with these columns.
    pub start: &'a [S],
    /// Directions of the parameters, a row for each.
    pub rho: &'a [S],
    /// Gets the objectives.
    pub objectives: &'a mut [S],
    /// Gets their changes, a row for each.
    pub objective_changes: &'a mut [S],
    /// Gets the changes of the state at the end, in the layout of the start.
    pub end: &'a mut [S],
}

impl<S> JacobianVector<'_, S> {
    /// Checks lengths; `rows` are those of a state.
    pub(crate) fn check(&self, dims: &Dims, rows: usize) -> Result<(), StepError> {
        let Self { columns, .. } = *self;
        let lengths = [
            ("start", rows * columns, self.start.len()),
            ("rho", dims.sensitivity.parameters * columns, self.rho.len()),
            ("objectives", dims.n_objectives, self.objectives.len()),
            ("objective changes", dims.n_objectives * columns, self.objective_changes.len()),
            ("end", rows * columns, self.end.len()),
        ];
        match lengths.into_iter().find(|(_, expected, found)| expected != found) {
            Some((what, expected, found)) => Err(StepError::Length { what, expected, found }),
            None => Ok(()),
        }
    }
}
