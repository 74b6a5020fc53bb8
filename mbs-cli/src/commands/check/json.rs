//! What a model is made of, for machines.

use super::Summary;
use super::text::{cut_by, hold, kind};
use crate::output::json::problems;
use crate::output::tree;
use mbs_codegen::diagnostics::Diagnostics;
use mbs_codegen::model::evaluate::Value as ParameterNumber;
use mbs_codegen::model::{Joint, Optimisation, Parameter, ParameterValue};
use mbs_codegen::topology::{Loop, Row, RowSource};
use serde_json::{Map, Value, json};

impl Summary<'_> {
    /// The whole summary.
    pub(super) fn json(&self, warnings: &Diagnostics) -> Value {
        let (model, program) = (self.model, &self.program);
        let joint = |(index, joint): (usize, &Joint)| {
            let start = self.start(index);
            let named = |names: &[String], of: &[mbs_codegen::model::Scalar]| -> Value {
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
        };
        let parameter = |(index, parameter): (usize, &Parameter)| {
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
        };
        let bundle = |bundle: &mbs_codegen::bundle::Bundle| {
            let kinds: Map<String, Value> =
                bundle.counts.kinds().map(|(kind, count)| (kind.into(), json!(count))).collect();
            json!({
                "name": bundle.name,
                "operations": bundle.counts.total(),
                "by_kind": kinds,
                "slots": bundle.slots,
                "segments": bundle.segments.len(),
            })
        };
        let cut_loop = |found: &Loop| {
            let joint = &model.joints[found.cut.index()];
            let closing = |row: &&Row| row.source == RowSource::Cut(found.cut);
            json!({
                "cut": joint.name,
                "by": cut_by(joint),
                "equations": self.rows.iter().filter(closing).map(|row| &row.name).collect::<Vec<_>>(),
                "bodies": found.bodies.iter().map(|id| self.body(*id)).collect::<Vec<_>>(),
                "joints": found.joints.iter().map(|id| &model.joints[id.index()].name).collect::<Vec<_>>(),
            })
        };
        let variable = |index: usize| {
            let (variable, start) = (&model.variables[index], self.variable_start(index));
            json!({
                "name": variable.name,
                "value": self.number(&start.value),
                "rate": self.number(&start.rate),
                "hold": start.hold,
                "unit": variable.unit,
                "description": variable.description,
            })
        };
        let optimisation = |problem: &Optimisation| {
            json!({
                "name": problem.name,
                "description": problem.description,
                "minimise": problem.minimise.iter().map(|term| json!({
                    "objective": term.judged.name(model),
                    "weight": term.weight,
                })).collect::<Vec<_>>(),
                "over": model.sensitivity_names(&problem.over.iter().map(|unknown| unknown.what).collect::<Vec<_>>()),
                "histories": problem.histories.iter().map(|history| json!({
                    "input": model.inputs[history.input.index()].name,
                    "form": history.form.keyword(),
                    "knots": history.knots.len(),
                })).collect::<Vec<_>>(),
                "constraints": problem.subject_to.iter().map(|limit| json!({
                    "objective": limit.judged.name(model),
                    "min": limit.min,
                    "max": limit.max,
                })).collect::<Vec<_>>(),
                "cases": problem.cases.iter().map(|(case, _)| model.cases[*case].name.as_str()).collect::<Vec<_>>(),
            })
        };
        let simulation = &program.simulation;
        let simulation = json!({
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
        });
        let bodies = model
            .bodies
            .iter()
            .skip(1)
            .map(|body| {
                json!({
                    "name": body.name,
                    "mass": self.number(&body.mass),
                    "points": body.points.iter().map(|(name, _)| name).collect::<Vec<_>>(),
                })
            })
            .collect::<Vec<_>>();
        let constraints = model
            .constraints
            .iter()
            .map(|constraint| {
                json!({
                    "name": constraint.name,
                    "kind": kind(constraint.kind),
                    "equations": constraint.rows.iter().map(|row| &row.name).collect::<Vec<_>>(),
                })
            })
            .collect::<Vec<_>>();
        let objectives = model
            .objectives
            .iter()
            .map(|objective| {
                json!({
                    "name": objective.name,
                    "unit": objective.unit,
                    "description": objective.description,
                })
            })
            .collect::<Vec<_>>();
        let inputs = model
            .inputs
            .iter()
            .map(|input| {
                json!({
                    "name": input.name,
                    "default": input.default,
                    "unit": input.unit,
                    "hold": hold(input.hold),
                    "description": input.description,
                })
            })
            .collect::<Vec<_>>();
        let cases = model
            .cases
            .iter()
            .map(|case| {
                json!({
                    "name": case.name,
                    "description": case.description,
                })
            })
            .collect::<Vec<_>>();
        let events = model
            .events
            .iter()
            .map(|event| {
                json!({
                    "name": event.name,
                    "direction": event.direction.keyword(),
                    "minimum_interval": event.minimum_interval,
                    "priority": event.priority,
                    "actions": super::actions(model, event),
                    "description": event.description,
                })
            })
            .collect::<Vec<_>>();
        json!({
            "file": self.file,
            "valid": true,
            "problems": problems(warnings),
            "name": model.name,
            "description": model.description,
            "case": self.case.map(|case| &case.name),
            // With constraints it takes their rank to know.
            "degrees_of_freedom": (!self.is_constrained()).then_some(self.tree.nv),
            "equations": self.rows.iter().map(|row| &row.name).collect::<Vec<_>>(),
            "dropped": program.dropped_rows,
            "loops": self.loops.iter().map(cut_loop).collect::<Vec<_>>(),
            "coordinates": program.coordinates,
            "velocities": program.velocities,
            "bodies": bodies,
            "joints": model.joints.iter().enumerate().map(joint).collect::<Vec<_>>(),
            "branches": tree::json(model, self.tree),
            "variables": (0..model.variables.len()).map(variable).collect::<Vec<_>>(),
            "constraints": constraints,
            "events": events,
            "objectives": objectives,
            "sensitivity": self.sensitivity(),
            "parameters": model.parameters.iter().enumerate().map(parameter).collect::<Vec<_>>(),
            "inputs": inputs,
            "outputs": program.outputs.iter().map(|(name, unit)| json!({"name": name, "unit": unit}))
                .collect::<Vec<_>>(),
            "markers": program.markers,
            "cases": cases,
            "optimisation": model.optimisation.iter().map(optimisation).collect::<Vec<_>>(),
            "simulation": simulation,
            "bundles": program.bundles.iter().map(bundle).collect::<Vec<_>>(),
        })
    }
}
