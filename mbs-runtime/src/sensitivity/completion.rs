//! The derivative of what follows from independent coordinates and velocities, see [`MatrixR`](crate::MatrixR).
//!
//! With U the directions that are unknown in the solution for positions, D the velocities that follow, and rows that serve alone,
//!
//! ```text
//! [ Φ_v,U ]        [ −Φ_v θ′ − Φ_ρ ρ′ ]                                   θ′ of the other directions
//! [ φ_U   ] θ′_U = [ φ(p0) z′         ]
//! (Φ_v; A)_D v′_D = −(Φ_v; A) v′ − (Φd; Ψ)_θ θ′ − (Φd; Ψ)_ρ ρ′            v′ of the other velocities
//! ```
//!
//! at the completed state: what the guesses were has no part in it. In the symbols of matrix R, z′ = R z^i′ − S Φ_ρ.

use super::blocks::{Product, Reader, TransposedProduct};
use super::columns::Directions;
use super::derivatives::{JointPlaces, JointSensitivities};
use super::joint_dynamics::JointDynamics;
use super::joint_values::{THETA, V};
use super::row_lists::RowLists;
use crate::constrained::by_columns;
use crate::error::{EvalError, IndependentFailure, StepError};
use crate::euler_parameters::{
    add_tangents_transposed, angular, blocks, column, parameters, put_column, read, tangents,
    velocity_columns,
};
use crate::formulation::independent::{Choice, Column};
use crate::formulation::matrix_r::{held, moves, position_matrix, velocity_matrix};
use crate::linear::lu;
use crate::pieces::{Pieces, cut, cut_mut};
use crate::scalar::Scalar;
use crate::system::{At, Dims, Quantity, System};

/// Memory for it.
pub(crate) struct Completion<'a, S> {
    rows: RowLists<'a, S>,
    /// (Φ_v; A), by columns.
    jacobian: &'a mut [S],
    positions: &'a mut [S],
    velocities: &'a mut [S],
    pivots: [&'a mut [S]; 2],
    theta: &'a mut [S],
    /// Of all rows, and of those that serve.
    all: &'a mut [S],
    b: &'a mut [S],
    column: &'a mut [S],
    /// Of the matrices of positions and of velocities where it was evaluated.
    sizes: [usize; 2],
}

impl<'a, S: Scalar> Completion<'a, S> {
    /// Its length, for this many columns.
    #[inline(always)]
    pub(crate) const fn len(dims: &Dims, columns: usize) -> usize {
        let (nv, rows) = (dims.nv, dims.joint_rows());
        RowLists::<S>::len(dims) + rows * nv + 2 * nv * nv + 3 * nv + (2 * nv + rows) * columns
    }

    /// Takes its memory from `pieces`.
    pub(crate) fn new(dims: &Dims, columns: usize, pieces: &mut Pieces<'a, S>) -> Result<Self, StepError> {
        let (nv, rows) = (dims.nv, dims.joint_rows());
        Ok(Self {
            rows: RowLists::new(dims, pieces)?,
            jacobian: pieces.next(rows * nv)?,
            positions: pieces.next(nv * nv)?,
            velocities: pieces.next(nv * nv)?,
            pivots: [pieces.next(nv)?, pieces.next(nv)?],
            theta: pieces.next(nv * columns)?,
            all: pieces.next(rows * columns)?,
            b: pieces.next(nv * columns)?,
            column: pieces.next(nv)?,
            sizes: [0; 2],
        })
    }

    /// For dynamics that complete nothing.
    pub(crate) fn none() -> Self {
        Self {
            rows: RowLists::none(),
            jacobian: &mut [],
            positions: &mut [],
            velocities: &mut [],
            pivots: [&mut [], &mut []],
            theta: &mut [],
            all: &mut [],
            b: &mut [],
            column: &mut [],
            sizes: [0; 2],
        }
    }

    /// Lists and factored matrices at a completed state.
    pub(crate) fn evaluate<D: JointDynamics<S = S>>(
        &mut self,
        system: &D,
        dims: &Dims,
        at: At<'_, S>,
        w: &mut [S],
    ) -> Result<(), EvalError> {
        let choice = Choice::of(dims, system.choice())?;
        let places = system.model().joint_places();
        self.rows.evaluate(system.model(), dims, &places, at, w)?;
        self.jacobian.fill(S::ZERO);
        for (&(k, j), &value) in places.rows.iter().zip(self.rows.jacobian.iter()) {
            if let Some(entry) = self.jacobian.get_mut(j as usize * dims.joint_rows() + k as usize) {
                *entry = value;
            }
        }
        let [of_positions, of_velocities] = &mut self.pivots;
        let n = position_matrix(system, choice, at.z, self.jacobian, self.positions)?;
        let m = velocity_matrix(choice, dims, self.jacobian, self.velocities)?;
        for (n, matrix, pivots) in
            [(n, &mut *self.positions, of_positions), (m, &mut *self.velocities, of_velocities)]
        {
            lu::factor(n, cut_mut("matrix", matrix, n * n)?.0, pivots).map_err(|index| {
                let failure = IndependentFailure::Lost;
                EvalError::Independent { failure, quantity: Quantity::Velocity, index }
            })?;
        }
        self.sizes = [n, m];
        Ok(())
    }

    /// Takes the derivatives of z and v through the completion that led to the instant `at`.
    #[allow(clippy::too_many_arguments, reason = "a completed state and its derivatives")]
    pub(crate) fn differentiate<D: JointDynamics<S = S>>(
        &mut self,
        system: &D,
        dims: &Dims,
        at: At<'_, S>,
        z_rho: &mut [S],
        v_rho: &mut [S],
        directions: Directions<'_, S>,
        w: &mut [S],
    ) -> Result<(), EvalError> {
        self.evaluate(system, dims, at, w)?;
        self.apply(system, dims, dims.sensitivity.parameters, at.z, z_rho, v_rho, Some(directions))
    }

    /// The same where it was evaluated, for any number of columns; without directions parameters do not change.
    #[allow(clippy::too_many_arguments, reason = "a completed state and its derivatives")]
    pub(crate) fn apply<D: JointDynamics<S = S>>(
        &mut self,
        system: &D,
        dims: &Dims,
        columns: usize,
        z: &[S],
        z_rho: &mut [S],
        v_rho: &mut [S],
        directions: Option<Directions<'_, S>>,
    ) -> Result<(), EvalError> {
        let (choice, [n, m]) = (Choice::of(dims, system.choice())?, self.sizes);
        let places = system.model().joint_places();
        let (changes, directions) = (directions.is_some(), directions.unwrap_or(Directions::Each));
        let theta = cut_mut("theta", self.theta, dims.nv * columns)?.0;
        let all = cut_mut("rows", self.all, dims.joint_rows() * columns)?.0;
        let unknowns =
            || velocity_columns(system).filter(|&(j, _, block)| moves(choice, j, block)).map(|(j, ..)| j);
        let following = || (0..dims.nv).filter(|&j| choice.column(j) != Column::Independent);

        tangents(system, z, columns, z_rho, theta)?;
        zero_rows(unknowns(), columns, theta);
        all.fill(S::ZERO);
        let mut reader = Product { columns, x: [&*theta, &[], &[], &[]], directions, y: all };
        read_positions(&self.rows, &places, changes, &mut reader)?;
        let serving = (0..dims.n_holonomic).filter(|&k| choice.serves(k));
        let count = gather(serving, columns, all, self.b);
        for (row, (i, _, direction)) in held(system, choice).enumerate() {
            for k in 0..columns {
                let phi = angular(choice.reference(i), column("z'", z_rho, i, k, columns)?);
                let value = phi.get(direction).copied().unwrap_or(S::ZERO);
                put_column("b", self.b, count + row, k, columns, [value])?;
            }
        }
        solve(n, columns, self.positions, self.pivots[0], self.column, self.b, lu::solve)?;
        scatter(unknowns(), columns, self.b, theta);
        follow_positions(system, choice, z, columns, theta, z_rho)?;

        zero_rows(following(), columns, v_rho);
        all.fill(S::ZERO);
        let mut reader = Product { columns, x: [&*theta, v_rho, &[], &[]], directions, y: all };
        read_velocities(&self.rows, &places, changes, &mut reader)?;
        gather((0..dims.joint_rows()).filter(|&k| choice.serves(k)), columns, all, self.b);
        solve(m, columns, self.velocities, self.pivots[1], self.column, self.b, lu::solve)?;
        scatter(following(), columns, self.b, v_rho);
        Ok(())
    }

    /// The transpose of [`Completion::differentiate`]: takes weights of z and v after the completion to those before it, and adds those of ρ.
    #[allow(clippy::too_many_arguments, reason = "a completed state and its weights")]
    pub(crate) fn transpose<D: JointDynamics<S = S>>(
        &mut self,
        system: &D,
        dims: &Dims,
        columns: usize,
        at: At<'_, S>,
        z_bar: &mut [S],
        v_bar: &mut [S],
        rho: &mut [S],
        w: &mut [S],
    ) -> Result<(), EvalError> {
        self.evaluate(system, dims, at, w)?;
        self.apply_transposed(system, dims, columns, at.z, z_bar, v_bar, rho)
    }

    /// The same where it was evaluated.
    #[allow(clippy::too_many_arguments, reason = "a completed state and its weights")]
    pub(crate) fn apply_transposed<D: JointDynamics<S = S>>(
        &mut self,
        system: &D,
        dims: &Dims,
        columns: usize,
        z: &[S],
        z_bar: &mut [S],
        v_bar: &mut [S],
        rho: &mut [S],
    ) -> Result<(), EvalError> {
        let (choice, [n, m]) = (Choice::of(dims, system.choice())?, self.sizes);
        let places = system.model().joint_places();
        let theta = cut_mut("theta", self.theta, dims.nv * columns)?.0;
        let all = cut_mut("rows", self.all, dims.joint_rows() * columns)?.0;
        let unknowns =
            || velocity_columns(system).filter(|&(j, _, block)| moves(choice, j, block)).map(|(j, ..)| j);
        let following = || (0..dims.nv).filter(|&j| choice.column(j) != Column::Independent);

        gather(following(), columns, v_bar, self.b);
        zero_rows(following(), columns, v_bar);
        solve(m, columns, self.velocities, self.pivots[1], self.column, self.b, lu::solve_transposed)?;
        all.fill(S::ZERO);
        scatter((0..dims.joint_rows()).filter(|&k| choice.serves(k)), columns, self.b, all);
        theta.fill(S::ZERO);
        let x: [&mut [S]; 4] = [theta, v_bar, &mut [], &mut []];
        read_velocities(&self.rows, &places, true, &mut TransposedProduct { columns, y: all, x, rho })?;
        zero_rows(following(), columns, v_bar);

        weigh_positions(system, choice, z, columns, theta, z_bar)?;
        gather(unknowns(), columns, theta, self.b);
        zero_rows(unknowns(), columns, theta);
        solve(n, columns, self.positions, self.pivots[0], self.column, self.b, lu::solve_transposed)?;
        all.fill(S::ZERO);
        let serving = || (0..dims.n_holonomic).filter(|&k| choice.serves(k));
        scatter(serving(), columns, self.b, all);
        let count = serving().count();
        for (row, (i, _, direction)) in held(system, choice).enumerate() {
            for k in 0..columns {
                // (2 Ḡ(p0))ᵀ
                let [value] = column("b", self.b, count + row, k, columns)?;
                let turn = [0, 1, 2].map(|d| if d == direction { S::from_f64(4.0) * value } else { S::ZERO });
                let mut to: [S; 4] = column("z'", z_bar, i, k, columns)?;
                for (to, part) in to.iter_mut().zip(parameters(choice.reference(i), turn)) {
                    *to += part;
                }
                put_column("z'", z_bar, i, k, columns, to)?;
            }
        }
        let x: [&mut [S]; 4] = [theta, &mut [], &mut [], &mut []];
        read_positions(&self.rows, &places, true, &mut TransposedProduct { columns, y: all, x, rho })?;
        zero_rows(unknowns(), columns, theta);
        add_tangents_transposed(system, z, columns, theta, z_bar)
    }
}

/// −(Φ_v θ′ + Φ_ρ ρ′), the last where parameters change; for nonholonomic rows it means nothing.
fn read_positions<S: Scalar>(
    rows: &RowLists<'_, S>,
    places: &JointPlaces<'_>,
    parameters: bool,
    reader: &mut impl Reader<S>,
) -> Result<(), EvalError> {
    reader.block(0, places.rows, (THETA, -S::ONE, rows.jacobian))?;
    if parameters { reader.parameters(0, places.row, -S::ONE, rows.phi_rho) } else { Ok(()) }
}

/// −((Φd; Ψ)_θ θ′ + (Φ_v; A) v′ + (Φd; Ψ)_ρ ρ′), likewise
fn read_velocities<S: Scalar>(
    rows: &RowLists<'_, S>,
    places: &JointPlaces<'_>,
    parameters: bool,
    reader: &mut impl Reader<S>,
) -> Result<(), EvalError> {
    let terms = [(THETA, -S::ONE, &*rows.rates_theta), (V, -S::ONE, &*rows.jacobian)];
    reader.blocks(0, places.rows, terms)?;
    if parameters { reader.parameters(0, places.row, -S::ONE, rows.rates_rho) } else { Ok(()) }
}

/// z′ of what moved: θ′, or N θ′.
fn follow_positions<M: System>(
    system: &M,
    choice: Choice<'_, M::S>,
    z: &[M::S],
    columns: usize,
    theta: &[M::S],
    z_rho: &mut [M::S],
) -> Result<(), EvalError> {
    for (j, i, block) in velocity_columns(system).filter(|&(j, _, block)| moves(choice, j, block)) {
        for k in (0..columns).filter(|_| block.is_none()) {
            put_column("z'", z_rho, i, k, columns, column::<1, _>("theta", theta, j, k, columns)?)?;
        }
    }
    for (i, first) in blocks(system).filter(|&(_, first)| choice.moves_block(first)) {
        for k in 0..columns {
            let turned = parameters(read("z", z, i)?, column("theta", theta, first, k, columns)?);
            put_column("z'", z_rho, i, k, columns, turned)?;
        }
    }
    Ok(())
}

/// The transpose of [`follow_positions`]: adds to θ̄, and leaves no weight on z′ of what moved.
fn weigh_positions<M: System>(
    system: &M,
    choice: Choice<'_, M::S>,
    z: &[M::S],
    columns: usize,
    theta: &mut [M::S],
    z_bar: &mut [M::S],
) -> Result<(), EvalError> {
    let zero = M::S::ZERO;
    for (j, i, block) in velocity_columns(system).filter(|&(j, _, block)| moves(choice, j, block)) {
        for k in (0..columns).filter(|_| block.is_none()) {
            let [bar] = column("z'", z_bar, i, k, columns)?;
            let [sum] = column("theta", theta, j, k, columns)?;
            put_column("theta", theta, j, k, columns, [sum + bar])?;
            put_column("z'", z_bar, i, k, columns, [zero])?;
        }
    }
    for (i, first) in blocks(system).filter(|&(_, first)| choice.moves_block(first)) {
        let p: [M::S; 4] = read("z", z, i)?;
        // Nᵀ = Ḡ/2, and 2 Ḡ/|p|² of unit Euler parameters.
        let quarter = M::S::from_f64(0.25);
        for k in 0..columns {
            let bar = angular(p, column("z'", z_bar, i, k, columns)?);
            let mut sum: [M::S; 3] = column("theta", theta, first, k, columns)?;
            for (sum, bar) in sum.iter_mut().zip(bar) {
                *sum += quarter * bar;
            }
            put_column("theta", theta, first, k, columns, sum)?;
            put_column("z'", z_bar, i, k, columns, [zero; 4])?;
        }
    }
    Ok(())
}

/// Rows of a matrix side by side. Gives how many.
fn gather<S: Scalar>(rows: impl Iterator<Item = usize>, columns: usize, from: &[S], to: &mut [S]) -> usize {
    let mut count = 0;
    for (to, row) in to.chunks_exact_mut(columns.max(1)).zip(rows) {
        for (to, &from) in to.iter_mut().zip(from.get(row * columns..).unwrap_or_default()) {
            *to = from;
        }
        count += 1;
    }
    count
}

/// The transpose of [`gather`], into rows that are replaced.
fn scatter<S: Scalar>(rows: impl Iterator<Item = usize>, columns: usize, from: &[S], to: &mut [S]) {
    for (from, row) in from.chunks_exact(columns.max(1)).zip(rows) {
        for (to, &from) in to.get_mut(row * columns..).unwrap_or_default().iter_mut().zip(from) {
            *to = from;
        }
    }
}

fn zero_rows<S: Scalar>(rows: impl Iterator<Item = usize>, columns: usize, x: &mut [S]) {
    for row in rows {
        if let Some(x) = x.get_mut(row * columns..(row + 1) * columns) {
            x.fill(S::ZERO);
        }
    }
}

/// Solves for all columns of the first `n` rows, in place.
fn solve<S: Scalar>(
    n: usize,
    columns: usize,
    factors: &[S],
    pivots: &[S],
    scratch: &mut [S],
    b: &mut [S],
    by: fn(usize, &[S], &[S], &mut [S]),
) -> Result<(), EvalError> {
    let (factors, _) = cut("factors", factors, n * n)?;
    let (scratch, _) = cut_mut("column", scratch, n)?;
    let (b, _) = cut_mut("b", b, n * columns)?;
    by_columns(columns, scratch, b, |x| {
        by(n, factors, pivots, x);
        Ok(())
    })
}
