//! `mbs verify`: check all derivatives of a model and the gradient of a run, and show the worst errors.

use crate::arguments::{CoordinatesName, Verify};
use crate::output::number::{count, duration, short, significant};
use crate::output::table::Table;
use crate::output::{json as report_json, text};
use crate::session::execution::failed;
use crate::session::failure::Failure;
use crate::session::progress::Progress;
use crate::session::settings::{self, overrides};
use crate::session::{differentiated, files, model as session};
use mbs_engine::Interpreted;
use mbs_engine::gradient;
use mbs_engine::simulation::{InstanceError, Settings, interpret, refuse_unfit, simulation};
use mbs_engine::verify::{self, AdjointCheck, Check, Compared, Oracle, Report, RunCheck};
use mbs_runtime::StepError;
use serde_json::{Value, json};
use std::fmt::Write;
use std::time::Instant;

/// Checks a model's derivatives and shows the result.
pub(crate) fn verify(arguments: &Verify) -> Result<(), Failure> {
    let Verify { common, by, differences, against, method, .. } = arguments;
    if let Some(other) = against {
        return compare_coordinates(arguments, *other);
    }
    let mut model = differentiated::read(common, by)?;
    settings::name_independent(&mut model, common, method)?;
    let case = session::find_case(&model, common.case.as_deref())?;
    let constrained = model.is_constrained();
    let overrides = overrides(common, None, Some(method));
    let settings = if arguments.kinematics {
        settings::refuse_method(&overrides)?;
        Settings::of_kinematics(simulation(&model, case), constrained, &overrides)
    } else {
        Settings::of_dynamics(simulation(&model, case), constrained, &overrides)
    };
    let settings = settings.map_err(|error| settings::refuse(&error))?;
    refuse_unfit(&model, case, &settings).map_err(|error| session::explain(&model, &error))?;
    let bundles = verify::bundles(&settings.simulation, constrained);
    let interpreted = session::write_equations(&model, || interpret(&model, case, &common.set, bundles))?;
    if interpreted.program().coordinates.is_empty() {
        return Err(session::explain(&model, &InstanceError::NothingMoves));
    }
    settings::note_idle(&settings);
    let simulation = &settings.simulation;
    let mut progress = Progress::new((simulation.begin, simulation.end));
    let watch = |now: verify::Progress| match now {
        verify::Progress::Running(t) => progress.reached(t),
        verify::Progress::Comparing => progress.say("comparing emitted derivatives"),
        verify::Progress::Moved(done, of) => {
            progress.say(&format!("comparing the gradient: {done} of {} moved", count(of, "parameter")));
        }
    };
    // What is set is the default of what is checked.
    let mut checked = Interpreted::new(interpreted.program_as_set());
    settings::choose_engine(&mut checked, common.engine, &settings);
    let outcome = match arguments.kinematics {
        true => verify::report_of_driven(&checked, &settings, watch),
        false => verify::report_of(checked, simulation, *differences, watch),
    };
    let seconds = progress.finish();
    let found = outcome.map_err(|failure| {
        let (verify::Failure::Start(error)
        | verify::Failure::Run(error)
        | verify::Failure::Differences(error)) = &failure;
        let more = differentiated::undefined(&model, case, &common.set, &settings, error);
        explain(&interpreted, failure).and(&more)
    })?;
    for jump in &found.jumps {
        files::complain(&format!("warning: {jump}\n"));
    }
    let shown = Shown { arguments, model: &interpreted, settings: &settings, report: &found, seconds };
    files::print(&if common.json { report_json::pretty(&shown.json()) + "\n" } else { shown.text() })?;
    if found.passed() { Ok(()) } else { Err(Failure::said()) }
}

/// Compares objectives and gradient of a run in two kinds of coordinates.
fn compare_coordinates(arguments: &Verify, other: CoordinatesName) -> Result<(), Failure> {
    let Verify { common, by, method, .. } = arguments;
    let mut sides = Vec::new();
    for coordinates in [common.coordinates, Some(other)] {
        let mut model = differentiated::read_in(common, by, coordinates)?;
        settings::name_independent(&mut model, common, method)?;
        let case = session::find_case(&model, common.case.as_deref())?;
        let constrained = model.is_constrained();
        let overrides = overrides(common, None, Some(method));
        let settings = Settings::of_dynamics(simulation(&model, case), constrained, &overrides);
        let settings = settings.map_err(|error| settings::refuse(&error))?;
        refuse_unfit(&model, case, &settings).map_err(|error| session::explain(&model, &error))?;
        let bundles = gradient::bundles(&settings.simulation, constrained);
        let written = session::write_equations(&model, || interpret(&model, case, &common.set, bundles));
        let mut interpreted = written?;
        settings::choose_engine(&mut interpreted, common.engine, &settings);
        sides.push((interpreted, settings, model.model.coordinates));
    }
    let [(a, a_settings, a_name), (b, b_settings, b_name)] = &sides[..] else { return Ok(()) };
    if a_name == b_name {
        let message = format!("`--against {}` names the coordinates that the model has", b_name.keyword());
        return Err(Failure::usage(format!("{message}; give other ones by `--coordinates`")));
    }
    let begun = Instant::now();
    let found = verify::agreement([(a, &a_settings.simulation), (b, &b_settings.simulation)]);
    let found = found.map_err(|(number, error)| {
        let (model, _, name) = &sides[number];
        Failure::error(format!("the run in {} coordinates failed {}", name.keyword(), error.describe(model)))
    })?;
    if found.is_empty() {
        return Err(Failure::error(
            "the model has no objectives, so there is nothing to compare; write `objectives`",
        ));
    }
    let names = [a_name.keyword(), b_name.keyword()];
    let passed = found.iter().all(Compared::passed);
    files::print(&match common.json {
        true => report_json::pretty(&agreement_json(&found, names, passed)) + "\n",
        false => {
            let head = text::head(a.program(), a_settings, a_settings.simulation.end);
            agreement_text(head, &found, names)
                + &format!("\n{}  in {}\n", verdict(passed), duration(begun.elapsed().as_secs_f64()))
        }
    })?;
    if passed { Ok(()) } else { Err(Failure::said()) }
}

fn agreement_text(mut out: String, found: &[Compared], [a, b]: [&str; 2]) -> String {
    out.push_str(
        "\n  in two kinds of coordinates, with half the step; allowed is what halving the step changes\n",
    );
    let columns = ["objective", "by", &format!(">{a}"), &format!(">{b}"), ">difference", ">allowed", ""];
    let mut table = Table::new(&columns);
    for one in found {
        let name = if one.by.is_none() { one.objective.as_str() } else { "" };
        table.row([
            name.into(),
            one.by.clone().unwrap_or_default(),
            significant(one.values[0], 9),
            significant(one.values[1], 9),
            error(one.difference()),
            error(one.allowed),
            if one.passed() { String::new() } else { "FAIL".into() },
        ]);
    }
    out.push_str(&table.print());
    out
}

fn agreement_json(found: &[Compared], [a, b]: [&str; 2], passed: bool) -> Value {
    let row = |one: &Compared| {
        json!({
            "objective": one.objective,
            "by": one.by,
            a: one.values[0],
            b: one.values[1],
            "difference": one.difference(),
            "allowed": one.allowed,
            "passed": one.passed(),
        })
    };
    json!({ "passed": passed, "compared": found.iter().map(row).collect::<Vec<_>>() })
}

fn explain(model: &Interpreted, failure: verify::Failure) -> Failure {
    let (words, error) = match failure {
        verify::Failure::Start(error @ StepError::NotDifferentiable { .. }) => {
            (error.describe(model).to_string(), error)
        }
        verify::Failure::Start(error) => (format!("the run cannot start: {}", error.describe(model)), error),
        verify::Failure::Run(error @ (StepError::Setting { .. } | StepError::NotDifferentiable { .. })) => {
            return Failure::usage(error.describe(model).to_string());
        }
        verify::Failure::Run(error) => (failed("the run", &error, model), error),
        verify::Failure::Differences(error) => (failed("a run with a moved parameter", &error, model), error),
    };
    Failure::error(format!("{words}{}", differentiated::remedy(&error)))
}

/// Everything a report is made from.
struct Shown<'a> {
    arguments: &'a Verify,
    model: &'a Interpreted,
    settings: &'a Settings,
    report: &'a Report,
    seconds: f64,
}

/// PASS or FAIL.
fn verdict(passed: bool) -> &'static str {
    if passed { "PASS" } else { "FAIL" }
}

fn error(error: f64) -> String {
    if error == 0.0 { "0".into() } else { format!("{error:.1e}") }
}

impl Shown<'_> {
    fn text(&self) -> String {
        let program = self.model.program();
        let mut out = text::head(program, self.settings, self.settings.simulation.end);
        out.push_str(&text::with(&self.arguments.common.set));
        self.print_derivatives(&mut out);
        self.print_runs(&mut out);
        let _ = writeln!(out, "\n{}  in {}", verdict(self.report.passed()), duration(self.seconds));
        out
    }

    fn print_derivatives(&self, out: &mut String) {
        let report = self.report;
        let visited: Vec<String> = report
            .instants
            .iter()
            .filter(|looked| !looked.disturbed)
            .map(|looked| short(looked.instant.t))
            .collect();
        let beside = report.instants.len() - visited.len();
        let _ = writeln!(
            out,
            "\n  emitted derivatives against complex steps, at t = {} s{}; allowed {:e}",
            visited.join(", "),
            if beside > 0 { format!(" and {beside} instants beside the run") } else { String::new() },
            verify::TOLERANCE
        );
        let mut table = Table::new(&["bundle", "derivative", ">error", ">allowed", "of", "by", ">at", ""]);
        let mut before = "";
        for check in &report.derivatives {
            let bundle = if check.bundle == before { "" } else { check.bundle };
            before = check.bundle;
            let exact = check.error == 0.0;
            table.row([
                bundle.into(),
                check.derivative.into(),
                error(check.error),
                if check.tolerance > verify::TOLERANCE {
                    format!("{:.0e}", check.tolerance)
                } else {
                    String::new()
                },
                if exact { String::new() } else { check.of.clone() },
                if exact { String::new() } else { check.by.clone() },
                if exact { String::new() } else { self.place(check) },
                if check.passed() { String::new() } else { "FAIL".into() },
            ]);
        }
        out.push_str(&table.print());
        for bundle in &report.unseen {
            let _ = writeln!(out, "  {bundle}: could not be evaluated at any of these  FAIL");
        }
        if report.redundant() {
            out.push_str(REDUNDANT);
        }
    }

    fn place(&self, check: &Check) -> String {
        match self.report.instants.get(check.instant) {
            _ if check.bundle == "start_derivatives" => "the start".into(),
            Some(looked) if looked.disturbed => format!("beside {}", short(looked.instant.t)),
            Some(looked) => short(looked.instant.t),
            None => String::new(),
        }
    }

    fn print_runs(&self, out: &mut String) {
        let runs = &self.report.runs;
        if self.model.program().sensitivity.is_empty() {
            out.push_str(
                "\n  no gradient: the model says nothing of what it is differentiated by; write `sensitivity: […]`, or give \
                 `--sensitivity NAMES`\n",
            );
            return;
        }
        let by_differences = runs.iter().any(|check| check.oracle == Oracle::Differences);
        let _ = match by_differences {
            false => writeln!(
                out,
                "\n  the gradient against complex steps of whole runs; allowed {:e}",
                verify::TOLERANCE_OF_RUNS
            ),
            true => writeln!(
                out,
                "\n  the gradient against extrapolated differences of whole runs; allowed {:e}, or what they are known to",
                verify::TOLERANCE_OF_DIFFERENCES
            ),
        };
        if self.model.program().objectives.is_empty() {
            out.push_str("  the model has no objectives\n");
        }
        let least = match by_differences {
            true => verify::TOLERANCE_OF_DIFFERENCES,
            false => verify::TOLERANCE_OF_RUNS,
        };
        let mut table =
            Table::new(&["derivative of", ">error", ">allowed", "of", "by", ">found", ">expected", ""]);
        for check in runs {
            let RunCheck { what, of, by, found, expected, .. } = check;
            table.row([
                what.clone(),
                error(check.error),
                if check.tolerance > least { format!("{:.0e}", check.tolerance) } else { String::new() },
                if of == what { String::new() } else { of.clone() },
                by.clone(),
                significant(*found, 9),
                significant(*expected, 9),
                if check.passed() { String::new() } else { "FAIL".into() },
            ]);
        }
        out.push_str(&table.print());
        self.tell_of_adjoints(out);
    }

    /// How the adjoint compares, in one line.
    fn tell_of_adjoints(&self, out: &mut String) {
        let excess = |check: &AdjointCheck| (check.error / check.tolerance).abs();
        let rank = |check: &AdjointCheck| (!check.passed(), excess(check));
        let order = |a: &&AdjointCheck, b: &&AdjointCheck| {
            let ((a, x), (b, y)) = (rank(a), rank(b));
            a.cmp(&b).then(x.total_cmp(&y))
        };
        let Some(worst) = self.report.adjoints.iter().max_by(order) else { return };
        let allowed = match (worst.passed(), worst.tells()) {
            (true, _) => format!("allowed {:.0e}", worst.tolerance),
            (false, true) => format!("allowed {:.0e}  FAIL", worst.tolerance),
            (false, false) => {
                format!("roundings change it by {:.0e}: nothing can be told  FAIL", worst.tolerance)
            }
        };
        let found = error(worst.error);
        let _ = writeln!(
            out,
            "\n  the adjoint gives the same gradient to {found} of a row, worst of {}; {allowed}",
            worst.what
        );
    }

    fn json(&self) -> Value {
        let (program, report) = (self.model.program(), self.report);
        let derivative = |check: &Check| {
            json!({
                "bundle": check.bundle,
                "derivative": check.derivative,
                "entries": check.entries,
                "error": check.error,
                "of": check.of,
                "by": check.by,
                "t": report.instants.get(check.instant).map(|looked| looked.instant.t),
                "beside_the_run": report.instants.get(check.instant).is_some_and(|looked| looked.disturbed),
                "passed": check.passed(),
            })
        };
        let run = |check: &RunCheck| {
            json!({
                "what": check.what,
                "oracle": match check.oracle {
                    Oracle::ComplexSteps => "complex steps",
                    Oracle::Differences => "differences",
                },
                "error": check.error,
                "tolerance": check.tolerance,
                "of": check.of,
                "by": check.by,
                "found": check.found,
                "expected": check.expected,
                "passed": check.passed(),
            })
        };
        json!({
            "passed": report.passed(),
            "model": program.name,
            "file": self.arguments.common.model.display().to_string(),
            "case": program.case,
            "simulation": report_json::simulation(self.settings, None),
            "tolerance": verify::TOLERANCE,
            "derivatives": report.derivatives.iter().map(derivative).collect::<Vec<_>>(),
            "not_evaluated": report.unseen,
            "gradient": report.runs.iter().map(run).collect::<Vec<_>>(),
            "adjoint": report.adjoints.iter().map(|check| json!({
                "what": check.what,
                "error": check.error,
                "tolerance": check.tolerance,
                "passed": check.passed(),
            })).collect::<Vec<_>>(),
            "jumps": report_json::jumps(&report.jumps),
            "redundant_constraints": report.redundant(),
            "wall_time": self.seconds,
        })
    }
}

const REDUNDANT: &str = "  constraints depend on each other: in joint form, accelerations and the forces Φᵀλ of the multipliers are compared, along
  changes that keep the constraints; multipliers by themselves are a choice, that of least norm\n";
