//! The mass matrix by composite inertias, in the axes of the frames.

use super::moving_frames::{FrameMotion, MovingFrame};
use crate::dynamics::MassMatrix;
use crate::dynamics::inertia::BodyInertia;
use crate::graph::{Graph, Vec3};

/// M in joint form.
pub(super) fn mass_matrix(g: &mut Graph, frames: &[MovingFrame], nv: usize) -> MassMatrix {
    let composite = composites(g, frames);
    let mut m = MassMatrix::zero(g, nv);
    for (s, frame) in frames.iter().enumerate() {
        for (place, v) in frame.velocities().enumerate() {
            // (f, n) = Iᶜ b_v, then bᵀ (f, n) on the way to ground
            let [mut force, mut moment] = inertial_wrench(g, composite[s], &frame.motion, place);
            let mut here = s;
            loop {
                for (other, w) in frames[here].velocities().enumerate().filter(|&(_, w)| w <= v) {
                    let entry = match &frames[here].motion {
                        FrameMotion::Translations(translations) => g.dot3(translations[other].0, force),
                        FrameMotion::Rotation(axis, _) => g.dot3(*axis, moment),
                        FrameMotion::Spherical(_) => moment[other],
                    };
                    m.set(v, w, entry);
                }
                let Some(p) = frames[here].parent else { break };
                [force, moment] = [force, moment].map(|x| frames[here].rotation.to_parent(g, x));
                let arm = g.cross3(frames[here].offset, force);
                moment = g.add3(moment, arm);
                here = p;
            }
        }
    }
    m
}

/// Force and moment about the origin for a unit of one velocity: (m d, h × d) along d, (w × h, J w) about w.
fn inertial_wrench(g: &mut Graph, inertia: BodyInertia, motion: &FrameMotion, place: usize) -> [Vec3; 2] {
    let axis = match motion {
        FrameMotion::Translations(translations) => {
            let direction = translations[place].0;
            return [g.scale3(inertia.mass, direction), g.cross3(inertia.moment, direction)];
        }
        FrameMotion::Rotation(axis, _) => *axis,
        FrameMotion::Spherical(_) => g.identity().column(place),
    };
    [g.cross3(axis, inertia.moment), g.apply(inertia.inertia.matrix(), axis)]
}

/// Composite inertia of each frame and its descendants, about the frame's origin.
fn composites(g: &mut Graph, frames: &[MovingFrame]) -> Vec<BodyInertia> {
    let mut composite: Vec<BodyInertia> = frames.iter().map(|s| s.moments.inertia(g)).collect();
    for (s, frame) in frames.iter().enumerate().rev() {
        if let Some(p) = frame.parent {
            let turned = BodyInertia {
                mass: composite[s].mass,
                moment: frame.rotation.to_parent(g, composite[s].moment),
                inertia: frame.rotation.tensor_to_parent(g, composite[s].inertia),
            };
            let shifted = g.shift_inertia(turned, frame.offset);
            composite[p] = g.add_inertia(composite[p], shifted);
        }
    }
    composite
}
