//! The README's example; a test keeps the two the same.
use core::ops::ControlFlow;
use mbs_runtime::{Fixed, Integrator, Output, Rk4, Span};

mbs_macros::model_solver! { pub mod pendulum = "../models/pendulum.yaml"; }

fn main() {
    let model = pendulum::Model::new(pendulum::Parameters { L: 0.8, ..Default::default() });
    let mut y = model.start_state();
    let mut scratch = [0.0; Rk4::scratch_len(&pendulum::DIMS)];
    let span = Span { start: 0.0, end: 2.0, output: Output::Every(0.5) };
    Fixed { method: Rk4, h: 1e-3 }
        .simulate(&model, &mut model.signals(), &mut y, &span, &mut scratch, |at| {
            println!("{:.1} s: {:+.4} rad", at.t, at.z[pendulum::coordinate::HINGE_ANGLE]);
            ControlFlow::Continue(())
        })
        .expect("the pendulum has mass");
}
