//! Jacobians of constraint rows: Φ_z, A, and mixtures of them.
//!
//! Along the direction of an unknown a row changes by Σ over its placeholders of Φ_leaf ∂leaf. With the
//! position weights of the directions this is Φ_z (or Φ_v), with their velocity weights A, with both A'.

use super::direction::Direction;
use super::leaf::leaf_changes;
use super::tangent::Linearisation;
use crate::elements::ConstraintElement;
use crate::graph::{ExprId, Graph, gradient};
use std::collections::BTreeMap;

/// The nonzero entries of each row, by unknown; rows in the order of the elements' rows.
pub fn jacobian(
    g: &mut Graph,
    linearisation: &mut Linearisation<'_, '_>,
    elements: &[ConstraintElement<'_>],
    directions: &[Direction],
) -> Vec<BTreeMap<usize, ExprId>> {
    let one = g.one();
    let mut jacobian = Vec::new();
    for element in elements {
        let (mechanism, columns, parents) = linearisation.parts();
        let replacements = element.element.leaves.replacements(g, mechanism);
        let leaves: Vec<_> = element
            .element
            .leaves
            .seen()
            .iter()
            .map(|(leaf, symbols)| (symbols, leaf_changes(g, mechanism, columns, parents, directions, *leaf)))
            .collect();
        for row in &element.rows {
            let mut entries: BTreeMap<usize, ExprId> = BTreeMap::new();
            for (symbols, changes) in &leaves {
                let slopes = gradient(g, &[(row.value, one)], symbols);
                let slopes = g.substitute(&slopes, &replacements);
                for leaf in changes {
                    let terms: Vec<ExprId> = slopes
                        .iter()
                        .zip(&leaf.change)
                        .map(|(&slope, &change)| g.mul(slope, change))
                        .collect();
                    let share = g.sum(&terms);
                    let before = *entries.entry(leaf.unknown).or_insert_with(|| g.zero());
                    entries.insert(leaf.unknown, g.add(before, share));
                }
            }
            entries.retain(|_, &mut entry| !g.is(entry, 0.0));
            jacobian.push(entries);
        }
    }
    jacobian
}
