//! The right-hand side f(t, y) of a system under its held inputs, and the scratch it works in.

use core::ops::Range;

use super::{Implicit, StepWeights, Three, renormalise};
use crate::error::{EvalError, StepError};
use crate::inputs::{Held, Inputs, Stop};
use crate::linear::all_finite;
use crate::pieces::{Pieces, cut, cut_mut};
use crate::scalar::Scalar;
use crate::system::{At, Dims, ForwardDynamics, Quantity};

/// What an explicit method steps: rates of a state, and what ends a step.
pub(crate) trait Rates {
    /// Its scalar.
    type S: Scalar;

    /// Samples what is held over the step from `t0` to `t1`.
    fn begin_step(&mut self, t0: Self::S, t1: Self::S);

    /// The formulas of the system.
    fn newmark(&self) -> Implicit;

    /// Weighs the rates of the step that begins by these, see `weighted`.
    fn weigh_step(&mut self, h: Self::S);

    /// Looks at the state from which a step is made, before its first stage.
    fn prepare_step(&mut self, t: Self::S, y: &[Self::S]) -> Result<(), EvalError>;

    /// yd = f(t, y) at the part `c` of the step; finite, or an error.
    fn rate(&mut self, t: Self::S, c: f64, y: &[Self::S], yd: &mut [Self::S]) -> Result<(), EvalError>;

    /// The same where an implicit stage iterates: at least that of z and v.
    #[inline(always)]
    fn state_rate(&mut self, t: Self::S, c: f64, y: &[Self::S], yd: &mut [Self::S]) -> Result<(), EvalError> {
        self.rate(t, c, y, yd)
    }

    /// Prepares [`Rates::solve`] at a state whose rate was evaluated last.
    fn linearise(&mut self, t: Self::S, c: f64, y: &[Self::S], alpha: Self::S) -> Result<(), EvalError>;

    /// r = (1 − α f_y)⁻¹ r for the entries of z and v, where the rate was evaluated last. Where a state is completed, f is that of the completed one.
    fn solve(
        &mut self,
        t: Self::S,
        c: f64,
        y: &[Self::S],
        alpha: Self::S,
        r: &mut [Self::S],
    ) -> Result<(), EvalError>;

    /// Ends an implicit stage Y = base + α k, whose z and v are found: the rest of Y, and k.
    fn close_stage(
        &mut self,
        t: Self::S,
        c: f64,
        alpha: Self::S,
        base: &[Self::S],
        y: &mut [Self::S],
        k: &mut [Self::S],
    ) -> Result<(), EvalError>;

    /// Largest magnitude of coordinates, in their units; y may be longer.
    fn size(&self, y: &[Self::S]) -> f64;

    /// Ends a step at `t`.
    fn finish(&mut self, t: Self::S, y: &mut [Self::S]) -> Result<(), EvalError>;

    /// Euler parameters of unit norm, between steps.
    fn normalise(&self, y: &mut [Self::S]) -> Result<(), EvalError>;

    /// Sizes of the system; its state comes first in y, and is what step control looks at, the integrals apart.
    fn dims(&self) -> Dims;

    /// Where in y the integrals of the objectives are.
    fn integrals(&self) -> Range<usize>;

    /// The first corner in time after `from` and not after `to`.
    fn next_stop(&mut self, from: f64, to: f64) -> Option<Stop>;

    /// Evaluations so far.
    fn evaluations(&self) -> usize;

    /// Whether inputs may jump where one step ends and the next begins.
    fn jumps_between_steps(&self) -> bool;

    /// Inputs at a node, where the next step begins.
    fn at_node(&mut self, t: Self::S) -> &[Self::S];

    /// Inputs at time `t`, which is the part `c` of the step.
    fn during_step(&mut self, t: Self::S, c: Self::S) -> &[Self::S];
}

/// Scratch of a [`Field`].
#[inline(always)]
pub(crate) const fn scratch_len(dims: &Dims) -> usize {
    3 * dims.nu + dims.workspace + stage_len(dims) + second_len(dims)
}

/// Length of a completed stage, of dynamics that complete.
#[inline(always)]
const fn stage_len(dims: &Dims) -> usize {
    if dims.n_choice > 0 { dims.state() } else { 0 }
}

/// Length of the second rate of coordinates, of dynamics whose rates may be weighted.
#[inline(always)]
const fn second_len(dims: &Dims) -> usize {
    if dims.n_choice > 0 { dims.nq } else { 0 }
}

/// f(t, y).
pub(crate) struct Field<'a, M: ForwardDynamics, I> {
    pub(super) system: &'a M,
    pub(super) dims: Dims,
    pub(super) inputs: Held<'a, M::S, I>,
    /// The stage whose rate was evaluated last, completed.
    stage: &'a mut [M::S],
    second: &'a mut [M::S],
    weights: Option<StepWeights<M::S>>,
    w: &'a mut [M::S],
    evaluations: usize,
}

impl<'a, M: ForwardDynamics, I: Inputs<M::S>> Field<'a, M, I> {
    /// Takes its scratch from `pieces`.
    #[inline(always)]
    pub(crate) fn new(
        system: &'a M,
        inputs: &'a mut I,
        pieces: &mut Pieces<'a, M::S>,
    ) -> Result<Self, StepError> {
        let dims = system.dims();
        let held = [pieces.next(dims.nu)?, pieces.next(dims.nu)?, pieces.next(dims.nu)?];
        let inputs = Held::new(inputs, system.holds(), held);
        let (stage, second) = (pieces.next(stage_len(&dims))?, pieces.next(second_len(&dims))?);
        let w = pieces.next(dims.workspace)?;
        Ok(Self { system, dims, inputs, stage, second, weights: None, w, evaluations: 0 })
    }
}

impl<M: ForwardDynamics, I: Inputs<M::S>> Rates for Field<'_, M, I> {
    type S = M::S;

    #[inline(always)]
    fn begin_step(&mut self, t0: M::S, t1: M::S) {
        self.inputs.begin_step(t0, t1);
        self.weights = None;
    }

    #[inline(always)]
    fn newmark(&self) -> Implicit {
        self.system.newmark()
    }

    #[inline(always)]
    fn weigh_step(&mut self, h: M::S) {
        self.weights = self.system.newmark().weights(h);
    }

    #[inline(always)]
    fn prepare_step(&mut self, t: M::S, y: &[M::S]) -> Result<(), EvalError> {
        if !self.system.completes() {
            return Ok(());
        }
        let (y, _) = cut("y", y, self.dims.state())?;
        let at = At::of_state(&self.dims, t, y, self.inputs.at_node(t))?;
        self.system.prepare_step(at, self.w)
    }

    #[inline(always)]
    fn rate(&mut self, t: M::S, c: f64, y: &[M::S], yd: &mut [M::S]) -> Result<(), EvalError> {
        let u = self.inputs.during_step(t, M::S::from_f64(c));
        let (mut y, excess) = cut("y", y, self.dims.state())?;
        if self.system.completes() {
            super::copy(self.stage, y);
            complete(self.system, &self.dims, t, u, self.w, self.stage)?;
            y = self.stage;
        }
        let at = At::of_state(&self.dims, t, y, u)?;
        let wrong = EvalError::Length { what: "yd", expected: self.dims.state(), found: yd.len() };
        let (zd, rest) = yd.split_at_mut_checked(self.dims.nq).ok_or(wrong)?;
        let (vd, rest) = rest.split_at_mut_checked(self.dims.nv).ok_or(wrong)?;
        let (xd, excess_rate) = rest.split_at_mut_checked(self.dims.nx).ok_or(wrong)?;
        self.evaluations += 1;
        self.system.forward_dynamics(at, self.w, zd, vd, xd)?;
        if let Some(weights) = &self.weights {
            let rate = Three { z: zd, v: vd, c: excess_rate };
            match c == 0.0 {
                true => weights.first(self.system, [at.z, at.v, excess], rate, self.second)?,
                false => weights.last(rate),
            }
        }
        check_finite(&self.dims, yd)
    }

    #[inline(always)]
    fn linearise(&mut self, t: M::S, c: f64, y: &[M::S], alpha: M::S) -> Result<(), EvalError> {
        let u = self.inputs.during_step(t, M::S::from_f64(c));
        let y = if self.system.completes() { &*self.stage } else { cut("y", y, self.dims.state())?.0 };
        let alpha = alphas(&self.weights, alpha);
        self.system.linearise_stage(At::of_state(&self.dims, t, y, u)?, alpha, self.w)
    }

    #[inline(always)]
    fn solve(&mut self, t: M::S, c: f64, y: &[M::S], alpha: M::S, r: &mut [M::S]) -> Result<(), EvalError> {
        let u = self.inputs.during_step(t, M::S::from_f64(c));
        let (z, rest) = cut_mut("r", r, self.dims.nq)?;
        let (v, _) = cut_mut("r", rest, self.dims.nv)?;
        let y = if self.system.completes() { &*self.stage } else { cut("y", y, self.dims.state())?.0 };
        let alpha = alphas(&self.weights, alpha);
        self.system.solve_stage(At::of_state(&self.dims, t, y, u)?, alpha, self.w, z, v)
    }

    #[inline(always)]
    fn close_stage(
        &mut self,
        t: M::S,
        c: f64,
        alpha: M::S,
        base: &[M::S],
        y: &mut [M::S],
        k: &mut [M::S],
    ) -> Result<(), EvalError> {
        if self.dims.nx > 0 {
            self.rate(t, c, y, k)?;
        }
        rates_of_stage(&self.dims, alpha, base, y, k);
        close_weighted(&self.dims, &self.weights, k)
    }

    #[inline(always)]
    fn size(&self, y: &[M::S]) -> f64 {
        self.system.units().largest(y.get(..self.dims.nq).unwrap_or_default())
    }

    /// Euler parameters of unit norm, what the system corrects, and a state that is finite.
    #[inline(always)]
    fn finish(&mut self, t: M::S, y: &mut [M::S]) -> Result<(), EvalError> {
        renormalise(self.system, y);
        if self.system.corrects_steps() {
            let u = self.inputs.during_step(t, M::S::ONE);
            let wrong = EvalError::Length { what: "y", expected: self.dims.state(), found: y.len() };
            let (z, rest) = y.split_at_mut_checked(self.dims.nq).ok_or(wrong)?;
            let (v, rest) = rest.split_at_mut_checked(self.dims.nv).ok_or(wrong)?;
            let (x, _) = rest.split_at_mut_checked(self.dims.nx).ok_or(wrong)?;
            self.system.correct_step(t, u, self.w, z, v, x)?;
        }
        if self.system.completes() {
            let u = self.inputs.during_step(t, M::S::ONE);
            complete(self.system, &self.dims, t, u, self.w, y)?;
        }
        check_finite(&self.dims, y)
    }

    #[inline(always)]
    fn normalise(&self, y: &mut [M::S]) -> Result<(), EvalError> {
        renormalise(self.system, y);
        Ok(())
    }

    #[inline(always)]
    fn dims(&self) -> Dims {
        self.dims
    }

    #[inline(always)]
    fn integrals(&self) -> Range<usize> {
        let end = self.dims.state();
        end.saturating_sub(self.system.integrals())..end
    }

    #[inline(always)]
    fn next_stop(&mut self, from: f64, to: f64) -> Option<Stop> {
        self.inputs.next_stop(from, to)
    }

    #[inline(always)]
    fn evaluations(&self) -> usize {
        self.evaluations
    }

    #[inline(always)]
    fn jumps_between_steps(&self) -> bool {
        self.inputs.jumps_between_steps()
    }

    #[inline(always)]
    fn at_node(&mut self, t: M::S) -> &[M::S] {
        self.inputs.at_node(t)
    }

    #[inline(always)]
    fn during_step(&mut self, t: M::S, c: M::S) -> &[M::S] {
        self.inputs.during_step(t, c)
    }
}

/// k = (Y − base)/α for z and v.
#[inline(always)]
pub(crate) fn rates_of_stage<S: Scalar>(dims: &Dims, alpha: S, base: &[S], y: &[S], k: &mut [S]) {
    for ((k, &y), &base) in k.iter_mut().zip(y).zip(base).take(dims.nq + dims.nv) {
        *k = (y - base) / alpha;
    }
}

/// α of coordinates and of velocities.
#[inline(always)]
pub(crate) fn alphas<S: Scalar>(weights: &Option<StepWeights<S>>, alpha: S) -> [S; 2] {
    weights.map_or([alpha; 2], |weights| weights.alphas(alpha))
}

/// What the rate of a stage that was solved makes of what a method carries.
#[inline(always)]
pub(crate) fn close_weighted<S: Scalar>(
    dims: &Dims,
    weights: &Option<StepWeights<S>>,
    k: &mut [S],
) -> Result<(), EvalError> {
    if let Some(weights) = weights {
        let start = k.len().saturating_sub(dims.n_excess);
        let (rate, excess) = cut_mut("k", k, start)?;
        let (_, l_v) = cut("k", rate, dims.nq)?;
        weights.close(1, cut("k", l_v, dims.nv)?.0, None, excess);
    }
    Ok(())
}

/// Completes the z and v of a state.
#[inline(always)]
fn complete<M: ForwardDynamics>(
    system: &M,
    dims: &Dims,
    t: M::S,
    u: &[M::S],
    w: &mut [M::S],
    y: &mut [M::S],
) -> Result<(), EvalError> {
    let (z, rest) = cut_mut("y", y, dims.nq)?;
    let (v, _) = cut_mut("y", rest, dims.nv)?;
    system.complete(t, u, w, z, v)
}

/// An error that names the first entry of a state, or of its rate, that is not finite.
#[inline(always)]
pub(crate) fn check_finite<S: Scalar>(dims: &Dims, y: &[S]) -> Result<(), EvalError> {
    if all_finite(y) { Ok(()) } else { Err(not_finite(dims, y)) }
}

#[cold]
fn not_finite<S: Scalar>(dims: &Dims, y: &[S]) -> EvalError {
    let (quantity, index) = entry(dims, y.iter().position(|y| !y.is_finite()).unwrap_or(0));
    EvalError::NotFinite { quantity, index }
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

/// The state has the length of the system's.
#[inline(always)]
pub(crate) fn check_state<S>(dims: &Dims, y: &[S]) -> Result<(), StepError> {
    let (expected, found) = (dims.state(), y.len());
    if expected == found { Ok(()) } else { Err(StepError::Length { what: "y", expected, found }) }
}
