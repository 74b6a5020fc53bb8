//! Derivatives of inverse dynamics, tau = M vd + (velocity terms) − Q.
//!
//! For j at or before i on the way to ground, with composite inertia I, momentum p, force f of everything that
//! i carries, and 2B x = (2 α × p, R α), R = Σ ω̃J − Jω̃ − (Jω)~ − 2 h̃ṽ:
//!
//! ∂tau_i/∂θ_j = S_iᵀ (2B ψd_j + I ψdd_j),   ∂tau_j/∂θ_i = S_jᵀ (2B ψd_i + I ψdd_i + S_i ×* f),
//! ∂tau_i/∂v_j = S_iᵀ (2B S_j + I (ψd_j + Sd_j)),   ∂tau_j/∂v_i = S_jᵀ (2B S_i + I (ψd_i + Sd_i)).
//!
//! The linear columns of 2B vanish and its upper right block is −2p̃: both follow from Jacobi's identity.

use super::Square;
use super::loads::load_derivatives;
use super::motion::{Column, columns, movers};
use crate::dynamics::{BodyInertia, Symmetric, composite_inertias};
use crate::elements::Mechanism;
use crate::graph::{ExprId, Graph, Mat3, Vec3};
use crate::kinematics::Spatial;
use crate::symbols::Group;

/// ∂tau/∂θ (along the tangent, dz = N dθ), ∂tau/∂v and ∂tau/∂vd = M.
#[derive(Clone, Debug)]
pub struct InverseDynamicsDerivatives {
    /// ∂tau/∂θ
    pub by_position: Square,
    /// ∂tau/∂v
    pub by_velocity: Square,
    /// M
    pub mass_matrix: Square,
}

/// What a link carries, itself included, about the origin.
#[derive(Clone, Copy)]
struct Composite {
    inertia: BodyInertia,
    momentum: Vec3,
    rate: Mat3,
    force: Spatial,
}

/// All three matrices, for the vd of [`Group::Vd`]. The mechanism must be referred to the origin.
pub fn inverse_dynamics_derivatives(
    g: &mut Graph,
    mechanism: &mut Mechanism<'_>,
    inertias: &[(ExprId, Symmetric)],
) -> InverseDynamicsDerivatives {
    let n = mechanism.tree.nv;
    let v: Vec<ExprId> = (0..n as u32).map(|j| g.symbol(Group::V, j)).collect();
    let vd: Vec<ExprId> = (0..n as u32).map(|j| g.symbol(Group::Vd, j)).collect();
    let (columns, accelerations) = columns(g, mechanism, &v, &vd);
    let composites = composites(g, mechanism, inertias, &accelerations);
    let parents = mechanism.tree.v_parents();

    let mut out = InverseDynamicsDerivatives {
        by_position: Square::zero(g, n),
        by_velocity: Square::zero(g, n),
        mass_matrix: Square::zero(g, n),
    };
    for (i, column) in columns.iter().enumerate() {
        let composite = composites[column.link];
        inner_column(g, &mut out, i, column, composite, &columns, &movers(&columns, &parents, i));
    }
    load_derivatives(g, mechanism, &columns, &parents, &mut out.by_position, &mut out.by_velocity);
    out
}

/// The pairs (i, j) and (j, i) for all j at or before i.
fn inner_column(
    g: &mut Graph,
    out: &mut InverseDynamicsDerivatives,
    i: usize,
    column: &Column,
    composite: Composite,
    columns: &[Column],
    movers: &[usize],
) {
    // I S_i and (2B)ᵀ S_i = (0, 2 p × s + Rᵀ w) for the row of i
    let inertia_row = g.apply_inertia(composite.inertia, column.s);
    let two = g.constant(2.0);
    let twice = g.scale3(two, composite.momentum);
    let (p, q) = (g.cross3(twice, column.s.linear), g.apply_transposed(composite.rate, column.s.angular));
    let rate_row = g.add3(p, q);
    // 2B ψd + I ψdd + S ×* f and 2B S + I (ψd + Sd) for the column of i
    let turned = g.cross_force(column.s, composite.force);
    let carried = rate_times(g, composite, column.psi_rate);
    let accelerated = g.apply_inertia(composite.inertia, column.psi_acceleration);
    let sum = g.add6(carried, accelerated);
    let position_column = g.add6(sum, turned);
    let both = g.add6(column.psi_rate, column.s_rate);
    let (p, q) = (rate_times(g, composite, column.s), g.apply_inertia(composite.inertia, both));
    let velocity_column = g.add6(p, q);

    for &j in movers {
        let other = &columns[j];
        let mass = g.dot6(inertia_row, other.s);
        out.mass_matrix.set(i, j, mass);
        out.mass_matrix.set(j, i, mass);
        // row i, column j
        let (p, q) = (g.dot3(rate_row, other.psi_rate.angular), g.dot6(inertia_row, other.psi_acceleration));
        let entry = g.add(p, q);
        out.by_position.set(i, j, entry);
        let both = g.add6(other.psi_rate, other.s_rate);
        let (p, q) = (g.dot3(rate_row, other.s.angular), g.dot6(inertia_row, both));
        let entry = g.add(p, q);
        out.by_velocity.set(i, j, entry);
        // row j, column i
        if other.group != column.group {
            let entry = g.dot6(other.s, position_column);
            out.by_position.set(j, i, entry);
            let entry = g.dot6(other.s, velocity_column);
            out.by_velocity.set(j, i, entry);
        }
    }
}

/// 2B x = (2 α × p, R α)
fn rate_times(g: &mut Graph, composite: Composite, x: Spatial) -> Spatial {
    let two = g.constant(2.0);
    let twice = g.scale3(two, composite.momentum);
    Spatial { linear: g.cross3(x.angular, twice), angular: g.apply(composite.rate, x.angular) }
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

/// R = ω̃J − Jω̃ − (Jω)~ − 2 h̃ṽ. The first two make a symmetric matrix: ω̃J + (ω̃J)ᵀ.
fn rate_matrix(g: &mut Graph, body: BodyInertia, velocity: Spatial) -> Mat3 {
    let j = body.inertia.matrix();
    let omega = g.skew(velocity.angular);
    let turned = g.product(omega, j);
    let spin = g.apply(j, velocity.angular);
    let spin = g.neg3(spin);
    let spin = g.skew(spin);
    let two = g.constant(-2.0);
    let moment = g.scale3(two, body.moment);
    let (moment, linear) = (g.skew(moment), g.skew(velocity.linear));
    let moved = g.product(moment, linear);
    let symmetric = g.add33(turned, turned.transposed());
    let rest = g.add33(spin, moved);
    g.add33(symmetric, rest)
}
