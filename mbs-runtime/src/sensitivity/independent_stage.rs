//! The derivative of an implicit stage in independent coordinates: Y = base + α f(t, C(Y)), where C completes a state, see
//! [`MatrixR`](crate::MatrixR), and α is diagonal, of coordinates and of velocities.
//!
//! C depends on the integrated entries x = X y alone, C_y = R X. With ŷ′ the change of the completed state,
//!
//! ```text
//! y′ = r + α (f_y ŷ′ + f_ρ ρ′)        ŷ′ = R x′ + C_ρ ρ′        g = (f_y C_ρ + f_ρ) ρ′
//! (1 − X α f_y R) x′ = X (r + α g)    y′ = r + α (f_y R x′ + g)
//! (1 − X α f_y R)ᵀ x̄ = X ȳ            ρ̄ = ρ̄ + (f_y C_ρ + f_ρ)ᵀ α Xᵀ x̄
//! ```
//!
//! so that a dense matrix of the size of x is left: X f_y R is the derivative of the motion in independent coordinates.

use super::blocks::{Product, TransposedProduct};
use super::columns::Directions;
use super::completion::Completion;
use super::derivatives::JointSensitivities;
use super::joint_dynamics::JointDynamics;
use super::joint_values::JointValues;
use super::stage_tangent::Linear;
use crate::error::{EvalError, StepError};
use crate::euler_parameters::{add_rates_transposed, add_tangents_transposed, rates, tangents};
use crate::formulation::independent::Choice;
use crate::formulation::matrix_r::integrated;
use crate::linear::{add_scaled, copy, lu};
use crate::pieces::{Pieces, cut, cut_mut};
use crate::scalar::Scalar;
use crate::system::{At, Dims, Quantity};

/// 1 − X α f_y R, factored, and memory.
pub(crate) struct IndependentStage<'a, S> {
    completion: Completion<'a, S>,
    matrix: &'a mut [S],
    pivots: &'a mut [S],
    column: &'a mut [S],
    /// f_y R, a row for each entry of y.
    moved: &'a mut [S],
    /// Columns of changes of y, and of its rate.
    changes: &'a mut [S],
    rates: &'a mut [S],
    theta: &'a mut [S],
    solution: &'a mut [S],
}

/// Entries of y.
const fn entries(dims: &Dims) -> usize {
    dims.nq + dims.nv
}

/// As many columns as solutions have, or R.
const fn wide(dims: &Dims, columns: usize) -> usize {
    if columns > entries(dims) { columns } else { entries(dims) }
}

impl<'a, S: Scalar> IndependentStage<'a, S> {
    /// Length of its memory, for solutions of this many columns.
    #[inline(always)]
    pub(crate) const fn len(dims: &Dims, columns: usize) -> usize {
        let (n, wide) = (entries(dims), wide(dims, columns));
        let columns = (2 * n + 2 * dims.nv + dims.joint_rows()) * wide;
        Completion::<S>::len(dims, wide) + 2 * n * n + 2 * n + columns
    }

    pub(crate) fn new(dims: &Dims, columns: usize, pieces: &mut Pieces<'a, S>) -> Result<Self, StepError> {
        let (n, wide) = (entries(dims), wide(dims, columns));
        Ok(Self {
            completion: Completion::new(dims, wide, pieces)?,
            matrix: pieces.next(n * n)?,
            pivots: pieces.next(n)?,
            column: pieces.next(n)?,
            moved: pieces.next(n * n)?,
            changes: pieces.next(n * wide)?,
            rates: pieces.next(n * wide)?,
            theta: pieces.next(dims.nv * wide)?,
            solution: pieces.next((dims.nv + dims.joint_rows()) * wide)?,
        })
    }

    /// Factors the matrix at a completed state where the model was linearised.
    pub(crate) fn factor<D: JointDynamics<S = S>>(
        &mut self,
        system: &D,
        dims: &Dims,
        at: At<'_, S>,
        alpha: [S; 2],
        mut linear: Linear<'_, S>,
    ) -> Result<(), EvalError> {
        let choice = Choice::of(dims, system.choice())?;
        let places = || integrated(system, choice);
        let n = places().count();
        self.completion.evaluate(system, dims, at, linear.w)?;
        // R
        let (z, v) = parts(dims, n, self.changes)?;
        z.fill(S::ZERO);
        v.fill(S::ZERO);
        for (k, entry) in places().enumerate() {
            let place = match entry.checked_sub(dims.nq) {
                None => z.get_mut(entry * n + k),
                Some(velocity) => v.get_mut(velocity * n + k),
            };
            if let Some(place) = place {
                *place = S::ONE;
            }
        }
        self.completion.apply(system, dims, n, at.z, z, v, None)?;
        self.apply_rates(system, dims, at, &mut linear, n, None)?;
        copy(self.moved, self.rates);
        for (k, column) in self.matrix.chunks_exact_mut(n.max(1)).take(n).enumerate() {
            for (i, (to, entry)) in column.iter_mut().zip(places()).enumerate() {
                let moved = self.moved.get(entry * n + k).copied().unwrap_or(S::ZERO);
                *to = if i == k { S::ONE } else { S::ZERO } - of_place(dims, alpha, entry) * moved;
            }
        }
        let matrix = cut_mut("stage", self.matrix, n * n)?.0;
        lu::factor(n, matrix, self.pivots).map_err(|column| {
            let entry = places().nth(column).unwrap_or(0);
            match entry.checked_sub(dims.nq) {
                None => EvalError::SingularLeading { quantity: Quantity::Coordinate, index: entry },
                Some(index) => EvalError::SingularLeading { quantity: Quantity::Velocity, index },
            }
        })
    }

    /// (z, v) = y′ from (z, v) = r, of columns, with directions ρ′ at the state where it was factored, or none.
    #[allow(clippy::too_many_arguments, reason = "an instant, its derivatives and a right-hand side")]
    pub(crate) fn solve<D: JointDynamics<S = S>>(
        &mut self,
        system: &D,
        dims: &Dims,
        at: At<'_, S>,
        alpha: [S; 2],
        mut linear: Linear<'_, S>,
        columns: usize,
        directions: Option<Directions<'_, S>>,
        z: &mut [S],
        v: &mut [S],
    ) -> Result<(), EvalError> {
        let choice = Choice::of(dims, system.choice())?;
        let places = || integrated(system, choice);
        let n = places().count();
        if directions.is_some() {
            // r + α g
            let (by_z, by_v) = parts(dims, columns, self.changes)?;
            by_z.fill(S::ZERO);
            by_v.fill(S::ZERO);
            self.completion.apply(system, dims, columns, at.z, by_z, by_v, directions)?;
            self.apply_rates(system, dims, at, &mut linear, columns, directions)?;
            let (by_z, by_v) = parts(dims, columns, self.rates)?;
            add_scaled(z, alpha[0], by_z);
            add_scaled(v, alpha[1], by_v);
        }
        let (factors, column) = (cut("stage", self.matrix, n * n)?.0, cut_mut("stage", self.column, n)?.0);
        for k in 0..columns {
            for (to, entry) in column.iter_mut().zip(places()) {
                *to = of_entry(dims, columns, z, v, entry, k);
            }
            lu::solve(n, factors, self.pivots, column);
            let rows = z.chunks_exact_mut(columns.max(1)).chain(v.chunks_exact_mut(columns.max(1)));
            for (entry, (row, moved)) in rows.zip(self.moved.chunks_exact(n.max(1))).enumerate() {
                let change = moved.iter().zip(column.iter()).fold(S::ZERO, |sum, (&a, &x)| sum + a * x);
                if let Some(to) = row.get_mut(k) {
                    *to += of_place(dims, alpha, entry) * change;
                }
            }
        }
        Ok(())
    }

    /// (z, v) = Xᵀ x̄ from weights (z, v) of integrated entries, of columns, and ρ̄.
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
        let choice = Choice::of(dims, system.choice())?;
        let places = || integrated(system, choice);
        let n = places().count();
        let (factors, column) = (cut("stage", self.matrix, n * n)?.0, cut_mut("stage", self.column, n)?.0);
        let (rates_z, rates_v) = parts(dims, columns, self.rates)?;
        for rates in [&mut *rates_z, rates_v] {
            rates.fill(S::ZERO);
        }
        for k in 0..columns {
            for (to, entry) in column.iter_mut().zip(places()) {
                *to = of_entry(dims, columns, z, v, entry, k);
            }
            lu::solve_transposed(n, factors, self.pivots, column);
            for (&x, entry) in column.iter().zip(places()) {
                let (to, rate) = match entry.checked_sub(dims.nq) {
                    None => (z.get_mut(entry * columns + k), rates_z.get_mut(entry * columns + k)),
                    Some(j) => (v.get_mut(j * columns + k), rates_v.get_mut(j * columns + k)),
                };
                if let (Some(to), Some(rate)) = (to, rate) {
                    (*to, *rate) = (x, of_place(dims, alpha, entry) * x);
                }
            }
        }
        // f_ρᵀ, f_yᵀ, C_ρᵀ
        let model = system.model();
        let theta = cut_mut("stage", self.theta, dims.nv * columns)?.0;
        let solution = cut_mut("stage", self.solution, (dims.nv + dims.joint_rows()) * columns)?.0;
        let (z_bar, v_bar) = parts(dims, columns, self.changes)?;
        for part in [&mut *theta, solution, z_bar, v_bar] {
            part.fill(S::ZERO);
        }
        copy(solution, rates_v);
        model.joint_solve_many(linear.factors, columns, linear.w, linear.column, solution)?;
        let places = model.joint_places();
        let x: [&mut [S]; 4] = [theta, v_bar, &mut [], &mut []];
        let mut product = TransposedProduct { columns, y: solution, x, rho };
        JointValues::of(&places, linear.values)?.read(dims, &places, &mut product)?;
        add_tangents_transposed(system, at.z, columns, theta, z_bar)?;
        add_rates_transposed(system, at.z, at.v, columns, rates_z, z_bar, v_bar)?;
        self.completion.apply_transposed(system, dims, columns, at.z, z_bar, v_bar, rho)
    }

    /// Into the rates: f_y times the changes, plus f_ρ ρ′.
    fn apply_rates<D: JointDynamics<S = S>>(
        &mut self,
        system: &D,
        dims: &Dims,
        at: At<'_, S>,
        linear: &mut Linear<'_, S>,
        columns: usize,
        directions: Option<Directions<'_, S>>,
    ) -> Result<(), EvalError> {
        let model = system.model();
        let theta = cut_mut("stage", self.theta, dims.nv * columns)?.0;
        let solution = cut_mut("stage", self.solution, (dims.nv + dims.joint_rows()) * columns)?.0;
        let (z, v) = parts(dims, columns, self.changes)?;
        let (zd, vd) = parts(dims, columns, self.rates)?;
        rates(system, at.z, at.v, columns, z, v, zd)?;
        tangents(system, at.z, columns, z, theta)?;
        solution.fill(S::ZERO);
        let places = model.joint_places();
        let values = JointValues::of(&places, linear.values)?;
        let along = directions.unwrap_or(Directions::Each);
        let mut product = Product { columns, x: [&*theta, v, &[], &[]], directions: along, y: solution };
        values.read_state(dims, &places, &mut product)?;
        if directions.is_some() {
            values.read_parameters(dims, &places, &mut product)?;
        }
        model.joint_solve_many(linear.factors, columns, linear.w, linear.column, solution)?;
        copy(vd, solution);
        Ok(())
    }
}

/// Rows of z and of v, of this many columns.
fn parts<'s, S>(
    dims: &Dims,
    columns: usize,
    x: &'s mut [S],
) -> Result<(&'s mut [S], &'s mut [S]), EvalError> {
    let (z, rest) = cut_mut("stage", x, dims.nq * columns)?;
    Ok((z, cut_mut("stage", rest, dims.nv * columns)?.0))
}

/// α of an entry of y.
fn of_place<S: Scalar>(dims: &Dims, [of_z, of_v]: [S; 2], entry: usize) -> S {
    if entry < dims.nq { of_z } else { of_v }
}

/// The entry of y in a column.
fn of_entry<S: Scalar>(dims: &Dims, columns: usize, z: &[S], v: &[S], entry: usize, k: usize) -> S {
    let value = match entry.checked_sub(dims.nq) {
        None => z.get(entry * columns + k),
        Some(velocity) => v.get(velocity * columns + k),
    };
    value.copied().unwrap_or(S::ZERO)
}
