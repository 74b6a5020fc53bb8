//! What identification, control and optimisation ask of a mechanism beside its motion, in joint form.
//!
//! Bodies are counted without ground, in the order of the model. Matrices are column-major.
//!
//! | symbol | meaning | length |
//! |---|---|---|
//! | π | inertial parameters of all bodies, ten each | 10 n_bodies |
//! | Y | regressor: tau = Y π − (forces of the model) | nv × 10 n_bodies, sparse |

use crate::error::EvalError;
use crate::sensitivity::Places;
use crate::system::{At, System};

/// The inertial parameters of the bodies.
pub trait InertialParameters: System {
    /// Writes π: for each body its mass m, m c for its centre of mass c, and its inertia about the origin of its frame as elements of
    /// the tensor, xx, yy, zz, xy, xz, yz (xy = −∫ x y dm); all in the body's own frame.
    fn inertial_parameters(&self, w: &mut [Self::S], pi: &mut [Self::S]) -> Result<(), EvalError>;
}

/// Inverse dynamics as a linear function of the inertial parameters.
pub trait Regressor: System {
    /// The pairs (velocity, body) for which the velocity moves the body; all other blocks of Y are zero.
    fn regressor_places(&self) -> Places<'_>;

    /// Writes Y, ten values a pair in the order of [`Regressor::regressor_places`]: derivatives of tau of the velocity by the body's
    /// [`InertialParameters`]. Y π = M vd + (velocity terms) + (gravity).
    fn regressor(
        &self,
        at: At<'_, Self::S>,
        vd: &[Self::S],
        w: &mut [Self::S],
        values: &mut [Self::S],
    ) -> Result<(), EvalError>;
}
