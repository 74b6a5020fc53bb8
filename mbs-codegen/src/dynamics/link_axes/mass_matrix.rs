//! The mass matrix by composite inertias, station by station.

use super::stations::{Freedom, Station};
use crate::dynamics::MassMatrix;
use crate::dynamics::inertia::BodyInertia;
use crate::graph::{Graph, Vec3};

/// M in joint form.
pub(super) fn mass_matrix(g: &mut Graph, stations: &[Station], nv: usize) -> MassMatrix {
    let composite = composites(g, stations);
    let mut m = MassMatrix::zero(g, nv);
    for (s, station) in stations.iter().enumerate() {
        for (place, v) in station.velocities().enumerate() {
            // (f, n) = Iᶜ b_v, then bᵀ (f, n) on the way to ground
            let [mut force, mut moment] = needed(g, composite[s], &station.freedom, place);
            let mut here = s;
            loop {
                for (other, w) in stations[here].velocities().enumerate().filter(|&(_, w)| w <= v) {
                    let entry = match &stations[here].freedom {
                        Freedom::Slides(slides) => g.dot3(slides[other].0, force),
                        Freedom::Turn(axis, _) => g.dot3(*axis, moment),
                        Freedom::Ball(_) => moment[other],
                    };
                    m.set(v, w, entry);
                }
                let Some(p) = stations[here].parent else { break };
                [force, moment] = [force, moment].map(|x| stations[here].passage.up(g, x));
                let arm = g.cross3(stations[here].offset, force);
                moment = g.add3(moment, arm);
                here = p;
            }
        }
    }
    m
}

/// Force and moment about the origin for a unit of one velocity: (m d, h × d) along d, (w × h, J w) about w.
fn needed(g: &mut Graph, inertia: BodyInertia, freedom: &Freedom, place: usize) -> [Vec3; 2] {
    let axis = match freedom {
        Freedom::Slides(slides) => {
            let direction = slides[place].0;
            return [g.scale3(inertia.mass, direction), g.cross3(inertia.moment, direction)];
        }
        Freedom::Turn(axis, _) => *axis,
        Freedom::Ball(_) => g.identity().column(place),
    };
    [g.cross3(axis, inertia.moment), g.apply(inertia.inertia.matrix(), axis)]
}

/// What each station carries, itself included, about its origin.
fn composites(g: &mut Graph, stations: &[Station]) -> Vec<BodyInertia> {
    let mut composite: Vec<BodyInertia> = stations.iter().map(|s| s.moments.inertia(g)).collect();
    for (s, station) in stations.iter().enumerate().rev() {
        if let Some(p) = station.parent {
            let turned = BodyInertia {
                mass: composite[s].mass,
                moment: station.passage.up(g, composite[s].moment),
                inertia: station.passage.up_symmetric(g, composite[s].inertia),
            };
            let shifted = g.shift_inertia(turned, station.offset);
            composite[p] = g.add_inertia(composite[p], shifted);
        }
    }
    composite
}
