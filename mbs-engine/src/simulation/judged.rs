//! Dynamics whose integrals of objectives are first-order states, so that an explicit method integrates them itself: its steps keep
//! their tolerance too, and its weights are those of a differentiated run.

use crate::Interpreted;
use mbs_runtime::{
    At, Dims, EvalError, ForwardDynamics, Hold, Implicit, Index1, Objectives, Quantity, System, Units,
    WithEvents,
};

/// A system and its objectives.
pub(super) struct Judged<'a, M> {
    pub(super) model: &'a Interpreted,
    pub(super) system: &'a M,
    /// Where multipliers come from, if objectives name them.
    pub(super) multipliers: Option<Index1<'a, Interpreted>>,
}

impl<M: System<S = f64>> System for Judged<'_, M> {
    type S = f64;

    fn dims(&self) -> Dims {
        let dims = self.system.dims();
        let own = dims.nq + dims.nv + dims.joint_rows() + dims.n_objectives;
        Dims { nx: dims.n_objectives, workspace: dims.workspace + own, ..dims }
    }

    fn euler_parameters(&self) -> &[usize] {
        self.system.euler_parameters()
    }

    fn holds(&self) -> &[Hold] {
        self.system.holds()
    }

    fn units(&self) -> Units<'_> {
        self.system.units()
    }

    fn resting_rows(&self) -> &[(u32, u32)] {
        self.system.resting_rows()
    }
}

impl<M: System<S = f64>> Judged<'_, M> {
    /// The system's part of the workspace.
    fn rest<'w>(&self, w: &'w mut [f64]) -> &'w mut [f64] {
        let own = self.dims().workspace - self.system.dims().workspace;
        w.get_mut(own..).unwrap_or_default()
    }
}

impl<M: ForwardDynamics<S = f64>> ForwardDynamics for Judged<'_, M> {
    fn corrects_steps(&self) -> bool {
        self.system.corrects_steps()
    }

    fn completes(&self) -> bool {
        self.system.completes()
    }

    fn forward_dynamics(
        &self,
        at: At<'_, f64>,
        w: &mut [f64],
        zd: &mut [f64],
        vd: &mut [f64],
        xd: &mut [f64],
    ) -> Result<(), EvalError> {
        let dims = self.system.dims();
        let at = At { x: &[], ..at };
        let (expected, found) = (self.dims().workspace, w.len());
        let short = EvalError::Length { what: "w", expected, found };
        let (own, w) = w.split_at_mut_checked(expected - dims.workspace).ok_or(short)?;
        let (lambda, own) = own.split_at_mut(dims.joint_rows());
        let (terminals, own) = own.split_at_mut(dims.n_objectives);
        self.system.forward_dynamics(at, w, zd, vd, &mut [])?;
        if xd.is_empty() {
            return Ok(());
        }
        // The first values of the workspace may be what implicit stages keep from one call to the next.
        let kept = dims.workspace.saturating_sub(self.model.dims().workspace);
        let (_, w) = w.split_at_mut_checked(kept).ok_or(short)?;
        if let Some(dynamics) = &self.multipliers {
            let (zd, vd) = own.split_at_mut(dims.nq);
            dynamics.multipliers(at, w, zd, vd, lambda)?;
        } else {
            lambda.fill(0.0);
        }
        self.model.objectives(at, vd, lambda, w, xd, terminals)?;
        match xd.iter().position(|g| !g.is_finite()) {
            Some(index) => Err(EvalError::NotFinite { quantity: Quantity::Objective, index }),
            None => Ok(()),
        }
    }

    fn newmark(&self) -> Implicit {
        self.system.newmark()
    }

    fn linearise_stage(&self, at: At<'_, f64>, alpha: [f64; 2], w: &mut [f64]) -> Result<(), EvalError> {
        self.system.linearise_stage(At { x: &[], ..at }, alpha, self.rest(w))
    }

    fn solve_stage(
        &self,
        at: At<'_, f64>,
        alpha: [f64; 2],
        w: &mut [f64],
        z: &mut [f64],
        v: &mut [f64],
    ) -> Result<(), EvalError> {
        self.system.solve_stage(At { x: &[], ..at }, alpha, self.rest(w), z, v)
    }

    fn integrals(&self) -> usize {
        self.system.dims().n_objectives
    }

    fn prepare_step(&self, at: At<'_, f64>, w: &mut [f64]) -> Result<(), EvalError> {
        self.system.prepare_step(At { x: &[], ..at }, self.rest(w))
    }

    fn complete(
        &self,
        t: f64,
        u: &[f64],
        w: &mut [f64],
        z: &mut [f64],
        v: &mut [f64],
    ) -> Result<(), EvalError> {
        self.system.complete(t, u, self.rest(w), z, v)
    }

    fn correct_step(
        &self,
        t: f64,
        u: &[f64],
        w: &mut [f64],
        z: &mut [f64],
        v: &mut [f64],
        _: &[f64],
    ) -> Result<(), EvalError> {
        self.system.correct_step(t, u, self.rest(w), z, v, &[])
    }
}

impl<M: ForwardDynamics<S = f64> + WithEvents<Model = Interpreted>> WithEvents for Judged<'_, M> {
    type Model = Interpreted;

    fn events(&self) -> &Interpreted {
        self.model
    }

    fn accelerations(
        &self,
        at: At<'_, f64>,
        w: &mut [f64],
        zd: &mut [f64],
        vd: &mut [f64],
        lambda: &mut [f64],
    ) -> Result<(), EvalError> {
        self.system.accelerations(At { x: &[], ..at }, w, zd, vd, lambda)
    }
}
