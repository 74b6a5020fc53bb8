//! How the compiler shows what is wrong: `tests/ui/*.rs` beside the expected messages. `TRYBUILD=overwrite` writes them.

#[test]
fn errors_point_at_what_is_wrong() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
