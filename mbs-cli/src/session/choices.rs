//! Suggestions for names that do not exist.

use mbs_codegen::diagnostics::nearest;

/// Names in a message beyond these are left out.
const NAMED: usize = 12;

/// The names, at most [`NAMED`].
pub(crate) fn some(names: &[&str]) -> String {
    let more = if names.len() > NAMED { ", …" } else { "" };
    names[..names.len().min(NAMED)].join(", ") + more
}

/// The end of a message about a wrong name: the most similar name, or else all valid names.
pub(crate) fn suggestion<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    match nearest(name, names.iter().copied()) {
        Some(near) => format!("; did you mean `{near}`?"),
        None if names.is_empty() => "; there are none".into(),
        None => format!("; there are: {}", some(&names)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_or_all() {
        assert_eq!(suggestion("lenght", ["mass", "length"]), "; did you mean `length`?");
        assert_eq!(suggestion("Z", ["mass", "length"]), "; there are: mass, length");
        assert_eq!(suggestion("Z", []), "; there are none");
        let many = ["name"; NAMED + 1];
        assert!(suggestion("Z", many).ends_with("name, …"));
    }
}
