//! Which expressions each bundle wants.

use super::cases::{SharedCase, choose};
use super::estimate::rolls;
use super::observed::Observed;
use super::{BundleKind, Pairs, Products, ProgramError, Structure};
use crate::bundle::{Rolled, Specification, Wanted};
use crate::constrained::{
    CoordinateForm, Correction, JointForm, LeadingMatrix, Rows, Sections, Solution, States, reactions,
};
use crate::derivatives::direction::{Weights, joint_directions};
use crate::derivatives::{Linearisation, Square};
use crate::dynamics::{
    MassMatrix, Solved, Symmetric, TreeEquations, articulated_body, body_inertias, coordinate_form,
    coriolis_terms, energy, gravity_terms, inertial_parameters, resting_wrenches,
};
use crate::elements::{Element, Loads, Mechanism, forces, loads, markers};
use crate::graph::{ExprId, Graph};
use crate::kinematics::ReferencePoint;
use crate::lowering::{Environment, Lowering, ParametersOnly};
use crate::model::{Case, OutputValue};
use crate::symbols::Group;
use mbs_bundles::{Form, Pivots};

/// Results of a bundle in the order of the table, its pivots last.
pub(super) type Results = Vec<Vec<ExprId>>;

/// The equations of one mechanism, written as bundles ask for them.
pub(super) struct Equations<'g, 'm, 'a> {
    pub(super) g: &'g mut Graph,
    pub(super) mechanism: &'m mut Mechanism<'a>,
    pub(super) rows: &'m Rows,
    pub(super) structure: Structure,
    pub(super) forces: Vec<Element<'a>>,
    pub(super) loads: Loads,
    pub(super) inertias: Vec<(ExprId, Symmetric)>,
    joint_form: Option<JointForm>,
    pub(super) coordinate_form: Option<CoordinateForm>,
    states: Option<States>,
    /// What the model is differentiated by.
    pub(super) seeds: &'m [ExprId],
    /// Flat code or loops for pairs of joints.
    pub(super) pairs: Pairs,
    /// Whether transposed products are wanted, if they are cheaper than lists.
    pub(super) products: Option<Products>,
    /// Whether derivatives of projections with the tangent are wanted.
    pub(super) tangent_product: bool,
    /// Rounding of the program's scalar.
    pub(super) epsilon: f64,
    /// What the bundle being written leaves to loops.
    pub(super) rolled: Rolled,
    /// Cases that the program has beside the model's own run.
    pub(super) cases: Vec<SharedCase<'m>>,
    /// Whether parts of a step may be fused.
    pub(super) fuses: bool,
    /// How many independent parameters there are.
    parameters: usize,
    /// How many factors the last elimination has.
    pub(super) factors: usize,
}

impl<'g, 'm, 'a> Equations<'g, 'm, 'a> {
    /// Nothing written yet but forces and inertias.
    pub(super) fn new(
        g: &'g mut Graph,
        mechanism: &'m mut Mechanism<'a>,
        rows: &'m Rows,
        seeds: &'m [ExprId],
        parameters: usize,
        pairs: Pairs,
    ) -> Self {
        let forces = forces(g, mechanism);
        let loads = loads(g, mechanism, &forces.iter().collect::<Vec<_>>());
        let inertias = body_inertias(g, mechanism);
        let mut objectives = mechanism.model.objectives.iter();
        let judges_projections = objectives.any(|objective| objective.projection_multiplier().is_some());
        Equations {
            g,
            mechanism,
            rows,
            structure: Structure { judges_projections, ..Structure::default() },
            forces,
            loads,
            inertias,
            joint_form: None,
            coordinate_form: None,
            states: None,
            seeds,
            pairs,
            products: None,
            tangent_product: false,
            epsilon: f64::EPSILON,
            rolled: Rolled::default(),
            cases: Vec::new(),
            fuses: false,
            parameters,
            factors: 0,
        }
    }

    /// What was found on the way.
    pub(super) fn structure(self) -> Structure {
        self.structure
    }

    /// The bundles of a kind: a family that comes together comes with its first.
    pub(super) fn specifications(&mut self, kind: BundleKind) -> Result<Vec<Specification>, ProgramError> {
        let rolls = rolls(kind, self.pairs, self.mechanism.tree);
        let results = match kind {
            BundleKind::ForwardDynamics => self.forward_dynamics(),
            BundleKind::ForwardDynamicsRecursive => self.forward_dynamics_recursive(),
            BundleKind::MassMatrix if rolls => self.rolled_mass_matrix(),
            BundleKind::MassMatrix => vec![self.mass_matrix().dense()],
            BundleKind::MassMatrixCoordinates => {
                let m = self.mass_matrix();
                vec![coordinate_form(self.g, self.mechanism, &m)]
            }
            BundleKind::InverseDynamics => {
                let tau = TreeEquations::new(self.g, self.mechanism, &self.inertias, &self.loads);
                vec![tau.inverse_dynamics(self.g)]
            }
            BundleKind::InverseDynamicsDerivatives if rolls => self.rolled_inverse_dynamics_derivatives(),
            BundleKind::InverseDynamicsDerivatives => self.inverse_dynamics_derivatives(),
            BundleKind::Energy => {
                let e = energy(self.g, self.mechanism, &self.inertias, &self.loads);
                vec![vec![e.kinetic, e.potential, e.power]]
            }
            BundleKind::Markers => self.markers(),
            BundleKind::MarkerJacobians => {
                let named = markers::named(self.mechanism.model);
                vec![markers::jacobians(self.g, self.mechanism, &named)]
            }
            BundleKind::Outputs => self.outputs(),
            BundleKind::Residual => return self.in_coordinate_form(),
            BundleKind::Linearise => return self.linearised(),
            BundleKind::JointLinearise => return self.joint_linearised(),
            BundleKind::EventFunctionDerivatives => return self.event_derivatives(),
            BundleKind::EventJumpDerivatives => return Ok(Vec::new()),
            kind if kind.entry().family.is_whole() => return Ok(Vec::new()),
            BundleKind::ConstrainedDynamics => self.constrained_dynamics()?,
            BundleKind::ConstraintCorrection => self.constraint_correction()?,
            BundleKind::ConstraintRows => self.constraint_rows()?,
            BundleKind::Reactions => {
                vec![reactions(self.g, self.mechanism, &self.inertias, &self.forces, self.rows)]
            }
            BundleKind::Objectives => self.objective_expressions().to_vec(),
            BundleKind::StartDerivatives => self.start_derivatives()?,
            BundleKind::InertialParameters => vec![inertial_parameters(self.g, self.mechanism)],
            BundleKind::Regressor => self.regressor(),
            BundleKind::GravityTerms => vec![gravity_terms(self.g, self.mechanism, &self.inertias)],
            BundleKind::CoriolisTerms => vec![coriolis_terms(self.g, self.mechanism, &self.inertias)],
            BundleKind::Centroidal => self.centroidal(),
            BundleKind::MarkerJacobianRates => self.marker_jacobian_rates(),
            BundleKind::InverseDynamicsExternal => self.inverse_dynamics_external(),
            BundleKind::ForwardDynamicsExternal => self.forward_dynamics_external(),
            BundleKind::MassMatrixInverseAction => self.mass_matrix_inverse_action(),
            BundleKind::ForwardDynamicsDerivatives if rolls => self.rolled_forward_dynamics_derivatives(),
            BundleKind::ForwardDynamicsDerivatives => self.forward_dynamics_derivatives(),
            BundleKind::InverseDynamicsParameters => self.inverse_dynamics_parameters(),
            BundleKind::EventFunctions => self.event_functions(),
            BundleKind::EventSides => self.event_sides(),
            BundleKind::EventJumps => self.event_jumps()?,
            kind => return Err(ProgramError::invalid(kind.name(), "nobody writes it")),
        };
        Ok(vec![self.specify(kind, results)?])
    }

    /// The specification of a bundle: its results under the names of the table.
    pub(super) fn specify(
        &mut self,
        kind: BundleKind,
        results: Results,
    ) -> Result<Specification, ProgramError> {
        let entry = kind.entry();
        let pivots = (entry.pivots != Pivots::None).then_some(("pivots", entry.pivots.doc()));
        let computed = entry.results.iter().filter(|result| result.is_computed());
        let names: Vec<_> = computed.map(|result| (result.name, result.doc)).chain(pivots).collect();
        if names.len() != results.len() {
            return Err(ProgramError::invalid(entry.name, "the table has other results"));
        }
        let wanted = |((name, doc), expressions)| Wanted { name, doc, expressions };
        Ok(Specification {
            name: entry.name,
            doc: entry.doc,
            arguments: {
                let form = entry.family.form();
                let length = |&group: &Group| match group {
                    Group::Lambda if kind.reads_objectives() => self.judged_rows(form),
                    _ => self.length(form, group),
                };
                entry.reads.iter().map(|group| (*group, length(group) as u32)).collect()
            },
            results: names.into_iter().zip(results).map(wanted).collect(),
            rolled: std::mem::take(&mut self.rolled),
        })
    }

    /// A list under the sections of the table.
    pub(super) fn list(&self, kind: BundleKind, list: Sections) -> Result<Vec<ExprId>, ProgramError> {
        let sections = kind.sections().map_or(&[][..], |(_, sections)| sections);
        if sections.iter().map(|section| section.name).eq(list.names.iter().map(|&(name, _)| name)) {
            Ok(list.expressions)
        } else {
            Err(ProgramError::invalid(kind.name(), "the table has other sections"))
        }
    }

    /// Multipliers that objectives read: λ, and where they name them σ and κ of the projections.
    pub(super) fn judged_rows(&self, form: Form) -> usize {
        self.length(form, Group::Lambda) * if self.structure.judges_projections { 3 } else { 1 }
    }

    /// How many scalars an argument has.
    fn length(&self, form: Form, group: Group) -> usize {
        let (model, tree) = (self.mechanism.model, self.mechanism.tree);
        let (unknowns, rows) = match form {
            Form::Joint => (tree.nv, self.rows.kept.len()),
            Form::Coordinate => (tree.nq, self.rows.in_coordinate_form()),
        };
        match group {
            Group::Time => 1,
            Group::Z | Group::Zd | Group::Zdd | Group::VelocityImpulse | Group::AccelerationImpulse => {
                tree.nq
            }
            Group::V | Group::Vd | Group::Tau => tree.nv,
            Group::U => model.inputs.len(),
            Group::Wrenches => 6 * (model.bodies.len() - 1),
            Group::Weights | Group::Stabilisation => 3,
            Group::Lambda
            | Group::VelocityMultipliers
            | Group::AccelerationMultipliers
            | Group::Compliance => rows,
            Group::Matrix => self.structure.pattern.entries() + rows,
            Group::EventImpulses => model.events.iter().map(|event| event.conditions.len()).sum(),
            Group::Factors => self.factors,
            Group::Rhs | Group::Costate | Group::VelocityCostate | Group::AccelerationCostate => {
                unknowns + rows
            }
            Group::TableCostate => self.structure.derivatives.table_values,
            Group::PositionColumns | Group::VelocityColumns => unknowns * self.seeds.len(),
            Group::PositionWeights
            | Group::VelocityWeights
            | Group::AccelerationWeights
            | Group::CorrectionWeights => unknowns * model.objectives.len(),
            Group::MultiplierWeights => rows * model.objectives.len(),
            Group::ObjectiveWeights => model.objectives.len(),
            Group::Parameters => self.parameters,
            Group::X | Group::Prepared | Group::Case | Group::Free => 0,
        }
    }

    pub(super) fn mass_matrix(&mut self) -> MassMatrix {
        let m = TreeEquations::new(self.g, self.mechanism, &self.inertias, &self.loads);
        m.mass_matrix(self.g)
    }

    /// Accelerations from M vd = Q, with zd = N(z) v.
    fn forward_dynamics(&mut self) -> Results {
        let equations = TreeEquations::new(self.g, self.mechanism, &self.inertias, &self.loads);
        let Solved { vd, pivots } = equations.forward_dynamics(self.g);
        vec![self.coordinate_rates(), vd, pivots]
    }

    fn forward_dynamics_recursive(&mut self) -> Results {
        let resting = resting_wrenches(self.g, self.mechanism, &self.inertias);
        let bodies = articulated_body(self.g, self.mechanism, &self.inertias, &self.loads, &resting);
        let Solved { vd, pivots } = bodies.solved;
        vec![self.coordinate_rates(), vd, pivots]
    }

    /// zd = N(z) v
    pub(super) fn coordinate_rates(&mut self) -> Vec<ExprId> {
        (0..self.mechanism.tree.nq).map(|z| self.mechanism.rate_of(self.g, z)).collect()
    }

    fn inverse_dynamics_derivatives(&mut self) -> Results {
        let g = &mut *self.g;
        let mut mechanism = at_origin(g, self.mechanism);
        let inertias = body_inertias(g, &mechanism);
        let forces: Vec<&Element<'_>> = self.forces.iter().collect();
        let tree = mechanism.tree;
        let rows = Weights::by_position(g);
        let rows = joint_directions(g, tree, rows);
        let unit = [Weights::by_position(g), Weights::by_velocity(g), Weights::by_acceleration(g)];
        let mut linearisation = Linearisation::new(g, &mut mechanism, &inertias);
        let directions = unit.map(|weights| joint_directions(g, tree, weights));
        let tangents = linearisation.tangents(g, &forces, &rows, &directions, &[]);
        tangents.map(Square::dense).to_vec()
    }

    fn markers(&mut self) -> Results {
        let mut all = [Vec::new(), Vec::new(), Vec::new()];
        for (_, marker) in markers::named(self.mechanism.model) {
            all[0].extend(self.mechanism.position(self.g, marker).0);
            all[1].extend(self.mechanism.point_velocity(self.g, marker).0);
            all[2].extend(self.mechanism.point_acceleration(self.g, marker).0);
        }
        all.to_vec()
    }

    fn outputs(&mut self) -> Results {
        let mut all = Vec::new();
        let parameters = self.mechanism.parameters;
        for output in &self.mechanism.model.outputs {
            let mut lowering = Lowering::new(self.g, parameters, self.mechanism);
            match &output.value {
                OutputValue::Scalar(s) => all.push(lowering.scalar(s)),
                OutputValue::Vector(v) => all.extend(lowering.vector(v).0),
            }
        }
        vec![all]
    }

    /// Integrands and terminal terms, in joint form.
    pub(super) fn objective_expressions(&mut self) -> [Vec<ExprId>; 2] {
        let (mut integrands, mut terminals) = (Vec::new(), Vec::new());
        let (model, parameters) = (self.mechanism.model, self.mechanism.parameters);
        let mut observed = Observed::new(self.g, self.mechanism, &self.inertias, &self.forces, self.rows);
        for objective in &model.objectives {
            let mut lowering = Lowering::new(self.g, parameters, &mut observed);
            integrands.push(lowering.scalar(&objective.integrand));
            terminals.push(lowering.scalar(&objective.terminal));
        }
        [integrands, terminals]
    }

    pub(super) fn joint_form(&mut self) -> Result<&JointForm, ProgramError> {
        if self.joint_form.is_none() {
            let mut mechanism = at_origin(self.g, self.mechanism);
            let inertias = body_inertias(self.g, &mechanism);
            let states =
                self.states.get_or_insert_with(|| States::new(self.g, &mut mechanism, &inertias, self.rows));
            let (g, forces) = (&mut *self.g, &self.forces);
            let form = JointForm::new(g, &mut mechanism, &inertias, forces, self.rows, states, self.epsilon);
            self.joint_form = Some(form.ok_or(ProgramError::Singular)?);
        }
        self.joint_form.as_ref().ok_or(ProgramError::Singular)
    }

    fn constrained_dynamics(&mut self) -> Result<Results, ProgramError> {
        let Solution { accelerations, multipliers, pivots, columns } = self.joint_form()?.solution.clone();
        self.structure.joint_columns = columns;
        Ok(vec![self.coordinate_rates(), accelerations, multipliers, pivots])
    }

    fn constraint_correction(&mut self) -> Result<Results, ProgramError> {
        let Correction { position, velocity, values, rates } = self.joint_form()?.correction.clone();
        Ok(vec![position, velocity, values, rates])
    }

    fn constraint_rows(&mut self) -> Result<Results, ProgramError> {
        let JointForm { correction, jacobian, .. } = self.joint_form()?;
        Ok(vec![correction.values.clone(), correction.rates.clone(), jacobian.clone()])
    }

    fn in_coordinate_form(&mut self) -> Result<Vec<Specification>, ProgramError> {
        let form = {
            let mut mechanism = at_origin(self.g, self.mechanism);
            let inertias = body_inertias(self.g, &mechanism);
            let states =
                self.states.get_or_insert_with(|| States::new(self.g, &mut mechanism, &inertias, self.rows));
            CoordinateForm::new(self.g, &mut mechanism, &inertias, &self.forces, self.rows, states)
        };
        self.coordinate_form = Some(form.clone());
        let leading = form.leading.clone().ok_or(ProgramError::Singular)?;
        self.structure.pattern = form.pattern.clone();
        self.structure.columns = leading.columns.clone();
        self.factors = leading.factors.len();
        let fused = if self.fuses { self.fused_steps(&form, &leading)? } else { Vec::new() };
        let LeadingMatrix { factors, pivots, solution, transposed, .. } = leading;
        let (r, phi) = (form.residual, form.constraints);
        let bundles = [
            (BundleKind::Residual, vec![r.clone(), phi.clone()]),
            (BundleKind::Newton, vec![r, phi, form.newton]),
            (BundleKind::Projection, vec![form.projection]),
            (BundleKind::ConstraintRates, vec![form.rates]),
            (BundleKind::ConstraintAccelerations, vec![form.accelerations]),
            (BundleKind::Factor, vec![factors, pivots]),
            (BundleKind::Solve, vec![solution]),
            (BundleKind::SolveTransposed, vec![transposed]),
        ];
        let separate = bundles.into_iter().map(|(kind, results)| self.specify(kind, results));
        separate.chain(fused.into_iter().map(Ok)).collect()
    }

    /// Start values.
    pub(super) fn start(&mut self) -> Specification {
        let [z, v] = self.start_values();
        let results = [("z", "coordinates", z), ("v", "velocities", v)];
        once("start", "Start values.", (Group::Parameters, self.parameters as u32), results)
    }

    /// Start values of coordinates and velocities, by case.
    pub(super) fn start_values(&mut self) -> [Vec<ExprId>; 2] {
        let mut start = self.mechanism.start(self.g);
        for shared in &self.cases {
            let of_case = self.mechanism.start_under(self.g, &shared.model);
            for (all, of_case) in start.iter_mut().zip(of_case) {
                *all = choose(self.g, shared.number, &of_case, all);
            }
        }
        start
    }

    /// What a case prescribes for the inputs, and their defaults for the others.
    pub(super) fn signals_of(&mut self, case: Option<&Case>) -> Vec<ExprId> {
        let (model, parameters) = (self.mechanism.model, self.mechanism.parameters);
        let mut signals: Vec<ExprId> = model.inputs.iter().map(|i| self.g.constant(i.default)).collect();
        for (id, signal) in case.iter().flat_map(|case| &case.inputs) {
            signals[id.index()] = Lowering::new(self.g, parameters, &mut ParametersOnly).scalar(signal);
        }
        signals
    }

    /// The model's own inputs, by case.
    pub(super) fn input_signals(&mut self, case: Option<&Case>) -> Specification {
        let mut signals = self.signals_of(case);
        let cases: Vec<(u32, &Case)> = self.cases.iter().map(|shared| (shared.number, shared.case)).collect();
        for (number, case) in cases {
            let of_case = self.signals_of(Some(case));
            signals = choose(self.g, number, &of_case, &signals);
        }
        let doc = "The inputs where nobody else sets them.";
        once("input_signals", doc, (Group::Time, 1), [("u", "inputs", signals)])
    }
}

/// A bundle that every model has, beside those one can ask for.
pub(super) fn once<const N: usize>(
    name: &'static str,
    doc: &'static str,
    argument: (Group, u32),
    results: [(&'static str, &'static str, Vec<ExprId>); N],
) -> Specification {
    let results = results.map(|(name, doc, expressions)| Wanted { name, doc, expressions }).to_vec();
    Specification { name, doc, arguments: vec![argument], results, rolled: Rolled::default() }
}

/// The closed forms of derivatives are referred to the origin, whatever the other bundles are.
pub(super) fn at_origin<'a>(g: &mut Graph, mechanism: &Mechanism<'a>) -> Mechanism<'a> {
    let (model, tree, parameters) = (mechanism.model, mechanism.tree, mechanism.parameters);
    Mechanism::new(g, model, tree, parameters, ReferencePoint::Origin)
}
