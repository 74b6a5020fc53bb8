//! The model's start values as guesses of a state, and their derivatives.
//!
//! Input: z and v of [`Start`](crate::Start) and their derivatives. Output: z with Euler parameters of unit norm, zd = N(z) v, and the
//! derivatives of both.

use super::derivatives::{Sensitivities, StartDerivatives};
use super::state::StateDerivatives;
use super::values::StartValues;
use crate::error::{EvalError, StepError};
use crate::euler_parameters::{coordinate_rates, normalised, rates};
use crate::formulation::{Assembly, StartStatistics, State};
use crate::inputs::Inputs;
use crate::integrator::renormalise;
use crate::linear::copy;
use crate::pieces::Pieces;
use crate::scalar::Scalar;

impl Assembly {
    /// Writes the model's start values as the guesses of a state at time `t`, and their derivatives by the parameters.
    pub fn guess_differentiated<M: StartDerivatives>(
        system: &M,
        t: M::S,
        state: &mut [M::S],
        derivatives: &mut [M::S],
        scratch: &mut [M::S],
    ) -> Result<(), StepError> {
        let dims = system.dims();
        let mut view = State::of(&dims, state)?;
        view.reset(t);
        let mut change = StateDerivatives::of(&dims, derivatives)?;
        let mut pieces = Pieces::of(scratch, Self::differentiated_scratch_len(&dims));
        let (z, v) = (pieces.next(dims.nq)?, pieces.next(dims.nv)?);
        let v_change = pieces.next(dims.nv * dims.sensitivity.parameters)?;
        let values = pieces.next(dims.sensitivity.start)?;
        let w = pieces.rest();
        let fail = |error: EvalError| error.in_step(t.real(), 0.0);
        system.start(z, v, &mut []).map_err(fail)?;
        system.start_derivatives(w, values).map_err(fail)?;
        copy(view.z, z);
        renormalise(system, view.z);
        coordinate_rates(system, view.z, v, view.zd).map_err(fail)?;

        let [z_places, v_places] = system.start_places();
        let start = StartValues::of(z_places, v_places, values).map_err(fail)?;
        let columns = dims.sensitivity.parameters;
        change.z.fill(M::S::ZERO);
        change.zd.fill(M::S::ZERO);
        change.clear_forces();
        v_change.fill(M::S::ZERO);
        let parts = [(&mut *change.z, z_places, start.z), (&mut *v_change, v_places, start.v)];
        for (to, places, values) in parts {
            for (&(i, k), &value) in places.iter().zip(values) {
                if let Some(to) = to.get_mut(i as usize * columns + k as usize) {
                    *to = value;
                }
            }
        }
        normalised(system, z, columns, change.z).map_err(fail)?;
        rates(system, view.z, v, columns, change.z, v_change, change.zd).map_err(fail)
    }

    /// [`Assembly::begin`] together with the derivatives of the start: [`Assembly::guess_differentiated`], then
    /// [`Assembly::start_differentiated`]. `scratch`: of [`Assembly::differentiated_scratch_len`].
    pub fn begin_differentiated<M: Sensitivities + StartDerivatives, I: Inputs<M::S>>(
        &self,
        system: &M,
        inputs: &mut I,
        t: M::S,
        state: &mut [M::S],
        derivatives: &mut [M::S],
        scratch: &mut [M::S],
    ) -> Result<StartStatistics, StepError> {
        Self::guess_differentiated(system, t, state, derivatives, scratch)?;
        self.start_differentiated(system, inputs, state, derivatives, scratch)
    }
}
