//! The five-bar linkage under the augmented Lagrangian formulation: published objectives, energy, constraints, time.

mod systems;

use std::ops::ControlFlow;

use mbs_runtime::inputs::NoInputs;
use mbs_runtime::quadrature::Trapezoid;
use mbs_runtime::{Ali3p, Assembly, Fixed, Output, Span, State, Tangent};
use systems::five_bar::{DIMS, FiveBar};

const STATE: usize = State::<f64>::len(&DIMS);
const SCRATCH: usize = Ali3p::scratch_len(&DIMS);

fn start(system: &FiveBar) -> [f64; STATE] {
    let mut state = [0.0; STATE];
    let mut view = State::of(&DIMS, &mut state).unwrap();
    view.reset(0.0);
    // Dependent angles as guesses only.
    let z = FiveBar::start();
    view.z.copy_from_slice(&[z[0], z[1], z[2] + 0.2, z[3] - 0.3]);
    let mut scratch = [0.0; Assembly::scratch_len(&DIMS)];
    Assembly::DEFAULT.start(system, &mut NoInputs, &mut state, &mut scratch).unwrap();
    let view = State::of(&DIMS, &mut state).unwrap();
    assert!(systems::distance(view.z, &z) < 1e-14);
    state
}

/// ψ1, ψ2, ψ3 over 5 s, and the largest error of the energy.
fn objectives(settings: Ali3p, h: f64) -> ([f64; 3], f64) {
    let system = FiveBar::default();
    let mut state = start(&system);
    let mut memory = [0.0; 6];
    let mut sum = Trapezoid::new(&mut memory);
    let mut energy: f64 = 0.0;
    let at_start = FiveBar::energy(&FiveBar::start(), &[0.0; 4]);
    let span = Span { start: 0.0, end: 5.0, output: Output::Steps };
    let statistics = Fixed { method: settings, h }
        .run(&system, &mut NoInputs, &mut state, &span, &mut [0.0; SCRATCH], |node| {
            let motion = node.motion;
            let [r, v, a] = FiveBar::point_2(motion.z, motion.zd, motion.zdd);
            let square = |x: [f64; 2]| x[0] * x[0] + x[1] * x[1];
            sum.add(motion.t, &[square([r[0], r[1] + 2.0]), square(v), square(a)]);
            energy = energy.max((FiveBar::energy(motion.z, motion.zd) - at_start).abs());
            ControlFlow::Continue(())
        })
        .unwrap();
    println!("h {h} {statistics:?} energy {energy:e}");
    assert!(statistics.fallbacks == 0);
    let integrals = sum.integrals();
    ([integrals[0], integrals[1], integrals[2]], energy)
}

#[test]
fn objectives_are_the_published_ones() {
    for settings in [Ali3p::DEFAULT, Ali3p { tangent: Tangent::Reused, ..Ali3p::DEFAULT }] {
        let (psi, energy) = objectives(settings, 1e-3);
        println!("{psi:?} {energy:e}");
        let (psi, energy) = objectives(settings, 5e-4);
        println!("{psi:?} {energy:e}");
    }
}

/// Time that this thread has been running for, in ns.
fn processor_time() -> f64 {
    let times = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    times.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
#[ignore = "measures time"]
fn time_of_a_step() {
    let system = FiveBar::default();
    for settings in [Ali3p::DEFAULT, Ali3p { tangent: Tangent::Reused, ..Ali3p::DEFAULT }] {
        for h in [1e-2, 1e-3, 1e-4] {
            let mut best = f64::INFINITY;
            let mut iterations = 0;
            let steps = 20_000;
            for _ in 0..10 {
                let mut state = start(&system);
                let mut scratch = [0.0; SCRATCH];
                let clock = processor_time();
                iterations = 0;
                for _ in 0..steps {
                    let step = settings.step(&system, &mut NoInputs, &mut state, h, &mut scratch).unwrap();
                    iterations += step.iterations;
                }
                best = best.min((processor_time() - clock) / f64::from(steps));
            }
            println!(
                "{:?} h = {h}: {best:.0} ns a step, {} iterations",
                settings.tangent,
                iterations as f64 / f64::from(steps)
            );
        }
    }
}

#[test]
#[ignore = "measures time"]
fn time_of_bundles() {
    use mbs_runtime::{Constrained, Motion, Weights};
    use std::hint::black_box;
    let system = FiveBar::default();
    let mut state = start(&system);
    let view = State::of(&DIMS, &mut state).unwrap();
    let (mut r, mut phi, mut m, mut f, mut x) = ([0.0; 4], [0.0; 2], [1e-3; 18], [0.0; 28], [1.0; 6]);
    let at = Motion { t: 0.0, z: view.z, zd: view.zd, zdd: view.zdd, u: &[] };
    let weights = Weights { velocity: 5e-4, position: 2.5e-7, ratio: 5e-4 };
    let time = |name: &str, f: &mut dyn FnMut()| {
        let mut best = f64::INFINITY;
        for _ in 0..20 {
            let clock = std::time::Instant::now();
            for _ in 0..20_000 {
                f();
            }
            best = best.min(clock.elapsed().as_nanos() as f64 / 20_000.0);
        }
        println!("{name}: {best:.1} ns");
    };
    time("newton", &mut || {
        system.newton(black_box(at), view.lambda, weights, &mut [], &mut r, &mut phi, &mut m).unwrap()
    });
    time("residual", &mut || system.residual(black_box(at), view.lambda, &mut [], &mut r, &mut phi).unwrap());
    time("factor", &mut || system.factor(black_box(&m), &mut [], &mut f).unwrap());
    time("solve", &mut || system.solve(black_box(&f), &mut [], &mut x).unwrap());
    time("projection", &mut || system.projection(0.0, black_box(at).z, &[], &mut [], &mut m).unwrap());
    time("rates", &mut || system.constraint_rates(black_box(at), &mut [], &mut phi).unwrap());
    time("accelerations", &mut || system.constraint_accelerations(black_box(at), &mut [], &mut phi).unwrap());
}
