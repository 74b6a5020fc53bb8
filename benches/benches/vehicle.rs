//! The buggy: time of an ALI3-P step on the step descent (1 ms) and the lane change (10 ms), with and without the gradient by five
//! parameters; every bundle of it by itself; hot, and with caches emptied before every step; a histogram of many steps. What bundles are
//! in operations and bytes: `cargo run --release -p mbs-figures -- buggy`.
//!
//! Words on the command line choose parts: `cargo bench -p mbs-benches --bench vehicle -- gradient`.

use mbs_benches::{Timing, buggy, per_call};
use mbs_runtime::constrained::Weights;
use mbs_runtime::formulation::{Ali3p, Assembly, State, Tangent};
use mbs_runtime::inputs::NoInputs;
use mbs_runtime::sensitivity::{Differentiated, Gradient, Impulses, Sensitivities, StateDerivatives};
use mbs_runtime::{Constrained, EvalError, Fixed, Output, Span, System};
use std::f64::consts::SQRT_2;
use std::hint::black_box;
use std::ops::ControlFlow;
use std::time::Instant;

/// A consistent start and its derivatives.
fn started(model: &buggy::Model) -> [Vec<f64>; 2] {
    let dims = model.dims();
    let mut state = vec![0.0; State::<f64>::len(&dims)];
    let mut derivatives = vec![0.0; StateDerivatives::<f64>::len(&dims)];
    let mut scratch = vec![0.0; Assembly::differentiated_scratch_len(&dims)];
    Assembly::DEFAULT
        .begin_differentiated(model, &mut NoInputs, 0.0, &mut state, &mut derivatives, &mut scratch)
        .expect("assembles");
    [state, derivatives]
}

/// How often steps make a tangent for Newton's method.
const TANGENTS: [(&str, Tangent); 3] = [
    ("tangent carried", Tangent::Carried),
    ("one each step", Tangent::Reused),
    ("one each iteration", Tangent::Exact),
];

/// Steps alone.
fn manoeuvre(name: &str, model: &buggy::Model, h: f64, end: f64) {
    let dims = model.dims();
    let [start, _] = started(model);
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
    println!("{name}, h = {} ms, {steps} steps", 1e3 * h);
    for (tangents, tangent) in TANGENTS {
        let (timing, iterations) = time(Ali3p { tangent, ..Ali3p::DEFAULT });
        show(&format!("{tangents}, {iterations:.2} iterations"), timing, h);
    }
}

/// Steps with the gradient.
fn gradient(name: &str, model: &buggy::Model, h: f64, end: f64) {
    let dims = model.dims();
    let [start, start_derivatives] = started(model);
    let steps = (end / h).round() as usize;
    let mut gradient = vec![0.0; Gradient::<f64>::len(&dims)];
    let span = Span { start: 0.0, end, output: Output::Every(end) };
    println!("{name} with its gradient, h = {} ms, {steps} steps", 1e3 * h);
    for (tangents, tangent) in &TANGENTS[..2] {
        let run = Differentiated(Fixed { method: Ali3p { tangent: *tangent, ..Ali3p::DEFAULT }, h });
        let mut scratch = vec![0.0; run.scratch_len(&dims)];
        let whole = per_call(steps, || {
            let (mut state, mut derivatives) = (start.clone(), start_derivatives.clone());
            let watch = |_: mbs_runtime::formulation::Node<'_, f64>| ControlFlow::Continue(());
            let inputs = &mut NoInputs;
            run.run(model, inputs, &mut state, &mut derivatives, &span, &mut gradient, &mut scratch, watch)
                .expect("converges");
            black_box(&gradient);
        });
        show(tangents, whole, h);
    }
}

fn show(what: &str, timing: Timing, h: f64) {
    let us = |ns: f64| ns / 1e3;
    let (best, median) = (us(timing.best), us(timing.median));
    println!("  {what:<36} {best:>8.1} µs {median:>8.1} µs, {:.0} times real time", h * 1e9 / timing.best);
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
    println!("step descent, time of the wall");
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
    let (mut counted, mut limit) = (0, 16.0);
    while counted < times.len() {
        let below = times.partition_point(|time| *time < limit);
        if below > counted {
            println!("  {:>8.0} to {limit:>6.0} µs {:>9}", limit / SQRT_2, below - counted);
        }
        (counted, limit) = (below, SQRT_2 * limit);
    }
}

/// Each bundle of a step by itself, in hot caches, at a state on the way.
fn bundles(model: &buggy::Model, h: f64) {
    let dims = model.dims();
    let [mut state, _] = started(model);
    let mut scratch = vec![0.0; Ali3p::scratch_len(&dims)];
    for _ in 0..100 {
        Ali3p::DEFAULT.step(model, &mut NoInputs, &mut state, h, &mut scratch).expect("converges");
    }
    let view = State::of(&dims, &mut state).expect("its length");
    let (at, lambda) = (view.motion(&[]), view.lambda.to_vec());
    let mut w = vec![0.0; dims.workspace];
    let (mut r, mut phi, mut matrix) = (vec![0.0; dims.nq], vec![0.0; dims.rows()], vec![0.0; dims.n_matrix]);
    let (mut factors, n) = (vec![0.0; dims.n_factors], dims.nq + dims.rows());
    let (mut x, mut many) = (vec![1.0; n], vec![1.0; 5 * n]);
    let weights = Weights { velocity: 0.5 * h, position: 0.25 * h * h, ratio: 0.5 * h };
    let show = |name: &str, calls: &mut dyn FnMut() -> Result<(), EvalError>| {
        let timing = per_call(100, || (0..100).for_each(|_| calls().expect("values")));
        println!("  {name:<24} {:>7.2} µs", timing.best / 1e3);
    };
    println!("bundles, hot:");
    show("residual", &mut || model.residual(at, &lambda, &mut w, &mut r, &mut phi));
    show("newton", &mut || model.newton(at, &lambda, weights, &mut w, &mut r, &mut phi, &mut matrix));
    // Small against the row scales of about one.
    matrix[dims.n_matrix - dims.rows()..].fill(1e-9);
    show("factor", &mut || model.factor(&matrix, &mut w, &mut factors));
    show("solve", &mut || model.solve(&factors, &mut w, &mut x));
    x.fill(1.0);
    show("solve, five columns", &mut || model.solve_many(&factors, 5, &mut w, &mut x, &mut many));
    show("projection", &mut || model.projection(at.t, at.z, &[], &mut w, &mut matrix));
    show("constraint_rates", &mut || model.constraint_rates(at, &mut w, &mut phi));
    show("constraint_accelerations", &mut || model.constraint_accelerations(at, &mut w, &mut phi));
    let mut values = vec![0.0; dims.sensitivity.newton];
    show("linearise", &mut || model.linearise(at, &lambda, &mut w, &mut values));
    let mut values = vec![0.0; dims.sensitivity.projections];
    let impulses = Impulses {
        velocity: at.zd,
        velocity_multipliers: &lambda,
        acceleration: at.zdd,
        acceleration_multipliers: &lambda,
    };
    show("linearise_projections", &mut || model.linearise_projections(at, impulses, &mut w, &mut values));
}

fn main() {
    let fused = if cfg!(target_feature = "fma") { "fused" } else { "not fused" };
    println!("buggy, ALI3-P, Newton to 1e-10, products and sums {fused}: best and median");
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let wanted = |part: &str| words.is_empty() || words.iter().any(|word| word == part);
    let descent = buggy::Model::default();
    let parameters = buggy::Parameters {
        h_s: 0.0,
        steer: 0.013,
        speed: 10.0,
        spin: 10.0 / 0.2727,
        ..buggy::Parameters::default()
    };
    let lane_change = buggy::Model::new(parameters);
    if wanted("bundles") {
        bundles(&descent, 1e-3);
    }
    for (name, model, h, end) in
        [("step descent", &descent, 1e-3, 4.5), ("double lane change", &lane_change, 1e-2, 12.0)]
    {
        if wanted("step") {
            manoeuvre(name, model, h, end);
        }
        if wanted("gradient") {
            gradient(name, model, h, end);
        }
    }
    if wanted("histogram") {
        // A million with MBS_STEPS=1000000.
        let total = std::env::var("MBS_STEPS").ok().and_then(|n| n.parse().ok()).unwrap_or(45_000);
        extremes(&descent, 1e-3, 4.5, total);
    }
}
