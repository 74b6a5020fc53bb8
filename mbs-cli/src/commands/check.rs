//! `mbs check`: all problems of a model, or a summary.

mod json;
mod text;

use crate::arguments::Check;
use crate::output::json::{pretty, problems};
use crate::output::tree;
use crate::session::failure::Failure;
use crate::session::files;
use crate::session::model::{find_case, show_warnings};
use mbs_codegen::analysis::Analysed;
use mbs_codegen::model::evaluate::{Value as ParameterNumber, Values};
use mbs_codegen::model::{Case, Event, EventCondition, Model, ParameterId, VariableStart};
use mbs_codegen::program::{self, BundleKind, Exists, Family, Options, Program, ProgramError, Steps};
use mbs_codegen::topology::{self, Loop, Row, Tree};
use serde_json::json;

/// Shows the problems of a model, or a summary.
pub(crate) fn check(arguments: &Check) -> Result<(), Failure> {
    let file = files::read(&arguments.model)?;
    let (model, warnings) = match mbs_codegen::analyse(&file.name, &file.text) {
        Ok(read) => read,
        Err(diagnostics) => {
            if arguments.json {
                let problems = json!({"file": file.name, "valid": false, "problems": problems(&diagnostics)});
                files::print(&(pretty(&problems) + "\n"))?;
            } else {
                files::complain(&diagnostics.render(&file.name, &file.text));
            }
            return Err(Failure::said());
        }
    };
    let case = find_case(&model, arguments.case.as_deref())?;
    if arguments.tree {
        show_warnings(&file, &warnings);
        return files::print(&tree::text(&model, &model.tree));
    }
    let (program, too_large) = all_bundles(&model, case)?;
    let summary = Summary {
        file: &file.name,
        model: &model,
        case,
        loops: topology::loops(&model, &model.tree),
        rows: topology::rows(&model, &model.tree),
        tree: &model.tree,
        program,
        too_large,
        values: case.map_or_else(|| Values::defaults(&model), |case| Values::of_case(&model, case)),
    };
    if arguments.json {
        files::print(&(pretty(&summary.json(&warnings)) + "\n"))
    } else {
        show_warnings(&file, &warnings);
        files::print(&summary.text())
    }
}

/// The program with all bundles of moderate size, and the names of the others with about how many operations they would need.
fn all_bundles(model: &Analysed, case: Option<&Case>) -> Result<(Program, Vec<TooLarge>), Failure> {
    // Bundles that do the work of several repeat what is counted here; derivatives of the tangent belong to one way of projecting.
    let simulation = case.map_or(&model.simulation, |case| &case.simulation);
    let all = BundleKind::ALL.into_iter().filter(|kind| kind.entry().exists != Exists::Fused);
    let all = all.filter(|&kind| kind != BundleKind::TangentProduct || simulation.projects_with_tangent());
    let estimates = program::estimates(model, &all.collect::<Vec<_>>());
    // Of bundles that come together the largest counts, and derivatives bring the bundles they are derivatives of.
    let largest = |family: Family| {
        let members = estimates.iter().filter(|(kind, _)| kind.entry().family == family);
        members.map(|&(_, operations)| operations).max().unwrap_or(0)
    };
    let size = |kind: BundleKind, own: usize| match kind.entry().family {
        family @ (Family::CoordinateForm | Family::JointSensitivities) => largest(family),
        family @ Family::Sensitivities => largest(family).max(largest(Family::CoordinateForm)),
        _ => own,
    };
    let (counted, others): (Vec<_>, Vec<_>) =
        estimates.iter().partition(|(kind, own)| size(*kind, *own) <= COUNTED);
    let mut bundles: Vec<BundleKind> = counted.into_iter().map(|(kind, _)| kind).collect();
    let mut too_large: Vec<TooLarge> = others.into_iter().map(|(kind, own)| (kind.name(), own)).collect();
    loop {
        let options = Options { bundles: bundles.clone(), steps: Steps::Separate, ..Options::default() };
        match Program::of_only(model, case, &options) {
            Ok(program) => return Ok((program, too_large)),
            Err(ProgramError::Bundle { bundle, operations })
                if bundles.iter().any(|kind| kind.name() == bundle) =>
            {
                bundles.retain(|kind| kind.name() != bundle);
                too_large.push((bundle, operations));
            }
            Err(error) => return Err(Failure::error(error.to_string())),
        }
    }
}

/// Bundles that would need more operations, by their estimates, are not built by a check: it would take seconds, and much memory.
const COUNTED: usize = 60_000;

/// A bundle that is not made, and about how many operations it would need.
type TooLarge = (&'static str, usize);

/// What a model is made of.
struct Summary<'a> {
    file: &'a str,
    model: &'a Model,
    case: Option<&'a Case>,
    tree: &'a Tree,
    loops: Vec<Loop>,
    rows: Vec<Row>,
    program: Program,
    too_large: Vec<TooLarge>,
    values: Values,
}

impl Summary<'_> {
    /// A number of parameters; a text that says so where it is none.
    fn number(&self, expression: &mbs_codegen::model::Scalar) -> Option<f64> {
        self.values.scalar(expression).ok()
    }

    /// Start values under the case.
    fn start(&self, joint: usize) -> &mbs_codegen::model::Start {
        let of_case = self.case.and_then(|case| case.start.iter().find(|(id, _)| id.index() == joint));
        of_case.map_or(&self.model.joints[joint].start, |(_, start)| start)
    }

    /// The start of a variable under the case.
    fn variable_start(&self, index: usize) -> VariableStart {
        let of_case = self.case.and_then(|case| case.variables.iter().find(|(id, _)| id.index() == index));
        of_case.map_or_else(|| VariableStart::of(&self.model.variables[index]), |(_, start)| start.clone())
    }

    fn is_constrained(&self) -> bool {
        !self.loops.is_empty() || !self.model.constraints.is_empty()
    }

    fn is_cut(&self, joint: usize) -> bool {
        self.tree.cuts.iter().any(|id| id.index() == joint)
    }

    fn body(&self, id: mbs_codegen::model::BodyId) -> &str {
        &self.model.bodies[id.index()].name
    }

    /// Names of what the model is differentiated by under the case.
    fn sensitivity(&self) -> Vec<String> {
        self.model.sensitivity_names(self.model.sensitivity_under(self.case))
    }

    fn value(&self, index: usize) -> Option<&ParameterNumber> {
        self.values.parameter(ParameterId(index as u32))
    }
}

/// What an event does.
fn actions(model: &Model, event: &Event) -> Vec<String> {
    let mut actions: Vec<String> = Vec::new();
    for condition in &event.conditions {
        actions.push(match condition {
            EventCondition::Impact { .. } => "impact".into(),
            EventCondition::Slip { .. } => "friction".into(),
            EventCondition::Reset { .. } => "reset of a rate".into(),
        });
    }
    actions.extend((!event.placements.is_empty()).then(|| "reset of a position".to_string()));
    let inputs = event.settings.iter().filter_map(|(id, _)| model.inputs.get(id.index()));
    actions.extend(inputs.map(|input| format!("sets {}", input.name)));
    actions.extend(event.stop.then(|| "stops".into()));
    if actions.is_empty() {
        actions.push("is recorded".into());
    }
    actions
}
