//! Runs of equal implicit steps.
//!
//! Nodes are those of [`Fixed`]: start + k h, the last one the end of the span itself.

use core::ops::ControlFlow;

use super::ali3p::Ali3p;
use super::implicit_index1::ImplicitIndex1;
use super::newton::StepStatistics;
use super::state::State;
use crate::constrained::{Constrained, Motion};
use crate::error::StepError;
use crate::inputs::Inputs;
use crate::integrator::{Fixed, Nodes, Span};
use crate::pieces::Pieces;
use crate::scalar::Scalar;
use crate::system::Dims;

/// A formulation that makes implicit steps.
pub trait ImplicitStep {
    /// Length of the scratch that [`ImplicitStep::step`] needs, at least; never below nu.
    fn scratch_len(&self, dims: &Dims) -> usize;

    /// Takes the [`State`] one step further by `h`. The scratch carries nothing from one step to the next. After an error
    /// the state is as before.
    fn step<M: Constrained, I: Inputs<M::S>>(
        &self,
        system: &M,
        inputs: &mut I,
        state: &mut [M::S],
        h: M::S,
        scratch: &mut [M::S],
    ) -> Result<StepStatistics, StepError>;
}

macro_rules! implicit_step {
    ($($formulation:ty),+) => {
        $(
            impl ImplicitStep for $formulation {
                #[inline(always)]
                fn scratch_len(&self, dims: &Dims) -> usize {
                    Self::scratch_len(dims)
                }

                #[inline]
                fn step<M: Constrained, I: Inputs<M::S>>(
                    &self,
                    system: &M,
                    inputs: &mut I,
                    state: &mut [M::S],
                    h: M::S,
                    scratch: &mut [M::S],
                ) -> Result<StepStatistics, StepError> {
                    self.step(system, inputs, state, h, scratch)
                }
            }
        )+
    };
}
implicit_step!(Ali3p, ImplicitIndex1);

/// What an observer sees at a node.
#[derive(Clone, Copy, Debug)]
pub struct Node<'a, S> {
    /// Time, coordinates, rates, accelerations; inputs with which the next step begins.
    pub motion: Motion<'a, S>,
    /// Multipliers.
    pub lambda: &'a [S],
    /// The step that ends here; nothing but zeros at the start.
    pub step: StepStatistics,
}

/// What a run took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RunStatistics {
    /// Time of the final state.
    pub t: f64,
    /// Size of the last step.
    pub h: f64,
    /// Steps taken.
    pub steps: usize,
    /// Iterations in all.
    pub iterations: usize,
    /// Most iterations of a step.
    pub max_iterations: usize,
    /// Tangents evaluated and factored.
    pub tangents: usize,
    /// Solutions for projections, of velocities and of accelerations.
    pub projections: usize,
    /// Factorisations for which the dense LU had to help.
    pub fallbacks: usize,
    /// Largest |Φd| or |Ψ| that a projection left.
    pub max_phid: f64,
    /// Largest |Φdd| or |Ψd| that a projection left.
    pub max_phidd: f64,
    /// Whether the observer ended the run.
    pub stopped: bool,
}

impl RunStatistics {
    pub(crate) fn add(&mut self, step: &StepStatistics) {
        self.steps += 1;
        self.iterations += step.iterations;
        self.max_iterations = self.max_iterations.max(step.iterations);
        self.tangents += step.tangents;
        self.projections += step.velocity_projections + step.acceleration_projections;
        self.fallbacks += step.fallbacks;
        self.max_phid = self.max_phid.max(step.phid);
        self.max_phidd = self.max_phidd.max(step.phidd);
    }
}

impl<T: ImplicitStep> Fixed<T> {
    /// Integrates the [`State`] from start to end of the span; its time must be the start.
    ///
    /// The observer sees start, end, and what [`Span::output`] says, each time once and in order. Where it breaks the run
    /// ends. After an error the state is that after the last good step.
    pub fn run<M, I, O>(
        &self,
        system: &M,
        inputs: &mut I,
        state: &mut [M::S],
        span: &Span<M::S>,
        scratch: &mut [M::S],
        mut observe: O,
    ) -> Result<RunStatistics, StepError>
    where
        M: Constrained,
        I: Inputs<M::S>,
        O: FnMut(Node<'_, M::S>) -> ControlFlow<()>,
    {
        let nodes = Nodes::new(span, self.h)?;
        let dims = system.dims();
        let t = *State::of(&dims, state)?.t;
        if t != span.start {
            let what = "the state's time must be the start of the span";
            return Err(StepError::Setting { what, value: t.real() });
        }
        let mut observe = |state: &mut [M::S], inputs: &mut I, scratch: &mut [M::S], step: StepStatistics| {
            // Between steps the scratch is free; it is longer than the inputs.
            let u = Pieces::of(scratch, self.method.scratch_len(&dims)).next(dims.nu)?;
            let state = State::of(&dims, state)?;
            if !u.is_empty() {
                inputs.at(*state.t, u);
            }
            let node = Node { motion: state.motion(u), lambda: state.lambda, step };
            Ok::<_, StepError>(observe(node).is_break())
        };

        let mut t = t;
        let mut statistics = RunStatistics { t: t.real(), ..RunStatistics::default() };
        statistics.stopped = observe(state, inputs, scratch, StepStatistics::default())?;
        while statistics.steps < nodes.steps && !statistics.stopped {
            let number = statistics.steps + 1;
            let h = nodes.size(number, t);
            let step = self.method.step(system, inputs, state, h, scratch)?;
            t = nodes.time(number);
            *State::of(&dims, state)?.t = t;
            statistics.add(&step);
            (statistics.t, statistics.h) = (t.real(), h.real());
            if nodes.observed(number) {
                statistics.stopped = observe(state, inputs, scratch, step)?;
            }
        }
        Ok(statistics)
    }
}
