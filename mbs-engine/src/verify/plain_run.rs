//! A run without derivatives, in any kind of numbers: what gradients are compared with.
//!
//! Enters: a model one of whose parameters or inputs may be moved a little, and a [`Method`]. Leaves: objectives and the state
//! at the end. The steps are those of the differentiated run; its objectives come from other bundles.

use crate::{Interpreted, Method, Signals};
use mbs_codegen::model::Simulation;
use mbs_codegen::program::Program;
use mbs_codegen::symbols::Group;
use mbs_runtime::formulation::{ImplicitStep, Node};
use mbs_runtime::quadrature::Trapezoid;
use mbs_runtime::{
    Ali3p, Assembly, At, Fixed, ImplicitIndex1, Inputs, Motion, Objectives, Output, Penalty, Scalar, Span,
    State, StepError, System, euler_parameters,
};
use std::ops::ControlFlow;

/// What a run leaves.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome<S> {
    pub(super) objectives: Vec<S>,
    /// z, zd, zdd at the end.
    pub(super) motion: [Vec<S>; 3],
    /// Multipliers of all rows at the end.
    pub(super) lambda: Vec<S>,
}

/// The signals of a model, one of them moved by a constant.
struct Moved<'a, S: Scalar> {
    signals: Signals<'a, S>,
    by: Option<(usize, S)>,
}

impl<S: Scalar> Inputs<S> for Moved<'_, S> {
    fn at(&mut self, t: S, u: &mut [S]) {
        self.signals.at(t, u);
        if let Some((place, by)) = self.by
            && let Some(u) = u.get_mut(place)
        {
            *u += by;
        }
    }
}

/// A model whose seed `k` is moved by `by`, its parameters at the program's defaults.
pub(super) struct Model<S: Scalar> {
    model: Interpreted<S>,
    input: Option<(usize, S)>,
}

impl<S: Scalar> Model<S> {
    pub(super) fn new(program: &Program, k: usize, by: S) -> Self {
        let mut model = Interpreted::new(program.clone());
        let mut input = None;
        match program.seeds.get(k) {
            Some(&(Group::U, place)) => input = Some((place as usize, by)),
            Some(&(_, place)) => model.move_parameter(place as usize, by),
            None => {}
        }
        Self { model, input }
    }

    /// Makes the run.
    pub(super) fn run(&self, method: &Method, simulation: &Simulation) -> Result<Outcome<S>, StepError> {
        match *method {
            Method::Ali3p(method) => self.implicit(method, simulation),
            Method::Index1(method) => self.implicit(method, simulation),
            Method::Rk4(_) | Method::DormandPrince(..) => Ok(Outcome::default()),
        }
    }

    fn inputs(&self) -> Moved<'_, S> {
        Moved { signals: self.model.input_signals(), by: self.input }
    }

    fn implicit(&self, method: impl ImplicitStep, simulation: &Simulation) -> Result<Outcome<S>, StepError> {
        let (model, dims) = (&self.model, self.model.dims());
        let mut inputs = self.inputs();
        let begin = S::from_f64(simulation.begin);
        let mut state = vec![S::ZERO; State::<S>::len(&dims)];
        let mut scratch = vec![S::ZERO; Assembly::scratch_len(&dims).max(method.scratch_len(&dims))];
        let y = model.start_state();
        let (z, v) = y.split_at(dims.nq);
        let mut view = State::of(&dims, &mut state)?;
        view.reset(begin);
        view.z.copy_from_slice(z);
        mbs_runtime::integrator::renormalise(model, view.z);
        let failed = |error| StepError::Eval { t: simulation.begin, h: 0.0, error };
        euler_parameters::coordinate_rates(model, view.z, v, view.zd).map_err(failed)?;
        // Twice: what damping leaves of imaginary parts the first time is gone the second time.
        for _ in 0..2 {
            Assembly::DEFAULT.start(model, &mut inputs, &mut state, &mut scratch)?;
        }

        let mut ledger = Ledger::new(model);
        let mut sums = vec![S::ZERO; 2 * dims.n_objectives];
        let mut integrals = Trapezoid::new(&mut sums);
        let mut failure = None;
        let watch = |node: Node<'_, S>| match ledger.note(node.motion, node.lambda) {
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
        fixed.run(model, &mut inputs, &mut state, &span, &mut scratch, watch)?;
        if let Some(error) = failure {
            return Err(error);
        }
        let view = State::of(&dims, &mut state)?;
        let totals = integrals.integrals().iter().zip(&ledger.terminals);
        Ok(Outcome {
            objectives: totals.map(|(&integral, &terminal)| integral + terminal).collect(),
            motion: [view.z.to_vec(), view.zd.to_vec(), view.zdd.to_vec()],
            lambda: view.lambda.to_vec(),
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
            lambda: Vec::with_capacity(dims.joint_rows()),
            w: zeros(dims.workspace),
            integrands: zeros(dims.n_objectives),
            terminals: zeros(dims.n_objectives),
        }
    }

    fn note(&mut self, at: Motion<'_, S>, lambda: &[S]) -> Result<(), mbs_runtime::EvalError> {
        let dims = self.model.dims();
        if dims.n_objectives == 0 {
            return Ok(());
        }
        euler_parameters::velocities(self.model, at.z, at.zd, &mut self.v)?;
        euler_parameters::accelerations(self.model, at.z, at.zd, at.zdd, &mut self.vd)?;
        // Normalisation rows stand between the two kinds of others.
        self.lambda.clear();
        self.lambda.extend(lambda.iter().take(dims.n_holonomic));
        self.lambda.extend(lambda.iter().skip(dims.n_holonomic + dims.n_normalisation));
        let instant = At { t: at.t, z: at.z, v: &self.v, x: &[], u: at.u };
        let Self { model, vd, lambda, w, integrands, terminals, .. } = self;
        model.objectives(instant, vd, lambda, w, integrands, terminals)
    }
}

/// The same method, iterated until rounding, so that imaginary parts and small differences converge too.
pub(super) fn settled(method: &Method, redundant: bool) -> Method {
    match *method {
        Method::Ali3p(method) => Method::Ali3p(Ali3p {
            tolerance: TO_ROUNDING,
            max_iterations: PATIENT,
            // The solution is that of any penalty; a large one is found at once. Where rows depend on each other it means nothing.
            penalty: if redundant { method.penalty } else { Penalty::Given(LARGE) },
            ..method
        }),
        Method::Index1(method) => {
            Method::Index1(ImplicitIndex1 { tolerance: TO_ROUNDING, max_iterations: PATIENT, ..method })
        }
        method => method,
    }
}

const TO_ROUNDING: f64 = 1e-30;
const PATIENT: usize = 100;
const LARGE: f64 = 1e18;
