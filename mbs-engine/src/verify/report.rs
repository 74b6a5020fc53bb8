//! Verification of all derivatives of a model, in one report.
//!
//! Input: a program with the bundles to be checked, and the settings of a run. Output: a [`Report`].

use super::adjoint::{self, AdjointCheck};
use super::instants::{Visited, disturbed};
use super::whole_run::{self, RunCheck, Trace};
use super::{Check, Instant, compare, keep_worse};
use crate::Interpreted;
use crate::gradient::{self, Found};
use crate::jumps::{Jump, Jumps};
use mbs_codegen::model::Simulation;
use mbs_codegen::program::{BundleKind, Program};
use mbs_runtime::StepError;
use mbs_runtime::formulation::StartStatistics;
use std::ops::ControlFlow;

/// Compared instants after the start, and disturbed ones.
pub(super) const VISITED: usize = 5;
/// Multipliers where a motion has none.
pub(super) const DISTURBED_WITH: f64 = 0.7;
const DISTURBED: usize = 2;

/// Results of the verification.
#[derive(Clone, Debug)]
pub struct Report {
    /// Jumps the run went through, which neither its gradient nor the judges see.
    pub jumps: Vec<Jump>,
    /// Of every emitted derivative, the worst over the instants.
    pub derivatives: Vec<Check>,
    /// The compared instants; [`Check::instant`] is the index.
    pub instants: Vec<ComparedInstant>,
    /// Bundles of derivatives that could not be evaluated anywhere.
    pub unseen: Vec<&'static str>,
    /// Gradients of objectives and derivatives of the last state; empty for a model that is not differentiated.
    pub runs: Vec<RunCheck>,
    /// The same gradients by the adjoint of the run, against the direct ones.
    pub adjoints: Vec<AdjointCheck>,
    /// The gradient that was checked.
    pub found: Found,
    /// Statistics of the initial state.
    pub start: StartStatistics,
}

/// An instant at which derivatives were compared.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedInstant {
    /// The instant.
    pub instant: Instant,
    /// Whether it is off the run.
    pub disturbed: bool,
}

/// Progress of the verification.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Progress {
    /// The differentiated run has reached this time.
    Running(f64),
    /// Emitted derivatives are compared.
    Comparing,
    /// Number of parameters compared by whole runs, of all.
    Moved(usize, usize),
}

/// Why there is no report.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Failure {
    /// There is no consistent start, or it has no derivative.
    Start(StepError),
    /// The differentiated run failed.
    Run(StepError),
    /// Both complex runs and runs for differences failed.
    Differences(StepError),
}

impl Report {
    /// Whether all errors are allowed.
    pub fn passed(&self) -> bool {
        self.unseen.is_empty()
            && self.derivatives.iter().all(Check::passed)
            && self.runs.iter().all(RunCheck::passed)
            && self.adjoints.iter().all(AdjointCheck::passed)
    }

    /// Whether constraints depend on each other, so that multipliers are those of least norm.
    pub fn redundant(&self) -> bool {
        self.start.rank < self.start.rows
    }
}

/// The bundles of a full verification with a run by these settings, for a model with or without constraints.
pub fn bundles(simulation: &Simulation, constrained: bool) -> Vec<BundleKind> {
    let own = [BundleKind::ConstrainedDynamics, BundleKind::ConstraintCorrection, BundleKind::ConstraintRows];
    // The accelerations of a tree are those of forward dynamics.
    let all = BundleKind::ALL.into_iter().filter(|kind| constrained || !own.contains(kind));
    let tangent = simulation.projects_with_tangent();
    all.filter(|&kind| tangent || kind != BundleKind::TangentProduct).collect()
}

/// Checks every derivative of a program with the bundles of [`bundles`], its parameters at their defaults, and the gradient of a run
/// with these settings. With `differences`, no complex steps are tried for it.
pub fn report(
    program: &Program,
    simulation: &Simulation,
    differences: bool,
    mut progress: impl FnMut(Progress),
) -> Result<Report, Failure> {
    watched(Interpreted::new(program.clone()), simulation, differences, &mut progress)
}

/// The same of a model whose engine is chosen; its parameters must be the defaults of its program.
pub fn report_of(
    model: Interpreted,
    simulation: &Simulation,
    differences: bool,
    mut progress: impl FnMut(Progress),
) -> Result<Report, Failure> {
    watched(model, simulation, differences, &mut progress)
}

/// The same, compiled once for all watchers.
fn watched(
    model: Interpreted,
    simulation: &Simulation,
    differences: bool,
    progress: &mut dyn FnMut(Progress),
) -> Result<Report, Failure> {
    // Every node counts.
    let simulation = &Simulation { output_step: None, ..simulation.clone() };
    let start = gradient::start(&model, simulation).map_err(Failure::Start)?;
    let (statistics, redundant) = (start.statistics, start.redundant());
    let method = start.method(&model, simulation);
    let mut visited = Visited::new(simulation.begin, simulation.end, VISITED);
    let mut trace = Trace::default();
    let mut failure = None;
    let mut jumps = Jumps::new(&model);
    let watch = |mut moment: gradient::Moment<'_>| {
        let t = moment.t;
        progress(Progress::Running(t));
        if let Some(jumps) = &mut jumps {
            moment.show(jumps, &model);
        }
        trace.times.push(t);
        let (due, end) = (visited.due(t), t == simulation.end);
        if !due && !end {
            return ControlFlow::Continue(());
        }
        let seen = moment.node(|node| {
            if due {
                visited.note(&node);
            }
            if end {
                trace.end(&node);
            }
        });
        match seen {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failure = Some(StepError::Eval { t, h: 0.0, error });
                ControlFlow::Break(())
            }
        }
    };
    let found = gradient::run(&model, &method, simulation, start, watch).map_err(Failure::Run)?;
    if let Some(error) = failure {
        return Err(Failure::Run(error));
    }
    progress(Progress::Comparing);
    let (instants, derivatives) = derivatives(&model, visited.instants, redundant);
    let unseen = unseen(model.program(), &derivatives);
    let mut moved = |done, of| progress(Progress::Moved(done, of));
    let runs =
        whole_run::gradient(&model, &method, simulation, redundant, &found, &trace, differences, &mut moved)
            .map_err(Failure::Differences)?;
    let adjoints = adjoint::compare(&model, &method, simulation, &found).map_err(Failure::Run)?;
    let jumps = jumps.map_or_else(Vec::new, |jumps| jumps.found());
    Ok(Report { derivatives, instants, unseen, runs, adjoints, found, jumps, start: statistics })
}

/// Compares emitted derivatives at what the run visited, and at disturbed instants.
pub(super) fn derivatives(
    model: &Interpreted,
    visited: Vec<Instant>,
    redundant: bool,
) -> (Vec<ComparedInstant>, Vec<Check>) {
    let complex = Interpreted::new(model.program().clone());
    let mut checks = compare(model, &complex, &visited);
    let mut looked: Vec<ComparedInstant> =
        visited.into_iter().map(|instant| ComparedInstant { instant, disturbed: false }).collect();
    let mut others = Vec::new();
    for number in 0..DISTURBED {
        // Of an instant in the middle of the run, and of the last.
        let Some(base) = looked.get(VISITED / 2 + number * VISITED.div_ceil(2)) else { break };
        let instant = disturbed(&base.instant, number as u64);
        let mut found = compare(model, &complex, std::slice::from_ref(&instant));
        // Off the constraints, rows that depend on each other have no accelerations that satisfy them all.
        found.retain(|check| !(redundant && check.bundle == "joint_linearise"));
        // A disturbance may leave the domain of a function; what the run visits counts then.
        if found.iter().any(|check| check.error.is_nan()) {
            continue;
        }
        let place = looked.len();
        looked.push(ComparedInstant { instant, disturbed: true });
        others.extend(found.into_iter().map(|check| Check { instant: place, ..check }));
    }
    // What is rounding along the run, as products of velocities are at rest, is told by disturbed instants.
    checks.retain(|check| {
        let same = |other: &Check| (other.bundle, other.derivative) == (check.bundle, check.derivative);
        !(check.is_rounding() && others.iter().any(|other| same(other) && other.passed()))
    });
    for other in others {
        keep_worse(&mut checks, other);
    }
    checks.retain(|check| check.entries > 0);
    (looked, checks)
}

/// Bundles of derivatives that the program has and no check has seen.
pub(super) fn unseen(program: &Program, checks: &[Check]) -> Vec<&'static str> {
    let wanted = [
        BundleKind::InverseDynamicsDerivatives,
        BundleKind::MarkerJacobians,
        BundleKind::Newton,
        BundleKind::Projection,
        BundleKind::StartDerivatives,
        BundleKind::Linearise,
        BundleKind::LineariseProjections,
        BundleKind::TangentProduct,
        BundleKind::IntegrandDerivatives,
        BundleKind::TerminalDerivatives,
        BundleKind::ConstraintRows,
        BundleKind::JointLinearise,
        BundleKind::JointIntegrandDerivatives,
        BundleKind::JointTerminalDerivatives,
        BundleKind::Centroidal,
        BundleKind::ForwardDynamicsDerivatives,
        BundleKind::InverseDynamicsParameters,
    ];
    let has = |kind: &BundleKind| {
        // A centre of mass that nothing moves has no derivatives.
        if *kind == BundleKind::Centroidal && program.velocities.is_empty() {
            return false;
        }
        let bundle = program.bundle(kind.name());
        bundle.is_some_and(|bundle| bundle.results.iter().any(|result| result.len > 0))
    };
    let seen = |kind: &BundleKind| checks.iter().any(|check| check.bundle == kind.name());
    wanted.iter().filter(|kind| has(kind) && !seen(kind)).map(|kind| kind.name()).collect()
}
