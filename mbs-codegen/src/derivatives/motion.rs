//! The columns S with their rates ψd, ψdd, Sd, and the ancestors of each velocity.

use crate::elements::Mechanism;
use crate::graph::{ExprId, Graph};
use crate::kinematics::Spatial;

/// A column of the motion and its rates.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    /// The link it belongs to.
    pub link: usize,
    /// First velocity of its group; the three velocities of Euler parameters are one group.
    pub group: usize,
    /// S_j
    pub s: Spatial,
    /// ψd_j
    pub psi_rate: Spatial,
    /// ψdd_j
    pub psi_acceleration: Spatial,
    /// Sd_j
    pub s_rate: Spatial,
}

impl Graph {
    /// a × b for motions: (ω_a × v_b + v_a × ω_b, ω_a × ω_b)
    pub(super) fn cross_motion(&mut self, a: Spatial, b: Spatial) -> Spatial {
        let (p, q) = (self.cross3(a.angular, b.linear), self.cross3(a.linear, b.angular));
        Spatial { linear: self.add3(p, q), angular: self.cross3(a.angular, b.angular) }
    }

    /// a ×* f for a motion and a force: (ω × F, ω × n + v × F)
    pub(super) fn cross_force(&mut self, a: Spatial, f: Spatial) -> Spatial {
        let (p, q) = (self.cross3(a.angular, f.angular), self.cross3(a.linear, f.linear));
        Spatial { linear: self.cross3(a.angular, f.linear), angular: self.add3(p, q) }
    }
}

/// All columns, and the acceleration of every link with gravity as an acceleration of ground.
pub(super) fn columns(
    g: &mut Graph,
    mechanism: &Mechanism<'_>,
    v: &[ExprId],
    vd: &[ExprId],
) -> (Vec<Column>, Vec<Spatial>) {
    let tree = mechanism.tree;
    let mut columns: Vec<Column> = Vec::with_capacity(tree.nv);
    let mut velocities: Vec<Spatial> = Vec::with_capacity(tree.links.len());
    let mut accelerations: Vec<Spatial> = Vec::with_capacity(tree.links.len());
    for (i, link) in tree.links.iter().enumerate() {
        let (mut velocity, mut acceleration) = match link.parent {
            Some(p) => (velocities[p], accelerations[p]),
            None => {
                let up = g.neg3(mechanism.gravity);
                let zero = g.zero_vector();
                (g.zero_spatial(), Spatial { linear: up, angular: zero })
            }
        };
        let ball = link.euler_parameters().map(|(_, v)| v);
        let mut j = link.v;
        while j < link.v_range().end {
            let group = j..if ball == Some(j) { j + 3 } else { j + 1 };
            let (before, before_acceleration) = (velocity, acceleration);
            let motions: Vec<Spatial> =
                group.clone().map(|k| mechanism.positions.links[i].columns[k - link.v].motion).collect();
            for (k, &s) in group.clone().zip(&motions) {
                let share = g.scale6(v[k], s);
                velocity = g.add6(velocity, share);
            }
            for (k, &s) in group.clone().zip(&motions) {
                let psi_rate = g.cross_motion(before, s);
                // V × S = V₀ × S + v S × S for a column alone
                let s_rate = if group.len() == 1 { psi_rate } else { g.cross_motion(velocity, s) };
                let (p, q) = (g.cross_motion(before_acceleration, s), g.cross_motion(before, psi_rate));
                let psi_acceleration = g.add6(p, q);
                columns.push(Column { link: i, group: group.start, s, psi_rate, psi_acceleration, s_rate });
                // A = A₀ + Σ S vd + Sd v
                let (pushed, carried) = (g.scale6(vd[k], s), g.scale6(v[k], s_rate));
                let sum = g.add6(pushed, carried);
                acceleration = g.add6(acceleration, sum);
            }
            j = group.end;
        }
        velocities.push(velocity);
        accelerations.push(acceleration);
    }
    (columns, accelerations)
}

/// The velocities that move column j: those between j's group and ground, its own group included.
pub(super) fn ancestor_velocities(columns: &[Column], parents: &[Option<usize>], j: usize) -> Vec<usize> {
    // The last velocity of j's group comes first.
    let mut last = j;
    while columns.get(last + 1).is_some_and(|c| c.group == columns[j].group) {
        last += 1;
    }
    std::iter::successors(Some(last), |&k| parents[k]).collect()
}
