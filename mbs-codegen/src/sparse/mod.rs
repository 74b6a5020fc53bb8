//! Sparse linear solves written into the graph: an elimination order chosen once, then flat code.
//!
//! Input: a square matrix by its nonzero entries, and numeric samples of it. Output: factors and solutions as
//! expressions. Holds afterwards: the order depends on the samples only; only entries of the sparsity pattern with fill
//! are computed. A matrix that is symmetric on the graph, with pivots on its diagonal, costs half.

mod lu;
mod order;

pub use lu::{Factors, factor};
pub use order::{Order, Sample, choose_order};

use crate::graph::ExprId;
use std::collections::BTreeMap;

/// A square matrix by its nonzero entries (row, column).
#[derive(Clone, Debug, Default)]
pub struct SparseMatrix {
    /// Number of rows.
    pub n: usize,
    /// The entries.
    pub entries: BTreeMap<(usize, usize), ExprId>,
}
