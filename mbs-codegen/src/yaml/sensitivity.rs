//! `sensitivity`, in a model or a case: what the model is differentiated by.

use std::collections::HashMap;

use super::expression::resolve::list;
use super::expression::{Syntax, SyntaxKind};
use super::limits;
use super::load::shorten;
use super::node::{Kind, Node, Text};
use super::place::place;
use super::reader::Reader;
use super::scope::{Scope, Symbol, Thing};
use crate::diagnostics::Span;
use crate::model::sensitivity::{Influence, Influences};
use crate::model::{Input, Model, Parameter, ParameterId, ParameterValue, SensitivityRef};

/// An entry of a list, kept until the model is complete.
pub(super) struct Listed {
    /// The case whose list it is in, by its place; the model's own list if absent.
    case: Option<usize>,
    at: Span,
    what: Vec<SensitivityRef>,
}

/// What a list may name.
#[derive(Clone, Copy)]
pub(super) struct Choices<'m> {
    pub(super) scope: &'m Scope,
    pub(super) parameters: &'m [Parameter],
    pub(super) inputs: &'m [Input],
}

impl<'t> Reader<'t> {
    /// Reads a list; arrays are flattened. `case` is the place of the case it belongs to.
    pub(super) fn read_sensitivity(
        &mut self,
        node: &Node,
        choices: Choices<'_>,
        case: Option<usize>,
    ) -> Vec<SensitivityRef> {
        let items = match &node.kind {
            Kind::Sequence(items) => items.as_slice(),
            _ if node.is_null() => &[],
            _ => {
                if !node.is_broken() {
                    let found = node.describe();
                    self.diagnostics
                        .error(node.span, format!("expected a list of parameters and inputs, found {found}"))
                        .help("write `sensitivity: [a, b]`");
                }
                return Vec::new();
            }
        };
        let mut all = Vec::new();
        let mut places: HashMap<SensitivityRef, Span> = HashMap::new();
        for (count, item) in items.iter().enumerate() {
            if count == limits::SENSITIVITY {
                self.too_many_listed(item.span);
                break;
            }
            let Some((syntax, text)) = self.syntax(item, "a parameter or an input") else { continue };
            let Some(what) = self.sensitivity_entry(item, text, &syntax, choices) else { continue };
            if all.len() + what.len() > limits::SENSITIVITY {
                self.too_many_listed(item.span);
                break;
            }
            if let Some(first) = what.iter().find_map(|one| places.get(one)) {
                let line = first.line;
                let message = format!("`{}` is listed already, at line {line}", shorten(&text.value));
                self.diagnostics.error(item.span, message).help("name it once");
                continue;
            }
            places.extend(what.iter().map(|one| (*one, item.span)));
            all.extend(&what);
            self.listed.push(Listed { case, at: item.span, what });
        }
        all
    }

    /// What one entry names: `name` or `name[i]`.
    pub(super) fn sensitivity_entry(
        &mut self,
        item: &Node,
        text: &Text,
        syntax: &Syntax,
        choices: Choices<'_>,
    ) -> Option<Vec<SensitivityRef>> {
        let (name, index) = match &syntax.kind {
            SyntaxKind::Name(name) => (name, None),
            SyntaxKind::Index(name, index) => (name, Some(&**index)),
            SyntaxKind::Path(head, _) if choices.scope.thing(head).is_some() => {
                self.not_differentiable(item.span, &text.value);
                return None;
            }
            _ => {
                self.diagnostics
                    .error(item.span, format!("`{}` is not a parameter or an input", shorten(&text.value)))
                    .help("name a parameter, `name[i]` of an array, or an input");
                return None;
            }
        };
        let id = match choices.scope.symbol(name) {
            Some(Symbol::Parameter(id)) => *id,
            Some(Symbol::Input(id)) if index.is_none() => return Some(vec![SensitivityRef::Input(*id)]),
            Some(_) => {
                self.diagnostics.error(item.span, format!("`{name}` is not an array"));
                return None;
            }
            None => {
                match choices.scope.thing(name) {
                    Some(Thing::Broken) => {}
                    Some(_) => self.not_differentiable(item.span, name),
                    None => self.unknown_sensitivity(item.span, name, choices),
                }
                return None;
            }
        };
        let parameter = choices.parameters.get(id.index())?;
        if let ParameterValue::Derived(_) = parameter.value {
            // Finding them walks through all parameters.
            let help = if self.suggests() {
                let made_of = independent(choices.parameters, id);
                let names = made_of.iter().map(|p| choices.parameters[p.index()].name.as_str());
                format!("differentiate by what it is made of: {}", list(names))
            } else {
                "differentiate by what it is made of".into()
            };
            self.diagnostics
                .error(item.span, format!("parameter `{name}` follows others and has no value of its own"))
                .help(help);
            return None;
        }
        let len = self.symbols.parameters.get(id.index())?.array;
        let one = |element| SensitivityRef::Parameter { id, element };
        match (len, index) {
            (None, None) => Some(vec![one(0)]),
            // One more than the limit tells that there are too many.
            (Some(n), None) => Some((0..n.min(limits::SENSITIVITY + 1)).map(one).collect()),
            (None, Some(_)) => {
                self.diagnostics.error(item.span, format!("parameter `{name}` is a number, not an array"));
                None
            }
            (Some(n), Some(index)) => {
                if let SyntaxKind::Number(i) = index.kind
                    && i.fract() == 0.0
                    && i < n as f64
                {
                    return Some(vec![one(i as usize)]);
                }
                let at = place(self.text, item.span, text, index.at.0, index.at.1);
                let shown = shorten(text.value.get(index.at.0..index.at.1).unwrap_or_default());
                self.diagnostics
                    .error(at, format!("index {shown} is outside the array `{name}`"))
                    .help(format!("indices are whole numbers from 0 to {}", n.saturating_sub(1)));
                None
            }
        }
    }

    fn too_many_listed(&mut self, at: Span) {
        let limit = limits::SENSITIVITY;
        self.diagnostics
            .error(at, format!("a model is differentiated by at most {limit} values"))
            .help("every element of an array counts");
    }

    fn not_differentiable(&mut self, at: Span, name: &str) {
        self.diagnostics.error(at, format!("`{}` is not a parameter or an input", shorten(name))).help(
            "a length, a mass or a start value that should vary is given by a parameter: name that one",
        );
    }

    fn unknown_sensitivity(&mut self, at: Span, name: &str, choices: Choices<'_>) {
        let independent = |p: &&Parameter| !matches!(p.value, ParameterValue::Derived(_));
        let parameters = choices.parameters.iter().filter(independent).map(|p| p.name.as_str());
        let names = parameters.chain(choices.inputs.iter().map(|i| i.name.as_str()));
        let help = match self.nearest(name, names) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "declare it under `parameters` or `inputs`".into(),
        };
        self.diagnostics.error(at, format!("unknown parameter or input `{}`", shorten(name))).help(help);
    }

    /// Warns of what changes nothing.
    pub(super) fn check_sensitivity(&mut self, model: &Model) {
        let listed = std::mem::take(&mut self.listed);
        if listed.is_empty() || self.diagnostics.has_errors() {
            return; // what could not be read may name it
        }
        let influences = Influences::new(model);
        let mut known: Option<(Option<usize>, Influence)> = None;
        for Listed { case, at, what } in listed {
            // Entries of one list come one after the other.
            let influence = match &known {
                Some((of, influence)) if *of == case => influence,
                _ => {
                    let influence = match case.and_then(|i| model.cases.get(i)) {
                        Some(case) => influences.of_case(case),
                        None => influences.of_model(),
                    };
                    &known.insert((case, influence)).1
                }
            };
            let idle: Vec<SensitivityRef> = what.iter().copied().filter(|one| !influence.has(*one)).collect();
            let Some(&first) = idle.first() else { continue };
            let names = match (first, idle.len() == what.len()) {
                // The whole array.
                (SensitivityRef::Parameter { id, .. }, true) if what.len() > 1 => {
                    vec![model.parameters[id.index()].name.clone()]
                }
                _ => model.sensitivity_names(&idle),
            };
            let verb = if names.len() == 1 { "changes" } else { "change" };
            let names = list(names.iter().map(String::as_str));
            self.diagnostics
                .warning(at, format!("{names} {verb} neither the motion nor an objective"))
                .help("the derivatives by it are zero: leave it out of the list, or use it");
        }
    }
}

/// The independent parameters that a parameter is made of, in the order of the file.
fn independent(parameters: &[Parameter], id: ParameterId) -> Vec<ParameterId> {
    let mut seen = vec![false; parameters.len()];
    let mut open = vec![id];
    while let Some(id) = open.pop() {
        if std::mem::replace(&mut seen[id.index()], true) {
            continue;
        }
        if let ParameterValue::Derived(value) = &parameters[id.index()].value {
            value.for_each_parameter(&mut |p| open.push(p));
        }
    }
    let found = seen.iter().enumerate().filter(|(_, seen)| **seen).map(|(i, _)| ParameterId(i as u32));
    found.filter(|p| !matches!(parameters[p.index()].value, ParameterValue::Derived(_))).collect()
}
