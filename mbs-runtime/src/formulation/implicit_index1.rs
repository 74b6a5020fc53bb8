//! Index 1 and penalty under an implicit integrator: constraints at the level of accelerations, with Baumgarte's stabilisation
//! [Dopico2018, Eqs. 41–43; Baumgarte 1972].
//!
//! Input: the state at t. Output: the state at t + h with r = 0 and, for each row,
//!
//! ```text
//! Φdd + 2ξω Φd + ω² Φ − λ/α = 0        Ψd + 2ξω Ψ − μ/α = 0
//! ```
//!
//! and no projections: with 1/α = 0 the constraints hold up to the integrator's error, otherwise up to the penalty's.
//!
//! | symbol | meaning |
//! |---|---|
//! | a, b, e | 2ξω, ω², 1/α: the [`Stabilisation`] |
//! | s | 1 + a γh + b βh², of nonholonomic rows 1 + a γh |
//! | g | the row's equation over s |
//!
//! Newton's matrix has Φ_z s in the place of the row's exact derivative, which is Φ_z s + γh (2 Φd_z) + βh² (Φdd_z + a Φd_z): what is
//! neglected is of order h, and so is the contraction of the iteration. The rows themselves are exact, hence its limit.

use super::ali3p::{refuse_first_order_states, refuse_projection_multipliers};
use super::compliance::{least_part, write_least};
use super::newton::{self, Border, Iteration, Step, Tangent};
use super::projection::ProjectionMatrix;
use super::record::Record;
use super::state::State;
use crate::constrained::{Constrained, Stabilisation};
use crate::error::StepError;
use crate::inputs::{Held, Inputs};
use crate::integrator::{Implicit, StepStatistics, positive};
use crate::linear::blocks::holonomic_rows;
use crate::linear::{Leading, copy};
use crate::pieces::{Pieces, cut_mut};
use crate::scalar::Scalar;
use crate::system::Dims;

/// Settings of the formulation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ImplicitIndex1 {
    /// How positions and velocities follow from accelerations.
    pub integrator: Implicit,
    /// Corrections are to be below this part of the motion in a step.
    pub tolerance: f64,
    /// Iterations that a step may take.
    pub max_iterations: usize,
    /// Which tangent they use.
    pub tangent: Tangent,
    /// How accelerations answer a violated constraint.
    pub stabilisation: Stabilisation<f64>,
}

impl ImplicitIndex1 {
    /// The trapezoidal rule, tolerance 1e−10, at most 30 iterations.
    pub const fn new(stabilisation: Stabilisation<f64>) -> Self {
        Self {
            integrator: Implicit::TRAPEZOIDAL,
            tolerance: 1e-10,
            max_iterations: 30,
            tangent: Tangent::Exact,
            stabilisation,
        }
    }

    /// Length of the scratch a step needs, at least; a constant for generated models.
    #[inline(always)]
    pub const fn scratch_len(dims: &Dims) -> usize {
        newton::scratch_len(dims) + 2 * dims.rows()
    }

    /// Takes the state one step further by `h`. The scratch carries nothing from one step to the next. After an error the
    /// state is as before.
    #[inline]
    pub fn step<M: Constrained, I: Inputs<M::S>>(
        &self,
        system: &M,
        inputs: &mut I,
        state: &mut [M::S],
        h: M::S,
        scratch: &mut [M::S],
    ) -> Result<StepStatistics, StepError> {
        self.advance(system, inputs, state, h, None, scratch)
    }

    /// [`ImplicitIndex1::step`] that also fills the `record` of the step, see [`Record`].
    #[inline]
    pub fn step_recorded<M: Constrained, I: Inputs<M::S>>(
        &self,
        system: &M,
        inputs: &mut I,
        state: &mut [M::S],
        h: M::S,
        record: &mut [M::S],
        scratch: &mut [M::S],
    ) -> Result<StepStatistics, StepError> {
        self.advance(system, inputs, state, h, Some(record), scratch)
    }

    #[inline(always)]
    fn advance<M: Constrained, I: Inputs<M::S>>(
        &self,
        system: &M,
        inputs: &mut I,
        state: &mut [M::S],
        h: M::S,
        record: Option<&mut [M::S]>,
        scratch: &mut [M::S],
    ) -> Result<StepStatistics, StepError> {
        self.check()?;
        let dims = system.dims();
        refuse_first_order_states(&dims)?;
        refuse_projection_multipliers(&dims)?;
        let formulas = self.integrator.formulas(h)?;
        let (mut moving, rows) = State::of(&dims, state)?.split();
        let mut pieces = Pieces::of(scratch, Self::scratch_len(&dims));
        let leading = Leading::new(system, &dims, &mut pieces)?;
        let held = [pieces.next(dims.nu)?, pieces.next(dims.nu)?, pieces.next(dims.nu)?];
        let (phid, phidd) = (pieces.next(dims.rows())?, pieces.next(dims.rows())?);
        let mut held = Held::new(inputs, system.holds(), held);
        let mut step = Step::begin(system, leading, formulas, &moving, rows.active, &mut held, &mut pieces)?;
        // A' = A: derivatives of the rows by z are neglected.
        step.formulas.weights.ratio = M::S::ZERO;

        let number = M::S::from_f64;
        let Stabilisation { rate, value, compliance } = self.stabilisation;
        let (a, b, e) = (number(rate), number(value), number(compliance));
        let by_velocity = M::S::ONE + a * formulas.weights.velocity;
        let by_position = by_velocity + b * formulas.weights.position;
        let holonomic = holonomic_rows(&dims);
        let penalised = compliance > 0.0;
        let diagonal = step.compliance()?;
        if penalised {
            // E = e/s
            let (phi, psi) = cut_mut("compliance", diagonal, holonomic)
                .map_err(|error| error.in_step(moving.t.real(), h.real()))?;
            phi.fill(number((e / by_position).real()));
            psi.fill(number((e / by_velocity).real()));
        } else {
            write_least(rows.scale, system.units(), rows.redundant, diagonal);
        }
        let settings = Iteration {
            tolerance: self.tolerance,
            max_iterations: self.max_iterations,
            tangent: self.tangent,
            fusible: false,
        };
        let border = Border {
            left: least_part::<M::S>(),
            exact: penalised,
            reducible: false,
            redundant: rows.redundant,
            scale: rows.scale,
        };
        step.iterate(&settings, border, |system, at, lambda, w, values| {
            system.constraint_rates(at, w, phid)?;
            system.constraint_accelerations(at, w, phidd)?;
            let levels = phid.iter().zip(phidd.iter()).zip(lambda).enumerate();
            for (g, (k, ((&rate, &acceleration), &lambda))) in values.iter_mut().zip(levels) {
                // g = (Φdd + a Φd + b Φ − e λ)/s, g' = (Ψd + a Ψ − e μ)/s
                *g = if k < holonomic {
                    (acceleration + a * rate + b * *g - e * lambda) / by_position
                } else {
                    (acceleration + a * rate - e * lambda) / by_velocity
                };
            }
            Ok(())
        })?;
        if rows.redundant && !penalised {
            step.least_norm_multipliers(ProjectionMatrix::Mass, rows.scale)?;
        }
        if let Some(record) = record {
            let mut record = Record::of(&dims, record)?;
            record.begin(&step, &rows);
            copy(record.lambda_star, step.lambda);
            record.end(&step);
            // With a penalty every multiplier is determined.
            if penalised {
                *record.redundant = M::S::ZERO;
            }
        }
        step.finish(&mut moving)
    }

    #[inline(always)]
    fn check(&self) -> Result<(), StepError> {
        positive("the tolerance must be positive and finite", self.tolerance)?;
        let Stabilisation { rate, value, compliance } = self.stabilisation;
        for value in [rate, value, compliance] {
            if !(0.0..f64::INFINITY).contains(&value) {
                let what = "rate, value and compliance of the stabilisation must be finite and not negative";
                return Err(StepError::Setting { what, value });
            }
        }
        if self.max_iterations == 0 {
            let what = "the number of iterations must be positive";
            return Err(StepError::Setting { what, value: 0.0 });
        }
        Ok(())
    }
}
