//! Andrews' squeezing mechanism against the reference solution of the test set for initial value problem solvers.

use mbs_runtime::{Ali3p, Fixed, Index1, Rk4, System};
use mbs_tests::closed::{Outcome, coordinate, distance, reference, run, run_explicit, shipped};

const NAMES: [&str; 7] = ["beta", "Theta", "gamma", "Phi", "delta", "Omega", "epsilon"];
/// Mazzia, Magherini, Test set for initial value problem solvers, II-18: the consistent start,
const START: [f64; 7] = [
    -0.0617138900142764,
    0.0,
    0.455279819163070,
    0.222668390165886,
    0.487364979543843,
    -0.222668390165886,
    1.23054744454982,
];
/// and the angles at 0.03 s.
const END: [f64; 7] = [
    15.81077119629904,
    -15.75637105984298,
    0.04082224013073101,
    -0.5347301163226948,
    0.5244099658805304,
    0.5347301163226948,
    1.048080741042263,
];
const T: f64 = 0.03;

/// The six loop equations of the test set.
fn loops([beta, theta, gamma, phi, delta, omega, epsilon]: [f64; 7]) -> [f64; 6] {
    let (rr, d, ss, e, zt, zf, u) = (0.007, 0.028, 0.035, 0.02, 0.04, 0.02, 0.04);
    let ((xa, ya), (xb, yb)) = ((-0.06934, -0.00227), (-0.03635, 0.03273));
    let p = [rr * beta.cos() - d * (beta + theta).cos(), rr * beta.sin() - d * (beta + theta).sin()];
    [
        p[0] - ss * gamma.sin() - xb,
        p[1] + ss * gamma.cos() - yb,
        p[0] - e * (phi + delta).sin() - zt * delta.cos() - xa,
        p[1] + e * (phi + delta).cos() - zt * delta.sin() - ya,
        p[0] - zf * (omega + epsilon).cos() - u * epsilon.sin() - xa,
        p[1] - zf * (omega + epsilon).sin() + u * epsilon.cos() - ya,
    ]
}

/// The angles in the order of the test set.
fn angles(places: &[usize], outcome: &Outcome) -> [f64; 7] {
    std::array::from_fn(|i| outcome.z[places[i]])
}

/// Largest relative error of an angle.
fn error(angles: [f64; 7], exact: [f64; 7]) -> f64 {
    angles.iter().zip(exact).map(|(a, e)| ((a - e) / e).abs()).fold(0.0, f64::max)
}

#[test]
fn the_published_angles_close_the_loops() {
    for (angles, rounding) in [(START, 1e-15), (END, 1e-15)] {
        let left = loops(angles);
        assert!(distance(&left, &[0.0; 6]) < rounding, "{left:?}");
    }
}

#[test]
fn the_published_angles_are_reached() {
    let model = shipped("andrews");
    let places = NAMES.map(|name| coordinate(&model, &format!("{name}.angle")));
    assert_eq!(model.dims().n_holonomic, 6);

    // Explicit, as exactly as double precision allows. The published digits end at about 1e−10.
    let tight = reference(&model, T);
    let exact = angles(&places, &tight);
    println!("index 1, Dormand–Prince 1e-13: relative error {:.1e}", error(exact, END));
    assert!(error(exact, END) < 1e-9);
    assert!(tight.violation[0] < 1e-15 && tight.violation[1] < 1e-12, "{:?}", tight.violation);

    let rk4 = |h| run_explicit(&model, &Fixed { method: Rk4, h }, Index1::new(&model), true, T).unwrap();
    let errors = [1e-5, 5e-6].map(|h| error(angles(&places, &rk4(h)), exact));
    println!("index 1, Runge–Kutta: {errors:?}");
    assert!(errors[0] < 1e-9 && errors[1] < errors[0] / 12.0);

    // The augmented Lagrangian formulation: order 2 in positions, velocities, accelerations and multipliers.
    println!("ALI3-P\n       h    angles  velocities  accelerations  multipliers    energy  iterations");
    let mut before: Option<[f64; 4]> = None;
    for h in [8e-6, 4e-6, 2e-6] {
        let run = run(&model, Ali3p::DEFAULT, h, T, |_| ()).unwrap();
        let errors = [
            distance(&run.z, &tight.z),
            distance(&run.zd, &tight.zd),
            distance(&run.zdd, &tight.zdd),
            distance(&run.lambda, &tight.lambda),
        ];
        let [z, zd, zdd, lambda] = errors;
        let steps = run.statistics.steps as f64;
        println!(
            "{h:8.0e}  {z:.2e}    {zd:.2e}       {zdd:.2e}     {lambda:.2e}  {:.2e}        {:.2}",
            run.energy_drift,
            run.statistics.iterations as f64 / steps
        );
        if let Some(before) = before {
            for (before, now) in before.iter().zip(errors) {
                let order = (before / now).log2();
                assert!((order - 2.0).abs() < 0.1, "order {order}");
            }
        }
        before = Some(errors);
        // Positions of some centimetres; rates of some 1e3/s; accelerations of some 1e6/s² times lengths of 1e−2 m.
        assert!(run.violation[0] < 1e-15 && run.violation[1] < 1e-11 && run.violation[2] < 1e-9);
        if h == 2e-6 {
            let error = error(angles(&places, &run), END);
            println!("relative error against the published angles {error:.1e}");
            assert!(error < 1e-6);
        }
    }
}
