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
use mbs_codegen::program::{BundleKind, Options, Products, Simd};
use mbs_codegen::{Request, generate};
use random_model::compiled;
use std::fmt::Write;

/// Of random trees, and of random closed mechanisms: those that lints look at, of every kind one. Their modules take clippy
/// minutes, and what it has to say of one it says of all.
const LINTED: [&[u64]; 2] = [&[0, 2, 11, 29], &[2]];

fn main() {
    println!("cargo::rerun-if-changed=src/random_model.rs");
    println!("cargo::rerun-if-changed=src/random_closed.rs");
    println!("cargo::rerun-if-changed=src/hostile_names.rs");
    println!("cargo::rerun-if-changed=../models/five_bar.yaml");
    let out = std::path::PathBuf::from(std::env::var_os("OUT_DIR").expect("set by Cargo"));
    let write = |name: &str, text: String| std::fs::write(out.join(name), text).expect("OUT_DIR is writable");
    for (name, models, linted) in
        [("random_models", trees(), LINTED[0]), ("closed_models", closed(), LINTED[1])]
    {
        write(&format!("{name}.rs"), file(&models, |_| true));
        write(&format!("{name}_linted.rs"), file(&models, |index| linted.contains(&index)));
    }
    write("five_bar.rs", five_bar());
    write("hostile_names.rs", hostile());
}

/// A generated module, and the macros that visit it.
struct Compiled {
    index: u64,
    module: String,
    code: String,
    visited_by: Vec<(&'static str, bool)>,
}

/// The modules that are kept, and macros that visit them.
fn file(models: &[Compiled], is_kept: impl Fn(u64) -> bool) -> String {
    let mut text = String::new();
    let mut macros: Vec<(&str, String)> = Vec::new();
    for Compiled { index, module, code, visited_by } in models.iter().filter(|model| is_kept(model.index)) {
        text.push_str(code);
        for (name, is_visited) in visited_by {
            let place = macros.iter().position(|(known, _)| known == name).unwrap_or(macros.len());
            if place == macros.len() {
                macros.push((name, String::new()));
            }
            if *is_visited {
                let _ = writeln!(macros[place].1, "        $visit!({index}, {module}::Model::default());");
            }
        }
    }
    for (name, visits) in macros {
        let _ = writeln!(text, "macro_rules! {name} {{\n    ($visit:ident) => {{\n{visits}    }};\n}}");
    }
    text
}

/// The trees.
fn trees() -> Vec<Compiled> {
    let one = |index| {
        let module = format!("random_{index}");
        let request = Request {
            options: Options {
                pairs: compiled::pairs(index),
                ..options(compiled::about_com(index), compiled::frozen(index), compiled::bundles(index))
            },
            target: Target { module: Some(module.clone()), ..Target::default() },
            case: None,
        };
        let visited_by = vec![
            ("for_each_compiled", true),
            ("for_each_differentiated", compiled::differentiated(index)),
            ("for_each_robotic", compiled::robotics(index)),
        ];
        Compiled { index, module, code: code(&compiled::text(index), &request), visited_by }
    };
    (0..compiled::COUNT).map(one).collect()
}

fn options(about_com: bool, freeze: bool, bundles: Vec<BundleKind>) -> Options {
    let reference = if about_com { ReferencePoint::CentreOfMass } else { ReferencePoint::Origin };
    // Packs in all bundles, so that small ones tell whether they have the bits of the interpreter.
    let simd = Simd::Always;
    Options { reference, freeze, bundles, products: Products::Always, simd, ..Options::default() }
}

fn code(text: &str, request: &Request) -> String {
    let generated = generate("random.yaml", text, request);
    generated.unwrap_or_else(|d| panic!("{:?}:\n{}", request.target, d.render("random.yaml", text))).code
}

/// The closed mechanisms.
fn closed() -> Vec<Compiled> {
    use random_closed::compiled;
    let one = |index| {
        let module = format!("closed_{index}");
        let is_differentiated = compiled::differentiated(index);
        let request = Request {
            options: options(
                compiled::about_com(index),
                compiled::frozen(index),
                compiled::bundles(is_differentiated),
            ),
            target: Target { module: Some(module.clone()), ..Target::default() },
            case: None,
        };
        let visited_by =
            vec![("for_each_closed", true), ("for_each_differentiated_closed", is_differentiated)];
        Compiled { index, module, code: code(&compiled::text(index), &request), visited_by }
    };
    (0..compiled::COUNT).map(one).collect()
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
