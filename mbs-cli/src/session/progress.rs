//! Progress of long runs and other work, on a terminal.

use crate::output::number::{duration, significant};
use std::io::{self, IsTerminal};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Runs shorter than this show nothing.
const PATIENCE: Duration = Duration::from_secs(1);
/// Time between two messages.
const PAUSE: Duration = Duration::from_millis(200);

/// Whether a line on standard error can be written again: it is a terminal, and one that can clear lines.
fn can_rewrite() -> bool {
    io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|kind| kind != "dumb")
}

/// A line that is written again and again.
pub(crate) struct Progress {
    span: (f64, f64),
    start: Instant,
    next: Option<Instant>,
    shown: bool,
}

impl Progress {
    /// Over a span of time; silent where standard error is no terminal, or a dumb one.
    pub(crate) fn new(span: (f64, f64)) -> Progress {
        let start = Instant::now();
        Progress { span, start, next: can_rewrite().then(|| start + PATIENCE), shown: false }
    }

    /// The run has come to this time.
    pub(crate) fn reached(&mut self, t: f64) {
        let elapsed = self.start.elapsed().as_secs_f64();
        self.show(|span| line(span, t, elapsed));
    }

    /// Other work.
    pub(crate) fn say(&mut self, what: &str) {
        self.show(|_| what.into());
    }

    fn show(&mut self, line: impl FnOnce((f64, f64)) -> String) {
        let now = Instant::now();
        if self.next.is_none_or(|next| now < next) {
            return;
        }
        self.next = Some(now + PAUSE);
        self.shown = true;
        super::files::rewrite(&line(self.span));
    }

    /// Time since the beginning; clears the line.
    pub(crate) fn finish(&mut self) -> f64 {
        if std::mem::take(&mut self.shown) {
            super::files::rewrite("");
        }
        self.next = None;
        self.start.elapsed().as_secs_f64()
    }
}

/// Shows that work of unknown length is under way, and since when, until it is dropped.
pub(crate) struct Ticker {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Ticker {
    /// Silent for the first second, and where standard error is no terminal, or a dumb one.
    pub(crate) fn new(what: String) -> Ticker {
        if !can_rewrite() {
            return Ticker { stop: None, thread: None };
        }
        let (stop, stopped) = mpsc::channel::<()>();
        let thread = thread::spawn(move || {
            let start = Instant::now();
            let mut pause = PATIENCE;
            // Nothing is ever sent: the channel ends with its ticker.
            while let Err(mpsc::RecvTimeoutError::Timeout) = stopped.recv_timeout(pause) {
                pause = PAUSE;
                let elapsed = start.elapsed().as_secs_f64();
                super::files::rewrite(&format!("{what}, {elapsed:.0} s"));
            }
            if pause == PAUSE {
                super::files::rewrite("");
            }
        });
        Ticker { stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn line((begin, end): (f64, f64), t: f64, elapsed: f64) -> String {
    let (done, rate) = ((t - begin) / (end - begin), (t - begin) / elapsed);
    format!(
        "{:3.0} %  t = {} of {} s, {} s per second, {} left",
        100.0 * done,
        significant(t, 4),
        significant(end, 4),
        significant(rate, 3),
        duration((end - t) / rate)
    )
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_line_tells_how_far_and_how_long() {
        assert_eq!(super::line((0.0, 10.0), 2.5, 5.0), " 25 %  t = 2.5 of 10 s, 0.5 s per second, 15 s left");
    }
}
