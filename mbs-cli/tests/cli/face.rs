//! `Simulation` and `gradient` of generated modules give the numbers of the command, to the last digit: mechanisms with closed loops that
//! start moving, with and without Euler parameters, by every family of methods; and the README's example.

use crate::command::{done, shipped};
use mbs_macros::model_solver;
use serde_json::Value;
use std::ops::ControlFlow;

/// A printed row of results: time, coordinates, velocities, outputs, energies, multipliers.
type Row = Vec<String>;

fn printed(values: impl IntoIterator<Item = f64>) -> Row {
    values.into_iter().map(|value| format!("{value:?}")).collect()
}

/// Runs a module's simulation and compares all of it with the command's table, and the gradient with the command's.
macro_rules! agrees {
    ($module:ident, $setup:expr, $arguments:expr) => {{
        let setup = $setup;
        let mut simulation = $module::Simulation::with(setup).expect("a start");
        assert!(simulation.v().to_array().iter().any(|v| *v != 0.0), "it starts moving");
        let mut rows = Vec::new();
        let run = simulation.run(|now| {
            let energy = now.energy();
            let mut row = vec![now.t()];
            row.extend(now.z().to_array());
            row.extend(now.v().to_array());
            row.extend(now.output().to_array());
            row.extend(energy.to_array());
            row.extend(now.lambda().to_array());
            rows.push(printed(row));
            ControlFlow::Continue(())
        });
        run.expect("small steps");
        same_table(&rows, $arguments);

        let found = $module::gradient_of(&setup).expect("a gradient").to_array();
        let json = json("gradient", $arguments);
        let objectives = json["objectives"].as_object().expect("objectives");
        let mut expected = Vec::new();
        for objective in objectives.values() {
            expected.push(number(&objective["value"]));
            expected.extend(objective["gradient"].as_object().expect("a gradient").values().map(number));
        }
        assert_eq!(printed(found), printed(expected), "{:?}", $arguments);
    }};
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn json(verb: &str, arguments: &[&str]) -> Value {
    let all: Vec<&str> = [verb].into_iter().chain(arguments.iter().copied()).chain(["--json"]).collect();
    serde_json::from_str(&done(&all)).expect("JSON")
}

/// The command's table has these rows; inputs and the power of constraints, which it also has, are left out.
fn same_table(rows: &[Row], arguments: &[&str]) {
    let all: Vec<&str> =
        ["simulate"].into_iter().chain(arguments.iter().copied()).chain(["--out", "-"]).collect();
    let table = done(&all);
    let mut lines = table.lines();
    let header: Vec<&str> = lines.next().expect("a header").split(',').collect();
    let is_left_out: Vec<bool> =
        header.iter().map(|column| *column == "push" || column.contains("drive")).collect();
    let expected: Vec<Row> = lines
        .map(|line| {
            let cells = line.split(',').zip(&is_left_out).filter(|(_, is_left_out)| !**is_left_out);
            cells.map(|(cell, _)| cell.to_string()).collect()
        })
        .collect();
    assert_eq!(rows.len(), expected.len(), "{arguments:?}");
    for (row, expected) in rows.iter().zip(&expected) {
        assert_eq!(row, expected, "{arguments:?}: {header:?}");
    }
}

const SPATIAL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/face/spatial.yaml");

model_solver! {
    mod planar = "../models/four_bar_2.yaml";
    mod spatial = "tests/cli/face/spatial.yaml";
    mod moved = "tests/cli/face/spatial.yaml" { case: "moved" }
}

/// The README's example, which prints into [`LINES`].
mod readme {
    thread_local! {
        /// What it prints.
        pub(super) static LINES: std::cell::RefCell<Vec<String>> = const { std::cell::RefCell::new(Vec::new()) };
    }

    macro_rules! println {
        ($($text:tt)*) => { LINES.with_borrow_mut(|lines| lines.push(format!($($text)*))) };
    }

    include!("../../../tests/examples/readme.rs.in");

    pub(super) fn run() -> Vec<String> {
        main().expect("small steps");
        LINES.take()
    }
}

#[test]
fn the_example_of_the_readme() {
    let model = shipped("five_bar");
    let at_end = json("simulate", &[&model, "--set", "k_1=150"]);
    let state = |name: &str| &at_end["final"]["coordinates"][name];
    let expected = format!(
        "{:?} rad, {:?} N",
        number(state("A.angle")),
        number(&at_end["final"]["multipliers"]["P2.x"])
    );
    let judged = json("gradient", &[&model, "--set", "k_1=150"]);
    let psi = &judged["objectives"]["psi1"];
    let gradient = format!("{:?}, by L_s1 {:?}", number(&psi["value"]), number(&psi["gradient"]["L_s1"]));
    assert_eq!(readme::run(), [expected, gradient]);
}

#[test]
fn a_planar_linkage_that_starts_moving() {
    agrees!(planar, planar::Setup::new(Default::default()), &[&shipped("four_bar_2")]);
}

#[test]
fn a_spatial_linkage_that_starts_moving() {
    agrees!(spatial, spatial::Setup::new(Default::default()), &[SPATIAL]);
}

/// Each has a method of its own; one has other parameters and start values, too.
#[test]
fn cases_of_a_spatial_linkage() {
    for &case in spatial::CASES {
        agrees!(spatial, spatial::Setup::of_case(case), &[SPATIAL, "--case", case.name()]);
    }
    let names: Vec<&str> = spatial::CASES.iter().map(|case| case.name()).collect();
    assert_eq!(names, ["damped", "explicit", "controlled", "stiff", "moved"]);
    // A module of one case alone.
    agrees!(moved, moved::Setup::new(Default::default()), &[SPATIAL, "--case", "moved"]);
}
