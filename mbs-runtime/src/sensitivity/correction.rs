//! The derivative of a correction that brings a state back onto its constraints, see
//! [`OnConstraints`](crate::OnConstraints).
//!
//! A correction is z += dz, v += dv with dz = N dθ and, in the norm of M the smallest,
//!
//! ```text
//! [ M  Bᵀ ] [dθ]   [ 0      ]         [ M  Bᵀ ] [dv]   [ 0       ]
//! [ B  0  ] [σ ] = [−(Φ; 0) ]         [ B  0  ] [σ ] = [−(Φd; Ψ) ]        B = (Φ_v; A)
//! ```
//!
//! Each one that a step makes is differentiated by itself:
//!
//! ```text
//! [ M  Bᵀ ] [dv_ρ]   [−(M dv + Bᵀσ)_θ θ_ρ − (M dv + Bᵀσ)_ρ                                      ]
//! [ B  0  ] [σ_ρ ] = [−(Φd; Ψ)_θ θ_ρ − B v_ρ − (Φd; Ψ)_ρ − (B dv)_θ θ_ρ − (B dv)_ρ              ]
//! ```
//!
//! and alike for dθ. Where the model has a bundle for it, this gives the correction and all columns at once, and says by how much its solutions miss
//! their equations, each by the size of what that adds up; for what it does not solve to rounding (rows that depend on each other, almost or quite), and for other
//! directions than the parameters, there are lists and a dense solution in natural scales. Lists come from `joint_linearise`, whose
//! tau = M vd + Bᵀλ − Q is linear in vd and λ, and whose c is linear in vd: differences of lists give each term alone, see [`RowLists`].

use super::blocks::{Product, Reader, TransposedProduct};
use super::columns::{Directions, scale, subtract_product};
use super::derivatives::{JointPlaces, JointSensitivities};
use super::joint_dynamics::JointDynamics;
use super::joint_values::{JointValues, THETA, V};
use super::row_lists::{RowLists, gain};
use crate::constrained::{Stabilisation, by_columns};
use crate::error::{EvalError, StepError};
use crate::euler_parameters::{
    add_rates_transposed, add_tangents_transposed, rates, tangents, velocity_unit,
};
use crate::formulation::compliance::least_part;
use crate::formulation::{Corrections, StateCorrection};
use crate::linear::{add_scaled, all_finite, copy, largest, lu, symmetric};
use crate::pieces::{Pieces, cut, cut_mut};
use crate::scalar::Scalar;
use crate::system::{At, Dims, Quantity};

/// Refinements of a solution, at most; each leaves about 1e−9 of the error of independent rows.
const REFINEMENTS: usize = 10;
/// Refinements that shrink a residual by less than this are of no use.
const STAGNANT: f64 = 0.5;
/// What may be left of a residual then, in natural scales of the matrix and of the solution.
const LEFT: f64 = 1e-6;

/// Memory for it.
pub(crate) struct Correction<'a, S> {
    rows: RowLists<'a, S>,
    dense: &'a mut [S],
    lu: &'a mut [S],
    pivots: &'a mut [S],
    /// Powers of two by which rows and columns of the matrix are multiplied.
    scales: &'a mut [S],
    /// dθ or dv, σ, and one column.
    change: &'a mut [S],
    sigma: &'a mut [S],
    column: &'a mut [S],
    theta: &'a mut [S],
    b: &'a mut [S],
    x: &'a mut [S],
    residual: &'a mut [S],
    moved: &'a mut [S],
    /// Weights of the parameters.
    of_rho: &'a mut [S],
}

/// Which correction.
#[derive(Clone, Copy, PartialEq)]
enum Which {
    Positions,
    Velocities,
}

impl<'a, S: Scalar> Correction<'a, S> {
    /// Its length, for this many columns.
    #[inline(always)]
    pub(crate) const fn len(dims: &Dims, columns: usize) -> usize {
        let (n, p) = (dims.nv + dims.joint_rows(), if columns > 0 { columns } else { 1 });
        let own = 2 * n * n + 5 * n + dims.nv * (1 + p) + 3 * n * p + dims.nq * p;
        RowLists::<S>::len(dims) + own + Self::len_of_rho(dims, columns)
    }

    /// Weights of the parameters come at once for a column of each objective.
    const fn len_of_rho(dims: &Dims, columns: usize) -> usize {
        if columns == dims.n_objectives { dims.sensitivity.parameters * columns } else { 0 }
    }

    /// Takes its memory from `pieces`.
    pub(crate) fn new(dims: &Dims, columns: usize, pieces: &mut Pieces<'a, S>) -> Result<Self, StepError> {
        let (n, p) = (dims.nv + dims.joint_rows(), columns.max(1));
        Ok(Self {
            rows: RowLists::new(dims, pieces)?,
            dense: pieces.next(n * n)?,
            lu: pieces.next(n * n)?,
            pivots: pieces.next(n)?,
            scales: pieces.next(n)?,
            change: pieces.next(dims.nv)?,
            sigma: pieces.next(n)?,
            column: pieces.next(2 * n)?,
            theta: pieces.next(dims.nv * p)?,
            b: pieces.next(n * p)?,
            x: pieces.next(n * p)?,
            residual: pieces.next(n * p)?,
            moved: pieces.next(dims.nq * p)?,
            of_rho: pieces.next(Self::len_of_rho(dims, columns))?,
        })
    }

    /// For dynamics that correct nothing.
    pub(crate) fn none() -> Self {
        Self {
            rows: RowLists::none(),
            dense: &mut [],
            lu: &mut [],
            pivots: &mut [],
            scales: &mut [],
            change: &mut [],
            sigma: &mut [],
            column: &mut [],
            theta: &mut [],
            b: &mut [],
            x: &mut [],
            residual: &mut [],
            moved: &mut [],
            of_rho: &mut [],
        }
    }

    /// Takes the derivatives of z and v through the correction dz, dv at the instant `at`. Known: whether [`Correction::find`] found it.
    #[allow(clippy::too_many_arguments, reason = "a correction and its derivatives")]
    fn differentiate<D: JointDynamics<S = S>>(
        &mut self,
        system: &D,
        dims: &Dims,
        at: At<'_, S>,
        dz: &[S],
        dv: &[S],
        known: bool,
        z_rho: &mut [S],
        v_rho: &mut [S],
        directions: Directions<'_, S>,
        w: &mut [S],
    ) -> Result<(), EvalError> {
        let (model, columns) = (system.model(), dims.sensitivity.parameters);
        let places = model.joint_places();
        tangents(system, at.z, 1, dz, self.change)?;
        if known {
            // dz_ρ = N dθ_ρ + N(z_ρ) dθ; without Euler parameters N = 1
            if system.euler_parameters().is_empty() {
                add_scaled(z_rho, S::ONE, self.x);
            } else {
                rates(system, at.z, self.change, columns, z_rho, self.x, self.moved)?;
                add_scaled(z_rho, S::ONE, self.moved);
            }
            add_scaled(v_rho, S::ONE, self.b);
            return Ok(());
        }
        tangents(system, at.z, columns, z_rho, self.theta)?;
        self.rows.evaluate(model, dims, &places, at, w)?;
        self.factor(model, dims, &places)?;

        // dθ_ρ
        self.evaluate_impulse(model, dims, &places, at, w)?;
        self.right_hand_side(dims, &places, Which::Positions, columns, v_rho, directions)?;
        self.solve(dims, columns)?;
        rates(system, at.z, self.change, columns, z_rho, self.x, self.moved)?;

        // dv_ρ
        copy(self.change, dv);
        self.evaluate_impulse(model, dims, &places, at, w)?;
        self.right_hand_side(dims, &places, Which::Velocities, columns, v_rho, directions)?;
        self.solve(dims, columns)?;
        add_scaled(z_rho, S::ONE, self.moved);
        add_scaled(v_rho, S::ONE, self.x);
        Ok(())
    }

    /// A correction and, into x and b, dθ_ρ and dv_ρ by one bundle. False, and nothing that counts is written, where there is none or it does not
    /// solve to rounding.
    #[allow(clippy::too_many_arguments, reason = "a correction and its derivatives")]
    fn find<D: JointDynamics<S = S>>(
        &mut self,
        system: &D,
        dims: &Dims,
        at: At<'_, S>,
        z_rho: &[S],
        v_rho: &[S],
        found: &mut StateCorrection<'_, S>,
        w: &mut [S],
    ) -> Result<bool, EvalError> {
        let (model, columns) = (system.model(), dims.sensitivity.parameters);
        if !model.fuses_corrections() {
            return Ok(false);
        }
        tangents(system, at.z, columns, z_rho, self.theta)?;
        let n = dims.nv * columns;
        let ((x, _), (b, _)) = (cut_mut("x", self.x, n)?, cut_mut("b", self.b, n)?);
        let StateCorrection { dz, dv, phi, phid } = found;
        let left = &mut *self.column;
        let solved = model.differentiate_correction(at, self.theta, v_rho, w, dz, dv, phi, phid, x, b, left);
        Ok(solved.is_ok() && at_rounding(left) && all_finite(x) && all_finite(b))
    }

    /// Into θ̄, and added to v̄ and ρ̄, by one bundle: what the weights of dθ, in x, and of dv are of θ, v and ρ. False, and nothing that counts is
    /// written, where there is none, it does not solve to rounding, or there is not a column for each objective.
    #[allow(clippy::too_many_arguments, reason = "a correction and its weights")]
    fn transpose_at_once<M: JointSensitivities<S = S>>(
        &mut self,
        model: &M,
        dims: &Dims,
        columns: usize,
        at: At<'_, S>,
        v_bar: &mut [S],
        rho: &mut [S],
        w: &mut [S],
    ) -> Result<bool, EvalError> {
        if !model.fuses_transposed_corrections() || columns != dims.n_objectives {
            return Ok(false);
        }
        let (x, _) = cut_mut("x", self.x, dims.nv * columns)?;
        let (change, _) = cut_mut("residual", self.residual, dims.nv * columns)?;
        let theta = &mut *self.theta;
        let solved = model.transpose_correction(at, x, v_bar, w, theta, change, self.of_rho, self.column);
        let parts = [&*theta, change, self.of_rho];
        if solved.is_err() || !at_rounding(self.column) || !parts.into_iter().all(all_finite) {
            return Ok(false);
        }
        add_scaled(v_bar, S::ONE, change);
        add_scaled(rho, S::ONE, self.of_rho);
        Ok(true)
    }

    /// The matrix of both corrections, and its factors.
    fn factor<M: JointSensitivities<S = S>>(
        &mut self,
        model: &M,
        dims: &Dims,
        places: &JointPlaces<'_>,
    ) -> Result<(), EvalError> {
        let (nv, n) = (dims.nv, dims.nv + dims.joint_rows());
        let base = JointValues::of(places, self.rows.base)?;
        self.dense.fill(S::ZERO);
        let mut put = |i: usize, j: usize, value: S| {
            if let Some(entry) = self.dense.get_mut(j * n + i) {
                *entry = value;
            }
        };
        for (&(i, j), &value) in places.tangent.iter().zip(base.mass) {
            put(i as usize, j as usize, value);
        }
        for (&(k, j), &value) in places.rows.iter().zip(self.rows.jacobian.iter()) {
            let (k, j) = (k as usize, j as usize);
            put(nv + k, j, value);
            put(j, nv + k, value);
        }
        // D A D with a small −E, which keeps dependent rows solvable
        // Normalisation rows stand between those of the joint form.
        let place = |k: usize| if k < dims.n_holonomic { k } else { k + dims.n_normalisation };
        let units = model.units();
        let velocity = |j| velocity_unit(model, j);
        symmetric::scales(n, nv, self.dense, velocity, |k| Some(units.row(place(k))), self.scales);
        symmetric::apply(n, self.scales, self.dense);
        copy(self.lu, self.dense);
        for k in nv..n {
            if let Some(entry) = self.lu.get_mut(k * n + k).filter(|entry| **entry == S::ZERO) {
                *entry = S::from_f64(-least_part::<S>());
            }
        }
        lu::factor(n, self.lu, self.pivots).map_err(|column| {
            let (quantity, index) = quantity_of(dims, column);
            EvalError::SingularLeading { quantity, index }
        })
    }

    /// σ of what changes, dθ or dv; and the list with vd = dθ or dv and λ = σ.
    fn evaluate_impulse<M: JointSensitivities<S = S>>(
        &mut self,
        model: &M,
        dims: &Dims,
        places: &JointPlaces<'_>,
        at: At<'_, S>,
        w: &mut [S],
    ) -> Result<(), EvalError> {
        let (nv, n) = (dims.nv, dims.nv + dims.joint_rows());
        let base = JointValues::of(places, self.rows.base)?;
        // M x + Bᵀ σ = −M dθ, B x = 0
        let (b, _) = cut_mut("b", self.b, n)?;
        b.fill(S::ZERO);
        subtract_product(places.tangent, base.mass, 1, self.change, b)?;
        self.solve(dims, 1)?;
        copy(self.sigma, cut("x", self.x, nv)?.1);
        // Multiplied so that nothing of the list at vd = 0 is left in the sum.
        let ((change, _), (sigma, _)) =
            (cut_mut("column", self.column, nv)?, cut_mut("sigma", self.sigma, dims.joint_rows())?);
        copy(change, self.change);
        scale(change, gain());
        scale(sigma, gain());
        let exact = Stabilisation { rate: S::ZERO, value: S::ZERO, compliance: S::ZERO };
        model.joint_linearise(at, change, sigma, exact, w, self.rows.other, self.rows.factors)
    }

    fn right_hand_side(
        &mut self,
        dims: &Dims,
        places: &JointPlaces<'_>,
        which: Which,
        columns: usize,
        v_rho: &[S],
        directions: Directions<'_, S>,
    ) -> Result<(), EvalError> {
        self.b.fill(S::ZERO);
        let x = [&*self.theta, v_rho, &[], &[]];
        read_lists(&self.rows, dims, places, which, &mut Product { columns, x, directions, y: self.b })
    }

    /// The transpose of [`Correction::differentiate`]: takes weights of z and v after the correction to those before it, and adds those of ρ.
    #[allow(clippy::too_many_arguments, reason = "a correction and its weights")]
    pub(crate) fn transpose<D: JointDynamics<S = S>>(
        &mut self,
        system: &D,
        dims: &Dims,
        columns: usize,
        at: At<'_, S>,
        dz: &[S],
        dv: &[S],
        z_bar: &mut [S],
        v_bar: &mut [S],
        rho: &mut [S],
        w: &mut [S],
    ) -> Result<(), EvalError> {
        let model = system.model();
        let places = model.joint_places();
        if model.fuses_transposed_corrections() {
            // dz′ = N dθ′ + N(z′) dθ
            tangents(system, at.z, 1, dz, self.change)?;
            self.x.fill(S::ZERO);
            self.moved.fill(S::ZERO);
            add_rates_transposed(system, at.z, self.change, columns, z_bar, self.moved, self.x)?;
            if self.transpose_at_once(model, dims, columns, at, v_bar, rho, w)? {
                add_scaled(z_bar, S::ONE, self.moved);
                return add_tangents_transposed(system, at.z, columns, self.theta, z_bar);
            }
        }
        self.rows.evaluate(model, dims, &places, at, w)?;
        self.factor(model, dims, &places)?;
        self.theta.fill(S::ZERO);

        // dv′
        copy(self.change, dv);
        self.evaluate_impulse(model, dims, &places, at, w)?;
        self.b.fill(S::ZERO);
        copy(cut_mut("b", self.b, dims.nv * columns)?.0, v_bar);
        self.transpose_blocks(dims, &places, Which::Velocities, columns, v_bar, rho)?;

        // dz′
        tangents(system, at.z, 1, dz, self.change)?;
        self.evaluate_impulse(model, dims, &places, at, w)?;
        self.b.fill(S::ZERO);
        self.moved.fill(S::ZERO);
        add_rates_transposed(system, at.z, self.change, columns, z_bar, self.moved, self.b)?;
        add_scaled(z_bar, S::ONE, self.moved);
        self.transpose_blocks(dims, &places, Which::Positions, columns, v_bar, rho)?;
        add_tangents_transposed(system, at.z, columns, self.theta, z_bar)?;
        Ok(())
    }

    /// From weights of a solution, in b, to those of θ, v and ρ. The matrix is symmetric.
    fn transpose_blocks(
        &mut self,
        dims: &Dims,
        places: &JointPlaces<'_>,
        which: Which,
        columns: usize,
        v_bar: &mut [S],
        rho: &mut [S],
    ) -> Result<(), EvalError> {
        self.solve(dims, columns)?;
        let x: [&mut [S]; 4] = [&mut *self.theta, v_bar, &mut [], &mut []];
        read_lists(&self.rows, dims, places, which, &mut TransposedProduct { columns, y: self.x, x, rho })
    }

    /// x from b, refined; the matrix without E.
    fn solve(&mut self, dims: &Dims, columns: usize) -> Result<(), EvalError> {
        let n = dims.nv + dims.joint_rows();
        let ((b, _), (x, _)) = (cut_mut("b", self.b, n * columns)?, cut_mut("x", self.x, n * columns)?);
        let (residual, _) = cut_mut("residual", self.residual, n * columns)?;
        let (column, _) = cut_mut("column", self.column, n)?;
        // D A D (D⁻¹ x) = D b
        scale_rows(self.scales, columns, b);
        x.fill(S::ZERO);
        copy(residual, b);
        let mut left = f64::INFINITY;
        for round in 1..=REFINEMENTS {
            by_columns(columns, column, residual, |x| {
                lu::solve(n, self.lu, self.pivots, x);
                Ok(())
            })?;
            add_scaled(x, S::ONE, residual);
            copy(residual, b);
            for (j, entries) in self.dense.chunks_exact(n.max(1)).enumerate() {
                for (i, &entry) in entries.iter().enumerate().filter(|(_, entry)| **entry != S::ZERO) {
                    subtract_product(&[(i as u32, j as u32)], &[entry], columns, x, residual)?;
                }
            }
            let now = largest(residual);
            // Not less, so that what is not a number ends it, too. Imaginary parts, which are not looked at, have had two.
            let stagnant = !(now > 0.0 && now < STAGNANT * left);
            left = now;
            if stagnant && round > 2 {
                break;
            }
        }
        let solved = left <= LEFT * largest(x).max(largest(b));
        if !solved || !all_finite(residual) {
            let is_left = |r: &S| r.real().abs() >= left || !r.is_finite();
            let worst = residual.iter().position(is_left).unwrap_or(0) / columns.max(1);
            let (quantity, index) = quantity_of(dims, worst);
            return Err(EvalError::SingularLeading { quantity, index });
        }
        scale_rows(self.scales, columns, x);
        Ok(())
    }
}

/// Derivatives that go along with the corrections of a state.
pub(crate) struct Differentiating<'a, 'c, D: JointDynamics> {
    pub(crate) system: &'a D,
    pub(crate) dims: &'a Dims,
    pub(crate) correction: &'a mut Correction<'c, D::S>,
    pub(crate) directions: Directions<'a, D::S>,
    pub(crate) z_rho: &'a mut [D::S],
    pub(crate) v_rho: &'a mut [D::S],
    /// Whether the last correction was found with its derivatives.
    pub(crate) known: bool,
}

impl<D: JointDynamics> Corrections<D::S> for Differentiating<'_, '_, D> {
    fn find(
        &mut self,
        at: At<'_, D::S>,
        w: &mut [D::S],
        found: &mut StateCorrection<'_, D::S>,
    ) -> Result<bool, EvalError> {
        let Self { system, dims, correction, directions, z_rho, v_rho, known } = self;
        *known = matches!(directions, Directions::Each)
            && correction.find(*system, dims, at, z_rho, v_rho, found, w)?;
        Ok(*known)
    }

    fn see(&mut self, at: At<'_, D::S>, dz: &[D::S], dv: &[D::S], w: &mut [D::S]) -> Result<(), EvalError> {
        let Self { system, dims, correction, directions, z_rho, v_rho, known } = self;
        correction.differentiate(*system, dims, at, dz, dv, *known, z_rho, v_rho, *directions, w)
    }
}

/// D x
fn scale_rows<S: Scalar>(d: &[S], columns: usize, x: &mut [S]) {
    for (row, &d) in x.chunks_exact_mut(columns.max(1)).zip(d) {
        scale(row, d);
    }
}

/// What an equation belongs to.
fn quantity_of(dims: &Dims, equation: usize) -> (Quantity, usize) {
    match equation.checked_sub(dims.nv) {
        None => (Quantity::Velocity, equation),
        Some(row) => (Quantity::Holonomic, row),
    }
}

/// Shows the blocks of the right-hand side.
fn read_lists<S: Scalar>(
    lists: &RowLists<'_, S>,
    dims: &Dims,
    places: &JointPlaces<'_>,
    which: Which,
    reader: &mut impl Reader<S>,
) -> Result<(), EvalError> {
    let (base, other) = (JointValues::of(places, lists.base)?, JointValues::of(places, lists.other)?);
    let (top, rows, minus) = (0, dims.nv, -S::ONE);
    let part = S::ONE / gain();
    // −((M dv + Bᵀσ)_θ θ_ρ + (M dv + Bᵀσ)_ρ)
    let terms = [(THETA, -part, other.force_theta), (THETA, part, base.force_theta)];
    reader.blocks(top, places.tangent, terms)?;
    reader.parameters(top, places.force, -part, other.force_rho)?;
    reader.parameters(top, places.force, part, base.force_rho)?;
    // −((B dv)_θ θ_ρ + (B dv)_ρ)
    let terms = [(THETA, -part, other.rows_theta), (THETA, part, base.rows_theta)];
    reader.blocks(rows, places.rows, terms)?;
    reader.parameters(rows, places.row, -part, other.rows_rho)?;
    reader.parameters(rows, places.row, part, base.rows_rho)?;
    match which {
        // −(Φ_v θ_ρ + Φ_ρ)
        Which::Positions => {
            let holonomic = places.rows.partition_point(|&(k, _)| (k as usize) < dims.n_holonomic);
            let (of_holonomic, _) = places.rows.split_at_checked(holonomic).unwrap_or_default();
            reader.block(rows, of_holonomic, (THETA, minus, cut("rows", lists.jacobian, holonomic)?.0))?;
            reader.parameters(rows, places.row, minus, lists.phi_rho)
        }
        // −((Φd; Ψ)_θ θ_ρ + B v_ρ + (Φd; Ψ)_ρ)
        Which::Velocities => {
            let terms = [(THETA, minus, &*lists.rates_theta), (V, minus, &*lists.jacobian)];
            reader.blocks(rows, places.rows, terms)?;
            reader.parameters(rows, places.row, minus, lists.rates_rho)
        }
    }
}

/// Whether nothing is left beyond rounding; not a number is not nothing.
fn at_rounding<S: Scalar>(left: &[S]) -> bool {
    left.iter().fold(true, |small, left| small & (left.real() <= 0.0))
}
