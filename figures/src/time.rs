//! Time of a call: median over batches, each batch over many states; the fastest of several rounds.

use mbs_runtime::inputs::Constant;
use mbs_runtime::integrator::FixedStep;
use mbs_runtime::{At, EvalError, ForwardDynamics, Rk4, Start, System};
use std::hint::black_box;
use std::time::Instant;

/// States a batch goes through, so that neither branches nor elementary functions see the same argument twice.
const STATES: usize = 64;
/// A batch is repeated until it takes about this long, far above the clock's resolution.
const BATCH_NS: f64 = 200_000.0;
const BATCHES: usize = 101;
/// Rounds, of which the one least disturbed by others counts.
const ROUNDS: usize = 5;

/// States around the start: angles from −3 to 3, rates to 2.
fn states<M: Start + System<S = f64>>(model: &M) -> Vec<Vec<f64>> {
    let d = model.dims();
    let (mut z, mut v) = (vec![0.0; d.nq], vec![0.0; d.nv]);
    model.start(&mut z, &mut v, &mut []).expect("lengths");
    let start = [z, v].concat();
    // A linear congruence; the numbers need only differ.
    let mut seed = 1u64;
    let mut random = || {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 11) as f64 / (1u64 << 53) as f64 * 2.0 - 1.0
    };
    let spread = |i: usize| if i < d.nq { 3.0 } else { 2.0 };
    (0..STATES).map(|_| start.iter().enumerate().map(|(i, y)| y + spread(i) * random()).collect()).collect()
}

/// Nanoseconds per call of a forward dynamics, everything in the caches.
pub(crate) fn forward_dynamics<M, F>(model: &M, call: F) -> f64
where
    M: Start + System<S = f64>,
    F: Fn(At<'_, f64>, &mut [f64], &mut [f64], &mut [f64]) -> Result<(), EvalError>,
{
    let d = model.dims();
    let (states, u) = (states(model), vec![0.1; d.nu]);
    let (mut w, mut zd, mut vd) = (vec![0.0; d.workspace], vec![0.0; d.nq], vec![0.0; d.nv]);
    per_call(&states, |y| {
        let at = At::of_state(&d, 0.0, black_box(y), &u).expect("lengths");
        call(at, &mut w, &mut zd, &mut vd).expect("regular");
        black_box((&zd, &vd));
    })
}

/// Nanoseconds per step of RK4.
pub(crate) fn step<M: ForwardDynamics<S = f64> + Start>(model: &M) -> f64 {
    let d = model.dims();
    let (states, u) = (states(model), vec![0.1; d.nu]);
    let (mut y, mut scratch) = (vec![0.0; d.state()], vec![0.0; Rk4::scratch_len(&d)]);
    per_call(&states, |state| {
        y.copy_from_slice(black_box(state));
        Rk4.step(model, &mut Constant(&u), &mut 0.0, &mut y, 1e-4, &mut scratch).expect("regular");
        black_box(&y);
    })
}

fn per_call(states: &[Vec<f64>], mut call: impl FnMut(&[f64])) -> f64 {
    let mut batch = |passes: usize| {
        let start = Instant::now();
        for _ in 0..passes {
            states.iter().for_each(|y| call(y));
        }
        start.elapsed().as_nanos() as f64 / (passes * states.len()) as f64
    };
    let passes = (BATCH_NS / (batch(10) * states.len() as f64)).max(1.0) as usize;
    let mut round = || median((0..BATCHES).map(|_| batch(passes)).collect());
    (0..ROUNDS).map(|_| round()).fold(f64::INFINITY, f64::min)
}

/// Runs `work` and measures the processor time that this process and its finished children take for it, in seconds: fields 14 to 17 of
/// `proc_pid_stat(5)`, in ticks of 10 ms. Unlike wall time it does not depend on the load of the machine. Wall time where there is no `/proc`.
pub(crate) fn processor_time<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let ticks = || {
        let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
        let (_, after_name) = stat.rsplit_once(')')?;
        after_name
            .split_whitespace()
            .skip(11)
            .take(4)
            .map(|field| field.parse::<f64>().ok())
            .sum::<Option<f64>>()
    };
    let (start, before) = (Instant::now(), ticks());
    let result = work();
    let elapsed = start.elapsed().as_secs_f64();
    let seconds = match (before, ticks()) {
        (Some(before), Some(after)) => (after - before) / 100.0,
        _ => elapsed,
    };
    (seconds, result)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
