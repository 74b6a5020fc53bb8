//! Where a run with constraints begins: positions, velocities, accelerations and multipliers that satisfy them.
//!
//! Enters: a model whose start values are guesses. Leaves: the state, what had to move for it, and what is known of the
//! equations.

use crate::settings::{Analysis, Settings};
use mbs_engine::Interpreted;
use mbs_runtime::formulation::StartStatistics;
use mbs_runtime::{Assembly, State, StepError, System};

/// A change of a start value below this part of it, or of one, is not worth telling: reports show six digits.
const NOTABLE: f64 = 1e-6;

/// A consistent start.
pub(crate) struct Start {
    /// The state of an implicit run.
    pub(crate) state: Vec<f64>,
    /// Coordinates and velocities.
    pub(crate) y: Vec<f64>,
    /// Coordinates and velocities that had to move notably: index in y, value before, value after.
    pub(crate) moved: Vec<(usize, f64, f64)>,
    /// Whether coordinates were held.
    pub(crate) statistics: StartStatistics,
}

/// Makes the model's start consistent.
pub(crate) fn assemble(model: &Interpreted, settings: &Settings) -> Result<Start, StepError> {
    assemble_at(model, settings.simulation.begin, settings.analysis)
}

/// The same at any time.
pub(crate) fn assemble_at(model: &Interpreted, begin: f64, analysis: Analysis) -> Result<Start, StepError> {
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
    let changes = normal.iter().zip(&y).enumerate();
    let moved = changes
        .filter(|(_, (before, after))| (*after - *before).abs() > NOTABLE * before.abs().max(1.0))
        .map(|(i, (&before, &after))| (i, before, after))
        .collect();
    Ok(Start { state, y, moved, statistics })
}
