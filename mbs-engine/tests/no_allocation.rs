//! Once a model is built, stepping and observing allocate nothing.

mod common;

use common::{interpreted, shipped};
use mbs_runtime::{Adaptive, Energy, Fixed, Integrator, Output, Outputs, Rk4, Span, System};
use std::ops::ControlFlow;

#[test]
fn stepping_allocates_nothing() {
    for (name, case) in [("cart_pole", Some("shaken")), ("mirrored", None), ("spinning_top", None)] {
        let model = interpreted(&shipped(name), case);
        let d = model.dims();
        let mut y = model.start_state();
        let (fixed, adaptive) = (Fixed { method: Rk4, h: 1e-3 }, Adaptive::new(1e-6, 1e-8));
        let mut scratch = vec![0.0; fixed.scratch_len(&d).max(Adaptive::scratch_len(&d))];
        let (mut w, mut out, vd) = (vec![0.0; d.workspace], vec![0.0; d.n_outputs], vec![0.0; d.nv]);
        let mut inputs = model.input_signals();
        let span = Span { start: 0.0, end: 0.05, output: Output::Steps };
        let counted = allocation_counter::measure(|| {
            let mut observe = |at: mbs_runtime::At<'_, f64>| {
                let mut energy = [0.0; 3];
                model.energy(at, &mut w, &mut energy).expect("energy");
                model.outputs(at, &vd, &mut w, &mut out).expect("outputs");
                ControlFlow::Continue(())
            };
            fixed.run(&model, &mut inputs, &mut y, &span, &mut scratch, &mut observe).expect("a run");
            adaptive.run(&model, &mut inputs, &mut y, &span, &mut scratch, &mut observe).expect("a run");
        });
        assert_eq!(counted.count_total, 0, "{name}");
    }
}
