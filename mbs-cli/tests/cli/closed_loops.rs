//! `mbs simulate` and `mbs kinematics` of mechanisms with closed loops and constraints.

use crate::command::{Folder, done, fails, mbs, shipped, text};
use serde_json::Value;

fn json(arguments: &[&str]) -> Value {
    let mut all = arguments.to_vec();
    all.push("--json");
    serde_json::from_str(&done(&all)).expect("JSON")
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn near(a: &Value, b: &Value, tolerance: f64) {
    let (a, b) = (a.as_object().expect("an object"), b.as_object().expect("an object"));
    assert!(!a.is_empty() && a.len() == b.len(), "{a:?} {b:?}");
    for (name, value) in a {
        assert!((number(value) - number(&b[name])).abs() < tolerance, "{name}: {value} {}", b[name]);
    }
}

/// Published to five digits [Lopez Varela, Dopico, Luaces 2023, Table 7].
#[test]
fn the_five_bar_gives_its_published_objectives() {
    let r = json(&["simulate", &shipped("five_bar")]);
    for (name, published, half) in [("psi1", 0.72688, 5e-6), ("psi2", 7.3423, 5e-5), ("psi3", 304.92, 5e-3)] {
        let value = number(&r["objectives"][name]);
        assert!((value - published).abs() < half, "{name} = {value}, not {published}");
    }
    assert_eq!(r["simulation"]["formulation"], "ali3p");
    assert_eq!(r["simulation"]["integrator"], "trapezoidal");
    assert_eq!(r["start"]["equations"], 2);
    assert_eq!(r["start"]["rank"], 2);
    assert_eq!(r["start"]["degrees_of_freedom"], 2);
    assert_eq!(r["start"]["dropped"], serde_json::json!(["P2.z", "P2.tilt1", "P2.tilt2"]));
    assert_eq!(r["energy"]["conservative"], true);
    assert!(number(&r["energy"]["relative_balance_error"]) < 5e-6);
    // At rounding of lengths, speeds and accelerations of the size 1, 10 and 100.
    for (level, bound) in [("position", 1e-14), ("velocity", 1e-13), ("acceleration", 1e-11)] {
        let norm = number(&r["constraints"][level]);
        assert!(norm > 0.0 && norm < bound, "{level} {norm}");
    }
    assert_eq!(r["statistics"]["steps"], 5000);
    assert_eq!(r["statistics"]["fallbacks"], 0);
    let iterations = number(&r["statistics"]["iterations"]);
    assert!((5000.0..=15_000.0).contains(&iterations), "{iterations}");
    assert!(number(&r["statistics"]["max_iterations"]) <= 4.0);
    assert!(number(&r["statistics"]["projections"]) >= 10_000.0);
    let multipliers = r["final"]["multipliers"].as_object().expect("multipliers");
    assert_eq!(multipliers.keys().collect::<Vec<_>>(), ["P2.x", "P2.y"]);
    assert!(r["final"].get("reactions").is_none());
}

#[test]
fn the_report_shows_loops_objectives_and_constraints() {
    let out = done(&["simulate", &shipped("five_bar"), "--set", "L_A1=1.5", "--reactions"]);
    for word in [
        "five_bar: t = 0 to 5 s by ali3p with trapezoidal, step 0.001 s",
        "guess  at the start",
        "B.angle        -0.785398",
        "objective",
        "psi2",
        "integrated by the trapezoidal rule over the steps",
        "P2.x",
        "multiplier at the end",
        "largest force [N]",
        "start    2 guesses moved; 2 equations, 2 degrees of freedom",
        "dropped  P2.z, P2.tilt1, P2.tilt2: 0 = 0 in every position",
        "energy   drift",
        "norms    of constraints:",
        "5000 steps in",
        "newton   ",
        "at most 2 in a step",
        "projections",
    ] {
        assert!(out.contains(word), "no `{word}` in\n{out}");
    }
    assert!(out.lines().all(|line| line.chars().count() <= 100), "{out}");
    let redundant = done(&["simulate", &shipped("bricard"), "--end", "0.1"]);
    assert!(redundant.contains("rank     1 equation follows from the others"), "{redundant}");
    assert!(redundant.contains("1 degree of freedom"), "{redundant}");
    let other = done(&["simulate", &shipped("five_bar"), "--end", "0.1", "--formulation", "penalty"]);
    assert!(other.contains("method   violations damped critically at 100 rad/s, penalty "), "{other}");
    let explicit = done(&["simulate", &shipped("five_bar"), "--end", "0.1", "--integrator", "rk4"]);
    assert!(
        explicit.contains("by rk4 of index1, projected, step") && !explicit.contains("method "),
        "{explicit}"
    );
}

#[test]
fn formulations_agree() {
    let model = shipped("five_bar");
    let run = |options: &[&str]| {
        let mut all = vec!["simulate", &model, "--end", "1"];
        all.extend(options);
        json(&all)
    };
    let exact = run(&[
        "--integrator",
        "dormand_prince",
        "--rtol",
        "1e-11",
        "--atol",
        "1e-12",
        "--output-step",
        "1e-3",
    ]);
    for (options, tolerance) in [
        (vec![], 1e-5),
        (vec!["--projection", "tangent"], 1e-5),
        (vec!["--penalty", "1e9"], 1e-5),
        (vec!["--integrator", "newmark", "--beta", "0.25", "--gamma", "0.5"], 1e-5),
        (vec!["--integrator", "generalized_alpha", "--spectral-radius", "0.6"], 1e-5),
        (vec!["--formulation", "index1"], 1e-5),
        (vec!["--formulation", "penalty"], 1e-5),
        (vec!["--formulation", "index1", "--integrator", "generalized_alpha"], 1e-5),
        (vec!["--integrator", "rk4"], 1e-9),
        (vec!["--formulation", "penalty", "--integrator", "rk4"], 1e-6),
        (vec!["--formulation", "penalty", "--integrator", "dormand_prince"], 1e-6),
    ] {
        let r = run(&options);
        near(&r["final"]["coordinates"], &exact["final"]["coordinates"], tolerance);
        near(&r["final"]["velocities"], &exact["final"]["velocities"], 10.0 * tolerance);
        near(&r["final"]["multipliers"], &exact["final"]["multipliers"], 1e3 * tolerance);
        assert!(number(&r["constraints"]["position"]) < 1e-7, "{options:?}");
    }
    // What an implicit integrator gives up is what it is told to.
    let damped = run(&["--integrator", "newmark", "--beta", "0.5", "--gamma", "0.8", "--step", "5e-3"]);
    assert!(number(&damped["energy"]["change"]) < -0.01);
    assert_eq!(damped["simulation"]["gamma"], 0.8);
}

#[test]
fn open_trees_take_implicit_integrators() {
    // Of order 2: a top that turns by x = 0.015 rad a step is off by x²/12 of the 30 rad it turns, half of it in e0.
    for (name, tolerance) in [("double_pendulum", 1e-6), ("spinning_top", 3e-4), ("cart_pole", 1e-6)] {
        let model = shipped(name);
        let run = |options: &[&str]| {
            let mut all = vec!["simulate", &model, "--end", "0.2"];
            all.extend(options);
            json(&all)
        };
        let explicit = run(&["--integrator", "rk4", "--step", "1e-4"]);
        let implicit = run(&["--integrator", "trapezoidal", "--step", "1e-4"]);
        near(&explicit["final"]["coordinates"], &implicit["final"]["coordinates"], tolerance);
        near(&explicit["final"]["outputs"], &implicit["final"]["outputs"], 10.0 * tolerance);
        assert_eq!(implicit["simulation"]["formulation"], Value::Null);
        assert_eq!(implicit["constraints"], Value::Null);
        assert!(number(&implicit["statistics"]["iterations"]) >= 2000.0);
    }
    let outcome = mbs(&["simulate", &shipped("pendulum"), "--end", "0.1", "--formulation", "index1"]);
    assert_eq!(outcome.code, Some(0));
    assert!(outcome.err.contains("note: `--formulation` does nothing"), "{}", outcome.err);
}

#[test]
fn what_does_not_go_together_is_refused() {
    let model = shipped("five_bar");
    let fails = |words: &[&str], arguments: &[&str]| {
        let mut all = vec!["simulate", model.as_str()];
        all.extend(arguments);
        fails(2, words, &all);
    };
    fails(
        &[
            "`rk4` is explicit, and `ali3p` needs an implicit integrator",
            "`trapezoidal`",
            "`index1` or `penalty`",
        ],
        &["--formulation", "ali3p", "--integrator", "rk4"],
    );
    fails(
        &["`--spectral-radius` belongs to `generalized_alpha`, not to `trapezoidal`"],
        &["--spectral-radius", "1"],
    );
    fails(
        &["`--spectral-radius` must be from 0 to 1, not 2"],
        &["--integrator", "generalized_alpha", "--spectral-radius", "2"],
    );
    fails(&["`--beta` belongs to `newmark`"], &["--beta", "0.25"]);
    fails(&["`--gamma` must be from 0.5 to 1, not 0.4"], &["--integrator", "newmark", "--gamma", "0.4"]);
    fails(
        &["`--penalty` belongs to `ali3p` and `penalty`, not to `index1`"],
        &["--formulation", "index1", "--penalty", "1"],
    );
    fails(&["`--penalty` must be positive"], &["--penalty", "-1"]);
    fails(
        &["`--projection` belongs to `ali3p`, not to `penalty`"],
        &["--formulation", "penalty", "--projection", "mass"],
    );
    fails(
        &["`--newton-tolerance` belongs to implicit integrators, not to `rk4`"],
        &["--integrator", "rk4", "--newton-tolerance", "1e-8"],
    );
    fails(&["`--newton-tolerance` must be positive"], &["--newton-tolerance", "0"]);
    fails(&["--newton-iterations"], &["--newton-iterations", "0"]);
    fails(
        &["`--rtol` belongs to `dormand_prince`, `dop853` and `sdirk4`, not to `trapezoidal`"],
        &["--rtol", "1e-6"],
    );
    fails(&["`--recursive` is for explicit integrators of models without closed loops"], &["--recursive"]);
    fails(&["the output interval must be a multiple of the step, not 0.0015"], &["--output-step", "0.0015"]);
    fails(&["the step must be positive and finite, not 0"], &["--step", "0"]);
    fails(&["possible values: ali3p, penalty, index1"], &["--formulation", "index3"]);
    // One of the two alone: the other gives way.
    let r = json(&["simulate", &model, "--end", "0.1", "--integrator", "rk4"]);
    assert_eq!(r["simulation"]["formulation"], "index1");
    assert_eq!(r["statistics"]["evaluations"], 400);
}

#[test]
fn a_mechanism_that_cannot_be_assembled_says_why() {
    let folder = Folder::new();
    let file = folder.path("run.csv");
    let model = shipped("five_bar");
    let words = [
        "the run cannot start: at t = 0 the mechanism cannot be assembled",
        "holonomic constraint `P2.",
        "release a held coordinate or change the guesses",
        "held: `A.angle` at -2.35619 with rate 0, `P1.angle` at 1.76819 with rate 0",
        "run.csv` is not written",
    ];
    fails(1, &words, &["simulate", &model, "--set", "L_A1=5", "--out", &file]);
    let outcome = fails(1, &words[..4], &["simulate", &model, "--set", "L_A1=5", "--json"]);
    let r: Value = serde_json::from_str(&outcome.out).expect("JSON");
    assert_eq!((&r["start"], &r["final"]), (&Value::Null, &Value::Null));
    assert!(r["error"].as_str().is_some_and(|error| error.contains("cannot be assembled")));
    // The same through explicit steps.
    fails(1, &words[..4], &["simulate", &model, "--set", "L_A1=5", "--integrator", "rk4"]);
}

#[test]
fn a_step_that_fails_keeps_what_there_is() {
    let folder = Folder::new();
    let file = folder.path("run.csv");
    // A penalty this small cannot close the loop in two iterations.
    let options = ["--penalty", "10", "--newton-iterations", "2", "--out", &file];
    let mut all = vec!["simulate", "", "--json"];
    let model = shipped("five_bar");
    all[1] = &model;
    all.extend(options);
    let words = [
        "the run failed at t = 0 with step 0.001: no convergence in 2 iterations",
        "run.csv` keeps the 1 result",
    ];
    let outcome = fails(1, &words, &all);
    let r: Value = serde_json::from_str(&outcome.out).expect("JSON");
    assert_eq!(r["final"]["t"], 0.0);
    assert!(number(&r["final"]["multipliers"]["P2.x"]).abs() > 0.5);
    assert_eq!(text(&file).lines().count(), 2);
}

fn table(file: &str) -> (Vec<String>, Vec<Vec<f64>>) {
    let content = text(file);
    let mut lines = content.lines();
    let names = lines.next().expect("a head").split(',').map(String::from).collect();
    let numbers = |row: &str| row.split(',').map(|v| v.parse().expect("a number")).collect();
    (names, lines.map(numbers).collect())
}

#[test]
fn the_csv_file_has_multipliers_and_reactions_by_name() {
    let folder = Folder::new();
    let file = folder.path("run.csv");
    let model = shipped("five_bar");
    let r = json(&["simulate", &model, "--end", "1", "--output-step", "0.1", "--reactions", "--out", &file]);
    let (names, rows) = table(&file);
    let place =
        |name: &str| names.iter().position(|n| n == name).unwrap_or_else(|| panic!("{name} in {names:?}"));
    assert_eq!(rows.len(), 11);
    assert_eq!(r["csv"]["columns"], names.len());
    assert!(rows.iter().all(|row| row.len() == names.len()));
    for row in &rows {
        let at = |name: &str| row[place(name)];
        // The cut joint transmits its multipliers, against the equation's sense.
        assert_eq!(at("reaction.P2.fx"), -at("lambda.P2.x"));
        assert_eq!(at("reaction.P2.fy"), -at("lambda.P2.y"));
        // A free hinge has no torque about its axis, up to the projections, of order h².
        assert!(at("reaction.A.tz").abs() < 2e-6, "{}", at("reaction.A.tz"));
        assert_eq!(at("energy.drives"), 0.0);
    }
    let last = rows.last().expect("a row");
    assert_eq!(last[place("lambda.P2.x")], number(&r["final"]["multipliers"]["P2.x"]));
    assert_eq!(last[place("reaction.B.fy")], number(&r["final"]["reactions"]["B"]["fy"]));
    assert!(number(&r["largest_reactions"]["B"]["force"]) >= last[place("reaction.B.fy")].abs());
    // Sums and extremes are over all steps, whatever is written.
    let every = json(&["simulate", &model, "--end", "1"]);
    assert_eq!(every["objectives"], r["objectives"]);
    assert_eq!(every["constraints"], r["constraints"]);
    assert_eq!(every["energy"], r["energy"]);
}

#[test]
fn the_work_of_drives_is_counted() {
    for options in [vec![], vec!["--integrator", "rk4"], vec!["--formulation", "index1"]] {
        let model = shipped("crank_rocker");
        let mut all = vec!["simulate", &model];
        all.extend(&options);
        let r = json(&all);
        assert_eq!(r["start"]["degrees_of_freedom"], 0);
        assert_eq!(r["energy"]["conservative"], false);
        assert_eq!(r["energy"]["work"], 0.0);
        let [change, work] = [&r["energy"]["change"], &r["energy"]["work_of_drives"]].map(number);
        assert!(change.abs() > 0.01 && (change - work).abs() < 1e-5, "{change} {work}");
        assert!(number(&r["energy"]["relative_balance_error"]) < 5e-5, "{options:?} {}", r["energy"]);
    }
    let out = done(&["simulate", &shipped("crank_rocker")]);
    assert!(out.contains("work of prescribed motions about"), "{out}");
}

#[test]
fn kinematics_is_the_motion_that_drives_prescribe() {
    let folder = Folder::new();
    let file = folder.path("run.csv");
    let model = shipped("crank_rocker");
    let dynamic = json(&["simulate", &model]);
    let kinematic = json(&["kinematics", &model, "--output-step", "0.01", "--out", &file]);
    assert_eq!(kinematic["analysis"], "kinematics");
    near(&kinematic["final"]["coordinates"], &dynamic["final"]["coordinates"], 1e-9);
    near(&kinematic["final"]["velocities"], &dynamic["final"]["velocities"], 1e-6);
    near(&kinematic["final"]["outputs"], &dynamic["final"]["outputs"], 1e-9);
    assert!(number(&kinematic["constraints"]["acceleration"]) < 1e-10);
    for absent in ["energy", "largest_multipliers"] {
        assert!(kinematic.get(absent).is_none(), "no {absent} without forces");
    }
    let (names, rows) = table(&file);
    assert_eq!(rows.len(), 201);
    assert_eq!(names.last().map(String::as_str), Some("coupler_angle"));
    // Freudenstein: K1 cos q − K2 cos o + K3 = cos(o − q), K1 = d/a, K2 = d/c, K3 = (a² − b² + c² + d²)/(2ac)
    let [a, b, c, d] = [0.1, 0.35, 0.3, 0.4_f64];
    let place = |name: &str| names.iter().position(|n| n == name).expect(name);
    for row in &rows {
        let (o, q): (f64, f64) = (row[place("O.angle")], row[place("Q.angle")]);
        let k3 = (a * a - b * b + c * c + d * d) / (2.0 * a * c);
        assert!((d / a * q.cos() - d / c * o.cos() + k3 - (o - q).cos()).abs() < 1e-12);
    }
    let out = done(&["kinematics", &model, "--step", "0.01"]);
    for word in [
        "crank_rocker: t = 0 to 2 s as its drives prescribe, step 0.01 s",
        "0 degrees of freedom",
        "200 steps",
    ] {
        assert!(out.contains(word), "no `{word}` in\n{out}");
    }
    assert!(!out.contains("energy") && !out.contains("multiplier"), "{out}");
}

#[test]
fn kinematics_needs_a_drive_for_every_freedom() {
    fails(
        1,
        &["coordinate `P1.angle` is free to move", "a constraint of type `motion`", "`mbs simulate`"],
        &["kinematics", &shipped("five_bar")],
    );
    fails(1, &["coordinate `hinge.angle` is free to move"], &["kinematics", &shipped("pendulum")]);
    fails(
        2,
        &["unexpected argument '--integrator'"],
        &["kinematics", &shipped("pendulum"), "--integrator", "rk4"],
    );
    // A coupler too short to let the crank pass: it locks on its way, and what was found is kept.
    let folder = Folder::new();
    let file = folder.path("run.csv");
    let arguments = ["kinematics", &shipped("crank_rocker"), "--set", "b=0.18", "--out", &file];
    let outcome = fails(
        1,
        &["the run failed at t = 0.", "cannot be assembled", "a position that the mechanism does not have"],
        &arguments,
    );
    assert!(outcome.err.contains("run.csv` keeps the "), "{}", outcome.err);
    assert!(text(&file).lines().count() > 10);
}

/// A crank that is held and driven at once.
const TWICE: &str = "
mbs: 1
name: twice
bodies:
  wheel: {mass: 1, inertia: [0.1, 0.1, 0.1]}
joints:
  axle: {type: revolute, parent: ground, child: wheel, axis: [0, 0, 1], start: {value: 0, rate: 1, hold: true}}
constraints:
  motor: {type: motion, coordinate: axle, value: 3*t}
";

#[test]
fn a_held_rate_against_a_drive_is_named() {
    let folder = Folder::new();
    let model = folder.file("twice.yaml", TWICE);
    let words = ["no velocities satisfy all constraints", "`motor`", "held: `axle.angle` at 0 with rate 1"];
    fails(1, &words, &["simulate", &model]);
}

#[test]
fn what_cannot_move_is_said() {
    let folder = Folder::new();
    let text =
        "mbs: 1\nbodies: {block: {mass: 1}}\njoints: {weld: {type: fixed, parent: ground, child: block}}\n";
    let model = folder.file("weld.yaml", text);
    done(&["simulate", &model, "--end", "0.1"]);
    fails(1, &["nothing in the model moves"], &["simulate", &model, "--integrator", "trapezoidal"]);
    fails(1, &["nothing in the model moves"], &["kinematics", &model]);
}

/// A shipped model with more objectives.
fn judged(folder: &Folder, name: &str, objectives: &str) -> String {
    let model = text(&shipped(name));
    let key = "\nobjectives:\n";
    let model = match model.contains(key) {
        true => model.replacen(key, &format!("{key}{objectives}"), 1),
        false => format!("{model}{key}{objectives}"),
    };
    folder.file(&format!("{name}.yaml"), model)
}

/// The torque of a motor, by its multiplier: the same in a simulation and in a kinematic analysis, and its work is that of
/// the drives.
#[test]
fn objectives_may_judge_multipliers_and_reactions() {
    let folder = Folder::new();
    let objectives = "
  work: -multiplier(motor)*(speed + 3*ripple*cos(3*t))
  effort: multiplier(motor)^2
  press: {integrand: norm(reaction_force(R)), terminal: reaction_force(O).y}
";
    let model = judged(&folder, "crank_rocker", objectives);
    let dynamic = json(&["simulate", &model]);
    let kinematic = json(&["kinematics", &model]);
    let of = |run: &Value, name: &str| number(&run["objectives"][name]);
    for name in ["work", "effort", "press"] {
        let (a, b) = (of(&dynamic, name), of(&kinematic, name));
        // Multipliers of nodes are right to h².
        assert!((a - b).abs() < 1e-5 * (1.0 + a.abs()), "{name}: {a} and {b}");
        assert!(a.abs() > 1e-3, "{name}: {a}");
    }
    let work = number(&dynamic["energy"]["work_of_drives"]);
    // The trapezoidal rule over nodes 1 ms apart: h²/12 of the change of the power's slope, about 6 W/s.
    assert!((of(&dynamic, "work") - work).abs() < 1e-6, "{work} and {}", of(&dynamic, "work"));
    assert!(!mbs(&["simulate", &model, "--end", "0.01"]).err.contains("warning"));
}

/// Six hinges in a loop that moves by its geometry have one equation more than they need: forces in them are not unique.
#[test]
fn an_objective_on_redundant_constraints_gets_a_warning() {
    let folder = Folder::new();
    let objectives = "  place: pos(rod3.end).y\n  press: norm(reaction_force(J5))\n  pin: multiplier(J4.x)\n";
    let model = judged(&folder, "bricard", objectives);
    for arguments in
        [&["simulate", &model, "--end", "0.01"][..], &["simulate", &model, "--end", "0.01", "--json"]]
    {
        let outcome = mbs(arguments);
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        for name in ["press", "pin"] {
            let warning =
                format!("warning: objective `{name}` names multipliers or reactions, which the redundant");
            assert_eq!(outcome.err.matches(&warning).count(), 1, "{}", outcome.err);
        }
        assert!(!outcome.err.contains("`place`"), "{}", outcome.err);
    }
}

/// Derivatives of multipliers of least norm are computed for those who read them. The gradient is the same, directly and by the adjoint.
#[test]
fn gradients_on_redundant_constraints_do_not_depend_on_who_reads_multipliers() {
    let folder = Folder::new();
    for objective in ["  place: pos(rod3.end).y\n", "  pin: multiplier(J4.x)\n"] {
        let model = judged(&folder, "bricard", objective);
        let of = |more: &[&str]| {
            numbers(&json(&[&["gradient", &model, "--end", "0.05"][..], more].concat())["objectives"])
        };
        let plain = of(&[]);
        assert!(plain.len() == 20 && plain.iter().all(|x| *x != 0.0), "{plain:?}");
        assert_eq!(plain, of(&["--trajectories", &folder.path("derivatives.csv")]), "{objective}");
        // Sums over fifty steps in another order.
        for (a, b) in plain.iter().zip(of(&["--method", "adjoint"])) {
            assert!((a - b).abs() <= 1e-11 * a.abs(), "{objective}: {a}, {b}");
        }
    }
}

/// All numbers of a value, in order.
fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(all) => all.iter().flat_map(numbers).collect(),
        Value::Object(all) => all.values().flat_map(numbers).collect(),
        other => other.as_f64().into_iter().collect(),
    }
}

/// A rotor turned by a drive, with a bob on a spring inside it.
fn rotor(bob: &str) -> String {
    format!(
        "mbs: 1\nname: rotor\nparameters: {{w: 3}}\nbodies:\n  hub: {{mass: 1, inertia: [1, 1, 1]}}\n{bob}\
         constraints: {{drive: {{type: motion, coordinate: O.angle, value: w*t}}}}\n"
    )
}

const BOB: &str = "  bob: {mass: 1}
joints:
  O: {type: revolute, parent: ground, child: hub, axis: [0, 0, 1], start: {value: 0, rate: w}}
  slide: {type: prismatic, parent: hub, child: bob, axis: [1, 0, 0]}
forces: {spring: {type: torsional_spring, coordinate: slide.displacement, stiffness: 10}}
";

/// ω² = k/m − w²: a drive at rest would give √10.
#[test]
fn modes_of_a_driven_machine_are_those_of_its_motion() {
    let folder = Folder::new();
    let file = folder.file("rotor.yaml", rotor(BOB));
    let refused = mbs(&["modes", &file, "--equilibrium"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(
        refused.err.contains("there is no rest") && refused.err.contains("`drive` at the rate -3"),
        "{}",
        refused.err
    );
    let turning = mbs(&["modes", &file, "--json"]);
    assert!(turning.err.is_empty(), "{}", turning.err);
    let found: Value = serde_json::from_str(&turning.out).expect("JSON");
    let frequency = found["modes"][0]["imaginary"].as_f64().expect("a number");
    assert!((frequency - 1.0).abs() < 1e-9, "{frequency}");
    // A drive that takes all freedom leaves nothing to move.
    let alone = "joints:\n  O: {type: revolute, parent: ground, child: hub, axis: [0, 0, 1], start: {value: 0, rate: w}}\n";
    let file = folder.file("alone.yaml", rotor(alone));
    let ran = mbs(&["modes", &file]);
    assert!(ran.out.contains("there are no free motions"), "{ran:?}");
}

/// Two equal overdamped oscillators: each real eigenvalue has two shapes, real and not the same.
#[test]
fn equal_eigenvalues_have_a_basis_of_shapes() {
    let folder = Folder::new();
    let file = folder.file(
        "twins.yaml",
        "mbs: 1\nname: twins\nbodies: {a: {mass: 1}, b: {mass: 1}}\njoints:\n\
         \x20 p: {type: prismatic, parent: ground, child: a, axis: [1, 0, 0]}\n\
         \x20 q: {type: prismatic, parent: ground, child: b, axis: [0, 1, 0]}\nforces:\n\
         \x20 k: {type: torsional_spring, coordinate: p.displacement, stiffness: 2, damping: 3}\n\
         \x20 l: {type: torsional_spring, coordinate: q.displacement, stiffness: 2, damping: 3}\n",
    );
    let found: Value = serde_json::from_str(&done(&["modes", &file, "--json"])).expect("JSON");
    let modes = found["modes"].as_array().expect("modes");
    assert_eq!(modes.len(), 4);
    for (pair, eigenvalue) in modes.chunks(2).zip([-1.0, -2.0]) {
        let shapes: Vec<[f64; 2]> = pair
            .iter()
            .map(|mode| {
                assert!((mode["real"].as_f64().expect("a number") - eigenvalue).abs() < 1e-9, "{mode}");
                ["p.displacement", "q.displacement"].map(|name| {
                    let part = &mode["shape"][name];
                    assert!(part[1].as_f64().unwrap_or(0.0).abs() < 1e-9, "{mode}");
                    part[0].as_f64().unwrap_or(0.0)
                })
            })
            .collect();
        let area = shapes[0][0] * shapes[1][1] - shapes[0][1] * shapes[1][0];
        assert!(area.abs() > 0.5, "{shapes:?}");
    }
}

fn parallelogram(drive: &str) -> String {
    format!(
        "mbs: 1\nname: parallelogram\nbodies:\n  ground: {{points: {{G: [2, 0, 0]}}}}\n\
         \x20 crank: {{mass: 1, inertia: [1, 1, 1], points: {{pin: [1, 0, 0]}}}}\n\
         \x20 bar: {{mass: 1, inertia: [1, 1, 1], points: {{pin: [2, 0, 0]}}}}\n\
         \x20 arm: {{mass: 1, inertia: [1, 1, 1], points: {{pin: [1, 0, 0]}}}}\njoints:\n\
         \x20 A: {{type: revolute, parent: ground, child: crank, axis: [0, 0, 1], start: 1}}\n\
         \x20 P: {{type: revolute, parent: crank.pin, child: bar, axis: [0, 0, 1], start: -1}}\n\
         \x20 B: {{type: revolute, parent: ground.G, child: arm, axis: [0, 0, 1], start: 1}}\n\
         \x20 Q: {{type: revolute, parent: bar.pin, child: arm.pin, axis: [0, 0, 1]}}\n\
         constraints: {{drive: {{type: motion, coordinate: A.angle, value: \"{drive}\"}}}}\n\
         simulation: {{end: 1, step: 1e-2}}\n"
    )
}

#[test]
fn a_parallelogram_turns_at_constant_speed() {
    let folder = Folder::new();
    let file = folder.file("parallelogram.yaml", parallelogram("1 + 2*t"));
    let found = json(&["kinematics", &file]);
    for (name, angle) in [("A.angle", 3.0), ("P.angle", -3.0), ("B.angle", 3.0)] {
        let z = number(&found["final"]["coordinates"][name]);
        assert!((z - angle).abs() < 1e-9, "{name}: {z}");
    }
}

/// A crank of 2 rad/s with steps of up to a revolution: the rocker stays on its branch, as with small steps.
#[test]
fn coarse_drives_stay_on_their_branch() {
    let folder = Folder::new();
    let body = |name: &str, length: f64| {
        format!("  {name}: {{mass: 1, inertia: [0.1, 0.1, 0.1], points: {{e: [{length}, 0, 0]}}}}\n")
    };
    let bodies = body("crank", 0.2) + &body("rod", 0.5) + &body("rocker", 0.4);
    let model = |drive: &str| {
        format!(
            "mbs: 1\nname: coarse\nbodies:\n  ground: {{points: {{D: [0.5, 0, 0]}}}}\n{bodies}joints:\n\
             \x20 A: {{type: revolute, parent: ground, child: crank, axis: [0, 0, 1]}}\n\
             \x20 B: {{type: revolute, parent: crank.e, child: rod, axis: [0, 0, 1], start: 1.0}}\n\
             \x20 C: {{type: revolute, parent: rod.e, child: rocker, axis: [0, 0, 1], start: -2.0}}\n\
             \x20 D: {{type: revolute, parent: rocker.e, child: ground.D, axis: [0, 0, 1]}}\n\
             constraints: {{drive: {{type: motion, coordinate: A.angle, value: \"{drive}\"}}}}\nsimulation: {{end: 10}}\n"
        )
    };
    let file = folder.file("coarse.yaml", model("2*t"));
    let at_end =
        |step: &str| number(&json(&["kinematics", &file, "--step", step])["final"]["coordinates"]["C.angle"]);
    let fine = at_end("0.01");
    for step in ["0.1", "0.5", "1", "1.25", "2", "2.5"] {
        assert!((at_end(step) - fine).abs() < 1e-9, "{step}: {} instead of {fine}", at_end(step));
    }
    // Nothing leads over a jump.
    let jumping = folder.file("jumping.yaml", model("if(t < 1, 0, 2)"));
    fails(2, &["perhaps another branch"], &["kinematics", &jumping, "--step", "0.1"]);
}

/// Camber over travel by a point of the suspension, against differences of the motion itself.
#[test]
fn kinematics_has_gradients() {
    let folder = Folder::new();
    let model = shipped("suspension");
    let options = ["--step", "0.1", "--sensitivity", "upper_inner_z,lower_outer_y"];
    let run = |more: &[&str]| json(&[&["kinematics", &model], &options[..], more].concat());
    let direct = run(&["--method", "direct"]);
    let adjoint = run(&["--method", "adjoint"]);
    assert_eq!(adjoint["method"]["gradient"], "adjoint");
    for (name, found) in direct["objectives"].as_object().expect("objectives") {
        for by in ["upper_inner_z", "lower_outer_y"] {
            let [a, b] = [found, &adjoint["objectives"][name]].map(|one| number(&one["gradient"][by]));
            assert!((a - b).abs() < 1e-12 * a.abs().max(1e-3), "{name} {by}: {a} {b}");
        }
    }
    let file = folder.path("camber.csv");
    run(&["--trajectories", &file]);
    let (names, rows) = table(&file);
    let place = |name: &str| names.iter().position(|n| n == name).expect(name);
    let camber = |value: f64| {
        let out = folder.path("motion.csv");
        let set = format!("upper_inner_z={value}");
        json(&["kinematics", &model, "--step", "0.1", "--set", &set, "--out", &out]);
        let (names, rows) = table(&out);
        let k = names.iter().position(|n| n == "camber").expect("an output");
        rows.iter().map(|row| row[k]).collect::<Vec<f64>>()
    };
    let (h, z) = (1e-5, 0.46);
    let [low, middle, high] = [z - h, z, z + h].map(camber);
    assert_eq!(rows.len(), middle.len());
    let (value, slope) = (place("integrand(camber)"), place("d(integrand(camber))/d(upper_inner_z)"));
    let mut largest = 0.0_f64;
    for (i, row) in rows.iter().enumerate() {
        assert!((row[value] - middle[i]).abs() < 1e-14);
        // Central differences: h² and rounding over h.
        assert!((row[slope] - (high[i] - low[i]) / (2.0 * h)).abs() < 1e-8, "{} at {}", row[slope], row[0]);
        largest = largest.max(row[slope].abs());
    }
    assert!(largest > 1.0, "{largest}");
    fails(2, &["is not integrated"], &["kinematics", &model, "--method", "continuous_adjoint"]);
    fails(
        2,
        &["choose the direct method"],
        &["kinematics", &model, "--method", "adjoint", "--trajectories", &file],
    );
    fails(1, &["needs a drive"], &["kinematics", &shipped("five_bar"), "--gradient"]);
}

/// Independent coordinates by name on the command line, and what is wrong with names.
#[test]
fn independent_coordinates_are_named_on_the_command_line() {
    let model = shipped("five_bar");
    let run = |more: &[&str]| {
        let settings =
            ["gradient", &model, "--end", "0.2", "--formulation", "matrix_r", "--integrator", "rk4"];
        json(&[&settings, more].concat())["objectives"].clone()
    };
    let [chosen, named] = [run(&[]), run(&["--independent", "B.angle,P3.angle"])];
    let number = |found: &Value| found["psi3"]["gradient"]["x_G"].as_f64().expect("a number");
    let [a, b] = [&chosen, &named].map(number);
    // Other coordinates, other errors of the method.
    assert!(a != b && (a - b).abs() < 1e-6 * a.abs(), "{a} {b}");
    for (words, more) in [
        (&["no coordinate `B.angel`", "did you mean `B.angle`?"][..], &["--formulation", "matrix_r"][..]),
        (&["`--independent` belongs to `matrix_r`, not to `index1`"], &["--formulation", "index1"]),
    ] {
        for command in ["simulate", "gradient", "verify", "run"] {
            fails(2, words, &[&[command, &model, "--independent", "B.angel"], more].concat());
        }
    }
    // Points, on the command line and in the file: the same run.
    let point = run(&["--independent", "bar_12.p2.x,bar_12.p2.y"]);
    let c = number(&point);
    assert!(c != a && (a - c).abs() < 1e-6 * a.abs(), "{a} {c}");
    let folder = Folder::new();
    let with = |points: &str| {
        let simulation =
            format!("simulation: {{formulation: matrix_r, independent: [{points}], end: 5, step: 1e-3}}");
        folder.file("five_bar.yaml", text(&model).replace("simulation: {end: 5, step: 1e-3}", &simulation))
    };
    let file = with("bar_12.p2.x, bar_12.p2.y");
    let found = json(&["gradient", &file, "--end", "0.2"]);
    assert_eq!(number(&found["objectives"]), c);
    let text = done(&["verify", &file, "--end", "0.2"]);
    assert!(text.contains("PASS"), "{text}");
    let file = with("bar_12.p3.x, P1.angle");
    fails(1, &["no coordinate `bar_12.p3.x`", "did you mean `bar_12.p2.x`?"], &["check", &file]);
}

/// The gradient of a driven motion is verified, and its objectives are optimised: a tie rod without bump steer.
#[test]
fn driven_motions_are_verified_and_optimised() {
    let model = shipped("suspension");
    let text = done(&["verify", &model, "--kinematics"]);
    assert!(text.contains("PASS") && text.contains("the adjoint gives the same gradient"), "{text}");
    let found = json(&["verify", &model, "--kinematics"]);
    let runs = found["gradient"].as_array().expect("checks");
    assert!(!runs.is_empty() && runs.iter().all(|one| one["error"].as_f64().is_some_and(|e| e < 1e-10)));
    fails(2, &["integrates nothing"], &["verify", &model, "--kinematics", "--integrator", "rk4"]);
    let optimise = ["optimise", &model, "--kinematics", "--minimise", "bump_steer"];
    let over = ["--over", "tie_inner_z=0.2:0.35", "--over", "tie_outer_z=0.2:0.35"];
    let found = json(&[&optimise[..], &over].concat());
    let [before, best] = ["start_cost", "cost"].map(|key| found[key].as_f64().expect("a number"));
    assert!(best < 0.05 * before, "{before} {best}");
    fails(2, &["integrates nothing"], &[&optimise[..], &over, &["--formulation", "index1"]].concat());
}
