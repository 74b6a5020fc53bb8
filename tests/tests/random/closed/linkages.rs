//! Linkages of which it is known by hand which rows vanish, which repeat others, and what joints carry.

use super::{program, violation};
use mbs_codegen::kinematics::ReferencePoint;
use mbs_codegen::program::BundleKind;
use mbs_runtime::formulation::{Ali3p, State};
use mbs_runtime::{At, ConstrainedDynamics, Outputs, Reactions, Stabilisation, System, euler_parameters};
use mbs_tests::closed;
use mbs_tests::instant::largest;

/// A spatial four-bar, bodies parallel to the world at the start: crank, coupler, rocker, by revolute, spherical, cardan
/// and revolute joints. `cut` is the joint that is cut.
fn spatial_four_bar(cut: usize) -> String {
    let joints = [
        ("revolute", "axis: [0, 0.2, 1]", "[0, 0, 0]"),
        ("spherical", "", "[0.3, 0.1, 0.2]"),
        ("cardan", "axes: [[1, 0.3, 0], [-0.3, 1, 0.4]]", "[1.1, 0.5, -0.1]"),
        ("revolute", "axis: [0.3, 1, 0.1]", "[0.9, -0.4, 0.1]"),
    ];
    let bodies = ["ground", "crank", "coupler", "rocker", "ground"];
    let mut text = "
mbs: 1
gravity: [0.3, 0, -9.81]
bodies:
  crank: {mass: 1.1, com: [0.1, 0.1, 0], inertia: [0.02, 0.03, 0.04], points: {p: [0.2, 0, 0.1]}}
  coupler: {mass: 2.3, com: [0.7, 0.3, 0], inertia: [0.1, 0.3, 0.25], points: {p: [0.6, 0.4, 0.1]}}
  rocker: {mass: 0.9, com: [1, 0, 0], inertia: [0.05, 0.04, 0.03], points: {p: [1, 0.1, 0]}}
forces:
  push: {type: force, at: coupler.p, value: [3, \"5*vel(rocker.p).z\", -2]}
  spring: {type: spring, from: ground, to: coupler.p, stiffness: 50, damping: 2, natural_length: 0.3}
outputs: {a: acc(coupler.p), b: alpha(coupler), c: acc(rocker.p), d: acc(crank.p)}
joints:
"
    .to_string();
    for (i, (kind, axes, point)) in joints.into_iter().enumerate() {
        // Walked from ground on both sides of the cut.
        let (parent, child) = if i <= cut { (bodies[i], bodies[i + 1]) } else { (bodies[i + 1], bodies[i]) };
        let axes = if i > cut && kind == "cardan" { "axes: [[-0.3, 1, 0.4], [1, 0.3, 0]]" } else { axes };
        let comma = if axes.is_empty() { "" } else { ", " };
        let start = if i == 0 { ", start: {rate: 1.5, hold: true}" } else { "" };
        text += &format!(
            "  j{i}: {{type: {kind}, parent: {{body: {parent}, point: {point}}}, child: {{body: {child}, point: {point}}}{comma}{axes}, cut: {}{start}}}\n",
            i == cut
        );
    }
    text
}

/// Motion and reactions do not depend on the joint that is cut.
#[test]
fn reactions_do_not_depend_on_the_cut() {
    let mut first: Option<(Vec<f64>, Vec<f64>)> = None;
    for cut in 1..4 {
        let model = closed::model(&spatial_four_bar(cut));
        let d = model.dims();
        let (mut state, _) = closed::start(&model, 0.0).expect("assembled as given");
        let (z, zd) = {
            let view = State::of(&d, &mut state).expect("length");
            (view.z.to_vec(), view.zd.to_vec())
        };
        let mut v = vec![0.0; d.nv];
        euler_parameters::velocities(&model, &z, &zd, &mut v).expect("lengths");
        let at = At { t: 0.0, z: &z, v: &v, x: &[], u: &[] };
        let mut w = vec![0.0; d.workspace];
        let (mut zd, mut vd) = (vec![0.0; d.nq], vec![0.0; d.nv]);
        let mut lambda = vec![0.0; d.n_holonomic];
        let exact = Stabilisation { rate: 0.0, value: 0.0, compliance: 0.0 };
        model
            .constrained_dynamics(at, exact, &mut w, &mut zd, &mut vd, &mut [], &mut lambda)
            .expect("regular");
        let (mut wrenches, mut out) = (vec![0.0; 6 * d.n_joints], vec![0.0; d.n_outputs]);
        model.reactions(at, &vd, &lambda, &mut w, &mut wrenches).expect("reactions");
        model.outputs(at, &vd, &mut w, &mut out).expect("outputs");
        // On the body after the joint, whichever is the child.
        for (j, wrench) in wrenches.chunks_mut(6).enumerate() {
            if j > cut {
                wrench.iter_mut().for_each(|x| *x = -*x);
            }
        }
        let (a, b) = first.get_or_insert((out.clone(), wrenches.clone()));
        assert!(closed::distance(a, &out) < 1e-10 * largest(a), "cut {cut}: {a:?} {out:?}");
        assert!(closed::distance(b, &wrenches) < 1e-10 * largest(b), "cut {cut}: {b:?} {wrenches:?}");
        // Axes transmit no torque along themselves, a ball none at all.
        let [rx, ry, rz] = [0.0, 0.2, 1.0];
        let torque = &wrenches[3..6];
        assert!((torque[0] * rx + torque[1] * ry + torque[2] * rz).abs() < 1e-10 * largest(&wrenches));
        assert!(largest(&wrenches[9..12]) < 1e-10 * largest(&wrenches), "{:?}", &wrenches[9..12]);
    }
}

/// A planar four-bar turned out of the plane by `tilt` about x, an expression of parameters; its closing joint is cut.
fn planar_four_bar(tilt: &str, closing: &str) -> String {
    let turned = |x: &str, y: &str| format!("[\"{x}\", \"({y})*cos({tilt})\", \"({y})*sin({tilt})\"]");
    let axis = format!("[0, \"-sin({tilt})\", \"cos({tilt})\"]");
    let end = |l: &str| turned(l, "0");
    format!(
        "
mbs: 1
parameters: {{a: 0.4, b: 1.1, c: 0.9, base: 1.3, lift: 0.1, angle: 0.7}}
gravity: [0, -9.81, 0]
bodies:
  ground: {{points: {{B: {base}}}}}
  crank: {{mass: 1, com: {half}, inertia: [0.1, 0.1, 0.1], points: {{end: {a}}}}}
  coupler: {{mass: 1, com: {half}, inertia: [0.1, 0.1, 0.1], points: {{end: {b}}}}}
  rocker: {{mass: 1, com: {half}, inertia: [0.1, 0.1, 0.1], points: {{end: {c}}}}}
joints:
  A: {{type: revolute, parent: ground, child: crank, axis: {axis}, start: {{value: 1, hold: true}}}}
  P: {{type: revolute, parent: crank.end, child: coupler, axis: {axis}, start: -0.8}}
  B: {{type: revolute, parent: ground.B, child: rocker, axis: {axis}, start: 1.6}}
  Q: {{type: {closing}, parent: coupler.end, child: rocker.end, axis: {axis}, cut: true}}
",
        base = turned("base", "lift"),
        half = end("a/2"),
        a = end("a"),
        b = end("b"),
        c = end("c")
    )
}

#[test]
fn rows_that_vanish_are_dropped_and_no_others() {
    let rows = |text: &str| {
        let program = program(text, ReferencePoint::Origin, &BundleKind::COORDINATE_FORM);
        (program.holonomic, program.dropped_rows)
    };
    let named = |names: &[&str]| names.iter().map(|name| format!("Q.{name}")).collect::<Vec<_>>();
    for (tilt, closing, kept, dropped) in [
        ("0", "revolute", &["x", "y"][..], &["z", "tilt1", "tilt2"][..]),
        // In a tilted plane the three components of the gap are dependent; none of them vanishes.
        ("0.6", "revolute", &["x", "y", "z"], &["tilt1", "tilt2"]),
        ("angle", "revolute", &["x", "y", "z"], &["tilt1", "tilt2"]),
        ("angle*base", "cylindrical", &["across1", "across2"], &["tilt1", "tilt2"]),
        ("angle", "prismatic", &["across1", "across2", "twist"], &["tilt1", "tilt2"]),
        ("0", "prismatic", &["across1", "across2", "twist"], &["tilt1", "tilt2"]),
    ] {
        let text = planar_four_bar(tilt, closing);
        assert_eq!(rows(&text), (named(kept), named(dropped)), "{tilt} {closing}");
    }
    // A planar joint in its own plane closes nothing.
    let text = planar_four_bar("angle", "planar").replace("cut: true", "reference: [1, 0, 0], cut: true");
    assert_eq!(rows(&text), (named(&[]), named(&["normal", "tilt1", "tilt2"])));
    // Planes of the links that meet by their parameters: nothing moves the row.
    let offset = |other: &str| {
        planar_four_bar("0", "revolute")
            .replace("angle: 0.7}", &format!("angle: 0.7, here: 0.2, there: {other}}}"))
            .replace("cut: true", "cut: true, parent: {body: coupler, point: [b, 0, here]}, child: {body: rocker, point: [c, 0, there]}")
            .replace("parent: coupler.end, child: rocker.end, ", "")
    };
    assert_eq!(rows(&offset("0.2")), (named(&["x", "y"]), named(&["z", "tilt1", "tilt2"])));
    let refused = mbs_codegen::read("offset.yaml", &offset("0.3")).expect_err("planes that do not meet");
    let said = refused.render("offset.yaml", "");
    assert!(said.contains("constraint `Q.z` can never be met") && refused.error_count() == 1, "{said}");
    // A row that begins later is zero at first, and still a row.
    let later = planar_four_bar("0", "revolute")
        + "constraints: {late: {type: equation, value: \"step(t, 5, 0, 6, 1)*A.angle\"}}\n";
    assert_eq!(rows(&later).0, ["Q.x", "Q.y", "late"]);
}

/// A parallelogram of three cranks, Bennett's linkage: dependent rows stay, and the mechanisms move.
#[test]
fn dependent_rows_stay() {
    // Three parallel cranks carry one bar: two loops, of which the second repeats the first.
    let cranks = "
mbs: 1
gravity: [0, -9.81, 0]
bodies:
  ground: {points: {A: [0, 0, 0], B: [1, 0, 0], C: [2, 0, 0]}}
  one: &crank {mass: 1, com: [0, 0.25, 0], inertia: [0.1, 0.1, 0.1], points: {end: [0, 0.5, 0]}}
  two: *crank
  three: *crank
  bar: {mass: 2, com: [1, 0, 0], inertia: [0.2, 0.2, 0.2], points: {B: [1, 0, 0], C: [2, 0, 0]}}
joints:
  A: {type: revolute, parent: ground.A, child: one, axis: [0, 0, 1], start: {value: 0.4, rate: 1, hold: true}}
  B: {type: revolute, parent: ground.B, child: two, axis: [0, 0, 1], start: 0.4}
  C: {type: revolute, parent: ground.C, child: three, axis: [0, 0, 1], start: 0.4}
  P: {type: revolute, parent: one.end, child: bar, axis: [0, 0, 1], start: -0.4}
  Q: {type: revolute, parent: two.end, child: bar.B, axis: [0, 0, 1], cut: true}
  R: {type: revolute, parent: three.end, child: bar.C, axis: [0, 0, 1], cut: true}
";
    // Four revolute joints in space; sin(twist)/length is the same on neighbouring links. Denavit–Hartenberg: every link
    // goes along its x by its length and turns the next axis about x by its twist.
    let bennett = "
mbs: 1
gravity: [1, -2, -9.81]
parameters: {la: 1, lb: 0.6, ta: 1.1, tb: asin(lb/la*sin(ta))}
bodies:
  ground: {points: {end: [la, 0, 0]}}
  one: {mass: 1, com: [lb/2, 0, 0], inertia: [0.1, 0.1, 0.1], points: {end: [lb, 0, 0]}}
  two: {mass: 1, com: [la/2, 0, 0], inertia: [0.1, 0.1, 0.1], points: {end: [la, 0, 0]}}
  three: {mass: 1, com: [lb/2, 0, 0], inertia: [0.1, 0.1, 0.1], points: {end: [lb, 0, 0]}}
joints:
  j1:
    type: revolute
    parent: {body: ground, point: end, axis: [0, -sin(ta), cos(ta)], reference: [1, 0, 0]}
    child: {body: one, point: origin, axis: [0, 0, 1], reference: [1, 0, 0]}
    start: {value: 2, hold: true, rate: 0.7}
  j2:
    type: revolute
    parent: {body: one, point: end, axis: [0, -sin(tb), cos(tb)], reference: [1, 0, 0]}
    child: {body: two, point: origin, axis: [0, 0, 1], reference: [1, 0, 0]}
    start: 1.0
  j3:
    type: revolute
    parent: {body: two, point: end, axis: [0, -sin(ta), cos(ta)], reference: [1, 0, 0]}
    child: {body: three, point: origin, axis: [0, 0, 1], reference: [1, 0, 0]}
    start: 2.0
  j4:
    type: revolute
    parent: {body: three, point: end, axis: [0, -sin(tb), cos(tb)], reference: [1, 0, 0]}
    child: {body: ground, point: origin, axis: [0, 0, 1], reference: [1, 0, 0]}
";
    for (what, text, kept, rank) in [("cranks", cranks, 4, 3), ("Bennett", bennett, 5, 2)] {
        let model = closed::model(text);
        let d = model.dims();
        assert_eq!(d.n_holonomic, kept, "{what}: {:?}", model.program().holonomic);
        let (mut state, statistics) = closed::start(&model, 0.0)
            .unwrap_or_else(|error| panic!("{what}: {}", closed::said(&model, error)));
        println!("{what}: {statistics:?}");
        assert_eq!(statistics.rank, rank, "{what}");
        let mut scratch = vec![0.0; Ali3p::scratch_len(&d)];
        for _ in 0..100 {
            Ali3p::DEFAULT
                .step(&model, &mut model.input_signals(), &mut state, 1e-3, &mut scratch)
                .unwrap_or_else(|error| panic!("{what}: {}", closed::said(&model, error)));
        }
        let violation = violation(&model, &mut state);
        assert!(violation < 1e-9, "{what}: {violation:e}");
    }
}
