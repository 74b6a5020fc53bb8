//! Runs of equal implicit steps together with their derivatives by the parameters.
//!
//! Input: a state and its derivatives at the start, see [`Assembly::start_differentiated`](crate::Assembly). Output: both at the
//! end, objectives and their gradient; derivatives at every node for an observer. The states are those of
//! [`Fixed::run`](crate::Fixed), bit for bit.

use core::ops::ControlFlow;

use super::at_once;
use super::augmented::write_clock;
use super::columns::{Directions, row, row_mut};
use super::derivatives::{ObjectiveDerivatives, Sensitivities};
#[allow(unused_imports, reason = "named in the documentation")]
use super::objectives::Gradient;
use super::objectives::Integrals;
use super::state::{StateDerivatives, objective_rows};
use super::step::{LinearisedStep, Purpose, scratch_len};
use crate::error::StepError;
use crate::formulation::run::check_start;
use crate::formulation::{Ali3p, ImplicitIndex1, ImplicitStep, Node, Record, State};
use crate::inputs::Inputs;
use crate::integrator::{
    Fixed, Formulas, Hooks, Implicit, Next, Nodes, Planned, Span, Statistics, StepStatistics, Stepper, Taken,
    copy_all, drive,
};
use crate::linear::{add_scaled, all_finite, copy};
use crate::pieces::Pieces;
use crate::scalar::Scalar;
use crate::system::{Dims, Quantity};

/// A run with derivatives: that of [`Fixed`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Differentiated<T>(pub T);

/// An implicit step with a derivative.
pub trait DifferentiableStep: ImplicitStep {
    /// [`ImplicitStep::step`] that also fills the [`Record`] of the step.
    fn step_recorded<M: Sensitivities, I: Inputs<M::S>>(
        &self,
        system: &M,
        inputs: &mut I,
        state: &mut [M::S],
        h: M::S,
        record: &mut [M::S],
        scratch: &mut [M::S],
    ) -> Result<StepStatistics, StepError>;

    /// The derivative of the recorded step, which lives in the scratch of [`Ali3p::linearised_scratch_len`] values.
    fn linearise<'a, M: Sensitivities>(
        &self,
        system: &'a M,
        record: &mut [M::S],
        scratch: &'a mut [M::S],
    ) -> Result<LinearisedStep<'a, M>, StepError>;

    /// The integrator, where velocities and accelerations are projected in the norm of M: such a step may have a derivative by one bundle,
    /// [`Sensitivities::differentiate_step`].
    fn projects(&self) -> Option<Implicit>;

    /// The same for transposed products of this many columns alone, which may be less work: by the bundles of products where the model has
    /// them. The record must stay as it is. `multipliers`: whether their weights are other than zero.
    fn linearise_transposed<'a, M: Sensitivities>(
        &self,
        columns: usize,
        multipliers: bool,
        system: &'a M,
        record: &mut [M::S],
        scratch: &'a mut [M::S],
    ) -> Result<LinearisedStep<'a, M>, StepError>;

    /// [`DifferentiableStep::linearise`] right after the step that has been `made` in the same scratch, which is less work. Where rows depend
    /// on each other and `multipliers` are not asked for, λ′ is that of some multipliers that give the same forces, for still less.
    fn linearise_made<'a, M: Sensitivities>(
        &self,
        made: &StepStatistics,
        multipliers: bool,
        system: &'a M,
        record: &mut [M::S],
        scratch: &'a mut [M::S],
    ) -> Result<LinearisedStep<'a, M>, StepError>;
}

macro_rules! differentiable_step {
    ($($formulation:ty),+) => {
        $(
            impl DifferentiableStep for $formulation {
                #[inline(always)]
                fn step_recorded<M: Sensitivities, I: Inputs<M::S>>(
                    &self,
                    system: &M,
                    inputs: &mut I,
                    state: &mut [M::S],
                    h: M::S,
                    record: &mut [M::S],
                    scratch: &mut [M::S],
                ) -> Result<StepStatistics, StepError> {
                    self.step_recorded(system, inputs, state, h, record, scratch)
                }

                #[inline(always)]
                fn linearise<'a, M: Sensitivities>(
                    &self,
                    system: &'a M,
                    record: &mut [M::S],
                    scratch: &'a mut [M::S],
                ) -> Result<LinearisedStep<'a, M>, StepError> {
                    self.linearise(system, record, scratch)
                }

                #[inline(always)]
                fn projects(&self) -> Option<Implicit> {
                    self.projects()
                }

                #[inline(always)]
                fn linearise_transposed<'a, M: Sensitivities>(
                    &self,
                    columns: usize,
                    multipliers: bool,
                    system: &'a M,
                    record: &mut [M::S],
                    scratch: &'a mut [M::S],
                ) -> Result<LinearisedStep<'a, M>, StepError> {
                    let purpose = Purpose::transposed(columns, multipliers);
                    self.linearise_for(purpose, system, record, scratch)
                }

                #[inline(always)]
                fn linearise_made<'a, M: Sensitivities>(
                    &self,
                    made: &StepStatistics,
                    multipliers: bool,
                    system: &'a M,
                    record: &mut [M::S],
                    scratch: &'a mut [M::S],
                ) -> Result<LinearisedStep<'a, M>, StepError> {
                    // Factors of the dense LU stand elsewhere.
                    let purpose = Purpose { multipliers, kept: made.fallbacks == 0, transposed: None };
                    self.linearise_for(purpose, system, record, scratch)
                }
            }
        )+
    };
}
differentiable_step!(Ali3p, ImplicitIndex1);

/// Length of the scratch of a run whose steps need `step` values; a constant for generated models.
pub(crate) const fn scratch_len_of_run(dims: &Dims, step: usize) -> usize {
    let linearised = scratch_len(dims);
    let most = if step > linearised { step } else { linearised };
    dims.nu
        + State::<f64>::len(dims)
        + Record::<f64>::len(dims)
        + StateDerivatives::<f64>::len(dims)
        + Integrals::<f64>::scratch_len(dims)
        + most
}

impl<T: DifferentiableStep> Differentiated<Fixed<T>> {
    /// Length of the scratch that a run needs, at least.
    pub fn scratch_len(&self, dims: &Dims) -> usize {
        scratch_len_of_run(dims, self.0.method.scratch_len(dims))
    }

    /// Integrates the [`State`] and its [`StateDerivatives`] from start to end of the span; its time must be the start.
    ///
    /// Writes objectives and their derivatives to `gradient`, see [`Gradient`]. The observer sees start, end, and what
    /// [`Span::output`] says, each time once and in order. Where it breaks the run ends, and the objectives are those of the
    /// run so far. After an error state and derivatives are those after the last good step, and the gradient is meaningless. Where rows
    /// depend on each other, derivatives of multipliers are those of least norm at observed nodes, or if objectives name them.
    #[allow(clippy::too_many_arguments, reason = "what a run reads and writes")]
    #[inline(never)]
    pub fn run<M, I, O>(
        &self,
        system: &M,
        inputs: &mut I,
        state: &mut [M::S],
        derivatives: &mut [M::S],
        span: &Span<M::S>,
        gradient: &mut [M::S],
        scratch: &mut [M::S],
        observe: O,
    ) -> Result<Statistics, StepError>
    where
        M: Sensitivities + ObjectiveDerivatives,
        I: Inputs<M::S>,
        O: FnMut(Node<'_, M::S>) -> ControlFlow<()>,
    {
        self.run_showing(true, system, inputs, state, derivatives, span, gradient, scratch, observe)
    }

    /// The same. If the observer is not to see `multipliers` and rows depend on each other, derivatives of multipliers are those of some that give
    /// the same forces, which is less work; unless objectives name them.
    #[allow(clippy::too_many_arguments, reason = "what a run reads and writes")]
    pub fn run_showing<M, I, O>(
        &self,
        multipliers: bool,
        system: &M,
        inputs: &mut I,
        state: &mut [M::S],
        derivatives: &mut [M::S],
        span: &Span<M::S>,
        gradient: &mut [M::S],
        scratch: &mut [M::S],
        observe: O,
    ) -> Result<Statistics, StepError>
    where
        M: Sensitivities + ObjectiveDerivatives,
        I: Inputs<M::S>,
        O: FnMut(Node<'_, M::S>) -> ControlFlow<()>,
    {
        let Fixed { method, h } = &self.0;
        let mut nodes = Nodes::new(span, *h)?;
        let dims = system.dims();
        check_start(&dims, state, span)?;
        StateDerivatives::of(&dims, derivatives)?;
        let mut pieces = Pieces::of(scratch, self.scratch_len(&dims));
        let u = pieces.next(dims.nu)?;
        let record = pieces.next(Record::<M::S>::len(&dims))?;
        let kept = pieces.next(State::<M::S>::len(&dims))?;
        let next = pieces.next(StateDerivatives::<M::S>::len(&dims))?;
        let integrals = Integrals::new(&dims, gradient, &mut pieces)?;
        let scratch = pieces.rest();
        let judges_multipliers = judges_multipliers(system);
        let mut run = DifferentiatedRun {
            method,
            system,
            dims,
            inputs,
            state,
            derivatives,
            u,
            record,
            kept,
            next,
            scratch,
            shows_multipliers: multipliers,
            judges_multipliers,
            h_rho: &mut [],
            t_rho: &mut [],
            clock: None,
            rho: &mut [],
        };
        drive(&mut run, &mut nodes, &mut Judge { integrals, observe })
    }
}

/// Equal implicit steps of a state and its derivatives.
pub(crate) struct DifferentiatedRun<'a, T, M: Sensitivities, I> {
    pub(crate) method: &'a T,
    pub(crate) system: &'a M,
    pub(crate) dims: Dims,
    pub(crate) inputs: &'a mut I,
    pub(crate) state: &'a mut [M::S],
    pub(crate) derivatives: &'a mut [M::S],
    pub(crate) u: &'a mut [M::S],
    pub(crate) record: &'a mut [M::S],
    /// The state before a step.
    pub(crate) kept: &'a mut [M::S],
    /// Derivatives after it.
    pub(crate) next: &'a mut [M::S],
    pub(crate) scratch: &'a mut [M::S],
    /// Whether the observer reads derivatives of multipliers.
    pub(crate) shows_multipliers: bool,
    /// Whether objectives read multipliers.
    pub(crate) judges_multipliers: bool,
    /// Derivatives of the size of the step by the parameters; empty where it has none.
    pub(crate) h_rho: &'a mut [M::S],
    /// Those of the time of the last node.
    pub(crate) t_rho: &'a mut [M::S],
    /// The column of derivatives by the clock, if laws name the time.
    pub(crate) clock: Option<usize>,
    /// Directions of the parameters, if they change along the run: a row for each.
    pub(crate) rho: &'a mut [M::S],
}

/// Whether objectives read multipliers.
pub(crate) fn judges_multipliers<M: ObjectiveDerivatives>(system: &M) -> bool {
    let dims = system.dims();
    let judged = 3 * dims.nq..objective_rows(&dims);
    system.objective_places().into_iter().flatten().any(|(_, column)| judged.contains(&(*column as usize)))
}

/// What the derivative h' of the size of a step adds to z' and zd' before it: with the acceleration at its end held,
///
/// ```text
/// p' = zd + (2/h) (position a + position_next a_next)      q' = (velocity a + velocity_next a_next)/h
/// ```
///
/// are the derivatives of the formulas by h, and z' + (p' − h q') h', zd' + q' h' lead to them.
fn add_size<S: Scalar>(
    dims: &Dims,
    formulas: &Formulas<S>,
    h_rho: &[S],
    before: &mut [S],
    record: &mut [S],
    derivatives: &mut [S],
) -> Result<(), StepError> {
    let (before, record) = (State::of(dims, before)?, Record::of(dims, record)?);
    let change = StateDerivatives::of(dims, derivatives)?;
    let a = if formulas.keeps_acceleration { before.a } else { before.zdd };
    let (h, two, columns) = (formulas.h, S::from_f64(2.0), h_rho.len());
    for (i, (&rate, (&a, &a_next))) in before.zd.iter().zip(a.iter().zip(record.a.iter())).enumerate() {
        let p = rate + two * (formulas.position * a + formulas.position_next * a_next) / h;
        let q = (formulas.velocity * a + formulas.velocity_next * a_next) / h;
        if let (Some(z), Some(zd)) = (row_mut(change.z, i, columns), row_mut(change.zd, i, columns)) {
            add_scaled(z, p - h * q, h_rho);
            add_scaled(zd, q, h_rho);
        }
    }
    Ok(())
}

/// The transpose of [`add_size`]: adds what the weights of z and zd before a step make of that of its size, h̄. `before`: the state before it.
pub(crate) fn size_transposed<S: Scalar>(
    dims: &Dims,
    formulas: &Formulas<S>,
    columns: usize,
    before: &mut [S],
    record: &mut [S],
    weights: &mut [S],
    to: &mut [S],
) -> Result<(), StepError> {
    let (before, record) = (State::of(dims, before)?, Record::of(dims, record)?);
    let weights = StateDerivatives::with_columns(dims, columns, weights)?;
    let a = if formulas.keeps_acceleration { before.a } else { before.zdd };
    let (h, two) = (formulas.h, S::from_f64(2.0));
    for (i, (&rate, (&a, &a_next))) in before.zd.iter().zip(a.iter().zip(record.a.iter())).enumerate() {
        let p = rate + two * (formulas.position * a + formulas.position_next * a_next) / h;
        let q = (formulas.velocity * a + formulas.velocity_next * a_next) / h;
        if let (Some(z), Some(zd)) = (row(weights.z, i, columns), row(weights.zd, i, columns)) {
            add_scaled(to, p - h * q, z);
            add_scaled(to, q, zd);
        }
    }
    Ok(())
}

/// The directions of the parameters.
#[inline(always)]
pub(crate) fn directions<S>(rho: &[S]) -> Directions<'_, S> {
    if rho.is_empty() { Directions::Each } else { Directions::Along(rho) }
}

impl<T: DifferentiableStep, M: Sensitivities, I: Inputs<M::S>> DifferentiatedRun<'_, T, M, I> {
    /// One step of both; after an error the derivatives are as before, and the state is not.
    #[inline(always)]
    fn advance(&mut self, planned: &Planned<M::S>) -> Result<StepStatistics, StepError> {
        let Planned { t, h, observed, .. } = *planned;
        let (system, inputs, record) = (self.system, &mut *self.inputs, &mut *self.record);
        let made = self.method.step_recorded(system, inputs, self.state, h, record, self.scratch)?;
        // The next step does not read λ′.
        let multipliers = (observed && self.shows_multipliers) || self.judges_multipliers;
        self.differentiate(&made, multipliers)?;
        if !all_finite(self.next) {
            let bad = self.next.iter().position(|x| !x.is_finite()).unwrap_or(0);
            let index = bad % self.dims.sensitivity.parameters.max(1);
            let (t, h) = (t.real(), h.real());
            return Err(StepError::NotFinite { t, h, quantity: Quantity::Sensitivity, index });
        }
        Ok(made)
    }

    /// Into `next`: the derivatives after the step that has been made. By itself it has the stack that the step had before it.
    #[cfg_attr(not(feature = "small"), inline(always))]
    #[cfg_attr(feature = "small", inline(never))]
    fn differentiate(&mut self, made: &StepStatistics, multipliers: bool) -> Result<(), StepError> {
        let record = &mut *self.record;
        let usual = self.h_rho.is_empty() && self.rho.is_empty();
        let (method, system, scratch) = (self.method, self.system, &mut *self.scratch);
        if usual && at_once::differentiate(method, system, record, self.derivatives, self.next, scratch)? {
            return Ok(());
        }
        let mut linearised =
            self.method.linearise_made(made, multipliers, self.system, record, self.scratch)?;
        if !self.h_rho.is_empty() {
            let (formulas, h_rho) = (linearised.formulas, &*self.h_rho);
            add_size(&self.dims, &formulas, h_rho, self.kept, self.record, self.derivatives)?;
            linearised.along_size(h_rho);
        }
        if let Some(clock) = self.clock {
            write_clock(self.rho, clock, self.t_rho, M::S::ONE, self.h_rho);
        }
        if self.rho.is_empty() {
            return linearised.sensitivities(self.derivatives, self.next);
        }
        linearised.apply(self.dims.sensitivity.parameters, self.derivatives, self.rho, self.next)
    }
}

impl<T: DifferentiableStep, M: Sensitivities, I: Inputs<M::S>> Stepper for DifferentiatedRun<'_, T, M, I> {
    type S = M::S;

    #[inline(always)]
    fn step(&mut self, planned: &Planned<M::S>) -> Result<Taken<M::S>, StepError> {
        let Planned { t, h, end, .. } = *planned;
        copy(self.kept, self.state);
        let statistics = match self.advance(planned) {
            Ok(statistics) => statistics,
            Err(error) => {
                copy(self.state, self.kept);
                return Err(error);
            }
        };
        copy(self.derivatives, self.next);
        *State::of(&self.dims, self.state)?.t = end;
        Ok(Taken { t, h, end, statistics })
    }

    fn saved_len(&self) -> usize {
        self.state.len() + self.derivatives.len()
    }

    fn save(&self, to: &mut [M::S]) -> Result<(), StepError> {
        let mut pieces = Pieces::named("saved", to, self.saved_len());
        copy_all("saved", pieces.next(self.state.len())?, self.state)?;
        copy_all("saved", pieces.rest(), self.derivatives)
    }

    fn restore(&mut self, from: &[M::S]) -> Result<(), StepError> {
        let wrong = StepError::Length { what: "saved", expected: self.saved_len(), found: from.len() };
        let (state, derivatives) = from.split_at_checked(self.state.len()).ok_or(wrong)?;
        copy_all("saved", self.derivatives, derivatives)?;
        copy_all("saved", self.state, state)
    }
}

/// Quadrature of the objectives at every node, output at observed ones, terminal terms at the end.
pub(crate) struct Judge<'a, S, O> {
    pub(crate) integrals: Integrals<'a, S>,
    pub(crate) observe: O,
}

impl<T, M, I, O> Hooks<DifferentiatedRun<'_, T, M, I>> for Judge<'_, M::S, O>
where
    T: DifferentiableStep,
    M: Sensitivities + ObjectiveDerivatives,
    I: Inputs<M::S>,
    O: FnMut(Node<'_, M::S>) -> ControlFlow<()>,
{
    #[inline(always)]
    fn node(
        &mut self,
        run: &mut DifferentiatedRun<'_, T, M, I>,
        step: &Taken<M::S>,
        observed: bool,
    ) -> Result<Next, StepError> {
        let t = step.end;
        if !run.u.is_empty() {
            run.inputs.at(t, run.u);
        }
        let view = State::of(&run.dims, run.state)?;
        let (motion, lambda, derivatives) = (view.motion(run.u), &*view.lambda, &*run.derivatives);
        let along = directions(run.rho);
        let added = self.integrals.add_node(run.system, motion, lambda, derivatives, along, run.scratch);
        added.map_err(|error| error.in_step(t.real(), 0.0))?;
        self.integrals.add_size(&run.dims, run.h_rho);
        if !observed {
            return Ok(Next::Continue);
        }
        let node = Node { motion, lambda, derivatives, step: step.statistics };
        Ok(if (self.observe)(node).is_break() { Next::Stop } else { Next::Continue })
    }

    /// The inputs are those of the last node.
    #[inline(always)]
    fn end(&mut self, run: &mut DifferentiatedRun<'_, T, M, I>, t: M::S) -> Result<(), StepError> {
        let view = State::of(&run.dims, run.state)?;
        let (motion, lambda) = (view.motion(run.u), &*view.lambda);
        let along = directions(run.rho);
        let added =
            self.integrals.add_terminals(run.system, motion, lambda, run.derivatives, along, run.scratch);
        added.map_err(|error| error.in_step(t.real(), 0.0))
    }
}
