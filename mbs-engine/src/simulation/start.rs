//! Where a run with constraints begins: positions, velocities, accelerations and multipliers that satisfy them.
//!
//! Enters: a model whose start values are guesses. Leaves: the state, what had to move for it, and what is known of the
//! equations.

use super::settings::Analysis;
use crate::Interpreted;
use mbs_runtime::formulation::StartStatistics;
use mbs_runtime::{Assembly, State, StepError, System, euler_parameters};

/// A change of a start value below this part of it, or of one, is not worth telling: reports show six digits.
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
    let (z, v) = guess.split_at(dims.nq);
    let mut state = vec![0.0; State::<f64>::len(&dims)];
    let mut view = State::of(&dims, &mut state)?;
    view.reset(begin);
    view.z.copy_from_slice(z);
    let eval = |error| StepError::Eval { t: begin, h: 0.0, error };
    euler_parameters::coordinate_rates(model, z, v, view.zd).map_err(eval)?;
    let mut scratch = vec![0.0; Assembly::scratch_len(&dims)];
    let mut inputs = model.input_signals();
    let statistics = match analysis {
        Analysis::Dynamics => Assembly::DEFAULT.start(model, &mut inputs, &mut state, &mut scratch)?,
        Analysis::Kinematics => Assembly::DEFAULT.driven(model, &mut inputs, &mut state, &mut scratch)?,
    };
    let view = State::of(&dims, &mut state)?;
    let mut y = view.z.to_vec();
    y.resize(dims.nq + dims.nv, 0.0);
    euler_parameters::velocities(model, view.z, view.zd, &mut y[dims.nq..]).map_err(eval)?;
    // Lengths of Euler parameters mean nothing; every start normalises them.
    let mut normal = guess.clone();
    mbs_runtime::integrator::renormalise(model, &mut normal[..dims.nq]);
    let changes = normal.iter().zip(&y).enumerate();
    let moved = changes
        .filter(|(_, (before, after))| (*after - *before).abs() > NOTABLE * before.abs().max(1.0))
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
