//! Nothing in the runtime allocates.

mod systems;

use std::ops::ControlFlow;

use mbs_runtime::inputs::{NoInputs, from_fn};
use mbs_runtime::{Adaptive, DormandPrince, Fixed, Hold, Integrator, Output, Rk4, Span};
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
        let run =
            integrator.simulate(&body, &mut NoInputs, &mut y, &span, &mut scratch, |_| observe(&mut seen));
        assert!(run.is_ok());
        let mut y = driven.start();
        let mut inputs = from_fn(|t, u: &mut [f64]| u.fill(Driven::input(t)));
        let run =
            integrator.simulate(&driven, &mut inputs, &mut y, &span, &mut scratch, |_| observe(&mut seen));
        assert!(run.is_ok());
        let mut y = broken.start();
        let run =
            integrator.simulate(&broken, &mut NoInputs, &mut y, &span, &mut scratch, |_| observe(&mut seen));
        assert!(run.is_err());
    });
    assert_eq!(count, 0);
    assert_eq!(seen, 2 * 101 + 1);
}

#[test]
fn runs_do_not_allocate() {
    // The counter counts.
    assert_eq!(allocations(|| drop(std::hint::black_box(Box::new(1)))), 1);
    check(&Fixed { method: Rk4, h: 0.01 });
    check(&Fixed { method: DormandPrince, h: 0.02 });
    check(&Adaptive::new(1e-8, 1e-8));
}
