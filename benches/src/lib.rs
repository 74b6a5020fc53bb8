//! The measured models, and how time is taken.

include!(concat!(env!("OUT_DIR"), "/bicycle_by_32.rs"));
include!(concat!(env!("OUT_DIR"), "/bicycle_by_1000.rs"));
include!(concat!(env!("OUT_DIR"), "/buggy.rs"));
include!(concat!(env!("OUT_DIR"), "/five_bar.rs"));
include!(concat!(env!("OUT_DIR"), "/five_bar_frozen.rs"));
include!(concat!(env!("OUT_DIR"), "/five_bar_by_1.rs"));
include!(concat!(env!("OUT_DIR"), "/five_bar_by_20.rs"));
include!(concat!(env!("OUT_DIR"), "/five_bar_by_100.rs"));
include!(concat!(env!("OUT_DIR"), "/four_bar_1.rs"));
include!(concat!(env!("OUT_DIR"), "/four_bar_2.rs"));
include!(concat!(env!("OUT_DIR"), "/four_bar_5.rs"));
include!(concat!(env!("OUT_DIR"), "/four_bar_10.rs"));
include!(concat!(env!("OUT_DIR"), "/four_bar_20.rs"));
include!(concat!(env!("OUT_DIR"), "/four_bar_40.rs"));
include!(concat!(env!("OUT_DIR"), "/human43.rs"));
include!(concat!(env!("OUT_DIR"), "/slider_crank.rs"));
include!(concat!(env!("OUT_DIR"), "/ur5.rs"));

mod parameters;
pub use parameters::{PARAMETERS, SPLINE_VALUES};
mod windows;
pub use windows::WINDOWS;

use std::sync::OnceLock;
use std::time::Instant;

/// Nanoseconds per call of a batch of so many: the quietest and the middle one of some rounds, each long against the ticks
/// in which a thread's time is counted.
pub fn per_call(calls: usize, mut batch: impl FnMut()) -> Timing {
    let [timing] = in_turn(calls, [&mut batch]);
    timing
}

/// The same of several batches of as many calls, which take turns in every round.
pub fn in_turn<const N: usize>(calls: usize, batches: [&mut dyn FnMut(); N]) -> [Timing; N] {
    let mut all = batches.map(|batch| {
        let start = Instant::now();
        batch();
        let passes = (ROUND_NS / start.elapsed().as_nanos().max(1) as f64).ceil();
        (batch, passes, Vec::new())
    });
    for _ in 0..ROUNDS {
        for (batch, passes, times) in &mut all {
            let start = nanoseconds();
            (0..*passes as usize).for_each(|_| batch());
            times.push((nanoseconds() - start) / (*passes * calls as f64));
        }
    }
    all.map(|(_, _, mut times)| {
        times.sort_by(f64::total_cmp);
        Timing { best: times[0], median: times[ROUNDS / 2] }
    })
}

const ROUNDS: usize = 15;
const ROUND_NS: f64 = 1e8;

/// Time that this thread has been running for; where the system does not tell, time that has passed.
fn nanoseconds() -> f64 {
    static BEGIN: OnceLock<Instant> = OnceLock::new();
    let running = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let running = running.and_then(|text| text.split_whitespace().next()?.parse().ok());
    running.unwrap_or_else(|| BEGIN.get_or_init(Instant::now).elapsed().as_nanos() as f64)
}

/// Nanoseconds per call.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// Of the quietest batch.
    pub best: f64,
    /// Of the middle one.
    pub median: f64,
}
