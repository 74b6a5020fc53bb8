//! Measures the time to generate, compile and run models, and the size of their code. `figures/README.md` explains how each
//! figure is measured.
//!
//! `cargo run --release -p mbs-figures` measures three models; an argument, the name of a shipped model, selects the table of its bundles instead.
//! `RUSTFLAGS="-C target-feature=+fma"` compiles with fused multiply-add.

mod compile;
#[allow(dead_code, reason = "the build script uses the rest")]
mod models;
mod time;

/// The measured modules.
mod generated {
    #![allow(missing_docs, unreachable_pub, reason = "a program includes what a crate would publish")]
    include!(concat!(env!("OUT_DIR"), "/pendulum.rs"));
    include!(concat!(env!("OUT_DIR"), "/arm7.rs"));
    include!(concat!(env!("OUT_DIR"), "/tree20.rs"));
}

use compile::Compiler;
use mbs_codegen::program::Options;
use mbs_codegen::{Generated, Request, generate};
use mbs_engine::Interpreted;
use mbs_runtime::{ForwardDynamics, ForwardDynamicsRecursive, Start, System};
use std::error::Error;
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    if cfg!(debug_assertions) {
        return Err("figures of unoptimised code say nothing: run with --release".into());
    }
    let fused = if cfg!(target_feature = "fma") { "fused" } else { "not fused" };
    let flags = if compile::FLAGS.is_empty() { "none" } else { compile::FLAGS };
    println!("Products and sums are {fused}; flags of the compiler: {flags}.");
    let compiler = Compiler::new()?;
    if let Some(name) = std::env::args().nth(1) {
        return bundles(&name, &compiler);
    }
    measure("pendulum", &generated::pendulum::Model::default(), &compiler)?;
    measure("arm7", &generated::arm7::Model::default(), &compiler)?;
    measure("tree20", &generated::tree20::Model::default(), &compiler)
}

/// Repetitions of the generation, since the processor's clock has a resolution of 10 ms.
const GENERATIONS: usize = 20;

/// Operations and code of every bundle of a shipped model, as a build script makes it.
fn bundles(name: &str, compiler: &Compiler) -> Result<(), Box<dyn Error>> {
    let text = std::fs::read_to_string(models::file(name))?;
    let start = Instant::now();
    let module = generate(name, &text, &Request::default()).map_err(|d| d.render(name, &text))?;
    let made = start.elapsed().as_secs_f64();
    let compiled = compiler.compile(name, &module.code, false)?;
    let bundles = &module.program.bundles;
    let operations: usize = bundles.iter().map(|bundle| bundle.counts.total()).sum();
    println!("\n### {name}\n");
    println!("Generated in {made:.1} s, compiled in {:.1} s.\n", compiled.seconds);
    println!("| bundle | operations | code, kB | B/operation |\n|---|---:|---:|---:|");
    let row = |name: &str, operations: usize, bytes: u64| {
        let (kilobytes, each) = (bytes as f64 / 1e3, bytes as f64 / operations.max(1) as f64);
        println!("| {name} | {operations} | {kilobytes:.0} | {each:.1} |");
    };
    for bundle in bundles.iter().filter(|bundle| bundle.counts.total() > 0) {
        row(bundle.name, bundle.counts.total(), compiled.bundle_bytes(bundle.name));
    }
    row("all", operations, compiled.bytes);
    Ok(())
}

/// The module, and the milliseconds of processor time that its generation takes.
fn generated(name: &str) -> Result<(Generated, f64), Box<dyn Error>> {
    let text = std::fs::read_to_string(models::file(name))?;
    let options = Options { bundles: models::BUNDLES.to_vec(), ..Options::default() };
    let request = Request { options, ..Request::default() };
    let (seconds, result) = time::processor_time(|| {
        (1..GENERATIONS).try_for_each(|_| generate(name, &text, &request).map(drop))?;
        generate(name, &text, &request)
    });
    let generated = result.map_err(|d| d.render(name, &text))?;
    Ok((generated, seconds / GENERATIONS as f64 * 1e3))
}

fn measure<M>(name: &str, model: &M, compiler: &Compiler) -> Result<(), Box<dyn Error>>
where
    M: System<S = f64> + Start + ForwardDynamics + ForwardDynamicsRecursive,
{
    let (module, milliseconds) = generated(name)?;
    let compiled = compiler.compile(name, &module.code, true)?;
    // The second time reduces the influence of other processes; the sizes are the same.
    let seconds = compiler.compile(name, &module.code, true)?.seconds.min(compiled.seconds);
    let operations: usize = module.program.bundles.iter().map(|bundle| bundle.counts.total()).sum();
    println!("\n### {name}\n\n| module | |\n|---|---:|");
    println!("| generated in | {milliseconds:.1} ms |");
    println!("| lines | {} |", module.code.lines().count());
    println!("| operations of all bundles | {operations} |");
    println!("| compiled in | {seconds:.2} s |");
    println!("| code | {} B |", compiled.bytes);
    println!("| step of RK4 | {:.0} ns |", time::step(model));

    let rows = ["forward_dynamics", "forward_dynamics_recursive"].map(|bundle| {
        let operations = module.program.bundle(bundle).map_or(0, |bundle| bundle.counts.total());
        (bundle, operations, compiled.bundle_bytes(bundle))
    });
    let interpreted = Interpreted::<f64>::new(module.program);
    let times = [
        (
            time::forward_dynamics(model, |at, w, zd, vd| model.forward_dynamics(at, w, zd, vd, &mut [])),
            time::forward_dynamics(&interpreted, |at, w, zd, vd| {
                interpreted.forward_dynamics(at, w, zd, vd, &mut [])
            }),
        ),
        (
            time::forward_dynamics(model, |at, w, zd, vd| {
                model.forward_dynamics_recursive(at, w, zd, vd, &mut [])
            }),
            time::forward_dynamics(&interpreted, |at, w, zd, vd| {
                interpreted.forward_dynamics_recursive(at, w, zd, vd, &mut [])
            }),
        ),
    ];
    println!(
        "\n| bundle | operations | code, B | B/operation | ns/call | B/ns | interpreted, ns/call | times |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|");
    for ((bundle, operations, bytes), (ns, interpreted)) in rows.into_iter().zip(times) {
        let per_operation = bytes as f64 / operations as f64;
        println!(
            "| {bundle} | {operations} | {bytes} | {per_operation:.1} | {ns:.0} | {:.0} | {interpreted:.0} | {:.1} |",
            bytes as f64 / ns,
            interpreted / ns
        );
    }
    Ok(())
}
