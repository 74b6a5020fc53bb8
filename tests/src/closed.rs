//! Runs of constrained models for the tests: load, start, step by any formulation, and what is asked of them on the way.

use mbs_codegen::program::{BundleKind, Options, Program};
use mbs_engine::Interpreted;
use mbs_runtime::formulation::{Assembly, ImplicitStep, Node, StartStatistics, State};
use mbs_runtime::quadrature::Trapezoid;
use mbs_runtime::{
    Adaptive, At, Constrained, Dims, Energy, Fixed, ForwardDynamics, Index1, Integrator, MatrixR, Motion,
    Names, Objectives, OnConstraints, Output, Outputs, Quantity, Span, Statistics, StepError, Stiff, System,
    euler_parameters,
};
use std::ops::ControlFlow;

/// A shipped model by its name, with every bundle.
pub fn shipped(name: &str) -> Interpreted {
    let path = format!("{}/../models/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    model(&text)
}

/// A model of the given text, with every bundle.
pub fn model(text: &str) -> Interpreted {
    with_bundles(text, &BundleKind::ALL)
}

/// A model of the given text, with these bundles.
pub fn with_bundles(text: &str, bundles: &[BundleKind]) -> Interpreted {
    let (model, _) = mbs_codegen::read("model.yaml", text)
        .unwrap_or_else(|problems| panic!("{}", problems.render("model.yaml", text)));
    let options = Options { bundles: bundles.to_vec(), ..Options::default() };
    Interpreted::new(Program::new(&model, None, &options).expect("a program"))
}

/// Whether the long runs are wanted: the environment variable `MBS_LONG`.
pub fn long_runs() -> bool {
    std::env::var_os("MBS_LONG").is_some()
}

/// The place of a coordinate.
pub fn coordinate(model: &Interpreted, name: &str) -> usize {
    let nq = model.dims().nq;
    (0..nq)
        .find(|&i| model.name(Quantity::Coordinate, i) == Some(name))
        .unwrap_or_else(|| panic!("no {name}"))
}

/// The place of an output; of a vector, that of its x.
pub fn output(model: &Interpreted, name: &str) -> usize {
    let n = model.dims().n_outputs;
    let vector = format!("{name}.x");
    let named = |i: &usize| model.name(Quantity::Output, *i).is_some_and(|n| n == name || n == vector);
    (0..n).find(named).unwrap_or_else(|| panic!("no {name}"))
}

/// max_i |a_i − b_i|
pub fn distance(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    // Not f64::max, which forgets NaN.
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, |m, x| if x > m || x.is_nan() { x } else { m })
}

/// The state at the model's own start values, before it is assembled.
pub fn guess(model: &Interpreted, t: f64) -> Vec<f64> {
    let dims = model.dims();
    let mut state = vec![0.0; State::<f64>::len(&dims)];
    Assembly::guess(model, t, &mut state).expect("lengths");
    state
}

/// The consistent start of a model at its own start values.
pub fn start(model: &Interpreted, t: f64) -> Result<(Vec<f64>, StartStatistics), StepError> {
    let mut state = guess(model, t);
    let mut scratch = vec![0.0; Assembly::scratch_len(&model.dims())];
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
    /// Multipliers of the holonomic and the nonholonomic rows.
    pub lambda: Vec<f64>,
    /// Objectives, by the trapezoidal rule on the nodes.
    pub psi: Vec<f64>,
    /// Outputs at the end.
    pub outputs: Vec<f64>,
    /// Largest |E − E₀| of kinetic and potential energy less the work of other forces and of drives (trapezoid).
    pub energy_drift: f64,
    /// Largest kinetic energy.
    pub kinetic: f64,
    /// Largest violation of the constraints at the nodes: of positions, velocities, accelerations.
    pub violation: [f64; 3],
    /// Statistics.
    pub statistics: Statistics,
}

/// What a run is watched by at its nodes.
struct Ledger<'a> {
    model: &'a Interpreted,
    sums: Trapezoid<'a, f64>,
    work: Trapezoid<'a, f64>,
    /// E₀
    first: Option<f64>,
    w: Vec<f64>,
    g: Vec<f64>,
    terminal: Vec<f64>,
    rows: Vec<f64>,
    outcome: Outcome,
}

impl<'a> Ledger<'a> {
    fn memory(dims: &Dims) -> Vec<f64> {
        vec![0.0; 2 * dims.n_objectives + 2]
    }

    fn new(model: &'a Interpreted, memory: &'a mut [f64]) -> Self {
        let dims = model.dims();
        let (work, sums) = memory.split_at_mut(2);
        Self {
            model,
            sums: Trapezoid::new(sums),
            work: Trapezoid::new(work),
            first: None,
            w: vec![0.0; dims.workspace],
            g: vec![0.0; dims.n_objectives],
            terminal: vec![0.0; dims.n_objectives],
            rows: vec![0.0; dims.rows()],
            outcome: Outcome { outputs: vec![0.0; dims.n_outputs], ..Outcome::default() },
        }
    }

    /// Energies, objectives and outputs; `drives` is the power of the constraints.
    fn note(&mut self, at: At<'_, f64>, vd: &[f64], lambda: &[f64], drives: f64) {
        let Self { model, w, .. } = self;
        model.objectives(at, vd, lambda, w, &mut self.g, &mut self.terminal).expect("objectives");
        model.outputs(at, vd, w, &mut self.outcome.outputs).expect("outputs");
        self.sums.add(at.t, &self.g);
        let mut energy = [0.0; 3];
        model.energy(at, w, &mut energy).expect("energy");
        self.work.add(at.t, &[energy[2] + drives]);
        let total = energy[0] + energy[1] - self.work.integrals()[0];
        let first = *self.first.get_or_insert(total);
        self.outcome.energy_drift = self.outcome.energy_drift.max((total - first).abs());
        self.outcome.kinetic = self.outcome.kinetic.max(energy[0]);
    }

    /// Power of the constraints, λ·Φ_t + μ·b: what they do if they depend on time.
    fn power(&mut self, m: Motion<'_, f64>, lambda: &[f64]) -> f64 {
        let rest = vec![0.0; m.zd.len()];
        self.model.constraint_rates(Motion { zd: &rest, ..m }, &mut self.w, &mut self.rows).expect("rates");
        let rates = joint_multipliers(self.model, &self.rows);
        rates.iter().zip(lambda).map(|(rate, lambda)| rate * lambda).sum()
    }

    /// Measures the constraints anew, and keeps the instant as the last one.
    fn keep(&mut self, m: Motion<'_, f64>, lambda: &[f64]) {
        let violation = violations(self.model, m, &mut self.w, &mut self.rows);
        for (largest, now) in self.outcome.violation.iter_mut().zip(violation) {
            *largest = largest.max(now);
        }
        let outcome = &mut self.outcome;
        for (to, from) in [
            (&mut outcome.z, m.z),
            (&mut outcome.zd, m.zd),
            (&mut outcome.zdd, m.zdd),
            (&mut outcome.lambda, lambda),
        ] {
            to.clear();
            to.extend_from_slice(from);
        }
    }

    fn end(mut self, statistics: Statistics) -> Outcome {
        let integrals = self.sums.integrals().iter().zip(&self.terminal);
        self.outcome.psi = integrals.map(|(sum, end)| sum + end).collect();
        self.outcome.statistics = statistics;
        self.outcome
    }
}

/// Largest |Φ|, |Φd| or |Ψ|, |Φdd| or |Ψd| at an instant. `rows`: as many as the model has.
pub fn violations(model: &Interpreted, m: Motion<'_, f64>, w: &mut [f64], rows: &mut [f64]) -> [f64; 3] {
    let dims = model.dims();
    let (mut r, zero) = (vec![0.0; dims.nq], vec![0.0; dims.rows()]);
    let largest = |rows: &[f64]| rows.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
    model.residual(m, &zero, w, &mut r, rows).expect("a residual");
    let phi = largest(&rows[..dims.n_holonomic + dims.n_normalisation]);
    model.constraint_rates(m, w, rows).expect("rates");
    let phid = largest(rows);
    model.constraint_accelerations(m, w, rows).expect("accelerations");
    [phi, phid, largest(rows)]
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
    let mut memory = Ledger::memory(&dims);
    let mut ledger = Ledger::new(model, &mut memory);
    let mut scratch = vec![0.0; method.scratch_len(&dims)];
    let (mut v, mut vd) = (vec![0.0; dims.nv], vec![0.0; dims.nv]);
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
            let lambda = joint_multipliers(model, node.lambda);
            let drives = ledger.power(m, &lambda);
            ledger.note(At { t: m.t, z: m.z, v: &v, x: &[], u: m.u }, &vd, &lambda, drives);
            ledger.keep(m, &lambda);
            observe(&node);
            ControlFlow::Continue(())
        },
    )?;
    Ok(ledger.end(statistics))
}

/// A run by an explicit integrator from the model's start to `end`; if `projected`, every step ends on the constraints.
pub fn run_explicit<T: Integrator>(
    model: &Interpreted,
    integrator: &T,
    dynamics: Index1<'_, Interpreted>,
    projected: bool,
    end: f64,
) -> Result<Outcome, StepError> {
    if projected {
        simulate(model, integrator, &OnConstraints(dynamics.clone()), &dynamics, end)
    } else {
        simulate(model, integrator, &dynamics, &dynamics, end)
    }
}

/// The same in independent coordinates, and how often they were chosen.
pub fn run_independent<T: Integrator>(
    model: &Interpreted,
    integrator: &T,
    end: f64,
) -> Result<(Outcome, usize), StepError> {
    let mut choice = vec![0.0; MatrixR::<Interpreted>::choice_len(&model.dims())];
    let system = MatrixR::new(model, &mut choice);
    let outcome = simulate(model, integrator, &system, &Index1::new(model), end)?;
    Ok((outcome, system.choices()))
}

/// The same by a method with implicit stages.
pub fn run_independent_implicit<T: Integrator>(
    model: &Interpreted,
    integrator: &T,
    end: f64,
) -> Result<(Outcome, usize), StepError> {
    let mut choice = vec![0.0; MatrixR::<Interpreted>::choice_len(&model.dims())];
    let system = MatrixR::new(model, &mut choice);
    let outcome = simulate(model, integrator, &Stiff(&system), &Index1::new(model), end)?;
    Ok((outcome, system.choices()))
}

fn simulate<T: Integrator, M: ForwardDynamics<S = f64>>(
    model: &Interpreted,
    integrator: &T,
    system: &M,
    dynamics: &Index1<'_, Interpreted>,
    end: f64,
) -> Result<Outcome, StepError> {
    let (mut state, _) = start(model, 0.0)?;
    let dims = model.dims();
    let mut y = vec![0.0; dims.state()];
    State::of(&dims, &mut state)?.joint_form(model, &mut y)?;

    let mut memory = Ledger::memory(&dims);
    let mut ledger = Ledger::new(model, &mut memory);
    let (mut zd, mut vd, mut zdd) = (vec![0.0; dims.nq], vec![0.0; dims.nv], vec![0.0; dims.nq]);
    let mut lambda = vec![0.0; dims.joint_rows()];
    let mut w = vec![0.0; dynamics.dims().workspace];
    let mut scratch = vec![0.0; integrator.scratch_len(&system.dims())];
    let span = Span { start: 0.0, end, output: Output::Steps };
    let run = integrator.run(system, &mut model.input_signals(), &mut y, &span, &mut scratch, |at| {
        dynamics.multipliers(at, &mut w, &mut zd, &mut vd, &mut lambda).expect("accelerations");
        euler_parameters::coordinate_accelerations(model, at.z, at.v, &vd, &mut zdd).expect("lengths");
        let m = Motion { t: at.t, z: at.z, zd: &zd, zdd: &zdd, u: at.u };
        let drives = ledger.power(m, &lambda);
        ledger.note(at, &vd, &lambda, drives);
        ledger.keep(m, &lambda);
        ControlFlow::Continue(())
    })?;
    Ok(ledger.end(run))
}

/// The motion to `end` as exactly as double precision allows: index 1, Dormand–Prince at 1e−13, every step on the
/// constraints.
pub fn reference(model: &Interpreted, end: f64) -> Outcome {
    let tight = Adaptive { max_steps: 10_000_000, ..Adaptive::new(1e-13, 1e-14) };
    run_explicit(model, &tight, Index1::new(model), true, end)
        .unwrap_or_else(|error| panic!("{}", said(model, error)))
}

/// The multipliers of holonomic and nonholonomic rows, without those of normalisation rows.
pub fn joint_multipliers(model: &Interpreted, lambda: &[f64]) -> Vec<f64> {
    let dims = model.dims();
    [&lambda[..dims.n_holonomic], &lambda[dims.n_holonomic + dims.n_normalisation..]].concat()
}
