//! Names of the file → names of the model.
//!
//! Holds afterwards: names are letters, digits and `_`, not longer than the reader allows, and differ in more than
//! case within their scope.

use mbs_codegen::yaml::limits::NAME_CHARS;
use std::collections::HashMap;

/// Names that must differ from each other, ignoring case, and how often each was wanted again.
#[derive(Debug, Default)]
pub(crate) struct Scope(HashMap<String, usize>);

impl Scope {
    /// A scope in which these are taken.
    pub(crate) fn with(taken: &[&str]) -> Scope {
        Scope(taken.iter().map(|name| (name.to_ascii_lowercase(), 0)).collect())
    }

    /// A name of the right form, as near to `name` as can be; where it is taken, `suffix` or a number follows it.
    pub(crate) fn take(&mut self, name: &str, suffix: &str) -> String {
        let plain = form(name);
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

/// The name with everything replaced that no name may have.
pub(crate) fn form(name: &str) -> String {
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
        assert_eq!(form("wrist-3.link"), "wrist_3_link");
        assert_eq!(form("3d cam"), "_3d_cam");
        assert_eq!(form("élan"), "__lan");
        assert_eq!(form(""), "_");
        assert_eq!(form(&"x".repeat(200)).len(), NAME_CHARS);
    }

    #[test]
    fn names_stay_apart() {
        let mut scope = Scope::with(&["ground"]);
        assert_eq!(scope.take("Ground", "link"), "Ground_link");
        assert_eq!(scope.take("a-b", "link"), "a_b");
        assert_eq!(scope.take("A.b", "link"), "A_b_link");
        assert_eq!(scope.take("a b", "link"), "a_b_link2");
        let long = "x".repeat(100);
        let (first, second) = (scope.take(&long, "joint"), scope.take(&long, "joint"));
        assert_eq!((first.len(), second.len()), (NAME_CHARS, NAME_CHARS));
        assert!(second.ends_with("_joint"));
    }
}
