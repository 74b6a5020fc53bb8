//! Start values of joints, in `joints` and in `cases`.

use super::expression::resolve::Context;
use super::keys;
use super::mirror::{coordinate_flips, negate, velocity_flips};
use super::node::{Entry, Kind, Node};
use super::reader::Reader;
use super::scope::Scope;
use crate::model::evaluate::Values;
use crate::model::{JointId, JointKind, Scalar, Start};

/// Where the Euler parameters and the angular velocity of a joint start in its coordinates and velocities.
fn rotation(kind: JointKind) -> Option<(usize, usize)> {
    match kind {
        JointKind::Spherical => Some((0, 0)),
        JointKind::Floating => Some((3, 3)),
        _ => None,
    }
}

/// Zero, with the Euler parameters of no rotation.
pub(super) fn zero_start(kind: JointKind) -> Start {
    let mut values = vec![Scalar::Number(0.0); kind.coordinates().len()];
    if let Some((e0, _)) = rotation(kind) {
        values[e0] = Scalar::Number(1.0);
    }
    Start {
        hold: vec![false; values.len()],
        values,
        rates: vec![Scalar::Number(0.0); kind.velocities().len()],
    }
}

/// How `rate`, `hold` or `angle_rate` among coordinates is written: beside the value of one of them.
fn beside_value(entry: &Entry, table: &keys::Keys, own: &[String]) -> Option<String> {
    let key = &*entry.key;
    let (name, field) = match key {
        "value" | "rate" | "hold" => (own.first()?, key),
        _ => (own.iter().find(|name| key.strip_suffix("_rate") == Some(name.as_str()))?, "rate"),
    };
    if table.keys.contains(&key) || own.iter().any(|name| name == key) {
        return None;
    }
    Some(match field {
        "rate" => format!("a rate stands beside the value: `{name}: {{value: …, rate: …}}`"),
        "hold" => format!("a coordinate is held beside its value: `{name}: {{value: …, hold: true}}`"),
        _ => format!("name the coordinate: `{name}: …`"),
    })
}

impl<'t> Reader<'t> {
    /// The start of a joint as its own entry gives it, mirrored if its element is.
    pub(super) fn read_start(
        &mut self,
        node: Option<&'t Node>,
        joint: JointId,
        kind: JointKind,
        scope: &Scope,
    ) -> Start {
        let mut start = zero_start(kind);
        let Some(node) = node else { return start };
        self.start_over(node, joint, kind, scope, &mut start);
        if let Some(normal) = scope.mirror {
            for (i, value) in start.values.iter_mut().enumerate() {
                if coordinate_flips(kind, i, normal) {
                    *value = negate(std::mem::replace(value, Scalar::Number(0.0)));
                }
            }
            for (i, rate) in start.rates.iter_mut().enumerate() {
                if velocity_flips(kind, i, normal) {
                    *rate = negate(std::mem::replace(rate, Scalar::Number(0.0)));
                }
            }
        }
        start
    }

    /// Overrides a start by a node.
    pub(super) fn start_over(
        &mut self,
        node: &'t Node,
        joint: JointId,
        kind: JointKind,
        scope: &Scope,
        start: &mut Start,
    ) {
        let names = match self.symbols.joints.get(joint.index()) {
            Some(symbol) => symbol.coordinates.clone(),
            None => return,
        };
        if names.is_empty() {
            self.diagnostics.error(node.span, "a fixed joint has no start values");
            return;
        }
        let Kind::Mapping(entries) = &node.kind else {
            if names.len() == 1 {
                self.one_coordinate(node, 0, scope, start);
            } else if !node.is_broken() {
                let example = match kind {
                    JointKind::Spherical => "{orientation: [1, 0, 0, 0]}".into(),
                    JointKind::Floating => "{position: [0, 0, 1], orientation: [1, 0, 0, 0]}".into(),
                    _ => format!("{{{}: 0.1}}", names[0]),
                };
                self.diagnostics
                    .error(node.span, format!("expected a mapping of coordinates, found {}", node.describe()))
                    .help(format!("for example `start: {example}`"));
            }
            return;
        };
        if names.len() == 1 && !entries.iter().any(|e| *e.key == *names[0]) {
            self.one_coordinate(node, 0, scope, start);
            return;
        }
        let none = keys::Keys { what: "the start of this joint", keys: &[], later: &[], hints: &[] };
        let (table, own) = match kind {
            JointKind::Spherical => (&keys::START_SPHERICAL, &names[..0]),
            JointKind::Floating => (&keys::START_FLOATING, &names[..3]),
            _ => (&none, &names[..]),
        };
        for entry in entries {
            if let Some(meant) = beside_value(entry, table, own) {
                self.diagnostics
                    .error(entry.key_span, format!("unknown key `{}` in {}", entry.key, table.what))
                    .help(meant);
                continue;
            }
            if !self.check_key(entry, table, own) {
                continue;
            }
            match own.iter().position(|n| **n == *entry.key) {
                Some(i) => self.one_coordinate(&entry.value, i, scope, start),
                None => self.rotation_field(entry, kind, scope, start),
            }
        }
    }

    /// A value, or `{value, rate, hold}`.
    fn one_coordinate(&mut self, node: &'t Node, i: usize, scope: &Scope, start: &mut Start) {
        let Kind::Mapping(_) = &node.kind else {
            if let Some(value) = self.start_scalar(node, scope) {
                start.values[i] = value;
            }
            return;
        };
        let Some(fields) = self.fields(node, node.span, &keys::START) else {
            return;
        };
        if let Some(value) = fields.value("value").and_then(|n| self.start_scalar(n, scope)) {
            start.values[i] = value;
        }
        if let Some(rate) = fields.value("rate").and_then(|n| self.start_scalar(n, scope)) {
            // Coordinates that are not Euler parameters come first, in the order of their velocities.
            start.rates[i] = rate;
        }
        if let Some(hold) = fields.value("hold").and_then(|n| self.boolean(n)) {
            start.hold[i] = hold;
        }
    }

    pub(super) fn start_scalar(&mut self, node: &Node, scope: &Scope) -> Option<Scalar> {
        let e = self.scalar(node, scope, Context::Parameters)?;
        self.default_scalar(node.span, &e, "the start value");
        Some(e)
    }

    /// The fields of spherical and floating joints that are not single coordinates.
    fn rotation_field(&mut self, entry: &'t Entry, kind: JointKind, scope: &Scope, start: &mut Start) {
        let Some((e0, wx)) = rotation(kind) else { return };
        let node = &*entry.value;
        match &*entry.key {
            "orientation" => {
                let Some((p, ..)) = self.list_of::<4>(node, scope, Context::Parameters) else {
                    return;
                };
                self.check_orientation(node, &p);
                start.values.splice(e0..e0 + 4, p);
            }
            "angular_velocity" => self.start_vector(node, scope, &mut start.rates, wx),
            "position" => self.start_vector(node, scope, &mut start.values, 0),
            "velocity" => self.start_vector(node, scope, &mut start.rates, 0),
            "hold" => {
                if let Some(hold) = self.boolean(node) {
                    start.hold.fill(hold);
                }
            }
            _ => {}
        }
    }

    fn check_orientation(&mut self, node: &Node, p: &[Scalar; 4]) {
        let values: &Values = &self.values;
        let Ok(numbers) = p.iter().map(|e| values.scalar(e)).collect::<Result<Vec<f64>, _>>() else {
            return;
        };
        let size: f64 = numbers.iter().map(|x| x * x).sum();
        if !size.is_finite() {
            self.diagnostics.error(node.span, "the orientation is not finite at the default parameters");
        } else if size == 0.0 {
            self.diagnostics
                .error(node.span, "the four Euler parameters of the orientation are all zero")
                .help("no rotation is [1, 0, 0, 0]");
        }
    }

    fn start_vector(&mut self, node: &Node, scope: &Scope, into: &mut Vec<Scalar>, first: usize) {
        if let Some((v, ..)) = self.list_of::<3>(node, scope, Context::Parameters) {
            for e in &v {
                self.default_scalar(node.span, e, "the start value");
            }
            into.splice(first..first + 3, v);
        }
    }
}
