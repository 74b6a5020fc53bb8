//! `mbs run`: simulate a model, differentiate its objectives, show both and write a page.
//!
//! Enters: the command line. Leaves: a page with everything that is known, also where the run did not come to its end; a run without a
//! step has nothing to show, and leaves the page of another as it is.

use crate::arguments::Run;
use crate::failure::Failure;
use crate::gradient::{self, Ran};
use crate::number::{count, duration, significant};
use crate::plot::Curves;
use crate::report_html::{self, Derivatives};
use crate::settings::Settings;
use crate::simulate::{self, Prepared, Trouble};
use crate::{differentiated, files, report, report_json};
use mbs_engine::Interpreted;
use mbs_runtime::System;
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::path::PathBuf;

/// Runs a model and writes its page.
pub(crate) fn run(arguments: &Run) -> Result<(), Failure> {
    let Run { common, results, method, .. } = arguments;
    let to_stdout = simulate::check_out("--out", results.out.as_deref(), common)?;
    if simulate::check_out("--report", arguments.report.as_deref(), common)? {
        return Err(Failure::usage("a page is a file: name one after `--report`"));
    }
    let model = differentiated::read(common, &arguments.by)?;
    let prepared = simulate::prepare(common, model, |defaults, constrained| {
        let mut settings = Settings::of_dynamics(defaults, constrained, common, results.output_step, method)?;
        settings.reactions = arguments.reactions;
        settings.keeps_history = true;
        Ok(settings)
    })?;
    let file =
        arguments.report.clone().unwrap_or_else(|| PathBuf::from(format!("{}.html", prepared.model.name)));
    files::check_place(&file)?;
    let done = simulate::execute(results, &prepared)?;
    let shown = done.shown(common, results, &prepared);
    let Some(trouble) = shown.trouble() else { return Ok(()) };
    if matches!(trouble, Trouble::Usage(_)) {
        return trouble.outcome();
    }
    let (derivatives, note, trouble) = match trouble {
        Trouble::None if !arguments.no_gradient => differentiate(arguments, &prepared)?,
        trouble => (None, None, trouble),
    };
    if let Some(note) = &note {
        files::complain(&format!("note: {note}\n"));
    }
    let shows = trouble.message().is_none() || done.has_moved(&prepared);
    let written = if shows {
        let note = note.as_deref();
        let page = report_html::page(&shown, &prepared, derivatives.as_ref(), trouble.message(), note);
        files::write_whole(&file, &page.html())
    } else {
        Ok(())
    };
    let has_page = shows && written.is_ok();
    if common.json {
        let mut object = report_json::report(&shown, trouble.message());
        if let Some(derivatives) = &derivatives {
            object["gradient"] = gradients(derivatives);
        }
        object["report"] = json!(has_page.then(|| file.display().to_string()));
        files::print(&(report_json::pretty(&object) + "\n"))?;
    } else if trouble.message().is_none() {
        let mut text = report::report(&shown);
        text.push_str(&gradient_text(derivatives.as_ref()));
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

/// The gradient of the run, if the model is differentiated by anything; or why there is none, and whether the user stopped it.
fn differentiate(
    arguments: &Run,
    prepared: &Prepared,
) -> Result<(Option<Derivatives>, Option<String>, Trouble), Failure> {
    let Prepared { model, settings, .. } = prepared;
    let case = crate::check::find_case(model, arguments.common.case.as_deref())?;
    if model.sensitivity_under(case).is_empty() {
        return Ok((None, None, Trouble::None));
    }
    let bundles = mbs_engine::gradient::bundles(&settings.simulation, settings.constrained);
    let interpreted = simulate::interpret(model, &arguments.common, bundles)?;
    let mut curves = Curves::new(interpreted.dims().nq * interpreted.program().sensitivity.len());
    let ran = gradient::prepare(&interpreted, settings).and_then(|(start, stride)| {
        gradient::differentiate(&interpreted, settings, start, stride, None, Some(&mut curves))
    });
    match ran {
        Ok(ran) => Ok((Some(Derivatives { model: interpreted, ran, curves }), None, Trouble::None)),
        Err(stopped @ gradient::Trouble::Interrupted(_)) => {
            let why = stopped.explain(&interpreted, None, None).message();
            Ok((None, None, Trouble::Interrupted(format!("the run is whole, its gradient was {why}"))))
        }
        Err(trouble) => {
            let why = trouble.explain(&interpreted, None, None).message();
            Ok((None, Some(format!("there is no gradient: {why}")), Trouble::None))
        }
    }
}

fn gradients(derivatives: &Derivatives) -> Value {
    let Derivatives { model, ran, .. } = derivatives;
    let program = model.program();
    let one = |(i, (name, _)): (usize, &(String, String))| {
        (name.clone(), report_json::by_name(program.sensitivity.clone(), ran.found.of_objective(i)))
    };
    program.objectives.iter().enumerate().map(one).collect::<Map<_, _>>().into()
}

/// The gradient as a person reads it.
fn gradient_text(derivatives: Option<&Derivatives>) -> String {
    let Some(Derivatives { model, ran, .. }) = derivatives else { return String::new() };
    let mut out = String::new();
    for (i, (name, unit)) in model.program().objectives.iter().enumerate() {
        let value = significant(ran.found.objectives[i], 9);
        let _ = writeln!(out, "\n  {}", format!("{name} = {value} {unit}").trim_end());
        out.push_str(&gradient::table(model, &ran.found, i));
    }
    let _ = writeln!(out, "\n  gradient {}", effort(model, ran));
    out
}

fn effort(model: &Interpreted, ran: &Ran) -> String {
    let columns = model.program().sensitivity.len();
    format!("by {} in {}", count(columns, "parameter"), duration(ran.seconds))
}
