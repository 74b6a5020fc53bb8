//! Writes bodies and joints as the text of a model file.
//!
//! Input: a robot, its merged bodies, loops, and names. Output: YAML that the reader of model files accepts. Holds
//! afterwards: every number reads back as the same number; all text from the file is quoted.

use crate::frame::{Frame, IDENTITY, Vec3, across};
use crate::loops::Loop;
use crate::merge::{Bodies, Body};
use crate::names::Scope;
use crate::robot::{Joint, JointId, Kind, Limits, Robot};
use mbs_codegen::model::JointKind;
use mbs_codegen::model::moments::impossible;
use std::fmt::Write;

/// A loop with its sides in the frames of bodies.
pub(crate) struct Closure<'l> {
    pub(crate) of: &'l Loop,
    pub(crate) name: String,
    pub(crate) parent: (usize, Frame),
    pub(crate) child: (usize, Frame),
}

/// The contents of a model file.
pub(crate) struct ModelWriter<'r> {
    pub(crate) robot: &'r Robot,
    pub(crate) bodies: &'r Bodies,
    pub(crate) closures: &'r [Closure<'r>],
    /// Of the model.
    pub(crate) name: String,
    /// Of the file it comes from.
    pub(crate) file: &'r str,
    /// By body, ground first.
    pub(crate) body_names: Vec<String>,
    /// By joint of the file; `None` for joints that do not move.
    pub(crate) joint_names: Vec<Option<String>>,
    /// Of the joint that carries the root link, if it floats.
    pub(crate) base_name: String,
    /// Names of couplings, by joint that mimics.
    pub(crate) coupling_names: Vec<(JointId, String)>,
    /// Whether damping and friction are kept.
    pub(crate) dissipation: bool,
}

/// Rates below which friction decreases, so that it is smooth, and their units.
const ANGULAR: (&str, f64, &str) = ("friction_angular_rate", 0.01, "rad/s");
const LINEAR: (&str, f64, &str) = ("friction_linear_rate", 0.001, "m/s");

// ModelWriter to a string cannot fail: results of `write!` are dropped.
impl ModelWriter<'_> {
    /// The text.
    pub(crate) fn yaml(&self) -> String {
        let mut out = format!("# Imported from {}\n", quoted(self.file));
        let _ = writeln!(out, "mbs: 1\nname: {}", self.name);
        if let Some(name) = self.robot.name.as_ref().filter(|name| **name != self.name) {
            let _ = writeln!(out, "description: {}", quoted(name));
        }
        out.push_str("gravity: [0, 0, -9.81]\n");
        self.parameters(&mut out);
        out.push_str("\nbodies:\n");
        for number in 0..self.bodies.bodies.len() {
            self.body(&mut out, number);
        }
        out.push_str("\njoints:\n");
        if self.bodies.floats {
            let (base, body) = (&self.base_name, &self.body_names[1]);
            let _ = writeln!(out, "  {base}: {{type: floating, parent: ground, child: {body}}}");
        }
        for &id in &self.bodies.joints {
            self.joint(&mut out, id);
        }
        for closure in self.closures {
            self.closure(&mut out, closure);
        }
        self.forces(&mut out);
        self.couplings(&mut out);
        out
    }

    /// Joints with one coordinate, and their names.
    fn driven(&self) -> impl Iterator<Item = (&Joint, &str)> {
        let joints = self.bodies.joints.iter().map(|id| (&self.robot.joints[id.0], self.joint_name(*id)));
        joints.filter(|(joint, _)| joint.kind.has_one_coordinate())
    }

    fn joint_name(&self, id: JointId) -> &str {
        self.joint_names[id.0].as_deref().unwrap_or("")
    }

    fn parameters(&self, out: &mut String) {
        let mut rates: Vec<(&str, f64, &str)> = Vec::new();
        for rate in [ANGULAR, LINEAR] {
            if self.dissipation
                && self
                    .driven()
                    .any(|(joint, _)| joint.friction != 0.0 && friction_smoothing(joint.kind) == rate)
            {
                rates.push(rate);
            }
        }
        if !rates.is_empty() {
            out.push_str("\nparameters:\n");
        }
        for (name, value, unit) in rates {
            let _ = writeln!(
                out,
                "  {name}: {{value: {value}, min: 1e-9, unit: {unit}, description: rate at which friction is three quarters of itself}}"
            );
        }
    }

    fn body(&self, out: &mut String, number: usize) {
        let body = &self.bodies.bodies[number];
        let first = body.links.first().map(|(link, _)| &self.robot.links[link.0].name);
        let renamed = first.filter(|name| **name != self.body_names[number]);
        // Ground without links and points.
        if number == 0 && body.links.len() < 2 && renamed.is_none() {
            return;
        }
        let _ = writeln!(out, "  {}:", self.body_names[number]);
        if let Some(name) = renamed {
            let _ = writeln!(out, "    description: {}", quoted(&format!("link {name}")));
        }
        if number > 0 {
            let _ = writeln!(out, "    mass: {}", number_text(body.mass));
            if body.com != [0.0; 3] {
                let _ = writeln!(out, "    com: {}", list(&body.com));
            }
            inertia(out, body);
        }
        let (mut points, mut vectors) = (String::new(), String::new());
        let (mut point_names, mut vector_names) = (Scope::with(&["origin", "com"]), Scope::default());
        // The reader's limit per body.
        for (link, frame) in body.links.iter().skip(1).take(mbs_codegen::yaml::limits::PARTS / 2) {
            let name = &self.robot.links[link.0].name;
            let _ =
                writeln!(points, "      {}: {}", point_names.unique_name(name, "point"), list(&frame.origin));
            if frame.is_rotated() {
                for (axis, direction) in [("x", [1.0, 0.0, 0.0]), ("z", [0.0, 0.0, 1.0])] {
                    let name = vector_names.unique_name(&format!("{name}_{axis}"), axis);
                    let _ = writeln!(vectors, "      {name}: {}", list(&frame.direction(direction)));
                }
            }
        }
        for (key, lines) in [("points", points), ("vectors", vectors)] {
            if !lines.is_empty() {
                let _ = write!(out, "    {key}:\n{lines}");
            }
        }
    }

    fn joint(&self, out: &mut String, id: JointId) {
        let joint = &self.robot.joints[id.0];
        let (parent, link) = &self.bodies.place[joint.parent.0];
        let (child, _) = self.bodies.place[joint.child.0];
        let kind = model_kind(joint.kind);
        let name = self.joint_name(id);
        self.connect(
            out,
            name,
            kind,
            (*parent, link.compose(&joint.origin)),
            (child, Frame::IDENTITY),
            joint.axis,
        );
        let description = describe(joint, name);
        if !description.is_empty() {
            let _ = writeln!(out, "    description: {}", quoted(&description));
        }
    }

    fn closure(&self, out: &mut String, closure: &Closure<'_>) {
        let Loop { kind, axis, .. } = closure.of;
        self.connect(out, &closure.name, *kind, closure.parent, closure.child, *axis);
        out.push_str("    cut: true\n");
    }

    /// A joint between two frames, each on a body, which coincide when the joint is at zero.
    fn connect(
        &self,
        out: &mut String,
        name: &str,
        kind: JointKind,
        parent: (usize, Frame),
        child: (usize, Frame),
        axis: Vec3,
    ) {
        let _ = writeln!(out, "  {name}:\n    type: {}", kind.keyword());
        let needs_axis = !matches!(kind, JointKind::Fixed | JointKind::Spherical | JointKind::Floating);
        let (axis, reference) =
            if needs_axis { (axis, across(axis)) } else { ([0.0, 0.0, 1.0], [1.0, 0.0, 0.0]) };
        let sides = [("parent", parent), ("child", child)];
        // Frames that coincide with those of both bodies need no directions.
        let turned =
            sides.iter().any(|(_, (_, frame))| frame.rotation != IDENTITY) && kind != JointKind::Spherical;
        for (side, (body, frame)) in sides {
            let body = &self.body_names[body];
            let mut fields = Vec::new();
            if frame.origin != [0.0; 3] {
                fields.push(format!("point: {}", list(&frame.origin)));
            }
            if turned {
                fields.push(format!("axis: {}", list(&frame.direction(axis))));
                fields.push(format!("reference: {}", list(&frame.direction(reference))));
            }
            let _ = if fields.is_empty() {
                writeln!(out, "    {side}: {body}")
            } else {
                writeln!(out, "    {side}: {{body: {body}, {}}}", fields.join(", "))
            };
        }
        if needs_axis && !turned {
            let _ = writeln!(out, "    axis: {}", list(&axis));
            if kind == JointKind::Planar {
                let _ = writeln!(out, "    reference: {}", list(&reference));
            }
        }
    }

    fn forces(&self, out: &mut String) {
        let mut lines = String::new();
        let mut names = Scope::default();
        for (joint, name) in self.driven().filter(|_| self.dissipation) {
            let coordinate = coordinate(joint.kind);
            if joint.damping != 0.0 {
                let force = names.unique_name(&format!("{name}_damping"), "force");
                let damping = number_text(joint.damping);
                let _ = writeln!(
                    lines,
                    "  {force}: {{type: torsional_spring, coordinate: {name}.{coordinate}, damping: {damping}}}"
                );
            }
            if joint.friction != 0.0 {
                let force = names.unique_name(&format!("{name}_friction"), "force");
                let (friction, (rate, ..)) = (number_text(-joint.friction), friction_smoothing(joint.kind));
                let value = format!("{friction}*tanh(rate({name}.{coordinate})/{rate})");
                let _ = writeln!(
                    lines,
                    "  {force}: {{type: joint_force, coordinate: {name}.{coordinate}, value: {value}}}"
                );
            }
        }
        if !lines.is_empty() {
            let _ = write!(out, "\nforces:\n{lines}");
        }
    }

    /// 0 = position − multiplier · (position of the other) − offset
    fn couplings(&self, out: &mut String) {
        if !self.coupling_names.is_empty() {
            out.push_str("\nconstraints:\n");
        }
        for (id, coupling) in &self.coupling_names {
            let joint = &self.robot.joints[id.0];
            let Some(mimic) = joint.mimic else { continue };
            let mut value = format!("{}.{}", self.joint_name(*id), coordinate(joint.kind));
            let mut subtract = |factor: f64, what: &str| {
                if factor != 0.0 {
                    let sign = if factor > 0.0 { '-' } else { '+' };
                    let size = number_text(factor.abs());
                    let size = if size == "1" && !what.is_empty() { String::new() } else { size };
                    let times = if size.is_empty() || what.is_empty() { "" } else { "*" };
                    let _ = write!(value, " {sign} {size}{times}{what}");
                }
            };
            // A joint that does not move is at zero.
            if let Some(other) = &self.joint_names[mimic.joint.0] {
                let kind = self.robot.joints[mimic.joint.0].kind;
                subtract(mimic.multiplier, &format!("{other}.{}", coordinate(kind)));
            }
            subtract(mimic.offset, "");
            let _ = writeln!(out, "  {coupling}: {{type: coupling, value: {value}}}");
        }
    }
}

fn inertia(out: &mut String, body: &Body) {
    let entries = body.inertia;
    let [xx, yy, zz, xy, xz, yz] = entries.map(number_text);
    let unphysical = impossible(entries).is_some();
    if entries == [0.0; 6] {
        return;
    }
    if body.axes.is_none() && !unphysical {
        let diagonal = entries[3..] == [0.0; 3];
        let products = if diagonal { String::new() } else { format!(", {xy}, {xz}, {yz}") };
        let _ = writeln!(out, "    inertia: [{xx}, {yy}, {zz}{products}]");
        return;
    }
    let _ = writeln!(out, "    inertia:");
    let _ = writeln!(
        out,
        "      xx: {xx}\n      yy: {yy}\n      zz: {zz}\n      xy: {xy}\n      xz: {xz}\n      yz: {yz}"
    );
    if let Some(frame) = &body.axes {
        let (axis, reference) = (frame.direction([0.0, 0.0, 1.0]), frame.direction([1.0, 0.0, 0.0]));
        let _ = writeln!(out, "      frame: {{axis: {}, reference: {}}}", list(&axis), list(&reference));
    }
    if unphysical {
        out.push_str("      unphysical: true\n");
    }
}

fn model_kind(kind: Kind) -> JointKind {
    match kind {
        Kind::Revolute | Kind::Continuous => JointKind::Revolute,
        Kind::Prismatic => JointKind::Prismatic,
        Kind::Fixed => JointKind::Fixed,
        Kind::Floating => JointKind::Floating,
        Kind::Planar => JointKind::Planar,
    }
}

fn coordinate(kind: Kind) -> &'static str {
    if kind == Kind::Prismatic { "displacement" } else { "angle" }
}

fn friction_smoothing(kind: Kind) -> (&'static str, f64, &'static str) {
    if kind == Kind::Prismatic { LINEAR } else { ANGULAR }
}

/// The joint's name in the file, if it differs, and its limits.
fn describe(joint: &Joint, name: &str) -> String {
    let mut parts = Vec::new();
    if joint.name != name {
        parts.push(format!("joint {}", joint.name));
    }
    let (length, force) = if joint.kind == Kind::Prismatic { ("m", "N") } else { ("rad", "N m") };
    let Limits { lower, upper, velocity, effort } = joint.limits;
    // A continuous joint has no limits, whatever the file says.
    if joint.kind != Kind::Continuous {
        match (lower, upper) {
            (Some(lower), Some(upper)) => parts.push(format!("from {lower} to {upper} {length}")),
            (Some(lower), None) => parts.push(format!("from {lower} {length}")),
            (None, Some(upper)) => parts.push(format!("to {upper} {length}")),
            (None, None) => {}
        }
    }
    parts.extend(velocity.map(|v| format!("at most {v} {length}/s")));
    parts.extend(effort.map(|f| format!("at most {f} {force}")));
    parts.join(", ")
}

/// The shortest text that reads back as the same number.
fn number_text(x: f64) -> String {
    if x == 0.0 {
        return "0".into();
    }
    let text = format!("{x:?}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_string)
}

fn list(numbers: &[f64]) -> String {
    let texts: Vec<String> = numbers.iter().map(|x| number_text(*x)).collect();
    format!("[{}]", texts.join(", "))
}

/// A text between quotes, of bounded length, in ASCII.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars().take(300) {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            ' '..='~' => out.push(c),
            c => {
                let _ = write!(out, "\\U{:08x}", c as u32);
            }
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_back() {
        for x in [0.1, 1.0, -3.0, 1e-7, 1.0 / 3.0, 1e22, -2.5e-300, f64::MAX, f64::MIN_POSITIVE] {
            assert_eq!(number_text(x).parse::<f64>().ok(), Some(x));
        }
        assert_eq!([number_text(1.0), number_text(-0.0), number_text(0.25)], ["1", "0", "0.25"]);
    }

    #[test]
    fn texts_are_quoted() {
        assert_eq!(quoted("a \"b\" \\ \n é"), r#""a \"b\" \\ \U0000000a \U000000e9""#);
    }
}
