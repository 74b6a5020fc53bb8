//! The buggy: time of an ALI3-P step on the step descent (1 ms) and the lane change (10 ms), with and without the gradient by five
//! parameters; hot, and with caches emptied before every step; the worst of many steps.

use mbs_benches::{buggy, per_call};
use mbs_runtime::formulation::{Ali3p, Assembly, State, Tangent};
use mbs_runtime::inputs::NoInputs;
use mbs_runtime::sensitivity::{Differentiated, Gradient, StateDerivatives};
use mbs_runtime::{Fixed, Output, Span, System};
use std::hint::black_box;
use std::ops::ControlFlow;
use std::time::Instant;

/// A consistent start and its derivatives.
fn started(model: &buggy::Model) -> [Vec<f64>; 2] {
    let dims = model.dims();
    let mut state = vec![0.0; State::<f64>::len(&dims)];
    let mut derivatives = vec![0.0; StateDerivatives::<f64>::len(&dims)];
    let mut scratch = vec![0.0; Assembly::differentiated_scratch_len(&dims)];
    Assembly::guess_differentiated(model, 0.0, &mut state, &mut derivatives, &mut scratch).expect("lengths");
    Assembly::DEFAULT
        .start_differentiated(model, &mut NoInputs, &mut state, &mut derivatives, &mut scratch)
        .expect("assembles");
    [state, derivatives]
}

/// Steps alone, and steps with the gradient.
fn manoeuvre(name: &str, model: &buggy::Model, h: f64, end: f64) {
    let dims = model.dims();
    let [start, start_derivatives] = started(model);
    let steps = (end / h).round() as usize;
    let mut scratch = vec![0.0; Ali3p::scratch_len(&dims)];
    let mut time = |method: Ali3p| {
        let mut iterations = 0;
        let timing = per_call(steps, || {
            let mut state = start.clone();
            iterations = 0;
            for _ in 0..steps {
                let step = method.step(model, &mut NoInputs, &mut state, h, &mut scratch);
                iterations += step.expect("converges").iterations;
            }
            black_box(&state);
        });
        (timing, iterations as f64 / steps as f64)
    };
    let (plain, each) = time(Ali3p::DEFAULT);
    let (reused, reused_each) = time(Ali3p { tangent: Tangent::Reused, ..Ali3p::DEFAULT });
    let run = Differentiated(Fixed { method: Ali3p::DEFAULT, h });
    let mut scratch = vec![0.0; run.scratch_len(&dims)];
    let mut gradient = vec![0.0; Gradient::<f64>::len(&dims)];
    let span = Span { start: 0.0, end, output: Output::Every(end) };
    let whole = per_call(steps, || {
        let (mut state, mut derivatives) = (start.clone(), start_derivatives.clone());
        let watch = |_: mbs_runtime::sensitivity::DifferentiatedNode<'_, f64>| ControlFlow::Continue(());
        let inputs = &mut NoInputs;
        run.run(model, inputs, &mut state, &mut derivatives, &span, &mut gradient, &mut scratch, watch)
            .expect("converges");
        black_box(&gradient);
    });
    let us = |ns: f64| ns / 1e3;
    println!("{name}, h = {} ms, {steps} steps, {each:.2} iterations each", 1e3 * h);
    println!("  step                 {:>8.1} µs {:>8.1} µs", us(plain.best), us(plain.median));
    println!(
        "  one tangent a step   {:>8.1} µs {:>8.1} µs, {reused_each:.2} iterations each",
        us(reused.best),
        us(reused.median)
    );
    println!("  step with gradient   {:>8.1} µs {:>8.1} µs", us(whole.best), us(whole.median));
    println!(
        "  faster than real time {:>7.0}, with gradient {:.0}",
        h * 1e9 / plain.best,
        h * 1e9 / whole.best
    );
}

/// Steps with all caches cold, and the worst of many hot ones.
fn extremes(model: &buggy::Model, h: f64, end: f64, total: usize) {
    let dims = model.dims();
    let [start, _] = started(model);
    let mut scratch = vec![0.0; Ali3p::scratch_len(&dims)];
    let mut state = start.clone();
    let mut ballast = vec![0u8; 64 << 20];
    let mut cold: Vec<f64> = Vec::new();
    for _ in 0..200 {
        for byte in ballast.iter_mut().step_by(64) {
            *byte = byte.wrapping_add(1);
        }
        black_box(&ballast);
        let began = Instant::now();
        Ali3p::DEFAULT.step(model, &mut NoInputs, &mut state, h, &mut scratch).expect("converges");
        cold.push(1e6 * began.elapsed().as_secs_f64());
    }
    cold.sort_by(f64::total_cmp);
    println!("  cold caches          {:>8.1} µs (median), {:.1} µs (worst of 200)", cold[100], cold[199]);
    let mut times: Vec<f64> = Vec::with_capacity(total);
    let steps = (end / h).round() as usize;
    while times.len() < total {
        state.copy_from_slice(&start);
        for _ in 0..steps.min(total - times.len()) {
            let began = Instant::now();
            Ali3p::DEFAULT.step(model, &mut NoInputs, &mut state, h, &mut scratch).expect("converges");
            times.push(1e6 * began.elapsed().as_secs_f64());
        }
    }
    times.sort_by(f64::total_cmp);
    let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize];
    println!(
        "  of {total} steps: half below {:.1} µs, 99.9 % below {:.1} µs, worst {:.1} µs",
        at(0.5),
        at(0.999),
        at(1.0)
    );
}

fn main() {
    println!("buggy, ALI3-P, Newton to 1e-10: best and median");
    let descent = buggy::Model::default();
    manoeuvre("step descent", &descent, 1e-3, 4.5);
    // A million with MBS_STEPS=1000000.
    let total = std::env::var("MBS_STEPS").ok().and_then(|n| n.parse().ok()).unwrap_or(45_000);
    extremes(&descent, 1e-3, 4.5, total);
    let parameters = buggy::Parameters {
        h_s: 0.0,
        steer: 0.013,
        speed: 10.0,
        spin: 10.0 / 0.2727,
        ..buggy::Parameters::default()
    };
    manoeuvre("double lane change", &buggy::Model::new(parameters), 1e-2, 12.0);
}
