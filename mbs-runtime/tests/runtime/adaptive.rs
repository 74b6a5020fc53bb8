//! Adaptive steps: tolerance, dense output, reuse of the last stage, copies, failures.

use std::ops::ControlFlow;

use crate::systems::{Driven, FreeBody, Kepler, Oscillator, bits, distance, order};
use mbs_runtime::inputs::{NoInputs, from_fn};
use mbs_runtime::integrator::{Controlled, Memory};
use mbs_runtime::system::{array, array_mut};
use mbs_runtime::{
    Adaptive, At, Complex64, Dims, Dop853, DormandPrince, EvalError, ForwardDynamics, Hold, Integrator,
    Output, Quantity, Scalar, Span, Statistics, StepError, System,
};

const GO_ON: ControlFlow<()> = ControlFlow::Continue(());

fn run<T: Controlled, M: ForwardDynamics>(
    method: &Adaptive<T>,
    system: &M,
    y: &mut [M::S],
    end: M::S,
) -> Result<Statistics, StepError> {
    let mut scratch = vec![M::S::ZERO; Integrator::scratch_len(method, &system.dims())];
    let span = Span { start: M::S::ZERO, end, output: Output::Steps };
    method.run(system, &mut NoInputs, y, &span, &mut scratch, |_| GO_ON)
}

#[test]
fn the_error_follows_the_tolerance() {
    fn check(method: impl Controlled, bound: f64) {
        let kepler = Kepler { eccentricity: 0.5 };
        let end = 6.0;
        let error = |tolerance| {
            let mut y = kepler.start();
            run(&Adaptive::of(method, tolerance, tolerance), &kepler, &mut y, end).unwrap();
            distance(&y, &kepler.exact(end))
        };
        let errors: Vec<f64> = (4..=11).map(|k| error(10f64.powi(-k))).collect();
        // Decades of error per decade of tolerance.
        let slope = (errors[0] / errors[7]).log10() / 7.0;
        assert!((slope - 1.0).abs() < bound, "{slope} {errors:?}");
    }
    check(DormandPrince, 0.1);
    // Long steps: the estimate has the order of the error only below them.
    check(Dop853, 0.25);
}

/// Effort is part of the contract: a change here is a change of the method.
#[test]
fn effort_is_pinned() {
    fn check(method: impl Controlled, expected: [(usize, usize, usize); 2]) {
        for (eccentricity, expected) in [0.5, 0.9].into_iter().zip(expected) {
            let kepler = Kepler { eccentricity };
            let mut y = kepler.start();
            let statistics = run(&Adaptive::of(method, 1e-8, 1e-8), &kepler, &mut y, 20.0).unwrap();
            assert_eq!((statistics.t, statistics.stopped), (20.0, false));
            assert_eq!((statistics.steps, statistics.rejected, statistics.evaluations), expected);
        }
    }
    check(DormandPrince, [(238, 0, 1430), (405, 25, 2582)]);
    check(Dop853, [(70, 24, 1105), (143, 55, 2322)]);
}

/// Error inside one step from an exact state: one order above that of the interpolant.
#[test]
fn the_dense_output_has_orders_4_and_7() {
    fn check(method: impl Controlled, h: f64, expected: f64) {
        let kepler = Kepler { eccentricity: 0.3 };
        let start = 0.4;
        for theta in [0.2, 0.5, 0.9] {
            let error = |h: f64| {
                let mut y = kepler.exact(start);
                let mut scratch = [0.0; 100];
                let method = Adaptive { h_first: Some(h), ..Adaptive::of(method, 1.0, 1.0) };
                let mut memory = Memory::new(start);
                let step = method
                    .step(&kepler, &mut NoInputs, &mut memory, &mut y, start + 10.0, &mut scratch)
                    .unwrap();
                assert_eq!(step.h, h);
                method.extend(&kepler, &mut NoInputs, &step, memory.t, &mut scratch).unwrap();
                method.dense(&kepler, &step, theta, &mut scratch, &mut y).unwrap();
                distance(&y, &kepler.exact(start + theta * h))
            };
            let measured = order(error(h), error(h / 2.0));
            assert!((measured - expected).abs() < 0.3, "{theta}: {measured} {}", error(h));
        }
    }
    check(DormandPrince, 1.0 / 64.0, 5.0);
    check(Dop853, 1.0 / 4.0, 8.0);
}

/// The states within a step of the method of order 8 need evaluations of their own, once, and are not guessed without them; the run is the
/// same, bit for bit.
#[test]
fn a_step_is_looked_into_only_on_request() {
    let kepler = Kepler { eccentricity: 0.5 };
    let method = Adaptive::of(Dop853, 1e-9, 1e-9);
    let mut scratch = [0.0; 100];
    let (mut memory, mut y) = (Memory::new(0.0), kepler.start());
    let step = method.step(&kepler, &mut NoInputs, &mut memory, &mut y, 5.0, &mut scratch).unwrap();
    let refused = method.dense(&kepler, &step, 0.5, &mut scratch, &mut y).unwrap_err();
    assert!(refused.to_string().contains("Adaptive::extend"), "{refused}");
    assert_eq!(method.extend(&kepler, &mut NoInputs, &step, memory.t, &mut scratch), Ok(4));
    assert_eq!(method.extend(&kepler, &mut NoInputs, &step, memory.t, &mut scratch), Ok(0));
    method.dense(&kepler, &step, 0.5, &mut scratch, &mut y).unwrap();

    let seen = |output: Output| {
        let mut y = kepler.start();
        let span = Span { start: 0.0, end: 5.05, output };
        let mut outputs = 0;
        let watch = |_: At<'_, f64>| {
            outputs += 1;
            GO_ON
        };
        let statistics = method.run(&kepler, &mut NoInputs, &mut y, &span, &mut [0.0; 100], watch).unwrap();
        (statistics, bits(&y), outputs)
    };
    let (plain, end, steps) = seen(Output::Steps);
    assert_eq!(steps, plain.steps + 1);
    // A result in every step: three stages and the rate at the end of each.
    let (dense, same, outputs) = seen(Output::Every(0.01));
    assert_eq!((same, outputs), (end.clone(), 506));
    assert_eq!((dense.steps, dense.evaluations), (plain.steps, plain.evaluations + 4 * plain.steps));
    // One result alone: its step.
    let (dense, same, outputs) = seen(Output::Every(3.0));
    assert_eq!((same, outputs, dense.evaluations), (end, 3, plain.evaluations + 4));
}

#[test]
fn output_times_are_dense_and_the_end_is_exact() {
    let kepler = Kepler { eccentricity: 0.5 };
    let (mut times, mut worst) = (Vec::new(), 0.0_f64);
    let mut y = kepler.start();
    let span = Span { start: 0.0, end: 5.05, output: Output::Every(0.1) };
    let statistics = Adaptive::new(1e-9, 1e-9)
        .run(&kepler, &mut NoInputs, &mut y, &span, &mut [0.0; 64], |at| {
            times.push(at.t);
            worst = worst.max(distance(&[at.z[0], at.z[1], at.v[0], at.v[1]], &kepler.exact(at.t)));
            GO_ON
        })
        .unwrap();
    let expected: Vec<f64> = (0..=50).map(|k| k as f64 * 0.1).chain([5.05]).collect();
    assert_eq!(times, expected);
    assert!(worst < 1e-7, "{worst}");
    assert!(statistics.steps < 120, "{statistics:?}");

    // An output time that is the end up to rounding is the end.
    let mut times = Vec::new();
    let span = Span { start: 0.0, end: 0.3, output: Output::Every(0.1) };
    Adaptive::new(1e-9, 1e-9)
        .run(&kepler, &mut NoInputs, &mut kepler.start(), &span, &mut [0.0; 64], |at| {
            times.push(at.t);
            GO_ON
        })
        .unwrap();
    assert_eq!(times, [0.0, 0.1, 0.2, 0.3]);
}

#[test]
fn euler_parameters_are_normal_at_every_output() {
    let body = FreeBody { across: 1.0, along: 2.5 };
    let span = Span { start: 0.0, end: 10.0, output: Output::Every(0.03) };
    let mut y = body.start();
    let (mut drift, mut worst) = (0.0_f64, 0.0_f64);
    Adaptive::new(1e-6, 1e-6)
        .run(&body, &mut NoInputs, &mut y, &span, &mut [0.0; 128], |at| {
            drift = drift.max((at.z.iter().map(|p| p * p).sum::<f64>() - 1.0).abs());
            worst = worst.max(distance(at.z, &body.exact(at.t)));
            GO_ON
        })
        .unwrap();
    assert!(drift < 4.0 * f64::EPSILON, "{drift}");
    assert!(worst < 1e-4, "{worst}");
}

#[test]
fn the_observer_can_stop_between_steps() {
    let system = Oscillator { omega: 1.0 };
    let mut y = system.start();
    let span = Span { start: 0.0, end: 5.0, output: Output::Every(0.01) };
    let statistics = Adaptive::new(1e-8, 1e-8)
        .run(&system, &mut NoInputs, &mut y, &span, &mut [0.0; 64], |at| {
            if at.z[0] < 0.0 { ControlFlow::Break(()) } else { GO_ON }
        })
        .unwrap();
    assert!(statistics.stopped && y[0] < 0.0);
    assert!(distance(&y, &system.exact(statistics.t)) < 1e-7);
}

/// Stepping by hand evaluates the first stage anew, a run takes it from the step before: the bits are the same.
#[test]
fn steps_by_hand_equal_the_run_and_copies_equal_the_original() {
    fn check<T: Controlled, M: ForwardDynamics<S = f64>, const N: usize>(
        method: T,
        system: &M,
        start: [f64; N],
        reused: bool,
    ) {
        let method = Adaptive::of(method, 1e-7, 1e-9);
        let input = |t: f64, u: &mut [f64]| u.fill(Driven::input(t));
        let end = 7.0;
        let mut y = start;
        let span = Span { start: 0.0, end, output: Output::Steps };
        let mut states = Vec::new();
        let statistics = method
            .run(system, &mut from_fn(input), &mut y, &span, &mut [0.0; 300], |at| {
                states.push((at.t, bits(at.z), bits(at.v)));
                GO_ON
            })
            .unwrap();

        let (mut memory, mut y) = (Memory::new(0.0), start);
        let (mut by_hand, mut evaluations) = (0, 0);
        while memory.t < end {
            let (mut memory_copy, mut y_copy) = (memory, y);
            let step = |memory: &mut Memory<f64>, y: &mut [f64], fill: f64| {
                method.step(system, &mut from_fn(input), memory, y, end, &mut [fill; 300]).unwrap()
            };
            evaluations += step(&mut memory, &mut y, 0.0).evaluations;
            step(&mut memory_copy, &mut y_copy, f64::NAN);
            assert_eq!((memory, bits(&y)), (memory_copy, bits(&y_copy)));
            by_hand += 1;
            let nq = system.dims().nq;
            assert_eq!(states[by_hand], (memory.t, bits(&y[..nq]), bits(&y[nq..])));
        }
        assert_eq!(by_hand, statistics.steps);
        let saved = if reused { by_hand - 1 } else { 0 };
        assert_eq!(statistics.evaluations, evaluations - saved);
    }
    let body = FreeBody { across: 1.0, along: 2.5 };
    check(DormandPrince, &body, body.start(), true);
    check(Dop853, &body, body.start(), false);
    for (hold, reused) in [(Hold::Zero, false), (Hold::Linear, true), (Hold::Signal, true)] {
        let system = Driven { hold: [hold] };
        check(DormandPrince, &system, system.start(), reused);
        check(Dop853, &system, system.start(), false);
    }
}

#[test]
fn a_signal_is_followed_to_the_tolerance() {
    let system = Driven { hold: [Hold::Signal] };
    let mut y = system.start();
    let span = Span { start: 0.0, end: 3.0, output: Output::Every(0.25) };
    let mut inputs = from_fn(|t, u: &mut [f64]| u.fill(Driven::input(t)));
    Adaptive::new(1e-10, 1e-10)
        .run(&system, &mut inputs, &mut y, &span, &mut [0.0; 64], |at| {
            assert_eq!(at.u, [Driven::input(at.t)]);
            GO_ON
        })
        .unwrap();
    assert!(distance(&y, &system.exact(3.0)) < 1e-8);
}

#[test]
fn a_limit_does_not_shrink_the_next_step() {
    let system = Oscillator { omega: 1.0 };
    let method = Adaptive::new(1e-6, 1e-6);
    let (mut memory, mut y) = (Memory::new(0.0), system.start());
    let mut step = |memory: &mut Memory<f64>, limit: f64| {
        method.step(&system, &mut NoInputs, memory, &mut y, limit, &mut [0.0; 64]).unwrap()
    };
    for _ in 0..5 {
        step(&mut memory, 100.0);
    }
    let proposed = memory.h;
    let limit = memory.t + 1e-6 * proposed;
    step(&mut memory, limit);
    assert_eq!(memory.t, limit);
    assert_eq!(memory.h, proposed);
}

#[test]
fn single_precision() {
    let system = Oscillator { omega: 2.0_f32 };
    let mut y = system.start();
    let statistics = run(&Adaptive::new(1e-4, 1e-4), &system, &mut y, 3.0).unwrap();
    assert_eq!(statistics.t, 3.0);
    let exact = system.exact(3.0);
    assert!((y[0] - exact[0]).abs() < 2e-3 && (y[1] - exact[1]).abs() < 2e-3, "{y:?} {exact:?}");
}

#[test]
fn the_derivative_is_that_of_the_frozen_steps() {
    derivatives_of_frozen_steps(DormandPrince);
    derivatives_of_frozen_steps(Dop853);
}

fn derivatives_of_frozen_steps(method: impl Controlled) {
    let method = Adaptive::of(method, 1e-10, 1e-10);
    let omega = 1.7;
    let mut y = Oscillator { omega }.start();
    let real = run(&method, &Oscillator { omega }, &mut y, 2.0).unwrap();

    let system = Oscillator { omega: Complex64::new(omega, 1e-30) };
    let mut y_complex = system.start();
    let complex = run(&method, &system, &mut y_complex, Complex64::from(2.0)).unwrap();
    assert_eq!(real, complex);
    assert_eq!(bits(&y), bits(&y_complex.map(|y| y.re)));
    let exact = system.exact(Complex64::from(2.0));
    let error = distance(&y_complex.map(|y| y.im / 1e-30), &exact.map(|y| y.im / 1e-30));
    assert!(error < 1e-8, "{error}");

    // By the end time: y' at the end.
    let system = Oscillator { omega: Complex64::from(omega) };
    let mut y = system.start();
    run(&method, &system, &mut y, Complex64::new(2.0, 1e-30)).unwrap();
    let rate = [y[1].re, -omega * omega * y[0].re];
    let error = distance(&y.map(|y| y.im / 1e-30), &rate);
    assert!(error < 1e-8, "{error}");
}

/// v' = 1/(1 − t)², which no step passes.
struct Wall;

impl System for Wall {
    type S = f64;
    fn dims(&self) -> Dims {
        Dims { nq: 1, nv: 1, ..Dims::ZERO }
    }
}

impl ForwardDynamics for Wall {
    fn forward_dynamics(
        &self,
        at: At<'_, f64>,
        _: &mut [f64],
        zd: &mut [f64],
        vd: &mut [f64],
        _: &mut [f64],
    ) -> Result<(), EvalError> {
        *array_mut("zd", zd)? = *array::<_, 1>("v", at.v)?;
        vd.fill(1.0 / ((1.0 - at.t) * (1.0 - at.t)));
        Ok(())
    }
}

/// v' = sqrt(1 − t), NaN after t = 1.
struct Cliff;

impl System for Cliff {
    type S = f64;
    fn dims(&self) -> Dims {
        Dims { nq: 1, nv: 1, ..Dims::ZERO }
    }
}

impl ForwardDynamics for Cliff {
    fn forward_dynamics(
        &self,
        at: At<'_, f64>,
        _: &mut [f64],
        zd: &mut [f64],
        vd: &mut [f64],
        _: &mut [f64],
    ) -> Result<(), EvalError> {
        zd.fill(0.0);
        vd.fill((1.0 - at.t).sqrt());
        Ok(())
    }
}

#[test]
fn a_wall_is_an_error() {
    let mut y = [0.0, 0.0];
    let error = run(&Adaptive::new(1e-8, 1e-8), &Wall, &mut y, 2.0).unwrap_err();
    let StepError::StepTooSmall { t, h, error: excess, quantity: Quantity::Velocity, index: 0 } = error
    else {
        panic!("{error:?}")
    };
    assert!(t < 1.0 && t > 0.999 && h < 1e-13 && excess > 1.0, "{error:?}");
    assert!(y[1].is_finite());
}

#[test]
fn a_cliff_is_approached_and_named() {
    let mut y = [0.0, 0.0];
    let error = run(&Adaptive::new(1e-6, 1e-6), &Cliff, &mut y, 2.0).unwrap_err();
    let StepError::NotFinite { t, h, quantity: Quantity::Velocity, index: 0 } = error else {
        panic!("{error:?}")
    };
    assert!(t <= 1.0 && t > 1.0 - 1e-6 && h < 1e-13, "{error:?}");
    assert!((y[1] - 2.0 / 3.0).abs() < 1e-5);

    // From a state without a rate no step is tried.
    let system = Oscillator { omega: f64::NAN };
    let mut y = [1.0, 0.0];
    let error = run(&Adaptive::new(1e-6, 1e-6), &system, &mut y, 1.0).unwrap_err();
    assert!(matches!(error, StepError::NotFinite { t: 0.0, quantity: Quantity::Velocity, index: 0, .. }));
    assert_eq!(y, [1.0, 0.0]);
}

#[test]
fn a_run_has_a_bound_on_its_steps() {
    let system = Oscillator { omega: 1.0 };
    let method = Adaptive { max_steps: 10, h_max: 0.01, ..Adaptive::new(1e-6, 1e-6) };
    let mut y = system.start();
    let error = run(&method, &system, &mut y, 1.0).unwrap_err();
    let StepError::TooManySteps { t, steps: 10, .. } = error else { panic!("{error:?}") };
    assert!(distance(&y, &system.exact(t)) < 1e-6);
}

#[test]
fn settings_are_checked() {
    let system = Oscillator { omega: 1.0 };
    let good = Adaptive::new(1e-6, 1e-6);
    for bad in [
        Adaptive { atol: 0.0, ..good },
        Adaptive { rtol: -1.0, ..good },
        Adaptive { rtol: f64::NAN, ..good },
        Adaptive { h_first: Some(0.0), ..good },
        Adaptive { h_min: f64::NAN, ..good },
        Adaptive { h_max: 0.0, ..good },
        Adaptive { h_max: 0.1, h_min: 0.2, ..good },
    ] {
        let error = run(&bad, &system, &mut system.start(), 1.0).unwrap_err();
        assert!(matches!(error, StepError::Setting { .. }), "{bad:?}: {error}");
    }
    let (mut memory, mut y) = (Memory::new(1.0), system.start());
    let error = good.step(&system, &mut NoInputs, &mut memory, &mut y, 1.0, &mut [0.0; 64]).unwrap_err();
    assert!(matches!(error, StepError::Setting { .. }));
    let error = good.step(&system, &mut NoInputs, &mut memory, &mut y, 2.0, &mut [0.0; 4]).unwrap_err();
    assert_eq!(error, StepError::Length { what: "scratch", expected: 18, found: 4 });
}

#[test]
fn a_system_without_states_runs() {
    struct Nothing;
    impl System for Nothing {
        type S = f64;
        fn dims(&self) -> Dims {
            Dims::ZERO
        }
    }
    impl ForwardDynamics for Nothing {
        fn forward_dynamics(
            &self,
            _: At<'_, f64>,
            _: &mut [f64],
            _: &mut [f64],
            _: &mut [f64],
            _: &mut [f64],
        ) -> Result<(), EvalError> {
            Ok(())
        }
    }
    let statistics = run(&Adaptive::new(1e-6, 1e-6), &Nothing, &mut [], 1.0).unwrap();
    assert_eq!(statistics.t, 1.0);
}
