//! The runs of a sweep, on all cores, their rows in order.

use super::plan::Plan;
use crate::failures::describe;
use crate::simulation::{self, Follower, Instance};
use rayon::prelude::*;
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicBool, Ordering};

/// What came of one point.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The point's place in the plan.
    pub number: usize,
    /// The values of the axes.
    pub point: Vec<f64>,
    /// Objectives, then outputs at the end; or why there are none.
    pub result: Result<Vec<f64>, String>,
}

/// Names of the results of a row: objectives, then outputs at the end.
pub fn columns(instance: &Instance) -> Vec<String> {
    let program = instance.model.program();
    program.objectives.iter().chain(&program.outputs).map(|(name, _)| name.clone()).collect()
}

/// Points that are run between two answers of who takes the rows, for each core.
const PORTION: usize = 8;

struct Until<'a>(&'a AtomicBool);

impl Follower for Until<'_> {
    fn reached(&mut self, _: f64) -> ControlFlow<()> {
        if self.0.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Runs a part of a plan. Rows come in order, however many cores there are; where the answer is a break no more do. `stop`: ends the
/// runs under way, whose rows are then lost.
pub fn run(
    instance: &Instance,
    plan: &Plan,
    part: Range<usize>,
    stop: &AtomicBool,
    mut take: impl FnMut(Vec<Row>) -> ControlFlow<()>,
) {
    let portion = PORTION * rayon::current_num_threads();
    let mut next = part.start;
    while next < part.end && !stop.load(Ordering::Relaxed) {
        let numbers = next..(next + portion).min(part.end);
        next = numbers.end;
        let rows: Vec<Option<Row>> = numbers
            .into_par_iter()
            .map_init(|| instance.clone(), |own, number| one(own, instance, plan, number, stop))
            .collect();
        let whole: Vec<Row> = rows.into_iter().map_while(|row| row).collect();
        if take(whole).is_break() {
            return;
        }
    }
}

/// One point; none if it was stopped.
fn one(own: &mut Instance, base: &Instance, plan: &Plan, number: usize, stop: &AtomicBool) -> Option<Row> {
    let point = plan.point(number);
    let row = |result| Some(Row { number, point: point.clone(), result });
    // A point depends on nothing that ran before it.
    let base: Vec<f64> = base.model.parameters().to_vec();
    if let Err(error) = own.model.set_parameters(&base) {
        return row(Err(error.to_string()));
    }
    let values: Vec<(&str, f64)> =
        plan.axes.iter().map(|axis| axis.name.as_str()).zip(point.iter().copied()).collect();
    if let Err((_, error)) = own.model.set_parameters_by_name(&values) {
        return row(Err(error.to_string()));
    }
    let record = simulation::run(&own.model, &own.settings, &mut Until(stop));
    match &record.failure {
        Some(simulation::RunFailure::Stopped(_)) => None,
        Some(failure) => row(Err(describe(&own.model, failure))),
        None => {
            let mut results = record.seen.objectives();
            results.extend(&record.seen.outputs);
            row(Ok(results))
        }
    }
}
