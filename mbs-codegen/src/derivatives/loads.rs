//! What the forces of the model add to the tangent: −∂Q.
//!
//! Q_a = S̄_aᵀ W with W the wrenches on everything that a carries: along a direction b,
//! ∂Q_a = S̄_aᵀ ∂_b W + (Z_b × S̄_a)ᵀ W, the last for b that moves column a. A force F at r has W = (F, r × F), so
//! ∂W = (∂F, r × ∂F + ∂r × F); ∂F = Σ over its placeholders of F_leaf ∂leaf.
//!
//! There are two ways to ∂W. One by one: ∂_b W for every link and every unknown. Gathered: a wrench on link i that depends on the motion of
//! link i changes by slopes times (Z, Y, X)_b (see `slopes`), and slopes are summed toward ground like inertias, so that no pair of an
//! unknown and another costs more than without forces. Where a wrench on link i depends on another link j, the slopes are counted as if
//! they were by link i, and the unknowns that move one of both put right one by one; so that is done where they are few.

use super::Square;
use super::direction::Direction;
use super::leaf::{LeafChange, leaf_changes, link_of};
use super::slopes::{Slope, WrenchSlope, leaf_slope};
use super::unknowns::{Moved, Unknowns};
use crate::elements::{Element, Leaf, Load, Mechanism};
use crate::graph::{ExprId, Graph, Vec3, gradient};
use crate::kinematics::Spatial;
use crate::lowering::Environment;
use crate::topology::Tree;
use hashbrown::HashMap;
use std::collections::BTreeMap;

/// How wrenches and generalised forces change.
pub(super) struct LoadTangent {
    /// W on everything that a link carries, about the origin.
    pub wrenches: Vec<Spatial>,
    /// Its slopes by all that move the link, as far as gathered.
    pub gathered: Vec<WrenchSlope>,
    /// The rest of ∂_b W, by (link, b).
    changes: BTreeMap<(usize, usize), Spatial>,
    /// ∂_b of a generalised force along velocity j, by (j, b).
    generalized: BTreeMap<(usize, usize), ExprId>,
}

/// A placeholder, and slopes of a load's expressions by it.
struct LeafSlopes {
    leaf: Leaf,
    /// The link that carries it.
    link: Option<usize>,
    by: Vec<Vec<ExprId>>,
}

/// Where loads are collected.
struct Collection<'c, 'm, 'a> {
    mechanism: &'c mut Mechanism<'m>,
    moved: Moved<'a>,
    unknowns: &'c Unknowns,
    gather: bool,
    out: LoadTangent,
}

/// Of the elements' loads.
pub(super) fn load_tangent(
    g: &mut Graph,
    mechanism: &mut Mechanism<'_>,
    elements: &[&Element<'_>],
    moved: Moved<'_>,
    unknowns: &Unknowns,
    gather: bool,
) -> LoadTangent {
    let tree = mechanism.tree;
    let (none, no_slope) = (g.zero_spatial(), g.no_slope());
    let out = LoadTangent {
        wrenches: vec![none; tree.links.len()],
        gathered: vec![WrenchSlope([no_slope; 6]); tree.links.len()],
        changes: BTreeMap::new(),
        generalized: BTreeMap::new(),
    };
    let mut all = Collection { mechanism, moved, unknowns, gather, out };
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
    /// Explicit derivatives over the placeholders, then the mechanism in their place.
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
                    for (b, change) in self.one_by_one(g, slopes) {
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
                    self.out.gathered[link] = g.add_wrench_slope(self.out.gathered[link], slope);
                } else {
                    for shifted in
                        leaf_changes(g, self.mechanism, self.moved, self.unknowns, Leaf::Position(at))
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

    /// What a force or moment on a link, of which both functions make a wrench, changes by its placeholders.
    fn add_slopes(
        &mut self,
        g: &mut Graph,
        link: usize,
        slopes: &[LeafSlopes],
        change: impl Fn(&mut Graph, Vec3) -> Spatial,
        slope: impl Fn(&mut Graph, [Slope; 3]) -> WrenchSlope,
    ) {
        let tree = self.mechanism.tree;
        let own = self.unknowns.of_link(tree, self.moved, link);
        let mut gathered: BTreeMap<usize, [Slope; 3]> = BTreeMap::new();
        let mut changes: BTreeMap<usize, Vec3> = BTreeMap::new();
        let add = |g: &mut Graph, changes: &mut BTreeMap<usize, Vec3>, b: usize, change: Vec3| {
            let before = *changes.entry(b).or_insert_with(|| g.zero_vector());
            changes.insert(b, g.add3(before, change));
        };
        for slopes in slopes {
            let other = slopes.link.filter(|&other| {
                let theirs = self.unknowns.of_link(tree, self.moved, other);
                let common = own.iter().filter(|b| theirs.contains(b)).count();
                self.gather && own.len() < 2 * common
            });
            match other {
                Some(other) => {
                    let none = g.no_slope();
                    let sum = gathered.entry(other).or_insert([none; 3]);
                    for (sum, by) in sum.iter_mut().zip(&slopes.by) {
                        let c = Vec3([by[0], by[1], by[2]]);
                        let share = leaf_slope(g, self.mechanism, self.moved, slopes.leaf, other, c);
                        *sum = g.add_slope(*sum, share.unwrap_or(none));
                    }
                }
                None => {
                    for (b, c) in self.one_by_one(g, slopes) {
                        add(g, &mut changes, b, Vec3([c[0], c[1], c[2]]));
                    }
                }
            }
        }
        for (other, force) in gathered {
            let whole = slope(g, force);
            self.out.gathered[link] = g.add_wrench_slope(self.out.gathered[link], whole);
            // Unknowns that move one of both links.
            let theirs = self.unknowns.of_link(tree, self.moved, other);
            for (here, there, added) in [(&theirs, &own, true), (&own, &theirs, false)] {
                for &b in here.iter().filter(|b| !there.contains(b)) {
                    let Some(unknown) = &self.unknowns.moving[b] else { continue };
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
    fn one_by_one(&mut self, g: &mut Graph, slopes: &LeafSlopes) -> Vec<(usize, Vec<ExprId>)> {
        let changes = leaf_changes(g, self.mechanism, self.moved, self.unknowns, slopes.leaf);
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
    /// Whether there are gathered slopes.
    pub(super) fn is_gathered(&self, g: &Graph) -> bool {
        let rows = self.gathered.iter().flat_map(|slope| &slope.0);
        let mut numbers = rows.flat_map(|row| [row.z, row.y, row.x]).flat_map(Spatial::numbers);
        numbers.any(|number| !g.is(number, 0.0))
    }

    fn sum_toward_ground(&mut self, g: &mut Graph, tree: &Tree) {
        for (i, link) in tree.links.iter().enumerate().rev() {
            if let Some(p) = link.parent {
                self.wrenches[p] = g.add6(self.wrenches[p], self.wrenches[i]);
                self.gathered[p] = g.add_wrench_slope(self.gathered[p], self.gathered[i]);
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
