//! The summary of a model as tables.

use super::Summary;
use crate::output::number::{count, grouped, short};
use crate::output::table::Table;
use crate::session::choices::some;
use mbs_codegen::model::evaluate::Value as ParameterNumber;
use mbs_codegen::model::{ConstraintKind, Hold, Joint, OutputValue, Parameter, ParameterValue};
use mbs_codegen::topology::{Loop, RowSource};
use std::fmt::Write;

impl Summary<'_> {
    /// The whole summary.
    pub(super) fn text(&self) -> String {
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
            if !program.dropped_rows.is_empty() {
                let names = some(&program.dropped_rows.iter().map(String::as_str).collect::<Vec<_>>());
                let _ = write!(out, "\n  dropped, since 0 = 0 in every position: {names}");
            }
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
        section(&mut out, "events", self.events());
        section(&mut out, "objectives", self.objectives());
        section(&mut out, "parameters", self.parameters());
        section(&mut out, "inputs", self.inputs());
        section(&mut out, "outputs", self.outputs());
        section(&mut out, "cases", self.cases());
        section(&mut out, "optimisation", self.optimisation());
        section(&mut out, "bundles", self.bundles());
        for (bundle, operations) in &self.too_large {
            // Solves have as many as their matrices, which come with them.
            let _ = match operations {
                0 => writeln!(out, "  {bundle} is left out with them"),
                n => writeln!(out, "  {bundle} is left out: about {} operations", grouped(*n)),
            };
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
                let (name, kind) = (joint.name.clone(), kind_of(joint));
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
                    if first { kind_of(joint) } else { String::new() },
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

    fn events(&self) -> Table {
        let mut table = Table::new(&["name", "direction", "does", "description"]);
        for event in &self.model.events {
            table.row([
                event.name.clone(),
                event.direction.keyword().into(),
                super::actions(self.model, event).join(", "),
                cut(&one_line(&event.description), 50),
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

    fn optimisation(&self) -> Table {
        let mut table =
            Table::new(&["name", "minimises", ">unknowns", ">constraints", "cases", "description"]);
        for problem in &self.model.optimisation {
            let terms = problem.minimise.iter().map(|term| term.judged.name(self.model));
            let knots: usize = problem.histories.iter().map(|history| history.knots.len()).sum();
            let cases = problem.cases.iter().map(|(case, _)| self.model.cases[*case].name.as_str());
            table.row([
                problem.name.clone(),
                cut(&terms.collect::<Vec<_>>().join(" + "), 40),
                (problem.over.len() + knots).to_string(),
                if problem.subject_to.is_empty() {
                    String::new()
                } else {
                    problem.subject_to.len().to_string()
                },
                cut(&cases.collect::<Vec<_>>().join(", "), 40),
                cut(&one_line(&problem.description), 60),
            ]);
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
}

fn section(out: &mut String, title: &str, table: Table) {
    if !table.is_empty() {
        let _ = write!(out, "\n{title}\n{}", table.print());
    }
}

fn plural(n: usize, one: &str, many: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {many}") }
}

/// The type of a joint, and what it was recognised from.
fn kind_of(joint: &Joint) -> String {
    match &joint.shared {
        Some(shared) => format!("{} ({})", joint.kind.keyword(), shared.what),
        None => joint.kind.keyword().into(),
    }
}

/// Who chose the joint to be cut.
pub(super) fn cut_by(joint: &Joint) -> &'static str {
    if joint.cut == Some(true) { "file" } else { "choice" }
}

pub(super) fn kind(kind: ConstraintKind) -> &'static str {
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

pub(super) fn hold(hold: Hold) -> &'static str {
    match hold {
        Hold::Zero => "zero",
        Hold::Linear => "linear",
        Hold::Signal => "signal",
    }
}

/// Free text of a file on one line, without control sequences.
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
