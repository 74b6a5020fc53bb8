//! The document as a tree in which every node knows its place.

use std::rc::Rc;

use crate::diagnostics::Span;

/// A value of the document. Aliases share the node they stand for.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) span: Span,
    pub(super) kind: Kind,
}

#[derive(Debug)]
pub(super) enum Kind {
    Scalar(Text),
    /// Something that could not be read; reported already.
    Broken,
    Sequence(Vec<Rc<Node>>),
    Mapping(Vec<Entry>),
}

/// The text of a scalar, after quotes, escapes and folds are undone.
#[derive(Debug)]
pub(super) struct Text {
    pub(super) value: Rc<str>,
    pub(super) style: Style,
    /// Whether it stands inside `[…]` or `{…}`, where an unquoted comma ends it.
    pub(super) in_flow: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    SingleQuoted,
    DoubleQuoted,
    Block,
}

/// A key of a mapping and its value. Keys are unique within their mapping.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) key: Rc<str>,
    pub(super) key_span: Span,
    pub(super) value: Rc<Node>,
}

impl Node {
    /// Whether nothing is written: `~`, `null` or an empty place.
    pub(super) fn is_null(&self) -> bool {
        match &self.kind {
            Kind::Scalar(t) => t.is_null(),
            _ => false,
        }
    }

    /// Whether it could not be read, which is reported already.
    pub(super) fn is_broken(&self) -> bool {
        matches!(self.kind, Kind::Broken)
    }

    /// What it is, for a message.
    pub(super) fn describe(&self) -> &'static str {
        match &self.kind {
            Kind::Scalar(t) if t.is_null() => "nothing",
            Kind::Scalar(t) if t.style != Style::Plain => "a text",
            Kind::Scalar(t) => match &*t.value {
                "true" | "True" | "TRUE" | "false" | "False" | "FALSE" => "a truth value",
                v if v.starts_with(|c: char| c.is_ascii_digit()) => "a number",
                _ => "a text",
            },
            Kind::Broken => "nothing",
            Kind::Sequence(_) => "a list",
            Kind::Mapping(_) => "a mapping",
        }
    }
}

impl Text {
    pub(super) fn is_null(&self) -> bool {
        self.style == Style::Plain && matches!(&*self.value, "" | "~" | "null" | "Null" | "NULL")
    }

    /// `true` or `false`, if it is one (YAML 1.2 core: nothing else is).
    pub(super) fn as_bool(&self) -> Option<bool> {
        match &*self.value {
            "true" | "True" | "TRUE" if self.style == Style::Plain => Some(true),
            "false" | "False" | "FALSE" if self.style == Style::Plain => Some(false),
            _ => None,
        }
    }
}
