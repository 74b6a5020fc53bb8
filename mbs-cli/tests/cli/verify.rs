//! `mbs verify`: it passes on every shipped model, by its own method and by others, and says what it compared.

use crate::command::{Folder, done, fails, mbs, shipped, text};
use mbs_codegen::model::Formulation;
use serde_json::Value;
use std::thread;

/// Each shipped model, and how much of its run is enough here.
const SHIPPED: [(&str, &[&str]); 28] = [
    ("andrews", &["--end", "3e-3"]),
    ("arm7", &["--end", "0.1"]),
    ("bicycle", &["--end", "0.02"]),
    ("bouncing_ball", &["--end", "1"]),
    ("bricard", &["--end", "0.2"]),
    ("buggy", &["--end", "0.004"]),
    ("cart_pole", &["--end", "1"]),
    // No node where the platform lets go.
    ("catch_and_release", &["--end", "2.3", "--step", "2.3e-2"]),
    ("crank_rocker", &["--end", "0.2"]),
    ("double_pendulum", &["--end", "1"]),
    ("five_bar", &["--end", "0.5"]),
    ("five_bar_bouncing", &["--end", "0.5", "--step", "5e-3"]),
    // Through a singular position, at 0.7 s.
    ("four_bar_2", &["--end", "1"]),
    ("governor", &["--end", "0.5"]),
    ("hopping_leg", &["--end", "0.6"]),
    ("human43", &["--end", "0.02", "--sensitivity", "L2,thickness"]),
    ("knee_lock", &["--end", "0.6"]),
    ("mirrored", &["--end", "0.3"]),
    ("pendulum", &["--end", "2"]),
    ("ratchet", &["--end", "1.2"]),
    ("slider_crank", &["--end", "1"]),
    ("spinning_top", &["--end", "0.3"]),
    ("suspension", &["--end=-0.8"]),
    ("torque_free_top", &["--end", "0.5"]),
    ("tree20", &["--end", "0.02"]),
    ("two_point_masses", &["--end", "1"]),
    ("vehicle_drop", &["--end", "0.23"]),
    ("whipple", &["--end", "0.1"]),
];

fn passes(arguments: &[&str]) -> String {
    let outcome = mbs(&[&["verify"], arguments].concat());
    assert_eq!(outcome.code, Some(0), "{arguments:?}: {}\n{}", outcome.out, outcome.err);
    assert!(outcome.out.contains("\nPASS "), "{arguments:?}: {}", outcome.out);
    outcome.out
}

#[test]
fn every_shipped_model_passes() {
    let folder = std::fs::read_dir(shipped("five_bar").replace("/five_bar.yaml", "")).expect("the folder");
    let mut names: Vec<String> = folder
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().replace(".yaml", ""))
        .collect();
    names.sort();
    assert_eq!(names, SHIPPED.map(|(name, _)| name), "a shipped model is not verified");
    thread::scope(|scope| {
        for half in SHIPPED.chunks(SHIPPED.len().div_ceil(2)) {
            scope.spawn(move || {
                for (name, more) in half {
                    let (file, more) = (shipped(name), *more);
                    let out = passes(&[&[file.as_str()], more].concat());
                    let text = std::fs::read_to_string(&file).expect("a shipped model");
                    let judged = text.contains("\nobjectives:") && text.contains("\nsensitivity:");
                    assert_eq!(out.contains("the adjoint gives the same gradient"), judged, "{name}: {out}");
                }
            });
        }
    });
}

/// The same over whole runs, and over those of the vehicles' cases, if long runs are wanted: the environment variable `MBS_LONG`.
#[test]
fn whole_runs_pass() {
    if std::env::var_os("MBS_LONG").is_none() {
        return;
    }
    for (name, more) in SHIPPED {
        // Without its end.
        passes(&[&[shipped(name).as_str()], &more[2..]].concat());
    }
    for (name, case) in
        [("buggy", "step_descent"), ("buggy", "double_lane_change"), ("bicycle", "double_turn")]
    {
        passes(&[shipped(name).as_str(), "--case", case]);
    }
}

#[test]
fn other_methods_pass() {
    for (name, more) in [
        ("five_bar", &["--formulation", "index1"][..]),
        ("five_bar", &["--formulation", "penalty", "--integrator", "generalized_alpha"]),
        (
            "five_bar",
            &["--projection", "none", "--integrator", "generalized_alpha", "--spectral-radius", "0.5"],
        ),
        ("five_bar", &["--integrator", "rk4"]),
        ("five_bar", &["--integrator", "dormand_prince", "--formulation", "penalty"]),
        ("five_bar", &["--integrator", "sdirk4", "--rtol", "1e-5", "--atol", "1e-5"]),
        ("five_bar", &["--formulation", "matrix_r", "--integrator", "trapezoidal"]),
        (
            "five_bar",
            &["--formulation", "matrix_r", "--integrator", "sdirk4", "--rtol", "1e-5", "--atol", "1e-5"],
        ),
        ("whipple", &["--formulation", "matrix_r", "--integrator", "trapezoidal"]),
        ("five_bar", &["--formulation", "matrix_r", "--integrator", "generalized_alpha"]),
        (
            "whipple",
            &["--formulation", "matrix_r", "--integrator", "generalized_alpha", "--spectral-radius", "0.3"],
        ),
        (
            "crank_rocker",
            &["--formulation", "matrix_r", "--integrator", "newmark", "--beta", "0.3", "--gamma", "0.6"],
        ),
        ("five_bar_bouncing", &["--formulation", "matrix_r", "--integrator", "generalized_alpha"]),
        ("torque_free_top", &["--integrator", "sdirk4", "--rtol", "1e-4", "--atol", "1e-4"]),
        ("two_point_masses", &["--integrator", "rk4"]),
        ("crank_rocker", &["--integrator", "newmark", "--beta", "0.3", "--gamma", "0.6"]),
        ("double_pendulum", &["--integrator", "trapezoidal"]),
        ("torque_free_top", &["--integrator", "dormand_prince"]),
        ("torque_free_top", &["--integrator", "dop853"]),
        ("five_bar", &["--integrator", "dop853"]),
        ("five_bar", &["--formulation", "matrix_r", "--integrator", "dop853"]),
    ] {
        passes(&[&[shipped(name).as_str(), "--end", "0.2", "--step", "2e-3"], more].concat());
    }
}

#[test]
fn the_table_says_what_was_compared() {
    let out = done(&["verify", &shipped("five_bar"), "--end", "0.1", "--set", "k_1=120"]);
    for words in [
        "with k_1 = 120",
        "emitted derivatives against complex steps, at t = 0, 0.02, 0.04, 0.06, 0.08, 0.1 s and 2 instants beside the run; \
         allowed 1e-8",
        "linearise_projections",
        "(M d + Φ_zᵀ σ)_z",
        "the gradient against complex steps of whole runs; allowed 1e-7",
        "psi3",
        "λ at the end",
    ] {
        assert!(out.contains(words), "no `{words}` in {out}");
    }
    // Constraints that depend on each other: no multipliers by themselves, and that is said.
    let out = done(&["verify", &shipped("bricard"), "--end", "0.05"]);
    assert!(out.contains("constraints depend on each other") && out.contains("(vd, Φᵀλ)_ρ"), "{out}");
    let out = done(&["verify", &shipped("pendulum"), "--end", "0.1", "--differences"]);
    assert!(out.contains("against extrapolated differences of whole runs; allowed 1e-6"), "{out}");
}

/// A closed mechanism that is differentiated by nothing: its bundles are still checked.
#[test]
fn models_without_sensitivities_pass() {
    let folder = Folder::new();
    let without: String = text(&shipped("five_bar"))
        .lines()
        .filter(|line| !line.starts_with("sensitivity:"))
        .map(|line| format!("{line}\n"))
        .collect();
    passes(&[&folder.file("without.yaml", without), "--end", "0.1"]);
}

#[test]
fn json_has_every_check() {
    let out = done(&["verify", &shipped("five_bar"), "--end", "0.1", "--json"]);
    let found: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(found["passed"], Value::Bool(true));
    let derivatives = found["derivatives"].as_array().expect("an array");
    for bundle in [
        "newton",
        "projection",
        "linearise",
        "linearise_projections",
        "integrand_derivatives",
        "inverse_dynamics_derivatives",
        "marker_jacobians",
        "joint_linearise",
        "joint_integrand_derivatives",
    ] {
        assert!(derivatives.iter().any(|check| check["bundle"] == bundle), "{bundle}");
    }
    let gradient = found["gradient"].as_array().expect("an array");
    assert_eq!(gradient.len(), 3 + 4);
    assert!(gradient.iter().all(|check| check["error"].as_f64().is_some_and(|error| error < 1e-7)));
}

/// Steps at the limit of stability are kept there by step control, which a derivative does not see: its gradient means nothing, and that is
/// found out.
#[test]
fn a_gradient_that_means_nothing_does_not_pass() {
    let outcome = mbs(&["verify", &shipped("governor"), "--integrator", "dormand_prince", "--end", "2"]);
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
}

#[test]
fn models_that_say_little_are_checked_as_far_as_they_go() {
    let folder = Folder::new();
    let plain = text(&shipped("pendulum"));
    let (without, _) = plain.split_once("sensitivity:").expect("a list");
    let model = folder.file("p.yaml", format!("{without}simulation: {{end: 0.1, step: 1e-3}}\n"));
    let out = done(&["verify", &model]);
    assert!(out.contains("no gradient: the model says nothing of what it is differentiated by"), "{out}");
    let (without, _) = plain.split_once("objectives:").expect("objectives");
    let model =
        folder.file("q.yaml", format!("{without}sensitivity: [m]\nsimulation: {{end: 0.1, step: 1e-3}}\n"));
    let out = done(&["verify", &model]);
    assert!(out.contains("the model has no objectives") && out.contains("zdd at the end"), "{out}");
    fails(2, &["did you mean `L`?"], &["verify", &model, "--sensitivity", "LL"]);
}

/// A parallelogram that hangs at rest: what its velocities bring is rounding, and is judged by what it amounts to beside the run.
#[test]
fn a_mechanism_at_rest() {
    let folder = Folder::new();
    let body = |name: &str, end: &str| {
        format!("  {name}: {{mass: m, com: [{end}], inertia: [0.1, 0.1, 0.1], points: {{e: [{end}]}}}}\n")
    };
    let bodies = body("p", "0, 0, -L") + &body("q", "L, 0, 0") + &body("r", "0, 0, L");
    let hinge = |name: &str, parent: &str, child: &str| {
        format!("  {name}: {{type: revolute, parent: {parent}, child: {child}, axis: [0, 1, 0]}}\n")
    };
    let joints = hinge("A", "ground", "p")
        + &hinge("B", "p.e", "q")
        + &hinge("C", "q.e", "r")
        + &hinge("D", "r.e", "ground.D");
    let model = format!(
        "mbs: 1\nname: rest\ngravity: [0, 0, -9.81]\nparameters: {{m: 1, L: 1}}\n\
         bodies:\n  ground: {{points: {{D: [1, 0, 0]}}}}\n{bodies}joints:\n{joints}\
         objectives: {{psi: {{integrand: rate(A)^2 + A.angle}}}}\nsensitivity: [m, L]\nsimulation: {{end: 0.5, step: 1e-2}}\n"
    );
    let file = folder.file("rest.yaml", &model);
    let out = done(&["verify", &file]);
    assert!(out.contains("\nPASS"), "{out}");
}

/// |v|ⁿ from rest on, by the exponent too: it is 0 at v = 0, not NaN.
#[test]
fn powers_at_zero() {
    let folder = Folder::new();
    let model = "mbs: 1\nname: drag\nparameters: {c: 0.7, n: 1.6, F: 2}\nbodies: {block: {mass: 1}}\n\
         joints: {slide: {type: prismatic, parent: ground, child: block, axis: [1, 0, 0]}}\n\
         forces: {drag: {type: joint_force, coordinate: slide.displacement, value: \"F - c*abs(rate(slide))^n\"}}\n\
         objectives: {far: {terminal: slide.displacement}}\nsensitivity: [c, n, F]\nsimulation: {end: 0.5, step: 1e-2}\n";
    let file = folder.file("drag.yaml", model);
    for integrator in ["trapezoidal", "rk4", "dormand_prince"] {
        let out = done(&["verify", &file, "--integrator", integrator]);
        assert!(out.contains("\nPASS"), "{integrator}: {out}");
    }
}

/// Differences of whole runs follow a corner that a parameter moves.
#[test]
fn differences_over_moving_corners() {
    let folder = Folder::new();
    let model = "mbs: 1\nname: corner\nparameters: {a: 0.1}\nbodies: {block: {mass: 1}}\n\
         joints: {slide: {type: prismatic, parent: ground, child: block, axis: [1, 0, 0]}}\n\
         forces: {push: {type: joint_force, coordinate: slide.displacement, value: \"max(0, t - a) + step(t, a, 0, a + 0.2, 1)\"}}\n\
         objectives: {far: {terminal: slide.displacement}}\nsensitivity: [a]\n\
         simulation: {end: 0.5, step: 1e-2, integrator: dormand_prince}\n";
    let file = folder.file("corner.yaml", model);
    assert!(done(&["verify", &file]).contains("\nPASS"));
    let out = done(&["verify", &file, "--differences"]);
    assert!(out.contains("\nPASS"), "{out}");
}

fn remove_times(value: &mut Value) {
    if let Value::Object(fields) = value {
        fields.retain(|name, _| name != "wall_time" && name != "real_time_factor");
        fields.values_mut().for_each(remove_times);
    }
}

/// What engines have in common: all numbers, but for the time they took. Fused operations round otherwise.
#[test]
fn engines_agree() {
    let model = shipped("five_bar");
    let numbers = |command: &str, engine: &str| -> Value {
        let out = done(&[command, &model, "--end", "0.5", "--engine", engine, "--json"]);
        let mut found: Value = serde_json::from_str(&out).expect("JSON");
        remove_times(&mut found);
        found
    };
    for command in ["verify", "gradient", "simulate"] {
        let tape = numbers(command, "tape");
        for engine in ["jit", "auto"] {
            assert_eq!(numbers(command, engine), tape, "{command} --engine {engine}");
        }
    }
    let gradient = |engine| numbers("gradient", engine).to_string();
    if mbs_engine::machine_code_availability(mbs_engine::Fusing::Fused).is_ok() {
        assert_ne!(gradient("fused"), gradient("jit"), "fused operations change roundings");
    }
    passes(&[&model, "--end", "0.5", "--engine", "fused"]);
}

/// Open trees by explicit steps, closed loops by implicit ones: objectives and gradients in coordinates of every body, which share no
/// recursion with those of joints.
#[test]
fn coordinates_of_joints_and_of_bodies_agree() {
    let short = [
        ("arm7", "0.02"),
        ("bicycle", "0.05"),
        ("bricard", "0.05"),
        ("crank_rocker", "0.05"),
        ("double_pendulum", "0.5"),
        ("five_bar", "0.2"),
        ("governor", "0.05"),
        ("mirrored", "0.05"),
        ("slider_crank", "0.5"),
        ("spinning_top", "0.1"),
    ];
    for (model, end) in short {
        passes(&[&shipped(model), "--end", end, "--against", "absolute"]);
    }
    // Straight on, the roll rate is the square of rounding.
    let (buggy, by) = (shipped("buggy"), "k_f,c_r,z_c");
    let case = ["--case", "step_descent", "--end", "0.02", "--sensitivity", by];
    passes(&[&[buggy.as_str()], &case[..], &["--against", "absolute"]].concat());
    let same = ["names the coordinates that the model has"];
    fails(2, &same, &["verify", &shipped("five_bar"), "--against", "joint"]);
}

/// Two runs are compared, not one with itself, and every number is.
#[test]
fn coordinates_are_compared_number_by_number() {
    let outcome = mbs(&["verify", &shipped("five_bar"), "--end", "0.2", "--against", "absolute", "--json"]);
    let found: Value = serde_json::from_str(&outcome.out).expect("JSON");
    assert_eq!(found["passed"], true);
    let rows = found["compared"].as_array().expect("rows");
    assert_eq!(rows.len(), 3 * 6);
    let differs = |row: &Value| row["difference"].as_f64().expect("a number") > 0.0;
    assert!(rows.iter().any(differs), "both runs are the same run");
}

/// All ways of a small model: at their orders, with a reference that is better, and a recommendation among them.
#[test]
fn ways_to_run_a_model_are_compared() {
    let folder = Folder::new();
    let (model, page) = (shipped("five_bar"), folder.path("ways.html"));
    let arguments = [
        "compare",
        &model,
        "--end",
        "0.04",
        "--steps",
        "1e-2,5e-3",
        "--tolerances",
        "1e-5",
        "--sensitivity",
        "k_1",
        "--accuracy",
        "1e-2",
        "--report",
        &page,
    ];
    let found: Value = serde_json::from_str(&done(&[&arguments[..], &["--json"]].concat())).expect("JSON");
    assert_eq!(found["reference"]["way"]["integrator"], "dop853");
    let rows = found["rows"].as_array().expect("rows");
    // Two kinds of coordinates; ali3p with three implicit integrators, index 1 and penalty with seven: four fixed and three of one tolerance. What else
    // there is has rows, too.
    let three = ["ali3p", "index1", "penalty"];
    let of_three = rows.iter().filter(|row| three.iter().any(|name| row["formulation"] == *name));
    assert_eq!(of_three.clone().count(), 2 * (3 * 2 + 2 * (4 * 2 + 3)));
    for row in of_three {
        assert!(row["error"].is_null(), "{row}");
    }
    for formulation in Formulation::ALL {
        assert!(rows.iter().any(|row| row["formulation"] == formulation.keyword()), "no {formulation:?}");
    }
    let error = |coordinates: &str, formulation: &str, integrator: &str, step: f64, of: &str| {
        let row = rows.iter().find(|row| {
            row["coordinates"] == coordinates
                && row["formulation"] == formulation
                && row["integrator"] == integrator
                && row["step"] == step
        });
        row.and_then(|row| row["errors"][of].as_f64()).expect("a row")
    };
    for coordinates in ["joint", "absolute"] {
        for of in ["state", "objectives", "gradient"] {
            for (formulation, integrator, order) in
                [("ali3p", "trapezoidal", 2.0), ("ali3p", "generalized_alpha", 2.0), ("index1", "rk4", 4.0)]
            {
                let [coarse, fine] = [1e-2, 5e-3].map(|h| error(coordinates, formulation, integrator, h, of));
                let measured = (coarse / fine).log2();
                assert!(
                    (measured - order).abs() < 0.6,
                    "{coordinates} {formulation} {integrator} {of}: {measured}"
                );
            }
        }
    }
    let recommended = &found["recommended"];
    for of in ["state", "objectives", "gradient"] {
        assert!(recommended["errors"][of].as_f64().expect("an error") <= 1e-2);
    }
    let text = std::fs::read_to_string(&page).expect("a page");
    assert!(
        text.contains("Error of the gradient against computing time")
            && text.contains("ali3p with trapezoidal")
    );
    // Without time for all of them, quick ones are run and the rest is counted.
    let short = [&arguments[..], &["--json", "--budget", "1e-9"]].concat();
    let short: Value = serde_json::from_str(&done(&short)).expect("JSON");
    assert_eq!(short["left_out"], rows.len());
    // Open trees have accelerations in two ways.
    let tree = shipped("double_pendulum");
    let arguments = [
        "compare",
        &tree,
        "--coordinates",
        "joint",
        "--end",
        "0.02",
        "--steps",
        "1e-2",
        "--tolerances",
        "1e-6",
    ];
    let found: Value = serde_json::from_str(&done(&[&arguments[..], &["--json"]].concat())).expect("JSON");
    let rows = found["rows"].as_array().expect("rows");
    for integrator in ["rk4", "dormand_prince", "dop853"] {
        let state = |recursive: bool| {
            let row =
                rows.iter().find(|row| row["integrator"] == integrator && row["recursive"] == recursive);
            row.and_then(|row| row["errors"]["gradient"].as_f64()).expect("a row")
        };
        // Other operations for the same function.
        assert!((state(true) - state(false)).abs() < 1e-9, "{integrator}");
    }
    let refused = mbs(&["compare", &model, "--steps", "0"]);
    assert_eq!(refused.code, Some(2), "{}", refused.err);
}
