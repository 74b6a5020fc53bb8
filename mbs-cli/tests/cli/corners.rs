//! Numbers that were wrong, or refused, without a reason in the model.

use crate::command::{Folder, done, mbs};
use serde_json::Value;

/// Four bars with a redundant equation, a spring and a bob; lengths, masses and times are multiples of parameters, and so is a row.
const SCALED: &str = r#"mbs: 1
name: scaled
parameters: {L: 1, M: 1, T: 1, q: 0.5, c: 0.3, k: 20, w: 1}
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
  gear: {type: coupling, value: w*(P.displacement - 0.2*L - 0.1*L*(O.angle - 1))}
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
    // A row means the same whatever it is multiplied by; the motion was wrong by 5e−7.
    let alone: Vec<&str> = SCALED.lines().filter(|line| !line.contains("again:")).collect();
    let alone = folder.file("alone.yaml", alone.join("\n"));
    for method in [&["--integrator", "trapezoidal"][..], &["--integrator", "rk4"]] {
        let expected = psi(&alone, method);
        for set in ["w=3e-5", "w=1e-7", "w=-1e5"] {
            let found = psi(&alone, &[method, &["--set", set]].concat());
            for (a, b) in found.iter().zip(&expected) {
                assert!((a - b).abs() < 1e-9 * expected[0], "{method:?}, {set}: {found:?}, {expected:?}");
            }
        }
    }
    // In coordinates of bodies, rows of drives and couplings reach no inertia. Orders of elimination compared them with one: explicit runs diverged.
    let method = ["--integrator", "rk4", "--coordinates", "absolute", "--end", "0.01"];
    let expected = psi(&alone, &method);
    // Corrections onto the constraints took the unit of other rows for these: gradients were wrong by half.
    let small = psi(&alone, &[&method[..], &["--set", "L=1e-8", "--set", "M=1e-18"]].concat());
    for (a, b) in small.iter().zip(&expected) {
        assert!((a / b - 1.0).abs() < 1e-9, "{small:?}, {expected:?}");
    }
    // Derivatives of rates were differences of squares of rates, 1e18 times as large: wrong by 1e−9 in ten steps.
    let expected = psi(&alone, &method[..2]);
    let fast = ["--set", "T=1e-9", "--step", "1e-12", "--end", "1e-10"];
    let fast = psi(&alone, &[&method[..2], &fast[..]].concat());
    for (a, b) in fast.iter().zip(&expected) {
        assert!((a / b - 1.0).abs() < 1e-10, "{fast:?}, {expected:?}");
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

/// A dependent row means the same whatever it is multiplied by: at 1e4 gradients were wrong by 6e−6, at 1e9 runs were refused.
#[test]
fn dependent_rows_of_any_size() {
    let folder = Folder::new();
    let model = SCALED.replace("w*(P.displacement", "(P.displacement").replace(
        "value: \"dot(pos(crank.end), pos(crank.end)) - (0.3*L)^2 + 0.5*L*(",
        "value: \"w*(dot(pos(crank.end), pos(crank.end)) - (0.3*L)^2) + w*0.5*L*(",
    );
    assert!(model.contains("w*0.5*L") && !model.contains("w*(P"));
    let file = folder.file("dependent.yaml", model);
    for integrator in ["trapezoidal", "rk4"] {
        let options = ["--integrator", integrator, "--end", "0.01"];
        let expected = psi(&file, &options);
        for set in ["w=1e4", "w=-1e9", "w=1e-9"] {
            let found = psi(&file, &[&options[..], &["--set", set]].concat());
            for (a, b) in found.iter().zip(&expected) {
                assert!((a / b - 1.0).abs() < 1e-9, "{integrator}, {set}: {found:?}, {expected:?}");
            }
        }
    }
    // A sweep keeps its equations, which are made for the default.
    let out = mbs(&["sweep", &file, "--over", "w=1,1e4", "--end", "0.01", "--json"]);
    assert!(out.out.contains("the slope of constraint `again`"), "{out:?}");
}

/// The condition of an event on a joint's angle reaches no inertia in coordinates of bodies: it was compared with one kilogram and one metre, and refused.
#[test]
fn impacts_of_any_mass() {
    let folder = Folder::new();
    let model = "mbs: 1\nname: stop\nparameters: {L: 1, M: 1, e: 0.7}\ngravity: [0, -9.81*L, 0]\nsimulation: {step: 2e-3, end: 0.6, integrator: rk4}\n\
         bodies: {arm: {mass: M, com: [0.5*L, 0, 0], inertia: [0.01*M*L^2, 0.1*M*L^2, 0.1*M*L^2]}}\n\
         joints: {O: {type: revolute, parent: ground, child: arm, axis: [0, 0, 1]}}\n\
         events: {hit: {when: O.angle + 1, direction: falling, then: {impact: {restitution: e}}}}\n\
         objectives: {psi: {terminal: O.angle}}\nsensitivity: [e]\n";
    let file = folder.file("stop.yaml", model);
    let found = |sets: [&str; 2], coordinates: &str| -> [f64; 2] {
        let options = ["--set", sets[0], "--set", sets[1], "--coordinates", coordinates, "--json"];
        let out = done(&[&["gradient", &file], &options[..]].concat());
        let psi = serde_json::from_str::<Value>(&out).expect("JSON")["objectives"]["psi"].clone();
        [&psi["value"], &psi["gradient"]["e"]].map(|x| x.as_f64().expect("a number"))
    };
    let expected = found(["L=1", "M=1"], "joint");
    for sets in [["L=1", "M=1e20"], ["L=1e7", "M=1e20"], ["L=1e-6", "M=1e-12"]] {
        for coordinates in ["joint", "absolute"] {
            let apart = found(sets, coordinates)
                .iter()
                .zip(expected)
                .map(|(a, b)| (a / b - 1.0).abs())
                .fold(0.0, f64::max);
            assert!(apart < 1e-9, "{sets:?}, {coordinates}: {apart}");
        }
    }
}

/// Where rows nearly depend on each other, what keeps them apart took 3.7e−8 of the accelerations' derivatives.
#[test]
fn accelerations_where_rows_nearly_depend() {
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/catch_and_release.yaml");
    let out = done(&["verify", model, "--end", "0.004"]);
    assert!(out.contains("\nPASS"), "{out}");
}

/// Closure equations that depend on each other all along: the energy's drift by RK4 is of order four, and the motion that of other formulations.
#[test]
fn an_overconstrained_loop_by_explicit_steps() {
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/bricard.yaml");
    let found = |options: &[&str]| -> (f64, f64) {
        let out = done(&[&["simulate", model, "--end", "1.2", "--json"], options].concat());
        let found: Value = serde_json::from_str(&out).expect("JSON");
        let drift = found["energy"]["relative_balance_error"].as_f64().expect("a balance");
        (drift, found["final"]["coordinates"]["J0.angle"].as_f64().expect("an angle"))
    };
    let [coarse, fine] = ["8e-3", "4e-3"].map(|step| found(&["--integrator", "rk4", "--step", step]));
    let other = found(&["--integrator", "trapezoidal", "--step", "1e-3"]);
    assert!(coarse.0 / fine.0 > 12.0 && fine.0 < 2e-3, "{coarse:?}, {fine:?}");
    let [coarse, fine] = [coarse, fine].map(|found| (found.1 - other.1).abs());
    assert!(coarse / fine > 12.0 && fine < 2e-4, "{coarse}, {fine}");
}

/// Without points in bodies, starts tell the model's length.
#[test]
fn lengths_of_starts() {
    let folder = Folder::new();
    let model = "mbs: 1\nname: trammel\nparameters: {L: 1, m: 1}\ngravity: [0, -9.81*L, 0]\nbodies: {a: {mass: m}, b: {mass: 1}}\n\
         joints:\n  x: {type: prismatic, parent: ground, child: a, axis: [1, 0, 0], start: 0.6*L}\n  \
         y: {type: prismatic, parent: ground, child: b, axis: [0, 1, 0], start: 0.8*L}\n\
         constraints: {rod: {type: distance, from: a, to: b, value: L}}\n\
         objectives: {psi: (x.displacement/L)^2}\nsensitivity: [m]\nsimulation: {step: 1e-3, end: 0.1}\n";
    let file = folder.file("trammel.yaml", model);
    for integrator in ["trapezoidal", "rk4"] {
        let found = |set: &str| -> [f64; 2] {
            let out = done(&["gradient", &file, "--integrator", integrator, "--set", set, "--json"]);
            let psi = serde_json::from_str::<Value>(&out).expect("JSON")["objectives"]["psi"].clone();
            [&psi["value"], &psi["gradient"]["m"]].map(|x| x.as_f64().expect("a number"))
        };
        let expected = found("L=1");
        for set in ["L=1e7", "L=1e-8"] {
            let apart = found(set).iter().zip(expected).fold(0.0, |m: f64, (a, b)| m.max((a - b).abs()));
            assert!(apart < 1e-8 * expected[0], "{integrator}, {set}: {apart}");
        }
    }
    let out = mbs(&["sweep", &file, "--over", "L=1,1e7", "--end", "0.01", "--json"]);
    assert!(out.out.contains("the largest displacement at the start"), "{out:?}");
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

/// A pulse written as a power of a number was stepped over.
#[test]
fn a_pulse_by_powers() {
    let folder = Folder::new();
    let model = "mbs: 1\nname: pulse\nparameters: {a: 2}\nbodies: {b: {mass: 1}}\n\
         joints: {j: {type: prismatic, parent: ground, child: b, axis: [1, 0, 0]}}\n\
         forces: {push: {type: joint_force, coordinate: j, value: \"1e3*a^(-((t - 5.03)/0.001)^2)\"}}\n\
         simulation: {end: 10, integrator: dormand_prince}\n";
    let file = folder.file("pulse.yaml", model);
    let found: Value = serde_json::from_str(&done(&["simulate", &file, "--json"])).expect("JSON");
    let v = found["final"]["velocities"]["j.displacement_rate"].as_f64().expect("a rate");
    let exact = (std::f64::consts::PI / std::f64::consts::LN_2).sqrt();
    assert!((v / exact - 1.0).abs() < 1e-6, "{v}");
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

/// Late times round steps: the state advances by what time does. At 1e12 s it was wrong by 1e−4.
#[test]
fn late_times() {
    let folder = Folder::new();
    let model = |begin: &str, end: &str| {
        format!(
            "mbs: 1\nname: late\nparameters: {{k: 1}}\nbodies: {{b: {{mass: 1}}}}\n\
             joints: {{j: {{type: prismatic, parent: ground, child: b, axis: [1, 0, 0], start: {{value: 0, rate: 1}}}}}}\n\
             forces: {{pull: {{type: torsional_spring, coordinate: j, stiffness: k}}}}\n\
             objectives: {{far: {{terminal: j.displacement}}}}\nsensitivity: [k]\n\
             simulation: {{begin: {begin}, end: {end}, step: 1e-3, integrator: dormand_prince}}\n"
        )
    };
    // x = sin t, and dx/dk = (t cos t − sin t)/2 at k = 1
    let (sin, cos) = 1f64.sin_cos();
    for (begin, end) in [("0", "1"), ("1e9", "1000000001"), ("1e12", "1000000000001")] {
        let file = folder.file("late.yaml", model(begin, end));
        for integrator in ["dormand_prince", "rk4"] {
            for method in ["direct", "adjoint"] {
                let options = ["--integrator", integrator, "--method", method, "--json"];
                let out = done(&[&["gradient", &file], &options[..]].concat());
                let far = &serde_json::from_str::<Value>(&out).expect("JSON")["objectives"]["far"];
                for (found, exact) in [(&far["value"], sin), (&far["gradient"]["k"], 0.5 * (cos - sin))] {
                    let error = (found.as_f64().expect("a number") - exact).abs();
                    assert!(error < 1e-8, "{integrator}, {method}, from {begin} on: {error}");
                }
            }
        }
    }
}

/// A planar loop in a plane whose tilt is almost zero: rows across the plane are roundings of rows that do not change. The gradient by the tilt was refused.
#[test]
fn loops_in_a_tilted_plane() {
    let folder = Folder::new();
    let at = |x: &str, y: &str| format!("[{x}, {y}*cos(tilt), {y}*sin(tilt)]");
    let body = |name: &str, length: &str| {
        let [com, end] = [at("0.2", "0"), at(length, "0")];
        format!("  {name}: {{mass: 1, com: {com}, inertia: [0.1, 0.1, 0.1], points: {{end: {end}}}}}\n")
    };
    let joint = |name: &str, ends: &str, more: &str| {
        format!("  {name}: {{type: revolute, {ends}, axis: [0, -sin(tilt), cos(tilt)], {more}}}\n")
    };
    let model = format!(
        "mbs: 1\nname: tilted\nparameters: {{tilt: 0.001}}\ngravity: [0, -9.81, 0]\nsimulation: {{step: 1e-2, end: 0.1}}\n\
         bodies:\n  ground: {{points: {{B: {}}}}}\n{}{}{}joints:\n{}{}{}{}objectives: {{psi: rate(A)^2}}\nsensitivity: [tilt]\n",
        at("1.3", "0.1"),
        body("crank", "0.4"),
        body("coupler", "1.1"),
        body("rocker", "0.9"),
        joint("A", "parent: ground, child: crank", "start: {value: 1, hold: true}"),
        joint("P", "parent: crank.end, child: coupler", "start: -0.8"),
        joint("B", "parent: ground.B, child: rocker", "start: 1.6"),
        joint("Q", "parent: coupler.end, child: rocker.end", "cut: true"),
    );
    let file = folder.file("tilted.yaml", model);
    for integrator in ["trapezoidal", "rk4"] {
        let slope = |tilt: &str| {
            let set = format!("tilt={tilt}");
            let out = done(&["gradient", &file, "--integrator", integrator, "--set", &set, "--json"]);
            let found: Value = serde_json::from_str(&out).expect("JSON");
            found["objectives"]["psi"]["gradient"]["tilt"].as_f64().expect("a number")
        };
        // Gravity along the plane is g cos(tilt): ψ changes with the square of the tilt.
        let curvature = slope("1e-3") / 1e-3;
        for tilt in ["0", "1e-7", "1e-6", "1e-5"] {
            let expected = curvature * tilt.parse::<f64>().expect("a number");
            let found = slope(tilt);
            assert!(
                (found - expected).abs() < 1e-5 * expected.abs() + 5e-9,
                "{integrator}, {tilt}: {found}, {expected}"
            );
        }
    }
}

/// Rows that nearly depend on each other: projections go on until rounding, or the run says that they have not got there. The rate of x is
/// 5 a cos 5; after three solutions it was wrong by 2e-5 of itself.
#[test]
fn projections_of_nearly_dependent_rows() {
    let folder = Folder::new();
    let model = |lever: &str| {
        format!(
            "mbs: 1\nname: near\nparameters: {{e: {lever}, a: 0.1}}\ngravity: [0, -9.81, 0]\nsimulation: {{end: 1, step: 1e-2}}\n\
             bodies: {{cart: {{mass: 1}}, slide: {{mass: 1}}, ball: {{mass: 1}}}}\njoints:\n  \
             x: {{type: prismatic, parent: ground, child: cart, axis: [1, 0, 0]}}\n  \
             y: {{type: prismatic, parent: cart, child: slide, axis: [0, 1, 0]}}\n  \
             z: {{type: prismatic, parent: slide, child: ball, axis: [0, 0, 1]}}\nconstraints:\n  \
             one: {{type: equation, value: z.displacement}}\n  \
             two: {{type: equation, value: \"z.displacement + e*(x.displacement - a*sin(5*t))\"}}\n\
             objectives: {{far: {{terminal: rate(x)}}}}\nsensitivity: [a]\n"
        )
    };
    let file = folder.file("near.yaml", model("1e-4"));
    let out = done(&["simulate", &file, "--json"]);
    let found: Value = serde_json::from_str(&out).expect("JSON");
    let far = found["objectives"]["far"].as_f64().expect("a number");
    assert!((far / (0.5 * 5f64.cos()) - 1.0).abs() < 1e-8, "{far}");
    // With a lever that shrinks on the way there is no getting there.
    let file = folder.file("shrinks.yaml", model("1e-3").replace("+ e*(", "+ e*(1.03 - t)*("));
    for command in ["simulate", "gradient"] {
        let warning = mbs(&[command, &file]).err;
        assert!(warning.contains("projections ended short of rounding"), "{command}: {warning}");
    }
}

/// Modes of fast and of slow machines: beyond 1e6 rad/s and below 1e−7 all eigenvalues were zero.
#[test]
fn frequencies_of_any_size() {
    let folder = Folder::new();
    for stiffness in ["1e-30", "1e-14", "1e-6", "1", "1e12", "1e14", "1e24"] {
        let model = format!(
            "mbs: 1\nname: two\nbodies: {{a: {{mass: 1}}, b: {{mass: 1}}}}\njoints:\n  \
             p: {{type: prismatic, parent: ground, child: a, axis: [1, 0, 0]}}\n  \
             q: {{type: prismatic, parent: a, child: b, axis: [1, 0, 0]}}\nforces:\n  \
             k: {{type: torsional_spring, coordinate: p.displacement, stiffness: {stiffness}}}\n  \
             l: {{type: torsional_spring, coordinate: q.displacement, stiffness: {stiffness}}}\n"
        );
        let file = folder.file("two.yaml", model);
        let found: Value = serde_json::from_str(&done(&["modes", &file, "--json"])).expect("JSON");
        let unit = stiffness.parse::<f64>().expect("a number").sqrt();
        let part = |mode: &Value, of: &str| mode[of].as_f64().expect("a number") / unit;
        let modes = found["modes"].as_array().expect("modes");
        let mut frequencies: Vec<f64> = modes.iter().map(|mode| part(mode, "imaginary")).collect();
        frequencies.sort_by(f64::total_cmp);
        // (ω² − 2)(ω² − 1) = 1 in units of k/m: the golden ratio and its inverse
        let golden = 0.5 * (1.0 + 5f64.sqrt());
        let apart = frequencies.iter().zip([golden - 1.0, golden]).map(|(a, b)| (a - b).abs());
        assert!(modes.len() == 2 && apart.fold(0.0, f64::max) < 1e-9, "{stiffness}: {frequencies:?}");
        assert!(modes.iter().all(|mode| part(mode, "real").abs() < 1e-9), "{stiffness}: {found}");
    }
}
