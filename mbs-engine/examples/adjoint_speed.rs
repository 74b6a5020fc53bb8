//! Measures gradients of the bicycle over the number of spline values they are by: µs a step of the simulation, of the direct derivative and of
//! the adjoint, as machine code, in processor time. Prints CSV.
//!
//! ```sh
//! cargo run --release -p mbs-engine --example adjoint_speed > adjoints.csv
//! head -n 8 adjoints.csv | mbs plot - --together -o docs/images/adjoints.svg
//! ```

#[path = "../../tests/src/bicycle.rs"]
#[allow(unreachable_pub, reason = "public where it lives")]
mod bicycle;

use mbs_codegen::model::{GradientMethod, SensitivityRef};
use mbs_engine::gradient::{self, adjoint, by_names};
use mbs_engine::simulation::{self, Overrides, Settings, Silent, interpret};
use mbs_engine::{Engine, Fusing};
use std::error::Error;
use std::ops::ControlFlow;
use std::sync::LazyLock;
use std::time::Instant;

/// Numbers of values, and how many runs are measured of each.
const COUNTS: [(usize, usize); 10] = [
    (1, 100),
    (2, 100),
    (4, 100),
    (8, 100),
    (16, 100),
    (32, 100),
    (100, 30),
    (200, 30),
    (500, 20),
    (1000, 10),
];
/// Values of the shipped model.
const SHIPPED: usize = 32;
/// Last time of a run, s.
const END: f64 = 0.4;

fn main() -> Result<(), Box<dyn Error>> {
    println!("parameters,simulation,direct,adjoint");
    for (p, runs) in COUNTS {
        let [simulation, direct, adjoint] = measure(p, runs)?;
        println!("{p},{simulation:.1},{direct:.1},{adjoint:.1}");
    }
    Ok(())
}

/// Processor time of this thread, s: the first number of `/proc/thread-self/schedstat`, which does not depend on the load of the machine. Wall time where
/// there is none.
fn clock() -> f64 {
    static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = text.as_deref().and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok());
    nanoseconds.map_or_else(|| BEGUN.elapsed().as_secs_f64(), |time| time * 1e-9)
}

/// µs a step.
fn measure(p: usize, runs: usize) -> Result<[f64; 3], Box<dyn Error>> {
    let text = bicycle::yaml(p.max(SHIPPED));
    let (mut model, _) =
        mbs_codegen::analyse("bicycle.yaml", &text).map_err(|d| d.render("bicycle.yaml", &text))?;
    let names: Vec<String> = match p < SHIPPED {
        true => (0..p).map(|i| format!("steer[{i}]")).collect(),
        false => vec!["steer".into(), "drive".into()],
    };
    let list: Vec<SensitivityRef> = by_names(&model, names.iter().map(String::as_str))?;
    model.model.sensitivity = list;
    let overrides = Overrides { end: Some(END), ..Overrides::default() };
    let mut settings = Settings::of_dynamics(&model.simulation, model.is_constrained(), &overrides)?;
    settings.simulation.gradient = GradientMethod::Adjoint;
    let mut bundles = gradient::bundles(&settings.simulation, settings.constrained);
    bundles.extend(settings.bundles());
    let mut interpreted = interpret(&model, None, &[], bundles)?;
    interpreted.set_engine(Engine::Jit, None, Fusing::AsCompiled);
    let simulation = &settings.simulation;
    let start = gradient::start(&interpreted, simulation)?;
    let method = start.method(&interpreted, simulation);
    let steps = ((simulation.end - simulation.begin) / simulation.step).round();
    let mut times = [0.0; 3];
    let mut time = |k: usize, work: &mut dyn FnMut() -> Result<(), Box<dyn Error>>| {
        // The first run compiles.
        work()?;
        let before = clock();
        for _ in 0..runs {
            work()?;
        }
        times[k] = (clock() - before) / (runs as f64 * steps) * 1e6;
        Ok::<_, Box<dyn Error>>(())
    };
    time(0, &mut || match simulation::run(&interpreted, &settings, &mut Silent).failure {
        None => Ok(()),
        Some(_) => Err("the simulation failed".into()),
    })?;
    time(1, &mut || {
        let go_on = |_: gradient::Moment<'_>| ControlFlow::Continue(());
        Ok(gradient::run(&interpreted, &method, simulation, start.clone(), go_on).map(drop)?)
    })?;
    time(2, &mut || {
        let go_on = |_: mbs_runtime::AdjointNode<'_, f64>| ControlFlow::Continue(());
        let found = adjoint::run(&interpreted, &method, simulation, start.clone(), adjoint::MEMORY, go_on);
        Ok(found.map(drop)?)
    })?;
    Ok(times)
}
