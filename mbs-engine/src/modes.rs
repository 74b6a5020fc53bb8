//! Linearisation about a motion, its eigenvalues and the shapes of its modes; with constraints of every kind.
//!
//! Input: a model and an instant that satisfies its constraints and equations of motion: an equilibrium, or steady motion. Output: the
//! matrix of its small changes in independent coordinates.
//!
//! | symbol | meaning |
//! |---|---|
//! | s | (z', zd'), a small change of the motion |
//! | G | derivatives of (Φ, Φd, Ψ) by s: changes that keep the constraints have G s = 0 |
//! | T | orthonormal basis of these changes: s = T q |
//! | A | d/dt s = A s: zdd' from M zdd' + Bᵀ λ' = −r_z z' − r_zd zd' and the accelerations of the constraints |
//! | n | Tᵀ A T, of as many rows as independent positions and velocities |
//!
//! Nonholonomic constraints bind velocities alone, so there are more positions than velocities, and eigenvalues that are zero.
//! Coordinates that nothing depends on (a distance travelled, the angle of a wheel) would add more; they are left out of s, and
//! their part of a shape is that of their rate.

use crate::Interpreted;
use crate::slopes::{By, Equations, least_norm, null_space};
use crate::verify::Instant;
use mbs_runtime::{EvalError, System};
use nalgebra::{Complex, DMatrix, DVector};

/// Singular values below this part of the largest are zero.
const RANK: f64 = 1e-10;
/// Singular values of n below this part of the largest are zero.
const ZERO: f64 = 1e-13;
/// Eigenvalues that differ by less, of their size, are equal: rounding splits those of multiplicity two by the root of its own size.
const SPLIT: f64 = 1e-7;
/// What leaves the constraints, or accelerates by itself, in units of the matrix, where the motion is not steady.
const UNSTEADY: f64 = 1e-6;

/// The matrix of small changes of a motion.
#[derive(Clone, Debug)]
pub struct Linearisation {
    /// n, square, in units of the frequency.
    pub matrix: DMatrix<f64>,
    /// T: rows are z' without cyclic coordinates, then zd' over the frequency, in natural units.
    pub basis: DMatrix<f64>,
    /// ω: the unit of time is 1/ω, so that fast and slow machines have the same matrix. A power of two, rad/s.
    pub frequency: f64,
    /// Natural units of the coordinates.
    pub units: Vec<f64>,
    /// Coordinates nothing depends on.
    pub cyclic: Vec<usize>,
    /// Coordinates.
    pub nq: usize,
    /// Part of A T that leaves the constraints, relative: zero for a steady motion.
    pub drift: f64,
    /// The coordinate with the largest acceleration, or rate of it, of the motion itself, in units of the matrix: zero for a steady
    /// motion.
    pub restless: (usize, f64),
}

/// A mode: changes in proportion to e^(λt).
#[derive(Clone, Debug)]
pub struct Mode {
    /// λ, of a pair the one with positive imaginary part.
    pub eigenvalue: Complex<f64>,
    /// Changes of the coordinates, the largest of them one; velocities' if positions do not change.
    pub shape: Vec<Complex<f64>>,
}

impl Mode {
    /// Frequency in Hz.
    pub fn frequency(&self) -> f64 {
        self.eigenvalue.im / core::f64::consts::TAU
    }

    /// −Re λ/|λ|
    pub fn damping_ratio(&self) -> f64 {
        let size = self.eigenvalue.norm();
        if size > 0.0 { -self.eigenvalue.re / size } else { 0.0 }
    }
}

/// A matrix without its zero eigenvalues.
struct Deflated {
    /// Changes that belong to zeros: those that stay, those that grow into them, and so on.
    zeros: Vec<DMatrix<f64>>,
    /// What has the other eigenvalues.
    rest: DMatrix<f64>,
}

/// Why there is no linearisation.
#[derive(Clone, Debug)]
pub enum ModesError {
    /// The equations have no values there.
    Eval(EvalError),
    /// A decomposition did not converge, or the matrices are not finite.
    Singular,
}

impl From<EvalError> for ModesError {
    fn from(error: EvalError) -> Self {
        ModesError::Eval(error)
    }
}

impl ModesError {
    /// The error with the model's names.
    pub fn describe(&self, model: &Interpreted) -> String {
        match self {
            ModesError::Eval(error) => format!("there is nothing to linearise: {}", error.describe(model)),
            error => error.to_string(),
        }
    }
}

impl core::fmt::Display for ModesError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            ModesError::Eval(error) => error.fmt(f),
            ModesError::Singular => write!(f, "the linearised equations are not finite or have no solution"),
        }
    }
}

impl std::error::Error for ModesError {}

/// Linearises about an instant.
pub fn linearise(model: &Interpreted, at: &Instant) -> Result<Linearisation, ModesError> {
    let dims = model.dims();
    let (nq, rows, holonomic) = (dims.nq, dims.rows(), dims.n_holonomic + dims.n_normalisation);
    let equations = Equations::new(model);
    equations.values(at)?;
    let by_z = equations.slopes(at, By::Coordinate)?;
    let by_zd = equations.slopes(at, By::Rate)?;
    let by_zdd = equations.slopes(at, By::Acceleration)?;
    let by_lambda = equations.slopes(at, By::Multiplier)?;

    // [ M  Bᵀ ] [zdd']     [ r_z   r_zd  ]
    // [ B  0  ] [λ'  ] = − [ Φdd_z Φdd_zd ] s
    let inertia = by_zdd.r.amax();
    let mut left = DMatrix::zeros(nq + rows, nq + rows);
    left.view_mut((0, 0), (nq, nq)).copy_from(&(&by_zdd.r / inertia));
    left.view_mut((0, nq), (nq, rows)).copy_from(&by_lambda.r);
    left.view_mut((nq, 0), (rows, nq)).copy_from(&by_zdd.phidd);
    let mut right = DMatrix::zeros(nq + rows, 2 * nq);
    right.view_mut((0, 0), (nq, nq)).copy_from(&(&by_z.r / -inertia));
    right.view_mut((0, nq), (nq, nq)).copy_from(&(&by_zd.r / -inertia));
    right.view_mut((nq, 0), (rows, nq)).copy_from(&-&by_z.phidd);
    right.view_mut((nq, nq), (rows, nq)).copy_from(&-&by_zd.phidd);
    let all = left.iter().chain(right.iter()).chain(by_z.phi.iter()).chain(by_z.phid.iter());
    if !all.chain(by_zd.phid.iter()).all(|x| x.is_finite()) {
        return Err(ModesError::Singular);
    }
    let unread = |matrix: &DMatrix<f64>, j: usize| matrix.column(j).iter().all(|&x| x == 0.0);
    let constraints =
        |j: usize| unread(&by_z.phi.rows(0, holonomic).into_owned(), j) && unread(&by_z.phid, j);
    let cyclic: Vec<usize> = (0..nq).filter(|&j| unread(&right, j) && constraints(j)).collect();
    let (mut solution, _) = least_norm(left, &right, RANK).ok_or(ModesError::Singular)?;
    // ω² = |∂zdd/∂z| or ω = |∂zdd/∂zd|
    let [stiffness, damping] = [0, nq].map(|first| solution.view((0, first), (nq, nq)).amax());
    let frequency = power_of_two(stiffness.sqrt().max(damping));
    solution.columns_range_mut(..nq).scale_mut(1.0 / (frequency * frequency));
    solution.columns_range_mut(nq..).scale_mut(1.0 / frequency);

    // G: Φ, then Φd and Ψ over ω
    let mut g = DMatrix::zeros(holonomic + rows, 2 * nq);
    g.view_mut((0, 0), (holonomic, nq)).copy_from(&by_z.phi.rows(0, holonomic));
    g.view_mut((holonomic, 0), (rows, nq)).copy_from(&(&by_z.phid / frequency));
    g.view_mut((holonomic, nq), (rows, nq)).copy_from(&by_zd.phid);

    // A, without rows and columns of cyclic coordinates
    let kept: Vec<usize> = (0..2 * nq).filter(|j| !cyclic.contains(j)).collect();
    let mut a = DMatrix::zeros(2 * nq, 2 * nq);
    a.view_mut((0, nq), (nq, nq)).fill_with_identity();
    a.view_mut((nq, 0), (nq, 2 * nq)).copy_from(&solution.rows(0, nq));
    let a = a.select_rows(&kept).select_columns(&kept);
    let basis = null_space(&g.select_columns(&kept), RANK).ok_or(ModesError::Singular)?;
    let image = &a * &basis;
    let matrix = basis.transpose() * &image;
    let left_over = (&image - &basis * &matrix).amax();
    let size = image.amax().max(f64::MIN_POSITIVE);
    // The motion's own zddd = A (zd, zdd)
    let units: Vec<f64> = (0..nq).map(|j| model.units().coordinate(j)).collect();
    let [zd, zdd] = [(&at.zd, frequency), (&at.zdd, frequency * frequency)]
        .map(|(of, rate)| of.iter().zip(&units).map(|(x, unit)| x / unit / rate).collect::<Vec<_>>());
    let jerk = solution.rows(0, nq) * DVector::from_iterator(2 * nq, zd.iter().chain(&zdd).copied());
    let moves = (0..nq).map(|j| (j, (zdd[j].abs() / size).max(jerk[j].abs() / (size * size))));
    let restless = moves.fold((0, 0.0), |most, one| if one.1 > most.1 { one } else { most });
    Ok(Linearisation { matrix, basis, frequency, units, cyclic, nq, drift: left_over / size, restless })
}

impl Linearisation {
    /// Whether small changes stay small changes of the same motion: it is steady.
    pub fn is_steady(&self) -> bool {
        self.drift <= UNSTEADY && self.restless.1 <= UNSTEADY
    }

    /// The coordinate that accelerates most, if the motion is not steady for that reason.
    pub fn accelerating(&self) -> Option<usize> {
        (self.restless.1 > UNSTEADY).then_some(self.restless.0)
    }

    /// All eigenvalues, by real part, largest first, 1/s.
    pub fn eigenvalues(&self) -> Vec<Complex<f64>> {
        self.eigenvalues_of_matrix().into_iter().map(|value| value * self.frequency).collect()
    }

    /// The same in units of the frequency.
    fn eigenvalues_of_matrix(&self) -> Vec<Complex<f64>> {
        let Deflated { zeros, rest } = self.deflate();
        let mut values = vec![Complex::new(0.0, 0.0); zeros.iter().map(DMatrix::ncols).sum()];
        if !rest.is_empty() {
            // Rounding splits equal real eigenvalues into pairs.
            let real = |value: &Complex<f64>| value.im.abs() <= SPLIT * value.re.abs();
            let found = rest.complex_eigenvalues();
            values.extend(found.iter().map(|v| if real(v) { Complex::new(v.re, 0.0) } else { *v }));
        }
        values.sort_by(|a, b| b.re.total_cmp(&a.re).then(b.im.total_cmp(&a.im)));
        values
    }

    /// n without its zero eigenvalues, and changes that belong to these.
    ///
    /// Zeros come from motion that nothing resists, often several with one direction, which rounding would spread over 1e-8. So they
    /// are taken off: with `V = [Q N]` orthogonal and n N = 0, Vᵀ n V is triangular in blocks Qᵀ n Q and 0. Then the same with
    /// Qᵀ n Q: its null vectors y are changes x = Q y that grow into those before, n x = N c.
    fn deflate(&self) -> Deflated {
        let mut zeros = Vec::new();
        let mut rest = self.matrix.clone();
        let mut into = DMatrix::<f64>::identity(rest.nrows(), rest.nrows());
        while !rest.is_empty() {
            let Some(svd) = rest.clone().try_svd(false, true, f64::EPSILON, 1000) else { break };
            let largest = svd.singular_values.iter().fold(0.0, |m: f64, s| m.max(*s));
            let (kept, null): (Vec<usize>, Vec<usize>) =
                (0..rest.nrows()).partition(|&i| svd.singular_values[i] > ZERO * largest);
            let Some(v_t) = svd.v_t.filter(|_| !null.is_empty()) else { break };
            zeros.push(&into * v_t.select_rows(&null).transpose());
            let q = v_t.select_rows(&kept).transpose();
            rest = q.transpose() * &rest * &q;
            into = &into * q;
        }
        Deflated { zeros, rest }
    }

    /// All modes, one for each pair of conjugate eigenvalues. Those of eigenvalues that are zero are a basis of such changes: first
    /// those that stay as they are, then those that grow into them.
    pub fn modes(&self) -> Vec<Mode> {
        let zero = Complex::new(0.0, 0.0);
        let real = |x: &DMatrix<f64>| x.map(|x| Complex::new(x, 0.0));
        let mut still = Vec::new();
        for changes in self.deflate().zeros {
            let mut changes = &self.basis * changes;
            simplify(&mut changes);
            let changes = real(&changes);
            still.extend(
                changes.column_iter().map(|s| Mode { eigenvalue: zero, shape: self.shape(zero, s.into()) }),
            );
        }
        let mut still = still.into_iter().peekable();
        let values = self.eigenvalues_of_matrix().into_iter().filter(|value| value.im >= 0.0);
        let values: Vec<Complex<f64>> = values.collect();
        let mut modes: Vec<Mode> = Vec::new();
        while modes.len() < values.len() {
            let eigenvalue = values[modes.len()];
            if let Some(mode) = still.next_if(|_| eigenvalue == zero) {
                modes.push(mode);
                continue;
            }
            // Equal ones share a space of shapes.
            let rest = &values[modes.len()..];
            let equal = |value: &&Complex<f64>| (**value - eigenvalue).norm() <= SPLIT * eigenvalue.norm();
            let count = rest.iter().take_while(equal).count().max(1);
            let shapes = real(&self.basis) * self.eigenvectors(eigenvalue, count);
            let new = rest[..count].iter().zip(shapes.column_iter());
            modes.extend(
                new.map(|(&eigenvalue, s)| Mode { eigenvalue, shape: self.shape(eigenvalue, s.into()) }),
            );
        }
        modes.iter_mut().for_each(|mode| mode.eigenvalue *= Complex::new(self.frequency, 0.0));
        modes
    }

    /// As many eigenvectors of an eigenvalue, by inverse iteration; real ones of a real eigenvalue.
    fn eigenvectors(&self, eigenvalue: Complex<f64>, count: usize) -> DMatrix<Complex<f64>> {
        let n = self.matrix.nrows();
        // A little beside the eigenvalue, so that the matrix can be factored.
        let aside = if eigenvalue.im == 0.0 { Complex::new(1e-9, 0.0) } else { Complex::new(1e-9, 0.7e-9) };
        let beside = eigenvalue + aside * (self.matrix.amax() * 1e-3 + eigenvalue.norm());
        let mut shifted: DMatrix<Complex<f64>> = self.matrix.map(|x| Complex::new(x, 0.0));
        for i in 0..n {
            shifted[(i, i)] -= beside;
        }
        let lu = shifted.lu();
        let begin = |i: usize, j: usize| {
            let (i, j) = (i as f64, j as f64);
            let re = 1.0 + 0.37 * (i * (1.0 + j)).sin();
            Complex::new(re, if eigenvalue.im == 0.0 { 0.0 } else { 0.2 * (i + j).cos() })
        };
        let mut x = DMatrix::from_fn(n, count, begin);
        for _ in 0..4 {
            let Some(next) = lu.solve(&x) else { break };
            if !next.iter().all(|x| x.re.is_finite() && x.im.is_finite()) {
                break;
            }
            x = next.qr().q();
        }
        if eigenvalue.im == 0.0 {
            let mut columns = x.map(|x| x.re);
            simplify(&mut columns);
            x = columns.map(|x| Complex::new(x, 0.0));
        }
        x
    }

    /// A change s as one of the coordinates.
    fn shape(&self, eigenvalue: Complex<f64>, s: DVector<Complex<f64>>) -> Vec<Complex<f64>> {
        let mut kept = s.iter().copied();
        let positions = self.nq - self.cyclic.len();
        let independent: Vec<Complex<f64>> = kept.by_ref().take(positions).collect();
        let rates: Vec<Complex<f64>> = kept.collect();
        let still = independent.iter().all(|x| x.norm() < 1e-9);
        let mut independent = independent.into_iter();
        let mut shape: Vec<Complex<f64>> = (0..self.nq)
            .map(|j| {
                let rate = rates.get(j).copied().unwrap_or_default();
                let change = if self.cyclic.contains(&j) {
                    let stays = eigenvalue.norm() <= ZERO * self.matrix.amax();
                    if still || stays { rate } else { rate / eigenvalue }
                } else {
                    let position = independent.next().unwrap_or_default();
                    if still { rate } else { position }
                };
                change * self.units[j]
            })
            .collect();
        let largest = shape.iter().copied().max_by(|a, b| a.norm().total_cmp(&b.norm()));
        if let Some(largest) = largest.filter(|x| x.norm() > 0.0) {
            shape.iter_mut().for_each(|x| *x /= largest);
        }
        shape
    }
}

/// The power of two nearest to a size; one if there is none.
fn power_of_two(size: f64) -> f64 {
    if size > 0.0 && size.is_finite() {
        2f64.powi((size.log2().round() as i32).clamp(-300, 300))
    } else {
        1.0
    }
}

/// Another basis of the same columns: each has a one where all others have zeros, at the largest entry that is left.
fn simplify(columns: &mut DMatrix<f64>) {
    for pivot in 0..columns.ncols() {
        let rest = columns.columns_range(pivot..);
        let (row, place) = rest.map(f64::abs).iamax_full();
        columns.swap_columns(pivot, pivot + place);
        let size = columns[(row, pivot)];
        if size == 0.0 {
            return;
        }
        columns.column_mut(pivot).scale_mut(1.0 / size);
        let one = columns.column(pivot).clone_owned();
        for other in (0..columns.ncols()).filter(|&other| other != pivot) {
            let part = columns[(row, other)];
            columns.column_mut(other).axpy(-part, &one, 1.0);
        }
    }
    // What is left of the others is rounding.
    columns.iter_mut().filter(|x| x.abs() < 1e-12).for_each(|x| *x = 0.0);
}
