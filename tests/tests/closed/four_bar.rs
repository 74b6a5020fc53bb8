//! The N four-bar mechanism (IFToMM A02) against its exact reduction to one angle, up to and through its singular positions.
//!
//! Where the bars lie flat, parallelograms could also become antiparallelograms. The forces that keep the uprights together grow as 1/s
//! towards that position, s the sine of their angle.

use mbs_engine::Interpreted;
use mbs_runtime::{Ali3p, EvalError, Fixed, Rk4, StepError};
use mbs_tests::closed::{Outcome, coordinate, long_runs, model, run, run_independent, said};
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

#[test]
fn the_reduction_gives_the_published_positions() {
    // Of the first upper joint at 10 s.
    for (windows, [x, y]) in [(2, [0.3284581115, 0.9445185382]), (40, [0.1805122267, 0.9835727406])] {
        let [theta, _] = exact(windows, 10.0);
        let error = (theta.cos() - x).hypot(theta.sin() - y);
        assert!(error < 1e-9, "N = {windows}: {error:e}");
    }
}

#[test]
fn the_shipped_model_is_fresh() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/four_bar_2.yaml");
    if std::env::var_os("MBS_UPDATE").is_some() {
        std::fs::write(path, four_bar::yaml(2)).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path).unwrap(), four_bar::yaml(2), "MBS_UPDATE=1 writes it anew");
}

/// Distance of the first upper joint from where it should be.
fn error(windows: usize, end: f64, outcome: &Outcome) -> f64 {
    let [theta, _] = exact(windows, end);
    (theta.cos() - outcome.outputs[0]).hypot(theta.sin() - outcome.outputs[1])
}

/// How far the uprights are from being parallel: zero on the branch of parallelograms.
fn apart(feet: &[usize], z: &[f64]) -> f64 {
    let turn = |z: f64| (z - std::f64::consts::TAU * (z / std::f64::consts::TAU).round()).abs();
    feet.iter().map(|&foot| turn(z[foot] - z[feet[0]])).fold(0.0, f64::max)
}

/// A run to `end` that must stay on the branch of parallelograms.
fn passage(mechanism: &Interpreted, h: f64, end: f64) -> Result<(Outcome, f64), StepError> {
    let coordinates = mechanism.program().coordinates.iter().enumerate();
    let feet: Vec<usize> = coordinates.filter(|(_, name)| name.contains("foot")).map(|(i, _)| i).collect();
    let mut worst: f64 = 0.0;
    let outcome =
        run(mechanism, Ali3p::DEFAULT, h, end, |node| worst = worst.max(apart(&feet, node.motion.z)))?;
    Ok((outcome, worst))
}

#[test]
fn order_two_up_to_the_first_singular_position() {
    for windows in [1, 2, 5] {
        let mechanism = model(&four_bar::yaml(windows));
        // Of the order of 0.7 s, when the bars are 0.05 rad from flat.
        let mut end = 0.5;
        while exact(windows, end + 0.01)[0] > 0.05 {
            end += 0.01;
        }
        println!("N = {windows}, to t = {end:.2} s\n    h   position    energy  constraints");
        let mut before: Option<f64> = None;
        for h in [1e-2, 1e-3, 1e-4] {
            let (outcome, apart) = passage(&mechanism, h, end).unwrap();
            let error = error(windows, end, &outcome);
            let left = outcome.violation.into_iter().fold(0.0, f64::max);
            println!("{h:5.0e}   {error:.2e}  {:.2e}     {left:.1e}", outcome.energy_drift);
            assert!(apart < 1e-10, "{apart:e}");
            assert!(left < 1e-10, "{:?}", outcome.violation);
            if let Some(before) = before {
                let order = (before / error).log10();
                assert!((order - 2.0).abs() < 0.05, "order {order}");
            }
            before = Some(error);
        }
        // 1e−6 at a tenth of a millisecond, just before the singular position.
        assert!(before.is_some_and(|error| error < 1e-6));
    }
}

/// Ten seconds lead through eight singular positions.
#[test]
fn singular_positions_are_passed() {
    let mut table =
        vec![(2, vec![1e-2, 5e-3, 2e-3, 1e-3, 5e-4, 2e-4, 1e-4]), (5, vec![1e-2, 2e-3]), (40, vec![1e-2])];
    if long_runs() {
        table = vec![
            (2, vec![1e-2, 1e-3, 1e-4, 1e-5]),
            (5, vec![1e-2, 1e-3, 1e-4]),
            (40, vec![1e-2, 5e-3, 2e-3, 1e-3, 5e-4, 2e-4]),
        ];
    }
    for (windows, steps) in table {
        let mechanism = model(&four_bar::yaml(windows));
        println!("N = {windows}\n    h   position    energy   Φ        Φd       Φdd      iterations (most)");
        for h in steps {
            let (outcome, apart) = passage(&mechanism, h, 10.0)
                .unwrap_or_else(|e| panic!("N = {windows}: {}", said(&mechanism, e)));
            let (error, drift) = (error(windows, 10.0, &outcome), outcome.energy_drift / outcome.kinetic);
            let [phi, phid, phidd] = outcome.violation;
            let statistics = outcome.statistics;
            println!(
                "{h:5.0e}   {error:.2e}  {drift:.2e}  {phi:.1e}  {phid:.1e}  {phidd:.1e}  {:.2} ({})",
                statistics.iterations as f64 / statistics.steps as f64,
                statistics.max_iterations
            );
            // It never leaves the branch: antiparallelograms are radians away between the singular positions.
            assert!(apart < 1e-6, "N = {windows}, h = {h}: {apart:e}");
            // The passages take nothing from the order; what rounding does in them is below 1e−7.
            let expected = 2.0 * (h / 1e-2_f64).powi(2);
            assert!(error < expected * 2e-4 + 1e-8, "N = {windows}, h = {h}: {error:e}");
            assert!(drift < expected * 5e-4 + 1e-8, "N = {windows}, h = {h}: {drift:e}");
            assert!(phi < 1e-12, "{phi:e}");
        }
    }
}

/// Independent coordinates do not determine the way through a bifurcation: the run ends there by name, whatever its steps, and up to there it is the exact one.
#[test]
fn independent_coordinates_end_at_the_singular_position() {
    let (windows, mechanism) = (2, model(&four_bar::yaml(2)));
    let mut flat = 0.5;
    while exact(windows, flat)[0] > 0.0 {
        flat += 0.001;
    }
    for h in [1e-2, 3e-3, 1.1e-3] {
        let method = Fixed { method: Rk4, h };
        let found = run_independent(&mechanism, &method, 1.5).map(|_| ());
        let Err(StepError::Eval { t, error: EvalError::Independent { .. }, .. }) = found else {
            panic!("{h}: {found:?}")
        };
        assert!(t < flat && t > flat - 6.0 * h - 2e-3, "{h}: {t} {flat}");
        let said = said(&mechanism, found.unwrap_err());
        assert!(said.contains("ali3p") && said.contains("t = 0."), "{said}");
        let end = flat - 8.0 * h;
        let error = error(windows, end, &run_independent(&mechanism, &method, end).unwrap().0);
        assert!(error < 1e-4, "{h}: {error:e}");
    }
}

/// Steps of all sizes, so that nodes fall at all distances from the singular positions.
#[test]
fn no_step_fails_to_pass() {
    let count = if long_runs() { 100 } else { 12 };
    for windows in [1, 2, 3, 7] {
        let mechanism = model(&four_bar::yaml(windows));
        let (mut worst, mut most) = (0.0, 0);
        for k in 0..count {
            let h = 1e-3 * 12f64.powf((k as f64 + 0.5) / count as f64);
            let (outcome, apart) = passage(&mechanism, h, 10.0)
                .unwrap_or_else(|error| panic!("N = {windows}, h = {h}: {}", said(&mechanism, error)));
            // In units of the error that order 2 allows.
            let error = error(windows, 10.0, &outcome) / (h / 1e-2).powi(2);
            assert!(apart < 1e-5, "N = {windows}, h = {h}: {apart:e}");
            worst = f64::max(worst, error);
            most = most.max(outcome.statistics.max_iterations);
        }
        println!("N = {windows}: error at most {worst:.2e} (h/10 ms)², at most {most} iterations");
        assert!(worst < 3e-4, "N = {windows}: {worst:e}");
    }
}

/// The step is chosen so that a node meets the singular position as closely as rounding allows.
#[test]
fn a_node_on_the_singular_position() {
    let mechanism = model(&four_bar::yaml(2));
    let foot = coordinate(&mechanism, "foot.angle");
    let steps = 500;
    // The angle of the uprights at the last node, by the step; zero by the secant method.
    let angle = |h: f64| passage(&mechanism, h, h * steps as f64).map(|(outcome, _)| outcome.z[foot]);
    let (mut h0, mut h1) = (1.40e-3, 1.42e-3);
    let (mut a0, mut a1) = (angle(h0).unwrap(), angle(h1).unwrap());
    let mut nearest = a0.abs();
    for _ in 0..12 {
        if a1 == a0 {
            break;
        }
        let h = h1 - a1 * (h1 - h0) / (a1 - a0);
        (h0, a0, h1) = (h1, a1, h);
        a1 = angle(h).unwrap_or_else(|error| panic!("h = {h:e}: {}", said(&mechanism, error)));
        nearest = nearest.min(a1.abs());
        // On through it, to the other side and the next one.
        let end = h * (2 * steps) as f64;
        let (outcome, apart) = passage(&mechanism, h, end)
            .unwrap_or_else(|error| panic!("h = {h:e}: {}", said(&mechanism, error)));
        let drift = outcome.energy_drift / outcome.kinetic;
        println!(
            "h = {h:.15e}: {a1:.1e} from flat, apart {apart:.1e}, error {:.1e}, energy {drift:.1e}, most iterations {}",
            error(2, end, &outcome),
            outcome.statistics.max_iterations
        );
        // Where a node is closer to the singular position than rounding can tell, the velocity across the way is not
        // determined: the energy may change by a small part.
        let allowed = if a1.abs() > 1e-6 { 1e-5 } else { 1e-3 };
        assert!(error(2, end, &outcome) < allowed && drift < allowed && apart < 1e-5, "{a1:e} from flat");
    }
    assert!(nearest < 1e-9, "{nearest:e}");
}
