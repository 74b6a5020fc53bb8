//! Slopes: derivatives of values with respect to the motion of links. This is the transposed form of `leaf`.
//!
//! A value changes along unknown b by Σ over the links i that b moves of slope·(Z, Y, X) (see `unknowns`), a product of factors of the link and factors
//! of the unknown, so the slopes of all links that an unknown moves can be summed once for all unknowns. A placeholder with derivative c has, from c·δ of `leaf`,
//!
//! | placeholder | factor of Z | of Y | of X |
//! |---|---|---|---|
//! | point r | (c, r × c) | | |
//! | axis a | (0, a × c) | | |
//! | velocity v of r | (0, v × c) | (c, r × c) | |
//! | angular velocity ω | (0, ω × c) | (0, c) | |
//! | acceleration a of r | (0, a × c) | (0, 2 v × c) | (c, r × c) |
//! | angular acceleration α | (0, α × c) | (0, ω × c) | (0, c) |

use super::leaf::{Carried, carried};
use super::unknowns::{MotionData, UnknownMotion};
use crate::elements::{Leaf, Mechanism};
use crate::graph::{ExprId, Graph, Vec3};
use crate::kinematics::Spatial;

/// Derivative of a value with respect to the motion of one or several links: factors of an unknown's Z, Y, X.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slope {
    pub z: Spatial,
    pub y: Spatial,
    pub x: Spatial,
}

/// Slopes of the six components of a wrench, forces first.
#[derive(Clone, Copy, Debug)]
pub(super) struct WrenchSlope(pub [Slope; 6]);

impl Graph {
    /// No dependence.
    pub(super) fn no_slope(&mut self) -> Slope {
        let none = self.zero_spatial();
        Slope { z: none, y: none, x: none }
    }

    /// a + b
    pub(super) fn add_slope(&mut self, a: Slope, b: Slope) -> Slope {
        Slope { z: self.add6(a.z, b.z), y: self.add6(a.y, b.y), x: self.add6(a.x, b.x) }
    }

    /// s a
    fn scale_slope(&mut self, s: ExprId, a: Slope) -> Slope {
        Slope { z: self.scale6(s, a.z), y: self.scale6(s, a.y), x: self.scale6(s, a.x) }
    }

    /// The change along an unknown.
    pub(super) fn along(&mut self, slope: Slope, unknown: &UnknownMotion) -> ExprId {
        let z = self.dot6(slope.z, unknown.z);
        let y = self.dot6(slope.y, unknown.y);
        let x = self.dot6(slope.x, unknown.x);
        self.sum(&[z, y, x])
    }

    /// a + b
    pub(super) fn add_wrench_slope(&mut self, a: WrenchSlope, b: WrenchSlope) -> WrenchSlope {
        WrenchSlope(std::array::from_fn(|k| self.add_slope(a.0[k], b.0[k])))
    }

    /// The change of the wrench along an unknown.
    pub(super) fn wrench_along(&mut self, slope: &WrenchSlope, unknown: &UnknownMotion) -> Spatial {
        let [a, b, c, d, e, f] = slope.0.map(|row| self.along(row, unknown));
        Spatial { linear: Vec3([a, b, c]), angular: Vec3([d, e, f]) }
    }

    /// The slope of sᵀ W.
    pub(super) fn work_slope(&mut self, s: Spatial, slope: &WrenchSlope) -> Slope {
        let mut sum = self.no_slope();
        for (&factor, &row) in s.numbers().iter().zip(&slope.0) {
            let share = self.scale_slope(factor, row);
            sum = self.add_slope(sum, share);
        }
        sum
    }

    /// Slope of the wrench (F, r × F) for a force with these slopes, r constant.
    pub(super) fn wrench_slope_at(&mut self, r: Vec3, force: [Slope; 3]) -> WrenchSlope {
        let turned: [Slope; 3] = std::array::from_fn(|k| {
            // r_i F_j − r_j F_i
            let (i, j) = ((k + 1) % 3, (k + 2) % 3);
            let back = self.neg(r.0[j]);
            let (p, q) = (self.scale_slope(r.0[i], force[j]), self.scale_slope(back, force[i]));
            self.add_slope(p, q)
        });
        let [a, b, c] = force;
        let [d, e, f] = turned;
        WrenchSlope([a, b, c, d, e, f])
    }

    /// Slope of the wrench (0, n) for a moment with these slopes.
    pub(super) fn moment_slope(&mut self, [d, e, f]: [Slope; 3]) -> WrenchSlope {
        let none = self.no_slope();
        WrenchSlope([none, none, none, d, e, f])
    }

    /// Slope of the moment r × F, F constant, for a point r fixed in the link: e_k·(δr × F) = δr·(F × e_k).
    pub(super) fn lever_slope(&mut self, r: Vec3, force: Vec3) -> [Slope; 3] {
        let (zero, one) = (self.zero(), self.one());
        std::array::from_fn(|k| {
            let unit = Vec3(std::array::from_fn(|i| if i == k { one } else { zero }));
            let c = self.cross3(force, unit);
            let mut slope = self.no_slope();
            slope.z = self.at_point(r, c);
            slope
        })
    }

    /// (c, r × c)
    fn at_point(&mut self, r: Vec3, c: Vec3) -> Spatial {
        Spatial { linear: c, angular: self.cross3(r, c) }
    }

    /// (0, c)
    fn moment(&mut self, c: Vec3) -> Spatial {
        Spatial { linear: self.zero_vector(), angular: c }
    }
}

/// Slope of a value with respect to the motion of the link that carries a placeholder, for the value's derivative c with respect to the placeholder; none for
/// coordinates.
pub(super) fn leaf_slope(
    g: &mut Graph,
    mechanism: &mut Mechanism<'_>,
    data: MotionData<'_>,
    leaf: Leaf,
    link: usize,
    c: Vec3,
) -> Option<Slope> {
    let carried = carried(g, mechanism, data, leaf, link)?;
    let none = g.zero_spatial();
    let turned = |g: &mut Graph, x: Vec3| {
        let across = g.cross3(x, c);
        g.moment(across)
    };
    Some(match carried {
        Carried::Point(r) => Slope { z: g.at_point(r, c), y: none, x: none },
        Carried::Axis(axis) => Slope { z: turned(g, axis), y: none, x: none },
        Carried::Velocity { r, v } => Slope { z: turned(g, v), y: g.at_point(r, c), x: none },
        Carried::AngularVelocity(omega) => Slope { z: turned(g, omega), y: g.moment(c), x: none },
        Carried::Acceleration { r, v, a } => {
            let two = g.constant(2.0);
            let twice = g.scale3(two, v);
            Slope { z: turned(g, a), y: turned(g, twice), x: g.at_point(r, c) }
        }
        Carried::AngularAcceleration { omega, alpha } => {
            Slope { z: turned(g, alpha), y: turned(g, omega), x: g.moment(c) }
        }
    })
}
