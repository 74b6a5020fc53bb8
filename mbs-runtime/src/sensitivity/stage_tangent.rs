//! The derivative of an implicit stage Y = base + α f(t, Y) in joint form, with Y = (z, v), f = (N(z) v, vd) and an α of coordinates, a, and one of
//! velocities, which most methods have equal:
//!
//! ```text
//! [ K          −a N       ] [z′]   [r_z]        K = 1 − a N(·) v        vd′ = F_θ θ′ + F_v v′,  θ′ = L z′
//! [ −α F_θ L   1 − α F_v  ] [v′] = [r_v]
//! ```
//!
//! Coordinates are eliminated, K block by block, and what is left is a dense matrix of velocities:
//!
//! ```text
//! S = 1 − α F_v − α F_θ L K⁻¹ a N        S v′ = r_v + α F_θ L K⁻¹ r_z        z′ = K⁻¹ (r_z + a N v′)
//! Sᵀ x_v = b_v + a Nᵀ K⁻ᵀ b_z            x_z = K⁻ᵀ (b_z + α Lᵀ F_θᵀ x_v)
//! ```
//!
//! F_θ and F_v are solutions with the factors of [`JointSensitivities`](super::JointSensitivities). Dynamics that complete their states have the
//! matrix of `independent_stage` instead.

use super::blocks::{Product, TransposedProduct};
use super::columns::Directions;
use super::derivatives::JointSensitivities;
use super::independent_stage::IndependentStage;
use super::joint_dynamics::JointDynamics;
use super::joint_values::JointValues;
use crate::error::{EvalError, StepError};
use crate::euler_parameters::{
    add_rates, add_rates_to_velocities, add_tangents_transposed, solve_rates, tangents,
};
use crate::linear::{add_scaled, lu};
use crate::pieces::{Pieces, cut, cut_mut};
use crate::scalar::Scalar;
use crate::system::{At, Dims, Quantity};

/// What a model found at an instant, with scratch: the list, the factors, memory of a column, the workspace.
pub(crate) struct Linear<'a, S> {
    pub(crate) values: &'a [S],
    pub(crate) factors: &'a [S],
    pub(crate) column: &'a mut [S],
    pub(crate) w: &'a mut [S],
}

/// S, factored, and memory.
pub(crate) struct StageMatrix<'a, S> {
    matrix: &'a mut [S],
    pivots: &'a mut [S],
    column: &'a mut [S],
    theta: &'a mut [S],
    solution: &'a mut [S],
    z: &'a mut [S],
    /// In place of all that, of dynamics that complete.
    independent: Option<IndependentStage<'a, S>>,
}

impl<'a, S: Scalar> StageMatrix<'a, S> {
    /// Length of its memory, for solutions of this many columns.
    #[inline(always)]
    pub(crate) const fn len(dims: &Dims, columns: usize) -> usize {
        if dims.n_choice > 0 {
            return IndependentStage::<S>::len(dims, columns);
        }
        let columns = if columns > dims.nv { columns } else { dims.nv };
        dims.nv * dims.nv + 2 * dims.nv + (2 * dims.nv + dims.joint_rows() + dims.nq) * columns
    }

    pub(crate) fn new(dims: &Dims, columns: usize, pieces: &mut Pieces<'a, S>) -> Result<Self, StepError> {
        if dims.n_choice > 0 {
            return Ok(Self {
                independent: Some(IndependentStage::new(dims, columns, pieces)?),
                ..Self::none()
            });
        }
        let columns = columns.max(dims.nv);
        Ok(Self {
            independent: None,
            matrix: pieces.next(dims.nv * dims.nv)?,
            pivots: pieces.next(dims.nv)?,
            column: pieces.next(dims.nv)?,
            theta: pieces.next(dims.nv * columns)?,
            solution: pieces.next((dims.nv + dims.joint_rows()) * columns)?,
            z: pieces.next(dims.nq * columns)?,
        })
    }

    /// Of methods that are explicit.
    pub(crate) fn none() -> Self {
        Self {
            independent: None,
            matrix: &mut [],
            pivots: &mut [],
            column: &mut [],
            theta: &mut [],
            solution: &mut [],
            z: &mut [],
        }
    }

    /// Factors S at an instant where the model was linearised.
    pub(crate) fn factor<D: JointDynamics<S = S>>(
        &mut self,
        system: &D,
        dims: &Dims,
        at: At<'_, S>,
        alpha: [S; 2],
        linear: Linear<'_, S>,
    ) -> Result<(), EvalError> {
        if let Some(independent) = &mut self.independent {
            return independent.factor(system, dims, at, alpha, linear);
        }
        let (nv, model, [a, alpha]) = (dims.nv, system.model(), alpha);
        let z = cut_mut("stage", self.z, dims.nq * nv)?.0;
        let theta = cut_mut("stage", self.theta, nv * nv)?.0;
        let solution = cut_mut("stage", self.solution, (nv + dims.joint_rows()) * nv)?.0;
        // v′ = 1, z′ = K⁻¹ α N
        self.matrix.fill(S::ZERO);
        for one in self.matrix.iter_mut().step_by(nv + 1) {
            *one = S::ONE;
        }
        z.fill(S::ZERO);
        add_rates(system, at.z, a, nv, self.matrix, z)?;
        solve_rates(system, at.v, a, nv, z)?;
        tangents(system, at.z, nv, z, theta)?;
        solution.fill(S::ZERO);
        let places = model.joint_places();
        let x = [&*theta, self.matrix, &[], &[]];
        let mut product = Product { columns: nv, x, directions: Directions::Each, y: solution };
        JointValues::of(&places, linear.values)?.read_state(dims, &places, &mut product)?;
        model.joint_solve_many(linear.factors, nv, linear.w, linear.column, solution)?;
        // By columns here, by rows there.
        for (j, column) in self.matrix.chunks_exact_mut(nv.max(1)).enumerate() {
            for (entry, row) in column.iter_mut().zip(solution.chunks_exact(nv.max(1))) {
                *entry -= alpha * row.get(j).copied().unwrap_or(S::ZERO);
            }
        }
        lu::factor(nv, self.matrix, self.pivots)
            .map_err(|index| EvalError::SingularLeading { quantity: Quantity::Velocity, index })
    }

    /// (z, v) = (1 − α f_y)⁻¹ ((z, v) + α f_ρ ρ′), of columns, with directions ρ′ or none.
    #[allow(clippy::too_many_arguments, reason = "an instant, its derivatives and a right-hand side")]
    pub(crate) fn solve<D: JointDynamics<S = S>>(
        &mut self,
        system: &D,
        dims: &Dims,
        at: At<'_, S>,
        alpha: [S; 2],
        linear: Linear<'_, S>,
        columns: usize,
        directions: Option<Directions<'_, S>>,
        z: &mut [S],
        v: &mut [S],
    ) -> Result<(), EvalError> {
        if let Some(independent) = &mut self.independent {
            return independent.solve(system, dims, at, alpha, linear, columns, directions, z, v);
        }
        let (nv, model, [a, alpha]) = (dims.nv, system.model(), alpha);
        let theta = cut_mut("stage", self.theta, nv * columns)?.0;
        let solution = cut_mut("stage", self.solution, (nv + dims.joint_rows()) * columns)?.0;
        solve_rates(system, at.v, a, columns, z)?;
        tangents(system, at.z, columns, z, theta)?;
        solution.fill(S::ZERO);
        let places = model.joint_places();
        let blocks = JointValues::of(&places, linear.values)?;
        let x = [&*theta, &[], &[], &[]];
        let along = directions.unwrap_or(Directions::Each);
        let mut product = Product { columns, x, directions: along, y: solution };
        blocks.read_positions(dims, &places, &mut product)?;
        if directions.is_some() {
            blocks.read_parameters(dims, &places, &mut product)?;
        }
        model.joint_solve_many(linear.factors, columns, linear.w, linear.column, solution)?;
        add_scaled(v, alpha, cut("stage", solution, nv * columns)?.0);
        self.each(columns, v, |n, factors, pivots, x| lu::solve(n, factors, pivots, x));
        let change = cut_mut("stage", self.z, dims.nq * columns)?.0;
        change.fill(S::ZERO);
        add_rates(system, at.z, a, columns, v, change)?;
        solve_rates(system, at.v, a, columns, change)?;
        add_scaled(z, S::ONE, change);
        Ok(())
    }

    /// (z, v) = (1 − α f_y)⁻ᵀ (z, v), of columns, and ρ̄ = ρ̄ + α f_ρᵀ (z, v).
    #[allow(clippy::too_many_arguments, reason = "an instant, its derivatives and weights")]
    pub(crate) fn solve_transposed<D: JointDynamics<S = S>>(
        &mut self,
        system: &D,
        dims: &Dims,
        at: At<'_, S>,
        alpha: [S; 2],
        linear: Linear<'_, S>,
        columns: usize,
        z: &mut [S],
        v: &mut [S],
        rho: &mut [S],
    ) -> Result<(), EvalError> {
        if let Some(independent) = &mut self.independent {
            return independent.solve_transposed(system, dims, at, alpha, linear, columns, z, v, rho);
        }
        let (nv, model, [a, alpha]) = (dims.nv, system.model(), alpha);
        solve_rates(system, at.v, -a, columns, z)?;
        add_rates_to_velocities(system, at.z, a, columns, z, v)?;
        self.each(columns, v, |n, factors, pivots, x| lu::solve_transposed(n, factors, pivots, x));
        let theta = cut_mut("stage", self.theta, nv * columns)?.0;
        let solution = cut_mut("stage", self.solution, (nv + dims.joint_rows()) * columns)?.0;
        let change = cut_mut("stage", self.z, dims.nq * columns)?.0;
        solution.fill(S::ZERO);
        add_scaled(solution, alpha, v);
        model.joint_solve_many(linear.factors, columns, linear.w, linear.column, solution)?;
        theta.fill(S::ZERO);
        let places = model.joint_places();
        let blocks = JointValues::of(&places, linear.values)?;
        let x: [&mut [S]; 4] = [theta, &mut [], &mut [], &mut []];
        let mut product = TransposedProduct { columns, y: solution, x, rho };
        blocks.read_positions(dims, &places, &mut product)?;
        blocks.read_parameters(dims, &places, &mut product)?;
        change.fill(S::ZERO);
        add_tangents_transposed(system, at.z, columns, theta, change)?;
        solve_rates(system, at.v, -a, columns, change)?;
        add_scaled(z, S::ONE, change);
        Ok(())
    }

    /// Solves for every column.
    fn each(&mut self, columns: usize, x: &mut [S], solve: impl Fn(usize, &[S], &[S], &mut [S])) {
        let n = self.column.len();
        for k in 0..columns {
            for (to, from) in self.column.iter_mut().zip(x.iter().skip(k).step_by(columns)) {
                *to = *from;
            }
            solve(n, self.matrix, self.pivots, self.column);
            for (to, from) in x.iter_mut().skip(k).step_by(columns).zip(self.column.iter()) {
                *to = *from;
            }
        }
    }
}

/// The same with the lists of the model: what an iteration needs.
pub(crate) struct StageTangent<'a, S> {
    pub(crate) matrix: StageMatrix<'a, S>,
    zd: &'a mut [S],
    vd: &'a mut [S],
    pub(crate) lambda: &'a mut [S],
    values: &'a mut [S],
    factors: &'a mut [S],
    column: &'a mut [S],
}

impl<'a, S: Scalar> StageTangent<'a, S> {
    /// Length of its memory, for solutions of this many columns.
    #[inline(always)]
    pub(crate) const fn len(dims: &Dims, columns: usize) -> usize {
        let lists = dims.sensitivity.joint + dims.sensitivity.joint_factors;
        let own = dims.nq + 2 * dims.nv + 2 * dims.joint_rows();
        StageMatrix::<S>::len(dims, columns) + lists + own
    }

    pub(crate) fn new(dims: &Dims, columns: usize, pieces: &mut Pieces<'a, S>) -> Result<Self, StepError> {
        Ok(Self {
            matrix: StageMatrix::new(dims, columns, pieces)?,
            zd: pieces.next(dims.nq)?,
            vd: pieces.next(dims.nv)?,
            lambda: pieces.next(dims.joint_rows())?,
            values: pieces.next(dims.sensitivity.joint)?,
            factors: pieces.next(dims.sensitivity.joint_factors)?,
            column: pieces.next(dims.nv + dims.joint_rows())?,
        })
    }

    /// Of methods that are explicit.
    pub(crate) fn none() -> Self {
        Self {
            matrix: StageMatrix::none(),
            zd: &mut [],
            vd: &mut [],
            lambda: &mut [],
            values: &mut [],
            factors: &mut [],
            column: &mut [],
        }
    }

    /// Linearises the model at an instant and factors S.
    pub(crate) fn linearise<D: JointDynamics<S = S>>(
        &mut self,
        system: &D,
        dims: &Dims,
        at: At<'_, S>,
        alpha: [S; 2],
        w: &mut [S],
    ) -> Result<(), EvalError> {
        let Self { matrix, zd, vd, lambda, values, factors, column } = self;
        system.accelerate(at, w, zd, vd, lambda)?;
        system.model().joint_linearise(at, vd, lambda, system.stabilisation(), w, values, factors)?;
        matrix.factor(system, dims, at, alpha, Linear { values, factors, column, w })
    }

    /// (z, v) = (1 − α f_y)⁻¹ (z, v), with f_y of where it was linearised last.
    #[allow(clippy::too_many_arguments, reason = "an instant and a right-hand side")]
    pub(crate) fn solve<D: JointDynamics<S = S>>(
        &mut self,
        system: &D,
        dims: &Dims,
        at: At<'_, S>,
        alpha: [S; 2],
        w: &mut [S],
        z: &mut [S],
        v: &mut [S],
    ) -> Result<(), EvalError> {
        let Self { matrix, values, factors, column, .. } = self;
        matrix.solve(system, dims, at, alpha, Linear { values, factors, column, w }, 1, None, z, v)
    }
}
