//! Gradients of whole runs against complex steps of the same runs.

use std::ops::ControlFlow;

use crate::systems;
use crate::systems::erased::{Any, any, model_start};
use crate::systems::lagrangian::{Lagrangian, Mechanism};
use crate::systems::parametric::{Cart, FourBar, Pendulum, Pursuit, Second, Top};
use mbs_runtime::formulation::{ImplicitStep, Node};
use mbs_runtime::inputs::{Inputs, from_fn};
use mbs_runtime::quadrature::Trapezoid;
use mbs_runtime::sensitivity::{DifferentiableStep, Differentiated, Gradient, StateDerivatives};
use mbs_runtime::{
    Ali3p, Assembly, Complex64, Dims, Fixed, Implicit, ImplicitIndex1, Output, Penalty, Quantity, Scalar,
    Span, Stabilisation, State, StepError, System,
};

const TINY: f64 = 1e-100;
const BEGIN: f64 = 0.1;

fn input<S: Scalar>() -> impl Inputs<S> {
    from_fn(|t: S, u: &mut [S]| u.fill((S::from_f64(3.0) * t).sin()))
}

/// A run: by which method, and how long.
#[derive(Clone, Copy)]
struct Run<M> {
    method: M,
    h: f64,
    end: f64,
    off: &'static [usize],
}

impl<M: ImplicitStep + Copy> Run<M> {
    fn span<S: Scalar>(&self) -> Span<S> {
        Span { start: S::from_f64(BEGIN), end: S::from_f64(self.end), output: Output::Steps }
    }

    /// The objectives of a plain run.
    fn objectives<S: Scalar>(&self, system: &Any<'_, S>) -> Vec<S> {
        let dims = system.dims();
        let mut state = model_start(system, BEGIN, &mut input(), self.off);
        let mut memory = vec![S::ZERO; 2 * dims.n_objectives];
        let mut integral = Trapezoid::new(&mut memory);
        let mut terminal = Vec::new();
        let observe = |node: Node<'_, S>| {
            let [g, w] = system.0.objectives(node.motion, node.lambda);
            integral.add(node.motion.t, &g);
            terminal = w;
            ControlFlow::Continue(())
        };
        let mut scratch = vec![S::ZERO; self.method.scratch_len(&dims)];
        let fixed = Fixed { method: self.method, h: self.h };
        fixed.run(system, &mut input(), &mut state, &self.span(), &mut scratch, observe).unwrap();
        integral.integrals().iter().zip(terminal).map(|(integral, terminal)| *integral + terminal).collect()
    }

    /// The gradient by complex steps, parameters fastest.
    fn complex_gradient<T: Mechanism + Copy>(&self, mechanism: T) -> Vec<f64> {
        let p = T::PARAMETERS;
        let mut gradient = vec![0.0; T::OBJECTIVES * p];
        for k in 0..p {
            let mut system = Lagrangian::<_, Complex64>::new(mechanism);
            system.rho[k].im = TINY;
            for (i, objective) in self.objectives(&any(&system)).iter().enumerate() {
                gradient[i * p + k] = objective.im / TINY;
            }
        }
        gradient
    }
}

impl<M: DifferentiableStep + Copy> Run<M> {
    /// Objectives and their gradient.
    fn differentiate<S: Scalar>(&self, system: &Any<'_, S>) -> Result<Vec<S>, StepError> {
        let dims: Dims = system.dims();
        let mut state = vec![S::ZERO; State::<S>::len(&dims)];
        let mut derivatives = vec![S::ZERO; StateDerivatives::<S>::len(&dims)];
        let mut gradient = vec![S::ZERO; Gradient::<S>::len(&dims)];
        let run = Differentiated(Fixed { method: self.method, h: self.h });
        let length = run.scratch_len(&dims).max(Assembly::differentiated_scratch_len(&dims));
        let mut scratch = vec![S::from_f64(f64::NAN); length];
        let begin = S::from_f64(BEGIN);
        Assembly::guess_differentiated(system, begin, &mut state, &mut derivatives, &mut scratch)?;
        for row in self.off {
            State::of(&dims, &mut state)?.active[*row] = S::ZERO;
        }
        let assembly = Assembly::DEFAULT;
        assembly.start_differentiated(system, &mut input(), &mut state, &mut derivatives, &mut scratch)?;
        run.run(
            system,
            &mut input(),
            &mut state,
            &mut derivatives,
            &self.span(),
            &mut gradient,
            &mut scratch,
            |_| ControlFlow::Continue(()),
        )?;
        Ok(gradient)
    }

    fn check<T: Mechanism + Copy>(&self, name: &str, mechanism: T, oracle: &impl Fn(M) -> M, tolerance: f64) {
        let system = Lagrangian::<_, f64>::new(mechanism);
        let system = any(&system);
        let found = self.differentiate(&system).unwrap_or_else(|error| panic!("{name}: {error}"));
        let expected = Run { method: oracle(self.method), ..*self }.complex_gradient(mechanism);
        let found = Gradient::of(&system.dims(), &found).unwrap();
        for (i, expected) in expected.chunks(T::PARAMETERS).enumerate() {
            let found = found.of_objective(i).unwrap();
            let size = expected.iter().fold(0.0, |size: f64, x| size.max(x.abs()));
            let error = systems::distance(found, expected) / size;
            assert!(error < tolerance, "{name}, objective {i}: {error:e}\n{found:?}\n{expected:?}");
        }
        let plain = self.objectives(&system);
        assert!(
            systems::distance(found.objectives, &plain) < 1e-9,
            "{name}: {:?} {plain:?}",
            found.objectives
        );
    }
}

/// Iterated until rounding, so that imaginary parts converge too.
fn settled(method: Ali3p) -> Ali3p {
    Ali3p { tolerance: 1e-15, penalty: Penalty::Given(1e18), ..method }
}

/// The same where rows depend on each other, and a large penalty has no meaning.
fn settled_redundant(method: Ali3p) -> Ali3p {
    Ali3p { tolerance: 1e-15, ..method }
}

fn integrators() -> [Implicit; 3] {
    [
        Implicit::TRAPEZOIDAL,
        Implicit::Newmark { beta: 0.31, gamma: 0.55 },
        Implicit::GeneralizedAlpha { spectral_radius: 0.6 },
    ]
}

#[test]
fn gradients_of_index_3_runs() {
    for integrator in integrators() {
        for max_projections in [3, 0] {
            let method = Ali3p { integrator, max_projections, tolerance: 1e-14, ..Ali3p::DEFAULT };
            let name = |what: &str| format!("{what} {integrator:?} {max_projections}");
            let (h, end, off) = (0.02, 1.05, [].as_slice());
            // Without projections accelerations and multipliers are known to rounding over βh², and nothing damps it.
            let tolerance = if max_projections > 0 { 1e-10 } else { 1e-8 };
            Run { method, h, end, off }.check(&name("pendulum"), Pendulum::<1>::DEFAULT, &settled, tolerance);
            Run { method, h, end, off }.check(&name("four-bar"), FourBar::DEFAULT, &settled, tolerance);
            Run { method, h, end, off }.check(&name("cart"), Cart::DEFAULT, &settled, tolerance);
            Run { method, h, end, off }.check(&name("top"), Top::DEFAULT, &settled, tolerance);
            Run { method, h, end, off }.check(&name("pursuit"), Pursuit::DEFAULT, &settled, tolerance);
            Run { method, h, end, off }.check(
                &name("twice"),
                Pendulum::<2>::DEFAULT,
                &settled_redundant,
                tolerance,
            );
            Run { method, h, end, off: &[0] }.check(
                &name("one of two"),
                Pendulum::<2>::DEFAULT,
                &settled,
                tolerance,
            );
        }
    }
}

/// Nothing is held: the start is the position nearest to a poor guess that depends on the parameters itself.
#[test]
fn gradients_from_starts_that_are_not_held() {
    let method = Ali3p { tolerance: 1e-14, ..Ali3p::DEFAULT };
    let (h, end, off) = (0.02, 0.3, [].as_slice());
    let mechanism = FourBar { held: [false; 4], ..FourBar::DEFAULT };
    Run { method, h, end, off }.check("four-bar", mechanism, &settled, 1e-10);
    let mechanism = FourBar { held: [true, false, false, false], ..FourBar::DEFAULT };
    Run { method, h, end, off }.check("four-bar, one held", mechanism, &settled, 1e-10);
    let mechanism = Pendulum::<1> { held: [false; 2], ..Pendulum::<1>::DEFAULT };
    Run { method, h, end, off }.check("pendulum", mechanism, &settled, 1e-10);
    let mechanism = Pendulum::<2> { held: [false; 2], ..Pendulum::<2>::DEFAULT };
    Run { method, h, end, off }.check("twice", mechanism, &settled_redundant, 1e-10);
    let mechanism = Pursuit { held: [false; 5], ..Pursuit::DEFAULT };
    Run { method, h, end, off }.check("pursuit", mechanism, &settled, 1e-10);
}

/// Iterations contract by O(h) only: so far that imaginary parts have converged too.
fn settled_index_1(method: ImplicitIndex1) -> ImplicitIndex1 {
    ImplicitIndex1 { tolerance: 1e-30, ..method }
}

#[test]
fn gradients_of_implicit_index_1_runs() {
    let stabilisations = [(0.0, 0.0, 0.0), (20.0, 100.0, 0.0), (20.0, 100.0, 1e-6)];
    for (number, integrator) in integrators().into_iter().enumerate() {
        // Each integrator with one of them.
        let (rate, value, compliance) = stabilisations[number];
        let stabilisation = Stabilisation { rate, value, compliance };
        let method = ImplicitIndex1 {
            integrator,
            max_iterations: 50,
            tolerance: 1e-14,
            ..ImplicitIndex1::new(stabilisation)
        };
        let name = |what: &str| format!("{what} {integrator:?} {stabilisation:?}");
        let (h, end, off) = (0.01, 0.65, [].as_slice());
        let oracle = &settled_index_1;
        Run { method, h, end, off }.check(&name("pendulum"), Pendulum::<1>::DEFAULT, oracle, 1e-10);
        Run { method, h, end, off }.check(&name("four-bar"), FourBar::DEFAULT, oracle, 1e-10);
        Run { method, h, end, off }.check(&name("cart"), Cart::DEFAULT, oracle, 1e-10);
        Run { method, h, end, off }.check(&name("top"), Top::DEFAULT, oracle, 1e-10);
        Run { method, h, end, off }.check(&name("pursuit"), Pursuit::DEFAULT, oracle, 1e-10);
        Run { method, h, end, off }.check(&name("twice"), Pendulum::<2>::DEFAULT, oracle, 1e-10);
        Run { method, h, end, off: &[0] }.check(&name("one of two"), Pendulum::<2>::DEFAULT, oracle, 1e-10);
    }
}

/// The gradient has the order of the solution.
#[test]
fn gradients_converge_with_order_2() {
    let system = Lagrangian::<_, f64>::new(FourBar::DEFAULT);
    for integrator in [Implicit::TRAPEZOIDAL, Implicit::GeneralizedAlpha { spectral_radius: 0.7 }] {
        let method = Ali3p { integrator, ..Ali3p::DEFAULT };
        let run = |steps: f64| {
            Run { method, h: 0.8 / steps, end: BEGIN + 0.8, off: &[] }.differentiate(&any(&system)).unwrap()
        };
        let (coarse, middle, fine) = (run(400.0), run(800.0), run(1600.0));
        let p = FourBar::PARAMETERS;
        for i in 0..FourBar::OBJECTIVES {
            let row = |x: &[f64]| x[FourBar::OBJECTIVES + i * p..][..p].to_vec();
            let (coarse, middle, fine) = (row(&coarse), row(&middle), row(&fine));
            let (first, second) = (systems::distance(&coarse, &middle), systems::distance(&middle, &fine));
            let measured = systems::order(first, second);
            // The next term is of relative size C/steps.
            assert!((measured - 2.0).abs() < 0.05, "{integrator:?}, objective {i}: {measured}");
        }
    }
}

/// Every node is seen with its derivatives, states are those of the plain run, and a run can be ended.
#[test]
fn runs_are_observed_and_checked() {
    let system = Lagrangian::<_, f64>::new(Pendulum::<1>::DEFAULT);
    let system = any(&system);
    let dims = system.dims();
    let run = Differentiated(Fixed { method: Ali3p::DEFAULT, h: 0.1 });
    let mut scratch = vec![0.0; run.scratch_len(&dims).max(Assembly::differentiated_scratch_len(&dims))];
    let mut state = vec![0.0; State::<f64>::len(&dims)];
    let mut derivatives = vec![0.0; StateDerivatives::<f64>::len(&dims)];
    let mut gradient = vec![0.0; Gradient::<f64>::len(&dims)];
    Assembly::guess_differentiated(&system, BEGIN, &mut state, &mut derivatives, &mut scratch).unwrap();
    let assembly = Assembly::DEFAULT;
    let start =
        assembly.start_differentiated(&system, &mut input(), &mut state, &mut derivatives, &mut scratch);
    start.unwrap();
    let span = Span { start: BEGIN, end: 1.0, output: Output::Every(0.2) };
    let mut plain = state.clone();
    let fixed = run.0;
    let observe = |_: Node<'_, f64>| ControlFlow::Continue(());
    fixed.run(&system, &mut input(), &mut plain, &span, &mut scratch, observe).unwrap();

    let attempt = |stop: f64, span: Span<f64>, gradient: &mut [f64], scratch: &mut [f64]| {
        let (mut state, mut derivatives) = (state.clone(), derivatives.clone());
        let mut times = Vec::new();
        let observe = |node: Node<'_, f64>| {
            assert_eq!(node.derivatives.len(), StateDerivatives::<f64>::len(&dims));
            assert_eq!(node.step.iterations == 0, times.is_empty());
            times.push(node.motion.t);
            if node.motion.t >= stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let done =
            run.run(&system, &mut input(), &mut state, &mut derivatives, &span, gradient, scratch, observe);
        done.map(|statistics| (statistics, times, state))
    };
    let (statistics, times, end) = attempt(9.0, span, &mut gradient, &mut scratch).unwrap();
    assert_eq!((statistics.steps, statistics.stopped, times.len()), (9, false, 6));
    assert_eq!(systems::bits(&end), systems::bits(&plain));
    let (statistics, times, _) = attempt(0.4, span, &mut gradient, &mut scratch).unwrap();
    assert_eq!((statistics.steps, statistics.stopped, times.len()), (4, true, 3));
    let short = scratch.len() / 2;
    for (gradient, scratch) in [
        (&mut gradient[1..], &mut scratch[..]),
        (&mut vec![0.0; Gradient::<f64>::len(&dims)][..], &mut vec![0.0; short][..]),
    ] {
        let error = attempt(9.0, span, gradient, scratch).unwrap_err();
        assert!(matches!(error, StepError::Length { what: "gradient" | "scratch", .. }), "{error:?}");
    }
    let late = Span { start: 0.5, ..span };
    let error = attempt(9.0, late, &mut gradient, &mut scratch).unwrap_err();
    assert!(matches!(error, StepError::Setting { value: BEGIN, .. }), "{error:?}");
}

/// In single precision as far as it goes.
#[test]
fn single_precision_has_gradients_too() {
    let double = Lagrangian::<_, f64>::new(Pendulum::<1>::DEFAULT);
    let single = Lagrangian::<_, f32>::new(Pendulum::<1>::DEFAULT);
    let run = Run { method: Ali3p::DEFAULT, h: 0.01, end: 0.6, off: &[] };
    let (expected, found) =
        (run.differentiate(&any(&double)).unwrap(), run.differentiate(&any(&single)).unwrap());
    for (found, expected) in found[3..].chunks(6).zip(expected[3..].chunks(6)) {
        let size = expected.iter().fold(0.0, |size: f64, x| size.max(x.abs()));
        let found: Vec<f64> = found.iter().map(|x| f64::from(*x)).collect();
        // Rounding of positions over h² enters accelerations before their projection: 1e-7/1e-4.
        let error = systems::distance(&found, expected) / size;
        assert!(error < 2e-3, "{error:e}: {found:?} {expected:?}");
    }
}

/// A parameter that only one of two dependent rows knows has no derivative, and the error says so.
#[test]
fn an_incompatible_parameter_is_named() {
    let mechanism = Pendulum::<2> { second: Second::Contradiction, ..Pendulum::<2>::DEFAULT };
    let run = Run { method: Ali3p::DEFAULT, h: 0.01, end: 0.2, off: &[] };
    let system = Lagrangian::<_, f64>::new(mechanism);
    let error = run.differentiate(&any(&system)).unwrap_err();
    let StepError::Incompatible { parameter: 1 | 5, quantity: Quantity::Holonomic, .. } = error else {
        panic!("{error:?}")
    };
    let text = error.describe(&system).to_string();
    assert!(text.contains("is incompatible with constraints") && text.contains("rod`"), "{text}");
}
