//! The tangent of inverse dynamics, tau = M vd + (velocity terms) − Q, in one go.
//!
//! For unknown b that moves the columns of its group by (w_p, w_v, w_a), let
//!
//! Z_b = Σ w_p S,   Y_b = Σ w_v S + w_p ψd,   X_b = Σ w_a S + w_v (ψd + Sd) + w_p ψdd.
//!
//! With composite inertia I, momentum p, force f of everything that a group carries, and
//! 2B x = (2 α × p, R α), R = −2 Σ (ω̃ Σ₂ + h̃ṽ), Σ₂ = ½ tr J − J, the derivative of row a (column S̄_a) is
//!
//! b at or before a on the way to ground:  (I_a S̄_a)ᵀ X_b + ((2B_a)ᵀ S̄_a)ᵀ Y_b,
//! b after a:                              S̄_aᵀ (I_b X_b + 2B_b Y_b + Z_b ×* f_b).
//!
//! The linear columns of 2B vanish and its upper right block is −2p̃: both follow from Jacobi's identity. Unit
//! weights give ∂tau/∂θ, ∂tau/∂v and M [SinghRussellWensing2022]; an integrator's weights give its leading
//! matrix for the price of one of them.

use super::Square;
use super::direction::Direction;
use super::leaf::Moved;
use super::loads::{LoadTangent, load_tangent};
use super::motion::{Column, columns, movers};
use crate::dynamics::{BodyInertia, Symmetric, composite_inertias};
use crate::elements::{Element, Loads, Mechanism};
use crate::graph::{ExprId, Graph, Mat3, Vec3};
use crate::kinematics::Spatial;
use crate::symbols::Group;
use crate::topology::Tree;

/// What a link carries, itself included, about the origin.
#[derive(Clone, Copy)]
struct Composite {
    inertia: BodyInertia,
    momentum: Vec3,
    rate: Mat3,
    force: Spatial,
}

/// An unknown as the recursion sees it.
pub(super) struct Moving {
    pub link: usize,
    pub group: usize,
    /// S̄ of its row
    pub s: Spatial,
    pub x: Spatial,
    pub y: Vec3,
    pub z: Spatial,
}

/// What an unknown has of the composite it moves: factors of its entries with all unknowns before it.
pub(super) struct Carried {
    /// I S̄
    pub inertia_row: Spatial,
    /// the angular part of (2B)ᵀ S̄
    pub rate_row: Vec3,
    /// S̄ ×* W
    pub load_row: Spatial,
    /// I X + 2B Y + Z ×* f
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

    /// The derivatives of Rᵀ tau, R given by the position weights of `rows`, along the directions. Rows and
    /// directions are of the same unknowns. `elements` are what acts beside inertia and gravity.
    pub fn tangent(
        &mut self,
        g: &mut Graph,
        elements: &[&Element<'_>],
        rows: &[Direction],
        directions: &[Direction],
    ) -> Square {
        let n = directions.len();
        let (mechanism, moved) = self.parts();
        let loads = load_tangent(g, mechanism, elements, moved, directions);
        let moving: Vec<Option<Moving>> =
            rows.iter().zip(directions).map(|(row, d)| self.moving(g, row, d)).collect();
        let mut unknowns: Vec<Vec<usize>> = vec![Vec::new(); self.columns.len()];
        for (a, unknown) in moving.iter().enumerate() {
            if let Some(unknown) = unknown {
                unknowns[unknown.group].push(a);
            }
        }
        let mut out = Square::zero(g, n);
        for (a, unknown) in moving.iter().enumerate() {
            let Some(unknown) = unknown else { continue };
            self.pairs(g, &mut out, &moving, &unknowns, &loads, a, unknown);
        }
        loads.subtract(g, &mut out, rows, |a| moving[a].as_ref().map(|m| (m.link, m.s)));
        out
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
    #[allow(clippy::too_many_arguments, reason = "one formula, used once")]
    fn pairs(
        &self,
        g: &mut Graph,
        out: &mut Square,
        moving: &[Option<Moving>],
        unknowns: &[Vec<usize>],
        loads: &LoadTangent,
        a: usize,
        unknown: &Moving,
    ) {
        let carried = self.carried(g, loads, unknown);
        let mut group = None;
        for j in movers(&self.columns, &self.parents, unknown.group) {
            if group == Some(self.columns[j].group) {
                continue;
            }
            group = Some(self.columns[j].group);
            for &b in &unknowns[self.columns[j].group] {
                let Some(other) = &moving[b] else { continue };
                // row a, column b
                let (p, q) = (g.dot6(carried.inertia_row, other.x), g.dot3(carried.rate_row, other.y));
                let inner = g.add(p, q);
                let load = g.dot6(carried.load_row, other.z);
                let entry = g.sub(inner, load);
                out.set(a, b, entry);
                // row b, column a
                if other.group != unknown.group {
                    let entry = g.dot6(other.s, carried.column);
                    out.set(b, a, entry);
                }
            }
        }
    }

    /// What an unknown has of the composite it moves.
    pub(super) fn carried(&self, g: &mut Graph, loads: &LoadTangent, unknown: &Moving) -> Carried {
        let composite = self.composites[unknown.link];
        let s = unknown.s;
        // I S̄ and (2B)ᵀ S̄ = (0, 2 p × s + Rᵀ w)
        let inertia_row = g.apply_inertia(composite.inertia, s);
        let two = g.constant(2.0);
        let twice = g.scale3(two, composite.momentum);
        let (p, q) = (g.cross3(twice, s.linear), g.apply_transposed(composite.rate, s.angular));
        let rate_row = g.add3(p, q);
        // (Z × S̄)ᵀ W = Zᵀ (S̄ ×* W): a wrench on what a carries does not turn with the joints before it
        let load_row = g.cross_force(s, loads.wrenches[unknown.link]);
        // I X + 2B Y + Z ×* f
        let turned = g.cross_force(unknown.z, composite.force);
        let carried = rate_times(g, composite, unknown.y);
        let accelerated = g.apply_inertia(composite.inertia, unknown.x);
        let sum = g.add6(carried, accelerated);
        let column = g.add6(sum, turned);
        Carried { inertia_row, rate_row, load_row, column }
    }

    pub(super) fn moving(&self, g: &mut Graph, row: &Direction, direction: &Direction) -> Option<Moving> {
        let first = self.columns.get(direction.terms.first()?.j)?;
        let zero = g.zero_vector();
        let none = g.zero_spatial();
        let (mut s, mut x, mut y, mut z) = (none, none, zero, none);
        for term in &row.terms {
            let share = g.scale6(term.weights.position, self.columns[term.j].s);
            s = g.add6(s, share);
        }
        for term in &direction.terms {
            let (column, w) = (&self.columns[term.j], term.weights);
            let share = g.scale6(w.position, column.s);
            z = g.add6(z, share);
            let (p, q) =
                (g.scale3(w.velocity, column.s.angular), g.scale3(w.position, column.psi_rate.angular));
            let share = g.add3(p, q);
            y = g.add3(y, share);
            let carried = g.add6(column.psi_rate, column.s_rate);
            for (weight, part) in
                [(w.acceleration, column.s), (w.velocity, carried), (w.position, column.psi_acceleration)]
            {
                let share = g.scale6(weight, part);
                x = g.add6(x, share);
            }
        }
        Some(Moving { link: first.link, group: first.group, s, x, y, z })
    }

    /// The mechanism's tree.
    pub fn tree(&self) -> &'a Tree {
        self.mechanism.tree
    }

    pub(super) fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// What derivatives of elements need.
    pub(super) fn parts(&mut self) -> (&mut Mechanism<'a>, Moved<'_>) {
        let Linearisation { mechanism, columns, parents, accelerations, .. } = self;
        (mechanism, Moved { columns, parents, accelerations })
    }
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
