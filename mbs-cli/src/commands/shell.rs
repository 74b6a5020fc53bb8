//! `mbs completions`, `mbs man`, `mbs schema`: what shells, readers and editors want to know of the command and its files.

use crate::arguments::{Arguments, Completions, Man};
use crate::output::json::pretty;
use crate::session::failure::Failure;
use crate::session::files;
use clap::CommandFactory;
use serde_json::json;

/// The schema of model files.
const SCHEMA: &str = include_str!("../../../schema/mbs-1.schema.json");

/// Ends with the help that was asked for, or with what is wrong with the command line; programs get an object.
pub(crate) fn refuse(error: &clap::Error, json: bool) -> ! {
    if json && error.use_stderr() {
        // If that fails, nothing can be reported.
        let _ = files::print(&(pretty(&json!({"error": what(&error.render().to_string())})) + "\n"));
    }
    error.exit()
}

/// What is wrong, in a line: the first paragraph of the text for people, whose further lines say what is missing or possible.
fn what(text: &str) -> String {
    let mut lines = text.lines().map(str::trim).take_while(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default().trim_start_matches("error: ");
    let rest: Vec<&str> = lines.collect();
    format!("{first} {}", rest.join(", ")).trim_end().into()
}

/// Prints the schema of model files.
pub(crate) fn schema() -> Result<(), Failure> {
    files::print(SCHEMA)
}

/// Prints a script that completes commands and options.
pub(crate) fn completions(arguments: &Completions) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "mbs", &mut script);
    files::print(&String::from_utf8_lossy(&script))
}

/// Prints the manual page of the command, or writes those of all its parts.
pub(crate) fn man(arguments: &Man) -> Result<(), Failure> {
    let mut command = Arguments::command();
    command.build();
    let page = |command: clap::Command| -> String {
        let mut text = Vec::new();
        // Writing to memory cannot fail.
        let _ = clap_mangen::Man::new(command).render(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    };
    let Some(folder) = &arguments.output else { return files::print(&page(command)) };
    let parts = command.get_subcommands().filter(|part| part.get_name() != "help");
    let all: Vec<clap::Command> = parts.chain([&command]).cloned().collect();
    std::fs::create_dir_all(folder).map_err(|error| {
        Failure::error(format!("cannot make `{}`: {}", folder.display(), files::reason(&error)))
    })?;
    for command in all {
        let name = command.get_display_name().unwrap_or(command.get_name()).to_string();
        files::write_whole(&folder.join(format!("{name}.1")), &page(command))?;
    }
    Ok(())
}
