//! The summary of a model as JSON: one function per section.

use super::Summary;
use super::text::{cut_by, hold, kind};
use crate::output::json::problems;
use crate::output::tree;
use mbs_codegen::bundle::Bundle;
use mbs_codegen::diagnostics::Diagnostics;
use mbs_codegen::model::evaluate::Value as ParameterNumber;
use mbs_codegen::model::{
    Body, Event, Input, Joint, Model, Optimisation, Parameter, ParameterValue, Scalar, Simulation,
};
use mbs_codegen::topology::{Loop, Row, RowSource};
use serde_json::{Map, Value, json};

impl Summary<'_> {
    /// The whole summary.
    pub(super) fn json(&self, warnings: &Diagnostics) -> Value {
        let (model, program) = (self.model, &self.program);
        json!({
            "file": self.file,
            "valid": true,
            "problems": problems(warnings),
            "name": model.name,
            "description": model.description,
            "case": self.case.map(|case| &case.name),
            // With constraints it takes their rank to know.
            "degrees_of_freedom": (!self.is_constrained()).then_some(self.tree.nv),
            "equations": list(&self.rows, |row| json!(row.name)),
            "dropped": program.dropped_rows,
            "loops": list(&self.loops, |cut| self.loop_json(cut)),
            "coordinates": program.coordinates,
            "velocities": program.velocities,
            "bodies": list(model.bodies.iter().skip(1), |body| self.body_json(body)),
            "joints": list(model.joints.iter().enumerate(), |(index, joint)| self.joint_json(index, joint)),
            "branches": tree::json(model, self.tree),
            "variables": list(0..model.variables.len(), |index| self.variable_json(index)),
            "constraints": list(&model.constraints, |constraint| json!({
                "name": constraint.name,
                "kind": kind(constraint.kind),
                "equations": list(&constraint.rows, |row| json!(row.name)),
            })),
            "events": list(&model.events, |event| event_json(model, event)),
            "objectives": list(&model.objectives, |objective| json!({
                "name": objective.name,
                "unit": objective.unit,
                "description": objective.description,
            })),
            "sensitivity": self.sensitivity(),
            "parameters": list(model.parameters.iter().enumerate(), |(index, parameter)| self.parameter_json(index, parameter)),
            "inputs": list(&model.inputs, input_json),
            "outputs": list(&program.outputs, |(name, unit)| json!({"name": name, "unit": unit})),
            "markers": program.markers,
            "cases": list(&model.cases, |case| json!({"name": case.name, "description": case.description})),
            "optimisation": list(&model.optimisation, |problem| optimisation_json(model, problem)),
            "simulation": simulation_json(&program.simulation),
            "bundles": list(&program.bundles, bundle_json),
        })
    }

    fn loop_json(&self, found: &Loop) -> Value {
        let joint = &self.model.joints[found.cut.index()];
        let closing = |row: &&Row| row.source == RowSource::Cut(found.cut);
        json!({
            "cut": joint.name,
            "by": cut_by(joint),
            "equations": list(self.rows.iter().filter(closing), |row| json!(row.name)),
            "bodies": list(&found.bodies, |id| json!(self.body(*id))),
            "joints": list(&found.joints, |id| json!(self.model.joints[id.index()].name)),
        })
    }

    fn body_json(&self, body: &Body) -> Value {
        json!({
            "name": body.name,
            "mass": self.number(&body.mass),
            "points": list(&body.points, |(name, _)| json!(name)),
        })
    }

    fn joint_json(&self, index: usize, joint: &Joint) -> Value {
        let start = self.start(index);
        let named = |names: &[String], of: &[Scalar]| -> Value {
            let pairs = names.iter().zip(of).map(|(name, e)| (name.clone(), json!(self.number(e))));
            pairs.collect::<Map<_, _>>().into()
        };
        json!({
            "name": joint.name,
            "type": joint.kind.keyword(),
            "recognised_from": joint.shared.as_ref().map(|shared| &shared.what),
            "parent": self.body(joint.parent.body),
            "child": self.body(joint.child.body),
            "cut": self.is_cut(index),
            "coordinates": named(&joint.coordinates, &start.values),
            "velocities": named(&joint.velocities, &start.rates),
        })
    }

    fn variable_json(&self, index: usize) -> Value {
        let (variable, start) = (&self.model.variables[index], self.variable_start(index));
        json!({
            "name": variable.name,
            "value": self.number(&start.value),
            "rate": self.number(&start.rate),
            "hold": start.hold,
            "unit": variable.unit,
            "description": variable.description,
        })
    }

    fn parameter_json(&self, index: usize, parameter: &Parameter) -> Value {
        let value = match self.value(index) {
            Some(ParameterNumber::Number(value)) => json!(value),
            Some(ParameterNumber::Array(values)) => json!(values),
            None => Value::Null,
        };
        json!({
            "name": parameter.name,
            "value": value,
            "unit": parameter.unit,
            "min": parameter.min,
            "max": parameter.max,
            "derived": matches!(parameter.value, ParameterValue::Derived(_)),
            "description": parameter.description,
        })
    }
}

/// The entries as a JSON array.
fn list<T>(items: impl IntoIterator<Item = T>, entry: impl Fn(T) -> Value) -> Value {
    items.into_iter().map(entry).collect()
}

fn event_json(model: &Model, event: &Event) -> Value {
    json!({
        "name": event.name,
        "direction": event.direction.keyword(),
        "minimum_interval": event.minimum_interval,
        "priority": event.priority,
        "actions": super::actions(model, event),
        "description": event.description,
    })
}

fn input_json(input: &Input) -> Value {
    json!({
        "name": input.name,
        "default": input.default,
        "unit": input.unit,
        "hold": hold(input.hold),
        "description": input.description,
    })
}

fn optimisation_json(model: &Model, problem: &Optimisation) -> Value {
    json!({
        "name": problem.name,
        "description": problem.description,
        "minimise": list(&problem.minimise, |term| json!({
            "objective": term.judged.name(model),
            "weight": term.weight,
        })),
        "over": model.sensitivity_names(&problem.over.iter().map(|unknown| unknown.what).collect::<Vec<_>>()),
        "histories": list(&problem.histories, |history| json!({
            "input": model.inputs[history.input.index()].name,
            "form": history.form.keyword(),
            "knots": history.knots.len(),
        })),
        "constraints": list(&problem.subject_to, |limit| json!({
            "objective": limit.judged.name(model),
            "min": limit.min,
            "max": limit.max,
        })),
        "cases": list(&problem.cases, |(case, _)| json!(model.cases[*case].name)),
    })
}

fn simulation_json(simulation: &Simulation) -> Value {
    json!({
        "begin": simulation.begin,
        "end": simulation.end,
        "step": simulation.step,
        "output_step": simulation.output_step,
        "formulation": simulation.formulation.keyword(),
        "integrator": simulation.integrator.keyword(),
        "penalty": simulation.penalty,
        "projection": simulation.projection.keyword(),
        "newton_tolerance": simulation.newton_tolerance,
        "newton_iterations": simulation.newton_iterations,
        "newton_tangent": simulation.newton_tangent.keyword(),
        "relative_tolerance": simulation.relative_tolerance,
        "absolute_tolerance": simulation.absolute_tolerance,
        "max_step": simulation.max_step,
        "max_steps": simulation.max_steps,
        "max_rejected": simulation.max_rejected,
        "objectives_in_error": simulation.objectives_in_error,
    })
}

fn bundle_json(bundle: &Bundle) -> Value {
    let kinds: Map<String, Value> =
        bundle.counts.kinds().map(|(kind, count)| (kind.into(), json!(count))).collect();
    json!({
        "name": bundle.name,
        "operations": bundle.counts.total(),
        "by_kind": kinds,
        "slots": bundle.slots,
        "segments": bundle.segments.len(),
    })
}
