//! `mbs compare`: run a model in all ways that it admits, and show error against time.

use crate::arguments::{Compare, CoordinatesName};
use crate::output::json::pretty;
use crate::output::number::{count, duration, short};
use crate::output::table::Table;
use crate::session::failure::Failure;
use crate::session::progress::Progress;
use crate::session::repeated::again;
use crate::session::settings::overrides;
use crate::session::{differentiated, files, interrupt, model};
use mbs_codegen::model::Coordinates;
use mbs_engine::comparison::{self, Comparison, Errors, Measured, Plan, Resolution, Row, Side, Way};
use mbs_engine::simulation::simulation;
use mbs_report::{Chart, Curve, Kind, Report};
use serde_json::{Value, json};
use std::fmt::Write;
use std::ops::ControlFlow;

/// Parts of the model's step, if no steps are given.
const STEPS: [f64; 4] = [4.0, 2.0, 1.0, 0.5];

/// Runs a model in all ways and shows what came of it.
pub(crate) fn compare(arguments: &Compare) -> Result<(), Failure> {
    let Compare { common, by, .. } = arguments;
    check_numbers(arguments)?;
    if let Some(path) = &arguments.report {
        files::refuse_overwriting("--report", path, "the model", &common.model)?;
        files::check_place(path)?;
    }
    let kinds: &[CoordinatesName] = match &common.coordinates {
        Some(one) => std::slice::from_ref(one),
        None => &[CoordinatesName::Joint, CoordinatesName::Absolute],
    };
    let mut models = Vec::new();
    for kind in kinds {
        models.push((Coordinates::from(*kind).keyword(), differentiated::read_in(common, by, Some(*kind))?));
    }
    let mut sides = Vec::new();
    for (coordinates, model) in &models {
        let case = model::find_case(model, common.case.as_deref())?;
        sides.push(Side { coordinates, model, case });
    }
    let Some(Side { model: source, case, .. }) = sides.first().copied() else { return Ok(()) };
    let step = common.step.unwrap_or(simulation(source, case).step);
    let plan = Plan {
        steps: match arguments.steps.is_empty() {
            true => STEPS.map(|part| part * step).to_vec(),
            false => arguments.steps.clone(),
        },
        tolerances: arguments.tolerances.clone(),
        limit: arguments.limit,
        budget: arguments.budget,
        overrides: overrides(common, None, None),
        set: common.set.clone(),
        engine: common.engine.into(),
    };
    interrupt::install_handler();
    let mut progress = Progress::new((0.0, 1.0));
    let found = comparison::compare(&sides, &plan, &mut |done, total, way| {
        progress.say(&format!("{done} of {total} ways: {}", words(way)));
        if interrupt::is_wanted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let seconds = progress.finish();
    let found = found.map_err(|failure| explain(&failure))?;
    let shown = Shown { arguments, found: &found, name: &source.name, seconds };
    if let Some(path) = &arguments.report {
        files::write_whole(path, &shown.page(&source.description).html())?;
    }
    files::print(&if common.json { pretty(&shown.json()) + "\n" } else { shown.text() })
}

fn check_numbers(arguments: &Compare) -> Result<(), Failure> {
    let single =
        [("--accuracy", arguments.accuracy), ("--limit", arguments.limit), ("--budget", arguments.budget)];
    let lists = [("--steps", &arguments.steps), ("--tolerances", &arguments.tolerances)];
    let all = lists.into_iter().flat_map(|(name, list)| list.iter().map(move |x| (name, *x)));
    match all.chain(single).find(|(_, x)| !(*x > 0.0 && x.is_finite())) {
        Some((name, x)) => {
            Err(Failure::usage(format!("`{name}` must be positive and finite, not {}", short(x))))
        }
        None => Ok(()),
    }
}

fn explain(failure: &comparison::Failure) -> Failure {
    match failure {
        comparison::Failure::Stopped => Failure::interrupted("stopped: nothing was compared"),
        comparison::Failure::Equations(why) => Failure::error(why.clone()),
        comparison::Failure::Reference(reasons) => {
            let mut text = String::from("no run can serve as reference:");
            for (way, why) in reasons {
                let _ = write!(text, "\n  {}: {why}", words(way));
            }
            Failure::error(text)
        }
    }
}

/// The method of a way.
fn method(way: &Way) -> String {
    let integrator = way.integrator.keyword();
    match way.formulation {
        Some(formulation) => format!("{} with {integrator}", formulation.keyword()),
        None if way.recursive => format!("{integrator}, recursive"),
        None => integrator.into(),
    }
}

fn resolution(way: &Way) -> String {
    match way.resolution {
        Resolution::Step(h) => format!("step {} s", short(h)),
        Resolution::Tolerance(x) => format!("tolerance {}", short(x)),
    }
}

fn words(way: &Way) -> String {
    format!("{} coordinates, {}, {}", way.coordinates, method(way), resolution(way))
}

fn error(x: Option<f64>) -> String {
    x.map_or(String::new(), |x| format!("{x:.1e}"))
}

fn errors(errors: &Errors) -> String {
    let mut text = format!("state {}", error(Some(errors.state)));
    for (name, x) in [("objectives", errors.objectives), ("gradient", errors.gradient)] {
        if x.is_some() {
            let _ = write!(text, ", {name} {}", error(x));
        }
    }
    text
}

fn errors_json(errors: &Errors) -> Value {
    json!({"state": errors.state, "objectives": errors.objectives, "gradient": errors.gradient})
}

fn way_json(way: &Way) -> Value {
    let (step, tolerance) = match way.resolution {
        Resolution::Step(h) => (Some(h), None),
        Resolution::Tolerance(x) => (None, Some(x)),
    };
    json!({
        "coordinates": way.coordinates,
        "formulation": way.formulation.map(|formulation| formulation.keyword()),
        "integrator": way.integrator.keyword(),
        "recursive": way.recursive,
        "step": step,
        "tolerance": tolerance,
    })
}

/// Everything a report is made from.
struct Shown<'a> {
    arguments: &'a Compare,
    found: &'a Comparison,
    name: &'a str,
    seconds: f64,
}

impl Shown<'_> {
    fn engine(&self) -> &'static str {
        if self.found.machine_code { "machine code" } else { "the interpreter" }
    }

    fn reference(&self) -> String {
        let reference = &self.found.reference;
        format!("{}; its own errors: {}", words(&reference.way), errors(&reference.errors))
    }

    /// What is recommended, or why nothing is.
    fn recommendation(&self) -> String {
        let accuracy = self.arguments.accuracy;
        let reference = self.found.reference.errors.worst();
        match self.found.recommended(accuracy) {
            Some(Row { way, outcome: Ok(found) }) => {
                let with = if found.gradient_seconds.is_some() { " with the gradient" } else { "" };
                format!(
                    "for errors of at most {}: {}, {}{with}",
                    short(accuracy),
                    words(way),
                    duration(found.time())
                )
            }
            _ if !self.found.judges(accuracy) => format!(
                "none for errors of at most {}: the reference itself is known to {} only",
                short(accuracy),
                error(Some(reference))
            ),
            _ => format!("no way has errors of at most {}; take smaller steps", short(accuracy)),
        }
    }

    /// What was not run.
    fn left_out(&self) -> Option<String> {
        let n = self.found.left_out;
        let budget = short(self.arguments.budget);
        (n > 0).then(|| {
            format!(
                "the {} expected to take longest: the comparison had taken {budget} s, see --budget",
                count(n, "way")
            )
        })
    }

    /// What a way came to; nothing if it failed.
    fn cells(&self, row: &Row) -> Option<Vec<String>> {
        let way = &row.way;
        let mut cells = vec![way.coordinates.to_string(), method(way), resolution(way)];
        match &row.outcome {
            Ok(Measured { errors, steps, seconds, gradient_seconds }) => cells.extend([
                steps.to_string(),
                error(Some(errors.state)),
                error(errors.objectives),
                error(errors.gradient),
                duration(*seconds),
                gradient_seconds.map_or(String::new(), duration),
            ]),
            Err(_) => return None,
        }
        Some(cells)
    }

    /// Methods that failed: coordinates, method, at which resolutions, and why at the first of them.
    fn failed(&self) -> Vec<[String; 4]> {
        let mut failed: Vec<[String; 4]> = Vec::new();
        for row in &self.found.rows {
            let Err(why) = &row.outcome else { continue };
            let (own, method, at) = (row.way.coordinates, method(&row.way), resolution(&row.way));
            match failed.last_mut().filter(|last| last[0] == own && last[1] == method) {
                Some([_, _, all, _]) => {
                    let _ = write!(all, ", {at}");
                }
                None => failed.push([own.into(), method, at, why.clone()]),
            }
        }
        failed
    }

    fn text(&self) -> String {
        let good = self.found.rows.iter().filter(|row| row.outcome.is_ok()).count();
        let mut out = format!(
            "{}: {}, {good} of them well, evaluated as {}, in {}\n",
            self.name,
            count(self.found.rows.len(), "way"),
            self.engine(),
            duration(self.seconds)
        );
        let _ = writeln!(out, "  reference    {}", self.reference());
        let _ = writeln!(out, "  recommended  {}", self.recommendation());
        if let Some(left_out) = self.left_out() {
            let _ = writeln!(out, "  left out     {left_out}");
        }
        out.push('\n');
        let mut table = Table::new(&HEADS);
        for row in &self.found.rows {
            if let Some(Ok(cells)) = self.cells(row).map(<[String; HEADS.len()]>::try_from) {
                table.row(cells);
            }
        }
        out.push_str(&table.print());
        for [coordinates, method, at, why] in self.failed() {
            let _ = writeln!(out, "\n  {coordinates}, {method}, {at}: {why}");
        }
        for (coordinates, why) in &self.found.without {
            let _ = writeln!(out, "\n  {coordinates} coordinates: {why}");
        }
        if let Some(page) = &self.arguments.report {
            let _ = writeln!(out, "\n  page  {}", page.display());
        }
        out
    }

    fn json(&self) -> Value {
        let found = self.found;
        let row = |row: &Row| {
            let mut object = way_json(&row.way);
            match &row.outcome {
                Ok(measured) => {
                    object["errors"] = errors_json(&measured.errors);
                    object["steps"] = json!(measured.steps);
                    object["wall_time"] = json!(measured.seconds);
                    object["wall_time_with_gradient"] = json!(measured.gradient_seconds);
                }
                Err(why) => object["error"] = json!(why),
            }
            object
        };
        json!({
            "model": self.name,
            "reference": {"way": way_json(&found.reference.way), "errors": errors_json(&found.reference.errors)},
            "accuracy": self.arguments.accuracy,
            "recommended": found.recommended(self.arguments.accuracy).map(row),
            "rows": found.rows.iter().map(row).collect::<Vec<_>>(),
            "left_out": found.left_out,
            "without": found.without.iter().map(|(name, why)| json!({"coordinates": name, "error": why})).collect::<Vec<_>>(),
            "machine_code": found.machine_code,
            "wall_time": self.seconds,
        })
    }

    fn page(&self, description: &str) -> Report {
        let mut page = Report {
            title: format!("{}: comparison", self.name),
            description: description.into(),
            run: format!("Recommended {}.", self.recommendation()),
            ..Report::default()
        };
        type Of = fn(&Measured) -> Option<f64>;
        let charts: [(&str, Of, Of); 3] = [
            (
                "Error of the state against computing time",
                |found| Some(found.errors.state),
                |found| Some(found.seconds),
            ),
            (
                "Error of the objectives against computing time",
                |found| found.errors.objectives,
                |found| Some(found.seconds),
            ),
            (
                "Error of the gradient against computing time",
                |found| found.errors.gradient,
                |found| found.gradient_seconds,
            ),
        ];
        for (title, value, time) in charts {
            let curves = self.curves(value, time);
            if !curves.is_empty() {
                let mut sets = vec![("ways that no other beats".to_string(), front(&curves))];
                let mut kinds: Vec<&str> = self.found.rows.iter().map(|row| row.way.coordinates).collect();
                kinds.dedup();
                for kind in kinds {
                    let of = |curve: &&Curve| curve.name.starts_with(&format!("{kind}, "));
                    sets.push((format!("{kind} coordinates"), curves.iter().filter(of).cloned().collect()));
                }
                page.charts.push(Chart {
                    title: title.into(),
                    axis: "relative error".into(),
                    kind: Kind::Paths,
                    logarithmic: true,
                    abscissa: Some("wall time [s]".into()),
                    sets,
                    ..Chart::default()
                });
            }
        }
        page.times.push(Vec::new());
        let about =
            [("reference", self.reference()), ("evaluated as", self.engine().into()), ("call", again())];
        let about = about.into_iter().chain(self.left_out().map(|what| ("left out", what)));
        page.tables = vec![
            mbs_report::Table {
                title: "Errors and computing times".into(),
                heads: HEADS.map(String::from).into(),
                rows: self.found.rows.iter().filter_map(|row| self.cells(row)).collect(),
            },
            mbs_report::Table {
                title: "How they were found".into(),
                heads: vec![String::new(), String::new()],
                rows: about.map(|(name, what)| vec![name.into(), what]).collect(),
            },
        ];
        let mut failed: Vec<Vec<String>> = self.failed().into_iter().map(Vec::from).collect();
        for (coordinates, why) in &self.found.without {
            failed.push(vec![(*coordinates).to_string(), String::new(), String::new(), why.clone()]);
        }
        if !failed.is_empty() {
            page.tables.push(mbs_report::Table {
                title: "Ways that failed".into(),
                heads: ["coordinates", "method", "at", "why"].map(String::from).into(),
                rows: failed,
            });
        }
        page
    }

    /// A path for each way, over its resolutions.
    fn curves(&self, value: fn(&Measured) -> Option<f64>, time: fn(&Measured) -> Option<f64>) -> Vec<Curve> {
        let mut curves: Vec<Curve> = Vec::new();
        for row in &self.found.rows {
            let Some((x, y)) = row.outcome.as_ref().ok().and_then(|found| time(found).zip(value(found)))
            else {
                continue;
            };
            if !(y > 0.0 && y.is_finite()) {
                continue;
            }
            let name = format!("{}, {}", row.way.coordinates, method(&row.way));
            match curves.last_mut().filter(|curve| curve.name == name) {
                Some(curve) => curve.values.extend([x, y]),
                None => curves.push(Curve { name, values: vec![x, y] }),
            }
        }
        curves
    }
}

/// Curves with a point that no other point beats in both time and error.
fn front(curves: &[Curve]) -> Vec<Curve> {
    let points = |curve: &Curve| -> Vec<(f64, f64)> {
        curve.values.chunks_exact(2).map(|point| (point[0], point[1])).collect()
    };
    let all: Vec<(f64, f64)> = curves.iter().flat_map(points).collect();
    let beaten = |&(x, y): &(f64, f64)| all.iter().any(|&(a, b)| a <= x && b <= y && (a < x || b < y));
    curves.iter().filter(|curve| !points(curve).iter().all(beaten)).cloned().collect()
}

const HEADS: [&str; 9] = [
    "coordinates",
    "method",
    "resolution",
    ">steps",
    ">state",
    ">objectives",
    ">gradient",
    ">run",
    ">with gradient",
];
