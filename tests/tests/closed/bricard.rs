//! Bricard's mechanism (IFToMM A04): constraints that depend on each other everywhere.

use mbs_runtime::Ali3p;
use mbs_tests::closed::{distance, reference, run, shipped, start};

#[test]
fn the_closure_equations_depend_on_each_other() {
    let model = shipped("bricard");
    let (_, found) = start(&model, 0.0).unwrap();
    assert_eq!((found.rows, found.rank), (5, 4));
}

#[test]
fn energy_and_constraints_are_kept_over_ten_seconds() {
    let model = shipped("bricard");
    let exact = reference(&model, 1.3);
    println!("    h   positions  velocities    energy  constraints  iterations");
    let mut before = None;
    for h in [4e-3, 2e-3, 1e-3] {
        let short = run(&model, Ali3p::DEFAULT, h, 1.3, |_| ()).unwrap();
        let errors =
            [distance(&short.z, &exact.z), distance(&short.zd, &exact.zd), distance(&short.zdd, &exact.zdd)];
        let long = run(&model, Ali3p::DEFAULT, h, 10.0, |_| ()).unwrap();
        let drift = long.energy_drift / long.kinetic;
        let left = long.violation.into_iter().fold(0.0, f64::max);
        println!(
            "{h:5.0e}    {:.2e}    {:.2e}  {drift:.2e}     {left:.2e}        {:.2}",
            errors[0],
            errors[1],
            long.statistics.iterations as f64 / long.statistics.steps as f64
        );
        if let Some((before, drift_before)) = before {
            let before: [f64; 3] = before;
            for (before, now) in before.iter().zip(errors) {
                let order = (before / now).log2();
                assert!((order - 2.0).abs() < 0.1, "order {order}");
            }
            let drift_before: f64 = drift_before;
            assert!(((drift_before / drift).log2() - 2.0).abs() < 0.2);
        }
        before = Some((errors, drift));
        assert!(left < 1e-12, "{:?}", long.violation);
        assert_eq!(long.statistics.fallbacks, 0);
        if h == 1e-3 {
            assert!(drift < 1e-6, "{drift:e}");
        }
    }
}

/// Only the forces of the multipliers are determined. Both forms choose those of least norm.
#[test]
fn multipliers_are_those_of_least_norm() {
    let model = shipped("bricard");
    let exact = reference(&model, 1.3);
    let run = run(&model, Ali3p::DEFAULT, 5e-4, 1.3, |_| ()).unwrap();
    let apart = distance(&run.lambda, &exact.lambda);
    println!("{:?} and {:?}: {apart:.1e}", run.lambda, exact.lambda);
    // The error of accelerations is 1.5e−7; forces are some 10 N.
    assert!(apart < 1e-5, "{apart:e}");
}

/// One degree of freedom without friction: after a full swing it is back at rest where it began.
#[test]
fn it_swings_back_to_its_start() {
    let model = shipped("bricard");
    let (mut nearest, mut at) = (f64::INFINITY, 0.0);
    run(&model, Ali3p::DEFAULT, 1e-3, 10.0, |node| {
        // Angles up to full turns.
        let turn = |z: &f64| (z - std::f64::consts::TAU * (z / std::f64::consts::TAU).round()).abs();
        let far = node.motion.z.iter().map(turn).fold(0.0, f64::max);
        let speed = node.motion.zd.iter().fold(0.0, |s: f64, zd| s.max(zd.abs()));
        if node.motion.t > 0.5 && far.max(speed) < nearest {
            (nearest, at) = (far.max(speed), node.motion.t);
        }
    })
    .unwrap();
    println!("back at t = {at}, {nearest:e} away");
    // A node is at most half a step off the instant of return, where rates change by some 15/s².
    assert!(nearest < 7.5e-3, "{nearest:e}");
}
