//! Nothing of a model reaches generated code unescaped: a module whose names and texts try to break it compiles, and
//! what it computes is what the interpreter computes.

use mbs_codegen::program::{BundleKind, Options, Program};
use mbs_engine::Interpreted;
use mbs_runtime::{At, ForwardDynamics, Names, Outputs, Quantity};
use mbs_tests::fuzz::{FREE_TEXTS, lexical};
use mbs_tests::hostile_names::{FILE, TEXT};

include!(concat!(env!("OUT_DIR"), "/hostile_names.rs"));

#[test]
fn names_are_kept_and_told_apart() {
    let parameters = type_::Parameters::default();
    assert_eq!((parameters.type_, parameters.type__2), (1.5, 0.2));
    assert_eq!((parameters.self_, parameters.fn_, parameters.__, parameters.___2), (0.3, 0.4, 1.5, 1.6));
    assert_eq!(parameters.values, [1.0, 2.0, 3.0]);
    assert_eq!(type_::Parameters::from_array(&parameters.to_array()), parameters);
    let place = type_::NAMES.index(Quantity::Parameter, "values[2]").expect("an element");
    assert_eq!(type_::Parameters::BOUNDS[place], (0.0, f64::INFINITY));
    assert_eq!(parameters.to_array()[place], 3.0);

    let model = type_::Model::default();
    for (quantity, names) in [
        (Quantity::Marker, ["a_b.c", "a.b_c"].as_slice()),
        (Quantity::Coordinate, &["Self.type"]),
        (Quantity::Output, &["S"]),
        (Quantity::Input, &["struct"]),
    ] {
        for name in names {
            let place = type_::NAMES.index(quantity, name).expect("a name");
            assert_eq!(model.name(quantity, place), Some(*name));
        }
    }
    assert_eq!(type_::NAMES.index(Quantity::Marker, "a_b.d"), None);

    use type_::Case;
    let names: Vec<&str> = type_::CASES.iter().map(|case| case.name()).collect();
    assert_eq!(names, ["Self", "name", "parameters", "ALL", "fn"]);
    assert_eq!([Case::Self_, Case::name, Case::parameters, Case::ALL, Case::fn_], *type_::CASES);
    assert_eq!(Case::Self_.parameters().type_, 2.5);
}

#[test]
fn it_computes_what_the_interpreter_computes() {
    let (model, _) = mbs_codegen::read(FILE, TEXT).expect("a valid model");
    let options = Options { bundles: BundleKind::ALL.to_vec(), ..Options::default() };
    let engine: Interpreted =
        Interpreted::new(Program::new(&model, None, &options).expect("a small program"));
    let compiled = type_::Model::default();
    let y = compiled.start_state();
    assert_eq!(y.to_vec(), engine.start_state());
    fn evaluate(model: &(impl ForwardDynamics<S = f64> + Outputs), y: &[f64]) -> [Vec<f64>; 3] {
        let d = model.dims();
        let (z, v) = y.split_at(d.nq);
        let at = At { t: 0.7, z, v, x: &[], u: &[0.1, 0.2, 0.3] };
        let mut w = vec![0.0; d.workspace];
        let (mut zd, mut vd, mut out) = (vec![0.0; d.nq], vec![0.0; d.nv], vec![0.0; d.n_outputs]);
        model.forward_dynamics(at, &mut w, &mut zd, &mut vd, &mut []).expect("a regular mass matrix");
        model.outputs(at, &vd, &mut w, &mut out).expect("right lengths");
        [zd, vd, out]
    }
    assert_eq!(evaluate(&compiled, &y), evaluate(&engine, &y));
}

/// Each free text alone, wherever a free text may stand.
#[test]
fn free_texts_stay_in_literals_and_comments() {
    for text in FREE_TEXTS {
        let quoted = mbs_tests::fuzz::tree::quoted(text);
        let model = format!(
            "mbs: 1\ndescription: {quoted}\nparameters:\n  k: {{value: 1, unit: {quoted}, description: {quoted}}}\n\
             inputs:\n  f: {{default: 1, unit: {quoted}, description: {quoted}}}\n\
             bodies:\n  b: {{mass: k, description: {quoted}}}\n\
             joints:\n  j: {{type: prismatic, parent: ground, child: b, axis: [1, 0, 0], description: {quoted}}}\n\
             outputs:\n  o: {{value: j.displacement, unit: {quoted}, description: {quoted}}}\n"
        );
        let file = format!("{}.yaml", text.replace("cAnArY", "file"));
        let generated = mbs_codegen::generate(&file, &model, &Default::default())
            .unwrap_or_else(|d| panic!("{}", d.render(&file, &model)));
        lexical::check(&generated.code, "cAnArY").unwrap_or_else(|e| panic!("{text:?}: {e}"));
        syn::parse_file(&generated.code).unwrap_or_else(|e| panic!("{text:?}: {e}"));
    }
}
