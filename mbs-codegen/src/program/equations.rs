//! Which expressions each bundle wants.

use super::estimate::rolls;
use super::observed::Observed;
use super::{BundleKind, Pairs, ProgramError, Structure};
use crate::bundle::{Rolled, Specification, Wanted};
use crate::constrained::{CoordinateForm, JointForm, LeadingMatrix, Rows, States, reactions};
use crate::derivatives::direction::{Weights, joint_directions};
use crate::derivatives::{Linearisation, Square};
use crate::dynamics::{
    Solved, Symmetric, TreeEquations, articulated_body, body_inertias, coordinate_form, energy,
};
use crate::elements::{Element, Loads, Mechanism, forces, loads, markers};
use crate::graph::{ExprId, Graph};
use crate::kinematics::ReferencePoint;
use crate::lowering::{Environment, Lowering, ParametersOnly};
use crate::model::{Case, OutputValue};
use crate::symbols::Group;

/// What depends on the state of the mechanism at one instant.
pub(super) const INSTANT: [Group; 4] = [Group::Time, Group::Z, Group::V, Group::U];
/// The same with accelerations.
pub(super) const MOTION: [Group; 5] = [Group::Time, Group::Z, Group::V, Group::Vd, Group::U];
/// The same in coordinate form.
pub(super) const COORDINATES: [Group; 5] = [Group::Time, Group::Z, Group::Zd, Group::Zdd, Group::U];

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
    /// What the bundle being written leaves to loops.
    pub(super) rolled: Rolled,
}

pub(super) fn wanted(name: &'static str, doc: &'static str, expressions: Vec<ExprId>) -> Wanted {
    Wanted { name, doc, expressions }
}

impl<'g, 'm, 'a> Equations<'g, 'm, 'a> {
    /// Nothing written yet but forces and inertias.
    pub(super) fn new(
        g: &'g mut Graph,
        mechanism: &'m mut Mechanism<'a>,
        rows: &'m Rows,
        seeds: &'m [ExprId],
        pairs: Pairs,
    ) -> Self {
        let forces = forces(g, mechanism);
        let loads = loads(g, mechanism, &forces.iter().collect::<Vec<_>>());
        let inertias = body_inertias(g, mechanism);
        Equations {
            g,
            mechanism,
            rows,
            structure: Structure::default(),
            forces,
            loads,
            inertias,
            joint_form: None,
            coordinate_form: None,
            states: None,
            seeds,
            pairs,
            rolled: Rolled::default(),
        }
    }

    /// What was found on the way.
    pub(super) fn structure(self) -> Structure {
        self.structure
    }

    /// The bundles of a kind: the coordinate form's come all with its first.
    pub(super) fn specifications(&mut self, kind: BundleKind) -> Result<Vec<Specification>, ProgramError> {
        let (doc, arguments, results) = match kind {
            BundleKind::ForwardDynamics | BundleKind::ForwardDynamicsRecursive => self.forward_dynamics(kind),
            BundleKind::MassMatrix if rolls(kind, self.pairs, self.mechanism.tree) => {
                self.rolled_mass_matrix()
            }
            BundleKind::MassMatrix => {
                let m = TreeEquations::new(self.g, self.mechanism, &self.inertias, &self.loads);
                let m = m.mass_matrix(self.g).dense();
                let results = vec![wanted("m", "mass matrix, by columns", m)];
                ("Mass matrix in joint form.", vec![Group::Z], results)
            }
            BundleKind::MassMatrixCoordinates => {
                let m = TreeEquations::new(self.g, self.mechanism, &self.inertias, &self.loads);
                let m = m.mass_matrix(self.g);
                let m = coordinate_form(self.g, self.mechanism, &m);
                let results = vec![wanted("m", "mass matrix, by columns", m)];
                ("Mass matrix in coordinate form, singular along Euler parameters.", vec![Group::Z], results)
            }
            BundleKind::InverseDynamics => {
                let tau = TreeEquations::new(self.g, self.mechanism, &self.inertias, &self.loads);
                let tau = tau.inverse_dynamics(self.g);
                let results = vec![wanted("tau", "forces along the velocities that the motion needs", tau)];
                ("Forces that the joints must supply: tau = M vd − Q.", MOTION.to_vec(), results)
            }
            BundleKind::InverseDynamicsDerivatives if rolls(kind, self.pairs, self.mechanism.tree) => {
                self.rolled_inverse_dynamics_derivatives()
            }
            BundleKind::InverseDynamicsDerivatives => self.inverse_dynamics_derivatives(),
            BundleKind::Energy => {
                let e = energy(self.g, self.mechanism, &self.inertias, &self.loads);
                let all = vec![e.kinetic, e.potential, e.power];
                let results =
                    vec![wanted("out", "kinetic, potential, power of non-conservative forces", all)];
                ("Energies and the power that changes them.", INSTANT.to_vec(), results)
            }
            BundleKind::Markers => self.markers(),
            BundleKind::MarkerJacobians => {
                let named = markers::named(self.mechanism.model);
                let jacobians = markers::jacobians(self.g, self.mechanism, &named);
                let doc = "velocities of the named points per joint velocity, by columns";
                ("Jacobians of the named points.", vec![Group::Z], vec![wanted("jacobians", doc, jacobians)])
            }
            BundleKind::Outputs => self.outputs(),
            BundleKind::Residual => return self.in_coordinate_form(),
            BundleKind::Newton
            | BundleKind::Projection
            | BundleKind::ConstraintRates
            | BundleKind::ConstraintAccelerations
            | BundleKind::Factor
            | BundleKind::Solve
            | BundleKind::SolveTransposed => return Ok(Vec::new()),
            BundleKind::ConstrainedDynamics => self.constrained_dynamics()?,
            BundleKind::ConstraintCorrection => self.constraint_correction()?,
            BundleKind::Reactions => self.reactions(),
            BundleKind::Objectives => self.objectives(),
            BundleKind::StartDerivatives => self.start_derivatives(),
            BundleKind::Linearise => return self.linearised(),
            BundleKind::JointLinearise => return self.joint_linearised(),
            BundleKind::LineariseProjections
            | BundleKind::IntegrandDerivatives
            | BundleKind::TerminalDerivatives
            | BundleKind::JointSolve
            | BundleKind::JointIntegrandDerivatives
            | BundleKind::JointTerminalDerivatives => return Ok(Vec::new()),
            BundleKind::InertialParameters => self.inertial_parameters(),
            BundleKind::Regressor => self.regressor(),
            BundleKind::GravityTerms => self.gravity_terms(),
            BundleKind::CoriolisTerms => self.coriolis_terms(),
            BundleKind::Centroidal => self.centroidal(),
            BundleKind::MarkerJacobianRates => self.marker_jacobian_rates(),
            BundleKind::InverseDynamicsExternal => self.inverse_dynamics_external(),
            BundleKind::ForwardDynamicsExternal => self.forward_dynamics_external(),
            BundleKind::MassMatrixInverseAction => self.mass_matrix_inverse_action(),
            BundleKind::ForwardDynamicsDerivatives if rolls(kind, self.pairs, self.mechanism.tree) => {
                self.rolled_forward_dynamics_derivatives()
            }
            BundleKind::ForwardDynamicsDerivatives => self.forward_dynamics_derivatives(),
            BundleKind::InverseDynamicsParameters => self.inverse_dynamics_parameters(),
        };
        let (arguments, rolled) = (self.lengths(&arguments), std::mem::take(&mut self.rolled));
        Ok(vec![Specification { name: kind.name(), doc, arguments, results, rolled }])
    }

    /// Arguments whose length is not the same in every bundle.
    pub(super) fn lengths(&self, arguments: &[Group]) -> Vec<(Group, Option<u32>)> {
        let multipliers = Some(self.rows.kept.len() as u32);
        arguments
            .iter()
            .map(|&group| (group, if group == Group::Lambda { multipliers } else { None }))
            .collect()
    }
}

pub(super) type Parts = (&'static str, Vec<Group>, Vec<Wanted>);

impl Equations<'_, '_, '_> {
    fn forward_dynamics(&mut self, kind: BundleKind) -> Parts {
        let (g, mechanism) = (&mut *self.g, &mut *self.mechanism);
        let (doc, solved) = if kind == BundleKind::ForwardDynamics {
            ("Accelerations from M vd = Q, factored for the tree's sparsity.", {
                TreeEquations::new(g, mechanism, &self.inertias, &self.loads).forward_dynamics(g)
            })
        } else {
            ("Accelerations by the articulated-body recursion.", {
                articulated_body(g, mechanism, &self.inertias, &self.loads).solved
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

    fn inverse_dynamics_derivatives(&mut self) -> Parts {
        let g = &mut *self.g;
        let mut mechanism = at_origin(g, self.mechanism);
        let inertias = body_inertias(g, &mechanism);
        let forces: Vec<&Element<'_>> = self.forces.iter().collect();
        let tree = mechanism.tree;
        let rows = Weights::by_position(g);
        let rows = joint_directions(tree, rows);
        let unit = [Weights::by_position(g), Weights::by_velocity(g), Weights::by_acceleration(g)];
        let mut linearisation = Linearisation::new(g, &mut mechanism, &inertias);
        let directions = unit.map(|weights| joint_directions(tree, weights));
        let tangents = linearisation.tangents(g, &forces, &rows, &directions, &[]);
        let [by_position, by_velocity, mass] = tangents.map(Square::dense);
        let results = derivative_results([by_position, by_velocity, mass]);
        ("Derivatives of inverse dynamics.", MOTION.to_vec(), results)
    }

    fn markers(&mut self) -> Parts {
        let mut all = [Vec::new(), Vec::new(), Vec::new()];
        for (_, marker) in markers::named(self.mechanism.model) {
            all[0].extend(self.mechanism.position(self.g, marker).0);
            all[1].extend(self.mechanism.point_velocity(self.g, marker).0);
            all[2].extend(self.mechanism.point_acceleration(self.g, marker).0);
        }
        let [positions, velocities, accelerations] = all;
        let results = vec![
            wanted("positions", "world positions", positions),
            wanted("velocities", "world velocities", velocities),
            wanted("accelerations", "world accelerations", accelerations),
        ];
        ("Motion of the named points.", vec![Group::Z, Group::V, Group::Vd], results)
    }

    fn outputs(&mut self) -> Parts {
        let mut all = Vec::new();
        let parameters = self.mechanism.parameters;
        for output in &self.mechanism.model.outputs {
            let mut lowering = Lowering::new(self.g, parameters, self.mechanism);
            match &output.value {
                OutputValue::Scalar(s) => all.push(lowering.scalar(s)),
                OutputValue::Vector(v) => all.extend(lowering.vector(v).0),
            }
        }
        ("The model's outputs.", MOTION.to_vec(), vec![wanted("out", "outputs", all)])
    }

    fn objectives(&mut self) -> Parts {
        let [integrands, terminals] = self.objective_expressions();
        let results = vec![
            wanted("integrands", "what is integrated over the run", integrands),
            wanted("terminals", "what counts at its end", terminals),
        ];
        let mut arguments = MOTION.to_vec();
        arguments.push(Group::Lambda);
        ("The model's objectives.", arguments, results)
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

    fn reactions(&mut self) -> Parts {
        let all = reactions(self.g, self.mechanism, &self.inertias, &self.forces, self.rows);
        let mut arguments = MOTION.to_vec();
        arguments.push(Group::Lambda);
        let results = vec![wanted("reactions", "force and torque on each joint's child", all)];
        ("What the joints transmit.", arguments, results)
    }

    pub(super) fn joint_form(&mut self) -> Result<&JointForm, ProgramError> {
        if self.joint_form.is_none() {
            let mut mechanism = at_origin(self.g, self.mechanism);
            let inertias = body_inertias(self.g, &mechanism);
            let states =
                self.states.get_or_insert_with(|| States::new(self.g, &mut mechanism, &inertias, self.rows));
            let form = JointForm::new(self.g, &mut mechanism, &inertias, &self.forces, self.rows, states);
            self.joint_form = Some(form.ok_or(ProgramError::Singular)?);
        }
        self.joint_form.as_ref().ok_or(ProgramError::Singular)
    }

    fn constrained_dynamics(&mut self) -> Result<Parts, ProgramError> {
        let solution = self.joint_form()?.solution.clone();
        self.structure.joint_columns = solution.columns;
        let zd = (0..self.mechanism.tree.nq).map(|z| self.mechanism.rate_of(self.g, z)).collect();
        let results = vec![
            wanted("zd", "time derivatives of the coordinates", zd),
            wanted("vd", "accelerations", solution.accelerations),
            wanted("lambda", "multipliers", solution.multipliers),
            wanted("pivots", "pivots of the elimination; none is zero where it succeeds", solution.pivots),
        ];
        let mut arguments = INSTANT.to_vec();
        arguments.push(Group::Stabilisation);
        Ok(("Accelerations and multipliers under the constraints.", arguments, results))
    }

    fn constraint_correction(&mut self) -> Result<Parts, ProgramError> {
        let correction = self.joint_form()?.correction.clone();
        let results = vec![
            wanted("dz", "correction of the coordinates", correction.position),
            wanted("dv", "correction of the velocities", correction.velocity),
            wanted("phi", "holonomic rows", correction.values),
            wanted("phid", "their rates, and the nonholonomic rows", correction.rates),
        ];
        Ok(("The way back onto the constraints.", vec![Group::Time, Group::Z, Group::V], results))
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
        let LeadingMatrix { factors, pivots, columns, solution, transposed } =
            form.leading.clone().ok_or(ProgramError::Singular)?;
        let rows = self.rows.in_coordinate_form();
        let entries = form.pattern.entries();
        self.structure.pattern = form.pattern.clone();
        self.structure.columns = columns;
        let coordinates: Vec<(Group, Option<u32>)> = COORDINATES.iter().map(|&group| (group, None)).collect();
        let with = |more: &[(Group, Option<u32>)]| [&coordinates[..], more].concat();
        let only = |groups: &[Group]| groups.iter().map(|&group| (group, None)).collect::<Vec<_>>();
        let multipliers = (Group::Lambda, Some(rows as u32));
        let matrix = (Group::Matrix, Some((entries + rows) as u32));
        let given = (Group::Factors, Some(factors.len() as u32));
        let rhs = (Group::Rhs, Some(solution.len() as u32));
        let residual = || wanted("r", "residual of the equations of motion", form.residual.clone());
        let constraints =
            || wanted("phi", "constraints: holonomic, normalisation, nonholonomic", form.constraints.clone());
        let specification = |kind: BundleKind, doc, arguments, results| Specification {
            rolled: Rolled::default(),
            name: kind.name(),
            doc,
            arguments,
            results,
        };
        Ok(vec![
            specification(
                BundleKind::Residual,
                "Residual of the equations of motion, and the constraints.",
                with(&[multipliers]),
                vec![residual(), constraints()],
            ),
            specification(
                BundleKind::Newton,
                "Residual, constraints, and the entries of the leading matrix.",
                with(&[multipliers, (Group::Weights, None)]),
                vec![residual(), constraints(), wanted("matrix", "W, Φ_z, A, A'", form.newton.clone())],
            ),
            specification(
                BundleKind::Projection,
                "Entries of the matrix that projects.",
                only(&[Group::Time, Group::Z, Group::U]),
                vec![wanted("matrix", "M, Φ_z, A, A", form.projection.clone())],
            ),
            specification(
                BundleKind::ConstraintRates,
                "Constraints at the level of velocities.",
                only(&[Group::Time, Group::Z, Group::Zd, Group::U]),
                vec![wanted("phid", "Φd, Ψ", form.rates.clone())],
            ),
            specification(
                BundleKind::ConstraintAccelerations,
                "Constraints at the level of accelerations.",
                coordinates.clone(),
                vec![wanted("phidd", "Φdd, Ψd", form.accelerations.clone())],
            ),
            specification(
                BundleKind::Factor,
                "Factors of the leading matrix, in an order chosen for its sparsity.",
                vec![matrix],
                vec![
                    wanted("factors", "1/pivot, column of L, row of U, for each pivot", factors),
                    wanted("pivots", "pivots; none is zero where the factors are right", pivots),
                ],
            ),
            specification(
                BundleKind::Solve,
                "Solves with the factors.",
                vec![given, rhs],
                vec![wanted("x", "solution", solution)],
            ),
            specification(
                BundleKind::SolveTransposed,
                "Solves the transposed system with the factors.",
                vec![given, rhs],
                vec![wanted("x", "solution", transposed)],
            ),
        ])
    }

    /// Start values.
    pub(super) fn start(&mut self) -> Specification {
        let [z, v] = self.mechanism.start(self.g);
        Specification {
            rolled: Rolled::default(),
            name: "start",
            doc: "Start values.",
            arguments: vec![(Group::Parameters, None)],
            results: vec![wanted("z", "coordinates", z), wanted("v", "velocities", v)],
        }
    }

    /// What a case prescribes for the inputs, and their defaults for the others.
    pub(super) fn input_signals(&mut self, case: Option<&Case>) -> Specification {
        let (model, parameters) = (self.mechanism.model, self.mechanism.parameters);
        let mut signals: Vec<ExprId> = model.inputs.iter().map(|i| self.g.constant(i.default)).collect();
        for (id, signal) in case.iter().flat_map(|case| &case.inputs) {
            signals[id.index()] = Lowering::new(self.g, parameters, &mut ParametersOnly).scalar(signal);
        }
        Specification {
            rolled: Rolled::default(),
            name: "input_signals",
            doc: "The inputs where nobody else sets them.",
            arguments: vec![(Group::Time, None)],
            results: vec![wanted("u", "inputs", signals)],
        }
    }
}

/// Derivatives of inverse dynamics by position, velocity and acceleration.
pub(super) fn derivative_results([by_position, by_velocity, mass]: [Vec<ExprId>; 3]) -> Vec<Wanted> {
    vec![
        wanted("tau_z", "derivatives by position, along the tangent, by columns", by_position),
        wanted("tau_v", "derivatives by velocity, by columns", by_velocity),
        wanted("m", "mass matrix: derivatives by acceleration, by columns", mass),
    ]
}

/// The closed forms of derivatives are referred to the origin, whatever the other bundles are.
pub(super) fn at_origin<'a>(g: &mut Graph, mechanism: &Mechanism<'a>) -> Mechanism<'a> {
    let (model, tree, parameters) = (mechanism.model, mechanism.tree, mechanism.parameters);
    Mechanism::new(g, model, tree, parameters, ReferencePoint::Origin)
}
