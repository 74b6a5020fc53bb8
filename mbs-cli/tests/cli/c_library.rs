//! `mbs generate --c-header`: a program in C links the library and has the numbers of the command, to the last digit.

use crate::command::{Folder, done, fails, shipped};
use crate::face::says;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

fn run(command: &mut Command) -> String {
    let output = command.output().expect("it runs");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// Bytes of the functions of a bundle, its segments included, in the output of `nm -S -C`.
fn bytes_of(bundle: &str, symbols: &str) -> u64 {
    let mut all = 0;
    for line in symbols.lines() {
        let mut words = line.split_whitespace();
        let (Some(_), Some(size), Some(_), Some(name)) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            continue;
        };
        let function = name.strip_prefix("cart_pole::cart_pole::").and_then(|name| name.split("::").next());
        let segment = function.and_then(|function| function.strip_prefix(bundle));
        let segment = segment.map(|rest| rest.trim_start_matches('_'));
        if segment.is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit())) {
            all += u64::from_str_radix(size, 16).unwrap_or(0);
        }
    }
    all
}

/// Builds the library of a shipped model and a program in C with it. The program; none without a compiler.
fn built(folder: &Folder, name: &str, source: &str) -> Option<String> {
    if Command::new("cc").arg("--version").output().is_err() {
        println!("skipped: there is no C compiler `cc`");
        return None;
    }
    let library = folder.path("library");
    assert!(done(&["generate", &shipped(name), "--c-header", &library]).contains(&format!("{name}.h")));
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("c_library");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--offline", "--quiet", "--manifest-path"]).arg(format!("{library}/Cargo.toml"));
    // Nothing is inlined, so that every bundle in use has bytes of its own.
    cargo.env("CARGO_PROFILE_DEV_OPT_LEVEL", "0");
    run(cargo.arg("--target-dir").arg(&target));
    let program = folder.path("program");
    let mut compiler = Command::new("cc");
    compiler.args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-I", &library, "-o", &program]);
    compiler.arg(format!("{}/tests/cli/c_library/{source}", env!("CARGO_MANIFEST_DIR")));
    let archive = target.join(format!("debug/lib{name}.a"));
    run(compiler.arg(archive).args(["-lpthread", "-ldl", "-lm"]));
    Some(program)
}

/// What happens in a step is said by place and name, with the times of the command.
#[test]
fn a_program_in_c_is_told_of_events() {
    let folder = Folder::new();
    let Some(program) = built(&folder, "bouncing_ball", "events.c") else { return };
    let printed = run(&mut Command::new(&program));
    let model = shipped("bouncing_ball");
    let said = done(&["simulate", &model, "--end", "2", "--json"]);
    let json: Value = serde_json::from_str(&said).expect("JSON");
    let events = json["events"].as_array().expect("events").len();
    assert!(events >= 3, "{said}");
    let lines: Vec<(&str, f64)> = printed
        .lines()
        .map(|line| line.rsplit_once(' ').expect("a name and a number"))
        .map(|(name, number)| (name, number.parse().expect("a number")))
        .collect();
    let (bounces, rest) = lines.split_at(events);
    assert!(bounces.iter().all(|(name, _)| *name == "bounce"), "{printed}");
    says(&said, bounces.iter().map(|&(_, t)| t));
    let [("height", height), ("by e", by)] = *rest else { panic!("{printed}") };
    says(&said, [height]);
    says(&done(&["gradient", &model, "--end", "2", "--json"]), [by]);
    let report = done(&["generate", &model, "--report"]);
    assert!(report.contains("| scratch of a step |"), "{report}");
}

#[test]
fn a_program_in_c_has_the_numbers_of_the_command() {
    let (folder, model) = (Folder::new(), shipped("cart_pole"));
    let Some(program) = built(&folder, "cart_pole", "main.c") else { return };
    let printed = run(&mut Command::new(&program));
    let found: Vec<f64> = printed.split_whitespace().filter_map(|word| word.parse().ok()).collect();

    // The report looks for the bundles of the module in the linked program: the bytes are those that `nm` finds.
    let report = done(&["generate", &model, "--report", "--fma", "never", "--program", &program]);
    assert!(report.starts_with("cart_pole: f64, fma: never\n"), "{report}");
    let symbols = run(Command::new("nm").args(["-S", "-C", "--defined-only", &program]));
    for bundle in ["prepare", "forward_dynamics", "joint_linearise"] {
        let row = report.lines().find(|line| line.starts_with(&format!("| `{bundle}` |"))).expect("a row");
        let bytes: u64 = row.split('|').nth(5).and_then(|cell| cell.trim().parse().ok()).unwrap_or(0);
        assert!(bytes > 100 && bytes == bytes_of(bundle, &symbols), "{row}\n{symbols}");
    }
    let runtime = report.lines().find_map(|line| line.strip_prefix("| the runtime for it | "));
    let runtime = runtime.and_then(|cell| cell.trim_end_matches(" |").parse::<u64>().ok());
    assert!(runtime.is_some_and(|bytes| bytes > 1000), "{report}");

    let table = done(&["simulate", &model, "--end", "0.1", "--out", "-"]);
    let header: Vec<&str> = table.lines().next().expect("a header").split(',').collect();
    let last: Vec<&str> = table.lines().last().expect("a row").split(',').collect();
    // Time, two coordinates, two velocities.
    let mut expected: Vec<f64> = last[1..5].iter().map(|cell| cell.parse().expect("a number")).collect();
    let json: Value =
        serde_json::from_str(&done(&["gradient", &model, "--end", "0.1", "--json"])).expect("JSON");
    let objective = |name: &str| json["objectives"][name].clone();
    let number = |value: &Value| value.as_f64().expect("a number");
    expected.push(number(&objective("lean")["value"]));
    expected.push(number(&objective("lean")["gradient"]["half"]));
    expected.push(number(&objective("drift")["gradient"]["push"]));
    assert_eq!(found, expected, "{printed}{header:?}");
    assert!(printed.starts_with("rail.x ") && printed.contains("pivot.theta "), "{printed}");
}

#[test]
fn a_library_needs_a_simulation() {
    let (folder, model) = (Folder::new(), shipped("cart_pole"));
    let library = folder.path("library");
    let energy = ["generate", &model, "--bundles", "energy", "--c-header", &library];
    fails(1, &["has no simulation"], &energy);
    folder.file("Cargo.toml", "[package]");
    fails(1, &["holds another crate"], &["generate", &model, "--c-header", &folder.path("")]);
    let two = ["generate", &model, &shipped("pendulum"), "--c-header", &library];
    fails(2, &["`--c-header` writes one library"], &two);
    let report = done(&["generate", &model, "--scalar", "f32", "--report"]);
    assert!(report.contains("cart_pole: f32") && report.contains("| scratch of a step |"), "{report}");
}
