//! Equilibrium and modes: the buggy at rest; the Whipple bicycle, whose eigenvalues are published to fifteen digits.

use super::{coordinate, read, start, text, with_bundles};
use mbs_codegen::program::{BundleKind, Options, Program};
use mbs_engine::Interpreted;
use mbs_engine::equilibrium::{self, EquilibriumError};
use mbs_engine::modes::linearise;
use mbs_engine::verify::Instant;
use mbs_runtime::{State, System};

fn coordinate_form(text: &str) -> Interpreted {
    with_bundles(text, None, BundleKind::COORDINATE_FORM.to_vec())
}

/// The consistent start as an instant.
fn instant(model: &Interpreted) -> Instant {
    let (mut state, _) = start(model).unwrap();
    let view = State::of(&model.dims(), &mut state).unwrap();
    Instant {
        t: 0.0,
        z: view.z.to_vec(),
        zd: view.zd.to_vec(),
        zdd: view.zdd.to_vec(),
        u: Vec::new(),
        lambda: view.lambda.to_vec(),
    }
}

/// Own data set, equilibrium by independent code.
#[test]
fn buggy_at_rest() {
    let model = with_bundles(
        &text("buggy"),
        None,
        [&BundleKind::COORDINATE_FORM[..], &[BundleKind::Outputs]].concat(),
    );
    let nq = model.dims().nq;
    let found = equilibrium::find(&model, 0.0, &model.start_state()[..nq]).unwrap();
    println!("{} steps, {:.1e}", found.steps, found.residual);
    let z = |name: &str| found.instant.z[coordinate(&model, name)];
    for (name, expected) in [
        ("ride.z", -0.0493123168097),
        ("ride.e2", 0.00312334290296),
        ("left_front_length", 0.3811165798081),
        ("right_front_length", 0.3811165798081),
        ("left_rear_length", 0.220215797349),
        ("right_rear_length", 0.220215797349),
    ] {
        assert!((z(name) - expected).abs() < 1e-12, "{name}: {} and {expected}", z(name));
    }
    // Nothing holds it along the ground: it stays, but for what rounding of 25 steps leaves.
    for name in ["ride.y", "ride.e1", "ride.e3"] {
        assert!(z(name).abs() < 1e-7, "{name}: {}", z(name));
    }
    let dims = model.dims();
    let (mut w, mut outputs) = (vec![0.0; dims.workspace], vec![0.0; dims.n_outputs]);
    let rest = vec![0.0; dims.nv];
    let at = mbs_runtime::At { t: 0.0, z: &found.instant.z, v: &rest, x: &[], u: &[] };
    mbs_runtime::Outputs::outputs(&model, at, &rest, &mut w, &mut outputs).unwrap();
    for (name, expected) in [("left_front_tyre_load", 1286.501016), ("right_rear_tyre_load", 1497.576984)] {
        let load = outputs[super::place(&model, mbs_runtime::Quantity::Output, name)];
        assert!((load - expected).abs() < 1e-6, "{name}: {load}");
    }

    // About it nothing grows, and ride and wheel hop are where a vehicle has them.
    let linearisation = linearise(&model, &found.instant).unwrap();
    assert!(linearisation.is_steady(), "{:.1e}", linearisation.drift);
    // 14 positions and 14 velocities, less what nothing depends on: the place on the ground and the wheels' angles.
    assert_eq!(linearisation.cyclic.len() + linearisation.matrix.nrows(), 28);
    let modes = linearisation.modes();
    for mode in &modes {
        println!("{:.6} {:.6}", mode.eigenvalue.re, mode.eigenvalue.im);
        assert!(mode.eigenvalue.re < 1e-6, "{:?}", mode.eigenvalue);
    }
    let hops = modes
        .iter()
        .filter(|mode| (40.0..90.0).contains(&mode.eigenvalue.norm()) && mode.eigenvalue.im > 0.0);
    assert_eq!(hops.count(), 4, "four wheels hop");
    let rides =
        modes.iter().filter(|mode| (5.0..20.0).contains(&mode.eigenvalue.norm()) && mode.eigenvalue.im > 0.0);
    assert_eq!(rides.count(), 3, "heave, pitch and roll");
}

#[test]
fn what_cannot_rest_is_named() {
    let falling = "
mbs: 1
gravity: [0, 0, -9.81]
bodies: {stone: {mass: 2, inertia: [1, 1, 1]}}
joints: {fall: {type: floating, parent: ground, child: stone}}
";
    let model = coordinate_form(falling);
    let error = equilibrium::find(&model, 0.0, &model.start_state()[..7]).unwrap_err();
    let EquilibriumError::Unbalanced { ref worst, .. } = error else { panic!("{error}") };
    assert!(worst[0].0.contains("fall.z") && (worst[0].1 - 2.0 * 9.81).abs() < 1e-9, "{error}");
}

/// Free fall beside something stiff is no rest, and where a force has no value there is nothing to balance.
#[test]
fn neither_stiff_neighbours_nor_undefined_forces_balance() {
    let beside = "
mbs: 1
gravity: [0, 0, -9.81]
bodies: {a: {mass: 1}, b: {mass: 1}}
joints:
  ja: {type: prismatic, parent: ground, child: a, axis: [0, 0, 1]}
  jb: {type: prismatic, parent: ground, child: b, axis: [0, 0, 1]}
forces: {k: {type: torsional_spring, coordinate: jb, stiffness: 1e12}}
";
    let model = coordinate_form(beside);
    let error = equilibrium::find(&model, 0.0, &[0.0, 0.0]).unwrap_err();
    let EquilibriumError::Unbalanced { ref worst, .. } = error else { panic!("{error}") };
    assert!(worst[0].0.contains("ja") && (worst[0].1 - 9.81).abs() < 1e-9, "{error}");

    let undefined = "
mbs: 1
gravity: [0, 0, -9.81]
bodies: {b: {mass: 1}}
joints: {j: {type: prismatic, parent: ground, child: b, axis: [0, 0, 1], start: 0.3}}
forces: {s: {type: joint_force, coordinate: j, value: sqrt(j.displacement - 1)}}
";
    let model = coordinate_form(undefined);
    let error = equilibrium::find(&model, 0.0, &[0.3]).unwrap_err();
    assert!(error.describe(&model).contains("`j.displacement`"), "{}", error.describe(&model));
    // From where it has one, the search does not leave for where it has none.
    let found = equilibrium::find(&model, 0.0, &[50.0]).unwrap();
    assert!((found.instant.z[0] - (1.0 + 9.81f64.powi(2))).abs() < 1e-9, "{:?}", found.instant.z);
}

/// What accelerates, or turns, is not steady.
#[test]
fn unsteady_motions_are_known() {
    let model = coordinate_form(
        "
mbs: 1
gravity: [0, 0, -9.81]
bodies: {rod: {mass: 1, com: [0, 0, -2]}}
joints: {hinge: {type: revolute, parent: ground, child: rod, axis: [0, 1, 0], start: 1.2}}
",
    );
    let linearisation = linearise(&model, &instant(&model)).unwrap();
    assert!(!linearisation.is_steady() && linearisation.restless.0 == 0, "{:?}", linearisation.restless);
}

/// Euler parameters of any length start with the angular velocity that is given.
#[test]
fn lengths_of_euler_parameters_do_not_matter() {
    let at = |orientation: &str| {
        let model = coordinate_form(&format!(
            "
mbs: 1
bodies: {{a: {{mass: 5, inertia: [0.3, 0.4, 0.5]}}}}
joints:
  f: {{type: spherical, parent: ground, child: a, start: {{orientation: {orientation}, angular_velocity: [0.5, -1, 2]}}}}
"
        ));
        let (mut state, _) = start(&model).unwrap();
        let view = State::of(&model.dims(), &mut state).unwrap();
        let mut v = [0.0; 3];
        mbs_runtime::euler_parameters::velocities(&model, view.z, view.zd, &mut v).unwrap();
        v
    };
    for orientation in ["[0.8, 0, 0.6, 0]", "[1, 0, 0.75, 0]", "[40, 0, 30, 0]"] {
        let v = at(orientation);
        let errors = v.iter().zip([0.5, -1.0, 2.0]).map(|(v, expected)| (v - expected).abs());
        assert!(errors.fold(0.0, f64::max) < 1e-15, "{orientation}: {v:?}");
    }
}

/// Eigenvalues that are zero have shapes of their own: a table slides along x and y and bears a wheel, and nothing resists the three.
#[test]
fn shapes_of_zeros_are_a_basis() {
    let model = coordinate_form(
        "
mbs: 1
gravity: [0, 0, -9.81]
bodies:
  slide: {mass: 1}
  table: {mass: 2}
  wheel: {mass: 1, inertia: [1, 1, 1]}
joints:
  along: {type: prismatic, parent: ground, child: slide, axis: [1, 0, 0]}
  across: {type: prismatic, parent: slide, child: table, axis: [0, 1, 0]}
  turn: {type: revolute, parent: table, child: wheel, axis: [0, 0, 1]}
",
    );
    let modes = linearise(&model, &instant(&model)).unwrap().modes();
    let mut shapes: Vec<Vec<f64>> = modes
        .iter()
        .map(|mode| {
            assert_eq!(mode.eigenvalue.norm(), 0.0);
            mode.shape.iter().map(|x| x.re).collect()
        })
        .collect();
    shapes.sort_by(|a, b| b.partial_cmp(a).unwrap());
    assert_eq!(shapes, [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]);
}

/// A pendulum hangs down from wherever it starts, and swings with √(g/l).
#[test]
fn pendulum() {
    let model = coordinate_form(
        "
mbs: 1
gravity: [0, 0, -9.81]
bodies: {rod: {mass: 1, com: [0, 0, -2]}}
joints: {hinge: {type: revolute, parent: ground, child: rod, axis: [0, 1, 0], start: 1.2}}
",
    );
    let found = equilibrium::find(&model, 0.0, &[1.2]).unwrap();
    assert!(found.instant.z[0].abs() < 1e-14, "{:?}", found.instant.z);
    let modes = linearise(&model, &found.instant).unwrap().modes();
    assert_eq!(modes.len(), 1);
    assert!((modes[0].eigenvalue.im - (9.81f64 / 2.0).sqrt()).abs() < 1e-14);
    assert!(modes[0].eigenvalue.re.abs() < 1e-14);
}

/// Eigenvalues at a speed, those that are zero at every speed left out: largest real part first.
fn eigenvalues(model: &mut Interpreted, speed: f64) -> Vec<nalgebra::Complex<f64>> {
    model.set_parameter("speed", speed).unwrap();
    let linearisation = linearise(model, &instant(model)).unwrap();
    assert!(linearisation.is_steady(), "{:.1e}", linearisation.drift);
    linearisation.eigenvalues().into_iter().filter(|x| x.norm() > 1e-4).collect()
}

/// Meijaard, Papadopoulos, Ruina, Schwab 2007, Table 2 and text; digits beyond those printed there by the same equations.
#[test]
fn whipple_bicycle() {
    let model = read(&text("whipple"));
    let options = Options { bundles: BundleKind::COORDINATE_FORM.to_vec(), ..Options::default() };
    let mut model = Interpreted::new(Program::new(&model, None, &options).unwrap());
    let found = eigenvalues(&mut model, 5.0);
    println!("{found:?}");
    let expected = [
        (-0.32286642900409, 0.0),
        (-0.77534188219585, 4.46486771378823),
        (-0.77534188219585, -4.46486771378823),
        (-14.07838969279822, 0.0),
    ];
    assert_eq!(found.len(), 4);
    for (found, (re, im)) in found.iter().zip(expected) {
        assert!((found.re - re).abs() < 1e-10 && (found.im - im).abs() < 1e-10, "{found} and {re}, {im}");
    }
    // The real part of the weave pair by speed, to its zero.
    let weave = |model: &mut Interpreted, speed: f64| {
        let pair = eigenvalues(model, speed).into_iter().find(|x| x.im > 1.0);
        pair.expect("an oscillation").re
    };
    let (mut a, mut b) = (4.2, 4.4);
    let (mut at_a, mut at_b) = (weave(&mut model, a), weave(&mut model, b));
    for _ in 0..8 {
        let next = b - at_b * (b - a) / (at_b - at_a);
        if (next - b).abs() < 1e-13 {
            break;
        }
        (a, at_a) = (b, at_b);
        (b, at_b) = (next, weave(&mut model, next));
        if at_b == at_a {
            break;
        }
    }
    println!("weave speed {b:.14}");
    assert!((b - 4.29238253634111).abs() < 1e-10, "{b}");
    // Capsize: near its zero the eigenvalue meets others that are zero, so it is taken at the nodes of Chebyshev around and
    // interpolated.
    let nodes: Vec<(f64, f64)> = (0..12)
        .map(|k| 6.0 + 0.4 * (std::f64::consts::PI * (2.0 * f64::from(k) + 1.0) / 24.0).cos())
        .map(|speed| {
            let real = eigenvalues(&mut model, speed).into_iter().filter(|x| x.im == 0.0);
            (speed, real.map(|x| x.re).fold(f64::NEG_INFINITY, f64::max))
        })
        .collect();
    let capsize_at = |speed: f64| -> f64 {
        let terms = nodes.iter().enumerate().map(|(i, (x, value))| {
            let others = nodes.iter().enumerate().filter(|(j, _)| *j != i);
            value * others.map(|(_, (y, _))| (speed - y) / (x - y)).product::<f64>()
        });
        terms.sum()
    };
    let (mut below, mut above) = (5.7, 6.3);
    for _ in 0..60 {
        let middle = 0.5 * (below + above);
        if capsize_at(middle) < 0.0 { below = middle } else { above = middle }
    }
    let capsize = 0.5 * (below + above);
    println!("capsize speed {capsize:.14}");
    assert!((capsize - 6.02426201538837).abs() < 1e-10, "{capsize}");
}
