//! Good files to damage: the shipped models and random mechanisms.

use crate::random_model::{Random, Shape, random_model};

const SHIPPED: [&str; 8] = [
    include_str!("../../../models/pendulum.yaml"),
    include_str!("../../../models/double_pendulum.yaml"),
    include_str!("../../../models/cart_pole.yaml"),
    include_str!("../../../models/spinning_top.yaml"),
    include_str!("../../../models/torque_free_top.yaml"),
    include_str!("../../../models/mirrored.yaml"),
    include_str!("../../../models/arm7.yaml"),
    include_str!("../../../models/tree20.yaml"),
];

/// Closed loops, every type of constraint, variables and objectives.
const LOOPS: &str = "mbs: 1
name: loops
gravity: [0, -9.81, 0]
parameters: {L: 2, m: 1, ratio: 3, law: [1, 2, 3]}
inputs: {u: 0.1}
bodies:
  ground: {points: {B: [3, 0, 0]}, vectors: {up: [0, 0, 1]}}
  bar1: &bar {mass: m, com: [L/2, 0, 0], inertia: [0.3, 0.3, m*L^2/12], points: {end: [L, 0, 0]}, vectors: {along: [1, 0, 0]}}
  bar2: *bar
  bar3: *bar
  bar4: *bar
  sled: {mass: 1, inertia: [0.1, 0.1, 0.1], points: {nose: [0.3, 0, 0]}, vectors: {across: [0, 1, 0]}}
joints:
  A: {type: revolute, parent: ground, child: bar1, axis: [0, 0, 1], start: {value: 2, hold: true}}
  p1: {type: revolute, parent: bar1.end, child: bar2, axis: [0, 0, 1], start: -1.2}
  p2: {type: spherical, parent: bar2.end, child: bar3}
  p3: {type: cardan, parent: bar3.end, child: bar4.end, axes: [[1, 0, 0], [0, 1, 0]]}
  B: {type: revolute, parent: ground.B, child: bar4, axis: [0, 0, 1], start: {value: 1.1, hold: true}}
  back: {type: cylindrical, parent: bar3.end, child: ground.B, axis: [0, 0, 1], cut: true}
  ride: {type: floating, parent: ground, child: sled}
variables:
  s: {value: L, rate: 0.1, hold: false, unit: m, description: a length}
  q: 0.3
constraints:
  rod: {type: distance, from: bar1.end, to: sled.nose, value: s}
  flat: {type: angle, from: sled.across, to: ground.up, value: pi/2}
  pin: {type: coincident, from: bar2.end, to: sled}
  rail: {type: point_on_line, point: sled, line: {point: ground.B, direction: ground.up, reference: bar1.along}}
  snow: {type: point_on_plane, point: sled.nose, plane: {point: ground, normal: [0, 0, 1]}}
  row: {type: aligned, points: [bar1, bar1.end, sled]}
  gears: {type: coupling, value: A.angle - ratio*B.angle}
  motor: {type: motion, coordinate: A, value: 2*t}
  carry: {type: motion, point: sled.nose, value: [t, 0, 0], axes: [x]}
  any: {type: equation, value: 'q - dot(pos(bar2.end), pos(sled))'}
  blade: {type: nonholonomic, value: 'dot(vel(sled), dir(sled.across))'}
forces:
  pull: {type: torsional_spring, coordinate: s, stiffness: 500, natural_angle: 'L*law[1]'}
objectives:
  effort: u^2
  miss: {integrand: rate(s)^2, terminal: norm(pos(sled.nose)), unit: m, description: at the end}
  strain: {integrand: 'multiplier(rod)^2 + multiplier(back.tilt1)', terminal: 'dot(reaction_force(p1), reaction_torque(back))'}
sensitivity: [L, m, 'law[1]', u]
simulation: {formulation: ali3p, integrator: generalized_alpha, spectral_radius: 0.7, penalty: 1e9, projection: tangent, newton: {tolerance: 1e-9, iterations: 10}, end: 0.1}
cases:
  c0: {sensitivity: [law, ratio], start: {s: 1.5, A: {value: 1.9, hold: true}}, simulation: {integrator: newmark, beta: 0.3, gamma: 0.6}}
";

/// A good file, mostly a small one.
pub fn good_file(r: &mut Random) -> String {
    match r.below(100) {
        // The two large ones cost as much as all others together.
        0 => SHIPPED[6 + r.below(2)].into(),
        1..6 => LOOPS.into(),
        6..40 => SHIPPED[r.below(6)].into(),
        _ => {
            let bodies = if r.chance(0.02) { 6 } else { 1 + r.below(2) };
            random_model(r.bits() % 10_000, Shape { bodies, dissipative: r.chance(0.8) })
        }
    }
}
