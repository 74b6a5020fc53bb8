//! What `mbs gradient` shows beyond the gradient: derivatives by histories of inputs and by the end time, second derivatives, products with
//! directions and weights.

use super::explain;
use crate::arguments::Gradient;
use crate::output::json as report_json;
use crate::output::number::{count, short, significant};
use crate::output::table::Table;
use crate::session::failure::Failure;
use mbs_codegen::diagnostics::nearest;
use mbs_codegen::program::Program;
use mbs_engine::gradient::products::{
    Directions, Weights, jacobian_vector_at, through_start, vector_jacobian_at,
};
use mbs_engine::gradient::{InputHistory, Ran, SecondOrder, Start, by_end_time, hessian_vectors, hessians};
use mbs_engine::simulation::{RunFailure, Settings};
use mbs_engine::{Interpreted, Method};
use mbs_runtime::{StepError, System};
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// Hessians of more parameters than this are not shown as text.
const SHOWN: usize = 8;

/// What was asked for beyond the gradient.
#[derive(Default)]
pub(super) struct Further {
    pub(super) history: Option<InputHistory>,
    /// By the end time, of each objective.
    end_time: Option<Vec<f64>>,
    second: Option<SecondOrder>,
    /// Changes of objectives along the direction, and of the coordinates at the end, or at the time that was asked for.
    along: Option<[Vec<f64>; 2]>,
    /// Gradient of the weighted sum.
    weighted: Option<Vec<f64>>,
    parameters: usize,
}

impl Further {
    pub(super) fn new(
        arguments: &Gradient,
        model: &Interpreted,
        settings: &Settings,
        start: Start,
        ran: &Ran,
        memory: usize,
        mut history: Option<InputHistory>,
    ) -> Result<Further, Failure> {
        let simulation = &settings.simulation;
        let method = start.method(model, simulation);
        let fail = |error: StepError| explain(model, &RunFailure::Step(error), None);
        let memory = if memory == 0 { mbs_engine::gradient::adjoint::MEMORY } else { memory };
        let direction = direction(model.program(), &arguments.along)?;
        let time = arguments.state_at.unwrap_or(simulation.end);
        if arguments.state_at.is_some() && arguments.along.is_empty() && arguments.weight.is_empty() {
            let what = "`--state-at` says when `--along` and `--weight` see the state: give one of them";
            return Err(Failure::usage(what.to_string()));
        }
        if let Some(history) = &mut history {
            history.finish();
        }
        let end_time = arguments.by_end_time.then(|| by_end_time(model, &method, simulation, &ran.found.end));
        let redundant = start.redundant();
        let second = arguments.hessian.then(|| match &direction {
            Some(direction) => hessian_vectors(model, &method, simulation, redundant, direction, memory),
            None => hessians(model, &method, simulation, redundant, memory),
        });
        let along = match &direction {
            Some(direction) => Some(along(model, &method, settings, &start, time, direction).map_err(fail)?),
            None => None,
        };
        let weighted = weights(model, &method, &arguments.weight)?;
        let weighted = weighted.map(|[psi, end]| {
            let p = model.dims().sensitivity.parameters;
            let changes = start.derivatives(model, &method)?;
            let weights = Weights { columns: 1, objectives: &psi, end: &end };
            let found = vector_jacobian_at(model, &method, simulation, start, time, weights, memory)?;
            Ok(through_start(p, 1, &changes, &found))
        });
        Ok(Further {
            history,
            end_time: end_time.transpose().map_err(fail)?,
            second: second.transpose().map_err(fail)?,
            along,
            weighted: weighted.transpose().map_err(fail)?,
            parameters: model.dims().sensitivity.parameters,
        })
    }

    /// What belongs to an objective.
    pub(super) fn tell(&self, out: &mut String, program: &Program, objective: usize) {
        if let Some(rates) = &self.end_time {
            let _ = writeln!(out, "  by the end time: {}", significant(rates[objective], 9));
        }
        if let Some(history) = &self.history {
            for (j, input) in history.inputs.iter().enumerate() {
                let larger =
                    |best: (f64, f64), now: (f64, f64)| if now.1.abs() > best.1.abs() { now } else { best };
                let all = history.times.iter().copied().zip(history.of(objective, j));
                let (t, largest) = all.fold((f64::NAN, 0.0), larger);
                let sum: f64 = history.of(objective, j).sum();
                let values = count(history.times.len(), "value");
                let _ = writeln!(
                    out,
                    "  by {values} of `{input}`: sum {}, largest {} at t = {}",
                    significant(sum, 9),
                    significant(largest, 9),
                    short(t)
                );
            }
        }
        if let Some(second) = &self.second {
            let p = self.parameters;
            let n = second.products.len() / (p * second.objectives.len()).max(1);
            let rows = second.products.chunks_exact(p.max(1)).skip(objective * n).take(n);
            if n == 1 && p > 1 {
                let _ = writeln!(out, "  second derivatives along the direction, by each parameter:");
                for (name, value) in program.sensitivity.iter().zip(rows.flatten()) {
                    let _ = writeln!(out, "    {name}  {}", significant(*value, 9));
                }
            } else if p <= SHOWN {
                let _ = writeln!(out, "  second derivatives:");
                for (name, row) in program.sensitivity.iter().zip(rows) {
                    let row: Vec<String> = row.iter().map(|value| significant(*value, 6)).collect();
                    let _ = writeln!(out, "    {name}  {}", row.join("  "));
                }
            } else {
                let _ = writeln!(out, "  second derivatives: {p} by {p}, `--json` has them");
            }
        }
    }

    /// What belongs to all of the run.
    pub(super) fn tell_products(&self, out: &mut String, program: &Program) {
        if let Some([changes, _]) = &self.along {
            let mut table = Table::new(&["along the direction", ">change"]);
            for ((name, _), change) in program.objectives.iter().zip(changes) {
                table.row([name.clone(), significant(*change, 9)]);
            }
            let _ = write!(out, "\n{}", table.print());
        }
        if let Some(weighted) = &self.weighted {
            let mut table = Table::new(&["by", ">derivative of the weighted sum"]);
            for (name, value) in program.sensitivity.iter().zip(weighted) {
                table.row([name.clone(), significant(*value, 9)]);
            }
            let _ = write!(out, "\n{}", table.print());
        }
    }

    /// All of it, for programs.
    pub(super) fn add_to(&self, object: &mut Value, program: &Program, chosen: &[usize]) {
        let p = self.parameters.max(1);
        let of_objectives = |one: &dyn Fn(usize) -> Value| {
            chosen.iter().map(|&i| (program.objectives[i].0.clone(), one(i))).collect::<Map<_, _>>()
        };
        if let Some(rates) = &self.end_time {
            object["by_end_time"] = of_objectives(&|i| json!(rates[i])).into();
        }
        if let Some(history) = &self.history {
            let one = |i: usize| {
                let inputs = history.inputs.iter().enumerate();
                let values =
                    inputs.map(|(j, name)| (name.clone(), json!(history.of(i, j).collect::<Vec<_>>())));
                values.collect::<Map<_, _>>().into()
            };
            object["by_input"] = json!({"t": history.times, "objectives": of_objectives(&one)});
        }
        if let Some(second) = &self.second {
            let n = second.products.len() / (p * second.objectives.len()).max(1);
            let rows = |i: usize| second.products.chunks_exact(p).skip(i * n).take(n);
            let one = |i: usize| json!(rows(i).map(<[f64]>::to_vec).collect::<Vec<_>>());
            object["second_derivatives"] =
                json!({"by": program.sensitivity, "objectives": of_objectives(&one)});
        }
        if let Some([changes, end]) = &self.along {
            let end = report_json::by_name(program.coordinates.clone(), end);
            object["along"] = json!({"objectives": of_objectives(&|i| json!(changes[i])), "end": end});
        }
        if let Some(weighted) = &self.weighted {
            object["weighted"] = report_json::by_name(program.sensitivity.clone(), weighted);
        }
    }
}

/// ρ′ from names; none if there are none.
fn direction(program: &Program, names: &[(String, f64)]) -> Result<Option<Vec<f64>>, Failure> {
    if names.is_empty() {
        return Ok(None);
    }
    let mut direction = vec![0.0; program.sensitivity.len()];
    for (name, value) in names {
        let place = program.sensitivity.iter().position(|own| own == name);
        let place = place.ok_or_else(|| unknown("is not differentiated by", name, &program.sensitivity))?;
        direction[place] = *value;
    }
    Ok(Some(direction))
}

fn unknown(what: &str, name: &str, names: &[String]) -> Failure {
    let near = nearest(name, names.iter().map(String::as_str));
    let near = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
    Failure::usage(format!("the run {what} `{name}`{near}"))
}

/// Changes of the objectives, and of the coordinates at the end, the start included.
fn along(
    model: &Interpreted,
    method: &Method,
    settings: &Settings,
    start: &Start,
    time: f64,
    direction: &[f64],
) -> Result<[Vec<f64>; 2], StepError> {
    let changes = start.derivatives(model, method)?;
    let dot = |row: &[f64]| row.iter().zip(direction).map(|(x, v)| x * v).sum();
    let first: Vec<f64> = changes.chunks_exact(direction.len().max(1)).map(dot).collect();
    let directions = Directions { columns: 1, start: &first, rho: direction };
    let found = jacobian_vector_at(model, method, &settings.simulation, start.clone(), time, directions)?;
    let end = found.end.into_iter().take(model.dims().nq).collect();
    Ok([found.objective_changes, end])
}

/// Weights of objectives and of the state at the end; none if there are none.
fn weights(
    model: &Interpreted,
    method: &Method,
    names: &[(String, f64)],
) -> Result<Option<[Vec<f64>; 2]>, Failure> {
    if names.is_empty() {
        return Ok(None);
    }
    let (program, dims) = (model.program(), model.dims());
    let rows = if method.is_runge_kutta() { dims.state() } else { mbs_runtime::adjoint::state_rows(&dims) };
    let rates = if method.is_runge_kutta() { &program.velocities } else { &program.coordinates };
    let (mut psi, mut end) = (vec![0.0; dims.n_objectives], vec![0.0; rows]);
    for (name, weight) in names {
        let objective = program.objectives.iter().position(|(own, _)| own == name);
        let coordinate = program.coordinates.iter().position(|own| own == name);
        let rate = name.strip_prefix("rate(").and_then(|rest| rest.strip_suffix(')'));
        let rate = rate.and_then(|name| rates.iter().position(|own| own == name));
        match (objective, coordinate, rate) {
            (Some(i), _, _) => psi[i] = *weight,
            (_, Some(j), _) => end[j] = *weight,
            (_, _, Some(j)) => end[dims.nq + j] = *weight,
            _ => {
                let objectives = program.objectives.iter().map(|(name, _)| name.clone());
                let all: Vec<String> = objectives.chain(program.coordinates.iter().cloned()).collect();
                return Err(unknown("has no objective and no coordinate", name, &all));
            }
        }
    }
    Ok(Some([psi, end]))
}
