//! First pass: which names exist. Expressions may use names that are declared later, so all names are known
//! before the first expression is read.
//!
//! Output: [`Unit`]s, the file itself and one for each instance of an element, with the entries still to be read;
//! and the tables of [`Symbols`](super::scope::Symbols). Names of instances are flattened: `left` and `arm` give
//! `left_arm`.

use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;

use super::fields::Fields;
use super::keys::{self, Keys};
use super::limits;
use super::load::shorten;
use super::names::{CONSTANTS, Unique, check_name, is_name, is_reserved};
use super::node::{Entry, Kind, Node};
use super::reader::Reader;
use super::scope::{BodySymbol, JointSymbol, ParameterSymbol, RowNames, Scope, Symbol, Thing};
use crate::diagnostics::Span;
use crate::model::{
    BodyId, ConstraintId, CoordinateRef, InputId, JointId, JointKind, ParameterId, VariableId,
};

/// Something declared and still to be read.
pub(super) struct Declared<'t, Id> {
    pub(super) id: Id,
    /// The flattened name.
    pub(super) name: String,
    pub(super) entry: &'t Entry,
}

/// The file itself, or an instance of an element.
#[derive(Default)]
pub(super) struct Unit<'t> {
    pub(super) scope: Rc<Scope>,
    pub(super) parameters: Vec<Declared<'t, ParameterId>>,
    pub(super) bodies: Vec<Declared<'t, BodyId>>,
    pub(super) joints: Vec<Declared<'t, JointId>>,
    pub(super) variables: Vec<Declared<'t, VariableId>>,
    pub(super) forces: Vec<Declared<'t, ()>>,
    pub(super) constraints: Vec<Declared<'t, ConstraintId>>,
    pub(super) outputs: Vec<Declared<'t, ()>>,
    pub(super) objectives: Vec<Declared<'t, ()>>,
    pub(super) events: Vec<Declared<'t, ()>>,
    /// Read before everything else, into the scope.
    definitions: Vec<&'t Entry>,
}

/// What an argument of an element is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArgumentKind {
    Scalar,
    Vector,
    Point,
    Body,
    Coordinate,
}

const ARGUMENT_KINDS: [(&str, ArgumentKind); 5] = [
    ("scalar", ArgumentKind::Scalar),
    ("vector", ArgumentKind::Vector),
    ("point", ArgumentKind::Point),
    ("body", ArgumentKind::Body),
    ("coordinate", ArgumentKind::Coordinate),
];

/// An element, with the names of its arguments.
struct Element<'t> {
    entry: &'t Entry,
    fields: Fields<'t>,
    arguments: Vec<(&'t Entry, ArgumentKind)>,
    used: Cell<bool>,
}

type Elements<'t> = HashMap<&'t str, Rc<Element<'t>>>;

/// An instance of an element, its arguments still to be read.
struct Instance<'t> {
    unit: Unit<'t>,
    scope: Scope,
    arguments: Vec<Argument<'t>>,
    /// Index of the instance that contains it; none in the file.
    parent: Option<usize>,
}

/// What contains instances: the file, or the instance of another element.
#[derive(Clone, Copy)]
struct Around<'p> {
    prefix: &'p str,
    parent: Option<usize>,
    mirror: Option<u8>,
    depth: usize,
}

/// All that is declared.
pub(super) struct Declarations<'t> {
    /// The file first, then the instances in their order.
    pub(super) units: Vec<Unit<'t>>,
    pub(super) inputs: Vec<&'t Entry>,
    /// `ground`, if the file describes it.
    pub(super) ground: Option<&'t Entry>,
}

/// The names of each kind that must differ.
#[derive(Default)]
struct Spaces {
    symbols: Unique,
    things: Unique,
    forces: Unique,
    constraints: usize,
    outputs: Unique,
    objectives: Unique,
    events: Unique,
}

/// Where the names of a unit go.
struct Names<'n> {
    /// Prefix of every name of an instance; empty in the file.
    prefix: &'n str,
    /// The scope of the unit, which has names as written.
    local: &'n mut Scope,
    /// The scope of the file, which has those of an instance flattened.
    global: Option<&'n mut Scope>,
    spaces: &'n mut Spaces,
}

impl Names<'_> {
    fn insert_symbol(&mut self, entry: &Entry, name: &str, symbol: Symbol) {
        if let Some(global) = &mut self.global {
            global.symbols.insert(name.into(), symbol.clone());
        }
        self.local.symbols.insert(entry.key.to_string(), symbol);
    }

    fn insert_thing(&mut self, entry: &Entry, name: &str, thing: Thing) {
        if let Some(global) = &mut self.global {
            global.things.insert(name.into(), thing);
        }
        self.local.things.insert(entry.key.to_string(), thing);
    }
}

impl<'t> Reader<'t> {
    /// Declares everything in the file.
    pub(super) fn declare(&mut self, file: &Fields<'t>) -> Declarations<'t> {
        let mut spaces = Spaces::default();
        let mut global = Scope::default();

        self.symbols.bodies.push(BodySymbol {
            name: "ground".into(),
            points: Vec::new(),
            vectors: Vec::new(),
        });
        global.things.insert("ground".into(), Thing::Body(BodyId::GROUND));
        let ground = self.declare_ground(file);
        let mut root = self
            .declare_unit(file, Names { prefix: "", local: &mut global, global: None, spaces: &mut spaces });
        let inputs = self.declare_inputs(file, &mut global, &mut spaces);

        let elements = self.declare_elements(file);
        let mut instances = Vec::new();
        let around = Around { prefix: "", parent: None, mirror: None, depth: 0 };
        self.declare_instances(file, around, &elements, &mut global, &mut spaces, &mut instances);
        for (name, element) in sorted(&elements) {
            if !element.used.get() {
                self.diagnostics
                    .warning(element.entry.key_span, format!("element `{name}` is never used"))
                    .help("its contents are not checked before an instance uses it");
            }
        }

        let complete = self.read_definitions(&root.definitions, &mut global);
        let global = Rc::new(global);
        self.global = Rc::clone(&global);
        root.scope = Rc::clone(&global);
        // The file as seen in a mirror: definitions are read in the context of their use.
        let mut mirrored: [Option<Rc<Scope>>; 3] = [const { None }; 3];
        let mut units = vec![root];
        for Instance { mut unit, mut scope, arguments, parent } in instances {
            let file = match scope.mirror {
                Some(normal) if complete && !units[0].definitions.is_empty() => {
                    let seen = mirrored[usize::from(normal)].get_or_insert_with(|| {
                        let mut seen = Scope {
                            mirror: Some(normal),
                            outer: Some(Rc::clone(&global)),
                            ..Scope::default()
                        };
                        self.read_definitions(&units[0].definitions, &mut seen);
                        Rc::new(seen)
                    });
                    Rc::clone(seen)
                }
                _ => Rc::clone(&global),
            };
            // The file first, then parents before their children.
            let around = parent.map_or(&file, |parent| &units[parent + 1].scope);
            self.read_arguments(&arguments, &mut scope, around);
            scope.outer = Some(file);
            self.read_definitions(&unit.definitions, &mut scope);
            unit.scope = Rc::new(scope);
            units.push(unit);
        }
        Declarations { units, inputs, ground }
    }

    /// The parts that a file and an element have in common.
    fn declare_unit(&mut self, fields: &Fields<'t>, mut names: Names<'_>) -> Unit<'t> {
        let names = &mut names;
        let mut unit = Unit {
            definitions: self.declare_definitions(fields, names),
            parameters: self.declare_parameters(fields, names),
            bodies: self.declare_bodies(fields, names),
            joints: self.declare_joints(fields, names),
            variables: self.declare_variables(fields, names),
            ..Unit::default()
        };
        self.declare_modes(fields, names);
        unit.forces = self.declare_named(fields, names, "forces", "force", |spaces| &mut spaces.forces);
        unit.outputs = self.declare_named(fields, names, "outputs", "output", |spaces| &mut spaces.outputs);
        for Declared { name, entry, .. } in &unit.outputs {
            self.symbols.outputs.extend([name.clone(), entry.key.to_string()]);
        }
        unit.objectives =
            self.declare_named(fields, names, "objectives", "objective", |spaces| &mut spaces.objectives);
        unit.events = self.declare_named(fields, names, "events", "event", |spaces| &mut spaces.events);
        unit.constraints = self.declare_constraints(fields, names);
        unit
    }

    fn declare_definitions(&mut self, fields: &Fields<'t>, names: &mut Names<'_>) -> Vec<&'t Entry> {
        let mut definitions = Vec::new();
        for entry in self.section(fields, "definitions") {
            // Those of an element are known inside it only; their names are checked with the element.
            let Spaces { symbols, things, .. } = names.spaces;
            let ok = match names.prefix {
                "" => self.declare_definition(entry, symbols, Some(things)),
                _ => is_name(&entry.key) && !is_reserved(&entry.key),
            };
            if ok && self.within(entry, definitions.len(), "definitions") {
                definitions.push(entry);
            }
        }
        definitions
    }

    fn declare_parameters(
        &mut self,
        fields: &Fields<'t>,
        names: &mut Names<'_>,
    ) -> Vec<Declared<'t, ParameterId>> {
        let mut parameters = Vec::new();
        for entry in self.section(fields, "parameters") {
            let space = &mut names.spaces.symbols;
            let Some(name) = self.declare_name(entry, names.prefix, "parameter", space) else { continue };
            if is_reserved(&name) {
                self.reserved(entry, "parameter");
                continue;
            }
            if !self.within(entry, self.symbols.parameters.len(), "parameters") {
                break;
            }
            let id = ParameterId(self.symbols.parameters.len() as u32);
            self.symbols.parameters.push(ParameterSymbol { array: array_length(&entry.value) });
            names.insert_symbol(entry, &name, Symbol::Parameter(id));
            parameters.push(Declared { id, name, entry });
        }
        parameters
    }

    fn declare_bodies(&mut self, fields: &Fields<'t>, names: &mut Names<'_>) -> Vec<Declared<'t, BodyId>> {
        let mut bodies = Vec::new();
        for entry in self.section(fields, "bodies") {
            if &*entry.key == "ground" {
                if !names.prefix.is_empty() {
                    self.diagnostics
                        .error(entry.key_span, "an element cannot describe `ground`")
                        .help("describe it under the model's own `bodies`");
                }
                continue;
            }
            let space = &mut names.spaces.things;
            let Some(name) = self.declare_name(entry, names.prefix, "body", space) else { continue };
            if !self.within(entry, self.symbols.bodies.len(), "bodies") {
                break;
            }
            let id = BodyId(self.symbols.bodies.len() as u32);
            let symbol = self.body_symbol(&name, entry);
            self.symbols.bodies.push(symbol);
            names.insert_thing(entry, &name, Thing::Body(id));
            bodies.push(Declared { id, name, entry });
        }
        bodies
    }

    fn declare_joints(&mut self, fields: &Fields<'t>, names: &mut Names<'_>) -> Vec<Declared<'t, JointId>> {
        let mut joints = Vec::new();
        for entry in self.section(fields, "joints") {
            let space = &mut names.spaces.things;
            let Some(name) = self.declare_name(entry, names.prefix, "joint", space) else {
                self.joints_incomplete = true;
                continue;
            };
            if !self.within(entry, self.symbols.joints.len(), "joints") {
                break;
            }
            let id = JointId(self.symbols.joints.len() as u32);
            let symbol = self.joint_symbol(&name, entry);
            self.symbols.joints.push(symbol);
            names.insert_thing(entry, &name, Thing::Joint(id));
            joints.push(Declared { id, name, entry });
        }
        joints
    }

    /// Variables are values and coordinates, so they share the names of both.
    fn declare_variables(
        &mut self,
        fields: &Fields<'t>,
        names: &mut Names<'_>,
    ) -> Vec<Declared<'t, VariableId>> {
        let mut variables = Vec::new();
        for entry in self.section(fields, "variables") {
            let Spaces { symbols, things, outputs, .. } = names.spaces;
            let Some(name) = self.declare_name(entry, names.prefix, "variable", symbols) else { continue };
            if is_reserved(&name) {
                self.reserved(entry, "variable");
                continue;
            }
            if &*entry.key == "ground" {
                self.diagnostics.error(entry.key_span, "`ground` is the name of the fixed body");
                continue;
            }
            let diagnostics = &mut self.diagnostics;
            // Coordinates, velocities and outputs are columns of one table.
            if !things.add(&name, entry.key_span, "variable", diagnostics)
                || !outputs.add(&name, entry.key_span, "variable", diagnostics)
                || !outputs.add(&format!("{name}_rate"), entry.key_span, "the rate", diagnostics)
            {
                continue;
            }
            if !self.within(entry, self.symbols.variables, "variables") {
                break;
            }
            let id = VariableId(self.symbols.variables as u32);
            self.symbols.variables += 1;
            names.insert_thing(entry, &name, Thing::Coordinate(CoordinateRef::Variable(id)));
            variables.push(Declared { id, name, entry });
        }
        variables
    }

    fn declare_modes(&mut self, fields: &Fields<'t>, names: &mut Names<'_>) {
        for entry in self.section(fields, "modes") {
            let space = &mut names.spaces.things;
            let Some(name) = self.declare_name(entry, names.prefix, "mode", space) else { continue };
            if self.symbols.modes.len() >= limits::MODES {
                self.diagnostics.error(entry.key_span, format!("more than {} modes", limits::MODES));
                break;
            }
            let thing = match self.mode_symbol(&name, entry) {
                Some(symbol) => {
                    self.symbols.modes.push(symbol);
                    Thing::Mode(self.symbols.modes.len() - 1)
                }
                None => Thing::Broken,
            };
            names.insert_thing(entry, &name, thing);
        }
    }

    /// Declares names that no expression uses.
    fn declare_named(
        &mut self,
        fields: &Fields<'t>,
        names: &mut Names<'_>,
        key: &str,
        what: &str,
        space: impl Fn(&mut Spaces) -> &mut Unique,
    ) -> Vec<Declared<'t, ()>> {
        let mut list = Vec::new();
        for entry in self.section(fields, key) {
            let space = space(names.spaces);
            if !self.within(entry, space.len(), key) {
                break;
            }
            if let Some(name) = self.declare_name(entry, names.prefix, what, space) {
                list.push(Declared { id: (), name, entry });
            }
        }
        list
    }

    fn declare_constraints(
        &mut self,
        fields: &Fields<'t>,
        names: &mut Names<'_>,
    ) -> Vec<Declared<'t, ConstraintId>> {
        let mut constraints = Vec::new();
        for entry in self.section(fields, "constraints") {
            if !self.within(entry, names.spaces.constraints, "constraints") {
                break;
            }
            names.spaces.constraints += 1;
            // Rows are called after their constraint or their cut joint.
            let space = &mut names.spaces.things;
            let Some(name) = self.declare_name(entry, names.prefix, "constraint", space) else {
                self.constraints_incomplete = true;
                continue;
            };
            let id = ConstraintId(self.symbols.rows.len() as u32);
            self.symbols.rows.push(RowNames::Unread);
            names.insert_thing(entry, &name, Thing::Constraint(id));
            constraints.push(Declared { id, name, entry });
        }
        constraints
    }

    /// A definition is used as a value, and before a dot.
    fn declare_definition(
        &mut self,
        entry: &Entry,
        symbols: &mut Unique,
        things: Option<&mut Unique>,
    ) -> bool {
        if is_reserved(&entry.key) {
            self.reserved(entry, "definition");
            return false;
        }
        let Some(name) = self.declare_name(entry, "", "definition", symbols) else { return false };
        things.is_none_or(|things| things.add(&name, entry.key_span, "definition", &mut self.diagnostics))
    }

    fn section(&mut self, fields: &Fields<'t>, key: &str) -> &'t [Entry] {
        match fields.value(key) {
            Some(node) => self.entries(node, key),
            None => &[],
        }
    }

    /// The flattened name of an entry, if it is valid and new.
    fn declare_name(
        &mut self,
        entry: &Entry,
        prefix: &str,
        what: &str,
        space: &mut Unique,
    ) -> Option<String> {
        let article = if what.starts_with(['a', 'e', 'i', 'o']) { "an" } else { "a" };
        if !check_name(&entry.key, entry.key_span, &format!("{article} {what}"), &mut self.diagnostics) {
            return None;
        }
        if what == "joint" && &*entry.key == "ground" {
            self.diagnostics.error(entry.key_span, "`ground` is the name of the fixed body");
            return None;
        }
        let name = format!("{prefix}{}", entry.key);
        space.add(&name, entry.key_span, what, &mut self.diagnostics).then_some(name)
    }

    fn reserved(&mut self, entry: &Entry, what: &str) {
        let kind = if CONSTANTS.contains(&&*entry.key) { "constant" } else { "function" };
        self.diagnostics
            .error(entry.key_span, format!("`{}` is a {kind} of the expression language", entry.key))
            .help(format!("give the {what} another name"));
    }

    fn within(&mut self, entry: &Entry, count: usize, what: &str) -> bool {
        let limit = limits::ENTRIES;
        if count < limit {
            return true;
        }
        self.diagnostics.error(entry.key_span, format!("more than {limit} {what}"));
        false
    }

    fn declare_ground(&mut self, file: &Fields<'t>) -> Option<&'t Entry> {
        let Kind::Mapping(entries) = &file.value("bodies")?.kind else {
            return None;
        };
        let entry = entries.iter().find(|e| &*e.key == "ground")?;
        self.symbols.bodies[0] = self.body_symbol("ground", entry);
        Some(entry)
    }

    fn declare_inputs(
        &mut self,
        file: &Fields<'t>,
        global: &mut Scope,
        spaces: &mut Spaces,
    ) -> Vec<&'t Entry> {
        let mut inputs = Vec::new();
        for entry in self.section(file, "inputs") {
            let Some(name) = self.declare_name(entry, "", "input", &mut spaces.symbols) else {
                continue;
            };
            if is_reserved(&name) {
                self.reserved(entry, "input");
                continue;
            }
            if !self.within(entry, inputs.len(), "inputs") {
                break;
            }
            global.symbols.insert(name.clone(), Symbol::Input(InputId(inputs.len() as u32)));
            self.symbols.inputs.push(name);
            inputs.push(entry);
        }
        inputs
    }

    /// The names of a body's points and vectors.
    fn body_symbol(&mut self, name: &str, entry: &Entry) -> BodySymbol {
        let mut symbol = BodySymbol { name: name.to_string(), points: Vec::new(), vectors: Vec::new() };
        let Kind::Mapping(fields) = &entry.value.kind else {
            return symbol;
        };
        let mut unique = Unique::default();
        for (key, what, list) in
            [("points", "a point", &mut symbol.points), ("vectors", "a vector", &mut symbol.vectors)]
        {
            let Some(field) = fields.iter().find(|f| &*f.key == key) else {
                continue;
            };
            let Kind::Mapping(parts) = &field.value.kind else {
                continue;
            };
            if parts.len() > limits::PARTS {
                let (n, limit) = (parts.len(), limits::PARTS);
                self.diagnostics.error(field.key_span, format!("a body has at most {limit} {key}, not {n}"));
                continue;
            }
            self.spend(field.key_span, parts.len());
            for part in parts {
                // A wrong name stays in the list, so that the list matches the entries.
                if check_name(&part.key, part.key_span, what, &mut self.diagnostics) {
                    if matches!(&*part.key, "origin" | "com") {
                        self.diagnostics
                            .error(part.key_span, format!("every body has the point `{}` already", part.key))
                            .help("the centre of mass is given by the key `com` of the body");
                    } else {
                        unique.add(&part.key, part.key_span, &what[2..], &mut self.diagnostics);
                    }
                }
                list.push(part.key.to_string());
            }
        }
        symbol
    }

    /// The kind of a joint and the names of its coordinates, if its type says them.
    fn joint_symbol(&mut self, name: &str, entry: &Entry) -> JointSymbol {
        let mut symbol = JointSymbol {
            name: name.to_string(),
            kind: None,
            coordinates: Vec::new(),
            velocities: Vec::new(),
        };
        let Kind::Mapping(fields) = &entry.value.kind else {
            return symbol;
        };
        let field = |key: &str| fields.iter().find(|f| &*f.key == key);
        let Some(Kind::Scalar(word)) = field("type").map(|f| &f.value.kind) else {
            return symbol;
        };
        // A shared joint is recognised when the bodies are known.
        if let Some(kind) = JointKind::ALL.into_iter().find(|k| k.keyword() == &*word.value) {
            self.name_coordinates(kind, field("names").map(|f| &*f.value), &mut symbol);
        }
        symbol
    }

    /// Gives a joint its kind and the names of its coordinates.
    pub(super) fn name_coordinates(
        &mut self,
        kind: JointKind,
        names: Option<&Node>,
        symbol: &mut JointSymbol,
    ) {
        let owned = |names: &[&str]| names.iter().map(|n| n.to_string()).collect::<Vec<_>>();
        symbol.kind = Some(kind);
        symbol.coordinates = owned(kind.coordinates());
        symbol.velocities = owned(kind.velocities());
        if let Some(names) = names {
            self.rename_coordinates(kind, names, symbol);
        }
    }

    /// `names: [...]` of a joint. Velocities of renamed coordinates are `name_rate`; the angular velocities of
    /// spherical and floating joints are renamed by a list that goes on with them.
    fn rename_coordinates(&mut self, kind: JointKind, node: &Node, symbol: &mut JointSymbol) {
        let all = symbol.coordinates.len();
        let lengths: &[usize] = match kind {
            JointKind::Spherical => &[4, 7],
            JointKind::Floating => &[3, 7, 10],
            _ => &[all],
        };
        let Kind::Sequence(items) = &node.kind else {
            self.diagnostics.error(node.span, format!("expected a list of names, found {}", node.describe()));
            return;
        };
        if !lengths.contains(&items.len()) || all == 0 {
            let wanted: Vec<String> = lengths.iter().map(usize::to_string).collect();
            let message = format!(
                "a {} joint has {} names of coordinates, this list has {}",
                kind.keyword(),
                wanted.join(" or "),
                items.len()
            );
            self.diagnostics.error(node.span, message);
            return;
        }
        let mut names = Vec::new();
        for item in items {
            let Kind::Scalar(text) = &item.kind else {
                self.diagnostics.error(item.span, format!("expected a name, found {}", item.describe()));
                return;
            };
            if !check_name(&text.value, item.span, "a coordinate", &mut self.diagnostics) {
                return;
            }
            names.push(text.value.to_string());
        }
        let rates = match kind {
            JointKind::Spherical => 0,
            JointKind::Floating => 3,
            _ => all,
        };
        for (i, name) in names.into_iter().enumerate() {
            if i < rates {
                symbol.velocities[i] = format!("{name}_rate");
            }
            if i < all {
                symbol.coordinates[i] = name;
            } else {
                symbol.velocities[rates + i - all] = name;
            }
        }
        let mut unique = Unique::default();
        for name in symbol.coordinates.iter().chain(&symbol.velocities) {
            if !unique.add(name, node.span, "coordinate", &mut self.diagnostics) {
                return;
            }
        }
    }

    fn declare_elements(&mut self, file: &Fields<'t>) -> Elements<'t> {
        let mut elements = HashMap::new();
        let mut names = Unique::default();
        for entry in self.section(file, "elements") {
            if self.declare_name(entry, "", "element", &mut names).is_none() {
                continue;
            }
            let Some(fields) = self.fields(&entry.value, entry.key_span, &keys::ELEMENT) else {
                continue;
            };
            let mut arguments = Vec::new();
            let mut unique = Unique::default();
            for (count, argument) in self.section(&fields, "arguments").iter().enumerate() {
                if count >= limits::PARTS {
                    self.diagnostics
                        .error(argument.key_span, format!("more than {} arguments", limits::PARTS));
                    break;
                }
                if self.declare_name(argument, "", "argument", &mut unique).is_none() {
                    continue;
                }
                if CONSTANTS.contains(&&*argument.key) {
                    self.reserved(argument, "argument");
                    continue;
                }
                if let Some(kind) = self.word(&argument.value, "the kind of the argument", &ARGUMENT_KINDS) {
                    arguments.push((argument, kind));
                }
            }
            for part in self.section(&fields, "definitions") {
                self.declare_definition(part, &mut unique, None);
            }
            for (key, what) in [
                ("parameters", "parameter"),
                ("bodies", "body"),
                ("joints", "joint"),
                ("variables", "variable"),
                ("constraints", "constraint"),
            ] {
                for part in self.section(&fields, key) {
                    unique.add(&part.key, part.key_span, what, &mut self.diagnostics);
                }
            }
            elements
                .insert(&*entry.key, Rc::new(Element { entry, fields, arguments, used: Cell::new(false) }));
        }
        elements
    }

    /// Declares the instances of a section, and those inside their elements after each.
    fn declare_instances(
        &mut self,
        section: &Fields<'t>,
        around: Around<'_>,
        elements: &Elements<'t>,
        global: &mut Scope,
        spaces: &mut Spaces,
        out: &mut Vec<Instance<'t>>,
    ) {
        let mut names = Unique::default();
        for entry in self.section(section, "instances") {
            if self.is_exhausted() {
                return;
            }
            if out.len() >= limits::INSTANCES {
                let limit = limits::INSTANCES;
                self.diagnostics.error(entry.key_span, format!("more than {limit} instances"));
                return;
            }
            let Some(name) = self.declare_name(entry, "", "instance", &mut names) else {
                continue;
            };
            let Some(fields) = self.fields(&entry.value, entry.key_span, &keys::INSTANCE) else {
                continue;
            };
            let Some(element) = self.element_of(&fields, elements) else {
                continue;
            };
            if around.depth >= limits::ELEMENT_DEPTH {
                let limit = limits::ELEMENT_DEPTH;
                self.diagnostics
                    .error(entry.key_span, format!("elements are nested more than {limit} deep"))
                    .help("an element cannot contain itself");
                return;
            }
            let mirror = self.mirror_of(&fields, around);
            let mut scope = Scope { mirror, ..Scope::default() };
            let arguments = self.match_arguments(&fields, &element);
            if self.is_exhausted() {
                return;
            }
            let prefix = format!("{}{name}_", around.prefix);
            let names = Names { prefix: &prefix, local: &mut scope, global: Some(global), spaces };
            let unit = self.declare_unit(&element.fields, names);
            let place = out.len();
            out.push(Instance { unit, scope, arguments, parent: around.parent });
            let inside = Around { prefix: &prefix, parent: Some(place), mirror, depth: around.depth + 1 };
            self.declare_instances(&element.fields, inside, elements, global, spaces, out);
            // The element around it names its parts as the file names those of its own instances.
            if let Some(parent) = around.parent {
                let parts = &out[place].scope;
                let symbols: Vec<_> =
                    parts.symbols.iter().map(|(key, s)| (format!("{name}_{key}"), s.clone())).collect();
                let things: Vec<_> =
                    parts.things.iter().map(|(key, t)| (format!("{name}_{key}"), *t)).collect();
                let outer = &mut out[parent].scope;
                outer.symbols.extend(symbols);
                outer.things.extend(things);
            }
        }
    }

    fn element_of(&mut self, fields: &Fields<'t>, elements: &Elements<'t>) -> Option<Rc<Element<'t>>> {
        let entry = fields.require("element", self)?;
        let wanted = self.string(&entry.value)?;
        if let Some(element) = elements.get(wanted.as_str()) {
            element.used.set(true);
            return Some(Rc::clone(element));
        }
        let known: Vec<&str> = sorted(elements).into_iter().map(|(n, _)| n).collect();
        let help = match self.nearest(&wanted, known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "declare it under `elements`".into(),
        };
        let message = format!("unknown element `{}`", shorten(&wanted));
        self.diagnostics.error(entry.value.span, message).help(help);
        None
    }

    /// The mirror of an instance: its own, or inside an element that of the element.
    fn mirror_of(&mut self, fields: &Fields<'t>, around: Around<'_>) -> Option<u8> {
        let Some(entry) = fields.get("mirror") else { return around.mirror };
        if around.parent.is_some() {
            self.diagnostics
                .error(entry.key_span, "an instance inside an element cannot have a mirror of its own")
                .help("it is mirrored with the element around it");
            return around.mirror;
        }
        self.word(&entry.value, "the axis normal to the mirror", &[("x", 0u8), ("y", 1), ("z", 2)])
    }

    /// Pairs what an instance gives with what its element asks for.
    fn match_arguments(&mut self, fields: &Fields<'t>, element: &Element<'t>) -> Vec<Argument<'t>> {
        let given = self.section(fields, "arguments");
        let names: Vec<String> = element.arguments.iter().map(|(e, _)| e.key.to_string()).collect();
        let none = Keys { what: "this instance's arguments", keys: &[], later: &[], hints: &[] };
        for entry in given {
            self.check_key(entry, &none, &names);
        }
        let mut out = Vec::new();
        for (declared, kind) in &element.arguments {
            let node = given.iter().find(|e| e.key == declared.key).map(|e| &*e.value);
            if node.is_none() {
                let at: Span = fields.get("arguments").map_or(fields.at, |e| e.key_span);
                let word = ARGUMENT_KINDS.iter().find(|(_, k)| k == kind).map_or("", |(w, _)| w);
                self.diagnostics
                    .error(at, format!("missing argument `{}` (a {word})", declared.key))
                    .help("every argument of the element must be given");
            }
            out.push(Argument { name: declared.key.to_string(), kind: *kind, node });
        }
        out
    }
}

/// An argument an instance gives; no node if it is missing (reported).
pub(super) struct Argument<'t> {
    pub(super) name: String,
    pub(super) kind: ArgumentKind,
    pub(super) node: Option<&'t Node>,
}

/// How many values a parameter has, if it is an array.
fn array_length(node: &Node) -> Option<usize> {
    match &node.kind {
        Kind::Sequence(items) => Some(items.len()),
        Kind::Mapping(entries) => {
            let values = entries.iter().find(|e| &*e.key == "values")?;
            match &values.value.kind {
                Kind::Sequence(items) => Some(items.len()),
                _ => Some(0),
            }
        }
        Kind::Scalar(_) | Kind::Broken => None,
    }
}

/// Entries of a table in the order of their names, so that messages come in a fixed order.
fn sorted<'m, V>(map: &'m HashMap<&str, V>) -> Vec<(&'m str, &'m V)> {
    let mut list: Vec<(&str, &V)> = map.iter().map(|(k, v)| (*k, v)).collect();
    list.sort_unstable_by_key(|(k, _)| *k);
    list
}
