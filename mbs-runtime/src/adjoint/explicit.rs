//! Adjoints of runs by Runge–Kutta steps: over open trees, over index 1 and penalty, with steps that end on the constraints, over matrix R.
//!
//! A step is made again from its first state, with all its stages, and reversed. For k_i = f(t + c_i h, Y_i), Y_i = y + h Σ a_ij k_j,
//! y_next = F(y + h Σ b_i k_i) with the corrections F that end a step, and ψ = w + Σ h b_i g(Y_i),
//!
//! ```text
//! ȳ = F_yᵀ ȳ_next      k̄_i = h b_i ȳ + h Σ_j>i a_ji Ȳ_j      Ȳ_i = f_yᵀ k̄_i + h b_i g_yᵀ ψ̄      ȳ_before = ȳ + Σ Ȳ_i
//! ```
//!
//! f_yᵀ takes the weights of zd = N v and of the accelerations: with s, σ from the symmetric matrix of [`JointSensitivities`],
//!
//! ```text
//! [ M    Φ_vᵀ ] [s]   [ v̄d + g_vdᵀ ]        θ̄ = −tau_θᵀ s − c_θᵀ σ + g_θᵀ      z̄ = Lᵀ θ̄ + (N(·) v)ᵀ z̄d
//! [ Φ_v  −e   ] [σ] = [ g_λᵀ       ]        v̄ = −tau_vᵀ s − c_vᵀ σ + g_vᵀ + Nᵀ z̄d
//! ```
//!
//! An implicit stage Y_i = y + h Σ a_ij k_j + h γ k_i passes Ȳ_i = f_yᵀ k̄_i + h b_i g_yᵀ ψ̄ on as the weight of its base, and takes its own part of k̄_i:
//!
//! ```text
//! (1 − hγ f_y)ᵀ B̄_i = Ȳ_i        ρ̄ = ρ̄ + f_ρᵀ (k̄_i + hγ B̄_i)        k̄_i = h b_i ȳ + h Σ_j>i a_ji B̄_j        ȳ_before = ȳ + Σ B̄_i
//! ```
//!
//! with f_y at the converged stage. Where rates are weighted (`integrator::weighted`), k̄_i is that of the weighted one, and what a method carries stands
//! after the state. Where stages are completed, f is that of the completed one. Steps of controlled size are those of the run, taken as they are.

use core::marker::PhantomData;
use core::ops::{ControlFlow, Range};

use super::checkpoints::{Before, Reversible, Schedule, Swept, behind_list, sweep};
use super::continuous::Slopes;
use super::items::{Around, End, Item, Times, add_outer};
use super::{
    Adjoint, AdjointNode, AdjointStatistics, VectorJacobian, check_weights, gradient_by_product, gradient_len,
};
use crate::error::{EvalError, StepError};
use crate::euler_parameters::{add_rates_transposed, add_tangents_transposed, normalised};
use crate::formulation::Corrections;
use crate::inputs::{Held, Inputs, Stop};
use crate::integrator::{
    Adaptive, AdaptiveRun, Controlled, ExplicitRun, Fixed, FixedStep, Hooks, Implicit, Iteration, Limits,
    Next, Nodes, Rates, RungeKutta, Span, Statistics, StepStatistics, StepWeights, Tableau, Taken, Three,
    alphas, check_finite, check_state, close_weighted, drive, rates_of_stage, renormalise, solve_stage,
};
use crate::linear::{add_scaled, all_finite, copy};
use crate::pieces::{Pieces, cut, cut_mut};
use crate::scalar::Scalar;
use crate::sensitivity::{
    Completion, Correction, JointDynamics, JointObjectiveDerivatives, JointSensitivities, JointValues,
    Linear, ObjectiveValues, StageTangent, TransposedProduct, Weighed, joint_objective_rows, load_choice,
    redundancy_len, refuse_first_order_states, refuse_redundant_multipliers, save_choice,
};
use crate::system::{At, Dims, Quantity};

/// Corrections that a step may take, as in `index1`.
const MAX_CORRECTIONS: usize = 10;

/// The adjoint of a way to integrate a system in joint form.
pub trait AdjointIntegrator {
    /// Length of the scratch that a product with this many columns needs, at least.
    fn scratch_len<D: JointDynamics>(&self, system: &D, columns: usize) -> usize;

    /// How a run over the span would use this much memory, in numbers; none if the number of steps is not known before it.
    fn schedule<S: Scalar>(
        &self,
        dims: &Dims,
        span: &Span<S>,
        memory: usize,
    ) -> Result<Option<Schedule>, StepError>;

    /// Integrates `y` = \[z, v\] from start to end of the span and takes the weights back; weights of states have a row for each entry of y.
    /// `y` is that at the end afterwards. After an error, or where the observer breaks, the products are meaningless.
    ///
    /// With step control the memory also holds times and sizes of all steps. The run keeps its states there, too; where they do not fit, it is made
    /// once more.
    #[allow(clippy::too_many_arguments, reason = "what a run reads and writes")]
    fn run<D, I, O>(
        &self,
        system: &D,
        inputs: &mut I,
        y: &mut [D::S],
        span: &Span<D::S>,
        product: VectorJacobian<'_, D::S>,
        memory: &mut [D::S],
        scratch: &mut [D::S],
        observe: O,
    ) -> Result<AdjointStatistics, StepError>
    where
        D: JointDynamics,
        D::Model: JointObjectiveDerivatives,
        I: Inputs<D::S>,
        O: FnMut(AdjointNode<'_, D::S>) -> ControlFlow<()>;

    /// Length of the scratch of [`AdjointIntegrator::gradient`], at least.
    fn gradient_scratch_len<D: JointDynamics>(&self, system: &D) -> usize {
        let dims = system.dims();
        gradient_len(&dims, dims.state()) + self.scratch_len(system, dims.n_objectives)
    }

    /// The objectives and their gradient, see [`Gradient`](crate::Gradient): the product with each objective alone, and what the start depends on.
    /// `start`: the derivatives of the start, as [`JointDerivatives`](crate::JointDerivatives).
    #[allow(clippy::too_many_arguments, reason = "what a run reads and writes")]
    fn gradient<D, I, O>(
        &self,
        system: &D,
        inputs: &mut I,
        y: &mut [D::S],
        start: &[D::S],
        span: &Span<D::S>,
        gradient: &mut [D::S],
        memory: &mut [D::S],
        scratch: &mut [D::S],
        observe: O,
    ) -> Result<AdjointStatistics, StepError>
    where
        D: JointDynamics,
        D::Model: JointObjectiveDerivatives,
        I: Inputs<D::S>,
        O: FnMut(AdjointNode<'_, D::S>) -> ControlFlow<()>,
    {
        let dims = system.dims();
        gradient_by_product(&dims, dims.state(), span.end, start, gradient, scratch, |product, scratch| {
            self.run(system, inputs, y, span, product, memory, scratch, observe)
        })
    }
}

impl<T: FixedStep> AdjointIntegrator for Adjoint<Fixed<T>> {
    fn scratch_len<D: JointDynamics>(&self, system: &D, columns: usize) -> usize {
        way_len::<T, D>(system, columns) + at_once_len(&system.dims(), columns)
    }

    fn schedule<S: Scalar>(
        &self,
        dims: &Dims,
        span: &Span<S>,
        memory: usize,
    ) -> Result<Option<Schedule>, StepError> {
        let (steps, n) = (Nodes::new(span, self.0.h)?.steps, dims.stepped() + dims.n_choice);
        Schedule::new(steps, n, n, memory).map(Some)
    }

    fn run<D, I, O>(
        &self,
        system: &D,
        inputs: &mut I,
        y: &mut [D::S],
        span: &Span<D::S>,
        product: VectorJacobian<'_, D::S>,
        memory: &mut [D::S],
        scratch: &mut [D::S],
        observe: O,
    ) -> Result<AdjointStatistics, StepError>
    where
        D: JointDynamics,
        D::Model: JointObjectiveDerivatives,
        I: Inputs<D::S>,
        O: FnMut(AdjointNode<'_, D::S>) -> ControlFlow<()>,
    {
        refuse_first_order_states(system)?;
        let nodes = Nodes::new(span, self.0.h)?;
        let mut pieces = Pieces::of(scratch, AdjointIntegrator::scratch_len(self, system, product.columns));
        let way = Way::<T, _, _, _, _>::new(system, inputs, nodes, product, None, &mut pieces, observe)?;
        way.run(y, memory)
    }
}

impl<T: Controlled> AdjointIntegrator for Adjoint<Adaptive<T>> {
    fn scratch_len<D: JointDynamics>(&self, system: &D, columns: usize) -> usize {
        // The first run integrates the objectives with the state.
        let dims = system.dims();
        way_len::<T, D>(system, columns)
            + at_once_len(&dims, columns)
            + dims.n_objectives
            + T::memory_len(dims.n_objectives)
            + dims.n_choice
    }

    fn schedule<S: Scalar>(&self, _: &Dims, _: &Span<S>, _: usize) -> Result<Option<Schedule>, StepError> {
        Ok(None)
    }

    fn run<D, I, O>(
        &self,
        system: &D,
        inputs: &mut I,
        y: &mut [D::S],
        span: &Span<D::S>,
        product: VectorJacobian<'_, D::S>,
        memory: &mut [D::S],
        scratch: &mut [D::S],
        mut observe: O,
    ) -> Result<AdjointStatistics, StepError>
    where
        D: JointDynamics,
        D::Model: JointObjectiveDerivatives,
        I: Inputs<D::S>,
        O: FnMut(AdjointNode<'_, D::S>) -> ControlFlow<()>,
    {
        refuse_first_order_states(system)?;
        let dims = system.dims();
        check_state(&dims, y)?;
        // The sizes of the steps, and the states between them if they fit.
        let (statistics, steps, kept) = {
            let mut pieces =
                Pieces::of(&mut *scratch, AdjointIntegrator::scratch_len(self, system, product.columns));
            let n = dims.state() + if self.0.objectives { dims.n_objectives } else { 0 };
            // Both ways begin with the same choice.
            let first_choice = pieces.next(dims.n_choice)?;
            save_choice(system, first_choice);
            let moving = pieces.next(n)?;
            moving.fill(D::S::ZERO);
            copy(moving, y);
            let mut stages = T::stages(n, &mut pieces)?;
            let mut field = Plain::new(system, inputs, product.columns, &mut pieces)?;
            if n > dims.state() {
                field.integrands = pieces.next(dims.sensitivity.joint_integrands)?;
            }
            let mut run = AdaptiveRun::new(&self.0, &mut field, &mut stages, span.start, moving);
            let mut sizes =
                Sizes { system, memory: &mut *memory, steps: 0, keeps: true, observe: &mut observe };
            sizes.keep(y);
            let statistics = drive(&mut run, &mut Limits::new(&self.0, span)?, &mut sizes)?;
            (statistics, sizes.steps, sizes.keeps)
        };
        let n = dims.state() + dims.n_choice;
        if statistics.stopped {
            let schedule = Schedule::new(0, n, n, usize::MAX)?;
            return Ok(AdjointStatistics { run: statistics, recomputed: 0, schedule });
        }
        let (list, memory) = match kept {
            true => memory.split_at_mut_checked(2 * steps).ok_or(Sizes::<D, O>::TOO_LITTLE)?,
            false => behind_list(memory, 2 * steps, steps, n, n)?,
        };
        let times = Listed { start: span.start, steps, list };
        let mut pieces = Pieces::of(scratch, AdjointIntegrator::scratch_len(self, system, product.columns));
        load_choice(system, pieces.next(dims.n_choice)?);
        let way = Way::<T, _, _, _, _>::new(system, inputs, times, product, None, &mut pieces, observe)?;
        let mut found = if kept { way.run_kept(y, memory)? } else { way.run(y, memory)? };
        if !kept {
            found.recomputed += steps;
        }
        // What the first run took, rejected steps included.
        found.run = Statistics { stopped: found.run.stopped, ..statistics };
        Ok(found)
    }
}

/// Steps of any size: of each the time at its end, and its size.
struct Listed<'a, S> {
    start: S,
    steps: usize,
    list: &'a [S],
}

impl<S: Scalar> Times<S> for Listed<'_, S> {
    fn steps(&self) -> usize {
        self.steps
    }

    fn time(&self, number: usize) -> S {
        let place = number.checked_sub(1).and_then(|step| self.list.get(2 * step));
        place.copied().unwrap_or(self.start)
    }

    fn size(&self, number: usize) -> S {
        let place = number.checked_sub(1).and_then(|step| self.list.get(2 * step + 1));
        place.copied().unwrap_or(S::ZERO)
    }
}

/// Keeps times and sizes of steps at the beginning of the memory, and states from its end on, the first one last, for as long as they fit.
struct Sizes<'a, D: JointDynamics, O> {
    system: &'a D,
    memory: &'a mut [D::S],
    steps: usize,
    /// Whether all states have been kept.
    keeps: bool,
    observe: &'a mut O,
}

impl<D: JointDynamics, O> Sizes<'_, D, O> {
    const TOO_LITTLE: StepError = StepError::Length { what: "memory", expected: 0, found: 0 };

    /// Keeps the state after the steps so far, and the choice of independent coordinates.
    fn keep(&mut self, y: &[D::S]) {
        let dims = self.system.dims();
        let len = dims.state() + dims.n_choice;
        let place =
            kept_place(self.memory.len(), len, self.steps).filter(|place| place.start >= 2 * self.steps);
        match place.filter(|_| self.keeps).and_then(|place| self.memory.get_mut(place)) {
            Some(state) => {
                let (first, choice) = state.split_at_mut(dims.state().min(len));
                copy(first, y);
                save_choice(self.system, choice);
            }
            None => self.keeps = false,
        }
    }
}

/// Where the state after this many steps is kept in a memory of this length.
fn kept_place(memory: usize, len: usize, number: usize) -> Option<Range<usize>> {
    let end = memory.checked_sub(number.checked_mul(len)?)?;
    Some(end.checked_sub(len)?..end)
}

impl<D, W, O> Hooks<W> for Sizes<'_, D, O>
where
    D: JointDynamics,
    W: ExplicitRun<S = D::S>,
    O: FnMut(AdjointNode<'_, D::S>) -> ControlFlow<()>,
{
    fn node(&mut self, run: &mut W, step: &Taken<W::S>, _: bool) -> Result<Next, StepError> {
        if step.h == W::S::ZERO {
            return Ok(Next::Continue);
        }
        // Where the memory is too small the run goes on, so that its error can say how much it needs.
        if let Some(place) = self.memory.get_mut(2 * self.steps..2 * self.steps + 2) {
            // What stands there may be a state.
            copy(place, &[step.end, step.h]);
        }
        self.steps += 1;
        let (field, y) = run.parts();
        self.keep(y);
        let Dims { nq, nv, .. } = field.dims();
        let fail = |error: EvalError| error.in_step(step.t.real(), step.h.real());
        let (z, rest) = cut("y", y, nq).map_err(fail)?;
        let (rates, _) = cut("y", rest, nv).map_err(fail)?;
        let node = AdjointNode::Forward { number: self.steps, t: step.end, again: false, z, rates };
        Ok(if (self.observe)(node).is_break() { Next::Stop } else { Next::Continue })
    }
}

/// Rates without derivatives, and the multipliers.
pub(crate) struct Plain<'a, D: JointDynamics, I> {
    pub(super) system: &'a D,
    pub(super) dims: Dims,
    pub(super) inputs: Held<'a, D::S, I>,
    pub(super) lambda: &'a mut [D::S],
    /// For what the bundle of integrands writes; empty where the objectives are not states.
    pub(crate) integrands: &'a mut [D::S],
    /// The derivative of an implicit stage.
    pub(super) tangent: StageTangent<'a, D::S>,
    /// A completed stage.
    pub(super) stage: &'a mut [D::S],
    /// The second rate of coordinates.
    pub(super) second: &'a mut [D::S],
    pub(super) weights: Option<StepWeights<D::S>>,
    pub(super) w: &'a mut [D::S],
    pub(super) evaluations: usize,
}

/// Its length; with a stage, whether it is completed or not.
pub(crate) fn plain_len<D: JointDynamics>(system: &D, columns: usize) -> usize {
    let dims = &system.dims();
    let stage = if system.solves_stages() { StageTangent::<D::S>::len(dims, columns) } else { 0 };
    dims.state() + dims.nq + 3 * dims.nu + dims.joint_rows() + stage + dims.workspace
}

impl<'a, D: JointDynamics, I: Inputs<D::S>> Plain<'a, D, I> {
    pub(crate) fn new(
        system: &'a D,
        inputs: &'a mut I,
        columns: usize,
        pieces: &mut Pieces<'a, D::S>,
    ) -> Result<Self, StepError> {
        let dims = system.dims();
        let held = [pieces.next(dims.nu)?, pieces.next(dims.nu)?, pieces.next(dims.nu)?];
        Ok(Self {
            system,
            dims,
            inputs: Held::new(inputs, system.holds(), held),
            lambda: pieces.next(dims.joint_rows())?,
            integrands: &mut [],
            tangent: match system.solves_stages() {
                true => StageTangent::new(&dims, columns, pieces)?,
                false => StageTangent::none(),
            },
            stage: pieces.next(if system.completes() { dims.state() } else { 0 })?,
            second: pieces.next(if system.completes() { dims.nq } else { 0 })?,
            weights: None,
            w: pieces.next(dims.workspace)?,
            evaluations: 0,
        })
    }
}

impl<D: JointDynamics, I: Inputs<D::S>> Rates for Plain<'_, D, I>
where
    D::Model: JointObjectiveDerivatives,
{
    type S = D::S;

    fn begin_step(&mut self, t0: D::S, t1: D::S) {
        self.inputs.begin_step(t0, t1);
        self.weights = None;
    }

    fn newmark(&self) -> Implicit {
        self.system.newmark()
    }

    fn weigh_step(&mut self, h: D::S) {
        self.weights = self.system.newmark().weights(h);
    }

    fn prepare_step(&mut self, t: D::S, y: &[D::S]) -> Result<(), EvalError> {
        if !self.system.completes() {
            return Ok(());
        }
        let (y, _) = cut("y", y, self.dims.state())?;
        let at = At::of_state(&self.dims, t, y, self.inputs.at_node(t))?;
        self.system.prepare_step(at, self.w)
    }

    fn rate(&mut self, t: D::S, c: f64, y: &[D::S], yd: &mut [D::S]) -> Result<(), EvalError> {
        let u = self.inputs.during_step(t, D::S::from_f64(c));
        let (mut y, rest) = cut("y", y, self.dims.state())?;
        let excess = rest.get(rest.len().saturating_sub(self.dims.n_excess)..).unwrap_or_default();
        if self.system.completes() {
            copy(self.stage, y);
            let (z, v) = cut_mut("y", self.stage, self.dims.nq)?;
            self.system.complete(t, u, self.w, z, v)?;
            y = self.stage;
        }
        let at = At::of_state(&self.dims, t, y, u)?;
        let end = yd.len().saturating_sub(self.dims.n_excess);
        let (rates, excess_rate) = cut_mut("yd", yd, end)?;
        let (rate, integrands) = cut_mut("yd", rates, self.dims.state())?;
        let (zd, vd) = cut_mut("yd", rate, self.dims.nq)?;
        self.evaluations += 1;
        self.system.accelerate(at, self.w, zd, vd, self.lambda)?;
        check_finite(&self.dims, zd)?;
        if !self.integrands.is_empty() {
            let model = self.system.model();
            let [places, _] = model.joint_objective_places();
            model.joint_integrand_derivatives(at, vd, self.lambda, self.w, self.integrands)?;
            copy(integrands, ObjectiveValues::of(&self.dims, places, self.integrands)?.values);
            if let Some(index) = integrands.iter().position(|g| !g.is_finite()) {
                return Err(EvalError::NotFinite { quantity: Quantity::Objective, index });
            }
        }
        if let Some(weights) = &self.weights {
            let rate = Three { z: zd, v: vd, c: excess_rate };
            match c == 0.0 {
                true => weights.first(self.system, [at.z, at.v, excess], rate, self.second)?,
                false => weights.last(rate),
            }
        }
        check_finite(&self.dims, rate)
    }

    fn state_rate(&mut self, t: D::S, c: f64, y: &[D::S], yd: &mut [D::S]) -> Result<(), EvalError> {
        let integrands = core::mem::take(&mut self.integrands);
        let found = self.rate(t, c, y, yd);
        self.integrands = integrands;
        found
    }

    fn linearise(&mut self, t: D::S, c: f64, y: &[D::S], alpha: D::S) -> Result<(), EvalError> {
        let u = self.inputs.during_step(t, D::S::from_f64(c));
        let y = if self.system.completes() { &*self.stage } else { y };
        let at = At::of_state(&self.dims, t, cut("y", y, self.dims.state())?.0, u)?;
        self.tangent.linearise(self.system, &self.dims, at, alphas(&self.weights, alpha), self.w)
    }

    fn solve(&mut self, t: D::S, c: f64, y: &[D::S], alpha: D::S, r: &mut [D::S]) -> Result<(), EvalError> {
        let u = self.inputs.during_step(t, D::S::from_f64(c));
        let y = if self.system.completes() { &*self.stage } else { y };
        let at = At::of_state(&self.dims, t, cut("y", y, self.dims.state())?.0, u)?;
        let (z, rest) = cut_mut("r", r, self.dims.nq)?;
        let (v, _) = cut_mut("r", rest, self.dims.nv)?;
        self.tangent.solve(self.system, &self.dims, at, alphas(&self.weights, alpha), self.w, z, v)
    }

    fn close_stage(
        &mut self,
        t: D::S,
        c: f64,
        alpha: D::S,
        base: &[D::S],
        y: &mut [D::S],
        k: &mut [D::S],
    ) -> Result<(), EvalError> {
        if !self.integrands.is_empty() {
            self.rate(t, c, y, k)?;
        }
        rates_of_stage(&self.dims, alpha, base, y, k);
        close_weighted(&self.dims, &self.weights, k)
    }

    fn size(&self, y: &[D::S]) -> f64 {
        self.system.units().largest(y.get(..self.dims.nq).unwrap_or_default())
    }

    fn finish(&mut self, t: D::S, y: &mut [D::S]) -> Result<(), EvalError> {
        renormalise(self.system, y);
        if self.system.corrects_steps() {
            let u = self.inputs.during_step(t, D::S::ONE);
            let (y, _) = cut_mut("y", y, self.dims.state())?;
            let (z, v) = cut_mut("y", y, self.dims.nq)?;
            let at = At { t, z: &[], v: &[], x: &[], u };
            self.system.correct(at, self.w, z, v, ())?;
        }
        if self.system.completes() {
            let u = self.inputs.during_step(t, D::S::ONE);
            let (y, _) = cut_mut("y", y, self.dims.state())?;
            let (z, v) = cut_mut("y", y, self.dims.nq)?;
            self.system.complete(t, u, self.w, z, v)?;
        }
        check_finite(&self.dims, y)
    }

    fn normalise(&self, y: &mut [D::S]) -> Result<(), EvalError> {
        renormalise(self.system, y);
        Ok(())
    }

    fn dims(&self) -> Dims {
        self.dims
    }

    fn integrals(&self) -> Range<usize> {
        let n = self.dims.state();
        n..n + if self.integrands.is_empty() { 0 } else { self.dims.n_objectives }
    }

    fn next_stop(&mut self, from: f64, to: f64) -> Option<Stop> {
        self.inputs.next_stop(from, to)
    }

    fn evaluations(&self) -> usize {
        self.evaluations
    }

    fn jumps_between_steps(&self) -> bool {
        self.inputs.jumps_between_steps()
    }

    fn at_node(&mut self, t: D::S) -> &[D::S] {
        self.inputs.at_node(t)
    }

    fn during_step(&mut self, t: D::S, c: D::S) -> &[D::S] {
        self.inputs.during_step(t, c)
    }
}

/// Length of the scratch of a [`Way`].
pub(crate) fn way_len<T: RungeKutta, D: JointDynamics>(system: &D, columns: usize) -> usize {
    let dims = &system.dims();
    let (n, stages) = (dims.stepped(), T::TABLEAU.b.len());
    let lists = dims.sensitivity.joint
        + dims.sensitivity.joint_factors
        + dims.sensitivity.joint_integrands
        + dims.sensitivity.joint_terminals;
    let weights = (2 + stages) * n + joint_objective_rows(dims) + dims.sensitivity.parameters;
    let correction = match system.corrects_steps() {
        true => 2 * n * MAX_CORRECTIONS + Correction::<f64>::len(dims, columns),
        false => 0,
    };
    let completion = match system.completes() {
        true => Completion::<f64>::len(dims, columns) + 4 * dims.n_choice,
        false => 0,
    };
    let own = 4 * n
        + completion
        + 2 * stages * n
        + stages * dims.joint_rows()
        + (dims.nv + dims.joint_rows())
        + dims.nu;
    let stepped = T::memory_len(n);
    own + plain_len(system, columns) + lists + weights * columns + correction + redundancy_len(dims) + stepped
}

/// What a [`Way`] without events needs besides.
#[inline(always)]
pub(crate) const fn at_once_len(dims: &Dims, columns: usize) -> usize {
    2 * dims.n_objectives + dims.sensitivity.parameters * columns
}

/// What a [`Way`] past events needs besides, for this many columns.
pub(crate) fn around_len<T: RungeKutta>(dims: &Dims, columns: usize, latches: usize) -> usize {
    let (n, stages) = (dims.stepped(), T::TABLEAU.b.len());
    Around::<f64>::len(dims, n, columns) + 2 * latches + (2 + stages) * n + joint_objective_rows(dims)
}

/// What is weighed at an instant.
#[derive(Clone, Copy)]
pub(super) enum What {
    /// The integrands of the objectives.
    Integrand,
    /// Their terminal terms.
    Terminal,
    /// The function of an event.
    Function,
}

/// A run on its way forward and back.
pub(crate) struct Way<'a, T, D: JointDynamics, I, P, O> {
    pub(super) method: PhantomData<T>,
    pub(super) field: Plain<'a, D, I>,
    pub(super) dims: Dims,
    pub(super) times: P,
    pub(super) columns: usize,
    pub(super) objective_weights: &'a [D::S],
    pub(super) objectives: &'a mut [D::S],
    pub(super) start: &'a mut [D::S],
    /// ȳ at the node the way back has reached.
    pub(super) bar: &'a mut [D::S],
    /// ρ̄ of one step, and of all.
    pub(super) now: &'a mut [D::S],
    pub(super) rho: &'a mut [D::S],
    pub(super) moving: &'a mut [D::S],
    pub(super) end: &'a mut [D::S],
    pub(super) raw: &'a mut [D::S],
    pub(super) u: &'a mut [D::S],
    /// Y, k, λ and Ȳ of the stages.
    pub(super) states: &'a mut [D::S],
    pub(super) rates: &'a mut [D::S],
    pub(super) multipliers: &'a mut [D::S],
    pub(super) stage_bars: &'a mut [D::S],
    pub(super) rate_bar: &'a mut [D::S],
    /// θ̄, v̄, v̄d, λ̄
    pub(super) changes: &'a mut [D::S],
    pub(super) values: &'a mut [D::S],
    pub(super) factors: &'a mut [D::S],
    pub(super) column: &'a mut [D::S],
    pub(super) lists: &'a mut [D::S],
    /// z, v, dz, dv of the corrections that ended a step.
    pub(super) corrections: &'a mut [D::S],
    pub(super) correction: Correction<'a, D::S>,
    pub(super) completion: Completion<'a, D::S>,
    pub(super) spare: &'a mut [D::S],
    pub(super) memory: &'a mut [D::S],
    pub(super) statistics: Statistics,
    pub(super) observe: O,
    /// Whether integrands are weighed.
    pub(super) judges: bool,
    /// Of stages that are reversed by one bundle, if there is one and columns are those of the objectives: integrands, weights of the
    /// objectives, ρ̄.
    at_once: Option<[&'a mut [D::S]; 3]>,
    /// The state at the end of a step.
    pub(super) ended: &'a mut [D::S],
    /// Weights of stages, of a rate and of changes in one column.
    pub(super) single: [&'a mut [D::S]; 3],
    /// What events do between steps, if there are any.
    pub(super) around: Option<Around<'a, D::S>>,
    /// Of the continuous adjoint: what the node that was reached last gives.
    pub(super) slopes: Option<Slopes<'a, D::S>>,
    /// Whether that stands apart from the rest.
    pub(super) apart: bool,
}

impl<'a, T, D, I, P, O> Way<'a, T, D, I, P, O>
where
    T: RungeKutta,
    D: JointDynamics,
    D::Model: JointObjectiveDerivatives,
    I: Inputs<D::S>,
    P: Times<D::S>,
    O: FnMut(AdjointNode<'_, D::S>) -> ControlFlow<()>,
{
    pub(crate) fn new(
        system: &'a D,
        inputs: &'a mut I,
        times: P,
        product: VectorJacobian<'a, D::S>,
        around: Option<Around<'a, D::S>>,
        pieces: &mut Pieces<'a, D::S>,
        observe: O,
    ) -> Result<Self, StepError> {
        let dims = system.dims();
        let (n, rows, stages) = (dims.stepped(), dims.joint_rows(), T::TABLEAU.b.len());
        let kept = n + dims.n_choice + around.as_ref().map_or(0, |around| around.actions.latches());
        product.check(&dims, dims.state())?;
        if T::IS_WEIGHTED {
            system.newmark().check()?;
        }
        let VectorJacobian { columns, objective_weights, end_weights, objectives, start, rho } = product;
        if columns == 0 {
            let what = "a product has at least one column";
            return Err(StepError::Setting { what, value: 0.0 });
        }
        let fuses = columns == dims.n_objectives
            && around.is_none()
            && system.model().fuses_transposed_rates()
            && is_diagonal(columns, objective_weights);
        let at_once = match fuses {
            true => {
                let parameters = dims.sensitivity.parameters;
                Some([pieces.next(columns)?, pieces.next(columns)?, pieces.next(parameters * columns)?])
            }
            false => None,
        };
        let way = Self {
            method: PhantomData,
            field: Plain::new(system, inputs, columns, pieces)?,
            dims,
            times,
            columns,
            objective_weights,
            objectives,
            start,
            bar: pieces.next(n * columns)?,
            now: pieces.next(dims.sensitivity.parameters * columns)?,
            rho,
            moving: pieces.next(kept)?,
            end: pieces.next(kept)?,
            raw: pieces.next(2 * n)?,
            u: pieces.next(dims.nu)?,
            states: pieces.next(stages * n)?,
            rates: pieces.next(stages * n)?,
            multipliers: pieces.next(stages * rows)?,
            stage_bars: pieces.next(stages * n * columns)?,
            rate_bar: pieces.next(n * columns)?,
            changes: pieces.next(joint_objective_rows(&dims) * columns)?,
            values: pieces.next(dims.sensitivity.joint)?,
            factors: pieces.next(dims.sensitivity.joint_factors)?,
            column: pieces.next(dims.nv + rows)?,
            lists: pieces.next(dims.sensitivity.joint_integrands + dims.sensitivity.joint_terminals)?,
            corrections: pieces.next(if system.corrects_steps() { 2 * n * MAX_CORRECTIONS } else { 0 })?,
            correction: match system.corrects_steps() {
                true => Correction::new(&dims, columns, pieces)?,
                false => Correction::none(),
            },
            completion: match system.completes() {
                true => Completion::new(&dims, columns, pieces)?,
                false => Completion::none(),
            },
            spare: pieces.next(redundancy_len(&dims))?,
            memory: pieces.next(T::memory_len(n))?,
            statistics: Statistics::default(),
            observe,
            judges: true,
            at_once,
            ended: pieces.next(if around.is_some() { n } else { 0 })?,
            single: match around {
                Some(_) => {
                    [pieces.next(stages * n)?, pieces.next(n)?, pieces.next(joint_objective_rows(&dims))?]
                }
                None => [&mut [], &mut [], &mut []],
            },
            around,
            slopes: None,
            apart: false,
        };
        for part in [&mut *way.objectives, way.bar, way.now, way.rho] {
            part.fill(D::S::ZERO);
        }
        copy(way.bar, end_weights);
        Ok(way)
    }

    pub(crate) fn run(mut self, y: &mut [D::S], memory: &mut [D::S]) -> Result<AdjointStatistics, StepError> {
        let (n, t) = (self.moving.len(), self.times.time(0));
        let schedule = Schedule::new(self.times.steps(), n, n, memory.len())?;
        self.check_start(y)?;
        let (moving, end) = (core::mem::take(&mut self.moving), core::mem::take(&mut self.end));
        moving.fill(D::S::ZERO);
        copy(moving, y);
        let (_, kept) =
            cut_mut("state", moving, self.dims.stepped()).map_err(|error| error.in_step(t.real(), 0.0))?;
        self.save(kept).map_err(|error| error.in_step(t.real(), 0.0))?;
        if self.times.steps() == 0 {
            copy(end, moving);
            self.terminals(end)?;
        }
        let swept = sweep(&schedule, &mut self, moving, end, memory)?;
        self.finish(y, end, swept, schedule)
    }

    /// The same where all states have been kept at the end of the memory: nothing is made again.
    fn run_kept(mut self, y: &mut [D::S], memory: &mut [D::S]) -> Result<AdjointStatistics, StepError> {
        let (n, steps, found) = (self.moving.len(), self.times.steps(), memory.len());
        let schedule = Schedule::new(steps, n, n, usize::MAX)?;
        self.check_start(y)?;
        let kept = |number: usize| {
            kept_place(found, n, number).and_then(|place| memory.get(place)).ok_or(StepError::Length {
                what: "memory",
                expected: (steps + 1) * n,
                found,
            })
        };
        let end = core::mem::take(&mut self.end);
        copy(end, kept(steps)?);
        self.terminals(end)?;
        let mut swept = Swept { stopped: steps > 0 && self.pass(steps)?.is_break(), ..Swept::default() };
        for number in (1..=steps).rev() {
            if swept.stopped {
                break;
            }
            let moving = core::mem::take(&mut self.moving);
            copy(moving, kept(number - 1)?);
            swept.stopped = self.reverse(number, moving, Before::State(&mut []))?.is_break();
            self.moving = moving;
        }
        self.finish(y, end, swept, schedule)
    }

    fn check_start(&mut self, y: &[D::S]) -> Result<(), StepError> {
        let t = self.times.time(0);
        check_state(&self.dims, y)?;
        self.statistics.t = t.real();
        let u = self.field.inputs.at_node(t);
        let at = At::of_state(&self.dims, t, y, u).map_err(|error| error.in_step(t.real(), 0.0))?;
        refuse_redundant_multipliers(self.field.system, at, self.spare, self.field.w)
    }

    /// Leaves the last state in `y`, and the weights of the first one.
    fn finish(
        mut self,
        y: &mut [D::S],
        end: &[D::S],
        swept: Swept,
        schedule: Schedule,
    ) -> Result<AdjointStatistics, StepError> {
        let (t, mut statistics) = (self.times.time(0), self.statistics);
        statistics.stopped = swept.stopped;
        if !swept.stopped {
            if let Some(kept) = end.get(self.dims.stepped()..) {
                self.load(kept).map_err(|error| error.in_step(t.real(), 0.0))?;
            }
            copy(y, end);
            if self.times.steps() == 0 {
                statistics.stopped = self.pass(0)?.is_break();
            }
        }
        copy(self.start, self.bar);
        Ok(AdjointStatistics { run: statistics, recomputed: swept.recomputed, schedule })
    }

    /// What a state has beside y: the choice of independent coordinates, then what events have changed.
    fn save(&self, kept: &mut [D::S]) -> Result<(), EvalError> {
        let (numbers, latches) = cut_mut("state", kept, self.dims.n_choice)?;
        save_choice(self.field.system, numbers);
        if let Some(around) = &self.around {
            around.actions.save(latches);
        }
        Ok(())
    }

    fn load(&mut self, kept: &[D::S]) -> Result<(), EvalError> {
        let (numbers, latches) = cut("state", kept, self.dims.n_choice)?;
        load_choice(self.field.system, numbers);
        if let Some(around) = &mut self.around {
            around.actions.load(latches);
        }
        Ok(())
    }

    /// Adds the weights that the terminal terms give the last state.
    fn terminals(&mut self, y: &[D::S]) -> Result<(), StepError> {
        let t = self.times.time(self.times.steps());
        if self.dims.n_objectives == 0 {
            return Ok(());
        }
        let (y, _) = cut("y", y, self.dims.state()).map_err(|error| error.in_step(t.real(), 0.0))?;
        copy(self.u, self.field.inputs.at_node(t));
        self.rate_bar.fill(D::S::ZERO);
        let weighed = self.weigh(t, y, None, 1.0, D::S::ONE, What::Terminal);
        weighed.map_err(|error| error.in_step(t.real(), 0.0))?;
        if let Some(around) = &mut self.around {
            around.add_time(self.now);
        }
        let (z, v) = cut_mut("bar", self.bar, self.dims.nq * self.columns)
            .map_err(|error| error.in_step(t.real(), 0.0))?;
        pull_back(self.field.system, &self.dims, self.columns, y, self.rate_bar, self.changes, z, v)
            .map_err(|error| error.in_step(t.real(), 0.0))
    }

    /// Into the changes: weights of θ and v, from those of the rate in `rate_bar` and those of the objectives times q. `known`: the
    /// stage whose rate is known. Inputs are in `u`.
    pub(super) fn weigh(
        &mut self,
        t: D::S,
        y: &[D::S],
        known: Option<usize>,
        b: f64,
        q: D::S,
        what: What,
    ) -> Result<(), EvalError> {
        let (dims, columns, n) = (self.dims, self.columns, self.dims.stepped());
        let Self { field, u, changes, values, factors, lists, .. } = self;
        let Plain { system, w, .. } = field;
        let (system, model) = (*system, system.model());
        let at = At::of_state(&dims, t, cut("y", y, dims.state())?.0, u)?;
        // vd and λ at this instant.
        let rows = dims.joint_rows();
        let (vd, lambda): (&[D::S], &[D::S]) = match known {
            Some(stage) => {
                let (_, rate) = cut("rates", self.rates, stage * n + dims.nq)?;
                let (_, lambda) = cut("multipliers", self.multipliers, stage * rows)?;
                (cut("rates", rate, dims.nv)?.0, cut("multipliers", lambda, rows)?.0)
            }
            None => {
                let (zd, vd) = cut_mut("raw", self.raw, dims.nq)?;
                let (vd, _) = cut_mut("raw", vd, dims.nv)?;
                system.accelerate(at, w, zd, vd, field.lambda)?;
                (vd, field.lambda)
            }
        };
        let (_, after) = cut("rate", self.rate_bar, dims.nq * columns)?;
        let (vd_bar, _) = cut("rate", after, dims.nv * columns)?;
        // Implicit stages read the lists.
        let at_once = self.at_once.as_mut().filter(|_| known.is_some());
        if let (What::Integrand, Some([integrands, psi_bar, rho_bar])) = (what, at_once) {
            let weights = self.objective_weights.iter().step_by(columns + 1);
            for (to, &weight) in psi_bar.iter_mut().zip(weights) {
                *to = q * weight;
            }
            let stabilisation = system.stabilisation();
            let (theta, rest) = cut_mut("changes", changes, dims.nv * columns)?;
            let (v, _) = cut_mut("changes", rest, dims.nv * columns)?;
            model.transpose_rate(
                at,
                vd,
                lambda,
                stabilisation,
                vd_bar,
                psi_bar,
                w,
                integrands,
                theta,
                v,
                rho_bar,
            )?;
            // Where objectives do not count they need not be defined. The separate bundles leave them out there, and elsewhere name them.
            let defined = b == 0.0 || all_finite(integrands);
            if defined && [&*theta, v, rho_bar].into_iter().all(all_finite) {
                if b != 0.0 {
                    add_scaled(self.objectives, q, integrands);
                }
                add_scaled(self.now, D::S::ONE, rho_bar);
                return Ok(());
            }
        }
        changes.fill(D::S::ZERO);
        if let What::Function = what {
            // Of v, vd and λ; the function is differentiated by z, not along θ.
            let (_, to) = cut_mut("changes", changes, dims.nv * columns)?;
            let function = self.around.as_ref().and_then(|around| around.function.get(dims.nq..));
            for (to, &from) in to.iter_mut().zip(function.unwrap_or_default()) {
                *to = from;
            }
        } else if dims.n_objectives > 0 && b != 0.0 && self.judges {
            let [integrands, terminals] = model.joint_objective_places();
            let (first, last) = cut_mut("lists", lists, dims.sensitivity.joint_integrands)?;
            let mut weighed = Weighed {
                columns,
                weights: self.objective_weights,
                objectives: self.objectives,
                bar: changes,
                rho: self.now,
            };
            let states = joint_objective_rows(&dims);
            if let What::Terminal = what {
                model.joint_terminal_derivatives(at, vd, lambda, w, last)?;
                weighed.add(&dims, states, terminals, q, last)?;
            } else {
                model.joint_integrand_derivatives(at, vd, lambda, w, first)?;
                weighed.add(&dims, states, integrands, q, first)?;
                if let Some(around) = &mut self.around {
                    // ψ_h = Σ b_i g_i
                    let values = ObjectiveValues::of(&dims, integrands, first)?.values;
                    let weights = self.objective_weights.chunks_exact(columns.max(1));
                    for (weights, &value) in weights.zip(values) {
                        add_scaled(around.size, D::S::from_f64(b) * value, weights);
                    }
                }
            }
        }
        model.joint_linearise(at, vd, lambda, system.stabilisation(), w, values, factors)?;
        let (moved, solution) = cut_mut("changes", changes, 2 * dims.nv * columns)?;
        add_scaled(solution, D::S::ONE, vd_bar);
        model.joint_solve_many(factors, columns, w, self.column, solution)?;
        let places = model.joint_places();
        let (theta, v) = cut_mut("changes", moved, dims.nv * columns)?;
        let x: [&mut [D::S]; 4] = [theta, v, &mut [], &mut []];
        let mut product = TransposedProduct { columns, y: solution, x, rho: self.now };
        JointValues::of(&places, values)?.read(&dims, &places, &mut product)
    }

    /// Shows a node, and takes its part of ρ̄ to that of all.
    fn pass(&mut self, number: usize) -> Result<ControlFlow<()>, StepError> {
        let t = self.times.time(number);
        check_weights(self.columns, t, D::S::ZERO, self.bar)?;
        let flow =
            (self.observe)(AdjointNode::Backward { number, t, state: self.bar, rho: self.now, step: &[] });
        add_scaled(self.rho, D::S::ONE, self.now);
        self.now.fill(D::S::ZERO);
        Ok(flow)
    }

    /// Makes the stages of a step, and what ends it, again; keeps the corrections and says how many there were.
    pub(super) fn stages(&mut self, t: D::S, h: D::S, y: &[D::S]) -> Result<usize, EvalError> {
        let (dims, n) = (self.dims, self.dims.stepped());
        let Tableau { a, b, c, gamma } = T::TABLEAU;
        let Self { field, states, rates, multipliers, raw, corrections, memory, .. } = self;
        field.prepare_step(t, y)?;
        field.begin_step(t, t + h);
        if T::IS_WEIGHTED {
            field.weigh_step(h);
        }
        // The rates of stages are kept; what an iteration needs besides has its place in the memory of a step.
        let mut pieces = Pieces::of(memory, T::memory_len(n));
        let short = |_| EvalError::Length { what: "memory", expected: T::memory_len(n), found: 0 };
        let (base, residual) = (pieces.next(n).map_err(short)?, pieces.next(n).map_err(short)?);
        let mut iteration = Iteration { base, r: residual, linearised: false };
        for (i, (row, &c)) in a.iter().zip(c).enumerate() {
            let (known, rate) = cut_mut("rates", rates, i * n)?;
            let (_, state) = cut_mut("states", states, i * n)?;
            let ((rate, _), (state, _)) = (cut_mut("rates", rate, n)?, cut_mut("states", state, n)?);
            copy(state, y);
            for (&a, k) in row.iter().zip(known.chunks_exact(n.max(1))) {
                add_scaled(state, D::S::from_f64(a) * h, k);
            }
            let time = t + D::S::from_f64(c) * h;
            if gamma == 0.0 || i == 0 {
                field.rate(time, c, state, rate)?;
                if field.system.completes() {
                    // What was given instead has no part in the rest.
                    copy(state, field.stage);
                }
                let (_, lambda) = cut_mut("multipliers", multipliers, i * dims.joint_rows())?;
                copy(lambda, field.lambda);
            } else {
                // Begun, like those of the run, with the rate of the stage before.
                copy(rate, cut("rates", known, (i - 1) * n)?.1);
                solve_stage(field, &mut iteration, (time, c, D::S::from_f64(gamma) * h), state, rate)?;
                if field.system.completes() {
                    let u = field.inputs.during_step(time, D::S::from_f64(c));
                    let (z, v) = cut_mut("states", state, dims.nq)?;
                    let (v, _) = cut_mut("states", v, dims.nv)?;
                    field.system.complete(time, u, field.w, z, v)?;
                }
            }
        }
        let (end, raw) = cut_mut("raw", raw, n)?;
        copy(end, y);
        for (&b, k) in b.iter().zip(rates.chunks_exact(n.max(1))) {
            add_scaled(end, D::S::from_f64(b) * h, k);
        }
        copy(raw, end);
        renormalise(field.system, end);
        let mut count = 0;
        if field.system.corrects_steps() {
            let u = field.inputs.during_step(t + h, D::S::ONE);
            let (z, v) = cut_mut("raw", end, dims.nq)?;
            let at = At { t: t + h, z: &[], v: &[], x: &[], u };
            let mut keeping = Keeping { corrections, n, count };
            field.system.correct(at, field.w, z, v, &mut keeping)?;
            count = keeping.count;
        }
        if field.system.completes() {
            let u = field.inputs.during_step(t + h, D::S::ONE);
            let (z, v) = cut_mut("raw", end, dims.nq)?;
            let (v, _) = cut_mut("raw", v, dims.nv)?;
            field.system.complete(t + h, u, field.w, z, v)?;
        }
        Ok(count)
    }

    /// ȳ before a step from ȳ after it.
    fn transpose(&mut self, t: D::S, h: D::S, y: &[D::S]) -> Result<(), EvalError> {
        let (dims, columns, n) = (self.dims, self.columns, self.dims.stepped());
        let count = self.stages(t, h, y)?;
        if let Some(around) = &mut self.around {
            around.size.fill(D::S::ZERO);
        }
        self.add_clock(-D::S::ONE);
        self.transpose_corrections(t + h, count)?;
        self.add_clock(D::S::ONE);
        let Tableau { a, b, c, gamma } = T::TABLEAU;
        let each = n * columns;
        let alpha = D::S::from_f64(gamma) * h;
        for i in (0..b.len()).rev() {
            let (weight, c) = (b.get(i).copied().unwrap_or(0.0), c.get(i).copied().unwrap_or(0.0));
            // k̄_i = h b_i ȳ + h Σ a_ji Ȳ_j
            self.rate_bar.fill(D::S::ZERO);
            add_scaled(self.rate_bar, D::S::from_f64(weight) * h, self.bar);
            for (row, stage) in a.iter().zip(self.stage_bars.chunks_exact(each.max(1))).skip(i + 1) {
                let a = row.get(i).copied().unwrap_or(0.0);
                if a != 0.0 {
                    add_scaled(self.rate_bar, D::S::from_f64(a) * h, stage);
                }
            }
            if let Some(around) = &mut self.around {
                // s_h: as if k_i had the part (h'/h) k_i; what a method carries has none
                let (_, rate) = cut("rates", self.rates, i * n)?;
                let rate = rate.iter().take(dims.state());
                for (weights, &rate) in self.rate_bar.chunks_exact(columns.max(1)).zip(rate) {
                    add_scaled(around.size, rate / h, weights);
                }
            }
            let c = D::S::from_f64(c);
            let t = t + c * h;
            copy(self.u, self.field.inputs.during_step(t, c));
            self.add_clock(-c);
            let states = core::mem::take(&mut self.states);
            let weighed = cut("states", states, i * n).and_then(|(_, state)| {
                let (state, _) = cut("states", state, n)?;
                let implicit = gamma != 0.0 && i > 0;
                let known = if implicit || self.field.weights.is_some() { None } else { Some(i) };
                self.transpose_weights(i, t, h, state)?;
                self.weigh(t, state, known, weight, D::S::from_f64(weight) * h, What::Integrand)?;
                let (_, bar) = cut_mut("stages", self.stage_bars, i * each)?;
                let (bar, _) = cut_mut("stages", bar, each)?;
                let (z, v) = cut_mut("stages", &mut *bar, dims.nq * columns)?;
                let (v, _) = cut_mut("stages", v, dims.nv * columns)?;
                pull_back(self.field.system, &dims, columns, state, self.rate_bar, self.changes, z, v)?;
                if self.field.system.completes() {
                    let at = At::of_state(&dims, t, cut("state", state, dims.state())?.0, self.u)?;
                    let Plain { system, w, .. } = &mut self.field;
                    self.completion.transpose(*system, &dims, columns, at, z, v, self.now, w)?;
                }
                if !implicit {
                    return Ok(());
                }
                // (1 − hγ f_y)ᵀ B̄_i = Ȳ_i
                let Self { field, u, values, factors, column, now, .. } = self;
                let Plain { system, tangent, w, weights, .. } = field;
                let at = At::of_state(&dims, t, cut("state", state, dims.state())?.0, u)?;
                let (matrix, alpha) = (&mut tangent.matrix, alphas(weights, alpha));
                matrix.factor(*system, &dims, at, alpha, Linear { values, factors, column, w })?;
                let linear = Linear { values, factors, column, w };
                matrix.solve_transposed(*system, &dims, at, alpha, linear, columns, z, v, now)?;
                if let Some(around) = &mut self.around {
                    let (_, rate) = cut("rates", self.rates, i * n)?;
                    let rate = rate.iter().take(dims.state());
                    for (weights, &rate) in bar.chunks_exact(columns.max(1)).zip(rate) {
                        add_scaled(around.size, D::S::from_f64(gamma) * rate, weights);
                    }
                }
                Ok(())
            });
            self.states = states;
            weighed?;
            self.add_clock(c);
        }
        for stage in self.stage_bars.chunks_exact(each.max(1)) {
            add_scaled(self.bar, D::S::ONE, stage);
        }
        Ok(())
    }

    /// From the weights of a weighted rate to those of the rate, in their place; what they are of the stage itself begins its own weights.
    fn transpose_weights(&mut self, i: usize, t: D::S, h: D::S, state: &[D::S]) -> Result<(), EvalError> {
        let (dims, columns, each) = (self.dims, self.columns, self.dims.stepped() * self.columns);
        let (_, bar) = cut_mut("stages", self.stage_bars, i * each)?;
        let (bar, _) = cut_mut("stages", bar, each)?;
        bar.fill(D::S::ZERO);
        let Some(weights) = self.field.weights else { return Ok(()) };
        let (z_bar, rest) = cut_mut("stages", bar, dims.nq * columns)?;
        let (v_bar, rest) = cut_mut("stages", rest, dims.nv * columns)?;
        let (_, c_bar) = cut_mut("stages", rest, dims.nx * columns)?;
        let (z, rest) = cut_mut("rate", self.rate_bar, dims.nq * columns)?;
        let (v, rest) = cut_mut("rate", rest, dims.nv * columns)?;
        let (_, c) = cut_mut("rate", rest, dims.nx * columns)?;
        if i > 0 {
            weights.last_transposed(Three { z, v, c });
            return Ok(());
        }
        let (y, excess) = cut("state", state, dims.state())?;
        let at = At::of_state(&dims, t, y, self.u)?;
        let Plain { system, w, lambda, second, .. } = &mut self.field;
        let (zd, vd) = cut_mut("raw", self.raw, dims.nq)?;
        let (vd, _) = cut_mut("raw", vd, dims.nv)?;
        system.accelerate(at, w, zd, vd, lambda)?;
        weights.first_left(*system, columns, [at.z, at.v, vd, excess], z, z_bar, v_bar)?;
        if let Some(around) = &mut self.around {
            // (1 − 2b) h zdd has the size of the step once more.
            weights.second(*system, [at.z, at.v, vd, excess], second)?;
            for (weights, &second) in z.chunks_exact(columns.max(1)).zip(second.iter()) {
                add_scaled(around.size, second / h, weights);
            }
        }
        let (spare, _) = cut_mut("changes", self.changes, dims.nv * columns)?;
        weights.first_transposed(*system, columns, at.z, Three { z, v, c }, c_bar, spare)
    }

    /// h̄ takes the part `c` of what ρ̄ makes of the clock: with −c before a law of the step is weighed, and c after it.
    fn add_clock(&mut self, c: D::S) {
        if let Some(around) = &mut self.around {
            around.add_size(c, self.now);
        }
    }

    /// Through what ends a step, backward.
    pub(super) fn transpose_corrections(&mut self, t: D::S, count: usize) -> Result<(), EvalError> {
        let (dims, columns, n) = (self.dims, self.columns, self.dims.stepped());
        let Self { field, bar, now, raw, corrections, correction, completion, .. } = self;
        let (z_bar, v_bar) = cut_mut("bar", bar, dims.nq * columns)?;
        let (v_bar, _) = cut_mut("bar", v_bar, dims.nv * columns)?;
        let u = field.inputs.during_step(t, D::S::ONE);
        if field.system.completes() {
            let (end, _) = cut("raw", raw, dims.state())?;
            let at = At::of_state(&dims, t, end, u)?;
            completion.transpose(field.system, &dims, columns, at, z_bar, v_bar, now, field.w)?;
        }
        for index in (0..count).rev() {
            let (_, kept) = cut("corrections", corrections, index * 2 * n)?;
            let (z, rest) = cut("corrections", kept, dims.nq)?;
            let (v, rest) = cut("corrections", rest, dims.nv)?;
            let (dz, rest) = cut("corrections", rest, dims.nq)?;
            let (dv, _) = cut("corrections", rest, dims.nv)?;
            let at = At { t, z, v, x: &[], u };
            correction.transpose(field.system, &dims, columns, at, dz, dv, z_bar, v_bar, now, field.w)?;
        }
        // p′/|p| − p (p·p′)/|p|³ is its own transpose.
        let (_, raw) = cut("raw", raw, n)?;
        normalised(field.system, raw, columns, z_bar)?;
        Ok(())
    }
}

/// Whether each objective has a column of its own.
fn is_diagonal<S: Scalar>(columns: usize, weights: &[S]) -> bool {
    weights.len() == columns * columns
        && weights.iter().enumerate().all(|(k, &weight)| weight == S::ZERO || k % (columns + 1) == 0)
}

/// Adds to z̄, v̄ what the weights of a rate are of its state: z̄ + Lᵀ θ̄ + (N(·) v)ᵀ z̄d, v̄ + Nᵀ z̄d.
#[allow(clippy::too_many_arguments, reason = "a state and weights")]
pub(super) fn pull_back<D: JointDynamics>(
    system: &D,
    dims: &Dims,
    columns: usize,
    y: &[D::S],
    rate_bar: &[D::S],
    changes: &[D::S],
    z_bar: &mut [D::S],
    v_bar: &mut [D::S],
) -> Result<(), EvalError> {
    let (z, v) = cut("y", y, dims.nq)?;
    let (rate_bar, _) = cut("rate", rate_bar, (dims.nq + dims.nv) * columns)?;
    let (theta, rest) = cut("changes", changes, dims.nv * columns)?;
    let (v_change, _) = cut("changes", rest, dims.nv * columns)?;
    add_scaled(v_bar, D::S::ONE, v_change);
    add_tangents_transposed(system, z, columns, theta, z_bar)?;
    add_rates_transposed(system, z, v, columns, rate_bar, z_bar, v_bar)?;
    Ok(())
}

impl<T, D, I, P, O> Reversible for Way<'_, T, D, I, P, O>
where
    T: RungeKutta,
    D: JointDynamics,
    D::Model: JointObjectiveDerivatives,
    I: Inputs<D::S>,
    P: Times<D::S>,
    O: FnMut(AdjointNode<'_, D::S>) -> ControlFlow<()>,
{
    type S = D::S;

    fn advance(
        &mut self,
        number: usize,
        again: bool,
        state: &mut [D::S],
    ) -> Result<ControlFlow<()>, StepError> {
        let (t, h) = (self.times.time(number.saturating_sub(1)), self.times.size(number));
        let n = self.dims.stepped();
        let fail = |error: EvalError| error.in_step(t.real(), h.real());
        let (y, kept) = cut_mut("state", state, n).map_err(fail)?;
        self.load(kept).map_err(fail)?;
        if let Some(around) = &mut self.around {
            let item = self.times.item(number);
            if let Item::Switch(event) = item {
                around.actions.switch(event, h);
                self.save(kept).map_err(fail)?;
                return Ok(ControlFlow::Continue(()));
            }
            if let Item::Act(event) = item {
                let (now, _) = cut("state", y, self.dims.state()).map_err(fail)?;
                let at = At::of_state(&self.dims, t, now, self.field.inputs.at_node(t)).map_err(fail)?;
                let d = around.actions.act(event, at)?;
                let (z, v) = cut_mut("state", y, self.dims.nq).map_err(fail)?;
                add_scaled(v, D::S::ONE, d);
                around.actions.place(event, z);
                self.save(kept).map_err(fail)?;
                return Ok(ControlFlow::Continue(()));
            }
        }
        let before = self.field.evaluations;
        let stages = T::stages(n, &mut Pieces::of(&mut *self.memory, T::memory_len(n)))?;
        self.field.prepare_step(t, y).map_err(fail)?;
        let stepped = T::advance(&mut self.field, stages, t, y, h);
        stepped.map_err(fail)?;
        self.save(kept).map_err(fail)?;
        let end = self.times.time(number);
        if !again {
            let evaluations = self.field.evaluations - before;
            let step = StepStatistics { evaluations, ..StepStatistics::default() };
            self.statistics.add(end.real(), h.real(), &step);
        }
        let parts = cut("state", y, self.dims.nq);
        let (z, rates) = parts.map_err(|error| error.in_step(t.real(), h.real()))?;
        let (rates, _) = cut("state", rates, self.dims.nv).map_err(fail)?;
        // The first way of a run with events has been seen.
        let again = again || self.around.is_some();
        Ok((self.observe)(AdjointNode::Forward { number, t: end, again, z, rates }))
    }

    fn record(
        &mut self,
        number: usize,
        again: bool,
        state: &mut [D::S],
        record: &mut [D::S],
    ) -> Result<ControlFlow<()>, StepError> {
        copy(record, state);
        let flow = self.advance(number, again, state)?;
        if number == self.times.steps() {
            self.terminals(state)?;
            if let Some(slopes) = self.slopes.take() {
                let t = self.times.time(number);
                let begun =
                    cut("state", state, self.dims.state()).and_then(|(y, _)| self.begin_back(slopes, t, y));
                begun.map_err(|error| error.in_step(t.real(), 0.0))?;
            }
            if self.pass(number)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(flow)
    }

    fn reverse(
        &mut self,
        number: usize,
        record: &mut [D::S],
        _: Before<'_, D::S>,
    ) -> Result<ControlFlow<()>, StepError> {
        let (t, h) = (self.times.time(number.saturating_sub(1)), self.times.size(number));
        let fail = |error: EvalError| error.in_step(t.real(), h.real());
        let (y, kept) = cut("state", record, self.dims.stepped()).map_err(fail)?;
        self.load(kept).map_err(fail)?;
        if let Some(slopes) = self.slopes.take() {
            self.step_back(slopes, t, h, y).map_err(fail)?;
            return self.pass(number.saturating_sub(1));
        }
        match self.times.item(number) {
            Item::Act(event) => self.transpose_act(t, event, y)?,
            Item::Switch(_) | Item::Restart => {}
            Item::Step(End::Located(event)) => self.transpose_located(t, h, event, y)?,
            Item::Step(end) => {
                self.transpose(t, h, y).map_err(fail)?;
                if let Some(around) = &mut self.around {
                    if end == End::Planned {
                        for (time, &size) in around.time.iter_mut().zip(around.size.iter()) {
                            *time = -size;
                        }
                    }
                    around.add_time(self.now);
                }
            }
        }
        self.pass(number.saturating_sub(1))
    }
}

impl<T, D, I, P, O> Way<'_, T, D, I, P, O>
where
    T: RungeKutta,
    D: JointDynamics,
    D::Model: JointObjectiveDerivatives,
    I: Inputs<D::S>,
    P: Times<D::S>,
    O: FnMut(AdjointNode<'_, D::S>) -> ControlFlow<()>,
{
    /// ȳ and t̄ before an event from those after it; `y` is the state before it.
    fn transpose_act(&mut self, t: D::S, event: usize, y: &[D::S]) -> Result<(), StepError> {
        let fail = |error: EvalError| error.in_step(t.real(), 0.0);
        let (dims, columns) = (self.dims, self.columns);
        let Some(around) = &mut self.around else { return Ok(()) };
        let u = self.field.inputs.at_node(t);
        let at = At::of_state(&dims, t, cut("state", y, dims.state()).map_err(fail)?.0, u).map_err(fail)?;
        copy(self.u, u);
        around.actions.act(event, at)?;
        let at = At { u: self.u, ..at };
        let (z_bar, v_bar) = cut_mut("bar", self.bar, dims.nq * columns).map_err(fail)?;
        let (v_bar, _) = cut_mut("bar", v_bar, dims.nv * columns).map_err(fail)?;
        around.actions.transpose(at, columns, z_bar, v_bar, around.time, self.now, [self.rho, &mut []])
    }

    /// ȳ and t̄ before a step that ends in an event from those after it.
    fn transpose_located(&mut self, t: D::S, h: D::S, event: usize, y: &[D::S]) -> Result<(), StepError> {
        let fail = |error: EvalError| error.in_step(t.real(), h.real());
        self.stages(t, h, y).map_err(fail)?;
        let one = self.swap_columns(1);
        let weighed = self.weigh_function(t + h, event);
        let weighed = weighed.and_then(|scale| {
            let rho = self.around.as_ref().map_or(&[][..], |around| around.clock(self.now, 1));
            let moved = rho.first().copied().unwrap_or(D::S::ZERO);
            self.transpose(t, h, y).map(|()| (scale, moved)).map_err(fail)
        });
        self.swap_columns(one);
        let (scale, moved) = weighed?;
        self.transpose(t, h, y).map_err(fail)?;
        let dims = self.dims;
        let Some(around) = &mut self.around else { return Ok(()) };
        let g_t = around.function_t(&dims);
        let slope = around.one.first().copied().unwrap_or(D::S::ZERO) + g_t + moved;
        around.gamma(slope, scale, t + h, event)?;
        add_outer(self.bar, around.bar, around.size);
        add_outer(self.now, around.rho, around.size);
        add_scaled(around.time, g_t, around.size);
        around.add_time(self.now);
        around.add_clock(g_t, self.now);
        Ok(())
    }

    /// Exchanges the weights for the one column of an event's function, whose objectives have no weight; and back.
    fn swap_columns(&mut self, columns: usize) -> usize {
        if let Some(around) = &mut self.around {
            core::mem::swap(&mut self.bar, &mut around.bar);
            core::mem::swap(&mut self.now, &mut around.rho);
            core::mem::swap(&mut around.size, &mut around.one);
            let [stage_bars, rate_bar, changes] = &mut self.single;
            core::mem::swap(&mut self.stage_bars, stage_bars);
            core::mem::swap(&mut self.rate_bar, rate_bar);
            core::mem::swap(&mut self.changes, changes);
            self.judges = !self.judges;
        }
        core::mem::replace(&mut self.columns, columns)
    }

    /// Into the weights, of one column: g_y and g_ρ of an event's function at the end of the step whose stages were made last. Gives the
    /// sum of the sizes of the parts of its rate.
    fn weigh_function(&mut self, t: D::S, event: usize) -> Result<f64, StepError> {
        let ended = core::mem::take(&mut self.ended);
        copy(ended, self.raw);
        let weighed = self.weigh_function_at(t, event, ended);
        self.ended = ended;
        weighed
    }

    fn weigh_function_at(&mut self, t: D::S, event: usize, y: &[D::S]) -> Result<f64, StepError> {
        let fail = |error: EvalError| error.in_step(t.real(), 0.0);
        let dims = self.dims;
        copy(self.u, self.field.inputs.during_step(t, D::S::ONE));
        let Some(around) = &mut self.around else { return Ok(0.0) };
        let (y, _) = cut("state", y, dims.state()).map_err(fail)?;
        let at = At::of_state(&dims, t, y, self.u).map_err(fail)?;
        let (zd, rest) = cut_mut("raw", self.raw, dims.nq).map_err(fail)?;
        let (vd, _) = cut_mut("raw", rest, dims.nv).map_err(fail)?;
        let Plain { system, w, lambda, .. } = &mut self.field;
        system.accelerate(at, w, zd, vd, lambda).map_err(fail)?;
        around.actions.function(event, at, vd, lambda, around.function)?;
        let rates = zd.iter().chain(vd.iter()).zip(around.function.iter());
        let scale = rates.map(|(&rate, &slope)| (slope * rate).real().abs()).sum::<f64>();
        let scale = scale + around.function_t(&dims).real().abs();
        let (by_z, rest) = cut("function", around.function, dims.nq).map_err(fail)?;
        let (_, by_rho) = cut("function", rest, 2 * dims.nv + dims.joint_rows() + 1).map_err(fail)?;
        self.bar.fill(D::S::ZERO);
        copy(self.bar, by_z);
        copy(self.now, by_rho);
        self.rate_bar.fill(D::S::ZERO);
        self.weigh(t, y, None, 0.0, D::S::ZERO, What::Function).map_err(fail)?;
        let (z, v) = cut_mut("bar", self.bar, dims.nq).map_err(fail)?;
        pull_back(self.field.system, &dims, 1, y, self.rate_bar, self.changes, z, v).map_err(fail)?;
        Ok(scale)
    }
}

/// Keeps the state before each correction, and the correction.
struct Keeping<'a, S> {
    corrections: &'a mut [S],
    /// Length of a state.
    n: usize,
    count: usize,
}

impl<S: Scalar> Corrections<S> for &mut Keeping<'_, S> {
    fn see(&mut self, at: At<'_, S>, dz: &[S], dv: &[S], _: &mut [S]) -> Result<(), EvalError> {
        let (_, kept) = cut_mut("corrections", self.corrections, self.count * 2 * self.n)?;
        let parts = at.z.iter().chain(at.v).chain(dz).chain(dv);
        for (to, &from) in kept.iter_mut().zip(parts) {
            *to = from;
        }
        self.count += 1;
        Ok(())
    }
}
