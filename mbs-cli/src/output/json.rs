//! The result of a run as one JSON object.

use super::shown::Shown;
use mbs_codegen::diagnostics::{Diagnostic, Diagnostics, Severity};
use mbs_codegen::model::Integrator;
use mbs_engine::Damping;
use mbs_engine::jumps::Jump;
use mbs_engine::simulation::{Analysis, Effort, EventSeen, RunFailure, Settings, WRENCH};
use serde_json::{Map, Value, json};

/// The whole report; `error` says why the run did not come to its end.
pub(crate) fn report(shown: &Shown<'_>, error: Option<&str>) -> Value {
    let (program, record) = (shown.model.program(), shown.record);
    let seen = &record.seen;
    let dynamic = shown.settings.analysis == Analysis::Dynamics;
    let mut object = json!({
        "model": program.name,
        "file": shown.file.display().to_string(),
        "case": program.case,
        "parameters": by_name(program.parameter_names(), shown.model.parameters()),
        "analysis": if dynamic { "dynamics" } else { "kinematics" },
        "simulation": simulation(shown.settings, shown.record.damping),
        "start": start(shown),
        "final": last(shown),
        "objectives": by_name(program.objectives.iter().map(|(name, _)| name.clone()), &seen.objectives()),
        "constraints": seen.norms.map(|norms| json!({
            "position": norms.position,
            "velocity": norms.velocity,
            "acceleration": norms.acceleration,
        })),
    });
    if dynamic {
        let rows = program.holonomic.iter().chain(&program.nonholonomic).cloned();
        object["largest_multipliers"] = by_name(rows, &seen.largest_multipliers);
    }
    if shown.settings.reactions {
        let largest = program.joints.iter().zip(&seen.largest_reactions);
        let largest = largest
            .map(|(joint, (force, torque))| (joint.clone(), json!({"force": force, "torque": torque})));
        object["largest_reactions"] = largest.collect::<Map<_, _>>().into();
    }
    if dynamic {
        let balance = &seen.balance;
        object["energy"] = json!({
            "largest_kinetic": balance.largest_kinetic,
            "change": balance.change,
            "work": balance.work,
            "work_of_drives": balance.work_of_drives,
            "conservative": !balance.driven && !balance.prescribed,
            "balance_error": balance.error(),
            "relative_balance_error": balance.relative_error(),
        });
    }
    object["statistics"] = statistics(shown);
    if let Some(written) = &shown.written {
        object["csv"] = json!({"file": written.file.display().to_string(), "rows": written.rows, "columns": written.columns});
    }
    if !program.events.names.is_empty() {
        object["events"] = events(shown);
        object["energy"]["at_events"] = json!(seen.balance.at_events);
    }
    if !seen.jumps.is_empty() {
        object["jumps"] = jumps(&seen.jumps);
    }
    let warnings = seen.warnings(shown.model);
    if !warnings.is_empty() {
        object["warnings"] = json!(warnings);
    }
    if let Some(error) = error {
        object["error"] = json!(error);
    }
    object
}

/// Numbers under their names.
pub(crate) fn by_name(names: impl IntoIterator<Item = String>, values: &[f64]) -> Value {
    names.into_iter().zip(values).map(|(name, value)| (name, json!(value))).collect::<Map<_, _>>().into()
}

/// The settings of a run.
pub(crate) fn simulation(settings: &Settings, damping: Option<Damping>) -> Value {
    let simulation = &settings.simulation;
    let mut object = json!({
        "begin": simulation.begin,
        "end": simulation.end,
        "step": simulation.step,
        "output_step": simulation.output_step,
    });
    if settings.analysis == Analysis::Kinematics {
        return object;
    }
    object["integrator"] = json!(simulation.integrator.keyword());
    match simulation.integrator {
        Integrator::Newmark { beta, gamma } => {
            (object["beta"], object["gamma"]) = (json!(beta), json!(gamma));
        }
        Integrator::GeneralizedAlpha { spectral_radius } => {
            object["spectral_radius"] = json!(spectral_radius);
        }
        _ => {}
    }
    object["formulation"] = json!(settings.constrained.then(|| simulation.formulation.keyword()));
    object["penalty"] = json!(simulation.penalty.or(damping.and_then(|damping| damping.penalty)));
    object["damping_frequency"] = json!(damping.map(|damping| damping.frequency));
    object["projection"] = json!(simulation.projection.keyword());
    object["newton_tolerance"] = json!(simulation.newton_tolerance);
    object["newton_iterations"] = json!(simulation.newton_iterations);
    object["newton_tangent"] = json!(simulation.newton_tangent.keyword());
    object["relative_tolerance"] = json!(simulation.relative_tolerance);
    object["absolute_tolerance"] = json!(simulation.absolute_tolerance);
    object["max_step"] = json!(simulation.max_step);
    object["max_steps"] = json!(simulation.max_steps);
    object["max_rejected"] = json!(simulation.max_rejected);
    object["objectives_in_error"] = json!(simulation.objectives_in_error);
    object["recursive"] = json!(settings.recursive);
    object
}

/// Events that happened, in the order of time; impulses act along the conditions on velocities.
fn events(shown: &Shown<'_>) -> Value {
    let program = shown.model.program();
    let one = |event: &EventSeen| {
        let (first, end) = program.events.entries[event.event].conditions;
        json!({
            "event": program.events.names[event.event],
            "t": event.t,
            "steps": event.steps,
            "enters": program.events.enters[event.event],
            "impulses": by_name(program.events.conditions[first..end].iter().cloned(), &event.impulses),
            "constraint_impulses": by_name(
                program.holonomic.iter().chain(&program.nonholonomic).cloned(),
                &event.row_impulses,
            ),
        })
    };
    shown.record.seen.events.iter().map(one).collect()
}

/// Jumps a run went through.
pub(crate) fn jumps(jumps: &[Jump]) -> Value {
    let one =
        |jump: &Jump| json!({"of": jump.subject, "t": jump.t, "by": jump.by, "message": jump.to_string()});
    jumps.iter().map(one).collect()
}

/// Where the run began; null where no start was found.
fn start(shown: &Shown<'_>) -> Value {
    let (program, record) = (shown.model.program(), shown.record);
    if matches!(record.failure, Some(RunFailure::Start(_))) {
        return Value::Null;
    }
    let (z, v) = record.start.split_at(program.coordinates.len());
    let mut object = json!({
        "coordinates": by_name(program.coordinates.clone(), z),
        "velocities": by_name(program.velocities.clone(), v),
    });
    if let Some(found) = record.assembly.as_ref().filter(|_| shown.settings.constrained) {
        let names: Vec<&String> = program.coordinates.iter().chain(&program.velocities).collect();
        let moved = shown
            .moved()
            .map(|(i, guess, start)| (names[i].clone(), json!({"guess": guess, "start": start})));
        object["moved"] = moved.collect::<Map<_, _>>().into();
        object["iterations"] = json!(found.statistics.iterations);
        object["equations"] = json!(found.statistics.rows);
        object["rank"] = json!(found.statistics.rank);
        let freedom = program.coordinates.len().saturating_sub(found.statistics.rank);
        object["degrees_of_freedom"] = json!(freedom);
    }
    if shown.settings.constrained || !program.dropped_rows.is_empty() {
        object["dropped"] = json!(program.dropped_rows);
    }
    object
}

/// The last good node; null where no start was found.
fn last(shown: &Shown<'_>) -> Value {
    let (program, seen) = (shown.model.program(), &shown.record.seen);
    if matches!(shown.record.failure, Some(RunFailure::Start(_))) {
        return Value::Null;
    }
    let now = &seen.now;
    let mut object = json!({
        "t": now.t,
        "coordinates": by_name(program.coordinates.clone(), &now.z),
        "velocities": by_name(program.velocities.clone(), &now.v),
        "outputs": by_name(program.outputs.iter().map(|(name, _)| name.clone()), &seen.outputs),
    });
    if shown.settings.analysis == Analysis::Kinematics {
        return object;
    }
    let [kinetic, potential, power] = seen.energy;
    object["energy"] = json!({"kinetic": kinetic, "potential": potential, "power": power});
    if let Some(drives) = seen.drives {
        object["energy"]["drives"] = json!(drives);
    }
    let rows = program.holonomic.iter().chain(&program.nonholonomic).cloned();
    object["multipliers"] = by_name(rows, &now.lambda);
    if shown.settings.reactions {
        let joints = program.joints.iter().zip(seen.reactions.chunks_exact(6));
        let joints = joints.map(|(joint, wrench)| (joint.clone(), by_name(WRENCH.map(String::from), wrench)));
        object["reactions"] = joints.collect::<Map<_, _>>().into();
    }
    object
}

/// A run that failed has no numbers but its time.
fn statistics(shown: &Shown<'_>) -> Value {
    let record = shown.record;
    let mut object = match (&record.effort, &record.failure) {
        (Effort::Explicit(statistics), None) => json!({
            "steps": statistics.steps,
            "rejected": statistics.rejected,
            "evaluations": statistics.evaluations,
        }),
        (Effort::Implicit(statistics), None) => json!({
            "steps": statistics.steps,
            "iterations": statistics.iterations,
            "max_iterations": statistics.max_iterations,
            "tangents": statistics.tangents,
            "projections": statistics.projections,
            "fallbacks": statistics.fallbacks,
        }),
        _ => return json!({"wall_time": record.seconds}),
    };
    object["wall_time"] = json!(record.seconds);
    object["real_time_factor"] =
        json!((record.seen.now.t - shown.settings.simulation.begin) / record.seconds);
    object
}

/// Problems of a file.
pub(crate) fn problems(diagnostics: &Diagnostics) -> Value {
    let one = |d: &Diagnostic| {
        json!({
            "severity": match d.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
            },
            "line": d.span.is_known().then_some(d.span.line),
            "column": d.span.is_known().then_some(d.span.column),
            "message": d.message,
            "help": (!d.help.is_empty()).then_some(&d.help),
        })
    };
    diagnostics.iter().map(one).collect()
}

/// JSON as a person reads it.
pub(crate) fn pretty(value: &Value) -> String {
    // A value always has a text.
    serde_json::to_string_pretty(value).unwrap_or_default()
}
