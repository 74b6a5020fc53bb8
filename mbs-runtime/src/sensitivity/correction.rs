//! The derivative of a correction that brings a state back onto its constraints, see
//! [`OnConstraints`](crate::OnConstraints).
//!
//! A correction is z += dz, v += dv with dz = N dθ and, in the norm of M the smallest,
//!
//! ```text
//! [ M    Φ_vᵀ ] [dθ]   [ 0 ]        [ M  Bᵀ ] [dv]   [ 0       ]
//! [ Φ_v  0    ] [σ ] = [−Φ ]        [ B  0  ] [σ ] = [−(Φd; Ψ) ]        B = (Φ_v; A)
//! ```
//!
//! Each one that a step makes is differentiated by itself:
//!
//! ```text
//! [ M  Bᵀ ] [dv_ρ]   [−(M dv + Bᵀσ)_θ θ_ρ − (M dv + Bᵀσ)_ρ                                      ]
//! [ B  0  ] [σ_ρ ] = [−(Φd; Ψ)_θ θ_ρ − B v_ρ − (Φd; Ψ)_ρ − (B dv)_θ θ_ρ − (B dv)_ρ              ]
//! ```
//!
//! and alike for dθ. Everything comes from `joint_linearise`, whose tau = M vd + Bᵀλ − Q is linear in vd and λ, and whose
//! c is linear in vd: differences of lists give each term alone, see [`RowLists`].

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
}

/// Which correction.
#[derive(Clone, Copy, PartialEq)]
enum Which {
    Positions,
    Velocities,
}

impl<'a, S: Scalar> Correction<'a, S> {
    /// Its length, for this many columns.
    pub(crate) const fn len(dims: &Dims, columns: usize) -> usize {
        let (n, p) = (dims.nv + dims.joint_rows(), if columns > 0 { columns } else { 1 });
        RowLists::<S>::len(dims) + 2 * n * n + 5 * n + dims.nv * (1 + p) + 3 * n * p + dims.nq * p
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
        }
    }

    /// Takes the derivatives of z and v through the correction dz, dv at the instant `at`.
    #[allow(clippy::too_many_arguments, reason = "a correction and its derivatives")]
    pub(crate) fn differentiate<D: JointDynamics<S = S>>(
        &mut self,
        system: &D,
        dims: &Dims,
        at: At<'_, S>,
        dz: &[S],
        dv: &[S],
        z_rho: &mut [S],
        v_rho: &mut [S],
        directions: Directions<'_, S>,
        w: &mut [S],
    ) -> Result<(), EvalError> {
        let (model, columns) = (system.model(), dims.sensitivity.parameters);
        let places = model.joint_places();
        self.rows.evaluate(model, dims, &places, at, w)?;
        tangents(system, at.z, columns, z_rho, self.theta)?;

        // dθ_ρ
        tangents(system, at.z, 1, dz, self.change)?;
        self.evaluate_impulse(model, dims, &places, at, w, Which::Positions)?;
        self.right_hand_side(dims, &places, Which::Positions, columns, v_rho, directions)?;
        self.solve(dims, columns)?;
        // dz_ρ = N dθ_ρ + N(z_ρ) dθ
        rates(system, at.z, self.change, columns, z_rho, self.x, self.moved)?;

        // dv_ρ
        copy(self.change, dv);
        self.evaluate_impulse(model, dims, &places, at, w, Which::Velocities)?;
        self.right_hand_side(dims, &places, Which::Velocities, columns, v_rho, directions)?;
        self.solve(dims, columns)?;
        add_scaled(z_rho, S::ONE, self.moved);
        add_scaled(v_rho, S::ONE, self.x);
        Ok(())
    }

    /// The matrix of a correction and its factors; σ; and the list with vd = dθ or dv and λ = σ.
    fn evaluate_impulse<M: JointSensitivities<S = S>>(
        &mut self,
        model: &M,
        dims: &Dims,
        places: &JointPlaces<'_>,
        at: At<'_, S>,
        w: &mut [S],
        which: Which,
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
            if counts(dims, which, k) {
                put(nv + k, j, value);
                put(j, nv + k, value);
            }
        }
        for k in 0..dims.joint_rows() {
            if !counts(dims, which, k) {
                put(nv + k, nv + k, -S::ONE);
            }
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
        })?;

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
        read_lists(&self.rows, dims, places, which, &mut Product { columns, x, directions, y: self.b })?;
        let (_, rows) = cut_mut("b", self.b, dims.nv * columns)?;
        zero_inactive_rows(dims, which, columns, rows);
        Ok(())
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
        self.rows.evaluate(model, dims, &places, at, w)?;
        self.theta.fill(S::ZERO);

        // dv′
        copy(self.change, dv);
        self.evaluate_impulse(model, dims, &places, at, w, Which::Velocities)?;
        self.b.fill(S::ZERO);
        copy(cut_mut("b", self.b, dims.nv * columns)?.0, v_bar);
        self.transpose_blocks(dims, &places, Which::Velocities, columns, v_bar, rho)?;

        // dz′ = N dθ′ + N(z′) dθ
        tangents(system, at.z, 1, dz, self.change)?;
        self.evaluate_impulse(model, dims, &places, at, w, Which::Positions)?;
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
        let (_, rows) = cut_mut("x", self.x, dims.nv * columns)?;
        zero_inactive_rows(dims, which, columns, rows);
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
            reader.block(rows, places.rows, (THETA, minus, lists.jacobian))?;
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

/// Whether a row belongs to the correction.
fn counts(dims: &Dims, which: Which, k: usize) -> bool {
    which == Which::Velocities || k < dims.n_holonomic
}

/// Zero in the rows that do not belong to the correction.
fn zero_inactive_rows<S: Scalar>(dims: &Dims, which: Which, columns: usize, rows: &mut [S]) {
    for (k, row) in rows.chunks_exact_mut(columns.max(1)).enumerate() {
        if !counts(dims, which, k) {
            row.fill(S::ZERO);
        }
    }
}
