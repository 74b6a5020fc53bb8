//! The N four-bar mechanism (IFToMM A02) against its exact reduction to one angle, up to and through its singular positions.

use mbs_runtime::Ali3p;
use mbs_tests::closed::{Outcome, model, run, said};
use mbs_tests::four_bar;

/// Angle and rate of the uprights, θdd = −g ((N+1)/2 + N)/((N+1)/3 + N) cos θ, by the classical Runge–Kutta method.
fn exact(windows: usize, end: f64) -> [f64; 2] {
    let n = windows as f64;
    let c = 9.81 * ((n + 1.0) / 2.0 + n) / ((n + 1.0) / 3.0 + n);
    let steps = (end / 1e-4).ceil() as usize;
    let h = end / steps as f64;
    let mut y = [std::f64::consts::FRAC_PI_2, -1.0];
    for _ in 0..steps {
        let f = |y: [f64; 2]| [y[1], -c * y[0].cos()];
        let at = |k: [f64; 2], s: f64| [y[0] + s * h * k[0], y[1] + s * h * k[1]];
        let k1 = f(y);
        let k2 = f(at(k1, 0.5));
        let k3 = f(at(k2, 0.5));
        let k4 = f(at(k3, 1.0));
        for i in 0..2 {
            y[i] += h / 6.0 * (k1[i] + 2.0 * k2[i] + 2.0 * k3[i] + k4[i]);
        }
    }
    y
}

/// Published positions of the first upper joint at 10 s.
#[test]
fn the_reduction_gives_the_published_positions() {
    for (windows, [x, y]) in [(2, [0.3284581115, 0.9445185382]), (40, [0.1805122267, 0.9835727406])] {
        let [theta, _] = exact(windows, 10.0);
        let error = (theta.cos() - x).hypot(theta.sin() - y);
        assert!(error < 1e-9, "N = {windows}: {error:e}");
    }
}

/// Position of the first upper joint.
fn top(outcome: &Outcome) -> [f64; 2] {
    [outcome.outputs[0], outcome.outputs[1]]
}

#[test]
fn explore() {
    for windows in [2, 4, 8, 40] {
        let clock = std::time::Instant::now();
        let mechanism = model(&four_bar::yaml(windows));
        println!("N = {windows}: made in {:?}", clock.elapsed());
        for h in [1e-2, 5e-3, 1e-3] {
            for end in [0.5, 10.0] {
                let clock = std::time::Instant::now();
                match run(&mechanism, Ali3p::DEFAULT, h, end, |_| ()) {
                    Ok(outcome) => {
                        let [theta, _] = exact(windows, end);
                        let [x, y] = top(&outcome);
                        let error = (theta.cos() - x).hypot(theta.sin() - y);
                        println!(
                            "  h {h} end {end}: error {error:.2e} drift {:.2e} violation {:?} {:?} {:?}",
                            outcome.energy_drift,
                            outcome.violation,
                            outcome.statistics,
                            clock.elapsed()
                        );
                    }
                    Err(error) => println!("  h {h} end {end}: {}", said(&mechanism, error)),
                }
            }
        }
        if windows > 8 {
            break;
        }
    }
}
