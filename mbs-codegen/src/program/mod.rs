//! The program of a model: its bundles and every name the outside needs. Printer and interpreter read it.
//!
//! Enters: a [`Model`], optionally one of its cases, and [`Options`]. Leaves: a [`Program`].
//! Holds afterwards: every bundle is verified.

mod bundle_kind;
mod equations;
mod estimate;
mod observed;
mod rolled;
mod sensitivities;
mod tree;

use crate::bundle::{self, Bundle, Rolled, Specification};
use crate::conditions::{Condition, Conditions};
use crate::constrained::{JointPlaces, ParameterPlaces, Pattern, Rows};
use crate::elements::{Mechanism, markers};
use crate::graph::{ExprId, Graph};
use crate::kinematics::ReferencePoint;
use crate::lowering::Parameters;
use crate::model::{Case, Hold, Model, OutputValue, ParameterValue, SensitivityRef, Simulation};
use crate::symbols::Group;
use crate::topology::{self, Tree};
use crate::watch::Watch;
pub use bundle_kind::BundleKind;
use equations::Equations;
use estimate::estimate;

/// Choices of how a model becomes a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Where velocities and forces of bodies are referred to.
    pub reference: ReferencePoint,
    /// Parameters become constants: the smallest code, and nothing to set.
    pub freeze: bool,
    /// Which bundles, beside `prepare`, `start` and `input_signals`.
    pub bundles: Vec<BundleKind>,
    /// How entries for pairs of a joint and an ancestor are computed.
    pub pairs: Pairs,
}

/// How bundles compute what they have for every pair of a joint and an ancestor, where that may be looped over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pairs {
    /// Flat code for few pairs, loops for many.
    #[default]
    Auto,
    /// Flat code.
    Flat,
    /// Loops over constant tables.
    Rolled,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            reference: ReferencePoint::default(),
            freeze: false,
            bundles: BundleKind::STANDARD.to_vec(),
            pairs: Pairs::default(),
        }
    }
}

/// An independent parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct ParameterInfo {
    /// Name as written.
    pub name: String,
    /// Free text, may be empty.
    pub description: String,
    /// Unit as written, may be empty.
    pub unit: String,
    /// Defaults: one for a scalar.
    pub defaults: Vec<f64>,
    /// Whether it was declared as an array.
    pub is_array: bool,
    /// Smallest and largest allowed value.
    pub bounds: (Option<f64>, Option<f64>),
}

/// An input.
#[derive(Clone, Debug, PartialEq)]
pub struct InputInfo {
    /// Name as written.
    pub name: String,
    /// Free text, may be empty.
    pub description: String,
    /// Unit as written, may be empty.
    pub unit: String,
    /// How it is held over a step.
    pub hold: Hold,
}

/// What the solver must know of the matrices that bundles write; empty without those bundles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Structure {
    /// Places of the leading matrix's entries.
    pub pattern: Pattern,
    /// The unknowns to which its pivots belong, in order.
    pub columns: Vec<u32>,
    /// The same for the elimination in joint form.
    pub joint_columns: Vec<u32>,
    /// Places of the derivatives.
    pub derivatives: DerivativePlaces,
    /// Places of the regressor's blocks: (velocity, body).
    pub regressor: Vec<(u32, u32)>,
}

/// Places of derivatives that bundles write one after the other, (row, column); empty without those bundles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DerivativePlaces {
    /// Of start values z and v by parameters.
    pub start: [Vec<(u32, u32)>; 2],
    /// By parameters, in coordinate form.
    pub parameters: ParameterPlaces,
    /// Of integrands and terminal terms by (z, zd, zdd, λ, parameters).
    pub objectives: [Vec<(u32, u32)>; 2],
    /// In joint form.
    pub joint: JointPlaces,
    /// Of inverse dynamics by parameters: (velocity, parameter).
    pub inverse_dynamics: Vec<(u32, u32)>,
    /// Of integrands and terminal terms by (θ, v, vd, λ, parameters).
    pub joint_objectives: [Vec<(u32, u32)>; 2],
}

/// A model as bundles, with its names.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// The model's name.
    pub name: String,
    /// Free text, may be empty.
    pub description: String,
    /// The case it was made for, if any.
    pub case: Option<String>,
    /// How it was made.
    pub options: Options,
    /// The bundles it has, beside `prepare`, `start` and `input_signals`.
    pub kinds: Vec<BundleKind>,
    /// Independent parameters; empty when frozen.
    pub parameters: Vec<ParameterInfo>,
    /// Inputs.
    pub inputs: Vec<InputInfo>,
    /// Names of the coordinates, `joint.coordinate`.
    pub coordinates: Vec<String>,
    /// Names of the velocities, `joint.velocity`.
    pub velocities: Vec<String>,
    /// Names of the markers, `body.point`.
    pub markers: Vec<String>,
    /// Names and units of the outputs; a vector has three.
    pub outputs: Vec<(String, String)>,
    /// Names and units of the objectives.
    pub objectives: Vec<(String, String)>,
    /// Names of what it is differentiated by: parameters, elements of arrays, inputs.
    pub sensitivity: Vec<String>,
    /// The same by place: a value of [`Group::Parameters`], or of [`Group::U`].
    pub seeds: Vec<(Group, u32)>,
    /// Names of the joints.
    pub joints: Vec<String>,
    /// Names of the bodies but ground.
    pub bodies: Vec<String>,
    /// Names of the joints that are cut.
    pub cuts: Vec<String>,
    /// Names of the holonomic rows.
    pub holonomic: Vec<String>,
    /// Names of the nonholonomic rows.
    pub nonholonomic: Vec<String>,
    /// Names of the joints with Euler parameters: their normalisation rows.
    pub normalised: Vec<String>,
    /// Names of the rows that nobody computes: they vanish identically, or no coordinate changes them.
    pub dropped_rows: Vec<String>,
    /// What parameters must keep, beside the bounds of each: bundle `conditions` gives a margin and a value for each. None
    /// if they are frozen.
    pub conditions: Vec<Condition>,
    /// Branches that a run may change over; none if there are none.
    pub watch: Option<Watch>,
    /// Which coordinates are held during assembly.
    pub held: Vec<bool>,
    /// Places of matrix entries and orders of elimination.
    pub structure: Structure,
    /// Offsets of the blocks of Euler parameters among z.
    pub euler_parameters: Vec<usize>,
    /// Simulation defaults.
    pub simulation: Simulation,
    /// `prepare` first.
    pub bundles: Vec<Bundle>,
}

impl Program {
    /// The program of a model, under a case if one is given.
    pub fn new(model: &Model, case: Option<&Case>, options: &Options) -> Result<Program, ProgramError> {
        let mut model = model.under_case(case);
        if options.freeze {
            // What is a constant has no derivatives.
            model.sensitivity.retain(|one| matches!(one, SensitivityRef::Input(_)));
        }
        let model = &model;
        let mut options = options.clone();
        options.bundles.sort();
        options.bundles.dedup();
        let tree = topology::span(model);
        let rows = Rows::of(model, &tree);
        for checked in &rows.checked {
            if let Some(&one) = checked.changed_by.first() {
                let (row, parameter) = (checked.row.name.clone(), model.sensitivity_name(one));
                return Err(ProgramError::Violating { row, parameter });
            }
        }
        let constrained = !rows.kept.is_empty() || !model.variables.is_empty();
        let kinds = BundleKind::resolve(&options.bundles, constrained, !model.sensitivity.is_empty());
        for &kind in &kinds {
            let operations = estimate(kind, model, &tree, options.pairs);
            if operations > MAX_OPERATIONS {
                return Err(ProgramError::Bundle { bundle: kind.name(), operations });
            }
        }
        let infos = if options.freeze { Vec::new() } else { parameter_infos(model) };
        let np: usize = infos.iter().map(|p| p.defaults.len()).sum();
        let points: usize = model.bodies.iter().map(|b| b.points.len()).sum();
        for (what, count) in [("parameters", np), ("points", points)] {
            if count > MAX_NAMES {
                return Err(ProgramError::Names { what, count });
            }
        }
        let mut g = Graph::new();
        let parameters = Parameters::lower(&mut g, model, options.freeze);
        let mut mechanism = Mechanism::new(&mut g, model, &tree, &parameters, options.reference);
        let conditions = if options.freeze {
            Conditions::default()
        } else {
            Conditions::of(&mut g, &mut mechanism, &rows, case)
        };
        let seeds = seeds(model);
        let symbols: Vec<ExprId> = seeds.iter().map(|&(group, place)| g.symbol(group, place)).collect();
        let mut equations = Equations::new(&mut g, &mut mechanism, &rows, &symbols, options.pairs);
        let mut specifications = vec![equations.start(), equations.input_signals(case)];
        if let Some(&(input, parameter)) = equations.differentiated_signals(&specifications[1]).first() {
            return Err(ProgramError::Signal {
                input: model.inputs[input as usize].name.clone(),
                parameter: model.sensitivity_name(model.sensitivity[parameter as usize]),
            });
        }
        if !conditions.all.is_empty() {
            specifications.push(condition_bundle(&conditions));
        }
        for &kind in &kinds {
            specifications.extend(equations.specifications(kind)?);
        }
        let structure = equations.structure();
        debug_assert_eq!(crate::graph::verify::verify(&g), Ok(()));
        for specification in &specifications {
            let roots: Vec<ExprId> = specification.expressions().collect();
            let operations = g.reachable(&roots).len();
            // Expressions of the model are not in the estimate. Half of the nodes are fused into others.
            if operations > 2 * MAX_OPERATIONS {
                return Err(ProgramError::Bundle { bundle: specification.name, operations });
            }
        }

        let len = |group| match group {
            Group::Time => 1,
            Group::Z | Group::Zd | Group::Zdd | Group::VelocityImpulse | Group::AccelerationImpulse => {
                tree.nq as u32
            }
            Group::V | Group::Vd | Group::Tau => tree.nv as u32,
            Group::Wrenches => 6 * (model.bodies.len() - 1) as u32,
            Group::U => model.inputs.len() as u32,
            Group::Weights | Group::Stabilisation => 3,
            Group::Parameters => np as u32,
            Group::X | Group::Prepared | Group::Free => 0,
            // Their lengths are their bundles' own.
            Group::Lambda | Group::VelocityMultipliers | Group::AccelerationMultipliers => 0,
            Group::Matrix | Group::Factors | Group::Rhs => 0,
        };
        let bundles = bundle::build(&g, &specifications, len);
        let watch = Watch::new(&mut g, &mut mechanism, &rows, &symbols, len);
        debug_assert!(bundles.iter().all(|b| bundle::verify::verify(b) == Ok(())));
        Ok(Program {
            name: model.name.clone(),
            description: model.description.clone(),
            case: case.map(|c| c.name.clone()),
            options,
            kinds,
            parameters: infos,
            inputs: model
                .inputs
                .iter()
                .map(|i| InputInfo {
                    name: i.name.clone(),
                    description: i.description.clone(),
                    unit: i.unit.clone(),
                    hold: i.hold,
                })
                .collect(),
            coordinates: tree.coordinate_names(model),
            velocities: tree.velocity_names(model),
            markers: markers::named(model).into_iter().map(|(name, _)| name).collect(),
            outputs: output_names(model),
            objectives: model.objectives.iter().map(|o| (o.name.clone(), o.unit.clone())).collect(),
            sensitivity: model.sensitivity_names(&model.sensitivity),
            seeds,
            joints: model.joints.iter().map(|joint| joint.name.clone()).collect(),
            bodies: model.bodies.iter().skip(1).map(|body| body.name.clone()).collect(),
            cuts: cut_names(model, &tree),
            holonomic: rows.kept[..rows.holonomic()].iter().map(|row| row.name.clone()).collect(),
            nonholonomic: rows.kept[rows.holonomic()..].iter().map(|row| row.name.clone()).collect(),
            normalised: normalised(model, &tree),
            dropped_rows: rows.dropped.clone(),
            conditions: conditions.all,
            watch,
            held: held(model, &tree),
            structure,
            euler_parameters: tree
                .links
                .iter()
                .filter_map(|l| l.euler_parameters())
                .map(|(z, _)| z)
                .collect(),
            simulation: case.map_or(&model.simulation, |c| &c.simulation).clone(),
            bundles,
        })
    }

    /// Bundles that were asked for by name and do not exist for this model, since it has constraints. Whoever asks for all
    /// means those that exist.
    pub fn absent(&self) -> Vec<BundleKind> {
        let asked = &self.options.bundles;
        if BundleKind::ALL.iter().all(|kind| asked.contains(kind)) {
            return Vec::new();
        }
        let is_absent =
            |kind: &&BundleKind| BundleKind::UNCONSTRAINED.contains(kind) && !self.kinds.contains(kind);
        asked.iter().filter(is_absent).copied().collect()
    }

    /// Numbers of the leading matrix, its diagonal of small numbers included.
    pub fn matrix_len(&self) -> usize {
        let rows = self.holonomic.len() + self.euler_parameters.len() + self.nonholonomic.len();
        if self.structure.columns.is_empty() { 0 } else { self.structure.pattern.entries() + rows }
    }

    /// Numbers of its factors.
    pub fn factors_len(&self) -> usize {
        self.result_len(BundleKind::Factor, 0)
    }

    /// How many scalars a result of a bundle has; none without the bundle.
    pub fn result_len(&self, kind: BundleKind, result: usize) -> usize {
        let bundle = self.bundle(kind.name());
        bundle.and_then(|bundle| bundle.results.get(result)).map_or(0, |result| result.len as usize)
    }

    /// A bundle by its name.
    pub fn bundle(&self, name: &str) -> Option<&Bundle> {
        self.bundles.iter().find(|b| b.name == name)
    }

    /// Defaults of the independent parameters, arrays flattened.
    pub fn defaults(&self) -> Vec<f64> {
        self.parameters.iter().flat_map(|p| p.defaults.iter().copied()).collect()
    }

    /// Names of the independent parameters, arrays flattened to `name[i]`.
    pub fn parameter_names(&self) -> Vec<String> {
        let mut names = Vec::new();
        for parameter in &self.parameters {
            if parameter.is_array {
                names.extend((0..parameter.defaults.len()).map(|i| format!("{}[{i}]", parameter.name)));
            } else {
                names.push(parameter.name.clone());
            }
        }
        names
    }
}

/// Most operations of one bundle: about half a gigabyte of graph and schedule, and flat code far beyond
/// what is fast.
pub const MAX_OPERATIONS: usize = 2_000_000;

/// Most values of independent parameters, and most points, that a module can have: each has a name of its own.
pub const MAX_NAMES: usize = 100_000;

/// Why a model has no program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProgramError {
    /// No order of elimination solves the equations of motion.
    Singular,
    /// The signal of an input depends on a parameter by which the model is differentiated.
    Signal {
        /// Name of the input.
        input: String,
        /// Name of the parameter.
        parameter: String,
    },
    /// The model is differentiated by a parameter that violates a row which no coordinate can correct.
    Violating {
        /// Name of the row.
        row: String,
        /// Name of the parameter.
        parameter: String,
    },
    /// A bundle that would need more than [`MAX_OPERATIONS`].
    Bundle {
        /// Which.
        bundle: &'static str,
        /// About how many operations.
        operations: usize,
    },
    /// More than [`MAX_NAMES`].
    Names {
        /// Of what.
        what: &'static str,
        /// How many.
        count: usize,
    },
}

impl std::fmt::Display for ProgramError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ProgramError::Bundle { bundle, operations } => write!(
                f,
                "bundle `{bundle}` would need about {operations} operations, more than {MAX_OPERATIONS}; leave it out, or \
                 split the model"
            ),
            ProgramError::Signal { input, parameter } => write!(
                f,
                "the case's signal of input `{input}` depends on `{parameter}`, by which the model is differentiated: \
                 write the signal where the input is used, or take `{parameter}` from `sensitivity`"
            ),
            ProgramError::Violating { row, parameter } => write!(
                f,
                "there is no derivative by `{parameter}`: it changes constraint `{row}`, which no coordinate can correct; let \
                 both sides of it follow the same parameter, or give the mechanism a joint that moves along it"
            ),
            ProgramError::Singular => f.write_str(
                "the equations of motion cannot be solved at the start: masses and constraints leave some motion undetermined",
            ),
            ProgramError::Names { what, count } => {
                write!(f, "the model has {count} {what}, more than {MAX_NAMES}; split it")
            }
        }
    }
}

impl std::error::Error for ProgramError {}

/// Margins of the conditions.
fn condition_bundle(conditions: &Conditions) -> Specification {
    let wanted = equations::wanted;
    Specification {
        rolled: Rolled::default(),
        name: "conditions",
        doc: "What the parameters must keep.",
        arguments: vec![(Group::Parameters, None)],
        results: vec![
            wanted("margins", "what must not be negative", conditions.margins.clone()),
            wanted("shown", "what a message shows", conditions.shown.clone()),
        ],
    }
}

/// By what a model is differentiated, by place.
fn seeds(model: &Model) -> Vec<(Group, u32)> {
    let place = |one: &SensitivityRef| match *one {
        SensitivityRef::Input(id) => Some((Group::U, id.index() as u32)),
        parameter => model.sensitivity_parameter(parameter).map(|place| (Group::Parameters, place as u32)),
    };
    model.sensitivity.iter().filter_map(place).collect()
}

fn parameter_infos(model: &Model) -> Vec<ParameterInfo> {
    let mut infos = Vec::new();
    for parameter in &model.parameters {
        let (defaults, is_array) = match &parameter.value {
            ParameterValue::Number(value) => (vec![*value], false),
            ParameterValue::Array(values) => (values.clone(), true),
            ParameterValue::Derived(_) => continue,
        };
        infos.push(ParameterInfo {
            name: parameter.name.clone(),
            description: parameter.description.clone(),
            unit: parameter.unit.clone(),
            defaults,
            is_array,
            bounds: (parameter.min, parameter.max),
        });
    }
    infos
}

fn output_names(model: &Model) -> Vec<(String, String)> {
    let mut names = Vec::new();
    for output in &model.outputs {
        match output.value {
            OutputValue::Scalar(_) => names.push((output.name.clone(), output.unit.clone())),
            OutputValue::Vector(_) => names
                .extend(["x", "y", "z"].map(|axis| (format!("{}.{axis}", output.name), output.unit.clone()))),
        }
    }
    names
}

fn cut_names(model: &Model, tree: &Tree) -> Vec<String> {
    let cut = model.joints.iter().zip(&tree.link_of_joint).filter(|(_, link)| link.is_none());
    cut.map(|(joint, _)| joint.name.clone()).collect()
}

fn normalised(model: &Model, tree: &Tree) -> Vec<String> {
    let balls = tree.links.iter().filter(|link| link.euler_parameters().is_some());
    balls.map(|link| model.joints[link.joint.index()].name.clone()).collect()
}

fn held(model: &Model, tree: &Tree) -> Vec<bool> {
    let joints =
        tree.links.iter().flat_map(|link| model.joints[link.joint.index()].start.hold.iter().copied());
    joints.chain(model.variables.iter().map(|variable| variable.hold)).collect()
}
