//! A linear map described by its blocks, once: its product, its transposed product and the sizes of what its rows sum are three
//! readers of one description, so that they cannot disagree.
//!
//! ```text
//! Y_row = Y_row + factor B X_part        X_part = X_part + factor Bᵀ Y_row
//! ```
//!
//! A block is a sparse matrix B with its place in the map: the row of Y with which it begins, the part of X that it multiplies, and a
//! factor. X has a part for each kind of unknown; the parameters ρ stand apart. Matrices are those of `columns`: a column for each
//! right-hand side. A description is a function that shows its blocks to a [`Reader`], so that it costs nothing to have it: what the
//! compiler sees is each reader's own sequence of products.

use super::columns::{Directions, add_products, add_transposed, subtract_parameters};
use super::derivatives::Places;
use super::residual::add_sizes;
use crate::error::EvalError;
use crate::pieces::{cut, cut_mut};
use crate::scalar::Scalar;

/// A part of X.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    First,
    Second,
    Third,
    Fourth,
}

/// The parts of X.
pub(crate) type Parts<'s, S> = [&'s [S]; 4];

/// The parts of X, to be changed.
pub(crate) type PartsMut<'s, S> = [&'s mut [S]; 4];

impl Part {
    #[inline(always)]
    pub(crate) fn of<'s, S>(self, [first, second, third, fourth]: Parts<'s, S>) -> &'s [S] {
        match self {
            Part::First => first,
            Part::Second => second,
            Part::Third => third,
            Part::Fourth => fourth,
        }
    }

    #[inline(always)]
    pub(crate) fn of_mut<'x, S>(
        self,
        [first, second, third, fourth]: &'x mut PartsMut<'_, S>,
    ) -> &'x mut [S] {
        match self {
            Part::First => first,
            Part::Second => second,
            Part::Third => third,
            Part::Fourth => fourth,
        }
    }
}

/// A block at given places: the part of X, the factor, the values of B.
pub(crate) type Block<'a, S> = (Part, S, &'a [S]);

/// Who reads the blocks of a map.
pub(crate) trait Reader<S> {
    /// A block at these places, from this row on.
    fn block(&mut self, row: usize, places: Places<'_>, block: Block<'_, S>) -> Result<(), EvalError>;

    /// Two blocks at the same places.
    fn blocks(&mut self, row: usize, places: Places<'_>, blocks: [Block<'_, S>; 2]) -> Result<(), EvalError>;

    /// A block that multiplies the parameters.
    fn parameters(
        &mut self,
        row: usize,
        places: Places<'_>,
        factor: S,
        values: &[S],
    ) -> Result<(), EvalError>;
}

/// Y = Y + (all blocks) X, along directions of ρ.
pub(crate) struct Product<'s, S> {
    pub(crate) columns: usize,
    pub(crate) x: Parts<'s, S>,
    pub(crate) directions: Directions<'s, S>,
    pub(crate) y: &'s mut [S],
}

impl<S: Scalar> Reader<S> for Product<'_, S> {
    #[inline(always)]
    fn block(
        &mut self,
        row: usize,
        places: Places<'_>,
        (part, factor, values): Block<'_, S>,
    ) -> Result<(), EvalError> {
        let (_, y) = cut_mut("rows", self.y, row * self.columns)?;
        add_products(places, self.columns, [(factor, values, part.of(self.x))], y)?;
        Ok(())
    }

    #[inline(always)]
    fn blocks(
        &mut self,
        row: usize,
        places: Places<'_>,
        [(part, factor, values), (second, second_factor, second_values)]: [Block<'_, S>; 2],
    ) -> Result<(), EvalError> {
        let (_, y) = cut_mut("rows", self.y, row * self.columns)?;
        let terms = [(factor, values, part.of(self.x)), (second_factor, second_values, second.of(self.x))];
        add_products(places, self.columns, terms, y)?;
        Ok(())
    }

    #[inline(always)]
    fn parameters(
        &mut self,
        row: usize,
        places: Places<'_>,
        factor: S,
        values: &[S],
    ) -> Result<(), EvalError> {
        let (_, y) = cut_mut("rows", self.y, row * self.columns)?;
        subtract_parameters(places, values, -factor, self.columns, self.directions, y)?;
        Ok(())
    }
}

/// X = X + (all blocks)ᵀ Y, and alike for ρ.
pub(crate) struct TransposedProduct<'s, S> {
    pub(crate) columns: usize,
    pub(crate) y: &'s [S],
    pub(crate) x: PartsMut<'s, S>,
    pub(crate) rho: &'s mut [S],
}

impl<S: Scalar> Reader<S> for TransposedProduct<'_, S> {
    #[inline(always)]
    fn block(
        &mut self,
        row: usize,
        places: Places<'_>,
        (part, factor, values): Block<'_, S>,
    ) -> Result<(), EvalError> {
        let (_, y) = cut("rows", self.y, row * self.columns)?;
        add_transposed(places, values, factor, self.columns, y, part.of_mut(&mut self.x))?;
        Ok(())
    }

    #[inline(always)]
    fn blocks(
        &mut self,
        row: usize,
        places: Places<'_>,
        [first, second]: [Block<'_, S>; 2],
    ) -> Result<(), EvalError> {
        self.block(row, places, first)?;
        self.block(row, places, second)
    }

    #[inline(always)]
    fn parameters(
        &mut self,
        row: usize,
        places: Places<'_>,
        factor: S,
        values: &[S],
    ) -> Result<(), EvalError> {
        let (_, y) = cut("rows", self.y, row * self.columns)?;
        add_transposed(places, values, factor, self.columns, y, self.rho)?;
        Ok(())
    }
}

/// sizes_i = sizes_i + Σ |factor b_ij| (largest |x|) over the blocks of X, for rows from `first` on: what may cancel in a product.
pub(crate) struct Sizes<'s, S> {
    pub(crate) first: usize,
    pub(crate) x: Parts<'s, S>,
    pub(crate) sizes: &'s mut [S],
}

impl<S: Scalar> Reader<S> for Sizes<'_, S> {
    fn block(
        &mut self,
        row: usize,
        places: Places<'_>,
        (part, factor, values): Block<'_, S>,
    ) -> Result<(), EvalError> {
        let Some(row) = row.checked_sub(self.first) else { return Ok(()) };
        let (_, sizes) = cut_mut("sizes", self.sizes, row)?;
        add_sizes(places, values, part.of(self.x), factor.real().abs(), sizes);
        Ok(())
    }

    fn blocks(
        &mut self,
        row: usize,
        places: Places<'_>,
        [first, second]: [Block<'_, S>; 2],
    ) -> Result<(), EvalError> {
        self.block(row, places, first)?;
        self.block(row, places, second)
    }

    fn parameters(&mut self, _: usize, _: Places<'_>, _: S, _: &[S]) -> Result<(), EvalError> {
        Ok(())
    }
}
