//! Time derivatives of markers' Jacobians.
//!
//! With S_j = (s, w) about the origin, carried by the mechanism at the rate (sd, wd), and a marker at r:
//!
//! J_j = s + w × r,   Jd_j = sd + wd × r + w × rd.
//!
//! Jd v is the marker's acceleration at vd = 0.

use super::motion::columns;
use crate::elements::Mechanism;
use crate::graph::{ExprId, Graph};
use crate::kinematics::accelerations;
use crate::kinematics::accelerations::point_acceleration;
use crate::lowering::Environment;
use crate::model::MarkerRef;
use crate::symbols::Group;

/// Jd and Jd v of markers.
#[derive(Clone, Debug)]
pub struct MarkerRates {
    /// 3·markers × nv, by columns.
    pub jacobian_rates: Vec<ExprId>,
    /// Three for each marker.
    pub bias: Vec<ExprId>,
}

/// Of a mechanism that is referred to the origin.
pub fn marker_rates(
    g: &mut Graph,
    mechanism: &mut Mechanism<'_>,
    markers: &[(String, MarkerRef)],
) -> MarkerRates {
    let tree = mechanism.tree;
    let symbols = |g: &mut Graph, group| (0..tree.nv as u32).map(|j| g.symbol(group, j)).collect::<Vec<_>>();
    let (v, vd) = (symbols(g, Group::V), symbols(g, Group::Vd));
    let (columns, _) = columns(g, mechanism, &v, &vd);
    let still = g.zero_vector();
    let unforced = accelerations(g, tree, &mechanism.positions, &mechanism.velocities, still, None).links;
    let rows = 3 * markers.len();
    let mut jacobian_rates = vec![g.zero(); rows * tree.nv];
    let mut bias = Vec::with_capacity(rows);
    for (row, (_, marker)) in markers.iter().enumerate() {
        let link = tree.link_of_body[marker.body.index()];
        let Some(carrier) = link else {
            bias.extend(still.0);
            continue;
        };
        let r = mechanism.position(g, *marker);
        let rd = mechanism.point_velocity(g, *marker);
        let moving = &mechanism.velocities.links[carrier];
        let (omega, rate) = (moving.motion.angular, moving.reference_rate);
        bias.extend(point_acceleration(g, unforced[carrier], omega, r, rd, rate).0);
        let mut here = link;
        while let Some(i) = here {
            for j in tree.links[i].v_range() {
                let carried = g.shift_motion(columns[j].s_rate, r).linear;
                let moved = g.cross3(columns[j].s.angular, rd);
                let column = g.add3(carried, moved);
                jacobian_rates[j * rows + 3 * row..][..3].copy_from_slice(&column.0);
            }
            here = tree.links[i].parent;
        }
    }
    MarkerRates { jacobian_rates, bias }
}
