//! The parts of a leading matrix, and products with them.
//!
//! | symbol | meaning | place |
//! |---|---|---|
//! | W | tangent or mass matrix | upper left |
//! | Φ_z | holonomic and normalisation rows | lower left; transposed upper right |
//! | A | nonholonomic rows, as they act on forces | transposed upper right |
//! | A' | nonholonomic rows, as Newton's method needs them | lower left |
//! | E | small and positive | minus it on the lower right diagonal |
//!
//! An index of a pattern that lies outside of its matrix is passed over, never a panic.

use crate::constrained::Pattern;
use crate::error::EvalError;
use crate::pieces::{cut, cut_mut};
use crate::scalar::Scalar;
use crate::system::{Dims, Quantity, Units};

/// Entries of a row of rounding are at most this many ε of the largest of all rows, in units of the rows.
pub(crate) const NOTHING: f64 = 64.0;

/// What an index into the rows counts.
pub fn row(dims: &Dims, index: usize) -> (Quantity, usize) {
    if index < dims.n_holonomic {
        (Quantity::Holonomic, index)
    } else if index - dims.n_holonomic < dims.n_normalisation {
        (Quantity::Normalisation, index - dims.n_holonomic)
    } else {
        (Quantity::Nonholonomic, index - dims.n_holonomic - dims.n_normalisation)
    }
}

/// What an index into the unknowns of the leading matrix counts.
pub fn unknown(dims: &Dims, index: usize) -> (Quantity, usize) {
    if index < dims.nq { (Quantity::Coordinate, index) } else { row(dims, index - dims.nq) }
}

/// Rows of Φ, normalisation included: those before the nonholonomic ones.
#[inline(always)]
pub const fn holonomic_rows(dims: &Dims) -> usize {
    dims.n_holonomic + dims.n_normalisation
}

/// Values of a leading matrix by its parts.
#[derive(Clone, Copy, Debug)]
pub struct Blocks<'a, S> {
    /// W
    pub tangent: &'a [S],
    /// Φ_z
    pub holonomic: &'a [S],
    /// A
    pub nonholonomic: &'a [S],
    /// A'
    pub nonholonomic_newton: &'a [S],
    /// E
    pub compliance: &'a [S],
}

/// Values of a leading matrix by its parts, to be changed.
#[derive(Debug)]
pub struct BlocksMut<'a, S> {
    /// W
    pub tangent: &'a mut [S],
    /// Φ_z
    pub holonomic: &'a mut [S],
    /// A
    pub nonholonomic: &'a mut [S],
    /// A'
    pub nonholonomic_newton: &'a mut [S],
    /// E
    pub compliance: &'a mut [S],
}

#[cold]
fn wrong(dims: &Dims, pattern: &Pattern<'_>, found: usize) -> EvalError {
    let expected =
        pattern.tangent.len() + pattern.holonomic.len() + 2 * pattern.nonholonomic.len() + dims.rows();
    EvalError::Length { what: "matrix", expected, found }
}

impl<'a, S: Scalar> Blocks<'a, S> {
    /// The parts of `matrix`.
    #[inline(always)]
    pub fn of(dims: &Dims, pattern: &Pattern<'_>, matrix: &'a [S]) -> Result<Self, EvalError> {
        match Self::split(dims, pattern, matrix) {
            Some(blocks) => Ok(blocks),
            None => Err(wrong(dims, pattern, matrix.len())),
        }
    }

    #[inline(always)]
    fn split(dims: &Dims, pattern: &Pattern<'_>, matrix: &'a [S]) -> Option<Self> {
        let (tangent, rest) = matrix.split_at_checked(pattern.tangent.len())?;
        let (holonomic, rest) = rest.split_at_checked(pattern.holonomic.len())?;
        let (nonholonomic, rest) = rest.split_at_checked(pattern.nonholonomic.len())?;
        let (nonholonomic_newton, compliance) = rest.split_at_checked(pattern.nonholonomic.len())?;
        let complete = compliance.len() == dims.rows();
        complete.then_some(Self { tangent, holonomic, nonholonomic, nonholonomic_newton, compliance })
    }

    /// Into `sizes`: the largest entry of each row of Φ_z and A, by coordinates in their units; zero for rows of rounding, which say
    /// nothing here. Such are those of a cross product that happens to have a component along an axis only.
    #[inline(always)]
    pub fn row_sizes(
        &self,
        dims: &Dims,
        pattern: &Pattern<'_>,
        units: Units<'_>,
        sizes: &mut [S],
    ) -> Result<(), EvalError> {
        sizes.fill(S::ZERO);
        let (holonomic, nonholonomic) = cut_mut("sizes", sizes, holonomic_rows(dims))?;
        for (sizes, places, values) in [
            (holonomic, pattern.holonomic, self.holonomic),
            (nonholonomic, pattern.nonholonomic, self.nonholonomic),
        ] {
            let mut entry = 0;
            while let Some(&(row, _)) = places.get(entry) {
                let mut most = 0.0;
                while let Some(&(of, column)) = places.get(entry)
                    && of == row
                {
                    let value = values.get(entry).map_or(0.0, |value| value.real().abs());
                    let value = value * units.coordinate(column as usize);
                    most = if value > most { value } else { most };
                    entry += 1;
                }
                if let Some(size) = sizes.get_mut(row as usize) {
                    *size = S::from_f64(most);
                }
            }
        }
        let nothing = NOTHING * S::EPSILON * units.largest_row(sizes);
        for (row, size) in sizes.iter_mut().enumerate() {
            if size.real() <= nothing * units.row(row) {
                *size = S::ZERO;
            }
        }
        Ok(())
    }

    /// y = y + (Φ_z; A) x
    #[inline(always)]
    pub fn add_rows_times(
        &self,
        dims: &Dims,
        pattern: &Pattern<'_>,
        x: &[S],
        y: &mut [S],
    ) -> Result<(), EvalError> {
        let (holonomic, nonholonomic) = cut_mut("y", y, holonomic_rows(dims))?;
        add_product(pattern.holonomic, self.holonomic, x, holonomic);
        add_product(pattern.nonholonomic, self.nonholonomic, x, nonholonomic);
        Ok(())
    }

    /// x = x + (Φ_zᵀ, Aᵀ) y
    #[inline(always)]
    pub fn add_rows_transposed_times(
        &self,
        dims: &Dims,
        pattern: &Pattern<'_>,
        y: &[S],
        x: &mut [S],
    ) -> Result<(), EvalError> {
        let (holonomic, nonholonomic) = cut("y", y, holonomic_rows(dims))?;
        add_transposed_product(pattern.holonomic, self.holonomic, holonomic, x);
        add_transposed_product(pattern.nonholonomic, self.nonholonomic, nonholonomic, x);
        Ok(())
    }

    /// Into `dense`: the matrix with all its zeros, (nq + rows)².
    pub fn dense(&self, dims: &Dims, pattern: &Pattern<'_>, dense: &mut [S]) {
        let n = dims.nq + dims.rows();
        dense.fill(S::ZERO);
        let mut put = |i: usize, j: usize, value: S| {
            if let Some(entry) = dense.get_mut(j * n + i) {
                *entry = value;
            }
        };
        for (&(i, j), &value) in pattern.tangent.iter().zip(self.tangent) {
            put(i as usize, j as usize, value);
        }
        for (&(k, j), &value) in pattern.holonomic.iter().zip(self.holonomic) {
            let (k, j) = (dims.nq + k as usize, j as usize);
            put(k, j, value);
            put(j, k, value);
        }
        let first = dims.nq + holonomic_rows(dims);
        let values = self.nonholonomic.iter().zip(self.nonholonomic_newton);
        for (&(k, j), (&force, &newton)) in pattern.nonholonomic.iter().zip(values) {
            let (k, j) = (first + k as usize, j as usize);
            put(k, j, newton);
            put(j, k, force);
        }
        for (k, &value) in self.compliance.iter().enumerate() {
            put(dims.nq + k, dims.nq + k, -value);
        }
    }
}

impl<'a, S: Scalar> BlocksMut<'a, S> {
    /// The parts of `matrix`.
    #[inline(always)]
    pub fn of(dims: &Dims, pattern: &Pattern<'_>, matrix: &'a mut [S]) -> Result<Self, EvalError> {
        let found = matrix.len();
        match Self::split(dims, pattern, matrix) {
            Some(blocks) => Ok(blocks),
            None => Err(wrong(dims, pattern, found)),
        }
    }

    #[inline(always)]
    fn split(dims: &Dims, pattern: &Pattern<'_>, matrix: &'a mut [S]) -> Option<Self> {
        let (tangent, rest) = matrix.split_at_mut_checked(pattern.tangent.len())?;
        let (holonomic, rest) = rest.split_at_mut_checked(pattern.holonomic.len())?;
        let (nonholonomic, rest) = rest.split_at_mut_checked(pattern.nonholonomic.len())?;
        let (nonholonomic_newton, compliance) = rest.split_at_mut_checked(pattern.nonholonomic.len())?;
        let complete = compliance.len() == dims.rows();
        complete.then_some(Self { tangent, holonomic, nonholonomic, nonholonomic_newton, compliance })
    }

    /// Makes every row that is not active an identity row.
    pub fn mask(&mut self, dims: &Dims, pattern: &Pattern<'_>, active: &[S]) -> Result<(), EvalError> {
        let (holonomic, nonholonomic) = cut("active", active, holonomic_rows(dims))?;
        for (active, places, values) in [
            (holonomic, pattern.holonomic, &mut *self.holonomic),
            (nonholonomic, pattern.nonholonomic, &mut *self.nonholonomic),
            (nonholonomic, pattern.nonholonomic, &mut *self.nonholonomic_newton),
        ] {
            for (&(row, _), value) in places.iter().zip(values) {
                if active.get(row as usize).is_some_and(|active| *active == S::ZERO) {
                    *value = S::ZERO;
                }
            }
        }
        for (compliance, active) in self.compliance.iter_mut().zip(active) {
            if *active == S::ZERO {
                *compliance = S::ONE;
            }
        }
        Ok(())
    }

    /// W = (W + Wᵀ)/2, by the symmetry of its places.
    pub fn symmetrise(&mut self, pattern: &Pattern<'_>) {
        let half = S::from_f64(0.5);
        for (place, &(i, j)) in pattern.tangent.iter().enumerate() {
            if i < j
                && let Ok(mirrored) = pattern.tangent.binary_search(&(j, i))
                && let (Some(&a), Some(&b)) = (self.tangent.get(place), self.tangent.get(mirrored))
            {
                for place in [place, mirrored] {
                    if let Some(entry) = self.tangent.get_mut(place) {
                        *entry = half * (a + b);
                    }
                }
            }
        }
    }
}

/// y = y + B x for the matrix B with `values` at `places`, which are in the order of rows: the sum of a row stays in a register.
#[inline(always)]
pub fn add_product<S: Scalar>(places: &[(u32, u32)], values: &[S], x: &[S], y: &mut [S]) {
    let values = values.get(..places.len()).unwrap_or_default();
    let mut entry = 0;
    while let Some(&(i, _)) = places.get(entry) {
        let mut out_of_place = S::ZERO;
        let y = y.get_mut(i as usize).unwrap_or(&mut out_of_place);
        let mut sum = *y;
        while let Some(&(row, j)) = places.get(entry)
            && row == i
        {
            if let (Some(&value), Some(&x)) = (values.get(entry), x.get(j as usize)) {
                sum += value * x;
            }
            entry += 1;
        }
        *y = sum;
    }
}

/// y = y + Bᵀ x for the matrix B with `values` at `places`.
#[inline(always)]
pub fn add_transposed_product<S: Scalar>(places: &[(u32, u32)], values: &[S], x: &[S], y: &mut [S]) {
    for (&(i, j), &value) in places.iter().zip(values) {
        if let (Some(y), Some(&x)) = (y.get_mut(j as usize), x.get(i as usize)) {
            *y += value * x;
        }
    }
}
