//! `mbs simulate`: reports, files, settings and failures.

use crate::command::{Folder, done, fails, mbs, shipped, text};
use serde_json::Value;

fn json(arguments: &[&str]) -> Value {
    let mut all = vec!["simulate"];
    all.extend(arguments);
    all.push("--json");
    serde_json::from_str(&done(&all)).expect("JSON")
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn the_report_shows_what_happened() {
    let out = done(&["simulate", &shipped("pendulum"), "--end", "2", "--set", "L=0.5"]);
    for word in [
        "pendulum: t = 0 to 2 s by rk4, step 0.001 s",
        "with L = 0.5",
        "hinge.angle ",
        "hinge.angle_rate",
        "tip.x",
        "drift",
        "of the largest kinetic energy",
        "2000 steps, 8000 evaluations in",
        "times real time",
    ] {
        assert!(out.contains(word), "no `{word}` in\n{out}");
    }
    assert!(out.chars().any(|c| ('\u{2801}'..='\u{28ff}').contains(&c)), "a plot in\n{out}");
    assert!(out.lines().all(|line| line.chars().count() <= 100), "{out}");
    let driven = done(&["simulate", &shipped("cart_pole"), "--end", "1"]);
    assert!(
        driven.contains("work of driving and damping forces") && driven.contains("balance  error"),
        "{driven}"
    );
    let adaptive = ["--integrator", "dormand_prince", "--end", "1"];
    let adaptive =
        done(&[&["simulate", &shipped("cart_pole"), "--case", "released"], &adaptive[..]].concat());
    assert!(
        adaptive
            .contains("cart_pole, case released: t = 0 to 1 s by dormand_prince, tolerance 1e-8 relative")
    );
}

#[test]
fn the_json_report_has_the_numbers() {
    let r = json(&[&shipped("pendulum"), "--end", "1", "--set", "L=0.5", "--set", "m=2"]);
    assert_eq!(r["model"], "pendulum");
    assert_eq!(r["parameters"]["L"], 0.5);
    assert_eq!(r["statistics"]["steps"], 1000);
    assert_eq!(r["energy"]["conservative"], true);
    assert!(number(&r["energy"]["relative_balance_error"]) < 1e-10);
    let angle = number(&r["final"]["coordinates"]["hinge.angle"]);
    let height = number(&r["final"]["outputs"]["height"]);
    assert!((height + 0.5 * angle.cos()).abs() < 1e-12);
    // Damped, and a balance by quadrature over the samples.
    let r = json(&[&shipped("cart_pole"), "--end", "2"]);
    assert_eq!(r["energy"]["conservative"], false);
    assert!(number(&r["energy"]["change"]) < 0.0);
    assert!(number(&r["energy"]["relative_balance_error"]) < 1e-7, "{r}");
}

#[test]
fn settings_of_the_command_line_win() {
    let model = shipped("double_pendulum");
    let near = |a: &Value, b: &Value, tolerance: f64| {
        let (a, b) = (&a["final"]["coordinates"], &b["final"]["coordinates"]);
        for name in ["shoulder.angle", "elbow.angle"] {
            assert!((number(&a[name]) - number(&b[name])).abs() < tolerance, "{a} {b}");
        }
    };
    let fixed = json(&[&model, "--end", "1"]);
    let adaptive =
        json(&[&model, "--end", "1", "--integrator", "dormand_prince", "--rtol", "1e-11", "--atol", "1e-12"]);
    let recursive = json(&[&model, "--end", "1", "--recursive"]);
    let coarse = json(&[&model, "--end", "1", "--step", "0.01"]);
    near(&fixed, &adaptive, 1e-8);
    near(&fixed, &recursive, 1e-9);
    near(&fixed, &coarse, 1e-3);
    assert_eq!(coarse["statistics"]["steps"], 100);
    assert_eq!(adaptive["simulation"]["integrator"], "dormand_prince");
    assert_eq!(recursive["simulation"]["recursive"], true);
}

#[test]
fn the_csv_file_has_a_named_column_for_everything() {
    let folder = Folder::new();
    let file = folder.path("run.csv");
    let out =
        done(&["simulate", &shipped("cart_pole"), "--end", "1", "--output-step", "0.25", "--out", &file]);
    assert!(out.contains("run.csv: 5 rows, 15 columns"), "{out}");
    let content = text(&file);
    let rows: Vec<&str> = content.lines().collect();
    assert_eq!(
        rows[0],
        "t,rail.x,pivot.theta,rail.x_rate,pivot.theta_rate,push,position,angle,tip.x,tip.y,tip.z,energy,\
         energy.kinetic,energy.potential,energy.power"
    );
    assert_eq!(rows.len(), 6);
    let values = |row: &str| row.split(',').map(|v| v.parse().expect("a number")).collect::<Vec<f64>>();
    assert_eq!(rows[1..].iter().map(|row| values(row)[0]).collect::<Vec<_>>(), [0.0, 0.25, 0.5, 0.75, 1.0]);
    for row in &rows[1..] {
        let row = values(row);
        assert_eq!(row.len(), 15);
        assert_eq!(row[1], row[6], "the output `position` is the coordinate");
        assert!((row[11] - row[12] - row[13]).abs() < 1e-12, "the model's energy is kinetic and potential");
    }
    // To standard output the same, the report beside it.
    let outcome =
        mbs(&["simulate", &shipped("cart_pole"), "--end", "1", "--output-step", "0.25", "--out", "-"]);
    assert_eq!(outcome.out, content);
    assert!(outcome.err.contains("times real time"));
}

#[test]
fn knots_keep_their_order_on_the_command_line() {
    let folder = Folder::new();
    let file = folder.file(
        "lift.yaml",
        "mbs: 1
bodies: {a: {mass: 1}}
joints: {slide: {type: prismatic, parent: ground, child: a, axis: [0, 0, 1]}}
parameters: {tk: [0, 0.3, 0.6, 1.0], tv: [0, 1, 0, 2], late: 2, last: 2*late}
forces:
  push: {type: joint_force, coordinate: slide.displacement, value: \"spline(t, tk, tv)\"}
  pull: {type: joint_force, coordinate: slide.displacement, value: \"table(t, [0, 1, last], [0, 1, 0])\"}
",
    );
    let run = |set: &[&str]| {
        let mut all = vec!["simulate", &file, "--end", "0.1"];
        set.iter().for_each(|one| all.extend(["--set", one]));
        mbs(&all)
    };
    let wrong = run(&["late=3", "tk[1]=0.7"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    let message = "cannot set `late`, `tk[1]`: knots of `tk` must increase, but the smallest step from one to the next is: -0.0";
    assert!(wrong.err.contains(message), "{}", wrong.err);
    // What follows a parameter counts, and only what all settings make together.
    let wrong = run(&["late=0.5"]);
    assert!(wrong.err.contains("cannot set `late`: knots of a table or spline must increase"), "{wrong:?}");
    let right = run(&["tk[1]=0.7", "tk[2]=0.8"]);
    assert_eq!(right.code, Some(0), "{right:?}");
}

/// Step control sees nothing of an input that is held over its steps.
#[test]
fn held_signals_want_fixed_steps() {
    let model = shipped("cart_pole");
    for command in ["simulate", "gradient", "run"] {
        let words =
            ["input `push` follows a signal but is held over every step (`hold: zero`)", "`hold: signal`"];
        fails(2, &words, &[command, &model, "--case", "shaken", "--integrator", "dormand_prince"]);
    }
    let folder = Folder::new();
    let signal = folder.file("signal.yaml", text(&model).replace("hold: zero", "hold: signal"));
    let last = |r: &Value| number(&r["final"]["coordinates"]["rail.x"]);
    let shaken = |more: &[&str]| last(&json(&[&[&signal, "--case", "shaken", "--end", "2"], more].concat()));
    let (fixed, adaptive) = (shaken(&[]), shaken(&["--integrator", "dormand_prince"]));
    assert!((fixed - adaptive).abs() < 1e-7, "{fixed} {adaptive}");
}

const UNDEFINED: &str = "
mbs: 1
bodies: {a: {mass: 1}}
joints: {slide: {type: prismatic, parent: ground, child: a, axis: [0, 0, 1]}}
outputs: {fine: t, root: sqrt(0.25 - t)}
simulation: {end: 1, step: 0.125}
";

#[test]
fn what_is_not_finite_is_told() {
    let folder = Folder::new();
    let model = folder.file("undefined.yaml", UNDEFINED);
    let warning = |t: &str| format!("output `root` is not finite at t = {t}");
    let csv = folder.path("run.csv");
    let outcome = mbs(&["simulate", &model, "--out", &csv]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(outcome.err.contains(&format!("warning: {}", warning("0.375"))), "{}", outcome.err);
    assert!(!outcome.err.contains("fine"), "{}", outcome.err);
    // Without a file, outputs are wanted at the end alone.
    let r = json(&[&model]);
    assert!(r["warnings"][0].as_str().is_some_and(|text| text.starts_with(&warning("1"))), "{r}");
    assert_eq!(json(&[&model, "--end", "0.25"]).get("warnings"), None);
    for (objective, words) in [
        ("integrand: sqrt(0.25 - t)", "at t = 0.3125, objective `bad` (line 7) is not finite: sqrt(-0.0625)"),
        ("terminal: sqrt(0.25 - t)", "the run failed at t = 1: objective `bad` is not finite"),
    ] {
        let text = format!("{UNDEFINED}objectives: {{bad: {{{objective}}}}}\n");
        let model = folder.file("objective.yaml", text);
        fails(1, &[words], &["simulate", &model]);
        fails(1, &[words], &["run", &model, "--report", &folder.path("page.html")]);
        done(&["simulate", &model, "--end", "0.25"]);
    }
}

#[test]
fn a_wrong_setting_is_refused_by_name() {
    let model = shipped("pendulum");
    let fails = |words: &[&str], arguments: &[&str]| {
        let mut all = vec!["simulate", model.as_str()];
        all.extend(arguments);
        fails(2, words, &all);
    };
    fails(&["cannot set `l`: there is no independent parameter `l`; did you mean `L`?"], &["--set", "l=1"]);
    fails(&["cannot set `I`: it follows from other parameters"], &["--set", "I=1"]);
    fails(&["parameter `L` must be at least 0, not -1"], &["--set", "L=-1"]);
    fails(&["parameter `L` must be finite"], &["--set", "L=nan"]);
    fails(&["`abc` is not a number"], &["--set", "L=abc"]);
    fails(&["NAME=VALUE"], &["--set", "L"]);
    fails(&["the end, -1 s, must lie after the begin, 0 s"], &["--end", "-1"]);
    fails(&["the span must be finite"], &["--end", "inf"]);
    fails(&["the step must be positive and finite, not 0"], &["--step", "0"]);
    fails(&["the output interval must be a multiple of the step, not 0.0015"], &["--output-step", "0.0015"]);
    fails(&["possible values: rk4, dormand_prince"], &["--integrator", "euler"]);
    fails(&["tolerance"], &["--integrator", "dormand_prince", "--atol", "-1"]);
    fails(&["both want standard output"], &["--json", "--out", "-"]);
    fails(&["no case `x`"], &["--case", "x"]);
    fails(&["1e13 steps are too many"], &["--step", "1e-12"]);
    fails(&["would overwrite the model"], &["--out", model.as_str()]);
}

/// A pendulum whose friction blows up after a second.
const BREAKS: &str = "
mbs: 1
name: breaks
gravity: [0, 0, -9.81]
bodies:
  rod: {mass: 1, com: [0, 0, -1], inertia: [0.1, 0.1, 0]}
joints:
  hinge: {type: revolute, parent: ground, child: rod, axis: [0, 1, 0], start: 0.5}
forces:
  odd: {type: joint_force, coordinate: hinge, value: sqrt(1 - t)}
simulation: {end: 2, step: 0.01}
";

#[test]
fn a_run_that_fails_says_where_and_keeps_what_it_has() {
    let folder = Folder::new();
    let model = folder.file("breaks.yaml", BREAKS);
    let file = folder.path("run.csv");
    let words = [
        "the run failed at t = 1",
        "velocity `hinge.angle_rate` or its rate is not finite",
        "run.csv` keeps the 101 results, up to t = 1",
    ];
    fails(1, &words, &["simulate", &model, "--out", &file]);
    assert_eq!(text(&file).lines().count(), 102);
    let outcome =
        fails(1, &["hinge.angle_rate"], &["simulate", &model, "--json", "--integrator", "dormand_prince"]);
    let json: Value = serde_json::from_str(&outcome.out).expect("JSON");
    assert!(json["error"].as_str().is_some_and(|error| error.contains("hinge.angle_rate")));
    assert!((number(&json["final"]["t"]) - 1.0).abs() < 0.01);

    let massless = ["simulate", &shipped("pendulum"), "--set", "m=0"];
    fails(1, &["the mass matrix is singular: no inertia along velocity `hinge.angle_rate`"], &massless);
}

#[test]
fn a_file_that_cannot_be_written_is_said() {
    let folder = Folder::new();
    let model = shipped("pendulum");
    let nowhere = folder.path("no/where.csv");
    fails(
        1,
        &["cannot write", "where.csv`: there is no directory `"],
        &["simulate", &model, "--out", &nowhere],
    );
    let directory = folder.path("");
    fails(1, &["is a directory"], &["simulate", &model, "--out", &directory]);
    if cfg!(target_os = "linux") {
        fails(1, &["cannot write `/dev/full`: no space left"], &["simulate", &model, "--out", "/dev/full"]);
    }
}

/// A body on a slide against a spring, started where the text says.
fn sprung(start: &str, spring: &str) -> String {
    format!(
        "mbs: 1\nname: sprung\nparameters: {{k: 50, L0: 0, n: 1.5}}\nbodies: {{a: {{mass: 1}}}}\n\
         joints: {{slide: {{type: prismatic, parent: ground, child: a, axis: [1, 0, 0], start: {{{start}}}}}}}\n\
         forces: {{pull: {{{spring}}}}}\nsimulation: {{end: 0.3, step: 1e-3}}\n"
    )
}

#[test]
fn springs_of_no_length_have_a_force() {
    let folder = Folder::new();
    // x = rate/ω sin ωt with ω² = k, from length zero and through it.
    let omega = 50.0_f64.sqrt();
    for natural in ["", ", natural_length: 0", ", natural_length: L0"] {
        let spring = format!("type: spring, from: ground, to: a, stiffness: k{natural}");
        let file = folder.file("sprung.yaml", sprung("value: 0, rate: 1", &spring));
        for integrator in ["trapezoidal", "generalized_alpha", "rk4", "dormand_prince"] {
            let out = done(&["simulate", &file, "--integrator", integrator, "--json"]);
            let found: serde_json::Value = serde_json::from_str(&out).expect("JSON");
            let x = found["final"]["coordinates"]["slide.displacement"].as_f64().expect("a number");
            let expected = (0.3 * omega).sin() / omega;
            assert!((x - expected).abs() < 2e-5, "{natural} {integrator}: {x} against {expected}");
        }
    }
}

#[test]
fn what_is_not_finite_is_named() {
    let folder = Folder::new();
    for (start, force, said) in [
        (
            "value: 0",
            "type: spring, from: ground, to: a, stiffness: k, natural_length: 0.1",
            "1 divided by 0",
        ),
        (
            "value: 0.01, rate: -1",
            "type: joint_force, coordinate: slide.displacement, value: ln(slide.displacement)",
            "ln(",
        ),
    ] {
        let file = folder.file("undefined.yaml", sprung(start, force));
        for integrator in ["trapezoidal", "generalized_alpha", "rk4", "dormand_prince"] {
            let ran = mbs(&["simulate", &file, "--integrator", integrator]);
            assert_eq!(ran.code, Some(1), "{integrator}: {ran:?}");
            let named =
                ran.err.contains("force `pull` (line 6) is not finite") && ran.err.contains("at t = ");
            assert!(named && ran.err.contains(said), "{integrator}: {}", ran.err);
        }
    }
}

/// A block on a slide under a force of time, from rest.
fn pushed(force: &str, rest: &str) -> String {
    format!(
        "mbs: 1\nname: pushed\nparameters: {{t0: 3, w: 1e-3, F: 1000, knots: [2.9995, 2.9999, 3.0001, 3.0005], values: [0, 1000, 1000, 0]}}\n\
         bodies: {{block: {{mass: 1}}}}\n\
         joints: {{slide: {{type: prismatic, parent: ground, child: block, axis: [1, 0, 0]}}}}\n\
         {force}\n\
         objectives: {{far: {{terminal: slide.displacement}}, haste: {{integrand: rate(slide)^2}}}}\n\
         sensitivity: [F]\n{rest}\nsimulation: {{end: 10, integrator: dormand_prince}}\n"
    )
}

/// What any command prints as JSON.
fn printed(arguments: &[&str]) -> Value {
    serde_json::from_str(&done(arguments)).expect("JSON")
}

/// 1 N s within a millisecond of ten seconds, whichever way it is written: no step goes over it.
#[test]
fn pulses_are_not_stepped_over() {
    let folder = Folder::new();
    let by = |value: &str| {
        pushed(
            &format!(
                "forces: {{kick: {{type: joint_force, coordinate: slide.displacement, value: \"{value}\"}}}}"
            ),
            "",
        )
    };
    let signal = pushed(
        "inputs: {push: {default: 0, hold: signal}}\nforces: {kick: {type: joint_force, coordinate: slide.displacement, value: push}}",
        "cases: {kicked: {inputs: {push: \"if(t < t0 - w/2, 0, if(t < t0 + w/2, 1000, 0))\"}}}",
    );
    for (model, case, impulse) in [
        (by("if(abs(t - t0) < w/2, F, 0)"), None, 1.0),
        (by("if(t0 - w/2 < t, if(t < t0 + w/2, F, 0), 0)"), None, 1.0),
        (by("F*(sign(t - t0 + w/2) - sign(t - t0 - w/2))/2"), None, 1.0),
        (by("F*max(0, 1 - abs(t - t0)/w)"), None, 1.0),
        (by("step(t, t0 - w, 0, t0, F) - step(t, t0, 0, t0 + w, F)"), None, 1.0),
        (by("table(t, knots, values)"), None, 0.6),
        (signal, Some("kicked"), 1.0),
        // Smooth pulses have no corner; ∫ exp(−x²) = √π, ∫ 1/(1 + x⁴) = π/√2, ∫ 1/cosh² x = 2, ∫ (tanh(x + 1) − tanh(x − 1)) = 4.
        (by("F*exp(-((t - t0)/w)^2)"), None, std::f64::consts::PI.sqrt()),
        (by("F/(1 + ((t - t0)/w)^4)"), None, std::f64::consts::PI / 2f64.sqrt()),
        (by("F/cosh((t - t0)/w)^2"), None, 2.0),
        (by("F*(tanh((t - t0)/w + 1) - tanh((t - t0)/w - 1))"), None, 4.0),
    ] {
        let file = folder.file("pushed.yaml", &model);
        let case: Vec<&str> = case.iter().flat_map(|case| ["--case", case]).collect();
        let run =
            |command: &str, more: &[&str]| printed(&[&[command, &file, "--json"], more, &case[..]].concat());
        let far = number(&run("simulate", &[])["objectives"]["far"]);
        // The pulse is symmetric about t = 3.
        assert!((far - 7.0 * impulse).abs() < 1e-7, "{model}: {far}");
        let direct = run("gradient", &[]);
        let adjoint = run("gradient", &["--method", "adjoint"]);
        for name in ["far", "haste"] {
            let value = number(&run("simulate", &[])["objectives"][name]);
            for found in [&direct, &adjoint] {
                let of = &found["objectives"][name];
                assert!(
                    (number(&of["value"]) - value).abs() < 1e-13 * value.abs(),
                    "{model}: {name} {of} {value}"
                );
            }
            let [a, b] = [&direct, &adjoint].map(|found| number(&found["objectives"][name]["gradient"]["F"]));
            assert!((a - b).abs() <= 1e-12 * a.abs(), "{model}: {a} {b}");
        }
    }
}

/// ∫ t² over ten seconds is 1000/3. The motion is a straight line, so that five steps would do for it alone.
#[test]
fn objectives_have_one_value() {
    let folder = Folder::new();
    let model = "mbs: 1\nname: line\nparameters: {p: 2, L: 1}\nbodies: {block: {mass: 1}}\n\
         joints: {slide: {type: prismatic, parent: ground, child: block, axis: [1, 0, 0], start: {value: 0, rate: 1}}}\n\
         objectives: {square: {integrand: t^2}, wave: {integrand: \"p*sin(20*slide.displacement)^2\"}}\n\
         sensitivity: [p]\nsimulation: {end: 10, integrator: dormand_prince}\n";
    let file = folder.file("line.yaml", model);
    let page = folder.path("line.html");
    let wave = 10.0 - (400.0_f64).sin() / 40.0;
    let mut efforts = Vec::new();
    for (integrator, more) in [
        ("dormand_prince", vec![]),
        ("dormand_prince", vec!["--output-step", "0.7"]),
        ("rk4", vec![]),
        ("trapezoidal", vec![]),
        ("dormand_prince", vec!["--objectives-in-error", "false"]),
    ] {
        let options = [&["--integrator", integrator, "--json"], &more[..]].concat();
        let run = |command: &str, more: &[&str]| printed(&[&[command, &file], &options[..], more].concat());
        let simulated = run("simulate", &[]);
        let ran = run("run", &["--report", &page]);
        // The output step is for rows alone, which a gradient has not.
        let options: Vec<&str> =
            options.iter().copied().filter(|word| !["--output-step", "0.7"].contains(word)).collect();
        let [direct, adjoint] = ["direct", "adjoint"]
            .map(|method| printed(&[&["gradient", &file, "--method", method], &options[..]].concat()));
        for (name, exact) in [("square", 1000.0 / 3.0), ("wave", wave)] {
            let value = number(&simulated["objectives"][name]);
            assert_eq!(value, number(&ran["objectives"][name]));
            for found in [&direct, &adjoint] {
                let other = number(&found["objectives"][name]["value"]);
                // Roundings of 200 radians, amplified by steps that nothing controls.
                assert!((value - other).abs() <= 1e-12 * value, "{options:?} {name}: {value} and {other}");
            }
            let tolerance = match (integrator, more.first()) {
                (_, Some(&"--objectives-in-error")) => continue,
                ("trapezoidal", _) => 1e-4,
                _ => 1e-6,
            };
            assert!((value / exact - 1.0).abs() < tolerance, "{options:?} {name}: {value}, exactly {exact}");
        }
        efforts.push(number(&simulated["statistics"]["steps"]));
    }
    // Without them the steps are those of the straight line, and the number is nobody's.
    assert!(efforts[4] < 10.0 && efforts[0] > 100.0, "{efforts:?}");
    let out = done(&["simulate", &file, "--objectives-in-error", "false"]);
    assert!(
        out.contains("objectives not in the error") && out.contains("whose tolerance leaves them out"),
        "{out}"
    );
}

#[test]
fn steps_are_limited_in_size_and_number() {
    let folder = Folder::new();
    let force = "forces: {rub: {type: joint_force, coordinate: slide.displacement, value: \"-F*sign(rate(slide) - 0.5*sin(t))\"}}";
    let file = folder.file("chatter.yaml", pushed(force, ""));
    let ran = mbs(&["simulate", &file, "--max-steps", "2000"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("2000 steps reached no further") && ran.err.contains("chatters"), "{}", ran.err);
    fails(1, &["chatters"], &["gradient", &file, "--max-steps", "2000"]);
    fails(1, &["chatters"], &["gradient", &file, "--max-steps", "2000", "--method", "adjoint"]);
    let gentle = "forces: {pull: {type: joint_force, coordinate: slide.displacement, value: 1}}";
    let file = folder.file("gentle.yaml", pushed(gentle, ""));
    let steps = |more: &[&str]| {
        number(&printed(&[&["simulate", &file, "--json"], more].concat())["statistics"]["steps"])
    };
    let (free, limited) = (steps(&[]), steps(&["--max-step", "0.05"]));
    assert!(free < 20.0 && (200.0..=202.0).contains(&limited), "{free} {limited}");
    let limited = folder.file(
        "limited.yaml",
        pushed(gentle, "").replace("dormand_prince}", "dormand_prince, max_step: 0.1, max_steps: 50}"),
    );
    fails(1, &["at t = 4.", "50 steps reached no further"], &["simulate", &limited]);
    fails(
        2,
        &["`--max-step` belongs to `dormand_prince`"],
        &["simulate", &file, "--integrator", "rk4", "--max-step", "1"],
    );
    fails(2, &["`--max-step` must be positive and finite"], &["simulate", &file, "--max-step", "0"]);
    let wrong = folder
        .file("wrong.yaml", pushed(gentle, "").replace("dormand_prince}", "dormand_prince, max_steps: 0.5}"));
    fails(1, &["the number of steps must be a whole number from 1 to"], &["check", &wrong]);
}

/// A spline through (0, 0), (1, 1), (2, 0), beyond its ends: slopes there are 1.5 and −1.5.
#[test]
fn splines_beyond_their_ends() {
    let folder = Folder::new();
    let model = |outside: &str| {
        format!(
            "mbs: 1\nname: ends\nbodies: {{block: {{mass: 1}}}}\n\
             joints: {{slide: {{type: prismatic, parent: ground, child: block, axis: [1, 0, 0]}}}}\n\
             forces: {{push: {{type: joint_force, coordinate: slide.displacement, value: \"spline(t - 1, [0, 1, 2], [0, 1, 0]{outside})\"}}}}\n\
             outputs: {{push: \"spline(t - 1, [0, 1, 2], [0, 1, 0]{outside})\"}}\nsimulation: {{end: 4, step: 1e-2}}\n"
        )
    };
    for (outside, last) in [("", 0.0), (", cubic", 0.0), (", linear", -1.5), (", clamp", 0.0)] {
        let file = folder.file("ends.yaml", model(outside));
        let found = printed(&["simulate", &file, "--json"]);
        let push = number(&found["final"]["outputs"]["push"]);
        // The end polynomial 1 − 1.5 (x − 1)² + 0.5 (x − 1)³ is −1 at x = 3.
        let last = if outside.is_empty() || outside == ", cubic" { -1.0 } else { last };
        assert!((push - last).abs() < 1e-12, "{outside}: {push}");
    }
    let file = folder.file("ends.yaml", model(", error"));
    for integrator in ["rk4", "dormand_prince", "trapezoidal"] {
        let ran = mbs(&["simulate", &file, "--integrator", integrator]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.err.contains("force `push` (line 5) is not finite"), "{}", ran.err);
    }
}

/// A step as long as the run gives numbers, but not those of the mechanism; at rest nothing drifts.
#[test]
fn energy_that_drifts_far_is_a_warning() {
    let outcome = mbs(&["simulate", &shipped("five_bar"), "--step", "10"]);
    assert!(outcome.err.contains("warning: no force has power, yet the energy drifts"), "{outcome:?}");
    for model in ["five_bar", "two_point_masses", "pendulum"] {
        assert_eq!(mbs(&["simulate", &shipped(model), "--end", "0.5"]).err, "", "{model}");
    }
}
