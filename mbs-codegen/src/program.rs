//! The program of a model: its bundles and every name the outside needs. Printer and interpreter read it.
//!
//! Enters: a [`Model`], optionally one of its cases, and [`Options`]. Leaves: a [`Program`].
//! Holds afterwards: every bundle is verified.

use crate::bundle::{self, Bundle, Specification, Wanted};
use crate::derivatives::{InverseDynamicsDerivatives, inverse_dynamics_derivatives};
use crate::dynamics::{
    Solved, Symmetric, articulated_body, body_inertias, coordinate_form, energy, forward_dynamics,
    inverse_dynamics, mass_matrix,
};
use crate::elements::{Loads, Mechanism, loads, markers};
use crate::graph::{ExprId, Graph};
use crate::kinematics::ReferencePoint;
use crate::lowering::{Environment, Lowering, Parameters, ParametersOnly};
use crate::model::{Case, Hold, Model, OutputValue, ParameterValue, Simulation};
use crate::symbols::Group;
use crate::topology::{self, Tree};

/// Choices of how a model becomes a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Where velocities and forces of bodies are referred to.
    pub reference: ReferencePoint,
    /// Parameters become constants: the smallest code, and nothing to set.
    pub freeze: bool,
    /// Which bundles, beside `prepare`, `start` and `input_signals`.
    pub bundles: Vec<BundleKind>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            reference: ReferencePoint::default(),
            freeze: false,
            bundles: BundleKind::STANDARD.to_vec(),
        }
    }
}

/// The bundles one can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BundleKind {
    /// zd, vd from M vd = Q.
    ForwardDynamics,
    /// zd, vd by articulated bodies.
    ForwardDynamicsRecursive,
    /// M in joint form.
    MassMatrix,
    /// M in coordinate form.
    MassMatrixCoordinates,
    /// tau = M vd − Q.
    InverseDynamics,
    /// Its derivatives by position, velocity and acceleration.
    InverseDynamicsDerivatives,
    /// Kinetic and potential energy, power.
    Energy,
    /// Positions, velocities and accelerations of all named points.
    Markers,
    /// Their Jacobians.
    MarkerJacobians,
    /// The model's outputs.
    Outputs,
}

impl BundleKind {
    /// All of them.
    pub const ALL: [BundleKind; 10] = [
        BundleKind::ForwardDynamics,
        BundleKind::ForwardDynamicsRecursive,
        BundleKind::MassMatrix,
        BundleKind::MassMatrixCoordinates,
        BundleKind::InverseDynamics,
        BundleKind::InverseDynamicsDerivatives,
        BundleKind::Energy,
        BundleKind::Markers,
        BundleKind::MarkerJacobians,
        BundleKind::Outputs,
    ];

    /// What simulation and its results need.
    pub const STANDARD: [BundleKind; 4] =
        [BundleKind::ForwardDynamics, BundleKind::Energy, BundleKind::Markers, BundleKind::Outputs];

    /// The function's name.
    pub fn name(self) -> &'static str {
        match self {
            BundleKind::ForwardDynamics => "forward_dynamics",
            BundleKind::ForwardDynamicsRecursive => "forward_dynamics_recursive",
            BundleKind::MassMatrix => "mass_matrix",
            BundleKind::MassMatrixCoordinates => "mass_matrix_coordinates",
            BundleKind::InverseDynamics => "inverse_dynamics",
            BundleKind::InverseDynamicsDerivatives => "inverse_dynamics_derivatives",
            BundleKind::Energy => "energy",
            BundleKind::Markers => "markers",
            BundleKind::MarkerJacobians => "marker_jacobians",
            BundleKind::Outputs => "outputs",
        }
    }

    /// The bundle with this name.
    pub fn from_name(name: &str) -> Option<BundleKind> {
        BundleKind::ALL.into_iter().find(|kind| kind.name() == name)
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
    /// Offsets of the blocks of Euler parameters among z.
    pub euler_parameters: Vec<usize>,
    /// Simulation defaults.
    pub simulation: Simulation,
    /// `prepare` first.
    pub bundles: Vec<Bundle>,
}

impl Program {
    /// The program of a model, under a case if one is given.
    pub fn new(model: &Model, case: Option<&Case>, options: &Options) -> Result<Program, TooLarge> {
        let model = &under_case(model, case);
        // The order in which bundles are asked for, or how often, changes nothing.
        let mut options = options.clone();
        options.bundles.sort();
        options.bundles.dedup();
        let tree = topology::span(model);
        for &kind in &options.bundles {
            let operations = estimate(kind, model, &tree);
            if operations > MAX_OPERATIONS {
                return Err(TooLarge { bundle: kind, operations });
            }
        }
        let mut g = Graph::new();
        let parameters = Parameters::lower(&mut g, model, options.freeze);
        let mut mechanism = Mechanism::new(&mut g, model, &tree, &parameters, options.reference);
        let specifications = specifications(&mut g, &mut mechanism, case, &options.bundles);
        debug_assert_eq!(crate::graph::verify::verify(&g), Ok(()));

        let infos = if options.freeze { Vec::new() } else { parameter_infos(model) };
        let np: usize = infos.iter().map(|p| p.defaults.len()).sum();
        let len = |group| match group {
            Group::Time => 1,
            Group::Z | Group::Zd => tree.nq as u32,
            Group::V | Group::Vd => tree.nv as u32,
            Group::U => model.inputs.len() as u32,
            Group::Parameters => np as u32,
            Group::X | Group::Prepared | Group::Free => 0,
        };
        let bundles = bundle::build(&g, &specifications, len);
        debug_assert!(bundles.iter().all(|b| bundle::verify::verify(b) == Ok(())));
        Ok(Program {
            name: model.name.clone(),
            description: model.description.clone(),
            case: case.map(|c| c.name.clone()),
            options,
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

/// A bundle that would need more than [`MAX_OPERATIONS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge {
    /// Which bundle.
    pub bundle: BundleKind,
    /// About how many operations.
    pub operations: usize,
}

impl std::fmt::Display for TooLarge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "bundle `{}` would need about {} operations, more than {MAX_OPERATIONS}; ",
            self.bundle.name(),
            self.operations
        )?;
        match self.bundle {
            BundleKind::ForwardDynamics => f.write_str(
                "ask for `forward_dynamics_recursive`, whose cost grows with the number of bodies only",
            ),
            _ => f.write_str("leave it out, or split the model"),
        }
    }
}

impl std::error::Error for TooLarge {}

/// About how many operations (or results) a bundle needs, from the tree alone: known before anything is
/// built, so that no model takes memory without bound.
fn estimate(kind: BundleKind, model: &Model, tree: &Tree) -> usize {
    let parents = tree.v_parents();
    // depth[k]: velocities from ground to k, itself included
    let mut depth = vec![0usize; tree.nv];
    let (mut entries, mut eliminations) = (0usize, 0usize);
    // below[k]: Σ depth over k and the velocities between it and ground
    let mut below = vec![0usize; tree.nv];
    for k in 0..tree.nv {
        let (d, b) = parents[k].map_or((0, 0), |p| (depth[p], below[p]));
        depth[k] = d + 1;
        below[k] = b + depth[k];
        entries += depth[k];
        eliminations += b;
    }
    let markers: usize = model.bodies.iter().map(|b| b.points.len()).sum();
    // A link's kinematics and inertia, and an entry of M, in operations.
    let (link, entry) = (600 * tree.links.len(), 11 * entries);
    match kind {
        BundleKind::ForwardDynamics => link + entry + eliminations,
        BundleKind::ForwardDynamicsRecursive | BundleKind::InverseDynamics => link,
        BundleKind::Energy | BundleKind::Outputs => link,
        BundleKind::InverseDynamicsDerivatives => 2 * link + 5 * entry + 3 * tree.nv * tree.nv,
        BundleKind::MassMatrix => link + entry + tree.nv * tree.nv,
        BundleKind::MassMatrixCoordinates => link + entry + 4 * tree.nq * tree.nq,
        BundleKind::Markers => link + 60 * markers,
        BundleKind::MarkerJacobians => link + 3 * markers.saturating_mul(tree.nv),
    }
}

/// The model with a case's parameters and start values in place of its own.
fn under_case(model: &Model, case: Option<&Case>) -> Model {
    let mut model = model.clone();
    if let Some(case) = case {
        for (id, value) in &case.parameters {
            model.parameters[id.index()].value = value.clone();
        }
        for (id, start) in &case.start {
            model.joints[id.index()].start = start.clone();
        }
    }
    model
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

/// What depends on the state of the mechanism at one instant.
const INSTANT: [Group; 4] = [Group::Time, Group::Z, Group::V, Group::U];
/// The same with accelerations.
const MOTION: [Group; 5] = [Group::Time, Group::Z, Group::V, Group::Vd, Group::U];

fn specifications(
    g: &mut Graph,
    mechanism: &mut Mechanism<'_>,
    case: Option<&Case>,
    kinds: &[BundleKind],
) -> Vec<Specification> {
    let mut specifications = vec![start(g, mechanism), input_signals(g, mechanism, case)];
    let loads = loads(g, mechanism);
    let inertias = body_inertias(g, mechanism);
    for &kind in BundleKind::ALL.iter().filter(|kind| kinds.contains(kind)) {
        specifications.push(specification(g, mechanism, &loads, &inertias, kind));
    }
    specifications
}

fn specification(
    g: &mut Graph,
    mechanism: &mut Mechanism<'_>,
    loads: &Loads,
    inertias: &[(ExprId, Symmetric)],
    kind: BundleKind,
) -> Specification {
    let wanted = |name, doc, expressions| Wanted { name, doc, expressions };
    let (doc, arguments, results) = match kind {
        BundleKind::ForwardDynamics | BundleKind::ForwardDynamicsRecursive => {
            let (doc, solved) = if kind == BundleKind::ForwardDynamics {
                ("Accelerations from M vd = Q, factored for the tree's sparsity.", {
                    forward_dynamics(g, mechanism, inertias, loads)
                })
            } else {
                ("Accelerations by the articulated-body recursion.", {
                    articulated_body(g, mechanism, inertias, loads)
                })
            };
            let Solved { vd, pivots } = solved;
            let zd = (0..mechanism.tree.nq).map(|z| mechanism.rate_of(g, z)).collect();
            let results = vec![
                wanted("zd", "time derivatives of the coordinates", zd),
                wanted("vd", "accelerations", vd),
                wanted("pivots", "pivots of the mass matrix; all are positive where it is regular", pivots),
            ];
            (doc, INSTANT.to_vec(), results)
        }
        BundleKind::MassMatrix => {
            let m = mass_matrix(g, mechanism, inertias).dense();
            let results = vec![wanted("m", "mass matrix, by columns", m)];
            ("Mass matrix in joint form.", vec![Group::Z], results)
        }
        BundleKind::MassMatrixCoordinates => {
            let m = mass_matrix(g, mechanism, inertias);
            let results = vec![wanted("m", "mass matrix, by columns", coordinate_form(g, mechanism, &m))];
            ("Mass matrix in coordinate form, singular along Euler parameters.", vec![Group::Z], results)
        }
        BundleKind::InverseDynamics => {
            let tau = inverse_dynamics(g, mechanism, inertias, loads);
            let results = vec![wanted("tau", "forces along the velocities that the motion needs", tau)];
            ("Forces that the joints must supply: tau = M vd − Q.", MOTION.to_vec(), results)
        }
        BundleKind::InverseDynamicsDerivatives => {
            let d = derivatives_about_origin(g, mechanism);
            let results = vec![
                wanted(
                    "tau_z",
                    "derivatives by position, along the tangent, by columns",
                    d.by_position.dense(),
                ),
                wanted("tau_v", "derivatives by velocity, by columns", d.by_velocity.dense()),
                wanted("m", "mass matrix: derivatives by acceleration, by columns", d.mass_matrix.dense()),
            ];
            ("Derivatives of inverse dynamics.", MOTION.to_vec(), results)
        }
        BundleKind::Energy => {
            let e = energy(g, mechanism, inertias, loads);
            let all = vec![e.kinetic, e.potential, e.power];
            let results = vec![wanted("out", "kinetic, potential, power of non-conservative forces", all)];
            ("Energies and the power that changes them.", INSTANT.to_vec(), results)
        }
        BundleKind::Markers => {
            let named = markers::named(mechanism.model);
            let mut all = [Vec::new(), Vec::new(), Vec::new()];
            for (_, marker) in named {
                all[0].extend(mechanism.position(g, marker).0);
                all[1].extend(mechanism.point_velocity(g, marker).0);
                all[2].extend(mechanism.point_acceleration(g, marker).0);
            }
            let [positions, velocities, accelerations] = all;
            let results = vec![
                wanted("positions", "world positions", positions),
                wanted("velocities", "world velocities", velocities),
                wanted("accelerations", "world accelerations", accelerations),
            ];
            ("Motion of the named points.", vec![Group::Z, Group::V, Group::Vd], results)
        }
        BundleKind::MarkerJacobians => {
            let named = markers::named(mechanism.model);
            let jacobians = markers::jacobians(g, mechanism, &named);
            let doc = "velocities of the named points per joint velocity, by columns";
            ("Jacobians of the named points.", vec![Group::Z], vec![wanted("jacobians", doc, jacobians)])
        }
        BundleKind::Outputs => {
            let mut all = Vec::new();
            for output in &mechanism.model.outputs {
                let parameters = mechanism.parameters;
                match &output.value {
                    OutputValue::Scalar(s) => all.push(Lowering::new(g, parameters, mechanism).scalar(s)),
                    OutputValue::Vector(v) => all.extend(Lowering::new(g, parameters, mechanism).vector(v).0),
                }
            }
            ("The model's outputs.", MOTION.to_vec(), vec![wanted("out", "outputs", all)])
        }
    };
    Specification { name: kind.name(), doc, arguments, results }
}

/// The closed forms are referred to the origin, whatever the other bundles are.
fn derivatives_about_origin(g: &mut Graph, mechanism: &Mechanism<'_>) -> InverseDynamicsDerivatives {
    let (model, tree, parameters) = (mechanism.model, mechanism.tree, mechanism.parameters);
    let mut mechanism = Mechanism::new(g, model, tree, parameters, ReferencePoint::Origin);
    let inertias = body_inertias(g, &mechanism);
    inverse_dynamics_derivatives(g, &mut mechanism, &inertias)
}

fn start(g: &mut Graph, mechanism: &Mechanism<'_>) -> Specification {
    let (mut z, mut v) = (Vec::new(), Vec::new());
    for link in &mechanism.tree.links {
        let start = &mechanism.model.joints[link.joint.index()].start;
        let mut lower = |s| Lowering::new(g, mechanism.parameters, &mut ParametersOnly).scalar(s);
        z.extend(start.values.iter().map(&mut lower));
        v.extend(start.rates.iter().map(&mut lower));
    }
    Specification {
        name: "start",
        doc: "Start values.",
        arguments: vec![Group::Parameters],
        results: vec![
            Wanted { name: "z", doc: "coordinates", expressions: z },
            Wanted { name: "v", doc: "velocities", expressions: v },
        ],
    }
}

/// What a case prescribes for the inputs, and their defaults for the others.
fn input_signals(g: &mut Graph, mechanism: &Mechanism<'_>, case: Option<&Case>) -> Specification {
    let mut signals: Vec<ExprId> = mechanism.model.inputs.iter().map(|i| g.constant(i.default)).collect();
    for (id, signal) in case.iter().flat_map(|case| &case.inputs) {
        signals[id.index()] = Lowering::new(g, mechanism.parameters, &mut ParametersOnly).scalar(signal);
    }
    Specification {
        name: "input_signals",
        doc: "The inputs where nobody else sets them.",
        arguments: vec![Group::Time],
        results: vec![Wanted { name: "u", doc: "inputs", expressions: signals }],
    }
}
