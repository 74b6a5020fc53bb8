//! Index 1 and penalty under explicit integrators: a mechanism with constraints as forward dynamics in joint form.
//!
//! [`Index1`] makes the accelerations of [`ConstrainedDynamics`] those of a
//! [`ForwardDynamics`], so that every explicit integrator takes them. The numbers of its
//! [`Stabilisation`] make it
//!
//! | formulation | rate | value | compliance | source |
//! |---|---|---|---|---|
//! | index 1 | 0 | 0 | 0 | [Dopico2018, Eq. 41] |
//! | index 1, Baumgarte | 2ξω | ω² | 0 | [Baumgarte 1972] |
//! | penalty | 2ξω | ω² | 1/α | [Dopico2018, Eqs. 42–43] |
//!
//! [`OnConstraints`] brings the state back onto the constraints after each step, as a part of the discrete map like the
//! normalisation of Euler parameters: z += dz, v += dv by the smallest corrections in the norm of M, until they are at rounding.
//! A step of order p moves by its local error, O(h^(p + 1)): no order is lost. Dense output between
//! steps is not corrected.

use crate::constrained::{ConstrainedDynamics, ConstraintCorrection, Stabilisation};
use crate::error::EvalError;
use crate::inputs::Hold;
use crate::linear::{add_scaled, all_finite};
use crate::scalar::{Scalar, sqrt};
use crate::system::{At, Dims, ForwardDynamics, Quantity, System, Units};

/// A mechanism with constraints as forward dynamics.
#[derive(Clone, Copy, Debug)]
pub struct Index1<'a, M: System> {
    pub(crate) system: &'a M,
    pub(crate) stabilisation: Stabilisation<M::S>,
}

impl<'a, M: ConstrainedDynamics> Index1<'a, M> {
    /// Exact constraints of accelerations; positions and velocities drift from theirs.
    pub fn new(system: &'a M) -> Self {
        Self::stabilised(system, 0.0, 0.0)
    }

    /// Exact constraints of accelerations, with Baumgarte's stabilisation: damping ξ (1 is critical), frequency ω in rad/s.
    pub fn stabilised(system: &'a M, damping: f64, frequency: f64) -> Self {
        let number = M::S::from_f64;
        let stabilisation = Stabilisation {
            rate: number(2.0 * damping * frequency),
            value: number(frequency * frequency),
            compliance: M::S::ZERO,
        };
        Self { system, stabilisation }
    }

    /// Constraint forces in proportion to the violation, by the penalty α.
    pub fn penalty(system: &'a M, alpha: f64, damping: f64, frequency: f64) -> Self {
        let mut penalty = Self::stabilised(system, damping, frequency);
        penalty.stabilisation.compliance = M::S::from_f64(1.0 / alpha);
        penalty
    }

    /// Multipliers of the holonomic and the nonholonomic rows at an instant. `w`: the workspace of [`System::dims`].
    pub fn multipliers(
        &self,
        at: At<'_, M::S>,
        w: &mut [M::S],
        zd: &mut [M::S],
        vd: &mut [M::S],
        lambda: &mut [M::S],
    ) -> Result<(), EvalError> {
        self.system.constrained_dynamics(at, self.stabilisation, w, zd, vd, &mut [], lambda)
    }
}

impl<M: System> System for Index1<'_, M> {
    type S = M::S;

    #[inline(always)]
    fn dims(&self) -> Dims {
        let dims = self.system.dims();
        Dims { workspace: dims.workspace + dims.joint_rows(), ..dims }
    }
    #[inline(always)]
    fn euler_parameters(&self) -> &[usize] {
        self.system.euler_parameters()
    }
    #[inline(always)]
    fn holds(&self) -> &[Hold] {
        self.system.holds()
    }
    #[inline(always)]
    fn units(&self) -> Units<'_> {
        self.system.units()
    }
    #[inline(always)]
    fn resting_rows(&self) -> &[(u32, u32)] {
        self.system.resting_rows()
    }
}

/// The first `n` values of `w`, and the rest.
#[inline(always)]
fn cut<S>(w: &mut [S], n: usize) -> Result<(&mut [S], &mut [S]), EvalError> {
    let found = w.len();
    w.split_at_mut_checked(n).ok_or(EvalError::Length { what: "w", expected: n, found })
}

impl<M: ConstrainedDynamics> ForwardDynamics for Index1<'_, M> {
    #[inline(always)]
    fn forward_dynamics(
        &self,
        at: At<'_, M::S>,
        w: &mut [M::S],
        zd: &mut [M::S],
        vd: &mut [M::S],
        xd: &mut [M::S],
    ) -> Result<(), EvalError> {
        let (lambda, w) = cut(w, self.system.dims().joint_rows())?;
        self.system.constrained_dynamics(at, self.stabilisation, w, zd, vd, xd, lambda)
    }
}

impl<M: ConstraintCorrection> ConstraintCorrection for Index1<'_, M> {
    #[inline(always)]
    fn constraint_correction(
        &self,
        at: At<'_, M::S>,
        w: &mut [M::S],
        dz: &mut [M::S],
        dv: &mut [M::S],
        phi: &mut [M::S],
        phid: &mut [M::S],
    ) -> Result<(), EvalError> {
        self.system.constraint_correction(at, w, dz, dv, phi, phid)
    }
}

/// Forward dynamics whose steps end on the constraints.
#[derive(Clone, Copy, Debug)]
pub struct OnConstraints<T>(pub T);

/// Corrections that a step may take.
const MAX_CORRECTIONS: usize = 10;
/// A correction below this, in units of ε max(1, ‖z‖) by coordinates in their units, leaves nothing: not of positions, for which it is quadratic, nor of
/// velocities, which were corrected at positions that were off by it.
const SETTLED: f64 = 4096.0;

impl<T: System> System for OnConstraints<T> {
    type S = T::S;

    #[inline(always)]
    fn dims(&self) -> Dims {
        let dims = self.0.dims();
        let corrections = dims.nq + dims.nv + dims.n_holonomic + dims.joint_rows();
        Dims { workspace: dims.workspace + corrections, ..dims }
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

impl<T: ForwardDynamics + ConstraintCorrection> ForwardDynamics for OnConstraints<T> {
    #[inline(always)]
    fn corrects_steps(&self) -> bool {
        true
    }

    #[inline(always)]
    fn forward_dynamics(
        &self,
        at: At<'_, T::S>,
        w: &mut [T::S],
        zd: &mut [T::S],
        vd: &mut [T::S],
        xd: &mut [T::S],
    ) -> Result<(), EvalError> {
        self.0.forward_dynamics(at, w, zd, vd, xd)
    }

    fn correct_step(
        &self,
        t: T::S,
        u: &[T::S],
        w: &mut [T::S],
        z: &mut [T::S],
        v: &mut [T::S],
        x: &[T::S],
    ) -> Result<(), EvalError> {
        correct(&self.0, At { t, z: &[], v: &[], x, u }, w, z, v, ())
    }
}

/// A correction of a state, and the rows that it makes zero.
#[derive(Debug)]
pub struct StateCorrection<'a, S> {
    /// Of the coordinates.
    pub dz: &'a mut [S],
    /// Of the velocities.
    pub dv: &'a mut [S],
    /// Holonomic rows.
    pub phi: &'a mut [S],
    /// Their rates, and the nonholonomic rows.
    pub phid: &'a mut [S],
}

/// What goes along with the corrections of a state; `()` for nothing.
pub trait Corrections<S> {
    /// Finds the next correction in its own way; false where it does not, and the model's bundle does.
    #[inline(always)]
    fn find(
        &mut self,
        _at: At<'_, S>,
        _w: &mut [S],
        _found: &mut StateCorrection<'_, S>,
    ) -> Result<bool, EvalError> {
        Ok(false)
    }

    /// Sees every correction before it is made.
    fn see(&mut self, at: At<'_, S>, dz: &[S], dv: &[S], w: &mut [S]) -> Result<(), EvalError>;
}

impl<S> Corrections<S> for () {
    #[inline(always)]
    fn see(&mut self, _: At<'_, S>, _: &[S], _: &[S], _: &mut [S]) -> Result<(), EvalError> {
        Ok(())
    }
}

/// Corrects z and v until nothing is left.
#[inline(always)]
pub(crate) fn correct<T: ConstraintCorrection>(
    system: &T,
    at: At<'_, T::S>,
    w: &mut [T::S],
    z: &mut [T::S],
    v: &mut [T::S],
    mut along: impl Corrections<T::S>,
) -> Result<(), EvalError> {
    let dims = system.dims();
    let (dz, w) = cut(w, dims.nq)?;
    let (dv, w) = cut(w, dims.nv)?;
    let (phi, w) = cut(w, dims.n_holonomic)?;
    let (phid, w) = cut(w, dims.joint_rows())?;
    let units = system.units();
    let mut before = f64::INFINITY;
    for _ in 0..MAX_CORRECTIONS {
        let here = At { z, v, ..at };
        if !along.find(here, w, &mut StateCorrection { dz, dv, phi, phid })? {
            system.constraint_correction(here, w, dz, dv, phi, phid)?;
        }
        let size = units.largest(dz);
        if !(all_finite(dz) && all_finite(dv)) || size > before {
            break;
        }
        along.see(here, dz, dv, w)?;
        add_scaled(z, T::S::ONE, dz);
        add_scaled(v, T::S::ONE, dv);
        let scale = units.largest(z).max(1.0);
        if size <= SETTLED * T::S::EPSILON * scale {
            // A violation that calls for no correction is one that none can mend: rows contradict each other.
            if units.largest_row(phi) <= sqrt(T::S::EPSILON) * scale {
                return Ok(());
            }
            break;
        }
        before = size;
    }
    Err(violated(phi))
}

#[cold]
fn violated<S: Scalar>(phi: &[S]) -> EvalError {
    let rows = phi.iter().enumerate();
    let worst = rows.max_by(|a, b| a.1.real().abs().total_cmp(&b.1.real().abs()));
    let (index, violation) = worst.map_or((0, 0.0), |(index, phi)| (index, phi.real()));
    EvalError::Violated { quantity: Quantity::Holonomic, index, violation }
}
