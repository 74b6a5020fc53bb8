//! Numbers that were wrong, or refused, without a reason in the model.

use crate::command::{Folder, done, mbs};
use serde_json::Value;

/// Four bars with a redundant equation, a spring and a bob; lengths, masses and times are multiples of parameters.
const SCALED: &str = r#"mbs: 1
name: scaled
parameters: {L: 1, M: 1, T: 1, q: 0.5, c: 0.3, k: 20}
gravity: [0, -9.81*L/T^2, 0]
simulation: {step: 1e-3, end: 0.1}
bodies:
  ground: {points: {Q: [L, 0, 0]}}
  crank: {mass: M, com: [0.15*L, 0, 0], inertia: [0.001*M*L^2, 0.01*M*L^2, 0.01*M*L^2], points: {end: [0.3*L, 0, 0]}}
  rod: {mass: 2*M, com: [q*L, 0, 0], inertia: [0.01*M*L^2, 0.16*M*L^2, 0.16*M*L^2], points: {end: [L, 0, 0]}}
  rocker: {mass: 1.5*M, com: [0.4*L, 0, 0], inertia: [0.01*M*L^2, 0.1*M*L^2, 0.1*M*L^2], points: {end: [0.8*L, 0, 0]}}
  bob: {mass: 0.3*M, com: [0.1*L, 0, 0.02*L], inertia: [0.001*M*L^2, 0.001*M*L^2, 0.001*M*L^2]}
  slider: {mass: 0.2*M}
joints:
  O: {type: revolute, parent: ground, child: crank, axis: [0, 0, 1], start: {value: 1, rate: 2/T, hold: true}}
  A: {type: revolute, parent: crank.end, child: rod, axis: [0, 0, 1], start: -0.5}
  R: {type: revolute, parent: ground.Q, child: rocker, axis: [0, 0, 1], start: 1.5}
  B: {type: revolute, parent: rod.end, child: rocker.end, axis: [0, 0, 1], cut: true}
  S: {type: spherical, parent: rod.end, child: bob, start: {angular_velocity: [1/T, 0.5/T, 0]}}
  P: {type: prismatic, parent: ground, child: slider, axis: [1, 0, 0], start: 0.2*L}
constraints:
  gear: {type: coupling, value: P.displacement - 0.2*L - 0.1*L*(O.angle - 1)}
  again: {type: equation, value: "dot(pos(crank.end), pos(crank.end)) - (0.3*L)^2 + 0.5*L*(pos(slider).x - 0.2*L - 0.1*L*(O.angle - 1))"}
forces:
  pull: {type: spring, from: ground, to: bob.com, stiffness: k*M/T^2, natural_length: 0.4*L, damping: c*M/T}
objectives: {psi: "((pos(bob.com).y/L)^2 + (rate(O)*T)^2/10)/T"}
sensitivity: [q, c, k]
cases: {large: {parameters: {L: 1e4, M: 1e9}}}
"#;

/// ψ and its gradient, by the model's own case or with parameters set.
fn psi(file: &str, options: &[&str]) -> Vec<f64> {
    let out = done(&[&["gradient", file, "--json"], options].concat());
    let found: Value = serde_json::from_str(&out).expect("JSON");
    let psi = &found["objectives"]["psi"];
    let gradient = ["q", "c", "k"].map(|name| psi["gradient"][name].as_f64().expect("a number"));
    [psi["value"].as_f64().expect("a number")].into_iter().chain(gradient).collect()
}

/// Set far from the defaults, gradients were wrong by 1e−3 at 10 km and motions by 4e−3 at a billion kilograms.
#[test]
fn parameters_far_from_the_defaults() {
    let folder = Folder::new();
    let file = folder.file("scaled.yaml", SCALED);
    for method in [&["--integrator", "trapezoidal"][..], &["--integrator", "rk4"]] {
        let expected = psi(&file, method);
        for set in [
            &["--set", "L=1e4"][..],
            &["--set", "M=1e9"],
            &["--set", "L=1e-6", "--set", "M=1e-9"],
            &["--case", "large"],
        ] {
            let found = psi(&file, &[method, set].concat());
            for (a, b) in found.iter().zip(&expected) {
                assert!((a - b).abs() < 1e-7 * expected[0], "{method:?}, {set:?}: {found:?}, {expected:?}");
            }
        }
    }
    // A sweep keeps its equations: what they are not scaled for is a failed run with its reason.
    let out = mbs(&["sweep", &file, "--over", "M=1,1e9", "--end", "0.01", "--json"]);
    assert!(out.out.contains("for which the equations are scaled"), "{out:?}");
    // A module has no case whose numbers need other scales.
    let code = folder.path("scaled.rs");
    done(&["generate", &file, "-o", &code]);
    let code = std::fs::read_to_string(code).expect("the module");
    assert!(!code.contains("Case::large") && code.contains("for which the equations are scaled"));
}

/// Exactly at rest all derivatives are rounding; they were compared with each other.
#[test]
fn verification_at_rest() {
    let folder = Folder::new();
    let bar = |name: &str, com: &str, end: &str| {
        format!(
            "  {name}: {{mass: m, com: [{com}, 0], inertia: [0, 0, m*L^2/12], points: {{end: [{end}, 0]}}}}\n"
        )
    };
    let model = format!(
        "mbs: 1\nname: rest\ngravity: [0, -9.81, 0]\nparameters: {{m: 1, L: 1}}\nsimulation: {{step: 1e-3, end: 0.1}}\n\
         bodies:\n  ground: {{points: {{Q: [L, 0, 0]}}}}\n{}{}{}\
         joints:\n  O: {{type: revolute, parent: ground, child: a, axis: [0, 0, 1]}}\n  \
         P: {{type: revolute, parent: a.end, child: b, axis: [0, 0, 1]}}\n  \
         R: {{type: revolute, parent: ground.Q, child: c, axis: [0, 0, 1]}}\n  \
         S: {{type: revolute, parent: b.end, child: c.end, axis: [0, 0, 1], cut: true}}\n\
         objectives: {{psi: O.angle^2}}\nsensitivity: [m]\n",
        bar("a", "0, -L/2", "0, -L"),
        bar("b", "L/2, 0", "L, 0"),
        bar("c", "0, -L/2", "0, -L"),
    );
    let file = folder.file("rest.yaml", model);
    for integrator in ["trapezoidal", "rk4"] {
        let out = done(&["verify", &file, "--integrator", integrator]);
        assert!(out.contains("\nPASS"), "{integrator}: {out}");
    }
}

/// Explicit runs showed Euler parameters as the file has them, at the first instant only.
#[test]
fn euler_parameters_of_any_length() {
    let folder = Folder::new();
    let model = "mbs: 1\nname: top\nbodies: {b: {mass: 1, inertia: [0.1, 0.2, 0.25]}}\n\
         joints: {j: {type: spherical, parent: ground, child: b, start: {orientation: [2, 0, 0, 0], angular_velocity: [1, 2, 3]}}}\n\
         simulation: {step: 1e-2, end: 0.1, integrator: rk4}\n";
    let file = folder.file("top.yaml", model);
    let found: Value = serde_json::from_str(&done(&["simulate", &file, "--json"])).expect("JSON");
    assert_eq!(found["start"]["coordinates"]["j.e0"], 1.0, "{found}");
}

/// Work is integrated by parabolas also in the first step after a corner; the balance was wrong by 6 % for a right motion.
#[test]
fn the_energy_of_a_short_pulse() {
    let folder = Folder::new();
    let model = "mbs: 1\nname: pulse\nbodies: {b: {mass: 1}}\n\
         joints: {j: {type: prismatic, parent: ground, child: b, axis: [1, 0, 0]}}\n\
         forces: {push: {type: joint_force, coordinate: j, value: \"if(t < 5, 0, if(t < 5.001, 7000*sin(pi*(t - 5)/0.001), 0))\"}}\n\
         simulation: {end: 10, integrator: dormand_prince}\n";
    let file = folder.file("pulse.yaml", model);
    let found: Value = serde_json::from_str(&done(&["simulate", &file, "--json"])).expect("JSON");
    // ∫F dt = 2 · 7000 · 0.001/π
    let v = found["final"]["velocities"]["j.displacement_rate"].as_f64().expect("a rate");
    assert!((v - 14.0 / std::f64::consts::PI).abs() < 1e-6, "{v}");
    let drift = found["energy"]["relative_balance_error"].as_f64().expect("a balance");
    assert!(drift < 0.01, "{drift}");
}

/// Nothing takes part in a result that does not vary; its indices were NaN.
#[test]
fn indices_of_a_constant() {
    let folder = Folder::new();
    let model = "mbs: 1\nname: cart\nparameters: {k: 100, c: 2}\nbodies: {b: {mass: 1}}\n\
         joints: {j: {type: prismatic, parent: ground, child: b, axis: [1, 0, 0], start: 0.1}}\n\
         forces: {mount: {type: torsional_spring, coordinate: j, stiffness: k, damping: c}}\n\
         objectives: {travel: j.displacement^2, still: {terminal: 0.3}}\nsimulation: {end: 0.1, step: 1e-2}\n";
    let file = folder.file("cart.yaml", model);
    let sweep =
        ["sweep", &file, "--over", "k=50:200", "--over", "c=1:3", "--samples", "8", "--design", "saltelli"];
    let out = done(&sweep);
    assert!(!out.contains("NaN") && out.contains("still"), "{out}");
}
