//! Gradients of a driven motion: camber over travel by the points of a suspension, the torque of a drive by the lengths of its bars.
//!
//! Input: a model with [`bundles`], settings of a kinematic analysis, a [`Follower`]. Output: objectives and their exact gradient, by the
//! direct method or the adjoint; derivatives of the motion and of the integrands at every result, under [`columns`], by the direct
//! method. The motion at an instant depends on nothing before it, so neither method carries anything from step to step.
//!
//! ```
//! use mbs_engine::gradient::{adjoint::Choice, kinematics};
//! use mbs_engine::simulation::{Instance, Overrides, Settings, Silent, interpret};
//!
//! let text = "
//! mbs: 1
//! name: arm
//! parameters: {L: 2.0}
//! bodies:
//!   rod: {mass: 1, inertia: [1, 1, 1], points: {tip: [L, 0, 0]}}
//! joints:
//!   hinge: {type: revolute, parent: ground, child: rod, axis: [0, 0, 1]}
//! constraints:
//!   drive: {type: motion, coordinate: hinge, value: t}
//! objectives: {height: {terminal: pos(rod.tip).y}}
//! sensitivity: [L]
//! simulation: {end: 1, step: 0.1}
//! ";
//! let (model, _) = mbs_codegen::analyse("arm.yaml", text).expect("a valid model");
//! let settings = Settings::of_kinematics(&model.simulation, model.is_constrained(), &Overrides::default());
//! let settings = settings.expect("a span");
//! let arm = interpret(&model, None, &[], kinematics::bundles()).expect("a model of moderate size");
//! let ran = kinematics::simulate(&arm, &settings, &Choice::direct(""), &mut Silent).expect("a driven motion").0;
//! assert!((ran.found.of_objective(0)[0] - 1_f64.sin()).abs() < 1e-14);
//! ```

use super::adjoint::Choice;
use super::trajectory::{trajectory_columns, trajectory_row};
use super::{Effort, Found, Node, Ran};
use crate::Interpreted;
use crate::jumps::Jumps;
use crate::simulation::{Driven, Follower, RunFailure, Settings, refused_with_events, stride};
use mbs_codegen::model::GradientMethod;
use mbs_codegen::program::{BundleKind, Program};
use mbs_runtime::formulation::StartStatistics;
use mbs_runtime::sensitivity::Term;
use mbs_runtime::{
    Assembly, Fixed, Gradient, Inputs, Motion, ObjectiveDerivatives, Output, Scalar, Span, State,
    StateDerivatives, Statistics, StepError, System,
};
use std::ops::ControlFlow;
use std::time::Instant;

/// The bundles that it needs.
pub fn bundles() -> Vec<BundleKind> {
    let mut bundles = BundleKind::COORDINATE_FORM.to_vec();
    bundles.extend(BundleKind::SENSITIVITIES);
    bundles
}

/// Whether objectives read multipliers.
pub fn judges_forces<S: Scalar>(model: &Interpreted<S>) -> bool {
    let dims = model.dims();
    let judged = 3 * dims.nq..3 * dims.nq + dims.rows();
    model.objective_places().into_iter().flatten().any(|(_, column)| judged.contains(&(*column as usize)))
}

/// Chooses how to compute the gradient; `trajectories`: whether derivatives along the motion are wanted.
pub fn choose(model: &Interpreted, asked: GradientMethod, trajectories: bool) -> Result<Choice, StepError> {
    let dims = model.dims();
    let (p, objectives) = (dims.sensitivity.parameters, dims.n_objectives);
    let adjoint = |why: &str| Choice { adjoint: true, ..Choice::direct(why) };
    match asked {
        GradientMethod::Direct => Ok(Choice::direct("as asked")),
        GradientMethod::ContinuousAdjoint => Err(StepError::NotDifferentiable {
            what: "a driven motion is not integrated, so there is no adjoint of continuous equations: take `adjoint`",
        }),
        GradientMethod::Adjoint if trajectories => Err(StepError::NotDifferentiable {
            what: "the adjoint has no derivatives along the motion: choose the direct method for them",
        }),
        GradientMethod::Adjoint if objectives == 0 => Err(StepError::NotDifferentiable {
            what: "the adjoint needs objectives, and the model has none: choose the direct method",
        }),
        GradientMethod::Adjoint => Ok(adjoint("as asked")),
        GradientMethod::Auto => Ok(match (trajectories, dims.rows() > dims.nq) {
            (true, _) => Choice::direct("derivatives along the motion are asked for"),
            (_, true) => Choice::direct("there are more constraints than coordinates"),
            _ if objectives > 0 && p > 2 * objectives => adjoint("fewer objectives than parameters"),
            _ => Choice::direct("few parameters for each objective"),
        }),
    }
}

/// Names of the columns: derivatives of the motion, integrands of the objectives and their derivatives.
pub fn columns(program: &Program, multipliers: bool) -> Vec<String> {
    let mut names = trajectory_columns(program, multipliers);
    names.extend(program.objectives.iter().map(|(name, _)| format!("integrand({name})")));
    for (name, _) in &program.objectives {
        names.extend(program.sensitivity.iter().map(|by| format!("d(integrand({name}))/d({by})")));
    }
    names
}

/// Moves the model and differentiates its objectives. Also gives what is known of the constraints at the start.
pub fn simulate(
    model: &Interpreted,
    settings: &Settings,
    choice: &Choice,
    follower: &mut dyn Follower,
) -> Result<(Ran, StartStatistics), RunFailure> {
    let stride = stride(settings).map_err(RunFailure::Step)?;
    if let Some(what) = refused_with_events(model, settings) {
        return Err(RunFailure::Step(StepError::Unsupported { what }));
    }
    model.begin_run();
    let begin = Instant::now();
    let mut along = Along::new(model, choice.adjoint);
    let mut jumps = Jumps::new(model);
    let (mut nodes, mut failure) = (0, None);
    let simulation = &settings.simulation;
    let span = Span { start: simulation.begin, end: simulation.end, output: Output::Steps };
    let see = |motion: Motion<'_, f64>, along: &mut Along<'_, f64>| {
        let t = motion.t;
        if let Some(jumps) = &mut jumps {
            jumps.see_motion(model, &motion);
        }
        let result = nodes % stride == 0 || t == simulation.end;
        nodes += 1;
        let mut stops = false;
        if result && follower.wants_rows() {
            let node = along.node(motion);
            let [z, zd, zdd, holonomic, nonholonomic] = trajectory_row(model.program(), &node);
            stops = follower.row(t, &[z, zd, zdd, holonomic, nonholonomic, &along.now]).is_break();
        }
        if stops || follower.reached(t).is_break() {
            failure = Some(RunFailure::Stopped(t));
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    };
    let ran = along.run(&span, simulation.step, see);
    let seconds = begin.elapsed().as_secs_f64();
    if let Some(failure) = failure {
        return Err(failure);
    }
    let (statistics, start) = ran?;
    let found = along.found(statistics);
    let jumps = jumps.map_or_else(Vec::new, |jumps| jumps.found());
    Ok((Ran { found, damping: None, jumps, seconds }, start))
}

/// Moves the model and differentiates its objectives; whoever watches sees every node.
pub(crate) fn visit(
    model: &Interpreted,
    settings: &Settings,
    adjoint: bool,
    mut see: impl FnMut(Node<'_>),
) -> Result<(Found, StartStatistics), RunFailure> {
    if let Some(what) = refused_with_events(model, settings) {
        return Err(RunFailure::Step(StepError::Unsupported { what }));
    }
    model.begin_run();
    let simulation = &settings.simulation;
    let span = Span { start: simulation.begin, end: simulation.end, output: Output::Steps };
    let mut along = Along::new(model, adjoint);
    let (statistics, start) = along.run(&span, simulation.step, |motion, along| {
        see(along.node(motion));
        ControlFlow::Continue(())
    })?;
    Ok((along.found(statistics), start))
}

/// Objectives of a driven motion without their gradient, in any numbers: complex ones carry derivatives.
pub fn objectives<S: Scalar>(model: &Interpreted<S>, settings: &Settings) -> Result<Vec<S>, RunFailure> {
    objectives_moved(model, settings, Vec::new())
}

/// The same with inputs moved by these numbers.
pub(crate) fn objectives_moved<S: Scalar>(
    model: &Interpreted<S>,
    settings: &Settings,
    moved: Vec<(usize, S)>,
) -> Result<Vec<S>, RunFailure> {
    let simulation = &settings.simulation;
    let (start, end) = (S::from_f64(simulation.begin), S::from_f64(simulation.end));
    let span = Span { start, end, output: Output::Steps };
    let mut along = Along::new(model, false);
    along.plain = true;
    along.moved = moved;
    along.run(&span, simulation.step, |_, _| ControlFlow::Continue(()))?;
    along.sums.truncate(model.dims().n_objectives);
    Ok(along.sums)
}

/// A driven motion with objectives under way.
struct Along<'a, S: Scalar> {
    model: &'a Interpreted<S>,
    adjoint: bool,
    /// Without derivatives.
    plain: bool,
    /// Whether objectives read multipliers.
    forces: bool,
    /// Inputs that are moved, and by how much.
    moved: Vec<(usize, S)>,
    state: Vec<S>,
    derivatives: Vec<S>,
    /// Objectives and gradient: sums, and integrands at this node and the one before.
    sums: Vec<S>,
    now: Vec<S>,
    last: Vec<S>,
    t: Option<S>,
    scratch: Vec<S>,
}

impl<'a, S: Scalar> Along<'a, S> {
    fn new(model: &'a Interpreted<S>, adjoint: bool) -> Self {
        let dims = model.dims();
        let zeros = |n: usize| vec![S::ZERO; n];
        Along {
            model,
            adjoint,
            plain: false,
            forces: judges_forces(model),
            moved: Vec::new(),
            state: zeros(State::<S>::len(&dims)),
            derivatives: zeros(StateDerivatives::<S>::len(&dims)),
            sums: zeros(Gradient::<S>::len(&dims)),
            now: zeros(Gradient::<S>::len(&dims)),
            last: zeros(Gradient::<S>::len(&dims)),
            t: None,
            scratch: zeros(Assembly::driven_scratch_len(&dims)),
        }
    }

    /// Moves from begin to end of the span; whoever watches sees every node.
    fn run(
        &mut self,
        span: &Span<S>,
        h: f64,
        mut see: impl FnMut(Motion<'_, S>, &mut Self) -> ControlFlow<()>,
    ) -> Result<(Statistics, StartStatistics), RunFailure> {
        let (model, dims) = (self.model, self.model.dims());
        let mut state = vec![S::ZERO; State::<S>::len(&dims)];
        let mut scratch = vec![S::ZERO; Assembly::scratch_len(&dims)];
        let signals = || model.input_signals().moved(self.moved.clone());
        let (inputs, mut signals) = (&mut signals(), signals());
        let begun = Assembly::DEFAULT.begin_driven(model, inputs, span.start, &mut state, &mut scratch);
        let start = begun.map_err(RunFailure::Start)?;
        State::of(&dims, &mut self.state).map_err(RunFailure::Step)?.reset(span.start);
        let mut failed = None;
        let watch = |node: mbs_runtime::formulation::Node<'_, S>| {
            if let Err(error) = self.add(&mut signals, &node.motion) {
                failed = Some(error);
                return ControlFlow::Break(());
            }
            see(node.motion, self)
        };
        let run = Fixed { method: Driven, h };
        let statistics = run.run(model, inputs, &mut state, span, &mut scratch, watch);
        if let Some(error) = failed {
            return Err(RunFailure::Step(error));
        }
        let statistics = statistics.map_err(RunFailure::Step)?;
        self.differentiate(&mut signals, Term::Terminal).map_err(RunFailure::Step)?;
        for (sum, &now) in self.sums.iter_mut().zip(&self.now) {
            *sum += now;
        }
        Ok((statistics, start))
    }

    /// Adds a node to the integrals, by the trapezoidal rule.
    fn add(&mut self, inputs: &mut impl Inputs<S>, motion: &Motion<'_, S>) -> Result<(), StepError> {
        let (model, dims) = (self.model, self.model.dims());
        let view = State::of(&dims, &mut self.state)?;
        *view.t = motion.t;
        view.z.copy_from_slice(motion.z);
        view.zd.copy_from_slice(motion.zd);
        view.zdd.copy_from_slice(motion.zdd);
        view.a.copy_from_slice(motion.zdd);
        let assembly = Assembly::DEFAULT;
        if self.forces {
            assembly.driven_forces(model, inputs, &mut self.state, &mut self.scratch)?;
        }
        if !self.adjoint && !self.plain {
            let (state, derivatives) = (&mut self.state, &mut self.derivatives);
            let scratch = &mut self.scratch;
            assembly.driven_differentiated(model, inputs, self.forces, state, derivatives, scratch)?;
        }
        self.differentiate(inputs, Term::Integrand)?;
        if let Some(before) = self.t {
            let half = S::from_f64(0.5) * (motion.t - before);
            for (sum, (&last, &now)) in self.sums.iter_mut().zip(self.last.iter().zip(&self.now)) {
                *sum += half * (last + now);
            }
        }
        self.last.copy_from_slice(&self.now);
        self.t = Some(motion.t);
        Ok(())
    }

    /// Into `now`: terms of the objectives at the state, and their gradient.
    fn differentiate(&mut self, inputs: &mut impl Inputs<S>, term: Term) -> Result<(), StepError> {
        let (model, assembly) = (self.model, Assembly::DEFAULT);
        if model.dims().n_objectives == 0 {
            return Ok(());
        }
        let (state, now, scratch) = (&mut self.state, &mut self.now, &mut self.scratch);
        match self.adjoint {
            true => assembly.driven_adjoint(model, inputs, self.forces, term, state, now, scratch),
            false => assembly.driven_objectives(model, inputs, term, state, &self.derivatives, now, scratch),
        }
    }
}

impl Along<'_, f64> {
    fn found(&self, statistics: Statistics) -> Found {
        let dims = self.model.dims();
        let (objectives, derivatives) = self.sums.split_at(dims.n_objectives);
        Found {
            objectives: objectives.to_vec(),
            derivatives: derivatives.to_vec(),
            end: self.state.clone(),
            effort: Effort::Implicit(statistics),
            adjoint: None,
            events: Vec::new(),
            parameters: dims.sensitivity.parameters,
        }
    }

    fn node<'n>(&'n self, motion: Motion<'n, f64>) -> Node<'n> {
        let dims = self.model.dims();
        let (n, p) = (dims.nq * dims.sensitivity.parameters, dims.sensitivity.parameters);
        let part = |from: usize, len: usize| self.derivatives.get(from..from + len).unwrap_or_default();
        let multipliers = if self.forces { part(3 * n, dims.rows() * p) } else { &[] };
        Node {
            motion,
            lambda: &[],
            z: part(0, n),
            zd: part(n, n),
            zdd: part(2 * n, n),
            lambda_derivatives: multipliers,
        }
    }
}
