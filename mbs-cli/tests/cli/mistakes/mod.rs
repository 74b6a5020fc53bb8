//! What a new user meets: wrong names, files and places, full disks, interrupts. Every message says what is wrong, nothing half-written
//! stays, and what there is is kept.

mod files;

use super::command::{self, Folder, command, fails, mbs, shipped, text};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long a run may take to write its first rows on a busy computer.
const PATIENCE: Duration = Duration::from_secs(180);

#[test]
fn pages_that_cannot_be_written() {
    let folder = Folder::new();
    let model = shipped("pendulum");
    let nowhere = folder.path("nowhere/page.html");
    fails(1, &["cannot write", "there is no directory `", "nowhere`"], &["run", &model, "-o", &nowhere]);
    fails(2, &["would overwrite the model"], &["run", &model, "-o", &model]);
    fails(2, &["a page is a file"], &["run", &model, "-o", "-"]);
    let own = folder.path("");
    fails(1, &["cannot write"], &["run", &model, "-o", &own]);
    // A place that cannot be written to is found before the run, not after it.
    let start = Instant::now();
    fails(1, &["cannot write"], &["run", &shipped("five_bar"), "--end", "1e5", "-o", &nowhere]);
    assert!(start.elapsed() < Duration::from_secs(60), "the run itself takes many minutes");
    if Path::new("/dev/full").exists() {
        fails(1, &["cannot write `/dev/full`: no space left on device"], &["run", &model, "-o", "/dev/full"]);
        fails(
            1,
            &["cannot write `/dev/full`: no space left on device"],
            &["simulate", &model, "--out", "/dev/full"],
        );
    }
    assert_eq!(folder.names(), [""; 0], "nothing half-written stays");
}

#[test]
fn an_interrupt_keeps_the_results() {
    let folder = Folder::new();
    let (file, page) = (folder.path("long.csv"), folder.path("long.html"));
    let model = shipped("five_bar");
    for what in ["run", "simulate"] {
        let mut arguments = vec![what, &model, "--end", "100000", "--out", &file];
        if what == "run" {
            arguments.extend(["-o", &page]);
        }
        let mut child =
            command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a run");
        // Until it writes.
        let start = Instant::now();
        while std::fs::metadata(&file).map_or(0, |found| found.len()) < 20_000 {
            assert!(start.elapsed() < PATIENCE && child.try_wait().expect("a state").is_none());
            std::thread::sleep(Duration::from_millis(20));
        }
        let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        if !sent.is_ok_and(|status| status.success()) {
            let _ = child.kill();
            let _ = child.wait();
            println!("skipped: no `kill` here");
            return;
        }
        let outcome: command::Outcome = child.wait_with_output().expect("an end").into();
        assert_eq!(outcome.code, Some(130), "{outcome:?}");
        assert!(outcome.err.contains("stopped at t = "), "{outcome:?}");
        assert!(outcome.err.contains(&format!("`{file}` keeps the ")), "{outcome:?}");
        let rows = text(&file);
        let columns = rows.lines().next().expect("a head").split(',').count();
        assert!(rows.lines().all(|row| row.split(',').count() == columns), "whole rows");
        assert!(rows.ends_with('\n'));
        if what == "run" {
            assert!(text(&page).contains("stopped at t = "));
        }
        std::fs::remove_file(&file).expect("the file");
    }
}

/// The one object that a command printed.
fn object(arguments: &[&str], code: i32) -> Value {
    let outcome = mbs(arguments);
    assert_eq!(outcome.code, Some(code), "{arguments:?}: {outcome:?}");
    serde_json::from_str(&outcome.out).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {outcome:?}"))
}

#[test]
fn programs_get_an_object_for_every_error() {
    let folder = Folder::new();
    let typo = folder.file("typo.yaml", text(&shipped("pendulum")).replace("joints:", "joint:"));
    let (nowhere, model) = (folder.path("nowhere.yaml"), shipped("pendulum"));
    for command in ["run", "check", "simulate", "kinematics", "gradient", "verify", "equilibrium", "modes"] {
        let missing = object(&[command, &nowhere, "--json"], 1);
        assert!(missing["error"].as_str().is_some_and(|error| error.contains("no such file")), "{missing}");
        let wrong = object(&[command, &typo, "--json"], 1);
        let problems = wrong["problems"].as_array().expect("problems");
        let helps =
            |problem: &Value| problem["message"].as_str().is_some_and(|text| text.contains("`joint`"));
        assert!(problems.iter().any(|problem| helps(problem) && problem["line"].is_u64()), "{wrong}");
        let usage = object(&[command, &model, "--json", "--nothing"], 2);
        assert_eq!(usage["error"], "unexpected argument '--nothing' found");
    }
    let missing = object(&["run", "--json"], 2);
    assert_eq!(missing["error"], "the following required arguments were not provided: <MODEL>");
    for wrong in [["--set", "x=1"], ["--case", "x"], ["--step", "-1"], ["--step", "x"]] {
        assert!(object(&[&["simulate", &model, "--json"], &wrong[..]].concat(), 2)["error"].is_string());
    }
}

#[test]
fn a_torn_row_is_taken_away() {
    // A disk of 64 KiB, where this user may make one.
    let folder = Folder::new();
    let small = folder.path("small");
    std::fs::create_dir(&small).expect("a folder");
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=64k", "none", &small])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !mounted {
        println!("skipped: no disk can be made here");
        return;
    }
    let file = format!("{small}/results.csv");
    let outcome = mbs(&["simulate", &shipped("five_bar"), "--out", &file]);
    // Whatever happened, the disk goes first.
    let rows = std::fs::read_to_string(&file);
    let unmounted = Command::new("umount").arg(&small).status();
    assert!(unmounted.is_ok_and(|status| status.success()));
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert!(outcome.err.contains("no space left on device"), "{outcome:?}");
    let rows = rows.expect("a file");
    let columns = rows.lines().next().expect("a head").split(',').count();
    assert!(rows.len() > 50_000 && rows.ends_with('\n'));
    assert!(rows.lines().all(|row| row.split(',').count() == columns), "whole rows");
    let last = rows.lines().last().and_then(|row| row.split(',').next()).expect("a time");
    let last: f64 = last.parse().expect("a number");
    let told = outcome
        .err
        .split("keeps the results up to t = ")
        .nth(1)
        .and_then(|rest| rest.trim().parse::<f64>().ok());
    assert!(told.is_some_and(|told| (told - last).abs() <= 1e-8 * last), "{outcome:?}");
}

#[test]
fn an_interrupt_of_the_gradient_keeps_the_run() {
    let folder = Folder::new();
    let (file, page) = (folder.path("run.csv"), folder.path("run.html"));
    let model = shipped("five_bar");
    let arguments = ["run", &model, "--end", "40", "--output-step", "40", "--out", &file, "-o", &page];
    let mut child = command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a run");
    // Until its last row is there; the gradient takes longer than the run.
    let start = Instant::now();
    while !std::fs::read_to_string(&file).is_ok_and(|rows| rows.contains("\n40.0,")) {
        assert!(start.elapsed() < PATIENCE && child.try_wait().expect("a state").is_none());
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(50));
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    if !sent.is_ok_and(|status| status.success()) {
        let _ = child.kill();
        let _ = child.wait();
        println!("skipped: no `kill` here");
        return;
    }
    let outcome: command::Outcome = child.wait_with_output().expect("an end").into();
    assert_eq!(outcome.code, Some(130), "{outcome:?}");
    assert!(outcome.err.contains("the run is whole, its gradient was stopped at t = "), "{outcome:?}");
    assert!(text(&page).contains("its gradient was stopped at t = "));
}

#[test]
fn what_a_new_user_may_type() {
    let folder = Folder::new();
    fails(1, &["there is no such file; did you mean", "five_bar.yaml"], &["run", &shipped("five_bra")]);
    fails(1, &["it is a directory"], &["run", &folder.path("")]);
    let empty = folder.file("empty.yaml", "");
    fails(1, &["it is empty"], &["run", &empty]);
    let typo = text(&shipped("pendulum")).replace("joints:", "joint:");
    let typo = folder.file("typo.yaml", typo);
    fails(1, &["did you mean `joints`?", "typo.yaml:"], &["run", &typo]);
    fails(2, &["has no case `nothing`"], &["run", &shipped("pendulum"), "--case", "nothing"]);
    fails(2, &["unrecognized subcommand", "simulate"], &["simulat", &shipped("pendulum")]);
    fails(2, &["cannot set `k_9`"], &["run", &shipped("five_bar"), "--set", "k_9=1"]);
    fails(2, &["parameter `Z`; there are: m, L, angle"], &["run", &shipped("pendulum"), "--set", "Z=1"]);
    let by = ["gradient", &shipped("pendulum"), "--sensitivity", "q"];
    fails(2, &["parameter or input `q`; there are: m, L, angle"], &by);
    let outcome = fails(
        2,
        &["for time to advance by it, not 1e-320"],
        &["run", &shipped("pendulum"), "--step", "1e-320"],
    );
    assert!(outcome.err.len() < 200, "{outcome:?}");
}
