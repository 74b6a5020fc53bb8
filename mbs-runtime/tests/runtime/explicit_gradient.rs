//! Gradients of explicit runs against complex steps of the same runs, with the objectives as states of the method.

use std::ops::ControlFlow;

use crate::systems;
use crate::systems::erased::{AnyJoint, any_joint, model_start};
use crate::systems::lagrangian::Lagrangian;
use crate::systems::parametric::{Cart, FourBar, GuidedTop, Pendulum, Pursuit, Top};
use mbs_runtime::euler_parameters::velocities;
use mbs_runtime::inputs::{Inputs, from_fn};
use mbs_runtime::integrator::{FixedStep, renormalise};
use mbs_runtime::sensitivity::{JointDynamics, StateDerivatives};
use mbs_runtime::{
    Adaptive, Adjoint, AdjointIntegrator, AdjointNode, Assembly, At, Complex64, DifferentiableIntegrator,
    Differentiated, Dims, Dop853, DormandPrince, EvalError, Fixed, ForwardDynamics, Gradient, Hold, Implicit,
    Index1, Integrator, JointDerivatives, MatrixR, OnConstraints, Output, Rk4, Scalar, Sdirk4, Span, Start,
    State, StepError, Stiff, System, Trapezoidal,
};

const TINY: f64 = 1e-100;
const BEGIN: f64 = 0.1;

fn input<S: Scalar>() -> impl Inputs<S> {
    from_fn(|t: S, u: &mut [S]| u.fill((S::from_f64(3.0) * t).sin()))
}

/// Dynamics whose objectives are first-order states.
struct WithObjectives<'a, S, D> {
    mechanism: &'a AnyJoint<'a, S>,
    dynamics: &'a D,
}

impl<S: Scalar, D: JointDynamics<S = S>> System for WithObjectives<'_, S, D> {
    type S = S;
    fn dims(&self) -> Dims {
        let dims = self.dynamics.dims();
        // A stage is kept with its first-order states.
        Dims { nx: dims.n_objectives, workspace: dims.workspace + dims.n_objectives, ..dims }
    }
    fn euler_parameters(&self) -> &[usize] {
        self.dynamics.euler_parameters()
    }
    fn holds(&self) -> &[Hold] {
        self.dynamics.holds()
    }
}

impl<S: Scalar, D: JointDynamics<S = S> + ForwardDynamics> ForwardDynamics for WithObjectives<'_, S, D> {
    fn corrects_steps(&self) -> bool {
        JointDynamics::corrects_steps(self.dynamics)
    }
    fn completes(&self) -> bool {
        JointDynamics::completes(self.dynamics)
    }

    fn newmark(&self) -> Implicit {
        JointDynamics::newmark(self.dynamics)
    }

    fn linearise_stage(&self, at: At<'_, S>, alpha: [S; 2], w: &mut [S]) -> Result<(), EvalError> {
        self.dynamics.linearise_stage(At { x: &[], ..at }, alpha, w)
    }

    fn solve_stage(
        &self,
        at: At<'_, S>,
        alpha: [S; 2],
        w: &mut [S],
        z: &mut [S],
        v: &mut [S],
    ) -> Result<(), EvalError> {
        self.dynamics.solve_stage(At { x: &[], ..at }, alpha, w, z, v)
    }

    fn prepare_step(&self, at: At<'_, S>, w: &mut [S]) -> Result<(), EvalError> {
        JointDynamics::prepare_step(self.dynamics, At { x: &[], ..at }, w)
    }

    fn complete(&self, t: S, u: &[S], w: &mut [S], z: &mut [S], v: &mut [S]) -> Result<(), EvalError> {
        JointDynamics::complete(self.dynamics, t, u, w, z, v)
    }

    fn forward_dynamics(
        &self,
        at: At<'_, S>,
        w: &mut [S],
        zd: &mut [S],
        vd: &mut [S],
        xd: &mut [S],
    ) -> Result<(), EvalError> {
        let mut lambda = vec![S::ZERO; self.dynamics.dims().joint_rows()];
        self.dynamics.accelerate(at, w, zd, vd, &mut lambda)?;
        xd.copy_from_slice(&self.mechanism.0.objectives_of_joints(at, vd, &lambda)[0]);
        Ok(())
    }

    fn correct_step(
        &self,
        t: S,
        u: &[S],
        w: &mut [S],
        z: &mut [S],
        v: &mut [S],
        x: &[S],
    ) -> Result<(), EvalError> {
        self.dynamics.correct(At { t, z: &[], v: &[], x, u }, w, z, v, ())
    }
}

/// Coordinates and velocities at the start: of a tree as they are, of others assembled.
fn start<S: Scalar>(system: &AnyJoint<'_, S>) -> Vec<S> {
    let dims = system.dims();
    let mut y = vec![S::ZERO; dims.state()];
    let (z, v) = y.split_at_mut(dims.nq);
    if dims.joint_rows() == 0 {
        system.start(z, v, &mut []).unwrap();
        renormalise(system, z);
    } else {
        let mut state = model_start(system, BEGIN, &mut input(), &[]);
        let view = State::of(&dims, &mut state).unwrap();
        z.copy_from_slice(view.z);
        velocities(system, view.z, view.zd, v).unwrap();
    }
    y
}

/// The objectives of a run over these times.
fn objectives<S: Scalar, D: JointDynamics<S = S> + ForwardDynamics>(
    mechanism: &AnyJoint<'_, S>,
    dynamics: &D,
    method: &impl FixedStep,
    times: &[f64],
) -> Vec<S> {
    let system = WithObjectives { mechanism, dynamics };
    let dims = mechanism.dims();
    let mut y = start(mechanism);
    y.resize(system.dims().stepped(), S::ZERO);
    let mut scratch = vec![S::ZERO; method.scratch_len(&system.dims())];
    for step in times.windows(2) {
        let (mut t, h) = (S::from_f64(step[0]), S::from_f64(step[1] - step[0]));
        method.step(&system, &mut input(), &mut t, &mut y, h, &mut scratch).unwrap();
    }
    let t = S::from_f64(*times.last().unwrap());
    let mut u = vec![S::ZERO; dims.nu];
    input().at(t, &mut u);
    let (state, integrals) = y[..system.dims().state()].split_at(dims.state());
    let (z, v) = state.split_at(dims.nq);
    let at = At { t, z, v, x: &[], u: &u };
    let (mut zd, mut vd) = (vec![S::ZERO; dims.nq], vec![S::ZERO; dims.nv]);
    let mut lambda = vec![S::ZERO; dims.joint_rows()];
    let mut w = vec![S::ZERO; dynamics.dims().workspace];
    dynamics.accelerate(at, &mut w, &mut zd, &mut vd, &mut lambda).unwrap();
    let [_, terminal] = mechanism.0.objectives_of_joints(at, &vd, &lambda);
    integrals.iter().zip(terminal).map(|(integral, terminal)| *integral + terminal).collect()
}

/// What a differentiated run gives.
struct Found {
    times: Vec<f64>,
    y: Vec<f64>,
    gradient: Vec<f64>,
}

fn differentiate<'a, D>(
    system: &AnyJoint<'a, f64>,
    dynamics: &D,
    integrator: &impl DifferentiableIntegrator,
    span: Span<f64>,
) -> Result<Found, StepError>
where
    D: JointDynamics<S = f64, Model = AnyJoint<'a, f64>>,
{
    let dims = system.dims();
    let mut y = vec![0.0; dims.state()];
    let mut derivatives = vec![0.0; JointDerivatives::<f64>::len(&dims)];
    let length = integrator.scratch_len(dynamics).max(Assembly::differentiated_scratch_len(&dims));
    let mut scratch = vec![f64::NAN; length];
    if dims.joint_rows() == 0 {
        JointDerivatives::start(system, &mut y, &mut derivatives, &mut scratch)?;
    } else {
        let mut state = vec![0.0; State::<f64>::len(&dims)];
        let mut changes = vec![0.0; StateDerivatives::<f64>::len(&dims)];
        let assembly = Assembly::DEFAULT;
        assembly.begin_differentiated(system, &mut input(), BEGIN, &mut state, &mut changes, &mut scratch)?;
        JointDerivatives::of_state(system, &mut state, &mut changes, &mut y, &mut derivatives)?;
    }
    let mut gradient = vec![f64::NAN; Gradient::<f64>::len(&dims)];
    let mut times = Vec::new();
    integrator.run(
        dynamics,
        &mut input(),
        &mut y,
        &mut derivatives,
        &span,
        &mut gradient,
        &mut scratch,
        |seen| {
            assert_eq!(seen.derivatives.len(), JointDerivatives::<f64>::len(&dims));
            times.push(seen.at.t);
            ControlFlow::Continue(())
        },
    )?;
    Ok(Found { times, y, gradient })
}

/// The adjoint of the same run is its transpose: the same gradient to rounding, the same bits in any memory.
fn check_adjoint<'a, D>(
    name: &str,
    system: &AnyJoint<'a, f64>,
    dynamics: &D,
    integrator: &impl AdjointIntegrator,
    span: Span<f64>,
    direct: &Found,
) where
    D: JointDynamics<S = f64, Model = AnyJoint<'a, f64>>,
{
    let dims = system.dims();
    let steps = direct.times.len() - 1;
    let n = dims.state();
    let run = |memory: usize| {
        dynamics.choice().iter().for_each(|number| number.set(0.0));
        let mut scratch = vec![f64::NAN; Assembly::differentiated_scratch_len(&dims)];
        let mut y = vec![0.0; n];
        let mut start = vec![0.0; JointDerivatives::<f64>::len(&dims)];
        if dims.joint_rows() == 0 {
            JointDerivatives::start(system, &mut y, &mut start, &mut scratch).unwrap();
        } else {
            let mut state = vec![0.0; State::<f64>::len(&dims)];
            let mut changes = vec![0.0; StateDerivatives::<f64>::len(&dims)];
            let (assembly, inputs) = (Assembly::DEFAULT, &mut input());
            assembly
                .begin_differentiated(system, inputs, BEGIN, &mut state, &mut changes, &mut scratch)
                .unwrap();
            JointDerivatives::of_state(system, &mut state, &mut changes, &mut y, &mut start).unwrap();
        }
        let mut gradient = vec![f64::NAN; Gradient::<f64>::len(&dims)];
        let mut scratch = vec![f64::NAN; integrator.gradient_scratch_len(dynamics)];
        let mut memory = vec![f64::NAN; memory];
        let mut passed = steps + 1;
        let statistics = integrator.gradient(
            dynamics,
            &mut input(),
            &mut y,
            &start,
            &span,
            &mut gradient,
            &mut memory,
            &mut scratch,
            |node| {
                if let AdjointNode::Backward { number, .. } = node {
                    passed -= 1;
                    assert_eq!(number, passed);
                }
                ControlFlow::Continue(())
            },
        )?;
        assert_eq!((passed, statistics.run.steps), (0, steps), "{name}");
        Ok::<_, StepError>((gradient, y, statistics.recomputed))
    };
    let (all, y, again) = run(100 * n * steps).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(again, 0, "{name}: nothing is made twice where all fits");
    assert_eq!(systems::bits(&y), systems::bits(&direct.y), "{name}");
    let (found, expected) =
        (Gradient::of(&dims, &all).unwrap(), Gradient::of(&dims, &direct.gradient).unwrap());
    assert!(systems::distance(found.objectives, expected.objectives) < 1e-12, "{name}");
    for i in 0..dims.n_objectives {
        let (found, expected) = (found.of_objective(i).unwrap(), expected.of_objective(i).unwrap());
        let size = expected.iter().fold(0.0, |size: f64, x| size.max(x.abs()));
        let error = systems::distance(found, expected) / size;
        assert!(error < 1e-12, "{name}, objective {i}: {error:e}\n{found:?}\n{expected:?}");
    }
    let Err(StepError::Length { what: "memory", .. }) = run(2) else { panic!("{name}: too little memory") };
    let kept = n + dynamics.dims().n_choice;
    let few = 2 * steps + kept + 7 * (kept + 1);
    let (less, ..) = run(few).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(systems::bits(&less), systems::bits(&all), "{name}");
}

/// Checks a run with the dynamics that the last expression makes of a mechanism: its gradient against complex steps by the
/// method, its state against a plain run.
macro_rules! check {
    ($mechanism:expr, $integrator:expr, $method:expr, $end:expr, |$system:ident| $dynamics:expr) => {{
        let name =
            concat!(stringify!($mechanism), ", ", stringify!($integrator), ", ", stringify!($dynamics));
        let span = Span { start: BEGIN, end: $end, output: Output::Steps };
        let mechanism = Lagrangian::<_, f64>::new($mechanism);
        let real = any_joint(&mechanism);
        let found = {
            let $system = &real;
            differentiate(&real, &$dynamics, &Differentiated($integrator), span)
        };
        let found = found.unwrap_or_else(|error| panic!("{name}: {error}"));
        {
            let $system = &real;
            check_adjoint(name, &real, &$dynamics, &Adjoint($integrator), span, &found);
        }
        {
            let $system = &real;
            let mut y = start(&real);
            let dynamics = &$dynamics;
            let mut scratch = vec![0.0; Integrator::scratch_len(&$integrator, &dynamics.dims())];
            let observe = |_: At<'_, f64>| ControlFlow::Continue(());
            Integrator::run(&$integrator, dynamics, &mut input(), &mut y, &span, &mut scratch, observe)
                .unwrap();
            // The start is assembled twice, for complex steps; else bit for bit.
            assert!(systems::distance(&y, &found.y) < 1e-11, "{name}: {y:?} {:?}", found.y);
            let values = objectives(&real, &$dynamics, &$method, &found.times);
            assert!(
                systems::distance(&values, &found.gradient[..values.len()]) < 1e-10,
                "{name}: {values:?}"
            );
        }
        let p = mechanism.rho.len();
        let mut expected = vec![0.0; found.gradient.len() / (1 + p) * p];
        for k in 0..p {
            let mut mechanism = Lagrangian::<_, Complex64>::new($mechanism);
            mechanism.rho[k].im = TINY;
            let complex = any_joint(&mechanism);
            let $system = &complex;
            let values = objectives(&complex, &$dynamics, &$method, &found.times);
            for (i, value) in values.iter().enumerate() {
                expected[i * p + k] = value.im / TINY;
            }
        }
        let found = &found.gradient[expected.len() / p..];
        for (found, expected) in found.chunks(p).zip(expected.chunks(p)) {
            let size = expected.iter().fold(0.0, |size: f64, x| size.max(x.abs()));
            let error = systems::distance(found, expected) / size;
            assert!(error < 1e-10, "{name}: {error:e}\n{found:?}\n{expected:?}");
        }
    }};
}

/// The plain run has no objectives, so they do not count for the steps here.
fn adaptive(tolerance: f64) -> Adaptive {
    Adaptive { objectives: false, ..Adaptive::new(tolerance, tolerance) }
}

/// The same by the method of order 8.
fn high(tolerance: f64) -> Adaptive<Dop853> {
    Adaptive { objectives: false, ..Adaptive::of(Dop853, tolerance, tolerance) }
}

#[test]
fn gradients_of_trees() {
    check!(Top::DEFAULT, Fixed { method: Rk4, h: 0.02 }, Rk4, 0.91, |system| *system);
    check!(Top::DEFAULT, Fixed { method: DormandPrince, h: 0.05 }, DormandPrince, 0.91, |system| *system);
    check!(Top::DEFAULT, Fixed { method: Dop853, h: 0.07 }, Dop853, 0.91, |system| *system);
    let adaptive = adaptive(1e-7);
    check!(Top::DEFAULT, adaptive, DormandPrince, 1.1, |system| *system);
    check!(Top::DEFAULT, high(1e-7), Dop853, 1.1, |system| *system);
}

#[test]
fn gradients_of_index_1_runs() {
    let fixed = Fixed { method: Rk4, h: 0.02 };
    let prince = Fixed { method: DormandPrince, h: 0.03 };
    let adaptive = adaptive(1e-6);
    check!(Pendulum::<1>::DEFAULT, fixed, Rk4, 0.5, |system| Index1::new(system));
    check!(Pendulum::<1>::DEFAULT, prince, DormandPrince, 0.5, |system| Index1::stabilised(
        system, 1.0, 10.0
    ));
    check!(FourBar::DEFAULT, adaptive, DormandPrince, 0.4, |system| Index1::stabilised(system, 1.0, 10.0));
    check!(FourBar::DEFAULT, high(1e-6), Dop853, 0.4, |system| Index1::stabilised(system, 1.0, 10.0));
    check!(Cart::DEFAULT, fixed, Rk4, 0.5, |system| Index1::stabilised(system, 1.0, 10.0));
    check!(Pursuit::DEFAULT, fixed, Rk4, 0.5, |system| Index1::stabilised(system, 1.0, 10.0));
    check!(GuidedTop::DEFAULT, fixed, Rk4, 0.5, |system| Index1::stabilised(system, 1.0, 10.0));
    check!(FourBar::DEFAULT, fixed, Rk4, 0.4, |system| Index1::penalty(system, 1e4, 1.0, 10.0));
}

#[test]
fn gradients_of_runs_on_constraints() {
    let fixed = Fixed { method: Rk4, h: 0.05 };
    let adaptive = adaptive(1e-5);
    check!(Pendulum::<1>::DEFAULT, fixed, Rk4, 0.5, |system| OnConstraints(Index1::new(system)));
    check!(FourBar::DEFAULT, fixed, Rk4, 0.4, |system| OnConstraints(Index1::new(system)));
    let eighth = Fixed { method: Dop853, h: 0.1 };
    check!(FourBar::DEFAULT, eighth, Dop853, 0.4, |system| OnConstraints(Index1::new(system)));
    check!(Cart::DEFAULT, adaptive, DormandPrince, 0.5, |system| OnConstraints(Index1::new(system)));
    check!(Cart::DEFAULT, high(1e-5), Dop853, 0.5, |system| OnConstraints(Index1::new(system)));
    check!(Pursuit::DEFAULT, fixed, Rk4, 0.5, |system| OnConstraints(Index1::new(system)));
    check!(GuidedTop::DEFAULT, fixed, Rk4, 0.5, |system| OnConstraints(Index1::new(system)));
}

/// Implicit stages: the derivative is that of the converged iteration.
#[test]
fn gradients_of_implicit_stages() {
    let fixed = Fixed { method: Sdirk4, h: 0.1 };
    let adaptive = Adaptive { objectives: false, ..Adaptive::of(Sdirk4, 1e-3, 1e-3) };
    check!(Top::DEFAULT, adaptive, Sdirk4, 0.5, |system| Stiff(system));
    check!(FourBar::DEFAULT, fixed, Sdirk4, 0.3, |system| Stiff(&Index1::penalty(system, 1e4, 1.0, 10.0)));
    check!(Cart::DEFAULT, fixed, Sdirk4, 0.3, |system| Stiff(&OnConstraints(Index1::new(system))));
    check!(FourBar::DEFAULT, adaptive, Sdirk4, 0.3, |system| Stiff(&OnConstraints(Index1::new(system))));
    check!(Pursuit::DEFAULT, fixed, Sdirk4, 0.3, |system| Stiff(&OnConstraints(Index1::new(system))));
    check!(GuidedTop::DEFAULT, fixed, Sdirk4, 0.3, |system| Stiff(&OnConstraints(Index1::new(system))));
}

/// Numbers for a choice of independent coordinates, none made yet.
fn no_choice<S: Scalar>(system: &AnyJoint<'_, S>) -> &'static mut [S] {
    vec![S::ZERO; MatrixR::<AnyJoint<'_, S>>::choice_len(&system.dims())].leak()
}

#[test]
fn gradients_in_independent_coordinates() {
    let fixed = Fixed { method: Rk4, h: 0.05 };
    let adaptive = adaptive(1e-5);
    check!(Pendulum::<1>::DEFAULT, fixed, Rk4, 0.5, |system| MatrixR::new(system, no_choice(system)));
    check!(FourBar::DEFAULT, fixed, Rk4, 0.4, |system| MatrixR::new(system, no_choice(system)));
    let eighth = Fixed { method: Dop853, h: 0.1 };
    check!(FourBar::DEFAULT, eighth, Dop853, 0.4, |system| MatrixR::new(system, no_choice(system)));
    check!(Cart::DEFAULT, adaptive, DormandPrince, 0.5, |system| MatrixR::new(system, no_choice(system)));
    check!(Cart::DEFAULT, high(1e-5), Dop853, 0.5, |system| MatrixR::new(system, no_choice(system)));
    check!(Pursuit::DEFAULT, fixed, Rk4, 0.5, |system| MatrixR::new(system, no_choice(system)));
    check!(GuidedTop::DEFAULT, fixed, Rk4, 0.5, |system| MatrixR::new(system, no_choice(system)));
}

/// Implicit stages whose states are completed.
#[test]
fn gradients_of_implicit_stages_in_independent_coordinates() {
    let sdirk = Fixed { method: Sdirk4, h: 0.1 };
    let rule = Fixed { method: Trapezoidal, h: 0.05 };
    let adaptive = Adaptive { objectives: false, ..Adaptive::of(Sdirk4, 1e-3, 1e-3) };
    check!(Pendulum::<1>::DEFAULT, sdirk, Sdirk4, 0.5, |system| Stiff(&MatrixR::new(
        system,
        no_choice(system)
    )));
    check!(FourBar::DEFAULT, sdirk, Sdirk4, 0.4, |system| Stiff(&MatrixR::new(system, no_choice(system))));
    check!(FourBar::DEFAULT, rule, Trapezoidal, 0.4, |system| Stiff(&MatrixR::new(
        system,
        no_choice(system)
    )));
    check!(Cart::DEFAULT, adaptive, Sdirk4, 0.5, |system| Stiff(&MatrixR::new(system, no_choice(system))));
    check!(Pursuit::DEFAULT, sdirk, Sdirk4, 0.5, |system| Stiff(&MatrixR::new(system, no_choice(system))));
    check!(Pursuit::DEFAULT, rule, Trapezoidal, 0.5, |system| Stiff(&MatrixR::new(
        system,
        no_choice(system)
    )));
    check!(GuidedTop::DEFAULT, sdirk, Sdirk4, 0.5, |system| Stiff(&MatrixR::new(system, no_choice(system))));
    check!(GuidedTop::DEFAULT, rule, Trapezoidal, 0.5, |system| Stiff(&MatrixR::new(
        system,
        no_choice(system)
    )));
    check!(Top::DEFAULT, rule, Trapezoidal, 0.5, |system| Stiff(system));
}

/// Newmark's formulas and generalized-alpha, with an algorithmic acceleration that is carried; of Euler parameters, too.
#[test]
fn gradients_of_newmarks_formulas_in_independent_coordinates() {
    let rule = Fixed { method: Trapezoidal, h: 0.05 };
    for newmark in [
        Implicit::Newmark { beta: 0.3, gamma: 0.5 },
        Implicit::Newmark { beta: 0.4, gamma: 0.7 },
        Implicit::GeneralizedAlpha { spectral_radius: 0.8 },
        Implicit::GeneralizedAlpha { spectral_radius: 0.0 },
        Implicit::GeneralizedAlpha { spectral_radius: 1.0 },
    ] {
        println!("{newmark:?}");
        check!(Pendulum::<1>::DEFAULT, rule, Trapezoidal, 0.5, |system| Stiff(
            &MatrixR::new(system, no_choice(system)).by(newmark)
        ));
        check!(FourBar::DEFAULT, rule, Trapezoidal, 0.4, |system| Stiff(
            &MatrixR::new(system, no_choice(system)).by(newmark)
        ));
        check!(Pursuit::DEFAULT, rule, Trapezoidal, 0.5, |system| Stiff(
            &MatrixR::new(system, no_choice(system)).by(newmark)
        ));
        check!(GuidedTop::DEFAULT, rule, Trapezoidal, 0.5, |system| Stiff(
            &MatrixR::new(system, no_choice(system)).by(newmark)
        ));
    }
}

/// Multipliers of redundant rows have no derivative here; without them in the objective there is nothing to refuse.
#[test]
fn multipliers_of_redundant_rows_are_refused() {
    let mechanism = Lagrangian::<_, f64>::new(Pendulum::<2>::DEFAULT);
    let system = any_joint(&mechanism);
    let span = Span { start: BEGIN, end: 0.5, output: Output::Steps };
    let integrator = Differentiated(Fixed { method: Rk4, h: 0.02 });
    let refused = differentiate(&system, &Index1::new(&system), &integrator, span).err().unwrap();
    assert!(matches!(refused, StepError::NotDifferentiable { .. }), "{refused:?}");
    assert!(refused.to_string().contains("depend on each other"), "{refused}");
    // With a penalty they are determined.
    assert!(differentiate(&system, &Index1::penalty(&system, 1e4, 1.0, 10.0), &integrator, span).is_ok());
}
