//! Values of several samples at once: what generated bundles over lanes are made of.
//!
//! Elementary operations on all lanes become vector instructions where the target has them; functions go lane by lane, so that
//! each lane has the bits of the scalar code.

use crate::math;
use crate::scalar::Scalar;
use core::ops::{Add, Div, Mul, Neg, Sub};

/// A value of each of N samples.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C, align(32))]
pub struct Lanes<S, const N: usize>(pub [S; N]);

impl<S: Scalar, const N: usize> Lanes<S, N> {
    /// Zero in every lane.
    pub const ZERO: Self = Lanes([S::ZERO; N]);

    /// The same value in every lane.
    #[inline(always)]
    pub fn of(value: S) -> Self {
        Lanes([value; N])
    }
}

impl<S: Scalar, const N: usize> Default for Lanes<S, N> {
    fn default() -> Self {
        Self::ZERO
    }
}

/// The values of a function at 0, 1, …: `core::array::from_fn`, of which parts are inlined only by optimisation across the units of a crate,
/// which incremental builds and others leave out.
#[inline(always)]
pub(crate) fn each<T: Copy + Default, const N: usize>(mut f: impl FnMut(usize) -> T) -> [T; N] {
    let mut all = [T::default(); N];
    let mut k = 0;
    while let Some(value) = all.get_mut(k) {
        *value = f(k);
        k += 1;
    }
    all
}

macro_rules! lanewise {
    ($($name:ident $method:ident $op:tt),*) => {$(
        impl<S: Scalar, const N: usize> $name for Lanes<S, N> {
            type Output = Self;

            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                Lanes(each(|k| self.0[k] $op other.0[k]))
            }
        }
    )*};
}

lanewise!(Add add +, Sub sub -, Mul mul *, Div div /);

impl<S: Scalar, const N: usize> Neg for Lanes<S, N> {
    type Output = Self;

    #[inline(always)]
    fn neg(self) -> Self {
        Lanes(each(|k| -self.0[k]))
    }
}

/// What has a value in each lane: lanes, or a number that is the same in all.
pub trait Lane<S> {
    /// The value in one lane; zero where there is no such lane.
    fn lane(&self, k: usize) -> S;
}

impl<S: Scalar> Lane<S> for S {
    #[inline(always)]
    fn lane(&self, _: usize) -> S {
        *self
    }
}

impl<S: Scalar, const N: usize> Lane<S> for Lanes<S, N> {
    #[inline(always)]
    fn lane(&self, k: usize) -> S {
        self.0.get(k).copied().unwrap_or(S::ZERO)
    }
}

/// a b + c, fused where the target has the instruction.
#[inline(always)]
pub fn mul_add<S: Scalar, const N: usize>(a: Lanes<S, N>, b: Lanes<S, N>, c: Lanes<S, N>) -> Lanes<S, N> {
    Lanes(each(|k| math::mul_add(a.0[k], b.0[k], c.0[k])))
}

/// Sines and cosines.
#[inline(always)]
pub fn sin_cos<S: Scalar, const N: usize>(
    a: Lanes<S, N>,
    f: impl Fn(S) -> (S, S),
) -> (Lanes<S, N>, Lanes<S, N>) {
    let (mut sines, mut cosines) = (a, a);
    for k in 0..N {
        (sines.0[k], cosines.0[k]) = f(a.0[k]);
    }
    (sines, cosines)
}

/// f(a), lane by lane.
#[inline(always)]
pub fn unary<S: Scalar, const N: usize>(a: Lanes<S, N>, f: impl Fn(S) -> S) -> Lanes<S, N> {
    Lanes(each(|k| f(a.0[k])))
}

/// f(a, b), lane by lane.
#[inline(always)]
pub fn binary<S: Scalar, const N: usize>(
    a: Lanes<S, N>,
    b: Lanes<S, N>,
    f: impl Fn(S, S) -> S,
) -> Lanes<S, N> {
    Lanes(each(|k| f(a.0[k], b.0[k])))
}

/// x or y by how a and b compare, lane by lane.
#[inline(always)]
pub fn select<S: Scalar, const N: usize>(
    a: Lanes<S, N>,
    b: Lanes<S, N>,
    x: Lanes<S, N>,
    y: Lanes<S, N>,
    choose: impl Fn(S, S, S, S) -> S,
) -> Lanes<S, N> {
    Lanes(each(|k| choose(a.0[k], b.0[k], x.0[k], y.0[k])))
}

/// `run[index]`, lane by lane, see [`math::gather`].
#[inline(always)]
pub fn gather<S: Scalar, const N: usize, R: Lane<S>>(run: &[R], index: Lanes<S, N>) -> Lanes<S, N> {
    Lanes(each(|k| {
        let index = (index.0[k].real() as usize).min(run.len().saturating_sub(1));
        run.get(index).map_or(S::ZERO, |value| value.lane(k))
    }))
}

/// The interval of x among knots, lane by lane, see [`math::locate`].
#[inline(always)]
pub fn locate<S: Scalar, const N: usize, R: Lane<S>>(knots: &[R], x: Lanes<S, N>) -> Lanes<S, N> {
    let inner = knots.get(1..knots.len().saturating_sub(1)).unwrap_or(&[]);
    Lanes(each(|k| {
        let x = x.0[k].real();
        S::from_f64(inner.partition_point(|knot| knot.lane(k).real() <= x) as f64)
    }))
}

/// For which samples all pivots are positive.
pub fn positive<S: Scalar, const N: usize>(pivots: &[Lanes<S, N>]) -> [bool; N] {
    each(|k| pivots.iter().all(|pivot| pivot.0[k].real() > 0.0 && pivot.0[k].is_finite()))
}

/// For which samples no pivot is zero.
pub fn regular<S: Scalar, const N: usize>(pivots: &[Lanes<S, N>]) -> [bool; N] {
    each(|k| pivots.iter().all(|pivot| pivot.0[k] != S::ZERO && pivot.0[k].is_finite()))
}
