//! `mbs gradient`: what it prints, what it writes, and what it refuses.

use crate::command::{Folder, done, fails, mbs, shipped, text};
use serde_json::Value;

/// A pendulum with an objective; more can be put in place of `{}`.
fn pendulum(objectives: &str, rest: &str) -> String {
    format!(
        "mbs: 1\nname: pendulum\ngravity: [0, 0, -9.81]\n\
         parameters: {{m: 1, L: {{value: 1, unit: m}}, half: L/2, knots: [0.1, 0.2], idle: 3}}\n\
         inputs: {{push: {{default: 0.1, unit: N m}}}}\n\
         bodies: {{rod: {{mass: m, com: [0, 0, -half], inertia: [0.1, 0.1, 0.1], points: {{tip: [0, 0, -L]}}}}}}\n\
         joints: {{hinge: {{type: revolute, parent: ground, child: rod, axis: [0, 1, 0], start: 0.3}}}}\n\
         forces: {{drive: {{type: joint_force, coordinate: hinge.angle, value: \"push*knots[0]\"}}}}\n\
         {objectives}\nsimulation: {{end: 0.5, step: 1e-2}}\n{rest}"
    )
}

const HASTE: &str = "objectives: {haste: {integrand: rate(hinge)^2, unit: rad²/s}}";

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&done(arguments)).expect("JSON")
}

/// The derivative of an objective.
fn derivative(found: &Value, objective: &str, by: &str) -> f64 {
    found["objectives"][objective]["gradient"][by].as_f64().unwrap_or_else(|| panic!("no {objective} {by}"))
}

/// The numbers of Lopez Varela, Dopico, Luaces 2023, Table 7, which has five digits.
#[test]
fn the_five_bar_as_json() {
    let found = json(&["gradient", &shipped("five_bar"), "--json"]);
    let objectives = found["objectives"].as_object().expect("an object");
    assert_eq!(objectives.keys().collect::<Vec<_>>(), ["psi1", "psi2", "psi3"]);
    for (objective, by, published) in [
        ("psi1", "L_s1", -4.2288),
        ("psi1", "L_A1", 3.3598),
        ("psi2", "m_A1", 0.97016),
        ("psi3", "x_G", -85.657),
    ] {
        let x = derivative(&found, objective, by);
        assert!((x / published - 1.0).abs() < 2e-5, "{objective} by {by}: {x}");
    }
    let psi1 = objectives["psi1"]["value"].as_f64().expect("a number");
    assert!((psi1 / 0.72688 - 1.0).abs() < 1e-5);
    assert_eq!(objectives["psi1"].as_object().expect("an object").len(), 2);
}

/// Short runs of every shipped model with objectives: the adjoint is the transpose of the direct derivative.
#[test]
fn the_adjoint_gives_the_same_gradient() {
    let ends = [
        ("andrews", "0.002"),
        ("arm7", "0.05"),
        ("bicycle", "0.05"),
        ("bricard", "0.1"),
        ("cart_pole", "0.5"),
        ("crank_rocker", "0.1"),
        ("double_pendulum", "0.5"),
        ("five_bar", "0.5"),
        ("four_bar_2", "0.2"),
        ("governor", "0.1"),
        ("mirrored", "0.05"),
        ("pendulum", "1"),
        ("slider_crank", "0.5"),
        ("spinning_top", "0.1"),
        ("torque_free_top", "0.5"),
        ("two_point_masses", "0.5"),
        ("whipple", "0.1"),
    ];
    for (name, end) in ends {
        let model = shipped(name);
        let run = |method| json(&["gradient", &model, "--json", "--end", end, "--method", method]);
        let (direct, adjoint) = (run("direct"), run("adjoint"));
        assert_eq!(adjoint["method"]["gradient"], "adjoint", "{name}");
        for (objective, found) in direct["objectives"].as_object().expect("objectives") {
            let row = found["gradient"].as_object().expect("a gradient");
            let size = row.values().filter_map(Value::as_f64).fold(0.0, |size: f64, x| size.max(x.abs()));
            for (by, expected) in row {
                let (found, expected) =
                    (derivative(&adjoint, objective, by), expected.as_f64().expect("a number"));
                // Rounding, and what these runs amplify of it.
                assert!(
                    (found - expected).abs() <= 1e-12 * size,
                    "{name} {objective} {by}: {found} {expected}"
                );
            }
        }
    }
}

/// A point mass on a rail: in coordinates of bodies its inertias are rounding, down to 1e−180. Corrections onto the constraints were scaled by them, and the
/// derivative was 1e32.
#[test]
fn inertias_of_rounding_are_none() {
    const MODEL: &str = "
mbs: 1
gravity: [0, 0, -9.81]
parameters: {m: 1, k: 50}
bodies:
  ground: {points: {P: [1.5, 0, 0]}}
  crank: {mass: m, com: [0.2, 0, 0], inertia: [0.01, 0.02, 0.02], points: {e: [0.4, 0, 0]}}
  slider: {mass: 0.7}
joints:
  c: {type: revolute, parent: ground, child: crank, axis: [0, 1, 0], start: {value: 0.2, rate: 3}}
  pr: {type: prismatic, parent: ground.P, child: slider, axis: [1, 0.2, 0.1]}
forces:
  spring: {type: torsional_spring, coordinate: pr, stiffness: k}
constraints:
  rod: {type: distance, from: crank.e, to: slider, value: 1}
objectives:
  psi: {integrand: c.angle^2, terminal: pos(crank.e).x}
sensitivity: [m, k]
simulation: {end: 0.05, formulation: index1}
";
    let folder = Folder::new();
    let model = folder.file("rail.yaml", MODEL);
    for integrator in ["dop853", "sdirk4", "rk4"] {
        let run = |coordinates, method| {
            let way = ["--integrator", integrator, "--coordinates", coordinates, "--method", method];
            let found = json(&[&["gradient", &model, "--json"], &way[..]].concat());
            ["m", "k"].map(|by| derivative(&found, "psi", by))
        };
        let expected = run("joint", "direct");
        for found in [run("absolute", "direct"), run("absolute", "adjoint")] {
            for (a, b) in found.iter().zip(&expected) {
                assert!((a / b - 1.0).abs() < 1e-6, "{integrator}: {found:?}, {expected:?}");
            }
        }
    }
}

/// Objectives and gradient of every shipped model with loops or constraints, by all formulations and in both kinds of coordinates: matrix R, direct and
/// adjoint, against index 1, both implicit methods, penalty and absolute coordinates. The trapezoidal rule is extrapolated from two steps.
#[test]
fn formulations_have_the_same_gradient() {
    let rows = |found: &Value| -> Vec<Vec<f64>> {
        let row = |found: &Value| {
            let gradient = found["gradient"].as_object().expect("a gradient").values();
            [&found["value"]].into_iter().chain(gradient).map(|x| x.as_f64().expect("a number")).collect()
        };
        found["objectives"].as_object().expect("objectives").values().map(row).collect()
    };
    let tight = ["--rtol", "1e-10", "--atol", "1e-12"];
    for (name, end, steps) in [
        ("andrews", "0.0005", ["2e-6", "1e-6"]),
        ("bricard", "0.05", ["1e-3", "5e-4"]),
        ("crank_rocker", "0.1", ["1e-3", "5e-4"]),
        ("five_bar", "0.2", ["2e-3", "1e-3"]),
        ("four_bar_2", "0.2", ["2e-3", "1e-3"]),
        ("slider_crank", "0.2", ["5e-3", "2.5e-3"]),
        ("two_point_masses", "0.2", ["5e-3", "2.5e-3"]),
        ("whipple", "0.1", ["1e-3", "5e-4"]),
    ] {
        let model = shipped(name);
        let run = |way: &[&str]| rows(&json(&[&["gradient", &model, "--json", "--end", end], way].concat()));
        let controlled = |way: &[&str]| run(&[way, &tight].concat());
        let exact = controlled(&["--formulation", "index1", "--integrator", "dormand_prince"]);
        let check = |way: &[&str], found: &[Vec<f64>]| {
            for (row, exact) in found.iter().zip(&exact) {
                let size = exact[1..].iter().fold(0.0, |size: f64, x| size.max(x.abs()));
                for (k, (a, b)) in row.iter().zip(exact).enumerate() {
                    let size = if k == 0 { b.abs() } else { size };
                    // Step control knows the states, not how little of them a derivative is.
                    let allowed = 1e-6 * size + 1e-10 * exact[0].abs();
                    assert!((a - b).abs() <= allowed, "{name}, {way:?}: {a} is not {b}");
                }
            }
        };
        // Reactions are objectives of the crank-rocker, whose rows depend on each other in absolute coordinates.
        let absolute = !matches!(name, "andrews" | "crank_rocker");
        let matrix_r: &[&str] = &["--formulation", "matrix_r", "--integrator", "dormand_prince"];
        let implicit: &[&str] = &["--formulation", "matrix_r", "--integrator", "sdirk4"];
        let in_absolute = [matrix_r, &["--coordinates", "absolute"]].concat();
        let ways: &[(&[&str], bool)] = &[
            (matrix_r, true),
            (&[matrix_r, &["--method", "adjoint"]].concat(), true),
            (&["--formulation", "index1", "--integrator", "dop853"], true),
            (&["--formulation", "matrix_r", "--integrator", "dop853", "--method", "adjoint"], true),
            (&["--formulation", "index1", "--integrator", "sdirk4"], true),
            (implicit, true),
            (&[implicit, &["--method", "adjoint"]].concat(), true),
            (&["--formulation", "penalty", "--penalty", "1e9", "--integrator", "dormand_prince"], true),
            (&in_absolute, absolute),
        ];
        for (way, _) in ways.iter().filter(|(_, there)| *there) {
            check(way, &controlled(way));
        }
        for (formulation, coordinates) in [("ali3p", "joint"), ("ali3p", "absolute"), ("matrix_r", "joint")] {
            if name == "andrews" && coordinates == "absolute" {
                continue;
            }
            let integrator = ["--integrator", "trapezoidal"];
            let way =
                ["--formulation", formulation, integrator[0], integrator[1], "--coordinates", coordinates];
            let [coarse, mut fine] = steps.map(|step| run(&[&way[..], &["--step", step]].concat()));
            for (fine, coarse) in fine.iter_mut().flatten().zip(coarse.iter().flatten()) {
                *fine += (*fine - coarse) / 3.0;
            }
            check(&way, &fine);
        }
    }
}

/// Under step control and with events the number of steps is known after a first run alone: too little memory is refused with what all of it
/// needs, that is enough, and it gives the same bits.
#[test]
fn adjoints_of_runs_whose_steps_are_not_known_before() {
    for (name, integrator, end) in [
        ("five_bar", "dormand_prince", "1"),
        ("five_bar", "dop853", "4"),
        ("five_bar", "sdirk4", "0.5"),
        ("five_bar_bouncing", "trapezoidal", "1"),
        ("five_bar_bouncing", "dormand_prince", "1"),
        ("five_bar_bouncing", "dop853", "5"),
    ] {
        let model = shipped(name);
        let run = ["gradient", &model, "--end", end, "--integrator", integrator, "--method", "adjoint"];
        let with = |more: &[&'static str]| [&run[..], more].concat();
        let all = json(&with(&["--json"]));
        let refused = fails(2, &["too little", "it needs at least "], &with(&["--memory", "1K"])).err;
        let least = refused.split("it needs at least ").nth(1).expect("an amount");
        let mut words = least.split([' ', ':']);
        let (number, unit) = (words.next().expect("a number"), words.next().expect("a unit"));
        let memory = if unit == "bytes" { number.to_string() } else { format!("{number}K") };
        let few = json(&[&run[..], &["--json", "--memory", &memory]].concat());
        assert_eq!(few["objectives"], all["objectives"], "{name}, {integrator}: the same bits in {memory}");
        let again = |found: &Value| found["method"]["recomputed"].as_u64().expect("a number");
        let steps = all["statistics"]["steps"].as_u64().expect("a number");
        assert!(again(&all) <= again(&few) && again(&few) > steps, "{name}, {integrator}");
        assert!(few["method"]["records"].as_u64().expect("a number") < steps, "{name}, {integrator}");
    }
}

#[test]
fn adjoints_in_little_memory_and_what_is_refused() {
    let five_bar = shipped("five_bar");
    let run = |memory| {
        json(&["gradient", &five_bar, "--json", "--end", "1", "--method", "adjoint", "--memory", memory])
    };
    let (all, few) = (run("1G"), run("256K"));
    assert_eq!(all["method"]["recomputed"], 0);
    assert!(few["method"]["recomputed"].as_u64().expect("a number") > 0);
    assert_eq!(few["objectives"], all["objectives"], "the same bits");
    let too_little = ["gradient", &five_bar, "--method", "adjoint", "--memory", "2K"];
    fails(2, &["2048 bytes of memory are too little", "--memory", "--method direct"], &too_little);
    let folder = Folder::new();
    let undefined = "objectives: {bad: sqrt(0.5 + rate(hinge))}\nsensitivity: [m]";
    let model = folder.file("pendulum.yaml", pendulum(undefined, ""));
    fails(1, &["objective `bad`", "not finite"], &["gradient", &model, "--method", "adjoint"]);
    // A run that fails half-way says when, forward or back.
    let text = "mbs: 1\nparameters: {m: 1}\nbodies: {b: {mass: m, inertia: [1, 1, 1]}}\n\
                joints: {slide: {type: prismatic, parent: ground, child: b, axis: [1, 0, 0]}}\n\
                forces: {f: {type: joint_force, coordinate: slide, value: sqrt(0.25 - t)}}\n\
                objectives: {far: {terminal: slide.displacement}}\nsensitivity: [m]\nsimulation: {end: 1, step: 1e-2}\n";
    let model = folder.file("half.yaml", text);
    for integrator in ["rk4", "sdirk4", "trapezoidal"] {
        for method in ["direct", "adjoint"] {
            let run = ["gradient", &model, "--method", method, "--integrator", integrator];
            fails(1, &["t = 0.2", "slide", "not finite"], &run);
        }
    }
    // An objective that is undefined on the way is named, and the file that was there before stays.
    let text =
        text.replace("sqrt(0.25 - t)", "1 + u").replace("bodies:", "inputs: {u: {default: 0}}\nbodies:");
    let model = folder.file("half.yaml", text.replace("{terminal: slide.displacement}", "m*sqrt(0.25 - t)"));
    let kept = folder.file("u.csv", "kept");
    for integrator in ["rk4", "dormand_prince", "dop853", "sdirk4", "trapezoidal"] {
        let run =
            ["gradient", &model, "--integrator", integrator, "--by-input", "u", "--input-history", &kept];
        fails(1, &["t = 0.", "objective `far`", "not finite"], &run);
        assert_eq!(crate::command::text(&kept), "kept");
    }
    // The continuous adjoint differs by the error of the method, and keeps all nodes.
    let run = |method| json(&["gradient", &five_bar, "--json", "--end", "0.5", "--method", method]);
    let (discrete, continuous) = (run("adjoint"), run("continuous_adjoint"));
    let [a, b] = [discrete, continuous].map(|found| derivative(&found, "psi1", "L_s1"));
    assert!(a != b && (a - b).abs() < 1e-3 * a.abs(), "{a} {b}");
    let too_little = ["gradient", &five_bar, "--method", "continuous_adjoint", "--memory", "2K"];
    fails(2, &["2048 bytes of memory are too little"], &too_little);
    let other = ["gradient", &five_bar, "--method", "continuous_adjoint", "--formulation", "index1"];
    fails(2, &["continuous adjoint is that of ALI3-P"], &other);
    // The file may choose.
    let chosen = pendulum(HASTE, "").replace("step: 1e-2", "step: 1e-2, gradient: auto");
    let model = folder.file("chosen.yaml", chosen.replace("objectives", "sensitivity: [m, L]\nobjectives"));
    let out = done(&["gradient", &model]);
    assert!(out.contains("method   direct: 1 objective by 2 parameters"), "{out}");
}

/// By the history of an input, by the end time, along a direction, of a weighted sum, twice.
#[test]
fn further_derivatives() {
    let model = shipped("cart_pole");
    let folder = Folder::new();
    let file = folder.path("push.csv");
    let run = ["gradient", &model, "--json", "--case", "shaken", "--end", "0.2"];
    let found = json(
        &[
            &run[..],
            &["--by-input", "push", "--input-history", &file, "--by-end-time", "--hessian"],
            &["--along", "push=2", "--weight", "drift=1"],
        ]
        .concat(),
    );
    assert_eq!(found["method"]["gradient"], "adjoint");
    let gradient = found["objectives"]["drift"]["gradient"].as_object().expect("a gradient");
    let by_push = gradient["push"].as_f64().expect("a number");
    let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * b.abs();
    // The values of all steps together are a constant.
    let history = found["by_input"]["objectives"]["drift"]["push"].as_array().expect("a history");
    assert_eq!(history.len(), found["by_input"]["t"].as_array().expect("times").len());
    let sum: f64 = history.iter().filter_map(Value::as_f64).sum();
    assert!(history.len() > 10 && close(sum, by_push), "{sum} {by_push}");
    let text = std::fs::read_to_string(&file).expect("the file");
    assert!(text.starts_with("t,") && text.contains("d(drift)/d(push)"), "{text}");
    assert_eq!(text.lines().count(), history.len() + 1);
    let along = found["along"]["objectives"]["drift"].as_f64().expect("a number");
    assert!(close(along, 2.0 * by_push), "{along} {by_push}");
    for (by, expected) in gradient {
        let weighted = found["weighted"][by].as_f64().expect("a number");
        assert!(close(weighted, expected.as_f64().expect("a number")) || weighted.abs() < 1e-15, "{by}");
    }
    assert!(found["by_end_time"]["drift"].is_number());
    // The state at a step of the run: the same as at the end of a run to there, beside the objectives of the whole one.
    let products = ["--along", "push=2", "--weight", "cart=1", "--weight", "drift=1"];
    let name = found["along"]["end"].as_object().expect("coordinates").keys().next().expect("one").clone();
    let named = format!("{name}=1");
    let products: Vec<&str> =
        products.iter().map(|&word| if word == "cart=1" { &named } else { word }).collect();
    let at = json(&[&run[..], &products[..], &["--state-at", "0.1"]].concat());
    let to = json(&[&run[..5], &["--end", "0.1"], &products[..2], &["--weight", &named]].concat());
    assert_eq!(at["along"]["end"], to["along"]["end"]);
    assert_eq!(at["along"]["objectives"], found["along"]["objectives"]);
    for (by, expected) in gradient {
        let [sum, state] = [&at, &to].map(|found| found["weighted"][by].as_f64().expect("a number"));
        let expected = expected.as_f64().expect("a number") + state;
        assert!((sum - expected).abs() <= 1e-9 * expected.abs().max(1e-6), "{by}: {sum} {expected}");
    }
    let along = at["along"]["end"][&name].as_f64().expect("a number");
    assert!(
        along != 0.0 && close(along, 2.0 * to["weighted"]["push"].as_f64().expect("a number")),
        "{along}"
    );
    fails(2, &["must be that of a step"], &[&run[..], &products[..], &["--state-at", "0.10037"]].concat());
    fails(2, &["`--state-at`", "`--along`"], &[&run[..], &["--state-at", "0.1"]].concat());
    let second = found["second_derivatives"]["objectives"]["drift"].as_array().expect("products");
    assert_eq!((second.len(), second[0].as_array().expect("a row").len()), (1, gradient.len()));
    let text = done(&[
        "gradient",
        &model,
        "--case",
        "shaken",
        "--end",
        "0.1",
        "--by-input",
        "push",
        "--by-end-time",
    ]);
    assert!(text.contains("of `push`: sum ") && text.contains("by the end time: "), "{text}");
    fails(2, &["there is no input `pull`", "push"], &["gradient", &model, "--by-input", "pull"]);
    let both = ["gradient", &model, "--by-input", "push", "--method", "direct"];
    fails(2, &["`--by-input` takes the adjoint"], &both);
    fails(2, &["`nothing`"], &["gradient", &model, "--end", "0.1", "--weight", "nothing=1"]);
    fails(2, &["`nothing`"], &["gradient", &model, "--end", "0.1", "--along", "nothing=1"]);
}

#[test]
fn a_table_for_people() {
    let out = done(&["gradient", &shipped("five_bar"), "--objectives", "psi2", "--end", "1"]);
    assert!(out.starts_with("five_bar: t = 0 to 1 s by ali3p with trapezoidal, step 0.001 s\n"), "{out}");
    assert!(out.contains("psi2 = ") && out.contains(" m²/s\n") && !out.contains("psi1"), "{out}");
    let head: Vec<&str> = out.lines().nth(3).expect("a head").split_whitespace().collect();
    assert_eq!(head, ["by", "value", "unit", "derivative", "relative"]);
    let row: Vec<&str> = out.lines().nth(4).expect("a row").split_whitespace().collect();
    assert_eq!(row[..3], ["L_s1", "2.23607", "m"]);
    // (ρ/ψ) dψ/dρ
    let number = |text: &str| text.parse::<f64>().expect("a number");
    let psi = number(out.lines().nth(2).expect("a value").split_whitespace().nth(2).expect("a number"));
    let relative = number(row[1]) * number(row[3]) / psi;
    assert!((number(row[4]) / relative - 1.0).abs() < 1e-3, "{out}");
}

/// The gradient by every method approaches the same.
#[test]
fn every_method_has_a_gradient() {
    let model = shipped("five_bar");
    let common = ["gradient", &model, "--end", "0.5", "--json"];
    let by = |more: &[&str]| derivative(&json(&[&common, more].concat()), "psi2", "L_s2");
    let reference = by(&["--step", "1e-4"]);
    for more in [
        &["--integrator", "newmark"][..],
        &["--integrator", "generalized_alpha", "--spectral-radius", "0.9"],
        &["--formulation", "index1"],
        &["--formulation", "penalty"],
        &["--integrator", "rk4"],
        &["--integrator", "rk4", "--formulation", "penalty"],
        &["--integrator", "dormand_prince"],
        &["--integrator", "dop853"],
        &["--projection", "tangent"],
    ] {
        let x = by(more);
        assert!((x / reference - 1.0).abs() < 1e-4, "{more:?}: {x}, not {reference}");
    }
}

/// Open trees run explicitly, or implicitly if asked.
#[test]
fn open_trees() {
    let model = shipped("double_pendulum");
    let common = ["gradient", &model, "--end", "0.5", "--json"];
    let explicit = derivative(&json(&common), "haste", "L1");
    for more in [&["--integrator", "trapezoidal"][..], &["--integrator", "dormand_prince"]] {
        let x = derivative(&json(&[&common, more].concat()), "haste", "L1");
        assert!((x / explicit - 1.0).abs() < 1e-5, "{more:?}: {x}, not {explicit}");
    }
    // The gradient is of the objective that is printed: central differences of it.
    let value = |l: &str| {
        let found = json(&[&common[..], &["--set", l]].concat());
        found["objectives"]["haste"]["value"].as_f64().expect("a number")
    };
    let difference = (value("L1=1.0001") - value("L1=0.9999")) / 2e-4;
    let default = json(&common)["parameters"]["L1"].as_f64();
    assert_eq!(default, Some(1.0));
    assert!((difference / explicit - 1.0).abs() < 1e-6, "{difference} {explicit}");
}

#[test]
fn another_list_on_the_command_line() {
    let folder = Folder::new();
    let model = folder.file("p.yaml", pendulum(HASTE, "sensitivity: [m]\n"));
    let found = json(&["gradient", &model, "--json", "--sensitivity", "knots,L, push"]);
    let gradient = found["objectives"]["haste"]["gradient"].as_object().expect("an object");
    assert_eq!(gradient.keys().collect::<Vec<_>>(), ["knots[0]", "knots[1]", "L", "push"]);
    let fails = |names: &str, words: &[&str]| {
        fails(2, words, &["gradient", &model, "--sensitivity", names]);
    };
    fails("n", &["no parameter or input `n`"]);
    fails("knot", &["did you mean `knots`?"]);
    fails("half", &["`half` follows others", "made of: `L`"]);
    fails("m,m", &["`m` is named twice"]);
    fails("knots[2]", &["2 values, numbered from 0"]);
    let outcome = mbs(&["gradient", &model, "--sensitivity", "m,idle"]);
    assert_eq!(outcome.code, Some(0));
    assert!(
        outcome.err.contains("warning: `idle` changes neither the motion nor an objective"),
        "{outcome:?}"
    );
}

#[test]
fn models_that_say_too_little() {
    let folder = Folder::new();
    let model = folder.file("p.yaml", pendulum(HASTE, ""));
    fails(
        1,
        &["nothing to differentiate by", "sensitivity: [m, L]", "--sensitivity m,L"],
        &["gradient", &model],
    );
    let model = folder.file("q.yaml", pendulum("", "sensitivity: [m]\n"));
    fails(1, &["no objectives", "--trajectories"], &["gradient", &model]);
    // Derivatives of the motion need none.
    let file = folder.path("q.csv");
    let out = done(&["gradient", &model, "--trajectories", &file]);
    assert!(out.contains("q.csv: 51 rows, 4 columns"), "{out}");
    let model = folder.file("r.yaml", pendulum(HASTE, "sensitivity: [m]\n"));
    fails(2, &["no objective `hast`; did you mean `haste`?"], &["gradient", &model, "--objectives", "hast"]);
}

#[test]
fn trajectories_are_derivatives_of_the_motion() {
    let folder = Folder::new();
    let file = folder.path("five_bar.csv");
    let model = shipped("five_bar");
    let common = ["--end", "0.2", "--output-step", "0.1"];
    done(
        &[&["gradient", &model, "--trajectories", &file, "--sensitivity", "L_s1,m_A1"], &common[..]].concat(),
    );
    let content = text(&file);
    let mut lines = content.lines();
    let columns: Vec<&str> = lines.next().expect("a head").split(',').collect();
    assert_eq!(columns[..3], ["t", "d(A.angle)/d(L_s1)", "d(A.angle)/d(m_A1)"]);
    for name in ["d(rate(P1.angle))/d(L_s1)", "d(acceleration(B.angle))/d(m_A1)", "d(lambda.P2.x)/d(L_s1)"] {
        assert!(columns.contains(&name), "{columns:?}");
    }
    let last: Vec<f64> =
        lines.next_back().expect("a row").split(',').map(|x| x.parse().expect("a number")).collect();
    assert_eq!((columns.len(), lines.count(), last[0]), (1 + 2 * (4 + 4 + 4 + 2), 2, 0.2));
    // Against differences of the motion itself, at the end.
    let out = folder.path("moved.csv");
    let at_end = |value: &str| -> Vec<f64> {
        done(&[&["simulate", &model, "--set", value, "--out", &out], &common[..]].concat());
        let content = text(&out);
        let columns: Vec<&str> = content.lines().next().expect("a head").split(',').collect();
        let row: Vec<&str> = content.lines().last().expect("a row").split(',').collect();
        let find = |name: &str| columns.iter().position(|column| *column == name).expect("a column");
        ["A.angle", "A.angle_rate", "lambda.P2.x"]
            .map(|name| row[find(name)].parse().expect("a number"))
            .into()
    };
    let (above, below) = (at_end("m_A1=1.0001"), at_end("m_A1=0.9999"));
    let names = ["d(A.angle)/d(m_A1)", "d(rate(A.angle))/d(m_A1)", "d(lambda.P2.x)/d(m_A1)"];
    for (i, name) in names.into_iter().enumerate() {
        let difference = (above[i] - below[i]) / 2e-4;
        let found = last[columns.iter().position(|column| *column == name).expect("a column")];
        assert!((difference - found).abs() < 1e-5 * (1.0 + found.abs()), "{name}: {found}, not {difference}");
    }
}

/// Explicit runs know positions and velocities; the rest is made at the output steps, by step control with dense output.
#[test]
fn trajectories_of_explicit_runs() {
    let folder = Folder::new();
    let [fixed, adaptive] = ["fixed.csv", "adaptive.csv"].map(|name| folder.path(name));
    let model = shipped("spinning_top");
    let common = ["--end", "0.1", "--output-step", "0.05", "--trajectories"];
    done(&[&["gradient", &model], &common[..], &[&adaptive]].concat());
    done(&[&["gradient", &model, "--integrator", "rk4"], &common[..], &[&fixed]].concat());
    let rows = |file: &str| -> Vec<Vec<f64>> {
        let numbers = |line: &str| line.split(',').map(|x| x.parse().expect("a number")).collect();
        text(file).lines().skip(1).map(numbers).collect()
    };
    let (fixed, adaptive) = (rows(&fixed), rows(&adaptive));
    assert_eq!((fixed.len(), adaptive.len()), (3, 3));
    for (a, b) in fixed.iter().flatten().zip(adaptive.iter().flatten()) {
        assert!((a - b).abs() < 1e-6 * (1.0 + a.abs()), "{a} {b}");
    }
}

#[test]
fn what_has_no_derivative_is_named() {
    let folder = Folder::new();
    let model = |objective: &str| {
        let objectives = format!("objectives: {{fine: t, bad: {{{objective}}}}}");
        folder.file("p.yaml", pendulum(&objectives, "sensitivity: [L]\n"))
    };
    // At rest at the start; beyond its domain at t = 0.25; beyond it at the end.
    for (objective, words) in [
        ("integrand: norm(vel(rod.tip))", "at t = 0: objective `bad`"),
        ("integrand: L*sqrt(0.25 - t)", "objective `bad`, or a derivative of it, is not finite"),
        ("terminal: sqrt(0.4 - t)", "at t = 0.5: objective `bad`"),
    ] {
        let model = model(objective);
        for integrator in ["rk4", "trapezoidal"] {
            fails(1, &[words, "not differentiable"], &["gradient", &model, "--integrator", integrator]);
        }
    }
    // One length of a mechanism that its geometry alone lets move.
    let bricard = text(&shipped("bricard"));
    let changed = bricard
        .replace("  m: {value", "  L2: {value: 1, min: 0.1}\n  m: {value")
        .replace("points: {end: [0, -L, 0]}", "points: {end: [0, -L2, 0]}");
    let model = folder.file("bricard.yaml", changed);
    for command in ["gradient", "verify"] {
        let words = ["parameter `L2` is incompatible with constraints", "`J4."];
        fails(1, &words, &[command, &model, "--sensitivity", "m,L2", "--end", "0.1"]);
    }
}

#[test]
fn files_that_cannot_be() {
    let model = shipped("five_bar");
    fails(2, &["both want standard output"], &["gradient", &model, "--json", "--trajectories", "-"]);
    fails(1, &["cannot write"], &["gradient", &model, "--trajectories", "/nowhere/x.csv", "--end", "0.1"]);
    fails(
        2,
        &["multiple of the step"],
        &["gradient", &model, "--end", "0.1", "--output-step", "0.0015", "--trajectories", "-"],
    );
    let out = mbs(&["gradient", &model, "--end", "0.01", "--trajectories", "-"]);
    assert!(out.out.starts_with("t,d(A.angle)/d(L_s1)") && out.err.contains("psi1 = "), "{out:?}");
}

/// A block on a slide that moves through x = a, pushed by a force; its place at the end is the objective.
fn block(force: &str) -> String {
    format!(
        "mbs: 1\nname: block\nparameters: {{a: 0.1, F: 2}}\nbodies: {{block: {{mass: 1}}}}\n\
         joints: {{slide: {{type: prismatic, parent: ground, child: block, axis: [1, 0, 0], start: {{value: 0, rate: 1}}}}}}\n\
         definitions: {{x: slide.displacement}}\n\
         forces: {{push: {{type: joint_force, coordinate: slide.displacement, value: \"{force}\"}}}}\n\
         objectives: {{far: {{terminal: slide.displacement}}}}\nsensitivity: [a, F]\nsimulation: {{end: 0.5, step: 1e-2}}\n"
    )
}

#[test]
fn jumps_are_named_and_kinks_are_not() {
    let folder = Folder::new();
    // x = t + F t²/2 comes to a at (√1.4 − 1)/2.
    let first = (1.4_f64.sqrt() - 1.0) / 2.0;
    let file = folder.file("jump.yaml", block("if(x < a, F, 0)"));
    for integrator in ["trapezoidal", "rk4", "dormand_prince"] {
        let ran = mbs(&["gradient", &file, "--integrator", integrator, "--json"]);
        let found: Value = serde_json::from_str(&ran.out).expect("JSON");
        let jump = &found["jumps"][0];
        assert_eq!(jump["of"], "force `push` (line 7)", "{ran:?}");
        // Straight lines between nodes; a step of 10 ms is curved by F h²/8.
        let t = jump["t"].as_f64().expect("a time");
        let tolerance = if integrator == "dormand_prince" { 0.05 } else { 1e-4 };
        assert!((t - first).abs() < tolerance, "{integrator}: {t} against {first}");
        assert!((jump["by"].as_f64().expect("a size") - 2.0).abs() < 1e-9);
        assert!(
            ran.err.contains("warning: force `push` (line 7) jumps by 2.000e0 at t = 0.0"),
            "{}",
            ran.err
        );
    }
    for command in ["verify", "simulate"] {
        let ran = mbs(&[command, &file, "--json"]);
        assert!(ran.err.contains("warning: force `push` (line 7) jumps"), "{ran:?}");
        let found: Value = serde_json::from_str(&ran.out).expect("JSON");
        assert_eq!(found["jumps"][0]["of"], "force `push` (line 7)");
    }
    let sign = folder.file("sign.yaml", block("-F*sign(x - a)"));
    assert!(mbs(&["gradient", &sign]).err.contains("jumps by 4.000e0"));
    for force in [
        "if(x < a, F*(x - a), 0)",
        "F*abs(x - a)",
        "F*max(0, x - a)",
        "if(t < 0.2, F*a, 0)",
        "step(x, 0.05, 0, a, F)",
    ] {
        let file = folder.file("kink.yaml", block(force));
        let ran = mbs(&["gradient", &file, "--json"]);
        assert!(ran.err.is_empty(), "{force}: {}", ran.err);
        let found: Value = serde_json::from_str(&ran.out).expect("JSON");
        assert_eq!(found["jumps"].as_array().map(Vec::len), Some(0), "{force}");
    }
}

#[test]
fn rounding_is_shown_as_zero() {
    // How a pendulum moves does not depend on its mass.
    let model = shipped("pendulum");
    let shown = done(&["gradient", &model, "--end", "2"]);
    let of_haste = shown.split("haste = ").nth(1).expect("an objective");
    let row = of_haste.lines().find(|line| line.trim_start().starts_with("m ")).expect("the mass");
    assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["m", "1", "kg", "0", "0"], "{shown}");
    assert!(of_haste.contains("may stand for rounding"), "{shown}");
    // Its force does, and so does what has another size.
    let of_load =
        shown.split("load = ").nth(1).and_then(|rest| rest.split("side = ").next()).expect("another");
    assert!(!of_load.contains("rounding"), "{shown}");
    // Programs get what was computed.
    let found = json(&["gradient", &model, "--end", "2", "--json"]);
    let exact = derivative(&found, "haste", "m");
    assert!(exact != 0.0 && exact.abs() < 1e-12, "{exact}");
}

/// A branch that changes over and back within one step of 0.1 s; one that counts at the end alone; both by the adjoint too.
#[test]
fn jumps_within_a_step_and_at_the_end() {
    let folder = Folder::new();
    // x = t + F t²/2 turns back at 0.275, in the middle of a step: it is over 0.2745 for 0.047 s.
    let back = "joints: {slide: {type: prismatic, parent: ground, child: block, axis: [1, 0, 0], start: {value: 0, rate: 1}}}\n\
         definitions: {x: slide.displacement}\n";
    let model = |force: &str, objective: &str| {
        format!(
            "mbs: 1\nname: back\nparameters: {{a: 0.2745, F: -1.8181818181818181}}\nbodies: {{block: {{mass: 1}}}}\n{back}\
             forces: {{push: {{type: joint_force, coordinate: slide.displacement, value: \"{force}\"}}}}\n\
             objectives: {{far: {{{objective}}}}}\nsensitivity: [a, F]\nsimulation: {{end: 0.75, step: 0.1}}\n"
        )
    };
    let look = |file: &str, more: &[&str]| -> Vec<String> {
        let found = json(&[&["gradient", file, "--json"], more].concat());
        let jumps = found["jumps"].as_array().expect("a list");
        jumps.iter().map(|jump| format!("{} {}", jump["of"], jump["t"])).collect()
    };
    let twice = folder.file("twice.yaml", model("F + if(a < x, 0.01, 0)", "terminal: slide.displacement"));
    let ended = folder.file("ended.yaml", model("F", "terminal: \"if(x < 0.245, 1, 2)\""));
    let early = folder.file("early.yaml", model("F", "terminal: \"if(x < 0.05, 1, 2)\""));
    for integrator in ["trapezoidal", "rk4", "dormand_prince"] {
        for method in ["direct", "adjoint"] {
            let by = ["--integrator", integrator, "--method", method];
            let found = look(&twice, &by);
            assert!(found.len() == 1 && found[0].contains("force `push` (line 7)"), "{by:?}: {found:?}");
            // x(0.7) = 0.2545, x(0.75) = 0.2386: it passes 0.245 in the last step of 0.05 s.
            let found = look(
                &ended,
                &[&by[..], &["--max-step", "0.05"][..if integrator == "dormand_prince" { 2 } else { 0 }]]
                    .concat(),
            );
            assert!(
                found.len() == 1 && found[0].contains("the terminal term of objective `far`"),
                "{by:?}: {found:?}"
            );
            assert_eq!(look(&early, &by), [""; 0], "{by:?}: long ago");
        }
    }
    let run = mbs(&["run", &twice, "--report", &folder.path("twice.html")]);
    assert!(run.err.contains("force `push` (line 7) jumps"), "{run:?}");
}

/// Forces and objectives without a value are named with the time and the operation, whatever runs.
#[test]
fn what_is_not_finite_is_named_without_a_gradient() {
    let folder = Folder::new();
    let model = |force: &str, integrand: &str| {
        block(force)
            .replace("rate: 1", "rate: -1")
            .replace("value: 0,", "value: 0.01,")
            .replace("terminal: slide.displacement", &format!("integrand: \"{integrand}\""))
    };
    let forced = folder.file("forced.yaml", model("F*a*ln(x)", "x"));
    let judged = folder.file("judged.yaml", model("F*a", "sqrt(x)"));
    for integrator in ["trapezoidal", "generalized_alpha", "rk4", "dormand_prince"] {
        for command in [&["gradient"][..], &["gradient", "--method", "adjoint"], &["verify"], &["simulate"]] {
            for (file, named) in
                [(&forced, "force `push` (line 7) is not finite: ln("), (&judged, "objective `far`")]
            {
                let ran = mbs(&[&[command[0], file], &command[1..], &["--integrator", integrator]].concat());
                assert_eq!(ran.code, Some(1), "{command:?} {integrator}: {ran:?}");
                assert!(
                    ran.err.contains(named) && ran.err.contains("at t = "),
                    "{command:?} {integrator}: {}",
                    ran.err
                );
            }
        }
    }
}

/// A corner that a parameter moves: x(T) = (T − p)³/6 under a force that rises from t = p on.
#[test]
fn corners_that_parameters_move() {
    let folder = Folder::new();
    for (force, a, expected) in [
        ("max(0, t - a)", 0.1, -0.5 * 0.4_f64.powi(2)),
        // ∫∫ of a smooth step of 0.2 s from a on: as of a jump at its middle, and the variance of its rise.
        ("step(t, a, 0, a + 0.2, 1)", 0.1, -(0.5 - 0.2)),
        ("table(t, [0, a, 0.5], [0, 0, 1])", 0.1, -(0.5 - 0.1) / 3.0),
    ] {
        let file = folder.file(
            "corner.yaml",
            block(force).replace("rate: 1", "rate: 0").replace("sensitivity: [a, F]", "sensitivity: [a]"),
        );
        let options =
            ["--set", &format!("a={a}"), "--integrator", "dormand_prince", "--json"].map(String::from);
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        for method in ["direct", "adjoint"] {
            let found = json(&[&["gradient", &file, "--method", method], &options[..]].concat());
            let by_a = derivative(&found, "far", "a");
            assert!((by_a - expected).abs() < 1e-8, "{force} {method}: {by_a}, exactly {expected}");
        }
    }
}

/// An array of three values as a point: the same gradient as by three parameters.
#[test]
fn arrays_as_points() {
    let folder = Folder::new();
    let model = |parameters: &str, point: &str, list: &str| {
        format!(
            "mbs: 1\nname: points\ngravity: [0, 0, -9.81]\nparameters: {{{parameters}}}\n\
             bodies: {{rod: {{mass: 1, com: {point}, inertia: [0.3, 0.2, 0.1], points: {{tip: {point}}}}}}}\n\
             joints: {{ball: {{type: spherical, parent: ground, child: rod}}}}\n\
             forces: {{pull: {{type: spring, from: ground, to: rod.tip, stiffness: 20, natural_length: 0.1}}}}\n\
             objectives: {{psi: {{integrand: \"pos(rod.tip).x^2\", terminal: \"vel(rod.tip).z\"}}}}\n\
             sensitivity: [{list}]\nsimulation: {{end: 0.3, step: 1e-2}}\n"
        )
    };
    let array = folder.file("array.yaml", model("A: [0.1, 0.2, -0.3]", "A", "A"));
    let scalars = folder.file("scalars.yaml", model("x: 0.1, y: 0.2, z: -0.3", "[x, y, z]", "x, y, z"));
    for integrator in ["trapezoidal", "rk4", "dormand_prince"] {
        let [a, b] =
            [&array, &scalars].map(|file| json(&["gradient", file, "--integrator", integrator, "--json"]));
        for (i, name) in ["x", "y", "z"].into_iter().enumerate() {
            let (a, b) = (derivative(&a, "psi", &format!("A[{i}]")), derivative(&b, "psi", name));
            assert!(a != 0.0 && (a - b).abs() <= 1e-12 * a.abs(), "{integrator} {name}: {a} {b}");
        }
    }
}

/// Semi-recursive and fully recursive trees: the same motion from other operations, and one gradient, direct and adjoint.
#[test]
fn recursive_trees_have_the_same_gradient() {
    let model = shipped("arm7");
    let run = |options: &[&str]| {
        json(&[&["gradient", &model, "--json", "--end", "0.05", "--integrator", "rk4"], options].concat())
    };
    let runs = [
        run(&["--method", "direct"]),
        run(&["--method", "adjoint"]),
        run(&["--method", "direct", "--recursive"]),
        run(&["--method", "adjoint", "--recursive"]),
    ];
    assert_eq!(runs.each_ref().map(|run| run["simulation"]["recursive"] == true), [false, false, true, true]);
    let mut differs = false;
    for (objective, found) in runs[0]["objectives"].as_object().expect("objectives") {
        let row = found["gradient"].as_object().expect("a gradient");
        let size = row.values().filter_map(Value::as_f64).fold(0.0, |size: f64, x| size.max(x.abs()));
        for (by, expected) in row {
            let expected = expected.as_f64().expect("a number");
            for other in &runs[1..] {
                let found = other["objectives"][objective]["gradient"][by].as_f64().expect("a number");
                assert!((found - expected).abs() <= 1e-10 * size, "{objective} by {by}: {found} {expected}");
            }
            differs |= runs[2]["objectives"][objective]["gradient"][by]
                != runs[0]["objectives"][objective]["gradient"][by];
        }
    }
    assert!(differs, "the recursion has other roundings");
    fails(
        2,
        &["`--recursive` is for explicit integrators"],
        &["gradient", &shipped("five_bar"), "--recursive"],
    );
}
