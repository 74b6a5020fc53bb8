//! What a mechanism with constraints is to the runtime.
//!
//! Two forms. *Coordinate form* (z, zd, zdd), for implicit integrators: one residual
//!
//! r(t, z, zd, zdd, λ) = M zdd + Φ_zᵀ λ + Aᵀ μ − Q,
//!
//! its exact tangent, and the constraints at three levels. Euler parameters carry a normalisation row each.
//! *Joint form* (v, vd), for explicit ones: accelerations and multipliers by one solve, no normalisation rows.
//!
//! | symbol | meaning | length |
//! |---|---|---|
//! | Φ | holonomic rows, then normalisation rows (pᵀp − 1)/2 | n_holonomic + n_normalisation |
//! | Ψ = A zd + b | nonholonomic rows, linear in the velocities | n_nonholonomic |
//! | λ | multipliers of all rows, in this order: holonomic, normalisation, nonholonomic | [`Dims::rows`] |
//! | W | M + γh r_zd + βh² r_z, with all of λ in r_z | nq × nq, sparse |
//!
//! # The leading matrix
//!
//! Newton's method in δ, with dz = βh² δ, dzd = γh δ, dzdd = δ, and both projections, solve
//!
//! ```text
//! [ W   Φ_zᵀ   Aᵀ ] [δ ]   [−r        ]
//! [ Φ_z −E     0  ] [dλ] = [−Φ/(βh²)  ]
//! [ A'  0     −E' ] [dμ]   [−Ψ/(γh)   ]
//! ```
//!
//! where A' = A + (βh/γ) Ψ_z (A itself in the projections) and E, E' are small, positive and diagonal. It is stored as
//! [`Dims::n_matrix`] numbers: the entries of W, of Φ_z, of A, of A' at the places of [`Pattern`], then the diagonal of
//! (E, E'). Bundles write all but the last [`Dims::rows`]; those are the solver's.

use crate::error::EvalError;
use crate::scalar::Scalar;
use crate::system::{At, Dims, Quantity, System};

/// An instant in coordinate form.
#[derive(Clone, Copy, Debug)]
pub struct Motion<'a, S> {
    /// Time.
    pub t: S,
    /// Coordinates.
    pub z: &'a [S],
    /// Their rates.
    pub zd: &'a [S],
    /// Their accelerations.
    pub zdd: &'a [S],
    /// Inputs.
    pub u: &'a [S],
}

/// How an implicit integrator weighs the parts of the tangent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weights<S> {
    /// dzd/dzdd = γh
    pub velocity: S,
    /// dz/dzdd = βh²
    pub position: S,
    /// dz/dzd = βh/γ
    pub ratio: S,
}

/// Where the entries of the leading matrix stand: (row, column), sorted by row, then by column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern<'a> {
    /// Entries of W. With (i, j) there is (j, i).
    pub tangent: &'a [(u32, u32)],
    /// Entries of Φ_z, normalisation rows included: (row of Φ, coordinate).
    pub holonomic: &'a [(u32, u32)],
    /// Entries of A and of A', both at the same places: (row of Ψ, coordinate).
    pub nonholonomic: &'a [(u32, u32)],
}

/// No pivot of the leading matrix may be zero or not finite; `columns` are the unknowns the pivots belong to.
#[inline(always)]
pub fn check_factors<S: Scalar>(dims: &Dims, pivots: &[S], columns: &[u32]) -> Result<(), EvalError> {
    let sections = [
        (Quantity::Coordinate, dims.nq),
        (Quantity::Holonomic, dims.n_holonomic),
        (Quantity::Normalisation, dims.n_normalisation),
        (Quantity::Nonholonomic, dims.n_nonholonomic),
    ];
    check_elimination(pivots, columns, &sections)
}

/// The same for the elimination in joint form.
#[inline(always)]
pub fn check_solution<S: Scalar>(dims: &Dims, pivots: &[S], columns: &[u32]) -> Result<(), EvalError> {
    let sections = [
        (Quantity::Velocity, dims.nv),
        (Quantity::Holonomic, dims.n_holonomic),
        (Quantity::Nonholonomic, dims.n_nonholonomic),
    ];
    check_elimination(pivots, columns, &sections)
}

#[inline(always)]
fn check_elimination<S: Scalar>(
    pivots: &[S],
    columns: &[u32],
    sections: &[(Quantity, usize)],
) -> Result<(), EvalError> {
    let good = |pivot: &S| pivot.is_finite() & (pivot.real() != 0.0);
    if pivots.iter().fold(true, |all, pivot| all & good(pivot)) {
        return Ok(());
    }
    let step = pivots.iter().position(|pivot| !good(pivot)).unwrap_or(0);
    let mut index = columns.get(step).map_or(0, |&column| column as usize);
    for &(quantity, count) in sections {
        if index < count {
            return Err(EvalError::SingularLeading { quantity, index });
        }
        index -= count;
    }
    Err(EvalError::SingularLeading { quantity: Quantity::Coordinate, index })
}

/// Parts of an implicit step, each at once, where the generator has chosen so: for rows that are all active and independent. A system without
/// them implements nothing.
#[allow(clippy::too_many_arguments, reason = "what a part of a step reads and writes")]
pub trait FusedSteps: System {
    /// Whether the system has the bundles of this trait.
    #[inline(always)]
    fn fuses_steps(&self) -> bool {
        false
    }

    /// [`Constrained::newton`], [`Constrained::factor`] with E = `compliance`, and the solution x for −(r, Φ/(βh²), Ψ/(γh)).
    fn newton_step(
        &self,
        _at: Motion<'_, Self::S>,
        _lambda: &[Self::S],
        _weights: Weights<Self::S>,
        _compliance: &[Self::S],
        _w: &mut [Self::S],
        _phi: &mut [Self::S],
        _matrix: &mut [Self::S],
        _factors: &mut [Self::S],
        _x: &mut [Self::S],
    ) -> Result<(), EvalError> {
        Err(EvalError::Absent { bundle: "newton_step" })
    }

    /// [`Constrained::residual`], and the solution x for −(r, Φ/(βh²), Ψ/(γh)) by factors that are there.
    fn correct_step(
        &self,
        _at: Motion<'_, Self::S>,
        _lambda: &[Self::S],
        _weights: Weights<Self::S>,
        _factors: &[Self::S],
        _w: &mut [Self::S],
        _phi: &mut [Self::S],
        _x: &mut [Self::S],
    ) -> Result<(), EvalError> {
        Err(EvalError::Absent { bundle: "correct_step" })
    }

    /// Both projections in the norm of M with E = `compliance`, the second at the velocities that the first gives, each refined once: (d, σ)
    /// and (e, κ), and what they leave of (Φd, Ψ) and (Φdd, Ψd).
    fn project_step(
        &self,
        _at: Motion<'_, Self::S>,
        _compliance: &[Self::S],
        _w: &mut [Self::S],
        _velocity: &mut [Self::S],
        _acceleration: &mut [Self::S],
        _phid: &mut [Self::S],
        _phidd: &mut [Self::S],
    ) -> Result<(), EvalError> {
        Err(EvalError::Absent { bundle: "project_step" })
    }
}

/// Equations of motion with constraints, in coordinate form.
pub trait Constrained: FusedSteps {
    /// Places of the leading matrix's entries.
    fn pattern(&self) -> Pattern<'_>;

    /// Which coordinates are held while the mechanism is assembled, nq of them.
    fn held(&self) -> &[bool];

    /// Which coordinates follow from the others: their guesses select a branch of the assembly and count for nothing else.
    /// Coordinates beyond the slice do not.
    fn dependent(&self) -> &[bool] {
        &[]
    }

    /// Writes r and the constraints: Φ at (t, z), Ψ at (t, z, zd).
    fn residual(
        &self,
        at: Motion<'_, Self::S>,
        lambda: &[Self::S],
        w: &mut [Self::S],
        r: &mut [Self::S],
        phi: &mut [Self::S],
    ) -> Result<(), EvalError>;

    /// Writes r, the constraints, and W, Φ_z, A, A' into the leading matrix.
    #[allow(clippy::too_many_arguments, reason = "what Newton's method reads and writes")]
    fn newton(
        &self,
        at: Motion<'_, Self::S>,
        lambda: &[Self::S],
        weights: Weights<Self::S>,
        w: &mut [Self::S],
        r: &mut [Self::S],
        phi: &mut [Self::S],
        matrix: &mut [Self::S],
    ) -> Result<(), EvalError>;

    /// Writes M, Φ_z, A and again A (in the place of A') into the leading matrix.
    fn projection(
        &self,
        t: Self::S,
        z: &[Self::S],
        u: &[Self::S],
        w: &mut [Self::S],
        matrix: &mut [Self::S],
    ) -> Result<(), EvalError>;

    /// Writes Φd = Φ_z zd + Φ_t and Ψ; `at.zdd` is not read.
    fn constraint_rates(
        &self,
        at: Motion<'_, Self::S>,
        w: &mut [Self::S],
        phid: &mut [Self::S],
    ) -> Result<(), EvalError>;

    /// Writes Φdd = Φ_z zdd + (terms of zd and t) and Ψd.
    fn constraint_accelerations(
        &self,
        at: Motion<'_, Self::S>,
        w: &mut [Self::S],
        phidd: &mut [Self::S],
    ) -> Result<(), EvalError>;

    /// Factors the leading matrix in an order that is fixed for the model: an error where a pivot is zero or not finite.
    fn factor(&self, matrix: &[Self::S], w: &mut [Self::S], factors: &mut [Self::S])
    -> Result<(), EvalError>;

    /// Solves with the factors, in place: nq + rows values.
    fn solve(&self, factors: &[Self::S], w: &mut [Self::S], x: &mut [Self::S]) -> Result<(), EvalError>;

    /// Solves with the transposed matrix, in place.
    fn solve_transposed(
        &self,
        factors: &[Self::S],
        w: &mut [Self::S],
        x: &mut [Self::S],
    ) -> Result<(), EvalError>;

    /// Solves for many right-hand sides, in place: row i of column k is `x[i * columns + k]`. `column`: for nq + rows values.
    /// Column by column, unless a system knows better.
    #[inline(always)]
    fn solve_many(
        &self,
        factors: &[Self::S],
        columns: usize,
        w: &mut [Self::S],
        column: &mut [Self::S],
        x: &mut [Self::S],
    ) -> Result<(), EvalError> {
        by_columns(columns, column, x, |x| self.solve(factors, w, x))
    }
}

/// Solves for the columns of `x` one by one, each in `column`.
#[inline(always)]
pub(crate) fn by_columns<S: Scalar>(
    columns: usize,
    column: &mut [S],
    x: &mut [S],
    mut solve: impl FnMut(&mut [S]) -> Result<(), EvalError>,
) -> Result<(), EvalError> {
    for k in 0..columns {
        for (to, row) in column.iter_mut().zip(x.chunks_exact(columns.max(1))) {
            if let Some(&from) = row.get(k) {
                *to = from;
            }
        }
        solve(column)?;
        for (row, &from) in x.chunks_exact_mut(columns.max(1)).zip(column.iter()) {
            if let Some(to) = row.get_mut(k) {
                *to = from;
            }
        }
    }
    Ok(())
}

/// How accelerations answer a violated constraint: Φ_v vd − e λ = −(terms of v and t) − a Φd − b Φ, and for nonholonomic
/// rows A vd − e μ = −(terms of v and t) − a Ψ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stabilisation<S> {
    /// a = 2ξω
    pub rate: S,
    /// b = ω²
    pub value: S,
    /// e = 1/α: zero for exact constraints (index 1), positive for a penalty.
    pub compliance: S,
}

/// Accelerations of a mechanism with constraints, in joint form.
pub trait ConstrainedDynamics: System {
    /// Writes zd, vd, xd and the multipliers of the holonomic and the nonholonomic rows (no normalisation rows in this
    /// form). Where constraints are redundant the multipliers are those of least norm.
    #[allow(clippy::too_many_arguments, reason = "all results of one solve")]
    fn constrained_dynamics(
        &self,
        at: At<'_, Self::S>,
        stabilisation: Stabilisation<Self::S>,
        w: &mut [Self::S],
        zd: &mut [Self::S],
        vd: &mut [Self::S],
        xd: &mut [Self::S],
        lambda: &mut [Self::S],
    ) -> Result<(), EvalError>;
}

/// The way back onto the constraints, in joint form.
pub trait ConstraintCorrection: System {
    /// Writes the smallest corrections in the metric of M: dz with Φ_z dz = −Φ, dv with Φ_v dv = −Φd and A dv = −Ψ; and
    /// the values Φ, and Φd then Ψ, from which they start.
    #[allow(clippy::too_many_arguments, reason = "all results of one solve")]
    fn constraint_correction(
        &self,
        at: At<'_, Self::S>,
        w: &mut [Self::S],
        dz: &mut [Self::S],
        dv: &mut [Self::S],
        phi: &mut [Self::S],
        phid: &mut [Self::S],
    ) -> Result<(), EvalError>;
}

/// Constraints in joint form.
pub trait ConstraintRows: System {
    /// Which velocities are to be independent, nv of them; none lets elimination choose.
    fn independent(&self) -> &[bool] {
        &[]
    }

    /// Writes Φ; Φd then Ψ; and (Φ_v; A), by columns.
    fn constraint_rows(
        &self,
        at: At<'_, Self::S>,
        w: &mut [Self::S],
        phi: &mut [Self::S],
        phid: &mut [Self::S],
        jacobian: &mut [Self::S],
    ) -> Result<(), EvalError>;
}

/// What joints transmit.
pub trait Reactions: System {
    /// Writes, for every joint of the model in its order, force and torque that the parent puts on the child through the
    /// joint, at the child's joint point, world axes: six values a joint. `lambda` are the multipliers of the holonomic
    /// and the nonholonomic rows.
    fn reactions(
        &self,
        at: At<'_, Self::S>,
        vd: &[Self::S],
        lambda: &[Self::S],
        w: &mut [Self::S],
        reactions: &mut [Self::S],
    ) -> Result<(), EvalError>;
}

/// What a run is judged by: ψ = w(t_F) + ∫ g dt.
pub trait Objectives: System {
    /// Writes the integrands g and the terminal terms w. `lambda` as for [`Reactions`].
    fn objectives(
        &self,
        at: At<'_, Self::S>,
        vd: &[Self::S],
        lambda: &[Self::S],
        w: &mut [Self::S],
        integrands: &mut [Self::S],
        terminals: &mut [Self::S],
    ) -> Result<(), EvalError>;
}
