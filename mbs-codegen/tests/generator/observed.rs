//! Multipliers and reactions in objectives: the right ones, of the right rows and joints, in the right axes.

use mbs_codegen::bundle::Bundle;
use mbs_codegen::bundle::interpret::{Arguments, run, scratch_len};
use mbs_codegen::diagnostics::Diagnostics;
use mbs_codegen::kinematics::ReferencePoint;
use mbs_codegen::model::Model;
use mbs_codegen::program::{BundleKind, Options, Program};
use mbs_codegen::symbols::Group;

fn read(text: &str) -> (Model, Diagnostics) {
    mbs_codegen::read("observed.yaml", text)
        .unwrap_or_else(|errors| panic!("{}", errors.render("observed.yaml", text)))
}

fn program(model: &Model, reference: ReferencePoint) -> Program {
    let bundles = vec![BundleKind::Reactions, BundleKind::Objectives];
    let options = Options { reference, freeze: true, bundles, ..Options::default() };
    Program::new(model, None, &options).expect("a small program")
}

fn evaluate(bundle: &Bundle, arguments: &Arguments<'_, f64>) -> Vec<Vec<f64>> {
    let mut results: Vec<Vec<f64>> = bundle.results.iter().map(|r| vec![0.0; r.len as usize]).collect();
    let mut slices: Vec<&mut [f64]> = results.iter_mut().map(Vec::as_mut_slice).collect();
    run(bundle, arguments, &mut vec![0.0; scratch_len(bundle)], &mut slices).unwrap();
    results
}

/// Integrands, terminal terms and reactions at a state.
fn at(program: &Program, z: &[f64], v: &[f64], vd: &[f64], lambda: &[f64]) -> [Vec<f64>; 3] {
    let prepared = evaluate(program.bundle("prepare").unwrap(), &Arguments::new()).concat();
    let arguments = Arguments::new()
        .with(Group::Time, &[0.0])
        .with(Group::Z, z)
        .with(Group::V, v)
        .with(Group::Vd, vd)
        .with(Group::Lambda, lambda)
        .with(Group::Prepared, &prepared);
    let [integrands, terminals] = evaluate(program.bundle("objectives").unwrap(), &arguments)
        .try_into()
        .expect("integrands and terminal terms");
    [integrands, terminals, evaluate(program.bundle("reactions").unwrap(), &arguments).concat()]
}

/// A four-bar that leaves its plane, with every kind of equation; `pin` is cut. The element's image has a wheel of
/// its own.
const CLOSED: &str = "mbs: 1
gravity: [0.3, -9.81, 0.4]
bodies:
  ground: {points: {wall: [3, 0.1, 0.2]}, vectors: {up: [0, 1, 0]}}
  crank: {mass: 1.1, com: [0.5, 0.1, 0], inertia: [0.1, 0.2, 0.3], points: {end: [1, 0, 0.1]}}
  rod: {mass: 1.3, com: [1, 0, 0.1], inertia: [0.1, 0.4, 0.4], points: {end: [2, 0.1, 0]}, vectors: {n: [0, 0, 1]}}
  arm: {mass: 0.7, com: [0.4, 0, 0], inertia: [0.1, 0.2, 0.2], points: {end: [1.5, 0, 0.1]}}
joints:
  hinge: {type: revolute, parent: ground, child: crank, axis: [0, 0.1, 1], start: {value: 1, hold: true}}
  ball: {type: spherical, parent: crank.end, child: rod}
  pin: {type: cardan, parent: rod.end, child: arm.end, axes: [[1, 0, 0], [0, 0, 1]], cut: true}
  rest: {type: revolute, parent: ground.wall, child: arm, axis: [0, 0, 1], start: 1.2}
constraints:
  stay: {type: coincident, from: rod.end, to: [2, 1, 0]}
  roll: {type: nonholonomic, value: \"vel(rod).x - 0.2*rate(hinge)\"}
  tilt: {type: equation, value: \"dot(dir(rod.n), dir(ground.up))\"}
elements:
  part:
    arguments: {at: body, load: vector}
    bodies: {wheel: {mass: 0.4, com: [0, 0.2, 0.1], inertia: [0.1, 0.1, 0.1]}}
    joints: {axle: {type: revolute, parent: at, child: wheel, axis: [0, 1, 0.2]}}
    constraints: {spin: {type: coupling, value: axle.angle - 0.3*t}}
    objectives:
      force_x: {integrand: reaction_force(axle).x, terminal: reaction_torque(axle).x}
      force_y: {integrand: reaction_force(axle).y, terminal: reaction_torque(axle).y}
      spun: multiplier(spin)
      loaded: load.y
instances:
  left: {element: part, arguments: {at: rod, load: reaction_force(rest)}}
  right: {element: part, arguments: {at: rod, load: reaction_force(rest)}, mirror: y}
objectives:
  pin_x: {integrand: multiplier(pin.x), terminal: multiplier(pin.axes)}
  roll: multiplier(roll)
  tilt: 2*multiplier(tilt)^2
  stay: multiplier(stay.z) - multiplier(stay.x)
  rest: {integrand: \"dot(reaction_force(rest), [1, 2, 3])\", terminal: norm(reaction_torque(rest))}
  pin_force: {integrand: reaction_force(pin).z, terminal: \"in(rod, reaction_torque(pin)).y\"}
  right: multiplier(right_spin) + 2*multiplier(left_spin)
";

#[test]
fn objectives_name_the_multipliers_and_reactions_of_other_bundles() {
    let (model, warnings) = read(CLOSED);
    assert!(warnings.is_empty(), "{}", warnings.render("observed.yaml", CLOSED));
    for reference in [ReferencePoint::Origin, ReferencePoint::CentreOfMass] {
        let program = program(&model, reference);
        let numbers =
            |n: usize, from: f64| (0..n).map(|i| (from + 1.7 * i as f64).sin() + 0.3).collect::<Vec<f64>>();
        let (z, v) = (numbers(program.coordinates.len(), 0.1), numbers(program.velocities.len(), 0.2));
        let vd = numbers(v.len(), 0.3);
        let rows: Vec<&String> = program.holonomic.iter().chain(&program.nonholonomic).collect();
        assert_eq!(rows.len(), 11, "{rows:?}");
        let lambda = numbers(rows.len(), 0.4);
        let [integrands, terminals, reactions] = at(&program, &z, &v, &vd, &lambda);
        let place = |name: &str| program.objectives.iter().position(|(n, _)| n == name).expect(name);
        let of = |name: &str| integrands[place(name)];
        let end = |name: &str| terminals[place(name)];
        let row = |name: &str| lambda[rows.iter().position(|n| *n == name).expect(name)];
        let wrench = |joint: &str| {
            let j = program.joints.iter().position(|n| n == joint).expect(joint);
            let parts: [f64; 6] = reactions[6 * j..6 * j + 6].try_into().unwrap();
            parts
        };
        let size = reactions.iter().fold(1.0, |most: f64, x| most.max(x.abs()));
        // The same expressions of the graph, in another order perhaps.
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-13 * size, "{a} and {b}");

        assert_eq!(of("pin_x"), row("pin.x"));
        assert_eq!(end("pin_x"), row("pin.axes"));
        assert_eq!(of("roll"), row("roll"));
        near(of("tilt"), 2.0 * row("tilt").powi(2));
        near(of("stay"), row("stay.z") - row("stay.x"));
        near(of("right"), row("right_spin") + 2.0 * row("left_spin"));
        let rest = wrench("rest");
        near(of("rest"), rest[0] + 2.0 * rest[1] + 3.0 * rest[2]);
        near(end("rest"), (rest[3].powi(2) + rest[4].powi(2) + rest[5].powi(2)).sqrt());
        near(of("pin_force"), wrench("pin")[2]);
        // R = A of the rod, by the torque turned back: |in(rod, τ)| ≤ |τ|, and not the world's component.
        let torque = wrench("pin");
        assert!(end("pin_force").abs() <= torque[3..].iter().map(|x| x * x).sum::<f64>().sqrt());
        assert!((end("pin_force") - torque[4]).abs() > 1e-3 * size.min(1.0));

        // In the mirror: forces are polar, torques axial; multipliers are what they are.
        let [left, right] = [wrench("left_axle"), wrench("right_axle")];
        near(of("left_force_x"), left[0]);
        near(of("left_force_y"), left[1]);
        near(end("left_force_y"), left[4]);
        near(of("right_force_x"), right[0]);
        near(of("right_force_y"), -right[1]);
        near(end("right_force_x"), -right[3]);
        near(end("right_force_y"), right[4]);
        assert_eq!([of("left_spun"), of("right_spun")], [row("left_spin"), row("right_spin")]);
        near(of("left_loaded"), rest[1]);
        near(of("right_loaded"), -rest[1]);
    }
}

/// What a swinging rod asks of its hinge, by hand: a = L/2 (vd, v²) along and across, force m (a + g).
#[test]
fn the_hinge_of_a_pendulum_carries_it() {
    let (model, warnings) = read(
        "mbs: 1
gravity: [0, 0, -9.81]
parameters: {m: 2, L: 1.5}
bodies: {rod: {mass: m, com: [0, 0, -L/2], inertia: [m*L^2/12, m*L^2/12, 0.1]}}
joints: {hinge: {type: revolute, parent: ground, child: rod, axis: [0, 1, 0]}}
objectives:
  along: reaction_force(hinge).z
  across: reaction_force(hinge).x
  drive: reaction_torque(hinge).y
",
    );
    assert!(warnings.is_empty());
    let program = program(&model, ReferencePoint::Origin);
    let (v, vd) = (3.0, -0.7);
    let [found, ..] = at(&program, &[0.0], &[v], &[vd], &[]);
    let (m, l, g) = (2.0, 1.5, 9.81);
    // At angle zero the rod hangs: its centre is accelerated by −L/2 vd along x and L/2 v² upwards.
    let expected = [m * (l / 2.0 * v * v + g), -m * l / 2.0 * vd, (m * l * l / 3.0) * vd];
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-13 * 50.0, "{found} and {expected}");
    }
}

/// A plane four-bar: the equations out of its plane say nothing, need no force, and get a warning.
#[test]
fn the_multiplier_of_an_equation_that_says_nothing_is_zero() {
    let text = "mbs: 1
bodies:
  ground: {points: {wall: [3, 0, 0]}}
  crank: {mass: 1, com: [0.5, 0, 0], inertia: [0, 0, 0.1], points: {end: [1, 0, 0]}}
  rod: {mass: 1, com: [1.5, 0, 0], inertia: [0, 0, 0.1], points: {end: [3, 0, 0]}}
  arm: {mass: 1, com: [1, 0, 0], inertia: [0, 0, 0.1], points: {end: [2, 0, 0]}}
joints:
  hinge: {type: revolute, parent: ground, child: crank, axis: [0, 0, 1], start: {value: 1, hold: true}}
  knee: {type: revolute, parent: crank.end, child: rod, axis: [0, 0, 1], start: -0.5}
  pin: {type: revolute, parent: rod.end, child: arm.end, axis: [0, 0, 1]}
  rest: {type: revolute, parent: ground.wall, child: arm, axis: [0, 0, 1], start: {value: 1.2}}
objectives:
  nothing: multiplier(pin.z) + multiplier(pin.tilt2) + multiplier(pin.z)^2
  plane: multiplier(pin.y)
";
    let (model, warnings) = read(text);
    let rendered = warnings.render("observed.yaml", text);
    assert_eq!(
        rendered,
        "\
observed.yaml:13:3: warning: objective `nothing` names the multiplier of `pin.z`, which is zero
  13 |   nothing: multiplier(pin.z) + multiplier(pin.tilt2) + multiplier(pin.z)^2
     |   ^^^^^^^
     = help: the equation holds in every position and needs no force: leave it out
observed.yaml:13:3: warning: objective `nothing` names the multiplier of `pin.tilt2`, which is zero
  13 |   nothing: multiplier(pin.z) + multiplier(pin.tilt2) + multiplier(pin.z)^2
     |   ^^^^^^^
     = help: the equation holds in every position and needs no force: leave it out
2 warnings
"
    );
    let program = program(&model, ReferencePoint::Origin);
    assert_eq!(program.holonomic, ["pin.x", "pin.y"]);
    let [found, ..] = at(&program, &[1.0, -0.5, 1.2], &[0.0; 3], &[0.0; 3], &[5.0, 7.0]);
    assert_eq!(found, [0.0, 7.0]);
}
