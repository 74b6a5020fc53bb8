//! An optimisation as a page: history, parameters and motions before and after.

use super::number::{short, significant};
use mbs_codegen::analysis::Analysed;
use mbs_engine::optimisation::{Outcome, Problem, Search};
use mbs_engine::simulation::history_columns;
use mbs_report::{Chart, Curve, Report, Scene, Table};

/// Curves beyond these are left out of a page.
const CURVES: usize = 30;

/// The page.
pub(crate) fn optimum_page(
    source: &Analysed,
    problem: &mut Problem,
    outcome: &Outcome,
    call: &str,
) -> Report {
    let best = outcome.best();
    let mut page = Report {
        title: format!("{}: {}", source.name, problem.name),
        description: source.description.clone(),
        run: format!(
            "{} = {} before, {} after; {call}",
            problem.goal,
            significant(best.start_cost, 9),
            significant(best.cost, 9)
        ),
        ..Report::default()
    };
    history(&mut page, outcome);
    for case in 0..problem.runs() {
        motions(&mut page, source, problem, case, best);
    }
    if page.scene.is_some() {
        page.run.push_str("; in the scene, the motion before is grey");
    }
    page.tables = vec![unknowns(problem, best), constraints(problem, best), active(best)];
    page.tables.retain(|table| !table.rows.is_empty());
    page
}

/// Cost and projected gradient over iterations.
fn history(page: &mut Report, outcome: &Outcome) {
    for (i, search) in outcome.searches.iter().enumerate() {
        page.times.push(search.history.iter().map(|iteration| iteration.number as f64).collect());
        let number = if outcome.searches.len() > 1 { format!(", start {}", i + 1) } else { String::new() };
        let curve = |name: &str, values: Vec<f64>| Curve { name: name.into(), values };
        let of = |value: fn(&mbs_engine::optimisation::Iteration) -> f64| {
            search.history.iter().map(value).collect()
        };
        let mut chart = |title: &str, logarithmic: bool, curves: Vec<Curve>| {
            page.charts.push(Chart {
                title: format!("{title}{number}"),
                logarithmic,
                times: page.times.len() - 1,
                abscissa: Some("iteration".into()),
                sets: vec![(String::new(), curves)],
                ..Chart::default()
            });
        };
        chart("Cost", false, vec![curve("cost", of(|iteration| iteration.cost))]);
        let gradient = of(|iteration| iteration.projected_gradient.unwrap_or(f64::NAN));
        let mut curves =
            vec![curve("projected gradient", gradient), curve("step", of(|iteration| iteration.step))];
        if search.history.iter().any(|iteration| iteration.violation > 0.0) {
            curves.push(curve("violation", of(|iteration| iteration.violation)));
        }
        chart("Convergence", true, curves);
    }
}

/// The colour of the motion before.
const BEFORE: [u8; 3] = [0xa8, 0xa8, 0xa8];

/// Coordinates and outputs of a case before and after, and both motions in one scene.
fn motions(page: &mut Report, source: &Analysed, problem: &mut Problem, case: usize, best: &Search) {
    let (mut found, mut scenes) = (Vec::new(), Vec::new());
    for (word, x) in [("before", &best.start), ("after", &best.x)] {
        let Some(motion) = problem.motion(case, x) else { continue };
        let Some(history) = &motion.record.seen.history else { continue };
        let columns = history_columns(source, motion.model.program(), &motion.settings);
        let program = motion.model.program();
        let (nq, nv) = (program.coordinates.len(), program.velocities.len());
        let outputs = nq + nv + program.inputs.len();
        let places = (0..nq).chain(outputs..outputs + program.outputs.len()).take(CURVES);
        let curves: Vec<(String, Vec<f64>)> =
            places.map(|k| (columns[k].name.clone(), history.values(k).to_vec())).collect();
        if page.scene.is_none() {
            let case = motion.case.and_then(|name| source.cases.iter().find(|case| case.name == name));
            scenes.push(Scene::new(source, case, motion.model.parameters(), history.times(), |i, z| {
                z.iter_mut().enumerate().for_each(|(k, z)| *z = history.values(k)[i]);
            }));
        }
        found.push((word, history.times().to_vec(), curves, motion.case.map(String::from)));
    }
    if let Some(after) = scenes.pop().flatten() {
        let mut scene = after;
        if let Some(before) = scenes.pop().flatten() {
            scene.overlay(before, "before:", BEFORE);
        }
        page.scene = Some(scene);
    }
    // Curves of one chart have the same times; with step control the two runs do not.
    let [(_, times, before, name), (_, other, after, _)] = found.as_slice() else { return };
    if times != other {
        return;
    }
    page.times.push(times.clone());
    let sets = before.iter().zip(after).map(|((name, before), (_, after))| {
        let curve = |word: &str, values: &Vec<f64>| Curve { name: word.into(), values: values.clone() };
        (name.clone(), vec![curve("before", before), curve("after", after)])
    });
    let title = match name {
        Some(name) => format!("Before and after, case {name}"),
        None => "Before and after".into(),
    };
    page.charts.push(Chart { title, times: page.times.len() - 1, sets: sets.collect(), ..Chart::default() });
}

fn unknowns(problem: &Problem, best: &Search) -> Table {
    let rows = problem.variables.iter().zip(best.start.iter().zip(&best.x));
    let bound = |x: f64| if x.is_finite() { short(x) } else { String::new() };
    Table {
        title: "Parameters".into(),
        heads: ["name", "unit", ">at least", ">before", ">after", ">at most"].map(String::from).into(),
        rows: rows
            .map(|(variable, (before, after))| {
                vec![
                    variable.name.clone(),
                    variable.unit.clone(),
                    bound(variable.lower),
                    short(*before),
                    significant(*after, 9),
                    bound(variable.upper),
                ]
            })
            .collect(),
    }
}

/// Constraints before and after.
fn constraints(problem: &Problem, best: &Search) -> Table {
    let values = [&best.start_evaluation, &best.evaluation].map(|evaluation| problem.row_values(evaluation));
    let bound = |x: f64| if x.is_finite() { short(x) } else { String::new() };
    let rows = problem.rows.iter().enumerate().map(|(i, row)| {
        let [before, after] = [&values[0], &values[1]].map(|values| significant(values[i], 9));
        vec![row.name.clone(), bound(row.lower), before, after, bound(row.upper)]
    });
    Table {
        title: "Constraints".into(),
        heads: ["name", ">at least", ">before", ">after", ">at most"].map(String::from).into(),
        rows: rows.collect(),
    }
}

/// Bounds and constraints that hold the cost back.
fn active(best: &Search) -> Table {
    let mut rows = Vec::new();
    if let Some(optimality) = &best.optimality {
        for bound in &optimality.bounds {
            let side = if bound.is_upper { "upper bound" } else { "lower bound" };
            rows.push(vec![
                bound.name.clone(),
                side.into(),
                short(bound.value),
                significant(bound.multiplier, 6),
            ]);
        }
        for row in &optimality.rows {
            rows.push(vec![
                row.name.clone(),
                "constraint".into(),
                short(row.value),
                significant(row.multiplier, 6),
            ]);
        }
    }
    let heads = ["name", "", ">at", ">multiplier"].map(String::from).into();
    Table { title: "Active at the optimum".into(), heads, rows }
}
