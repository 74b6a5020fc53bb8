//! Changes that keep constraints, where those depend on each other.
//!
//! Input: an instant in which the constraints hold. Output: changes of positions, velocities and parameters under which they
//! still do, to first order; for all others such constraints contradict each other, no accelerations satisfy them, and a
//! regularised solution has derivatives of the size of its regularisation's inverse.
//!
//! | symbol | meaning |
//! |---|---|
//! | x | (θ', v'), a change of positions along the tangent and of velocities |
//! | G | derivatives of (Φ, Φd, Ψ) by θ and v, of unit rows |
//! | g_k | derivatives by parameter k, divided likewise |
//!
//! Of multipliers only their forces Φ_vᵀ λ' are known: what they are beside that is a choice (that of least norm), which turns with
//! the constraints, and a solution of the linearised equations does not tell.
//!
//! Near a unit vector e the admissible change is e − G⁺ G e; beside a change of parameter k by one it is −G⁺ g_k. G⁺ is that of
//! damped normal equations, refined.

use super::point::Point;
use super::{Columns, STEP};
use crate::Interpreted;
use mbs_codegen::symbols::Group;
use mbs_runtime::linear::blocks::holonomic_rows;
use mbs_runtime::{Complex64, Constrained, Motion, Scalar, System, euler_parameters};

/// Rows of unit length that orthogonalisation reduces below this depend on each other.
const DEPENDENT: f64 = 1e-6;
/// Damping of normal equations with unit rows, and refinements, each of which leaves about as much.
const DAMPING: f64 = 1e-9;
const REFINEMENTS: usize = 6;

/// An admissible change.
#[derive(Clone, Debug, Default)]
pub(super) struct Direction {
    /// θ'
    pub positions: Vec<f64>,
    /// v'
    pub velocities: Vec<f64>,
}

/// What can be known where constraints depend on each other.
#[derive(Clone, Debug, Default)]
pub(super) struct Admissible {
    /// Changes near those of single positions, of single velocities, and beside those of single parameters.
    pub directions: [Vec<Direction>; 3],
    /// Φ_v and A, by rows.
    jacobian: Vec<Vec<f64>>,
}

/// `None` where constraints are independent, so that all changes are admissible, or where the model has no bundles to tell.
pub(super) fn admissible(
    model: &Interpreted,
    complex: &Interpreted<Complex64>,
    point: &Point<f64>,
) -> Option<Admissible> {
    let dims = model.dims();
    if dims.joint_rows() == 0 {
        return None;
    }
    let (nv, p) = (dims.nv, dims.sensitivity.parameters);
    let lifted = point.complex();
    let step = Complex64::new(0.0, STEP);
    let mut unit = vec![0.0; nv];
    let mut columns = Vec::with_capacity(2 * nv + p);
    for k in 0..2 * nv {
        let mut moved = lifted.clone();
        unit.fill(0.0);
        unit[k % nv] = 1.0;
        let zero = vec![0.0; nv];
        let (positions, velocities) = if k < nv { (&unit, &zero) } else { (&zero, &unit) };
        moved.move_along(complex, positions, velocities, step)?;
        columns.push(rows(complex, &moved)?);
    }
    for &(group, place) in &model.program().seeds {
        let (mut moved, mut changed) = (lifted.clone(), None);
        match group {
            Group::U => moved.u[place as usize] += step,
            _ => changed.insert(complex.clone()).move_parameter(place as usize, step),
        }
        columns.push(rows(changed.as_ref().unwrap_or(complex), &moved)?);
    }
    let mut matrix = Rows::of(&columns, 2 * nv);
    // Φd and Ψ by v are Φ_v and A.
    let jacobian: Vec<Vec<f64>> =
        matrix.rows[dims.n_holonomic..].iter().map(|row| row[nv..2 * nv].to_vec()).collect();
    if independent(&jacobian) {
        return None;
    }
    matrix.normalise();
    let direction = |x: Vec<f64>| Direction { positions: x[..nv].to_vec(), velocities: x[nv..].to_vec() };
    let near = |j: usize| {
        let mut x = matrix.least_change(&matrix.column(j)).iter().map(|x| -x).collect::<Vec<f64>>();
        x[j] += 1.0;
        direction(x)
    };
    let beside = |k: usize| {
        let right: Vec<f64> = matrix.column(2 * nv + k).iter().map(|g| -g).collect();
        direction(matrix.least_change(&right))
    };
    let directions =
        [(0..nv).map(near).collect(), (nv..2 * nv).map(near).collect(), (0..p).map(beside).collect()];
    Some(Admissible { directions, jacobian })
}

impl Admissible {
    /// Accelerations and forces, Φ_vᵀ λ, from accelerations and multipliers.
    pub(super) fn forces<S: Scalar>(&self, solution: &[S]) -> Vec<S> {
        let nv = self.jacobian.first().map_or(0, Vec::len);
        let (vd, lambda) = solution.split_at(nv.min(solution.len()));
        let mut forces = vec![S::ZERO; nv];
        for (row, &lambda) in self.jacobian.iter().zip(lambda) {
            forces.iter_mut().zip(row).for_each(|(force, &entry)| *force += S::from_f64(entry) * lambda);
        }
        [vd, &forces].concat()
    }
}

/// Derivatives along the directions, from those by positions, velocities and parameters.
pub(super) fn combine(directions: &[Vec<Direction>; 3], by: [&Columns; 3]) -> [Columns; 3] {
    let [by_positions, by_velocities, by_parameters] = by;
    let along = |direction: &Direction, own: Option<&Vec<f64>>| -> Vec<f64> {
        let rows = by_positions.first().map_or(0, Vec::len);
        let mut sum = own.cloned().unwrap_or_else(|| vec![0.0; rows]);
        let parts = [(by_positions, &direction.positions), (by_velocities, &direction.velocities)];
        for (columns, weights) in parts {
            for (column, weight) in columns.iter().zip(weights) {
                sum.iter_mut().zip(column).for_each(|(sum, x)| *sum += weight * x);
            }
        }
        sum
    };
    let [positions, velocities, parameters] = directions;
    [
        positions.iter().map(|direction| along(direction, None)).collect(),
        velocities.iter().map(|direction| along(direction, None)).collect(),
        parameters.iter().zip(by_parameters).map(|(direction, own)| along(direction, Some(own))).collect(),
    ]
}

/// Derivatives of Φ, then of Φd and Ψ, from complex values.
fn rows(model: &Interpreted<Complex64>, at: &Point<Complex64>) -> Option<Vec<f64>> {
    let dims = model.dims();
    let zeros = |n| vec![Complex64::ZERO; n];
    let (mut zd, mut r, mut w) = (zeros(dims.nq), zeros(dims.nq), zeros(dims.workspace));
    let (mut phi, mut phid) = (zeros(dims.rows()), zeros(dims.rows()));
    euler_parameters::coordinate_rates(model, &at.z, &at.v, &mut zd).ok()?;
    let motion = Motion { t: at.t, z: &at.z, zd: &zd, zdd: &at.zdd, u: &at.u };
    model.residual(motion, &at.lambda, &mut w, &mut r, &mut phi).ok()?;
    model.constraint_rates(motion, &mut w, &mut phid).ok()?;
    let holonomic = dims.n_holonomic;
    let parts = phi[..holonomic].iter().chain(&phid[..holonomic]).chain(&phid[holonomic_rows(&dims)..]);
    Some(parts.map(|value| value.im / STEP).collect())
}

/// A matrix by its rows, the first columns of which are unknowns.
struct Rows {
    rows: Vec<Vec<f64>>,
    unknowns: usize,
}

impl Rows {
    fn of(columns: &[Vec<f64>], unknowns: usize) -> Self {
        let count = columns.first().map_or(0, Vec::len);
        let row = |i: usize| columns.iter().map(|column| column[i]).collect();
        Rows { rows: (0..count).map(row).collect(), unknowns }
    }

    fn column(&self, j: usize) -> Vec<f64> {
        self.rows.iter().map(|row| row[j]).collect()
    }

    /// Makes rows of unit length in the unknowns.
    fn normalise(&mut self) {
        for row in &mut self.rows {
            let size = dot(&row[..self.unknowns], &row[..self.unknowns]).sqrt();
            if size > 0.0 {
                row.iter_mut().for_each(|x| *x /= size);
            }
        }
    }

    /// The least x with G x = right, as far as there is one.
    fn least_change(&self, right: &[f64]) -> Vec<f64> {
        let rows: Vec<&[f64]> = self.rows.iter().map(|row| &row[..self.unknowns]).collect();
        let mut x = vec![0.0; self.unknowns];
        for _ in 0..REFINEMENTS {
            // (G Gᵀ + δ) y = right − G x, x += Gᵀ y
            let mut y: Vec<f64> = rows.iter().zip(right).map(|(row, right)| right - dot(row, &x)).collect();
            let mut normal: Vec<Vec<f64>> =
                rows.iter().map(|a| rows.iter().map(|b| dot(a, b)).collect()).collect();
            for (i, row) in normal.iter_mut().enumerate() {
                row[i] += DAMPING;
            }
            solve(&mut normal, &mut y);
            for (row, y) in rows.iter().zip(&y) {
                x.iter_mut().zip(*row).for_each(|(x, g)| *x += y * g);
            }
        }
        x
    }
}

/// Whether rows are.
fn independent(rows: &[Vec<f64>]) -> bool {
    let mut basis: Vec<Vec<f64>> = Vec::new();
    for row in rows {
        let mut rest = unit(row);
        // Twice is enough.
        for _ in 0..2 {
            for known in &basis {
                let part = dot(known, &rest);
                rest.iter_mut().zip(known).for_each(|(x, known)| *x -= part * known);
            }
        }
        if dot(&rest, &rest).sqrt() <= DEPENDENT {
            return false;
        }
        basis.push(unit(&rest));
    }
    true
}

/// Elimination without pivoting, for a positive definite matrix.
fn solve(matrix: &mut [Vec<f64>], x: &mut [f64]) {
    let n = x.len();
    for k in 0..n {
        let (done, rest) = matrix.split_at_mut(k + 1);
        let pivot = &done[k];
        for (i, row) in rest.iter_mut().enumerate() {
            let factor = row[k] / pivot[k];
            row[k..].iter_mut().zip(&pivot[k..]).for_each(|(a, b)| *a -= factor * b);
            x[k + 1 + i] -= factor * x[k];
        }
    }
    for k in (0..n).rev() {
        x[k] = (x[k] - dot(&matrix[k][k + 1..], &x[k + 1..])) / matrix[k][k];
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn unit(a: &[f64]) -> Vec<f64> {
    let size = dot(a, a).sqrt();
    a.iter().map(|x| if size > 0.0 { x / size } else { 0.0 }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_repeat_each_other_are_seen_and_kept() {
        let columns = [vec![1.0, 2.0], vec![1.0, 2.0], vec![-0.3, -0.6]];
        let mut matrix = Rows::of(&columns, 2);
        assert!(!independent(&matrix.rows) && independent(&matrix.rows[1..]));
        matrix.normalise();
        let x = matrix.least_change(&matrix.column(2));
        assert!(x.iter().all(|x| (x + 0.15).abs() < 1e-12), "{x:?}");
    }
}
