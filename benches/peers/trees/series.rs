//! Times inverse dynamics and its derivatives at all samples of a motion, four at once: `series SAMPLES ROUNDS`.
//!
//! The samples come side by side, a state after the other, and are put into lanes within the time that is measured. What leaves:
//! milliseconds for all samples, and the largest difference from the scalar functions.

use bundle::robot::batch::{self, L, WIDTH};
use bundle::robot::{DIMS, Model, NQ, NU, NV, WORKSPACE};
use mbs_runtime::{At, InverseDynamics, InverseDynamicsDerivatives};
use std::hint::black_box;
use std::time::Instant;

fn lanes<const N: usize>(samples: &[Vec<f64>], first: usize, start: usize) -> [L; N] {
    // The last lanes repeat the last sample.
    let sample = |k: usize| &samples[(first + k).min(samples.len() - 1)];
    core::array::from_fn(|i| mbs_runtime::batch::Lanes(core::array::from_fn(|k| sample(k)[start + i])))
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let [count, rounds] = [1, 2].map(|i| words[i].parse::<usize>().expect("a number"));
    let model = Model::default();
    let number = |i: usize| ((i as f64 * 12.9898).sin() * 43_758.545).fract();
    let samples: Vec<Vec<f64>> =
        (0..count).map(|s| (0..DIMS.nq + 2 * DIMS.nv).map(|i| number(997 * s + i)).collect()).collect();
    let mut w = vec![L::ZERO; WORKSPACE];
    let (mut tau, mut by_z) = ([L::ZERO; NV], Box::new([L::ZERO; NV * NV]));
    let (mut by_v, mut m) = (by_z.clone(), by_z.clone());
    let (mut best, mut worst) = (f64::INFINITY, 0.0_f64);
    for round in 0..rounds {
        let mut spent = 0.0;
        for first in (0..count).step_by(WIDTH) {
            let start = Instant::now();
            let (z, v, vd): ([L; NQ], [L; NV], [L; NV]) =
                (lanes(&samples, first, 0), lanes(&samples, first, NQ), lanes(&samples, first, NQ + NV));
            let (t, u) = (L::ZERO, [L::ZERO; NU]);
            let model = black_box(&model);
            batch::inverse_dynamics(model, t, &z, &v, &vd, &u, scratch(&mut w), &mut tau);
            let scratch = scratch(&mut w);
            batch::inverse_dynamics_derivatives(model, t, &z, &v, &vd, &u, scratch, &mut by_z, &mut by_v, &mut m);
            black_box((&tau, &by_z, &by_v, &m));
            spent += start.elapsed().as_secs_f64();
            if round == 0 {
                worst = worst.max(difference(model, &samples, first, [&tau, &by_z[..], &by_v[..], &m[..]]));
            }
        }
        best = best.min(spent);
    }
    println!("{:.4} {worst:.1e}", 1e3 * best);
}

fn scratch<const N: usize>(w: &mut [L]) -> &mut [L; N] {
    w.first_chunk_mut().expect("a workspace for every bundle")
}

/// The largest difference of the lanes from the scalar functions.
fn difference(model: &Model, samples: &[Vec<f64>], first: usize, lanes: [&[L]; 4]) -> f64 {
    let (mut w, mut worst) = (vec![0.0; WORKSPACE], 0.0_f64);
    for (k, sample) in samples[first..].iter().take(WIDTH).enumerate() {
        let (z, rest) = sample.split_at(NQ);
        let (v, vd) = rest.split_at(NV);
        let at = At { t: 0.0, z, v, x: &[], u: &[0.0; NU] };
        let mut scalar = [vec![0.0; NV], vec![0.0; NV * NV], vec![0.0; NV * NV], vec![0.0; NV * NV]];
        let [tau, by_z, by_v, m] = &mut scalar;
        model.inverse_dynamics(at, vd, &mut w, tau).expect("lengths");
        model.inverse_dynamics_derivatives(at, vd, &mut w, by_z, by_v, m).expect("lengths");
        for (lanes, scalar) in lanes.iter().zip(&scalar) {
            let differences = lanes.iter().zip(scalar).map(|(lane, scalar)| (lane.0[k] - scalar).abs());
            worst = differences.fold(worst, f64::max);
        }
    }
    worst
}
