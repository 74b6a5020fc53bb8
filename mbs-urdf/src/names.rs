//! Converts names of the file into names of the model.
//!
//! Holds afterwards: names are letters, digits and `_`, not longer than the reader allows, and differ in more than
//! case within their scope.

use mbs_codegen::yaml::limits::NAME_CHARS;
use std::collections::HashMap;

/// Names that must differ, ignoring case, and how often each was requested again.
#[derive(Debug, Default)]
pub(crate) struct Scope(HashMap<String, usize>);

impl Scope {
    /// A scope with reserved names.
    pub(crate) fn with(taken: &[&str]) -> Scope {
        Scope(taken.iter().map(|name| (name.to_ascii_lowercase(), 0)).collect())
    }

    /// A valid name as similar to `name` as possible; if it is taken, `suffix` or a number is appended.
    pub(crate) fn unique_name(&mut self, name: &str, suffix: &str) -> String {
        let plain = valid_name(name);
        let key = plain.to_ascii_lowercase();
        let Some(&before) = self.0.get(&key) else {
            self.0.insert(key, 0);
            return plain;
        };
        let mut number = before;
        loop {
            number += 1;
            let ending = if number == 1 { format!("_{suffix}") } else { format!("_{suffix}{number}") };
            // Names are ASCII.
            let mut longer = plain.clone();
            longer.truncate(NAME_CHARS.saturating_sub(ending.len()));
            longer.push_str(&ending);
            let taken = longer.to_ascii_lowercase();
            if !self.0.contains_key(&taken) {
                self.0.insert(taken, 0);
                self.0.insert(key, number);
                return longer;
            }
        }
    }
}

/// The name with invalid characters replaced.
pub(crate) fn valid_name(name: &str) -> String {
    let first = name.chars().next();
    let prefix = if first.is_some_and(|c| c.is_ascii_alphabetic() || c == '_') { "" } else { "_" };
    let rest = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' });
    prefix.chars().chain(rest).take(NAME_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_get_a_valid_form() {
        assert_eq!(valid_name("wrist-3.link"), "wrist_3_link");
        assert_eq!(valid_name("3d cam"), "_3d_cam");
        assert_eq!(valid_name("élan"), "__lan");
        assert_eq!(valid_name(""), "_");
        assert_eq!(valid_name(&"x".repeat(200)).len(), NAME_CHARS);
    }

    #[test]
    fn names_stay_apart() {
        let mut scope = Scope::with(&["ground"]);
        assert_eq!(scope.unique_name("Ground", "link"), "Ground_link");
        assert_eq!(scope.unique_name("a-b", "link"), "a_b");
        assert_eq!(scope.unique_name("A.b", "link"), "A_b_link");
        assert_eq!(scope.unique_name("a b", "link"), "a_b_link2");
        let long = "x".repeat(100);
        let (first, second) = (scope.unique_name(&long, "joint"), scope.unique_name(&long, "joint"));
        assert_eq!((first.len(), second.len()), (NAME_CHARS, NAME_CHARS));
        assert!(second.ends_with("_joint"));
    }
}
