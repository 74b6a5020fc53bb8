//! Random mechanisms: trees and closed ones, their values and every derivative against independent ones. One program, since
//! each would compile the runtime for the interpreter again.

mod adjoints;
mod choices;
mod closed;
mod derivatives;
mod differential;
mod events;
mod gradients;
mod machine_code;
mod projections;
mod robotics;
mod trees;
mod verify;

use mbs_engine::Interpreted;
use mbs_engine::verify::Instant;
use mbs_runtime::System;
use mbs_tests::random_model::Random;

/// How many mechanisms are tried; `MBS_RANDOM_CLOSED=1000` tries more.
fn mechanisms(few: u64) -> u64 {
    std::env::var("MBS_RANDOM_CLOSED").map_or(few, |text| text.parse().expect("a whole number"))
}

/// Away from the start and from every constraint, Euler parameters not of unit length.
fn instant(model: &Interpreted, random: &mut Random) -> Instant {
    let d = model.dims();
    let mut z = model.start_state()[..d.nq].to_vec();
    for z in &mut z {
        *z += random.uniform(-0.2, 0.2);
    }
    for &first in model.euler_parameters() {
        let length = random.uniform(0.6, 1.7);
        z[first..first + 4].iter_mut().for_each(|e| *e *= length);
    }
    let mut some = |n: usize, size: f64| (0..n).map(|_| random.uniform(-size, size)).collect::<Vec<_>>();
    let (zd, zdd, u, lambda) = (some(d.nq, 1.0), some(d.nq, 3.0), some(d.nu, 1.0), some(d.rows(), 2.0));
    Instant { t: random.uniform(0.2, 2.8), z, zd, zdd, u, lambda }
}
