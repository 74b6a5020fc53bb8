//! Measures the interpreter: nanoseconds per operation of the forward dynamics of model files, for the tape and for the
//! generator's own interpreter.
//!
//! `cargo run --release -p mbs-engine --example speed -- models/arm7.yaml models/tree20.yaml`

use mbs_codegen::bundle::interpret;
use mbs_codegen::program::{Options, Program};
use mbs_codegen::symbols::Group;
use mbs_engine::Interpreted;
use mbs_runtime::{At, ForwardDynamics, System};
use std::time::Instant;

/// The best of some rounds, in nanoseconds per call.
fn measure(mut call: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..20 {
        let (start, calls) = (Instant::now(), 200);
        for _ in 0..calls {
            call();
        }
        best = best.min(start.elapsed().as_nanos() as f64 / f64::from(calls));
    }
    best
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!(
        "{:<20} {:>10} {:>12} {:>12} {:>14}",
        "model", "operations", "ns per call", "ns per op", "by bundle, ns"
    );
    for file in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&file)?;
        let (model, _) = mbs_codegen::read(&file, &text).map_err(|d| d.render(&file, &text))?;
        let model: Interpreted = Interpreted::new(
            Program::new(&model, None, &Options::default()).expect("a program of moderate size"),
        );
        let bundle = model.program().bundle("forward_dynamics").ok_or("no forward dynamics")?;
        let operations = bundle.counts.total() as f64;

        let d = model.dims();
        let (y, u) = (model.start_state(), vec![0.0; d.nu]);
        let at = At::of_state(&d, 0.0, &y, &u)?;
        let (mut w, mut zd, mut vd) = (vec![0.0; d.workspace], vec![0.0; d.nq], vec![0.0; d.nv]);
        let mut failed = 0;
        let tape = measure(|| {
            failed += usize::from(model.forward_dynamics(at, &mut w, &mut zd, &mut vd, &mut []).is_err());
        });

        let prepared =
            vec![1.0; bundle.arguments.iter().find(|a| a.0 == Group::Prepared).map_or(0, |a| a.1 as usize)];
        let time = [0.0];
        let arguments = interpret::Arguments::new()
            .with(Group::Time, &time)
            .with(Group::Z, at.z)
            .with(Group::V, at.v)
            .with(Group::U, at.u)
            .with(Group::Prepared, &prepared);
        let mut scratch = vec![0.0; interpret::scratch_len(bundle)];
        let mut pivots = vec![0.0; d.nv];
        let walker = measure(|| {
            let results = &mut [&mut zd[..], &mut vd[..], &mut pivots[..]];
            failed += usize::from(interpret::run(bundle, &arguments, &mut scratch, results).is_err());
        });
        if failed > 0 {
            return Err(format!("{file}: {failed} evaluations failed").into());
        }
        println!(
            "{:<20} {operations:>10} {tape:>12.0} {:>12.2} {:>14.2}",
            model.program().name,
            tape / operations,
            walker / operations
        );
    }
    Ok(())
}
