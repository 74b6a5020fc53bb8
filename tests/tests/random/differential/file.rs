//! A description as a model file.

use super::description::{
    Arrow, BodyId, Constraint, Coordinate, Force, Mark, Mechanism, Side, Signal, Units,
};
use super::vector::V3;
use std::fmt::Write;

/// Points and vectors of a body that elements name, body by body; ground is the last.
struct Names {
    points: Vec<Vec<V3>>,
    vectors: Vec<Vec<V3>>,
}

fn body(id: BodyId) -> String {
    id.map_or("ground".into(), |i| format!("b{i}"))
}

fn number(x: f64) -> String {
    if x < 0.0 { format!("({x:?})") } else { format!("{x:?}") }
}

fn list(v: V3) -> String {
    format!("{v:?}")
}

fn signal(s: Signal) -> String {
    let mut text = number(s.constant);
    if s.slope != 0.0 {
        let _ = write!(text, " + {}*t", number(s.slope));
    }
    if s.amplitude != 0.0 {
        let _ = write!(text, " + {}*sin({}*t)", number(s.amplitude), number(s.frequency));
    }
    text
}

impl Names {
    fn point(&mut self, m: Mark) -> String {
        let of = m.body.unwrap_or(self.points.len() - 1);
        self.points[of].push(m.at);
        format!("{}.q{}", body(m.body), self.points[of].len() - 1)
    }

    fn vector(&mut self, a: Arrow) -> String {
        let of = a.body.unwrap_or(self.vectors.len() - 1);
        self.vectors[of].push(a.along);
        format!("{}.n{}", body(a.body), self.vectors[of].len() - 1)
    }
}

fn side(s: &Side) -> String {
    format!(
        "{{body: {}, point: {}, axis: {}, reference: {}}}",
        body(s.body),
        list(s.point),
        list(s.axis),
        list(s.reference)
    )
}

impl Mechanism {
    fn coordinate(&self, c: Coordinate) -> String {
        format!("j{}.{}", c.joint, self.joints[c.joint].kind.coordinates()[c.index].0)
    }

    /// The model file. Outputs: position, velocity and acceleration of every watched point.
    pub(super) fn file(&self) -> String {
        self.file_in(Units { length: 1.0, mass: 1.0, time: 1.0 })
    }

    /// The same of a mechanism that was scaled: its steps follow its time.
    pub(super) fn file_in(&self, units: Units) -> String {
        let count = self.bodies.len();
        let mut names = Names { points: vec![Vec::new(); count + 1], vectors: vec![Vec::new(); count + 1] };
        let constraints = self.constraints_text(&mut names);
        let forces = self.forces_text(&mut names);
        let mut out = format!("mbs: 1\nname: differential\ngravity: {}\n", list(self.gravity));
        let _ = writeln!(out, "simulation: {{step: {:?}, end: {:?}}}", 1e-3 * units.time, units.time);
        out.push_str("parameters:\n  more: 1.0\nbodies:\n");
        let named = |letter: &str, all: &[V3]| -> String {
            let each = all.iter().enumerate().map(|(i, v)| format!("{letter}{i}: {}", list(*v)));
            each.collect::<Vec<_>>().join(", ")
        };
        let marks = |of: usize, watched: &[V3]| {
            let mut points = named("q", &names.points[of]);
            if !watched.is_empty() {
                let comma = if points.is_empty() { "" } else { ", " };
                points = format!("{points}{comma}{}", named("p", watched));
            }
            format!("    points: {{{points}}}\n    vectors: {{{}}}\n", named("n", &names.vectors[of]))
        };
        let _ = write!(out, "  ground:\n{}", marks(count, &[]));
        for (i, b) in self.bodies.iter().enumerate() {
            // The first body's mass and inertia are in proportion to the parameter.
            let more = if i == 0 { "more*" } else { "" };
            let entry = |x: f64| format!("\"{more}{}\"", number(x));
            let _ = writeln!(out, "  b{i}:\n    mass: {more}{:?}\n    com: {}", b.mass, list(b.com));
            let [[xx, xy, xz], [_, yy, yz], [_, _, zz]] = b.inertia.map(|row| row.map(entry));
            let _ = writeln!(
                out,
                "    inertia: {{xx: {xx}, yy: {yy}, zz: {zz}, xy: {xy}, xz: {xz}, yz: {yz}, unphysical: true}}"
            );
            out.push_str(&marks(i, &b.points));
        }
        out.push_str("joints:\n");
        for (i, j) in self.joints.iter().enumerate() {
            let kind = format!("{:?}", j.kind).to_lowercase();
            let _ = writeln!(out, "  j{i}:\n    type: {kind}\n    cut: {}", i >= count);
            let _ = writeln!(out, "    parent: {}\n    child: {}", side(&j.parent), side(&j.child));
            if i >= count {
                continue;
            }
            let one = j.start.len() == 1;
            let mut start: Vec<String> = Vec::new();
            for (q, (name, ..)) in j.start.iter().zip(j.kind.coordinates()) {
                let entry = format!("value: {:?}, rate: {:?}", q[0], q[1]);
                start.push(if one { entry } else { format!("{name}: {{{entry}}}") });
            }
            if j.kind.turns_freely() {
                start.push(format!("orientation: {:?}, angular_velocity: {:?}", j.turn.0, j.turn.1));
            }
            if !start.is_empty() {
                let _ = writeln!(out, "    start: {{{}}}", start.join(", "));
            }
        }
        if !constraints.is_empty() {
            let _ = write!(out, "constraints:\n{constraints}");
        }
        if !forces.is_empty() {
            let _ = write!(out, "forces:\n{forces}");
        }
        out.push_str("outputs:\n");
        for i in 0..count {
            for k in 0..3 {
                for what in ["pos", "vel", "acc"] {
                    let _ = writeln!(out, "  {what}{i}_{k}: {what}(b{i}.p{k})");
                }
            }
        }
        let last = count - 1;
        let _ = writeln!(out, "objectives:\n  miss: {{terminal: \"dot(pos(b{last}.p0), pos(b{last}.p0))\"}}");
        out.push_str("sensitivity: [more]\n");
        out
    }

    fn constraints_text(&self, names: &mut Names) -> String {
        use Constraint::*;
        let mut out = String::new();
        for (k, c) in self.constraints.iter().enumerate() {
            let text = match c {
                Distance { from, to, value } => format!(
                    "type: distance, from: {}, to: {}, value: \"{}\"",
                    names.point(*from),
                    names.point(*to),
                    signal(*value)
                ),
                Square { from, to, square } => {
                    let apart = format!("pos({}) - pos({})", names.point(*to), names.point(*from));
                    format!("type: equation, value: \"dot({apart}, {apart}) - {}\"", number(*square))
                }
                Angle { from, to, value } => format!(
                    "type: angle, from: {}, to: {}, value: \"{}\"",
                    names.vector(*from),
                    names.vector(*to),
                    signal(*value)
                ),
                Coincident { from, to } => {
                    format!("type: coincident, from: {}, to: {}", names.point(*from), names.point(*to))
                }
                OnPlane { point, at, normal } => format!(
                    "type: point_on_plane, point: {}, plane: {{point: {}, normal: {}}}",
                    names.point(*point),
                    names.point(*at),
                    names.vector(*normal)
                ),
                OnLine { point, at, along } => format!(
                    "type: point_on_line, point: {}, line: {{point: {}, direction: {}}}",
                    names.point(*point),
                    names.point(*at),
                    names.vector(*along)
                ),
                Coupling { terms, value } => {
                    let each = terms.iter().map(|(c, f)| format!("{}*{}", number(*f), self.coordinate(*c)));
                    let sum = each.collect::<Vec<_>>().join(" + ");
                    format!("type: coupling, value: \"{sum} - ({})\"", signal(*value))
                }
                Motion { coordinate, value } => format!(
                    "type: motion, coordinate: {}, value: \"{}\"",
                    self.coordinate(*coordinate),
                    signal(*value)
                ),
                Curved { from, to, along, bend, value } => {
                    let apart = format!("(pos({}) - pos({}))", names.point(*to), names.point(*from));
                    format!(
                        "type: equation, value: \"dot({apart}, dir({})) + {}*dot({apart}, {apart}) - ({})\"",
                        names.vector(*along),
                        number(*bend),
                        signal(*value)
                    )
                }
                Blade { point, along, value } => format!(
                    "type: nonholonomic, value: \"dot(vel({}), dir({})) - ({})\"",
                    names.point(*point),
                    names.vector(*along),
                    signal(*value)
                ),
                Spin { body: of, about, point, along, factor } => format!(
                    "type: nonholonomic, value: \"dot(omega(b{of}), dir({})) - {}*dot(vel({}), dir({}))\"",
                    names.vector(*about),
                    number(*factor),
                    names.point(*point),
                    names.vector(*along)
                ),
            };
            let _ = writeln!(out, "  k{k}: {{{text}}}");
        }
        out
    }

    fn forces_text(&self, names: &mut Names) -> String {
        use Force::*;
        let mut out = String::new();
        for (k, f) in self.forces.iter().enumerate() {
            let text = match f {
                Spring { from, to, stiffness, damping, natural } => format!(
                    "type: spring, from: {}, to: {}, stiffness: \"{}\", damping: {damping:?}, natural_length: \"{}\"",
                    names.point(*from),
                    names.point(*to),
                    signal(*stiffness),
                    signal(*natural)
                ),
                Law { from, to, linear, cubic, natural, damping } => {
                    let stretch = format!("(length - {})", number(*natural));
                    format!(
                        "type: spring, from: {}, to: {}, law: \"{linear:?}*{stretch} + {cubic:?}*{stretch}^3 + {damping:?}*rate\"",
                        names.point(*from),
                        names.point(*to)
                    )
                }
                Torsional { coordinate, stiffness, damping, natural } => format!(
                    "type: torsional_spring, coordinate: {}, stiffness: {stiffness:?}, damping: {damping:?}, natural_angle: \"{}\"",
                    self.coordinate(*coordinate),
                    signal(*natural)
                ),
                Push { at, value, amplitude, frequency, drag, frame, reaction } => {
                    let at = names.point(*at);
                    let wave = format!("sin({frequency:?}*t)");
                    let part = |i: usize| {
                        let v = frame.map_or(format!("vel({at})"), |b| format!("in(b{b}, vel({at}))"));
                        let v = format!("{v}.{}", ["x", "y", "z"][i]);
                        format!(
                            "\"{} + {}*{wave} - {drag:?}*norm(vel({at}))*{v}\"",
                            number(value[i]),
                            number(amplitude[i])
                        )
                    };
                    let mut text =
                        format!("type: force, at: {at}, value: [{}, {}, {}]", part(0), part(1), part(2));
                    if frame.is_some() {
                        let _ = write!(text, ", frame: {}", body(*frame));
                    }
                    if let Some(reaction) = reaction {
                        let _ = write!(text, ", reaction: {}", names.point(*reaction));
                    }
                    text
                }
                Torque { on, value, damping, frame, reaction } => {
                    let w = frame.map_or(format!("omega(b{on})"), |b| format!("in(b{b}, omega(b{on}))"));
                    let mut text =
                        format!("type: torque, on: b{on}, value: \"{} - {damping:?}*{w}\"", list(*value));
                    if frame.is_some() {
                        let _ = write!(text, ", frame: {}", body(*frame));
                    }
                    if let Some(reaction) = reaction {
                        let _ = write!(text, ", reaction: {}", body(*reaction));
                    }
                    text
                }
                Along { coordinate, value, cubic } => {
                    let q = self.coordinate(*coordinate);
                    format!(
                        "type: joint_force, coordinate: {q}, value: \"{} - {cubic:?}*{q}^3\"",
                        signal(*value)
                    )
                }
            };
            let _ = writeln!(out, "  f{k}: {{{text}}}");
        }
        out
    }
}
