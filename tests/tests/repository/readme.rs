//! What the README shows is true: its model is valid, its Rust is the example that the tests compile.

const README: &str = include_str!("../../../README.md");

fn block(language: &str) -> &'static str {
    let start = README.split(&format!("```{language}\n")).nth(1).expect("a block of this language");
    start.split("```").next().expect("an end of the block")
}

#[test]
fn model_is_valid() {
    let text = block("yaml");
    mbs_codegen::generate("readme.yaml", text, &Default::default())
        .unwrap_or_else(|diagnostics| panic!("{}", diagnostics.render("readme.yaml", text)));
}

#[test]
fn rust_is_the_compiled_example() {
    let example = include_str!("../../examples/readme.rs.in").replace("\"../models/", "\"models/");
    assert_eq!(example, block("rust"));
    assert!(example.lines().count() <= 15, "short enough to be read at a glance");
}
