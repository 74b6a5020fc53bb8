//! The list of [`JointSensitivities`](super::JointSensitivities), cut into its parts.

use super::blocks::{Part, Reader};
use super::derivatives::JointPlaces;
use crate::error::EvalError;
use crate::scalar::Scalar;
use crate::system::Dims;

/// What `joint_linearise` writes.
#[derive(Clone, Copy)]
pub(crate) struct JointValues<'a, S> {
    /// M
    pub(crate) mass: &'a [S],
    /// tau_θ
    pub(crate) force_theta: &'a [S],
    /// tau_v
    pub(crate) force_v: &'a [S],
    /// c_θ
    pub(crate) rows_theta: &'a [S],
    /// c_v
    pub(crate) rows_v: &'a [S],
    /// tau_ρ
    pub(crate) force_rho: &'a [S],
    /// c_ρ
    pub(crate) rows_rho: &'a [S],
}

impl<'a, S> JointValues<'a, S> {
    #[inline(always)]
    pub(crate) fn of(places: &JointPlaces<'_>, values: &'a [S]) -> Result<Self, EvalError> {
        let (tangent, rows) = (places.tangent.len(), places.rows.len());
        let expected = 3 * tangent + 2 * rows + places.force.len() + places.row.len();
        let wrong = EvalError::Length { what: "values", expected, found: values.len() };
        let (mass, rest) = values.split_at_checked(tangent).ok_or(wrong)?;
        let (force_theta, rest) = rest.split_at_checked(tangent).ok_or(wrong)?;
        let (force_v, rest) = rest.split_at_checked(tangent).ok_or(wrong)?;
        let (rows_theta, rest) = rest.split_at_checked(rows).ok_or(wrong)?;
        let (rows_v, rest) = rest.split_at_checked(rows).ok_or(wrong)?;
        let (force_rho, rest) = rest.split_at_checked(places.force.len()).ok_or(wrong)?;
        let (rows_rho, _) = rest.split_at_checked(places.row.len()).ok_or(wrong)?;
        Ok(Self { mass, force_theta, force_v, rows_theta, rows_v, force_rho, rows_rho })
    }
}

/// Parts of a change of the state in joint form.
pub(crate) const THETA: Part = Part::First;
pub(crate) const V: Part = Part::Second;

impl<S: Scalar> JointValues<'_, S> {
    /// Shows the blocks of −(tau_θ θ′ + tau_v v′ + tau_ρ), −(c_θ θ′ + c_v v′ + c_ρ), the right-hand side of vd′ and λ′.
    #[inline(always)]
    pub(crate) fn read(
        &self,
        dims: &Dims,
        places: &JointPlaces<'_>,
        reader: &mut impl Reader<S>,
    ) -> Result<(), EvalError> {
        let (top, rows, minus) = (0, dims.nv, -S::ONE);
        reader.block(top, places.tangent, (THETA, minus, self.force_theta))?;
        reader.block(top, places.tangent, (V, minus, self.force_v))?;
        reader.parameters(top, places.force, minus, self.force_rho)?;
        reader.block(rows, places.rows, (THETA, minus, self.rows_theta))?;
        reader.block(rows, places.rows, (V, minus, self.rows_v))?;
        reader.parameters(rows, places.row, minus, self.rows_rho)
    }
}
