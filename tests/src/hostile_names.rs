//! A model whose names and texts do what they can to break the module that is generated from it.

/// The file's name, which stands in the module's header.
pub const FILE: &str = "a folder/\"quoted\" */ `b` \\ \u{202e}c\nfn d() {} {.yaml";

/// The model: words of Rust, names the module itself uses, names that meet after escaping (`a_b.c` and `a.b_c`,
/// `type` and `type_`), and free texts that try to leave their comments.
pub const TEXT: &str = r##"
mbs: 1
name: type
description: "*/ } \"# \\ \n /* // \U0000202e \U00002028 \r {x} fn main() {} ``` <b> [a](b)"
gravity: [0, 0, -9.81]
parameters:
  type: {value: 1.5, min: 0, unit: "\"kg\" */", description: "\n}\n#[doc = \"x\"]\n"}
  type_: 0.2
  self: 0.3
  fn: 0.4
  crate: {value: 0.5, unit: "\\"}
  S: 0.6
  NQ: 0.7
  Model: 0.8
  Parameters: 0.9
  m: 1.1
  rt: 1.2
  w: 1.3
  p: 1.4
  _: 1.5
  __: 1.6
  i: 1.7
  values: {values: [1, 2, 3], min: 0, description: "/*"}
  array: [0, 1, 3]
  bounds: 1.8
  Default: 1.9
  f64: 2
inputs:
  u: 0.1
  at: {default: 0.2, hold: linear, unit: "\U00002067", description: "'"}
  struct: {default: 0.3, hold: signal}
bodies:
  ground: {points: {Self: [0, 0, 1]}}
  a_b: {mass: type, inertia: [fn, fn, fn], points: {c: [self, 0, 0], impl: [0, S, 0]}, description: "*/"}
  a: {mass: crate + m, inertia: [1, 1, 1], points: {b_c: [0, NQ, 0]}}
  marker: {mass: rt, inertia: [f64, f64, f64]}
joints:
  Self: {type: revolute, parent: ground, child: a_b, axis: [0, 1, 0], names: [type], start: type_}
  coordinate: {type: cardan, parent: a_b.c, child: a, axes: [[1, 0, 0], [0, 1, 0]], names: [fn, crate]}
  extern: {type: spherical, parent: a.b_c, child: marker}
forces:
  move: {type: spring, from: ground.Self, to: a.b_c, stiffness: Model, damping: Parameters, natural_length: w}
  unsafe: {type: force, at: marker, value: "[u, at, struct*spline(t, array, values)]"}
  dyn: {type: joint_force, coordinate: Self.type, value: "-_*Self.type - __*rate(Self.type) + p + i*bounds*Default"}
objectives:
  trait: {integrand: rate(Self)^2, terminal: Self.type, unit: "\"", description: "*/ \n }"}
  OBJECTIVES: Self.type
outputs:
  out: {value: pos(a_b.c), unit: "\"", description: "*/"}
  OUTPUTS: Self.type
  match: coordinate.fn
  S: extern.wx
cases:
  Self: {parameters: {type: 2.5}, start: {Self: fn}, description: "*/ } \n #[x]"}
  name: {inputs: {at: "sin(t)", struct: "spline(t, array, values)"}}
  parameters: {simulation: {end: 2}}
  # Its method lacks its bundles: it needs a module of its own.
  crate: {simulation: {integrator: trapezoidal}}
  ALL: {}
  fn: {start: {Self: {value: 0.1, hold: true}}}
"##;

#[cfg(test)]
mod tests {
    use crate::fuzz::{CANARY, lexical};
    use mbs_codegen::program::{BundleKind, Options};
    use mbs_codegen::{Request, generate};

    /// The same for what closes loops: words and texts in variables, constraints, objectives and a cut joint.
    const CLOSED: &str = r##"
mbs: 1
name: loop
parameters: {type: 1.5}
bodies:
  ground: {points: {Self: [0, 0, 1]}}
  a: {mass: type, inertia: [1, 1, 1], points: {b_c: [0, 0.7, 0]}}
  marker: {mass: 1, inertia: [1, 1, 1]}
joints:
  Self: {type: revolute, parent: ground, child: a, axis: [0, 1, 0], names: [type], start: 0.2}
  extern: {type: floating, parent: a.b_c, child: marker}
  while: {type: spherical, parent: marker, child: ground.Self, cut: true, description: "*/ cAnArY"}
variables:
  yield: {value: 0.1, unit: "\"cAnArY\" */", description: "\ncAnArY }\n*/"}
  NM: 0.2
  a_b: 0
constraints:
  where: {type: distance, from: a.b_c, to: marker, value: yield + 1, description: "*/ cAnArY }"}
  c: {type: equation, value: NM - pos(marker).x}
  ROWS: {type: coupling, value: a_b - Self.type}
objectives:
  trait: {integrand: rate(yield)^2, terminal: NM, unit: "\" cAnArY", description: "*/ cAnArY \n }"}
  OBJECTIVES: Self.type
"##;

    #[test]
    fn names_of_what_closes_loops_are_told_apart() {
        for bundles in [BundleKind::ALL.to_vec(), Vec::new()] {
            let request =
                Request { options: Options { bundles, ..Options::default() }, ..Request::default() };
            let generated = generate("closed.yaml", CLOSED, &request)
                .unwrap_or_else(|d| panic!("{}", d.render("closed.yaml", CLOSED)));
            lexical::check(&generated.code, CANARY).expect("texts in literals and comments only");
            syn::parse_file(&generated.code).expect("Rust");
            for name in ["while.x", "where", "ROWS", "yield", "NM", "trait", "OBJECTIVES"] {
                assert!(generated.code.contains(&format!("\"{name}\"")), "no `{name}`");
            }
        }
    }
}
