//! `modes`: states of which one holds at a time, and what acts in them.

use super::expression::resolve::list;
use super::limits;
use super::load::shorten;
use super::names::{Unique, check_name, is_name};
use super::node::{Entry, Kind, Node};
use super::reader::Reader;
use super::scope::{ModeSymbol, Scope, Thing};
use crate::diagnostics::Span;
use crate::model::{Activity, Event, Hold, Input, InputId, Mode, Model, Scalar};

impl<'t> Reader<'t> {
    /// The names of a mode's states.
    pub(super) fn mode_symbol(&mut self, name: &str, entry: &Entry) -> Option<ModeSymbol> {
        let Kind::Sequence(items) = &entry.value.kind else {
            self.expected(&entry.value, "a list of the states of the mode, such as `[free, locked]`");
            return None;
        };
        let mut symbol =
            ModeSymbol { name: name.to_string(), states: Vec::new(), before: 0, span: entry.key_span };
        symbol.before = self.symbols.modes.last().map_or(0, |last| last.before + last.states.len() as u32);
        let mut unique = Unique::default();
        for item in items {
            let state = self.string(item)?;
            if !check_name(&state, item.span, "a state", &mut self.diagnostics)
                || !unique.add(&state, item.span, "state", &mut self.diagnostics)
            {
                return None;
            }
            symbol.states.push(state);
        }
        let n = symbol.states.len();
        if !(2..=limits::STATES).contains(&n) {
            self.diagnostics
                .error(entry.value.span, format!("a mode has from two to {} states, not {n}", limits::STATES))
                .help("it starts in the first, and events lead to the others");
            return None;
        }
        Some(symbol)
    }

    /// The modes of the model.
    pub(super) fn read_modes(&self) -> Vec<Mode> {
        let first = self.symbols.inputs.len() as u32;
        let mode = |symbol: &ModeSymbol| Mode {
            name: symbol.name.clone(),
            states: symbol.states.clone(),
            first: InputId(first + symbol.before),
            span: symbol.span,
        };
        self.symbols.modes.iter().map(mode).collect()
    }

    /// An input for each state: one if the run starts in it.
    pub(super) fn state_inputs(&self) -> Vec<Input> {
        let mut inputs = Vec::new();
        for mode in &self.symbols.modes {
            inputs.extend(mode.states.iter().enumerate().map(|(place, state)| Input {
                name: format!("{}.{state}", mode.name),
                description: format!("one while mode `{}` is in state `{state}`", mode.name),
                unit: String::new(),
                default: if place == 0 { 1.0 } else { 0.0 },
                hold: Hold::Zero,
                span: mode.span,
            }));
        }
        inputs
    }

    /// The `in` of a force or a constraint; `None` if it cannot be read.
    pub(super) fn activity_of(&mut self, entry: &'t Entry, scope: &Scope) -> Option<Activity> {
        let Kind::Mapping(entries) = &entry.value.kind else { return Some(Activity::default()) };
        match entries.iter().find(|entry| &*entry.key == "in") {
            Some(entry) => self.read_states(&entry.value, scope),
            None => Some(Activity::default()),
        }
    }

    /// `mode.state`, or a list of such: one of those of each mode.
    pub(super) fn read_states(&mut self, node: &'t Node, scope: &Scope) -> Option<Activity> {
        let mut groups: Vec<(usize, Vec<InputId>)> = Vec::new();
        for (mode, id, span) in self.states(node, scope)? {
            match groups.iter_mut().find(|(other, _)| *other == mode) {
                Some((_, group)) if group.contains(&id) => {
                    self.diagnostics.error(span, "the same state stands twice");
                }
                Some((_, group)) => group.push(id),
                None => groups.push((mode, vec![id])),
            }
        }
        Some(Activity { groups: groups.into_iter().map(|(_, group)| group).collect() })
    }

    fn states(&mut self, node: &'t Node, scope: &Scope) -> Option<Vec<(usize, InputId, Span)>> {
        let items: Vec<&'t Node> = match &node.kind {
            Kind::Sequence(items) => items.iter().map(|item| -> &'t Node { item }).collect(),
            _ => vec![node],
        };
        if items.is_empty() {
            self.expected(node, "a state, such as `mode.state`");
        }
        let mut states = Vec::new();
        for item in items {
            let written = self.string(item)?;
            let (head, member) = written.split_once('.').unwrap_or((&written, ""));
            let mode = match scope.thing(head) {
                Some(Thing::Mode(mode)) => mode,
                Some(Thing::Broken) => return None,
                _ => {
                    let modes = self.symbols.modes.iter().map(|mode| mode.name.as_str());
                    let help = match self.symbols.modes.is_empty() {
                        true if is_name(head) && is_name(member) => {
                            format!("declare it: `modes: {{{head}: [{member}, …]}}`")
                        }
                        true => "declare it: `modes: {mode: [state, …]}`".to_string(),
                        false => format!("the modes are {}", list(modes)),
                    };
                    let name = shorten(head);
                    self.diagnostics.error(item.span, format!("unknown mode `{name}`")).help(help);
                    return None;
                }
            };
            let Some(id) = self.symbols.state(mode, member) else {
                let states = self.symbols.modes.get(mode).map_or(&[][..], |mode| &mode.states);
                let states = states.iter().map(|state| format!("{head}.{state}")).collect::<Vec<_>>();
                let message = match member {
                    "" => format!("`{head}` is a mode: name one of its states"),
                    _ => format!("mode `{head}` has no state `{}`", shorten(member)),
                };
                let help = format!("it has {}", list(states.iter().map(String::as_str)));
                self.diagnostics.error(item.span, message).help(help);
                return None;
            };
            states.push((mode, id, item.span));
        }
        Some(states)
    }

    /// The `mode` of an event's actions.
    pub(super) fn read_mode_change(&mut self, node: &'t Node, event: &mut Event, scope: &Scope) {
        let mut seen = Vec::new();
        for (mode, id, span) in self.states(node, scope).unwrap_or_default() {
            if seen.contains(&mode) {
                self.diagnostics
                    .error(span, format!("event `{}` enters two states of one mode", event.name))
                    .help("of the states of a mode one holds at a time");
                continue;
            }
            seen.push(mode);
            event.enters.push(id);
            let states = self.symbols.modes.get(mode).map_or(&[][..], |mode| &mode.states).to_vec();
            for state in states {
                if let Some(other) = self.symbols.state(mode, &state) {
                    let value = if other == id { 1.0 } else { 0.0 };
                    event.settings.push((other, Scalar::Number(value)));
                }
            }
        }
    }

    /// The `modes` of a case, as signals of the states' inputs.
    pub(super) fn case_modes(&mut self, node: &'t Node, scope: &Scope) -> Vec<(InputId, Scalar)> {
        let mut signals = Vec::new();
        for entry in self.entries(node, "modes") {
            let Some(Thing::Mode(mode)) = scope.thing(&entry.key) else {
                let names: Vec<String> = self.symbols.modes.iter().map(|mode| mode.name.clone()).collect();
                let help = match self.nearest(&entry.key, names.iter().map(String::as_str)) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "the model has no mode of that name".to_string(),
                };
                let name = shorten(&entry.key);
                self.diagnostics.error(entry.key_span, format!("unknown mode `{name}`")).help(help);
                continue;
            };
            let states = self.symbols.modes.get(mode).map_or(&[][..], |mode| &mode.states).to_vec();
            let words: Vec<(&str, usize)> = states.iter().enumerate().map(|(k, s)| (s.as_str(), k)).collect();
            let Some(start) = self.word(&entry.value, "a state of the mode", &words) else { continue };
            for (k, state) in states.iter().enumerate() {
                if let Some(id) = self.symbols.state(mode, state) {
                    signals.push((id, Scalar::Number(if k == start { 1.0 } else { 0.0 })));
                }
            }
        }
        signals
    }

    /// Warns of states that nothing enters.
    pub(super) fn check_modes(&mut self, model: &Model) {
        for mode in &model.modes {
            for (place, id) in mode.inputs().enumerate().skip(1) {
                let entered = model.events.iter().any(|event| event.enters.contains(&id));
                let mut starts = model.cases.iter().flat_map(|case| &case.inputs);
                let started = starts.any(|(other, value)| *other == id && *value == Scalar::Number(1.0));
                if !entered && !started {
                    let state = mode.states.get(place).map_or("", String::as_str);
                    self.diagnostics
                        .warning(mode.span, format!("nothing enters state `{}.{state}`", mode.name))
                        .help(format!("an event does with `then: {{mode: {}.{state}}}`", mode.name));
                }
            }
        }
    }
}
