//! Implicit integrators in their acceleration form: Newmark's formulas and the generalized-alpha method
//! [Newmark 1959; Chung, Hulbert 1993; Arnold, Brüls 2007; Dopico2018, Eq. 7].
//!
//! Equilibrium holds at t_next. Unknown is zdd_next; positions and velocities follow from it:
//!
//! ```text
//! (1 − am) a_next + am a = (1 − af) zdd_next + af zdd
//! z_next  = z + h zd + h² ((1/2 − β) a + β a_next)
//! zd_next = zd + h ((1 − γ) a + γ a_next)
//! ```
//!
//! | symbol | meaning | Newmark | generalized-alpha |
//! |---|---|---|---|
//! | β, γ | weights of position and velocity | given | (1 − am + af)²/4, 1/2 − am + af |
//! | am, af | averaging of accelerations | 0, 0 | (2ρ − 1)/(ρ + 1), ρ/(ρ + 1) |
//! | a | the algorithmic acceleration | zdd itself | integrator state, never projected |
//! | ρ | spectral radius at infinite frequency | | given, 0 to 1 |
//!
//! An increment δ of zdd_next moves zd_next by γ' h δ and z_next by β' h² δ with γ', β' = γ, β times (1 − af)/(1 − am).

use super::positive;
use crate::constrained::Weights;
use crate::error::StepError;
use crate::implicit::Implicit;
use crate::scalar::Scalar;

impl Implicit {
    /// An error if a coefficient is none.
    #[inline(always)]
    pub(crate) fn check(&self) -> Result<(), StepError> {
        match *self {
            Self::Newmark { beta, gamma } => {
                positive("beta of Newmark's formulas must be positive and finite", beta)?;
                positive("gamma of Newmark's formulas must be positive and finite", gamma)?;
            }
            Self::GeneralizedAlpha { spectral_radius: rho } => {
                if !(0.0..=1.0).contains(&rho) {
                    let what = "the spectral radius must lie between 0 and 1";
                    return Err(StepError::Setting { what, value: rho });
                }
            }
        }
        Ok(())
    }

    /// β, γ, am, af
    #[inline(always)]
    pub(super) const fn coefficients(&self) -> [f64; 4] {
        match *self {
            Self::Newmark { beta, gamma } => [beta, gamma, 0.0, 0.0],
            Self::GeneralizedAlpha { spectral_radius: rho } => {
                let (am, af) = ((2.0 * rho - 1.0) / (rho + 1.0), rho / (rho + 1.0));
                let sum = 1.0 - am + af;
                [0.25 * sum * sum, 0.5 - am + af, am, af]
            }
        }
    }

    /// The formulas for a step of size `h`.
    #[inline(always)]
    pub(crate) fn formulas<S: Scalar>(&self, h: S) -> Result<Formulas<S>, StepError> {
        positive("the step must be positive and finite", h.real())?;
        self.check()?;
        let [beta, gamma, am, af] = self.coefficients();
        let keeps_acceleration = self.carries();
        let scale = (1.0 - af) / (1.0 - am);
        let number = S::from_f64;
        let (position_next, velocity_next) = (number(beta) * h * h, number(gamma) * h);
        Ok(Formulas {
            h,
            position: number(0.5 - beta) * h * h,
            position_next,
            velocity: number(1.0 - gamma) * h,
            velocity_next,
            a_zdd_next: number(scale),
            a_zdd: number(af / (1.0 - am)),
            a_a: number(-am / (1.0 - am)),
            keeps_acceleration,
            weights: Weights {
                velocity: velocity_next * number(scale),
                position: position_next * number(scale),
                ratio: number(beta / gamma) * h,
            },
        })
    }
}

/// The integrator's formulas for one step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Formulas<S> {
    pub(crate) h: S,
    /// (1/2 − β) h²
    pub(crate) position: S,
    /// β h²
    pub(crate) position_next: S,
    /// (1 − γ) h
    pub(crate) velocity: S,
    /// γ h
    pub(crate) velocity_next: S,
    /// a_next = a_zdd_next zdd_next + a_zdd zdd + a_a a
    pub(crate) a_zdd_next: S,
    pub(crate) a_zdd: S,
    pub(crate) a_a: S,
    /// Whether a is a state of its own; otherwise it is zdd.
    pub(crate) keeps_acceleration: bool,
    /// What an increment of zdd_next does.
    pub(crate) weights: Weights<S>,
}

/// z, zd, zdd and a at one instant.
pub(crate) struct Kinematics<'a, S> {
    pub(crate) z: &'a mut [S],
    pub(crate) zd: &'a mut [S],
    pub(crate) zdd: &'a mut [S],
    pub(crate) a: &'a mut [S],
}

impl<S: Scalar> Formulas<S> {
    /// Of a step of no size, in which positions and rates stay.
    pub(crate) const STANDSTILL: Self = Self {
        h: S::ZERO,
        position: S::ZERO,
        position_next: S::ZERO,
        velocity: S::ZERO,
        velocity_next: S::ZERO,
        a_zdd_next: S::ONE,
        a_zdd: S::ZERO,
        a_a: S::ZERO,
        keeps_acceleration: false,
        weights: Weights { velocity: S::ZERO, position: S::ZERO, ratio: S::ZERO },
    };

    /// Predicts with zdd_next = zdd.
    #[inline(always)]
    pub(crate) fn predict(&self, now: &Kinematics<'_, S>, next: &mut Kinematics<'_, S>) {
        let a = if self.keeps_acceleration { &*now.a } else { &*now.zdd };
        let now = now.z.iter().zip(now.zd.iter()).zip(now.zdd.iter().zip(a));
        let next = next.z.iter_mut().zip(next.zd.iter_mut()).zip(next.zdd.iter_mut().zip(next.a.iter_mut()));
        for (((z_next, zd_next), (zdd_next, a_next)), ((&z, &zd), (&zdd, &a))) in next.zip(now) {
            *zdd_next = zdd;
            // a_next = ((1 − af) zdd_next + af zdd − am a)/(1 − am)
            *a_next = if self.keeps_acceleration {
                (self.a_zdd_next + self.a_zdd) * zdd + self.a_a * a
            } else {
                zdd
            };
            // z_next = z + h zd + h² ((1/2 − β) a + β a_next)                       [Dopico2018, Eq. 7]
            *z_next = z + (self.h * zd + (self.position * a + self.position_next * *a_next));
            // zd_next = zd + h ((1 − γ) a + γ a_next)
            *zd_next = zd + (self.velocity * a + self.velocity_next * *a_next);
        }
    }

    /// Moves by the increment `delta` of zdd_next. Accelerations are never taken from differences of positions, which
    /// would amplify their rounding by 1/(βh²).
    #[inline(always)]
    pub(crate) fn correct(&self, delta: &[S], next: &mut Kinematics<'_, S>) {
        let Weights { velocity, position, .. } = self.weights;
        let next = next.z.iter_mut().zip(next.zd.iter_mut()).zip(next.zdd.iter_mut().zip(next.a.iter_mut()));
        for (((z, zd), (zdd, a)), &delta) in next.zip(delta) {
            *z += position * delta;
            *zd += velocity * delta;
            *zdd += delta;
            *a += self.a_zdd_next * delta;
        }
    }
}
