//! Index 1, Baumgarte's stabilisation and penalties, explicit and implicit; corrections onto the constraints.

use std::ops::ControlFlow;

use crate::systems::lagrangian::{Lagrangian, Mechanism};
use crate::systems::mechanisms::{Contradiction, Pendulum, Pursuit, pendulum_angle, pendulum_motion};
use crate::systems::{distance, order};
use mbs_runtime::inputs::NoInputs;
use mbs_runtime::integrator::{FixedStep, Memory};
use mbs_runtime::{
    Adaptive, Ali3p, At, ConstrainedDynamics, DormandPrince, EvalError, Fixed, ForwardDynamics, Implicit,
    ImplicitIndex1, Index1, Integrator, MatrixR, OnConstraints, Output, Quantity, Rk4, Scalar, Sdirk4, Span,
    Stabilisation, StepError, Stiff, System, Tangent, Trapezoidal,
};

const PENDULUM: Pendulum<1> = Pendulum { mass: 2.0, length: 1.3 };
const TWICE: Pendulum<2> = Pendulum { mass: 2.0, length: 1.3 };
const START: [f64; 2] = [1.1, -0.7];

fn run<M: ForwardDynamics<S = f64>>(system: &M, integrator: &impl Integrator, y: &mut [f64], end: f64) {
    let mut scratch = vec![0.0; integrator.scratch_len(&system.dims())];
    let span = Span { start: 0.0, end, output: Output::Steps };
    integrator.run(system, &mut NoInputs, y, &span, &mut scratch, |_| ControlFlow::Continue(())).unwrap();
}

fn pendulum_error<M: ForwardDynamics<S = f64>>(system: &M, integrator: &impl Integrator) -> f64 {
    let mut y = pendulum_motion(&PENDULUM, START)[..4].to_vec();
    run(system, integrator, &mut y, 1.0);
    distance(&y, &pendulum_motion(&PENDULUM, pendulum_angle(PENDULUM.length, START, 1.0))[..4])
}

#[test]
fn explicit_integrators_keep_their_order() {
    fn check<T: FixedStep + Copy, M: ForwardDynamics<S = f64>>(
        name: &str,
        system: &M,
        method: T,
        expected: f64,
    ) {
        let error = |h: f64| pendulum_error(system, &Fixed { method, h });
        let measured = 0.5 * order(error(1.0 / 64.0), error(1.0 / 256.0));
        assert!((measured - expected).abs() < 0.15, "{name}: {measured}");
    }
    let (once, twice) = (Lagrangian::<_, f64>::new(PENDULUM), Lagrangian::<_, f64>::new(TWICE));
    check("index 1", &Index1::new(&once), Rk4, 4.0);
    check("index 1, redundant", &Index1::new(&twice), Rk4, 4.0);
    check("Baumgarte", &Index1::stabilised(&once, 1.0, 10.0), Rk4, 4.0);
    check("corrected", &OnConstraints(Index1::new(&once)), Rk4, 4.0);
    check("corrected, redundant", &OnConstraints(Index1::new(&twice)), Rk4, 4.0);
    check("corrected, order 5", &OnConstraints(Index1::new(&once)), DormandPrince, 5.0);
    check("implicit", &Stiff(&Index1::new(&once)), Sdirk4, 4.0);
    check("implicit, corrected", &Stiff(&OnConstraints(Index1::new(&once))), Sdirk4, 4.0);
    check("implicit, corrected, redundant", &Stiff(&OnConstraints(Index1::new(&twice))), Sdirk4, 4.0);
}

/// Numbers for a choice of independent coordinates, none made yet.
fn no_choice<M: ConstrainedDynamics<S = f64>>(system: &M) -> &'static mut [f64] {
    vec![0.0; MatrixR::<M>::choice_len(&system.dims())].leak()
}

#[test]
fn independent_coordinates_keep_the_order() {
    let (once, twice) = (Lagrangian::<_, f64>::new(PENDULUM), Lagrangian::<_, f64>::new(TWICE));
    let system = || MatrixR::new(&once, no_choice(&once));
    let of = |h: f64| pendulum_error(&system(), &Fixed { method: Rk4, h });
    let measured = 0.5 * order(of(1.0 / 64.0), of(1.0 / 256.0));
    assert!((measured - 4.0).abs() < 0.15, "{measured}");
    let alone = of(0.01);
    let of = |h: f64| pendulum_error(&system(), &Fixed { method: DormandPrince, h });
    let measured = 0.5 * order(of(1.0 / 64.0), of(1.0 / 256.0));
    // Where choices change depends on the step, and with it the constant of the error.
    assert!((measured - 5.0).abs() < 0.3, "{measured}");
    for (at, expected, of) in [
        (
            64.0,
            4.0,
            &(|h: f64| pendulum_error(&Stiff(&system()), &Fixed { method: Sdirk4, h }))
                as &dyn Fn(f64) -> f64,
        ),
        (128.0, 2.0, &|h: f64| pendulum_error(&Stiff(&system()), &Fixed { method: Trapezoidal, h })),
        (128.0, 2.0, &|h: f64| newmark_error(Implicit::Newmark { beta: 0.3, gamma: 0.5 }, h)),
        (128.0, 1.0, &|h: f64| newmark_error(Implicit::Newmark { beta: 0.4, gamma: 0.6 }, h)),
        (128.0, 2.0, &|h: f64| newmark_error(ALPHA(0.0), h)),
        (128.0, 2.0, &|h: f64| newmark_error(ALPHA(0.8), h)),
        (128.0, 2.0, &|h: f64| newmark_error(ALPHA(1.0), h)),
    ] {
        let measured = 0.5 * order(of(1.0 / at), of(0.25 / at));
        assert!((measured - expected).abs() < 0.3, "{measured} {:e}", of(1.0 / at));
    }
    let redundant = MatrixR::new(&twice, no_choice(&twice));
    let implicit = pendulum_error(&Stiff(&redundant), &Fixed { method: Sdirk4, h: 0.01 });
    let once = pendulum_error(&Stiff(&system()), &Fixed { method: Sdirk4, h: 0.01 });
    assert!((implicit - once).abs() < 1e-6 * once, "{implicit:e} {once:e}");
    let redundant = MatrixR::new(&twice, no_choice(&twice));
    let twice = pendulum_error(&redundant, &Fixed { method: Rk4, h: 0.01 });
    assert!((twice - alone).abs() < 1e-6 * alone, "{twice:e} {alone:e}");
}

const ALPHA: fn(f64) -> Implicit = |spectral_radius| Implicit::GeneralizedAlpha { spectral_radius };

fn newmark_error(newmark: Implicit, h: f64) -> f64 {
    let once = Lagrangian::<_, f64>::new(PENDULUM);
    let system = MatrixR::new(&once, no_choice(&once)).by(newmark);
    pendulum_error(&Stiff(&system), &Fixed { method: Trapezoidal, h })
}

/// A pendulum near its equilibrium at steps that are long against its period. At infinite frequency all three roots of the step (x, h v, h² c) are −ρ, so that its polynomial is (λ + ρ)³.
#[test]
fn high_frequencies_are_damped_by_the_spectral_radius() {
    let once = Lagrangian::<_, f64>::new(PENDULUM);
    let (h, small) = (100.0, 1e-6);
    for rho in [0.0, 0.3, 0.8, 1.0] {
        let mut columns = [[0.0; 3]; 3];
        for (k, column) in columns.iter_mut().enumerate() {
            let system = MatrixR::new(&once, no_choice(&once)).by(ALPHA(rho));
            let system = Stiff(&system);
            let mut y = [0.0, -PENDULUM.length, 0.0, 0.0, 0.0, 0.0];
            let (place, unit) = [(0, 1.0), (2, h), (4, h * h)][k];
            y[place] = small / unit;
            if k == 0 {
                y[1] = -f64::sqrt(PENDULUM.length * PENDULUM.length - small * small);
            }
            let mut scratch = vec![0.0; FixedStep::scratch_len(&Trapezoidal, &system.dims())];
            Trapezoidal.step(&system, &mut NoInputs, &mut 0.0, &mut y, h, &mut scratch).unwrap();
            *column = [y[0], y[2] * h, y[4] * h * h].map(|x| x / small);
        }
        let [a, b, c] = columns;
        let minor = |i: usize, j: usize| columns[i][i] * columns[j][j] - columns[i][j] * columns[j][i];
        let determinant = a[0] * (b[1] * c[2] - b[2] * c[1]) - b[0] * (a[1] * c[2] - a[2] * c[1])
            + c[0] * (a[1] * b[2] - a[2] * b[1]);
        let found = [a[0] + b[1] + c[2], minor(0, 1) + minor(0, 2) + minor(1, 2), determinant];
        let expected = [-3.0 * rho, 3.0 * rho * rho, -rho * rho * rho];
        // The linear step has 2.1e-4 left at most, some (hω)⁻² = 1.3e−5.
        assert!(distance(&found, &expected) < 1e-3, "{rho}: {found:?} {expected:?}");
    }
}

/// Coefficients that mean nothing are refused.
#[test]
fn formulas_are_checked() {
    let once = Lagrangian::<_, f64>::new(PENDULUM);
    for newmark in [ALPHA(1.5), Implicit::Newmark { beta: 0.0, gamma: 0.5 }] {
        let system = MatrixR::new(&once, no_choice(&once)).by(newmark);
        let (system, integrator) = (Stiff(&system), Fixed { method: Trapezoidal, h: 0.1 });
        let mut y = pendulum_motion(&PENDULUM, START)[..4].to_vec();
        let mut scratch = vec![0.0; Integrator::scratch_len(&integrator, &system.dims())];
        let span = Span { start: 0.0, end: 1.0, output: Output::Steps };
        let seen = |_: At<'_, f64>| ControlFlow::Continue(());
        let refused = integrator.run(&system, &mut NoInputs, &mut y, &span, &mut scratch, seen);
        assert!(matches!(refused, Err(StepError::Setting { .. })), "{refused:?}");
    }
}

/// Over full turns neither coordinate of the bob serves for long: choices change, and the motion is that of the pendulum.
#[test]
fn independent_coordinates_change_over_full_turns() {
    let system = Lagrangian::<_, f64>::new(TWICE);
    let start = [1.1, 9.0];
    let exact = pendulum_motion(&PENDULUM, pendulum_angle(PENDULUM.length, start, 2.0));
    let kept = |y: &[f64]| {
        let rows = system.rows(&[], 0.0, &y[..2], &y[2..]);
        let rates = system.rates(&[], 0.0, &y[..2], &y[2..]);
        assert!(rows.iter().chain(&rates).all(|row| row.abs() < 1e-12), "{rows:?} {rates:?}");
        distance(y, &exact[..4])
    };
    let begin = || pendulum_motion(&PENDULUM, start)[..4].to_vec();
    let fixed = |h: f64| {
        let (matrix_r, mut y) = (MatrixR::new(&system, no_choice(&system)), begin());
        run(&matrix_r, &Fixed { method: Rk4, h }, &mut y, 2.0);
        (kept(&y), matrix_r.choices())
    };
    let ((coarse, changes), (fine, _)) = (fixed(1e-2), fixed(2.5e-3));
    let measured = 0.5 * order(coarse, fine);
    assert!(
        changes > 4 && fine < 2e-4 && (measured - 4.0).abs() < 0.5,
        "{changes} {measured} {coarse:e} {fine:e}"
    );
    let (matrix_r, mut y) = (MatrixR::new(&system, no_choice(&system)), begin());
    run(&matrix_r, &Adaptive::new(1e-10, 1e-10), &mut y, 2.0);
    let (error, changes) = (kept(&y), matrix_r.choices());
    assert!(error < 5e-7 && changes > 4, "{error:e} {changes}");
    // By implicit stages.
    let (matrix_r, mut y) = (MatrixR::new(&system, no_choice(&system)), begin());
    run(&Stiff(&matrix_r), &Adaptive::of(Sdirk4, 1e-9, 1e-9), &mut y, 2.0);
    let (error, changes) = (kept(&y), matrix_r.choices());
    assert!(error < 5e-6 && changes > 4, "{error:e} {changes}");
    for newmark in [Implicit::TRAPEZOIDAL, ALPHA(0.8), ALPHA(0.2)] {
        let rule = |h: f64| {
            let (matrix_r, mut y) = (MatrixR::new(&system, no_choice(&system)).by(newmark), begin());
            run(&Stiff(&matrix_r), &Fixed { method: Trapezoidal, h }, &mut y, 2.0);
            assert!(matrix_r.choices() > 4);
            kept(&y)
        };
        let (coarse, fine) = (rule(2e-3), rule(5e-4));
        assert!((0.5 * order(coarse, fine) - 2.0).abs() < 0.3, "{newmark:?} {coarse:e} {fine:e}");
    }
}

#[test]
fn corrections_keep_the_constraints() {
    let system = Lagrangian::<_, f64>::new(TWICE);
    let violation = |y: &[f64]| {
        let rows = system.rows(&[], 0.0, &y[..2], &y[2..]);
        let rates = system.rates(&[], 0.0, &y[..2], &y[2..]);
        rows.iter().chain(&rates).fold(0.0, |worst: f64, row| worst.max(row.abs()))
    };
    let integrators = [0.05, 0.005];
    for h in integrators {
        let start = pendulum_motion(&PENDULUM, START)[..4].to_vec();
        let (mut drifting, mut stabilised, mut corrected) = (start.clone(), start.clone(), start.clone());
        let integrator = Fixed { method: Rk4, h };
        run(&Index1::new(&system), &integrator, &mut drifting, 20.0);
        run(&Index1::stabilised(&system, 1.0, 10.0), &integrator, &mut stabilised, 20.0);
        run(&OnConstraints(Index1::new(&system)), &integrator, &mut corrected, 20.0);
        let [a, b, c] = [violation(&drifting), violation(&stabilised), violation(&corrected)];
        assert!(c < 1e-12 && b < a && c < b, "{h}: {a:e} {b:e} {c:e}");
    }
    // Under step control, too.
    let mut y = pendulum_motion(&PENDULUM, START)[..4].to_vec();
    run(&OnConstraints(Index1::new(&system)), &Adaptive::new(1e-10, 1e-10), &mut y, 5.0);
    assert!(violation(&y) < 1e-12);
    let exact = pendulum_motion(&PENDULUM, pendulum_angle(PENDULUM.length, START, 5.0));
    assert!(distance(&y, &exact[..4]) < 1e-8);
}

/// Index 1 with Runge–Kutta steps, against an independent solution.
#[test]
fn the_pursuit_is_solved_to_nine_digits() {
    for force in [1.0, 5.0, 10.0] {
        let system = Lagrangian::<_, f64>::new(Pursuit { force });
        let (z, zd) = Pursuit::start();
        let (z_exact, zd_exact) = system.mechanism.exact(5.0);
        for corrected in [None, Some(false), Some(true)] {
            let mut y = [z, zd].concat();
            let integrator = Fixed { method: DormandPrince, h: 0.005 };
            let index1 = Index1::new(&system);
            match corrected {
                None => run(&MatrixR::new(&system, no_choice(&system)), &integrator, &mut y, 5.0),
                Some(true) => run(&OnConstraints(index1), &integrator, &mut y, 5.0),
                Some(false) => run(&index1, &integrator, &mut y, 5.0),
            }
            let error = distance(&y[..5], &z_exact).max(distance(&y[5..], &zd_exact));
            assert!(error < 1e-9, "{force} {corrected:?}: {error:e}");
        }
    }
}

/// A penalty moves the solution by 1/α.
#[test]
fn penalties_converge_with_alpha() {
    let system = Lagrangian::<_, f64>::new(PENDULUM);
    let error = |alpha: f64| {
        pendulum_error(&Index1::penalty(&system, alpha, 1.0, 10.0), &Fixed { method: Rk4, h: 1e-3 })
    };
    let ratio = error(1e4) / error(1e5);
    assert!((ratio - 10.0).abs() < 0.1, "{ratio}");

    let implicit = |alpha: f64| {
        let stabilisation = Stabilisation { rate: 20.0, value: 100.0, compliance: 1.0 / alpha };
        let exact = pendulum_motion(&PENDULUM, START);
        let mut state = system.start(0.0, &exact[..2], &exact[2..4]);
        system.steps(&ImplicitIndex1::new(stabilisation), &mut state, 1e-4, 10_000).unwrap();
        let view = system.view(&mut state);
        [view.z.to_vec(), view.zd.to_vec()].concat()
    };
    let mut y = pendulum_motion(&PENDULUM, START)[..4].to_vec();
    run(&Index1::penalty(&system, 1e4, 1.0, 10.0), &Fixed { method: Rk4, h: 1e-3 }, &mut y, 1.0);
    // The same formulation, one integrator of order 2 (error about 1e-8 · 10) and one of order 4.
    assert!(distance(&y, &implicit(1e4)) < 1e-6, "{:?} {:?}", y, implicit(1e4));
}

#[test]
fn implicit_index_1_has_order_2() {
    let system = Lagrangian::<_, f64>::new(TWICE);
    let start = pendulum_motion(&PENDULUM, START);
    let exact = pendulum_motion(&PENDULUM, pendulum_angle(PENDULUM.length, START, 1.0));
    let integrators = [Implicit::TRAPEZOIDAL, Implicit::GeneralizedAlpha { spectral_radius: 0.7 }];
    for integrator in integrators {
        for tangent in [Tangent::Exact, Tangent::Reused] {
            for (xi, omega) in [(0.0, 0.0), (1.0, 10.0)] {
                let stabilisation =
                    Stabilisation { rate: 2.0 * xi * omega, value: omega * omega, compliance: 0.0 };
                let settings = ImplicitIndex1 { integrator, tangent, ..ImplicitIndex1::new(stabilisation) };
                let errors = |steps: usize| {
                    let mut state = system.start(0.0, &start[..2], &start[2..4]);
                    let last = system.steps(&settings, &mut state, 1.0 / steps as f64, steps).unwrap();
                    assert!(last.iterations <= 6, "{last:?}");
                    let view = system.view(&mut state);
                    let inverse = 1.0 / PENDULUM.length;
                    let lambda = exact[6] / (1.0 + inverse * inverse);
                    [
                        distance(view.z, &exact[..2]),
                        distance(view.zd, &exact[2..4]),
                        distance(view.zdd, &exact[4..6]),
                        distance(view.lambda, &[lambda, lambda * inverse]),
                    ]
                };
                let (coarse, fine) = (errors(1000), errors(2000));
                for (coarse, fine) in coarse.iter().zip(fine) {
                    let measured = order(*coarse, fine);
                    assert!((measured - 2.0).abs() < 0.05, "{integrator:?} {omega}: {measured}");
                }
            }
        }
    }
}

#[test]
fn the_pursuit_under_implicit_index_1() {
    let system = Lagrangian::new(Pursuit { force: 5.0 });
    let (z, zd) = Pursuit::start();
    let (z_exact, zd_exact) = system.mechanism.exact(5.0);
    let settings = ImplicitIndex1::new(Stabilisation { rate: 10.0, value: 25.0, compliance: 0.0 });
    let errors = |steps: usize| {
        let mut state = system.start(0.0, &z, &zd);
        system.steps(&settings, &mut state, 5.0 / steps as f64, steps).unwrap();
        let view = system.view(&mut state);
        distance(view.z, &z_exact).max(distance(view.zd, &zd_exact))
    };
    let measured = order(errors(500), errors(1000));
    assert!((measured - 2.0).abs() < 0.1, "{measured}");
}

#[test]
fn contradictions_are_named() {
    // x = 0 and x = 1: no correction helps.
    let system = Lagrangian::<_, f64>::new(Contradiction { power: 0 });
    let corrected = OnConstraints(Index1::new(&system));
    let mut scratch = vec![0.0; Rk4::scratch_len(&corrected.dims())];
    let (mut t, mut y) = (0.0, [0.5, 0.0]);
    let error = Rk4.step(&corrected, &mut NoInputs, &mut t, &mut y, 0.1, &mut scratch).unwrap_err();
    let StepError::Eval {
        error: EvalError::Violated { quantity: Quantity::Holonomic, violation, .. }, ..
    } = error
    else {
        panic!("{error:?}")
    };
    assert!((violation.abs() - 0.5).abs() < 1e-6, "{violation}");
    assert!(error.describe(&system).to_string().contains("is violated by"), "{error}");
    assert_eq!((t, y), (0.0, [0.5, 0.0]));

    let settings = ImplicitIndex1::new(Stabilisation { rate: -1.0, value: 0.0, compliance: 0.0 });
    let system = Lagrangian::<_, f64>::new(PENDULUM);
    let mut state = system.start(0.0, &[0.5, -1.2], &[0.0, 0.0]);
    assert!(matches!(system.steps(&settings, &mut state, 0.1, 1), Err(StepError::Setting { .. })));
}

/// Multipliers at a state, as outputs and objectives want them.
#[test]
fn multipliers_at_a_projected_state_agree() {
    let system = Lagrangian::<_, f64>::new(TWICE);
    let start = pendulum_motion(&PENDULUM, START);
    let mut state = system.start(0.0, &start[..2], &start[2..4]);
    system.steps(&Ali3p::DEFAULT, &mut state, 1e-3, 500).unwrap();
    let view = system.view(&mut state);
    let (mut zd, mut vd, mut lambda) = ([0.0; 2], [0.0; 2], [0.0; 2]);
    let at = At { t: *view.t, z: view.z, v: view.zd, x: &[], u: &[] };
    Index1::new(&system).multipliers(at, &mut [], &mut zd, &mut vd, &mut lambda).unwrap();
    // The step's are those of zd before its projection, which differs by (h²/6) zddd: no force here depends on it.
    assert!(distance(&lambda, view.lambda) < 1e-6, "{lambda:?} {:?}", view.lambda);
    assert!(distance(&vd, view.zdd) < 1e-6);
}

/// A mass that a stiff spring and damper pull along cos t, which it follows exactly: z'' = −cos t − d (z' + sin t) − k (z − cos t).
#[derive(Clone, Copy)]
struct Follower {
    stiffness: f64,
    damping: f64,
}

impl Mechanism for Follower {
    const NQ: usize = 1;
    const HOLONOMIC: usize = 0;

    fn kinetic<S: Scalar>(&self, _: &[S], _: &[S], zd: &[S]) -> S {
        S::from_f64(0.5) * zd[0] * zd[0]
    }

    fn force<S: Scalar>(&self, _: &[S], t: S, z: &[S], zd: &[S], _: &[S], q: &mut [S]) {
        let (sin, cos) = t.sin_cos();
        q[0] = -cos - S::from_f64(self.damping) * (zd[0] + sin) - S::from_f64(self.stiffness) * (z[0] - cos);
    }
}

/// Steps far beyond what explicit methods can take: h times the fastest rate is 50 and more.
#[test]
fn implicit_stages_take_stiff_motion() {
    let system = Lagrangian::<_, f64>::new(Follower { stiffness: 1e6, damping: 2e3 });
    let system = Stiff(&system);
    let error = |h: f64| {
        let mut y = [1.0, 0.0];
        run(&system, &Fixed { method: Sdirk4, h }, &mut y, 2.0);
        [(y[0] - 2_f64.cos()).abs(), (y[1] + 2_f64.sin()).abs()]
    };
    // Stages of order 2 leave order 2 in the stiff limit: h times the rate is 100 and 50 here.
    let ([z, v], [_, fine]) = (error(0.1), error(0.05));
    assert!(z < 1e-6 && v < 5e-4 && order(v, fine) > 2.0, "{z:e} {v:e} {fine:e}");
    // A start off the slow motion dies within a few steps.
    let mut y = [1.1, 0.0];
    run(&system, &Fixed { method: Sdirk4, h: 0.1 }, &mut y, 2.0);
    assert!(distance(&y, &[2_f64.cos(), -2_f64.sin()]) < 5e-4, "{y:?}");
    // Under step control: an explicit method is held to steps of 3.3 over the fastest rate by its stability, 600 of them.
    fn steps<M: ForwardDynamics<S = f64>>(system: &M, control: &impl Integrator) -> usize {
        let mut y = [1.0, 0.0];
        let span = Span { start: 0.0, end: 2.0, output: Output::Steps };
        let mut scratch = vec![0.0; control.scratch_len(&system.dims())];
        let go_on = |_: At<'_, f64>| ControlFlow::Continue(());
        let statistics = control.run(system, &mut NoInputs, &mut y, &span, &mut scratch, go_on).unwrap();
        assert!(distance(&y, &[2_f64.cos(), -2_f64.sin()]) < 1e-5, "{y:?}");
        statistics.steps
    }
    let implicit = steps(&system, &Adaptive::of(Sdirk4, 1e-6, 1e-6));
    let explicit = steps(&system, &Adaptive::new(1e-6, 1e-6));
    assert!(4 * implicit < explicit, "{implicit} {explicit}");
}

/// Dense output between the ends of a step.
#[test]
fn implicit_stages_have_dense_output() {
    let system = Lagrangian::<_, f64>::new(PENDULUM);
    let system = Index1::new(&system);
    let system = Stiff(&system);
    for theta in [0.2, 0.5, 0.9] {
        let error = |h: f64| {
            let mut y = pendulum_motion(&PENDULUM, START)[..4].to_vec();
            let method = Adaptive { h_first: Some(h), ..Adaptive::of(Sdirk4, 1.0, 1.0) };
            let mut scratch = vec![0.0; method.scratch_len(&system.dims())];
            let mut memory = Memory::new(0.0);
            let step = method.step(&system, &mut NoInputs, &mut memory, &mut y, 10.0, &mut scratch).unwrap();
            assert_eq!(step.h, h);
            method.dense(&system, &step, theta, &mut scratch, &mut y).unwrap();
            distance(&y, &pendulum_motion(&PENDULUM, pendulum_angle(PENDULUM.length, START, theta * h))[..4])
        };
        let measured = order(error(1.0 / 32.0), error(1.0 / 64.0));
        assert!((measured - 5.0).abs() < 0.3, "{theta}: {measured}");
    }
}

/// A system that does not know its derivatives is refused by name, not stepped.
#[test]
fn implicit_stages_need_derivatives() {
    let system = Lagrangian::<_, f64>::new(PENDULUM);
    let mut y = pendulum_motion(&PENDULUM, START)[..4].to_vec();
    let (system, method) = (Index1::new(&system), Fixed { method: Sdirk4, h: 0.1 });
    let mut scratch = vec![0.0; method.scratch_len(&system.dims())];
    let span = Span { start: 0.0, end: 1.0, output: Output::Steps };
    let go_on = |_: At<'_, f64>| ControlFlow::Continue(());
    let refused = method.run(&system, &mut NoInputs, &mut y, &span, &mut scratch, go_on).unwrap_err();
    assert!(refused.to_string().contains("joint_linearise"), "{refused}");
}
