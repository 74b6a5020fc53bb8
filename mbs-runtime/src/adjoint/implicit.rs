//! Adjoints of implicit runs: ALI3-P, index 1 and penalty, with any implicit integrator.
//!
//! A step's derivative is the [`LinearisedStep`](crate::LinearisedStep) of its [`Record`]; going back takes its transposed product. The
//! weights of the quadrature are those of the trapezoidal rule over the nodes, q_k = (t_k+1 − t_k−1)/2 with one half of the step at both
//! ends.

use core::ops::ControlFlow;

use super::checkpoints::{Before, Reversible, Schedule, sweep};
use super::{Adjoint, AdjointStatistics, VectorJacobian, check_weights};
use crate::constrained::Motion;
use crate::error::StepError;
use crate::formulation::{Record, State};
use crate::inputs::Inputs;
use crate::integrator::{Fixed, Nodes, Span, Statistics};
use crate::linear::{add_scaled, copy};
use crate::pieces::{Pieces, cut_mut};
use crate::scalar::Scalar;
use crate::sensitivity::{
    DifferentiableStep, Gradient, ObjectiveDerivatives, Sensitivities, StateDerivatives, Weighed,
    linearised_len, max_columns, objective_rows, state_rows, transpose_derivatives,
};
use crate::system::Dims;

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
    /// The way back has passed the node with this number.
    Backward {
        /// Number of the node, from 0.
        number: usize,
        /// Its time.
        t: S,
        /// Weights of the state at this node: the derivative of what is weighted by it. As [`StateDerivatives`] with the run's columns.
        state: &'a [S],
        /// Weights of the parameters and inputs as this node alone has them: by the step that ends here and by the integrand; under explicit
        /// integrators by the step that begins here. For an input that is its weight by the value u(t_k), but for `step`.
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
        let weights = 2 * state_rows(dims) + 2 * dims.sensitivity.parameters;
        let lists = dims.sensitivity.integrands + dims.sensitivity.terminals;
        2 * State::<f64>::len(dims) + dims.nu + weights * columns + lists + most
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
        product.check(&dims, state_rows(&dims))?;
        let columns = product.columns;
        if columns == 0 || columns > max_columns(&dims) {
            let what = "a product has at least one column, and at most as many as parameters or objectives";
            return Err(StepError::Setting { what, value: columns as f64 });
        }
        let t = *State::of(&dims, state)?.t;
        if t != span.start {
            let what = "the state's time must be the start of the span";
            return Err(StepError::Setting { what, value: t.real() });
        }
        let schedule = self.schedule(&dims, span, memory.len())?;
        let mut pieces = Pieces::of(scratch, self.scratch_len(&dims, columns));
        let len = State::<M::S>::len(&dims);
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
            values: pieces.next(dims.sensitivity.integrands + dims.sensitivity.terminals)?,
            statistics: Statistics { t: t.real(), ..Statistics::default() },
            observe,
            scratch: pieces.rest(),
        };
        for part in [&mut *way.objectives, way.bar, way.now, way.stepped, way.rho] {
            part.fill(M::S::ZERO);
        }
        copy(way.bar, end_weights);
        copy(moving, state);
        if nodes.steps == 0 {
            way.end(&mut State::of(&dims, state)?)?;
        }
        let swept = sweep(&schedule, &mut way, moving, end, memory)?;
        let mut statistics = way.statistics;
        statistics.stopped = swept.stopped;
        if nodes.steps > 0 && !swept.stopped {
            copy(state, end);
        }
        // The node of the start.
        if !swept.stopped {
            way.stepped.fill(M::S::ZERO);
            statistics.stopped = way.pass(0)?.is_break();
        }
        copy(start, way.bar);
        Ok(AdjointStatistics { run: statistics, recomputed: swept.recomputed, schedule })
    }

    /// The objectives and their gradient, see [`Gradient`]: the product with each objective alone, and what the start depends on.
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
        let (columns, p) = (dims.n_objectives, dims.sensitivity.parameters);
        let (expected, found) = (Gradient::<M::S>::len(&dims), gradient.len());
        if expected != found {
            return Err(StepError::Length { what: "gradient", expected, found });
        }
        let (expected, found) = (StateDerivatives::<M::S>::len(&dims), start.len());
        if expected != found {
            return Err(StepError::Length { what: "start", expected, found });
        }
        let mut pieces = Pieces::of(scratch, self.gradient_scratch_len(&dims));
        let weights = pieces.next(columns * columns)?;
        let bar = pieces.next(state_rows(&dims) * columns)?;
        let rho = pieces.next(p * columns)?;
        weights.fill(M::S::ZERO);
        for weight in weights.iter_mut().step_by(columns + 1) {
            *weight = M::S::ONE;
        }
        let (objectives, derivatives) =
            cut_mut("gradient", gradient, columns).map_err(|error| error.in_step(span.start.real(), 0.0))?;
        let product = VectorJacobian {
            columns,
            objective_weights: weights,
            end_weights: &[],
            objectives,
            start: bar,
            rho,
        };
        let statistics = self.run(system, inputs, state, span, product, memory, pieces.rest(), observe)?;
        // ψ_ρ = ρ̄ᵀ + x̄ᵀ x_ρ
        transpose_derivatives(p, columns, start, bar, rho, derivatives);
        check_weights(1, span.end, M::S::ZERO, derivatives)?;
        Ok(statistics)
    }

    /// Length of the scratch of [`Adjoint::gradient`], at least.
    pub fn gradient_scratch_len(&self, dims: &Dims) -> usize {
        let columns = dims.n_objectives;
        let own = (columns + state_rows(dims) + dims.sensitivity.parameters) * columns;
        own + self.scratch_len(dims, columns)
    }
}

/// A run on its way forward and back.
struct Way<'a, T, M: Sensitivities, I, O> {
    method: &'a T,
    system: &'a M,
    inputs: &'a mut I,
    nodes: Nodes<M::S>,
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
    values: &'a mut [M::S],
    statistics: Statistics,
    observe: O,
    scratch: &'a mut [M::S],
}

impl<T, M, I, O> Way<'_, T, M, I, O>
where
    T: DifferentiableStep,
    M: Sensitivities + ObjectiveDerivatives,
    I: Inputs<M::S>,
    O: FnMut(AdjointNode<'_, M::S>) -> ControlFlow<()>,
{
    fn time(&self, number: usize) -> M::S {
        self.nodes.time(number)
    }

    /// q of a node.
    fn quadrature(&self, number: usize) -> M::S {
        let last = if number < self.nodes.steps { number + 1 } else { number };
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
        let fail = |error: crate::EvalError| error.in_step(t.real(), 0.0);
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
        if number == self.nodes.steps {
            self.system.terminal_derivatives(at, lambda, self.scratch, rest).map_err(fail)?;
            weighed.add(&dims, objective_rows(&dims), terminals, M::S::ONE, rest).map_err(fail)?;
        }
        Ok(())
    }

    /// What the weights of the last node begin with.
    fn end(&mut self, state: &mut State<'_, M::S>) -> Result<(), StepError> {
        self.weigh(self.nodes.steps, state.z, state.zd, state.zdd, state.lambda)
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
        Ok((self.observe)(AdjointNode::Forward { number, t, again, z: state.z, rates: state.zd }))
    }
}

impl<T, M, I, O> Reversible for Way<'_, T, M, I, O>
where
    T: DifferentiableStep,
    M: Sensitivities + ObjectiveDerivatives,
    I: Inputs<M::S>,
    O: FnMut(AdjointNode<'_, M::S>) -> ControlFlow<()>,
{
    type S = M::S;

    fn advance(
        &mut self,
        number: usize,
        again: bool,
        state: &mut [M::S],
    ) -> Result<ControlFlow<()>, StepError> {
        let h = self.nodes.size(number, self.time(number - 1));
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
        let h = self.nodes.size(number, self.time(number - 1));
        let (system, scratch) = (self.system, &mut *self.scratch);
        let step = self.method.step_recorded(system, self.inputs, state, h, record, scratch)?;
        let flow = self.made(number, again, &step, h, state)?;
        if number == self.nodes.steps {
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
        let mut linearised =
            self.method.linearise_transposed(self.columns, self.system, record, self.scratch)?;
        self.stepped.fill(M::S::ZERO);
        linearised.add_transposed(record, self.columns, self.bar, self.next, self.stepped)?;
        add_scaled(self.now, M::S::ONE, self.stepped);
        let flow = self.pass(number)?;
        core::mem::swap(&mut self.bar, &mut self.next);
        match before {
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
