//! `outputs`.

use super::declare::Declarations;
use super::expression::resolve::{Context, Typed};
use super::keys;
use super::node::Kind;
use super::reader::Reader;
use crate::model::{Output, OutputValue};

impl<'t> Reader<'t> {
    /// Reads all outputs. Those of mirrored elements are reported as seen in the mirror.
    pub(super) fn read_outputs(&mut self, declarations: &Declarations<'t>) -> Vec<Output> {
        let mut outputs = Vec::new();
        for unit in &declarations.units {
            for declared in &unit.outputs {
                let entry = declared.entry;
                let mut unit_text = String::new();
                let node = if let Kind::Mapping(_) = &entry.value.kind {
                    let Some(fields) = self.fields(&entry.value, entry.key_span, &keys::OUTPUT) else {
                        continue;
                    };
                    unit_text = fields.value("unit").and_then(|n| self.string(n)).unwrap_or_default();
                    if let Some(description) = fields.value("description") {
                        self.string(description);
                    }
                    let Some(value) = fields.require("value", self) else {
                        continue;
                    };
                    &*value.value
                } else {
                    &*entry.value
                };
                let Some(resolved) = self.either(node, &unit.scope, Context::Output) else {
                    continue;
                };
                let value = match resolved.value {
                    Typed::Scalar(s) => OutputValue::Scalar(s),
                    Typed::Vector(v) => OutputValue::Vector(v),
                };
                outputs.push(Output {
                    name: declared.name.clone(),
                    unit: unit_text,
                    value,
                    span: entry.key_span,
                });
            }
        }
        outputs
    }
}
