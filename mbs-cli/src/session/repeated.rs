//! The command line, so that a person can give it again.

/// The command line, for a shell.
pub(crate) fn again() -> String {
    let words = std::env::args().skip(1).map(|word| quoted(&word));
    std::iter::once("mbs".to_string()).chain(words).collect::<Vec<_>>().join(" ")
}

/// A word as a shell takes it.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.into(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}
