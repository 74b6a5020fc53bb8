//! `parameters` and `inputs`.

use super::declare::{Declarations, Declared};
use super::expression::resolve::Context;
use super::keys;
use super::limits;
use super::load::shorten;
use super::node::{Entry, Kind, Node};
use super::reader::Reader;
use super::scope::Scope;
use crate::diagnostics::Span;
use crate::model::dependencies::evaluation_order;
use crate::model::evaluate::{Value, Values};
use crate::model::{Hold, Input, Parameter, ParameterId, ParameterValue};

impl<'t> Reader<'t> {
    /// Reads all parameters and gives them their default values.
    pub(super) fn read_parameters(&mut self, declarations: &Declarations<'t>) -> Vec<Parameter> {
        let mut parameters = Vec::new();
        let mut broken = Vec::new();
        for unit in &declarations.units {
            for declared in &unit.parameters {
                let (parameter, ok) = self.read_parameter(declared, &unit.scope);
                if !ok {
                    broken.push(declared.id);
                }
                parameters.push(parameter);
            }
        }
        self.report_cycles(&mut parameters, &mut broken);
        self.values = default_values(&parameters, &broken);
        for (i, parameter) in parameters.iter().enumerate() {
            if let Some(value) = self.values.parameter(ParameterId(i as u32)).cloned() {
                self.check_bounds(parameter.span, parameter, &value);
            }
        }
        parameters
    }

    fn read_parameter(&mut self, declared: &Declared<'t, ParameterId>, scope: &Scope) -> (Parameter, bool) {
        let entry = declared.entry;
        let mut parameter = Parameter {
            name: declared.name.clone(),
            description: String::new(),
            unit: String::new(),
            value: ParameterValue::Number(0.0),
            min: None,
            max: None,
            span: entry.key_span,
        };
        let value = match &entry.value.kind {
            Kind::Mapping(_) => {
                let Some(fields) = self.fields(&entry.value, entry.key_span, &keys::PARAMETER) else {
                    return (parameter, false);
                };
                parameter.description =
                    fields.value("description").and_then(|n| self.string(n)).unwrap_or_default();
                parameter.unit = fields.value("unit").and_then(|n| self.string(n)).unwrap_or_default();
                parameter.min = fields.value("min").and_then(|n| self.number(n));
                parameter.max = fields.value("max").and_then(|n| self.number(n));
                if let (Some(min), Some(max), Some(at)) = (parameter.min, parameter.max, fields.get("max"))
                    && min > max
                {
                    let message = format!("the largest allowed value {max} is below the smallest, {min}");
                    self.diagnostics.error(at.key_span, message);
                }
                match (fields.get("value"), fields.get("values")) {
                    (Some(value), None) => self.parameter_value(&value.value, scope, false),
                    (None, Some(values)) => self.parameter_value(&values.value, scope, true),
                    (None, None) => {
                        fields.require("value", self);
                        None
                    }
                    (Some(_), Some(values)) => {
                        self.diagnostics
                            .error(values.key_span, "a parameter has `value` or `values`, not both");
                        None
                    }
                }
            }
            Kind::Sequence(_) => self.parameter_value(&entry.value, scope, true),
            Kind::Scalar(_) | Kind::Broken => self.parameter_value(&entry.value, scope, false),
        };
        let ok = value.is_some();
        parameter.value = value.unwrap_or(ParameterValue::Number(0.0));
        (parameter, ok)
    }

    fn parameter_value(&mut self, node: &Node, scope: &Scope, array: bool) -> Option<ParameterValue> {
        if array {
            return self.numbers(node).map(ParameterValue::Array);
        }
        if let Kind::Sequence(_) = &node.kind {
            self.diagnostics
                .error(node.span, "expected a number or an expression, found a list")
                .help("an array is given by `values: […]`");
            return None;
        }
        let e = self.scalar(node, scope, Context::Parameters)?;
        let mut constant = true;
        e.for_each_parameter(&mut |_| constant = false);
        if !constant {
            return Some(ParameterValue::Derived(e));
        }
        self.default_scalar(node.span, &e, "the value").map(ParameterValue::Number)
    }

    /// A list of numbers.
    pub(super) fn numbers(&mut self, node: &Node) -> Option<Vec<f64>> {
        let Kind::Sequence(items) = &node.kind else {
            self.expected(node, "a list of numbers");
            return None;
        };
        if items.is_empty() {
            self.diagnostics.error(node.span, "an array needs at least one value");
            return None;
        }
        if items.len() > limits::ARRAY_VALUES {
            let (n, limit) = (items.len(), limits::ARRAY_VALUES);
            self.diagnostics.error(node.span, format!("an array has at most {limit} values, not {n}"));
            return None;
        }
        let all: Vec<Option<f64>> = items.iter().map(|item| self.number(item)).collect();
        all.into_iter().collect()
    }

    fn report_cycles(&mut self, parameters: &mut [Parameter], broken: &mut Vec<ParameterId>) {
        // Each cycle is reported and cut, until none is left or there is no point in going on.
        let mut reported = 0;
        while let Err(cycle) = evaluation_order(parameters) {
            reported += 1;
            if reported > 50 {
                broken.extend((0..parameters.len() as u32).map(ParameterId));
                return;
            }
            let Some(&first) = cycle.iter().min() else { return };
            let start = cycle.iter().position(|p| *p == first).unwrap_or(0);
            let mut names = String::new();
            for p in cycle.iter().cycle().skip(start).take(cycle.len() + 1).take(20) {
                let arrow = if names.is_empty() { "" } else { " → " };
                names.push_str(&format!("{arrow}`{}`", parameters[p.index()].name));
            }
            let message = if cycle.len() == 1 {
                format!("parameter `{}` follows itself", parameters[first.index()].name)
            } else {
                format!("these parameters follow each other in a circle: {names}")
            };
            self.diagnostics.error(parameters[first.index()].span, message).help("give one of them a number");
            for p in cycle {
                parameters[p.index()].value = ParameterValue::Number(0.0);
                broken.push(p);
            }
        }
    }

    /// Reports a value outside its bounds, or one that is not finite.
    pub(super) fn check_bounds(&mut self, span: Span, parameter: &Parameter, value: &Value) {
        let name = &parameter.name;
        let values = match value {
            Value::Number(x) => std::slice::from_ref(x),
            Value::Array(x) => x,
        };
        for (i, x) in values.iter().enumerate() {
            let name = if values.len() == 1 { name.clone() } else { format!("{name}[{i}]") };
            if !x.is_finite() {
                self.not_finite(span, &format!("parameter `{name}`"), *x);
            } else if let Some(min) = parameter.min.filter(|min| x < min) {
                self.diagnostics
                    .error(span, format!("parameter `{name}` is {x}, below its smallest value {min}"));
            } else if let Some(max) = parameter.max.filter(|max| x > max) {
                self.diagnostics
                    .error(span, format!("parameter `{name}` is {x}, above its largest value {max}"));
            } else {
                continue;
            }
            break;
        }
    }

    /// Reads all inputs.
    pub(super) fn read_inputs(&mut self, declarations: &Declarations<'t>) -> Vec<Input> {
        let mut inputs: Vec<Input> = declarations.inputs.iter().map(|entry| self.read_input(entry)).collect();
        inputs.extend(self.state_inputs());
        inputs
    }

    fn read_input(&mut self, entry: &'t Entry) -> Input {
        let mut input = Input {
            name: shorten(&entry.key),
            description: String::new(),
            unit: String::new(),
            default: 0.0,
            hold: Hold::Zero,
            span: entry.key_span,
        };
        if let Kind::Mapping(_) = &entry.value.kind {
            let Some(fields) = self.fields(&entry.value, entry.key_span, &keys::INPUT) else {
                return input;
            };
            input.description = fields.value("description").and_then(|n| self.string(n)).unwrap_or_default();
            input.unit = fields.value("unit").and_then(|n| self.string(n)).unwrap_or_default();
            input.default = fields.value("default").and_then(|n| self.number(n)).unwrap_or(0.0);
            let words = [Hold::Zero, Hold::Linear, Hold::Signal].map(|hold| (hold.keyword(), hold));
            let hold = fields
                .value("hold")
                .and_then(|n| self.word(n, "a way to hold the input over a step", &words));
            input.hold = hold.unwrap_or(Hold::Zero);
        } else if !entry.value.is_null() {
            input.default = self.number(&entry.value).unwrap_or(0.0);
        }
        input
    }
}

/// The values at default; those that could not be read, and what follows them, are unknown.
fn default_values(parameters: &[Parameter], broken: &[ParameterId]) -> Values {
    if broken.is_empty() {
        return Values::of(parameters, &[]);
    }
    // An empty array has no value, and what follows a parameter without a value has none either.
    let unknown: Vec<_> = broken.iter().map(|p| (*p, ParameterValue::Array(Vec::new()))).collect();
    Values::of(parameters, &unknown)
}
