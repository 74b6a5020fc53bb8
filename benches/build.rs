//! Generates the measured models.

use mbs_codegen::build::{BuildError, Builder};
use mbs_codegen::emission::Target;
use mbs_codegen::program::{BundleKind, Options, Simd};
use mbs_codegen::{Request, generate};
use std::path::Path;

#[path = "../tests/src/four_bar.rs"]
#[allow(unreachable_pub, reason = "public where it lives")]
mod four_bar;

#[path = "../tests/src/bicycle.rs"]
#[allow(unreachable_pub, reason = "public where it lives")]
mod bicycle;

#[path = "src/windows.rs"]
#[allow(unreachable_pub, reason = "public where it lives")]
mod windows;

#[path = "src/parameters.rs"]
#[allow(unreachable_pub, reason = "public where it lives")]
mod parameters;

/// Objective, parameters and step of the measured human, who falls.
const HUMAN: &str = "
objectives: {haste: {integrand: \"rate(q9)^2 + rate(q25)^2\", unit: rad²/s}}
sensitivity: [L2, L3, m2, m3, m11]
simulation: {end: 1, step: 1e-3}
";

/// Whether bundles are packed, as `MBS_SIMD` says, so that both forms can be measured.
fn simd() -> Simd {
    println!("cargo::rerun-if-env-changed=MBS_SIMD");
    match std::env::var("MBS_SIMD") {
        Ok(name) => Simd::from_name(&name).expect("MBS_SIMD is `auto`, `never` or `always`"),
        Err(_) => Simd::Auto,
    }
}

fn main() -> Result<(), BuildError> {
    let simd = simd();
    println!("cargo::rerun-if-changed=../tests/src/four_bar.rs");
    let out = std::env::var("OUT_DIR").expect("Cargo sets it");
    for n in windows::WINDOWS {
        let name = format!("four_bar_{n}");
        let request = Request {
            // Of the longest the gradient is measured, too.
            options: Options {
                simd,
                bundles: vec![if n == 40 { BundleKind::Linearise } else { BundleKind::Newton }],
                ..Options::default()
            },
            target: Target { module: Some(name.clone()), ..Target::default() },
            case: None,
        };
        let text = four_bar::yaml(n);
        let generated = generate(&name, &text, &request).unwrap_or_else(|problems| panic!("{problems:?}"));
        std::fs::write(Path::new(&out).join(format!("{name}.rs")), generated.code)
            .expect("a writable directory");
    }
    let text = std::fs::read_to_string("../models/five_bar.yaml").expect("a shipped model");
    for count in parameters::PARAMETERS {
        let name = format!("five_bar_by_{count}");
        let bundles = vec![BundleKind::Linearise];
        let request = Request {
            options: Options { bundles, simd, ..Options::default() },
            target: Target { module: Some(name.clone()), ..Target::default() },
            case: None,
        };
        let text = parameters::differentiated(&text, count);
        let generated = generate(&name, &text, &request)
            .unwrap_or_else(|problems| panic!("{}", problems.render(&name, &text)));
        std::fs::write(Path::new(&out).join(format!("{name}.rs")), generated.code)
            .expect("a writable directory");
    }
    println!("cargo::rerun-if-changed=../tests/src/bicycle.rs");
    for count in parameters::SPLINE_VALUES {
        let name = format!("bicycle_by_{count}");
        let bundles = [&[BundleKind::Linearise][..], &BundleKind::PRODUCTS].concat();
        let request = Request {
            options: Options { bundles, simd, ..Options::default() },
            target: Target { module: Some(name.clone()), ..Target::default() },
            case: None,
        };
        let text = bicycle::yaml(count);
        let generated = generate(&name, &text, &request)
            .unwrap_or_else(|problems| panic!("{}", problems.render(&name, &text)));
        std::fs::write(Path::new(&out).join(format!("{name}.rs")), generated.code)
            .expect("a writable directory");
    }
    // Its file carries tangents, so that its state has room for one; whether steps do is a setting of the method.
    println!("cargo::rerun-if-changed=../models/buggy.yaml");
    let text = std::fs::read_to_string("../models/buggy.yaml").expect("a shipped model");
    let all = [&BundleKind::STANDARD[..], &BundleKind::PRODUCTS].concat();
    let options = Options { bundles: all.clone(), simd, ..Options::default() };
    let request = Request { case: Some("step_descent".into()), options, ..Request::default() };
    let generated = generate("buggy", &text, &request)
        .unwrap_or_else(|problems| panic!("{}", problems.render("buggy", &text)));
    std::fs::write(Path::new(&out).join("buggy.rs"), generated.code).expect("a writable directory");
    // The shipped human has nothing to differentiate.
    println!("cargo::rerun-if-changed=../models/human43.yaml");
    let text = std::fs::read_to_string("../models/human43.yaml").expect("a shipped model") + HUMAN;
    let generated = generate(
        "human43",
        &text,
        &Request { options: Options { simd, ..Options::default() }, ..Request::default() },
    )
    .unwrap_or_else(|problems| panic!("{}", problems.render("human43", &text)));
    std::fs::write(Path::new(&out).join("human43.rs"), generated.code).expect("a writable directory");
    Builder::new("models/ur5.yaml").simd(simd).write("ur5.rs")?;
    Builder::new("../models/slider_crank.yaml").simd(simd).write("slider_crank.rs")?;
    let all = [&all[..], &BundleKind::JOINT_SENSITIVITIES, &BundleKind::DERIVATIVES_OF_CORRECTIONS].concat();
    Builder::new("../models/five_bar.yaml").bundles(&all).simd(simd).write("five_bar.rs")?;
    Builder::new("../models/five_bar.yaml")
        .freeze()
        .simd(simd)
        .module("five_bar_frozen")
        .write("five_bar_frozen.rs")
}
