//! Newmark's formulas and generalized-alpha as the trapezoidal rule of weighted rates, for systems in joint form.
//!
//! | symbol | meaning |
//! |---|---|
//! | β, γ, am, af | coefficients of [`Implicit`](super::Implicit); b = β/γ |
//! | a, c = a − vd | the algorithmic acceleration, and by how much it exceeds the acceleration: carried after the state, zero at first |
//! | k, l | weighted rates at both ends of a step |
//!
//! With a_next from the formula of velocities put into that of positions, zd for v where coordinates are not integrals of velocities, and
//! zdd = N (vd + c) + Nd v,
//!
//! ```text
//! z_next = z + h ((1 − b) zd + b zd_next) + (1/2 − b) h² zdd
//! v_next = v + h (w₀ vd + w vd_next + w_c c)        w = γ (1 − af)/(1 − am),  w₀ = 1 − w,  w_c = 1 − γ − γ am/(1 − am)
//! c_next = e (vd − vd_next) − d c                   e = (af − am)/(1 − am),   d = am/(1 − am)
//! ```
//!
//! and this is y_next = y + h/2 (k + l) of y = (z, v, c) with
//!
//! ```text
//! k_z = 2 (1 − b) zd + (1 − 2b) h zdd        k_v = 2 w₀ vd + 2 w_c c        k_c = 2/h (e vd − (1 + d) c)
//! l_z = 2b zd_next                           l_v = 2 w vd_next              l_c = −2/h e vd_next
//! ```
//!
//! so that drivers, derivatives and adjoints of Runge–Kutta methods serve. All velocities have a c, those that follow from constraints, too:
//! another choice of independent coordinates finds what it needs. Events leave c as it is: it is of order h, and so of order h² in a step.

use super::Implicit;
use crate::error::EvalError;
use crate::euler_parameters::{
    add_rates, add_rates_to_velocities, add_turns, add_turns_change, add_turns_transposed,
};
use crate::linear::add_scaled;
use crate::scalar::Scalar;
use crate::system::System;

/// The weights of a step of size h.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weights<S> {
    /// 2 (1 − b), 2 w₀, 2 w_c of the first rate.
    first: [S; 3],
    /// 2b, 2w of the last.
    last: [S; 2],
    /// (1 − 2b) h
    second: S,
    /// 2/h e, 2/h (1 + d)
    excess: [S; 2],
    h: S,
}

impl Implicit {
    /// Whether it carries an algorithmic acceleration from step to step.
    pub(crate) const fn carries(&self) -> bool {
        matches!(self, Self::GeneralizedAlpha { .. })
    }

    /// Its weights in a step of size `h`; none for the trapezoidal rule, whose rates are their own.
    #[inline(always)]
    pub(crate) fn weights<S: Scalar>(&self, h: S) -> Option<Weights<S>> {
        if *self == Self::TRAPEZOIDAL {
            return None;
        }
        let [beta, gamma, am, af] = self.coefficients();
        let (b, w) = (beta / gamma, gamma * (1.0 - af) / (1.0 - am));
        let (w_c, e, d) = (1.0 - gamma - gamma * am / (1.0 - am), (af - am) / (1.0 - am), am / (1.0 - am));
        let number = S::from_f64;
        // A step of no size leaves c as it is.
        let rate = if h == S::ZERO { S::ZERO } else { number(2.0) / h };
        Some(Weights {
            first: [2.0 * (1.0 - b), 2.0 * (1.0 - w), 2.0 * w_c].map(number),
            last: [2.0 * b, 2.0 * w].map(number),
            second: number(1.0 - 2.0 * b) * h,
            excess: [rate * number(e), rate * number(1.0 + d)],
            h,
        })
    }
}

/// Parts of y, or of its weighted rate: z, v, c, of one column or of several.
pub(crate) struct Three<'a, S> {
    pub(crate) z: &'a mut [S],
    pub(crate) v: &'a mut [S],
    pub(crate) c: &'a mut [S],
}

impl<S: Scalar> Weights<S> {
    /// α of coordinates and of velocities in the last stage.
    #[inline(always)]
    pub(crate) fn alphas(&self, alpha: S) -> [S; 2] {
        self.last.map(|weight| weight * alpha)
    }

    /// Makes the rate at the state z, v, c the weighted one of the first stage; writes (1 − 2b) h zdd to `second`.
    pub(crate) fn first<M: System<S = S>>(
        &self,
        system: &M,
        [z, v, c]: [&[S]; 3],
        rate: Three<'_, S>,
        second: &mut [S],
    ) -> Result<(), EvalError> {
        self.second(system, [z, v, rate.v, c], second)?;
        self.combine(c, rate, second);
        Ok(())
    }

    /// (1 − 2b) h zdd of z, v, vd, c.
    pub(crate) fn second<M: System<S = S>>(
        &self,
        system: &M,
        [z, v, vd, c]: [&[S]; 4],
        to: &mut [S],
    ) -> Result<(), EvalError> {
        to.fill(S::ZERO);
        if self.second != S::ZERO {
            add_turns(system, z, v, vd, self.second, to)?;
            if !c.is_empty() {
                add_rates(system, z, self.second, 1, c, to)?;
            }
        }
        Ok(())
    }

    /// The same of columns of derivatives, z′, v′, c′ and those of the rate, where `acceleration` is vd. `h_rho`: derivatives of h, or nothing;
    /// `second` is that of the rate; `spare`, of the length of z′, is written over.
    #[allow(clippy::too_many_arguments, reason = "a state, its derivatives and those of its rate")]
    pub(crate) fn first_change<M: System<S = S>>(
        &self,
        system: &M,
        columns: usize,
        [z, v, c, acceleration, second]: [&[S]; 5],
        [z_change, v_change, c_change]: [&[S]; 3],
        rate: Three<'_, S>,
        h_rho: &[S],
        spare: &mut [S],
    ) -> Result<(), EvalError> {
        spare.fill(S::ZERO);
        if self.second != S::ZERO {
            let at = [z, v, acceleration, c];
            let changes = [z_change, v_change, rate.v, c_change];
            add_turns_change(system, columns, at, changes, self.second, spare)?;
            if !h_rho.is_empty() {
                for (&second, row) in second.iter().zip(spare.chunks_exact_mut(columns.max(1))) {
                    add_scaled(row, second / self.h, h_rho);
                }
            }
        }
        self.combine(c_change, rate, spare);
        Ok(())
    }

    /// k from zd, vd, c and (1 − 2b) h zdd; linear, so of derivatives, too.
    #[inline(always)]
    fn combine(&self, c: &[S], rate: Three<'_, S>, second: &[S]) {
        let ([of_zd, of_vd, of_c], [gain, loss]) = (self.first, self.excess);
        for (zd, &second) in rate.z.iter_mut().zip(second) {
            *zd = of_zd * *zd + second;
        }
        for ((to, &vd), &c) in rate.c.iter_mut().zip(rate.v.iter()).zip(c) {
            *to = gain * vd - loss * c;
        }
        for vd in rate.v.iter_mut() {
            *vd *= of_vd;
        }
        for (vd, &c) in rate.v.iter_mut().zip(c) {
            *vd += of_c * c;
        }
    }

    /// Makes a rate the weighted one of the last stage; linear, so of derivatives, too.
    #[inline(always)]
    pub(crate) fn last(&self, rate: Three<'_, S>) {
        let ([of_zd, of_vd], [gain, _]) = (self.last, self.excess);
        for (to, &vd) in rate.c.iter_mut().zip(rate.v.iter()) {
            *to = -(gain * vd);
        }
        for zd in rate.z.iter_mut() {
            *zd *= of_zd;
        }
        for vd in rate.v.iter_mut() {
            *vd *= of_vd;
        }
    }

    /// l_c from l_v, which a stage has found; `resized`: columns of derivatives have the part l_v h′/h, which l_c has not.
    #[inline(always)]
    pub(crate) fn close(&self, columns: usize, l_v: &[S], resized: Option<(&[S], &[S])>, l_c: &mut [S]) {
        let ([_, of_vd], [gain, _]) = (self.last, self.excess);
        let scale = -(gain / of_vd);
        for (to, &l_v) in l_c.iter_mut().zip(l_v) {
            *to = scale * l_v;
        }
        if let Some((values, h_rho)) = resized {
            for (&value, row) in values.iter().zip(l_c.chunks_exact_mut(columns.max(1))) {
                add_scaled(row, -(scale * value / self.h), h_rho);
            }
        }
    }

    /// The transpose of [`Weights::last`]: weights of zd and vd from those of l, in their place.
    pub(crate) fn last_transposed(&self, bar: Three<'_, S>) {
        let ([of_zd, of_vd], [gain, _]) = (self.last, self.excess);
        for z in bar.z.iter_mut() {
            *z *= of_zd;
        }
        for v in bar.v.iter_mut() {
            *v *= of_vd;
        }
        for (v, &c) in bar.v.iter_mut().zip(bar.c.iter()) {
            *v -= gain * c;
        }
    }

    /// The transpose of [`Weights::first_change`]: weights of zd and vd from those of k, in their place, and c̄. What zdd makes of z and v is left to
    /// [`Weights::first_left`]. `spare`, of the length of v̄, is written over.
    pub(crate) fn first_transposed<M: System<S = S>>(
        &self,
        system: &M,
        columns: usize,
        z: &[S],
        bar: Three<'_, S>,
        c_bar: &mut [S],
        spare: &mut [S],
    ) -> Result<(), EvalError> {
        let ([of_zd, of_vd, of_c], [gain, loss]) = (self.first, self.excess);
        spare.fill(S::ZERO);
        if self.second != S::ZERO {
            add_rates_to_velocities(system, z, self.second, columns, bar.z, spare)?;
        }
        for (to, ((&v, &c), &turned)) in
            c_bar.iter_mut().zip(bar.v.iter().zip(bar.c.iter()).zip(spare.iter()))
        {
            *to = of_c * v + turned - loss * c;
        }
        for z in bar.z.iter_mut() {
            *z *= of_zd;
        }
        for (v, &turned) in bar.v.iter_mut().zip(spare.iter()) {
            *v = of_vd * *v + turned;
        }
        for (v, &c) in bar.v.iter_mut().zip(bar.c.iter()) {
            *v += gain * c;
        }
        Ok(())
    }

    /// Adds to weights of z and v what zdd makes of them; `at`: z, v, vd, c; `k_z`: weights of k_z.
    #[allow(clippy::too_many_arguments, reason = "a state and weights")]
    pub(crate) fn first_left<M: System<S = S>>(
        &self,
        system: &M,
        columns: usize,
        at: [&[S]; 4],
        k_z: &[S],
        z_bar: &mut [S],
        v_bar: &mut [S],
    ) -> Result<(), EvalError> {
        if self.second == S::ZERO {
            return Ok(());
        }
        add_turns_transposed(system, columns, at, self.second, k_z, z_bar, v_bar)
    }
}
