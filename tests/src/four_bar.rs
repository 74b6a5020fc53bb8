//! The planar N four-bar mechanism (IFToMM library of computational benchmark problems, A02) as a model file, for any N.
//!
//! N + 1 uprights on ground, N bars on top of them: N parallelograms in a row, one degree of freedom. It passes singular
//! positions whenever its bars lie flat.
//!
//! `models/four_bar_2.yaml` is this text for N = 2; `MBS_UPDATE=1 cargo test --release -p mbs-tests --test closed
//! shipped` writes it anew.

use std::fmt::Write;

/// The model file for `windows` parallelograms.
pub fn yaml(windows: usize) -> String {
    let mut pivots = String::new();
    let mut instances = String::new();
    for i in 1..=windows {
        let _ = write!(pivots, ", p{i}: [{i}*L, 0, 0]");
        let before = if i == 1 { "first.top".to_owned() } else { format!("w{}_upright.top", i - 1) };
        let _ = writeln!(
            instances,
            "  w{i}: {{element: window, arguments: {{pivot: ground.p{i}, before: {before}}}}}"
        );
    }
    format!(
        "\
mbs: 1
name: four_bar_{windows}
description: >
  Planar four-bar mechanism of {windows} windows: {uprights} uprights and {windows} bars on top of them, parallelograms in a row. It starts
  upright, its upper joints moving at 1 m/s along x, and passes a singular position whenever its bars lie flat. IFToMM
  library of computational benchmark problems, A02. Written by tests/src/four_bar.rs.
gravity: [0, -g, 0]

parameters:
  L: {{value: 1, min: 0.1, unit: m, description: length of every bar}}
  m: {{value: 1, min: 0, unit: kg, description: mass of every bar but the first}}
  m_first: {{value: 1, min: 0, unit: kg, description: mass of the first upright}}
  g: {{value: 9.81, unit: m/s²}}
  speed: {{value: 1, unit: m/s, description: of the upper joints at start}}

elements:
  window:
    description: The upright on the right of a window and the bar on top of it
    arguments: {{pivot: point, before: point}}
    bodies:
      upright: {{mass: m, com: [L/2, 0, 0], inertia: [0, 0, m*L^2/12], points: {{top: [L, 0, 0]}}}}
      bar: {{mass: m, com: [L/2, 0, 0], inertia: [0, 0, m*L^2/12], points: {{end: [L, 0, 0]}}}}
    joints:
      foot: {{type: revolute, parent: pivot, child: upright, axis: [0, 0, 1], start: {{value: pi/2, rate: -speed/L}}}}
      left: {{type: revolute, parent: before, child: bar, axis: [0, 0, 1], start: {{value: -pi/2, rate: speed/L}}}}
      right: {{type: revolute, parent: bar.end, child: upright.top, axis: [0, 0, 1], cut: true}}

bodies:
  ground: {{points: {{p0: [0, 0, 0]{pivots}}}}}
  # Every bar lies along x of its own frame.
  first: {{mass: m_first, com: [L/2, 0, 0], inertia: [0, 0, m_first*L^2/12], points: {{top: [L, 0, 0]}}}}

joints:
  foot: {{type: revolute, parent: ground.p0, child: first, axis: [0, 0, 1], start: {{value: pi/2, rate: -speed/L, hold: true}}}}

instances:
{instances}
objectives:
  haste: {{integrand: \"dot(vel(first.top), vel(first.top))\", unit: m²/s}}
  height: {{terminal: pos(first.top).y, unit: m}}

# Other lengths of single bars would change its singular positions: only what leaves them.
sensitivity: [m, m_first, g, speed]

outputs:
  top: {{value: pos(first.top), unit: m}}

simulation: {{end: 10, step: 1e-3}}
",
        uprights = windows + 1,
    )
}
