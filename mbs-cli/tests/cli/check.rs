//! `mbs check`, and what all commands have in common: help, wrong files, exit codes.

use crate::command::{Folder, command, done, fails, mbs, shipped};
use std::io::Read;
use std::process::Stdio;

#[test]
fn the_summary_names_everything() {
    let out = done(&["check", &shipped("cart_pole"), "--case", "swing_up"]);
    for word in [
        "cart_pole, case swing_up",
        "2 bodies, 2 joints, 2 coordinates, 2 velocities, 2 degrees of freedom",
        "differentiated by 7 values: cart_mass, pole_mass, half, rail_friction, pivot_friction, theta0, push",
        "ground -> cart",
        "cart -> pole",
        "theta       3.14159",
        "rail_friction    0.02  N s/m  >= 0",
        "by the case",
        "shaken    inputs, simulation",
        "forward_dynamics_recursive",
        "tip       vector",
    ] {
        assert!(out.contains(word), "no `{word}` in\n{out}");
    }
    assert!(out.lines().all(|line| line.chars().count() <= 110), "{out}");
    for name in ["pendulum", "arm7", "mirrored", "torque_free_top", "spinning_top"] {
        done(&["check", &shipped(name)]);
    }
}

#[test]
fn the_json_summary_is_json() {
    let out = done(&["check", &shipped("mirrored"), "--json"]);
    let json: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(json["valid"], true);
    assert_eq!(json["name"], "mirrored");
    assert_eq!(json["degrees_of_freedom"], 5);
    assert_eq!(json["coordinates"][1], "ride.heave");
    let parameters = json["parameters"].as_array().expect("a list");
    let parameter = |name: &str| parameters.iter().find(|p| p["name"] == name).expect(name);
    assert_eq!(parameter("track")["min"], 0.1);
    assert_eq!(parameter("road_time")["value"].as_array().map(Vec::len), Some(6));
    let by = json["sensitivity"].as_array().expect("a list");
    assert_eq!((by.len(), &by[0], &by[10]), (11, &"track".into(), &"road_height[5]".into()));
    assert_eq!(json["bundles"][0]["name"], "prepare");
    let bundles = json["bundles"].as_array().expect("a list");
    let largest = bundles.iter().filter_map(|bundle| bundle["operations"].as_u64()).max();
    assert!(largest.is_some_and(|n| n > 50));
}

#[test]
fn all_problems_are_shown_with_their_places() {
    let folder = Folder::new();
    let bad = folder.file(
        "bad.yaml",
        "mbs: 1\nname: bad\nbodeis: {}\njoints:\n  h: {type: revolut, parent: ground, child: rod, axis: [0, 1, 0]}\n",
    );
    for arguments in [vec!["check", &bad], vec!["simulate", &bad], vec!["generate", &bad]] {
        let outcome = fails(
            1,
            &["bad.yaml:3:1: error", "did you mean `bodies`?", "bad.yaml:5:", "`revolute`"],
            &arguments,
        );
        assert_eq!(outcome.out, "");
    }
    let outcome = mbs(&["check", &bad, "--json"]);
    assert_eq!(outcome.code, Some(1));
    let json: serde_json::Value = serde_json::from_str(&outcome.out).expect("JSON");
    assert_eq!(json["valid"], false);
    let problems = json["problems"].as_array().expect("a list");
    let unknown = problems.iter().find(|p| p["line"] == 3).expect("the problem of line 3");
    assert_eq!(unknown["severity"], "error");
    assert!(unknown["help"].as_str().is_some_and(|help| help.contains("bodies")));
}

#[test]
fn a_file_that_is_no_model_is_said_to_be_so() {
    let folder = Folder::new();
    folder.file("pendulum.yaml", "mbs: 1\n");
    let [empty, blank, latin, binary] = [
        folder.file("empty.yaml", ""),
        folder.file("blank.yaml", " \n\t\n"),
        folder.file("latin.yaml", b"mbs: 1\nname: pend\xe9l\n"),
        folder.file("binary.yaml", [0_u8, 159, 146, 150]),
    ];
    let missing = folder.path("pendulm.yaml");
    let nowhere = folder.path("no/where/model.yaml");
    let directory = folder.path("");
    for verb in ["check", "simulate", "generate"] {
        fails(1, &["there is no such file; did you mean", "pendulum.yaml`?"], &[verb, &missing]);
        fails(1, &["there is no directory", "no/where"], &[verb, &nowhere]);
        fails(1, &["it is a directory; name a file"], &[verb, &directory]);
        fails(1, &["empty.yaml`: it is empty"], &[verb, &empty]);
        fails(1, &["blank.yaml`: it is empty"], &[verb, &blank]);
        fails(1, &["latin.yaml`: it is not UTF-8 text: byte 17 (line 2) is wrong"], &[verb, &latin]);
        fails(1, &["it is not UTF-8 text: byte 1 (line 1)"], &[verb, &binary]);
        if cfg!(target_os = "linux") {
            fails(1, &["it is longer than 64 MiB"], &[verb, "/dev/zero"]);
        }
    }
}

#[test]
fn a_wrong_command_line_is_code_two() {
    let model = shipped("cart_pole");
    fails(2, &["Usage"], &[]);
    fails(2, &["unrecognized subcommand"], &["chek"]);
    fails(2, &["MODEL"], &["check"]);
    fails(2, &["no case `shake`; did you mean `shaken`?"], &["check", &model, "--case", "shake"]);
    fails(2, &["no case `x`; the file has no `cases`"], &["check", &shipped("pendulum"), "--case", "x"]);
}

#[test]
fn help_has_examples_and_exit_codes() {
    for arguments in
        [vec!["--help"], vec!["check", "--help"], vec!["generate", "--help"], vec!["simulate", "--help"]]
    {
        let out = done(&arguments);
        assert!(out.contains("Examples:") && out.contains("Exit codes:"), "{out}");
    }
    assert!(done(&["--version"]).starts_with("mbs "));
}

/// Whoever reads may stop reading: `mbs … | head -1`.
#[test]
fn a_closed_pipe_is_no_failure() {
    let arm = shipped("arm7");
    for arguments in [
        vec!["generate", &arm, "--bundles", "all"],
        vec!["simulate", &arm, "--out", "-", "--end", "0.5"],
        vec!["check", &arm],
    ] {
        let mut child = command(&arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command runs");
        let mut first = [0_u8; 10];
        let mut out = child.stdout.take().expect("a pipe");
        out.read_exact(&mut first).expect("some output");
        drop(out);
        let outcome = child.wait_with_output().expect("the end");
        let err = String::from_utf8_lossy(&outcome.stderr);
        assert_eq!(outcome.status.code(), Some(0), "{arguments:?}: {err}");
        assert!(!err.contains("panicked") && !err.contains("error"), "{err}");
    }
}

const FORK: &str = "
mbs: 1
name: fork
bodies: {base: {mass: 1}, neck: {mass: 1}, left: {mass: 1}, claw: {mass: 1}, right: {mass: 1}, cart: {mass: 1}}
joints:
  fly: {type: floating, parent: ground, child: base}
  nod: {type: spherical, parent: base, child: neck}
  reach: {type: prismatic, parent: neck, child: left, axis: [1, 0, 0]}
  grip: {type: prismatic, parent: left, child: claw, axis: [0, 1, 0]}
  swing: {type: prismatic, parent: neck, child: right, axis: [1, 0, 0]}
  roll: {type: prismatic, parent: ground, child: cart, axis: [1, 0, 0]}
";

#[test]
fn the_tree_is_drawn_as_branches() {
    let folder = Folder::new();
    let path = folder.file("fork.yaml", FORK.replace("{mass: 1}", "{mass: 1, inertia: [1, 1, 1]}"));
    let out = done(&["check", &path, "--tree"]);
    let expected = "\
fork: 4 branches, 13 velocities, at most 11 on the way to ground

ground
+-- 1 (9 velocities)
|   |   fly floating, nod spherical
|   +-- 2 (2 velocities)
|   |       reach prismatic, grip prismatic
|   `-- 3 (1 velocity)
|           swing prismatic
`-- 4 (1 velocity)
        roll prismatic

mass matrix: 141 of 169 entries not zero
    1 2 3 4
  1 # # # .
  2 # # . .
  3 # . # .
  4 . . . #
";
    assert_eq!(out, expected);
    let json = done(&["check", &path, "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["branches"][2]["joints"][0], "swing");
    assert_eq!((&json["branches"][2]["parent"], &json["branches"][3]["parent"]), (&0.into(), &().into()));
    // Loops and variables are named.
    let closed = folder.file("four_bar.yaml", FOUR_BAR);
    let out = done(&["check", &closed, "--tree"]);
    assert!(out.contains("cut: c (revolute) from coupler to rocker\n"), "{out}");
    let human = done(&["check", &shipped("human43"), "--tree"]);
    assert!(human.lines().all(|line| line.chars().count() <= 110), "{human}");
    fails(2, &["cannot be used with"], &["check", &path, "--tree", "--json"]);
}

const FOUR_BAR: &str = "
mbs: 1
name: four_bar
bodies:
  ground: {points: {b: [3, 0, 0]}}
  crank: {mass: 1, inertia: [0, 0, 0.1], points: {p: [1, 0, 0]}}
  coupler: {mass: 1, inertia: [0, 0, 0.1], points: {p: [3, 0, 0]}}
  rocker: {mass: 1, inertia: [0, 0, 0.1], points: {p: [2, 0, 0]}}
joints:
  a: {type: revolute, parent: ground, child: crank, axis: [0, 0, 1], start: {value: 1, hold: true}}
  b: {type: revolute, parent: crank.p, child: coupler, axis: [0, 0, 1], start: -0.6}
  c: {type: revolute, parent: coupler.p, child: rocker.p, axis: [0, 0, 1]}
  d: {type: revolute, parent: ground.b, child: rocker, axis: [0, 0, 1], start: 1.8}
constraints:
  drive: {type: motion, coordinate: a, value: 1 + t}
objectives:
  shake: {integrand: accel(d)^2, unit: 1/s^3}
";

#[test]
fn loops_and_their_cuts_are_shown() {
    let folder = Folder::new();
    let path = folder.file("four_bar.yaml", FOUR_BAR);
    let out = done(&["check", &path]);
    for word in [
        "3 bodies, 4 joints, 3 coordinates, 3 velocities\n",
        "  1 loop closed by 5 equations, 1 constraint with 1 equation\n",
        "by trapezoidal, step 0.001 s, formulation ali3p\n",
        "c     revolute  coupler -> rocker  cut",
        "ground -(a)- crank -(b)- coupler -(c)- rocker -(d)- ground",
        "drive  holonomic",
        "shake  integral  1/s^3",
    ] {
        assert!(out.contains(word), "no `{word}` in\n{out}");
    }
    assert!(!out.contains("of freedom"), "{out}");
    let out = done(&["check", &path, "--json"]);
    let json: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(json["loops"][0]["cut"], "c");
    assert_eq!(json["loops"][0]["by"], "choice");
    assert_eq!(json["loops"][0]["equations"].as_array().map(Vec::len), Some(5));
    assert_eq!(json["loops"][0]["bodies"][3], "rocker");
    assert_eq!(json["loops"][0]["joints"].as_array().map(Vec::len), Some(4));
    assert_eq!(json["constraints"][0]["equations"][0], "drive");
    assert_eq!(json["joints"][2]["cut"], true);
    assert_eq!(json["degrees_of_freedom"], serde_json::Value::Null);
    assert_eq!(json["equations"][5], "drive");

    let by_file = folder
        .file("by_file.yaml", FOUR_BAR.replace("start: 1.8", "cut: true").replace("accel(d)", "accel(c)"));
    let out = done(&["check", &by_file, "--json"]);
    let json: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!((&json["loops"][0]["cut"], &json["loops"][0]["by"]), (&"d".into(), &"file".into()));
}

/// Forty spherical joints: bundles that would take seconds and a gigabyte are named with what they would take.
#[test]
fn a_check_of_a_large_model_is_quick() {
    let folder = Folder::new();
    let mut model = String::from("mbs: 1\nname: chain\nbodies:\n");
    (0..40).for_each(|i| {
        model += &format!("  b{i}: {{mass: 1, inertia: [1, 1, 1], points: {{tip: [0, 0, -1]}}}}\n")
    });
    model += "joints:\n";
    for i in 0..40 {
        let parent = if i == 0 { "ground".into() } else { format!("b{}.tip", i - 1) };
        model += &format!("  j{i}: {{type: spherical, parent: {parent}, child: b{i}}}\n");
    }
    let file = folder.file("chain.yaml", &model);
    let begin = std::time::Instant::now();
    let out = done(&["check", &file]);
    // A tenth of it on an idle machine; it took twenty before.
    assert!(begin.elapsed().as_secs_f64() < 12.0, "{:?}", begin.elapsed());
    assert!(out.contains("newton is left out: about ") && out.contains("forward_dynamics "), "{out}");
    // What a closed loop needs instead of them is as large, and nothing is both counted and left out.
    let ring =
        folder.file("ring.yaml", model + "  close: {type: spherical, parent: b39.tip, child: ground}\n");
    let begin = std::time::Instant::now();
    let out = done(&["check", &ring]);
    // It took forty before.
    assert!(begin.elapsed().as_secs_f64() < 12.0, "{:?}", begin.elapsed());
    assert!(out.contains("factor is left out") && !out.contains("\n  factor  "), "{out}");
}

#[test]
fn recognised_joints_are_listed() {
    let folder = Folder::new();
    let file = folder.file(
        "gate.yaml",
        "mbs: 1\nbodies: {gate: {mass: 1, inertia: [1, 1, 1], points: {a: [0, 0, 0], b: [0, 0, 1]}}, bob: {mass: 1, inertia: [1, 1, 1]}}\n\
         joints:\n  hinge: {type: shared, parent: ground, child: gate, points: [[origin, a], [[0, 0, 1], b]]}\n  \
         ball: {type: shared, parent: gate, child: bob, points: [[b, origin]]}\n",
    );
    let out = done(&["check", &file]);
    for words in ["revolute (2 points)", "spherical (1 point)"] {
        assert!(out.contains(words), "no `{words}` in\n{out}");
    }
    let all: serde_json::Value = serde_json::from_str(&done(&["check", &file, "--json"])).expect("JSON");
    assert_eq!(all["joints"][0]["type"], "revolute");
    assert_eq!(all["joints"][0]["recognised_from"], "2 points");
}
