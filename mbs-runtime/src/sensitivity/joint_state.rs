//! Derivatives of an explicit run's state by the parameters, in one slice of the caller.
//!
//! | symbol | meaning | length |
//! |---|---|---|
//! | z_ρ | of coordinates | nq × p |
//! | v_ρ | of velocities | nv × p |
//!
//! The derivative of entry i by parameter k is at `i * p + k`.

use super::derivatives::StartDerivatives;
use super::state::StateDerivatives;
use super::values::StartValues;
use crate::constrained::Constrained;
use crate::error::{EvalError, StepError};
use crate::euler_parameters::{normalised, velocities, velocities_change};
use crate::formulation::State;
use crate::integrator::renormalise;
use crate::linear::copy;
use crate::pieces::Pieces;
use crate::scalar::Scalar;
use crate::system::{Dims, System};

/// Parts of the derivatives, in a slice of the caller.
#[derive(Debug)]
pub struct JointDerivatives<'a, S> {
    /// Of coordinates.
    pub z: &'a mut [S],
    /// Of velocities.
    pub v: &'a mut [S],
}

impl<'a, S: Scalar> JointDerivatives<'a, S> {
    /// Length of the slice; a constant for generated models.
    #[inline(always)]
    pub const fn len(dims: &Dims) -> usize {
        (dims.nq + dims.nv) * dims.sensitivity.parameters
    }

    /// The parts of `derivatives`.
    #[inline(always)]
    pub fn of(dims: &Dims, derivatives: &'a mut [S]) -> Result<Self, StepError> {
        let mut pieces = Pieces::named("derivatives", derivatives, Self::len(dims));
        let columns = dims.sensitivity.parameters;
        let view = Self { z: pieces.next(dims.nq * columns)?, v: pieces.next(dims.nv * columns)? };
        pieces.end()?;
        Ok(view)
    }

    /// Writes the start of an open tree: y = \[z, v\] with Euler parameters of unit norm, and its derivatives. `scratch`: for
    /// [`SensitivityDims::start`](super::SensitivityDims) and [`Dims::workspace`] values.
    pub fn start<M: StartDerivatives<S = S>>(
        system: &M,
        y: &mut [S],
        derivatives: &'a mut [S],
        scratch: &mut [S],
    ) -> Result<(), StepError> {
        let dims = system.dims();
        let fail = |error: EvalError| error.in_step(0.0, 0.0);
        let wrong = StepError::Length { what: "y", expected: dims.state(), found: y.len() };
        let (z, rest) = y.split_at_mut_checked(dims.nq).ok_or(wrong)?;
        let (v, x) = rest.split_at_mut_checked(dims.nv).ok_or(wrong)?;
        let mut pieces = Pieces::of(scratch, dims.sensitivity.start + dims.workspace);
        let (values, w) = (pieces.next(dims.sensitivity.start)?, pieces.next(dims.workspace)?);
        system.start(z, v, x).map_err(fail)?;
        system.start_derivatives(w, values).map_err(fail)?;
        let change = Self::of(&dims, derivatives)?;
        let columns = dims.sensitivity.parameters;
        let [z_places, v_places] = system.start_places();
        let start = StartValues::of(z_places, v_places, values).map_err(fail)?;
        for (to, places, values) in [(&mut *change.z, z_places, start.z), (change.v, v_places, start.v)] {
            to.fill(S::ZERO);
            for (&(i, k), &value) in places.iter().zip(values) {
                if let Some(to) = to.get_mut(i as usize * columns + k as usize) {
                    *to = value;
                }
            }
        }
        normalised(system, z, columns, change.z).map_err(fail)?;
        renormalise(system, z);
        Ok(())
    }

    /// Writes y = \[z, v\] and its derivatives from a [`State`] and its [`StateDerivatives`], as an assembled start has them.
    pub fn of_state<M: Constrained<S = S>>(
        system: &M,
        state: &mut [S],
        state_derivatives: &mut [S],
        y: &mut [S],
        derivatives: &'a mut [S],
    ) -> Result<(), StepError> {
        let dims = system.dims();
        let from = State::of(&dims, state)?;
        let changes = StateDerivatives::of(&dims, state_derivatives)?;
        let t = from.t.real();
        let wrong = StepError::Length { what: "y", expected: dims.state(), found: y.len() };
        let (z, v) = y.split_at_mut_checked(dims.nq).ok_or(wrong)?;
        copy(z, from.z);
        velocities(system, from.z, from.zd, v).map_err(|error| error.in_step(t, 0.0))?;
        let change = Self::of(&dims, derivatives)?;
        copy(change.z, changes.z);
        let columns = dims.sensitivity.parameters;
        let changed = velocities_change(system, from.z, from.zd, columns, changes.z, changes.zd, change.v);
        changed.map_err(|error| error.in_step(t, 0.0))
    }
}

/// Explicit derivatives know coordinates and velocities.
pub(crate) fn refuse_first_order_states<M: System>(system: &M) -> Result<(), StepError> {
    if system.dims().nx == 0 {
        Ok(())
    } else {
        let what = "there are no derivatives of first-order states yet";
        Err(StepError::NotDifferentiable { what })
    }
}
