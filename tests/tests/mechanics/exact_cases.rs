//! Mechanisms whose motion is known exactly, or by equations derived here by hand.

use core::ops::ControlFlow;
use mbs_codegen::program::{Options, Program};
use mbs_engine::Interpreted;
use mbs_runtime::inputs::NoInputs;
use mbs_runtime::{Adaptive, At, Fixed, ForwardDynamics, Integrator, Output, Outputs, Rk4, Span, System};
use mbs_tests::random_model::Random;

fn model(text: &str) -> Interpreted {
    let (model, _) =
        mbs_codegen::read("case.yaml", text).unwrap_or_else(|d| panic!("{}", d.render("case.yaml", text)));
    Interpreted::new(Program::new(&model, None, &Options::default()).expect("a program of moderate size"))
}

fn acceleration(model: &Interpreted, z: &[f64], v: &[f64]) -> Vec<f64> {
    let d = model.dims();
    let (mut w, mut zd, mut vd) = (vec![0.0; d.workspace], vec![0.0; d.nq], vec![0.0; d.nv]);
    let at = At { t: 0.0, z, v, x: &[], u: &[] };
    model.forward_dynamics(at, &mut w, &mut zd, &mut vd, &mut []).expect("regular");
    vd
}

/// Runs and calls back with (t, z, v, outputs).
fn simulate(
    model: &Interpreted,
    integrator: &impl Integrator,
    end: f64,
    output: Output,
    mut observe: impl FnMut(f64, &[f64], &[f64], &[f64]),
) {
    let d = model.dims();
    let mut y = model.start_state();
    let mut scratch = vec![0.0; integrator.scratch_len(&d)];
    let (mut w, vd, mut outputs) = (vec![0.0; d.workspace], vec![0.0; d.nv], vec![0.0; d.n_outputs]);
    let span = Span { start: 0.0, end, output };
    integrator
        .run(model, &mut NoInputs, &mut y, &span, &mut scratch, |at| {
            model.outputs(at, &vd, &mut w, &mut outputs).expect("lengths");
            observe(at.t, at.z, at.v, &outputs);
            ControlFlow::Continue(())
        })
        .expect("the run succeeds");
}

/// K(k) by the arithmetic-geometric mean.
fn elliptic_k(k: f64) -> f64 {
    let (mut a, mut b) = (1.0, (1.0 - k * k).sqrt());
    while (a - b).abs() > 1e-16 {
        (a, b) = (0.5 * (a + b), (a * b).sqrt());
    }
    std::f64::consts::FRAC_PI_2 / a
}

/// A rod of length L swings like a point at 2L/3: period 4 √(2L/3g) K(sin θ₀/2).
#[test]
fn pendulum_returns_after_the_elliptic_period() {
    let pendulum = model(include_str!("../../../models/pendulum.yaml"));
    let start = pendulum.start_state()[0];
    let length = pendulum.parameter("L").expect("a parameter");
    let period = 4.0 * (2.0 * length / (3.0 * 9.81)).sqrt() * elliptic_k((start / 2.0).sin());
    // Errors measured at half the step fall by 2⁴.
    let error_at = |h: f64| {
        let mut last = (0.0, 0.0);
        let steps = (period / h).round();
        simulate(
            &pendulum,
            &Fixed { method: Rk4, h: period / steps },
            period,
            Output::Steps,
            |_, z, v, _| {
                last = (z[0], v[0]);
            },
        );
        // Speed tells the phase: v ≈ acceleration · (time too late).
        last.1.abs() + (last.0 - start).abs()
    };
    let (coarse, fine) = (error_at(2e-2), error_at(1e-2));
    assert!(fine < 1e-6, "{fine:e}");
    let order = (coarse / fine).log2();
    assert!((3.8..5.2).contains(&order), "order {order}: {coarse:e} {fine:e}");
    // A tight tolerance reaches the exact period.
    let mut last = 0.0;
    simulate(&pendulum, &Adaptive::new(1e-13, 1e-13), period, Output::Every(period), |_, _, v, _| {
        last = v[0]
    });
    assert!(last.abs() < 1e-10, "{last:e}");
}

/// Euler's top tumbles 1000 turns: energy and the momentum vector stay, to the integrator's order.
#[test]
fn torque_free_top_keeps_energy_and_momentum() {
    let text = "
mbs: 1
name: top
parameters: {J1: 0.02, J2: 0.03, J3: 0.04}
bodies:
  body: {mass: 2, inertia: [J1, J2, J3]}
joints:
  free: {type: spherical, parent: ground, child: body, start: {orientation: [1, 0, 0, 0], angular_velocity: [0.5, 6, 1]}}
outputs:
  momentum: 'from(body, [J1*free.wx, J2*free.wy, J3*free.wz])'
  energy: (J1*free.wx^2 + J2*free.wy^2 + J3*free.wz^2)/2
";
    let top = model(text);
    let turns = 1000.0 * 2.0 * std::f64::consts::PI / 6.0;
    let drift_at = |h: f64| {
        let (mut first, mut drift) = (None, 0.0f64);
        let steps = (turns / h).round();
        simulate(&top, &Fixed { method: Rk4, h: turns / steps }, turns, Output::Steps, |_, _, _, o| {
            let now: Vec<f64> = o.to_vec();
            let start = first.get_or_insert_with(|| now.clone());
            let size = start[..3].iter().map(|x| x * x).sum::<f64>().sqrt();
            for i in 0..3 {
                drift = drift.max((now[i] - start[i]).abs() / size);
            }
            drift = drift.max((now[3] - start[3]).abs() / start[3]);
        });
        drift
    };
    let (coarse, fine) = (drift_at(8e-3), drift_at(4e-3));
    assert!(fine < 1e-4, "{fine:e}");
    // Order 4 at least; the secular drift of energy is one order better.
    let order = (coarse / fine).log2();
    assert!((3.7..5.5).contains(&order), "order {order}: {coarse:e} {fine:e}");
}

/// Steady precession at a tilt θ: A' Ω² cos θ − C ω Ω + m g h = 0 with A' = A + m h² about the point and
/// ω the whole spin about the axis. The tilt stays and the axis turns by Ω t.
#[test]
fn heavy_top_precesses_steadily() {
    let (m, h, a, c, g, tilt, omega) = (0.5, 0.1, 4e-4, 6e-4, 9.81, 0.7_f64, 400.0);
    let about = a + m * h * h;
    let (p, q, r) = (about * tilt.cos(), -c * omega, m * g * h);
    let slow = (-q - (q * q - 4.0 * p * r).sqrt()) / (2.0 * p);
    // In the child frame, precession Ω about the vertical: e_z = (0, sin θ, cos θ) for a tilt about x.
    let text = format!(
        "
mbs: 1
name: top
gravity: [0, 0, -{g}]
bodies:
  top: {{mass: {m}, com: [0, 0, {h}], inertia: [{a}, {a}, {c}], vectors: {{axis: [0, 0, 1]}}}}
joints:
  pivot:
    type: spherical
    parent: ground
    child: top
    start: {{orientation: [cos({tilt}/2), sin({tilt}/2), 0, 0], angular_velocity: [0, {:.17e}, {omega}]}}
outputs:
  axis: dir(top.axis)
",
        slow * tilt.sin()
    );
    let top = model(&text);
    simulate(&top, &Adaptive::new(1e-12, 1e-14), 2.0, Output::Every(0.1), |t, _, _, axis| {
        // The axis starts at (0, −sin θ, cos θ) and turns about z by Ω t.
        let expected = [tilt.sin() * (slow * t).sin(), -tilt.sin() * (slow * t).cos(), tilt.cos()];
        for i in 0..3 {
            assert!((axis[i] - expected[i]).abs() < 1e-8, "t = {t}: {axis:?} for {expected:?}");
        }
    });
}

/// Two point masses on massless rods, angles from the vertical, by the textbook's Lagrangian.
#[test]
fn double_pendulum_equals_its_closed_form() {
    let (m1, m2, l1, l2, g) = (1.3, 0.7, 0.9, 0.6, 9.81);
    let text = format!(
        "
mbs: 1
name: double
gravity: [0, -{g}, 0]
parameters: {{m1: {m1}, m2: {m2}, L1: {l1}, L2: {l2}}}
bodies:
  upper: {{mass: m1, com: [0, -L1, 0], points: {{elbow: [0, -L1, 0]}}}}
  lower: {{mass: m2, com: [0, -L2, 0]}}
joints:
  shoulder: {{type: revolute, parent: ground, child: upper, axis: [0, 0, 1]}}
  elbow: {{type: revolute, parent: upper.elbow, child: lower, axis: [0, 0, 1], start: 1}}
"
    );
    let double = model(&text);
    let mut r = Random::new(5);
    for _ in 0..200 {
        let z = [r.uniform(-3.0, 3.0), r.uniform(-3.0, 3.0)];
        let v = [r.uniform(-4.0, 4.0), r.uniform(-4.0, 4.0)];
        let vd = acceleration(&double, &z, &v);
        // absolute angles t1, t2 from the vertical
        let (t1, t2, w1, w2) = (z[0], z[0] + z[1], v[0], v[0] + v[1]);
        let (s, c) = (t1 - t2).sin_cos();
        // (m1+m2) l1 a1 + m2 l2 a2 cos + m2 l2 w2² sin + (m1+m2) g sin t1 = 0
        // l2 a2 + l1 a1 cos − l1 w1² sin + g sin t2 = 0
        let (a11, a12, b1) = ((m1 + m2) * l1, m2 * l2 * c, -m2 * l2 * w2 * w2 * s - (m1 + m2) * g * t1.sin());
        let (a21, a22, b2) = (l1 * c, l2, l1 * w1 * w1 * s - g * t2.sin());
        let det = a11 * a22 - a12 * a21;
        let (x1, x2) = ((b1 * a22 - a12 * b2) / det, (a11 * b2 - a21 * b1) / det);
        let expected = [x1, x2 - x1];
        let largest = expected.iter().chain(&vd).fold(0.0f64, |m, x| m.max(x.abs()));
        // Condition of the 2×2 matrix is below 50 here.
        for i in 0..2 {
            assert!((vd[i] - expected[i]).abs() < 1e-13 * 50.0 * largest, "{vd:?} {expected:?}");
        }
    }
}

/// A plate sliding on a plane: with (x, y) the joint point, θ its angle, c the distance of the centre of
/// mass ahead of it, under gravity (g_x, g_y) in the plane and a spring torque −k θ:
/// m (ẍ − c θ̈ sin θ − c θ̇² cos θ) = m g_x, m (ÿ + c θ̈ cos θ − c θ̇² sin θ) = m g_y,
/// (J + m c²) θ̈ + m c (ÿ cos θ − ẍ sin θ) = m c (g_y cos θ − g_x sin θ) − k θ.
#[test]
fn planar_joint_equals_its_hand_derived_equations() {
    let (m, c, j, gx, gy, k) = (1.7, 0.4, 0.3, 1.1, -2.3, 0.9);
    let text = format!(
        "
mbs: 1
name: plate
gravity: [{gx}, {gy}, -9.81]
bodies:
  plate: {{mass: {m}, com: [{c}, 0, 0], inertia: [0.2, 0.25, {j}, 0.01, 0.02, -0.03]}}
joints:
  slide: {{type: planar, parent: ground, child: plate, axis: [0, 0, 1], reference: [1, 0, 0]}}
forces:
  coil: {{type: torsional_spring, coordinate: slide.angle, stiffness: {k}}}
"
    );
    let plate = model(&text);
    let mut r = Random::new(9);
    for _ in 0..100 {
        let z: Vec<f64> = (0..3).map(|_| r.uniform(-3.0, 3.0)).collect();
        let v: Vec<f64> = (0..3).map(|_| r.uniform(-3.0, 3.0)).collect();
        let vd = acceleration(&plate, &z, &v);
        let (s, cos) = z[2].sin_cos();
        let w = v[2];
        let residual = [
            m * (vd[0] - c * vd[2] * s - c * w * w * cos - gx),
            m * (vd[1] + c * vd[2] * cos - c * w * w * s - gy),
            (j + m * c * c) * vd[2] + m * c * (vd[1] * cos - vd[0] * s) - m * c * (gy * cos - gx * s)
                + k * z[2],
        ];
        for x in residual {
            assert!(x.abs() < 1e-13 * 50.0, "{residual:?}");
        }
    }
}

/// A body on a cylinder along z, its centre of mass at distance ρ from the axis, gravity (g_x, 0, g_z):
/// m z̈ = m g_z − k z, (J_zz + m ρ²) θ̈ = −m g_x ρ sin θ. Products of inertia load the bearing, not the motion.
#[test]
fn cylindrical_joint_equals_its_hand_derived_equations() {
    let (m, rho, j, gx, gz, k) = (2.3, 0.35, 0.12, 3.0, -9.81, 40.0);
    let text = format!(
        "
mbs: 1
name: sleeve
gravity: [{gx}, 0, {gz}]
bodies:
  sleeve: {{mass: {m}, com: [{rho}, 0, 0.2], inertia: [0.2, 0.25, {j}, 0.01, 0.02, -0.03]}}
joints:
  rail: {{type: cylindrical, parent: ground, child: sleeve, axis: [0, 0, 1]}}
forces:
  coil: {{type: torsional_spring, coordinate: rail.displacement, stiffness: {k}}}
"
    );
    let sleeve = model(&text);
    let mut r = Random::new(11);
    for _ in 0..100 {
        let z: Vec<f64> = (0..2).map(|_| r.uniform(-3.0, 3.0)).collect();
        let v: Vec<f64> = (0..2).map(|_| r.uniform(-3.0, 3.0)).collect();
        let vd = acceleration(&sleeve, &z, &v);
        let along = gz - k * z[0] / m;
        let about = -m * gx * rho * z[1].sin() / (j + m * rho * rho);
        assert!((vd[0] - along).abs() < 1e-14 * 100.0, "{} {along}", vd[0]);
        assert!((vd[1] - about).abs() < 1e-14 * 100.0, "{} {about}", vd[1]);
    }
}
