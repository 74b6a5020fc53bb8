//! Inputs that events set: they keep their value until an event sets them again.

use core::cell::Cell;

use crate::inputs::{Inputs, Stop};
use crate::scalar::Scalar;

/// Inputs of which some are set by events. The values are shared with whoever handles the events.
pub(crate) struct Latched<'a, S, I> {
    pub(crate) inner: &'a mut I,
    /// Which are set by events.
    pub(crate) set: &'a [u32],
    /// A value for each input.
    pub(crate) values: &'a [Cell<S>],
}

impl<'a, S: Scalar, I: Inputs<S>> Latched<'a, S, I> {
    /// All inputs as they are at the start.
    pub(crate) fn new(inner: &'a mut I, set: &'a [u32], t: S, values: &'a mut [S]) -> Self {
        if !values.is_empty() {
            inner.at(t, values);
        }
        Self { inner, set, values: Cell::from_mut(values).as_slice_of_cells() }
    }
}

impl<S: Scalar, I: Inputs<S>> Inputs<S> for Latched<'_, S, I> {
    fn at(&mut self, t: S, u: &mut [S]) {
        self.inner.at(t, u);
        for &place in self.set {
            if let (Some(u), Some(value)) = (u.get_mut(place as usize), self.values.get(place as usize)) {
                *u = value.get();
            }
        }
    }
    fn next_stop(&mut self, from: f64, to: f64) -> Option<Stop> {
        self.inner.next_stop(from, to)
    }
}
