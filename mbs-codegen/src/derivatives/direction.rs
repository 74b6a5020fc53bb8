//! Directions of derivatives: the effect of one unknown on the joints.
//!
//! An unknown moves the joints of one group by dθ, dv, dvd. In joint form it is one joint velocity. In
//! coordinate form, with dz = w_p e, dzd = w_v e, dzdd = w_a e for the unit vector e of one coordinate, and
//! v = L zd, vd = L zdd + h, h = Ld zd:
//!
//! dθ = w_p L e,   dv = w_v L e + w_p (L zd)_z e,   dvd = w_a L e + w_v h_zd e + w_p (L zdd + h)_z e.
//!
//! L is the unit matrix except for Euler parameters, where L = 2Ḡ/|p|² and h = −2 (p·pd)/|p|² ω.

use crate::graph::{ExprId, Graph, gradient};
use crate::kinematics::velocity_map;
use crate::symbols::Group;
use crate::topology::Tree;

/// Weights of position, velocity and acceleration.
#[derive(Clone, Copy, Debug)]
pub struct Weights {
    /// w_p
    pub position: ExprId,
    /// w_v
    pub velocity: ExprId,
    /// w_a
    pub acceleration: ExprId,
}

impl Weights {
    /// ∂/∂z
    pub fn by_position(g: &mut Graph) -> Weights {
        let (zero, one) = (g.zero(), g.one());
        Weights { position: one, velocity: zero, acceleration: zero }
    }

    /// ∂/∂zd
    pub fn by_velocity(g: &mut Graph) -> Weights {
        let (zero, one) = (g.zero(), g.one());
        Weights { position: zero, velocity: one, acceleration: zero }
    }

    /// ∂/∂zdd
    pub fn by_acceleration(g: &mut Graph) -> Weights {
        let (zero, one) = (g.zero(), g.one());
        Weights { position: zero, velocity: zero, acceleration: one }
    }
}

/// Effect of an unknown on the column of one joint velocity.
#[derive(Clone, Copy, Debug)]
pub struct Term {
    /// Index of the velocity in v.
    pub j: usize,
    /// dθ_j for w_p = 1
    pub unit: ExprId,
    /// dθ_j, dv_j, dvd_j
    pub weights: Weights,
}

/// Effect of an unknown; its terms belong to one group.
#[derive(Clone, Debug)]
pub struct Direction {
    /// w_p
    pub position: ExprId,
    /// Three terms for an Euler parameter, one for everything else.
    pub terms: Vec<Term>,
}

/// One unknown per joint velocity.
pub fn joint_directions(g: &mut Graph, tree: &Tree, weights: Weights) -> Vec<Direction> {
    (0..tree.nv).map(|j| Direction::of_velocity(g, j, weights)).collect()
}

impl Direction {
    /// That of one joint velocity.
    fn of_velocity(g: &mut Graph, j: usize, weights: Weights) -> Direction {
        Direction { position: weights.position, terms: vec![Term { j, unit: g.one(), weights }] }
    }
}

/// One unknown per coordinate.
pub fn coordinate_directions(g: &mut Graph, tree: &Tree, weights: Weights) -> Vec<Direction> {
    let mut directions = Vec::with_capacity(tree.nq);
    for link in &tree.links {
        let euler = link.euler_parameters();
        for z in link.z_range().filter(|&z| euler.is_none_or(|(first, _)| z < first)) {
            let j = link.v + z - link.z;
            directions.push(Direction::of_velocity(g, j, weights));
        }
        if let Some((first, v)) = euler {
            directions.extend(euler_parameter_directions(g, first, v, weights));
        }
    }
    for j in tree.variables_v..tree.nv {
        directions.push(Direction::of_velocity(g, j, weights));
    }
    directions
}

/// v = L zd and vd = L zdd + h of Euler parameters, as expressions of the coordinates.
pub fn euler_parameter_velocities(g: &mut Graph, first: usize) -> [[ExprId; 3]; 2] {
    let [p, pd, pdd] = [Group::Z, Group::Zd, Group::Zdd].map(|group| symbols(g, group, first));
    let map = velocity_map(g, p);
    let mut apply = |x: [ExprId; 4]| map.map(|row| dot4(g, row, x));
    let (omega, turned) = (apply(pd), apply(pdd));
    // h = −2 (p·pd)/|p|² ω
    let (along, square) = (dot4(g, p, pd), dot4(g, p, p));
    let minus_two = g.constant(-2.0);
    let twice = g.mul(minus_two, along);
    let factor = g.div(twice, square);
    let acceleration = std::array::from_fn(|k| {
        let h = g.mul(factor, omega[k]);
        g.add(turned[k], h)
    });
    [omega, acceleration]
}

fn euler_parameter_directions(g: &mut Graph, first: usize, v: usize, weights: Weights) -> Vec<Direction> {
    let [p, pd] = [Group::Z, Group::Zd].map(|group| symbols(g, group, first));
    let [omega, acceleration] = euler_parameter_velocities(g, first);
    let one = g.one();
    // Rows of L, (L zd)_z, h_zd (of L zdd + h only h depends on zd) and (L zdd + h)_z.
    let mut rows =
        |values: [ExprId; 3], by: [ExprId; 4]| values.map(|value| gradient(g, &[(value, one)], &by));
    let (l, omega_z) = (rows(omega, pd), rows(omega, p));
    let (h_zd, acceleration_z) = (rows(acceleration, pd), rows(acceleration, p));
    (0..4)
        .map(|b| {
            let terms = (0..3).map(|k| {
                let mut weighted = |terms: &[(ExprId, ExprId)]| {
                    let products: Vec<ExprId> = terms.iter().map(|&(w, x)| g.mul(w, x)).collect();
                    g.sum(&products)
                };
                let Weights { position: wp, velocity: wv, acceleration: wa } = weights;
                let position = weighted(&[(wp, l[k][b])]);
                let velocity = weighted(&[(wv, l[k][b]), (wp, omega_z[k][b])]);
                let acceleration = weighted(&[(wa, l[k][b]), (wv, h_zd[k][b]), (wp, acceleration_z[k][b])]);
                Term { j: v + k, unit: l[k][b], weights: Weights { position, velocity, acceleration } }
            });
            Direction { position: weights.position, terms: terms.collect() }
        })
        .collect()
}

pub(super) fn symbols(g: &mut Graph, group: Group, first: usize) -> [ExprId; 4] {
    std::array::from_fn(|k| g.symbol(group, (first + k) as u32))
}

fn dot4(g: &mut Graph, a: [ExprId; 4], b: [ExprId; 4]) -> ExprId {
    let products: [ExprId; 4] = std::array::from_fn(|k| g.mul(a[k], b[k]));
    g.sum(&products)
}
