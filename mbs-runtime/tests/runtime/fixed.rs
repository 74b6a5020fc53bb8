//! Fixed steps: order, landing, holding rules, copies, other scalars, failures.

use std::ops::ControlFlow;

use crate::systems::{Driven, FreeBody, Kepler, Oscillator, bits, distance, order};
use mbs_runtime::inputs::{Constant, NoInputs, from_fn};
use mbs_runtime::integrator::FixedStep;
use mbs_runtime::system::{Recursive, array, array_mut};
use mbs_runtime::{
    At, Complex64, Dims, Dop853, DormandPrince, EvalError, Fixed, ForwardDynamics, ForwardDynamicsRecursive,
    Hold, Inputs, Integrator, Output, Quantity, Rk4, Scalar, Span, Statistics, StepError, System,
};

const GO_ON: ControlFlow<()> = ControlFlow::Continue(());

fn run<T: FixedStep, M: ForwardDynamics>(
    method: T,
    system: &M,
    inputs: &mut impl Inputs<M::S>,
    y: &mut [M::S],
    end: M::S,
    h: f64,
) -> Result<Statistics, StepError> {
    let integrator = Fixed { method, h };
    let mut scratch = vec![M::S::ZERO; integrator.scratch_len(&system.dims())];
    let span = Span { start: M::S::ZERO, end, output: Output::Steps };
    integrator.run(system, inputs, y, &span, &mut scratch, |_| GO_ON)
}

/// Measured order of the final state's error, over the steps from `h` to a quarter of it.
fn measured_order<T: FixedStep + Copy, M: ForwardDynamics<S = f64>, const N: usize>(
    method: T,
    system: &M,
    start: [f64; N],
    exact: &[f64],
    end: f64,
    h: f64,
) -> f64 {
    let error = |h| {
        let mut y = start;
        run(method, system, &mut NoInputs, &mut y, end, h).unwrap();
        distance(&y[..exact.len()], exact)
    };
    0.5 * order(error(h), error(0.25 * h))
}

#[test]
fn rk4_has_order_4() {
    let kepler = Kepler { eccentricity: 0.3 };
    let measured = measured_order(Rk4, &kepler, kepler.start(), &kepler.exact(3.0), 3.0, 1.0 / 128.0);
    assert!((measured - 4.0).abs() < 0.1, "{measured}");
    let body = FreeBody { across: 1.0, along: 2.5 };
    let measured = measured_order(Rk4, &body, body.start(), &body.exact(2.0), 2.0, 1.0 / 64.0);
    assert!((measured - 4.0).abs() < 0.1, "{measured}");
}

#[test]
fn dormand_prince_has_order_5() {
    let kepler = Kepler { eccentricity: 0.7 };
    let measured =
        measured_order(DormandPrince, &kepler, kepler.start(), &kepler.exact(12.0), 12.0, 1.0 / 64.0);
    assert!((measured - 5.0).abs() < 0.1, "{measured}");
    let body = FreeBody { across: 1.0, along: 2.5 };
    let measured = measured_order(DormandPrince, &body, body.start(), &body.exact(2.0), 2.0, 1.0 / 32.0);
    assert!((measured - 5.0).abs() < 0.1, "{measured}");
}

#[test]
fn dop853_has_order_8() {
    let kepler = Kepler { eccentricity: 0.7 };
    let measured = measured_order(Dop853, &kepler, kepler.start(), &kepler.exact(3.0), 3.0, 1.0 / 16.0);
    assert!((measured - 8.0).abs() < 0.2, "{measured}");
    let body = FreeBody { across: 1.0, along: 2.5 };
    let measured = measured_order(Dop853, &body, body.start(), &body.exact(2.0), 2.0, 1.0 / 4.0);
    assert!((measured - 8.0).abs() < 0.5, "{measured}");
}

#[test]
fn euler_parameters_stay_normal() {
    let body = FreeBody { across: 1.0, along: 2.5 };
    let mut y = body.start();
    run(Rk4, &body, &mut NoInputs, &mut y, 50.0, 0.1).unwrap();
    let norm: f64 = y[..4].iter().map(|p| p * p).sum();
    assert!((norm - 1.0).abs() < 4.0 * f64::EPSILON, "{norm}");
}

/// x' = u for three inputs, each held in its own way: the step is the quadrature of what is held.
struct Quadrature;

impl System for Quadrature {
    type S = f64;
    fn dims(&self) -> Dims {
        Dims { nx: 3, nu: 3, ..Dims::ZERO }
    }
    fn holds(&self) -> &[Hold] {
        &[Hold::Zero, Hold::Linear, Hold::Signal]
    }
}

impl ForwardDynamics for Quadrature {
    fn forward_dynamics(
        &self,
        at: At<'_, f64>,
        _: &mut [f64],
        _: &mut [f64],
        _: &mut [f64],
        xd: &mut [f64],
    ) -> Result<(), EvalError> {
        *array_mut("xd", xd)? = *array::<_, 3>("u", at.u)?;
        Ok(())
    }
}

#[test]
fn each_input_is_held_by_its_rule() {
    let (t0, h) = (1.0, 0.25);
    let u = |t: f64| t * t * t;
    let (u0, um, u1) = (u(t0), u(t0 + 0.5 * h), u(t0 + h));
    let expected = [h * u0, h * 0.5 * (u0 + u1), h / 6.0 * (u0 + 4.0 * um + u1)];
    let mut inputs = from_fn(|t, u: &mut [f64]| u.fill(t * t * t));
    let mut scratch = [0.0; 100];

    let (mut t, mut x) = (t0, [0.0; 3]);
    Rk4.step(&Quadrature, &mut inputs, &mut t, &mut x, h, &mut scratch).unwrap();
    assert!(distance(&x, &expected) < 1e-15, "{x:?} {expected:?}");
    assert_eq!(t, t0 + h);

    let (mut t, mut x) = (t0, [0.0; 3]);
    DormandPrince.step(&Quadrature, &mut inputs, &mut t, &mut x, h, &mut scratch).unwrap();
    // The quadrature of both methods is exact for a cubic.
    assert!(distance(&x, &expected) < 1e-15, "{x:?} {expected:?}");
}

#[test]
fn the_hold_bounds_the_order() {
    for (hold, expected) in [(Hold::Zero, 1.0), (Hold::Linear, 2.0), (Hold::Signal, 4.0)] {
        let system = Driven { hold: [hold] };
        let error = |h| {
            let mut inputs = from_fn(|t, u: &mut [f64]| u.fill(Driven::input(t)));
            let mut y = system.start();
            run(Rk4, &system, &mut inputs, &mut y, 2.0, h).unwrap();
            distance(&y, &system.exact(2.0))
        };
        let measured = order(error(1.0 / 64.0), error(1.0 / 128.0));
        assert!((measured - expected).abs() < 0.1, "{hold:?}: {measured}");
    }
}

#[test]
fn constant_inputs_fill_what_they_have() {
    let mut u = [7.0; 3];
    Constant(&[1.0, 2.0]).at(0.0, &mut u);
    assert_eq!(u, [1.0, 2.0, 0.0]);
}

/// Times of observation, and statistics.
fn observed(h: f64, end: f64, output: Output) -> Result<(Vec<f64>, Statistics), StepError> {
    let system = Oscillator { omega: 1.0 };
    let mut times = Vec::new();
    let mut scratch = [0.0; 64];
    let span = Span { start: 0.0, end, output };
    let mut y = system.start();
    let statistics =
        Fixed { method: Rk4, h }.run(&system, &mut NoInputs, &mut y, &span, &mut scratch, |at| {
            times.push(at.t);
            GO_ON
        })?;
    Ok((times, statistics))
}

#[test]
fn runs_land_on_the_end() {
    // 0.7 is not a whole number of steps of 0.1 in floating point, but up to rounding it is.
    let (times, statistics) = observed(0.1, 0.7, Output::Steps).unwrap();
    assert_eq!(times.len(), 8);
    assert_eq!(times.last(), Some(&0.7));
    assert_eq!(statistics, Statistics { t: 0.7, h: 0.1, steps: 7, evaluations: 28, ..Statistics::default() });

    let (times, statistics) = observed(0.1, 0.75, Output::Every(0.3)).unwrap();
    assert_eq!(times, [0.0, 3.0 * 0.1, 6.0 * 0.1, 0.75]);
    assert_eq!(statistics.steps, 8);
    assert!((statistics.h - 0.05).abs() < 1e-15);

    let (times, statistics) = observed(0.1, 0.05, Output::Steps).unwrap();
    assert_eq!((times, statistics.steps), (vec![0.0, 0.05], 1));
    let (times, statistics) = observed(0.1, 0.0, Output::Steps).unwrap();
    assert_eq!((times, statistics.steps), (vec![0.0], 0));

    let refused = observed(0.1, 1.0, Output::Every(0.25)).unwrap_err();
    let what = "the output interval must be a multiple of the step";
    assert_eq!(refused, StepError::Setting { what, value: 0.25 });
    for h in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(observed(h, 1.0, Output::Steps), Err(StepError::Setting { .. })), "{h}");
    }
    assert!(matches!(observed(0.1, -1.0, Output::Steps), Err(StepError::Setting { .. })));
}

#[test]
fn a_late_start_does_not_add_a_step() {
    // 1000.7 − 1000 is 0.7 only to the rounding of 1000.7.
    let system = Oscillator { omega: 1.0 };
    let span = Span { start: 1000.0, end: 1000.7, output: Output::Steps };
    let statistics = Fixed { method: Rk4, h: 0.1 }
        .run(&system, &mut NoInputs, &mut system.start(), &span, &mut [0.0; 64], |_| GO_ON)
        .unwrap();
    assert_eq!((statistics.steps, statistics.t, statistics.h), (7, 1000.7, 0.1));
}

#[test]
fn the_recursive_form_is_integrated_through_its_wrapper() {
    struct Falling;
    impl System for Falling {
        type S = f64;
        fn dims(&self) -> Dims {
            Dims { nq: 1, nv: 1, ..Dims::ZERO }
        }
    }
    impl ForwardDynamicsRecursive for Falling {
        fn forward_dynamics_recursive(
            &self,
            at: At<'_, f64>,
            _: &mut [f64],
            zd: &mut [f64],
            vd: &mut [f64],
            _: &mut [f64],
        ) -> Result<(), EvalError> {
            *array_mut("zd", zd)? = *array::<_, 1>("v", at.v)?;
            *array_mut("vd", vd)? = [-9.81];
            Ok(())
        }
    }
    let mut y = [0.0, 0.0];
    run(Rk4, &Recursive(&Falling), &mut NoInputs, &mut y, 2.0, 0.5).unwrap();
    assert!(distance(&y, &[-2.0 * 9.81, -2.0 * 9.81]) < 1e-14);
}

#[test]
fn the_observer_can_stop() {
    let system = Oscillator { omega: 1.0 };
    let mut y = system.start();
    let mut seen = [0.0; 2];
    let span = Span { start: 0.0, end: 1.0, output: Output::Steps };
    let statistics = Fixed { method: Rk4, h: 0.125 }
        .run(&system, &mut NoInputs, &mut y, &span, &mut [0.0; 64], |at| {
            seen = [at.z[0], at.v[0]];
            if at.t >= 0.5 { ControlFlow::Break(()) } else { GO_ON }
        })
        .unwrap();
    assert!(statistics.stopped);
    assert_eq!((statistics.t, statistics.steps, y), (0.5, 4, seen));
}

#[test]
fn copies_give_the_same_bits() {
    fn check<T: FixedStep>(method: T) {
        let body = FreeBody { across: 1.0, along: 2.5 };
        let (mut t, mut y) = (0.0, body.start());
        let mut scratch = [0.0; 200];
        for _ in 0..10 {
            method.step(&body, &mut NoInputs, &mut t, &mut y, 0.05, &mut scratch).unwrap();
        }
        let (mut t_copy, mut y_copy) = (t, y);
        // Scratch of another run, full of other numbers.
        let mut other = [f64::NAN; 200];
        for _ in 0..10 {
            method.step(&body, &mut NoInputs, &mut t, &mut y, 0.05, &mut scratch).unwrap();
            method.step(&body, &mut NoInputs, &mut t_copy, &mut y_copy, 0.05, &mut other).unwrap();
        }
        assert_eq!((t, bits(&y)), (t_copy, bits(&y_copy)));
    }
    check(Rk4);
    check(DormandPrince);
}

#[test]
fn single_precision() {
    let system = Oscillator { omega: 2.0_f32 };
    let mut y = system.start();
    let statistics = run(Rk4, &system, &mut NoInputs, &mut y, 1.0, 0.01).unwrap();
    assert_eq!((statistics.steps, statistics.t), (100, 1.0));
    let exact = system.exact(1.0);
    assert!((y[0] - exact[0]).abs() < 1e-5 && (y[1] - exact[1]).abs() < 1e-5, "{y:?} {exact:?}");
}

#[test]
fn complex_step_of_a_run_is_its_sensitivity() {
    let (omega, end) = (1.7, 2.0);
    let system = Oscillator { omega: Complex64::new(omega, 1e-30) };
    let mut y = system.start();
    run(Rk4, &system, &mut NoInputs, &mut y, Complex64::from(end), 5e-4).unwrap();
    // d/d omega of z = z0 cos(omega t) + v0/omega sin(omega t) and of its rate
    let [z0, v0] = [1.0, 0.5];
    let (sin, cos) = (omega * end).sin_cos();
    let z_omega = -z0 * end * sin - v0 / (omega * omega) * sin + v0 / omega * end * cos;
    let v_omega = -v0 * end * sin - z0 * sin - z0 * omega * end * cos;
    let sensitivity = [y[0].im / 1e-30, y[1].im / 1e-30];
    assert!(distance(&sensitivity, &[z_omega, v_omega]) < 1e-12, "{sensitivity:?} {z_omega} {v_omega}");

    // Its real part is the real run, bit for bit.
    let mut real = Oscillator { omega }.start();
    run(Rk4, &Oscillator { omega }, &mut NoInputs, &mut real, end, 5e-4).unwrap();
    assert_eq!(bits(&real), bits(&[y[0].re, y[1].re]));
}

#[test]
fn the_last_step_moves_with_the_end() {
    let system = Oscillator { omega: Complex64::from(1.0) };
    let mut y = system.start();
    run(Rk4, &system, &mut NoInputs, &mut y, Complex64::new(0.95, 1e-30), 0.01).unwrap();
    // Not a whole number of steps: the short last one carries the derivative.
    let mut y_short = system.start();
    run(Rk4, &system, &mut NoInputs, &mut y_short, Complex64::new(0.955, 1e-30), 0.01).unwrap();
    assert_eq!(y[0].im, 0.0);
    assert!((y_short[0].im / 1e-30 - y_short[1].re).abs() < 1e-9);
}

#[test]
fn wrong_lengths_are_errors() {
    let system = Oscillator { omega: 1.0 };
    let (mut t, mut scratch) = (0.0, [0.0; 64]);
    let found = Rk4.step(&system, &mut NoInputs, &mut t, &mut [0.0; 3], 0.1, &mut scratch);
    assert_eq!(found, Err(StepError::Length { what: "y", expected: 2, found: 3 }));
    let found = Rk4.step(&system, &mut NoInputs, &mut t, &mut [0.0; 2], 0.1, &mut [0.0; 3]);
    assert_eq!(found, Err(StepError::Length { what: "scratch", expected: 10, found: 3 }));
    let found = DormandPrince.step(&system, &mut NoInputs, &mut t, &mut [0.0; 2], 0.1, &mut [0.0; 17]);
    assert_eq!(found, Err(StepError::Length { what: "scratch", expected: 18, found: 17 }));
    let found = system.forward_dynamics(
        At { t: 0.0, z: &[], v: &[0.0], x: &[], u: &[] },
        &mut [],
        &mut [0.0],
        &mut [0.0],
        &mut [],
    );
    assert_eq!(found, Err(EvalError::Length { what: "z", expected: 1, found: 0 }));
    assert_eq!(t, 0.0);
}

#[test]
fn a_state_that_is_not_finite_is_an_error_and_changes_nothing() {
    let system = Oscillator { omega: f64::NAN };
    let (mut t, mut y) = (0.25, [1.0, 0.0]);
    let error = Rk4.step(&system, &mut NoInputs, &mut t, &mut y, 0.5, &mut [0.0; 64]).unwrap_err();
    let expected = StepError::NotFinite { t: 0.25, h: 0.5, quantity: Quantity::Velocity, index: 0 };
    assert_eq!(error, expected);
    assert_eq!((t, y), (0.25, [1.0, 0.0]));
    let says = |entry: &str| {
        format!(
            "at t = 0.25 with step 0.5: velocity {entry} or its rate is not finite; a smaller step helps, unless a law has no \
             value there"
        )
    };
    assert_eq!(error.to_string(), says("0"));
    assert_eq!(error.describe(&system).to_string(), says("`spring.rate`"));

    // Euler parameters without a direction.
    let body = FreeBody { across: 1.0, along: 2.5 };
    let error = Rk4.step(&body, &mut NoInputs, &mut t, &mut [0.0; 7], 0.5, &mut [0.0; 64]).unwrap_err();
    assert!(matches!(error, StepError::NotFinite { quantity: Quantity::Coordinate, index: 0, .. }));
}

/// A mass matrix that is singular from t = 1 on.
struct Massless;

impl System for Massless {
    type S = f64;
    fn dims(&self) -> Dims {
        Dims { nq: 1, nv: 1, ..Dims::ZERO }
    }
}

impl ForwardDynamics for Massless {
    fn forward_dynamics(
        &self,
        at: At<'_, f64>,
        _: &mut [f64],
        zd: &mut [f64],
        vd: &mut [f64],
        _: &mut [f64],
    ) -> Result<(), EvalError> {
        zd.fill(0.0);
        vd.fill(1.0);
        if at.t < 1.0 { Ok(()) } else { Err(EvalError::Singular { velocity: 0 }) }
    }
}

#[test]
fn a_failed_evaluation_says_when_and_where() {
    let mut y = [0.0, 0.0];
    let error = run(Rk4, &Massless, &mut NoInputs, &mut y, 2.0, 0.25).unwrap_err();
    assert_eq!(error, StepError::Eval { t: 0.75, h: 0.25, error: EvalError::Singular { velocity: 0 } });
    // The state after the last good step.
    assert_eq!(y, [0.0, 0.75]);
    let expected = "at t = 0.75 with step 0.25: the mass matrix is singular: no inertia along velocity 0";
    assert_eq!(error.to_string(), expected);
}
