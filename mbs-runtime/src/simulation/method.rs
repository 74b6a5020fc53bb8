//! The methods of a model file as a simulation runs them.
//!
//! | type | method | state |
//! |---|---|---|
//! | [`Ali3p`] | augmented Lagrangian of index 3 with projections; of an open tree, its implicit integrator alone | [`State`] |
//! | [`Stabilised`] | index 1 or penalty, with an implicit integrator | [`State`] |
//! | [`Tree`] | an explicit integrator, of an open tree | y = \[z, v\] |
//! | [`Projected`] | an explicit integrator on index 1 or penalty; each step ends on the constraints | y = \[z, v\] |
//!
//! Every method starts from the model's own guesses of positions *and* velocities, and knows accelerations and multipliers at every node.

use super::Settings;
use super::clock::{Clock, Target};
use crate::constrained::{Constrained, ConstrainedDynamics, ConstraintCorrection, Stabilisation};
use crate::error::{EvalError, StepError};
use crate::euler_parameters::{accelerations, coordinate_accelerations, velocities};
use crate::formulation::compliance::least_part;
use crate::formulation::{Ali3p, Assembly, ImplicitIndex1, ImplicitStep, Index1, OnConstraints, State};
use crate::inputs::Inputs;
use crate::integrator::{Accepted, Adaptive, FixedStep, Rk4, Statistics, StepStatistics};
use crate::linear::copy;
use crate::pieces::Pieces;
use crate::scalar::Scalar;
use crate::system::{At, Dims, ForwardDynamics, Start, System};

/// α times the smallest row scale where no penalty is given: accelerations answer a violation up to one part in as many. In single
/// precision less: what rounding allows.
const STIFFNESS: f64 = 1e7;
/// Frequency times step with which violations are damped where steps do not end on the constraints: fast against the motion, and
/// slow enough for the integrator to follow.
const DAMPED_PER_STEP: f64 = 0.1;

/// How index 1 and penalty answer a violated constraint.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Enforcement {
    /// Accelerations satisfy the constraints exactly.
    Exact,
    /// By forces in proportion, with this penalty.
    Penalty(f64),
    /// By forces in proportion, with a penalty that is large against the inertia of every row.
    ScaledPenalty,
}

impl Enforcement {
    /// The penalty, if there is one; `scale` is that of the rows at the start, [`State::scale`].
    pub fn penalty<S: Scalar>(self, scale: &[S]) -> Option<f64> {
        match self {
            Self::Exact => None,
            Self::Penalty(penalty) => Some(penalty),
            Self::ScaledPenalty => {
                let scale = scale.iter().map(|scale| scale.real()).filter(|scale| *scale > 0.0);
                let least = scale.fold(f64::INFINITY, f64::min);
                let stiffness = STIFFNESS.min(1.0 / least_part::<S>());
                Some(stiffness / if least.is_finite() { least } else { 1.0 })
            }
        }
    }
}

/// The frequency with which implicit steps of this size damp violations, critically, rad/s.
pub fn damping_frequency(step: f64) -> f64 {
    DAMPED_PER_STEP / step
}

/// What is known at a node.
#[derive(Debug)]
pub struct Node<'a, S> {
    /// Coordinates, their rates and accelerations.
    pub z: &'a mut [S],
    /// Rates of coordinates.
    pub zd: &'a mut [S],
    /// Accelerations of coordinates.
    pub zdd: &'a mut [S],
    /// Velocities.
    pub v: &'a mut [S],
    /// Accelerations.
    pub vd: &'a mut [S],
    /// Multipliers of holonomic and nonholonomic rows.
    pub lambda: &'a mut [S],
    /// Inputs with which the next step begins.
    pub u: &'a [S],
}

/// A method of a model file.
pub trait Method<M: System>: Copy {
    /// Writes the consistent start of the model, and settles what depends on it. After an error the state is meaningless.
    fn start<I: Inputs<M::S>>(
        &mut self,
        model: &M,
        inputs: &mut I,
        settings: &Settings,
        state: &mut [M::S],
        scratch: &mut [M::S],
    ) -> Result<(), StepError>;

    /// Takes the state one step further. After an error it is as before.
    #[allow(clippy::too_many_arguments, reason = "what a step reads and writes")]
    fn step<I: Inputs<M::S>>(
        &self,
        model: &M,
        inputs: &mut I,
        clock: &mut Clock,
        target: &Target,
        state: &mut [M::S],
        scratch: &mut [M::S],
        statistics: &mut Statistics,
    ) -> Result<(), StepError>;

    /// Writes what is known at time `t`, where the state is.
    fn observe(
        &self,
        model: &M,
        t: M::S,
        state: &mut [M::S],
        scratch: &mut [M::S],
        node: Node<'_, M::S>,
    ) -> Result<(), EvalError>;
}

pub(super) const fn larger(a: usize, b: usize) -> usize {
    if a > b { a } else { b }
}

/// The memory of implicit methods.
#[derive(Clone, Copy, Debug)]
pub struct ImplicitMemory;

impl ImplicitMemory {
    /// Length of the state.
    pub const fn state_len(dims: &Dims) -> usize {
        State::<f64>::len(dims)
    }

    /// Length of the scratch.
    pub const fn scratch_len(dims: &Dims) -> usize {
        larger(Assembly::scratch_len(dims), ImplicitIndex1::scratch_len(dims))
    }
}

/// The memory of explicit methods.
#[derive(Clone, Copy, Debug)]
pub struct ExplicitMemory;

impl ExplicitMemory {
    /// Length of the state.
    pub const fn state_len(dims: &Dims) -> usize {
        dims.state()
    }

    /// Length of the scratch of an open tree.
    pub const fn tree_scratch_len(dims: &Dims) -> usize {
        larger(Rk4::scratch_len(dims), Adaptive::scratch_len(dims))
    }

    /// Length of the scratch under constraints.
    pub const fn projected_scratch_len(dims: &Dims) -> usize {
        let start = State::<f64>::len(dims) + Assembly::scratch_len(dims);
        larger(start, Self::tree_scratch_len(&projected(dims)))
    }
}

/// Sizes of `OnConstraints` over `Index1`.
pub(super) const fn projected(dims: &Dims) -> Dims {
    let own = dims.nq + dims.nv + dims.n_holonomic + 2 * dims.joint_rows();
    Dims { workspace: dims.workspace + own, ..*dims }
}

/// One implicit step.
#[allow(clippy::too_many_arguments, reason = "what a step reads and writes")]
fn step_implicit<M: Constrained, I: Inputs<M::S>>(
    method: &impl ImplicitStep,
    model: &M,
    inputs: &mut I,
    clock: &mut Clock,
    target: &Target,
    state: &mut [M::S],
    scratch: &mut [M::S],
    statistics: &mut Statistics,
) -> Result<(), StepError> {
    let (h, next) = clock.next(target)?;
    let step = method.step(model, inputs, state, M::S::from_f64(h), scratch)?;
    *State::of(&model.dims(), state)?.t = M::S::from_f64(next.now.t);
    *clock = next;
    statistics.add(next.now.t, h, &step);
    Ok(())
}

/// What an implicit state knows.
fn observe_implicit<M: System>(model: &M, state: &mut [M::S], node: Node<'_, M::S>) -> Result<(), EvalError> {
    let dims = model.dims();
    let found = state.len();
    let expected = State::<f64>::len(&dims);
    let wrong = |_| EvalError::Length { what: "state", expected, found };
    let state = State::of(&dims, state).map_err(wrong)?;
    copy(node.z, state.z);
    copy(node.zd, state.zd);
    copy(node.zdd, state.zdd);
    velocities(model, state.z, state.zd, node.v)?;
    accelerations(model, state.z, state.zd, state.zdd, node.vd)?;
    // Normalisation rows stand between the two kinds of others.
    let (holonomic, normalised) = (dims.n_holonomic, dims.n_normalisation);
    for (i, lambda) in node.lambda.iter_mut().enumerate() {
        let row = if i < holonomic { i } else { i + normalised };
        *lambda = state.lambda.get(row).copied().unwrap_or(M::S::from_f64(f64::NAN));
    }
    Ok(())
}

impl<M: Constrained + Start> Method<M> for Ali3p {
    fn start<I: Inputs<M::S>>(
        &mut self,
        model: &M,
        inputs: &mut I,
        settings: &Settings,
        state: &mut [M::S],
        scratch: &mut [M::S],
    ) -> Result<(), StepError> {
        Assembly::DEFAULT.begin(model, inputs, M::S::from_f64(settings.begin), state, scratch)?;
        Ok(())
    }

    fn step<I: Inputs<M::S>>(
        &self,
        model: &M,
        inputs: &mut I,
        clock: &mut Clock,
        target: &Target,
        state: &mut [M::S],
        scratch: &mut [M::S],
        statistics: &mut Statistics,
    ) -> Result<(), StepError> {
        step_implicit(self, model, inputs, clock, target, state, scratch, statistics)
    }

    fn observe(
        &self,
        model: &M,
        _: M::S,
        state: &mut [M::S],
        _: &mut [M::S],
        node: Node<'_, M::S>,
    ) -> Result<(), EvalError> {
        observe_implicit(model, state, node)
    }
}

/// Index 1 or penalty with an implicit integrator: violations are damped, critically.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stabilised {
    /// The steps; the start writes their stabilisation.
    pub method: ImplicitIndex1,
    /// How a violation is answered.
    pub enforcement: Enforcement,
}

impl Stabilised {
    /// The stabilisation for steps of this size: Φdd + 2ω Φd + ω² Φ = λ/α.
    pub(super) fn settle<S: Scalar>(&mut self, step: f64, scale: &[S]) {
        let frequency = damping_frequency(step);
        self.method.stabilisation = Stabilisation {
            rate: 2.0 * frequency,
            value: frequency * frequency,
            compliance: self.enforcement.penalty(scale).map_or(0.0, |penalty| 1.0 / penalty),
        };
    }
}

impl<M: Constrained + Start> Method<M> for Stabilised {
    fn start<I: Inputs<M::S>>(
        &mut self,
        model: &M,
        inputs: &mut I,
        settings: &Settings,
        state: &mut [M::S],
        scratch: &mut [M::S],
    ) -> Result<(), StepError> {
        Assembly::DEFAULT.begin(model, inputs, M::S::from_f64(settings.begin), state, scratch)?;
        self.settle(settings.step, State::of(&model.dims(), state)?.scale);
        Ok(())
    }

    fn step<I: Inputs<M::S>>(
        &self,
        model: &M,
        inputs: &mut I,
        clock: &mut Clock,
        target: &Target,
        state: &mut [M::S],
        scratch: &mut [M::S],
        statistics: &mut Statistics,
    ) -> Result<(), StepError> {
        step_implicit(&self.method, model, inputs, clock, target, state, scratch, statistics)
    }

    fn observe(
        &self,
        model: &M,
        _: M::S,
        state: &mut [M::S],
        _: &mut [M::S],
        node: Node<'_, M::S>,
    ) -> Result<(), EvalError> {
        observe_implicit(model, state, node)
    }
}

/// An explicit integrator of a model file.
pub trait Explicit: Copy {
    /// Takes `y` one step further. After an error `clock` and `y` are as before.
    #[allow(clippy::too_many_arguments, reason = "what a step reads and writes")]
    fn step<M: ForwardDynamics, I: Inputs<M::S>>(
        &self,
        system: &M,
        inputs: &mut I,
        clock: &mut Clock,
        target: &Target,
        y: &mut [M::S],
        scratch: &mut [M::S],
        statistics: &mut Statistics,
    ) -> Result<(), StepError>;
}

/// Evaluations of the forward dynamics in a step of the classical method.
const EVALUATIONS: usize = 4;

impl Explicit for Rk4 {
    fn step<M: ForwardDynamics, I: Inputs<M::S>>(
        &self,
        system: &M,
        inputs: &mut I,
        clock: &mut Clock,
        target: &Target,
        y: &mut [M::S],
        scratch: &mut [M::S],
        statistics: &mut Statistics,
    ) -> Result<(), StepError> {
        let (h, next) = clock.next(target)?;
        let mut t = M::S::from_f64(clock.now.t);
        FixedStep::step(self, system, inputs, &mut t, y, M::S::from_f64(h), scratch)?;
        *clock = next;
        let step = StepStatistics { evaluations: EVALUATIONS, ..StepStatistics::default() };
        statistics.add(next.now.t, h, &step);
        Ok(())
    }
}

impl Explicit for Adaptive {
    fn step<M: ForwardDynamics, I: Inputs<M::S>>(
        &self,
        system: &M,
        inputs: &mut I,
        clock: &mut Clock,
        target: &Target,
        y: &mut [M::S],
        scratch: &mut [M::S],
        statistics: &mut Statistics,
    ) -> Result<(), StepError> {
        let limit = M::S::from_f64(target.time);
        let mut now = clock.now.at(M::S::from_f64(clock.now.t));
        let step = Adaptive::step(self, system, inputs, &mut now, y, limit, scratch)?;
        let Accepted { h, rejected, evaluations, .. } = step;
        // The sum of the steps in double precision; the time that is met is met exactly.
        let t = if now.t == limit { target.time } else { clock.now.t + h.real() };
        clock.now = now.at(t);
        let step = StepStatistics { rejected, evaluations, ..StepStatistics::default() };
        statistics.add(t, h.real(), &step);
        Ok(())
    }
}

/// The two parts of y.
fn parts<'a, S>(dims: &Dims, y: &'a mut [S]) -> Result<(&'a mut [S], &'a mut [S]), EvalError> {
    let (expected, found) = (dims.nq + dims.nv, y.len());
    let wrong = EvalError::Length { what: "y", expected, found };
    let (z, v) = y.split_at_mut_checked(dims.nq).ok_or(wrong)?;
    if v.len() == dims.nv { Ok((z, v)) } else { Err(wrong) }
}

/// An explicit integrator of an open tree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tree<T>(pub T);

impl<M: ForwardDynamics + Start, T: Explicit> Method<M> for Tree<T> {
    fn start<I: Inputs<M::S>>(
        &mut self,
        model: &M,
        _: &mut I,
        settings: &Settings,
        state: &mut [M::S],
        _: &mut [M::S],
    ) -> Result<(), StepError> {
        let failed = |error: EvalError| error.in_step(settings.begin, 0.0);
        let (z, v) = parts(&model.dims(), state).map_err(failed)?;
        model.start(z, v, &mut []).map_err(failed)
    }

    fn step<I: Inputs<M::S>>(
        &self,
        model: &M,
        inputs: &mut I,
        clock: &mut Clock,
        target: &Target,
        state: &mut [M::S],
        scratch: &mut [M::S],
        statistics: &mut Statistics,
    ) -> Result<(), StepError> {
        self.0.step(model, inputs, clock, target, state, scratch, statistics)
    }

    fn observe(
        &self,
        model: &M,
        t: M::S,
        state: &mut [M::S],
        scratch: &mut [M::S],
        node: Node<'_, M::S>,
    ) -> Result<(), EvalError> {
        let (z, v) = parts(&model.dims(), state)?;
        model.forward_dynamics(At { t, z, v, x: &[], u: node.u }, scratch, node.zd, node.vd, &mut [])?;
        coordinate_accelerations(model, z, v, node.vd, node.zdd)?;
        copy(node.z, z);
        copy(node.v, v);
        Ok(())
    }
}

/// An explicit integrator on index 1 or penalty; each step ends on the constraints.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Projected<T> {
    /// The integrator.
    pub integrator: T,
    /// How accelerations answer a violation within a step. The start makes [`Enforcement::ScaledPenalty`] a number.
    pub enforcement: Enforcement,
}

impl<T> Projected<T> {
    /// The dynamics that the integrator sees.
    pub(super) fn dynamics<'a, M: ConstrainedDynamics>(&self, model: &'a M) -> Index1<'a, M> {
        match self.enforcement {
            Enforcement::Penalty(penalty) => Index1::penalty(model, penalty, 0.0, 0.0),
            Enforcement::Exact | Enforcement::ScaledPenalty => Index1::new(model),
        }
    }

    /// Makes the penalty a number.
    pub(super) fn settle<S: Scalar>(&mut self, scale: &[S]) {
        self.enforcement = self.enforcement.penalty(scale).map_or(Enforcement::Exact, Enforcement::Penalty);
    }
}

impl<M, T: Explicit> Method<M> for Projected<T>
where
    M: Constrained + ConstrainedDynamics + ConstraintCorrection + Start,
{
    fn start<I: Inputs<M::S>>(
        &mut self,
        model: &M,
        inputs: &mut I,
        settings: &Settings,
        state: &mut [M::S],
        scratch: &mut [M::S],
    ) -> Result<(), StepError> {
        let dims = model.dims();
        let mut pieces = Pieces::of(scratch, ExplicitMemory::projected_scratch_len(&dims));
        let assembled = pieces.next(State::<f64>::len(&dims))?;
        Assembly::DEFAULT.begin(model, inputs, M::S::from_f64(settings.begin), assembled, pieces.rest())?;
        let assembled = State::of(&dims, assembled)?;
        self.settle(assembled.scale);
        assembled.joint_form(model, state)
    }

    fn step<I: Inputs<M::S>>(
        &self,
        model: &M,
        inputs: &mut I,
        clock: &mut Clock,
        target: &Target,
        state: &mut [M::S],
        scratch: &mut [M::S],
        statistics: &mut Statistics,
    ) -> Result<(), StepError> {
        let system = OnConstraints(self.dynamics(model));
        self.integrator.step(&system, inputs, clock, target, state, scratch, statistics)
    }

    fn observe(
        &self,
        model: &M,
        t: M::S,
        state: &mut [M::S],
        scratch: &mut [M::S],
        node: Node<'_, M::S>,
    ) -> Result<(), EvalError> {
        let (z, v) = parts(&model.dims(), state)?;
        let at = At { t, z, v, x: &[], u: node.u };
        self.dynamics(model).multipliers(at, scratch, node.zd, node.vd, node.lambda)?;
        coordinate_accelerations(model, z, v, node.vd, node.zdd)?;
        copy(node.z, z);
        copy(node.v, v);
        Ok(())
    }
}
