//! Contribution of the model's forces to the tangent: −∂Q.
//!
//! Q_a = S̄_aᵀ W with W the sum of the wrenches on the links that a moves: along a direction b,
//! ∂Q_a = S̄_aᵀ ∂_b W + (Z_b × S̄_a)ᵀ W, the last for b that moves column a. A force F at r has W = (F, r × F), so
//! ∂W = (∂F, r × ∂F + ∂r × F); ∂F = Σ over its placeholders of F_leaf ∂leaf.
//!
//! There are two ways to compute ∂W. Separate: ∂_b W for every link and every unknown. Accumulated: a wrench on link i that depends on the motion of
//! link i changes by slopes times (Z, Y, X)_b (see `slopes`), and slopes are summed toward ground like inertias, so that forces add no cost per
//! pair of unknowns. If a wrench on link i depends on another link j, the slopes are accumulated as if
//! they were with respect to link i, and corrected separately for the unknowns that move only one of the two. This is done where they are few.

use super::Square;
use super::direction::Direction;
use super::leaf::{LeafChange, leaf_changes, link_of};
use super::slopes::{Slope, WrenchSlope, leaf_slope};
use super::unknowns::{MotionData, Unknowns};
use crate::elements::{Element, Leaf, Load, Mechanism};
use crate::graph::{ExprId, Graph, Vec3, gradient};
use crate::kinematics::Spatial;
use crate::lowering::Environment;
use crate::topology::Tree;
use hashbrown::HashMap;
use std::collections::BTreeMap;

/// Derivatives of wrenches and generalised forces.
pub(super) struct LoadTangent {
    /// W: sum of the wrenches on a link and its descendants, about the origin.
    pub wrenches: Vec<Spatial>,
    /// Accumulated slopes of W with respect to the motion of the link.
    pub accumulated: Vec<WrenchSlope>,
    /// The rest of ∂_b W, by (link, b).
    changes: BTreeMap<(usize, usize), Spatial>,
    /// ∂_b of a generalised force along velocity j, by (j, b).
    generalized: BTreeMap<(usize, usize), ExprId>,
}

/// A placeholder, and the derivatives of a load's expressions with respect to it.
struct LeafSlopes {
    leaf: Leaf,
    /// The link that carries it.
    link: Option<usize>,
    by: Vec<Vec<ExprId>>,
}

/// Collects the derivatives of loads.
struct Collection<'c, 'm, 'a> {
    mechanism: &'c mut Mechanism<'m>,
    data: MotionData<'a>,
    unknowns: &'c Unknowns,
    gather: bool,
    out: LoadTangent,
}

/// Derivatives of the elements' loads.
pub(super) fn load_tangent(
    g: &mut Graph,
    mechanism: &mut Mechanism<'_>,
    elements: &[&Element<'_>],
    data: MotionData<'_>,
    unknowns: &Unknowns,
    gather: bool,
) -> LoadTangent {
    let tree = mechanism.tree;
    let (none, no_slope) = (g.zero_spatial(), g.no_slope());
    let out = LoadTangent {
        wrenches: vec![none; tree.links.len()],
        accumulated: vec![WrenchSlope([no_slope; 6]); tree.links.len()],
        changes: BTreeMap::new(),
        generalized: BTreeMap::new(),
    };
    let mut all = Collection { mechanism, data, unknowns, gather, out };
    for element in elements {
        let replacements = element.leaves.replacements(g, all.mechanism);
        for load in &element.loads {
            let slopes = all.explicit(g, element, load, &replacements);
            let load = load.with(&g.substitute(&load.values(), &replacements));
            all.add(g, &load, &slopes);
        }
    }
    let mut out = all.out;
    out.sum_toward_ground(g, tree);
    out
}

impl Collection<'_, '_, '_> {
    /// Explicit derivatives with respect to the placeholders, which are then replaced by the mechanism's expressions.
    fn explicit(
        &self,
        g: &mut Graph,
        element: &Element<'_>,
        load: &Load,
        replacements: &HashMap<ExprId, ExprId>,
    ) -> Vec<LeafSlopes> {
        let one = g.one();
        let mut all = Vec::new();
        for (leaf, symbols) in element.leaves.seen() {
            let by = load.values().iter().map(|&value| gradient(g, &[(value, one)], symbols)).collect();
            let by: Vec<Vec<ExprId>> = by;
            if by.iter().flatten().any(|&slope| !g.is(slope, 0.0)) {
                let by = by.iter().map(|slopes| g.substitute(slopes, replacements)).collect();
                all.push(LeafSlopes { leaf: *leaf, link: link_of(self.mechanism, *leaf), by });
            }
        }
        all
    }

    fn add(&mut self, g: &mut Graph, load: &Load, slopes: &[LeafSlopes]) {
        let link_of_body = &self.mechanism.tree.link_of_body;
        match *load {
            Load::Generalized(j, _) => {
                for slopes in slopes {
                    for (b, change) in self.separate_changes(g, slopes) {
                        let before = *self.out.generalized.entry((j, b)).or_insert_with(|| g.zero());
                        self.out.generalized.insert((j, b), g.add(before, change[0]));
                    }
                }
            }
            Load::Force(at, value) => {
                let Some(link) = link_of_body[at.body.index()] else { return };
                let r = self.mechanism.position(g, at);
                let wrench = wrench_at(g, r, value);
                self.out.wrenches[link] = g.add6(self.out.wrenches[link], wrench);
                let change = |g: &mut Graph, force: Vec3| wrench_at(g, r, force);
                self.add_slopes(g, link, slopes, change, |g, force| g.wrench_slope_at(r, force));
                // ∂r × F
                if self.gather {
                    let lever = g.lever_slope(r, value);
                    let slope = g.moment_slope(lever);
                    self.out.accumulated[link] = g.add_wrench_slope(self.out.accumulated[link], slope);
                } else {
                    for shifted in
                        leaf_changes(g, self.mechanism, self.data, self.unknowns, Leaf::Position(at))
                    {
                        let by = Vec3([shifted.change[0], shifted.change[1], shifted.change[2]]);
                        let change = Spatial { linear: g.zero_vector(), angular: g.cross3(by, value) };
                        self.out.add(g, link, shifted.unknown, change);
                    }
                }
            }
            Load::Torque(on, value) => {
                let Some(link) = link_of_body[on.index()] else { return };
                self.out.wrenches[link].angular = g.add3(self.out.wrenches[link].angular, value);
                let change =
                    |g: &mut Graph, moment: Vec3| Spatial { linear: g.zero_vector(), angular: moment };
                self.add_slopes(g, link, slopes, change, |g, moment| g.moment_slope(moment));
            }
        }
    }

    /// Derivatives of a force or moment on a link with respect to its placeholders; the two functions convert it into a wrench.
    fn add_slopes(
        &mut self,
        g: &mut Graph,
        link: usize,
        slopes: &[LeafSlopes],
        change: impl Fn(&mut Graph, Vec3) -> Spatial,
        slope: impl Fn(&mut Graph, [Slope; 3]) -> WrenchSlope,
    ) {
        let tree = self.mechanism.tree;
        let own = self.unknowns.of_link(tree, self.data, link);
        let mut accumulated: BTreeMap<usize, [Slope; 3]> = BTreeMap::new();
        let mut changes: BTreeMap<usize, Vec3> = BTreeMap::new();
        let add = |g: &mut Graph, changes: &mut BTreeMap<usize, Vec3>, b: usize, change: Vec3| {
            let before = *changes.entry(b).or_insert_with(|| g.zero_vector());
            changes.insert(b, g.add3(before, change));
        };
        for slopes in slopes {
            let other = slopes.link.filter(|&other| {
                let theirs = self.unknowns.of_link(tree, self.data, other);
                let common = own.iter().filter(|b| theirs.contains(b)).count();
                self.gather && own.len() < 2 * common
            });
            match other {
                Some(other) => {
                    let none = g.no_slope();
                    let sum = accumulated.entry(other).or_insert([none; 3]);
                    for (sum, by) in sum.iter_mut().zip(&slopes.by) {
                        let c = Vec3([by[0], by[1], by[2]]);
                        let share = leaf_slope(g, self.mechanism, self.data, slopes.leaf, other, c);
                        *sum = g.add_slope(*sum, share.unwrap_or(none));
                    }
                }
                None => {
                    for (b, c) in self.separate_changes(g, slopes) {
                        add(g, &mut changes, b, Vec3([c[0], c[1], c[2]]));
                    }
                }
            }
        }
        for (other, force) in accumulated {
            let whole = slope(g, force);
            self.out.accumulated[link] = g.add_wrench_slope(self.out.accumulated[link], whole);
            // Unknowns that move only one of the two links.
            let theirs = self.unknowns.of_link(tree, self.data, other);
            for (here, there, added) in [(&theirs, &own, true), (&own, &theirs, false)] {
                for &b in here.iter().filter(|b| !there.contains(b)) {
                    let Some(unknown) = &self.unknowns.motions[b] else { continue };
                    let moved = Vec3(force.map(|slope| g.along(slope, unknown)));
                    let moved = if added { moved } else { g.neg3(moved) };
                    add(g, &mut changes, b, moved);
                }
            }
        }
        for (b, moved) in changes {
            let change = change(g, moved);
            self.out.add(g, link, b, change);
        }
    }

    /// (∂value/∂leaf) ∂_b leaf, by unknown.
    fn separate_changes(&mut self, g: &mut Graph, slopes: &LeafSlopes) -> Vec<(usize, Vec<ExprId>)> {
        let changes = leaf_changes(g, self.mechanism, self.data, self.unknowns, slopes.leaf);
        let mut all = Vec::new();
        for LeafChange { unknown, change } in changes {
            let of_value = |by: &Vec<ExprId>| {
                let terms: Vec<ExprId> = by.iter().zip(&change).map(|(&c, &x)| g.mul(c, x)).collect();
                g.sum(&terms)
            };
            all.push((unknown, slopes.by.iter().map(of_value).collect()));
        }
        all
    }
}

impl LoadTangent {
    /// Whether any slope was accumulated.
    pub(super) fn is_accumulated(&self, g: &Graph) -> bool {
        let rows = self.accumulated.iter().flat_map(|slope| &slope.0);
        let mut numbers = rows.flat_map(|row| [row.z, row.y, row.x]).flat_map(Spatial::numbers);
        numbers.any(|number| !g.is(number, 0.0))
    }

    fn sum_toward_ground(&mut self, g: &mut Graph, tree: &Tree) {
        for (i, link) in tree.links.iter().enumerate().rev() {
            if let Some(p) = link.parent {
                self.wrenches[p] = g.add6(self.wrenches[p], self.wrenches[i]);
                self.accumulated[p] = g.add_wrench_slope(self.accumulated[p], self.accumulated[i]);
                for (b, change) in self.of_link(i) {
                    self.add(g, p, b, change);
                }
            }
        }
    }

    fn add(&mut self, g: &mut Graph, link: usize, b: usize, change: Spatial) {
        let none = g.zero_spatial();
        let before = *self.changes.entry((link, b)).or_insert(none);
        self.changes.insert((link, b), g.add6(before, change));
    }

    fn of_link(&self, link: usize) -> Vec<(usize, Spatial)> {
        self.changes.range((link, 0)..(link + 1, 0)).map(|(&(_, b), &change)| (b, change)).collect()
    }

    /// Subtracts S̄_aᵀ ∂_b W and the generalised forces from the tangent.
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
