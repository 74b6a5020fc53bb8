//! Moments of mass of what a station carries, and how much of them the parent can carry as well.
//!
//! A mass distribution that a joint's motion maps onto itself may as well be fixed to the parent: the forces in the joints stay the
//! same. What moves so leaves fewer numbers to compute with   [Khalil2002].

use super::stations::{Freedom, Seat, Station};
use crate::dynamics::Symmetric;
use crate::dynamics::inertia::{BodyInertia, local_inertia, turn_inertia};
use crate::elements::Mechanism;
use crate::graph::{ExprId, Graph, Mat3, Vec3};
use crate::topology::Link;

/// Moments of mass about a station's origin, in its axes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moments {
    /// m = ∫ dm
    pub mass: ExprId,
    /// h = ∫ ρ dm
    pub first: Vec3,
    /// Σ = ∫ ρ ρᵀ dm
    pub second: Symmetric,
}

impl Moments {
    pub(super) fn none(g: &mut Graph) -> Moments {
        let zero = g.zero();
        Moments { mass: zero, first: g.zero_vector(), second: Symmetric([zero; 6]) }
    }

    /// Of a link's body about the origin of the station it sits on.
    pub(super) fn of_body(g: &mut Graph, mechanism: &Mechanism<'_>, link: &Link, seat: &Seat) -> Moments {
        let (mass, com, local) = local_inertia(g, mechanism, link);
        // Σ = ½ tr J − J about the centre of mass
        let [xx, yy, zz, xy, xz, yz] = local.0;
        let half = g.constant(0.5);
        let mut diagonal = |a, b, c| {
            let both = g.add(a, b);
            let rest = g.sub(both, c);
            g.mul(half, rest)
        };
        let [sx, sy, sz] = [diagonal(yy, zz, xx), diagonal(xx, zz, yy), diagonal(xx, yy, zz)];
        let second = Symmetric([sx, sy, sz, g.neg(xy), g.neg(xz), g.neg(yz)]);
        let first = g.zero_vector();
        let centred = Moments { mass, first, second }.turned(g, seat.axes);
        let arm = seat.place_of(g, com);
        centred.shifted(g, arm)
    }

    /// In other axes: R h, R Σ Rᵀ.
    pub(super) fn turned(self, g: &mut Graph, r: Mat3) -> Moments {
        Moments { mass: self.mass, first: g.apply(r, self.first), second: turn_inertia(g, r, self.second) }
    }

    /// About a point at −s: h + m s, Σ + h sᵀ + s hᵀ + m s sᵀ.
    pub(super) fn shifted(self, g: &mut Graph, s: Vec3) -> Moments {
        let ms = g.scale3(self.mass, s);
        let first = g.add3(self.first, ms);
        let mut second = self.second.0;
        for (entry, (i, j)) in second.iter_mut().zip(Symmetric::PLACES) {
            // h_i s_j + s_i (h_j + m s_j)
            let [a, b] = [g.mul(self.first[i], s[j]), g.mul(s[i], first[j])];
            let both = g.add(a, b);
            *entry = g.add(*entry, both);
        }
        Moments { mass: self.mass, first, second: Symmetric(second) }
    }

    pub(super) fn plus(self, g: &mut Graph, other: Moments) -> Moments {
        Moments {
            mass: g.add(self.mass, other.mass),
            first: g.add3(self.first, other.first),
            second: g.add_symmetric(self.second, other.second),
        }
    }

    /// m, h and J = tr Σ − Σ
    pub(super) fn inertia(self, g: &mut Graph) -> BodyInertia {
        let [xx, yy, zz, xy, xz, yz] = self.second.0;
        let diagonal = [g.add(yy, zz), g.add(xx, zz), g.add(xx, yy)];
        let inertia = Symmetric([diagonal[0], diagonal[1], diagonal[2], g.neg(xy), g.neg(xz), g.neg(yz)]);
        BodyInertia { mass: self.mass, moment: self.first, inertia }
    }

    /// What stays and what the motion maps onto itself:
    ///
    /// | motion | maps onto itself |
    /// |---|---|
    /// | slides | Σ |
    /// | turn about z | m, h_z, Σ_zz |
    /// | turn about another direction, ball | m |
    fn split(self, g: &mut Graph, freedom: &Freedom) -> [Moments; 2] {
        let zero = g.zero();
        let [mut stays, mut moves] = [self, Moments::none(g)];
        match freedom {
            Freedom::Slides(_) => {
                stays.second = moves.second;
                moves.second = self.second;
            }
            Freedom::Turn(axis, _) => {
                (stays.mass, moves.mass) = (zero, self.mass);
                if g.is(axis[2], 1.0) {
                    stays.first.0[2] = zero;
                    moves.first.0[2] = self.first[2];
                    stays.second.0[2] = zero;
                    moves.second.0[2] = self.second.0[2];
                }
            }
            Freedom::Ball(_) => (stays.mass, moves.mass) = (zero, self.mass),
        }
        [stays, moves]
    }
}

/// Moves what can move toward ground, from the leaves inward.
pub(super) fn gather(g: &mut Graph, stations: &mut [Station]) {
    for s in (0..stations.len()).rev() {
        let [stays, moves] = stations[s].moments.split(g, &stations[s].freedom);
        stations[s].moments = stays;
        let Some(p) = stations[s].parent else { continue };
        let carried = match stations[s].freedom {
            // Without mass and first moment, Σ is the same about every point.
            Freedom::Slides(_) => moves,
            // The motion itself does not change it.
            _ => {
                let fixed = &stations[s].fixed;
                let turned = Moments {
                    mass: moves.mass,
                    first: fixed.up(g, moves.first),
                    second: fixed.up_symmetric(g, moves.second),
                };
                turned.shifted(g, stations[s].offset)
            }
        };
        stations[p].moments = stations[p].moments.plus(g, carried);
    }
}
