//! Systems behind one type, so that the runtime is compiled once for all of them and not once for each.

use mbs_runtime::sensitivity::Places;
use mbs_runtime::{
    At, Constrained, ConstrainedDynamics, ConstraintCorrection, Dims, EvalError, ForwardDynamics, Hold,
    Impulses, JointObjectiveDerivatives, JointPlaces, JointSensitivities, Motion, Names,
    ObjectiveDerivatives, ParameterPlaces, Pattern, Quantity, Scalar, Sensitivities, Stabilisation, Start,
    StartDerivatives, System, Weights,
};

use super::lagrangian::{Instant, Lagrangian, Mechanism};

/// All that an implicit run with derivatives asks of a system, and its objectives for plain runs.
pub(crate) trait Whole:
    Constrained + Sensitivities + ObjectiveDerivatives + StartDerivatives + Names
{
    /// Integrands and terminal terms.
    fn objectives(&self, at: Motion<'_, Self::S>, lambda: &[Self::S]) -> [Vec<Self::S>; 2];
}

/// What an explicit one asks besides.
pub(crate) trait WholeJoint:
    Whole + ConstrainedDynamics + ConstraintCorrection + JointSensitivities + JointObjectiveDerivatives
{
    /// Integrands and terminal terms.
    fn objectives_of_joints(
        &self,
        at: At<'_, Self::S>,
        vd: &[Self::S],
        lambda: &[Self::S],
    ) -> [Vec<Self::S>; 2];
    /// Forward dynamics of an open tree.
    fn tree_dynamics(
        &self,
        at: At<'_, Self::S>,
        w: &mut [Self::S],
        zd: &mut [Self::S],
        vd: &mut [Self::S],
    ) -> Result<(), EvalError>;
}

impl<T: Mechanism, S: Scalar> Whole for Lagrangian<T, S> {
    fn objectives(&self, at: Motion<'_, S>, lambda: &[S]) -> [Vec<S>; 2] {
        let instant = Instant { t: at.t, z: at.z, zd: at.zd, zdd: at.zdd, lambda, u: at.u };
        self.objectives_of(&self.rho, instant)
    }
}

impl<T: Mechanism, S: Scalar> WholeJoint for Lagrangian<T, S> {
    fn objectives_of_joints(&self, at: At<'_, S>, vd: &[S], lambda: &[S]) -> [Vec<S>; 2] {
        self.joint_objectives(at, vd, lambda)
    }
    fn tree_dynamics(&self, at: At<'_, S>, w: &mut [S], zd: &mut [S], vd: &mut [S]) -> Result<(), EvalError> {
        self.forward_dynamics(at, w, zd, vd, &mut [])
    }
}

/// Some system.
pub(crate) struct Erased<'a, W: ?Sized>(pub(crate) &'a W);

/// Some system for implicit runs.
pub(crate) type Any<'a, S> = Erased<'a, dyn Whole<S = S> + 'a>;

/// Some system for explicit runs.
pub(crate) type AnyJoint<'a, S> = Erased<'a, dyn WholeJoint<S = S> + 'a>;

pub(crate) fn any<'a, S: Scalar>(system: &'a (dyn Whole<S = S> + 'a)) -> Any<'a, S> {
    Erased(system)
}

pub(crate) fn any_joint<'a, S: Scalar>(system: &'a (dyn WholeJoint<S = S> + 'a)) -> AnyJoint<'a, S> {
    Erased(system)
}

impl<S: Scalar, W: Whole<S = S> + ?Sized> System for Erased<'_, W> {
    type S = W::S;
    fn dims(&self) -> Dims {
        self.0.dims()
    }
    fn euler_parameters(&self) -> &[usize] {
        self.0.euler_parameters()
    }
    fn holds(&self) -> &[Hold] {
        self.0.holds()
    }
}

impl<S: Scalar, W: Whole<S = S> + ?Sized> Names for Erased<'_, W> {
    fn name(&self, quantity: Quantity, index: usize) -> Option<&str> {
        self.0.name(quantity, index)
    }
}

impl<S: Scalar, W: Whole<S = S> + ?Sized> Start for Erased<'_, W> {
    fn start(&self, z: &mut [S], v: &mut [S], x: &mut [S]) -> Result<(), EvalError> {
        self.0.start(z, v, x)
    }
}

impl<S: Scalar, W: Whole<S = S> + ?Sized> StartDerivatives for Erased<'_, W> {
    fn start_places(&self) -> [Places<'_>; 2] {
        self.0.start_places()
    }
    fn start_derivatives(&self, w: &mut [S], values: &mut [S]) -> Result<(), EvalError> {
        self.0.start_derivatives(w, values)
    }
}

impl<S: Scalar, W: Whole<S = S> + ?Sized> Constrained for Erased<'_, W> {
    fn pattern(&self) -> Pattern<'_> {
        self.0.pattern()
    }
    fn held(&self) -> &[bool] {
        self.0.held()
    }
    fn residual(
        &self,
        at: Motion<'_, S>,
        lambda: &[S],
        w: &mut [S],
        r: &mut [S],
        phi: &mut [S],
    ) -> Result<(), EvalError> {
        self.0.residual(at, lambda, w, r, phi)
    }
    fn newton(
        &self,
        at: Motion<'_, S>,
        lambda: &[S],
        weights: Weights<S>,
        w: &mut [S],
        r: &mut [S],
        phi: &mut [S],
        matrix: &mut [S],
    ) -> Result<(), EvalError> {
        self.0.newton(at, lambda, weights, w, r, phi, matrix)
    }
    fn projection(&self, t: S, z: &[S], u: &[S], w: &mut [S], matrix: &mut [S]) -> Result<(), EvalError> {
        self.0.projection(t, z, u, w, matrix)
    }
    fn constraint_rates(&self, at: Motion<'_, S>, w: &mut [S], phid: &mut [S]) -> Result<(), EvalError> {
        self.0.constraint_rates(at, w, phid)
    }
    fn constraint_accelerations(
        &self,
        at: Motion<'_, S>,
        w: &mut [S],
        phidd: &mut [S],
    ) -> Result<(), EvalError> {
        self.0.constraint_accelerations(at, w, phidd)
    }
    fn factor(&self, matrix: &[S], w: &mut [S], factors: &mut [S]) -> Result<(), EvalError> {
        self.0.factor(matrix, w, factors)
    }
    fn solve(&self, factors: &[S], w: &mut [S], x: &mut [S]) -> Result<(), EvalError> {
        self.0.solve(factors, w, x)
    }
    fn solve_transposed(&self, factors: &[S], w: &mut [S], x: &mut [S]) -> Result<(), EvalError> {
        self.0.solve_transposed(factors, w, x)
    }
}

impl<S: Scalar, W: Whole<S = S> + ?Sized> Sensitivities for Erased<'_, W> {
    fn parameter_places(&self) -> ParameterPlaces<'_> {
        self.0.parameter_places()
    }
    fn linearise(
        &self,
        at: Motion<'_, S>,
        lambda: &[S],
        w: &mut [S],
        values: &mut [S],
    ) -> Result<(), EvalError> {
        self.0.linearise(at, lambda, w, values)
    }
    fn linearise_projections(
        &self,
        at: Motion<'_, S>,
        impulses: Impulses<'_, S>,
        w: &mut [S],
        values: &mut [S],
    ) -> Result<(), EvalError> {
        self.0.linearise_projections(at, impulses, w, values)
    }
}

impl<S: Scalar, W: Whole<S = S> + ?Sized> ObjectiveDerivatives for Erased<'_, W> {
    fn objective_places(&self) -> [Places<'_>; 2] {
        self.0.objective_places()
    }
    fn integrand_derivatives(
        &self,
        at: Motion<'_, S>,
        lambda: &[S],
        w: &mut [S],
        values: &mut [S],
    ) -> Result<(), EvalError> {
        self.0.integrand_derivatives(at, lambda, w, values)
    }
    fn terminal_derivatives(
        &self,
        at: Motion<'_, S>,
        lambda: &[S],
        w: &mut [S],
        values: &mut [S],
    ) -> Result<(), EvalError> {
        self.0.terminal_derivatives(at, lambda, w, values)
    }
}

impl<S: Scalar, W: WholeJoint<S = S> + ?Sized> ForwardDynamics for Erased<'_, W> {
    fn forward_dynamics(
        &self,
        at: At<'_, S>,
        w: &mut [S],
        zd: &mut [S],
        vd: &mut [S],
        _: &mut [S],
    ) -> Result<(), EvalError> {
        self.0.tree_dynamics(at, w, zd, vd)
    }
}

impl<S: Scalar, W: WholeJoint<S = S> + ?Sized> ConstrainedDynamics for Erased<'_, W> {
    fn constrained_dynamics(
        &self,
        at: At<'_, S>,
        stabilisation: Stabilisation<S>,
        w: &mut [S],
        zd: &mut [S],
        vd: &mut [S],
        xd: &mut [S],
        lambda: &mut [S],
    ) -> Result<(), EvalError> {
        self.0.constrained_dynamics(at, stabilisation, w, zd, vd, xd, lambda)
    }
}

impl<S: Scalar, W: WholeJoint<S = S> + ?Sized> ConstraintCorrection for Erased<'_, W> {
    fn constraint_correction(
        &self,
        at: At<'_, S>,
        w: &mut [S],
        dz: &mut [S],
        dv: &mut [S],
        phi: &mut [S],
        phid: &mut [S],
    ) -> Result<(), EvalError> {
        self.0.constraint_correction(at, w, dz, dv, phi, phid)
    }
}

impl<S: Scalar, W: WholeJoint<S = S> + ?Sized> JointSensitivities for Erased<'_, W> {
    fn joint_places(&self) -> JointPlaces<'_> {
        self.0.joint_places()
    }
    fn joint_linearise(
        &self,
        at: At<'_, S>,
        vd: &[S],
        lambda: &[S],
        stabilisation: Stabilisation<S>,
        w: &mut [S],
        values: &mut [S],
        factors: &mut [S],
    ) -> Result<(), EvalError> {
        self.0.joint_linearise(at, vd, lambda, stabilisation, w, values, factors)
    }
    fn joint_solve(&self, factors: &[S], w: &mut [S], x: &mut [S]) -> Result<(), EvalError> {
        self.0.joint_solve(factors, w, x)
    }
}

impl<S: Scalar, W: WholeJoint<S = S> + ?Sized> JointObjectiveDerivatives for Erased<'_, W> {
    fn joint_objective_places(&self) -> [Places<'_>; 2] {
        self.0.joint_objective_places()
    }
    fn joint_integrand_derivatives(
        &self,
        at: At<'_, S>,
        vd: &[S],
        lambda: &[S],
        w: &mut [S],
        values: &mut [S],
    ) -> Result<(), EvalError> {
        self.0.joint_integrand_derivatives(at, vd, lambda, w, values)
    }
    fn joint_terminal_derivatives(
        &self,
        at: At<'_, S>,
        vd: &[S],
        lambda: &[S],
        w: &mut [S],
        values: &mut [S],
    ) -> Result<(), EvalError> {
        self.0.joint_terminal_derivatives(at, vd, lambda, w, values)
    }
}

/// A consistent state at `t` from the system's own guesses, with some rows switched off.
pub(crate) fn model_start<S: Scalar, W: Whole<S = S> + ?Sized>(
    system: &Erased<'_, W>,
    t: f64,
    inputs: &mut impl mbs_runtime::Inputs<S>,
    off: &[usize],
) -> Vec<S> {
    use mbs_runtime::{Assembly, State, StateDerivatives};
    let dims = system.dims();
    let mut state = vec![S::ZERO; State::<S>::len(&dims)];
    let mut derivatives = vec![S::ZERO; StateDerivatives::<S>::len(&dims)];
    let mut scratch = vec![S::ZERO; Assembly::differentiated_scratch_len(&dims)];
    let t = S::from_f64(t);
    Assembly::guess_differentiated(system, t, &mut state, &mut derivatives, &mut scratch).unwrap();
    for row in off {
        State::of(&dims, &mut state).unwrap().active[*row] = S::ZERO;
    }
    // Twice: what damping leaves of imaginary parts the first time is gone the second time.
    for _ in 0..2 {
        Assembly::DEFAULT.start(system, inputs, &mut state, &mut scratch).unwrap();
    }
    state
}
