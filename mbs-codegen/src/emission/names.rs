//! Names of a model as Rust identifiers.

use std::collections::HashSet;

/// Strict and reserved words of all editions.
const KEYWORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop",
    "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "self", "Self",
    "static", "struct", "super", "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use",
    "virtual", "where", "while", "yield", "_",
];

/// The identifier for a name: other characters become `_`, keywords get the suffix `_`.
pub fn identifier(name: &str) -> String {
    let mut text: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect();
    if text.is_empty() || text.starts_with(|c: char| c.is_ascii_digit()) {
        text.insert(0, '_');
    }
    if KEYWORDS.contains(&text.as_str()) {
        text.push('_');
    }
    text
}

/// Fields for names; duplicates get a number. `type` becomes `type_`, and a name `type_` beside it `type__2`.
pub(super) fn fields<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut taken = HashSet::new();
    names
        .map(identifier)
        .map(|base| {
            let mut candidate = base.clone();
            let mut number = 2;
            while !taken.insert(candidate.clone()) {
                candidate = format!("{base}_{number}");
                number += 1;
            }
            candidate
        })
        .collect()
}
