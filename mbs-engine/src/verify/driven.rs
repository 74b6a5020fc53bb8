//! Verification of a driven motion: the gradient of its objectives, direct and by the adjoint, against complex steps of whole motions, and
//! emitted derivatives at instants that it visits.

use super::adjoint::distance;
use super::instants::Visited;
use super::plain_run::Model;
use super::report::{DISTURBED_WITH, Failure, Progress, Report, VISITED, derivatives, unseen};
use super::whole_run::{self, Column};
use super::{AdjointCheck, STEP, TOLERANCE_OF_ADJOINTS};
use crate::Interpreted;
use crate::gradient::{Node, kinematics};
use crate::jumps::Jumps;
use crate::simulation::{RunFailure, Settings};
use mbs_runtime::{Complex64, StepError, System};

/// Why there is no report, in the words of the others.
fn failed(failure: RunFailure) -> Failure {
    match failure {
        RunFailure::Start(error) => Failure::Start(error),
        RunFailure::Step(error) => Failure::Run(error),
        RunFailure::Observe(t, error) => Failure::Run(StepError::Eval { t, h: 0.0, error }),
        RunFailure::Stopped(_) => {
            Failure::Run(StepError::NotDifferentiable { what: "the motion was stopped" })
        }
    }
}

/// Checks the gradient of the motion that drives prescribe, with these settings of a kinematic analysis, and the derivatives that it reads. The
/// parameters of the model must be the defaults of its program.
pub fn report_of_driven(
    model: &Interpreted,
    settings: &Settings,
    mut progress: impl FnMut(Progress),
) -> Result<Report, Failure> {
    let simulation = &settings.simulation;
    let (dims, program) = (model.dims(), model.program());
    let mut visited = Visited::new(simulation.begin, simulation.end, VISITED);
    let mut jumps = Jumps::new(model);
    // Where nobody asks for forces any multipliers will do.
    let some = vec![DISTURBED_WITH; dims.rows()];
    let watch = |node: Node<'_>| {
        let t = node.motion.t;
        progress(Progress::Running(t));
        if let Some(jumps) = &mut jumps {
            jumps.see_motion(model, &node.motion);
        }
        if visited.due(t) {
            visited.note(&Node { lambda: if node.lambda.is_empty() { &some } else { node.lambda }, ..node });
        }
    };
    let (direct, start) = kinematics::visit(model, settings, false, watch).map_err(failed)?;
    progress(Progress::Comparing);
    let redundant = start.rank < start.rows;
    let (instants, mut checks) = derivatives(model, visited.instants, redundant);
    // Nothing is integrated: what forward dynamics has to say is not looked at.
    checks.retain(|check| !check.bundle.starts_with("joint_") && check.bundle != "start_derivatives");
    let unseen = unseen(program, &checks)
        .into_iter()
        .filter(|bundle| !bundle.starts_with("joint_") && *bundle != "start_derivatives")
        .collect();

    let count = program.seeds.len();
    let mut columns = Vec::with_capacity(count);
    let complex = Interpreted::new(model.program_as_set());
    for k in 0..if dims.n_objectives > 0 { count } else { 0 } {
        progress(Progress::Moved(k, count));
        let moved = Model::new(&complex, k, Complex64::new(0.0, STEP));
        let values = moved.driven(settings).map_err(|failure| match failed(failure) {
            Failure::Start(error) | Failure::Run(error) | Failure::Differences(error) => {
                Failure::Differences(error)
            }
        })?;
        columns.push(Column::of_objectives(values.iter().map(|x| x.im / STEP).collect()));
    }
    let runs = whole_run::compare_objectives(model, &direct, &columns);

    let mut adjoints = Vec::new();
    // The adjoint of constraints that depend on each other is refused.
    if dims.n_objectives > 0 && count > 0 && dims.rows() <= dims.nq {
        let (adjoint, _) = kinematics::visit(model, settings, true, |_| {}).map_err(failed)?;
        for (i, (name, _)) in program.objectives.iter().enumerate() {
            let error = distance(program, adjoint.of_objective(i), direct.of_objective(i));
            adjoints.push(AdjointCheck { what: name.clone(), error, tolerance: TOLERANCE_OF_ADJOINTS });
        }
    }
    let jumps = jumps.map_or_else(Vec::new, |jumps| jumps.found());
    Ok(Report { derivatives: checks, instants, unseen, runs, adjoints, found: direct, jumps, start })
}
