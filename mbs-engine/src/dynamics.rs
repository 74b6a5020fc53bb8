//! The dynamics that Runge–Kutta steps integrate.
//!
//! Input: a model and how it answers violated constraints. Output: dynamics whose kind is known at run time, so that every run is
//! compiled once and not once for each kind.

use crate::{Damping, Interpreted};
use mbs_runtime::formulation::Corrections;
use mbs_runtime::inputs::Hold;
use mbs_runtime::sensitivity::JointDynamics;
use mbs_runtime::{
    At, Dims, EvalError, ForwardDynamics, Implicit, Index1, MatrixR, OnConstraints, Scalar, Stabilisation,
    System, Units, WithEvents,
};
use std::cell::Cell;

/// Dynamics in joint form.
pub(crate) enum Dynamics<'m, S: Scalar = f64> {
    /// Of an open tree.
    Tree(&'m Interpreted<S>),
    /// Of index 1 or penalty; each step ends on the constraints.
    OnConstraints(OnConstraints<Index1<'m, Interpreted<S>>>),
    /// In independent coordinates.
    MatrixR(MatrixR<'m, Interpreted<S>>),
}

impl<'m, S: Scalar> Dynamics<'m, S> {
    /// Those that a damping means, or an open tree; `choice` is the memory of independent coordinates, [`Interpreted::no_choice`].
    pub(crate) fn new(model: &'m Interpreted<S>, damping: Option<Damping>, choice: &'m mut [S]) -> Self {
        match damping {
            None => Dynamics::Tree(model),
            Some(Damping { matrix_r: Some(newmark), .. }) => {
                Dynamics::MatrixR(MatrixR::new(model, choice).by(newmark))
            }
            Some(damping) => Dynamics::OnConstraints(OnConstraints(index1(model, damping.penalty))),
        }
    }
}

/// Index 1, or its penalty, without damping.
pub(crate) fn index1<S: Scalar>(model: &Interpreted<S>, penalty: Option<f64>) -> Index1<'_, Interpreted<S>> {
    match penalty {
        Some(penalty) => Index1::penalty(model, penalty, 0.0, 0.0),
        None => Index1::new(model),
    }
}

/// `$call` with the dynamics that there are.
macro_rules! of {
    ($any:expr, $dynamics:ident => $call:expr) => {
        match $any {
            Dynamics::Tree(model) => {
                let $dynamics = *model;
                $call
            }
            Dynamics::OnConstraints($dynamics) => $call,
            Dynamics::MatrixR($dynamics) => $call,
        }
    };
}

impl<S: Scalar> System for Dynamics<'_, S> {
    type S = S;

    fn dims(&self) -> Dims {
        of!(self, dynamics => dynamics.dims())
    }

    fn euler_parameters(&self) -> &[usize] {
        of!(self, dynamics => dynamics.euler_parameters())
    }

    fn holds(&self) -> &[Hold] {
        of!(self, dynamics => dynamics.holds())
    }

    fn units(&self) -> Units<'_> {
        of!(self, dynamics => dynamics.units())
    }

    fn resting_rows(&self) -> &[(u32, u32)] {
        of!(self, dynamics => dynamics.resting_rows())
    }
}

impl<S: Scalar> ForwardDynamics for Dynamics<'_, S> {
    fn corrects_steps(&self) -> bool {
        of!(self, dynamics => ForwardDynamics::corrects_steps(dynamics))
    }

    fn completes(&self) -> bool {
        of!(self, dynamics => ForwardDynamics::completes(dynamics))
    }

    fn forward_dynamics(
        &self,
        at: At<'_, S>,
        w: &mut [S],
        zd: &mut [S],
        vd: &mut [S],
        xd: &mut [S],
    ) -> Result<(), EvalError> {
        of!(self, dynamics => dynamics.forward_dynamics(at, w, zd, vd, xd))
    }

    fn newmark(&self) -> Implicit {
        of!(self, dynamics => ForwardDynamics::newmark(dynamics))
    }

    fn prepare_step(&self, at: At<'_, S>, w: &mut [S]) -> Result<(), EvalError> {
        of!(self, dynamics => ForwardDynamics::prepare_step(dynamics, at, w))
    }

    fn complete(&self, t: S, u: &[S], w: &mut [S], z: &mut [S], v: &mut [S]) -> Result<(), EvalError> {
        of!(self, dynamics => ForwardDynamics::complete(dynamics, t, u, w, z, v))
    }

    fn correct_step(
        &self,
        t: S,
        u: &[S],
        w: &mut [S],
        z: &mut [S],
        v: &mut [S],
        x: &[S],
    ) -> Result<(), EvalError> {
        of!(self, dynamics => dynamics.correct_step(t, u, w, z, v, x))
    }
}

impl<S: Scalar> JointDynamics for Dynamics<'_, S> {
    type Model = Interpreted<S>;

    fn corrects_steps(&self) -> bool {
        of!(self, dynamics => JointDynamics::corrects_steps(dynamics))
    }

    fn completes(&self) -> bool {
        of!(self, dynamics => JointDynamics::completes(dynamics))
    }

    fn newmark(&self) -> Implicit {
        of!(self, dynamics => JointDynamics::newmark(dynamics))
    }

    fn model(&self) -> &Interpreted<S> {
        of!(self, dynamics => dynamics.model())
    }

    fn stabilisation(&self) -> Stabilisation<S> {
        of!(self, dynamics => dynamics.stabilisation())
    }

    fn accelerate(
        &self,
        at: At<'_, S>,
        w: &mut [S],
        zd: &mut [S],
        vd: &mut [S],
        lambda: &mut [S],
    ) -> Result<(), EvalError> {
        of!(self, dynamics => dynamics.accelerate(at, w, zd, vd, lambda))
    }

    fn correct(
        &self,
        at: At<'_, S>,
        w: &mut [S],
        z: &mut [S],
        v: &mut [S],
        along: impl Corrections<S>,
    ) -> Result<(), EvalError> {
        of!(self, dynamics => dynamics.correct(at, w, z, v, along))
    }

    fn prepare_step(&self, at: At<'_, S>, w: &mut [S]) -> Result<(), EvalError> {
        of!(self, dynamics => JointDynamics::prepare_step(dynamics, at, w))
    }

    fn complete(&self, t: S, u: &[S], w: &mut [S], z: &mut [S], v: &mut [S]) -> Result<(), EvalError> {
        of!(self, dynamics => JointDynamics::complete(dynamics, t, u, w, z, v))
    }

    fn choice(&self) -> &[Cell<S>] {
        of!(self, dynamics => dynamics.choice())
    }
}

impl<S: Scalar> WithEvents for Dynamics<'_, S> {
    type Model = Interpreted<S>;

    fn events(&self) -> &Interpreted<S> {
        of!(self, dynamics => dynamics.events())
    }

    fn accelerations(
        &self,
        at: At<'_, S>,
        w: &mut [S],
        zd: &mut [S],
        vd: &mut [S],
        lambda: &mut [S],
    ) -> Result<(), EvalError> {
        of!(self, dynamics => dynamics.accelerations(at, w, zd, vd, lambda))
    }
}
