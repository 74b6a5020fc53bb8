//! The list of [`JointSensitivities`](super::JointSensitivities) as blocks of a right-hand side.

use super::blocks::{Part, Reader};
use super::derivatives::JointPlaces;
pub(crate) use super::values::JointValues;
use crate::error::EvalError;
use crate::scalar::Scalar;
use crate::system::Dims;

/// Parts of a change of the state in joint form.
pub(crate) const THETA: Part = Part::First;
pub(crate) const V: Part = Part::Second;

impl<S: Scalar> JointValues<'_, S> {
    /// Shows the blocks of −(tau_θ θ′ + tau_v v′), −(c_θ θ′ + c_v v′): the right-hand side of vd′ and λ′ where parameters do not change.
    #[inline(always)]
    pub(crate) fn read_state(
        &self,
        dims: &Dims,
        places: &JointPlaces<'_>,
        reader: &mut impl Reader<S>,
    ) -> Result<(), EvalError> {
        let (top, rows, minus) = (0, dims.nv, -S::ONE);
        reader.blocks(top, places.tangent, [(THETA, minus, self.force_theta), (V, minus, self.force_v)])?;
        reader.blocks(rows, places.rows, [(THETA, minus, self.rows_theta), (V, minus, self.rows_v)])
    }

    /// Those of −tau_θ θ′, −c_θ θ′ alone, where velocities do not change.
    #[inline(always)]
    pub(crate) fn read_positions(
        &self,
        dims: &Dims,
        places: &JointPlaces<'_>,
        reader: &mut impl Reader<S>,
    ) -> Result<(), EvalError> {
        let (top, rows, minus) = (0, dims.nv, -S::ONE);
        reader.block(top, places.tangent, (THETA, minus, self.force_theta))?;
        reader.block(rows, places.rows, (THETA, minus, self.rows_theta))
    }

    /// Those of −tau_ρ, −c_ρ alone.
    #[inline(always)]
    pub(crate) fn read_parameters(
        &self,
        dims: &Dims,
        places: &JointPlaces<'_>,
        reader: &mut impl Reader<S>,
    ) -> Result<(), EvalError> {
        let (top, rows, minus) = (0, dims.nv, -S::ONE);
        reader.parameters(top, places.force, minus, self.force_rho)?;
        reader.parameters(rows, places.row, minus, self.rows_rho)
    }

    /// Shows the blocks of −(tau_θ θ′ + tau_v v′ + tau_ρ), −(c_θ θ′ + c_v v′ + c_ρ), the right-hand side of vd′ and λ′.
    #[inline(always)]
    pub(crate) fn read(
        &self,
        dims: &Dims,
        places: &JointPlaces<'_>,
        reader: &mut impl Reader<S>,
    ) -> Result<(), EvalError> {
        self.read_state(dims, places, reader)?;
        self.read_parameters(dims, places, reader)
    }
}
