//! Derivatives of constraint rows: Φ_z, A, mixtures of them, and those of the rows' rates and accelerations.
//!
//! Along the direction of an unknown a row changes by Σ over its placeholders of Φ_leaf ∂leaf. With the
//! position weights of the directions this is Φ_z (or Φ_v), with their velocity weights A, with both A'. The same
//! with Φd and Φdd in the place of Φ.

use super::direction::Direction;
use super::leaf::leaf_changes;
use super::tangent::Linearisation;
use crate::elements::{ConstraintElement, Leaves, RowRates};
use crate::graph::{ExprId, Graph, gradient};
use std::collections::BTreeMap;

/// The nonzero entries of a row, by unknown.
pub type SparseRow = BTreeMap<usize, ExprId>;

/// Derivatives of the rows, in the order of the elements' rows.
pub fn jacobian(
    g: &mut Graph,
    linearisation: &mut Linearisation<'_, '_>,
    elements: &[ConstraintElement<'_>],
    directions: &[Direction],
) -> Vec<SparseRow> {
    let mut jacobian = Vec::new();
    for element in elements {
        let values: Vec<ExprId> = element.rows.iter().map(|row| row.value).collect();
        jacobian.extend(changes(g, linearisation, &element.element.leaves, &values, directions));
    }
    jacobian
}

/// Derivatives of what `choose` takes of each row and its time derivatives.
pub fn rate_jacobian(
    g: &mut Graph,
    linearisation: &mut Linearisation<'_, '_>,
    elements: &[ConstraintElement<'_>],
    directions: &[Direction],
    mut choose: impl FnMut(&mut Graph, &RowRates) -> ExprId,
) -> Vec<SparseRow> {
    let mut jacobian = Vec::new();
    for element in elements {
        let values: Vec<ExprId> = element.rates.iter().map(|row| choose(g, row)).collect();
        jacobian.extend(changes(g, linearisation, &element.rate_leaves, &values, directions));
    }
    jacobian
}

/// How values over placeholders change along the directions.
fn changes(
    g: &mut Graph,
    linearisation: &mut Linearisation<'_, '_>,
    leaves: &Leaves<'_>,
    values: &[ExprId],
    directions: &[Direction],
) -> Vec<SparseRow> {
    let one = g.one();
    let (mechanism, moved) = linearisation.parts();
    let replacements = leaves.replacements(g, mechanism);
    let mut rows = vec![SparseRow::new(); values.len()];
    for (leaf, symbols) in leaves.seen() {
        let slopes: Vec<Vec<ExprId>> =
            values.iter().map(|&value| gradient(g, &[(value, one)], symbols)).collect();
        if slopes.iter().flatten().all(|&slope| g.is(slope, 0.0)) {
            continue;
        }
        let changes = leaf_changes(g, mechanism, moved, directions, *leaf);
        for (row, slopes) in rows.iter_mut().zip(slopes) {
            let slopes = g.substitute(&slopes, &replacements);
            for leaf in &changes {
                let products = slopes.iter().zip(&leaf.change);
                let terms: Vec<ExprId> = products.map(|(&slope, &change)| g.mul(slope, change)).collect();
                let share = g.sum(&terms);
                let before = *row.entry(leaf.unknown).or_insert_with(|| g.zero());
                row.insert(leaf.unknown, g.add(before, share));
            }
        }
    }
    for row in &mut rows {
        row.retain(|_, &mut entry| !g.is(entry, 0.0));
    }
    rows
}
