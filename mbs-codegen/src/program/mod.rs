//! The program of a model: its bundles and every name the outside needs. Printer and interpreter read it.
//!
//! Input: a [`Model`], optionally one of its cases, and [`Options`]. Output: a [`Program`].
//! Holds afterwards: the graph and every bundle are verified, and every result has the shape that the table of bundles says.

mod cases;
mod equations;
mod estimate;
mod events;
mod fused;
mod observed;
mod resolve;
mod rolled;
mod sensitivities;
mod single;
mod tree;

use crate::analysis::Analysed;
use crate::bundle::{self, Bundle, Packed, Specification};
use crate::conditions::{self, Condition, Conditions};
use crate::constrained::{JointPlaces, ParameterPlaces, Pattern, Rows};
use crate::corners::Corners;
use crate::elements::{Mechanism, markers};
use crate::graph::{ExprId, Graph};
use crate::kinematics::ReferencePoint;
use crate::lowering::Parameters;
use crate::model::{
    Case, Hold, Input, Model, OutputValue, ParameterValue, SensitivityRef, Simulation, Tangent,
};
use crate::symbols::Group;
use crate::topology::{self, Link, Row, Tree};
use crate::watch::{self, Watch};
pub use cases::CaseInfo;
use cases::{SharedCase, choose};
use equations::Equations;
use estimate::Measured;
pub use events::Events;
use mbs_bundles::Size;
pub use mbs_bundles::{BundleKind, Exists, Family};
use resolve::resolve;
use std::borrow::Cow;

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
    /// When transposed products are bundles of their own.
    pub products: Products,
    /// What steps and their derivatives are made of.
    pub steps: Steps,
    /// What generated code computes with.
    pub scalar: ScalarType,
    /// How generated code rounds.
    pub fma: Fma,
    /// Whether generated code computes two numbers at a time.
    pub simd: Simd,
}

/// Fused multiply-add and elementary functions of generated code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fma {
    /// a b + c is rounded twice, and functions are those of `libm`: the same bits on every target.
    Never,
    /// Whatever is quickest on the target: fused operations where it has them, and functions of the standard library where it is used.
    #[default]
    Target,
}

impl Fma {
    /// All.
    pub const ALL: [Fma; 2] = [Fma::Never, Fma::Target];

    /// As every setting names it.
    pub fn name(self) -> &'static str {
        match self {
            Fma::Never => "never",
            Fma::Target => "target",
        }
    }

    /// Of this name.
    pub fn from_name(name: &str) -> Option<Fma> {
        Fma::ALL.into_iter().find(|fma| fma.name() == name)
    }
}

/// Vectors of two numbers in generated code; no result depends on them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Simd {
    /// In large bundles with many operations alike.
    #[default]
    Auto,
    /// In none: for processors without vectors of doubles.
    Never,
    /// In every bundle with operations alike: for tests.
    Always,
}

impl Simd {
    /// All.
    pub const ALL: [Simd; 3] = [Simd::Auto, Simd::Never, Simd::Always];

    /// As every setting names it.
    pub fn name(self) -> &'static str {
        match self {
            Simd::Auto => "auto",
            Simd::Never => "never",
            Simd::Always => "always",
        }
    }

    /// Of this name.
    pub fn from_name(name: &str) -> Option<Simd> {
        Simd::ALL.into_iter().find(|simd| simd.name() == name)
    }
}

/// What steps under constraints, their derivatives and stages of explicit runs are made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Steps {
    /// Where they are small, of few bundles that share what they compute, beside the separate ones: fewer instructions, more text.
    #[default]
    Fused,
    /// Of separate bundles alone, for little flash. Results differ from those of fused steps by rounding.
    Separate,
}

impl Steps {
    /// All.
    pub const ALL: [Steps; 2] = [Steps::Fused, Steps::Separate];

    /// As every setting names it.
    pub fn name(self) -> &'static str {
        match self {
            Steps::Fused => "fused",
            Steps::Separate => "separate",
        }
    }

    /// Of this name.
    pub fn from_name(name: &str) -> Option<Steps> {
        Steps::ALL.into_iter().find(|steps| steps.name() == name)
    }
}

/// The numbers that generated code computes with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScalarType {
    /// Double precision.
    #[default]
    F64,
    /// Single precision.
    F32,
}

impl ScalarType {
    /// All.
    pub const ALL: [ScalarType; 2] = [ScalarType::F64, ScalarType::F32];

    /// As Rust and every setting name it.
    pub fn name(self) -> &'static str {
        match self {
            ScalarType::F64 => "f64",
            ScalarType::F32 => "f32",
        }
    }

    /// Of this name.
    pub fn from_name(name: &str) -> Option<ScalarType> {
        ScalarType::ALL.into_iter().find(|scalar| scalar.name() == name)
    }

    /// Distance from one to the next larger number.
    pub fn epsilon(self) -> f64 {
        match self {
            ScalarType::F64 => f64::EPSILON,
            ScalarType::F32 => f64::from(f32::EPSILON),
        }
    }
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

/// When transposed products are bundles of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Products {
    /// Where they take fewer operations than lists, for as many columns.
    #[default]
    Cheaper,
    /// For all columns: for tests.
    Always,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            reference: ReferencePoint::default(),
            freeze: false,
            bundles: BundleKind::STANDARD.to_vec(),
            pairs: Pairs::default(),
            products: Products::default(),
            steps: Steps::default(),
            scalar: ScalarType::default(),
            fma: Fma::default(),
            simd: Simd::default(),
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
    /// Whether the rate of an event's function is known, for each.
    pub event_rates: Vec<bool>,
    /// Whether objectives read multipliers of the projections.
    pub judges_projections: bool,
}

/// Places of derivatives that bundles write one after the other, (row, column); empty without those bundles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DerivativePlaces {
    /// Of start values z and v by parameters.
    pub start: [Vec<(u32, u32)>; 2],
    /// By parameters, in coordinate form.
    pub parameters: ParameterPlaces,
    /// Columns up to which transposed products are bundles of their own.
    pub product_columns: usize,
    /// The same of those of the projections alone, beside the list of Newton's equations.
    pub projection_columns: usize,
    /// Parameters that transposed products have derivatives by, of Newton's equations and of the projections: (0, parameter).
    pub products: [Vec<(u32, u32)>; 2],
    /// Values of the tables of parameters that transposed products read.
    pub table_values: usize,
    /// Of integrands and terminal terms by (z, zd, zdd, λ, parameters).
    pub objectives: [Vec<(u32, u32)>; 2],
    /// In joint form.
    pub joint: JointPlaces,
    /// Of inverse dynamics by parameters: (velocity, parameter).
    pub inverse_dynamics: Vec<(u32, u32)>,
    /// Of integrands and terminal terms by (θ, v, vd, λ, parameters).
    pub joint_objectives: [Vec<(u32, u32)>; 2],
    /// Of functions of events by (z, v, vd, λ, t, parameters).
    pub events: Vec<(u32, u32)>,
    /// Of the equations of jumps by (z, v, t, parameters).
    pub jumps: Vec<(u32, u32)>,
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
    /// Cases that it has beside the model's own run.
    pub cases: Vec<CaseInfo>,
    /// Names of the model's cases that need a program of their own.
    pub separate_cases: Vec<String>,
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
    /// The events.
    pub events: Events,
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
    /// Names of the rows that are not computed: they vanish identically, or no coordinate changes them.
    pub dropped_rows: Vec<String>,
    /// What parameters must keep, beside the bounds of each: bundle `conditions` gives a margin and a value for each. None
    /// if they are frozen.
    pub conditions: Vec<Condition>,
    /// Branches that a run may change over; none if there are none.
    pub watch: Option<Watch>,
    /// Its conditions that time alone decides.
    pub corners: Option<Corners>,
    /// Which coordinates are held during assembly.
    pub held: Vec<bool>,
    /// Which velocities `matrix_r` integrates; none if it chooses.
    pub independent: Vec<bool>,
    /// Kept rows that do not act in every state, and the inputs of those states.
    pub resting_rows: Vec<(u32, u32)>,
    /// Which coordinates follow from the others; none if there are none.
    pub dependent: Vec<bool>,
    /// Places of matrix entries and orders of elimination.
    pub structure: Structure,
    /// Offsets of the blocks of Euler parameters among z.
    pub euler_parameters: Vec<usize>,
    /// Natural scale of each coordinate; none if all are one.
    pub coordinate_units: Vec<f64>,
    /// Natural scale of each row in coordinate form; none if all are one.
    pub row_units: Vec<f64>,
    /// Simulation defaults.
    pub simulation: Simulation,
    /// `prepare` first.
    pub bundles: Vec<Bundle>,
}

impl Program {
    /// The program of a model, under a case if one is given.
    pub fn new(model: &Model, case: Option<&Case>, options: &Options) -> Result<Program, ProgramError> {
        Program::of(&Analysed::of(model.clone()), case, options)
    }

    /// The same of a model that is analysed already.
    pub fn of(analysed: &Analysed, case: Option<&Case>, options: &Options) -> Result<Program, ProgramError> {
        Program::build(analysed, case, false, options, false)
    }

    /// The program of a model with all its cases that share its equations.
    pub fn with_cases(analysed: &Analysed, options: &Options) -> Result<Program, ProgramError> {
        // A constant parameter has one value for all cases.
        Program::build(analysed, None, !options.freeze, options, false)
    }

    /// The same with these bundles only, without what the file's method needs beside them.
    pub fn of_only(
        analysed: &Analysed,
        case: Option<&Case>,
        options: &Options,
    ) -> Result<Program, ProgramError> {
        Program::build(analysed, case, false, options, true)
    }

    fn build(
        analysed: &Analysed,
        case: Option<&Case>,
        with_cases: bool,
        options: &Options,
        only: bool,
    ) -> Result<Program, ProgramError> {
        let analysed = with_columns(analysed.under(case), options.freeze);
        let Analysed { model, tree, rows } = &*analysed;
        refuse_violating(model, tree, rows)?;
        let (shared, separate) = if with_cases { cases::shared(&analysed) } else { Default::default() };
        let mut program = Program::named(&analysed, case, &shared, options, only);
        program.separate_cases = separate;
        program.refuse_too_large(model, tree)?;

        let mut g = Graph::new();
        let parameters = Parameters::lower(&mut g, model, options.freeze);
        let mut mechanism = Mechanism::new(&mut g, model, tree, &parameters, options.reference);
        let mut conditions = match options.freeze {
            true => Conditions::default(),
            false => {
                let implicit = program.kinds.contains(&BundleKind::Residual);
                Conditions::of(&mut g, &mut mechanism, rows, case, options.scalar.epsilon(), implicit)
            }
        };
        let seeds: Vec<ExprId> = program.seeds.iter().map(|&(group, place)| g.symbol(group, place)).collect();
        let np = program.size(Size::np);
        let mut equations = Equations::new(&mut g, &mut mechanism, rows, &seeds, np, options.pairs);
        equations.epsilon = options.scalar.epsilon();
        equations.products = program.kinds.contains(&BundleKind::NewtonProduct).then_some(options.products);
        equations.tangent_product = program.kinds.contains(&BundleKind::TangentProduct);
        equations.corrections = program.kinds.contains(&BundleKind::DifferentiateCorrection);
        equations.fuses = options.steps == Steps::Fused;
        let signals = equations.signals_of(case);
        refuse_differentiated_signals(model, equations.differentiated_signals(&signals))?;
        program.share_cases(shared, &mut equations, &mut conditions);
        let mut specifications = vec![equations.start(), equations.input_signals(case)];
        let signals = specifications[1].results[0].expressions.clone();
        if !conditions.all.is_empty() {
            specifications.push(condition_bundle(&conditions, np as u32));
            program.conditions = conditions.all;
        }
        for &kind in &program.kinds {
            specifications.extend(equations.specifications(kind)?);
        }
        program.structure = equations.structure();
        // Bundles that the generator chooses by cost exist if it has written them.
        let written = |kind: &BundleKind| specifications.iter().any(|one| one.name == kind.name());
        let chosen = |kind: &BundleKind| matches!(kind.entry().exists, Exists::Cheaper | Exists::Fused);
        program.kinds.retain(|kind| !chosen(kind) || written(kind));
        for specification in &mut specifications {
            if specification.expressions().any(|id| g.depends(id).contains(Group::Case)) {
                specification.arguments.push((Group::Case, 1));
            }
        }
        for (entry, known) in program.events.entries.iter_mut().zip(&program.structure.event_rates) {
            entry.has_rate = *known;
        }
        program.events.autonomous =
            program.events.names.is_empty() || !events::names_time(&g, &program.events, &specifications);
        refuse_large(&g, &specifications)?;
        let subjects = watch::subjects(&mut g, &mut mechanism, rows);
        specifications.extend(program.find_corners(&mut g, &subjects, &signals, &seeds));
        program.bundles = bundle::build(&g, &specifications, np as u32, options.fma == Fma::Target);
        program.watch = Watch::new(&mut g, &mechanism, &subjects, &seeds, np as u32);
        program.verify(&g)?;
        Ok(program)
    }

    /// Packs the bundles as the options say: before they are printed, since nothing else reads the packed form. Vectors are of doubles.
    pub fn pack(&mut self) -> Result<(), ProgramError> {
        let form = match (self.options.scalar, self.options.simd) {
            (ScalarType::F32, _) | (_, Simd::Never) => return Ok(()),
            (ScalarType::F64, Simd::Auto) => Packed::of,
            (ScalarType::F64, Simd::Always) => Packed::of_any,
        };
        self.bundles.iter_mut().try_for_each(|bundle| bundle.pack(form)).map_err(ProgramError::Invalid)
    }

    /// Keeps the cases that share conditions and signals with the model; the others need programs of their own.
    fn share_cases<'c>(
        &mut self,
        shared: Vec<SharedCase<'c>>,
        equations: &mut Equations<'_, 'c, '_>,
        conditions: &mut Conditions,
    ) {
        for shared in shared {
            let signals = equations.signals_of(Some(shared.case));
            let scaled = conditions.are_scaled_for(equations.g, &shared.model.default_parameters());
            if scaled && equations.differentiated_signals(&signals).is_empty() {
                equations.cases.push(shared);
            } else {
                self.separate_cases.push(shared.case.name.clone());
            }
        }
        self.cases.retain(|case| !self.separate_cases.contains(&case.name));
        for shared in &equations.cases {
            conditions.add_case(equations.g, equations.mechanism, shared.case, |g, margin, holds| {
                choose(g, shared.number, &[margin], &[holds])[0]
            });
        }
    }

    /// Corners in time of signals and of what counts along the run; their bundle, if a method controls its steps.
    fn find_corners(
        &mut self,
        g: &mut Graph,
        subjects: &[watch::Subject],
        signals: &[ExprId],
        seeds: &[ExprId],
    ) -> Option<Specification> {
        let along = subjects.iter().filter(|subject| !subject.terminal);
        let watched: Vec<ExprId> = along.flat_map(|subject| subject.values.iter().copied()).collect();
        let (corners, bundle) = Corners::new(g, &watched, signals, seeds, self.size(Size::np) as u32)?;
        self.corners = Some(corners);
        let mut simulations = self.cases.iter().map(|case| &case.simulation).chain([&self.simulation]);
        simulations.any(|simulation| simulation.integrator.controls_steps()).then_some(bundle)
    }

    /// Names and sizes, without bundles.
    fn named(
        analysed: &Analysed,
        case: Option<&Case>,
        cases: &[SharedCase<'_>],
        options: &Options,
        only: bool,
    ) -> Program {
        let Analysed { model, tree, rows } = analysed;
        let mut options = options.clone();
        options.bundles.sort();
        options.bundles.dedup();
        let names = |rows: &[Row]| rows.iter().map(|row| row.name.clone()).collect();
        let (holonomic, nonholonomic) = rows.kept.split_at(rows.holonomic());
        let simulation = case.map_or(&model.simulation, |case| &case.simulation);
        let simulations: Vec<&Simulation> =
            [simulation].into_iter().chain(cases.iter().map(|shared| &shared.case.simulation)).collect();
        let info = |shared: &SharedCase<'_>| CaseInfo {
            number: shared.number,
            name: shared.case.name.clone(),
            description: shared.case.description.clone(),
            parameters: parameter_infos(&shared.model).into_iter().map(|info| info.defaults).collect(),
            held: held(&shared.model, tree),
            independent: independent(&shared.model, tree, &shared.case.simulation),
            simulation: shared.case.simulation.clone(),
        };
        Program {
            name: model.name.clone(),
            description: model.description.clone(),
            case: case.map(|c| c.name.clone()),
            cases: cases.iter().map(info).collect(),
            separate_cases: Vec::new(),
            kinds: resolve(
                &options.bundles,
                only,
                &simulations,
                analysed.is_constrained(),
                !model.sensitivity.is_empty(),
                !model.events.is_empty(),
            ),
            parameters: if options.freeze { Vec::new() } else { parameter_infos(model) },
            inputs: input_infos(model),
            coordinates: tree.coordinate_names(model),
            velocities: tree.velocity_names(model),
            markers: markers::named(model).into_iter().map(|(name, _)| name).collect(),
            outputs: output_names(model),
            objectives: model.objectives.iter().map(|o| (o.name.clone(), o.unit.clone())).collect(),
            events: Events::of(model, tree),
            sensitivity: model.sensitivity_names(&model.sensitivity),
            seeds: seeds(model),
            joints: model.joints.iter().map(|joint| joint.name.clone()).collect(),
            bodies: model.bodies.iter().skip(1).map(|body| body.name.clone()).collect(),
            cuts: cut_names(model, tree),
            holonomic: names(holonomic),
            nonholonomic: names(nonholonomic),
            normalised: normalised(model, tree),
            dropped_rows: rows.dropped.clone(),
            conditions: Vec::new(),
            watch: None,
            corners: None,
            held: held(model, tree),
            dependent: dependent(model, tree),
            independent: independent(model, tree, simulation),
            resting_rows: rows.resting(model),
            structure: Structure::default(),
            euler_parameters: rows.blocks.clone(),
            coordinate_units: unless_one(rows.scales.coordinates.clone()),
            row_units: unless_one(rows.units_in_coordinate_form()),
            simulation: simulation.clone(),
            bundles: Vec::new(),
            options,
        }
    }

    /// What can be known before anything is built: no model takes memory without bound.
    fn refuse_too_large(&self, model: &Model, tree: &Tree) -> Result<(), ProgramError> {
        let measured = Measured::new(model, tree);
        for &kind in &self.kinds {
            let operations = measured.estimate(kind, self.options.pairs);
            if operations > MAX_OPERATIONS {
                return Err(ProgramError::Bundle { bundle: kind.name(), operations });
            }
        }
        for (what, size) in [("parameters", Size::np), ("points", Size::n_markers)] {
            let count = self.size(size);
            if count > MAX_NAMES {
                return Err(ProgramError::Names { what, count });
            }
        }
        Ok(())
    }

    /// The graph is sound, so is every bundle, and results have the shapes of the table.
    fn verify(&self, g: &Graph) -> Result<(), ProgramError> {
        crate::graph::verify::verify(g).map_err(|violation| ProgramError::Invalid(violation.0))?;
        for bundle in &self.bundles {
            bundle::verify::verify(bundle).map_err(ProgramError::Invalid)?;
        }
        for &kind in &self.kinds {
            let entry = kind.entry();
            for (place, result) in entry.results.iter().filter(|result| result.is_computed()).enumerate() {
                let (found, expected) = (self.result_len(kind, place), result.shape.len(|s| self.size(s)));
                if found != expected {
                    let what = format!("`{}` has {found} values, not {expected}", result.name);
                    return Err(ProgramError::invalid(entry.name, &what));
                }
            }
        }
        Ok(())
    }

    /// A size of the model; of a result that only one bundle writes its length, none without the bundle.
    pub fn size(&self, size: Size) -> usize {
        let rows = self.holonomic.len() + self.nonholonomic.len();
        match size {
            Size::nq => self.coordinates.len(),
            Size::nv => self.velocities.len(),
            Size::nx => 0,
            Size::nu => self.inputs.len(),
            Size::np => self.parameters.iter().map(|parameter| parameter.defaults.len()).sum(),
            Size::n_markers => self.markers.len(),
            Size::n_outputs => self.outputs.len(),
            Size::n_joints => self.joints.len(),
            Size::n_bodies => self.bodies.len(),
            Size::n_objectives => self.objectives.len(),
            Size::n_holonomic => self.holonomic.len(),
            Size::n_normalisation => self.euler_parameters.len(),
            Size::n_nonholonomic => self.nonholonomic.len(),
            Size::joint_rows => rows,
            Size::rows => rows + self.euler_parameters.len(),
            Size::joint_unknowns => self.velocities.len() + rows,
            Size::unknowns => self.coordinates.len() + self.size(Size::rows),
            Size::entries => self.structure.pattern.entries(),
            // A diagonal of small numbers follows the entries.
            Size::n_matrix if self.structure.columns.is_empty() => 0,
            Size::n_matrix => self.size(Size::entries) + self.size(Size::rows),
            // A tangent that steps carry: age, step size, sizes of the rows, factors; zdd and λ at the start of the last step.
            Size::n_carried if self.carries_tangent() => {
                let changing = self.coordinates.len() + self.size(Size::rows);
                2 + self.size(Size::rows) + self.size(Size::n_factors) + changing
            }
            Size::n_carried => 0,
            Size::n_projected if self.structure.judges_projections => self.size(Size::rows),
            Size::n_projected => 0,
            Size::parameters => self.sensitivity.len(),
            Size::product_columns => self.structure.derivatives.product_columns,
            Size::tangent_product if self.kinds.contains(&BundleKind::TangentProduct) => {
                self.coordinates.len()
            }
            Size::tangent_product => 0,
            Size::table_values => self.structure.derivatives.table_values,
            Size::n_events => self.events.names.len(),
            Size::n_conditions => self.events.conditions.len(),
            Size::n_settings => self.events.inputs.len(),
            written => self.written_len(written),
        }
    }

    /// Whether implicit steps of a run carry their tangent.
    fn carries_tangent(&self) -> bool {
        let of_cases = self.cases.iter().map(|case| &case.simulation);
        let mut simulations = of_cases.chain([&self.simulation]);
        !self.structure.columns.is_empty() && simulations.any(|s| s.newton_tangent == Tangent::Carried)
    }

    /// How long the result is whose length is this size.
    fn written_len(&self, size: Size) -> usize {
        let of = |kind: BundleKind| {
            let place = kind.entry().results.iter().position(|result| result.shape.sizes == [size])?;
            Some(self.result_len(kind, place))
        };
        self.kinds.iter().find_map(|&kind| of(kind)).unwrap_or(0)
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

/// About how many operations bundles of a model need, before any is built.
pub fn estimates(model: &Model, kinds: &[BundleKind]) -> Vec<(BundleKind, usize)> {
    let tree = topology::span(model);
    let measured = Measured::new(model, &tree);
    kinds.iter().map(|&kind| (kind, measured.estimate(kind, Pairs::Auto))).collect()
}

/// Why a model has no program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProgramError {
    /// What was built does not hold together: a defect of the generator.
    Invalid(String),
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
    /// The model is differentiated by a parameter that changes what bodies share on one of them alone.
    Tearing {
        /// Name of the joint that was recognised from it.
        joint: String,
        /// Name of the parameter.
        parameter: String,
    },
    /// An event that cannot be.
    Event {
        /// Name of the event.
        event: String,
        /// What is wrong with it.
        what: &'static str,
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

impl ProgramError {
    fn invalid(bundle: &str, what: &str) -> ProgramError {
        ProgramError::Invalid(format!("bundle `{bundle}`: {what}"))
    }
}

impl std::fmt::Display for ProgramError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ProgramError::Invalid(what) => {
                write!(f, "the generator contradicts itself, please report it: {what}")
            }
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
            ProgramError::Tearing { joint, parameter } => write!(
                f,
                "there is no derivative by `{parameter}`: it changes what the bodies of joint `{joint}` share on one of them \
                 alone; let both follow the same parameter"
            ),
            ProgramError::Event { event, what } => write!(f, "event `{event}` {what}"),
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

/// There is no derivative by a parameter that violates a row which no coordinate can correct, or what bodies share.
fn refuse_violating(model: &Model, tree: &Tree, rows: &Rows) -> Result<(), ProgramError> {
    if let Some((row, one)) = rows.violated_by_sensitivity(model, tree) {
        return Err(ProgramError::Violating { row, parameter: model.sensitivity_name(one) });
    }
    match conditions::torn_by_sensitivity(model, tree) {
        None => Ok(()),
        Some((joint, one)) => Err(ProgramError::Tearing { joint, parameter: model.sensitivity_name(one) }),
    }
}

/// Margins of the conditions.
fn condition_bundle(conditions: &Conditions, parameters: u32) -> Specification {
    let results = [
        ("margins", "what must not be negative", conditions.margins.clone()),
        ("shown", "what a message shows", conditions.shown.clone()),
    ];
    equations::once("conditions", "What the parameters must keep.", (Group::Parameters, parameters), results)
}

/// The sensitivity list of the program: without constants, and with the columns that events add.
fn with_columns(mut analysed: Cow<'_, Analysed>, freeze: bool) -> Cow<'_, Analysed> {
    if freeze && !analysed.sensitivity.is_empty() {
        let sensitivity = &mut analysed.to_mut().model.sensitivity;
        sensitivity.retain(|one| matches!(one, SensitivityRef::Input(_)));
    }
    if !analysed.sensitivity.is_empty() {
        let columns = analysed.model.further_columns();
        if !columns.is_empty() {
            analysed.to_mut().model.sensitivity.extend(columns);
        }
    }
    analysed
}

/// Signals of inputs may not depend on what the model is differentiated by: pairs of both.
fn refuse_differentiated_signals(model: &Model, found: Vec<(u32, u32)>) -> Result<(), ProgramError> {
    match found.first() {
        None => Ok(()),
        Some(&(input, parameter)) => Err(ProgramError::Signal {
            input: model.inputs[input as usize].name.clone(),
            parameter: model.sensitivity_name(model.sensitivity[parameter as usize]),
        }),
    }
}

/// Expressions of the model are in no estimate. Half of the nodes are fused into others.
fn refuse_large(g: &Graph, specifications: &[Specification]) -> Result<(), ProgramError> {
    if g.len() <= 2 * MAX_OPERATIONS {
        return Ok(());
    }
    for specification in specifications {
        let roots: Vec<ExprId> = specification.expressions().collect();
        let operations = g.reachable(&roots).len();
        if operations > 2 * MAX_OPERATIONS {
            return Err(ProgramError::Bundle { bundle: specification.name, operations });
        }
    }
    Ok(())
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

fn input_infos(model: &Model) -> Vec<InputInfo> {
    let info = |input: &Input| InputInfo {
        name: input.name.clone(),
        description: input.description.clone(),
        unit: input.unit.clone(),
        hold: input.hold,
    };
    model.inputs.iter().map(info).collect()
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

/// Nothing where all units are one.
fn unless_one(units: Vec<f64>) -> Vec<f64> {
    if units.iter().all(|unit| *unit == 1.0) { Vec::new() } else { units }
}

fn dependent(model: &Model, tree: &Tree) -> Vec<bool> {
    let follows = |link: &Link| model.joints[link.joint.index()].follows.is_some();
    let joints = tree.links.iter().flat_map(|link| link.z_range().map(move |_| follows(link)));
    let all: Vec<bool> = joints.chain(model.variables.iter().map(|variable| variable.tied)).collect();
    if all.contains(&true) { all } else { Vec::new() }
}

/// Which velocities a simulation names as independent; none if it names none.
fn independent(model: &Model, tree: &Tree, simulation: &Simulation) -> Vec<bool> {
    if simulation.independent.is_empty() {
        return Vec::new();
    }
    let mut named = vec![false; tree.nv];
    for (_, v, name) in tree.single_coordinates(model) {
        named[v] = simulation.independent.iter().any(|(given, _)| *given == name);
    }
    named
}

fn held(model: &Model, tree: &Tree) -> Vec<bool> {
    let joints =
        tree.links.iter().flat_map(|link| model.joints[link.joint.index()].start.hold.iter().copied());
    joints.chain(model.variables.iter().map(|variable| variable.hold)).collect()
}
