//! Which names a model may use.

use std::collections::HashMap;

use super::limits;
use super::load::shorten;
use crate::diagnostics::{Diagnostics, Span};
use crate::model::Function;

/// The functions of one kind of argument: numbers.
pub(super) const FUNCTIONS: [(&str, Function); 19] = [
    ("sqrt", Function::Sqrt),
    ("sin", Function::Sin),
    ("cos", Function::Cos),
    ("tan", Function::Tan),
    ("asin", Function::Asin),
    ("acos", Function::Acos),
    ("atan", Function::Atan),
    ("atan2", Function::Atan2),
    ("exp", Function::Exp),
    ("ln", Function::Ln),
    ("sinh", Function::Sinh),
    ("cosh", Function::Cosh),
    ("tanh", Function::Tanh),
    ("abs", Function::Abs),
    ("sign", Function::Sign),
    ("min", Function::Min),
    ("max", Function::Max),
    ("hypot", Function::Hypot),
    ("step", Function::SmoothStep),
];

/// The other functions, each with arguments of its own kind.
pub(super) const SPECIAL_FUNCTIONS: [&str; 22] = [
    "if",
    "table",
    "spline",
    "rate",
    "accel",
    "pos",
    "vel",
    "acc",
    "dir",
    "omega",
    "alpha",
    "in",
    "from",
    "dot",
    "cross",
    "norm",
    "unit",
    "multiplier",
    "projection_impulse",
    "projection_force",
    "reaction_force",
    "reaction_torque",
];

/// Names with a meaning of their own as values.
pub(super) const CONSTANTS: [&str; 2] = ["t", "pi"];

pub(super) fn is_function(name: &str) -> bool {
    SPECIAL_FUNCTIONS.contains(&name) || FUNCTIONS.iter().any(|(f, _)| *f == name)
}

/// Whether a parameter or input may not have this name.
pub(super) fn is_reserved(name: &str) -> bool {
    CONSTANTS.contains(&name) || is_function(name)
}

/// Whether it has the form of a name.
pub(super) fn is_name(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
        && name.len() <= limits::NAME_CHARS
}

/// Reports a name of the wrong form.
pub(super) fn check_name(name: &str, span: Span, what: &str, diagnostics: &mut Diagnostics) -> bool {
    if is_name(name) {
        return true;
    }
    let help = if name.len() > limits::NAME_CHARS {
        format!("a name has at most {} characters", limits::NAME_CHARS)
    } else {
        "a name starts with a letter or `_` and goes on with letters, digits and `_`".into()
    };
    diagnostics.error(span, format!("`{}` is not a valid name for {what}", shorten(name))).help(help);
    false
}

/// Names that must differ from each other, ignoring case.
#[derive(Default)]
pub(super) struct Unique(HashMap<String, (String, String, Span)>);

impl Unique {
    /// How many names there are.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds a name, or reports the earlier one it collides with.
    pub(super) fn add(&mut self, name: &str, span: Span, what: &str, diagnostics: &mut Diagnostics) -> bool {
        let folded = name.to_ascii_lowercase();
        if let Some((other, other_what, place)) = self.0.get(&folded) {
            let same = if other == name { "" } else { " (names must differ in more than case)" };
            let line = if place.is_known() { format!(" at line {}", place.line) } else { String::new() };
            diagnostics
                .error(
                    span,
                    format!("{what} `{name}` has the same name as {other_what} `{other}`{line}{same}"),
                )
                .help("rename one of them");
            return false;
        }
        self.0.insert(folded, (name.to_string(), what.to_string(), span));
        true
    }
}
