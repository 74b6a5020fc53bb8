//! Once a model is built, and compiled where it shall be, stepping and observing allocate nothing.

mod common;

use common::{interpreted, shipped};
use mbs_engine::simulation::Overrides;
use mbs_engine::{Engine, Fusing, Simulation};
use mbs_runtime::{Adaptive, Energy, Fixed, Integrator, Output, Outputs, Rk4, Span, System};
use std::ops::ControlFlow;

#[test]
fn stepping_allocates_nothing() {
    let models = [("cart_pole", Some("shaken")), ("mirrored", None), ("spinning_top", None)];
    for ((name, case), engine) in models.into_iter().flat_map(|m| [(m, Engine::Tape), (m, Engine::Jit)]) {
        let mut model = interpreted(&shipped(name), case);
        model.set_engine(engine, None, Fusing::AsCompiled);
        let compiled = model.compile();
        assert_eq!(
            compiled > 0,
            engine == Engine::Jit && mbs_jit::availability(Fusing::AsCompiled).is_ok(),
            "{name}"
        );
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

/// A run of known length writes machine code before its first step, and none where too few steps follow: no step writes any.
#[test]
fn machine_code_is_written_before_the_first_step() {
    let (five_bar, _) = mbs_codegen::read("five_bar.yaml", &shipped("five_bar")).expect("a valid model");
    let five_bar = mbs_codegen::analysis::Analysed::of(five_bar);
    for (steps, expected) in [(20, false), (1000, mbs_jit::availability(Fusing::AsCompiled).is_ok())] {
        let end = Some(1e-3 * f64::from(steps));
        let overrides = Overrides { step: Some(1e-3), end, ..Overrides::default() };
        let mut simulation = Simulation::with(&five_bar, None, &[], &overrides).expect("a start");
        let compiled = simulation.model().compiled();
        assert_eq!(compiled > 0, expected, "{steps} steps");
        (0..steps).for_each(|_| simulation.step(&[]).expect("a step"));
        assert_eq!(simulation.model().compiled(), compiled, "{steps} steps");
    }
}
