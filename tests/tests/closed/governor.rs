//! The flyball governor (IFToMM A05): no constraints, but springs and dampers a thousand times stiffer than its motion. The same
//! implicit step takes it at a millisecond, where explicit ones need less than a seventh of that.

use mbs_runtime::{Ali3p, Fixed, Implicit, Index1, Rk4};
use mbs_tests::closed::{distance, run, run_explicit, shipped};

const END: f64 = 10.0;

#[test]
fn it_is_stiff() {
    let model = shipped("governor");
    let rk4 = Fixed { method: Rk4, h: 1e-3 };
    assert!(run_explicit(&model, &rk4, Index1::new(&model), false, 0.1).is_err());
}

#[test]
fn a_millisecond_is_stable_and_accurate() {
    let model = shipped("governor");
    // Explicit at a stable step, of order 4: exact for what follows.
    let rk4 = Fixed { method: Rk4, h: 1e-4 };
    let exact = run_explicit(&model, &rk4, Index1::new(&model), false, END).unwrap();
    for integrator in [Implicit::TRAPEZOIDAL, Implicit::GeneralizedAlpha { spectral_radius: 0.8 }] {
        println!("{integrator:?}\n    h   positions  velocities    energy  iterations");
        let mut before: Option<[f64; 3]> = None;
        for h in [2e-3, 1e-3, 5e-4] {
            let run = run(&model, Ali3p { integrator, ..Ali3p::DEFAULT }, h, END, |_| ()).unwrap();
            // The balance counts what the dampers take.
            let drift = run.energy_drift / run.kinetic;
            let errors = [distance(&run.z, &exact.z), distance(&run.zd, &exact.zd), drift];
            println!(
                "{h:5.0e}    {:.2e}    {:.2e}  {drift:.2e}        {:.2}",
                errors[0],
                errors[1],
                run.statistics.iterations as f64 / run.statistics.steps as f64
            );
            if let Some(before) = before {
                for (before, now) in before.iter().zip(errors) {
                    let order = (before / now).log2();
                    assert!((order - 2.0).abs() < 0.15, "order {order}");
                }
            }
            before = Some(errors);
            if h == 1e-3 {
                // The shaft has turned by some 64 rad.
                assert!(errors[0] < 5e-5 && drift < 1e-5, "{errors:?}");
            }
        }
    }
}
