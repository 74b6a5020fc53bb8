//! Generates thirty random trees of fixed seed, a few random closed mechanisms, the five-bar linkage and one with hostile
//! names for the tests of compiled code.

#[allow(dead_code, unreachable_pub, reason = "the build script uses part of what the tests use")]
#[path = "src/random_model.rs"]
mod random_model;

#[allow(dead_code, unreachable_pub, reason = "the build script uses part of what the tests use")]
#[path = "src/random_closed.rs"]
mod random_closed;

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
    println!("cargo::rerun-if-changed=src/random_closed.rs");
    println!("cargo::rerun-if-changed=src/hostile_names.rs");
    println!("cargo::rerun-if-changed=../models/five_bar.yaml");
    let mut modules = String::new();
    let mut list = String::from("macro_rules! for_each_compiled {\n    ($visit:ident) => {\n");
    let mut differentiated =
        String::from("macro_rules! for_each_differentiated {\n    ($visit:ident) => {\n");
    let mut robotics = String::from("macro_rules! for_each_robotic {\n    ($visit:ident) => {\n");
    for index in 0..compiled::COUNT {
        let text = compiled::text(index);
        let module = format!("random_{index}");
        let request = Request {
            options: Options {
                pairs: compiled::pairs(index),
                ..options(compiled::about_com(index), compiled::frozen(index), compiled::bundles(index))
            },
            target: Target { module: Some(module.clone()), ..Target::default() },
            case: None,
        };
        modules.push_str(&code(&text, &request));
        if compiled::differentiated(index) {
            let _ = writeln!(differentiated, "        $visit!({index}, {module}::Model::default());");
        }
        if compiled::robotics(index) {
            let _ = writeln!(robotics, "        $visit!({index}, {module}::Model::default());");
        }
        let _ = writeln!(list, "        $visit!({index}, {module}::Model::default());");
    }
    for visits in [&mut list, &mut differentiated, &mut robotics] {
        visits.push_str("    };\n}\n");
    }
    let out = std::path::PathBuf::from(std::env::var_os("OUT_DIR").expect("set by Cargo"));
    std::fs::write(out.join("random_models.rs"), modules + &list + &differentiated + &robotics)
        .expect("OUT_DIR is writable");
    std::fs::write(out.join("closed_models.rs"), closed()).expect("OUT_DIR is writable");
    std::fs::write(out.join("five_bar.rs"), five_bar()).expect("OUT_DIR is writable");
    std::fs::write(out.join("hostile_names.rs"), hostile()).expect("OUT_DIR is writable");
}

fn options(about_com: bool, freeze: bool, bundles: Vec<BundleKind>) -> Options {
    let reference = if about_com { ReferencePoint::CentreOfMass } else { ReferencePoint::Origin };
    Options { reference, freeze, bundles, ..Options::default() }
}

fn code(text: &str, request: &Request) -> String {
    let generated = generate("random.yaml", text, request);
    generated.unwrap_or_else(|d| panic!("{:?}:\n{}", request.target, d.render("random.yaml", text))).code
}

/// The closed mechanisms, and a macro that visits them.
fn closed() -> String {
    use random_closed::compiled;
    let mut modules = String::new();
    let mut list = String::from("macro_rules! for_each_closed {\n    ($visit:ident) => {\n");
    let mut differentiated =
        String::from("macro_rules! for_each_differentiated_closed {\n    ($visit:ident) => {\n");
    for index in 0..compiled::COUNT {
        let module = format!("closed_{index}");
        let request = Request {
            options: options(
                compiled::about_com(index),
                compiled::frozen(index),
                compiled::bundles(compiled::differentiated(index)),
            ),
            target: Target { module: Some(module.clone()), ..Target::default() },
            case: None,
        };
        modules.push_str(&code(&compiled::text(index), &request));
        let visit = format!("        $visit!({index}, {module}::Model::default());\n");
        list.push_str(&visit);
        if compiled::differentiated(index) {
            differentiated.push_str(&visit);
        }
    }
    list.push_str("    };\n}\n");
    differentiated.push_str("    };\n}\n");
    modules + &list + &differentiated
}

/// The five-bar linkage with the bundles of closed mechanisms.
fn five_bar() -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../models/five_bar.yaml");
    let text = std::fs::read_to_string(path).expect("a shipped model");
    let request = Request {
        options: options(false, false, random_closed::compiled::bundles(true)),
        target: Target { module: Some("five_bar".into()), ..Target::default() },
        case: None,
    };
    code(&text, &request)
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
