//! The result of a run as a page: which curves and tables it shows.

use super::gradient;
use super::number::{count, duration, grouped, short, significant};
use super::shown::Shown;
use super::text::{head, with};
use mbs_engine::gradient::Ran;
use mbs_engine::simulation::{Column, Curves, Effort, EventSeen, history_columns};
use mbs_report::{Chart, Curve, Report, Scene, Table};

/// A run with derivatives.
pub(crate) struct Derivatives {
    pub(crate) ran: Ran,
    /// Of coordinate i by parameter k at `i * p + k`.
    pub(crate) curves: Curves,
}

/// Curves beyond these are left out of a chart; the file of results has them all.
const CURVES: usize = 60;
/// Numbers of a chart with many sets of curves; sets beyond them are left out.
const NUMBERS: usize = 1_500_000;

/// The page.
pub(crate) fn page(
    shown: &Shown<'_>,
    derivatives: Option<&Derivatives>,
    trouble: Option<&str>,
    note: Option<&str>,
) -> Report {
    let program = shown.model.program();
    let run = head(program, shown.settings, shown.record.seen.now.t) + &with(shown.set);
    let mut page = Report {
        title: program.name.clone(),
        description: program.description.clone(),
        run: run.trim_end().replace("\n  ", ", "),
        trouble: trouble.or(note).map(String::from),
        marks: marks(shown),
        ..Report::default()
    };
    if let Some(history) = shown.record.seen.history.as_ref().filter(|history| !history.times().is_empty()) {
        page.scene = scene(shown, history);
        page.times.push(history.times().to_vec());
        page.charts = charts(shown, history);
    }
    if let Some(derivatives) = derivatives {
        page.times.push(derivatives.curves.times().to_vec());
        page.charts.extend(sensitivities(shown, derivatives, page.times.len() - 1));
    }
    page.tables = [
        objectives(shown),
        events(shown),
        gradients(shown, derivatives),
        statistics(shown, derivatives),
        summary(shown),
        parameters(shown),
    ]
    .into_iter()
    .filter(|table| !table.rows.is_empty())
    .collect();
    page
}

/// Marks of a page; of more events, the first ones.
const MARKS: usize = 400;

/// Where events happened.
fn marks(shown: &Shown<'_>) -> Vec<(f64, String)> {
    let names = &shown.model.program().events.names;
    let mark = |event: &EventSeen| (event.t, names[event.event].clone());
    shown.record.seen.events.iter().take(MARKS).map(mark).collect()
}

fn scene(shown: &Shown<'_>, history: &Curves) -> Option<Scene> {
    Scene::new(shown.source, shown.case, shown.model.parameters(), history.times(), |i, z| {
        z.iter_mut().enumerate().for_each(|(k, z)| *z = history.values(k)[i]);
    })
}

/// Curves of one unit in a chart each.
fn by_unit(title: &str, columns: &[Column], values: impl Fn(usize) -> Vec<f64>) -> Vec<Chart> {
    let mut seen: Vec<&str> = Vec::new();
    for Column { unit, .. } in columns {
        if !seen.contains(&unit.as_str()) {
            seen.push(unit);
        }
    }
    let chart = |unit: &str| {
        let places = (0..columns.len()).filter(|&i| columns[i].unit == unit).take(CURVES);
        let curves = places.map(|i| Curve { name: columns[i].name.clone(), values: values(i) }).collect();
        let axis = if unit.is_empty() { String::new() } else { format!("[{unit}]") };
        Chart { title: title.into(), axis, sets: vec![(String::new(), curves)], ..Chart::default() }
    };
    seen.into_iter().map(chart).collect()
}

fn charts(shown: &Shown<'_>, history: &Curves) -> Vec<Chart> {
    let program = shown.model.program();
    let columns = history_columns(shown.source, program, shown.settings);
    let (nq, nv) = (program.coordinates.len(), program.velocities.len());
    let outputs = nq + nv + program.inputs.len();
    let energy = outputs + program.outputs.len();
    let part = |title: &str, from: usize, to: usize| {
        by_unit(title, &columns[from..to], |i| history.values(from + i).to_vec())
    };
    let mut charts = part("Coordinates", 0, nq);
    charts.extend(part("Outputs", outputs, energy));
    charts.push(energies(history, energy));
    charts.extend(norms(shown, history, columns.len()));
    charts.extend(part("Velocities", nq, nq + nv));
    charts.extend(part("Inputs", nq + nv, outputs));
    if shown.settings.constrained {
        let first = energy + 4;
        charts.extend(part("Multipliers of constraints", first, first + shown.record.seen.now.lambda.len()));
    }
    charts.retain(|chart| chart.sets.iter().any(|(_, curves)| !curves.is_empty()));
    charts
}

/// Energies, and the change of their sum.
fn energies(history: &Curves, first: usize) -> Chart {
    let [kinetic, potential] = [0, 1].map(|k| history.values(first + k).to_vec());
    let total: Vec<f64> = kinetic.iter().zip(&potential).map(|(t, v)| t + v).collect();
    let start = total.first().copied().unwrap_or(0.0);
    let change = total.iter().map(|e| e - start).collect();
    let curve = |name: &str, values| Curve { name: name.into(), values };
    let parts = vec![curve("kinetic", kinetic), curve("potential", potential), curve("total", total)];
    let sets = vec![
        (String::from("kinetic, potential, total"), parts),
        (String::from("change of the total"), vec![curve("total − total at the start", change)]),
    ];
    Chart { title: "Energy".into(), axis: "[J]".into(), sets, ..Chart::default() }
}

/// Violations of the constraints.
fn norms(shown: &Shown<'_>, history: &Curves, columns: usize) -> Option<Chart> {
    shown.settings.constrained.then(|| {
        let names = ["positions", "velocities", "accelerations"];
        let curve = |(k, name): (usize, &str)| Curve {
            name: name.into(),
            values: history.values(columns - 3 + k).to_vec(),
        };
        let curves = names.into_iter().enumerate().map(curve).collect();
        Chart {
            title: "Violation of constraints: the largest residual".into(),
            logarithmic: true,
            sets: vec![(String::new(), curves)],
            ..Chart::default()
        }
    })
}

/// Derivatives of each coordinate over time.
fn sensitivities(shown: &Shown<'_>, derivatives: &Derivatives, times: usize) -> Option<Chart> {
    let (program, curves) = (shown.model.program(), &derivatives.curves);
    let p = program.sensitivity.len();
    let room = NUMBERS / (curves.times().len() * p.min(CURVES)).max(1);
    let set = |(i, name): (usize, &String)| {
        let one = |(k, by): (usize, &String)| Curve {
            name: format!("by {by}"),
            values: curves.values(i * p + k).to_vec(),
        };
        (format!("of {name}"), program.sensitivity.iter().enumerate().take(CURVES).map(one).collect())
    };
    let sets: Vec<_> = program.coordinates.iter().enumerate().take(room.max(1)).map(set).collect();
    (!sets.is_empty() && !curves.times().is_empty()).then(|| Chart {
        title: "Sensitivities".into(),
        times,
        sets,
        ..Chart::default()
    })
}

fn heads(heads: &[&str]) -> Vec<String> {
    heads.iter().map(|head| String::from(*head)).collect()
}

fn objectives(shown: &Shown<'_>) -> Table {
    let program = shown.model.program();
    let values = shown.record.seen.objectives();
    let row = |((name, unit), value): (&(String, String), &f64)| {
        vec![name.clone(), significant(*value, 9), unit.clone()]
    };
    Table {
        title: "Objectives".into(),
        heads: heads(&["objective", ">value", "unit"]),
        rows: program.objectives.iter().zip(&values).map(row).collect(),
    }
}

fn events(shown: &Shown<'_>) -> Table {
    let events = &shown.model.program().events;
    let row = |event: &EventSeen| {
        let impulses: Vec<String> = event.impulses.iter().map(|&impulse| short(impulse)).collect();
        let (name, enters) = (events.names[event.event].clone(), events.enters[event.event].join(", "));
        vec![name, significant(event.t, 12), enters, impulses.join(", ")]
    };
    Table {
        title: "Events".into(),
        heads: heads(&["event", ">t [s]", "enters", ">impulses"]),
        rows: shown.record.seen.events.iter().map(row).collect(),
    }
}

/// Every objective by every parameter.
fn gradients(shown: &Shown<'_>, derivatives: Option<&Derivatives>) -> Table {
    let Some(Derivatives { ran, .. }) = derivatives else { return Table::default() };
    let (model, program) = (shown.model, shown.model.program());
    let mut table =
        Table { title: "Gradient".into(), heads: heads(&["by", ">value", "unit"]), rows: Vec::new() };
    for (i, (name, _)) in program.objectives.iter().enumerate() {
        if ran.found.is_rounding(model, i).contains(&true) {
            table.title = "Gradient; 0 may stand for rounding".into();
        }
        table.heads.push(format!(">d {name}"));
        let rows = gradient::rows(model, &ran.found, i);
        for (k, [by, value, unit, derivative, _]) in rows.into_iter().enumerate() {
            match table.rows.get_mut(k) {
                Some(row) => row.push(derivative),
                None => table.rows.push(vec![by, value, unit, derivative]),
            }
        }
    }
    table
}

fn statistics(shown: &Shown<'_>, derivatives: Option<&Derivatives>) -> Table {
    let (record, settings) = (shown.record, shown.settings);
    let mut rows: Vec<[String; 2]> = Vec::new();
    let mut add = |what: &str, value: String| rows.push([what.into(), value]);
    match &record.effort {
        Effort::Unknown => {}
        Effort::Explicit(s) => {
            add("steps", grouped(s.steps));
            add("rejected steps", grouped(s.rejected));
            add("evaluations", grouped(s.evaluations));
        }
        Effort::Implicit(s) => {
            add("steps", grouped(s.steps));
            add(
                "Newton iterations",
                format!("{}, at most {} in a step", grouped(s.iterations), s.max_iterations),
            );
            add("tangents", grouped(s.tangents));
            add("projections", grouped(s.projections));
            add("factorisations with pivoting", grouped(s.fallbacks));
        }
    }
    add("time of the run", duration(record.seconds));
    if let Some(derivatives) = derivatives {
        add("time with derivatives", duration(derivatives.ran.seconds));
    }
    let span = record.seen.now.t - settings.simulation.begin;
    add("times real time", significant(span / record.seconds, 3));
    if let Some(norms) = &record.seen.norms {
        let [z, zd, zdd] = [norms.position, norms.velocity, norms.acceleration].map(|x| significant(x, 2));
        add("largest violation", format!("{z} in positions, {zd} in velocities, {zdd} in accelerations"));
    }
    if let Some(error) = record.seen.balance.relative_error() {
        add(
            "error of the energy balance",
            format!("{} of the largest kinetic energy", significant(error, 2)),
        );
    }
    Table { title: "Solver".into(), heads: heads(&["", ""]), rows: rows.into_iter().map(Vec::from).collect() }
}

fn summary(shown: &Shown<'_>) -> Table {
    let (model, program) = (shown.source, shown.model.program());
    let mut kinds: Vec<(&str, usize)> = Vec::new();
    for joint in &model.joints {
        match kinds.iter_mut().find(|(kind, _)| *kind == joint.kind.keyword()) {
            Some((_, n)) => *n += 1,
            None => kinds.push((joint.kind.keyword(), 1)),
        }
    }
    let joints: Vec<String> = kinds.iter().map(|(kind, n)| format!("{n} {kind}")).collect();
    let rank = shown.record.assembly.as_ref().map_or(0, |found| found.statistics.rank);
    let mut rows = vec![
        ["file".into(), shown.file.display().to_string()],
        ["bodies".into(), format!("{} and ground", grouped(model.bodies.len().saturating_sub(1)))],
        ["joints".into(), joints.join(", ")],
        ["coordinates".into(), grouped(program.coordinates.len())],
        ["degrees of freedom".into(), grouped(program.coordinates.len().saturating_sub(rank))],
        ["forces".into(), grouped(model.forces.len())],
    ];
    if shown.settings.constrained {
        let equations = count(program.holonomic.len() + program.nonholonomic.len(), "equation");
        let cut = if program.cuts.is_empty() {
            String::new()
        } else {
            format!("; cut: {}", program.cuts.join(", "))
        };
        rows.push(["constraints".into(), format!("{equations}{cut}")]);
    }
    Table { title: "Model".into(), heads: heads(&["", ""]), rows: rows.into_iter().map(Vec::from).collect() }
}

fn parameters(shown: &Shown<'_>) -> Table {
    let program = shown.model.program();
    let units = program.parameters.iter().flat_map(|p| p.defaults.iter().map(move |_| p.unit.clone()));
    let row = |((name, value), unit): ((String, &f64), String)| vec![name, short(*value), unit];
    Table {
        title: "Parameters".into(),
        heads: heads(&["name", ">value", "unit"]),
        rows: program
            .parameter_names()
            .into_iter()
            .zip(shown.model.parameters())
            .zip(units)
            .map(row)
            .collect(),
    }
}
