//! The slider-crank of SUNDIALS' example idasSlCrank: its objective, and the derivatives of it by differences.

use mbs_engine::Interpreted;
use mbs_runtime::{Ali3p, Fixed, Index1, Rk4};
use mbs_tests::closed::{run, run_explicit, shipped};

const END: f64 = 10.0;
/// Printed by the example: G and its derivatives by k and c.
const PRINTED: [f64; 3] = [3.3366, 0.33345, -0.36375];

/// ∫ kinetic energy dt; Runge–Kutta nodes and extrapolation of the trapezoidal rule on them.
fn objective(model: &Interpreted) -> f64 {
    let [coarse, fine] = [1e-2, 5e-3].map(|h| {
        let rk4 = Fixed { method: Rk4, h };
        run_explicit(model, &rk4, Index1::new(model), true, END).unwrap().psi[0]
    });
    fine + (fine - coarse) / 3.0
}

#[test]
fn the_objective_is_the_printed_one() {
    let mut model = shipped("slider_crank");
    let exact = objective(&model);
    println!("G = {exact:.10}");
    assert!((exact - PRINTED[0]).abs() < 0.5e-4);

    let mut before: Option<f64> = None;
    for h in [4e-3, 2e-3, 1e-3] {
        let run = run(&model, Ali3p::DEFAULT, h, END, |_| ()).unwrap();
        let error = (run.psi[0] - exact).abs();
        println!("ALI3-P, h = {h:.0e}: error {error:.2e}, energy {:.2e}", run.energy_drift);
        if let Some(before) = before {
            let order = (before / error).log2();
            assert!((order - 2.0).abs() < 0.05, "order {order}");
        }
        before = Some(error);
        if h == 1e-3 {
            assert!(error < 1e-6);
        }
    }

    for (name, printed) in [("k", PRINTED[1]), ("c", PRINTED[2])] {
        // A central difference: the third derivative leaves about 1e−6 of it, rounding less.
        let [above, below] = [1.001, 0.999].map(|value| {
            model.set_parameter(name, value).unwrap();
            objective(&model)
        });
        model.set_parameter(name, 1.0).unwrap();
        let slope = (above - below) / 0.002;
        println!("dG/d{name} = {slope:.6}");
        assert!((slope - printed).abs() < 0.5e-5, "dG/d{name} = {slope}");
    }
}
