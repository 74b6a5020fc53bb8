//! The five-bar linkage [López Varela et al. 2023, section 10.1; Dopico et al. 2018, section 6]: objectives, order for every step
//! from 1e−2 s to 1e−5 s, and what a given penalty does.

use mbs_runtime::{Ali3p, Fixed, Index1, Penalty, Rk4, State, StepError, System, Tangent};
use mbs_tests::closed::{Outcome, distance, long_runs, reference, run, run_explicit, shipped};

/// ψ1, ψ2, ψ3 over 5 s, from an independent integration of high order that reproduces Table 7 of [López Varela et al. 2023].
const PSI: [f64; 3] = [0.726877, 7.342288, 304.9207];

#[test]
fn objectives_have_six_digits() {
    let model = shipped("five_bar");
    // Nodes of order 4, the trapezoidal rule on them extrapolated.
    let [coarse, fine] = [2e-3, 1e-3].map(|h| {
        let rk4 = Fixed { method: Rk4, h };
        run_explicit(&model, &rk4, Index1::new(&model), true, 5.0).unwrap().psi
    });
    let exact: Vec<f64> =
        fine.iter().zip(&coarse).map(|(fine, coarse)| fine + (fine - coarse) / 3.0).collect();
    println!("index 1, Runge–Kutta, extrapolated: {exact:?}");
    for (exact, printed) in exact.iter().zip(PSI) {
        // Half a unit of the last digit of six, or of the printed one.
        let digit = 10f64.powi(printed.abs().log10().floor() as i32 - 5);
        assert!((exact - printed).abs() < 0.6 * digit, "{exact} and {printed}");
    }
    let ali3p = run(&model, Ali3p::DEFAULT, 1e-4, 5.0, |_| ()).unwrap();
    println!("ALI3-P, h = 1e-4: {:?}, energy {:.1e}", ali3p.psi, ali3p.energy_drift);
    for (found, exact) in ali3p.psi.iter().zip(&exact) {
        assert!(((found - exact) / exact).abs() < 1e-7, "{found} and {exact}");
    }
    // Order 2: 1e−4 of the energy at h = 1e−2 has become 1e−8.
    assert!(ali3p.energy_drift < 1e-7);
    assert!(ali3p.violation.iter().all(|&left| left < 1e-10), "{:?}", ali3p.violation);
}

/// Errors of positions, velocities, accelerations and multipliers.
fn errors(run: &Outcome, exact: &Outcome) -> [f64; 4] {
    [
        distance(&run.z, &exact.z),
        distance(&run.zd, &exact.zd),
        distance(&run.zdd, &exact.zdd),
        distance(&run.lambda, &exact.lambda),
    ]
}

/// Table 1 of [Dopico et al. 2018] loses digits below 1e−3 s. Here the error goes on as h².
#[test]
fn no_step_is_too_small() {
    let model = shipped("five_bar");
    let end = if long_runs() { 5.0 } else { 1.0 };
    let exact = reference(&model, end);
    println!(
        "      h   positions  velocities  accelerations  multipliers    energy  constraints  iterations"
    );
    let mut before: Option<(f64, [f64; 4])> = None;
    for h in [1e-2, 2.5e-3, 1e-3, 2.5e-4, 1e-4, 2.5e-5, 1e-5] {
        let run = run(&model, Ali3p::DEFAULT, h, end, |_| ()).unwrap();
        let now = errors(&run, &exact);
        let left = run.violation.into_iter().fold(0.0, f64::max);
        println!(
            "{h:7.1e}    {:.2e}    {:.2e}       {:.2e}     {:.2e}  {:.2e}      {left:.1e}        {:.2}",
            now[0],
            now[1],
            now[2],
            now[3],
            run.energy_drift,
            run.statistics.iterations as f64 / run.statistics.steps as f64
        );
        assert!(left < 1e-10, "{:?}", run.violation);
        if let Some((h_before, before)) = before {
            for (before, now) in before.iter().zip(now) {
                let order = (before / now).log10() / (h_before / h).log10();
                assert!((order - 2.0).abs() < 0.1, "h = {h}: order {order}");
            }
        }
        before = Some((h, now));
    }
}

/// A penalty that is given, and not scaled, can be too small for the iteration to converge. Then there is an error, never a
/// wrong result.
#[test]
fn a_given_penalty_changes_the_effort_and_not_the_result() {
    let model = shipped("five_bar");
    let exact = reference(&model, 0.5);
    println!("iterations of a step, and error of positions, for α and h");
    let mut converged = 0;
    for h in [1e-2, 2.5e-3, 1e-3, 2.5e-4, 1e-4] {
        let scaled = run(&model, Ali3p::DEFAULT, h, 0.5, |_| ()).unwrap();
        let expected = errors(&scaled, &exact);
        print!("h = {h:.1e}  scaled {:.1} {:.1e}", effort(&scaled), expected[0]);
        for alpha in [1e5, 1e6, 1e7, 1e8, 1e9, 1e10] {
            let settings = Ali3p { penalty: Penalty::Given(alpha), ..Ali3p::DEFAULT };
            match run(&model, settings, h, 0.5, |_| ()) {
                Ok(run) => {
                    converged += 1;
                    let now = errors(&run, &exact);
                    print!("  {alpha:.0e} {:.1} {:.1e}", effort(&run), now[0]);
                    for (now, expected) in now.iter().zip(expected) {
                        assert!(*now < 2.0 * expected, "α = {alpha:e}, h = {h}: {now:e}");
                    }
                    assert!(run.violation.iter().all(|&left| left < 1e-10), "{:?}", run.violation);
                }
                Err(error @ StepError::NotConverged { .. }) => {
                    print!("  {alpha:.0e} no convergence");
                    assert!(error.to_string().contains("larger penalty"));
                }
                Err(error) => panic!("α = {alpha:e}, h = {h}: {error}"),
            }
        }
        println!();
    }
    assert!(converged >= 15, "{converged} of 30 converged");
}

fn effort(run: &Outcome) -> f64 {
    run.statistics.iterations as f64 / run.statistics.steps as f64
}

/// A tangent of a step before changes nothing but the number of iterations, and a step still depends on the state alone.
#[test]
fn tangents_are_carried() {
    let path = format!("{}/../models/five_bar.yaml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("a shipped model");
    let carried = text.replace("step: 1e-3}", "step: 1e-3, newton: {tangent: carried}}");
    assert_ne!(text, carried);
    let (plain, model) = (shipped("five_bar"), mbs_tests::closed::model(&carried));
    let method = Ali3p { tangent: Tangent::Carried, ..Ali3p::DEFAULT };
    assert_eq!(model.dims().n_carried, model.dims().tangent_len());
    let usual = run(&plain, Ali3p::DEFAULT, 1e-3, 1.0, |_| ()).expect("converges");
    let found = run(&model, method, 1e-3, 1.0, |_| ()).expect("converges");
    // Both converge to a part of 1e-10 of the motion in a step; errors add up over 1000 of them.
    for (found, usual) in errors(&found, &usual).into_iter().zip([1e-9, 1e-8, 1e-6, 1e-5]) {
        assert!(found < usual, "{found} and {usual}");
    }
    let (tangents, steps) = (found.statistics.tangents, found.statistics.steps);
    println!("{tangents} tangents, {} iterations for {steps} steps", found.statistics.iterations);
    assert!(tangents * 4 < steps, "{tangents} tangents for {steps} steps");

    // The state has all of it: a copy makes the same step; another step size makes its own tangent, and so does a state that forgets.
    let (mut state, _) = mbs_tests::closed::start(&model, 0.0).expect("assembles");
    let mut scratch = vec![0.0; Ali3p::scratch_len(&model.dims())];
    let inputs = &mut model.input_signals();
    let mut step = |state: &mut Vec<f64>, h: f64| {
        scratch.fill(f64::NAN);
        method.step(&model, inputs, state, h, &mut scratch).expect("converges").tangents
    };
    assert_eq!(step(&mut state, 1e-3), 1);
    assert_eq!(step(&mut state, 1e-3), 0);
    let mut copy = state.clone();
    assert_eq!((step(&mut state, 1e-3), step(&mut copy, 1e-3)), (0, 0));
    assert_eq!(state, copy);
    assert_eq!(step(&mut copy, 0.5e-3), 1);
    State::of(&model.dims(), &mut state).expect("length").forget_tangent();
    assert_eq!(step(&mut state, 1e-3), 1);
}
