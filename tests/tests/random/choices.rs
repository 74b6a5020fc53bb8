//! Gradients of runs in independent coordinates through changes of the choice: a mass that runs round and round an ellipse of random size, where neither
//! of its coordinates serves for long. The ellipse grows and shrinks with time, and a nonholonomic row turns a disc. Direct against runs in complex
//! numbers, which replay the choices, and against the adjoint.

use mbs_codegen::model::{Formulation, Integrator, Simulation};
use mbs_codegen::program::{Options, Program};
use mbs_engine::verify;
use mbs_runtime::{Fixed, Rk4};
use mbs_tests::closed::{self, run_independent};
use mbs_tests::random_model::Random;

/// A body on two slides, with a disc, on x²/a² + y²/b² = 1 + sway sin(pace t).
fn round_trip(random: &mut Random) -> String {
    let mut some = |from: f64, to: f64| random.uniform(from, to);
    let (a, b, speed) = (some(0.7, 1.4), some(0.7, 1.4), some(8.0, 10.0));
    let (turn, sway, pace) = (some(-1.5, 1.5), some(0.02, 0.06), some(2.0, 4.0));
    format!(
        "
mbs: 1
name: round_trip
gravity: [0, -9.81, 0]
parameters: {{a: {a:.4}, b: {b:.4}, speed: {speed:.4}, turn: {turn:.4}, sway: {sway:.4}, pace: {pace:.4}, k: 0.3}}
bodies:
  slide: {{mass: 0.2}}
  mass: {{mass: 1.3}}
  disc: {{mass: 0.5, com: [0.1, 0, 0], inertia: [0, 0, 0.4]}}
joints:
  x: {{type: prismatic, parent: ground, child: slide, axis: [1, 0, 0], start: {{value: 0.9*a, rate: 0}}}}
  y: {{type: prismatic, parent: slide, child: mass, axis: [0, 1, 0], start: {{value: 0.2*b, rate: speed, hold: true}}}}
  W: {{type: revolute, parent: mass, child: disc, axis: [0, 0, 1]}}
constraints:
  ellipse: {{type: equation, value: x.displacement^2/a^2 + y.displacement^2/b^2 - 1 - sway*sin(pace*t)}}
  rolls: {{type: nonholonomic, value: rate(W) - turn*(x.displacement*rate(y) - y.displacement*rate(x)) - 0.3*cos(t)}}
forces:
  brake: {{type: joint_force, coordinate: W, value: -k*rate(W) - 2*sin(W.angle)}}
objectives:
  way: {{integrand: \"dot(vel(disc), vel(disc))\", terminal: rate(x) + W.angle}}
  shake: {{integrand: \"acc(mass).y^2\", terminal: y.displacement}}
sensitivity: [a, b, speed, turn, sway, k]
simulation: {{end: 1.2, step: 1e-2, integrator: rk4, formulation: matrix_r}}
"
    )
}

#[test]
fn gradients_through_changes_of_the_choice() {
    let integrators = [
        Integrator::Rk4,
        Integrator::Trapezoidal,
        Integrator::GeneralizedAlpha { spectral_radius: 0.8 },
        Integrator::Sdirk4,
    ];
    let mut changes = 0;
    for seed in 0..3 {
        let text = round_trip(&mut Random::new(400 + seed));
        let read = mbs_codegen::read("model.yaml", &text);
        let (model, _) =
            read.unwrap_or_else(|problems| panic!("{}\n{text}", problems.render("model.yaml", &text)));
        // The first, and one of the others.
        for integrator in [integrators[0], integrators[1 + seed as usize % 3]] {
            let simulation =
                Simulation { integrator, formulation: Formulation::MatrixR, ..model.simulation.clone() };
            let options = Options { bundles: verify::bundles(&simulation, true), ..Options::default() };
            let program = Program::new(&model, None, &options).expect("a program");
            if integrator == Integrator::Rk4 {
                let method = Fixed { method: Rk4, h: simulation.step };
                let run = run_independent(&closed::model(&text), &method, simulation.end);
                let (outcome, choices) = run.expect("a run");
                println!("seed {seed}: {choices} choices, the disc at {:.1}", outcome.z[2]);
                changes += choices - 1;
            }
            let report = verify::report(&program, &simulation, false, |_| {}).expect("a run");
            let told: Vec<String> =
                report.runs.iter().filter(|check| !check.passed()).map(|c| format!("{c:?}")).collect();
            assert!(report.passed(), "seed {seed}, {integrator:?}\n{}\n{text}", told.join("\n"));
        }
    }
    assert!(changes >= 9, "{changes} changes");
}
