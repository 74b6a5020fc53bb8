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

use crate::error::EvalError;
use crate::inputs::Hold;
use crate::scalar::Scalar;
use crate::sensitivity::SensitivityDims;

/// Sizes of a system; any may be zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dims {
    /// Coordinates z.
    pub nq: usize,
    /// Velocities v.
    pub nv: usize,
    /// First-order states x.
    pub nx: usize,
    /// Inputs u.
    pub nu: usize,
    /// Independent parameters, arrays flattened.
    pub np: usize,
    /// Markers.
    pub n_markers: usize,
    /// Outputs.
    pub n_outputs: usize,
    /// Holonomic constraint rows.
    pub n_holonomic: usize,
    /// Normalisation rows, one per block of Euler parameters; in coordinate form only.
    pub n_normalisation: usize,
    /// Nonholonomic constraint rows.
    pub n_nonholonomic: usize,
    /// Joints.
    pub n_joints: usize,
    /// Bodies beside ground.
    pub n_bodies: usize,
    /// Numbers of the leading matrix, its diagonal of small numbers included.
    pub n_matrix: usize,
    /// Numbers of its factors.
    pub n_factors: usize,
    /// Objectives.
    pub n_objectives: usize,
    /// Event functions.
    pub n_events: usize,
    /// Sizes of what it knows of its derivatives.
    pub sensitivity: SensitivityDims,
    /// Scratch that suffices for every bundle.
    pub workspace: usize,
}

impl Dims {
    /// No coordinates, no anything: for `Dims { nq: 2, nv: 2, ..Dims::ZERO }` in constants.
    pub const ZERO: Self = Self {
        nq: 0,
        nv: 0,
        nx: 0,
        nu: 0,
        np: 0,
        n_markers: 0,
        n_outputs: 0,
        n_holonomic: 0,
        n_normalisation: 0,
        n_nonholonomic: 0,
        n_joints: 0,
        n_bodies: 0,
        n_matrix: 0,
        n_factors: 0,
        n_objectives: 0,
        n_events: 0,
        sensitivity: SensitivityDims::ZERO,
        workspace: 0,
    };

    /// Length of the state y = \[z, v, x\].
    #[inline(always)]
    pub const fn state(&self) -> usize {
        self.nq + self.nv + self.nx
    }

    /// Constraint rows in coordinate form: holonomic, normalisation, nonholonomic.
    #[inline(always)]
    pub const fn rows(&self) -> usize {
        self.n_holonomic + self.n_normalisation + self.n_nonholonomic
    }

    /// Constraint rows in joint form: holonomic, nonholonomic.
    #[inline(always)]
    pub const fn joint_rows(&self) -> usize {
        self.n_holonomic + self.n_nonholonomic
    }
}

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
}

/// Start values.
pub trait Start: System {
    /// Writes start values of coordinates, velocities and first-order states.
    fn start(&self, z: &mut [Self::S], v: &mut [Self::S], x: &mut [Self::S]) -> Result<(), EvalError>;
}

/// Accelerations from the mass matrix, in joint form.
pub trait ForwardDynamics: System {
    /// Whether [`ForwardDynamics::correct_step`] does anything.
    const CORRECTS_STEPS: bool = false;

    /// Writes zd = N(z) v, vd and xd.
    fn forward_dynamics(
        &self,
        at: At<'_, Self::S>,
        w: &mut [Self::S],
        zd: &mut [Self::S],
        vd: &mut [Self::S],
        xd: &mut [Self::S],
    ) -> Result<(), EvalError>;

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

/// What an index counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Quantity {
    /// Coordinate z.
    Coordinate,
    /// Velocity v.
    Velocity,
    /// First-order state x.
    State,
    /// Input u.
    Input,
    /// Independent parameter, arrays flattened.
    Parameter,
    /// Marker.
    Marker,
    /// Output.
    Output,
    /// Holonomic constraint row.
    Holonomic,
    /// Normalisation row of a joint with Euler parameters.
    Normalisation,
    /// Joint.
    Joint,
    /// Body beside ground.
    Body,
    /// Nonholonomic constraint row.
    Nonholonomic,
    /// Objective.
    Objective,
    /// Parameter or input by which the model is differentiated.
    Sensitivity,
    /// Event function.
    Event,
}

impl Quantity {
    /// The word for it in messages.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Coordinate => "coordinate",
            Self::Velocity => "velocity",
            Self::State => "state",
            Self::Input => "input",
            Self::Parameter => "parameter",
            Self::Marker => "marker",
            Self::Output => "output",
            Self::Holonomic => "holonomic constraint",
            Self::Normalisation => "normalisation of Euler parameters",
            Self::Joint => "joint",
            Self::Body => "body",
            Self::Nonholonomic => "nonholonomic constraint",
            Self::Objective => "objective",
            Self::Sensitivity => "differentiated parameter",
            Self::Event => "event",
        }
    }
}

/// Names of what indices count, for messages and tables.
pub trait Names {
    /// The name of entry `index`, as the model addresses it; none where there is no such entry.
    fn name(&self, quantity: Quantity, index: usize) -> Option<&str>;
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
