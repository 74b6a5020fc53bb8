//! Objectives of an implicit run and their gradient: ψ = w(t_F) + ∫ g dt by the composite trapezoidal rule over the nodes.
//!
//! ψ_ρ = w_ρ + Σ w_x x_ρ + ∫ (g_ρ + Σ g_x x_ρ) dt over x = z, zd, zdd, λ, by the same rule: the derivative of the sum is the sum
//! of the derivatives.

use super::columns::{Directions, add_products, add_transposed, row, row_mut};
use super::derivatives::{ObjectiveDerivatives, Places};
use super::state::objective_rows;
use super::values::ObjectiveValues;
use crate::constrained::Motion;
use crate::error::{EvalError, StepError};
use crate::linear::{add_scaled, all_finite, copy};
use crate::pieces::{Pieces, cut, cut_mut};
use crate::scalar::Scalar;
use crate::system::{Dims, Quantity};

/// Objectives and their gradient, in a slice of the caller.
#[derive(Clone, Copy, Debug)]
pub struct Gradient<'a, S> {
    /// The objectives ψ.
    pub objectives: &'a [S],
    /// Their derivatives: of objective i by parameter k at `i * parameters + k`.
    pub derivatives: &'a [S],
    parameters: usize,
}

impl<'a, S> Gradient<'a, S> {
    /// Length of the slice; a constant for generated models.
    #[inline(always)]
    pub const fn len(dims: &Dims) -> usize {
        dims.n_objectives * (1 + dims.sensitivity.parameters)
    }

    /// The parts of what a run wrote.
    pub fn of(dims: &Dims, values: &'a [S]) -> Result<Self, StepError> {
        let wrong = StepError::Length { what: "gradient", expected: Self::len(dims), found: values.len() };
        let (objectives, derivatives) = values.split_at_checked(dims.n_objectives).ok_or(wrong)?;
        let parameters = dims.sensitivity.parameters;
        let complete = derivatives.len() == dims.n_objectives * parameters;
        if complete { Ok(Self { objectives, derivatives, parameters }) } else { Err(wrong) }
    }

    /// The gradient of an objective, by all parameters.
    pub fn of_objective(&self, index: usize) -> Option<&'a [S]> {
        row(self.derivatives, index, self.parameters)
    }
}

/// Integrals under way: their sums in a slice of the caller, the last integrands in scratch.
pub(crate) struct Integrals<'a, S> {
    sums: &'a mut [S],
    last: &'a mut [S],
    now: &'a mut [S],
    /// For what a bundle writes.
    values: &'a mut [S],
    t: Option<S>,
}

impl<'a, S: Scalar> Integrals<'a, S> {
    #[inline(always)]
    pub(crate) const fn scratch_len(dims: &Dims) -> usize {
        let lists = dims.sensitivity.integrands + dims.sensitivity.terminals;
        2 * Gradient::<f64>::len(dims) + lists
    }

    #[inline(always)]
    pub(crate) fn new(dims: &Dims, sums: &'a mut [S], pieces: &mut Pieces<'a, S>) -> Result<Self, StepError> {
        let (expected, found) = (Gradient::<S>::len(dims), sums.len());
        if expected != found {
            return Err(StepError::Length { what: "gradient", expected, found });
        }
        sums.fill(S::ZERO);
        let (last, now) = (pieces.next(expected)?, pieces.next(expected)?);
        let values = pieces.next(dims.sensitivity.integrands + dims.sensitivity.terminals)?;
        Ok(Self { sums, last, now, values, t: None })
    }

    /// Adds the node at `at`, where the state has these derivatives.
    #[inline(always)]
    pub(crate) fn add_node<M: ObjectiveDerivatives<S = S>>(
        &mut self,
        system: &M,
        at: Motion<'_, S>,
        lambda: &[S],
        derivatives: &[S],
        directions: Directions<'_, S>,
        w: &mut [S],
    ) -> Result<(), EvalError> {
        let dims = system.dims();
        if dims.n_objectives == 0 {
            return Ok(());
        }
        let [places, _] = system.objective_places();
        let (values, _) = cut_mut("values", self.values, dims.sensitivity.integrands)?;
        system.integrand_derivatives(at, lambda, w, values)?;
        chain(&dims, objective_rows(&dims), places, values, derivatives, directions, self.now)?;
        check(&dims, self.now)?;
        if let Some(before) = self.t {
            let half = S::from_f64(0.5) * (at.t - before);
            let nodes = self.last.iter().zip(self.now.iter());
            for (sum, (&last, &now)) in self.sums.iter_mut().zip(nodes) {
                *sum += half * (last + now);
            }
        }
        core::mem::swap(&mut self.last, &mut self.now);
        self.t = Some(at.t);
        Ok(())
    }

    /// Adds what the derivative h' of the last step's size does: h' (g_n + g_n+1)/2.
    #[inline(always)]
    pub(crate) fn add_size(&mut self, dims: &Dims, h_rho: &[S]) {
        if h_rho.iter().all(|h| *h == S::ZERO) {
            return;
        }
        // What was last before is where the next integrands go.
        let half = S::from_f64(0.5);
        let (_, gradient) = self.sums.split_at_mut_checked(dims.n_objectives).unwrap_or_default();
        let values = self.last.iter().zip(self.now.iter()).take(dims.n_objectives);
        for (gradient, (&g, &before)) in gradient.chunks_exact_mut(h_rho.len().max(1)).zip(values) {
            add_scaled(gradient, half * (g + before), h_rho);
        }
    }

    /// Adds the terminal terms, at the last node.
    pub(crate) fn add_terminals<M: ObjectiveDerivatives<S = S>>(
        &mut self,
        system: &M,
        at: Motion<'_, S>,
        lambda: &[S],
        derivatives: &[S],
        directions: Directions<'_, S>,
        w: &mut [S],
    ) -> Result<(), EvalError> {
        let dims = system.dims();
        if dims.n_objectives == 0 {
            return Ok(());
        }
        let [_, places] = system.objective_places();
        let (values, _) = cut_mut("values", self.values, dims.sensitivity.terminals)?;
        system.terminal_derivatives(at, lambda, w, values)?;
        add_chain(&dims, objective_rows(&dims), places, values, derivatives, directions, self.sums)?;
        check(&dims, self.sums)
    }
}

/// An error that names an objective if its value or one of its derivatives is not finite: it is not differentiable there.
#[inline(always)]
pub(crate) fn check<S: Scalar>(dims: &Dims, gradient: &[S]) -> Result<(), EvalError> {
    if all_finite(gradient) { Ok(()) } else { Err(undefined(dims, gradient)) }
}

#[cold]
fn undefined<S: Scalar>(dims: &Dims, gradient: &[S]) -> EvalError {
    let bad = gradient.iter().position(|x| !x.is_finite()).unwrap_or(0);
    let index = match bad.checked_sub(dims.n_objectives) {
        Some(derivative) => derivative / dims.sensitivity.parameters.max(1),
        None => bad,
    };
    EvalError::NotFinite { quantity: Quantity::Objective, index }
}

/// Into `to`: values, then Σ (derivative by a state's entry) × (its derivatives) + (derivative by ρ) × (directions of ρ). The state has
/// `states` entries.
#[inline(always)]
pub(crate) fn chain<S: Scalar>(
    dims: &Dims,
    states: usize,
    places: Places<'_>,
    values: &[S],
    derivatives: &[S],
    directions: Directions<'_, S>,
    to: &mut [S],
) -> Result<(), EvalError> {
    let columns = dims.sensitivity.parameters;
    let ObjectiveValues { values: plain, derivatives: partial } = ObjectiveValues::of(dims, places, values)?;
    let (objectives, gradient) = cut_mut("gradient", to, dims.n_objectives)?;
    copy(objectives, plain);
    gradient.fill(S::ZERO);
    add_partials(states, places, partial, columns, derivatives, directions, gradient)
}

/// The same, added to `to`.
pub(crate) fn add_chain<S: Scalar>(
    dims: &Dims,
    states: usize,
    places: Places<'_>,
    values: &[S],
    derivatives: &[S],
    directions: Directions<'_, S>,
    to: &mut [S],
) -> Result<(), EvalError> {
    let columns = dims.sensitivity.parameters;
    let ObjectiveValues { values: plain, derivatives: partial } = ObjectiveValues::of(dims, places, values)?;
    let (objectives, gradient) = cut_mut("gradient", to, dims.n_objectives)?;
    add_scaled(objectives, S::ONE, plain);
    add_partials(states, places, partial, columns, derivatives, directions, gradient)
}

/// Into `gradient`: what the derivatives of objectives make of those of the state, and of the directions of ρ. Places beyond the state, which
/// its products pass over, are those of ρ.
#[inline(always)]
fn add_partials<S: Scalar>(
    states: usize,
    places: Places<'_>,
    partial: &[S],
    columns: usize,
    derivatives: &[S],
    directions: Directions<'_, S>,
    gradient: &mut [S],
) -> Result<(), EvalError> {
    let (x, _) = cut("derivatives", derivatives, states * columns)?;
    add_products(places, columns, [(S::ONE, partial, x)], gradient)?;
    for (i, k, value) in by_parameters(states, places, partial) {
        let Some(gradient) = row_mut(gradient, i, columns) else { continue };
        match directions {
            Directions::Each => {
                if let Some(gradient) = gradient.get_mut(k) {
                    *gradient += value;
                }
            }
            Directions::Along(rho) => {
                if let Some(rho) = row(rho, k, columns) {
                    add_scaled(gradient, value, rho);
                }
            }
        }
    }
    Ok(())
}

/// The derivatives of objectives by parameters one by one: the objective, the parameter, the value.
#[inline(always)]
fn by_parameters<S: Scalar>(
    states: usize,
    places: Places<'_>,
    partial: &[S],
) -> impl Iterator<Item = (usize, usize, S)> {
    let entries = places.iter().zip(partial);
    entries.filter_map(move |(&(i, j), &value)| Some((i as usize, (j as usize).checked_sub(states)?, value)))
}

/// Objectives on the way back: their values, and what their weights ψ̄ make of the weights of state and parameters.
pub(crate) struct Weighed<'a, S> {
    pub(crate) columns: usize,
    /// ψ̄, a row for each objective.
    pub(crate) weights: &'a [S],
    pub(crate) objectives: &'a mut [S],
    pub(crate) bar: &'a mut [S],
    pub(crate) rho: &'a mut [S],
}

impl<S: Scalar> Weighed<'_, S> {
    /// ψ = ψ + q g, x̄ = x̄ + q g_xᵀ ψ̄, ρ̄ = ρ̄ + q g_ρᵀ ψ̄ for what a bundle wrote.
    pub(crate) fn add(
        &mut self,
        dims: &Dims,
        states: usize,
        places: Places<'_>,
        q: S,
        values: &[S],
    ) -> Result<(), EvalError> {
        let list = ObjectiveValues::of(dims, places, values)?;
        let (plain, partial) = (list.values, list.derivatives);
        if let Some(index) = plain.iter().position(|x| !x.is_finite()) {
            return Err(EvalError::NotFinite { quantity: Quantity::Objective, index });
        }
        if let Some((_, &(index, _))) = partial.iter().zip(places).find(|(value, _)| !value.is_finite()) {
            let index = index as usize;
            return Err(EvalError::NotFinite { quantity: Quantity::Objective, index });
        }
        add_scaled(self.objectives, q, plain);
        let (bar, _) = cut_mut("bar", self.bar, states * self.columns)?;
        add_transposed(places, partial, q, self.columns, self.weights, bar)?;
        for (index, k, value) in by_parameters(states, places, partial) {
            let (to, weights) = (row_mut(self.rho, k, self.columns), row(self.weights, index, self.columns));
            if let (Some(to), Some(weights)) = (to, weights) {
                add_scaled(to, q * value, weights);
            }
        }
        Ok(())
    }
}

/// Objectives along directions of state and parameters: their values and changes.
pub(crate) struct Along<'a, S> {
    pub(crate) columns: usize,
    pub(crate) x: &'a [S],
    pub(crate) rho: &'a [S],
    pub(crate) objectives: &'a mut [S],
    pub(crate) changes: &'a mut [S],
}

impl<S: Scalar> Along<'_, S> {
    /// ψ = ψ + q g, ψ′ = ψ′ + q (g_x x′ + g_ρ ρ′) for what a bundle wrote.
    pub(crate) fn add(
        &mut self,
        dims: &Dims,
        states: usize,
        places: Places<'_>,
        q: S,
        values: &[S],
    ) -> Result<(), EvalError> {
        let list = ObjectiveValues::of(dims, places, values)?;
        let (plain, partial) = (list.values, list.derivatives);
        if let Some(index) = plain.iter().position(|x| !x.is_finite()) {
            return Err(EvalError::NotFinite { quantity: Quantity::Objective, index });
        }
        add_scaled(self.objectives, q, plain);
        let (x, _) = cut("x", self.x, states * self.columns)?;
        add_products(places, self.columns, [(q, partial, x)], self.changes)?;
        for (index, k, value) in by_parameters(states, places, partial) {
            let (from, to) = (row(self.rho, k, self.columns), row_mut(self.changes, index, self.columns));
            if let (Some(from), Some(to)) = (from, to) {
                add_scaled(to, q * value, from);
            }
        }
        Ok(())
    }
}

/// Into `gradient`, ψ_ρ = ρ̄ᵀ + x̄ᵀ x_ρ: for `columns` objectives and p parameters, from the derivatives x_ρ of a start.
pub(crate) fn transpose_derivatives<S: Scalar>(
    p: usize,
    columns: usize,
    start: &[S],
    bar: &[S],
    rho: &[S],
    gradient: &mut [S],
) {
    for (i, gradient) in gradient.chunks_exact_mut(p.max(1)).enumerate() {
        for (to, rho) in gradient.iter_mut().zip(rho.iter().skip(i).step_by(columns.max(1))) {
            *to = *rho;
        }
        let weights = bar.iter().skip(i).step_by(columns.max(1));
        for (&weight, x) in weights.zip(start.chunks_exact(p.max(1))) {
            add_scaled(gradient, weight, x);
        }
    }
}
