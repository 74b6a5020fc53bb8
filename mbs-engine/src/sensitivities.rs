//! Derivatives of an interpreted model, behind the runtime's traits.

use crate::interpreted::{Interpreted, with};
use mbs_codegen::program::{BundleKind, Program};
use mbs_codegen::symbols::Group;
use mbs_runtime::constrained::check_solution;
use mbs_runtime::sensitivity::Places;
use mbs_runtime::{
    At, EvalError, Impulses, JointObjectiveDerivatives, JointPlaces, JointSensitivities, Motion,
    ObjectiveDerivatives, ParameterPlaces, Scalar, Sensitivities, SensitivityDims, Stabilisation,
    StartDerivatives,
};

/// Sizes of what a program knows of its derivatives.
pub(crate) fn dims(program: &Program) -> SensitivityDims {
    let values = |kind| program.result_len(kind, 0);
    SensitivityDims {
        parameters: program.sensitivity.len(),
        start: values(BundleKind::StartDerivatives),
        newton: values(BundleKind::Linearise),
        projections: values(BundleKind::LineariseProjections),
        integrands: values(BundleKind::IntegrandDerivatives),
        terminals: values(BundleKind::TerminalDerivatives),
        joint: values(BundleKind::JointLinearise),
        joint_factors: program.result_len(BundleKind::JointLinearise, 1),
        joint_integrands: values(BundleKind::JointIntegrandDerivatives),
        joint_terminals: values(BundleKind::JointTerminalDerivatives),
    }
}

impl<S: Scalar> Interpreted<S> {
    fn run_in_coordinates(
        &self,
        kind: BundleKind,
        at: &Motion<'_, S>,
        lambda: &[S],
        w: &mut [S],
        values: &mut [S],
    ) -> Result<(), EvalError> {
        let time = [at.t];
        let arguments = with(self.in_coordinates(&time, at), Group::Lambda, lambda);
        self.bundle(kind)?.run(&arguments, w, &mut [values])
    }

    fn run_with_multipliers(
        &self,
        kind: BundleKind,
        at: &At<'_, S>,
        [vd, lambda]: [&[S]; 2],
        w: &mut [S],
        values: &mut [S],
    ) -> Result<(), EvalError> {
        let time = [at.t];
        let arguments = with(with(self.in_joint_form(&time, at), Group::Vd, vd), Group::Lambda, lambda);
        self.bundle(kind)?.run(&arguments, w, &mut [values])
    }
}

impl<S: Scalar> StartDerivatives for Interpreted<S> {
    fn start_places(&self) -> [Places<'_>; 2] {
        self.program().structure.derivatives.start.each_ref().map(Vec::as_slice)
    }

    fn start_derivatives(&self, w: &mut [S], values: &mut [S]) -> Result<(), EvalError> {
        let arguments = self.prepared_only();
        self.bundle(BundleKind::StartDerivatives)?.run(&arguments, w, &mut [values])
    }
}

impl<S: Scalar> Sensitivities for Interpreted<S> {
    fn parameter_places(&self) -> ParameterPlaces<'_> {
        let of = &self.program().structure.derivatives.parameters;
        ParameterPlaces {
            residual: &of.residual,
            constraints: &of.constraints,
            impulse: &of.impulse,
            rates: &of.rates,
            accelerations: &of.accelerations,
        }
    }

    fn linearise(
        &self,
        at: Motion<'_, S>,
        lambda: &[S],
        w: &mut [S],
        values: &mut [S],
    ) -> Result<(), EvalError> {
        self.run_in_coordinates(BundleKind::Linearise, &at, lambda, w, values)
    }

    fn linearise_projections(
        &self,
        at: Motion<'_, S>,
        impulses: Impulses<'_, S>,
        w: &mut [S],
        values: &mut [S],
    ) -> Result<(), EvalError> {
        let time = [at.t];
        let mut arguments = self.in_coordinates(&time, &at);
        for (group, values) in [
            (Group::VelocityImpulse, impulses.velocity),
            (Group::VelocityMultipliers, impulses.velocity_multipliers),
            (Group::AccelerationImpulse, impulses.acceleration),
            (Group::AccelerationMultipliers, impulses.acceleration_multipliers),
        ] {
            arguments = with(arguments, group, values);
        }
        self.bundle(BundleKind::LineariseProjections)?.run(&arguments, w, &mut [values])
    }
}

impl<S: Scalar> ObjectiveDerivatives for Interpreted<S> {
    fn objective_places(&self) -> [Places<'_>; 2] {
        self.program().structure.derivatives.objectives.each_ref().map(Vec::as_slice)
    }

    fn integrand_derivatives(
        &self,
        at: Motion<'_, S>,
        lambda: &[S],
        w: &mut [S],
        values: &mut [S],
    ) -> Result<(), EvalError> {
        self.run_in_coordinates(BundleKind::IntegrandDerivatives, &at, lambda, w, values)
    }

    fn terminal_derivatives(
        &self,
        at: Motion<'_, S>,
        lambda: &[S],
        w: &mut [S],
        values: &mut [S],
    ) -> Result<(), EvalError> {
        self.run_in_coordinates(BundleKind::TerminalDerivatives, &at, lambda, w, values)
    }
}

impl<S: Scalar> JointSensitivities for Interpreted<S> {
    fn joint_places(&self) -> JointPlaces<'_> {
        let of = &self.program().structure.derivatives.joint;
        JointPlaces { tangent: &of.tangent, rows: &of.rows, force: &of.force, row: &of.row }
    }

    fn joint_linearise(
        &self,
        at: At<'_, S>,
        vd: &[S],
        lambda: &[S],
        stabilisation: Stabilisation<S>,
        w: &mut [S],
        values: &mut [S],
        factors: &mut [S],
    ) -> Result<(), EvalError> {
        let kind = BundleKind::JointLinearise;
        let columns = &self.program().structure.joint_columns;
        let (w, pivots) = self.behind(kind, w, columns.len())?;
        let time = [at.t];
        let gains = [stabilisation.rate, stabilisation.value, stabilisation.compliance];
        let mut arguments = self.in_joint_form(&time, &at);
        for (group, values) in [(Group::Vd, vd), (Group::Lambda, lambda), (Group::Stabilisation, &gains)] {
            arguments = with(arguments, group, values);
        }
        self.bundle(kind)?.run(&arguments, w, &mut [values, factors, pivots])?;
        check_solution(&mbs_runtime::System::dims(self), pivots, columns)
    }

    fn joint_solve(&self, factors: &[S], w: &mut [S], x: &mut [S]) -> Result<(), EvalError> {
        self.solve_with(BundleKind::JointSolve, factors, w, x)
    }
}

impl<S: Scalar> JointObjectiveDerivatives for Interpreted<S> {
    fn joint_objective_places(&self) -> [Places<'_>; 2] {
        self.program().structure.derivatives.joint_objectives.each_ref().map(Vec::as_slice)
    }

    fn joint_integrand_derivatives(
        &self,
        at: At<'_, S>,
        vd: &[S],
        lambda: &[S],
        w: &mut [S],
        values: &mut [S],
    ) -> Result<(), EvalError> {
        self.run_with_multipliers(BundleKind::JointIntegrandDerivatives, &at, [vd, lambda], w, values)
    }

    fn joint_terminal_derivatives(
        &self,
        at: At<'_, S>,
        vd: &[S],
        lambda: &[S],
        w: &mut [S],
        values: &mut [S],
    ) -> Result<(), EvalError> {
        self.run_with_multipliers(BundleKind::JointTerminalDerivatives, &at, [vd, lambda], w, values)
    }
}
