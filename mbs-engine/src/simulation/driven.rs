//! The motion that drives prescribe, step by step.
//!
//! Input: a state in which all constraints hold. Output: the one a step later. Guesses are what velocities and accelerations
//! make of the position before, so that a mechanism with several positions stays in the one it is in.

use mbs_runtime::formulation::ImplicitStep;
use mbs_runtime::{Assembly, Constrained, Dims, Inputs, Scalar, State, StepError, StepStatistics, System};

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
        let view = State::of(&System::dims(system), state)?;
        *view.t += h;
        // z + h zd + h²/2 zdd
        for ((z, &zd), &zdd) in view.z.iter_mut().zip(&*view.zd).zip(&*view.zdd) {
            *z += h * (zd + M::S::from_f64(0.5) * h * zdd);
        }
        match Assembly::DEFAULT.driven(system, inputs, state, scratch) {
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
