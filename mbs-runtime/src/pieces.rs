//! The caller's scratch, cut into pieces.

use crate::error::{EvalError, StepError};

/// Cuts the caller's scratch into pieces; a piece that is not there is an error, never a panic.
pub(crate) struct Pieces<'a, S> {
    rest: &'a mut [S],
    short: StepError,
}

impl<'a, S> Pieces<'a, S> {
    /// Scratch of which `expected` values are needed in all.
    #[inline(always)]
    pub(crate) fn of(scratch: &'a mut [S], expected: usize) -> Self {
        Self::named("scratch", scratch, expected)
    }

    /// Some other slice.
    #[inline(always)]
    pub(crate) fn named(what: &'static str, slice: &'a mut [S], expected: usize) -> Self {
        let short = StepError::Length { what, expected, found: slice.len() };
        Self { rest: slice, short }
    }

    /// The next `n` values.
    #[inline(always)]
    pub(crate) fn next(&mut self, n: usize) -> Result<&'a mut [S], StepError> {
        let (piece, rest) = core::mem::take(&mut self.rest).split_at_mut_checked(n).ok_or(self.short)?;
        self.rest = rest;
        Ok(piece)
    }

    /// All that is left.
    #[inline(always)]
    pub(crate) fn rest(self) -> &'a mut [S] {
        self.rest
    }

    /// What no piece was cut from; an error if there is any.
    #[inline(always)]
    pub(crate) fn end(self) -> Result<(), StepError> {
        if self.rest.is_empty() { Ok(()) } else { Err(self.short) }
    }
}

/// The first `n` values, and the rest; a slice that is shorter is an error.
#[inline(always)]
pub(crate) fn cut<'a, S>(what: &'static str, x: &'a [S], n: usize) -> Result<(&'a [S], &'a [S]), EvalError> {
    let found = x.len();
    x.split_at_checked(n).ok_or(EvalError::Length { what, expected: n, found })
}

/// The same, to be changed.
#[inline(always)]
pub(crate) fn cut_mut<'a, S>(
    what: &'static str,
    x: &'a mut [S],
    n: usize,
) -> Result<(&'a mut [S], &'a mut [S]), EvalError> {
    let found = x.len();
    x.split_at_mut_checked(n).ok_or(EvalError::Length { what, expected: n, found })
}
