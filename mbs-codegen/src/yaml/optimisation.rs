//! `optimisation`: problems that vary parameters of the model.

use super::expression::resolve::list;
use super::fields::Fields;
use super::keys;
use super::limits;
use super::load::shorten;
use super::names::{Unique, check_name};
use super::node::{Entry, Kind, Node, Style, Text};
use super::reader::Reader;
use super::sensitivity::Choices;
use crate::diagnostics::Span;
use crate::model::optimisation::{
    History, HistoryForm, Judged, JudgedError, Knots, Limit, Optimisation, OptimisationMethod, Scaling,
    Starts, Term, Unknown,
};
use crate::model::{Case, InputId, Objective, Output, SensitivityRef};
use std::collections::HashMap;
use std::rc::Rc;

/// What a problem may name.
#[derive(Clone, Copy)]
pub(super) struct Named<'m> {
    pub(super) choices: Choices<'m>,
    pub(super) objectives: &'m [Objective],
    pub(super) outputs: &'m [Output],
    pub(super) cases: &'m [Case],
}

impl<'t> Reader<'t> {
    /// Reads all problems.
    pub(super) fn read_optimisation(&mut self, file: &Fields<'t>, named: Named<'_>) -> Vec<Optimisation> {
        let mut problems = Vec::new();
        let Some(node) = file.value("optimisation") else { return problems };
        let mut names = Unique::default();
        for (count, entry) in self.entries(node, "problems").iter().enumerate() {
            if count >= limits::PROBLEMS {
                let message = format!("more than {} problems", limits::PROBLEMS);
                self.diagnostics.error(entry.key_span, message);
                break;
            }
            if keys::PROBLEM.keys.contains(&&*entry.key) && &*entry.key != "cases" {
                self.diagnostics
                    .error(entry.key_span, format!("`{}` stands outside of a problem", entry.key))
                    .help("every problem has a name: `optimisation: {best: {minimise: …, over: …}}`");
                break;
            }
            let diagnostics = &mut self.diagnostics;
            if !check_name(&entry.key, entry.key_span, "a problem", diagnostics)
                || !names.add(&entry.key, entry.key_span, "problem", diagnostics)
            {
                continue;
            }
            problems.extend(self.read_problem(entry, named));
        }
        problems
    }

    fn read_problem(&mut self, entry: &'t Entry, named: Named<'_>) -> Option<Optimisation> {
        let fields = self.fields(&entry.value, entry.key_span, &keys::PROBLEM)?;
        let cases = self.problem_cases(&fields, named);
        let (minimise, over) = (fields.require("minimise", self), fields.require("over", self));
        let minimise = minimise.map_or_else(Vec::new, |entry| self.terms(entry, named, &cases));
        let (over, histories) =
            over.map_or_else(Default::default, |entry| self.unknowns(entry, named.choices));
        let subject_to =
            fields.value("subject_to").map_or_else(Vec::new, |node| self.limits(node, named, &cases));
        let starts =
            fields.value("starts").and_then(|node| self.starts(node, named.choices, &over, &histories));
        let words = OptimisationMethod::ALL.map(|method| (method.keyword(), method));
        let method = fields.value("method").and_then(|node| self.word(node, "a method", &words));
        if let (Some(OptimisationMethod::Lbfgs), Some(entry)) = (method, fields.get("method"))
            && !subject_to.is_empty()
        {
            self.diagnostics
                .error(entry.value.span, "`lbfgs` keeps bounds of unknowns, but no constraints")
                .help("choose `slsqp` or `cobyla`, or leave the choice: `auto`");
        }
        let tolerance = fields.value("tolerance").and_then(|n| self.positive(n, "the tolerance"));
        let iterations =
            fields.value("iterations").and_then(|n| self.count(n, "the number of iterations", 1_000_000));
        Some(Optimisation {
            name: entry.key.to_string(),
            description: fields.value("description").and_then(|n| self.string(n)).unwrap_or_default(),
            minimise,
            over,
            histories,
            subject_to,
            cases,
            starts: starts.unwrap_or(Starts::Spread(1)),
            method: method.unwrap_or_default(),
            tolerance: tolerance.unwrap_or(Optimisation::TOLERANCE),
            iterations: iterations.unwrap_or(Optimisation::ITERATIONS),
            span: entry.key_span,
        })
    }

    /// A whole number from one on.
    fn count(&mut self, node: &Node, what: &str, most: usize) -> Option<usize> {
        let n = self.number(node)?;
        if n >= 1.0 && n <= most as f64 && n.fract() == 0.0 {
            return Some(n as usize);
        }
        self.diagnostics.error(node.span, format!("{what} must be a whole number from 1 to {most}, not {n}"));
        None
    }

    /// `[a, b]` or `{a: 1, b: 2}`: names with weights.
    fn problem_cases(&mut self, fields: &Fields<'t>, named: Named<'_>) -> Vec<(usize, f64)> {
        let Some(node) = fields.value("cases") else { return Vec::new() };
        let mut cases: Vec<(usize, f64)> = Vec::new();
        for (name, at, weight) in self.names(node, "cases") {
            let Some(case) = self.case_by_name(&name, at, named) else { continue };
            if cases.iter().any(|(other, _)| *other == case) {
                self.diagnostics.error(at, format!("case `{name}` is named twice"));
                continue;
            }
            let weight = weight.map_or(Some(1.0), |node| self.positive(node, "the weight of a case"));
            cases.extend(weight.map(|weight| (case, weight)));
        }
        cases
    }

    fn case_by_name(&mut self, name: &str, at: Span, named: Named<'_>) -> Option<usize> {
        let found = named.cases.iter().position(|case| case.name == name);
        if found.is_none() {
            self.unknown_name(at, "case", name, named.cases.iter().map(|case| case.name.as_str()));
        }
        found
    }

    /// An objective, or `max(…)` and `min(…)` of what has values along the run.
    fn judged_by_name(&mut self, name: &str, at: Span, named: Named<'_>) -> Option<Judged> {
        match Judged::by_name(name, named.objectives, named.outputs) {
            Ok(judged) => return Some(judged),
            Err(JudgedError::Unknown) => {
                self.unknown_name(at, "objective", name, named.objectives.iter().map(|o| o.name.as_str()));
            }
            Err(error) => {
                self.diagnostics
                    .error(at, format!("`{}`: {}", shorten(name), shorten(&error.to_string())))
                    .help("`max(…)` and `min(…)` take an objective with an integrand, or an output of one number");
            }
        }
        None
    }

    /// The sharpness of an extreme; nothing else has one.
    fn sharpness(&mut self, fields: &Fields<'t>, judged: &mut Judged) {
        let Some(entry) = fields.get("sharpness") else { return };
        match judged {
            Judged::Extreme { sharpness, .. } => {
                if let Some(given) = self.positive(&entry.value, "the sharpness") {
                    *sharpness = given;
                }
            }
            Judged::Objective(_) => {
                self.diagnostics
                    .error(entry.key_span, "only `max(…)` and `min(…)` have a sharpness")
                    .help("leave it out");
            }
        }
    }

    pub(super) fn unknown_name<'n>(
        &mut self,
        at: Span,
        what: &str,
        name: &str,
        names: impl Iterator<Item = &'n str> + Clone,
    ) {
        let help = match self.nearest(name, names.clone()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if names.clone().next().is_none() => format!("the model has no {what}s"),
            None => format!("there are {}", list(names)),
        };
        self.diagnostics.error(at, format!("unknown {what} `{}`", shorten(name))).help(help);
    }

    /// The names of a text, of a list, or the keys of a mapping with their values.
    pub(super) fn names(&mut self, node: &'t Node, what: &str) -> Vec<(Rc<str>, Span, Option<&'t Node>)> {
        match &node.kind {
            Kind::Scalar(text) if !node.is_null() => vec![(Rc::clone(&text.value), node.span, None)],
            Kind::Sequence(items) => {
                let mut names = Vec::new();
                for item in items {
                    match &item.kind {
                        Kind::Scalar(text) => names.push((Rc::clone(&text.value), item.span, None)),
                        _ => self.expected(item, "a name"),
                    }
                }
                names
            }
            Kind::Mapping(entries) => entries
                .iter()
                .map(|e| (Rc::clone(&e.key), e.key_span, Some(&*e.value).filter(|node| !node.is_null())))
                .collect(),
            _ => {
                self.expected(node, what);
                Vec::new()
            }
        }
    }

    /// What is minimised: an objective, a list, weights by name, or `{weight, case}` by name.
    fn terms(&mut self, entry: &'t Entry, named: Named<'_>, cases: &[(usize, f64)]) -> Vec<Term> {
        let names = self.names(&entry.value, "an objective, or weights of objectives");
        let mut terms = Vec::new();
        for (name, at, value) in names {
            let Some(judged) = self.judged_by_name(&name, at, named) else { continue };
            let mut term = Term { judged, weight: 1.0, case: None };
            match value {
                Some(node) if matches!(node.kind, Kind::Mapping(_)) => {
                    let Some(fields) = self.fields(node, at, &keys::TERM) else { continue };
                    if let Some(weight) = fields.value("weight").and_then(|n| self.number(n)) {
                        term.weight = weight;
                    }
                    self.sharpness(&fields, &mut term.judged);
                    term.case = self.only_case(&fields, named, cases);
                }
                Some(node) => term.weight = self.number(node).unwrap_or(1.0),
                None => {}
            }
            terms.push(term);
        }
        if terms.is_empty() && !self.diagnostics.has_errors() {
            self.diagnostics
                .error(entry.key_span, "nothing is minimised")
                .help("name an objective: `minimise: psi`");
        }
        terms
    }

    fn only_case(&mut self, fields: &Fields<'t>, named: Named<'_>, cases: &[(usize, f64)]) -> Option<usize> {
        let node = fields.value("case")?;
        let name = self.string(node)?;
        let case = self.case_by_name(&name, node.span, named)?;
        if !cases.iter().any(|(own, _)| *own == case) {
            self.diagnostics
                .error(node.span, format!("case `{name}` is not one of this problem"))
                .help(format!("list it: `cases: [{name}]`"));
            return None;
        }
        Some(case)
    }

    /// Bounds of objectives, by name: a number is the largest value, `[min, max]` both.
    fn limits(&mut self, node: &'t Node, named: Named<'_>, cases: &[(usize, f64)]) -> Vec<Limit> {
        let mut all = Vec::new();
        for entry in self.entries(node, "constraints") {
            let Some(judged) = self.judged_by_name(&entry.key, entry.key_span, named) else { continue };
            let mut limit = Limit { judged, min: None, max: None, case: None };
            match &entry.value.kind {
                Kind::Mapping(_) => {
                    let Some(fields) = self.fields(&entry.value, entry.key_span, &keys::LIMIT) else {
                        continue;
                    };
                    limit.min = fields.value("min").and_then(|n| self.number(n));
                    limit.max = fields.value("max").and_then(|n| self.number(n));
                    if let Some(equal) = fields.get("equal") {
                        if limit.min.is_some() || limit.max.is_some() {
                            self.diagnostics
                                .error(equal.key_span, "`equal` and a bound contradict each other")
                                .help("give one of them");
                            continue;
                        }
                        limit.min = self.number(&equal.value);
                        limit.max = limit.min;
                    }
                    limit.case = self.only_case(&fields, named, cases);
                    self.sharpness(&fields, &mut limit.judged);
                }
                Kind::Sequence(_) => (limit.min, limit.max) = self.interval(&entry.value),
                _ => limit.max = self.number(&entry.value),
            }
            self.check_interval(entry.value.span, &entry.key, limit.min, limit.max);
            if limit.min.is_none() && limit.max.is_none() && !self.diagnostics.has_errors() {
                self.diagnostics
                    .error(entry.key_span, format!("`{}` has no bound", entry.key))
                    .help("write `max: …`, `min: …` or `equal: …`");
            }
            all.push(limit);
        }
        all
    }

    /// `[min, max]`, either of which may be missing (`null`).
    fn interval(&mut self, node: &Node) -> (Option<f64>, Option<f64>) {
        let Kind::Sequence(items) = &node.kind else { return (None, None) };
        let [min, max] = items.as_slice() else {
            self.diagnostics
                .error(node.span, format!("expected two bounds, found {}", items.len()))
                .help("write `[min, max]`; `null` stands for no bound");
            return (None, None);
        };
        let mut bound = |node: &Node| if node.is_null() { None } else { self.number(node) };
        (bound(min), bound(max))
    }

    fn check_interval(&mut self, at: Span, name: &str, min: Option<f64>, max: Option<f64>) -> bool {
        let (Some(min), Some(max)) = (min, max) else { return true };
        if min > max {
            let message =
                format!("the bounds of `{}` are the wrong way round: {min} to {max}", shorten(name));
            self.diagnostics.error(at, message).help(format!("write `[{max}, {min}]`"));
        }
        min <= max
    }

    /// What is varied: a list of names, or bounds and scales by name.
    fn unknowns(&mut self, entry: &'t Entry, choices: Choices<'_>) -> (Vec<Unknown>, Vec<History>) {
        let (mut all, mut histories): (Vec<Unknown>, Vec<History>) = Default::default();
        let mut places: HashMap<SensitivityRef, Span> = HashMap::new();
        for (name, at, value) in self.names(&entry.value, "parameters with bounds") {
            let Some(found) = self.varied(&name, at, choices) else { continue };
            let mut history = None;
            if let [SensitivityRef::Input(input)] = found.as_slice() {
                history = self.history(&name, at, value, *input);
                if history.is_none() {
                    continue;
                }
            }
            let known: usize = all.len() + histories.iter().map(|history| history.knots.len()).sum::<usize>();
            if known + history.as_ref().map_or(found.len(), |history| history.knots.len())
                > limits::SENSITIVITY
            {
                let limit = limits::SENSITIVITY;
                let message = format!("a problem has at most {limit} unknowns");
                self.diagnostics.error(at, message).help("every element of an array and every knot counts");
                break;
            }
            if let Some(first) = found.iter().find_map(|one| places.get(one)) {
                let message = format!("`{}` is varied already, at line {}", shorten(&name), first.line);
                self.diagnostics.error(at, message).help("name it once");
                continue;
            }
            places.extend(found.iter().map(|one| (*one, at)));
            if let Some(history) = history {
                histories.push(history);
                continue;
            }
            let Some((min, max, scale)) = self.bounds(&name, at, value, found[0], choices) else { continue };
            all.extend(found.into_iter().map(|what| Unknown { what, min, max, scale }));
        }
        if all.is_empty() && histories.is_empty() && !self.diagnostics.has_errors() {
            self.diagnostics
                .error(entry.key_span, "nothing is varied")
                .help("name parameters: `over: {k: [10, 1000]}`");
        }
        (all, histories)
    }

    /// The history of an input: its form, its knots, bounds and values at the start.
    fn history(&mut self, name: &str, at: Span, value: Option<&'t Node>, input: InputId) -> Option<History> {
        let example = format!("write `{0}: {{history: spline, knots: 20, min: -1, max: 1}}`", shorten(name));
        let Some(node) = value.filter(|node| matches!(node.kind, Kind::Mapping(_))) else {
            self.diagnostics
                .error(at, format!("`{}` is an input: its history has a form and knots", shorten(name)))
                .help(example);
            return None;
        };
        let fields = self.fields(node, at, &keys::UNKNOWN)?;
        let form = match fields.value("history") {
            Some(node) => self.word(node, "the form of a history", &HistoryForm::WORDS)?,
            None => HistoryForm::Spline,
        };
        let least = if form == HistoryForm::Constant { 1 } else { 2 };
        let Some(entry) = fields.get("knots") else {
            self.diagnostics
                .error(at, format!("the history of `{}` has no knots", shorten(name)))
                .help(example);
            return None;
        };
        let knots = match &entry.value.kind {
            Kind::Sequence(items) => {
                let times: Vec<f64> = items.iter().filter_map(|item| self.number(item)).collect();
                if times.len() != items.len() {
                    return None;
                }
                if times.windows(2).any(|pair| pair[0] >= pair[1]) {
                    self.diagnostics.error(entry.value.span, "the times of knots must increase");
                    return None;
                }
                Knots::At(times)
            }
            _ => Knots::Count(self.count(&entry.value, "the number of knots", limits::SENSITIVITY)?),
        };
        if knots.len() < least {
            let message = format!("a `{}` history has at least {least} knots", form.keyword());
            self.diagnostics.error(entry.value.span, message);
            return None;
        }
        let (mut min, mut max) = (None, None);
        for (slot, key) in [(&mut min, "min"), (&mut max, "max")] {
            *slot = fields.value(key).and_then(|n| self.number(n));
        }
        if !self.check_interval(node.span, name, min, max) {
            return None;
        }
        let scale = fields.value("scale").map_or(Some(Scaling::Auto), |node| self.scale(node))?;
        if !self.check_scale(node.span, name, min, max, scale) {
            return None;
        }
        let start = match fields.get("start") {
            None => None,
            Some(entry) => match &entry.value.kind {
                Kind::Sequence(items) => {
                    let values: Vec<f64> = items.iter().filter_map(|item| self.number(item)).collect();
                    if values.len() != knots.len() && values.len() == items.len() {
                        let message = format!("{} knots have {} values", knots.len(), values.len());
                        self.diagnostics.error(entry.value.span, message);
                    }
                    Some(values).filter(|values| values.len() == knots.len())
                }
                _ => self.number(&entry.value).map(|value| vec![value; knots.len()]),
            },
        };
        Some(History { input, form, knots, min, max, scale, start })
    }

    /// The values of a name.
    fn varied(&mut self, name: &Rc<str>, at: Span, choices: Choices<'_>) -> Option<Vec<SensitivityRef>> {
        let text = Text { value: Rc::clone(name), style: Style::Plain, in_flow: false };
        let item = Node { span: at, kind: Kind::Scalar(text) };
        let (syntax, text) = self.syntax(&item, "a parameter")?;
        self.sensitivity_entry(&item, text, &syntax, choices).filter(|found| !found.is_empty())
    }

    /// Bounds and scale of an unknown; by default those of the parameter.
    fn bounds(
        &mut self,
        name: &str,
        at: Span,
        value: Option<&'t Node>,
        what: SensitivityRef,
        choices: Choices<'_>,
    ) -> Option<(Option<f64>, Option<f64>, Scaling)> {
        let SensitivityRef::Parameter { id, .. } = what else { return None };
        let own = choices.parameters.get(id.index())?;
        let (mut min, mut max, mut scale) = (None, None, Scaling::Auto);
        let mut place = at;
        match value.map(|node| (node, &node.kind)) {
            None => {}
            Some((node, Kind::Mapping(_))) => {
                let fields = self.fields(node, at, &keys::UNKNOWN)?;
                if let Some(entry) = ["history", "knots", "start"].iter().find_map(|key| fields.get(key)) {
                    self.diagnostics
                        .error(
                            entry.key_span,
                            format!("`{}` is a parameter: only inputs have a history", shorten(name)),
                        )
                        .help("values at the start are those of the model, or in `starts`");
                    return None;
                }
                min = fields.value("min").and_then(|n| self.number(n));
                max = fields.value("max").and_then(|n| self.number(n));
                if let Some(node) = fields.value("scale") {
                    scale = self.scale(node)?;
                }
                place = node.span;
            }
            Some((node, Kind::Sequence(_))) => {
                (min, max) = self.interval(node);
                place = node.span;
            }
            Some((node, _)) => {
                self.expected(node, "bounds `[min, max]` or a mapping");
                return None;
            }
        }
        for (given, allowed, word) in [(min, own.min, "least"), (max, own.max, "most")] {
            let (Some(given), Some(allowed)) = (given, allowed) else { continue };
            let outside = if word == "least" { given < allowed } else { given > allowed };
            if outside {
                self.diagnostics
                    .error(
                        place,
                        format!("parameter `{}` must be at {word} {allowed}, not {given}", own.name),
                    )
                    .help(format!("the bound is that of `{}` under `parameters`", own.name));
                return None;
            }
        }
        let (min, max) = (min.or(own.min), max.or(own.max));
        if !self.check_interval(place, name, min, max) {
            return None;
        }
        self.check_scale(place, name, min, max, scale).then_some((min, max, scale))
    }

    /// Whether a scale goes with the bounds.
    fn check_scale(
        &mut self,
        place: Span,
        name: &str,
        min: Option<f64>,
        max: Option<f64>,
        scale: Scaling,
    ) -> bool {
        if scale == Scaling::Logarithm && min.is_none_or(|min| min <= 0.0) {
            self.diagnostics
                .error(place, format!("`{}` cannot be scaled by logarithms: it may be zero", shorten(name)))
                .help("give it a positive lower bound");
            return false;
        }
        if scale == Scaling::Width && (min.is_none() || max.is_none()) {
            self.diagnostics
                .error(place, format!("`{}` has no width to be scaled by", shorten(name)))
                .help("give it two bounds");
            return false;
        }
        true
    }

    fn scale(&mut self, node: &Node) -> Option<Scaling> {
        if let Kind::Scalar(text) = &node.kind
            && text.value.starts_with(|c: char| c.is_ascii_digit() || c == '.' || c == '-')
        {
            return self.positive(node, "the scale").map(Scaling::Number);
        }
        self.word(node, "a scale", &Scaling::WORDS)
    }

    /// How many starts, or their values.
    fn starts(
        &mut self,
        node: &'t Node,
        choices: Choices<'_>,
        over: &[Unknown],
        histories: &[History],
    ) -> Option<Starts> {
        let Kind::Sequence(items) = &node.kind else {
            let n = self.count(node, "the number of starts", limits::STARTS)?;
            let open = over.iter().any(|unknown| unknown.min.is_none() || unknown.max.is_none())
                || histories.iter().any(|history| history.min.is_none() || history.max.is_none());
            if n > 1 && open {
                self.diagnostics
                    .error(node.span, "starts are spread over bounds, and an unknown has none")
                    .help("give every unknown two bounds, or list the starts: `starts: [{}, {k: 10}]`");
                return None;
            }
            return Some(Starts::Spread(n));
        };
        let mut starts = Vec::new();
        for (count, item) in items.iter().enumerate() {
            if count == limits::STARTS {
                self.diagnostics.error(item.span, format!("more than {} starts", limits::STARTS));
                break;
            }
            let mut start = Vec::new();
            for entry in self.entries(item, "start values") {
                let Some(found) = self.varied(&entry.key, entry.key_span, choices) else { continue };
                if matches!(found.as_slice(), [SensitivityRef::Input(_)]) {
                    self.diagnostics
                        .error(entry.key_span, format!("`{}` is an input", shorten(&entry.key)))
                        .help(
                            "the values of its history at the start stand under `over`: `start: [0, 1, 0]`",
                        );
                    continue;
                }
                if found.iter().any(|one| !over.iter().any(|u| u.what == *one)) {
                    self.diagnostics
                        .error(entry.key_span, format!("`{}` is not varied", shorten(&entry.key)))
                        .help("name it under `over`");
                    continue;
                }
                let values = match &entry.value.kind {
                    Kind::Sequence(values) => {
                        values.iter().filter_map(|value| self.number(value)).collect::<Vec<f64>>()
                    }
                    _ => self.number(&entry.value).map_or_else(Vec::new, |x| vec![x; found.len()]),
                };
                if values.len() != found.len() {
                    let (n, m) = (found.len(), values.len());
                    let message = format!("`{}` has {n} values, not {m}", shorten(&entry.key));
                    self.diagnostics.error(entry.value.span, message);
                    continue;
                }
                start.extend(found.into_iter().zip(values));
            }
            starts.push(start);
        }
        Some(if starts.is_empty() { Starts::Spread(1) } else { Starts::Given(starts) })
    }
}
