//! One mechanism in two kinds of coordinates: objectives and gradients of both agree to what their steps leave open.
//!
//! Input: the model in either coordinates, and a run. Output: every objective and every derivative twice, with the difference that the
//! steps explain. Both runs are made with step h and with h/2; what halving changes bounds the error of the finer run,
//!
//! ```text
//! |ψ_a − ψ_b| ≤ |ψ_a(h) − ψ_a(h/2)| + |ψ_b(h) − ψ_b(h/2)| + rounding
//! ```

use super::whole_run::VANISHED;
use crate::{Interpreted, gradient};
use mbs_codegen::model::Simulation;
use mbs_runtime::StepError;
use std::ops::ControlFlow;

/// Rounding of a long run, beside objectives that vanish, relative to the value, or to a thousandth of the largest derivative of its objective per unit of its parameter.
const ROUNDING: f64 = 1e-9;
const LEAST: f64 = 1e-3;

/// A number in both coordinates.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// The objective.
    pub objective: String,
    /// By which it is differentiated; none for its value.
    pub by: Option<String>,
    /// In the one and in the other coordinates, with half the step.
    pub values: [f64; 2],
    /// The largest difference that is explained.
    pub allowed: f64,
}

impl Compared {
    /// |ψ_a − ψ_b|
    pub fn difference(&self) -> f64 {
        (self.values[0] - self.values[1]).abs()
    }

    /// Whether both agree; a value that is not a number agrees with none.
    pub fn passed(&self) -> bool {
        self.difference() <= self.allowed
    }
}

/// Objectives and gradients of a model and of the same in other coordinates, each with its own settings of the run. An error
/// comes with the number of the model that it belongs to.
pub fn agreement(models: [(&Interpreted, &Simulation); 2]) -> Result<Vec<Compared>, (usize, StepError)> {
    let mut runs = Vec::new();
    for (number, (model, simulation)) in models.into_iter().enumerate() {
        let halved = Simulation { step: simulation.step / 2.0, ..simulation.clone() };
        for simulation in [simulation, &halved] {
            runs.push(run(model, simulation).map_err(|error| (number, error))?);
        }
    }
    let [a, a_halved, b, b_halved] = &runs[..] else { return Ok(Vec::new()) };
    let program = models[0].0.program();
    let parameters: Vec<f64> = gradient::parameter_sizes(models[0].0).collect();
    let mut all = Vec::new();
    let columns = program.sensitivity.len() + 1;
    for (i, (objective, _)) in program.objectives.iter().enumerate() {
        let row = |run: &'_ Vec<f64>| run[i * columns..(i + 1) * columns].to_vec();
        let [a, a_halved, b, b_halved] = [a, a_halved, b, b_halved].map(row);
        // dψ/dρ ρ, in the unit of ψ
        let largest = a_halved[1..].iter().zip(&parameters).map(|(d, p)| (d * p).abs()).fold(0.0, f64::max);
        for k in 0..columns {
            let steps = (a[k] - a_halved[k]).abs() + (b[k] - b_halved[k]).abs();
            let by = k.checked_sub(1);
            let least = by.map_or(0.0, |by| LEAST * largest / parameters[by]);
            let size = a_halved[k].abs().max(b_halved[k].abs()).max(least);
            let vanished = by.map_or(VANISHED, |by| VANISHED / parameters[by]);
            all.push(Compared {
                objective: objective.clone(),
                by: by.map(|by| program.sensitivity[by].clone()),
                values: [a_halved[k], b_halved[k]],
                allowed: steps + ROUNDING * size + vanished,
            });
        }
    }
    Ok(all)
}

/// Each objective and its derivatives, one after the other.
fn run(model: &Interpreted, simulation: &Simulation) -> Result<Vec<f64>, StepError> {
    let start = gradient::start(model, simulation)?;
    let method = start.method(model, simulation);
    let found = gradient::run(model, &method, simulation, start, |_| ControlFlow::Continue(()))?;
    let rows = found.objectives.iter().enumerate();
    Ok(rows.flat_map(|(i, &value)| [value].into_iter().chain(found.of_objective(i).to_vec())).collect())
}
