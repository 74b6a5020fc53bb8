//! Mass moments of the bodies attached to a frame, and their regrouping toward ground.
//!
//! A mass distribution that is invariant under a joint's motion can be attached to the parent instead: the joint forces stay the
//! same. This leaves fewer nonzero moments to compute with   [Khalil2002].

use super::moving_frames::{BodyPlacement, FrameMotion, MovingFrame};
use crate::dynamics::Symmetric;
use crate::dynamics::inertia::{BodyInertia, local_inertia, rotate_inertia};
use crate::elements::Mechanism;
use crate::graph::{ExprId, Graph, Mat3, Vec3};
use crate::topology::Link;

/// Mass moments about a frame's origin, in its axes.
#[derive(Clone, Copy, Debug)]
pub(super) struct MassMoments {
    /// m = ∫ dm
    pub mass: ExprId,
    /// h = ∫ ρ dm
    pub first: Vec3,
    /// Σ = ∫ ρ ρᵀ dm
    pub second: Symmetric,
}

impl MassMoments {
    pub(super) fn none(g: &mut Graph) -> MassMoments {
        let zero = g.zero();
        MassMoments { mass: zero, first: g.zero_vector(), second: Symmetric([zero; 6]) }
    }

    /// Moments of a link's body about the origin of the frame that carries it.
    pub(super) fn of_body(
        g: &mut Graph,
        mechanism: &Mechanism<'_>,
        link: &Link,
        placement: &BodyPlacement,
    ) -> MassMoments {
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
        let centred = MassMoments { mass, first, second }.turned(g, placement.axes);
        let arm = placement.position_of(g, com);
        centred.shifted(g, arm)
    }

    /// In other axes: R h, R Σ Rᵀ.
    pub(super) fn turned(self, g: &mut Graph, r: Mat3) -> MassMoments {
        MassMoments {
            mass: self.mass,
            first: g.apply(r, self.first),
            second: rotate_inertia(g, r, self.second),
        }
    }

    /// About a point at −s: h + m s, Σ + h sᵀ + s hᵀ + m s sᵀ.
    pub(super) fn shifted(self, g: &mut Graph, s: Vec3) -> MassMoments {
        let ms = g.scale3(self.mass, s);
        let first = g.add3(self.first, ms);
        let mut second = self.second.0;
        for (entry, (i, j)) in second.iter_mut().zip(Symmetric::PLACES) {
            // h_i s_j + s_i (h_j + m s_j)
            let [a, b] = [g.mul(self.first[i], s[j]), g.mul(s[i], first[j])];
            let both = g.add(a, b);
            *entry = g.add(*entry, both);
        }
        MassMoments { mass: self.mass, first, second: Symmetric(second) }
    }

    pub(super) fn plus(self, g: &mut Graph, other: MassMoments) -> MassMoments {
        MassMoments {
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

    /// The moments that change under the motion, then those that are invariant:
    ///
    /// | motion | invariant |
    /// |---|---|
    /// | translations | Σ |
    /// | rotation about z | m, h_z, Σ_zz |
    /// | rotation about another direction, spherical | m |
    fn split(self, g: &mut Graph, motion: &FrameMotion) -> [MassMoments; 2] {
        let zero = g.zero();
        let [mut variable, mut invariant] = [self, MassMoments::none(g)];
        match motion {
            FrameMotion::Translations(_) => {
                variable.second = invariant.second;
                invariant.second = self.second;
            }
            FrameMotion::Rotation(axis, _) => {
                (variable.mass, invariant.mass) = (zero, self.mass);
                if g.is(axis[2], 1.0) {
                    variable.first.0[2] = zero;
                    invariant.first.0[2] = self.first[2];
                    variable.second.0[2] = zero;
                    invariant.second.0[2] = self.second.0[2];
                }
            }
            FrameMotion::Spherical(_) => (variable.mass, invariant.mass) = (zero, self.mass),
        }
        [variable, invariant]
    }
}

/// Moves invariant moments to the parent, from the leaves inward.
pub(super) fn regroup(g: &mut Graph, frames: &mut [MovingFrame]) {
    for s in (0..frames.len()).rev() {
        let [variable, invariant] = frames[s].moments.split(g, &frames[s].motion);
        frames[s].moments = variable;
        let Some(p) = frames[s].parent else { continue };
        let carried = match frames[s].motion {
            // Without mass and first moment, Σ is the same about every point.
            FrameMotion::Translations(_) => invariant,
            // Invariant under the motion, so the constant rotation suffices.
            _ => {
                let fixed = &frames[s].fixed;
                let turned = MassMoments {
                    mass: invariant.mass,
                    first: fixed.to_parent(g, invariant.first),
                    second: fixed.tensor_to_parent(g, invariant.second),
                };
                turned.shifted(g, frames[s].offset)
            }
        };
        frames[p].moments = frames[p].moments.plus(g, carried);
    }
}
