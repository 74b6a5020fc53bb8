//! Generates thirty random mechanisms of fixed seed, with every bundle, for the tests of compiled code.

#[allow(dead_code, unreachable_pub, reason = "the build script uses part of what the tests use")]
#[path = "src/random_model.rs"]
mod random_model;

use mbs_codegen::emission::Target;
use mbs_codegen::kinematics::ReferencePoint;
use mbs_codegen::program::Options;
use mbs_codegen::{Request, generate};
use random_model::compiled;
use std::fmt::Write;

fn main() {
    println!("cargo::rerun-if-changed=src/random_model.rs");
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
}
