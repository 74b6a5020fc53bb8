//! Dynamics whose implicit stages can be solved: what [`Sdirk4`](crate::Sdirk4) steps.
//!
//! Input: dynamics in joint form whose model knows its derivatives. Output: the same with a larger workspace, whose first values keep the
//! derivative of a stage.

use core::cell::Cell;

use super::joint_dynamics::JointDynamics;
use super::stage_tangent::StageTangent;
use crate::constrained::Stabilisation;
use crate::error::EvalError;
use crate::formulation::Corrections;
use crate::inputs::Hold;
use crate::integrator::Implicit;
use crate::pieces::{Pieces, cut_mut};
use crate::system::{At, Dims, ForwardDynamics, System, Units};

/// Dynamics for implicit Runge–Kutta methods.
#[derive(Debug)]
pub struct Stiff<'a, D>(pub &'a D);

impl<D> Clone for Stiff<'_, D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D> Copy for Stiff<'_, D> {}

/// What a workspace keeps, and the rest of it.
type Kept<'w, S> = (StageTangent<'w, S>, &'w mut [S]);

/// Sizes of [`Stiff`] dynamics, from those of the dynamics.
pub(crate) const fn stiff(dims: &Dims) -> Dims {
    Dims { workspace: dims.workspace + StageTangent::<f64>::len(dims, 1), ..*dims }
}

impl<D: JointDynamics> System for Stiff<'_, D> {
    type S = D::S;

    #[inline(always)]
    fn dims(&self) -> Dims {
        stiff(&self.0.dims())
    }
    #[inline(always)]
    fn euler_parameters(&self) -> &[usize] {
        self.0.euler_parameters()
    }
    #[inline(always)]
    fn holds(&self) -> &[Hold] {
        self.0.holds()
    }
    #[inline(always)]
    fn units(&self) -> Units<'_> {
        self.0.units()
    }
    #[inline(always)]
    fn resting_rows(&self) -> &[(u32, u32)] {
        self.0.resting_rows()
    }
}

impl<D: JointDynamics> Stiff<'_, D> {
    /// How many values the workspace keeps.
    #[inline(always)]
    fn kept(&self) -> usize {
        StageTangent::<D::S>::len(&self.0.dims(), 1)
    }

    /// They, and the rest of it.
    #[inline(always)]
    fn parts<'w>(&self, dims: &Dims, w: &'w mut [D::S]) -> Result<Kept<'w, D::S>, EvalError> {
        let (expected, found) = (stiff(dims).workspace, w.len());
        let mut pieces = Pieces::named("w", w, expected);
        let short = |_| EvalError::Length { what: "w", expected, found };
        let tangent = StageTangent::new(dims, 1, &mut pieces).map_err(short)?;
        Ok((tangent, pieces.rest()))
    }
}

impl<D: JointDynamics> ForwardDynamics for Stiff<'_, D> {
    #[inline(always)]
    fn corrects_steps(&self) -> bool {
        self.0.corrects_steps()
    }

    #[inline(always)]
    fn completes(&self) -> bool {
        self.0.completes()
    }

    fn prepare_step(&self, at: At<'_, D::S>, w: &mut [D::S]) -> Result<(), EvalError> {
        JointDynamics::prepare_step(self, at, w)
    }

    fn complete(
        &self,
        t: D::S,
        u: &[D::S],
        w: &mut [D::S],
        z: &mut [D::S],
        v: &mut [D::S],
    ) -> Result<(), EvalError> {
        JointDynamics::complete(self, t, u, w, z, v)
    }

    #[inline(always)]
    fn forward_dynamics(
        &self,
        at: At<'_, D::S>,
        w: &mut [D::S],
        zd: &mut [D::S],
        vd: &mut [D::S],
        _: &mut [D::S],
    ) -> Result<(), EvalError> {
        let (tangent, w) = self.parts(&self.0.dims(), w)?;
        self.0.accelerate(at, w, zd, vd, tangent.lambda)
    }

    fn newmark(&self) -> Implicit {
        self.0.newmark()
    }

    fn linearise_stage(&self, at: At<'_, D::S>, alpha: [D::S; 2], w: &mut [D::S]) -> Result<(), EvalError> {
        let dims = self.0.dims();
        let (mut tangent, w) = self.parts(&dims, w)?;
        tangent.linearise(self.0, &dims, at, alpha, w)
    }

    fn solve_stage(
        &self,
        at: At<'_, D::S>,
        alpha: [D::S; 2],
        w: &mut [D::S],
        z: &mut [D::S],
        v: &mut [D::S],
    ) -> Result<(), EvalError> {
        let dims = self.0.dims();
        let (mut tangent, w) = self.parts(&dims, w)?;
        tangent.solve(self.0, &dims, at, alpha, w, z, v)
    }

    fn correct_step(
        &self,
        t: D::S,
        u: &[D::S],
        w: &mut [D::S],
        z: &mut [D::S],
        v: &mut [D::S],
        x: &[D::S],
    ) -> Result<(), EvalError> {
        self.correct(At { t, z: &[], v: &[], x, u }, w, z, v, ())
    }
}

impl<D: JointDynamics> JointDynamics for Stiff<'_, D> {
    type Model = D::Model;

    #[inline(always)]
    fn corrects_steps(&self) -> bool {
        self.0.corrects_steps()
    }

    #[inline(always)]
    fn solves_stages(&self) -> bool {
        true
    }

    #[inline(always)]
    fn completes(&self) -> bool {
        self.0.completes()
    }

    #[inline(always)]
    fn prepare_step(&self, at: At<'_, D::S>, w: &mut [D::S]) -> Result<(), EvalError> {
        let (_, w) = cut_mut("w", w, self.kept())?;
        self.0.prepare_step(at, w)
    }

    #[inline(always)]
    fn complete(
        &self,
        t: D::S,
        u: &[D::S],
        w: &mut [D::S],
        z: &mut [D::S],
        v: &mut [D::S],
    ) -> Result<(), EvalError> {
        let (_, w) = cut_mut("w", w, self.kept())?;
        self.0.complete(t, u, w, z, v)
    }

    #[inline(always)]
    fn newmark(&self) -> Implicit {
        self.0.newmark()
    }

    #[inline(always)]
    fn choice(&self) -> &[Cell<D::S>] {
        self.0.choice()
    }

    #[inline(always)]
    fn model(&self) -> &D::Model {
        self.0.model()
    }

    #[inline(always)]
    fn stabilisation(&self) -> Stabilisation<D::S> {
        self.0.stabilisation()
    }

    #[inline(always)]
    fn accelerate(
        &self,
        at: At<'_, D::S>,
        w: &mut [D::S],
        zd: &mut [D::S],
        vd: &mut [D::S],
        lambda: &mut [D::S],
    ) -> Result<(), EvalError> {
        let (_, w) = cut_mut("w", w, self.kept())?;
        self.0.accelerate(at, w, zd, vd, lambda)
    }

    #[inline(always)]
    fn correct(
        &self,
        at: At<'_, D::S>,
        w: &mut [D::S],
        z: &mut [D::S],
        v: &mut [D::S],
        along: impl Corrections<D::S>,
    ) -> Result<(), EvalError> {
        let (_, w) = cut_mut("w", w, self.kept())?;
        self.0.correct(at, w, z, v, along)
    }
}
