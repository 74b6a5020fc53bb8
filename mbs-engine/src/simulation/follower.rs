//! Who follows a run: shows how far it is, takes its results, and may stop it.

use std::ops::ControlFlow;

/// Who follows a run. Where an answer is a break the run ends at this node.
pub trait Follower {
    /// Whether it takes rows of results; otherwise they are not evaluated.
    fn wants_rows(&self) -> bool {
        false
    }

    /// A row of results: the time, then the other [`columns`](super::columns()) in parts.
    fn row(&mut self, t: f64, parts: &[&[f64]]) -> ControlFlow<()> {
        let _ = (t, parts);
        ControlFlow::Continue(())
    }

    /// The run has come to this time.
    fn reached(&mut self, t: f64) -> ControlFlow<()> {
        let _ = t;
        ControlFlow::Continue(())
    }
}

/// No observer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Follower for Silent {}
