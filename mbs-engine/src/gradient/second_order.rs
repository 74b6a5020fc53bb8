//! Second derivatives of objectives: products of their Hessians with directions, and Hessians of few parameters.
//!
//! The gradient by the adjoint is an analytic function of the parameters. Its run in complex numbers with parameters ρ + iε v has H v in the
//! imaginary part of the gradient, ε small enough that its square vanishes:
//!
//! ```text
//! ∇ψ(ρ + iε v) = ∇ψ(ρ) + iε H v + O(ε²)
//! ```
//!
//! So H v is the derivative of the same discrete gradient, exact to rounding, for about four adjoint runs on the tape whatever the number
//! of parameters. Newton's method iterates until rounding, as the imaginary parts need it. A Hessian takes a product for each parameter.

use super::adjoint::sweep;
use super::complex_step::{STEP, moved};
use super::start_of;
use super::together::Together;
use crate::Interpreted;
use crate::method::Method;
use mbs_codegen::model::Simulation;
use mbs_runtime::{AdjointNode, Complex64, Quantity, StepError, System};
use std::ops::ControlFlow;

/// Objectives with first and second derivatives.
#[derive(Clone, Debug, PartialEq)]
pub struct SecondOrder {
    /// The objectives ψ.
    pub objectives: Vec<f64>,
    /// Their gradients: of objective i by parameter k at `i * p + k`.
    pub gradients: Vec<f64>,
    /// For each objective, products of its Hessian with the directions: of objective i along direction j, entry k at `(i * n + j) * p + k` for n
    /// directions. With the unit vectors as directions, the Hessians themselves.
    pub products: Vec<f64>,
}

/// Products of the Hessians of all objectives with directions among the parameters, one after the other, each with p entries. `memory` of the
/// adjoint in bytes.
pub fn hessian_vectors(
    model: &Interpreted,
    method: &Method,
    simulation: &Simulation,
    redundant: bool,
    directions: &[f64],
    memory: usize,
) -> Result<SecondOrder, StepError> {
    let dims = model.dims();
    let (p, m) = (dims.sensitivity.parameters, dims.n_objectives);
    if p == 0 || m == 0 || directions.is_empty() || !directions.len().is_multiple_of(p) {
        let (expected, found) = (p.max(1), directions.len());
        return Err(StepError::Length { what: "directions", expected, found });
    }
    let n = directions.len() / p;
    let (own, method) = (method, method.iterated_to_rounding(redundant));
    let mut together = Together::default();
    let mut all =
        SecondOrder { objectives: vec![0.0; m], gradients: vec![0.0; m * p], products: vec![0.0; m * n * p] };
    let base = Interpreted::<Complex64>::new(model.program_as_set());
    for (j, direction) in directions.chunks_exact(p).enumerate() {
        let found = along(&base, &method, simulation, direction, memory, &mut together)?;
        let real = |values: &[Complex64]| values.iter().map(|x| x.re).collect::<Vec<f64>>();
        (all.objectives, all.gradients) = (real(&found.objectives), real(&found.derivatives));
        for (i, row) in found.derivatives.chunks_exact(p).enumerate() {
            let to = all.products.iter_mut().skip((i * n + j) * p);
            to.zip(row).for_each(|(to, x)| *to = x.im / STEP);
        }
    }
    together.check(model, own, simulation, || super::start(model, simulation))?;
    Ok(all)
}

/// The Hessians of all objectives: of objective i, entry (j, k) at `(i * p + j) * p + k`. For few parameters: it takes a run for each. What
/// rounding leaves of asymmetry stays.
pub fn hessians(
    model: &Interpreted,
    method: &Method,
    simulation: &Simulation,
    redundant: bool,
    memory: usize,
) -> Result<SecondOrder, StepError> {
    let p = model.dims().sensitivity.parameters;
    let mut each = vec![0.0; p * p];
    each.iter_mut().step_by(p + 1).for_each(|entry| *entry = 1.0);
    hessian_vectors(model, method, simulation, redundant, &each, memory)
}

/// Objectives and gradient at ρ + iε v.
fn along(
    base: &Interpreted<Complex64>,
    method: &Method,
    simulation: &Simulation,
    direction: &[f64],
    memory: usize,
    together: &mut Together,
) -> Result<super::adjoint::Swept<Complex64>, StepError> {
    let (model, by) = moved(base, direction.iter().copied());
    let mut inputs = model.input_signals().moved(by);
    let start = start_of(&model, &mut inputs, simulation)?;
    let go_on = &mut |node: AdjointNode<'_, Complex64>| {
        together.see(&node);
        ControlFlow::Continue(())
    };
    let found = sweep(&model, &mut inputs, method, simulation, start, memory, go_on)?;
    match found.derivatives.iter().position(|x| !x.im.is_finite()) {
        None => Ok(found),
        Some(bad) => {
            let index = bad / direction.len().max(1);
            let quantity = Quantity::Objective;
            Err(StepError::NotFinite { t: simulation.end, h: 0.0, quantity, index })
        }
    }
}
