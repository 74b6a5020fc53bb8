//! The derivative of a step, stage by stage, as the blocks of its right-hand sides: the equations of the module `step`, once.
//!
//! Input: the lists that a model's bundles wrote at the accepted instant. `forward` and `transposed` have no equations of their own:
//! both read the blocks that this module shows them.
//!
//! Rows of a right-hand side are coordinates, then holonomic and normalisation rows, then nonholonomic ones. Parts of a state's
//! derivative are z, zd, zdd, a.

use super::blocks::{Part, Reader};
use super::derivatives::Sensitivities;
use super::step::Enforcement;
use super::values::{MotionValues, ProjectionValues};
use crate::constrained::Stabilisation;
use crate::error::EvalError;
use crate::integrator::Formulas;
use crate::linear::blocks::holonomic_rows;
use crate::pieces::cut;
use crate::scalar::Scalar;

/// Parts of a state's derivative.
const Z: Part = Part::First;
const ZD: Part = Part::Second;
const ZDD: Part = Part::Third;
const A: Part = Part::Fourth;

/// A stage of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// From p, q: z′, zd*′, zdd*′, a′, λ*′.
    Newton,
    /// From zd*′: zd′.
    Rates,
    /// From zdd*′: zdd′, and λ′.
    Accelerations,
}

/// The lists, in the scratch of a [`LinearisedStep`](super::LinearisedStep).
pub(super) struct Lists<'a, S> {
    /// What `linearise` wrote.
    pub(super) motion: &'a mut [S],
    /// What `linearise_projections` wrote, if it was needed.
    pub(super) projections: &'a mut [S],
    /// c_z and c_zd at the holonomic and nonholonomic places.
    pub(super) rows_z: &'a mut [S],
    pub(super) rows_zd: &'a mut [S],
    /// Derivatives of B x with B x = λ: at the holonomic and nonholonomic places, then at those of the rates by ρ.
    pub(super) turned: &'a mut [S],
}

impl<S: Scalar> Lists<'_, S> {
    /// Shows the blocks of a stage's right-hand side.
    #[inline(always)]
    pub(super) fn read<M: Sensitivities<S = S>>(
        &self,
        system: &M,
        stage: Stage,
        enforcement: Enforcement<S>,
        reader: &mut impl Reader<S>,
    ) -> Result<(), EvalError> {
        let (dims, pattern, places) = (system.dims(), system.pattern(), system.parameter_places());
        let motion = MotionValues::of(&pattern, &places, self.motion)?;
        let (top, phi, psi) = (0, dims.nq, dims.nq + holonomic_rows(&dims));
        let (one, minus) = (S::ONE, -S::ONE);
        if stage == Stage::Newton {
            // −K p − C q − r_ρ
            let terms = [(Z, minus, motion.by_position), (ZD, minus, motion.by_velocity)];
            reader.blocks(top, pattern.tangent, terms)?;
            reader.parameters(top, places.residual, minus, motion.residual)?;
        }
        match (stage, enforcement) {
            (Stage::Newton, Enforcement::Positions { .. }) => {
                // −(Φ_z p + Φ_ρ), −(A q + Ψ_z p + Ψ_ρ), both to be scaled
                reader.parameters(phi, places.constraints, minus, motion.constraints)?;
                reader.block(phi, pattern.holonomic, (Z, minus, motion.holonomic))?;
                let terms = [(ZD, minus, motion.nonholonomic), (Z, minus, motion.nonholonomic_z)];
                reader.blocks(psi, pattern.nonholonomic, terms)
            }
            (Stage::Newton, Enforcement::Accelerations(Stabilisation { rate, value, .. })) => {
                // −c_z p − c_zd q
                let (phi_z, psi_z) = cut("values", self.rows_z, pattern.holonomic.len())?;
                let (phi_zd, psi_zd) = cut("values", self.rows_zd, pattern.holonomic.len())?;
                reader.blocks(phi, pattern.holonomic, [(Z, minus, phi_z), (ZD, minus, phi_zd)])?;
                reader.blocks(psi, pattern.nonholonomic, [(Z, minus, psi_z), (ZD, minus, psi_zd)])?;
                // −c_ρ = −(Φdd + a Φd + b Φ)_ρ, −(Ψd + a Ψ)_ρ
                let values = ProjectionValues::of(&pattern, &places, self.projections)?;
                reader.parameters(phi, places.accelerations, minus, values.accelerations)?;
                reader.parameters(phi, places.rates, -rate, values.rates)?;
                let rows = holonomic_rows(&dims);
                let count = places.constraints.partition_point(|(row, _)| (*row as usize) < rows);
                let (holonomic, _) = cut("places", places.constraints, count)?;
                reader.parameters(phi, holonomic, -value, motion.constraints)
            }
            (Stage::Rates, _) => {
                let values = ProjectionValues::of(&pattern, &places, self.projections)?;
                // M zd*′ − (M d + Bᵀσ)_z z′ − (M d + Bᵀσ)_ρ
                let terms = [(ZD, one, motion.mass), (Z, minus, values.velocity_impulse)];
                reader.blocks(top, pattern.tangent, terms)?;
                reader.parameters(top, places.impulse, minus, values.velocity_impulse_rho)?;
                // −(Φd; Ψ)_z z′ − (Φd; Ψ)_ρ
                reader.parameters(phi, places.rates, minus, values.rates)?;
                reader.block(phi, pattern.holonomic, (Z, minus, values.rates_z))?;
                reader.block(psi, pattern.nonholonomic, (Z, minus, values.nonholonomic_z))
            }
            (Stage::Accelerations, _) => {
                let values = ProjectionValues::of(&pattern, &places, self.projections)?;
                // M zdd*′ − (M e + Bᵀκ)_z z′ − (M e + Bᵀκ)_ρ
                let terms = [(ZDD, one, motion.mass), (Z, minus, values.acceleration_impulse)];
                reader.blocks(top, pattern.tangent, terms)?;
                reader.parameters(top, places.impulse, minus, values.acceleration_impulse_rho)?;
                // −(Φdd; Ψd)_z z′ − (Φdd; Ψd)_zd zd′ − (Φdd; Ψd)_ρ, where Φdd_zd = 2 Φd_z
                reader.parameters(phi, places.accelerations, minus, values.accelerations)?;
                let terms = [(Z, minus, values.accelerations_z), (ZD, minus + minus, values.rates_z)];
                reader.blocks(phi, pattern.holonomic, terms)?;
                let (by_z, by_zd) = (values.nonholonomic_rates_z, values.nonholonomic_rates_zd);
                reader.blocks(psi, pattern.nonholonomic, [(Z, minus, by_z), (ZD, minus, by_zd)])
            }
        }
    }

    /// Shows the blocks of B′ x, in the rows of constraints alone.
    pub(super) fn read_turned<M: Sensitivities<S = S>>(
        &self,
        system: &M,
        reader: &mut impl Reader<S>,
    ) -> Result<(), EvalError> {
        let (dims, pattern, places) = (system.dims(), system.pattern(), system.parameter_places());
        let (holonomic, rest) = cut("values", self.turned, pattern.holonomic.len())?;
        let (nonholonomic, rates) = cut("values", rest, pattern.nonholonomic.len())?;
        reader.parameters(0, places.rates, S::ONE, rates)?;
        reader.block(0, pattern.holonomic, (Z, S::ONE, holonomic))?;
        reader.block(holonomic_rows(&dims), pattern.nonholonomic, (Z, S::ONE, nonholonomic))
    }
}

impl<S: Scalar> Formulas<S> {
    /// What a stage's rows of constraints are multiplied by, holonomic and nonholonomic.
    #[inline(always)]
    pub(super) fn scales(&self, stage: Stage, enforcement: Enforcement<S>) -> [S; 2] {
        match (stage, enforcement) {
            (Stage::Newton, Enforcement::Positions { .. }) => {
                [S::ONE / self.weights.position, S::ONE / self.weights.velocity]
            }
            _ => [S::ONE; 2],
        }
    }

    /// Shows the blocks of the prediction, all of them multiples of the identity: besides z itself in p and zd in q,
    ///
    /// ```text
    /// p = z + h zd + position a + position_next a_next      q alike      a_next = a_zdd zdd + a_a a
    /// ```
    ///
    /// where p stands in the place of z and q in that of zd. An integrator without accelerations of its own has zdd for a, and nothing
    /// of a_next before δ is known.
    #[inline(always)]
    pub(super) fn read_prediction(&self, mut reader: impl FnMut(Part, Part, S)) {
        reader(Z, ZD, self.h);
        if self.keeps_acceleration {
            reader(Z, ZDD, self.position_next * self.a_zdd);
            reader(Z, A, self.position + self.position_next * self.a_a);
            reader(ZD, ZDD, self.velocity_next * self.a_zdd);
            reader(ZD, A, self.velocity + self.velocity_next * self.a_a);
            reader(A, ZDD, self.a_zdd);
            reader(A, A, self.a_a);
        } else {
            reader(Z, ZDD, self.position);
            reader(ZD, ZDD, self.velocity);
        }
    }

    /// Shows what δ adds, besides itself in zdd.
    #[inline(always)]
    pub(super) fn read_increment(&self, mut reader: impl FnMut(Part, S)) {
        reader(Z, self.weights.position);
        reader(ZD, self.weights.velocity);
        if self.keeps_acceleration {
            reader(A, self.a_zdd_next);
        }
    }
}
