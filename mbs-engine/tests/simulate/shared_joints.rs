//! Joints that are recognised from what bodies share are the joints one would write: same motion, same gradient.

use super::common::shipped;
use mbs_engine::gradient::{self, Found};
use mbs_engine::simulation::{Overrides, Settings, Silent, interpret};
use mbs_engine::{Interpreted, simulation};

fn model_of(text: &str, end: f64) -> (Interpreted, Settings) {
    let (model, _) = match mbs_codegen::analyse("model.yaml", text) {
        Ok(read) => read,
        Err(diagnostics) => panic!("{}", diagnostics.render("model.yaml", text)),
    };
    let overrides = Overrides { end: Some(end), ..Overrides::default() };
    let settings = Settings::of_dynamics(&model.simulation, model.is_constrained(), &overrides);
    let settings = settings.expect("settings that go together");
    let bundles = gradient::bundles(&settings.simulation, settings.constrained);
    (interpret(&model, None, &[], bundles).expect("a program"), settings)
}

fn found(text: &str, end: f64) -> (Vec<String>, Found) {
    let (model, settings) = model_of(text, end);
    let start = gradient::prepare(&model, &settings).expect("a start");
    let ran = gradient::simulate(&model, &settings, start, &mut Silent, None).expect("a run");
    (model.program().coordinates.clone(), ran.found)
}

/// Largest difference of objectives, gradient and last state, relative to the largest of each.
fn difference(shared: &str, written: &str, end: f64) -> f64 {
    let ((names, a), (others, b)) = (found(shared, end), found(written, end));
    assert_eq!(names, others);
    let parts = [(&a.objectives, &b.objectives), (&a.derivatives, &b.derivatives), (&a.end, &b.end)];
    let relative = |(a, b): (&Vec<f64>, &Vec<f64>)| {
        assert_eq!(a.len(), b.len());
        let size = b.iter().map(|x| x.abs()).fold(0.0, f64::max);
        assert!(size > 0.0);
        a.iter().zip(b).map(|(a, b)| (a - b).abs() / size).fold(0.0, f64::max)
    };
    parts.into_iter().map(relative).fold(0.0, f64::max)
}

/// A tree of all kinds; `JOINTS` stands for the joints.
const TREE: &str = "
mbs: 1
name: tree
gravity: [0.3, 0.2, -9.81]
parameters: {L: 0.4, w: 0.1, v: 0.1}
bodies:
  ground: {points: {P: [0, w, 0]}, vectors: {u: [0, 0, 1], x: [1, 0, 0]}}
  sled: {mass: 5, inertia: [1, 1, 1], points: {left: [0, -w, L], right: [0, w, L], post: [0, 3*w, L], Q: [w, 0, L/3]}, vectors: {along: [1, L, 0], up: [0, 0, 1]}}
  door: {mass: 2, com: [0.2, 0, 0], inertia: [0.1, 0.2, 0.15], points: {left: [0, -w, 0], right: [0, w, 0], tip: [L, 0, 0], post: [0, 3*w, 0]}, vectors: {n: [0, 0, 1], o: [1, 0, 0]}}
  bob: {mass: 1, com: [0, 0, 0.1], inertia: [0.01, 0.02, 0.02], points: {hook: [0, 0, L/2], R: [0, L, 0], S: [w, 0, 0]}, vectors: {e: [1, 0, 0], f: [0, 1, 0]}}
  rod: {mass: 1, com: [L, 0, 0], inertia: [0.01, 0.03, 0.03], points: {hook: [0, 0, L/2], R: [0, L, 0], S: [w, 0, 0], T: [0.2, 0, 0]}, vectors: {e: [0, 1, 0], f: [0, 0, 1]}}
  ring: {mass: 0.5, com: [0, 0, 0.05], inertia: [0.01, 0.01, 0.02], points: {C: [0, 0, 0.03]}, vectors: {a: [0, 0, 1], b: [0, 1, 0]}}
JOINTS
objectives: {swing: rate(hinge)^2 + ring.com_height, drop: {terminal: \"pos(ring).z + pos(bob.R).y + pos(sled).y*pos(ring).x\"}}
sensitivity: [L, w]
simulation: {end: 0.2, step: 5e-3, integrator: rk4}
";

const SHARED: &str = "joints:
  slide: {type: shared, parent: ground, child: sled, vectors: [[[1, L, 0], along], [u, up]], aligned: [P, Q]}
  hinge: {type: shared, parent: sled, child: door, points: [left, right], zero: [up, n], start: 0.2}
  ball: {type: shared, parent: door, child: bob, points: [[tip, hook]]}
  weld: {type: shared, parent: bob, child: rod, points: [hook, R, S]}
  pipe: {type: shared, parent: rod, child: ring, vectors: [[e, a]], aligned: [T, C], zero: [f, b], start: {angle: 0.3}}";

const WRITTEN: &str = "joints:
  slide: {type: prismatic, parent: ground.P, child: sled.Q, axis: [1, L, 0]}
  hinge: {type: revolute, parent: sled.left, child: door.left, axis: [0, 1, 0], start: 0.2}
  ball: {type: spherical, parent: door.tip, child: bob.hook}
  weld: {type: fixed, parent: bob.hook, child: rod.hook}
  pipe:
    type: cylindrical
    parent: {body: rod, point: T, axis: e, reference: f}
    child: {body: ring, point: C, axis: a, reference: b}
    start: {angle: 0.3}";

fn tree(joints: &str) -> String {
    TREE.replace("JOINTS", joints).replace("ring.com_height", "pos(ring).z^2")
}

#[test]
fn recognised_joints_of_a_tree_are_the_written_ones() {
    let worst = difference(&tree(SHARED), &tree(WRITTEN), 0.2);
    assert!(worst < 1e-12, "{worst}");
    // The comparison sees another joint.
    let other = WRITTEN.replace("axis: [0, 1, 0]", "axis: [0.01, 1, 0]");
    assert!(difference(&tree(SHARED), &tree(&other), 0.2) > 1e-5);
}

/// Planar, cardan and floating joints.
#[test]
fn recognised_joints_with_more_freedom_are_the_written_ones() {
    const BODIES: &str = "
mbs: 1
name: puck
gravity: [0.4, 0.3, -9.81]
parameters: {L: 0.4, w: 0.1}
bodies:
  ground: {points: {P: [0, w, L]}, vectors: {n: [0, w, 1], x: [1, 0, 0]}}
  puck: {mass: 2, com: [0.1, 0, 0.02], inertia: [0.1, 0.2, 0.3], points: {Q: [w, 0, 0], hub: [0, 0, L]}, vectors: {m: [0, 0, 1], e: [1, 0, 0], u: [1, 0, 0], r: [0, 1, 0]}}
  spider: {mass: 1, com: [0, 0.1, -0.2], inertia: [0.03, 0.02, 0.02], points: {eye: [0, 0, w]}, vectors: {v: [0, 1, 0], s: [1, 0, 0]}}
  shaft: {mass: 1, com: [0.05, 0.1, -0.2], inertia: [0.03, 0.02, 0.02], points: {eye: [0, 0, w]}, vectors: {v: [0, 0, 1], s: [0, 1, 0]}}
  free: {mass: 1, inertia: [0.02, 0.03, 0.04]}
JOINTS
forces:
  spring: {type: spring, from: shaft, to: free, stiffness: 20, natural_length: L}
objectives: {far: {terminal: \"dot(pos(free), pos(shaft)) + pos(spider).x\"}, speed: \"rate(table.angle)^2 + rate(cross.angle1)*rate(other.angle2)\"}
sensitivity: [L, w]
simulation: {end: 0.2, step: 5e-3, integrator: rk4}
";
    const SHARED: &str = "joints:
  table: {type: shared, parent: ground, child: puck, vectors: [[n, m]], coplanar: [P, Q], zero: [x, e], start: {angle: 0.2, x: {value: 0, rate: 0.3}}}
  cross: {type: shared, parent: puck, child: spider, points: [[hub, eye]], perpendicular: [u, v], start: {angle1: 0.3, angle2: -0.2}}
  other: {type: shared, parent: spider, child: shaft, points: [[origin, eye]], perpendicular: [s, v], zero: [v, s], start: {angle1: 0.1, angle2: 0.4}}
  air: {type: shared, parent: ground, child: free, points: [], start: {x: 0.2, z: 0.3}}";
    const WRITTEN: &str = "joints:
  table:
    type: planar
    parent: {body: ground, point: P, axis: n, reference: x}
    child: {body: puck, point: Q, axis: m, reference: e}
    start: {angle: 0.2, x: {value: 0, rate: 0.3}}
  cross: {type: cardan, parent: puck.hub, child: spider.eye, axes: [[1, 0, 0], [0, 1, 0]], start: {angle1: 0.3, angle2: -0.2}}
  other:
    type: cardan
    parent: {body: spider, axis: s, reference: v}
    child: {body: shaft, point: eye, axis: v, reference: s}
    start: {angle1: 0.1, angle2: 0.4}
  air: {type: floating, parent: ground, child: free, start: {x: 0.2, z: 0.3}}";
    let with = |joints: &str| BODIES.replace("JOINTS", joints);
    let worst = difference(&with(SHARED), &with(WRITTEN), 0.2);
    assert!(worst < 1e-12, "{worst}");
    let other = WRITTEN.replace("axes: [[1, 0, 0], [0, 1, 0]]", "axes: [[1, 0, 0.01], [0, 1, 0]]");
    assert!(difference(&with(SHARED), &with(&other), 0.2) > 1e-6);
}

/// Frames that are turned against each other: a point and two vectors, two points and a vector.
#[test]
fn recognised_fixed_joints_turn_frames() {
    let written = WRITTEN.replace(
        "weld: {type: fixed, parent: bob.hook, child: rod.hook}",
        "weld: {type: fixed, parent: {body: bob, point: hook, axis: e, reference: f}, child: {body: rod, point: hook, axis: e, reference: f}}",
    );
    let shared = SHARED.replace("points: [hook, R, S]", "points: [hook], vectors: [e, f]");
    let worst = difference(&tree(&shared), &tree(&written), 0.2);
    assert!(worst < 1e-12, "{worst}");
    let shared = SHARED.replace("points: [hook, R, S]", "points: [hook, R], vectors: [[f, [0, 1, 0]]]");
    let written = WRITTEN.replace(
        "weld: {type: fixed, parent: bob.hook, child: rod.hook}",
        "weld: {type: fixed, parent: {body: bob, point: hook, axis: [0, L, -L/2], reference: f}, child: {body: rod, point: hook, axis: [0, L, -L/2], reference: f}}",
    );
    let written = written.replace("reference: f}}", "reference: [0, 1, 0]}}");
    let worst = difference(&tree(&shared), &tree(&written), 0.2);
    assert!(worst < 1e-12, "{worst}");
}

/// Where a loop is cut.
#[test]
fn recognised_joints_close_loops() {
    let written = shipped("crank_rocker");
    let shared = written
        .replace(
            "R: {type: revolute, parent: coupler.pin, child: rocker.pin, axis: [0, 0, 1]}",
            "R: {type: shared, parent: coupler, child: rocker, points: [pin], vectors: [[[0, 0, 1], [0, 0, 1]]]}",
        )
        .replace(
            "P: {type: revolute, parent: crank.pin, child: coupler, axis: [0, 0, 1], start: 1}",
            "P: {type: shared, parent: crank, child: coupler, points: [[pin, origin]], vectors: [[[0, 0, 1], [0, 0, 1]]], start: 1}",
        );
    assert_eq!(shared.matches("type: shared").count(), 2);
    let worst = difference(&shared, &written, 0.05);
    assert!(worst == 0.0, "the same equations: {worst}");
}

/// What says nothing new changes nothing.
#[test]
fn redundant_lists_are_the_same_joints() {
    let redundant = SHARED
        .replace("points: [left, right]", "points: [left, right, post], vectors: [[[0, 1, 0], [0, 1, 0]]]")
        .replace("[u, up]]", "[u, up], [[0, 0, -3], [0, 0, -3]], [x, [1, 0, 0]]]")
        .replace(
            "points: [hook, R, S]",
            "points: [hook, R, S, [[L, L, L], [L, L, L]]], vectors: [[[0, 0, 1], [0, 0, 1]]]",
        )
        .replace("vectors: [[e, a]]", "vectors: [[e, a], [[0, -L, 0], [0, 0, -L]]]");
    let worst = difference(&tree(&redundant), &tree(WRITTEN), 0.2);
    assert!(worst < 1e-12, "{worst}");
}

/// In a mirrored element: the reflected mechanism, written out.
#[test]
fn recognised_joints_are_mirrored() {
    const MODEL: &str = "
mbs: 1
gravity: [0.3, 0, -9.81]
parameters: {L: 0.4, w: 0.1}
elements:
  side:
    bodies:
      arm: {mass: 2, com: [0.1, L, 0], inertia: [0.1, 0.03, 0.12], points: {a: [-w, 0, 0], b: [w, 0, 0.02], end: [0, L, 0]}, vectors: {n: [0, 0, 1]}}
      wheel: {mass: 1, com: [0.01, 0.02, 0.03], inertia: [0.02, 0.03, 0.02], points: {hub: [0, 0.01, 0]}, vectors: {s: [0.1, 1, 0], t: [1, 0, 0.2]}}
      slug: {mass: 1, com: [0.02, 0, 0.01], inertia: [0.02, 0.03, 0.02], vectors: {p: [0, 1, 0], q: [1, 0, 0]}}
    joints: JOINTS
    outputs: {spin: axle.angle}
instances:
  left: {element: side}
  right: {element: side, mirror: y}
objectives: {e: {terminal: \"left_axle.angle*right_axle.angle + pos(right_wheel).x*pos(left_wheel).y\"}}
sensitivity: [L, w]
simulation: {end: 0.2, step: 5e-3, integrator: rk4}
";
    const SHARED: &str = "
      hinge: {type: shared, parent: ground, child: arm, points: [[[0.3, w, 0.2], a], [[0.3 + 2*w, w, 0.22], b]], zero: [[0, 0.1, 1], n], start: 0.2}
      axle: {type: shared, parent: arm, child: wheel, points: [[end, hub]], vectors: [[[0.2, 1, 0.1], s]], zero: [[1, 0, 0], t], start: 0.3}
      tube: {type: shared, parent: arm, child: slug, vectors: [[[0, 1, 0.1], p]], aligned: [end, origin], zero: [[1, 0, 0], q], start: {angle: 0.1, displacement: 0.05}}";
    const WRITTEN: &str = "
      hinge:
        type: revolute
        parent: {body: ground, point: [0.3, w, 0.2], axis: [2*w, 0, 0.02], reference: [0, 0.1, 1]}
        child: {body: arm, point: a, axis: [2*w, 0, 0.02], reference: n}
        start: 0.2
      axle:
        type: revolute
        parent: {body: arm, point: end, axis: [0.2, 1, 0.1], reference: [1, 0, 0]}
        child: {body: wheel, point: hub, axis: s, reference: t}
        start: 0.3
      tube:
        type: cylindrical
        parent: {body: arm, point: end, axis: [0, 1, 0.1], reference: [1, 0, 0]}
        child: {body: slug, axis: p, reference: q}
        start: {angle: 0.1, displacement: 0.05}";
    let with = |joints: &str| MODEL.replace(" JOINTS", joints);
    let worst = difference(&with(SHARED), &with(WRITTEN), 0.2);
    assert!(worst < 1e-12, "{worst}");
}

/// Where the child's points follow another parameter, they are as far apart on both bodies only while w = v.
#[test]
fn parameters_that_tear_apart_what_is_shared_are_refused() {
    let apart = TREE.replace("left: [0, -w, 0], right: [0, w, 0]", "left: [0, -v, 0], right: [0, v, 0]");
    assert_ne!(apart, TREE);
    let text = apart.replace("JOINTS", SHARED).replace("ring.com_height", "pos(ring).z^2");
    let parse = |text: &str| mbs_codegen::analyse("model.yaml", text).expect("a valid model").0;
    let set = |text: &str, pairs: &[(&str, f64)]| {
        let pairs: Vec<(String, f64)> = pairs.iter().map(|(name, x)| (name.to_string(), *x)).collect();
        simulation::interpret(&parse(text), None, &pairs, Vec::new()).map_err(|error| error.to_string())
    };
    // There is no derivative by one of them alone.
    let torn = set(&text, &[]).expect_err("w moves the points of one body");
    assert!(torn.contains("no derivative by `w`") && torn.contains("joint `hinge`"), "{torn}");
    let text = text.replace("sensitivity: [L, w]", "sensitivity: [L]");
    assert!(set(&text, &[("w", 0.2), ("v", 0.2)]).is_ok());
    let refused = set(&text, &[("v", 0.2)]).expect_err("the points do not meet");
    assert!(refused.contains("joint `hinge` share"), "{refused}");
    // Three points in line make a hinge; where the third leaves the line of both bodies, they make another joint.
    let text = tree(SHARED).replace("points: [left, right]", "points: [left, right, post]");
    let text = text
        .replace("post: [0, 3*w, L]", "post: [v - 0.1, 3*w, L]")
        .replace("post: [0, 3*w, 0]", "post: [v - 0.1, 3*w, 0]");
    assert!(set(&text, &[]).is_ok());
    let refused = set(&text, &[("v", 0.2)]).expect_err("no hinge");
    assert!(refused.contains("joint `hinge` share"), "{refused}");
    // The third point on the line of the others makes no frame.
    let text = tree(SHARED)
        .replace("S: [w, 0, 0]", "S: [v - 0.1 + w, 0, L]")
        .replace("R: [0, L, 0]", "R: [0, 0, L]");
    assert!(set(&text, &[]).is_ok());
    let refused =
        set(&text.replace("sensitivity: [L, w]", "sensitivity: [L]"), &[("v", 0.0)]).expect_err("a line");
    assert!(refused.contains("the bodies of joint `weld` share are all parallel"), "{refused}");
}
