//! A model file with one more case.
//!
//! Input: the text of a model, the case a search ran under, better parameters. Output: the text with a case that has all of it;
//! everything else, comments too, stays as it was. The result is validated before it is written.

use mbs_codegen::model::optimisation::HistoryForm;
use mbs_codegen::model::{Case, Model, ParameterValue};
use mbs_engine::optimisation::VariedInput;
use std::fmt::Write;

/// Longest expression that is written into a case; longer ones get parameters.
const INLINE: usize = 3000;

/// Most steps that are written into an expression.
const STEPS: usize = 40;

/// The text of a model with one more case, or why there is none. `inputs`: those whose histories are among the values.
pub(crate) fn with_case(
    text: &str,
    model: &Model,
    base: Option<&Case>,
    name: &str,
    values: &[(String, f64)],
    inputs: &[VariedInput],
) -> Result<String, String> {
    if model.cases.iter().any(|case| case.name == name) {
        return Err(format!("the model has a case `{name}` already; choose another name"));
    }
    let (signals, arrays) = signals(inputs, values);
    let added = if arrays.is_empty() { None } else { Some(with_parameters(text, &arrays)?) };
    let text = added.as_deref().unwrap_or(text);
    let mut lines: Vec<&str> = text.lines().collect();
    let cases = lines.iter().position(|line| line.split('#').next().unwrap_or("").trim_end() == "cases:");
    let flow = lines.iter().any(|line| line.starts_with("cases:"));
    let indent = match cases {
        Some(at) => {
            let first = lines[at + 1..]
                .iter()
                .find(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'));
            first.map_or(2, |line| line.len() - line.trim_start().len()).max(1)
        }
        None if flow => return Err("`cases` is written in braces, so nothing can be added to it".into()),
        None => 2,
    };
    let pad = " ".repeat(indent);
    let mut entry = format!("{pad}{name}:\n");
    if let Some(base) = base {
        let kept = rest_of(&lines, cases, &pad, &base.name, !inputs.is_empty())?;
        for line in kept.rest {
            entry.push_str(line);
            entry.push('\n');
        }
        if !inputs.is_empty() && !kept.inputs.is_empty() {
            let is_varied = |line: &&str| {
                inputs.iter().any(|input| line.trim_start().starts_with(&format!("{}:", input.name)))
            };
            let _ = writeln!(entry, "{pad}{pad}inputs:");
            kept.inputs.iter().filter(|line| !is_varied(line)).for_each(|line| {
                let _ = writeln!(entry, "{pad}{pad}{pad}{}", line.trim_start());
            });
        } else if !inputs.is_empty() {
            let _ = writeln!(entry, "{pad}{pad}inputs:");
        }
    } else if !inputs.is_empty() {
        let _ = writeln!(entry, "{pad}{pad}inputs:");
    }
    for (name, signal) in signals {
        let _ = writeln!(entry, "{pad}{pad}{pad}{name}: \"{signal}\"");
    }
    let own = parameters(model, base, values);
    if !own.is_empty() || inputs.is_empty() {
        let _ = writeln!(entry, "{pad}{pad}parameters:");
    }
    for (name, value) in own {
        let _ = writeln!(entry, "{pad}{pad}{pad}{name}: {value}");
    }
    let mut out = String::new();
    match cases {
        Some(at) => {
            // Before the others, so that their end need not be found.
            let tail = lines.split_off(at + 1);
            lines.iter().for_each(|line| out.push_str(&format!("{line}\n")));
            out.push_str(&entry);
            tail.iter().for_each(|line| out.push_str(&format!("{line}\n")));
        }
        None => {
            out.push_str(text.trim_end());
            out.push_str("\n\ncases:\n");
            out.push_str(&entry);
        }
    }
    match mbs_codegen::read("saved.yaml", &out) {
        Ok((read, _)) if read.cases.iter().any(|case| case.name == name) => Ok(out),
        _ => Err("the file is not written in a way that a case can be added to".into()),
    }
}

/// The histories as signals, and arrays that those need which are too long for an expression.
#[allow(clippy::type_complexity, reason = "names with texts, twice")]
fn signals(
    inputs: &[VariedInput],
    values: &[(String, f64)],
) -> (Vec<(String, String)>, Vec<(String, String)>) {
    let (mut signals, mut arrays) = (Vec::new(), Vec::new());
    for input in inputs {
        let list = |numbers: &mut dyn Iterator<Item = f64>| {
            format!("[{}]", numbers.map(exact).collect::<Vec<_>>().join(", "))
        };
        let own = values.iter().skip(input.first).take(input.times.len()).map(|(_, value)| *value);
        let (mut times, mut heights) = (list(&mut input.times.iter().copied()), list(&mut own.into_iter()));
        let constant = input.history.form == HistoryForm::Constant;
        let long = times.len() + heights.len() > INLINE || (constant && input.times.len() > STEPS);
        if long {
            for (suffix, text) in [("times", &mut times), ("values", &mut heights)] {
                let name = format!("{}_{suffix}", input.name.replace('.', "_"));
                arrays.push((name.clone(), std::mem::replace(text, name)));
            }
        }
        let signal = match input.history.form {
            HistoryForm::Spline => format!("spline(t, {times}, {heights})"),
            HistoryForm::Linear => format!("table(t, {times}, {heights})"),
            HistoryForm::Constant if long => {
                let places = list(&mut (0..input.times.len()).map(|i| i as f64));
                let name = format!("{}_places", input.name.replace('.', "_"));
                arrays.push((name.clone(), places));
                format!("{heights}[table(t, {times}, {name})]")
            }
            HistoryForm::Constant => steps(&input.times, values.get(input.first..).unwrap_or_default()),
        };
        signals.push((input.name.clone(), signal));
    }
    (signals, arrays)
}

/// Piecewise constant: the last value whose time has come.
fn steps(times: &[f64], values: &[(String, f64)]) -> String {
    let mut all = values.first().map_or("0".into(), |(_, value)| exact(*value));
    let mut before = values.first().map_or(0.0, |(_, value)| *value);
    for (t, (_, value)) in times.iter().zip(values).skip(1) {
        let _ = write!(all, " + if(t < {}, 0, {})", exact(*t), exact(value - before));
        before = *value;
    }
    all
}

/// The text with more parameters.
fn with_parameters(text: &str, arrays: &[(String, String)]) -> Result<String, String> {
    let lines: Vec<&str> = text.lines().collect();
    let at = lines.iter().position(|line| line.split('#').next().unwrap_or("").trim_end() == "parameters:");
    if at.is_none() && lines.iter().any(|line| line.starts_with("parameters:")) {
        return Err("`parameters` is written in braces, so no history can be added to it".into());
    }
    let depth = |line: &&&str| line.len() - line.trim_start().len();
    let indent = at.and_then(|at| lines[at + 1..].iter().find(|l| !l.trim().is_empty()).as_ref().map(depth));
    let pad = " ".repeat(indent.unwrap_or(2).max(1));
    let more: String = arrays.iter().map(|(name, list)| format!("{pad}{name}: {list}\n")).collect();
    Ok(match at {
        Some(at) => {
            let (head, tail) = lines.split_at(at + 1);
            format!("{}\n{more}{}\n", head.join("\n"), tail.join("\n"))
        }
        None => format!("{}\n\nparameters:\n{more}", text.trim_end()),
    })
}

/// The lines of a case but its parameters; its inputs apart, if asked for.
struct Kept<'t> {
    rest: Vec<&'t str>,
    inputs: Vec<&'t str>,
}

fn rest_of<'t>(
    lines: &[&'t str],
    cases: Option<usize>,
    pad: &str,
    name: &str,
    inputs_apart: bool,
) -> Result<Kept<'t>, String> {
    let refuse = || Err(format!("case `{name}` is not written in lines of its own, so it cannot be copied"));
    let Some(cases) = cases else { return refuse() };
    fn head<'t>(line: &'t str, pad: &str, name: &str) -> Option<&'t str> {
        line.strip_prefix(pad)?.strip_prefix(name).map(str::trim_start)
    }
    let is_head = |line: &&str| head(line, pad, name).is_some_and(|rest| rest.starts_with(':'));
    let found = lines[cases + 1..].iter().position(is_head);
    let Some(at) = found.map(|at| at + cases + 1) else { return refuse() };
    let after = head(lines[at], pad, name)
        .unwrap_or_default()
        .trim_start_matches(':')
        .split('#')
        .next()
        .unwrap_or("")
        .trim();
    match after {
        "" => {}
        "{}" | "~" | "null" => return Ok(Kept { rest: Vec::new(), inputs: Vec::new() }),
        _ => return refuse(),
    }
    let depth = |line: &str| line.len() - line.trim_start().len();
    let own: Vec<&str> = lines[at + 1..]
        .iter()
        .take_while(|line| line.trim().is_empty() || depth(line) > pad.len())
        .copied()
        .collect();
    let inner = own.iter().find(|line| !line.trim().is_empty()).map_or(0, |line| depth(line));
    let (mut rest, mut inputs) = (Vec::new(), Vec::new());
    let (mut skipping, mut of_inputs) = (false, false);
    for line in own {
        if depth(line) == inner && !line.trim().is_empty() {
            skipping = line.trim_start().starts_with("parameters:");
            of_inputs = inputs_apart && line.trim_start().starts_with("inputs:");
            if of_inputs {
                if !line.split('#').next().unwrap_or("").trim_end().ends_with(':') {
                    return Err(format!("the inputs of case `{name}` are not written in lines of their own"));
                }
                continue;
            }
        }
        if !skipping && !line.trim().is_empty() {
            if of_inputs { &mut inputs } else { &mut rest }.push(line);
        }
    }
    Ok(Kept { rest, inputs })
}

/// The parameters of the case, with the better ones in place.
fn parameters(model: &Model, base: Option<&Case>, values: &[(String, f64)]) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for (i, parameter) in model.parameters.iter().enumerate() {
        let own =
            base.and_then(|case| case.parameters.iter().find(|(id, _)| id.index() == i)).map(|(_, v)| v);
        let name = &parameter.name;
        let better = |name: &str| values.iter().find(|(other, _)| other == name).map(|(_, value)| *value);
        match own.unwrap_or(&parameter.value) {
            ParameterValue::Number(value) => {
                if own.is_some() || better(name).is_some() {
                    all.push((name.clone(), exact(better(name).unwrap_or(*value))));
                }
            }
            ParameterValue::Array(array) => {
                let element = |i: usize| better(&format!("{name}[{i}]"));
                if own.is_some() || (0..array.len()).any(|i| element(i).is_some()) {
                    let list = array.iter().enumerate().map(|(i, value)| exact(element(i).unwrap_or(*value)));
                    all.push((name.clone(), format!("[{}]", list.collect::<Vec<_>>().join(", "))));
                }
            }
            ParameterValue::Derived(_) => {}
        }
    }
    all
}

/// The shortest digits that give the same number again.
pub(crate) fn exact(value: f64) -> String {
    format!("{value:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODEL: &str = "mbs: 1
name: m
parameters: {k: 1, c: 2, a: [1, 2]}
bodies: {b: {mass: k}}
joints: {j: {type: prismatic, parent: ground, child: b, axis: [1, 0, 0]}}
inputs: {u: 0}
forces: {f: {type: joint_force, coordinate: j, value: \"u + c + a[0] + a[1]\"}}
";

    fn saved(cases: &str, base: Option<&str>) -> Result<Model, String> {
        let text = format!("{MODEL}{cases}");
        let (model, _) = mbs_codegen::read("m.yaml", &text).map_err(|d| d.render("m.yaml", &text))?;
        let base = base.and_then(|name| model.cases.iter().find(|case| case.name == name));
        let values = [("k".to_string(), 0.1 + 0.2), ("a[1]".to_string(), 5.0)];
        let text = with_case(&text, &model, base, "best", &values, &[])?;
        Ok(mbs_codegen::read("m.yaml", &text).map_err(|d| d.render("m.yaml", &text))?.0)
    }

    #[test]
    fn a_case_is_added_to_any_file() {
        let named = "cases:\n  # one\n  shaken:\n    parameters:\n      c: 3\n      k: 4\n    inputs:\n      u: sin(t)\n  still: {}\n";
        for (cases, base, c) in
            [("", None, 2.0), (named, None, 2.0), (named, Some("shaken"), 3.0), (named, Some("still"), 2.0)]
        {
            let model = saved(cases, base).unwrap();
            let case = model.cases.iter().find(|case| case.name == "best").unwrap();
            let seen = model.under_case(Some(case));
            let value = |name: &str| seen.parameters.iter().find(|p| p.name == name).unwrap().value.clone();
            assert_eq!(value("k"), ParameterValue::Number(0.1 + 0.2));
            assert_eq!(value("c"), ParameterValue::Number(c));
            assert_eq!(value("a"), ParameterValue::Array(vec![1.0, 5.0]));
            assert_eq!(case.inputs.len(), usize::from(base == Some("shaken")));
        }
        assert!(saved("cases: {still: {}}\n", None).is_err());
        assert!(saved("cases:\n  best: {}\n", None).is_err());
    }
}
