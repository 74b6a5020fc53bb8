//! What explicit integrators step, as something that can be differentiated: open trees, and mechanisms with constraints as
//! [`Index1`] makes them, also [`OnConstraints`], and as [`MatrixR`] does.

use core::cell::Cell;

use super::derivatives::JointSensitivities;
use crate::constrained::{ConstrainedDynamics, ConstraintCorrection, ConstraintRows, Stabilisation};
use crate::error::EvalError;
use crate::formulation::index1::correct;
use crate::formulation::{Corrections, Index1, MatrixR, OnConstraints};
use crate::integrator::Implicit;
use crate::scalar::Scalar;
use crate::system::{At, ForwardDynamics, System};

/// Forward dynamics whose model knows its derivatives.
pub trait JointDynamics: System {
    /// The model.
    type Model: JointSensitivities<S = Self::S>;

    /// Whether [`JointDynamics::correct`] does anything.
    #[inline(always)]
    fn corrects_steps(&self) -> bool {
        false
    }

    /// Whether implicit methods step it: [`Stiff`](super::Stiff).
    #[inline(always)]
    fn solves_stages(&self) -> bool {
        false
    }

    /// Whether [`JointDynamics::prepare_step`] and [`JointDynamics::complete`] do anything.
    #[inline(always)]
    fn completes(&self) -> bool {
        false
    }

    /// The model.
    fn model(&self) -> &Self::Model;

    /// How accelerations answer a violated constraint.
    fn stabilisation(&self) -> Stabilisation<Self::S>;

    /// Writes zd, vd and the multipliers.
    fn accelerate(
        &self,
        at: At<'_, Self::S>,
        w: &mut [Self::S],
        zd: &mut [Self::S],
        vd: &mut [Self::S],
        lambda: &mut [Self::S],
    ) -> Result<(), EvalError>;

    /// Brings z and v at the end of a step to where they should be.
    #[inline(always)]
    fn correct(
        &self,
        _at: At<'_, Self::S>,
        _w: &mut [Self::S],
        _z: &mut [Self::S],
        _v: &mut [Self::S],
        _along: impl Corrections<Self::S>,
    ) -> Result<(), EvalError> {
        Ok(())
    }

    /// Looks at the state from which a step is made.
    #[inline(always)]
    fn prepare_step(&self, _at: At<'_, Self::S>, _w: &mut [Self::S]) -> Result<(), EvalError> {
        Ok(())
    }

    /// Completes a stage, or the end of a step.
    #[inline(always)]
    fn complete(
        &self,
        _t: Self::S,
        _u: &[Self::S],
        _w: &mut [Self::S],
        _z: &mut [Self::S],
        _v: &mut [Self::S],
    ) -> Result<(), EvalError> {
        Ok(())
    }

    /// The formulas by which [`Trapezoidal`](crate::Trapezoidal) steps it.
    #[inline(always)]
    fn newmark(&self) -> Implicit {
        Implicit::TRAPEZOIDAL
    }

    /// The choice of independent coordinates by which it completes, [`Dims::n_choice`](crate::Dims) numbers.
    #[inline(always)]
    fn choice(&self) -> &[Cell<Self::S>] {
        &[]
    }
}

/// Writes the choice of independent coordinates.
pub(crate) fn save_choice<D: JointDynamics>(system: &D, to: &mut [D::S]) {
    for (to, from) in to.iter_mut().zip(system.choice()) {
        *to = from.get();
    }
}

/// Makes the choice what it was.
pub(crate) fn load_choice<D: JointDynamics>(system: &D, from: &[D::S]) {
    for (to, &from) in system.choice().iter().zip(from) {
        to.set(from);
    }
}

impl<M: ForwardDynamics + JointSensitivities> JointDynamics for M {
    type Model = M;

    #[inline(always)]
    fn model(&self) -> &M {
        self
    }

    #[inline(always)]
    fn stabilisation(&self) -> Stabilisation<M::S> {
        Stabilisation { rate: M::S::ZERO, value: M::S::ZERO, compliance: M::S::ZERO }
    }

    #[inline(always)]
    fn accelerate(
        &self,
        at: At<'_, M::S>,
        w: &mut [M::S],
        zd: &mut [M::S],
        vd: &mut [M::S],
        _: &mut [M::S],
    ) -> Result<(), EvalError> {
        self.forward_dynamics(at, w, zd, vd, &mut [])
    }
}

impl<M: ConstrainedDynamics + JointSensitivities> JointDynamics for Index1<'_, M> {
    type Model = M;

    #[inline(always)]
    fn model(&self) -> &M {
        self.system
    }

    #[inline(always)]
    fn stabilisation(&self) -> Stabilisation<M::S> {
        self.stabilisation
    }

    #[inline(always)]
    fn accelerate(
        &self,
        at: At<'_, M::S>,
        w: &mut [M::S],
        zd: &mut [M::S],
        vd: &mut [M::S],
        lambda: &mut [M::S],
    ) -> Result<(), EvalError> {
        self.system.constrained_dynamics(at, self.stabilisation, w, zd, vd, &mut [], lambda)
    }
}

impl<M: ConstrainedDynamics + ConstraintRows + JointSensitivities> JointDynamics for MatrixR<'_, M> {
    type Model = M;

    #[inline(always)]
    fn completes(&self) -> bool {
        true
    }

    #[inline(always)]
    fn model(&self) -> &M {
        self.index1.system
    }

    #[inline(always)]
    fn stabilisation(&self) -> Stabilisation<M::S> {
        self.index1.stabilisation
    }

    #[inline(always)]
    fn accelerate(
        &self,
        at: At<'_, M::S>,
        w: &mut [M::S],
        zd: &mut [M::S],
        vd: &mut [M::S],
        lambda: &mut [M::S],
    ) -> Result<(), EvalError> {
        self.index1.multipliers(at, w, zd, vd, lambda)
    }

    #[inline(always)]
    fn prepare_step(&self, at: At<'_, M::S>, w: &mut [M::S]) -> Result<(), EvalError> {
        self.look(at, w)
    }

    #[inline(always)]
    fn complete(
        &self,
        t: M::S,
        u: &[M::S],
        w: &mut [M::S],
        z: &mut [M::S],
        v: &mut [M::S],
    ) -> Result<(), EvalError> {
        self.follow(t, u, w, z, v)
    }

    #[inline(always)]
    fn newmark(&self) -> Implicit {
        self.newmark
    }

    #[inline(always)]
    fn choice(&self) -> &[Cell<M::S>] {
        self.numbers()
    }
}

impl<T: JointDynamics + ConstraintCorrection> JointDynamics for OnConstraints<T> {
    type Model = T::Model;

    #[inline(always)]
    fn corrects_steps(&self) -> bool {
        true
    }

    #[inline(always)]
    fn model(&self) -> &T::Model {
        self.0.model()
    }

    #[inline(always)]
    fn stabilisation(&self) -> Stabilisation<T::S> {
        self.0.stabilisation()
    }

    #[inline(always)]
    fn accelerate(
        &self,
        at: At<'_, T::S>,
        w: &mut [T::S],
        zd: &mut [T::S],
        vd: &mut [T::S],
        lambda: &mut [T::S],
    ) -> Result<(), EvalError> {
        self.0.accelerate(at, w, zd, vd, lambda)
    }

    #[inline(always)]
    fn correct(
        &self,
        at: At<'_, T::S>,
        w: &mut [T::S],
        z: &mut [T::S],
        v: &mut [T::S],
        along: impl Corrections<T::S>,
    ) -> Result<(), EvalError> {
        correct(&self.0, at, w, z, v, along)
    }
}
