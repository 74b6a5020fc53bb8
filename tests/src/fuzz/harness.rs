//! The loop: one input after the other, each within its limits, panics caught, findings told by seed.

use super::input::Input;
use super::minimise::minimise;
use super::target::Outcome;
use std::cell::RefCell;
use std::fs::File;
use std::io::{Seek, Write};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What one input may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Time of the processor; of the wall clock where the system does not tell it.
    pub time: Duration,
    /// Bytes held at one time.
    pub memory: u64,
    /// Findings after which a run ends.
    pub findings: usize,
}

/// An input that broke a promise.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Which.
    pub seed: u64,
    /// What happened.
    pub what: String,
    /// The smallest text for which the same happens.
    pub text: String,
}

/// What a run saw.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Inputs tried.
    pub inputs: u64,
    /// Inputs that became modules.
    pub accepted: u64,
    /// Runs of models that ended well, and in an error value.
    pub runs: (u64, u64),
    /// Longest time and its seed.
    pub slowest: (Duration, u64),
    /// Most bytes and their seed.
    pub largest: (u64, u64),
    /// What went wrong.
    pub findings: Vec<Finding>,
}

/// A run over seeds.
pub struct Harness<'a> {
    /// What an input may take.
    pub limits: Limits,
    /// Makes an input.
    pub input: &'a dyn Fn(u64) -> Input,
    /// Tries it.
    pub target: &'a dyn Fn(&Input) -> Result<Outcome, String>,
    /// Calls and gives the most bytes held meanwhile.
    pub measure: &'a dyn Fn(&mut dyn FnMut()) -> u64,
    /// Where the seed under way is noted, so that it is known even if the process dies.
    pub note: Option<PathBuf>,
}

thread_local! {
    /// The message of the last panic on this thread, while panics are caught.
    static CAUGHT: RefCell<Option<Option<String>>> = const { RefCell::new(None) };
}

/// Panics of a thread that catches them are kept for its report; all others print as ever.
fn keep_panics() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let kept = CAUGHT.with_borrow_mut(|caught| match caught {
                Some(slot) => {
                    *slot = Some(info.to_string());
                    true
                }
                None => false,
            });
            if !kept {
                before(info);
            }
        }));
    });
}

/// Ends the process if one input takes far too long: a hang cannot be caught.
struct Watchdog {
    /// Seed and, in milliseconds since the start, when it began; nothing is under way at `u64::MAX`.
    began: Arc<(AtomicU64, AtomicU64)>,
    done: Arc<AtomicBool>,
    start: Instant,
}

impl Watchdog {
    fn new(patience: Duration) -> Watchdog {
        let began = Arc::new((AtomicU64::new(0), AtomicU64::new(u64::MAX)));
        let done = Arc::new(AtomicBool::new(false));
        let start = Instant::now();
        let (its_began, its_done) = (Arc::clone(&began), Arc::clone(&done));
        std::thread::spawn(move || {
            while !its_done.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(200));
                let at = its_began.1.load(Ordering::Relaxed);
                let now = start.elapsed().as_millis() as u64;
                if at != u64::MAX && now.saturating_sub(at) > patience.as_millis() as u64 {
                    eprintln!("seed {} hangs", its_began.0.load(Ordering::Relaxed));
                    std::process::abort();
                }
            }
        });
        Watchdog { began, done, start }
    }

    fn begin(&self, seed: u64) {
        self.began.0.store(seed, Ordering::Relaxed);
        self.began.1.store(self.start.elapsed().as_millis() as u64, Ordering::Relaxed);
    }

    fn pause(&self) {
        self.began.1.store(u64::MAX, Ordering::Relaxed);
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
    }
}

/// What this thread has had of a processor; a busy machine takes nothing of it.
pub fn processor_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split(' ').next()?.parse().ok().map(Duration::from_nanos)
}

/// What one try gave.
struct Tried {
    result: Result<Outcome, String>,
    time: Duration,
    memory: u64,
}

impl Harness<'_> {
    /// Tries all seeds.
    pub fn run(&self, seeds: Range<u64>) -> Summary {
        keep_panics();
        // By the wall clock, on a machine that may be busy.
        let watchdog = Watchdog::new(60 * self.limits.time);
        let mut note = self.note.as_ref().and_then(|path| File::create(path).ok());
        let mut summary = Summary::default();
        let (start, first) = (Instant::now(), seeds.start);
        for seed in seeds {
            let input = (self.input)(seed);
            if let Some(note) = &mut note {
                // Nobody reads it unless the process dies, so a failure to write it does not matter.
                let _ = note.rewind().and_then(|()| writeln!(note, "seed {seed:<20}"));
            }
            watchdog.begin(seed);
            let tried = self.try_one(&input);
            watchdog.pause();
            summary.inputs += 1;
            summary.slowest = summary.slowest.max((tried.time, seed));
            summary.largest = summary.largest.max((tried.memory, seed));
            match tried.result {
                Ok(outcome) => {
                    summary.accepted += u64::from(outcome.accepted);
                    summary.runs.0 += outcome.ran as u64;
                    summary.runs.1 += outcome.failed as u64;
                }
                Err(what) => {
                    summary.findings.push(self.finding(input, what));
                    if summary.findings.len() >= self.limits.findings {
                        break;
                    }
                }
            }
            if summary.inputs.is_multiple_of(50_000) {
                let rate = (seed - first + 1) as f64 / start.elapsed().as_secs_f64();
                eprintln!(
                    "{} inputs, {rate:.0} a second, {} findings",
                    summary.inputs,
                    summary.findings.len()
                );
            }
        }
        if let Some(note) = &self.note {
            let _ = std::fs::remove_file(note);
        }
        summary
    }

    fn try_one(&self, input: &Input) -> Tried {
        let mut result = Ok(Outcome::default());
        let mut time = Duration::ZERO;
        let memory = (self.measure)(&mut || {
            let (begin, before) = (Instant::now(), processor_time());
            CAUGHT.set(Some(None));
            let caught = catch_unwind(AssertUnwindSafe(|| (self.target)(input)));
            let message = CAUGHT.take().flatten();
            result =
                caught.unwrap_or_else(|_| Err(message.unwrap_or_else(|| "a panic without a message".into())));
            time = before
                .and_then(|before| processor_time()?.checked_sub(before))
                .unwrap_or_else(|| begin.elapsed());
        });
        if result.is_ok() && time > self.limits.time {
            result = Err(format!("took {time:?}"));
        }
        if result.is_ok() && memory > self.limits.memory {
            result = Err(format!("held {memory} bytes"));
        }
        Tried { result, time, memory }
    }

    fn finding(&self, input: Input, what: String) -> Finding {
        // Numbers in a message vary with the text; the same words are the same finding.
        let words = |text: &str| text.replace(|c: char| c.is_ascii_digit(), "");
        let begin = Instant::now();
        let text = minimise(&input.text, 5_000, |text| {
            let smaller = Input { text: text.into(), ..input.clone() };
            begin.elapsed() < Duration::from_secs(30)
                && self.try_one(&smaller).result.is_err_and(|other| words(&other) == words(&what))
        });
        Finding { seed: input.seed, what, text }
    }
}
