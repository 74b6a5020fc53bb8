//! Runs of constrained models for the tests: load, start, step, and what is asked of them on the way.

use mbs_codegen::program::{BundleKind, Options, Program};
use mbs_engine::Interpreted;
use mbs_runtime::formulation::{Assembly, ImplicitStep, Node, RunStatistics, StartStatistics, State};
use mbs_runtime::quadrature::Trapezoid;
use mbs_runtime::{At, Energy, Fixed, Names, Objectives, Output, Span, StepError, System, euler_parameters};
use std::ops::ControlFlow;

/// A shipped model by its name, with every bundle.
pub fn shipped(name: &str) -> Interpreted {
    let path = format!("{}/../models/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    model(&text)
}

/// A model of the given text, with every bundle.
pub fn model(text: &str) -> Interpreted {
    let (model, _) = mbs_codegen::read("model.yaml", text)
        .unwrap_or_else(|problems| panic!("{}", problems.render("model.yaml", text)));
    let options = Options { bundles: BundleKind::ALL.to_vec(), ..Options::default() };
    Interpreted::new(Program::new(&model, None, &options).expect("a program"))
}

/// The consistent start of a model at its own start values.
pub fn start(model: &Interpreted, t: f64) -> Result<(Vec<f64>, StartStatistics), StepError> {
    let dims = model.dims();
    let mut state = vec![0.0; State::<f64>::len(&dims)];
    let y = model.start_state();
    let mut view = State::of(&dims, &mut state)?;
    view.reset(t);
    view.z.copy_from_slice(&y[..dims.nq]);
    let z = view.z.to_vec();
    euler_parameters::coordinate_rates(model, &z, &y[dims.nq..], view.zd).expect("lengths");
    let mut scratch = vec![0.0; Assembly::scratch_len(&dims)];
    let statistics = Assembly::DEFAULT.start(model, &mut model.input_signals(), &mut state, &mut scratch)?;
    Ok((state, statistics))
}

/// An error with the model's names.
pub fn said(model: &Interpreted, error: StepError) -> String {
    error.describe(model as &dyn Names).to_string()
}

/// What a run left behind.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Coordinates at the end.
    pub z: Vec<f64>,
    /// Their rates.
    pub zd: Vec<f64>,
    /// Their accelerations.
    pub zdd: Vec<f64>,
    /// Multipliers.
    pub lambda: Vec<f64>,
    /// Objectives.
    pub psi: Vec<f64>,
    /// Largest |E − E₀| of kinetic and potential energy less the work of other forces (trapezoid).
    pub energy_drift: f64,
    /// Largest kinetic energy.
    pub kinetic: f64,
    /// Statistics.
    pub statistics: RunStatistics,
}

/// A run by an implicit formulation from the model's start to `end`.
pub fn run<T: ImplicitStep>(
    model: &Interpreted,
    method: T,
    h: f64,
    end: f64,
    mut observe: impl FnMut(&Node<'_, f64>),
) -> Result<Outcome, StepError> {
    let (mut state, _) = start(model, 0.0)?;
    let dims = model.dims();
    let mut outcome = Outcome::default();
    let mut memory = vec![0.0; 2 * dims.n_objectives];
    let mut sums = Trapezoid::new(&mut memory);
    let mut work_memory = [0.0; 2];
    let mut work = Trapezoid::new(&mut work_memory);
    let mut first = None;
    let mut scratch = vec![0.0; method.scratch_len(&dims)];
    let (mut v, mut vd, mut w) = (vec![0.0; dims.nv], vec![0.0; dims.nv], vec![0.0; dims.workspace]);
    let (mut g, mut terminal) = (vec![0.0; dims.n_objectives], vec![0.0; dims.n_objectives]);
    let span = Span { start: 0.0, end, output: Output::Steps };
    let statistics = Fixed { method, h }.run(
        model,
        &mut model.input_signals(),
        &mut state,
        &span,
        &mut scratch,
        |node| {
            let m = node.motion;
            euler_parameters::velocities(model, m.z, m.zd, &mut v).expect("lengths");
            euler_parameters::accelerations(model, m.z, m.zd, m.zdd, &mut vd).expect("lengths");
            let at = At { t: m.t, z: m.z, v: &v, x: &[], u: m.u };
            let lambda = joint_multipliers(model, node.lambda);
            model.objectives(at, &vd, &lambda, &mut w, &mut g, &mut terminal).expect("objectives");
            sums.add(m.t, &g);
            let mut energy = [0.0; 3];
            model.energy(at, &mut w, &mut energy).expect("energy");
            work.add(m.t, &[energy[2]]);
            let total = energy[0] + energy[1] - work.integrals()[0];
            let first = *first.get_or_insert(total);
            outcome.energy_drift = outcome.energy_drift.max((total - first).abs());
            outcome.kinetic = outcome.kinetic.max(energy[0]);
            observe(&node);
            ControlFlow::Continue(())
        },
    )?;
    let view = State::of(&dims, &mut state)?;
    outcome.psi = sums.integrals().iter().zip(&terminal).map(|(sum, end)| sum + end).collect();
    outcome.z = view.z.to_vec();
    outcome.zd = view.zd.to_vec();
    outcome.zdd = view.zdd.to_vec();
    outcome.lambda = view.lambda.to_vec();
    outcome.statistics = statistics;
    Ok(outcome)
}

/// The multipliers of holonomic and nonholonomic rows, without those of normalisation rows.
pub fn joint_multipliers(model: &Interpreted, lambda: &[f64]) -> Vec<f64> {
    let dims = model.dims();
    [&lambda[..dims.n_holonomic], &lambda[dims.n_holonomic + dims.n_normalisation..]].concat()
}
