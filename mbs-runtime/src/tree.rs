//! What identification, control and optimisation ask of a mechanism beside its motion, in joint form.
//!
//! Bodies are counted without ground, in the order of the model. Matrices are column-major.
//!
//! | symbol | meaning | length |
//! |---|---|---|
//! | π | inertial parameters of all bodies, ten each | 10 n_bodies |
//! | Y | regressor: tau = Y π − (forces of the model) | nv × 10 n_bodies, sparse |
//! | c, g | tau = M vd + c(z, v) + g(z) − (forces of the model) | nv |
//! | h | linear momentum, angular momentum about the centre of mass | 6 |
//! | ρ | what the model is differentiated by | sensitivity.parameters |

use crate::dims::Places;
use crate::error::EvalError;
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

/// Inverse dynamics of gravity alone.
pub trait GravityTerms: System {
    /// Writes g(z) with tau = M vd + c + g − (forces of the model).
    fn gravity_terms(
        &self,
        at: At<'_, Self::S>,
        w: &mut [Self::S],
        gravity: &mut [Self::S],
    ) -> Result<(), EvalError>;
}

/// Inverse dynamics of velocities alone.
pub trait CoriolisTerms: System {
    /// Writes c(z, v) with tau = M vd + c + g − (forces of the model).
    fn coriolis_terms(
        &self,
        at: At<'_, Self::S>,
        w: &mut [Self::S],
        coriolis: &mut [Self::S],
    ) -> Result<(), EvalError>;
}

/// Where [`Centroidal`] writes; world axes.
#[derive(Debug)]
pub struct Centroid<'a, S> {
    /// Centre of mass of all bodies, 3.
    pub com: &'a mut [S],
    /// Its velocity, 3.
    pub com_velocity: &'a mut [S],
    /// Its velocity per joint velocity, 3 × nv.
    pub com_jacobian: &'a mut [S],
    /// h, 6: linear momentum, angular momentum about the centre of mass.
    pub momentum: &'a mut [S],
    /// A with h = A v, 6 × nv.
    pub momentum_matrix: &'a mut [S],
    /// Ad v, 6: dh/dt = A vd + Ad v.
    pub momentum_bias: &'a mut [S],
}

/// The mechanism as a whole.
pub trait Centroidal: System {
    /// Writes the centre of mass and the momentum about it. Without any mass there is none, and no result is finite.
    fn centroidal(
        &self,
        at: At<'_, Self::S>,
        w: &mut [Self::S],
        centroid: Centroid<'_, Self::S>,
    ) -> Result<(), EvalError>;
}

/// How the Jacobians of the markers change in time.
pub trait MarkerJacobianRates: System {
    /// Writes Jd = dJ/dt, 3 n_markers × nv, and Jd v, 3 n_markers: marker accelerations = J vd + Jd v.
    fn marker_jacobian_rates(
        &self,
        at: At<'_, Self::S>,
        w: &mut [Self::S],
        rates: &mut [Self::S],
        bias: &mut [Self::S],
    ) -> Result<(), EvalError>;
}

/// Inverse dynamics under wrenches on the bodies.
pub trait InverseDynamicsExternal: System {
    /// Writes tau = M vd − Q − (wrenches). Each body has six values of `wrenches`: a force at the origin of its frame and a torque, in
    /// world axes.
    fn inverse_dynamics_external(
        &self,
        at: At<'_, Self::S>,
        vd: &[Self::S],
        wrenches: &[Self::S],
        w: &mut [Self::S],
        tau: &mut [Self::S],
    ) -> Result<(), EvalError>;
}

/// Accelerations under forces from outside: the inverse of [`InverseDynamicsExternal`].
pub trait ForwardDynamicsExternal: System {
    /// Writes zd = N(z) v, vd from M vd = Q + tau + (wrenches), and xd.
    #[allow(clippy::too_many_arguments, reason = "arguments and results of one bundle")]
    fn forward_dynamics_external(
        &self,
        at: At<'_, Self::S>,
        tau: &[Self::S],
        wrenches: &[Self::S],
        w: &mut [Self::S],
        zd: &mut [Self::S],
        vd: &mut [Self::S],
        xd: &mut [Self::S],
    ) -> Result<(), EvalError>;
}

/// The inverse of the mass matrix times a vector.
pub trait MassMatrixInverseAction: System {
    /// Writes x with M x = tau, by factors that have the tree's sparsity.
    fn mass_matrix_inverse_action(
        &self,
        at: At<'_, Self::S>,
        tau: &[Self::S],
        w: &mut [Self::S],
        x: &mut [Self::S],
    ) -> Result<(), EvalError>;
}

/// Where [`ForwardDynamicsDerivatives`] writes.
#[derive(Debug)]
pub struct AccelerationDerivatives<'a, S> {
    /// vd, nv.
    pub vd: &'a mut [S],
    /// ∂vd/∂z along the tangent (dz = N(z) dθ), nv × nv.
    pub vd_z: &'a mut [S],
    /// ∂vd/∂v, nv × nv.
    pub vd_v: &'a mut [S],
    /// ∂vd/∂tau = M⁻¹, nv × nv.
    pub vd_tau: &'a mut [S],
    /// ∂vd/∂ρ, nv × sensitivity.parameters.
    pub vd_rho: &'a mut [S],
}

/// Derivatives of accelerations in joint form.
pub trait ForwardDynamicsDerivatives: System {
    /// Writes vd from M vd = Q + tau and all its derivatives.
    fn forward_dynamics_derivatives(
        &self,
        at: At<'_, Self::S>,
        tau: &[Self::S],
        w: &mut [Self::S],
        derivatives: AccelerationDerivatives<'_, Self::S>,
    ) -> Result<(), EvalError>;
}

/// Derivatives of inverse dynamics by parameters.
pub trait InverseDynamicsParameters: System {
    /// Places of ∂tau/∂ρ that are not zero: (velocity, parameter).
    fn inverse_dynamics_parameter_places(&self) -> Places<'_>;

    /// Writes ∂tau/∂ρ at these places.
    fn inverse_dynamics_parameters(
        &self,
        at: At<'_, Self::S>,
        vd: &[Self::S],
        w: &mut [Self::S],
        values: &mut [Self::S],
    ) -> Result<(), EvalError>;
}
