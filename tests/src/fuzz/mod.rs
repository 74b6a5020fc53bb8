//! Hostile model files by seed: what enters the generator, what must hold of what comes out, and the loop that
//! tries one after the other.
//!
//! A seed gives the same input on every machine, so a finding is told by its seed.

pub mod corpus;
pub mod bytes;
pub mod mutate;
pub mod numbers;
pub mod tree;
pub mod expression;
pub mod grammar;
pub mod input;
pub mod lexical;
pub mod target;
pub mod harness;
pub mod minimise;

/// Stands in every hostile free text. It must never be seen outside of literals and comments of generated code.
pub const CANARY: &str = "cAnArY";

/// Free texts that try to leave the place where they are printed.
pub const FREE_TEXTS: [&str; 14] = [
    "cAnArY\"; } fn cAnArY() {} //",
    "*/ cAnArY /*",
    "/* cAnArY",
    "*/ */ */ cAnArY",
    "\"# cAnArY #\"",
    "cAnArY \\",
    "\\\" cAnArY \\n \\u{41}",
    "cAnArY\n} mod cAnArY { //\n",
    "cAnArY\r\n\tcAnArY\r",
    "\u{202e}cAnArY\u{2066}\u{2069}",
    "cAnArY\u{0}\u{7f}\u{feff}\u{85}",
    "\u{2028}cAnArY\u{2029}",
    "` <script>cAnArY</script> [x](y) | # ~ cAnArY",
    "é 漢 𝄞 cAnArY {} {{}} {0} %s $x #x",
];
