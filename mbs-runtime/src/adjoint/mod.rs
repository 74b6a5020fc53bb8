//! Discrete adjoints: derivatives of a run's objectives by everything that enters it, at a cost that hardly grows with the number of
//! parameters.
//!
//! Input: a state at the start and weights of what the run leaves: of its objectives ψ and of its state at the end. Output: the same
//! weights of what enters it, x̄ of the state at the start and ρ̄ of the parameters. It is the exact transpose of the derivative
//! that [`Differentiated`](crate::Differentiated) takes forward, of the same discrete solution: both agree to rounding. For steps
//! x_k+1 = s(x_k, ρ) and ψ = w(x_N, ρ) + Σ q_k g(x_k, ρ) with the weights q_k of the quadrature,
//!
//! ```text
//! x̄_N = w_xᵀ ψ̄ + q_N g_xᵀ ψ̄                        ρ̄ = w_ρᵀ ψ̄ + Σ q_k g_ρᵀ ψ̄ + Σ s_ρᵀ x̄_k+1
//! x̄_k = s_xᵀ x̄_k+1 + q_k g_xᵀ ψ̄
//! ```
//!
//! | what | input → output |
//! |---|---|
//! | [`Adjoint`] | a run → vector–Jacobian products, gradients |
//! | [`JacobianVector`] | the same derivative, forward along given directions |
//! | [`Schedule`] | number of steps, memory → how many records and states are kept, how many steps are made again |
//!
//! All memory is the caller's.

pub(crate) mod checkpoints;
mod continuous;
pub(crate) mod explicit;
mod forward;
pub(crate) mod implicit;
pub(crate) mod items;

pub use checkpoints::Schedule;
pub use continuous::ContinuousAdjoint;
pub use explicit::AdjointIntegrator;
pub use implicit::AdjointNode;

pub use crate::sensitivity::JacobianVector;

use crate::error::StepError;
use crate::integrator::Statistics;
use crate::linear::all_finite;
use crate::pieces::{Pieces, cut_mut};
use crate::scalar::Scalar;
use crate::sensitivity::{Gradient, transpose_derivatives};
use crate::system::{Dims, Quantity};

/// The adjoint of a run: that of [`Fixed`](crate::Fixed).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adjoint<T>(pub T);

/// A vector–Jacobian product of the run (state at start, ρ) ↦ (objectives, state at end), several columns at once: row i of column
/// k of a matrix is at `i * columns + k`.
#[derive(Debug)]
pub struct VectorJacobian<'a, S> {
    /// Columns.
    pub columns: usize,
    /// Weights of the objectives, a row for each.
    pub objective_weights: &'a [S],
    /// Weights of the state at the end, as [`StateDerivatives`](crate::StateDerivatives) with these columns; none if it is empty.
    pub end_weights: &'a [S],
    /// Gets the objectives.
    pub objectives: &'a mut [S],
    /// Gets the weights of the state at the start, in the same layout.
    pub start: &'a mut [S],
    /// Gets the weights of the parameters, a row for each; what the start depends on is not in it.
    pub rho: &'a mut [S],
}

impl<S> VectorJacobian<'_, S> {
    /// Checks lengths; `rows` are those of a state.
    pub(crate) fn check(&self, dims: &Dims, rows: usize) -> Result<(), StepError> {
        let Self { columns, .. } = *self;
        let end = if self.end_weights.is_empty() { 0 } else { rows * columns };
        let lengths = [
            ("objective weights", dims.n_objectives * columns, self.objective_weights.len()),
            ("end weights", end, self.end_weights.len()),
            ("objectives", dims.n_objectives, self.objectives.len()),
            ("start", rows * columns, self.start.len()),
            ("rho", dims.sensitivity.parameters * columns, self.rho.len()),
        ];
        match lengths.into_iter().find(|(_, expected, found)| expected != found) {
            Some((what, expected, found)) => Err(StepError::Length { what, expected, found }),
            None => Ok(()),
        }
    }
}

/// Numbers of [`gradient_by_product`], beside the scratch of the product; a state has `rows`.
#[inline(always)]
pub(crate) const fn gradient_len(dims: &Dims, rows: usize) -> usize {
    (dims.n_objectives + rows + dims.sensitivity.parameters) * dims.n_objectives
}

/// The objectives and their gradient, see [`Gradient`]: the product with each objective alone, and what the start depends on. `start`: its
/// derivatives, a row for each of the state's `rows`. `run` takes a product back, with what is left of the scratch.
pub(crate) fn gradient_by_product<S: Scalar>(
    dims: &Dims,
    rows: usize,
    end: S,
    start: &[S],
    gradient: &mut [S],
    scratch: &mut [S],
    run: impl FnOnce(VectorJacobian<'_, S>, &mut [S]) -> Result<AdjointStatistics, StepError>,
) -> Result<AdjointStatistics, StepError> {
    let (columns, p) = (dims.n_objectives, dims.sensitivity.parameters);
    let lengths = [("gradient", Gradient::<S>::len(dims), gradient.len()), ("start", rows * p, start.len())];
    if let Some((what, expected, found)) = lengths.into_iter().find(|(_, a, b)| a != b) {
        return Err(StepError::Length { what, expected, found });
    }
    let mut pieces = Pieces::of(scratch, gradient_len(dims, rows));
    let weights = pieces.next(columns * columns)?;
    let bar = pieces.next(rows * columns)?;
    let rho = pieces.next(p * columns)?;
    weights.fill(S::ZERO);
    for weight in weights.iter_mut().step_by(columns + 1) {
        *weight = S::ONE;
    }
    let (objectives, derivatives) =
        cut_mut("gradient", gradient, columns).map_err(|error| error.in_step(end.real(), 0.0))?;
    let product = VectorJacobian {
        columns,
        objective_weights: weights,
        end_weights: &[],
        objectives,
        start: &mut *bar,
        rho: &mut *rho,
    };
    let statistics = run(product, pieces.rest())?;
    // ψ_ρ = ρ̄ᵀ + x̄ᵀ x_ρ
    transpose_derivatives(p, columns, start, bar, rho, derivatives);
    check_weights(1, end, S::ZERO, derivatives)?;
    Ok(statistics)
}

/// What an adjoint run took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdjointStatistics {
    /// The run itself.
    pub run: Statistics,
    /// Steps made again on the way back, as [`Schedule::recomputed`] said.
    pub recomputed: usize,
    /// How the memory was used.
    pub schedule: Schedule,
}

/// The number of parameters from which on the adjoint is expected to be quicker than the direct derivative, with this many objectives.
/// `schedule`: none if the number of steps is not known before the run, which is then made twice. docs/adjoints.md says what was measured.
pub fn pays_from(objectives: usize, schedule: Option<&Schedule>) -> usize {
    let (again, steps) = schedule.map_or((1, 1), |plan| (plan.recomputed(), plan.steps.max(1)));
    let again = again.saturating_mul(STEP_MADE_AGAIN).div_ceil(steps);
    objectives.saturating_add(WAY_BACK).saturating_add(again)
}

/// Parameters that cost as much as the way back beside its objectives, and as a step made again.
const WAY_BACK: usize = 2;
const STEP_MADE_AGAIN: usize = 4;

/// Rows of the weights of an implicit run's state: z, zd, zdd, λ, a.
pub const fn state_rows(dims: &Dims) -> usize {
    crate::sensitivity::state_rows(dims)
}

/// An error that names a column if one of its weights is not finite.
pub(crate) fn check_weights<S: Scalar>(columns: usize, t: S, h: S, bar: &[S]) -> Result<(), StepError> {
    if all_finite(bar) {
        return Ok(());
    }
    let index = bar.iter().position(|x| !x.is_finite()).unwrap_or(0) % columns.max(1);
    Err(StepError::NotFinite { t: t.real(), h: h.real(), quantity: Quantity::Objective, index })
}
