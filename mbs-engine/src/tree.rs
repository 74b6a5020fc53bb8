//! What identification, control and optimisation ask of an interpreted model, behind the runtime's traits.

use crate::interpreted::Interpreted;
use mbs_codegen::program::BundleKind;
use mbs_runtime::sensitivity::Places;
use mbs_runtime::{At, EvalError, InertialParameters, Regressor, Scalar};

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
