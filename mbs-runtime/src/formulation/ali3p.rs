//! The augmented Lagrangian formulation of index 3 with projections of velocities and accelerations
//! [Dopico2018, Eqs. 6–18; LopezVarela2023, Eqs. 8–11], with nonholonomic rows inside Newton's iteration.
//!
//! Input: the state at t. Output: the state at t + h, in which
//!
//! - r(t, z, zd*, zdd*, λ*) = 0, Φ(t, z) = 0 and Ψ(t, z, zd*) = 0 at z, zd*, zdd* that the integrator's formulas connect;
//! - zd, zdd are zd*, zdd* projected: Φd = 0, Ψ = 0, Φdd = 0, Ψd = 0;
//! - λ = λ* + κ are the multipliers of the projected accelerations (see `projection`), of least norm if rows depend on each
//!   other; a, for the generalized-alpha method, is not projected.
//!
//! All of z, zd, zdd, λ are of order 2.
//!
//! The papers enforce nonholonomic rows by projection alone [Dopico2018, Eqs. 6–10], which is of order 1; here they have
//! multipliers μ* in the step like the others. With the multipliers as unknowns the iteration is the papers', in bordered
//! form: see `compliance` for the penalty and `newton` for convergence.

use super::compliance::Penalty;
use super::newton::{self, Border, Iteration, Step, Tangent};
use super::projection::Projection;
pub use super::projection::ProjectionMatrix;
use super::record::Record;
use super::state::State;
use crate::constrained::Constrained;
use crate::error::StepError;
use crate::inputs::{Held, Inputs};
use crate::integrator::{Implicit, StepStatistics, positive};
use crate::linear::blocks::holonomic_rows;
use crate::linear::{Leading, copy, largest};
use crate::pieces::{Pieces, cut_mut};
use crate::scalar::Scalar;
use crate::system::Dims;

/// Settings of the formulation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ali3p {
    /// How positions and velocities follow from accelerations.
    pub integrator: Implicit,
    /// Corrections are to be below this part of the motion in a step.
    pub tolerance: f64,
    /// Iterations that a step may take.
    pub max_iterations: usize,
    /// Which tangent they use.
    pub tangent: Tangent,
    /// Penalty of the constraints.
    pub penalty: Penalty,
    /// Norm of the projections.
    pub projection: ProjectionMatrix,
    /// Solutions that a projection may take until rounding, and more while each halves what is left; without any there is no projection, and λ
    /// is λ* (of least norm).
    pub max_projections: usize,
    /// A violation of velocities, or of accelerations times h, that is still above this part of the velocities after the
    /// projection is an error. It is not at rounding where the mechanism passes a singular position.
    pub max_violation: f64,
}

impl Ali3p {
    /// The trapezoidal rule, tolerance 1e−10, at most 20 iterations that reuse the first tangent, scaled penalty, projections with
    /// the mass matrix.
    pub const DEFAULT: Self = Self {
        integrator: Implicit::TRAPEZOIDAL,
        tolerance: 1e-10,
        max_iterations: 20,
        tangent: Tangent::Reused,
        penalty: Penalty::DEFAULT,
        projection: ProjectionMatrix::Mass,
        max_projections: 3,
        max_violation: 1e-3,
    };

    /// Length of the scratch a step needs, at least; a constant for generated models.
    #[inline(always)]
    pub const fn scratch_len(dims: &Dims) -> usize {
        newton::scratch_len(dims)
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

    /// [`Ali3p::step`] that also fills the `record` of the step, see [`Record`].
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

    #[cfg_attr(not(feature = "small"), inline(always))]
    #[cfg_attr(feature = "small", inline(never))]
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
        if self.max_projections == 0 {
            refuse_projection_multipliers(&dims)?;
        }
        let formulas = self.integrator.formulas(h)?;
        let (mut moving, rows) = State::of(&dims, state)?.split();
        let mut pieces = Pieces::of(scratch, Self::scratch_len(&dims));
        // First, where the derivative of the step finds it.
        let leading = Leading::new(system, &dims, &mut pieces)?;
        let held = [pieces.next(dims.nu)?, pieces.next(dims.nu)?, pieces.next(dims.nu)?];
        let mut held = Held::new(inputs, system.holds(), held);
        let mut step = Step::begin(system, leading, formulas, &moving, rows.active, &mut held, &mut pieces)?;

        let weights = formulas.weights;
        let compliance = step.compliance()?;
        let left = self.penalty.write(&dims, &weights, rows.scale, rows.penalty, compliance)?;
        let settings = Iteration {
            tolerance: self.tolerance,
            max_iterations: self.max_iterations,
            tangent: self.tangent,
            fusible: true,
        };
        let (by_position, by_velocity) = (M::S::ONE / weights.position, M::S::ONE / weights.velocity);
        let (mut phi_left, mut psi_left) = (0.0, 0.0);
        let border = Border {
            left,
            exact: false,
            reducible: !rows.redundant,
            redundant: rows.redundant,
            scale: rows.scale,
        };
        step.iterate(&settings, border, |_, _, _, _, values| {
            // g = Φ/(βh²), g' = Ψ/(γh)
            let (phi, psi) = cut_mut("phi", values, holonomic_rows(&dims))?;
            (phi_left, psi_left) = (largest(phi), largest(psi));
            for value in phi {
                *value *= by_position;
            }
            for value in psi {
                *value *= by_velocity;
            }
            Ok(())
        })?;
        (step.statistics.phi, step.statistics.psi) = (phi_left, psi_left);
        let mut record = record.map(|record| Record::of(&dims, record)).transpose()?;
        if let Some(record) = &mut record {
            record.begin(&step, &rows);
        }

        if self.max_projections > 0 {
            let settings = Projection {
                matrix: self.projection,
                max_solutions: self.max_projections,
                max_violation: self.max_violation,
            };
            step.project(&settings, rows.scale, rows.redundant, record.as_mut())?;
        } else {
            if rows.redundant {
                step.least_norm_multipliers(ProjectionMatrix::Mass, rows.scale)?;
            }
            if let Some(record) = &mut record {
                copy(record.lambda_star, step.lambda);
            }
        }
        if let Some(record) = &mut record {
            record.end(&step);
        }
        step.finish(&mut moving)
    }

    #[inline(always)]
    fn check(&self) -> Result<(), StepError> {
        positive("the tolerance must be positive and finite", self.tolerance)?;
        positive("the largest violation must be positive and finite", self.max_violation)?;
        if self.max_iterations == 0 {
            let what = "the number of iterations must be positive";
            return Err(StepError::Setting { what, value: 0.0 });
        }
        Ok(())
    }
}

impl Default for Ali3p {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Implicit steps are second order.
#[inline(always)]
pub(crate) fn refuse_first_order_states(dims: &Dims) -> Result<(), StepError> {
    if dims.nx == 0 {
        Ok(())
    } else {
        let what = "implicit steps do not know first-order states yet: their number must be 0";
        Err(StepError::Setting { what, value: dims.nx as f64 })
    }
}

/// Objectives may read the multipliers of projections only where there are projections.
#[inline(always)]
pub(crate) fn refuse_projection_multipliers(dims: &Dims) -> Result<(), StepError> {
    if dims.n_projected == 0 {
        Ok(())
    } else {
        let what = "objectives name multipliers of projections (`projection_impulse`, `projection_force`), which only steps of `ali3p` with \
                    projections have: take `formulation: ali3p` with an implicit integrator and `projection: mass` or `tangent`";
        Err(StepError::Unsupported { what })
    }
}
