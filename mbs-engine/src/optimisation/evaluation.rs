//! One evaluation of a problem: the runs of all cases, values of all objectives and their Jacobian.

use super::problem::{Problem, Run};
use crate::Interpreted;
use crate::failures::describe;
use crate::gradient::{self, adjoint::Choice, kinematics};
use crate::simulation::{self, Analysis, Follower, Record, RunFailure, Settings};
use mbs_codegen::model::GradientMethod;
use mbs_runtime::StepError;

/// Values of all objectives, and their derivatives.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evaluation {
    /// Of each run, the objectives that the problem uses.
    pub values: Vec<Vec<f64>>,
    /// Of each run, the derivative of objective i by unknown k at `i * p + k`; empty where nobody asked.
    pub derivatives: Vec<Vec<f64>>,
    /// Jumps that the runs went through, in words.
    pub jumps: Vec<String>,
    /// Of each run, the events that happened, by place, in the order of time.
    pub events: Vec<Vec<usize>>,
}

/// A run of a problem's case.
#[derive(Debug)]
pub struct Motion<'p> {
    /// The case, if it is one.
    pub case: Option<&'p str>,
    /// What the run left.
    pub record: Record,
    /// The model with its parameters.
    pub model: &'p Interpreted,
    /// How it was run.
    pub settings: Settings,
}

/// A run inside a search that came to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// Why.
    pub reason: String,
    /// Whether somebody stopped it.
    pub stopped: bool,
}

impl Failed {
    /// With this reason.
    pub fn because(reason: impl Into<String>) -> Failed {
        Failed { reason: reason.into(), stopped: false }
    }
}

/// How the gradient of a run is computed: the cheaper way, unless the model asks for the adjoint.
pub(super) fn choice(model: &Interpreted, settings: &Settings) -> Result<Choice, StepError> {
    let asked = match settings.simulation.gradient {
        asked @ (GradientMethod::Adjoint | GradientMethod::ContinuousAdjoint) => asked,
        GradientMethod::Direct | GradientMethod::Auto => GradientMethod::Auto,
    };
    gradient::adjoint::choose(model, &settings.simulation, asked, None, false)
}

impl Problem {
    /// Runs all cases at x; with derivatives if asked.
    pub fn evaluate(
        &mut self,
        x: &[f64],
        derivatives: bool,
        follower: &mut dyn Follower,
    ) -> Result<Evaluation, Failed> {
        let mut evaluation = Evaluation::default();
        for run in &mut self.runs {
            let mut parameters = run.model.parameters().to_vec();
            for (variable, x) in self.variables.iter().zip(x) {
                if let Some(value) = parameters.get_mut(variable.place) {
                    *value = *x;
                }
            }
            run.model.set_parameters(&parameters).map_err(|error| Failed::because(error.to_string()))?;
            run.evaluate(derivatives, follower, &mut evaluation)?;
        }
        Ok(evaluation)
    }

    /// The motion of a case at x, with its history; none if it cannot be run.
    pub fn motion(&mut self, case: usize, x: &[f64]) -> Option<Motion<'_>> {
        let run = self.runs.get_mut(case)?;
        let mut parameters = run.model.parameters().to_vec();
        for (variable, x) in self.variables.iter().zip(x) {
            *parameters.get_mut(variable.place)? = *x;
        }
        run.model.set_parameters(&parameters).ok()?;
        let settings = Settings { keeps_history: true, ..run.settings.clone() };
        let record = simulation::run(&run.model, &settings, &mut simulation::Silent);
        let case = run.case.as_deref();
        record.failure.is_none().then_some(Motion { case, record, model: &run.model, settings })
    }

    /// How many cases are run.
    pub fn runs(&self) -> usize {
        self.runs.len()
    }

    /// What is minimised.
    pub fn cost(&self, evaluation: &Evaluation) -> f64 {
        self.parts.iter().map(|part| part.weight * evaluation.values[part.run][part.objective]).sum()
    }

    /// The derivative of what is minimised by all unknowns.
    pub fn cost_gradient(&self, evaluation: &Evaluation) -> Vec<f64> {
        let mut gradient = vec![0.0; self.variables.len()];
        for part in &self.parts {
            let one = self.derivative(evaluation, part.run, part.objective);
            gradient.iter_mut().zip(one).for_each(|(sum, d)| *sum += part.weight * d);
        }
        gradient
    }

    /// The values of the constraints.
    pub fn row_values(&self, evaluation: &Evaluation) -> Vec<f64> {
        self.rows.iter().map(|row| evaluation.values[row.run][row.objective]).collect()
    }

    /// The derivative of an objective of a run by all unknowns.
    pub(super) fn derivative<'e>(
        &self,
        evaluation: &'e Evaluation,
        run: usize,
        objective: usize,
    ) -> &'e [f64] {
        let all = evaluation.derivatives.get(run).map_or(&[][..], Vec::as_slice);
        // The clock of laws may have a column behind the unknowns.
        let columns = all.len() / evaluation.values.get(run).map_or(1, |values| values.len().max(1));
        let row = all.get(objective * columns..).unwrap_or_default();
        row.get(..self.variables.len()).unwrap_or_default()
    }

    /// The largest violation of a constraint.
    pub fn violation(&self, evaluation: &Evaluation) -> f64 {
        let values = self.row_values(evaluation);
        self.rows.iter().zip(values).map(|(row, value)| row.violation(value)).fold(0.0, f64::max)
    }
}

impl Run {
    fn evaluate(
        &self,
        derivatives: bool,
        follower: &mut dyn Follower,
        evaluation: &mut Evaluation,
    ) -> Result<(), Failed> {
        let within = self.case.as_ref().map_or(String::new(), |case| format!(" (case `{case}`)"));
        let failed = |failure: &RunFailure| Failed {
            reason: describe(&self.model, failure) + &within,
            stopped: matches!(failure, RunFailure::Stopped(_)),
        };
        let driven = self.settings.analysis == Analysis::Kinematics;
        let (mut values, mut slopes) = if derivatives && driven {
            let asked = self.settings.simulation.gradient;
            let choice = kinematics::choose(&self.model, asked, false);
            let choice = choice.map_err(|error| failed(&RunFailure::Step(error)))?;
            let ran = kinematics::simulate(&self.model, &self.settings, &choice, follower);
            let (ran, _) = ran.map_err(|error| failed(&error))?;
            evaluation.jumps.extend(ran.jumps.iter().map(ToString::to_string));
            evaluation.events.push(Vec::new());
            (ran.found.objectives, ran.found.derivatives)
        } else if derivatives {
            let prepared = gradient::prepare(&self.model, &self.settings).map_err(|error| failed(&error))?;
            let choice =
                choice(&self.model, &self.settings).map_err(|error| failed(&RunFailure::Step(error)))?;
            let ran = gradient::simulate_as(&self.model, &self.settings, prepared, &choice, follower);
            let ran = ran.map_err(|error| failed(&error))?;
            evaluation.jumps.extend(ran.jumps.iter().map(ToString::to_string));
            evaluation.events.push(ran.found.events.iter().map(|event| event.event).collect());
            (ran.found.objectives, ran.found.derivatives)
        } else {
            let record = simulation::run(&self.model, &self.settings, follower);
            if let Some(error) = &record.failure {
                return Err(failed(error));
            }
            evaluation.jumps.extend(record.seen.jumps.iter().map(ToString::to_string));
            evaluation.events.push(record.seen.events.iter().map(|event| event.event).collect());
            (record.seen.objectives(), Vec::new())
        };
        let objectives = &self.model.program().objectives;
        if let Some((i, value)) = values.iter().enumerate().find(|(_, value)| !value.is_finite()) {
            let name = objectives.get(i).map_or("", |(name, _)| name.as_str());
            let what = if value.is_nan() { "not a number" } else { "infinite" };
            return Err(Failed::because(format!("objective `{name}` is {what}{within}")));
        }
        if let Some(at) = slopes.iter().position(|slope| !slope.is_finite()) {
            let p = self.model.program().sensitivity.len().max(1);
            let name = objectives.get(at / p).map_or("", |(name, _)| name.as_str());
            return Err(Failed::because(format!("the gradient of objective `{name}` is not finite{within}")));
        }
        let p = self.model.program().sensitivity.len();
        for (i, extreme) in self.extremes.iter().enumerate() {
            let (Some(extreme), Some(value)) = (extreme, values.get_mut(i)) else { continue };
            if *value <= 0.0 {
                let name = objectives.get(i).map_or("", |(name, _)| name.as_str());
                return Err(Failed::because(format!(
                    "`{name}` is far from its value at the start, beyond what its sharpness resolves{within}"
                )));
            }
            // K and dK = dI/(ρ I)
            let (k, slope) = extreme.value(*value);
            *value = k;
            slopes.iter_mut().skip(i * p).take(p).for_each(|d| *d *= slope);
        }
        evaluation.values.push(values);
        evaluation.derivatives.push(slopes);
        Ok(())
    }
}
