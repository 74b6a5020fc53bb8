//! What a model knows of its derivatives: by its state, and by what it is differentiated by.
//!
//! A model is differentiated by p of its parameters and inputs, ρ. Derivatives come as the nonzero entries of
//! matrices, one after the other in one slice: each table below says which, in order. Places are (row, column),
//! sorted by row, then by column; the column of a derivative by ρ is the number of the parameter among the p.
//!
//! Symbols as in [`constrained`](crate::constrained).

use crate::constrained::{Constrained, Motion, Stabilisation, Weights, by_columns};
pub use crate::dims::{Places, SensitivityDims};
use crate::error::EvalError;
use crate::system::{At, Start, System};

/// Derivatives of the start values.
pub trait StartDerivatives: Start {
    /// Places of z_ρ (coordinate, parameter) and of v_ρ (velocity, parameter).
    fn start_places(&self) -> [Places<'_>; 2];

    /// Writes z_ρ, then v_ρ.
    fn start_derivatives(&self, w: &mut [Self::S], values: &mut [Self::S]) -> Result<(), EvalError>;
}

/// Places of the derivatives by ρ, in coordinate form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParameterPlaces<'a> {
    /// Of r_ρ: (coordinate, parameter).
    pub residual: Places<'a>,
    /// Of Φ_ρ, and in its last rows Ψ_ρ: (row, parameter).
    pub constraints: Places<'a>,
    /// Of (M x + Φ_zᵀ y + Aᵀ y')_ρ: (coordinate, parameter).
    pub impulse: Places<'a>,
    /// Of Φd_ρ, and in its last rows Ψ_ρ.
    pub rates: Places<'a>,
    /// Of Φdd_ρ, and in its last rows Ψd_ρ.
    pub accelerations: Places<'a>,
}

/// What the projections of a step did: zd = zd* + d, zdd = zdd* + e, with multipliers σ, κ of all rows.
#[derive(Clone, Copy, Debug)]
pub struct Impulses<'a, S> {
    /// d
    pub velocity: &'a [S],
    /// σ, of M d + (Φ_zᵀ, Aᵀ) σ = 0
    pub velocity_multipliers: &'a [S],
    /// e
    pub acceleration: &'a [S],
    /// κ, of M e + (Φ_zᵀ, Aᵀ) κ = 0
    pub acceleration_multipliers: &'a [S],
}

/// Derivatives of the equations of motion and of the projections, in coordinate form.
///
/// [`Sensitivities::linearise`] writes, at the places of [`Constrained::pattern`] and [`ParameterPlaces`]:
///
/// | values | places |
/// |---|---|
/// | M = r_zdd, C = r_zd, K = r_z (with all of λ) | tangent, each |
/// | Φ_z | holonomic |
/// | A = Ψ_zd, Ψ_z | nonholonomic, each |
/// | r_ρ | residual |
/// | Φ_ρ, Ψ_ρ | constraints |
///
/// [`Sensitivities::linearise_projections`] writes, for (x, y) = (d, σ) and then for (e, κ):
///
/// | values | places |
/// |---|---|
/// | (M d + Φ_zᵀ σ + Aᵀ σ')_z, (M e + Φ_zᵀ κ + Aᵀ κ')_z | tangent, each |
/// | Φd_z | holonomic |
/// | Ψ_z | nonholonomic |
/// | Φdd_z | holonomic |
/// | Ψd_z, Ψd_zd | nonholonomic, each |
/// | (M d + …)_ρ, (M e + …)_ρ | impulse, each |
/// | Φd_ρ, Ψ_ρ | rates |
/// | Φdd_ρ, Ψd_ρ | accelerations |
///
/// Φdd_zd is 2 Φd_z; Φdd_zdd = Φd_zd = Φ_z and Ψd_zdd = A are those of the first list.
pub trait Sensitivities: Constrained {
    /// Places of the derivatives by ρ.
    fn parameter_places(&self) -> ParameterPlaces<'_>;

    /// Parameters that [`Sensitivities::newton_product`] and [`Sensitivities::projection_product`] have derivatives by: (0, parameter).
    fn product_places(&self) -> [Places<'_>; 2] {
        [&[], &[]]
    }

    /// Columns up to which [`Sensitivities::acceleration_product`] and [`Sensitivities::projection_product`] take fewer operations than products with
    /// the second list; zero if they are not there.
    fn projection_columns(&self) -> usize {
        0
    }

    /// Writes the first list.
    fn linearise(
        &self,
        at: Motion<'_, Self::S>,
        lambda: &[Self::S],
        w: &mut [Self::S],
        values: &mut [Self::S],
    ) -> Result<(), EvalError>;

    /// Writes the second list.
    fn linearise_projections(
        &self,
        at: Motion<'_, Self::S>,
        impulses: Impulses<'_, Self::S>,
        w: &mut [Self::S],
        values: &mut [Self::S],
    ) -> Result<(), EvalError>;

    /// Whether the system has [`Sensitivities::differentiate_step`].
    #[inline(always)]
    fn fuses_derivatives(&self) -> bool {
        false
    }

    /// The derivative of a step with both projections by all parameters, from those of p and q: both lists, the factors of both matrices with E =
    /// `compliance`, and all solutions. `at` and `lambda` are those before the projections. Writes the derivatives of z, zd, zdd and λ at the
    /// end, those of zdd before its projection, and how good the solutions are: what the sum of all columns leaves of Newton's system and of
    /// the first projection's, and the sizes of what those equations sum.
    #[allow(clippy::too_many_arguments, reason = "what a part of a step reads and writes")]
    fn differentiate_step(
        &self,
        _at: Motion<'_, Self::S>,
        _lambda: &[Self::S],
        _impulses: Impulses<'_, Self::S>,
        _weights: Weights<Self::S>,
        _compliance: &[Self::S],
        _p_rho: &[Self::S],
        _q_rho: &[Self::S],
        _w: &mut [Self::S],
        _z_rho: &mut [Self::S],
        _zd_rho: &mut [Self::S],
        _zdd_rho: &mut [Self::S],
        _lambda_rho: &mut [Self::S],
        _delta_rho: &mut [Self::S],
        _left: &mut [Self::S],
        _sizes: &mut [Self::S],
    ) -> Result<(), EvalError> {
        Err(EvalError::Absent { bundle: "differentiate_step" })
    }

    /// Whether the system has [`Sensitivities::transpose_step`].
    #[inline(always)]
    fn fuses_transposed(&self) -> bool {
        false
    }

    /// The transpose of [`Sensitivities::differentiate_step`], with a column for each objective: from weights of z, zd, zdd, λ at the end and of zdd
    /// before its projection (`delta_bar`) to those of p, q and the parameters. What solutions leave is that of Newton's transposed system and
    /// of both projections together.
    #[allow(clippy::too_many_arguments, reason = "what a part of a step reads and writes")]
    fn transpose_step(
        &self,
        _at: Motion<'_, Self::S>,
        _lambda: &[Self::S],
        _impulses: Impulses<'_, Self::S>,
        _weights: Weights<Self::S>,
        _compliance: &[Self::S],
        _z_bar: &[Self::S],
        _zd_bar: &[Self::S],
        _a_bar: &[Self::S],
        _lambda_bar: &[Self::S],
        _delta_bar: &[Self::S],
        _w: &mut [Self::S],
        _p_bar: &mut [Self::S],
        _q_bar: &mut [Self::S],
        _rho_bar: &mut [Self::S],
        _left: &mut [Self::S],
        _sizes: &mut [Self::S],
    ) -> Result<(), EvalError> {
        Err(EvalError::Absent { bundle: "transpose_step" })
    }

    /// Writes the derivatives of yᵀ (r; Φ; Ψ) by z, zd and ρ: Jᵀ y by reverse accumulation, without J. `y`: a weight for each coordinate and
    /// row.
    ///
    /// `rho` has values at the [`Sensitivities::product_places`]. Values that are read from tables of parameters count as variables of their own: `read` gets the derivatives by them, `places` where they
    /// stand among the values of all tables, and `rho` has no part of them. [`Sensitivities::table_product`] takes sums of them to ρ.
    ///
    /// It is there where [`SensitivityDims::product_columns`] is not zero, the other products also where [`Sensitivities::projection_columns`] is not; a
    /// system that has the lists alone leaves them out.
    #[allow(clippy::too_many_arguments, reason = "what a product reads and writes")]
    fn newton_product(
        &self,
        at: Motion<'_, Self::S>,
        lambda: &[Self::S],
        y: &[Self::S],
        w: &mut [Self::S],
        z: &mut [Self::S],
        zd: &mut [Self::S],
        rho: &mut [Self::S],
        read: &mut [Self::S],
        places: &mut [Self::S],
    ) -> Result<(), EvalError> {
        let _ = (at, lambda, y, w, z, zd, rho, read, places);
        Err(EvalError::Absent { bundle: "newton_product" })
    }

    /// Writes the derivatives of ydd_rowsᵀ (Φdd; Ψd) by zd.
    fn acceleration_product(
        &self,
        at: Motion<'_, Self::S>,
        ydd: &[Self::S],
        w: &mut [Self::S],
        zd: &mut [Self::S],
    ) -> Result<(), EvalError> {
        let _ = (at, ydd, w, zd);
        Err(EvalError::Absent { bundle: "acceleration_product" })
    }

    /// Writes the derivatives of ydᵀ (M d + Bᵀσ; Φd; Ψ) + yddᵀ (M e + Bᵀκ; Φdd; Ψd) by z and ρ; tables as in [`Sensitivities::newton_product`].
    #[allow(clippy::too_many_arguments, reason = "what a product reads and writes")]
    fn projection_product(
        &self,
        at: Motion<'_, Self::S>,
        impulses: Impulses<'_, Self::S>,
        yd: &[Self::S],
        ydd: &[Self::S],
        w: &mut [Self::S],
        z: &mut [Self::S],
        rho: &mut [Self::S],
        read: &mut [Self::S],
        places: &mut [Self::S],
    ) -> Result<(), EvalError> {
        let _ = (at, impulses, yd, ydd, w, z, rho, read, places);
        Err(EvalError::Absent { bundle: "projection_product" })
    }

    /// Writes the derivatives of ydᵀ P d + yddᵀ P e by z, zd, zdd, λ and ρ, where P is the symmetric part of W = M + γh C + βh² K; of `yd`, `ydd`
    /// the weights of coordinates count, and of the impulses d and e. It is there where [`SensitivityDims::tangent_product`] is not zero.
    #[allow(clippy::too_many_arguments, reason = "what a product reads and writes")]
    fn tangent_product(
        &self,
        at: Motion<'_, Self::S>,
        lambda: &[Self::S],
        weights: Weights<Self::S>,
        impulses: Impulses<'_, Self::S>,
        yd: &[Self::S],
        ydd: &[Self::S],
        w: &mut [Self::S],
        z: &mut [Self::S],
        zd: &mut [Self::S],
        zdd: &mut [Self::S],
        multipliers: &mut [Self::S],
        rho: &mut [Self::S],
    ) -> Result<(), EvalError> {
        let _ = (at, lambda, weights, impulses, yd, ydd, w, z, zd, zdd, multipliers, rho);
        Err(EvalError::Absent { bundle: "tangent_product" })
    }

    /// Writes the derivatives of yᵀ s by ρ, with the values s of all tables of parameters.
    fn table_product(&self, y: &[Self::S], w: &mut [Self::S], rho: &mut [Self::S]) -> Result<(), EvalError> {
        let _ = (y, w, rho);
        Err(EvalError::Absent { bundle: "table_product" })
    }
}

/// Objectives and their derivatives, in coordinate form.
///
/// A row belongs to an objective; columns are those of (z, zd, zdd, λ, ρ), one after the other, λ of all rows.
pub trait ObjectiveDerivatives: System {
    /// Places of the derivatives of the integrands, and of those of the terminal terms.
    fn objective_places(&self) -> [Places<'_>; 2];

    /// Writes the integrands g, then their derivatives.
    fn integrand_derivatives(
        &self,
        at: Motion<'_, Self::S>,
        lambda: &[Self::S],
        w: &mut [Self::S],
        values: &mut [Self::S],
    ) -> Result<(), EvalError>;

    /// Writes the terminal terms w, then their derivatives.
    fn terminal_derivatives(
        &self,
        at: Motion<'_, Self::S>,
        lambda: &[Self::S],
        w: &mut [Self::S],
        values: &mut [Self::S],
    ) -> Result<(), EvalError>;
}

/// Places of the derivatives in joint form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JointPlaces<'a> {
    /// Of M, ∂tau/∂θ, ∂tau/∂v: (velocity, velocity).
    pub tangent: Places<'a>,
    /// Of c_θ, c_v: (row, velocity).
    pub rows: Places<'a>,
    /// Of tau_ρ: (velocity, parameter).
    pub force: Places<'a>,
    /// Of c_ρ: (row, parameter).
    pub row: Places<'a>,
}

/// Derivatives of accelerations and multipliers, in joint form, for trees and for mechanisms with constraints.
///
/// With tau = M vd + Φ_vᵀ λ + Aᵀ μ − Q and c = Φdd + a Φd + b Φ, for nonholonomic rows Ψd + a Ψ, accelerations and multipliers
/// satisfy tau = 0, c = e λ; hence
///
/// ```text
/// [ M    Φ_vᵀ ] [vd']     [ tau_θ θ' + tau_v v' + tau_ρ ]
/// [ Φ_v  −e   ] [λ' ] = − [ c_θ θ' + c_v v' + c_ρ       ]
/// ```
///
/// θ' is the change of position along the tangent, z' = N(z) θ'. Rows are the holonomic and the nonholonomic ones.
///
/// [`JointSensitivities::joint_linearise`] writes, at the places of [`JointPlaces`]:
///
/// | values | places |
/// |---|---|
/// | M, tau_θ, tau_v | tangent, each |
/// | c_θ, c_v | rows, each |
/// | tau_ρ | force |
/// | c_ρ | row |
pub trait JointSensitivities: System {
    /// Places of the derivatives.
    fn joint_places(&self) -> JointPlaces<'_>;

    /// Writes the list, and factors of the matrix for [`JointSensitivities::joint_solve`]. `vd` and `lambda` are what forward
    /// dynamics gives at the instant.
    #[allow(clippy::too_many_arguments, reason = "what a linearisation reads and writes")]
    fn joint_linearise(
        &self,
        at: At<'_, Self::S>,
        vd: &[Self::S],
        lambda: &[Self::S],
        stabilisation: Stabilisation<Self::S>,
        w: &mut [Self::S],
        values: &mut [Self::S],
        factors: &mut [Self::S],
    ) -> Result<(), EvalError>;

    /// Solves with the matrix above, in place: nv + joint_rows values.
    fn joint_solve(&self, factors: &[Self::S], w: &mut [Self::S], x: &mut [Self::S])
    -> Result<(), EvalError>;

    /// Solves for many right-hand sides, in place: row i of column k is `x[i * columns + k]`. `column`: for nv + joint_rows
    /// values. Column by column, unless a system knows better.
    #[inline(always)]
    fn joint_solve_many(
        &self,
        factors: &[Self::S],
        columns: usize,
        w: &mut [Self::S],
        column: &mut [Self::S],
        x: &mut [Self::S],
    ) -> Result<(), EvalError> {
        by_columns(columns, column, x, |x| self.joint_solve(factors, w, x))
    }

    /// Solves with the transposed matrix, which is the same: it is symmetric.
    #[inline(always)]
    fn joint_solve_transposed(
        &self,
        factors: &[Self::S],
        w: &mut [Self::S],
        x: &mut [Self::S],
    ) -> Result<(), EvalError> {
        self.joint_solve(factors, w, x)
    }

    /// Whether the system has [`JointSensitivities::differentiate_correction`].
    #[inline(always)]
    fn fuses_corrections(&self) -> bool {
        false
    }

    /// The correction onto the constraints, as [`ConstraintCorrection`](crate::ConstraintCorrection) finds it, and from the derivatives of θ and v by
    /// all parameters those of the correction dθ, dv; in `left` what the solutions leave of their equations beyond rounding, which is not positive
    /// where they count.
    #[allow(clippy::too_many_arguments, reason = "what a correction reads and writes")]
    fn differentiate_correction(
        &self,
        _at: At<'_, Self::S>,
        _p_rho: &[Self::S],
        _q_rho: &[Self::S],
        _w: &mut [Self::S],
        _dz: &mut [Self::S],
        _dv: &mut [Self::S],
        _phi: &mut [Self::S],
        _phid: &mut [Self::S],
        _theta_rho: &mut [Self::S],
        _v_rho: &mut [Self::S],
        _left: &mut [Self::S],
    ) -> Result<(), EvalError> {
        Err(EvalError::Absent { bundle: "differentiate_correction" })
    }

    /// Whether the system has [`JointSensitivities::transpose_correction`].
    #[inline(always)]
    fn fuses_transposed_corrections(&self) -> bool {
        false
    }

    /// From weights of dθ and dv, in a column for each objective, those of θ, v and the parameters before the correction; `left` as above.
    #[allow(clippy::too_many_arguments, reason = "what a correction reads and writes")]
    fn transpose_correction(
        &self,
        _at: At<'_, Self::S>,
        _z_bar: &[Self::S],
        _zd_bar: &[Self::S],
        _w: &mut [Self::S],
        _theta_bar: &mut [Self::S],
        _v_bar: &mut [Self::S],
        _rho_bar: &mut [Self::S],
        _left: &mut [Self::S],
    ) -> Result<(), EvalError> {
        Err(EvalError::Absent { bundle: "transpose_correction" })
    }
}

/// Objectives and their derivatives, in joint form.
///
/// A row belongs to an objective; columns are those of (θ, v, vd, λ, ρ), one after the other, λ of the holonomic and the
/// nonholonomic rows.
pub trait JointObjectiveDerivatives: System {
    /// Places of the derivatives of the integrands, and of those of the terminal terms.
    fn joint_objective_places(&self) -> [Places<'_>; 2];

    /// Whether the system has [`JointObjectiveDerivatives::differentiate_rate`].
    #[inline(always)]
    fn fuses_rates(&self) -> bool {
        false
    }

    /// Accelerations and multipliers under the constraints, integrands, and from the derivatives of θ and v by all parameters those of the
    /// accelerations and of the integrands.
    #[allow(clippy::too_many_arguments, reason = "what a stage reads and writes")]
    fn differentiate_rate(
        &self,
        _at: At<'_, Self::S>,
        _stabilisation: Stabilisation<Self::S>,
        _p_rho: &[Self::S],
        _q_rho: &[Self::S],
        _w: &mut [Self::S],
        _zd: &mut [Self::S],
        _vd: &mut [Self::S],
        _lambda: &mut [Self::S],
        _vd_rho: &mut [Self::S],
        _integrands: &mut [Self::S],
        _integrands_rho: &mut [Self::S],
    ) -> Result<(), EvalError> {
        Err(EvalError::Absent { bundle: "differentiate_rate" })
    }

    /// Whether the system has [`JointObjectiveDerivatives::transpose_rate`].
    #[inline(always)]
    fn fuses_transposed_rates(&self) -> bool {
        false
    }

    /// Integrands; and with the weights `a_bar` of accelerations, in a column for each objective, and `psi_bar` of the objectives, each in its own
    /// column, the weights of θ, v and the parameters. `vd` and `lambda` are what forward dynamics gives at the instant.
    #[allow(clippy::too_many_arguments, reason = "what a stage reads and writes")]
    fn transpose_rate(
        &self,
        _at: At<'_, Self::S>,
        _vd: &[Self::S],
        _lambda: &[Self::S],
        _stabilisation: Stabilisation<Self::S>,
        _a_bar: &[Self::S],
        _psi_bar: &[Self::S],
        _w: &mut [Self::S],
        _integrands: &mut [Self::S],
        _theta_bar: &mut [Self::S],
        _v_bar: &mut [Self::S],
        _rho_bar: &mut [Self::S],
    ) -> Result<(), EvalError> {
        Err(EvalError::Absent { bundle: "transpose_rate" })
    }

    /// Writes the integrands g, then their derivatives.
    fn joint_integrand_derivatives(
        &self,
        at: At<'_, Self::S>,
        vd: &[Self::S],
        lambda: &[Self::S],
        w: &mut [Self::S],
        values: &mut [Self::S],
    ) -> Result<(), EvalError>;

    /// Writes the terminal terms w, then their derivatives.
    fn joint_terminal_derivatives(
        &self,
        at: At<'_, Self::S>,
        vd: &[Self::S],
        lambda: &[Self::S],
        w: &mut [Self::S],
        values: &mut [Self::S],
    ) -> Result<(), EvalError>;
}
