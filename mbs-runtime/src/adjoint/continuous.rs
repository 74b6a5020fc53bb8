//! The adjoint of the continuous equations of motion in independent coordinates [004 "Semi-recursive Matrix R"], for comparison: it converges to the
//! gradient of the discrete run with order two, and is not that gradient.
//!
//! With the integrated entries x = X y, the completed state y = C(x, ρ), C_x = R, and dx/dt = X f(t, y, ρ),
//!
//! ```text
//! μ(t_F) = Rᵀ w_yᵀ ψ̄        −dμ/dt = Rᵀ (f_yᵀ Xᵀ μ + g_yᵀ ψ̄)        ρ̄ = (w_ρ + w_y C_ρ)ᵀ ψ̄ + ∫ (f_ρ + f_y C_ρ)ᵀ Xᵀ μ + (g_ρ + g_y C_ρ)ᵀ ψ̄ dt
//! ```
//!
//! integrated backward over the nodes of the run by the trapezoidal rule: with F = X f_y R,
//!
//! ```text
//! b = μ_n+1 + h/2 (F_n+1ᵀ μ_n+1 + R_n+1ᵀ g_n+1)        (1 − h/2 F_nᵀ) μ_n = b + h/2 R_nᵀ g_n
//! ```
//!
//! What a node gives over a step is in proportion to the step's size: it is found once, for the step that the node begins, and used for the step that it
//! ends, too. Where the choice of independent coordinates changes, x_new = X_new C_old(x_old, ρ), so that μ_old = (X_new R_old)ᵀ μ_new.

use core::ops::ControlFlow;

use super::explicit::{AdjointIntegrator, Way, at_once_len, way_len};
use super::items::Times;
use super::{AdjointNode, AdjointStatistics, Schedule, VectorJacobian};
use crate::error::{EvalError, StepError};
use crate::inputs::Inputs;
use crate::integrator::{Fixed, Implicit, Nodes, RungeKutta, Span, Trapezoidal};
use crate::linear::{add_scaled, copy};
use crate::pieces::{Pieces, cut_mut};
use crate::scalar::Scalar;
use crate::sensitivity::{JointDynamics, JointObjectiveDerivatives, Linear, refuse_first_order_states};
use crate::system::{At, Dims};

/// The continuous adjoint of a run in independent coordinates by the trapezoidal rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ContinuousAdjoint(pub Fixed<Trapezoidal>);

/// What a node gives to μ, ρ̄ and the objectives over the part `alpha` of a step.
pub(super) struct Slopes<'a, S> {
    alpha: S,
    bar: &'a mut [S],
    rho: &'a mut [S],
    objectives: &'a mut [S],
}

impl<'a, S: Scalar> Slopes<'a, S> {
    fn len(dims: &Dims, columns: usize) -> usize {
        (dims.state() + dims.sensitivity.parameters) * columns + dims.n_objectives
    }

    fn new(dims: &Dims, columns: usize, pieces: &mut Pieces<'a, S>) -> Result<Self, StepError> {
        Ok(Self {
            alpha: S::ONE,
            bar: pieces.next(dims.state() * columns)?,
            rho: pieces.next(dims.sensitivity.parameters * columns)?,
            objectives: pieces.next(dims.n_objectives)?,
        })
    }
}

impl AdjointIntegrator for ContinuousAdjoint {
    fn scratch_len<D: JointDynamics>(&self, system: &D, columns: usize) -> usize {
        let dims = system.dims();
        way_len::<Trapezoidal, D>(system, columns)
            + at_once_len(&dims, columns)
            + Slopes::<D::S>::len(&dims, columns)
    }

    fn schedule<S: Scalar>(
        &self,
        dims: &Dims,
        span: &Span<S>,
        memory: usize,
    ) -> Result<Option<Schedule>, StepError> {
        super::Adjoint(self.0).schedule(dims, span, memory)
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
        if !system.completes() {
            let what = "the continuous adjoint in joint form is that of independent coordinates";
            return Err(StepError::NotDifferentiable { what });
        }
        if system.newmark() != Implicit::TRAPEZOIDAL {
            let what = "the continuous adjoint in joint form is that of the trapezoidal rule";
            return Err(StepError::NotDifferentiable { what });
        }
        let nodes = Nodes::new(span, self.0.h)?;
        let columns = product.columns;
        let mut pieces = Pieces::of(scratch, self.scratch_len(system, columns));
        let slopes = Slopes::new(&system.dims(), columns, &mut pieces)?;
        let mut way =
            Way::<Trapezoidal, _, _, _, _>::new(system, inputs, nodes, product, None, &mut pieces, observe)?;
        way.slopes = Some(slopes);
        way.run(y, memory)
    }
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
    /// μ at the end of the run, from the weights of its state, and what that node gives.
    pub(super) fn begin_back(
        &mut self,
        mut slopes: Slopes<'a, D::S>,
        t: D::S,
        y: &[D::S],
    ) -> Result<(), EvalError> {
        let (dims, columns, one) = (self.dims, self.columns, D::S::ONE);
        copy(self.u, self.field.inputs.during_step(t, one));
        let at = At::of_state(&dims, t, y, self.u)?;
        let (z, v) = cut_mut("bar", self.bar, dims.nq * columns)?;
        let (system, w) = (self.field.system, &mut *self.field.w);
        self.completion.transpose(system, &dims, columns, at, z, v, self.now, w)?;
        copy(self.rate_bar, self.bar);
        slopes.alpha = one;
        self.exchange(&mut slopes);
        let found = self.weigh_node(t, y, one, slopes.bar);
        self.exchange(&mut slopes);
        self.slopes = Some(slopes);
        found
    }

    /// μ at the start of a step from that at its end.
    pub(super) fn step_back(
        &mut self,
        mut slopes: Slopes<'a, D::S>,
        t: D::S,
        h: D::S,
        y: &[D::S],
    ) -> Result<(), EvalError> {
        let (dims, columns) = (self.dims, self.columns);
        let alpha = D::S::from_f64(0.5) * h;
        let count = self.stages(t, h, y)?;
        // b, in the independent coordinates of this step
        let part = alpha / slopes.alpha;
        add_scaled(self.bar, part, slopes.bar);
        add_scaled(self.now, part, slopes.rho);
        add_scaled(self.objectives, part, slopes.objectives);
        self.transpose_corrections(t + h, count)?;
        copy(slopes.bar, self.bar);
        slopes.alpha = alpha;
        self.exchange(&mut slopes);
        copy(self.u, self.field.inputs.during_step(t, D::S::ZERO));
        self.rate_bar.fill(D::S::ZERO);
        let added = core::mem::take(&mut self.stage_bars);
        let found = cut_mut("stages", added, dims.state() * columns).and_then(|(added, _)| {
            self.weigh_node(t, y, alpha, added)?;
            add_scaled(self.bar, D::S::ONE, added);
            let (z, v) = cut_mut("bar", self.bar, dims.nq * columns)?;
            let Self { field, u, values, factors, column, now, .. } = self;
            let at = At::of_state(&dims, t, y, u)?;
            let (matrix, w) = (&mut field.tangent.matrix, &mut *field.w);
            matrix.factor(field.system, &dims, at, [alpha; 2], Linear { values, factors, column, w })?;
            let linear = Linear { values, factors, column, w };
            matrix.solve_transposed(field.system, &dims, at, [alpha; 2], linear, columns, z, v, now)
        });
        self.stage_bars = added;
        self.exchange(&mut slopes);
        add_scaled(self.now, D::S::ONE, slopes.rho);
        add_scaled(self.objectives, D::S::ONE, slopes.objectives);
        // μ − b
        for (slope, &bar) in slopes.bar.iter_mut().zip(self.bar.iter()) {
            *slope = bar - *slope;
        }
        self.slopes = Some(slopes);
        found
    }

    /// Lets ρ̄ and objectives of a node stand apart from those of all, from zero; and back.
    fn exchange(&mut self, slopes: &mut Slopes<'a, D::S>) {
        self.apart = !self.apart;
        core::mem::swap(&mut self.now, &mut slopes.rho);
        core::mem::swap(&mut self.objectives, &mut slopes.objectives);
        if self.apart {
            self.now.fill(D::S::ZERO);
            self.objectives.fill(D::S::ZERO);
        }
    }

    /// Into `bar`: weights of x, from those of the rate and from integrands times α.
    fn weigh_node(&mut self, t: D::S, y: &[D::S], alpha: D::S, bar: &mut [D::S]) -> Result<(), EvalError> {
        let (dims, columns) = (self.dims, self.columns);
        self.weigh(t, y, None, 1.0, alpha, super::explicit::What::Integrand)?;
        bar.fill(D::S::ZERO);
        let (z, v) = cut_mut("bar", bar, dims.nq * columns)?;
        let system = self.field.system;
        super::explicit::pull_back(system, &dims, columns, y, self.rate_bar, self.changes, z, v)?;
        let at = At::of_state(&dims, t, y, self.u)?;
        self.completion.transpose(system, &dims, columns, at, z, v, self.now, self.field.w)
    }
}
