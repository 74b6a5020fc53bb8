//! Derivatives of the equations of motion by everything, as dense matrices, from complex steps of their values.
//!
//! Input: a model and an instant in coordinate form. Output: every matrix that equilibrium and linearisation need, exact to
//! rounding. Small models and few evaluations: one evaluation of the residual for each unknown.

use crate::Interpreted;
use crate::verify::Instant;
use mbs_runtime::linear::blocks::row;
use mbs_runtime::{Complex64, Constrained, Dims, EvalError, Motion, Quantity, Scalar, System};
use nalgebra::{DMatrix, DVector};

/// The imaginary step: its square vanishes beside any number.
const STEP: f64 = 1e-30;

/// Equations with entries below this part of the largest count less than others: one that depends on others by rounding must
/// not look independent.
pub(crate) const SMALL: f64 = 1e-3;
/// Rows with entries below this part of the largest are rounding.
pub(crate) const ROUNDING: f64 = 1e-13;

/// What is moved by a complex step.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    Coordinate,
    Rate,
    Acceleration,
    Multiplier,
}

/// Values of an instant: r; Φ and Ψ; their rates; their accelerations, each of all rows.
struct Values {
    r: Vec<Complex64>,
    phi: Vec<Complex64>,
    phid: Vec<Complex64>,
    phidd: Vec<Complex64>,
}

/// Derivatives of all values by one kind of unknown.
pub(crate) struct Slopes {
    pub r: DMatrix<f64>,
    pub phi: DMatrix<f64>,
    pub phid: DMatrix<f64>,
    pub phidd: DMatrix<f64>,
}

/// The model, and the same in complex numbers.
pub(crate) struct Equations<'a> {
    model: &'a Interpreted,
    complex: Interpreted<Complex64>,
}

impl<'a> Equations<'a> {
    pub(crate) fn new(model: &'a Interpreted) -> Self {
        Equations { model, complex: Interpreted::new(model.program_as_set()) }
    }

    /// Sizes of the model.
    pub(crate) fn dims(&self) -> Dims {
        self.model.dims()
    }

    /// r, and Φ and Ψ, or an error where one of them is not finite. In real numbers: complex ones have a root of everything.
    pub(crate) fn values(&self, at: &Instant) -> Result<[Vec<f64>; 2], EvalError> {
        let dims = self.model.dims();
        let mut w = vec![0.0; dims.workspace];
        let (mut r, mut phi) = (vec![0.0; dims.nq], vec![0.0; dims.rows()]);
        let motion = Motion { t: at.t, z: &at.z, zd: &at.zd, zdd: &at.zdd, u: &at.u };
        self.model.residual(motion, &at.lambda, &mut w, &mut r, &mut phi)?;
        let undefined = |values: &[f64]| values.iter().position(|x| !x.is_finite());
        if let Some(index) = undefined(&r) {
            return Err(EvalError::NotFinite { quantity: Quantity::Coordinate, index });
        }
        if let Some(k) = undefined(&phi) {
            let (quantity, index) = row(&dims, k);
            return Err(EvalError::NotFinite { quantity, index });
        }
        Ok([r, phi])
    }

    /// Derivatives by all unknowns of a kind, where [`Equations::values`] exist, in natural units: coordinates in theirs, rows in theirs; so are
    /// forces along coordinates, and multipliers, energies over these.
    pub(crate) fn slopes(&self, at: &Instant, by: By) -> Result<Slopes, EvalError> {
        let dims = self.complex.dims();
        let n = if by == By::Multiplier { dims.rows() } else { dims.nq };
        let matrix = |rows| DMatrix::zeros(rows, n);
        let (rows, nq) = (dims.rows(), dims.nq);
        let mut slopes = Slopes { r: matrix(nq), phi: matrix(rows), phid: matrix(rows), phidd: matrix(rows) };
        let mut point = lifted(at);
        for j in 0..n {
            let moved = |point: &mut Lifted, to: f64| {
                let x = match by {
                    By::Coordinate => &mut point.z[j],
                    By::Rate => &mut point.zd[j],
                    By::Acceleration => &mut point.zdd[j],
                    By::Multiplier => &mut point.lambda[j],
                };
                *x = Complex64::new(x.real(), to);
            };
            moved(&mut point, STEP);
            let values = self.evaluate(&point)?;
            moved(&mut point, 0.0);
            let units = self.model.units();
            let unit = if by == By::Multiplier { 1.0 / units.row(j) } else { units.coordinate(j) };
            let force = |i: usize| units.coordinate(i);
            let row = |k: usize| 1.0 / units.row(k);
            let columns: [(_, _, &dyn Fn(usize) -> f64); 4] = [
                (&mut slopes.r, &values.r, &force),
                (&mut slopes.phi, &values.phi, &row),
                (&mut slopes.phid, &values.phid, &row),
                (&mut slopes.phidd, &values.phidd, &row),
            ];
            for (matrix, values, of) in columns {
                let entries = values.iter().enumerate().map(|(i, x)| x.im / STEP * unit * of(i));
                matrix.set_column(j, &DVector::from_iterator(values.len(), entries));
            }
        }
        Ok(slopes)
    }

    fn evaluate(&self, point: &Lifted) -> Result<Values, EvalError> {
        let dims = self.complex.dims();
        let zero = |n: usize| vec![Complex64::new(0.0, 0.0); n];
        let mut w = zero(dims.workspace);
        let mut values = Values {
            r: zero(dims.nq),
            phi: zero(dims.rows()),
            phid: zero(dims.rows()),
            phidd: zero(dims.rows()),
        };
        let m = Motion { t: point.t, z: &point.z, zd: &point.zd, zdd: &point.zdd, u: &point.u };
        self.complex.residual(m, &point.lambda, &mut w, &mut values.r, &mut values.phi)?;
        self.complex.constraint_rates(m, &mut w, &mut values.phid)?;
        self.complex.constraint_accelerations(m, &mut w, &mut values.phidd)?;
        Ok(values)
    }
}

struct Lifted {
    t: Complex64,
    z: Vec<Complex64>,
    zd: Vec<Complex64>,
    zdd: Vec<Complex64>,
    u: Vec<Complex64>,
    lambda: Vec<Complex64>,
}

fn lifted(at: &Instant) -> Lifted {
    let lift = |x: &[f64]| x.iter().map(|&x| Complex64::new(x, 0.0)).collect();
    Lifted {
        t: Complex64::new(at.t, 0.0),
        z: lift(&at.z),
        zd: lift(&at.zd),
        zdd: lift(&at.zdd),
        u: lift(&at.u),
        lambda: lift(&at.lambda),
    }
}

/// The solution of least norm of a x = b in the sense of least squares, and the rank of a; singular values below `part`
/// of the largest count as zero.
pub(crate) fn least_norm(a: DMatrix<f64>, b: &DMatrix<f64>, part: f64) -> Option<(DMatrix<f64>, usize)> {
    let svd = a.try_svd(true, true, f64::EPSILON, 1000)?;
    let threshold = part * svd.singular_values.iter().fold(0.0, |m: f64, s| m.max(*s));
    let rank = svd.rank(threshold);
    svd.solve(b, threshold).ok().map(|x| (x, rank))
}

/// An orthonormal basis of what a matrix maps to zero, as columns; rows of a count alike, but for small ones.
pub(crate) fn null_space(a: &DMatrix<f64>, part: f64) -> Option<DMatrix<f64>> {
    let n = a.ncols();
    // Zero rows make all of V known.
    let mut padded = DMatrix::zeros(a.nrows().max(n), n);
    let largest = a.amax();
    for (i, row) in a.row_iter().enumerate() {
        let size = row.amax();
        if size > 0.0 {
            padded.set_row(i, &(row / size.max(SMALL * largest)));
        }
    }
    let svd = padded.try_svd(false, true, f64::EPSILON, 1000)?;
    let v_t = svd.v_t?;
    let threshold = part * svd.singular_values.iter().fold(0.0, |m: f64, s| m.max(*s));
    let kept: Vec<usize> = (0..n).filter(|&i| svd.singular_values[i] <= threshold).collect();
    let mut basis = DMatrix::zeros(n, kept.len());
    for (k, &i) in kept.iter().enumerate() {
        basis.set_column(k, &v_t.row(i).transpose());
    }
    Some(basis)
}
