//! Modules in single precision against those in double precision, and over long runs.

use crate::{cart_pole, five_bar, single};
use std::prelude::v1::*;

const EPSILON: f64 = f32::EPSILON as f64;

/// Steps of the long run: a million with `MBS_STEPS=1000000`.
fn steps() -> u32 {
    std::env::var("MBS_STEPS").ok().and_then(|text| text.parse().ok()).unwrap_or(10_000)
}

/// The pole falls, swings and comes to rest: friction takes energy, and nothing gives any back but rounding. Time does not drift,
/// though a million steps of 1 ms sum up to 991 s in single precision.
#[test]
fn the_cart_pole_stays_finite_and_loses_energy() {
    use single::cart_pole::{Inputs, Parameters, SETTINGS, Simulation};
    let parameters = Parameters::default();
    let mut simulation = Simulation::new(parameters).expect("a start");
    let weight = 9.81 * parameters.pole_mass * parameters.half;
    let begin = simulation.energy().total();
    // Each step rounds the state by a few ε, which changes the energy by as many ε of the largest, 2 m g l; the roundings are
    // independent, and friction forgets them within some seconds.
    let rounding = 2.0 * weight * f32::EPSILON * 64.0;
    let count = steps();
    let (mut before, mut smallest) = (begin, begin);
    for step in 1..=count {
        simulation.step(&Inputs { push: 0.0 }).expect("a step");
        let energy = simulation.energy().total();
        assert!(energy.is_finite() && energy <= before + rounding, "{step}: {energy} after {before}");
        (before, smallest) = (energy, smallest.min(energy));
    }
    assert!(smallest >= -weight - rounding && before < begin, "{smallest} {before}");
    let time = f64::from(count) * SETTINGS.step;
    assert!((simulation.t() - time).abs() <= 4.0 * f64::EPSILON * time, "{}", simulation.t());
    assert_eq!(simulation.at().t, simulation.t() as f32);
}

/// Largest difference between two lists of numbers, against the largest number.
fn difference(single: &[f32], double: &[f64]) -> f64 {
    assert_eq!(single.len(), double.len());
    let largest = double.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
    single.iter().zip(double).fold(0.0, |most: f64, (a, b)| most.max((f64::from(*a) - b).abs())) / largest
}

/// A second of the five-bar linkage: each of n steps rounds by a few ε, and motion and velocities carry the sum of them.
#[test]
fn the_five_bar_linkage_follows_double_precision() {
    let mut one =
        single::five_bar::Simulation::new(single::five_bar::Parameters::default()).expect("a start");
    let mut two = five_bar::Simulation::new(five_bar::Parameters::default()).expect("a start");
    for _ in 0..1000 {
        one.step().expect("a step");
        two.step().expect("a step");
    }
    let [positions, velocities] = [
        difference(&one.z().to_array(), &two.z().to_array()),
        difference(&one.v().to_array(), &two.v().to_array()),
    ];
    let [single, double] = [one.statistics(), two.statistics()];
    std::println!("{positions:e} {velocities:e} {single:?} {double:?}");
    assert!(positions <= 1000.0 * EPSILON && velocities <= 1000.0 * EPSILON, "{positions:e} {velocities:e}");
    // Convergence is judged by the rounding of the scalar: no step iterates on noise.
    assert!(single.max_iterations <= double.max_iterations + 1, "{single:?} {double:?}");
    assert_eq!(single.fallbacks, 0);
    // The loop stays closed to the rounding of lengths of some metres.
    let open = |point: [f32; 3]| f64::from(point[2]).abs();
    assert!(open(one.output().point_2) <= 8.0 * EPSILON);
}

/// Gradients of the discrete solution, by ALI3-P and by Runge–Kutta.
#[test]
fn gradients_follow_double_precision() {
    macro_rules! compare {
        ($module:ident) => {{
            let mut setup =
                ($module::Setup::new(Default::default()), single::$module::Setup::new(Default::default()));
            (setup.0.settings.end, setup.1.settings.end) = (0.2, 0.2);
            let mut one = [0.0; size_of::<single::$module::GradientMemory>() / 4];
            let mut two = [0.0; size_of::<$module::GradientMemory>() / 8];
            let one = single::$module::gradient_with(&setup.1, &mut one).expect("a gradient");
            let two = $module::gradient_with(&setup.0, &mut two).expect("a gradient");
            // Objective by objective: each has its own size.
            let width = 1 + $module::NAMES.sensitivities.len();
            let (one, two) = (one.to_array(), two.to_array());
            let parts =
                one.chunks(width).zip(two.chunks(width)).filter(|(_, two)| two.iter().any(|x| *x != 0.0));
            parts.map(|(one, two)| difference(one, two)).fold(0.0, f64::max)
        }};
    }
    let [five_bar, cart_pole] = [compare!(five_bar), compare!(cart_pole)];
    std::println!("{five_bar:e} {cart_pole:e}");
    // 200 steps, each with the rounding of a solve.
    assert!(five_bar <= 200.0 * EPSILON && cart_pole <= 200.0 * EPSILON, "{five_bar:e} {cart_pole:e}");
}
