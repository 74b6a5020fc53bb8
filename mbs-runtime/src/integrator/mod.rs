//! Runge–Kutta integration of y' = f(t, y), with the state y = \[z, v, x\] and f the forward dynamics in joint form; and
//! the formulas of implicit integrators ([`Implicit`]), which [`formulation`](crate::formulation) steps with.
//!
//! A *method* makes one step; a *policy* chooses the steps and makes a run of them:
//!
//! | method | policy |
//! |---|---|
//! | [`Rk4`] | [`Fixed`] |
//! | [`DormandPrince`] | [`Fixed`], [`Adaptive`] |
//! | [`Dop853`] | [`Fixed`], [`Adaptive`] |
//! | [`Sdirk4`], implicit | [`Fixed`], [`Adaptive`] |
//! | [`Trapezoidal`], implicit; in independent coordinates all of [`Implicit`] | [`Fixed`] |
//!
//! Input: a system, its inputs, the state in a slice of the caller, a span of time, scratch of the caller. Output:
//! the state at the end, samples for an observer on the way, statistics. What holds:
//!
//! - The scratch carries nothing from one step to the next. The state of a run is time and y, for [`Adaptive`] with its
//!   [`Memory`]: copy them, step again, get the same bits.
//! - Each step ends with Euler parameters of unit norm ([`renormalise`]); that is part of the discrete map.
//! - A step that fails leaves the state before it, and says time, step, and which state is at fault. No state that is
//!   not finite is ever returned.

mod adaptive;
mod controlled;
mod dop853;
mod dormand_prince;
mod drive;
mod explicit;
mod field;
mod fixed;
mod newmark;
mod renormalise;
mod rk4;
mod sdirk4;
mod stage;
mod statistics;
mod trapezoidal;
mod weighted;

pub use crate::implicit::Implicit;
pub use adaptive::{Accepted, Adaptive, Memory};
pub(crate) use adaptive::{AdaptiveRun, Extend, Limits, ObserveDense};
pub use controlled::Controlled;
pub use dop853::Dop853;
pub use dormand_prince::DormandPrince;
pub(crate) use drive::{Hooks, Next, Plan, Planned, Stepper, Taken, Verdict, drive};
pub(crate) use explicit::{ExplicitRun, Observe, RungeKutta, Tableau};
pub(crate) use field::{
    Field, Rates, alphas, check_finite, check_state, close_weighted, rates_of_stage, scratch_len as field_len,
};
pub use fixed::{Fixed, FixedStep};
pub(crate) use fixed::{FixedRun, Nodes, carried_len, moving};
pub(crate) use newmark::{Formulas, Kinematics};
pub use renormalise::renormalise;
pub(crate) use renormalise::renormalise_with_rates;
pub use rk4::Rk4;
pub use sdirk4::Sdirk4;
pub(crate) use stage::{Iteration, solve_stage};
pub use statistics::{Statistics, StepStatistics};
pub use trapezoidal::Trapezoidal;
pub(crate) use weighted::{Three, Weights as StepWeights};

use core::ops::ControlFlow;

use crate::error::StepError;
use crate::inputs::Inputs;
use crate::scalar::Scalar;
use crate::system::{At, Dims, ForwardDynamics};

/// The time of a run, and when it is observed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span<S> {
    /// Start.
    pub start: S,
    /// End, not before the start. The last step lands on it exactly.
    pub end: S,
    /// When the observer is called, besides start and end.
    pub output: Output,
}

/// When a run is observed between start and end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Output {
    /// After each step.
    Steps,
    /// At start + k times this. With fixed steps a multiple of the step; with adaptive steps any, by dense output.
    Every(f64),
}

/// A way to integrate a system over a span of time.
pub trait Integrator {
    /// Length of the scratch that a run needs, at least.
    fn scratch_len(&self, dims: &Dims) -> usize;

    /// Integrates `y` from start to end of the span.
    ///
    /// The observer sees start, end, and what [`Span::output`] says, each time once and in order; at the end of a step
    /// its inputs are those with which the next step begins. Where it breaks the run ends: `y` is then what it saw.
    /// After an error `y` is the state after the last good step.
    fn run<M, I, O>(
        &self,
        system: &M,
        inputs: &mut I,
        y: &mut [M::S],
        span: &Span<M::S>,
        scratch: &mut [M::S],
        observe: O,
    ) -> Result<Statistics, StepError>
    where
        M: ForwardDynamics,
        I: Inputs<M::S>,
        O: FnMut(At<'_, M::S>) -> ControlFlow<()>;
}

impl<S: Scalar> Span<S> {
    /// Length of the span, if it is one.
    fn length(&self) -> Result<f64, StepError> {
        let length = (self.end - self.start).real();
        if length >= 0.0 && length.is_finite() {
            Ok(length)
        } else {
            Err(StepError::Setting { what: "the span must be finite and not negative", value: length })
        }
    }
}

/// A setting that must be positive and finite.
#[cfg_attr(feature = "small", inline(never))]
pub(crate) fn positive(what: &'static str, value: f64) -> Result<f64, StepError> {
    if value > 0.0 && value.is_finite() { Ok(value) } else { Err(StepError::Setting { what, value }) }
}

/// Copies as much as both hold; their lengths have been made equal before.
#[inline(always)]
fn copy<S: Copy>(to: &mut [S], from: &[S]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = *from;
    }
}

/// Copies a slice of the same length.
pub(crate) fn copy_all<S: Copy>(what: &'static str, to: &mut [S], from: &[S]) -> Result<(), StepError> {
    if to.len() != from.len() {
        return Err(StepError::Length { what, expected: from.len(), found: to.len() });
    }
    copy(to, from);
    Ok(())
}

/// to = y + h Σ a k, the sum first.
#[inline(always)]
fn combine<S: Scalar, const N: usize>(to: &mut [S], y: &[S], h: S, terms: [(f64, &[S]); N]) {
    weighted_sum(to, terms);
    for (to, &y) in to.iter_mut().zip(y) {
        *to = y + h * *to;
    }
}

/// to = Σ a k
#[inline(always)]
fn weighted_sum<S: Scalar, const N: usize>(to: &mut [S], terms: [(f64, &[S]); N]) {
    let mut terms = terms.into_iter().map(|(a, k)| (S::from_f64(a), k));
    if let Some((a, k)) = terms.next() {
        for (to, &k) in to.iter_mut().zip(k) {
            *to = a * k;
        }
    }
    for (a, k) in terms {
        for (to, &k) in to.iter_mut().zip(k) {
            *to += a * k;
        }
    }
}

/// to += Σ a k; many weights are zero.
#[inline(always)]
fn add_all<S: Scalar>(to: &mut [S], weights: &[f64], rates: &[&mut [S]]) {
    for (&a, k) in weights.iter().zip(rates).filter(|(a, _)| **a != 0.0) {
        let a = S::from_f64(a);
        for (to, &k) in to.iter_mut().zip(k.iter()) {
            *to += a * k;
        }
    }
}

/// to = y + h Σ a k, the sum first; many weights are zero.
#[inline(always)]
fn combine_all<S: Scalar>(to: &mut [S], y: &[S], h: S, weights: &[f64], rates: &[&mut [S]]) {
    to.fill(S::ZERO);
    add_all(to, weights, rates);
    for (to, &y) in to.iter_mut().zip(y) {
        *to = y + h * *to;
    }
}
