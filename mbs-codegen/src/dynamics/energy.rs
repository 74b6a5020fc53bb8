//! Energies and the power that changes them.

use super::inertia::Symmetric;
use crate::elements::{Loads, Mechanism};
use crate::graph::{ExprId, Graph};

/// Kinetic and potential energy, and the power of the nonconservative forces: d(T + V)/dt = power.
#[derive(Clone, Copy, Debug)]
pub struct Energy {
    /// T = Σ ½ m v_g² + ½ ω · J ω
    pub kinetic: ExprId,
    /// V = −Σ m g·r_g + springs
    pub potential: ExprId,
    /// Power of dampers, laws and applied forces.
    pub power: ExprId,
}

/// Sums over the bodies.
pub fn energy(
    g: &mut Graph,
    mechanism: &Mechanism<'_>,
    inertias: &[(ExprId, Symmetric)],
    loads: &Loads,
) -> Energy {
    let half = g.constant(0.5);
    let mut kinetic = g.zero();
    let mut potential = loads.potential;
    for (i, &(mass, inertia)) in inertias.iter().enumerate() {
        let com = mechanism.positions.links[i].com;
        let velocity = mechanism.velocity_at(g, i, com);
        let omega = mechanism.velocities.links[i].motion.angular;
        let square = g.dot3(velocity, velocity);
        let translation = g.mul(mass, square);
        let spin = g.apply(inertia.matrix(), omega);
        let rotation = g.dot3(omega, spin);
        let twice = g.add(translation, rotation);
        let share = g.mul(half, twice);
        kinetic = g.add(kinetic, share);
        let height = g.dot3(mechanism.gravity, com);
        let weight = g.mul(mass, height);
        potential = g.sub(potential, weight);
    }
    Energy { kinetic, potential, power: loads.power }
}
