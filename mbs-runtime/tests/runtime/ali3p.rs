//! The augmented Lagrangian formulation of index 3 with projections: order, constraints, redundancy, failures.

use crate::systems::lagrangian::{Lagrangian, Mechanism};
use crate::systems::mechanisms::{
    Body, DrivenCart, MeasuredSpring, Pendulum, Pursuit, Pushed, pendulum_angle, pendulum_motion,
};
use crate::systems::{FreeBody, bits, distance, order};
use mbs_runtime::inputs::{NoInputs, from_fn};
use mbs_runtime::{
    Ali3p, Assembly, Complex64, Hold, Implicit, Level, Penalty, ProjectionMatrix, Quantity, State, StepError,
    Tangent,
};

const PENDULUM: Pendulum<1> = Pendulum { mass: 2.0, length: 1.3 };
const TWICE: Pendulum<2> = Pendulum { mass: 2.0, length: 1.3 };
const START: [f64; 2] = [1.1, -0.7];

const ALPHA: fn(f64) -> Implicit = |spectral_radius| Implicit::GeneralizedAlpha { spectral_radius };

fn start_pendulum<const COPIES: usize>(system: &Lagrangian<Pendulum<COPIES>, f64>) -> Vec<f64> {
    let exact = pendulum_motion(&PENDULUM, START);
    system.start(0.0, &exact[0..2], &exact[2..4])
}

/// Errors of z, zd, zdd, λ at time 1.
fn pendulum_errors(settings: &Ali3p, steps: usize) -> [f64; 4] {
    let system = Lagrangian::new(PENDULUM);
    let mut state = start_pendulum(&system);
    system.steps(settings, &mut state, 1.0 / steps as f64, steps).unwrap();
    let exact = pendulum_motion(&PENDULUM, pendulum_angle(PENDULUM.length, START, 1.0));
    let view = system.view(&mut state);
    [
        distance(view.z, &exact[0..2]),
        distance(view.zd, &exact[2..4]),
        distance(view.zdd, &exact[4..6]),
        distance(view.lambda, &exact[6..7]),
    ]
}

/// The measured order, for errors at n and 2n steps, is 2 up to the next term, of relative size C/n.
fn check_order<const N: usize>(name: &str, steps: usize, errors: impl Fn(usize) -> [f64; N], c: f64) {
    let (coarse, fine) = (errors(steps), errors(2 * steps));
    for (coarse, fine) in coarse.iter().zip(fine) {
        let measured = order(*coarse, fine);
        assert!((measured - 2.0).abs() < c / steps as f64, "{name} {steps}: {coarse} {fine} {measured}");
    }
}

#[test]
fn the_pendulum_has_order_2_in_all_it_computes() {
    let integrators = [
        Implicit::TRAPEZOIDAL,
        Implicit::Newmark { beta: 0.3, gamma: 0.5 },
        ALPHA(1.0),
        ALPHA(0.8),
        ALPHA(0.5),
        ALPHA(0.0),
    ];
    for integrator in integrators {
        let settings = Ali3p { integrator, ..Ali3p::DEFAULT };
        for steps in [100, 1000, 10_000] {
            check_order(&format!("{integrator:?}"), steps, |steps| pendulum_errors(&settings, steps), 20.0);
        }
    }
    // Down to h = 1e-5, where the multipliers of the index-3 step itself are lost in rounding.
    let settings = Ali3p::DEFAULT;
    let (coarse, fine) = (pendulum_errors(&settings, 10_000), pendulum_errors(&settings, 100_000));
    for (coarse, fine) in coarse.iter().zip(fine) {
        assert!((0.5 * order(*coarse, fine) / 10_f64.log2() - 1.0).abs() < 0.01, "{coarse} {fine}");
    }
}

#[test]
fn other_projections_and_tangents_have_order_2() {
    for projection in [ProjectionMatrix::Mass, ProjectionMatrix::Tangent] {
        for tangent in [Tangent::Exact, Tangent::Reused] {
            let settings = Ali3p { projection, tangent, ..Ali3p::DEFAULT };
            let name = format!("{projection:?} {tangent:?}");
            check_order(&name, 1000, |steps| pendulum_errors(&settings, steps), 20.0);
        }
    }
}

/// What the projections give to the multipliers: without them order 1.
#[test]
fn multipliers_of_the_step_alone_have_order_1() {
    let system = Lagrangian::new(PENDULUM);
    let error = |steps: usize| {
        let mut state = start_pendulum(&system);
        let h = 1.0 / steps as f64;
        system.steps(&Ali3p::DEFAULT, &mut state, h, steps - 1).unwrap();
        let plain = Ali3p { max_projections: 0, ..Ali3p::DEFAULT };
        system.steps(&plain, &mut state, h, 1).unwrap();
        let exact = pendulum_motion(&PENDULUM, pendulum_angle(PENDULUM.length, START, 1.0));
        (system.view(&mut state).lambda[0] - exact[6]).abs()
    };
    let measured = order(error(500), error(1000));
    assert!((measured - 1.0).abs() < 0.02, "{measured}");
}

#[test]
fn constraints_hold_at_three_levels() {
    let system = Lagrangian::new(PENDULUM);
    for h in [1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6] {
        let mut state = start_pendulum(&system);
        system.steps(&Ali3p::DEFAULT, &mut state, h, 50).unwrap();
        // Accelerations are about ten.
        let [phi, phid, phidd] = system.violations(&mut state);
        assert!(phi < 1e-14 && phid < 1e-14 && phidd < 1e-13, "{h}: {phi:e} {phid:e} {phidd:e}");
    }
}

/// A constraint that is written twice, in two ways: same motion, multipliers of least norm, no drift.
#[test]
fn redundant_constraints_change_nothing() {
    let (once, twice) = (Lagrangian::new(PENDULUM), Lagrangian::new(TWICE));
    let (mut a, mut b) = (start_pendulum(&once), start_pendulum(&twice));
    assert_eq!((*once.view(&mut a).redundant, *twice.view(&mut b).redundant), (0.0, 1.0));
    let compare = |a: &mut [f64], b: &mut [f64], allowed: f64| {
        let (a, b) = (once.view(a), twice.view(b));
        assert!(distance(a.z, b.z) < allowed, "{}", distance(a.z, b.z));
        assert!(distance(a.zd, b.zd) < 4.0 * allowed, "{}", distance(a.zd, b.zd));
        // λ1 + λ2/L is what acts; of all such pairs the shortest is along (1, 1/L).
        let inverse = 1.0 / PENDULUM.length;
        let part = a.lambda[0] / (1.0 + inverse * inverse);
        assert!(distance(b.lambda, &[part, part * inverse]) < 100.0 * allowed, "{:?} {part}", b.lambda);
    };
    compare(&mut a, &mut b, 1e-13);
    once.steps(&Ali3p::DEFAULT, &mut a, 1e-3, 1000).unwrap();
    twice.steps(&Ali3p::DEFAULT, &mut b, 1e-3, 1000).unwrap();
    compare(&mut a, &mut b, 1e-11);
    // Both runs are solved to the tolerance, 1e-10 of the motion in a step; over 1e5 steps that adds up.
    once.steps(&Ali3p::DEFAULT, &mut a, 1e-3, 99_000).unwrap();
    twice.steps(&Ali3p::DEFAULT, &mut b, 1e-3, 99_000).unwrap();
    compare(&mut a, &mut b, 1e-8);
    let [phi, phid, phidd] = twice.violations(&mut b);
    assert!(phi < 1e-14 && phid < 1e-14 && phidd < 1e-13, "{phi:e} {phid:e} {phidd:e}");
}

/// With the feature `independent` such rows are refused by name at the start, and others are not.
#[cfg(feature = "independent")]
#[test]
fn rows_that_depend_on_each_other_are_refused() {
    let (once, twice) = (Lagrangian::new(PENDULUM), Lagrangian::new(TWICE));
    system_starts(&once).unwrap();
    let refused = system_starts(&twice).unwrap_err();
    assert!(
        matches!(refused, StepError::Unsupported { what } if what.contains("depend on each other")),
        "{refused:?}"
    );
}

#[cfg(feature = "independent")]
fn system_starts<const COPIES: usize>(system: &Lagrangian<Pendulum<COPIES>, f64>) -> Result<(), StepError> {
    let exact = pendulum_motion(&PENDULUM, START);
    let mut state = system.guess(0.0, &exact[0..2], &exact[2..4]);
    let mut scratch = vec![0.0; Assembly::scratch_len(&Lagrangian::<Pendulum<COPIES>, f64>::DIMS)];
    Assembly::DEFAULT.start(system, &mut NoInputs, &mut state, &mut scratch).map(|_| ())
}

/// Nonholonomic rows and a massless variable [Dopico2018, 4.2].
#[test]
fn the_pursuit_has_order_2() {
    for force in [1.0, 5.0, 10.0] {
        let system = Lagrangian::new(Pursuit { force });
        let (z, zd) = Pursuit::start();
        let (z_exact, zd_exact) = system.mechanism.exact(5.0);
        let errors = |steps: usize| {
            let mut state = system.start(0.0, &z, &zd);
            system.steps(&Ali3p::DEFAULT, &mut state, 5.0 / steps as f64, steps).unwrap();
            let [phi, phid, phidd] = system.violations(&mut state);
            assert!(phi < 1e-13 && phid < 1e-13 && phidd < 1e-12, "{phi:e} {phid:e} {phidd:e}");
            let view = system.view(&mut state);
            [distance(view.z, &z_exact), distance(view.zd, &zd_exact)]
        };
        check_order(&format!("{force}"), 500, errors, 50.0);
        let [z, zd] = errors(5000);
        assert!(z < 1e-6 && zd < 1e-6, "{force}: {z:e} {zd:e}");
    }
}

#[test]
fn a_driven_mechanism_has_order_2() {
    let system = Lagrangian::new(DrivenCart);
    let start = DrivenCart::exact(0.0);
    let exact = DrivenCart::exact(1.5);
    let errors = |steps: usize| {
        let mut state = system.start(0.0, &start[0..2], &start[2..4]);
        let view = system.view(&mut state);
        assert!(distance(view.zdd, &start[4..6]) < 1e-13 && distance(view.lambda, &start[6..7]) < 1e-12);
        system.steps(&Ali3p::DEFAULT, &mut state, 1.5 / steps as f64, steps).unwrap();
        let [phi, phid, phidd] = system.violations(&mut state);
        assert!(phi < 1e-14 && phid < 1e-14 && phidd < 1e-13);
        let view = system.view(&mut state);
        // x itself is exact.
        [
            distance(&view.z[1..], &exact[1..2]),
            distance(&view.zd[1..], &exact[3..4]),
            distance(&view.zdd[1..], &exact[5..6]),
            distance(view.lambda, &exact[6..7]),
        ]
    };
    check_order("cart", 500, errors, 20.0);
}

#[test]
fn a_rotating_body_keeps_its_norm_its_energy_and_its_order() {
    let body = Body { across: 1.0, along: 2.5 };
    let system = Lagrangian::<_, f64>::new(body);
    let [a, b, c] = FreeBody::RATE;
    // pd = |p| ω/2 with |p| = 2
    let zd = [0.0, a, b, c];
    let exact = FreeBody { across: 1.0, along: 2.5 }.exact(2.0);
    let energy = 0.5 * (a * a + b * b) + 0.5 * 2.5 * c * c;
    let errors = |steps: usize| {
        // The guess is not normalised.
        let mut state = system.start(0.0, &[2.0, 0.0, 0.0, 0.0], &zd);
        system.steps(&Ali3p::DEFAULT, &mut state, 2.0 / steps as f64, steps).unwrap();
        let [phi, phid, phidd] = system.violations(&mut state);
        assert!(phi < 1e-14 && phid < 1e-14 && phidd < 1e-13, "{phi:e} {phid:e} {phidd:e}");
        let view = system.view(&mut state);
        // Of a symmetric body the rule keeps it, but for rounding of a thousand steps and the tolerance of each.
        assert!((body.kinetic(&[], view.z, view.zd) - energy).abs() < 1e-12);
        [distance(view.z, &exact)]
    };
    check_order("body", 500, errors, 20.0);
    // No force acts along p.
    let mut state = system.start(0.0, &[1.0, 0.0, 0.0, 0.0], &zd);
    system.steps(&Ali3p::DEFAULT, &mut state, 1e-2, 100).unwrap();
    assert!(system.view(&mut state).lambda[0].abs() < 1e-10);
}

#[test]
fn a_massless_variable_has_order_2() {
    let system = Lagrangian::new(MeasuredSpring);
    let exact = MeasuredSpring::exact(1.0);
    let errors = |steps: usize| {
        let mut state = system.start(0.0, &[1.0, 1.0], &[0.0, 0.0]);
        // s follows x only if it is not held: here the guess of both moves.
        let x = system.view(&mut state).z[0];
        let start = [x, x * x * x / 3.0 + x];
        assert!(distance(system.view(&mut state).z, &start) < 1e-14);
        let mut state = system.start(0.0, &[1.0, 4.0 / 3.0], &[0.0, 0.0]);
        system.steps(&Ali3p::DEFAULT, &mut state, 1.0 / steps as f64, steps).unwrap();
        let view = system.view(&mut state);
        [(view.z[0] - exact[0]).abs(), (view.zd[0] - exact[1]).abs(), (view.lambda[0] - exact[2]).abs()]
    };
    check_order("spring", 500, errors, 20.0);
}

#[test]
fn inputs_are_held_by_their_rules() {
    // x'' = u, u = t: with a held input the end of a step knows u at its start.
    for (hold, expected) in [(Hold::Zero, 0.5), (Hold::Linear, 0.75), (Hold::Signal, 0.75)] {
        let system = Lagrangian::<_, f64>::new(Pushed { hold: [hold] });
        let mut state = system.guess(0.5, &[0.0], &[0.0]);
        system.view(&mut state).zdd[0] = 0.5;
        let mut inputs = from_fn(|t, u: &mut [f64]| u.fill(t));
        let mut scratch = vec![0.0; Ali3p::scratch_len(&Lagrangian::<Pushed, f64>::DIMS)];
        Ali3p::DEFAULT.step(&system, &mut inputs, &mut state, 0.25, &mut scratch).unwrap();
        let view = system.view(&mut state);
        assert_eq!((view.zdd[0], *view.t), (expected, 0.75));
        assert!((view.zd[0] - 0.125 * (0.5 + expected)).abs() < 1e-16);
    }
}

/// A given penalty converges or says that it does not; it never gives another solution.
#[test]
fn a_given_penalty_is_never_silently_wrong() {
    let system = Lagrangian::new(PENDULUM);
    let (mut converged, mut refused) = (0, 0);
    for h in [1e-2, 1e-3, 1e-4, 1e-5, 1e-6] {
        let mut reference = start_pendulum(&system);
        system.steps(&Ali3p::DEFAULT, &mut reference, h, 20).unwrap();
        for exponent in 2..=12 {
            let alpha = 10_f64.powi(exponent);
            for penalty in [Penalty::Given(alpha), Penalty::Rows] {
                let settings = Ali3p { penalty, ..Ali3p::DEFAULT };
                let mut state = start_pendulum(&system);
                system.view(&mut state).penalty.fill(alpha);
                match system.steps(&settings, &mut state, h, 20) {
                    Ok(_) => {
                        converged += 1;
                        let (found, expected) = (system.view(&mut state), system.view(&mut reference));
                        // Twenty steps, each to 1e-10 of the motion in it (about 5 h), or to rounding.
                        let allowed = 20.0 * (1e-10 * 5.0 * h).max(8.0 * 1.3 * f64::EPSILON);
                        let error = distance(found.z, expected.z);
                        assert!(error <= allowed, "alpha {alpha:e} h {h}: {error:e}");
                        // Multipliers of projected accelerations: what is left of positions does not reach them.
                        let error = distance(found.lambda, expected.lambda);
                        assert!(error <= 1e-7, "alpha {alpha:e} h {h}: {error:e}");
                    }
                    Err(error) => {
                        refused += 1;
                        let rod = (Quantity::Holonomic, 0);
                        assert!(
                            matches!(error, StepError::NotConverged { quantity, index, .. } if (quantity, index) == rod),
                            "{error:?}"
                        );
                    }
                }
            }
        }
    }
    // Both happen: large penalties at large steps, small ones at small steps.
    assert!(converged >= 40 && refused >= 20, "{converged} {refused}");
}

#[test]
fn a_row_that_is_switched_off_does_nothing() {
    let system = Lagrangian::new(TWICE);
    let mut state = start_pendulum(&system);
    let (z, zd) = (system.view(&mut state).z.to_vec(), system.view(&mut state).zd.to_vec());
    // One of two equal rows: the same motion. Its multiplier is zero.
    system.view(&mut state).active[1] = 0.0;
    let mut other = start_pendulum(&Lagrangian::new(PENDULUM));
    system.steps(&Ali3p::DEFAULT, &mut state, 1e-3, 100).unwrap();
    let once = Lagrangian::new(PENDULUM);
    once.steps(&Ali3p::DEFAULT, &mut other, 1e-3, 100).unwrap();
    assert!(distance(system.view(&mut state).z, once.view(&mut other).z) < 1e-13);
    assert_eq!(system.view(&mut state).lambda[1], 0.0);
    assert!(distance(&system.view(&mut state).lambda[..1], once.view(&mut other).lambda) < 1e-10);

    // Both: free fall, which the trapezoidal rule solves exactly.
    let mut state = system.guess(0.0, &z, &zd);
    system.view(&mut state).active.fill(0.0);
    let mut scratch = vec![0.0; Assembly::scratch_len(&Lagrangian::<Pendulum<2>, f64>::DIMS)];
    Assembly::DEFAULT.start(&system, &mut NoInputs, &mut state, &mut scratch).unwrap();
    system.steps(&Ali3p::DEFAULT, &mut state, 1e-2, 100).unwrap();
    let view = system.view(&mut state);
    assert!(distance(view.z, &[z[0] + zd[0], z[1] + zd[1] - 0.5 * 9.81]) < 1e-13);
    assert_eq!(view.lambda, [0.0; 2]);
}

#[test]
fn copies_give_the_same_bits() {
    let system = Lagrangian::new(TWICE);
    let settings = Ali3p { integrator: ALPHA(0.7), tangent: Tangent::Reused, ..Ali3p::DEFAULT };
    let mut state = start_pendulum(&system);
    system.steps(&settings, &mut state, 1e-2, 10).unwrap();
    let mut copy = state.clone();
    system.steps(&settings, &mut state, 1e-2, 10).unwrap();
    let mut scratch = vec![f64::NAN; Ali3p::scratch_len(&Lagrangian::<Pendulum<2>, f64>::DIMS) + 7];
    for _ in 0..10 {
        settings.step(&system, &mut NoInputs, &mut copy, 1e-2, &mut scratch).unwrap();
    }
    assert_eq!(bits(&state), bits(&copy));
}

#[test]
fn single_precision_steps_as_far_as_it_can() {
    let system = Lagrangian::<_, f32>::new(PENDULUM);
    let exact = pendulum_motion(&PENDULUM, START);
    for (h, steps) in [(1e-2, 100), (1e-3, 1000)] {
        let mut state = system.start(0.0, &exact[0..2], &exact[2..4]);
        system.steps(&Ali3p::DEFAULT, &mut state, h, steps).unwrap();
        let end = pendulum_motion(&PENDULUM, pendulum_angle(PENDULUM.length, START, 1.0));
        let [phi, phid, _] = system.violations(&mut state);
        assert!(phi < 1e-5 && phid < 1e-5, "{phi:e} {phid:e}");
        let z: Vec<f64> = system.view(&mut state).z.iter().map(|z| f64::from(*z)).collect();
        // The method's error, 1.7 h², and rounding of a thousand steps.
        assert!(distance(&z, &end[0..2]) < 2.0 * h * h + 1e-4, "{h}: {:e}", distance(&z, &end[0..2]));
    }
}

#[test]
fn a_complex_step_is_the_derivative_of_the_run() {
    let exact = pendulum_motion(&PENDULUM, START);
    let real = Lagrangian::<_, f64>::new(TWICE);
    let complex = Lagrangian::<_, Complex64>::new(TWICE);
    let tiny = 1e-30;
    // Along the circle, so that positions stay on it: d(z)/d(angle), d(zd)/d(angle).
    let mut state = complex.start(0.0, &exact[0..2], &exact[2..4]);
    {
        let view = complex.view(&mut state);
        let along = |re: &[Complex64]| [-re[1].re * tiny, re[0].re * tiny];
        for values in [view.z, view.zd] {
            let [a, b] = along(values);
            values[0].im = a;
            values[1].im = b;
        }
    }
    complex.steps(&Ali3p::DEFAULT, &mut state, 1e-2, 100).unwrap();
    let run = |shift: f64| {
        let moved = pendulum_motion(&PENDULUM, [START[0] + shift, START[1]]);
        let mut state = real.start(0.0, &moved[0..2], &moved[2..4]);
        // The complex run keeps the accelerations of its start: so must this one.
        let accelerations = start_pendulum(&real);
        let nq = 2;
        state[1 + 2 * nq..1 + 4 * nq].copy_from_slice(&accelerations[1 + 2 * nq..1 + 4 * nq]);
        real.steps(&Ali3p::DEFAULT, &mut state, 1e-2, 100).unwrap();
        let view = real.view(&mut state);
        [view.z.to_vec(), view.zd.to_vec(), view.zdd.to_vec(), view.lambda.to_vec()].concat()
    };
    let (after, before) = (run(3e-5), run(-3e-5));
    let view = complex.view(&mut state);
    let found = [&*view.z, view.zd, view.zdd, view.lambda].concat();
    for (found, (after, before)) in found.iter().zip(after.iter().zip(before)) {
        // Differences: 1e-9 of the third derivative, and rounding of the multipliers, some 1e-12, over the shift.
        let expected = (after - before) / 6e-5;
        assert!((found.im / tiny - expected).abs() < 3e-7 * (1.0 + expected.abs()), "{found:?} {expected}");
    }
}

#[test]
fn a_static_factor_that_fails_is_replaced() {
    let system = Lagrangian::new(PENDULUM);
    let (mut good, mut bad) = (start_pendulum(&system), start_pendulum(&system));
    let statistics = system.steps(&Ali3p::DEFAULT, &mut good, 1e-3, 100).unwrap();
    assert_eq!(statistics.fallbacks, 0);
    system.broken_factor.set(true);
    let statistics = system.steps(&Ali3p::DEFAULT, &mut bad, 1e-3, 100).unwrap();
    // One tangent, kept for the second iteration, and a projection.
    assert_eq!((statistics.tangents, statistics.fallbacks), (1, 2));
    assert_eq!(bits(&good), bits(&bad));
}

#[test]
fn failures_change_nothing_and_name_what_is_wrong() {
    let system = Lagrangian::new(TWICE);
    let mut state = start_pendulum(&system);
    let before = bits(&state);
    let mut attempt = |settings: Ali3p, h: f64| {
        let error = system.steps(&settings, &mut state, h, 1).unwrap_err();
        assert_eq!(bits(&state), before);
        error
    };

    let error = attempt(Ali3p { max_iterations: 1, ..Ali3p::DEFAULT }, 1e-2);
    let StepError::NotConverged { t: 0.0, h: 1e-2, iterations: 1, quantity: Quantity::Holonomic, .. } = error
    else {
        panic!("{error:?}")
    };
    let text = error.describe(&system).to_string();
    assert!(text.starts_with("at t = 0 with step 0.01: no convergence in 1 iteration,"), "{text}");
    assert!(text.contains("rod"), "{text}");

    system.false_rate.set(1.0);
    let error = attempt(Ali3p::DEFAULT, 1e-2);
    let StepError::NotProjected { level: Level::Velocity, quantity: Quantity::Holonomic, .. } = error else {
        panic!("{error:?}")
    };
    assert!(error.describe(&system).to_string().contains("no velocities satisfy"), "{error}");
    system.false_rate.set(0.0);

    let error = attempt(Ali3p { penalty: Penalty::Given(f64::NAN), ..Ali3p::DEFAULT }, 1e-2);
    assert!(matches!(error, StepError::Setting { .. }));
    for settings in [
        Ali3p { tolerance: 0.0, ..Ali3p::DEFAULT },
        Ali3p { integrator: ALPHA(1.5), ..Ali3p::DEFAULT },
        Ali3p { integrator: Implicit::Newmark { beta: 0.0, gamma: 0.5 }, ..Ali3p::DEFAULT },
        Ali3p { max_iterations: 0, ..Ali3p::DEFAULT },
        Ali3p { max_violation: f64::NAN, ..Ali3p::DEFAULT },
    ] {
        assert!(matches!(attempt(settings, 1e-2), StepError::Setting { .. }));
    }
    for h in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(attempt(Ali3p::DEFAULT, h), StepError::Setting { .. }));
    }
    // So large a step that nothing is finite any more.
    let error = attempt(Ali3p::DEFAULT, 1e200);
    assert!(matches!(error, StepError::Eval { .. } | StepError::NotFinite { .. }), "{error:?}");

    system.first_order_states.set(1);
    let error = attempt(Ali3p::DEFAULT, 1e-2);
    assert!(matches!(error, StepError::Setting { value: 1.0, .. }), "{error:?}");
    system.first_order_states.set(0);

    let dims = Lagrangian::<Pendulum<2>, f64>::DIMS;
    let length = Ali3p::scratch_len(&dims);
    let short = Ali3p::DEFAULT.step(&system, &mut NoInputs, &mut state, 1e-2, &mut vec![0.0; length - 1]);
    assert_eq!(short, Err(StepError::Length { what: "scratch", expected: length, found: length - 1 }));
    let long = &mut vec![0.0; State::<f64>::len(&dims) + 1];
    let found = Ali3p::DEFAULT.step(&system, &mut NoInputs, long, 1e-2, &mut vec![0.0; length]);
    assert!(matches!(found, Err(StepError::Length { what: "state", .. })));
    assert_eq!(bits(&state), before);
}
