//! Whole runs of interpreted models against what is known of them.

mod common;
#[path = "simulate/event_objectives.rs"]
mod event_objectives;
#[path = "simulate/event_orders.rs"]
mod event_orders;
#[path = "simulate/event_products.rs"]
mod event_products;
#[path = "simulate/events.rs"]
mod events;
#[path = "simulate/impacts_with_friction.rs"]
mod impacts_with_friction;
#[path = "simulate/kinematics.rs"]
mod kinematics;
#[path = "simulate/position_resets.rs"]
mod position_resets;
#[path = "simulate/shared_joints.rs"]
mod shared_joints;

use common::{interpreted, run, shipped};
use mbs_codegen::program::{BundleKind, Options, Program};
use mbs_engine::{Interpreted, ParameterError};
use mbs_runtime::inputs::{Constant, NoInputs};
use mbs_runtime::system::Recursive;
use mbs_runtime::{
    Adaptive, Assembly, At, Complex64, Energy, EvalError, Fixed, ForwardDynamics, Hold, Inputs, Integrator,
    MassMatrix, Names, Output, Quantity, Rk4, Scalar, Span, Start, State, StepError, System,
    euler_parameters,
};
use std::ops::ControlFlow;

const RK4: Fixed<Rk4> = Fixed { method: Rk4, h: 1e-3 };

/// K(k) by the arithmetic-geometric mean.
fn complete_elliptic_integral(k: f64) -> f64 {
    let (mut a, mut b) = (1.0, (1.0 - k * k).sqrt());
    for _ in 0..8 {
        (a, b) = (0.5 * (a + b), (a * b).sqrt());
    }
    std::f64::consts::FRAC_PI_2 / a
}

/// Times at which the first coordinate crosses zero from above.
fn falling_zeros(samples: &[(f64, Vec<f64>)]) -> Vec<f64> {
    let mut zeros = Vec::new();
    for pair in samples.windows(2) {
        let ((t0, y0), (t1, y1)) = (&pair[0], &pair[1]);
        if y0[0] > 0.0 && y1[0] <= 0.0 {
            // Newton from the nearer end: the angle is linear to third order near zero of a pendulum.
            zeros.push(if y0[0] < -y1[0] { t0 - y0[0] / y0[1] } else { t1 - y1[0] / y1[1] });
        }
    }
    zeros
}

#[test]
fn the_pendulums_period_is_the_elliptic_integral() {
    let model = interpreted(&shipped("pendulum"), None);
    let (_, samples) = run(&RK4, &model, &mut NoInputs, 10.0).expect("the run");
    let zeros = falling_zeros(&samples);
    let measured = (zeros[zeros.len() - 1] - zeros[0]) / (zeros.len() - 1) as f64;
    // A uniform rod: w0² = m g (L/2) / (m L²/3); it starts at rest at 60°.
    let w0 = (1.5_f64 * 9.81).sqrt();
    let period = 4.0 / w0 * complete_elliptic_integral((std::f64::consts::PI / 6.0).sin());
    assert!((measured - period).abs() < 2e-9 * period, "{measured} against {period}");
}

/// Both starts have the model's velocities, with Euler parameters of any length in the file, and the same accelerations.
#[test]
fn a_start_carries_its_rates() {
    for name in ["torque_free_top", "tree20", "cart_pole"] {
        let (model, _) = mbs_codegen::read(name, &shipped(name)).expect("a model");
        let bundles = [&BundleKind::TREE[..], &BundleKind::COORDINATE_FORM].concat();
        let program = Program::new(&model, None, &Options { bundles, ..Options::default() });
        let model: Interpreted = Interpreted::new(program.expect("a program"));
        let (d, given) = (model.dims(), model.start_state());
        let zeros = |n: usize| vec![0.0; n];

        let (mut y, mut yd) = (zeros(d.state()), zeros(d.state()));
        let mut scratch = zeros(Assembly::tree_scratch_len(&d));
        Assembly::begin_tree(&model, &mut model.input_signals(), 0.5, &mut y, &mut yd, &mut scratch)
            .expect("a start");
        assert_eq!(y[d.nq..], given[d.nq..], "{name}");

        let mut state = zeros(State::<f64>::len(&d));
        let mut scratch = zeros(Assembly::scratch_len(&d));
        Assembly::DEFAULT
            .begin(&model, &mut model.input_signals(), 0.5, &mut state, &mut scratch)
            .expect("a start");
        let (mut z_v, mut zdd) = (zeros(d.state()), zeros(d.nq));
        let start = State::of(&d, &mut state).expect("its length");
        start.joint_form(&model, &mut z_v).expect("lengths");
        euler_parameters::coordinate_accelerations(&model, &y[..d.nq], &y[d.nq..], &yd[d.nq..], &mut zdd)
            .expect("lengths");
        // Rounding of the solutions, some of them refined, some not.
        let near =
            |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12 * a.abs().max(1.0));
        assert!(*start.t == 0.5 && near(&z_v, &y), "{name}: {z_v:?} {y:?}");
        assert!(near(start.zd, &yd[..d.nq]) && near(start.zdd, &zdd), "{name}: {:?} {zdd:?}", start.zdd);
        assert!(name == "cart_pole" || y[d.nq..].iter().any(|v| *v != 0.0), "{name} starts at rest");
    }
}

#[test]
fn energy_is_kept_and_both_forward_dynamics_agree() {
    let model = interpreted(&shipped("double_pendulum"), None);
    let d = model.dims();
    let energy_of = |y: &[f64]| {
        let (mut out, mut w) = ([0.0; 3], vec![0.0; d.workspace]);
        model.energy(At::of_state(&d, 0.0, y, &[]).expect("y"), &mut w, &mut out).expect("energy");
        out[0] + out[1]
    };
    let method = Adaptive::new(1e-11, 1e-12);
    let span = Span { start: 0.0, end: 2.0, output: Output::Steps };
    let mut scratch = vec![0.0; Adaptive::scratch_len(&d)];
    let (mut y, mut y_recursive) = (model.start_state(), model.start_state());
    let e0 = energy_of(&y);
    let go_on = |_: At<'_, f64>| ControlFlow::Continue(());
    method.run(&model, &mut NoInputs, &mut y, &span, &mut scratch, go_on).expect("a run");
    method
        .run(&Recursive(&model), &mut NoInputs, &mut y_recursive, &span, &mut scratch, go_on)
        .expect("a run");
    assert!((energy_of(&y) - e0).abs() < 1e-8, "{} against {e0}", energy_of(&y));
    for (a, b) in y.iter().zip(&y_recursive) {
        assert!((a - b).abs() < 1e-7, "{y:?} against {y_recursive:?}");
    }
}

/// A mass on a rail without anything else: its speed is the integral of the push.
fn sledge(hold: &str) -> Interpreted {
    let text = format!(
        "
mbs: 1
name: sledge
parameters: {{mass: 2.0, slope: 3.0}}
inputs:
  push: {{default: 1.5, hold: {hold}}}
bodies:
  body: {{mass: mass}}
joints:
  rail: {{type: prismatic, parent: ground, child: body, axis: [1, 0, 0]}}
forces:
  actuator: {{type: joint_force, coordinate: rail, value: push}}
cases:
  ramp:
    inputs: {{push: slope*t^2}}
"
    );
    interpreted(&text, Some("ramp"))
}

#[test]
fn inputs_are_held_as_the_model_says() {
    let (h, steps) = (0.1, 20);
    let method = Fixed { method: Rk4, h };
    let nodes = |k: i32| 3.0 * (f64::from(k) * h).powi(2);
    let zero: f64 = (0..steps).map(|k| h * nodes(k)).sum();
    let linear: f64 = (0..steps).map(|k| 0.5 * h * (nodes(k) + nodes(k + 1))).sum();
    let exact = (f64::from(steps) * h).powi(3);
    for (hold, expected, held) in
        [("zero", zero, Hold::Zero), ("linear", linear, Hold::Linear), ("signal", exact, Hold::Signal)]
    {
        let model = sledge(hold);
        assert_eq!(model.holds(), [held]);
        let mut signals = model.input_signals();
        let (_, samples) = run(&method, &model, &mut signals, 2.0).expect("a run");
        let speed = samples[samples.len() - 1].1[1];
        assert!((speed - expected / 2.0).abs() < 1e-13, "{hold}: {speed} against {}", expected / 2.0);
    }
}

#[test]
fn signals_follow_the_parameters() {
    let mut model = sledge("zero");
    model.set_parameter("slope", -2.0).expect("no bounds");
    let mut u = [f64::NAN; 3];
    model.input_signals().at(3.0, &mut u);
    assert_eq!(u, [-18.0, 0.0, 0.0], "and inputs that are not there are zero");
    // Without the case: the default.
    let defaults = interpreted(&shipped("cart_pole"), None);
    let mut u = [f64::NAN];
    defaults.input_signals().at(3.0, &mut u);
    assert_eq!(u, [0.0]);
}

#[test]
fn the_shaken_cart_runs_with_its_case() {
    let model = interpreted(&shipped("cart_pole"), Some("shaken"));
    let (_, fixed) = run(&RK4, &model, &mut model.input_signals(), 2.0).expect("a run");
    let (_, unshaken) = run(&RK4, &model, &mut Constant(&[0.0]), 2.0).expect("a run");
    run(&RK4, &model, &mut NoInputs, 2.0).expect_err("the cart has an input, and nobody gives it");
    let last = |samples: &[(f64, Vec<f64>)]| samples[samples.len() - 1].1.clone();
    assert!((last(&fixed)[0] - last(&unshaken)[0]).abs() > 0.1);
}

/// A body on a spring, shaken by a road that is a spline; every kind of parameter.
const RIDE: &str = "
mbs: 1
name: ride
gravity: [0, 0, -9.81]
parameters:
  mass: {value: 3.0, min: 0.1, max: 50}
  stiffness: {value: 900, min: 0}
  lever: {value: 0.4, max: 2}
  inertia: mass*lever^2/3
  time: {values: [0, 0.3, 0.6, 0.9]}
  height: {values: [0, 0.02, -0.01, 0]}
bodies:
  arm: {mass: mass, com: [lever, 0, 0], inertia: [0, inertia, inertia]}
joints:
  hinge: {type: revolute, parent: ground, child: arm, axis: [0, 1, 0], start: lever/10}
forces:
  road:
    type: joint_force
    coordinate: hinge
    value: \"-stiffness*lever*(lever*hinge.angle - spline(t, time, height))\"
";

#[test]
fn parameters_set_at_run_time_equal_a_model_with_those_numbers() {
    let mut model = interpreted(RIDE, None);
    model.set_parameter("lever", 0.55).expect("within bounds");
    model.set_parameter("height[2]", 0.08).expect("an element");
    model.set_parameter(" time [ 3 ] ", 1.1).expect("an element");
    let written = RIDE
        .replace("lever: {value: 0.4", "lever: {value: 0.55")
        .replace("[0, 0.02, -0.01, 0]", "[0, 0.02, 0.08, 0]")
        .replace("0.6, 0.9]", "0.6, 1.1]");
    let written = interpreted(&written, None);
    assert_eq!(model.parameters(), written.parameters());
    assert_eq!(model.parameter("height[2]"), Ok(0.08));
    let (_, a) = run(&RK4, &model, &mut NoInputs, 1.0).expect("a run");
    let (_, b) = run(&RK4, &written, &mut NoInputs, 1.0).expect("a run");
    assert_eq!(a, b);

    // Setting all at once is the same, and setting them back too.
    let all = model.parameters().to_vec();
    let mut again = interpreted(RIDE, None);
    let defaults = again.parameters().to_vec();
    again.set_parameters(&all).expect("all allowed");
    assert_eq!(run(&RK4, &again, &mut NoInputs, 0.1).expect("a run").1, a[..101]);
    model.set_parameters(&defaults).expect("all allowed");
    let fresh = interpreted(RIDE, None);
    let [back, fresh] = [model, fresh].map(|model| run(&RK4, &model, &mut NoInputs, 0.1).expect("a run"));
    assert_eq!(back, fresh);
    assert_ne!(back.1, a[..101]);
}

#[test]
fn a_wrong_parameter_is_refused_by_name_and_changes_nothing() {
    let mut model = interpreted(RIDE, None);
    let before = model.parameters().to_vec();
    for (name, value, message) in [
        ("levre", 1.0, "there is no independent parameter `levre`; did you mean `lever`?"),
        ("nothing", 1.0, "there is no independent parameter `nothing`"),
        ("inertia", 1.0, "there is no independent parameter `inertia`"),
        ("mass", 0.05, "parameter `mass` must be between 0.1 and 50, not 0.05"),
        ("lever", 2.5, "parameter `lever` must be at most 2, not 2.5"),
        ("lever", f64::NAN, "parameter `lever` must be finite"),
        ("lever[0]", 1.0, "parameter `lever` is no array; there is no `lever[0]`"),
        ("time", 1.0, "parameter `time` is an array: set `time[0]` to `time[3]`"),
        ("time[4]", 1.0, "parameter `time` has 4 values, numbered from 0; there is no `time[4]`"),
        ("time[-1]", 1.0, "parameter `time` has 4 values, numbered from 0; there is no `time[-1]`"),
    ] {
        assert_eq!(model.set_parameter(name, value).expect_err(name).to_string(), message);
    }
    assert_eq!(model.set_parameters(&[1.0]), Err(ParameterError::Count { expected: before.len(), found: 1 }));
    let mut values = before.clone();
    values[1] = -1.0;
    let error = model.set_parameters(&values).expect_err("below its bound");
    assert_eq!(error.to_string(), "parameter `stiffness` must be at least 0, not -1");
    assert_eq!(model.parameters(), before);
    assert_eq!(model.name(Quantity::Parameter, 5), Some("time[2]"));
}

#[test]
fn failures_carry_names_and_lengths() {
    let model = interpreted(&shipped("cart_pole"), None);
    let d = model.dims();
    let (mut w, mut zd, mut vd) = (vec![0.0; d.workspace], [0.0; 2], [0.0; 2]);
    let at = At { t: 0.0, z: &[0.0; 2], v: &[0.0; 2], x: &[], u: &[0.0] };
    let length = |what, expected, found| Err(EvalError::Length { what, expected, found });
    assert_eq!(model.forward_dynamics(at, &mut w, &mut zd, &mut vd, &mut []), Ok(()));
    assert_eq!(model.forward_dynamics(at, &mut w, &mut zd, &mut vd[..1], &mut []), length("vd", 2, 1));
    assert_eq!(model.forward_dynamics(at, &mut w, &mut [0.0; 3], &mut vd, &mut []), length("zd", 2, 3));
    assert_eq!(model.forward_dynamics(at, &mut w, &mut zd, &mut vd, &mut [0.0]), length("xd", 0, 1));
    assert_eq!(
        model.forward_dynamics(At { z: &[0.0; 3], ..at }, &mut w, &mut zd, &mut vd, &mut []),
        length("z", 2, 3)
    );
    assert_eq!(
        model.forward_dynamics(At { u: &[], ..at }, &mut w, &mut zd, &mut vd, &mut []),
        length("u", 1, 0)
    );
    assert!(matches!(
        model.forward_dynamics(at, &mut [], &mut zd, &mut vd, &mut []),
        Err(EvalError::Length { what: "w", found: 0, .. })
    ));
    assert_eq!(model.start(&mut zd, &mut vd, &mut [1.0]), length("x", 0, 1));
    assert_eq!(model.mass_matrix(at, &mut w, &mut [0.0; 3]), length("m", 4, 3));

    // A massless pendulum: the model allows m = 0, the equations do not.
    let mut massless = interpreted(&shipped("pendulum"), None);
    massless.set_parameter("m", 0.0).expect("the bound is 0");
    let error = run(&RK4, &massless, &mut NoInputs, 1.0).expect_err("singular");
    assert!(matches!(error, StepError::Eval { error: EvalError::Singular { velocity: 0 }, .. }));
    assert!(error.describe(&massless).to_string().contains("no inertia along velocity `hinge.angle_rate`"));
}

#[test]
fn a_bundle_that_was_not_asked_for_is_an_error_that_names_it() {
    let text = shipped("pendulum");
    let (model, _) = mbs_codegen::read("pendulum.yaml", &text).expect("a model");
    let model: Interpreted = Interpreted::new(
        Program::new(&model, None, &Options::default()).expect("a program of moderate size"),
    );
    let at = At { t: 0.0, z: &[0.0], v: &[0.0], x: &[], u: &[] };
    let error = model.mass_matrix(at, &mut vec![0.0; model.dims().workspace], &mut [0.0]);
    assert_eq!(error, Err(EvalError::Absent { bundle: "mass_matrix" }));
    assert_eq!(error.expect_err("absent").to_string(), "the model was made without the bundle `mass_matrix`");
}

/// The derivative of a whole run by a parameter: an imaginary part of 1e-30 carries it exactly.
#[test]
fn a_complex_run_gives_the_derivative_of_the_run() {
    let text = shipped("double_pendulum");
    let (model, _) = mbs_codegen::read("double_pendulum.yaml", &text).expect("a model");
    let program = Program::new(&model, None, &Options::default()).expect("a program of moderate size");
    let end = |length: Complex64| {
        let mut model: Interpreted<Complex64> = Interpreted::new(program.clone());
        model.set_parameter("L1", length).expect("within bounds");
        let mut y = model.start_state();
        let mut scratch = vec![Complex64::ZERO; RK4.scratch_len(&model.dims())];
        let span = Span { start: Complex64::ZERO, end: Complex64::ONE, output: Output::Steps };
        RK4.run(&model, &mut NoInputs, &mut y, &span, &mut scratch, |_| ControlFlow::Continue(()))
            .expect("a run");
        y
    };
    let exact = end(Complex64 { re: 1.0, im: 1e-30 });
    let step = 1e-6;
    let above = end(Complex64::from_f64(1.0 + step));
    let below = end(Complex64::from_f64(1.0 - step));
    for i in 0..4 {
        let difference = (above[i].re - below[i].re) / (2.0 * step);
        let derivative = exact[i].im / 1e-30;
        assert!(
            (derivative - difference).abs() < 1e-7 * (1.0 + derivative.abs()),
            "{derivative} {difference}"
        );
    }
}
