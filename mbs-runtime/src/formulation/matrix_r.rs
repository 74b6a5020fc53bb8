//! Matrix R: motion in independent coordinates [004 "Semi-recursive Matrix R"].
//!
//! Only independent coordinates and velocities are integrated. At every stage, and at the end of every step, the others follow:
//!
//! ```text
//! Φ(z) = 0 with z^i held, by Newton's method       [ Φ_v ]     [ −Φ_t ]
//!                                                  [ A   ] v = [ −b   ]
//!                                                  [ B   ]     [ v^i  ]
//! ```
//!
//! with B the selection of the independent velocities; R is the part of the inverse that multiplies v^i, S the rest. Accelerations are those of
//! [`Index1`]: it solves
//!
//! ```text
//! [ M    Φ_vᵀ  Aᵀ ] [vd]   [ Q ]
//! [ Φ_v           ] [λ ] = [ c ]
//! [ A             ] [μ ]   [ d ]
//! ```
//!
//! whose solutions are vd = R vd^i + S (c, d) with (Rᵀ M R) vd^i = Rᵀ (Q − M S (c, d)), since R spans the null space of (Φ_v; A): the equations of matrix R
//! are this system with the multipliers eliminated. Multipliers come with it, those of least norm where rows depend on each other.
//!
//! The state is y = \[z, v\] of all coordinates, in which what follows is a guess and a result, never integrated; and the [`Choice`]. A step begins with
//! a look at it: where following velocities have become large against independent ones, another choice is made, at a state that satisfies the
//! constraints, so that the state is the same to the new one. Gradients are those of the choices that were made.

use core::cell::Cell;

use super::independent::{self, Choice, Column};
use super::index1::Index1;
use crate::constrained::{ConstrainedDynamics, ConstraintRows};
use crate::error::{EvalError, IndependentFailure};
use crate::euler_parameters::{angular, blocks, parameters, read, velocity_columns, write};
use crate::inputs::Hold;
use crate::integrator::Implicit;
use crate::linear::{all_finite, lu};
use crate::pieces::{cut, cut_mut};
use crate::scalar::{Scalar, sqrt};
use crate::system::{At, Dims, ForwardDynamics, Quantity, System, Units};

/// A mechanism with constraints as forward dynamics in independent coordinates.
#[derive(Clone, Copy, Debug)]
pub struct MatrixR<'a, M: System> {
    pub(crate) index1: Index1<'a, M>,
    choice: &'a [Cell<M::S>],
    pub(crate) newmark: Implicit,
}

/// A choice is kept while no following velocity is larger than this many times an independent one, in natural scales, or than this many times what it
/// was where the choice was made. The error of a step grows with its powers.
const LARGE: f64 = 2.0;
/// Beyond this there is none to be made: the position is singular.
const SINGULAR: f64 = 1e6;
/// Iterations that positions may take.
const MAX_ITERATIONS: usize = 20;
/// Corrections below this many ε of the position leave nothing.
const SETTLED: f64 = 4096.0;
/// Below this many, rows and their rates have been evaluated at the result.
const AT_ROUNDING: f64 = 16.0;

impl<'a, M: ConstrainedDynamics> MatrixR<'a, M> {
    /// `choice`: [`MatrixR::choice_len`] numbers, zero before the first step of a run, and a part of its state from then on.
    pub fn new(system: &'a M, choice: &'a mut [M::S]) -> Self {
        let choice = Cell::from_mut(choice).as_slice_of_cells();
        Self { index1: Index1::new(system), choice, newmark: Implicit::TRAPEZOIDAL }
    }

    /// The same, stepped by these formulas where [`Trapezoidal`](crate::Trapezoidal) steps it; other methods have their own.
    pub fn by(self, newmark: Implicit) -> Self {
        Self { newmark, ..self }
    }

    /// How many numbers a choice has; a constant for generated models.
    #[inline(always)]
    pub const fn choice_len(dims: &Dims) -> usize {
        choice_len(dims)
    }

    /// How often a choice was made.
    pub fn choices(&self) -> usize {
        self.choice().map_or(0, |choice| choice.count())
    }

    /// Whether this velocity is integrated.
    pub fn is_independent(&self, velocity: usize) -> bool {
        self.choice().is_ok_and(|choice| choice.column(velocity) == Column::Independent)
    }

    fn choice(&self) -> Result<Choice<'a, M::S>, EvalError> {
        Choice::of(&self.index1.system.dims(), self.choice)
    }

    pub(crate) fn numbers(&self) -> &'a [Cell<M::S>] {
        self.choice
    }
}

/// How many numbers a choice has.
#[inline(always)]
pub(crate) const fn choice_len(dims: &Dims) -> usize {
    Choice::<f64>::len(dims)
}

/// How many of them are a part of the state between steps.
#[inline(always)]
pub(crate) const fn kept_len(dims: &Dims) -> usize {
    Choice::<f64>::kept_len(dims)
}

/// Sizes of a system in independent coordinates, by a method that carries algorithmic accelerations or not.
pub(crate) const fn in_independent(dims: &Dims, carries: bool) -> Dims {
    let n_excess = if carries { dims.nv } else { 0 };
    Dims { workspace: dims.workspace + own_len(dims), n_choice: kept_len(dims), n_excess, ..*dims }
}

/// Scratch beside that of the model: multipliers, rows, their Jacobian, a matrix with its pivots and right-hand side, and what a choice takes.
#[inline(always)]
pub(crate) const fn own_len(dims: &Dims) -> usize {
    let (rows, nv) = (dims.joint_rows(), dims.nv);
    let matrices = rows * nv + nv * nv + 2 * nv + dims.nq;
    2 * rows + dims.n_holonomic + matrices + independent::memory_len(dims)
}

impl<M: System> System for MatrixR<'_, M> {
    type S = M::S;

    #[inline(always)]
    fn dims(&self) -> Dims {
        let dims = self.index1.system.dims();
        in_independent(&dims, self.newmark.carries())
    }
    #[inline(always)]
    fn euler_parameters(&self) -> &[usize] {
        self.index1.system.euler_parameters()
    }
    #[inline(always)]
    fn holds(&self) -> &[Hold] {
        self.index1.system.holds()
    }
    #[inline(always)]
    fn units(&self) -> Units<'_> {
        self.index1.system.units()
    }
    #[inline(always)]
    fn resting_rows(&self) -> &[(u32, u32)] {
        self.index1.system.resting_rows()
    }
}

impl<M: ConstrainedDynamics + ConstraintRows> ForwardDynamics for MatrixR<'_, M> {
    #[inline(always)]
    fn completes(&self) -> bool {
        true
    }

    #[inline(always)]
    fn newmark(&self) -> Implicit {
        self.newmark
    }

    #[inline(always)]
    fn forward_dynamics(
        &self,
        at: At<'_, M::S>,
        w: &mut [M::S],
        zd: &mut [M::S],
        vd: &mut [M::S],
        xd: &mut [M::S],
    ) -> Result<(), EvalError> {
        self.index1.forward_dynamics(at, w, zd, vd, xd)
    }

    fn prepare_step(&self, at: At<'_, M::S>, w: &mut [M::S]) -> Result<(), EvalError> {
        self.look(at, w)
    }

    fn complete(
        &self,
        t: M::S,
        u: &[M::S],
        w: &mut [M::S],
        z: &mut [M::S],
        v: &mut [M::S],
    ) -> Result<(), EvalError> {
        self.follow(t, u, w, z, v)
    }
}

/// Scratch for the rows at a state.
struct Work<'w, S> {
    phi: &'w mut [S],
    phid: &'w mut [S],
    jacobian: &'w mut [S],
    matrix: &'w mut [S],
    pivots: &'w mut [S],
    x: &'w mut [S],
    /// z before it is changed.
    given: &'w mut [S],
    memory: &'w mut [S],
    w: &'w mut [S],
}

impl<'w, S> Work<'w, S> {
    fn of(dims: &Dims, w: &'w mut [S]) -> Result<Self, EvalError> {
        let (phi, w) = cut_mut("w", w, dims.n_holonomic)?;
        let (phid, w) = cut_mut("w", w, dims.joint_rows())?;
        let (jacobian, w) = cut_mut("w", w, dims.joint_rows() * dims.nv)?;
        let (matrix, w) = cut_mut("w", w, dims.nv * dims.nv)?;
        let (pivots, w) = cut_mut("w", w, dims.nv)?;
        let (x, w) = cut_mut("w", w, dims.nv)?;
        let (given, w) = cut_mut("w", w, dims.nq)?;
        let (memory, w) = cut_mut("w", w, independent::memory_len(dims))?;
        Ok(Self { phi, phid, jacobian, matrix, pivots, x, given, memory, w })
    }
}

impl<M: ConstrainedDynamics + ConstraintRows> MatrixR<'_, M> {
    /// Keeps the choice at the start of a step, or makes another.
    pub(crate) fn look(&self, at: At<'_, M::S>, w: &mut [M::S]) -> Result<(), EvalError> {
        let (system, choice) = (self.index1.system, self.choice()?);
        let dims = system.dims();
        let Work { phi, phid, jacobian, matrix, pivots, x, memory, w, .. } = Work::of(&dims, w)?;
        system.constraint_rows(At { x: &[], ..at }, w, phi, phid, jacobian)?;
        let mut kept = false;
        if choice.count() > 0 {
            let size = self.size(choice, jacobian, matrix, pivots, x);
            kept = size.is_some_and(|size| size <= choice.limit()) && choice.is_near_reference(system, at.z);
        }
        if !kept {
            choice.make(system, at.z, jacobian, memory, system.independent())?;
            let size = self.size(choice, jacobian, matrix, pivots, x).unwrap_or(f64::INFINITY);
            if size > SINGULAR {
                let failure = match system.independent().contains(&true) {
                    true => IndependentFailure::Named,
                    false => IndependentFailure::Singular,
                };
                let index = (0..dims.nv).find(|&j| choice.column(j) != Column::Independent).unwrap_or(0);
                return Err(EvalError::Independent { failure, quantity: Quantity::Velocity, index });
            }
            choice.set_limit(LARGE * size.max(1.0));
        }
        let n = position_matrix(system, choice, at.z, jacobian, matrix)?;
        choice.set_matrix(cut("matrix", matrix, n * n)?.0);
        Ok(())
    }

    /// The largest velocity that follows from a unit of an independent one, in natural scales; none if the matrix is singular.
    fn size(
        &self,
        choice: Choice<'_, M::S>,
        jacobian: &[M::S],
        matrix: &mut [M::S],
        pivots: &mut [M::S],
        x: &mut [M::S],
    ) -> Option<f64> {
        let system = self.index1.system;
        let dims = system.dims();
        let holonomic = dims.n_holonomic;
        // At the level of velocities, and of positions, for which nonholonomic rows say nothing.
        let all = |column: Column| column != Column::Independent;
        let some = |column: Column| column == Column::Holonomic;
        let of_velocities = self.size_of(choice, jacobian, matrix, pivots, x, dims.joint_rows(), all)?;
        if dims.n_nonholonomic == 0 {
            return Some(of_velocities);
        }
        let of_positions = self.size_of(choice, jacobian, matrix, pivots, x, holonomic, some)?;
        Some(of_velocities.max(of_positions))
    }

    #[allow(clippy::too_many_arguments, reason = "a matrix and its scratch")]
    fn size_of(
        &self,
        choice: Choice<'_, M::S>,
        jacobian: &[M::S],
        matrix: &mut [M::S],
        pivots: &mut [M::S],
        x: &mut [M::S],
        count: usize,
        follows: impl Fn(Column) -> bool,
    ) -> Option<f64> {
        let (system, rows) = (self.index1.system, self.index1.system.dims().joint_rows());
        let units = system.units();
        let serving = || (0..count).filter(|&k| choice.serves(k));
        let n = serving().count();
        let mut entries = matrix.iter_mut();
        for (j, _, _) in velocity_columns(system).filter(|&(j, ..)| follows(choice.column(j))) {
            for k in serving() {
                *entries.next()? = *jacobian.get(j * rows + k)?;
            }
        }
        let matrix = matrix.get_mut(..n * n)?;
        lu::factor(n, matrix, pivots).ok()?;
        let mut largest = 0.0_f64;
        for (j, coordinate, _) in velocity_columns(system).filter(|&(j, ..)| !follows(choice.column(j))) {
            for (x, k) in x.iter_mut().zip(serving()) {
                *x = *jacobian.get(j * rows + k)?;
            }
            lu::solve(n, matrix, pivots, x.get_mut(..n)?);
            let unit = units.coordinate(coordinate);
            let following = velocity_columns(system).filter(|&(j, ..)| follows(choice.column(j)));
            for (x, (_, coordinate, _)) in x.iter().zip(following) {
                let size = x.real().abs() * unit / units.coordinate(coordinate);
                // A size that is not a number is too large.
                largest = if size <= largest { largest } else { size };
            }
        }
        Some(largest)
    }

    /// What follows from the independent coordinates and velocities, in their place.
    pub(crate) fn follow(
        &self,
        t: M::S,
        u: &[M::S],
        w: &mut [M::S],
        z: &mut [M::S],
        v: &mut [M::S],
    ) -> Result<(), EvalError> {
        let (system, choice) = (self.index1.system, self.choice()?);
        let (dims, units) = (system.dims(), system.units());
        let Work { phi, phid, jacobian, matrix, pivots, x, given, w, .. } = Work::of(&dims, w)?;
        for (given, &z) in given.iter_mut().zip(z.iter()) {
            *given = z;
        }
        normalise(system, choice, z)?;
        let lost = || {
            let index = (0..dims.nv).find(|&j| choice.column(j) != Column::Independent).unwrap_or(0);
            let failure = IndependentFailure::Lost;
            EvalError::Independent { failure, quantity: Quantity::Velocity, index }
        };
        let mut before = f64::INFINITY;
        let mut left = MAX_ITERATIONS;
        loop {
            system.constraint_rows(At { t, z, v, x: &[], u }, w, phi, phid, jacobian)?;
            let n = position_matrix(system, choice, z, jacobian, matrix)?;
            if n == 0 {
                break;
            }
            factor(choice, system, n, matrix, pivots)?;
            let (x, _) = cut_mut("x", x, n)?;
            violations(system, choice, given, z, phi, x)?;
            lu::solve(n, matrix, pivots, x);
            if !all_finite(x) {
                return Err(lost());
            }
            let unknowns = || velocity_columns(system).filter(|&(j, _, block)| moves(choice, j, block));
            let sizes = x.iter().zip(unknowns()).map(|(x, (_, i, _))| x.real().abs() / units.coordinate(i));
            let size = sizes.fold(0.0, f64::max);
            move_positions(system, choice, x, z)?;
            let rounding = M::S::EPSILON * units.largest(z).max(1.0);
            if size <= SETTLED * rounding && !self.is_in_reach(choice, n, matrix, pivots, x) {
                return Err(lost());
            }
            if size <= AT_ROUNDING * rounding {
                break;
            }
            if size <= SETTLED * rounding {
                system.constraint_rows(At { t, z, v, x: &[], u }, w, phi, phid, jacobian)?;
                break;
            }
            left -= 1;
            if size > before || left == 0 {
                return Err(lost());
            }
            before = size;
        }
        // Velocities: J_d dv = −(Φd; Ψ).
        let n = velocity_matrix(choice, &dims, jacobian, matrix)?;
        lu::factor(n, cut_mut("matrix", matrix, n * n)?.0, pivots).map_err(|_| lost())?;
        let (x, _) = cut_mut("x", x, n)?;
        for (x, k) in x.iter_mut().zip((0..dims.joint_rows()).filter(|&k| choice.serves(k))) {
            *x = -phid.get(k).copied().unwrap_or(M::S::ZERO);
        }
        lu::solve(n, matrix, pivots, x);
        if !all_finite(x) {
            return Err(lost());
        }
        for ((_, v), &x) in
            v.iter_mut().enumerate().filter(|&(j, _)| choice.column(j) != Column::Independent).zip(x.iter())
        {
            *v += x;
        }
        self.check(choice, &dims, [phi, phid], jacobian, x, units.largest(z).max(1.0))
    }

    /// Whether no position between that at the start of the step and this one is singular, as far as the matrix C of positions changes in a straight line:
    /// |C⁻¹ C_0 − 1| < 1, by columns in natural scales. Beyond such a position the constraints may hold in another way of assembly.
    fn is_in_reach(
        &self,
        choice: Choice<'_, M::S>,
        n: usize,
        factors: &[M::S],
        pivots: &[M::S],
        x: &mut [M::S],
    ) -> bool {
        let (system, units) = (self.index1.system, self.index1.system.units());
        let unknowns = || velocity_columns(system).filter(|&(j, _, block)| moves(choice, j, block));
        let unit = |coordinate: usize| units.coordinate(coordinate);
        unknowns().enumerate().all(|(c, (_, coordinate, _))| {
            for (i, x) in x.iter_mut().enumerate() {
                *x = choice.matrix(c * n + i);
            }
            lu::solve(n, factors, pivots, x);
            let changes = x.iter().zip(unknowns()).enumerate().map(|(i, (x, (_, other, _)))| {
                let one = if i == c { 1.0 } else { 0.0 };
                (x.real() - one).abs() * unit(coordinate) / unit(other)
            });
            changes.sum::<f64>() < 1.0
        })
    }

    /// Rows that do not serve must hold by those that do. `dv`: what was added to the velocities that follow, at which `phid` was not yet.
    fn check(
        &self,
        choice: Choice<'_, M::S>,
        dims: &Dims,
        [phi, phid]: [&[M::S]; 2],
        jacobian: &[M::S],
        dv: &[M::S],
        scale: f64,
    ) -> Result<(), EvalError> {
        let (units, rows) = (self.index1.system.units(), dims.joint_rows());
        let allowed = sqrt(M::S::EPSILON) * scale;
        for k in (0..rows).filter(|&k| !choice.serves(k)) {
            let unit = units.row(if k < dims.n_holonomic { k } else { k + dims.n_normalisation });
            let value = phi.get(k).map_or(0.0, |phi| phi.real());
            let following = (0..dims.nv).filter(|&j| choice.column(j) != Column::Independent);
            let mut size = 1.0;
            let mut rate = phid.get(k).map_or(0.0, |phid| phid.real());
            for (j, dv) in following.zip(dv) {
                let part = jacobian.get(j * rows + k).map_or(0.0, |entry| (*entry * *dv).real());
                rate += part;
                size += part.abs();
            }
            let violation = if value.abs() / unit > allowed { value } else { rate };
            if violation.abs() / unit > allowed * size {
                let (quantity, index) = independent::row(dims, k);
                return Err(EvalError::Violated { quantity, index, violation });
            }
        }
        Ok(())
    }
}

/// Whether the coordinate of velocity `j`, which belongs to the block of Euler parameters from velocity `block` on, is unknown in the solution for positions.
pub(crate) fn moves<S: Scalar>(choice: Choice<'_, S>, j: usize, block: Option<usize>) -> bool {
    match block {
        Some(first) => choice.moves_block(first),
        None => choice.column(j) == Column::Holonomic,
    }
}

/// Entries of y = \[z, v\] on which the completed state depends: all others follow, and what is given of them is a guess.
pub(crate) fn integrated<'s, M: System>(
    system: &'s M,
    choice: Choice<'s, M::S>,
) -> impl Iterator<Item = usize> + 's {
    let coordinates = velocity_columns(system).flat_map(move |(j, i, block)| match block {
        None => i..i + usize::from(choice.column(j) != Column::Holonomic),
        // A block that moves is integrated if one of its directions is held.
        Some(first) if j == first => {
            let held = (first..first + 3).any(|j| choice.column(j) != Column::Holonomic);
            i..i + if held { 4 } else { 0 }
        }
        Some(_) => i..i,
    });
    let (nq, nv) = (system.dims().nq, system.dims().nv);
    coordinates.chain((0..nv).filter(move |&j| choice.column(j) == Column::Independent).map(move |j| nq + j))
}

/// Directions of moved blocks that are held: the offsets of the block in z and in v, and the direction.
pub(crate) fn held<'s, M: System>(
    system: &'s M,
    choice: Choice<'s, M::S>,
) -> impl Iterator<Item = (usize, usize, usize)> + 's {
    let moved = blocks(system).filter(move |&(_, first)| choice.moves_block(first));
    moved.flat_map(move |(i, first)| {
        (0..3).filter(move |d| choice.column(first + d) != Column::Holonomic).map(move |d| (i, first, d))
    })
}

/// Writes the matrix of the solution for positions, by columns: rows of Φ_v that serve, then those of dφ = 2 Ḡ(p0) N(p) dθ along directions that
/// are held. Gives its size.
pub(crate) fn position_matrix<M: System>(
    system: &M,
    choice: Choice<'_, M::S>,
    z: &[M::S],
    jacobian: &[M::S],
    matrix: &mut [M::S],
) -> Result<usize, EvalError> {
    let dims = system.dims();
    let rows = dims.joint_rows();
    let wrong = EvalError::Length { what: "jacobian", expected: rows * dims.nv, found: jacobian.len() };
    let mut entries = matrix.iter_mut();
    let mut n = 0;
    for (j, coordinate, block) in velocity_columns(system).filter(|&(j, _, block)| moves(choice, j, block)) {
        n += 1;
        for k in (0..dims.n_holonomic).filter(|&k| choice.serves(k)) {
            let (Some(entry), Some(&value)) = (entries.next(), jacobian.get(j * rows + k)) else {
                return Err(wrong);
            };
            *entry = value;
        }
        for (i, first, direction) in held(system, choice) {
            let Some(entry) = entries.next() else { return Err(wrong) };
            *entry = M::S::ZERO;
            if block == Some(first) && i == coordinate {
                let turn = [0, 1, 2].map(|d| if first + d == j { M::S::ONE } else { M::S::ZERO });
                let phi = angular(choice.reference(i), parameters(read("z", z, i)?, turn));
                *entry = phi.get(direction).copied().unwrap_or(M::S::ZERO);
            }
        }
    }
    Ok(n)
}

/// Writes the matrix of the solution for velocities: rows that serve, velocities that follow. Gives its size.
pub(crate) fn velocity_matrix<S: Scalar>(
    choice: Choice<'_, S>,
    dims: &Dims,
    jacobian: &[S],
    matrix: &mut [S],
) -> Result<usize, EvalError> {
    let rows = dims.joint_rows();
    let wrong = EvalError::Length { what: "jacobian", expected: rows * dims.nv, found: jacobian.len() };
    let (mut entries, mut n) = (matrix.iter_mut(), 0);
    for j in (0..dims.nv).filter(|&j| choice.column(j) != Column::Independent) {
        n += 1;
        for k in (0..rows).filter(|&k| choice.serves(k)) {
            let (Some(entry), Some(&value)) = (entries.next(), jacobian.get(j * rows + k)) else {
                return Err(wrong);
            };
            *entry = value;
        }
    }
    Ok(n)
}

/// Factors the matrix of the solution for positions in place.
fn factor<M: System>(
    choice: Choice<'_, M::S>,
    system: &M,
    n: usize,
    matrix: &mut [M::S],
    pivots: &mut [M::S],
) -> Result<(), EvalError> {
    let (matrix, _) = cut_mut("matrix", matrix, n * n)?;
    lu::factor(n, matrix, pivots).map_err(|column| {
        let mut unknowns = velocity_columns(system).filter(|&(j, _, block)| moves(choice, j, block));
        let index = unknowns.nth(column).map_or(0, |(j, ..)| j);
        let failure = IndependentFailure::Lost;
        EvalError::Independent { failure, quantity: Quantity::Velocity, index }
    })?;
    Ok(())
}

/// The right-hand side for positions: −Φ, and what is missing of φ.
fn violations<M: System>(
    system: &M,
    choice: Choice<'_, M::S>,
    given: &[M::S],
    z: &[M::S],
    phi: &[M::S],
    x: &mut [M::S],
) -> Result<(), EvalError> {
    let mut x = x.iter_mut();
    let serving = phi.iter().enumerate().filter(|&(k, _)| choice.serves(k));
    for ((_, &phi), x) in serving.zip(&mut x) {
        *x = -phi;
    }
    for ((i, _, direction), x) in held(system, choice).zip(x) {
        let (given, now): ([_; 4], [_; 4]) = (read("z", given, i)?, read("z", z, i)?);
        let mut missing = given;
        for (missing, now) in missing.iter_mut().zip(now) {
            *missing -= now;
        }
        *x = angular(choice.reference(i), missing).get(direction).copied().unwrap_or(M::S::ZERO);
    }
    Ok(())
}

/// z changed by the solution for positions, Euler parameters that move at unit norm.
fn move_positions<M: System>(
    system: &M,
    choice: Choice<'_, M::S>,
    x: &[M::S],
    z: &mut [M::S],
) -> Result<(), EvalError> {
    let mut unknowns = velocity_columns(system).filter(|&(j, _, block)| moves(choice, j, block)).zip(x);
    while let Some(((_, i, block), &x)) = unknowns.next() {
        if block.is_none() {
            if let Some(z) = z.get_mut(i) {
                *z += x;
            }
            continue;
        }
        let mut turn = [x, M::S::ZERO, M::S::ZERO];
        for turn in turn.iter_mut().skip(1) {
            if let Some((_, &x)) = unknowns.next() {
                *turn = x;
            }
        }
        let mut p = read("z", z, i)?;
        let change = parameters(p, turn);
        for (p, dp) in p.iter_mut().zip(change) {
            *p += dp;
        }
        write("z", z, i, unit(p))?;
    }
    Ok(())
}

/// Euler parameters that move, at unit norm.
fn normalise<M: System>(system: &M, choice: Choice<'_, M::S>, z: &mut [M::S]) -> Result<(), EvalError> {
    for (i, _) in blocks(system).filter(|&(_, first)| choice.moves_block(first)) {
        let p = read("z", z, i)?;
        write("z", z, i, unit(p))?;
    }
    Ok(())
}

fn unit<S: Scalar>(p: [S; 4]) -> [S; 4] {
    let norm = (p[0] * p[0] + p[1] * p[1] + p[2] * p[2] + p[3] * p[3]).sqrt();
    p.map(|p| p / norm)
}
