//! Every bad file in `tests/diagnostics` gives exactly the messages in the `.expected` file beside it.
//!
//! `MBS_UPDATE=1` writes the expected files anew; read the difference before you commit it.

use std::path::{Path, PathBuf};

fn bad_files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/diagnostics");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    files.retain(|p| p.extension().is_some_and(|e| e == "yaml"));
    files.sort();
    files
}

#[test]
fn bad_files_give_the_expected_messages() {
    let update = std::env::var_os("MBS_UPDATE").is_some_and(|v| v == "1");
    let files = bad_files();
    assert!(files.len() >= 70, "only {} bad files", files.len());
    let mut wrong = Vec::new();
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let (model, diagnostics) = mbs_codegen::yaml::read(&name, &text);
        assert_eq!(model.is_none(), diagnostics.has_errors(), "{name}");
        assert!(!diagnostics.is_empty(), "{name} has no problem");
        let found = diagnostics.render(&name, &text);
        let expected_path = path.with_extension("expected");
        if update {
            std::fs::write(&expected_path, &found).unwrap();
            continue;
        }
        let expected = std::fs::read_to_string(&expected_path).unwrap_or_default();
        if found != expected {
            wrong.push(format!("--- {name}\nexpected:\n{expected}\nfound:\n{found}"));
        }
    }
    assert!(wrong.is_empty(), "{}\nMBS_UPDATE=1 accepts what was found", wrong.join("\n"));
}

/// Every problem points at a place.
#[test]
fn errors_have_places() {
    for path in bad_files() {
        let text = std::fs::read_to_string(&path).unwrap();
        let (_, diagnostics) = mbs_codegen::yaml::read("bad.yaml", &text);
        for d in diagnostics.iter() {
            assert!(d.span.is_known(), "{}: {}", path.display(), d.message);
            assert!(d.span.offset + d.span.len <= text.len(), "{}: {}", path.display(), d.message);
            assert!(!d.message.ends_with('.'), "{}", d.message);
        }
    }
}
