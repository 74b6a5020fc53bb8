//! The right-hand side f(t, y) of a system under its held inputs, and the scratch it works in.

use crate::error::{EvalError, StepError};
use crate::inputs::{Held, Inputs};
use crate::scalar::Scalar;
use crate::system::{At, Dims, ForwardDynamics, Quantity};

/// Scratch of a [`Field`].
pub(super) const fn scratch_len(dims: &Dims) -> usize {
    3 * dims.nu + dims.workspace
}

/// Cuts the caller's scratch into pieces; a piece that is not there is an error, never a panic.
pub(super) struct Pieces<'a, S> {
    rest: &'a mut [S],
    short: StepError,
}

impl<'a, S> Pieces<'a, S> {
    /// Scratch of which `expected` values are needed in all.
    #[inline(always)]
    pub(super) fn of(scratch: &'a mut [S], expected: usize) -> Self {
        let short = StepError::Length { what: "scratch", expected, found: scratch.len() };
        Self { rest: scratch, short }
    }

    /// The next `n` values.
    #[inline(always)]
    pub(super) fn next(&mut self, n: usize) -> Result<&'a mut [S], StepError> {
        let (piece, rest) = core::mem::take(&mut self.rest).split_at_mut_checked(n).ok_or(self.short)?;
        self.rest = rest;
        Ok(piece)
    }
}

/// f(t, y).
pub(super) struct Field<'a, M: ForwardDynamics, I> {
    pub(super) system: &'a M,
    pub(super) dims: Dims,
    pub(super) inputs: Held<'a, M::S, I>,
    w: &'a mut [M::S],
    pub(super) evaluations: usize,
}

impl<'a, M: ForwardDynamics, I: Inputs<M::S>> Field<'a, M, I> {
    /// Takes its scratch from `pieces`.
    #[inline(always)]
    pub(super) fn new(
        system: &'a M,
        inputs: &'a mut I,
        pieces: &mut Pieces<'a, M::S>,
    ) -> Result<Self, StepError> {
        let dims = system.dims();
        let held = [pieces.next(dims.nu)?, pieces.next(dims.nu)?, pieces.next(dims.nu)?];
        let inputs = Held::new(inputs, system.holds(), held);
        Ok(Self { system, dims, inputs, w: pieces.next(dims.workspace)?, evaluations: 0 })
    }

    /// yd = f(t, y) at the part `c` of the step; finite, or an error that says which state's rate is not.
    #[inline(always)]
    pub(super) fn rate(&mut self, t: M::S, c: f64, y: &[M::S], yd: &mut [M::S]) -> Result<(), EvalError> {
        let u = self.inputs.during_step(t, M::S::from_f64(c));
        let at = At::of_state(&self.dims, t, y, u)?;
        let wrong = EvalError::Length { what: "yd", expected: self.dims.state(), found: yd.len() };
        let (zd, rest) = yd.split_at_mut_checked(self.dims.nq).ok_or(wrong)?;
        let (vd, xd) = rest.split_at_mut_checked(self.dims.nv).ok_or(wrong)?;
        self.evaluations += 1;
        self.system.forward_dynamics(at, self.w, zd, vd, xd)?;
        check_finite(&self.dims, yd)
    }
}

/// An error that names the first entry of a state, or of its rate, that is not finite.
#[inline(always)]
pub(super) fn check_finite<S: Scalar>(dims: &Dims, y: &[S]) -> Result<(), EvalError> {
    match y.iter().position(|y| !y.is_finite()) {
        None => Ok(()),
        Some(index) => {
            let (quantity, index) = entry(dims, index);
            Err(EvalError::NotFinite { quantity, index })
        }
    }
}

/// What an index into the state counts.
pub(super) fn entry(dims: &Dims, index: usize) -> (Quantity, usize) {
    if index < dims.nq {
        (Quantity::Coordinate, index)
    } else if index - dims.nq < dims.nv {
        (Quantity::Velocity, index - dims.nq)
    } else {
        (Quantity::State, index - dims.nq - dims.nv)
    }
}

impl EvalError {
    /// The error of the step from `t` with size `h` in which this one happened.
    pub(super) fn in_step(self, t: f64, h: f64) -> StepError {
        match self {
            Self::Length { what, expected, found } => StepError::Length { what, expected, found },
            Self::NotFinite { quantity, index } => StepError::NotFinite { t, h, quantity, index },
            error => StepError::Eval { t, h, error },
        }
    }
}

/// The state has the length of the system's.
#[inline(always)]
pub(super) fn check_state<S>(dims: &Dims, y: &[S]) -> Result<(), StepError> {
    let (expected, found) = (dims.state(), y.len());
    if expected == found { Ok(()) } else { Err(StepError::Length { what: "y", expected, found }) }
}
