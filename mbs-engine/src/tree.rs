//! What identification, control and optimisation ask of an interpreted model, behind the runtime's traits.

use crate::interpreted::{Interpreted, with};
use mbs_codegen::program::BundleKind;
use mbs_codegen::symbols::Group;
use mbs_runtime::sensitivity::Places;
use mbs_runtime::system::check_pivots;
use mbs_runtime::{
    AccelerationDerivatives, At, Centroid, Centroidal, CoriolisTerms, EvalError, ForwardDynamicsDerivatives,
    ForwardDynamicsExternal, GravityTerms, InertialParameters, InverseDynamicsExternal,
    InverseDynamicsParameters, MarkerJacobianRates, MassMatrixInverseAction, Regressor, Scalar, System,
};

impl<S: Scalar> InertialParameters for Interpreted<S> {
    fn inertial_parameters(&self, w: &mut [S], pi: &mut [S]) -> Result<(), EvalError> {
        let arguments = self.prepared_only();
        self.bundle(BundleKind::InertialParameters)?.run(&arguments, w, &mut [pi])
    }
}

impl<S: Scalar> Regressor for Interpreted<S> {
    fn regressor_places(&self) -> Places<'_> {
        &self.program().structure.regressor
    }

    fn regressor(&self, at: At<'_, S>, vd: &[S], w: &mut [S], values: &mut [S]) -> Result<(), EvalError> {
        self.run(BundleKind::Regressor, &at, vd, w, &mut [values])
    }
}

impl<S: Scalar> GravityTerms for Interpreted<S> {
    fn gravity_terms(&self, at: At<'_, S>, w: &mut [S], gravity: &mut [S]) -> Result<(), EvalError> {
        self.run(BundleKind::GravityTerms, &at, &[], w, &mut [gravity])
    }
}

impl<S: Scalar> CoriolisTerms for Interpreted<S> {
    fn coriolis_terms(&self, at: At<'_, S>, w: &mut [S], coriolis: &mut [S]) -> Result<(), EvalError> {
        self.run(BundleKind::CoriolisTerms, &at, &[], w, &mut [coriolis])
    }
}

impl<S: Scalar> Centroidal for Interpreted<S> {
    fn centroidal(&self, at: At<'_, S>, w: &mut [S], centroid: Centroid<'_, S>) -> Result<(), EvalError> {
        let Centroid { com, com_velocity, com_jacobian, momentum, momentum_matrix, momentum_bias } = centroid;
        let results = &mut [com, com_velocity, com_jacobian, momentum, momentum_matrix, momentum_bias];
        self.run(BundleKind::Centroidal, &at, &[], w, results)
    }
}

impl<S: Scalar> MarkerJacobianRates for Interpreted<S> {
    fn marker_jacobian_rates(
        &self,
        at: At<'_, S>,
        w: &mut [S],
        rates: &mut [S],
        bias: &mut [S],
    ) -> Result<(), EvalError> {
        self.run(BundleKind::MarkerJacobianRates, &at, &[], w, &mut [rates, bias])
    }
}

impl<S: Scalar> InverseDynamicsExternal for Interpreted<S> {
    fn inverse_dynamics_external(
        &self,
        at: At<'_, S>,
        vd: &[S],
        wrenches: &[S],
        w: &mut [S],
        tau: &mut [S],
    ) -> Result<(), EvalError> {
        let time = [at.t];
        let arguments = with(with(self.in_joint_form(&time, &at), Group::Vd, vd), Group::Wrenches, wrenches);
        self.bundle(BundleKind::InverseDynamicsExternal)?.run(&arguments, w, &mut [tau])
    }
}

impl<S: Scalar> ForwardDynamicsExternal for Interpreted<S> {
    fn forward_dynamics_external(
        &self,
        at: At<'_, S>,
        tau: &[S],
        wrenches: &[S],
        w: &mut [S],
        zd: &mut [S],
        vd: &mut [S],
        xd: &mut [S],
    ) -> Result<(), EvalError> {
        if !xd.is_empty() {
            return Err(EvalError::Length { what: "xd", expected: 0, found: xd.len() });
        }
        let kind = BundleKind::ForwardDynamicsExternal;
        let (w, pivots) = self.behind(kind, w, self.dims().nv)?;
        let time = [at.t];
        let arguments =
            with(with(self.in_joint_form(&time, &at), Group::Tau, tau), Group::Wrenches, wrenches);
        self.bundle(kind)?.run(&arguments, w, &mut [zd, vd, pivots])?;
        check_pivots(pivots)
    }
}

impl<S: Scalar> MassMatrixInverseAction for Interpreted<S> {
    fn mass_matrix_inverse_action(
        &self,
        at: At<'_, S>,
        tau: &[S],
        w: &mut [S],
        x: &mut [S],
    ) -> Result<(), EvalError> {
        let kind = BundleKind::MassMatrixInverseAction;
        let (w, pivots) = self.behind(kind, w, self.dims().nv)?;
        let time = [at.t];
        let arguments = with(self.in_joint_form(&time, &at), Group::Tau, tau);
        self.bundle(kind)?.run(&arguments, w, &mut [x, pivots])?;
        check_pivots(pivots)
    }
}

impl<S: Scalar> ForwardDynamicsDerivatives for Interpreted<S> {
    fn forward_dynamics_derivatives(
        &self,
        at: At<'_, S>,
        tau: &[S],
        w: &mut [S],
        derivatives: AccelerationDerivatives<'_, S>,
    ) -> Result<(), EvalError> {
        let kind = BundleKind::ForwardDynamicsDerivatives;
        let (w, pivots) = self.behind(kind, w, self.dims().nv)?;
        let time = [at.t];
        let arguments = with(self.in_joint_form(&time, &at), Group::Tau, tau);
        let AccelerationDerivatives { vd, vd_z, vd_v, vd_tau, vd_rho } = derivatives;
        self.bundle(kind)?.run(&arguments, w, &mut [vd, vd_z, vd_v, vd_tau, vd_rho, pivots])?;
        check_pivots(pivots)
    }
}

impl<S: Scalar> InverseDynamicsParameters for Interpreted<S> {
    fn inverse_dynamics_parameter_places(&self) -> Places<'_> {
        &self.program().structure.derivatives.inverse_dynamics
    }

    fn inverse_dynamics_parameters(
        &self,
        at: At<'_, S>,
        vd: &[S],
        w: &mut [S],
        values: &mut [S],
    ) -> Result<(), EvalError> {
        self.run(BundleKind::InverseDynamicsParameters, &at, vd, w, &mut [values])
    }
}
