//! `mbs check`: every problem of a model, or what it is made of.

use crate::arguments::Check;
use crate::failure::Failure;
use crate::files::{self, Text};
use crate::number::{count, grouped, short};
use crate::report_json::pretty;
use crate::table::Table;
use crate::tree;
use mbs_codegen::diagnostics::{Diagnostics, Severity};
use mbs_codegen::model::evaluate::{Value as ParameterNumber, Values};
use mbs_codegen::model::{
    Case, ConstraintKind, Hold, Joint, Model, OutputValue, Parameter, ParameterId, ParameterValue,
    VariableStart,
};
use mbs_codegen::program::{BundleKind, Options, Program, ProgramError};
use mbs_codegen::topology::{self, Loop, Row, RowSource, Tree};
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::path::Path;

/// Shows the problems of a model, or what it is made of.
pub(crate) fn check(arguments: &Check) -> Result<(), Failure> {
    let file = files::read(&arguments.model)?;
    let (model, warnings) = match mbs_codegen::read(&file.name, &file.text) {
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
    let tree = topology::span(&model);
    if arguments.tree {
        show_warnings(&file, &warnings);
        return files::print(&tree::text(&model, &tree));
    }
    let (program, too_large) = all_bundles(&model, case)?;
    let summary = Summary {
        file: &file.name,
        model: &model,
        case,
        loops: topology::loops(&model, &tree),
        rows: topology::rows(&model, &tree),
        tree,
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
fn all_bundles(model: &Model, case: Option<&Case>) -> Result<(Program, Vec<TooLarge>), Failure> {
    let mut bundles = BundleKind::ALL.to_vec();
    let mut too_large = Vec::new();
    loop {
        let options = Options { bundles: bundles.clone(), ..Options::default() };
        match Program::new(model, case, &options) {
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

/// Reads a model; its problems go to standard error.
pub(crate) fn read_model(path: &Path) -> Result<Model, Failure> {
    let file = files::read(path)?;
    match mbs_codegen::read(&file.name, &file.text) {
        Ok((model, warnings)) => {
            show_warnings(&file, &warnings);
            Ok(model)
        }
        Err(diagnostics) => {
            files::complain(&diagnostics.render(&file.name, &file.text));
            Err(Failure::said())
        }
    }
}

/// Shows the warnings of a model on standard error.
pub(crate) fn show_warnings(file: &Text, warnings: &Diagnostics) {
    if !warnings.is_empty() {
        files::complain(&warnings.render(&file.name, &file.text));
    }
}

/// The case of this name; the command line is to blame if there is none.
pub(crate) fn find_case<'a>(model: &'a Model, name: Option<&str>) -> Result<Option<&'a Case>, Failure> {
    mbs_codegen::find_case(model, name).map_err(|diagnostics| {
        let texts = diagnostics.iter().map(|d| match d.help.is_empty() {
            true => d.message.clone(),
            false => format!("{}; {}", d.message, d.help),
        });
        Failure::usage(texts.collect::<Vec<_>>().join("\n"))
    })
}

pub(crate) fn problems(diagnostics: &Diagnostics) -> Value {
    let one = |d: &mbs_codegen::diagnostics::Diagnostic| {
        json!({
            "severity": match d.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
            },
            "line": d.span.is_known().then_some(d.span.line),
            "column": d.span.is_known().then_some(d.span.column),
            "message": d.message,
            "help": (!d.help.is_empty()).then_some(&d.help),
        })
    };
    diagnostics.iter().map(one).collect()
}

/// A bundle that is not made, and about how many operations it would need.
type TooLarge = (&'static str, usize);

/// What a model is made of.
struct Summary<'a> {
    file: &'a str,
    model: &'a Model,
    case: Option<&'a Case>,
    tree: Tree,
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

    fn text(&self) -> String {
        let (model, program) = (self.model, &self.program);
        let mut out = format!("{}: {}", self.file, model.name);
        if let Some(case) = self.case {
            let _ = write!(out, ", case {}", case.name);
        }
        out.push('\n');
        if !model.description.is_empty() {
            let _ = writeln!(out, "  {}", one_line(&model.description));
        }
        let _ = write!(
            out,
            "  {}, {}, {}, {}",
            plural(model.bodies.len() - 1, "body", "bodies"),
            count(model.joints.len(), "joint"),
            count(program.coordinates.len(), "coordinate"),
            plural(program.velocities.len(), "velocity", "velocities"),
        );
        if self.is_constrained() {
            let closing = self.rows.iter().filter(|row| matches!(row.source, RowSource::Cut(_))).count();
            let (loops, constraints) = (self.loops.len(), model.constraints.len());
            let mut parts = Vec::new();
            if loops > 0 {
                parts.push(format!("{} closed by {}", count(loops, "loop"), count(closing, "equation")));
            }
            if constraints > 0 {
                let own = count(self.rows.len() - closing, "equation");
                parts.push(format!("{} with {own}", count(constraints, "constraint")));
            }
            let _ = write!(out, "\n  {}", parts.join(", "));
        } else {
            // Without constraints every velocity is free.
            let _ = write!(out, ", {} of freedom", plural(program.velocities.len(), "degree", "degrees"));
        }
        let simulation = &program.simulation;
        let _ = write!(
            out,
            "\n  simulation: t = {} to {} s by {}, step {} s",
            short(simulation.begin),
            short(simulation.end),
            simulation.integrator.keyword(),
            short(simulation.step)
        );
        if self.is_constrained() {
            let _ = write!(out, ", formulation {}", simulation.formulation.keyword());
        }
        out.push('\n');
        let by = self.sensitivity();
        if !by.is_empty() {
            let _ = writeln!(
                out,
                "  differentiated by {}: {}",
                count(by.len(), "value"),
                cut(&by.join(", "), 76)
            );
        }
        section(&mut out, "bodies", self.bodies());
        section(&mut out, "joints", self.joints());
        section(&mut out, "loops", self.loops());
        section(&mut out, "variables", self.variables());
        section(&mut out, "constraints", self.constraints());
        section(&mut out, "objectives", self.objectives());
        section(&mut out, "parameters", self.parameters());
        section(&mut out, "inputs", self.inputs());
        section(&mut out, "outputs", self.outputs());
        section(&mut out, "cases", self.cases());
        section(&mut out, "bundles", self.bundles());
        for (bundle, operations) in &self.too_large {
            let _ = writeln!(out, "  {bundle} is left out: about {} operations", grouped(*operations));
        }
        out
    }

    fn bodies(&self) -> Table {
        let mut table = Table::new(&["name", ">mass [kg]", "points"]);
        for body in self.model.bodies.iter().skip(1) {
            let points: Vec<&str> = body.points.iter().map(|(name, _)| name.as_str()).collect();
            table.row([
                body.name.clone(),
                number_or(self.number(&body.mass), "?"),
                cut(&points.join(", "), 50),
            ]);
        }
        table
    }

    fn joints(&self) -> Table {
        let mut table =
            Table::new(&["name", "type", "parent -> child", "coordinate", ">start", "velocity", ">start"]);
        for (index, joint) in self.model.joints.iter().enumerate() {
            if self.is_cut(index) {
                let (name, kind) = (joint.name.clone(), joint.kind.keyword().into());
                let none = String::new;
                table.row([name, kind, self.sides(joint), "cut".into(), none(), none(), none()]);
                continue;
            }
            let start = self.start(index);
            let rows = joint.coordinates.len().max(joint.velocities.len()).max(1);
            for k in 0..rows {
                let first = k == 0;
                let value = |names: &Vec<String>, of: &Vec<mbs_codegen::model::Scalar>| match (
                    names.get(k),
                    of.get(k),
                ) {
                    (Some(name), Some(e)) => (name.clone(), number_or(self.number(e), "?")),
                    (name, _) => (name.cloned().unwrap_or_default(), String::new()),
                };
                let (coordinate, z) = value(&joint.coordinates, &start.values);
                let (velocity, v) = value(&joint.velocities, &start.rates);
                table.row([
                    if first { joint.name.clone() } else { String::new() },
                    if first { joint.kind.keyword().into() } else { String::new() },
                    if first { self.sides(joint) } else { String::new() },
                    coordinate,
                    z,
                    velocity,
                    v,
                ]);
            }
        }
        table
    }

    /// Each loop by the names one meets on the way around, and why it is cut where it is.
    fn loops(&self) -> Table {
        let mut table = Table::new(&["cut at", "cut by", ">equations", "loop"]);
        for found in &self.loops {
            let joint = &self.model.joints[found.cut.index()];
            let mut lines = vec![String::new()];
            for part in self.around(found) {
                let line = lines.last().map_or(0, |line| line.chars().count());
                if line + part.chars().count() > 60 && line > 0 {
                    lines.push(String::new());
                }
                if let Some(line) = lines.last_mut() {
                    line.push_str(&part);
                }
            }
            for (i, line) in lines.into_iter().enumerate() {
                let first = |text: String| if i == 0 { text } else { String::new() };
                table.row([
                    first(joint.name.clone()),
                    first(cut_by(joint).into()),
                    first(joint.kind.closure_equations().to_string()),
                    line.trim_end().into(),
                ]);
            }
        }
        table
    }

    /// The parts of a loop, each with the arrow to the next: `ground -(hinge)- `, `crank -(pin)- `, …
    fn around(&self, found: &Loop) -> Vec<String> {
        let mut parts: Vec<String> = found
            .bodies
            .iter()
            .zip(&found.joints)
            .map(|(body, joint)| {
                format!("{} -({})- ", self.body(*body), self.model.joints[joint.index()].name)
            })
            .collect();
        parts.extend(found.bodies.first().map(|body| self.body(*body).to_string()));
        parts
    }

    fn variables(&self) -> Table {
        let mut table = Table::new(&["name", ">start", ">rate", "held", "unit", "description"]);
        for index in 0..self.model.variables.len() {
            let (variable, start) = (&self.model.variables[index], self.variable_start(index));
            table.row([
                variable.name.clone(),
                number_or(self.number(&start.value), "?"),
                number_or(self.number(&start.rate), "?"),
                if start.hold { "held".into() } else { String::new() },
                variable.unit.clone(),
                cut(&one_line(&variable.description), 50),
            ]);
        }
        table
    }

    fn constraints(&self) -> Table {
        let mut table = Table::new(&["name", "kind", ">equations"]);
        for constraint in &self.model.constraints {
            table.row([
                constraint.name.clone(),
                kind(constraint.kind).into(),
                constraint.rows.len().to_string(),
            ]);
        }
        table
    }

    fn objectives(&self) -> Table {
        let mut table = Table::new(&["name", "parts", "unit", "description"]);
        for objective in &self.model.objectives {
            let zero = mbs_codegen::model::Scalar::Number(0.0);
            let mut parts = Vec::new();
            parts.extend((objective.integrand != zero).then_some("integral"));
            parts.extend((objective.terminal != zero).then_some("terminal"));
            table.row([
                objective.name.clone(),
                parts.join(" and "),
                objective.unit.clone(),
                cut(&one_line(&objective.description), 50),
            ]);
        }
        table
    }

    fn sides(&self, joint: &Joint) -> String {
        format!("{} -> {}", self.body(joint.parent.body), self.body(joint.child.body))
    }

    fn parameters(&self) -> Table {
        let mut table = Table::new(&["name", ">value", "unit", "bounds", "description"]);
        for (index, parameter) in self.model.parameters.iter().enumerate() {
            let value = match self.value(index) {
                Some(ParameterNumber::Number(value)) => short(*value),
                Some(ParameterNumber::Array(values)) => format!("{} values", values.len()),
                None => "?".into(),
            };
            let derived = matches!(parameter.value, ParameterValue::Derived(_));
            let bounds = if derived { "follows".into() } else { bounds(parameter) };
            table.row([
                parameter.name.clone(),
                value,
                parameter.unit.clone(),
                bounds,
                cut(&one_line(&parameter.description), 50),
            ]);
        }
        table
    }

    fn inputs(&self) -> Table {
        let mut table = Table::new(&["name", ">default", "unit", "held", "signal", "description"]);
        for (index, input) in self.model.inputs.iter().enumerate() {
            let signal = self.case.is_some_and(|case| case.inputs.iter().any(|(id, _)| id.index() == index));
            table.row([
                input.name.clone(),
                short(input.default),
                input.unit.clone(),
                hold(input.hold).into(),
                if signal { "by the case".into() } else { String::new() },
                cut(&one_line(&input.description), 50),
            ]);
        }
        table
    }

    fn outputs(&self) -> Table {
        let mut table = Table::new(&["name", "kind", "unit"]);
        for output in &self.model.outputs {
            let kind = match output.value {
                OutputValue::Scalar(_) => "scalar",
                OutputValue::Vector(_) => "vector",
            };
            table.row([output.name.clone(), kind.into(), output.unit.clone()]);
        }
        table
    }

    fn cases(&self) -> Table {
        let mut table = Table::new(&["name", "changes", "description"]);
        for case in &self.model.cases {
            let mut changes: Vec<&str> = Vec::new();
            changes.extend((!case.parameters.is_empty()).then_some("parameters"));
            changes.extend((!case.start.is_empty()).then_some("start"));
            changes.extend((!case.inputs.is_empty()).then_some("inputs"));
            changes.extend(case.sensitivity.is_some().then_some("sensitivity"));
            changes.extend((case.simulation != self.model.simulation).then_some("simulation"));
            table.row([case.name.clone(), changes.join(", "), cut(&one_line(&case.description), 60)]);
        }
        table
    }

    fn bundles(&self) -> Table {
        let heads = [
            "name",
            ">operations",
            ">mul_add",
            ">mul",
            ">add, sub",
            ">div",
            ">sin_cos",
            ">other",
            ">slots",
            ">segments",
        ];
        let mut table = Table::new(&heads);
        for bundle in &self.program.bundles {
            let counts = &bundle.counts;
            let sums = counts.of("add") + counts.of("sub");
            let [fused, products, quotients, angles] =
                ["mul_add", "mul", "div", "sin_cos"].map(|kind| counts.of(kind));
            let other = counts.total() - fused - products - sums - quotients - angles;
            let [total, fused, products, sums, quotients, angles, other, slots, segments] = [
                counts.total(),
                fused,
                products,
                sums,
                quotients,
                angles,
                other,
                bundle.slots as usize,
                bundle.segments.len(),
            ]
            .map(grouped);
            table.row([
                bundle.name.into(),
                total,
                fused,
                products,
                sums,
                quotients,
                angles,
                other,
                slots,
                segments,
            ]);
        }
        table
    }

    fn json(&self, warnings: &Diagnostics) -> Value {
        let (model, program) = (self.model, &self.program);
        let joint = |(index, joint): (usize, &Joint)| {
            let start = self.start(index);
            let named = |names: &[String], of: &[mbs_codegen::model::Scalar]| -> Value {
                let pairs = names.iter().zip(of).map(|(name, e)| (name.clone(), json!(self.number(e))));
                pairs.collect::<Map<_, _>>().into()
            };
            json!({
                "name": joint.name,
                "type": joint.kind.keyword(),
                "parent": self.body(joint.parent.body),
                "child": self.body(joint.child.body),
                "cut": self.is_cut(index),
                "coordinates": named(&joint.coordinates, &start.values),
                "velocities": named(&joint.velocities, &start.rates),
            })
        };
        let parameter = |(index, parameter): (usize, &Parameter)| {
            let value = match self.value(index) {
                Some(ParameterNumber::Number(value)) => json!(value),
                Some(ParameterNumber::Array(values)) => json!(values),
                None => Value::Null,
            };
            json!({
                "name": parameter.name,
                "value": value,
                "unit": parameter.unit,
                "min": parameter.min,
                "max": parameter.max,
                "derived": matches!(parameter.value, ParameterValue::Derived(_)),
                "description": parameter.description,
            })
        };
        let bundle = |bundle: &mbs_codegen::bundle::Bundle| {
            let kinds: Map<String, Value> =
                bundle.counts.kinds().map(|(kind, count)| (kind.into(), json!(count))).collect();
            json!({
                "name": bundle.name,
                "operations": bundle.counts.total(),
                "by_kind": kinds,
                "slots": bundle.slots,
                "segments": bundle.segments.len(),
            })
        };
        let cut_loop = |found: &Loop| {
            let joint = &model.joints[found.cut.index()];
            let closing = |row: &&Row| row.source == RowSource::Cut(found.cut);
            json!({
                "cut": joint.name,
                "by": cut_by(joint),
                "equations": self.rows.iter().filter(closing).map(|row| &row.name).collect::<Vec<_>>(),
                "bodies": found.bodies.iter().map(|id| self.body(*id)).collect::<Vec<_>>(),
                "joints": found.joints.iter().map(|id| &model.joints[id.index()].name).collect::<Vec<_>>(),
            })
        };
        let variable = |index: usize| {
            let (variable, start) = (&model.variables[index], self.variable_start(index));
            json!({
                "name": variable.name,
                "value": self.number(&start.value),
                "rate": self.number(&start.rate),
                "hold": start.hold,
                "unit": variable.unit,
                "description": variable.description,
            })
        };
        let simulation = &program.simulation;
        json!({
            "file": self.file,
            "valid": true,
            "problems": problems(warnings),
            "name": model.name,
            "description": model.description,
            "case": self.case.map(|case| &case.name),
            // With constraints it takes their rank to know.
            "degrees_of_freedom": (!self.is_constrained()).then_some(self.tree.nv),
            "equations": self.rows.iter().map(|row| &row.name).collect::<Vec<_>>(),
            "loops": self.loops.iter().map(cut_loop).collect::<Vec<_>>(),
            "coordinates": program.coordinates,
            "velocities": program.velocities,
            "bodies": model.bodies.iter().skip(1).map(|body| json!({
                "name": body.name,
                "mass": self.number(&body.mass),
                "points": body.points.iter().map(|(name, _)| name).collect::<Vec<_>>(),
            })).collect::<Vec<_>>(),
            "joints": model.joints.iter().enumerate().map(joint).collect::<Vec<_>>(),
            "branches": tree::json(model, &self.tree),
            "variables": (0..model.variables.len()).map(variable).collect::<Vec<_>>(),
            "constraints": model.constraints.iter().map(|constraint| json!({
                "name": constraint.name,
                "kind": kind(constraint.kind),
                "equations": constraint.rows.iter().map(|row| &row.name).collect::<Vec<_>>(),
            })).collect::<Vec<_>>(),
            "objectives": model.objectives.iter().map(|objective| json!({
                "name": objective.name,
                "unit": objective.unit,
                "description": objective.description,
            })).collect::<Vec<_>>(),
            "sensitivity": self.sensitivity(),
            "parameters": model.parameters.iter().enumerate().map(parameter).collect::<Vec<_>>(),
            "inputs": model.inputs.iter().map(|input| json!({
                "name": input.name,
                "default": input.default,
                "unit": input.unit,
                "hold": hold(input.hold),
                "description": input.description,
            })).collect::<Vec<_>>(),
            "outputs": program.outputs.iter().map(|(name, unit)| json!({"name": name, "unit": unit}))
                .collect::<Vec<_>>(),
            "markers": program.markers,
            "cases": model.cases.iter().map(|case| json!({
                "name": case.name,
                "description": case.description,
            })).collect::<Vec<_>>(),
            "simulation": {
                "begin": simulation.begin,
                "end": simulation.end,
                "step": simulation.step,
                "output_step": simulation.output_step,
                "formulation": simulation.formulation.keyword(),
                "integrator": simulation.integrator.keyword(),
                "penalty": simulation.penalty,
                "projection": simulation.projection.keyword(),
                "newton_tolerance": simulation.newton_tolerance,
                "newton_iterations": simulation.newton_iterations,
                "relative_tolerance": simulation.relative_tolerance,
                "absolute_tolerance": simulation.absolute_tolerance,
            },
            "bundles": program.bundles.iter().map(bundle).collect::<Vec<_>>(),
        })
    }
}

fn section(out: &mut String, title: &str, table: Table) {
    if !table.is_empty() {
        let _ = write!(out, "\n{title}\n{}", table.print());
    }
}

fn plural(n: usize, one: &str, many: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {many}") }
}

/// Who chose the joint to be cut.
fn cut_by(joint: &Joint) -> &'static str {
    if joint.cut == Some(true) { "file" } else { "choice" }
}

fn kind(kind: ConstraintKind) -> &'static str {
    match kind {
        ConstraintKind::Holonomic => "holonomic",
        ConstraintKind::Nonholonomic => "nonholonomic",
    }
}

fn number_or(value: Option<f64>, otherwise: &str) -> String {
    value.map_or(otherwise.into(), short)
}

fn bounds(parameter: &Parameter) -> String {
    match (parameter.min, parameter.max) {
        (None, None) => String::new(),
        (Some(low), None) => format!(">= {}", short(low)),
        (None, Some(high)) => format!("<= {}", short(high)),
        (Some(low), Some(high)) => format!("{} to {}", short(low), short(high)),
    }
}

fn hold(hold: Hold) -> &'static str {
    match hold {
        Hold::Zero => "zero",
        Hold::Linear => "linear",
        Hold::Signal => "signal",
    }
}

/// Free text of a file on one line, without what a terminal takes for a command.
fn one_line(text: &str) -> String {
    let words: Vec<String> =
        text.split_whitespace().map(|word| word.chars().filter(|c| !c.is_control()).collect()).collect();
    words.join(" ")
}

fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.into();
    }
    text.chars().take(width - 1).chain(['…']).collect()
}
