//! Two point masses with a nonholonomic constraint [Dopico et al. 2018, section 4.2] against the curve of pursuit.

use mbs_runtime::{Ali3p, Fixed, Index1, Rk4};
use mbs_tests::closed::{Outcome, coordinate, reference, run, run_explicit, shipped};

const END: f64 = 5.0;

/// Position of A at the end: A' = (B − A)/|B − A| with B = (3 + t, 1 + f/(2 m_B) t²), by the classical Runge–Kutta method.
fn pursuit(f_b: f64) -> [f64; 2] {
    let velocity = |t: f64, a: [f64; 2]| {
        let to_b = [3.0 + t - a[0], 1.0 + f_b / 14.0 * t * t - a[1]];
        let far = to_b[0].hypot(to_b[1]);
        [to_b[0] / far, to_b[1] / far]
    };
    let steps = 5000;
    let h = END / steps as f64;
    let mut a = [1.0, 1.0];
    for step in 0..steps {
        let t = h * step as f64;
        let at = |k: [f64; 2], s: f64| [a[0] + s * h * k[0], a[1] + s * h * k[1]];
        let k1 = velocity(t, a);
        let k2 = velocity(t + 0.5 * h, at(k1, 0.5));
        let k3 = velocity(t + 0.5 * h, at(k2, 0.5));
        let k4 = velocity(t + h, at(k3, 1.0));
        for i in 0..2 {
            a[i] += h / 6.0 * (k1[i] + 2.0 * k2[i] + 2.0 * k3[i] + k4[i]);
        }
    }
    a
}

#[test]
fn a_pursues_b() {
    let mut model = shipped("two_point_masses");
    let place = |name: &str| coordinate(&model, &format!("{name}.displacement"));
    let places = ["x_A", "y_A", "x_B", "y_B"].map(place);
    let theta = coordinate(&model, "theta");
    for f_b in [1.0, 5.0, 10.0] {
        model.set_parameter("f_B", f_b).unwrap();
        let [x, y] = pursuit(f_b);
        let b = [3.0 + END, 1.0 + f_b / 14.0 * END * END];
        let exact = [x, y, b[0], b[1]];
        let error = |outcome: &Outcome| {
            let errors = places.iter().zip(exact).map(|(&i, exact)| (outcome.z[i] - exact).abs());
            errors.fold((outcome.z[theta] - (b[1] - y).atan2(b[0] - x)).abs(), f64::max)
        };

        let tight = reference(&model, END);
        println!("f_B = {f_b}: index 1, Dormand–Prince {:.1e}", error(&tight));
        assert!(error(&tight) < 1e-11);
        let rk4 = Fixed { method: Rk4, h: 1e-2 };
        let rk4 = run_explicit(&model, &rk4, Index1::new(&model), true, END).unwrap();
        assert!(error(&rk4) < 1e-9, "{:e}", error(&rk4));

        println!("    h  positions  speed of A    energy");
        let mut before: Option<[f64; 2]> = None;
        for h in [4e-3, 2e-3, 1e-3] {
            let run = run(&model, Ali3p::DEFAULT, h, END, |_| ()).unwrap();
            // |v_A| = 1: the constraint's force is across it.
            let errors = [error(&run), (run.outputs[0] - 1.0).abs()];
            println!("{h:5.0e}   {:.2e}    {:.2e}  {:.2e}", errors[0], errors[1], run.energy_drift);
            if let Some(before) = before {
                for (before, now) in before.iter().zip(errors) {
                    let order = (before / now).log2();
                    assert!((order - 2.0).abs() < 0.15, "order {order}");
                }
            }
            before = Some(errors);
            assert!(run.violation.iter().all(|&left| left < 1e-13), "{:?}", run.violation);
            if h == 1e-3 {
                assert!(errors[0] < 1e-6);
            }
        }
    }
}
