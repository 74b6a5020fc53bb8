//! Events that happen at the same time: they have a derivative if they stay together after a change of parameters.
//!
//! The direct derivative knows how functions of events change and refuses those that part. The adjoint and runs in complex numbers do not: where they have
//! seen events at one instant, the direct derivative is asked.

use super::{Start, observed};
use crate::Interpreted;
use crate::method::Method;
use mbs_codegen::model::Simulation;
use mbs_runtime::{AdjointNode, Scalar, StepError};
use std::ops::ControlFlow;

/// Whether events of a run have happened at the same time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Together {
    last: Option<f64>,
    any: bool,
}

impl Together {
    /// Looks at a part of a run.
    pub(super) fn see<S: Scalar>(&mut self, node: &AdjointNode<'_, S>) {
        if let AdjointNode::Event { t, .. } = node {
            self.any |= self.last == Some(t.real());
            self.last = Some(t.real());
        }
    }

    /// Refuses a run whose events part after a change of a parameter.
    pub(super) fn check(
        self,
        model: &Interpreted,
        method: &Method,
        simulation: &Simulation,
        start: impl FnOnce() -> Result<Start, StepError>,
    ) -> Result<(), StepError> {
        if self.any {
            observed(model, method, simulation, start()?, false, &mut |_| ControlFlow::Continue(()))?;
        }
        Ok(())
    }
}
