//! Projections with the matrix of the tangent: what the derivative of P adds to the stages of a step.
//!
//! P is the symmetric part of W = M + γh C + βh² K at z, zd*, zdd*, λ*. So the equations of the projections, P d + Bᵀσ = 0 and P e + Bᵀκ = 0, have
//! the further derivatives
//!
//! ```text
//! (P d)′ = (P d)_z z′ + (P d)_zd zd*′ + (P d)_zdd zdd*′ + (P d)_λ λ*′ + (P d)_ρ      and alike (P e)′
//! ```
//!
//! with d and e held. Their rows come from [`Sensitivities::tangent_product`], one call for each: third derivatives of the energy, so
//! that a step costs 2 nq calls more. Where rows depend on each other K belongs to λ* of least norm, and λ*′ is that of the
//! multipliers of least norm, too.
//!
//! In runs past events the size of the step has derivatives. γh and βh² are weights of P, so that
//!
//! ```text
//! (P d)_h = (sym G) d      h G = γh C + 2 βh² K      and alike (P e)_h
//! ```

use super::columns::Directions;
use super::derivatives::{Impulses, Sensitivities};
use super::state::StateDerivatives;
use super::step::{LinearisedStep, max_columns};
use super::values::MotionValues;
use crate::error::{EvalError, StepError};
use crate::formulation::Record;
use crate::linear::add_scaled;
use crate::pieces::{Pieces, cut, cut_mut};
use crate::scalar::Scalar;
use crate::system::Dims;

/// (P d)′ and (P e)′ as matrices.
pub(super) struct TangentImpulses<'a, S> {
    /// Rows of P d, then of P e; columns z, zd, zdd, λ, ρ.
    values: &'a mut [S],
    /// (P d)_h, then (P e)_h.
    by_size: &'a mut [S],
    /// Derivatives of the size of the step, on the way forward; none where it has none.
    pub(super) size: &'a [S],
    /// What the last transposed product weighs the size of the step by P.
    size_weights: &'a mut [S],
}

/// Columns of z, zd, zdd, λ.
const fn motion_rows(dims: &Dims) -> usize {
    3 * dims.nq + dims.rows()
}

/// Columns of z, zd, zdd, λ, ρ.
const fn width(dims: &Dims) -> usize {
    motion_rows(dims) + dims.sensitivity.parameters
}

/// Values of a matrix.
#[inline(always)]
const fn matrix_len(dims: &Dims) -> usize {
    dims.sensitivity.tangent_product * width(dims)
}

impl<'a, S: Scalar> TangentImpulses<'a, S> {
    /// Length of its memory: none for a model without the products.
    #[inline(always)]
    pub(super) const fn len(dims: &Dims) -> usize {
        2 * matrix_len(dims) + 2 * dims.sensitivity.tangent_product + weights_len(dims)
    }

    pub(super) fn new(dims: &Dims, pieces: &mut Pieces<'a, S>) -> Result<Self, StepError> {
        Ok(Self {
            values: pieces.next(2 * matrix_len(dims))?,
            by_size: pieces.next(2 * dims.sensitivity.tangent_product)?,
            size: &[],
            size_weights: pieces.next(weights_len(dims))?,
        })
    }

    /// Adds what the last transposed product weighs the size of the step by P.
    pub(super) fn add_size_weights(&self, to: &mut [S]) {
        add_scaled(to, S::ONE, self.size_weights);
    }
}

/// Columns of a transposed product.
#[inline(always)]
const fn weights_len(dims: &Dims) -> usize {
    if dims.sensitivity.tangent_product > 0 { max_columns(dims) } else { 0 }
}

/// to = to − (rows of a matrix) x′
fn subtract<S: Scalar>(
    dims: &Dims,
    columns: usize,
    matrix: &[S],
    x: &StateDerivatives<'_, S>,
    directions: Directions<'_, S>,
    to: &mut [S],
) -> Result<(), EvalError> {
    for (row, to) in matrix.chunks_exact(width(dims)).zip(to.chunks_exact_mut(columns.max(1))) {
        let (by_motion, by_rho) = cut("values", row, motion_rows(dims))?;
        let parts = [&*x.z, &*x.zd, &*x.zdd, &*x.lambda];
        let rows = parts.into_iter().flat_map(|part| part.chunks_exact(columns.max(1)));
        for (&slope, x) in by_motion.iter().zip(rows) {
            add_scaled(to, -slope, x);
        }
        match directions {
            Directions::Each => add_scaled(to, -S::ONE, by_rho),
            Directions::Along(rho) => {
                for (&slope, direction) in by_rho.iter().zip(rho.chunks_exact(columns.max(1))) {
                    add_scaled(to, -slope, direction);
                }
            }
        }
    }
    Ok(())
}

/// (x̄, ρ̄) = (x̄, ρ̄) − (rows of a matrix)ᵀ y
fn subtract_transposed<S: Scalar>(
    dims: &Dims,
    columns: usize,
    matrix: &[S],
    y: &[S],
    bar: &mut StateDerivatives<'_, S>,
    rho: &mut [S],
) -> Result<(), EvalError> {
    for (row, y) in matrix.chunks_exact(width(dims)).zip(y.chunks_exact(columns.max(1))) {
        let parts = [&mut *bar.z, &mut *bar.zd, &mut *bar.zdd, &mut *bar.lambda, &mut *rho];
        let rows = parts.into_iter().flat_map(|part| part.chunks_exact_mut(columns.max(1)));
        for (&slope, to) in row.iter().zip(rows) {
            add_scaled(to, -slope, y);
        }
    }
    Ok(())
}

impl<M: Sensitivities> LinearisedStep<'_, M> {
    /// Writes the rows of (P d)′ and (P e)′; d and e are in `spare`.
    #[cold]
    pub(super) fn differentiate_tangent(&mut self, record: &Record<'_, M::S>) -> Result<(), EvalError> {
        let dims = self.system.dims();
        let (nq, n) = (dims.nq, dims.nq + dims.rows());
        let [d, e, kappa] = &self.spare;
        let impulses = Impulses {
            velocity: d,
            velocity_multipliers: record.sigma,
            acceleration: e,
            acceleration_multipliers: kappa,
        };
        let (yd, rest) = cut_mut("column", self.column, n)?;
        let (ydd, _) = cut_mut("column", rest, n)?;
        yd.fill(M::S::ZERO);
        ydd.fill(M::S::ZERO);
        let (of_d, of_e) = cut_mut("values", self.tangent.values, matrix_len(&dims))?;
        for (second, matrix) in [of_d, of_e].into_iter().enumerate() {
            for (i, row) in matrix.chunks_exact_mut(width(&dims)).enumerate() {
                let unit = |y: &mut [M::S], value| {
                    if let Some(y) = y.get_mut(i) {
                        *y = value;
                    }
                };
                unit(if second == 1 { &mut *ydd } else { &mut *yd }, M::S::ONE);
                let (z, rest) = cut_mut("values", row, nq)?;
                let (zd, rest) = cut_mut("values", rest, nq)?;
                let (zdd, rest) = cut_mut("values", rest, nq)?;
                let (multipliers, rho) = cut_mut("values", rest, dims.rows())?;
                let (at, lambda, weights) = (record.motion(), &*record.lambda_star, self.formulas.weights);
                self.system.tangent_product(
                    at,
                    lambda,
                    weights,
                    impulses,
                    yd,
                    ydd,
                    self.w,
                    z,
                    zd,
                    zdd,
                    multipliers,
                    rho,
                )?;
                unit(if second == 1 { &mut *ydd } else { &mut *yd }, M::S::ZERO);
            }
        }
        self.differentiate_tangent_by_size()
    }

    /// (sym G) d and (sym G) e; C and K are in the list of the motion.
    fn differentiate_tangent_by_size(&mut self) -> Result<(), EvalError> {
        let (pattern, places) = (self.system.pattern(), self.system.parameter_places());
        let values = MotionValues::of(&pattern, &places, self.lists.motion)?;
        let weights = self.formulas.weights;
        let half = M::S::from_f64(0.5) / self.formulas.h;
        self.tangent.by_size.fill(M::S::ZERO);
        let (of_d, of_e) = cut_mut("values", self.tangent.by_size, self.system.dims().nq)?;
        let [d, e, _] = &self.spare;
        let parts = values.by_velocity.iter().zip(values.by_position);
        for (&(i, j), (&c, &k)) in pattern.tangent.iter().zip(parts) {
            let g = half * (weights.velocity * c + M::S::from_f64(2.0) * weights.position * k);
            for (x, to) in [(d, &mut *of_d), (e, &mut *of_e)] {
                for (i, j) in [(i, j), (j, i)] {
                    if let (Some(to), Some(&x)) = (to.get_mut(i as usize), x.get(j as usize)) {
                        *to += g * x;
                    }
                }
            }
        }
        Ok(())
    }

    /// b = b − (P d)′, and −(P e)′ for the next stage: both belong to the instant before the projections.
    pub(super) fn subtract_tangent(
        &mut self,
        columns: usize,
        directions: Directions<'_, M::S>,
        end: &StateDerivatives<'_, M::S>,
    ) -> Result<(), EvalError> {
        let dims = self.system.dims();
        let (of_d, of_e) = cut("values", self.tangent.values, matrix_len(&dims))?;
        let (b, _) = cut_mut("b", self.b, dims.nq * columns)?;
        subtract(&dims, columns, of_d, end, directions, b)?;
        let (later, _) = cut_mut("costates", self.costates, dims.nq * columns)?;
        later.fill(M::S::ZERO);
        subtract(&dims, columns, of_e, end, directions, later)?;
        let (of_d, of_e) = cut("values", self.tangent.by_size, dims.nq)?;
        for (slopes, to) in [(of_d, b), (of_e, later)] {
            for (&slope, to) in slopes.iter().zip(to.chunks_exact_mut(columns.max(1))) {
                add_scaled(to, -slope, self.tangent.size);
            }
        }
        Ok(())
    }

    /// The transpose of both: y of the projection of velocities is in `x`, that of accelerations in `costates`.
    pub(super) fn subtract_tangent_transposed(
        &mut self,
        columns: usize,
        bar: &mut StateDerivatives<'_, M::S>,
        rho: &mut [M::S],
    ) -> Result<(), EvalError> {
        let dims = self.system.dims();
        let (of_d, of_e) = cut("values", self.tangent.values, matrix_len(&dims))?;
        let (yd, _) = cut("x", self.x, dims.nq * columns)?;
        let (ydd, _) = cut("costates", self.costates, dims.nq * columns)?;
        subtract_transposed(&dims, columns, of_d, yd, bar, rho)?;
        subtract_transposed(&dims, columns, of_e, ydd, bar, rho)?;
        self.tangent.size_weights.fill(M::S::ZERO);
        let (of_d, of_e) = cut("values", self.tangent.by_size, dims.nq)?;
        for (slopes, y) in [(of_d, yd), (of_e, ydd)] {
            for (&slope, y) in slopes.iter().zip(y.chunks_exact(columns.max(1))) {
                add_scaled(self.tangent.size_weights, -slope, y);
            }
        }
        Ok(())
    }
}
