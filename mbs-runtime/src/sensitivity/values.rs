//! The lists of [`Sensitivities`](super::Sensitivities), cut into their parts.

use super::derivatives::ParameterPlaces;
use crate::constrained::Pattern;
use crate::error::EvalError;

/// Cuts a list; a part that is not there is an error.
struct Cut<'a, S> {
    rest: &'a [S],
    wrong: EvalError,
}

impl<'a, S> Cut<'a, S> {
    #[inline(always)]
    fn next(&mut self, n: usize) -> Result<&'a [S], EvalError> {
        let (part, rest) = self.rest.split_at_checked(n).ok_or(self.wrong)?;
        self.rest = rest;
        Ok(part)
    }
}

/// What `linearise` writes.
#[derive(Clone, Copy)]
pub(crate) struct MotionValues<'a, S> {
    /// M
    pub(crate) mass: &'a [S],
    /// C
    pub(crate) by_velocity: &'a [S],
    /// K
    pub(crate) by_position: &'a [S],
    /// Φ_z
    pub(crate) holonomic: &'a [S],
    /// A
    pub(crate) nonholonomic: &'a [S],
    /// Ψ_z
    pub(crate) nonholonomic_z: &'a [S],
    /// r_ρ
    pub(crate) residual: &'a [S],
    /// Φ_ρ, Ψ_ρ
    pub(crate) constraints: &'a [S],
}

impl<'a, S> MotionValues<'a, S> {
    #[inline(always)]
    pub(crate) fn of(
        pattern: &Pattern<'_>,
        places: &ParameterPlaces<'_>,
        values: &'a [S],
    ) -> Result<Self, EvalError> {
        let (tangent, holonomic, nonholonomic) =
            (pattern.tangent.len(), pattern.holonomic.len(), pattern.nonholonomic.len());
        let expected =
            3 * tangent + holonomic + 2 * nonholonomic + places.residual.len() + places.constraints.len();
        let wrong = EvalError::Length { what: "values", expected, found: values.len() };
        let mut cut = Cut { rest: values, wrong };
        Ok(Self {
            mass: cut.next(tangent)?,
            by_velocity: cut.next(tangent)?,
            by_position: cut.next(tangent)?,
            holonomic: cut.next(holonomic)?,
            nonholonomic: cut.next(nonholonomic)?,
            nonholonomic_z: cut.next(nonholonomic)?,
            residual: cut.next(places.residual.len())?,
            constraints: cut.next(places.constraints.len())?,
        })
    }
}

/// What `linearise_projections` writes.
#[derive(Clone, Copy)]
pub(crate) struct ProjectionValues<'a, S> {
    /// (M d + Φ_zᵀ σ + Aᵀ σ')_z
    pub(crate) velocity_impulse: &'a [S],
    /// (M e + Φ_zᵀ κ + Aᵀ κ')_z
    pub(crate) acceleration_impulse: &'a [S],
    /// Φd_z
    pub(crate) rates_z: &'a [S],
    /// Ψ_z
    pub(crate) nonholonomic_z: &'a [S],
    /// Φdd_z
    pub(crate) accelerations_z: &'a [S],
    /// Ψd_z
    pub(crate) nonholonomic_rates_z: &'a [S],
    /// Ψd_zd
    pub(crate) nonholonomic_rates_zd: &'a [S],
    /// (M d + …)_ρ
    pub(crate) velocity_impulse_rho: &'a [S],
    /// (M e + …)_ρ
    pub(crate) acceleration_impulse_rho: &'a [S],
    /// Φd_ρ, Ψ_ρ
    pub(crate) rates: &'a [S],
    /// Φdd_ρ, Ψd_ρ
    pub(crate) accelerations: &'a [S],
}

impl<'a, S> ProjectionValues<'a, S> {
    #[inline(always)]
    pub(crate) fn of(
        pattern: &Pattern<'_>,
        places: &ParameterPlaces<'_>,
        values: &'a [S],
    ) -> Result<Self, EvalError> {
        let (tangent, holonomic, nonholonomic) =
            (pattern.tangent.len(), pattern.holonomic.len(), pattern.nonholonomic.len());
        let (impulse, rates, accelerations) =
            (places.impulse.len(), places.rates.len(), places.accelerations.len());
        let expected = 2 * (tangent + holonomic + impulse) + 3 * nonholonomic + rates + accelerations;
        let wrong = EvalError::Length { what: "values", expected, found: values.len() };
        let mut cut = Cut { rest: values, wrong };
        Ok(Self {
            velocity_impulse: cut.next(tangent)?,
            acceleration_impulse: cut.next(tangent)?,
            rates_z: cut.next(holonomic)?,
            nonholonomic_z: cut.next(nonholonomic)?,
            accelerations_z: cut.next(holonomic)?,
            nonholonomic_rates_z: cut.next(nonholonomic)?,
            nonholonomic_rates_zd: cut.next(nonholonomic)?,
            velocity_impulse_rho: cut.next(impulse)?,
            acceleration_impulse_rho: cut.next(impulse)?,
            rates: cut.next(rates)?,
            accelerations: cut.next(accelerations)?,
        })
    }
}
