//! Events: instants that the motion determines, and what happens there.
//!
//! Input: a model with event functions g_k(t, z, v, vd, λ, u), and what each event does. Output: a run whose steps end where a function
//! crosses zero, and what happened there. What holds:
//!
//! - A crossing is located on the method itself: the step is made again with another size until g(step(x_n, h)) is at its rounding
//!   (`locate`). A step costs at most `locate::MAX_STEPS` ordinary ones; nothing is allocated.
//! - An event changes velocities by M d + Φ_vᵀ Λ + Cᵀ μ = 0, Φd(v + d) = 0, c(v + d) = target(v): all constraints are kept (`jump`). It
//!   sets inputs, which keep their value until an event sets them again (`latches`).
//! - The run goes on from a consistent state, and at the same nodes as without the event.
//!
//! | module | what it is |
//! |---|---|
//! | `friction` | impulses of impacts with friction |
//! | `jump` | velocities after an event, and their derivatives |
//! | `latches` | inputs that events set |
//! | `locate` | where functions cross zero |
//! | `times` | derivatives of the times of events, and of the steps around them |
//! | `explicit`, `implicit` | runs |
//! | `differentiated`, `implicit_differentiated` | runs with their derivatives |
//! | `actions` | what events do on the way back, and the log of a run |
//! | `span` | whether added constraints hold for all parameters |
//! | `adjoint`, `implicit_adjoint` | adjoint runs |

mod friction;
pub(crate) mod jump;
pub(crate) mod latches;
pub(crate) mod locate;
pub(crate) mod times;

pub(crate) mod explicit;

pub(crate) mod actions;
mod span;
pub(crate) mod adjoint;

pub(crate) mod differentiated;
pub(crate) mod implicit;

pub(crate) mod implicit_adjoint;
pub(crate) mod implicit_differentiated;

use crate::constrained::ConstrainedDynamics;
use crate::error::EvalError;
use crate::formulation::{Index1, MatrixR, OnConstraints};
use crate::sensitivity::Places;
use crate::sensitivity::{JointDynamics, Stiff};
use crate::system::{At, ForwardDynamics, System};
pub use adjoint::AdjointEventIntegrator;
pub use differentiated::DifferentiableEventIntegrator;
pub use explicit::EventIntegrator;
pub use mbs_bundles::{Direction, EventEntry, EventTable, ImpactLaw};

/// A model with events.
pub trait Events: System {
    /// What is said of them beside their equations.
    fn event_table(&self) -> EventTable<'_>;

    /// Writes the functions of the events, their time derivatives, and what is positive while an event is armed.
    #[allow(clippy::too_many_arguments, reason = "those of the bundle")]
    fn event_functions(
        &self,
        at: At<'_, Self::S>,
        vd: &[Self::S],
        lambda: &[Self::S],
        w: &mut [Self::S],
        values: &mut [Self::S],
        rates: &mut [Self::S],
        armed: &mut [Self::S],
    ) -> Result<(), EvalError>;

    /// Writes second time derivatives of the functions of positions and time, and the sizes of the terms of functions, rates and second
    /// derivatives.
    fn event_sides(
        &self,
        at: At<'_, Self::S>,
        vd: &[Self::S],
        lambda: &[Self::S],
        w: &mut [Self::S],
        curvatures: &mut [Self::S],
        sizes: &mut [Self::S],
    ) -> Result<(), EvalError>;

    /// Writes what events do to velocities and to inputs: the mass matrix, constraints and conditions per velocity (all by columns),
    /// their rates, values of constraints, rates of conditions after the event, values of inputs.
    #[allow(clippy::too_many_arguments, reason = "those of the bundle")]
    fn event_jumps(
        &self,
        at: At<'_, Self::S>,
        w: &mut [Self::S],
        mass: &mut [Self::S],
        rows: &mut [Self::S],
        row_rates: &mut [Self::S],
        row_values: &mut [Self::S],
        directions: &mut [Self::S],
        condition_rates: &mut [Self::S],
        targets: &mut [Self::S],
        settings: &mut [Self::S],
    ) -> Result<(), EvalError>;
}

/// A model that knows the derivatives of its events.
pub trait EventDerivatives: Events {
    /// Places of the derivatives of functions: (event; z, v, vd, λ, t or parameter).
    fn event_places(&self) -> Places<'_>;

    /// Places of the derivatives of the equations of jumps: (equation; z, v, t or parameter).
    fn jump_places(&self) -> Places<'_>;

    /// Writes the derivatives of the functions.
    fn event_function_derivatives(
        &self,
        at: At<'_, Self::S>,
        vd: &[Self::S],
        lambda: &[Self::S],
        w: &mut [Self::S],
        values: &mut [Self::S],
    ) -> Result<(), EvalError>;

    /// Writes the derivatives of M d + Φ_vᵀ Λ + Cᵀ μ, Φd(v + d), c(v + d) − target(v), Φ, values that events give to inputs, with d, Λ and μ held; `at.v` is v, `vd` is d.
    fn event_jump_derivatives(
        &self,
        at: At<'_, Self::S>,
        vd: &[Self::S],
        lambda: &[Self::S],
        mu: &[Self::S],
        w: &mut [Self::S],
        values: &mut [Self::S],
    ) -> Result<(), EvalError>;
}

/// What explicit integrators step, as something that has events: open trees, and mechanisms with constraints as [`Index1`] makes them,
/// also [`OnConstraints`].
pub trait WithEvents: System {
    /// The model.
    type Model: Events<S = Self::S>;

    /// The model.
    fn events(&self) -> &Self::Model;

    /// Writes zd, vd and the multipliers.
    fn accelerations(
        &self,
        at: At<'_, Self::S>,
        w: &mut [Self::S],
        zd: &mut [Self::S],
        vd: &mut [Self::S],
        lambda: &mut [Self::S],
    ) -> Result<(), EvalError>;
}

impl<M: ForwardDynamics + Events> WithEvents for M {
    type Model = M;

    fn events(&self) -> &M {
        self
    }

    fn accelerations(
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

impl<M: ConstrainedDynamics + Events> WithEvents for Index1<'_, M> {
    type Model = M;

    fn events(&self) -> &M {
        self.system
    }

    fn accelerations(
        &self,
        at: At<'_, M::S>,
        w: &mut [M::S],
        zd: &mut [M::S],
        vd: &mut [M::S],
        lambda: &mut [M::S],
    ) -> Result<(), EvalError> {
        self.multipliers(at, w, zd, vd, lambda)
    }
}

impl<M: ConstrainedDynamics + Events> WithEvents for MatrixR<'_, M> {
    type Model = M;

    fn events(&self) -> &M {
        self.index1.system
    }

    fn accelerations(
        &self,
        at: At<'_, M::S>,
        w: &mut [M::S],
        zd: &mut [M::S],
        vd: &mut [M::S],
        lambda: &mut [M::S],
    ) -> Result<(), EvalError> {
        self.index1.multipliers(at, w, zd, vd, lambda)
    }
}

impl<T: WithEvents> WithEvents for OnConstraints<T> {
    type Model = T::Model;

    fn events(&self) -> &T::Model {
        self.0.events()
    }

    fn accelerations(
        &self,
        at: At<'_, T::S>,
        w: &mut [T::S],
        zd: &mut [T::S],
        vd: &mut [T::S],
        lambda: &mut [T::S],
    ) -> Result<(), EvalError> {
        self.0.accelerations(at, w, zd, vd, lambda)
    }
}

impl<D: JointDynamics + WithEvents> WithEvents for Stiff<'_, D> {
    type Model = <D as WithEvents>::Model;

    fn events(&self) -> &Self::Model {
        self.0.events()
    }

    fn accelerations(
        &self,
        at: At<'_, D::S>,
        w: &mut [D::S],
        zd: &mut [D::S],
        vd: &mut [D::S],
        lambda: &mut [D::S],
    ) -> Result<(), EvalError> {
        self.0.accelerations(at, w, zd, vd, lambda)
    }
}

/// An event that happened.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Occurrence<'a, S> {
    /// Its place in the table.
    pub event: usize,
    /// When.
    pub t: S,
    /// Impulses of its conditions on velocities, along their own directions: what acts on the mechanism is −Cᵀ μ.
    pub impulses: &'a [S],
    /// Impulses of the constraints, in joint form: Φ_vᵀ Λ acts against the mechanism. Empty if velocities do not jump.
    pub row_impulses: &'a [S],
    /// Derivatives of its time by the parameters; none in a run without derivatives.
    pub t_rho: &'a [S],
    /// Steps that were made to find it, the one that ends in it among them.
    pub steps: usize,
}

/// What an observer of a run with events sees, in the order of time: at an event the node before it, the event, the node after it.
#[derive(Clone, Copy, Debug)]
pub enum Sight<'a, N, S> {
    /// A node; whether it is one of the run's own, which it would have without events.
    Node(N, bool),
    /// An event.
    Event(Occurrence<'a, S>),
}
