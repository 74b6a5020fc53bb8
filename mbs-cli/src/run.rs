//! One run of an interpreted model: integrates it and records what the report needs.
//!
//! Enters: a model, the settings of its simulation, perhaps a file. Leaves: a [`Record`], also where the run failed
//! on its way.

use crate::csv::Csv;
use crate::energy_balance::EnergyBalance;
use crate::plot::Curves;
use crate::progress::Progress;
use mbs_codegen::model::{self, Simulation};
use mbs_engine::Interpreted;
use mbs_runtime::system::Recursive;
use mbs_runtime::{
    Adaptive, At, Energy, EvalError, Fixed, ForwardDynamics, Hold, Integrator, Output, Outputs, Rk4, Span,
    Statistics, StepError, System,
};
use std::io;
use std::ops::ControlFlow;

/// What a run leaves.
pub(crate) struct Record {
    /// The state at the start.
    pub(crate) start: Vec<f64>,
    /// The state at the end, or the last good one.
    pub(crate) state: Vec<f64>,
    /// Time of that state.
    pub(crate) t: f64,
    /// Outputs there, if they could be evaluated.
    pub(crate) outputs: Vec<f64>,
    /// Energy there: kinetic, potential, power.
    pub(crate) energy: [f64; 3],
    /// What it took.
    pub(crate) statistics: Statistics,
    /// How well energy was kept.
    pub(crate) balance: EnergyBalance,
    /// Coordinates over time.
    pub(crate) curves: Curves,
    /// Wall time, s.
    pub(crate) seconds: f64,
    /// Why it did not come to its end.
    pub(crate) failure: Option<RunFailure>,
}

/// Why a run did not come to its end.
pub(crate) enum RunFailure {
    /// The integrator could not go on.
    Step(StepError),
    /// Outputs or energy could not be evaluated at a time.
    Observe(f64, EvalError),
    /// The results could not be written.
    Write(io::Error),
}

/// Runs the model.
pub(crate) fn run(
    model: &Interpreted,
    simulation: &Simulation,
    recursive: bool,
    csv: Option<&mut Csv>,
) -> Record {
    match (simulation.integrator, recursive) {
        (model::Integrator::DormandPrince, false) => {
            integrate(&adaptive(simulation), model, model, simulation, csv)
        }
        (model::Integrator::DormandPrince, true) => {
            integrate(&adaptive(simulation), &Recursive(model), model, simulation, csv)
        }
        (_, false) => integrate(&Fixed { method: Rk4, h: simulation.step }, model, model, simulation, csv),
        (_, true) => {
            integrate(&Fixed { method: Rk4, h: simulation.step }, &Recursive(model), model, simulation, csv)
        }
    }
}

fn adaptive(simulation: &Simulation) -> Adaptive {
    Adaptive {
        h_first: Some(simulation.step),
        // Whoever waits can see how far it is, and stop it.
        max_steps: usize::MAX,
        ..Adaptive::new(simulation.relative_tolerance, simulation.absolute_tolerance)
    }
}

/// `system` is the model, or the model under its recursive forward dynamics.
fn integrate<M: ForwardDynamics<S = f64>>(
    method: &impl Integrator,
    system: &M,
    model: &Interpreted,
    simulation: &Simulation,
    csv: Option<&mut Csv>,
) -> Record {
    let dims = model.dims();
    let start = model.start_state();
    let mut y = start.clone();
    let mut scratch = vec![0.0; method.scratch_len(&dims)];
    let output = simulation.output_step.map_or(Output::Steps, Output::Every);
    let span = Span { start: simulation.begin, end: simulation.end, output };
    let mut observer = Observer {
        system,
        model,
        csv,
        w: vec![0.0; dims.workspace],
        zd: vec![0.0; dims.nq],
        vd: vec![0.0; dims.nv],
        outputs: vec![0.0; dims.n_outputs],
        energy: [0.0; 3],
        t: simulation.begin,
        y: start.clone(),
        u: vec![0.0; dims.nu],
        balance: EnergyBalance::default(),
        curves: Curves::new(dims.nq),
        progress: Progress::new((simulation.begin, simulation.end)),
        failure: None,
    };
    let outcome =
        method.simulate(system, &mut model.input_signals(), &mut y, &span, &mut scratch, |at| match observer
            .observe(at)
        {
            Ok(()) => ControlFlow::Continue(()),
            Err(failure) => {
                observer.failure = Some(failure);
                ControlFlow::Break(())
            }
        });
    let seconds = observer.progress.finish();
    if let Some(csv) = &mut observer.csv
        && let Err(error) = csv.flush()
    {
        observer.failure.get_or_insert(RunFailure::Write(error));
    }
    if let Err(error) = observer.evaluate_last() {
        observer.failure.get_or_insert(RunFailure::Observe(observer.t, error));
    }
    let (statistics, failure) = match outcome {
        Ok(statistics) => (statistics, observer.failure),
        Err(error) => (Statistics { t: observer.t, ..Statistics::default() }, Some(RunFailure::Step(error))),
    };
    Record {
        start,
        state: observer.y,
        t: observer.t,
        outputs: observer.outputs,
        energy: observer.energy,
        statistics,
        balance: observer.balance,
        curves: observer.curves,
        seconds,
        failure,
    }
}

/// What looks at the run.
struct Observer<'a, M> {
    system: &'a M,
    model: &'a Interpreted,
    csv: Option<&'a mut Csv>,
    w: Vec<f64>,
    zd: Vec<f64>,
    vd: Vec<f64>,
    outputs: Vec<f64>,
    energy: [f64; 3],
    t: f64,
    y: Vec<f64>,
    u: Vec<f64>,
    balance: EnergyBalance,
    curves: Curves,
    progress: Progress,
    failure: Option<RunFailure>,
}

impl<M: ForwardDynamics<S = f64>> Observer<'_, M> {
    fn observe(&mut self, at: At<'_, f64>) -> Result<(), RunFailure> {
        self.progress.reached(at.t);
        let evaluated = match self.csv {
            Some(_) => self.evaluate_outputs(at),
            None => Ok(()),
        };
        evaluated
            .and_then(|()| self.model.energy(at, &mut self.w, &mut self.energy))
            .map_err(|error| RunFailure::Observe(at.t, error))?;
        self.t = at.t;
        self.y.clear();
        self.y.extend([at.z, at.v].into_iter().flatten());
        self.u.copy_from_slice(at.u);
        let holds = self.model.holds();
        let held = at.u.iter().zip(holds).filter(|(_, hold)| **hold == Hold::Zero).map(|(&u, _)| u);
        self.balance.sample(at.t, self.energy, held);
        self.curves.sample(at.t, at.z);
        if let Some(csv) = &mut self.csv {
            csv.row(at.t, &[at.z, at.v, at.u, &self.outputs, &self.energy]).map_err(RunFailure::Write)?;
        }
        Ok(())
    }

    fn evaluate_outputs(&mut self, at: At<'_, f64>) -> Result<(), EvalError> {
        if self.outputs.is_empty() {
            return Ok(());
        }
        self.system.forward_dynamics(at, &mut self.w, &mut self.zd, &mut self.vd, &mut [])?;
        self.model.outputs(at, &self.vd, &mut self.w, &mut self.outputs)
    }

    /// Outputs at the last sample.
    fn evaluate_last(&mut self) -> Result<(), EvalError> {
        let (y, u) = (std::mem::take(&mut self.y), std::mem::take(&mut self.u));
        let at = At::of_state(&self.model.dims(), self.t, &y, &u);
        let evaluated = at.and_then(|at| self.evaluate_outputs(at));
        (self.y, self.u) = (y, u);
        evaluated
    }
}
