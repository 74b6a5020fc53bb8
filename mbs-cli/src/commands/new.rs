//! `mbs new`: a crate to begin with: a model, the macro that writes its solver, a program and a test.

use crate::arguments::New;
use crate::session::failure::Failure;
use crate::session::files;
use std::fs;
use std::path::{Path, PathBuf};

/// Where this command was built from; its crates are there if it is still there.
const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Writes the crate.
pub(crate) fn new(arguments: &New) -> Result<(), Failure> {
    let folder = &arguments.path;
    let name = match folder.file_name().and_then(|name| name.to_str()) {
        Some(name) if is_name(name) && is_taken(name) => {
            return Err(Failure::usage(format!(
                "`{name}` cannot name a crate: it is a word of Rust or the name of a crate that is used; take another, such as `my_{name}`"
            )));
        }
        Some(name) if is_name(name) => name,
        _ => {
            return Err(Failure::usage(format!(
                "`{}` cannot name a crate: take small letters, digits, `-` and `_`, and begin with a letter",
                folder.display()
            )));
        }
    };
    let root = root(arguments.crates.as_deref())?;
    if folder.exists() {
        return Err(Failure::error(format!("`{}` is there already", folder.display())));
    }
    let module = name.replace('-', "_");
    let fill = |text: &str| text.replace("MODULE", &module).replace("NAME", name).replace("ROOT", &root);
    let model = format!("models/{module}.yaml");
    let parts = [
        ("Cargo.toml", include_str!("template/Cargo.toml.in")),
        ("src/main.rs", include_str!("template/main.rs.in")),
        (model.as_str(), include_str!("template/model.yaml.in")),
        (".gitignore", "/target\n*.html\n*.csv\n"),
    ];
    for (part, text) in parts {
        let file = folder.join(part);
        let parent = file.parent().unwrap_or(folder);
        fs::create_dir_all(parent).map_err(|error| {
            Failure::error(format!("cannot make `{}`: {}", parent.display(), files::reason(&error)))
        })?;
        files::write_whole(&file, &fill(text))?;
    }
    files::print(&format!(
        "{} is ready:\n  cd {}\n  cargo run            # prints its motion\n  cargo test\n  mbs run {model}\n",
        folder.display(),
        folder.display()
    ))
}

/// What cargo takes for a name, and Rust for a module.
fn is_name(name: &str) -> bool {
    let rest = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(rest)
}

/// Whether a crate or module of this name would hide another, or is no name in Rust.
fn is_taken(name: &str) -> bool {
    let module = name.replace('-', "_");
    let used = [
        "alloc",
        "build",
        "core",
        "deps",
        "examples",
        "incremental",
        "mbs_macros",
        "mbs_runtime",
        "proc_macro",
        "std",
        "test",
    ];
    used.contains(&module.as_str()) || mbs_codegen::emission::identifier(&module) != module
}

/// The folder of the crates to depend on.
pub(super) fn root(given: Option<&Path>) -> Result<String, Failure> {
    let folder = given.map_or_else(|| PathBuf::from(SOURCE), PathBuf::from);
    let found = fs::canonicalize(&folder).ok().filter(|root| root.join("mbs-runtime/Cargo.toml").is_file());
    match found.as_deref().and_then(Path::to_str) {
        Some(root) => Ok(in_toml(root)),
        None => Err(Failure::error(format!(
            "there is no `mbs-runtime` in `{}`: say where the source of mbs is with `--crates DIR`",
            folder.display()
        ))),
    }
}

/// A path inside a basic string of TOML.
fn in_toml(path: &str) -> String {
    let path = if cfg!(windows) { path.replace('\\', "/") } else { path.into() };
    let escaped = |c: char| match c {
        '"' | '\\' => format!("\\{c}"),
        c if c.is_control() => format!("\\u{:04X}", u32::from(c)),
        c => c.into(),
    };
    path.chars().map(escaped).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_path_is_a_string_of_toml() {
        assert_eq!(super::in_toml("/a b/\"c\"\n\u{7f}"), "/a b/\\\"c\\\"\\u000A\\u007F");
    }
}
