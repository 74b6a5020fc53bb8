//! The README's example; a test keeps the two the same.
use core::ops::ControlFlow;
use mbs_runtime::{Ali3p, Assembly, Fixed, Output, Span, State};

mbs_macros::model_solver! { pub mod five_bar = "../models/five_bar.yaml"; }
use five_bar::{DIMS, coordinate};

fn main() {
    let model = five_bar::Model::new(five_bar::Parameters { k_1: 150.0, ..Default::default() });
    let mut inputs = model.signals();

    // Start values are guesses; assembly closes the loop.
    let mut state = [0.0; State::<f64>::len(&DIMS)];
    let mut scratch = [0.0; Assembly::scratch_len(&DIMS)];
    Assembly::DEFAULT.begin(&model, &mut inputs, 0.0, &mut state, &mut scratch).expect("bars that reach");

    let mut scratch = [0.0; Ali3p::scratch_len(&DIMS)];
    let span = Span { start: 0.0, end: 5.0, output: Output::Every(1.0) };
    Fixed { method: Ali3p::DEFAULT, h: 1e-3 }
        .run(&model, &mut inputs, &mut state, &span, &mut scratch, |node| {
            let (t, z) = (node.motion.t, node.motion.z);
            println!("{t:.0} s: {:+.4} rad, {:+.3} N", z[coordinate::A_ANGLE], node.lambda[0]);
            ControlFlow::Continue(())
        })
        .expect("a small step");
}
