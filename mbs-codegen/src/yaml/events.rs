//! `events`: what happens at instants that the motion determines.

use super::declare::Declarations;
use super::expression::resolve::{Context, list};
use super::fields::Fields;
use super::keys;
use super::load::shorten;
use super::mirror::negate;
use super::node::{Entry, Kind, Node};
use super::reader::Reader;
use super::scope::{Scope, Symbol};
use crate::diagnostics::Span;
use crate::model::{
    Activity, Direction, Event, EventCondition, Hold, ImpactLaw, InputId, Mode, Model, Scalar, SensitivityRef,
};

impl<'t> Reader<'t> {
    /// Reads all events, sorted by priority.
    pub(super) fn read_events(&mut self, declarations: &Declarations<'t>) -> Vec<Event> {
        let mut events = Vec::new();
        for unit in &declarations.units {
            for declared in &unit.events {
                let entry = declared.entry;
                let Some(fields) = self.fields(&entry.value, entry.key_span, &keys::EVENT) else { continue };
                if let Some(event) =
                    self.read_event(&fields, declared.name.clone(), entry.key_span, &unit.scope)
                {
                    events.push(event);
                }
            }
        }
        // A stable sort: of equal priorities the order of the file decides.
        events.sort_by_key(|event: &Event| std::cmp::Reverse(event.priority));
        events
    }

    fn read_event(&mut self, fields: &Fields<'t>, name: String, span: Span, scope: &Scope) -> Option<Event> {
        let when = fields.require("when", self)?;
        let mut event = Event {
            name,
            description: fields.value("description").and_then(|n| self.string(n)).unwrap_or_default(),
            when: self.scalar(&when.value, scope, Context::When)?,
            direction: Direction::Both,
            activity: Activity::default(),
            armed: fields.value("armed").and_then(|n| self.scalar(n, scope, Context::Force)),
            minimum_interval: 0.0,
            priority: 0,
            stop: false,
            conditions: Vec::new(),
            law: ImpactLaw::Plain,
            settings: Vec::new(),
            placements: Vec::new(),
            enters: Vec::new(),
            switch: None,
            judged: false,
            span,
        };
        let words = Direction::ALL.map(|direction| (direction.keyword(), direction));
        if let Some(word) = fields.value("direction").and_then(|n| self.word(n, "a direction", &words)) {
            event.direction = word;
        }
        if let Some(node) = fields.value("minimum_interval")
            && let Some(value) = self.number(node)
        {
            event.minimum_interval = value;
            if value < 0.0 {
                self.diagnostics.error(node.span, "the least time between two events must not be negative");
            }
        }
        if let Some(node) = fields.value("priority")
            && let Some(value) = self.number(node)
        {
            event.priority = value as i32;
            if f64::from(event.priority) != value {
                self.diagnostics.error(node.span, format!("a priority is a whole number, not {value}"));
            }
        }
        if let Some(node) = fields.value("in")
            && let Some(activity) = self.read_states(node, scope)
        {
            event.activity = activity;
        }
        if let Some(node) = fields.value("then") {
            self.read_actions(node, &mut event, &when.value, scope);
        }
        Some(event)
    }

    fn read_actions(&mut self, node: &'t Node, event: &mut Event, when: &'t Node, scope: &Scope) {
        let Some(actions) = self.fields(node, event.span, &keys::ACTIONS) else { return };
        // An event is always recorded.
        if let Some(record) = actions.value("record")
            && self.boolean(record) == Some(false)
        {
            self.diagnostics
                .error(record.span, "an event is always recorded")
                .help("leave `record` out, or write `record: true` where it is all that happens");
        }
        if let Some(stop) = actions.value("stop") {
            event.stop = self.boolean(stop).unwrap_or(false);
        }
        if let Some(impact) = actions.get("impact")
            && let Some(fields) = self.fields(&impact.value, impact.key_span, &keys::IMPACT)
        {
            // Without a gap of its own, the impact acts along the event's function.
            let gap = self.scalar(fields.value("gap").unwrap_or(when), scope, Context::Gap);
            let restitution = fields.require("restitution", self);
            let restitution = restitution.and_then(|entry| self.scalar(&entry.value, scope, Context::Force));
            if let (Some(gap), Some(restitution)) = (gap, restitution) {
                self.check_restitution(&fields, &restitution);
                event.conditions.push(EventCondition::Impact { gap, restitution });
                self.read_friction(&fields, event, scope);
            }
        }
        if let Some(resets) = actions.value("reset") {
            self.read_resets(resets, event, scope);
        }
        if let Some(settings) = actions.value("set") {
            self.read_settings(settings, event, scope);
        }
        if let Some(states) = actions.value("mode") {
            self.read_mode_change(states, event, scope);
        }
        if let (Some(resets), true) = (actions.get("reset"), event.law != ImpactLaw::Plain) {
            self.diagnostics
                .error(
                    resets.key_span,
                    format!(
                        "event `{}` has an impact with friction, which tells all velocities after it",
                        event.name
                    ),
                )
                .help("reset rates in another event");
        }
    }

    /// `friction` of an impact, the `slip` along which it acts, and its `law`.
    fn read_friction(&mut self, fields: &Fields<'t>, event: &mut Event, scope: &Scope) {
        let Some(friction) = fields.get("friction") else {
            for key in ["slip", "law"] {
                if let Some(entry) = fields.get(key) {
                    let message = format!("`{key}` says how friction acts, and the impact has no `friction`");
                    self.diagnostics
                        .error(entry.key_span, message)
                        .help("give its coefficient: `friction: 0.3`");
                }
            }
            return;
        };
        let Some(slip) = fields.get("slip") else {
            self.diagnostics
                .error(
                    friction.key_span,
                    format!("event `{}` does not say along what friction acts", event.name),
                )
                .help("give the rate of slip: `slip: vel(body.point).x`");
            return;
        };
        if let Kind::Sequence(_) = &slip.value.kind {
            self.diagnostics
                .error(slip.value.span, "friction acts along one direction, and this is a list of several")
                .help("give one rate; an impact that slips in a plane is not supported");
            return;
        }
        let rate = self.scalar(&slip.value, scope, Context::Rate);
        let coefficient = self.scalar(&friction.value, scope, Context::Force);
        let law = match fields.value("law") {
            Some(node) => self.word(node, "a law of impact", &ImpactLaw::WORDS),
            None => Some(ImpactLaw::Stronge),
        };
        if let (Some(rate), Some(coefficient), Some(law)) = (rate, coefficient, law) {
            if let Ok(mu) = self.values.scalar(&coefficient)
                && (mu < 0.0 || mu.is_nan())
            {
                self.diagnostics
                    .error(friction.value.span, format!("the friction is {mu}"))
                    .help("the coefficient is zero or more");
            }
            event.law = law;
            event.conditions.push(EventCondition::Slip { rate, friction: coefficient });
        }
    }

    /// Restitution at the default parameters, where it depends on nothing else.
    fn check_restitution(&mut self, fields: &Fields<'t>, restitution: &Scalar) {
        let Some(entry) = fields.get("restitution") else { return };
        if let Ok(e) = self.values.scalar(restitution)
            && !(0.0..=1.0).contains(&e)
        {
            self.diagnostics
                .error(entry.value.span, format!("the restitution is {e}"))
                .help("it is from 0 (nothing comes back) to 1 (no energy is lost)");
        }
    }

    fn read_resets(&mut self, node: &'t Node, event: &mut Event, scope: &Scope) {
        let Kind::Sequence(items) = &node.kind else {
            self.expected(node, "a list of resets, such as `- {rate: rate(joint), to: 0}`");
            return;
        };
        for item in items {
            let item: &'t Node = item;
            let Some(fields) = self.fields(item, item.span, &keys::RESET) else { continue };
            if let Some(position) = fields.get("position") {
                self.read_placement(&fields, position, event, scope);
                continue;
            }
            let (rate, to) = (fields.require("rate", self), fields.require("to", self));
            let rate = rate.and_then(|entry| self.scalar(&entry.value, scope, Context::Rate));
            let to = to.and_then(|entry| self.scalar(&entry.value, scope, Context::Force));
            if let (Some(rate), Some(to)) = (rate, to) {
                let same = |condition: &EventCondition| matches!(condition, EventCondition::Reset { rate: other, .. } if *other == rate);
                if event.conditions.iter().any(same) {
                    self.diagnostics
                        .error(item.span, format!("event `{}` sets the same rate twice", event.name))
                        .help("remove one of the two");
                    continue;
                }
                event.conditions.push(EventCondition::Reset { rate, to });
            }
        }
    }

    /// A reset of a coordinate.
    fn read_placement(&mut self, fields: &Fields<'t>, position: &'t Entry, event: &mut Event, scope: &Scope) {
        let at = position.value.span;
        if let Some(rate) = fields.get("rate") {
            self.diagnostics
                .error(rate.key_span, "a reset is of a `rate` or of a `position`")
                .help("make it two entries of the list, in two events");
        }
        let coordinate = self.reset_coordinate(position, scope);
        let to = fields.require("to", self);
        let to = to.and_then(|entry| self.scalar(&entry.value, scope, Context::Force));
        let (Some(coordinate), Some(to)) = (coordinate, to) else { return };
        if event.placements.iter().any(|(other, _)| *other == coordinate) {
            self.diagnostics
                .error(at, format!("event `{}` sets the same position twice", event.name))
                .help("remove one of the two");
            return;
        }
        let to = if self.flipped(coordinate, scope) { negate(to) } else { to };
        event.placements.push((coordinate, to));
    }

    fn read_settings(&mut self, node: &'t Node, event: &mut Event, scope: &Scope) {
        for entry in self.entries(node, "set") {
            let Some(Symbol::Input(id)) = scope.symbol(&entry.key).cloned() else {
                let name = shorten(&entry.key);
                let inputs = self.symbols.inputs.iter().map(String::as_str);
                let help = match self.nearest(&entry.key, inputs.clone()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None if self.symbols.inputs.is_empty() => {
                        format!("declare it: `inputs: {{{name}: 0}}`")
                    }
                    None => format!("the inputs are {}", list(inputs)),
                };
                self.diagnostics
                    .error(entry.key_span, format!("an event sets inputs, and `{name}` is none"))
                    .help(help);
                continue;
            };
            if let Some(value) = self.scalar(&entry.value, scope, Context::Force) {
                event.settings.push((id, value));
            }
        }
    }

    /// Inputs that events set belong to the events: nobody else changes them.
    pub(super) fn check_events(&mut self, model: &Model) {
        let Model { events, inputs, cases, sensitivity, .. } = model;
        let states: Vec<InputId> = model.modes.iter().flat_map(Mode::inputs).collect();
        let mut seen: Vec<InputId> = Vec::new();
        for event in events {
            if !(event.placements.is_empty() || event.conditions.is_empty() && event.enters.is_empty()) {
                self.diagnostics
                    .error(
                        event.span,
                        format!(
                            "event `{}` resets positions and changes velocities or modes at once",
                            event.name
                        ),
                    )
                    .help("let another event with the same function and another `priority` do the rest");
            }
            let adds =
                |id: &InputId| model.constraints.iter().any(|constraint| constraint.activity.names(*id));
            if event.law != ImpactLaw::Plain && event.enters.iter().any(adds) {
                self.diagnostics
                    .error(
                        event.span,
                        format!(
                            "event `{}` has an impact with friction and adds constraints at once",
                            event.name
                        ),
                    )
                    .help(
                        "let another event with the same function and a smaller `priority` enter the state",
                    );
            }
            for &(id, _) in &event.settings {
                // A case may start in another state.
                if seen.contains(&id) || states.contains(&id) {
                    continue;
                }
                seen.push(id);
                let Some(input) = inputs.get(id.index()) else { continue };
                let (name, by) = (&input.name, &event.name);
                if input.hold != Hold::Zero {
                    self.diagnostics
                        .error(
                            input.span,
                            format!("event `{by}` sets input `{name}`, which stays until the next event"),
                        )
                        .help("leave `hold` out");
                }
                for case in cases.iter().filter(|case| case.inputs.iter().any(|(other, _)| *other == id)) {
                    self.diagnostics
                        .error(
                            event.span,
                            format!(
                                "event `{by}` sets input `{name}`, to which case `{}` gives a signal",
                                case.name
                            ),
                        )
                        .help("take the signal from the case, or let the event set another input");
                }
                if sensitivity.contains(&SensitivityRef::Input(id)) {
                    self.diagnostics
                        .error(
                            event.span,
                            format!("event `{by}` sets input `{name}`, so there is no derivative by it"),
                        )
                        .help(format!("take `{name}` from `sensitivity`"));
                }
            }
        }
    }
}
