//! What the forces of the model add to the tangent: −∂Q.
//!
//! Q_a = S̄_aᵀ W with W the wrenches on everything that a carries: along a direction b,
//! ∂Q_a = S̄_aᵀ ∂_b W + (Z_b × S̄_a)ᵀ W, the last for b that moves column a. A force F at r has W = (F, r × F), so
//! ∂W = (∂F, r × ∂F + ∂r × F); ∂F = Σ over its placeholders of F_leaf ∂leaf.

use super::Square;
use super::direction::Direction;
use super::leaf::{LeafChange, Moved, leaf_changes};
use crate::elements::{Element, Leaf, Load, Mechanism};
use crate::graph::{ExprId, Graph, Vec3, gradient};
use crate::kinematics::Spatial;
use crate::lowering::Environment;
use std::collections::BTreeMap;

/// How wrenches and generalised forces change.
pub(super) struct LoadTangent {
    /// W on everything that a link carries, about the origin.
    pub wrenches: Vec<Spatial>,
    /// ∂_b W, by (link, b).
    changes: BTreeMap<(usize, usize), Spatial>,
    /// ∂_b of a generalised force along velocity j, by (j, b).
    generalized: BTreeMap<(usize, usize), ExprId>,
}

/// Of the elements' loads.
pub(super) fn load_tangent(
    g: &mut Graph,
    mechanism: &mut Mechanism<'_>,
    elements: &[&Element<'_>],
    moved: Moved<'_>,
    directions: &[Direction],
) -> LoadTangent {
    let tree = mechanism.tree;
    let none = g.zero_spatial();
    let mut out = LoadTangent {
        wrenches: vec![none; tree.links.len()],
        changes: BTreeMap::new(),
        generalized: BTreeMap::new(),
    };
    for element in elements {
        let replacements = element.leaves.replacements(g, mechanism);
        let leaves: Vec<(&[ExprId], Vec<LeafChange>)> = element
            .leaves
            .seen()
            .iter()
            .map(|(leaf, symbols)| (symbols.as_slice(), leaf_changes(g, mechanism, moved, directions, *leaf)))
            .collect();
        for load in &element.loads {
            // explicit derivatives over the placeholders, then the mechanism in their place
            let values = load.values();
            let changes = explicit(g, &values, &leaves, &replacements);
            let load = load.with(&g.substitute(&values, &replacements));
            match load {
                Load::Generalized(j, _) => {
                    for (b, change) in changes {
                        let before = *out.generalized.entry((j, b)).or_insert_with(|| g.zero());
                        out.generalized.insert((j, b), g.add(before, change[0]));
                    }
                }
                Load::Force(at, value) => {
                    let Some(link) = tree.link_of_body[at.body.index()] else {
                        continue;
                    };
                    let r = mechanism.position(g, at);
                    let wrench = wrench_at(g, r, value);
                    out.wrenches[link] = g.add6(out.wrenches[link], wrench);
                    for (b, c) in changes {
                        let change = wrench_at(g, r, Vec3([c[0], c[1], c[2]]));
                        out.add(g, link, b, change);
                    }
                    // ∂r × F
                    for shifted in leaf_changes(g, mechanism, moved, directions, Leaf::Position(at)) {
                        let by = Vec3([shifted.change[0], shifted.change[1], shifted.change[2]]);
                        let change = Spatial { linear: g.zero_vector(), angular: g.cross3(by, value) };
                        out.add(g, link, shifted.unknown, change);
                    }
                }
                Load::Torque(on, value) => {
                    let Some(link) = tree.link_of_body[on.index()] else {
                        continue;
                    };
                    out.wrenches[link].angular = g.add3(out.wrenches[link].angular, value);
                    for (b, c) in changes {
                        let change = Spatial { linear: g.zero_vector(), angular: Vec3([c[0], c[1], c[2]]) };
                        out.add(g, link, b, change);
                    }
                }
            }
        }
    }
    // sums toward ground
    for (i, link) in tree.links.iter().enumerate().rev() {
        if let Some(p) = link.parent {
            out.wrenches[p] = g.add6(out.wrenches[p], out.wrenches[i]);
            for (b, change) in out.of_link(i) {
                out.add(g, p, b, change);
            }
        }
    }
    out
}

/// Σ over leaves of (∂value/∂leaf) ∂_b leaf, by unknown.
fn explicit(
    g: &mut Graph,
    values: &[ExprId],
    leaves: &[(&[ExprId], Vec<LeafChange>)],
    replacements: &hashbrown::HashMap<ExprId, ExprId>,
) -> BTreeMap<usize, Vec<ExprId>> {
    let (zero, one) = (g.zero(), g.one());
    let mut out: BTreeMap<usize, Vec<ExprId>> = BTreeMap::new();
    for (component, &value) in values.iter().enumerate() {
        for (symbols, changes) in leaves {
            let slopes = gradient(g, &[(value, one)], symbols);
            let slopes = g.substitute(&slopes, replacements);
            for LeafChange { unknown, change } in changes {
                let entry = out.entry(*unknown).or_insert_with(|| vec![zero; values.len()]);
                for (&slope, &change) in slopes.iter().zip(change) {
                    let product = g.mul(slope, change);
                    entry[component] = g.add(entry[component], product);
                }
            }
        }
    }
    out
}

impl LoadTangent {
    fn add(&mut self, g: &mut Graph, link: usize, b: usize, change: Spatial) {
        let none = g.zero_spatial();
        let before = *self.changes.entry((link, b)).or_insert(none);
        self.changes.insert((link, b), g.add6(before, change));
    }

    fn of_link(&self, link: usize) -> Vec<(usize, Spatial)> {
        self.changes.range((link, 0)..(link + 1, 0)).map(|(&(_, b), &change)| (b, change)).collect()
    }

    /// Takes S̄_aᵀ ∂_b W and the generalised forces off the tangent.
    pub(super) fn subtract(
        &self,
        g: &mut Graph,
        out: &mut Square,
        rows: &[Direction],
        row: impl Fn(usize) -> Option<(usize, Spatial)>,
    ) {
        for (a, direction) in rows.iter().enumerate() {
            if let Some((link, s)) = row(a) {
                for (b, change) in self.of_link(link) {
                    let share = g.dot6(s, change);
                    out.subtract(g, a, b, share);
                }
            }
            for term in &direction.terms {
                for (&(_, b), &change) in self.generalized.range((term.j, 0)..(term.j + 1, 0)) {
                    let share = g.mul(term.weights.position, change);
                    out.subtract(g, a, b, share);
                }
            }
        }
    }
}

/// (F, r × F)
fn wrench_at(g: &mut Graph, r: Vec3, force: Vec3) -> Spatial {
    Spatial { linear: force, angular: g.cross3(r, force) }
}
