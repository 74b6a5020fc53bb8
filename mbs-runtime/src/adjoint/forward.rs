//! Jacobian–vector products of implicit runs: (state at start, ρ) ↦ (objectives, state at end), forward along given directions.
//!
//! ```text
//! x′_k+1 = s_x x′_k + s_ρ ρ′      ψ′ = w_x x′_N + w_ρ ρ′ + Σ q_k (g_x x′_k + g_ρ ρ′)
//! ```
//!
//! The same discrete derivative as that of [`Adjoint`](super::Adjoint), read forward: ⟨ȳ, J x′⟩ = ⟨Jᵀ ȳ, x′⟩.

use crate::constrained::Motion;
use crate::error::{EvalError, StepError};
use crate::formulation::{Record, State};
use crate::inputs::Inputs;
use crate::integrator::{Fixed, Nodes, Span, Statistics};
use crate::linear::copy;
use crate::pieces::{Pieces, cut_mut};
use crate::scalar::Scalar;
use crate::sensitivity::{
    Along, DifferentiableStep, Differentiated, JacobianVector, ObjectiveDerivatives, Sensitivities,
    linearised_len, objective_rows, state_rows,
};
use crate::system::Dims;

impl<T: DifferentiableStep> Differentiated<Fixed<T>> {
    /// Length of the scratch of [`Differentiated::jacobian_vector`], at least.
    pub fn jacobian_vector_scratch_len(&self, dims: &Dims, columns: usize) -> usize {
        let (step, linearised) = (self.0.method.scratch_len(dims), linearised_len(dims));
        let most = if step > linearised { step } else { linearised };
        let lists = dims.sensitivity.integrands + dims.sensitivity.terminals;
        dims.nu + Record::<f64>::len(dims) + state_rows(dims) * columns + lists + most
    }

    /// Integrates the [`State`] from start to end of the span, and takes directions along.
    pub fn jacobian_vector<M, I>(
        &self,
        system: &M,
        inputs: &mut I,
        state: &mut [M::S],
        span: &Span<M::S>,
        product: JacobianVector<'_, M::S>,
        scratch: &mut [M::S],
    ) -> Result<Statistics, StepError>
    where
        M: Sensitivities + ObjectiveDerivatives,
        I: Inputs<M::S>,
    {
        let Fixed { method, h } = &self.0;
        let (dims, nodes) = (system.dims(), Nodes::new(span, *h)?);
        product.check(&dims, state_rows(&dims))?;
        let JacobianVector { columns, start, rho, objectives, objective_changes, end } = product;
        let mut pieces = Pieces::of(scratch, self.jacobian_vector_scratch_len(&dims, columns));
        let u = pieces.next(dims.nu)?;
        let record = pieces.next(Record::<M::S>::len(&dims))?;
        let next = pieces.next(state_rows(&dims) * columns)?;
        let lists = pieces.next(dims.sensitivity.integrands + dims.sensitivity.terminals)?;
        let scratch = pieces.rest();
        objectives.fill(M::S::ZERO);
        objective_changes.fill(M::S::ZERO);
        copy(end, start);
        let mut statistics = Statistics { t: nodes.time(0).real(), ..Statistics::default() };
        for number in 0..=nodes.steps {
            let t = nodes.time(number);
            if number > 0 {
                let h = nodes.size(number, nodes.time(number - 1));
                let made = method.step_recorded(system, inputs, state, h, record, scratch)?;
                let mut linearised = method.linearise_made(&made, true, system, record, scratch)?;
                linearised.apply(columns, end, rho, next)?;
                copy(end, next);
                *State::of(&dims, state)?.t = t;
                statistics.add(t.real(), h.real(), &made);
            }
            if dims.n_objectives == 0 {
                continue;
            }
            let fail = |error: EvalError| error.in_step(t.real(), 0.0);
            if !u.is_empty() {
                inputs.at(t, u);
            }
            let view = State::of(&dims, state)?;
            let at = Motion { t, z: view.z, zd: view.zd, zdd: view.zdd, u };
            let (first, last) =
                (nodes.time(number.saturating_sub(1)), nodes.time((number + 1).min(nodes.steps)));
            let q = M::S::from_f64(0.5) * (last - first);
            let [integrands, terminals] = system.objective_places();
            let mut along = Along { columns, x: end, rho, objectives, changes: objective_changes };
            let (values, rest) = cut_mut("values", lists, dims.sensitivity.integrands).map_err(fail)?;
            system.integrand_derivatives(at, view.lambda, scratch, values).map_err(fail)?;
            along.add(&dims, objective_rows(&dims), integrands, q, values).map_err(fail)?;
            if number == nodes.steps {
                system.terminal_derivatives(at, view.lambda, scratch, rest).map_err(fail)?;
                along.add(&dims, objective_rows(&dims), terminals, M::S::ONE, rest).map_err(fail)?;
            }
        }
        Ok(statistics)
    }
}
