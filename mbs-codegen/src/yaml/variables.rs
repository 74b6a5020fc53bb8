//! `variables`: coordinates that belong to no joint.

use super::declare::{Declarations, Declared};
use super::keys;
use super::node::{Kind, Node};
use super::reader::Reader;
use super::scope::Scope;
use crate::model::{CoordinateRef, Model, Reference, Scalar, User, Variable, VariableId, VariableStart};

impl<'t> Reader<'t> {
    /// Reads all variables.
    pub(super) fn read_variables(&mut self, declarations: &Declarations<'t>) -> Vec<Variable> {
        let mut variables = Vec::new();
        for unit in &declarations.units {
            for declared in &unit.variables {
                variables.push(self.read_variable(declared, &unit.scope));
            }
        }
        variables
    }

    fn read_variable(&mut self, declared: &Declared<'t, VariableId>, scope: &Scope) -> Variable {
        let entry = declared.entry;
        let mut variable = Variable {
            name: declared.name.clone(),
            description: String::new(),
            unit: String::new(),
            value: Scalar::Number(0.0),
            rate: Scalar::Number(0.0),
            hold: false,
            tied: false,
            span: entry.key_span,
        };
        if entry.value.is_null() {
            return variable;
        }
        let mut start = VariableStart::of(&variable);
        if let Kind::Mapping(_) = &entry.value.kind {
            let Some(fields) = self.fields(&entry.value, entry.key_span, &keys::VARIABLE) else {
                return variable;
            };
            variable.description =
                fields.value("description").and_then(|n| self.string(n)).unwrap_or_default();
            variable.unit = fields.value("unit").and_then(|n| self.string(n)).unwrap_or_default();
            self.variable_start_fields(&fields, scope, &mut start);
        } else {
            self.variable_start(&entry.value, scope, &mut start);
        }
        (variable.value, variable.rate, variable.hold) = (start.value, start.rate, start.hold);
        variable
    }

    /// Lays a value, or `{value, rate, hold}`, over the start of a variable.
    pub(super) fn variable_start(&mut self, node: &'t Node, scope: &Scope, start: &mut VariableStart) {
        if let Kind::Mapping(_) = &node.kind {
            if let Some(fields) = self.fields(node, node.span, &keys::START) {
                self.variable_start_fields(&fields, scope, start);
            }
        } else if let Some(value) = self.start_scalar(node, scope) {
            start.value = value;
        }
    }

    fn variable_start_fields(
        &mut self,
        fields: &super::fields::Fields<'t>,
        scope: &Scope,
        start: &mut VariableStart,
    ) {
        if let Some(value) = fields.value("value").and_then(|n| self.start_scalar(n, scope)) {
            start.value = value;
        }
        if let Some(rate) = fields.value("rate").and_then(|n| self.start_scalar(n, scope)) {
            start.rate = rate;
        }
        if let Some(hold) = fields.value("hold").and_then(|n| self.boolean(n)) {
            start.hold = hold;
        }
    }

    /// A variable moves no mass, so only a constraint can say what it does.
    pub(super) fn check_variables(&mut self, model: &Model) {
        if self.constraints_incomplete {
            return; // what could not be read may name it
        }
        let mut used = vec![false; model.variables.len()];
        model.for_each_reference(&mut |reference, user| {
            if let (Reference::Coordinate(CoordinateRef::Variable(id)), User::Constraint(_)) =
                (reference, user)
                && let Some(used) = used.get_mut(id.index())
            {
                *used = true;
            }
        });
        for (variable, used) in model.variables.iter().zip(used) {
            if !used {
                self.diagnostics
                    .error(variable.span, format!("variable `{}` stands in no constraint", variable.name))
                    .help("nothing else can tell its value: name it in one of the `constraints`, or leave it out");
            }
        }
    }
}
