//! Any text may be fed to the generator: it answers with diagnostics, never with a panic, a hang or memory without
//! bound, and what it accepts becomes Rust text that runs to an error value or to finite numbers.
//!
//! The short run is part of every test run. The long one, of a million inputs in about an hour and a half of one core:
//!
//! ```text
//! MBS_FUZZ_INPUTS=1000000 cargo test --release -p mbs-tests --test fuzz -- --nocapture promises
//! ```
//!
//! `MBS_FUZZ_SEED=n` begins at another seed, so `MBS_FUZZ_SEED=n MBS_FUZZ_INPUTS=1` repeats one input. A finding is
//! printed with its seed and its smallest text, which is also saved under Cargo's directory for temporary files. A
//! process that dies (a stack overflow, no memory) leaves the seed it died of in `fuzz-seed` there.

use mbs_tests::fuzz::corpus::good_file;
use mbs_tests::fuzz::harness::{Harness, Limits, Summary, processor_time};
use mbs_tests::fuzz::input::{Input, of_seed};
use mbs_tests::fuzz::target::{Outcome, whole_way};
use mbs_tests::random_model::Random;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const LIMITS: Limits = Limits { time: Duration::from_secs(10), memory: 1 << 30, findings: 10 };

fn measure(run: &mut dyn FnMut()) -> u64 {
    allocation_counter::measure(run).bytes_max
}

fn temporary(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name)
        .map_or(otherwise, |text| text.parse().unwrap_or_else(|_| panic!("{name} is a whole number")))
}

fn report(summary: &Summary, time: Duration) {
    let (ran, failed) = summary.runs;
    println!(
        "{} inputs in {:.1} s ({:.0} a second), {} accepted, {ran} runs finite, {failed} ended in an error value",
        summary.inputs,
        time.as_secs_f64(),
        summary.inputs as f64 / time.as_secs_f64(),
        summary.accepted,
    );
    let ((slow, slowest), (bytes, largest)) = (summary.slowest, summary.largest);
    println!("slowest {slow:?} (seed {slowest}), largest {} MiB (seed {largest})", bytes >> 20);
}

#[test]
fn any_text_keeps_the_promises() {
    let (first, inputs) = (setting("MBS_FUZZ_SEED", 0), setting("MBS_FUZZ_INPUTS", 10_000));
    let note = temporary("fuzz-seed");
    if let Ok(seed) = std::fs::read_to_string(&note) {
        println!("an earlier run died of {seed}");
    }
    let harness =
        Harness { limits: LIMITS, input: &of_seed, target: &whole_way, measure: &measure, note: Some(note) };
    let begin = Instant::now();
    let summary = harness.run(first..first + inputs);
    report(&summary, begin.elapsed());
    for finding in &summary.findings {
        let path = temporary(&format!("fuzz-{}.yaml", finding.seed));
        let _ = std::fs::write(&path, &finding.text);
        println!("seed {}: {}\n--- {}\n{}\n---", finding.seed, finding.what, path.display(), finding.text);
    }
    assert!(
        summary.findings.is_empty(),
        "{} of {} inputs broke a promise",
        summary.findings.len(),
        summary.inputs
    );
    // The inputs reach what they are meant to reach: 14.6 % of many.
    assert!(inputs < 1000 || summary.accepted * 9 > inputs, "only {} were accepted", summary.accepted);
}

/// What the fuzzer damages is good before.
#[test]
fn good_files_are_good() {
    let mut random = Random::new(1);
    for _ in 0..300 {
        let text = good_file(&mut random);
        if let Err(problems) = mbs_codegen::read("good.yaml", &text) {
            panic!("{}", problems.render("good.yaml", &text));
        }
    }
}

/// A harness that cannot fail proves nothing.
#[test]
fn broken_promises_are_found() {
    let input = |seed: u64| Input { text: format!("some text\nnumber {seed}\nand more\n"), ..of_seed(seed) };
    let start = Instant::now();
    let time = || processor_time().unwrap_or_else(|| start.elapsed());
    let limits = Limits { time: Duration::from_millis(20), memory: 1 << 20, findings: 10 };
    let target = |input: &Input| -> Result<Outcome, String> {
        if input.text.contains("number 3") {
            panic!("a deliberate panic");
        }
        if input.text.contains("number 5") {
            return Err("a broken promise".into());
        }
        if input.text.contains("number 7") {
            let begin = time();
            while time() - begin < Duration::from_millis(40) {}
        }
        if input.text.contains("number 8") {
            drop(std::hint::black_box(vec![1u8; 2 << 20]));
        }
        Ok(Outcome::default())
    };
    let harness = Harness { limits, input: &input, target: &target, measure: &measure, note: None };
    let summary = harness.run(0..10);
    assert_eq!(summary.inputs, 10);
    let found: Vec<(u64, &str)> = summary.findings.iter().map(|f| (f.seed, f.text.as_str())).collect();
    assert_eq!(found, [(3, "number 3"), (5, "number 5"), (7, "number 7"), (8, "number 8")]);
    let what = |i: usize| summary.findings[i].what.as_str();
    assert!(what(0).contains("a deliberate panic") && what(0).contains("fuzz.rs"), "{}", what(0));
    assert_eq!(what(1), "a broken promise");
    assert!(what(2).starts_with("took ") && what(3).starts_with("held "), "{} {}", what(2), what(3));
}
