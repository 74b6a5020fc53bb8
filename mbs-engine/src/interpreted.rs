//! An interpreted model, with the traits of generated code.
//!
//! Constants of generated code are values here; a bundle that was not requested, there a compile error, is
//! [`EvalError::Absent`] here. Lengths are checked as there: arguments and results have exactly their length, the scratch
//! at least its own.

use crate::machine_code::{Engine, Policy};
use crate::parameters::{self, ParameterError};
use crate::tape::{Arguments, Tape};
use mbs_bundles::{Size, for_each_size};
use mbs_codegen::conditions::Conditions;
use mbs_codegen::model;
use mbs_codegen::program::{BundleKind, Program};
use mbs_codegen::symbols::Group;
use mbs_jit::{Compiled, Fusing};
use mbs_runtime::{Dims, EvalError, Hold, Names, Quantity, Scalar, SensitivityDims, Start, System, Units};
use std::sync::Arc;

/// A model with its parameters and all values that depend on them alone.
#[derive(Clone, Debug)]
pub struct Interpreted<S: Scalar = f64> {
    program: Arc<Program>,
    dims: Dims,
    holds: Vec<Hold>,
    parameter_names: Vec<String>,
    parameters: Vec<S>,
    prepared: Vec<S>,
    prepare: Tape<S>,
    start: Tape<S>,
    input_signals: Tape<S>,
    conditions: Option<Tape<S>>,
    /// In the order of [`BundleKind::ALL`]; copies of a model share them, and their machine code.
    bundles: Arc<[Option<Tape<S>>; BundleKind::ALL.len()]>,
    policy: Policy,
    /// Whether forward dynamics is the recursion of articulated bodies.
    recursive: bool,
}

impl<S: Scalar> Interpreted<S> {
    /// The memory of a choice of independent coordinates before the first.
    pub(crate) fn no_choice(&self) -> Vec<S> {
        vec![S::ZERO; mbs_runtime::MatrixR::<Self>::choice_len(&mbs_runtime::System::dims(self))]
    }

    /// The program's model, with its default parameters.
    pub fn new(program: Program) -> Self {
        let tape = |name: &str| program.bundle(name).map(Tape::new);
        // Every program has these three.
        let [prepare, start, input_signals] =
            ["prepare", "start", "input_signals"].map(|name| tape(name).unwrap_or_else(Tape::empty));
        let conditions = tape("conditions");
        let bundles = BundleKind::ALL.map(|kind| tape(kind.name()));
        let parameters: Vec<S> = program.defaults().into_iter().map(S::from_f64).collect();
        let nv = program.velocities.len();
        let after_scratch =
            nv.max(program.structure.columns.len()).max(program.structure.joint_columns.len());
        // Pivots, or a right-hand side, follow the scratch of a bundle.
        let workspace = bundles.iter().flatten().map(|tape| tape.memory() + after_scratch).max().unwrap_or(0);
        let solves = [BundleKind::Solve, BundleKind::JointSolve].map(|kind| bundles[kind as usize].as_ref());
        let columns = solves.into_iter().flatten().map(Tape::columns_memory).max().unwrap_or(0);
        let workspace = workspace.max(columns);
        let dims = Dims { workspace, ..dims(&program) };
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
            conditions,
            bundles: Arc::new(bundles),
            policy: Policy::new(Engine::Auto, None, Fusing::AsCompiled),
            recursive: false,
            program: Arc::new(program),
        };
        this.run_prepare();
        this
    }

    /// Takes accelerations of an open tree from the recursion of articulated bodies (fully recursive) instead of the mass matrix
    /// (semi-recursive): wherever forward dynamics is asked for, in runs with derivatives, too. The program needs that bundle.
    pub fn set_recursive(&mut self, recursive: bool) {
        self.recursive = recursive;
    }

    /// The bundle that answers for another.
    pub(crate) fn answering(&self, kind: BundleKind) -> BundleKind {
        match kind {
            BundleKind::ForwardDynamics if self.recursive => BundleKind::ForwardDynamicsRecursive,
            kind => kind,
        }
    }

    /// Chooses how bundles are run. `expected`: how many evaluations of a bundle will come, where that is known.
    /// With fused operations, results agree with the tape's to rounding only.
    pub fn set_engine(&mut self, engine: Engine, expected: Option<usize>, fusing: Fusing) {
        let policy = Policy::new(engine, expected, fusing);
        if policy != self.policy {
            self.policy = policy;
            Arc::make_mut(&mut self.bundles).iter_mut().flatten().for_each(Tape::reset);
        }
    }

    /// Announces a run: compiles the bundles it may evaluate, if it is known to be long enough.
    pub(crate) fn begin_run(&self) {
        if self.policy.after == Some(0) {
            self.compile();
        }
    }

    /// Compiles all bundles at once, where the engine is to compile any: stepping then allocates nothing from the first step on.
    /// How many there are as machine code.
    pub fn compile(&self) -> usize {
        let policy = Policy { after: self.policy.after.map(|_| 0), ..self.policy };
        for (kind, tape) in self.tapes() {
            tape.expect_run(policy, || self.program.bundle(kind.name()));
            if matches!(kind, BundleKind::Solve | BundleKind::JointSolve) {
                tape.expect_columns(policy, || self.program.bundle(kind.name()));
            }
        }
        self.compiled()
    }

    /// How many bundles are there as machine code.
    pub fn compiled(&self) -> usize {
        self.tapes().filter(|(_, tape)| tape.is_compiled()).count()
    }

    fn tapes(&self) -> impl Iterator<Item = (BundleKind, &Tape<S>)> {
        BundleKind::ALL
            .into_iter()
            .zip(self.bundles.iter())
            .filter_map(|(kind, tape)| Some((kind, tape.as_ref()?)))
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

    /// Sets one parameter: `name`, or `name[i]` of an array. The value must keep the parameter's bounds and, with the others,
    /// be one that a mechanism can have. Where one value alone would not be, set all at once ([`Self::set_parameters`]).
    pub fn set_parameter(&mut self, name: &str, value: S) -> Result<(), ParameterError> {
        self.set_parameters_by_name(&[(name, value)]).map_err(|(_, error)| error)
    }

    /// Sets some parameters, each `name` or `name[i]` of an array. All together must be allowed, or none is set. An error comes
    /// with the name, if one value alone is to blame.
    pub fn set_parameters_by_name(
        &mut self,
        values: &[(&str, S)],
    ) -> Result<(), (Option<String>, ParameterError)> {
        let all = self.with_values(values)?;
        self.check_conditions(&all).map_err(|error| (None, error))?;
        self.parameters = all;
        self.run_prepare();
        Ok(())
    }

    /// All parameters, some of them with other values, each within its own bounds.
    pub(crate) fn with_values(
        &self,
        values: &[(&str, S)],
    ) -> Result<Vec<S>, (Option<String>, ParameterError)> {
        let mut all = self.parameters.clone();
        for &(name, value) in values {
            let mut set = || {
                let (number, place) = self.place_of(name)?;
                let info = &self.program.parameters[number];
                parameters::check(info, &self.parameter_names[place], value.real())?;
                all[place] = value;
                Ok(())
            };
            set().map_err(|error| (Some(name.into()), error))?;
        }
        Ok(all)
    }

    /// Whether a mechanism can have these parameters: a mass is not negative, an inertia is that of a body, knots increase,
    /// constraints that no coordinate can correct hold.
    fn check_conditions(&self, values: &[S]) -> Result<(), ParameterError> {
        let Some(tape) = &self.conditions else { return Ok(()) };
        let conditions = &self.program.conditions;
        let mut w = vec![S::ZERO; tape.memory()];
        let (mut margins, mut shown) = (vec![S::ZERO; conditions.len()], vec![S::ZERO; conditions.len()]);
        let arguments = with([&[]; Group::ALL.len()], Group::Parameters, values);
        // The lengths are right by construction, so this cannot fail.
        let _ = tape.run(&arguments, &mut w, &mut [&mut margins, &mut shown]);
        let [margins, shown] =
            [margins, shown].map(|values| values.iter().map(|x| x.real()).collect::<Vec<_>>());
        match Conditions::broken(conditions, &margins, &shown) {
            Some((condition, message)) if condition.of_scale => Err(ParameterError::Scale { message }),
            Some((_, message)) => Err(ParameterError::Condition { message }),
            None => Ok(()),
        }
    }

    /// Sets all parameters, arrays flattened. All must be allowed, or none is set.
    pub fn set_parameters(&mut self, values: &[S]) -> Result<(), ParameterError> {
        let (expected, found) = (self.parameters.len(), values.len());
        if expected != found {
            return Err(ParameterError::Count { expected, found });
        }
        let infos = self.program.parameters.iter().flat_map(|p| p.defaults.iter().map(move |_| p));
        for ((info, name), value) in infos.zip(&self.parameter_names).zip(values) {
            parameters::check(info, name, value.real())?;
        }
        self.check_conditions(values)?;
        self.parameters.copy_from_slice(values);
        self.run_prepare();
        Ok(())
    }

    /// Sets all parameters, which may leave their bounds: for derivatives at a bound.
    pub(crate) fn move_to(&mut self, values: impl IntoIterator<Item = S>) {
        self.parameters.iter_mut().zip(values).for_each(|(parameter, value)| *parameter = value);
        self.run_prepare();
    }

    /// Moves the value of a parameter, arrays flattened, which may leave its bounds: for derivatives at a bound.
    pub(crate) fn move_parameter(&mut self, place: usize, by: S) {
        if let Some(value) = self.parameters.get_mut(place) {
            *value += by;
            self.run_prepare();
        }
    }

    /// The same for several at once.
    pub(crate) fn move_parameters(&mut self, moves: impl IntoIterator<Item = (usize, S)>) {
        for (place, by) in moves {
            if let Some(value) = self.parameters.get_mut(place) {
                *value += by;
            }
        }
        self.run_prepare();
    }

    /// What it was made from, with its present parameters as defaults.
    pub fn program_as_set(&self) -> Program {
        let mut program = Program::clone(&self.program);
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

    /// Memory that the input signals need.
    pub(crate) fn signals_memory(&self) -> usize {
        self.input_signals.memory()
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

    pub(crate) fn prepared(&self) -> &[S] {
        &self.prepared
    }

    pub(crate) fn bundle(&self, kind: BundleKind) -> Result<&Tape<S>, EvalError> {
        let tape = self.bundles[kind as usize].as_ref().ok_or(EvalError::Absent { bundle: kind.name() })?;
        tape.expect_run(self.policy, || self.program.bundle(kind.name()));
        Ok(tape)
    }

    /// Says that a solve of several columns comes.
    pub(crate) fn expect_columns(&self, kind: BundleKind, tape: &Tape<S>) {
        tape.expect_columns(self.policy, || self.program.bundle(kind.name()));
    }
}

impl Interpreted {
    /// The machine code of a bundle over independent lanes, if the engine compiles and the system allows it.
    pub(crate) fn lanes_code(&self, kind: BundleKind) -> Option<Compiled> {
        self.policy.after?;
        mbs_jit::compile_lanes(self.program.bundle(kind.name())?, &[], self.policy.fusing).ok()
    }

    /// Whether both were copied from one model.
    pub(crate) fn is_copy_of(&self, other: &Interpreted) -> bool {
        Arc::ptr_eq(&self.program, &other.program)
    }
}

/// The sizes of a program, but for the workspace.
fn dims(program: &Program) -> Dims {
    macro_rules! sizes {
        (dims [$($dim:ident)*] sensitivity [$($size:ident)*] others $others:tt) => {
            Dims {
                $($dim: program.size(Size::$dim),)*
                sensitivity: SensitivityDims { $($size: program.size(Size::$size),)* },
                ..Dims::ZERO
            }
        };
    }
    for_each_size!(sizes)
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

    fn units(&self) -> Units<'_> {
        Units { coordinates: &self.program.coordinate_units, rows: &self.program.row_units }
    }

    fn resting_rows(&self) -> &[(u32, u32)] {
        &self.program.resting_rows
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
            Quantity::Event => program.events.names.get(index).map(String::as_str),
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
