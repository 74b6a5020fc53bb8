//! A model that is interpreted, behind the traits of generated code.
//!
//! What generated code has as constants stands here as values; what it turns into a compile error (a bundle that
//! was not asked for) is [`EvalError::Absent`] here. Lengths are checked as there: what a bundle takes must have
//! exactly its length, the scratch at least its own.

use crate::machine_code::{Engine, Policy};
use crate::parameters::{self, ParameterError};
use crate::sensitivities;
use crate::signals::Signals;
use crate::tape::{Arguments, Tape};
use mbs_codegen::model;
use mbs_codegen::program::{BundleKind, Program};
use mbs_codegen::symbols::Group;
use mbs_jit::Fusing;
use mbs_runtime::constrained::{check_factors, check_solution};
use mbs_runtime::system::check_pivots;
use mbs_runtime::{
    At, Constrained, ConstrainedDynamics, ConstraintCorrection, Dims, Energy, EvalError, ForwardDynamics,
    ForwardDynamicsRecursive, Hold, InverseDynamics, InverseDynamicsDerivatives, MarkerJacobians, Markers,
    MassMatrix, MassMatrixCoordinates, Motion, Names, Objectives, Outputs, Pattern, Quantity, Reactions,
    Scalar, Stabilisation, Start, System, Weights,
};

/// A model with its parameters and whatever depends on them alone.
#[derive(Clone, Debug)]
pub struct Interpreted<S: Scalar = f64> {
    program: Program,
    dims: Dims,
    holds: Vec<Hold>,
    parameter_names: Vec<String>,
    parameters: Vec<S>,
    prepared: Vec<S>,
    prepare: Tape<S>,
    start: Tape<S>,
    input_signals: Tape<S>,
    /// In the order of [`BundleKind::ALL`].
    bundles: [Option<Tape<S>>; BundleKind::ALL.len()],
    policy: Policy,
}

impl<S: Scalar> Interpreted<S> {
    /// The program's model, with its default parameters.
    pub fn new(program: Program) -> Self {
        let tape = |name: &str| program.bundle(name).map(Tape::new);
        // Every program has these three.
        let [prepare, start, input_signals] =
            ["prepare", "start", "input_signals"].map(|name| tape(name).unwrap_or_else(Tape::empty));
        let bundles = BundleKind::ALL.map(|kind| tape(kind.name()));
        let parameters: Vec<S> = program.defaults().into_iter().map(S::from_f64).collect();
        let nv = program.velocities.len();
        let behind = nv.max(program.structure.columns.len()).max(program.structure.joint_columns.len());
        let dims = Dims {
            nq: program.coordinates.len(),
            nv,
            nu: program.inputs.len(),
            np: parameters.len(),
            n_markers: program.markers.len(),
            n_outputs: program.outputs.len(),
            n_joints: program.joints.len(),
            n_bodies: program.bodies.len(),
            n_objectives: program.objectives.len(),
            n_holonomic: program.holonomic.len(),
            n_normalisation: program.euler_parameters.len(),
            n_nonholonomic: program.nonholonomic.len(),
            n_matrix: program.matrix_len(),
            n_factors: program.factors_len(),
            sensitivity: sensitivities::dims(&program),
            // Pivots, or a right-hand side, stand behind the memory of a bundle.
            workspace: bundles.iter().flatten().map(|tape| tape.memory() + behind).max().unwrap_or(0),
            ..Dims::ZERO
        };
        let hold = |hold| match hold {
            model::Hold::Zero => Hold::Zero,
            model::Hold::Linear => Hold::Linear,
            model::Hold::Signal => Hold::Signal,
        };
        let mut this = Interpreted {
            dims,
            holds: program.inputs.iter().map(|input| hold(input.hold)).collect(),
            parameter_names: program.parameter_names(),
            parameters,
            prepared: vec![S::ZERO; prepare.result_len(0)],
            prepare,
            start,
            input_signals,
            bundles,
            policy: Policy::new(Engine::Auto, None, Fusing::AsCompiled),
            program,
        };
        this.run_prepare();
        this
    }

    /// Chooses how bundles are run. `expected`: how many evaluations of a bundle will come, where that is known.
    /// With fused operations, results agree with the tape's to rounding only.
    pub fn set_engine(&mut self, engine: Engine, expected: Option<usize>, fusing: Fusing) {
        self.policy = Policy::new(engine, expected, fusing);
        self.bundles.iter_mut().flatten().for_each(Tape::reset);
    }

    /// Compiles all bundles at once, where the engine is to compile any: stepping then allocates nothing from the first step on.
    /// How many there are as machine code.
    pub fn compile(&self) -> usize {
        let policy = Policy { after: self.policy.after.map(|_| 0), ..self.policy };
        let compiled = BundleKind::ALL.into_iter().zip(&self.bundles).filter(|(kind, tape)| {
            tape.as_ref().is_some_and(|tape| {
                tape.expect_run(policy, || self.program.bundle(kind.name()));
                tape.is_compiled()
            })
        });
        compiled.count()
    }

    /// What it was made from.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The independent parameters, arrays flattened, in the order of their [`Names`].
    pub fn parameters(&self) -> &[S] {
        &self.parameters
    }

    /// The value of a parameter: `name`, or `name[i]` of an array.
    pub fn parameter(&self, name: &str) -> Result<S, ParameterError> {
        Ok(self.parameters[self.place_of(name)?.1])
    }

    /// Sets one parameter: `name`, or `name[i]` of an array. The value must keep the parameter's bounds.
    pub fn set_parameter(&mut self, name: &str, value: S) -> Result<(), ParameterError> {
        let (number, place) = self.place_of(name)?;
        parameters::check(&self.program.parameters[number], &self.parameter_names[place], value.real())?;
        self.parameters[place] = value;
        self.run_prepare();
        Ok(())
    }

    /// Sets all parameters, arrays flattened. All must keep their bounds, or none is set.
    pub fn set_parameters(&mut self, values: &[S]) -> Result<(), ParameterError> {
        let (expected, found) = (self.parameters.len(), values.len());
        if expected != found {
            return Err(ParameterError::Count { expected, found });
        }
        let infos = self.program.parameters.iter().flat_map(|p| p.defaults.iter().map(move |_| p));
        for ((info, name), value) in infos.zip(&self.parameter_names).zip(values) {
            parameters::check(info, name, value.real())?;
        }
        self.parameters.copy_from_slice(values);
        self.run_prepare();
        Ok(())
    }

    /// Moves the value of a parameter, arrays flattened, which may leave its bounds: for derivatives at a bound.
    pub(crate) fn move_parameter(&mut self, place: usize, by: S) {
        if let Some(value) = self.parameters.get_mut(place) {
            *value += by;
            self.run_prepare();
        }
    }

    /// What it was made from, with its present parameters as defaults.
    pub fn program_as_set(&self) -> Program {
        let mut program = self.program.clone();
        let mut values = self.parameters.iter().map(|value| value.real());
        for default in program.parameters.iter_mut().flat_map(|parameter| &mut parameter.defaults) {
            if let Some(value) = values.next() {
                *default = value;
            }
        }
        program
    }

    /// The start state y = \[z, v\].
    pub fn start_state(&self) -> Vec<S> {
        let mut y = vec![S::ZERO; self.dims.state()];
        let (z, v) = y.split_at_mut(self.dims.nq);
        // The lengths are right, so this cannot fail.
        let _ = self.start(z, v, &mut []);
        y
    }

    /// The inputs where nobody else sets them: the model's defaults, or what its case prescribes.
    pub fn input_signals(&self) -> Signals<'_, S> {
        Signals::new(self, self.dims.nu, self.input_signals.memory())
    }

    pub(crate) fn evaluate_signals(&self, t: S, w: &mut [S], u: &mut [S]) -> Result<(), EvalError> {
        let time = [t];
        let arguments =
            with(with([&[]; Group::ALL.len()], Group::Time, &time), Group::Prepared, &self.prepared);
        self.input_signals.run(&arguments, w, &mut [u])
    }

    fn place_of(&self, name: &str) -> Result<(usize, usize), ParameterError> {
        let (number, range) = parameters::find(&self.program.parameters, name)?;
        let info = &self.program.parameters[number];
        if info.is_array && !name.trim_end().ends_with(']') {
            return Err(ParameterError::Array { name: info.name.clone(), len: range.len() });
        }
        Ok((number, range.start))
    }

    /// Computes what depends on the parameters alone.
    fn run_prepare(&mut self) {
        let mut w = vec![S::ZERO; self.prepare.memory()];
        let arguments = with([&[]; Group::ALL.len()], Group::Parameters, &self.parameters);
        // The lengths are right by construction, so this cannot fail.
        let _ = self.prepare.run(&arguments, &mut w, &mut [&mut self.prepared]);
    }

    pub(crate) fn bundle(&self, kind: BundleKind) -> Result<&Tape<S>, EvalError> {
        let tape = self.bundles[kind as usize].as_ref().ok_or(EvalError::Absent { bundle: kind.name() })?;
        tape.expect_run(self.policy, || self.program.bundle(kind.name()));
        Ok(tape)
    }

    /// The arguments of an instant in joint form.
    pub(crate) fn in_joint_form<'a>(&'a self, time: &'a [S], at: &At<'a, S>) -> Arguments<'a, S> {
        let mut arguments: Arguments<'_, S> = [&[]; Group::ALL.len()];
        for (group, values) in [
            (Group::Time, time),
            (Group::Z, at.z),
            (Group::V, at.v),
            (Group::U, at.u),
            (Group::Prepared, &self.prepared),
        ] {
            arguments = with(arguments, group, values);
        }
        arguments
    }

    /// Runs a bundle at an instant; `vd` is empty where it does not take accelerations.
    pub(crate) fn run(
        &self,
        kind: BundleKind,
        at: &At<'_, S>,
        vd: &[S],
        w: &mut [S],
        results: &mut [&mut [S]],
    ) -> Result<(), EvalError> {
        let time = [at.t];
        let arguments = with(self.in_joint_form(&time, at), Group::Vd, vd);
        self.bundle(kind)?.run(&arguments, w, results)
    }

    fn accelerations(
        &self,
        kind: BundleKind,
        at: &At<'_, S>,
        w: &mut [S],
        [zd, vd, xd]: [&mut [S]; 3],
    ) -> Result<(), EvalError> {
        if !xd.is_empty() {
            return Err(EvalError::Length { what: "xd", expected: 0, found: xd.len() });
        }
        let (w, pivots) = self.behind(kind, w, self.dims.nv)?;
        self.run(kind, at, &[], w, &mut [zd, vd, pivots])?;
        check_pivots(pivots)
    }

    /// The scratch of a bundle, and as many values behind it.
    pub(crate) fn behind<'w>(
        &self,
        kind: BundleKind,
        w: &'w mut [S],
        len: usize,
    ) -> Result<(&'w mut [S], &'w mut [S]), EvalError> {
        let memory = self.bundle(kind)?.memory();
        let (expected, found) = (memory + len, w.len());
        w.split_at_mut_checked(memory)
            .and_then(|(w, rest)| Some((w, rest.get_mut(..len)?)))
            .ok_or(EvalError::Length { what: "w", expected, found })
    }

    /// The arguments of an instant in coordinate form.
    pub(crate) fn in_coordinates<'a>(&'a self, time: &'a [S], at: &Motion<'a, S>) -> Arguments<'a, S> {
        let mut arguments: Arguments<'_, S> = [&[]; Group::ALL.len()];
        for (group, values) in [
            (Group::Time, time),
            (Group::Z, at.z),
            (Group::Zd, at.zd),
            (Group::Zdd, at.zdd),
            (Group::U, at.u),
            (Group::Prepared, &self.prepared),
        ] {
            arguments = with(arguments, group, values);
        }
        arguments
    }

    /// The arguments of a bundle of parameters alone.
    pub(crate) fn prepared_only(&self) -> Arguments<'_, S> {
        with([&[]; Group::ALL.len()], Group::Prepared, &self.prepared)
    }

    /// The part of the leading matrix that bundles write.
    fn entries<'m>(&self, matrix: &'m mut [S]) -> Result<&'m mut [S], EvalError> {
        let (expected, found) = (self.program.structure.pattern.entries(), matrix.len());
        matrix.get_mut(..expected).ok_or(EvalError::Length { what: "matrix", expected, found })
    }

    pub(crate) fn solve_with(
        &self,
        kind: BundleKind,
        factors: &[S],
        w: &mut [S],
        x: &mut [S],
    ) -> Result<(), EvalError> {
        let (w, rhs) = self.behind(kind, w, x.len())?;
        rhs.copy_from_slice(x);
        let arguments = self.prepared_only();
        let arguments = with(with(arguments, Group::Factors, factors), Group::Rhs, rhs);
        self.bundle(kind)?.run(&arguments, w, &mut [x])
    }
}

pub(crate) fn with<'a, S>(
    mut arguments: Arguments<'a, S>,
    group: Group,
    values: &'a [S],
) -> Arguments<'a, S> {
    arguments[group as usize] = values;
    arguments
}

impl<S: Scalar> System for Interpreted<S> {
    type S = S;

    fn dims(&self) -> Dims {
        self.dims
    }

    fn euler_parameters(&self) -> &[usize] {
        &self.program.euler_parameters
    }

    fn holds(&self) -> &[Hold] {
        &self.holds
    }
}

impl<S: Scalar> Names for Interpreted<S> {
    fn name(&self, quantity: Quantity, index: usize) -> Option<&str> {
        let program = &self.program;
        match quantity {
            Quantity::Coordinate => program.coordinates.get(index).map(String::as_str),
            Quantity::Velocity => program.velocities.get(index).map(String::as_str),
            Quantity::Input => program.inputs.get(index).map(|input| input.name.as_str()),
            Quantity::Parameter => self.parameter_names.get(index).map(String::as_str),
            Quantity::Marker => program.markers.get(index).map(String::as_str),
            Quantity::Output => program.outputs.get(index).map(|(name, _)| name.as_str()),
            Quantity::Objective => program.objectives.get(index).map(|(name, _)| name.as_str()),
            Quantity::Sensitivity => program.sensitivity.get(index).map(String::as_str),
            Quantity::Joint => program.joints.get(index).map(String::as_str),
            Quantity::Body => program.bodies.get(index).map(String::as_str),
            Quantity::Holonomic => program.holonomic.get(index).map(String::as_str),
            Quantity::Normalisation => program.normalised.get(index).map(String::as_str),
            Quantity::Nonholonomic => program.nonholonomic.get(index).map(String::as_str),
            _ => None,
        }
    }
}

impl<S: Scalar> Start for Interpreted<S> {
    /// Allocates its scratch: it runs once, before any step.
    fn start(&self, z: &mut [S], v: &mut [S], x: &mut [S]) -> Result<(), EvalError> {
        if !x.is_empty() {
            return Err(EvalError::Length { what: "x", expected: 0, found: x.len() });
        }
        let mut w = vec![S::ZERO; self.start.memory()];
        let arguments = with([&[]; Group::ALL.len()], Group::Parameters, &self.parameters);
        self.start.run(&arguments, &mut w, &mut [z, v])
    }
}

impl<S: Scalar> ForwardDynamics for Interpreted<S> {
    fn forward_dynamics(
        &self,
        at: At<'_, S>,
        w: &mut [S],
        zd: &mut [S],
        vd: &mut [S],
        xd: &mut [S],
    ) -> Result<(), EvalError> {
        self.accelerations(BundleKind::ForwardDynamics, &at, w, [zd, vd, xd])
    }
}

impl<S: Scalar> ForwardDynamicsRecursive for Interpreted<S> {
    fn forward_dynamics_recursive(
        &self,
        at: At<'_, S>,
        w: &mut [S],
        zd: &mut [S],
        vd: &mut [S],
        xd: &mut [S],
    ) -> Result<(), EvalError> {
        self.accelerations(BundleKind::ForwardDynamicsRecursive, &at, w, [zd, vd, xd])
    }
}

impl<S: Scalar> MassMatrix for Interpreted<S> {
    fn mass_matrix(&self, at: At<'_, S>, w: &mut [S], m: &mut [S]) -> Result<(), EvalError> {
        self.run(BundleKind::MassMatrix, &at, &[], w, &mut [m])
    }
}

impl<S: Scalar> MassMatrixCoordinates for Interpreted<S> {
    fn mass_matrix_coordinates(&self, at: At<'_, S>, w: &mut [S], m: &mut [S]) -> Result<(), EvalError> {
        self.run(BundleKind::MassMatrixCoordinates, &at, &[], w, &mut [m])
    }
}

impl<S: Scalar> InverseDynamics for Interpreted<S> {
    fn inverse_dynamics(&self, at: At<'_, S>, vd: &[S], w: &mut [S], tau: &mut [S]) -> Result<(), EvalError> {
        self.run(BundleKind::InverseDynamics, &at, vd, w, &mut [tau])
    }
}

impl<S: Scalar> InverseDynamicsDerivatives for Interpreted<S> {
    fn inverse_dynamics_derivatives(
        &self,
        at: At<'_, S>,
        vd: &[S],
        w: &mut [S],
        tau_z: &mut [S],
        tau_v: &mut [S],
        m: &mut [S],
    ) -> Result<(), EvalError> {
        self.run(BundleKind::InverseDynamicsDerivatives, &at, vd, w, &mut [tau_z, tau_v, m])
    }
}

impl<S: Scalar> Energy for Interpreted<S> {
    fn energy(&self, at: At<'_, S>, w: &mut [S], out: &mut [S; 3]) -> Result<(), EvalError> {
        self.run(BundleKind::Energy, &at, &[], w, &mut [out])
    }
}

impl<S: Scalar> Markers for Interpreted<S> {
    fn markers(
        &self,
        at: At<'_, S>,
        vd: &[S],
        w: &mut [S],
        positions: &mut [S],
        velocities: &mut [S],
        accelerations: &mut [S],
    ) -> Result<(), EvalError> {
        self.run(BundleKind::Markers, &at, vd, w, &mut [positions, velocities, accelerations])
    }
}

impl<S: Scalar> MarkerJacobians for Interpreted<S> {
    fn marker_jacobians(&self, at: At<'_, S>, w: &mut [S], jacobians: &mut [S]) -> Result<(), EvalError> {
        self.run(BundleKind::MarkerJacobians, &at, &[], w, &mut [jacobians])
    }
}

impl<S: Scalar> Outputs for Interpreted<S> {
    fn outputs(&self, at: At<'_, S>, vd: &[S], w: &mut [S], out: &mut [S]) -> Result<(), EvalError> {
        self.run(BundleKind::Outputs, &at, vd, w, &mut [out])
    }
}

impl<S: Scalar> Constrained for Interpreted<S> {
    fn pattern(&self) -> Pattern<'_> {
        let pattern = &self.program.structure.pattern;
        Pattern {
            tangent: &pattern.tangent,
            holonomic: &pattern.holonomic,
            nonholonomic: &pattern.nonholonomic,
        }
    }

    fn held(&self) -> &[bool] {
        &self.program.held
    }

    fn residual(
        &self,
        at: Motion<'_, S>,
        lambda: &[S],
        w: &mut [S],
        r: &mut [S],
        phi: &mut [S],
    ) -> Result<(), EvalError> {
        let time = [at.t];
        let arguments = with(self.in_coordinates(&time, &at), Group::Lambda, lambda);
        self.bundle(BundleKind::Residual)?.run(&arguments, w, &mut [r, phi])
    }

    fn newton(
        &self,
        at: Motion<'_, S>,
        lambda: &[S],
        weights: Weights<S>,
        w: &mut [S],
        r: &mut [S],
        phi: &mut [S],
        matrix: &mut [S],
    ) -> Result<(), EvalError> {
        let (time, weights) = ([at.t], [weights.velocity, weights.position, weights.ratio]);
        let arguments = with(self.in_coordinates(&time, &at), Group::Lambda, lambda);
        let arguments = with(arguments, Group::Weights, &weights);
        self.bundle(BundleKind::Newton)?.run(&arguments, w, &mut [r, phi, self.entries(matrix)?])
    }

    fn projection(&self, t: S, z: &[S], u: &[S], w: &mut [S], matrix: &mut [S]) -> Result<(), EvalError> {
        let time = [t];
        let mut arguments = with([&[]; Group::ALL.len()], Group::Time, &time[..]);
        for (group, values) in [(Group::Z, z), (Group::U, u), (Group::Prepared, &self.prepared)] {
            arguments = with(arguments, group, values);
        }
        self.bundle(BundleKind::Projection)?.run(&arguments, w, &mut [self.entries(matrix)?])
    }

    fn constraint_rates(&self, at: Motion<'_, S>, w: &mut [S], phid: &mut [S]) -> Result<(), EvalError> {
        let time = [at.t];
        let arguments = with(self.in_coordinates(&time, &at), Group::Zdd, &[]);
        self.bundle(BundleKind::ConstraintRates)?.run(&arguments, w, &mut [phid])
    }

    fn constraint_accelerations(
        &self,
        at: Motion<'_, S>,
        w: &mut [S],
        phidd: &mut [S],
    ) -> Result<(), EvalError> {
        let time = [at.t];
        let arguments = self.in_coordinates(&time, &at);
        self.bundle(BundleKind::ConstraintAccelerations)?.run(&arguments, w, &mut [phidd])
    }

    fn factor(&self, matrix: &[S], w: &mut [S], factors: &mut [S]) -> Result<(), EvalError> {
        let columns = &self.program.structure.columns;
        let (w, pivots) = self.behind(BundleKind::Factor, w, columns.len())?;
        let arguments = with([&[]; Group::ALL.len()], Group::Prepared, &self.prepared);
        let arguments = with(arguments, Group::Matrix, matrix);
        self.bundle(BundleKind::Factor)?.run(&arguments, w, &mut [factors, pivots])?;
        check_factors(&self.dims, pivots, columns)
    }

    fn solve(&self, factors: &[S], w: &mut [S], x: &mut [S]) -> Result<(), EvalError> {
        self.solve_with(BundleKind::Solve, factors, w, x)
    }

    fn solve_transposed(&self, factors: &[S], w: &mut [S], x: &mut [S]) -> Result<(), EvalError> {
        self.solve_with(BundleKind::SolveTransposed, factors, w, x)
    }
}

impl<S: Scalar> ConstrainedDynamics for Interpreted<S> {
    fn constrained_dynamics(
        &self,
        at: At<'_, S>,
        stabilisation: Stabilisation<S>,
        w: &mut [S],
        zd: &mut [S],
        vd: &mut [S],
        xd: &mut [S],
        lambda: &mut [S],
    ) -> Result<(), EvalError> {
        if !xd.is_empty() {
            return Err(EvalError::Length { what: "xd", expected: 0, found: xd.len() });
        }
        let columns = &self.program.structure.joint_columns;
        let (w, pivots) = self.behind(BundleKind::ConstrainedDynamics, w, columns.len())?;
        let (time, gains) = ([at.t], [stabilisation.rate, stabilisation.value, stabilisation.compliance]);
        let arguments = with(self.in_joint_form(&time, &at), Group::Stabilisation, &gains);
        let tape = self.bundle(BundleKind::ConstrainedDynamics)?;
        tape.run(&arguments, w, &mut [zd, vd, lambda, pivots])?;
        check_solution(&self.dims, pivots, columns)
    }
}

impl<S: Scalar> ConstraintCorrection for Interpreted<S> {
    fn constraint_correction(
        &self,
        at: At<'_, S>,
        w: &mut [S],
        dz: &mut [S],
        dv: &mut [S],
        phi: &mut [S],
        phid: &mut [S],
    ) -> Result<(), EvalError> {
        self.run(BundleKind::ConstraintCorrection, &at, &[], w, &mut [dz, dv, phi, phid])
    }
}

impl<S: Scalar> Reactions for Interpreted<S> {
    fn reactions(
        &self,
        at: At<'_, S>,
        vd: &[S],
        lambda: &[S],
        w: &mut [S],
        reactions: &mut [S],
    ) -> Result<(), EvalError> {
        let time = [at.t];
        let arguments = with(with(self.in_joint_form(&time, &at), Group::Vd, vd), Group::Lambda, lambda);
        self.bundle(BundleKind::Reactions)?.run(&arguments, w, &mut [reactions])
    }
}

impl<S: Scalar> Objectives for Interpreted<S> {
    fn objectives(
        &self,
        at: At<'_, S>,
        vd: &[S],
        lambda: &[S],
        w: &mut [S],
        integrands: &mut [S],
        terminals: &mut [S],
    ) -> Result<(), EvalError> {
        let time = [at.t];
        let arguments = with(with(self.in_joint_form(&time, &at), Group::Vd, vd), Group::Lambda, lambda);
        self.bundle(BundleKind::Objectives)?.run(&arguments, w, &mut [integrands, terminals])
    }
}
