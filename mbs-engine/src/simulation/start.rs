//! Where a run with constraints begins: positions, velocities, accelerations and multipliers that satisfy them.
//!
//! Input: a model whose start values are guesses. Output: the state, what had to move for it, and what is known of the
//! equations.

use super::settings::Analysis;
use crate::Interpreted;
use mbs_runtime::formulation::StartStatistics;
use mbs_runtime::{Assembly, State, StepError, System, euler_parameters};

/// A change of a start value below this part of it, or of its unit, is not worth telling: reports show six digits.
const NOTABLE: f64 = 1e-6;

/// A consistent start.
#[derive(Clone, Debug)]
pub struct Start {
    /// The state of an implicit run.
    pub state: Vec<f64>,
    /// Coordinates and velocities.
    pub y: Vec<f64>,
    /// Coordinates and velocities that had to move notably: index in y, value before, value after.
    pub moved: Vec<(usize, f64, f64)>,
    /// What it took, and what is known of the equations.
    pub statistics: StartStatistics,
}

/// Makes the model's start consistent at a time.
pub fn assemble(model: &Interpreted, begin: f64, analysis: Analysis) -> Result<Start, StepError> {
    let dims = model.dims();
    let guess = model.start_state();
    let mut state = vec![0.0; State::<f64>::len(&dims)];
    let mut scratch = vec![0.0; Assembly::scratch_len(&dims)];
    let (assembly, mut inputs) = (Assembly::DEFAULT, model.input_signals());
    let statistics = match analysis {
        Analysis::Dynamics => assembly.begin(model, &mut inputs, begin, &mut state, &mut scratch)?,
        Analysis::Kinematics => assembly.begin_driven(model, &mut inputs, begin, &mut state, &mut scratch)?,
    };
    let mut y = vec![0.0; dims.state()];
    State::of(&dims, &mut state)?.joint_form(model, &mut y)?;
    // Lengths of Euler parameters mean nothing; every start normalises them.
    let mut normal = guess.clone();
    mbs_runtime::integrator::renormalise(model, &mut normal[..dims.nq]);
    let unit = |i: usize| if i < dims.nq { model.units().coordinate(i) } else { 1.0 };
    let changes = normal.iter().zip(&y).enumerate();
    let moved = changes
        .filter(|&(i, (before, after))| (after - before).abs() > NOTABLE * before.abs().max(unit(i)))
        .map(|(i, (&before, &after))| (i, before, after))
        .collect();
    Ok(Start { state, y, moved, statistics })
}

/// Coordinates that assembly may not move: their names, values and rates.
pub fn held(model: &Interpreted) -> Vec<(&str, f64, f64)> {
    let (program, dims) = (model.program(), model.dims());
    let guess = model.start_state();
    let (z, v) = guess.split_at(dims.nq);
    let mut rates = vec![0.0; dims.nq];
    // The lengths are right, so this cannot fail.
    let _ = euler_parameters::coordinate_rates(model, z, v, &mut rates);
    let all = program.coordinates.iter().zip(&program.held).zip(z.iter().zip(&rates));
    all.filter(|((_, held), _)| **held).map(|((name, _), (&z, &zd))| (name.as_str(), z, zd)).collect()
}
