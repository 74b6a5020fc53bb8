//! Layers: which crate may depend on which, and within a crate that a module uses only modules above it in the order of `lib.rs`.
//!
//! Read from the sources as text: `crate::name` in code, without comments, strings and what is compiled for tests only. A name that `lib.rs`
//! re-exports stands for the module it comes from.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Each crate of the workspace and which others it may depend on, those for its tests and its build script included.
const CRATES: [(&str, &[&str]); 15] = [
    ("mbs-bundles", &[]),
    ("mbs-codegen", &["mbs-bundles"]),
    ("mbs-simd", &[]),
    ("mbs-runtime", &["mbs-bundles", "mbs-simd"]),
    ("mbs-macros", &["mbs-codegen", "mbs-runtime"]),
    ("mbs-jit", &["mbs-codegen", "mbs-runtime"]),
    ("mbs-engine", &["mbs-bundles", "mbs-codegen", "mbs-jit", "mbs-runtime"]),
    ("mbs-urdf", &["mbs-codegen"]),
    ("mbs-report", &["mbs-codegen", "mbs-engine", "mbs-runtime"]),
    ("mbs-cli", &["mbs-codegen", "mbs-engine", "mbs-macros", "mbs-report", "mbs-runtime", "mbs-urdf"]),
    ("mbs-generated", &["mbs-runtime"]),
    ("mbs-tests", &["mbs-codegen", "mbs-engine", "mbs-generated", "mbs-macros", "mbs-runtime", "mbs-urdf"]),
    ("mbs-figures", &["mbs-codegen", "mbs-engine", "mbs-runtime"]),
    ("mbs-benches", &["mbs-codegen", "mbs-engine", "mbs-runtime"]),
    ("vehicle", &["mbs-codegen", "mbs-runtime"]),
];

/// Uses of a module below that are allowed: file, module, why.
const EXCEPTIONS: [(&str, &str, &str); 1] = [(
    "mbs-engine/src/tape/fuzz.rs",
    "interpreted",
    "a file of tests, which run machine code through a whole model",
)];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn a_crate_depends_only_on_those_below_it() {
    let manifest = text(&root().join("Cargo.toml"));
    let members =
        manifest.split("members = [").nth(1).and_then(|rest| rest.split(']').next()).expect("members");
    let folders: Vec<&str> = members.split('"').skip(1).step_by(2).collect();
    assert_eq!(folders.len(), CRATES.len(), "a crate is missing in the list of this test");
    for folder in folders {
        let manifest = text(&root().join(folder).join("Cargo.toml"));
        let name =
            manifest.split("name = \"").nth(1).and_then(|rest| rest.split('"').next()).expect("a name");
        let (_, allowed) = CRATES
            .iter()
            .find(|(own, _)| *own == name)
            .unwrap_or_else(|| panic!("{name} is not in the list"));
        // Only dependencies are keys that begin so.
        let keys = manifest.lines().filter(|line| line.starts_with("mbs-"));
        for key in keys.map(|line| line.split([' ', '.', '=']).next().unwrap_or_default()) {
            assert!(allowed.contains(&key), "{name} may not depend on {key}");
        }
    }
}

/// In every crate with modules in layers: all but `mbs-bundles`, whose types describe one table and name each other.
#[test]
fn a_module_uses_only_those_above_it() {
    let mut wrong = Vec::new();
    for (folder, root_file) in [
        ("mbs-codegen", "lib.rs"),
        ("mbs-runtime", "lib.rs"),
        ("mbs-macros", "lib.rs"),
        ("mbs-jit", "lib.rs"),
        ("mbs-engine", "lib.rs"),
        ("mbs-urdf", "lib.rs"),
        ("mbs-report", "lib.rs"),
        ("mbs-cli", "main.rs"),
    ] {
        let sources = root().join(folder).join("src");
        let top = code(&text(&sources.join(root_file)));
        let modules = modules(&top);
        let order: HashMap<&str, usize> =
            modules.iter().enumerate().map(|(i, name)| (name.as_str(), i)).collect();
        assert!(order.len() > 1, "the modules of {folder}");
        let exports = exports(&top, &order);
        for module in &modules {
            for file in files(&sources, module) {
                let shown = file.strip_prefix(root()).unwrap_or(&file).display().to_string();
                for name in used(&code(&text(&file))) {
                    let target = exports.get(name.as_str()).cloned().unwrap_or(name);
                    let is_below =
                        order.get(target.as_str()).is_some_and(|place| *place > order[module.as_str()]);
                    let is_allowed = EXCEPTIONS.iter().any(|(file, to, _)| *file == shown && *to == target);
                    if is_below && !is_allowed {
                        wrong.push(format!("{shown} uses `{target}`, which stands below `{module}` in {folder}/src/{root_file}"));
                    }
                }
            }
        }
    }
    wrong.sort();
    wrong.dedup();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn uses_are_read_from_sources() {
    let source = "//! [`crate::a`]\nuse crate::{b::{self, C}, d}; /* crate::e */ fn f() { crate::g::h(\"crate::i\"); }\n\
                  #[cfg(test)]\nuse crate::j;\n#[cfg(test)]\nmod tests { use crate::k; fn t() {} }\npub(crate) fn l() {}\n";
    assert_eq!(used(&code(source)), ["b", "d", "g"]);
    let top = code("pub mod a;\nmod b;\npub use b::{C, d::E};\n");
    let order: HashMap<&str, usize> = [("a", 0), ("b", 1)].into();
    assert_eq!(
        (modules(&top), exports(&top, &order).get("E").cloned()),
        (vec!["a".into(), "b".into()], Some("b".into()))
    );
}

/// All files of a module.
fn files(sources: &Path, module: &str) -> Vec<PathBuf> {
    let mut all = vec![sources.join(format!("{module}.rs"))];
    let mut folders = vec![sources.join(module)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            match path.is_dir() {
                true => folders.push(path),
                false => all.extend(path.extension().is_some_and(|end| end == "rs").then_some(path)),
            }
        }
    }
    all.retain(|file| file.is_file());
    // Modules for tests only.
    let tests = |file: &PathBuf| -> Vec<PathBuf> {
        let source = text(file);
        let declared = source.split("#[cfg(test)]\nmod ").skip(1).filter_map(|rest| rest.split_once(';'));
        let names = declared.map(|(name, _)| name).filter(|name| name.chars().all(is_letter));
        names.map(|name| file.with_file_name(format!("{name}.rs"))).collect()
    };
    let tests: Vec<PathBuf> = all.iter().flat_map(tests).collect();
    all.retain(|file| !tests.contains(file));
    assert!(!all.is_empty(), "{module} has no file");
    all
}

/// Names of the modules, in their order.
fn modules(top: &str) -> Vec<String> {
    let declared = |line: &str| {
        let line = line.trim().trim_start_matches("pub(crate) ").trim_start_matches("pub ");
        line.strip_prefix("mod ")?.strip_suffix(';').map(String::from)
    };
    top.lines().filter_map(declared).collect()
}

/// Which module each name that the crate re-exports comes from.
fn exports(top: &str, order: &HashMap<&str, usize>) -> HashMap<String, String> {
    let mut all = HashMap::new();
    for statement in top.split("pub use ").skip(1) {
        let statement = statement.split(';').next().unwrap_or_default();
        let module: String = statement.chars().take_while(|c| is_letter(*c)).collect();
        if order.contains_key(module.as_str()) {
            let names = statement.split(|c| !is_letter(c)).filter(|name| !name.is_empty() && *name != module);
            all.extend(names.map(|name| (name.into(), module.clone())));
        }
    }
    all
}

fn is_letter(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The first names behind `crate::`.
fn used(code: &str) -> Vec<String> {
    let mut names = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        if !rest.starts_with('{') {
            names.push(rest.chars().take_while(|c| is_letter(*c)).collect());
            continue;
        }
        // Names at the first level of braces.
        let (mut depth, mut name) = (0, Some(String::new()));
        for c in rest.chars() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 1 => {
                    names.extend(name.replace(String::new()).filter(|name| !name.is_empty()))
                }
                c if depth == 1
                    && is_letter(c)
                    && !name.as_deref().is_some_and(|name| name.ends_with(':')) =>
                {
                    name.get_or_insert_default().push(c);
                }
                ':' if depth == 1 => name.get_or_insert_default().push(':'),
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
        names.extend(name.filter(|name| !name.is_empty()));
    }
    names.iter_mut().for_each(|name| *name = name.split(':').next().unwrap_or_default().into());
    names
}

/// A source without comments, strings, and what is compiled for tests only.
fn code(source: &str) -> String {
    let mut out = String::new();
    let mut rest = source;
    while let Some(c) = rest.chars().next() {
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if rest.starts_with("r#\"") {
            rest.find("\"#").map_or(rest.len(), |end| end + 2)
        } else if c == '"' {
            string(rest)
        } else if rest.starts_with("'\"'") {
            3
        } else if rest.starts_with("#[cfg(test)]") {
            item(rest)
        } else {
            out.push(c);
            c.len_utf8()
        };
        rest = &rest[skipped..];
    }
    out
}

/// Length of a string literal.
fn string(text: &str) -> usize {
    let mut escaped = true;
    for (at, c) in text.char_indices() {
        if c == '"' && !escaped {
            return at + 1;
        }
        // The first quote opens it.
        escaped = c == '\\' && !escaped && at > 0;
    }
    text.len()
}

/// Length of an item: to its semicolon, or to the end of its braces.
fn item(text: &str) -> usize {
    let mut depth = 0;
    let mut at = "#[cfg(test)]".len();
    while let Some(c) = text[at..].chars().next() {
        let step = match c {
            '"' => string(&text[at..]),
            '/' if text[at..].starts_with("//") => text[at..].find('\n').unwrap_or(text.len() - at),
            '\'' if text[at..].starts_with("'\"'")
                || text[at..].starts_with("'{'")
                || text[at..].starts_with("'}'") =>
            {
                3
            }
            c => c.len_utf8(),
        };
        at += step;
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 && matches!(c, ';' | '}') {
            return at;
        }
    }
    text.len()
}
