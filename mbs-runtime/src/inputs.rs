//! Inputs: how they are supplied, and how they are held over a step.
//!
//! The holding rule is part of the discrete map. Over a step from t0 to t1 = t0 + h an input is
//!
//! | hold | value at t0 + c h |
//! |---|---|
//! | [`Hold::Zero`] | u(t0) |
//! | [`Hold::Linear`] | u(t0) + c (u(t1) − u(t0)) |
//! | [`Hold::Signal`] | u(t0 + c h) |
//!
//! With step-size control the steps are the integrator's: an input that jumps at given times wants fixed steps, or
//! a run for each piece.

use crate::scalar::Scalar;

/// How an input is held over a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Hold {
    /// At its value at the start of the step.
    #[default]
    Zero,
    /// On the straight line between its values at start and end of the step.
    Linear,
    /// Not held: evaluated at every stage.
    Signal,
}

/// The source of a system's inputs.
pub trait Inputs<S> {
    /// Writes all inputs at time `t`.
    ///
    /// It is a function of time: an integrator may ask again, and go back when a step is rejected.
    fn at(&mut self, t: S, u: &mut [S]);
}

/// Inputs of a system that has none; any there are stay zero.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoInputs;

impl<S: Scalar> Inputs<S> for NoInputs {
    #[inline(always)]
    fn at(&mut self, _: S, u: &mut [S]) {
        u.fill(S::ZERO);
    }
}

/// Inputs that do not change; missing ones are zero.
#[derive(Clone, Copy, Debug)]
pub struct Constant<'a, S>(pub &'a [S]);

impl<S: Scalar> Inputs<S> for Constant<'_, S> {
    #[inline(always)]
    fn at(&mut self, _: S, u: &mut [S]) {
        let values = self.0.iter().copied().chain(core::iter::repeat(S::ZERO));
        u.iter_mut().zip(values).for_each(|(u, value)| *u = value);
    }
}

/// Inputs by a function; made by [`from_fn`].
#[derive(Clone, Copy, Debug)]
pub struct FromFn<F>(F);

/// Inputs by a function of time that writes them all.
#[inline(always)]
pub fn from_fn<S, F: FnMut(S, &mut [S])>(f: F) -> FromFn<F> {
    FromFn(f)
}

impl<S, F: FnMut(S, &mut [S])> Inputs<S> for FromFn<F> {
    #[inline(always)]
    fn at(&mut self, t: S, u: &mut [S]) {
        (self.0)(t, u);
    }
}
