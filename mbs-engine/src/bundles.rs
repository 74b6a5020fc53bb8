//! The bundles of an interpreted model: one function that evaluates any of them, and every trait of the runtime that has bundles,
//! from their table.

use crate::interpreted::Interpreted;
use crate::tape::{Arguments, Tape};
use mbs_bundles::{Pivots, Written, argument_type, for_each_trait};
use mbs_codegen::program::{BundleKind, Program};
use mbs_codegen::symbols::Group;
use mbs_jit::LANES;
use mbs_runtime::constrained::{check_factors, check_solution};
use mbs_runtime::sensitivity::Places;
use mbs_runtime::system::check_pivots;
use mbs_runtime::{
    AccelerationDerivatives, At, Centroid, Centroidal, Constrained, ConstrainedDynamics,
    ConstraintCorrection, ConstraintRows, CoriolisTerms, Energy, EvalError, EventDerivatives, EventTable,
    Events, ForwardDynamics, ForwardDynamicsDerivatives, ForwardDynamicsExternal, ForwardDynamicsRecursive,
    FusedSteps, GravityTerms, Impulses, InertialParameters, InverseDynamics, InverseDynamicsDerivatives,
    InverseDynamicsExternal, InverseDynamicsParameters, JointObjectiveDerivatives, JointPlaces,
    JointSensitivities, MarkerJacobianRates, MarkerJacobians, Markers, MassMatrix, MassMatrixCoordinates,
    MassMatrixInverseAction, Motion, ObjectiveDerivatives, Objectives, Outputs, ParameterPlaces, Pattern,
    Reactions, Regressor, Scalar, Sensitivities, Stabilisation, StartDerivatives, System, Weights,
};

/// Most results of a bundle, its pivots included.
const MOST: usize = {
    let (mut most, mut i) = (0, 0);
    while i < BundleKind::ALL.len() {
        let results = BundleKind::ALL[i].entry().results.len() + 1;
        most = if results > most { results } else { most };
        i += 1;
    }
    most
};

impl<S: Scalar> Interpreted<S> {
    /// Evaluates a bundle: `arguments` by group, beside prepared values; `results` as the bundle's method takes them, a struct as its
    /// fields in order. What a bundle does not read may be missing. The scratch is that of all bundles.
    pub fn evaluate<const N: usize>(
        &self,
        kind: BundleKind,
        arguments: Arguments<'_, S>,
        w: &mut [S],
        results: [&mut [S]; N],
    ) -> Result<(), EvalError> {
        let kind = self.answering(kind);
        let (entry, tape) = (kind.entry(), self.bundle(kind)?);
        let mut arguments: Arguments<'_, S> = arguments;
        arguments[Group::Prepared as usize] = self.prepared();
        let structure = &self.program().structure;
        let columns = match entry.pivots {
            Pivots::None | Pivots::Positive => &[],
            Pivots::Leading => &structure.columns[..],
            Pivots::Joint => &structure.joint_columns,
        };
        let more = match entry.pivots {
            Pivots::Positive => self.dims().nv,
            // The right-hand side is in the memory of the solution.
            _ if entry.written == Written::InPlace => tape.result_len(0),
            _ => columns.len(),
        };
        let (w, more) = split_scratch(tape, w, more)?;
        let (rhs, pivots): (&[S], &mut [S]) = match results.first() {
            Some(x) if entry.written == Written::InPlace => {
                exactly(entry.results[0].name, more.len(), x.len())?;
                more.copy_from_slice(x);
                (more, &mut [])
            }
            _ => (&[], more),
        };
        arguments[Group::Rhs as usize] = rhs;
        let mut written: [&mut [S]; MOST] = Default::default();
        let mut count = 0;
        for (i, mut slice) in results.into_iter().enumerate() {
            let Some(result) = entry.results.get(i) else { break };
            let found = slice.len();
            if !result.is_computed() {
                exactly(result.name, 0, found)?;
                continue;
            }
            if result.is_first_part() {
                let expected = tape.result_len(count);
                let wrong = EvalError::Length { what: result.name, expected, found };
                slice = slice.get_mut(..expected).ok_or(wrong)?;
            }
            written[count] = slice;
            count += 1;
        }
        if entry.pivots != Pivots::None {
            written[count] = &mut *pivots;
            count += 1;
        }
        tape.run(&arguments, w, &mut written[..count])?;
        match entry.pivots {
            Pivots::None => Ok(()),
            Pivots::Positive => check_pivots(pivots),
            Pivots::Leading => check_factors(&self.dims(), pivots, columns),
            Pivots::Joint => check_solution(&self.dims(), pivots, columns),
        }
    }
}

impl<S: Scalar> Interpreted<S> {
    /// Runs a bundle as it is: pivots are results like others and are not checked. For tests, which compare engines.
    #[doc(hidden)]
    pub fn run_bundle(
        &self,
        kind: BundleKind,
        arguments: Arguments<'_, S>,
        w: &mut [S],
        results: &mut [&mut [S]],
    ) -> Result<(), EvalError> {
        let mut arguments: Arguments<'_, S> = arguments;
        arguments[Group::Prepared as usize] = self.prepared();
        self.bundle(kind)?.run(&arguments, w, results)
    }

    /// Solves for many right-hand sides, in place: row i of column k is `x[i * columns + k]`. Four columns at a time where there is machine
    /// code for it, with the same operations; one by one otherwise, in `column`.
    fn solve_columns(
        &self,
        kind: BundleKind,
        factors: &[S],
        columns: usize,
        w: &mut [S],
        column: &mut [S],
        x: &mut [S],
    ) -> Result<(), EvalError> {
        let tape = self.bundle(kind)?;
        let mut arguments: Arguments<'_, S> = [&[]; Group::ALL.len()];
        arguments[Group::Factors as usize] = factors;
        arguments[Group::Prepared as usize] = self.prepared();
        let mut first = 0;
        while first < columns {
            if columns - first > 1 {
                self.expect_columns(kind, tape);
                if tape.run_columns(&arguments, [first, columns], w, x).is_some() {
                    first += LANES;
                    continue;
                }
            }
            for (to, row) in column.iter_mut().zip(x.chunks_exact(columns)) {
                *to = row[first];
            }
            let mut given: Arguments<'_, S> = [&[]; Group::ALL.len()];
            given[Group::Factors as usize] = factors;
            self.evaluate(kind, given, w, [&mut *column])?;
            for (row, &from) in x.chunks_exact_mut(columns).zip(column.iter()) {
                row[first] = from;
            }
            first += 1;
        }
        Ok(())
    }
}

/// Splits `w` into the scratch of a bundle and `len` further values.
fn split_scratch<'w, S: Scalar>(
    tape: &Tape<S>,
    w: &'w mut [S],
    len: usize,
) -> Result<(&'w mut [S], &'w mut [S]), EvalError> {
    let (expected, found) = (tape.memory() + len, w.len());
    w.split_at_mut_checked(tape.memory())
        .and_then(|(w, rest)| Some((w, rest.get_mut(..len)?)))
        .ok_or(EvalError::Length { what: "w", expected, found })
}

pub(crate) fn exactly(what: &'static str, expected: usize, found: usize) -> Result<(), EvalError> {
    if expected == found { Ok(()) } else { Err(EvalError::Length { what, expected, found }) }
}

/// Numbers of an argument side by side.
macro_rules! hold {
    ($argument:ident: Time) => {
        let $argument = [$argument];
    };
    ($argument:ident: Weights) => {
        let $argument = [$argument.velocity, $argument.position, $argument.ratio];
    };
    ($argument:ident: Stabilisation) => {
        let $argument = [$argument.rate, $argument.value, $argument.compliance];
    };
    ($argument:ident: $What:ident) => {};
}

/// An argument by its groups.
macro_rules! give {
    ($to:ident, $at:ident: At) => {
        $to[Group::Time as usize] = std::slice::from_ref(&$at.t);
        $to[Group::Z as usize] = $at.z;
        $to[Group::V as usize] = $at.v;
        $to[Group::U as usize] = $at.u;
    };
    ($to:ident, $at:ident: Motion) => {
        $to[Group::Time as usize] = std::slice::from_ref(&$at.t);
        $to[Group::Z as usize] = $at.z;
        $to[Group::Zd as usize] = $at.zd;
        $to[Group::Zdd as usize] = $at.zdd;
        $to[Group::U as usize] = $at.u;
    };
    ($to:ident, $impulses:ident: Impulses) => {
        $to[Group::VelocityImpulse as usize] = $impulses.velocity;
        $to[Group::VelocityMultipliers as usize] = $impulses.velocity_multipliers;
        $to[Group::AccelerationImpulse as usize] = $impulses.acceleration;
        $to[Group::AccelerationMultipliers as usize] = $impulses.acceleration_multipliers;
    };
    ($to:ident, $argument:ident: $Group:ident) => {
        $to[Group::$Group as usize] = &$argument[..];
    };
}

/// A bundle as a method, which evaluates it.
macro_rules! method {
    ($Kind:ident = $method:ident($($argument:ident: $Argument:ident),*) -> ($name:ident: $Struct:ident)($($result:ident: $shape:tt),*)) => {
        method! { @ $Kind $method [$($argument: $Argument),*] [$name: $Struct<'_, S>] [$($name.$result),*] }
    };
    ($Kind:ident = $method:ident($($argument:ident: $Argument:ident),*) -> array($result:ident: [$len:literal])) => {
        method! { @ $Kind $method [$($argument: $Argument),*] [$result: &mut [S; $len]] [&mut $result[..]] }
    };
    ($Kind:ident = $method:ident($($argument:ident: $Argument:ident),*) -> $form:ident($($result:ident: $shape:tt),*)) => {
        method! { @ $Kind $method [$($argument: $Argument),*] [$($result: &mut [S]),*] [$($result),*] }
    };
    (@ $Kind:ident $method:ident [$($argument:ident: $Argument:ident),*] [$($written:ident: $Written:ty),*] [$($result:expr),*]) => {
        fn $method(
            &self,
            $($argument: argument_type!($Argument, S),)*
            w: &mut [S],
            $($written: $Written),*
        ) -> Result<(), EvalError> {
            $(hold! { $argument: $Argument })*
            #[allow(unused_mut, reason = "some bundles take no arguments")]
            let mut arguments: Arguments<'_, S> = [&[]; Group::ALL.len()];
            $(give! { arguments, $argument: $Argument })*
            self.evaluate(BundleKind::$Kind, arguments, w, [$($result),*])
        }
    };
}

/// What a trait has beside its bundles: solves for many right-hand sides.
macro_rules! many {
    (Constrained) => {
        many! { @ Solve solve_many }
    };
    (JointSensitivities) => {
        many! { @ JointSolve joint_solve_many }
    };
    (@ $Kind:ident $method:ident) => {
        fn $method(
            &self,
            factors: &[S],
            columns: usize,
            w: &mut [S],
            column: &mut [S],
            x: &mut [S],
        ) -> Result<(), EvalError> {
            self.solve_columns(BundleKind::$Kind, factors, columns, w, column, x)
        }
    };
    ($Trait:ident) => {};
}

macro_rules! implementations {
    ($(trait $Trait:ident {
        places { $($places:ident: $Places:ty),* }
        $($Kind:ident = $method:ident $arguments:tt -> $form:tt $results:tt;)*
    })*) => {
        $(impl<S: Scalar> $Trait for Interpreted<S> {
            $(fn $places(&self) -> $Places {
                places::$places(self.program())
            })*
            $(method! { $Kind = $method $arguments -> $form $results })*
            many! { $Trait }
        })*
    };
}

for_each_trait!(implementations);

/// Methods of traits that give the structure, beside their bundles.
mod places {
    use super::{BundleKind, EventTable, JointPlaces, ParameterPlaces, Pattern, Places, Program};

    pub(super) fn pattern(program: &Program) -> Pattern<'_> {
        let of = &program.structure.pattern;
        Pattern { tangent: &of.tangent, holonomic: &of.holonomic, nonholonomic: &of.nonholonomic }
    }

    pub(super) fn held(program: &Program) -> &[bool] {
        &program.held
    }

    pub(super) fn independent(program: &Program) -> &[bool] {
        &program.independent
    }

    pub(super) fn dependent(program: &Program) -> &[bool] {
        &program.dependent
    }

    pub(super) fn fuses_steps(program: &Program) -> bool {
        program.bundle(BundleKind::NewtonStep.name()).is_some()
    }

    pub(super) fn fuses_derivatives(program: &Program) -> bool {
        program.bundle(BundleKind::DifferentiateStep.name()).is_some()
    }

    pub(super) fn fuses_transposed(program: &Program) -> bool {
        program.bundle(BundleKind::TransposeStep.name()).is_some()
    }

    pub(super) fn fuses_transposed_rates(program: &Program) -> bool {
        program.bundle(BundleKind::TransposeRate.name()).is_some()
    }

    pub(super) fn fuses_corrections(program: &Program) -> bool {
        program.bundle(BundleKind::DifferentiateCorrection.name()).is_some()
    }

    pub(super) fn fuses_transposed_corrections(program: &Program) -> bool {
        program.bundle(BundleKind::TransposeCorrection.name()).is_some()
    }

    pub(super) fn fuses_rates(program: &Program) -> bool {
        program.bundle(BundleKind::DifferentiateRate.name()).is_some()
    }

    pub(super) fn start_places(program: &Program) -> [Places<'_>; 2] {
        program.structure.derivatives.start.each_ref().map(Vec::as_slice)
    }

    pub(super) fn parameter_places(program: &Program) -> ParameterPlaces<'_> {
        let of = &program.structure.derivatives.parameters;
        ParameterPlaces {
            residual: &of.residual,
            constraints: &of.constraints,
            impulse: &of.impulse,
            rates: &of.rates,
            accelerations: &of.accelerations,
        }
    }

    pub(super) fn product_places(program: &Program) -> [Places<'_>; 2] {
        program.structure.derivatives.products.each_ref().map(Vec::as_slice)
    }

    pub(super) fn projection_columns(program: &Program) -> usize {
        program.structure.derivatives.projection_columns
    }

    pub(super) fn objective_places(program: &Program) -> [Places<'_>; 2] {
        program.structure.derivatives.objectives.each_ref().map(Vec::as_slice)
    }

    pub(super) fn joint_places(program: &Program) -> JointPlaces<'_> {
        let of = &program.structure.derivatives.joint;
        JointPlaces { tangent: &of.tangent, rows: &of.rows, force: &of.force, row: &of.row }
    }

    pub(super) fn joint_objective_places(program: &Program) -> [Places<'_>; 2] {
        program.structure.derivatives.joint_objectives.each_ref().map(Vec::as_slice)
    }

    pub(super) fn event_table(program: &Program) -> EventTable<'_> {
        let events = &program.events;
        EventTable {
            events: &events.entries,
            conditions: events.conditions.len(),
            inputs: &events.inputs,
            columns: &events.columns,
            clock: events.clock,
            autonomous: events.autonomous,
        }
    }

    pub(super) fn event_places(program: &Program) -> Places<'_> {
        &program.structure.derivatives.events
    }

    pub(super) fn jump_places(program: &Program) -> Places<'_> {
        &program.structure.derivatives.jumps
    }

    pub(super) fn regressor_places(program: &Program) -> Places<'_> {
        &program.structure.regressor
    }

    pub(super) fn inverse_dynamics_parameter_places(program: &Program) -> Places<'_> {
        &program.structure.derivatives.inverse_dynamics
    }
}
