//! Inverse dynamics by Newton and Euler, station by station.
//!
//! With U = α̃ + ω̃ ω̃ a point at ρ has the acceleration a + U ρ, so that
//! f = m a + U h and n = h × a + ∫ ρ × U ρ dm, the last being the skew part of U Σ   [Khalil2002].

use super::stations::{Freedom, Station};
use crate::graph::{ExprId, Graph, Mat3, Vec3};
use crate::symbols::Group;

/// How a station moves, in its own axes.
#[derive(Clone, Copy)]
struct Moving {
    omega: Vec3,
    /// α
    angular: Vec3,
    /// a, of the origin
    linear: Vec3,
    /// U
    spread: Mat3,
}

/// Forces along the velocities that the motion of all masses needs, for an acceleration of ground; `vd: None` leaves out M vd.
pub(super) fn inertial_forces(
    g: &mut Graph,
    stations: &[Station],
    ground: Vec3,
    vd: Option<&[ExprId]>,
    nv: usize,
) -> Vec<ExprId> {
    let moving = motion(g, stations, ground, vd);
    let mut wrenches: Vec<[Vec3; 2]> =
        stations.iter().zip(&moving).map(|(station, moving)| needed(g, station, moving)).collect();
    let mut forces = vec![g.zero(); nv];
    for (s, station) in stations.iter().enumerate().rev() {
        let [force, moment] = wrenches[s];
        match &station.freedom {
            Freedom::Turn(axis, v) => forces[*v] = g.dot3(*axis, moment),
            Freedom::Ball(v) => forces[*v..*v + 3].copy_from_slice(&moment.0),
            Freedom::Slides(slides) => {
                for &(direction, v) in slides {
                    forces[v] = g.dot3(direction, force);
                }
            }
        }
        if let Some(p) = station.parent {
            let [up, turned] = [force, moment].map(|x| station.passage.up(g, x));
            let arm = g.cross3(station.offset, up);
            let moment = g.add3(turned, arm);
            wrenches[p] = [g.add3(wrenches[p][0], up), g.add3(wrenches[p][1], moment)];
        }
    }
    forces
}

/// From ground outward.
fn motion(g: &mut Graph, stations: &[Station], ground: Vec3, vd: Option<&[ExprId]>) -> Vec<Moving> {
    let zero = g.zero_vector();
    let still = Moving { omega: zero, angular: zero, linear: ground, spread: Mat3([zero.0; 3]) };
    let mut all: Vec<Moving> = Vec::with_capacity(stations.len());
    for station in stations {
        let parent = station.parent.map_or(still, |p| all[p]);
        let rate = |g: &mut Graph, v: usize| g.symbol(Group::V, v as u32);
        let acceleration = |g: &mut Graph, v: usize| vd.map_or_else(|| g.zero(), |vd| vd[v]);
        // a + U r
        let spread = g.apply(parent.spread, station.offset);
        let linear = g.add3(parent.linear, spread);
        let moving = match &station.freedom {
            Freedom::Slides(slides) => {
                // + Σ d vd + 2 ω × Σ d v
                let (mut speed, mut linear) = (zero, linear);
                for &(direction, v) in slides {
                    let (rate, acceleration) = (rate(g, v), acceleration(g, v));
                    let share = g.scale3(rate, direction);
                    speed = g.add3(speed, share);
                    let share = g.scale3(acceleration, direction);
                    linear = g.add3(linear, share);
                }
                let two = g.constant(2.0);
                let turned = g.cross3(parent.omega, speed);
                let coriolis = g.scale3(two, turned);
                Moving { linear: g.add3(linear, coriolis), ..parent }
            }
            turns => {
                let (speed, change) = match turns {
                    Freedom::Turn(axis, v) => {
                        let (rate, acceleration) = (rate(g, *v), acceleration(g, *v));
                        (g.scale3(rate, *axis), g.scale3(acceleration, *axis))
                    }
                    Freedom::Ball(v) => (
                        Vec3(std::array::from_fn(|k| rate(g, v + k))),
                        Vec3(std::array::from_fn(|k| acceleration(g, v + k))),
                    ),
                    Freedom::Slides(_) => (zero, zero),
                };
                let [omega, angular, linear] =
                    [parent.omega, parent.angular, linear].map(|x| station.passage.down(g, x));
                // α = R α_p + ω_p × s + sd with the speed s against the parent
                let turned = g.cross3(omega, speed);
                let angular = g.add3(angular, turned);
                let angular = g.add3(angular, change);
                let omega = g.add3(omega, speed);
                Moving { omega, angular, linear, spread: spread_matrix(g, omega, angular) }
            }
        };
        all.push(moving);
    }
    all
}

/// U = α̃ + ω̃ ω̃
fn spread_matrix(g: &mut Graph, omega: Vec3, alpha: Vec3) -> Mat3 {
    let squares = omega.0.map(|w| g.square(w));
    let mut u = g.skew(alpha).0;
    for i in 0..3 {
        let (j, k) = ((i + 1) % 3, (i + 2) % 3);
        let both = g.add(squares[j], squares[k]);
        u[i][i] = g.neg(both);
        let product = g.mul(omega[i], omega[j]);
        u[i][j] = g.add(product, u[i][j]);
        u[j][i] = g.add(product, u[j][i]);
    }
    Mat3(u)
}

/// f = m a + U h,
/// n_x = (UΣ)_zy − (UΣ)_yz = U_zx Σ_xy + U_zy Σ_yy − U_yx Σ_xz − U_yz Σ_zz + (U_zz − U_yy) Σ_yz + (h × a)_x, and so on.
fn needed(g: &mut Graph, station: &Station, moving: &Moving) -> [Vec3; 2] {
    let moments = station.moments;
    let (u, second) = (moving.spread.0, moments.second.matrix().0);
    let ma = g.scale3(moments.mass, moving.linear);
    let spread = g.apply(moving.spread, moments.first);
    let force = g.add3(ma, spread);
    let across = g.cross3(moments.first, moving.linear);
    let moment = Vec3(std::array::from_fn(|x| {
        let (y, z) = ((x + 1) % 3, (x + 2) % 3);
        let difference = g.sub(u[z][z], u[y][y]);
        let plus =
            [g.mul(difference, second[y][z]), g.mul(u[z][x], second[x][y]), g.mul(u[z][y], second[y][y])];
        let minus = [g.mul(u[y][x], second[x][z]), g.mul(u[y][z], second[z][z])];
        let [plus, minus] = [g.sum(&plus), g.sum(&minus)];
        g.sub(plus, minus)
    }));
    [force, g.add3(moment, across)]
}
