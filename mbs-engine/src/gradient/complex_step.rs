//! Runs in complex numbers whose small imaginary part tells derivatives along a direction, exactly to rounding.
//!
//! With parameters ρ + iε ρ′ and a start x + iε x′, ε small enough that its square vanishes, a run leaves y + iε J (x′, ρ′). Events are located by real
//! parts, and their times have the imaginary parts that make their functions zero, so that this holds through events, too.

use super::Start;
use super::products::{Changes, Directions, Weights, weigh};
use super::together::Together;
use crate::Interpreted;
use crate::method::Method;
use mbs_codegen::model::Simulation;
use mbs_codegen::symbols::Group;
use mbs_runtime::{AdjointNode, Complex64, State, StepError, System};
use std::ops::ControlFlow;

/// The imaginary step: its square vanishes beside any number.
pub(super) const STEP: f64 = 1e-30;

/// What inputs move by.
pub(super) type Moves = Vec<(usize, Complex64)>;

/// The model at ρ + iε ρ′, and what its inputs move by.
pub(super) fn moved(
    base: &Interpreted<Complex64>,
    direction: impl Iterator<Item = f64>,
) -> (Interpreted<Complex64>, Moves) {
    let mut model = base.clone();
    let (mut parameters, mut by) = (Moves::new(), Moves::new());
    for (&(group, place), v) in base.program().seeds.iter().zip(direction) {
        let moves = if group == Group::U { &mut by } else { &mut parameters };
        moves.push((place as usize, Complex64::new(0.0, STEP * v)));
    }
    model.move_parameters(parameters);
    (model, by)
}

/// The rows of a state that have derivatives, in their order.
fn rows<'a>(
    model: &Interpreted<Complex64>,
    method: &Method,
    state: &'a mut [Complex64],
) -> Result<Vec<&'a mut Complex64>, StepError> {
    if method.is_runge_kutta() {
        return Ok(state.iter_mut().collect());
    }
    let State { z, zd, zdd, lambda, a, .. } = State::of(&model.dims(), state)?;
    Ok([z, zd, zdd, lambda, a].into_iter().flatten().collect())
}

/// The product of a run's derivative with directions; for each of them a run, and the way back of its adjoint without weights.
pub(super) fn jacobian_vector(
    model: &Interpreted,
    method: &Method,
    simulation: &Simulation,
    begin: Start,
    directions: Directions<'_>,
) -> Result<Changes, StepError> {
    let Directions { columns, start, rho } = directions;
    let (own, method) = (method, method.iterated_to_rounding(begin.redundant()));
    let (dims, mut together) = (model.dims(), Together::default());
    let (first, _) = begin.clone().run_from(model, &method)?;
    let n = start.len() / columns.max(1);
    let lengths =
        [("start", n * columns, start.len()), ("rho", dims.sensitivity.parameters * columns, rho.len())];
    if let Some((what, expected, found)) = lengths.into_iter().find(|(_, a, b)| a != b) {
        return Err(StepError::Length { what, expected, found });
    }
    let base = Interpreted::<Complex64>::new(model.program_as_set());
    let m = dims.n_objectives;
    let mut all = Changes {
        objectives: vec![0.0; m],
        objective_changes: vec![0.0; m * columns],
        end: vec![0.0; n * columns],
    };
    for k in 0..columns {
        let column = |matrix: &[f64]| matrix.iter().skip(k).step_by(columns).copied().collect::<Vec<_>>();
        let (model, by) = moved(&base, column(rho).into_iter());
        let mut state: Vec<Complex64> = first.iter().map(|&x| x.into()).collect();
        let moving = rows(&model, &method, &mut state)?;
        if moving.len() != n {
            let (expected, found) = (moving.len() * columns, start.len());
            return Err(StepError::Length { what: "start", expected, found });
        }
        moving.into_iter().zip(column(start)).for_each(|(x, change)| x.im = STEP * change);
        let nothing = vec![Complex64::default(); m];
        let weights = Weights { columns: 1, objectives: &nothing, end: &[] };
        let go_on = &mut |node: AdjointNode<'_, Complex64>| {
            together.see(&node);
            ControlFlow::Continue(())
        };
        let (inputs, memory) = (&mut model.input_signals().moved(by), super::adjoint::MEMORY);
        let mut found = weigh(&model, inputs, &method, simulation, state, weights, memory, go_on)?;
        for (i, psi) in found.objectives.iter().enumerate() {
            all.objectives[i] = psi.re;
            all.objective_changes[i * columns + k] = psi.im / STEP;
        }
        for (i, x) in rows(&model, &method, &mut found.end)?.into_iter().enumerate() {
            all.end[i * columns + k] = x.im / STEP;
        }
    }
    together.check(model, own, simulation, || Ok(begin))?;
    Ok(all)
}
