//! Measurements: columns of a run by name, at times, with weights; and the same columns of a run at these times.

use crate::Interpreted;
use crate::failures::describe;
use crate::simulation::{self, Follower, Settings, columns};
use mbs_codegen::diagnostics::nearest;
use mbs_codegen::model::Model;
use std::fmt;
use std::ops::ControlFlow;

/// A measured column.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Its name among the columns of a run.
    pub name: String,
    /// Its values; none where nothing was measured.
    pub values: Vec<Option<f64>>,
    /// Weight of each, the inverse of its standard deviation up to a common factor.
    pub weights: Vec<f64>,
}

/// Measured columns over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measurements {
    /// Times, s; they increase. A time that is there twice is that of an event: before it, and after it.
    pub times: Vec<f64>,
    /// Columns.
    pub columns: Vec<Measured>,
}

/// What is wrong with measurements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasurementError(pub(crate) String);

impl fmt::Display for MeasurementError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for MeasurementError {}

impl Measurements {
    /// From a table with a head. `t` is the time; `weight` the weight of all columns of a row, `NAME.weight` that of one; an empty cell was not
    /// measured.
    pub fn of_table(head: &[String], rows: &[Vec<String>]) -> Result<Measurements, MeasurementError> {
        let wrong = |message: String| Err(MeasurementError(message));
        let place = |name: &str| head.iter().position(|own| own.trim() == name);
        let Some(t) = place("t") else { return wrong("there is no column `t` with the times".into()) };
        let number = |row: usize, column: usize| -> Result<Option<f64>, MeasurementError> {
            let text = rows[row].get(column).map_or("", |text| text.trim());
            match text.parse::<f64>() {
                _ if text.is_empty() => Ok(None),
                Ok(x) if x.is_finite() => Ok(Some(x)),
                _ => Err(MeasurementError(format!(
                    "row {}, column `{}`: `{text}` is not a number",
                    row + 2,
                    head[column]
                ))),
            }
        };
        let mut found = Measurements::default();
        for row in 0..rows.len() {
            let Some(time) = number(row, t)? else { return wrong(format!("row {} has no time", row + 2)) };
            let last = |back: usize| found.times.len().checked_sub(back).map(|i| found.times[i]);
            if last(1).is_some_and(|last| last > time) || last(2).is_some_and(|last| last >= time) {
                return wrong(format!(
                    "row {}: times must increase, and {time} does not (only a time of an event may be there twice)",
                    row + 2
                ));
            }
            found.times.push(time);
        }
        let is_weight = |name: &str| name == "weight" || name.ends_with(".weight");
        for (column, name) in head.iter().enumerate().map(|(i, name)| (i, name.trim())) {
            if column == t || is_weight(name) {
                continue;
            }
            let weight = place(&format!("{name}.weight")).or_else(|| place("weight"));
            let mut measured = Measured { name: name.into(), values: Vec::new(), weights: Vec::new() };
            for row in 0..rows.len() {
                measured.values.push(number(row, column)?);
                let weight = weight.map_or(Ok(Some(1.0)), |column| number(row, column))?.unwrap_or(1.0);
                if weight < 0.0 {
                    return wrong(format!("row {}: the weight of `{name}` is negative", row + 2));
                }
                measured.weights.push(weight);
            }
            found.columns.push(measured);
        }
        if found.columns.is_empty() || found.count() == 0 {
            return wrong(
                "nothing was measured: there is no column beside `t`, or no cell has a number".into(),
            );
        }
        Ok(found)
    }

    /// How many numbers were measured.
    pub fn count(&self) -> usize {
        self.columns.iter().flat_map(|column| &column.values).flatten().count()
    }

    /// The places of the columns in a run, if it has them and goes over all times.
    pub(super) fn places(
        &self,
        model: &Model,
        interpreted: &Interpreted,
        settings: &Settings,
    ) -> Result<Vec<usize>, MeasurementError> {
        let all = columns(model, interpreted.program(), settings);
        let names = || all.iter().skip(1).map(|column| column.name.as_str());
        let (begin, end) = (settings.simulation.begin, settings.simulation.end);
        if let Some(t) = self.times.iter().find(|t| **t < begin || **t > end) {
            return Err(MeasurementError(format!("t = {t} is outside the run, from {begin} to {end} s")));
        }
        let place = |column: &Measured| {
            names().position(|own| own == column.name).ok_or_else(|| {
                let help = match nearest(&column.name, names()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "columns are those of `mbs simulate --out`".into(),
                };
                MeasurementError(format!("the run has no column `{}`; {help}", column.name))
            })
        };
        self.columns.iter().map(place).collect()
    }

    /// r of a run that left these samples: of each node the time, then the measured columns.
    pub(super) fn residuals(&self, nodes: &[(f64, Vec<f64>)]) -> Vec<f64> {
        let mut residuals = Vec::with_capacity(self.count());
        for (i, t) in self.times.iter().enumerate() {
            let again = i > 0 && self.times[i - 1] == *t;
            let around = stencil(nodes, *t, again);
            for (k, column) in self.columns.iter().enumerate() {
                let Some(measured) = column.values[i] else { continue };
                let y: f64 = around.iter().map(|(node, weight)| weight * nodes[*node].1[k]).sum();
                residuals.push((y - measured) * column.weights[i]);
            }
        }
        residuals
    }
}

/// Nodes around a time and their weights: of the cubic through the four nearest, or of one node that is there. An event leaves two nodes at its
/// time: no cubic goes over it, and at its time the node is the one before it, or the one after it (`after_event`).
fn stencil(nodes: &[(f64, Vec<f64>)], t: f64, after_event: bool) -> Vec<(usize, f64)> {
    // Times of nodes carry a few roundings.
    let near = |i: &usize| (nodes[*i].0 - t).abs() <= 1e-12 * t.abs().max(1e-3);
    let next = nodes.partition_point(|(node, _)| *node < t);
    let mut here = (next.saturating_sub(2)..nodes.len().min(next + 2)).filter(near);
    if let Some(i) = if after_event { here.next_back() } else { here.next() } {
        return vec![(i, 1.0)];
    }
    let event = |i: usize| nodes[i].0 == nodes[i - 1].0;
    let begin = (1..next).rev().find(|i| event(*i)).unwrap_or(0);
    let end = (next.max(1)..nodes.len()).find(|i| event(*i)).unwrap_or(nodes.len());
    let first = next.saturating_sub(2).min(end.saturating_sub(4)).max(begin);
    let some: Vec<usize> = (first..end.min(first + 4)).collect();
    let weight = |i: usize| {
        let others = some.iter().filter(|j| **j != i);
        others.map(|j| (t - nodes[*j].0) / (nodes[i].0 - nodes[*j].0)).product::<f64>()
    };
    some.iter().map(|&i| (i, weight(i))).collect()
}

/// Takes the measured columns of a run.
struct Recorder<'a> {
    places: &'a [usize],
    nodes: Vec<(f64, Vec<f64>)>,
    stop: &'a dyn Fn() -> bool,
}

impl Follower for Recorder<'_> {
    fn wants_rows(&self) -> bool {
        true
    }

    fn row(&mut self, t: f64, parts: &[&[f64]]) -> ControlFlow<()> {
        let at = |place: usize| parts.iter().copied().flatten().nth(place).copied().unwrap_or(f64::NAN);
        self.nodes.push((t, self.places.iter().map(|place| at(*place)).collect()));
        ControlFlow::Continue(())
    }

    fn reached(&mut self, _: f64) -> ControlFlow<()> {
        if (self.stop)() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// The measured columns of a run at all its nodes, or why there are none.
pub(super) fn record(
    model: &Interpreted,
    settings: &Settings,
    places: &[usize],
    stop: &dyn Fn() -> bool,
) -> Result<Vec<(f64, Vec<f64>)>, String> {
    let mut recorder = Recorder { places, nodes: Vec::new(), stop };
    let record = simulation::run(model, settings, &mut recorder);
    match &record.failure {
        Some(failure) => Err(describe(model, failure)),
        None => Ok(recorder.nodes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Result<Measurements, String> {
        let mut lines = text.lines().map(|line| line.split(',').map(String::from).collect::<Vec<_>>());
        let head = lines.next().unwrap_or_default();
        Measurements::of_table(&head, &lines.collect::<Vec<_>>()).map_err(|error| error.to_string())
    }

    #[test]
    fn tables_are_read() {
        let found = table("t,x,y,x.weight\n0,1,2,10\n0.5,,3,\n").unwrap();
        assert_eq!(found.count(), 3);
        assert_eq!(found.columns[0].weights, [10.0, 1.0]);
        assert_eq!(found.columns[1].weights, [1.0, 1.0]);
        for (text, words) in [
            ("x\n1", "no column `t`"),
            ("t\n1", "nothing was measured"),
            ("t,x\n1,2\n1,3\n1,4", "times must increase"),
            ("t,x\n1,2\n0.5,3", "times must increase"),
            ("t,x\n1,a", "`a` is not a number"),
            ("t,x\n,1", "no time"),
            ("t,x,weight\n1,2,-1", "negative"),
        ] {
            assert!(table(text).is_err_and(|error| error.contains(words)), "{text}");
        }
    }

    #[test]
    fn between_nodes_a_cubic_is_exact() {
        let f = |t: f64| 1.0 - 2.0 * t + 3.0 * t * t - t * t * t;
        let nodes: Vec<(f64, Vec<f64>)> =
            (0..10).map(|i| (0.1 * f64::from(i), vec![f(0.1 * f64::from(i))])).collect();
        for t in [0.0, 0.013, 0.1, 0.47, 0.3, 0.895, 0.9] {
            let y: f64 = stencil(&nodes, t, false).iter().map(|(i, w)| w * nodes[*i].1[0]).sum();
            assert!((y - f(t)).abs() < 1e-14, "{t}");
        }
    }

    #[test]
    fn cubics_do_not_go_over_events() {
        // Events at 0.2 and 0.5: f, then g, then f again.
        let (f, g) = (|t: f64| 1.0 + t * t * t, |t: f64| -5.0 + 2.0 * t * t);
        let piece = |times: &[f64], f: &dyn Fn(f64) -> f64| -> Vec<(f64, Vec<f64>)> {
            times.iter().map(|t| (*t, vec![f(*t)])).collect()
        };
        let nodes = [
            piece(&[0.0, 0.1, 0.15, 0.2], &f),
            piece(&[0.2, 0.3, 0.5], &g),
            piece(&[0.5, 0.6, 0.7, 0.8, 0.9], &f),
        ]
        .concat();
        let value = |t: f64, after_event: bool| -> f64 {
            stencil(&nodes, t, after_event).iter().map(|(i, w)| w * nodes[*i].1[0]).sum()
        };
        for t in [0.0, 0.19, 0.51, 0.55, 0.88] {
            assert!((value(t, false) - f(t)).abs() < 1e-14, "{t}: {}", value(t, false));
        }
        for t in [0.21, 0.3, 0.45] {
            assert!((value(t, false) - g(t)).abs() < 1e-14, "{t}: {}", value(t, false));
        }
        assert_eq!([value(0.2, false), value(0.2, true)], [f(0.2), g(0.2)]);
        assert_eq!([value(0.5, false), value(0.5, true)], [g(0.5), f(0.5)]);
    }
}
