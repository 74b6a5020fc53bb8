//! The guide is true: its pages are there, its models are valid, its commands run and print what it shows, its Rust is compiled.
//!
//! On each page, in order: a block of YAML that is a whole model becomes the file of its name; a block of `sh` is run in a folder with the
//! shipped models; a block of `text` after it must be in what the last command printed; a block of Rust must be part of a file that is
//! compiled and tested.

use crate::command::{Folder, command};
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Blocks between fences: language and text.
fn blocks(page: &str) -> Vec<(String, String)> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(language) = line.strip_prefix("```") else { continue };
        let text: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        blocks.push((language.into(), text.join("\n")));
    }
    blocks
}

/// Words of a command line; single quotes hold words together.
fn words(line: &str) -> Vec<String> {
    let line = line.split(" #").next().unwrap_or(line);
    let parts = line.split('\'').enumerate();
    let mut words = Vec::new();
    for (i, part) in parts {
        if i % 2 == 1 {
            words.push(part.to_string());
        } else {
            words.extend(part.split_whitespace().map(String::from));
        }
    }
    words
}

/// Runs a line; gives what it printed.
fn run(page: &str, line: &str, folder: &Folder) -> String {
    let all = words(line);
    let (all, file) = match all.iter().position(|word| word == ">") {
        Some(at) => (all[..at].to_vec(), all.get(at + 1).cloned()),
        None => (all, None),
    };
    let text: Vec<&str> = all.iter().map(String::as_str).collect();
    let arguments = match text.as_slice() {
        ["mbs", rest @ ..] | ["cargo", "run", "--release", "-p", "mbs-cli", "--", rest @ ..] => rest,
        // What builds or tests this very workspace cannot do so inside of its tests.
        ["cargo", "test", "--release"] | ["cargo", "run", "--release", "-p", "mbs-figures"] => {
            return String::new();
        }
        _ => panic!("{page}: `{line}` is not tested"),
    };
    let output = command(arguments).current_dir(folder.path("")).output().expect("the command runs");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{page}: `{line}`: {error}");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    if let Some(file) = file {
        folder.file(&file, &printed);
    }
    printed
}

/// A line without what depends on the computer: times, and digits of rounding.
fn lasting(line: &str) -> &str {
    let end = if line.starts_with("  effort") || line.starts_with("  gradient") {
        line.find(" in ")
    } else {
        line.find("of constraints:").or(line.find("page     "))
    };
    &line[..end.unwrap_or(line.len())]
}

fn check_page(name: &str) {
    let page = read(name);
    let folder = Folder::with_models();
    folder.file("four_bar.urdf", read("tests/urdf/four_bar.urdf"));
    let compiled: String = [
        "tests/examples/readme.rs.in",
        "tests/tests/compiled/problem.rs",
        "tests/freestanding/src/face.rs",
        "tests/freestanding/build.rs",
        "tests/freestanding/src/constrained.rs",
        "mbs-cli/src/commands/template/main.rs.in",
    ]
    .map(read)
    .concat()
    .replace("\"../models/", "\"models/")
    .replace("MODULE", "my_robot");
    let mut printed = String::new();
    for (language, text) in blocks(&page) {
        match language.as_str() {
            "yaml" if text.starts_with("mbs: 1") => {
                let model = text.lines().find_map(|line| line.strip_prefix("name: ")).unwrap_or("model");
                let model = model.split(' ').next().unwrap_or(model);
                folder.file(&format!("{model}.yaml"), &text);
                run(name, &format!("mbs check {model}.yaml"), &folder);
            }
            "sh" => {
                for line in text.lines().filter(|line| !line.is_empty()) {
                    printed = run(name, line, &folder);
                }
            }
            "text" if !printed.is_empty() => {
                let mut lines = printed.lines();
                for line in text.lines().filter(|line| !line.trim().is_empty() && line.trim() != "…") {
                    let found = lines.any(|printed| lasting(printed).starts_with(lasting(line)));
                    assert!(found, "{name}: no `{line}`, in this order, in\n{printed}");
                }
            }
            "rust" => assert!(compiled.contains(&text), "{name}: this is in no compiled file:\n{text}"),
            _ => {}
        }
    }
}

#[test]
fn every_page_is_listed_and_there() {
    let summary = read("docs/SUMMARY.md");
    let listed: Vec<&str> = summary.split("](").skip(1).filter_map(|rest| rest.split(')').next()).collect();
    for page in &listed {
        read(format!("docs/{page}"));
    }
    for entry in std::fs::read_dir(root().join("docs")).expect("the guide") {
        let name = entry.expect("an entry").file_name().into_string().expect("text");
        let listed = !name.ends_with(".md") || name == "SUMMARY.md" || listed.contains(&name.as_str());
        assert!(listed, "{name} is not in SUMMARY.md");
    }
}

#[test]
fn links_lead_somewhere() {
    for entry in std::fs::read_dir(root().join("docs")).expect("the guide") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|end| end != "md") {
            continue;
        }
        let page = read(&path);
        for link in page.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let (file, place) = link.split_once('#').unwrap_or((link, ""));
            if link.contains("://") {
                continue;
            }
            let target = if file.is_empty() { path.clone() } else { path.with_file_name(file) };
            assert!(target.exists(), "{}: no {link}", path.display());
            // A book has its own pages only.
            assert!(!file.starts_with(".."), "{}: {link} leads out of the book", path.display());
            let headings = if place.is_empty() { String::new() } else { read(&target) };
            let anchor = |line: &str| -> String {
                let words = line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
                words.chars().filter(|c| c.is_alphanumeric() || *c == '-' || *c == '_').collect()
            };
            let found =
                headings.lines().filter(|line| line.starts_with('#')).any(|line| anchor(line) == place);
            assert!(place.is_empty() || found, "{}: no {link}", path.display());
        }
    }
}

#[test]
fn the_book_can_be_built() {
    let folder = Folder::new();
    let book = folder.path("book");
    let built = Command::new("mdbook").args(["build", "docs", "-d", &book]).current_dir(root()).output();
    let Ok(built) = built else {
        println!("skipped: no mdBook; `cargo install mdbook` installs it");
        return;
    };
    let said = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success() && !said.contains("WARN") && !said.contains("ERROR"), "{said}");
    // Formulas are text: nothing is asked for over the network to show them.
    let page = read(format!("{book}/mathematics.html"));
    assert!(page.contains("Φ_zᵀ λ") && !page.contains("MathJax"));
}

macro_rules! pages {
    ($($test:ident: $page:literal,)*) => {
        $(#[test] fn $test() { check_page($page); })*
        #[test]
        fn no_page_is_forgotten() {
            let tested = [$($page),*];
            for entry in std::fs::read_dir(root().join("docs")).expect("the guide") {
                let name = entry.expect("an entry").file_name().into_string().expect("text");
                let known = !name.ends_with(".md") || tested.contains(&format!("docs/{name}").as_str());
                assert!(known || name == "SUMMARY.md", "{name} is not tested");
            }
        }
    };
}

pages! {
    readme: "README.md",
    introduction: "docs/introduction.md",
    tutorial: "docs/tutorial.md",
    commands: "docs/commands.md",
    gradients: "docs/gradients.md",
    adjoints: "docs/adjoints.md",
    events: "docs/events.md",
    optimisation: "docs/optimisation.md",
    real_time: "docs/realtime.md",
    how_to: "docs/how-to.md",
    import: "docs/import.md",
    coming_from: "docs/coming-from.md",
    rust: "docs/rust.md",
    bundles: "docs/bundles.md",
    mathematics: "docs/mathematics.md",
    model_reference: "docs/model-reference.md",
}
