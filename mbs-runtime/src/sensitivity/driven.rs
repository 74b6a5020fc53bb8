//! Derivatives of a driven motion, instant by instant: constraints and drives determine it, so nothing of what came before counts.
//!
//! Input: a state that [`Assembly::driven`] left, with the multipliers of [`Assembly::driven_forces`] if objectives read them. Output: its
//! derivatives by ρ, or those of objectives at the instant. With B = (Φ_z; A), of which Φ_z alone determines positions,
//!
//! ```text
//! Φ_z z′ = −Φ_ρ
//! B zd′  = −(Φd; Ψ)_z z′ − (Φd; Ψ)_ρ
//! B zdd′ = −(Φdd; Ψd)_z z′ − (Φdd; Ψd)_zd zd′ − (Φdd; Ψd)_ρ
//! ```
//!
//! are the equations of `start` without anything held; the adjoint has their transposes in reverse. Multipliers follow as those of a start do.
//! Rows that depend on each other are solved together, and a parameter that not all of them can follow is refused by name. The adjoint does
//! not see that, so it refuses such rows.

use super::columns::Directions;
use super::derivatives::{ObjectiveDerivatives, Sensitivities};
use super::objectives::{Gradient, Weighed, chain, check};
use super::start::{Work, work_len};
use super::state::{StateDerivatives, objective_rows, rows as state_rows};
use super::step::{self, Enforcement, LinearisedStep, Purpose};
use crate::constrained::Stabilisation;
use crate::error::{EvalError, Level, StepError};
use crate::formulation::{Assembly, Record, State, refuse_projection_multipliers};
use crate::inputs::Inputs;
use crate::integrator::Formulas;
use crate::linear::{all_finite, copy};
use crate::pieces::{Pieces, cut_mut};
use crate::scalar::Scalar;
use crate::system::{Dims, Quantity};

const REDUNDANT: &str = "constraints depend on each other, and the adjoint of a driven motion does not see whether all of them can follow \
                         a parameter: take the direct method";

/// Which terms of the objectives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Term {
    /// Integrands.
    Integrand,
    /// Terminal terms.
    Terminal,
}

impl Assembly {
    /// Length of the scratch that the derivatives of a driven motion need, at least.
    #[inline(always)]
    pub const fn driven_scratch_len(dims: &Dims) -> usize {
        let (step, own, start) = (step::scratch_len(dims), work_len(dims), Self::scratch_len(dims));
        let most = if step > own { step } else { own };
        let most = if most > start { most } else { start };
        let objectives = dims.n_objectives;
        let columns =
            if objectives > dims.sensitivity.parameters { objectives } else { dims.sensitivity.parameters };
        let lists = dims.sensitivity.integrands + dims.sensitivity.terminals;
        let weights = objectives * (objectives + dims.sensitivity.parameters);
        most + dims.nu + Record::<f64>::len(dims) + 2 * state_rows(dims) * columns + lists + weights
    }

    /// Writes the derivatives of a driven state. `forces`: those of its multipliers, too, which must be known.
    pub fn driven_differentiated<M: Sensitivities, I: Inputs<M::S>>(
        &self,
        system: &M,
        inputs: &mut I,
        forces: bool,
        state: &mut [M::S],
        derivatives: &mut [M::S],
        scratch: &mut [M::S],
    ) -> Result<(), StepError> {
        let dims = system.dims();
        let mut pieces = Pieces::of(scratch, Self::driven_scratch_len(&dims));
        let u = pieces.next(dims.nu)?;
        let record = pieces.next(Record::<M::S>::len(&dims))?;
        let end = pieces.next(StateDerivatives::<M::S>::len(&dims))?;
        let scratch = pieces.rest();
        let view = State::of(&dims, state)?;
        if !u.is_empty() {
            inputs.at(*view.t, u);
        }
        derivatives.fill(M::S::ZERO);
        let change = StateDerivatives::of(&dims, derivatives)?;
        let mut work = Work::new(system, &[], &view, u, scratch)?;
        work.evaluate(view.z, view.zd)?;
        let mut changes = [change.z, change.zd, change.zdd];
        work.differentiate(Level::Position, &mut changes, Directions::Each)?;
        work.differentiate(Level::Velocity, &mut changes, Directions::Each)?;
        work.differentiate(Level::Acceleration, &mut changes, Directions::Each)?;
        if forces {
            standstill(system, &view, u, record, scratch)?.sensitivities(derivatives, end)?;
            copy(derivatives, end);
        }
        match all_finite(derivatives) {
            true => Ok(()),
            false => {
                let bad = derivatives.iter().position(|x| !x.is_finite()).unwrap_or(0);
                let index = bad % dims.sensitivity.parameters.max(1);
                let t = view.t.real();
                Err(StepError::NotFinite { t, h: 0.0, quantity: Quantity::Sensitivity, index })
            }
        }
    }

    /// Writes objectives at a driven state and their gradient, as [`Gradient`], from its derivatives.
    #[allow(clippy::too_many_arguments, reason = "an instant, its derivatives and what is made of them")]
    pub fn driven_objectives<M: ObjectiveDerivatives, I: Inputs<M::S>>(
        &self,
        system: &M,
        inputs: &mut I,
        term: Term,
        state: &mut [M::S],
        derivatives: &[M::S],
        gradient: &mut [M::S],
        scratch: &mut [M::S],
    ) -> Result<(), StepError> {
        let dims = system.dims();
        refuse_projection_multipliers(&dims)?;
        let mut pieces = Pieces::of(scratch, Self::driven_scratch_len(&dims));
        let u = pieces.next(dims.nu)?;
        let list = pieces.next(list_len(&dims, term))?;
        let view = State::of(&dims, state)?;
        let t = *view.t;
        if !u.is_empty() {
            inputs.at(t, u);
        }
        evaluate(system, term, &view, u, pieces.rest(), list)
            .and_then(|places| {
                let (rows, each) = (objective_rows(&dims), Directions::Each);
                chain(&dims, rows, places, list, derivatives, each, gradient)
            })
            .and_then(|()| check(&dims, gradient))
            .map_err(|error| error.in_step(t.real(), 0.0))
    }

    /// The same by the adjoint, without derivatives of the state: a column for each objective instead of one for each parameter.
    #[allow(clippy::too_many_arguments, reason = "an instant and what is made of it")]
    pub fn driven_adjoint<M: Sensitivities + ObjectiveDerivatives, I: Inputs<M::S>>(
        &self,
        system: &M,
        inputs: &mut I,
        forces: bool,
        term: Term,
        state: &mut [M::S],
        gradient: &mut [M::S],
        scratch: &mut [M::S],
    ) -> Result<(), StepError> {
        let dims = system.dims();
        refuse_projection_multipliers(&dims)?;
        let columns = dims.n_objectives;
        let mut pieces = Pieces::of(scratch, Self::driven_scratch_len(&dims));
        let u = pieces.next(dims.nu)?;
        let record = pieces.next(Record::<M::S>::len(&dims))?;
        let bar = pieces.next(state_rows(&dims) * columns)?;
        let next = pieces.next(state_rows(&dims) * columns)?;
        let list = pieces.next(list_len(&dims, term))?;
        let weights = pieces.next(columns * columns)?;
        let rho = pieces.next(dims.sensitivity.parameters * columns)?;
        let scratch = pieces.rest();
        let view = State::of(&dims, state)?;
        let t = *view.t;
        if view.active.iter().filter(|active| **active != M::S::ZERO).count() > dims.nq {
            return Err(StepError::NotDifferentiable { what: REDUNDANT });
        }
        if !u.is_empty() {
            inputs.at(t, u);
        }
        let fail = |error: EvalError| error.in_step(t.real(), 0.0);
        let wrong = StepError::Length {
            what: "gradient",
            expected: Gradient::<M::S>::len(&dims),
            found: gradient.len(),
        };
        let (objectives, gradient) = gradient.split_at_mut_checked(columns).ok_or(wrong)?;
        for part in [&mut *objectives, &mut *bar, &mut *rho, &mut *weights] {
            part.fill(M::S::ZERO);
        }
        for weight in weights.iter_mut().step_by(columns + 1) {
            *weight = M::S::ONE;
        }
        let places = evaluate(system, term, &view, u, scratch, list).map_err(fail)?;
        Weighed { columns, weights, objectives, bar, rho }
            .add(&dims, objective_rows(&dims), places, M::S::ONE, list)
            .map_err(fail)?;
        if forces {
            standstill(system, &view, u, record, scratch)?.add_transposed(columns, bar, next, rho)?;
            copy(bar, next);
        }
        let change = StateDerivatives::with_columns(&dims, columns, bar)?;
        let mut changes = [change.z, change.zd, change.zdd];
        let mut work = Work::new(system, &[], &view, u, scratch)?;
        work.evaluate(view.z, view.zd)?;
        let levels = [Level::Acceleration, Level::Velocity, Level::Position];
        // With forces, accelerations are already those of index 1.
        for level in levels.into_iter().skip(usize::from(forces)) {
            work.transpose(level, columns, &mut changes, rho).map_err(fail)?;
        }
        for (i, row) in gradient.chunks_exact_mut(dims.sensitivity.parameters.max(1)).enumerate() {
            for (to, &from) in row.iter_mut().zip(rho.iter().skip(i).step_by(columns)) {
                *to = from;
            }
        }
        match gradient.iter().position(|x| !x.is_finite()) {
            None => Ok(()),
            Some(bad) => {
                let index = bad / dims.sensitivity.parameters.max(1);
                Err(fail(EvalError::NotFinite { quantity: Quantity::Objective, index }))
            }
        }
    }
}

#[inline(always)]
const fn list_len(dims: &Dims, term: Term) -> usize {
    match term {
        Term::Integrand => dims.sensitivity.integrands,
        Term::Terminal => dims.sensitivity.terminals,
    }
}

/// Writes the list of a term; gives its places.
fn evaluate<'m, M: ObjectiveDerivatives>(
    system: &'m M,
    term: Term,
    state: &State<'_, M::S>,
    u: &[M::S],
    w: &mut [M::S],
    list: &mut [M::S],
) -> Result<&'m [(u32, u32)], EvalError> {
    let (w, _) = cut_mut("w", w, system.dims().workspace)?;
    let [integrands, terminals] = system.objective_places();
    let at = state.motion(u);
    match term {
        Term::Integrand => system.integrand_derivatives(at, state.lambda, w, list).map(|()| integrands),
        Term::Terminal => system.terminal_derivatives(at, state.lambda, w, list).map(|()| terminals),
    }
}

/// Accelerations and multipliers: index 1, standing still.
pub(super) fn standstill<'a, M: Sensitivities>(
    system: &'a M,
    state: &State<'_, M::S>,
    u: &[M::S],
    record: &mut [M::S],
    scratch: &'a mut [M::S],
) -> Result<LinearisedStep<'a, M>, StepError> {
    let mut recorded = Record::of(&system.dims(), record)?;
    recorded.of_start(state, u);
    let exact = Stabilisation { rate: M::S::ZERO, value: M::S::ZERO, compliance: M::S::ZERO };
    let enforcement = Enforcement::Accelerations(exact);
    LinearisedStep::new(system, Formulas::STANDSTILL, enforcement, Purpose::WHOLE, &recorded, scratch)
}
