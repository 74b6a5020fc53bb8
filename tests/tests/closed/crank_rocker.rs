//! A driven four-bar linkage against Freudenstein's equation: positions, velocities, accelerations; and the torque of its drive.

use mbs_runtime::{Ali3p, Assembly, At, Energy, State, System};
use mbs_tests::closed::{coordinate, guess, reference, run, said, shipped};

const A: f64 = 0.1;
const B: f64 = 0.35;
const C: f64 = 0.3;
const D: f64 = 0.4;

/// The crank's angle, speed and acceleration.
fn drive(t: f64) -> [f64; 3] {
    let speed = std::f64::consts::TAU;
    [speed * t + 0.2 * (3.0 * t).sin(), speed + 0.6 * (3.0 * t).cos(), -1.8 * (3.0 * t).sin()]
}

/// Angles of coupler and rocker with their first two rates, from k1 cos θ4 − k2 cos θ2 + k3 = cos(θ2 − θ4) [Freudenstein]
/// and the time derivatives of a e^{iθ2} + b e^{iθ3} = d + c e^{iθ4}.
fn exact(t: f64) -> [[f64; 2]; 3] {
    let [q, w, e] = drive(t);
    let (k1, k2, k3) = (D / A, D / C, (A * A - B * B + C * C + D * D) / (2.0 * A * C));
    // With x = tan(θ4/2): p x² + r x + s = 0. The open branch has the rocker above the line of the pivots.
    let (p, r, s) = (q.cos() - k1 - k2 * q.cos() + k3, -2.0 * q.sin(), k1 - (k2 + 1.0) * q.cos() + k3);
    let rocker = 2.0 * ((-r - (r * r - 4.0 * p * s).sqrt()) / (2.0 * p)).atan();
    let coupler = (C * rocker.sin() - A * q.sin()).atan2(D + C * rocker.cos() - A * q.cos());
    // Velocities: b e^{iθ3} iω3 − c e^{iθ4} iω4 = −a e^{iθ2} iω2; across e^{iθ4} and e^{iθ3}.
    let far = (coupler - rocker).sin();
    let w3 = -A * w * (q - rocker).sin() / (B * far);
    let w4 = -A * w * (q - coupler).sin() / (C * far);
    // Accelerations: the same with the centripetal parts.
    let e3 = (-A * e * (q - rocker).sin()
        - A * w * w * (q - rocker).cos()
        - B * w3 * w3 * (coupler - rocker).cos()
        + C * w4 * w4)
        / (B * far);
    let e4 = (-A * e * (q - coupler).sin() - A * w * w * (q - coupler).cos() - B * w3 * w3
        + C * w4 * w4 * (rocker - coupler).cos())
        / (C * far);
    [[coupler, rocker], [w3, w4], [e3, e4]]
}

/// How far angle, rate and acceleration are from the exact ones.
fn errors(t: f64, places: [usize; 3], levels: [&[f64]; 3]) -> [f64; 3] {
    let (drive, exact) = (drive(t), exact(t));
    let [o, p, q] = places;
    std::array::from_fn(|level| {
        let values = levels[level];
        let mut coupler = values[o] + values[p] - exact[level][0];
        if level == 0 {
            // Angles up to full turns.
            coupler =
                (coupler + std::f64::consts::PI).rem_euclid(std::f64::consts::TAU) - std::f64::consts::PI;
        }
        (values[o] - drive[level]).abs().max(coupler.abs()).max((values[q] - exact[level][1]).abs())
    })
}

#[test]
fn kinematics_follow_freudensteins_equation() {
    let model = shipped("crank_rocker");
    let dims = model.dims();
    let places = ["O", "P", "Q"].map(|name| coordinate(&model, &format!("{name}.angle")));
    let mut state = guess(&model, 0.0);
    let mut scratch = vec![0.0; Assembly::scratch_len(&dims)];
    let mut worst = [0.0f64; 3];
    for step in 0..=200 {
        let t = 0.01 * step as f64;
        *State::of(&dims, &mut state).unwrap().t = t;
        let found = Assembly::DEFAULT.driven(&model, &mut model.input_signals(), &mut state, &mut scratch);
        found.unwrap_or_else(|error| panic!("{}", said(&model, error)));
        let view = State::of(&dims, &mut state).unwrap();
        let errors = errors(t, places, [view.z, view.zd, view.zdd]);
        for (worst, error) in worst.iter_mut().zip(errors) {
            *worst = worst.max(error);
        }
    }
    println!("{worst:?}");
    // Rounding of angles of 13 rad, of rates of some 10/s, of accelerations of some 100/s².
    assert!(worst[0] < 1e-13 && worst[1] < 1e-12 && worst[2] < 1e-11, "{worst:?}");
}

/// Dynamics move as kinematics: there is no freedom to do otherwise. The drive's torque brings the power that energy takes.
#[test]
fn dynamics_follow_the_drive() {
    let model = shipped("crank_rocker");
    let dims = model.dims();
    let places = ["O", "P", "Q"].map(|name| coordinate(&model, &format!("{name}.angle")));
    let motor = dims.n_holonomic - 1;
    let exact = reference(&model, 2.0);
    let mut before: Option<[f64; 2]> = None;
    for h in [4e-3, 2e-3, 1e-3] {
        let mut worst = [0.0f64; 3];
        let run = run(&model, Ali3p::DEFAULT, h, 2.0, |node| {
            let m = node.motion;
            let errors = errors(m.t, places, [m.z, m.zd, m.zdd]);
            for (worst, error) in worst.iter_mut().zip(errors) {
                *worst = worst.max(error);
            }
        })
        .unwrap();
        let torque = (run.lambda[motor] - exact.lambda[motor]).abs();
        println!("h = {h:.0e}: {worst:?}, torque {torque:.2e}, energy {:.2e}", run.energy_drift);
        assert!(worst[0] < 1e-12 && worst[1] < 1e-11 && worst[2] < 1e-10, "{worst:?}");
        let now = [torque, run.energy_drift];
        if let Some(before) = before {
            for (before, now) in before.iter().zip(now) {
                let order = (before / now).log2();
                assert!((order - 2.0).abs() < 0.1, "order {order}");
            }
        }
        before = Some(now);
    }
    // The energy of the exact motion at the end, from its own numbers.
    let at = At { t: 2.0, z: &exact.z, v: &exact.zd, x: &[], u: &[] };
    let mut energy = [0.0; 3];
    model.energy(at, &mut vec![0.0; dims.workspace], &mut energy).unwrap();
    assert_eq!(energy[2], 0.0, "no force but the drive does work");
}
