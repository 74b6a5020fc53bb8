//! The measured models, and how time is taken.

include!(concat!(env!("OUT_DIR"), "/five_bar.rs"));
include!(concat!(env!("OUT_DIR"), "/five_bar_frozen.rs"));
include!(concat!(env!("OUT_DIR"), "/four_bar_1.rs"));
include!(concat!(env!("OUT_DIR"), "/four_bar_2.rs"));
include!(concat!(env!("OUT_DIR"), "/four_bar_5.rs"));
include!(concat!(env!("OUT_DIR"), "/four_bar_10.rs"));
include!(concat!(env!("OUT_DIR"), "/four_bar_20.rs"));
include!(concat!(env!("OUT_DIR"), "/four_bar_40.rs"));

mod windows;
pub use windows::WINDOWS;

use std::sync::OnceLock;
use std::time::Instant;

/// Nanoseconds per call: the quietest of many batches, each long against the clock's resolution.
pub fn per_call(calls: usize, mut batch: impl FnMut()) -> Timing {
    let mut times: Vec<f64> = (0..BATCHES)
        .map(|_| {
            let start = nanoseconds();
            batch();
            (nanoseconds() - start) / calls as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    Timing { best: times[0], median: times[BATCHES / 2] }
}

const BATCHES: usize = 31;

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
