//! `objectives`: what a run is judged by.

use super::declare::Declarations;
use super::expression::resolve::Context;
use super::keys;
use super::node::{Kind, Node};
use super::reader::Reader;
use super::scope::Scope;
use crate::model::{BinaryOp, EventTerm, Hold, Input, InputId, Model, Objective, Scalar, Which};

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
                    at_events: Vec::new(),
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
                    if let Some(node) = fields.value("at") {
                        given = true;
                        objective.at_events = self.read_event_terms(node, &unit.scope);
                    }
                    if !given {
                        self.diagnostics
                            .error(entry.key_span, "the objective has none of `integrand`, `terminal` and `at`")
                            .help("give what is integrated over the run, what is taken at its end, or what is taken at events");
                    }
                } else if let Some(value) = self.scalar(&entry.value, &unit.scope, Context::Objective) {
                    objective.integrand = value;
                }
                objectives.push(objective);
            }
        }
        objectives
    }

    /// `at`: a term that is taken at an event, or a list of such.
    fn read_event_terms(&mut self, node: &'t Node, scope: &Scope) -> Vec<EventTerm> {
        let items: Vec<&'t Node> = match &node.kind {
            Kind::Sequence(items) => items.iter().map(|item| -> &'t Node { item }).collect(),
            _ => vec![node],
        };
        let mut terms = Vec::new();
        for item in items {
            let Some(fields) = self.fields(item, item.span, &keys::AT_EVENT) else { continue };
            let (event, value) = (fields.require("event", self), fields.require("value", self));
            let which = match fields.value("which") {
                Some(node) => self.word(node, "which occurrences count", &Which::WORDS),
                None => Some(Which::Each),
            };
            let value = value.and_then(|entry| self.scalar(&entry.value, scope, Context::Force));
            if let (Some(entry), Some(value), Some(which)) = (event, value, which)
                && let Some(event) = self.string(&entry.value)
            {
                terms.push(EventTerm { event, value, which, span: entry.value.span });
            }
        }
        terms
    }

    /// Lets events store the values of terms that are taken at them in inputs, which the terminal terms read.
    pub(super) fn keep_event_terms(&mut self, model: &mut Model) {
        let Model { objectives, events, inputs, .. } = model;
        for objective in objectives {
            for (k, term) in objective.at_events.iter().enumerate() {
                // An objective of an element names events of that element first.
                let own =
                    objective.name.rsplit_once('.').map(|(prefix, _)| format!("{prefix}.{}", term.event));
                let place = own
                    .and_then(|own| events.iter().position(|event| event.name == own))
                    .or_else(|| events.iter().position(|event| event.name == term.event));
                let Some(event) = place.and_then(|place| events.get_mut(place)) else {
                    let names = events.iter().map(|event| event.name.as_str());
                    self.unknown_name(term.span, "event", &term.event, names);
                    continue;
                };
                event.judged = true;
                let mut keep = |what: &str, description: String| {
                    let id = InputId(inputs.len() as u32);
                    inputs.push(Input {
                        name: format!("{}.{what}{}", objective.name, k + 1),
                        description,
                        unit: String::new(),
                        default: 0.0,
                        hold: Hold::Zero,
                        span: term.span,
                    });
                    id
                };
                let binary = |op, a, b| Scalar::Binary(op, Box::new(a), Box::new(b));
                let (name, event_name) = (&objective.name, &event.name);
                let kept = keep("kept", format!("what objective `{name}` has of event `{event_name}`"));
                let (before, value) = (Scalar::Input(kept), term.value.clone());
                let value = match term.which {
                    Which::Last => value,
                    Which::Each => binary(BinaryOp::Add, before, value),
                    // kept + (1 − seen) value
                    Which::First => {
                        let seen = keep("seen", format!("one after event `{event_name}`"));
                        event.settings.push((seen, Scalar::Number(1.0)));
                        let unseen = binary(BinaryOp::Subtract, Scalar::Number(1.0), Scalar::Input(seen));
                        binary(BinaryOp::Add, before, binary(BinaryOp::Multiply, unseen, value))
                    }
                };
                event.settings.push((kept, value));
                let terminal = std::mem::replace(&mut objective.terminal, Scalar::Number(0.0));
                objective.terminal = binary(BinaryOp::Add, terminal, Scalar::Input(kept));
            }
        }
    }
}
