//! Systems behind one type, so that the runtime is compiled once for all of them and not once for each.

use mbs_bundles::{argument_type, for_each_trait};
use mbs_runtime::sensitivity::Places;
use mbs_runtime::*;

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
    Whole
    + ConstrainedDynamics
    + ConstraintCorrection
    + ConstraintRows
    + JointSensitivities
    + JointObjectiveDerivatives
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

impl<W: System + ?Sized> System for Erased<'_, W> {
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

impl<W: Names + ?Sized> Names for Erased<'_, W> {
    fn name(&self, quantity: Quantity, index: usize) -> Option<&str> {
        self.0.name(quantity, index)
    }
}

impl<W: Start + ?Sized> Start for Erased<'_, W> {
    fn start(&self, z: &mut [W::S], v: &mut [W::S], x: &mut [W::S]) -> Result<(), EvalError> {
        self.0.start(z, v, x)
    }
}

/// A trait's bundles, each forwarded. Forward dynamics cannot be behind `dyn`.
macro_rules! forward {
    (ForwardDynamics $($rest:tt)*) => {};
    ($Trait:ident {
        places { $($places:ident: $Places:ty),* }
        $($Kind:ident = $method:ident($($argument:ident: $Argument:ident),*) -> $form:tt $results:tt;)*
    }) => {
        impl<W: $Trait + ?Sized> $Trait for Erased<'_, W> {
            $(fn $places(&self) -> $Places {
                self.0.$places()
            })*
            $(method! { $method [$($argument: $Argument),*] $form $results })*
        }
    };
}

macro_rules! method {
    ($method:ident $arguments:tt ($name:ident: $Struct:ident) $results:tt) => {
        method! { @ $method $arguments [$name: $Struct<'_, W::S>] }
    };
    ($method:ident $arguments:tt array($result:ident: [$len:literal])) => {
        method! { @ $method $arguments [$result: &mut [W::S; $len]] }
    };
    ($method:ident $arguments:tt $form:ident($($result:ident: $shape:tt),*)) => {
        method! { @ $method $arguments [$($result: &mut [W::S]),*] }
    };
    (@ $method:ident [$($argument:ident: $Argument:ident),*] [$($written:ident: $Written:ty),*]) => {
        fn $method(
            &self,
            $($argument: argument_type!($Argument, W::S),)*
            w: &mut [W::S],
            $($written: $Written),*
        ) -> Result<(), EvalError> {
            self.0.$method($($argument,)* w, $($written),*)
        }
    };
}

macro_rules! forward_all {
    ($(trait $Trait:ident $bundles:tt)*) => { $(forward! { $Trait $bundles })* };
}

for_each_trait!(forward_all);

impl<W: WholeJoint + ?Sized> ForwardDynamics for Erased<'_, W> {
    fn forward_dynamics(
        &self,
        at: At<'_, W::S>,
        w: &mut [W::S],
        zd: &mut [W::S],
        vd: &mut [W::S],
        _: &mut [W::S],
    ) -> Result<(), EvalError> {
        self.0.tree_dynamics(at, w, zd, vd)
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
