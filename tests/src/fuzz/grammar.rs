//! Files in the shape of the format: every section, every key, mostly of the right type and mostly with names that
//! exist, so that they get far into the generator before anything is wrong, if anything is.

use super::FREE_TEXTS;
use super::expression::{Expressions, Names, Place};
use super::numbers::number;
use super::tree::Tree;
use crate::random_model::Random;
use mbs_codegen::model::Integrator;

/// Names that mean something to Rust, to the generated module or to the format.
pub const HOSTILE_NAMES: [&str; 44] = [
    "type",
    "self",
    "Self",
    "fn",
    "crate",
    "super",
    "mod",
    "impl",
    "async",
    "gen",
    "try",
    "_",
    "__",
    "S",
    "NQ",
    "NV",
    "NP",
    "Model",
    "Parameters",
    "m",
    "rt",
    "w",
    "p",
    "c",
    "u",
    "z",
    "v",
    "at",
    "values",
    "y",
    "parameters",
    "prepared",
    "Default",
    "Result",
    "Ok",
    "f64",
    "usize",
    "str",
    "marker",
    "coordinate",
    "DIMS",
    "BOUNDS",
    "to_array",
    "from_array",
];

const JOINTS: [(&str, &[&str]); 8] = [
    ("revolute", &["angle"]),
    ("prismatic", &["displacement"]),
    ("cardan", &["angle1", "angle2"]),
    ("cylindrical", &["displacement", "angle"]),
    ("spherical", &[]),
    ("planar", &["x", "y", "angle"]),
    ("floating", &["x", "y", "z"]),
    ("fixed", &[]),
];

struct Grammar<'a> {
    r: &'a mut Random,
    names: Names,
    inputs: Vec<String>,
    /// Probability of an extreme number.
    extreme: f64,
    /// Deepest expression.
    depth: usize,
}

/// A file. The cases it may have are called `c0` and `c1`.
pub fn text(r: &mut Random) -> String {
    let extreme = [0.0, 0.0, 0.0, 0.01, 0.1][r.below(5)];
    let depth = [1, 1, 2, 3, 4][r.below(5)];
    let mut grammar = Grammar { r, names: Names::default(), inputs: Vec::new(), extreme, depth };
    let mut tree = grammar.file();
    let r = grammar.r;
    if r.chance(0.25) {
        for _ in 0..1 + r.below(3) {
            tree.damage(r);
        }
    }
    tree.print(r)
}

impl Grammar<'_> {
    fn file(&mut self) -> Tree {
        let parameters = self.parameters();
        let inputs = self.inputs();
        let definitions = self.r.chance(0.2).then(|| self.definitions());
        let bodies = match self.r.below(200) {
            0 => 8 + self.r.below(12),
            1..20 => 3,
            n => 1 + n % 2,
        };
        let (bodies, joints) = self.mechanism("b", bodies);
        let variables = self.r.chance(0.15).then(|| self.variables());
        let constraints = (variables.is_some() || self.r.chance(0.2)).then(|| self.constraints());
        // Inputs are not for geometry and constraints.
        self.names.scalars.extend(self.inputs.iter().cloned());
        let forces = self.forces();
        let outputs = self.outputs();
        let objectives = self.r.chance(0.2).then(|| self.objectives());
        let (elements, instances) = if self.r.chance(0.15) { self.elements() } else { (None, None) };
        let optional = |r: &mut Random, tree: Tree| r.chance(0.8).then_some(tree);
        Tree::map([
            ("mbs", Some(Tree::Plain("1".into()))),
            ("name", self.r.chance(0.5).then(|| self.name(0))),
            ("description", self.free_text(0.3)),
            ("gravity", self.r.chance(0.8).then(|| self.vector(Place::Parameters))),
            ("parameters", Some(parameters)),
            ("inputs", Some(inputs)),
            ("definitions", definitions),
            ("elements", elements),
            ("instances", instances),
            ("bodies", Some(bodies)),
            ("joints", Some(joints)),
            ("variables", variables),
            ("forces", optional(self.r, forces)),
            ("constraints", constraints),
            ("outputs", optional(self.r, outputs)),
            ("objectives", objectives),
            ("sensitivity", self.r.chance(0.3).then(|| self.sensitivity())),
            ("simulation", self.r.chance(0.3).then(|| self.simulation())),
            ("cases", self.r.chance(0.3).then(|| self.cases())),
        ])
    }

    fn free_text(&mut self, probability: f64) -> Option<Tree> {
        self.r.chance(probability).then(|| Tree::Quoted(FREE_TEXTS[self.r.below(FREE_TEXTS.len())].into()))
    }

    fn plain(&mut self) -> String {
        let i = self.r.below(HOSTILE_NAMES.len());
        HOSTILE_NAMES[i].into()
    }

    fn name(&mut self, number: usize) -> Tree {
        Tree::Plain(if self.r.chance(0.7) { self.plain() } else { format!("name_{number}") })
    }

    /// A name of its own, a hostile one at times (which another may have already).
    fn new_name(&mut self, stem: &str, number: usize) -> String {
        if self.r.chance(0.25) { self.plain() } else { format!("{stem}{number}") }
    }

    fn number(&mut self) -> Tree {
        Tree::Plain(number(self.r, self.extreme))
    }

    fn expressions(&mut self, place: Place) -> Expressions<'_> {
        Expressions { r: self.r, names: &self.names, place, extreme: self.extreme }
    }

    fn scalar(&mut self, place: Place) -> Tree {
        // What has no value is refused at once where it is known to have none; few may try.
        if self.r.chance(if place == Place::Parameters { 0.9 } else { 0.5 }) {
            return self.number();
        }
        let depth = self.r.below(self.depth + 1);
        Tree::Quoted(self.expressions(place).scalar(depth))
    }

    fn vector(&mut self, place: Place) -> Tree {
        if self.r.chance(if place == Place::Parameters { 0.03 } else { 0.3 }) {
            let depth = self.r.below(self.depth + 1);
            return Tree::Quoted(self.expressions(place).vector(depth));
        }
        Tree::List((0..3).map(|_| self.scalar(place)).collect())
    }

    /// A direction, mostly along one axis.
    fn direction(&mut self) -> Tree {
        self.directions()[0].clone()
    }

    /// Two directions that are not parallel, mostly.
    fn directions(&mut self) -> [Tree; 2] {
        let first = self.r.below(3);
        let second = (first + 1 + self.r.below(2)) % 3;
        [first, second].map(|along| {
            let mut v = ["0", "0", "0"].map(String::from);
            v[along] = if self.r.chance(self.extreme) { number(self.r, 1.0) } else { "1".into() };
            if self.r.chance(0.2) {
                v[(along + 1) % 3] = number(self.r, self.extreme);
            }
            Tree::List(v.map(Tree::Plain).into())
        })
    }

    fn parameters(&mut self) -> Tree {
        let mut entries = Vec::new();
        for i in 0..self.r.below(6) {
            let name = self.new_name("p", i);
            let value = match self.r.below(5) {
                0 => {
                    let n = match self.r.below(100) {
                        0 => 300,
                        n => 1 + n % 6,
                    };
                    let values = (0..n).map(|_| self.number()).collect();
                    self.names.arrays.push(name.clone());
                    entries.push((name, Tree::List(values)));
                    continue;
                }
                1 => Tree::map([
                    ("value", Some(self.number())),
                    ("min", self.r.chance(0.3).then(|| Tree::Plain("-1e6".into()))),
                    ("max", self.r.chance(0.3).then(|| Tree::Plain("1e6".into()))),
                    ("unit", self.free_text(0.4)),
                    ("description", self.free_text(0.4)),
                ]),
                2 => self.scalar(Place::Parameters),
                _ => self.number(),
            };
            self.names.scalars.push(name.clone());
            entries.push((name, value));
        }
        Tree::Map(entries)
    }

    fn inputs(&mut self) -> Tree {
        let mut entries = Vec::new();
        for i in 0..self.r.below(3) {
            let name = self.new_name("u", i);
            let value = if self.r.chance(0.5) {
                self.number()
            } else {
                Tree::map([
                    ("default", self.r.chance(0.7).then(|| self.number())),
                    ("hold", Some(Tree::Plain(["zero", "linear", "signal"][self.r.below(3)].into()))),
                    ("unit", self.free_text(0.4)),
                    ("description", self.free_text(0.4)),
                ])
            };
            self.inputs.push(name.clone());
            entries.push((name, value));
        }
        Tree::Map(entries)
    }

    /// Numbers that go by a name; one may name those before it.
    fn definitions(&mut self) -> Tree {
        let mut entries = Vec::new();
        for i in 0..1 + self.r.below(4) {
            let name = self.new_name("d", i);
            let value = self.scalar(Place::Parameters);
            self.names.scalars.push(name.clone());
            entries.push((name, value));
        }
        Tree::Map(entries)
    }

    /// Bodies and the joints that hold them.
    fn mechanism(&mut self, stem: &str, count: usize) -> (Tree, Tree) {
        let (mut bodies, mut joints) = (Vec::new(), Vec::new());
        let mut parents = vec!["ground".to_string()];
        for i in 0..count {
            let name = self.new_name(stem, i);
            let joint = self.new_name("j", i);
            bodies.push((name.clone(), self.body()));
            self.names.bodies.push(name.clone());
            self.names.points.extend([name.clone(), format!("{name}.tip"), format!("{name}.com")]);
            self.names.vectors.push(format!("{name}.mark"));
            let parent = parents[self.r.below(parents.len())].clone();
            let tree = self.joint(&joint, &parent, &name);
            self.names.joints.push(joint.clone());
            joints.push((joint, tree));
            parents.push(name);
        }
        // Some close a loop; the coordinates of these are not for use, since they may be cut.
        let used = self.names.coordinates.clone();
        while parents.len() > 1 && self.r.chance(0.15) {
            let joint = self.new_name("k", joints.len());
            let at = self.r.below(parents.len());
            let child = parents[at].clone();
            let parent = parents[(at + 1 + self.r.below(parents.len() - 1)) % parents.len()].clone();
            let tree = self.joint(&joint, &parent, &child);
            self.names.equations.push(format!("{joint}.{}", ["x", "tilt1", "across2"][self.r.below(3)]));
            self.names.joints.push(joint.clone());
            joints.push((joint, tree));
        }
        self.names.coordinates = used;
        (Tree::Map(bodies), Tree::Map(joints))
    }

    fn body(&mut self) -> Tree {
        let moment = |this: &mut Self| {
            Tree::Plain(if this.r.chance(this.extreme) { number(this.r, 1.0) } else { "0.3".into() })
        };
        let inertia = match self.r.below(24) {
            0 => None,
            1..=4 => Some(Tree::map([
                ("xx", Some(moment(self))),
                ("yy", Some(moment(self))),
                ("zz", Some(moment(self))),
                ("xy", self.r.chance(0.3).then(|| Tree::Plain("0.01".into()))),
                (
                    "frame",
                    self.r.chance(0.5).then(|| {
                        let [axis, reference] = self.directions();
                        Tree::map([("axis", Some(axis)), ("reference", Some(reference))])
                    }),
                ),
            ])),
            5 => Some(Tree::List((0..3).map(|_| self.scalar(Place::Parameters)).collect())),
            // Equal moments are possible for every body.
            _ => Some(Tree::List((0..3).map(|_| moment(self)).collect())),
        };
        let positive = |this: &mut Self| match this.r.below(20) {
            0 => this.scalar(Place::Parameters),
            1 => Tree::Plain(number(this.r, 1.0)),
            _ => Tree::Plain("1.5".into()),
        };
        Tree::map([
            ("mass", self.r.chance(0.95).then(|| positive(self))),
            ("com", self.r.chance(0.5).then(|| self.vector(Place::Parameters))),
            ("inertia", inertia),
            ("points", Some(Tree::Map(vec![("tip".into(), self.vector(Place::Parameters))]))),
            ("vectors", Some(Tree::Map(vec![("mark".into(), self.direction())]))),
            ("shape", self.r.chance(0.2).then(|| self.shape())),
            ("description", self.free_text(0.1)),
        ])
    }

    /// A shape, or a list of them.
    fn shape(&mut self) -> Tree {
        if self.r.chance(0.2) {
            return Tree::List((0..self.r.below(3)).map(|_| self.shape()).collect());
        }
        let size = |this: &mut Self| match this.r.below(8) {
            0 => this.scalar(Place::Parameters),
            1 => Tree::Plain(number(this.r, 1.0)),
            _ => Tree::Plain("0.2".into()),
        };
        let place = |this: &mut Self| match this.r.below(4) {
            0 => Some(Tree::Plain("tip".into())),
            1 => Some(this.vector(Place::Parameters)),
            2 => Some(Tree::Plain("origin".into())),
            _ => None,
        };
        let colour = match self.r.below(6) {
            0 => Some(Tree::Plain("red".into())),
            1 => Some(Tree::Quoted("#1f6feb".into())),
            _ => None,
        };
        let kind = ["box", "ellipsoid", "sphere", "cylinder", "capsule"][self.r.below(5)];
        let mut keys = vec![("type", Some(Tree::Plain(kind.into()))), ("colour", colour)];
        match kind {
            "box" | "ellipsoid" => {
                let lengths = (0..3).map(|_| size(self)).collect();
                keys.extend([("size", Some(Tree::List(lengths))), ("at", place(self))]);
            }
            "sphere" => keys.extend([("radius", Some(size(self))), ("at", place(self))]),
            _ if self.r.chance(0.5) => {
                let (from, to) = (Tree::Plain("com".into()), self.vector(Place::Parameters));
                keys.extend([("radius", Some(size(self))), ("from", Some(from)), ("to", Some(to))]);
            }
            _ => {
                let axis = if self.r.chance(0.5) { Tree::Plain("mark".into()) } else { self.direction() };
                keys.extend([("radius", Some(size(self))), ("axis", Some(axis))]);
                keys.extend([("length", Some(size(self))), ("at", place(self))]);
            }
        }
        Tree::Map(keys.into_iter().filter_map(|(key, value)| Some((key.into(), value?))).collect())
    }

    fn side(&mut self, body: &str, framed: bool) -> Tree {
        if !framed && self.r.chance(0.6) {
            return Tree::Plain(body.into());
        }
        let point =
            if self.r.chance(0.5) { self.vector(Place::Parameters) } else { Tree::Plain("origin".into()) };
        let [axis, reference] = self.directions();
        Tree::map([
            ("body", Some(Tree::Plain(body.into()))),
            ("point", Some(point)),
            ("axis", framed.then_some(axis)),
            ("reference", framed.then_some(reference)),
        ])
    }

    fn joint(&mut self, name: &str, parent: &str, child: &str) -> Tree {
        let (kind, coordinates) = JOINTS[self.r.below(JOINTS.len())];
        let renamed = self.r.chance(0.15) && !coordinates.is_empty();
        let own: Vec<String> = coordinates
            .iter()
            .enumerate()
            .map(|(i, c)| if renamed { self.new_name("q", i) } else { c.to_string() })
            .collect();
        self.names.coordinates.extend(own.iter().map(|c| format!("{name}.{c}")));
        let framed = kind == "planar" || (kind != "cardan" && self.r.chance(0.3));
        let needs_axis = !framed && !matches!(kind, "spherical" | "floating" | "fixed" | "cardan");
        let start = match (own.as_slice(), kind) {
            _ if self.r.chance(0.5) => None,
            ([_], _) => Some(self.scalar(Place::Parameters)),
            (_, "spherical") => Some(Tree::map([
                (
                    "orientation",
                    self.r.chance(0.5).then(|| Tree::List((0..4).map(|_| self.number()).collect())),
                ),
                ("angular_velocity", Some(self.vector(Place::Parameters))),
            ])),
            (own, _) if !own.is_empty() => {
                let own = own.to_vec();
                Some(Tree::Map(own.into_iter().map(|c| (c, self.scalar(Place::Parameters))).collect()))
            }
            _ => None,
        };
        Tree::map([
            ("type", Some(Tree::Plain(kind.into()))),
            ("parent", Some(self.side(parent, framed))),
            ("child", Some(self.side(child, framed))),
            ("axis", needs_axis.then(|| self.direction())),
            ("axes", (kind == "cardan").then(|| Tree::List(self.directions().into()))),
            ("names", renamed.then(|| Tree::List(own.into_iter().map(Tree::Plain).collect()))),
            ("start", start),
            ("cut", self.r.chance(0.02).then(|| self.truth())),
            ("description", self.free_text(0.05)),
        ])
    }

    fn truth(&mut self) -> Tree {
        Tree::Plain(["true", "false"][self.r.below(2)].into())
    }

    fn variables(&mut self) -> Tree {
        let mut entries = Vec::new();
        for i in 0..1 + self.r.below(2) {
            let name = self.new_name("s", i);
            let tree = if self.r.chance(0.5) {
                self.scalar(Place::Parameters)
            } else {
                Tree::map([
                    ("value", Some(self.scalar(Place::Parameters))),
                    ("rate", self.r.chance(0.3).then(|| self.number())),
                    ("hold", self.r.chance(0.3).then(|| self.truth())),
                    ("unit", self.free_text(0.3)),
                    ("description", self.free_text(0.3)),
                ])
            };
            self.names.coordinates.push(name.clone());
            self.names.variables.push(name.clone());
            entries.push((name, tree));
        }
        Tree::Map(entries)
    }

    fn constraints(&mut self) -> Tree {
        let mut entries = Vec::new();
        let names = self.names.clone();
        let word = |text: &str| Some(Tree::Plain(text.into()));
        // A variable must stand in a constraint.
        for (i, variable) in names.variables.iter().enumerate() {
            let value = format!("{variable} - ({})", self.expressions(Place::Position).scalar(1));
            let tree = Tree::map([("type", word("equation")), ("value", Some(Tree::Quoted(value)))]);
            entries.push((format!("v{i}"), tree));
        }
        for i in 0..self.r.below(3) {
            let point = |this: &mut Self| match this.r.below(10) {
                0 => this.vector(Place::Position),
                _ => this.one_of(&names.points),
            };
            let direction = |this: &mut Self| match this.r.below(3) {
                0 => this.direction(),
                _ => this.one_of(&names.vectors),
            };
            let kind = [
                "distance",
                "angle",
                "coincident",
                "point_on_line",
                "point_on_plane",
                "aligned",
                "coupling",
                "motion",
                "equation",
                "nonholonomic",
            ][self.r.below(10)];
            let mut fields = vec![("type", word(kind))];
            match kind {
                "distance" | "coincident" => {
                    fields.push(("from", word("ground")));
                    fields.push(("to", Some(point(self))));
                    fields.extend((kind == "distance").then(|| ("value", word("0.7"))));
                }
                "angle" => {
                    fields.push(("from", Some(direction(self))));
                    fields.push(("to", Some(Tree::Quoted("[0, 1, 0]".into()))));
                    fields.push(("value", Some(self.scalar(Place::Position))));
                }
                "point_on_line" => {
                    fields.push(("point", Some(point(self))));
                    let line = [
                        ("point", Some(point(self))),
                        ("direction", Some(direction(self))),
                        ("reference", self.r.chance(0.5).then(|| direction(self))),
                    ];
                    fields.push(("line", Some(Tree::map(line))));
                }
                "point_on_plane" => {
                    fields.push(("point", Some(point(self))));
                    let plane = [("point", word("ground")), ("normal", Some(direction(self)))];
                    fields.push(("plane", Some(Tree::map(plane))));
                }
                "aligned" => {
                    let n = 3 + self.r.below(3);
                    fields.push(("points", Some(Tree::List((0..n).map(|_| point(self)).collect()))));
                    fields.push(("reference", self.r.chance(0.7).then(|| direction(self))));
                }
                "motion" if self.r.chance(0.5) => {
                    fields.push(("point", Some(point(self))));
                    fields.push(("value", Some(self.vector(Place::Signal))));
                    fields.push((
                        "axes",
                        self.r.chance(0.5).then(|| Tree::List(vec![Tree::Plain("x".into())])),
                    ));
                }
                "motion" => {
                    fields.push(("coordinate", Some(self.one_of(&names.coordinates))));
                    fields.push(("value", Some(self.scalar(Place::Signal))));
                }
                "nonholonomic" => {
                    let point = self.one_name(&names.points);
                    fields.push(("value", Some(Tree::Quoted(format!("dot(vel({point}), [1, 0, t])")))));
                }
                _ => {
                    let coordinate = self.one_name(&names.coordinates);
                    let more = self.expressions(Place::Position).scalar(1);
                    fields.push(("value", Some(Tree::Quoted(format!("{coordinate} - ({more})")))));
                }
            }
            let fields =
                fields.into_iter().filter_map(|(key, tree)| Some((key.to_string(), tree?))).collect();
            let name = self.new_name("r", i);
            let end = match kind {
                "coincident" => ".x",
                "point_on_line" | "aligned" => ".across2",
                _ => "",
            };
            self.names.equations.push(format!("{name}{end}"));
            entries.push((name, Tree::Map(fields)));
        }
        Tree::Map(entries)
    }

    fn objectives(&mut self) -> Tree {
        let mut entries = Vec::new();
        for i in 0..1 + self.r.below(2) {
            let tree = if self.r.chance(0.5) {
                self.scalar(Place::Objective)
            } else {
                Tree::map([
                    ("integrand", Some(self.scalar(Place::Objective))),
                    ("terminal", self.r.chance(0.5).then(|| self.scalar(Place::Objective))),
                    ("unit", self.free_text(0.3)),
                    ("description", self.free_text(0.3)),
                ])
            };
            entries.push((self.new_name("g", i), tree));
        }
        Tree::Map(entries)
    }

    /// Parameters, whole arrays or one element, and inputs.
    fn sensitivity(&mut self) -> Tree {
        let names = self.names.clone();
        let mut listed: Vec<Tree> = Vec::new();
        for name in names.scalars {
            if self.r.chance(0.5) {
                listed.push(Tree::Plain(name));
            }
        }
        for name in names.arrays {
            match self.r.below(4) {
                0 => listed.push(Tree::Plain(name)),
                1 => listed.push(Tree::Quoted(format!("{name}[{}]", self.r.below(2)))),
                _ => {}
            }
        }
        if self.r.chance(0.05) {
            listed.push(self.name(0));
        }
        Tree::List(listed)
    }

    fn one_name(&mut self, names: &[String]) -> String {
        if names.is_empty() { "ground".into() } else { names[self.r.below(names.len())].clone() }
    }

    fn one_of(&mut self, names: &[String]) -> Tree {
        Tree::Plain(self.one_name(names))
    }

    fn forces(&mut self) -> Tree {
        let mut entries = Vec::new();
        let names = self.names.clone();
        for i in 0..self.r.below(4) {
            let word = |text: &str| Some(Tree::Plain(text.into()));
            let tree = match self.r.below(5) {
                0 => Tree::map([
                    ("type", word("spring")),
                    ("from", word("ground")),
                    ("to", Some(self.one_of(&names.points))),
                    ("stiffness", Some(self.scalar(Place::Force))),
                    ("damping", self.r.chance(0.5).then(|| self.scalar(Place::Force))),
                    ("natural_length", self.r.chance(0.5).then(|| self.number())),
                ]),
                1 => Tree::map([
                    ("type", word("spring")),
                    ("from", Some(self.one_of(&names.points))),
                    ("to", word("ground")),
                    ("law", Some(Tree::Quoted(format!("{}*length + rate", number(self.r, self.extreme))))),
                ]),
                2 => Tree::map([
                    ("type", word("force")),
                    ("at", Some(self.one_of(&names.points))),
                    ("value", Some(self.vector(Place::Force))),
                    ("frame", self.r.chance(0.3).then(|| self.one_of(&names.bodies))),
                    ("reaction", self.r.chance(0.3).then(|| self.one_of(&names.points))),
                ]),
                3 => Tree::map([
                    ("type", word("torque")),
                    ("on", Some(self.one_of(&names.bodies))),
                    ("value", Some(self.vector(Place::Force))),
                    ("reaction", self.r.chance(0.3).then(|| self.one_of(&names.bodies))),
                    ("description", self.free_text(0.1)),
                ]),
                _ => Tree::map([
                    ("type", word(["joint_force", "torsional_spring"][self.r.below(2)])),
                    ("coordinate", Some(self.one_of(&names.coordinates))),
                    (["value", "stiffness", "law"][self.r.below(3)], Some(self.scalar(Place::Force))),
                ]),
            };
            entries.push((self.new_name("f", i), tree));
        }
        Tree::Map(entries)
    }

    fn outputs(&mut self) -> Tree {
        let mut entries = Vec::new();
        for i in 0..self.r.below(4) {
            let value =
                if self.r.chance(0.5) { self.scalar(Place::Output) } else { self.vector(Place::Output) };
            let tree = Tree::map([
                ("value", Some(value)),
                ("unit", self.free_text(0.3)),
                ("description", self.free_text(0.3)),
            ]);
            entries.push((self.new_name("o", i), tree));
        }
        Tree::Map(entries)
    }

    /// An element with a body of its own, and instances of it.
    fn elements(&mut self) -> (Option<Tree>, Option<Tree>) {
        let outside = self.names.clone();
        let (bodies, joints) = self.mechanism("e", 1);
        let element = Tree::map([
            ("arguments", Some(Tree::Map(vec![("size".into(), Tree::Plain("scalar".into()))]))),
            ("parameters", Some(Tree::Map(vec![("own".into(), self.number())]))),
            ("definitions", self.r.chance(0.5).then(|| self.definitions())),
            ("instances", self.r.chance(0.3).then(|| self.inner_instance())),
            ("bodies", Some(bodies)),
            ("joints", Some(joints)),
            ("outputs", self.r.chance(0.5).then(|| self.outputs())),
        ]);
        self.names = outside;
        let instances = (0..1 + self.r.below(2))
            .map(|i| {
                let tree = Tree::map([
                    ("element", Some(Tree::Plain("part".into()))),
                    ("arguments", Some(Tree::Map(vec![("size".into(), self.scalar(Place::Parameters))]))),
                    (
                        "mirror",
                        self.r.chance(0.5).then(|| Tree::Plain(["x", "y", "z"][self.r.below(3)].into())),
                    ),
                    ("description", self.free_text(0.2)),
                ]);
                (self.new_name("i", i), tree)
            })
            .collect();
        (Some(Tree::Map(vec![("part".into(), element)])), Some(Tree::Map(instances)))
    }

    /// A standard element inside another.
    fn inner_instance(&mut self) -> Tree {
        let at = self.names.points[self.r.below(self.names.points.len())].clone();
        let arguments = Tree::map([
            ("at", Some(Tree::Plain(at))),
            ("area", Some(self.scalar(Place::Parameters))),
            ("density", Some(self.scalar(Place::Parameters))),
            ("wind", Some(self.vector(Place::Parameters))),
            ("creep", Some(self.number())),
        ]);
        let element = ["drag", "drag", "part", "bushing"][self.r.below(4)];
        let instance =
            Tree::map([("element", Some(Tree::Plain(element.into()))), ("arguments", Some(arguments))]);
        Tree::Map(vec![("inner".into(), instance)])
    }

    fn simulation(&mut self) -> Tree {
        let maybe = |this: &mut Self| {
            let usual = ["1e-3", "0.5", "2", "1e-12"][this.r.below(4)];
            this.r
                .chance(0.4)
                .then(|| if this.r.chance(0.1) { this.number() } else { Tree::Plain(usual.into()) })
        };
        Tree::map([
            ("begin", self.r.chance(0.2).then(|| self.number())),
            ("end", self.r.chance(0.2).then(|| Tree::Plain(["3", "1e9", "1e300"][self.r.below(3)].into()))),
            ("step", maybe(self)),
            ("output_step", maybe(self)),
            (
                "integrator",
                self.r.chance(0.3).then(|| {
                    let all = Integrator::ALL;
                    Tree::Plain(all[self.r.below(all.len())].keyword().into())
                }),
            ),
            (
                "formulation",
                self.r
                    .chance(0.1)
                    .then(|| Tree::Plain(["penalty", "index1", "ali3p"][self.r.below(3)].into())),
            ),
            ("spectral_radius", self.r.chance(0.02).then(|| self.number())),
            (
                "penalty",
                self.r.chance(0.1).then(|| Tree::Plain(["1e9", "1e300", "1e-9"][self.r.below(3)].into())),
            ),
            (
                "projection",
                self.r.chance(0.1).then(|| Tree::Plain(["mass", "tangent"][self.r.below(2)].into())),
            ),
            (
                "newton",
                self.r.chance(0.1).then(|| {
                    let iterations = ["1", "3", "1000"][self.r.below(3)];
                    Tree::map([
                        ("tolerance", maybe(self)),
                        ("iterations", Some(Tree::Plain(iterations.into()))),
                    ])
                }),
            ),
            (
                "tolerance",
                self.r.chance(0.3).then(|| Tree::map([("relative", maybe(self)), ("absolute", maybe(self))])),
            ),
        ])
    }

    fn cases(&mut self) -> Tree {
        let names = self.names.clone();
        let cases = (0..1 + self.r.below(2))
            .map(|i| {
                let changed =
                    names.scalars.iter().filter(|_| self.r.chance(0.3)).cloned().collect::<Vec<_>>();
                let tree = Tree::map([
                    ("description", self.free_text(0.3)),
                    (
                        "parameters",
                        Some(Tree::Map(changed.into_iter().map(|n| (n, self.number())).collect())),
                    ),
                    (
                        "inputs",
                        self.r.chance(0.3).then(|| {
                            let input = self.inputs.first().cloned().unwrap_or("u0".into());
                            Tree::Map(vec![(input, self.scalar(Place::Signal))])
                        }),
                    ),
                    ("sensitivity", self.r.chance(0.2).then(|| self.sensitivity())),
                    ("simulation", self.r.chance(0.3).then(|| self.simulation())),
                ]);
                (format!("c{i}"), tree)
            })
            .collect();
        Tree::Map(cases)
    }
}
