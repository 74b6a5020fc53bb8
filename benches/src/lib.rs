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

use std::time::Instant;

/// Nanoseconds per call: the quietest of many batches, each long against the clock's resolution.
pub fn per_call(calls: usize, mut batch: impl FnMut()) -> Timing {
    let mut times: Vec<f64> = (0..BATCHES)
        .map(|_| {
            let start = Instant::now();
            batch();
            start.elapsed().as_nanos() as f64 / calls as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    Timing { best: times[0], median: times[BATCHES / 2] }
}

const BATCHES: usize = 31;

/// Nanoseconds per call.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// Of the quietest batch.
    pub best: f64,
    /// Of the middle one.
    pub median: f64,
}
