//! `simulation` and `cases`.

use super::declare::Unit;
use super::expression::resolve::Context;
use super::fields::Fields;
use super::keys;
use super::load::shorten;
use super::names::{Unique, check_name};
use super::node::Entry;
use super::reader::Reader;
use super::scope::{Scope, Symbol, Thing};
use crate::model::evaluate::{Value, Values};
use crate::model::{
    Case, Input, InputId, Integrator, Joint, JointId, Parameter, ParameterId, ParameterValue, Scalar,
    Simulation, Start,
};

impl<'t> Reader<'t> {
    /// Lays what an entry says over a simulation.
    pub(super) fn read_simulation(
        &mut self,
        entry: Option<&'t Entry>,
        mut simulation: Simulation,
    ) -> Simulation {
        let Some(entry) = entry else { return simulation };
        let Some(fields) = self.fields(&entry.value, entry.key_span, &keys::SIMULATION) else {
            return simulation;
        };
        let number = |reader: &mut Self, key: &str, slot: &mut f64| {
            if let Some(x) = fields.value(key).and_then(|n| reader.number(n)) {
                *slot = x;
            }
        };
        number(self, "begin", &mut simulation.begin);
        number(self, "end", &mut simulation.end);
        if let Some(step) = fields.value("step").and_then(|n| self.positive(n, "the step")) {
            simulation.step = step;
        }
        if let Some(step) = fields.value("output_step").and_then(|n| self.positive(n, "the output step")) {
            simulation.output_step = Some(step);
        }
        if let Some(node) = fields.value("integrator") {
            let words = [("rk4", Integrator::Rk4), ("dormand_prince", Integrator::DormandPrince)];
            if let Some(integrator) = self.word(node, "an integrator", &words) {
                simulation.integrator = integrator;
            }
        }
        if let Some(entry) = fields.get("tolerance")
            && let Some(fields) = self.fields(&entry.value, entry.key_span, &keys::TOLERANCE)
        {
            if let Some(x) = fields.value("relative").and_then(|n| self.positive(n, "the relative tolerance"))
            {
                simulation.relative_tolerance = x;
            }
            if let Some(x) = fields.value("absolute").and_then(|n| self.positive(n, "the absolute tolerance"))
            {
                simulation.absolute_tolerance = x;
            }
        }
        if simulation.end <= simulation.begin {
            let at = fields.get("end").or(fields.get("begin")).map_or(entry.key_span, |e| e.value.span);
            let (begin, end) = (simulation.begin, simulation.end);
            self.diagnostics
                .error(at, format!("the simulation ends at {end}, which is not after its begin {begin}"));
        }
        simulation
    }

    /// Reads all cases.
    pub(super) fn read_cases(
        &mut self,
        file: &Fields<'t>,
        root: &Unit<'t>,
        parameters: &[Parameter],
        inputs: &[Input],
        joints: &[Joint],
        simulation: &Simulation,
    ) -> Vec<Case> {
        let mut cases = Vec::new();
        let Some(node) = file.value("cases") else {
            return cases;
        };
        let clean = !self.diagnostics.has_errors();
        let mut names = Unique::default();
        for entry in self.entries(node, "cases") {
            let diagnostics = &mut self.diagnostics;
            if !check_name(&entry.key, entry.key_span, "a case", diagnostics)
                || !names.add(&entry.key, entry.key_span, "case", diagnostics)
            {
                continue;
            }
            let mut case = Case {
                name: entry.key.to_string(),
                description: String::new(),
                parameters: Vec::new(),
                start: Vec::new(),
                inputs: Vec::new(),
                simulation: simulation.clone(),
                span: entry.key_span,
            };
            if !entry.value.is_null() {
                let Some(fields) = self.fields(&entry.value, entry.key_span, &keys::CASE) else {
                    continue;
                };
                case.description =
                    fields.value("description").and_then(|n| self.string(n)).unwrap_or_default();
                case.parameters = self.case_parameters(&fields, &root.scope, parameters);
                case.start = self.case_start(&fields, &root.scope, joints);
                case.inputs = self.case_inputs(&fields, &root.scope, inputs);
                case.simulation = self.read_simulation(fields.get("simulation"), simulation.clone());
            }
            if clean {
                self.check_case(&case, parameters);
            }
            cases.push(case);
        }
        cases
    }

    fn case_parameters(
        &mut self,
        fields: &Fields<'t>,
        scope: &Scope,
        parameters: &[Parameter],
    ) -> Vec<(ParameterId, ParameterValue)> {
        let mut out = Vec::new();
        let Some(node) = fields.value("parameters") else {
            return out;
        };
        for entry in self.entries(node, "parameters") {
            let Some(Symbol::Parameter(id)) = scope.symbol(&entry.key) else {
                self.unknown(entry, "parameter", parameters.iter().map(|p| p.name.as_str()));
                continue;
            };
            let Some(parameter) = parameters.get(id.index()) else {
                continue;
            };
            let value = match &parameter.value {
                ParameterValue::Derived(_) => {
                    self.diagnostics
                        .error(
                            entry.key_span,
                            format!("parameter `{}` follows others and cannot be set", entry.key),
                        )
                        .help("set the parameters it follows");
                    continue;
                }
                ParameterValue::Number(_) => self.number(&entry.value).map(Value::Number),
                ParameterValue::Array(old) => {
                    let Some(new) = self.numbers(&entry.value) else {
                        continue;
                    };
                    if new.len() != old.len() {
                        let (n, m) = (old.len(), new.len());
                        let message = format!("array `{}` has {n} values, but {m} are given", entry.key);
                        self.diagnostics.error(entry.value.span, message);
                        continue;
                    }
                    Some(Value::Array(new))
                }
            };
            let Some(value) = value else { continue };
            self.check_bounds(entry.value.span, parameter, &value);
            out.push((
                *id,
                match value {
                    Value::Number(x) => ParameterValue::Number(x),
                    Value::Array(x) => ParameterValue::Array(x),
                },
            ));
        }
        out
    }

    fn case_start(&mut self, fields: &Fields<'t>, scope: &Scope, joints: &[Joint]) -> Vec<(JointId, Start)> {
        let mut out = Vec::new();
        let Some(node) = fields.value("start") else {
            return out;
        };
        for entry in self.entries(node, "joints") {
            let Some(Thing::Joint(id)) = scope.thing(&entry.key) else {
                self.unknown(entry, "joint", joints.iter().map(|j| j.name.as_str()));
                continue;
            };
            // Absent if the joint itself could not be read, which is reported there.
            let Some(symbol) = self.symbols.joints.get(id.index()) else {
                continue;
            };
            let Some(joint) = joints.iter().find(|j| j.name == symbol.name) else {
                continue;
            };
            let mut start = joint.start.clone();
            self.start_over(&entry.value, id, joint.kind, scope, &mut start);
            out.push((id, start));
        }
        out
    }

    fn case_inputs(
        &mut self,
        fields: &Fields<'t>,
        scope: &Scope,
        inputs: &[Input],
    ) -> Vec<(InputId, Scalar)> {
        let mut out = Vec::new();
        let Some(node) = fields.value("inputs") else {
            return out;
        };
        for entry in self.entries(node, "inputs") {
            let Some(Symbol::Input(id)) = scope.symbol(&entry.key) else {
                self.unknown(entry, "input", inputs.iter().map(|i| i.name.as_str()));
                continue;
            };
            if let Some(e) = self.scalar(&entry.value, scope, Context::Signal) {
                out.push((*id, e));
            }
        }
        out
    }

    fn unknown<'n>(&mut self, entry: &Entry, what: &str, names: impl Iterator<Item = &'n str>) {
        let help = match self.nearest(&entry.key, names) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the model has no {what} of that name"),
        };
        self.diagnostics
            .error(entry.key_span, format!("unknown {what} `{}`", shorten(&entry.key)))
            .help(help);
    }

    /// Checks that everything the case gives is finite under its own parameters.
    fn check_case(&mut self, case: &Case, parameters: &[Parameter]) {
        let values = Values::of(parameters, &case.parameters);
        for (i, parameter) in parameters.iter().enumerate() {
            if let Some(Value::Number(x)) = values.parameter(ParameterId(i as u32))
                && !x.is_finite()
            {
                let message = format!("parameter `{}` is {x} in this case", parameter.name);
                self.diagnostics.error(case.span, message);
            }
        }
        let values = values.at_time(case.simulation.begin);
        for (id, e) in &case.inputs {
            if let Ok(x) = values.scalar(e)
                && !x.is_finite()
            {
                let input = self.symbols.inputs.get(id.index()).cloned().unwrap_or_default();
                let message = format!("input `{input}` is {x} at the begin of this case");
                self.diagnostics.error(case.span, message);
            }
        }
    }
}
