//! Products with the derivative of a whole run, so that a run can be a part of a larger gradient.
//!
//! The run is the map (state at the start, ρ) ↦ (objectives ψ, state at the end) with the Jacobian J, of the same discrete solution as every
//! gradient here.
//!
//! | function | input → output |
//! |---|---|
//! | [`vector_jacobian`] | weights ȳ of what the run leaves → Jᵀ ȳ, weights of what enters it |
//! | [`jacobian_vector`] | directions x′ of what enters it → J x′ |
//! | [`gauss_newton`] | ρ′ → Jᵀ W J ρ′ with the objectives as residuals, through the start |
//!
//! A state has the rows of z, zd, zdd, λ and the algorithmic acceleration a in implicit runs ([`StateDerivatives`](mbs_runtime::StateDerivatives)), and those
//! of z and v in explicit ones ([`JointDerivatives`](mbs_runtime::JointDerivatives)). Of a matrix with several columns, row i of column k is at
//! `i * columns + k`. ⟨ȳ, J x′⟩ = ⟨Jᵀ ȳ, x′⟩ to rounding.

use super::complex_step;
use super::explicit::joint_start;
use super::together::Together;
use super::{Effort, Start, State, is_constrained, other_form};
use crate::Interpreted;
use crate::dynamics::Dynamics;
use crate::method::{Damping, Method};
use crate::signals::Signals;
use mbs_codegen::model::{Integrator, Simulation};
use mbs_runtime::sensitivity::{DifferentiableStep, JointDynamics};
use mbs_runtime::{
    Adaptive, Adjoint, AdjointEventIntegrator, AdjointIntegrator, AdjointNode, AdjointStatistics, Ali3p,
    DifferentiableIntegrator, Differentiated, Dop853, Fixed, ImplicitIndex1, JacobianVector, Output, Rk4,
    Scalar, Sdirk4, Span, Stabilisation, StepError, Stiff, System, Trapezoidal, VectorJacobian, WithEvents,
};
use std::ops::ControlFlow;

/// Weights of what a run leaves.
#[derive(Clone, Copy, Debug)]
pub struct Weights<'a, S = f64> {
    /// Columns.
    pub columns: usize,
    /// Of the objectives, a row for each.
    pub objectives: &'a [S],
    /// Of the state at the end; none if it is empty.
    pub end: &'a [S],
}

/// A vector–Jacobian product.
#[derive(Clone, Debug)]
pub struct Weighed<S = f64> {
    /// The objectives.
    pub objectives: Vec<S>,
    /// Weights of the state at the start.
    pub start: Vec<S>,
    /// Weights of the parameters, a row for each; what the start depends on is not in it.
    pub rho: Vec<S>,
    /// The state at the end: a [`State`](mbs_runtime::State) or y = \[z, v\].
    pub end: Vec<S>,
    /// What the run took.
    pub effort: Effort,
    /// What the way back took.
    pub statistics: AdjointStatistics,
}

impl<S> Weighed<S> {
    pub(super) fn stopped(&self) -> bool {
        self.statistics.run.stopped
    }
}

/// Directions of what enters a run.
#[derive(Clone, Copy, Debug)]
pub struct Directions<'a> {
    /// Columns.
    pub columns: usize,
    /// Of the state at the start.
    pub start: &'a [f64],
    /// Of the parameters, a row for each.
    pub rho: &'a [f64],
}

/// A Jacobian–vector product.
#[derive(Clone, Debug)]
pub struct Changes {
    /// The objectives.
    pub objectives: Vec<f64>,
    /// Their changes, a row for each.
    pub objective_changes: Vec<f64>,
    /// Changes of the state at the end.
    pub end: Vec<f64>,
}

/// Whether something happens on the way.
pub(super) fn has_events<S: Scalar>(model: &Interpreted<S>) -> bool {
    !model.program().events.names.is_empty()
}

/// The product of a run's derivative with directions.
pub fn jacobian_vector(
    model: &Interpreted,
    method: &Method,
    simulation: &Simulation,
    start: Start,
    directions: Directions<'_>,
) -> Result<Changes, StepError> {
    if has_events(model) {
        return complex_step::jacobian_vector(model, method, simulation, start, directions);
    }
    let (state, _) = start.run_from(model, method)?;
    let h = simulation.step;
    let way = Forward { model, simulation, state, directions };
    match *method {
        Method::Ali3p(method) => way.implicit(Fixed { method, h }),
        Method::Index1(method) => way.implicit(Fixed { method, h }),
        Method::Rk4(damping) => way.explicit(&Differentiated(Fixed { method: Rk4, h }), damping),
        Method::DormandPrince(control, damping) => way.explicit(&Differentiated(control), damping),
        Method::Dop853(control, damping) => way.explicit(&Differentiated(control), damping),
        Method::Sdirk4(control, damping) => way.stiff(&Differentiated(control), damping),
        Method::Trapezoidal(damping) => way.stiff(&Differentiated(Fixed { method: Trapezoidal, h }), damping),
    }
}

/// Jᵀ W J ρ′ of the whole run, the start included, with the objectives as residuals and the diagonal matrix W of their weights: what stands
/// for the Hessian of ½ Σ w_i ψ_i² in the methods of Gauss–Newton and Levenberg–Marquardt. One run forward along ρ′, one back.
pub fn gauss_newton(
    model: &Interpreted,
    method: &Method,
    simulation: &Simulation,
    start: Start,
    weights: &[f64],
    direction: &[f64],
    memory: usize,
) -> Result<Vec<f64>, StepError> {
    let dims = model.dims();
    let (p, m) = (dims.sensitivity.parameters, dims.n_objectives);
    let lengths = [("direction", p, direction.len()), ("weights", m, weights.len())];
    if let Some((what, expected, found)) = lengths.into_iter().find(|(_, a, b)| a != b) {
        return Err(StepError::Length { what, expected, found });
    }
    let changes = start.derivatives(model, method)?;
    let along = |row: &[f64]| row.iter().zip(direction).map(|(x, v)| x * v).sum();
    let first: Vec<f64> = changes.chunks_exact(p.max(1)).map(along).collect();
    let directions = Directions { columns: 1, start: &first, rho: direction };
    let forward = jacobian_vector(model, method, simulation, start.clone(), directions)?;
    let weighed: Vec<f64> = forward.objective_changes.iter().zip(weights).map(|(x, w)| w * x).collect();
    let weights = Weights { columns: 1, objectives: &weighed, end: &[] };
    let go_on = |_: AdjointNode<'_, f64>| ControlFlow::Continue(());
    let back = vector_jacobian(model, method, simulation, start, weights, memory, go_on)?;
    Ok(through_start(p, 1, &changes, &back))
}

/// A run, and directions of what enters it.
struct Forward<'a> {
    model: &'a Interpreted,
    simulation: &'a Simulation,
    state: Vec<f64>,
    directions: Directions<'a>,
}

impl Forward<'_> {
    fn changes(&self, rows: usize) -> Changes {
        let (m, columns) = (self.model.dims().n_objectives, self.directions.columns);
        let zeros = |n: usize| vec![0.0; n];
        Changes { objectives: zeros(m), objective_changes: zeros(m * columns), end: zeros(rows * columns) }
    }

    fn implicit<T: DifferentiableStep>(mut self, fixed: Fixed<T>) -> Result<Changes, StepError> {
        let (dims, span, run) = (self.model.dims(), span(self.simulation), Differentiated(fixed));
        let Directions { columns, start, rho } = self.directions;
        let mut found = self.changes(mbs_runtime::adjoint::state_rows(&dims));
        let Changes { objectives, objective_changes, end } = &mut found;
        let product = JacobianVector { columns, start, rho, objectives, objective_changes, end };
        let mut scratch = vec![0.0; run.jacobian_vector_scratch_len(&dims, columns)];
        let (mut inputs, state) = (self.model.input_signals(), &mut self.state);
        run.jacobian_vector(self.model, &mut inputs, state, &span, product, &mut scratch)?;
        Ok(found)
    }

    fn explicit(
        self,
        run: &impl DifferentiableIntegrator,
        damping: Option<Damping>,
    ) -> Result<Changes, StepError> {
        let model = self.model;
        let mut choice = model.no_choice();
        self.explicit_of(&Dynamics::new(model, damping, &mut choice), run)
    }

    fn stiff(
        self,
        run: &impl DifferentiableIntegrator,
        damping: Option<Damping>,
    ) -> Result<Changes, StepError> {
        let model = self.model;
        let mut choice = model.no_choice();
        self.explicit_of(&Stiff(&Dynamics::new(model, damping, &mut choice)), run)
    }

    fn explicit_of(
        mut self,
        dynamics: &impl JointDynamics<S = f64, Model = Interpreted>,
        run: &impl DifferentiableIntegrator,
    ) -> Result<Changes, StepError> {
        let span = span(self.simulation);
        let Directions { columns, start, rho } = self.directions;
        let mut found = self.changes(self.model.dims().state());
        let Changes { objectives, objective_changes, end } = &mut found;
        let product = JacobianVector { columns, start, rho, objectives, objective_changes, end };
        let mut scratch = vec![0.0; run.jacobian_vector_scratch_len(dynamics, columns)];
        let (mut inputs, y) = (self.model.input_signals(), &mut self.state);
        run.jacobian_vector(dynamics, &mut inputs, y, &span, product, &mut scratch)?;
        Ok(found)
    }
}

/// Who sees the steps and nodes of an adjoint run.
pub(super) type Watcher<'a, S> = &'a mut dyn FnMut(AdjointNode<'_, S>) -> ControlFlow<()>;

pub(super) fn span<S: Scalar>(simulation: &Simulation) -> Span<S> {
    let number = S::from_f64;
    Span { start: number(simulation.begin), end: number(simulation.end), output: Output::Steps }
}

/// Numbers that an adjoint run with this many columns needs beside records and states of its steps: its state, weights and scratch.
pub(super) fn own_len<S: Scalar>(model: &Interpreted<S>, simulation: &Simulation, columns: usize) -> usize {
    let (dims, h) = (model.dims(), simulation.step);
    let parameters = dims.sensitivity.parameters * columns;
    match simulation.integrator {
        _ if simulation.is_in_joint_form(is_constrained(model)) => {
            let damping = Damping::of(simulation, is_constrained(model), &[]);
            let mut choice = model.no_choice();
            let dynamics = &Dynamics::new(model, damping, &mut choice);
            let scratch = match simulation.integrator {
                Integrator::Dop853 => {
                    scratch_len(model, dynamics, &Adjoint(Adaptive::of(Dop853, 1.0, 1.0)), columns)
                }
                // Of the method with more stages.
                integrator if integrator.is_explicit() => {
                    scratch_len(model, dynamics, &Adjoint(Adaptive::new(1.0, 1.0)), columns)
                }
                _ => {
                    let run = Adjoint(Adaptive::of(Sdirk4, 1.0, 1.0));
                    scratch_len(model, &Stiff(dynamics), &run, columns)
                }
            };
            dims.state() * (1 + columns) + parameters + scratch
        }
        _ => {
            let run = Adjoint(Fixed { method: ImplicitIndex1::new(NO_STABILISATION), h });
            let other = Adjoint(Fixed { method: Ali3p::DEFAULT, h });
            let scratch = match has_events(model) {
                true => {
                    let other = other.implicit_event_scratch_len(model, columns);
                    run.implicit_event_scratch_len(model, columns).max(other)
                }
                false => run.scratch_len(&dims, columns).max(other.scratch_len(&dims, columns)),
            };
            let rows = mbs_runtime::adjoint::state_rows(&dims);
            mbs_runtime::State::<S>::len(&dims) + rows * columns + parameters + scratch
        }
    }
}

/// Length of the scratch of an adjoint in joint form.
fn scratch_len<S: Scalar>(
    model: &Interpreted<S>,
    dynamics: &(impl JointDynamics<S = S, Model = Interpreted<S>> + WithEvents<Model = Interpreted<S>>),
    run: &impl AdjointEventIntegrator,
    columns: usize,
) -> usize {
    match has_events(model) {
        true => run.event_scratch_len(dynamics, columns),
        false => run.scratch_len(dynamics, columns),
    }
}

const NO_STABILISATION: Stabilisation<f64> = Stabilisation { rate: 0.0, value: 0.0, compliance: 0.0 };

/// An error that counts all of the memory, not only what is left for steps.
pub(super) fn counting(own: usize, found: usize, error: StepError) -> StepError {
    match error {
        StepError::Length { what: what @ "memory", expected, .. } => {
            StepError::Length { what, expected: expected.saturating_add(own), found }
        }
        error => error,
    }
}

/// The product of a run's transposed derivative with weights, in at most this many bytes. The observer sees every step and every node
/// of the way back; where it breaks, the product is meaningless.
#[allow(clippy::too_many_arguments, reason = "a run, weights, and how to take them back")]
pub fn vector_jacobian(
    model: &Interpreted,
    method: &Method,
    simulation: &Simulation,
    start: Start,
    weights: Weights<'_>,
    memory: usize,
    mut observe: impl FnMut(AdjointNode<'_, f64>) -> ControlFlow<()>,
) -> Result<Weighed, StepError> {
    let (first, mut together) = (has_events(model).then(|| start.clone()), Together::default());
    let (state, _) = start.run_from(model, method)?;
    let watch = &mut |node: AdjointNode<'_, f64>| {
        together.see(&node);
        observe(node)
    };
    let inputs = &mut model.input_signals();
    let found = weigh(model, inputs, method, simulation, state, weights, memory, watch)?;
    if let Some(start) = first {
        together.check(model, method, simulation, || Ok(start))?;
    }
    Ok(found)
}

/// The run up to the node at `t`, whose steps are those of the run.
fn until(method: &Method, simulation: &Simulation, t: f64) -> Result<Simulation, StepError> {
    let Simulation { begin, end, step, .. } = *simulation;
    let ratio = (t - begin) / step;
    let is_node = (ratio - ratio.round()).abs() <= 8.0 * f64::EPSILON * t.abs().max(begin.abs()) / step;
    let what = match *method {
        _ if t == end => "",
        Method::DormandPrince(..) | Method::Dop853(..) | Method::Sdirk4(..) => {
            "under step control the state is known at the end of the run alone: let it end there, or take an integrator with fixed steps"
        }
        _ if !(t > begin && t < end) => "the time of the state must lie within the run",
        _ if !is_node => "the time of the state must be that of a step: `begin` and a multiple of `step`",
        _ => "",
    };
    match what {
        "" => Ok(Simulation { end: t, ..simulation.clone() }),
        what => Err(StepError::Setting { what, value: t }),
    }
}

/// [`jacobian_vector`] of the run (state at start, ρ) ↦ (objectives, state at the node `t`): the objectives are those of all of the run.
pub fn jacobian_vector_at(
    model: &Interpreted,
    method: &Method,
    simulation: &Simulation,
    start: Start,
    t: f64,
    directions: Directions<'_>,
) -> Result<Changes, StepError> {
    let part = until(method, simulation, t)?;
    let whole = jacobian_vector(model, method, simulation, start.clone(), directions)?;
    if t == simulation.end {
        return Ok(whole);
    }
    let state = jacobian_vector(model, method, &part, start, directions)?;
    Ok(Changes { end: state.end, ..whole })
}

/// [`vector_jacobian`] of the same: `weights.end` are those of the state at the node `t`. The sum of two products, of the run with the weights of
/// the objectives and of its steps up to `t` with those of the state.
pub fn vector_jacobian_at(
    model: &Interpreted,
    method: &Method,
    simulation: &Simulation,
    start: Start,
    t: f64,
    weights: Weights<'_>,
    memory: usize,
) -> Result<Weighed, StepError> {
    let go_on = |_: AdjointNode<'_, f64>| ControlFlow::Continue(());
    let part = until(method, simulation, t)?;
    if t == simulation.end {
        return vector_jacobian(model, method, simulation, start, weights, memory, go_on);
    }
    let objectives = Weights { end: &[], ..weights };
    let mut whole = vector_jacobian(model, method, simulation, start.clone(), objectives, memory, go_on)?;
    let nothing = vec![0.0; weights.objectives.len()];
    let state = Weights { objectives: &nothing, ..weights };
    let state = vector_jacobian(model, method, &part, start, state, memory, go_on)?;
    let sums = [(&mut whole.start, &state.start), (&mut whole.rho, &state.rho)];
    for (to, from) in sums.into_iter().flat_map(|(to, from)| to.iter_mut().zip(from)) {
        *to += from;
    }
    Ok(Weighed { end: state.end, ..whole })
}

/// ρ̄ + x_ρᵀ x̄ for each column: the weights of the parameters of the whole run, the start included. Of column k by parameter i at
/// `k * p + i`. `changes`: derivatives of the start.
pub fn through_start<S: Scalar>(p: usize, columns: usize, changes: &[S], product: &Weighed<S>) -> Vec<S> {
    let mut all = vec![S::ZERO; columns * p];
    for (k, all) in all.chunks_exact_mut(p.max(1)).enumerate() {
        for (to, &rho) in all.iter_mut().zip(product.rho.iter().skip(k).step_by(columns)) {
            *to = rho;
        }
        let weights = product.start.iter().skip(k).step_by(columns);
        for (&weight, row) in weights.zip(changes.chunks_exact(p.max(1))) {
            for (to, &x) in all.iter_mut().zip(row) {
                *to += weight * x;
            }
        }
    }
    all
}

impl<S: Scalar> Start<S> {
    /// The state that a run by this method begins with, and its derivatives by the parameters.
    pub(super) fn run_from(
        self,
        model: &Interpreted<S>,
        method: &Method,
    ) -> Result<(Vec<S>, Vec<S>), StepError> {
        match self.state {
            State::Assembled { state, derivatives } if !method.is_runge_kutta() => Ok((state, derivatives)),
            _ if method.is_runge_kutta() => joint_start(model, self),
            _ => Err(other_form()),
        }
    }

    /// Derivatives of the state that a run by this method begins with, by the parameters: as [`Directions::start`] with a column for each.
    pub fn derivatives(&self, model: &Interpreted<S>, method: &Method) -> Result<Vec<S>, StepError> {
        Ok(self.clone().run_from(model, method)?.1)
    }
}

/// The same from any state, with any inputs, in any numbers.
#[allow(clippy::too_many_arguments, reason = "a run, weights, and how to take them back")]
pub(super) fn weigh<S: Scalar>(
    model: &Interpreted<S>,
    inputs: &mut Signals<'_, S>,
    method: &Method,
    simulation: &Simulation,
    state: Vec<S>,
    weights: Weights<'_, S>,
    memory: usize,
    observe: Watcher<'_, S>,
) -> Result<Weighed<S>, StepError> {
    let own = own_len(model, simulation, weights.columns);
    let numbers = (memory / size_of::<S>()).saturating_sub(own);
    let h = simulation.step;
    let mut way = Way { model, inputs, simulation, state, weights, numbers, observe };
    let found = match *method {
        // How many steps there will be is not known: a part of the memory first.
        _ if has_events(model) => way.in_growing_memory(|way| match *method {
            Method::Ali3p(method) => way.implicit_with_events(Fixed { method, h }),
            Method::Index1(method) => way.implicit_with_events(Fixed { method, h }),
            Method::Rk4(damping) => way.explicit(Adjoint(Fixed { method: Rk4, h }), damping),
            Method::DormandPrince(control, damping) => way.explicit(Adjoint(control), damping),
            Method::Dop853(control, damping) => way.explicit(Adjoint(control), damping),
            Method::Sdirk4(control, damping) => way.stiff(Adjoint(control), damping),
            Method::Trapezoidal(damping) => way.stiff(Adjoint(Fixed { method: Trapezoidal, h }), damping),
        }),
        Method::Ali3p(method) => way.implicit(Fixed { method, h }),
        Method::Index1(method) => way.implicit(Fixed { method, h }),
        Method::Rk4(damping) | Method::Trapezoidal(damping) => {
            // Steps are counted alike.
            let run = Adjoint(Fixed { method: Rk4, h });
            let mut choice = model.no_choice();
            let dims = Dynamics::new(model, damping, &mut choice).dims();
            let plan = AdjointIntegrator::schedule(&run, &dims, &span::<S>(simulation), numbers);
            plan.and_then(|plan| {
                way.numbers = plan.map_or(numbers, |plan| plan.memory_len());
                match *method {
                    Method::Trapezoidal(_) => way.stiff(Adjoint(Fixed { method: Trapezoidal, h }), damping),
                    _ => way.explicit(run, damping),
                }
            })
        }
        Method::DormandPrince(control, damping) => {
            way.in_growing_memory(|way| way.explicit(Adjoint(control), damping))
        }
        Method::Dop853(control, damping) => {
            way.in_growing_memory(|way| way.explicit(Adjoint(control), damping))
        }
        Method::Sdirk4(control, damping) => way.in_growing_memory(|way| way.stiff(Adjoint(control), damping)),
    };
    found.map_err(|error| counting(own, memory / size_of::<S>(), error))
}

/// Numbers that a run by step control may take before more are given to it.
const AT_FIRST: usize = 1 << 22;

/// A run, and weights of what it leaves.
struct Way<'a, 'm, S: Scalar> {
    model: &'a Interpreted<S>,
    inputs: &'a mut Signals<'m, S>,
    simulation: &'a Simulation,
    state: Vec<S>,
    weights: Weights<'a, S>,
    numbers: usize,
    observe: Watcher<'a, S>,
}

impl<'m, S: Scalar> Way<'_, 'm, S> {
    /// The same, to be made once more.
    fn again(&mut self) -> Way<'_, 'm, S> {
        Way {
            model: self.model,
            inputs: &mut *self.inputs,
            simulation: self.simulation,
            state: self.state.clone(),
            weights: self.weights,
            numbers: self.numbers,
            observe: &mut *self.observe,
        }
    }

    /// What `run` finds, in a part of the memory if that is enough.
    fn in_growing_memory(
        &mut self,
        run: impl Fn(Way<'_, 'm, S>) -> Result<Weighed<S>, StepError>,
    ) -> Result<Weighed<S>, StepError> {
        let numbers = self.numbers;
        let mut some = numbers.min(AT_FIRST);
        loop {
            self.numbers = some;
            match run(self.again()) {
                Err(StepError::Length { what: "memory", expected, .. }) if some < numbers => {
                    some = some.saturating_mul(8).max(expected).min(numbers);
                }
                found => break found,
            }
        }
    }

    fn implicit<T: DifferentiableStep>(self, fixed: Fixed<T>) -> Result<Weighed<S>, StepError> {
        let Way { model, inputs, simulation, mut state, weights, numbers, observe } = self;
        let (dims, span, run, columns) = (model.dims(), span(simulation), Adjoint(fixed), weights.columns);
        let schedule = run.schedule(&dims, &span, numbers)?;
        let zeros = |n: usize| vec![S::ZERO; n];
        let (mut objectives, mut rho) =
            (zeros(dims.n_objectives), zeros(dims.sensitivity.parameters * columns));
        let mut start = zeros(mbs_runtime::adjoint::state_rows(&dims) * columns);
        let (mut scratch, mut memory) =
            (zeros(run.scratch_len(&dims, columns)), zeros(schedule.memory_len()));
        let product = VectorJacobian {
            columns,
            objective_weights: weights.objectives,
            end_weights: weights.end,
            objectives: &mut objectives,
            start: &mut start,
            rho: &mut rho,
        };
        let statistics =
            run.run(model, inputs, &mut state, &span, product, &mut memory, &mut scratch, observe)?;
        let effort = Effort::Implicit(statistics.run);
        Ok(Weighed { objectives, start, rho, end: state, effort, statistics })
    }

    fn implicit_with_events<T: DifferentiableStep>(self, fixed: Fixed<T>) -> Result<Weighed<S>, StepError> {
        let Way { model, inputs, simulation, mut state, weights, numbers, observe } = self;
        let (dims, span, run, columns) = (model.dims(), span(simulation), Adjoint(fixed), weights.columns);
        let zeros = |n: usize| vec![S::ZERO; n];
        let (mut objectives, mut rho) =
            (zeros(dims.n_objectives), zeros(dims.sensitivity.parameters * columns));
        let mut start = zeros(mbs_runtime::adjoint::state_rows(&dims) * columns);
        let (mut scratch, mut memory) =
            (zeros(run.implicit_event_scratch_len(model, columns)), zeros(numbers));
        let product = VectorJacobian {
            columns,
            objective_weights: weights.objectives,
            end_weights: weights.end,
            objectives: &mut objectives,
            start: &mut start,
            rho: &mut rho,
        };
        let (state_to, memory, scratch) = (&mut state, &mut memory, &mut scratch);
        let statistics =
            run.run_implicit_with_events(model, inputs, state_to, &span, product, memory, scratch, observe)?;
        let effort = Effort::Implicit(statistics.run);
        Ok(Weighed { objectives, start, rho, end: state, effort, statistics })
    }

    fn explicit(
        self,
        run: impl AdjointEventIntegrator,
        damping: Option<Damping>,
    ) -> Result<Weighed<S>, StepError> {
        let model = self.model;
        let mut choice = model.no_choice();
        self.explicit_of(&Dynamics::new(model, damping, &mut choice), run)
    }

    fn stiff(
        self,
        run: impl AdjointEventIntegrator,
        damping: Option<Damping>,
    ) -> Result<Weighed<S>, StepError> {
        let model = self.model;
        let mut choice = model.no_choice();
        self.explicit_of(&Stiff(&Dynamics::new(model, damping, &mut choice)), run)
    }

    fn explicit_of(
        self,
        dynamics: &(impl JointDynamics<S = S, Model = Interpreted<S>> + WithEvents<Model = Interpreted<S>>),
        run: impl AdjointEventIntegrator,
    ) -> Result<Weighed<S>, StepError> {
        let Way { model, inputs, simulation, state: mut y, weights, numbers, observe } = self;
        let (dims, span, columns) = (model.dims(), span(simulation), weights.columns);
        let zeros = |n: usize| vec![S::ZERO; n];
        let (mut objectives, mut rho) =
            (zeros(dims.n_objectives), zeros(dims.sensitivity.parameters * columns));
        let mut start = zeros(dims.state() * columns);
        let events = has_events(model);
        let scratch = scratch_len(model, dynamics, &run, columns);
        // What is not touched takes no memory.
        let (mut scratch, mut memory) = (zeros(scratch), zeros(numbers));
        let product = VectorJacobian {
            columns,
            objective_weights: weights.objectives,
            end_weights: weights.end,
            objectives: &mut objectives,
            start: &mut start,
            rho: &mut rho,
        };
        let (memory, scratch) = (&mut memory, &mut scratch);
        let statistics = match events {
            true => {
                run.run_with_events(dynamics, inputs, &mut y, &span, product, memory, scratch, observe)?
            }
            false => run.run(dynamics, inputs, &mut y, &span, product, memory, scratch, observe)?,
        };
        let effort = Effort::Explicit(statistics.run);
        Ok(Weighed { objectives, start, rho, end: y, effort, statistics })
    }
}
