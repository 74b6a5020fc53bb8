//! Derivatives of constraint rows: Φ_z, A, mixtures of them, and those of the rows' rates and accelerations.
//!
//! Along the direction of an unknown a row changes by Σ over its placeholders of Φ_leaf ∂leaf. With the
//! position weights of the directions this is Φ_z (or Φ_v), with their velocity weights A, with both A'. The same holds
//! for Φd and Φdd. There, slopes with respect to the motion of links may be accumulated first (see `slopes`), because the changes of
//! accelerations are long expressions.

use super::direction::Direction;
use super::leaf::{LeafChange, leaf_changes, link_of};
use super::slopes::{Slope, leaf_slope};
use super::tangent::{Linearisation, accumulation_pays};
use crate::elements::{ConstraintElement, Leaves, RowRates};
use crate::graph::{ExprId, Graph, Vec3, gradient};
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

/// Derivatives of the values that `choose` selects from each row and its time derivatives. Slopes are accumulated where that saves operations.
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
        let separate = changes(g, linearisation, &element.rate_leaves, &values, directions);
        let mut rows = accumulated_changes(g, linearisation, &element.rate_leaves, &values, directions);
        // An entry that vanishes term by term is zero, even if the graph cannot see it in the sum.
        for (row, there) in rows.iter_mut().zip(&separate) {
            row.retain(|b, _| there.contains_key(b));
        }
        let operations = [&rows, &separate].map(|rows| {
            let entries: Vec<ExprId> = rows.iter().flat_map(|row| row.values()).copied().collect();
            g.operations_per_call(&entries)
        });
        jacobian.extend(if accumulation_pays(operations[0], operations[1]) { rows } else { separate });
    }
    jacobian
}

/// Changes of values of placeholders along the directions, by slopes accumulated toward ground.
pub(super) fn accumulated_changes(
    g: &mut Graph,
    linearisation: &mut Linearisation<'_, '_>,
    leaves: &Leaves<'_>,
    values: &[ExprId],
    directions: &[Direction],
) -> Vec<SparseRow> {
    let one = g.one();
    let unknowns = linearisation.unknowns(g, directions);
    let (mechanism, data) = linearisation.parts();
    let tree = mechanism.tree;
    let replacements = leaves.replacements(g, mechanism);
    let mut rows = Vec::new();
    for &value in values {
        let mut row = SparseRow::new();
        let mut links: BTreeMap<usize, Slope> = BTreeMap::new();
        for (leaf, symbols) in leaves.seen() {
            let slopes = gradient(g, &[(value, one)], symbols);
            if slopes.iter().all(|&slope| g.is(slope, 0.0)) {
                continue;
            }
            let slopes = g.substitute(&slopes, &replacements);
            if let Some(link) = link_of(mechanism, *leaf) {
                let c = Vec3([slopes[0], slopes[1], slopes[2]]);
                if let Some(slope) = leaf_slope(g, mechanism, data, *leaf, link, c) {
                    add(g, &mut links, link, slope);
                }
                continue;
            }
            for LeafChange { unknown, change } in leaf_changes(g, mechanism, data, &unknowns, *leaf) {
                let share = g.mul(slopes[0], change[0]);
                let before = *row.entry(unknown).or_insert_with(|| g.zero());
                row.insert(unknown, g.add(before, share));
            }
        }
        // Parents come before their children.
        for i in (0..tree.links.len()).rev() {
            if let (Some(&slope), Some(parent)) = (links.get(&i), tree.links[i].parent) {
                add(g, &mut links, parent, slope);
            }
        }
        for (b, unknown) in unknowns.motions.iter().enumerate() {
            let Some(unknown) = unknown else { continue };
            if let Some(&slope) = links.get(&unknown.link) {
                let share = g.along(slope, unknown);
                let before = *row.entry(b).or_insert_with(|| g.zero());
                row.insert(b, g.add(before, share));
            }
        }
        row.retain(|_, &mut entry| !g.is(entry, 0.0));
        rows.push(row);
    }
    rows
}

fn add(g: &mut Graph, links: &mut BTreeMap<usize, Slope>, link: usize, slope: Slope) {
    let sum = match links.get(&link) {
        Some(&before) => g.add_slope(before, slope),
        None => slope,
    };
    links.insert(link, sum);
}

/// Changes of values of placeholders along the directions, one placeholder at a time.
pub(super) fn changes(
    g: &mut Graph,
    linearisation: &mut Linearisation<'_, '_>,
    leaves: &Leaves<'_>,
    values: &[ExprId],
    directions: &[Direction],
) -> Vec<SparseRow> {
    let one = g.one();
    let unknowns = linearisation.unknowns(g, directions);
    let (mechanism, data) = linearisation.parts();
    let replacements = leaves.replacements(g, mechanism);
    let mut rows = vec![SparseRow::new(); values.len()];
    for (leaf, symbols) in leaves.seen() {
        let slopes: Vec<Vec<ExprId>> =
            values.iter().map(|&value| gradient(g, &[(value, one)], symbols)).collect();
        if slopes.iter().flatten().all(|&slope| g.is(slope, 0.0)) {
            continue;
        }
        let changes = leaf_changes(g, mechanism, data, &unknowns, *leaf);
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
