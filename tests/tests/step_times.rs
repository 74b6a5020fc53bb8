//! The worst step of many: time and iterations of the compiled five-bar linkage by ALI3-P, h = 1 ms, converged to 1e-10.
//!
//! `MBS_STEPS=1000000 cargo test --release -p mbs-tests --test step_times -- --nocapture` is the long run. Times are
//! reported, not asserted: they are the machine's. Iterations are the method's, and bounded.

use mbs_generated::five_bar::{DIMS, Model};
use mbs_runtime::formulation::{Ali3p, Assembly, State};
use mbs_runtime::inputs::NoInputs;
use std::time::Instant;

const H: f64 = 1e-3;
/// Steps of one run, 5 s; then the next begins with another stiffness.
const RUN: usize = 5000;

#[test]
fn the_worst_step_is_bounded() {
    let steps: usize = std::env::var("MBS_STEPS").ok().and_then(|n| n.parse().ok()).unwrap_or(10_000);
    let mut state = [0.0; State::<f64>::len(&DIMS)];
    let mut scratch = [0.0; Ali3p::scratch_len(&DIMS)];
    let mut assembly = [0.0; Assembly::scratch_len(&DIMS)];
    let mut iterations = [0usize; 21];
    let mut times: Vec<u32> = Vec::with_capacity(steps);
    let (mut fallbacks, mut phid, mut phidd) = (0, 0.0f64, 0.0f64);
    let mut model = Model::default();
    for step in 0..steps {
        if step % RUN == 0 {
            let mut parameters = *model.parameters();
            parameters.k_1 = 100.0 + (step / RUN) as f64;
            model = Model::new(parameters);
            let start = Assembly::DEFAULT.begin(&model, &mut NoInputs, 0.0, &mut state, &mut assembly);
            start.expect("assembles");
        }
        let begin = Instant::now();
        let done =
            Ali3p::DEFAULT.step(&model, &mut NoInputs, &mut state, H, &mut scratch).expect("converges");
        times.push(begin.elapsed().as_nanos().min(u128::from(u32::MAX)) as u32);
        iterations[done.iterations] += 1;
        fallbacks += done.fallbacks;
        (phid, phidd) = (phid.max(done.phid), phidd.max(done.phidd));
    }
    times.sort_unstable();
    println!("{steps} steps; iterations of Newton's method:");
    for (count, &steps) in iterations.iter().enumerate().filter(|(_, steps)| **steps > 0) {
        println!("  {count}: {steps}");
    }
    println!("time of a step, the clock's own included:");
    for (name, part) in [
        ("least", 0.0),
        ("median", 0.5),
        ("99 %", 0.99),
        ("99.9 %", 0.999),
        ("99.99 %", 0.9999),
        ("worst", 1.0),
    ] {
        println!("  {name:>8} {:>8} ns", times[(part * (steps - 1) as f64) as usize]);
    }
    // The prediction is off by h³, a correction squares that: two corrections reach rounding, a third may confirm it.
    assert_eq!(iterations[4..].iter().sum::<usize>(), 0, "{iterations:?}");
    assert_eq!(fallbacks, 0);
    assert!(phid < 1e-12 && phidd < 1e-10, "{phid:e} {phidd:e}");
}
