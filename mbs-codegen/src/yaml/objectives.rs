//! `objectives`: what a run is judged by.

use super::declare::Declarations;
use super::expression::resolve::Context;
use super::keys;
use super::node::Kind;
use super::reader::Reader;
use crate::model::{Objective, Scalar};

impl<'t> Reader<'t> {
    /// Reads all objectives. Those of mirrored elements are seen in the mirror.
    pub(super) fn read_objectives(&mut self, declarations: &Declarations<'t>) -> Vec<Objective> {
        let mut objectives = Vec::new();
        for unit in &declarations.units {
            for declared in &unit.objectives {
                let entry = declared.entry;
                let mut objective = Objective {
                    name: declared.name.clone(),
                    description: String::new(),
                    unit: String::new(),
                    integrand: Scalar::Number(0.0),
                    terminal: Scalar::Number(0.0),
                    span: entry.key_span,
                };
                if let Kind::Mapping(_) = &entry.value.kind {
                    let Some(fields) = self.fields(&entry.value, entry.key_span, &keys::OBJECTIVE) else {
                        continue;
                    };
                    objective.unit = fields.value("unit").and_then(|n| self.string(n)).unwrap_or_default();
                    objective.description =
                        fields.value("description").and_then(|n| self.string(n)).unwrap_or_default();
                    let mut given = false;
                    for (key, slot) in
                        [("integrand", &mut objective.integrand), ("terminal", &mut objective.terminal)]
                    {
                        given |= fields.get(key).is_some() || fields.is_misspelt(key);
                        if let Some(value) =
                            fields.value(key).and_then(|n| self.scalar(n, &unit.scope, Context::Objective))
                        {
                            *slot = value;
                        }
                    }
                    if !given {
                        self.diagnostics
                            .error(entry.key_span, "the objective has neither `integrand` nor `terminal`")
                            .help("give what is integrated over the run, what is taken at its end, or both");
                    }
                } else if let Some(value) = self.scalar(&entry.value, &unit.scope, Context::Objective) {
                    objective.integrand = value;
                }
                objectives.push(objective);
            }
        }
        objectives
    }
}
