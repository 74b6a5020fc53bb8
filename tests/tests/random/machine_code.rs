//! Machine code of random mechanisms against the tape: all bundles, bit for bit; with fused operations to rounding.

use crate::mechanisms;
use mbs_codegen::program::{BundleKind, Options, Pairs, Program};
use mbs_codegen::symbols::Group;
use mbs_engine::{Arguments, Engine, Fusing, Interpreted, machine_code_availability};
use mbs_runtime::System;
use mbs_tests::differentiated::parametrised;
use mbs_tests::random_closed::{self, random_closed};
use mbs_tests::random_model::{self, Random, random_model};

fn model(text: &str, pairs: Pairs) -> Interpreted {
    let (model, _) = mbs_codegen::read("random.yaml", text)
        .unwrap_or_else(|diagnostics| panic!("{}\n{text}", diagnostics.render("random.yaml", text)));
    let options = Options { bundles: BundleKind::ALL.to_vec(), pairs, ..Options::default() };
    Interpreted::new(Program::new(&model, None, &options).expect("a program of moderate size"))
}

fn by(mut model: Interpreted, engine: Engine, fusing: Fusing) -> Interpreted {
    model.set_engine(engine, None, fusing);
    model
}

/// All results of a bundle, one after the other.
fn evaluate(model: &Interpreted, kind: BundleKind, given: &[(Group, Vec<f64>)]) -> Vec<Vec<f64>> {
    let bundle = model.program().bundle(kind.name()).expect("the bundle");
    let mut arguments: Arguments<'_, f64> = [&[]; Group::ALL.len()];
    given.iter().for_each(|(group, values)| arguments[*group as usize] = values);
    let mut w = vec![f64::NAN; model.dims().workspace];
    let mut results: Vec<Vec<f64>> = bundle.results.iter().map(|r| vec![f64::NAN; r.len as usize]).collect();
    let mut slices: Vec<&mut [f64]> = results.iter_mut().map(Vec::as_mut_slice).collect();
    model.run_bundle(kind, arguments, &mut w, &mut slices).expect("right lengths");
    results
}

/// Numbers for what a bundle takes; prepared values are the model's own.
fn arguments(model: &Interpreted, kind: BundleKind, random: &mut Random) -> Vec<(Group, Vec<f64>)> {
    let bundle = model.program().bundle(kind.name()).expect("the bundle");
    let given = bundle.arguments.iter().filter(|&&(group, _)| group != Group::Prepared);
    given.map(|&(group, len)| (group, (0..len).map(|_| random.uniform(-1.5, 1.5)).collect())).collect()
}

/// Compares all bundles; how many there were.
fn compare(model: Interpreted, seed: u64, random: &mut Random) -> usize {
    let tape = by(model.clone(), Engine::Tape, Fusing::AsCompiled);
    let code = by(model.clone(), Engine::Jit, Fusing::AsCompiled);
    let fused = by(model, Engine::Jit, Fusing::Fused);
    let kinds: Vec<BundleKind> =
        BundleKind::ALL.into_iter().filter(|kind| tape.program().bundle(kind.name()).is_some()).collect();
    assert_eq!((code.compile(), tape.compile()), (kinds.len(), 0), "seed {seed}");
    for &kind in &kinds {
        let given = arguments(&tape, kind, random);
        let expected = evaluate(&tape, kind, &given);
        let found = evaluate(&code, kind, &given);
        for (k, (found, expected)) in found.iter().zip(&expected).enumerate() {
            for (i, (a, b)) in found.iter().zip(expected).enumerate() {
                let same = a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
                assert!(same, "seed {seed}, {}: result {k}[{i}] is {a:?}, not {b:?}", kind.name());
            }
        }
        // Sums of products alone: no pivot, near zero, makes more of a rounding. A sum of n terms is off by n roundings of its largest, and
        // the largest of a block is seldom much smaller than the terms of its entries.
        if matches!(kind, BundleKind::MassMatrix | BundleKind::InverseDynamics | BundleKind::Residual) {
            for (a, b) in evaluate(&fused, kind, &given).iter().zip(&expected) {
                let size = b.iter().fold(1.0, |m: f64, x| m.max(x.abs()));
                let error = a.iter().zip(b).fold(0.0, |m: f64, (a, b)| m.max((a - b).abs()));
                assert!(error <= 1e-11 * size, "seed {seed}, {} fused: {error:e} of {size:e}", kind.name());
            }
        }
    }
    kinds.len()
}

#[test]
fn all_bundles_have_the_bits_of_the_tape() {
    if let Err(why) = machine_code_availability(Fusing::AsCompiled) {
        println!("skipped: {why}");
        return;
    }
    let mut bundles = 0;
    for seed in 0..mechanisms(24) {
        let mut random = Random::new(seed);
        let shape = random_model::Shape { bodies: 1 + (seed % 6) as usize, dissipative: seed % 2 == 0 };
        // Every third with its pairs in loops.
        let pairs = if seed % 3 == 0 { Pairs::Rolled } else { Pairs::Auto };
        bundles += compare(model(&random_model(seed, shape), pairs), seed, &mut random);
        let shape = random_closed::Shape {
            bodies: 1 + (seed % 4) as usize,
            closures: (seed / 2 % 3) as usize,
            constraints: 1 + (seed / 3 % 4) as usize,
            nonholonomic: seed % 3 == 1,
            runs: false,
        };
        let text = parametrised(&random_closed(seed, shape), 6, &mut random);
        bundles += compare(model(&text, Pairs::Auto), seed, &mut random);
    }
    assert!(bundles > 500, "{bundles} bundles");
}
