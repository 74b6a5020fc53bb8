//! Drives the generated buggy through both manoeuvres: as fast as it goes, with the gradient of the objective, and then paced by the wall
//! clock with a deadline for every step.

use buggy::{Model, Parameters};
use mbs_runtime::formulation::{Ali3p, Assembly, State};
use mbs_runtime::inputs::NoInputs;
use mbs_runtime::sensitivity::{Differentiated, Gradient, StateDerivatives};
use mbs_runtime::{Fixed, Names, Output, Quantity, Span, StepError, System};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

include!(concat!(env!("OUT_DIR"), "/buggy.rs"));

/// Time before a deadline that is waited for without sleeping.
const AWAKE: Duration = Duration::from_micros(500);

/// A manoeuvre: step, end and what is judged.
struct Manoeuvre {
    name: &'static str,
    h: f64,
    end: f64,
    objective: &'static str,
}

fn main() {
    // How much faster than the wall clock.
    let haste: f64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1.0);
    // The module's own parameters are those of the case it was generated for.
    let descent = Manoeuvre { name: "step descent", h: 1e-3, end: 4.5, objective: "psi_a" };
    drive(&Model::default(), &descent, haste);
    let parameters =
        Parameters { h_s: 0.0, steer: 0.013, speed: 10.0, spin: 10.0 / 0.2727, ..Parameters::default() };
    let lane_change = Manoeuvre { name: "double lane change", h: 2.5e-3, end: 12.0, objective: "psi_b" };
    drive(&Model::new(parameters), &lane_change, haste);
}

fn drive(model: &Model, manoeuvre: &Manoeuvre, haste: f64) {
    println!("{}: {} s in steps of {} ms", manoeuvre.name, manoeuvre.end, 1e3 * manoeuvre.h);
    let outcome = gradient(model, manoeuvre).and_then(|()| in_real_time(model, manoeuvre, haste));
    if let Err(error) = outcome {
        println!("  stopped: {}", error.describe(model));
    }
}

/// A consistent start and its derivatives.
fn start(model: &Model) -> Result<[Vec<f64>; 2], StepError> {
    let dims = model.dims();
    let mut state = vec![0.0; State::<f64>::len(&dims)];
    let mut derivatives = vec![0.0; StateDerivatives::<f64>::len(&dims)];
    let mut scratch = vec![0.0; Assembly::differentiated_scratch_len(&dims)];
    let assembly = Assembly::DEFAULT;
    assembly.begin_differentiated(model, &mut NoInputs, 0.0, &mut state, &mut derivatives, &mut scratch)?;
    Ok([state, derivatives])
}

/// The objective and its gradient, by the direct method, as fast as it goes.
fn gradient(model: &Model, manoeuvre: &Manoeuvre) -> Result<(), StepError> {
    let dims = model.dims();
    let [mut state, mut derivatives] = start(model)?;
    let run = Differentiated(Fixed { method: Ali3p::DEFAULT, h: manoeuvre.h });
    let mut scratch = vec![0.0; run.scratch_len(&dims)];
    let mut found = vec![0.0; Gradient::<f64>::len(&dims)];
    let span = Span { start: 0.0, end: manoeuvre.end, output: Output::Every(manoeuvre.end) };
    let began = Instant::now();
    let watch = |_: mbs_runtime::formulation::Node<'_, f64>| ControlFlow::Continue(());
    run.run(model, &mut NoInputs, &mut state, &mut derivatives, &span, &mut found, &mut scratch, watch)?;
    let seconds = began.elapsed().as_secs_f64();
    let (objectives, slopes) = found.split_at(dims.n_objectives);
    let names = |quantity| (0..).map_while(move |i| model.name(quantity, i));
    let place = names(Quantity::Objective).position(|name| name == manoeuvre.objective).unwrap_or(0);
    println!("  {} = {:.9}", manoeuvre.objective, objectives[place]);
    let p = dims.sensitivity.parameters;
    for (name, slope) in names(Quantity::Sensitivity).zip(&slopes[place * p..]) {
        println!("  d {}/d {name} = {slope:.6e}", manoeuvre.objective);
    }
    let steps = manoeuvre.end / manoeuvre.h;
    let (each, factor) = (1e6 * seconds / steps, manoeuvre.end / seconds);
    println!("  with the gradient {each:.0} µs a step, {factor:.0} times faster than real time");
    Ok(())
}

/// The same motion with a deadline for every step: the wall clock's, or `haste` times as fast.
fn in_real_time(model: &Model, manoeuvre: &Manoeuvre, haste: f64) -> Result<(), StepError> {
    let dims = model.dims();
    let [mut state, _] = start(model)?;
    let mut scratch = vec![0.0; Ali3p::scratch_len(&dims)];
    let steps = (manoeuvre.end / manoeuvre.h).round() as usize;
    let period = Duration::from_secs_f64(manoeuvre.h / haste);
    let mut times = Vec::with_capacity(steps);
    let mut late = 0;
    let began = Instant::now();
    for step in 1..=steps {
        let from = Instant::now();
        Ali3p::DEFAULT.step(model, &mut NoInputs, &mut state, manoeuvre.h, &mut scratch)?;
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
