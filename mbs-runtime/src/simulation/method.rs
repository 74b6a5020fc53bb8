//! The methods of a model file as a simulation runs them.
//!
//! | type | method | state |
//! |---|---|---|
//! | [`Ali3p`] | augmented Lagrangian of index 3 with projections; of an open tree, its implicit integrator alone | [`State`] |
//! | [`Stabilised`] | index 1 or penalty, with an implicit integrator | [`State`] |
//! | [`Tree`] | an explicit integrator, of an open tree | y = \[z, v\] |
//! | [`Projected`] | an explicit integrator on index 1 or penalty; each step ends on the constraints | y = \[z, v\] |
//! | [`StiffTree`], [`StiffProjected`], [`StiffIndependent`](super::StiffIndependent) | the same with an implicit Runge–Kutta method, of models that know their derivatives in joint form | y = \[z, v\] |
//! | [`Independent`](super::Independent) | an explicit integrator in independent coordinates | y and the choice of them |
//!
//! Every method starts from the model's own guesses of positions *and* velocities, and knows accelerations and multipliers at every node.
//! [`ImplicitMethod`] says what the first two differ in, [`Explicit`] what the integrators of the others do.

use super::Settings;
use super::clock::{Clock, Target};
use crate::constrained::{Constrained, ConstrainedDynamics, ConstraintCorrection, Stabilisation};
use crate::error::{EvalError, StepError};
use crate::euler_parameters::{accelerations, coordinate_accelerations, velocities};
use crate::formulation::compliance::least_part;
use crate::formulation::matrix_r::{self, choice_len};
use crate::formulation::{Ali3p, Assembly, ImplicitIndex1, ImplicitStep, Index1, OnConstraints, State};
use crate::inputs::Inputs;
use crate::integrator::{
    Accepted, Adaptive, Controlled, FixedStep, Implicit, Rk4, RungeKutta, Statistics, StepStatistics,
    Trapezoidal, carried_len, field_len,
};
use crate::linear::copy;
use crate::pieces::{Pieces, cut_mut};
use crate::scalar::Scalar;
use crate::sensitivity::{JointSensitivities, Stiff, stiff};
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

/// What a method works on.
#[derive(Debug)]
pub struct Work<'a, M: System, I> {
    /// The model.
    pub model: &'a M,
    /// Its inputs.
    pub inputs: &'a mut I,
    /// The state of the method.
    pub state: &'a mut [M::S],
    /// Its scratch.
    pub scratch: &'a mut [M::S],
}

impl<'a, M: System, I> Work<'a, M, I> {
    /// With the first `len` values of the state.
    pub(super) fn with_state(self, len: usize) -> Result<Self, StepError> {
        let state = Pieces::named("state", self.state, len).next(len)?;
        Ok(Self { state, ..self })
    }
}

/// A method of a model file.
pub trait Method<M: System>: Copy {
    /// What may happen in a step: nothing, or events.
    type Happened: Copy;

    /// Length of its state.
    fn state_len(&self, dims: &Dims) -> usize;

    /// Writes the consistent start of the model, and fixes the numbers of the method that depend on it. After an error the state is
    /// meaningless.
    fn start<I: Inputs<M::S>>(&mut self, work: Work<'_, M, I>, settings: &Settings) -> Result<(), StepError>;

    /// Takes the state one step further. After an error it is as before.
    fn step<I: Inputs<M::S>>(
        &self,
        work: Work<'_, M, I>,
        clock: &mut Clock,
        target: &Target,
        statistics: &mut Statistics,
    ) -> Result<(), StepError>;

    /// Writes what is known at time `t`, where the state is. [`Method::interpolate`] still works afterwards.
    fn observe(
        &self,
        model: &M,
        t: M::S,
        state: &mut [M::S],
        scratch: &mut [M::S],
        node: Node<'_, M::S>,
    ) -> Result<(), EvalError>;

    /// Writes inputs that events have set over others.
    fn latch(&self, _model: &M, _state: &[M::S], _u: &mut [M::S]) {}

    /// What happened in the last step.
    fn happened(&self, model: &M, state: &[M::S]) -> Self::Happened;

    /// Whether states between the ends of a step are known.
    fn is_dense(&self) -> bool {
        false
    }

    /// Writes the state at t + θh, in the last step.
    fn interpolate(
        &self,
        _model: &M,
        _step: &Accepted<M::S>,
        theta: M::S,
        _scratch: &mut [M::S],
        _state: &mut [M::S],
    ) -> Result<(), StepError> {
        let what = "the method knows no states within its steps";
        Err(StepError::Setting { what, value: theta.real() })
    }
}

pub(super) const fn larger(a: usize, b: usize) -> usize {
    if a > b { a } else { b }
}

/// The largest of some lengths.
pub const fn largest(lens: &[usize]) -> usize {
    match lens {
        [] => 0,
        [first, others @ ..] => larger(*first, largest(others)),
    }
}

/// The memory of implicit methods.
#[derive(Clone, Copy, Debug)]
pub struct ImplicitMemory;

impl ImplicitMemory {
    /// Length of the state.
    #[inline(always)]
    pub const fn state_len(dims: &Dims) -> usize {
        State::<f64>::len(dims)
    }

    /// Length of the scratch.
    #[inline(always)]
    pub const fn scratch_len(dims: &Dims) -> usize {
        larger(Assembly::scratch_len(dims), ImplicitIndex1::scratch_len(dims))
    }
}

/// The memory of explicit methods. The last values of the scratch are a workspace, for [`Method::observe`].
#[derive(Clone, Copy, Debug)]
pub struct ExplicitMemory;

impl ExplicitMemory {
    /// Length of the state.
    #[inline(always)]
    pub const fn state_len(dims: &Dims) -> usize {
        dims.state()
    }

    /// Length of the scratch of an open tree.
    pub const fn tree_scratch_len<T: Explicit>(dims: &Dims) -> usize {
        T::MEMORY * dims.state() + field_len(dims) + dims.workspace
    }

    /// Length of the scratch under constraints.
    pub const fn projected_scratch_len<T: Explicit>(dims: &Dims) -> usize {
        let start = State::<f64>::len(dims) + Assembly::scratch_len(dims);
        larger(start, Self::tree_scratch_len::<T>(&projected(dims)))
    }

    /// Length of the scratch of an open tree, by an implicit Runge–Kutta method.
    pub const fn stiff_tree_scratch_len<T: Explicit>(dims: &Dims) -> usize {
        let stiff = &stiff(dims);
        // What a run carries is zero in most.
        T::MEMORY * stiff.stepped() + carried_len(stiff) + field_len(stiff) + dims.workspace
    }

    /// Length of the scratch under constraints, by an implicit Runge–Kutta method.
    pub const fn stiff_projected_scratch_len<T: Explicit>(dims: &Dims) -> usize {
        let dims = &projected(dims);
        larger(Self::projected_scratch_len::<T>(dims), Self::stiff_tree_scratch_len::<T>(dims))
    }
}

/// The memory of explicit methods in independent coordinates.
#[derive(Clone, Copy, Debug)]
pub struct IndependentMemory;

impl IndependentMemory {
    /// Length of the state: y, and the choice of independent coordinates.
    #[inline(always)]
    pub const fn state_len(dims: &Dims) -> usize {
        dims.state() + choice_len(dims)
    }

    /// Length of the scratch.
    pub const fn scratch_len<T: Explicit>(dims: &Dims) -> usize {
        let start = State::<f64>::len(dims) + Assembly::scratch_len(dims);
        larger(start, ExplicitMemory::tree_scratch_len::<T>(&in_independent(dims)))
    }

    /// The same by an implicit method.
    pub const fn stiff_scratch_len<T: Explicit>(dims: &Dims) -> usize {
        let run = ExplicitMemory::stiff_tree_scratch_len::<T>(&matrix_r::in_independent(dims, true));
        larger(Self::scratch_len::<T>(dims), run)
    }
}

/// The memory of implicit methods in independent coordinates.
#[derive(Clone, Copy, Debug)]
pub struct StiffIndependentMemory;

impl StiffIndependentMemory {
    /// Length of the state: y, what a method carries, and the choice of independent coordinates.
    #[inline(always)]
    pub const fn state_len(dims: &Dims) -> usize {
        IndependentMemory::state_len(dims) + Self::room(dims)
    }

    /// Length of the scratch.
    pub const fn stiff_scratch_len<T: Explicit>(dims: &Dims) -> usize {
        IndependentMemory::stiff_scratch_len::<T>(dims)
    }

    /// Room for what a method carries.
    pub(super) const fn room(dims: &Dims) -> usize {
        matrix_r::in_independent(dims, true).n_excess
    }
}

/// Sizes of an implicit Runge–Kutta method's system; a constant for generated models.
pub const fn in_stages(dims: &Dims) -> Dims {
    stiff(&projected(dims))
}

/// Sizes of an implicit method's system in independent coordinates; a constant for generated models.
pub const fn in_independent_stages(dims: &Dims) -> Dims {
    stiff(&matrix_r::in_independent(dims, true))
}

/// Sizes of a system in independent coordinates; a constant for generated models.
pub const fn in_independent(dims: &Dims) -> Dims {
    matrix_r::in_independent(dims, false)
}

/// Sizes of `OnConstraints` over `Index1`.
pub(super) const fn projected(dims: &Dims) -> Dims {
    let own = dims.nq + dims.nv + dims.n_holonomic + 2 * dims.joint_rows();
    Dims { workspace: dims.workspace + own, ..*dims }
}

/// An implicit method: the steps that it makes from an assembled start.
pub trait ImplicitMethod: Copy {
    /// The steps.
    type Steps: ImplicitStep;

    /// The steps.
    fn steps(&self) -> Self::Steps;

    /// Fixes the numbers that depend on the size of the steps and on the scale of the rows at the start.
    fn settle<S: Scalar>(&mut self, _step: f64, _scale: &[S]) {}
}

impl ImplicitMethod for Ali3p {
    type Steps = Self;

    fn steps(&self) -> Self {
        *self
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

impl ImplicitMethod for Stabilised {
    type Steps = ImplicitIndex1;

    fn steps(&self) -> ImplicitIndex1 {
        self.method
    }

    /// Φdd + 2ω Φd + ω² Φ = λ/α
    fn settle<S: Scalar>(&mut self, step: f64, scale: &[S]) {
        let frequency = damping_frequency(step);
        self.method.stabilisation = Stabilisation {
            rate: 2.0 * frequency,
            value: frequency * frequency,
            compliance: self.enforcement.penalty(scale).map_or(0.0, |penalty| 1.0 / penalty),
        };
    }
}

impl<M: Constrained + Start, T: ImplicitMethod> Method<M> for T {
    type Happened = ();

    fn happened(&self, _: &M, _: &[M::S]) {}

    fn state_len(&self, dims: &Dims) -> usize {
        ImplicitMemory::state_len(dims)
    }

    fn start<I: Inputs<M::S>>(&mut self, work: Work<'_, M, I>, settings: &Settings) -> Result<(), StepError> {
        let Work { model, inputs, state, scratch } = work;
        Assembly::DEFAULT.begin(model, inputs, M::S::from_f64(settings.begin), state, scratch)?;
        self.settle(settings.step, State::of(&model.dims(), state)?.scale);
        Ok(())
    }

    fn step<I: Inputs<M::S>>(
        &self,
        work: Work<'_, M, I>,
        clock: &mut Clock,
        target: &Target,
        statistics: &mut Statistics,
    ) -> Result<(), StepError> {
        let Work { model, inputs, state, scratch } = work;
        let (h, next) = clock.next(target)?;
        let step = self.steps().step(model, inputs, state, M::S::from_f64(h), scratch)?;
        *State::of(&model.dims(), state)?.t = M::S::from_f64(next.now.t);
        *clock = next;
        statistics.add(next.now.t, h, &step);
        Ok(())
    }

    fn observe(
        &self,
        model: &M,
        _: M::S,
        state: &mut [M::S],
        _: &mut [M::S],
        node: Node<'_, M::S>,
    ) -> Result<(), EvalError> {
        let dims = model.dims();
        let (expected, found) = (State::<f64>::len(&dims), state.len());
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
}

/// A Runge–Kutta method of a model file.
pub trait Explicit: Copy {
    /// Values of its memory for each of the state.
    const MEMORY: usize;

    /// Whether states between the ends of a step are known.
    const IS_DENSE: bool;

    /// The formulas by which it steps independent coordinates, if it is the trapezoidal rule or of its kin.
    fn newmark(&self) -> Implicit {
        Implicit::TRAPEZOIDAL
    }

    /// Takes the state y one step further. After an error `clock` and y are as before.
    fn step<M: ForwardDynamics, I: Inputs<M::S>>(
        &self,
        work: Work<'_, M, I>,
        clock: &mut Clock,
        target: &Target,
        statistics: &mut Statistics,
    ) -> Result<(), StepError>;

    /// The state at the part `theta` of the last step.
    fn dense<M: ForwardDynamics>(
        &self,
        _model: &M,
        _step: &Accepted<M::S>,
        theta: M::S,
        _scratch: &mut [M::S],
        _state: &mut [M::S],
    ) -> Result<(), StepError> {
        let what = "the method knows no states within its steps";
        Err(StepError::Setting { what, value: theta.real() })
    }
}

/// Steps of the size that the settings say.
macro_rules! fixed_steps {
    ($method:ty, $steps:ty, |$this:ident| $by:expr $(, $newmark:expr)?) => {
        impl Explicit for $method {
            const MEMORY: usize = <$steps as RungeKutta>::MEMORY;

            const IS_DENSE: bool = false;

            $(fn newmark(&self) -> Implicit {
                let $this = self;
                $newmark
            })?

            fn step<M: ForwardDynamics, I: Inputs<M::S>>(
                &self,
                work: Work<'_, M, I>,
                clock: &mut Clock,
                target: &Target,
                statistics: &mut Statistics,
            ) -> Result<(), StepError> {
                let Work { model, inputs, state, scratch } = work;
                let (h, next) = clock.next(target)?;
                let mut t = M::S::from_f64(clock.now.t);
                let $this = self;
                let evaluations =
                    $by.counted_step(model, inputs, &mut t, state, M::S::from_f64(h), scratch)?;
                *clock = next;
                let step = StepStatistics { evaluations, ..StepStatistics::default() };
                statistics.add(next.now.t, h, &step);
                Ok(())
            }
        }
    };
}
fixed_steps!(Rk4, Rk4, |method| method);
fixed_steps!(Newmark, Trapezoidal, |_method| Trapezoidal, _method.0);

/// The trapezoidal rule, Newmark's formulas or generalized-alpha in independent coordinates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Newmark(pub Implicit);

impl<T: Controlled> Explicit for Adaptive<T> {
    const MEMORY: usize = <T as RungeKutta>::MEMORY;

    const IS_DENSE: bool = true;

    fn step<M: ForwardDynamics, I: Inputs<M::S>>(
        &self,
        work: Work<'_, M, I>,
        clock: &mut Clock,
        target: &Target,
        statistics: &mut Statistics,
    ) -> Result<(), StepError> {
        let Work { model, inputs, state, scratch } = work;
        let limit = M::S::from_f64(target.time);
        let mut now = clock.now.at(M::S::from_f64(clock.now.t));
        let step = Adaptive::<T>::step(self, model, inputs, &mut now, state, limit, scratch)?;
        let Accepted { h, rejected, mut evaluations, .. } = step;
        // The sum of the steps in double precision; the time that is met, and a stop of double precision, are met exactly.
        let t = match now.t == limit {
            true => target.time,
            false if M::S::EPSILON <= f64::EPSILON => now.t.real(),
            false => clock.now.t + h.real(),
        };
        if target.result <= t {
            evaluations += self.extend(model, inputs, &step, now.t, scratch)?;
        }
        clock.passed(now.at(t));
        let step = StepStatistics { rejected, evaluations, ..StepStatistics::default() };
        statistics.add(t, h.real(), &step);
        Ok(())
    }

    fn dense<M: ForwardDynamics>(
        &self,
        model: &M,
        step: &Accepted<M::S>,
        theta: M::S,
        scratch: &mut [M::S],
        state: &mut [M::S],
    ) -> Result<(), StepError> {
        Adaptive::<T>::dense(self, model, step, theta, scratch, state)
    }
}

/// The two parts of y.
fn parts<'a, S>(dims: &Dims, y: &'a mut [S]) -> Result<(&'a mut [S], &'a mut [S]), EvalError> {
    let (expected, found) = (dims.nq + dims.nv, y.len());
    let wrong = EvalError::Length { what: "y", expected, found };
    let (z, v) = y.split_at_mut_checked(dims.nq).ok_or(wrong)?;
    if v.len() == dims.nv { Ok((z, v)) } else { Err(wrong) }
}

/// What is known at a node of an explicit run; `accelerate` writes zd, vd and multipliers, in the workspace that ends the scratch.
pub(super) fn observe_explicit<M: System>(
    model: &M,
    t: M::S,
    y: &mut [M::S],
    scratch: &mut [M::S],
    node: Node<'_, M::S>,
    accelerate: impl FnOnce(At<'_, M::S>, &mut [M::S], &mut Node<'_, M::S>) -> Result<(), EvalError>,
) -> Result<(), EvalError> {
    let (dims, mut node) = (model.dims(), node);
    let before = scratch.len().saturating_sub(dims.workspace);
    let (_, w) = cut_mut("scratch", scratch, before)?;
    let (z, v) = parts(&dims, y)?;
    accelerate(At { t, z, v, x: &[], u: node.u }, w, &mut node)?;
    coordinate_accelerations(model, z, v, node.vd, node.zdd)?;
    copy(node.z, z);
    copy(node.v, v);
    Ok(())
}

/// An explicit integrator of an open tree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tree<T>(pub T);

impl<M: ForwardDynamics + Start, T: Explicit> Method<M> for Tree<T> {
    type Happened = ();

    fn happened(&self, _: &M, _: &[M::S]) {}

    fn state_len(&self, dims: &Dims) -> usize {
        ExplicitMemory::state_len(dims)
    }

    fn start<I: Inputs<M::S>>(&mut self, work: Work<'_, M, I>, settings: &Settings) -> Result<(), StepError> {
        let failed = |error: EvalError| error.in_step(settings.begin, 0.0);
        let (z, v) = parts(&work.model.dims(), work.state).map_err(failed)?;
        work.model.start(z, v, &mut []).map_err(failed)
    }

    fn step<I: Inputs<M::S>>(
        &self,
        work: Work<'_, M, I>,
        clock: &mut Clock,
        target: &Target,
        statistics: &mut Statistics,
    ) -> Result<(), StepError> {
        self.0.step(work, clock, target, statistics)
    }

    fn observe(
        &self,
        model: &M,
        t: M::S,
        state: &mut [M::S],
        scratch: &mut [M::S],
        node: Node<'_, M::S>,
    ) -> Result<(), EvalError> {
        observe_explicit(model, t, state, scratch, node, |at, w, node| {
            model.forward_dynamics(at, w, node.zd, node.vd, &mut [])
        })
    }

    fn is_dense(&self) -> bool {
        T::IS_DENSE
    }

    fn interpolate(
        &self,
        model: &M,
        step: &Accepted<M::S>,
        theta: M::S,
        scratch: &mut [M::S],
        state: &mut [M::S],
    ) -> Result<(), StepError> {
        self.0.dense(model, step, theta, scratch, state)
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
    type Happened = ();

    fn happened(&self, _: &M, _: &[M::S]) {}

    fn state_len(&self, dims: &Dims) -> usize {
        ExplicitMemory::state_len(dims)
    }

    fn start<I: Inputs<M::S>>(&mut self, work: Work<'_, M, I>, settings: &Settings) -> Result<(), StepError> {
        let Work { model, inputs, state, scratch } = work;
        let dims = model.dims();
        let mut pieces = Pieces::of(scratch, ExplicitMemory::projected_scratch_len::<T>(&dims));
        let assembled = pieces.next(State::<f64>::len(&dims))?;
        Assembly::DEFAULT.begin(model, inputs, M::S::from_f64(settings.begin), assembled, pieces.rest())?;
        let assembled = State::of(&dims, assembled)?;
        self.settle(assembled.scale);
        assembled.joint_form(model, state)
    }

    fn step<I: Inputs<M::S>>(
        &self,
        work: Work<'_, M, I>,
        clock: &mut Clock,
        target: &Target,
        statistics: &mut Statistics,
    ) -> Result<(), StepError> {
        let Work { model, inputs, state, scratch } = work;
        let model = &OnConstraints(self.dynamics(model));
        self.integrator.step(Work { model, inputs, state, scratch }, clock, target, statistics)
    }

    fn observe(
        &self,
        model: &M,
        t: M::S,
        state: &mut [M::S],
        scratch: &mut [M::S],
        node: Node<'_, M::S>,
    ) -> Result<(), EvalError> {
        observe_explicit(model, t, state, scratch, node, |at, w, node| {
            self.dynamics(model).multipliers(at, w, node.zd, node.vd, node.lambda)
        })
    }

    fn is_dense(&self) -> bool {
        T::IS_DENSE
    }

    fn interpolate(
        &self,
        model: &M,
        step: &Accepted<M::S>,
        theta: M::S,
        scratch: &mut [M::S],
        state: &mut [M::S],
    ) -> Result<(), StepError> {
        self.integrator.dense(&OnConstraints(self.dynamics(model)), step, theta, scratch, state)
    }
}

/// An implicit Runge–Kutta method of an open tree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StiffTree<T>(pub T);

impl<M: ForwardDynamics + JointSensitivities + Start, T: Explicit> Method<M> for StiffTree<T> {
    type Happened = ();

    fn happened(&self, _: &M, _: &[M::S]) {}

    fn state_len(&self, dims: &Dims) -> usize {
        ExplicitMemory::state_len(dims)
    }

    fn start<I: Inputs<M::S>>(&mut self, work: Work<'_, M, I>, settings: &Settings) -> Result<(), StepError> {
        Tree(self.0).start(work, settings)
    }

    fn step<I: Inputs<M::S>>(
        &self,
        work: Work<'_, M, I>,
        clock: &mut Clock,
        target: &Target,
        statistics: &mut Statistics,
    ) -> Result<(), StepError> {
        let Work { model, inputs, state, scratch } = work;
        self.0.step(Work { model: &Stiff(model), inputs, state, scratch }, clock, target, statistics)
    }

    fn observe(
        &self,
        model: &M,
        t: M::S,
        state: &mut [M::S],
        scratch: &mut [M::S],
        node: Node<'_, M::S>,
    ) -> Result<(), EvalError> {
        Tree(self.0).observe(model, t, state, scratch, node)
    }

    fn is_dense(&self) -> bool {
        T::IS_DENSE
    }

    fn interpolate(
        &self,
        model: &M,
        step: &Accepted<M::S>,
        theta: M::S,
        scratch: &mut [M::S],
        state: &mut [M::S],
    ) -> Result<(), StepError> {
        self.0.dense(&Stiff(model), step, theta, scratch, state)
    }
}

/// An implicit Runge–Kutta method on index 1 or penalty; each step ends on the constraints.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StiffProjected<T>(pub Projected<T>);

impl<M, T: Explicit> Method<M> for StiffProjected<T>
where
    M: Constrained + ConstrainedDynamics + ConstraintCorrection + JointSensitivities + Start,
{
    type Happened = ();

    fn happened(&self, _: &M, _: &[M::S]) {}

    fn state_len(&self, dims: &Dims) -> usize {
        ExplicitMemory::state_len(dims)
    }

    fn start<I: Inputs<M::S>>(&mut self, work: Work<'_, M, I>, settings: &Settings) -> Result<(), StepError> {
        self.0.start(work, settings)
    }

    fn step<I: Inputs<M::S>>(
        &self,
        work: Work<'_, M, I>,
        clock: &mut Clock,
        target: &Target,
        statistics: &mut Statistics,
    ) -> Result<(), StepError> {
        let Work { model, inputs, state, scratch } = work;
        let dynamics = OnConstraints(self.0.dynamics(model));
        let work = Work { model: &Stiff(&dynamics), inputs, state, scratch };
        self.0.integrator.step(work, clock, target, statistics)
    }

    fn observe(
        &self,
        model: &M,
        t: M::S,
        state: &mut [M::S],
        scratch: &mut [M::S],
        node: Node<'_, M::S>,
    ) -> Result<(), EvalError> {
        self.0.observe(model, t, state, scratch, node)
    }

    fn is_dense(&self) -> bool {
        T::IS_DENSE
    }

    fn interpolate(
        &self,
        model: &M,
        step: &Accepted<M::S>,
        theta: M::S,
        scratch: &mut [M::S],
        state: &mut [M::S],
    ) -> Result<(), StepError> {
        let dynamics = OnConstraints(self.0.dynamics(model));
        self.0.integrator.dense(&Stiff(&dynamics), step, theta, scratch, state)
    }
}
