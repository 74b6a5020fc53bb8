//! Every odd file in `tests/diagnostics` gives exactly the messages in the `.expected` file beside it.
//!
//! `MBS_UPDATE=1` writes the expected files anew; read the difference before you commit it.

use std::path::{Path, PathBuf};

fn odd_files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/diagnostics");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file").path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "urdf"));
    files.sort();
    files
}

#[test]
fn odd_files_give_the_expected_messages() {
    let update = std::env::var_os("MBS_UPDATE").is_some_and(|v| v == "1");
    let files = odd_files();
    assert!(files.len() >= 30, "only {} files", files.len());
    let mut wrong = Vec::new();
    for path in files {
        let text = std::fs::read_to_string(&path).expect("a file");
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let diagnostics = match mbs_urdf::import(&name, &text, &Default::default()) {
            Ok(imported) => imported.warnings,
            Err(errors) => errors,
        };
        assert!(!diagnostics.is_empty(), "{name} has no problem");
        for d in diagnostics.iter() {
            assert!(d.span.is_known(), "{name}: {}", d.message);
            assert!(d.span.offset + d.span.len <= text.len(), "{name}: {}", d.message);
            assert!(!d.message.ends_with('.'), "{}", d.message);
        }
        let found = diagnostics.render(&name, &text);
        let expected_path = path.with_extension("expected");
        if update {
            std::fs::write(&expected_path, &found).expect("a file");
            continue;
        }
        let expected = std::fs::read_to_string(&expected_path).unwrap_or_default();
        if found != expected {
            wrong.push(format!("--- {name}\nexpected:\n{expected}\nfound:\n{found}"));
        }
    }
    assert!(wrong.is_empty(), "{}\nMBS_UPDATE=1 accepts what was found", wrong.join("\n"));
}

/// Files with warnings alone are imported, and the model says the rest.
#[test]
fn odd_files_without_errors_are_imported() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/diagnostics/odd_but_read.urdf");
    let text = std::fs::read_to_string(path).expect("a file");
    let imported = mbs_urdf::import("odd.urdf", &text, &Default::default()).expect("a robot");
    assert!(imported.yaml.contains("unphysical: true"));
    mbs_codegen::read("odd.yaml", &imported.yaml).expect("a model");
    let skipped: Vec<&str> = imported.report.skipped.keys().map(String::as_str).collect();
    assert_eq!(skipped, ["controller_gazebo_ros_p3d", "inertial/orign", "lnik", "origin@rpi"]);
}
