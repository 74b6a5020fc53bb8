//! What a model is to the runtime: dimensions, and bundles of equations over slices.
//!
//! Each family of bundles is its own trait, so that a bundle that was not emitted is a compile error where it is
//! called. Every bundle reads an instant [`At`], works in the caller's scratch `w` (at least
//! [`Dims::workspace`] values, their content before and after meaningless), writes its results whole and returns
//! an [`EvalError`] when a slice has a wrong length or the equations cannot be solved. After an error the results
//! are meaningless. A bundle is a function of the system's parameters and the instant: the same arguments give
//! the same bits.
//!
//! | symbol | meaning | length |
//! |---|---|---|
//! | z | coordinates | nq |
//! | v | velocities, zd = N(z) v; for joints with Euler parameters the angular velocity | nv |
//! | x | first-order states, xd = f | nx |
//! | u | inputs | nu |
//! | y | the state \[z, v, x\] | nq + nv + nx |
//! | w | scratch | workspace |
//!
//! Matrices are column-major.

pub use crate::dims::{Dims, Names, Quantity, Units};
use crate::error::EvalError;
use crate::implicit::Implicit;
use crate::inputs::Hold;
use crate::scalar::Scalar;

/// The instant at which a bundle is evaluated.
#[derive(Clone, Copy, Debug)]
pub struct At<'a, S> {
    /// Time.
    pub t: S,
    /// Coordinates.
    pub z: &'a [S],
    /// Velocities.
    pub v: &'a [S],
    /// First-order states.
    pub x: &'a [S],
    /// Inputs.
    pub u: &'a [S],
}

impl<'a, S> At<'a, S> {
    /// The instant of a state y = \[z, v, x\].
    #[inline(always)]
    pub fn of_state(dims: &Dims, t: S, y: &'a [S], u: &'a [S]) -> Result<Self, EvalError> {
        let wrong = EvalError::Length { what: "y", expected: dims.state(), found: y.len() };
        let (z, rest) = y.split_at_checked(dims.nq).ok_or(wrong)?;
        let (v, x) = rest.split_at_checked(dims.nv).ok_or(wrong)?;
        if x.len() == dims.nx { Ok(Self { t, z, v, x, u }) } else { Err(wrong) }
    }
}

/// `slice` as an array; a wrong length is an error. Generated bundles turn every slice into an array at entry, so
/// that no bounds check remains.
#[inline(always)]
pub fn array<'a, S, const N: usize>(what: &'static str, slice: &'a [S]) -> Result<&'a [S; N], EvalError> {
    let found = slice.len();
    slice.try_into().map_err(|_| EvalError::Length { what, expected: N, found })
}

/// [`array()`] for results.
#[inline(always)]
pub fn array_mut<'a, S, const N: usize>(
    what: &'static str,
    slice: &'a mut [S],
) -> Result<&'a mut [S; N], EvalError> {
    let found = slice.len();
    slice.try_into().map_err(|_| EvalError::Length { what, expected: N, found })
}

/// The first `N` values of results that may be longer.
#[inline(always)]
pub fn first_mut<'a, S, const N: usize>(
    what: &'static str,
    slice: &'a mut [S],
) -> Result<&'a mut [S; N], EvalError> {
    let found = slice.len();
    slice.first_chunk_mut().ok_or(EvalError::Length { what, expected: N, found })
}

/// The first `N` values of the scratch, which may be longer.
#[inline(always)]
pub fn scratch<S, const N: usize>(w: &mut [S]) -> Result<&mut [S; N], EvalError> {
    let found = w.len();
    w.first_chunk_mut().ok_or(EvalError::Length { what: "w", expected: N, found })
}

/// Pivots of the mass matrix are positive where it is regular; the first that is not names its velocity.
#[inline(always)]
pub fn check_pivots<S: Scalar>(pivots: &[S]) -> Result<(), EvalError> {
    // A pivot that is NaN is not greater than zero.
    let positive = pivots.iter().take_while(|pivot| pivot.real() > 0.0).count();
    if positive == pivots.len() { Ok(()) } else { Err(EvalError::Singular { velocity: positive }) }
}

/// A model: its sizes and what integrators must know of its structure.
pub trait System {
    /// The scalar its bundles compute with.
    type S: Scalar;

    /// Sizes. A generated module returns a constant and marks this `#[inline(always)]`, so that the loops of the
    /// runtime have constant bounds.
    fn dims(&self) -> Dims;

    /// Offset in z of each block of four Euler parameters.
    #[inline(always)]
    fn euler_parameters(&self) -> &[usize] {
        &[]
    }

    /// How each input is held over a step; inputs beyond the slice are held at [`Hold::Zero`].
    #[inline(always)]
    fn holds(&self) -> &[Hold] {
        &[]
    }

    /// Natural scales of its coordinates and rows.
    #[inline(always)]
    fn units(&self) -> Units<'_> {
        Units::ONE
    }

    /// Rows that do not act in every state of the modes: (k, i) for each input i, a state, while which holds row k of the joint form is zero.
    #[inline(always)]
    fn resting_rows(&self) -> &[(u32, u32)] {
        &[]
    }
}

/// Whether row k of the joint form does not act: a state holds in which it rests.
pub(crate) fn rests<M: System>(system: &M, k: usize, u: &[M::S]) -> bool {
    let holds = |input: u32| u.get(input as usize).is_some_and(|state| state.real() != 0.0);
    system.resting_rows().iter().any(|&(row, input)| row as usize == k && holds(input))
}

/// Start values.
pub trait Start: System {
    /// Writes start values of coordinates, velocities and first-order states.
    fn start(&self, z: &mut [Self::S], v: &mut [Self::S], x: &mut [Self::S]) -> Result<(), EvalError>;
}

/// Accelerations from the mass matrix, in joint form.
pub trait ForwardDynamics: System {
    /// Whether [`ForwardDynamics::correct_step`] does anything.
    #[inline(always)]
    fn corrects_steps(&self) -> bool {
        false
    }

    /// Whether [`ForwardDynamics::prepare_step`] and [`ForwardDynamics::complete`] do anything.
    #[inline(always)]
    fn completes(&self) -> bool {
        false
    }

    /// Writes zd = N(z) v, vd and xd.
    fn forward_dynamics(
        &self,
        at: At<'_, Self::S>,
        w: &mut [Self::S],
        zd: &mut [Self::S],
        vd: &mut [Self::S],
        xd: &mut [Self::S],
    ) -> Result<(), EvalError>;

    /// Looks at the state from which a step is made.
    #[inline(always)]
    fn prepare_step(&self, _at: At<'_, Self::S>, _w: &mut [Self::S]) -> Result<(), EvalError> {
        Ok(())
    }

    /// Completes a stage, or the end of a step: what follows from the rest of z and v, in its place. It is a part of the discrete map.
    #[inline(always)]
    fn complete(
        &self,
        _t: Self::S,
        _u: &[Self::S],
        _w: &mut [Self::S],
        _z: &mut [Self::S],
        _v: &mut [Self::S],
    ) -> Result<(), EvalError> {
        Ok(())
    }

    /// How many of the last first-order states are integrals of objectives: step control may leave these out.
    #[inline(always)]
    fn integrals(&self) -> usize {
        0
    }

    /// The formulas by which [`Trapezoidal`](crate::Trapezoidal) steps it.
    #[inline(always)]
    fn newmark(&self) -> Implicit {
        Implicit::TRAPEZOIDAL
    }

    /// Prepares [`ForwardDynamics::solve_stage`] at an instant, for α of coordinates and of velocities; what it finds stays in the scratch. Systems that implicit methods step
    /// know this: [`Stiff`](crate::Stiff).
    #[inline(always)]
    fn linearise_stage(
        &self,
        _at: At<'_, Self::S>,
        _alpha: [Self::S; 2],
        _w: &mut [Self::S],
    ) -> Result<(), EvalError> {
        Err(EvalError::Absent { bundle: "joint_linearise" })
    }

    /// (z, v) = (1 − α f_y)⁻¹ (z, v), with α of coordinates and of velocities, and the rate f of coordinates and velocities where it was prepared last.
    #[inline(always)]
    fn solve_stage(
        &self,
        _at: At<'_, Self::S>,
        _alpha: [Self::S; 2],
        _w: &mut [Self::S],
        _z: &mut [Self::S],
        _v: &mut [Self::S],
    ) -> Result<(), EvalError> {
        Err(EvalError::Absent { bundle: "joint_linearise" })
    }

    /// Brings the state at the end of a step to where it should be, constraints for instance. It is a part of the discrete
    /// map, after Euler parameters have been normalised.
    #[inline(always)]
    fn correct_step(
        &self,
        _t: Self::S,
        _u: &[Self::S],
        _w: &mut [Self::S],
        _z: &mut [Self::S],
        _v: &mut [Self::S],
        _x: &[Self::S],
    ) -> Result<(), EvalError> {
        Ok(())
    }
}

/// Accelerations by the articulated-body recursion, in joint form.
pub trait ForwardDynamicsRecursive: System {
    /// Writes zd = N(z) v, vd and xd.
    fn forward_dynamics_recursive(
        &self,
        at: At<'_, Self::S>,
        w: &mut [Self::S],
        zd: &mut [Self::S],
        vd: &mut [Self::S],
        xd: &mut [Self::S],
    ) -> Result<(), EvalError>;
}

/// Mass matrix in joint form.
pub trait MassMatrix: System {
    /// Writes M, nv × nv, both triangles.
    fn mass_matrix(&self, at: At<'_, Self::S>, w: &mut [Self::S], m: &mut [Self::S])
    -> Result<(), EvalError>;
}

/// Mass matrix in coordinate form.
pub trait MassMatrixCoordinates: System {
    /// Writes M, nq × nq, both triangles; singular along every block of Euler parameters.
    fn mass_matrix_coordinates(
        &self,
        at: At<'_, Self::S>,
        w: &mut [Self::S],
        m: &mut [Self::S],
    ) -> Result<(), EvalError>;
}

/// Inverse dynamics in joint form.
pub trait InverseDynamics: System {
    /// Writes tau = M vd − Q, the forces along v that the motion needs beyond the model's own.
    fn inverse_dynamics(
        &self,
        at: At<'_, Self::S>,
        vd: &[Self::S],
        w: &mut [Self::S],
        tau: &mut [Self::S],
    ) -> Result<(), EvalError>;
}

/// Derivatives of inverse dynamics in joint form.
pub trait InverseDynamicsDerivatives: System {
    /// Writes ∂tau/∂z along the tangent (dz = N(z) dθ), ∂tau/∂v and ∂tau/∂vd = M, each nv × nv.
    fn inverse_dynamics_derivatives(
        &self,
        at: At<'_, Self::S>,
        vd: &[Self::S],
        w: &mut [Self::S],
        tau_z: &mut [Self::S],
        tau_v: &mut [Self::S],
        m: &mut [Self::S],
    ) -> Result<(), EvalError>;
}

/// Energy.
pub trait Energy: System {
    /// Writes kinetic energy, potential energy, and the power of the forces that have no potential.
    fn energy(&self, at: At<'_, Self::S>, w: &mut [Self::S], out: &mut [Self::S; 3])
    -> Result<(), EvalError>;
}

/// Motion of the markers, in the world frame.
pub trait Markers: System {
    /// Writes positions, velocities and accelerations, three values a marker.
    fn markers(
        &self,
        at: At<'_, Self::S>,
        vd: &[Self::S],
        w: &mut [Self::S],
        positions: &mut [Self::S],
        velocities: &mut [Self::S],
        accelerations: &mut [Self::S],
    ) -> Result<(), EvalError>;
}

/// How marker velocities depend on v.
pub trait MarkerJacobians: System {
    /// Writes the 3 n_markers × nv matrix J with marker velocities = J v + (terms of time alone).
    fn marker_jacobians(
        &self,
        at: At<'_, Self::S>,
        w: &mut [Self::S],
        jacobians: &mut [Self::S],
    ) -> Result<(), EvalError>;
}

/// The model's outputs.
pub trait Outputs: System {
    /// Writes the outputs.
    fn outputs(
        &self,
        at: At<'_, Self::S>,
        vd: &[Self::S],
        w: &mut [Self::S],
        out: &mut [Self::S],
    ) -> Result<(), EvalError>;
}

/// A system whose forward dynamics is its recursive one, for the integrators.
#[derive(Clone, Copy, Debug)]
pub struct Recursive<'a, M>(pub &'a M);

impl<M: System> System for Recursive<'_, M> {
    type S = M::S;

    #[inline(always)]
    fn dims(&self) -> Dims {
        self.0.dims()
    }
    #[inline(always)]
    fn euler_parameters(&self) -> &[usize] {
        self.0.euler_parameters()
    }
    #[inline(always)]
    fn holds(&self) -> &[Hold] {
        self.0.holds()
    }
    #[inline(always)]
    fn units(&self) -> Units<'_> {
        self.0.units()
    }
    #[inline(always)]
    fn resting_rows(&self) -> &[(u32, u32)] {
        self.0.resting_rows()
    }
}

impl<M: ForwardDynamicsRecursive> ForwardDynamics for Recursive<'_, M> {
    #[inline(always)]
    fn forward_dynamics(
        &self,
        at: At<'_, M::S>,
        w: &mut [M::S],
        zd: &mut [M::S],
        vd: &mut [M::S],
        xd: &mut [M::S],
    ) -> Result<(), EvalError> {
        self.0.forward_dynamics_recursive(at, w, zd, vd, xd)
    }
}
