//! Derivatives of objectives by the whole history of inputs: by the value u(t_k) of every node, as one vector.
//!
//! Input: the nodes of an adjoint run, as its observer sees them. Output: a row for each node. It costs nothing beyond the adjoint:
//! the weight of an input at a node is what the node alone adds to ρ̄, and at the first one what the start depends on.
//!
//! An implicit step takes an input that is held at its value at the start of the step from the node before its end: what the step weighs belongs
//! to that node. Under explicit integrators the row of a node is by a constant that is added to the input over the step that begins there: by u(t_k)
//! for inputs that are held constant over a step. The last row is that of the terminal terms.

use super::Start;
use crate::Interpreted;
use crate::method::Method;
use mbs_codegen::model::Hold;
use mbs_codegen::symbols::Group;
use mbs_runtime::{AdjointNode, StepError, System};

/// Derivatives of the objectives by the values of inputs at every node.
#[derive(Clone, Debug, PartialEq)]
pub struct InputHistory {
    /// Names of the inputs, those of the list by which the model is differentiated.
    pub inputs: Vec<String>,
    /// Times of the nodes, from the first to the last.
    pub times: Vec<f64>,
    /// Of objective i by input j of n at node k of N: at `(k * m + i) * n + j` for m objectives.
    pub derivatives: Vec<f64>,
    objectives: usize,
    /// Places of the inputs among what the model is differentiated by.
    places: Vec<usize>,
    /// Which of them an implicit step takes from the node before its end.
    held: Vec<bool>,
    /// What the step after the node weighs them, for each objective.
    later: Vec<f64>,
    /// Derivatives of the start, a row for each entry of the state.
    start: Vec<f64>,
    parameters: usize,
}

impl InputHistory {
    /// For a run from this start; without rows.
    pub fn new(model: &Interpreted, method: &Method, start: &Start) -> Result<InputHistory, StepError> {
        let (program, dims) = (model.program(), model.dims());
        let inputs = program.seeds.iter().enumerate().filter(|(_, (group, _))| *group == Group::U);
        let places: Vec<usize> = inputs.map(|(place, _)| place).collect();
        if places.is_empty() {
            let what = "no input is among what the model is differentiated by";
            return Err(StepError::NotDifferentiable { what });
        }
        let held = places.iter().map(|&place| {
            let (_, input) = program.seeds[place];
            matches!(program.inputs[input as usize].hold, Hold::Zero)
        });
        Ok(InputHistory {
            held: held.collect(),
            later: vec![0.0; places.len() * dims.n_objectives],
            inputs: places.iter().map(|&place| program.sensitivity[place].clone()).collect(),
            times: Vec::new(),
            derivatives: Vec::new(),
            objectives: dims.n_objectives,
            places,
            start: start.derivatives(model, method)?,
            parameters: dims.sensitivity.parameters,
        })
    }

    /// Notes a node of the way back; a column of its weights belongs to each objective.
    pub fn see(&mut self, node: &AdjointNode<'_, f64>) {
        let AdjointNode::Backward { number, t, state, rho, step } = *node else { return };
        let (m, p, n) = (self.objectives, self.parameters, self.places.len());
        self.times.push(t);
        // Backward, so that all of it is turned round in the end.
        for i in (0..m).rev() {
            for (j, &place) in self.places.iter().enumerate().rev() {
                let mut weight = rho.get(place * m + i).copied().unwrap_or(0.0);
                if self.held[j] {
                    let of_step = step.get(place * m + i).copied().unwrap_or(0.0);
                    weight += self.later[i * n + j] - of_step;
                    self.later[i * n + j] = of_step;
                }
                if number == 0 {
                    let changes = self.start.iter().skip(place).step_by(p.max(1));
                    let weights = state.iter().skip(i).step_by(m);
                    weight += weights.zip(changes).map(|(w, x)| w * x).sum::<f64>();
                }
                self.derivatives.push(weight);
            }
        }
    }

    /// After the last node.
    pub fn finish(&mut self) {
        self.times.reverse();
        self.derivatives.reverse();
    }

    /// Of an objective by an input, a value for each node.
    pub fn of(&self, objective: usize, input: usize) -> impl Iterator<Item = f64> {
        let (m, n) = (self.objectives, self.inputs.len());
        self.derivatives.iter().skip(objective * n + input).step_by((m * n).max(1)).copied()
    }
}
