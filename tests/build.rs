//! Generates thirty random mechanisms of fixed seed and one with hostile names for the tests of compiled code.

#[allow(dead_code, unreachable_pub, reason = "the build script uses part of what the tests use")]
#[path = "src/random_model.rs"]
mod random_model;

#[allow(unreachable_pub, reason = "the tests use it too")]
#[path = "src/hostile_names.rs"]
mod hostile_names;

use mbs_codegen::emission::Target;
use mbs_codegen::kinematics::ReferencePoint;
use mbs_codegen::program::{BundleKind, Options};
use mbs_codegen::{Request, generate};
use random_model::compiled;
use std::fmt::Write;

fn main() {
    println!("cargo::rerun-if-changed=src/random_model.rs");
    println!("cargo::rerun-if-changed=src/hostile_names.rs");
    let mut modules = String::new();
    let mut list = String::from("macro_rules! for_each_compiled {\n    ($visit:ident) => {\n");
    let mut differentiated =
        String::from("macro_rules! for_each_differentiated {\n    ($visit:ident) => {\n");
    for index in 0..compiled::COUNT {
        let text = compiled::text(index);
        let module = format!("random_{index}");
        let request = Request {
            options: Options {
                reference: if compiled::about_com(index) {
                    ReferencePoint::CentreOfMass
                } else {
                    ReferencePoint::Origin
                },
                freeze: compiled::frozen(index),
                bundles: compiled::bundles(index),
            },
            target: Target { module: Some(module.clone()), ..Target::default() },
            case: None,
        };
        let generated = generate("random.yaml", &text, &request)
            .unwrap_or_else(|d| panic!("seed of {module}:\n{}", d.render("random.yaml", &text)));
        modules.push_str(&generated.code);
        if compiled::differentiated(index) {
            let _ = writeln!(differentiated, "        $visit!({index}, {module}::Model::default());");
        }
        let _ = writeln!(list, "        $visit!({index}, {module}::Model::default());");
    }
    list.push_str("    };\n}\n");
    differentiated.push_str("    };\n}\n");
    let out = std::path::PathBuf::from(std::env::var_os("OUT_DIR").expect("set by Cargo"));
    std::fs::write(out.join("random_models.rs"), modules + &list + &differentiated)
        .expect("OUT_DIR is writable");
    std::fs::write(out.join("hostile_names.rs"), hostile()).expect("OUT_DIR is writable");
}

/// The module with hostile names, with every bundle.
fn hostile() -> String {
    let request = Request {
        options: Options { bundles: BundleKind::TREE.to_vec(), ..Options::default() },
        ..Request::default()
    };
    let (file, text) = (hostile_names::FILE, hostile_names::TEXT);
    match generate(file, text, &request) {
        Ok(generated) => generated.code,
        Err(diagnostics) => panic!("{}", diagnostics.render(file, text)),
    }
}
