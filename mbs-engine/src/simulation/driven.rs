//! The motion that drives prescribe, step by step.
//!
//! Input: a state in which all constraints hold. Output: the one a step later. Guesses are what velocities and accelerations
//! make of the position before, so that a mechanism with several positions stays in the one it is in.

use mbs_runtime::formulation::{ImplicitStep, StartStatistics};
use mbs_runtime::{Assembly, Constrained, Dims, Inputs, Scalar, State, StepError, StepStatistics, System};

/// A position this far from the one that rates lead to, in units of max(1, ‖z‖), and by this part of how far these lead, may be another
/// branch: the step is made again in halves.
const ELSEWHERE: f64 = 0.05;
const OFF: f64 = 0.25;
/// How often a step is halved.
const HALVINGS: u32 = 12;
const JUMPED: &str = "the step of the drives is too long, or a drive jumps: the position found is not the one that rates lead to, perhaps another branch";

/// Positions, velocities and accelerations from the constraints alone.
#[derive(Clone, Copy, Debug)]
pub struct Driven;

impl ImplicitStep for Driven {
    fn scratch_len(&self, dims: &Dims) -> usize {
        Assembly::scratch_len(dims)
    }

    fn step<M: Constrained, I: Inputs<M::S>>(
        &self,
        system: &M,
        inputs: &mut I,
        state: &mut [M::S],
        h: M::S,
        scratch: &mut [M::S],
    ) -> Result<StepStatistics, StepError> {
        let before = state.to_vec();
        let end = *State::of(&System::dims(system), state)?.t + h;
        let found = advance(system, inputs, state, end, scratch, HALVINGS);
        match found {
            Ok(found) => Ok(StepStatistics {
                iterations: found.iterations,
                phi: found.phi,
                phid: found.phid,
                phidd: found.phidd,
                ..StepStatistics::default()
            }),
            Err(error) => {
                state.copy_from_slice(&before);
                Err(error)
            }
        }
    }
}

/// The state at time `end`, on the branch that it is on.
fn advance<M: Constrained, I: Inputs<M::S>>(
    system: &M,
    inputs: &mut I,
    state: &mut [M::S],
    end: M::S,
    scratch: &mut [M::S],
    halvings: u32,
) -> Result<StartStatistics, StepError> {
    let before = state.to_vec();
    let view = State::of(&System::dims(system), state)?;
    let (t, h) = (*view.t, end - *view.t);
    let start = view.z.to_vec();
    *view.t = end;
    // z + h zd + h²/2 zdd
    for ((z, &zd), &zdd) in view.z.iter_mut().zip(&*view.zd).zip(&*view.zdd) {
        *z += h * (zd + M::S::from_f64(0.5) * h * zdd);
    }
    let predicted = view.z.to_vec();
    let found = Assembly::DEFAULT.driven(system, inputs, state, scratch).and_then(|found| {
        let z = State::of(&System::dims(system), state)?.z;
        let far =
            |a: &[M::S], b: &[M::S]| a.iter().zip(b).map(|(&a, &b)| (a - b).real().abs()).fold(0.0, f64::max);
        let size = z.iter().map(|z| z.real().abs()).fold(1.0, f64::max);
        let (corrected, moved) = (far(z, &predicted), far(&predicted, &start));
        match corrected > OFF * moved && corrected > ELSEWHERE * size {
            true => Err(StepError::Setting { what: JUMPED, value: h.real() }),
            false => Ok(found),
        }
    });
    let Err(error) = found else { return found };
    state.copy_from_slice(&before);
    if halvings == 0 {
        return Err(error);
    }
    let middle = t + M::S::from_f64(0.5) * h;
    let first = advance(system, inputs, state, middle, scratch, halvings - 1).map_err(|_| error)?;
    let last = advance(system, inputs, state, end, scratch, halvings - 1).map_err(|_| error)?;
    Ok(StartStatistics { iterations: first.iterations + last.iterations, ..last })
}
