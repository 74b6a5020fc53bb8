//! Effect of unknowns on the links that they move.
//!
//! Unknown b moves the columns of one group by (w_p, w_v, w_a). With
//!
//! Z = Σ w_p S,   Y = Σ w_v S + w_p ψd,   X = Σ w_a S + w_v (ψd + Sd) + w_p ψdd,
//!
//! and the position, velocity and acceleration of a link i that b moves change by
//!
//! Z,   δV = Y + Z × V_i,   δA = X + Y × V_i + Z × A_i,
//!
//! sorted by factors of the unknown and factors of the link. The rate of a column S_j is ψd_j from what moves before its group; with V₀ and A₀ before it and V
//! after it,
//!
//! ∂V_i/∂θ_j = S_j × (V_i − V₀),  ∂V_i/∂v_j = S_j,  ∂A_i/∂θ_j = S_j × (A_i − A₀) + ψd_j × (V_i − V₀),  ∂A_i/∂v_j = ψd_j + S_j × (V_i − V),  ∂A_i/∂vd_j = S_j:
//!
//! seen from before the group, everything after it rotates as a whole.

use super::direction::{Direction, Weights};
use super::motion::{Column, ancestor_velocities};
use crate::graph::{ExprId, Graph};
use crate::kinematics::Spatial;
use crate::topology::Tree;

/// Motion that an unknown gives to the links.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnknownMotion {
    /// The link of its joint.
    pub link: usize,
    /// First velocity of its group.
    pub group: usize,
    /// w_p, and Z for w_p = 1: what differs in weights alone is then computed once.
    pub position: ExprId,
    pub unit: Spatial,
    pub z: Spatial,
    pub y: Spatial,
    pub x: Spatial,
}

/// The columns, the parents of velocities, and the accelerations of the links.
#[derive(Clone, Copy)]
pub(super) struct MotionData<'a> {
    pub columns: &'a [Column],
    pub parents: &'a [Option<usize>],
    pub accelerations: &'a [Spatial],
}

/// All unknowns with their motions.
pub(super) struct Unknowns {
    /// `None` for variables, which move no link.
    pub motions: Vec<Option<UnknownMotion>>,
    /// By the first velocity of a group.
    of_group: Vec<Vec<usize>>,
    /// By velocity, with the effect on it.
    pub of_velocity: Vec<Vec<(usize, Weights)>>,
}

impl Unknowns {
    /// One per direction.
    pub(super) fn new(g: &mut Graph, columns: &[Column], nv: usize, directions: &[Direction]) -> Unknowns {
        let motions: Vec<Option<UnknownMotion>> =
            directions.iter().map(|d| unknown_motion(g, columns, d)).collect();
        let mut of_group = vec![Vec::new(); columns.len()];
        let mut of_velocity = vec![Vec::new(); nv];
        for (b, direction) in directions.iter().enumerate() {
            if let Some(unknown) = &motions[b] {
                of_group[unknown.group].push(b);
            }
            for term in &direction.terms {
                of_velocity[term.j].push((b, term.weights));
            }
        }
        Unknowns { motions, of_group, of_velocity }
    }

    /// Those that move the column of velocity j: from its own group to ground.
    pub(super) fn of_column<'s>(
        &'s self,
        data: MotionData<'s>,
        j: usize,
    ) -> impl Iterator<Item = (usize, &'s UnknownMotion)> + 's {
        let mut groups: Vec<usize> = Vec::new();
        for k in ancestor_velocities(data.columns, data.parents, j) {
            let group = data.columns[k].group;
            if groups.last() != Some(&group) {
                groups.push(group);
            }
        }
        let all = groups.into_iter().flat_map(|group| self.of_group[group].iter().copied());
        all.filter_map(|b| Some((b, self.motions[b].as_ref()?)))
    }

    /// Those that move a link.
    pub(super) fn of_link(&self, tree: &Tree, data: MotionData<'_>, link: usize) -> Vec<usize> {
        // The nearest link with a joint velocity, on the way to ground.
        let mut links = std::iter::successors(Some(link), |&i| tree.links[i].parent);
        match links.find_map(|i| tree.links[i].v_range().last()) {
            Some(last) => self.of_column(data, last).map(|(b, _)| b).collect(),
            None => Vec::new(),
        }
    }
}

fn unknown_motion(g: &mut Graph, columns: &[Column], direction: &Direction) -> Option<UnknownMotion> {
    let first = columns.get(direction.terms.first()?.j)?;
    let none = g.zero_spatial();
    let [mut unit, mut y, mut x] = [none; 3];
    let add = |g: &mut Graph, sum: &mut Spatial, weight: ExprId, part: Spatial| {
        let share = g.scale6(weight, part);
        *sum = g.add6(*sum, share);
    };
    for term in &direction.terms {
        let (column, w) = (columns.get(term.j)?, term.weights);
        add(g, &mut unit, term.unit, column.s);
        add(g, &mut y, w.velocity, column.s);
        add(g, &mut y, w.position, column.psi_rate);
        add(g, &mut x, w.acceleration, column.s);
        let turned = g.add6(column.psi_rate, column.s_rate);
        add(g, &mut x, w.velocity, turned);
        add(g, &mut x, w.position, column.psi_acceleration);
    }
    let (position, z) = (direction.position, g.scale6(direction.position, unit));
    Some(UnknownMotion { link: first.link, group: first.group, position, unit, z, y, x })
}
