//! Drives the generated buggy through both manoeuvres: as fast as it goes, with the gradient of the objective, and then paced by the wall
//! clock with a deadline for every step.

use buggy::{Case, Derivatives, Error, Gradient, NAMES, Setup, Simulation};
use mbs_runtime::named::Objective;
use std::time::{Duration, Instant};

include!(concat!(env!("OUT_DIR"), "/buggy.rs"));

/// Time before a deadline that is waited for without sleeping.
const AWAKE: Duration = Duration::from_micros(500);

fn main() -> Result<(), Error> {
    // How much faster than the wall clock.
    let haste: f64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1.0);
    drive(Case::step_descent, "psi_a", |found| found.psi_a, haste)?;
    drive(Case::double_lane_change, "psi_b", |found| found.psi_b, haste)
}

/// A manoeuvre of the model file, and the objective that belongs to it.
fn drive(
    case: Case,
    objective: &str,
    of: fn(&Gradient) -> Objective<Derivatives>,
    haste: f64,
) -> Result<(), Error> {
    let setup = Setup::of_case(case);
    let (end, h) = (setup.settings.end, setup.settings.step);
    println!("{}: {end} s in steps of {} ms", case.name(), 1e3 * h);
    let began = Instant::now();
    let found = of(&buggy::gradient_of(&setup)?);
    let seconds = began.elapsed().as_secs_f64();
    println!("  {objective} = {:.9}", found.value);
    for (name, slope) in NAMES.sensitivities.iter().zip(found.by.to_array()) {
        println!("  d {objective}/d {name} = {slope:.6e}");
    }
    let (each, factor) = (1e6 * seconds * h / end, end / seconds);
    println!("  with the gradient {each:.0} µs a step, {factor:.0} times faster than real time");
    in_real_time(Simulation::with(setup)?, haste)
}

/// The same motion with a deadline for every step: the wall clock's, or `haste` times as fast.
fn in_real_time(mut sim: Simulation, haste: f64) -> Result<(), Error> {
    let settings = sim.settings();
    let steps = ((settings.end - settings.begin) / settings.step).round() as usize;
    let period = Duration::from_secs_f64(settings.step / haste);
    let mut times = Vec::with_capacity(steps);
    let mut late = 0;
    let began = Instant::now();
    for step in 1..=steps {
        let from = Instant::now();
        sim.step()?;
        times.push(from.elapsed());
        // The state of t + h is due at t + h; then the next step begins.
        let due = period * u32::try_from(step).unwrap_or(u32::MAX);
        let now = began.elapsed();
        if now > due {
            late += 1;
        } else {
            // Sleep ends when the system likes; the last of it is waited for awake.
            std::thread::sleep((due - now).saturating_sub(AWAKE));
            while began.elapsed() < due {
                std::hint::spin_loop();
            }
        }
    }
    let slow = times.iter().filter(|time| **time > period).count();
    println!("  in real time: {late} of {steps} deadlines missed, {slow} steps took longer than they may");
    histogram(&mut times);
    Ok(())
}

/// How many steps took how long, in powers of two, and the worst.
fn histogram(times: &mut [Duration]) {
    times.sort_unstable();
    let (Some(best), Some(worst)) = (times.first(), times.last()) else { return };
    let median = times[times.len() / 2];
    println!("  a step took {best:?} to {worst:?}, half of them less than {median:?}");
    let mut limit = 1e-6;
    let mut counted = 0;
    while counted < times.len() {
        let below = times.partition_point(|time| time.as_secs_f64() < limit);
        if below > counted {
            let bar = "#".repeat((60 * (below - counted)).div_ceil(times.len()));
            println!("  {:>8.0} to {:>8.0} µs {:>7} {bar}", 5e5 * limit, 1e6 * limit, below - counted);
            counted = below;
        }
        limit *= 2.0;
    }
}
