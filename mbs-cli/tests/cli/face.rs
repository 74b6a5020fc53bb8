//! `Simulation` and `gradient` of generated modules give the numbers of the command, to the last digit: mechanisms with closed loops that
//! start moving, with and without Euler parameters, by every family of methods; and the README's example.

use crate::command::{done, shipped};
use mbs_macros::model_solver;
use mbs_runtime::simulation::GradientMethod;
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
    serde_json::from_str(&said(verb, arguments)).expect("JSON")
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

const LINKAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/face/bouncing_linkage.yaml");
const HOP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/face/stiff_ball.yaml");

const SPATIAL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/face/spatial.yaml");

model_solver! {
    mod planar = "../models/four_bar_2.yaml";
    mod spatial = "tests/cli/face/spatial.yaml";
    mod moved = "tests/cli/face/spatial.yaml" { case: "moved" }
    mod ball = "../models/bouncing_ball.yaml";
    mod linkage = "../models/five_bar_bouncing.yaml";
    mod leg = "../models/hopping_leg.yaml";
    mod methods = "tests/cli/face/bouncing_linkage.yaml";
    mod stiff_ball = "tests/cli/face/stiff_ball.yaml"
}

/// The text has all of these numbers, to the last digit.
pub(crate) fn says(text: &str, numbers: impl IntoIterator<Item = f64>) {
    let is_number = |c: char| c.is_ascii_digit() || "+-.e".contains(c);
    let said: Vec<f64> = text.split(|c| !is_number(c)).filter_map(|word| word.parse().ok()).collect();
    for number in numbers {
        assert!(said.contains(&number), "{number:?} is not in {text}");
    }
}

/// Steps a module's simulation past its events: times of events, the state at the end and the gradient are those of the command.
macro_rules! bounces {
    ($module:ident, $setup:expr, $arguments:expr, $least:expr, $step:ident) => {{
        let (setup, arguments): (_, &[&str]) = ($setup, $arguments);
        let mut simulation = $module::Simulation::with(setup).expect("a start");
        let mut times = Vec::new();
        while simulation.t() < setup.settings.end {
            let begun = simulation.t();
            let happened = simulation.$step().expect("small steps");
            assert!(happened.iter().all(|seen| begun < seen.t && seen.t <= simulation.t()));
            times.extend(happened.iter().map(|seen| seen.t));
        }
        let found = json("simulate", arguments);
        assert!(times.len() >= $least, "{times:?}");
        assert_eq!(times.len(), found["events"].as_array().expect("events").len());
        let text = said("simulate", arguments);
        says(&text, times);
        says(&text, simulation.z().to_array());
        says(&text, simulation.v().to_array());
        // From a state in the middle the same bits.
        simulation.restart().expect("a start");
        simulation.run_to(0.5 * setup.settings.end).expect("small steps");
        let kept = simulation.state();
        simulation.run_to(setup.settings.end).expect("small steps");
        let end = simulation.z().to_array();
        simulation.restore(kept);
        simulation.run_to(setup.settings.end).expect("small steps");
        assert_eq!(printed(simulation.z().to_array()), printed(end));

        let found = $module::gradient_of(&setup).expect("a gradient").to_array();
        says(&said("gradient", arguments), found);

        // By the adjoint, in memory of the caller: the command's numbers, and the direct ones to rounding.
        let by_adjoint = |numbers: usize| {
            let found = $module::gradient_by(&setup, GradientMethod::Adjoint, &mut vec![f64::NAN; numbers]);
            found.map(|(found, took)| (found.to_array(), took.expect("an adjoint").recomputed))
        };
        let mut numbers = 1 << 20;
        let (back, least) = by_adjoint(numbers).expect("enough memory");
        says(&said("gradient", &[arguments, &["--method", "adjoint"]].concat()), back);
        let rows = back.chunks(1 + $module::DIMS.sensitivity.parameters);
        for (row, direct) in rows.zip(found.chunks(1 + $module::DIMS.sensitivity.parameters)) {
            let size = row.iter().fold(0.0, |size: f64, x| size.max(x.abs()));
            for (x, y) in row.iter().zip(direct) {
                assert!((x - y).abs() <= 1e-10 * size, "{row:?} is not {direct:?}");
            }
        }
        // The same bits in less memory, until there is too little.
        let mut most = least;
        let error = loop {
            numbers -= numbers / 12;
            match by_adjoint(numbers) {
                Ok((found, recomputed)) => {
                    assert_eq!(printed(found), printed(back));
                    most = most.max(recomputed);
                }
                Err(error) => break error.to_string(),
            }
        };
        assert!(error.contains("memory") && most > least, "{error}, {least}, {most}");
    }};
}

fn said(verb: &str, arguments: &[&str]) -> String {
    let all: Vec<&str> = [verb].into_iter().chain(arguments.iter().copied()).chain(["--json"]).collect();
    done(&all)
}

#[test]
fn a_ball_bounces_in_generated_code() {
    bounces!(ball, ball::Setup::new(Default::default()), &[&shipped("bouncing_ball")], 14, step);
}

#[test]
fn a_linkage_bounces_in_generated_code() {
    let setup = linkage::Setup::new(Default::default());
    bounces!(linkage, setup, &[&shipped("five_bar_bouncing")], 3, step);
}

#[test]
fn a_leg_hops_in_generated_code() {
    let setup = leg::Setup::new(Default::default());
    bounces!(leg, setup, &[&shipped("hopping_leg")], 4, step_by_signals);
}

/// Implicit Runge–Kutta methods, step control and independent coordinates.
#[test]
fn every_family_of_methods_goes_past_events() {
    bounces!(stiff_ball, stiff_ball::Setup::new(Default::default()), &[HOP], 2, step);
    bounces!(methods, methods::Setup::new(Default::default()), &[LINKAGE], 1, step);
    let names: Vec<&str> = methods::CASES.iter().map(|case| case.name()).collect();
    assert_eq!(names, ["chosen", "chosen_controlled"]);
    for &case in methods::CASES {
        bounces!(methods, methods::Setup::of_case(case), &[LINKAGE, "--case", case.name()], 1, step);
    }
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
    assert_eq!(
        names,
        ["damped", "explicit", "controlled", "stiff", "independent", "stiff_independent", "moved"]
    );
    // A module of one case alone.
    agrees!(moved, moved::Setup::new(Default::default()), &[SPATIAL, "--case", "moved"]);
}
