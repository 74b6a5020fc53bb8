//! Random mechanisms with loops and constraints as model files: every joint type in the tree and cut, every type of
//! constraint, variables, forces that read Euler parameters, geometry that depends on parameters.
//!
//! The constants of constraints and cut joints are fitted: all rows vanish at the start values and t = 0. For that the
//! tree without them is evaluated by the interpreter of bundles.

use crate::random_model::Random;
use mbs_codegen::bundle::interpret::{Arguments, run, scratch_len};
use mbs_codegen::program::{BundleKind, Options, Program};
use mbs_codegen::symbols::Group;
use std::fmt::Write;

/// What a random mechanism contains.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Number of bodies.
    pub bodies: usize,
    /// Joints beside those of the tree.
    pub closures: usize,
    /// Constraints of the file.
    pub constraints: usize,
    /// Whether nonholonomic ones are among them.
    pub nonholonomic: bool,
    /// Whether all constraints take few freedoms and hold at the start, so that the mechanism can run.
    pub runs: bool,
}

const JOINTS: [&str; 8] =
    ["revolute", "prismatic", "cardan", "cylindrical", "spherical", "planar", "floating", "fixed"];

/// The kinds of constraints the generator knows; the last four are nonholonomic.
pub const CONSTRAINTS: usize = 24;
const NONHOLONOMIC: usize = 4;
/// Kinds with one row, or two.
const SMALL: [usize; 11] = [0, 1, 2, 3, 6, 8, 9, 12, 13, 16, 18];

/// A number or three of them, fitted to the start: `@n@` in the text.
enum Fit {
    Scalar(String),
    Vector(String),
}

struct Body {
    head: String,
    points: Vec<(String, String)>,
    /// What is rigidly connected has one group; ground is group 0.
    group: usize,
}

struct Draft {
    r: Random,
    parameters: String,
    bodies: Vec<Body>,
    ground: Vec<(String, String)>,
    joints: String,
    /// Coordinates with one velocity of their own.
    coordinates: Vec<String>,
    /// Joints with Euler parameters.
    balls: Vec<String>,
    variables: String,
    constraints: String,
    forces: String,
    fits: Vec<Fit>,
}

/// The model file of a random mechanism.
///
/// A body on a slide moves along one axis only, and constraints that move it along another with time can never be met:
/// the reader refuses them, rightly, and another draw is taken.
pub fn random_closed(seed: u64, shape: Shape) -> String {
    for attempt in 0.. {
        let text = draw(seed, attempt, shape);
        match mbs_codegen::read("random.yaml", &text) {
            Err(problems) if problems.render("random.yaml", &text).contains("can never be met") => {}
            _ => return text,
        }
    }
    String::new()
}

fn draw(seed: u64, attempt: u64, shape: Shape) -> String {
    let mut draft = Draft::tree(seed, attempt, shape);
    let tree = format!("mbs: 1\n{}", draft.structure());
    for k in 0..shape.closures {
        draft.closing_joint(k, shape);
    }
    for k in 0..shape.constraints {
        let kind = if shape.nonholonomic && k + 1 == shape.constraints {
            CONSTRAINTS - NONHOLONOMIC + seed as usize % NONHOLONOMIC
        } else if shape.runs {
            SMALL[draft.r.below(SMALL.len())]
        } else {
            (seed as usize * 3 + k * 7) % (CONSTRAINTS - NONHOLONOMIC)
        };
        draft.constraint(k, kind);
    }
    draft.random_forces();
    let last = shape.bodies - 1;
    let gravity = list(draft.r.vector(10.0));
    let mut out = format!("mbs: 1\nname: closed_{seed}\ngravity: {gravity}\n");
    out.push_str("inputs:\n  push: 0.7\n  pull: {default: -0.2, hold: linear}\n");
    out.push_str(&draft.structure());
    if !draft.variables.is_empty() {
        let _ = write!(out, "variables:\n{}", draft.variables);
    }
    if !draft.constraints.is_empty() {
        let _ = write!(out, "constraints:\n{}", draft.constraints);
    }
    let _ = writeln!(out, "forces:\n{}outputs:\n  tip: pos(b{last}.tip)", draft.forces);
    let _ = writeln!(out, "  felt: in(b{last}, acc(b{last}.tip))\nobjectives:");
    let _ = writeln!(
        out,
        "  path: {{integrand: \"dot(vel(b{last}.tip), vel(b{last}.tip))\", terminal: norm(pos(b{last}.side))}}"
    );
    let _ = writeln!(out, "  shake: norm(acc(b{last}.tip))");
    draft.fitted(&tree, &out)
}

fn list(v: [f64; 3]) -> String {
    format!("[{:.6}, {:.6}, {:.6}]", v[0], v[1], v[2])
}

/// `ground` or `b0`, `b1`, …
fn name(body: Option<usize>) -> String {
    body.map_or("ground".into(), |i| format!("b{i}"))
}

impl Draft {
    fn tree(seed: u64, attempt: u64, shape: Shape) -> Draft {
        let mut r = Random::new(seed ^ 0xc105_ed00 ^ (attempt << 40));
        let home = ("home".into(), list(r.vector(1.0)));
        let mut draft = Draft {
            r,
            parameters: "  stiff: 40.0\n  pace: 0.9\n  curve: [0.5, -0.3, 0.8, 0.2]\n".into(),
            bodies: Vec::new(),
            ground: vec![home],
            joints: String::new(),
            coordinates: Vec::new(),
            balls: Vec::new(),
            variables: String::new(),
            constraints: String::new(),
            forces: String::new(),
            fits: Vec::new(),
        };
        for i in 0..shape.bodies {
            let parent = if i == 0 || draft.r.chance(0.2) { None } else { Some(draft.r.below(i)) };
            let kind = match (seed as usize + 3 * i + draft.r.below(2)) % JOINTS.len() {
                // Something must move; and bodies that float on others are dull.
                7 if i == 0 => 4,
                6 if parent.is_some() => 0,
                k => k,
            };
            draft.body(i, parent, JOINTS[kind] == "fixed");
            draft.joint(i, parent, JOINTS[kind]);
        }
        draft
    }

    /// A solid box, so that the inertia is one a body can have.
    fn body(&mut self, i: usize, parent: Option<usize>, fixed: bool) {
        let r = &mut self.r;
        let _ = writeln!(
            self.parameters,
            "  m{i}: {:.4}\n  l{i}: {:.4}",
            r.uniform(0.3, 5.0),
            r.uniform(0.2, 0.9)
        );
        let [a, b, c] = [(); 3].map(|()| r.uniform(0.1, 0.8));
        let (x, y, z) = ((b * b + c * c) / 12.0, (a * a + c * c) / 12.0, (a * a + b * b) / 12.0);
        let com = r.vector(0.3);
        let mut head =
            format!("    mass: m{i}\n    com: [l{i}*{:.4}, {:.4}, {:.4}]\n", com[0], com[1], com[2]);
        let axis = r.direction();
        let reference = r.direction_across(axis);
        let _ = writeln!(
            head,
            "    inertia: {{xx: m{i}*{x:.5}, yy: m{i}*{y:.5}, zz: m{i}*{z:.5}, frame: {{axis: {}, reference: {}}}}}",
            list(axis),
            list(reference)
        );
        // No mark is parallel to another by chance.
        let mark: [f64; 3] = std::array::from_fn(|k| if k == i % 3 { 1.0 } else { r.uniform(-0.8, 0.8) });
        let _ =
            writeln!(head, "    vectors: {{mark: [{:.6}, {:.6}*l{i}, {:.6}]}}", mark[0], mark[1], mark[2]);
        let points = vec![
            ("tip".into(), format!("[l{i}, {:.4}, 0.1]", r.uniform(-0.3, 0.3))),
            ("side".into(), list(r.vector(0.5))),
        ];
        let group = if fixed { parent.map_or(0, |p| self.bodies[p].group) } else { i + 1 };
        self.bodies.push(Body { head, points, group });
    }

    fn joint(&mut self, i: usize, parent: Option<usize>, kind: &str) {
        let r = &mut self.r;
        let point = match (parent, r.below(3)) {
            (Some(p), 0) => format!("[l{p}, 0, {:.4}]", r.uniform(-0.2, 0.2)),
            (Some(_), 1) => "tip".into(),
            _ => list(r.vector(0.8)),
        };
        let child_point = list(r.vector(0.3));
        let axis = r.direction();
        let across = r.direction_across(axis);
        let framed = r.chance(0.5) || kind == "planar";
        let mut side_axes = || {
            let axis = r.direction();
            let reference = r.direction_across(axis);
            format!(", axis: {}, reference: {}", list(axis), list(reference))
        };
        let (on_parent, on_child) = if framed { (side_axes(), side_axes()) } else { Default::default() };
        let on_joint = match kind {
            "spherical" | "floating" | "fixed" => String::new(),
            _ if framed => String::new(),
            "cardan" => format!("    axes: [{}, {}]\n", list(axis), list(across)),
            _ => format!("    axis: {}\n", list(axis)),
        };
        let joints = &mut self.joints;
        let _ = writeln!(joints, "  j{i}:\n    type: {kind}");
        let _ = writeln!(joints, "    parent: {{body: {}, point: {point}{on_parent}}}", name(parent));
        let _ = writeln!(joints, "    child: {{body: b{i}, point: {child_point}{on_child}}}\n    cut: false");
        joints.push_str(&on_joint);
        let single: &[&str] = match kind {
            "revolute" => &["angle"],
            "prismatic" => &["displacement"],
            "cardan" => &["angle1", "angle2"],
            "cylindrical" => &["displacement", "angle"],
            "planar" => &["x", "y", "angle"],
            "floating" => &["x", "y", "z"],
            _ => &[],
        };
        let mut start: Vec<String> = Vec::new();
        for c in single {
            let [value, rate] = [r.uniform(-1.0, 1.0), r.uniform(-1.0, 1.0)];
            let prefix = if single.len() == 1 { String::new() } else { format!("{c}: ") };
            let entry = format!("value: {value:.4}, rate: {rate:.4}");
            start.push(if single.len() == 1 { entry } else { format!("{prefix}{{{entry}}}") });
        }
        if matches!(kind, "spherical" | "floating") {
            let mut e: [f64; 4] = std::array::from_fn(|_| r.uniform(-1.0, 1.0));
            e[r.below(4)] += 1.2;
            // To all digits, since fitted expressions read them as they are.
            let length = e.iter().map(|x| x * x).sum::<f64>().sqrt();
            let e = e.map(|x| x / length);
            start.push(format!("orientation: {e:?}"));
            start.push(format!("angular_velocity: {}", list(r.vector(1.0))));
            self.balls.push(format!("j{i}"));
        }
        if !start.is_empty() {
            let _ = writeln!(joints, "    start: {{{}}}", start.join(", "));
        }
        self.coordinates.extend(single.iter().map(|c| format!("j{i}.{c}")));
    }

    /// Parameters, bodies and joints.
    fn structure(&self) -> String {
        let points = |points: &[(String, String)]| {
            let all: Vec<String> = points.iter().map(|(name, at)| format!("{name}: {at}")).collect();
            format!("    points: {{{}}}\n", all.join(", "))
        };
        let mut out = format!("parameters:\n{}bodies:\n  ground:\n{}", self.parameters, points(&self.ground));
        for (i, body) in self.bodies.iter().enumerate() {
            let _ = write!(out, "  b{i}:\n{}{}", body.head, points(&body.points));
        }
        let _ = write!(out, "joints:\n{}", self.joints);
        out
    }

    fn scalar(&mut self, expression: impl Into<String>) -> String {
        self.fits.push(Fit::Scalar(expression.into()));
        format!("@{}@", self.fits.len() - 1)
    }

    fn vector(&mut self, expression: impl Into<String>) -> String {
        self.fits.push(Fit::Vector(expression.into()));
        format!("@{}@", self.fits.len() - 1)
    }

    /// The text with all fitted numbers, from the tree at its start.
    fn fitted(&self, tree: &str, text: &str) -> String {
        let mut with_outputs = format!("{tree}outputs:\n  none: 0\n");
        for (i, fit) in self.fits.iter().enumerate() {
            let (Fit::Scalar(expression) | Fit::Vector(expression)) = fit;
            let _ = writeln!(with_outputs, "  f{i}: \"{expression}\"");
        }
        let mut values = outputs_at_start(&with_outputs).into_iter().skip(1);
        let mut text = text.to_owned();
        for (i, fit) in self.fits.iter().enumerate() {
            let mut next = || values.next().unwrap_or(f64::NAN);
            let number = match fit {
                Fit::Scalar(_) => format!("({:?})", next()),
                Fit::Vector(_) => format!("[{:?}, {:?}, {:?}]", next(), next(), next()),
            };
            text = text.replace(&format!("@{i}@"), &number);
        }
        text
    }

    /// A body that moves.
    fn moving(&mut self) -> usize {
        loop {
            let i = self.r.below(self.bodies.len());
            if self.bodies[i].group != 0 {
                return i;
            }
        }
    }

    /// A body that moves and another, or ground, that moves against it.
    fn pair(&mut self) -> (usize, Option<usize>) {
        let a = self.moving();
        let others: Vec<usize> =
            (0..self.bodies.len()).filter(|&i| self.bodies[i].group != self.bodies[a].group).collect();
        let b = if others.is_empty() || self.r.chance(0.25) {
            None
        } else {
            Some(others[self.r.below(others.len())])
        };
        (a, b)
    }

    /// A point of a body with a name of its own, where a vector expression is at the start.
    fn point_at(&mut self, body: Option<usize>, k: usize, position: &str) -> String {
        let on = name(body);
        let at = self.vector(format!("in({on}, {position} - pos({on}))"));
        let points = match body {
            Some(i) => &mut self.bodies[i].points,
            None => &mut self.ground,
        };
        points.push((format!("q{k}"), at));
        format!("{on}.q{k}")
    }

    /// A joint beyond the tree, closed at the start.
    fn closing_joint(&mut self, k: usize, shape: Shape) {
        let (a, b) = self.pair();
        let (parent, child) = if self.r.chance(0.5) { (Some(a), b) } else { (b, Some(a)) };
        let kind = JOINTS[self.r.below(JOINTS.len())];
        // Freedoms are few where the mechanism has to move.
        let kind = match kind {
            "fixed" | "prismatic" | "revolute" if shape.runs => "cardan",
            kind => kind,
        };
        let (on, to) = (name(parent), name(child));
        let point = list(self.r.vector(0.4));
        let axis = self.r.direction();
        let n = self.r.direction_across(axis);
        let along: f64 =
            n.iter().zip(axis).map(|(x, y)| x * y).sum::<f64>() / axis.iter().map(|x| x * x).sum::<f64>();
        let across: [f64; 3] = std::array::from_fn(|i| n[i] - along * axis[i]);
        let (axis, across) = (format!("{axis:?}"), format!("{across:?}"));
        let at = self.vector(format!("in({to}, pos({on}) + from({on}, {point}) - pos({to}))"));
        let (first, second) = if kind == "cardan" { (&across, &axis) } else { (&axis, &across) };
        let child_axis = self.vector(format!("in({to}, from({on}, {first}))"));
        let child_reference = self.vector(format!("in({to}, from({on}, {second}))"));
        let joints = &mut self.joints;
        let _ = writeln!(joints, "  c{k}:\n    type: {kind}\n    cut: true");
        let _ = writeln!(
            joints,
            "    parent: {{body: {on}, point: {point}, axis: {axis}, reference: {across}}}\n    child: {{body: {to}, point: {at}, axis: {child_axis}, reference: {child_reference}}}"
        );
    }

    /// A coordinate with a velocity of its own, or an Euler parameter.
    fn coordinate(&mut self) -> String {
        if self.coordinates.is_empty() || (!self.balls.is_empty() && self.r.chance(0.3)) {
            return self.euler_parameter().unwrap_or_default();
        }
        self.coordinates[self.r.below(self.coordinates.len())].clone()
    }

    fn euler_parameter(&mut self) -> Option<String> {
        let ball = self.balls.get(self.r.below(self.balls.len().max(1)))?.clone();
        Some(format!("{ball}.e{}", self.r.below(4)))
    }

    /// A velocity of any kind.
    fn velocity(&mut self) -> String {
        match (self.balls.is_empty(), self.r.below(3)) {
            (false, 0) => {
                let ball = &self.balls[self.r.below(self.balls.len())];
                format!("{ball}.w{}", ["x", "y", "z"][self.r.below(3)])
            }
            _ => format!("rate({})", self.coordinate()),
        }
    }

    fn variable(&mut self, k: usize, value: &str) -> String {
        let _ = writeln!(self.variables, "  s{k}: {{value: \"{value}\", rate: 0.2}}");
        let _ = writeln!(
            self.forces,
            "  stretch{k}: {{type: torsional_spring, coordinate: s{k}, stiffness: 7, damping: 0.3, natural_angle: 0.1}}"
        );
        format!("s{k}")
    }

    /// One constraint of the given kind, all of whose rows vanish at the start.
    fn constraint(&mut self, k: usize, kind: usize) {
        let (a, b) = self.pair();
        let (bname, amark) = (name(b), format!("dir(b{a}.mark)"));
        let (bpoint, bmark) = match b {
            Some(b) => (format!("b{b}.side"), format!("dir(b{b}.mark)")),
            None => ("ground.home".into(), "unit([0.3, 1, -0.4])".into()),
        };
        let apart = format!("pos(b{a}.tip) - pos({bpoint})");
        let text = match kind {
            0 => {
                let d = self.scalar(format!("norm({apart})/l{a}"));
                format!(
                    "type: distance, from: b{a}.tip, to: {bpoint}, value: \"{d}*l{a}*(1 + 0.1*sin(pace*t))\""
                )
            }
            1 => {
                let d = self.scalar(format!("norm({apart})"));
                let s = self.variable(k, &d);
                format!("type: distance, from: {bpoint}, to: b{a}.tip, value: {s}")
            }
            2 => {
                let value = self.scalar(format!("acos(dot({amark}, {bmark}))"));
                let to = b.map_or("[0.3, 1, -0.4]".into(), |b| format!("b{b}.mark"));
                format!("type: angle, from: b{a}.mark, to: {to}, value: \"{value} + 0.05*sin(t)\"")
            }
            3 => {
                let value = self.scalar(format!("acos(dot({amark}, unit([0.2, 1, 0.4])))"));
                format!("type: angle, from: \"[0.2, cos(pace*t), 0.4]\", to: b{a}.mark, value: \"{value}\"")
            }
            4 => {
                let at = self.vector(format!("pos(b{a}.tip)"));
                format!("type: coincident, from: b{a}.tip, to: \"{at} + [0.1*sin(t), 0, t^2/3]\"")
            }
            5 => {
                let to = self.point_at(b, k, &format!("pos(b{a}.tip)"));
                format!("type: coincident, from: b{a}.tip, to: {to}")
            }
            6 => {
                let from = self.point_at(Some(a), k, &format!("pos({bpoint}) - 0.3*{amark}"));
                format!("type: point_on_line, point: {bpoint}, line: {{point: {from}, direction: b{a}.mark}}")
            }
            7 => {
                // A line between points of two bodies moves against both.
                let world = self.vector(format!("pos({bpoint}) + 0.6*({apart}) - [0, 0.1, 0]"));
                format!(
                    "type: point_on_line, point: \"{world} + [0, 0.1*cos(t), 0]\", line: {{point: {bpoint}, direction: \"{apart}\", reference: {}}}",
                    list(self.r.direction())
                )
            }
            8 => {
                let at =
                    self.point_at(Some(a), k, &format!("pos({bpoint}) - cross({amark}, [0.2, 0.1, 0.3])"));
                format!("type: point_on_plane, point: {bpoint}, plane: {{point: {at}, normal: b{a}.mark}}")
            }
            9 => {
                let at = self.vector(format!("pos(b{a}.tip)"));
                format!(
                    "type: point_on_plane, point: b{a}.tip, plane: {{point: \"{at}\", normal: \"[0.4*sin(t), 0.3, 1]\"}}"
                )
            }
            10 => {
                let on =
                    self.point_at(b, k, &format!("pos(b{a}.tip) + 0.4*(pos(b{a}.side) - pos(b{a}.tip))"));
                format!("type: aligned, points: [b{a}.tip, b{a}.side, {on}]")
            }
            11 => {
                let c = self.moving();
                let on = self.point_at(Some(c), k, &format!("pos({bpoint}) + 0.7*({apart})"));
                let world = self.vector(format!("pos({bpoint}) - 0.2*({apart})"));
                format!(
                    "type: aligned, points: [{bpoint}, b{a}.tip, {on}, {world}], reference: {}",
                    list(self.r.direction())
                )
            }
            12 => {
                let (p, q) = (self.coordinate(), self.coordinate());
                let value = format!("{p} - 0.7*{q}*l{a} + 0.1*{q}^2*{p}");
                let c = self.scalar(&value);
                format!("type: coupling, value: \"{value} - {c} + 0.05*sin(2*t)\"")
            }
            13 => {
                let p = self.coordinate();
                let c = self.scalar(format!("{p}^2 + 0.3*{p}"));
                let s = self.variable(k, &format!("{c} - 0.8"));
                format!("type: coupling, value: \"{p}^2 + 0.3*{p}*cos(pace*t) - {s} - 0.8\"")
            }
            14 => {
                let p = self.coordinate();
                let c = self.scalar(&p);
                format!("type: motion, coordinate: {p}, value: \"{c} + 0.3*sin(pace*t)\"")
            }
            15 => {
                let at = self.vector(format!("pos(b{a}.tip)"));
                let axes = [", axes: [x, z]", "", ", axes: [y]"][self.r.below(3)];
                format!("type: motion, point: b{a}.tip, value: \"{at} + [0.1*sin(t), t*pace/9, t^2]\"{axes}")
            }
            16 => {
                let p = self.coordinate();
                let value = format!("dot({apart}, {amark}) + 0.2*{p}*pos(b{a}.side).y");
                let c = self.scalar(&value);
                format!("type: equation, value: \"{value} - {c}*cos(t)\"")
            }
            17 => {
                let value = format!("cross({amark}, {bmark}) + in({bname}, {apart})*l{a}");
                let c = self.vector(&value);
                format!("type: equation, value: \"{value} - {c}\"")
            }
            18 => {
                let p = self.euler_parameter().unwrap_or_else(|| self.coordinate());
                let value = format!("{p}*norm({apart}) + exp({p}/2)");
                let c = self.scalar(&value);
                format!(
                    "type: equation, value: \"{value} - {c} + 0.1*(spline(t, [0, 1, 2, 3], curve) - curve[0])\""
                )
            }
            19 => {
                let p = self.coordinate();
                let value = format!("atan2({p}, 1.5) + dot(from(b{a}, [0.1, 0.2, 0.3]), {bmark})*sin({p})");
                let c = self.scalar(&value);
                let s = self.variable(k, &c);
                format!("type: equation, value: \"{value} - {s}*exp(-t/5)\"")
            }
            20 => format!("type: nonholonomic, value: \"dot(vel(b{a}.tip), {amark})\""),
            21 => {
                let (v, w) = (self.velocity(), self.velocity());
                format!(
                    "type: nonholonomic, value: \"dot(omega(b{a}), {bmark}) + 0.3*{v}*pos(b{a}.tip).x - {w}*sin(t)\""
                )
            }
            22 => format!(
                "type: nonholonomic, value: \"in(b{a}, vel(b{a}.tip) - 0.4*vel({bpoint})) - [0.2*cos(t), 0, 0]\""
            ),
            _ => {
                let (v, p) = (self.velocity(), self.coordinate());
                format!("type: nonholonomic, value: \"{v}*(1 + {p}^2) - 0.2*cos(pace*t)*{p}\"")
            }
        };
        let _ = writeln!(self.constraints, "  k{k}: {{{text}}}");
    }

    fn random_forces(&mut self) {
        let (a, b) = self.pair();
        let (bname, c) = (name(b), self.moving());
        let forces = &mut self.forces;
        let _ = writeln!(
            forces,
            "  coil: {{type: spring, from: {bname}, to: b{a}.tip, stiffness: stiff, damping: 0.7, natural_length: 0.4*l{a}}}"
        );
        let _ = writeln!(
            forces,
            "  pump: {{type: spring, from: {bname}, to: b{a}.side, stiffness: 9 + 2*cos(pace*t), natural_length: 0.2 + 0.1*sin(3*t)}}"
        );
        let _ = writeln!(
            forces,
            "  strut: {{type: spring, from: ground.home, to: b{c}.side, law: 30*(length - 0.3) + 2*tanh(rate)}}"
        );
        let _ = writeln!(
            forces,
            "  wind: {{type: force, at: b{a}.side, reaction: {bname}, value: \"-0.3*norm(vel(b{a}.side))*vel(b{a}.side) + [push, 0, sin(2*t)]\"}}"
        );
        let _ = writeln!(
            forces,
            "  motor: {{type: torque, on: b{c}, frame: b{a}, value: \"[pull, 0.4*cos(t), spline(t, [0, 1, 2, 3], curve)] - 0.3*omega(b{a})\", reaction: {bname}}}"
        );
        if let Some(q) = self.coordinates.first() {
            let _ = writeln!(
                forces,
                "  stop: {{type: joint_force, coordinate: {q}, value: \"if({q} > 0.5, -20*({q} - 0.5)^1.5, 0) - step(rate({q}), 0, 0, 3, 1)\"}}"
            );
        }
        if let Some(ball) = self.balls.last() {
            let _ = writeln!(
                forces,
                "  gyro: {{type: torque, on: b{a}, value: \"[{ball}.e1*2, rate({ball}.e0)*{ball}.e3, {ball}.wx*{ball}.e2]\"}}"
            );
            let _ = writeln!(
                forces,
                "  jet: {{type: force, at: b{c}.tip, frame: b{c}, value: \"[tanh(rate({ball}.e2)), -0.2*{ball}.wz, {ball}.e0*push]\"}}"
            );
        }
    }
}

/// All outputs of a model without constraints at its start, t = 0.
fn outputs_at_start(text: &str) -> Vec<f64> {
    let (model, _) = mbs_codegen::read("tree.yaml", text)
        .unwrap_or_else(|problems| panic!("{}\n{text}", problems.render("tree.yaml", text)));
    let options = Options { bundles: vec![BundleKind::Outputs], ..Options::default() };
    let program = Program::new(&model, None, &options).expect("a small program");
    let call = |name: &str, arguments: &Arguments<'_, f64>| {
        let bundle = program.bundle(name).expect("a bundle");
        let mut scratch = vec![0.0; scratch_len(bundle)];
        let mut results: Vec<Vec<f64>> = bundle.results.iter().map(|r| vec![0.0; r.len as usize]).collect();
        let mut slices: Vec<&mut [f64]> = results.iter_mut().map(|r| &mut r[..]).collect();
        run(bundle, arguments, &mut scratch, &mut slices).expect("lengths");
        results
    };
    let parameters = program.defaults();
    let given = Arguments::new().with(Group::Parameters, &parameters);
    let prepared = call("prepare", &given).remove(0);
    let start = call("start", &given);
    let vd = vec![0.0; start[1].len()];
    let arguments = Arguments::new()
        .with(Group::Time, &[0.0])
        .with(Group::Z, &start[0])
        .with(Group::V, &start[1])
        .with(Group::Vd, &vd)
        .with(Group::Prepared, &prepared);
    call("outputs", &arguments).remove(0)
}

/// The mechanisms that the build script compiles: what stands where.
pub mod compiled {
    use super::{Shape, random_closed};
    use mbs_codegen::program::BundleKind;

    /// How many are random.
    pub const COUNT: u64 = 6;

    /// What constrained mechanisms have beside the bundles of trees.
    pub fn bundles(differentiated: bool) -> Vec<BundleKind> {
        let others = [
            BundleKind::ConstrainedDynamics,
            BundleKind::ConstraintCorrection,
            BundleKind::Reactions,
            BundleKind::Objectives,
        ];
        let mut all = [&BundleKind::COORDINATE_FORM[..], &others].concat();
        if differentiated {
            all.extend([BundleKind::SENSITIVITIES, BundleKind::JOINT_SENSITIVITIES].concat());
            all.extend([&BundleKind::PRODUCTS[..], &BundleKind::DERIVATIVES_OF_CORRECTIONS].concat());
        }
        all
    }

    /// Whether it has the bundles of derivatives, the largest ones.
    pub fn differentiated(index: u64) -> bool {
        [1, 2].contains(&index)
    }

    /// The model file: small ones, since the tangent of every coordinate costs seconds to compile.
    pub fn text(index: u64) -> String {
        let shape = Shape {
            bodies: 1 + (index % 2) as usize,
            closures: usize::from(index % 3 == 2),
            constraints: if index % 3 == 2 { 1 } else { 2 },
            nonholonomic: index % 2 == 1,
            runs: false,
        };
        let mut text = random_closed(3000 + index, shape);
        if differentiated(index) {
            text.push_str("sensitivity: [l0, \"curve[1]\", push]\n");
        }
        text
    }

    /// Whether its parameters are constants.
    pub fn frozen(index: u64) -> bool {
        index % 4 == 3
    }

    /// Whether bodies are referred to their centres of mass.
    pub fn about_com(index: u64) -> bool {
        index % 3 == 1
    }
}
