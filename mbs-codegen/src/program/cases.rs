//! Cases that a module has beside the model's own run.
//!
//! Input: a model and its cases. Output: those that share its equations; each has its own parameters, start values, input signals and
//! settings. Start values and signals are selected by [`Group::Case`], the number of the case, zero for the model's own.
//! A case with another tree or other constraint rows needs a module of its own.

use crate::analysis::Analysed;
use crate::graph::{Comparison, ExprId, Graph};
use crate::model::{Case, Model, Simulation};
use crate::symbols::Group;

/// A case that shares the equations of its model.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseInfo {
    /// Its number in [`Group::Case`].
    pub number: u32,
    /// Name as written.
    pub name: String,
    /// Free text, may be empty.
    pub description: String,
    /// Values of the independent parameters, one for a scalar.
    pub parameters: Vec<Vec<f64>>,
    /// Which coordinates are held during assembly.
    pub held: Vec<bool>,
    /// Which velocities `matrix_r` integrates; none if it chooses.
    pub independent: Vec<bool>,
    /// Times, method and tolerances.
    pub simulation: Simulation,
}

/// A case with the model under it.
pub(super) struct SharedCase<'m> {
    pub(super) number: u32,
    pub(super) case: &'m Case,
    pub(super) model: Model,
}

/// The cases that share the model's equations, and the names of the others.
pub(super) fn shared(analysed: &Analysed) -> (Vec<SharedCase<'_>>, Vec<String>) {
    let (mut shared, mut separate) = (Vec::new(), Vec::new());
    for (number, case) in (1..).zip(&analysed.model.cases) {
        let under = analysed.under(Some(case)).into_owned();
        if under.tree == analysed.tree && under.rows == analysed.rows {
            shared.push(SharedCase { number, case, model: under.model });
        } else {
            separate.push(case.name.clone());
        }
    }
    (shared, separate)
}

/// `of_case` in the case of this number, otherwise `others`.
pub(super) fn choose(g: &mut Graph, number: u32, of_case: &[ExprId], others: &[ExprId]) -> Vec<ExprId> {
    let (case, number) = (g.symbol(Group::Case, 0), g.constant(f64::from(number)));
    let pairs = of_case.iter().zip(others);
    pairs.map(|(&x, &y)| g.select(Comparison::Equal, case, number, x, y)).collect()
}
