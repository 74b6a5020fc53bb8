//! What the forces of the model add to the derivatives: −∂Q/∂θ and −∂Q/∂v.
//!
//! Q_i = S_iᵀ W with W the wrenches on everything that i carries:
//! ∂Q_i/∂θ_j = S_iᵀ ∂W/∂θ_j + (S_j × S_i)ᵀ W, the last for j that moves column i. A force F at r has
//! W = (F, r × F), so ∂W = (∂F, r × ∂F + ∂r × F); ∂F = Σ over its placeholders of F_leaf ∂leaf.

use super::Square;
use super::leaf::{LeafDerivative, leaf_derivatives};
use super::motion::{Column, movers};
use crate::elements::{ForceElement, Load, Mechanism};
use crate::graph::{ExprId, Graph, Vec3, gradient};
use crate::kinematics::Spatial;
use crate::lowering::Environment;
use crate::model::BodyId;
use std::collections::BTreeMap;

/// Subtracts the forces' share from ∂tau/∂θ and ∂tau/∂v.
pub(super) fn load_derivatives(
    g: &mut Graph,
    mechanism: &mut Mechanism<'_>,
    columns: &[Column],
    parents: &[Option<usize>],
    by_position: &mut Square,
    by_velocity: &mut Square,
) {
    let tree = mechanism.tree;
    let none = g.zero_spatial();
    let mut wrenches = vec![none; tree.links.len()];
    // ∂W/∂θ_j and ∂W/∂v_j on links, by (link, j)
    let mut changes: BTreeMap<(usize, usize), [Spatial; 2]> = BTreeMap::new();
    for force in &mechanism.model.forces {
        let element = ForceElement::new(g, mechanism.model, tree, mechanism.parameters, force);
        let replacements = element.leaves.replacements(g, mechanism);
        let leaves: Vec<(Vec<ExprId>, Vec<LeafDerivative>)> = element
            .leaves
            .seen()
            .iter()
            .map(|(leaf, symbols)| (symbols.clone(), leaf_derivatives(g, mechanism, columns, parents, *leaf)))
            .collect();
        for load in &element.loads {
            // explicit derivatives over the placeholders, then the mechanism in their place
            let values = load.values();
            let one = g.one();
            let mut columns_of: BTreeMap<usize, [Vec<ExprId>; 2]> = BTreeMap::new();
            let zero = g.zero();
            for (component, &value) in values.iter().enumerate() {
                for (symbols, derivatives) in &leaves {
                    let slopes = gradient(g, &[(value, one)], symbols);
                    let slopes = g.substitute(&slopes, &replacements);
                    for derivative in derivatives {
                        let entry = columns_of
                            .entry(derivative.j)
                            .or_insert_with(|| [vec![zero; values.len()], vec![zero; values.len()]]);
                        for (which, leaf) in
                            [&derivative.by_position, &derivative.by_velocity].iter().enumerate()
                        {
                            for (&slope, &change) in slopes.iter().zip(leaf.iter()) {
                                let product = g.mul(slope, change);
                                entry[which][component] = g.add(entry[which][component], product);
                            }
                        }
                    }
                }
            }
            let load = load.with(&g.substitute(&values, &replacements));
            match load {
                Load::Generalized(i, _) => {
                    for (j, [position, velocity]) in columns_of {
                        by_position.subtract(g, i, j, position[0]);
                        by_velocity.subtract(g, i, j, velocity[0]);
                    }
                }
                Load::Force(at, value) => {
                    let Some(link) = tree.link_of_body[at.body.index()] else {
                        continue;
                    };
                    let r = mechanism.position(g, at);
                    let wrench = wrench_at(g, r, value);
                    wrenches[link] = g.add6(wrenches[link], wrench);
                    for (j, changed) in columns_of {
                        let changed = changed.map(|c| wrench_at(g, r, Vec3([c[0], c[1], c[2]])));
                        add_change(g, &mut changes, (link, j), changed);
                    }
                    // ∂r × F
                    for (j, moved) in moved_by(g, mechanism, columns, parents, at.body, r) {
                        let (zero, none) = (g.zero_vector(), g.zero_spatial());
                        let moment = g.cross3(moved, value);
                        add_change(
                            g,
                            &mut changes,
                            (link, j),
                            [Spatial { linear: zero, angular: moment }, none],
                        );
                    }
                }
                Load::Torque(on, value) => {
                    let Some(link) = tree.link_of_body[on.index()] else {
                        continue;
                    };
                    wrenches[link].angular = g.add3(wrenches[link].angular, value);
                    for (j, changed) in columns_of {
                        let linear = g.zero_vector();
                        let changed = changed.map(|c| Spatial { linear, angular: Vec3([c[0], c[1], c[2]]) });
                        add_change(g, &mut changes, (link, j), changed);
                    }
                }
            }
        }
    }
    // sums toward ground
    for (i, link) in tree.links.iter().enumerate().rev() {
        if let Some(p) = link.parent {
            wrenches[p] = g.add6(wrenches[p], wrenches[i]);
            let own: Vec<(usize, [Spatial; 2])> =
                changes.range((i, 0)..(i + 1, 0)).map(|(&(_, j), &change)| (j, change)).collect();
            for (j, change) in own {
                add_change(g, &mut changes, (p, j), change);
            }
        }
    }
    for (i, column) in columns.iter().enumerate() {
        let own: Vec<(usize, [Spatial; 2])> =
            changes.range((column.link, 0)..(column.link + 1, 0)).map(|(&(_, j), &c)| (j, c)).collect();
        for (j, [position, velocity]) in own {
            let (p, q) = (g.dot6(column.s, position), g.dot6(column.s, velocity));
            by_position.subtract(g, i, j, p);
            by_velocity.subtract(g, i, j, q);
        }
        // (S_j × S_i)ᵀ W
        for j in movers(columns, parents, i) {
            let turned = g.cross_motion(columns[j].s, column.s);
            let share = g.dot6(turned, wrenches[column.link]);
            by_position.subtract(g, i, j, share);
        }
    }
}

/// (F, r × F)
fn wrench_at(g: &mut Graph, r: Vec3, force: Vec3) -> Spatial {
    Spatial { linear: force, angular: g.cross3(r, force) }
}

fn add_change(
    g: &mut Graph,
    changes: &mut BTreeMap<(usize, usize), [Spatial; 2]>,
    key: (usize, usize),
    [position, velocity]: [Spatial; 2],
) {
    let none = g.zero_spatial();
    let before = *changes.entry(key).or_insert([none, none]);
    changes.insert(key, [g.add6(before[0], position), g.add6(before[1], velocity)]);
}

/// ∂r/∂θ_j for a point of a body.
fn moved_by(
    g: &mut Graph,
    mechanism: &Mechanism<'_>,
    columns: &[Column],
    parents: &[Option<usize>],
    body: BodyId,
    r: Vec3,
) -> Vec<(usize, Vec3)> {
    let mut link = mechanism.tree.link_of_body[body.index()];
    while let Some(i) = link {
        if let Some(last) = mechanism.tree.links[i].v_range().last() {
            let movers = movers(columns, parents, last);
            return movers.into_iter().map(|j| (j, g.shift_motion(columns[j].s, r).linear)).collect();
        }
        link = mechanism.tree.links[i].parent;
    }
    Vec::new()
}
