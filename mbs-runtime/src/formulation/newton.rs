//! Newton's method for one implicit step: r = 0 beside one equation g_k = 0 a constraint row.
//!
//! Input: a predicted instant, and what the formulation makes of the constraint rows. Output: z, zd, zdd, a, λ at which
//! both hold.
//!
//! ```text
//! [ W    Φ_zᵀ  Aᵀ ] [δ ]   [−r ]        zdd += δ   zd += γh δ   z += βh² δ   λ += dλ
//! [ Φ_z  −E       ] [dλ] = [−g ]
//! [ A'        −E' ] [dμ]   [−g']
//! ```
//!
//! | symbol | meaning | unit |
//! |---|---|---|
//! | g | the row's equation, divided so that its derivative by δ is Φ_z, or A' | as Φ_z zdd |
//! | c_j | natural scale of coordinate j: the model's length, or one for angles | coordinate |
//! | ‖z‖ | largest \|z_j\|/c_j: positions, velocities and accelerations are measured in units of the coordinates | |
//! | n_k | largest entry of row k of Φ_z or A, times c_j | |
//! | V | max(‖zd‖, h ‖zdd‖) at the prediction | velocity |
//! | Z | max(1, ‖z‖) at the prediction | displacement |
//! | θ | max(tolerance h V, 8 ε Z) | displacement |
//! | e | βh² ‖δ‖, the correction | displacement |
//! | c | e over that of the iteration before: the contraction | |
//!
//! # When it has converged
//!
//! When e ≤ θ, or e ≤ θ (1 − c) with a tangent that is not the iterate's; and βh² E_k \|dλ_k\| ≤ θ n_k for every row.
//!
//! The row's equation says g + Φ_z δ = E dλ: the second condition is what the correction leaves of the constraint, and also
//! what is left of the multipliers' error, as a displacement, since (S + E) dλ = S × (error before) makes the error after
//! (E/S) dλ. It is dλ divided by 1 − contraction, times the contraction, without having to measure it. Where E is not small
//! against S, as with a small given penalty, it is what counts. What a change of multipliers does to positions is in e.
//! Multipliers are not compared by themselves: with redundant constraints a part of dλ is the rounding of Φ divided by E,
//! does nothing, and does not shrink. For the same reason a row among such constraints may have the rounding of the others,
//! 8 ε Z n with the largest n: its entries can be a small difference of theirs (a component of a cross product), and what rounding
//! puts into Φ there is beyond the reach of any correction.
//!
//! θ stops where rounding does: coordinates of size Z are known to ε Z, and each of the sums in r and Φ adds a few ε more.
//! Corrections can stop shrinking before that, for two reasons. An evaluation can lose further digits, with a mechanism far from
//! the origin for instance. And near a singular position rounding of Φ is amplified: where σ is the smallest eigenvalue
//! of Φ_z M⁻¹ Φ_zᵀ, relative to S, it moves positions by √σ/(σ + E), which is at most 1/(2√E). With an exact tangent, corrections
//! that do not shrink any more are therefore taken for convergence below 4096 ε Z (twelve bits lost) or 8 ε Z/(2√E), if the
//! constraints hold to 4096 ε Z and the penalty is not what slows the iteration. In the second case the forces of the multipliers'
//! corrections, Φ_zᵀ dλ, must be as small a part of n dλ as the correction is larger than 4096 ε Z; and rows whose
//! entries vanish in the singular position are measured by what they were at the start.
//!
//! Closer to a singular position than √E, the multipliers that keep a mechanism together are large and each iteration finds the
//! part σ/(σ + E) of them. So E becomes smaller where corrections do not shrink, if rows are independent elsewhere: not
//! before, since a smaller E amplifies more.
//!
//! A tangent of a step before has no contraction that is known before the second correction: the first is never the last then.

use super::state::Moving;
use crate::constrained::{Constrained, Motion, Pattern};
use crate::error::{EvalError, StepError};
use crate::inputs::{Held, Inputs};
use crate::integrator::{Formulas, Kinematics, StepStatistics};
use crate::linear::blocks::{Blocks, BlocksMut, holonomic_rows, row};
use crate::linear::{Leading, add_scaled, all_finite, copy, largest, leading};
use crate::pieces::{Pieces, cut, cut_mut};
use crate::scalar::{Scalar, sqrt};
use crate::system::{Dims, Quantity};

/// Which tangent Newton's method uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tangent {
    /// That of each iterate.
    Exact,
    /// That of the first iterate; a new one, at the same iterate, where a correction has not shrunk enough. A tangent costs as much as many residuals, and
    /// that of the prediction is off by the order of the step only. Numbers with an imaginary part get exact ones.
    #[default]
    Reused,
    /// That of a step before, with the same step size and not older than [`Tangent::MOST_STEPS`] steps; otherwise as [`Tangent::Reused`]. It is part
    /// of the [`State`](super::State), so that a step still depends on the state alone; of systems whose [`Dims::n_carried`] is zero there is none.
    /// It decides how fast the iteration converges, not where to, and never enters a derivative.
    Carried,
}

impl Tangent {
    /// Steps for which a tangent is carried.
    pub const MOST_STEPS: usize = 50;
}

/// A step with a tangent of a step before that takes more iterations than this hands nothing on: the next makes its own.
const PATIENCE: usize = 4;

/// A correction that has shrunk by less than this is not taken from an old tangent.
const POOR: f64 = 0.1;
/// Corrections that shrink by less than this do not shrink any more.
const STAGNANT: f64 = 0.5;
/// Rounding of an evaluation, in units of ε Z.
const ROUNDING: f64 = 8.0;
/// Rounding of an evaluation that loses twelve bits.
const BAD_ROUNDING: f64 = 4096.0;
/// Where corrections do not shrink E does, by this factor, to this part of S in units of ε: 1e−13 in double precision.
const HARDER: f64 = 1e-2;
const LEAST_COMPLIANCE: f64 = 450.0;
/// A penalty that leaves more than this part of an error in one iteration is slow.
const SLOW: f64 = 0.1;

/// Settings of the iteration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Iteration {
    pub(crate) tolerance: f64,
    pub(crate) max_iterations: usize,
    pub(crate) tangent: Tangent,
    /// Whether g is Φ/(βh²) and Ψ/(γh), which parts of steps that are fused assume.
    pub(crate) fusible: bool,
}

/// What the diagonal E means for the rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Border<'a, S> {
    /// The largest part of a multiplier's error that E leaves.
    pub(crate) left: f64,
    /// E is the rows' true compliance, and leaves nothing.
    pub(crate) exact: bool,
    /// E may be made smaller.
    pub(crate) reducible: bool,
    /// Rows depend on each other.
    pub(crate) redundant: bool,
    /// S of the rows at the start.
    pub(crate) scale: &'a [S],
}

/// A step under way, in the scratch.
pub(crate) struct Step<'a, M: Constrained> {
    pub(crate) system: &'a M,
    pub(crate) formulas: Formulas<M::S>,
    /// Time at the start.
    pub(crate) t: M::S,
    /// Time at the end.
    pub(crate) t_next: M::S,
    /// Inputs at the end.
    pub(crate) u: &'a [M::S],
    pub(crate) next: Kinematics<'a, M::S>,
    pub(crate) lambda: &'a mut [M::S],
    /// σ and κ, where objectives read them.
    pub(crate) projections: &'a mut [M::S],
    pub(crate) leading: Leading<'a, M>,
    /// Unknowns.
    pub(crate) x: &'a mut [M::S],
    pub(crate) r: &'a mut [M::S],
    pub(crate) phi: &'a mut [M::S],
    /// n_k
    pub(crate) sizes: &'a mut [M::S],
    pub(crate) w: &'a mut [M::S],
    /// Activity of the rows, if some are not.
    pub(crate) active: Option<&'a [M::S]>,
    /// The tangent to hand on, of [`Dims::n_carried`] values: age and size of the step, and the rest if it is new.
    pub(crate) kept: &'a mut [M::S],
    /// Whether it is new.
    renewed: bool,
    /// V
    pub(crate) speed: f64,
    /// Z
    pub(crate) size: f64,
    pub(crate) statistics: StepStatistics,
}

/// Length of the scratch of a step, with its inputs.
#[inline(always)]
pub(crate) const fn scratch_len(dims: &Dims) -> usize {
    let own = 6 * dims.nq + 4 * dims.rows() + 2 * dims.n_projected;
    3 * dims.nu + own + leading::scratch_len(dims) + dims.n_carried + dims.workspace
}

/// The instant of a step's end; a macro, since it borrows some fields only.
macro_rules! instant {
    ($step:expr) => {
        Motion { t: $step.t_next, z: $step.next.z, zd: $step.next.zd, zdd: $step.next.zdd, u: $step.u }
    };
}
pub(crate) use instant;

impl<'a, M: Constrained> Step<'a, M> {
    /// Takes the rest of its memory from `pieces`, samples the inputs, and predicts from the state `moving`.
    #[inline(always)]
    pub(crate) fn begin<I: Inputs<M::S>>(
        system: &'a M,
        leading: Leading<'a, M>,
        formulas: Formulas<M::S>,
        moving: &Moving<'_, M::S>,
        active: Option<&'a [M::S]>,
        inputs: &'a mut Held<'_, M::S, I>,
        pieces: &mut Pieces<'a, M::S>,
    ) -> Result<Self, StepError> {
        let dims = system.dims();
        let (nq, rows) = (dims.nq, dims.rows());
        let (t, t_next) = (*moving.t, *moving.t + formulas.h);
        inputs.begin_step(t, t_next);
        let mut step = Self {
            system,
            formulas,
            t,
            t_next,
            u: inputs.during_step(t_next, M::S::ONE),
            next: Kinematics {
                z: pieces.next(nq)?,
                zd: pieces.next(nq)?,
                zdd: pieces.next(nq)?,
                a: pieces.next(nq)?,
            },
            lambda: pieces.next(rows)?,
            projections: pieces.next(2 * dims.n_projected)?,
            leading,
            x: pieces.next(nq + rows)?,
            r: pieces.next(nq)?,
            phi: pieces.next(rows)?,
            sizes: pieces.next(rows)?,
            kept: pieces.next(dims.n_carried)?,
            renewed: false,
            w: pieces.next(dims.workspace)?,
            active,
            speed: 0.0,
            size: 1.0,
            statistics: StepStatistics::default(),
        };
        if let ([age, h, rest @ ..], [kept_age, kept_h, ..]) = (&*moving.tangent, &mut *step.kept) {
            (*kept_age, *kept_h) = (*age, *h);
            // To where it is used. If it is not, others write over it.
            if let (Some((sizes, factors)), true) = (rest.split_at_checked(rows), *age != M::S::ZERO) {
                copy(step.sizes, sizes);
                copy(step.leading.factors, factors);
                // zdd and λ at the start of the step before: what they changed by, to where corrections stand.
                let (_, before) = factors.split_at_checked(dims.n_factors).unwrap_or_default();
                let now = moving.now.zdd.iter().chain(&*moving.lambda);
                for (x, (&now, &before)) in step.x.iter_mut().zip(now.zip(before)) {
                    *x = now - before;
                }
            }
        }
        // zdd_next = zdd, λ_next = λ; a row that is not active has no multiplier.
        formulas.predict(&moving.now, &mut step.next);
        copy(step.lambda, moving.lambda);
        if let Some(active) = active {
            zero_inactive_rows(active, step.lambda);
        }
        Ok(step)
    }

    /// λ and, where objectives read them, σ and κ.
    #[inline(always)]
    pub(crate) fn write_multipliers(&self, to: &mut [M::S]) {
        copy(to, self.lambda);
        if let Some(to) = to.get_mut(self.lambda.len()..) {
            copy(to, self.projections);
        }
    }

    /// Gives the step to the state.
    #[inline(always)]
    pub(crate) fn finish(mut self, moving: &mut Moving<'_, M::S>) -> Result<StepStatistics, StepError> {
        let Kinematics { z, zd, zdd, a } = &mut self.next;
        if ![&**z, zd, zdd, self.lambda].into_iter().all(all_finite) {
            let error = not_finite(&self.system.dims(), [z, zd, zdd], self.lambda);
            return Err(self.failure().of(error));
        }
        if !self.formulas.keeps_acceleration {
            copy(a, zdd);
        }
        if let [age, ..] = &*self.kept {
            let dims = self.system.dims();
            let numbers = 2 + dims.rows() + dims.n_factors;
            let changed = if self.renewed { numbers } else { 2 };
            let carried = *age != M::S::ZERO;
            if let (Some(to), Some(from)) = (moving.tangent.get_mut(..changed), self.kept.get(..changed)) {
                copy(to, from);
            }
            if let (Some(before), true) = (moving.tangent.get_mut(numbers..), carried) {
                let now = moving.now.zdd.iter().chain(&*moving.lambda);
                before.iter_mut().zip(now).for_each(|(before, now)| *before = *now);
            }
        }
        copy(moving.now.z, z);
        copy(moving.now.zd, zd);
        copy(moving.now.zdd, zdd);
        copy(moving.now.a, a);
        self.write_multipliers(moving.lambda);
        *moving.t = self.t_next;
        self.statistics.fallbacks = self.leading.fallbacks;
        Ok(self.statistics)
    }
}

/// When a step fails, and how large it is.
#[derive(Clone, Copy)]
pub(crate) struct Failure {
    pub(crate) t: f64,
    pub(crate) h: f64,
}

impl Failure {
    /// The error of the step in which `error` happened.
    #[cold]
    #[cfg_attr(feature = "small", inline(never))]
    pub(crate) fn of(self, error: EvalError) -> StepError {
        error.in_step(self.t, self.h)
    }
}

#[cold]
fn not_finite<S: Scalar>(dims: &Dims, motion: [&[S]; 3], lambda: &[S]) -> EvalError {
    let bad = |values: &[S]| values.iter().position(|value| !value.is_finite());
    let (quantity, index) = match motion.into_iter().find_map(bad) {
        Some(index) => (Quantity::Coordinate, index),
        None => row(dims, bad(lambda).unwrap_or(0)),
    };
    EvalError::NotFinite { quantity, index }
}

impl<M: Constrained> Step<'_, M> {
    /// The diagonal E of the leading matrix.
    #[inline(always)]
    pub(crate) fn compliance(&mut self) -> Result<&mut [M::S], StepError> {
        let failure = self.failure();
        let blocks = BlocksMut::of(&self.system.dims(), &self.system.pattern(), self.leading.matrix);
        Ok(blocks.map_err(|error| failure.of(error))?.compliance)
    }

    #[inline(always)]
    pub(crate) fn failure(&self) -> Failure {
        Failure { t: self.t.real(), h: self.formulas.h.real() }
    }

    /// V and Z of the prediction.
    #[inline(always)]
    pub(crate) fn measure(&mut self) {
        let h = self.formulas.h.real().abs();
        let units = self.system.units();
        self.speed = units.largest(self.next.zd).max(h * units.largest(self.next.zdd));
        self.size = units.largest(self.next.z).max(1.0);
    }

    /// Iterates. The diagonal E of the leading matrix has been written; `rows` turns the values (Φ, Ψ) into g.
    #[inline(always)]
    pub(crate) fn iterate(
        &mut self,
        settings: &Iteration,
        border: Border<'_, M::S>,
        mut rows: impl FnMut(&M, Motion<'_, M::S>, &[M::S], &mut [M::S], &mut [M::S]) -> Result<(), EvalError>,
    ) -> Result<(), StepError> {
        let Border { mut left, exact, reducible, redundant, scale } = border;
        let border_left = left;
        self.measure();
        let failure = self.failure();
        let fail = |error| failure.of(error);
        let (dims, pattern, units) = (self.system.dims(), self.system.pattern(), self.system.units());
        let h = self.formulas.h.real().abs();
        let position = self.formulas.weights.position.real();
        let rounding = M::S::EPSILON * self.size;
        let threshold = (settings.tolerance * h * self.speed).max(ROUNDING * rounding);

        let fusible = settings.fusible && self.active.is_none() && self.system.fuses_steps();
        // A tangent of a step before: of its matrix nothing is left but factors and sizes of rows.
        let age = self.take_tangent(settings.tangent == Tangent::Carried && self.active.is_none());
        let mut old = age > 0.0;
        if old {
            self.extrapolate().map_err(fail)?;
        }
        let (mut reuse, mut dense) = (old, false);
        let mut previous = f64::INFINITY;
        for iteration in 1..=settings.max_iterations {
            self.statistics.iterations = iteration;
            let (increment, contraction) = loop {
                let sized = iteration == 1 || old;
                let solved = fusible && !dense && self.evaluate_fused(reuse, sized).map_err(fail)?;
                if !solved {
                    self.evaluate(reuse, dense, sized).map_err(fail)?;
                }
                old &= reuse;
                rows(self.system, instant!(self), self.lambda, self.w, self.phi).map_err(fail)?;
                if let Some(active) = self.active {
                    zero_inactive_rows(active, self.phi);
                }
                if !solved {
                    // x = (−r, −g)
                    let right_hand_side = self.r.iter().chain(self.phi.iter());
                    for (x, &value) in self.x.iter_mut().zip(right_hand_side) {
                        *x = -value;
                    }
                    if old {
                        let solved = self.system.solve(self.leading.factors, self.w, self.x);
                        if solved.is_err() || !all_finite(self.x) {
                            reuse = false;
                            continue;
                        }
                    } else {
                        self.leading.solve(self.w, self.x).map_err(fail)?;
                    }
                }
                let (delta, _) = cut("x", self.x, dims.nq).map_err(fail)?;
                let increment = position * units.largest(delta);
                let contraction = increment / previous;
                // A correction by an old tangent is taken if it is small, or from a better one.
                if !reuse || contraction <= POOR || increment <= threshold * (1.0 - contraction) {
                    break (increment, contraction);
                }
                reuse = false;
            };
            self.statistics.increment = increment;

            let (delta, dlambda) = cut("x", self.x, dims.nq).map_err(fail)?;
            self.formulas.correct(delta, &mut self.next);
            for (lambda, &d) in self.lambda.iter_mut().zip(dlambda) {
                *lambda += d;
            }

            let converged = |allowed: f64, matrix: &[M::S], sizes: &[M::S]| {
                if exact {
                    return Ok(true);
                }
                let least = if redundant { ROUNDING * rounding * units.largest_row(sizes) } else { 0.0 };
                let rows = Blocks::of(&dims, &pattern, matrix)?.compliance.iter().zip(dlambda).zip(sizes);
                Ok(rows.enumerate().fold(true, |converged, (k, ((e, d), n))| {
                    let allowed = (allowed * size_of(*n)).max(least * units.row(k));
                    converged & (position * e.real() * d.real().abs() <= allowed)
                }))
            };
            // Where the tangent is exact, what remains is quadratic in the correction.
            let remains = if reuse { 1.0 - contraction } else { 1.0 };
            let judged = !(old && iteration == 1);
            if judged
                && increment <= threshold * remains
                && converged(threshold, self.leading.matrix, self.sizes).map_err(fail)?
            {
                if settings.tangent == Tangent::Carried {
                    let usual = left == border_left && (!old || iteration <= PATIENCE);
                    self.keep_tangent(usual, if old { age } else { 0.0 });
                }
                return Ok(());
            }
            let stagnant = contraction > STAGNANT && !reuse && left <= SLOW;
            let correction = increment.max(previous);
            let harder = stagnant
                && reducible
                && left > LEAST_COMPLIANCE * M::S::EPSILON
                && correction > BAD_ROUNDING * rounding;
            if stagnant && !harder && correction <= BAD_ROUNDING.max(0.5 * ROUNDING / sqrt(left)) * rounding {
                sizes_of_start(self.system, self.leading.matrix, scale, self.sizes).map_err(fail)?;
                let (matrix, sizes, force) = (&*self.leading.matrix, &*self.sizes, &mut *self.r);
                let part = effective_fraction(self.system, matrix, dlambda, sizes, force).map_err(fail)?;
                if correction * part <= BAD_ROUNDING * rounding
                    && converged(BAD_ROUNDING * rounding, matrix, sizes).map_err(fail)?
                {
                    return Ok(());
                }
            }
            if harder {
                left *= HARDER;
                for e in BlocksMut::of(&dims, &pattern, self.leading.matrix).map_err(fail)?.compliance {
                    *e *= M::S::from_f64(HARDER);
                }
            }
            dense = dense || (stagnant && iteration > 2);
            reuse = settings.tangent != Tangent::Exact && contraction <= POOR && M::S::REAL;
            previous = increment;
        }
        let limits = (position, threshold);
        Err(not_converged(&dims, failure, self.statistics, limits, self.phi, self.sizes, self.x))
    }

    /// zdd and λ go on as in the step before, of the same size, by what stands in x: the iteration begins nearer to its end, which an old tangent reaches in
    /// small steps only.
    #[inline(always)]
    fn extrapolate(&mut self) -> Result<(), EvalError> {
        let (delta, dlambda) = cut("x", self.x, self.system.dims().nq)?;
        self.formulas.correct(delta, &mut self.next);
        add_scaled(self.lambda, M::S::ONE, dlambda);
        Ok(())
    }

    /// Takes the tangent of a step before, which is in its place, if it is wanted and there is one: its age. The next
    /// step finds none, unless it is kept.
    #[inline(always)]
    fn take_tangent(&mut self, wanted: bool) -> f64 {
        let [age, h, ..] = &mut *self.kept else { return 0.0 };
        let taken = core::mem::replace(age, M::S::ZERO);
        if wanted && M::S::REAL && *h == self.formulas.h { taken.real() } else { 0.0 }
    }

    /// Keeps the tangent in use for the next step, if its elimination has gone well; its age so far is zero if it is this step's.
    #[inline(always)]
    fn keep_tangent(&mut self, usual: bool, before: f64) {
        let rows = self.system.dims().rows();
        let [age, h, rest @ ..] = &mut *self.kept else { return };
        let good = usual && self.active.is_none() && !self.leading.uses_dense();
        if !good || before >= Tangent::MOST_STEPS as f64 {
            return;
        }
        (*age, *h) = (M::S::from_f64(before + 1.0), self.formulas.h);
        if before == 0.0
            && let Some((sizes, factors)) = rest.split_at_mut_checked(rows)
        {
            copy(sizes, self.sizes);
            copy(factors, self.leading.factors);
            self.renewed = true;
        }
    }

    /// x and the rows at the iterate by bundles that do all of it at once; false if their elimination fails, or if the factors in use are
    /// dense.
    #[inline(always)]
    fn evaluate_fused(&mut self, reuse: bool, first: bool) -> Result<bool, EvalError> {
        let (at, weights, system) = (instant!(self), self.formulas.weights, self.system);
        if reuse {
            if self.leading.uses_dense() {
                return Ok(false);
            }
            system.correct_step(at, self.lambda, weights, self.leading.factors, self.w, self.phi, self.x)?;
            return Ok(all_finite(self.x));
        }
        let (dims, pattern) = (system.dims(), system.pattern());
        let entries = self.leading.matrix.len() - dims.rows();
        let (matrix, compliance) = cut_mut("matrix", self.leading.matrix, entries)?;
        let factors = &mut *self.leading.factors;
        let solved = system.newton_step(
            at,
            self.lambda,
            weights,
            compliance,
            self.w,
            self.phi,
            matrix,
            factors,
            self.x,
        );
        if solved.is_err() || !all_finite(self.x) {
            return Ok(false);
        }
        self.statistics.tangents += 1;
        self.leading.use_factors();
        if first {
            let blocks = Blocks::of(&dims, &pattern, self.leading.matrix)?;
            blocks.row_sizes(&dims, &pattern, system.units(), self.sizes)?;
        }
        Ok(true)
    }

    /// r and the rows at the iterate; unless the old one is reused, also the leading matrix and its factors.
    #[inline(always)]
    fn evaluate(&mut self, reuse: bool, dense: bool, first: bool) -> Result<(), EvalError> {
        let at = instant!(self);
        if reuse {
            return self.system.residual(at, self.lambda, self.w, self.r, self.phi);
        }
        self.statistics.tangents += 1;
        let matrix = &mut *self.leading.matrix;
        self.system.newton(at, self.lambda, self.formulas.weights, self.w, self.r, self.phi, matrix)?;
        let (dims, pattern) = (self.system.dims(), self.system.pattern());
        if let Some(active) = self.active {
            BlocksMut::of(&dims, &pattern, matrix)?.mask(&dims, &pattern, active)?;
        }
        if first {
            Blocks::of(&dims, &pattern, matrix)?.row_sizes(
                &dims,
                &pattern,
                self.system.units(),
                self.sizes,
            )?;
        }
        self.leading.factor(self.w, dense)
    }
}

/// Names the worst: the row with the largest g in units of displacement, if it is above the threshold, or else the
/// coordinate with the largest correction.
#[cold]
#[inline(never)]
fn not_converged<S: Scalar>(
    dims: &Dims,
    Failure { t, h }: Failure,
    StepStatistics { iterations, increment, .. }: StepStatistics,
    (position, threshold): (f64, f64),
    g: &[S],
    sizes: &[S],
    x: &[S],
) -> StepError {
    let (mut worst, mut violation) = (None, threshold);
    for (k, (g, n)) in g.iter().zip(sizes).enumerate() {
        let size = position * g.real().abs() / size_of(*n);
        if size > violation {
            (worst, violation) = (Some(row(dims, k)), size);
        }
    }
    let (quantity, index) = worst.unwrap_or_else(|| {
        let delta = x.iter().take(dims.nq).enumerate();
        let most = delta.max_by(|a, b| a.1.real().abs().total_cmp(&b.1.real().abs()));
        (Quantity::Coordinate, most.map_or(0, |(index, _)| index))
    });
    StepError::NotConverged { t, h, iterations, increment, quantity, index }
}

/// Into `sizes`: n_k, but of a row whose scale S_k is now below that of the start what it would be with that.
#[cold]
#[inline(never)]
pub(crate) fn sizes_of_start<M: Constrained>(
    system: &M,
    matrix: &[M::S],
    scale: &[M::S],
    sizes: &mut [M::S],
) -> Result<(), EvalError> {
    let (dims, pattern) = (system.dims(), system.pattern());
    let blocks = Blocks::of(&dims, &pattern, matrix)?;
    blocks.row_sizes(&dims, &pattern, system.units(), sizes)?;
    let (mut holonomic, mut nonholonomic) = (0..holonomic_rows(&dims), holonomic_rows(&dims)..dims.rows());
    let parts = [
        (&mut holonomic, pattern.holonomic, blocks.holonomic),
        (&mut nonholonomic, pattern.nonholonomic, blocks.nonholonomic),
    ];
    for (rows, places, values) in parts {
        for (number, k) in rows.enumerate() {
            // Σ_j Φ_kj²/W_jj
            let entries = places.iter().zip(values).filter(|((row, _), _)| *row as usize == number);
            let now: f64 = entries
                .map(|(&(_, j), value)| value.real() * value.real() / diagonal(&pattern, &blocks, j))
                .filter(|part| part.is_finite())
                .sum();
            let ratio = scale.get(k).map_or(1.0, |scale| scale.real()) / now;
            if let Some(size) = sizes.get_mut(k).filter(|_| ratio > 1.0 && ratio.is_finite()) {
                *size = M::S::from_f64(size.real() * sqrt(ratio));
            }
        }
    }
    Ok(())
}

/// W_jj
fn diagonal<S: Scalar>(pattern: &Pattern<'_>, blocks: &Blocks<'_, S>, j: u32) -> f64 {
    let place = pattern.tangent.binary_search(&(j, j)).ok();
    place.and_then(|place| blocks.tangent.get(place)).map_or(0.0, |w| w.real().abs())
}

/// ‖Φ_zᵀ dλ‖ over the largest n_k |dλ_k|, at most one: small for multipliers that hardly accelerate anything, of a position that is nearly
/// singular. `force`: for nq values.
#[cold]
#[inline(never)]
fn effective_fraction<M: Constrained>(
    system: &M,
    matrix: &[M::S],
    dlambda: &[M::S],
    sizes: &[M::S],
    force: &mut [M::S],
) -> Result<f64, EvalError> {
    let (dims, pattern) = (system.dims(), system.pattern());
    force.fill(M::S::ZERO);
    Blocks::of(&dims, &pattern, matrix)?.add_rows_transposed_times(&dims, &pattern, dlambda, force)?;
    let rows = dlambda.iter().zip(sizes).map(|(d, n)| d.real().abs() * size_of(*n));
    let most = rows.fold(0.0, |most: f64, row| if row > most { row } else { most });
    for (j, force) in force.iter_mut().enumerate() {
        *force *= M::S::from_f64(system.units().coordinate(j));
    }
    let part = largest(force) / most;
    // Not a number where nothing acts.
    Ok(if part < 1.0 { part } else { 1.0 })
}

/// n_k; one for a row without entries.
#[inline(always)]
pub(crate) fn size_of<S: Scalar>(n: S) -> f64 {
    if n.real() > 0.0 { n.real() } else { 1.0 }
}

/// Zero for rows that are not active.
pub(crate) fn zero_inactive_rows<S: Scalar>(active: &[S], values: &mut [S]) {
    for (value, active) in values.iter_mut().zip(active) {
        if *active == S::ZERO {
            *value = S::ZERO;
        }
    }
}
