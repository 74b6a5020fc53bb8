//! `generated/` holds what the generator prints today, for every model it includes; a second run prints the
//! same bytes; the interface for build scripts prints the same as the library.

use mbs_codegen::build::Builder;
use mbs_codegen::program::{Fma, Options, ScalarType, Steps};
use mbs_codegen::{Request, generate};
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The models that `generated/src/lib.rs` includes; those in `single/` are in single precision. All have the same bits on every
/// target, and separate steps: they are read by firmware with little flash, and by people.
fn included() -> Vec<String> {
    let lib = std::fs::read_to_string(root().join("generated/src/lib.rs")).expect("readable");
    let names = lib.lines().filter_map(|l| l.trim().strip_prefix("include!(\"")?.strip_suffix(".rs\");"));
    names.map(String::from).collect()
}

#[test]
fn committed_modules_are_what_the_generator_prints() {
    let update = std::env::var_os("MBS_UPDATE").is_some();
    let mut stale = Vec::new();
    let names = included();
    assert!(names.len() >= 5, "{names:?}");
    for name in names {
        let (model, scalar) = match name.strip_prefix("single/") {
            Some(model) => (model, ScalarType::F32),
            None => (name.as_str(), ScalarType::F64),
        };
        let request = Request {
            options: Options { scalar, fma: Fma::Never, steps: Steps::Separate, ..Options::default() },
            ..Request::default()
        };
        let file = format!("{model}.yaml");
        let text = std::fs::read_to_string(root().join("models").join(&file)).expect("a shipped model");
        let code = generate(&file, &text, &request).expect("a valid model").code;
        assert_eq!(code, generate(&file, &text, &request).expect("a valid model").code, "{name}");
        assert!(code.len() < 1_000_000, "{name} is too large to be committed");
        let path = root().join("generated/src").join(format!("{name}.rs"));
        if std::fs::read_to_string(&path).ok().as_ref() != Some(&code) {
            if update {
                std::fs::write(&path, code).expect("writable");
            } else {
                stale.push(name);
            }
        }
    }
    assert!(stale.is_empty(), "stale: {stale:?}; run this test with MBS_UPDATE=1 and commit the result");
}

#[test]
fn build_script_door_prints_the_same() {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pendulum.rs");
    Builder::new(root().join("models/pendulum.yaml"))
        .fma(Fma::Never)
        .steps(Steps::Separate)
        .write_to(&out)
        .expect("a valid model");
    let written = std::fs::read_to_string(&out).expect("written");
    let committed = std::fs::read_to_string(root().join("generated/src/pendulum.rs")).expect("readable");
    assert_eq!(written, committed);
}
