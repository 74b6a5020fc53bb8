//! From the text of a model file to the typed [`Model`].
//!
//! Input: text. Output: a model, or every problem of the file with its place. The way: `load` makes a tree that
//! knows its places; `library` adds standard elements; `declare` finds all names and expands elements; then each section is read, its expressions
//! parsed and typed, and what can be checked at the default parameters is checked.
//! Holds afterwards, if there is a model: what [`crate::model`] promises; the joints have a tree rooted at
//! `ground`, see [`crate::topology`]; every variable stands in a constraint.
//!
//! No input makes this panic, hang or take memory without bound: see [`limits`].

mod arguments;
mod bodies;
mod constraints;
mod declare;
mod definitions;
mod denavit_hartenberg;
mod events;
mod expression;
mod fields;
mod forces;
mod joints;
pub mod keys;
mod library;
pub mod limits;
mod load;
mod mirror;
mod modes;
mod names;
mod node;
mod objectives;
mod optimisation;
mod outputs;
mod parameters;
mod place;
mod reader;
mod scope;
mod sensitivity;
mod shapes;
mod shared_joints;
mod simulation;
mod start;
mod tree;
mod variables;

pub use library::STANDARD_ELEMENTS;

use std::rc::Rc;

use crate::diagnostics::{Diagnostics, Span};
use crate::model::evaluate::Values;
use crate::model::{Coordinates, Joint, Model, Vector};
use expression::resolve::Context;
use fields::Fields;
use load::shorten;
use names::{check_name, is_name};
use node::{Kind, Node};
use optimisation::Named;
use reader::Reader;
use scope::Symbols;
use sensitivity::Choices;
use simulation::{Around, Settings};

/// The version of the model file this reader understands: the value of the key `mbs`.
pub const VERSION: u32 = 1;

/// Reads a model file.
///
/// `file_name` only gives the model its name if the file does not. The model is absent exactly if there are
/// errors; warnings may stand beside a model.
pub fn read(file_name: &str, text: &str) -> (Option<Model>, Diagnostics) {
    let mut diagnostics = Diagnostics::new();
    let Some(root) = load::load(text, &mut diagnostics) else {
        if !diagnostics.has_errors() {
            empty_file(&mut diagnostics);
        }
        return (None, diagnostics);
    };
    let root = library::add_standard_elements(root);
    let mut reader = Reader {
        text,
        global: Rc::default(),
        diagnostics,
        symbols: Symbols::default(),
        values: Values::of(&[], &[]),
        bodies: Vec::new(),
        joints_incomplete: false,
        constraints_incomplete: false,
        operations: 0,
        knots: Vec::new(),
        cuts: Vec::new(),
        listed: Vec::new(),
    };
    let model = reader.read_model(file_name, &root);
    let model = model.filter(|_| !reader.diagnostics.has_errors());
    (model, reader.diagnostics)
}

fn empty_file(diagnostics: &mut Diagnostics) {
    diagnostics
        .error(Span { line: 1, column: 1, ..Span::default() }, "the file is empty")
        .help("a model file starts with `mbs: 1`");
}

/// Points whose coordinates a simulation names as independent become variables, unless a joint or variable has the name.
fn tie_independent_points(model: &mut Model) {
    let simulations = [&model.simulation].into_iter().chain(model.cases.iter().map(|case| &case.simulation));
    let named: Vec<_> = simulations.flat_map(|simulation| simulation.independent.clone()).collect();
    for (name, span) in named {
        let of_joint = |joint: &Joint| {
            let coordinate = name.strip_prefix(&joint.name).and_then(|rest| rest.strip_prefix('.'));
            coordinate.is_some_and(|coordinate| joint.coordinates.iter().any(|own| own == coordinate))
        };
        if !model.joints.iter().any(of_joint) {
            model.tie_point(&name, span);
        }
    }
}

impl<'t> Reader<'t> {
    fn read_model(&mut self, file_name: &str, root: &'t Rc<Node>) -> Option<Model> {
        let root: &'t Node = root;
        if root.is_null() {
            empty_file(&mut self.diagnostics);
            return None;
        }
        if !self.check_version(root) {
            return None;
        }
        let file = self.fields(root, root.span, &keys::MODEL)?;
        let name = self.read_name(&file, file_name);
        let description = file.value("description").and_then(|n| self.string(n)).unwrap_or_default();

        let coordinates = file.value("coordinates").and_then(|node| {
            let words = Coordinates::ALL.map(|coordinates| (coordinates.keyword(), coordinates));
            self.word(node, "a kind of coordinates", &words)
        });

        let declarations = self.declare(&file);
        let parameters = self.read_parameters(&declarations);
        let inputs = self.read_inputs(&declarations);
        let scope = Rc::clone(&declarations.units.first()?.scope);
        let gravity = file.value("gravity").and_then(|node| {
            let gravity = self.vector(node, &scope, Context::Parameters)?;
            self.default_vector(node.span, &gravity, "gravity");
            Some(gravity)
        });
        self.read_bodies(&declarations);
        if self.bodies.len() == 1
            && file.value("bodies").is_none_or(|n| n.is_null() || matches!(n.kind, Kind::Mapping(_)))
        {
            let at = file.get("bodies").or(file.get("mbs")).map_or(file.at, |e| e.key_span);
            self.diagnostics.error(at, "the model has no bodies").help("describe them under `bodies`");
        }
        let joints = self.read_joints(&declarations);
        let variables = self.read_variables(&declarations);
        let forces = self.read_forces(&declarations);
        let constraints = self.read_constraints(&declarations);
        let outputs = self.read_outputs(&declarations);
        let objectives = self.read_objectives(&declarations);
        let events = self.read_events(&declarations);
        let constrained = !constraints.is_empty() || joints.len() >= self.bodies.len();
        let settings = self.read_simulation(file.get("simulation"), Settings::new(constrained));
        let choices = Choices { scope: &scope, parameters: &parameters, inputs: &inputs };
        let sensitivity = file.value("sensitivity").map(|n| self.read_sensitivity(n, choices, None));
        let root_unit = declarations.units.first()?;
        let around =
            Around { parameters: &parameters, inputs: &inputs, joints: &joints, variables: &variables };
        let knots = self.check_knots(&self.values.clone());
        let cases = self.read_cases(&file, root_unit, &around, &settings, &knots);
        let named = Named { choices, objectives: &objectives, outputs: &outputs, cases: &cases };
        let optimisation = self.read_optimisation(&file, named);
        let mut model = Model {
            name,
            description,
            coordinates: coordinates.unwrap_or_default(),
            gravity: gravity.unwrap_or_else(|| Vector::constant([0.0; 3])),
            parameters,
            inputs,
            outputs,
            bodies: std::mem::take(&mut self.bodies),
            joints,
            variables,
            forces,
            modes: self.read_modes(),
            clock: None,
            constraints,
            objectives,
            events,
            sensitivity: sensitivity.unwrap_or_default(),
            simulation: settings.simulation,
            cases,
            optimisation,
            knots,
        };
        let words = [("exact", true), ("plain", false)];
        if let Some(node) = file.value("switches")
            && self.word(node, "how branches of laws are treated", &words) == Some(true)
        {
            for place in model.promote_switches() {
                self.diagnostics
                    .warning(place, "`switches: exact` evaluates both sides of a branch, and one of them is not a number everywhere")
                    .help("write it so that it is: `max(x, 0)^1.5` is not enough, `(x^2 + 1e-12)^0.75` is; or leave the law as it is: `switches: plain`");
            }
        }
        tie_independent_points(&mut model);
        self.keep_event_terms(&mut model);
        self.check_events(&model);
        self.check_modes(&model);
        self.check_tree(&model);
        self.check_variables(&model);
        self.check_sensitivity(&model);
        model.add_clock();
        Some(model)
    }

    /// The first key must be `mbs: 1`.
    fn check_version(&mut self, root: &Node) -> bool {
        let Kind::Mapping(entries) = &root.kind else {
            self.diagnostics
                .error(root.span, format!("a model file is a mapping, but this is {}", root.describe()))
                .help("it starts with `mbs: 1`");
            return false;
        };
        let Some(first) = entries.first() else {
            empty_file(&mut self.diagnostics);
            return false;
        };
        if &*first.key != "mbs" {
            match entries.iter().find(|e| &*e.key == "mbs") {
                Some(late) => self
                    .diagnostics
                    .error(late.key_span, "`mbs` must be the first key")
                    .help("move the line to the top of the file"),
                None => self
                    .diagnostics
                    .error(first.key_span, "the first key must be `mbs`, the version of the file's format")
                    .help("start the file with `mbs: 1`"),
            };
        }
        let Some(version) = entries.iter().find(|e| &*e.key == "mbs") else {
            return true;
        };
        match &version.value.kind {
            Kind::Scalar(text) if &*text.value == "1" => true,
            Kind::Scalar(text) => {
                let shown = shorten(&text.value);
                self.diagnostics
                    .error(version.value.span, format!("version `{shown}` of the format is not known"))
                    .help(format!("this program reads version {VERSION}: `mbs: {VERSION}`"));
                false
            }
            _ => {
                self.diagnostics
                    .error(
                        version.value.span,
                        format!("expected a version, found {}", version.value.describe()),
                    )
                    .help(format!("write `mbs: {VERSION}`"));
                false
            }
        }
    }

    /// The model's name: its key `name`, or else the file's name without directory and extension.
    fn read_name(&mut self, file: &Fields<'t>, file_name: &str) -> String {
        if let Some(node) = file.value("name") {
            let name = self.string(node).unwrap_or_default();
            check_name(&name, node.span, "a model", &mut self.diagnostics);
            return name;
        }
        let base = file_name.rsplit(['/', '\\']).next().unwrap_or("");
        let stem = base.split('.').next().unwrap_or("");
        let mut name: String = stem
            .chars()
            .take(limits::NAME_CHARS)
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
            .collect();
        if !is_name(&name) {
            name = "model".into();
        }
        name
    }
}
