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

/// The signals of a model, some of them moved by constants.
#[derive(Clone, Debug)]
pub(crate) struct Moved<'a, S: Scalar> {
    pub(crate) signals: Signals<'a, S>,
    /// Places of inputs, and by what each is moved.
    pub(crate) by: Vec<(usize, S)>,
}

impl<S: Scalar> Inputs<S> for Moved<'_, S> {
    fn at(&mut self, t: S, u: &mut [S]) {
        self.signals.at(t, u);
        for &(place, by) in &self.by {
            if let Some(u) = u.get_mut(place) {
                *u += by;
            }
        }
    }
}
