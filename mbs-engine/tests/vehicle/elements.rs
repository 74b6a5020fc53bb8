//! The standard elements and the language they are written in: values by hand, derivatives against complex steps.

use super::{place, with_bundles};
use mbs_codegen::program::BundleKind;
use mbs_engine::Interpreted;
use mbs_engine::verify::{self, Instant};
use mbs_runtime::{At, ForwardDynamics, InverseDynamics, Outputs, Quantity, System, euler_parameters};

/// Every standard element, one of them inside a mirrored element.
const ALL: &str = "
mbs: 1
gravity: [0, 0, -9.81]
parameters: {k: 2e4, mu: 0.7, R: 0.3, road_x: [-1, 0, 1, 2], road_z: [0, 0.02, -0.01, 0.03]}
definitions:
  reach: [0.4, 0.6, -0.1]
  bumpy: \"spline(pos(frame).x, road_x, road_z)\"
elements:
  corner:
    arguments: {softness: scalar}
    definitions: {ground: bumpy + 0.01*sin(3*t)}
    bodies:
      arm: {mass: 3, inertia: [0.05, 0.06, 0.07], points: {hub: 0.5*reach}, vectors: {axle: [0, 1, 0]}}
      wheel: {mass: 2, inertia: [0.02, 0.03, 0.02]}
    joints:
      pivot: {type: revolute, parent: {body: frame, point: reach}, child: arm, axis: [1, 0, 0.1]}
      axle: {type: revolute, parent: arm.hub, child: wheel, axis: [0, 1, 0]}
    instances:
      tyre:
        element: tyre
        arguments: {wheel: wheel, hub: arm.hub, axle: dir(arm.axle), height: ground, radius: R, stiffness: k*softness,
          damping: 0.1, smoothing: 0.01, slip_x: 8, slip_y: 6, friction: mu, creep: 0.5}
      stop:
        element: bump_stop
        arguments: {coordinate: pivot.angle, lower: -0.2, upper: 0.3, stiffness: k/100, damping: 0.2, smoothing: 0.02}
bodies:
  frame: {mass: 20, inertia: [1, 2, 2.5, 0.1, -0.2, 0.05], points: {top: [0.1, 0.05, 0.3], foot: [-0.2, 0.1, -0.4]}}
  engine: {mass: 8, inertia: [0.2, 0.3, 0.3], points: {mount: [0.05, 0, -0.1]}}
joints:
  ride: {type: floating, parent: ground, child: frame}
  shake: {type: floating, parent: frame, child: engine, start: {z: 0.4}}
instances:
  left: {element: corner, arguments: {softness: 0.9}}
  right: {element: corner, arguments: {softness: 1.1}, mirror: y}
  mount:
    element: bushing
    arguments: {base: frame, seat: frame.top, body: engine, point: engine.mount, stiffness: [k, 2*k, 3*k], damping: [10, 20, 30],
      turning_stiffness: [100, 200, 300], turning_damping: [1, 2, 3]}
  heel:
    element: contact_kelvin_voigt
    arguments: {body: frame, centre: frame.foot, radius: 0.05, height: bumpy, normal: [0, 0, 1], stiffness: k, damping: 50,
      smoothing: 0.01, friction: mu, creep: 0.1}
  toe:
    element: contact_hunt_crossley
    arguments: {body: frame, centre: frame.foot, radius: 0.1, height: bumpy, normal: \"unit([0.1, 0.2*pos(frame).y, 1])\",
      stiffness: k, exponent: 1.5, damping: 0.3, smoothing: 0.01, friction: mu, creep: 0.1}
  air: {element: drag, arguments: {at: engine.com, area: 0.6, density: 1.2, wind: [1, 2, 0], creep: 0.01}}
outputs:
  climb: rate(bumpy)
  climb_by_hand: \"(spline(pos(frame).x + 1e-6, road_x, road_z) - spline(pos(frame).x - 1e-6, road_x, road_z))/2e-6*vel(frame).x\"
  distance_rate: rate(norm(pos(engine) - pos(frame)))
  distance_rate_by_hand: \"dot(unit(pos(engine) - pos(frame)), vel(engine) - vel(frame))\"
  turning: \"rate(from(frame, [1, 2, 3]))\"
  turning_by_hand: \"cross(omega(frame), from(frame, [1, 2, 3]))\"
sensitivity: [k, mu, R, road_z]
";

/// A state away from every special case.
fn instant(model: &Interpreted) -> Instant {
    let dims = model.dims();
    let some = |i: usize, seed: f64| 0.1 * (1.7 * i as f64 + seed).sin();
    let mut z: Vec<f64> = model.start_state()[..dims.nq].to_vec();
    z.iter_mut().enumerate().for_each(|(i, z)| *z += some(i, 0.3));
    let v: Vec<f64> = (0..dims.nv).map(|i| 5.0 * some(i, 1.1)).collect();
    let mut zd = vec![0.0; dims.nq];
    euler_parameters::coordinate_rates(model, &z, &v, &mut zd).unwrap();
    let zdd = (0..dims.nq).map(|i| 9.0 * some(i, 2.2)).collect();
    Instant { t: 0.4, z, zd, zdd, u: Vec::new(), lambda: vec![0.0; dims.rows()] }
}

#[test]
fn derivatives_of_standard_elements() {
    let bundles = [
        &BundleKind::COORDINATE_FORM[..],
        &[BundleKind::Linearise, BundleKind::LineariseProjections, BundleKind::InverseDynamicsDerivatives],
    ];
    let model = with_bundles(ALL, None, bundles.concat());
    let checks = verify::verify(model.program(), &[instant(&model)]);
    assert!(checks.len() > 5);
    for check in checks {
        let (bundle, derivative, error) = (check.bundle, check.derivative, check.error);
        assert!(check.passed(), "{bundle}, {derivative}: {error:.1e} of {} by {}", check.of, check.by);
    }
}

#[test]
fn rates_of_expressions() {
    let model = with_bundles(ALL, None, vec![BundleKind::Outputs]);
    let at = instant(&model);
    let dims = model.dims();
    let mut v = vec![0.0; dims.nv];
    euler_parameters::velocities(&model, &at.z, &at.zd, &mut v).unwrap();
    let (mut w, mut outputs) = (vec![0.0; dims.workspace], vec![0.0; dims.n_outputs]);
    let instant = At { t: at.t, z: &at.z, v: &v, x: &[], u: &[] };
    model.outputs(instant, &vec![0.0; dims.nv], &mut w, &mut outputs).unwrap();
    for (name, tolerance) in
        [("climb", 1e-9), ("distance_rate", 1e-14), ("turning.x", 1e-14), ("turning.z", 1e-14)]
    {
        let (base, axis) = name.split_once('.').map_or((name, ""), |(base, _)| (base, &name[base.len()..]));
        let found = outputs[place(&model, Quantity::Output, name)];
        let expected = outputs[place(&model, Quantity::Output, &format!("{base}_by_hand{axis}"))];
        assert!((found - expected).abs() < tolerance, "{name}: {found} and {expected}");
        assert!(found != 0.0);
    }
}

/// Mirror images: the same corner on the other side feels the mirrored forces, nested elements and definitions included.
#[test]
fn nested_elements_are_mirrored() {
    let text = ALL.replace("softness: 0.9", "softness: 1").replace("softness: 1.1", "softness: 1");
    let model = with_bundles(&text, None, vec![BundleKind::InverseDynamics]);
    let dims = model.dims();
    // In the plane of symmetry, both corners alike.
    let mut y = model.start_state();
    for side in ["left", "right"] {
        for (joint, angle) in [("pivot", 0.35), ("axle", 0.2)] {
            y[super::coordinate(&model, &format!("{side}_{joint}.angle"))] = angle;
            let rate = place(&model, Quantity::Velocity, &format!("{side}_{joint}.angle_rate"));
            y[dims.nq + rate] = 10.0 * angle;
        }
    }
    y[dims.nq + place(&model, Quantity::Velocity, "ride.x_rate")] = 2.0;
    y[super::coordinate(&model, "ride.z")] = 0.2;
    let (mut w, mut tau) = (vec![0.0; dims.workspace], vec![0.0; dims.nv]);
    let at = At { t: 0.1, z: &y[..dims.nq], v: &y[dims.nq..], x: &[], u: &[] };
    model.inverse_dynamics(at, &vec![0.0; dims.nv], &mut w, &mut tau).unwrap();
    for joint in ["pivot", "axle"] {
        let [left, right] = ["left", "right"]
            .map(|side| tau[place(&model, Quantity::Velocity, &format!("{side}_{joint}.angle_rate"))]);
        assert!(left.abs() > 1.0 && (left - right).abs() < 1e-12 * left.abs(), "{joint}: {left} and {right}");
    }
}

/// A wheel at rest whose centre of mass is off the hub is turned by its weight alone: the load goes through the hub.
#[test]
fn the_load_of_a_tyre_goes_through_the_hub() {
    let text = "
mbs: 1
gravity: [0, 0, -9.81]
bodies:
  ground: {points: {hub: [0, 0, 0.295]}}
  wheel: {mass: 10, com: [0.05, 0, 0], inertia: [0.2, 0.4, 0.2]}
joints: {axle: {type: revolute, parent: ground.hub, child: wheel, axis: [0, 1, 0]}}
instances:
  tyre:
    element: tyre
    arguments: {wheel: wheel, hub: ground.hub, axle: [0, 1, 0], height: 0, radius: 0.3, stiffness: 1e5, damping: 0.1,
      smoothing: 1e-9, slip_x: 8, slip_y: 6, friction: 0.7, creep: 0.5}
";
    let model = with_bundles(text, None, vec![BundleKind::ForwardDynamics, BundleKind::Outputs]);
    let dims = model.dims();
    let y = model.start_state();
    let at = At { t: 0.0, z: &y[..dims.nq], v: &y[dims.nq..], x: &[], u: &[] };
    let (mut w, mut zd, mut vd) = (vec![0.0; dims.workspace], vec![0.0; dims.nq], vec![0.0; dims.nv]);
    model.forward_dynamics(at, &mut w, &mut zd, &mut vd, &mut []).unwrap();
    let mut outputs = vec![0.0; dims.n_outputs];
    model.outputs(at, &vd, &mut w, &mut outputs).unwrap();
    let load = outputs[place(&model, Quantity::Output, "tyre_load")];
    assert!((load - 500.0).abs() < 1e-6, "{load}");
    // m g e/(I + m e²)
    let expected = 10.0 * 9.81 * 0.05 / (0.4 + 10.0 * 0.05 * 0.05);
    assert!((vd[0] - expected).abs() < 1e-9 * expected, "{} instead of {expected}", vd[0]);
}
