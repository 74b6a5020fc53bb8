//! YAML trees: built by the grammar, damaged as trees, printed in block or flow style.

use crate::random_model::Random;
use std::fmt::Write;

/// A node.
#[derive(Clone, Debug)]
pub enum Tree {
    /// Printed as it is.
    Plain(String),
    /// Printed as a text between double quotes.
    Quoted(String),
    /// A list.
    List(Vec<Tree>),
    /// A mapping; keys may repeat.
    Map(Vec<(String, Tree)>),
}

/// A text as JSON writes it; YAML reads it the same way.
pub fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() || !c.is_ascii() => {
                let _ = write!(out, "\\U{:08x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

impl Tree {
    /// A mapping of the entries that are there.
    pub fn map<const N: usize>(entries: [(&str, Option<Tree>); N]) -> Tree {
        Tree::Map(entries.into_iter().filter_map(|(key, value)| Some((key.into(), value?))).collect())
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        1 + match self {
            Tree::Plain(_) | Tree::Quoted(_) => 0,
            Tree::List(items) => items.iter().map(Tree::len).sum(),
            Tree::Map(entries) => entries.iter().map(|(_, value)| value.len()).sum(),
        }
    }

    /// Never: a tree has a root.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Visits a node by its number, in the order of the file.
    fn node(&mut self, number: &mut usize) -> Option<&mut Tree> {
        if *number == 0 {
            return Some(self);
        }
        *number -= 1;
        match self {
            Tree::Plain(_) | Tree::Quoted(_) => None,
            Tree::List(items) => items.iter_mut().find_map(|item| item.node(number)),
            Tree::Map(entries) => entries.iter_mut().find_map(|(_, value)| value.node(number)),
        }
    }

    /// Puts something of another kind, or from elsewhere in the file, in the place of one node.
    pub fn damage(&mut self, r: &mut Random) {
        let count = self.len();
        let copy = self.node(&mut r.below(count)).cloned().unwrap_or(Tree::Plain("~".into()));
        let Some(node) = self.node(&mut r.below(count)) else {
            return;
        };
        *node = match (r.below(9), &*node) {
            (0, _) => Tree::Plain(super::numbers::number(r, 1.0)),
            (1, _) => Tree::List(vec![]),
            (2, _) => Tree::Map(vec![]),
            (3, _) => Tree::List(vec![node.clone(), copy]),
            (4, Tree::Map(entries)) if !entries.is_empty() => {
                let mut entries = entries.clone();
                entries.remove(r.below(entries.len()));
                Tree::Map(entries)
            }
            (5, Tree::Map(entries)) if !entries.is_empty() => {
                let mut entries = entries.clone();
                let key = entries[r.below(entries.len())].0.clone();
                entries.push((key, copy));
                Tree::Map(entries)
            }
            (6, Tree::List(items)) if !items.is_empty() => {
                let mut items = items.clone();
                items.pop();
                Tree::List(items)
            }
            (7, _) => Tree::Plain(["~", "true", "\"\"", "ground", "*x", "&x 1"][r.below(6)].into()),
            _ => copy,
        };
    }

    /// The text of a file.
    pub fn print(&self, r: &mut Random) -> String {
        let mut out = String::new();
        let Tree::Map(entries) = self else {
            self.flow(&mut out);
            return out;
        };
        // The first levels as blocks, as people write them; what is deeper in one line, now and then.
        let depth = 1 + r.below(4);
        block(entries, 0, depth, &mut out);
        out
    }

    fn flow(&self, out: &mut String) {
        match self {
            Tree::Plain(text) => out.push_str(text),
            Tree::Quoted(text) => out.push_str(&quoted(text)),
            Tree::List(items) => {
                out.push('[');
                for (i, item) in items.iter().enumerate() {
                    out.push_str(if i > 0 { ", " } else { "" });
                    item.flow(out);
                }
                out.push(']');
            }
            Tree::Map(entries) => {
                out.push('{');
                for (i, (key, value)) in entries.iter().enumerate() {
                    let _ = write!(out, "{}{key}: ", if i > 0 { ", " } else { "" });
                    value.flow(out);
                }
                out.push('}');
            }
        }
    }
}

fn block(entries: &[(String, Tree)], indent: usize, depth: usize, out: &mut String) {
    for (key, value) in entries {
        let _ = write!(out, "{:indent$}{key}:", "");
        match value {
            Tree::Map(inner) if depth > 0 && !inner.is_empty() => {
                out.push('\n');
                block(inner, indent + 2, depth - 1, out);
            }
            value => {
                out.push(' ');
                value.flow(out);
                out.push('\n');
            }
        }
    }
}
