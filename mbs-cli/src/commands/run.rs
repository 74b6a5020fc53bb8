//! `mbs run`: simulate a model, differentiate its objectives, show both and write a page.
//!
//! Input: the command line. Output: a page with everything that is known, also where the run did not come to its end; a run without a
//! step has nothing to show, and leaves the page of another as it is.

use crate::arguments::Run;
use crate::commands::gradient::explain;
use crate::output::number::{count, duration, significant};
use crate::output::page::{self, Derivatives};
use crate::output::{gradient as gradient_table, json as report_json, text as report};
use crate::session::execution::{self, Prepared, Trouble};
use crate::session::failure::Failure;
use crate::session::results::{Watcher, check_out};
use crate::session::settings::{name_independent, overrides};
use crate::session::{differentiated, files};
use mbs_codegen::model::{Case, Model, Simulation};
use mbs_engine::Interpreted;
use mbs_engine::gradient::{self, Ran};
use mbs_engine::simulation::{Curves, RunFailure, Settings};
use mbs_runtime::System;
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::path::PathBuf;

/// Runs a model and writes its page.
pub(crate) fn run(arguments: &Run) -> Result<(), Failure> {
    let Run { common, results, method, .. } = arguments;
    let to_stdout = check_out("--out", results.out.as_deref(), common)?;
    if check_out("--report", arguments.report.as_deref(), common)? {
        return Err(Failure::usage("a page is a file: name one after `--report`"));
    }
    let mut source = differentiated::read(common, &arguments.by)?;
    name_independent(&mut source, common, method)?;
    let overrides = overrides(common, results.output_step, Some(method));
    let settle = |defaults: &Simulation, constrained| {
        let mut settings = Settings::of_dynamics(defaults, constrained, &overrides)?;
        settings.reactions = arguments.reactions;
        settings.keeps_history = true;
        Ok(settings)
    };
    // One program for the run and its gradient.
    let further = |settings: &Settings, case: Option<&Case>| match is_differentiated(arguments, &source, case)
    {
        true => gradient::bundles(&settings.simulation, settings.constrained),
        false => Vec::new(),
    };
    let prepared = execution::prepare(common, &source, settle, further)?;
    let file = arguments.report.clone().unwrap_or_else(|| PathBuf::from(format!("{}.html", source.name)));
    if let Some(out) = &results.out {
        files::refuse_twice(("--out", out), ("--report", &file))?;
    }
    files::refuse_overwriting("--report", &file, "the model", &common.model)?;
    files::check_place(&file)?;
    let done = execution::execute(results, &prepared)?;
    let Some(trouble) = done.trouble(&prepared) else { return Ok(()) };
    let shown = done.shown(common, &prepared);
    if matches!(trouble, Trouble::Usage(_)) {
        return trouble.outcome();
    }
    let (derivatives, note, trouble) = match trouble {
        Trouble::None if is_differentiated(arguments, &source, prepared.case) => differentiate(&prepared)?,
        trouble => (None, None, trouble),
    };
    if let Some(note) = &note {
        files::complain(&format!("note: {note}\n"));
    }
    let shows = trouble.message().is_none() || done.has_moved(&prepared);
    let written = if shows {
        let note = note.as_deref();
        let page = page::page(&shown, derivatives.as_ref(), trouble.message(), note);
        files::write_whole(&file, &page.html())
    } else {
        Ok(())
    };
    let has_page = shows && written.is_ok();
    if common.json {
        let mut object = report_json::report(&shown, trouble.message());
        if let Some(derivatives) = &derivatives {
            object["gradient"] = gradients(&prepared.model, derivatives);
        }
        object["report"] = json!(has_page.then(|| file.display().to_string()));
        files::print(&(report_json::pretty(&object) + "\n"))?;
    } else if trouble.message().is_none() {
        let mut text = report::report(&shown);
        text.push_str(&gradient_text(&prepared.model, derivatives.as_ref()));
        if has_page {
            let _ = writeln!(text, "  page     {}", file.display());
        }
        if to_stdout { files::complain(&text) } else { files::print(&text)? }
    } else if has_page {
        files::complain(&format!("note: `{}` shows what there is\n", file.display()));
    }
    if !shows {
        let left = if file.exists() { "is left as it was" } else { "is not written" };
        files::complain(&format!("note: no step was made: `{}` {left}\n", file.display()));
    }
    trouble.outcome().and(written)
}

/// Whether the gradient is wanted, and the model differentiated by anything.
fn is_differentiated(arguments: &Run, source: &Model, case: Option<&Case>) -> bool {
    !arguments.no_gradient && !source.sensitivity_under(case).is_empty()
}

/// The gradient of the run; or why there is none, and whether the user stopped it.
fn differentiate(prepared: &Prepared<'_>) -> Result<(Option<Derivatives>, Option<String>, Trouble), Failure> {
    let Prepared { model, settings, .. } = prepared;
    if let Some(why) = &prepared.without {
        return Ok((None, Some(format!("there is no gradient: {why}")), Trouble::None));
    }
    let mut curves = Curves::new(model.dims().nq * model.program().sensitivity.len());
    let mut watcher = Watcher::new(None, &[], false, &settings.simulation)?;
    let ran = gradient::prepare(model, settings)
        .and_then(|start| gradient::simulate(model, settings, start, &mut watcher, Some(&mut curves)));
    watcher.finish(None);
    let why = |failure| explain(model, &failure, None).message();
    Ok(match ran {
        Ok(ran) => (Some(Derivatives { ran, curves }), None, Trouble::None),
        Err(stopped @ RunFailure::Stopped(_)) => {
            let message = format!("the run is whole, its gradient was {}", why(stopped));
            (None, None, Trouble::Interrupted(message))
        }
        Err(failure) => (None, Some(format!("there is no gradient: {}", why(failure))), Trouble::None),
    })
}

fn gradients(model: &Interpreted, Derivatives { ran, .. }: &Derivatives) -> Value {
    let program = model.program();
    let one = |(i, (name, _)): (usize, &(String, String))| {
        (name.clone(), report_json::by_name(program.sensitivity.clone(), ran.found.of_objective(i)))
    };
    program.objectives.iter().enumerate().map(one).collect::<Map<_, _>>().into()
}

/// The gradient as a person reads it.
fn gradient_text(model: &Interpreted, derivatives: Option<&Derivatives>) -> String {
    let Some(Derivatives { ran, .. }) = derivatives else { return String::new() };
    let mut out = String::new();
    for (i, (name, unit)) in model.program().objectives.iter().enumerate() {
        let value = significant(ran.found.objectives[i], 9);
        let _ = writeln!(out, "\n  {}", format!("{name} = {value} {unit}").trim_end());
        out.push_str(&gradient_table::table(model, &ran.found, i));
    }
    let _ = writeln!(out, "\n  gradient {}", effort(model, ran));
    out
}

fn effort(model: &Interpreted, ran: &Ran) -> String {
    let columns = model.program().sensitivity.len();
    format!("by {} in {}", count(columns, "parameter"), duration(ran.seconds))
}
