//! Adjoints of implicit runs: ALI3-P, index 1 and penalty, with any implicit integrator.
//!
//! A step's derivative is the [`LinearisedStep`](crate::LinearisedStep) of its [`Record`]; going back takes its transposed product. The
//! weights of the quadrature are those of the trapezoidal rule over the nodes, q_k = (t_k+1 − t_k−1)/2 with one half of the step at both
//! ends.

use core::ops::ControlFlow;

use super::checkpoints::{Before, Reversible, Schedule, sweep};
use super::items::{Around, End, Item, Times, add_outer};
use super::{Adjoint, AdjointStatistics, VectorJacobian, check_weights, gradient_by_product, gradient_len};
use crate::constrained::Motion;
use crate::error::{EvalError, StepError};
use crate::euler_parameters::{
    accelerations, add_rates_transposed, add_velocities_transposed, coordinate_rates, velocities,
};
use crate::formulation::{Assembly, Record, State};
use crate::inputs::Inputs;
use crate::integrator::{Fixed, Nodes, Span, Statistics};
use crate::linear::{add_scaled, copy};
use crate::pieces::{Pieces, cut, cut_mut};
use crate::scalar::Scalar;
use crate::sensitivity::run::size_transposed;
use crate::sensitivity::{
    DifferentiableStep, ObjectiveDerivatives, ObjectiveValues, ParameterWeights, Sensitivities,
    StateDerivatives, Weighed, linearised_len, max_columns, objective_rows, state_rows, take,
    transpose_at_once,
};
use crate::system::{At, Dims};

/// What an observer sees of an adjoint run.
#[derive(Clone, Copy, Debug)]
pub enum AdjointNode<'a, S> {
    /// The step with this number, from 1, has been made and ends at `t`; `again` if not for the first time.
    Forward {
        /// Number of the step.
        number: usize,
        /// Time at its end.
        t: S,
        /// Whether it is made again.
        again: bool,
        /// Coordinates at its end.
        z: &'a [S],
        /// Their rates, or for an explicit run the velocities.
        rates: &'a [S],
    },
    /// An event happened, on the first way forward.
    Event {
        /// Its place in the table.
        event: usize,
        /// When.
        t: S,
        /// Impulses of its conditions on velocities.
        impulses: &'a [S],
    },
    /// The way back has passed the node with this number.
    Backward {
        /// Number of the node, from 0.
        number: usize,
        /// Its time.
        t: S,
        /// Weights of the state at this node: the derivative of what is weighted by it. As [`StateDerivatives`] with the run's columns.
        state: &'a [S],
        /// Weights of the parameters and inputs as this node alone has them: by the step that ends here and by the integrand; under explicit
        /// integrators by the step that begins here. For an input that is its weight by the value u(t_k), but for `step`. What parameters weigh
        /// through tables and splines may be missing: it is added at the end of the way back.
        rho: &'a [S],
        /// The part of `rho` of the step that ends here; empty under explicit integrators. For an input that is held at its value at the
        /// start of a step ([`Hold::Zero`](crate::Hold::Zero)) that is its weight by u(t_k−1).
        step: &'a [S],
    },
}

impl<T: DifferentiableStep> Adjoint<Fixed<T>> {
    /// How a run over the span would use this much memory, in numbers.
    pub fn schedule<S: Scalar>(
        &self,
        dims: &Dims,
        span: &Span<S>,
        memory: usize,
    ) -> Result<Schedule, StepError> {
        let steps = Nodes::new(span, self.0.h)?.steps;
        Schedule::new(steps, Record::<S>::len(dims), State::<S>::len(dims), memory)
    }

    /// Length of the scratch that a product with this many columns needs, at least.
    pub fn scratch_len(&self, dims: &Dims, columns: usize) -> usize {
        let step = self.0.method.scratch_len(dims);
        let linearised = linearised_len(dims);
        let most = if step > linearised { step } else { linearised };
        let weights = 2 * state_rows(dims) + 2 * dims.sensitivity.parameters + dims.sensitivity.table_values;
        let lists = dims.sensitivity.integrands + dims.sensitivity.terminals;
        let own = dims.nu + weights * columns + dims.sensitivity.table_values + lists;
        2 * State::<f64>::len(dims) + own + most
    }

    /// Integrates the [`State`] from start to end of the span and takes the weights back. `state` is that at the end afterwards. After an
    /// error, or where the observer breaks, the products are meaningless.
    #[allow(clippy::too_many_arguments, reason = "what a run reads and writes")]
    pub fn run<M, I, O>(
        &self,
        system: &M,
        inputs: &mut I,
        state: &mut [M::S],
        span: &Span<M::S>,
        product: VectorJacobian<'_, M::S>,
        memory: &mut [M::S],
        scratch: &mut [M::S],
        observe: O,
    ) -> Result<AdjointStatistics, StepError>
    where
        M: Sensitivities + ObjectiveDerivatives,
        I: Inputs<M::S>,
        O: FnMut(AdjointNode<'_, M::S>) -> ControlFlow<()>,
    {
        let Fixed { method, h } = &self.0;
        let (dims, nodes) = (system.dims(), Nodes::new(span, *h)?);
        let columns = product.columns;
        check_run(&dims, state, span.start, &product)?;
        let schedule = self.schedule(&dims, span, memory.len())?;
        let pieces = Pieces::of(scratch, self.scratch_len(&dims, columns));
        go_back(method, system, inputs, state, nodes, schedule, product, None, memory, pieces, observe)
    }

    /// The objectives and their gradient, see [`Gradient`](crate::Gradient): the product with each objective alone, and what the start depends on.
    /// `start`: the derivatives of the start, as [`StateDerivatives`]. `scratch`: of [`Adjoint::gradient_scratch_len`].
    #[allow(clippy::too_many_arguments, reason = "what a run reads and writes")]
    pub fn gradient<M, I, O>(
        &self,
        system: &M,
        inputs: &mut I,
        state: &mut [M::S],
        start: &[M::S],
        span: &Span<M::S>,
        gradient: &mut [M::S],
        memory: &mut [M::S],
        scratch: &mut [M::S],
        observe: O,
    ) -> Result<AdjointStatistics, StepError>
    where
        M: Sensitivities + ObjectiveDerivatives,
        I: Inputs<M::S>,
        O: FnMut(AdjointNode<'_, M::S>) -> ControlFlow<()>,
    {
        let dims = system.dims();
        let rows = state_rows(&dims);
        gradient_by_product(&dims, rows, span.end, start, gradient, scratch, |product, scratch| {
            self.run(system, inputs, state, span, product, memory, scratch, observe)
        })
    }

    /// Length of the scratch of [`Adjoint::gradient`], at least.
    pub fn gradient_scratch_len(&self, dims: &Dims) -> usize {
        gradient_len(dims, state_rows(dims)) + self.scratch_len(dims, dims.n_objectives)
    }
}

/// An error unless the product fits the model, and the state its start.
pub(crate) fn check_run<S: Scalar>(
    dims: &Dims,
    state: &mut [S],
    start: S,
    product: &VectorJacobian<'_, S>,
) -> Result<(), StepError> {
    product.check(dims, state_rows(dims))?;
    let columns = product.columns;
    if columns == 0 || columns > max_columns(dims) {
        let what = "a product has at least one column, and at most as many as parameters or objectives";
        return Err(StepError::Setting { what, value: columns as f64 });
    }
    let t = *State::of(dims, state)?.t;
    if t != start {
        let what = "the state's time must be the start of the span";
        return Err(StepError::Setting { what, value: t.real() });
    }
    Ok(())
}

/// Makes the items of a run and goes back over them.
#[allow(clippy::too_many_arguments, reason = "what a run reads and writes")]
pub(crate) fn go_back<'a, T, M, I, P, O>(
    method: &'a T,
    system: &'a M,
    inputs: &'a mut I,
    state: &mut [M::S],
    nodes: P,
    schedule: Schedule,
    product: VectorJacobian<'a, M::S>,
    aside: Option<Aside<'a, M::S>>,
    memory: &mut [M::S],
    mut pieces: Pieces<'a, M::S>,
    observe: O,
) -> Result<AdjointStatistics, StepError>
where
    T: DifferentiableStep,
    M: Sensitivities + ObjectiveDerivatives,
    I: Inputs<M::S>,
    P: Times<M::S>,
    O: FnMut(AdjointNode<'_, M::S>) -> ControlFlow<()>,
{
    let (dims, columns, t) = (system.dims(), product.columns, nodes.time(0));
    let len = State::<M::S>::len(&dims) + aside.as_ref().map_or(0, |aside| aside.around.actions.latches());
    let (moving, end) = (pieces.next(len)?, pieces.next(len)?);
    let VectorJacobian { objective_weights, end_weights, objectives, start, rho, .. } = product;
    let mut way = Way {
        method,
        system,
        inputs,
        nodes,
        dims,
        columns,
        objective_weights,
        objectives,
        u: pieces.next(dims.nu)?,
        bar: pieces.next(state_rows(&dims) * columns)?,
        next: pieces.next(state_rows(&dims) * columns)?,
        now: pieces.next(dims.sensitivity.parameters * columns)?,
        stepped: pieces.next(dims.sensitivity.parameters * columns)?,
        rho,
        table: pieces.next(dims.sensitivity.table_values * columns)?,
        column: pieces.next(dims.sensitivity.table_values)?,
        values: pieces.next(dims.sensitivity.integrands + dims.sensitivity.terminals)?,
        statistics: Statistics { t: t.real(), ..Statistics::default() },
        observe,
        aside,
        scratch: pieces.rest(),
    };
    for part in [&mut *way.objectives, way.bar, way.now, way.stepped, way.rho, way.table] {
        part.fill(M::S::ZERO);
    }
    copy(way.bar, end_weights);
    copy(moving, state);
    if let (Some(aside), Some(latches)) = (&way.aside, moving.get_mut(state.len()..)) {
        aside.around.actions.save(latches);
    }
    let steps = way.nodes.steps();
    if steps == 0 {
        way.end(&mut State::of(&dims, state)?)?;
    }
    let swept = sweep(&schedule, &mut way, moving, end, memory)?;
    let mut statistics = way.statistics;
    statistics.stopped = swept.stopped;
    if steps > 0 && !swept.stopped {
        copy(state, end);
    }
    // The node of the start.
    if !swept.stopped {
        way.stepped.fill(M::S::ZERO);
        statistics.stopped = way.pass(0)?.is_break();
        way.add_tables()?;
    }
    copy(start, way.bar);
    Ok(AdjointStatistics { run: statistics, recomputed: swept.recomputed, schedule })
}

/// What the way back past events needs besides.
pub(crate) struct Aside<'a, S> {
    pub(crate) around: Around<'a, S>,
    /// The column of an event's function before the step.
    next: &'a mut [S],
    /// v, vd, λ in joint form, v̄.
    v: &'a mut [S],
    vd: &'a mut [S],
    lambda: &'a mut [S],
    v_bar: &'a mut [S],
    /// Means of the integrands at both ends of a step.
    means: &'a mut [S],
}

impl<'a, S: Scalar> Aside<'a, S> {
    /// Length of its memory, with that of latched inputs twice: at both ends of the run.
    #[inline(always)]
    pub(crate) const fn len(dims: &Dims, columns: usize, latches: usize) -> usize {
        let own = state_rows(dims) + 2 * dims.nv + dims.joint_rows() + dims.nv * columns + dims.n_objectives;
        Around::<S>::len(dims, state_rows(dims), columns) + own + 2 * latches
    }

    pub(crate) fn new(
        around: Around<'a, S>,
        dims: &Dims,
        columns: usize,
        pieces: &mut Pieces<'a, S>,
    ) -> Result<Self, StepError> {
        Ok(Self {
            around,
            next: pieces.next(state_rows(dims))?,
            v: pieces.next(dims.nv)?,
            vd: pieces.next(dims.nv)?,
            lambda: pieces.next(dims.joint_rows())?,
            v_bar: pieces.next(dims.nv * columns)?,
            means: pieces.next(dims.n_objectives)?,
        })
    }
}

/// Numbers of the record of an item of a run with events, and of its state, with this many latched inputs.
pub(crate) const fn item_lens(dims: &Dims, latches: usize) -> (usize, usize) {
    let state = State::<f64>::len(dims) + latches;
    (Record::<f64>::len(dims) + state, state)
}

/// A run on its way forward and back.
struct Way<'a, T, M: Sensitivities, I, P, O> {
    method: &'a T,
    system: &'a M,
    inputs: &'a mut I,
    nodes: P,
    dims: Dims,
    columns: usize,
    objective_weights: &'a [M::S],
    objectives: &'a mut [M::S],
    u: &'a mut [M::S],
    /// x̄ at the node the way back has reached.
    bar: &'a mut [M::S],
    next: &'a mut [M::S],
    /// ρ̄ of that node alone, the part of it that belongs to the step that ends there, and of all nodes before it.
    now: &'a mut [M::S],
    stepped: &'a mut [M::S],
    rho: &'a mut [M::S],
    /// Weights of all values of tables of parameters, and a column of them.
    table: &'a mut [M::S],
    column: &'a mut [M::S],
    values: &'a mut [M::S],
    statistics: Statistics,
    observe: O,
    /// What events do between steps, if there are any.
    aside: Option<Aside<'a, M::S>>,
    scratch: &'a mut [M::S],
}

impl<T, M, I, P, O> Way<'_, T, M, I, P, O>
where
    T: DifferentiableStep,
    M: Sensitivities + ObjectiveDerivatives,
    I: Inputs<M::S>,
    P: Times<M::S>,
    O: FnMut(AdjointNode<'_, M::S>) -> ControlFlow<()>,
{
    fn time(&self, number: usize) -> M::S {
        self.nodes.time(number)
    }

    /// q of a node.
    fn quadrature(&self, number: usize) -> M::S {
        let last = if number < self.nodes.steps() { number + 1 } else { number };
        let first = number.saturating_sub(1);
        M::S::from_f64(0.5) * (self.time(last) - self.time(first))
    }

    /// Adds what the objectives weigh the state at a node, and their values; at the last node the terminal terms, too.
    fn weigh(
        &mut self,
        number: usize,
        z: &[M::S],
        zd: &[M::S],
        zdd: &[M::S],
        lambda: &[M::S],
    ) -> Result<(), StepError> {
        let (t, dims) = (self.time(number), self.dims);
        let fail = |error: EvalError| error.in_step(t.real(), 0.0);
        if !self.u.is_empty() {
            self.inputs.at(t, self.u);
        }
        let q = self.quadrature(number);
        let at = Motion { t, z, zd, zdd, u: self.u };
        let [integrands, terminals] = self.system.objective_places();
        let mut weighed = Weighed {
            columns: self.columns,
            weights: self.objective_weights,
            objectives: self.objectives,
            bar: self.bar,
            rho: self.now,
        };
        if dims.n_objectives == 0 {
            return Ok(());
        }
        let (values, rest) = cut_mut("values", self.values, dims.sensitivity.integrands).map_err(fail)?;
        self.system.integrand_derivatives(at, lambda, self.scratch, values).map_err(fail)?;
        weighed.add(&dims, objective_rows(&dims), integrands, q, values).map_err(fail)?;
        if number == self.nodes.steps() {
            self.system.terminal_derivatives(at, lambda, self.scratch, rest).map_err(fail)?;
            weighed.add(&dims, objective_rows(&dims), terminals, M::S::ONE, rest).map_err(fail)?;
        }
        // ρ̄ of this node alone.
        if let Some(aside) = &mut self.aside {
            aside.around.add_time(self.now);
        }
        Ok(())
    }

    /// What the weights of the last node begin with.
    fn end(&mut self, state: &mut State<'_, M::S>) -> Result<(), StepError> {
        self.weigh(self.nodes.steps(), state.z, state.zd, state.zdd, state.lambda)
    }

    /// Shows a node, and takes its part of ρ̄ to that of all.
    fn pass(&mut self, number: usize) -> Result<ControlFlow<()>, StepError> {
        let t = self.time(number);
        check_weights(self.columns, t, M::S::ZERO, self.bar)?;
        let (state, rho, step) = (&*self.bar, &*self.now, &*self.stepped);
        let flow = (self.observe)(AdjointNode::Backward { number, t, state, rho, step });
        add_scaled(self.rho, M::S::ONE, self.now);
        self.now.fill(M::S::ZERO);
        Ok(flow)
    }

    /// ρ̄ takes what the whole run weighs the values s of tables: s_ρᵀ s̄.
    fn add_tables(&mut self) -> Result<(), StepError> {
        if self.table.is_empty() {
            return Ok(());
        }
        let (columns, t) = (self.columns, self.time(0));
        for k in 0..columns {
            take(self.column, self.table, k, columns);
            let (by_rho, _) = cut_mut("rho", self.stepped, self.dims.sensitivity.parameters)
                .map_err(|error| error.in_step(t.real(), 0.0))?;
            self.system
                .table_product(self.column, self.scratch, by_rho)
                .map_err(|error| error.in_step(t.real(), 0.0))?;
            for (to, &more) in self.rho.iter_mut().skip(k).step_by(columns).zip(by_rho.iter()) {
                *to += more;
            }
        }
        Ok(())
    }

    /// After a step.
    fn made(
        &mut self,
        number: usize,
        again: bool,
        step: &crate::StepStatistics,
        h: M::S,
        state: &mut [M::S],
    ) -> Result<ControlFlow<()>, StepError> {
        let t = self.time(number);
        let state = State::of(&self.dims, state)?;
        *state.t = t;
        if !again {
            self.statistics.add(t.real(), h.real(), step);
        }
        // The first way of a run with events has been seen.
        let again = again || self.aside.is_some();
        Ok((self.observe)(AdjointNode::Forward { number, t, again, z: state.z, rates: state.zd }))
    }
}

impl<T, M, I, P, O> Reversible for Way<'_, T, M, I, P, O>
where
    T: DifferentiableStep,
    M: Sensitivities + ObjectiveDerivatives,
    I: Inputs<M::S>,
    P: Times<M::S>,
    O: FnMut(AdjointNode<'_, M::S>) -> ControlFlow<()>,
{
    type S = M::S;

    fn advance(
        &mut self,
        number: usize,
        again: bool,
        state: &mut [M::S],
    ) -> Result<ControlFlow<()>, StepError> {
        let h = self.nodes.size(number);
        let (state, latches) = split(&self.dims, state)?;
        if self.happens(number, state, latches)? {
            return Ok(ControlFlow::Continue(()));
        }
        let step = self.method.step(self.system, self.inputs, state, h, self.scratch)?;
        self.made(number, again, &step, h, state)
    }

    fn record(
        &mut self,
        number: usize,
        again: bool,
        state: &mut [M::S],
        record: &mut [M::S],
    ) -> Result<ControlFlow<()>, StepError> {
        let h = self.nodes.size(number);
        let (record, kept) = split_record(&self.dims, record)?;
        // Nothing is kept of a run without events.
        copy(kept, state);
        let (state, latches) = split(&self.dims, state)?;
        let flow = if self.happens(number, state, latches)? {
            ControlFlow::Continue(())
        } else {
            let (system, scratch) = (self.system, &mut *self.scratch);
            let step = self.method.step_recorded(system, self.inputs, state, h, record, scratch)?;
            self.made(number, again, &step, h, state)?
        };
        if number == self.nodes.steps() {
            self.end(&mut State::of(&self.dims, state)?)?;
        }
        Ok(flow)
    }

    fn reverse(
        &mut self,
        number: usize,
        record: &mut [M::S],
        before: Before<'_, M::S>,
    ) -> Result<ControlFlow<()>, StepError> {
        let dims = self.dims;
        let (record, kept) = split_record(&dims, record)?;
        self.stepped.fill(M::S::ZERO);
        if self.aside.is_some() {
            let (kept, latches) = split(&dims, kept)?;
            self.load(latches);
            self.reverse_item(number, record, kept)?;
        } else if !transpose_at_once(
            self.method,
            self.system,
            record,
            self.columns,
            self.bar,
            self.next,
            self.stepped,
            self.scratch,
        )? {
            self.stepped.fill(M::S::ZERO);
            // The next step does not read λ, so it has weights from objectives and the end of the run alone.
            let StateDerivatives { lambda, sigma, kappa, .. } =
                StateDerivatives::with_columns(&dims, self.columns, self.bar)?;
            let mut weights = lambda.iter().chain(&*sigma).chain(&*kappa);
            let (columns, weighs) = (self.columns, weights.any(|&weight| weight != M::S::ZERO));
            let mut linearised =
                self.method.linearise_transposed(columns, weighs, self.system, record, self.scratch)?;
            let weights = ParameterWeights { rho: self.stepped, table: self.table };
            linearised.add_transposed_of(record, columns, self.bar, self.next, weights)?;
        }
        add_scaled(self.now, M::S::ONE, self.stepped);
        let flow = self.pass(number)?;
        core::mem::swap(&mut self.bar, &mut self.next);
        match before {
            _ if self.aside.is_some() => {
                let state = State::of(&dims, split(&dims, kept)?.0)?;
                self.weigh(number - 1, state.z, state.zd, state.zdd, state.lambda)?;
            }
            Before::Record(record) => {
                let record = Record::of(&dims, record)?;
                self.weigh(number - 1, record.z, record.zd, record.zdd, record.lambda)?;
            }
            Before::State(state) => {
                let state = State::of(&dims, state)?;
                self.weigh(number - 1, state.z, state.zd, state.zdd, state.lambda)?;
            }
        }
        Ok(flow)
    }
}

/// A state, and the latched inputs that are kept with it.
fn split<'a, S: Scalar>(dims: &Dims, state: &'a mut [S]) -> Result<(&'a mut [S], &'a mut [S]), StepError> {
    let (expected, found) = (State::<S>::len(dims), state.len());
    state.split_at_mut_checked(expected).ok_or(StepError::Length { what: "state", expected, found })
}

/// The record of a step, and the state before it that is kept in a run with events.
fn split_record<'a, S: Scalar>(
    dims: &Dims,
    record: &'a mut [S],
) -> Result<(&'a mut [S], &'a mut [S]), StepError> {
    let (expected, found) = (Record::<S>::len(dims), record.len());
    record.split_at_mut_checked(expected).ok_or(StepError::Length { what: "record", expected, found })
}

impl<T, M, I, P, O> Way<'_, T, M, I, P, O>
where
    T: DifferentiableStep,
    M: Sensitivities + ObjectiveDerivatives,
    I: Inputs<M::S>,
    P: Times<M::S>,
    O: FnMut(AdjointNode<'_, M::S>) -> ControlFlow<()>,
{
    /// Inputs that events set are as they were.
    fn load(&mut self, latches: &[M::S]) {
        if let Some(aside) = &mut self.aside {
            aside.around.actions.load(latches);
        }
    }

    /// Makes what is no step; whether it was none.
    fn happens(
        &mut self,
        number: usize,
        state: &mut [M::S],
        latches: &mut [M::S],
    ) -> Result<bool, StepError> {
        self.load(latches);
        let (t, dims) = (self.time(number), self.dims);
        let fail = |error: EvalError| error.in_step(t.real(), 0.0);
        match (self.nodes.item(number), &mut self.aside) {
            (Item::Act(event), Some(aside)) => {
                if !self.u.is_empty() {
                    self.inputs.at(t, self.u);
                }
                let state = State::of(&dims, state)?;
                velocities(self.system, state.z, state.zd, aside.v).map_err(fail)?;
                let at = At { t, z: state.z, v: aside.v, x: &[], u: self.u };
                let d = aside.around.actions.act(event, at)?;
                add_scaled(aside.v, M::S::ONE, d);
                aside.around.actions.place(event, state.z);
                coordinate_rates(self.system, state.z, aside.v, state.zd).map_err(fail)?;
                aside.around.actions.save(latches);
                Ok(true)
            }
            (Item::Switch(event), Some(aside)) => {
                aside.around.actions.switch(event, self.nodes.size(number));
                aside.around.actions.save(latches);
                Ok(true)
            }
            (Item::Restart, _) => {
                Assembly::DEFAULT.start(self.system, self.inputs, state, self.scratch)?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Into `next` and `stepped`: weights before an item, with the weights after it in `bar`. `kept`: the state before it.
    fn reverse_item(
        &mut self,
        number: usize,
        record: &mut [M::S],
        kept: &mut [M::S],
    ) -> Result<(), StepError> {
        let (t, columns) = (self.time(number), self.columns);
        match self.nodes.item(number) {
            Item::Act(event) => self.transpose_act(t, event, kept),
            Item::Switch(_) => {
                copy(self.next, self.bar);
                Ok(())
            }
            Item::Restart => {
                copy(self.next, self.bar);
                Assembly::DEFAULT.start_transposed(
                    self.system,
                    self.inputs,
                    kept,
                    columns,
                    self.next,
                    self.stepped,
                    self.scratch,
                )?;
                self.add_time_of_step();
                Ok(())
            }
            Item::Step(End::Located(event)) => {
                let scale = self.weigh_function(t, event, record)?;
                self.transpose_step(number, record, kept)?;
                let Some(Aside { around, next, .. }) = &mut self.aside else { return Ok(()) };
                let g_t = around.function_t(&self.dims);
                let slope = around.one.first().copied().unwrap_or(M::S::ZERO) + g_t;
                around.gamma(slope, scale, t, event)?;
                add_outer(self.next, next, around.size);
                add_outer(self.stepped, around.rho, around.size);
                add_scaled(around.time, g_t, around.size);
                around.add_time(self.stepped);
                around.add_clock(g_t, self.stepped);
                Ok(())
            }
            Item::Step(end) => {
                self.transpose_step(number, record, kept)?;
                if let (Some(Aside { around, .. }), End::Planned) = (&mut self.aside, end) {
                    for (time, &size) in around.time.iter_mut().zip(around.size.iter()) {
                        *time = -size;
                    }
                }
                self.add_time_of_step();
                Ok(())
            }
        }
    }

    /// t̄ takes what the item makes of the clock.
    fn add_time_of_step(&mut self) {
        if let Some(aside) = &mut self.aside {
            aside.around.add_time(self.stepped);
        }
    }

    /// Weights before a step, and h̄; of the column of an event's function, too, if it ends in one.
    fn transpose_step(
        &mut self,
        number: usize,
        record: &mut [M::S],
        kept: &mut [M::S],
    ) -> Result<(), StepError> {
        let (dims, columns) = (self.dims, self.columns);
        let item = self.nodes.item(number);
        // Where the node before it does not move, neither does its size.
        let moves = number > 1 && self.nodes.item(number - 1) != Item::Step(End::Planned);
        let located = matches!(item, Item::Step(End::Located(_)));
        let sized = located || (moves && item == Item::Step(End::Planned));
        if sized {
            self.average(number, record, kept)?;
        }
        let mut linearised = self.method.linearise(self.system, record, self.scratch)?;
        linearised.add_transposed(columns, self.bar, self.next, self.stepped)?;
        let Some(aside) = &mut self.aside else { return Ok(()) };
        let formulas = linearised.formulas;
        let size = &mut *aside.around.size;
        size.fill(M::S::ZERO);
        if sized {
            linearised.add_size_weights(size);
        }
        if located {
            let Around { bar, rho, one, .. } = &mut aside.around;
            linearised.add_transposed(1, bar, aside.next, rho)?;
            one.fill(M::S::ZERO);
            linearised.add_size_weights(one);
            size_transposed(&dims, &formulas, 1, kept, record, aside.next, one)?;
            let moved = aside.around.clock(aside.around.rho, 1).first().copied().unwrap_or(M::S::ZERO);
            aside.around.one.iter_mut().for_each(|one| *one += moved);
        }
        let size = &mut *aside.around.size;
        if sized {
            size_transposed(&dims, &formulas, columns, kept, record, self.next, size)?;
            // ψ_h = (g_n + g_n+1)/2
            for (weights, &mean) in self.objective_weights.chunks_exact(columns).zip(aside.means.iter()) {
                add_scaled(size, mean, weights);
            }
            aside.around.add_size(M::S::ONE, self.stepped);
        }
        Ok(())
    }

    /// Means of the integrands at both ends of a step.
    fn average(&mut self, number: usize, record: &mut [M::S], kept: &mut [M::S]) -> Result<(), StepError> {
        let dims = self.dims;
        let (before, after) = (self.time(number - 1), self.time(number));
        let Some(aside) = self.aside.as_mut().filter(|_| dims.n_objectives > 0) else { return Ok(()) };
        aside.means.fill(M::S::ZERO);
        let (state, record) = (State::of(&dims, kept)?, Record::of(&dims, record)?);
        let ends = [
            (before, &*state.z, &*state.zd, &*state.zdd, &*state.lambda),
            (after, &*record.z, &*record.zd, &*record.zdd, &*record.lambda),
        ];
        for (t, z, zd, zdd, lambda) in ends {
            let fail = |error: EvalError| error.in_step(t.real(), 0.0);
            if !self.u.is_empty() {
                self.inputs.at(t, self.u);
            }
            let at = Motion { t, z, zd, zdd, u: self.u };
            let [places, _] = self.system.objective_places();
            let (values, _) = cut_mut("values", self.values, dims.sensitivity.integrands).map_err(fail)?;
            self.system.integrand_derivatives(at, lambda, self.scratch, values).map_err(fail)?;
            let values = ObjectiveValues::of(&dims, places, values).map_err(fail)?.values;
            add_scaled(aside.means, M::S::from_f64(0.5), values);
        }
        Ok(())
    }

    /// Through an event, backward; `kept` is the state before it.
    fn transpose_act(&mut self, t: M::S, event: usize, kept: &mut [M::S]) -> Result<(), StepError> {
        let fail = |error: EvalError| error.in_step(t.real(), 0.0);
        let (dims, columns) = (self.dims, self.columns);
        let Some(aside) = &mut self.aside else { return Ok(()) };
        if !self.u.is_empty() {
            self.inputs.at(t, self.u);
        }
        let (system, state) = (self.system, State::of(&dims, kept)?);
        copy(self.next, self.bar);
        let bar = StateDerivatives::with_columns(&dims, columns, self.next)?;
        velocities(system, state.z, state.zd, aside.v).map_err(fail)?;
        let at = At { t, z: state.z, v: aside.v, x: &[], u: self.u };
        // v⁺, for now in vd
        copy(aside.vd, aside.v);
        add_scaled(aside.vd, M::S::ONE, aside.around.actions.act(event, at)?);
        aside.v_bar.fill(M::S::ZERO);
        add_rates_transposed(system, state.z, aside.vd, columns, bar.zd, bar.z, aside.v_bar).map_err(fail)?;
        let Around { actions, time, .. } = &mut aside.around;
        actions.transpose(at, columns, bar.z, aside.v_bar, time, self.stepped, [self.now, self.rho])?;
        bar.zd.fill(M::S::ZERO);
        add_velocities_transposed(system, state.z, state.zd, columns, aside.v_bar, bar.z, bar.zd)
            .map_err(fail)
    }

    /// Into the column of an event's function: g_x and g_ρ at the end of a step. Gives the sum of the sizes of the parts of its rate.
    fn weigh_function(&mut self, t: M::S, event: usize, record: &mut [M::S]) -> Result<f64, StepError> {
        let fail = |error: EvalError| error.in_step(t.real(), 0.0);
        let dims = self.dims;
        let (nq, nv) = (dims.nq, dims.nv);
        let Some(aside) = &mut self.aside else { return Ok(0.0) };
        if !self.u.is_empty() {
            self.inputs.at(t, self.u);
        }
        let (system, end) = (self.system, Record::of(&dims, record)?);
        velocities(system, end.z, end.zd, aside.v).map_err(fail)?;
        accelerations(system, end.z, end.zd, end.zdd, aside.vd).map_err(fail)?;
        // Normalisation rows stand between the two kinds of others.
        let row = |k: usize| if k < dims.n_holonomic { k } else { k + dims.n_normalisation };
        for (k, to) in aside.lambda.iter_mut().enumerate() {
            *to = end.lambda.get(row(k)).copied().unwrap_or(M::S::ZERO);
        }
        let at = At { t, z: end.z, v: aside.v, x: &[], u: self.u };
        let around = &mut aside.around;
        around.actions.function(event, at, aside.vd, aside.lambda, around.function)?;
        let rates = end.zd.iter().chain(aside.vd.iter()).zip(around.function.iter());
        let scale = rates.map(|(&rate, &slope)| (slope * rate).real().abs()).sum::<f64>();
        let scale = scale + around.function_t(&dims).real().abs();
        let (by_z, rest) = cut("function", around.function, nq).map_err(fail)?;
        let (by_v, rest) = cut("function", rest, nv).map_err(fail)?;
        let (by_vd, rest) = cut("function", rest, nv).map_err(fail)?;
        let (by_lambda, rest) = cut("function", rest, dims.joint_rows()).map_err(fail)?;
        let (_, by_rho) = cut("function", rest, 1).map_err(fail)?;
        copy(around.rho, by_rho);
        around.bar.fill(M::S::ZERO);
        let bar = StateDerivatives::with_columns(&dims, 1, around.bar)?;
        copy(bar.z, by_z);
        add_velocities_transposed(system, end.z, end.zd, 1, by_v, bar.z, bar.zd).map_err(fail)?;
        if nq != nv && by_vd.iter().any(|slope| *slope != M::S::ZERO) {
            return Err(StepError::Unsupported { what: NO_ACCELERATIONS });
        }
        copy(bar.zdd, by_vd);
        for (k, &slope) in by_lambda.iter().enumerate() {
            if let Some(to) = bar.lambda.get_mut(row(k)) {
                *to = slope;
            }
        }
        Ok(scale)
    }
}

/// What implicit steps with ball joints do not know.
pub(crate) const NO_ACCELERATIONS: &str =
    "there is no gradient yet of implicit steps with an event on accelerations in a model with ball joints";
