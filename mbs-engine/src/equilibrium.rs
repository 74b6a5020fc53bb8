//! Static equilibrium: a position in which a model stays at rest, and the forces of its constraints there.
//!
//! Input: a model, and the position the search begins at. Output: z and λ with r(z, λ) = 0 and Φ(z) = 0 at rest, or what could
//! not be balanced. Time stands still: constraints are those of the given time.
//!
//! | symbol | meaning |
//! |---|---|
//! | F | (r, Φ) at zd = zdd = 0 |
//! | J | `[[r_z, Φ_zᵀ, Aᵀ], [Φ_z, 0, 0]]` |
//! | S | 1/(largest entry of each row of J): F in lengths and angles |
//!
//! Coordinates, rows, forces and multipliers are in natural units ([`Units`]) inside of the search.
//!
//! Newton's step is the solution (dz, λ_next) of least norm of the linearised equations, so directions without stiffness (a
//! vehicle may stand anywhere) and redundant constraints do no harm. It is cut short until |S F| becomes smaller.

use crate::Interpreted;
use crate::slopes::{By, Equations, ROUNDING, SMALL, least_norm};
use crate::verify::Instant;
use mbs_runtime::{Constrained, EvalError, Inputs, Motion, Names, Quantity, System, Units};
use nalgebra::{DMatrix, DVector};

/// Steps, and cuts of each.
const MAX_STEPS: usize = 200;
const MAX_CUTS: usize = 40;
/// Longest step of positions, in units of max(1, ‖z‖).
const LONGEST: f64 = 0.2;
/// |S F| that counts as balanced, in units of max(1, ‖z‖).
const BALANCED: f64 = 1e-11;
/// Singular values below this part of the largest are those of directions without stiffness.
const RANK: f64 = 1e-9;
/// Stiffness over inertia of a spring that stands for none, 1/s²: that of a hundred radians a second.
const SOFT: f64 = 1e4;
/// A cut step must gain at least this part of what a straight line promises.
const GAIN: f64 = 1e-4;

/// An equilibrium.
#[derive(Clone, Debug)]
pub struct Equilibrium {
    /// Where it is, at rest, with the multipliers of all rows.
    pub instant: Instant,
    /// Steps it took.
    pub steps: usize,
    /// Largest entry of S F.
    pub residual: f64,
}

/// Why there is no equilibrium.
#[derive(Clone, Debug)]
pub enum EquilibriumError {
    /// The equations have no values there.
    Eval(EvalError),
    /// The matrix of Newton's step is not finite.
    Singular,
    /// Something stays unbalanced.
    Unbalanced {
        /// Steps that were taken.
        steps: usize,
        /// Largest entry of S F.
        residual: f64,
        /// What is farthest from balance, by name, worst first: coordinates whose forces are left over, constraints that do
        /// not hold; with r or Φ.
        worst: Vec<(String, f64)>,
    },
}

impl From<EvalError> for EquilibriumError {
    fn from(error: EvalError) -> Self {
        EquilibriumError::Eval(error)
    }
}

impl EquilibriumError {
    /// The error with the model's names.
    pub fn describe(&self, model: &Interpreted) -> String {
        match self {
            EquilibriumError::Eval(error) => format!("no equilibrium found: {}", error.describe(model)),
            error => error.to_string(),
        }
    }
}

impl core::fmt::Display for EquilibriumError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            EquilibriumError::Eval(error) => error.fmt(f),
            EquilibriumError::Singular => write!(f, "the equations of equilibrium are not finite"),
            EquilibriumError::Unbalanced { steps, worst, .. } => {
                write!(f, "no equilibrium found: after {steps} steps there is still")?;
                for (i, (name, left)) in worst.iter().enumerate() {
                    write!(f, "{} {name} ({left:.3e})", if i == 0 { "" } else { "," })?;
                }
                write!(f, "; give what moves there a support, or start nearer to rest")
            }
        }
    }
}

impl std::error::Error for EquilibriumError {}

/// Constraints that move by themselves where everything else rests, by name and rate: drives, for which there is no rest.
pub fn moving_constraints(model: &Interpreted, at: &Instant) -> Result<Vec<(String, f64)>, EvalError> {
    let dims = model.dims();
    let zero = vec![0.0; dims.nq];
    let motion = Motion { t: at.t, z: &at.z, zd: &zero, zdd: &zero, u: &at.u };
    let (mut w, mut rates) = (vec![0.0; dims.workspace], vec![0.0; dims.rows()]);
    // Φ_t and b: exactly zero unless a constraint prescribes a motion
    model.constraint_rates(motion, &mut w, &mut rates)?;
    let holonomic = dims.n_holonomic + dims.n_normalisation;
    let place = |i: usize| match i < holonomic {
        true => (Quantity::Holonomic, i),
        false => (Quantity::Nonholonomic, i - holonomic),
    };
    let moving = rates
        .iter()
        .enumerate()
        .filter(|(i, rate)| **rate != 0.0 && (*i < dims.n_holonomic || *i >= holonomic));
    Ok(moving
        .map(|(i, &rate)| {
            let (quantity, index) = place(i);
            (model.name(quantity, index).unwrap_or("?").to_owned(), rate)
        })
        .collect())
}

/// Finds an equilibrium near a position, at a time.
pub fn find(model: &Interpreted, t: f64, z: &[f64]) -> Result<Equilibrium, EquilibriumError> {
    let dims = model.dims();
    let (equations, units) = (Equations::new(model), model.units());
    let mut u = vec![0.0; dims.nu];
    model.input_signals().at(t, &mut u);
    let rest = vec![0.0; dims.nq];
    let mut at = Instant { t, z: z.to_vec(), zd: rest.clone(), zdd: rest, u, lambda: vec![0.0; dims.rows()] };
    unbalanced(&equations, units, &at)?;
    let inertia = equations.slopes(&at, By::Acceleration)?.r.diagonal();
    let mut residual = f64::INFINITY;
    let mut scale = DVector::zeros(0);
    for steps in 0..MAX_STEPS {
        let forces = unbalanced(&equations, units, &at)?;
        let (jacobian, kappa) = jacobian(&equations, &dims, &at)?;
        scale = row_scale(&jacobian, &inertia);
        let scaled = forces.component_mul(&scale);
        let size = at.z.iter().enumerate().fold(1.0, |m: f64, (j, x)| m.max(x.abs() / units.coordinate(j)));
        let before = residual;
        residual = scaled.amax();
        // Balanced, and rounding lets it come no nearer.
        if residual <= BALANCED * size && residual > 0.1 * before || residual == 0.0 {
            return Ok(Equilibrium { instant: at, steps, residual });
        }
        let mut matrix = jacobian;
        for (i, mut row) in matrix.row_iter_mut().enumerate() {
            row *= scale[i];
        }
        if !matrix.iter().chain(scaled.iter()).all(|x| x.is_finite()) {
            return Err(EquilibriumError::Singular);
        }
        // All of λ anew, and not a change of it: constraints that depend on each other only where they hold would leave in it
        // what they were far from there. r + r_z dz + Φ_zᵀ (λ_next − λ) = 0
        let mut b = DMatrix::from_column_slice(scaled.len(), 1, (-&scaled).as_slice());
        for (k, lambda) in at.lambda.iter().enumerate() {
            b.column_mut(0).axpy(lambda * units.row(k) / kappa, &matrix.column(dims.nq + k), 1.0);
        }
        let (step, _) = least_norm(matrix, &b, RANK).ok_or(EquilibriumError::Singular)?;
        let longest = step.rows(0, dims.nq).amax();
        let mut length = (LONGEST * size / longest).min(1.0);
        let mut found = None;
        for _ in 0..MAX_CUTS {
            let mut there = at.clone();
            for (j, z) in there.z.iter_mut().enumerate() {
                *z += length * step[j] * units.coordinate(j);
            }
            for (k, lambda) in there.lambda.iter_mut().enumerate() {
                *lambda += length * (kappa * step[dims.nq + k] / units.row(k) - *lambda);
            }
            let left = unbalanced(&equations, units, &there)
                .map_or(f64::INFINITY, |forces| forces.component_mul(&scale).norm());
            // A balanced position may be left for another as good: the next step decides.
            if left <= (1.0 - GAIN * length) * scaled.norm() || (residual <= BALANCED * size && length == 1.0)
            {
                found = Some(there);
                break;
            }
            length *= 0.5;
        }
        match found {
            Some(there) => at = there,
            None if residual <= BALANCED * size => return Ok(Equilibrium { instant: at, steps, residual }),
            None => return Err(named(model, &dims, steps, &scaled, &scale)),
        }
    }
    let scaled = unbalanced(&equations, units, &at)?.component_mul(&scale);
    Err(named(model, &dims, MAX_STEPS, &scaled, &scale))
}

/// F
fn unbalanced(equations: &Equations<'_>, units: Units<'_>, at: &Instant) -> Result<DVector<f64>, EvalError> {
    let [r, phi] = equations.values(at)?;
    let dims = equations.dims();
    let holonomic = dims.n_holonomic + dims.n_normalisation;
    let forces = r.iter().enumerate().map(|(j, r)| r * units.coordinate(j));
    let rows = phi[..holonomic].iter().enumerate().map(|(k, phi)| phi / units.row(k));
    Ok(DVector::from_iterator(dims.nq + holonomic, forces.chain(rows)))
}

/// J with multipliers in units of κ, the largest stiffness, so that its columns are of one size.
fn jacobian(
    equations: &Equations<'_>,
    dims: &mbs_runtime::Dims,
    at: &Instant,
) -> Result<(DMatrix<f64>, f64), EvalError> {
    let (nq, holonomic) = (dims.nq, dims.n_holonomic + dims.n_normalisation);
    let by_z = equations.slopes(at, By::Coordinate)?;
    let by_lambda = equations.slopes(at, By::Multiplier)?;
    let stiffness = by_z.r.amax();
    let kappa = if stiffness > 0.0 { stiffness } else { 1.0 };
    let mut jacobian = DMatrix::zeros(nq + holonomic, nq + dims.rows());
    jacobian.view_mut((0, 0), (nq, nq)).copy_from(&by_z.r);
    jacobian.view_mut((0, nq), (nq, dims.rows())).copy_from(&(by_lambda.r * kappa));
    jacobian.view_mut((nq, 0), (holonomic, nq)).copy_from(&by_z.phi.rows(0, holonomic));
    Ok((jacobian, kappa))
}

/// S; forces along what has no stiffness at all are measured as if inertia there were on a soft spring, or by the largest stiffness there
/// is if that is less. Equations that say little here are not blown up: what they say may be rounding.
fn row_scale(jacobian: &DMatrix<f64>, inertia: &DVector<f64>) -> DVector<f64> {
    let nq = inertia.len();
    let rows = jacobian.nrows() - nq;
    let largest = [jacobian.rows(0, nq).amax(), if rows > 0 { jacobian.rows(nq, rows).amax() } else { 0.0 }];
    let scales = jacobian.row_iter().enumerate().map(|(i, row)| {
        let largest = largest[usize::from(i >= nq)];
        let size = row.amax();
        let size = if i >= nq {
            size.max(SMALL * largest)
        } else if size <= ROUNDING * largest {
            let soft = SOFT * inertia[i].abs();
            if soft > 0.0 { soft.min(largest) } else { largest }
        } else {
            size
        };
        if size > 0.0 { 1.0 / size } else { 1.0 }
    });
    DVector::from_iterator(jacobian.nrows(), scales)
}

fn named(
    model: &Interpreted,
    dims: &mbs_runtime::Dims,
    steps: usize,
    scaled: &DVector<f64>,
    scale: &DVector<f64>,
) -> EquilibriumError {
    let name = |i: usize| {
        let (quantity, index) = if i < dims.nq {
            (Quantity::Coordinate, i)
        } else if i < dims.nq + dims.n_holonomic {
            (Quantity::Holonomic, i - dims.nq)
        } else {
            (Quantity::Normalisation, i - dims.nq - dims.n_holonomic)
        };
        let word = if i < dims.nq { "the force along" } else { "the equation" };
        format!("{word} `{}`", model.name(quantity, index).unwrap_or("?"))
    };
    let units = model.units();
    let unit = |i: usize| if i < dims.nq { 1.0 / units.coordinate(i) } else { units.row(i - dims.nq) };
    let mut order: Vec<usize> = (0..scaled.len()).collect();
    order.sort_by(|&a, &b| scaled[b].abs().total_cmp(&scaled[a].abs()));
    let residual = scaled.amax();
    let worst = order.into_iter().take(5).filter(|&i| scaled[i].abs() > 1e-3 * residual);
    EquilibriumError::Unbalanced {
        steps,
        residual,
        worst: worst.map(|i| (name(i), scaled[i] / scale[i] * unit(i))).collect(),
    }
}
