//! The inputs where nobody else sets them: the model's defaults, or what its case prescribes.

use crate::Interpreted;
use mbs_runtime::{Inputs, Scalar, System};

/// Inputs from the program's own signals; made by [`Interpreted::input_signals`].
#[derive(Clone, Debug)]
pub struct Signals<'a, S: Scalar> {
    model: &'a Interpreted<S>,
    u: Vec<S>,
    w: Vec<S>,
}

impl<S: Scalar> Interpreted<S> {
    /// The inputs where nobody else sets them: the model's defaults, or what its case prescribes.
    pub fn input_signals(&self) -> Signals<'_, S> {
        let (u, w) = (vec![S::ZERO; self.dims().nu], vec![S::ZERO; self.signals_memory()]);
        Signals { model: self, u, w }
    }
}

impl<S: Scalar> Inputs<S> for Signals<'_, S> {
    fn at(&mut self, t: S, u: &mut [S]) {
        // The lengths are right by construction, so this cannot fail.
        let _ = self.model.evaluate_signals(t, &mut self.w, &mut self.u);
        for (to, from) in u.iter_mut().zip(self.u.iter().copied().chain(std::iter::repeat(S::ZERO))) {
            *to = from;
        }
    }
}
