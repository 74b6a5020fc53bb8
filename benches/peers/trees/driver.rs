//! Times one bundle of one generated model: `driver STATES BATCHES COLD_CALLS RESULTS`.
//!
//! What enters: STATES, doubles z, v, vd, u, one state after the other; instead of it the word `names`, which prints those of the
//! coordinates and of the velocities and does nothing else. What leaves: `hot cold`, nanoseconds a call; in the file
//! RESULTS what the bundle writes at each state. Hot and cold mean what they mean in measure.hpp.

use bundle::{Model, RESULTS, SCRATCH, call};
use mbs_runtime::{At, EvalError, Names, Quantity, System};
use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

/// More than all caches hold, in numbers of eight bytes.
const LARGE: usize = 8 << 20;

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Nanoseconds a call with everything in the caches.
fn hot(states: usize, batches: usize, mut call: impl FnMut(usize)) -> f64 {
    let mut next = 0;
    let mut batch = |calls: usize| {
        let start = Instant::now();
        for _ in 0..calls {
            call(next);
            next = if next + 1 == states { 0 } else { next + 1 };
        }
        start.elapsed().as_nanos() as f64 / calls as f64
    };
    batch(2 * states);
    let calls = (2e5 / batch(states)).max(1.0) as usize;
    median((0..batches).map(|_| batch(calls)).collect())
}

/// Nanoseconds a call with nothing in the caches, and the clock's own among them.
fn cold_once(states: usize, calls: usize, large: &mut [u64], mut call: impl FnMut(usize)) -> f64 {
    let time = |i: usize| {
        large.iter_mut().step_by(8).for_each(|x| *x += 1);
        black_box(&large);
        black_box(Instant::now());
        let start = Instant::now();
        call(i % states);
        start.elapsed().as_nanos() as f64
    };
    median((0..calls).map(time).collect())
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().collect();
    let [_, file, batches, cold_calls, results] = &words[..] else {
        return Err("driver STATES BATCHES COLD_CALLS RESULTS".into());
    };
    let model = Model::default();
    let d = model.dims();
    if file == "names" {
        for quantity in [Quantity::Coordinate, Quantity::Velocity] {
            let names = (0..).map_while(|i| model.name(quantity, i));
            println!("{}", names.collect::<Vec<_>>().join(" "));
        }
        return Ok(());
    }
    let (batches, cold_calls): (usize, usize) = (batches.parse()?, cold_calls.parse()?);
    let bytes = std::fs::read(file)?;
    let numbers: Vec<f64> = bytes
        .chunks_exact(8)
        .map(|b| Ok(f64::from_le_bytes(b.try_into()?)))
        .collect::<Result<_, Box<dyn Error>>>()?;
    let states: Vec<&[f64]> = numbers.chunks_exact(d.nq + 2 * d.nv + d.nu).collect();
    let (mut w, mut out) = (vec![0.0; SCRATCH], vec![0.0; RESULTS]);
    let evaluate = |i: usize, w: &mut [f64], out: &mut [f64]| -> Result<(), EvalError> {
        let (z, rest) = states[i].split_at(d.nq);
        let (v, rest) = rest.split_at(d.nv);
        let (vd, u) = rest.split_at(d.nv);
        call(black_box(&model), black_box(At { t: 0.0, z, v, x: &[], u }), black_box(vd), w, out)
    };
    let mut failed = None;
    let mut one = |i: usize| {
        failed = failed.or(evaluate(i, &mut w, &mut out).err());
        black_box(&out);
    };
    let hot = hot(states.len(), batches, &mut one);
    let cold = if cold_calls == 0 {
        0.0
    } else {
        let mut large = vec![0; LARGE];
        let empty = cold_once(states.len(), cold_calls, &mut large, |_| {});
        cold_once(states.len(), cold_calls, &mut large, &mut one) - empty
    };
    println!("{hot:.1} {cold:.1}");
    let mut bytes = Vec::new();
    for i in 0..states.len() {
        evaluate(i, &mut w, &mut out)?;
        out.iter().for_each(|x| bytes.extend(x.to_le_bytes()));
    }
    std::fs::write(results, bytes)?;
    failed.map_or(Ok(()), |error| Err(format!("{error:?}").into()))
}
