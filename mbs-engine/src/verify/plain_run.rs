//! A run without derivatives, in real or complex numbers: the reference of gradients.
//!
//! Input: a model with one parameter or input changed, and a [`Method`]. Output: objectives and the final
//! state. The steps are those of the differentiated run; its objectives come from other bundles. In explicit runs objectives
//! are first-order states, so that they are integrated by the method itself, and steps are made again as they were: the derivative
//! of a run with step control is that of its steps.

use crate::dynamics::Dynamics;
use crate::gradient::kinematics;
use crate::signals::Signals;
use crate::simulation::{RunFailure, Settings};
use crate::{Damping, Interpreted, Method};
use mbs_codegen::model::Simulation;
use mbs_codegen::symbols::Group;
use mbs_runtime::formulation::{ImplicitStep, Node};
use mbs_runtime::integrator::{FixedStep, renormalise};
use mbs_runtime::quadrature::Trapezoid;
use mbs_runtime::sensitivity::JointDynamics;
use mbs_runtime::{
    Assembly, At, Dims, Dop853, DormandPrince, EvalError, EventIntegrator, Fixed, ForwardDynamics, Hold,
    Implicit, Inputs, Motion, Objectives, Output, Rk4, Scalar, Sdirk4, Sight, Span, State, StepError, Stiff,
    System, Trapezoidal, WithEvents, euler_parameters,
};
use std::ops::ControlFlow;

/// Result of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome<S> {
    pub(super) objectives: Vec<S>,
    /// z, zd, zdd at the end.
    pub(super) motion: [Vec<S>; 3],
    /// Multipliers of all rows at the end.
    pub(super) lambda: Vec<S>,
}

/// A model whose seed `k` is moved by `by`.
pub(super) struct Model<S: Scalar> {
    model: Interpreted<S>,
    input: Option<(usize, S)>,
}

/// Inputs, and y at the start.
type JointStart<'m, S> = (Signals<'m, S>, Vec<S>);

impl<S: Scalar> Model<S> {
    pub(super) fn new(model: &Interpreted<S>, k: usize, by: S) -> Self {
        let mut model = model.clone();
        let mut input = None;
        match model.program().seeds.get(k) {
            Some(&(Group::U, place)) => input = Some((place as usize, by)),
            Some(&(_, place)) => model.move_parameter(place as usize, by),
            None => {}
        }
        Self { model, input }
    }

    /// Makes the run.
    pub(super) fn run(
        &self,
        method: &Method,
        simulation: &Simulation,
        times: &[f64],
    ) -> Result<Outcome<S>, StepError> {
        if !self.model.program().events.names.is_empty() {
            return self.with_events(method, simulation);
        }
        match *method {
            Method::Ali3p(method) => self.implicit(method, simulation),
            Method::Index1(method) => self.implicit(method, simulation),
            Method::Rk4(damping) => self.explicit(&Rk4, damping, times, false),
            Method::DormandPrince(_, damping) => self.explicit(&DormandPrince, damping, times, true),
            Method::Dop853(_, damping) => self.explicit(&Dop853, damping, times, true),
            Method::Sdirk4(_, damping) => self.stiff(&Sdirk4, damping, times, true),
            Method::Trapezoidal(damping) => self.stiff(&Trapezoidal, damping, times, false),
        }
    }

    /// Objectives of the motion that drives prescribe.
    pub(super) fn driven(&self, settings: &Settings) -> Result<Vec<S>, RunFailure> {
        kinematics::objectives_moved(&self.model, settings, self.input.into_iter().collect())
    }

    fn inputs(&self) -> Signals<'_, S> {
        self.model.input_signals().moved(self.input.into_iter().collect())
    }

    /// A consistent state.
    fn assembled(&self, begin: f64, inputs: &mut Signals<'_, S>) -> Result<Vec<S>, StepError> {
        let (model, dims) = (&self.model, self.model.dims());
        let mut state = vec![S::ZERO; State::<S>::len(&dims)];
        let mut scratch = vec![S::ZERO; Assembly::scratch_len(&dims)];
        Assembly::DEFAULT.begin(model, inputs, S::from_f64(begin), &mut state, &mut scratch)?;
        // Once more: what damping leaves of imaginary parts the first time is gone the second time.
        Assembly::DEFAULT.start(model, inputs, &mut state, &mut scratch)?;
        Ok(state)
    }

    fn explicit(
        &self,
        method: &impl FixedStep,
        damping: Option<Damping>,
        times: &[f64],
        divided: bool,
    ) -> Result<Outcome<S>, StepError> {
        let model = &self.model;
        let Some((mut inputs, y)) = self.joint_start(damping, times)? else { return Ok(Outcome::default()) };
        let mut choice = model.no_choice();
        let dynamics = &Dynamics::new(model, damping, &mut choice);
        explicit(model, dynamics, method, &mut inputs, y, times, divided)
    }

    /// By implicit Runge–Kutta steps.
    fn stiff(
        &self,
        method: &impl FixedStep,
        damping: Option<Damping>,
        times: &[f64],
        divided: bool,
    ) -> Result<Outcome<S>, StepError> {
        let model = &self.model;
        let Some((mut inputs, y)) = self.joint_start(damping, times)? else { return Ok(Outcome::default()) };
        let mut choice = model.no_choice();
        let dynamics = Stiff(&Dynamics::new(model, damping, &mut choice));
        explicit(model, &dynamics, method, &mut inputs, y, times, divided)
    }

    /// Inputs, and y at the start; none if there are no times.
    fn joint_start(
        &self,
        damping: Option<Damping>,
        times: &[f64],
    ) -> Result<Option<JointStart<'_, S>>, StepError> {
        let (model, dims) = (&self.model, self.model.dims());
        let Some(&begin) = times.first() else { return Ok(None) };
        let mut inputs = self.inputs();
        let mut y = model.start_state();
        if damping.is_some() {
            let mut state = self.assembled(begin, &mut inputs)?;
            State::of(&dims, &mut state)?.joint_form(model, &mut y)?;
        } else {
            renormalise(model, &mut y[..dims.nq]);
        }
        Ok(Some((inputs, y)))
    }

    /// Events are located by real parts; in complex numbers their times get the imaginary parts that make their functions zero.
    fn with_events(&self, method: &Method, simulation: &Simulation) -> Result<Outcome<S>, StepError> {
        let damping = match *method {
            Method::Rk4(damping) | Method::Trapezoidal(damping) => damping,
            Method::Ali3p(method) => return self.implicit(method, simulation),
            Method::Index1(method) => return self.implicit(method, simulation),
            Method::DormandPrince(..) | Method::Dop853(..) | Method::Sdirk4(..) => {
                let what = "a gradient across events is compared with runs of fixed steps: take `rk4`";
                return Err(StepError::Unsupported { what });
            }
        };
        let (model, dims) = (&self.model, self.model.dims());
        let mut inputs = self.inputs();
        let mut y = model.start_state();
        match damping {
            Some(_) => {
                let mut state = self.assembled(simulation.begin, &mut inputs)?;
                State::of(&dims, &mut state)?.joint_form(model, &mut y)?;
            }
            None => renormalise(model, &mut y[..dims.nq]),
        }
        let mut choice = model.no_choice();
        let (dynamics, h) = (Dynamics::new(model, damping, &mut choice), simulation.step);
        match method {
            Method::Trapezoidal(_) => {
                let method = Fixed { method: Trapezoidal, h };
                with_events(model, &Stiff(&dynamics), &method, &mut inputs, y, simulation)
            }
            _ => with_events(model, &dynamics, &Fixed { method: Rk4, h }, &mut inputs, y, simulation),
        }
    }

    fn implicit(&self, method: impl ImplicitStep, simulation: &Simulation) -> Result<Outcome<S>, StepError> {
        let (model, dims) = (&self.model, self.model.dims());
        let mut inputs = self.inputs();
        let begin = S::from_f64(simulation.begin);
        let mut state = self.assembled(simulation.begin, &mut inputs)?;
        let mut ledger = Ledger::new(model);
        let mut sums = vec![S::ZERO; 2 * dims.n_objectives];
        let mut integrals = Trapezoid::new(&mut sums);
        let mut failure = None;
        let mut watch = |node: Node<'_, S>| match ledger.note(node.motion, node.lambda) {
            Ok(()) => {
                integrals.add(node.motion.t, &ledger.integrands);
                ControlFlow::Continue(())
            }
            Err(error) => {
                failure = Some(StepError::Eval { t: node.motion.t.real(), h: 0.0, error });
                ControlFlow::Break(())
            }
        };
        let span = Span { start: begin, end: S::from_f64(simulation.end), output: Output::Steps };
        let fixed = Fixed { method, h: simulation.step };
        if model.program().events.names.is_empty() {
            let mut scratch = vec![S::ZERO; fixed.method.scratch_len(&dims)];
            fixed.run(model, &mut inputs, &mut state, &span, &mut scratch, watch)?;
        } else {
            let mut scratch = vec![S::ZERO; fixed.implicit_event_scratch_len(model)];
            let see = |sight: Sight<'_, Node<'_, S>, S>| match sight {
                Sight::Node(node, _) => watch(node),
                Sight::Event(_) => ControlFlow::Continue(()),
            };
            fixed.run_implicit_with_events(model, &mut inputs, &mut state, &span, &mut scratch, see)?;
        }
        if let Some(error) = failure {
            return Err(error);
        }
        let view = State::of(&dims, &mut state)?;
        let totals = integrals.integrals().iter().zip(&ledger.terminals);
        Ok(Outcome {
            objectives: totals.map(|(&integral, &terminal)| integral + terminal).collect(),
            motion: [view.z.to_vec(), view.zd.to_vec(), view.zdd.to_vec()],
            lambda: view.lambda.iter().take(dims.rows()).copied().collect(),
        })
    }
}

/// Integrands and terminal terms of the objectives at a node, from their own bundle.
struct Ledger<'a, S: Scalar> {
    model: &'a Interpreted<S>,
    v: Vec<S>,
    vd: Vec<S>,
    lambda: Vec<S>,
    w: Vec<S>,
    integrands: Vec<S>,
    terminals: Vec<S>,
}

impl<'a, S: Scalar> Ledger<'a, S> {
    fn new(model: &'a Interpreted<S>) -> Self {
        let dims = model.dims();
        let zeros = |n| vec![S::ZERO; n];
        Self {
            model,
            v: zeros(dims.nv),
            vd: zeros(dims.nv),
            lambda: Vec::with_capacity(dims.joint_judged_rows()),
            w: zeros(dims.workspace),
            integrands: zeros(dims.n_objectives),
            terminals: zeros(dims.n_objectives),
        }
    }

    fn note(&mut self, at: Motion<'_, S>, lambda: &[S]) -> Result<(), EvalError> {
        let dims = self.model.dims();
        if dims.n_objectives == 0 {
            return Ok(());
        }
        euler_parameters::velocities(self.model, at.z, at.zd, &mut self.v)?;
        euler_parameters::accelerations(self.model, at.z, at.zd, at.zdd, &mut self.vd)?;
        self.lambda.clear();
        self.lambda.extend(dims.in_joint_form(lambda));
        let instant = At { t: at.t, z: at.z, v: &self.v, x: &[], u: at.u };
        let Self { model, vd, lambda, w, integrands, terminals, .. } = self;
        model.objectives(instant, vd, lambda, w, integrands, terminals)
    }
}

/// Steps over the given times, with objectives as first-order states.
fn explicit<S: Scalar, D: JointDynamics<S = S> + ForwardDynamics>(
    model: &Interpreted<S>,
    dynamics: &D,
    method: &impl FixedStep,
    inputs: &mut Signals<'_, S>,
    mut y: Vec<S>,
    times: &[f64],
    divided: bool,
) -> Result<Outcome<S>, StepError> {
    let end = times.last().copied().unwrap_or(0.0);
    let dims = model.dims();
    let system = WithObjectives { model, dynamics };
    y.resize(system.dims().stepped(), S::ZERO);
    let mut scratch = vec![S::ZERO; method.scratch_len(&system.dims())];
    for step in times.windows(2) {
        let (mut from, to) = (step[0], step[1]);
        loop {
            // A corner that the moved parameter has brought into a step divides it.
            let stop = if divided { inputs.next_stop(from, to) } else { None };
            let stop = stop.filter(|stop| from < stop.before && stop.after < to);
            let ends = stop.map_or([to, to], |stop| [stop.before, stop.after]);
            for end in ends {
                if from < end {
                    let (mut t, h) = (S::from_f64(from), S::from_f64(end - from));
                    method.step(&system, inputs, &mut t, &mut y, h, &mut scratch)?;
                    from = end;
                }
            }
            if stop.is_none() {
                break;
            }
        }
    }
    let mut u = vec![S::ZERO; dims.nu];
    inputs.at(S::from_f64(end), &mut u);
    outcome(model, dynamics, &y, &u, S::from_f64(end))
}

/// The same in equal steps that end at events.
fn with_events<S: Scalar, D: JointDynamics<S = S> + ForwardDynamics>(
    model: &Interpreted<S>,
    dynamics: &D,
    integrator: &impl EventIntegrator,
    inputs: &mut Signals<'_, S>,
    mut y: Vec<S>,
    simulation: &Simulation,
) -> Result<Outcome<S>, StepError> {
    let dims = model.dims();
    let system = WithObjectives { model, dynamics };
    y.resize(y.len() + dims.n_objectives, S::ZERO);
    let mut scratch = vec![S::ZERO; integrator.event_scratch_len(&system)];
    let (begin, end) = (S::from_f64(simulation.begin), S::from_f64(simulation.end));
    let span = Span { start: begin, end, output: Output::Steps };
    let (mut last, mut u) = (begin, vec![S::ZERO; dims.nu]);
    integrator.run_with_events(&system, inputs, &mut y, &span, &mut scratch, |sight| {
        if let Sight::Node(at, _) = sight {
            last = at.t;
            u.copy_from_slice(at.u);
        }
        ControlFlow::Continue(())
    })?;
    outcome(model, dynamics, &y, &u, last)
}

/// What a run leaves that ended in y = \[z, v, integrals\].
fn outcome<S: Scalar, D: JointDynamics<S = S>>(
    model: &Interpreted<S>,
    dynamics: &D,
    y: &[S],
    u: &[S],
    t: S,
) -> Result<Outcome<S>, StepError> {
    let dims = model.dims();
    let (system, state) = (WithObjectives { model, dynamics }, dims.state());
    let (z, v) = (&y[..dims.nq], &y[dims.nq..state]);
    let at = At { t, z, v, x: &[], u };
    let zeros = |n| vec![S::ZERO; n];
    let (mut zd, mut zdd, mut vd) = (zeros(dims.nq), zeros(dims.nq), zeros(dims.nv));
    let (mut joint_lambda, mut w) = (zeros(dims.joint_rows()), zeros(system.dims().workspace));
    let (mut integrands, mut terminals) = (zeros(dims.n_objectives), zeros(dims.n_objectives));
    let failed = |error| StepError::Eval { t: t.real(), h: 0.0, error };
    dynamics.accelerate(at, &mut w, &mut zd, &mut vd, &mut joint_lambda).map_err(failed)?;
    euler_parameters::coordinate_accelerations(model, z, v, &vd, &mut zdd).map_err(failed)?;
    if dims.n_objectives > 0 {
        model.objectives(at, &vd, &joint_lambda, &mut w, &mut integrands, &mut terminals).map_err(failed)?;
    }
    let mut lambda = joint_lambda;
    let normalisation = std::iter::repeat_n(S::ZERO, dims.n_normalisation);
    lambda.splice(dims.n_holonomic..dims.n_holonomic, normalisation);
    Ok(Outcome {
        objectives: y[state..].iter().zip(&terminals).map(|(&sum, &terminal)| sum + terminal).collect(),
        motion: [z.to_vec(), zd, zdd],
        lambda,
    })
}

/// Dynamics whose objectives are first-order states.
struct WithObjectives<'a, S: Scalar, D> {
    model: &'a Interpreted<S>,
    dynamics: &'a D,
}

impl<S: Scalar, D: JointDynamics<S = S>> System for WithObjectives<'_, S, D> {
    type S = S;

    fn dims(&self) -> Dims {
        let dims = self.dynamics.dims();
        let own = dims.joint_rows() + dims.n_objectives;
        Dims { nx: dims.n_objectives, workspace: dims.workspace + own, ..dims }
    }

    fn euler_parameters(&self) -> &[usize] {
        self.dynamics.euler_parameters()
    }

    fn holds(&self) -> &[Hold] {
        self.dynamics.holds()
    }
}

impl<S: Scalar, D: JointDynamics<S = S>> WithEvents for WithObjectives<'_, S, D> {
    type Model = Interpreted<S>;

    fn events(&self) -> &Interpreted<S> {
        self.model
    }

    fn accelerations(
        &self,
        at: At<'_, S>,
        w: &mut [S],
        zd: &mut [S],
        vd: &mut [S],
        lambda: &mut [S],
    ) -> Result<(), EvalError> {
        self.dynamics.accelerate(At { x: &[], ..at }, w, zd, vd, lambda)
    }
}

impl<S: Scalar, D: JointDynamics<S = S>> WithObjectives<'_, S, D> {
    /// Multipliers, terminal terms, and the workspace of the dynamics.
    fn parts<'w>(&self, w: &'w mut [S]) -> Result<[&'w mut [S]; 3], EvalError> {
        let dims = self.dynamics.dims();
        let (expected, found) = (self.dims().workspace, w.len());
        let short = EvalError::Length { what: "w", expected, found };
        let (lambda, w) = w.split_at_mut_checked(dims.joint_rows()).ok_or(short)?;
        let (terminals, w) = w.split_at_mut_checked(dims.n_objectives).ok_or(short)?;
        Ok([lambda, terminals, w])
    }
}

impl<S: Scalar, D: JointDynamics<S = S> + ForwardDynamics> ForwardDynamics for WithObjectives<'_, S, D> {
    fn corrects_steps(&self) -> bool {
        JointDynamics::corrects_steps(self.dynamics)
    }
    fn completes(&self) -> bool {
        JointDynamics::completes(self.dynamics)
    }

    fn newmark(&self) -> Implicit {
        JointDynamics::newmark(self.dynamics)
    }

    fn linearise_stage(&self, at: At<'_, S>, alpha: [S; 2], w: &mut [S]) -> Result<(), EvalError> {
        let [_, _, w] = self.parts(w)?;
        self.dynamics.linearise_stage(At { x: &[], ..at }, alpha, w)
    }

    fn solve_stage(
        &self,
        at: At<'_, S>,
        alpha: [S; 2],
        w: &mut [S],
        z: &mut [S],
        v: &mut [S],
    ) -> Result<(), EvalError> {
        let [_, _, w] = self.parts(w)?;
        self.dynamics.solve_stage(At { x: &[], ..at }, alpha, w, z, v)
    }

    fn forward_dynamics(
        &self,
        at: At<'_, S>,
        w: &mut [S],
        zd: &mut [S],
        vd: &mut [S],
        xd: &mut [S],
    ) -> Result<(), EvalError> {
        let [lambda, terminals, w] = self.parts(w)?;
        self.dynamics.accelerate(at, w, zd, vd, lambda)?;
        if xd.is_empty() {
            return Ok(());
        }
        self.model.objectives(At { x: &[], ..at }, vd, lambda, w, xd, terminals)
    }

    fn prepare_step(&self, at: At<'_, S>, w: &mut [S]) -> Result<(), EvalError> {
        let [_, _, w] = self.parts(w)?;
        JointDynamics::prepare_step(self.dynamics, At { x: &[], ..at }, w)
    }

    fn complete(&self, t: S, u: &[S], w: &mut [S], z: &mut [S], v: &mut [S]) -> Result<(), EvalError> {
        let [_, _, w] = self.parts(w)?;
        JointDynamics::complete(self.dynamics, t, u, w, z, v)
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
        self.dynamics.correct(At { t, z: &[], v: &[], x, u }, w, z, v, ())
    }
}
