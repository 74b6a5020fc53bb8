//! The same mechanism in other units moves the same.

use super::description::{Mechanism, Units};
use super::draw::draw;
use super::{apart, exceeds, none, running, runs, seeds};
use mbs_tests::closed;

/// From machines of ten nanometres to those of the size of a planet; numbers that are no powers of two.
const SCALES: [Units; 7] = [
    Units { length: 1e-8, mass: 1e-18, time: 1e-5 },
    Units { length: 1e-6, mass: 1e-9, time: 1e-3 },
    Units { length: 1e-3, mass: 1e-6, time: 0.03 },
    Units { length: 1e3, mass: 1e-3, time: 1.0 },
    Units { length: 1e2, mass: 1e6, time: 10.0 },
    Units { length: 1e5, mass: 1e15, time: 1e3 },
    Units { length: 1e7, mass: 1e20, time: 1e4 },
];

/// Positions, velocities and accelerations in the units of the mechanism.
fn in_units(outputs: &[f64], units: Units) -> Vec<f64> {
    let Units { length, time, .. } = units;
    let each = outputs.chunks_exact(9).flat_map(|p| {
        let unit = [length, length / time, length / (time * time)];
        (0..9).map(move |i| p[i] / unit[i / 3])
    });
    each.collect()
}

fn moved(mechanism: &Mechanism, units: Units) -> Result<Vec<(&'static str, Vec<f64>)>, String> {
    let model = running(&mechanism.scaled(units).file_in(units));
    let ends = runs(&model, 2e-3 * units.time, 0.05 * units.time)?;
    Ok(ends.into_iter().map(|(method, outputs)| (method, in_units(&outputs, units))).collect())
}

#[test]
fn units_do_not_matter() {
    let one = Units { length: 1.0, mass: 1.0, time: 1.0 };
    let (mut wrong, mut tried) = (Vec::new(), 0);
    let scales =
        if closed::long_runs() { &SCALES[..] } else { &[SCALES[0], SCALES[1], SCALES[3], SCALES[6]] };
    for seed in seeds(if closed::long_runs() { 40 } else { 12 }) {
        let seed = 400_000 + seed;
        let mechanism = draw(seed).mechanism;
        let expected = match moved(&mechanism, one) {
            Ok(expected) => expected,
            Err(error) => {
                wrong.push(format!("seed {seed}: {error}"));
                continue;
            }
        };
        for &units in scales {
            tried += 1;
            let found = match moved(&mechanism, units) {
                Ok(found) => found,
                Err(error) => {
                    wrong.push(format!("seed {seed}, {:e} m: {error}", units.length));
                    continue;
                }
            };
            for ((method, found), (_, expected)) in found.iter().zip(&expected) {
                let difference = apart(found, expected);
                if exceeds(difference, 1e-6) {
                    wrong.push(format!("seed {seed}, {:e} m, {method}: {difference:e}", units.length));
                }
            }
        }
    }
    println!("{tried} tried");
    none(&wrong);
}

/// Found wrong before there were scales: accepted after 200 iterations with velocities violated by 1.9.
#[test]
fn a_large_slider_crank_is_assembled() {
    let text = |length: f64| {
        let (crank, rod) = (0.3 * length, length);
        format!(
            "mbs: 1
gravity: [0, {:?}, 0]
simulation: {{step: 1e-3, end: 1}}
bodies:
  crank: {{mass: 1, com: [{:?}, 0, 0], inertia: [0, 0, {:?}], points: {{end: [{crank:?}, 0, 0]}}}}
  rod: {{mass: 1, com: [{:?}, 0, 0], inertia: [0, 0, {:?}], points: {{end: [{rod:?}, 0, 0]}}}}
  slider: {{mass: 1}}
joints:
  O: {{type: revolute, parent: ground, child: crank, axis: [0, 0, 1], start: {{value: 0.7, rate: 2, hold: true}}}}
  A: {{type: revolute, parent: crank.end, child: rod, axis: [0, 0, 1], start: -0.5}}
  S: {{type: prismatic, parent: ground, child: slider, axis: [1, 0, 0], start: {:?}}}
  B: {{type: revolute, parent: rod.end, child: slider, axis: [0, 0, 1], cut: true}}
outputs: {{p: pos(slider), v: vel(slider), a: acc(slider)}}
",
            -9.81 * length,
            crank / 2.0,
            crank * crank / 12.0,
            rod / 2.0,
            rod * rod / 12.0,
            1.1 * length
        )
    };
    // By hand: sin(ψ) = 0.3 sin(0.7), x = 0.3 cos(0.7) + cos(ψ)
    let (s, c) = 0.7f64.sin_cos();
    let x = 0.3 * c + (1.0 - 0.09 * s * s).sqrt();
    let v = -2.0 * (0.3 * s + 0.09 * s * c / (1.0 - 0.09 * s * s).sqrt());
    for length in [1e-8, 1e-4, 1.0, 1e4, 1e7] {
        let model = running(&text(length));
        let (state, statistics) = closed::start(&model, 0.0).expect("it can be assembled");
        let slider = closed::coordinate(&model, "S.displacement");
        let dims = mbs_runtime::System::dims(&model);
        let mut state = state;
        let view = mbs_runtime::State::of(&dims, &mut state).expect("length");
        let found = [view.z[slider] / length, view.zd[slider] / length];
        assert!(apart(&found, &[x, v]) < 1e-12, "{length:e} m: {found:?} is not {:?}", [x, v]);
        assert!(statistics.iterations < 12, "{length:e} m: {} iterations", statistics.iterations);
        // Generated code has scales where it needs them.
        let generated = mbs_codegen::generate("crank.yaml", &text(length), &mbs_codegen::Request::default());
        let code = generated.expect("a model").code;
        assert_eq!(code.contains("fn units"), length != 1.0, "{length:e} m");
    }
}
