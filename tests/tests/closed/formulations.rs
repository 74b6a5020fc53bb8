//! All formulations and integrators agree, each within its own order, on every shipped model with loops or constraints (and on
//! the governor, which has none).
//!
//! A method of order p has at h/2 the error |x(h) − x(h/2)|/(2^p − 1), as far as it can tell by itself. Every method must tell its
//! own error right: its distance from the reference is to be that estimate, up to a factor and to rounding.

use mbs_engine::Interpreted;
use mbs_runtime::{
    Ali3p, Constrained, Fixed, Implicit, ImplicitIndex1, Index1, Motion, ProjectionMatrix, Rk4, Sdirk4,
    Stabilisation, StepError, System, Tangent, Trapezoidal,
};
use mbs_tests::closed::{
    Outcome, distance, reference, run, run_explicit, run_independent, run_independent_implicit, said, shipped,
};

#[derive(Clone, Copy)]
enum Method {
    Ali3p(Ali3p),
    /// Index 1 by an implicit integrator, with this compliance.
    ImplicitIndex1(Implicit, f64),
    /// Index 1 by the classical Runge–Kutta method: damping, frequency, whether steps end on the constraints.
    Index1(f64, f64, bool),
    /// The same with a penalty.
    Penalty(f64, bool),
    /// Independent coordinates by the classical Runge–Kutta method.
    MatrixR,
    /// The same by the trapezoidal rule, and by the implicit method of order 4.
    TrapezoidalMatrixR,
    Sdirk4MatrixR,
}

/// Of stabilised formulations: damping and frequency, of the size of the motions'.
const DAMPING: f64 = 1.0;

struct Case {
    model: &'static str,
    end: f64,
    h: f64,
    /// Steps of explicit methods are so much shorter.
    shorter: f64,
    /// Frequency of the stabilisation.
    frequency: f64,
    /// Penalty: the constraints give way by λ/α, as an acceleration.
    alpha: f64,
}

const CASES: [Case; 8] = [
    Case { model: "andrews", end: 0.01, h: 8e-6, shorter: 1.0, frequency: 1000.0, alpha: 1e7 },
    Case { model: "bricard", end: 1.3, h: 1e-3, shorter: 2.0, frequency: 10.0, alpha: 1e7 },
    Case { model: "crank_rocker", end: 0.7, h: 2e-3, shorter: 1.0, frequency: 10.0, alpha: 1e7 },
    Case { model: "five_bar", end: 1.0, h: 4e-3, shorter: 1.0, frequency: 10.0, alpha: 1e7 },
    Case { model: "four_bar_2", end: 0.6, h: 4e-3, shorter: 1.0, frequency: 10.0, alpha: 1e7 },
    Case { model: "governor", end: 0.5, h: 1e-3, shorter: 20.0, frequency: 10.0, alpha: 1e7 },
    Case { model: "slider_crank", end: 3.0, h: 1e-2, shorter: 1.0, frequency: 10.0, alpha: 1e7 },
    Case { model: "two_point_masses", end: 5.0, h: 1e-2, shorter: 1.0, frequency: 10.0, alpha: 1e7 },
];

fn solve(model: &Interpreted, case: &Case, method: Method, h: f64) -> Result<Outcome, StepError> {
    let rk4 = Fixed { method: Rk4, h: h / case.shorter };
    match method {
        Method::Ali3p(settings) => run(model, settings, h, case.end, |_| ()),
        Method::ImplicitIndex1(integrator, compliance) => {
            let (rate, value) = (2.0 * DAMPING * case.frequency, case.frequency.powi(2));
            let stabilisation = Stabilisation { rate, value, compliance };
            let settings = ImplicitIndex1 { integrator, ..ImplicitIndex1::new(stabilisation) };
            run(model, settings, h, case.end, |_| ())
        }
        Method::Index1(damping, frequency, projected) => {
            let dynamics = Index1::stabilised(model, damping, frequency);
            run_explicit(model, &rk4, dynamics, projected, case.end)
        }
        Method::Penalty(alpha, projected) => {
            let dynamics = Index1::penalty(model, alpha, DAMPING, case.frequency);
            run_explicit(model, &rk4, dynamics, projected, case.end)
        }
        Method::MatrixR => run_independent(model, &rk4, case.end).map(|(outcome, _)| outcome),
        Method::TrapezoidalMatrixR => {
            let rule = Fixed { method: Trapezoidal, h };
            run_independent_implicit(model, &rule, case.end).map(|(outcome, _)| outcome)
        }
        Method::Sdirk4MatrixR => {
            let sdirk = Fixed { method: Sdirk4, h: h / case.shorter };
            run_independent_implicit(model, &sdirk, case.end).map(|(outcome, _)| outcome)
        }
    }
}

/// Positions, velocities, accelerations, and forces of the constraints: multipliers themselves are not determined where rows depend
/// on each other.
fn results(model: &Interpreted, end: f64, outcome: &Outcome) -> [Vec<f64>; 4] {
    let dims = model.dims();
    assert_eq!(dims.n_normalisation, 0);
    let at = Motion { t: end, z: &outcome.z, zd: &outcome.zd, zdd: &outcome.zdd, u: &[] };
    let (mut w, mut phi) = (vec![0.0; dims.workspace], vec![0.0; dims.rows()]);
    // Φ_zᵀ λ + Aᵀ μ = r(λ) − r(0)
    let [with, without] = [outcome.lambda.clone(), vec![0.0; dims.rows()]].map(|lambda| {
        let mut r = vec![0.0; dims.nq];
        model.residual(at, &lambda, &mut w, &mut r, &mut phi).unwrap();
        r
    });
    let forces = with.iter().zip(&without).map(|(with, without)| with - without).collect();
    [outcome.z.clone(), outcome.zd.clone(), outcome.zdd.clone(), forces]
}

fn size(values: &[f64]) -> f64 {
    values.iter().fold(1.0, |size, value| size.max(value.abs()))
}

#[test]
fn every_formulation_tells_its_own_error() {
    let ali3p = |integrator| Method::Ali3p(Ali3p { integrator, ..Ali3p::DEFAULT });
    let newmark = Implicit::Newmark { beta: 0.3, gamma: 0.5 };
    let alpha = Implicit::GeneralizedAlpha { spectral_radius: 0.8 };
    for case in &CASES {
        let model = shipped(case.model);
        let exact = if case.shorter > 10.0 {
            // Stiff: Runge–Kutta at a quarter of the steps below.
            let rk4 = Fixed { method: Rk4, h: 0.25 * case.h / case.shorter };
            run_explicit(&model, &rk4, Index1::new(&model), false, case.end).unwrap()
        } else {
            reference(&model, case.end)
        };
        let exact = results(&model, case.end, &exact);
        let methods = [
            ("ALI3-P, trapezoidal", 2, ali3p(Implicit::TRAPEZOIDAL)),
            ("ALI3-P, Newmark 0.3", 2, ali3p(newmark)),
            ("ALI3-P, generalized-alpha 0.8", 2, ali3p(alpha)),
            (
                "ALI3-P, tangent projections",
                2,
                Method::Ali3p(Ali3p { projection: ProjectionMatrix::Tangent, ..Ali3p::DEFAULT }),
            ),
            (
                "ALI3-P, reused tangent",
                2,
                Method::Ali3p(Ali3p { tangent: Tangent::Reused, ..Ali3p::DEFAULT }),
            ),
            ("index 1, trapezoidal", 2, Method::ImplicitIndex1(Implicit::TRAPEZOIDAL, 0.0)),
            ("index 1, generalized-alpha 0.8", 2, Method::ImplicitIndex1(alpha, 0.0)),
            ("index 1, Runge–Kutta", 4, Method::Index1(0.0, 0.0, false)),
            ("index 1, Runge–Kutta, stabilised", 4, Method::Index1(DAMPING, case.frequency, false)),
            ("index 1, Runge–Kutta, projected", 4, Method::Index1(0.0, 0.0, true)),
            ("matrix R, Runge–Kutta", 4, Method::MatrixR),
            ("matrix R, trapezoidal", 2, Method::TrapezoidalMatrixR),
            ("matrix R, sdirk4", 4, Method::Sdirk4MatrixR),
        ];
        println!(
            "{}: error of positions at h and h/2, and orders of positions, velocities, accelerations, forces",
            case.model
        );
        for (name, order, method) in methods {
            let fail = |error| -> Outcome { panic!("{}, {name}: {}", case.model, said(&model, error)) };
            let [coarse, fine] = [case.h, 0.5 * case.h]
                .map(|h| results(&model, case.end, &solve(&model, case, method, h).unwrap_or_else(fail)));
            let mut orders = String::new();
            let gain = 2f64.powi(order);
            for (level, ((coarse, fine), exact)) in coarse.iter().zip(&fine).zip(&exact).enumerate() {
                let (error, error_fine) = (distance(coarse, exact), distance(fine, exact));
                let estimate = distance(coarse, fine) / (gain - 1.0);
                // Rounding: of a few thousand steps, and of the tolerance of Newton's method, 1e−10 of a step.
                let rounding = 1e-9 * size(exact);
                let ratio = if error_fine < rounding { gain } else { error / error_fine };
                orders += &format!(" {:.2}", ratio.log2());
                assert!(
                    error_fine < 1.3 * estimate + rounding,
                    "{}, {name}, level {level}: error {error_fine:e}, estimated {estimate:e}",
                    case.model
                );
                assert!(ratio > 0.75 * gain, "{}, {name}, level {level}: order {}", case.model, ratio.log2());
            }
            let errors = [&coarse[0], &fine[0]].map(|z| distance(z, &exact[0]));
            println!("  {name:34} {:.2e} {:.2e} {orders}", errors[0], errors[1]);
        }
    }
}

/// A method for each penalty.
type WithPenalty = fn(f64) -> Method;

/// What a penalty α leaves is in proportion to 1/α, also for the implicit integrator, and goes with projections but for accelerations.
#[test]
fn penalties_tend_to_the_constraints() {
    for case in CASES.iter().filter(|case| case.model != "governor") {
        let model = shipped(case.model);
        let exact = results(&model, case.end, &reference(&model, case.end));
        let kinds: [(&str, WithPenalty); 3] = [
            ("Runge–Kutta", |alpha| Method::Penalty(alpha, false)),
            ("Runge–Kutta, projected", |alpha| Method::Penalty(alpha, true)),
            ("trapezoidal", |alpha| Method::ImplicitIndex1(Implicit::TRAPEZOIDAL, 1.0 / alpha)),
        ];
        println!(
            "{}: distance of positions and forces from the same with a hundred times the penalty",
            case.model
        );
        for (name, method) in kinds {
            let at = |alpha: f64| {
                let outcome = solve(&model, case, method(alpha), 0.5 * case.h);
                outcome.unwrap_or_else(|error| panic!("{}, {name}: {}", case.model, said(&model, error)))
            };
            let runs = [1.0, 10.0, 1e3].map(|factor| results(&model, case.end, &at(factor * case.alpha)));
            let mut line = String::new();
            for level in 0..4 {
                let [soft, hard] = [&runs[0], &runs[1]].map(|run| distance(&run[level], &runs[2][level]));
                line += &format!("  {soft:.1e} {hard:.1e}");
                // Redundant rows contradict each other as soon as positions are off: what integration leaves there depends
                // on the penalty.
                let left =
                    if case.model == "bricard" { distance(&runs[2][level], &exact[level]) } else { 0.0 };
                let rounding = 1e-9 * size(&exact[level]);
                assert!(
                    hard < 0.15 * soft + left + rounding,
                    "{}, {name}, level {level}: {soft:e} and {hard:e}",
                    case.model
                );
            }
            println!("  {name:24}{line}");
        }
    }
}
