//! A sweep as a page: scatter plots, parallel coordinates, global sensitivities.

use super::number::{count, short, significant};
use mbs_engine::sweep::{Index, Indices, Plan, Row};
use mbs_report::{Chart, Curve, Kind, Report, Table};

/// Runs beyond these are thinned out evenly in drawings; tables count all.
const DRAWN: usize = 2000;
/// Results and parameters beyond these are left out of drawings.
const SHOWN: usize = 30;
/// Parts of the runs that parallel coordinates tell apart, by the result.
const FIFTHS: [&str; 5] = ["lowest fifth", "second", "third", "fourth", "highest fifth"];

/// What a page shows of a sweep.
pub(crate) struct Swept<'a> {
    pub(crate) title: String,
    pub(crate) description: String,
    pub(crate) call: String,
    pub(crate) plan: &'a Plan,
    pub(crate) results: &'a [String],
    pub(crate) rows: &'a [Row],
    pub(crate) indices: &'a [Indices],
    /// Reasons of failures, and how many runs each has.
    pub(crate) failures: Vec<(String, usize)>,
}

/// The page.
pub(crate) fn sweep_page(swept: &Swept<'_>) -> Report {
    let good: Vec<(&[f64], &[f64])> = swept
        .rows
        .iter()
        .filter_map(|row| Some((row.point.as_slice(), row.result.as_deref().ok()?)))
        .collect();
    let failed = swept.rows.len() - good.len();
    let mut page = Report {
        title: swept.title.clone(),
        description: swept.description.clone(),
        run: format!("{}, {failed} of them failed; {}", count(swept.rows.len(), "run"), swept.call),
        ..Report::default()
    };
    let stride = good.len().div_ceil(DRAWN).max(1);
    let drawn: Vec<(&[f64], &[f64])> = good.iter().copied().step_by(stride).collect();
    indices(&mut page, swept);
    if !drawn.is_empty() {
        scatter(&mut page, swept, &drawn);
        page.charts.extend(parallel(swept, &drawn));
    }
    page.tables = vec![results(swept, &good), failures(swept)];
    page.tables.retain(|table| !table.rows.is_empty());
    page
}

/// Every result over every parameter.
fn scatter(page: &mut Report, swept: &Swept<'_>, drawn: &[(&[f64], &[f64])]) {
    for (k, axis) in swept.plan.axes.iter().enumerate().take(SHOWN) {
        page.times.push(drawn.iter().map(|(point, _)| point[k]).collect());
        let set = |(i, name): (usize, &String)| {
            let values = drawn.iter().map(|(_, results)| results[i]).collect();
            (name.clone(), vec![Curve { name: name.clone(), values }])
        };
        page.charts.push(Chart {
            title: format!("Results over {}", axis.name),
            kind: Kind::Points,
            times: page.times.len() - 1,
            abscissa: Some(axis.name.clone()),
            sets: swept.results.iter().enumerate().take(SHOWN).map(set).collect(),
            ..Chart::default()
        });
    }
}

/// All runs over parameters and a result, each from its smallest to its largest value, in fifths of the result.
fn parallel(swept: &Swept<'_>, drawn: &[(&[f64], &[f64])]) -> Option<Chart> {
    let axes = swept.plan.axes.len().min(SHOWN);
    let range = |value: &dyn Fn(usize) -> f64| {
        let all = || (0..drawn.len()).map(value).filter(|x| x.is_finite());
        (all().fold(f64::INFINITY, f64::min), all().fold(f64::NEG_INFINITY, f64::max))
    };
    let part = |x: f64, (low, high): (f64, f64)| if high > low { (x - low) / (high - low) } else { 0.5 };
    let of_axis: Vec<(f64, f64)> = (0..axes).map(|k| range(&|i| drawn[i].0[k])).collect();
    let label = |name: &str, (low, high): (f64, f64)| format!("{name}: {} to {}", short(low), short(high));
    let mut names: Vec<String> = (0..axes).map(|k| label(&swept.plan.axes[k].name, of_axis[k])).collect();
    names.push("result".into());
    let mut sets = Vec::new();
    for (r, name) in swept.results.iter().enumerate().take(SHOWN) {
        let own = range(&|i| drawn[i].1[r]);
        let mut order: Vec<usize> = (0..drawn.len()).filter(|i| drawn[*i].1[r].is_finite()).collect();
        order.sort_by(|a, b| drawn[*a].1[r].total_cmp(&drawn[*b].1[r]));
        let curves = FIFTHS.iter().enumerate().map(|(fifth, word)| {
            let (from, to) = (order.len() * fifth / 5, order.len() * (fifth + 1) / 5);
            let line = |i: &usize| {
                let (point, results) = drawn[*i];
                let mut line: Vec<f64> = (0..axes).map(|k| part(point[k], of_axis[k])).collect();
                line.push(part(results[r], own));
                line
            };
            Curve { name: (*word).into(), values: order[from..to].iter().flat_map(line).collect() }
        });
        sets.push((label(name, own), curves.collect()));
    }
    (!sets.is_empty()).then(|| Chart {
        title: "Parallel coordinates, by".into(),
        axis: "part of the range".into(),
        kind: Kind::Parallel(names),
        abscissa: Some(String::new()),
        sets,
        ..Chart::default()
    })
}

/// Bars of global sensitivities.
fn indices(page: &mut Report, swept: &Swept<'_>) {
    let mut sets = Vec::new();
    for indices in swept.indices.iter().filter(|indices| !indices.axes.is_empty()) {
        let curve = |name: &str, of: fn(&Index) -> f64| Curve {
            name: name.into(),
            values: indices.axes.iter().map(of).collect(),
        };
        let curves = match indices.axes[0] {
            Index::Sobol { .. } => vec![
                curve("alone", |index| if let Index::Sobol { first, .. } = index { *first } else { 0.0 }),
                curve(
                    "with others",
                    |index| if let Index::Sobol { total, .. } = index { *total } else { 0.0 },
                ),
            ],
            Index::Morris { .. } => vec![
                curve("mean size", |index| if let Index::Morris { size, .. } = index { *size } else { 0.0 }),
                curve("deviation", |index| {
                    if let Index::Morris { deviation, .. } = index { *deviation } else { 0.0 }
                }),
            ],
        };
        sets.push((indices.name.clone(), curves));
    }
    let Some(first) = swept.indices.iter().find(|indices| !indices.axes.is_empty()) else { return };
    let sobol = matches!(first.axes[0], Index::Sobol { .. });
    page.charts.push(Chart {
        title: if sobol { "Sobol's indices of" } else { "Morris' effects on" }.into(),
        axis: if sobol { "part of the variance" } else { "effect" }.into(),
        kind: Kind::Bars(swept.plan.axes.iter().map(|axis| axis.name.clone()).collect()),
        abscissa: Some(String::new()),
        sets,
        ..Chart::default()
    });
}

/// Mean, deviation and extremes of every result.
fn results(swept: &Swept<'_>, good: &[(&[f64], &[f64])]) -> Table {
    let row = |(i, name): (usize, &String)| {
        let values = || good.iter().map(|(_, results)| results[i]);
        let n = good.len() as f64;
        let mean = values().sum::<f64>() / n;
        let variance = values().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
        let (low, high) =
            (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
        vec![name.clone(), short(mean), short(variance.sqrt()), significant(low, 9), significant(high, 9)]
    };
    Table {
        title: "Results".into(),
        heads: ["result", ">mean", ">deviation", ">least", ">most"].map(String::from).into(),
        rows: swept.results.iter().enumerate().filter(|_| !good.is_empty()).map(row).collect(),
    }
}

fn failures(swept: &Swept<'_>) -> Table {
    Table {
        title: "Failed runs".into(),
        heads: [">runs", "reason"].map(String::from).into(),
        rows: swept.failures.iter().map(|(why, n)| vec![n.to_string(), why.clone()]).collect(),
    }
}
