//! The tangent of inverse dynamics, tau = M vd + (velocity terms) − Q.
//!
//! An unknown b moves its descendants by Z_b, Y_b, X_b (see `unknowns`). With composite inertia I, momentum p and force f of all links that a group moves, and
//! 2B x = (2 α × p, R α), R = −2 Σ (ω̃ Σ₂ + h̃ṽ), Σ₂ = ½ tr J − J, the derivative of row a (column S̄_a) is
//!
//! b equal to a or an ancestor of a:       (I_a S̄_a)ᵀ X_b + ((2B_a)ᵀ S̄_a)ᵀ Y_b,
//! b a descendant of a:                    S̄_aᵀ (I_b X_b + 2B_b Y_b + Z_b ×* f_b).
//!
//! The linear columns of 2B vanish and its upper right block is −2p̃: both follow from Jacobi's identity. Unit
//! weights give ∂tau/∂θ, ∂tau/∂v and M [SinghRussellWensing2022]; an integrator's weights give its leading
//! matrix at the cost of one of them.

use super::Square;
use super::direction::Direction;
use super::loads::{LoadTangent, load_tangent};
use super::motion::{Column, columns};
use super::unknowns::{MotionData, UnknownMotion, Unknowns};
use crate::dynamics::{BodyInertia, Symmetric, composite_inertias};
use crate::elements::{Element, Loads, Mechanism};
use crate::graph::{ExprId, Graph, Mat3, Vec3};
use crate::kinematics::Spatial;
use crate::symbols::Group;
use crate::topology::Tree;

/// Composite of a link and its descendants, about the origin.
#[derive(Clone, Copy)]
struct Composite {
    inertia: BodyInertia,
    momentum: Vec3,
    rate: Mat3,
    force: Spatial,
}

/// Factors of the entries of an unknown with its ancestors, from the composite that it moves.
pub(super) struct CompositeFactors {
    /// Factor of X: I S̄, less the loads' part.
    pub by_x: Spatial,
    /// Factor of Y: (2B)ᵀ S̄, less the loads' part; without loads its linear part vanishes.
    pub by_y: Spatial,
    /// Factor of Z, to be subtracted: S̄ ×* W and the loads' part.
    pub by_z: Spatial,
    /// I X + 2B Y + Z ×* f, less the loads' part.
    pub column: Spatial,
}

/// The mechanism's columns and composites, from which tangents are taken. The mechanism must be referred to
/// the origin; accelerations are those of [`Group::Vd`].
pub struct Linearisation<'m, 'a> {
    mechanism: &'m mut Mechanism<'a>,
    columns: Vec<Column>,
    parents: Vec<Option<usize>>,
    accelerations: Vec<Spatial>,
    composites: Vec<Composite>,
}

impl<'m, 'a> Linearisation<'m, 'a> {
    /// Everything that does not depend on the directions.
    pub fn new(g: &mut Graph, mechanism: &'m mut Mechanism<'a>, inertias: &[(ExprId, Symmetric)]) -> Self {
        let n = mechanism.tree.nv as u32;
        let v: Vec<ExprId> = (0..n).map(|j| g.symbol(Group::V, j)).collect();
        let vd: Vec<ExprId> = (0..n).map(|j| g.symbol(Group::Vd, j)).collect();
        let (columns, accelerations) = columns(g, mechanism, &v, &vd);
        let composites = composites(g, mechanism, inertias, &accelerations);
        let parents = mechanism.tree.v_parents();
        Linearisation { mechanism, columns, parents, accelerations, composites }
    }

    /// The derivatives of Rᵀ tau, R given by the position weights of `rows`, along each list of directions. Rows and
    /// directions belong to the same unknowns. `elements` act in addition to inertia and gravity. Their derivatives use
    /// accumulated slopes if that saves operations for all lists together with `others`, which are computed in the same bundle.
    pub fn tangents<const N: usize>(
        &mut self,
        g: &mut Graph,
        elements: &[&Element<'_>],
        rows: &[Direction],
        directions: &[Vec<Direction>; N],
        others: &[ExprId],
    ) -> [Square; N] {
        let accumulated = directions.each_ref().map(|along| self.tangent_by(g, elements, rows, along, true));
        let differ = accumulated.iter().any(|(_, accumulated)| *accumulated);
        let accumulated = accumulated.map(|(tangent, _)| tangent);
        if !differ {
            return accumulated;
        }
        let separate_changes =
            directions.each_ref().map(|along| self.tangent_by(g, elements, rows, along, false).0);
        let [here, there] = [&accumulated, &separate_changes].map(|tangents| {
            let entries = tangents.iter().flat_map(|tangent| tangent.entries());
            let all: Vec<ExprId> = entries.chain(others).copied().collect();
            g.operations_per_call(&all)
        });
        if accumulation_pays(here, there) { accumulated } else { separate_changes }
    }

    /// The derivatives along one list of directions, and whether slopes of loads were accumulated.
    pub(super) fn tangent_by(
        &mut self,
        g: &mut Graph,
        elements: &[&Element<'_>],
        rows: &[Direction],
        directions: &[Direction],
        gather: bool,
    ) -> (Square, bool) {
        let unknowns = self.unknowns(g, directions);
        let (mechanism, data) = self.parts();
        let loads = load_tangent(g, mechanism, elements, data, &unknowns, gather);
        let of_rows = self.rows(g, rows);
        let mut out = Square::zero(g, directions.len());
        for (a, (unknown, &s)) in unknowns.motions.iter().zip(&of_rows).enumerate() {
            let Some(unknown) = unknown else { continue };
            let carried = self.composite_factors(g, &loads, s, unknown);
            self.pairs(g, &mut out, &unknowns, &of_rows, a, &carried);
        }
        let row = |a: usize| unknowns.motions[a].as_ref().map(|unknown| (unknown.link, of_rows[a]));
        loads.subtract(g, &mut out, rows, row);
        (out, loads.is_accumulated(g))
    }

    /// tau = S_jᵀ (f − W) − Q_j along every joint velocity, from the same sums as the tangent.
    pub fn forces(&self, g: &mut Graph, loads: &Loads) -> Vec<ExprId> {
        let tree = self.mechanism.tree;
        let mut wrenches = loads.links.clone();
        for (i, link) in tree.links.iter().enumerate().rev() {
            if let Some(p) = link.parent {
                wrenches[p] = g.add6(wrenches[p], wrenches[i]);
            }
        }
        let columns = self.columns.iter().map(|column| {
            let rest = g.sub6(self.composites[column.link].force, wrenches[column.link]);
            g.dot6(column.s, rest)
        });
        let mut tau: Vec<ExprId> = columns.collect();
        tau.resize(tree.nv, g.zero());
        tau.iter().zip(&loads.generalized).map(|(&t, &q)| g.sub(t, q)).collect()
    }

    /// The pairs (a, b) and (b, a) for all b at or before a.
    fn pairs(
        &self,
        g: &mut Graph,
        out: &mut Square,
        unknowns: &Unknowns,
        rows: &[Spatial],
        a: usize,
        carried: &CompositeFactors,
    ) {
        let Some(unknown) = &unknowns.motions[a] else { return };
        for (b, other) in unknowns.of_column(self.motion_data(), unknown.group) {
            // row a, column b
            let (p, q) = (g.dot6(carried.by_x, other.x), g.dot6(carried.by_y, other.y));
            let inner = g.add(p, q);
            let load = g.dot6(carried.by_z, other.z);
            let entry = g.sub(inner, load);
            out.set(a, b, entry);
            // row b, column a
            if other.group != unknown.group {
                let entry = g.dot6(rows[b], carried.column);
                out.set(b, a, entry);
            }
        }
    }

    /// Factors of an unknown from the composite that it moves; S̄ is that of its row.
    pub(super) fn composite_factors(
        &self,
        g: &mut Graph,
        loads: &LoadTangent,
        s: Spatial,
        unknown: &UnknownMotion,
    ) -> CompositeFactors {
        let composite = self.composites[unknown.link];
        // I S̄ and (2B)ᵀ S̄ = (0, 2 p × s + Rᵀ w)
        let inertia_row = g.apply_inertia(composite.inertia, s);
        let two = g.constant(2.0);
        let twice = g.scale3(two, composite.momentum);
        let (p, q) = (g.cross3(twice, s.linear), g.apply_transposed(composite.rate, s.angular));
        let rate_row = Spatial { linear: g.zero_vector(), angular: g.add3(p, q) };
        // (Z × S̄)ᵀ W = Zᵀ (S̄ ×* W): a wrench on the descendants of a does not rotate with the ancestors
        let turned_row = g.cross_force(s, loads.wrenches[unknown.link]);
        let slopes = &loads.accumulated[unknown.link];
        let work = g.work_slope(s, slopes);
        // I X + 2B Y + Z ×* f
        let turned = g.cross_force(unknown.z, composite.force);
        let carried = rate_times(g, composite, unknown.y.angular);
        let accelerated = g.apply_inertia(composite.inertia, unknown.x);
        let sum = g.add6(carried, accelerated);
        let sum = g.add6(sum, turned);
        let wrench = g.wrench_along(slopes, unknown);
        CompositeFactors {
            by_x: g.sub6(inertia_row, work.x),
            by_y: g.sub6(rate_row, work.y),
            by_z: g.add6(turned_row, work.z),
            column: g.sub6(sum, wrench),
        }
    }

    /// S̄ = Σ w_p S of every row, none for those of variables.
    pub(super) fn rows(&self, g: &mut Graph, rows: &[Direction]) -> Vec<Spatial> {
        let mut all = Vec::with_capacity(rows.len());
        for row in rows {
            let mut s = g.zero_spatial();
            for term in &row.terms {
                if let Some(column) = self.columns.get(term.j) {
                    let share = g.scale6(term.weights.position, column.s);
                    s = g.add6(s, share);
                }
            }
            all.push(s);
        }
        all
    }

    /// Effect of the directions on the links.
    pub(super) fn unknowns(&self, g: &mut Graph, directions: &[Direction]) -> Unknowns {
        Unknowns::new(g, &self.columns, self.mechanism.tree.nv, directions)
    }

    /// The mechanism.
    pub fn mechanism(&self) -> &Mechanism<'a> {
        self.mechanism
    }

    /// The mechanism's tree.
    pub fn tree(&self) -> &'a Tree {
        self.mechanism.tree
    }

    pub(super) fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Data for derivatives of elements.
    fn motion_data(&self) -> MotionData<'_> {
        let Linearisation { columns, parents, accelerations, .. } = self;
        MotionData { columns, parents, accelerations }
    }

    /// The mechanism, and the data for derivatives of elements.
    pub(super) fn parts(&mut self) -> (&mut Mechanism<'a>, MotionData<'_>) {
        let Linearisation { mechanism, columns, parents, accelerations, .. } = self;
        (mechanism, MotionData { columns, parents, accelerations })
    }
}

/// Whether accumulated slopes save at least a tenth of the operations. The margin is for operations that the counted expressions share with the rest of a
/// bundle, which the count does not see.
pub(super) fn accumulation_pays(accumulated: usize, separate_changes: usize) -> bool {
    10 * accumulated < 9 * separate_changes
}

/// 2B x = (2 α × p, R α)
fn rate_times(g: &mut Graph, composite: Composite, angular: Vec3) -> Spatial {
    let two = g.constant(2.0);
    let twice = g.scale3(two, composite.momentum);
    Spatial { linear: g.cross3(angular, twice), angular: g.apply(composite.rate, angular) }
}

fn composites(
    g: &mut Graph,
    mechanism: &Mechanism<'_>,
    inertias: &[(ExprId, Symmetric)],
    accelerations: &[Spatial],
) -> Vec<Composite> {
    let inertias_about_origin = composite_inertias(g, mechanism, inertias);
    let bodies = crate::dynamics::reference_inertias(g, mechanism, inertias);
    let mut all: Vec<Composite> = Vec::with_capacity(bodies.len());
    for (i, &body) in bodies.iter().enumerate() {
        let velocity = mechanism.velocities.links[i].motion;
        let momentum = g.apply_inertia(body, velocity);
        // f = I A + V ×* (I V)
        let (p, q) = (g.apply_inertia(body, accelerations[i]), g.cross_force(velocity, momentum));
        let force = g.add6(p, q);
        let rate = rate_matrix(g, body, velocity);
        all.push(Composite { inertia: inertias_about_origin[i], momentum: momentum.linear, rate, force });
    }
    for (i, link) in mechanism.tree.links.iter().enumerate().rev() {
        if let Some(p) = link.parent {
            all[p].momentum = g.add3(all[p].momentum, all[i].momentum);
            all[p].rate = g.add33(all[p].rate, all[i].rate);
            all[p].force = g.add6(all[p].force, all[i].force);
        }
    }
    all
}

/// R = −2 (ω̃ Σ₂ + h̃ṽ) with the second moments of mass Σ₂ = ½ tr J − J. The general ω̃J − Jω̃ − (Jω)~ of
/// \[SinghRussellWensing2022\] is −2 ω̃ Σ₂, since ω̃Σ₂ + Σ₂ω̃ = tr Σ₂ ω̃ − (Σ₂ω)~.
fn rate_matrix(g: &mut Graph, body: BodyInertia, velocity: Spatial) -> Mat3 {
    let [xx, yy, zz, xy, xz, yz] = body.inertia.0;
    let two = g.constant(2.0);
    let trace = g.sum(&[xx, yy, zz]);
    let [sx, sy, sz] = [xx, yy, zz].map(|j| {
        let twice = g.mul(two, j);
        g.sub(trace, twice)
    });
    let minus_two = g.constant(-2.0);
    let [sxy, sxz, syz] = [xy, xz, yz].map(|j| g.mul(minus_two, j));
    // −ω̃ 2Σ₂
    let second = Symmetric([sx, sy, sz, sxy, sxz, syz]).matrix();
    let back = g.neg3(velocity.angular);
    let omega = g.skew(back);
    let turned = g.product(omega, second);
    let moment = g.scale3(minus_two, body.moment);
    let (moment, linear) = (g.skew(moment), g.skew(velocity.linear));
    let moved = g.product(moment, linear);
    g.add33(turned, moved)
}
