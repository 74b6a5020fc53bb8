//! Nothing in the runtime allocates.

mod systems;

use std::ops::ControlFlow;

use mbs_runtime::formulation::Record;
use mbs_runtime::inputs::{NoInputs, from_fn};
use mbs_runtime::{
    Adaptive, Ali3p, Assembly, Dop853, DormandPrince, Fixed, Hold, ImplicitIndex1, Integrator, Output,
    ProjectionMatrix, Rk4, Span, Stabilisation, State,
};
use systems::five_bar::{DIMS, FiveBar};
use systems::{Driven, FreeBody, Oscillator};

fn allocations(f: impl FnOnce()) -> u64 {
    allocation_counter::measure(f).count_total
}

fn check(integrator: &impl Integrator) {
    let mut scratch = [0.0; 256];
    let body = FreeBody { across: 1.0, along: 2.5 };
    let driven = Driven { hold: [Hold::Linear] };
    let broken = Oscillator { omega: f64::NAN };
    let span = Span { start: 0.0, end: 2.0, output: Output::Every(0.02) };
    let mut seen = 0;
    let count = allocations(|| {
        let observe = |seen: &mut i32| {
            *seen += 1;
            ControlFlow::Continue(())
        };
        let mut y = body.start();
        let run = integrator.run(&body, &mut NoInputs, &mut y, &span, &mut scratch, |_| observe(&mut seen));
        assert!(run.is_ok());
        let mut y = driven.start();
        let mut inputs = from_fn(|t, u: &mut [f64]| u.fill(Driven::input(t)));
        let run = integrator.run(&driven, &mut inputs, &mut y, &span, &mut scratch, |_| observe(&mut seen));
        assert!(run.is_ok());
        let mut y = broken.start();
        let run = integrator.run(&broken, &mut NoInputs, &mut y, &span, &mut scratch, |_| observe(&mut seen));
        assert!(run.is_err());
    });
    assert_eq!(count, 0);
    assert_eq!(seen, 2 * 101 + 1);
}

/// Assembly, steps of all implicit formulations, a failure, and the record of a step.
fn check_constrained() {
    let system = FiveBar::default();
    let mut state = [0.0; State::<f64>::len(&DIMS)];
    let mut record = [0.0; Record::<f64>::len(&DIMS)];
    let mut scratch = [0.0; 512];
    let stabilisation = Stabilisation { rate: 20.0, value: 100.0, compliance: 0.0 };
    let count = allocations(|| {
        State::of(&DIMS, &mut state).unwrap().reset(0.0);
        State::of(&DIMS, &mut state).unwrap().z.copy_from_slice(&FiveBar::start());
        Assembly::DEFAULT.start(&system, &mut NoInputs, &mut state, &mut scratch).unwrap();
        let broken = FiveBar { broken: true };
        for system in [&system, &broken] {
            for method in [Ali3p::DEFAULT, Ali3p { projection: ProjectionMatrix::Tangent, ..Ali3p::DEFAULT }]
            {
                let method = Ali3p { max_iterations: 40, ..method };
                let span = Span { start: 0.0, end: 0.1, output: Output::Steps };
                let mut state = state;
                let run = Fixed { method, h: 1e-3 }.run(
                    system,
                    &mut NoInputs,
                    &mut state,
                    &span,
                    &mut scratch,
                    |_| ControlFlow::Continue(()),
                );
                assert!(run.is_ok());
            }
        }
        let refused = Ali3p { max_iterations: 1, ..Ali3p::DEFAULT };
        assert!(refused.step(&system, &mut NoInputs, &mut state, 1e-3, &mut scratch).is_err());
        let index1 = ImplicitIndex1::new(stabilisation);
        index1.step(&system, &mut NoInputs, &mut state, 1e-3, &mut scratch).unwrap();
        let method = Ali3p::DEFAULT;
        method.step_recorded(&system, &mut NoInputs, &mut state, 1e-3, &mut record, &mut scratch).unwrap();
    });
    assert_eq!(count, 0);
}

#[test]
fn runs_do_not_allocate() {
    check_constrained();
    // The counter counts.
    assert_eq!(allocations(|| drop(std::hint::black_box(Box::new(1)))), 1);
    check(&Fixed { method: Rk4, h: 0.01 });
    check(&Fixed { method: DormandPrince, h: 0.02 });
    check(&Adaptive::new(1e-8, 1e-8));
    check(&Adaptive::of(Dop853, 1e-8, 1e-8));
}
